//! One window from outside: CONFIG, admission, the agent's lock, and the end.
//!
//! What happens while the agent is ours is in `inside`.
//!
//! Invariants
//! - [`Held`] says at every moment what leaving *now* must do for the application, and does it when
//!   dropped. So the target is left exactly once on every path, also when something here panics.
//! - A step that cannot go on returns [`Stop`]; it never leaves by itself.
//! - [`Observer::finish`] is called once, with records only if every pass is good, and before the
//!   target is left.

use std::sync::Arc;
use std::time::Duration;

use kr_tracker::OpenError;
use kr_types::{DispatchId, Outcome, PassIndex, Reason, RestoreMode, Verified};

use crate::guard::{OfTool, guarded};
use crate::inside::Inside;
use crate::memory::AgentMemory;
use crate::target::{Leave, ReplayTarget};
use crate::{Dispatch, Engine, Observer, PassRecord, WindowReport};

/// Passes whose start no final check can doubt: pass 0 runs on the captured memory itself, pass 1
/// after a restore that looked at all of it.
pub(crate) const ALWAYS_GOOD: u32 = 2;

/// A target with what leaving it now must do.
pub(crate) struct Held<T: ReplayTarget> {
    target: Option<T>,
    pub(crate) how: Leave,
}

impl<T: ReplayTarget> Held<T> {
    pub(crate) fn new(target: T) -> Self {
        Self {
            target: Some(target),
            how: Leave::Forward,
        }
    }

    pub(crate) fn target(&mut self) -> &mut T {
        self.target
            .as_mut()
            .expect("the target is taken only when the guard is dropped")
    }

    pub(crate) fn leave(self) {
        drop(self);
    }
}

impl<T: ReplayTarget> Drop for Held<T> {
    fn drop(&mut self) {
        if let Some(target) = self.target.take()
            && let Err(panic) = guarded(|| target.leave(self.how))
        {
            tracing::error!(panic, how = ?self.how, "leaving a launch panicked");
        }
    }
}

/// Why a window ended without records.
pub(crate) struct Stop {
    outcome: Outcome,
    pub(crate) reason: Reason,
    pub(crate) message: String,
}

impl Stop {
    pub(crate) fn declined(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            outcome: Outcome::Declined,
            reason,
            message: message.into(),
        }
    }

    pub(crate) fn failed(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            outcome: Outcome::Failed,
            reason,
            message: message.into(),
        }
    }
}

/// A dispatch's data of the profiler `O`.
pub(crate) type User<O> = OfTool<<O as Observer>::UserData>;

/// One dispatch that the profiler wants to see.
pub(crate) struct Window<'e, O: Observer, T: ReplayTarget> {
    pub(crate) engine: &'e Engine<O>,
    pub(crate) dispatch: &'e Dispatch,
    /// The data that `configure` left; passes get copies.
    pub(crate) user: User<O>,
    pub(crate) held: Held<T>,
    /// Kept back until the verdict; entry i is pass i.
    pub(crate) records: Vec<OfTool<O::Record>>,
    pub(crate) started: Duration,
    pub(crate) report: WindowReport,
}

