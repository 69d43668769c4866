//! Branches, EXEC, waits, messages, and moves between lanes and scalar registers.

use proptest::prelude::*;

use super::machine::{
    MASK_IN, Machine, RESULT, SCALAR_RESULT, SCALAR_SOURCES, SOURCES, long, scalar,
};
use crate::isa::row::{Halt, Stop};
use crate::wave::State;

/// EXEC after, from the operand and EXEC before.
const SAVE: &[(&str, fn(u64, u64) -> u64)] = &[
    ("s_and_saveexec_b64", |a, exec| a & exec),
    ("s_or_saveexec_b64", |a, exec| a | exec),
    ("s_xor_saveexec_b64", |a, exec| (a | exec) - (a & exec)),
    ("s_andn2_saveexec_b64", |a, exec| a - (a & exec)),
    ("s_orn2_saveexec_b64", |a, exec| a | (u64::MAX - exec)),
    ("s_nand_saveexec_b64", |a, exec| u64::MAX - (a & exec)),
    ("s_nor_saveexec_b64", |a, exec| u64::MAX - (a | exec)),
    ("s_xnor_saveexec_b64", |a, exec| {
        u64::MAX - ((a | exec) - (a & exec))
    }),
    ("s_andn1_saveexec_b64", |a, exec| exec - (a & exec)),
    ("s_orn1_saveexec_b64", |a, exec| exec | (u64::MAX - a)),
];

/// The same, with the result being EXEC after.
const WRITE: &[(&str, fn(u64, u64) -> u64)] = &[
    ("s_andn1_wrexec_b64", |a, exec| exec - (a & exec)),
    ("s_andn2_wrexec_b64", |a, exec| a - (a & exec)),
];

/// Whether a branch is taken, from SCC, VCC and EXEC.
const BRANCHES: &[(&str, fn(bool, u64, u64) -> bool)] = &[
    ("s_branch", |_, _, _| true),
    ("s_cbranch_scc0", |scc, _, _| !scc),
    ("s_cbranch_scc1", |scc, _, _| scc),
    ("s_cbranch_vccz", |_, vcc, _| vcc == 0),
    ("s_cbranch_vccnz", |_, vcc, _| vcc != 0),
    ("s_cbranch_execz", |_, _, exec| exec == 0),
    ("s_cbranch_execnz", |_, _, exec| exec != 0),
    ("s_cbranch_cdbgsys", |_, _, _| false),
    ("s_cbranch_cdbguser", |_, _, _| false),
    ("s_cbranch_cdbgsys_or_user", |_, _, _| false),
    ("s_cbranch_cdbgsys_and_user", |_, _, _| false),
];

/// Instructions without an effect that the emulator models.
const NOTHING: [(&str, [u32; 2]); 20] = [
    ("s_nop", [0xbf80_0003, 0]),
    ("s_wakeup", [0xbf83_0000, 0]),
    ("s_waitcnt", [0xbf8c_0000, 0]),
    ("s_setprio", [0xbf8f_0001, 0]),
    ("s_icache_inv", [0xbf93_0000, 0]),
    ("s_incperflevel", [0xbf94_0001, 0]),
    ("s_decperflevel", [0xbf95_0001, 0]),
    ("s_ttracedata", [0xbf96_0000, 0]),
    ("v_nop", [0x7e00_0000, 0]),
    ("v_clrexcp", [0x7e00_6a00, 0]),
    ("ds_nop", [0xd828_0000, 0]),
    ("s_dcache_inv", [0xc080_0000, 0]),
    ("s_dcache_wb", [0xc084_0000, 0]),
    ("s_dcache_inv_vol", [0xc088_0000, 0]),
    ("s_dcache_wb_vol", [0xc08c_0000, 0]),
    ("buffer_wbl2", [0xe0a0_0000, 0]),
    ("buffer_invl2", [0xe0a4_0000, 0]),
    ("buffer_wbinvl1", [0xe0f8_0000, 0]),
    ("buffer_wbinvl1_vol", [0xe0fc_0000, 0]),
    ("v_nop", [0x7e00_0000, 0]),
];

/// What has a test of its own below.
const SINGLE: [&str; 27] = [
    "s_getpc_b64",
    "s_setpc_b64",
    "s_swappc_b64",
    "s_call_b64",
    "s_getreg_b32",
    "s_setreg_b32",
    "s_setreg_imm32_b32",
    "s_endpgm",
    "s_barrier",
    "s_sleep",
    "s_sendmsg",
    "s_trap",
    "s_memtime",
    "s_memrealtime",
    "v_cndmask_b32",
    "v_readfirstlane_b32",
    "v_readlane_b32",
    "v_writelane_b32",
    "v_mbcnt_lo_u32_b32",
    "v_mbcnt_hi_u32_b32",
    "v_accvgpr_read_b32",
    "v_accvgpr_write_b32",
    "v_accvgpr_mov_b32",
    "v_pk_mov_b32",
    "s_nop",
    "v_nop",
    "s_waitcnt",
];

