//! Group memory (LDS), and exchanges between lanes that go through its hardware.

use crate::isa::float::{max, min};
use crate::isa::row::{Bus, Row, Stop, missing, rows};
use crate::isa::vmem::{Cell, Place, Places, Width, atomic, decrement, increment, load, store};
use crate::isa::{Instruction, Operand};
use crate::wave::{Lanes, Wave};

/// Atomics, with the opcodes that return nothing and the old value: operation of the value `m` and data `a`, `b`.
macro_rules! atomics {
    ($([$code:literal $name:ident, $rtn:literal $rtn_name:ident]: $ty:ident $reg:ident |$m:ident, $a:ident| $new:expr;)*) => {
        (
            rows! { Machine: $($code $name: Lds Implied [U32, $reg] = |wave, bus, op| {
                one::<$ty>(wave, bus, op, |$m, $a, _| $new)
            };)* },
            rows! { Machine: $($rtn $rtn_name: Lds $reg [U32, $reg] = |wave, bus, op| {
                one::<$ty>(wave, bus, op, |$m, $a, _| $new)
            };)* },
        )
    };
}

const ATOMICS: (&[Row], &[Row]) = atomics! {
    [0x00 ds_add_u32, 0x20 ds_add_rtn_u32]: u32 U32 |m, a| m.wrapping_add(a);
    [0x01 ds_sub_u32, 0x21 ds_sub_rtn_u32]: u32 U32 |m, a| m.wrapping_sub(a);
    [0x02 ds_rsub_u32, 0x22 ds_rsub_rtn_u32]: u32 U32 |m, a| a.wrapping_sub(m);
    [0x03 ds_inc_u32, 0x23 ds_inc_rtn_u32]: u32 U32 |m, a| increment(m, a);
    [0x04 ds_dec_u32, 0x24 ds_dec_rtn_u32]: u32 U32 |m, a| decrement(m, a);
    [0x05 ds_min_i32, 0x25 ds_min_rtn_i32]: u32 U32 |m, a| (m as i32).min(a as i32) as u32;
    [0x06 ds_max_i32, 0x26 ds_max_rtn_i32]: u32 U32 |m, a| (m as i32).max(a as i32) as u32;
    [0x07 ds_min_u32, 0x27 ds_min_rtn_u32]: u32 U32 |m, a| m.min(a);
    [0x08 ds_max_u32, 0x28 ds_max_rtn_u32]: u32 U32 |m, a| m.max(a);
    [0x09 ds_and_b32, 0x29 ds_and_rtn_b32]: u32 U32 |m, a| m & a;
    [0x0a ds_or_b32, 0x2a ds_or_rtn_b32]: u32 U32 |m, a| m | a;
    [0x0b ds_xor_b32, 0x2b ds_xor_rtn_b32]: u32 U32 |m, a| m ^ a;
    [0x12 ds_min_f32, 0x32 ds_min_rtn_f32]: u32 U32 |m, a| min(f32::from_bits(m), f32::from_bits(a)).to_bits();
    [0x13 ds_max_f32, 0x33 ds_max_rtn_f32]: u32 U32 |m, a| max(f32::from_bits(m), f32::from_bits(a)).to_bits();
    [0x15 ds_add_f32, 0x35 ds_add_rtn_f32]: u32 U32 |m, a| (f32::from_bits(m) + f32::from_bits(a)).to_bits();
    [0x40 ds_add_u64, 0x60 ds_add_rtn_u64]: u64 U64 |m, a| m.wrapping_add(a);
    [0x41 ds_sub_u64, 0x61 ds_sub_rtn_u64]: u64 U64 |m, a| m.wrapping_sub(a);
    [0x42 ds_rsub_u64, 0x62 ds_rsub_rtn_u64]: u64 U64 |m, a| a.wrapping_sub(m);
    [0x43 ds_inc_u64, 0x63 ds_inc_rtn_u64]: u64 U64 |m, a| increment(m, a);
    [0x44 ds_dec_u64, 0x64 ds_dec_rtn_u64]: u64 U64 |m, a| decrement(m, a);
    [0x45 ds_min_i64, 0x65 ds_min_rtn_i64]: u64 U64 |m, a| (m as i64).min(a as i64) as u64;
    [0x46 ds_max_i64, 0x66 ds_max_rtn_i64]: u64 U64 |m, a| (m as i64).max(a as i64) as u64;
    [0x47 ds_min_u64, 0x67 ds_min_rtn_u64]: u64 U64 |m, a| m.min(a);
    [0x48 ds_max_u64, 0x68 ds_max_rtn_u64]: u64 U64 |m, a| m.max(a);
    [0x49 ds_and_b64, 0x69 ds_and_rtn_b64]: u64 U64 |m, a| m & a;
    [0x4a ds_or_b64, 0x6a ds_or_rtn_b64]: u64 U64 |m, a| m | a;
    [0x4b ds_xor_b64, 0x6b ds_xor_rtn_b64]: u64 U64 |m, a| m ^ a;
    [0x52 ds_min_f64, 0x72 ds_min_rtn_f64]: u64 U64 |m, a| min(f64::from_bits(m), f64::from_bits(a)).to_bits();
    [0x53 ds_max_f64, 0x73 ds_max_rtn_f64]: u64 U64 |m, a| max(f64::from_bits(m), f64::from_bits(a)).to_bits();
    [0x5c ds_add_f64, 0x7c ds_add_rtn_f64]: u64 U64 |m, a| (f64::from_bits(m) + f64::from_bits(a)).to_bits();
};

