//! The store against a naive one, over random sequences of windows that go right and wrong.

use std::collections::BTreeMap;

use kr_types::AgentId;
use proptest::prelude::*;

use super::pool::{DEVICE, Event, GPU, OTHER_GPU, OTHER_PINNED, PINNED, Scene};
use crate::{ArenaBlock, Lease, RetainKey};

const KEYS: [RetainKey; 3] = [DEVICE, PINNED, OTHER_PINNED];
const CAPACITY: u64 = 100;
/// Windows without use after which the scene's store lets go.
const IDLE_LIMIT: u32 = 2;

#[derive(Clone, Debug)]
enum Op {
    Commit { key: usize, bytes: u64 },
    Drop { lease: usize },
    Undo { lease: usize },
    Quarantine { lease: usize },
    Observe { lease: usize },
    ReleasePool { key: usize },
    Age { agent: AgentId },
}

fn op() -> impl Strategy<Value = Op> {
    let key = 0..KEYS.len();
    let lease = 0..8usize;
    prop_oneof![
        8 => (key.clone(), 1..60u64).prop_map(|(key, bytes)| Op::Commit { key, bytes }),
        6 => lease.clone().prop_map(|lease| Op::Drop { lease }),
        2 => lease.clone().prop_map(|lease| Op::Undo { lease }),
        1 => lease.clone().prop_map(|lease| Op::Quarantine { lease }),
        2 => lease.prop_map(|lease| Op::Observe { lease }),
        1 => key.prop_map(|key| Op::ReleasePool { key }),
        2 => prop_oneof![Just(GPU), Just(OTHER_GPU)].prop_map(|agent| Op::Age { agent }),
    ]
}

/// A lease as the naive store sees it.
struct Out {
    key: usize,
    len: u64,
    fresh: bool,
    replaced: Option<u64>,
    quarantined: bool,
    lease: Lease<Scene>,
}

#[derive(Default)]
struct Naive {
    /// Length and idle windows of what is retained, by key.
    retained: BTreeMap<usize, (u64, u32)>,
    out: Vec<Out>,
}

impl Naive {
    fn bytes(&self) -> u64 {
        let retained: u64 = self.retained.values().map(|(len, _)| len).sum();
        retained + self.out.iter().map(|out| out.len).sum::<u64>()
    }

    fn give_back(&mut self, key: usize, len: u64) {
        let kept = self.retained.get(&key).map_or(0, |(kept, _)| *kept);
        if len > kept {
            self.retained.insert(key, (len, 0));
        }
    }

    fn commit(&mut self, scene: &Scene, key: usize, bytes: u64) {
        let lease = scene.commit(KEYS[key], bytes);
        let busy = |out: &Out| out.key == key && out.quarantined;
        if self.out.iter().any(busy) {
            assert!(lease.is_err(), "under a key in quarantine");
            return;
        }
        let kept = self.retained.get(&key).map(|(len, _)| *len);
        let fresh = kept.is_none_or(|kept| kept < bytes);
        let len = if fresh { bytes } else { kept.unwrap() };
        if fresh && self.bytes() - kept.unwrap_or(0) + bytes > CAPACITY {
            assert!(lease.is_err(), "more than there is");
            // The key is as it was, but the block is a new one.
            if let Some(kept) = kept {
                self.retained.insert(key, (kept, 0));
            }
            return;
        }
        let lease = lease.unwrap();
        assert_eq!(lease.len_bytes().get(), len);
        self.retained.remove(&key);
        self.out.push(Out {
            key,
            len,
            fresh,
            replaced: kept.filter(|_| fresh),
            quarantined: false,
            lease,
        });
    }

