//! Float instructions: operands as exact 64-bit floats, results rounded once to their type.
//!
//! A sum, product, quotient or root of two 32-bit floats that is first rounded to 64 bits and then to 32 is rounded
//! correctly, because 64-bit floats have more than twice the digits; the same holds for 16-bit floats.

use proptest::prelude::*;

use super::machine::{MASK_IN, MASK_OUT, Machine, Number, RESULT, SOURCES, lanes, long};
use crate::descriptor::FloatMode;
use crate::isa::F16;

type Statement = (&'static str, &'static str, fn(f64, f64, f64) -> f64);

fn smaller(a: f64, b: f64) -> f64 {
    match (a.is_nan(), b.is_nan()) {
        (true, _) => b,
        (_, true) => a,
        _ if a == b && a.is_sign_negative() => a,
        _ if a == b => b,
        _ => a.min(b),
    }
}

fn larger(a: f64, b: f64) -> f64 {
    -smaller(-a, -b)
}

fn middle(a: f64, b: f64, c: f64) -> f64 {
    if a.is_nan() || b.is_nan() || c.is_nan() {
        return smaller(smaller(a, b), c);
    }
    let mut all = [a, b, c];
    all.sort_by(f64::total_cmp);
    all[1]
}

/// 32 bits, with zero in place of subnormals.
fn flushed(value: f64) -> f64 {
    if (value as f32).is_subnormal() {
        0f64.copysign(value)
    } else {
        f64::from(value as f32)
    }
}

fn mad(a: f64, b: f64, c: f64) -> f64 {
    flushed(flushed(flushed(a) * flushed(b)) + flushed(c))
}

/// The largest value below 1, by the digits of the type.
fn below_one(digits: i32) -> f64 {
    1.0 - 2f64.powi(-digits)
}

fn fraction(a: f64, digits: i32) -> f64 {
    if a.is_finite() {
        (a - a.floor()).min(below_one(digits))
    } else {
        f64::NAN
    }
}

/// Mantissa in ½..1 and exponent, by halving and doubling.
fn split(a: f64) -> (f64, f64) {
    let (mut mantissa, mut exponent) = (a, 0.0);
    if a == 0.0 || !a.is_finite() {
        return (a, 0.0);
    }
    while mantissa.abs() >= 1.0 {
        (mantissa, exponent) = (mantissa / 2.0, exponent + 1.0);
    }
    while mantissa.abs() < 0.5 {
        (mantissa, exponent) = (mantissa * 2.0, exponent - 1.0);
    }
    (mantissa, exponent)
}

