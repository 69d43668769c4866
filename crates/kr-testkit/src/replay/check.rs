//! What every dispatch owes to its application and its profiler, whatever becomes of it.

use kr_replay::Leave;
use kr_types::{Outcome, Reason};

use super::{Launch, Rig};

/// What a dispatch without records ends in.
pub type Refusal = (Outcome, Reason, Leave);

impl Rig {
    /// The application has had its one run of `launch`, on memory that nothing else changed, and the
    /// target was driven by the rules.
    #[track_caller]
    pub fn assert_ran_once(&self, launch: &Launch) {
        assert_eq!(launch.violations(), [""; 0]);
        assert_eq!(launch.signal(), 0);
        assert_ne!(launch.left(), Some(Leave::Deviated));
        assert_eq!(self.memory.bytes(), self.memory.after(1));
    }

    /// Dispatches `launch`, which must end without records as `expected`, and returns the message.
    /// `calls` is what happens up to the verdict, or the last part of it.
    ///
    /// What that kind of end means for the application is checked as well: its signal has fired once,
    /// its memory has seen one run more, or half a run, or the message says that it may deviate; and
    /// so is what it means for the profiler: one report with a counted reason and a message.
    #[track_caller]
    pub fn assert_refused(&self, launch: &Launch, expected: Refusal, calls: &str) -> String {
        let (outcome, reason, how) = expected;
        let (before, counted) = (self.memory.runs(), self.engine.stats().reason(reason));
        let got = self.dispatch(launch);
        let finished = self.finished();
        let report = finished.report;
        let message = report.message.expect("whoever is refused is told why");
        let ended = (report.outcome, report.reason, launch.left());
        assert_eq!(ended, (outcome, Some(reason), Some(how)), "{message}");
        assert_eq!(got, outcome);
        assert!(finished.records.is_empty());
        assert_eq!(self.engine.stats().reason(reason), counted + 1);

        let ran = match how {
            Leave::Forward | Leave::RunOnce | Leave::Adopt => ", ran",
            _ => "",
        };
        let end = format!("{calls}, finish {outcome}, leave {how:?}{ran}");
        let log = self.log.to_string();
        assert!(log.ends_with(&end), "{log}\ndoes not end in\n{end}");

        assert_eq!(launch.violations(), [""; 0]);
        assert_eq!(launch.signal(), 0);
        let deviates = how == Leave::Deviated;
        assert_eq!(message.contains("may deviate"), deviates, "{message}");
        match how {
            Leave::Deviated => assert_eq!(outcome, Outcome::Failed),
            Leave::Fault => assert_eq!(self.memory.bytes(), self.memory.after_half_a_run()),
            // What an earlier dispatch left behind may be no whole number of runs.
            _ => assert_eq!(self.memory.runs(), before.map(|runs| runs + 1)),
        }
        message
    }

    /// The next dispatch is replayed, from memory as it is now, and takes no memory for good.
    #[track_caller]
    pub fn assert_works(&self) {
        let (launch, input) = (self.launch(), self.memory.digest());
        assert_eq!(self.dispatch(&launch), Outcome::Replayed);
        assert_eq!(launch.violations(), [""; 0]);
        let records = self.finished().records;
        assert!(records.iter().all(|record| record.record.input == input));
        assert_eq!(self.engine_bytes(), 0);
    }

    /// The agent takes no window, since work on it was not seen to end; the application goes on.
    #[track_caller]
    pub fn assert_quarantined(&self) {
        self.log.clear();
        let refusal = (Outcome::Declined, Reason::AgentQuarantined, Leave::Forward);
        self.assert_refused(&self.launch(), refusal, "wants, configure");
    }
}
