//! Locks: the only file that names a lock's crate or the model checker. One API, no poisoning.

#[cfg(not(all(test, loom)))]
pub(crate) use {parking_lot::Mutex, std::sync::Arc};

#[cfg(all(test, loom))]
pub(crate) use {self::model::Mutex, loom::sync::Arc};

#[cfg(all(test, loom))]
mod model {
    /// A lock that panics where a std one would report poison: a model has then failed already.
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
            self.0.lock().expect("no thread panicked in here")
        }
    }
}
