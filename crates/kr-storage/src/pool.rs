//! Pools of a runtime, and the backing that takes its blocks from one and retains them.

use std::error::Error;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;

use kr_types::{AgentId, DeviceAddr, Tier};

use crate::store::{EntryIx, Held};
use crate::{ArenaBlock, BackingAllocator, BlockStore, CommitError, Retain, RetainKey, TierBudget};

/// Why a pool gave no block.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
    /// The pool has no such amount of memory left. A smaller block may exist.
    #[error("out of memory")]
    OutOfMemory,
    /// The runtime refused for another reason.
    #[error("the runtime refused")]
    Refused(#[source] Box<dyn Error + Send + Sync>),
}

/// Memory of a runtime that blocks are allocated from.
///
/// Contract
/// - No two live blocks overlap. Dropping a block frees it.
/// - Everything may be called from any thread, and takes as long as it takes.
pub trait Pool: Send + Sync + 'static {
    /// What it allocates.
    type Block: ArenaBlock;

    /// Allocates a block of at least `bytes`. Nobody but the pool's owner has access to it yet.
    ///
    /// # Errors
    ///
    /// [`PoolError`]; nothing was allocated.
    fn allocate(&self, bytes: NonZeroU64) -> Result<Self::Block, PoolError>;

    /// Gives access to exactly `agents`, besides the pool's owner: who is not in the list loses it
    /// (`hsa_amd_agents_allow_access`).
    ///
    /// # Errors
    ///
    /// What the runtime said. Who has access is unknown.
    fn grant(
        &self,
        block: &Self::Block,
        agents: &[AgentId],
    ) -> Result<(), Box<dyn Error + Send + Sync>>;
}

/// Provides blocks of a pool for one agent, and keeps them in a store between windows.
///
/// - A retained block that is large enough is used whole.
/// - One that is too small is freed *before* the larger one is allocated: the two never coexist.
/// - Whoever is to have access is granted it in one call, unless the block was granted to all of
///   them before.
/// - A commit that fails, or is undone, leaves the key as it was. To that end a block that had been
///   freed to make room is allocated again; should the runtime refuse even that, the key is empty.
pub struct PoolBacking<P: Pool> {
    source: Source<P>,
    budget: TierBudget,
    retain: Retain,
}

/// What a backing and its leases share.
struct Source<P: Pool> {
    store: BlockStore<P::Block>,
    pool: Arc<P>,
    key: RetainKey,
    /// Who has to have access; the key's agent comes first.
    access: Vec<AgentId>,
}

impl<P: Pool> PoolBacking<P> {
    /// Takes blocks of `pool`, which is the one that `key` names, for the key's agent.
    pub fn new(
        store: BlockStore<P::Block>,
        pool: Arc<P>,
        key: RetainKey,
        budget: TierBudget,
    ) -> Self {
        Self {
            source: Source {
                store,
                pool,
                key,
                access: vec![key.agent],
            },
            budget,
            retain: Retain::default(),
        }
    }

    /// Gives `agent` access too, such as the CPU agent if the host is to copy.
    #[must_use]
    pub fn with_access(mut self, agent: AgentId) -> Self {
        if !self.source.access.contains(&agent) {
            self.source.access.push(agent);
        }
        self
    }

    /// What becomes of blocks when their window ends.
    #[must_use]
    pub fn with_retain(mut self, retain: Retain) -> Self {
        self.retain = retain;
        self
    }
}

impl<P: Pool> fmt::Debug for PoolBacking<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolBacking")
            .field("key", &self.source.key)
            .field("access", &self.source.access)
            .field("budget", &self.budget)
            .field("retain", &self.retain)
            .finish_non_exhaustive()
    }
}

impl<P: Pool> BackingAllocator for PoolBacking<P> {
    type Block = Lease<P>;

    fn tier(&self) -> Tier {
        self.source.key.tier
    }

    fn budget(&self) -> TierBudget {
        self.budget
    }

    fn commit(&mut self, bytes: NonZeroU64) -> Result<Lease<P>, CommitError> {
        let source = self.source.clone();
        let entry = source.store.entry(source.key);
        let Ok(held) = source.store.take(entry) else {
            return Err(CommitError::Quarantined);
        };
        // From here on whatever ends early gives back what it holds, once.
        let mut lease = Lease {
            source,
            entry,
            origin: Origin::Retained,
            retain: Retain::AcrossWindows,
            quarantined: false,
            held,
        };
        if lease.len().is_none_or(|len| len < bytes) {
            lease.replace(bytes)?;
        }
        if let Err(source) = lease.grant() {
            Box::new(lease).undo();
            return Err(CommitError::Refused {
                operation: "grant access to",
                requested: bytes,
                source,
            });
        }
        lease.retain = self.retain;
        Ok(lease)
    }
}

