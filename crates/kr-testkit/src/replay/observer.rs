//! A profiler that does what its script says.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use kr_replay::{Dispatch, Observer, PassContext, PassPlan, PassRecord, WindowReport};
use kr_types::DispatchId;
use parking_lot::Mutex;

use super::script::Script;
use super::{Action, Event, Log};

/// A callback of a [`ScriptedObserver`]; a number is that of the pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Callback {
    /// [`Observer::wants`]
    Wants,
    /// [`Observer::configure`]
    Configure,
    /// [`Observer::pass_enter`]
    Enter(u32),
    /// [`Observer::pass_exit`]
    Exit(u32),
    /// [`Observer::wants_another`]
    Another(u32),
    /// [`Observer::finish`]
    Finish,
}

/// What a callback does beside writing to the log.
pub enum Reaction {
    /// Panics.
    Panic,
    /// Runs this.
    Run(Action),
    /// Answers [`Observer::wants_another`], or [`Observer::wants`], with no.
    Stop,
    /// Answers [`Observer::configure`] with this plan.
    Plan(PassPlan),
}

/// What [`Observer::finish`] was given.
#[derive(Clone, Debug)]
pub struct Finished<M> {
    /// The report.
    pub report: WindowReport,
    /// The dispatch's data: the names of the callbacks that changed it.
    pub user: String,
    /// What was measured, pass by pass.
    pub records: Vec<PassRecord<M>>,
}

/// An observer with a script. It records what was measured, and appends the name of each callback
/// (`configure`, `enter 0`, ...) to the dispatch's data, so that the data tell who has seen whose.
pub struct ScriptedObserver<M> {
    log: Log,
    plan: Mutex<PassPlan>,
    wants: AtomicBool,
    script: Script<Callback, Reaction>,
    seen: Mutex<Vec<(String, String)>>,
    finished: Mutex<Vec<Finished<M>>>,
    measured: PhantomData<fn(M)>,
}

impl<M> ScriptedObserver<M> {
    /// An observer that wants every dispatch, with `plan`, and stops none early.
    pub fn new(plan: PassPlan, log: &Log) -> Self {
        Self {
            log: log.clone(),
            plan: Mutex::new(plan),
            wants: AtomicBool::new(true),
            script: Script::new(),
            seen: Mutex::default(),
            finished: Mutex::default(),
            measured: PhantomData,
        }
    }

    /// The next call of this kind without a reaction yet reacts so.
    pub fn on(&self, callback: Callback, reaction: Reaction) -> &Self {
        self.script.add(callback, reaction);
        self
    }

    /// Another plan for the dispatches to come.
    pub fn set_plan(&self, plan: PassPlan) {
        *self.plan.lock() = plan;
    }

    /// Whether the dispatches to come are wanted.
    pub fn set_wants(&self, wants: bool) {
        self.wants.store(wants, SeqCst);
    }

    /// Each callback with the dispatch's data as it found them.
    pub fn seen(&self) -> Vec<(String, String)> {
        self.seen.lock().clone()
    }

    /// What [`Observer::finish`] was given so far; it is forgotten here.
    pub fn take_finished(&self) -> Vec<Finished<M>> {
        std::mem::take(&mut self.finished.lock())
    }

    /// Notes a callback and plays its reaction; what is left to the caller is an answer.
    fn play(
        &self,
        callback: Callback,
        event: Event,
        user: Option<&mut String>,
    ) -> Option<Reaction> {
        self.log.push(event);
        if let Some(user) = user {
            self.seen.lock().push((event.to_string(), user.clone()));
            if !user.is_empty() {
                user.push_str(", ");
            }
            user.push_str(&event.to_string());
        }
        match self.script.take(callback) {
            Some(Reaction::Panic) => panic!("scripted panic in {callback:?}"),
            Some(Reaction::Run(action)) => {
                action();
                None
            }
            answer => answer,
        }
    }
}

impl<M: Send + 'static> Observer for ScriptedObserver<M> {
    type UserData = String;
    type Measured = M;
    type Record = M;

    fn wants(&self, _: &Dispatch) -> bool {
        let answer = self.play(Callback::Wants, Event::Wants, None);
        self.wants.load(SeqCst) && !matches!(answer, Some(Reaction::Stop))
    }

    fn configure(&self, id: DispatchId, _: &Dispatch, user: &mut String) -> PassPlan {
        match self.play(Callback::Configure, Event::Configure(id), Some(user)) {
            Some(Reaction::Plan(plan)) => plan,
            _ => *self.plan.lock(),
        }
    }

    fn pass_enter(&self, pass: &PassContext<'_>, user: &mut String) {
        let event = Event::Enter(pass.id, pass.pass);
        self.play(Callback::Enter(pass.pass.0), event, Some(user));
    }

    fn pass_exit(&self, pass: &PassContext<'_>, user: &mut String, measured: M) -> M {
        let event = Event::Exit(pass.id, pass.pass);
        self.play(Callback::Exit(pass.pass.0), event, Some(user));
        measured
    }

    fn wants_another(&self, pass: &PassContext<'_>, user: &mut String) -> bool {
        let event = Event::Another(pass.id, pass.pass);
        let answer = self.play(Callback::Another(pass.pass.0), event, Some(user));
        !matches!(answer, Some(Reaction::Stop))
    }

    fn finish(&self, report: &WindowReport, mut user: String, records: Vec<PassRecord<M>>) {
        let finished = Finished {
            report: report.clone(),
            user: user.clone(),
            records,
        };
        self.finished.lock().push(finished);
        let event = Event::Finish(report.id, report.outcome);
        self.play(Callback::Finish, event, Some(&mut user));
    }
}
