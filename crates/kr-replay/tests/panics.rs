//! Panics of code that is not ours: of a backend, of the profiler's data, of a policy, of frees. They
//! cost a dispatch its records at the most, and never the application its run.

use std::cell::Cell;
use std::num::NonZeroU64;
use std::panic::panic_any;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread;

use kr_blit::Verdict;
use kr_device::{Block, Device};
use kr_policy::{Facts, Fixed, RestorePolicy};
use kr_replay::host::{HostBuffer, HostCounters, HostKernel, HostQueue, HostRuntime, KernelLaunch};
use kr_replay::{
    Dispatch, Engine, Leave, Observer, PassContext, PassPlan, PassRecord, Retain, WindowReport,
};
use kr_testkit::replay::{
    BlitCall, BlitStep, Call, Callback, Event, Log, Reaction, Rig, ScriptedBlit, Step, ToolMemory,
};
use kr_tracker::Freed;
use kr_types::Outcome::{Declined, Failed, Repaired, Replayed};
use kr_types::{AgentId, DeviceAddr, DispatchId, MemoryClass, Outcome, Reason, RestoreMode, Tier};
use parking_lot::Mutex;

/// Whatever call of a backend panics, the application gets its one run and the profiler a reason; the
/// target is left before the agent is, and nothing is replayed there any more.
#[test]
fn a_panic_of_the_backend_leaves_the_target_and_then_the_agent() {
    use Leave::{Adopt, Forward, RunOnce};
    let calls = [
        (Call::Drain, Forward, "configure, drain"),
        (Call::Hold, Forward, "drain, hold"),
        (Call::Reach, RunOnce, "hold, reach"),
        (Call::Start(0), RunOnce, "enter 0, start 0"),
        (Call::Start(1), RunOnce, "enter 1, start 1"),
        (Call::Wait(0), Adopt, "start 0, wait 0"),
        (Call::Wait(1), Adopt, "start 1, wait 1"),
    ];
    for (call, how, log) in calls {
        let rig = Rig::new(PassPlan::Exactly(2));
        let tracker = rig.runtime.tracker().clone();
        let (sender, alone) = mpsc::channel();
        let leave = move || {
            let entered = thread::spawn(move || {
                let guard = tracker.try_enter_dispatch(Rig::AGENT);
                guard.is_some()
            });
            sender.send(!entered.join().unwrap()).unwrap();
        };
        let launch = rig
            .launch()
            .on(call, Step::Panic)
            .on(Call::Leave, Step::Run(Box::new(leave)));
        let refusal = (Declined, Reason::QueueError, how);
        let what = rig.assert_refused(&launch, refusal, log);
        assert!(what.contains("scripted panic"), "{what}");
        assert!(alone.recv().unwrap(), "{call:?}: the agent was left first");
        rig.assert_quarantined();
    }
}

/// A panic of the blit engine, too, leaves the target and the agent; after a restore that broke off
/// so the target knows that memory may deviate.
#[test]
fn a_panic_of_the_blit_engine_leaves_the_target() {
    let calls = [
        (BlitCall::Capture, Declined, Leave::RunOnce, "capture"),
        (BlitCall::Restore, Failed, Leave::Deviated, "restore full"),
        (BlitCall::Verify, Declined, Leave::Complete, "verify"),
    ];
    for (call, outcome, how, log) in calls {
        let rig = Rig::new(PassPlan::Exactly(2));
        rig.blit.on(call, BlitStep::Panic);
        let refusal = (outcome, Reason::QueueError, how);
        rig.assert_refused(&rig.launch(), refusal, log);
        rig.assert_quarantined();
    }
}