pub(super) const DS: &[&[Row]] = &[
    ATOMICS.0,
    ATOMICS.1,
    rows! { Machine:
        0x0d ds_write_b32: Lds Implied [U32, U32] = |wave, bus, op| write(wave, bus, op, Width::B32);
        0x0e ds_write2_b32: Lds Implied [U32, U32, U32] = |wave, bus, op| write2(wave, bus, op, Width::B32, 4);
        0x0f ds_write2st64_b32: Lds Implied [U32, U32, U32] = |wave, bus, op| write2(wave, bus, op, Width::B32, 256);
        0x10 ds_cmpst_b32: Lds Implied [U32, U32, U32] = |wave, bus, op| one::<u32>(wave, bus, op, |m, a, b| if m == a { b } else { m });
        0x1e ds_write_b8: Lds Implied [U32, U32] = |wave, bus, op| write(wave, bus, op, Width::U8);
        0x1f ds_write_b16: Lds Implied [U32, U32] = |wave, bus, op| write(wave, bus, op, Width::U16);
        0x2d ds_wrxchg_rtn_b32: Lds U32 [U32, U32] = |wave, bus, op| one::<u32>(wave, bus, op, |_, a, _| a);
        0x30 ds_cmpst_rtn_b32: Lds U32 [U32, U32, U32] = |wave, bus, op| one::<u32>(wave, bus, op, |m, a, b| if m == a { b } else { m });
        0x36 ds_read_b32: Lds U32 [U32] = |wave, bus, op| read(wave, bus, op, Width::B32);
        0x37 ds_read2_b32: Lds U64 [U32] = |wave, bus, op| read2(wave, bus, op, Width::B32, 4);
        0x38 ds_read2st64_b32: Lds U64 [U32] = |wave, bus, op| read2(wave, bus, op, Width::B32, 256);
        0x39 ds_read_i8: Lds U32 [U32] = |wave, bus, op| read(wave, bus, op, Width::I8);
        0x3a ds_read_u8: Lds U32 [U32] = |wave, bus, op| read(wave, bus, op, Width::U8);
        0x3b ds_read_i16: Lds U32 [U32] = |wave, bus, op| read(wave, bus, op, Width::I16);
        0x3c ds_read_u16: Lds U32 [U32] = |wave, bus, op| read(wave, bus, op, Width::U16);
        0x4d ds_write_b64: Lds Implied [U32, U64] = |wave, bus, op| write(wave, bus, op, Width::B64);
        0x4e ds_write2_b64: Lds Implied [U32, U64, U64] = |wave, bus, op| write2(wave, bus, op, Width::B64, 8);
        0x4f ds_write2st64_b64: Lds Implied [U32, U64, U64] = |wave, bus, op| write2(wave, bus, op, Width::B64, 512);
        0x50 ds_cmpst_b64: Lds Implied [U32, U64, U64] = |wave, bus, op| one::<u64>(wave, bus, op, |m, a, b| if m == a { b } else { m });
        0x54 ds_write_b8_d16_hi: Lds Implied [U32, U32] = |wave, bus, op| write(wave, bus, op, Width::U8_HIGH);
        0x55 ds_write_b16_d16_hi: Lds Implied [U32, U32] = |wave, bus, op| write(wave, bus, op, Width::B16_HIGH);
        0x56 ds_read_u8_d16: Lds U32 [U32] = |wave, bus, op| read(wave, bus, op, Width::U8_LOW);
        0x57 ds_read_u8_d16_hi: Lds U32 [U32] = |wave, bus, op| read(wave, bus, op, Width::U8_HIGH);
        0x58 ds_read_i8_d16: Lds U32 [U32] = |wave, bus, op| read(wave, bus, op, Width::I8_LOW);
        0x59 ds_read_i8_d16_hi: Lds U32 [U32] = |wave, bus, op| read(wave, bus, op, Width::I8_HIGH);
        0x5a ds_read_u16_d16: Lds U32 [U32] = |wave, bus, op| read(wave, bus, op, Width::B16_LOW);
        0x5b ds_read_u16_d16_hi: Lds U32 [U32] = |wave, bus, op| read(wave, bus, op, Width::B16_HIGH);
        0x6d ds_wrxchg_rtn_b64: Lds U64 [U32, U64] = |wave, bus, op| one::<u64>(wave, bus, op, |_, a, _| a);
        0x70 ds_cmpst_rtn_b64: Lds U64 [U32, U64, U64] = |wave, bus, op| one::<u64>(wave, bus, op, |m, a, b| if m == a { b } else { m });
        0x76 ds_read_b64: Lds U64 [U32] = |wave, bus, op| read(wave, bus, op, Width::B64);
        0x77 ds_read2_b64: Lds B128 [U32] = |wave, bus, op| read2(wave, bus, op, Width::B64, 8);
        0x78 ds_read2st64_b64: Lds B128 [U32] = |wave, bus, op| read2(wave, bus, op, Width::B64, 512);
        0xde ds_write_b96: Lds Implied [U32, B96] = |wave, bus, op| write(wave, bus, op, Width::B96);
        0xdf ds_write_b128: Lds Implied [U32, B128] = |wave, bus, op| write(wave, bus, op, Width::B128);
        0xfe ds_read_b96: Lds B96 [U32] = |wave, bus, op| read(wave, bus, op, Width::B96);
        0xff ds_read_b128: Lds B128 [U32] = |wave, bus, op| read(wave, bus, op, Width::B128);
    },
    rows! { Registers:
        0x14 ds_nop: Lds Implied [] = |_, _| {};
        0x3d ds_swizzle_b32: Lds U32 [U32] = swizzle;
        0x3e ds_permute_b32: Lds U32 [U32, U32] = permute;
        0x3f ds_bpermute_b32: Lds U32 [U32, U32] = permute_back;
    },
    missing! {
        0x0c ds_mskor_b32;
        0x11 ds_cmpst_f32;
        0x1d ds_write_addtid_b32;
        0x2c ds_mskor_rtn_b32;
        0x2e ds_wrxchg2_rtn_b32;
        0x2f ds_wrxchg2st64_rtn_b32;
        0x31 ds_cmpst_rtn_f32;
        0x34 ds_wrap_rtn_b32;
        0x4c ds_mskor_b64;
        0x51 ds_cmpst_f64;
        0x6c ds_mskor_rtn_b64;
        0x6e ds_wrxchg2_rtn_b64;
        0x6f ds_wrxchg2st64_rtn_b64;
        0x71 ds_cmpst_rtn_f64;
        0x7e ds_condxchg32_rtn_b64;
        0x99 ds_gws_init;
        0x9a ds_gws_sema_v;
        0x9b ds_gws_sema_br;
        0x9c ds_gws_sema_p;
        0x9d ds_gws_barrier;
        0xb6 ds_read_addtid_b32;
        0xbd ds_consume;
        0xbe ds_append;
    },
];

