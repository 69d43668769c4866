//! The cases.

use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hsa_sys::*;

use crate::client::{Hsa, Kernel, Queue, address, call, ok};

/// A case: what runs, with which variables, and how it ends.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) vars: &'static [(&'static str, &'static str)],
    pub(crate) end: End,
    pub(crate) run: fn(),
}

/// How a case's process ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    /// With success.
    Well,
    /// With success, after all of these texts on standard error.
    Said(&'static [&'static str]),
    /// Aborted by ROCr, with a text on standard error.
    Aborted(&'static str),
}

const fn case(
    name: &'static str,
    vars: &'static [(&'static str, &'static str)],
    run: fn(),
) -> Case {
    Case {
        name,
        vars,
        end: End::Well,
        run,
    }
}

const TWO: &[(&str, &str)] = &[("KR_EMU_AGENTS", "2")];
const EXCEPTIONS: &[(&str, &str)] = &[("KR_EMU_QUEUE_ERRORS", "exceptions")];
const POLLING: &[(&str, &str)] = &[("HSA_ENABLE_INTERRUPT", "0")];
const NO_SDMA: &[(&str, &str)] = &[("HSA_ENABLE_SDMA", "0")];
const INTERPRETED: &[(&str, &str)] = &[
    ("KR_EMU_BLITS", "interpreted"),
    ("KR_EMU_COMPUTE_UNITS", "8"),
    ("HSA_ENABLE_SDMA", "0"),
];

/// All of them.
pub(crate) const CASES: &[Case] = &[
    case("discovery", &[], discovery),
    case(
        "discovery_of_eight",
        &[("KR_EMU_AGENTS", "8"), ("KR_EMU_VRAM_MIB", "64")],
        discovery_of_eight,
    ),
    Case {
        name: "wrong_variable",
        vars: &[("KR_EMU_AGENTS", "nine")],
        end: End::Said(&[
            "hsaKmtOpenKFD: cannot set up the emulated machine: KR_EMU_AGENTS=nine: want 1 to 8",
        ]),
        run: wrong_variable,
    },
    Case {
        name: "help",
        vars: &[("KR_EMU_HELP", "1")],
        end: End::Said(&[
            "KR_EMU_TRACE (default 0",
            "\nNot modelled:\n- Time: ",
            "global wave sync, XNACK: agents say",
            "- ROCr releases",
        ]),
        run: discovery,
    },
    case("pools", &[("KR_EMU_VRAM_MIB", "64")], pools),
    case(
        "freed_memory_is_free",
        &[("KR_EMU_VRAM_MIB", "64")],
        freed_memory_is_free,
    ),
    case("pointers", TWO, pointers),
    case("locked_memory", &[], locked_memory),
    case("managed_memory", &[], managed_memory),
    case("copies", &[], copies),
    case("copies_without_sdma", NO_SDMA, copies),
    case("copies_interpreted", INTERPRETED, copies),
    case(
        "copies_without_fragments",
        &[("HSA_DISABLE_FRAGMENT_ALLOCATOR", "1")],
        copies,
    ),
    case("copies_of_windows", &[], copies_of_windows),
    case("copies_between_agents", TWO, copies_between_agents),
    case(
        "copies_between_agents_without_sdma",
        &[("KR_EMU_AGENTS", "2"), ("HSA_ENABLE_SDMA", "0")],
        copies_between_agents,
    ),
    case("copies_count_nothing", &[], || {
        copies_are_interpreted(false)
    }),
    case("copies_count_when_interpreted", INTERPRETED, || {
        copies_are_interpreted(true)
    }),
    case("fills", &[], fills),
    case("fills_interpreted", INTERPRETED, fills),
    case("signals", &[], signals),
    case("signals_polled", POLLING, signals),
    case("barriers", &[], barriers),
    case("barriers_polled", POLLING, barriers),
    case("doorbell", &[], doorbell),
    case("kernels_v4", &[], || kernels("v4")),
    case("kernels_v5", &[], || kernels("v5")),
    case("kernels_polled", POLLING, || kernels("v4")),
    case("kernel_wakes_the_host", &[], kernel_wakes_the_host),
    case("scratch", &[], scratch),
    case("time_stamps", &[], time_stamps),
    case("trace", &[("KR_EMU_TRACE", TRACE)], trace),
    Case {
        name: "trace_on_standard_error",
        vars: &[("KR_EMU_TRACE", "1"), ("KR_EMU_AGENTS", "2")],
        end: End::Said(&[
            "agent 2 queue ",
            " group 0,0,0 wave 0 pc 0x",
            " exec 0000000000000007 s_endpgm\n",
        ]),
        run: trace_on_standard_error,
    },
    case("counters", &[], counters),
    Case {
        name: "counters_beyond_the_registers",
        vars: &[],
        end: End::Said(&[
            "9 counters of block SQ are selected, it counts at most 8 at a time",
            "counters 0x801 are selected, there are only 11",
            "dword 0 of the command buffer, 0xc0017600, starts no packet that is emulated",
        ]),
        run: counters_beyond_the_registers,
    },
    case("masks_and_priorities", &[], masks_and_priorities),
    case("queue_errors", &[], queue_errors),
    case("queue_errors_as_exceptions", EXCEPTIONS, queue_errors),
    Case {
        name: "illegal_instructions_are_named",
        vars: &[],
        end: End::Said(&[
            "illegal instruction ? (bfffffff bf810000) at pc 0x",
            "of wave 0 in workgroup 0,0,0: no such instruction",
            "illegal instruction v_mfma_f32_32x32x1f32 (d3c00000 00000000) at pc 0x",
            "illegal instruction image instruction (f0000000 00000000) at pc 0x",
            "not modelled by the emulator",
        ]),
        run: illegal_instructions_are_named,
    },
    case("broken_code_objects", &[], broken_code_objects),
    Case {
        name: "broken_kernel_descriptors",
        vars: &[],
        end: End::Said(&[
            "packet 0: invalid kernel: kernel is compiled for waves of 32 lanes, gfx90a has only 64",
            "invalid kernel: kernel entry 0x",
            "packet 0: invalid kernel: cannot read the kernel descriptor: read of 64 bytes at 0x5040: not mapped",
        ]),
        run: broken_kernel_descriptors,
    },
    Case {
        name: "unsupported_calls",
        vars: &[("HSA_XNACK", "1")],
        end: End::Said(&[
            "hsaKmtRegisterGraphicsHandleToNodes: not emulated: memory of a graphics driver",
            "hsaKmtSetXNACKMode: not emulated: XNACK",
        ]),
        run: unsupported_calls,
    },
    Case {
        name: "budget",
        vars: &[("KR_EMU_BUDGET", "1000")],
        end: End::Said(&["dispatch executed its budget of 1000 wave instructions, last at pc 0x"]),
        run: ended_by_a_limit,
    },
    Case {
        name: "no_progress",
        vars: &[("KR_EMU_NO_PROGRESS", "50")],
        end: End::Said(&["dispatch makes no progress: pc 0x"]),
        run: ended_by_a_limit,
    },
    case(
        "endless_kernel_is_discarded",
        &[],
        endless_kernel_is_discarded,
    ),
    Case {
        name: "faults",
        vars: &[],
        end: End::Said(&[
            "packet 1: memory fault of global_store_dword at pc 0x",
            "of wave 0 in workgroup 0,0,0: write of ",
            "not mapped to this agent",
        ]),
        run: faults,
    },
    case("faults_as_exceptions", EXCEPTIONS, faults),
    Case {
        name: "fault_aborts",
        vars: &[],
        end: End::Aborted("Memory access fault"),
        run: fault_aborts,
    },
    case("fault_of_a_copy_engine", TWO, fault_of_a_copy_engine),
    case("two_agents", TWO, two_agents),
    case("many_queues", &[], many_queues),
    case("many_threads", &[], many_threads),
    case("up_and_down", &[], up_and_down),
    case("shared_memory", &[], shared_memory),
    case("shared_memory_peer", &[], shared_memory_peer),
    Case {
        name: "fork",
        vars: &[],
        end: End::Said(&["hsaKmtAllocMemory: this process is a fork"]),
        run: fork,
    },
];

fn object(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../amdgpu-emu/tests/objects")
        .join(name)
}

/// Bytes that repeat nowhere near.
fn noise(len: usize) -> Vec<u8> {
    (0..len as u64)
        .map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8)
        .collect()
}

