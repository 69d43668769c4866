//! Float operations that the language has not, or not as the instruction set wants them.

use std::cmp::Ordering;

/// A 16-bit float, by its bits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct F16(pub(crate) u16);

impl F16 {
    /// The same value.
    pub(crate) fn to_f32(self) -> f32 {
        let (sign, exponent, fraction) = (
            u32::from(self.0 >> 15),
            u32::from(self.0 >> 10 & 0x1f),
            u32::from(self.0 & 0x3ff),
        );
        let magnitude = match exponent {
            // Subnormal: a multiple of 2^-24.
            0 => (fraction as f32 * 2f32.powi(-24)).to_bits(),
            0x1f => 0xff << 23 | fraction << 13,
            _ => (exponent + 112) << 23 | fraction << 13,
        };
        f32::from_bits(sign << 31 | magnitude)
    }

    pub(crate) fn to_f64(self) -> f64 {
        f64::from(self.to_f32())
    }

    /// The nearest value, ties to even.
    pub(crate) fn from_f32(value: f32) -> Self {
        Self::from_f64(f64::from(value))
    }

    /// The nearest value, ties to even.
    pub(crate) fn from_f64(value: f64) -> Self {
        Self::round(value, true)
    }

    /// The nearest value that is not larger in magnitude.
    pub(crate) fn truncate(value: f32) -> Self {
        Self::round(f64::from(value), false)
    }

    fn round(value: f64, nearest: bool) -> Self {
        let sign = u16::from(value.is_sign_negative()) << 15;
        let magnitude = value.abs();
        if value.is_nan() {
            // The top of the payload stays, and the NaN is quiet.
            return Self(sign | 0x7e00 | (value.to_bits() >> 42) as u16 & 0x3ff);
        }
        if magnitude.is_infinite() {
            return Self(sign | 0x7c00);
        }
        // In units of the last place: 2^-24 for subnormals, more for what is larger. The scaling is exact.
        let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).max(-14);
        let units = magnitude * 2f64.powi(10 - exponent);
        let units = if nearest {
            units.round_ties_even()
        } else {
            units.trunc()
        } as u32;
        // A carry out of the fraction goes to the exponent, as it should.
        let bits = ((exponent + 14) as u32) * 1024 + units;
        let limit = if nearest { 0x7c00 } else { 0x7bff };
        Self(sign | bits.min(limit) as u16)
    }
}

/// What the float instructions need of a type.
pub(crate) trait Float: Copy + PartialOrd {
    fn quiet(self) -> Self;
    fn nan(self) -> bool;
    fn negative(self) -> bool;
    fn class(self) -> u32;
}

macro_rules! float {
    ($($ty:ty: $bits:ident, $to:expr, $from:expr, $fraction:literal, $exponent:literal;)*) => {$(
        impl Float for $ty {
            fn quiet(self) -> Self {
                if self.nan() { $from($to(self) | 1 << ($fraction - 1)) } else { self }
            }

            fn nan(self) -> bool {
                $to(self) << 1 > ($exponent << $fraction) << 1
            }

            fn negative(self) -> bool {
                $to(self) >> ($bits::BITS - 1) != 0
            }

            fn class(self) -> u32 {
                let bits: $bits = $to(self);
                let (exponent, fraction) = (bits >> $fraction & $exponent, bits & ((1 << $fraction) - 1));
                // From negative to positive: infinity, normal, subnormal, zero.
                let outwards = match (exponent, fraction) {
                    ($exponent, 0) => 3,
                    ($exponent, _) => return if fraction >> ($fraction - 1) == 0 { 0 } else { 1 },
                    (0, 0) => 0,
                    (0, _) => 1,
                    _ => 2,
                };
                if self.negative() { 5 - outwards } else { 6 + outwards }
            }
        }
    )*};
}

float! {
    f32: u32, f32::to_bits, f32::from_bits, 23, 0xff;
    f64: u64, f64::to_bits, f64::from_bits, 52, 0x7ff;
    F16: u16, |value: F16| value.0, F16, 10, 0x1f;
}

impl PartialEq for F16 {
    fn eq(&self, other: &Self) -> bool {
        self.to_f32() == other.to_f32()
    }
}

impl PartialOrd for F16 {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        self.to_f32().partial_cmp(&other.to_f32())
    }
}

/// The smaller; a number rather than a NaN, -0 rather than +0.
pub(crate) fn min<T: Float>(a: T, b: T) -> T {
    match (a.nan(), b.nan()) {
        (true, true) => a.quiet(),
        (true, false) => b,
        (false, true) => a,
        _ if a < b => a,
        _ if b < a => b,
        _ => {
            if a.negative() {
                a
            } else {
                b
            }
        }
    }
}

