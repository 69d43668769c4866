//! Integer instructions: operands as wide integers, results cut to their width.

use proptest::prelude::*;

use super::machine::{
    MASK_IN, MASK_OUT, Machine, Number, RESULT, SCALAR_RESULT, SCALAR_SOURCES, SOURCES, edge, find,
    lanes, long, scalar,
};
use crate::isa::decode::Family;

/// A statement: name, types of the result and the operands, and the result.
type Statement = (&'static str, &'static str, fn(i128, i128, i128) -> i128);

/// The same with a carry or SCC.
type WithBit = (
    &'static str,
    &'static str,
    fn(i128, i128, i128) -> (i128, bool),
);

/// `width` bits of `value` from bit `at`.
fn part(value: i128, at: i128, width: i128) -> i128 {
    (value >> at) % (1 << width)
        + if (value >> at) % (1 << width) < 0 {
            1 << width
        } else {
            0
        }
}

/// `part`, read as a two's complement number.
fn signed_part(value: i128, at: i128, width: i128) -> i128 {
    let part = part(value, at, width);
    if width > 0 && part >= 1 << (width - 1) {
        part - (1 << width)
    } else {
        part
    }
}

/// Position of the first bit that satisfies `test`, from `range`; -1 without one.
fn position(mut range: impl Iterator<Item = i128>, test: impl Fn(i128) -> bool) -> i128 {
    range.position(test).map_or(-1, |position| position as i128)
}

fn bit(value: i128, at: i128) -> bool {
    value >> at & 1 != 0
}

fn middle(a: i128, b: i128, c: i128) -> i128 {
    let mut all = [a, b, c];
    all.sort_unstable();
    all[1]
}