/// Each lane's address register plus `offset` bytes.
fn places(wave: &Wave, op: &Instruction, offset: u32) -> Result<Places, Stop> {
    let base = wave.lanes(op.src[0], 0);
    Places::new(wave, |lane| {
        Ok(Place::Lds(u64::from(base[lane].wrapping_add(offset))))
    })
}

/// The two offsets of an instruction with two accesses, in steps of `unit` bytes.
fn two_offsets(op: &Instruction, unit: u32) -> [u32; 2] {
    [op.offset as u32 & 0xff, op.offset as u32 >> 8 & 0xff].map(|offset| offset * unit)
}

fn read(wave: &mut Wave, bus: &mut Bus<'_>, op: &Instruction, width: Width) -> Result<(), Stop> {
    let places = places(wave, op, op.offset as u32)?;
    load(wave, bus, op, width, &places)
}

fn read2(
    wave: &mut Wave,
    bus: &mut Bus<'_>,
    op: &Instruction,
    width: Width,
    unit: u32,
) -> Result<(), Stop> {
    let [first, second] = two_offsets(op, unit);
    // Both addresses come from a register that the first result may overwrite.
    let places = [places(wave, op, first)?, places(wave, op, second)?];
    let mut part = op.clone();
    for places in &places {
        load(wave, bus, &part, width, places)?;
        if let Operand::Vector(register) = &mut part.dst {
            *register += (width.bytes / 4) as u16;
        }
    }
    Ok(())
}

