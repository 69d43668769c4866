//! The decoder reads instructions as LLVM's disassembler does, operands included.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use amdgpu_emu::Instruction;
use libtest_mimic::Arguments;
use support::{KERNELS, VERSIONS, llvm};

fn main() -> ExitCode {
    let trials = vec![
        support::trial_with(
            "every_instruction_of_the_test_kernels",
            llvm("llvm-objdump"),
            kernels,
        ),
        support::trial_with(
            "every_instruction_of_another_compiler",
            llvm("clang").and_then(|clang| Ok(vec![clang, llvm("ld.lld")?, llvm("llvm-objdump")?])),
            other_compiler,
        ),
        support::trial_with("every_opcode_in_every_encoding", llvm("llvm-mc"), encodings),
        support::trial_with("random_words", llvm("llvm-mc"), random),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// One spelling of what LLVM writes in several: spaces, and the comment with the encoding.
fn tidy(text: &str) -> String {
    text.split("//")
        .next()
        .unwrap_or("")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

fn kernels(objdump: &str) {
    let names = KERNELS
        .iter()
        .flat_map(|kernel| VERSIONS.map(|version| format!("{kernel}.v{version}.co")));
    let count: usize = names
        .map(|name| listing(objdump, &support::objects().join(name)))
        .sum();
    assert!(count > 1000, "{count} instructions only");
}

/// A second compiler uses instructions that the pinned one does not.
fn other_compiler(tools: &[String]) {
    let [clang, lld, objdump] = tools else {
        panic!("three tools")
    };
    let folder = std::env::temp_dir().join(format!("amdgpu-emu-llvm-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    let flags = "-x hip --offload-arch=gfx90a --offload-device-only -nogpuinc -nogpulib -fgpu-rdc -S -emit-llvm";
    let mut count = 0;
    for (kernel, level) in KERNELS
        .iter()
        .flat_map(|kernel| ["-O1", "-O2"].map(|level| (kernel, level)))
    {
        let [module, relocatable, object] =
            ["ll", "o", "co"].map(|kind| folder.join(format!("{kernel}.{kind}")));
        let source = support::sources().join(format!("{kernel}.hip"));
        support::output(
            Command::new(clang)
                .args(flags.split(' '))
                .arg(level)
                .arg(source)
                .arg("-o")
                .arg(&module),
        );
        let target = [
            "--target=amdgcn-amd-amdhsa",
            "-mcpu=gfx90a",
            "-nogpulib",
            "-c",
            "-x",
            "ir",
            level,
        ];
        support::output(
            Command::new(clang)
                .args(target)
                .arg(&module)
                .arg("-o")
                .arg(&relocatable),
        );
        support::output(
            Command::new(lld)
                .arg("-shared")
                .arg(&relocatable)
                .arg("-o")
                .arg(&object),
        );
        count += listing(objdump, &object);
    }
    std::fs::remove_dir_all(&folder).expect("it was just made");
    assert!(count > 1000, "{count} instructions only");
}

/// Compares each instruction of an object, and returns how many there were.
fn listing(objdump: &str, object: &Path) -> usize {
    let text = support::output(Command::new(objdump).arg("-d").arg(object));
    let text = String::from_utf8(text).expect("objdump writes text");
    // `\tmnemonic operands // address: word [word] [<label>]`
    let lines = text.lines().filter_map(|line| line.split_once("//"));
    let compare = |(text, comment): (&str, &str)| {
        let words = comment
            .split_once(':')
            .map_or("", |(_, words)| words)
            .split_whitespace();
        let words: Vec<u32> = words
            .map_while(|word| u32::from_str_radix(word, 16).ok())
            .collect();
        let first = *words.first().expect("each line has its words");
        let op = Instruction::decode([first, words.get(1).copied().unwrap_or(0)]);
        let op = op.unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(
            (tidy(&op.to_string()), op.len_bytes()),
            (tidy(text), 4 * words.len()),
            "{}",
            object.display()
        );
    };
    lines.map(compare).count()
}

/// What LLVM makes of each instruction; `None` where it sees none.
fn disassemble(mc: &str, cases: &[Vec<u32>]) -> Vec<Option<String>> {
    use std::io::Write as _;
    // Marked ends: two dwords that an instruction longer than we think may swallow, and one that stays.
    const MARKERS: [u32; 3] = [0xbf80_2abc, 0xbf80_2abc, 0xbf80_2abd];
    let mut input = String::new();
    for words in cases {
        for byte in words
            .iter()
            .chain(&MARKERS)
            .flat_map(|word| word.to_le_bytes())
        {
            input += &format!("0x{byte:02x} ");
        }
        input += "\n";
    }
    let mut child = Command::new(mc)
        .args(["--disassemble", "-triple=amdgcn", "-mcpu=gfx90a"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it was found before");
    let mut stdin = child.stdin.take().expect("it was asked for");
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("it was started");
    writer
        .join()
        .expect("no panic")
        .expect("it reads its input");
    let text = String::from_utf8(output.stdout).expect("llvm-mc writes text");
    let mut results = Vec::new();
    let mut lines = Vec::new();
    for line in text
        .lines()
        .map(tidy)
        .filter(|line| !line.is_empty() && !line.starts_with('.'))
    {
        match line.as_str() {
            "s_nop 0x2abd" => {
                results.push(if lines.is_empty() {
                    None
                } else {
                    Some(lines.join("; "))
                });
                lines.clear();
            }
            "s_nop 0x2abc" => {}
            _ => lines.push(line),
        }
    }
    assert_eq!(
        results.len(),
        cases.len(),
        "each case has its marker: {:?}",
        output.status
    );
    // It reads on after what is invalid; only the warning, with the case's line, says so.
    for warning in String::from_utf8_lossy(&output.stderr)
        .lines()
        .filter(|line| line.contains("warning"))
    {
        let line = warning
            .split(':')
            .nth(1)
            .and_then(|line| line.parse::<usize>().ok());
        results[line.expect("a warning has a line") - 1] = None;
    }
    results
}

/// Compares each case that we decode with LLVM's text, and returns how many were alike, and which of the modelled
/// instructions among them never were. What we know by name only is compared by name only.
///
/// We read more than LLVM: it refuses tuples of vector registers that start at an odd one, for example.
fn compare(mc: &str, cases: &[[u32; 2]]) -> (usize, BTreeSet<&'static str>) {
    let decoded: Vec<(Instruction, Vec<u32>)> = cases
        .iter()
        .filter_map(|words| {
            Instruction::decode(*words)
                .ok()
                .map(|op| (op.len_bytes() / 4, op, words))
        })
        .map(|(dwords, op, words)| (op, words[..dwords].to_vec()))
        .collect();
    let words: Vec<Vec<u32>> = decoded.iter().map(|(_, words)| words.clone()).collect();
    let (mut same, mut seen) = (0, BTreeSet::new());
    let mut wrong = BTreeMap::new();
    for ((op, words), theirs) in decoded.iter().zip(disassemble(mc, &words)) {
        match theirs {
            // What LLVM marks as invalid in its own text, or names messages that we don't.
            Some(theirs)
                if theirs.contains("/*")
                    || theirs.contains("sendmsg(") && !theirs.contains("MSG_INTERRUPT") => {}
            Some(theirs) if tidy(&op.to_string()) == theirs => {
                same += 1;
                seen.insert(op.mnemonic());
            }
            Some(theirs) if !op.is_modelled() && theirs.starts_with(op.mnemonic()) => same += 1,
            Some(theirs) => {
                let text = format!("{words:08x?}\n    ours   {op}\n    theirs {theirs}");
                wrong
                    .entry(op.mnemonic())
                    .or_insert_with(Vec::new)
                    .push(text);
            }
            None => {}
        }
    }
    let examples: Vec<&String> = wrong.values().map(|wrong| &wrong[0]).take(60).collect();
    let count: usize = wrong.values().map(Vec::len).sum();
    assert!(
        wrong.is_empty(),
        "{count} differ, {same} do not: {examples:#?}"
    );
    let modelled = decoded
        .iter()
        .map(|(op, _)| op)
        .filter(|op| op.is_modelled());
    (
        same,
        modelled
            .map(Instruction::mnemonic)
            .filter(|name| !seen.contains(name))
            .collect(),
    )
}

/// Leading bits of each encoding, with the bits of the opcode and how many opcodes there are.
const FAMILIES: [(&str, u32, u32, u32); 17] = [
    ("SOP1", 0xbe80_0000, 8, 64),
    ("SOP2", 0x8000_0000, 23, 64),
    ("SOPC", 0xbf00_0000, 16, 32),
    ("SOPK", 0xb000_0000, 23, 32),
    ("SOPP", 0xbf80_0000, 16, 32),
    ("SMEM", 0xc000_0000, 18, 64),
    ("VOP1", 0x7e00_0000, 9, 128),
    ("VOP2", 0x0000_0000, 25, 62),
    ("VOPC", 0x7c00_0000, 17, 256),
    ("VOP3", 0xd000_0000, 16, 896),
    ("VOP3P", 0xd380_0000, 16, 128),
    ("DS", 0xd800_0000, 17, 256),
    ("FLAT", 0xdc00_0000, 18, 128),
    ("SCRATCH", 0xdc00_4000, 18, 128),
    ("GLOBAL", 0xdc00_8000, 18, 128),
    ("MUBUF", 0xe000_0000, 18, 128),
    ("other", 0xf000_0000, 26, 4),
];

/// Operand fields that look random.
fn random_bits(seed: &mut u64) -> u32 {
    *seed = seed
        .wrapping_mul(0x5851_f42d_4c95_7f2d)
        .wrapping_add(0x1405_7b7e_f767_814f);
    (*seed >> 32) as u32
}

/// Each opcode of each encoding (VOP2's last two are the prefixes of VOPC and VOP1) with `fillings` random operands, from fields that leave most modifiers off to such
/// that set them all.
fn cases(fillings: usize) -> Vec<[u32; 2]> {
    let mut seed = 1;
    let mut cases = Vec::new();
    for (_, prefix, shift, opcodes) in FAMILIES {
        for opcode in 0..opcodes {
            for filling in 0..fillings {
                let fixed = prefix | opcode << shift;
                let prefix_bits = leading(prefix) | (opcodes.next_power_of_two() - 1) << shift;
                let mut low = random_bits(&mut seed);
                let mut high = random_bits(&mut seed);
                if filling % 4 != 3 {
                    // Few modifiers, even registers.
                    low &= [0x01fe_80ff, 0x00fe_00fe, 0x0002_00fe][filling % 4];
                    high &= [0x07fd_fbff, 0x03fc_fdfe, 0x0001_01ff][filling % 4];
                }
                if filling % 5 == 1 {
                    // SDWA and DPP dwords.
                    low = low & !0x1ff | [0xf9, 0xfa][filling / 5 % 2];
                    high = if filling / 5 % 2 == 0 {
                        high & 0x7f7f_7fff & !0x0100_0000
                    } else {
                        high & !0x0003_fe00 | 0xe400
                    };
                }
                if filling == 0 {
                    // Nothing but a vector register, where there is one.
                    low = if prefix < 0x8000_0000 { 0x100 } else { 0 };
                    high = if prefix == 0xd800_0000 { 0 } else { 0x100 };
                }
                cases.push([low & !prefix_bits | fixed, high]);
            }
        }
    }
    cases
}

/// The bits that make an encoding.
fn leading(prefix: u32) -> u32 {
    match prefix >> 26 {
        0..=0b011110 => 0x8000_0000,
        0b011111 => 0xfe00_0000,
        0b100000 => 0xc000_0000,
        0b101100 => 0xf000_0000,
        0b101111 => 0xff80_0000,
        0b110100 if prefix & 0x0380_0000 != 0 => 0xff80_0000,
        0b110111 => 0xfc00_c000,
        _ => 0xfc00_0000,
    }
}

fn encodings(mc: &str) {
    let (same, never) = compare(mc, &cases(40));
    assert!(same > 20_000, "{same} alike");
    assert!(
        never.is_empty(),
        "LLVM never reads these as we do: {never:?}"
    );
}

fn random(mc: &str) {
    let mut seed = 7;
    let cases: Vec<[u32; 2]> = (0..40_000)
        .map(|_| [random_bits(&mut seed), random_bits(&mut seed)])
        .collect();
    let (same, _) = compare(mc, &cases);
    assert!(same > 20_000, "{same} alike");
}