const VECTOR: &[Statement] = &[
    ("v_mov_b32", "u32 u32", |a, _, _| a),
    ("v_not_b32", "u32 u32", |a, _, _| -1 - a),
    ("v_bfrev_b32", "u32 u32", |a, _, _| {
        (0..32).map(|i| part(a, i, 1) << (31 - i)).sum()
    }),
    ("v_ffbh_u32", "u32 u32", |a, _, _| {
        position((0..32).rev(), |i| bit(a, i))
    }),
    ("v_ffbl_b32", "u32 u32", |a, _, _| {
        position(0..32, |i| bit(a, i))
    }),
    ("v_ffbh_i32", "u32 u32", |a, _, _| {
        position((0..32).rev(), |i| bit(a, i) != bit(a, 31))
    }),
    ("v_sat_pk_u8_i16", "u32 u32", |a, _, _| {
        signed_part(a, 0, 16).clamp(0, 255) | signed_part(a, 16, 16).clamp(0, 255) << 8
    }),
    ("v_mul_i32_i24", "i32 i32 i32", |a, b, _| {
        signed_part(a, 0, 24) * signed_part(b, 0, 24)
    }),
    ("v_mul_hi_i32_i24", "i32 i32 i32", |a, b, _| {
        (signed_part(a, 0, 24) * signed_part(b, 0, 24)) >> 32
    }),
    ("v_mul_u32_u24", "u32 u32 u32", |a, b, _| {
        part(a, 0, 24) * part(b, 0, 24)
    }),
    ("v_mul_hi_u32_u24", "u32 u32 u32", |a, b, _| {
        (part(a, 0, 24) * part(b, 0, 24)) >> 32
    }),
    (
        "v_min_i32",
        "i32 i32 i32",
        |a, b, _| if a < b { a } else { b },
    ),
    (
        "v_max_i32",
        "i32 i32 i32",
        |a, b, _| if a > b { a } else { b },
    ),
    (
        "v_min_u32",
        "u32 u32 u32",
        |a, b, _| if a < b { a } else { b },
    ),
    (
        "v_max_u32",
        "u32 u32 u32",
        |a, b, _| if a > b { a } else { b },
    ),
    ("v_lshrrev_b32", "u32 u32 u32", |a, b, _| b >> (a % 32)),
    ("v_ashrrev_i32", "i32 u32 i32", |a, b, _| b >> (a % 32)),
    ("v_lshlrev_b32", "u32 u32 u32", |a, b, _| b << (a % 32)),
    ("v_and_b32", "u32 u32 u32", |a, b, _| {
        (0..32).map(|i| part(a, i, 1) * part(b, i, 1) << i).sum()
    }),
    ("v_or_b32", "u32 u32 u32", |a, b, _| a + b - (a & b)),
    ("v_xor_b32", "u32 u32 u32", |a, b, _| {
        (0..32)
            .map(|i| i128::from(bit(a, i) != bit(b, i)) << i)
            .sum()
    }),
    ("v_xnor_b32", "u32 u32 u32", |a, b, _| {
        (0..32)
            .map(|i| i128::from(bit(a, i) == bit(b, i)) << i)
            .sum()
    }),
    ("v_add_u16", "u16 u16 u16", |a, b, _| a + b),
    ("v_sub_u16", "u16 u16 u16", |a, b, _| a - b),
    ("v_subrev_u16", "u16 u16 u16", |a, b, _| b - a),
    ("v_mul_lo_u16", "u16 u16 u16", |a, b, _| a * b),
    ("v_lshlrev_b16", "u16 u16 u16", |a, b, _| b << (a % 16)),
    ("v_lshrrev_b16", "u16 u16 u16", |a, b, _| b >> (a % 16)),
    ("v_ashrrev_i16", "i16 u16 i16", |a, b, _| b >> (a % 16)),
    (
        "v_max_u16",
        "u16 u16 u16",
        |a, b, _| if a > b { a } else { b },
    ),
    (
        "v_max_i16",
        "i16 i16 i16",
        |a, b, _| if a > b { a } else { b },
    ),
    (
        "v_min_u16",
        "u16 u16 u16",
        |a, b, _| if a < b { a } else { b },
    ),
    (
        "v_min_i16",
        "i16 i16 i16",
        |a, b, _| if a < b { a } else { b },
    ),
    ("v_add_u32", "u32 u32 u32", |a, b, _| a + b),
    ("v_sub_u32", "u32 u32 u32", |a, b, _| a - b),
    ("v_subrev_u32", "u32 u32 u32", |a, b, _| b - a),
    ("v_mad_i32_i24", "i32 i32 i32 i32", |a, b, c| {
        signed_part(a, 0, 24) * signed_part(b, 0, 24) + c
    }),
    ("v_mad_u32_u24", "u32 u32 u32 u32", |a, b, c| {
        part(a, 0, 24) * part(b, 0, 24) + c
    }),
    ("v_bfe_u32", "u32 u32 u32 u32", |a, b, c| {
        part(a, b % 32, c % 32)
    }),
    ("v_bfe_i32", "i32 i32 u32 u32", |a, b, c| {
        signed_part(a, b % 32, c % 32)
    }),
    ("v_bfi_b32", "u32 u32 u32 u32", |a, b, c| {
        (0..32)
            .map(|i| part(if bit(a, i) { b } else { c }, i, 1) << i)
            .sum()
    }),
    ("v_lerp_u8", "u32 u32 u32 u32", |a, b, c| {
        (0..4)
            .map(|i| ((part(a, 8 * i, 8) + part(b, 8 * i, 8) + part(c, 8 * i, 1)) / 2) << (8 * i))
            .sum()
    }),
    ("v_alignbit_b32", "u32 u32 u32 u32", |a, b, c| {
        (a * (1 << 32) + b) >> (c % 32)
    }),
    ("v_alignbyte_b32", "u32 u32 u32 u32", |a, b, c| {
        (a * (1 << 32) + b) >> (8 * (c % 4))
    }),
    ("v_min3_i32", "i32 i32 i32 i32", |a, b, c| {
        *[a, b, c].iter().min().expect("three")
    }),
    ("v_min3_u32", "u32 u32 u32 u32", |a, b, c| {
        *[a, b, c].iter().min().expect("three")
    }),
    ("v_max3_i32", "i32 i32 i32 i32", |a, b, c| {
        *[a, b, c].iter().max().expect("three")
    }),
    ("v_max3_u32", "u32 u32 u32 u32", |a, b, c| {
        *[a, b, c].iter().max().expect("three")
    }),
    ("v_med3_i32", "i32 i32 i32 i32", middle),
    ("v_med3_u32", "u32 u32 u32 u32", middle),
    ("v_sad_u8", "u32 u32 u32 u32", |a, b, c| {
        c + (0..4)
            .map(|i| (part(a, 8 * i, 8) - part(b, 8 * i, 8)).abs())
            .sum::<i128>()
    }),
    ("v_sad_u32", "u32 u32 u32 u32", |a, b, c| (a - b).abs() + c),
    ("v_mad_legacy_u16", "u16 u16 u16 u16", |a, b, c| a * b + c),
    ("v_mad_legacy_i16", "i16 i16 i16 i16", |a, b, c| a * b + c),
    ("v_perm_b32", "u32 u32 u32 u32", |a, b, c| {
        let bytes = a * (1 << 32) + b;
        let byte = |selector: i128| match selector {
            0..=7 => part(bytes, 8 * selector, 8),
            8 => {
                if bit(b, 15) {
                    255
                } else {
                    0
                }
            }
            9 => {
                if bit(b, 31) {
                    255
                } else {
                    0
                }
            }
            10 => {
                if bit(a, 15) {
                    255
                } else {
                    0
                }
            }
            11 => {
                if bit(a, 31) {
                    255
                } else {
                    0
                }
            }
            12 => 0,
            _ => 255,
        };
        (0..4).map(|i| byte(part(c, 8 * i, 8)) << (8 * i)).sum()
    }),
    ("v_mad_u32_u16", "u32 u16 u16 u32", |a, b, c| a * b + c),
    ("v_mad_i32_i16", "i32 i16 i16 i32", |a, b, c| a * b + c),
    ("v_xad_u32", "u32 u32 u32 u32", |a, b, c| (a ^ b) + c),
    ("v_min3_i16", "i16 i16 i16 i16", |a, b, c| {
        *[a, b, c].iter().min().expect("three")
    }),
    ("v_min3_u16", "u16 u16 u16 u16", |a, b, c| {
        *[a, b, c].iter().min().expect("three")
    }),
    ("v_max3_i16", "i16 i16 i16 i16", |a, b, c| {
        *[a, b, c].iter().max().expect("three")
    }),
    ("v_max3_u16", "u16 u16 u16 u16", |a, b, c| {
        *[a, b, c].iter().max().expect("three")
    }),
    ("v_med3_i16", "i16 i16 i16 i16", middle),
    ("v_med3_u16", "u16 u16 u16 u16", middle),
    ("v_lshl_add_u32", "u32 u32 u32 u32", |a, b, c| {
        (a << (b % 32)) + c
    }),
    ("v_add_lshl_u32", "u32 u32 u32 u32", |a, b, c| {
        part(a + b, 0, 32) << (c % 32)
    }),
    ("v_add3_u32", "u32 u32 u32 u32", |a, b, c| a + b + c),
    ("v_lshl_or_b32", "u32 u32 u32 u32", |a, b, c| {
        part(a << (b % 32), 0, 32) | c
    }),
    ("v_and_or_b32", "u32 u32 u32 u32", |a, b, c| (a & b) | c),
    ("v_or3_b32", "u32 u32 u32 u32", |a, b, c| a | b | c),
    ("v_bcnt_u32_b32", "u32 u32 u32", |a, b, _| {
        (0..32).map(|i| part(a, i, 1)).sum::<i128>() + b
    }),
    ("v_lshlrev_b64", "u64 u32 u64", |a, b, _| b << (a % 64)),
    ("v_lshrrev_b64", "u64 u32 u64", |a, b, _| b >> (a % 64)),
    ("v_ashrrev_i64", "i64 u32 i64", |a, b, _| b >> (a % 64)),
    ("v_bfm_b32", "u32 u32 u32", |a, b, _| {
        ((1 << (a % 32)) - 1) << (b % 32)
    }),
    ("v_cvt_pk_u16_u32", "u32 u32 u32", |a, b, _| {
        a.min(65535) + (b.min(65535) << 16)
    }),
    ("v_cvt_pk_i16_i32", "u32 i32 i32", |a, b, _| {
        part(a.clamp(-32768, 32767), 0, 16) + (part(b.clamp(-32768, 32767), 0, 16) << 16)
    }),
    ("v_add_i32", "i32 i32 i32", |a, b, _| a + b),
    ("v_sub_i32", "i32 i32 i32", |a, b, _| a - b),
    ("v_add_i16", "i16 i16 i16", |a, b, _| a + b),
    ("v_sub_i16", "i16 i16 i16", |a, b, _| a - b),
    ("v_mul_lo_u32", "u32 u32 u32", |a, b, _| a * b),
    ("v_mul_hi_u32", "u32 u32 u32", |a, b, _| (a * b) >> 32),
    ("v_mul_hi_i32", "i32 i32 i32", |a, b, _| (a * b) >> 32),
];

