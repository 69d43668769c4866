//! Scalar arithmetic, branches and messages: SOP1, SOP2, SOPC, SOPK, SOPP.

use crate::Illegal;
use crate::descriptor::FloatMode;
use crate::isa::row::{Bus, Halt, Row, Stop, missing, rows, scalars};
use crate::isa::{Instruction, Operand};
use crate::scalar::nonzero;
use crate::wave::{State, Wave};

pub(super) const SOP2: &[&[Row]] = &[
    scalars! {
        0x00 s_add_u32(a: u32, b: u32) -> (u32, bool) = a.overflowing_add(b);
        0x01 s_sub_u32(a: u32, b: u32) -> (u32, bool) = a.overflowing_sub(b);
        0x02 s_add_i32(a: i32, b: i32) -> (i32, bool) = a.overflowing_add(b);
        0x03 s_sub_i32(a: i32, b: i32) -> (i32, bool) = a.overflowing_sub(b);
        0x04 s_addc_u32(a: u32, b: u32, scc: bool) -> (u32, bool) = {
            let sum = u64::from(a) + u64::from(b) + u64::from(scc);
            (sum as u32, sum >> 32 != 0)
        };
        0x05 s_subb_u32(a: u32, b: u32, scc: bool) -> (u32, bool) = {
            (a.wrapping_sub(b).wrapping_sub(u32::from(scc)), u64::from(a) < u64::from(b) + u64::from(scc))
        };
        0x06 s_min_i32(a: i32, b: i32) -> (i32, bool) = (a.min(b), a < b);
        0x07 s_min_u32(a: u32, b: u32) -> (u32, bool) = (a.min(b), a < b);
        0x08 s_max_i32(a: i32, b: i32) -> (i32, bool) = (a.max(b), a > b);
        0x09 s_max_u32(a: u32, b: u32) -> (u32, bool) = (a.max(b), a > b);
        0x0a s_cselect_b32(a: u32, b: u32, scc: bool) -> u32 = if scc { a } else { b };
        0x0b s_cselect_b64(a: u64, b: u64, scc: bool) -> u64 = if scc { a } else { b };
        0x0c s_and_b32(a: u32, b: u32) -> (u32, bool) = nonzero(a & b);
        0x0d s_and_b64(a: u64, b: u64) -> (u64, bool) = nonzero(a & b);
        0x0e s_or_b32(a: u32, b: u32) -> (u32, bool) = nonzero(a | b);
        0x0f s_or_b64(a: u64, b: u64) -> (u64, bool) = nonzero(a | b);
        0x10 s_xor_b32(a: u32, b: u32) -> (u32, bool) = nonzero(a ^ b);
        0x11 s_xor_b64(a: u64, b: u64) -> (u64, bool) = nonzero(a ^ b);
        0x12 s_andn2_b32(a: u32, b: u32) -> (u32, bool) = nonzero(a & !b);
        0x13 s_andn2_b64(a: u64, b: u64) -> (u64, bool) = nonzero(a & !b);
        0x14 s_orn2_b32(a: u32, b: u32) -> (u32, bool) = nonzero(a | !b);
        0x15 s_orn2_b64(a: u64, b: u64) -> (u64, bool) = nonzero(a | !b);
        0x16 s_nand_b32(a: u32, b: u32) -> (u32, bool) = nonzero(!(a & b));
        0x17 s_nand_b64(a: u64, b: u64) -> (u64, bool) = nonzero(!(a & b));
        0x18 s_nor_b32(a: u32, b: u32) -> (u32, bool) = nonzero(!(a | b));
        0x19 s_nor_b64(a: u64, b: u64) -> (u64, bool) = nonzero(!(a | b));
        0x1a s_xnor_b32(a: u32, b: u32) -> (u32, bool) = nonzero(!(a ^ b));
        0x1b s_xnor_b64(a: u64, b: u64) -> (u64, bool) = nonzero(!(a ^ b));
        0x1c s_lshl_b32(a: u32, b: u32) -> (u32, bool) = nonzero(a << (b & 31));
        0x1d s_lshl_b64(a: u64, b: u32) -> (u64, bool) = nonzero(a << (b & 63));
        0x1e s_lshr_b32(a: u32, b: u32) -> (u32, bool) = nonzero(a >> (b & 31));
        0x1f s_lshr_b64(a: u64, b: u32) -> (u64, bool) = nonzero(a >> (b & 63));
        0x20 s_ashr_i32(a: i32, b: u32) -> (i32, bool) = nonzero(a >> (b & 31));
        0x21 s_ashr_i64(a: i64, b: u32) -> (i64, bool) = nonzero(a >> (b & 63));
        0x22 s_bfm_b32(a: u32, b: u32) -> u32 = ((1 << (a & 31)) - 1) << (b & 31);
        0x23 s_bfm_b64(a: u32, b: u32) -> u64 = ((1 << (a & 63)) - 1) << (b & 63);
        0x24 s_mul_i32(a: i32, b: i32) -> i32 = a.wrapping_mul(b);
        0x25 s_bfe_u32(a: u32, b: u32) -> (u32, bool) = nonzero(field(u64::from(a), b & 31, b >> 16 & 0x7f, 32) as u32);
        0x26 s_bfe_i32(a: i32, b: u32) -> (i32, bool) = nonzero(signed_field(i64::from(a), b & 31, b >> 16 & 0x7f, 32) as i32);
        0x27 s_bfe_u64(a: u64, b: u32) -> (u64, bool) = nonzero(field(a, b & 63, b >> 16 & 0x7f, 64));
        0x28 s_bfe_i64(a: i64, b: u32) -> (i64, bool) = nonzero(signed_field(a, b & 63, b >> 16 & 0x7f, 64));
        0x2a s_absdiff_i32(a: i32, b: i32) -> (i32, bool) = nonzero(a.wrapping_sub(b).wrapping_abs());
        0x2c s_mul_hi_u32(a: u32, b: u32) -> u32 = ((u64::from(a) * u64::from(b)) >> 32) as u32;
        0x2d s_mul_hi_i32(a: i32, b: i32) -> i32 = ((i64::from(a) * i64::from(b)) >> 32) as i32;
        0x2e s_lshl1_add_u32(a: u32, b: u32) -> (u32, bool) = shift_add(a, 1, b);
        0x2f s_lshl2_add_u32(a: u32, b: u32) -> (u32, bool) = shift_add(a, 2, b);
        0x30 s_lshl3_add_u32(a: u32, b: u32) -> (u32, bool) = shift_add(a, 3, b);
        0x31 s_lshl4_add_u32(a: u32, b: u32) -> (u32, bool) = shift_add(a, 4, b);
        0x32 s_pack_ll_b32_b16(a: u32, b: u32) -> u32 = a & 0xffff | b << 16;
        0x33 s_pack_lh_b32_b16(a: u32, b: u32) -> u32 = a & 0xffff | b & 0xffff_0000;
        0x34 s_pack_hh_b32_b16(a: u32, b: u32) -> u32 = a >> 16 | b & 0xffff_0000;
    },
    missing! {
        0x29 s_cbranch_g_fork;
        0x2b s_rfe_restore_b64;
    },
];

