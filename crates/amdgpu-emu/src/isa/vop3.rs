//! Vector instructions that only exist with three operand fields.

use crate::isa::F16;
use crate::isa::float::{
    div_fixup32, div_fixup64, div_fmas32, div_fmas64, div_scale32, div_scale64, mad, max, median,
    min, scale, two_over_pi,
};
use crate::isa::row::{Row, lanes, missing, rows};
use crate::isa::vop1::read_lane;
use crate::isa::vop2::{legacy_mad, low24};
use crate::isa::{Instruction, Operand};
use crate::lanes::{Clamp, Id, Keep, VccBit};
use crate::wave::Wave;

pub(super) const VOP3: &[&[Row]] = &[
    lanes! { Valu:
        0x1c0 v_mad_legacy_f32(a: f32, b: f32, c: f32) -> f32 = legacy_mad(a, b, c);
        0x1c1 v_mad_f32(a: f32, b: f32, c: f32) -> f32 = mad(a, b, c);
        0x1c2 v_mad_i32_i24(a: i32, b: i32, c: i32) -> i32 = low24(a).wrapping_mul(low24(b)).wrapping_add(c);
        0x1c3 v_mad_u32_u24(a: u32, b: u32, c: u32) -> u32 = (a & 0xff_ffff).wrapping_mul(b & 0xff_ffff).wrapping_add(c);
        0x1c8 v_bfe_u32(a: u32, b: u32, c: u32) -> u32 = a >> (b & 31) & ((1 << (c & 31)) - 1);
        0x1c9 v_bfe_i32(a: i32, b: u32, c: u32) -> i32 = {
            let (offset, width) = (b & 31, c & 31);
            match width {
                0 => 0,
                _ if offset + width > 31 => a >> offset,
                _ => a << (32 - offset - width) >> (32 - width),
            }
        };
        0x1ca v_bfi_b32(a: u32, b: u32, c: u32) -> u32 = a & b | !a & c;
        0x1cb v_fma_f32(a: f32, b: f32, c: f32) -> f32 = a.mul_add(b, c);
        0x1cd v_lerp_u8(a: u32, b: u32, c: u32) -> u32 = bytes(a, b, c, |a, b, c| (a + b + (c & 1)) >> 1);
        0x1ce v_alignbit_b32(a: u32, b: u32, c: u32) -> u32 = ((u64::from(a) << 32 | u64::from(b)) >> (c & 31)) as u32;
        0x1cf v_alignbyte_b32(a: u32, b: u32, c: u32) -> u32 = ((u64::from(a) << 32 | u64::from(b)) >> (8 * (c & 3))) as u32;
        0x1d0 v_min3_f32(a: f32, b: f32, c: f32) -> f32 = min(min(a, b), c);
        0x1d1 v_min3_i32(a: i32, b: i32, c: i32) -> i32 = a.min(b).min(c);
        0x1d2 v_min3_u32(a: u32, b: u32, c: u32) -> u32 = a.min(b).min(c);
        0x1d3 v_max3_f32(a: f32, b: f32, c: f32) -> f32 = max(max(a, b), c);
        0x1d4 v_max3_i32(a: i32, b: i32, c: i32) -> i32 = a.max(b).max(c);
        0x1d5 v_max3_u32(a: u32, b: u32, c: u32) -> u32 = a.max(b).max(c);
        0x1d6 v_med3_f32(a: f32, b: f32, c: f32) -> f32 = median(a, b, c);
        0x1d7 v_med3_i32(a: i32, b: i32, c: i32) -> i32 = a.min(b).max(a.max(b).min(c));
        0x1d8 v_med3_u32(a: u32, b: u32, c: u32) -> u32 = a.min(b).max(a.max(b).min(c));
        0x1d9 v_sad_u8(a: u32, b: u32, c: u32) -> u32 = {
            (0..4).fold(c, |sum, i| sum.wrapping_add((a >> (8 * i) & 0xff).abs_diff(b >> (8 * i) & 0xff)))
        };
        0x1dc v_sad_u32(a: u32, b: u32, c: u32) -> u32 = a.abs_diff(b).wrapping_add(c);
        0x1de v_div_fixup_f32(a: f32, b: f32, c: f32) -> f32 = div_fixup32(a, b, c);
        0x1e0 v_div_scale_f32(a: f32, b: f32, c: f32) -> (f32, bool) = div_scale32(a, b, c);
        0x1e2 v_div_fmas_f32(a: f32, b: f32, c: f32, scaled: VccBit) -> f32 = div_fmas32(a, b, c, scaled.0);
        0x1e8 v_mad_u64_u32(a: u32, b: u32, c: u64) -> (u64, bool) = (u64::from(a) * u64::from(b)).overflowing_add(c);
        0x1e9 v_mad_i64_i32(a: i32, b: i32, c: i64) -> (i64, bool) = (i64::from(a) * i64::from(b)).overflowing_add(c);
        0x1eb v_mad_legacy_u16(a: u16, b: u16, c: u16) -> u16 = a.wrapping_mul(b).wrapping_add(c);
        0x1ec v_mad_legacy_i16(a: i16, b: i16, c: i16) -> i16 = a.wrapping_mul(b).wrapping_add(c);
        0x1ed v_perm_b32(a: u32, b: u32, c: u32) -> u32 = permute(a, b, c);
        0x1f1 v_mad_u32_u16(a: u16, b: u16, c: u32) -> u32 = (u32::from(a) * u32::from(b)).wrapping_add(c);
        0x1f2 v_mad_i32_i16(a: i16, b: i16, c: i32) -> i32 = (i32::from(a) * i32::from(b)).wrapping_add(c);
        0x1f3 v_xad_u32(a: u32, b: u32, c: u32) -> u32 = (a ^ b).wrapping_add(c);
        0x1f4 v_min3_f16(a: F16, b: F16, c: F16) -> F16 = min(min(a, b), c);
        0x1f5 v_min3_i16(a: i16, b: i16, c: i16) -> i16 = a.min(b).min(c);
        0x1f6 v_min3_u16(a: u16, b: u16, c: u16) -> u16 = a.min(b).min(c);
        0x1f7 v_max3_f16(a: F16, b: F16, c: F16) -> F16 = max(max(a, b), c);
        0x1f8 v_max3_i16(a: i16, b: i16, c: i16) -> i16 = a.max(b).max(c);
        0x1f9 v_max3_u16(a: u16, b: u16, c: u16) -> u16 = a.max(b).max(c);
        0x1fa v_med3_f16(a: F16, b: F16, c: F16) -> F16 = median(a, b, c);
        0x1fb v_med3_i16(a: i16, b: i16, c: i16) -> i16 = a.min(b).max(a.max(b).min(c));
        0x1fc v_med3_u16(a: u16, b: u16, c: u16) -> u16 = a.min(b).max(a.max(b).min(c));
        0x1fd v_lshl_add_u32(a: u32, b: u32, c: u32) -> u32 = (a << (b & 31)).wrapping_add(c);
        0x1fe v_add_lshl_u32(a: u32, b: u32, c: u32) -> u32 = a.wrapping_add(b) << (c & 31);
        0x1ff v_add3_u32(a: u32, b: u32, c: u32) -> u32 = a.wrapping_add(b).wrapping_add(c);
        0x200 v_lshl_or_b32(a: u32, b: u32, c: u32) -> u32 = a << (b & 31) | c;
        0x201 v_and_or_b32(a: u32, b: u32, c: u32) -> u32 = a & b | c;
        0x202 v_or3_b32(a: u32, b: u32, c: u32) -> u32 = a | b | c;
        0x204 v_mad_u16(a: u16, b: u16, c: u16) -> Keep<u16> = Keep(a.wrapping_mul(b).wrapping_add(c));
        0x205 v_mad_i16(a: i16, b: i16, c: i16) -> Keep<i16> = Keep(a.wrapping_mul(b).wrapping_add(c));
        0x206 v_fma_f16(a: F16, b: F16, c: F16) -> Keep<F16> = Keep(F16::from_f64(a.to_f64().mul_add(b.to_f64(), c.to_f64())));
        0x288 v_ldexp_f32(a: f32, b: i32) -> f32 = scale(f64::from(a), b) as f32;
        0x28b v_bcnt_u32_b32(a: u32, b: u32) -> u32 = a.count_ones().wrapping_add(b);
        0x28c v_mbcnt_lo_u32_b32(a: u32, b: u32, lane: Id) -> u32 = {
            let below = if lane.0 < 32 { (1 << lane.0) - 1 } else { u32::MAX };
            (a & below).count_ones().wrapping_add(b)
        };
        0x28d v_mbcnt_hi_u32_b32(a: u32, b: u32, lane: Id) -> u32 = {
            let below = if lane.0 < 32 { 0 } else { (1 << (lane.0 - 32)) - 1 };
            (a & below).count_ones().wrapping_add(b)
        };
        0x28f v_lshlrev_b64(a: u32, b: u64) -> u64 = b << (a & 63);
        0x290 v_lshrrev_b64(a: u32, b: u64) -> u64 = b >> (a & 63);
        0x291 v_ashrrev_i64(a: u32, b: i64) -> i64 = b >> (a & 63);
        0x293 v_bfm_b32(a: u32, b: u32) -> u32 = ((1 << (a & 31)) - 1) << (b & 31);
        0x296 v_cvt_pkrtz_f16_f32(a: f32, b: f32) -> u32 = pack(F16::truncate(a).0, F16::truncate(b).0);
        0x297 v_cvt_pk_u16_u32(a: u32, b: u32) -> u32 = pack(a.min(0xffff) as u16, b.min(0xffff) as u16);
        0x298 v_cvt_pk_i16_i32(a: i32, b: i32) -> u32 = pack(a.clamp(-0x8000, 0x7fff) as u16, b.clamp(-0x8000, 0x7fff) as u16);
        0x29c v_add_i32(a: i32, b: i32, clamp: Clamp) -> i32 = if clamp.0 { a.saturating_add(b) } else { a.wrapping_add(b) };
        0x29d v_sub_i32(a: i32, b: i32, clamp: Clamp) -> i32 = if clamp.0 { a.saturating_sub(b) } else { a.wrapping_sub(b) };
        0x29e v_add_i16(a: i16, b: i16, clamp: Clamp) -> i16 = if clamp.0 { a.saturating_add(b) } else { a.wrapping_add(b) };
        0x29f v_sub_i16(a: i16, b: i16, clamp: Clamp) -> i16 = if clamp.0 { a.saturating_sub(b) } else { a.wrapping_sub(b) };
        0x2a0 v_pack_b32_f16(a: F16, b: F16) -> u32 = pack(a.0, b.0);
    },
    lanes! { SlowValu:
        0x1cc v_fma_f64(a: f64, b: f64, c: f64) -> f64 = a.mul_add(b, c);
        0x1df v_div_fixup_f64(a: f64, b: f64, c: f64) -> f64 = div_fixup64(a, b, c);
        0x1e1 v_div_scale_f64(a: f64, b: f64, c: f64) -> (f64, bool) = div_scale64(a, b, c);
        0x1e3 v_div_fmas_f64(a: f64, b: f64, c: f64, scaled: VccBit) -> f64 = div_fmas64(a, b, c, scaled.0);
        0x280 v_add_f64(a: f64, b: f64) -> f64 = a + b;
        0x281 v_mul_f64(a: f64, b: f64) -> f64 = a * b;
        0x282 v_min_f64(a: f64, b: f64) -> f64 = min(a, b);
        0x283 v_max_f64(a: f64, b: f64) -> f64 = max(a, b);
        0x284 v_ldexp_f64(a: f64, b: i32) -> f64 = scale(a, b);
        0x285 v_mul_lo_u32(a: u32, b: u32) -> u32 = a.wrapping_mul(b);
        0x286 v_mul_hi_u32(a: u32, b: u32) -> u32 = ((u64::from(a) * u64::from(b)) >> 32) as u32;
        0x287 v_mul_hi_i32(a: i32, b: i32) -> i32 = ((i64::from(a) * i64::from(b)) >> 32) as i32;
        0x292 v_trig_preop_f64(a: f64, b: u32) -> f64 = two_over_pi(a, b);
    },
    rows! { Registers:
        0x289 v_readlane_b32: Valu Scalar [U32, U32] = |wave, op| read_lane(wave, op, wave.scalar32(op.src[1]));
        0x28a v_writelane_b32: Valu U32 [U32, U32] = write_lane;
    },
    missing! {
        0x1c4 v_cubeid_f32;
        0x1c5 v_cubesc_f32;
        0x1c6 v_cubetc_f32;
        0x1c7 v_cubema_f32;
        0x1da v_sad_hi_u8;
        0x1db v_sad_u16;
        0x1dd v_cvt_pk_u8_f32;
        0x1e4 v_msad_u8;
        0x1e5 v_qsad_pk_u16_u8;
        0x1e6 v_mqsad_pk_u16_u8;
        0x1e7 v_mqsad_u32_u8;
        0x1ea v_mad_legacy_f16;
        0x1ee v_fma_legacy_f16;
        0x1ef v_div_fixup_legacy_f16;
        0x203 v_mad_f16;
        0x207 v_div_fixup_f16;
        0x294 v_cvt_pknorm_i16_f32;
        0x295 v_cvt_pknorm_u16_f32;
        0x299 v_cvt_pknorm_i16_f16;
        0x29a v_cvt_pknorm_u16_f16;
    },
];