/// The high half of the register keeps its value.
const VECTOR_LOW_HALF: &[Statement] = &[
    ("v_mad_u16", "u16 u16 u16 u16", |a, b, c| a * b + c),
    ("v_mad_i16", "i16 i16 i16 i16", |a, b, c| a * b + c),
];

/// The same in both halves of 32-bit registers.
const PACKED: &[Statement] = &[
    ("v_pk_mad_i16", "i16 i16 i16 i16", |a, b, c| a * b + c),
    ("v_pk_mul_lo_u16", "u16 u16 u16", |a, b, _| a * b),
    ("v_pk_add_i16", "i16 i16 i16", |a, b, _| a + b),
    ("v_pk_sub_i16", "i16 i16 i16", |a, b, _| a - b),
    ("v_pk_lshlrev_b16", "u16 u16 u16", |a, b, _| b << (a % 16)),
    ("v_pk_lshrrev_b16", "u16 u16 u16", |a, b, _| b >> (a % 16)),
    ("v_pk_ashrrev_i16", "i16 u16 i16", |a, b, _| b >> (a % 16)),
    (
        "v_pk_max_i16",
        "i16 i16 i16",
        |a, b, _| if a > b { a } else { b },
    ),
    (
        "v_pk_min_i16",
        "i16 i16 i16",
        |a, b, _| if a < b { a } else { b },
    ),
    ("v_pk_mad_u16", "u16 u16 u16 u16", |a, b, c| a * b + c),
    ("v_pk_add_u16", "u16 u16 u16", |a, b, _| a + b),
    ("v_pk_sub_u16", "u16 u16 u16", |a, b, _| a - b),
    (
        "v_pk_max_u16",
        "u16 u16 u16",
        |a, b, _| if a > b { a } else { b },
    ),
    (
        "v_pk_min_u16",
        "u16 u16 u16",
        |a, b, _| if a < b { a } else { b },
    ),
];

/// With carry out; a third operand of one bit is a carry in.
const CARRY: &[WithBit] = &[
    ("v_add_co_u32", "u32 u32 u32", |a, b, _| {
        (a + b, a + b >= 1 << 32)
    }),
    ("v_sub_co_u32", "u32 u32 u32", |a, b, _| (a - b, a < b)),
    ("v_subrev_co_u32", "u32 u32 u32", |a, b, _| (b - a, b < a)),
    ("v_addc_co_u32", "u32 u32 u32 u1", |a, b, c| {
        (a + b + c, a + b + c >= 1 << 32)
    }),
    ("v_subb_co_u32", "u32 u32 u32 u1", |a, b, c| {
        (a - b - c, a - b - c < 0)
    }),
    ("v_subbrev_co_u32", "u32 u32 u32 u1", |a, b, c| {
        (b - a - c, b - a - c < 0)
    }),
    ("v_mad_u64_u32", "u64 u32 u32 u64", |a, b, c| {
        (a * b + c, a * b + c >= 1 << 64)
    }),
    ("v_mad_i64_i32", "i64 i32 i32 i64", |a, b, c| {
        (a * b + c, i64::try_from(a * b + c).is_err())
    }),
];

