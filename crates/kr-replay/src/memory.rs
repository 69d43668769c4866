//! One agent's memory as a window sees it: regions are placed, captured, restored and checked.
//!
//! This is where the type-level chain of device and blit engine ends: windows see [`AgentMemory`]
//! and [`Snapshot`], which do not name them.
//!
//! Invariants
//! - Blocks that hold the saved bytes are in quarantine while anything of ours may touch them, which
//!   leaks them if a panic drops it. If a copy outlives its limit, it is only lifted after the copy was
//!   seen to end; while quarantine is not empty the agent takes no windows, and the application's
//!   memory that the copy touches stays held.
//! - A [`Snapshot`] is complete. A failed restore consumes it.

use std::error::Error;
use std::fmt::Write as _;
use std::num::NonZeroU64;
use std::time::Duration;

use kr_blit::{BlitEngine, BlitError, RestoreError, Unfinished, Verdict};
use kr_device::Device;
use kr_storage::{Committed, Quarantine};
use kr_types::{Region, RestoreMode, Tiles};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::tiers::Tiers;

/// Room that a region may take in its arena beyond its own bytes: padding before it, and a piece's
/// worth where it is cut between two tiers.
const PADDING: u64 = 512;

/// Why a capture gave no snapshot. The application's memory is untouched.
pub(crate) enum NoSnapshot {
    /// No tier has room.
    Place(String),
    /// Copying failed or did not end in time.
    Capture(String),
}

/// Why a restore gave no snapshot back.
pub(crate) enum NotRestored {
    /// Memory is the input again, put back on a second path after the first one failed.
    Rescued(String),
    /// Memory is a mix of old and new bytes.
    Torn(String),
}

/// Lets go of what was held for work in quarantine.
pub(crate) type Release = Box<dyn FnOnce() + Send>;

/// The memory of one agent. Calls are made by windows only.
///
/// The safety contract of all of it: a window on the agent is open and drained, `regions` is its
/// capture list, and `alive` admits only regions that this window holds.
pub(crate) trait AgentMemory: Send + Sync {
    /// Whether memory can be put back in this mode.
    fn supports(&self, mode: RestoreMode) -> bool;

    /// Bytes that saving `bytes` bytes in `regions` regions takes at the most.
    fn bytes_needed(&self, bytes: u64, regions: u64) -> u64;

    /// Whether earlier work of ours, or of a lost pass, may still be running.
    fn is_quarantined(&self) -> bool;

    /// Takes no window any more, for good.
    fn give_up(&self);

    /// A window has ended.
    fn age(&self);

    /// Frees what is kept for the next window, and says how many bytes that were.
    fn release_retained(&self) -> u64;

    /// Calls `release` once when the agent is no longer quarantined, which
    /// [`is_quarantined`](Self::is_quarantined) finds out; never if the agent was given up.
    fn when_quiet(&self, release: Release);

    /// Saves the regions. Those that the kernel arguments point into are kept nearest to the agent.
    ///
    /// # Safety
    ///
    /// See the trait.
    unsafe fn capture(
        &self,
        regions: &[Region],
        kernarg: &[u8],
        limit: Duration,
    ) -> Result<Box<dyn Snapshot>, NoSnapshot>;
}

/// A complete copy of some regions.
///
/// The safety contract of all calls is that of [`AgentMemory`].
pub(crate) trait Snapshot {
    /// Puts everything back; the bytes that were written are returned with the snapshot.
    ///
    /// # Safety
    ///
    /// See the trait.
    unsafe fn restore(
        self: Box<Self>,
        mode: RestoreMode,
        alive: &dyn Fn(&Region) -> bool,
        limit: Duration,
    ) -> Result<(Box<dyn Snapshot>, u64), NotRestored>;

    /// The final check. The error says in words why it could not be made.
    ///
    /// # Safety
    ///
    /// See the trait.
    unsafe fn verify(
        self: Box<Self>,
        alive: &dyn Fn(&Region) -> bool,
        limit: Duration,
    ) -> Result<(Box<dyn Snapshot>, Verdict), String>;
}

