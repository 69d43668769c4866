//! Vector memory by 64-bit address: the flat, global and scratch encodings of one set of instructions.
//!
//! A flat address may lie in an aperture, and is then an offset in group or private memory. A global one is taken as it
//! is.

use crate::isa::decode::Family;
use crate::isa::float::{max, min};
use crate::isa::row::{Bus, Row, Stop, rows};
use crate::isa::vmem::{Cell, Place, Places, atomic, decrement, increment};
use crate::isa::{Instruction, Operand};
use crate::wave::Wave;

/// The scalar register pair FLAT_SCRATCH.
const FLAT_SCRATCH: u8 = 102;

/// Loads and stores, for an encoding's prefix and classes.
macro_rules! accesses {
    ($prefix:literal $read:ident $write:ident) => {
        accesses! { $prefix:
            loads $read:
                0x10 "load_ubyte" U32 U8;
                0x11 "load_sbyte" U32 I8;
                0x12 "load_ushort" U32 U16;
                0x13 "load_sshort" U32 I16;
                0x14 "load_dword" U32 B32;
                0x15 "load_dwordx2" U64 B64;
                0x16 "load_dwordx3" B96 B96;
                0x17 "load_dwordx4" B128 B128;
                0x20 "load_ubyte_d16" U32 U8_LOW;
                0x21 "load_ubyte_d16_hi" U32 U8_HIGH;
                0x22 "load_sbyte_d16" U32 I8_LOW;
                0x23 "load_sbyte_d16_hi" U32 I8_HIGH;
                0x24 "load_short_d16" U32 B16_LOW;
                0x25 "load_short_d16_hi" U32 B16_HIGH;
            stores $write:
                0x18 "store_byte" U32 U8;
                0x19 "store_byte_d16_hi" U32 U8_HIGH;
                0x1a "store_short" U32 U16;
                0x1b "store_short_d16_hi" U32 B16_HIGH;
                0x1c "store_dword" U32 B32;
                0x1d "store_dwordx2" U64 B64;
                0x1e "store_dwordx3" B96 B96;
                0x1f "store_dwordx4" B128 B128;
        }
    };
    ($prefix:literal: loads $read:ident: $($code:literal $name:literal $reg:ident $width:ident;)*
        stores $write:ident: $($scode:literal $sname:literal $sreg:ident $swidth:ident;)*) => {
        &[
            $($crate::isa::row::Row {
                opcode: $code,
                name: concat!($prefix, $name),
                class: $crate::counters::Class::$read,
                dst: $crate::isa::Type::$reg,
                dst_mask: false,
                src: &[$crate::isa::Type::U64],
                exec: $crate::isa::Exec::Machine(|wave, bus, op| {
                    let places = places(wave, op)?;
                    $crate::isa::vmem::load(wave, bus, op, $crate::isa::vmem::Width::$width, &places)
                }),
            },)*
            $($crate::isa::row::Row {
                opcode: $scode,
                name: concat!($prefix, $sname),
                class: $crate::counters::Class::$write,
                dst: $crate::isa::Type::Implied,
                dst_mask: false,
                src: &[$crate::isa::Type::U64, $crate::isa::Type::$sreg],
                exec: $crate::isa::Exec::Machine(|wave, bus, op| {
                    let places = places(wave, op)?;
                    $crate::isa::vmem::store(wave, bus, op.src[1], $crate::isa::vmem::Width::$swidth, &places)
                }),
            },)*
        ]
    };
}

/// Atomics, for an encoding's prefix and class: operation of the value `m` and the data `a`, `b`.
macro_rules! atomics {
    ($prefix:literal $class:ident) => {
        atomics! { $prefix $class:
            0x40 "atomic_swap" u32 U32 U32 |_m, a, _b| a;
            0x41 "atomic_cmpswap" u32 U32 U64 |m, a, b| if m == b { a } else { m };
            0x42 "atomic_add" u32 U32 U32 |m, a, _b| m.wrapping_add(a);
            0x43 "atomic_sub" u32 U32 U32 |m, a, _b| m.wrapping_sub(a);
            0x44 "atomic_smin" u32 U32 U32 |m, a, _b| (m as i32).min(a as i32) as u32;
            0x45 "atomic_umin" u32 U32 U32 |m, a, _b| m.min(a);
            0x46 "atomic_smax" u32 U32 U32 |m, a, _b| (m as i32).max(a as i32) as u32;
            0x47 "atomic_umax" u32 U32 U32 |m, a, _b| m.max(a);
            0x48 "atomic_and" u32 U32 U32 |m, a, _b| m & a;
            0x49 "atomic_or" u32 U32 U32 |m, a, _b| m | a;
            0x4a "atomic_xor" u32 U32 U32 |m, a, _b| m ^ a;
            0x4b "atomic_inc" u32 U32 U32 |m, a, _b| increment(m, a);
            0x4c "atomic_dec" u32 U32 U32 |m, a, _b| decrement(m, a);
            0x4f "atomic_add_f64" u64 U64 U64 |m, a, _b| (f64::from_bits(m) + f64::from_bits(a)).to_bits();
            0x50 "atomic_min_f64" u64 U64 U64 |m, a, _b| min(f64::from_bits(m), f64::from_bits(a)).to_bits();
            0x51 "atomic_max_f64" u64 U64 U64 |m, a, _b| max(f64::from_bits(m), f64::from_bits(a)).to_bits();
            0x60 "atomic_swap_x2" u64 U64 U64 |_m, a, _b| a;
            0x61 "atomic_cmpswap_x2" u64 U64 B128 |m, a, b| if m == b { a } else { m };
            0x62 "atomic_add_x2" u64 U64 U64 |m, a, _b| m.wrapping_add(a);
            0x63 "atomic_sub_x2" u64 U64 U64 |m, a, _b| m.wrapping_sub(a);
            0x64 "atomic_smin_x2" u64 U64 U64 |m, a, _b| (m as i64).min(a as i64) as u64;
            0x65 "atomic_umin_x2" u64 U64 U64 |m, a, _b| m.min(a);
            0x66 "atomic_smax_x2" u64 U64 U64 |m, a, _b| (m as i64).max(a as i64) as u64;
            0x67 "atomic_umax_x2" u64 U64 U64 |m, a, _b| m.max(a);
            0x68 "atomic_and_x2" u64 U64 U64 |m, a, _b| m & a;
            0x69 "atomic_or_x2" u64 U64 U64 |m, a, _b| m | a;
            0x6a "atomic_xor_x2" u64 U64 U64 |m, a, _b| m ^ a;
            0x6b "atomic_inc_x2" u64 U64 U64 |m, a, _b| increment(m, a);
            0x6c "atomic_dec_x2" u64 U64 U64 |m, a, _b| decrement(m, a);
        }
    };
    ($prefix:literal $class:ident: $($code:literal $name:literal $ty:ident $reg:ident $data:ident |$m:ident, $a:ident, $b:ident| $new:expr;)*) => {
        &[$($crate::isa::row::Row {
            opcode: $code,
            name: concat!($prefix, $name),
            class: $crate::counters::Class::$class,
            dst: $crate::isa::Type::$reg,
            dst_mask: false,
            src: &[$crate::isa::Type::U64, $crate::isa::Type::$data],
            exec: $crate::isa::Exec::Machine(|wave, bus, op| {
                one::<$ty>(wave, bus, op, |$m, $a, $b| $new)
            }),
        },)*]
    };
}

