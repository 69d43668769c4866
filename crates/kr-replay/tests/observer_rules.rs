//! What a profiler may do in its callbacks, and what comes of what it may not.

use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use kr_replay::{Leave, PassPlan};
use kr_testkit::replay::{
    Action, AppMemory, BlitCall, BlitStep, Call, Callback, Event, FakeQueue, Launch, Reaction, Rig,
    Step, ToolMemory,
};
use kr_tracker::{RecordError, TrackerConfig};
use kr_types::Outcome::{Declined, Failed};
use kr_types::{AgentId, MemoryClass, Outcome, QueueId, Reason, Tier};

/// Callbacks that come while a window is open, over three passes.
const INSIDE: [Callback; 8] = [
    Callback::Enter(0),
    Callback::Exit(0),
    Callback::Another(0),
    Callback::Enter(1),
    Callback::Exit(1),
    Callback::Another(1),
    Callback::Enter(2),
    Callback::Exit(2),
];

/// The pass of a callback of [`INSIDE`].
fn pass_of(callback: Callback) -> u32 {
    match callback {
        Callback::Enter(pass) | Callback::Exit(pass) | Callback::Another(pass) => pass,
        _ => unreachable!("it belongs to no pass"),
    }
}

fn run(action: impl FnOnce() + Send + 'static) -> Reaction {
    Reaction::Run(Box::new(action))
}

/// A profiler that panics loses its records; the application loses nothing, and neither does the
/// next dispatch.
#[test]
fn a_panic_in_a_callback_costs_the_records_only() {
    for callback in [Callback::Configure].into_iter().chain(INSIDE) {
        let rig = Rig::new(PassPlan::AtMost(3));
        rig.observer.on(callback, Reaction::Panic);
        let launch = rig.launch();
        assert_eq!(rig.dispatch(&launch), Declined, "{callback:?}");
        let finished = rig.finished();
        assert_eq!(finished.report.reason, Some(Reason::ToolPanicked));
        let message = finished.report.message.unwrap();
        assert!(message.contains("scripted panic"), "{message}");
        assert!(finished.records.is_empty());
        let how = match callback {
            Callback::Configure => Leave::Forward,
            Callback::Enter(_) => Leave::RunOnce,
            _ => Leave::Complete,
        };
        assert_eq!(launch.left(), Some(how), "{callback:?}");
        rig.assert_ran_once(&launch);
        assert_eq!(rig.engine.stats().reason(Reason::ToolPanicked), 1);
        assert_eq!(rig.engine_bytes(), 0);
        assert_eq!(rig.dispatch(&rig.launch()), Outcome::Replayed);
    }
}

/// A panic in `wants` is a decline as well, of a dispatch that has no id to report.
#[test]
fn a_panic_in_wants_declines() {
    let rig = Rig::new(PassPlan::AtMost(3));
    rig.observer.on(Callback::Wants, Reaction::Panic);
    let launch = rig.launch();
    assert_eq!(rig.dispatch(&launch), Declined);
    assert_eq!(rig.log.to_string(), "wants, leave Forward, ran");
    rig.assert_ran_once(&launch);
    assert_eq!(rig.engine.stats().reason(Reason::ToolPanicked), 1);
    assert_eq!(rig.dispatch(&rig.launch()), Outcome::Replayed);
}

/// A panic in `finish` comes after the verdict, which stands.
#[test]
fn a_panic_in_finish_changes_nothing() {
    for (plan, outcome) in [
        (PassPlan::Exactly(3), Outcome::Replayed),
        (PassPlan::OPT_OUT, Outcome::OptedOut),
        (PassPlan::Exactly(0), Declined),
    ] {
        let rig = Rig::new(plan);
        rig.observer.on(Callback::Finish, Reaction::Panic);
        let launch = rig.launch();
        assert_eq!(rig.dispatch(&launch), outcome);
        rig.assert_ran_once(&launch);
        assert_eq!(rig.engine.stats().outcome(outcome), 1);
        assert_eq!(rig.engine_bytes(), 0);
    }
}