/// A blit engine that panics may have left copies on their way: what they touch, the arena and the
/// application's memory, is not handed out again.
#[test]
fn a_panic_of_the_blit_engine_frees_nothing_under_its_copies() {
    let calls = [
        &[(BlitCall::Capture, false)][..],
        &[(BlitCall::Restore, false)],
        &[(BlitCall::Restore, true), (BlitCall::Rescue, false)],
        &[(BlitCall::Verify, false)],
    ];
    for steps in calls {
        let rig = Rig::new(PassPlan::Exactly(2));
        for (call, fails) in steps {
            let step = match fails {
                true => BlitStep::Fail,
                false => BlitStep::PanicMidway,
            };
            rig.blit.on(*call, step);
        }
        rig.dispatch(&rig.launch());
        assert_eq!(rig.finished().report.reason, Some(Reason::QueueError));
        let kept = rig.engine_bytes();
        assert!(kept >= rig.memory.len_bytes(), "{steps:?}: {kept} bytes");
        rig.memory.free(2);
        let buffer = rig.runtime.alloc(4100).unwrap();
        let device = rig.runtime.device();
        device.write_bytes(buffer.addr(), &[0xee; 4100]).unwrap();
        // It would panic if memory were gone.
        rig.blit.finish_copies();
        assert!(buffer.read::<u8>().unwrap() == [0xee; 4100], "{steps:?}");
        rig.assert_quarantined();
    }
}

/// A backend that panics when it is asked whether the launch can be replayed at all is no exception.
#[test]
fn a_panic_of_the_backend_before_the_window_does_not_come_out() {
    let rig = Rig::new(PassPlan::Exactly(2));
    rig.dispatch(&rig.launch().on(Call::Drain, Step::TimeOut));
    rig.finished();
    let launch = rig.launch().on(Call::Idle, Step::Panic);
    let refusal = (Declined, Reason::QueueError, Leave::Forward);
    let what = rig.assert_refused(&launch, refusal, "wants, configure");
    assert!(what.contains("scripted panic"), "{what}");
    assert_eq!(rig.memory.runs(), Some(2));
}

/// A backend that panics while it is left keeps that to itself; the agent is free for the next one.
#[test]
fn a_panic_of_leave_does_not_come_out() {
    for (passes, outcome) in [(2, Replayed), (1, Outcome::OptedOut)] {
        let rig = Rig::new(PassPlan::Exactly(passes));
        let panic = || panic_any("scripted panic in leave");
        let launch = rig.launch().on(Call::Leave, Step::Run(Box::new(panic)));
        assert_eq!(rig.dispatch(&launch), outcome);
        let next = rig.launch();
        assert_eq!(rig.dispatch(&next), outcome);
        assert_eq!(next.signal(), 0);
    }
}

/// What a panic throws may panic itself when it is dropped.
#[test]
fn a_panic_within_a_panic_does_not_come_out() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("scripted panic of a panic");
        }
    }
    let rig = Rig::new(PassPlan::Exactly(2));
    let throw = Reaction::Run(Box::new(|| panic_any(Bomb)));
    rig.observer.on(Callback::Exit(0), throw);
    let refusal = (Declined, Reason::ToolPanicked, Leave::Complete);
    rig.assert_refused(&rig.launch(), refusal, "ran, exit 0");
    rig.assert_works();
}

/// A policy that panics costs the dispatch its records and nothing else.
#[test]
fn a_panic_of_the_policy_declines() {
    /// Panics once.
    struct Panics(AtomicBool);
    impl RestorePolicy for Panics {
        fn choose(&self, _: &Facts) -> RestoreMode {
            assert!(self.0.swap(true, SeqCst), "scripted panic of the policy");
            RestoreMode::Full
        }
    }
    let rig = Rig::with(PassPlan::Exactly(2), |builder| {
        builder.policy(Panics(AtomicBool::new(false)))
    });
    let refusal = (Declined, Reason::ToolPanicked, Leave::RunOnce);
    let what = rig.assert_refused(&rig.launch(), refusal, "reach, capture");
    assert!(what.contains("scripted panic of the policy"), "{what}");
    rig.assert_works();
}

