//! The plain engine: every capture and every restore copies everything.
//!
//! It needs nothing of a device but copies. A restore that copies all bytes leaves no room for an
//! unlisted change, so its final check looks at the other side: digests taken of the saved bytes
//! at capture tell whether something wrote into the saved image since.

use std::fmt;
use std::time::{Duration, Instant};

use kr_device::{CopyOp, Device, DeviceError};
use kr_types::{AgentId, DeviceAddr, Extent, Region, RestoreMode, TILE_BYTES, Tile, Tiles};

use crate::{
    BlitEngine, BlitError, Digester, RestoreError, RestoreResult, Restored, Unfinished, Verdict,
};

/// Saves and restores by copying everything, over any [`Device`].
#[derive(Clone, Debug)]
pub struct FullCopy<D> {
    device: D,
    digester: Digester,
}

impl<D: Device + Clone> FullCopy<D> {
    /// An engine for `device` whose digests use `seed`.
    pub fn new(device: D, seed: u64) -> Self {
        Self {
            device,
            digester: Digester::new(seed),
        }
    }

    /// Copies all of `copies` and waits. `Ok(Some(_))`: the limit ran out.
    ///
    /// # Safety
    ///
    /// As for [`Device::submit`], also after the return if the copies are still running.
    unsafe fn copy(
        &self,
        copies: &[CopyOp],
        limit: Duration,
    ) -> Result<Option<Running<D>>, DeviceError> {
        // SAFETY: the caller vouches for the ranges until the copies have ended.
        let fence = unsafe { self.device.submit(copies) }?;
        let running = Running {
            device: self.device.clone(),
            fence,
        };
        let done = self.device.wait(&running.fence, limit)?;
        Ok((!done).then_some(running))
    }

    /// Digests of the saved bytes, one per tile, extent after extent.
    ///
    /// # Safety
    ///
    /// The saved side of each extent is readable and not being written.
    unsafe fn saved_digests(
        &self,
        extents: &[Extent],
        time: &Time,
    ) -> Result<Vec<u64>, DeviceError> {
        let mut buffer = vec![0; TILE_BYTES as usize];
        let mut digests = Vec::new();
        for extent in extents {
            for (tile, from) in tiles_at(extent, extent.saved()) {
                time.check(self.device.agent(), "digest")?;
                let bytes = &mut buffer[..tile.len() as usize];
                // SAFETY: a tile lies inside its extent, which the caller vouches for.
                unsafe { self.device.read(from, bytes) }?;
                digests.push(self.digester.tile(bytes));
            }
        }
        Ok(digests)
    }
}

/// The time that is left to one call. What the host does itself looks at it tile by tile; nothing is
/// in flight then, so running out is a plain failure.
struct Time {
    end: Option<Instant>,
    limit: Duration,
}

impl Time {
    fn start(limit: Duration) -> Self {
        // A limit beyond the clock's range is none.
        let end = Instant::now().checked_add(limit);
        Self { end, limit }
    }

    fn left(&self) -> Duration {
        match self.end {
            Some(end) => end.saturating_duration_since(Instant::now()),
            None => self.limit,
        }
    }

    fn check(&self, agent: AgentId, operation: &'static str) -> Result<(), DeviceError> {
        if self.left() > Duration::ZERO {
            return Ok(());
        }
        Err(DeviceError::Failed {
            agent,
            operation,
            detail: format!("did not end within {:?}", self.limit),
        })
    }
}

/// The tiles of an extent, each with its address on the side that starts at `base`.
fn tiles_at(extent: &Extent, base: DeviceAddr) -> impl Iterator<Item = (Tile, DeviceAddr)> + use<> {
    // Does not wrap: tiles lie inside the extent, neither side of which wraps.
    Tiles::new(extent.len_bytes()).map(move |tile| (tile, DeviceAddr(base.0 + tile.start())))
}

/// The copies of one submission that had not ended within the limit.
pub struct Running<D: Device> {
    device: D,
    fence: D::Fence,
}

impl<D: Device> fmt::Debug for Running<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Running(copies of {})", self.device.agent())
    }
}

