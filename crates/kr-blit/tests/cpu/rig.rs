//! Regions on a host device, an arena in two tiers, and a model of all their bytes.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::time::Duration;

use kr_blit::{
    BlitError, CpuBlit, CpuConfig, CpuImage, CpuRestored, CpuTorn, CpuUnfinished, Liveness,
    Recaptured, RestoreError, Verdict,
};
use kr_device::host::{HostBlock, HostDevice};
use kr_device::{Block, Device};
use kr_types::{
    AgentId, ByTier, DeviceAddr, Extent, Generation, MemoryClass, Region, RestoreMode, TILE_BYTES,
    Tier,
};

pub(crate) const LIMIT: Duration = Duration::from_secs(60);

pub(crate) type Unfinished = CpuUnfinished<HostDevice>;
pub(crate) type Image = CpuImage;

/// One region to make.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    /// Bytes before it that belong to nobody.
    pub(crate) gap: u64,
    pub(crate) len: u64,
    /// Its extents: tiles of each and where they are saved, repeated until the region is used up.
    pub(crate) cuts: Vec<(u64, Tier)>,
}

impl Spec {
    /// A region in one extent.
    pub(crate) fn whole(gap: u64, len: u64, tier: Tier) -> Self {
        let cuts = vec![(u64::MAX, tier)];
        Self { gap, len, cuts }
    }
}

/// A tile, as the model counts them: extent and index therein.
pub(crate) type TileId = (usize, u64);

pub(crate) struct Rig {
    pub(crate) device: HostDevice,
    pub(crate) engine: CpuBlit<HostDevice>,
    pub(crate) regions: Vec<Region>,
    pub(crate) extents: Vec<Extent>,
    pub(crate) retired: Vec<Region>,
    /// What the live block should hold.
    pub(crate) model: Vec<u8>,
    /// What it held at the last capture.
    pub(crate) captured: Vec<u8>,
    live: HostBlock,
    arena: ByTier<HostBlock>,
}

impl Rig {
    pub(crate) fn new(specs: &[Spec], config: &CpuConfig) -> Self {
        let device = HostDevice::new(AgentId(3));
        let engine = CpuBlit::with_config(device.clone(), config);
        let alloc = |tier, len: u64| {
            let len = NonZeroU64::new(len.max(1)).unwrap();
            device.alloc(tier, len).unwrap()
        };
        let total: u64 = specs.iter().map(|spec| spec.gap + spec.len).sum();
        let pieces: u64 = specs.iter().map(|s| s.len / TILE_BYTES + 1).sum();
        let live = alloc(Tier::Device, total + 9);
        let arena = ByTier::from_fn(|tier| alloc(tier, total + 7 * pieces + 9));
        let (mut regions, mut extents) = (Vec::new(), Vec::new());
        let mut at = live.addr().0;
        let mut saved = ByTier::from_fn(|tier| arena.get(tier).addr().0 + 5);
        let mut generation = Generation::FIRST;
        for spec in specs {
            at += spec.gap;
            let (base, class) = (DeviceAddr(at), MemoryClass::Vram);
            let region = Region::new(AgentId(3), base, spec.len, generation, class).unwrap();
            generation = generation.next();
            let mut start = 0;
            for (tiles, tier) in spec.cuts.iter().cycle() {
                let len = tiles.saturating_mul(TILE_BYTES).min(spec.len - start);
                let saved = saved.get_mut(*tier);
                let extent = Extent::new(region, start, len, DeviceAddr(*saved), *tier);
                extents.push(extent.unwrap());
                // Odd, so that all phases occur, and a few bytes stay nobody's.
                *saved += len + 7;
                start += len;
                if start == spec.len {
                    break;
                }
            }
            regions.push(region);
            at += spec.len;
        }
        let mut rig = Self {
            model: vec![0; live.len_bytes().get() as usize],
            captured: Vec::new(),
            retired: Vec::new(),
            device,
            engine,
            regions,
            extents,
            live,
            arena,
        };
        let noise = noise(1, rig.model.len());
        rig.write(0, &noise);
        for tier in Tier::ALL {
            let block = rig.arena.get(*tier);
            let guard = vec![0xa5; block.len_bytes().get() as usize];
            rig.device.write_bytes(block.addr(), &guard).unwrap();
        }
        rig
    }

    /// Where a live address is in the model.
    pub(crate) fn offset(&self, addr: DeviceAddr) -> usize {
        addr.offset_from(self.live.addr()).unwrap() as usize
    }