/// A free that was put off and panics keeps none of the others from running, before it or after it.
#[test]
fn a_parked_free_that_panics_keeps_no_other_from_running() {
    let rig = Rig::new(PassPlan::Exactly(2));
    let [first, last] = [(); 2].map(|()| ToolMemory::new(&rig, MemoryClass::Vram));
    let (device, tracker) = (rig.runtime.device(), rig.runtime.tracker().clone());
    let block = device.alloc(Tier::Device, NonZeroU64::MIN).unwrap();
    let base = block.addr();
    let recorded = tracker.record(Rig::AGENT, base, 1, MemoryClass::Vram);
    assert!(recorded.is_ok());
    let free_all = move || {
        assert_eq!(first.free(), "parked");
        let panics = move || {
            drop(block);
            panic!("scripted panic of a free");
        };
        assert!(matches!(
            tracker.free(base, Box::new(panics)),
            Freed::Parked
        ));
        assert_eq!(last.free(), "parked");
    };
    rig.observer
        .on(Callback::Exit(0), Reaction::Run(Box::new(free_all)));
    let launch = rig.launch();
    assert_eq!(rig.dispatch(&launch), Replayed);
    rig.finished();
    rig.assert_ran_once(&launch);
    assert_eq!(rig.log.count(|e| *e == Event::Note("freed")), 2);
    rig.assert_works();
}

/// The profiler's code that runs where the engine handles what is the profiler's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Code {
    DefaultOfData,
    CloneOfData,
    DropOfData,
    DropOfRecord,
}

thread_local! {
    /// What panics on this thread, every time that it runs.
    static PANICS: Cell<Option<Code>> = const { Cell::new(None) };
}

impl Code {
    fn run(self) {
        if PANICS.get() == Some(self) {
            panic!("scripted panic in {self:?}");
        }
    }
}

struct Data;

impl Default for Data {
    fn default() -> Self {
        Code::DefaultOfData.run();
        Self
    }
}

impl Clone for Data {
    fn clone(&self) -> Self {
        Code::CloneOfData.run();
        Self
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        Code::DropOfData.run();
    }
}

struct Record;

impl Drop for Record {
    fn drop(&mut self) {
        Code::DropOfRecord.run();
    }
}

/// A profiler whose data and records may panic. It keeps the records of good dispatches.
#[derive(Default)]
struct Fragile {
    /// Asked after pass 2 whether there should be another one, it panics.
    stops_by_panic: AtomicBool,
    finished: Mutex<Vec<(WindowReport, Vec<PassRecord<Record>>)>>,
}

impl Observer for Fragile {
    type UserData = Data;
    type Measured = HostCounters;
    type Record = Record;

    fn configure(&self, _: DispatchId, _: &Dispatch, _: &mut Data) -> PassPlan {
        PassPlan::AtMost(4)
    }

    fn pass_exit(&self, _: &PassContext<'_>, _: &mut Data, _: HostCounters) -> Record {
        Record
    }

    fn wants_another(&self, pass: &PassContext<'_>, _: &mut Data) -> bool {
        assert!(pass.pass.0 < 2 || !self.stops_by_panic.load(SeqCst));
        true
    }

    fn finish(&self, report: &WindowReport, _: Data, records: Vec<PassRecord<Record>>) {
        self.finished.lock().push((report.clone(), records));
    }
}

/// An application with such a profiler.
struct App {
    queue: HostQueue,
    buffer: HostBuffer,
    blit: ScriptedBlit,
    engine: Arc<Engine<Arc<Fragile>>>,
}

impl App {
    fn new() -> Self {
        Self::restoring(RestoreMode::Full)
    }

    fn restoring(mode: RestoreMode) -> Self {
        let runtime = HostRuntime::new(AgentId(2));
        let blit = ScriptedBlit::new(runtime.device(), &Log::default());
        let builder = Engine::builder(runtime.tracker().clone(), Arc::<Fragile>::default());
        // SAFETY: the tracker lists buffers of `runtime` on its device only, and memory of the host
        // device defines races.
        let builder = unsafe { builder.blit_engine(runtime.device().clone(), blit.clone()) };
        let engine = builder.policy(Fixed(mode)).retain(Retain::Freed).build();
        let engine = runtime.attach(engine.expect("the tracker is new"));
        let buffer = runtime.alloc(4).expect("the host has memory");
        buffer.write(&[0u32]).expect("it fits");
        Self {
            queue: runtime.queue(),
            buffer,
            blit,
            engine,
        }
    }