pub(super) fn stated() -> Vec<String> {
    let named = SAVE
        .iter()
        .chain(WRITE)
        .map(|(name, _)| *name)
        .chain(BRANCHES.iter().map(|(name, _)| *name));
    named
        .chain(NOTHING.map(|(name, _)| name))
        .chain(SINGLE)
        .map(str::to_owned)
        .collect()
}

proptest! {
    #[test]
    fn exec_is_saved_and_replaced(a in any::<u64>(), exec in any::<u64>(), zero in any::<bool>()) {
        let a = if zero { 0 } else { a };
        for &(name, expected) in SAVE.iter().chain(WRITE) {
            let mut machine = Machine::new();
            machine.wave.set_exec(exec);
            machine.wave.set_pair(SCALAR_SOURCES[0], a);
            machine.run(scalar(name, 0));
            let after = expected(a, exec);
            let result = if name.contains("wrexec") { after } else { exec };
            prop_assert_eq!(machine.wave.exec(), after, "{}", name);
            prop_assert_eq!(machine.wave.pair(SCALAR_RESULT), result, "{}", name);
            prop_assert_eq!(machine.wave.scc, after != 0, "{}", name);
        }
    }

    #[test]
    fn branches(scc in any::<bool>(), vcc in 0u64..2, exec in 0u64..2, distance in any::<i16>()) {
        for &(name, taken) in BRANCHES {
            let mut machine = Machine::new();
            machine.wave.pc = 0x10_0000;
            machine.wave.scc = scc;
            machine.wave.set_pair(106, vcc << 40);
            machine.wave.set_exec(exec << 63);
            machine.run(scalar(name, distance as u16));
            let jump = if taken(scc, vcc, exec) { 4 * i64::from(distance) } else { 0 };
            prop_assert_eq!(machine.wave.pc, 0x10_0004u64.wrapping_add_signed(jump), "{}", name);
        }
    }

    #[test]
    fn lanes_and_masks(exec in any::<u64>(), mask in any::<u64>(), lane in any::<u32>(), data in any::<u64>()) {
        let mut machine = Machine::new();
        machine.wave.set_exec(exec);
        machine.wave.set_pair(MASK_IN, mask);
        let operands = |machine: &Machine, n: usize| -> Vec<u32> { machine.wave.vectors[usize::from(SOURCES[n])].to_vec() };
        let (a, b) = (operands(&machine, 0), operands(&machine, 1));
        let chosen = long("v_cndmask_b32");
        machine.run(chosen);
        for lane in crate::wave::on(exec) {
            let expected = if mask >> lane & 1 != 0 { b[lane] } else { a[lane] };
            prop_assert_eq!(machine.wave.vectors[usize::from(RESULT)][lane], expected);
        }
        // Count the bits below the lane, of each half of a mask.
        machine.wave.vectors[usize::from(SOURCES[0])] = [data as u32; 64];
        machine.run(long("v_mbcnt_lo_u32_b32"));
        machine.wave.vectors[usize::from(SOURCES[1])] = machine.wave.vectors[usize::from(RESULT)];
        machine.wave.vectors[usize::from(SOURCES[0])] = [(data >> 32) as u32; 64];
        machine.run(long("v_mbcnt_hi_u32_b32"));
        for lane in crate::wave::on(exec) {
            let below = (0..lane).filter(|i| data >> i & 1 != 0).count() as u32;
            prop_assert_eq!(machine.wave.vectors[usize::from(RESULT)][lane], b[lane].wrapping_add(below));
        }
        // One lane to a scalar register and back, whether lanes are on or not.
        machine.wave.scalars[8] = lane;
        machine.wave.scalars[4] = data as u32;
        machine.run([0xd289_0000 | u32::from(SCALAR_RESULT), 256 + u32::from(SOURCES[2]) | 8 << 9]);
        let source = machine.wave.vectors[usize::from(SOURCES[2])];
        prop_assert_eq!(machine.wave.scalars[usize::from(SCALAR_RESULT)], source[lane as usize % 64]);
        machine.run([0xd28a_0000 | u32::from(RESULT), 4 | 8 << 9]);
        prop_assert_eq!(machine.wave.vectors[usize::from(RESULT)][lane as usize % 64], data as u32);
        machine.run([0x7e00_0500 | u32::from(SCALAR_RESULT) << 17 | u32::from(SOURCES[2]), 0]);
        let first = if exec == 0 { 0 } else { exec.trailing_zeros() as usize };
        prop_assert_eq!(machine.wave.scalars[usize::from(SCALAR_RESULT)], source[first]);
    }

    #[test]
    fn moves(exec in any::<u64>(), op_sel in 0u32..4) {
        let mut machine = Machine::new();
        machine.wave.set_exec(exec);
        // Accumulation register 3 is vector register 35 here.
        let [source, accum] = [usize::from(SOURCES[0]), 35];
        let (before, data) = (machine.wave.vectors[accum], machine.wave.vectors[source]);
        machine.run([0xd3d9_4003, 0x1800_0100 | u32::from(SOURCES[0])]);
        let written = machine.wave.vectors[accum];
        for lane in 0..64 {
            prop_assert_eq!(written[lane], if exec >> lane & 1 != 0 { data[lane] } else { before[lane] });
        }
        machine.run([0xd3d8_4000 | u32::from(RESULT), 0x1800_0103]);
        machine.run([0x7e00_a503 | 4 << 17, 0]);
        for lane in crate::wave::on(exec) {
            prop_assert_eq!(machine.wave.vectors[usize::from(RESULT)][lane], data[lane]);
            prop_assert_eq!(machine.wave.vectors[36][lane], data[lane]);
        }
        let words = long("v_pk_mov_b32");
        machine.run([words[0] | op_sel << 11, words[1]]);
        for lane in crate::wave::on(exec) {
            let half = |n: usize| machine.vector(SOURCES[n] + (op_sel >> n & 1) as u16, lane, 1);
            prop_assert_eq!(machine.vector(RESULT, lane, 2), half(0) | half(1) << 32);
        }
    }

    #[test]
    fn hardware_registers(first in 0u32..32, width in 1u32..33, value in any::<u32>()) {
        let width = width.min(32 - first);
        let field = (width - 1) << 11 | first << 6;
        let bits = |value: u64| (value >> first) % (1 << width);
        let mut machine = Machine::new();
        // MODE: subnormals everywhere, IEEE and clamp; the apertures' top halves.
        for (register, whole) in [(1, 0x3f0), (15, 0x0001_0002), (4, 0)] {
            machine.run(scalar("s_getreg_b32", (field | register) as u16));
            prop_assert_eq!(u64::from(machine.wave.scalars[usize::from(SCALAR_RESULT)]), bits(whole));
        }
        // The rounding bits can't be set, and only modelled ones come back.
        let mode = 0x3f0 & !(((1u64 << width) - 1) << first) | (u64::from(value) % (1 << width)) << first;
        for immediate in [false, true] {
            let mut machine = Machine::new();
            machine.wave.scalars[usize::from(SCALAR_RESULT)] = value;
            let name = if immediate { "s_setreg_imm32_b32" } else { "s_setreg_b32" };
            let [word, _] = scalar(name, (field | 1) as u16);
            match machine.step([word, value]) {
                Ok(()) => {
                    prop_assert_eq!(mode & 0xf, 0);
                    prop_assert_eq!(u64::from(machine.wave.mode.bits()), mode & 0x3f0);
                }
                Err(_) => prop_assert_ne!(mode & 0xf, 0),
            }
        }
    }
}