/// Comparisons: by the middle of their name and the type at its end.
const COMPARE: &[(&str, fn(i128, i128) -> bool)] = &[
    ("f", |_, _| false),
    ("lt", |a, b| a - b < 0),
    ("eq", |a, b| a - b == 0),
    ("le", |a, b| a - b <= 0),
    ("gt", |a, b| a - b > 0),
    ("ne", |a, b| a - b != 0),
    ("ge", |a, b| a - b >= 0),
    ("t", |_, _| true),
];
const COMPARED: [&str; 6] = ["i16", "u16", "i32", "u32", "i64", "u64"];

/// Scalar instructions that set SCC. The third operand is SCC, or the old result where the types name three.
const SCALAR: &[WithBit] = &[
    ("s_add_u32", "u32 u32 u32", |a, b, _| {
        (a + b, a + b >= 1 << 32)
    }),
    ("s_sub_u32", "u32 u32 u32", |a, b, _| (a - b, a < b)),
    ("s_add_i32", "i32 i32 i32", |a, b, _| {
        (a + b, i32::try_from(a + b).is_err())
    }),
    ("s_sub_i32", "i32 i32 i32", |a, b, _| {
        (a - b, i32::try_from(a - b).is_err())
    }),
    ("s_addc_u32", "u32 u32 u32", |a, b, c| {
        (a + b + c, a + b + c >= 1 << 32)
    }),
    ("s_subb_u32", "u32 u32 u32", |a, b, c| {
        (a - b - c, a - b - c < 0)
    }),
    ("s_min_i32", "i32 i32 i32", |a, b, _| {
        if a < b { (a, true) } else { (b, false) }
    }),
    ("s_min_u32", "u32 u32 u32", |a, b, _| {
        if a < b { (a, true) } else { (b, false) }
    }),
    ("s_max_i32", "i32 i32 i32", |a, b, _| {
        if a > b { (a, true) } else { (b, false) }
    }),
    ("s_max_u32", "u32 u32 u32", |a, b, _| {
        if a > b { (a, true) } else { (b, false) }
    }),
    ("s_cselect_b32", "u32 u32 u32", |a, b, c| {
        (if c == 1 { a } else { b }, c == 1)
    }),
    ("s_cselect_b64", "u64 u64 u64", |a, b, c| {
        (if c == 1 { a } else { b }, c == 1)
    }),
    ("s_bfm_b32", "u32 u32 u32", |a, b, c| {
        (((1 << (a % 32)) - 1) << (b % 32), c == 1)
    }),
    ("s_bfm_b64", "u64 u32 u32", |a, b, c| {
        (((1 << (a % 64)) - 1) << (b % 64), c == 1)
    }),
    ("s_mul_i32", "i32 i32 i32", |a, b, c| (a * b, c == 1)),
    ("s_mul_hi_u32", "u32 u32 u32", |a, b, c| {
        ((a * b) >> 32, c == 1)
    }),
    ("s_mul_hi_i32", "i32 i32 i32", |a, b, c| {
        ((a * b) >> 32, c == 1)
    }),
    ("s_lshl1_add_u32", "u32 u32 u32", |a, b, _| {
        (a * 2 + b, a * 2 + b >= 1 << 32)
    }),
    ("s_lshl2_add_u32", "u32 u32 u32", |a, b, _| {
        (a * 4 + b, a * 4 + b >= 1 << 32)
    }),
    ("s_lshl3_add_u32", "u32 u32 u32", |a, b, _| {
        (a * 8 + b, a * 8 + b >= 1 << 32)
    }),
    ("s_lshl4_add_u32", "u32 u32 u32", |a, b, _| {
        (a * 16 + b, a * 16 + b >= 1 << 32)
    }),
    ("s_pack_ll_b32_b16", "u32 u32 u32", |a, b, c| {
        (part(a, 0, 16) + (part(b, 0, 16) << 16), c == 1)
    }),
    ("s_pack_lh_b32_b16", "u32 u32 u32", |a, b, c| {
        (part(a, 0, 16) + (part(b, 16, 16) << 16), c == 1)
    }),
    ("s_pack_hh_b32_b16", "u32 u32 u32", |a, b, c| {
        (part(a, 16, 16) + (part(b, 16, 16) << 16), c == 1)
    }),
    ("s_mov_b32", "u32 u32", |a, _, c| (a, c == 1)),
    ("s_mov_b64", "u64 u64", |a, _, c| (a, c == 1)),
    ("s_brev_b32", "u32 u32", |a, _, c| {
        ((0..32).map(|i| part(a, i, 1) << (31 - i)).sum(), c == 1)
    }),
    ("s_brev_b64", "u64 u64", |a, _, c| {
        ((0..64).map(|i| part(a, i, 1) << (63 - i)).sum(), c == 1)
    }),
    ("s_ff0_i32_b32", "i32 u32", |a, _, c| {
        (position(0..32, |i| !bit(a, i)), c == 1)
    }),
    ("s_ff0_i32_b64", "i32 u64", |a, _, c| {
        (position(0..64, |i| !bit(a, i)), c == 1)
    }),
    ("s_ff1_i32_b32", "i32 u32", |a, _, c| {
        (position(0..32, |i| bit(a, i)), c == 1)
    }),
    ("s_ff1_i32_b64", "i32 u64", |a, _, c| {
        (position(0..64, |i| bit(a, i)), c == 1)
    }),
    ("s_flbit_i32_b32", "i32 u32", |a, _, c| {
        (position((0..32).rev(), |i| bit(a, i)), c == 1)
    }),
    ("s_flbit_i32_b64", "i32 u64", |a, _, c| {
        (position((0..64).rev(), |i| bit(a, i)), c == 1)
    }),
    ("s_flbit_i32", "i32 u32", |a, _, c| {
        (position((0..32).rev(), |i| bit(a, i) != bit(a, 31)), c == 1)
    }),
    ("s_flbit_i32_i64", "i32 u64", |a, _, c| {
        (position((0..64).rev(), |i| bit(a, i) != bit(a, 63)), c == 1)
    }),
    ("s_sext_i32_i8", "i32 u32", |a, _, c| {
        (signed_part(a, 0, 8), c == 1)
    }),
    ("s_sext_i32_i16", "i32 u32", |a, _, c| {
        (signed_part(a, 0, 16), c == 1)
    }),
    ("s_bitreplicate_b64_b32", "u64 u32", |a, _, c| {
        ((0..64).map(|i| part(a, i / 2, 1) << i).sum(), c == 1)
    }),
];

