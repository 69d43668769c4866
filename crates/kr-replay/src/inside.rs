//! One window from inside: what happens while the agent is ours.
//!
//! Drain, hold and reach, capture, passes with a restore before each but the first, verdict.
//!
//! Invariants
//! - Memory is the input when a pass starts: it was just captured, or just put back in full.
//! - `held.how` is set right before and right after everything that changes what leaving must do.
//! - After a restore that failed no pass runs; the snapshot is gone, which the type sees to.

use std::time::Duration;

use kr_blit::Verdict;
use kr_policy::Facts;
use kr_types::{Outcome, PassIndex, Reason, Region, RestoreMode};

use crate::guard::{OfTool, guarded};
use crate::memory::{AgentMemory, NoSnapshot, NotRestored, Snapshot};
use crate::target::{Leave, ReplayTarget, TargetError};
use crate::window::{ALWAYS_GOOD, Stop, User, Window};
use crate::{Observer, ParkedFree, PassContext, PassPlan, PassStats};

/// Whether another pass follows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Pass,
    Last,
}

/// A window that has entered its agent.
pub(crate) struct Inside<'w, 'e, O: Observer, T: ReplayTarget> {
    window: &'w mut Window<'e, O, T>,
    memory: &'w dyn AgentMemory,
    tracked: &'w mut kr_tracker::Window<'e, ParkedFree>,
    /// Time of pass 0, which sets the limit of later ones.
    first_pass: Duration,
    /// The last restore relied on a list, and whether that was right shows in the final check only.
    by_list: bool,
}

