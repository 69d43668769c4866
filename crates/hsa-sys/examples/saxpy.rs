//! y = a·x + y on the first GPU agent, from finding it to checking the result.
//!
//! ```text
//! cargo run -p hsa-sys --example saxpy -- saxpy.co
//! ```
//!
//! The argument is a code object for that agent with a kernel `saxpy(float *y, const float *x, float a, unsigned n)`.

use std::error::Error;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use hsa_sys::*;

const N: u32 = 1 << 16;
const A: f32 = 1.5;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Memory that host and agents share, until the runtime shuts down: words that the other side may write.
type Words = &'static [AtomicU32];

/// Calls a function of the runtime that returns a status, and returns it from here if it is an error.
macro_rules! hsa {
    ($library:expr, $function:ident($($argument:expr),* $(,)?)) => {{
        let function = $library.get(hsa_sys::function::$function)?;
        // SAFETY: handles are the runtime's own and pointers are to what the function's documentation asks for.
        match unsafe { function($($argument),*) } {
            hsa_status_t::SUCCESS => {}
            status => return Err(format!("{}: {status:?}", stringify!($function)).into()),
        }
    }};
}

fn main() -> Result<()> {
    let path = std::env::args_os().nth(1);
    let path = path.ok_or("want the path of a code object with the kernel `saxpy`")?;
    let object = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;

    // SAFETY: a library under the runtime's name is the runtime.
    let hsa = unsafe { Library::open() }?;
    hsa!(hsa, hsa_init());
    let cpu = agent(&hsa, hsa_device_type_t::CPU)?;
    let gpu = agent(&hsa, hsa_device_type_t::GPU)?;
    let mut name = [0u8; 64];
    let to = name.as_mut_ptr().cast();
    hsa!(hsa, hsa_agent_get_info(gpu, hsa_agent_info_t::NAME, to));

    let (y, x) = (shared(&hsa, cpu, gpu, N)?, shared(&hsa, cpu, gpu, N)?);
    for i in 0..N as usize {
        x[i].store((i as f32).to_bits(), Ordering::Relaxed);
        y[i].store(1f32.to_bits(), Ordering::Relaxed);
    }
    let arguments = shared(&hsa, cpu, gpu, 6)?;
    let [y_at, x_at] = [y, x].map(|words| words.as_ptr().expose_provenance());
    let words = [
        y_at,
        y_at >> 32,
        x_at,
        x_at >> 32,
        A.to_bits() as usize,
        N as usize,
    ];
    for (argument, word) in arguments.iter().zip(words) {
        argument.store(word as u32, Ordering::Relaxed);
    }
    run(&hsa, gpu, kernel(&hsa, gpu, &object)?, arguments)?;
    let right =
        |i: &usize| f32::from_bits(y[*i].load(Ordering::Relaxed)) == A.mul_add(*i as f32, 1.0);
    let wrong = N as usize - (0..N as usize).filter(right).count();
    hsa!(hsa, hsa_shut_down());
    if wrong > 0 {
        return Err(format!("{wrong} of {N} numbers are wrong").into());
    }
    let name = String::from_utf8_lossy(&name);
    println!("{}: {N} numbers, all right", name.trim_end_matches('\0'));
    Ok(())
}

/// Adds what the runtime iterates over to a vector.
unsafe extern "C" fn collect<T>(found: T, all: *mut c_void) -> hsa_status_t {
    // SAFETY: the callers below pass a vector of that type, which the runtime passes on.
    unsafe { &mut *all.cast::<Vec<T>>() }.push(found);
    hsa_status_t::SUCCESS
}

/// The first agent of a kind.
fn agent(hsa: &Library, wanted: hsa_device_type_t) -> Result<hsa_agent_t> {
    let mut all: Vec<hsa_agent_t> = Vec::new();
    hsa!(hsa, hsa_iterate_agents(collect, (&raw mut all).cast()));
    for agent in all {
        let mut kind = hsa_device_type_t::default();
        let to = (&raw mut kind).cast();
        hsa!(hsa, hsa_agent_get_info(agent, hsa_agent_info_t::DEVICE, to));
        if kind == wanted {
            return Ok(agent);
        }
    }
    Err(format!("there is no agent of kind {wanted:?}").into())
}

/// Memory of the host for arguments and data, which `gpu` may access, too.
fn shared(hsa: &Library, cpu: hsa_agent_t, gpu: hsa_agent_t, count: u32) -> Result<Words> {
    let mut pools: Vec<hsa_amd_memory_pool_t> = Vec::new();
    let to = (&raw mut pools).cast();
    hsa!(hsa, hsa_amd_agent_iterate_memory_pools(cpu, collect, to));
    for pool in pools {
        let (what, mut flags) = (hsa_amd_memory_pool_info_t::GLOBAL_FLAGS, 0u32);
        let to = (&raw mut flags).cast();
        hsa!(hsa, hsa_amd_memory_pool_get_info(pool, what, to));
        if flags & hsa_amd_memory_pool_global_flag_t::KERNARG_INIT.0 == 0 {
            continue;
        }
        let (count, mut at) = (count as usize, ptr::null_mut());
        hsa!(
            hsa,
            hsa_amd_memory_pool_allocate(pool, 4 * count, 0, &raw mut at)
        );
        hsa!(hsa, hsa_amd_agents_allow_access(1, &gpu, ptr::null(), at));
        // SAFETY: new memory of that size, on whole pages, which lives until the runtime shuts down; any word is valid.
        return Ok(unsafe { std::slice::from_raw_parts(at.cast(), count) });
    }
    Err("the host has no pool for arguments".into())
}