/// Scalar instructions whose SCC says that the result is not zero.
const SCALAR_NONZERO: &[Statement] = &[
    ("s_and_b32", "u32 u32 u32", |a, b, _| a & b),
    ("s_and_b64", "u64 u64 u64", |a, b, _| a & b),
    ("s_or_b32", "u32 u32 u32", |a, b, _| a | b),
    ("s_or_b64", "u64 u64 u64", |a, b, _| a | b),
    ("s_xor_b32", "u32 u32 u32", |a, b, _| (a | b) - (a & b)),
    ("s_xor_b64", "u64 u64 u64", |a, b, _| (a | b) - (a & b)),
    ("s_andn2_b32", "u32 u32 u32", |a, b, _| a - (a & b)),
    ("s_andn2_b64", "u64 u64 u64", |a, b, _| a - (a & b)),
    ("s_orn2_b32", "u32 u32 u32", |a, b, _| a | (-1 - b)),
    ("s_orn2_b64", "u64 u64 u64", |a, b, _| a | (-1 - b)),
    ("s_nand_b32", "u32 u32 u32", |a, b, _| -1 - (a & b)),
    ("s_nand_b64", "u64 u64 u64", |a, b, _| -1 - (a & b)),
    ("s_nor_b32", "u32 u32 u32", |a, b, _| -1 - (a | b)),
    ("s_nor_b64", "u64 u64 u64", |a, b, _| -1 - (a | b)),
    ("s_xnor_b32", "u32 u32 u32", |a, b, _| {
        -1 - ((a | b) - (a & b))
    }),
    ("s_xnor_b64", "u64 u64 u64", |a, b, _| {
        -1 - ((a | b) - (a & b))
    }),
    ("s_lshl_b32", "u32 u32 u32", |a, b, _| a << (b % 32)),
    ("s_lshl_b64", "u64 u64 u32", |a, b, _| a << (b % 64)),
    ("s_lshr_b32", "u32 u32 u32", |a, b, _| a >> (b % 32)),
    ("s_lshr_b64", "u64 u64 u32", |a, b, _| a >> (b % 64)),
    ("s_ashr_i32", "i32 i32 u32", |a, b, _| a >> (b % 32)),
    ("s_ashr_i64", "i64 i64 u32", |a, b, _| a >> (b % 64)),
    ("s_bfe_u32", "u32 u32 u32", |a, b, _| {
        part(part(a, b % 32, 64), 0, part(b, 16, 7).min(32))
    }),
    ("s_bfe_i32", "i32 i32 u32", |a, b, _| {
        signed_part(a, b % 32, part(b, 16, 7).min(32))
    }),
    ("s_bfe_u64", "u64 u64 u32", |a, b, _| {
        part(a, b % 64, part(b, 16, 7).min(64))
    }),
    ("s_bfe_i64", "i64 i64 u32", |a, b, _| {
        signed_part(a, b % 64, part(b, 16, 7).min(64))
    }),
    ("s_absdiff_i32", "i32 i32 i32", |a, b, _| {
        signed_part(a - b, 0, 32).abs()
    }),
    ("s_not_b32", "u32 u32", |a, _, _| -1 - a),
    ("s_not_b64", "u64 u64", |a, _, _| -1 - a),
    ("s_wqm_b32", "u32 u32", |a, _, _| {
        (0..32)
            .map(|i| i128::from(part(a, i / 4 * 4, 4) != 0) << i)
            .sum()
    }),
    ("s_wqm_b64", "u64 u64", |a, _, _| {
        (0..64)
            .map(|i| i128::from(part(a, i / 4 * 4, 4) != 0) << i)
            .sum()
    }),
    ("s_quadmask_b32", "u32 u32", |a, _, _| {
        (0..8)
            .map(|i| i128::from(part(a, i * 4, 4) != 0) << i)
            .sum()
    }),
    ("s_quadmask_b64", "u64 u64", |a, _, _| {
        (0..16)
            .map(|i| i128::from(part(a, i * 4, 4) != 0) << i)
            .sum()
    }),
    ("s_bcnt0_i32_b32", "u32 u32", |a, _, _| {
        (0..32).map(|i| 1 - part(a, i, 1)).sum()
    }),
    ("s_bcnt0_i32_b64", "u32 u64", |a, _, _| {
        (0..64).map(|i| 1 - part(a, i, 1)).sum()
    }),
    ("s_bcnt1_i32_b32", "u32 u32", |a, _, _| {
        (0..32).map(|i| part(a, i, 1)).sum()
    }),
    ("s_bcnt1_i32_b64", "u32 u64", |a, _, _| {
        (0..64).map(|i| part(a, i, 1)).sum()
    }),
    ("s_abs_i32", "i32 i32", |a, _, _| a.abs()),
];