pub(super) const SOP1: &[&[Row]] = &[
    scalars! {
        0x00 s_mov_b32(a: u32) -> u32 = a;
        0x01 s_mov_b64(a: u64) -> u64 = a;
        0x02 s_cmov_b32(a: u32, old: u32, scc: bool) -> u32 = if scc { a } else { old };
        0x03 s_cmov_b64(a: u64, old: u64, scc: bool) -> u64 = if scc { a } else { old };
        0x04 s_not_b32(a: u32) -> (u32, bool) = nonzero(!a);
        0x05 s_not_b64(a: u64) -> (u64, bool) = nonzero(!a);
        0x06 s_wqm_b32(a: u32) -> (u32, bool) = nonzero(whole_quads(u64::from(a)) as u32);
        0x07 s_wqm_b64(a: u64) -> (u64, bool) = nonzero(whole_quads(a));
        0x08 s_brev_b32(a: u32) -> u32 = a.reverse_bits();
        0x09 s_brev_b64(a: u64) -> u64 = a.reverse_bits();
        0x0a s_bcnt0_i32_b32(a: u32) -> (u32, bool) = nonzero(a.count_zeros());
        0x0b s_bcnt0_i32_b64(a: u64) -> (u32, bool) = nonzero(a.count_zeros());
        0x0c s_bcnt1_i32_b32(a: u32) -> (u32, bool) = nonzero(a.count_ones());
        0x0d s_bcnt1_i32_b64(a: u64) -> (u32, bool) = nonzero(a.count_ones());
        0x0e s_ff0_i32_b32(a: u32) -> i32 = first(a.trailing_ones(), 32);
        0x0f s_ff0_i32_b64(a: u64) -> i32 = first(a.trailing_ones(), 64);
        0x10 s_ff1_i32_b32(a: u32) -> i32 = first(a.trailing_zeros(), 32);
        0x11 s_ff1_i32_b64(a: u64) -> i32 = first(a.trailing_zeros(), 64);
        0x12 s_flbit_i32_b32(a: u32) -> i32 = first(a.leading_zeros(), 32);
        0x13 s_flbit_i32_b64(a: u64) -> i32 = first(a.leading_zeros(), 64);
        0x14 s_flbit_i32(a: u32) -> i32 = first(a.leading_zeros().max(a.leading_ones()), 32);
        0x15 s_flbit_i32_i64(a: u64) -> i32 = first(a.leading_zeros().max(a.leading_ones()), 64);
        0x16 s_sext_i32_i8(a: u32) -> i32 = i32::from(a as i8);
        0x17 s_sext_i32_i16(a: u32) -> i32 = i32::from(a as i16);
        0x18 s_bitset0_b32(a: u32, old: u32) -> u32 = old & !(1 << (a & 31));
        0x19 s_bitset0_b64(a: u32, old: u64) -> u64 = old & !(1 << (a & 63));
        0x1a s_bitset1_b32(a: u32, old: u32) -> u32 = old | 1 << (a & 31);
        0x1b s_bitset1_b64(a: u32, old: u64) -> u64 = old | 1 << (a & 63);
        0x28 s_quadmask_b32(a: u32) -> (u32, bool) = nonzero(quad_mask(u64::from(a)) as u32);
        0x29 s_quadmask_b64(a: u64) -> (u64, bool) = nonzero(quad_mask(a));
        0x30 s_abs_i32(a: i32) -> (i32, bool) = nonzero(a.wrapping_abs());
        0x37 s_bitreplicate_b64_b32(a: u32) -> u64 = (0..32).fold(0, |all, bit| all | (u64::from(a >> bit & 1) * 3) << (2 * bit));
    },
    rows! { Registers:
        0x1c s_getpc_b64: Salu U64 [] = |wave, op| set_pair(wave, op, wave.pc);
        0x1d s_setpc_b64: Control Implied [U64] = |wave, op| wave.pc = target(wave, op);
        0x1e s_swappc_b64: Control U64 [U64] = |wave, op| {
            let (next, target) = (wave.pc, target(wave, op));
            set_pair(wave, op, next);
            wave.pc = target;
        };
        0x20 s_and_saveexec_b64: Salu U64 [U64] = |wave, op| save_exec(wave, op, |a, exec| a & exec);
        0x21 s_or_saveexec_b64: Salu U64 [U64] = |wave, op| save_exec(wave, op, |a, exec| a | exec);
        0x22 s_xor_saveexec_b64: Salu U64 [U64] = |wave, op| save_exec(wave, op, |a, exec| a ^ exec);
        0x23 s_andn2_saveexec_b64: Salu U64 [U64] = |wave, op| save_exec(wave, op, |a, exec| a & !exec);
        0x24 s_orn2_saveexec_b64: Salu U64 [U64] = |wave, op| save_exec(wave, op, |a, exec| a | !exec);
        0x25 s_nand_saveexec_b64: Salu U64 [U64] = |wave, op| save_exec(wave, op, |a, exec| !(a & exec));
        0x26 s_nor_saveexec_b64: Salu U64 [U64] = |wave, op| save_exec(wave, op, |a, exec| !(a | exec));
        0x27 s_xnor_saveexec_b64: Salu U64 [U64] = |wave, op| save_exec(wave, op, |a, exec| !(a ^ exec));
        0x33 s_andn1_saveexec_b64: Salu U64 [U64] = |wave, op| save_exec(wave, op, |a, exec| !a & exec);
        0x34 s_orn1_saveexec_b64: Salu U64 [U64] = |wave, op| save_exec(wave, op, |a, exec| !a | exec);
        0x35 s_andn1_wrexec_b64: Salu U64 [U64] = |wave, op| write_exec(wave, op, |a, exec| !a & exec);
        0x36 s_andn2_wrexec_b64: Salu U64 [U64] = |wave, op| write_exec(wave, op, |a, exec| a & !exec);
    },
    missing! {
        0x1f s_rfe_b64;
        0x2a s_movrels_b32;
        0x2b s_movrels_b64;
        0x2c s_movreld_b32;
        0x2d s_movreld_b64;
        0x2e s_cbranch_join;
        0x32 s_set_gpr_idx_idx;
    },
];

