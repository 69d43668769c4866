//! A loop without a planned end: passes go on until the shortest time has not changed for five of
//! them. The engine's caps (`Limits`) end a loop that would never stop.

use std::error::Error;
use std::time::Duration;

use kr_replay::host::{HostCounters, HostKernel, HostRuntime, KernelLaunch};
use kr_replay::{Dispatch, Observer, PassContext, PassPlan, PassRecord, WindowReport};
use kr_types::{AgentId, DispatchId, Outcome};
use parking_lot::Mutex;

/// The times of all passes so far.
#[derive(Default)]
struct Profiler(Mutex<Vec<Duration>>);

impl Observer for Profiler {
    type UserData = ();
    type Measured = HostCounters;
    type Record = ();

    fn configure(&self, _: DispatchId, _: &Dispatch, _: &mut ()) -> PassPlan {
        PassPlan::OpenEnded
    }

    fn pass_exit(&self, _: &PassContext<'_>, _: &mut (), counters: HostCounters) {
        self.0.lock().push(counters.wall);
    }

    fn wants_another(&self, _: &PassContext<'_>, _: &mut ()) -> bool {
        let times = self.0.lock();
        let (earlier, last) = times.split_at(times.len().saturating_sub(5));
        last.iter().min() < earlier.iter().min() || earlier.is_empty()
    }

    fn finish(&self, _: &WindowReport, (): (), _: Vec<PassRecord<()>>) {}
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let runtime = HostRuntime::new(AgentId(0));
    let engine = runtime.attach(runtime.engine(Profiler::default()).build()?);

    let nap = HostKernel::new("nap", |_| {
        std::thread::sleep(Duration::from_micros(100));
        Ok(())
    });
    let launch = KernelLaunch::new(&nap, &0u8);
    runtime.queue().launch(&launch).wait()?;

    assert_eq!(engine.stats().outcome(Outcome::Replayed), 1);
    let times = engine.observer().0.lock();
    assert!((6..1024).contains(&times.len()), "ended by no cap");
    println!(
        "shortest of {} passes: {:?}",
        times.len(),
        times.iter().min()
    );
    Ok(())
}