/// Memory that a callback frees is kept until the window has left, and then freed once.
#[test]
fn a_free_in_a_callback_is_parked() {
    for callback in INSIDE {
        let rig = Rig::new(PassPlan::AtMost(3));
        let memory = ToolMemory::new(&rig, MemoryClass::Vram);
        let (sender, freed) = mpsc::channel();
        let device = rig.runtime.device().clone();
        let used = device.used_bytes(Tier::Device);
        rig.observer.on(
            callback,
            run(move || {
                let before = device.used_bytes(Tier::Device);
                let how = memory.free();
                sender
                    .send((how, device.used_bytes(Tier::Device) == before))
                    .unwrap();
            }),
        );
        let launch = rig.launch();
        assert_eq!(rig.dispatch(&launch), Outcome::Replayed, "{callback:?}");
        assert_eq!(freed.recv().unwrap(), ("parked", true), "{callback:?}");
        let stats = rig.finished().report.stats;
        assert_eq!(stats.parked_bytes, ToolMemory::BYTES);
        let log = rig.log.to_string();
        assert!(log.ends_with("leave Complete, freed"), "{log}");
        assert_eq!(rig.log.count(|e| *e == Event::Note("freed")), 1);
        assert_eq!(
            rig.runtime.device().used_bytes(Tier::Device),
            used - ToolMemory::BYTES
        );
        rig.assert_ran_once(&launch);
    }
}

/// Outside a window nothing is parked.
#[test]
fn a_free_before_the_window_is_a_free() {
    let rig = Rig::new(PassPlan::AtMost(3));
    let memory = ToolMemory::new(&rig, MemoryClass::Vram);
    let (sender, freed) = mpsc::channel();
    rig.observer.on(
        Callback::Configure,
        run(move || sender.send(memory.free()).unwrap()),
    );
    assert_eq!(rig.dispatch(&rig.launch()), Outcome::Replayed);
    assert_eq!(freed.recv().unwrap(), "released");
    let log = rig.log.to_string();
    assert!(log.starts_with("wants, configure, freed, drain"), "{log}");
}

/// The application's own buffer, freed by a callback, is restored like the rest until the window
/// has left.
#[test]
fn freed_memory_is_put_back_as_long_as_it_is_parked() {
    let rig = Rig::new(PassPlan::Exactly(4));
    let memory = rig.memory.clone();
    rig.observer
        .on(Callback::Exit(0), run(move || memory.free(2)));
    let launch = rig.launch();
    assert_eq!(rig.dispatch(&launch), Outcome::Replayed);
    let initial = rig.memory.initial_digest();
    let records = rig.finished().records;
    assert!(records.iter().all(|r| r.record.input == initial));
}

/// Frees beyond the bound are parked all the same, but no further pass keeps the application from
/// its memory.
#[test]
fn parked_memory_over_the_bound_ends_the_window() {
    for (bound, declines) in [(ToolMemory::BYTES, false), (ToolMemory::BYTES - 1, true)] {
        for callback in INSIDE {
            let config = TrackerConfig::default().with_parked_bound_bytes(bound);
            let rig = Rig::with_tracker(PassPlan::AtMost(3), config, |builder| builder);
            let memory = ToolMemory::new(&rig, MemoryClass::Vram);
            rig.observer
                .on(callback, run(move || assert_eq!(memory.free(), "parked")));
            let launch = rig.launch();
            let outcome = rig.dispatch(&launch);
            let report = rig.finished().report;
            // After the last pass nothing is put back any more.
            if declines && pass_of(callback) < 2 {
                let ended = (Declined, Some(Reason::Budget));
                assert_eq!((outcome, report.reason), ended, "{callback:?}");
                assert_eq!(launch.executions(), pass_of(callback) + 1);
                assert_eq!(launch.left(), Some(Leave::Complete));
            } else {
                assert_eq!(outcome, Outcome::Replayed, "{callback:?}");
            }
            assert_eq!(rig.log.count(|e| *e == Event::Note("freed")), 1);
            rig.assert_ran_once(&launch);
        }
    }
}

