//! How every model is run, and what the models share.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use kr_types::{AgentId, DeviceAddr, MemoryClass, Region};
use loom::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use crate::{Freed, Tracker, TrackerConfig, Window};

pub(super) const A: AgentId = AgentId(1);
pub(super) const B: AgentId = AgentId(2);

/// What every model may take; one that is cut short proves nothing, so that is a failure.
const TIME: Duration = Duration::from_secs(60);

/// A limit that passes only when [`expire`] is called.
pub(super) const LIMIT: Duration = Duration::from_secs(1);

/// Runs `model` under every schedule with at most three preemptions, and says how many those were.
pub(super) fn check(name: &str, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.max_branches = 10_000;
    builder.max_duration = Some(TIME);
    // Of std, so that counting is no step of the model.
    let executions = std::sync::Arc::new(AtomicU64::new(0));
    let count = executions.clone();
    let start = Instant::now();
    builder.check(move || {
        count.fetch_add(1, Relaxed);
        model();
    });
    let executions = executions.load(Relaxed);
    println!("loom {name}: {executions} executions");
    assert!(start.elapsed() < TIME, "{name} was cut short");
    assert!(executions > 1, "{name} has nothing to interleave");
}

/// The limit of everyone who waits for `agent` passes now.
pub(super) fn expire(tracker: &Tracker<usize>, agent: AgentId) {
    tracker.gate(agent).expire();
}

pub(super) fn tracker() -> loom::sync::Arc<Tracker<usize>> {
    loom::sync::Arc::new(Tracker::new(TrackerConfig::default()))
}

pub(super) fn open(tracker: &Tracker<usize>, agent: AgentId) -> Window<'_, usize> {
    tracker
        .open_window(agent, LIMIT)
        .expect("the limit does not pass and no window of this thread is open")
}

pub(super) fn vram(tracker: &Tracker<usize>, at: usize) -> Region {
    tracker
        .record(A, addr(at), 16, MemoryClass::Vram)
        .expect("the address is free")
        .expect("the tracker is on")
}

pub(super) fn addr(at: usize) -> DeviceAddr {
    DeviceAddr(0x1000 * (at as u64 + 1))
}

/// The memory behind the inventory: `N` addresses, and how often each was really freed.
pub(super) struct Memory<const N: usize>([AtomicUsize; N]);

impl<const N: usize> Memory<N> {
    pub(super) fn new() -> Self {
        Self(std::array::from_fn(|_| AtomicUsize::new(0)))
    }

    /// What a backend's hook does; whether the memory is really free now.
    pub(super) fn free(&self, tracker: &Tracker<usize>, at: usize) -> bool {
        match tracker.free(addr(at), at) {
            Freed::Release(release) => {
                self.really_free(release.into_token());
                true
            }
            Freed::Parked => false,
            other => panic!("the address is tracked: {other:?}"),
        }
    }

    pub(super) fn really_free(&self, at: usize) {
        self.0[at].fetch_add(1, SeqCst);
    }

    pub(super) fn frees(&self, at: usize) -> usize {
        self.0[at].load(SeqCst)
    }
}

/// Fails if a window and anyone else are inside together.
pub(super) struct Room(AtomicUsize);

impl Room {
    const WINDOW: usize = 100;

    pub(super) fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    pub(super) fn dispatch(&self) {
        assert!(self.0.fetch_add(1, SeqCst) < Self::WINDOW);
        self.0.fetch_sub(1, SeqCst);
    }

    pub(super) fn window(&self) {
        assert_eq!(self.0.swap(Self::WINDOW, SeqCst), 0);
        assert_eq!(self.0.swap(0, SeqCst), Self::WINDOW);
    }
}
