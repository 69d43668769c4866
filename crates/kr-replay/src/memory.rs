//! One agent's memory as a window sees it: regions are placed, captured, restored and checked.
//!
//! This is where the type-level chain of device and blit engine ends: windows see [`AgentMemory`]
//! and [`Snapshot`], which do not name them.
//!
//! Invariants
//! - The block that holds the saved bytes lives as long as anything of ours may touch it. If a copy
//!   outlives its limit, the block goes into quarantine with it and is freed only after the copy was
//!   seen to end; while quarantine is not empty the agent takes no windows, and the application's
//!   memory that the copy touches stays held.
//! - A [`Snapshot`] is complete. A failed restore consumes it.

use std::error::Error;
use std::fmt::Write as _;
use std::num::NonZeroU64;
use std::time::Duration;

use kr_blit::{BlitEngine, BlitError, RestoreError, Unfinished, Verdict};
use kr_device::{Block, Device};
use kr_types::{DeviceAddr, Extent, RangeError, Region, RestoreMode, Tier, Tiles};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Alignment of saved regions in the arena, in bytes; live and saved side share their phase.
const SAVED_ALIGN: u64 = 256;
/// Tiers in order of preference.
const TIERS: [Tier; 2] = [Tier::Device, Tier::PinnedHost];

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

    /// Calls `release` once when the agent is no longer quarantined, which
    /// [`is_quarantined`](Self::is_quarantined) finds out; never if the agent was given up.
    fn when_quiet(&self, release: Release);

    /// Saves the regions.
    ///
    /// # Safety
    ///
    /// See the trait.
    unsafe fn capture(
        &self,
        regions: &[Region],
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
    device: D,
    blit: B,
    quarantine: Mutex<Vec<Quarantined<D::Block, B::Unfinished>>>,
    /// Run when quarantine is empty. Taken out under the lock of `quarantine`, run outside it.
    releases: Mutex<Vec<Release>>,
    given_up: AtomicBool,
}

impl<D: Device, B: BlitEngine> Memory<D, B> {
    pub(crate) fn new(device: D, blit: B) -> Self {
        Self(Arc::new(Shared {
            device,
            blit,
            quarantine: Mutex::default(),
            releases: Mutex::default(),
            given_up: AtomicBool::new(false),
        }))
    }
}

/// A block, if there is one, that copies may be touching. Freed it could be handed out while they
/// still write it; so unless it is taken out, because they have ended, it is leaked: also by a blit
/// engine that panics, which does not say what it has left on its way.
struct InUse<K>(Option<K>);

impl<K> InUse<K> {
    fn take(&mut self) -> Option<K> {
        self.0.take()
    }
}

impl<K> Drop for InUse<K> {
    fn drop(&mut self) {
        std::mem::forget(self.0.take());
    }
}

/// An arena that copies which outlived their limit may still touch.
struct Quarantined<K, U: Unfinished> {
    arena: InUse<K>,
    unfinished: U,
}

impl<K, U: Unfinished> Drop for Quarantined<K, U> {
    fn drop(&mut self) {
        if self.unfinished.is_finished() {
            drop(self.arena.take());
        }
    }
}

impl<D: Device, B: BlitEngine> Shared<D, B> {
    fn quarantine(&self, arena: InUse<D::Block>, unfinished: B::Unfinished) {
        self.quarantine
            .lock()
            .push(Quarantined { arena, unfinished });
    }

    /// What became of an operation on `arena` that did not come to its end, in words. The arena is
    /// freed, or goes into quarantine.
    fn ended(
        &self,
        operation: &str,
        mut arena: InUse<D::Block>,
        error: BlitError<B::Unfinished>,
    ) -> String {
        match error {
            BlitError::Failed(error) => {
                drop(arena.take());
                format!("{operation} failed: {}", in_full(&error))
            }
            BlitError::TimedOut { limit, unfinished } => {
                self.quarantine(arena, unfinished);
                format!("{operation} did not end within {limit:?}")
            }
        }
    }

    fn alloc(&self, bytes: NonZeroU64) -> Result<D::Block, String> {
        let mut refusals = String::new();
        for tier in TIERS {
            match self.device.alloc(tier, bytes) {
                Ok(block) => return Ok(block),
                Err(error) => {
                    let separator = if refusals.is_empty() { "" } else { "; " };
                    // Writing to a string cannot fail.
                    let _ = write!(refusals, "{separator}{}", in_full(&error));
                }
            }
        }
        Err(refusals)
    }
}

