//! Restore policy: facts about a window in, a [`RestoreMode`] out.
//!
//! [`RestorePolicy`] is the seam; [`Fixed`] is the policy that does not choose. A policy is pure:
//! equal facts give equal modes, whatever the time of day or the order of an inventory.
//!
//! [`seam`] holds the seam for windows that know their facts tier by tier and say afterwards what
//! happened, with the policy that chooses by time and learns.
//!
//! Not here: devices, clocks, logs, the environment. Whoever asks has gathered the facts.
//!
//! # Example
//!
//! ```
//! use kr_policy::{Facts, Fixed, RestorePolicy};
//! use kr_types::{KernelId, RestoreMode};
//!
//! let facts = Facts { kernel: KernelId(7), passes: Some(5), live_bytes: 2 << 30 };
//! assert_eq!(Fixed(RestoreMode::Full).choose(&facts), RestoreMode::Full);
//! ```

#![forbid(unsafe_code)]

mod auto;
mod facts;
mod forced;
#[doc(hidden)]
pub mod fuzzing;
mod history;
mod mode;
mod model;
pub mod seam;

use kr_types::{KernelId, RestoreMode};

/// What is known of a window when its restore mode is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The kernel that is replayed.
    pub kernel: KernelId,
    /// Passes that will run at the most; `None` if the profiler decides as it goes.
    pub passes: Option<u32>,
    /// Bytes saved.
    pub live_bytes: u64,
}

/// Chooses how memory is put back between the passes of one window.
///
/// Contract: pure, cheap (it runs once per window) and total: every set of facts has an answer.
pub trait RestorePolicy: Send + Sync + 'static {
    /// The mode for a window with these facts.
    fn choose(&self, facts: &Facts) -> RestoreMode;
}

/// The same mode for every window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fixed(pub RestoreMode);

impl RestorePolicy for Fixed {
    fn choose(&self, _: &Facts) -> RestoreMode {
        self.0
    }
}