impl<'e, O, T> Window<'e, O, T>
where
    O: Observer,
    T: ReplayTarget<Measured = O::Measured>,
{
    pub(crate) fn new(
        engine: &'e Engine<O>,
        id: DispatchId,
        dispatch: &'e Dispatch,
        user: User<O>,
        held: Held<T>,
    ) -> Self {
        Self {
            engine,
            dispatch,
            user,
            held,
            records: Vec::new(),
            started: engine.clock.now(),
            report: WindowReport::new(id, dispatch.clone(), Outcome::Failed),
        }
    }

    /// Runs the window and leaves the target.
    pub(crate) fn run(mut self) -> Outcome {
        let admitted = guarded(|| match self.configure()? {
            true => self.admit().map(|_| true),
            false => Ok(false),
        });
        match admitted.unwrap_or_else(|panic| Err(self.backend_panicked(&panic))) {
            Ok(true) => {}
            Ok(false) => return self.finish_outside(Ok(Outcome::OptedOut)),
            Err(stop) => return self.finish_outside(Err(stop)),
        }
        let engine = self.engine;
        let agent = self.dispatch.agent;
        let waited = engine.clock.now();
        let opened = engine.tracker.open_window(agent, engine.limits.agent());
        self.report.stats.agent_wait = engine.clock.now() - waited;
        let mut tracked = match opened {
            Ok(tracked) => tracked,
            Err(error) => {
                let reason = match error {
                    OpenError::Reentrant { .. } => Reason::Reentrant,
                    OpenError::Held { .. } => Reason::AgentQuarantined,
                    _ => Reason::AgentBusy,
                };
                let stop = Stop::declined(reason, error.to_string());
                return self.finish_outside(Err(stop));
            }
        };
        // Declared after `tracked`, so that the target is left before the agent in any case.
        let mut window = self;
        let result = guarded(|| {
            // Whoever had the agent before us may have changed the answer.
            let memory = window.admit()?;
            Inside::new(&mut window, &*memory, &mut tracked).replay()
        });
        let result = result.unwrap_or_else(|panic| Err(window.backend_panicked(&panic)));
        window.report.stats.parked_bytes = tracked.parked_bytes();
        let outcome = window.finish(result);
        window.held.leave();
        engine.close(tracked);
        outcome
    }

    /// The backend broke its contract, so nothing is known of what it still does on the agent.
    fn backend_panicked(&self, panic: &str) -> Stop {
        let agent = self.dispatch.agent;
        if let Some(memory) = self.engine.agents.get(&agent) {
            memory.give_up();
        }
        let what =
            format!("the backend panicked: {panic}; nothing is replayed on {agent} any more");
        match self.held.how {
            Leave::Deviated => Stop::failed(
                Reason::QueueError,
                format!("{what}; the application's memory may deviate"),
            ),
            _ => Stop::declined(Reason::QueueError, what),
        }
    }

    /// Asks the profiler. `Ok(false)`: it opted out.
    fn configure(&mut self) -> Result<bool, Stop> {
        let (id, user) = (self.report.id, &mut self.user);
        let asked = guarded(|| self.engine.observer.configure(id, self.dispatch, user));
        self.report.stats.configure = self.engine.clock.now() - self.started;
        self.report.plan = asked.map_err(|panic| {
            Stop::declined(
                Reason::ToolPanicked,
                format!("`configure` panicked: {panic}"),
            )
        })?;
        match self.report.plan.total() {
            Some(0) => {
                let what = "the profiler asked for 0 passes; ask for 1 to opt out, or for \
                            PassPlan::OpenEnded to decide after each pass";
                Err(Stop::declined(Reason::BadPlan, what))
            }
            Some(1) => Ok(false),
            _ => Ok(true),
        }
    }

    /// What can be refused without a lock and without touching anything.
    fn admit(&mut self) -> Result<Arc<dyn AgentMemory>, Stop> {
        let (engine, dispatch) = (self.engine, self.dispatch);
        if engine.is_finalizing() {
            return Err(Stop::declined(
                Reason::Finalizing,
                "the process is shutting down",
            ));
        }
        let Some(memory) = engine.agents.get(&dispatch.agent) else {
            let what = format!(
                "{} is unknown: no device for it was given to the engine's builder",
                dispatch.agent
            );
            return Err(Stop::declined(Reason::UntrackedMemory, what));
        };
        if let Some(reason) = engine.refused_kernels.lock().get(&dispatch.kernel) {
            let what = format!(
                "`{}` was declined before with {reason}",
                dispatch.kernel_name
            );
            return Err(Stop::declined(*reason, what));
        }
        let stuck = engine.stuck_queues.lock().get(&dispatch.queue).copied();
        if let Some(reason) = stuck {
            if !self.held.target().queue_is_idle() {
                let what = format!(
                    "{} has not been idle since it ran into {reason}",
                    dispatch.queue
                );
                return Err(Stop::declined(reason, what));
            }
            engine.stuck_queues.lock().remove(&dispatch.queue);
        }
        if memory.is_quarantined() {
            let what = format!(
                "earlier work on {} has not been seen to end",
                dispatch.agent
            );
            return Err(Stop::declined(Reason::AgentQuarantined, what));
        }
        let footprint = engine.tracker.footprint(dispatch.agent);
        if footprint.untracked {
            let what = format!("{} has memory that is not tracked", dispatch.agent);
            return Err(Stop::declined(Reason::UntrackedMemory, what));
        }
        self.check_budget(&**memory, footprint.bytes, footprint.regions)?;
        Ok(memory.clone())
    }

    /// Whether saving that many bytes is within the budget.
    pub(crate) fn check_budget(
        &self,
        memory: &dyn AgentMemory,
        bytes: u64,
        regions: u64,
    ) -> Result<(), Stop> {
        let (needed, budget) = (
            memory.bytes_needed(bytes, regions),
            self.engine.budget_bytes,
        );
        if needed <= budget {
            return Ok(());
        }
        let what = format!(
            "saving {bytes} bytes in {regions} regions takes {needed} bytes, the budget is {budget}"
        );
        Err(Stop::declined(Reason::Budget, what))
    }

    /// Ends a dispatch that never entered the agent: reports, then passes it on.
    fn finish_outside(mut self, result: Result<Outcome, Stop>) -> Outcome {
        let outcome = self.finish(result);
        self.engine.forward(self.dispatch.agent, self.held);
        outcome
    }

    /// Reports the verdict and releases the records, or drops them.
    fn finish(&mut self, result: Result<Outcome, Stop>) -> Outcome {
        let report = &mut self.report;
        let mut records = std::mem::take(&mut self.records);
        match result {
            Ok(outcome) => report.outcome = outcome,
            Err(stop) => {
                records.clear();
                report.outcome = stop.outcome;
                report.reason = Some(stop.reason);
                report.message = Some(stop.message);
            }
        }
        report.stats.total = self.engine.clock.now() - self.started;
        self.engine.counts.add(report.outcome, report.reason);
        log(report);
        let end_only =
            report.outcome == Outcome::Replayed && report.mode == Some(RestoreMode::HashOnce);
        let records = (0..)
            .map(PassIndex)
            .zip(records)
            .map(|(pass, mut record)| PassRecord {
                pass,
                verified: match end_only && pass.0 >= ALWAYS_GOOD {
                    true => Verified::EndOnly,
                    false => Verified::EveryPass,
                },
                record: record.take(),
            });
        let (records, user) = (records.collect(), self.user.take());
        let told = guarded(|| self.engine.observer.finish(report, user, records));
        if let Err(panic) = told {
            let id = report.id.0;
            tracing::error!(id, panic, "`finish` panicked; its records may be lost");
        }
        self.report.outcome
    }
}