impl<D: Device> Unfinished for Running<D> {
    fn is_finished(&self) -> bool {
        // An error also means that none of the copies runs any more.
        self.device
            .wait(&self.fence, Duration::ZERO)
            .unwrap_or(true)
    }
}

/// A complete copy of some extents, with a digest of each saved tile.
#[derive(Debug)]
pub struct Image {
    extents: Vec<Extent>,
    digests: Vec<u64>,
}

/// An [`Image`] whose restore broke off.
#[derive(Debug)]
pub struct Torn(Image);

impl<D: Device + Clone> BlitEngine for FullCopy<D> {
    type Image = Image;
    type Torn = Torn;
    type Unfinished = Running<D>;

    fn supports(&self, mode: RestoreMode) -> bool {
        mode == RestoreMode::Full
    }

    /// None on the device: digests are kept by the host.
    fn bytes_needed(&self, _tiles: u64) -> u64 {
        0
    }

    unsafe fn capture(
        &self,
        extents: Vec<Extent>,
        limit: Duration,
    ) -> Result<Image, BlitError<Running<D>>> {
        let copies: Vec<CopyOp> = extents
            .iter()
            .map(|extent| CopyOp {
                from: extent.live(),
                to: extent.saved(),
                len: extent.len_bytes(),
            })
            .collect();
        let time = Time::start(limit);
        // SAFETY: the trait's contract: sources are live, destinations are the caller's, also while
        // `unfinished` is not finished.
        if let Some(unfinished) = unsafe { self.copy(&copies, limit) }? {
            return Err(BlitError::TimedOut { limit, unfinished });
        }
        // SAFETY: the copies into the saved side have completed.
        let digests = unsafe { self.saved_digests(&extents, &time) }?;
        Ok(Image { extents, digests })
    }

    unsafe fn restore(
        &self,
        image: Image,
        _mode: RestoreMode,
        alive: &dyn Fn(&Region) -> bool,
        limit: Duration,
    ) -> RestoreResult<Image, Torn, Running<D>> {
        let (mut bytes_copied, mut bytes_retired) = (0, 0);
        let mut copies = Vec::with_capacity(image.extents.len());
        for extent in &image.extents {
            let len = extent.len_bytes();
            if !alive(extent.region()) {
                bytes_retired += len.get();
                continue;
            }
            bytes_copied += len.get();
            copies.push(CopyOp {
                from: extent.saved(),
                to: extent.live(),
                len,
            });
        }
        // SAFETY: the trait's contract, for the extents that `alive` admits; sources are the
        // saved side, which nothing writes.
        match unsafe { self.copy(&copies, limit) } {
            Ok(None) => Ok(Restored {
                image,
                bytes_copied,
                bytes_retired,
            }),
            Ok(Some(unfinished)) => Err(RestoreError::TimedOut { limit, unfinished }),
            Err(source) => Err(RestoreError::Failed {
                torn: Torn(image),
                source,
            }),
        }
    }

    unsafe fn rescue(
        &self,
        Torn(image): Torn,
        alive: &dyn Fn(&Region) -> bool,
        limit: Duration,
    ) -> Result<Image, BlitError<Running<D>>> {
        let time = Time::start(limit);
        let mut buffer = vec![0; TILE_BYTES as usize];
        for extent in image.extents.iter().filter(|e| alive(e.region())) {
            for (tile, from) in tiles_at(extent, extent.saved()) {
                time.check(self.device.agent(), "copy by the host")?;
                let bytes = &mut buffer[..tile.len() as usize];
                // SAFETY: the saved side is the caller's, and no copy of ours runs.
                unsafe { self.device.read(from, bytes) }?;
                let to = DeviceAddr(extent.live().0 + tile.start());
                // SAFETY: the tile lies inside a live extent, and no copy of ours runs.
                unsafe { self.device.write(to, bytes) }?;
            }
        }
        Ok(image)
    }

