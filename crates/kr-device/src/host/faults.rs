//! Faults on request: the n-th operation fails, or copies stop moving until they are let go.

use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

/// An operation that can be made to fail. See [`HostDevice::fail_nth`](super::HostDevice::fail_nth).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// [`Device::alloc`](crate::Device::alloc) reports out of memory.
    Alloc,
    /// [`Device::submit`](crate::Device::submit) starts nothing.
    Submit,
    /// A copy of a submission, which counts once however long it is: its fence reports the error.
    Copy,
    /// [`Device::read`](crate::Device::read) fails.
    Read,
    /// [`Device::write`](crate::Device::write) fails.
    Write,
}

const FAULTS: usize = 5;

/// How many more operations of each kind succeed before one fails; `None` = all.
#[derive(Default)]
pub(super) struct Faults {
    countdown: Mutex<[Option<u64>; FAULTS]>,
    gate: Arc<Gate>,
}

impl Faults {
    pub(super) fn fail_nth(&self, fault: Fault, n: u64) {
        self.countdown.lock()[fault as usize] = Some(n);
    }

    /// True if this operation is the one that was chosen to fail.
    pub(super) fn strikes(&self, fault: Fault) -> bool {
        let mut countdown = self.countdown.lock();
        let left = &mut countdown[fault as usize];
        match *left {
            None => false,
            Some(0) => {
                *left = None;
                true
            }
            Some(n) => {
                *left = Some(n - 1);
                false
            }
        }
    }

    pub(super) fn hold(&self) -> Hold {
        self.gate.state.lock().holders += 1;
        Hold(self.gate.clone())
    }

    pub(super) fn gate(&self) -> &Gate {
        &self.gate
    }
}

#[derive(Default)]
pub(super) struct Gate {
    state: Mutex<GateState>,
    opened: Condvar,
}

#[derive(Default)]
struct GateState {
    holders: u32,
    closed_for_good: bool,
}

impl Gate {
    /// Waits until no [`Hold`] is left. False if the device is going away instead.
    pub(super) fn pass(&self) -> bool {
        let mut state = self.state.lock();
        while state.holders > 0 && !state.closed_for_good {
            self.opened.wait(&mut state);
        }
        state.holders == 0
    }

    pub(super) fn close_for_good(&self) {
        self.state.lock().closed_for_good = true;
        self.opened.notify_all();
    }
}

/// While one lives, no copy of its device makes progress. Dropping it lets them go on.
#[must_use = "copies go on as soon as the hold is dropped"]
pub struct Hold(Arc<Gate>);

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.state.lock().holders -= 1;
        self.0.opened.notify_all();
    }
}