const STATEMENTS: &[Statement] = &[
    ("v_cvt_f32_i32", "f32 i32", |a, _, _| a),
    ("v_cvt_f32_u32", "f32 u32", |a, _, _| a),
    ("v_cvt_u32_f32", "u32 f32", |a, _, _| a),
    ("v_cvt_i32_f32", "i32 f32", |a, _, _| a),
    ("v_cvt_f16_f32", "f16 f32", |a, _, _| a),
    ("v_cvt_f32_f16", "f32 f16", |a, _, _| a),
    ("v_cvt_rpi_i32_f32", "i32 f32", |a, _, _| (a + 0.5).floor()),
    ("v_cvt_flr_i32_f32", "i32 f32", |a, _, _| a.floor()),
    ("v_cvt_f32_ubyte0", "f32 u32", |a, _, _| a % 256.0),
    ("v_cvt_f32_ubyte1", "f32 u32", |a, _, _| {
        (a / 256.0).floor() % 256.0
    }),
    ("v_cvt_f32_ubyte2", "f32 u32", |a, _, _| {
        (a / 65536.0).floor() % 256.0
    }),
    ("v_cvt_f32_ubyte3", "f32 u32", |a, _, _| {
        (a / 16777216.0).floor()
    }),
    ("v_fract_f32", "f32 f32", |a, _, _| fraction(a, 24)),
    ("v_trunc_f32", "f32 f32", |a, _, _| {
        if a < 0.0 { a.ceil() } else { a.floor() }
    }),
    ("v_ceil_f32", "f32 f32", |a, _, _| -(-a).floor()),
    ("v_rndne_f32", "f32 f32", |a, _, _| a.round_ties_even()),
    ("v_floor_f32", "f32 f32", |a, _, _| -(-a).ceil()),
    ("v_frexp_exp_i32_f32", "i32 f32", |a, _, _| split(a).1),
    ("v_frexp_mant_f32", "f32 f32", |a, _, _| split(a).0),
    ("v_cvt_f16_u16", "f16 u16", |a, _, _| a),
    ("v_cvt_f16_i16", "f16 i16", |a, _, _| a),
    ("v_cvt_u16_f16", "u16 f16", |a, _, _| a),
    ("v_cvt_i16_f16", "i16 f16", |a, _, _| a),
    ("v_frexp_mant_f16", "f16 f16", |a, _, _| split(a).0),
    ("v_frexp_exp_i16_f16", "i16 f16", |a, _, _| split(a).1),
    ("v_floor_f16", "f16 f16", |a, _, _| a.floor()),
    ("v_ceil_f16", "f16 f16", |a, _, _| a.ceil()),
    ("v_trunc_f16", "f16 f16", |a, _, _| {
        if a < 0.0 { a.ceil() } else { a.floor() }
    }),
    ("v_rndne_f16", "f16 f16", |a, _, _| a.round_ties_even()),
    ("v_cvt_i32_f64", "i32 f64", |a, _, _| a),
    ("v_cvt_f64_i32", "f64 i32", |a, _, _| a),
    ("v_cvt_f32_f64", "f32 f64", |a, _, _| a),
    ("v_cvt_f64_f32", "f64 f32", |a, _, _| a),
    ("v_cvt_u32_f64", "u32 f64", |a, _, _| a),
    ("v_cvt_f64_u32", "f64 u32", |a, _, _| a),
    ("v_trunc_f64", "f64 f64", |a, _, _| {
        if a < 0.0 { a.ceil() } else { a.floor() }
    }),
    ("v_ceil_f64", "f64 f64", |a, _, _| -(-a).floor()),
    ("v_rndne_f64", "f64 f64", |a, _, _| a.round_ties_even()),
    ("v_floor_f64", "f64 f64", |a, _, _| -(-a).ceil()),
    ("v_exp_f32", "f32 f32", |a, _, _| 2f64.powf(a)),
    ("v_log_f32", "f32 f32", |a, _, _| a.log2()),
    ("v_rcp_f32", "f32 f32", |a, _, _| 1.0 / a),
    ("v_rcp_iflag_f32", "f32 f32", |a, _, _| 1.0 / a),
    ("v_rsq_f32", "f32 f32", |a, _, _| 1.0 / a.sqrt()),
    ("v_rcp_f64", "f64 f64", |a, _, _| 1.0 / a),
    ("v_rsq_f64", "f64 f64", |a, _, _| 1.0 / a.sqrt()),
    ("v_sqrt_f32", "f32 f32", |a, _, _| a.sqrt()),
    ("v_sqrt_f64", "f64 f64", |a, _, _| a.sqrt()),
    ("v_frexp_exp_i32_f64", "i32 f64", |a, _, _| split(a).1),
    ("v_frexp_mant_f64", "f64 f64", |a, _, _| split(a).0),
    ("v_fract_f64", "f64 f64", |a, _, _| fraction(a, 53)),
    ("v_rcp_f16", "f16 f16", |a, _, _| 1.0 / a),
    ("v_sqrt_f16", "f16 f16", |a, _, _| a.sqrt()),
    ("v_rsq_f16", "f16 f16", |a, _, _| 1.0 / a.sqrt()),
    ("v_log_f16", "f16 f16", |a, _, _| a.log2()),
    ("v_exp_f16", "f16 f16", |a, _, _| 2f64.powf(a)),
    ("v_add_f32", "f32 f32 f32", |a, b, _| a + b),
    ("v_sub_f32", "f32 f32 f32", |a, b, _| a - b),
    ("v_subrev_f32", "f32 f32 f32", |a, b, _| b - a),
    ("v_mul_f32", "f32 f32 f32", |a, b, _| a * b),
    ("v_min_f32", "f32 f32 f32", |a, b, _| smaller(a, b)),
    ("v_max_f32", "f32 f32 f32", |a, b, _| larger(a, b)),
    ("v_add_f16", "f16 f16 f16", |a, b, _| a + b),
    ("v_sub_f16", "f16 f16 f16", |a, b, _| a - b),
    ("v_subrev_f16", "f16 f16 f16", |a, b, _| b - a),
    ("v_mul_f16", "f16 f16 f16", |a, b, _| a * b),
    ("v_max_f16", "f16 f16 f16", |a, b, _| larger(a, b)),
    ("v_min_f16", "f16 f16 f16", |a, b, _| smaller(a, b)),
    ("v_ldexp_f16", "f16 f16 i16", |a, b, _| {
        a * 2f64.powf(b.clamp(-100.0, 100.0))
    }),
    ("v_mad_legacy_f32", "f32 f32 f32 f32", |a, b, c| {
        if flushed(a) == 0.0 || flushed(b) == 0.0 {
            flushed(c)
        } else {
            mad(a, b, c)
        }
    }),
    ("v_mad_f32", "f32 f32 f32 f32", mad),
    ("v_min3_f32", "f32 f32 f32 f32", |a, b, c| {
        smaller(smaller(a, b), c)
    }),
    ("v_max3_f32", "f32 f32 f32 f32", |a, b, c| {
        larger(larger(a, b), c)
    }),
    ("v_med3_f32", "f32 f32 f32 f32", middle),
    ("v_min3_f16", "f16 f16 f16 f16", |a, b, c| {
        smaller(smaller(a, b), c)
    }),
    ("v_max3_f16", "f16 f16 f16 f16", |a, b, c| {
        larger(larger(a, b), c)
    }),
    ("v_med3_f16", "f16 f16 f16 f16", middle),
    ("v_fma_f16", "f16 f16 f16 f16", |a, b, c| a.mul_add(b, c)),
    ("v_ldexp_f32", "f32 f32 i32", |a, b, _| {
        a * 2f64.powf(b.clamp(-600.0, 600.0))
    }),
    ("v_fma_f64", "f64 f64 f64 f64", f64::mul_add),
    ("v_add_f64", "f64 f64 f64", |a, b, _| a + b),
    ("v_mul_f64", "f64 f64 f64", |a, b, _| a * b),
    ("v_min_f64", "f64 f64 f64", |a, b, _| smaller(a, b)),
    ("v_max_f64", "f64 f64 f64", |a, b, _| larger(a, b)),
    ("v_fma_mix_f32", "f32 f32 f32 f32", |a, b, c| {
        f64::from((a as f32).mul_add(b as f32, c as f32))
    }),
    ("v_fma_f32", "f32 f32 f32 f32", |a, b, c| {
        f64::from((a as f32).mul_add(b as f32, c as f32))
    }),
];

