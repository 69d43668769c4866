//! The profiler's side: what it is asked and told about each dispatch.

use kr_types::{AgentId, DispatchId, PassIndex, Verified};

use crate::{Dispatch, WindowReport};

/// How many passes a dispatch gets.
///
/// | plan | result |
/// |---|---|
/// | `Exactly(0)`, `AtMost(0)` | declined, reason `bad-plan` |
/// | `Exactly(1)`, `AtMost(1)` | opted out: no pass callbacks |
/// | `Exactly(n)` | n passes; [`Observer::wants_another`] is not asked |
/// | `AtMost(n)` | asked after each pass but the last; never more than n |
/// | `OpenEnded` | asked after each pass, within [`Limits`](crate::Limits)' caps |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PassPlan {
    /// This many passes.
    Exactly(u32),
    /// This many passes unless the profiler stops earlier.
    AtMost(u32),
    /// Until the profiler stops.
    OpenEnded,
}

impl PassPlan {
    /// The plan of a dispatch that is not to be replayed.
    pub const OPT_OUT: Self = Self::Exactly(1);

    /// Passes that will run at the most, if the plan says.
    pub const fn total(self) -> Option<u32> {
        match self {
            Self::Exactly(n) | Self::AtMost(n) => Some(n),
            Self::OpenEnded => None,
        }
    }
}

/// One pass of one dispatch.
#[derive(Clone, Copy, Debug)]
pub struct PassContext<'a> {
    /// The dispatch's id, the same in all its passes.
    pub id: DispatchId,
    /// What is dispatched.
    pub dispatch: &'a Dispatch,
    /// Which pass, from 0.
    pub pass: PassIndex,
    /// Passes at the most; `None` for an open-ended loop.
    pub total: Option<u32>,
}

impl PassContext<'_> {
    /// The agent that runs it.
    pub fn agent(&self) -> AgentId {
        self.dispatch.agent
    }
}

/// What one pass yielded, released after the window's verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassRecord<R> {
    /// Which pass, from 0.
    pub pass: PassIndex,
    /// When it was checked that the pass started from the captured bytes.
    pub verified: Verified,
    /// What [`Observer::pass_exit`] returned.
    pub record: R,
}

/// A profiler.
///
/// For one dispatch the calls come in this order, all on the thread that launched it:
/// [`wants`](Self::wants), [`configure`](Self::configure), then per pass
/// [`pass_enter`](Self::pass_enter), [`pass_exit`](Self::pass_exit) and perhaps
/// [`wants_another`](Self::wants_another), and [`finish`](Self::finish) exactly once if `configure`
/// returned. A pass that did not end in time has no `pass_exit`. Passes from 2 on may come a second
/// time when a deviation is repaired; the records of their first run are dropped.
///
/// A callback may allocate and free memory and launch work. Freed memory that a window holds is
/// really freed when the window has left. Launching work on the agent that is being replayed ends
/// its window before the next pass, without records (`reentrant`), since that work would run in
/// the middle of it, and so does copying to or from that agent's memory; waiting for such work inside
/// the callback dead-locks. A callback that panics
/// costs the dispatch its records (`tool-panicked`), not the application its run.
pub trait Observer: Send + Sync + 'static {
    /// Data of one dispatch. `configure` writes it, each pass starts with a copy, a pass's own
    /// changes are seen by its `pass_exit` and `wants_another` and nowhere else, and `finish` gets
    /// what `configure` left.
    type UserData: Clone + Default;
    /// What the backend measures in a pass ([`ReplayTarget::Measured`](crate::ReplayTarget)).
    type Measured;
    /// What the profiler keeps of a pass.
    type Record: Send;

    /// Whether the dispatch is of interest at all; asked before it gets an id.
    fn wants(&self, dispatch: &Dispatch) -> bool {
        let _ = dispatch;
        true
    }

    /// How many passes it gets.
    fn configure(&self, id: DispatchId, dispatch: &Dispatch, user: &mut Self::UserData)
    -> PassPlan;

    /// A pass is about to run, on the captured memory.
    fn pass_enter(&self, pass: &PassContext<'_>, user: &mut Self::UserData) {
        let _ = (pass, user);
    }

    /// A pass has ended. The returned record is kept until the verdict.
    fn pass_exit(
        &self,
        pass: &PassContext<'_>,
        user: &mut Self::UserData,
        measured: Self::Measured,
    ) -> Self::Record;

    /// Whether another pass should follow; see [`PassPlan`] for when it is asked.
    fn wants_another(&self, pass: &PassContext<'_>, user: &mut Self::UserData) -> bool {
        let _ = (pass, user);
        true
    }

    /// The verdict. `records` has one entry per pass, in order, if the outcome is `replayed` or
    /// `repaired`, and none otherwise. The application's completion signal fires after this call.
    fn finish(
        &self,
        report: &WindowReport,
        user: Self::UserData,
        records: Vec<PassRecord<Self::Record>>,
    );
}

/// An observer that is shared with whoever shows its results.
impl<O: Observer> Observer for std::sync::Arc<O> {
    type UserData = O::UserData;
    type Measured = O::Measured;
    type Record = O::Record;

    fn wants(&self, dispatch: &Dispatch) -> bool {
        (**self).wants(dispatch)
    }

    fn configure(&self, id: DispatchId, dispatch: &Dispatch, user: &mut O::UserData) -> PassPlan {
        (**self).configure(id, dispatch, user)
    }

    fn pass_enter(&self, pass: &PassContext<'_>, user: &mut O::UserData) {
        (**self).pass_enter(pass, user);
    }

    fn pass_exit(
        &self,
        pass: &PassContext<'_>,
        user: &mut O::UserData,
        measured: O::Measured,
    ) -> O::Record {
        (**self).pass_exit(pass, user, measured)
    }

    fn wants_another(&self, pass: &PassContext<'_>, user: &mut O::UserData) -> bool {
        (**self).wants_another(pass, user)
    }

    fn finish(
        &self,
        report: &WindowReport,
        user: O::UserData,
        records: Vec<PassRecord<O::Record>>,
    ) {
        (**self).finish(report, user, records);
    }
}