fn discovery() {
    let hsa = Hsa::new();
    assert_eq!(hsa.gpus.len(), 1);
    assert_eq!(hsa.text(hsa.gpu(), hsa_agent_info_t::NAME.0), "gfx90a");
    assert_eq!(
        hsa.text(hsa.gpu(), hsa_agent_info_t::PRODUCT_NAME.0),
        "Emulated gfx90a"
    );
    assert_eq!(
        hsa.info::<u32>(hsa.gpu(), hsa_agent_info_t::COMPUTE_UNIT_COUNT.0),
        104
    );
    assert_eq!(
        hsa.info::<u32>(hsa.gpu(), hsa_agent_info_t::WAVEFRONT_SIZE.0),
        64
    );
    assert_eq!(
        hsa.info::<hsa_profile_t>(hsa.gpu(), hsa_agent_info_t::PROFILE.0),
        hsa_profile_t::BASE
    );
    let isa: hsa_isa_t = hsa.info(hsa.gpu(), hsa_agent_info_t::ISA.0);
    let mut name = [0u8; 64];
    ok!(
        hsa,
        hsa_isa_get_info_alt(isa, hsa_isa_info_t::NAME, name.as_mut_ptr().cast())
    );
    assert!(name.starts_with(b"amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-\0"));
    let mut frequency = 0u64;
    ok!(
        hsa,
        hsa_system_get_info(
            hsa_system_info_t::TIMESTAMP_FREQUENCY,
            (&raw mut frequency).cast()
        )
    );
    assert_eq!(frequency, 1_000_000_000);
    hsa.shut_down();
}

fn discovery_of_eight() {
    let hsa = Hsa::new();
    let uuids: std::collections::BTreeSet<_> = hsa
        .gpus
        .iter()
        .map(|&gpu| hsa.text(gpu, hsa_agent_info_t::UUID.0))
        .collect();
    assert_eq!(uuids.len(), 8);
    for &gpu in &hsa.gpus {
        let at = hsa.vram::<u32>(gpu, 1024);
        hsa.upload(at, &[7; 1024]);
        assert_eq!(hsa.download(at, 1024), [7; 1024]);
    }
    hsa.shut_down();
}

fn wrong_variable() {
    assert!(
        Hsa::try_new().is_err(),
        "a value that is not understood is refused"
    );
}

fn pools() {
    let hsa = Hsa::new();
    let vram = hsa.pool(hsa.gpu(), hsa_amd_memory_pool_global_flag_t::COARSE_GRAINED);
    assert_eq!(
        hsa.pool_info::<usize>(vram, hsa_amd_memory_pool_info_t::SIZE),
        64 << 20
    );
    assert!(!hsa.pool_info::<bool>(vram, hsa_amd_memory_pool_info_t::ACCESSIBLE_BY_ALL));
    assert_eq!(hsa.pools(hsa.cpu).len(), 3);
    let groups = hsa.pools(hsa.gpu()).into_iter();
    let groups = groups.filter(|&pool| {
        hsa.pool_info::<hsa_amd_segment_t>(pool, hsa_amd_memory_pool_info_t::SEGMENT)
            == hsa_amd_segment_t::GROUP
    });
    assert_eq!(
        groups
            .map(|pool| hsa.pool_info::<usize>(pool, hsa_amd_memory_pool_info_t::SIZE))
            .collect::<Vec<_>>(),
        [64 << 10]
    );
    // All of it, twice, and what is too much in between.
    for _ in 0..2 {
        let blocks: Vec<*mut u8> = (0..7).map(|_| hsa.vram::<u8>(hsa.gpu(), 8 << 20)).collect();
        let mut none = ptr::null_mut();
        let status = call!(
            hsa,
            hsa_amd_memory_pool_allocate(vram, 32 << 20, 0, &raw mut none)
        );
        assert_ne!(status, hsa_status_t::SUCCESS);
        blocks.into_iter().for_each(|block| hsa.free(block));
    }
    hsa.shut_down();
}

fn freed_memory_is_free() {
    let hsa = Hsa::new();
    let gpu = hsa.gpu();
    let queue = hsa.queue(gpu);
    let kernel = store(&hsa);
    let host = hsa.shared::<u8>(4096);
    for _ in 0..50 {
        // More than half of the VRAM, in use by a kernel, a copy kernel and a copy engine until just now.
        let vram = hsa.vram::<u8>(gpu, 40 << 20);
        queue.run(&kernel, 64, 64, &[address(vram)]);
        assert_eq!(hsa.download(vram, 1), [42]);
        let done = async_copy(&hsa, (host.as_mut_ptr(), hsa.cpu), (vram, gpu), 4096, None);
        hsa.wait(done);
        hsa.free(vram);
    }
    drop(queue);
    hsa.shut_down();
}

fn info(hsa: &Hsa, at: *const c_void) -> (hsa_amd_pointer_info_t, Vec<hsa_agent_t>) {
    unsafe extern "C" fn allocate(bytes: usize) -> *mut c_void {
        // SAFETY: asks for memory.
        unsafe { libc::malloc(bytes) }
    }
    let mut info = hsa_amd_pointer_info_t {
        size: size_of::<hsa_amd_pointer_info_t>() as u32,
        ..Default::default()
    };
    let (mut count, mut agents) = (0, ptr::null_mut::<hsa_agent_t>());
    ok!(
        hsa,
        hsa_amd_pointer_info(
            at,
            &raw mut info,
            Some(allocate),
            &raw mut count,
            &raw mut agents
        )
    );
    let list = (0..count as usize).map(|n| {
        // SAFETY: the runtime made a list of `count` agents.
        unsafe { agents.wrapping_add(n).read() }
    });
    (info, list.collect())
}

