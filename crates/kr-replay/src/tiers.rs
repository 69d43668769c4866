//! Where saved bytes get their room: the tiers of one device, in a chain.
//!
//! `kr-plan` decides what goes where, `kr-storage` keeps blocks between windows; here both meet a
//! [`Device`]. A region may be cut across tiers, on a tile's border, so that what the agent's own
//! memory has no room for spills into pinned host memory.
//!
//! Invariants
//! - Blocks are allocated by the agent that uses them, which has access to them by the contract of
//!   [`Device::alloc`]; no other agent gets them.
//! - Placing touches nothing of the application. If it fails, nothing is held that was not before.

use std::error::Error;
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;

use kr_device::{Block, Device, DeviceError};
use kr_plan::{PlanError, Request, Storage, plan_and_commit, priorities};
use kr_storage::{
    Arena, ArenaBlock, BlockStore, Bump, Fallback, NullAllocator, Pool, PoolBacking, PoolError,
    PrefixChunking, Retain, RetainKey, TierBudget,
};
use kr_types::{AgentId, ByTier, DeviceAddr, PoolId, Region, Tier};

/// Windows of an agent after which a block that none of them used is freed.
const IDLE_WINDOWS: NonZeroU32 = NonZeroU32::new(1000).expect("it is not zero");

/// A kind of memory of a device, as storage sees it.
struct DevicePool<D> {
    device: Arc<D>,
    tier: Tier,
}

/// A device's block, as storage sees it.
struct PoolBlock<K>(K);

impl<K: Block> ArenaBlock for PoolBlock<K> {
    fn addr(&self) -> DeviceAddr {
        self.0.addr()
    }

    fn len_bytes(&self) -> NonZeroU64 {
        self.0.len_bytes()
    }
}

impl<D: Device> Pool for DevicePool<D> {
    type Block = PoolBlock<D::Block>;

    fn allocate(&self, bytes: NonZeroU64) -> Result<Self::Block, PoolError> {
        match self.device.alloc(self.tier, bytes) {
            Ok(block) => Ok(PoolBlock(block)),
            Err(DeviceError::OutOfMemory { .. }) => Err(PoolError::OutOfMemory),
            Err(error) => Err(PoolError::Refused(Box::new(error))),
        }
    }

    /// The device's agent has access from the start, and nobody else is to have it.
    fn grant(&self, _: &Self::Block, _: &[AgentId]) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(())
    }
}

/// The tiers of one device.
pub(crate) struct Tiers<D: Device> {
    agent: AgentId,
    pools: ByTier<Arc<DevicePool<D>>>,
    store: BlockStore<PoolBlock<D::Block>>,
    budgets: ByTier<u64>,
    retain: Retain,
}

impl<D: Device> Tiers<D> {
    pub(crate) fn new(device: D, budgets: ByTier<u64>, retain: Retain) -> Self {
        let device = Arc::new(device);
        Self {
            agent: device.agent(),
            pools: ByTier::from_fn(|tier| {
                let device = device.clone();
                Arc::new(DevicePool { device, tier })
            }),
            store: BlockStore::new(IDLE_WINDOWS),
            budgets,
            retain,
        }
    }

    /// Places all of `regions` and provides the memory. Regions that the kernel arguments point into
    /// are placed first, so nearest to the agent.
    pub(crate) fn place(&self, regions: &[Region], kernarg: &[u8]) -> Result<Storage, PlanError> {
        let heat = priorities(regions, kernarg, |_| false);
        let requests: Vec<_> = (0..)
            .zip(regions)
            .zip(heat)
            .map(|((index, region), heat)| Request::whole(index, region).with_priority(heat))
            .collect();
        let arena = |tier| {
            let backing = self.backing(tier);
            Arena::new(PrefixChunking::TILE, Bump::new(), backing)
        };
        let pinned = Fallback::new(arena(Tier::PinnedHost), NullAllocator);
        let mut chain = Fallback::new(arena(Tier::Device), pinned);
        plan_and_commit(&mut chain, regions, &requests)
    }

    fn backing(&self, tier: Tier) -> PoolBacking<DevicePool<D>> {
        let key = RetainKey {
            agent: self.agent,
            // A device has one pool of each kind.
            pool: PoolId(tier as u64),
            tier,
        };
        let budget = TierBudget {
            bytes: *self.budgets.get(tier),
            retained: self.store.retained(key),
            free: 0,
        };
        let pool = self.pools.get(tier).clone();
        PoolBacking::new(self.store.clone(), pool, key, budget).with_retain(self.retain)
    }

    /// A window has ended: frees blocks that have not been used for long.
    pub(crate) fn age(&self) {
        self.store.age(self.agent);
    }

    /// Frees what is kept for the next window, and says how many bytes that were.
    pub(crate) fn release(&self) -> u64 {
        self.store.release_all()
    }
}
