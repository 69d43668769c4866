//! The runtime's own queue, on which passes run while the application's queue is held.
//!
//! A [`Run`] is one execution of a launch. States: running, then ended; only the queue's thread
//! moves it. Whoever attaches an action with [`Run::then`] gets it called exactly once with the
//! result: by the queue's thread at the end, or at once if the end has come.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use kr_device::host::{Cancel, HostCounters, HostDevice, KernelFault, KernelLaunch};
use parking_lot::{Condvar, Mutex};

type RunResult = Result<HostCounters, KernelFault>;
type Then = Box<dyn FnOnce(RunResult) + Send>;

/// One execution of a launch.
pub(super) struct Run {
    launch: KernelLaunch,
    cancel: Cancel,
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    result: Option<RunResult>,
    then: Option<Then>,
}

impl Run {
    /// Waits for the end for at most `limit`.
    pub(super) fn wait(&self, limit: Duration) -> Option<RunResult> {
        let deadline = Instant::now().checked_add(limit);
        let mut state = self.state.lock();
        while state.result.is_none() {
            match deadline {
                None => self.ended.wait(&mut state),
                Some(deadline) => {
                    if self.ended.wait_until(&mut state, deadline).timed_out() {
                        break;
                    }
                }
            }
        }
        state.result.clone()
    }

    /// Calls `then` with the result, once there is one.
    pub(super) fn then(&self, then: Then) {
        let mut state = self.state.lock();
        match state.result.clone() {
            None => state.then = Some(then),
            Some(result) => {
                drop(state);
                then(result);
            }
        }
    }

    /// Asks the kernel to stop.
    pub(super) fn cancel(&self) {
        self.cancel.cancel();
    }

    fn execute(&self, device: &HostDevice) {
        let result = self.launch.run_until(device, &self.cancel);
        let mut state = self.state.lock();
        state.result = Some(result.clone());
        let then = state.then.take();
        drop(state);
        self.ended.notify_all();
        if let Some(then) = then {
            then(result);
        }
    }
}

/// The queue: a thread that executes runs in order. It ends when the handle is dropped and what was
/// submitted has run.
pub(super) struct OwnQueue {
    device: HostDevice,
    runs: Mutex<Sender<Arc<Run>>>,
}

impl OwnQueue {
    pub(super) fn new(device: HostDevice) -> Self {
        let runs = Mutex::new(start(device.clone()));
        Self { device, runs }
    }

    /// Starts a run and returns without waiting. It works on a copy of the launch's arguments.
    pub(super) fn submit(&self, launch: &KernelLaunch, then: Option<Then>) -> Arc<Run> {
        let run = Arc::new(Run {
            launch: launch.clone(),
            cancel: Cancel::default(),
            state: Mutex::new(State { result: None, then }),
            ended: Condvar::new(),
        });
        // The thread lives as long as its sender, and catches what kernels throw.
        let sent = self.runs.lock().send(run.clone());
        debug_assert!(sent.is_ok(), "the queue's thread has ended");
        run
    }

    /// Leaves the thread to a kernel that does not end, and goes on with a new one.
    pub(super) fn recreate(&self) {
        *self.runs.lock() = start(self.device.clone());
    }
}

fn start(device: HostDevice) -> Sender<Arc<Run>> {
    let (sender, runs) = channel::<Arc<Run>>();
    std::thread::spawn(move || runs.iter().for_each(|run| run.execute(&device)));
    sender
}