fn pointers() {
    let hsa = Hsa::new();
    let block = hsa.vram::<u8>(hsa.gpu(), 4 << 20);
    let (found, agents) = info(&hsa, block.wrapping_add(12345).cast());
    assert_eq!(found.r#type, hsa_amd_pointer_type_t::HSA);
    assert_eq!(
        (found.agentBaseAddress, found.sizeInBytes),
        (block.cast(), 4 << 20)
    );
    assert_eq!(found.agentOwner, hsa.gpu());
    assert_eq!(agents, [hsa.gpu()]);
    hsa.allow(&hsa.gpus, block);
    let (_, agents) = info(&hsa, block.cast());
    assert_eq!(agents, hsa.gpus);
    let (found, _) = info(&hsa, ptr::from_ref(&hsa).cast());
    assert_eq!(found.r#type, hsa_amd_pointer_type_t::UNKNOWN);
    hsa.free(block);
    hsa.shut_down();
}

fn locked_memory() {
    let hsa = Hsa::new();
    let queue = hsa.queue(hsa.gpu());
    let kernel = hsa.kernel(hsa.gpu(), &object("saxpy.v4.co"), "saxpy");
    let (mut y, x) = (vec![1.0f32; 3000], vec![2.0f32; 3000]);
    let lock = |memory: &[f32]| {
        let (mut gpu, mut at) = (hsa.gpu(), ptr::null_mut());
        let host = memory.as_ptr().cast_mut().cast();
        ok!(
            hsa,
            hsa_amd_memory_lock(host, size_of_val(memory), &raw mut gpu, 1, &raw mut at)
        );
        assert_ne!(at, host, "agents have an address of their own");
        let (found, _) = info(&hsa, at);
        assert_eq!(found.r#type, hsa_amd_pointer_type_t::LOCKED);
        assert_eq!(
            (found.hostBaseAddress, found.sizeInBytes),
            (host, size_of_val(memory))
        );
        at
    };
    let (to, from) = (lock(&y), lock(&x));
    queue.run(
        &kernel,
        3008,
        64,
        &[
            address(to),
            address(from),
            u64::from(3.0f32.to_bits()) | 3000 << 32,
        ],
    );
    ok!(hsa, hsa_amd_memory_unlock(y.as_mut_ptr().cast()));
    ok!(hsa, hsa_amd_memory_unlock(x.as_ptr().cast_mut().cast()));
    assert_eq!(y, [7.0; 3000]);
    drop(queue);
    hsa.shut_down();
}

fn managed_memory() {
    let hsa = Hsa::new();
    let queue = hsa.queue(hsa.gpu());
    let kernel = hsa.kernel(hsa.gpu(), &object("saxpy.v4.co"), "saxpy");
    // Whole pages of the application's own.
    let pages = Box::leak(vec![1.0f32; 3 * 1024].into_boxed_slice());
    let start = pages.as_mut_ptr().map_addr(|at| at.next_multiple_of(4096));
    let pair = |attribute: hsa_amd_svm_attribute_t, value| hsa_amd_svm_attribute_pair_t {
        attribute: attribute.0.into(),
        value,
    };
    let mut attributes = [pair(
        hsa_amd_svm_attribute_t::AGENT_ACCESSIBLE_IN_PLACE,
        hsa.gpu().handle,
    )];
    ok!(
        hsa,
        hsa_amd_svm_attributes_set(start.cast(), 8192, attributes.as_mut_ptr(), 1)
    );
    let mut query = [pair(
        hsa_amd_svm_attribute_t::ACCESS_QUERY,
        hsa.gpu().handle,
    )];
    ok!(
        hsa,
        hsa_amd_svm_attributes_get(start.cast(), 8192, query.as_mut_ptr(), 1)
    );
    assert_eq!(
        query[0].attribute,
        u64::from(hsa_amd_svm_attribute_t::AGENT_ACCESSIBLE_IN_PLACE.0)
    );
    queue.run(
        &kernel,
        1024,
        64,
        &[
            address(start),
            address(start),
            u64::from(2.0f32.to_bits()) | 1024 << 32,
        ],
    );
    // SAFETY: inside `pages`, and the kernel has ended.
    assert_eq!(unsafe { start.wrapping_add(1023).read() }, 3.0);
    drop(queue);
    hsa.shut_down();
}

/// Copies asynchronously from where `from_agent` has it, after `dep` if there is one.
fn async_copy(
    hsa: &Hsa,
    to: (*mut u8, hsa_agent_t),
    from: (*const u8, hsa_agent_t),
    len: usize,
    dep: Option<hsa_signal_t>,
) -> hsa_signal_t {
    let done = hsa.signal(1);
    let deps: Vec<_> = dep.into_iter().collect();
    let list = if deps.is_empty() {
        ptr::null()
    } else {
        deps.as_ptr()
    };
    ok!(
        hsa,
        hsa_amd_memory_async_copy(
            to.0.cast(),
            to.1,
            from.0.cast(),
            from.1,
            len,
            deps.len() as u32,
            list,
            done
        )
    );
    done
}

fn copies() {
    let hsa = Hsa::new();
    let gpu = hsa.gpu();
    let (first, second) = (hsa.vram::<u8>(gpu, 9 << 20), hsa.vram::<u8>(gpu, 9 << 20));
    // Synchronous copies of sizes and alignments around those of words, lines and pages.
    for len in [1, 3, 4, 16, 63, 64, 4095, 4096, 4097, 100_000] {
        for (to, from) in [(0, 0), (1, 0), (0, 3), (5, 7)] {
            let bytes = noise(len);
            hsa.upload(first, &vec![0xee; len + 64]);
            hsa.upload(second, &vec![0xdd; len + 64]);
            hsa.upload(first.wrapping_add(from), &bytes);
            ok!(
                hsa,
                hsa_memory_copy(
                    second.wrapping_add(to).cast(),
                    first.wrapping_add(from).cast(),
                    len
                )
            );
            let back = hsa.download(second, len + 64);
            assert_eq!(back[to..to + len], bytes, "{len} bytes to {to} from {from}");
            assert!(
                back[..to]
                    .iter()
                    .chain(&back[to + len..])
                    .all(|&byte| byte == 0xdd),
                "bytes around {len} at {to}"
            );
        }
    }
    // Asynchronous ones, larger than a packet of older engines could name, one behind a signal.
    let len = (9 << 20) - 5;
    let bytes = noise(len);
    let host = hsa.shared::<u8>(9 << 20);
    host[..len].copy_from_slice(&bytes);
    let go = hsa.signal(1);
    let up = async_copy(&hsa, (first, gpu), (host.as_ptr(), hsa.cpu), len, Some(go));
    let across = async_copy(&hsa, (second, gpu), (first, gpu), len, Some(up));
    assert!(
        !hsa.waited(up, Duration::from_millis(100)),
        "the copy waits for its signal"
    );
    hsa.store(go, 0);
    hsa.wait(across);
    host.fill(0);
    let down = async_copy(
        &hsa,
        (host.as_mut_ptr(), hsa.cpu),
        (second, gpu),
        len,
        Some(across),
    );
    hsa.wait(down);
    assert!(host[..len] == bytes[..]);
    assert!(host[len..].iter().all(|&byte| byte == 0));
    hsa.shut_down();
}

fn copies_of_windows() {
    let hsa = Hsa::new();
    let gpu = hsa.gpu();
    let (pitch, slice) = (256, 256 * 16);
    let host = hsa.shared::<u8>(slice * 3);
    host.copy_from_slice(&noise(slice * 3));
    let vram = hsa.vram::<u8>(gpu, slice * 3);
    hsa.upload(vram, &vec![0; slice * 3]);
    let pitched = |base: *mut u8| hsa_pitched_ptr_t {
        base: base.cast(),
        pitch,
        slice,
    };
    let at = |x, y, z| hsa_dim3_t { x, y, z };
    let (to, from) = (pitched(vram), pitched(host.as_mut_ptr()));
    let (to_at, from_at, range) = (at(4, 3, 1), at(9, 2, 0), at(101, 7, 2));
    let done = hsa.signal(1);
    let direction = hsa_amd_copy_direction_t::HOST_TO_DEVICE;
    ok!(
        hsa,
        hsa_amd_memory_async_copy_rect(
            &to,
            &to_at,
            &from,
            &from_at,
            &range,
            gpu,
            direction,
            0,
            ptr::null(),
            done
        )
    );
    hsa.wait(done);
    let back = hsa.download(vram, slice * 3);
    let index = |at: hsa_dim3_t, x: u32, y: u32, z: u32| {
        ((at.z + z) as usize * slice) + ((at.y + y) as usize * pitch) + (at.x + x) as usize
    };
    let mut want = vec![0; slice * 3];
    for z in 0..range.z {
        for y in 0..range.y {
            for x in 0..range.x {
                want[index(to_at, x, y, z)] = host[index(from_at, x, y, z)];
            }
        }
    }
    assert!(back == want);
    hsa.shut_down();
}

fn copies_between_agents() {
    let hsa = Hsa::new();
    let [one, two] = hsa.gpus[..] else {
        panic!("want two agents")
    };
    let len = 5 << 20;
    let (from, to) = (hsa.vram::<u8>(one, len), hsa.vram::<u8>(two, len));
    let bytes = noise(len);
    hsa.upload(from, &bytes);
    hsa.allow(&hsa.gpus, from);
    hsa.allow(&hsa.gpus, to);
    hsa.wait(async_copy(&hsa, (to, two), (from, one), len, None));
    assert!(hsa.download(to, len) == bytes);
    // Without asynchronous means, through the host.
    hsa.upload(to, &vec![0; len]);
    ok!(hsa, hsa_memory_copy(to.cast(), from.cast(), len));
    assert!(hsa.download(to, len) == bytes);
    hsa.shut_down();
}

fn fills() {
    let hsa = Hsa::new();
    let vram = hsa.vram::<u32>(hsa.gpu(), 70_000);
    for words in [1, 15, 16, 1000, 65_537] {
        hsa.upload(vram, &vec![9; 70_000]);
        ok!(
            hsa,
            hsa_amd_memory_fill(vram.wrapping_add(3).cast(), 0x1234_5678, words)
        );
        let back = hsa.download(vram, 70_000);
        assert!(
            back[3..3 + words].iter().all(|&word| word == 0x1234_5678),
            "{words} words"
        );
        assert!(
            back[..3]
                .iter()
                .chain(&back[3 + words..])
                .all(|&word| word == 9),
            "around {words} words"
        );
    }
    hsa.shut_down();
}

fn signals() {
    static FIRED: AtomicU64 = AtomicU64::new(0);
    unsafe extern "C" fn fire(value: hsa_signal_value_t, _: *mut c_void) -> bool {
        FIRED.store(100 + value as u64, Ordering::SeqCst);
        false
    }
    let hsa = Hsa::new();
    let queue = hsa.queue(hsa.gpu());
    // Agents wake waiters and handlers.
    let done = hsa.signal(1);
    ok!(
        hsa,
        hsa_amd_signal_async_handler(done, hsa_signal_condition_t::LT, 1, fire, ptr::null_mut())
    );
    std::thread::scope(|scope| {
        let waiters: Vec<_> = (0..3).map(|_| scope.spawn(|| hsa.wait(done))).collect();
        std::thread::sleep(Duration::from_millis(20));
        queue.submit(barrier_and(&[], done));
        waiters
            .into_iter()
            .for_each(|waiter| waiter.join().expect("the waiter is not left waiting"));
    });
    let until = Instant::now() + Duration::from_secs(10);
    while FIRED.load(Ordering::SeqCst) != 100 {
        assert!(Instant::now() < until, "the handler is not called");
        std::thread::yield_now();
    }
    // The host waits for one of many.
    let mut many: Vec<_> = (0..20).map(|_| hsa.signal(1)).collect();
    queue.submit(barrier_and(&[], many[13]));
    let (mut conditions, mut values) = (vec![hsa_signal_condition_t::LT; 20], vec![1; 20]);
    let any = call!(
        hsa,
        hsa_amd_signal_wait_any(
            20,
            many.as_mut_ptr(),
            conditions.as_mut_ptr(),
            values.as_mut_ptr(),
            10_000_000_000,
            hsa_wait_state_t::BLOCKED,
            ptr::null_mut()
        )
    );
    assert_eq!(any, 13);
    many.into_iter()
        .for_each(|signal| ok!(hsa, hsa_signal_destroy(signal)));
    drop(queue);
    hsa.shut_down();
}

const SYSTEM: hsa_fence_scope_t = hsa_fence_scope_t::SYSTEM;

fn barrier_and(deps: &[hsa_signal_t], done: hsa_signal_t) -> hsa_barrier_and_packet_t {
    let mut packet = hsa_barrier_and_packet_t {
        header: packet_header(hsa_packet_type_t::BARRIER_AND, true, SYSTEM, SYSTEM),
        completion_signal: done,
        ..Default::default()
    };
    packet.dep_signal[..deps.len()].copy_from_slice(deps);
    packet
}

fn barrier_or(deps: &[hsa_signal_t], done: hsa_signal_t) -> hsa_barrier_or_packet_t {
    let mut packet = hsa_barrier_or_packet_t {
        header: packet_header(hsa_packet_type_t::BARRIER_OR, true, SYSTEM, SYSTEM),
        completion_signal: done,
        ..Default::default()
    };
    packet.dep_signal[..deps.len()].copy_from_slice(deps);
    packet
}

fn barriers() {
    let hsa = Hsa::new();
    let queue = hsa.queue(hsa.gpu());
    let later = |done| {
        assert!(
            !hsa.waited(done, Duration::from_millis(60)),
            "the barrier waits"
        )
    };
    let (one, two) = (hsa.signal(1), hsa.signal(1));

    let done = hsa.signal(1);
    queue.submit(barrier_and(&[one, two], done));
    later(done);
    hsa.store(one, 0);
    later(done);
    hsa.store(two, 0);
    hsa.wait(done);

    hsa.store(one, 1);
    hsa.store(two, 1);
    let done = hsa.signal(1);
    queue.submit(barrier_or(&[one, two], done));
    later(done);
    hsa.store(two, 0);
    hsa.wait(done);

    // Every condition, first not fulfilled, then fulfilled, under a mask.
    for (condition, closed, open) in [
        (hsa_signal_condition_t::EQ, 0x105, 0x907),
        (hsa_signal_condition_t::NE, 0x907, 0x105),
        (hsa_signal_condition_t::LT, 0x907, 0x906),
        (hsa_signal_condition_t::GTE, 0x906, 0x107),
    ] {
        hsa.store(one, closed);
        let done = hsa.signal(1);
        queue.submit(hsa_amd_barrier_value_packet_t {
            header: hsa_amd_vendor_packet_header_t {
                header: 0x1500,
                AmdFormat: 2,
                reserved: 0,
            },
            signal: one,
            value: 7,
            mask: 0xff,
            cond: condition,
            completion_signal: done,
            ..Default::default()
        });
        later(done);
        hsa.store(one, open);
        hsa.wait(done);
    }

    // One that waits for no signal at all, and a queue that is destroyed while it waits.
    let done = hsa.signal(1);
    queue.submit(hsa_amd_barrier_value_packet_t {
        header: hsa_amd_vendor_packet_header_t {
            header: 0x1500,
            AmdFormat: 2,
            reserved: 0,
        },
        completion_signal: done,
        ..Default::default()
    });
    hsa.wait(done);
    hsa.store(one, 1);
    queue.submit(barrier_and(&[one], hsa_signal_t::default()));
    drop(queue);
    hsa.shut_down();
}

fn doorbell() {
    let hsa = Hsa::new();
    let queue = hsa.queue(hsa.gpu());
    let done = hsa.signal(3);
    let first = queue.write(barrier_and(&[], done));
    let second = queue.write(barrier_and(&[], done));
    assert!(
        !hsa.waited(done, Duration::from_millis(60)) && hsa.load(done) == 3,
        "nobody rang"
    );
    // The last ring that is seen may be of an earlier packet.
    queue.ring(second);
    queue.ring(first);
    queue.submit(barrier_and(&[], done));
    hsa.wait(done);
    drop(queue);
    hsa.shut_down();
}

/// A number that looks random: the end of splitmix64.
fn mixed(z: u64) -> u64 {
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Runs kernels of the test objects and compares with the host's results.
fn kernels(version: &str) {
    let hsa = Hsa::new();
    let gpu = hsa.gpu();
    let queue = hsa.queue(gpu);
    let kernel = |name: &str, kernel: &str| {
        hsa.kernel(gpu, &object(&format!("{name}.{version}.co")), kernel)
    };

    let count = 1000u32;
    let (y, x) = (hsa.vram::<f32>(gpu, 1000), hsa.vram::<f32>(gpu, 1000));
    let numbers = |scale: f32| (0..1000).map(|n| n as f32 * scale).collect::<Vec<_>>();
    hsa.upload(y, &numbers(0.5));
    hsa.upload(x, &numbers(3.0));
    let arguments = [
        address(y),
        address(x),
        u64::from(1.5f32.to_bits()) | u64::from(count) << 32,
    ];
    queue.run(&kernel("saxpy", "saxpy"), 1024, 64, &arguments);
    let want: Vec<f32> = (0..1000)
        .map(|n| 1.5f32.mul_add(n as f32 * 3.0, n as f32 * 0.5))
        .collect();
    assert!(hsa.download(y, 1000) == want);

    let numbers: Vec<u32> = (0..1024u32)
        .map(|n| n.wrapping_mul(0x9e37_79b9) >> 20)
        .collect();
    let (from, to) = (hsa.vram::<u32>(gpu, 1024), hsa.vram::<u32>(gpu, 1024));
    hsa.upload(from, &numbers);
    queue.run(
        &kernel("scan", "scan"),
        1024,
        256,
        &[address(to), address(from)],
    );
    let sums = numbers.chunks(256).flat_map(|part| {
        part.iter().scan(0u32, |sum, &n| {
            *sum = sum.wrapping_add(n);
            Some(*sum)
        })
    });
    assert!(hsa.download(to, 1024) == sums.collect::<Vec<_>>());

    let (cells, wide) = (hsa.vram::<u32>(gpu, 16), hsa.vram::<u64>(gpu, 1));
    hsa.upload(cells, &[0; 16]);
    hsa.upload(wide, &[0]);
    queue.run(
        &kernel("atomics", "atomics"),
        1024,
        128,
        &[address(cells), address(wide), address(from), 1024],
    );
    let back = hsa.download(cells, 16);
    assert_eq!(back[0], numbers.iter().sum::<u32>());
    assert_eq!(Some(&back[1]), numbers.iter().max());
    assert_eq!(
        hsa.download(wide, 1)[0],
        numbers.iter().map(|&n| u64::from(n) << 20).sum::<u64>()
    );
    assert_eq!(
        back[2],
        (0..1024).fold(0u32, |n, _| n.wrapping_mul(3).wrapping_add(1))
    );

    // 16 bytes for each item, and none behind the last one.
    let wide = hsa.vram::<u32>(gpu, 4 * 100 + 4);
    hsa.upload(wide, &[9; 4 * 100 + 4]);
    queue.run(
        &kernel("copy", "copy16"),
        256,
        256,
        &[address(wide), address(from), 100],
    );
    let back = hsa.download(wide, 4 * 100 + 4);
    assert_eq!((&back[..400], &back[400..]), (&numbers[..400], &[9; 4][..]));

    // Tiles of 16 KiB.
    let words: Vec<u64> = (1..=3 * 2048u64).map(mixed).collect();
    let (tiles, digests) = (hsa.vram::<u64>(gpu, words.len()), hsa.vram::<u64>(gpu, 3));
    hsa.upload(tiles, &words);
    queue.run(
        &kernel("digest", "digest"),
        3 * 256,
        256,
        &[address(digests), address(tiles)],
    );
    let digest = |tile: &[u64]| {
        let words = tile.iter().zip(1u64..);
        words.fold(0u64, |sum, (word, i)| {
            sum.wrapping_add(mixed(
                word.wrapping_add(i.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            ))
        })
    };
    let want: Vec<u64> = words.chunks(2048).map(digest).collect();
    assert_eq!(hsa.download(digests, 3), want);

    // Sums of floats in a fixed order, so the same bits: square root and division are exact.
    let values: Vec<f32> = (0..3000).map(|i| i as f32 * 1.25e-3 + 1e-6).collect();
    let (of, sums) = (hsa.vram::<f32>(gpu, 3000), hsa.vram::<f32>(gpu, 2));
    hsa.upload(of, &values);
    queue.run(
        &kernel("reduce", "reduce"),
        512,
        256,
        &[address(sums), address(of), 3000],
    );
    let want = [0, 1].map(|group| {
        let mut lanes: Vec<f32> = (0..256)
            .map(|lane| {
                let own = values[group * 256 + lane..].iter().step_by(512);
                own.fold(0.0, |sum, value| sum + value.sqrt() / (1.0 + value))
            })
            .collect();
        for step in [128, 64, 32, 16, 8, 4, 2, 1] {
            (0..step).for_each(|lane| lanes[lane] += lanes[lane + step]);
        }
        lanes[0]
    });
    assert_eq!(hsa.download(sums, 2), want);

    // A module's variables live on between dispatches.
    let counting = kernel("counter", "count");
    let seen = hsa.vram::<u32>(gpu, 4);
    for base in [41, 45] {
        queue.run(&counting, 256, 64, &[address(seen)]);
        let mut seen = hsa.download(seen, 4);
        seen.sort_unstable();
        assert_eq!(seen, [base, base + 1, base + 2, base + 3]);
    }
    drop(queue);
    hsa.shut_down();
}

fn kernel_wakes_the_host() {
    let hsa = Hsa::new();
    let queue = hsa.queue(hsa.gpu());
    let kernel = hsa.assemble(&[
        0xc006_0080,
        0, // s_load_dwordx2 s[2:3], s[0:1], 0
        0xc002_0100,
        8,           // s_load_dword s4, s[0:1], 8
        0xbf8c_c07f, // s_waitcnt lgkmcnt(0)
        0x7e00_0202,
        0x7e02_0203, // v_mov_b32 v0, s2; v_mov_b32 v1, s3
        0x7e04_0280,
        0x7e06_0280, // v_mov_b32 v2, 0; v_mov_b32 v3, 0
        0xdc74_8000,
        0x007f_0200, // global_store_dwordx2 v[0:1], v[2:3], off
        0xbefc_0004, // s_mov_b32 m0, s4
        0xbf90_0001, // s_sendmsg sendmsg(MSG_INTERRUPT)
        0xbf81_0000,
    ]);
    // A signal that no packet completes: the kernel stores its value and says who is to be woken.
    let signal = hsa.signal(1);
    let at = ptr::with_exposed_provenance::<amd_signal_t>(signal.handle as usize);
    // SAFETY: a signal's handle is the address of its structure, whose event does not change.
    let event = unsafe { (*at).event_id };
    // SAFETY: as above.
    let value = unsafe { &raw const (*at).value };
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| hsa.wait(signal));
        std::thread::sleep(Duration::from_millis(20));
        queue.run(&kernel, 64, 64, &[address(value), event.into()]);
        waiter.join().expect("the waiter is woken");
    });
    drop(queue);
    hsa.shut_down();
}

fn scratch_on_host(to: &mut [u32], from: &[u32]) {
    for (i, (to, &from)) in to.iter_mut().zip(from).enumerate() {
        let mut table: Vec<u32> = (0..192u32)
            .map(|k| k.wrapping_mul(i as u32).wrapping_add(7))
            .collect();
        for k in 0..192u32 {
            table[(from.wrapping_add(k * k) % 192) as usize] ^= from >> (k & 15);
        }
        for k in 0..192u32 {
            let at = from.wrapping_mul(k) % 768;
            let mut bytes = table[at as usize / 4].to_le_bytes();
            bytes[at as usize % 4] = bytes[at as usize % 4].wrapping_add(k as u8);
            table[at as usize / 4] = u32::from_le_bytes(bytes);
        }
        *to = (0..192u32).fold(0u32, |sum, k| {
            sum.wrapping_mul(31)
                .wrapping_add(table[(k.wrapping_add(from) % 192) as usize])
        });
    }
}

fn scratch() {
    let hsa = Hsa::new();
    let gpu = hsa.gpu();
    let kernel = hsa.kernel(gpu, &object("scratch.v4.co"), "scratch");
    assert!(kernel.private_bytes >= 768);
    let numbers: Vec<u32> = (0..200u32).map(|n| n.wrapping_mul(0x9e37_79b9)).collect();
    let mut want = vec![0; 200];
    scratch_on_host(&mut want, &numbers);
    let (from, to) = (hsa.vram::<u32>(gpu, 200), hsa.vram::<u32>(gpu, 200));
    hsa.upload(from, &numbers);
    // A queue starts without scratch memory and asks ROCr for it; a second queue asks for its own.
    for _ in 0..2 {
        let queue = hsa.queue(gpu);
        for _ in 0..2 {
            hsa.upload(to, &[0; 200]);
            queue.run(&kernel, 256, 64, &[address(to), address(from), 200]);
            assert_eq!(hsa.download(to, 200), want);
        }
    }
    hsa.shut_down();
}

fn time_stamps() {
    let hsa = Hsa::new();
    let queue = hsa.queue(hsa.gpu());
    ok!(hsa, hsa_amd_profiling_set_profiler_enabled(queue.queue, 1));
    let now = || {
        let mut now = 0u64;
        ok!(
            hsa,
            hsa_system_get_info(hsa_system_info_t::TIMESTAMP, (&raw mut now).cast())
        );
        now
    };
    let nothing = hsa.assemble(&[0xbf81_0000]);
    let mut last = now();
    for _ in 0..5 {
        let done = hsa.signal(1);
        queue.submit(nothing.packet(64, 64, ptr::null(), done));
        hsa.wait(done);
        let mut time = hsa_amd_profiling_dispatch_time_t::default();
        ok!(
            hsa,
            hsa_amd_profiling_get_dispatch_time(hsa.gpu(), done, &raw mut time)
        );
        // The runtime converts between the clocks; a microsecond is what that may cost.
        assert!(
            last <= time.start + 1000 && time.start < time.end && time.end <= now() + 1000,
            "{last} {time:?}"
        );
        last = time.end;
    }
    drop(queue);
    hsa.shut_down();
}

/// A vendor packet that runs a command buffer.
fn commands(buffer: &[u32], done: hsa_signal_t) -> [u32; 16] {
    let at = address(buffer.as_ptr());
    let mut words = [0; 16];
    words[0] = 0x1 << 16 | 0x100;
    words[1..5].copy_from_slice(&[
        0xc002_3f00,
        at as u32,
        (at >> 32) as u32,
        buffer.len() as u32 | 1 << 23,
    ]);
    words[5] = 0xa;
    words[14] = done.handle as u32;
    words[15] = (done.handle >> 32) as u32;
    words
}

/// The agent's counters, as a profiling library drives them on a queue.
struct Counting<'a> {
    queue: &'a Queue<'a>,
    values: &'static [u64],
}

impl<'a> Counting<'a> {
    fn on(queue: &'a Queue<'a>) -> Self {
        let values = queue.hsa.shared::<u64>(11);
        Self { queue, values }
    }

    /// Runs one command, without waiting.
    fn command(&self, operation: u32, low: u32, high: u32) -> hsa_signal_t {
        let buffer = self.queue.hsa.shared::<u32>(5);
        buffer.copy_from_slice(&[0xc003_1000, 0x4345_524b, operation, low, high]);
        let done = self.queue.hsa.signal(1);
        self.queue.submit(commands(buffer, done));
        done
    }

    /// Starts counters: bit 0 is the first of `amdgpu_emu::Counter`.
    fn start(&self, bits: u32) {
        self.queue.hsa.wait(self.command(1, bits, 0));
    }

    fn stop(&self) {
        self.queue.hsa.wait(self.command(3, 0, 0));
    }

    /// The counters that were started, and zeros behind them.
    fn read(&self) -> &'static [u64] {
        let at = address(self.values.as_ptr());
        let done = self.command(2, at as u32, (at >> 32) as u32);
        self.queue.hsa.wait(done);
        self.values
    }
}

