//! Dispatches as a whole: how they end, what stops them, what they count, and what broken input does.

mod support;

use std::num::{NonZeroU32, NonZeroU64};
use std::sync::atomic::{AtomicBool, Ordering};

use amdgpu_emu::counters::LAUNCH_CYCLES;
use amdgpu_emu::object::{CodeObject, ObjectError};
use amdgpu_emu::{
    Counter, Dispatch, Emulator, Fault, FlatMemory, Illegal, Instruction, KernelError, Limits,
    Memory, PacketError, Place, Refusal, Scratch,
};
use proptest::prelude::*;

const BASE: u64 = 0x10_0000;
const CODE: u64 = BASE + 0x100;
const DATA: u64 = BASE + 0x8000;

const S_ENDPGM: u32 = 0xbf81_0000;

/// Memory with a kernel of `words`, and its dispatch of one workgroup. The kernel gets its arguments' address, `DATA`,
/// in s0 and s1, the workgroup's number in s2, and has 16 vector registers.
fn kernel(words: &[u32]) -> (FlatMemory, Dispatch) {
    let memory = FlatMemory::new(BASE, 0x1_0000);
    let put = |at: u64, value: u32| {
        memory
            .write(at, &value.to_le_bytes())
            .expect("it is mapped")
    };
    put(BASE + 16, 0x100);
    put(BASE + 48, 1 | 0xf << 16);
    put(BASE + 52, 2 << 1 | 1 << 7);
    put(BASE + 56, 1 << 3);
    words
        .iter()
        .zip(0..)
        .for_each(|(&word, i)| put(CODE + 4 * i, word));
    let dispatch = Dispatch {
        workgroup_size: [64, 1, 1],
        grid_size: [64, 1, 1],
        kernel_object: BASE,
        kernarg_address: DATA,
        ..Dispatch::default()
    };
    (memory, dispatch)
}

fn run(words: &[u32]) -> Result<(), Fault> {
    let (memory, dispatch) = kernel(words);
    Emulator::new(&memory).run(&dispatch).result
}

fn place(pc: u64) -> Place {
    Place {
        pc,
        workgroup: [0; 3],
        wave: 0,
    }
}

#[test]
fn unknown_and_missing_instructions_are_named() {
    // s_nop, then an image instruction, a matrix instruction, an opcode that nobody has.
    let cases = [
        (
            [0xf000_0000, 0],
            Some("image instruction"),
            Illegal::NotModelled,
        ),
        (
            [0xd3c0_0000, 0],
            Some("v_mfma_f32_32x32x1f32"),
            Illegal::NotModelled,
        ),
        ([0xbe80_3100, 0], None, Illegal::Unknown),
        ([0xd000_0000 | 0x3ff << 16, 0], None, Illegal::Unknown),
        // A register beyond the kernel's 16.
        ([0x7e20_0280, S_ENDPGM], Some("v_mov_b32"), Illegal::Operand),
    ];
    for (words, mnemonic, illegal) in cases {
        let expected = Fault::Instruction {
            place: place(CODE + 4),
            words,
            mnemonic,
            illegal,
        };
        assert_eq!(run(&[0xbf80_0000, words[0], words[1]]), Err(expected));
    }
    let text = run(&[0xd3c0_0000, 0])
        .expect_err("it is not modelled")
        .to_string();
    assert!(
        text.contains("v_mfma_f32_32x32x1f32 (d3c00000 00000000) at pc 0x100100"),
        "{text}"
    );
}

#[test]
fn code_outside_of_memory_faults() {
    // A branch beyond the mapping, and code that runs off its end.
    let Err(Fault::Memory {
        mnemonic: "fetch",
        place,
        fault,
    }) = run(&[0xbf82_7fff])
    else {
        panic!("it is not mapped")
    };
    assert_eq!(
        (place.pc, fault.refusal),
        (CODE + 4 + 4 * 0x7fff, Refusal::Unmapped)
    );
    let memory = FlatMemory::new(BASE, 0x104);
    let (full, dispatch) = kernel(&[0xbf80_0000]);
    let mut bytes = [0; 0x104];
    full.read(BASE, &mut bytes).expect("it is mapped");
    memory.write(BASE, &bytes).expect("it is mapped");
    let Err(Fault::Memory { fault, .. }) = Emulator::new(&memory).run(&dispatch).result else {
        panic!("it ends there")
    };
    assert_eq!(fault.address, BASE + 0x104);
}

#[test]
fn traps_end_the_dispatch() {
    assert_eq!(
        run(&[0xbf92_0002]),
        Err(Fault::Trap {
            place: place(CODE),
            id: 2
        })
    );
}

