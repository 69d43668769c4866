//! Counters of its own beside the backend's: how long a pass takes as the host sees it.

use std::error::Error;
use std::time::{Duration, Instant};

use kr_replay::host::{HostCounters, HostKernel, HostRuntime, KernelLaunch};
use kr_replay::{Dispatch, Observer, PassContext, PassPlan, PassRecord, WindowReport};
use kr_types::{AgentId, DispatchId};
use parking_lot::Mutex;

/// When a pass was entered, in its own copy of the user data.
type Entered = Option<Instant>;
/// What the backend measured, and the time of the whole pass.
type Sample = (HostCounters, Duration);

#[derive(Default)]
struct Profiler(Mutex<Vec<Sample>>);

impl Observer for Profiler {
    type UserData = Entered;
    type Measured = HostCounters;
    type Record = Sample;

    fn configure(&self, _: DispatchId, _: &Dispatch, _: &mut Entered) -> PassPlan {
        PassPlan::Exactly(3)
    }

    fn pass_enter(&self, _: &PassContext<'_>, entered: &mut Entered) {
        *entered = Some(Instant::now());
    }

    fn pass_exit(&self, _: &PassContext<'_>, at: &mut Entered, kernel: HostCounters) -> Sample {
        (kernel, at.map_or(Duration::ZERO, |at| at.elapsed()))
    }

    fn finish(&self, _: &WindowReport, _: Entered, records: Vec<PassRecord<Sample>>) {
        self.0.lock().extend(records.into_iter().map(|r| r.record));
    }
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let runtime = HostRuntime::new(AgentId(0));
    let engine = runtime.attach(runtime.engine(Profiler::default()).build()?);

    let nap = HostKernel::new("nap", |_| {
        std::thread::sleep(Duration::from_millis(1));
        Ok(())
    });
    let launch = KernelLaunch::new(&nap, &0u8);
    runtime.queue().launch(&launch).wait()?;

    let samples = engine.observer().0.lock();
    assert_eq!(samples.len(), 3);
    for (kernel, pass) in samples.iter() {
        assert!(*pass >= kernel.wall, "the kernel ran in between");
        println!("kernel {:?} of {pass:?}", kernel.wall);
    }
    Ok(())
}
