//! What happened, in order, over all fakes that share a log.

use std::fmt;
use std::sync::Arc;

use kr_replay::Leave;
use kr_types::{DispatchId, Outcome, PassIndex, RestoreMode};
use parking_lot::Mutex;

/// One call of a fake, or one execution of its kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// [`ReplayTarget::drain`](kr_replay::ReplayTarget::drain)
    Drain,
    /// [`ReplayTarget::hold`](kr_replay::ReplayTarget::hold)
    Hold,
    /// [`ReplayTarget::reach`](kr_replay::ReplayTarget::reach)
    Reach,
    /// [`ReplayTarget::start_pass`](kr_replay::ReplayTarget::start_pass)
    Start(DispatchId, PassIndex),
    /// [`ReplayTarget::wait_pass`](kr_replay::ReplayTarget::wait_pass)
    Wait(PassIndex),
    /// [`ReplayTarget::cancel_pass`](kr_replay::ReplayTarget::cancel_pass)
    Cancel,
    /// [`ReplayTarget::leave`](kr_replay::ReplayTarget::leave)
    Leave(Leave),
    /// The kernel ran from its start to its end.
    Ran,
    /// The kernel stopped half way.
    BrokeOff,
    /// A pass that was not seen to stop went on after all.
    WentOn,
    /// [`BlitEngine::capture`](kr_blit::BlitEngine::capture)
    Capture,
    /// [`BlitEngine::restore`](kr_blit::BlitEngine::restore)
    Restore(RestoreMode),
    /// [`BlitEngine::rescue`](kr_blit::BlitEngine::rescue)
    Rescue,
    /// [`BlitEngine::verify`](kr_blit::BlitEngine::verify)
    Verify,
    /// [`Observer::wants`](kr_replay::Observer::wants)
    Wants,
    /// [`Observer::configure`](kr_replay::Observer::configure)
    Configure(DispatchId),
    /// [`Observer::pass_enter`](kr_replay::Observer::pass_enter)
    Enter(DispatchId, PassIndex),
    /// [`Observer::pass_exit`](kr_replay::Observer::pass_exit)
    Exit(DispatchId, PassIndex),
    /// [`Observer::wants_another`](kr_replay::Observer::wants_another)
    Another(DispatchId, PassIndex),
    /// [`Observer::finish`](kr_replay::Observer::finish)
    Finish(DispatchId, Outcome),
    /// Whatever a test wants to see in order with the rest.
    Note(&'static str),
}

/// One or two words, without ids: what [`Log`] prints.
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drain => f.write_str("drain"),
            Self::Hold => f.write_str("hold"),
            Self::Reach => f.write_str("reach"),
            Self::Start(_, pass) => write!(f, "start {}", pass.0),
            Self::Wait(pass) => write!(f, "wait {}", pass.0),
            Self::Cancel => f.write_str("cancel"),
            Self::Leave(how) => write!(f, "leave {how:?}"),
            Self::Ran => f.write_str("ran"),
            Self::BrokeOff => f.write_str("broke off"),
            Self::WentOn => f.write_str("went on"),
            Self::Capture => f.write_str("capture"),
            Self::Restore(mode) => write!(f, "restore {mode}"),
            Self::Rescue => f.write_str("rescue"),
            Self::Verify => f.write_str("verify"),
            Self::Wants => f.write_str("wants"),
            Self::Configure(_) => f.write_str("configure"),
            Self::Enter(_, pass) => write!(f, "enter {}", pass.0),
            Self::Exit(_, pass) => write!(f, "exit {}", pass.0),
            Self::Another(_, pass) => write!(f, "another {}", pass.0),
            Self::Finish(_, outcome) => write!(f, "finish {outcome}"),
            Self::Note(note) => f.write_str(note),
        }
    }
}

/// A list of events. A handle: clones are the same log.
#[derive(Clone, Debug, Default)]
pub struct Log(Arc<Mutex<Vec<Event>>>);

impl Log {
    /// Adds an event.
    pub fn push(&self, event: Event) {
        self.0.lock().push(event);
    }

    /// All events so far.
    pub fn events(&self) -> Vec<Event> {
        self.0.lock().clone()
    }

    /// How many events `pick` picks.
    pub fn count(&self, pick: impl Fn(&Event) -> bool) -> usize {
        self.0.lock().iter().filter(|event| pick(event)).count()
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.0.lock().clear();
    }
}

impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, event) in self.events().iter().enumerate() {
            let separator = if i == 0 { "" } else { ", " };
            write!(f, "{separator}{event}")?;
        }
        Ok(())
    }
}