pub(super) const FLAT: &[&[Row]] = &[
    accesses!("flat_" FlatRead FlatWrite),
    atomics!("flat_" FlatWrite),
];

pub(super) const SCRATCH: &[&[Row]] = &[accesses!("scratch_" VmemRead VmemWrite)];

pub(super) const GLOBAL: &[&[Row]] = &[
    accesses!("global_" VmemRead VmemWrite),
    atomics!("global_" VmemWrite),
    rows! { Machine:
        0x4d global_atomic_add_f32: VmemWrite U32 [U64, U32] = |wave, bus, op| {
            one::<u32>(wave, bus, op, |m, a, _| (f32::from_bits(m) + f32::from_bits(a)).to_bits())
        };
    },
    crate::isa::row::missing! {
        0x4e global_atomic_pk_add_f16;
    },
];

/// Each lane's address, and what it means.
fn places(wave: &Wave, op: &Instruction) -> Result<Places, Stop> {
    let offset = i64::from(op.offset);
    let vector = |lane: usize| match op.src[0] {
        Operand::Vector(first) => {
            let register = |i: u16| u64::from(wave.vectors[usize::from(first + i)][lane]);
            let wide = op.family == Family::Flat
                || op.src[2] == Operand::None && op.family == Family::Global;
            if wide {
                register(0) | register(1) << 32
            } else {
                register(0)
            }
        }
        _ => 0,
    };
    match op.family {
        Family::Global => {
            let base = if op.src[2] == Operand::None {
                0
            } else {
                wave.scalar64(op.src[2])
            };
            let base = base.wrapping_add_signed(offset);
            Places::new(wave, |lane| {
                Ok(Place::Global(base.wrapping_add(vector(lane))))
            })
        }
        Family::Scratch => {
            let scalar = if op.src[2] == Operand::None {
                0
            } else {
                wave.scalar32(op.src[2])
            };
            let base = u64::from(scalar).wrapping_add_signed(offset);
            Places::new(wave, |lane| {
                Ok(private(wave, lane, base.wrapping_add(vector(lane))))
            })
        }
        _ => Places::new(wave, |lane| {
            let address = vector(lane).wrapping_add_signed(offset);
            Ok(match address >> 32 {
                high if high == wave.apertures.shared >> 32 => Place::Lds(address & 0xffff_ffff),
                high if high == wave.apertures.private >> 32 => {
                    private(wave, lane, address & 0xffff_ffff)
                }
                _ => Place::Global(address),
            })
        }),
    }
}

/// A byte of a lane's private memory.
fn private(wave: &Wave, lane: usize, offset: u64) -> Place {
    Place::Swizzled {
        base: wave.pair(FLAT_SCRATCH).wrapping_add(4 * lane as u64),
        offset: offset & 0xffff_ffff,
    }
}

/// One atomic per lane. A compare-and-swap has the value to compare with in the registers after the new one.
fn one<T: Cell>(
    wave: &mut Wave,
    bus: &mut Bus<'_>,
    op: &Instruction,
    f: impl Fn(T, T, T) -> T,
) -> Result<(), Stop> {
    let places = places(wave, op)?;
    let compares = op
        .row
        .src
        .get(1)
        .is_some_and(|data| data.dwords() > T::DWORDS);
    let second = if compares { op.src[1] } else { Operand::None };
    atomic(
        wave,
        bus,
        op,
        [(op.src[1], 0), (second, T::DWORDS)],
        &places,
        f,
    )
}
