//! The agent lock: dispatches enter an agent together, a window enters it alone.
//!
//! Policy: first come, first served. Everyone who has to wait stands in one line; dispatches that
//! are next to each other in it enter together. So neither side can starve the other: a dispatch
//! that arrives behind a waiting window waits for it, a window that arrives behind waiting
//! dispatches waits for those, and nobody waits for one who came later. A window that gives up
//! leaves the line, and those behind it move up at once.
//!
//! Invariants
//! - Never a window and anyone else inside, but for a dispatch that [intruded](Gate::intrude). The
//!   window it met is told, and no other window enters before it leaves.
//! - The first in line cannot enter: whoever changes the state admits all who can, on their behalf,
//!   before the lock is released. A waiter only finds out that it is inside.
//! - Tickets in the line rise from front to back, and only a waiter itself or its admission takes
//!   its ticket out. Hence "my ticket is before the front" means "I am inside".
//!
//! Not here: who the threads are. Re-entrancy is decided in [`inside`](crate::inside) before a gate
//! is touched.

use std::collections::VecDeque;
use std::time::Instant;

use crate::sync::{Condvar, Mutex};

/// How one enters an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Reader: shares the agent with other dispatches.
    Dispatch,
    /// Writer: has the agent alone.
    Window,
}

/// One agent's lock.
pub(crate) struct Gate {
    line: Mutex<Line>,
    /// Signalled whenever someone waiting was let in. Used with `line` only.
    moved: Condvar,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self {
            line: Mutex::new(Line::default()),
            moved: Condvar::new(),
        }
    }

    /// Waits in line and enters; `false` if `deadline` passed first, and then nothing has changed.
    pub(crate) fn enter(&self, side: Side, deadline: Option<Instant>) -> bool {
        let mut line = self.line.lock();
        let ticket = line.join(side);
        while !line.is_inside(ticket) {
            let timed_out = match deadline {
                Some(deadline) => self.moved.wait_until(&mut line, deadline).timed_out(),
                None => {
                    self.moved.wait(&mut line);
                    false
                }
            };
            // Being let in and running out of time can coincide; then one is inside.
            if timed_out && !line.is_inside(ticket) {
                line.give_up(ticket);
                self.moved.notify_all();
                return false;
            }
        }
        true
    }

    /// Enters as a dispatch if that needs no waiting.
    pub(crate) fn try_enter_dispatch(&self) -> bool {
        self.line.lock().try_enter_dispatch()
    }

    /// Enters as a dispatch past the line, for a thread that is inside as one already: if it stood
    /// in line behind a window, the window would wait for it in turn.
    pub(crate) fn enter_dispatch_again(&self) {
        self.line.lock().dispatches += 1;
    }

    /// Takes one `side` out and lets in who can enter now.
    pub(crate) fn leave(&self, side: Side) {
        if self.line.lock().leave(side) {
            self.moved.notify_all();
        }
    }

    /// Enters as a dispatch whoever is inside; `true` if that is a window, which is told.
    pub(crate) fn intrude(&self) -> bool {
        let mut line = self.line.lock();
        line.dispatches += 1;
        line.intruded |= line.window;
        line.window
    }

    /// Whether someone did since the window that is inside entered.
    pub(crate) fn is_intruded(&self) -> bool {
        self.line.lock().intruded
    }

    /// The limit of everyone in line, present and future, passes now.
    #[cfg(all(test, loom))]
    pub(crate) fn expire(&self) {
        self.moved.expire(&self.line.lock());
    }

    /// How many wait.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn waiting(&self) -> usize {
        self.line.lock().waiting.len()
    }
}

/// Who is inside, and who waits in order of arrival.
#[derive(Default)]
struct Line {
    dispatches: usize,
    window: bool,
    /// A dispatch came in beside the window. Cleared when the next window enters.
    intruded: bool,
    waiting: VecDeque<Waiter>,
    next_ticket: u64,
}

struct Waiter {
    ticket: u64,
    side: Side,
}

impl Line {
    /// Goes to the end of the line, and straight in if nothing is in the way.
    fn join(&mut self, side: Side) -> u64 {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.waiting.push_back(Waiter { ticket, side });
        self.admit();
        ticket
    }

    fn is_inside(&self, ticket: u64) -> bool {
        self.waiting
            .front()
            .is_none_or(|first| first.ticket > ticket)
    }

    fn try_enter_dispatch(&mut self) -> bool {
        let free = self.waiting.is_empty() && !self.window;
        self.dispatches += usize::from(free);
        free
    }

    fn give_up(&mut self, ticket: u64) {
        self.waiting.retain(|waiter| waiter.ticket != ticket);
        self.admit();
    }

    fn leave(&mut self, side: Side) -> bool {
        match side {
            Side::Dispatch => self.dispatches -= 1,
            Side::Window => self.window = false,
        }
        self.admit()
    }

    /// Lets in everyone at the front who can enter; `true` if that was anyone.
    fn admit(&mut self) -> bool {
        let before = self.waiting.len();
        while let Some(first) = self.waiting.front() {
            match first.side {
                _ if self.window => break,
                Side::Dispatch => self.dispatches += 1,
                Side::Window if self.dispatches == 0 => {
                    self.window = true;
                    self.intruded = false;
                }
                Side::Window => break,
            }
            self.waiting.pop_front();
        }
        self.waiting.len() < before
    }
}