/// Memory that a callback allocates belongs to no window: what is written there stays.
#[test]
fn memory_allocated_in_a_callback_is_not_touched() {
    for callback in INSIDE {
        let rig = Arc::new(Rig::new(PassPlan::AtMost(3)));
        let (sender, allocated) = mpsc::channel();
        let runtime = rig.runtime.clone();
        rig.observer.on(
            callback,
            run(move || {
                let buffer = runtime.alloc(64).unwrap();
                let bytes = [0xa5; 64];
                runtime.device().write_bytes(buffer.addr(), &bytes).unwrap();
                sender.send(buffer).unwrap();
            }),
        );
        let launch = rig.launch();
        assert_eq!(rig.dispatch(&launch), Outcome::Replayed);
        let buffer = allocated.recv().unwrap();
        assert_eq!(buffer.read::<u8>().unwrap(), [0xa5; 64], "{callback:?}");
        rig.assert_ran_once(&launch);
    }
}

/// Memory that is tracked but not captured is never put back.
#[test]
fn memory_that_is_not_captured_is_not_touched() {
    for (class, kept) in [(MemoryClass::Runtime, 2), (MemoryClass::ModuleVariable, 1)] {
        let rig = Rig::new(PassPlan::Exactly(3));
        let memory = ToolMemory::new(&rig, class);
        let (device, addr) = (rig.runtime.device().clone(), memory.addr());
        device.write_bytes(addr, &[1]).unwrap();
        let write = move || device.write_bytes(addr, &[2]).unwrap();
        rig.observer.on(Callback::Exit(0), run(write));
        assert_eq!(rig.dispatch(&rig.launch()), Outcome::Replayed);
        let mut byte = [0];
        rig.runtime.device().read_bytes(addr, &mut byte).unwrap();
        assert_eq!(byte, [kept], "{class:?}");
    }
}

/// Work that a callback launches through the engine, on memory of its own.
struct Nested {
    memory: Arc<AppMemory>,
    launch: Launch,
    outcome: mpsc::Receiver<Outcome>,
}

impl Nested {
    /// Work for `queue`, and what launches it.
    fn new(rig: &Rig, queue: &FakeQueue) -> (Self, Action) {
        let memory = Arc::new(AppMemory::new(&rig.runtime, 0x55));
        let launch = rig.launch_beside(queue, &memory);
        let (sender, outcome) = mpsc::channel();
        let (engine, nested) = (rig.engine.clone(), launch.clone());
        let action = move || {
            let outcome = engine.dispatch(&Rig::describe(&nested), nested.target());
            sender.send(outcome).expect("the test waits for it");
        };
        let nested = Self {
            memory,
            launch,
            outcome,
        };
        (nested, Box::new(action))
    }

    /// It ran once, and what it did is still there.
    #[track_caller]
    fn assert_ran(&self, outcome: Outcome) {
        assert_eq!(self.outcome.recv(), Ok(outcome));
        assert_eq!(self.launch.signal(), 0);
        assert_eq!(self.launch.violations(), [""; 0]);
        assert_eq!(self.memory.bytes(), self.memory.after(1));
    }
}

/// Work launched on the agent from inside its window ends that window, without records; neither
/// the work nor the application's run is lost.
#[test]
fn work_launched_in_a_callback_ends_the_window() {
    for same_queue in [true, false] {
        for callback in INSIDE {
            let rig = Rig::new(PassPlan::AtMost(3));
            let queue = match same_queue {
                true => rig.queue.clone(),
                false => FakeQueue::new(QueueId(12)),
            };
            let (nested, action) = Nested::new(&rig, &queue);
            rig.observer.on(callback, Reaction::Run(action));
            let launch = rig.launch();
            assert_eq!(rig.dispatch(&launch), Declined, "{callback:?}");
            let [inner, outer] = &rig.observer.take_finished()[..] else {
                panic!("two dispatches were configured");
            };
            for finished in [inner, outer] {
                assert_eq!(finished.report.reason, Some(Reason::Reentrant));
                assert!(finished.records.is_empty());
            }
            assert_eq!(nested.launch.left(), Some(Leave::Forward));
            nested.assert_ran(Declined);
            rig.assert_ran_once(&launch);
            let restores = rig.log.count(|e| matches!(e, Event::Restore(_)));
            assert_eq!(restores as u32, pass_of(callback), "none came after it");
        }
    }
}

