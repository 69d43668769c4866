//! The chain of tiers: each request is offered to one after the other, and the chain has an end.

use std::fmt;
use std::num::NonZeroU64;

use crate::{Ask, CommitError, Committed, TierArena};

/// Position of a tier in its chain, from 0; the first is preferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TierIx(pub u32);

impl TierIx {
    /// The tier that is asked first.
    pub const FIRST: Self = Self(0);

    /// The tier after this one.
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for TierIx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tier {}", self.0)
    }
}

/// Room for the start of what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Which tier gives it.
    pub tier: TierIx,
    /// Where it starts in that tier's arena, in bytes.
    pub offset: u64,
    /// Its length in bytes.
    pub len: NonZeroU64,
}

/// No tier took what was asked. Only [`NullAllocator`] says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no tier has room for {missing} more bytes")]
pub struct Exhausted {
    /// Bytes that have no place.
    pub missing: NonZeroU64,
}

/// A tier that could not be committed. The blocks of the tiers before it were given back.
#[derive(Debug, thiserror::Error)]
#[error("{tier} has no block of {requested} bytes")]
pub struct Refusal {
    /// Which tier.
    pub tier: TierIx,
    /// Bytes that its placements need.
    pub requested: u64,
    /// Why not.
    #[source]
    pub source: CommitError,
}

mod sealed {
    pub trait Sealed {}
}

/// Tiers in order of preference, ending in [`NullAllocator`].
///
/// Implemented by [`Fallback`] and [`NullAllocator`] alone, so that a chain without an end does not
/// compile.
pub trait TierChain: sealed::Sealed {
    /// How many tiers there are.
    const TIERS: u32;

    /// Begins a window: every tier reads its budget and forgets its grants.
    fn open(&mut self);

    /// Every tier forgets its grants; limits stay.
    fn reset(&mut self);

    /// Asks the tier at `from`, then those after it, until one grants.
    ///
    /// # Errors
    ///
    /// [`Exhausted`] if none does. Earlier grants stand.
    fn offer(&mut self, from: TierIx, ask: &Ask) -> Result<Grant, Exhausted>;

    /// The tier at `tier`, or `None` past the last.
    fn arena(&self, tier: TierIx) -> Option<&dyn TierArena>;

    /// As [`arena`](Self::arena), to change it.
    fn arena_mut(&mut self, tier: TierIx) -> Option<&mut dyn TierArena>;

    /// All tiers, in order.
    fn arenas(&self) -> impl Iterator<Item = (TierIx, &dyn TierArena)> {
        (0..Self::TIERS)
            .map(TierIx)
            .filter_map(|tier| Some((tier, self.arena(tier)?)))
    }

    /// Provides a block for each tier that has grants, in order.
    ///
    /// # Errors
    ///
    /// [`Refusal`] by the first tier that has none. Blocks of earlier tiers are taken back, the last
    /// one first.
    fn commit(&mut self) -> Result<Committed, Refusal> {
        let mut committed = Committed::with_capacity(Self::TIERS);
        for tier in (0..Self::TIERS).map(TierIx) {
            let Some(arena) = self.arena_mut(tier) else {
                continue;
            };
            match arena.commit() {
                Ok(None) => {}
                Ok(Some(block)) => committed.push(tier, arena.tier(), block),
                Err(source) => {
                    let requested = arena.used();
                    committed.undo();
                    return Err(Refusal {
                        tier,
                        requested,
                        source,
                    });
                }
            }
        }
        Ok(committed)
    }
}

