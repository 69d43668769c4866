//! What holds for any script: of faults of the backend, of deeds of the profiler, and of plans.
//!
//! The numbers are those of the list of invariants in ARCHITECTURE.md.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Weak, mpsc};
use std::thread;
use std::time::Duration;

use kr_blit::Verdict;
use kr_device::host::{Fault, HostDevice};
use kr_policy::Fixed;
use kr_replay::host::HostBuffer;
use kr_replay::{Leave, Limits, PassPlan};
use kr_testkit::replay::{
    Action, AppMemory, BlitCall, BlitStep, Call, Callback, Event, FakeQueue, Finished, Launch,
    Measured, Reaction, Rig, Step, ToolMemory,
};
use kr_tracker::TrackerConfig;
use kr_types::{
    AgentId, DeviceAddr, DispatchId, MemoryClass, Outcome, PassIndex, QueueId, Reason, RestoreMode,
    Tier,
};
use parking_lot::Mutex;
use proptest::prelude::*;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(10);
/// Passes that troubles are scripted for.
const PASSES: u32 = 5;

#[derive(Clone, Copy, Debug)]
enum Trouble {
    Fail,
    TimeOut,
    Take(Duration),
}

#[derive(Clone, Copy, Debug)]
enum BlitTrouble {
    Fail,
    TimeOut,
    UnlistedChange,
    ImageDamaged,
}

#[derive(Clone, Copy, Debug)]
enum Deed {
    Panic,
    Stop,
    Free,
    Alloc,
    LaunchHere,
    LaunchBeside,
    SwitchOff,
    Finalize,
}

/// One dispatch and all that goes wrong with it.
#[derive(Clone, Debug)]
struct Case {
    plan: PassPlan,
    mode: RestoreMode,
    /// Restores by list miss a buffer.
    incomplete_list: bool,
    parked_bound: u64,
    target: Vec<(Call, Trouble)>,
    blit: Vec<(BlitCall, BlitTrouble)>,
    device: Vec<(Fault, u64)>,
    observer: Vec<(Callback, Deed)>,
}

fn plan() -> impl Strategy<Value = PassPlan> {
    let passes = || prop_oneof![1 => 0..2u32, 8 => 2..=PASSES];
    prop_oneof![
        passes().prop_map(PassPlan::Exactly),
        passes().prop_map(PassPlan::AtMost),
        Just(PassPlan::OpenEnded),
    ]
}

fn target_trouble() -> impl Strategy<Value = (Call, Trouble)> {
    let at_once = prop_oneof![
        1 => Just(Call::Hold),
        2 => (0..PASSES).prop_map(Call::Start),
    ];
    let waits = prop_oneof![
        1 => Just(Call::Drain),
        1 => Just(Call::Reach),
        6 => (0..PASSES).prop_map(Call::Wait),
        2 => Just(Call::Cancel),
    ];
    let trouble = prop_oneof![
        Just(Trouble::Fail),
        Just(Trouble::TimeOut),
        (0..40u64).prop_map(|s| Trouble::Take(Duration::from_secs(s))),
    ];
    prop_oneof![
        1 => at_once.prop_map(|call| (call, Trouble::Fail)),
        4 => (waits, trouble),
    ]
}

fn blit_trouble() -> impl Strategy<Value = (BlitCall, BlitTrouble)> {
    let moves = prop_oneof![Just(BlitTrouble::Fail), Just(BlitTrouble::TimeOut)];
    let checks = prop_oneof![
        Just(BlitTrouble::Fail),
        Just(BlitTrouble::TimeOut),
        Just(BlitTrouble::UnlistedChange),
        Just(BlitTrouble::ImageDamaged),
    ];
    prop_oneof![
        1 => moves.clone().prop_map(|trouble| (BlitCall::Capture, trouble)),
        2 => moves.clone().prop_map(|trouble| (BlitCall::Restore, trouble)),
        1 => moves.prop_map(|trouble| (BlitCall::Rescue, trouble)),
        2 => checks.prop_map(|trouble| (BlitCall::Verify, trouble)),
    ]
}