/// Nested work that nobody wants to profile ends the window just the same.
#[test]
fn unwanted_work_launched_in_a_callback_ends_the_window() {
    let rig = Rig::new(PassPlan::AtMost(3));
    let (nested, action) = Nested::new(&rig, &FakeQueue::new(QueueId(12)));
    rig.observer
        .on(Callback::Wants, run(|| {}))
        .on(Callback::Wants, Reaction::Stop)
        .on(Callback::Exit(1), Reaction::Run(action));
    let launch = rig.launch();
    assert_eq!(rig.dispatch(&launch), Declined);
    assert_eq!(rig.finished().report.reason, Some(Reason::Reentrant));
    nested.assert_ran(Outcome::Untargeted);
    rig.assert_ran_once(&launch);
}

/// Before and after the window a callback may launch what it likes.
#[test]
fn work_launched_around_the_window_does_not_end_it() {
    for (callback, inner) in [
        (Callback::Wants, Outcome::Replayed),
        (Callback::Configure, Outcome::Replayed),
        // The agent is still ours, so the nested dispatch goes its ordinary way.
        (Callback::Finish, Declined),
    ] {
        let rig = Rig::new(PassPlan::AtMost(3));
        let (nested, action) = Nested::new(&rig, &FakeQueue::new(QueueId(12)));
        rig.observer.on(callback, Reaction::Run(action));
        let launch = rig.launch();
        assert_eq!(rig.dispatch(&launch), Outcome::Replayed, "{callback:?}");
        nested.assert_ran(inner);
        rig.assert_ran_once(&launch);
    }
}

/// Another agent has a window of its own or none; this one does not mind.
#[test]
fn work_launched_on_another_agent_does_not_end_the_window() {
    let rig = Rig::new(PassPlan::AtMost(3));
    let memory = Arc::new(AppMemory::new(&rig.runtime, 0x55));
    let nested = rig.launch_beside(&FakeQueue::new(QueueId(12)), &memory);
    let (engine, inner) = (rig.engine.clone(), nested.clone());
    rig.observer.on(
        Callback::Exit(2),
        run(move || {
            let mut elsewhere = Rig::describe(&inner);
            elsewhere.agent = AgentId(99);
            engine.dispatch(&elsewhere, inner.target());
        }),
    );
    let launch = rig.launch();
    assert_eq!(rig.dispatch(&launch), Outcome::Replayed);
    assert_eq!(nested.left(), Some(Leave::Forward));
    rig.assert_ran_once(&launch);
}

/// A process that shuts down waits for the running pass at most.
#[test]
fn finalizing_ends_a_window_after_the_running_pass() {
    for callback in INSIDE {
        let rig = Rig::new(PassPlan::AtMost(3));
        let engine = rig.engine.clone();
        rig.observer.on(callback, run(move || engine.finalize()));
        let launch = rig.launch();
        let outcome = rig.dispatch(&launch);
        let finished = rig.finished();
        if pass_of(callback) < 2 {
            let ended = (Declined, Some(Reason::Finalizing));
            assert_eq!((outcome, finished.report.reason), ended, "{callback:?}");
            assert!(finished.records.is_empty());
            assert_eq!(launch.executions(), pass_of(callback) + 1);
        } else {
            assert_eq!(outcome, Outcome::Replayed, "all passes have run");
            assert_eq!(finished.records.len(), 3);
        }
        assert_eq!(launch.left(), Some(Leave::Complete));
        rig.assert_ran_once(&launch);
    }
}

/// A dispatch that was configured before the process shut down is declined.
#[test]
fn finalizing_declines_what_was_just_configured() {
    let rig = Rig::new(PassPlan::AtMost(3));
    let engine = rig.engine.clone();
    rig.observer
        .on(Callback::Configure, run(move || engine.finalize()));
    let launch = rig.launch();
    assert_eq!(rig.dispatch(&launch), Declined);
    assert_eq!(rig.finished().report.reason, Some(Reason::Finalizing));
    assert_eq!(launch.left(), Some(Leave::Forward));
    rig.assert_ran_once(&launch);
}

