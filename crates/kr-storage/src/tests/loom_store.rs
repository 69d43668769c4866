//! Models of the store: two windows and a release on one key.

use std::error::Error;
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use kr_types::{AgentId, DeviceAddr, PoolId, Tier};
use loom::thread;

use crate::{ArenaBlock, BackingAllocator, BlockStore, Pool, PoolBacking, PoolError, RetainKey};

const KEY: RetainKey = RetainKey {
    agent: AgentId(1),
    pool: PoolId(2),
    tier: Tier::Device,
};

/// Runs of the model, outside what it explores.
static EXECUTIONS: AtomicUsize = AtomicUsize::new(0);

/// What the pool did. Plain counts: the model checker need not see them.
#[derive(Default)]
struct Counts {
    made: AtomicU64,
    freed: AtomicU64,
}

struct Counted(std::sync::Arc<Counts>);

struct Block {
    id: u64,
    len: NonZeroU64,
    counts: std::sync::Arc<Counts>,
}

impl ArenaBlock for Block {
    fn addr(&self) -> DeviceAddr {
        DeviceAddr((self.id + 1) << 32)
    }

    fn len_bytes(&self) -> NonZeroU64 {
        self.len
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.counts.freed.fetch_add(1, Relaxed);
    }
}

impl Pool for Counted {
    type Block = Block;

    fn allocate(&self, len: NonZeroU64) -> Result<Block, PoolError> {
        let id = self.0.made.fetch_add(1, Relaxed);
        let counts = self.0.clone();
        Ok(Block { id, len, counts })
    }

    fn grant(&self, _: &Block, _: &[AgentId]) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(())
    }
}

/// However windows and a release on one key meet, no block has two holders, at most the largest is
/// retained, and in the end each was freed once.
#[test]
fn loom_windows_and_a_release_share_a_key() {
    EXECUTIONS.store(0, Relaxed);
    loom::model(|| {
        EXECUTIONS.fetch_add(1, Relaxed);
        let counts = std::sync::Arc::new(Counts::default());
        let pool = std::sync::Arc::new(Counted(counts.clone()));
        let store = BlockStore::new(NonZeroU32::MIN);
        let window = |bytes: u64| {
            let (store, pool) = (store.clone(), pool.clone());
            move || {
                let mut backing = PoolBacking::new(store, pool, KEY, Default::default());
                let lease = backing.commit(NonZeroU64::new(bytes).unwrap()).unwrap();
                assert!(lease.len_bytes().get() >= bytes);
                let addr = lease.addr();
                thread::yield_now();
                drop(lease);
                addr
            }
        };
        let others = [thread::spawn(window(1)), thread::spawn(window(2))];
        let released = store.release_pool(KEY.pool);
        assert!(released <= 2);
        for other in others {
            other.join().unwrap();
        }
        let live = counts.made.load(Relaxed) - counts.freed.load(Relaxed);
        let retained = store.retained(KEY);
        assert_eq!(
            live,
            u64::from(retained > 0),
            "one block is retained, or none"
        );
        assert!(retained == 2 || released > 0, "the larger one wins");
        store.release_all();
        assert_eq!(counts.made.load(Relaxed), counts.freed.load(Relaxed));
    });
    println!(
        "loom windows and a release share a key: {} executions",
        EXECUTIONS.load(Relaxed)
    );
}
