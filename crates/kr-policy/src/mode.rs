//! What a policy answers with.
//!
//! Invariants
//! - [`Mode::HashOnce`] holds an [`EndCheck`], which a policy can only pass on: it comes with the
//!   facts, from the code that will do what the token promises.

use kr_types::{ByTier, RestoreMode, Tier, Verified};

/// The promise without which memory must not be put back by a list.
///
/// A list restore leaves alone what the kernel was not seen to change. So somebody has to look at
/// the rest after the last pass, and nothing that passes 2 and later measured may be believed until
/// then. A policy that was given no promise has none to give:
///
/// ```compile_fail
/// # use kr_policy::seam::{EndCheck, Mode};
/// let mode = Mode::HashOnce(EndCheck(()));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndCheck(());

impl EndCheck {
    /// Only for the code that runs the window. By calling it, it promises
    /// - to hash every live tile off the list after the pass that turns out to be the last, be it
    ///   earlier than planned;
    /// - to release no record of pass 2 or later before that, so that these passes can run again if
    ///   a tile off the list has changed.
    pub const fn promised() -> Self {
        Self(())
    }
}

/// How one tier's share of memory is put back in one window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Copy everything back before each pass.
    Full,
    /// Hash before each pass, copy the changed tiles back.
    HashEveryPass,
    /// Hash before pass 1 only; later passes copy the same tiles back.
    HashOnce(EndCheck),
}

impl Mode {
    /// The mode without the promise: for reports and for whoever carries the restore out.
    pub const fn restore_mode(self) -> RestoreMode {
        match self {
            Self::Full => RestoreMode::Full,
            Self::HashEveryPass => RestoreMode::HashEveryPass,
            Self::HashOnce(_) => RestoreMode::HashOnce,
        }
    }

    /// What can be said of records taken in this mode. A full copy needs no look: it makes the input
    /// of the next pass what was captured.
    pub const fn verified(self) -> Verified {
        match self {
            Self::Full | Self::HashEveryPass => Verified::EveryPass,
            Self::HashOnce(_) => Verified::EndOnly,
        }
    }

    /// [`verified`](Self::verified) of a whole window: as good as its weakest tier.
    pub fn verified_all(modes: ByTier<Self>) -> Verified {
        let end_only = |tier: &Tier| modes.get(*tier).verified() == Verified::EndOnly;
        match Tier::ALL.iter().any(end_only) {
            true => Verified::EndOnly,
            false => Verified::EveryPass,
        }
    }
}