fn device_fault() -> impl Strategy<Value = (Fault, u64)> {
    let fault = prop_oneof![
        Just(Fault::Alloc),
        Just(Fault::Submit),
        Just(Fault::Copy),
        Just(Fault::Read),
        Just(Fault::Write),
    ];
    (fault, 0..40u64)
}

fn deed() -> impl Strategy<Value = (Callback, Deed)> {
    let pass = || 0..PASSES;
    let inside = prop_oneof![
        pass().prop_map(Callback::Enter),
        pass().prop_map(Callback::Exit),
        pass().prop_map(Callback::Another),
    ];
    let around = prop_oneof![
        Just(Callback::Wants),
        Just(Callback::Configure),
        Just(Callback::Finish),
    ];
    let anywhere = || {
        prop_oneof![
            Just(Deed::Panic),
            Just(Deed::Stop),
            Just(Deed::Free),
            Just(Deed::Alloc),
            Just(Deed::SwitchOff),
            Just(Deed::Finalize),
        ]
    };
    let launches = prop_oneof![Just(Deed::LaunchHere), Just(Deed::LaunchBeside)];
    prop_oneof![
        6 => (inside.clone(), anywhere()),
        2 => (inside, launches),
        1 => (around, anywhere()),
    ]
}

fn any_case() -> impl Strategy<Value = Case> {
    let mode = prop_oneof![
        1 => Just(RestoreMode::Full),
        1 => Just(RestoreMode::HashEveryPass),
        2 => Just(RestoreMode::HashOnce),
    ];
    (
        plan(),
        mode,
        any::<bool>(),
        prop_oneof![Just(u64::MAX), Just(ToolMemory::BYTES)],
        prop::collection::vec(target_trouble(), 0..3),
        prop::collection::vec(blit_trouble(), 0..3),
        prop::collection::vec(device_fault(), 0..2),
        prop::collection::vec(deed(), 0..4),
    )
        .prop_map(
            |(plan, mode, incomplete_list, parked_bound, target, blit, device, observer)| Case {
                plan,
                mode,
                incomplete_list,
                parked_bound,
                target,
                blit,
                device,
                observer,
            },
        )
}

/// What a profiler's callbacks left behind.
#[derive(Default)]
struct Deeds {
    frees: usize,
    allocated: Vec<HostBuffer>,
    nested: Vec<(Arc<AppMemory>, Launch)>,
}

/// A case that has run.
struct Ran {
    rig: Rig,
    launch: Launch,
    outcome: Outcome,
    finished: Vec<Finished<Measured>>,
    deeds: Arc<Mutex<Deeds>>,
}

const FILL: [u8; 64] = [0xa5; 64];

/// What a callback does in `case`, if it needs more than an answer.
fn action(rig: &Rig, deeds: &Arc<Mutex<Deeds>>, deed: Deed) -> Action {
    let deeds = deeds.clone();
    let (runtime, engine) = (rig.runtime.clone(), Arc::downgrade(&rig.engine));
    let engine = move || Weak::upgrade(&engine).expect("it runs this");
    match deed {
        Deed::Free => {
            let memory = ToolMemory::new(rig, MemoryClass::Vram);
            Box::new(move || {
                assert_ne!(memory.free(), "unknown");
                deeds.lock().frees += 1;
            })
        }
        Deed::Alloc => Box::new(move || {
            let Ok(buffer) = runtime.alloc(FILL.len() as u64) else {
                return; // An injected fault.
            };
            let written = runtime.device().write_bytes(buffer.addr(), &FILL);
            written.expect("the buffer was just made");
            deeds.lock().allocated.push(buffer);
        }),
        Deed::SwitchOff => Box::new(move || engine().set_active(false)),
        Deed::Finalize => Box::new(move || engine().finalize()),
        Deed::LaunchHere | Deed::LaunchBeside => {
            let memory = Arc::new(AppMemory::new(&rig.runtime, 0x55));
            let queue = match deed {
                Deed::LaunchHere => rig.queue.clone(),
                _ => FakeQueue::new(QueueId(12)),
            };
            let launch = rig.launch_beside(&queue, &memory);
            Box::new(move || {
                deeds.lock().nested.push((memory, launch.clone()));
                engine().dispatch(&Rig::describe(&launch), launch.target());
            })
        }
        Deed::Panic | Deed::Stop => unreachable!("these are answers"),
    }
}