pub(super) const SOPC: &[&[Row]] = &[
    scalars! {
        0x00 s_cmp_eq_i32(a: i32, b: i32) -> bool = a == b;
        0x01 s_cmp_lg_i32(a: i32, b: i32) -> bool = a != b;
        0x02 s_cmp_gt_i32(a: i32, b: i32) -> bool = a > b;
        0x03 s_cmp_ge_i32(a: i32, b: i32) -> bool = a >= b;
        0x04 s_cmp_lt_i32(a: i32, b: i32) -> bool = a < b;
        0x05 s_cmp_le_i32(a: i32, b: i32) -> bool = a <= b;
        0x06 s_cmp_eq_u32(a: u32, b: u32) -> bool = a == b;
        0x07 s_cmp_lg_u32(a: u32, b: u32) -> bool = a != b;
        0x08 s_cmp_gt_u32(a: u32, b: u32) -> bool = a > b;
        0x09 s_cmp_ge_u32(a: u32, b: u32) -> bool = a >= b;
        0x0a s_cmp_lt_u32(a: u32, b: u32) -> bool = a < b;
        0x0b s_cmp_le_u32(a: u32, b: u32) -> bool = a <= b;
        0x0c s_bitcmp0_b32(a: u32, b: u32) -> bool = a >> (b & 31) & 1 == 0;
        0x0d s_bitcmp1_b32(a: u32, b: u32) -> bool = a >> (b & 31) & 1 != 0;
        0x0e s_bitcmp0_b64(a: u64, b: u32) -> bool = a >> (b & 63) & 1 == 0;
        0x0f s_bitcmp1_b64(a: u64, b: u32) -> bool = a >> (b & 63) & 1 != 0;
        0x12 s_cmp_eq_u64(a: u64, b: u64) -> bool = a == b;
        0x13 s_cmp_lg_u64(a: u64, b: u64) -> bool = a != b;
    },
    missing! {
        0x10 s_setvskip;
        0x11 s_set_gpr_idx_on;
    },
];

