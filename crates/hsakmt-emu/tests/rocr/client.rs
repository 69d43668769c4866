//! A small HSA program's view of the runtime: what the cases have in common.
//!
//! Everything here panics when the runtime says no, since a case that fails ends its process.

use std::ffi::{CStr, CString, c_void};
use std::mem::MaybeUninit;
use std::path::Path;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use hsa_sys::*;

/// Calls a function of the runtime by name.
macro_rules! call {
    ($hsa:expr, $function:ident($($argument:expr),* $(,)?)) => {{
        let function = $hsa.library.get(hsa_sys::function::$function).expect("the runtime has it");
        // SAFETY: the runtime is up while an `Hsa` lives, and the cases pass what the function's documentation asks
        // for.
        unsafe { function($($argument),*) }
    }};
}

/// Calls a function of the runtime that has to succeed.
macro_rules! ok {
    ($hsa:expr, $function:ident($($argument:expr),* $(,)?)) => {
        assert_eq!(call!($hsa, $function($($argument),*)), hsa_sys::hsa_status_t::SUCCESS, stringify!($function))
    };
}

pub(crate) use {call, ok};

/// The longest that a case waits for something that should come at once.
const LIMIT: Duration = Duration::from_secs(20);

/// The runtime, up.
pub(crate) struct Hsa {
    pub(crate) library: Library,
    pub(crate) cpu: hsa_agent_t,
    pub(crate) gpus: Vec<hsa_agent_t>,
}

impl Hsa {
    /// Starts the runtime.
    pub(crate) fn new() -> Self {
        Self::try_new().unwrap_or_else(|status| panic!("hsa_init: {status:?}"))
    }

    /// Starts the runtime, or says what `hsa_init` answered.
    pub(crate) fn try_new() -> Result<Self, hsa_status_t> {
        // SAFETY: what the loader finds under the runtime's name is ROCr; the parent process made sure.
        let library = unsafe { Library::open() }.expect("the parent process looked for it");
        let mut hsa = Self {
            library,
            cpu: hsa_agent_t::default(),
            gpus: Vec::new(),
        };
        let status = call!(hsa, hsa_init());
        if status != hsa_status_t::SUCCESS {
            return Err(status);
        }
        unsafe extern "C" fn collect(agent: hsa_agent_t, agents: *mut c_void) -> hsa_status_t {
            // SAFETY: `agents` is the vector below.
            unsafe { &mut *agents.cast::<Vec<hsa_agent_t>>() }.push(agent);
            hsa_status_t::SUCCESS
        }
        let mut agents: Vec<hsa_agent_t> = Vec::new();
        ok!(hsa, hsa_iterate_agents(collect, (&raw mut agents).cast()));
        for agent in agents {
            if hsa.info::<hsa_device_type_t>(agent, hsa_agent_info_t::DEVICE.0)
                == hsa_device_type_t::GPU
            {
                hsa.gpus.push(agent);
            } else {
                hsa.cpu = agent;
            }
        }
        Ok(hsa)
    }

    pub(crate) fn shut_down(self) {
        ok!(self, hsa_shut_down());
    }

    /// The first emulated agent.
    pub(crate) fn gpu(&self) -> hsa_agent_t {
        self.gpus[0]
    }

    pub(crate) fn info<T: Copy>(&self, agent: hsa_agent_t, attribute: u32) -> T {
        let mut value = MaybeUninit::<T>::zeroed();
        ok!(
            self,
            hsa_agent_get_info(
                agent,
                hsa_agent_info_t(attribute),
                value.as_mut_ptr().cast()
            )
        );
        // SAFETY: the runtime wrote it; the cases ask for the type that the attribute has, all of which may be zero.
        unsafe { value.assume_init() }
    }

    pub(crate) fn text(&self, agent: hsa_agent_t, attribute: u32) -> String {
        let bytes = self.info::<[u8; 64]>(agent, attribute);
        CStr::from_bytes_until_nul(&bytes)
            .expect("a name ends")
            .to_str()
            .expect("a name is text")
            .to_owned()
    }