/// One line per dispatch, for people; programs read the [`WindowReport`].
fn log(report: &WindowReport) {
    macro_rules! line {
        ($level:ident) => {
            tracing::$level!(
                id = report.id.0,
                agent = report.dispatch.agent.0,
                queue = report.dispatch.queue.0,
                kernel = &*report.dispatch.kernel_name,
                plan = ?report.plan,
                outcome = report.outcome.as_str(),
                reason = report.reason.map(|reason| reason.as_str()),
                // Not `message`: that is the event's own text.
                why = report.message,
                mode = report.mode.map(|mode| mode.as_str()),
                passes = report.passes,
                capped = report.capped,
                regions = report.stats.regions,
                bytes = report.stats.bytes,
                parked_bytes = report.stats.parked_bytes,
                configure_us = micros(report.stats.configure),
                agent_wait_us = micros(report.stats.agent_wait),
                drain_us = micros(report.stats.drain),
                reach_us = micros(report.stats.reach),
                list_us = micros(report.stats.list),
                capture_us = micros(report.stats.capture),
                restore_us = micros(report.stats.passes.iter().map(|p| p.restore).sum()),
                execute_us = micros(report.stats.passes.iter().map(|p| p.execute).sum()),
                callbacks_us = micros(report.stats.passes.iter().map(|p| p.callbacks).sum()),
                verify_us = micros(report.stats.verify),
                put_back_us = micros(report.stats.put_back),
                total_us = micros(report.stats.total),
                "dispatch {}",
                report.outcome
            )
        };
    }
    match report.outcome {
        Outcome::Failed => line!(error),
        Outcome::Declined | Outcome::Repaired => line!(warn),
        _ => line!(debug),
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
