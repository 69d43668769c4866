//! Scripts: what the first, the second, ... call of a kind does.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use parking_lot::Mutex;

/// Code of a test that runs inside a fake's call.
pub type Action = Box<dyn FnOnce() + Send>;

/// Steps per call, taken in order. A call without a step left succeeds.
pub(super) struct Script<C, S>(Mutex<HashMap<C, VecDeque<S>>>);

impl<C: Eq + Hash, S> Script<C, S> {
    pub(super) fn new() -> Self {
        Self(Mutex::default())
    }

    pub(super) fn add(&self, call: C, step: S) {
        self.0.lock().entry(call).or_default().push_back(step);
    }

    /// The step for this call. The lock is free again when it runs.
    pub(super) fn take(&self, call: C) -> Option<S> {
        self.0.lock().get_mut(&call)?.pop_front()
    }
}