/// The memory of an agent behind a device and a blit engine.
pub(crate) struct Memory<D: Device, B: BlitEngine>(Arc<Shared<D, B>>);

struct Shared<D: Device, B: BlitEngine> {
    tiers: Tiers<D>,
    blit: B,
    quarantine: Mutex<Vec<Quarantined<B::Unfinished>>>,
    /// Run when quarantine is empty. Taken out under the lock of `quarantine`, run outside it.
    releases: Mutex<Vec<Release>>,
    given_up: AtomicBool,
}

impl<D: Device, B: BlitEngine> Memory<D, B> {
    pub(crate) fn new(tiers: Tiers<D>, blit: B) -> Self {
        Self(Arc::new(Shared {
            tiers,
            blit,
            quarantine: Mutex::default(),
            releases: Mutex::default(),
            given_up: AtomicBool::new(false),
        }))
    }
}

/// Blocks that copies which outlived their limit may still touch. Unless the copies have ended by
/// the time that it is dropped, the blocks are leaked.
struct Quarantined<U: Unfinished> {
    blocks: Option<Quarantine>,
    unfinished: U,
}

impl<U: Unfinished> Drop for Quarantined<U> {
    fn drop(&mut self) {
        if self.unfinished.is_finished()
            && let Some(blocks) = self.blocks.take()
        {
            drop(blocks.end());
        }
    }
}

impl<D: Device, B: BlitEngine> Shared<D, B> {
    fn quarantine(&self, blocks: Quarantine, unfinished: B::Unfinished) {
        self.quarantine.lock().push(Quarantined {
            blocks: Some(blocks),
            unfinished,
        });
    }

    /// What became of an operation on `blocks` that did not come to its end, in words. The blocks
    /// are given back, or stay in quarantine.
    fn ended(
        &self,
        operation: &str,
        blocks: Quarantine,
        error: BlitError<B::Unfinished>,
    ) -> String {
        match error {
            BlitError::Failed(error) => {
                drop(blocks.end());
                format!("{operation} failed: {}", in_full(&error))
            }
            BlitError::TimedOut { limit, unfinished } => {
                self.quarantine(blocks, unfinished);
                format!("{operation} did not end within {limit:?}")
            }
        }
    }
}

impl<D: Device, B: BlitEngine> Drop for Shared<D, B> {
    /// Lets go of what was held, if that is safe now. Else it stays held: by the tracker, where the
    /// next engine finds it.
    fn drop(&mut self) {
        let quiet = |held: &Quarantined<B::Unfinished>| held.unfinished.is_finished();
        let given_up = *self.given_up.get_mut();
        if !given_up && self.quarantine.get_mut().iter().all(quiet) {
            let releases = std::mem::take(self.releases.get_mut());
            releases.into_iter().for_each(|release| release());
        }
    }
}

impl<D: Device, B: BlitEngine> AgentMemory for Memory<D, B> {
    fn supports(&self, mode: RestoreMode) -> bool {
        self.0.blit.supports(mode)
    }

    fn bytes_needed(&self, bytes: u64, regions: u64) -> u64 {
        let full = NonZeroU64::new(bytes).map_or(0, Tiles::count_in);
        bytes
            .saturating_add(regions.saturating_mul(PADDING))
            .saturating_add(self.0.blit.bytes_needed(full.saturating_add(regions)))
    }

    fn is_quarantined(&self) -> bool {
        // Relaxed: the flag carries no data.
        if self.0.given_up.load(Relaxed) {
            return true;
        }
        let releases = {
            let mut quarantine = self.0.quarantine.lock();
            quarantine.retain(|held| !held.unfinished.is_finished());
            if !quarantine.is_empty() {
                return true;
            }
            std::mem::take(&mut *self.0.releases.lock())
        };
        releases.into_iter().for_each(|release| release());
        false
    }

    fn when_quiet(&self, release: Release) {
        self.0.releases.lock().push(release);
        self.is_quarantined();
    }