/// The same in both halves: of a register, of a pair of registers.
const PACKED: &[Statement] = &[
    ("v_pk_fma_f16", "f16 f16 f16 f16", |a, b, c| a.mul_add(b, c)),
    ("v_pk_add_f16", "f16 f16 f16", |a, b, _| a + b),
    ("v_pk_mul_f16", "f16 f16 f16", |a, b, _| a * b),
    ("v_pk_min_f16", "f16 f16 f16", |a, b, _| smaller(a, b)),
    ("v_pk_max_f16", "f16 f16 f16", |a, b, _| larger(a, b)),
    ("v_pk_fma_f32", "f32 f32 f32 f32", |a, b, c| {
        f64::from((a as f32).mul_add(b as f32, c as f32))
    }),
    ("v_pk_mul_f32", "f32 f32 f32", |a, b, _| a * b),
    ("v_pk_add_f32", "f32 f32 f32", |a, b, _| a + b),
];

const COMPARE: &[(&str, fn(f64, f64) -> bool)] = &[
    ("f", |_, _| false),
    ("lt", |a, b| a < b),
    ("eq", |a, b| a == b),
    ("le", |a, b| a < b || a == b),
    ("gt", |a, b| b < a),
    ("lg", |a, b| a < b || b < a),
    ("ge", |a, b| b < a || a == b),
    ("o", |a, b| !a.is_nan() && !b.is_nan()),
    ("u", |a, b| a.is_nan() || b.is_nan()),
    ("nge", |a, b| a < b || a.is_nan() || b.is_nan()),
    ("nlg", |a, b| a == b || a.is_nan() || b.is_nan()),
    ("ngt", |a, b| a <= b || a.is_nan() || b.is_nan()),
    ("nle", |a, b| a > b || a.is_nan() || b.is_nan()),
    ("neq", |a, b| a < b || b < a || a.is_nan() || b.is_nan()),
    ("nlt", |a, b| a >= b || a.is_nan() || b.is_nan()),
    ("tru", |_, _| true),
];

