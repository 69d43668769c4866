//! Whole windows on the host runtime: real queues, real threads, real copies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use kr_policy::Fixed;
use kr_replay::host::{
    HostBuffer, HostCounters, HostKernel, HostQueue, HostRuntime, HostSignal, HostTarget,
    Intercept, KernelFault, KernelLaunch,
};
use kr_replay::{Engine, EngineBuilder, Limits, PassPlan, Retain};
use kr_testkit::replay::{Callback, Event, Finished, Log, Reaction, ScriptedObserver};
use kr_types::{AgentId, DeviceAddr, Outcome, PassIndex, Reason, RestoreMode, Tier, Verified};

type Observer = ScriptedObserver<HostCounters>;

/// An application on a runtime with an engine in front of its queues.
struct App {
    runtime: HostRuntime,
    log: Log,
    observer: Arc<Observer>,
    engine: Arc<Engine<Arc<Observer>>>,
}

impl App {
    fn new(plan: PassPlan) -> Self {
        Self::limited(plan, |_| {})
    }

    /// With limits of its own; the others are longer than anything here takes.
    fn limited(plan: PassPlan, limit: impl FnOnce(&mut Limits)) -> Self {
        let mut limits = Limits::default();
        for limit in [&mut limits.drain, &mut limits.reach, &mut limits.later_pass] {
            *limit = Duration::from_secs(60);
        }
        limit(&mut limits);
        Self::with(plan, |builder| builder.limits(limits))
    }

    fn with(
        plan: PassPlan,
        configure: impl FnOnce(EngineBuilder<Arc<Observer>>) -> EngineBuilder<Arc<Observer>>,
    ) -> Self {
        let runtime = HostRuntime::new(AgentId(2));
        let log = Log::default();
        let observer = Arc::new(Observer::new(plan, &log));
        // Nothing is kept between windows, so that tests can say when memory is free again.
        let builder = configure(runtime.engine(observer.clone()).retain(Retain::Freed));
        let engine = builder
            .retain(Retain::Freed)
            .build()
            .expect("the tracker is new");
        Self {
            engine: runtime.attach(engine),
            runtime,
            log,
            observer,
        }
    }

    fn attach(&self, engine: &Arc<Engine<Arc<Observer>>>) {
        let _: Arc<Engine<_>> = self.runtime.attach(engine.clone());
    }

    /// A buffer of four values.
    fn buffer(&self, values: [u32; 4]) -> HostBuffer {
        let buffer = self.runtime.alloc(16).expect("the host has memory");
        buffer.write(&values).expect("they fit");
        buffer
    }

    #[track_caller]
    fn finished(&self) -> Finished<HostCounters> {
        let mut finished = self.observer.take_finished();
        assert_eq!(finished.len(), 1, "`finish` is called once per dispatch");
        finished.remove(0)
    }

    /// Launches until a launch is replayed, and says how many that took. With a limit that is short
    /// enough to be waited for, a loaded machine may need more than one.
    fn launch_until_replayed(&self, queue: &HostQueue, launch: &KernelLaunch) -> u32 {
        let mut launches = 0;
        let mut outcome = Outcome::Declined;
        while outcome != Outcome::Replayed {
            queue.synchronize();
            assert_eq!(queue.launch(launch).wait(), Ok(()));
            outcome = self.finished().report.outcome;
            launches += 1;
        }
        launches
    }

    fn used_bytes(&self) -> u64 {
        let device = self.runtime.device();
        device.used_bytes(Tier::Device) + device.used_bytes(Tier::PinnedHost)
    }
}

/// A limit that a test can wait for.
const SHORT: Duration = Duration::from_millis(10);

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(10);

/// Adds one to four values, in place.
fn increment() -> HostKernel {
    HostKernel::new("increment", |ctx| {
        let addr = DeviceAddr(ctx.args::<u64>()?);
        let values = ctx.load::<u32>(addr, 4)?;
        ctx.add_operations(4);
        ctx.store(addr, &values.iter().map(|v| v + 1).collect::<Vec<_>>())
    })
}

fn launch(kernel: &HostKernel, buffer: &HostBuffer) -> KernelLaunch {
    KernelLaunch::new(kernel, &buffer.addr().0)
}

#[track_caller]
fn assert_holds(buffer: &HostBuffer, values: [u32; 4]) {
    assert_eq!(buffer.read::<u32>().expect("it is alive"), values);
}

/// Something that kernels wait for. It is given in the end, whatever happens to the test.
#[derive(Clone, Default)]
struct Flag(Arc<AtomicBool>);

