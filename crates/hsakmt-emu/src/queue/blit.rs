//! ROCr's own copy and fill kernels, recognised and done by the host.
//!
//! ROCr copies and fills with kernels that it assembles itself, and launches one work-item for each of 256 lanes of
//! each compute unit however little there is to do. Interpreting that takes milliseconds for a page. So such a kernel
//! is recognised by its shape, and what it would do is done directly; whatever does not fit the shape to the last
//! detail is interpreted like any other kernel.
//!
//! The shape: a header of 256 bytes in which only the fields that ROCr sets are not zero, with the code right behind
//! it, and code that begins by loading the whole argument block 16 bytes at a time. Compilers' kernels have a
//! descriptor of 64 bytes in another section than the code.

use amdgpu_emu::{AccessFault, Memory};

use crate::view::View;

/// Bytes of the header; the code starts behind it.
const HEADER: usize = 256;

/// First words of `s_load_dwordx4`, registers left out, with an immediate offset.
const LOAD_X4: u32 = 0xc00a_0000;

/// Most loads that a kernel of the three begins with.
const LOADS: usize = 5;

/// What a recognised kernel does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blit {
    /// Moves bytes.
    Copy { to: u64, from: u64, len: u64 },
    /// Repeats a word of 4 bytes.
    Fill { to: u64, pattern: u32, len: u64 },
}

/// The work of the kernel at `kernel_object` on the arguments at `kernarg`, if it is one of ROCr's. A fault while
/// looking is left for the interpreter to find.
pub(super) fn recognise(view: &View, kernel_object: u64, kernarg: u64) -> Option<Blit> {
    let mut header = [0; HEADER + LOADS * 8];
    view.fetch(kernel_object, &mut header).ok()?;
    let (header, code) = header.split_at(HEADER);
    if !is_header(header) {
        return None;
    }
    match loads(code) {
        5 => {
            let [
                from,
                to,
                from2,
                to2,
                from3,
                to3,
                from4,
                to4,
                from_end,
                to_end,
            ] = arguments(view, kernarg)?;
            let phases = [
                from2.wrapping_sub(from),
                from3.wrapping_sub(from),
                from4.wrapping_sub(from),
                from_end.wrapping_sub(from),
            ];
            let targets = [to2, to3, to4, to_end].map(|at| at.wrapping_sub(to));
            (phases == targets && phases.is_sorted()).then_some(Blit::Copy {
                to,
                from,
                len: phases[3],
            })
        }
        3 => {
            let [from, to, from2, to2, from_end, to_end] = arguments(view, kernarg)?;
            let phases = [from2.wrapping_sub(from), from_end.wrapping_sub(from)];
            let targets = [to2, to_end].map(|at| at.wrapping_sub(to));
            (phases == targets && phases.is_sorted()).then_some(Blit::Copy {
                to,
                from,
                len: phases[1],
            })
        }
        2 => {
            let [to, to2, to_end, pattern] = arguments(view, kernarg)?;
            let phases = [to2.wrapping_sub(to), to_end.wrapping_sub(to)];
            phases.is_sorted().then_some(Blit::Fill {
                to,
                pattern: pattern as u32,
                len: phases[1],
            })
        }
        _ => None,
    }
}

/// Does the work.
pub(super) fn run(view: &View, blit: Blit) -> Result<(), AccessFault> {
    match blit {
        Blit::Copy { to, from, len } => view.copy(to, from, len),
        Blit::Fill { to, pattern, len } => view.fill(to, pattern, len),
    }
}