impl<D: Device, B: BlitEngine> Drop for Shared<D, B> {
    /// Lets go of what was held, if that is safe now. Else it stays held: by the tracker, where the
    /// next engine finds it.
    fn drop(&mut self) {
        let quiet = |held: &Quarantined<_, B::Unfinished>| held.unfinished.is_finished();
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
            .saturating_add(regions.saturating_mul(2 * SAVED_ALIGN))
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

    fn give_up(&self) {
        self.0.given_up.store(true, Relaxed);
    }

    unsafe fn capture(
        &self,
        regions: &[Region],
        limit: Duration,
    ) -> Result<Box<dyn Snapshot>, NoSnapshot> {
        let place = |error: RangeError| NoSnapshot::Place(in_full(&error));
        let arena = match arena_bytes(regions) {
            Some(None) => None,
            Some(Some(bytes)) => Some(self.0.alloc(bytes).map_err(NoSnapshot::Place)?),
            None => {
                let what = format!("the bytes of {} regions do not add up", regions.len());
                return Err(NoSnapshot::Place(what));
            }
        };
        let extents = match &arena {
            None => Vec::new(),
            Some(arena) => extents(regions, arena.addr(), arena.tier()).map_err(place)?,
        };
        let mut arena = InUse(arena);
        // SAFETY: live sides: the caller's window holds all `regions`. Saved sides: extents of
        // `arena`, which is ours, disjoint, and kept until the copies have ended: in the snapshot
        // or, if they outlive the limit, in quarantine; for ever if the call panics.
        match unsafe { self.0.blit.capture(extents, limit) } {
            Ok(image) => Ok(Box::new(Saved {
                memory: self.0.clone(),
                arena: arena.take(),
                image,
            })),
            Err(error) => {
                let what = self.0.ended("saving the memory", arena, error);
                Err(NoSnapshot::Capture(what))
            }
        }
    }
}

struct Saved<D: Device, B: BlitEngine> {
    memory: Arc<Shared<D, B>>,
    arena: Option<D::Block>,
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
            arena,
            image,
        } = *self;
        let mut arena = InUse(arena);
        // SAFETY: `alive` admits only regions that the caller's window holds; the saved side is
        // kept as in `capture`.
        match unsafe { memory.blit.restore(image, mode, alive, limit) } {
            Ok(restored) => {
                let saved = Self {
                    memory,
                    arena: arena.take(),
                    image: restored.image,
                };
                Ok((Box::new(saved), restored.bytes_copied))
            }
            Err(RestoreError::TimedOut { limit, unfinished }) => {
                memory.quarantine(arena, unfinished);
                let what = format!("putting the memory back did not end within {limit:?}");
                Err(NotRestored::Torn(what))
            }
            Err(RestoreError::Failed { torn, source }) => {
                let cause = in_full(&source);
                // SAFETY: as above, and nothing of the failed restore runs any more.
                match unsafe { memory.blit.rescue(torn, alive, limit) } {
                    Ok(_) => {
                        drop(arena.take());
                        Err(NotRestored::Rescued(cause))
                    }
                    Err(error) => {
                        let too = memory.ended("a copy by the host", arena, error);
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
            arena,
            image,
        } = *self;
        let mut arena = InUse(arena);
        // SAFETY: as for `restore`.
        match unsafe { memory.blit.verify(image, alive, limit) } {
            Ok((image, verdict)) => {
                let saved = Self {
                    memory,
                    arena: arena.take(),
                    image,
                };
                Ok((Box::new(saved), verdict))
            }
            Err(error) => Err(memory.ended("it", arena, error)),
        }
    }
}

/// An offset of at least `cursor` at which the saved side has the phase of `live`.
fn saved_offset(cursor: u64, live: DeviceAddr) -> Option<u64> {
    cursor
        .checked_next_multiple_of(SAVED_ALIGN)?
        .checked_add(live.0 % SAVED_ALIGN)
}

/// Bytes that all regions take in one arena; `Some(None)` if there are none, `None` on overflow.
fn arena_bytes(regions: &[Region]) -> Option<Option<NonZeroU64>> {
    let end = regions.iter().try_fold(0u64, |cursor, region| {
        saved_offset(cursor, region.base())?.checked_add(region.len_bytes().get())
    })?;
    Some(NonZeroU64::new(end))
}

/// One extent per region, in an arena of [`arena_bytes`] at `base`.
fn extents(regions: &[Region], base: DeviceAddr, tier: Tier) -> Result<Vec<Extent>, RangeError> {
    let mut cursor = 0;
    regions
        .iter()
        .map(|region| {
            let len = region.len_bytes().get();
            let wraps = RangeError::Wraps { base, len };
            let offset = saved_offset(cursor, region.base()).ok_or(wraps)?;
            cursor = offset.checked_add(len).ok_or(wraps)?;
            let saved = base.checked_add(offset).ok_or(wraps)?;
            Extent::new(*region, 0, len, saved, tier)
        })
        .collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use kr_types::{AgentId, Generation, MemoryClass};

    fn region(base: u64, len: u64) -> Region {
        Region::new(
            AgentId(0),
            DeviceAddr(base),
            len,
            Generation::FIRST,
            MemoryClass::Vram,
        )
        .unwrap()
    }

    #[test]
    fn saved_regions_are_disjoint_and_keep_their_phase() {
        let regions = [
            region(0x1000, 1),
            region(0x2003, 4096),
            region(0x40ff, 255),
            region(0x5100, 256),
        ];
        let total = arena_bytes(&regions).unwrap().unwrap().get();
        let base = DeviceAddr(0x10_0000);
        let extents = extents(&regions, base, Tier::Device).unwrap();
        let mut end = base.0;
        for (extent, region) in extents.iter().zip(&regions) {
            assert!(extent.saved().0 >= end);
            assert_eq!(
                extent.saved().0 % SAVED_ALIGN,
                region.base().0 % SAVED_ALIGN
            );
            assert_eq!(extent.len_bytes(), region.len_bytes());
            end = extent.saved().0 + extent.len_bytes().get();
        }
        assert_eq!(end, base.0 + total);
    }

    #[test]
    fn sums_that_overflow_are_no_placement() {
        let huge = region(0x1000, u64::MAX - 0x1001);
        assert!(arena_bytes(&[huge]).is_some());
        assert!(arena_bytes(&[huge, huge]).is_none());
        assert_eq!(arena_bytes(&[]), Some(None));
    }
}