/// Where the case `trace` has its trace.
const TRACE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/hsakmt-emu-trace.txt");

/// Whether a line of a trace is a vector, scalar or scalar memory instruction, or reads or writes vector memory, as far
/// as `saxpy` has them.
fn class(text: &str) -> Option<usize> {
    let is = |prefixes: &[&str]| prefixes.iter().any(|prefix| text.starts_with(prefix));
    match text {
        _ if is(&["v_"]) => Some(0),
        _ if is(&["s_load"]) => Some(2),
        _ if is(&["s_waitcnt", "s_cbranch", "s_endpgm"]) => None,
        _ if is(&["s_"]) => Some(1),
        _ if is(&["global_load"]) => Some(3),
        _ if is(&["global_store"]) => Some(4),
        _ => panic!("{text} is not in the kernel"),
    }
}

/// The trace of a kernel has a line for each instruction that is counted, and shows where and on which lanes it ran.
fn trace() {
    // The driver adds to what is there.
    let _ = std::fs::remove_file(TRACE);
    assert!(!Path::new(TRACE).exists());
    let hsa = Hsa::new();
    let gpu = hsa.gpu();
    let queue = hsa.queue(gpu);
    let kernel = hsa.kernel(gpu, &object("saxpy.v4.co"), "saxpy");
    let (y, x) = (hsa.shared::<f32>(264), hsa.shared::<f32>(264));
    let counting = Counting::on(&queue);
    counting.start(0x3f);
    // Five waves in three groups, the last of them with 36 lanes, all but 8 of which are off from the branch on.
    let arguments = [
        address(y.as_ptr()),
        address(x.as_ptr()),
        u64::from(1.5f32.to_bits()) | 264 << 32,
    ];
    queue.run(&kernel, 292, 128, &arguments);
    let counted = counting.read();

    let text = std::fs::read_to_string(TRACE).expect("the driver wrote it");
    let lines: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.splitn(15, ' ').collect())
        .collect();
    let (mut classes, mut others) = ([0; 5], 0);
    for line in &lines {
        let [
            "agent",
            "1",
            "queue",
            _,
            "packet",
            packet,
            "group",
            _,
            "wave",
            _,
            "pc",
            _,
            "exec",
            _,
            text,
        ] = line[..]
        else {
            panic!("{line:?}")
        };
        assert_eq!(packet, "1", "the first packet starts the counters");
        match class(text) {
            Some(class) => classes[class] += 1,
            None => others += 1,
        }
    }
    assert_eq!((counted[0], &counted[1..6]), (5, &classes[..]));
    // Two waits for arguments and one for data, a branch and an end on each wave.
    assert_eq!(others, 5 * 5);
    assert_eq!(lines.len() as u64, counted[1..6].iter().sum::<u64>() + 25);

    for (group, wave, items, active) in [
        ("0,0,0", "0", u64::MAX, u64::MAX),
        ("1,0,0", "1", u64::MAX, u64::MAX),
        ("2,0,0", "0", (1 << 36) - 1, 0xff),
    ] {
        let mut of_wave = lines
            .iter()
            .filter(|line| line[7] == group && line[9] == wave);
        let (first, last) = (of_wave.next(), of_wave.next_back());
        let (first, last) = (first.expect("it ran"), last.expect("it ended"));
        assert_eq!(
            first[13..],
            [&format!("{items:016x}"), "s_load_dword s2, s[4:5], 0x4"]
        );
        assert_eq!(last[13..], [&format!("{active:016x}"), "s_endpgm"]);
        // The kernel ends 128 bytes behind its entry.
        let pc = |line: &[&str]| u64::from_str_radix(&line[11][2..], 16).expect("an address");
        assert_eq!(pc(last) - pc(first), 0x80);
    }
    drop(queue);
    hsa.shut_down();
}