#[test]
fn endless_loops_meet_their_limit() {
    // s_branch to itself.
    let (memory, dispatch) = kernel(&[0xbf82_ffff]);
    let budget = NonZeroU64::new(10_000);
    let outcome = Emulator::new(&memory)
        .limits(Limits {
            budget,
            ..Limits::default()
        })
        .run(&dispatch);
    assert_eq!(
        outcome.result,
        Err(Fault::Budget {
            place: place(CODE),
            budget: 10_000
        })
    );
    let repeats = NonZeroU32::new(3);
    let outcome = Emulator::new(&memory)
        .limits(Limits {
            repeats,
            ..Limits::default()
        })
        .run(&dispatch);
    assert_eq!(
        outcome.result,
        Err(Fault::NoProgress { place: place(CODE) })
    );
}

/// A loop that counts in a register makes progress, however often it turns.
#[test]
fn counting_is_progress() {
    // s_mov_b32 s4, 100000; loop: s_add_i32 s4, s4, -1; s_cmp_lg_u32 s4, 0; s_cbranch_scc1 loop; s_endpgm
    let (memory, dispatch) = kernel(&[
        0xbe84_00ff,
        100_000,
        0x8104_c104,
        0xbf07_8004,
        0xbf85_fffd,
        S_ENDPGM,
    ]);
    let repeats = NonZeroU32::new(1);
    let outcome = Emulator::new(&memory)
        .limits(Limits {
            repeats,
            ..Limits::default()
        })
        .run(&dispatch);
    assert_eq!(outcome.result, Ok(()));
    assert_eq!(outcome.counters[Counter::InstsSalu], 1 + 2 * 100_000);
}

#[test]
fn a_flag_discards_waves() {
    let (memory, dispatch) = kernel(&[0xbf82_ffff]);
    let flag = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            flag.store(true, Ordering::Relaxed);
        });
        let outcome = Emulator::new(&memory).cancel(&flag).run(&dispatch);
        assert_eq!(outcome.result, Err(Fault::Cancelled { place: place(CODE) }));
    });
}

/// Each workgroup but the last waits until the next one has set its flag: they must run side by side.
#[test]
fn workgroups_that_wait_for_later_ones_get_on() {
    let words = [
        0x8e03_8202, // s_lshl_b32 s3, s2, 2
        0x7e00_0203, // v_mov_b32 v0, s3
        0x7e02_0281, // v_mov_b32 v1, 1
        0xdc70_8000,
        0x0000_0100, // global_store_dword v0, v1, s[0:1]
        0xc002_0100,
        0x0000_000c, // wait: s_load_dword s4, s[0:1], 12
        0xbf07_8104, // s_cmp_lg_u32 s4, 1
        0xbf85_fffc, // s_cbranch_scc1 wait
        S_ENDPGM,
    ];
    let (memory, dispatch) = kernel(&words);
    let dispatch = Dispatch {
        grid_size: [4 * 64, 1, 1],
        ..dispatch
    };
    let limits = Limits {
        budget: NonZeroU64::new(1_000_000),
        ..Limits::default()
    };
    assert_eq!(
        Emulator::new(&memory).limits(limits).run(&dispatch).result,
        Ok(())
    );
    // One at a time, the first waits for ever.
    let (memory, _) = kernel(&words);
    let limits = Limits {
        repeats: NonZeroU32::new(2),
        resident: NonZeroU32::MIN,
        ..Limits::default()
    };
    let outcome = Emulator::new(&memory).limits(limits).run(&dispatch);
    assert!(
        matches!(outcome.result, Err(Fault::NoProgress { .. })),
        "{outcome:?}"
    );
}

/// Waves of a workgroup meet at the barrier, and one that has ended is not waited for.
#[test]
fn barriers_wait_for_running_waves() {
    let words = [
        0x7d94_0080, // v_cmp_eq_u32 vcc, 0, v0: only in the first wave
        0xbf86_0002, // s_cbranch_vccz over
        0xbf8a_0000, // s_barrier
        S_ENDPGM,
        S_ENDPGM,
    ];
    let (memory, dispatch) = kernel(&words);
    let dispatch = Dispatch {
        workgroup_size: [256, 1, 1],
        grid_size: [256, 1, 1],
        ..dispatch
    };
    let outcome = Emulator::new(&memory).run(&dispatch);
    assert_eq!(outcome.result, Ok(()));
    assert_eq!(outcome.counters[Counter::Waves], 4);
}