/// Scalar instructions that read their result first: old value, operand, SCC. SCC stays.
const SCALAR_OLD: &[Statement] = &[
    (
        "s_cmov_b32",
        "u32 u32",
        |old, a, scc| if scc == 1 { a } else { old },
    ),
    (
        "s_cmov_b64",
        "u64 u64",
        |old, a, scc| if scc == 1 { a } else { old },
    ),
    ("s_bitset0_b32", "u32 u32", |old, a, _| {
        old - (old & 1 << (a % 32))
    }),
    ("s_bitset0_b64", "u64 u32", |old, a, _| {
        old - (old & 1 << (a % 64))
    }),
    ("s_bitset1_b32", "u32 u32", |old, a, _| old | 1 << (a % 32)),
    ("s_bitset1_b64", "u64 u32", |old, a, _| old | 1 << (a % 64)),
];

/// Scalar comparisons.
const SCALAR_COMPARE: &[(&str, &str, fn(i128, i128) -> bool)] = &[
    ("s_cmp_eq_i32", "i32 i32", |a, b| a - b == 0),
    ("s_cmp_lg_i32", "i32 i32", |a, b| a - b != 0),
    ("s_cmp_gt_i32", "i32 i32", |a, b| a - b > 0),
    ("s_cmp_ge_i32", "i32 i32", |a, b| a - b >= 0),
    ("s_cmp_lt_i32", "i32 i32", |a, b| a - b < 0),
    ("s_cmp_le_i32", "i32 i32", |a, b| a - b <= 0),
    ("s_cmp_eq_u32", "u32 u32", |a, b| a - b == 0),
    ("s_cmp_lg_u32", "u32 u32", |a, b| a - b != 0),
    ("s_cmp_gt_u32", "u32 u32", |a, b| a - b > 0),
    ("s_cmp_ge_u32", "u32 u32", |a, b| a - b >= 0),
    ("s_cmp_lt_u32", "u32 u32", |a, b| a - b < 0),
    ("s_cmp_le_u32", "u32 u32", |a, b| a - b <= 0),
    ("s_cmp_eq_u64", "u64 u64", |a, b| a - b == 0),
    ("s_cmp_lg_u64", "u64 u64", |a, b| a - b != 0),
    ("s_bitcmp0_b32", "u32 u32", |a, b| !bit(a, b % 32)),
    ("s_bitcmp1_b32", "u32 u32", |a, b| bit(a, b % 32)),
    ("s_bitcmp0_b64", "u64 u32", |a, b| !bit(a, b % 64)),
    ("s_bitcmp1_b64", "u64 u32", |a, b| bit(a, b % 64)),
];

/// Comparisons of a register with an immediate.
const IMMEDIATE_COMPARE: &[(&str, &str, fn(i128, i128) -> bool)] = &[
    ("s_cmpk_eq_i32", "i32 i16", |a, k| a - k == 0),
    ("s_cmpk_lg_i32", "i32 i16", |a, k| a - k != 0),
    ("s_cmpk_gt_i32", "i32 i16", |a, k| a - k > 0),
    ("s_cmpk_ge_i32", "i32 i16", |a, k| a - k >= 0),
    ("s_cmpk_lt_i32", "i32 i16", |a, k| a - k < 0),
    ("s_cmpk_le_i32", "i32 i16", |a, k| a - k <= 0),
    ("s_cmpk_eq_u32", "u32 u16", |a, k| a - k == 0),
    ("s_cmpk_lg_u32", "u32 u16", |a, k| a - k != 0),
    ("s_cmpk_gt_u32", "u32 u16", |a, k| a - k > 0),
    ("s_cmpk_ge_u32", "u32 u16", |a, k| a - k >= 0),
    ("s_cmpk_lt_u32", "u32 u16", |a, k| a - k < 0),
    ("s_cmpk_le_u32", "u32 u16", |a, k| a - k <= 0),
];