/// A tier, and what is asked when it declines.
///
/// It can only end in [`NullAllocator`]:
///
/// ```
/// use kr_storage::{Arena, BackingAllocator, Bump, Fallback, NullAllocator, TierChain, WholeRegion};
///
/// fn chain(gpu: impl BackingAllocator, host: impl BackingAllocator) -> impl TierChain {
///     let gpu = Arena::new(WholeRegion, Bump::new(), gpu);
///     let host = Arena::new(WholeRegion, Bump::new(), host);
///     Fallback::new(gpu, Fallback::new(host, NullAllocator))
/// }
/// ```
///
/// Without the end there is no chain:
///
/// ```compile_fail,E0277
/// use kr_storage::{Arena, BackingAllocator, Bump, Fallback, NullAllocator, TierChain, WholeRegion};
///
/// fn chain(gpu: impl BackingAllocator, host: impl BackingAllocator) -> impl TierChain {
///     let gpu = Arena::new(WholeRegion, Bump::new(), gpu);
///     let host = Arena::new(WholeRegion, Bump::new(), host);
///     Fallback::new(gpu, host)
/// }
/// ```
///
/// Nor can another end be made:
///
/// ```compile_fail,E0277
/// use kr_storage::{Ask, Exhausted, Grant, TierArena, TierChain, TierIx};
///
/// struct Endless;
///
/// impl TierChain for Endless {
///     const TIERS: u32 = 0;
///     fn open(&mut self) {}
///     fn reset(&mut self) {}
///     fn offer(&mut self, _: TierIx, ask: &Ask) -> Result<Grant, Exhausted> {
///         Ok(Grant { tier: TierIx::FIRST, offset: 0, len: ask.remaining })
///     }
///     fn arena(&self, _: TierIx) -> Option<&dyn TierArena> { None }
///     fn arena_mut(&mut self, _: TierIx) -> Option<&mut dyn TierArena> { None }
/// }
/// ```
#[derive(Debug)]
pub struct Fallback<Head, Tail> {
    head: Head,
    tail: Tail,
}

impl<Head: TierArena, Tail: TierChain> Fallback<Head, Tail> {
    /// Asks `head` first, and `tail` for what it declines.
    pub const fn new(head: Head, tail: Tail) -> Self {
        Self { head, tail }
    }
}

impl<Head, Tail: TierChain> sealed::Sealed for Fallback<Head, Tail> {}

impl<Head: TierArena, Tail: TierChain> TierChain for Fallback<Head, Tail> {
    const TIERS: u32 = Tail::TIERS + 1;

    fn open(&mut self) {
        self.head.open();
        self.tail.open();
    }

    fn reset(&mut self) {
        self.head.reset();
        self.tail.reset();
    }

    fn offer(&mut self, from: TierIx, ask: &Ask) -> Result<Grant, Exhausted> {
        let after = match from.0.checked_sub(1) {
            Some(after) => after,
            None => match self.head.offer(ask) {
                Some(grant) => return Ok(grant),
                None => 0,
            },
        };
        let grant = self.tail.offer(TierIx(after), ask)?;
        Ok(Grant {
            tier: grant.tier.next(),
            ..grant
        })
    }

    fn arena(&self, tier: TierIx) -> Option<&dyn TierArena> {
        match tier.0.checked_sub(1) {
            None => Some(&self.head),
            Some(after) => self.tail.arena(TierIx(after)),
        }
    }

    fn arena_mut(&mut self, tier: TierIx) -> Option<&mut dyn TierArena> {
        match tier.0.checked_sub(1) {
            None => Some(&mut self.head),
            Some(after) => self.tail.arena_mut(TierIx(after)),
        }
    }
}

/// The end of every chain. It owns nothing and refuses everything, and so turns "nobody took it"
/// into an error.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullAllocator;

impl sealed::Sealed for NullAllocator {}

impl TierChain for NullAllocator {
    const TIERS: u32 = 0;

    fn open(&mut self) {}

    fn reset(&mut self) {}

    fn offer(&mut self, _: TierIx, ask: &Ask) -> Result<Grant, Exhausted> {
        Err(Exhausted {
            missing: ask.remaining,
        })
    }

    fn arena(&self, _: TierIx) -> Option<&dyn TierArena> {
        None
    }

    fn arena_mut(&mut self, _: TierIx) -> Option<&mut dyn TierArena> {
        None
    }
}
