//! The least that a profiler is: a number of passes, and what to keep of each.

use std::error::Error;
use std::sync::Arc;

use kr_replay::host::{HostCounters, HostKernel, HostRuntime, KernelLaunch};
use kr_replay::{Dispatch, Observer, PassContext, PassPlan, PassRecord, WindowReport};
use kr_types::{AgentId, DeviceAddr, DispatchId, Outcome};
use parking_lot::Mutex;

#[derive(Default)]
struct Profiler(Mutex<Vec<(Outcome, Vec<HostCounters>)>>);

impl Observer for Profiler {
    type UserData = ();
    type Measured = HostCounters;
    type Record = HostCounters;

    fn configure(&self, _: DispatchId, _: &Dispatch, _: &mut ()) -> PassPlan {
        PassPlan::Exactly(3)
    }

    fn pass_exit(&self, _: &PassContext<'_>, _: &mut (), counters: HostCounters) -> HostCounters {
        counters
    }

    fn finish(&self, report: &WindowReport, (): (), records: Vec<PassRecord<HostCounters>>) {
        let records = records.into_iter().map(|pass| pass.record).collect();
        self.0.lock().push((report.outcome, records));
    }
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let runtime = HostRuntime::new(AgentId(0));
    let profiler = Arc::new(Profiler::default());
    runtime.attach(runtime.engine(profiler.clone()).build()?);

    // The application: it adds one to a number, in place, and does not know of the profiler.
    let number = runtime.alloc(8)?;
    number.write(&[41u64])?;
    let increment = HostKernel::new("increment", |ctx| {
        let addr = DeviceAddr(ctx.args()?);
        let old = ctx.load::<u64>(addr, 1)?[0];
        ctx.store(addr, &[old + 1])
    });
    let launch = KernelLaunch::new(&increment, &number.addr().0);
    runtime.queue().launch(&launch).wait()?;

    assert_eq!(number.read::<u64>()?, [42], "three passes, one increment");
    let profiles = profiler.0.lock();
    let (outcome, passes) = &profiles[0];
    assert_eq!((*outcome, passes.len()), (Outcome::Replayed, 3));
    assert!(passes.iter().all(|pass| pass.bytes_read == 8));
    println!("{outcome}: {passes:#?}");
    Ok(())
}