impl Flag {
    fn give(&self) {
        self.0.store(true, SeqCst);
    }

    fn is_given(&self) -> bool {
        self.0.load(SeqCst)
    }

    fn wait(&self) {
        while !self.is_given() {
            thread::sleep(Duration::from_micros(200));
        }
    }
}

struct GiveAtEnd(Flag);

impl Drop for GiveAtEnd {
    fn drop(&mut self) {
        self.0.give();
    }
}

/// [`increment`], which waits for `flag` first in the executions that `hangs` picks, by number.
fn waiting(flag: &Flag, cancellable: bool, hangs: fn(u32) -> bool) -> HostKernel {
    let (flag, executions) = (flag.clone(), AtomicU32::new(0));
    HostKernel::new("waiting", move |ctx| {
        let addr = DeviceAddr(ctx.args::<u64>()?);
        let values = ctx.load::<u32>(addr, 4)?;
        if hangs(executions.fetch_add(1, SeqCst)) {
            // What a broken off pass leaves behind must not stay.
            ctx.store(addr, &[99u32])?;
            while !flag.is_given() {
                if cancellable {
                    ctx.running()?;
                }
                thread::sleep(Duration::from_micros(200));
            }
        }
        ctx.store(addr, &values.iter().map(|v| v + 1).collect::<Vec<_>>())
    })
}

/// An in-place kernel runs three times from the same bytes; the application sees one run.
#[test]
fn an_in_place_kernel_is_replayed() {
    let app = App::new(PassPlan::Exactly(3));
    let buffer = app.buffer([1, 2, 3, 4]);
    let queue = app.runtime.queue();
    let used = app.used_bytes();
    for round in 1..4 {
        let signal = queue.launch(&launch(&increment(), &buffer));
        assert_eq!(signal.wait(), Ok(()));
        assert_eq!(signal.value(), 0);
        assert_holds(&buffer, [1 + round, 2 + round, 3 + round, 4 + round]);
        let finished = app.finished();
        assert_eq!(finished.report.outcome, Outcome::Replayed);
        assert_eq!(finished.report.stats.bytes, 16);
        for (pass, record) in (0..).zip(&finished.records) {
            assert_eq!(record.pass, PassIndex(pass));
            assert_eq!(record.record.operations, 4);
            assert_eq!(record.record.bytes_read, 16);
        }
        assert_eq!(finished.records.len(), 3);
    }
    assert_eq!(app.used_bytes(), used);
}

/// The negative control: without restores the same kernel runs on its own output.
#[test]
fn an_in_place_kernel_goes_wrong_without_restore() {
    let app = App::with(PassPlan::Exactly(3), |builder| builder.without_restore());
    let buffer = app.buffer([1, 2, 3, 4]);
    let signal = app.runtime.queue().launch(&launch(&increment(), &buffer));
    assert_eq!(signal.wait(), Ok(()));
    assert_holds(&buffer, [4, 5, 6, 7]);
}

/// A mode that the agent's engine does not have counts as full, in the report and for the records.
#[test]
fn an_unsupported_mode_counts_as_full() {
    for mode in [RestoreMode::HashOnce, RestoreMode::HashEveryPass] {
        let app = App::with(PassPlan::Exactly(4), |builder| builder.policy(Fixed(mode)));
        let buffer = app.buffer([0; 4]);
        let signal = app.runtime.queue().launch(&launch(&increment(), &buffer));
        assert_eq!(signal.wait(), Ok(()));
        let finished = app.finished();
        assert_eq!(finished.report.mode, Some(RestoreMode::Full));
        let verified = finished.records.iter().map(|record| record.verified);
        assert!(verified.into_iter().all(|v| v == Verified::EveryPass));
    }
}

/// The application's signal fires after the profiler has its records.
#[test]
fn the_signal_fires_after_finish() {
    let app = App::new(PassPlan::Exactly(2));
    let buffer = app.buffer([0; 4]);
    let queue = app.runtime.queue();
    let (target, signal) = queue.target(&launch(&increment(), &buffer));
    let (sender, value) = mpsc::channel();
    let at_finish = signal.clone();
    app.observer.on(
        Callback::Finish,
        Reaction::Run(Box::new(move || sender.send(at_finish.value()).unwrap())),
    );
    let dispatch = target.dispatch().clone();
    assert_eq!(app.engine.dispatch(&dispatch, target), Outcome::Replayed);
    assert_eq!((value.recv(), signal.value()), (Ok(1), 0));
}