/// What has a test of its own below.
const SINGLE: [&str; 25] = [
    "v_sin_f32",
    "v_cos_f32",
    "v_mac_f32",
    "v_madmk_f32",
    "v_madak_f32",
    "v_mac_f16",
    "v_fmac_f32",
    "v_fmac_f64",
    "v_ldexp_f64",
    "v_div_scale_f32",
    "v_div_fmas_f32",
    "v_div_fixup_f32",
    "v_div_scale_f64",
    "v_div_fmas_f64",
    "v_div_fixup_f64",
    "v_trig_preop_f64",
    "v_cvt_pkrtz_f16_f32",
    "v_pack_b32_f16",
    "v_fma_mixlo_f16",
    "v_fma_mixhi_f16",
    "v_cmp_class_f32",
    "v_cmp_class_f64",
    "v_cmp_class_f16",
    "v_cmpx_class_f32",
    "v_cmpx_class_f64",
];

pub(super) fn stated() -> Vec<String> {
    let named = STATEMENTS
        .iter()
        .chain(PACKED)
        .map(|(name, ..)| (*name).to_owned());
    let compare = COMPARE.iter().flat_map(|(middle, _)| {
        ["f16", "f32", "f64"]
            .into_iter()
            .flat_map(move |ty| ["cmp", "cmpx"].map(|cmp| format!("v_{cmp}_{middle}_{ty}")))
    });
    let single = SINGLE
        .map(str::to_owned)
        .into_iter()
        .chain(["v_cmpx_class_f16".to_owned()]);
    named.chain(compare).chain(single).collect()
}

/// The value of bits.
fn value(ty: Number, bits: u64) -> f64 {
    match ty {
        Number::Float(16) => F16(bits as u16).to_f64(),
        Number::Float(32) => f32::from_bits(bits as u32).into(),
        Number::Float(_) => f64::from_bits(bits),
        _ => ty.integer(bits.into()) as f64,
    }
}

/// The bits of a value, rounded to the type; `None` for any NaN.
fn rounded(ty: Number, value: f64) -> Option<u64> {
    Some(match ty {
        Number::Float(_) if value.is_nan() => return None,
        Number::Float(16) => half(value).into(),
        Number::Float(32) => (value as f32).to_bits().into(),
        Number::Float(_) => value.to_bits(),
        Number::Unsigned(bits) => value.clamp(0.0, 2f64.powi(bits as i32) - 1.0) as u64,
        Number::Signed(bits) => {
            let limit = 2f64.powi(bits as i32 - 1);
            ty.cut(value.clamp(-limit, limit - 1.0) as i128 as u128) as u64
        }
    })
}

/// The nearest 16-bit float, found by looking at all of them: ties go to the one with the even last digit.
fn half(value: f64) -> u16 {
    // Infinity is as far from the largest as another step would be.
    let number = |bits: u16| {
        if bits >= 0x7c00 {
            65536.0
        } else {
            F16(bits).to_f64()
        }
    };
    let numbers: Vec<u16> = (0..=0x7c00).collect();
    let below = numbers.partition_point(|&bits| number(bits) <= value.abs());
    let low = below.saturating_sub(1) as u16;
    let high = (low + 1).min(0x7c00);
    let (down, up) = (value.abs() - number(low), number(high) - value.abs());
    let nearest = if low == 0x7c00 || down < up || down == up && low.is_multiple_of(2) {
        low
    } else {
        high
    };
    nearest | if value.is_sign_negative() { 0x8000 } else { 0 }
}

/// Whether bits are NaN, or those expected.
fn same(ty: Number, bits: u64, expected: Option<u64>) -> bool {
    match expected {
        None => value(ty, bits).is_nan(),
        Some(expected) => bits == expected,
    }
}

fn types(text: &str) -> (Number, Vec<Number>) {
    let mut types = text.split(' ').map(Number::parse);
    (types.next().expect("a result"), types.collect())
}