    unsafe fn verify(
        &self,
        image: Image,
        _alive: &dyn Fn(&Region) -> bool,
        limit: Duration,
    ) -> Result<(Image, Verdict), BlitError<Running<D>>> {
        // SAFETY: the saved side is the caller's, and no copy of ours runs.
        let now = unsafe { self.saved_digests(&image.extents, &Time::start(limit)) }?;
        let tiles = image
            .extents
            .iter()
            .flat_map(|extent| tiles_at(extent, extent.live()).map(|(_, live)| live));
        let mut damaged = tiles
            .zip(now.iter().zip(&image.digests))
            .filter(|(_, (now, then))| now != then)
            .map(|(live, _)| live);
        let verdict = match damaged.next() {
            None => Verdict::Clean,
            Some(first) => Verdict::ImageDamaged {
                tiles: 1 + damaged.count() as u64,
                first,
            },
        };
        Ok((image, verdict))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kr_device::Block;
    use kr_device::host::{Fault, HostBlock, HostDevice};
    use kr_types::{Generation, MemoryClass, Tier};

    const LIMIT: Duration = Duration::from_secs(20);
    const LENS: [u64; 4] = [1, 100, TILE_BYTES, 3 * TILE_BYTES + 5];

    /// Blocks of odd lengths filled with a pattern, and an arena that holds a copy of each.
    struct Rig {
        device: HostDevice,
        engine: FullCopy<HostDevice>,
        blocks: Vec<HostBlock>,
        _arena: HostBlock,
        extents: Vec<Extent>,
    }

    impl Rig {
        fn new() -> Self {
            let device = HostDevice::new(AgentId(3));
            let alloc = |len: u64| device.alloc(Tier::Device, len.try_into().unwrap()).unwrap();
            let arena = alloc(LENS.iter().map(|len| len + 256).sum());
            let mut at = arena.addr().0 + 3;
            let blocks: Vec<_> = LENS.iter().map(|len| alloc(*len)).collect();
            let mut extents = Vec::new();
            for block in &blocks {
                let len = block.len_bytes().get();
                let region = Region::new(
                    device.agent(),
                    block.addr(),
                    len,
                    Generation::FIRST,
                    MemoryClass::Vram,
                );
                let extent = Extent::new(region.unwrap(), 0, len, DeviceAddr(at), Tier::Device);
                extents.push(extent.unwrap());
                at += len + 1;
            }
            let rig = Self {
                engine: FullCopy::new(device.clone(), 7),
                device,
                blocks,
                _arena: arena,
                extents,
            };
            rig.fill(1);
            rig
        }

        fn fill(&self, salt: u64) {
            for block in &self.blocks {
                let bytes: Vec<u8> = (0..block.len_bytes().get())
                    .map(|i| (i.wrapping_mul(31) ^ salt) as u8)
                    .collect();
                self.device.write_bytes(block.addr(), &bytes).unwrap();
            }
        }

        fn live(&self) -> Vec<Vec<u8>> {
            let read = |block: &HostBlock| {
                let mut bytes = vec![0; block.len_bytes().get() as usize];
                self.device.read_bytes(block.addr(), &mut bytes).unwrap();
                bytes
            };
            self.blocks.iter().map(read).collect()
        }

        fn capture(&self) -> Image {
            // SAFETY: the blocks and the arena live as long as the rig; nothing else runs.
            unsafe { self.engine.capture(self.extents.clone(), LIMIT) }.unwrap()
        }

        fn restore(
            &self,
            image: Image,
            limit: Duration,
        ) -> RestoreResult<Image, Torn, Running<HostDevice>> {
            // SAFETY: as above.
            unsafe {
                self.engine
                    .restore(image, RestoreMode::Full, &|_| true, limit)
            }
        }
    }

    #[test]
    fn restores_every_saved_byte_any_number_of_times() {
        let rig = Rig::new();
        let before = rig.live();
        let mut image = rig.capture();
        for salt in 2..5 {
            rig.fill(salt);
            assert_ne!(rig.live(), before);
            let restored = rig.restore(image, LIMIT).unwrap();
            assert_eq!(rig.live(), before);
            assert_eq!(restored.bytes_copied, LENS.iter().sum::<u64>());
            assert_eq!(restored.bytes_retired, 0);
            image = restored.image;
        }
        // SAFETY: as in `capture`.
        let (_, verdict) = unsafe { rig.engine.verify(image, &|_| true, LIMIT) }.unwrap();
        assert_eq!(verdict, Verdict::Clean);
    }

    #[test]
    fn a_retired_region_is_not_written() {
        let rig = Rig::new();
        let image = rig.capture();
        rig.fill(9);
        let (after, gone) = (rig.live(), rig.blocks[1].addr());
        // SAFETY: as in `capture`.
        let restored = unsafe {
            rig.engine
                .restore(image, RestoreMode::Full, &|r| r.base() != gone, LIMIT)
        };
        assert_eq!(restored.unwrap().bytes_retired, LENS[1]);
        assert_eq!(rig.live()[1], after[1]);
        assert_ne!(rig.live()[0], after[0]);
    }

    #[test]
    fn damage_to_the_saved_bytes_is_found_and_located() {
        let rig = Rig::new();
        let image = rig.capture();
        let extent = rig.extents[3];
        let hit = DeviceAddr(extent.saved().0 + 2 * TILE_BYTES + 17);
        rig.device.write_bytes(hit, &[0xff]).unwrap();
        // SAFETY: as in `capture`.
        let (_, verdict) = unsafe { rig.engine.verify(image, &|_| true, LIMIT) }.unwrap();
        let first = DeviceAddr(extent.live().0 + 2 * TILE_BYTES);
        assert_eq!(verdict, Verdict::ImageDamaged { tiles: 1, first });
    }

    #[test]
    fn a_failed_capture_yields_no_image_and_leaves_memory_alone() {
        for fault in [Fault::Submit, Fault::Copy, Fault::Read] {
            let rig = Rig::new();
            let before = rig.live();
            rig.device.fail_nth(fault, 0);
            // SAFETY: as in `capture`.
            let result = unsafe { rig.engine.capture(rig.extents.clone(), LIMIT) };
            assert!(matches!(result, Err(BlitError::Failed(_))), "{fault:?}");
            assert_eq!(rig.live(), before);
        }
    }

    #[test]
    fn a_torn_restore_can_only_be_rescued() {
        let rig = Rig::new();
        let before = rig.live();
        for n in 0..LENS.len() as u64 {
            let image = rig.capture();
            rig.fill(40 + n);
            rig.device.fail_nth(Fault::Copy, n);
            let Err(RestoreError::Failed { torn, .. }) = rig.restore(image, LIMIT) else {
                panic!("copy {n} was made to fail");
            };
            // SAFETY: as in `capture`.
            let image = unsafe { rig.engine.rescue(torn, &|_| true, LIMIT) }.unwrap();
            assert_eq!(rig.live(), before);
            assert_eq!(image.extents, rig.extents);
        }
    }

    #[test]
    fn a_failed_rescue_says_so() {
        for fault in [Fault::Read, Fault::Write] {
            let rig = Rig::new();
            let image = rig.capture();
            rig.device.fail_nth(Fault::Submit, 0);
            let Err(RestoreError::Failed { torn, .. }) = rig.restore(image, LIMIT) else {
                panic!("the submit was made to fail");
            };
            rig.device.fail_nth(fault, 2);
            // SAFETY: as in `capture`.
            assert!(unsafe { rig.engine.rescue(torn, &|_| true, LIMIT) }.is_err());
        }
    }

    #[test]
    fn work_that_outlives_its_limit_is_handed_over_and_seen_to_end() {
        let rig = Rig::new();
        let hold = rig.device.hold_copies();
        let limit = Duration::from_millis(1);
        // SAFETY: as in `capture`; the blocks outlive the copies, which end below.
        let result = unsafe { rig.engine.capture(rig.extents.clone(), limit) };
        let Err(BlitError::TimedOut { unfinished, .. }) = result else {
            panic!("copies are held");
        };
        assert!(!unfinished.is_finished());
        drop(hold);
        while !unfinished.is_finished() {
            std::thread::yield_now();
        }
        assert!(unfinished.is_finished());
    }
}
