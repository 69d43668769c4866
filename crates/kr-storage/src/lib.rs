//! Storage of saved bytes: how they get room in a tier, and where its memory comes from.
//!
//! A *tier* is one kind of place to save bytes, such as the agent's own memory or pinned host memory.
//! Each has an [`Arena`]: an [`Admission`] decides how much of a request enters, a [`Suballocator`]
//! where it goes, a [`BackingAllocator`] where the one block that holds it all comes from. Arenas
//! form a [`TierChain`], which offers a request to one tier after the other and ends in the
//! [`NullAllocator`].
//!
//! Granting room touches no memory. Only [`TierChain::commit`] does: it provides one block for each
//! tier that granted anything, and takes them back, the last one first, if a later tier has none.
//!
//! Blocks of a [`Pool`] outlive their window: the [`BlockStore`] retains the largest per agent, pool
//! and tier, so that the next window allocates nothing. It gives them up when the application needs
//! the memory ([`BlockStore::release_pool`]) or after some windows without use
//! ([`BlockStore::age`]).
//!
//! Invariants
//! - Grants of a tier are disjoint, lie below its capacity, and are congruent with the live side
//!   ([`Align`]).
//! - A region is cut on its own tiles' borders only.
//! - A block is handed out under the key it was first made for, after all who need it have access.
//! - Every block is given back once, also through moves and panics. One that unfinished work may
//!   still write is neither used, retained nor freed ([`Quarantine`]).
//! - No pool is called under a lock.
//!
//! Not here: which requests there are and in which order, how large budgets are, what the bytes are.
//!
//! # Example
//!
//! ```
//! use std::num::{NonZeroU32, NonZeroU64};
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
//!
//! use kr_storage::{
//!     Align, Arena, ArenaBlock, Ask, BlockStore, Bump, Fallback, NullAllocator, Pool, PoolBacking,
//!     PoolError, PrefixChunking, RetainKey, TierBudget, TierChain, TierIx,
//! };
//! use kr_types::{AgentId, DeviceAddr, MemoryClass, PoolId, TILE_BYTES, Tier};
//!
//! // A pool that counts; a real one calls its runtime.
//! #[derive(Default)]
//! struct Counted(AtomicU64);
//! struct Block(NonZeroU64);
//!
//! impl ArenaBlock for Block {
//!     fn addr(&self) -> DeviceAddr { DeviceAddr(0x10_0000) }
//!     fn len_bytes(&self) -> NonZeroU64 { self.0 }
//! }
//! impl Pool for Counted {
//!     type Block = Block;
//!     fn allocate(&self, bytes: NonZeroU64) -> Result<Block, PoolError> {
//!         self.0.fetch_add(1, Relaxed);
//!         Ok(Block(bytes))
//!     }
//!     fn grant(&self, _: &Block, _: &[AgentId])
//!         -> Result<(), Box<dyn std::error::Error + Send + Sync>>
//!     {
//!         Ok(())
//!     }
//! }
//!
//! let store = BlockStore::new(NonZeroU32::new(100).unwrap());
//! let pool = Arc::new(Counted::default());
//! let key = RetainKey { agent: AgentId(1), pool: PoolId(7), tier: Tier::Device };
//!
//! for _window in 0..3 {
//!     let budget = TierBudget { bytes: 4 * TILE_BYTES, retained: store.retained(key), free: 0 };
//!     let backing = PoolBacking::new(store.clone(), pool.clone(), key, budget);
//!     let arena = Arena::new(PrefixChunking::TILE, Bump::new(), backing);
//!     let mut chain = Fallback::new(arena, NullAllocator);
//!
//!     chain.open();
//!     let live = DeviceAddr(0x7000_0040);
//!     let ask = Ask {
//!         remaining: NonZeroU64::new(5 * TILE_BYTES).unwrap(),
//!         region_offset: 0,
//!         align: Align::congruent(live, 256)?,
//!         priority: 0,
//!         class: MemoryClass::Vram,
//!     };
//!     let grant = chain.offer(TierIx::FIRST, &ask)?;
//!     assert_eq!((grant.offset, grant.len.get()), (0x40, 3 * TILE_BYTES));
//!     let blocks = chain.commit()?;
//!     assert_eq!(blocks.blocks().len(), 1);
//! }
//! assert_eq!(pool.0.load(Relaxed), 1, "windows after the first allocate nothing");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod admission;
mod align;
mod arena;
mod backing;
mod chain;
mod committed;
mod pool;
mod store;
mod suballocator;
mod sync;

#[cfg(test)]
mod tests;

pub use admission::{Admission, Ask, Closed, PrefixChunking, Select, WholeRegion};
pub use align::{Align, BLOCK_ALIGN, CONGRUENCE, NotAPowerOfTwo, PACKED_CONGRUENCE, congruence};
pub use arena::{Arena, TierArena};
pub use backing::{ArenaBlock, BackingAllocator, CommitError, TierBudget};
pub use chain::{Exhausted, Fallback, Grant, NullAllocator, Refusal, TierChain, TierIx};
pub use committed::{Committed, CommittedBlock, Quarantine};
pub use pool::{Lease, Pool, PoolBacking, PoolError};
pub use store::{BlockStore, Retain, RetainKey};
pub use suballocator::{Bump, Suballocator};