/// Arithmetic with an immediate: old value, immediate, SCC; the result, and SCC where it is set.
const IMMEDIATE: &[(&str, fn(i128, i128, i128) -> (i128, bool))] = &[
    ("s_movk_i32", |_, k, scc| (k, scc == 1)),
    ("s_cmovk_i32", |old, k, scc| {
        (if scc == 1 { k } else { old }, scc == 1)
    }),
    ("s_addk_i32", |old, k, _| {
        (old + k, i32::try_from(old + k).is_err())
    }),
    ("s_mulk_i32", |old, k, scc| (old * k, scc == 1)),
];

pub(super) fn stated() -> Vec<String> {
    let named = [VECTOR, VECTOR_LOW_HALF, PACKED, SCALAR_NONZERO, SCALAR_OLD].concat();
    let named = named.into_iter().map(|(name, ..)| name);
    let named = named.chain(CARRY.iter().chain(SCALAR).map(|(name, ..)| *name));
    let named = named.chain(
        SCALAR_COMPARE
            .iter()
            .chain(IMMEDIATE_COMPARE)
            .map(|(name, ..)| *name),
    );
    let named = named.chain(IMMEDIATE.iter().map(|(name, _)| *name));
    let compare = COMPARE.iter().flat_map(|(middle, _)| {
        COMPARED
            .into_iter()
            .flat_map(move |ty| ["cmp", "cmpx"].map(|cmp| format!("v_{cmp}_{middle}_{ty}")))
    });
    named.map(str::to_owned).chain(compare).collect()
}

/// Types of the result and the operands.
fn types(text: &str) -> (Number, Vec<Number>) {
    let mut types = text.split(' ').map(Number::parse);
    (types.next().expect("a result"), types.collect())
}

