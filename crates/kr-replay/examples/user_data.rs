//! Data of one dispatch: `configure` writes it, every pass starts with a copy of that, and `finish`
//! gets it back as `configure` left it.

use std::error::Error;
use std::sync::Arc;

use kr_replay::host::{HostCounters, HostKernel, HostRuntime, KernelLaunch};
use kr_replay::{Dispatch, Observer, PassContext, PassPlan, PassRecord, WindowReport};
use kr_types::{AgentId, DispatchId};
use parking_lot::Mutex;

#[derive(Clone, Default)]
struct Label {
    text: String,
}

#[derive(Default)]
struct Profiler(Mutex<Vec<String>>);

impl Observer for Profiler {
    type UserData = Label;
    type Measured = HostCounters;
    type Record = String;

    fn configure(&self, _: DispatchId, dispatch: &Dispatch, label: &mut Label) -> PassPlan {
        label.text = format!("{} x {}", dispatch.kernel_name, dispatch.grid[0]);
        PassPlan::Exactly(2)
    }

    fn pass_enter(&self, pass: &PassContext<'_>, label: &mut Label) {
        label.text += &format!(", {}", pass.pass);
    }

    fn pass_exit(&self, _: &PassContext<'_>, label: &mut Label, _: HostCounters) -> String {
        label.text.clone()
    }

    fn finish(&self, _: &WindowReport, label: Label, records: Vec<PassRecord<String>>) {
        let mut lines = self.0.lock();
        lines.extend(records.into_iter().map(|pass| pass.record));
        lines.push(label.text);
    }
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let runtime = HostRuntime::new(AgentId(0));
    let profiler = Arc::new(Profiler::default());
    runtime.attach(runtime.engine(profiler.clone()).build()?);

    let idle = HostKernel::new("idle", |_| Ok(()));
    let launch = KernelLaunch::new(&idle, &0u8).grid([64, 1, 1]);
    runtime.queue().launch(&launch).wait()?;

    let lines = profiler.0.lock();
    let want = ["idle x 64, pass 0", "idle x 64, pass 1", "idle x 64"];
    assert_eq!(*lines, want, "what a pass adds, the next one does not see");
    println!("{}", lines.join("\n"));
    Ok(())
}
