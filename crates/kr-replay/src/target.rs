//! The backend's side: one intercepted launch, and what can be done with it.

use std::time::Duration;

use kr_types::{DispatchId, PassIndex, Reason};

/// Why a target could not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TargetError {
    /// What the dispatch is declined or failed with.
    pub reason: Reason,
    /// What happened, for people.
    pub message: String,
}

impl TargetError {
    /// Pairs a reason with what happened.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
        }
    }
}

/// What leaving must still do for the application. In every case its completion signal is
/// decremented once, now or when the run that counts as its own has ended, and then the queue opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Leave {
    /// Nothing was held: the dispatch goes its ordinary way.
    Forward,
    /// Held, nothing of the dispatch runs, memory is its input: run it once, without waiting for
    /// it, after everything that was submitted earlier.
    RunOnce,
    /// A pass is running and counts as the application's own run.
    Adopt,
    /// A pass has ended and memory is its output: complete.
    Complete,
    /// The application's own run ended with a queue error: report that error as its own.
    Fault,
    /// Complete, though the memory may deviate from what one run would have left.
    Deviated,
}

/// One launch that a backend has intercepted and not yet passed on.
///
/// The engine calls [`drain`](Self::drain), [`hold`](Self::hold), [`reach`](Self::reach), then for
/// each pass [`start_pass`](Self::start_pass) and [`wait_pass`](Self::wait_pass), and on every path,
/// a panic included, [`leave`](Self::leave) exactly once, which the type enforces.
///
/// Contract
/// - A call that returns an error has changed nothing, unless its documentation says otherwise.
/// - Waits return within their limit, give or take scheduling.
/// - Between `hold` and `leave` nothing of the queue runs but passes: earlier work has completed
///   once `reach` said so, later work waits.
/// - A pass starts from the kernel arguments as the application passed them, even if the kernel
///   writes them, and runs with what memory holds when it starts.
pub trait ReplayTarget {
    /// What the backend measures in a pass.
    type Measured;

    /// Whether everything that was submitted to the queue before this launch has completed. Does
    /// not block.
    fn queue_is_idle(&self) -> bool;

    /// Waits until the agent's other queues have no outstanding work. `Ok(false)`: they still have.
    ///
    /// # Errors
    ///
    /// [`TargetError`] if it cannot be told.
    fn drain(&mut self, limit: Duration) -> Result<bool, TargetError>;

    /// Holds the queue at this launch: later work waits until [`leave`](Self::leave).
    ///
    /// # Errors
    ///
    /// [`TargetError`] if it cannot be held; nothing is.
    fn hold(&mut self) -> Result<(), TargetError>;

    /// Waits until everything earlier on the queue has completed. `Ok(false)`: it has not.
    ///
    /// # Errors
    ///
    /// [`TargetError`] if it never will.
    fn reach(&mut self, limit: Duration) -> Result<bool, TargetError>;

    /// Starts pass `pass` and returns without waiting.
    ///
    /// # Errors
    ///
    /// [`TargetError`]; the pass was not started.
    fn start_pass(&mut self, id: DispatchId, pass: PassIndex) -> Result<(), TargetError>;

    /// Waits for the pass that was started. `Ok(None)`: it is still running.
    ///
    /// # Errors
    ///
    /// [`TargetError`] if it ended with an error. Nothing of it runs any more; what it wrote until
    /// then stays.
    fn wait_pass(&mut self, limit: Duration) -> Result<Option<Self::Measured>, TargetError>;

    /// Makes the running pass stop and waits until it is seen inactive, which means that it will
    /// not write any more. `false`: that was not seen within the limit.
    fn cancel_pass(&mut self, limit: Duration) -> bool;

    /// Ends the window. What is left to do for the application is in `how`.
    fn leave(self, how: Leave);
}
