//! Vector comparisons. Each exists as `v_cmp`, which writes a mask, and as `v_cmpx`, which also makes it EXEC.
#![expect(
    clippy::neg_cmp_op_on_partial_ord,
    reason = "with a NaN, not less is something else than greater or equal"
)]

use crate::isa::F16;
use crate::isa::float::{Float, is_class};
use crate::isa::row::{Row, lanes};
use crate::lanes::{Bits, Only};

pub(super) const VOPC: &[&[Row]] = &[
    lanes! { Valu:
        0x10 v_cmp_class_f32(a: Bits<f32>, b: u32) -> bool = is_class(a.0, b);
        0x11 v_cmpx_class_f32(a: Bits<f32>, b: u32) -> Only = Only(is_class(a.0, b));
        0x14 v_cmp_class_f16(a: Bits<F16>, b: u32) -> bool = is_class(a.0, b);
        0x15 v_cmpx_class_f16(a: Bits<F16>, b: u32) -> Only = Only(is_class(a.0, b));
    },
    lanes! { SlowValu:
        0x12 v_cmp_class_f64(a: Bits<f64>, b: u32) -> bool = is_class(a.0, b);
        0x13 v_cmpx_class_f64(a: Bits<f64>, b: u32) -> Only = Only(is_class(a.0, b));
    },
    lanes! { Valu:
        0x20 v_cmp_f_f16(_a: F16, _b: F16) -> bool = false;
        0x21 v_cmp_lt_f16(a: F16, b: F16) -> bool = a < b;
        0x22 v_cmp_eq_f16(a: F16, b: F16) -> bool = a == b;
        0x23 v_cmp_le_f16(a: F16, b: F16) -> bool = a <= b;
        0x24 v_cmp_gt_f16(a: F16, b: F16) -> bool = a > b;
        0x25 v_cmp_lg_f16(a: F16, b: F16) -> bool = unequal(a, b);
        0x26 v_cmp_ge_f16(a: F16, b: F16) -> bool = a >= b;
        0x27 v_cmp_o_f16(a: F16, b: F16) -> bool = ordered(a, b);
        0x28 v_cmp_u_f16(a: F16, b: F16) -> bool = !ordered(a, b);
        0x29 v_cmp_nge_f16(a: F16, b: F16) -> bool = !(a >= b);
        0x2a v_cmp_nlg_f16(a: F16, b: F16) -> bool = !unequal(a, b);
        0x2b v_cmp_ngt_f16(a: F16, b: F16) -> bool = !(a > b);
        0x2c v_cmp_nle_f16(a: F16, b: F16) -> bool = !(a <= b);
        0x2d v_cmp_neq_f16(a: F16, b: F16) -> bool = a != b;
        0x2e v_cmp_nlt_f16(a: F16, b: F16) -> bool = !(a < b);
        0x2f v_cmp_tru_f16(_a: F16, _b: F16) -> bool = true;
        0x30 v_cmpx_f_f16(_a: F16, _b: F16) -> Only = Only(false);
        0x31 v_cmpx_lt_f16(a: F16, b: F16) -> Only = Only(a < b);
        0x32 v_cmpx_eq_f16(a: F16, b: F16) -> Only = Only(a == b);
        0x33 v_cmpx_le_f16(a: F16, b: F16) -> Only = Only(a <= b);
        0x34 v_cmpx_gt_f16(a: F16, b: F16) -> Only = Only(a > b);
        0x35 v_cmpx_lg_f16(a: F16, b: F16) -> Only = Only(unequal(a, b));
        0x36 v_cmpx_ge_f16(a: F16, b: F16) -> Only = Only(a >= b);
        0x37 v_cmpx_o_f16(a: F16, b: F16) -> Only = Only(ordered(a, b));
        0x38 v_cmpx_u_f16(a: F16, b: F16) -> Only = Only(!ordered(a, b));
        0x39 v_cmpx_nge_f16(a: F16, b: F16) -> Only = Only(!(a >= b));
        0x3a v_cmpx_nlg_f16(a: F16, b: F16) -> Only = Only(!unequal(a, b));
        0x3b v_cmpx_ngt_f16(a: F16, b: F16) -> Only = Only(!(a > b));
        0x3c v_cmpx_nle_f16(a: F16, b: F16) -> Only = Only(!(a <= b));
        0x3d v_cmpx_neq_f16(a: F16, b: F16) -> Only = Only(a != b);
        0x3e v_cmpx_nlt_f16(a: F16, b: F16) -> Only = Only(!(a < b));
        0x3f v_cmpx_tru_f16(_a: F16, _b: F16) -> Only = Only(true);
    },
    lanes! { Valu:
        0x40 v_cmp_f_f32(_a: f32, _b: f32) -> bool = false;
        0x41 v_cmp_lt_f32(a: f32, b: f32) -> bool = a < b;
        0x42 v_cmp_eq_f32(a: f32, b: f32) -> bool = a == b;
        0x43 v_cmp_le_f32(a: f32, b: f32) -> bool = a <= b;
        0x44 v_cmp_gt_f32(a: f32, b: f32) -> bool = a > b;
        0x45 v_cmp_lg_f32(a: f32, b: f32) -> bool = unequal(a, b);
        0x46 v_cmp_ge_f32(a: f32, b: f32) -> bool = a >= b;
        0x47 v_cmp_o_f32(a: f32, b: f32) -> bool = ordered(a, b);
        0x48 v_cmp_u_f32(a: f32, b: f32) -> bool = !ordered(a, b);
        0x49 v_cmp_nge_f32(a: f32, b: f32) -> bool = !(a >= b);
        0x4a v_cmp_nlg_f32(a: f32, b: f32) -> bool = !unequal(a, b);
        0x4b v_cmp_ngt_f32(a: f32, b: f32) -> bool = !(a > b);
        0x4c v_cmp_nle_f32(a: f32, b: f32) -> bool = !(a <= b);
        0x4d v_cmp_neq_f32(a: f32, b: f32) -> bool = a != b;
        0x4e v_cmp_nlt_f32(a: f32, b: f32) -> bool = !(a < b);
        0x4f v_cmp_tru_f32(_a: f32, _b: f32) -> bool = true;
        0x50 v_cmpx_f_f32(_a: f32, _b: f32) -> Only = Only(false);
        0x51 v_cmpx_lt_f32(a: f32, b: f32) -> Only = Only(a < b);
        0x52 v_cmpx_eq_f32(a: f32, b: f32) -> Only = Only(a == b);
        0x53 v_cmpx_le_f32(a: f32, b: f32) -> Only = Only(a <= b);
        0x54 v_cmpx_gt_f32(a: f32, b: f32) -> Only = Only(a > b);
        0x55 v_cmpx_lg_f32(a: f32, b: f32) -> Only = Only(unequal(a, b));
        0x56 v_cmpx_ge_f32(a: f32, b: f32) -> Only = Only(a >= b);
        0x57 v_cmpx_o_f32(a: f32, b: f32) -> Only = Only(ordered(a, b));
        0x58 v_cmpx_u_f32(a: f32, b: f32) -> Only = Only(!ordered(a, b));
        0x59 v_cmpx_nge_f32(a: f32, b: f32) -> Only = Only(!(a >= b));
        0x5a v_cmpx_nlg_f32(a: f32, b: f32) -> Only = Only(!unequal(a, b));
        0x5b v_cmpx_ngt_f32(a: f32, b: f32) -> Only = Only(!(a > b));
        0x5c v_cmpx_nle_f32(a: f32, b: f32) -> Only = Only(!(a <= b));
        0x5d v_cmpx_neq_f32(a: f32, b: f32) -> Only = Only(a != b);
        0x5e v_cmpx_nlt_f32(a: f32, b: f32) -> Only = Only(!(a < b));
        0x5f v_cmpx_tru_f32(_a: f32, _b: f32) -> Only = Only(true);
    },
    lanes! { SlowValu:
        0x60 v_cmp_f_f64(_a: f64, _b: f64) -> bool = false;
        0x61 v_cmp_lt_f64(a: f64, b: f64) -> bool = a < b;
        0x62 v_cmp_eq_f64(a: f64, b: f64) -> bool = a == b;
        0x63 v_cmp_le_f64(a: f64, b: f64) -> bool = a <= b;
        0x64 v_cmp_gt_f64(a: f64, b: f64) -> bool = a > b;
        0x65 v_cmp_lg_f64(a: f64, b: f64) -> bool = unequal(a, b);
        0x66 v_cmp_ge_f64(a: f64, b: f64) -> bool = a >= b;
        0x67 v_cmp_o_f64(a: f64, b: f64) -> bool = ordered(a, b);
        0x68 v_cmp_u_f64(a: f64, b: f64) -> bool = !ordered(a, b);
        0x69 v_cmp_nge_f64(a: f64, b: f64) -> bool = !(a >= b);
        0x6a v_cmp_nlg_f64(a: f64, b: f64) -> bool = !unequal(a, b);
        0x6b v_cmp_ngt_f64(a: f64, b: f64) -> bool = !(a > b);
        0x6c v_cmp_nle_f64(a: f64, b: f64) -> bool = !(a <= b);
        0x6d v_cmp_neq_f64(a: f64, b: f64) -> bool = a != b;
        0x6e v_cmp_nlt_f64(a: f64, b: f64) -> bool = !(a < b);
        0x6f v_cmp_tru_f64(_a: f64, _b: f64) -> bool = true;
        0x70 v_cmpx_f_f64(_a: f64, _b: f64) -> Only = Only(false);
        0x71 v_cmpx_lt_f64(a: f64, b: f64) -> Only = Only(a < b);
        0x72 v_cmpx_eq_f64(a: f64, b: f64) -> Only = Only(a == b);
        0x73 v_cmpx_le_f64(a: f64, b: f64) -> Only = Only(a <= b);
        0x74 v_cmpx_gt_f64(a: f64, b: f64) -> Only = Only(a > b);
        0x75 v_cmpx_lg_f64(a: f64, b: f64) -> Only = Only(unequal(a, b));
        0x76 v_cmpx_ge_f64(a: f64, b: f64) -> Only = Only(a >= b);
        0x77 v_cmpx_o_f64(a: f64, b: f64) -> Only = Only(ordered(a, b));
        0x78 v_cmpx_u_f64(a: f64, b: f64) -> Only = Only(!ordered(a, b));
        0x79 v_cmpx_nge_f64(a: f64, b: f64) -> Only = Only(!(a >= b));
        0x7a v_cmpx_nlg_f64(a: f64, b: f64) -> Only = Only(!unequal(a, b));
        0x7b v_cmpx_ngt_f64(a: f64, b: f64) -> Only = Only(!(a > b));
        0x7c v_cmpx_nle_f64(a: f64, b: f64) -> Only = Only(!(a <= b));
        0x7d v_cmpx_neq_f64(a: f64, b: f64) -> Only = Only(a != b);
        0x7e v_cmpx_nlt_f64(a: f64, b: f64) -> Only = Only(!(a < b));
        0x7f v_cmpx_tru_f64(_a: f64, _b: f64) -> Only = Only(true);
    },
    lanes! { Valu:
        0xa0 v_cmp_f_i16(_a: i16, _b: i16) -> bool = false;
        0xa1 v_cmp_lt_i16(a: i16, b: i16) -> bool = a < b;
        0xa2 v_cmp_eq_i16(a: i16, b: i16) -> bool = a == b;
        0xa3 v_cmp_le_i16(a: i16, b: i16) -> bool = a <= b;
        0xa4 v_cmp_gt_i16(a: i16, b: i16) -> bool = a > b;
        0xa5 v_cmp_ne_i16(a: i16, b: i16) -> bool = a != b;
        0xa6 v_cmp_ge_i16(a: i16, b: i16) -> bool = a >= b;
        0xa7 v_cmp_t_i16(_a: i16, _b: i16) -> bool = true;
        0xb0 v_cmpx_f_i16(_a: i16, _b: i16) -> Only = Only(false);
        0xb1 v_cmpx_lt_i16(a: i16, b: i16) -> Only = Only(a < b);
        0xb2 v_cmpx_eq_i16(a: i16, b: i16) -> Only = Only(a == b);
        0xb3 v_cmpx_le_i16(a: i16, b: i16) -> Only = Only(a <= b);
        0xb4 v_cmpx_gt_i16(a: i16, b: i16) -> Only = Only(a > b);
        0xb5 v_cmpx_ne_i16(a: i16, b: i16) -> Only = Only(a != b);
        0xb6 v_cmpx_ge_i16(a: i16, b: i16) -> Only = Only(a >= b);
        0xb7 v_cmpx_t_i16(_a: i16, _b: i16) -> Only = Only(true);
    },
    lanes! { Valu:
        0xa8 v_cmp_f_u16(_a: u16, _b: u16) -> bool = false;
        0xa9 v_cmp_lt_u16(a: u16, b: u16) -> bool = a < b;
        0xaa v_cmp_eq_u16(a: u16, b: u16) -> bool = a == b;
        0xab v_cmp_le_u16(a: u16, b: u16) -> bool = a <= b;
        0xac v_cmp_gt_u16(a: u16, b: u16) -> bool = a > b;
        0xad v_cmp_ne_u16(a: u16, b: u16) -> bool = a != b;
        0xae v_cmp_ge_u16(a: u16, b: u16) -> bool = a >= b;
        0xaf v_cmp_t_u16(_a: u16, _b: u16) -> bool = true;
        0xb8 v_cmpx_f_u16(_a: u16, _b: u16) -> Only = Only(false);
        0xb9 v_cmpx_lt_u16(a: u16, b: u16) -> Only = Only(a < b);
        0xba v_cmpx_eq_u16(a: u16, b: u16) -> Only = Only(a == b);
        0xbb v_cmpx_le_u16(a: u16, b: u16) -> Only = Only(a <= b);
        0xbc v_cmpx_gt_u16(a: u16, b: u16) -> Only = Only(a > b);
        0xbd v_cmpx_ne_u16(a: u16, b: u16) -> Only = Only(a != b);
        0xbe v_cmpx_ge_u16(a: u16, b: u16) -> Only = Only(a >= b);
        0xbf v_cmpx_t_u16(_a: u16, _b: u16) -> Only = Only(true);
    },
    lanes! { Valu:
        0xc0 v_cmp_f_i32(_a: i32, _b: i32) -> bool = false;
        0xc1 v_cmp_lt_i32(a: i32, b: i32) -> bool = a < b;
        0xc2 v_cmp_eq_i32(a: i32, b: i32) -> bool = a == b;
        0xc3 v_cmp_le_i32(a: i32, b: i32) -> bool = a <= b;
        0xc4 v_cmp_gt_i32(a: i32, b: i32) -> bool = a > b;
        0xc5 v_cmp_ne_i32(a: i32, b: i32) -> bool = a != b;
        0xc6 v_cmp_ge_i32(a: i32, b: i32) -> bool = a >= b;
        0xc7 v_cmp_t_i32(_a: i32, _b: i32) -> bool = true;
        0xd0 v_cmpx_f_i32(_a: i32, _b: i32) -> Only = Only(false);
        0xd1 v_cmpx_lt_i32(a: i32, b: i32) -> Only = Only(a < b);
        0xd2 v_cmpx_eq_i32(a: i32, b: i32) -> Only = Only(a == b);
        0xd3 v_cmpx_le_i32(a: i32, b: i32) -> Only = Only(a <= b);
        0xd4 v_cmpx_gt_i32(a: i32, b: i32) -> Only = Only(a > b);
        0xd5 v_cmpx_ne_i32(a: i32, b: i32) -> Only = Only(a != b);
        0xd6 v_cmpx_ge_i32(a: i32, b: i32) -> Only = Only(a >= b);
        0xd7 v_cmpx_t_i32(_a: i32, _b: i32) -> Only = Only(true);
    },
    lanes! { Valu:
        0xc8 v_cmp_f_u32(_a: u32, _b: u32) -> bool = false;
        0xc9 v_cmp_lt_u32(a: u32, b: u32) -> bool = a < b;
        0xca v_cmp_eq_u32(a: u32, b: u32) -> bool = a == b;
        0xcb v_cmp_le_u32(a: u32, b: u32) -> bool = a <= b;
        0xcc v_cmp_gt_u32(a: u32, b: u32) -> bool = a > b;
        0xcd v_cmp_ne_u32(a: u32, b: u32) -> bool = a != b;
        0xce v_cmp_ge_u32(a: u32, b: u32) -> bool = a >= b;
        0xcf v_cmp_t_u32(_a: u32, _b: u32) -> bool = true;
        0xd8 v_cmpx_f_u32(_a: u32, _b: u32) -> Only = Only(false);
        0xd9 v_cmpx_lt_u32(a: u32, b: u32) -> Only = Only(a < b);
        0xda v_cmpx_eq_u32(a: u32, b: u32) -> Only = Only(a == b);
        0xdb v_cmpx_le_u32(a: u32, b: u32) -> Only = Only(a <= b);
        0xdc v_cmpx_gt_u32(a: u32, b: u32) -> Only = Only(a > b);
        0xdd v_cmpx_ne_u32(a: u32, b: u32) -> Only = Only(a != b);
        0xde v_cmpx_ge_u32(a: u32, b: u32) -> Only = Only(a >= b);
        0xdf v_cmpx_t_u32(_a: u32, _b: u32) -> Only = Only(true);
    },
    lanes! { Valu:
        0xe0 v_cmp_f_i64(_a: i64, _b: i64) -> bool = false;
        0xe1 v_cmp_lt_i64(a: i64, b: i64) -> bool = a < b;
        0xe2 v_cmp_eq_i64(a: i64, b: i64) -> bool = a == b;
        0xe3 v_cmp_le_i64(a: i64, b: i64) -> bool = a <= b;
        0xe4 v_cmp_gt_i64(a: i64, b: i64) -> bool = a > b;
        0xe5 v_cmp_ne_i64(a: i64, b: i64) -> bool = a != b;
        0xe6 v_cmp_ge_i64(a: i64, b: i64) -> bool = a >= b;
        0xe7 v_cmp_t_i64(_a: i64, _b: i64) -> bool = true;
        0xf0 v_cmpx_f_i64(_a: i64, _b: i64) -> Only = Only(false);
        0xf1 v_cmpx_lt_i64(a: i64, b: i64) -> Only = Only(a < b);
        0xf2 v_cmpx_eq_i64(a: i64, b: i64) -> Only = Only(a == b);
        0xf3 v_cmpx_le_i64(a: i64, b: i64) -> Only = Only(a <= b);
        0xf4 v_cmpx_gt_i64(a: i64, b: i64) -> Only = Only(a > b);
        0xf5 v_cmpx_ne_i64(a: i64, b: i64) -> Only = Only(a != b);
        0xf6 v_cmpx_ge_i64(a: i64, b: i64) -> Only = Only(a >= b);
        0xf7 v_cmpx_t_i64(_a: i64, _b: i64) -> Only = Only(true);
    },
    lanes! { Valu:
        0xe8 v_cmp_f_u64(_a: u64, _b: u64) -> bool = false;
        0xe9 v_cmp_lt_u64(a: u64, b: u64) -> bool = a < b;
        0xea v_cmp_eq_u64(a: u64, b: u64) -> bool = a == b;
        0xeb v_cmp_le_u64(a: u64, b: u64) -> bool = a <= b;
        0xec v_cmp_gt_u64(a: u64, b: u64) -> bool = a > b;
        0xed v_cmp_ne_u64(a: u64, b: u64) -> bool = a != b;
        0xee v_cmp_ge_u64(a: u64, b: u64) -> bool = a >= b;
        0xef v_cmp_t_u64(_a: u64, _b: u64) -> bool = true;
        0xf8 v_cmpx_f_u64(_a: u64, _b: u64) -> Only = Only(false);
        0xf9 v_cmpx_lt_u64(a: u64, b: u64) -> Only = Only(a < b);
        0xfa v_cmpx_eq_u64(a: u64, b: u64) -> Only = Only(a == b);
        0xfb v_cmpx_le_u64(a: u64, b: u64) -> Only = Only(a <= b);
        0xfc v_cmpx_gt_u64(a: u64, b: u64) -> Only = Only(a > b);
        0xfd v_cmpx_ne_u64(a: u64, b: u64) -> Only = Only(a != b);
        0xfe v_cmpx_ge_u64(a: u64, b: u64) -> Only = Only(a >= b);
        0xff v_cmpx_t_u64(_a: u64, _b: u64) -> Only = Only(true);
    },
];

/// Whether neither is a NaN.
fn ordered<T: Float>(a: T, b: T) -> bool {
    !a.nan() && !b.nan()
}

/// Whether both are numbers, and not the same one.
fn unequal<T: Float>(a: T, b: T) -> bool {
    ordered(a, b) && a != b
}