/// Launches of many threads on queues of their own, all replayed at once: every buffer has had
/// every launch once, and no two executions overlapped.
#[test]
fn many_queues_launch_at_once() {
    const THREADS: u32 = 4;
    const LAUNCHES: u32 = 12;
    let app = App::new(PassPlan::Exactly(3));
    let (inside, overlaps) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let kernel = {
        let (inside, overlaps) = (inside.clone(), overlaps.clone());
        HostKernel::new("alone", move |ctx| {
            overlaps.fetch_add(inside.fetch_add(1, SeqCst), SeqCst);
            let addr = DeviceAddr(ctx.args::<u64>()?);
            let values = ctx.load::<u32>(addr, 4)?;
            ctx.store(addr, &values.iter().map(|v| v + 1).collect::<Vec<_>>())?;
            inside.fetch_sub(1, SeqCst);
            Ok(())
        })
    };
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let (queue, buffer) = (app.runtime.queue(), app.buffer([0, 1, 2, 3]));
                for n in 1..=LAUNCHES {
                    assert_eq!(queue.launch(&launch(&kernel, &buffer)).wait(), Ok(()));
                    assert_holds(&buffer, [n, n + 1, n + 2, n + 3]);
                }
            });
        }
    });
    let finished = app.observer.take_finished();
    assert_eq!(finished.len() as u32, THREADS * LAUNCHES);
    for finished in &finished {
        assert_eq!(
            finished.report.outcome,
            Outcome::Replayed,
            "{:?}",
            finished.report
        );
        assert_eq!(finished.records.len(), 3);
    }
    let mut ids: Vec<_> = finished.iter().map(|f| f.report.id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), finished.len());
    assert_eq!(overlaps.load(SeqCst), 0);
    assert_eq!(app.used_bytes(), 0);
}

/// Two threads that launch on one queue: their windows come one after the other.
#[test]
fn two_windows_on_one_queue_do_not_interleave() {
    let app = App::new(PassPlan::Exactly(2));
    let (queue, buffer) = (app.runtime.queue(), app.buffer([0; 4]));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let signal = queue.launch(&launch(&increment(), &buffer));
                    assert_eq!(signal.wait(), Ok(()));
                }
            });
        }
    });
    assert_holds(&buffer, [20; 4]);
    let passes = app
        .log
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::Enter(id, _) | Event::Exit(id, _) => Some(id),
            _ => None,
        });
    let passes: Vec<_> = passes.collect();
    for window in passes.chunks(4) {
        assert_eq!(window, [window[0]; 4]);
    }
}

/// A kernel that uses its arguments as scratch finds them as they were in every pass.
#[test]
fn a_kernel_may_write_its_own_arguments() {
    let app = App::new(PassPlan::Exactly(3));
    let (queue, buffer) = (app.runtime.queue(), app.buffer([7; 4]));
    let kernel = HostKernel::new("scratch", |ctx| {
        let [addr, n] = ctx.args::<[u64; 2]>()?;
        ctx.kernarg_mut().fill(0xff);
        ctx.store(DeviceAddr(addr), &[n as u32])
    });
    let launch = KernelLaunch::new(&kernel, &[buffer.addr().0, 42]);
    assert_eq!(queue.launch(&launch).wait(), Ok(()));
    assert_eq!(app.finished().report.outcome, Outcome::Replayed);
    assert_holds(&buffer, [42, 7, 7, 7]);
}

/// A fault of the application's own kernel is the application's: reported once, after one run.
#[test]
fn a_fault_of_the_kernel_reaches_the_application_once() {
    let kernels = [
        HostKernel::new("wild", |ctx| ctx.store(DeviceAddr(64), &[1u32])),
        HostKernel::new("panicking", |_| panic!("as scripted")),
        HostKernel::new("misread", |ctx| ctx.args::<[u64; 9]>().map(drop)),
    ];
    for kernel in kernels {
        let app = App::new(PassPlan::Exactly(3));
        let (queue, buffer) = (app.runtime.queue(), app.buffer([5; 4]));
        let signal = queue.launch(&launch(&kernel, &buffer));
        assert!(signal.wait().is_err(), "{kernel:?}");
        assert_eq!(signal.value(), 0);
        let report = app.finished().report;
        let ended = (report.outcome, report.reason);
        assert_eq!(ended, (Outcome::Declined, Some(Reason::QueueError)));
        assert_eq!(report.stats.passes.len(), 1);
        // The queue goes on.
        assert_eq!(queue.launch(&launch(&increment(), &buffer)).wait(), Ok(()));
        assert_eq!(app.finished().report.outcome, Outcome::Replayed);
        assert_holds(&buffer, [6; 4]);
    }
}