#[test]
fn interrupts_reach_the_host() {
    let (memory, dispatch) = kernel(&[0xbefc_00ff, 0x0100_0007, 0xbf90_0001, S_ENDPGM]);
    let mut raised = Vec::new();
    assert_eq!(
        Emulator::new(&memory)
            .interrupt(|event| raised.push(event))
            .run(&dispatch)
            .result,
        Ok(())
    );
    assert_eq!(raised, [7]);
}

#[test]
fn traces_show_text_and_lanes() {
    let (memory, dispatch) = kernel(&[0x7e02_0280, S_ENDPGM]);
    let dispatch = Dispatch {
        workgroup_size: [3, 1, 1],
        grid_size: [3, 1, 1],
        ..dispatch
    };
    let mut steps = Vec::new();
    let mut emulator = Emulator::new(&memory).trace(|step| {
        steps.push((step.place.pc, step.instruction.to_string(), step.exec));
    });
    assert_eq!(emulator.run(&dispatch).result, Ok(()));
    drop(emulator);
    assert_eq!(
        steps,
        [
            (CODE, "v_mov_b32_e32 v1, 0".to_owned(), 7),
            (CODE + 4, "s_endpgm".to_owned(), 7)
        ]
    );
}

/// The cycle model, by hand: 2 workgroups on 2 units, each of one wave with one vector instruction and the end.
#[test]
fn cycles_follow_the_model() {
    let (memory, dispatch) = kernel(&[0x7e02_0280, S_ENDPGM]);
    let outcome = Emulator::new(&memory).run(&Dispatch {
        grid_size: [128, 1, 1],
        ..dispatch
    });
    assert_eq!(outcome.counters[Counter::BusyCycles], 4 + 4);
    assert_eq!(outcome.counters[Counter::GrbmCount], LAUNCH_CYCLES + 8);
    assert_eq!(outcome.counters[Counter::InstsValu], 2);
}

/// Registers start with garbage that depends on the seed alone.
#[test]
fn garbage_is_repeatable() {
    // v_lshlrev_b32 v0, 2, v0; global_store_dword v0, v5, s[0:1]
    let (memory, dispatch) = kernel(&[0x2400_0082, 0xdc70_8000, 0x0000_0500, S_ENDPGM]);
    let garbage = |seed: u64| {
        assert_eq!(
            Emulator::new(&memory).seed(seed).run(&dispatch).result,
            Ok(())
        );
        let mut bytes = [0; 256];
        memory.read(DATA, &mut bytes).expect("it is mapped");
        bytes
    };
    assert_eq!(garbage(1), garbage(1));
    assert_ne!(garbage(1), garbage(2));
    assert_ne!(garbage(1), [0; 256]);
}

#[test]
fn bad_kernels_and_packets_start_nothing() {
    let (memory, dispatch) = kernel(&[S_ENDPGM]);
    let run = |dispatch: &Dispatch| Emulator::new(&memory).run(dispatch).result;
    let put = |at: u64, value: u32| {
        memory
            .write(BASE + at, &value.to_le_bytes())
            .expect("it is mapped")
    };
    let too_many = Dispatch {
        workgroup_size: [1025, 1, 1],
        ..dispatch.clone()
    };
    assert!(matches!(
        run(&too_many),
        Err(Fault::Packet(PacketError::Size { .. }))
    ));
    let nowhere = Dispatch {
        kernel_object: 0x10,
        ..dispatch.clone()
    };
    assert!(matches!(
        run(&nowhere),
        Err(Fault::Kernel(KernelError::Unreadable(_)))
    ));
    let private = Dispatch {
        private_segment_size: 20,
        ..dispatch.clone()
    };
    let needed = 2048;
    assert_eq!(
        run(&private),
        Err(KernelError::Scratch { needed, granted: 0 }.into())
    );
    assert_eq!(
        run(&Dispatch {
            scratch: Scratch::new(DATA, 2048),
            ..private
        }),
        Ok(())
    );
    put(56, 1 << 3 | 1 << 10);
    assert_eq!(run(&dispatch), Err(KernelError::Wave32.into()));
    put(56, 0x7f);
    assert_eq!(
        run(&dispatch),
        Err(KernelError::UserRegisters {
            needed: 17 - 2,
            reserved: 2
        }
        .into())
    );
    put(56, 1 << 3);
    put(48, 1 | 3 << 12);
    assert_eq!(run(&dispatch), Err(KernelError::Rounding(3).into()));
    put(48, 1);
    put(16, 0x102);
    assert_eq!(run(&dispatch), Err(KernelError::Entry(CODE + 2).into()));
}