    /// One launch, with `panics` panicking on this thread until the launch has returned.
    fn launch(&self, panics: Option<Code>) {
        let increment = HostKernel::new("increment", |ctx| {
            let addr = DeviceAddr(ctx.args::<u64>()?);
            let value = ctx.load::<u32>(addr, 1)?[0];
            ctx.store(addr, &[value + 1])
        });
        let launch = KernelLaunch::new(&increment, &self.buffer.addr().0);
        PANICS.set(panics);
        let signal = self.queue.launch(&launch);
        PANICS.set(None);
        assert_eq!((signal.wait(), signal.value()), (Ok(()), 0));
    }

    /// What `finish` was told since the last call: outcomes, reasons and the numbers of records.
    fn finished(&self) -> Vec<(Outcome, Option<Reason>, usize)> {
        let finished = std::mem::take(&mut *self.engine.observer().finished.lock());
        let told = |(report, records): &(WindowReport, Vec<_>)| {
            (report.outcome, report.reason, records.len())
        };
        finished.iter().map(told).collect()
    }

    #[track_caller]
    fn assert_counted(&self, outcome: Outcome, reason: Option<Reason>) {
        let counts: Vec<_> = self.engine.stats().iter().collect();
        assert_eq!(counts, [(outcome, reason, 1)]);
    }

    /// The launches before left the application right after `n` of them, and so does the next one,
    /// of another thread on which nothing panics or of this one.
    #[track_caller]
    fn assert_goes_on_after(&self, n: u32) {
        let value = || self.buffer.read::<u32>().expect("it is alive");
        assert_eq!(value(), [n]);
        thread::scope(|scope| {
            scope.spawn(|| self.launch(None));
        });
        self.launch(None);
        assert_eq!(self.finished(), [(Replayed, None, 4); 2]);
        assert_eq!(value(), [n + 2]);
    }
}

/// Data that cannot be made cost the dispatch its replay; it has no id to report.
#[test]
fn a_panic_of_default_declines() {
    let app = App::new();
    app.launch(Some(Code::DefaultOfData));
    assert_eq!(app.finished(), []);
    app.assert_counted(Declined, Some(Reason::ToolPanicked));
    app.assert_goes_on_after(1);
}

/// Data that cannot be copied for a pass cost the dispatch its records.
#[test]
fn a_panic_of_clone_declines() {
    let app = App::new();
    app.launch(Some(Code::CloneOfData));
    let told = (Declined, Some(Reason::ToolPanicked), 0);
    assert_eq!(app.finished(), [told]);
    app.assert_counted(told.0, told.1);
    app.assert_goes_on_after(1);
}

/// Data that panic when they are dropped, and they are so after every pass, cost nothing.
#[test]
fn a_panic_when_data_are_dropped_costs_nothing() {
    let app = App::new();
    app.launch(Some(Code::DropOfData));
    assert_eq!(app.finished(), [(Replayed, None, 4)]);
    app.assert_counted(Replayed, None);
    app.assert_goes_on_after(1);
}

/// Records that panic when they are dropped, each of them, do not turn one panic of the profiler
/// into more than that.
#[test]
fn a_panic_when_records_are_dropped_costs_nothing_more() {
    for panics in [Code::DropOfRecord, Code::DropOfData] {
        let app = App::new();
        let observer = app.engine.observer();
        observer.stops_by_panic.store(true, SeqCst);
        app.launch(Some(panics));
        observer.stops_by_panic.store(false, SeqCst);
        let told = (Declined, Some(Reason::ToolPanicked), 0);
        assert_eq!(app.finished(), [told]);
        app.assert_counted(told.0, told.1);
        app.assert_goes_on_after(1);
    }
}

/// The records of passes that are repaired are dropped in the middle of a window, which goes on.
#[test]
fn a_panic_when_suspect_records_are_dropped_does_not_stop_the_repair() {
    let app = App::restoring(RestoreMode::HashOnce);
    let first = app.buffer.addr();
    let verdict = Verdict::UnlistedChange { tiles: 1, first };
    app.blit.on(BlitCall::Verify, BlitStep::Verdict(verdict));
    app.launch(Some(Code::DropOfRecord));
    assert_eq!(app.finished(), [(Repaired, None, 4)]);
    app.assert_counted(Repaired, None);
    app.assert_goes_on_after(1);
}
