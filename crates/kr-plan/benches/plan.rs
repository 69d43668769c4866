//! What planning costs: per region, up to a million of them, over two tiers.
//!
//! `cargo bench -p kr-plan --bench plan` reports regions per second, for requests that come
//! - `sorted` by live address, as inventories list regions;
//! - `hot`: the same, and one in eight goes first;
//! - `shuffled`, with priorities at random.
//!
//! No memory is allocated from a device; the lists of the plan itself are.

use std::hint::black_box;
use std::num::NonZeroU64;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use kr_plan::{Request, plan, plan_and_commit};
use kr_storage::{
    Arena, ArenaBlock, BackingAllocator, Bump, CommitError, Fallback, NullAllocator,
    PrefixChunking, TierBudget, TierChain,
};
use kr_types::{AgentId, DeviceAddr, Generation, MemoryClass, Region, TILE_BYTES, Tier};

/// A tier with a budget whose blocks are an address and a length.
struct Numbers(Tier, u64);

struct Block(DeviceAddr, NonZeroU64);

impl ArenaBlock for Block {
    fn addr(&self) -> DeviceAddr {
        self.0
    }

    fn len_bytes(&self) -> NonZeroU64 {
        self.1
    }
}

impl BackingAllocator for Numbers {
    type Block = Block;

    fn tier(&self) -> Tier {
        self.0
    }

    fn budget(&self) -> TierBudget {
        TierBudget {
            bytes: self.1,
            ..TierBudget::default()
        }
    }

    fn commit(&mut self, bytes: NonZeroU64) -> Result<Block, CommitError> {
        Ok(Block(DeviceAddr(1 << 52), bytes))
    }
}

/// The device takes about half of `demand` and the host all the rest.
fn chain(demand: u64) -> impl TierChain {
    let arena = |tier, bytes| Arena::new(PrefixChunking::TILE, Bump::new(), Numbers(tier, bytes));
    let device = arena(Tier::Device, demand / 2);
    let pinned = arena(Tier::PinnedHost, u64::MAX);
    Fallback::new(device, Fallback::new(pinned, NullAllocator))
}

/// Steps of a pseudo-random walk, the same in every run.
fn random(state: &mut u64) -> u64 {
    // Knuth's MMIX generator; the high half is good enough to shuffle with.
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *state >> 32
}

/// So many regions of one byte up to four tiles, in ascending order of address.
fn regions(count: usize) -> (Vec<Region>, u64) {
    let (mut state, mut base, mut demand) = (1, 0x1000, 0);
    let regions = (0..count)
        .map(|_| {
            let len = 1 + random(&mut state) % (4 * TILE_BYTES);
            base += 0x2_0000;
            demand += len;
            Region::new(
                AgentId(1),
                DeviceAddr(base),
                len,
                Generation::FIRST,
                MemoryClass::Vram,
            )
            .expect("a small region far from the end of the address space")
        })
        .collect();
    (regions, demand)
}

#[derive(Clone, Copy, Debug)]
enum Order {
    Sorted,
    Hot,
    Shuffled,
}

fn requests(regions: &[Region], order: Order) -> Vec<Request> {
    let mut requests: Vec<_> = (0..)
        .zip(regions)
        .map(|(index, region)| Request::whole(index, region))
        .collect();
    let mut state = 2;
    match order {
        Order::Sorted => {}
        Order::Hot => {
            for request in &mut requests {
                request.priority = i32::from(random(&mut state).is_multiple_of(8));
            }
        }
        Order::Shuffled => {
            for at in (1..requests.len()).rev() {
                requests.swap(at, random(&mut state) as usize % (at + 1));
                requests[at].priority = (random(&mut state) % 4) as i32;
            }
        }
    }
    requests
}

fn bench(criterion: &mut Criterion) {
    for order in [Order::Sorted, Order::Hot, Order::Shuffled] {
        let mut group = criterion.benchmark_group(format!("{order:?}").to_lowercase());
        group
            .sample_size(20)
            .measurement_time(Duration::from_secs(3));
        for count in [4_096, 65_536, 262_144, 1_000_000] {
            let (regions, demand) = regions(count);
            let requests = requests(&regions, order);
            group.throughput(Throughput::Elements(count as u64));
            group.bench_function(BenchmarkId::new("plan", count), |bencher| {
                let mut chain = chain(demand);
                bencher.iter(|| plan(&mut chain, black_box(&regions), black_box(&requests)));
            });
            group.bench_function(BenchmarkId::new("plan_and_commit", count), |bencher| {
                let mut chain = chain(demand);
                bencher.iter(|| {
                    plan_and_commit(&mut chain, black_box(&regions), black_box(&requests))
                });
            });
        }
        group.finish();
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