/// A fault that only a later pass has is none of the application's.
#[test]
fn a_fault_of_a_later_pass_does_not_reach_the_application() {
    let app = App::new(PassPlan::Exactly(3));
    let (queue, buffer) = (app.runtime.queue(), app.buffer([5; 4]));
    let executions = AtomicU32::new(0);
    let kernel = HostKernel::new("sometimes", move |ctx| {
        let addr = DeviceAddr(ctx.args::<u64>()?);
        ctx.store(addr, &[6u32; 2])?;
        match executions.fetch_add(1, SeqCst) {
            1 => ctx.store(DeviceAddr(64), &[1u32]),
            _ => ctx.store(addr, &[6u32; 4]),
        }
    });
    assert_eq!(queue.launch(&launch(&kernel, &buffer)).wait(), Ok(()));
    let report = app.finished().report;
    let ended = (report.outcome, report.reason);
    assert_eq!(ended, (Outcome::Failed, Some(Reason::QueueError)));
    assert_holds(&buffer, [6; 4]);
}

/// A kernel that hangs in pass 0 hangs for the application, as it would without us: later work of
/// its queue waits for it, and it completes when it ends.
#[test]
fn a_kernel_that_hangs_is_left_to_the_application() {
    let app = App::limited(PassPlan::Exactly(3), |limits| limits.first_pass = SHORT);
    let flag = Flag::default();
    let _give = GiveAtEnd(flag.clone());
    let (queue, buffer) = (app.runtime.queue(), app.buffer([1; 4]));
    let kernel = waiting(&flag, true, |_| true);
    let first = queue.launch(&launch(&kernel, &buffer));
    let report = app.finished().report;
    let ended = (report.outcome, report.reason);
    assert_eq!(ended, (Outcome::Declined, Some(Reason::PassTimeout)));
    assert_eq!(first.value(), 1, "it is still running");

    let second = queue.launch(&launch(&kernel, &buffer));
    assert_eq!(app.finished().report.reason, Some(Reason::PassTimeout));
    assert_eq!(second.wait_for(Duration::from_millis(5)), Ok(false));
    flag.give();
    assert_eq!((first.wait(), second.wait()), (Ok(()), Ok(())));
    assert_holds(&buffer, [3; 4]);
}

/// A kernel that hangs in a later pass and can be stopped is undone, and runs for the application.
#[test]
fn a_later_pass_that_hangs_is_stopped_and_undone() {
    let app = App::limited(PassPlan::Exactly(3), |limits| {
        (limits.later_pass, limits.later_pass_factor) = (SHORT, 0);
    });
    let flag = Flag::default();
    let _give = GiveAtEnd(flag.clone());
    let (queue, buffer) = (app.runtime.queue(), app.buffer([1; 4]));
    let kernel = waiting(&flag, true, |n| n == 1);
    let signal = queue.launch(&launch(&kernel, &buffer));
    let report = app.finished().report;
    let ended = (report.outcome, report.reason);
    assert_eq!(ended, (Outcome::Failed, Some(Reason::PassTimeout)));
    assert_eq!(signal.wait(), Ok(()));
    assert_holds(&buffer, [2; 4]);
}

/// One that cannot be stopped costs the agent its replay, and nothing of the application waits.
#[test]
fn a_later_pass_that_cannot_be_stopped_costs_the_agent() {
    let app = App::limited(PassPlan::Exactly(3), |limits| {
        (limits.later_pass, limits.later_pass_factor) = (SHORT, 0);
        limits.cancel = SHORT;
    });
    let flag = Flag::default();
    let _give = GiveAtEnd(flag.clone());
    let (queue, buffer) = (app.runtime.queue(), app.buffer([1; 4]));
    let kernel = waiting(&flag, false, |n| n == 1);
    assert_eq!(queue.launch(&launch(&kernel, &buffer)).wait(), Ok(()));
    let report = app.finished().report;
    assert_eq!(report.outcome, Outcome::Failed);
    assert!(report.message.unwrap().contains("may deviate"));

    let other = app.buffer([1; 4]);
    assert_eq!(queue.launch(&launch(&increment(), &other)).wait(), Ok(()));
    let reason = app.finished().report.reason;
    assert_eq!(reason, Some(Reason::AgentQuarantined));
    assert_holds(&other, [2; 4]);
}