/// Loads the object and returns a packet with what is known about the kernel.
fn kernel(hsa: &Library, gpu: hsa_agent_t, object: &[u8]) -> Result<hsa_kernel_dispatch_packet_t> {
    let (mut reader, mut executable) = Default::default();
    let (bytes, len) = (object.as_ptr().cast(), object.len());
    hsa!(
        hsa,
        hsa_code_object_reader_create_from_memory(bytes, len, &raw mut reader)
    );
    let (profile, rounding) = (
        hsa_profile_t::BASE,
        hsa_default_float_rounding_mode_t::DEFAULT,
    );
    hsa!(
        hsa,
        hsa_executable_create_alt(profile, rounding, ptr::null(), &raw mut executable)
    );
    let (options, none) = (ptr::null(), ptr::null_mut());
    hsa!(
        hsa,
        hsa_executable_load_agent_code_object(executable, gpu, reader, options, none)
    );
    hsa!(hsa, hsa_executable_freeze(executable, ptr::null()));
    let (name, mut symbol) = (c"saxpy.kd".as_ptr(), hsa_executable_symbol_t::default());
    hsa!(
        hsa,
        hsa_executable_get_symbol_by_name(executable, name, &gpu, &raw mut symbol)
    );

    let mut packet = hsa_kernel_dispatch_packet_t {
        setup: 1,
        workgroup_size_x: 256,
        workgroup_size_y: 1,
        workgroup_size_z: 1,
        grid_size_x: N,
        grid_size_y: 1,
        grid_size_z: 1,
        ..Default::default()
    };
    use hsa_executable_symbol_info_t as info;
    for (what, to) in [
        (info::KERNEL_OBJECT, (&raw mut packet.kernel_object).cast()),
        (
            info::KERNEL_GROUP_SEGMENT_SIZE,
            (&raw mut packet.group_segment_size).cast(),
        ),
        (
            info::KERNEL_PRIVATE_SEGMENT_SIZE,
            (&raw mut packet.private_segment_size).cast(),
        ),
    ] {
        hsa!(hsa, hsa_executable_symbol_get_info(symbol, what, to));
    }
    Ok(packet)
}

/// Runs a kernel on a queue of its own and waits for its end.
fn run(
    hsa: &Library,
    gpu: hsa_agent_t,
    kernel: hsa_kernel_dispatch_packet_t,
    arguments: Words,
) -> Result<()> {
    let (mut queue, mut done) = (ptr::null_mut(), hsa_signal_t::default());
    let (kind, data, any) = (hsa_queue_type_t::SINGLE, ptr::null_mut(), u32::MAX);
    hsa!(
        hsa,
        hsa_queue_create(gpu, 64, kind, Some(failed), data, any, any, &raw mut queue)
    );
    hsa!(hsa, hsa_signal_create(1, 0, ptr::null(), &raw mut done));
    let add = hsa.get(function::hsa_queue_add_write_index_screlease)?;
    let store = hsa.get(function::hsa_signal_store_screlease)?;
    let wait = hsa.get(function::hsa_signal_wait_scacquire)?;

    // SAFETY: the queue was created just now, and only its indices change.
    let hsa_queue_t {
        base_address,
        doorbell_signal,
        ..
    } = unsafe { *queue };
    // SAFETY: as above.
    let index = unsafe { add(queue, 1) };
    let scope = hsa_fence_scope_t::SYSTEM;
    let header = |kind| packet_header(kind, false, scope, scope);
    let packet = hsa_kernel_dispatch_packet_t {
        header: header(hsa_packet_type_t::INVALID),
        kernarg_address: arguments.as_ptr().cast_mut().cast(),
        completion_signal: done,
        ..kernel
    };
    // SAFETY: the first packet of a new queue is free, and its agent takes no packet that is invalid.
    unsafe {
        base_address
            .cast::<hsa_kernel_dispatch_packet_t>()
            .write(packet)
    };
    // SAFETY: its first word, which is only accessed like this from now on.
    let first = unsafe { AtomicU32::from_ptr(base_address.cast()) };
    let dispatch = header(hsa_packet_type_t::KERNEL_DISPATCH);
    first.store(
        u32::from(dispatch) | u32::from(packet.setup) << 16,
        Ordering::Release,
    );
    // SAFETY: the queue's own doorbell.
    unsafe { store(doorbell_signal, index as i64) };
    let (condition, state) = (hsa_signal_condition_t::LT, hsa_wait_state_t::BLOCKED);
    // SAFETY: the signal was created above.
    while unsafe { wait(done, condition, 1, u64::MAX, state) } > 0 {}
    hsa!(hsa, hsa_signal_destroy(done));
    hsa!(hsa, hsa_queue_destroy(queue));
    Ok(())
}

/// Called when the kernel will never end.
unsafe extern "C" fn failed(status: hsa_status_t, _queue: *mut hsa_queue_t, _data: *mut c_void) {
    eprintln!("error of the queue: {status:?}");
    std::process::abort();
}