/// Puts the operands of 64 lanes into their registers and returns them as numbers.
fn place(machine: &mut Machine, types: &[Number], values: &[Vec<u64>]) -> Vec<[i128; 3]> {
    let mut numbers = vec![[0; 3]; 64];
    let mut mask = 0;
    for (lane, numbers) in numbers.iter_mut().enumerate() {
        for (n, ty) in types.iter().enumerate() {
            let bits = u128::from(values[n][lane]);
            numbers[n] = ty.integer(bits);
            if ty.bits() == 1 {
                mask |= (numbers[n] as u64) << lane;
            } else {
                machine.set_vector(SOURCES[n], lane, ty.dwords(), bits);
            }
        }
    }
    machine.wave.set_pair(MASK_IN, mask);
    numbers
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn vector(values in [lanes(), lanes(), lanes()], exec in any::<u64>()) {
        for (name, text, expected) in [VECTOR, VECTOR_LOW_HALF].concat() {
            let (result, operands) = types(text);
            let mut machine = Machine::new();
            let numbers = place(&mut machine, &operands, &values);
            machine.wave.set_exec(exec);
            let before: Vec<u128> = (0..64).map(|lane| machine.vector(RESULT, lane, 4)).collect();
            machine.run(long(name));
            let keeps = VECTOR_LOW_HALF.iter().any(|(low, ..)| *low == name);
            for (lane, [a, b, c]) in numbers.into_iter().enumerate() {
                let value = result.cut(expected(a, b, c) as u128);
                // A result of 16 bits clears the other half, unless it is one that keeps it.
                let width = if keeps { result.bits() } else { 32 * u32::from(result.dwords()) };
                let kept = before[lane] >> width << width;
                let value = if exec >> lane & 1 != 0 { kept | value } else { before[lane] };
                prop_assert_eq!(machine.vector(RESULT, lane, 4), value, "{} {:x} {:x} {:x}", name, a, b, c);
            }
        }
    }

    #[test]
    fn packed(values in [lanes(), lanes(), lanes()]) {
        for &(name, text, expected) in PACKED {
            let (result, operands) = types(text);
            let mut machine = Machine::new();
            place(&mut machine, &vec![Number::Unsigned(32); operands.len()], &values);
            machine.run(long(name));
            for lane in 0..64 {
                let half = |high: u32| {
                    let operand = |n: usize| operands.get(n).map_or(0, |ty| ty.integer(u128::from(values[n][lane]) >> (16 * high)));
                    result.cut(expected(operand(0), operand(1), operand(2)) as u128)
                };
                prop_assert_eq!(machine.vector(RESULT, lane, 1), half(0) | half(1) << 16, "{} lane {}", name, lane);
            }
        }
    }

    #[test]
    fn carry(values in [lanes(), lanes(), lanes()], exec in any::<u64>()) {
        for &(name, text, expected) in CARRY {
            let (result, operands) = types(text);
            let mut machine = Machine::new();
            let numbers = place(&mut machine, &operands, &values);
            machine.wave.set_exec(exec);
            machine.run(long(name));
            let mut mask = 0;
            for (lane, [a, b, c]) in numbers.into_iter().enumerate().filter(|(lane, _)| exec >> lane & 1 != 0) {
                let (value, carry) = expected(a, b, c);
                mask |= u64::from(carry) << lane;
                let value = result.cut(value as u128);
                prop_assert_eq!(machine.vector(RESULT, lane, result.dwords()), value, "{} {:x} {:x} {:x}", name, a, b, c);
            }
            prop_assert_eq!(machine.wave.pair(MASK_OUT), mask, "{}", name);
        }
    }

    #[test]
    fn compare(values in [lanes(), lanes()], exec in any::<u64>()) {
        for ((middle, expected), ty) in COMPARE.iter().flat_map(|compare| COMPARED.map(|ty| (compare, ty))) {
            for cmp in ["cmp", "cmpx"] {
                let name = format!("v_{cmp}_{middle}_{ty}");
                let mut machine = Machine::new();
                let numbers = place(&mut machine, &[Number::parse(ty); 2], &values);
                machine.wave.set_exec(exec);
                machine.run(long(&name));
                let all = numbers.into_iter().enumerate();
                let mask = all.fold(0, |mask, (lane, [a, b, _])| mask | u64::from(expected(a, b)) << lane) & exec;
                prop_assert_eq!(machine.wave.pair(MASK_OUT), mask, "{}", name);
                prop_assert_eq!(machine.wave.exec(), if cmp == "cmpx" { mask } else { exec }, "{}", name);
            }
        }
    }

    #[test]
    fn scalar_arithmetic(values in [edge(), edge()], scc in any::<bool>()) {
        for &(name, text, expected) in SCALAR {
            check_scalar(name, text, values, scc, expected)?;
        }
        for &(name, text, expected) in SCALAR_NONZERO {
            let result = types(text).0;
            check_scalar(name, text, values, scc, |a, b, c| {
                let value = expected(a, b, c);
                (value, result.cut(value as u128) != 0)
            })?;
        }
    }

    #[test]
    fn scalar_with_old_value(old in edge(), value in edge(), scc in any::<bool>()) {
        for &(name, text, expected) in SCALAR_OLD {
            let (result, operands) = types(text);
            let mut machine = Machine::new();
            machine.wave.scc = scc;
            machine.wave.set_pair(SCALAR_RESULT, old);
            machine.wave.set_pair(SCALAR_SOURCES[0], value);
            machine.run(scalar(name, 0));
            let [old, value] = [result.integer(old.into()), operands[0].integer(value.into())];
            let expected = result.cut(expected(old, value, scc.into()) as u128);
            prop_assert_eq!(result.cut(machine.wave.pair(SCALAR_RESULT).into()), expected, "{}", name);
            prop_assert_eq!(machine.wave.scc, scc, "{}", name);
        }
    }

    #[test]
    fn scalar_compare(a in edge(), b in edge(), same in any::<bool>()) {
        let b = if same { a } else { b };
        for &(name, text, expected) in SCALAR_COMPARE.iter().chain(IMMEDIATE_COMPARE) {
            let operands: Vec<Number> = text.split(' ').map(Number::parse).collect();
            let mut machine = Machine::new();
            let immediate = find(name).0 == Family::Sopk;
            machine.wave.set_pair(if immediate { SCALAR_RESULT } else { SCALAR_SOURCES[0] }, a);
            machine.wave.set_pair(SCALAR_SOURCES[1], b);
            machine.run(scalar(name, b as u16));
            let expected = expected(operands[0].integer(a.into()), operands[1].integer(b.into()));
            prop_assert_eq!(machine.wave.scc, expected, "{} {:x} {:x}", name, a, b);
        }
    }

    #[test]
    fn scalar_immediate(old in edge(), k in any::<i16>(), scc in any::<bool>()) {
        for &(name, expected) in IMMEDIATE {
            let mut machine = Machine::new();
            machine.wave.scc = scc;
            machine.wave.set_pair(SCALAR_RESULT, old);
            machine.run(scalar(name, k as u16));
            let (value, bit) = expected((old as u32 as i32).into(), k.into(), scc.into());
            prop_assert_eq!(machine.wave.scalars[usize::from(SCALAR_RESULT)], value as u32, "{}", name);
            prop_assert_eq!(machine.wave.scc, bit, "{}", name);
        }
    }
}

fn check_scalar(
    name: &str,
    text: &str,
    values: [u64; 2],
    scc: bool,
    expected: impl Fn(i128, i128, i128) -> (i128, bool),
) -> Result<(), TestCaseError> {
    let (result, operands) = types(text);
    let mut machine = Machine::new();
    machine.wave.scc = scc;
    for (register, value) in SCALAR_SOURCES.into_iter().zip(values) {
        machine.wave.set_pair(register, value);
    }
    let neighbour = machine.wave.scalars[usize::from(SCALAR_RESULT) + usize::from(result.dwords())];
    machine.run(scalar(name, 0));
    let operand = |n: usize| operands.get(n).map_or(0, |ty| ty.integer(values[n].into()));
    let (value, bit) = expected(operand(0), operand(1), scc.into());
    let value = result.cut(value as u128);
    prop_assert_eq!(
        result.cut(machine.wave.pair(SCALAR_RESULT).into()),
        value,
        "{} {:x?}",
        name,
        values
    );
    prop_assert_eq!(machine.wave.scc, bit, "SCC of {} {:x?}", name, values);
    let after = machine.wave.scalars[usize::from(SCALAR_RESULT) + usize::from(result.dwords())];
    prop_assert_eq!(after, neighbour, "{} writes too much", name);
    Ok(())
}
