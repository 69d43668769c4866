//! A clock that stands still unless it is moved.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use kr_replay::Clock;
use parking_lot::Mutex;

use super::Action;

/// Time as scripted waits move it.
#[derive(Default)]
pub struct FakeClock {
    nanos: AtomicU64,
    looks: AtomicU64,
    /// By the number of the look that they are for.
    actions: Mutex<BTreeMap<u64, Action>>,
}

impl FakeClock {
    /// Moves the time on.
    pub fn advance(&self, by: Duration) {
        let by = u64::try_from(by.as_nanos()).expect("no script waits for centuries");
        self.nanos.fetch_add(by, SeqCst);
    }

    /// How often the time was asked for.
    pub fn looks(&self) -> u64 {
        self.looks.load(SeqCst)
    }

    /// Runs `action` when the time is asked for the `n`-th time from now, before the answer. This is
    /// how a script reaches into steps that call no fake.
    pub fn at_look(&self, n: u64, action: impl FnOnce() + Send + 'static) {
        let look = self.looks() + n;
        self.actions.lock().insert(look, Box::new(action));
    }
}

impl Clock for FakeClock {
    fn now(&self) -> Duration {
        let look = self.looks.fetch_add(1, SeqCst) + 1;
        let action = self.actions.lock().remove(&look);
        if let Some(action) = action {
            action();
        }
        Duration::from_nanos(self.nanos.load(SeqCst))
    }
}
