//! Locks, atomics and thread-locals: the only file that names a lock's crate or the model checker.
//!
//! Both sides show one API, that of `parking_lot`: no poisoning, and a wait borrows the guard. Under
//! the model checker durations mean nothing, so there a limit passes only when the model says so:
//! `Condvar::expire`.

#[cfg(not(all(test, loom)))]
pub(crate) use {
    parking_lot::{Condvar, Mutex},
    std::sync::Arc,
    std::sync::atomic,
    std::thread_local,
};

#[cfg(all(test, loom))]
pub(crate) use {
    self::model::{Condvar, Mutex},
    loom::sync::Arc,
    loom::sync::atomic,
    loom::thread_local,
};

#[cfg(all(test, loom))]
mod model {
    use std::ops::{Deref, DerefMut};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Instant;

    /// A lock that panics where a std one would report poison: a model has then failed already.
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            MutexGuard(Some(self.0.lock().expect("no thread panicked in here")))
        }
    }

    /// Empty only while its thread waits on a [`Condvar`].
    pub(crate) struct MutexGuard<'a, T>(Option<loom::sync::MutexGuard<'a, T>>);

    impl<T> Deref for MutexGuard<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            self.0.as_ref().expect("not waiting")
        }
    }

    impl<T> DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            self.0.as_mut().expect("not waiting")
        }
    }

    pub(crate) struct Condvar {
        inner: loom::sync::Condvar,
        /// Read and written under the mutex of the waiters only, so the model's schedule decides
        /// its value although the model checker does not see it.
        expired: AtomicBool,
    }

    pub(crate) struct WaitTimeoutResult(bool);

    impl WaitTimeoutResult {
        pub(crate) fn timed_out(&self) -> bool {
            self.0
        }
    }

    impl Condvar {
        pub(crate) fn new() -> Self {
            Self {
                inner: loom::sync::Condvar::new(),
                expired: AtomicBool::new(false),
            }
        }

        pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
            let held = guard.0.take().expect("not waiting");
            guard.0 = Some(self.inner.wait(held).expect("no thread panicked in here"));
        }

        /// Ignores `_deadline`: it passes when the model calls [`Condvar::expire`].
        pub(crate) fn wait_until<T>(
            &self,
            guard: &mut MutexGuard<'_, T>,
            _deadline: Instant,
        ) -> WaitTimeoutResult {
            if !self.expired.load(Ordering::SeqCst) {
                self.wait(guard);
            }
            WaitTimeoutResult(self.expired.load(Ordering::SeqCst))
        }

        pub(crate) fn notify_all(&self) {
            self.inner.notify_all();
        }

        /// The deadline of every timed wait, present and future, passes now.
        pub(crate) fn expire<T>(&self, _guard: &MutexGuard<'_, T>) {
            self.expired.store(true, Ordering::SeqCst);
            self.inner.notify_all();
        }
    }
}
