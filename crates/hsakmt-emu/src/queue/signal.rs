//! Signals as the packet processor sees them: `amd_signal_t` of `amd_hsa_signal.h`.
//!
//! A signal's handle is its address. Nothing is believed about it: an address that the agent can't reach is an access
//! fault like any other.

use amdgpu_emu::{AccessFault, Memory};

use crate::events::Events;
use crate::view::View;

const VALUE: u64 = 8;
const EVENT_MAILBOX: u64 = 16;
const EVENT_ID: u64 = 24;
const START_TS: u64 = 32;
const END_TS: u64 = 40;

/// All of the above, for the test that compares them with the header.
#[cfg(test)]
pub(super) const OFFSETS: [u64; 5] = [VALUE, EVENT_MAILBOX, EVENT_ID, START_TS, END_TS];

/// A signal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signal(u64);

impl Signal {
    /// The signal of a handle; zero is none.
    pub(super) fn new(handle: u64) -> Option<Self> {
        (handle != 0).then_some(Self(handle))
    }

    pub(super) fn value(self, view: &View) -> Result<i64, AccessFault> {
        Ok(view.load64(self.0.wrapping_add(VALUE))? as i64)
    }

    /// Stores a value and wakes who waits for it.
    pub(super) fn store(self, view: &View, events: &Events, value: i64) -> Result<(), AccessFault> {
        view.store64(self.0.wrapping_add(VALUE), value as u64)?;
        self.wake(view, events)
    }

    /// Completes one unit of work: subtracts 1 and wakes who waits for it.
    pub(super) fn complete(self, view: &View, events: &Events) -> Result<(), AccessFault> {
        view.update64(self.0.wrapping_add(VALUE), &mut |value| {
            value.wrapping_sub(1)
        })?;
        self.wake(view, events)
    }

    /// When a packet started and ended.
    pub(super) fn stamp(self, view: &View, start: u64, end: u64) -> Result<(), AccessFault> {
        view.store64(self.0.wrapping_add(START_TS), start)?;
        view.store64(self.0.wrapping_add(END_TS), end)
    }

    fn wake(self, view: &View, events: &Events) -> Result<(), AccessFault> {
        let mailbox = view.load64(self.0.wrapping_add(EVENT_MAILBOX))?;
        if mailbox != 0 {
            let event = view.load32(self.0.wrapping_add(EVENT_ID))?;
            view.store64(mailbox, event.into())?;
            // An event that is gone by now has nobody who waits for it.
            let _ = events.raise(event);
        }
        Ok(())
    }
}