/// The larger; a number rather than a NaN, +0 rather than -0.
pub(crate) fn max<T: Float>(a: T, b: T) -> T {
    match (a.nan(), b.nan()) {
        (true, true) => a.quiet(),
        (true, false) => b,
        (false, true) => a,
        _ if a > b => a,
        _ if b > a => b,
        _ => {
            if a.negative() {
                b
            } else {
                a
            }
        }
    }
}

/// The one in the middle; with a NaN, the smallest.
pub(crate) fn median<T: Float>(a: T, b: T, c: T) -> T {
    if a.nan() || b.nan() || c.nan() {
        return min(min(a, b), c);
    }
    max(min(a, b), min(max(a, b), c))
}

/// Bits of a class mask: signalling and quiet NaN, then from negative to positive infinity.
pub(crate) fn is_class<T: Float>(value: T, mask: u32) -> bool {
    mask >> value.class() & 1 != 0
}

/// Zero with the sign of a subnormal; for instructions that never see subnormals.
pub(crate) fn flush(value: f32) -> f32 {
    if value.is_subnormal() {
        0f32.copysign(value)
    } else {
        value
    }
}

/// Multiply and add with two roundings and without subnormals.
pub(crate) fn mad(a: f32, b: f32, c: f32) -> f32 {
    let product = flush(flush(a) * flush(b));
    flush(product + flush(c))
}

/// `value` times a power of two, rounded once.
pub(crate) fn scale(value: f64, power: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value.quiet();
    }
    let (mantissa, exponent) = split(value);
    let exponent = exponent.saturating_add(power);
    match exponent {
        1025.. => f64::INFINITY.copysign(value),
        // The mantissa is below 1, so one step down keeps the power in range.
        -1021.. => mantissa * 2.0 * power_of_two(exponent - 1),
        // The power is subnormal, and the product the only rounding.
        -1074.. => mantissa * power_of_two(exponent),
        _ => 0f64.copysign(value),
    }
}

/// Two to a power of -1074 to 1023.
fn power_of_two(power: i32) -> f64 {
    if power >= -1022 {
        f64::from_bits(((power + 1023) as u64) << 52)
    } else {
        f64::from_bits(1 << (power + 1074))
    }
}

/// Mantissa in ½..1 and exponent of a finite value that is not zero.
pub(crate) fn split(value: f64) -> (f64, i32) {
    let (value, bias) = if value.is_subnormal() {
        (value * power_of_two(64), 64)
    } else {
        (value, 0)
    };
    let bits = value.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32 - 1022 - bias;
    (f64::from_bits(bits & !(0x7ff << 52) | 1022 << 52), exponent)
}

/// The part of a value above its floor, kept below 1.
pub(crate) fn fraction32(value: f32) -> f32 {
    if value.is_finite() {
        (value - value.floor()).min(f32::from_bits(0x3f7f_ffff))
    } else {
        f32::NAN
    }
}

/// The part of a value above its floor, kept below 1.
pub(crate) fn fraction64(value: f64) -> f64 {
    if value.is_finite() {
        (value - value.floor()).min(f64::from_bits(0x3fef_ffff_ffff_ffff))
    } else {
        f64::NAN
    }
}

/// Sine, cosine of a number of turns. Beyond 256 turns the hardware gives up.
pub(crate) fn sine(turns: f32) -> f32 {
    if turns.abs() > 256.0 && turns.is_finite() {
        return 0.0;
    }
    let turns = f64::from(turns);
    (turns.fract() * std::f64::consts::TAU).sin() as f32
}

pub(crate) fn cosine(turns: f32) -> f32 {
    if turns.abs() > 256.0 && turns.is_finite() {
        return 1.0;
    }
    let turns = f64::from(turns);
    (turns.fract() * std::f64::consts::TAU).cos() as f32
}

/// The biased exponent of a float, as the division instructions compare it.
trait Exponent {
    fn exponent(self) -> i32;
}

impl Exponent for f32 {
    fn exponent(self) -> i32 {
        (self.to_bits() >> 23 & 0xff) as i32
    }
}

impl Exponent for f64 {
    fn exponent(self) -> i32 {
        (self.to_bits() >> 52 & 0x7ff) as i32
    }
}

/// Bits of a positive float divided by a power of two, rounded once to the nearest, ties to even. What was already
/// rounded off the float lies beyond it, before it, or is nothing: `error`.
macro_rules! scale_down {
    ($name:ident: $bits:ident) => {
        fn $name(bits: $bits, error: Ordering, fraction: u32, power: $bits) -> $bits {
            let exponent = bits >> fraction;
            if exponent > power {
                return bits - (power << fraction);
            }
            // The result is subnormal: the digits lose some of their last.
            let digits = bits & ((1 << fraction) - 1) | 1 << fraction;
            let lost = power - exponent + 1;
            if lost > $bits::from(fraction as u8) + 1 {
                return 0;
            }
            let (kept, rest, half) = (digits >> lost, digits & ((1 << lost) - 1), 1 << (lost - 1));
            let up =
                rest > half || rest == half && (error.is_gt() || error.is_eq() && kept & 1 != 0);
            kept + $bits::from(up)
        }
    };
}

