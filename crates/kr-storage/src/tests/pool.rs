//! A pool without memory: it writes down what is asked of it, and fails on demand.

use std::collections::BTreeMap;
use std::error::Error;
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;

use kr_types::{AgentId, DeviceAddr, PoolId, Tier};
use parking_lot::Mutex;

use crate::{
    ArenaBlock, BlockStore, CommitError, Lease, Pool, PoolBacking, PoolError, RetainKey, TierBudget,
};

pub(super) const GPU: AgentId = AgentId(1);
pub(super) const OTHER_GPU: AgentId = AgentId(2);
pub(super) const CPU: AgentId = AgentId(90);

pub(super) const DEVICE: RetainKey = RetainKey {
    agent: GPU,
    pool: PoolId(10),
    tier: Tier::Device,
};
/// The two agents share the pool of pinned memory.
pub(super) const PINNED: RetainKey = RetainKey {
    agent: GPU,
    pool: PoolId(20),
    tier: Tier::PinnedHost,
};
pub(super) const OTHER_PINNED: RetainKey = RetainKey {
    agent: OTHER_GPU,
    ..PINNED
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Allocate { id: u64, len: u64 },
    Free { id: u64 },
    Grant { id: u64, agents: Vec<AgentId> },
}

/// What becomes of calls of the pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Script {
    /// They work, as far as the memory goes.
    #[default]
    Works,
    /// Grants fail.
    RefusesGrants,
    /// Grants panic.
    PanicsInGrants,
    /// Allocations panic.
    PanicsInAllocations,
    /// Allocations fail for another reason than want of memory.
    RefusesAllocations,
    /// Blocks are not aligned.
    Misaligned,
}

#[derive(Default)]
pub(super) struct Ledger {
    pub(super) script: Script,
    /// Calls that still work before all fail; without it none does.
    pub(super) works_for: Option<u32>,
    pub(super) capacity: u64,
    next: u64,
    /// Length of each block that is not freed.
    pub(super) live: BTreeMap<u64, u64>,
    pub(super) events: Vec<Event>,
}

impl Ledger {
    pub(super) fn live_bytes(&self) -> u64 {
        self.live.values().sum()
    }

    /// Whether this call is one that must fail.
    fn worn_out(&mut self) -> bool {
        match &mut self.works_for {
            None => false,
            Some(0) => true,
            Some(left) => {
                *left -= 1;
                false
            }
        }
    }
}

pub(super) struct Block {
    pub(super) id: u64,
    len: NonZeroU64,
    phase: u64,
    scene: Scene,
}

impl ArenaBlock for Block {
    fn addr(&self) -> DeviceAddr {
        DeviceAddr(((self.id + 1) << 32) + self.phase)
    }

    fn len_bytes(&self) -> NonZeroU64 {
        self.len
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.scene.assert_unlocked();
        let mut ledger = self.scene.ledger();
        assert!(ledger.live.remove(&self.id).is_some(), "freed twice");
        ledger.events.push(Event::Free { id: self.id });
    }
}

/// A pool and a store over it.
#[derive(Clone)]
pub(super) struct Scene {
    ledger: Arc<Mutex<Ledger>>,
    pub(super) store: BlockStore<Block>,
}

impl Scene {
    pub(super) fn new(capacity: u64) -> Self {
        Self {
            ledger: Arc::new(Mutex::new(Ledger {
                capacity,
                ..Ledger::default()
            })),
            store: BlockStore::new(NonZeroU32::new(2).unwrap()),
        }
    }

    pub(super) fn ledger(&self) -> parking_lot::MutexGuard<'_, Ledger> {
        self.ledger.lock()
    }

    pub(super) fn script(&self, script: Script) {
        self.ledger().script = script;
    }

    /// Events since the last call.
    pub(super) fn events(&self) -> Vec<Event> {
        std::mem::take(&mut self.ledger().events)
    }

    pub(super) fn backing(&self, key: RetainKey) -> PoolBacking<Scene> {
        let budget = TierBudget {
            bytes: u64::MAX,
            retained: self.store.retained(key),
            free: 0,
        };
        PoolBacking::new(self.store.clone(), Arc::new(self.clone()), key, budget)
    }

    pub(super) fn commit(&self, key: RetainKey, bytes: u64) -> Result<Lease<Scene>, CommitError> {
        use crate::BackingAllocator as _;
        self.backing(key).commit(NonZeroU64::new(bytes).unwrap())
    }

    fn assert_unlocked(&self) {
        assert!(
            self.store.is_unlocked(),
            "the pool is called under the store's mutex"
        );
    }
}

impl Pool for Scene {
    type Block = Block;

    fn allocate(&self, bytes: NonZeroU64) -> Result<Block, PoolError> {
        self.assert_unlocked();
        let mut ledger = self.ledger();
        match ledger.script {
            Script::PanicsInAllocations => panic!("scripted"),
            Script::RefusesAllocations => return Err(PoolError::Refused("scripted".into())),
            _ => {}
        }
        let left = ledger.capacity - ledger.live_bytes();
        if bytes.get() > left || ledger.worn_out() {
            return Err(PoolError::OutOfMemory);
        }
        let id = ledger.next;
        ledger.next += 1;
        ledger.live.insert(id, bytes.get());
        ledger.events.push(Event::Allocate {
            id,
            len: bytes.get(),
        });
        let phase = u64::from(ledger.script == Script::Misaligned);
        Ok(Block {
            id,
            len: bytes,
            phase,
            scene: self.clone(),
        })
    }

    fn grant(&self, block: &Block, agents: &[AgentId]) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.assert_unlocked();
        let mut ledger = self.ledger();
        match ledger.script {
            Script::PanicsInGrants => panic!("scripted"),
            Script::RefusesGrants => return Err("scripted".into()),
            _ => {}
        }
        if ledger.worn_out() {
            return Err("worn out".into());
        }
        let (id, agents) = (block.id, agents.to_vec());
        ledger.events.push(Event::Grant { id, agents });
        Ok(())
    }
}
