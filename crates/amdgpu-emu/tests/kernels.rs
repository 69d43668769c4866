//! The checked-in test kernels compute what the same loop on the host computes.

mod support;

use std::collections::BTreeSet;

use amdgpu_emu::object::CodeObject;
use amdgpu_emu::{Counter, Counters, Dispatch, Emulator, FlatMemory, Memory, Outcome, Scratch};
use support::VERSIONS;

const BASE: u64 = 0x7000_0000_0000;
const CODE: u64 = BASE;
const ARGUMENTS: u64 = BASE + 0x10_0000;
const PACKET: u64 = BASE + 0x11_0000;
const BUFFERS: [u64; 3] = [BASE + 0x20_0000, BASE + 0x40_0000, BASE + 0x60_0000];
const SCRATCH: u64 = BASE + 0x80_0000;

/// An agent with one loaded kernel.
struct Agent {
    memory: FlatMemory,
    object: CodeObject,
}

impl Agent {
    fn new(kernel: &str, version: u8) -> Self {
        let memory = FlatMemory::new(BASE, 0xa0_0000);
        let object =
            CodeObject::parse(&support::object(kernel, version)).expect("it was made for gfx90a");
        assert_eq!(object.version(), version);
        let object = object.load(&memory, CODE).expect("there is memory");
        Self { memory, object }
    }

    /// The dispatch of the object's only kernel, with everything in memory that it needs.
    fn prepare(&self, groups: u32, size: u16, arguments: &[u8]) -> Dispatch {
        self.prepare_items(groups * u32::from(size), size, arguments)
    }

    fn prepare_items(&self, items: u32, size: u16, arguments: &[u8]) -> Dispatch {
        let [kernel] = self.object.kernels() else {
            panic!("one kernel per object")
        };
        let dispatch = Dispatch {
            kernarg_address: ARGUMENTS,
            packet_address: PACKET,
            scratch: Scratch::new(SCRATCH, 0x20_0000),
            ..kernel.dispatch([size, 1, 1], [items, 1, 1])
        };
        self.memory
            .write(ARGUMENTS, &kernel.arguments(arguments, &dispatch))
            .expect("there is memory");
        self.memory
            .write(PACKET, &dispatch.to_packet())
            .expect("there is memory");
        dispatch
    }

    /// Runs a dispatch to its good end. What it counted is what its trace adds up to, read as text.
    fn run(&self, dispatch: &Dispatch) -> Outcome {
        let (mut traced, mut waves) = (Counters::default(), BTreeSet::new());
        let mut emulator = Emulator::new(&self.memory).trace(|step| {
            waves.insert((step.place.workgroup, step.place.wave));
            for &counter in counted_as(&step.instruction.to_string()) {
                traced[counter] += 1;
            }
        });
        let outcome = emulator.run(dispatch);
        drop(emulator);
        outcome
            .result
            .unwrap_or_else(|fault| panic!("{fault} {:?}", std::error::Error::source(&fault)));
        traced[Counter::Waves] = waves.len() as u64;
        for counter in &Counter::ALL[..8] {
            let name = counter.name();
            assert_eq!(outcome.counters[*counter], traced[*counter], "{name}");
        }
        outcome
    }

    fn put<T: Copy, const N: usize>(&self, at: u64, values: &[T], bytes: impl Fn(T) -> [u8; N]) {
        let bytes: Vec<u8> = values.iter().flat_map(|&value| bytes(value)).collect();
        self.memory.write(at, &bytes).expect("there is memory");
    }

    fn get<T, const N: usize>(
        &self,
        at: u64,
        count: usize,
        value: impl Fn([u8; N]) -> T,
    ) -> Vec<T> {
        let mut bytes = vec![0; count * N];
        self.memory.read(at, &mut bytes).expect("there is memory");
        let (chunks, _) = bytes.as_chunks();
        chunks.iter().map(|chunk| value(*chunk)).collect()
    }
}