scale_down!(down32: u32);
scale_down!(down64: u64);

/// The three instructions around a division by Newton's method. `scale` brings operand `value`, which is the
/// denominator or the numerator, into a range where the method is exact, and says whether the quotient is then off by
/// the scale; `fmas` is its last step and undoes the scale; `fixup` puts special values in place.
macro_rules! division {
    ($div_scale:ident $div_fmas:ident $div_fixup:ident: $ty:ty: $down:ident, $fraction:literal, $power:literal, $up:literal, $near_max:literal, $tiny:literal, $under:literal) => {
        pub(crate) fn $div_scale(value: $ty, denominator: $ty, numerator: $ty) -> ($ty, bool) {
            const UP: $ty = $up;
            let same = |other: $ty| value.to_bits() == other.to_bits();
            let reciprocal = 1.0 / denominator;
            let quotient = numerator / denominator;
            if numerator == 0.0 || denominator == 0.0 {
                (<$ty>::NAN, false)
            } else if numerator.exponent() - denominator.exponent() >= $near_max {
                (if same(denominator) { value * UP } else { value }, true)
            } else if denominator.is_subnormal() {
                (value * UP, false)
            } else if reciprocal.is_subnormal() && quotient.is_subnormal() {
                (if same(denominator) { value / UP } else { value }, true)
            } else if reciprocal.is_subnormal() {
                (value / UP, false)
            } else if quotient.is_subnormal() {
                (if same(numerator) { value * UP } else { value }, true)
            } else if numerator.exponent() <= $tiny {
                (value * UP, false)
            } else {
                (value, false)
            }
        }

        pub(crate) fn $div_fmas(a: $ty, b: $ty, c: $ty, scaled: bool) -> $ty {
            const UP: $ty = $up;
            let result = a.mul_add(b, c);
            if !scaled || !result.is_finite() || result == 0.0 {
                result
            } else if result.abs() >= 1.0 {
                result * UP
            } else {
                let error = a.mul_add(b, c - result);
                let away = if result > 0.0 { error } else { -error };
                <$ty>::from_bits($down(
                    result.abs().to_bits(),
                    away.partial_cmp(&0.0).unwrap_or(Ordering::Equal),
                    $fraction,
                    $power,
                ))
                .copysign(result)
            }
        }

        pub(crate) fn $div_fixup(quotient: $ty, denominator: $ty, numerator: $ty) -> $ty {
            let sign: $ty = if denominator.is_sign_negative() != numerator.is_sign_negative() {
                -1.0
            } else {
                1.0
            };
            if numerator.is_nan() {
                numerator.quiet()
            } else if denominator.is_nan() {
                denominator.quiet()
            } else if denominator == 0.0 && numerator == 0.0
                || denominator.is_infinite() && numerator.is_infinite()
            {
                -<$ty>::NAN
            } else if denominator == 0.0 || numerator.is_infinite() {
                <$ty>::INFINITY.copysign(sign)
            } else if denominator.is_infinite() || numerator == 0.0 {
                (0.0 as $ty).copysign(sign)
            } else if numerator.exponent() - denominator.exponent() < $under {
                (0.0 as $ty).copysign(sign)
            } else if quotient.is_nan() {
                // Operands that are numbers only lose their quotient by overflow on the way to it.
                <$ty>::INFINITY.copysign(sign)
            } else {
                quotient.copysign(sign)
            }
        }
    };
}

division!(div_scale32 div_fmas32 div_fixup32: f32: down32, 23, 64, 18446744073709551616.0, 96, 23, -150);
division!(div_scale64 div_fmas64 div_fixup64: f64: down64, 52, 128, 340282366920938463463374607431768211456.0, 768, 53, -1075);

/// 53 bits of 2/π for the reduction of a large angle: those that matter for the exponent of `value`, and the segment
/// after them that `segment` names.
pub(crate) fn two_over_pi(value: f64, segment: u32) -> f64 {
    let exponent = value.exponent();
    let mut shift = (segment & 31) * 53;
    if exponent > 1077 {
        shift += (exponent - 1077) as u32;
    }
    let bits = (0..53).fold(0u64, |bits, i| bits << 1 | bit_of_two_over_pi(shift + i));
    let power = -53 - shift as i32 + if exponent >= 1968 { 128 } else { 0 };
    scale(bits as f64, power)
}

/// A bit of the fraction of 2/π, from the most significant; 0 after the last that the hardware has.
fn bit_of_two_over_pi(i: u32) -> u64 {
    const BITS: u32 = 1201;
    if i < BITS {
        TWO_OVER_PI[(i / 64) as usize] >> (63 - i % 64) & 1
    } else {
        0
    }
}

/// The fraction of 2/π.
const TWO_OVER_PI: [u64; 19] = [
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_6bab,
];
