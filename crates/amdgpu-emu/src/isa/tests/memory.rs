//! Memory instructions, on bytes that tests put there and look at afterwards.

use proptest::prelude::*;

use super::machine::{BASE, LDS_BYTES, Machine, RESULT, SCRATCH, edge, find};
use crate::Memory;
use crate::isa::row::{Halt, Stop};

/// Registers: address, data, a scalar base.
const ADDRESS: u16 = 4;
const DATA: u16 = 8;
const SADDR: u8 = 20;
/// Where in memory and in group memory the tests work.
const GLOBAL: u64 = BASE + 0x1000;
const GROUP: u64 = 1024;

/// Encodings of one set of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Flat,
    FlatToGroup,
    FlatToPrivate,
    Global,
    GlobalScalar,
    ScratchVector,
    ScratchScalar,
    Buffer,
    PrivateBuffer,
    Lds,
}

impl Way {
    const ALL: [Self; 10] = [
        Self::Flat,
        Self::FlatToGroup,
        Self::FlatToPrivate,
        Self::Global,
        Self::GlobalScalar,
        Self::ScratchVector,
        Self::ScratchScalar,
        Self::Buffer,
        Self::PrivateBuffer,
        Self::Lds,
    ];

    fn prefix(self) -> &'static str {
        match self {
            Self::Flat | Self::FlatToGroup | Self::FlatToPrivate => "flat_",
            Self::Global | Self::GlobalScalar => "global_",
            Self::ScratchVector | Self::ScratchScalar => "scratch_",
            Self::Buffer | Self::PrivateBuffer => "buffer_",
            Self::Lds => "ds_",
        }
    }

    /// Whether each lane's bytes lie apart by dwords.
    fn private(self) -> bool {
        matches!(
            self,
            Self::FlatToPrivate | Self::ScratchVector | Self::ScratchScalar | Self::PrivateBuffer
        )
    }

    /// Words of the instruction `name` with an immediate `offset`.
    fn words(self, name: &str, offset: i32, glc: bool) -> [u32; 2] {
        let opcode = u32::from(find(name).1.opcode);
        let (address, data, result) = (u32::from(ADDRESS), u32::from(DATA), u32::from(RESULT));
        let offset = offset as u32;
        let flat = |segment: u32, saddr: u32| {
            let first =
                0xdc00_0000 | opcode << 18 | segment << 14 | u32::from(glc) << 16 | offset & 0x1fff;
            [first, result << 24 | saddr << 16 | data << 8 | address]
        };
        match self {
            Self::Flat | Self::FlatToGroup | Self::FlatToPrivate => flat(0, 0),
            Self::Global => flat(2, 0x7f),
            Self::GlobalScalar => flat(2, SADDR.into()),
            Self::ScratchVector => flat(1, 0x7f),
            Self::ScratchScalar => flat(1, SADDR.into()),
            Self::Buffer | Self::PrivateBuffer => {
                // A buffer instruction has one register for data and result.
                let register = if name.contains("load") { result } else { data };
                let first = 0xe000_1000 | opcode << 18 | offset & 0xfff;
                [
                    first,
                    u32::from(SADDR + 4) << 24
                        | u32::from(SADDR / 4) << 16
                        | register << 8
                        | address,
                ]
            }
            Self::Lds => [
                0xd800_0000 | opcode << 17 | offset & 0xffff,
                result << 24 | (data + 4) << 16 | data << 8 | address,
            ],
        }
    }

    /// Prepares addresses so that each lane accesses byte `at` of its own, with `offset` in the instruction.
    fn aim(self, machine: &mut Machine, at: &[u64], offset: i64) {
        let wave = &mut machine.wave;
        wave.set_pair(102, SCRATCH);
        let aperture = match self {
            Self::FlatToGroup => wave.apertures.shared,
            Self::FlatToPrivate => wave.apertures.private,
            Self::Flat | Self::Global => GLOBAL,
            _ => 0,
        };
        let scalar = match self {
            Self::GlobalScalar => GLOBAL,
            Self::ScratchScalar => at[0],
            _ => 0,
        };
        wave.set_pair(SADDR, scalar.wrapping_add_signed(-offset));
        if matches!(self, Self::Buffer | Self::PrivateBuffer) {
            let base = if self == Self::Buffer {
                GLOBAL
            } else {
                SCRATCH
            };
            let descriptor = [base as u32, (base >> 32) as u32, 0x8000, 0];
            let private = [
                base as u32,
                (base >> 32) as u32 | 1 << 31,
                0x8000,
                1 << 19 | 3 << 21 | 1 << 23,
            ];
            let words = if self == Self::Buffer {
                descriptor
            } else {
                private
            };
            wave.scalars[usize::from(SADDR)..][..4].copy_from_slice(&words);
            wave.scalars[usize::from(SADDR) + 4] = 0;
        }
        let offset = if matches!(self, Self::GlobalScalar | Self::ScratchScalar) {
            0
        } else {
            offset
        };
        for (lane, at) in at.iter().enumerate() {
            let address = aperture.wrapping_add(*at).wrapping_add_signed(-offset);
            machine.set_vector(ADDRESS, lane, 2, address.into());
        }
    }

    /// Reads byte `at` of a lane, as the tests see it.
    fn byte(self, machine: &Machine, lane: usize, at: u64) -> u8 {
        let mut byte = [0];
        match self {
            Self::FlatToGroup | Self::Lds => return machine.lds[at as usize],
            _ if self.private() => {
                let address = SCRATCH + at / 4 * 256 + 4 * lane as u64 + at % 4;
                machine
                    .memory
                    .read(address, &mut byte)
                    .expect("it is mapped");
            }
            _ => machine
                .memory
                .read(GLOBAL + at, &mut byte)
                .expect("it is mapped"),
        }
        byte[0]
    }

    /// Where each lane's data lies: apart where memory is shared, the same where it is private or one for all.
    fn places(self, seed: u64) -> Vec<u64> {
        (0..64)
            .map(|lane| match self {
                Self::ScratchScalar => 4 * (1 + seed % 16),
                _ if self.private() => 4 * (1 + (seed % 16 + lane) % 16) + (seed & 3),
                _ if seed & 8 == 0 => 64 + 16 * lane,
                _ => 64 + 16 * (63 - lane) + (seed & 3),
            })
            .collect()
    }
}

