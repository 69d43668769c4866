//! The operations.

use std::num::{NonZeroU32, NonZeroUsize};
use std::thread::available_parallelism;
use std::time::Duration;

use kr_device::{Device, DeviceError};
use kr_types::{ByTier, DeviceAddr, Extent, RestoreMode};

use super::access::{CpuUnfinished, Time};
use super::fingerprint::Inspector;
use super::image::{CpuImage, CpuTorn, Found, Liveness};
use super::report::{CpuRestored, Recaptured};
use crate::{BlitError, Digester, RestoreError, Verdict, process_seed};

/// How a [`CpuBlit`] works.
#[derive(Clone, Debug)]
pub struct CpuConfig {
    /// Threads that hash; `None` = one per core, at most 16.
    pub threads: Option<NonZeroUsize>,
    /// Digests have 128 bits, so that an image may be [recaptured](CpuBlit::recapture), and every
    /// so many captures of one image all of it is copied. `None` = digests have 64 bits, and every
    /// capture copies all.
    pub incremental: Option<NonZeroU32>,
    /// The final check reads one saved tile in so many, at least one, and compares its digest with
    /// that of the capture; other windows get other tiles. `None` = none.
    pub audit: Option<NonZeroU32>,
    /// The seed of all digests.
    pub seed: u64,
}

impl Default for CpuConfig {
    /// Incremental with a full capture every 1,000, an audit of one tile in 4,096, and the
    /// [seed of the process](process_seed).
    fn default() -> Self {
        Self {
            threads: None,
            incremental: NonZeroU32::new(1_000),
            audit: NonZeroU32::new(4_096),
            seed: process_seed(),
        }
    }
}

/// Saves memory and puts it back in every mode, over any [`Device`].
///
/// It reads memory through [`Device::read`], hashes it on several threads, and lets the device
/// itself copy whatever is copied whole. Of a tile that is found changed only the lines that differ
/// are written back. A tile of which all words are equal is not saved but remembered.
///
/// A limit of an operation bounds both kinds of work: copies that are still running then are handed
/// over ([`CpuUnfinished`]), and hashing, which nothing outlives, ends with an error.
///
/// The safety contract of all its operations is that of [`BlitEngine`](crate::BlitEngine).
#[derive(Clone, Debug)]
pub struct CpuBlit<D> {
    pub(super) device: D,
    pub(super) inspector: Inspector,
    pub(super) threads: usize,
    full_every: u32,
    pub(super) audit: Option<NonZeroU32>,
}

/// Why an operation stopped before its end.
pub(super) enum Halt<D: Device> {
    /// Nothing runs any more.
    Failed(DeviceError),
    /// Copies do.
    Running(CpuUnfinished<D>),
}

impl<D: Device> From<DeviceError> for Halt<D> {
    fn from(error: DeviceError) -> Self {
        Self::Failed(error)
    }
}

impl<D: Device> Halt<D> {
    fn into_error(self, time: &Time) -> BlitError<CpuUnfinished<D>> {
        match self {
            Self::Failed(error) => BlitError::Failed(error),
            Self::Running(unfinished) => BlitError::TimedOut {
                limit: time.limit,
                unfinished,
            },
        }
    }
}

impl<D: Device + Clone> CpuBlit<D> {
    /// An engine for `device` with the default configuration.
    pub fn new(device: D) -> Self {
        Self::with_config(device, &CpuConfig::default())
    }

    /// An engine for `device`.
    pub fn with_config(device: D, config: &CpuConfig) -> Self {
        let cores = || available_parallelism().map_or(1, |n| n.get().min(16));
        Self {
            device,
            inspector: Inspector {
                digester: Digester::new(config.seed),
                wide: config.incremental.is_some(),
            },
            threads: config.threads.map_or_else(cores, NonZeroUsize::get),
            full_every: config.incremental.map_or(1, NonZeroU32::get),
            audit: config.audit,
        }
    }

    /// Bytes of the device's memory that a capture of `tiles` tiles takes beside the saved bytes:
    /// none, since what is remembered of a tile is kept by the host.
    pub fn bytes_needed(&self, _tiles: u64) -> u64 {
        0
    }

    /// Saves all extents.
    ///
    /// # Errors
    ///
    /// [`BlitError`]: the application's memory is untouched. There is no image, so nothing can be
    /// restored from a partial one. Extents that split a tile are refused before anything is read
    /// ([`StreamError`](crate::StreamError)).
    ///
    /// # Safety
    ///
    /// See the type. All extents count as alive.
    pub unsafe fn capture(
        &self,
        extents: Vec<Extent>,
        limit: Duration,
    ) -> Result<CpuImage, BlitError<CpuUnfinished<D>>> {
        let time = Time::start(limit);
        let mut image = CpuImage::new(&extents, self.inspector.wide)
            .map_err(|why| self.failed("capture", why.to_string()))?;
        // SAFETY: the caller's promise.
        unsafe { self.save(&mut image, true, &time) }.map_err(|halt| halt.into_error(&time))?;
        Ok(image)
    }