    pub(crate) fn pools(&self, agent: hsa_agent_t) -> Vec<hsa_amd_memory_pool_t> {
        unsafe extern "C" fn collect(
            pool: hsa_amd_memory_pool_t,
            pools: *mut c_void,
        ) -> hsa_status_t {
            // SAFETY: `pools` is the vector below.
            unsafe { &mut *pools.cast::<Vec<hsa_amd_memory_pool_t>>() }.push(pool);
            hsa_status_t::SUCCESS
        }
        let mut pools: Vec<hsa_amd_memory_pool_t> = Vec::new();
        ok!(
            self,
            hsa_amd_agent_iterate_memory_pools(agent, collect, (&raw mut pools).cast())
        );
        pools
    }

    pub(crate) fn pool_info<T: Copy>(
        &self,
        pool: hsa_amd_memory_pool_t,
        attribute: hsa_amd_memory_pool_info_t,
    ) -> T {
        let mut value = MaybeUninit::<T>::zeroed();
        ok!(
            self,
            hsa_amd_memory_pool_get_info(pool, attribute, value.as_mut_ptr().cast())
        );
        // SAFETY: as in `info`.
        unsafe { value.assume_init() }
    }

    /// The agent's pool of the global segment that has `flag`.
    pub(crate) fn pool(
        &self,
        agent: hsa_agent_t,
        flag: hsa_amd_memory_pool_global_flag_t,
    ) -> hsa_amd_memory_pool_t {
        let has = |&pool: &hsa_amd_memory_pool_t| {
            let segment: hsa_amd_segment_t =
                self.pool_info(pool, hsa_amd_memory_pool_info_t::SEGMENT);
            segment == hsa_amd_segment_t::GLOBAL
                && self.pool_info::<u32>(pool, hsa_amd_memory_pool_info_t::GLOBAL_FLAGS) & flag.0
                    != 0
        };
        self.pools(agent)
            .into_iter()
            .find(has)
            .expect("the agent has such a pool")
    }

    /// Memory of an agent, as numbers of type `T`. VRAM is accessible to its agent, host memory to the CPU.
    pub(crate) fn allocate<T>(&self, pool: hsa_amd_memory_pool_t, count: usize) -> *mut T {
        let mut at = ptr::null_mut();
        ok!(
            self,
            hsa_amd_memory_pool_allocate(pool, count * size_of::<T>(), 0, &raw mut at)
        );
        at.cast()
    }

    /// VRAM of an agent.
    pub(crate) fn vram<T>(&self, agent: hsa_agent_t, count: usize) -> *mut T {
        self.allocate(
            self.pool(agent, hsa_amd_memory_pool_global_flag_t::COARSE_GRAINED),
            count,
        )
    }

