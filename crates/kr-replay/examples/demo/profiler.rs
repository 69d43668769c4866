//! A profiler in one screen: several passes of every dispatch, the counters of each kept until the
//! engine has said how the dispatch ended. Copy it and put your own counters in.

use kr_replay::host::HostCounters;
use kr_replay::{Dispatch, Observer, PassContext, PassPlan, PassRecord, WindowReport};
use kr_types::DispatchId;
use parking_lot::{Mutex, MutexGuard};

/// What became of one dispatch.
#[derive(Debug)]
pub(crate) struct Profile {
    /// Outcome, reason, and where the time went.
    pub(crate) report: WindowReport,
    /// The counters of each pass, in order; none unless the dispatch was replayed.
    pub(crate) passes: Vec<HostCounters>,
}

/// Runs every dispatch `passes` times.
#[derive(Debug)]
pub(crate) struct Profiler {
    passes: u32,
    profiles: Mutex<Vec<Profile>>,
}

impl Profiler {
    pub(crate) fn new(passes: u32) -> Self {
        Self {
            passes,
            profiles: Mutex::default(),
        }
    }

    /// Every dispatch so far, in the order in which they ended.
    pub(crate) fn profiles(&self) -> MutexGuard<'_, Vec<Profile>> {
        self.profiles.lock()
    }
}

impl Observer for Profiler {
    type UserData = ();
    type Measured = HostCounters;
    type Record = HostCounters;

    fn configure(&self, _: DispatchId, _: &Dispatch, _: &mut ()) -> PassPlan {
        PassPlan::Exactly(self.passes)
    }

    fn pass_exit(&self, _: &PassContext<'_>, _: &mut (), counters: HostCounters) -> HostCounters {
        counters
    }

    fn finish(&self, report: &WindowReport, (): (), records: Vec<PassRecord<HostCounters>>) {
        let report = report.clone();
        let passes = records.into_iter().map(|pass| pass.record).collect();
        self.profiles().push(Profile { report, passes });
    }
}
