//! Which agents the calling thread is inside of: a stack, innermost last.
//!
//! A thread that is inside an agent must not wait for that agent's lock, since it would wait for
//! itself: a profiler's callback may launch work while a window or a dispatch of the same thread is
//! under way. The stack tells before the lock is touched. It is a stack and not one value, because
//! a window on another agent may open and close inside a window.
//!
//! Invariants
//! - An entry is pushed after its agent was entered and removed before the agent is left, on the
//!   same thread (windows and guards are not `Send`).
//! - One thread is inside one agent on one side only: a dispatch within a window has no entry, a
//!   window within a dispatch is refused.
//!
//! While a thread's locals are being destroyed the stack is gone, and the thread counts as outside.

use std::cell::RefCell;

use kr_types::AgentId;

use crate::gate::Side;
use crate::sync::thread_local;

thread_local! {
    #[allow(
        clippy::missing_const_for_thread_local,
        reason = "the model checker's macro takes no const block"
    )]
    static STACK: RefCell<Vec<Entry>> = RefCell::new(Vec::new());
}

/// One agent of one tracker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Number of the tracker in this process, never reused.
    pub(crate) tracker: u64,
    pub(crate) agent: AgentId,
}

struct Entry {
    place: Place,
    side: Side,
    reentered: bool,
}

/// On which side this thread is inside `place`, if it is.
pub(crate) fn side(place: Place) -> Option<Side> {
    innermost(place, |entry| entry.side)
}

/// Whether this thread has a window open, on any agent of any tracker.
pub(crate) fn in_any_window() -> bool {
    STACK
        .try_with(|stack| {
            stack
                .borrow()
                .iter()
                .any(|entry| entry.side == Side::Window)
        })
        .unwrap_or(false)
}

/// Notes that this thread has entered.
pub(crate) fn push(place: Place, side: Side) {
    let entry = Entry {
        place,
        side,
        reentered: false,
    };
    // Without a stack there is nothing to note on; see the module.
    let _ = STACK.try_with(|stack| stack.borrow_mut().push(entry));
}

/// Notes that this thread is about to leave what it entered last at `place`.
pub(crate) fn pop(place: Place) {
    let _ = STACK.try_with(|stack| {
        let mut stack = stack.borrow_mut();
        if let Some(at) = stack.iter().rposition(|entry| entry.place == place) {
            stack.remove(at);
        }
    });
}

/// Notes that something of this thread wanted in while it has its window on `place`.
pub(crate) fn mark_reentered(place: Place) {
    innermost(place, |entry| entry.reentered = true);
}

/// Whether [`mark_reentered`] was called since the window on `place` opened.
pub(crate) fn is_reentered(place: Place) -> bool {
    innermost(place, |entry| entry.reentered).unwrap_or(false)
}

fn innermost<T>(place: Place, look: impl FnOnce(&mut Entry) -> T) -> Option<T> {
    STACK
        .try_with(|stack| {
            let mut stack = stack.borrow_mut();
            stack
                .iter_mut()
                .rev()
                .find(|entry| entry.place == place)
                .map(look)
        })
        .ok()
        .flatten()
}