    /// Zeroed host memory that all agents reach.
    pub(crate) fn shared<T>(&self, count: usize) -> &'static mut [T] {
        let at: *mut T = self.allocate(
            self.pool(self.cpu, hsa_amd_memory_pool_global_flag_t::KERNARG_INIT),
            count,
        );
        self.allow(&self.gpus, at);
        // SAFETY: new memory of that many; it is never freed. Cases look at it after the kernels that write it.
        let all = unsafe { std::slice::from_raw_parts_mut(at.cast::<MaybeUninit<T>>(), count) };
        all.iter_mut()
            .for_each(|cell| *cell = MaybeUninit::zeroed());
        // SAFETY: `T` is a number in every case, and the line above wrote zeros.
        unsafe { std::slice::from_raw_parts_mut(at, count) }
    }

    pub(crate) fn allow<T>(&self, agents: &[hsa_agent_t], at: *mut T) {
        ok!(
            self,
            hsa_amd_agents_allow_access(
                agents.len() as u32,
                agents.as_ptr(),
                ptr::null(),
                at.cast()
            )
        );
    }

    pub(crate) fn free<T>(&self, at: *mut T) {
        ok!(self, hsa_amd_memory_pool_free(at.cast()));
    }

    /// Copies to VRAM.
    pub(crate) fn upload<T>(&self, to: *mut T, from: &[T]) {
        ok!(
            self,
            hsa_memory_copy(to.cast(), from.as_ptr().cast(), size_of_val(from))
        );
    }

    /// Copies from VRAM.
    pub(crate) fn download<T: Copy + Default>(&self, from: *const T, count: usize) -> Vec<T> {
        let mut to = vec![T::default(); count];
        ok!(
            self,
            hsa_memory_copy(to.as_mut_ptr().cast(), from.cast(), count * size_of::<T>())
        );
        to
    }

    pub(crate) fn signal(&self, value: i64) -> hsa_signal_t {
        let mut signal = hsa_signal_t::default();
        ok!(
            self,
            hsa_signal_create(value, 0, ptr::null(), &raw mut signal)
        );
        signal
    }

    pub(crate) fn load(&self, signal: hsa_signal_t) -> i64 {
        call!(self, hsa_signal_load_scacquire(signal))
    }

    pub(crate) fn store(&self, signal: hsa_signal_t, value: i64) {
        call!(self, hsa_signal_store_screlease(signal, value));
    }

    /// Waits until a signal is below 1. The agent has to wake the waiter: one that only finds out when its time is up
    /// has failed, too.
    pub(crate) fn wait(&self, signal: hsa_signal_t) {
        let before = Instant::now();
        assert!(
            self.waited(signal, LIMIT),
            "a signal stays at {}",
            self.load(signal)
        );
        assert!(before.elapsed() < LIMIT / 2, "nobody woke the waiter");
    }

    /// Waits for some time until a signal is below 1.
    pub(crate) fn waited(&self, signal: hsa_signal_t, limit: Duration) -> bool {
        let (below, blocked) = (hsa_signal_condition_t::LT, hsa_wait_state_t::BLOCKED);
        let until = Instant::now() + limit;
        loop {
            // Ticks of the system clock are nanoseconds. A wait may end early.
            let ticks = until.saturating_duration_since(Instant::now()).as_nanos() as u64;
            if call!(
                self,
                hsa_signal_wait_scacquire(signal, below, 1, ticks, blocked)
            ) < 1
            {
                return true;
            }
            if Instant::now() >= until {
                return false;
            }
        }
    }

    /// A queue of 64 packets whose errors are remembered.
    pub(crate) fn queue(&self, agent: hsa_agent_t) -> Queue<'_> {
        unsafe extern "C" fn remember(
            status: hsa_status_t,
            _: *mut hsa_queue_t,
            errors: *mut c_void,
        ) {
            // SAFETY: `errors` is leaked below, so it lives for ever.
            unsafe { &*errors.cast::<Mutex<Vec<hsa_status_t>>>() }
                .lock()
                .expect("no holder panics")
                .push(status);
        }
        let errors: &'static Mutex<Vec<hsa_status_t>> = Box::leak(Box::default());
        let mut queue = ptr::null_mut();
        let data = ptr::from_ref(errors).cast_mut().cast();
        let kind = hsa_queue_type_t::MULTI;
        ok!(
            self,
            hsa_queue_create(
                agent,
                64,
                kind,
                Some(remember),
                data,
                u32::MAX,
                u32::MAX,
                &raw mut queue
            )
        );
        Queue {
            hsa: self,
            queue,
            errors,
        }
    }

    /// Loads a code object and finds a kernel in it.
    pub(crate) fn kernel(&self, agent: hsa_agent_t, object: &Path, name: &str) -> Kernel {
        let bytes: &'static [u8] = std::fs::read(object)
            .expect("the object is in the repository")
            .leak();
        let mut reader = hsa_code_object_reader_t::default();
        ok!(
            self,
            hsa_code_object_reader_create_from_memory(
                bytes.as_ptr().cast(),
                bytes.len(),
                &raw mut reader
            )
        );
        let mut executable = hsa_executable_t::default();
        let (profile, rounding) = (
            hsa_profile_t::BASE,
            hsa_default_float_rounding_mode_t::DEFAULT,
        );
        ok!(
            self,
            hsa_executable_create_alt(profile, rounding, ptr::null(), &raw mut executable)
        );
        ok!(
            self,
            hsa_executable_load_agent_code_object(
                executable,
                agent,
                reader,
                ptr::null(),
                ptr::null_mut()
            )
        );
        ok!(self, hsa_executable_freeze(executable, ptr::null()));
        let name = CString::new(format!("{name}.kd")).expect("a name has no zero");
        let mut symbol = hsa_executable_symbol_t::default();
        ok!(
            self,
            hsa_executable_get_symbol_by_name(executable, name.as_ptr(), &agent, &raw mut symbol)
        );
        let info = |attribute| {
            let mut value = 0u64;
            ok!(
                self,
                hsa_executable_symbol_get_info(symbol, attribute, (&raw mut value).cast())
            );
            value
        };
        Kernel {
            object: info(hsa_executable_symbol_info_t::KERNEL_OBJECT),
            group_bytes: info(hsa_executable_symbol_info_t::KERNEL_GROUP_SEGMENT_SIZE) as u32,
            private_bytes: info(hsa_executable_symbol_info_t::KERNEL_PRIVATE_SEGMENT_SIZE) as u32,
            kernarg_bytes: info(hsa_executable_symbol_info_t::KERNEL_KERNARG_SEGMENT_SIZE) as usize,
        }
    }

    /// A kernel from instruction words, with its arguments' address in registers 0 and 1.
    pub(crate) fn assemble(&self, words: &[u32]) -> Kernel {
        let memory = self.shared::<u32>(64 + words.len());
        memory[4] = 256; // entry offset
        memory[12] = 0x00ac_0000; // resource register 1: denormals and DX10 clamp
        memory[13] = 2 << 1; // resource register 2: two user registers
        memory[14] = 1 << 3; // properties: the arguments' address
        // A word that none of ROCr's own kernels has, so that this one is not taken for one of them.
        memory[0] = 0;
        memory[2] = 64;
        memory[64..].copy_from_slice(words);
        Kernel {
            object: memory.as_ptr().expose_provenance() as u64,
            group_bytes: 0,
            private_bytes: 0,
            kernarg_bytes: 64,
        }
    }
}

