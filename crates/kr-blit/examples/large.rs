//! The restore law on one large amount of memory, too large for the test suite.
//!
//! `cargo run --release -p kr-blit --example large` saves 2 GiB in regions of up to 300 MiB over two
//! tiers, spoils it several times, puts it back in every mode, and compares every byte of it and of
//! the gaps between. A number as argument is another size in MiB. It needs twice the memory, and
//! fails with an exit status other than 0.

use std::error::Error;
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use kr_blit::{CpuBlit, Liveness, Verdict};
use kr_device::host::{HostBlock, HostDevice};
use kr_device::{Block, Device};
use kr_types::{
    AgentId, ByTier, DeviceAddr, Extent, Generation, MemoryClass, Region, RestoreMode, TILE_BYTES,
    Tier,
};

const LIMIT: Duration = Duration::from_secs(300);
const PART: usize = 1 << 20;

/// What byte `at` of the block holds at first; whole tiles of zeros now and then.
fn original(at: u64) -> u8 {
    let word = (at / 8).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    match (at / 100_000).is_multiple_of(7) {
        true => 0,
        false => (word >> (at % 8 * 7)) as u8,
    }
}

struct Rig {
    device: HostDevice,
    live: HostBlock,
    /// Where in the block regions are.
    regions: Vec<std::ops::Range<u64>>,
}

impl Rig {
    fn fill(
        &self,
        bytes: std::ops::Range<u64>,
        byte: impl Fn(u64) -> u8,
    ) -> Result<(), Box<dyn Error>> {
        for start in bytes.clone().step_by(PART) {
            let part: Vec<u8> = (start..bytes.end.min(start + PART as u64))
                .map(&byte)
                .collect();
            self.device
                .write_bytes(DeviceAddr(self.live.addr().0 + start), &part)?;
        }
        Ok(())
    }

    /// A kernel: one byte in most regions' every 700,000, and a run of them in each; also between
    /// the regions.
    fn spoil(&self, pass: u64) -> Result<(), Box<dyn Error>> {
        let len = self.live.len_bytes().get();
        for at in (pass * 1_000..len).step_by(700_001) {
            self.fill(at..at + 1, |at| !original(at))?;
        }
        for region in &self.regions {
            let len = (region.end - region.start).min(3 << 20);
            self.fill(region.start..region.start + len, |_| pass as u8)?;
        }
        Ok(())
    }

    /// Every byte of a region is the original; says how many bytes between them are not.
    fn compare(&self) -> Result<u64, Box<dyn Error>> {
        let len = self.live.len_bytes().get();
        let (mut part, mut spoilt) = (vec![0; PART], 0);
        let mut regions = self.regions.iter().peekable();
        for start in (0..len).step_by(PART) {
            let part = &mut part[..(len - start).min(PART as u64) as usize];
            self.device
                .read_bytes(DeviceAddr(self.live.addr().0 + start), part)?;
            for (at, byte) in (start..).zip(&*part) {
                while regions.next_if(|region| region.end <= at).is_some() {}
                if *byte == original(at) {
                    continue;
                }
                if regions.peek().is_some_and(|region| region.contains(&at)) {
                    return Err(format!("byte {at} was not put back").into());
                }
                spoilt += 1;
            }
        }
        Ok(spoilt)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mib: u64 = match std::env::args().nth(1) {
        Some(mib) => mib
            .parse()
            .map_err(|_| format!("{mib} is not a number of MiB"))?,
        None => 2048,
    };
    let total = mib << 20;
    let device = HostDevice::new(AgentId(0));
    let alloc = |tier, len| {
        let len = NonZeroU64::new(len).ok_or("nothing to do for 0 MiB")?;
        device.alloc(tier, len).map_err(Box::<dyn Error>::from)
    };
    let live = alloc(Tier::Device, total + (1 << 20))?;
    let arenas = [
        alloc(Tier::Device, total)?,
        alloc(Tier::PinnedHost, total / 2 + TILE_BYTES)?,
    ];

    // Regions grow from a few bytes to 300 MiB; the device's tier takes the first half of each.
    let (mut regions, mut extents) = (Vec::new(), Vec::new());
    let mut saved = arenas.each_ref().map(|arena| arena.addr().0);
    let (mut at, mut left, mut len) = (13, total, 1_111);
    while left > 0 {
        let region_len = left.min(len).min(300 << 20);
        let base = DeviceAddr(live.addr().0 + at);
        let (first, class) = (Generation::FIRST, MemoryClass::Vram);
        let region = Region::new(AgentId(0), base, region_len, first, class)?;
        let half = (region_len / 2)
            .next_multiple_of(TILE_BYTES)
            .min(region_len);
        for (tier, start, end) in [(0, 0, half), (1, half, region_len)] {
            if start < end {
                let to = DeviceAddr(saved[tier]);
                extents.push(Extent::new(
                    region,
                    start,
                    end - start,
                    to,
                    Tier::ALL[tier],
                )?);
                saved[tier] += end - start;
            }
        }
        regions.push(at..at + region_len);
        at += region_len + 13;
        left -= region_len;
        len = len * 3 / 2 + 1;
    }
    println!(
        "{mib} MiB in {} regions and {} extents",
        regions.len(),
        extents.len()
    );
    let rig = Rig {
        device,
        live,
        regions,
    };
    rig.fill(0..rig.live.len_bytes().get(), original)?;

    let engine = CpuBlit::new(rig.device.clone());
    let alive = |_: &Region| true;
    let start = Instant::now();
    // SAFETY: all blocks outlive the engine's work, are apart, and nothing else uses them.
    let mut image = unsafe { engine.capture(extents, LIMIT) }?;
    println!("captured in {:.2?}", start.elapsed());
    let mixed = ByTier {
        device: RestoreMode::HashEveryPass,
        pinned_host: RestoreMode::Full,
    };
    let modes = RestoreMode::ALL.iter().map(|mode| ByTier::uniform(*mode));
    for (modes, window) in modes.chain([mixed]).zip(1..) {
        for pass in 1..4 {
            // Under hash-once all passes change the same tiles.
            let once = modes.device == RestoreMode::HashOnce;
            rig.spoil(if once { 1 } else { pass })?;
            let start = Instant::now();
            // SAFETY: as above.
            let restored = unsafe { engine.restore(image, modes, Liveness::ask(&alive), LIMIT) };
            let restored = restored.map_err(|error| error.to_string())?;
            let took = start.elapsed();
            let spoilt = rig.compare()?;
            if spoilt == 0 {
                return Err("bytes that were not saved were put back".into());
            }
            println!(
                "{modes:?}: {} bytes put back in {took:.2?}",
                restored.report.bytes_copied
            );
            image = restored.image;
        }
        // SAFETY: as above.
        let (kept, verdict) = unsafe { engine.verify(image, Liveness::ask(&alive), LIMIT) }?;
        if verdict != Verdict::Clean {
            return Err(verdict.to_string().into());
        }
        // SAFETY: as above.
        let next = unsafe { engine.recapture(kept, Liveness::ask(&alive), LIMIT) }?;
        println!(
            "window {window}: {} bytes copied by the next capture",
            next.bytes_copied
        );
        if next.bytes_copied != 0 {
            return Err("nothing had changed since the last restore".into());
        }
        image = next.image;
    }
    println!("every byte is what it was");
    Ok(())
}