    /// Saves the extents of an earlier image again: hashes their live bytes and copies those that
    /// changed since into the arena, which still holds the rest. Whatever changed them, another
    /// kernel or a copy of the host, is seen. Every so many windows all of it is copied.
    ///
    /// # Errors
    ///
    /// As [`capture`](Self::capture). The image is gone.
    ///
    /// # Safety
    ///
    /// See the type. Nothing but this engine has written the arena since the image was captured.
    pub unsafe fn recapture(
        &self,
        mut image: CpuImage,
        alive: Liveness<'_>,
        limit: Duration,
    ) -> Result<Recaptured<CpuImage>, BlitError<CpuUnfinished<D>>> {
        let time = Time::start(limit);
        image.retire(alive);
        image.open_window();
        image.windows += 1;
        let full = image.windows.is_multiple_of(u64::from(self.full_every));
        // SAFETY: the caller's promise.
        let tally = unsafe { self.save(&mut image, full, &time) };
        let tally = tally.map_err(|halt| halt.into_error(&time))?;
        Ok(Recaptured {
            image,
            bytes_copied: tally.bytes_copied,
            bytes_hashed: tally.bytes_hashed,
            full,
        })
    }

    /// Puts the captured bytes back, in each tier by its mode.
    ///
    /// A restore in [`RestoreMode::HashOnce`] hashes if this window has not hashed that tier yet,
    /// and else puts back what the last hash listed.
    ///
    /// # Errors
    ///
    /// [`RestoreError`]. The image is gone, or of use for a rescue only.
    ///
    /// # Safety
    ///
    /// See the type.
    pub unsafe fn restore(
        &self,
        mut image: CpuImage,
        modes: ByTier<RestoreMode>,
        alive: Liveness<'_>,
        limit: Duration,
    ) -> Result<CpuRestored, RestoreError<CpuTorn, CpuUnfinished<D>>> {
        let time = Time::start(limit);
        image.retire(alive);
        // SAFETY: the caller's promise.
        match unsafe { self.put_back(&mut image, modes, &time) } {
            Ok(report) => Ok(CpuRestored { image, report }),
            Err(Halt::Failed(source)) => {
                let torn = CpuTorn(Box::new(image));
                Err(RestoreError::Failed { torn, source })
            }
            Err(Halt::Running(unfinished)) => Err(RestoreError::TimedOut { limit, unfinished }),
        }
    }

    /// Puts everything back after a failed restore, on another path: by the host.
    ///
    /// # Errors
    ///
    /// [`BlitError`]: the application's memory stays a mix of old and new bytes, and the image is
    /// gone.
    ///
    /// # Safety
    ///
    /// See the type.
    pub unsafe fn rescue(
        &self,
        CpuTorn(mut image): CpuTorn,
        alive: Liveness<'_>,
        limit: Duration,
    ) -> Result<CpuImage, BlitError<CpuUnfinished<D>>> {
        let time = Time::start(limit);
        image.retire(alive);
        // SAFETY: the caller's promise.
        unsafe { self.put_all_back(&mut image, &time) }?;
        Ok(*image)
    }

    /// The final check: whether every pass since the capture, or since the last check, started from
    /// the saved bytes. What restores by list have left out is hashed, and a part of the saved
    /// bytes is [audited](CpuConfig::audit).
    ///
    /// A pass that changes a byte off the list, and a later one that changes it back, escape a list;
    /// [`RestoreMode::HashEveryPass`] sees both.
    ///
    /// # Errors
    ///
    /// [`BlitError`] if the check could not be made; the image is gone.
    ///
    /// # Safety
    ///
    /// See the type.
    pub unsafe fn verify(
        &self,
        mut image: CpuImage,
        alive: Liveness<'_>,
        limit: Duration,
    ) -> Result<(CpuImage, Verdict), BlitError<CpuUnfinished<D>>> {
        let time = Time::start(limit);
        image.retire(alive);
        // SAFETY: the caller's promise.
        let damaged = unsafe { self.audit(&image, &time) }?;
        if let Some(Found { tiles, first }) = damaged {
            let first = DeviceAddr(first);
            return Ok((image, Verdict::ImageDamaged { tiles, first }));
        }
        let due = image.tiers.map(|state| state.check_due);
        // SAFETY: as above.
        unsafe { self.find_unlisted(&mut image, due, &time) }?;
        let verdict = image.take_verdict();
        Ok((image, verdict))
    }
}