/// A kernel that can be dispatched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernel {
    pub(crate) object: u64,
    pub(crate) group_bytes: u32,
    pub(crate) private_bytes: u32,
    pub(crate) kernarg_bytes: usize,
}

impl Kernel {
    /// A packet that runs the kernel on `items` work-items in groups of `group`, one dimension.
    pub(crate) fn packet(
        &self,
        items: u32,
        group: u16,
        arguments: *const c_void,
        done: hsa_signal_t,
    ) -> hsa_kernel_dispatch_packet_t {
        hsa_kernel_dispatch_packet_t {
            header: packet_header(
                hsa_packet_type_t::KERNEL_DISPATCH,
                true,
                hsa_fence_scope_t::SYSTEM,
                hsa_fence_scope_t::SYSTEM,
            ),
            setup: 1,
            workgroup_size_x: group,
            workgroup_size_y: 1,
            workgroup_size_z: 1,
            grid_size_x: items,
            grid_size_y: 1,
            grid_size_z: 1,
            private_segment_size: self.private_bytes,
            group_segment_size: self.group_bytes,
            kernel_object: self.object,
            kernarg_address: arguments.cast_mut(),
            completion_signal: done,
            ..hsa_kernel_dispatch_packet_t::default()
        }
    }
}

/// Packets are 64 bytes, whatever their type is.
pub(crate) trait Packet: Copy {
    fn words(self) -> [u32; 16] {
        const { assert!(size_of::<Self>() == 64) };
        // SAFETY: 64 bytes of plain data without padding, read as 64 bytes.
        unsafe { ptr::from_ref(&self).cast::<[u32; 16]>().read_unaligned() }
    }
}

