//! A target that does what its script says.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use kr_replay::{Leave, ReplayTarget, TargetError};
use kr_types::{DispatchId, PassIndex, QueueId, Reason};
use parking_lot::Mutex;

use super::script::Script;
use super::{Action, AppMemory, Event, FakeClock, Log};

/// Time that a pass takes unless its script says otherwise.
const PASS_TIME: Duration = Duration::from_millis(1);

/// A call of a [`ScriptedTarget`]; a number is that of the pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// [`ReplayTarget::queue_is_idle`], which only knows [`Step::Panic`].
    Idle,
    /// [`ReplayTarget::drain`]
    Drain,
    /// [`ReplayTarget::hold`]
    Hold,
    /// [`ReplayTarget::reach`]
    Reach,
    /// [`ReplayTarget::start_pass`]
    Start(u32),
    /// [`ReplayTarget::wait_pass`]
    Wait(u32),
    /// [`ReplayTarget::cancel_pass`]. If it does not succeed, the pass goes on in
    /// [`Launch::finish_pass`].
    Cancel,
    /// [`ReplayTarget::leave`], which only knows [`Step::Run`].
    Leave,
}

/// What a call does instead of succeeding at once.
pub enum Step {
    /// Reports an error. A pass that was being waited for stops half way.
    Fail(Reason),
    /// Succeeds after this time on the clock, or runs out of its limit.
    Take(Duration),
    /// Runs out of its limit.
    TimeOut,
    /// Panics.
    Panic,
    /// Runs this, then succeeds.
    Run(Action),
}

/// What a [`ScriptedTarget`] measures in a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// How many executions came before it.
    pub execution: u32,
    /// [`AppMemory::digest`] of what it started from.
    pub input: u64,
}

/// An application's queue, as far as targets need one: while a window holds it, what is forwarded
/// to it waits.
#[derive(Clone)]
pub struct FakeQueue(Arc<QueueState>);

struct QueueState {
    id: QueueId,
    idle: AtomicBool,
    /// What waits behind the hold; `None` while nothing holds the queue.
    held: Mutex<Option<Vec<Action>>>,
}

impl FakeQueue {
    /// A queue that is idle.
    pub fn new(id: QueueId) -> Self {
        Self(Arc::new(QueueState {
            id,
            idle: AtomicBool::new(true),
            held: Mutex::new(None),
        }))
    }

    /// Its id.
    pub fn id(&self) -> QueueId {
        self.0.id
    }

    /// What [`ReplayTarget::queue_is_idle`] says from now on.
    pub fn set_idle(&self, idle: bool) {
        self.0.idle.store(idle, SeqCst);
    }

    fn hold(&self) {
        self.0.held.lock().get_or_insert_default();
    }

    fn open(&self) {
        let waiting = self.0.held.lock().take();
        waiting.into_iter().flatten().for_each(|work| work());
    }

    fn submit(&self, work: Action) {
        let mut held = self.0.held.lock();
        match held.as_mut() {
            Some(waiting) => waiting.push(work),
            None => {
                drop(held);
                work();
            }
        }
    }
}

/// One launch, as the application and the test see it. A handle: clones are the same launch.
#[derive(Clone)]
pub struct Launch(Arc<Shared>);

struct Shared {
    queue: FakeQueue,
    memory: Arc<AppMemory>,
    clock: Arc<FakeClock>,
    log: Log,
    script: Script<Call, Step>,
    state: Mutex<State>,
}

struct State {
    signal: i64,
    /// What each execution started from.
    inputs: Vec<u64>,
    left: Option<Leave>,
    /// A pass could not be stopped: it has got half way, and goes on some day.
    unstopped: bool,
    violations: Vec<String>,
}