fn trace_on_standard_error() {
    let hsa = Hsa::new();
    let queue = hsa.queue(hsa.gpus[1]);
    queue.run(&hsa.assemble(&[0xbf81_0000]), 3, 64, &[]);
    drop(queue);
    hsa.shut_down();
}

fn counters() {
    let hsa = Hsa::new();
    let queue = hsa.queue(hsa.gpu());
    let counting = Counting::on(&queue);
    assert_eq!(counting.read(), [0; 11], "nothing was started");
    // Three scalar moves on each of 6 waves, between start and stop; then some that are not counted.
    let kernel = hsa.assemble(&[0xbe84_0080, 0xbe84_0080, 0xbe84_0080, 0xbf81_0000]);
    queue.run(&kernel, 64, 64, &[]);
    // Waves, vector, scalar and busy cycles of SQ, and both counters of GRBM.
    counting.start(0x707);
    queue.run(&kernel, 6 * 64, 128, &[]);
    let values = counting.read();
    assert_eq!(values[..3], [6, 0, 18]);
    assert_eq!(
        values[3] + 1000,
        values[4],
        "cycles without and with the launch"
    );
    assert_eq!(values[4..], [values[4], values[4], 0, 0, 0, 0, 0][..]);
    counting.stop();
    queue.run(&kernel, 64, 64, &[]);
    let before = values.to_vec();
    assert_eq!(counting.read(), before, "stopped counters stay");
    drop(queue);
    hsa.shut_down();
}