/// Earlier work of the queue that does not end: the dispatch runs after it, in order, and the queue
/// is replayed again once it has been idle.
#[test]
fn a_queue_that_is_stuck_runs_in_order() {
    let app = App::limited(PassPlan::Exactly(2), |limits| limits.reach = SHORT);
    let flag = Flag::default();
    let _give = GiveAtEnd(flag.clone());
    let (queue, buffer) = (app.runtime.queue(), app.buffer([1; 4]));
    app.engine.set_active(false);
    let stuck = queue.launch(&launch(&waiting(&flag, true, |_| true), &buffer));
    app.engine.set_active(true);

    let double = HostKernel::new("double", |ctx| {
        let addr = DeviceAddr(ctx.args::<u64>()?);
        let values = ctx.load::<u32>(addr, 4)?;
        ctx.store(addr, &values.iter().map(|v| v * 2).collect::<Vec<_>>())
    });
    let signals = [(); 2].map(|()| {
        let signal = queue.launch(&launch(&double, &buffer));
        let reason = app.finished().report.reason;
        assert_eq!(reason, Some(Reason::ReachTimeout));
        assert_eq!(signal.value(), 1);
        signal
    });
    flag.give();
    assert_eq!(stuck.wait(), Ok(()));
    assert!(signals.iter().all(|signal| signal.wait().is_ok()));
    assert_holds(&buffer, [8; 4]);
    let launches = app.launch_until_replayed(&queue, &launch(&double, &buffer));
    assert_holds(&buffer, [8 << launches; 4]);
}

/// Work of another queue that does not end: the dispatch goes its ordinary way beside it.
#[test]
fn another_queue_that_is_stuck_does_not_hold_the_application_up() {
    let app = App::limited(PassPlan::Exactly(2), |limits| limits.drain = SHORT);
    let flag = Flag::default();
    let _give = GiveAtEnd(flag.clone());
    let (queue, stuck_queue) = (app.runtime.queue(), app.runtime.queue());
    let (buffer, other) = (app.buffer([1; 4]), app.buffer([1; 4]));
    app.engine.set_active(false);
    let stuck = stuck_queue.launch(&launch(&waiting(&flag, true, |_| true), &other));
    app.engine.set_active(true);

    assert_eq!(queue.launch(&launch(&increment(), &buffer)).wait(), Ok(()));
    assert_eq!(app.finished().report.reason, Some(Reason::DrainTimeout));
    assert_eq!(stuck.value(), 1);
    assert_holds(&buffer, [2; 4]);
    flag.give();
    stuck_queue.synchronize();
    let launches = app.launch_until_replayed(&queue, &launch(&increment(), &buffer));
    assert_holds(&buffer, [2 + launches; 4]);
}

/// Runs `meanwhile` on another thread while pass 1 of a three-pass window is running. The pass goes
/// on when it has returned, or gives the flag.
fn during_pass_1(
    app: &App,
    queue: &HostQueue,
    buffer: &HostBuffer,
    meanwhile: impl FnOnce(&HostSignal, Flag) + Send,
) {
    let (entered, done) = (Flag::default(), Flag::default());
    let kernel = {
        let (executions, entered, done) = (AtomicU32::new(0), entered.clone(), done.clone());
        HostKernel::new("meanwhile", move |ctx| {
            let addr = DeviceAddr(ctx.args::<u64>()?);
            let values = ctx.load::<u32>(addr, 4)?;
            if executions.fetch_add(1, SeqCst) == 1 {
                entered.give();
                done.wait();
            }
            ctx.store(addr, &values.iter().map(|v| v + 1).collect::<Vec<_>>())
        })
    };
    let (target, signal) = queue.target(&launch(&kernel, buffer));
    let dispatch = target.dispatch().clone();
    thread::scope(|scope| {
        let window = scope.spawn(|| app.engine.dispatch(&dispatch, target));
        entered.wait();
        let other = scope.spawn(|| {
            let _give = GiveAtEnd(done.clone());
            meanwhile(&signal, done.clone());
        });
        assert!(other.join().is_ok());
        assert_eq!(window.join().ok(), Some(Outcome::Replayed));
    });
    assert_eq!(signal.value(), 0);
    assert_holds(buffer, [2; 4]);
}