    fn age(&self) {
        self.0.tiers.age();
    }

    fn release_retained(&self) -> u64 {
        self.0.tiers.release()
    }

    fn give_up(&self) {
        self.0.given_up.store(true, Relaxed);
    }

    unsafe fn capture(
        &self,
        regions: &[Region],
        kernarg: &[u8],
        limit: Duration,
    ) -> Result<Box<dyn Snapshot>, NoSnapshot> {
        let place = |error| NoSnapshot::Place(in_full(&error));
        let storage = self.0.tiers.place(regions, kernarg).map_err(place)?;
        let (extents, blocks) = storage.into_parts();
        let blocks = blocks.quarantine();
        // SAFETY: live sides: the caller's window holds all `regions`. Saved sides: `extents` lie in
        // `blocks`, which are ours, disjoint, and kept until the copies have ended: in the snapshot
        // or, if they outlive the limit, in quarantine; for ever if the call panics.
        match unsafe { self.0.blit.capture(extents, limit) } {
            Ok(image) => Ok(Box::new(Saved {
                memory: self.0.clone(),
                blocks: blocks.end(),
                image,
            })),
            Err(error) => {
                let what = self.0.ended("saving the memory", blocks, error);
                Err(NoSnapshot::Capture(what))
            }
        }
    }
}

struct Saved<D: Device, B: BlitEngine> {
    memory: Arc<Shared<D, B>>,
    blocks: Committed,
    image: B::Image,
}

impl<D: Device, B: BlitEngine> Snapshot for Saved<D, B> {
    unsafe fn restore(
        self: Box<Self>,
        mode: RestoreMode,
        alive: &dyn Fn(&Region) -> bool,
        limit: Duration,
    ) -> Result<(Box<dyn Snapshot>, u64), NotRestored> {
        let Self {
            memory,
            blocks,
            image,
        } = *self;
        let blocks = blocks.quarantine();
        // SAFETY: `alive` admits only regions that the caller's window holds; the saved side is
        // kept as in `capture`.
        match unsafe { memory.blit.restore(image, mode, alive, limit) } {
            Ok(restored) => {
                let saved = Self {
                    memory,
                    blocks: blocks.end(),
                    image: restored.image,
                };
                Ok((Box::new(saved), restored.bytes_copied))
            }
            Err(RestoreError::TimedOut { limit, unfinished }) => {
                memory.quarantine(blocks, unfinished);
                let what = format!("putting the memory back did not end within {limit:?}");
                Err(NotRestored::Torn(what))
            }
            Err(RestoreError::Failed { torn, source }) => {
                let cause = in_full(&source);
                // SAFETY: as above, and nothing of the failed restore runs any more.
                match unsafe { memory.blit.rescue(torn, alive, limit) } {
                    Ok(_) => {
                        drop(blocks.end());
                        Err(NotRestored::Rescued(cause))
                    }
                    Err(error) => {
                        let too = memory.ended("a copy by the host", blocks, error);
                        Err(NotRestored::Torn(format!("{cause}; {too}")))
                    }
                }
            }
        }
    }

    unsafe fn verify(
        self: Box<Self>,
        alive: &dyn Fn(&Region) -> bool,
        limit: Duration,
    ) -> Result<(Box<dyn Snapshot>, Verdict), String> {
        let Self {
            memory,
            blocks,
            image,
        } = *self;
        let blocks = blocks.quarantine();
        // SAFETY: as for `restore`.
        match unsafe { memory.blit.verify(image, alive, limit) } {
            Ok((image, verdict)) => {
                let saved = Self {
                    memory,
                    blocks: blocks.end(),
                    image,
                };
                Ok((Box::new(saved), verdict))
            }
            Err(error) => Err(memory.ended("it", blocks, error)),
        }
    }
}

/// An error with all its causes, in one line.
pub(crate) fn in_full(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        // Writing to a string cannot fail.
        let _ = write!(text, ": {error}");
        source = error.source();
    }
    text
}
