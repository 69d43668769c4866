//! What an engine on the host's processors takes for 2 GiB of which 1 % of the tiles change.
//!
//! `cargo bench -p kr-blit --bench restore` needs 4.5 GiB of memory. The regions are 64 of 32 MiB,
//! all words different; before each timed step every hundredth tile is overwritten. Beside the
//! operations of `CpuBlit` stand those of `FullCopy` and a plain copy of the device, the yardstick.
//! At the end stand the medians as rates over all 2 GiB, and their ratio to the full restore.

use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use kr_blit::{BlitEngine, CpuBlit, CpuImage, FullCopy, Liveness};
use kr_device::host::{HostBlock, HostDevice};
use kr_device::{Block, CopyOp, Device};
use kr_types::{
    AgentId, ByTier, DeviceAddr, Extent, Generation, MemoryClass, Region, RestoreMode, TILE_BYTES,
    Tier,
};

const BYTES: u64 = 2 << 30;
const REGIONS: u64 = 64;
const LIMIT: Duration = Duration::from_secs(60);

struct Rig {
    device: HostDevice,
    blocks: Vec<HostBlock>,
    arena: HostBlock,
    extents: Vec<Extent>,
}

impl Rig {
    fn new() -> Self {
        let device = HostDevice::new(AgentId(0));
        let alloc = |len: u64| {
            let len = NonZeroU64::new(len).expect("no region is empty");
            device.alloc(Tier::Device, len).expect("there is memory")
        };
        let arena = alloc(BYTES);
        let len = BYTES / REGIONS;
        let blocks: Vec<_> = (0..REGIONS).map(|_| alloc(len)).collect();
        let extents = blocks.iter().zip(0..).map(|(block, i)| {
            let (base, class) = (block.addr(), MemoryClass::Vram);
            let region = Region::new(AgentId(0), base, len, Generation::FIRST, class);
            let saved = DeviceAddr(arena.addr().0 + i * len);
            let region = region.expect("allocated");
            Extent::new(region, 0, len, saved, Tier::Device).expect("fits")
        });
        let rig = Self {
            extents: extents.collect(),
            device: device.clone(),
            blocks,
            arena,
        };
        rig.write(1, 0);
        rig
    }

    /// Overwrites one tile in `every`.
    fn write(&self, every: usize, salt: u64) {
        let tiles = self.blocks.iter().flat_map(|block| {
            let tiles = block.len_bytes().get() / TILE_BYTES;
            (0..tiles).map(|tile| DeviceAddr(block.addr().0 + tile * TILE_BYTES))
        });
        for (i, tile) in tiles.enumerate().step_by(every) {
            let words = (0..TILE_BYTES / 8).map(|word| (i as u64 * TILE_BYTES + word) ^ salt << 50);
            let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
            self.device.write_bytes(tile, &bytes).expect("allocated");
        }
    }
}

