//! The seam.

use std::fmt;
use std::time::Duration;

use kr_device::DeviceError;
use kr_types::{DeviceAddr, Extent, Region, RestoreMode};

/// Work of an engine that had not ended when its wait ran out.
///
/// Whoever holds it also holds every block that the work reads or writes, and drops none of them
/// before [`is_finished`](Self::is_finished) has said true.
pub trait Unfinished: Send + 'static {
    /// Looks, without blocking, whether the work has ended. Once true it stays true.
    fn is_finished(&self) -> bool;
}

/// Why a capture, a rescue or a check did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum BlitError<U> {
    /// Nothing of it runs any more.
    #[error(transparent)]
    Failed(#[from] DeviceError),
    /// Some of it still reads or writes the ranges that it was given.
    #[error("did not end within {limit:?}")]
    TimedOut {
        /// How long it was waited for.
        limit: Duration,
        /// What is still running.
        unfinished: U,
    },
}

/// The name that [`BlitError`] had when only captures returned it.
pub type CaptureError<U> = BlitError<U>;

/// Why memory was not put back. The application's memory is a mix of old and new bytes.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError<T, U> {
    /// Nothing of the restore runs any more. A rescue may still put the bytes back.
    #[error("cannot put the memory back")]
    Failed {
        /// The image, of use for a rescue only.
        torn: T,
        /// What went wrong.
        #[source]
        source: DeviceError,
    },
    /// Copies still write the application's memory.
    #[error("putting the memory back did not end within {limit:?}")]
    TimedOut {
        /// How long it was waited for.
        limit: Duration,
        /// What is still running.
        unfinished: U,
    },
}

/// A restore that put every byte back.
#[derive(Debug)]
pub struct Restored<I> {
    /// The image, as good as before.
    pub image: I,
    /// Bytes written back.
    pub bytes_copied: u64,
    /// Bytes that were left alone since their allocation is no longer the one that was saved.
    pub bytes_retired: u64,
}

/// What [`BlitEngine::restore`] returns.
pub type RestoreResult<I, T, U> = Result<Restored<I>, RestoreError<T, U>>;

/// What the final check of a window found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// Every pass after the first started from the captured bytes.
    Clean,
    /// Memory changed that the restores between the passes did not cover. Passes from 2 on may
    /// have started from other bytes; the saved ones are good.
    UnlistedChange {
        /// Tiles that changed.
        tiles: u64,
        /// Live address of the first of them, for the message.
        first: DeviceAddr,
    },
    /// The saved bytes are not what was captured: something wrote the engine's own memory. Nothing
    /// can be put back from them.
    ImageDamaged {
        /// Tiles that differ.
        tiles: u64,
        /// Live address of the first of them, for the message.
        first: DeviceAddr,
    },
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, tiles, first) = match self {
            Self::Clean => return f.write_str("every pass started from the captured bytes"),
            Self::UnlistedChange { tiles, first } => {
                ("changed outside the list of restored tiles", tiles, first)
            }
            Self::ImageDamaged { tiles, first } => {
                ("of the saved bytes were overwritten", tiles, first)
            }
        };
        write!(f, "{tiles} tiles {what}, the first for {first}")
    }
}

/// Saves the memory of one agent and puts it back.
///
/// Contract
/// - [`capture`](Self::capture) reads the live side of every extent and writes nothing but the
///   saved side and the engine's own metadata.
/// - [`restore`](Self::restore) leaves every byte of every live extent as it was captured, whatever
///   the mode, or says that it did not. It writes no byte outside live extents.
/// - An extent whose region `alive` denies is neither read nor written, and that is no failure.
/// - Every wait is bounded by the limit given.
///
/// The safety contract is the same for all calls: until the call has returned, and as long after as
/// an [`Unfinished`] of it is not finished, the live side of each extent that `alive` admits is
/// accessible to the agent, the saved side belongs to the caller, and nothing else writes either.
pub trait BlitEngine: Send + Sync + 'static {
    /// A complete capture: the extents and what is needed to put them back and check them.
    type Image: Send;
    /// An image whose restore broke off.
    type Torn: Send;
    /// Work that outlived its limit.
    type Unfinished: Unfinished;

    /// Whether the engine can restore in this mode.
    fn supports(&self, mode: RestoreMode) -> bool;

    /// Bytes of metadata, beside the saved bytes, that a capture of `tiles` tiles takes.
    fn bytes_needed(&self, tiles: u64) -> u64;

    /// Saves all extents.
    ///
    /// # Errors
    ///
    /// [`BlitError`]: the application's memory is untouched. There is no image, so nothing can be
    /// restored from a partial one.
    ///
    /// # Safety
    ///
    /// See the trait. All extents count as alive.
    unsafe fn capture(
        &self,
        extents: Vec<Extent>,
        limit: Duration,
    ) -> Result<Self::Image, BlitError<Self::Unfinished>>;

    /// Puts the captured bytes back in a mode that [`supports`](Self::supports) admits.
    ///
    /// # Errors
    ///
    /// [`RestoreError`]. The image is gone, or of use for a rescue only.
    ///
    /// # Safety
    ///
    /// See the trait.
    unsafe fn restore(
        &self,
        image: Self::Image,
        mode: RestoreMode,
        alive: &dyn Fn(&Region) -> bool,
        limit: Duration,
    ) -> RestoreResult<Self::Image, Self::Torn, Self::Unfinished>;

    /// Puts everything back after a failed restore, on another path: by the host.
    ///
    /// # Errors
    ///
    /// [`BlitError`]: the application's memory stays a mix of old and new bytes, and the image is
    /// gone.
    ///
    /// # Safety
    ///
    /// See the trait.
    unsafe fn rescue(
        &self,
        torn: Self::Torn,
        alive: &dyn Fn(&Region) -> bool,
        limit: Duration,
    ) -> Result<Self::Image, BlitError<Self::Unfinished>>;

    /// The final check, after the last pass.
    ///
    /// # Errors
    ///
    /// [`BlitError`] if the check could not be made; the image is gone.
    ///
    /// # Safety
    ///
    /// See the trait.
    unsafe fn verify(
        &self,
        image: Self::Image,
        alive: &dyn Fn(&Region) -> bool,
        limit: Duration,
    ) -> Result<(Self::Image, Verdict), BlitError<Self::Unfinished>>;
}
