//! The seam between a window and whoever decides how its memory is put back.
//!
//! A window asks once it has captured, and says afterwards what happened:
//!
//! ```
//! use std::time::Duration;
//! use kr_policy::seam::{Auto, EndCheck, Facts, Mode, Observed, Policy, Rates};
//! use kr_types::{ByTier, KernelId, RestoreMode};
//!
//! let facts = Facts {
//!     kernel: KernelId(7),
//!     grid: [1 << 20, 1, 1],
//!     passes: Some(5),
//!     live_bytes: ByTier { device: 2 << 30, pinned_host: 0 },
//!     rates: Rates::ASSUMED,
//!     can_hash: true,
//!     end_check: None,
//!     every_pass_only: false,
//! };
//! let policy = Auto::default();
//! assert_eq!(policy.choose(&facts).device, Mode::HashEveryPass);
//!
//! // All four restores found that the kernel had rewritten nearly everything.
//! policy.learn(&facts, &Observed {
//!     modes: policy.choose(&facts).map(Mode::restore_mode),
//!     passes: 5,
//!     hashed_restores: 4,
//!     changed_bytes: ByTier { device: 2_000_000_000, pinned_host: 0 },
//!     equal_lists: Some(true),
//!     unlisted_change: false,
//!     blit: None,
//! });
//! assert_eq!(policy.choose(&facts).device, Mode::Full);
//! ```

use kr_types::ByTier;

pub use crate::auto::{Auto, select};
pub use crate::facts::{Blit, Facts, Observed, Rates};
pub use crate::forced::{Always, Forced, UnknownMode, parse_forced};
pub use crate::history::History;
pub use crate::mode::{EndCheck, Mode};

/// Chooses how memory is put back between the passes of one window, and learns from how it went.
///
/// Contract
/// - `choose` is total and quick: it runs once per window, under the agent's lock.
/// - Equal facts after equal lessons give equal modes; the time of day and the order of an inventory
///   have no say. `choose` itself teaches nothing.
/// - [`Mode::HashOnce`] is answered only with the promise of these same facts.
pub trait Policy: Send + Sync {
    /// The modes for a window with these facts.
    fn choose(&self, facts: &Facts) -> ByTier<Mode>;

    /// Takes in what became of a window with these facts. Called once for each window that was
    /// replayed or repaired, and for no other.
    fn learn(&self, facts: &Facts, observed: &Observed);
}
