//! The application's completion signal.

use std::sync::Arc;
use std::time::Duration;

use kr_device::host::KernelFault;
use parking_lot::{Condvar, Mutex};

/// Completion of one launch, after HSA's signals: it starts at 1 and is decremented once, when the
/// launch has run for the application. A handle: clones are the same signal.
#[derive(Clone, Debug)]
pub struct HostSignal(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    value: i64,
    result: Result<(), KernelFault>,
}

impl HostSignal {
    pub(super) fn new() -> Self {
        Self(Arc::new(Shared {
            state: Mutex::new(State {
                value: 1,
                result: Ok(()),
            }),
            changed: Condvar::new(),
        }))
    }

    /// Decrements the signal. `result` is what the application's run came to.
    pub(super) fn complete(&self, result: Result<(), KernelFault>) {
        let mut state = self.0.state.lock();
        state.value -= 1;
        state.result = result;
        drop(state);
        self.0.changed.notify_all();
    }

    /// The value: 1 before completion, 0 after it.
    pub fn value(&self) -> i64 {
        self.0.state.lock().value
    }

    /// Waits for completion.
    ///
    /// # Errors
    ///
    /// [`KernelFault`] if the kernel did not reach its end.
    pub fn wait(&self) -> Result<(), KernelFault> {
        let mut state = self.0.state.lock();
        while state.value > 0 {
            self.0.changed.wait(&mut state);
        }
        state.result.clone()
    }

    /// Waits for completion for at most `limit`. `Ok(false)`: not yet.
    ///
    /// # Errors
    ///
    /// [`KernelFault`] if the kernel did not reach its end.
    pub fn wait_for(&self, limit: Duration) -> Result<bool, KernelFault> {
        let mut state = self.0.state.lock();
        self.0
            .changed
            .wait_while_for(&mut state, |state| state.value > 0, limit);
        match state.value > 0 {
            true => Ok(false),
            false => state.result.clone().map(|()| true),
        }
    }
}