/// A buffer that is dropped during a window is freed when the window has left; what takes its place
/// is never written to.
#[test]
fn a_buffer_may_be_dropped_and_another_made_during_a_window() {
    let app = App::new(PassPlan::Exactly(3));
    let (queue, buffer) = (app.runtime.queue(), app.buffer([1; 4]));
    let doomed = app.buffer([7; 4]);
    let used = app.used_bytes();
    let mut new = None;
    during_pass_1(&app, &queue, &buffer, |signal, _| {
        let old = doomed.addr();
        drop(doomed);
        let buffer = app.runtime.alloc(16).expect("the host has memory");
        let device = app.runtime.device();
        let written = device.write_bytes(buffer.addr(), &[0xee; 16]);
        written.expect("it was just made");
        assert_ne!(buffer.addr(), old);
        assert_eq!(signal.value(), 1);
        new = Some(buffer);
    });
    assert_eq!(app.finished().report.stats.parked_bytes, 16);
    let new = new.expect("the other thread made it");
    assert_eq!(new.read::<u8>().expect("it is alive"), [0xee; 16]);
    assert_eq!(app.used_bytes(), used);
}

/// A thread that writes another buffer waits for the window, and its bytes are there afterwards.
#[test]
fn a_write_from_another_thread_survives_a_window() {
    let app = App::new(PassPlan::Exactly(3));
    let (queue, buffer) = (app.runtime.queue(), app.buffer([1; 4]));
    let other = app.buffer([7; 4]);
    during_pass_1(&app, &queue, &buffer, |signal, go_on| {
        thread::spawn(move || {
            thread::sleep(SHORT);
            go_on.give();
        });
        other.write(&[8u32; 4]).expect("it fits");
        assert_eq!(signal.value(), 0, "it waited for the window");
    });
    assert_holds(&other, [8; 4]);
}

/// However writes and windows meet, no write is lost.
#[test]
fn writes_race_windows_and_are_never_lost() {
    let app = App::new(PassPlan::Exactly(3));
    let (queue, buffer, other) = (app.runtime.queue(), app.buffer([0; 4]), app.buffer([0; 4]));
    let stop = Flag::default();
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut n = 0;
            while !stop.is_given() {
                n += 1;
                other.write(&[n; 4]).expect("it fits");
                assert_holds(&other, [n; 4]);
            }
            n
        });
        for _ in 0..30 {
            let signal = queue.launch(&launch(&increment(), &buffer));
            assert_eq!(signal.wait(), Ok(()));
        }
        stop.give();
        assert!(writer.join().expect("it found its bytes") > 0);
    });
    assert_holds(&buffer, [30; 4]);
}

/// A queue may be dropped with work outstanding: what was launched runs to its end.
#[test]
fn a_queue_may_be_dropped_with_work_outstanding() {
    for active in [true, false] {
        let app = App::limited(PassPlan::Exactly(3), |limits| limits.first_pass = SHORT);
        let flag = Flag::default();
        let _give = GiveAtEnd(flag.clone());
        app.engine.set_active(active);
        let (queue, buffer) = (app.runtime.queue(), app.buffer([1; 4]));
        let kernel = waiting(&flag, true, |_| true);
        let signals = [(); 2].map(|()| queue.launch(&launch(&kernel, &buffer)));
        drop(queue);
        assert!(signals.iter().all(|signal| signal.value() == 1));
        flag.give();
        assert!(signals.iter().all(|signal| signal.wait().is_ok()));
        assert_holds(&buffer, [3; 4]);
    }
}

/// Work that a callback launches is not lost, on whatever queue, and ends the window.
#[test]
fn work_launched_in_a_callback_is_not_lost() {
    for same_queue in [true, false] {
        for callback in [Callback::Enter(1), Callback::Exit(1), Callback::Another(1)] {
            let app = App::new(PassPlan::AtMost(3));
            let queue = Arc::new(app.runtime.queue());
            let inner_queue = match same_queue {
                true => queue.clone(),
                false => Arc::new(app.runtime.queue()),
            };
            let (buffer, inner) = (app.buffer([1; 4]), app.buffer([5; 4]));
            let inner_launch = launch(&increment(), &inner);
            let (sender, signal) = mpsc::channel();
            app.observer.on(
                callback,
                Reaction::Run(Box::new(move || {
                    sender.send(inner_queue.launch(&inner_launch)).unwrap();
                })),
            );
            assert_eq!(queue.launch(&launch(&increment(), &buffer)).wait(), Ok(()));
            let [nested, outer] = &app.observer.take_finished()[..] else {
                panic!("two dispatches were configured");
            };
            for finished in [nested, outer] {
                assert_eq!(finished.report.reason, Some(Reason::Reentrant));
            }
            assert_eq!(signal.recv().unwrap().wait(), Ok(()));
            assert_holds(&inner, [6; 4]);
            assert_holds(&buffer, [2; 4]);
        }
    }
}