impl<P: Pool> Clone for Source<P> {
    fn clone(&self) -> Self {
        Self {
            store: self.store.clone(),
            pool: self.pool.clone(),
            key: self.key,
            access: self.access.clone(),
        }
    }
}

/// Where a lease's block came from.
#[derive(Clone, Copy, Debug)]
enum Origin {
    Retained,
    /// Allocated, after a block of this length had been freed for it.
    Fresh {
        replaced: Option<NonZeroU64>,
    },
}

/// A block of a pool in use by a window; dropping it gives it back to the store.
pub struct Lease<P: Pool> {
    source: Source<P>,
    entry: EntryIx,
    origin: Origin,
    /// What becomes of the block at the end.
    retain: Retain,
    quarantined: bool,
    /// `None` only while a commit or its undoing puts another block in the place of the first.
    held: Option<Held<P::Block>>,
}

impl<P: Pool> Lease<P> {
    fn block(&self) -> &P::Block {
        let held = self.held.as_ref();
        &held
            .expect("a committed lease holds its block until it ends")
            .block
    }

    fn len(&self) -> Option<NonZeroU64> {
        self.held.as_ref().map(|held| held.block.len_bytes())
    }

    /// Frees the block, if there is one.
    fn free(&mut self) {
        if let Some(held) = self.held.take() {
            self.source.store.give_back(self.entry, held, Retain::Freed);
        }
    }

    /// Frees the block, if there is one, and allocates one of `bytes`.
    fn replace(&mut self, bytes: NonZeroU64) -> Result<(), CommitError> {
        let replaced = self.len();
        self.origin = Origin::Fresh { replaced };
        self.free();
        match self.source.pool.allocate(bytes) {
            Ok(block) => {
                self.held = Some(Held::new(block));
                Ok(())
            }
            Err(error) => {
                self.refill(replaced);
                Err(match error {
                    PoolError::OutOfMemory => CommitError::OutOfMemory {
                        requested: bytes,
                        retained: self.len().map_or(0, NonZeroU64::get),
                    },
                    PoolError::Refused(source) => CommitError::Refused {
                        operation: "allocate",
                        requested: bytes,
                        source,
                    },
                })
            }
        }
    }

    /// Allocates what had been freed, so that giving it back leaves the key as it was.
    fn refill(&mut self, replaced: Option<NonZeroU64>) {
        self.held = replaced
            .and_then(|len| self.source.pool.allocate(len).ok())
            .map(Held::new);
    }

    /// Sees to it that everyone who has to have access does.
    fn grant(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        let Some(held) = &mut self.held else {
            return Ok(());
        };
        let access = &self.source.access;
        if access.iter().all(|agent| held.granted.contains(agent)) {
            return Ok(());
        }
        // Emptied first: after a failure nobody is known to have access.
        let mut all = std::mem::take(&mut held.granted);
        all.extend(access);
        all.sort_unstable();
        all.dedup();
        self.source.pool.grant(&held.block, &all)?;
        held.granted = all;
        Ok(())
    }
}

impl<P: Pool> ArenaBlock for Lease<P> {
    fn addr(&self) -> DeviceAddr {
        self.block().addr()
    }

    fn len_bytes(&self) -> NonZeroU64 {
        self.block().len_bytes()
    }

    fn undo(mut self: Box<Self>) {
        if let Origin::Fresh { replaced } = self.origin {
            self.free();
            self.refill(replaced);
        }
        self.retain = Retain::AcrossWindows;
    }

    fn set_quarantined(&mut self, quarantined: bool) {
        if self.quarantined != quarantined {
            self.quarantined = quarantined;
            self.source.store.set_quarantined(self.entry, quarantined);
        }
    }
}

impl<P: Pool> Drop for Lease<P> {
    fn drop(&mut self) {
        let Some(held) = self.held.take() else {
            return;
        };
        if self.quarantined {
            // Something may still write it.
            std::mem::forget(held);
        } else {
            self.source.store.give_back(self.entry, held, self.retain);
        }
    }
}

impl<P: Pool> fmt::Debug for Lease<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("key", &self.source.key)
            .field("origin", &self.origin)
            .field("len_bytes", &self.len())
            .finish_non_exhaustive()
    }
}