fn counters_beyond_the_registers() {
    let hsa = Hsa::new();
    let none = hsa_signal_t::default();
    // Eight counters of SQ and two of GRBM fit; a ninth of SQ does not, nor does one that nobody knows.
    let queue = hsa.queue(hsa.gpu());
    Counting::on(&queue).start(0x6ff);
    for bits in [0x7ff, 0x801] {
        let queue = hsa.queue(hsa.gpu());
        Counting::on(&queue).command(1, bits, 0);
        assert_eq!(queue.error(), hsa_status_t::ERROR_INVALID_PACKET_FORMAT);
    }
    // A command that nobody emulates is an error, not a hang.
    let register = hsa.shared::<u32>(3);
    register.copy_from_slice(&[0xc001_7600, 0, 0]);
    queue.submit(commands(register, none));
    assert_eq!(queue.error(), hsa_status_t::ERROR_INVALID_PACKET_FORMAT);
    drop(queue);
    hsa.shut_down();
}

fn copies_are_interpreted(interpreted: bool) {
    let hsa = Hsa::new();
    let queue = hsa.queue(hsa.gpu());
    let counting = Counting::on(&queue);
    let vram = hsa.vram::<u32>(hsa.gpu(), 1000);
    counting.start(1);
    hsa.upload(vram, &[5; 1000]);
    assert_eq!(hsa.download(vram, 1000), [5; 1000]);
    ok!(hsa, hsa_amd_memory_fill(vram.cast(), 6, 1000));
    let waves = counting.read()[0];
    assert_eq!(waves > 0, interpreted, "{waves} waves");
    drop(queue);
    hsa.shut_down();
}

fn masks_and_priorities() {
    let hsa = Hsa::new();
    let queue = hsa.queue(hsa.gpu());
    let mask = [0xffff_u32, 0, 0, 0];
    ok!(
        hsa,
        hsa_amd_queue_cu_set_mask(queue.queue, 128, mask.as_ptr())
    );
    let mut back = [1; 4];
    ok!(
        hsa,
        hsa_amd_queue_cu_get_mask(queue.queue, 128, back.as_mut_ptr())
    );
    assert_eq!(back, mask);
    ok!(
        hsa,
        hsa_amd_queue_set_priority(queue.queue, hsa_amd_queue_priority_t::HIGH)
    );
    queue.run(&hsa.assemble(&[0xbf81_0000]), 64, 64, &[]);
    drop(queue);
    hsa.shut_down();
}

fn queue_errors() {
    let hsa = Hsa::new();
    let done = hsa.signal(1);
    let nothing = hsa.assemble(&[0xbf81_0000]);
    let good = nothing.packet(64, 64, ptr::null(), done);
    let fails = |packet: hsa_kernel_dispatch_packet_t, want: hsa_status_t| {
        let queue = hsa.queue(hsa.gpu());
        queue.submit(packet);
        assert_eq!(queue.error(), want);
        // What comes later never runs, and the queue can be destroyed.
        queue.submit(good);
        assert!(!hsa.waited(done, Duration::from_millis(30)));
    };
    let kernel = |words: &[u32]| hsa.assemble(words).packet(64, 64, ptr::null(), done);
    fails(
        kernel(&[0xbfff_ffff]),
        hsa_status_t::ERROR_ILLEGAL_INSTRUCTION,
    );
    fails(
        kernel(&[0xbf92_0002, 0xbf81_0000]),
        hsa_status_t::ERROR_EXCEPTION,
    );
    fails(
        hsa_kernel_dispatch_packet_t { setup: 0, ..good },
        hsa_status_t::ERROR_INCOMPATIBLE_ARGUMENTS,
    );
    fails(
        hsa_kernel_dispatch_packet_t {
            group_segment_size: 100_000,
            ..good
        },
        hsa_status_t::ERROR_INVALID_ALLOCATION,
    );
    fails(
        hsa_kernel_dispatch_packet_t {
            workgroup_size_x: 2000,
            ..good
        },
        hsa_status_t::ERROR_INVALID_ARGUMENT,
    );
    fails(
        hsa_kernel_dispatch_packet_t {
            kernel_object: 0,
            ..good
        },
        hsa_status_t::ERROR_INVALID_CODE_OBJECT,
    );
    fails(
        hsa_kernel_dispatch_packet_t {
            header: 0x1504,
            ..good
        },
        hsa_status_t::ERROR_INVALID_PACKET_FORMAT,
    );
    fails(
        hsa_kernel_dispatch_packet_t {
            header: 0x1500,
            setup: 0xfe,
            ..good
        },
        hsa_status_t::ERROR_INVALID_PACKET_FORMAT,
    );
    let queue = hsa.queue(hsa.gpu());
    queue.submit(good);
    hsa.wait(done);
    drop(queue);
    hsa.shut_down();
}

