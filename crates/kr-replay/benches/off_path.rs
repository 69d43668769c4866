//! What replay costs while it is off: one relaxed load per dispatch and per allocation.
//!
//! `cargo bench -p kr-replay --bench off_path` times it; `docs/off-path.md` shows the assembly of
//! the two functions below, which are kept out of line and unmangled to be found.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use kr_replay::{
    Dispatch, Engine, Leave, Observer, ParkedFree, PassContext, PassPlan, PassRecord, ReplayTarget,
    TargetError, WindowReport,
};
use kr_tracker::{RecordError, Tracker, TrackerConfig};
use kr_types::{
    AgentId, DeviceAddr, DispatchId, KernelId, MemoryClass, Outcome, PassIndex, QueueId, Region,
};

/// Passing on is a store that the optimiser must make.
struct Target<'a>(&'a mut Option<Leave>);

impl ReplayTarget for Target<'_> {
    type Measured = ();

    fn queue_is_idle(&self) -> bool {
        true
    }

    fn drain(&mut self, _: Duration) -> Result<bool, TargetError> {
        Ok(true)
    }

    fn hold(&mut self) -> Result<(), TargetError> {
        Ok(())
    }

    fn reach(&mut self, _: Duration) -> Result<bool, TargetError> {
        Ok(true)
    }

    fn start_pass(&mut self, _: DispatchId, _: PassIndex) -> Result<(), TargetError> {
        Ok(())
    }

    fn wait_pass(&mut self, _: Duration) -> Result<Option<()>, TargetError> {
        Ok(Some(()))
    }

    fn cancel_pass(&mut self, _: Duration) -> bool {
        true
    }

    fn leave(self, how: Leave) {
        *self.0 = Some(how);
    }
}

struct OptOut;

impl Observer for OptOut {
    type UserData = ();
    type Measured = ();
    type Record = ();

    fn configure(&self, _: DispatchId, _: &Dispatch, _: &mut ()) -> PassPlan {
        PassPlan::OPT_OUT
    }

    fn pass_exit(&self, _: &PassContext<'_>, _: &mut (), _: ()) {}

    fn finish(&self, _: &WindowReport, _: (), _: Vec<PassRecord<()>>) {}
}

#[unsafe(no_mangle)]
#[inline(never)]
fn off_path_dispatch(
    engine: &Engine<OptOut>,
    dispatch: &Dispatch,
    left: &mut Option<Leave>,
) -> Outcome {
    engine.dispatch(dispatch, Target(left))
}

#[unsafe(no_mangle)]
#[inline(never)]
fn off_path_record(
    tracker: &Tracker<ParkedFree>,
    base: DeviceAddr,
) -> Result<Option<Region>, RecordError> {
    tracker.record(AgentId(0), base, 4096, MemoryClass::Vram)
}

fn off_path(c: &mut Criterion) {
    let tracker = Arc::new(Tracker::disabled(TrackerConfig::default()));
    let engine = Engine::builder(tracker.clone(), OptOut)
        .build()
        .expect("nobody else claims this tracker");
    engine.set_active(false);
    let dispatch = Dispatch {
        agent: AgentId(0),
        queue: QueueId(0),
        kernel: KernelId(0),
        kernel_name: "kernel".into(),
        kernarg: [].into(),
        grid: [1; 3],
        workgroup: [1; 3],
        private_segment_bytes: 0,
        group_segment_bytes: 0,
    };
    let mut left = None;
    c.bench_function("dispatch passed on without an engine", |b| {
        b.iter(|| Target(black_box(&mut left)).leave(Leave::Forward));
    });
    c.bench_function("dispatch with replay off", |b| {
        b.iter(|| off_path_dispatch(black_box(&engine), &dispatch, black_box(&mut left)));
    });
    assert_eq!(left, Some(Leave::Forward));
    c.bench_function("allocation with tracking off", |b| {
        b.iter(|| off_path_record(black_box(&tracker), DeviceAddr(4096)));
    });
    assert_eq!(tracker.footprint(AgentId(0)).regions, 0);
}

criterion_group!(benches, off_path);
criterion_main!(benches);