fn write(wave: &mut Wave, bus: &mut Bus<'_>, op: &Instruction, width: Width) -> Result<(), Stop> {
    store(
        wave,
        bus,
        op.src[1],
        width,
        &places(wave, op, op.offset as u32)?,
    )
}

fn write2(
    wave: &mut Wave,
    bus: &mut Bus<'_>,
    op: &Instruction,
    width: Width,
    unit: u32,
) -> Result<(), Stop> {
    let [first, second] = two_offsets(op, unit);
    store(wave, bus, op.src[1], width, &places(wave, op, first)?)?;
    store(wave, bus, op.src[2], width, &places(wave, op, second)?)
}

/// One atomic per lane.
fn one<T: Cell>(
    wave: &mut Wave,
    bus: &mut Bus<'_>,
    op: &Instruction,
    f: impl Fn(T, T, T) -> T,
) -> Result<(), Stop> {
    let places = places(wave, op, op.offset as u32)?;
    atomic(wave, bus, op, [(op.src[1], 0), (op.src[2], 0)], &places, f)
}

/// The lane that an address of four bytes per lane names.
fn lane_of(address: u32, op: &Instruction) -> usize {
    (address.wrapping_add(op.offset as u32) / 4 % 64) as usize
}

/// Each lane reads the lane that its address names; one that is off reads as 0.
fn permute_back(wave: &mut Wave, op: &Instruction) {
    let (addresses, data, exec) = (
        wave.lanes(op.src[0], 0),
        wave.lanes(op.src[1], 0),
        wave.exec(),
    );
    let values = addresses.map(|address| {
        let lane = lane_of(address, op);
        if exec >> lane & 1 != 0 { data[lane] } else { 0 }
    });
    wave.set_lanes(op.dst, 0, &values, exec);
}

/// Each lane sends to the lane that its address names; the last sender wins, and who gets nothing gets 0.
fn permute(wave: &mut Wave, op: &Instruction) {
    let (addresses, data, exec) = (
        wave.lanes(op.src[0], 0),
        wave.lanes(op.src[1], 0),
        wave.exec(),
    );
    let mut values: Lanes = [0; 64];
    for lane in crate::wave::on(exec) {
        values[lane_of(addresses[lane], op)] = data[lane];
    }
    wave.set_lanes(op.dst, 0, &values, exec);
}

/// Each lane reads a lane of its group of 32 (of 4 in quad mode), chosen by the offset.
fn swizzle(wave: &mut Wave, op: &Instruction) {
    let (data, exec, offset) = (wave.lanes(op.src[0], 0), wave.exec(), op.offset as usize);
    let values = std::array::from_fn(|lane| {
        let source = if offset & 0x8000 != 0 {
            lane & !3 | offset >> (2 * (lane & 3)) & 3
        } else {
            let (and, or, xor) = (offset & 0x1f, offset >> 5 & 0x1f, offset >> 10 & 0x1f);
            lane & !31 | (((lane & 31) & and) | or) ^ xor
        };
        if exec >> source & 1 != 0 {
            data[source]
        } else {
            0
        }
    });
    wave.set_lanes(op.dst, 0, &values, exec);
}
