//! Stopping before the last pass that was planned: here as soon as two passes in a row have done
//! the same amount of work.

use std::error::Error;
use std::sync::Arc;

use kr_replay::host::{HostCounters, HostKernel, HostRuntime, KernelLaunch};
use kr_replay::{Dispatch, Observer, PassContext, PassPlan, PassRecord, WindowReport};
use kr_types::{AgentId, DispatchId};
use parking_lot::Mutex;

/// Operations per pass of the dispatch that runs now, and passes of each that has ended. One queue
/// launches at a time here; with more, the first would be a map from the dispatch's id.
#[derive(Default)]
struct Profiler {
    operations: Mutex<Vec<u64>>,
    passes: Mutex<Vec<usize>>,
}

impl Observer for Profiler {
    type UserData = ();
    type Measured = HostCounters;
    type Record = ();

    fn configure(&self, _: DispatchId, _: &Dispatch, _: &mut ()) -> PassPlan {
        self.operations.lock().clear();
        PassPlan::AtMost(10)
    }

    fn pass_exit(&self, _: &PassContext<'_>, _: &mut (), counters: HostCounters) {
        self.operations.lock().push(counters.operations);
    }

    fn wants_another(&self, _: &PassContext<'_>, _: &mut ()) -> bool {
        !matches!(self.operations.lock()[..], [.., a, b] if a == b)
    }

    fn finish(&self, _: &WindowReport, (): (), records: Vec<PassRecord<()>>) {
        self.passes.lock().push(records.len());
    }
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let runtime = HostRuntime::new(AgentId(0));
    let profiler = Arc::new(Profiler::default());
    runtime.attach(runtime.engine(profiler.clone()).build()?);

    let steady = HostKernel::new("steady", |ctx| {
        ctx.add_operations(100);
        Ok(())
    });
    let launch = KernelLaunch::new(&steady, &0u8);
    runtime.queue().launch(&launch).wait()?;

    assert_eq!(*profiler.passes.lock(), [2], "of ten at the most");
    println!("stopped after 2 of 10 passes");
    Ok(())
}
