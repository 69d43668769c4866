//! One launch of a host queue, as the engine sees it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kr_device::host::{HostCounters, KernelFault, KernelLaunch};
use kr_tracker::Tracker;
use kr_types::{DispatchId, KernelId, PassIndex, Reason};

use super::HostSignal;
use super::own_queue::Run;
use super::queue::{Barrier, QueueShared};
use super::runtime::Inner;
use crate::{Dispatch, Leave, ParkedFree, ReplayTarget, TargetError};

/// A launch of a [`HostQueue`](super::HostQueue) that has been intercepted and not yet passed on.
pub struct HostTarget {
    runtime: Arc<Inner>,
    queue: Arc<QueueShared>,
    dispatch: Dispatch,
    launch: KernelLaunch,
    signal: HostSignal,
    barrier: Option<Arc<Barrier>>,
    run: Option<Arc<Run>>,
    fault: Option<KernelFault>,
    left: bool,
}

impl HostTarget {
    pub(super) fn new(
        runtime: Arc<Inner>,
        queue: Arc<QueueShared>,
        launch: KernelLaunch,
        signal: HostSignal,
    ) -> Self {
        let name = launch.kernel.name().clone();
        let dispatch = Dispatch {
            agent: runtime.agent(),
            queue: queue.id,
            kernel: KernelId(launch.kernel.id()),
            kernel_name: name,
            grid: launch.grid,
            workgroup: [1; 3],
            private_segment_bytes: 0,
            group_segment_bytes: 0,
            kernarg: launch.kernarg.as_slice().into(),
        };
        Self {
            runtime,
            queue,
            dispatch,
            launch,
            signal,
            barrier: None,
            run: None,
            fault: None,
            left: false,
        }
    }

    /// What is dispatched.
    pub fn dispatch(&self) -> &Dispatch {
        &self.dispatch
    }

    /// The inventory of the runtime that the launch goes to.
    pub(super) fn tracker(&self) -> &Arc<Tracker<ParkedFree>> {
        &self.runtime.tracker
    }

    /// Passes the launch on to its queue, as dropping it does. Waits while another thread has a
    /// window open on the agent: a restore would undo what the launch does.
    pub fn forward(self) {
        drop(self);
    }

    fn write(&mut self) {
        self.left = true;
        let _beside = self.runtime.beside();
        self.queue
            .write_kernel(self.launch.clone(), self.signal.clone());
    }

    /// What completes the application's launch and opens its queue.
    fn completion(&mut self) -> impl FnOnce(Result<(), KernelFault>) + Send + 'static + use<> {
        let signal = self.signal.clone();
        let barrier = self.barrier.take();
        move |result| {
            signal.complete(result);
            if let Some(barrier) = barrier {
                barrier.open();
            }
        }
    }

    /// As [`completion`](Self::completion), after a run on the runtime's own queue, which counts as
    /// outstanding until then.
    fn completion_of_run(
        &mut self,
    ) -> Box<dyn FnOnce(Result<HostCounters, KernelFault>) + Send + 'static> {
        let complete = self.completion();
        let own = self.runtime.own_outstanding.clone();
        own.add();
        Box::new(move |result| {
            complete(result.map(drop));
            own.remove();
        })
    }
}

impl Drop for HostTarget {
    /// A launch that nobody passed on still runs.
    fn drop(&mut self) {
        if !self.left {
            self.write();
        }
    }
}

impl ReplayTarget for HostTarget {
    type Measured = HostCounters;

    fn queue_is_idle(&self) -> bool {
        self.queue.outstanding.wait_zero(Some(Instant::now()))
    }

    fn drain(&mut self, limit: Duration) -> Result<bool, TargetError> {
        let deadline = Instant::now().checked_add(limit);
        let others = self.runtime.other_queues(self.queue.id);
        Ok(others.iter().all(|queue| queue.wait_zero(deadline)))
    }

    fn hold(&mut self) -> Result<(), TargetError> {
        let barrier = Arc::new(Barrier::default());
        self.queue.write_barrier(barrier.clone());
        self.barrier = Some(barrier);
        Ok(())
    }

    fn reach(&mut self, limit: Duration) -> Result<bool, TargetError> {
        Ok(self
            .barrier
            .as_ref()
            .is_some_and(|barrier| barrier.wait_reached(limit)))
    }

    fn start_pass(&mut self, _: DispatchId, _: PassIndex) -> Result<(), TargetError> {
        self.run = Some(self.runtime.own_queue.submit(&self.launch, None));
        Ok(())
    }

    fn wait_pass(&mut self, limit: Duration) -> Result<Option<HostCounters>, TargetError> {
        match self.run.as_ref().and_then(|run| run.wait(limit)) {
            None => Ok(None),
            Some(Ok(counters)) => Ok(Some(counters)),
            Some(Err(fault)) => {
                let message = format!("kernel `{}`: {fault}", self.dispatch.kernel_name);
                self.fault = Some(fault);
                Err(TargetError::new(Reason::QueueError, message))
            }
        }
    }

    fn cancel_pass(&mut self, limit: Duration) -> bool {
        let Some(run) = &self.run else {
            return true;
        };
        run.cancel();
        let ended = run.wait(limit).is_some();
        if !ended {
            // It counts as work on the agent for as long as it goes on.
            let own = self.runtime.own_outstanding.clone();
            own.add();
            run.then(Box::new(move |_| own.remove()));
            self.runtime.own_queue.recreate();
        }
        ended
    }

    fn leave(mut self, how: Leave) {
        self.left = true;
        match how {
            Leave::Forward => self.write(),
            Leave::RunOnce => {
                let barrier = self.barrier.clone();
                let then = self.completion_of_run();
                let (runtime, launch) = (self.runtime.clone(), self.launch.clone());
                let run_once = move || drop(runtime.own_queue.submit(&launch, Some(then)));
                match barrier {
                    Some(barrier) => barrier.when_reached(Box::new(run_once)),
                    None => run_once(),
                }
            }
            Leave::Adopt => {
                let then = self.completion_of_run();
                match self.run.take() {
                    Some(run) => run.then(then),
                    None => then(Ok(HostCounters::default())),
                }
            }
            Leave::Fault => {
                let fault = self.fault.take();
                self.completion()(fault.map_or(Ok(()), Err));
            }
            Leave::Complete | Leave::Deviated => self.completion()(Ok(())),
        }
    }
}