    fn run(&mut self, scene: &Scene, op: &Op) {
        let free = |out: &Vec<Out>, lease: &usize| {
            (!out.is_empty())
                .then(|| lease % out.len())
                .filter(|at| !out[*at].quarantined)
        };
        match op {
            Op::Commit { key, bytes } => self.commit(scene, *key, *bytes),
            Op::Drop { lease } => {
                if let Some(at) = free(&self.out, lease) {
                    let out = self.out.swap_remove(at);
                    drop(out.lease);
                    self.give_back(out.key, out.len);
                }
            }
            Op::Undo { lease } => {
                if let Some(at) = free(&self.out, lease) {
                    let out = self.out.swap_remove(at);
                    let room = CAPACITY - self.bytes();
                    Box::new(out.lease).undo();
                    if !out.fresh {
                        self.give_back(out.key, out.len);
                    } else if let Some(replaced) = out.replaced.filter(|len| *len <= room) {
                        self.give_back(out.key, replaced);
                    }
                }
            }
            Op::Quarantine { lease } => {
                if let Some(at) = free(&self.out, lease) {
                    let out = &mut self.out[at];
                    out.quarantined = true;
                    out.lease.set_quarantined(true);
                }
            }
            Op::Observe { lease } => {
                if !self.out.is_empty() {
                    let at = lease % self.out.len();
                    let out = &mut self.out[at];
                    out.quarantined = false;
                    out.lease.set_quarantined(false);
                }
            }
            Op::ReleasePool { key } => {
                let pool = KEYS[*key].pool;
                self.retained.retain(|key, _| KEYS[*key].pool != pool);
                scene.store.release_pool(pool);
            }
            Op::Age { agent } => {
                for (key, (_, idle)) in &mut self.retained {
                    *idle += u32::from(KEYS[*key].agent == *agent);
                }
                self.retained.retain(|_, (_, idle)| *idle <= IDLE_LIMIT);
                scene.store.age(*agent);
            }
        }
    }

    /// Both stores hold the same, and nothing else is live.
    fn compare(&self, scene: &Scene) {
        for (ix, key) in KEYS.into_iter().enumerate() {
            let kept = self.retained.get(&ix).map_or(0, |(len, _)| *len);
            assert_eq!(scene.store.retained(key), kept, "{key}");
            let quarantined = self.out.iter().any(|out| out.key == ix && out.quarantined);
            assert_eq!(scene.store.is_quarantined(key), quarantined, "{key}");
        }
        assert_eq!(scene.ledger().live_bytes(), self.bytes());
    }

    /// Every lease holds a block of its own, which its agent was granted and no other.
    fn check_grants(&self, events: &[Event]) {
        for out in &self.out {
            // Addresses of the scene's pool tell its blocks apart.
            let id = (out.lease.addr().0 >> 32) - 1;
            let granted: Vec<_> = events
                .iter()
                .filter_map(|event| match event {
                    Event::Grant { id: to, agents } if *to == id => Some(&agents[..]),
                    _ => None,
                })
                .collect();
            assert_eq!(granted, [[KEYS[out.key].agent]], "block {id}");
            let same = |other: &&Out| other.lease.addr() == out.lease.addr();
            assert_eq!(self.out.iter().filter(same).count(), 1, "one owner");
        }
    }
}

proptest! {
    /// The store does what a naive one does: high-water per key, isolation of keys and their grants,
    /// a single owner of each block, and no trace of a commit that failed or was undone.
    #[test]
    fn store_matches_the_naive_one(ops in prop::collection::vec(op(), 1..60)) {
        let scene = Scene::new(CAPACITY);
        let mut naive = Naive::default();
        let mut events = Vec::new();
        for op in &ops {
            naive.run(&scene, op);
            naive.compare(&scene);
            events.extend(scene.events());
            naive.check_grants(&events);
        }
        for mut out in naive.out.drain(..) {
            out.lease.set_quarantined(false);
        }
        scene.store.release_all();
        prop_assert_eq!(scene.ledger().live_bytes(), 0);
    }

    /// Whichever call of the pool fails, alone or with all after it: live blocks are those of the
    /// leases and the store, and a commit that says that it failed holds none.
    #[test]
    fn every_failing_call_leaves_nothing_half_done(
        ops in prop::collection::vec((0..KEYS.len(), 1..40u64, any::<bool>()), 1..20),
        works_for in 0u32..30,
    ) {
        let scene = Scene::new(u64::MAX);
        scene.ledger().works_for = Some(works_for);
        let mut held = Vec::new();
        for (key, bytes, keep) in ops {
            let lease = scene.commit(KEYS[key], bytes);
            if let Ok(lease) = lease {
                prop_assert!(lease.len_bytes().get() >= bytes);
                if keep {
                    held.push(lease);
                }
            }
            let leased: u64 = held.iter().map(|lease| lease.len_bytes().get()).sum();
            let retained: u64 = KEYS.iter().map(|key| scene.store.retained(*key)).sum();
            prop_assert_eq!(scene.ledger().live_bytes(), leased + retained);
        }
        drop(held);
        scene.store.release_all();
        prop_assert_eq!(scene.ledger().live_bytes(), 0);
    }
}