impl<'w, 'e, O, T> Inside<'w, 'e, O, T>
where
    O: Observer,
    T: ReplayTarget<Measured = O::Measured>,
{
    pub(crate) fn new(
        window: &'w mut Window<'e, O, T>,
        memory: &'w dyn AgentMemory,
        tracked: &'w mut kr_tracker::Window<'e, ParkedFree>,
    ) -> Self {
        Self {
            window,
            memory,
            tracked,
            first_pass: Duration::ZERO,
            by_list: false,
        }
    }

    /// Runs all passes. On `Ok` the records are good.
    pub(crate) fn replay(mut self) -> Result<Outcome, Stop> {
        self.enter()?;
        let mut snapshot = self.capture()?;
        let mode = self.choose_mode()?;
        let mut pass = PassIndex::FIRST;
        loop {
            let user;
            (snapshot, user) = self.run_pass(pass, snapshot)?;
            match self.after_pass(pass, user) {
                Ok(Next::Pass) => {}
                Ok(Next::Last) => break,
                Err(stop) => return Err(self.stop_unchecked(stop, snapshot)),
            }
            pass = pass.next();
            snapshot = self.restore(pass, mode, snapshot)?;
        }
        self.verdict(snapshot)
    }

    /// Drains the agent's other queues, then holds this one and waits for what came before.
    fn enter(&mut self) -> Result<(), Stop> {
        let limits = self.window.engine.limits;
        let (agent, queue) = (self.window.dispatch.agent, self.window.dispatch.queue);

        let start = self.now();
        let drained = self.window.held.target().drain(limits.drain);
        self.window.report.stats.drain = self.now() - start;
        if !drained.map_err(declined)? {
            let what = format!("other queues of {agent} had work after {:?}", limits.drain);
            return Err(self.stuck(Reason::DrainTimeout, what));
        }

        let start = self.now();
        let held = &mut self.window.held;
        let reached = held.target().hold().and_then(|()| {
            held.how = Leave::RunOnce;
            held.target().reach(limits.reach)
        });
        self.window.report.stats.reach = self.now() - start;
        if !reached.map_err(declined)? {
            let what = format!(
                "earlier work on {queue} had not ended after {:?}",
                limits.reach
            );
            return Err(self.stuck(Reason::ReachTimeout, what));
        }
        Ok(())
    }

    /// Declines, and declines this queue from now on until it has been idle.
    fn stuck(&self, reason: Reason, what: String) -> Stop {
        let queue = self.window.dispatch.queue;
        self.window.engine.stuck_queues.lock().insert(queue, reason);
        Stop::declined(reason, what)
    }

    fn capture(&mut self) -> Result<Box<dyn Snapshot>, Stop> {
        let start = self.now();
        let regions = self.tracked.capture_list().regions;
        let listed = self.now();
        let bytes = regions
            .iter()
            .map(|r| r.len_bytes().get())
            .fold(0, u64::saturating_add);
        // Memory may have been allocated since admission looked.
        self.window
            .check_budget(self.memory, bytes, regions.len() as u64)?;
        let limit = self.window.engine.limits.capture;
        let kernarg = self.window.dispatch.kernarg.clone();
        // SAFETY: the window is open, drained, held and reached, and no pass runs; what the tracker
        // lists is the promise made to the engine's builder.
        let captured = unsafe { self.memory.capture(&regions, &kernarg, limit) };
        let ended = self.now();
        let stats = &mut self.window.report.stats;
        (stats.regions, stats.bytes) = (regions.len() as u64, bytes);
        (stats.list, stats.capture) = (listed - start, ended - listed);
        captured.map_err(|error| match error {
            NoSnapshot::Place(what) => Stop::declined(Reason::PlanFailed, what),
            NoSnapshot::Capture(what) => Stop::declined(Reason::CaptureFailed, what),
        })
    }

    fn choose_mode(&mut self) -> Result<RestoreMode, Stop> {
        let facts = Facts {
            kernel: self.window.dispatch.kernel,
            passes: self.window.report.plan.total(),
            live_bytes: self.window.report.stats.bytes,
        };
        let mode = guarded(|| self.window.engine.policy.choose(&facts)).map_err(|panic| {
            let what = format!("the restore policy panicked: {panic}");
            Stop::declined(Reason::ToolPanicked, what)
        })?;
        let mode = match self.memory.supports(mode) {
            true => mode,
            false => RestoreMode::Full,
        };
        self.window.report.mode = Some(mode);
        Ok(mode)
    }

    /// Runs one pass and keeps its record. Takes the snapshot since a pass that goes wrong may need
    /// it, for good.
    fn run_pass(
        &mut self,
        pass: PassIndex,
        snapshot: Box<dyn Snapshot>,
    ) -> Result<(Box<dyn Snapshot>, User<O>), Stop> {
        let limits = &self.window.engine.limits;
        let limit = match pass {
            PassIndex::FIRST => limits.first_pass,
            _ => limits.later_pass(self.first_pass),
        };
        let (mut user, submitted) = match self.start_pass(pass) {
            Ok(started) => started,
            Err(stop) => return Err(self.stop_unchecked(stop, snapshot)),
        };
        let ended = self.window.held.target().wait_pass(limit);
        let executed = self.now();
        self.pass_stats(pass).execute = executed - submitted;
        let measured = match ended {
            Ok(Some(measured)) => measured,
            Ok(None) => return Err(self.pass_timeout(pass, limit, snapshot)),
            Err(error) => return Err(self.pass_error(pass, error, snapshot)),
        };
        self.window.held.how = Leave::Complete;
        self.window.report.passes += 1;
        if pass == PassIndex::FIRST {
            self.first_pass = executed - submitted;
        }

        match self.exit_pass(pass, &mut user, measured) {
            Ok(()) => Ok((snapshot, user)),
            Err(stop) => Err(self.stop_unchecked(stop, snapshot)),
        }
    }

    /// Tells the profiler, then starts the pass; says when.
    fn start_pass(&mut self, pass: PassIndex) -> Result<(User<O>, Duration), Stop> {
        let user = self.call("pass_enter", pass, |observer, context, seed| {
            let mut user = OfTool::new(seed.clone());
            observer.pass_enter(context, &mut user);
            user
        })?;
        // Before the pass starts: if it went wrong, memory could not be put back over that work.
        self.undisturbed()?;
        let submitted = self.now();
        let id = self.window.report.id;
        let target = self.window.held.target();
        target.start_pass(id, pass).map_err(declined)?;
        self.window.held.how = Leave::Adopt;
        Ok((user, submitted))
    }

    /// Tells the profiler that the pass has ended, and keeps what it returns.
    fn exit_pass(
        &mut self,
        pass: PassIndex,
        user: &mut O::UserData,
        measured: O::Measured,
    ) -> Result<(), Stop> {
        let record = self.call("pass_exit", pass, |observer, context, _| {
            OfTool::new(observer.pass_exit(context, user, measured))
        })?;
        self.window.records.push(record);
        Ok(())
    }

    /// Calls the profiler on behalf of a pass, with the data that `configure` left.
    fn call<R>(
        &mut self,
        name: &str,
        pass: PassIndex,
        callback: impl FnOnce(&O, &PassContext<'_>, &O::UserData) -> R,
    ) -> Result<R, Stop> {
        let context = PassContext {
            id: self.window.report.id,
            dispatch: self.window.dispatch,
            pass,
            total: self.window.report.plan.total(),
        };
        let start = self.now();
        let observer = &self.window.engine.observer;
        let answer = guarded(|| callback(observer, &context, &self.window.user));
        let took = self.now() - start;
        self.pass_stats(pass).callbacks += took;
        answer.map_err(|panic| {
            let what = format!("`{name}` of {pass} panicked: {panic}");
            Stop::declined(Reason::ToolPanicked, what)
        })
    }

    /// Decides whether another pass follows, and whether the window may go on at all.
    fn after_pass(&mut self, pass: PassIndex, mut user: User<O>) -> Result<Next, Stop> {
        let engine = self.window.engine;
        let executed = pass.0.saturating_add(1);
        let plan = self.window.report.plan;
        let next = if plan.total() == Some(executed) {
            Next::Last
        } else if matches!(plan, PassPlan::Exactly(_)) {
            Next::Pass
        } else {
            match self.call("wants_another", pass, |observer, context, _| {
                observer.wants_another(context, &mut user)
            })? {
                true => self.within_caps(executed),
                false => Next::Last,
            }
        };
        self.undisturbed()?;
        if next == Next::Pass {
            // From here on memory is going to be put back, which must not happen any more if ...
            if self.tracked.parked_over_bound() {
                let what = format!(
                    "{} bytes were freed during the window, more than may be kept back",
                    self.tracked.parked_bytes()
                );
                return Err(Stop::declined(Reason::Budget, what));
            }
            if engine.is_finalizing() {
                return Err(Stop::declined(
                    Reason::Finalizing,
                    "the process is shutting down",
                ));
            }
        }
        Ok(next)
    }

    /// Ends an open-ended loop that has gone on for too long.
    fn within_caps(&mut self, executed: u32) -> Next {
        let limits = &self.window.engine.limits;
        let open_ended = self.window.report.plan == PassPlan::OpenEnded;
        let time = self.now() - self.window.started;
        if open_ended && (executed >= limits.open_ended_passes || time >= limits.open_ended_time) {
            self.window.report.capped = true;
            return Next::Last;
        }
        Next::Pass
    }

    /// Stops the window if memory must not be put back any more: work entered the agent from inside
    /// the window, which a restore would undo and beside which the pass was not alone; or a free was
    /// missed, so that not all memory is what was captured.
    fn undisturbed(&self) -> Result<(), Stop> {
        let agent = self.window.dispatch.agent;
        if self.tracked.is_reentered() {
            let what =
                format!("a callback of the profiler launched work on {agent} during the window");
            return Err(Stop::declined(Reason::Reentrant, what));
        }
        if self.window.engine.tracker.footprint(agent).untracked {
            let what = format!("{agent} got memory that is not tracked during the window");
            return Err(Stop::declined(Reason::UntrackedMemory, what));
        }
        Ok(())
    }

    /// Puts memory back to the input of `pass`.
    fn restore(
        &mut self,
        pass: PassIndex,
        mode: RestoreMode,
        snapshot: Box<dyn Snapshot>,
    ) -> Result<Box<dyn Snapshot>, Stop> {
        if !self.window.engine.restore {
            return Ok(snapshot);
        }
        let start = self.now();
        let (snapshot, bytes) = self.put_back(mode, snapshot).map_err(|stop| {
            Stop::failed(stop.reason, format!("before {pass}: {}", stop.message))
        })?;
        self.by_list = mode == RestoreMode::HashOnce && pass.0 >= ALWAYS_GOOD;
        let restore = self.now() - start;
        self.window.report.stats.passes.push(PassStats {
            pass: pass.0,
            restore,
            restored_bytes: bytes,
            ..PassStats::default()
        });
        Ok(snapshot)
    }

    /// Puts memory back and says in `held.how` what it is afterwards. Errors are failures.
    fn put_back(
        &mut self,
        mode: RestoreMode,
        snapshot: Box<dyn Snapshot>,
    ) -> Result<(Box<dyn Snapshot>, u64), Stop> {
        self.window.held.how = Leave::Deviated;
        let limit = self.window.engine.limits.restore;
        let alive = |region: &Region| self.tracked.holds(region);
        // SAFETY: the window is open and held, no pass runs, and `alive` asks the window itself.
        let restored = match unsafe { snapshot.restore(mode, &alive, limit) } {
            Ok(restored) => Ok(restored),
            Err(NotRestored::Rescued(cause)) => {
                let what = format!(
                    "{cause}; a copy by the host put the memory back, and the dispatch runs once \
                     more for the application"
                );
                Err(Stop::failed(Reason::RestoreFailed, what))
            }
            Err(NotRestored::Torn(cause)) => {
                return Err(self.deviated(Reason::RestoreFailed, cause));
            }
        };
        // What came in meanwhile may have been undone, or missed.
        self.undisturbed()
            .map_err(|stop| self.deviated(stop.reason, stop.message))?;
        self.window.held.how = Leave::RunOnce;
        restored
    }

    /// A pass has not ended within its limit.
    fn pass_timeout(
        &mut self,
        pass: PassIndex,
        limit: Duration,
        snapshot: Box<dyn Snapshot>,
    ) -> Stop {
        let (engine, dispatch) = (self.window.engine, self.window.dispatch);
        let reason = Reason::PassTimeout;
        engine
            .refused_kernels
            .lock()
            .insert(dispatch.kernel, reason);
        let what = format!(
            "{pass} of `{}` had not ended after {limit:?}",
            dispatch.kernel_name
        );
        if pass == PassIndex::FIRST {
            return Stop::declined(
                reason,
                format!("{what}; it goes on as the application's run"),
            );
        }
        let start = self.now();
        let stopped = self.window.held.target().cancel_pass(engine.limits.cancel);
        self.window.report.stats.put_back = self.now() - start;
        if !stopped {
            self.window.held.how = Leave::Deviated;
            self.memory.give_up();
            return Stop::failed(
                reason,
                format!(
                    "{what} and could not be stopped; the application's memory may deviate, and \
                     nothing is replayed on {} any more",
                    dispatch.agent
                ),
            );
        }
        self.run_again(reason, &what, snapshot)
    }

    /// A pass has ended with an error.
    fn pass_error(
        &mut self,
        pass: PassIndex,
        error: TargetError,
        snapshot: Box<dyn Snapshot>,
    ) -> Stop {
        if pass == PassIndex::FIRST {
            self.window.held.how = Leave::Fault;
            return declined(error);
        }
        let what = format!("{pass} ended with an error: {}", error.message);
        self.run_again(error.reason, &what, snapshot)
    }

    /// Ends the window before its final check. If memory was put back by a list, it is put back in
    /// full now, since nobody will find out any more what the list missed.
    fn stop_unchecked(&mut self, stop: Stop, snapshot: Box<dyn Snapshot>) -> Stop {
        if !self.by_list {
            return stop;
        }
        if self.undisturbed().is_err() {
            return self.deviated(stop.reason, stop.message);
        }
        self.run_again(stop.reason, &stop.message, snapshot)
    }

    /// Gives the application its one run back: puts memory back, then lets it run unprofiled. Over
    /// work that came in before nothing is put back.
    fn run_again(&mut self, reason: Reason, what: &str, snapshot: Box<dyn Snapshot>) -> Stop {
        let start = self.now();
        let then = match self.undisturbed() {
            Ok(()) => self.put_back(RestoreMode::Full, snapshot),
            Err(stop) => Err(self.deviated(stop.reason, stop.message)),
        };
        let then = match then {
            Ok(_) => "the dispatch runs once more for the application".to_owned(),
            Err(stop) => stop.message,
        };
        self.window.report.stats.put_back += self.now() - start;
        Stop::failed(reason, format!("{what}; {then}"))
    }

    /// The final check; repairs what it can.
    fn verdict(&mut self, snapshot: Box<dyn Snapshot>) -> Result<Outcome, Stop> {
        if self.window.records.len() <= 1 {
            // Nothing was put back, so there is nothing to check.
            return Ok(Outcome::Replayed);
        }
        let (snapshot, verdict) = self.verify(snapshot)?;
        match verdict {
            Verdict::Clean => Ok(Outcome::Replayed),
            // Nothing started after the restore that made the list.
            Verdict::UnlistedChange { .. } if self.window.records.len() as u32 <= ALWAYS_GOOD => {
                Ok(Outcome::Replayed)
            }
            Verdict::UnlistedChange { .. } => self.repair(&verdict, snapshot),
            _ => Err(self.deviated(Reason::RestoreFailed, verdict.to_string())),
        }
    }

    /// The last pass may have started from other bytes, or some were put back that must not, and
    /// nothing can be done about it.
    fn deviated(&mut self, reason: Reason, what: String) -> Stop {
        self.window.held.how = Leave::Deviated;
        let what = format!("{what}; the application's memory may deviate");
        Stop::failed(reason, what)
    }

    fn verify(
        &mut self,
        snapshot: Box<dyn Snapshot>,
    ) -> Result<(Box<dyn Snapshot>, Verdict), Stop> {
        if self.by_list {
            // Until the check has said otherwise.
            self.window.held.how = Leave::Deviated;
        }
        let start = self.now();
        let limit = self.window.engine.limits.verify;
        let alive = |region: &Region| self.tracked.holds(region);
        // SAFETY: the window is open and held, no pass runs, and `alive` asks the window itself.
        let verified = unsafe { snapshot.verify(&alive, limit) };
        let took = self.now() - start;
        self.window.report.stats.verify += took;
        match verified {
            Ok(verified) => {
                self.window.held.how = Leave::Complete;
                Ok(verified)
            }
            Err(why) => {
                let what = format!("the final check could not be made: {why}");
                Err(self.deviated(Reason::RestoreFailed, what))
            }
        }
    }

    /// Runs the suspect passes again, on memory that is put back in full before each.
    fn repair(
        &mut self,
        found: &Verdict,
        mut snapshot: Box<dyn Snapshot>,
    ) -> Result<Outcome, Stop> {
        let executed = self.window.records.len() as u32;
        self.window.records.truncate(ALWAYS_GOOD as usize);
        for pass in (ALWAYS_GOOD..executed).map(PassIndex) {
            snapshot = self.restore(pass, RestoreMode::Full, snapshot)?;
            (snapshot, _) = self.run_pass(pass, snapshot)?;
            self.undisturbed()?;
        }
        let (snapshot, verdict) = self.verify(snapshot)?;
        match verdict {
            Verdict::Clean => {
                self.window.report.message = Some(format!("{found}; passes from 2 on ran again"));
                Ok(Outcome::Repaired)
            }
            again @ Verdict::UnlistedChange { .. } => {
                let what = format!("{found}; after a repair still {again}");
                Err(self.run_again(Reason::UnlistedChange, &what, snapshot))
            }
            again => {
                let what = format!("{found}; after a repair {again}");
                Err(self.deviated(Reason::RestoreFailed, what))
            }
        }
    }

    /// The statistics of the pass that is running: its restore opened the entry, if it had one.
    fn pass_stats(&mut self, pass: PassIndex) -> &mut PassStats {
        let passes = &mut self.window.report.stats.passes;
        if passes.last().is_none_or(|last| last.pass != pass.0) {
            passes.push(PassStats {
                pass: pass.0,
                ..PassStats::default()
            });
        }
        passes.last_mut().expect("one was pushed if there was none")
    }

    fn now(&self) -> Duration {
        self.window.engine.clock.now()
    }
}

fn declined(error: TargetError) -> Stop {
    Stop::declined(error.reason, error.message)
}