    /// What a kernel of the application does.
    pub(crate) fn write(&mut self, offset: usize, bytes: &[u8]) {
        let to = DeviceAddr(self.live.addr().0 + offset as u64);
        self.device.write_bytes(to, bytes).unwrap();
        self.model[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    /// Writes into a region.
    pub(crate) fn write_region(&mut self, region: usize, at: u64, bytes: &[u8]) {
        let offset = self.offset(self.regions[region].base()) + at as usize;
        self.write(offset, bytes);
    }

    /// What the application's memory holds.
    pub(crate) fn read(&self) -> Vec<u8> {
        self.read_block(&self.live)
    }

    fn read_block(&self, block: &HostBlock) -> Vec<u8> {
        let mut bytes = vec![0; block.len_bytes().get() as usize];
        self.device.read_bytes(block.addr(), &mut bytes).unwrap();
        bytes
    }

    /// The application's memory is what the model says, and nobody's bytes in the arena are as they
    /// were.
    pub(crate) fn check(&self) {
        let differs = self
            .read()
            .iter()
            .zip(&self.model)
            .position(|(a, b)| a != b);
        assert_eq!(differs, None, "first byte that is not as it should be");
        for tier in Tier::ALL {
            let block = self.arena.get(*tier);
            let mut guard = self.read_block(block);
            for extent in self.extents.iter().filter(|e| e.tier() == *tier) {
                let start = extent.saved().offset_from(block.addr()).unwrap() as usize;
                guard[start..][..extent.len_bytes().get() as usize].fill(0xa5);
            }
            assert!(guard.iter().all(|b| *b == 0xa5), "{tier}: a guard byte");
        }
    }

    pub(crate) fn is_alive(&self, region: &Region) -> bool {
        !self.retired.contains(region)
    }

    /// All tiles of live extents, with the range of the model that each covers.
    pub(crate) fn tiles(&self) -> BTreeMap<TileId, std::ops::Range<usize>> {
        let mut tiles = BTreeMap::new();
        for (e, extent) in self.extents.iter().enumerate() {
            if !self.is_alive(extent.region()) {
                continue;
            }
            let start = self.offset(extent.live());
            let end = start + extent.len_bytes().get() as usize;
            for (index, at) in (start..end).step_by(TILE_BYTES as usize).enumerate() {
                let tile = at..end.min(at + TILE_BYTES as usize);
                tiles.insert((e, index as u64), tile);
            }
        }
        tiles
    }

    /// The tiles of which the model differs from what was captured.
    pub(crate) fn changed(&self) -> BTreeMap<TileId, std::ops::Range<usize>> {
        let mut tiles = self.tiles();
        tiles.retain(|_, r| self.model[r.clone()] != self.captured[r.clone()]);
        tiles
    }

    pub(crate) fn tier(&self, tile: &TileId) -> Tier {
        self.extents[tile.0].tier()
    }

    /// Puts a tile of the model back.
    pub(crate) fn put_back(&mut self, range: std::ops::Range<usize>) {
        self.model[range.clone()].copy_from_slice(&self.captured[range]);
    }

    /// Puts all of the model back.
    pub(crate) fn put_all_back(&mut self) {
        for range in self.tiles().into_values() {
            self.put_back(range);
        }
    }

    pub(crate) fn capture(&mut self) -> Image {
        let image = self.try_capture(LIMIT).unwrap();
        self.captured = self.model.clone();
        image
    }

    pub(crate) fn try_capture(&self, limit: Duration) -> Result<Image, BlitError<Unfinished>> {
        // SAFETY: the blocks live as long as the rig, which every test keeps until nothing runs any
        // more; only the test itself uses them, and it waits.
        unsafe { self.engine.capture(self.extents.clone(), limit) }
    }

    pub(crate) fn recapture(&mut self, image: Image) -> Recaptured<Image> {
        let alive = |region: &Region| self.is_alive(region);
        // SAFETY: as in `try_capture`.
        let recaptured = unsafe { self.engine.recapture(image, Liveness::ask(&alive), LIMIT) };
        let recaptured = recaptured.unwrap();
        for range in self.tiles().into_values() {
            self.captured[range.clone()].copy_from_slice(&self.model[range]);
        }
        recaptured
    }

    pub(crate) fn restore(&self, image: Image, modes: ByTier<RestoreMode>) -> CpuRestored {
        self.try_restore(image, modes, LIMIT).unwrap()
    }

    pub(crate) fn try_restore(
        &self,
        image: Image,
        modes: ByTier<RestoreMode>,
        limit: Duration,
    ) -> Result<CpuRestored, RestoreError<CpuTorn, Unfinished>> {
        let alive = |region: &Region| self.is_alive(region);
        // SAFETY: as in `try_capture`.
        unsafe {
            self.engine
                .restore(image, modes, Liveness::ask(&alive), limit)
        }
    }

    pub(crate) fn try_rescue(&self, torn: CpuTorn) -> Result<Image, BlitError<Unfinished>> {
        let alive = |region: &Region| self.is_alive(region);
        // SAFETY: as in `try_capture`.
        unsafe { self.engine.rescue(torn, Liveness::ask(&alive), LIMIT) }
    }

    pub(crate) fn verify(&self, image: Image) -> (Image, Verdict) {
        self.try_verify(image).unwrap()
    }

    pub(crate) fn try_verify(
        &self,
        image: Image,
    ) -> Result<(Image, Verdict), BlitError<Unfinished>> {
        let alive = |region: &Region| self.is_alive(region);
        // SAFETY: as in `try_capture`.
        unsafe { self.engine.verify(image, Liveness::ask(&alive), LIMIT) }
    }
}

/// Bytes without a pattern.
pub(crate) fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x2545_f491_4f6c_dd1d) | 1;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

pub(crate) const FULL: ByTier<RestoreMode> = both(RestoreMode::Full);
pub(crate) const EVERY: ByTier<RestoreMode> = both(RestoreMode::HashEveryPass);
pub(crate) const ONCE: ByTier<RestoreMode> = both(RestoreMode::HashOnce);

const fn both(mode: RestoreMode) -> ByTier<RestoreMode> {
    ByTier {
        device: mode,
        pinned_host: mode,
    }
}
