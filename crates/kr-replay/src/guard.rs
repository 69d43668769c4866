//! Where code that is not ours runs, its panics end: what a dispatch comes to must not depend on
//! them, and they must never reach the application.

use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls code that is not ours. A panic comes back as its message.
pub(crate) fn guarded<R>(call: impl FnOnce() -> R) -> Result<R, String> {
    // Unwind safety: what the state of that code looks like after its panic is its business; the
    // engine's arguments are dropped or only read afterwards.
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let text = text.unwrap_or("no message").to_owned();
        // What was thrown is not ours either. What its drop throws is lost, not to go on for ever.
        if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
            std::mem::forget(again);
        }
        text
    })
}

/// A value of the profiler's in the engine's hands: its drop is the profiler's code as well.
pub(crate) struct OfTool<T>(Option<T>);

impl<T> OfTool<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Some(value))
    }

    /// The value, to be given back to the profiler. Nothing may be asked of `self` any more.
    pub(crate) fn take(&mut self) -> T {
        self.0.take().expect("it is given back once")
    }
}

impl<T> Deref for OfTool<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("it has not been given back")
    }
}

impl<T> DerefMut for OfTool<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("it has not been given back")
    }
}

impl<T> Drop for OfTool<T> {
    fn drop(&mut self) {
        let value = self.0.take();
        if let Err(panic) = guarded(|| drop(value)) {
            tracing::error!(panic, "dropping data of the profiler panicked");
        }
    }
}
