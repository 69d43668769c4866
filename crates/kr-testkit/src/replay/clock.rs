//! A clock that stands still unless it is moved.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use kr_replay::Clock;

/// Time as scripted waits move it.
#[derive(Debug, Default)]
pub struct FakeClock {
    nanos: AtomicU64,
    looks: AtomicU64,
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
}

impl Clock for FakeClock {
    fn now(&self) -> Duration {
        self.looks.fetch_add(1, SeqCst);
        Duration::from_nanos(self.nanos.load(SeqCst))
    }
}