fn illegal_instructions_are_named() {
    let hsa = Hsa::new();
    // An opcode that nobody has, a matrix instruction, an image instruction.
    for words in [
        [0xbfff_ffff, 0xbf81_0000],
        [0xd3c0_0000, 0],
        [0xf000_0000, 0],
    ] {
        let queue = hsa.queue(hsa.gpu());
        let kernel = hsa.assemble(&words);
        queue.submit(kernel.packet(64, 64, ptr::null(), hsa_signal_t::default()));
        assert_eq!(queue.error(), hsa_status_t::ERROR_ILLEGAL_INSTRUCTION);
    }
    hsa.shut_down();
}

/// What the runtime says about a file instead of loading it.
fn refusal(hsa: &Hsa, file: &[u8]) -> hsa_status_t {
    let mut reader = hsa_code_object_reader_t::default();
    ok!(
        hsa,
        hsa_code_object_reader_create_from_memory(
            file.as_ptr().cast(),
            file.len(),
            &raw mut reader
        )
    );
    let mut executable = hsa_executable_t::default();
    let (profile, rounding) = (
        hsa_profile_t::BASE,
        hsa_default_float_rounding_mode_t::DEFAULT,
    );
    ok!(
        hsa,
        hsa_executable_create_alt(profile, rounding, ptr::null(), &raw mut executable)
    );
    let (options, loaded) = (ptr::null(), ptr::null_mut());
    let status = call!(
        hsa,
        hsa_executable_load_agent_code_object(executable, hsa.gpu(), reader, options, loaded)
    );
    ok!(hsa, hsa_executable_destroy(executable));
    ok!(hsa, hsa_code_object_reader_destroy(reader));
    status
}

fn broken_code_objects() {
    let hsa = Hsa::new();
    let good = std::fs::read(object("saxpy.v4.co")).expect("the object is in the repository");
    assert_eq!(refusal(&hsa, &good), hsa_status_t::SUCCESS);
    let broken = |at: usize, byte: u8| {
        let mut file = good.clone();
        file[at] = byte;
        refusal(&hsa, &file)
    };
    // No ELF file, one for another machine, and one for another processor (gfx908).
    assert_eq!(broken(0, 0), hsa_status_t::ERROR_INVALID_CODE_OBJECT);
    assert_eq!(broken(18, 62), hsa_status_t::ERROR_INVALID_CODE_OBJECT);
    assert_eq!(broken(48, 0x30), hsa_status_t::ERROR_INCOMPATIBLE_ARGUMENTS);
    hsa.shut_down();
}

fn broken_kernel_descriptors() {
    let hsa = Hsa::new();
    ok!(
        hsa,
        hsa_amd_register_system_event_handler(note_fault, ptr::null_mut())
    );
    let good = hsa.assemble(&[0xbf81_0000]);
    let packet = |kernel: Kernel| kernel.packet(64, 64, ptr::null(), hsa_signal_t::default());
    // For waves of 32 lanes, and with an entry that is no multiple of 4.
    for (word, value) in [(14, 1 << 3 | 1 << 10), (4, 258)] {
        let bad = hsa.assemble(&[0xbf81_0000]);
        let descriptor = ptr::with_exposed_provenance_mut::<u32>(bad.object as usize);
        // SAFETY: the descriptor was made just now, and no kernel uses it yet.
        unsafe { descriptor.wrapping_add(word).write(value) };
        let queue = hsa.queue(hsa.gpu());
        queue.submit(packet(bad));
        assert_eq!(queue.error(), hsa_status_t::ERROR_INVALID_CODE_OBJECT);
    }
    let queue = hsa.queue(hsa.gpu());
    queue.submit(packet(Kernel {
        object: 0x5040,
        ..good
    }));
    assert_eq!(wait_for_fault(), 0x5000);
    drop(queue);
    hsa.shut_down();
}

fn unsupported_calls() {
    let hsa = Hsa::new();
    let (mut gpu, mut len, mut at) = (hsa.gpu(), 0, ptr::null_mut());
    let status = call!(
        hsa,
        hsa_amd_interop_map_buffer(
            1,
            &raw mut gpu,
            3,
            0,
            &raw mut len,
            &raw mut at,
            ptr::null_mut(),
            ptr::null_mut()
        )
    );
    assert_ne!(status, hsa_status_t::SUCCESS);
    // Queues for kernels that wait for each other need global wave sync.
    let (mut queue, kind) = (ptr::null_mut(), hsa_queue_type_t::COOPERATIVE);
    let status = call!(
        hsa,
        hsa_queue_create(
            gpu,
            64,
            kind,
            None,
            ptr::null_mut(),
            u32::MAX,
            u32::MAX,
            &raw mut queue
        )
    );
    assert_eq!(status, hsa_status_t::ERROR_INVALID_QUEUE_CREATION);
    // What goes on after both is an agent like any other.
    let queue = hsa.queue(gpu);
    queue.run(&hsa.assemble(&[0xbf81_0000]), 64, 64, &[]);
    drop(queue);
    hsa.shut_down();
}

/// A kernel that jumps to itself.
const ENDLESS: [u32; 1] = [0xbf82_ffff];

fn ended_by_a_limit() {
    let hsa = Hsa::new();
    let queue = hsa.queue(hsa.gpu());
    queue.submit(
        hsa.assemble(&ENDLESS)
            .packet(64, 64, ptr::null(), hsa_signal_t::default()),
    );
    assert_eq!(queue.error(), hsa_status_t::ERROR_EXCEPTION);
    drop(queue);
    hsa.shut_down();
}

fn endless_kernel_is_discarded() {
    let hsa = Hsa::new();
    let endless = hsa.assemble(&ENDLESS);
    for inactivate in [false, true] {
        let queue = hsa.queue(hsa.gpu());
        let done = hsa.signal(1);
        queue.submit(endless.packet(64, 64, ptr::null(), done));
        assert!(!hsa.waited(done, Duration::from_millis(60)));
        if inactivate {
            ok!(hsa, hsa_queue_inactivate(queue.queue));
        }
        let before = Instant::now();
        drop(queue);
        assert!(before.elapsed() < Duration::from_secs(5));
        assert_eq!(hsa.load(done), 1, "a discarded kernel completes nothing");
    }
    // The agent is as good as new.
    let queue = hsa.queue(hsa.gpu());
    queue.run(&hsa.assemble(&[0xbf81_0000]), 64, 64, &[]);
    drop(queue);
    hsa.shut_down();
}

/// A kernel that stores 42 at the address in its first argument.
fn store(hsa: &Hsa) -> Kernel {
    hsa.assemble(&[
        0xc006_0080,
        0,           // s_load_dwordx2 s[2:3], s[0:1], 0
        0xbf8c_c07f, // s_waitcnt lgkmcnt(0)
        0x7e00_0202,
        0x7e02_0203, // v_mov_b32 v0, s2; v_mov_b32 v1, s3
        0x7e04_02aa, // v_mov_b32 v2, 42
        0xdc70_8000,
        0x007f_0200, // global_store_dword v[0:1], v2, off
        0xbf81_0000,
    ])
}

static FAULT: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" fn note_fault(event: *const hsa_amd_event_t, _: *mut c_void) -> hsa_status_t {
    // SAFETY: the runtime passes an event of the type that it names.
    let event = unsafe { &*event };
    assert_eq!(
        event.event_type,
        hsa_amd_event_type_t::GPU_MEMORY_FAULT_EVENT
    );
    // SAFETY: as above.
    let fault = unsafe { event.info.memory_fault };
    assert_eq!(
        fault.fault_reason_mask,
        hsa_amd_memory_fault_reason_t::PAGE_NOT_PRESENT.0
    );
    FAULT.store(fault.virtual_address, Ordering::SeqCst);
    hsa_status_t::SUCCESS
}

fn wait_for_fault() -> u64 {
    let until = Instant::now() + Duration::from_secs(10);
    while FAULT.load(Ordering::SeqCst) == 0 {
        assert!(Instant::now() < until, "no fault is reported");
        std::thread::yield_now();
    }
    FAULT.load(Ordering::SeqCst)
}

fn faults() {
    let hsa = Hsa::new();
    ok!(
        hsa,
        hsa_amd_register_system_event_handler(note_fault, ptr::null_mut())
    );
    let queue = hsa.queue(hsa.gpu());
    let kernel = store(&hsa);
    let good = hsa.vram::<u32>(hsa.gpu(), 1024);
    queue.run(&kernel, 64, 64, &[address(good)]);
    assert_eq!(hsa.download(good, 1)[0], 42);
    // Host memory that nobody made accessible.
    let private = vec![0u32; 4096];
    let arguments = hsa.shared::<u64>(1);
    arguments[0] = address(&raw const private[2000]) & !3;
    let done = hsa.signal(1);
    queue.submit(kernel.packet(64, 64, arguments.as_ptr().cast(), done));
    assert_eq!(wait_for_fault(), arguments[0] & !4095);
    assert_eq!(hsa.load(done), 1);
    assert!(private.iter().all(|&word| word == 0));
    drop(queue);
    hsa.shut_down();
}

