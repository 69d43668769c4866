//! Where saved bytes go: requests become placements in tiers, and placements become blocks.
//!
//! [`plan`] is pure. It checks the [`Request`]s, puts them in an order of its own, offers each to one
//! tier of a [`TierChain`](kr_storage::TierChain) after the other and returns [`Placement`]s.
//! [`plan_and_commit`] goes on to commit the blocks, plans again when a tier cannot provide one, and
//! returns [`Extent`](kr_types::Extent)s with their memory as [`Storage`]. How large tiers may become
//! is computed by [`Budgets`] from facts, and which regions should be near the agent by
//! [`priorities`].
//!
//! Invariants
//! - Each request is covered by its placements: from its start to its end, in order, without gaps.
//! - The same requests give the same plan, in whatever order they are given.
//! - It is all or nothing. After an error no block is held that was not held before, and the error
//!   says what each failed round lacked.
//! - No number panics or wraps: malformed requests are errors that name their region, and what does
//!   not fit below 2^64 does not fit.
//!
//! Not here: what a decline is, whose memory is saved and why, where facts come from. No device,
//! clock, log, file or environment variable is touched.
//!
//! # Example
//!
//! Two regions of three tiles. The device has room for four of the six, so the second region is cut.
//!
//! ```
//! # use std::num::{NonZeroU32, NonZeroU64};
//! # use std::sync::Arc;
//! use kr_plan::{Request, plan_and_commit};
//! use kr_storage::{
//!     Arena, BlockStore, Bump, Fallback, NullAllocator, PoolBacking, PrefixChunking, RetainKey,
//!     TierBudget, WholeRegion,
//! };
//! use kr_types::{AgentId, DeviceAddr, Generation, MemoryClass, PoolId, Region, TILE_BYTES, Tier};
//! #
//! # struct Pool(u64);
//! # struct Block(u64, NonZeroU64);
//! # impl kr_storage::ArenaBlock for Block {
//! #     fn addr(&self) -> DeviceAddr { DeviceAddr(self.0) }
//! #     fn len_bytes(&self) -> NonZeroU64 { self.1 }
//! # }
//! # impl kr_storage::Pool for Pool {
//! #     type Block = Block;
//! #     fn allocate(&self, bytes: NonZeroU64) -> Result<Block, kr_storage::PoolError> {
//! #         Ok(Block(self.0, bytes))
//! #     }
//! #     fn grant(&self, _: &Block, _: &[AgentId])
//! #         -> Result<(), Box<dyn std::error::Error + Send + Sync>> { Ok(()) }
//! # }
//! # let (device_pool, pinned_pool) = (Arc::new(Pool(0x100_0000)), Arc::new(Pool(0x200_0000)));
//!
//! let agent = AgentId(1);
//! let region = |base| {
//!     Region::new(agent, base, 3 * TILE_BYTES, Generation::FIRST, MemoryClass::Vram)
//! };
//! let regions = [region(DeviceAddr(0x7000_0000))?, region(DeviceAddr(0x7010_0000))?];
//!
//! let store = BlockStore::new(NonZeroU32::new(100).unwrap());
//! let backing = |pool, id, tier, bytes| {
//!     let key = RetainKey { agent, pool: PoolId(id), tier };
//!     let budget = TierBudget { bytes, ..TierBudget::default() };
//!     PoolBacking::new(store.clone(), pool, key, budget)
//! };
//! let device = backing(device_pool, 1, Tier::Device, 4 * TILE_BYTES + 100);
//! let pinned = backing(pinned_pool, 2, Tier::PinnedHost, u64::MAX);
//! let mut chain = Fallback::new(
//!     Arena::new(PrefixChunking::TILE, Bump::new(), device),
//!     Fallback::new(Arena::new(WholeRegion, Bump::new(), pinned), NullAllocator),
//! );
//!
//! let requests = [Request::whole(0, &regions[0]), Request::whole(1, &regions[1])];
//! let storage = plan_and_commit(&mut chain, &regions, &requests)?;
//! let placed: Vec<_> = storage
//!     .extents()
//!     .iter()
//!     .map(|extent| (extent.tier(), extent.len_bytes().get() / TILE_BYTES))
//!     .collect();
//! assert_eq!(placed, [(Tier::Device, 3), (Tier::Device, 1), (Tier::PinnedHost, 2)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod budget;
mod commit;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod plan;
mod priority;
mod request;

pub use budget::{
    BudgetReport, Budgets, DEVICE_RESERVE, DeviceFacts, HostFacts, Quota, TierReport,
};
pub use commit::{Storage, plan_and_commit};
pub use error::{FailedRound, NoCapacity, PlanError, Then};
pub use plan::{Placement, Plan, plan};
pub use priority::{kernarg_pointers, priorities};
pub use request::{Request, RequestError};