/// Detached, or with its engine gone, a runtime is as if it had never had one.
#[test]
fn without_an_engine_launches_go_straight_to_the_queue() {
    let app = App::new(PassPlan::Exactly(3));
    let (queue, buffer) = (app.runtime.queue(), app.buffer([1; 4]));
    app.runtime.detach();
    drop(app.engine);
    let kernel = increment();
    assert_eq!(queue.launch(&launch(&kernel, &buffer)).wait(), Ok(()));
    assert_holds(&buffer, [2; 4]);
    assert_eq!(app.log.to_string(), "");

    let engine = app.runtime.engine(app.observer.clone()).build().unwrap();
    app.runtime.attach(engine);
    assert_eq!(queue.launch(&launch(&kernel, &buffer)).wait(), Ok(()));
    assert_eq!(app.observer.take_finished().len(), 1);
}

/// A limit beyond the clock's range is no limit.
#[test]
fn a_limit_may_be_as_long_as_it_likes() {
    let app = App::with(PassPlan::Exactly(2), |builder| {
        let mut limits = Limits::default();
        (limits.drain, limits.reach) = (Duration::MAX, Duration::MAX);
        (limits.first_pass, limits.capture) = (Duration::MAX, Duration::MAX);
        builder.limits(limits)
    });
    let (queue, buffer) = (app.runtime.queue(), app.buffer([1; 4]));
    let signal = queue.launch(&launch(&increment(), &buffer));
    assert_eq!(signal.wait_for(Duration::MAX), Ok(true));
    assert_eq!(app.finished().report.outcome, Outcome::Replayed);
}

/// The error that the application gets is the one of its own kernel.
#[test]
fn a_fault_names_what_the_kernel_did() {
    let app = App::new(PassPlan::Exactly(3));
    let (queue, buffer) = (app.runtime.queue(), app.buffer([5; 4]));
    let kernel = HostKernel::new("panicking", |_| panic!("as scripted"));
    let fault = queue.launch(&launch(&kernel, &buffer)).wait().unwrap_err();
    assert_eq!(fault, KernelFault::Panicked("as scripted".to_owned()));
    let message = app.finished().report.message.unwrap();
    assert!(message.contains("panicking") && message.contains("as scripted"));
}

/// Ways for a launch to reach its queue without the engine that has a window open.
#[derive(Clone, Copy, Debug)]
enum Past {
    /// The engine was taken away.
    Detached,
    /// Another interceptor took its place, which passes everything on.
    Replaced,
    /// The engine is off.
    Off,
    /// Whoever launches looked before the window opened, and passes the launch on now.
    Forwarded,
    /// The same, and forgets to pass it on.
    Dropped,
}

/// An interceptor that does nothing.
struct PassOn;

impl Intercept for PassOn {
    fn intercept(&self, target: HostTarget) {
        target.forward();
    }
}

/// However a launch of another thread comes past the engine while a window is open, no restore of
/// that window undoes it.
#[test]
fn a_launch_past_the_engine_survives_a_window() {
    for past in [
        Past::Detached,
        Past::Replaced,
        Past::Off,
        Past::Forwarded,
        Past::Dropped,
    ] {
        let app = App::new(PassPlan::Exactly(3));
        let (queue, buffer) = (app.runtime.queue(), app.buffer([1; 4]));
        let (other_queue, other) = (app.runtime.queue(), app.buffer([7; 4]));
        let beside = launch(&increment(), &other);
        let early = match past {
            Past::Forwarded | Past::Dropped => Some(other_queue.target(&beside)),
            _ => None,
        };
        during_pass_1(&app, &queue, &buffer, |window, go_on| {
            match past {
                Past::Detached => app.runtime.detach(),
                Past::Replaced => drop(app.runtime.attach(PassOn)),
                Past::Off => app.engine.set_active(false),
                Past::Forwarded | Past::Dropped => {}
            }
            let launch_it = || match (past, early) {
                (Past::Forwarded, Some((target, signal))) => {
                    target.forward();
                    signal
                }
                (_, Some((target, signal))) => {
                    drop(target);
                    signal
                }
                (_, None) => other_queue.launch(&beside),
            };
            let (sender, ran) = mpsc::channel();
            thread::scope(|scope| {
                scope.spawn(move || {
                    let signal = launch_it();
                    sender.send(signal.wait()).expect("the test waits for it");
                    assert_eq!(signal.value(), 0, "{past:?}");
                });
                // Long enough for a launch that does not wait to have run.
                let early = ran.recv_timeout(SHORT);
                assert_eq!(window.value(), 1);
                go_on.give();
                let ran = early.or_else(|_| ran.recv());
                assert_eq!(ran, Ok(Ok(())), "{past:?}");
            });
        });
        assert_holds(&other, [8; 4]);
    }
}

