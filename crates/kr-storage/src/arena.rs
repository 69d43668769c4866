//! An arena: a tier's storage for one window.

use std::num::NonZeroU64;

use kr_types::Tier;

use crate::{
    Admission, ArenaBlock, Ask, BLOCK_ALIGN, BackingAllocator, CommitError, Grant, Suballocator,
    TierBudget, TierIx,
};

/// One tier, as a chain sees it.
///
/// Contract: [`offer`](Self::offer) grants at most what remains, never past the capacity, and touches
/// no memory; only [`commit`](Self::commit) does.
pub trait TierArena {
    /// Which kind of memory it is.
    fn tier(&self) -> Tier;

    /// Begins a window: reads the budget, which becomes the capacity, and forgets all grants.
    fn open(&mut self);

    /// Forgets all grants; the capacity stays.
    fn reset(&mut self);

    /// Forgets all grants and lowers the capacity to `bytes` until the next [`open`](Self::open). A
    /// tier of capacity 0 grants nothing.
    fn limit(&mut self, bytes: u64);

    /// Grants room for the start of what is asked, as [`TierIx::FIRST`], or declines.
    fn offer(&mut self, ask: &Ask) -> Option<Grant>;

    /// The budget as it was read when the window began.
    fn budget(&self) -> TierBudget;

    /// Bytes that may be granted in all, padding included.
    fn capacity(&self) -> u64;

    /// Bytes that the block must have for all grants so far.
    fn used(&self) -> u64;

    /// Provides the block for all grants; `None` if there are none.
    ///
    /// # Errors
    ///
    /// [`CommitError`]; no block is held that was not held before.
    fn commit(&mut self) -> Result<Option<Box<dyn ArenaBlock>>, CommitError>;
}

/// An admission, a suballocator and a backing: who gets in, where to, and in which block.
///
/// Invariants
/// - Grants are disjoint and congruent with what they are for, as the suballocator's contract says.
/// - `used <= capacity <= budget`, in bytes.
/// - A block is committed only for grants, and has room for all of them.
#[derive(Debug)]
pub struct Arena<A, S, B> {
    admission: A,
    suballocator: S,
    backing: B,
    budget: TierBudget,
    capacity: u64,
}

impl<A: Admission, S: Suballocator, B: BackingAllocator> Arena<A, S, B> {
    /// Makes an arena that is closed, with a capacity of 0, until a window begins.
    pub fn new(admission: A, suballocator: S, backing: B) -> Self {
        Self {
            admission,
            suballocator,
            backing,
            budget: TierBudget::default(),
            capacity: 0,
        }
    }
}

impl<A: Admission, S: Suballocator, B: BackingAllocator> TierArena for Arena<A, S, B> {
    fn tier(&self) -> Tier {
        self.backing.tier()
    }

    fn open(&mut self) {
        self.budget = self.backing.budget();
        self.capacity = self.budget.bytes;
        self.reset();
    }

    fn reset(&mut self) {
        self.suballocator.reset();
    }

    fn limit(&mut self, bytes: u64) {
        self.capacity = self.capacity.min(bytes);
        self.reset();
    }

    fn offer(&mut self, ask: &Ask) -> Option<Grant> {
        let room = self.suballocator.room(self.capacity, ask.align);
        let accepted = self.admission.accept(ask, room);
        let len = NonZeroU64::new(accepted.min(room).min(ask.remaining.get()))?;
        let offset = self.suballocator.carve(self.capacity, len, ask.align)?;
        Some(Grant {
            tier: TierIx::FIRST,
            offset,
            len,
        })
    }

    fn budget(&self) -> TierBudget {
        self.budget
    }

    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn used(&self) -> u64 {
        self.suballocator.high_water()
    }

    fn commit(&mut self) -> Result<Option<Box<dyn ArenaBlock>>, CommitError> {
        let Some(requested) = NonZeroU64::new(self.used()) else {
            return Ok(None);
        };
        let block = Box::new(self.backing.commit(requested)?);
        let (addr, len) = (block.addr(), block.len_bytes());
        let usable = !addr.is_null()
            && addr.0.is_multiple_of(BLOCK_ALIGN)
            && len >= requested
            && addr.checked_add(len.get()).is_some();
        if !usable {
            block.undo();
            return Err(CommitError::Unusable {
                requested,
                addr,
                len,
            });
        }
        Ok(Some(block))
    }
}
