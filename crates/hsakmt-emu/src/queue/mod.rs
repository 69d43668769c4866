//! User-mode queues: a thread for each, which takes packets until it is told to pause or to stop.
//!
//! States of a queue, and who changes them:
//! - *running*: its thread takes packets. Made so by creation and by [`Queue::resume`].
//! - *paused*: its thread waits. [`Queue::pause`] returns once this is so; a kernel that runs is cut off between two
//!   instructions, its waves are discarded, and the queue can't be resumed.
//! - *stopped*: its thread is gone. Only dropping the queue does that.
//!
//! A queue that met an error stays running and takes no packets: it looks at nothing until it is paused or stopped.
//!
//! A thread for each, and not one for all, because kernels may wait for each other across queues.
//!
//! Not here: what packets mean (`aql`, `sdma`).

mod aql;
mod blit;
#[allow(
    unsafe_code,
    reason = "meets the contract of `host`, for a page of its own"
)]
mod doorbell;
mod pm4;
mod problem;
mod sdma;
mod signal;
#[cfg(test)]
mod tests;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::abi::{QueueResource, queue_type};
use crate::agent::Agent;
use crate::error::Error;
use crate::log;
use aql::Aql;
use sdma::Sdma;

/// What became of a look at a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// A packet was taken.
    Taken,
    /// There is no packet, or the next one waits for something.
    Waiting,
    /// The queue takes no packets any more.
    Halted,
}

/// What takes packets.
trait Engine: Send {
    /// Looks at the queue once. Ends soon after `cancel` is set.
    fn step(&mut self, cancel: &AtomicBool) -> Step;

    /// Called when there is nothing to do for a while: nothing may be held on to.
    fn rest(&mut self);

    /// The engine panicked, which is a bug; whoever waits for the queue should hear of it.
    fn panicked(&mut self);
}

/// A queue as its creator asked for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub(crate) id: u64,
    pub(crate) kind: u32,
    pub(crate) ring: u64,
    pub(crate) ring_bytes: u64,
    /// The event that exceptions raise.
    pub(crate) event: Option<u32>,
    pub(crate) resource: QueueResource,
}

#[derive(Debug, Default)]
struct State {
    pause: bool,
    stop: bool,
    /// The thread waits for `pause` to end.
    paused: bool,
    /// A packet was cut off, or an error met.
    halted: bool,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    cancel: AtomicBool,
}

/// A queue. Dropping it stops its thread.
#[derive(Debug)]
pub(crate) struct Queue {
    id: u64,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Queue {
    /// Starts a queue on an agent, and says where its doorbell and indices are.
    pub(crate) fn new(
        agent: Arc<Agent>,
        request: &Request,
    ) -> Result<(Self, QueueResource), Error> {
        let (mut engine, resource): (Box<dyn Engine>, _) = match request.kind {
            queue_type::COMPUTE_AQL => {
                let (aql, resource) = Aql::new(agent, request)?;
                (Box::new(aql), resource)
            }
            queue_type::SDMA | queue_type::SDMA_XGMI => {
                let (sdma, resource) = Sdma::new(agent, request)?;
                (Box::new(sdma), resource)
            }
            kind => {
                return Err(Error::Argument {
                    what: "type of a queue",
                    value: kind.into(),
                    want: "2 or 5 (SDMA) or 21 (AQL)",
                });
            }
        };
        let shared = Arc::new(Shared::default());
        let thread = std::thread::Builder::new()
            .name(format!("emulated queue {}", request.id))
            .spawn({
                let shared = shared.clone();
                move || {
                    if catch_unwind(AssertUnwindSafe(|| shared.run(&mut *engine))).is_err() {
                        log::error!("a queue's thread panicked, the queue is dead");
                        engine.panicked();
                        shared.state.lock().halted = true;
                        shared.wait_for_stop();
                    }
                }
            })
            .map_err(|source| Error::Host {
                what: "a thread for a queue",
                source,
            })?;
        Ok((
            Self {
                id: request.id,
                shared,
                thread: Some(thread),
            },
            resource,
        ))
    }

    /// Pauses the queue and returns once its thread takes no packets.
    pub(crate) fn pause(&self) {
        let mut state = self.shared.state.lock();
        state.pause = true;
        self.shared.cancel.store(true, Ordering::Relaxed);
        self.shared.changed.notify_all();
        while !state.paused {
            self.shared.changed.wait(&mut state);
        }
    }

    /// Lets a paused queue go on. A running one is left alone.
    pub(crate) fn resume(&self) -> Result<(), Error> {
        let mut state = self.shared.state.lock();
        if state.pause && state.halted {
            return Err(Error::QueueStopped(self.id));
        }
        state.pause = false;
        self.shared.cancel.store(false, Ordering::Relaxed);
        self.shared.changed.notify_all();
        Ok(())
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.shared.state.lock().stop = true;
        self.shared.cancel.store(true, Ordering::Relaxed);
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // It catches its own panics.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn run(&self, engine: &mut dyn Engine) {
        let mut idle = 0u32;
        while self.may_run() {
            match engine.step(&self.cancel) {
                Step::Taken => idle = 0,
                Step::Waiting => {
                    // A doorbell can't wake anybody: it is a plain store. So look often at first, then less and less.
                    idle = idle.saturating_add(1);
                    match idle {
                        0..200 => std::thread::yield_now(),
                        200 => engine.rest(),
                        201..2000 => self.nap(Duration::from_micros(20)),
                        2000..10_000 => self.nap(Duration::from_micros(200)),
                        _ => self.nap(Duration::from_millis(1)),
                    }
                }
                Step::Halted => {
                    engine.rest();
                    let mut state = self.state.lock();
                    state.halted = true;
                    while !state.pause && !state.stop {
                        self.changed.wait(&mut state);
                    }
                }
            }
        }
        engine.rest();
    }

    /// Waits while the queue is paused; false once it is to stop.
    fn may_run(&self) -> bool {
        let mut state = self.state.lock();
        while state.pause && !state.stop {
            state.paused = true;
            self.changed.notify_all();
            self.changed.wait(&mut state);
        }
        state.paused = false;
        !state.stop
    }

    fn wait_for_stop(&self) {
        while self.may_run() {
            self.nap(Duration::from_millis(100));
        }
    }

    /// Sleeps, unless the queue is to pause or stop.
    fn nap(&self, time: Duration) {
        let mut state = self.state.lock();
        if !state.pause && !state.stop {
            self.changed.wait_for(&mut state, time);
        }
    }
}
