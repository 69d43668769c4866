//! One wave with memory, to execute single instructions on.

use proptest::prelude::*;

use crate::descriptor::{FloatMode, Kernel, Start};
use crate::isa::decode::{Family, Instruction, Promoted, rows};
use crate::isa::row::{Bus, Exec, Row, Stop, Type};
use crate::wave::Wave;
use crate::{Dispatch, FlatMemory, Memory, Scratch};

pub(super) const BASE: u64 = 0x7fff_0000_0000;
pub(super) const SCRATCH: u64 = BASE + 0x8000;
pub(super) const LDS_BYTES: usize = 4096;

/// Registers that the encoder uses: far enough apart for four dwords each.
pub(super) const SOURCES: [u16; 3] = [4, 8, 12];
pub(super) const RESULT: u16 = 16;
/// Scalar registers for masks, in and out, and for scalar operands and results.
pub(super) const MASK_IN: u8 = 40;
pub(super) const MASK_OUT: u8 = 44;
pub(super) const SCALAR_SOURCES: [u8; 2] = [4, 8];
pub(super) const SCALAR_RESULT: u8 = 16;

pub(super) struct Machine {
    pub(super) wave: Wave,
    pub(super) memory: FlatMemory,
    pub(super) lds: Vec<u8>,
    pub(super) interrupts: Vec<u32>,
}

impl Machine {
    pub(super) fn new() -> Self {
        let memory = FlatMemory::new(BASE, 0x1_0000);
        // A descriptor with 64 vector registers, accumulation registers from 32, and no subnormals lost.
        memory
            .write(BASE + 44, &7u32.to_le_bytes())
            .expect("there is memory");
        memory
            .write(
                BASE + 48,
                &(7u32 | 0xf << 16 | 1 << 21 | 1 << 23).to_le_bytes(),
            )
            .expect("there is memory");
        let dispatch = Dispatch {
            workgroup_size: [64, 1, 1],
            grid_size: [64, 1, 1],
            kernel_object: BASE,
            scratch: Scratch::new(SCRATCH, 0x8000),
            ..Dispatch::default()
        };
        let kernel = Kernel::read(&dispatch, &memory).expect("the descriptor is valid");
        let start = Start {
            workgroup: [0; 3],
            scratch_offset: 0,
            first: true,
            waves: 1,
        };
        let wave = Wave::new(&kernel, &dispatch, &start, 0, [64, 1, 1], 99);
        Self {
            wave,
            memory,
            lds: vec![0xa5; LDS_BYTES],
            interrupts: Vec::new(),
        }
    }

    pub(super) fn set_mode(&mut self, mode: FloatMode) {
        self.wave.mode = mode;
    }

    /// Executes one instruction.
    pub(super) fn step(&mut self, words: [u32; 2]) -> Result<(), Stop> {
        let mut op =
            Instruction::decode(words).unwrap_or_else(|error| panic!("{words:08x?}: {error}"));
        op.bind(64, 32)
            .unwrap_or_else(|error| panic!("{op}: {error}"));
        self.wave.pc = self.wave.pc.wrapping_add(op.len.into());
        let mut raise = |event| self.interrupts.push(event);
        let interrupt: Option<&mut dyn FnMut(u32)> = Some(&mut raise);
        let mut bus = Bus {
            memory: &self.memory,
            lds: &mut self.lds,
            interrupt,
            now: 12345,
            stored: false,
        };
        match op.exec {
            Exec::Registers(run) => {
                run(&mut self.wave, &op);
                Ok(())
            }
            Exec::Machine(run) => run(&mut self.wave, &mut bus, &op),
            Exec::Missing => panic!("{op} is not modelled"),
        }
    }

    pub(super) fn run(&mut self, words: [u32; 2]) {
        self.step(words)
            .unwrap_or_else(|stop| panic!("{words:08x?}: {stop:?}"));
    }

    /// Registers of one lane, as one number.
    pub(super) fn vector(&self, first: u16, lane: usize, dwords: u16) -> u128 {
        (0..dwords)
            .map(|i| u128::from(self.wave.vectors[usize::from(first + i)][lane]) << (32 * i))
            .sum()
    }

    pub(super) fn set_vector(&mut self, first: u16, lane: usize, dwords: u16, value: u128) {
        for i in 0..dwords {
            self.wave.vectors[usize::from(first + i)][lane] = (value >> (32 * i)) as u32;
        }
    }
}

/// The row of a name.
pub(super) fn find(name: &str) -> (Family, &'static Row) {
    rows()
        .find(|(_, row)| row.name == name)
        .unwrap_or_else(|| panic!("no instruction {name}"))
}