pub(super) const SOPK: &[&[Row]] = &[
    scalars! {
        0x00 s_movk_i32(k: i32) -> i32 = k;
        0x02 s_cmpk_eq_i32(a: i32, k: i32) -> bool = a == k;
        0x03 s_cmpk_lg_i32(a: i32, k: i32) -> bool = a != k;
        0x04 s_cmpk_gt_i32(a: i32, k: i32) -> bool = a > k;
        0x05 s_cmpk_ge_i32(a: i32, k: i32) -> bool = a >= k;
        0x06 s_cmpk_lt_i32(a: i32, k: i32) -> bool = a < k;
        0x07 s_cmpk_le_i32(a: i32, k: i32) -> bool = a <= k;
        0x08 s_cmpk_eq_u32(a: u32, k: u32) -> bool = a == k;
        0x09 s_cmpk_lg_u32(a: u32, k: u32) -> bool = a != k;
        0x0a s_cmpk_gt_u32(a: u32, k: u32) -> bool = a > k;
        0x0b s_cmpk_ge_u32(a: u32, k: u32) -> bool = a >= k;
        0x0c s_cmpk_lt_u32(a: u32, k: u32) -> bool = a < k;
        0x0d s_cmpk_le_u32(a: u32, k: u32) -> bool = a <= k;
        0x01 s_cmovk_i32(old: i32, k: i32, scc: bool) -> i32 = if scc { k } else { old };
        0x0e s_addk_i32(old: i32, k: i32) -> (i32, bool) = old.overflowing_add(k);
        0x0f s_mulk_i32(old: i32, k: i32) -> i32 = old.wrapping_mul(k);
    },
    rows! { Registers:
        0x15 s_call_b64: Control U64 [] = |wave, op| {
            set_pair(wave, op, wave.pc);
            branch(wave, op, true);
        };
    },
    rows! { Machine:
        0x11 s_getreg_b32: Salu U32 [] = get_register;
        0x12 s_setreg_b32: Salu Implied [U32, U32] = |wave, _, op| set_register(wave, op, wave.scalar32(op.src[0]));
        0x14 s_setreg_imm32_b32: Salu Implied [Literal] = |wave, _, op| set_register(wave, op, wave.scalar32(op.src[0]));
    },
    missing! {
        0x10 s_cbranch_i_fork;
    },
];