fn pack(low: u16, high: u16) -> u32 {
    u32::from(low) | u32::from(high) << 16
}

/// An operation on each byte.
fn bytes(a: u32, b: u32, c: u32, f: impl Fn(u32, u32, u32) -> u32) -> u32 {
    (0..4).map(|i| 8 * i).fold(0, |all, at| {
        all | (f(a >> at & 0xff, b >> at & 0xff, c >> at & 0xff) & 0xff) << at
    })
}

/// Four bytes that the selectors in `c` take from `b` (0 to 3) and `a` (4 to 7), from signs of halves, or constants.
fn permute(a: u32, b: u32, c: u32) -> u32 {
    let source = u64::from(a) << 32 | u64::from(b);
    let sign = |bit: u32| if source >> bit & 1 != 0 { 0xff } else { 0 };
    bytes(c, 0, 0, |selector, _, _| match selector {
        0..=7 => (source >> (8 * selector)) as u32,
        8..=11 => sign(16 * (selector - 8) + 15),
        12 => 0,
        _ => 0xff,
    })
}

/// Writes a scalar to one lane, whether it is on or not.
fn write_lane(wave: &mut Wave, op: &Instruction) {
    let (value, lane) = (wave.scalar32(op.src[0]), wave.scalar32(op.src[1]));
    if let Operand::Vector(register) = op.dst {
        wave.vectors[usize::from(register)][lane as usize & 63] = value;
    }
}
