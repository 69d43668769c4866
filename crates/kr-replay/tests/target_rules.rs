//! The rules of [`ReplayTarget`], played on both targets that are not hardware: that of the host
//! runtime keeps them, and the scripted one, which engines are tested with, means the same by them.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use kr_replay::host::{
    HostBuffer, HostKernel, HostQueue, HostRuntime, HostSignal, HostTarget, KernelLaunch,
};
use kr_replay::{Leave, PassPlan, ReplayTarget};
use kr_testkit::replay::{Call, Launch, Rig, ScriptedTarget, Step};
use kr_types::{AgentId, DeviceAddr, DispatchId, PassIndex, Reason};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(10);

/// How the first execution of the kernel ends; the others end well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    Well,
    WithAFault,
    OnlyWhenCancelled,
}

/// One step with the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Do {
    Drain,
    Hold,
    Reach,
    /// Launches the kernel once more on the same queue, behind the target.
    Later,
    Start,
    Wait,
    Cancel,
}

/// Steps, how the target is left then, and how often the kernel has run to its end when all is over,
/// the later launch included; that cannot be told if an execution broke off.
type Scenario = (First, &'static [Do], Leave, Option<u32>);

const SCENARIOS: &[Scenario] = {
    use Do::*;
    use First::*;
    use Leave::*;
    &[
        (Well, &[], Forward, Some(1)),
        (Well, &[Drain], Forward, Some(1)),
        (Well, &[Drain, Hold], RunOnce, Some(1)),
        (Well, &[Drain, Hold, Later], RunOnce, Some(2)),
        (Well, &[Drain, Hold, Reach, Later], RunOnce, Some(2)),
        (Well, &[Drain, Hold, Reach], Deviated, Some(0)),
        (Well, &[Drain, Hold, Reach, Later, Start], Adopt, Some(2)),
        (Well, &[Hold, Reach, Start, Wait], Complete, Some(1)),
        (Well, &[Hold, Later, Reach, Start, Wait], Complete, Some(2)),
        (Well, &[Hold, Reach, Start, Wait, Later], RunOnce, Some(3)),
        (Well, &[Hold, Reach, Start, Wait, Later], Deviated, Some(2)),
        (
            Well,
            &[Hold, Reach, Start, Wait, Start, Wait, Later],
            Complete,
            Some(3),
        ),
        (WithAFault, &[Hold, Reach, Later, Start, Wait], Fault, None),
        (
            WithAFault,
            &[Hold, Reach, Start, Wait, Later],
            RunOnce,
            None,
        ),
        (
            OnlyWhenCancelled,
            &[Hold, Reach, Later, Start, Wait, Cancel],
            RunOnce,
            None,
        ),
    ]
};

/// A backend with one queue and one kernel.
trait Backend {
    type Target: ReplayTarget;

    /// A launch whose first execution ends so.
    fn target(&self, first: First) -> Self::Target;

    /// Launches the kernel without a window.
    fn launch_later(&self);

    /// Waits until nothing of both launches is outstanding, and says how often the kernel has run.
    fn settle(&self) -> Option<u32>;

    /// The signals of the target's launch and the later ones.
    fn signals(&self) -> Vec<i64>;

    /// Rules that were broken, if the backend can tell.
    fn violations(&self) -> Vec<String>;
}

/// Plays a scenario and checks what must hold for every one.
fn play(backend: &impl Backend, (first, steps, how, runs): Scenario) {
    let mut target = backend.target(first);
    assert!(target.queue_is_idle());
    let mut pass = PassIndex::FIRST;
    for step in steps {
        match step {
            Do::Drain => assert_eq!(target.drain(PATIENCE), Ok(true)),
            Do::Hold => assert_eq!(target.hold(), Ok(())),
            Do::Reach => assert_eq!(target.reach(PATIENCE), Ok(true)),
            Do::Later => backend.launch_later(),
            Do::Start => {
                assert_eq!(target.start_pass(DispatchId(1), pass), Ok(()));
                pass = pass.next();
            }
            Do::Wait => match first {
                First::Well => assert!(matches!(target.wait_pass(PATIENCE), Ok(Some(_)))),
                First::WithAFault => {
                    let error = target.wait_pass(PATIENCE).err().expect("it faults");
                    assert_eq!(error.reason, Reason::QueueError);
                }
                First::OnlyWhenCancelled => {
                    let ended = target.wait_pass(Duration::from_millis(5));
                    assert!(matches!(ended, Ok(None)));
                }
            },
            Do::Cancel => assert!(target.cancel_pass(PATIENCE)),
        }
        let outstanding = backend.signals().iter().all(|signal| *signal == 1);
        assert!(outstanding, "nothing completes before the target is left");
    }
    target.leave(how);
    let ran = backend.settle();
    assert!(backend.signals().iter().all(|signal| *signal == 0), "once");
    if runs.is_some() {
        assert_eq!(ran, runs);
    }
    assert_eq!(backend.violations(), [""; 0]);
}

struct Host {
    queue: HostQueue,
    buffer: HostBuffer,
    signals: RefCell<Vec<HostSignal>>,
}

impl Host {
    fn new() -> Self {
        let runtime = HostRuntime::new(AgentId(2));
        let buffer = runtime.alloc(4).expect("the host has memory");
        buffer.write(&[0u32]).expect("it fits");
        Self {
            queue: runtime.queue(),
            buffer,
            signals: RefCell::default(),
        }
    }

    fn launch(&self, first: First) -> HostTarget {
        let is_first = AtomicBool::new(true);
        let kernel = HostKernel::new("increment", move |ctx| {
            let addr = DeviceAddr(ctx.args::<u64>()?);
            match (first, is_first.swap(false, SeqCst)) {
                (First::WithAFault, true) => return ctx.store(DeviceAddr(64), &[1u32]),
                (First::OnlyWhenCancelled, true) => loop {
                    ctx.running()?;
                    std::thread::yield_now();
                },
                _ => {}
            }
            let value = ctx.load::<u32>(addr, 1)?[0];
            ctx.store(addr, &[value + 1])
        });
        let launch = KernelLaunch::new(&kernel, &self.buffer.addr().0);
        let (target, signal) = self.queue.target(&launch);
        self.signals.borrow_mut().push(signal);
        target
    }
}

impl Backend for Host {
    type Target = HostTarget;

    fn target(&self, first: First) -> HostTarget {
        self.launch(first)
    }

    fn launch_later(&self) {
        self.launch(First::Well).forward();
    }

    fn settle(&self) -> Option<u32> {
        for signal in &*self.signals.borrow() {
            // A fault that the application was told of is one; it has completed all the same.
            let _ = signal.wait_for(PATIENCE);
        }
        self.queue.synchronize();
        let value = self.buffer.read::<u32>().expect("it is alive");
        Some(value[0])
    }

    fn signals(&self) -> Vec<i64> {
        let signals = self.signals.borrow();
        signals.iter().map(HostSignal::value).collect()
    }

    fn violations(&self) -> Vec<String> {
        Vec::new()
    }
}

struct Scripted {
    rig: Rig,
    launches: RefCell<Vec<Launch>>,
}

impl Scripted {
    fn new() -> Self {
        Self {
            rig: Rig::new(PassPlan::OPT_OUT),
            launches: RefCell::default(),
        }
    }

    fn launch(&self, launch: Launch) -> ScriptedTarget {
        let target = launch.target();
        self.launches.borrow_mut().push(launch);
        target
    }
}

impl Backend for Scripted {
    type Target = ScriptedTarget;

    fn target(&self, first: First) -> ScriptedTarget {
        let launch = self.rig.launch();
        self.launch(match first {
            First::Well => launch,
            First::WithAFault => launch.on(Call::Wait(0), Step::Fail(Reason::QueueError)),
            First::OnlyWhenCancelled => launch.on(Call::Wait(0), Step::TimeOut),
        })
    }

    fn launch_later(&self) {
        self.launch(self.rig.launch()).leave(Leave::Forward);
    }

    fn settle(&self) -> Option<u32> {
        self.rig.memory.runs()
    }

    fn signals(&self) -> Vec<i64> {
        self.launches.borrow().iter().map(Launch::signal).collect()
    }

    fn violations(&self) -> Vec<String> {
        let launches = self.launches.borrow();
        launches.iter().flat_map(Launch::violations).collect()
    }
}

/// A launch of the host runtime does what the rules say.
#[test]
fn the_host_target_keeps_the_rules() {
    for scenario in SCENARIOS {
        println!("{scenario:?}");
        play(&Host::new(), *scenario);
    }
}

/// The scripted launch means the same by them, and finds nothing in these scenarios that breaks them.
#[test]
fn the_scripted_target_keeps_the_rules() {
    for scenario in SCENARIOS {
        println!("{scenario:?}");
        play(&Scripted::new(), *scenario);
    }
}