/// The documented way from one engine to the next, taken while a window is open: it is waited for,
/// nothing is lost, and the next engine replays.
#[test]
fn an_engine_is_replaced_while_a_window_is_open() {
    let app = App::new(PassPlan::Exactly(3));
    let (queue, buffer) = (app.runtime.queue(), app.buffer([1; 4]));
    during_pass_1(&app, &queue, &buffer, |_, go_on| {
        app.runtime.detach();
        app.engine.set_active(false);
        assert!(!app.engine.quiesce(Duration::ZERO), "a window is open");
        go_on.give();
        assert!(app.engine.quiesce(PATIENCE));
    });
    assert_eq!(app.finished().records.len(), 3);
    let App {
        runtime,
        observer,
        engine,
        ..
    } = app;
    drop(engine);
    let next = runtime.engine(observer.clone()).build();
    runtime.attach(next.expect("the one before is gone"));
    let signal = queue.launch(&launch(&increment(), &buffer));
    assert_eq!((signal.wait(), signal.value()), (Ok(()), 0));
    let finished = observer.take_finished();
    let outcomes: Vec<_> = finished.iter().map(|f| f.report.outcome).collect();
    assert_eq!(outcomes, [Outcome::Replayed]);
    assert_holds(&buffer, [3; 4]);
}

/// An engine of another runtime would save and restore the memory of that one, so it replays nothing
/// here, also where the agents have the same name and the same addresses.
#[test]
fn an_engine_of_another_runtime_only_passes_on() {
    let (app, other) = (
        App::new(PassPlan::Exactly(3)),
        App::new(PassPlan::Exactly(3)),
    );
    let (buffer, elsewhere) = (app.buffer([1; 4]), other.buffer([7; 4]));
    assert_eq!(buffer.addr(), elsewhere.addr());
    app.attach(&other.engine);
    let queue = app.runtime.queue();
    for n in 1..3 {
        let signal = queue.launch(&launch(&increment(), &buffer));
        assert_eq!((signal.wait(), signal.value()), (Ok(()), 0));
        assert_holds(&buffer, [1 + n; 4]);
    }
    assert_holds(&elsewhere, [7; 4]);
    assert_eq!(
        (app.log.to_string(), other.log.to_string()),
        Default::default()
    );

    app.attach(&app.engine);
    assert_eq!(queue.launch(&launch(&increment(), &buffer)).wait(), Ok(()));
    assert_eq!(app.finished().report.outcome, Outcome::Replayed);
}

/// A launch that nobody passes on runs when it is dropped, and completes once.
#[test]
fn a_dropped_target_still_runs() {
    let app = App::new(PassPlan::Exactly(3));
    let (queue, buffer) = (app.runtime.queue(), app.buffer([1; 4]));
    let (target, signal) = queue.target(&launch(&increment(), &buffer));
    assert_eq!(signal.value(), 1);
    drop(target);
    assert_eq!(signal.wait_for(PATIENCE), Ok(true));
    queue.synchronize();
    assert_eq!(signal.value(), 0);
    assert_holds(&buffer, [2; 4]);
    assert_eq!(app.log.to_string(), "");
}

/// The work of a queue that was dropped is waited for like that of any other, for as long as it runs.
#[test]
fn a_dropped_queue_is_drained() {
    let app = App::limited(PassPlan::Exactly(2), |limits| limits.drain = SHORT);
    let flag = Flag::default();
    let _give = GiveAtEnd(flag.clone());
    let (queue, dropped) = (app.runtime.queue(), app.runtime.queue());
    let (buffer, other) = (app.buffer([1; 4]), app.buffer([1; 4]));
    app.engine.set_active(false);
    let stuck = dropped.launch(&launch(&waiting(&flag, true, |_| true), &other));
    app.engine.set_active(true);
    drop(dropped);
    // Queues that come after it do not make the runtime forget it.
    drop(app.runtime.queue());

    assert_eq!(queue.launch(&launch(&increment(), &buffer)).wait(), Ok(()));
    assert_eq!(app.finished().report.reason, Some(Reason::DrainTimeout));
    flag.give();
    assert_eq!(stuck.wait(), Ok(()));
    let launches = app.launch_until_replayed(&queue, &launch(&increment(), &buffer));
    assert_holds(&buffer, [2 + launches; 4]);
}
