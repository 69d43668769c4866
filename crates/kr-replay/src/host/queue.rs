//! The application's queue: a thread that executes packets in order, and can be held.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use kr_device::host::{HostDevice, KernelLaunch};
use kr_types::QueueId;
use parking_lot::{Condvar, Mutex};

use super::runtime::Inner;
use super::{HostSignal, HostTarget};

/// Packets of one queue that have been written and have not completed.
#[derive(Default)]
pub(super) struct Outstanding {
    count: Mutex<u64>,
    fell: Condvar,
}

impl Outstanding {
    pub(super) fn add(&self) {
        *self.count.lock() += 1;
    }

    pub(super) fn remove(&self) {
        *self.count.lock() -= 1;
        self.fell.notify_all();
    }

    /// Waits until it is zero. False: it is not by `deadline`.
    pub(super) fn wait_zero(&self, deadline: Option<Instant>) -> bool {
        let mut count = self.count.lock();
        while *count > 0 {
            match deadline {
                None => self.fell.wait(&mut count),
                Some(deadline) => {
                    if self.fell.wait_until(&mut count, deadline).timed_out() {
                        break;
                    }
                }
            }
        }
        *count == 0
    }
}

/// A barrier that tells when it is reached, and lets nothing pass until it is opened.
#[derive(Default)]
pub(super) struct Barrier {
    state: Mutex<BarrierState>,
    changed: Condvar,
}

#[derive(Default)]
struct BarrierState {
    reached: bool,
    open: bool,
    on_reach: Option<Box<dyn FnOnce() + Send>>,
}

impl Barrier {
    /// Runs on the queue's thread: everything earlier has completed.
    fn pass(&self) {
        let mut state = self.state.lock();
        state.reached = true;
        let on_reach = state.on_reach.take();
        drop(state);
        self.changed.notify_all();
        if let Some(on_reach) = on_reach {
            on_reach();
        }
        let mut state = self.state.lock();
        while !state.open {
            self.changed.wait(&mut state);
        }
    }

    pub(super) fn wait_reached(&self, limit: Duration) -> bool {
        let mut state = self.state.lock();
        self.changed
            .wait_while_for(&mut state, |state| !state.reached, limit);
        state.reached
    }

    /// Calls `then` once everything earlier has completed, which may be now.
    pub(super) fn when_reached(&self, then: Box<dyn FnOnce() + Send>) {
        let mut state = self.state.lock();
        if state.reached {
            drop(state);
            then();
        } else {
            state.on_reach = Some(then);
        }
    }

    pub(super) fn open(&self) {
        self.state.lock().open = true;
        self.changed.notify_all();
    }
}

enum Packet {
    Kernel(KernelLaunch, HostSignal),
    Barrier(Arc<Barrier>),
}

/// The part of a queue that targets keep alive: launches may outlive the handle.
pub(super) struct QueueShared {
    pub(super) id: QueueId,
    pub(super) outstanding: Arc<Outstanding>,
    packets: Mutex<Sender<Packet>>,
}

impl QueueShared {
    pub(super) fn write_kernel(&self, launch: KernelLaunch, signal: HostSignal) {
        self.write(Packet::Kernel(launch, signal));
    }

    pub(super) fn write_barrier(&self, barrier: Arc<Barrier>) {
        self.write(Packet::Barrier(barrier));
    }

    fn write(&self, packet: Packet) {
        self.outstanding.add();
        // The thread lives as long as its sender, and catches what kernels throw.
        let sent = self.packets.lock().send(packet);
        debug_assert!(sent.is_ok(), "the queue's thread has ended");
    }
}

/// A queue of a [`HostRuntime`](super::HostRuntime): launches run in order, one at a time.
///
/// Dropping it lets what was launched run to its end.
pub struct HostQueue {
    runtime: Arc<Inner>,
    shared: Arc<QueueShared>,
}

impl HostQueue {
    pub(super) fn new(runtime: Arc<Inner>, id: QueueId, outstanding: Arc<Outstanding>) -> Self {
        let (sender, packets) = channel::<Packet>();
        let (device, counts) = (runtime.device.clone(), outstanding.clone());
        std::thread::spawn(move || {
            for packet in packets {
                execute(packet, &device);
                counts.remove();
            }
        });
        let shared = Arc::new(QueueShared {
            id,
            outstanding,
            packets: Mutex::new(sender),
        });
        Self { runtime, shared }
    }

    /// The queue's id.
    pub fn id(&self) -> QueueId {
        self.shared.id
    }

    /// Launches a kernel. It runs after everything launched before on this queue; if an engine is
    /// attached, this call may run it several times before it returns.
    pub fn launch(&self, launch: &KernelLaunch) -> HostSignal {
        let (target, signal) = self.target(launch);
        match self.runtime.interceptor() {
            Some(engine) => engine.intercept(target),
            None => target.forward(),
        }
        signal
    }

    /// The launch as a [`ReplayTarget`](crate::ReplayTarget), for whoever drives an
    /// [`Engine`](crate::Engine) by hand, and the signal that completes when it has run.
    pub fn target(&self, launch: &KernelLaunch) -> (HostTarget, HostSignal) {
        let signal = HostSignal::new();
        let target = HostTarget::new(
            self.runtime.clone(),
            self.shared.clone(),
            launch.clone(),
            signal.clone(),
        );
        (target, signal)
    }

    /// Waits until everything launched so far has completed.
    pub fn synchronize(&self) {
        self.shared.outstanding.wait_zero(None);
    }
}

impl std::fmt::Debug for HostQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HostQueue({})", self.shared.id)
    }
}

fn execute(packet: Packet, device: &HostDevice) {
    match packet {
        Packet::Kernel(launch, signal) => signal.complete(launch.run(device).map(drop)),
        Packet::Barrier(barrier) => barrier.pass(),
    }
}