/// What an instruction counts as, by its text alone.
fn counted_as(text: &str) -> &'static [Counter] {
    let mnemonic = text.split(' ').next().unwrap_or(text);
    let kind = mnemonic.split('_').next().unwrap_or(mnemonic);
    let returns = !mnemonic.contains("atomic") || text.ends_with(" glc");
    let reads = !mnemonic.contains("store") && returns;
    match kind {
        "v" => &[Counter::InstsValu],
        "ds" => &[Counter::InstsLds],
        "flat" if reads => &[Counter::InstsVmemRd, Counter::InstsFlat],
        "flat" => &[Counter::InstsVmemWr, Counter::InstsFlat],
        "buffer" if mnemonic.contains("inv") || mnemonic.contains("wb") => &[],
        "global" | "scratch" | "buffer" if reads => &[Counter::InstsVmemRd],
        "global" | "scratch" | "buffer" => &[Counter::InstsVmemWr],
        "s" if mnemonic.starts_with("s_load") || mnemonic.starts_with("s_mem") => {
            &[Counter::InstsSmem]
        }
        "s" if mnemonic.starts_with("s_dcache") || mnemonic.starts_with("s_buffer_load") => {
            &[Counter::InstsSmem]
        }
        "s" if CONTROL.iter().any(|prefix| mnemonic.starts_with(prefix)) => &[],
        "s" => &[Counter::InstsSalu],
        _ => panic!("{text} is of no kind"),
    }
}

/// Beginnings of scalar mnemonics that are neither arithmetic nor memory: the SOPP encoding, and other jumps.
const CONTROL: [&str; 15] = [
    "s_barrier",
    "s_branch",
    "s_cbranch",
    "s_endpgm",
    "s_icache",
    "s_inst",
    "s_nop",
    "s_sendmsg",
    "s_sethalt",
    "s_setpc",
    "s_setprio",
    "s_sleep",
    "s_swappc",
    "s_trap",
    "s_waitcnt",
];

/// Arguments one after the other, each on a multiple of its size.
fn arguments(values: &[&[u8]]) -> Vec<u8> {
    let mut block = Vec::new();
    for value in values {
        block.resize(block.len().next_multiple_of(value.len()), 0);
        block.extend_from_slice(value);
    }
    block
}

/// Numbers that look random.
fn numbers(count: usize) -> Vec<u32> {
    (0..count as u32)
        .map(|i| i.wrapping_mul(0x9e37_79b9).rotate_left(i % 31) ^ 0x5bd1_e995)
        .collect()
}

#[test]
fn saxpy_in_place() {
    for version in VERSIONS {
        let agent = Agent::new("saxpy", version);
        let n = 1000;
        let x: Vec<f32> = (0..n).map(|i| i as f32 * 0.37 - 20.0).collect();
        let mut y: Vec<f32> = (0..n).map(|i| 1.0 / (i as f32 + 1.0)).collect();
        agent.put(BUFFERS[0], &y, f32::to_le_bytes);
        agent.put(BUFFERS[1], &x, f32::to_le_bytes);
        let block = arguments(&[
            &BUFFERS[0].to_le_bytes(),
            &BUFFERS[1].to_le_bytes(),
            &1.7f32.to_le_bytes(),
            &(n as u32).to_le_bytes(),
        ]);
        // The last workgroup is partly beyond n, and the last but one partial in the grid's second form.
        let whole = agent.prepare(8, 128, &block);
        let partial = agent.prepare_items(1000, 128, &block);
        for dispatch in [whole, partial] {
            agent.run(&dispatch);
            y.iter_mut()
                .zip(&x)
                .for_each(|(y, x)| *y = 1.7f32.mul_add(*x, *y));
            assert_eq!(agent.get(BUFFERS[0], n, f32::from_le_bytes), y);
        }
    }
}

#[test]
fn copy_of_16_bytes_per_item() {
    for version in VERSIONS {
        let agent = Agent::new("copy", version);
        let words = numbers(4 * 3000);
        agent.put(BUFFERS[1], &words, u32::to_le_bytes);
        let block = arguments(&[
            &BUFFERS[0].to_le_bytes(),
            &BUFFERS[1].to_le_bytes(),
            &3000u32.to_le_bytes(),
        ]);
        agent.run(&agent.prepare(4, 256, &block));
        assert_eq!(
            agent.get(BUFFERS[0], words.len(), u32::from_le_bytes),
            words
        );
        assert_eq!(
            agent.get(BUFFERS[0] + 4 * words.len() as u64, 4, u32::from_le_bytes),
            [0; 4]
        );
    }
}

