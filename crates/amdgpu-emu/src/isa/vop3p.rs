//! Packed and mixed-precision vector instructions, and moves of accumulation registers.

use crate::isa::F16;
use crate::isa::Instruction;
use crate::isa::float::{max, min};
use crate::isa::row::{Row, lanes, missing, rows};
use crate::lanes::{Clamp, Keep, KeepLow, Mix};
use crate::wave::Wave;

pub(super) const VOP3P: &[&[Row]] = &[
    lanes! { Valu:
        0x00 v_pk_mad_i16(a: [i16; 2], b: [i16; 2], c: [i16; 2]) -> [i16; 2] = each(|i| a[i].wrapping_mul(b[i]).wrapping_add(c[i]));
        0x01 v_pk_mul_lo_u16(a: [u16; 2], b: [u16; 2]) -> [u16; 2] = each(|i| a[i].wrapping_mul(b[i]));
        0x02 v_pk_add_i16(a: [i16; 2], b: [i16; 2], clamp: Clamp) -> [i16; 2] = each(|i| {
            if clamp.0 { a[i].saturating_add(b[i]) } else { a[i].wrapping_add(b[i]) }
        });
        0x03 v_pk_sub_i16(a: [i16; 2], b: [i16; 2], clamp: Clamp) -> [i16; 2] = each(|i| {
            if clamp.0 { a[i].saturating_sub(b[i]) } else { a[i].wrapping_sub(b[i]) }
        });
        0x04 v_pk_lshlrev_b16(a: [u16; 2], b: [u16; 2]) -> [u16; 2] = each(|i| b[i] << (a[i] & 15));
        0x05 v_pk_lshrrev_b16(a: [u16; 2], b: [u16; 2]) -> [u16; 2] = each(|i| b[i] >> (a[i] & 15));
        0x06 v_pk_ashrrev_i16(a: [i16; 2], b: [i16; 2]) -> [i16; 2] = each(|i| b[i] >> (a[i] & 15));
        0x07 v_pk_max_i16(a: [i16; 2], b: [i16; 2]) -> [i16; 2] = each(|i| a[i].max(b[i]));
        0x08 v_pk_min_i16(a: [i16; 2], b: [i16; 2]) -> [i16; 2] = each(|i| a[i].min(b[i]));
        0x09 v_pk_mad_u16(a: [u16; 2], b: [u16; 2], c: [u16; 2]) -> [u16; 2] = each(|i| a[i].wrapping_mul(b[i]).wrapping_add(c[i]));
        0x0a v_pk_add_u16(a: [u16; 2], b: [u16; 2], clamp: Clamp) -> [u16; 2] = each(|i| {
            if clamp.0 { a[i].saturating_add(b[i]) } else { a[i].wrapping_add(b[i]) }
        });
        0x0b v_pk_sub_u16(a: [u16; 2], b: [u16; 2], clamp: Clamp) -> [u16; 2] = each(|i| {
            if clamp.0 { a[i].saturating_sub(b[i]) } else { a[i].wrapping_sub(b[i]) }
        });
        0x0c v_pk_max_u16(a: [u16; 2], b: [u16; 2]) -> [u16; 2] = each(|i| a[i].max(b[i]));
        0x0d v_pk_min_u16(a: [u16; 2], b: [u16; 2]) -> [u16; 2] = each(|i| a[i].min(b[i]));
        0x0e v_pk_fma_f16(a: [F16; 2], b: [F16; 2], c: [F16; 2]) -> [F16; 2] = each(|i| {
            F16::from_f64(a[i].to_f64().mul_add(b[i].to_f64(), c[i].to_f64()))
        });
        0x0f v_pk_add_f16(a: [F16; 2], b: [F16; 2]) -> [F16; 2] = each(|i| F16::from_f32(a[i].to_f32() + b[i].to_f32()));
        0x10 v_pk_mul_f16(a: [F16; 2], b: [F16; 2]) -> [F16; 2] = each(|i| F16::from_f32(a[i].to_f32() * b[i].to_f32()));
        0x11 v_pk_min_f16(a: [F16; 2], b: [F16; 2]) -> [F16; 2] = each(|i| min(a[i], b[i]));
        0x12 v_pk_max_f16(a: [F16; 2], b: [F16; 2]) -> [F16; 2] = each(|i| max(a[i], b[i]));
        0x20 v_fma_mix_f32(a: Mix, b: Mix, c: Mix) -> f32 = a.0.mul_add(b.0, c.0);
        0x21 v_fma_mixlo_f16(a: Mix, b: Mix, c: Mix) -> Keep<F16> = Keep(half_fma(a, b, c));
        0x22 v_fma_mixhi_f16(a: Mix, b: Mix, c: Mix) -> KeepLow<F16> = KeepLow(half_fma(a, b, c));
        0x30 v_pk_fma_f32(a: [f32; 2], b: [f32; 2], c: [f32; 2]) -> [f32; 2] = each(|i| a[i].mul_add(b[i], c[i]));
        0x31 v_pk_mul_f32(a: [f32; 2], b: [f32; 2]) -> [f32; 2] = each(|i| a[i] * b[i]);
        0x32 v_pk_add_f32(a: [f32; 2], b: [f32; 2]) -> [f32; 2] = each(|i| a[i] + b[i]);
    },
    rows! { Registers:
        0x33 v_pk_mov_b32: Valu PairU32 [PairU32, PairU32] = move_pair;
        0x58 v_accvgpr_read_b32: Valu U32 [Accum] = move_register;
        0x59 v_accvgpr_write_b32: Valu Accum [U32] = move_register;
    },
    missing! {
        0x23 v_dot2_f32_f16;
        0x26 v_dot2_i32_i16;
        0x27 v_dot2_u32_u16;
        0x28 v_dot4_i32_i8;
        0x29 v_dot4_u32_u8;
        0x2a v_dot8_i32_i4;
        0x2b v_dot8_u32_u4;
        0x40 v_mfma_f32_32x32x1f32;
        0x41 v_mfma_f32_16x16x1f32;
        0x42 v_mfma_f32_4x4x1f32;
        0x44 v_mfma_f32_32x32x2f32;
        0x45 v_mfma_f32_16x16x4f32;
        0x48 v_mfma_f32_32x32x4f16;
        0x49 v_mfma_f32_16x16x4f16;
        0x4a v_mfma_f32_4x4x4f16;
        0x4c v_mfma_f32_32x32x8f16;
        0x4d v_mfma_f32_16x16x16f16;
        0x50 v_mfma_i32_32x32x4i8;
        0x51 v_mfma_i32_16x16x4i8;
        0x52 v_mfma_i32_4x4x4i8;
        0x54 v_mfma_i32_32x32x8i8;
        0x55 v_mfma_i32_16x16x16i8;
        0x63 v_mfma_f32_32x32x4bf16_1k;
        0x64 v_mfma_f32_16x16x4bf16_1k;
        0x65 v_mfma_f32_4x4x4bf16_1k;
        0x66 v_mfma_f32_32x32x8bf16_1k;
        0x67 v_mfma_f32_16x16x16bf16_1k;
        0x68 v_mfma_f32_32x32x2bf16;
        0x69 v_mfma_f32_16x16x2bf16;
        0x6b v_mfma_f32_4x4x2bf16;
        0x6c v_mfma_f32_32x32x4bf16;
        0x6d v_mfma_f32_16x16x8bf16;
        0x6e v_mfma_f64_16x16x4f64;
        0x6f v_mfma_f64_4x4x4f64;
    },
];

/// An operation on the low and the high half.
fn each<T>(f: impl Fn(usize) -> T) -> [T; 2] {
    [f(0), f(1)]
}

/// A fused multiply-add that is rounded to 16 bits; only the sum of numbers far apart is rounded to 53 bits before.
fn half_fma(a: Mix, b: Mix, c: Mix) -> F16 {
    F16::from_f64(f64::from(a.0).mul_add(f64::from(b.0), f64::from(c.0)))
}

/// The low half comes from the first operand, the high half from the second; `op_sel` says which half of each.
fn move_pair(wave: &mut Wave, op: &Instruction) {
    let half = |n: usize| wave.lanes(op.src[n], u16::from(op.modifiers.op_sel >> n & 1));
    let (low, high) = (half(0), half(1));
    let exec = wave.exec();
    wave.set_lanes(op.dst, 0, &low, exec);
    wave.set_lanes(op.dst, 1, &high, exec);
}

fn move_register(wave: &mut Wave, op: &Instruction) {
    let values = wave.lanes(op.src[0], 0);
    let exec = wave.exec();
    wave.set_lanes(op.dst, 0, &values, exec);
}