impl Packet for hsa_kernel_dispatch_packet_t {}
impl Packet for hsa_barrier_and_packet_t {}
impl Packet for hsa_barrier_or_packet_t {}
impl Packet for hsa_amd_barrier_value_packet_t {}
impl Packet for [u32; 16] {}

/// A queue, destroyed when dropped.
pub(crate) struct Queue<'a> {
    pub(crate) hsa: &'a Hsa,
    pub(crate) queue: *mut hsa_queue_t,
    errors: &'static Mutex<Vec<hsa_status_t>>,
}

// SAFETY: queues of type MULTI take packets from all threads.
unsafe impl Sync for Queue<'_> {}

impl Queue<'_> {
    /// Writes a packet and rings.
    pub(crate) fn submit(&self, packet: impl Packet) -> u64 {
        let index = self.write(packet);
        self.ring(index);
        index
    }

    /// Writes a packet.
    pub(crate) fn write(&self, packet: impl Packet) -> u64 {
        let index = call!(
            self.hsa,
            hsa_queue_add_write_index_scacq_screl(self.queue, 1)
        );
        // SAFETY: the queue lives until `self` is dropped.
        let queue = unsafe { &*self.queue };
        while index - call!(self.hsa, hsa_queue_load_read_index_scacquire(self.queue))
            >= u64::from(queue.size)
        {
            std::thread::yield_now();
        }
        let words = packet.words();
        let slot = queue
            .base_address
            .cast::<[u32; 16]>()
            .wrapping_add((index % u64::from(queue.size)) as usize)
            .cast::<u32>();
        for (n, &word) in words.iter().enumerate().skip(1) {
            // SAFETY: the slot is free, and reserved for this thread.
            unsafe { slot.wrapping_add(n).write(word) };
        }
        // SAFETY: the slot's first word, which nobody accesses otherwise than atomically from now on.
        let first = unsafe { AtomicU32::from_ptr(slot) };
        first.store(words[0], Ordering::Release);
        index
    }

    /// Rings the doorbell.
    pub(crate) fn ring(&self, index: u64) {
        // SAFETY: the queue lives until `self` is dropped.
        let doorbell = unsafe { (*self.queue).doorbell_signal };
        call!(self.hsa, hsa_signal_store_screlease(doorbell, index as i64));
    }

    /// Runs a kernel to its end. `arguments` are the explicit ones.
    pub(crate) fn run(&self, kernel: &Kernel, items: u32, group: u16, arguments: &[u64]) {
        let done = self.hsa.signal(1);
        let kernarg = self
            .hsa
            .shared::<u64>(arguments.len().max(kernel.kernarg_bytes.div_ceil(8)) + 3);
        kernarg[..arguments.len()].copy_from_slice(arguments);
        if kernel.kernarg_bytes > size_of_val(arguments) {
            // What kernels of code object version 5 find behind their arguments: workgroups of the grid in x, y, z,
            // then work-items of a workgroup in x, y, z and of the last one in x.
            let [groups, rest] = [items / u32::from(group), items % u32::from(group)];
            kernarg[arguments.len()] = u64::from(groups) | 1 << 32;
            kernarg[arguments.len() + 1] = 1 | u64::from(group) << 32 | 1 << 48;
            kernarg[arguments.len() + 2] = 1 | u64::from(rest) << 16;
        }
        self.submit(kernel.packet(items, group, kernarg.as_ptr().cast(), done));
        self.hsa.wait(done);
        ok!(self.hsa, hsa_signal_destroy(done));
    }

    /// The first error that the queue reported, waited for.
    pub(crate) fn error(&self) -> hsa_status_t {
        let until = Instant::now() + LIMIT;
        while Instant::now() < until {
            if let Some(&status) = self.errors.lock().expect("no holder panics").first() {
                return status;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("the queue reports no error");
    }
}

impl Drop for Queue<'_> {
    fn drop(&mut self) {
        ok!(self.hsa, hsa_queue_destroy(self.queue));
    }
}

/// The address of memory, as a kernel argument.
pub(crate) fn address<T>(at: *const T) -> u64 {
    at.expose_provenance() as u64
}
