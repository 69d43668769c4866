//! What fuzz targets call: each function decodes its input, runs code that must not panic on it, and compares what
//! comes out with something said a second time. A difference is a panic.

use std::num::NonZeroU64;

use crate::object::CodeObject;
use crate::{Dispatch, Emulator, FlatMemory, Instruction, Limits, Memory, Scratch};

/// Where memory is mapped.
const BASE: u64 = 0x10_0000;
/// Bytes of memory for code objects and dispatches.
const BYTES: usize = 0x5000;
/// A kernel's code, from its descriptor.
const CODE: u64 = 0x100;
/// What memory holds that nobody wrote.
const UNTOUCHED: u8 = 0xa5;

/// `N` bytes at `at`, as far as there are any; the rest is zero.
fn bytes<const N: usize>(data: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    let given = data.get(at..).unwrap_or_default();
    bytes
        .iter_mut()
        .zip(given)
        .for_each(|(to, from)| *to = *from);
    bytes
}

fn word(data: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes(data, at))
}

/// The decoder: any two dwords are an instruction with a text, or none. The second dword matters only where it belongs
/// to the instruction.
pub fn instruction(data: &[u8]) {
    let words = [word(data, 0), word(data, 4)];
    let other = Instruction::decode([words[0], !words[1]]);
    let mut op = match Instruction::decode(words) {
        Ok(op) => op,
        Err(error) => return assert!(error.to_string().contains(": ")),
    };
    let text = op.to_string();
    assert!(text.starts_with(op.mnemonic()), "{text}");
    match op.len_bytes() {
        4 => assert_eq!(other.map(|other| other.to_string()), Ok(text)),
        len => assert_eq!(len, 8),
    }
    let [registers, accumulation] = bytes(data, 8);
    let _ = op.bind(
        (u16::from(registers) & 0x3f) * 8 + 8,
        (u16::from(accumulation) & 0x3f) * 4 + 4,
    );
}

/// The loader: a file is refused, or its segments and relocations are in memory afterwards, and nothing else is.
pub fn object(data: &[u8]) {
    let Ok(object) = CodeObject::parse(data) else {
        return;
    };
    let Ok(span) = usize::try_from(object.span_bytes()) else {
        return;
    };
    if span > BYTES {
        return;
    }
    let mut image = [UNTOUCHED; BYTES];
    let memory = FlatMemory::new(BASE, BYTES);
    memory.write(BASE, &image).expect("it is mapped");

    let long = |at| u64::from_le_bytes(bytes(data, at)) as usize;
    let (headers, count) = (long(32), u16::from_le_bytes(bytes(data, 56)));
    let count = match count {
        // The real count is elsewhere.
        u16::MAX => return,
        _ if headers == 0 => 0,
        count => usize::from(count),
    };
    for header in (0..count).map(|i| headers + 56 * i) {
        const LOAD: u32 = 1;
        if word(data, header) == LOAD {
            let (from, to, len, size) = (
                long(header + 8),
                long(header + 16),
                long(header + 32),
                long(header + 40),
            );
            image[to..to + size].fill(0);
            if len > 0 {
                image[to..to + len].copy_from_slice(&data[from..from + len]);
            }
        }
    }
    for &(at, target) in &object.relocations {
        let address = BASE.wrapping_add(target);
        image[at as usize..][..8].copy_from_slice(&address.to_le_bytes());
    }

    let loaded = object.load(&memory, BASE).expect("its span is mapped");
    let mut found = [0; BYTES];
    memory.read(BASE, &mut found).expect("it is mapped");
    assert!(found == image);
    for (kernel, before) in loaded.kernels().iter().zip(object.kernels()) {
        assert_eq!(kernel.descriptor, BASE + before.descriptor);
        assert!(before.descriptor + 64 <= object.span_bytes());
    }
}

/// The emulator: any code behind any descriptor comes to an end, and to the same one when it runs again.
pub fn dispatch(data: &[u8]) {
    let (setup, kernel) = data.split_at(data.len().min(16));
    let (descriptor, code) = kernel.split_at(kernel.len().min(64));
    let half = |at| u16::from_le_bytes(bytes(setup, at));
    let dispatch = Dispatch {
        workgroup_size: [half(0) % 200, half(2) % 3, 1],
        grid_size: [u32::from(half(4) % 400), u32::from(half(6) % 4), 1],
        private_segment_size: u32::from(half(8)) % 300,
        group_segment_size: u32::from(half(10)),
        kernel_object: BASE,
        kernarg_address: BASE + 0x2000,
        packet_address: BASE + 0x3000,
        scratch: Scratch::new(BASE + 0x1000, u32::from(half(12))),
        ..Dispatch::default()
    };
    let limits = Limits {
        budget: NonZeroU64::new(200),
        ..Limits::default()
    };
    let run = || {
        let memory = FlatMemory::new(BASE, BYTES);
        let code = &code[..code.len().min(0x1000)];
        for (at, bytes) in [(0, descriptor), (16, &CODE.to_le_bytes()), (CODE, code)] {
            memory.write(BASE + at, bytes).expect("it is mapped");
        }
        let outcome = Emulator::new(&memory).limits(limits).run(&dispatch);
        let mut found = vec![0; BYTES];
        memory.read(BASE, &mut found).expect("it is mapped");
        (outcome, found)
    };
    let (first, again) = (run(), run());
    assert_eq!(first.0, again.0);
    assert!(first.1 == again.1);
    if let Err(fault) = first.0.result {
        assert!(!fault.to_string().is_empty());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        /// The same functions are fuzzed.
        #[test]
        fn what_is_fuzzed_holds_at_random(data in proptest::collection::vec(any::<u8>(), 0..200)) {
            super::instruction(&data);
            super::object(&data);
            super::dispatch(&data);
        }
    }

    /// The loader's model agrees on whole objects, and on each with one bit changed.
    #[test]
    fn objects_are_in_memory_as_the_file_says() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/objects");
        let mut files = 0;
        for entry in std::fs::read_dir(folder).expect("it is there") {
            let path = entry.expect("it can be listed").path();
            if path.extension().is_none_or(|extension| extension != "co") {
                continue;
            }
            let mut file = std::fs::read(path).expect("it can be read");
            super::object(&file);
            for at in (0..file.len()).step_by(7) {
                file[at] ^= 1 << (at % 8);
                super::object(&file);
                file[at] ^= 1 << (at % 8);
            }
            files += 1;
        }
        assert!(files > 0);
    }
}