fn place(machine: &mut Machine, types: &[Number], values: &[Vec<u64>]) {
    for (n, ty) in types.iter().enumerate() {
        for lane in 0..64 {
            machine.set_vector(SOURCES[n], lane, ty.dwords(), values[n][lane].into());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn statements(values in [lanes(), lanes(), lanes()]) {
        for &(name, text, expected) in STATEMENTS {
            let (result, operands) = types(text);
            let mut machine = Machine::new();
            place(&mut machine, &operands, &values);
            let mut words = long(name);
            if name == "v_fma_mix_f32" {
                // All operands 32 bits wide.
                words = [words[0] & !0x4000, words[1] & !(3 << 27)];
            }
            machine.run(words);
            for lane in 0..64 {
                let operand = |n: usize| operands.get(n).map_or(0.0, |ty| value(*ty, values[n][lane]));
                let [a, b, c] = [operand(0), operand(1), operand(2)];
                let got = result.cut(machine.vector(RESULT, lane, result.dwords())) as u64;
                let expected = rounded(result, expected(a, b, c));
                prop_assert!(same(result, got, expected), "{name} of {a:e} {b:e} {c:e}: {got:x}, not {expected:x?}");
            }
        }
    }

    #[test]
    fn packed(values in [lanes(), lanes(), lanes()]) {
        for &(name, text, expected) in PACKED {
            let (result, operands) = types(text);
            let mut machine = Machine::new();
            let width = 2 * result.bits();
            place(&mut machine, &vec![Number::Unsigned(width); operands.len()], &values);
            machine.run(long(name));
            for (lane, shift) in (0..64).flat_map(|lane| [(lane, 0), (lane, result.bits())]) {
                let operand = |n: usize| operands.get(n).map_or(0.0, |ty| value(*ty, values[n][lane] >> shift));
                let [a, b, c] = [operand(0), operand(1), operand(2)];
                let got = result.cut(machine.vector(RESULT, lane, 2) >> shift) as u64;
                let expected = rounded(result, expected(a, b, c));
                prop_assert!(same(result, got, expected), "{name} of {a:e} {b:e} {c:e}: {got:x}, not {expected:x?}");
            }
        }
    }

    #[test]
    fn compare(values in [lanes(), lanes()], exec in any::<u64>()) {
        for ((middle, expected), ty) in COMPARE.iter().flat_map(|compare| ["f16", "f32", "f64"].map(|ty| (compare, ty))) {
            for cmp in ["cmp", "cmpx"] {
                let (name, number) = (format!("v_{cmp}_{middle}_{ty}"), Number::parse(ty));
                let mut machine = Machine::new();
                place(&mut machine, &[number; 2], &values);
                machine.wave.set_exec(exec);
                machine.run(long(&name));
                let mask = (0..64).fold(0, |mask, lane| {
                    let [a, b] = [0, 1].map(|n: usize| value(number, values[n][lane]));
                    mask | u64::from(expected(a, b)) << lane
                });
                prop_assert_eq!(machine.wave.pair(MASK_OUT), mask & exec, "{}", name);
                prop_assert_eq!(machine.wave.exec(), if cmp == "cmpx" { mask & exec } else { exec }, "{}", name);
            }
        }
    }

    #[test]
    fn classes(values in lanes(), class in 0u32..1 << 10) {
        for (ty, digits) in [("f16", 10), ("f32", 23), ("f64", 52)] {
            for cmp in ["cmp", "cmpx"] {
                let number = Number::parse(ty);
                let mut machine = Machine::new();
                place(&mut machine, &[number, Number::Unsigned(32)], &[values.clone(), vec![class.into(); 64]]);
                machine.run(long(&format!("v_{cmp}_class_{ty}")));
                for (lane, &bits) in values.iter().enumerate() {
                    let number = value(number, bits);
                    let smallest = match ty { "f16" => 2f64.powi(-14), "f32" => 2f64.powi(-126), _ => f64::MIN_POSITIVE };
                    let negative = number.is_sign_negative();
                    let bit = match number.abs() {
                        _ if number.is_nan() => if bits >> (digits - 1) & 1 == 0 { 0 } else { 1 },
                        size if size.is_infinite() => if negative { 2 } else { 9 },
                        size if size >= smallest => if negative { 3 } else { 8 },
                        size if size > 0.0 => if negative { 4 } else { 7 },
                        _ => if negative { 5 } else { 6 },
                    };
                    let expected = class >> bit & 1 != 0;
                    prop_assert_eq!(machine.wave.pair(MASK_OUT) >> lane & 1 != 0, expected, "{} {:x}", ty, bits);
                }
            }
        }
    }

    /// The three instructions around Newton's method, in the compiler's sequence, divide as IEEE 754 wants it.
    #[test]
    fn division(values in [lanes(), lanes()]) {
        for (&n, &d) in values[0].iter().zip(&values[1]) {
            let (n32, d32) = (f32::from_bits(n as u32), f32::from_bits(d as u32));
            let quotient = divide32(n32, d32);
            prop_assert!(quotient == n32 / d32 || quotient.is_nan() && (n32 / d32).is_nan(), "{n32:e} / {d32:e}: {quotient:e}");
            let (n64, d64) = (f64::from_bits(n), f64::from_bits(d));
            let quotient = divide64(n64, d64);
            prop_assert!(quotient == n64 / d64 || quotient.is_nan() && (n64 / d64).is_nan(), "{n64:e} / {d64:e}: {quotient:e}");
        }
    }

    #[test]
    fn accumulation(values in [lanes(), lanes(), lanes()]) {
        let cases: [(&str, &str, fn(f64, f64, f64) -> f64); 4] = [
            ("v_fmac_f32", "f32 f32 f32", |a, b, old| f64::from((a as f32).mul_add(b as f32, old as f32))),
            ("v_fmac_f64", "f64 f64 f64", f64::mul_add),
            ("v_mac_f32", "f32 f32 f32", mad),
            ("v_mac_f16", "f16 f16 f16", |a, b, old| F16::from_f64(a * b).to_f64() + old),
        ];
        for (name, text, expected) in cases {
            let (ty, operands) = types(text);
            let mut machine = Machine::new();
            place(&mut machine, &operands, &values[..2]);
            (0..64).for_each(|lane| machine.set_vector(RESULT, lane, ty.dwords(), values[2][lane].into()));
            machine.run(long(name));
            for lane in 0..64 {
                let [a, b, old] = [0, 1, 2].map(|n: usize| value(ty, values[n][lane]));
                let got = ty.cut(machine.vector(RESULT, lane, 2)) as u64;
                let expected = rounded(ty, expected(a, b, old));
                prop_assert!(same(ty, got, expected), "{name} of {a:e} {b:e} {old:e}: {got:x}, not {expected:x?}");
            }
        }
    }

    /// The constant after the instruction is a factor in one, the addend in the other.
    #[test]
    fn literal_operand(values in [lanes(), lanes()], k in -100i16..100) {
        let k = f32::from(k) / 4.0;
        for (name, opcode) in [("v_madmk_f32", 0x17u32), ("v_madak_f32", 0x18)] {
            let mut machine = Machine::new();
            place(&mut machine, &[Number::Float(32); 2], &values);
            let sources = u32::from(SOURCES[1]) << 9 | 256 + u32::from(SOURCES[0]);
            machine.run([opcode << 25 | u32::from(RESULT) << 17 | sources, k.to_bits()]);
            for lane in 0..64 {
                let [a, b] = [0, 1].map(|n: usize| value(Number::Float(32), values[n][lane]));
                let expected = if opcode == 0x17 { mad(a, k.into(), b) } else { mad(a, b, k.into()) };
                let got = machine.vector(RESULT, lane, 1) as u64;
                let expected = rounded(Number::Float(32), expected);
                prop_assert!(same(Number::Float(32), got, expected), "{name} of {a:e} {b:e}: {got:x}, not {expected:x?}");
            }
        }
    }

    #[test]
    fn halves(values in [lanes(), lanes(), lanes()]) {
        let mut machine = Machine::new();
        place(&mut machine, &[Number::Float(32); 3], &values);
        machine.run(long("v_pack_b32_f16"));
        let packed: Vec<u128> = (0..64).map(|lane| machine.vector(RESULT, lane, 1)).collect();
        machine.run(long("v_cvt_pkrtz_f16_f32"));
        for (lane, packed) in packed.into_iter().enumerate() {
            let [a, b] = [0, 1].map(|n: usize| values[n][lane] as u32);
            prop_assert_eq!(packed, u128::from(a & 0xffff | b << 16));
            let got = machine.vector(RESULT, lane, 1) as u32;
            for (half, operand) in [(got as u16, a), ((got >> 16) as u16, b)] {
                let (half, operand) = (F16(half), f32::from_bits(operand));
                // The largest that is not larger in magnitude; infinity stays.
                let next = F16(half.0.wrapping_add(1));
                let fits = half.to_f32().abs() <= operand.abs() && (next.to_f32().abs() > operand.abs() || half.0 & 0x7fff >= 0x7bff);
                let fits = fits && half.to_f32().is_sign_negative() == operand.is_sign_negative();
                prop_assert!(fits || operand.is_nan() && half.to_f32().is_nan(), "{operand:e}: {:x}", half.0);
            }
        }
        // Mixed precision into one half, with the other kept.
        for (name, shift) in [("v_fma_mixlo_f16", 0), ("v_fma_mixhi_f16", 16)] {
            let mut machine = Machine::new();
            place(&mut machine, &[Number::Float(32); 3], &values);
            let before: Vec<u128> = (0..64).map(|lane| machine.vector(RESULT, lane, 1)).collect();
            let words = long(name);
            machine.run([words[0] & !0x4000, words[1] & !(3 << 27)]);
            for (lane, before) in before.into_iter().enumerate() {
                let [a, b, c] = [0, 1, 2].map(|n: usize| value(Number::Float(32), values[n][lane]));
                let got = machine.vector(RESULT, lane, 1) as u64;
                let expected = rounded(Number::Float(16), a.mul_add(b, c));
                prop_assert!(same(Number::Float(16), got >> shift & 0xffff, expected), "{name} of {a:e} {b:e} {c:e}: {got:x}, not {expected:x?}");
                prop_assert_eq!(got >> (16 - shift) & 0xffff, before as u64 >> (16 - shift) & 0xffff, "{}", name);
            }
        }
    }

    #[test]
    fn turns(values in lanes()) {
        let functions: [(&str, fn(f64) -> f64, f64); 2] = [("v_sin_f32", f64::sin, 0.0), ("v_cos_f32", f64::cos, 1.0)];
        for (name, function, beyond) in functions {
            let mut machine = Machine::new();
            place(&mut machine, &[Number::Float(32)], std::slice::from_ref(&values));
            machine.run(long(name));
            for (lane, &bits) in values.iter().enumerate() {
                let turns = f64::from(f32::from_bits(bits as u32));
                let got = f64::from(f32::from_bits(machine.vector(RESULT, lane, 1) as u32));
                if turns.is_finite() {
                    let exact = if turns.abs() > 256.0 { beyond } else { function(turns * std::f64::consts::TAU) };
                    prop_assert!((got - exact).abs() < 1e-6, "{name} of {turns:e}: {got}, not {exact}");
                } else {
                    prop_assert!(got.is_nan());
                }
            }
        }
    }

    #[test]
    fn scaling(values in lanes(), power in -2200i32..2200) {
        let mut machine = Machine::new();
        let powers = vec![u64::from(power as u32); 64];
        place(&mut machine, &[Number::Float(64), Number::Signed(32)], &[values.clone(), powers]);
        machine.run(long("v_ldexp_f64"));
        for (lane, &bits) in values.iter().enumerate() {
            let start = f64::from_bits(bits);
            // Up in exact steps; down by one product, which is the only one to round.
            let (mut mantissa, exponent) = split(start);
            let mut rest = exponent + f64::from(power);
            while rest > 0.0 && mantissa.is_finite() && mantissa != 0.0 {
                (mantissa, rest) = (mantissa * 2.0, rest - 1.0);
            }
            let expected = if rest < -1074.0 { 0f64.copysign(start) } else { mantissa * f64::from_bits(if rest >= -1022.0 { ((rest + 1023.0) as u64) << 52 } else { 1 << (rest + 1074.0) as u32 }) };
            let expected = if start == 0.0 || !start.is_finite() { start } else { expected };
            let expected = if mantissa.is_infinite() { mantissa } else { expected };
            let got = machine.vector(RESULT, lane, 2) as u64;
            prop_assert!(same(Number::Float(64), got, rounded(Number::Float(64), expected)), "{start:e} {power}: {got:x}, not {expected:e}");
        }
    }
}

/// Executes an instruction on single 32-bit values, with VCC set or not, and returns the result and the mask.
fn single<const N: usize>(name: &str, operands: [u64; N], ty: Number, vcc: bool) -> (u64, bool) {
    let mut machine = Machine::new();
    machine.wave.set_pair(106, if vcc { u64::MAX } else { 0 });
    machine.wave.set_pair(MASK_IN, 0);
    for (n, bits) in operands.into_iter().enumerate() {
        machine.set_vector(SOURCES[n], 0, ty.dwords(), bits.into());
    }
    machine.run(long(name));
    (
        ty.cut(machine.vector(RESULT, 0, 2)) as u64,
        machine.wave.pair(MASK_OUT) & 1 != 0,
    )
}

fn divide32(n: f32, d: f32) -> f32 {
    let run = |name: &str, [a, b, c]: [f32; 3], vcc| {
        let (bits, mask) = single(
            name,
            [a, b, c].map(|value| value.to_bits().into()),
            Number::Float(32),
            vcc,
        );
        (f32::from_bits(bits as u32), mask)
    };
    let (scaled_d, _) = run("v_div_scale_f32", [d, d, n], false);
    let (scaled_n, scaled) = run("v_div_scale_f32", [n, d, n], false);
    let r = 1.0 / scaled_d;
    let r = (-scaled_d).mul_add(r, 1.0).mul_add(r, r);
    let q = scaled_n * r;
    let q = (-scaled_d).mul_add(q, scaled_n).mul_add(r, q);
    let (q, _) = run(
        "v_div_fmas_f32",
        [(-scaled_d).mul_add(q, scaled_n), r, q],
        scaled,
    );
    run("v_div_fixup_f32", [q, d, n], false).0
}

fn divide64(n: f64, d: f64) -> f64 {
    let run = |name: &str, operands: [f64; 3], vcc| {
        let (bits, mask) = single(name, operands.map(f64::to_bits), Number::Float(64), vcc);
        (f64::from_bits(bits), mask)
    };
    let (scaled_d, _) = run("v_div_scale_f64", [d, d, n], false);
    let (scaled_n, scaled) = run("v_div_scale_f64", [n, d, n], false);
    let r = 1.0 / scaled_d;
    let r = (-scaled_d).mul_add(r, 1.0).mul_add(r, r);
    let r = (-scaled_d).mul_add(r, 1.0).mul_add(r, r);
    let q = scaled_n * r;
    let (q, _) = run(
        "v_div_fmas_f64",
        [(-scaled_d).mul_add(q, scaled_n), r, q],
        scaled,
    );
    run("v_div_fixup_f64", [q, d, n], false).0
}

/// The segments of 2/π, put together, times an angle give the angle's turns.
#[test]
fn two_over_pi() {
    let segment = |angle: f64, n: u64| {
        let mut machine = Machine::new();
        machine.set_vector(SOURCES[0], 0, 2, angle.to_bits().into());
        machine.set_vector(SOURCES[1], 0, 1, n.into());
        machine.run(long("v_trig_preop_f64"));
        f64::from_bits(machine.vector(RESULT, 0, 2) as u64)
    };
    let parts = [0, 1, 2].map(|n| segment(1.0, n));
    assert_eq!(parts[0] + parts[1], std::f64::consts::FRAC_2_PI);
    // Each part lies below the last digit of the part before.
    assert!(parts[1] < parts[0] * 2f64.powi(-52) && parts[2] < parts[1] * 2f64.powi(-50));
    // A large angle starts further on: what is left out is a whole number of turns for it.
    let (angle, skipped) = (2f64.powi(200), 200 + 1023 - 1077);
    let expected = [0, 1, 2, 3, 4]
        .map(|n| segment(1.0, n))
        .iter()
        .fold(0.0, |all, part| all + (part * 2f64.powi(skipped)).fract());
    let found = [0, 1, 2]
        .map(|n| segment(angle, n) * 2f64.powi(skipped))
        .iter()
        .sum::<f64>();
    assert!((found - expected).abs() < 1e-9, "{found} and {expected}");
}

/// Modes that drop subnormals drop them in operands and results.
#[test]
fn subnormals_follow_the_mode() {
    let tiny = f32::from_bits(0x0000_4000);
    for (denorm32, operand, result) in [
        (0, 0.0, 0.0),
        (1, tiny, 0.0),
        (2, 0.0, 0.0),
        (3, tiny, tiny / 2.0),
    ] {
        let mut machine = Machine::new();
        machine.set_mode(FloatMode {
            denorm32,
            denorm64: 3,
            ieee: true,
            dx10_clamp: true,
        });
        machine.set_vector(SOURCES[0], 0, 1, tiny.to_bits().into());
        machine.set_vector(SOURCES[1], 0, 1, 2f32.powi(60).to_bits().into());
        machine.set_vector(SOURCES[2], 0, 1, 0);
        machine.run(long("v_mul_f32"));
        assert_eq!(
            f32::from_bits(machine.vector(RESULT, 0, 1) as u32),
            operand * 2f32.powi(60),
            "{denorm32}"
        );
        machine.set_vector(SOURCES[1], 0, 1, 0.5f32.to_bits().into());
        machine.run(long("v_mul_f32"));
        assert_eq!(
            f32::from_bits(machine.vector(RESULT, 0, 1) as u32),
            result,
            "{denorm32}"
        );
    }
}