fn run(case: &Case) -> Ran {
    let config = TrackerConfig::default().with_parked_bound_bytes(case.parked_bound);
    let rig = Rig::with_tracker(case.plan, config, |builder| {
        let limits = Limits {
            open_ended_passes: PASSES,
            ..Limits::default()
        };
        builder.limits(limits).policy(Fixed(case.mode))
    });
    if case.incomplete_list {
        rig.blit.unlist(rig.memory.addrs()[1]);
    }
    let deeds = Arc::<Mutex<Deeds>>::default();
    for &(callback, deed) in &case.observer {
        let reaction = match deed {
            Deed::Panic => Reaction::Panic,
            Deed::Stop => Reaction::Stop,
            _ => Reaction::Run(action(&rig, &deeds, deed)),
        };
        rig.observer.on(callback, reaction);
    }
    for &(call, trouble) in &case.blit {
        let first = rig.memory.addrs()[1];
        let step = match trouble {
            BlitTrouble::Fail => BlitStep::Fail,
            BlitTrouble::TimeOut => BlitStep::TimeOut,
            BlitTrouble::UnlistedChange => {
                BlitStep::Verdict(Verdict::UnlistedChange { tiles: 1, first })
            }
            BlitTrouble::ImageDamaged => {
                BlitStep::Verdict(Verdict::ImageDamaged { tiles: 1, first })
            }
        };
        rig.blit.on(call, step);
    }
    for &(fault, n) in &case.device {
        rig.runtime.device().fail_nth(fault, n);
    }
    let launch = case.target.iter().fold(rig.launch(), |launch, step| {
        let (call, trouble) = *step;
        let step = match trouble {
            Trouble::Fail => Step::Fail(Reason::QueueError),
            Trouble::TimeOut => Step::TimeOut,
            Trouble::Take(time) => Step::Take(time),
        };
        launch.on(call, step)
    });
    let outcome = rig.dispatch(&launch);
    Ran {
        finished: rig.observer.take_finished(),
        rig,
        launch,
        outcome,
        deeds,
    }
}

impl Ran {
    /// The dispatch's id, if it was configured.
    fn id(&self) -> Option<DispatchId> {
        self.rig.log.events().iter().find_map(|event| match event {
            Event::Configure(id) => Some(*id),
            _ => None,
        })
    }

    /// What `finish` was told of the dispatch, and not of nested ones.
    fn own(&self) -> Option<&Finished<Measured>> {
        let id = self.id()?;
        self.finished.iter().find(|f| f.report.id == id)
    }

    fn position(&self, pick: impl Fn(&Event) -> bool) -> Option<usize> {
        self.rig.log.events().iter().position(pick)
    }

    /// Where the target was left.
    fn leave(&self) -> usize {
        self.position(|event| matches!(event, Event::Leave(_)))
            .expect("every target is left")
    }

    /// Whether a pass could not be stopped, so that its agent is not replayed on any more.
    fn is_given_up(&self) -> bool {
        let reason = self.own().and_then(|own| own.report.reason);
        reason == Some(Reason::PassTimeout) && self.how() == Some(Leave::Deviated)
    }

    fn is_good(&self) -> bool {
        matches!(self.outcome, Outcome::Replayed | Outcome::Repaired)
    }

    fn how(&self) -> Option<Leave> {
        self.launch.left()
    }

    /// Lets everything that outlived its limit happen: copies, and a pass that was not stopped.
    fn finish_late_work(&self) {
        self.rig.blit.finish_copies();
        self.launch.finish_pass();
    }

    fn executions_outside_passes(&self) -> usize {
        usize::from(matches!(self.how(), Some(Leave::Forward | Leave::RunOnce)))
    }
}

