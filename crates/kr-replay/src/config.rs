//! Limits: how long and how often, with the defaults that ARCHITECTURE.md explains.

use std::time::Duration;

/// How long the steps of a window may take, and how far an open-ended loop may go.
///
/// A step that runs out of time ends the window in a defined way; see
/// [`Reason`](kr_types::Reason) for what each is called.
///
/// A dispatch that finds the agent in a window waits for the windows before it, each of which keeps
/// to its limits; a loop of a fixed number of passes takes as long as its passes take.
///
/// ```
/// use std::time::Duration;
/// use kr_replay::Limits;
///
/// let patient = Limits { first_pass: Duration::from_secs(600), ..Limits::default() };
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// For work of the agent's other queues to end. Default 5 s.
    pub drain: Duration,
    /// For earlier work of the same queue to end. Default 2 s.
    pub reach: Duration,
    /// For a capture. Default 10 s.
    pub capture: Duration,
    /// For one restore. Default 10 s.
    pub restore: Duration,
    /// For the final check. Default 10 s.
    pub verify: Duration,
    /// For pass 0. Default 30 s.
    pub first_pass: Duration,
    /// For a later pass at least. Default 2 s.
    pub later_pass: Duration,
    /// For a later pass as a multiple of pass 0's time, if that is more. Default 10.
    pub later_pass_factor: u32,
    /// For a cancelled pass to be seen inactive. Default 2 s.
    pub cancel: Duration,
    /// Passes of an open-ended loop at the most. Default 1,024.
    pub open_ended_passes: u32,
    /// Time after which an open-ended loop starts no further pass. Default 60 s.
    pub open_ended_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            drain: Duration::from_secs(5),
            reach: Duration::from_secs(2),
            capture: Duration::from_secs(10),
            restore: Duration::from_secs(10),
            verify: Duration::from_secs(10),
            first_pass: Duration::from_secs(30),
            later_pass: Duration::from_secs(2),
            later_pass_factor: 10,
            cancel: Duration::from_secs(2),
            open_ended_passes: 1024,
            open_ended_time: Duration::from_secs(60),
        }
    }
}

impl Limits {
    /// The limit of a pass after the first, which took `first`.
    pub(crate) fn later_pass(&self, first: Duration) -> Duration {
        self.later_pass
            .max(first.saturating_mul(self.later_pass_factor))
    }

    /// How long a window waits for the agent: the sum of the limits of a window with one pass.
    pub(crate) fn agent(&self) -> Duration {
        [
            self.drain,
            self.reach,
            self.capture,
            self.first_pass,
            self.cancel,
            self.restore,
            self.verify,
        ]
        .iter()
        .fold(Duration::ZERO, |sum, limit| sum.saturating_add(*limit))
    }
}
