//! A window: one thread has an agent to itself, and holds the memory that it captured.

use std::fmt;
use std::marker::PhantomData;

use kr_types::{AgentId, Region};

use crate::gate::{Gate, Side};
use crate::inside::{self, Place};
use crate::inventory::CaptureList;
use crate::sync::Arc;
use crate::tracker::Tracker;

/// Exclusive access to one agent, from [`Tracker::open_window`] to [`close`](Self::close).
///
/// A window that is dropped instead, by a panic for example, leaves the agent just the same; its
/// parked frees then wait for [`Tracker::take_orphans`] or for the next window's `close`.
#[must_use = "the agent is left when the window is dropped; `close` it to get its parked frees"]
pub struct Window<'a, F> {
    tracker: &'a Tracker<F>,
    gate: Arc<Gate>,
    place: Place,
    /// Someone else ends our capture.
    abandoned: bool,
    /// The thread's stack has an entry for us, so we stay on it.
    this_thread: PhantomData<*const ()>,
}

impl<'a, F> Window<'a, F> {
    /// The caller has entered `gate` and put `place` on this thread's stack.
    pub(crate) fn new(tracker: &'a Tracker<F>, gate: Arc<Gate>, place: Place) -> Self {
        Self {
            tracker,
            gate,
            place,
            abandoned: false,
            this_thread: PhantomData,
        }
    }

    /// The agent that this window has to itself.
    pub fn agent(&self) -> AgentId {
        self.place.agent
    }

    /// Lists the agent's memory that is captured, and holds it from then on: in one step, so that
    /// a free either came before and its region is not listed, or comes after and is parked.
    ///
    /// Asked again, it lists anew, with what was allocated since; what it held it goes on holding.
    /// A region whose real free is running just now is not listed, even if that free fails later.
    pub fn capture_list(&mut self) -> CaptureList {
        self.tracker
            .with_inventory(|inventory| inventory.start_capture(self.agent()))
    }

    /// Whether `region` is in this window's capture and its memory is still what was captured, so
    /// that a restore may write to it. Freed makes no difference: its real free waits for us.
    pub fn holds(&self, region: &Region) -> bool {
        region.agent() == self.agent()
            && self
                .tracker
                .with_inventory(|inventory| inventory.holds(region))
    }

    /// Whether this thread wanted to enter the agent again while the window is open, to dispatch
    /// or to open another window, or another thread
    /// [came in beside it](Tracker::enter_dispatch_nested): what the window measured is then not the
    /// dispatch alone.
    pub fn is_reentered(&self) -> bool {
        inside::is_reentered(self.place) || self.gate.is_intruded()
    }

    /// Bytes that the application freed and this window keeps.
    pub fn parked_bytes(&self) -> u64 {
        self.tracker
            .with_inventory(|inventory| inventory.parked_bytes(self.agent()))
    }

    /// Whether they are more than
    /// [`parked_bound_bytes`](crate::TrackerConfig::parked_bound_bytes). The window should then end
    /// soon, since the application counts on that memory.
    pub fn parked_over_bound(&self) -> bool {
        self.parked_bytes() > self.tracker.config().parked_bound_bytes
    }

    /// Lets go of the memory, leaves the agent, and returns the tokens of the frees that were
    /// parked, with those of earlier windows that were dropped. The caller really frees them; until
    /// then their addresses are not used again.
    #[must_use = "these frees were reported to the application as done"]
    pub fn close(self) -> Vec<F> {
        // In one step, so that no other window gets our frees. What is left for `drop` is to leave.
        self.tracker.with_inventory(|inventory| {
            inventory.end_capture(self.agent());
            inventory.take_orphans()
        })
    }
}

impl<F> Window<'_, F> {
    /// Leaves the agent but goes on holding the memory: for work on it, the window's or the
    /// device's, that could not be seen to end. Frees of it are parked as before, and no window
    /// opens on the agent, until the returned hold is given to [`Tracker::release`].
    pub fn abandon(mut self) -> Hold {
        self.abandoned = true;
        // A window that never listed anything has nothing to hold, but keeps others out the same.
        self.tracker
            .with_inventory(|inventory| inventory.start_capture_of_nothing(self.agent()));
        Hold {
            agent: self.agent(),
        }
    }
}

impl<F> Drop for Window<'_, F> {
    fn drop(&mut self) {
        // Before the agent is left: the next window must not find our capture.
        if !self.abandoned {
            self.tracker
                .with_inventory(|inventory| inventory.end_capture(self.agent()));
        }
        inside::pop(self.place);
        self.gate.leave(Side::Window);
    }
}

/// What is left of a window that was [abandoned](Window::abandon). If it is dropped instead of
/// released, the memory is held for good: the right thing if its use is never seen to end.
#[derive(Debug)]
#[must_use = "dropping it keeps the memory from ever being freed"]
pub struct Hold {
    pub(crate) agent: AgentId,
}

impl<F> fmt::Debug for Window<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Window")
            .field("agent", &self.agent())
            .field("reentered", &self.is_reentered())
            .finish_non_exhaustive()
    }
}