fn used_bytes(device: &HostDevice) -> u64 {
    device.used_bytes(Tier::Device) + device.used_bytes(Tier::PinnedHost)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 800, ..ProptestConfig::default() })]

    /// 1: the application's signal is decremented exactly once, that of nested work too, and the
    /// target is driven by the rules.
    #[test]
    fn invariant_01_signal_decremented_exactly_once(case in any_case()) {
        let ran = run(&case);
        prop_assert_eq!(ran.launch.signal(), 0);
        prop_assert_eq!(ran.rig.log.count(|e| matches!(e, Event::Leave(_))), 1);
        prop_assert_eq!(ran.launch.violations(), Vec::<String>::new());
        for (_, nested) in &ran.deeds.lock().nested {
            prop_assert_eq!((nested.signal(), nested.executions()), (0, 1));
            prop_assert_eq!(nested.violations(), Vec::<String>::new());
        }
    }

    /// 2: one id for CONFIG, all passes, all records and a declined run; records are keyed by it
    /// and the pass.
    #[test]
    fn invariant_02_one_id_for_everything(case in any_case()) {
        let ran = run(&case);
        let mut configured = Vec::new();
        for event in ran.rig.log.events() {
            match event {
                Event::Configure(id) => {
                    prop_assert!(!configured.contains(&id), "an id is given once");
                    configured.push(id);
                }
                Event::Start(id, _) | Event::Enter(id, _) | Event::Exit(id, _)
                | Event::Another(id, _) => prop_assert_eq!(Some(id), ran.id()),
                Event::Finish(id, _) => prop_assert!(configured.contains(&id)),
                _ => {}
            }
        }
        if let Some(own) = ran.own() {
            let passes: Vec<_> = own.records.iter().map(|record| record.pass).collect();
            let expected: Vec<_> = (0..passes.len() as u32).map(PassIndex).collect();
            prop_assert_eq!(passes, expected);
        }
    }

    /// 3: nothing is written to memory that is not what was captured: not to what callbacks or the
    /// application after them allocated, at whatever address, however late the write comes.
    #[test]
    fn invariant_03_only_captured_memory_is_written(case in any_case()) {
        let mut case = case;
        // A free and an allocation of the same size, which gets the address if it can.
        for callback in [Callback::Enter(0), Callback::Exit(1)] {
            case.observer.push((callback, Deed::Free));
            case.observer.push((callback, Deed::Alloc));
        }
        let ran = run(&case);
        ran.rig.memory.free(2);
        let reused = ran.rig.runtime.alloc(4100);
        let fill = |buffer: &HostBuffer| buffer.write(&[FILL[0]; 4100]);
        // Memory may be short: an injected fault.
        prop_assert!(reused.as_ref().map_or(true, |buffer| fill(buffer).is_ok()));
        ran.finish_late_work();
        if let Ok(buffer) = &reused {
            let bytes = buffer.read::<u8>().expect("it is alive");
            prop_assert!(bytes.iter().all(|byte| *byte == FILL[0]));
        }
        for buffer in &ran.deeds.lock().allocated {
            let mut bytes = [0; FILL.len()];
            let read = ran.rig.runtime.device().read_bytes(buffer.addr(), &mut bytes);
            prop_assert!(read.is_ok());
            prop_assert_eq!(bytes, FILL);
        }
    }

    /// 4: nothing starts from a partial capture or a partial restore: every execution, passes or
    /// not, reported or not, starts from the initial bytes.
    #[test]
    fn invariant_04_nothing_starts_from_a_partial_image(case in any_case()) {
        // An incomplete list is found at the end only; the records are none the worse for it.
        let case = Case { incomplete_list: false, ..case };
        let ran = run(&case);
        let initial = ran.rig.memory.initial_digest();
        prop_assert!(ran.launch.inputs().iter().all(|input| *input == initial));
    }

    /// 5: records leave after the verdict and before the application's signal; only of windows
    /// that are good, complete, and all from the same input.
    #[test]
    fn invariant_05_records_leave_after_the_verdict(case in any_case()) {
        let ran = run(&case);
        let records = ran.own().map_or(&[][..], |own| &own.records);
        prop_assert_eq!(!records.is_empty(), ran.is_good());
        if ran.is_good() {
            let is = |what: &'static str| ran.position(|e| e.to_string().starts_with(what));
            let last_verify = ran.rig.log.events().iter().rposition(|e| *e == Event::Verify);
            prop_assert!(last_verify < is("finish") && is("finish") < Some(ran.leave()));
            let initial = ran.rig.memory.initial_digest();
            prop_assert!(records.iter().all(|record| record.record.input == initial));
            let entered = ran.rig.log.events().into_iter().filter_map(|event| match event {
                Event::Enter(_, pass) => Some(pass.0 + 1),
                _ => None,
            });
            prop_assert_eq!(records.len() as u32, entered.max().unwrap_or(0));
        }
    }

    /// 7: every free is carried out, once; one that a window held is so after the window has left.
    #[test]
    fn invariant_07_frees_are_parked_and_carried_out_once(case in any_case()) {
        let mut case = case;
        case.observer.push((Callback::Enter(0), Deed::Free));
        case.observer.push((Callback::Exit(1), Deed::Free));
        let ran = run(&case);
        let events = ran.rig.log.events();
        let freed = |events: &[Event]| {
            events.iter().filter(|e| **e == Event::Note("freed")).count()
        };
        if let Some(capture) = ran.position(|e| *e == Event::Capture) {
            prop_assert_eq!(freed(&events[capture..ran.leave()]), 0);
        }
        // Copies that outlived their limit hold the memory until they have ended; a pass that could
        // not be stopped does so for good.
        ran.finish_late_work();
        ran.rig.engine.settle();
        let (freed, frees) = (freed(&ran.rig.log.events()), ran.deeds.lock().frees);
        match ran.is_given_up() {
            true => prop_assert!(freed <= frees),
            false => prop_assert_eq!(freed, frees),
        }
    }

    /// 9: whatever is not replayed says why, in a word and in a sentence, and is counted.
    #[test]
    fn invariant_09_every_decline_has_a_reason_and_is_counted(case in any_case()) {
        let ran = run(&case);
        let stats = ran.rig.engine.stats();
        let reports: Vec<_> = ran.finished.iter().map(|f| &f.report).collect();
        for report in &reports {
            let refused = matches!(report.outcome, Outcome::Declined | Outcome::Failed);
            prop_assert_eq!(report.reason.is_some(), refused);
            let explains = refused || report.outcome == Outcome::Repaired;
            prop_assert_eq!(report.message.is_some(), explains);
        }
        if let Some(own) = ran.own() {
            prop_assert_eq!(own.report.outcome, ran.outcome);
        }
        let counted: u64 = stats.iter().map(|(_, _, n)| n).sum();
        let wanted = ran.rig.log.count(|e| *e == Event::Wants) as u64;
        prop_assert_eq!(counted, wanted);
        for report in &reports {
            let same = |(outcome, reason, _): &(Outcome, Option<Reason>, u64)| {
                (*outcome, *reason) == (report.outcome, report.reason)
            };
            prop_assert!(stats.iter().any(|count| same(&count)));
        }
    }

    /// 12: nothing comes between the start of a pass and its end, and N passes are N executions;
    /// one more where the application's own run had to be made up for.
    #[test]
    fn invariant_12_passes_are_executions_and_nothing_runs_beside_them(case in any_case()) {
        let ran = run(&case);
        let events = ran.rig.log.events();
        for (at, event) in events.iter().enumerate() {
            if let Event::Wait(pass) = event {
                let is_start = matches!(events[at - 1], Event::Start(_, p) if p == *pass);
                prop_assert!(is_start, "{} before {}", events[at - 1], event);
            }
        }
        let passes = events.iter().filter(|e| matches!(e, Event::Wait(_))).count();
        let executions = ran.launch.executions() as usize;
        prop_assert_eq!(executions, passes + ran.executions_outside_passes());
        let records = ran.own().map_or(0, |own| own.records.len());
        match ran.outcome {
            Outcome::Replayed => prop_assert_eq!(executions, records),
            Outcome::Repaired => prop_assert_eq!(executions, records + records - 2),
            _ => {}
        }
    }

    /// 14: no panic of the profiler comes out of a dispatch, and the engine works afterwards.
    #[test]
    fn invariant_14_no_panic_of_the_profiler_comes_out(case in any_case()) {
        let mut case = case;
        case.observer.push((Callback::Exit(1), Deed::Panic));
        case.observer.push((Callback::Finish, Deed::Panic));
        // A panic that came out would fail this test.
        let ran = run(&case);
        prop_assert_eq!(ran.launch.signal(), 0);
    }

    /// Memory afterwards is what one run leaves, or one run that faulted; unless the dispatch
    /// failed and says that it may not be.
    #[test]
    fn memory_is_what_one_run_leaves_unless_it_is_said_to_deviate(case in any_case()) {
        let ran = run(&case);
        let memory = &ran.rig.memory;
        match ran.how() {
            Some(Leave::Deviated) => {
                prop_assert_eq!(ran.outcome, Outcome::Failed);
                let message = ran.own().and_then(|own| own.report.message.clone());
                prop_assert!(message.is_some_and(|what| what.contains("may deviate")));
            }
            Some(Leave::Fault) => prop_assert_eq!(memory.bytes(), memory.after_half_a_run()),
            _ => prop_assert_eq!(memory.bytes(), memory.after(1)),
        }
        for (memory, _) in &ran.deeds.lock().nested {
            prop_assert_eq!(memory.bytes(), memory.after(1));
        }
    }

    /// `finish` is called once for every `configure`, before the target is left, and never without.
    #[test]
    fn finish_is_called_once_for_every_configure(case in any_case()) {
        let ran = run(&case);
        let events = ran.rig.log.events();
        let ids = |pick: fn(&Event) -> Option<DispatchId>| {
            let mut ids: Vec<_> = events.iter().filter_map(pick).collect();
            ids.sort();
            ids
        };
        let configured = ids(|e| match e { Event::Configure(id) => Some(*id), _ => None });
        let finished = ids(|e| match e { Event::Finish(id, _) => Some(*id), _ => None });
        prop_assert_eq!(configured, finished);
        if let Some(id) = ran.id() {
            let finish = ran.position(|e| matches!(e, Event::Finish(f, _) if *f == id));
            prop_assert!(finish < Some(ran.leave()));
        }
    }

    /// When all is over and copies have ended, no device memory is left in use.
    #[test]
    fn no_device_memory_is_leaked(case in any_case()) {
        let ran = run(&case);
        let device = ran.rig.runtime.device().clone();
        ran.rig.blit.finish_copies();
        drop(ran);
        prop_assert_eq!(used_bytes(&device), 0);
    }
}

