//! Wave instructions per second of the digest kernel: 8 tiles of 16 KiB on 32 waves, memory in this process.

use std::fs;
use std::hint::black_box;
use std::path::Path;

use amdgpu_emu::object::CodeObject;
use amdgpu_emu::{Dispatch, Emulator, FlatMemory, Memory};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const BASE: u64 = 0x7000_0000_0000;
const ARGUMENTS: u64 = BASE + 0x1_0000;
const DIGESTS: u64 = BASE + 0x2_0000;
const WORDS: u64 = BASE + 0x10_0000;
const TILES: u32 = 8;

fn digest(criterion: &mut Criterion) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/objects/digest.v4.co");
    let memory = FlatMemory::new(BASE, 0x20_0000);
    let object =
        CodeObject::parse(&fs::read(path).expect("it is checked in")).expect("it is for gfx90a");
    let object = object.load(&memory, BASE).expect("there is memory");
    let kernel = &object.kernels()[0];
    let dispatch = Dispatch {
        kernarg_address: ARGUMENTS,
        ..kernel.dispatch([256, 1, 1], [256 * TILES, 1, 1])
    };
    let explicit = [DIGESTS.to_le_bytes(), WORDS.to_le_bytes()].concat();
    memory
        .write(ARGUMENTS, &kernel.arguments(&explicit, &dispatch))
        .expect("there is memory");

    let mut instructions = 0;
    Emulator::new(&memory)
        .trace(|_| instructions += 1)
        .run(&dispatch)
        .result
        .expect("the kernel runs");
    let mut group = criterion.benchmark_group("digest");
    group.throughput(Throughput::Elements(instructions));
    group.bench_function("wave instructions", |bencher| {
        bencher.iter(|| black_box(Emulator::new(&memory).run(&dispatch)));
    });
    group.finish();
}

criterion_group!(benches, digest);
criterion_main!(benches);