/// Nothing is put back over nested work, not even if the pass that it was launched before fails.
#[test]
fn nested_work_survives_a_pass_that_fails() {
    for step in [|| Step::Fail(Reason::QueueError), || Step::TimeOut] {
        for pass in 0..3 {
            let rig = Rig::new(PassPlan::AtMost(3));
            let (nested, action) = Nested::new(&rig, &FakeQueue::new(QueueId(12)));
            rig.observer
                .on(Callback::Enter(pass), Reaction::Run(action));
            let launch = rig.launch().on(Call::Wait(pass), step());
            assert_eq!(rig.dispatch(&launch), Declined, "pass {pass}");
            nested.assert_ran(Declined);
            rig.assert_ran_once(&launch);
        }
    }
}

/// Switched off in the middle of a window, the engine lets it finish, and the dispatches of other
/// threads go on waiting for it: what they did would be undone by the next restore.
#[test]
fn switching_off_lets_no_dispatch_into_an_open_window() {
    let off: [fn(&Rig); 2] = [
        |rig| rig.engine.set_active(false),
        |rig| rig.engine.finalize(),
    ];
    for off in off {
        let rig = Rig::new(PassPlan::Exactly(3));
        let memory = Arc::new(AppMemory::new(&rig.runtime, 0x55));
        let beside = rig.launch_beside(&FakeQueue::new(QueueId(12)), &memory);
        let (entered, inside) = mpsc::channel();
        let (launched, wait) = mpsc::channel();
        let in_pass_1 = move || {
            entered.send(()).unwrap();
            // Long enough for a dispatch that does not wait to have run.
            let _ = wait.recv_timeout(Duration::from_millis(20));
        };
        let launch = rig
            .launch()
            .on(Call::Wait(1), Step::Run(Box::new(in_pass_1)));
        thread::scope(|scope| {
            let window = scope.spawn(|| rig.dispatch(&launch));
            inside.recv().unwrap();
            off(&rig);
            rig.engine
                .dispatch(&Rig::describe(&beside), beside.target());
            // It is gone if the window did not wait for us, as it should not.
            let _ = launched.send(());
            window.join().unwrap();
        });
        assert_eq!((beside.signal(), beside.executions()), (0, 1));
        assert_eq!(memory.bytes(), memory.after(1), "its output is still there");
        rig.assert_ran_once(&launch);
    }
}

/// Switched off in a callback, the engine still notices what that callback launches.
#[test]
fn work_launched_in_a_callback_that_switched_off_ends_the_window() {
    let rig = Rig::new(PassPlan::Exactly(3));
    let (nested, action) = Nested::new(&rig, &FakeQueue::new(QueueId(12)));
    let engine = rig.engine.clone();
    rig.observer.on(
        Callback::Exit(1),
        run(move || {
            engine.set_active(false);
            action();
        }),
    );
    let launch = rig.launch();
    assert_eq!(rig.dispatch(&launch), Declined);
    assert_eq!(rig.finished().report.reason, Some(Reason::Reentrant));
    nested.assert_ran(Outcome::Untargeted);
    rig.assert_ran_once(&launch);
}

/// What a thread does that has a window on another agent, as a callback may, and whose launch on this
/// one has waited for too long: it comes in, whatever is going on.
fn intrude(rig: &Rig) -> Action {
    let tracker = rig.runtime.tracker().clone();
    Box::new(move || {
        let intruder = thread::spawn(move || {
            let elsewhere = tracker.open_window(AgentId(99), Duration::MAX);
            let inside = tracker.enter_dispatch_nested(Rig::AGENT, Duration::ZERO);
            assert!(inside.beside_window() && elsewhere.is_ok());
        });
        intruder.join().expect("it got in");
    })
}

/// A restore may have undone what a launch did that came in beside it, so the application is told.
#[test]
fn an_intruder_during_a_restore_is_reported() {
    for nth in 0..2 {
        let rig = Rig::new(PassPlan::Exactly(3));
        for _ in 0..nth {
            rig.blit
                .on(BlitCall::Restore, BlitStep::Run(Box::new(|| {})));
        }
        rig.blit.on(BlitCall::Restore, BlitStep::Run(intrude(&rig)));
        let refusal = (Failed, Reason::Reentrant, Leave::Deviated);
        let calls = format!("exit {nth}, restore full");
        rig.assert_refused(&rig.launch(), refusal, &calls);
        rig.assert_works();
    }
}