/// 3: an address that is handed out again is not what was captured there: memory is parked until
/// the window has left, so it is not even handed out.
#[test]
fn invariant_03_a_parked_address_is_not_handed_out() {
    let rig = Rig::new(PassPlan::Exactly(3));
    let memory = ToolMemory::new(&rig, MemoryClass::Vram);
    let (old, runtime) = (memory.addr(), rig.runtime.clone());
    let (sender, new) = mpsc::channel();
    let reuse = move || {
        memory.free();
        let buffer = runtime.alloc(ToolMemory::BYTES).unwrap();
        sender.send(buffer).unwrap();
    };
    let reaction = Reaction::Run(Box::new(reuse));
    rig.observer.on(Callback::Exit(0), reaction);
    assert_eq!(rig.dispatch(&rig.launch()), Outcome::Replayed);
    let new = new.recv().unwrap();
    assert_ne!(new.addr(), old);
    let after = rig.runtime.alloc(ToolMemory::BYTES).unwrap();
    assert_eq!(after.addr(), old, "now it is");
}

/// 6: whatever the engine is waiting for or calling, other threads get through: they allocate, free
/// and look at the inventory, ask the engine, and launch on other agents.
#[test]
fn invariant_06_no_lock_is_held_over_work_or_callbacks() {
    let rig = Rig::new(PassPlan::AtMost(3));
    let (sender, looked) = mpsc::channel();
    let look = || -> Action {
        let (runtime, engine) = (rig.runtime.clone(), rig.engine.clone());
        let memory = ToolMemory::new(&rig, MemoryClass::Vram);
        let sender = sender.clone();
        Box::new(move || {
            let (done, ended) = mpsc::channel();
            thread::spawn(move || {
                memory.free();
                drop(runtime.alloc(64).unwrap());
                let tracker = runtime.tracker();
                tracker.footprint(Rig::AGENT);
                tracker.region_at(DeviceAddr(1));
                engine.stats();
                engine.refused_kernels();
                drop(tracker.enter_dispatch(AgentId(99)));
                done.send(()).unwrap();
            });
            let got_through = ended.recv_timeout(PATIENCE).is_ok();
            sender.send(got_through).unwrap();
        })
    };
    let calls = [
        Call::Drain,
        Call::Reach,
        Call::Start(0),
        Call::Wait(0),
        Call::Wait(1),
        Call::Leave,
    ];
    let callbacks = [
        Callback::Wants,
        Callback::Configure,
        Callback::Enter(1),
        Callback::Exit(1),
        Callback::Another(1),
        Callback::Finish,
    ];
    let blits = [BlitCall::Capture, BlitCall::Restore, BlitCall::Verify];
    for callback in callbacks {
        rig.observer.on(callback, Reaction::Run(look()));
    }
    for call in blits {
        rig.blit.on(call, BlitStep::Run(look()));
    }
    let launch = calls.into_iter().fold(rig.launch(), |launch, call| {
        launch.on(call, Step::Run(look()))
    });
    assert_eq!(rig.dispatch(&launch), Outcome::Replayed);
    let looked: Vec<_> = looked.try_iter().collect();
    assert_eq!(looked, [true; 15]);
}