impl Launch {
    /// A launch of the kernel of `memory` on `queue`.
    pub fn new(
        queue: &FakeQueue,
        memory: &Arc<AppMemory>,
        clock: &Arc<FakeClock>,
        log: &Log,
    ) -> Self {
        Self(Arc::new(Shared {
            queue: queue.clone(),
            memory: memory.clone(),
            clock: clock.clone(),
            log: log.clone(),
            script: Script::new(),
            state: Mutex::new(State {
                signal: 1,
                inputs: Vec::new(),
                left: None,
                unstopped: false,
                violations: Vec::new(),
            }),
        }))
    }

    /// The next call of this kind without a step yet does `step`.
    #[must_use]
    pub fn on(self, call: Call, step: Step) -> Self {
        self.0.script.add(call, step);
        self
    }

    /// The target to give to an engine.
    pub fn target(&self) -> ScriptedTarget {
        ScriptedTarget {
            launch: self.clone(),
            held: false,
            reached: false,
            pass: Pass::None,
        }
    }

    /// Its queue.
    pub fn queue(&self) -> &FakeQueue {
        &self.0.queue
    }

    /// The completion signal: 1 at first, 0 when the launch has run for the application.
    pub fn signal(&self) -> i64 {
        self.0.state.lock().signal
    }

    /// How often the kernel ran, to the end or to its middle.
    pub fn executions(&self) -> u32 {
        self.0.state.lock().inputs.len() as u32
    }

    /// [`AppMemory::digest`] of what each of these executions started from.
    pub fn inputs(&self) -> Vec<u64> {
        self.0.state.lock().inputs.clone()
    }

    /// How it was left, if it was.
    pub fn left(&self) -> Option<Leave> {
        self.0.state.lock().left
    }

    /// Lets a pass that could not be stopped write what it had not written yet, if there is one.
    ///
    /// # Panics
    ///
    /// If the memory that it writes is gone.
    pub fn finish_pass(&self) {
        let unstopped = std::mem::take(&mut self.0.state.lock().unstopped);
        if unstopped {
            self.0.memory.run_rest();
            self.0.log.push(Event::WentOn);
        }
    }

    /// Calls that broke the protocol.
    pub fn violations(&self) -> Vec<String> {
        self.0.state.lock().violations.clone()
    }

    fn expect(&self, holds: bool, rule: &str) {
        if !holds {
            self.0.state.lock().violations.push(rule.to_owned());
        }
    }

    fn run(&self) -> Measured {
        let measured = self.start();
        self.0.memory.run();
        self.0.log.push(Event::Ran);
        measured
    }

    fn break_off(&self) {
        self.start();
        self.0.memory.run_half();
        self.0.log.push(Event::BrokeOff);
    }

    fn start(&self) -> Measured {
        let input = self.0.memory.digest();
        let mut state = self.0.state.lock();
        let execution = state.inputs.len() as u32;
        state.inputs.push(input);
        Measured { execution, input }
    }

    fn complete(&self) {
        self.0.state.lock().signal -= 1;
    }

    /// Plays the step for `call`; `Ok(false)` is a time-out.
    fn play(&self, call: Call, limit: Duration, takes: Duration) -> Result<bool, TargetError> {
        let took = match self.0.script.take(call) {
            None => takes,
            Some(Step::Take(time)) => time,
            Some(Step::TimeOut) => Duration::MAX,
            Some(Step::Fail(reason)) => {
                return Err(TargetError::new(reason, format!("scripted in {call:?}")));
            }
            Some(Step::Panic) => panic!("scripted panic in {call:?}"),
            Some(Step::Run(action)) => {
                action();
                takes
            }
        };
        self.0.clock.advance(took.min(limit));
        Ok(took <= limit)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    None,
    Running(PassIndex),
    Ended,
    Faulted,
}

/// The [`ReplayTarget`] of a [`Launch`].
pub struct ScriptedTarget {
    launch: Launch,
    held: bool,
    reached: bool,
    pass: Pass,
}

impl ScriptedTarget {
    fn note(&self, event: Event) {
        self.launch.0.log.push(event);
    }

    fn is_running(&self) -> bool {
        matches!(self.pass, Pass::Running(_))
    }
}

impl ReplayTarget for ScriptedTarget {
    type Measured = Measured;