/// Loads and stores: bytes in memory, and what a register becomes of them; `old` is what it was.
type Load = (&'static str, usize, fn(bytes: u128, old: u32) -> u128);

const LOADS: &[Load] = &[
    ("load_ubyte", 1, |bytes, _| bytes),
    ("load_sbyte", 1, |bytes, _| {
        u128::from(bytes as u8 as i8 as u32)
    }),
    ("load_ushort", 2, |bytes, _| bytes),
    ("load_sshort", 2, |bytes, _| {
        u128::from(bytes as u16 as i16 as u32)
    }),
    ("load_dword", 4, |bytes, _| bytes),
    ("load_dwordx2", 8, |bytes, _| bytes),
    ("load_dwordx3", 12, |bytes, _| bytes),
    ("load_dwordx4", 16, |bytes, _| bytes),
    ("load_ubyte_d16", 1, |bytes, old| {
        u128::from(old >> 16) << 16 | bytes
    }),
    ("load_ubyte_d16_hi", 1, |bytes, old| {
        bytes << 16 | u128::from(old as u16)
    }),
    ("load_sbyte_d16", 1, |bytes, old| {
        u128::from(old >> 16) << 16 | u128::from(bytes as u8 as i8 as u16)
    }),
    ("load_sbyte_d16_hi", 1, |bytes, old| {
        u128::from(bytes as u8 as i8 as u16) << 16 | u128::from(old as u16)
    }),
    ("load_short_d16", 2, |bytes, old| {
        u128::from(old >> 16) << 16 | bytes
    }),
    ("load_short_d16_hi", 2, |bytes, old| {
        bytes << 16 | u128::from(old as u16)
    }),
];

/// The names of the same loads in group memory.
const GROUP_LOADS: &[Load] = &[
    ("read_u8", 1, |bytes, _| bytes),
    ("read_i8", 1, |bytes, _| {
        u128::from(bytes as u8 as i8 as u32)
    }),
    ("read_u16", 2, |bytes, _| bytes),
    ("read_i16", 2, |bytes, _| {
        u128::from(bytes as u16 as i16 as u32)
    }),
    ("read_b32", 4, |bytes, _| bytes),
    ("read_b64", 8, |bytes, _| bytes),
    ("read_b96", 12, |bytes, _| bytes),
    ("read_b128", 16, |bytes, _| bytes),
    ("read_u8_d16", 1, |bytes, old| {
        u128::from(old >> 16) << 16 | bytes
    }),
    ("read_u8_d16_hi", 1, |bytes, old| {
        bytes << 16 | u128::from(old as u16)
    }),
    ("read_i8_d16", 1, |bytes, old| {
        u128::from(old >> 16) << 16 | u128::from(bytes as u8 as i8 as u16)
    }),
    ("read_i8_d16_hi", 1, |bytes, old| {
        u128::from(bytes as u8 as i8 as u16) << 16 | u128::from(old as u16)
    }),
    ("read_u16_d16", 2, |bytes, old| {
        u128::from(old >> 16) << 16 | bytes
    }),
    ("read_u16_d16_hi", 2, |bytes, old| {
        bytes << 16 | u128::from(old as u16)
    }),
];

/// Stores: bytes, and the first bit of the data that is stored.
const STORES: &[(&str, &str, usize, u32)] = &[
    ("store_byte", "write_b8", 1, 0),
    ("store_byte_d16_hi", "write_b8_d16_hi", 1, 16),
    ("store_short", "write_b16", 2, 0),
    ("store_short_d16_hi", "write_b16_d16_hi", 2, 16),
    ("store_dword", "write_b32", 4, 0),
    ("store_dwordx2", "write_b64", 8, 0),
    ("store_dwordx3", "write_b96", 12, 0),
    ("store_dwordx4", "write_b128", 16, 0),
];

/// Atomics: the new value from the old, the data and a second datum. 64-bit ones end in `_x2` or a type.
type Atomic = (&'static str, u32, fn(old: u64, a: u64, b: u64) -> u64);

const ATOMICS: &[Atomic] = &[
    ("swap", 4, |_, a, _| a),
    ("cmpswap", 4, |old, a, b| if old == b { a } else { old }),
    ("add", 4, |old, a, _| old + a),
    ("sub", 4, |old, a, _| old.wrapping_sub(a)),
    (
        "smin",
        4,
        |old, a, _| if (old as i32) < a as i32 { old } else { a },
    ),
    ("umin", 4, |old, a, _| if old < a { old } else { a }),
    (
        "smax",
        4,
        |old, a, _| if old as i32 > a as i32 { old } else { a },
    ),
    ("umax", 4, |old, a, _| if old > a { old } else { a }),
    ("and", 4, |old, a, _| old & a),
    ("or", 4, |old, a, _| old | a),
    ("xor", 4, |old, a, _| old ^ a),
    ("inc", 4, |old, a, _| if old >= a { 0 } else { old + 1 }),
    (
        "dec",
        4,
        |old, a, _| if old == 0 || old > a { a } else { old - 1 },
    ),
    ("add_f64", 8, |old, a, _| {
        (f64::from_bits(old) + f64::from_bits(a)).to_bits()
    }),
    ("min_f64", 8, |old, a, _| {
        f64::from_bits(old).min(f64::from_bits(a)).to_bits()
    }),
    ("max_f64", 8, |old, a, _| {
        f64::from_bits(old).max(f64::from_bits(a)).to_bits()
    }),
    ("swap_x2", 8, |_, a, _| a),
    ("cmpswap_x2", 8, |old, a, b| if old == b { a } else { old }),
    ("add_x2", 8, |old, a, _| old.wrapping_add(a)),
    ("sub_x2", 8, |old, a, _| old.wrapping_sub(a)),
    (
        "smin_x2",
        8,
        |old, a, _| if (old as i64) < a as i64 { old } else { a },
    ),
    ("umin_x2", 8, |old, a, _| if old < a { old } else { a }),
    (
        "smax_x2",
        8,
        |old, a, _| if old as i64 > a as i64 { old } else { a },
    ),
    ("umax_x2", 8, |old, a, _| if old > a { old } else { a }),
    ("and_x2", 8, |old, a, _| old & a),
    ("or_x2", 8, |old, a, _| old | a),
    ("xor_x2", 8, |old, a, _| old ^ a),
    ("inc_x2", 8, |old, a, _| if old >= a { 0 } else { old + 1 }),
    (
        "dec_x2",
        8,
        |old, a, _| if old == 0 || old > a { a } else { old - 1 },
    ),
];

/// Atomics on group memory: name without and with a result, of which some have only one.
const GROUP_ATOMICS: &[(&str, &str, u32, fn(old: u64, a: u64, b: u64) -> u64)] = &[
    ("add_u32", "add_rtn_u32", 4, |old, a, _| old + a),
    ("sub_u32", "sub_rtn_u32", 4, |old, a, _| old.wrapping_sub(a)),
    ("rsub_u32", "rsub_rtn_u32", 4, |old, a, _| {
        a.wrapping_sub(old)
    }),
    ("inc_u32", "inc_rtn_u32", 4, |old, a, _| {
        if old >= a { 0 } else { old + 1 }
    }),
    ("dec_u32", "dec_rtn_u32", 4, |old, a, _| {
        if old == 0 || old > a { a } else { old - 1 }
    }),
    ("min_i32", "min_rtn_i32", 4, |old, a, _| {
        if (old as i32) < a as i32 { old } else { a }
    }),
    ("max_i32", "max_rtn_i32", 4, |old, a, _| {
        if old as i32 > a as i32 { old } else { a }
    }),
    (
        "min_u32",
        "min_rtn_u32",
        4,
        |old, a, _| if old < a { old } else { a },
    ),
    (
        "max_u32",
        "max_rtn_u32",
        4,
        |old, a, _| if old > a { old } else { a },
    ),
    ("and_b32", "and_rtn_b32", 4, |old, a, _| old & a),
    ("or_b32", "or_rtn_b32", 4, |old, a, _| old | a),
    ("xor_b32", "xor_rtn_b32", 4, |old, a, _| old ^ a),
    ("cmpst_b32", "cmpst_rtn_b32", 4, |old, a, b| {
        if old == a { b } else { old }
    }),
    ("", "wrxchg_rtn_b32", 4, |_, a, _| a),
    ("min_f32", "min_rtn_f32", 4, |old, a, _| {
        single(old, a, f32::min)
    }),
    ("max_f32", "max_rtn_f32", 4, |old, a, _| {
        single(old, a, f32::max)
    }),
    ("add_f32", "add_rtn_f32", 4, |old, a, _| {
        single(old, a, |old, a| old + a)
    }),
    ("add_u64", "add_rtn_u64", 8, |old, a, _| old.wrapping_add(a)),
    ("sub_u64", "sub_rtn_u64", 8, |old, a, _| old.wrapping_sub(a)),
    ("rsub_u64", "rsub_rtn_u64", 8, |old, a, _| {
        a.wrapping_sub(old)
    }),
    ("inc_u64", "inc_rtn_u64", 8, |old, a, _| {
        if old >= a { 0 } else { old + 1 }
    }),
    ("dec_u64", "dec_rtn_u64", 8, |old, a, _| {
        if old == 0 || old > a { a } else { old - 1 }
    }),
    ("min_i64", "min_rtn_i64", 8, |old, a, _| {
        if (old as i64) < a as i64 { old } else { a }
    }),
    ("max_i64", "max_rtn_i64", 8, |old, a, _| {
        if old as i64 > a as i64 { old } else { a }
    }),
    (
        "min_u64",
        "min_rtn_u64",
        8,
        |old, a, _| if old < a { old } else { a },
    ),
    (
        "max_u64",
        "max_rtn_u64",
        8,
        |old, a, _| if old > a { old } else { a },
    ),
    ("and_b64", "and_rtn_b64", 8, |old, a, _| old & a),
    ("or_b64", "or_rtn_b64", 8, |old, a, _| old | a),
    ("xor_b64", "xor_rtn_b64", 8, |old, a, _| old ^ a),
    ("cmpst_b64", "cmpst_rtn_b64", 8, |old, a, b| {
        if old == a { b } else { old }
    }),
    ("", "wrxchg_rtn_b64", 8, |_, a, _| a),
    ("min_f64", "min_rtn_f64", 8, |old, a, _| {
        f64::from_bits(old).min(f64::from_bits(a)).to_bits()
    }),
    ("max_f64", "max_rtn_f64", 8, |old, a, _| {
        f64::from_bits(old).max(f64::from_bits(a)).to_bits()
    }),
    ("add_f64", "add_rtn_f64", 8, |old, a, _| {
        (f64::from_bits(old) + f64::from_bits(a)).to_bits()
    }),
];

fn single(old: u64, a: u64, f: fn(f32, f32) -> f32) -> u64 {
    f(f32::from_bits(old as u32), f32::from_bits(a as u32))
        .to_bits()
        .into()
}

/// Two accesses in one: bytes of each, and the unit of the two offsets.
const TWO: &[(&str, &str, usize, u64)] = &[
    ("ds_read2_b32", "ds_write2_b32", 4, 4),
    ("ds_read2st64_b32", "ds_write2st64_b32", 4, 256),
    ("ds_read2_b64", "ds_write2_b64", 8, 8),
    ("ds_read2st64_b64", "ds_write2st64_b64", 8, 512),
];

const SCALAR_LOADS: &[(&str, usize)] = &[
    ("s_load_dword", 1),
    ("s_load_dwordx2", 2),
    ("s_load_dwordx4", 4),
    ("s_load_dwordx8", 8),
    ("s_load_dwordx16", 16),
];

pub(super) fn stated() -> Vec<String> {
    let mut names = Vec::new();
    for prefix in ["flat_", "global_", "scratch_", "buffer_"] {
        names.extend(LOADS.iter().map(|(name, ..)| format!("{prefix}{name}")));
        names.extend(STORES.iter().map(|(name, ..)| format!("{prefix}{name}")));
    }
    for prefix in ["flat_atomic_", "global_atomic_"] {
        names.extend(ATOMICS.iter().map(|(name, ..)| format!("{prefix}{name}")));
    }
    names.extend(GROUP_LOADS.iter().map(|(name, ..)| format!("ds_{name}")));
    names.extend(STORES.iter().map(|(_, name, ..)| format!("ds_{name}")));
    names.extend(
        GROUP_ATOMICS
            .iter()
            .flat_map(|(name, rtn, ..)| [name, rtn])
            .filter(|name| !name.is_empty())
            .map(|name| format!("ds_{name}")),
    );
    names.extend(
        TWO.iter()
            .flat_map(|(read, write, ..)| [read, write])
            .map(|name| (*name).to_owned()),
    );
    names.extend(SCALAR_LOADS.iter().map(|(name, _)| (*name).to_owned()));
    let others = [
        "global_atomic_add_f32",
        "ds_bpermute_b32",
        "ds_permute_b32",
        "ds_swizzle_b32",
    ];
    names.extend(others.map(str::to_owned));
    names
}

/// A machine whose memory, group memory and data registers hold what looks random.
fn filled(seed: u64) -> Machine {
    let mut machine = Machine::new();
    let byte = |i: u64| (crate::emulator::mix(seed ^ i) >> 13) as u8;
    let bytes: Vec<u8> = (0..0xf000).map(byte).collect();
    machine.memory.write(GLOBAL, &bytes).expect("it is mapped");
    machine.lds = bytes[..LDS_BYTES].to_vec();
    machine
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn loads(seed in any::<u64>(), exec in any::<u64>(), full in any::<bool>(), offset in 0i32..2048) {
        let exec = if full { u64::MAX } else { exec };
        for way in Way::ALL {
            for &(name, bytes, expected) in if way == Way::Lds { GROUP_LOADS } else { LOADS } {
                let mut machine = filled(seed);
                machine.wave.set_exec(exec);
                let places = way.places(seed);
                way.aim(&mut machine, &places, offset.into());
                let before: Vec<u128> = (0..64).map(|lane| machine.vector(RESULT, lane, 4)).collect();
                machine.run(way.words(&format!("{}{name}", way.prefix()), offset, false));
                for (lane, before) in before.into_iter().enumerate() {
                    let found = (0..bytes).map(|i| u128::from(way.byte(&machine, lane, places[lane] + i as u64)) << (8 * i)).sum();
                    let bits = 32 * bytes.div_ceil(4) as u32;
                    let kept = before.checked_shr(bits).unwrap_or(0).checked_shl(bits).unwrap_or(0);
                    let value = if exec >> lane & 1 != 0 { kept | expected(found, before as u32) } else { before };
                    prop_assert_eq!(machine.vector(RESULT, lane, 4), value, "{:?} {} lane {}", way, name, lane);
                }
            }
        }
    }

    #[test]
    fn stores(seed in any::<u64>(), exec in any::<u64>(), full in any::<bool>(), offset in 0i32..2048) {
        let exec = if full { u64::MAX } else { exec };
        for way in Way::ALL {
            for &(name, group_name, bytes, first) in STORES {
                let mut machine = filled(seed);
                machine.wave.set_exec(exec);
                let places = way.places(seed);
                way.aim(&mut machine, &places, offset.into());
                let around = |machine: &Machine, lane: usize| -> Vec<u8> {
                    (0..18).map(|i| way.byte(machine, lane, places[lane] + i - 1)).collect()
                };
                let before: Vec<Vec<u8>> = (0..64).map(|lane| around(&machine, lane)).collect();
                let name = format!("{}{}", way.prefix(), if way == Way::Lds { group_name } else { name });
                machine.run(way.words(&name, offset, false));
                for (lane, mut expected) in before.into_iter().enumerate() {
                    let data = machine.vector(DATA, lane, 4) >> first;
                    if exec >> lane & 1 != 0 {
                        (0..bytes).for_each(|i| expected[i + 1] = (data >> (8 * i)) as u8);
                    }
                    // In shared memory, the next lane may have written what follows.
                    let own = if way.private() { 18 } else { bytes + 1 };
                    let start = usize::from(!way.private());
                    prop_assert_eq!(&around(&machine, lane)[start..own], &expected[start..own], "{:?} {} lane {}", way, name, lane);
                }
            }
        }
    }

    #[test]
    fn atomics(old in edge(), a in edge(), b in edge(), equal in any::<bool>(), glc in any::<bool>()) {
        let b = if equal { old } else { b };
        for way in [Way::Flat, Way::FlatToGroup, Way::FlatToPrivate, Way::Global, Way::GlobalScalar] {
            for &(name, bytes, expected) in ATOMICS {
                let name = format!("{}atomic_{name}", way.prefix());
                check_atomic(way, &name, [old, a, b], bytes, glc, expected)?;
            }
        }
        for way in [Way::Global, Way::GlobalScalar] {
            let add = |old, a, _| single(old, a, |old, a| old + a);
            check_atomic(way, "global_atomic_add_f32", [old, a, b], 4, glc, add)?;
        }
        for &(name, returning, bytes, expected) in GROUP_ATOMICS {
            // Compare-and-store has the value to compare with first.
            let operands = if name.starts_with("cmpst") { [old, b, a] } else { [old, a, b] };
            for (name, glc) in [(name, false), (returning, true)].into_iter().filter(|(name, _)| !name.is_empty()) {
                check_atomic(Way::Lds, &format!("ds_{name}"), operands, bytes, glc, expected)?;
            }
        }
    }

    #[test]
    fn two_at_once(seed in any::<u64>(), offsets in [0u64..6, 0u64..6], exec in any::<u64>()) {
        for &(read, write, bytes, unit) in TWO {
            let [first, second] = offsets.map(|offset| GROUP * u64::from(unit < 16) + offset * unit);
            let mut machine = filled(seed);
            machine.wave.set_exec(exec);
            let base = GROUP * u64::from(unit < 16);
            (0..64).for_each(|lane| machine.set_vector(ADDRESS, lane, 1, u128::from(base + 8 * (lane as u64 % 8))));
            let offset = (offsets[0] | offsets[1] << 8) as i32;
            machine.run(Way::Lds.words(read, offset, false));
            let group = |machine: &Machine, at: u64| -> u128 {
                (0..bytes).map(|i| u128::from(machine.lds[at as usize + i]) << (8 * i)).sum()
            };
            for lane in crate::wave::on(exec) {
                let [first, second] = [first, second].map(|at| group(&machine, at + 8 * (lane as u64 % 8)));
                let expected = first | second << (8 * bytes);
                prop_assert_eq!(machine.vector(RESULT, lane, (bytes / 2) as u16), expected, "{} lane {}", read, lane);
            }
            machine.run(Way::Lds.words(write, offset, false));
            // The last lane of each place, and the second datum after the first, has the last word.
            for lane in crate::wave::on(exec).filter(|lane| (exec >> lane) >> 8 == 0) {
                let data = |register: u16| machine.vector(register, lane, (bytes / 4) as u16);
                prop_assert_eq!(group(&machine, second + 8 * (lane as u64 % 8)), data(DATA + 4), "{} lane {}", write, lane);
                if first.abs_diff(second) >= 64 {
                    prop_assert_eq!(group(&machine, first + 8 * (lane as u64 % 8)), data(DATA), "{} lane {}", write, lane);
                }
            }
        }
    }

    #[test]
    fn scalar_loads(seed in any::<u64>(), offset in -64i32..64, register in 0u32..64, form in 0..3) {
        for &(name, dwords) in SCALAR_LOADS {
            let mut machine = filled(seed);
            machine.wave.set_pair(4, GLOBAL + 128);
            machine.wave.scalars[8] = register;
            let opcode = u32::from(find(name).1.opcode);
            let first = 0xc000_0000 | opcode << 18 | 16 << 6 | 2;
            let immediate = offset as u32 & 0x1f_ffff;
            let (words, offset) = match form {
                0 => ([first | 1 << 17, immediate], i64::from(offset)),
                1 => ([first, 8], i64::from(register)),
                _ => ([first | 1 << 17 | 1 << 14, 8 << 25 | immediate], i64::from(offset) + i64::from(register)),
            };
            machine.run(words);
            let mut bytes = vec![0; 4 * dwords];
            machine.memory.read((GLOBAL + 128).wrapping_add_signed(offset) & !3, &mut bytes).expect("it is mapped");
            let expected: Vec<u32> = bytes.chunks(4).map(|dword| u32::from_le_bytes(dword.try_into().expect("four"))).collect();
            prop_assert_eq!(&machine.wave.scalars[16..16 + dwords], &expected[..], "{}", name);
        }
    }

    /// Lanes exchange through the hardware of group memory; lanes that are off give nothing.
    #[test]
    fn exchanges(addresses in proptest::collection::vec(0u32..512, 64), exec in any::<u64>(), offset in 0u32..0x8000) {
        let mut machine = Machine::new();
        machine.wave.set_exec(exec);
        for (lane, &address) in addresses.iter().enumerate() {
            machine.set_vector(ADDRESS, lane, 1, address.into());
        }
        let data: Vec<u128> = (0..64).map(|lane| machine.vector(DATA, lane, 1)).collect();
        machine.run(Way::Lds.words("ds_bpermute_b32", 8, false));
        for lane in crate::wave::on(exec) {
            let from = ((addresses[lane] + 8) / 4 % 64) as usize;
            let expected = if exec >> from & 1 != 0 { data[from] } else { 0 };
            prop_assert_eq!(machine.vector(RESULT, lane, 1), expected);
        }
        machine.run(Way::Lds.words("ds_permute_b32", 0, false));
        for lane in crate::wave::on(exec) {
            let senders = crate::wave::on(exec).filter(|&from| (addresses[from] / 4 % 64) as usize == lane);
            prop_assert_eq!(machine.vector(RESULT, lane, 1), senders.last().map_or(0, |from| data[from]));
        }
        for quad in [false, true] {
            let offset = if quad { 0x8000 | offset & 0xff } else { offset };
            machine.run(Way::Lds.words("ds_swizzle_b32", offset as i32, false));
            for lane in crate::wave::on(exec) {
                let from = if quad {
                    lane / 4 * 4 + (offset as usize >> (2 * (lane % 4))) % 4
                } else {
                    let and = lane % 32 & offset as usize % 32;
                    lane / 32 * 32 + ((and | offset as usize / 32 % 32) ^ offset as usize / 1024 % 32)
                };
                let expected = if exec >> from & 1 != 0 { u128::from(addresses[from]) } else { 0 };
                prop_assert_eq!(machine.vector(RESULT, lane, 1), expected);
            }
        }
    }
}

fn check_atomic(
    way: Way,
    name: &str,
    [old, a, b]: [u64; 3],
    bytes: u32,
    glc: bool,
    expected: impl Fn(u64, u64, u64) -> u64,
) -> Result<(), TestCaseError> {
    let cut = |value: u64| {
        if bytes == 4 {
            value & 0xffff_ffff
        } else {
            value
        }
    };
    let [old, a, b] = [old, a, b].map(cut);
    let float = name.contains("_f32") || name.contains("_f64");
    let nan = |value: u64| {
        if bytes == 4 {
            f32::from_bits(value as u32).is_nan()
        } else {
            f64::from_bits(value).is_nan()
        }
    };
    if float && (nan(old) || nan(a) || cut(old << 1) == 0 && cut(a << 1) == 0) {
        // Which NaN, or which zero, is the business of the minimum's own test.
        return Ok(());
    }
    let mut machine = Machine::new();
    let place = 64;
    // Two lanes on the same cell, one after the other; in private memory each has its own.
    machine.wave.set_exec(0b1010);
    way.aim(&mut machine, &[place; 64], 0);
    let dwords = (bytes / 4) as u16;
    for lane in [1, 3] {
        machine.set_vector(DATA, lane, dwords, a.into());
        let second = if way == Way::Lds {
            DATA + 4
        } else {
            DATA + dwords
        };
        machine.set_vector(second, lane, dwords, b.into());
        let dword = |i: u64| ((old >> (32 * i)) as u32).to_le_bytes();
        for i in 0..u64::from(dwords) {
            match way {
                Way::FlatToGroup | Way::Lds => {
                    machine.lds[(place + 4 * i) as usize..][..4].copy_from_slice(&dword(i));
                }
                _ if way.private() => {
                    let at = SCRATCH + (place / 4 + i) * 256 + 4 * lane as u64;
                    machine.memory.write(at, &dword(i)).expect("it is mapped");
                }
                _ => machine
                    .memory
                    .write(GLOBAL + place + 4 * i, &dword(i))
                    .expect("it is mapped"),
            }
        }
    }
    let before = [1, 3].map(|lane| machine.vector(RESULT, lane, dwords) as u64);
    machine.run(way.words(name, 0, glc));
    let first = cut(expected(old, a, b));
    let (second_old, second) = if way.private() {
        (old, first)
    } else {
        (first, cut(expected(first, a, b)))
    };
    for (lane, value) in [(1, if way.private() { first } else { second }), (3, second)] {
        let found = (0..u64::from(bytes))
            .map(|i| u64::from(way.byte(&machine, lane, place + i)) << (8 * i))
            .sum::<u64>();
        prop_assert!(
            found == value || float && nan(value) && nan(found),
            "{name} {old:x} {a:x} {b:x}: {found:x}, not {value:x}"
        );
    }
    let results = [1, 3].map(|lane| machine.vector(RESULT, lane, dwords) as u64);
    let expected = if glc { [old, second_old] } else { before };
    prop_assert!(
        results == expected || float && nan(second_old),
        "{name} returns {results:x?}, not {expected:x?}"
    );
    Ok(())
}

/// What lies outside of memory is a fault with the address, and leaves registers as they were.
#[test]
fn faults_name_the_address() {
    let mut machine = Machine::new();
    machine.wave.set_exec(1 << 7);
    machine.set_vector(ADDRESS, 7, 2, 0x1234);
    let before = machine.vector(RESULT, 7, 1);
    let Err(Stop::Halt(Halt::Memory(fault))) =
        machine.step(Way::Global.words("global_load_dword", 4, false))
    else {
        panic!("nothing is mapped there")
    };
    assert_eq!(
        (fault.address, machine.vector(RESULT, 7, 1)),
        (0x1238, before)
    );
    machine.set_vector(ADDRESS, 7, 1, LDS_BYTES as u128 - 2);
    let Err(Stop::Halt(Halt::Lds { offset })) =
        machine.step(Way::Lds.words("ds_write_b32", 0, false))
    else {
        panic!("group memory ends there")
    };
    assert_eq!(offset, LDS_BYTES as u64 - 2);
    // A lane that is off has no address.
    machine.wave.set_exec(0);
    machine.run(Way::Global.words("global_load_dword", 4, false));
}
