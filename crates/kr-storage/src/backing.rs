//! Backing: where the one block of an arena comes from.

use std::error::Error;
use std::num::NonZeroU64;

use kr_types::{DeviceAddr, Tier};

/// How many bytes a tier may use, and what that was derived from. All in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TierBudget {
    /// The most that one window may take. Advice: only an allocation shows what exists.
    pub bytes: u64,
    /// Of which an idle block already holds this many.
    pub retained: u64,
    /// What the runtime or the system said was free besides.
    pub free: u64,
}

/// Memory of ours that holds the saved bytes of one tier.
///
/// Whoever holds it owns it: it cannot be cloned, and dropping it gives it back, once. Dropping does
/// not panic and allocates no host memory.
pub trait ArenaBlock: Send + 'static {
    /// First byte, aligned to [`BLOCK_ALIGN`](crate::BLOCK_ALIGN).
    fn addr(&self) -> DeviceAddr;

    /// Usable length in bytes, at least what was asked for.
    fn len_bytes(&self) -> NonZeroU64;

    /// Takes back the commit that made it: afterwards everything is as it was before, as far as the
    /// runtime has the memory for that. Gives the block back, as dropping it does.
    fn undo(self: Box<Self>) {}

    /// Work that nobody has seen to end may still write the block (`true`), or has now been seen to
    /// end (`false`). While it may, the block is not dropped.
    fn set_quarantined(&mut self, _quarantined: bool) {}
}

/// Provides the block of an arena.
pub trait BackingAllocator {
    /// What it provides.
    type Block: ArenaBlock;

    /// Which kind of memory the blocks are.
    fn tier(&self) -> Tier;

    /// How much may be asked for. Read once per window.
    fn budget(&self) -> TierBudget;

    /// Provides a block of at least `bytes`.
    ///
    /// # Errors
    ///
    /// [`CommitError`]; no block is held that was not held before.
    fn commit(&mut self, bytes: NonZeroU64) -> Result<Self::Block, CommitError>;
}

/// Why a tier has no block for its placements.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// The memory does not exist. A smaller block may.
    #[error("no block of {requested} bytes is left")]
    OutOfMemory {
        /// Bytes asked for.
        requested: NonZeroU64,
        /// Bytes of an idle block that does exist, or 0.
        retained: u64,
    },
    /// The runtime refused for another reason; a smaller block would not help.
    #[error("could not {operation} a block of {requested} bytes")]
    Refused {
        /// What was attempted: `allocate`, or `grant access to`.
        operation: &'static str,
        /// Bytes asked for.
        requested: NonZeroU64,
        /// What the runtime said.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// An earlier block of the same key may still be written by work that was not seen to end.
    #[error("an earlier block is in quarantine: work that uses it was not seen to end")]
    Quarantined,
    /// The block that was provided breaks the contract of [`ArenaBlock`]; it was given back.
    #[error("asked for {requested} bytes, but was given {len} at {addr}, which cannot be used")]
    Unusable {
        /// Bytes asked for.
        requested: NonZeroU64,
        /// First byte of the block.
        addr: DeviceAddr,
        /// Its length in bytes.
        len: NonZeroU64,
    },
}

impl CommitError {
    /// A size at which the tier is worth another try: of an idle block that exists, or half of what
    /// was refused. `None` if no size is.
    pub fn smaller(&self) -> Option<NonZeroU64> {
        match self {
            Self::OutOfMemory {
                requested,
                retained,
            } => {
                let half = requested.get() / 2;
                NonZeroU64::new(half.max(*retained)).filter(|size| size < requested)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_want_of_memory_is_worth_a_smaller_try() {
        let bytes = |bytes| NonZeroU64::new(bytes).unwrap();
        let smaller = |requested, retained| {
            let requested = bytes(requested);
            let error = CommitError::OutOfMemory {
                requested,
                retained,
            };
            error.smaller().map(NonZeroU64::get)
        };
        assert_eq!(smaller(100, 0), Some(50));
        assert_eq!(smaller(100, 70), Some(70));
        assert_eq!(smaller(1, 0), None);
        assert_eq!(smaller(100, 100), None, "it would have been taken");
        assert!(CommitError::Quarantined.smaller().is_none());
    }
}
