//! A machine without memory: a device and a host with so many bytes, and the pools of both.

use std::collections::BTreeMap;
use std::error::Error;
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::{Arc, Mutex, MutexGuard};

use kr_storage::{ArenaBlock, BlockStore, Pool, PoolBacking, PoolError, RetainKey, TierBudget};
use kr_types::{AgentId, DeviceAddr, PoolId, Tier};

pub(crate) const AGENT: AgentId = AgentId(1);
pub(crate) const DEVICE: RetainKey = RetainKey {
    agent: AGENT,
    pool: PoolId(1),
    tier: Tier::Device,
};
pub(crate) const PINNED: RetainKey = RetainKey {
    agent: AGENT,
    pool: PoolId(2),
    tier: Tier::PinnedHost,
};

#[derive(Default)]
pub(crate) struct State {
    /// Bytes that each pool has in all.
    capacity: BTreeMap<PoolId, u64>,
    /// Pool and length of each live block.
    live: BTreeMap<u64, (PoolId, u64)>,
    next: u64,
    pub(crate) allocations: u64,
    /// Calls so far, and which of them fail.
    pub(crate) calls: u64,
    pub(crate) fails: Option<Fails>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Fails {
    /// Only this call, from 0.
    Nth(u64),
    /// This call and all later ones.
    From(u64),
}

impl State {
    pub(crate) fn live(&self, pool: PoolId) -> u64 {
        let of = self.live.values().filter(|(of, _)| *of == pool);
        of.map(|(_, len)| len).sum()
    }

    pub(crate) fn free(&self, pool: PoolId) -> u64 {
        self.capacity[&pool] - self.live(pool)
    }

    fn call_fails(&mut self) -> bool {
        let call = self.calls;
        self.calls += 1;
        match self.fails {
            None => false,
            Some(Fails::Nth(nth)) => call == nth,
            Some(Fails::From(nth)) => call >= nth,
        }
    }
}

/// One pool of the machine.
#[derive(Clone)]
pub(crate) struct MachinePool {
    pool: PoolId,
    state: Arc<Mutex<State>>,
}

pub(crate) struct Block {
    id: u64,
    len: NonZeroU64,
    state: Arc<Mutex<State>>,
}

impl ArenaBlock for Block {
    fn addr(&self) -> DeviceAddr {
        DeviceAddr((self.id + 1) << 40)
    }

    fn len_bytes(&self) -> NonZeroU64 {
        self.len
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let freed = self.state.lock().unwrap().live.remove(&self.id);
        assert!(freed.is_some(), "freed twice");
    }
}

impl Pool for MachinePool {
    type Block = Block;

    fn allocate(&self, len: NonZeroU64) -> Result<Block, PoolError> {
        let mut state = self.state.lock().unwrap();
        if state.call_fails() || len.get() > state.free(self.pool) {
            return Err(PoolError::OutOfMemory);
        }
        let id = state.next;
        state.next += 1;
        state.allocations += 1;
        state.live.insert(id, (self.pool, len.get()));
        Ok(Block {
            id,
            len,
            state: self.state.clone(),
        })
    }

    fn grant(&self, _: &Block, _: &[AgentId]) -> Result<(), Box<dyn Error + Send + Sync>> {
        let mut state = self.state.lock().unwrap();
        if state.call_fails() {
            return Err("scripted".into());
        }
        Ok(())
    }
}

pub(crate) struct Machine {
    pub(crate) store: BlockStore<Block>,
    state: Arc<Mutex<State>>,
}

impl Machine {
    pub(crate) fn new(device: u64, host: u64) -> Self {
        let state = State {
            capacity: BTreeMap::from([(DEVICE.pool, device), (PINNED.pool, host)]),
            ..State::default()
        };
        Self {
            store: BlockStore::new(NonZeroU32::new(1000).unwrap()),
            state: Arc::new(Mutex::new(state)),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(crate) fn backing(&self, key: RetainKey, budget: TierBudget) -> PoolBacking<MachinePool> {
        let pool = MachinePool {
            pool: key.pool,
            state: self.state.clone(),
        };
        PoolBacking::new(self.store.clone(), Arc::new(pool), key, budget)
    }

    /// What a decline must not change: per key what is retained and what is free.
    pub(crate) fn snapshot(&self) -> [(u64, u64); 2] {
        [DEVICE, PINNED].map(|key| {
            let free = self.state().free(key.pool);
            (self.store.retained(key), free)
        })
    }
}
