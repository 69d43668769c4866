//! How fast one core hashes, compared with how fast it copies.
//!
//! `cargo bench -p kr-blit --bench digest` hashes a buffer tile by tile, once with 64 and once with
//! 128 bits, and copies the same buffer with `memcpy`; each from memory (256 MiB) and from a cache
//! (512 KiB). At the end stand the medians, and their ratio to the copy of the same run. A rate
//! counts the bytes hashed, or copied: a copy of n bytes counts n, although it moves 2 n.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use kr_blit::{Digester, process_seed};
use kr_types::TILE_BYTES;

/// Times of one iteration, by what was done.
#[derive(Default)]
struct Medians(Vec<(&'static str, Vec<f64>)>);

impl Medians {
    fn record(&mut self, name: &'static str, iterations: u64, took: Duration) {
        let seconds = took.as_secs_f64() / iterations as f64;
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, samples)) => samples.push(seconds),
            None => self.0.push((name, vec![seconds])),
        }
    }

    /// The first is what the others are compared with.
    fn print(mut self, title: &str, bytes: usize) {
        let mut first = None;
        for (name, samples) in &mut self.0 {
            samples.sort_unstable_by(f64::total_cmp);
            let rate = bytes as f64 / samples[samples.len() / 2] / 1e9;
            let first = *first.get_or_insert(rate);
            println!("{title}: {name:10} {rate:7.2} GB/s  {:.2}", rate / first);
        }
    }
}

fn bench(criterion: &mut Criterion) {
    let digester = Digester::new(process_seed());
    for (title, len) in [("memory", 256 << 20), ("cache", 512 << 10)] {
        let from: Vec<u8> = (0..len as u64 / 8)
            .flat_map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes())
            .collect();
        let mut to = vec![1; len];
        let mut medians = Medians::default();
        let mut group = criterion.benchmark_group(title);
        group
            .throughput(Throughput::Bytes(len as u64))
            .sample_size(20)
            .measurement_time(Duration::from_secs(4));
        let mut measure = |name: &'static str, work: &mut dyn FnMut()| {
            group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
                bencher.iter_custom(|iterations| {
                    let start = Instant::now();
                    (0..iterations).for_each(|_| work());
                    let took = start.elapsed();
                    medians.record(name, iterations, took);
                    took
                });
            });
        };
        measure("memcpy", &mut || {
            to.copy_from_slice(black_box(&from));
            black_box(&mut to);
        });
        measure("digest64", &mut || {
            for tile in black_box(&from).chunks(TILE_BYTES as usize) {
                black_box(digester.tile(tile));
            }
        });
        measure("digest128", &mut || {
            for tile in black_box(&from).chunks(TILE_BYTES as usize) {
                black_box(digester.tile128(tile));
            }
        });
        group.finish();
        medians.print(title, len);
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
