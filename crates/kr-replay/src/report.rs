//! What became of a dispatch, as data.

use std::collections::BTreeMap;
use std::time::Duration;

use kr_types::{DispatchId, Outcome, Reason, RestoreMode};
use parking_lot::Mutex;

use crate::{Dispatch, PassPlan};

/// How one dispatch that was configured ended.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct WindowReport {
    /// The dispatch's id.
    pub id: DispatchId,
    /// What was dispatched.
    pub dispatch: Dispatch,
    /// What the profiler asked for; [`PassPlan::OPT_OUT`] if it was not asked or panicked.
    pub plan: PassPlan,
    /// What became of it.
    pub outcome: Outcome,
    /// Why, if it was declined or failed.
    pub reason: Option<Reason>,
    /// The reason in a sentence, with the values behind it.
    pub message: Option<String>,
    /// Passes that were executed to their end, repeated ones included.
    pub passes: u32,
    /// How memory was put back, once that was chosen.
    pub mode: Option<RestoreMode>,
    /// True if an open-ended loop was ended by a cap of [`Limits`](crate::Limits).
    pub capped: bool,
    /// Where the time went.
    pub stats: WindowStats,
}

impl WindowReport {
    /// A report with nothing but an outcome, for tests of a profiler's
    /// [`finish`](crate::Observer::finish).
    pub fn new(id: DispatchId, dispatch: Dispatch, outcome: Outcome) -> Self {
        Self {
            id,
            dispatch,
            plan: PassPlan::OPT_OUT,
            outcome,
            reason: None,
            message: None,
            passes: 0,
            mode: None,
            capped: false,
            stats: WindowStats::default(),
        }
    }
}

/// Where the time and the bytes of a window went. Times are host times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WindowStats {
    /// The profiler's `configure`.
    pub configure: Duration,
    /// Waiting for the agent.
    pub agent_wait: Duration,
    /// Waiting for the agent's other queues.
    pub drain: Duration,
    /// Holding the queue and waiting for earlier work of it.
    pub reach: Duration,
    /// Listing and placing the memory to save.
    pub list: Duration,
    /// Saving it.
    pub capture: Duration,
    /// The final check.
    pub verify: Duration,
    /// Stopping a pass that went wrong and putting memory back after it, for the application's own
    /// run.
    pub put_back: Duration,
    /// Regions saved.
    pub regions: u64,
    /// Bytes saved.
    pub bytes: u64,
    /// Bytes whose free was put off until the window had left.
    pub parked_bytes: u64,
    /// Every pass that memory was made ready for, in order; repaired ones come a second time. The last
    /// one may not have been started.
    pub passes: Vec<PassStats>,
    /// From `configure` to the verdict: the sum of the other times and of those of the passes, but
    /// for what the engine takes itself.
    pub total: Duration,
}

/// Where the time of one pass went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PassStats {
    /// Which pass.
    pub pass: u32,
    /// Putting memory back before it.
    pub restore: Duration,
    /// Bytes put back before it.
    pub restored_bytes: u64,
    /// Its execution, from submission to the observed end.
    pub execute: Duration,
    /// The profiler's callbacks.
    pub callbacks: Duration,
}

/// How many dispatches ended how, over the life of an engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineStats {
    counts: BTreeMap<(Outcome, Option<Reason>), u64>,
}

impl EngineStats {
    /// Dispatches with this outcome.
    pub fn outcome(&self, outcome: Outcome) -> u64 {
        let of = |((o, _), n): (&(Outcome, Option<Reason>), &u64)| (*o == outcome).then_some(*n);
        self.counts.iter().filter_map(of).sum()
    }

    /// Dispatches that were declined or failed for this reason.
    pub fn reason(&self, reason: Reason) -> u64 {
        let of = |((_, r), n): (&(_, Option<Reason>), &u64)| (*r == Some(reason)).then_some(*n);
        self.counts.iter().filter_map(of).sum()
    }

    /// All counts that are not zero.
    pub fn iter(&self) -> impl Iterator<Item = (Outcome, Option<Reason>, u64)> + '_ {
        self.counts.iter().map(|((o, r), n)| (*o, *r, *n))
    }
}

/// The engine's counts; locked for one increment at a time.
#[derive(Default)]
pub(crate) struct Counts(Mutex<EngineStats>);

impl Counts {
    pub(crate) fn add(&self, outcome: Outcome, reason: Option<Reason>) {
        *self.0.lock().counts.entry((outcome, reason)).or_default() += 1;
    }

    pub(crate) fn get(&self) -> EngineStats {
        self.0.lock().clone()
    }
}