pub(super) const SOPP: &[&[Row]] = &[
    rows! { Registers:
        0x00 s_nop: Control Implied [] = |_, _| {};
        0x02 s_branch: Control Implied [] = |wave, op| branch(wave, op, true);
        0x03 s_wakeup: Control Implied [] = |_, _| {};
        0x04 s_cbranch_scc0: Control Implied [] = |wave, op| branch(wave, op, !wave.scc);
        0x05 s_cbranch_scc1: Control Implied [] = |wave, op| branch(wave, op, wave.scc);
        0x06 s_cbranch_vccz: Control Implied [] = |wave, op| branch(wave, op, wave.vcc() == 0);
        0x07 s_cbranch_vccnz: Control Implied [] = |wave, op| branch(wave, op, wave.vcc() != 0);
        0x08 s_cbranch_execz: Control Implied [] = |wave, op| branch(wave, op, wave.exec() == 0);
        0x09 s_cbranch_execnz: Control Implied [] = |wave, op| branch(wave, op, wave.exec() != 0);
        0x0c s_waitcnt: Control Implied [] = |_, _| {};
        0x0f s_setprio: Control Implied [] = |_, _| {};
        0x13 s_icache_inv: Control Implied [] = |_, _| {};
        0x14 s_incperflevel: Control Implied [] = |_, _| {};
        0x15 s_decperflevel: Control Implied [] = |_, _| {};
        0x16 s_ttracedata: Control Implied [] = |_, _| {};
        0x17 s_cbranch_cdbgsys: Control Implied [] = |_, _| {};
        0x18 s_cbranch_cdbguser: Control Implied [] = |_, _| {};
        0x19 s_cbranch_cdbgsys_or_user: Control Implied [] = |_, _| {};
        0x1a s_cbranch_cdbgsys_and_user: Control Implied [] = |_, _| {};
    },
    rows! { Machine:
        0x01 s_endpgm: Control Implied [] = |_, _, _| Err(Stop::Pause(State::Ended));
        0x0a s_barrier: Control Implied [] = |_, _, _| Err(Stop::Pause(State::AtBarrier));
        0x0e s_sleep: Control Implied [] = |_, _, _| Err(Stop::Pause(State::Running));
        0x10 s_sendmsg: Control Implied [] = send_message;
        0x12 s_trap: Control Implied [] = |_, _, op| Err(Stop::Halt(Halt::Trap(op.offset as u8)));
    },
    missing! {
        0x0b s_setkill;
        0x0d s_sethalt;
        0x11 s_sendmsghalt;
        0x1b s_endpgm_saved;
        0x1c s_set_gpr_idx_off;
        0x1d s_set_gpr_idx_mode;
        0x1e s_endpgm_ordered_ps_done;
    },
];

/// `width` bits from bit `offset` of a value of `bits` bits.
fn field(value: u64, offset: u32, width: u32, bits: u32) -> u64 {
    let value = value >> offset;
    if width >= bits {
        value
    } else {
        value & ((1 << width) - 1)
    }
}

/// The same, sign-extended.
fn signed_field(value: i64, offset: u32, width: u32, bits: u32) -> i64 {
    match width {
        0 => 0,
        _ if offset + width >= bits => value >> offset,
        _ => value << (64 - offset - width) >> (64 - width),
    }
}

