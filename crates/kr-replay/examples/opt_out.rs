//! Dispatches that are not replayed: `wants` filters them before they get an id, `configure` may
//! still decide for a single, ordinary run.

use std::error::Error;

use kr_replay::host::{HostCounters, HostKernel, HostRuntime, KernelLaunch};
use kr_replay::{Dispatch, Observer, PassContext, PassPlan, PassRecord, WindowReport};
use kr_types::{AgentId, DispatchId, Outcome};

struct Profiler;

impl Observer for Profiler {
    type UserData = ();
    type Measured = HostCounters;
    type Record = ();

    fn wants(&self, dispatch: &Dispatch) -> bool {
        !dispatch.kernel_name.starts_with("fill")
    }

    fn configure(&self, _: DispatchId, dispatch: &Dispatch, _: &mut ()) -> PassPlan {
        match dispatch.grid[0] {
            ..256 => PassPlan::OPT_OUT,
            _ => PassPlan::Exactly(4),
        }
    }

    fn pass_exit(&self, pass: &PassContext<'_>, _: &mut (), _: HostCounters) {
        assert!(pass.dispatch.grid[0] >= 256, "only what was configured");
    }

    fn finish(&self, report: &WindowReport, (): (), records: Vec<PassRecord<()>>) {
        println!(
            "{}: {}, {} passes",
            report.id,
            report.outcome,
            records.len()
        );
    }
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let runtime = HostRuntime::new(AgentId(0));
    let engine = runtime.attach(runtime.engine(Profiler).build()?);

    let queue = runtime.queue();
    for (name, width) in [("fill", 1024), ("gemm", 64), ("gemm", 1024)] {
        let kernel = HostKernel::new(name, |_| Ok(()));
        let launch = KernelLaunch::new(&kernel, &0u8).grid([width, 1, 1]);
        queue.launch(&launch).wait()?;
    }

    let stats = engine.stats();
    for outcome in [Outcome::Untargeted, Outcome::OptedOut, Outcome::Replayed] {
        assert_eq!(stats.outcome(outcome), 1, "{outcome}");
    }
    Ok(())
}