/// Whether only the entry offset, the two resource registers and the kernel's properties are set, and the properties
/// ask for nothing but the arguments' address.
fn is_header(header: &[u8]) -> bool {
    let word = |at: usize| {
        u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let zero = |range: std::ops::Range<usize>| header[range].iter().all(|&byte| byte == 0);
    zero(0..16)
        && word(16) == HEADER as u32
        && zero(20..44)
        && word(56) == 1 << 3
        && zero(60..HEADER)
}

/// How many loads of 16 bytes, from the arguments' start on, the code begins with.
fn loads(code: &[u8]) -> usize {
    let is_load = |(n, words): &(usize, &[[u8; 4]; 2])| {
        let [first, offset] = **words;
        let first = u32::from_le_bytes(first);
        // The arguments' address is in the first two registers.
        first & 0xffff_003f == LOAD_X4 && offset == (16 * *n as u32).to_le_bytes()
    };
    let (pairs, _) = code.as_chunks::<4>().0.as_chunks();
    pairs.iter().enumerate().take_while(is_load).count()
}

fn arguments<const N: usize>(view: &View, at: u64) -> Option<[u64; N]> {
    let mut words = [0; N];
    for (n, word) in words.iter_mut().enumerate() {
        *word = view.load64(at.wrapping_add(8 * n as u64)).ok()?;
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::abi::MemFlags;
    use crate::pages::Agents;
    use crate::space::Space;

    const CODE: u64 = HEADER as u64;
    const ARGUMENTS: u64 = 1024;

    /// A kernel of ROCr's shape with this many loads, and these arguments.
    fn kernel(loads: u32, arguments: &[u64]) -> (View, u64) {
        let space = Arc::new(Space::new(1, 1 << 20, 1 << 20).unwrap());
        let base = space.allocate(0, 4096, MemFlags::default(), None).unwrap();
        space.map(base, 4096, None).unwrap();
        let view = View::new(space, Agents::of(1));
        view.write(base + 16, &256u64.to_le_bytes()).unwrap();
        view.write(base + 48, &[1, 2, 3, 4, 5, 6, 7, 8, 8]).unwrap();
        for n in 0..loads {
            view.write(
                base + CODE + 8 * u64::from(n),
                &(LOAD_X4 | (4 + 4 * n) << 6).to_le_bytes(),
            )
            .unwrap();
            view.write(base + CODE + 8 * u64::from(n) + 4, &(16 * n).to_le_bytes())
                .unwrap();
        }
        for (n, argument) in arguments.iter().enumerate() {
            view.write(base + ARGUMENTS + 8 * n as u64, &argument.to_le_bytes())
                .unwrap();
        }
        (view, base)
    }

    fn look(loads: u32, arguments: &[u64]) -> Option<Blit> {
        let (view, base) = kernel(loads, arguments);
        recognise(&view, base, base + ARGUMENTS)
    }

    #[test]
    fn the_three_kernels_are_recognised() {
        let aligned = [100, 500, 110, 510, 120, 520, 130, 530, 140, 540];
        assert_eq!(
            look(5, &aligned),
            Some(Blit::Copy {
                to: 500,
                from: 100,
                len: 40
            })
        );
        assert_eq!(
            look(3, &[100, 500, 110, 510, 120, 520]),
            Some(Blit::Copy {
                to: 500,
                from: 100,
                len: 20
            })
        );
        assert_eq!(
            look(2, &[100, 120, 164, 7 << 32 | 9]),
            Some(Blit::Fill {
                to: 100,
                pattern: 9,
                len: 64
            })
        );
    }

    #[test]
    fn other_kernels_are_not() {
        assert_eq!(look(4, &[0; 10]), None);
        assert_eq!(
            look(5, &[100, 500, 110, 511, 120, 520, 130, 530, 140, 540]),
            None,
            "phases that do not agree"
        );
        assert_eq!(look(2, &[100, 90, 164, 0]), None, "phases out of order");
        for at in [0, 20, 57, 60, 255] {
            let (view, base) = kernel(2, &[100, 120, 164, 9]);
            view.write(base + at, &[1]).unwrap();
            assert_eq!(
                recognise(&view, base, base + ARGUMENTS),
                None,
                "byte {at} is set"
            );
        }
    }
}