/// 13: with replay off nothing but the target is touched: not the profiler, not the clock, not the
/// agent's lock, not the counts.
#[test]
fn invariant_13_off_only_forwards() {
    let rig = Arc::new(Rig::new(PassPlan::Exactly(3)));
    rig.engine.set_active(false);
    let looks = rig.clock.looks();
    // Who looked at the agent's lock would wait for this.
    let inside = rig.runtime.tracker().open_window(Rig::AGENT, PATIENCE);
    let (sender, ended) = mpsc::channel();
    let off = rig.clone();
    thread::spawn(move || {
        let launch = off.launch();
        let outcome = off.dispatch(&launch);
        sender.send((outcome, launch.signal(), launch.executions()))
    });
    let ended = ended.recv_timeout(PATIENCE);
    assert_eq!(ended, Ok((Outcome::Untargeted, 0, 1)));
    drop(inside.unwrap());
    assert_eq!(rig.log.to_string(), "leave Forward, ran");
    assert_eq!(rig.clock.looks(), looks);
    assert_eq!(rig.engine.stats().iter().count(), 0);

    rig.engine.set_active(true);
    assert_eq!(rig.dispatch(&rig.launch()), Outcome::Replayed);
}

/// 14: after finalization nothing but the target is touched, and it cannot be undone.
#[test]
fn invariant_14_finalized_only_forwards() {
    let rig = Rig::new(PassPlan::Exactly(3));
    rig.engine.finalize();
    rig.engine.set_active(true);
    assert!(rig.engine.is_finalizing());
    let launch = rig.launch();
    let looks = rig.clock.looks();
    assert_eq!(rig.dispatch(&launch), Outcome::Untargeted);
    assert_eq!(rig.log.to_string(), "leave Forward, ran");
    assert_eq!(rig.clock.looks(), looks);
    assert_eq!((launch.signal(), launch.executions()), (0, 1));
}

/// 14: nor is it lost to threads that switch replay on and off at that moment.
#[test]
fn invariant_14_finalizing_wins_every_race() {
    for _ in 0..100 {
        let rig = Rig::new(PassPlan::Exactly(3));
        let (done, switched) = (AtomicBool::new(false), AtomicU32::new(0));
        let switch = |active| {
            while !done.load(SeqCst) {
                rig.engine.set_active(active);
                switched.fetch_add(1, SeqCst);
            }
        };
        let outcome = thread::scope(|scope| {
            scope.spawn(|| switch(true));
            scope.spawn(|| switch(false));
            while switched.load(SeqCst) < 200 {
                thread::yield_now();
            }
            rig.engine.finalize();
            let outcome = rig.dispatch(&rig.launch());
            done.store(true, SeqCst);
            outcome
        });
        assert!(rig.engine.is_finalizing());
        assert_eq!(outcome, Outcome::Untargeted);
        assert_eq!(rig.dispatch(&rig.launch()), Outcome::Untargeted);
        assert_eq!(
            rig.log.to_string(),
            "leave Forward, ran, leave Forward, ran"
        );
        assert!(rig.engine.quiesce(Duration::ZERO));
    }
}