    fn queue_is_idle(&self) -> bool {
        if let Some(Step::Panic) = self.launch.0.script.take(Call::Idle) {
            panic!("scripted panic in {:?}", Call::Idle);
        }
        self.launch.0.queue.0.idle.load(SeqCst)
    }

    fn drain(&mut self, limit: Duration) -> Result<bool, TargetError> {
        self.note(Event::Drain);
        self.launch.expect(!self.held, "drained before it is held");
        self.launch.play(Call::Drain, limit, Duration::ZERO)
    }

    fn hold(&mut self) -> Result<(), TargetError> {
        self.note(Event::Hold);
        self.launch.expect(!self.held, "held once");
        self.launch
            .play(Call::Hold, Duration::MAX, Duration::ZERO)?;
        self.launch.0.queue.hold();
        self.held = true;
        Ok(())
    }

    fn reach(&mut self, limit: Duration) -> Result<bool, TargetError> {
        self.note(Event::Reach);
        self.launch.expect(self.held, "held before it is reached");
        self.reached = self.launch.play(Call::Reach, limit, Duration::ZERO)?;
        Ok(self.reached)
    }

    fn start_pass(&mut self, id: DispatchId, pass: PassIndex) -> Result<(), TargetError> {
        self.note(Event::Start(id, pass));
        self.launch
            .expect(self.reached, "reached before a pass starts");
        self.launch
            .expect(!self.is_running(), "one pass after the other");
        self.launch
            .play(Call::Start(pass.0), Duration::MAX, Duration::ZERO)?;
        self.pass = Pass::Running(pass);
        Ok(())
    }

    fn wait_pass(&mut self, limit: Duration) -> Result<Option<Measured>, TargetError> {
        let Pass::Running(pass) = self.pass else {
            self.launch
                .expect(false, "a pass that is waited for was started");
            return Ok(None);
        };
        self.note(Event::Wait(pass));
        match self.launch.play(Call::Wait(pass.0), limit, PASS_TIME) {
            Ok(true) => {
                self.pass = Pass::Ended;
                Ok(Some(self.launch.run()))
            }
            Ok(false) => Ok(None),
            Err(error) => {
                self.pass = Pass::Faulted;
                self.launch.break_off();
                Err(error)
            }
        }
    }

    fn cancel_pass(&mut self, limit: Duration) -> bool {
        self.note(Event::Cancel);
        self.launch
            .expect(self.is_running(), "a pass that is cancelled runs");
        self.launch.break_off();
        let stopped = self.launch.play(Call::Cancel, limit, Duration::ZERO) == Ok(true);
        if stopped {
            self.pass = Pass::None;
        }
        self.launch.0.state.lock().unstopped = !stopped;
        stopped
    }

    fn leave(self, how: Leave) {
        self.note(Event::Leave(how));
        if let Some(Step::Run(action)) = self.launch.0.script.take(Call::Leave) {
            action();
        }
        let (launch, held) = (self.launch.clone(), self.held);
        launch.0.state.lock().left = Some(how);
        let rule = |holds| launch.expect(holds, &format!("state fits leave({how:?})"));
        match how {
            Leave::Forward => {
                rule(!held && self.pass == Pass::None);
                let launch = launch.clone();
                self.launch.0.queue.submit(Box::new(move || {
                    launch.run();
                    launch.complete();
                }));
            }
            Leave::RunOnce => {
                rule(held && !self.is_running());
                launch.run();
                launch.complete();
            }
            Leave::Adopt => {
                rule(held && self.is_running());
                launch.run();
                launch.complete();
            }
            Leave::Complete => {
                rule(held && self.pass == Pass::Ended);
                launch.complete();
            }
            Leave::Fault => {
                rule(held && self.pass == Pass::Faulted);
                launch.complete();
            }
            Leave::Deviated => {
                rule(held);
                launch.complete();
            }
            _ => rule(false),
        }
        if held {
            launch.0.queue.open();
        }
    }
}