#[test]
fn calls_and_returns() {
    let mut machine = Machine::new();
    machine.wave.pc = 0x10_0000;
    machine.run(scalar("s_getpc_b64", 0));
    assert_eq!(machine.wave.pair(SCALAR_RESULT), 0x10_0004);
    machine.wave.set_pair(SCALAR_SOURCES[0], 0x20_0003);
    machine.run(scalar("s_swappc_b64", 0));
    assert_eq!(
        (machine.wave.pc, machine.wave.pair(SCALAR_RESULT)),
        (0x20_0000, 0x10_0008)
    );
    machine.run(scalar("s_call_b64", 0xffff));
    assert_eq!(
        (machine.wave.pc, machine.wave.pair(SCALAR_RESULT)),
        (0x20_0000, 0x20_0004)
    );
    machine.wave.set_pair(SCALAR_SOURCES[0], 0x10_0008);
    machine.run(scalar("s_setpc_b64", 0));
    assert_eq!(machine.wave.pc, 0x10_0008);
}

#[test]
fn waves_stop() {
    let mut machine = Machine::new();
    for (name, state) in [
        ("s_endpgm", State::Ended),
        ("s_barrier", State::AtBarrier),
        ("s_sleep", State::Running),
    ] {
        let stop = machine.step(scalar(name, 0));
        assert!(
            matches!(stop, Err(Stop::Pause(found)) if found == state),
            "{name}"
        );
    }
    assert!(matches!(
        machine.step(scalar("s_trap", 2)),
        Err(Stop::Halt(Halt::Trap(2)))
    ));
    machine.wave.scalars[124] = 0xff00_0123;
    machine.run(scalar("s_sendmsg", 1));
    assert_eq!(machine.interrupts, [0x123]);
    assert!(machine.step(scalar("s_sendmsg", 2)).is_err());
    for word in [0xc090_0000, 0xc094_0000u32] {
        machine.run([word | u32::from(SCALAR_RESULT) << 6, 0]);
        assert_eq!(machine.wave.pair(SCALAR_RESULT), 12345);
    }
}

#[test]
fn some_instructions_change_nothing() {
    for (name, words) in NOTHING {
        let mut machine = Machine::new();
        let before = (
            machine.wave.scalars,
            machine.wave.vectors.clone(),
            machine.wave.scc,
            machine.lds.clone(),
        );
        machine.run(words);
        let after = (
            machine.wave.scalars,
            machine.wave.vectors.clone(),
            machine.wave.scc,
            machine.lds,
        );
        assert!(before == after, "{name}");
    }
}