/// The restore for the application's own run, after a pass that went wrong, is no exception.
#[test]
fn an_intruder_during_the_last_restore_is_reported() {
    for pass in 1..3 {
        let rig = Rig::new(PassPlan::Exactly(3));
        for _ in 0..pass {
            rig.blit
                .on(BlitCall::Restore, BlitStep::Run(Box::new(|| {})));
        }
        rig.blit.on(BlitCall::Restore, BlitStep::Run(intrude(&rig)));
        let step = Step::Fail(Reason::QueueError);
        let launch = rig.launch().on(Call::Wait(pass), step);
        let refusal = (Failed, Reason::QueueError, Leave::Deviated);
        let calls = format!("wait {pass}, broke off, restore full");
        rig.assert_refused(&launch, refusal, &calls);
    }
}

/// Nothing is put back over what an intruder did: not before the next pass, not after a pass that was
/// running when it came and went wrong.
#[test]
fn nothing_is_put_back_over_an_intruder() {
    let rig = Rig::new(PassPlan::Exactly(3));
    let launch = rig.launch().on(Call::Wait(1), Step::Run(intrude(&rig)));
    let refusal = (Declined, Reason::Reentrant, Leave::Complete);
    rig.assert_refused(&launch, refusal, "start 1, wait 1, ran, exit 1");
    rig.assert_works();

    let rig = Rig::new(PassPlan::Exactly(3));
    let launch = rig
        .launch()
        .on(Call::Start(1), Step::Run(intrude(&rig)))
        .on(Call::Wait(1), Step::Fail(Reason::QueueError));
    let refusal = (Failed, Reason::QueueError, Leave::Deviated);
    rig.assert_refused(&launch, refusal, "start 1, wait 1, broke off");
    rig.assert_works();
}

/// Records that memory was handed out whose free nobody saw.
fn miss_a_free(rig: &Rig) -> Action {
    let (tracker, base) = (rig.runtime.tracker().clone(), rig.memory.addrs()[1]);
    Box::new(move || {
        let again = tracker.record(Rig::AGENT, base, 100, MemoryClass::Vram);
        assert!(matches!(again, Err(RecordError::Overlaps { .. })));
    })
}

/// Memory whose free was missed is no longer what was captured, so the window ends before memory
/// would be put back in part.
#[test]
fn memory_that_becomes_untracked_ends_the_window() {
    for callback in INSIDE {
        let rig = Rig::new(PassPlan::AtMost(3));
        rig.observer.on(callback, Reaction::Run(miss_a_free(&rig)));
        let (how, calls) = match callback {
            Callback::Enter(pass) => (Leave::RunOnce, format!("enter {pass}")),
            Callback::Exit(2) => (Leave::Complete, "exit 2".to_owned()),
            _ => (Leave::Complete, format!("another {}", pass_of(callback))),
        };
        let refusal = (Declined, Reason::UntrackedMemory, how);
        rig.assert_refused(&rig.launch(), refusal, &calls);
    }
}

/// Where that happens while memory is put back, the application is told.
#[test]
fn memory_that_becomes_untracked_during_a_restore_is_reported() {
    for rescue in [false, true] {
        let rig = Rig::new(PassPlan::Exactly(3));
        let call = match rescue {
            false => BlitCall::Restore,
            true => {
                rig.blit.on(BlitCall::Restore, BlitStep::Fail);
                BlitCall::Rescue
            }
        };
        rig.blit.on(call, BlitStep::Run(miss_a_free(&rig)));
        let launch = rig.launch();
        assert_eq!(rig.dispatch(&launch), Failed, "{call:?}");
        let finished = rig.finished();
        assert!(finished.records.is_empty());
        assert!(finished.report.message.unwrap().contains("may deviate"));
        assert_eq!((launch.left(), launch.signal()), (Some(Leave::Deviated), 0));
    }
}
