//! Vector instructions with two operands. A third one is a carry, the result's old value or a literal.

use crate::isa::F16;
use crate::isa::float::{flush, mad, max, min};
use crate::isa::row::{Row, lanes, missing};
use crate::lanes::{Bits, Clamp, Keep, Literal};

pub(super) const VOP2: &[&[Row]] = &[
    lanes! { Valu:
        0x00 v_cndmask_b32(a: Bits<f32>, b: Bits<f32>, choose_b: bool) -> u32 = if choose_b { b.0.to_bits() } else { a.0.to_bits() };
        0x01 v_add_f32(a: f32, b: f32) -> f32 = a + b;
        0x02 v_sub_f32(a: f32, b: f32) -> f32 = a - b;
        0x03 v_subrev_f32(a: f32, b: f32) -> f32 = b - a;
        0x05 v_mul_f32(a: f32, b: f32) -> f32 = a * b;
        0x06 v_mul_i32_i24(a: i32, b: i32) -> i32 = low24(a).wrapping_mul(low24(b));
        0x07 v_mul_hi_i32_i24(a: i32, b: i32) -> i32 = ((i64::from(low24(a)) * i64::from(low24(b))) >> 32) as i32;
        0x08 v_mul_u32_u24(a: u32, b: u32) -> u32 = (a & 0xff_ffff).wrapping_mul(b & 0xff_ffff);
        0x09 v_mul_hi_u32_u24(a: u32, b: u32) -> u32 = ((u64::from(a & 0xff_ffff) * u64::from(b & 0xff_ffff)) >> 32) as u32;
        0x0a v_min_f32(a: f32, b: f32) -> f32 = min(a, b);
        0x0b v_max_f32(a: f32, b: f32) -> f32 = max(a, b);
        0x0c v_min_i32(a: i32, b: i32) -> i32 = a.min(b);
        0x0d v_max_i32(a: i32, b: i32) -> i32 = a.max(b);
        0x0e v_min_u32(a: u32, b: u32) -> u32 = a.min(b);
        0x0f v_max_u32(a: u32, b: u32) -> u32 = a.max(b);
        0x10 v_lshrrev_b32(a: u32, b: u32) -> u32 = b >> (a & 31);
        0x11 v_ashrrev_i32(a: u32, b: i32) -> i32 = b >> (a & 31);
        0x12 v_lshlrev_b32(a: u32, b: u32) -> u32 = b << (a & 31);
        0x13 v_and_b32(a: u32, b: u32) -> u32 = a & b;
        0x14 v_or_b32(a: u32, b: u32) -> u32 = a | b;
        0x15 v_xor_b32(a: u32, b: u32) -> u32 = a ^ b;
        0x16 v_mac_f32(a: f32, b: f32, old: f32) -> f32 = mad(a, b, old);
        0x17 v_madmk_f32(a: f32, k: Literal, b: f32) -> f32 = mad(a, k.0, b);
        0x18 v_madak_f32(a: f32, b: f32, k: Literal) -> f32 = mad(a, b, k.0);
        0x19 v_add_co_u32(a: u32, b: u32) -> (u32, bool) = a.overflowing_add(b);
        0x1a v_sub_co_u32(a: u32, b: u32) -> (u32, bool) = a.overflowing_sub(b);
        0x1b v_subrev_co_u32(a: u32, b: u32) -> (u32, bool) = b.overflowing_sub(a);
        0x1c v_addc_co_u32(a: u32, b: u32, carry: bool) -> (u32, bool) = {
            let sum = u64::from(a) + u64::from(b) + u64::from(carry);
            (sum as u32, sum >> 32 != 0)
        };
        0x1d v_subb_co_u32(a: u32, b: u32, borrow: bool) -> (u32, bool) = subtract(a, b, borrow);
        0x1e v_subbrev_co_u32(a: u32, b: u32, borrow: bool) -> (u32, bool) = subtract(b, a, borrow);
        0x1f v_add_f16(a: F16, b: F16) -> F16 = F16::from_f32(a.to_f32() + b.to_f32());
        0x20 v_sub_f16(a: F16, b: F16) -> F16 = F16::from_f32(a.to_f32() - b.to_f32());
        0x21 v_subrev_f16(a: F16, b: F16) -> F16 = F16::from_f32(b.to_f32() - a.to_f32());
        0x22 v_mul_f16(a: F16, b: F16) -> F16 = F16::from_f32(a.to_f32() * b.to_f32());
        0x23 v_mac_f16(a: F16, b: F16, old: F16) -> Keep<F16> = {
            let product = F16::from_f32(a.to_f32() * b.to_f32());
            Keep(F16::from_f32(product.to_f32() + old.to_f32()))
        };
        0x26 v_add_u16(a: u16, b: u16, clamp: Clamp) -> u16 = if clamp.0 { a.saturating_add(b) } else { a.wrapping_add(b) };
        0x27 v_sub_u16(a: u16, b: u16, clamp: Clamp) -> u16 = if clamp.0 { a.saturating_sub(b) } else { a.wrapping_sub(b) };
        0x28 v_subrev_u16(a: u16, b: u16, clamp: Clamp) -> u16 = if clamp.0 { b.saturating_sub(a) } else { b.wrapping_sub(a) };
        0x29 v_mul_lo_u16(a: u16, b: u16) -> u16 = a.wrapping_mul(b);
        0x2a v_lshlrev_b16(a: u16, b: u16) -> u16 = b << (a & 15);
        0x2b v_lshrrev_b16(a: u16, b: u16) -> u16 = b >> (a & 15);
        0x2c v_ashrrev_i16(a: u16, b: i16) -> i16 = b >> (a & 15);
        0x2d v_max_f16(a: F16, b: F16) -> F16 = max(a, b);
        0x2e v_min_f16(a: F16, b: F16) -> F16 = min(a, b);
        0x2f v_max_u16(a: u16, b: u16) -> u16 = a.max(b);
        0x30 v_max_i16(a: i16, b: i16) -> i16 = a.max(b);
        0x31 v_min_u16(a: u16, b: u16) -> u16 = a.min(b);
        0x32 v_min_i16(a: i16, b: i16) -> i16 = a.min(b);
        0x33 v_ldexp_f16(a: F16, b: i16) -> F16 = F16::from_f64(a.to_f64() * 2f64.powi(i32::from(b.clamp(-100, 100))));
        0x34 v_add_u32(a: u32, b: u32, clamp: Clamp) -> u32 = if clamp.0 { a.saturating_add(b) } else { a.wrapping_add(b) };
        0x35 v_sub_u32(a: u32, b: u32, clamp: Clamp) -> u32 = if clamp.0 { a.saturating_sub(b) } else { a.wrapping_sub(b) };
        0x36 v_subrev_u32(a: u32, b: u32, clamp: Clamp) -> u32 = if clamp.0 { b.saturating_sub(a) } else { b.wrapping_sub(a) };
        0x3b v_fmac_f32(a: f32, b: f32, old: f32) -> f32 = a.mul_add(b, old);
        0x3d v_xnor_b32(a: u32, b: u32) -> u32 = !(a ^ b);
    },
    lanes! { SlowValu:
        0x04 v_fmac_f64(a: f64, b: f64, old: f64) -> f64 = a.mul_add(b, old);
    },
    missing! {
        0x24 v_madmk_f16;
        0x25 v_madak_f16;
        0x37 v_dot2c_f32_f16;
        0x38 v_dot2c_i32_i16;
        0x39 v_dot4c_i32_i8;
        0x3a v_dot8c_i32_i4;
        0x3c v_pk_fmac_f16;
    },
];

/// The low 24 bits, sign-extended.
pub(super) fn low24(value: i32) -> i32 {
    value << 8 >> 8
}

fn subtract(a: u32, b: u32, borrow: bool) -> (u32, bool) {
    (
        a.wrapping_sub(b).wrapping_sub(u32::from(borrow)),
        u64::from(a) < u64::from(b) + u64::from(borrow),
    )
}

/// The legacy product: zero times anything is zero.
pub(super) fn legacy_mad(a: f32, b: f32, c: f32) -> f32 {
    if flush(a) == 0.0 || flush(b) == 0.0 {
        flush(c)
    } else {
        mad(a, b, c)
    }
}