fn digest_of(tile: &[u64]) -> u64 {
    tile.iter().zip(1u64..).fold(0u64, |sum, (word, i)| {
        let z = word.wrapping_add(i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        sum.wrapping_add(z ^ z >> 31)
    })
}

#[test]
fn digest_of_tiles() {
    for version in VERSIONS {
        let agent = Agent::new("digest", version);
        let words: Vec<u64> = numbers(2 * 2048 * 5)
            .chunks(2)
            .map(|w| u64::from(w[0]) << 32 | u64::from(w[1]))
            .collect();
        agent.put(BUFFERS[1], &words, u64::to_le_bytes);
        let block = arguments(&[&BUFFERS[0].to_le_bytes(), &BUFFERS[1].to_le_bytes()]);
        let outcome = agent.run(&agent.prepare(5, 256, &block));
        let expected: Vec<u64> = words.chunks(2048).map(digest_of).collect();
        assert_eq!(agent.get(BUFFERS[0], 5, u64::from_le_bytes), expected);
        assert_eq!(outcome.counters[Counter::Waves], 20);
        // Each of 20 waves loads its eight words, in one instruction each, and one wave of each group stores once.
        assert_eq!(outcome.counters[Counter::InstsVmemRd], 20 * 8);
        assert_eq!(outcome.counters[Counter::InstsVmemWr], 5);
        assert_eq!(outcome.counters[Counter::InstsFlat], 0);
    }
}

#[test]
fn scan_through_group_memory() {
    for version in VERSIONS {
        let agent = Agent::new("scan", version);
        let words = numbers(256 * 3);
        agent.put(BUFFERS[1], &words, u32::to_le_bytes);
        let block = arguments(&[&BUFFERS[0].to_le_bytes(), &BUFFERS[1].to_le_bytes()]);
        agent.run(&agent.prepare(3, 256, &block));
        let expected: Vec<u32> = words
            .chunks(256)
            .flat_map(|part| {
                part.iter().scan(0u32, |sum, word| {
                    *sum = sum.wrapping_add(*word);
                    Some(*sum)
                })
            })
            .collect();
        assert_eq!(
            agent.get(BUFFERS[0], words.len(), u32::from_le_bytes),
            expected
        );
    }
}

#[test]
fn atomics_add_up() {
    for version in VERSIONS {
        let agent = Agent::new("atomics", version);
        let words: Vec<u32> = numbers(500).into_iter().map(|word| word >> 8).collect();
        agent.put(BUFFERS[2], &words, u32::to_le_bytes);
        let block = arguments(&[
            &BUFFERS[0].to_le_bytes(),
            &BUFFERS[1].to_le_bytes(),
            &BUFFERS[2].to_le_bytes(),
            &500u32.to_le_bytes(),
        ]);
        agent.run(&agent.prepare(4, 128, &block));
        let cells = agent.get(BUFFERS[0], 16, u32::from_le_bytes);
        assert_eq!(
            cells[0],
            words
                .iter()
                .fold(0, |sum: u32, word| sum.wrapping_add(*word))
        );
        assert_eq!(Some(cells[1]), words.iter().copied().max());
        assert_eq!(
            cells[2],
            (0..500).fold(0, |cell: u32, _| cell.wrapping_mul(3).wrapping_add(1))
        );
        let mut histogram = [0; 8];
        let before = words.iter().fold(0, |all, word| {
            let count = &mut histogram[(word & 7) as usize];
            *count += 1;
            all ^ (*count - 1)
        });
        assert_eq!((cells[3], &cells[8..]), (before, &histogram[..]));
        let wide = words
            .iter()
            .fold(0, |sum: u64, word| sum.wrapping_add(u64::from(*word) << 20));
        assert_eq!(agent.get(BUFFERS[1], 1, u64::from_le_bytes), [wide]);
    }
}

#[test]
fn float_reduction() {
    for version in VERSIONS {
        let agent = Agent::new("reduce", version);
        let values: Vec<f32> = (0..5000).map(|i| i as f32 * 1.25e-3 + 1e-6).collect();
        agent.put(BUFFERS[1], &values, f32::to_le_bytes);
        let block = arguments(&[
            &BUFFERS[0].to_le_bytes(),
            &BUFFERS[1].to_le_bytes(),
            &5000u32.to_le_bytes(),
        ]);
        agent.run(&agent.prepare(4, 256, &block));
        // The same order of additions, so the same bits: square root and division are exactly rounded.
        let expected: Vec<f32> = (0..4)
            .map(|group| {
                let mut sums: Vec<f32> = (0..256)
                    .map(|lane| {
                        let own = (group * 256 + lane..5000).step_by(1024);
                        own.fold(0.0, |sum, i| sum + values[i].sqrt() / (1.0 + values[i]))
                    })
                    .collect();
                for step in [128, 64, 32, 16, 8, 4, 2, 1] {
                    (0..step).for_each(|lane| sums[lane] += sums[lane + step]);
                }
                sums[0]
            })
            .collect();
        assert_eq!(agent.get(BUFFERS[0], 4, f32::from_le_bytes), expected);
    }
}

#[test]
fn private_array_in_scratch() {
    const SIZE: u32 = 192;
    for version in VERSIONS {
        let agent = Agent::new("scratch", version);
        let words = numbers(300);
        agent.put(BUFFERS[1], &words, u32::to_le_bytes);
        let block = arguments(&[
            &BUFFERS[0].to_le_bytes(),
            &BUFFERS[1].to_le_bytes(),
            &300u32.to_le_bytes(),
        ]);
        let dispatch = agent.prepare(3, 128, &block);
        assert!(
            dispatch.private_segment_size >= 4 * SIZE,
            "the array is in memory"
        );
        agent.run(&dispatch);
        let expected: Vec<u32> = (0..300u32)
            .map(|i| {
                let word = words[i as usize];
                let mut table: Vec<u32> = (0..SIZE)
                    .map(|k| k.wrapping_mul(i).wrapping_add(7))
                    .collect();
                (0..SIZE).for_each(|k| {
                    table[(word.wrapping_add(k * k) % SIZE) as usize] ^= word >> (k & 15)
                });
                for k in 0..SIZE {
                    let at = word.wrapping_mul(k) % (4 * SIZE);
                    let cell = &mut table[at as usize / 4];
                    let mut bytes = cell.to_le_bytes();
                    bytes[at as usize % 4] = bytes[at as usize % 4].wrapping_add(k as u8);
                    *cell = u32::from_le_bytes(bytes);
                }
                (0..SIZE).fold(0, |sum: u32, k| {
                    sum.wrapping_mul(31)
                        .wrapping_add(table[(word.wrapping_add(k) % SIZE) as usize])
                })
            })
            .collect();
        assert_eq!(agent.get(BUFFERS[0], 300, u32::from_le_bytes), expected);
    }
}

#[test]
fn calls_with_a_stack() {
    fn walk(steps: &mut [u32; 8], at: u32, depth: u32) -> u32 {
        let step = &mut steps[(at & 7) as usize];
        *step = step.wrapping_add(depth);
        if depth == 0 {
            return steps[0] ^ at;
        }
        let below = walk(steps, at.wrapping_mul(5).wrapping_add(depth), depth - 1);
        below
            .wrapping_mul(3)
            .wrapping_add(steps[(at.wrapping_add(depth) & 7) as usize])
    }
    for version in VERSIONS {
        let agent = Agent::new("calls", version);
        let words = numbers(200);
        agent.put(BUFFERS[1], &words, u32::to_le_bytes);
        let block = arguments(&[
            &BUFFERS[0].to_le_bytes(),
            &BUFFERS[1].to_le_bytes(),
            &200u32.to_le_bytes(),
        ]);
        // The compiler can't know how deep the calls go; a runtime gives such kernels a fixed stack.
        let dispatch = Dispatch {
            private_segment_size: 4096,
            ..agent.prepare(2, 128, &block)
        };
        agent.run(&dispatch);
        let expected: Vec<u32> = words
            .iter()
            .map(|&word| walk(&mut [1, 2, 3, 4, 5, 6, 7, 8], word, word % 6))
            .collect();
        assert_eq!(agent.get(BUFFERS[0], 200, u32::from_le_bytes), expected);
    }
}

#[test]
fn variable_of_the_module() {
    for version in VERSIONS {
        let agent = Agent::new("counter", version);
        let block = arguments(&[&BUFFERS[0].to_le_bytes()]);
        let dispatch = agent.prepare(3, 64, &block);
        agent.run(&dispatch);
        assert_eq!(agent.get(BUFFERS[0], 3, u32::from_le_bytes), [41, 42, 43]);
        let counter = agent
            .object
            .variables()
            .iter()
            .find(|variable| variable.name == "counter");
        let counter = counter.expect("the kernel has it");
        assert!(counter.writable);
        assert_eq!(agent.get(counter.address, 1, u32::from_le_bytes), [44]);
    }
}

/// Two runs do the same, instruction by instruction, and count the same.
#[test]
fn runs_are_repeatable() {
    let run = || {
        let agent = Agent::new("reduce", 4);
        let block = arguments(&[
            &BUFFERS[0].to_le_bytes(),
            &BUFFERS[1].to_le_bytes(),
            &700u32.to_le_bytes(),
        ]);
        let dispatch = agent.prepare(2, 256, &block);
        let mut trace = Vec::new();
        let mut emulator =
            Emulator::new(&agent.memory).trace(|step| trace.push((step.place, step.exec)));
        let outcome = emulator.run(&dispatch);
        drop(emulator);
        (outcome, trace)
    };
    let (first, second) = (run(), run());
    assert!(first.1.len() > 1000);
    assert_eq!(first, second);
}