/// Every instruction that compilers use for real programs, with the few that are left out.
#[test]
fn the_instructions_of_real_programs_are_modelled() {
    // Every opcode of every encoding, with operands that most take.
    let mut found = std::collections::BTreeMap::new();
    for high in 0..=0xffffu32 {
        for low in [0u32, 0x100, 0x4000, 0x8000, 0x8100]
            .into_iter()
            .chain((0..128).map(|op| op << 9))
            .chain((0..64).map(|op| op << 8))
        {
            for second in [0, 0x100, 0x007f_0000] {
                if let Ok(op) = Instruction::decode([high << 16 | low, second]) {
                    *found.entry(op.mnemonic()).or_insert(false) |= op.is_modelled();
                }
            }
        }
    }
    // As docs/emulated-gpu.md says.
    let modelled = found.values().filter(|modelled| **modelled).count();
    assert!(modelled > 850, "{modelled} of {}", found.len());
    let list = include_str!("mnemonics.txt")
        .lines()
        .filter(|line| !line.starts_with('#'));
    let names: Vec<&str> = list.flat_map(str::split_whitespace).collect();
    assert!(names.len() > 390, "{}", names.len());
    let missing: Vec<&str> = names
        .into_iter()
        .filter(|name| found.get(name) != Some(&true))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Instructions that compilers wrote decode to their names, with an arbitrary second dword where they have one.
#[test]
fn compiled_instructions_decode() {
    let text = include_str!("first_dwords.txt");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let mut count = 0;
    for item in lines
        .flat_map(|line| line.split(';'))
        .map(str::trim)
        .filter(|item| !item.is_empty())
    {
        let (name, word) = item.split_once(' ').expect("a name and a dword");
        let word = u32::from_str_radix(word, 16).expect("a dword");
        // Registers from 0 in the second dword, and no scalar address.
        let second = if word >> 26 == 0b110111 {
            0x007f_0000
        } else {
            0
        };
        let op =
            Instruction::decode([word, second]).unwrap_or_else(|error| panic!("{item}: {error}"));
        let decoded = op.to_string();
        let decoded = decoded
            .split(' ')
            .next()
            .unwrap_or("")
            .trim_end_matches("_e32");
        assert!(decoded == name || op.mnemonic() == name, "{item} is {op}");
        count += 1;
    }
    assert!(count > 80, "{count}");
}

#[test]
fn broken_objects_are_refused_with_a_reason() {
    let good = support::object("counter", 4);
    assert!(matches!(
        CodeObject::parse(b"\x7fELF"),
        Err(ObjectError::Elf(_))
    ));
    let patched = |at: usize, byte: u8| {
        let mut bad = good.clone();
        bad[at] = byte;
        CodeObject::parse(&bad).expect_err("it is broken")
    };
    assert!(matches!(
        patched(18, 62),
        ObjectError::Foreign {
            machine: 62,
            osabi: 64
        }
    ));
    assert!(matches!(
        patched(7, 0),
        ObjectError::Foreign { osabi: 0, .. }
    ));
    assert!(matches!(patched(8, 4), ObjectError::Version(6)));
    assert!(matches!(patched(48, 0x4c), ObjectError::Processor(0x4c)));
    // The program headers follow the header; the first one to load has its size in memory at 40.
    let load = (64..)
        .step_by(56)
        .find(|&at| good[at] == 1)
        .expect("there is one");
    assert!(matches!(patched(load + 46, 0xff), ObjectError::Segment(_)));
    let small = FlatMemory::new(BASE, 16);
    let object = CodeObject::parse(&good).expect("it is good");
    assert!(matches!(
        object.load(&small, BASE),
        Err(ObjectError::Memory(_))
    ));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// No file makes the loader panic.
    #[test]
    fn any_change_of_an_object_is_survived(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut file = support::object("counter", 4);
        for (at, byte) in changes {
            let at = at.index(file.len());
            file[at] = byte;
        }
        if let Ok(object) = CodeObject::parse(&file) && object.span_bytes() < 1 << 20 {
            let memory = FlatMemory::new(BASE, 1 << 20);
            let _ = object.load(&memory, BASE);
        }
    }

    /// No code makes the emulator panic or hang.
    #[test]
    fn any_code_ends(words in proptest::collection::vec(any::<u32>(), 1..32)) {
        let (memory, dispatch) = kernel(&words);
        let limits = Limits { budget: NonZeroU64::new(2000), ..Limits::default() };
        let outcome = Emulator::new(&memory).limits(limits).run(&dispatch);
        prop_assert!(outcome.counters[Counter::Waves] == 1);
    }
}