fn shift_add(a: u32, shift: u32, b: u32) -> (u32, bool) {
    let sum = (u64::from(a) << shift) + u64::from(b);
    (sum as u32, sum >> 32 != 0)
}

/// A bit's position, or -1 where there is no such bit.
fn first(position: u32, bits: u32) -> i32 {
    if position >= bits {
        -1
    } else {
        position as i32
    }
}

/// Per group of four bits, all of them if any is set.
fn whole_quads(mask: u64) -> u64 {
    (0..16)
        .map(|quad| 0xf << (4 * quad))
        .filter(|quad| mask & quad != 0)
        .fold(0, |all, quad| all | quad)
}

/// Per group of four bits, one bit that says whether any is set.
fn quad_mask(mask: u64) -> u64 {
    (0..16)
        .filter(|quad| mask >> (4 * quad) & 0xf != 0)
        .fold(0, |all, quad| all | 1 << quad)
}

fn set_pair(wave: &mut Wave, op: &Instruction, value: u64) {
    if let Operand::Scalar(first) = op.dst {
        wave.set_pair(first, value);
    }
}

/// Where a jump through registers goes; code is aligned to dwords.
fn target(wave: &Wave, op: &Instruction) -> u64 {
    wave.scalar64(op.src[0]) & !3
}

/// Jumps by dwords relative to the next instruction.
fn branch(wave: &mut Wave, op: &Instruction, taken: bool) {
    if taken {
        wave.pc = wave.pc.wrapping_add_signed(i64::from(op.offset) * 4);
    }
}

/// Saves EXEC and replaces it.
fn save_exec(wave: &mut Wave, op: &Instruction, f: impl Fn(u64, u64) -> u64) {
    let (a, exec) = (wave.scalar64(op.src[0]), wave.exec());
    set_pair(wave, op, exec);
    wave.set_exec(f(a, exec));
    wave.scc = wave.exec() != 0;
}

/// Replaces EXEC and copies it.
fn write_exec(wave: &mut Wave, op: &Instruction, f: impl Fn(u64, u64) -> u64) {
    let exec = f(wave.scalar64(op.src[0]), wave.exec());
    wave.set_exec(exec);
    set_pair(wave, op, exec);
    wave.scc = exec != 0;
}

/// Number of a hardware register.
const MODE: u32 = 1;
const HW_ID: u32 = 4;
const SH_MEM_BASES: u32 = 15;

/// Register, first bit and bits that a `getreg` or `setreg` names.
fn register_field(op: &Instruction) -> (u32, u32, u32) {
    let immediate = op.offset as u32;
    (
        immediate & 0x3f,
        immediate >> 6 & 0x1f,
        (immediate >> 11 & 0x1f) + 1,
    )
}

fn get_register(wave: &mut Wave, _: &mut Bus<'_>, op: &Instruction) -> Result<(), Stop> {
    let (register, offset, width) = register_field(op);
    let value = match register {
        MODE => wave.mode.bits(),
        HW_ID => 0,
        SH_MEM_BASES => {
            (wave.apertures.private >> 48) as u32 | (wave.apertures.shared >> 48 << 16) as u32
        }
        _ => return Err(Illegal::Mode.into()),
    };
    if let Operand::Scalar(first) = op.dst {
        wave.scalars[usize::from(first)] = field(u64::from(value), offset, width, 32) as u32;
    }
    Ok(())
}

fn set_register(wave: &mut Wave, op: &Instruction, value: u32) -> Result<(), Stop> {
    let (register, offset, width) = register_field(op);
    if register != MODE {
        return Err(Illegal::Mode.into());
    }
    let mask = (u32::MAX >> (32 - width)) << offset;
    let bits = wave.mode.bits() & !mask | value << offset & mask;
    wave.mode = FloatMode::from_bits(bits).ok_or(Illegal::Mode)?;
    Ok(())
}

/// Message 1 interrupts the host with the event number in M0.
fn send_message(wave: &mut Wave, bus: &mut Bus<'_>, op: &Instruction) -> Result<(), Stop> {
    if op.offset & 0xf != 1 {
        return Err(Illegal::Mode.into());
    }
    bus.stored = true;
    if let Some(raise) = &mut bus.interrupt {
        raise(wave.m0() & 0xff_ffff);
    }
    Ok(())
}
