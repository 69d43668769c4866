//! What modifiers do to operands and results: signs, output scale, clamp, parts of registers, other lanes.

use proptest::prelude::*;

use super::machine::{Machine, RESULT, SOURCES, edge, lanes, long};
use crate::isa::Instruction;

/// A 32-bit instruction with an extra dword for SDWA (0xf9) or DPP (0xfa): `opcode` of VOP2, first source
/// [`SOURCES`]`[0]`.
fn short(opcode: u32, kind: u32, extra: u32) -> [u32; 2] {
    [
        opcode << 25 | u32::from(RESULT) << 17 | u32::from(SOURCES[1]) << 9 | kind,
        extra | u32::from(SOURCES[0]),
    ]
}

const V_ADD_U32: u32 = 0x34;
const V_ADD_F32: u32 = 0x01;

/// First bit and bits of a part of a register, by its code.
const PARTS: [(u32, u32); 7] = [(0, 8), (8, 8), (16, 8), (24, 8), (0, 16), (16, 16), (0, 32)];

fn part(value: u32, (first, bits): (u32, u32), signed: bool) -> u32 {
    let field = (u64::from(value) >> first) % (1 << bits);
    if signed && field >> (bits - 1) != 0 {
        (field as i64 - (1i64 << bits)) as u32
    } else {
        field as u32
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn signs_scale_and_clamp(a in edge(), b in edge(), abs in 0u32..4, neg in 0u32..4, omod in 0u32..4, clamp in any::<bool>()) {
        let mut machine = Machine::new();
        let [a, b] = [a as u32, b as u32];
        machine.set_vector(SOURCES[0], 0, 1, a.into());
        machine.set_vector(SOURCES[1], 0, 1, b.into());
        let [first, second] = long("v_add_f32");
        machine.run([first | abs << 8 | u32::from(clamp) << 15, second | omod << 27 | neg << 29]);
        let operand = |n: u32, bits: u32| {
            let value = f32::from_bits(bits);
            let value = if abs >> n & 1 != 0 { value.abs() } else { value };
            f64::from(if neg >> n & 1 != 0 { -value } else { value })
        };
        let sum = (operand(0, a) + operand(1, b)) as f32;
        let scaled = sum * [1.0, 2.0, 4.0, 0.5][omod as usize];
        let expected = if clamp { if scaled.is_nan() || scaled <= 0.0 { 0.0 } else { scaled.min(1.0) } } else { scaled };
        let found = f32::from_bits(machine.vector(RESULT, 0, 1) as u32);
        prop_assert!(found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan(), "{found:e}, not {expected:e}");
    }

    #[test]
    fn integers_saturate(a in edge(), b in edge()) {
        let cases: [(&str, u32, fn(i128, i128) -> i128, i128, i128, bool); 10] = [
            ("v_add_u32", 32, |a, b| a + b, 0, u32::MAX as i128, false),
            ("v_sub_u32", 32, |a, b| a - b, 0, u32::MAX as i128, false),
            ("v_subrev_u32", 32, |a, b| b - a, 0, u32::MAX as i128, false),
            ("v_add_u16", 16, |a, b| a + b, 0, u16::MAX as i128, false),
            ("v_sub_u16", 16, |a, b| a - b, 0, u16::MAX as i128, false),
            ("v_subrev_u16", 16, |a, b| b - a, 0, u16::MAX as i128, false),
            ("v_add_i32", 32, |a, b| a + b, i32::MIN as i128, i32::MAX as i128, true),
            ("v_sub_i32", 32, |a, b| a - b, i32::MIN as i128, i32::MAX as i128, true),
            ("v_add_i16", 16, |a, b| a + b, i16::MIN as i128, i16::MAX as i128, true),
            ("v_sub_i16", 16, |a, b| a - b, i16::MIN as i128, i16::MAX as i128, true),
        ];
        for (name, bits, operation, low, high, signed) in cases {
            let mut machine = Machine::new();
            machine.set_vector(SOURCES[0], 0, 1, a.into());
            machine.set_vector(SOURCES[1], 0, 1, b.into());
            let [first, second] = long(name);
            machine.run([first | 1 << 15, second]);
            let operand = |value: u64| i128::from(if signed {
                i64::from(part(value as u32, (0, bits), true) as i32)
            } else {
                i64::from(part(value as u32, (0, bits), false))
            });
            let expected = operation(operand(a), operand(b)).clamp(low, high) as u128 % (1 << bits);
            prop_assert_eq!(machine.vector(RESULT, 0, 1), expected, "{}", name);
        }
    }

    #[test]
    fn sdwa_takes_and_puts_parts(
        values in [lanes(), lanes()],
        selected in [0usize..7, 0usize..7, 0usize..7],
        signed in [any::<bool>(), any::<bool>()],
        unused in 0u32..3,
        exec in any::<u64>(),
    ) {
        let mut machine = Machine::new();
        machine.wave.set_exec(exec);
        for lane in 0..64 {
            (0..2).for_each(|n| machine.set_vector(SOURCES[n], lane, 1, values[n][lane].into()));
        }
        let before = machine.wave.vectors[usize::from(RESULT)];
        let [to, a, b] = selected;
        let extra = (to as u32) << 8 | unused << 11 | (a as u32) << 16 | u32::from(signed[0]) << 19
            | (b as u32) << 24 | u32::from(signed[1]) << 27;
        machine.run(short(V_ADD_U32, 0xf9, extra));
        for (lane, before) in before.into_iter().enumerate() {
            let operand = |n: usize| part(values[n][lane] as u32, PARTS[[a, b][n]], signed[n]);
            let sum = operand(0).wrapping_add(operand(1));
            let (first, bits) = PARTS[to];
            let placed = part(sum, (0, bits), false) << first;
            let expected = match unused {
                _ if exec >> lane & 1 == 0 => before,
                0 => placed,
                1 => (i64::from(part(sum, (0, bits), true) as i32) << first) as u32,
                _ => placed | before & !(part(u32::MAX, (0, bits), false) << first),
            };
            prop_assert_eq!(machine.wave.vectors[usize::from(RESULT)][lane], expected, "lane {}", lane);
        }
    }

    #[test]
    fn dpp_reads_other_lanes(values in lanes(), exec in any::<u64>(), full in any::<bool>(), rows in 0u32..16, banks in 0u32..16, zero in any::<bool>(), n in 1usize..16, quad in 0u32..256) {
        let exec = if full { u64::MAX } else { exec };
        let within = |lane: usize, at: Option<usize>| at.map(|at| lane / 16 * 16 + at);
        // Control, and the lane that a lane reads from.
        let forms: Vec<(u32, Box<dyn Fn(usize) -> Option<usize>>)> = vec![
            (quad, Box::new(move |lane| Some(lane / 4 * 4 + (quad as usize >> (2 * (lane % 4))) % 4))),
            (0x100 + n as u32, Box::new(move |lane| within(lane, Some(lane % 16 + n).filter(|&at| at < 16)))),
            (0x110 + n as u32, Box::new(move |lane| within(lane, (lane % 16).checked_sub(n)))),
            (0x120 + n as u32, Box::new(move |lane| within(lane, Some((lane % 16 + 16 - n) % 16)))),
            (0x130, Box::new(|lane| Some(lane + 1).filter(|&lane| lane < 64))),
            (0x134, Box::new(|lane| Some((lane + 1) % 64))),
            (0x138, Box::new(|lane| lane.checked_sub(1))),
            (0x13c, Box::new(|lane| Some((lane + 63) % 64))),
            (0x140, Box::new(move |lane| within(lane, Some(15 - lane % 16)))),
            (0x141, Box::new(|lane| Some(lane / 8 * 8 + 7 - lane % 8))),
            (0x142, Box::new(|lane| (lane / 16 * 16).checked_sub(1))),
            (0x143, Box::new(|lane| (lane > 31).then_some(31))),
            (0x150 + n as u32, Box::new(move |lane| within(lane, Some(n)))),
        ];
        for (control, source) in forms {
            let mut machine = Machine::new();
            machine.wave.set_exec(exec);
            (0..64).for_each(|lane| machine.set_vector(SOURCES[0], lane, 1, values[lane].into()));
            let before = machine.wave.vectors[usize::from(RESULT)];
            let other = machine.wave.vectors[usize::from(SOURCES[1])];
            machine.run(short(V_ADD_U32, 0xfa, control << 8 | u32::from(zero) << 19 | banks << 24 | rows << 28));
            for (lane, before) in before.into_iter().enumerate() {
                let from = source(lane).filter(|from| exec >> from & 1 != 0);
                let on = exec >> lane & 1 != 0 && rows >> (lane / 16) & 1 != 0 && banks >> (lane / 4 % 4) & 1 != 0;
                let expected = match from {
                    _ if !on => before,
                    Some(from) => (values[from] as u32).wrapping_add(other[lane]),
                    None if zero => other[lane],
                    None => before,
                };
                prop_assert_eq!(machine.wave.vectors[usize::from(RESULT)][lane], expected, "control {:x} lane {}", control, lane);
            }
        }
    }

    /// Halves of registers, chosen by the long encoding.
    #[test]
    fn op_sel_chooses_halves(values in [lanes(), lanes(), lanes()], op_sel in 0u32..16) {
        let mut machine = Machine::new();
        for lane in 0..64 {
            (0..3).for_each(|n| machine.set_vector(SOURCES[n], lane, 1, values[n][lane].into()));
        }
        let before = machine.wave.vectors[usize::from(RESULT)];
        let [first, second] = long("v_mad_u16");
        machine.run([first | op_sel << 11, second]);
        for (lane, before) in before.into_iter().enumerate() {
            let half = |n: usize| values[n][lane] as u32 >> (16 * (op_sel >> n & 1)) & 0xffff;
            let value = half(0).wrapping_mul(half(1)).wrapping_add(half(2)) & 0xffff;
            let expected = if op_sel & 8 != 0 { value << 16 | before & 0xffff } else { before & 0xffff_0000 | value };
            prop_assert_eq!(machine.wave.vectors[usize::from(RESULT)][lane], expected);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    /// No words make the decoder panic, and what it decodes has a text.
    #[test]
    fn any_words_decode_or_not(words in any::<[u32; 2]>(), prefix in 0u32..64, shape in any::<bool>()) {
        let words = if shape { [words[0] & 0x03ff_ffff | prefix << 26, words[1]] } else { words };
        if let Ok(mut op) = Instruction::decode(words) {
            prop_assert!(op.to_string().starts_with(op.mnemonic()));
            let _ = op.bind(64, 32);
        }
    }

    /// No words make a wave panic, whatever its registers hold.
    #[test]
    fn any_words_execute_or_stop(words in any::<[u32; 2]>(), prefix in 0u32..64, seed in any::<u64>()) {
        let words = [words[0] & 0x03ff_ffff | prefix << 26, words[1]];
        let mut machine = Machine::new();
        machine.wave.scalars.iter_mut().enumerate().for_each(|(i, word)| *word = crate::emulator::mix(seed ^ i as u64) as u32);
        if Instruction::decode(words).is_ok_and(|mut op| op.is_modelled() && op.bind(64, 32).is_ok()) {
            let _ = machine.step(words);
        }
    }
}

/// Signs of a float in the SDWA and DPP forms.
#[test]
fn signs_in_short_forms() {
    for (kind, extra) in [
        (0xf9, 6 << 8 | 6 << 16 | 6 << 24 | 1 << 20 | 1 << 29),
        (0xfa, 0xe4 << 8 | 0xff << 24 | 1 << 20 | 1 << 23),
    ] {
        let mut machine = Machine::new();
        machine.wave.vectors[usize::from(SOURCES[0])] = [1.5f32.to_bits(); 64];
        machine.wave.vectors[usize::from(SOURCES[1])] = [(-4f32).to_bits(); 64];
        machine.run(short(V_ADD_F32, kind, extra));
        assert_eq!(f32::from_bits(machine.vector(RESULT, 9, 1) as u32), 2.5);
    }
}