fn fault_aborts() {
    let hsa = Hsa::new();
    let queue = hsa.queue(hsa.gpu());
    queue.run(&store(&hsa), 64, 64, &[0x10_0000]);
}

fn fault_of_a_copy_engine() {
    let hsa = Hsa::new();
    ok!(
        hsa,
        hsa_amd_register_system_event_handler(note_fault, ptr::null_mut())
    );
    let host = hsa.shared::<u8>(1 << 20);
    // Memory of one agent, whose copy is told to come from another that has no access.
    let vram = hsa.vram::<u8>(hsa.gpus[0], 1 << 20);
    let done = async_copy(
        &hsa,
        (host.as_mut_ptr(), hsa.cpu),
        (vram, hsa.gpus[1]),
        1 << 20,
        None,
    );
    assert_eq!(wait_for_fault(), address(vram));
    assert_eq!(hsa.load(done), 1);
}

fn two_agents() {
    let hsa = Hsa::new();
    ok!(
        hsa,
        hsa_amd_register_system_event_handler(note_fault, ptr::null_mut())
    );
    let [one, two] = hsa.gpus[..] else {
        panic!("want two agents")
    };
    let (first, second) = (hsa.queue(one), hsa.queue(two));
    let kernel = store(&hsa);
    let memory = hsa.vram::<u32>(one, 1 << 20);
    hsa.upload(memory, &[0; 64]);
    hsa.allow(&[one, two], memory);
    second.run(&kernel, 64, 64, &[address(memory)]);
    assert_eq!(hsa.download(memory, 1)[0], 42);
    // A kernel of one agent waits for one of the other.
    let (go, done) = (hsa.signal(1), hsa.signal(1));
    second.submit(barrier_and(&[go], done));
    first.submit(barrier_and(&[], go));
    hsa.wait(done);
    // Access can be taken away again.
    hsa.allow(&[one], memory);
    let arguments = hsa.shared::<u64>(1);
    arguments[0] = address(memory);
    second.submit(kernel.packet(64, 64, arguments.as_ptr().cast(), hsa_signal_t::default()));
    assert_eq!(wait_for_fault(), address(memory));
    drop((first, second));
    hsa.shut_down();
}

fn many_queues() {
    let hsa = Hsa::new();
    let queues: Vec<Queue<'_>> = (0..100).map(|_| hsa.queue(hsa.gpu())).collect();
    // A chain: each queue waits for the one before.
    let signals: Vec<_> = (0..100).map(|_| hsa.signal(1)).collect();
    for n in (0..100).rev() {
        let before = if n == 0 {
            hsa_signal_t::default()
        } else {
            signals[n - 1]
        };
        queues[n].submit(barrier_and(&[before], signals[n]));
    }
    hsa.wait(signals[99]);
    drop(queues);
    hsa.shut_down();
}

fn many_threads() {
    let hsa = Hsa::new();
    let queue = hsa.queue(hsa.gpu());
    let nothing = hsa.assemble(&[0xbf81_0000]);
    let done = hsa.signal(4 * 300);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            // Far more packets than the ring has room for.
            scope.spawn(|| {
                (0..300).for_each(|_| {
                    queue.submit(nothing.packet(64, 64, ptr::null(), done));
                })
            });
        }
        for n in 0..2 {
            let hsa = &hsa;
            scope.spawn(move || {
                let vram = hsa.vram::<u32>(hsa.gpu(), 5000);
                for round in 0..40 {
                    hsa.upload(vram, &[n * 1000 + round; 5000]);
                    assert_eq!(hsa.download(vram, 5000), [n * 1000 + round; 5000]);
                }
                hsa.free(vram);
            });
        }
    });
    hsa.wait(done);
    assert_eq!(hsa.load(done), 0);
    drop(queue);
    hsa.shut_down();
}

fn up_and_down() {
    for round in 0..5u32 {
        let hsa = Hsa::new();
        let queue = hsa.queue(hsa.gpu());
        let vram = hsa.vram::<u32>(hsa.gpu(), 100);
        queue.run(&store(&hsa), 64, 64, &[address(vram)]);
        assert_eq!(hsa.download(vram, 1)[0], 42, "round {round}");
        drop(queue);
        hsa.shut_down();
    }
}

const HANDLE: &str = "HSAKMT_EMU_HANDLE";

fn shared_memory() {
    let hsa = Hsa::new();
    // So that the block below is not the first of the agent's memory.
    hsa.vram::<u32>(hsa.gpu(), 1 << 20);
    let vram = hsa.vram::<u32>(hsa.gpu(), 1 << 20);
    hsa.upload(vram, &[11; 1000]);
    let mut handle = hsa_amd_ipc_memory_t::default();
    ok!(
        hsa,
        hsa_amd_ipc_memory_create(vram.cast(), 4 << 20, &raw mut handle)
    );
    let shared = {
        let (mut signal, attribute) = (hsa_signal_t::default(), hsa_amd_signal_attribute_t::IPC);
        ok!(
            hsa,
            hsa_amd_signal_create(1, 0, ptr::null(), attribute.0.into(), &raw mut signal)
        );
        signal
    };
    let mut signal = hsa_amd_ipc_signal_t::default();
    ok!(hsa, hsa_amd_ipc_signal_create(shared, &raw mut signal));
    let words = handle.handle.iter().chain(&signal.handle);
    let text: Vec<String> = words.map(u32::to_string).collect();
    let this = std::env::current_exe().expect("a test knows where it is");
    let peer = Command::new(this)
        .env(crate::CASE, "shared_memory_peer")
        .env(HANDLE, text.join(","))
        .status()
        .expect("it can be started");
    assert!(peer.success());
    assert_eq!(
        hsa.download(vram, 1000),
        [12; 1000],
        "what the other process wrote"
    );
    assert_eq!(
        hsa.load(shared),
        0,
        "a packet of the other process completed it"
    );
    hsa.free(vram);
    hsa.shut_down();
}

/// The other process of `shared_memory`; as a case of its own it has nothing to attach and checks that.
fn shared_memory_peer() {
    let hsa = Hsa::new();
    let handles = std::env::var(HANDLE).ok().map(|text| {
        let mut handles = [hsa_amd_ipc_memory_t::default(); 2];
        let words = handles.iter_mut().flat_map(|handle| &mut handle.handle);
        words
            .zip(text.split(','))
            .for_each(|(word, text)| *word = text.parse().expect("a number"));
        handles
    });
    let (gpu, mut at) = (hsa.gpu(), ptr::null_mut());
    let Some([handle, signal]) = handles else {
        let nonsense = hsa_amd_ipc_memory_t { handle: [7; 8] };
        assert_ne!(
            call!(
                hsa,
                hsa_amd_ipc_memory_attach(&nonsense, 4096, 1, &gpu, &raw mut at)
            ),
            hsa_status_t::SUCCESS
        );
        return;
    };
    ok!(
        hsa,
        hsa_amd_ipc_memory_attach(&handle, 4 << 20, 1, &gpu, &raw mut at)
    );
    assert_eq!(
        hsa.download(at.cast::<u32>(), 1000),
        [11; 1000],
        "what the other process wrote"
    );
    ok!(hsa, hsa_amd_memory_fill(at, 12, 1000));
    ok!(hsa, hsa_amd_ipc_memory_detach(at));
    let mut shared = hsa_signal_t::default();
    ok!(hsa, hsa_amd_ipc_signal_attach(&signal, &raw mut shared));
    let queue = hsa.queue(gpu);
    queue.submit(barrier_and(&[], shared));
    hsa.wait(shared);
    drop(queue);
    hsa.shut_down();
}

fn fork() {
    let hsa = Hsa::new();
    let pool = hsa.pool(hsa.gpu(), hsa_amd_memory_pool_global_flag_t::COARSE_GRAINED);
    // SAFETY: the child only calls what a forked child of a program with threads may have to survive, and exits.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let mut at = ptr::null_mut();
        let status = call!(
            hsa,
            hsa_amd_memory_pool_allocate(pool, 64 << 20, 0, &raw mut at)
        );
        // SAFETY: ends the child without running what the parent has to run.
        unsafe { libc::_exit(i32::from(status == hsa_status_t::SUCCESS)) };
    }
    let mut status = 0;
    // SAFETY: waits for the child made above.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(
        (libc::WIFEXITED(status), libc::WEXITSTATUS(status)),
        (true, 0),
        "the child is refused"
    );
    hsa.shut_down();
}
