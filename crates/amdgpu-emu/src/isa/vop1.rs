//! Vector instructions with one operand.

use crate::isa::F16;
use crate::isa::float::{self, Float, fraction32, fraction64};
use crate::isa::row::{Row, lanes, missing, rows};
use crate::isa::{Instruction, Operand};
use crate::wave::Wave;

pub(super) const VOP1: &[&[Row]] = &[
    lanes! { Valu:
        0x01 v_mov_b32(a: u32) -> u32 = a;
        0x05 v_cvt_f32_i32(a: i32) -> f32 = a as f32;
        0x06 v_cvt_f32_u32(a: u32) -> f32 = a as f32;
        0x07 v_cvt_u32_f32(a: f32) -> u32 = a as u32;
        0x08 v_cvt_i32_f32(a: f32) -> i32 = a as i32;
        0x0a v_cvt_f16_f32(a: f32) -> F16 = F16::from_f32(a);
        0x0b v_cvt_f32_f16(a: F16) -> f32 = a.to_f32();
        0x0c v_cvt_rpi_i32_f32(a: f32) -> i32 = (f64::from(a) + 0.5).floor() as i32;
        0x0d v_cvt_flr_i32_f32(a: f32) -> i32 = a.floor() as i32;
        0x11 v_cvt_f32_ubyte0(a: u32) -> f32 = (a & 0xff) as f32;
        0x12 v_cvt_f32_ubyte1(a: u32) -> f32 = (a >> 8 & 0xff) as f32;
        0x13 v_cvt_f32_ubyte2(a: u32) -> f32 = (a >> 16 & 0xff) as f32;
        0x14 v_cvt_f32_ubyte3(a: u32) -> f32 = (a >> 24) as f32;
        0x1b v_fract_f32(a: f32) -> f32 = fraction32(a);
        0x1c v_trunc_f32(a: f32) -> f32 = a.trunc();
        0x1d v_ceil_f32(a: f32) -> f32 = a.ceil();
        0x1e v_rndne_f32(a: f32) -> f32 = a.round_ties_even();
        0x1f v_floor_f32(a: f32) -> f32 = a.floor();
        0x2b v_not_b32(a: u32) -> u32 = !a;
        0x2c v_bfrev_b32(a: u32) -> u32 = a.reverse_bits();
        0x2d v_ffbh_u32(a: u32) -> u32 = if a == 0 { u32::MAX } else { a.leading_zeros() };
        0x2e v_ffbl_b32(a: u32) -> u32 = if a == 0 { u32::MAX } else { a.trailing_zeros() };
        0x2f v_ffbh_i32(a: u32) -> u32 = match a.leading_zeros().max(a.leading_ones()) {
            32 => u32::MAX,
            position => position,
        };
        0x33 v_frexp_exp_i32_f32(a: f32) -> i32 = exponent(f64::from(a));
        0x34 v_frexp_mant_f32(a: f32) -> f32 = if a.is_finite() { mantissa(f64::from(a)) as f32 } else { a.quiet() };
        0x39 v_cvt_f16_u16(a: u16) -> F16 = F16::from_f32(f32::from(a));
        0x3a v_cvt_f16_i16(a: i16) -> F16 = F16::from_f32(f32::from(a));
        0x3b v_cvt_u16_f16(a: F16) -> u16 = a.to_f32() as u16;
        0x3c v_cvt_i16_f16(a: F16) -> i16 = a.to_f32() as i16;
        0x42 v_frexp_mant_f16(a: F16) -> F16 = if a.to_f32().is_finite() { F16::from_f64(mantissa(a.to_f64())) } else { a.quiet() };
        0x43 v_frexp_exp_i16_f16(a: F16) -> i16 = exponent(a.to_f64()) as i16;
        0x44 v_floor_f16(a: F16) -> F16 = F16::from_f32(a.to_f32().floor());
        0x45 v_ceil_f16(a: F16) -> F16 = F16::from_f32(a.to_f32().ceil());
        0x46 v_trunc_f16(a: F16) -> F16 = F16::from_f32(a.to_f32().trunc());
        0x47 v_rndne_f16(a: F16) -> F16 = F16::from_f32(a.to_f32().round_ties_even());
        0x4f v_sat_pk_u8_i16(a: u32) -> u32 = {
            let saturate = |half: u32| u32::from((half as i16).clamp(0, 255) as u8);
            saturate(a) | saturate(a >> 16) << 8
        };
    },
    lanes! { SlowValu:
        0x03 v_cvt_i32_f64(a: f64) -> i32 = a as i32;
        0x04 v_cvt_f64_i32(a: i32) -> f64 = f64::from(a);
        0x0f v_cvt_f32_f64(a: f64) -> f32 = a as f32;
        0x10 v_cvt_f64_f32(a: f32) -> f64 = f64::from(a);
        0x15 v_cvt_u32_f64(a: f64) -> u32 = a as u32;
        0x16 v_cvt_f64_u32(a: u32) -> f64 = f64::from(a);
        0x17 v_trunc_f64(a: f64) -> f64 = a.trunc();
        0x18 v_ceil_f64(a: f64) -> f64 = a.ceil();
        0x19 v_rndne_f64(a: f64) -> f64 = a.round_ties_even();
        0x1a v_floor_f64(a: f64) -> f64 = a.floor();
        0x20 v_exp_f32(a: f32) -> f32 = f64::from(a).exp2() as f32;
        0x21 v_log_f32(a: f32) -> f32 = f64::from(a).log2() as f32;
        0x22 v_rcp_f32(a: f32) -> f32 = 1.0 / a;
        0x23 v_rcp_iflag_f32(a: f32) -> f32 = 1.0 / a;
        0x24 v_rsq_f32(a: f32) -> f32 = (1.0 / f64::from(a).sqrt()) as f32;
        0x25 v_rcp_f64(a: f64) -> f64 = 1.0 / a;
        0x26 v_rsq_f64(a: f64) -> f64 = 1.0 / a.sqrt();
        0x27 v_sqrt_f32(a: f32) -> f32 = a.sqrt();
        0x28 v_sqrt_f64(a: f64) -> f64 = a.sqrt();
        0x29 v_sin_f32(a: f32) -> f32 = float::sine(a);
        0x2a v_cos_f32(a: f32) -> f32 = float::cosine(a);
        0x30 v_frexp_exp_i32_f64(a: f64) -> i32 = exponent(a);
        0x31 v_frexp_mant_f64(a: f64) -> f64 = if a.is_finite() { mantissa(a) } else { a.quiet() };
        0x32 v_fract_f64(a: f64) -> f64 = fraction64(a);
        0x3d v_rcp_f16(a: F16) -> F16 = F16::from_f64(1.0 / a.to_f64());
        0x3e v_sqrt_f16(a: F16) -> F16 = F16::from_f64(a.to_f64().sqrt());
        0x3f v_rsq_f16(a: F16) -> F16 = F16::from_f64(1.0 / a.to_f64().sqrt());
        0x40 v_log_f16(a: F16) -> F16 = F16::from_f64(a.to_f64().log2());
        0x41 v_exp_f16(a: F16) -> F16 = F16::from_f64(a.to_f64().exp2());
    },
    rows! { Registers:
        0x00 v_nop: Valu Implied [] = |_, _| {};
        0x02 v_readfirstlane_b32: Valu Scalar [U32] = |wave, op| {
            // With all lanes off, lane 0 is read.
            let lane = wave.exec().trailing_zeros() & 63;
            read_lane(wave, op, lane);
        };
        0x35 v_clrexcp: Valu Implied [] = |_, _| {};
        0x52 v_accvgpr_mov_b32: Valu Accum [Accum] = |wave, op| {
            let values = wave.lanes(op.src[0], 0);
            wave.set_lanes(op.dst, 0, &values, wave.exec());
        };
    },
    missing! {
        0x0e v_cvt_off_f32_i4;
        0x37 v_screen_partition_4se_b32;
        0x48 v_fract_f16;
        0x49 v_sin_f16;
        0x4a v_cos_f16;
        0x4b v_exp_legacy_f32;
        0x4c v_log_legacy_f32;
        0x4d v_cvt_norm_i16_f16;
        0x4e v_cvt_norm_u16_f16;
        0x51 v_swap_b32;
    },
];

/// The exponent that goes with [`mantissa`]; 0 where there is none.
fn exponent(value: f64) -> i32 {
    if value == 0.0 || !value.is_finite() {
        0
    } else {
        float::split(value).1
    }
}

/// The mantissa of a finite value, in ½..1.
fn mantissa(value: f64) -> f64 {
    if value == 0.0 {
        value
    } else {
        float::split(value).0
    }
}

/// Copies one lane of the first operand to a scalar register.
pub(super) fn read_lane(wave: &mut Wave, op: &Instruction, lane: u32) {
    let value = wave.lanes(op.src[0], 0)[lane as usize & 63];
    if let Operand::Scalar(register) = op.dst {
        wave.scalars[usize::from(register)] = value;
    }
}
