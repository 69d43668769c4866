//! An application, a profiler and an engine between them, all scripted.

use std::sync::Arc;

use kr_device::host::HostDevice;
use kr_replay::host::HostRuntime;
use kr_replay::{Dispatch, Engine, EngineBuilder, PassPlan, Retain};
use kr_tracker::TrackerConfig;
use kr_types::{AgentId, KernelId, Outcome, QueueId, Tier};

use super::{AppMemory, FakeClock, FakeQueue, Finished, Launch, Log, Measured, ScriptedBlit};

type ScriptedObserver = super::ScriptedObserver<Measured>;

/// One agent with an application and an engine in front of it.
pub struct Rig {
    /// Device and tracker; its queues are not used.
    pub runtime: HostRuntime,
    /// What the application's kernel works on.
    pub memory: Arc<AppMemory>,
    /// The application's queue.
    pub queue: FakeQueue,
    /// The engine's clock.
    pub clock: Arc<FakeClock>,
    /// Everything that happens.
    pub log: Log,
    /// The agent's blit engine.
    pub blit: ScriptedBlit,
    /// The profiler.
    pub observer: Arc<ScriptedObserver>,
    /// What all this is for.
    pub engine: Arc<Engine<Arc<ScriptedObserver>>>,
    /// Bytes of device memory that the application uses.
    app_bytes: u64,
}

fn used_bytes(device: &HostDevice) -> u64 {
    let tiers = [Tier::Device, Tier::PinnedHost];
    tiers.iter().map(|tier| device.used_bytes(*tier)).sum()
}

fn builder(
    runtime: &HostRuntime,
    observer: &Arc<ScriptedObserver>,
    clock: &Arc<FakeClock>,
    blit: &ScriptedBlit,
) -> EngineBuilder<Arc<ScriptedObserver>> {
    let builder = Engine::builder(runtime.tracker().clone(), observer.clone());
    // SAFETY: the tracker lists buffers of `runtime` on its device only, and memory of the host
    // device defines races.
    let builder = unsafe { builder.blit_engine(runtime.device().clone(), blit.clone()) };
    // Nothing is kept between windows, so that tests can say when memory is free again.
    builder.clock(clock.clone()).retain(Retain::Freed)
}

impl Rig {
    /// The agent.
    pub const AGENT: AgentId = AgentId(7);
    /// The application's kernel.
    pub const KERNEL: KernelId = KernelId(1);

    /// A rig whose profiler wants `plan` for every dispatch.
    pub fn new(plan: PassPlan) -> Self {
        Self::with(plan, |builder| builder)
    }

    /// As [`new`](Self::new), with an engine that is built in another way.
    pub fn with(
        plan: PassPlan,
        configure: impl FnOnce(
            EngineBuilder<Arc<ScriptedObserver>>,
        ) -> EngineBuilder<Arc<ScriptedObserver>>,
    ) -> Self {
        Self::with_tracker(plan, TrackerConfig::default(), configure)
    }

    /// As [`with`](Self::with), with a tracker that is configured in another way.
    pub fn with_tracker(
        plan: PassPlan,
        config: TrackerConfig,
        configure: impl FnOnce(
            EngineBuilder<Arc<ScriptedObserver>>,
        ) -> EngineBuilder<Arc<ScriptedObserver>>,
    ) -> Self {
        let runtime = HostRuntime::with_device(HostDevice::new(Self::AGENT), config);
        Self::on(runtime, plan, configure)
    }

    /// As [`with`](Self::with), on a runtime that was made before.
    pub fn on(
        runtime: HostRuntime,
        plan: PassPlan,
        configure: impl FnOnce(
            EngineBuilder<Arc<ScriptedObserver>>,
        ) -> EngineBuilder<Arc<ScriptedObserver>>,
    ) -> Self {
        let device = runtime.device().clone();
        let (clock, log) = (Arc::<FakeClock>::default(), Log::default());
        let blit = ScriptedBlit::new(&device, &log);
        let observer = Arc::new(ScriptedObserver::new(plan, &log));
        let engine = configure(builder(&runtime, &observer, &clock, &blit))
            .build()
            .expect("the tracker is new, and there is one agent");
        let memory = Arc::new(AppMemory::new(&runtime, 0));
        Self {
            memory,
            queue: FakeQueue::new(QueueId(11)),
            app_bytes: used_bytes(&device),
            engine: Arc::new(engine),
            runtime,
            clock,
            log,
            blit,
            observer,
        }
    }

    /// Drops the engine and builds another one, for the same application and profiler.
    ///
    /// # Panics
    ///
    /// If someone else still has the engine.
    #[must_use]
    pub fn with_next_engine(self) -> Self {
        drop(self.engine);
        let builder = builder(&self.runtime, &self.observer, &self.clock, &self.blit);
        let engine = builder.build().expect("nobody else has the engine");
        Self {
            engine: Arc::new(engine),
            ..self
        }
    }

    /// A launch of the application's kernel.
    pub fn launch(&self) -> Launch {
        Launch::new(&self.queue, &self.memory, &self.clock, &self.log)
    }

    /// A launch of the kernel on memory of its own, which no log sees: for work beside a window.
    pub fn launch_beside(&self, queue: &FakeQueue, memory: &Arc<AppMemory>) -> Launch {
        Launch::new(queue, memory, &self.clock, &Log::default())
    }

    /// What the engine is told of a launch.
    pub fn describe(launch: &Launch) -> Dispatch {
        Dispatch {
            agent: Self::AGENT,
            queue: launch.queue().id(),
            kernel: Self::KERNEL,
            kernel_name: "step".into(),
            kernarg: [].into(),
            grid: [1; 3],
            workgroup: [1; 3],
            private_segment_bytes: 0,
            group_segment_bytes: 0,
        }
    }

    /// Gives a launch to the engine.
    pub fn dispatch(&self, launch: &Launch) -> Outcome {
        self.engine
            .dispatch(&Self::describe(launch), launch.target())
    }

    /// What the profiler was told of the one dispatch that has finished since the last call.
    pub fn finished(&self) -> Finished<Measured> {
        let mut finished = self.observer.take_finished();
        assert_eq!(finished.len(), 1, "`finish` is called once per dispatch");
        finished.remove(0)
    }

    /// Bytes of device memory that are in use beyond the application's.
    pub fn engine_bytes(&self) -> u64 {
        used_bytes(self.runtime.device()) - self.app_bytes
    }
}