/// Words of a vector instruction in its long form: sources from [`SOURCES`], result to [`RESULT`], masks from
/// [`MASK_IN`] and to [`MASK_OUT`].
pub(super) fn long(name: &str) -> [u32; 2] {
    let (family, row) = find(name);
    let prefix = match family {
        Family::Vopc => 0xd000_0000 | u32::from(row.opcode) << 16,
        Family::Vop2 => 0xd100_0000 | u32::from(row.opcode) << 16,
        Family::Vop1 => 0xd140_0000 + (u32::from(row.opcode) << 16),
        Family::Vop3(Promoted::Own) => 0xd000_0000 | u32::from(row.opcode) << 16,
        // Packed: the high half of the result comes from the high halves.
        Family::Vop3p => 0xd380_4000 | u32::from(row.opcode) << 16,
        other => panic!("{name} is {other:?}, not a vector instruction"),
    };
    let result = if row.dst == Type::Implied {
        u32::from(MASK_OUT)
    } else {
        u32::from(RESULT)
    };
    let mask = if row.dst_mask && row.dst != Type::Implied {
        u32::from(MASK_OUT) << 8
    } else {
        0
    };
    let mut sources = 0;
    let encoded = row
        .src
        .iter()
        .filter(|ty| !matches!(ty, Type::Implied | Type::Clamp));
    for ((n, ty), register) in encoded.enumerate().zip(SOURCES) {
        let code = if *ty == Type::Mask {
            u32::from(MASK_IN)
        } else {
            256 + u32::from(register)
        };
        sources |= code << (9 * n);
    }
    [
        prefix | mask | result,
        sources | if family == Family::Vop3p { 3 << 27 } else { 0 },
    ]
}

/// Words of a scalar instruction: sources from [`SCALAR_SOURCES`], result to [`SCALAR_RESULT`]. An immediate is `k`.
pub(super) fn scalar(name: &str, k: u16) -> [u32; 2] {
    let (family, row) = find(name);
    let (op, [a, b]) = (u32::from(row.opcode), SCALAR_SOURCES.map(u32::from));
    let result = u32::from(SCALAR_RESULT);
    let word = match family {
        Family::Sop1 => 0xbe80_0000 | result << 16 | op << 8 | a,
        Family::Sop2 => 0x8000_0000 | op << 23 | result << 16 | b << 8 | a,
        Family::Sopc => 0xbf00_0000 | op << 16 | b << 8 | a,
        Family::Sopk => 0xb000_0000 | op << 23 | result << 16 | u32::from(k),
        Family::Sopp => 0xbf80_0000 | op << 16 | u32::from(k),
        other => panic!("{name} is {other:?}, not a scalar instruction"),
    };
    [word, 0]
}

/// Bits of a type that instructions work on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    Unsigned(u32),
    Signed(u32),
    Float(u32),
}

impl Number {
    /// From `u32`, `i16`, `f64` and so on.
    pub(super) fn parse(text: &str) -> Self {
        let bits = text[1..].parse().expect("a width");
        match &text[..1] {
            "u" => Self::Unsigned(bits),
            "i" => Self::Signed(bits),
            _ => Self::Float(bits),
        }
    }

    pub(super) fn bits(self) -> u32 {
        let (Self::Unsigned(bits) | Self::Signed(bits) | Self::Float(bits)) = self;
        bits
    }

    pub(super) fn dwords(self) -> u16 {
        self.bits().div_ceil(32) as u16
    }

    /// The bits that belong to it.
    pub(super) fn cut(self, value: u128) -> u128 {
        value & (u128::MAX >> (128 - self.bits()))
    }

    /// The number that bits stand for.
    pub(super) fn integer(self, value: u128) -> i128 {
        let unused = 128 - self.bits();
        match self {
            Self::Signed(_) => (value << unused) as i128 >> unused,
            _ => self.cut(value) as i128,
        }
    }
}

/// Values around which things go wrong, for 64 lanes, as raw bits.
pub(super) fn lanes() -> impl Strategy<Value = Vec<u64>> {
    proptest::collection::vec(edge(), 64)
}

/// Raw bits that are an edge of some type, or anything.
pub(super) fn edge() -> impl Strategy<Value = u64> {
    const WORDS: [u64; 34] = [
        0,
        1,
        2,
        3,
        7,
        8,
        15,
        16,
        24,
        31,
        32,
        33,
        63,
        64,
        0x7f,
        0x80,
        0xff,
        0x7fff,
        0x8000,
        0xffff,
        0x00ff_ffff,
        0x0080_0000,
        0x7fff_ffff,
        0x8000_0000,
        0xffff_ffff,
        0x7fff_ffff_ffff_ffff,
        0x8000_0000_0000_0000,
        u64::MAX,
        u64::MAX - 1,
        0xffff_fff0,
        0x1_0000_0000,
        0x5555_5555_5555_5555,
        0xdead_beef_0bad_f00d,
        0xffff_ffff_0000_0000,
    ];
    const SINGLES: [f32; 16] = [
        0.0,
        -0.0,
        0.5,
        1.0,
        -1.0,
        1.5,
        2.5,
        -2.5,
        65504.0,
        1e30,
        3e38,
        1.2e-38,
        1e-40,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
    ];
    prop_oneof![
        4 => proptest::sample::select(&WORDS[..]),
        3 => proptest::sample::select(&SINGLES[..]).prop_map(|value| value.to_bits().into()),
        2 => proptest::sample::select(&SINGLES[..]).prop_map(|value| f64::from(value).to_bits()),
        1 => proptest::sample::select(&SINGLES[..]).prop_map(|value| crate::isa::F16::from_f32(value).0.into()),
        1 => (-1000i64..1000).prop_map(|value| (value as f32 / 8.0).to_bits().into()),
        1 => (-1000i64..1000).prop_map(|value| (value as f64 / 8.0).to_bits()),
        4 => any::<u64>(),
        2 => any::<u32>().prop_map(u64::from),
    ]
}