/// Times of one iteration, by what was done.
#[derive(Default)]
struct Medians(Vec<(&'static str, Vec<f64>)>);

impl Medians {
    fn print(mut self) {
        let mut rates: Vec<_> = self
            .0
            .iter_mut()
            .map(|(name, samples)| {
                samples.sort_unstable_by(f64::total_cmp);
                (*name, BYTES as f64 / samples[samples.len() / 2] / 1e9)
            })
            .collect();
        rates.sort_by_key(|(name, _)| *name);
        let full = rates.iter().find(|(name, _)| *name == "restore full");
        let full = full.map_or(f64::NAN, |(_, rate)| *rate);
        for (name, rate) in rates {
            println!(
                "{name:24} {rate:7.2} GB/s  {:5.2} of a full restore",
                rate / full
            );
        }
    }
}

fn bench(criterion: &mut Criterion) {
    let rig = Rig::new();
    let mut medians = Medians::default();
    let mut group = criterion.benchmark_group("2 GiB");
    group
        .throughput(Throughput::Bytes(BYTES))
        .sample_size(10)
        .warm_up_time(Duration::from_millis(1))
        .measurement_time(Duration::from_secs(5));
    // Times `work` after 1 % of the tiles have been overwritten.
    let mut measure = |name: &'static str, work: &mut dyn FnMut()| {
        let mut samples = Vec::new();
        let mut salt = 0;
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|iterations| {
                let mut total = Duration::ZERO;
                for _ in 0..iterations {
                    salt += 1;
                    rig.write(100, salt);
                    let start = Instant::now();
                    work();
                    let took = start.elapsed();
                    samples.push(took.as_secs_f64());
                    total += took;
                }
                total
            });
        });
        if !samples.is_empty() {
            medians.0.push((name, samples));
        }
    };

    measure("device copy", &mut || {
        let len = BYTES / REGIONS;
        let copies: Vec<_> = rig
            .extents
            .iter()
            .map(|extent| CopyOp {
                from: extent.live(),
                to: extent.saved(),
                len: NonZeroU64::new(len).expect("no region is empty"),
            })
            .collect();
        // SAFETY: all blocks live as long as the rig, are apart, and nothing else uses them.
        let fence = unsafe { rig.device.submit(&copies) }.expect("the host device copies");
        assert_eq!(rig.device.wait(&fence, LIMIT), Ok(true));
    });

    let plain = FullCopy::new(rig.device.clone(), 1);
    measure("capture FullCopy", &mut || {
        // SAFETY: as above.
        unsafe { plain.capture(rig.extents.clone(), LIMIT) }.expect("the host device copies");
    });
    // SAFETY: as above.
    let mut image = Some(unsafe { plain.capture(rig.extents.clone(), LIMIT) }.expect("as above"));
    measure("restore FullCopy", &mut || {
        let taken = image.take().expect("put back below");
        // SAFETY: as above.
        let restored = unsafe { plain.restore(taken, RestoreMode::Full, &|_| true, LIMIT) };
        image = Some(restored.expect("the host device copies").image);
    });

    let engine = CpuBlit::new(rig.device.clone());
    // SAFETY: as above.
    let capture = || unsafe { engine.capture(rig.extents.clone(), LIMIT) };
    measure("capture", &mut || {
        drop(capture().expect("the host device copies"))
    });
    let mut image = Some(capture().expect("the host device copies"));
    let restore = |image: CpuImage, mode| {
        // SAFETY: as above.
        let restored = unsafe {
            let alive = |_: &Region| true;
            engine.restore(image, ByTier::uniform(mode), Liveness::ask(&alive), LIMIT)
        };
        restored.expect("the host device copies")
    };
    for (name, mode) in [
        ("restore full", RestoreMode::Full),
        ("restore hash-every-pass", RestoreMode::HashEveryPass),
        ("restore hash-once, listed", RestoreMode::HashOnce),
    ] {
        measure(name, &mut || {
            let restored = restore(image.take().expect("put back below"), mode);
            image = Some(restored.image);
        });
    }
    measure("final check", &mut || {
        let listed = restore(image.take().expect("put back below"), RestoreMode::HashOnce);
        // SAFETY: as above.
        let verified = unsafe { engine.verify(listed.image, Liveness::ask(&|_| true), LIMIT) };
        image = Some(verified.expect("the host device reads").0);
    });
    measure("recapture", &mut || {
        let taken = image.take().expect("put back below");
        // SAFETY: as above.
        let recaptured = unsafe { engine.recapture(taken, Liveness::ask(&|_| true), LIMIT) };
        image = Some(recaptured.expect("the host device copies").image);
    });
    group.finish();
    let image = image.expect("put back above");
    println!(
        "an image takes {:.3} % of the saved bytes",
        image.host_bytes() as f64 * 100.0 / BYTES as f64
    );
    medians.print();
    drop(rig.arena);
}

criterion_group!(benches, bench);
criterion_main!(benches);
