//! The functions of the thunk that ROCr 5.2.3 imports: arguments in, [`Error`] out as a status.
//!
//! This is the edge to C. Pointers are followed here and nowhere else, with the types of `hsakmt.h`; every function
//! catches panics, and says on standard error which call was refused and why. What ROCr may be told and what it acts
//! upon is in the functions' own comments; what a call does is in the modules that they call.
//!
//! A later ROCr imports more of these; they are added to this list.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::time::Duration;

use crate::abi::{
    CacheProperties, ClockCounters, Event, EventDescriptor, GpuTileConfig, IoLinkProperties,
    MemFlags, MemMapFlags, MemoryAccessFault, MemoryProperties, NodeProperties, PointerInfo,
    QueueResource, SharedMemoryHandle, Status, SvmAttribute, SystemProperties, VersionInfo,
};
use crate::config::Log;
use crate::driver::Driver;
use crate::error::{Error, chain};
use crate::log;
use crate::pages::Agents;
use crate::queue::Request;
use crate::topology;

/// Wait without limit.
const FOREVER: u32 = u32::MAX;

/// Runs a call, keeps its panics on this side, and turns what it says into a status.
fn call(name: &str, body: impl FnOnce() -> Result<(), Error>) -> Status {
    let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Err(Error::Panicked(text.unwrap_or("no message").to_owned()))
    });
    match result {
        Ok(()) => Status::SUCCESS,
        Err(error) => {
            // Two answers that are no errors to anybody, and come often.
            let level = if matches!(error, Error::Timeout | Error::WithoutExceptions) {
                Log::Calls
            } else {
                Log::Errors
            };
            log::line(level, format_args!("{name}: {}", chain(&error)));
            error.status()
        }
    }
}

/// Exports functions under their C names.
macro_rules! thunk {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $kind:ty),* $(,)?) $body:block)+) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            ///
            /// As the C header has it: pointers are null or point to what their types say.
            #[unsafe(no_mangle)]
            #[allow(non_snake_case, reason = "the C name")]
            pub(crate) unsafe extern "C" fn $name($($argument: $kind),*) -> Status {
                log::line(Log::Calls, format_args!(concat!(stringify!($name), "{:x?}"), ($($argument,)*)));
                call(stringify!($name), move || $body)
            }
        )+
    };
}

/// Stores a result.
///
/// # Safety
///
/// `to` is null or points to a `T` that the caller lets us write.
unsafe fn put<T>(what: &'static str, to: *mut T, value: T) -> Result<(), Error> {
    if to.is_null() {
        return Err(Error::Null(what));
    }
    // SAFETY: not null; the rest is the caller's. The C structures are only aligned to 4 bytes.
    unsafe { to.write_unaligned(value) };
    Ok(())
}

/// Reads an argument.
///
/// # Safety
///
/// `from` is null or points to a `T`.
unsafe fn get<T: Copy>(what: &'static str, from: *const T) -> Result<T, Error> {
    if from.is_null() {
        return Err(Error::Null(what));
    }
    // SAFETY: not null; the rest is the caller's.
    Ok(unsafe { from.read_unaligned() })
}

/// Stores as many of `values` as there is room for.
///
/// # Safety
///
/// `to` is null or points to `room` of them.
unsafe fn put_all<T>(
    what: &'static str,
    to: *mut T,
    room: u32,
    values: Vec<T>,
) -> Result<(), Error> {
    for (n, value) in values.into_iter().take(room as usize).enumerate() {
        // SAFETY: below `room`, and `put` checks for null.
        unsafe { put(what, to.wrapping_add(n), value) }?;
    }
    Ok(())
}

/// Reads an array.
///
/// # Safety
///
/// `from` is null or points to `len` of them.
unsafe fn get_all<T: Copy>(what: &'static str, from: *const T, len: u64) -> Result<Vec<T>, Error> {
    // SAFETY: below `len`, and `get` checks for null.
    (0..len as usize)
        .map(|n| unsafe { get(what, from.wrapping_add(n)) })
        .collect()
}

/// The agents of a list of nodes.
///
/// # Safety
///
/// `nodes` is null or points to `len` numbers.
unsafe fn agents(driver: &Driver, nodes: *const u32, len: u64) -> Result<Agents, Error> {
    // SAFETY: the caller's.
    let nodes = unsafe { get_all("the list of nodes", nodes, len) }?;
    nodes.into_iter().try_fold(Agents::default(), |set, node| {
        Ok(set.with(Agents::of(driver.node(node)?)))
    })
}

fn address(pointer: *const c_void) -> u64 {
    pointer.expose_provenance() as u64
}

fn pointer(address: u64) -> *mut c_void {
    ptr::with_exposed_provenance_mut(address as usize)
}

thunk! {
    /// Opens the driver; `KR_EMU_*` variables are read now.
    fn hsaKmtOpenKFD() {
        let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        Driver::open(std::env::vars_os().map(|(name, value)| (text(name), text(value))))
    }

    /// Closes the driver.
    fn hsaKmtCloseKFD() {
        Driver::close()
    }

    /// The version of the kernel interface.
    fn hsaKmtGetVersion(version: *mut VersionInfo) {
        Driver::current()?;
        // SAFETY: by the contract of the function.
        unsafe { put("the version", version, topology::VERSION) }
    }

    /// Takes the topology for use.
    fn hsaKmtAcquireSystemProperties(properties: *mut SystemProperties) {
        let driver = Driver::current()?;
        // SAFETY: by the contract of the function.
        unsafe { put("the properties", properties, topology::system(&driver.config)) }
    }

    /// Lets the topology go. ROCr also calls this before it has taken it.
    fn hsaKmtReleaseSystemProperties() {
        Ok(())
    }

    /// What a node is.
    fn hsaKmtGetNodeProperties(node: u32, properties: *mut NodeProperties) {
        let driver = Driver::current()?;
        let value = driver.topology().node(driver.node(node)?);
        // SAFETY: by the contract of the function.
        unsafe { put("the properties", properties, value) }
    }

    /// The memory banks of a node.
    fn hsaKmtGetNodeMemoryProperties(node: u32, room: u32, properties: *mut MemoryProperties) {
        let driver = Driver::current()?;
        let values = driver.topology().banks(driver.node(node)?);
        // SAFETY: by the contract of the function.
        unsafe { put_all("the properties", properties, room, values) }
    }

    /// The caches of a node.
    fn hsaKmtGetNodeCacheProperties(node: u32, _processor: u32, room: u32, properties: *mut CacheProperties) {
        let driver = Driver::current()?;
        let values = driver.topology().caches(driver.node(node)?);
        // SAFETY: by the contract of the function.
        unsafe { put_all("the properties", properties, room, values) }
    }

    /// The links of a node.
    fn hsaKmtGetNodeIoLinkProperties(node: u32, room: u32, properties: *mut IoLinkProperties) {
        let driver = Driver::current()?;
        let values = driver.topology().links(driver.node(node)?);
        // SAFETY: by the contract of the function.
        unsafe { put_all("the properties", properties, room, values) }
    }

    /// The clocks of a node. All nodes have the same.
    fn hsaKmtGetClockCounters(node: u32, counters: *mut ClockCounters) {
        Driver::current()?.node(node)?;
        // SAFETY: by the contract of the function.
        unsafe { put("the counters", counters, topology::clocks()) }
    }

    /// Tiling of images: none, as there are no images.
    fn hsaKmtGetTileConfig(node: u32, config: *mut GpuTileConfig) {
        Driver::current()?.node(node)?;
        // SAFETY: by the contract of the function.
        let config_before = unsafe { get("the configuration", config) }?;
        let value = GpuTileConfig {
            num_tile_configs: 0,
            num_macro_tile_configs: 0,
            gb_addr_config: 0,
            num_banks: 0,
            num_ranks: 0,
            ..config_before
        };
        // SAFETY: by the contract of the function.
        unsafe { put("the configuration", config, value) }
    }

    /// Allocates memory on a node.
    fn hsaKmtAllocMemory(node: u32, size: u64, flags: MemFlags, result: *mut *mut c_void) {
        let driver = Driver::current()?;
        let at = if flags.fixed_address() {
            // SAFETY: by the contract of the function, the address is passed where the result goes.
            Some(address(unsafe { get("the address", result) }?))
        } else {
            None
        };
        let base = driver.space.allocate(driver.node(node)?, size, flags, at)?;
        // SAFETY: by the contract of the function.
        unsafe { put("the address", result, pointer(base)) }
    }

    /// Frees memory.
    fn hsaKmtFreeMemory(base: *mut c_void, _size: u64) {
        Driver::current()?.space.free(address(base))
    }

    /// Maps memory to the agents that it is for by default.
    fn hsaKmtMapMemoryToGPU(base: *mut c_void, size: u64, alternate: *mut u64) {
        let mapped = Driver::current()?.space.map(address(base), size, None)?;
        // SAFETY: by the contract of the function; ROCr passes null where it does not care.
        if alternate.is_null() { Ok(()) } else { unsafe { put("the address", alternate, mapped) } }
    }

    /// Maps memory to some agents.
    fn hsaKmtMapMemoryToGPUNodes(
        base: *mut c_void,
        size: u64,
        alternate: *mut u64,
        _flags: MemMapFlags,
        count: u64,
        nodes: *const u32,
    ) {
        let driver = Driver::current()?;
        // SAFETY: by the contract of the function.
        let agents = unsafe { agents(&driver, nodes, count) }?;
        let mapped = driver.space.map(address(base), size, Some(agents))?;
        // SAFETY: by the contract of the function.
        if alternate.is_null() { Ok(()) } else { unsafe { put("the address", alternate, mapped) } }
    }

    /// Takes memory away from all agents.
    fn hsaKmtUnmapMemoryToGPU(base: *mut c_void) {
        Driver::current()?.space.unmap(address(base))
    }

    /// Registers memory of the application.
    fn hsaKmtRegisterMemoryWithFlags(base: *mut c_void, size: u64, flags: MemFlags) {
        Driver::current()?.space.register(address(base), size, flags)
    }

    /// Undoes a registration.
    fn hsaKmtDeregisterMemory(base: *mut c_void) {
        Driver::current()?.space.deregister(address(base))
    }

    /// What is known about an address. One that is not known is no error: its type is 0.
    fn hsaKmtQueryPointerInfo(at: *const c_void, info: *mut PointerInfo) {
        let found = Driver::current()?.space.pointer(address(at));
        let nothing = PointerInfo {
            kind: 0,
            node: 0,
            mem_flags: 0,
            cpu_address: 0,
            gpu_address: 0,
            size_in_bytes: 0,
            num_registered_nodes: 0,
            num_mapped_nodes: 0,
            registered_nodes: ptr::null(),
            mapped_nodes: ptr::null(),
            user_data: ptr::null_mut(),
        };
        let value = found.map_or(nothing, |found| PointerInfo {
            kind: found.kind,
            node: found.node,
            mem_flags: found.flags.0,
            cpu_address: found.host,
            gpu_address: found.agent,
            size_in_bytes: found.len,
            num_mapped_nodes: found.mapped.nodes().len() as u32,
            mapped_nodes: found.mapped.nodes().as_ptr(),
            user_data: pointer(found.user_data),
            ..nothing
        });
        // SAFETY: by the contract of the function.
        unsafe { put("the information", info, value) }
    }

    /// Leaves a word with memory.
    fn hsaKmtSetMemoryUserData(at: *const c_void, user_data: *mut c_void) {
        Driver::current()?.space.set_user_data(address(at), address(user_data))
    }

    /// A handle on memory for another process.
    fn hsaKmtShareMemory(base: *mut c_void, _size: u64, handle: *mut SharedMemoryHandle) {
        let value = Driver::current()?.space.share(address(base))?;
        // SAFETY: by the contract of the function.
        unsafe { put("the handle", handle, value) }
    }

    /// Attaches memory of another process.
    fn hsaKmtRegisterSharedHandle(handle: *const SharedMemoryHandle, result: *mut *mut c_void, size: *mut u64) {
        // SAFETY: by the contract of the function.
        unsafe { attach(handle, result, size) }
    }

    /// Attaches memory of another process; the agents are named again when it is mapped.
    fn hsaKmtRegisterSharedHandleToNodes(
        handle: *const SharedMemoryHandle,
        result: *mut *mut c_void,
        size: *mut u64,
        _count: u64,
        _nodes: *const u32,
    ) {
        // SAFETY: by the contract of the function.
        unsafe { attach(handle, result, size) }
    }

    /// Graphics memory: there is none.
    fn hsaKmtRegisterGraphicsHandleToNodes(_handle: u64, _info: *mut c_void, _count: u64, _nodes: *const u32) {
        Err(Error::NotSupported("memory of a graphics driver"))
    }

    /// Coherency of memory by default. All memory is coherent.
    fn hsaKmtSetMemoryPolicy(node: u32, _default: u32, _alternate: u32, _base: *mut c_void, _size: u64) {
        Driver::current()?.node(node).map(drop)
    }

    /// Makes an event.
    fn hsaKmtCreateEvent(descriptor: *const EventDescriptor, manual: bool, raised: bool, result: *mut *mut Event) {
        let driver = Driver::current()?;
        // SAFETY: by the contract of the function.
        let descriptor = unsafe { get("the descriptor", descriptor) }?;
        let (event_id, mailbox) = driver.events.create(descriptor.event_type, manual, raised)?;
        let event = Box::into_raw(Box::new(Event {
            event_id,
            event_type: descriptor.event_type,
            fault: MemoryAccessFault::default(),
            hw_data1: event_id.into(),
            hw_data2: mailbox,
            hw_data3: event_id,
        }));
        // SAFETY: by the contract of the function.
        unsafe { put("the event", result, event) }
    }

    /// Ends an event. Its structure is gone after this.
    fn hsaKmtDestroyEvent(event: *mut Event) {
        let driver = Driver::current()?;
        // SAFETY: by the contract of the function, it is one of `hsaKmtCreateEvent`.
        driver.events.destroy(unsafe { get("the event", event) }?.event_id)?;
        // SAFETY: it comes from a box, and the line above fails when it is destroyed twice.
        drop(unsafe { Box::from_raw(event) });
        Ok(())
    }

    /// Raises an event.
    fn hsaKmtSetEvent(event: *mut Event) {
        let driver = Driver::current()?;
        // SAFETY: by the contract of the function.
        driver.events.raise(unsafe { get("the event", event) }?.event_id)
    }

    /// Waits for an event.
    fn hsaKmtWaitOnEvent(event: *mut Event, milliseconds: u32) {
        // SAFETY: by the contract of the function.
        unsafe { wait(&[event], true, milliseconds) }
    }

    /// Waits for one event of several, or for all.
    fn hsaKmtWaitOnMultipleEvents(events: *const *mut Event, count: u32, all: bool, milliseconds: u32) {
        // SAFETY: by the contract of the function.
        let events = unsafe { get_all("the events", events, count.into()) }?;
        // SAFETY: by the contract of the function.
        unsafe { wait(&events, all, milliseconds) }
    }

    /// Makes a queue. Priority and share of the agent change nothing.
    fn hsaKmtCreateQueue(
        node: u32,
        kind: u32,
        _percentage: u32,
        _priority: i32,
        ring: *mut c_void,
        ring_bytes: u64,
        event: *mut Event,
        resource: *mut QueueResource,
    ) {
        let driver = Driver::current()?;
        // SAFETY: by the contract of the function.
        let given = unsafe { get("the resource", resource) }?;
        let event = if event.is_null() {
            None
        } else {
            // SAFETY: by the contract of the function.
            Some(unsafe { get("the event", event) }?.event_id)
        };
        let request = Request { id: 0, kind, ring: address(ring), ring_bytes, event, resource: given };
        let created = driver.create_queue(node, request)?;
        // SAFETY: by the contract of the function.
        unsafe { put("the resource", resource, created) }
    }

    /// Changes a queue. A share of 0 pauses it.
    fn hsaKmtUpdateQueue(id: u64, percentage: u32, _priority: i32, _ring: *mut c_void, _ring_bytes: u64, _event: *mut Event) {
        let queue = Driver::current()?.queue(id)?;
        if percentage == 0 {
            queue.pause();
            return Ok(());
        }
        queue.resume()
    }

    /// Ends a queue.
    fn hsaKmtDestroyQueue(id: u64) {
        Driver::current()?.destroy_queue(id)
    }

    /// Restricts a queue to some compute units. All kernels run as if on one, so nothing follows from it.
    fn hsaKmtSetQueueCUMask(id: u64, bits: u32, mask: *const u32) {
        Driver::current()?.queue(id)?;
        if bits == 0 || !bits.is_multiple_of(32) || mask.is_null() {
            return Err(Error::Argument { what: "bits of a CU mask", value: bits.into(), want: "a multiple of 32, and a mask" });
        }
        Ok(())
    }

    /// Global wave sync: agents say that they have none.
    fn hsaKmtAllocQueueGWS(_id: u64, _count: u32, _first: *mut u32) {
        Err(Error::NotSupported("global wave sync"))
    }

    /// Sets the trap handler. Nothing ever jumps to it: a trap is an error of the queue.
    fn hsaKmtSetTrapHandler(node: u32, _handler: *mut c_void, _handler_bytes: u64, _buffer: *mut c_void, _buffer_bytes: u64) {
        Driver::current()?.node(node).map(drop)
    }

    /// Asks for exceptions and debugging. ROCr takes a refusal for an older driver and falls back.
    fn hsaKmtRuntimeEnable(_debug: *mut c_void, _setup: bool) {
        let driver = Driver::current()?;
        if driver.has_exceptions() {
            return Ok(());
        }
        Err(Error::WithoutExceptions)
    }

    /// Undoes `hsaKmtRuntimeEnable`.
    fn hsaKmtRuntimeDisable() {
        Driver::current().map(drop)
    }

    /// Sets attributes of managed memory.
    fn hsaKmtSVMSetAttr(start: *mut c_void, size: u64, count: u32, attributes: *mut SvmAttribute) {
        let driver = Driver::current()?;
        // SAFETY: by the contract of the function.
        let attributes = unsafe { get_all("the attributes", attributes, count.into()) }?;
        driver.space.set_managed(address(start), size, &attributes)
    }

    /// Reads attributes of managed memory.
    fn hsaKmtSVMGetAttr(start: *mut c_void, size: u64, count: u32, attributes: *mut SvmAttribute) {
        let driver = Driver::current()?;
        // SAFETY: by the contract of the function.
        let mut values = unsafe { get_all("the attributes", attributes, count.into()) }?;
        driver.space.get_managed(address(start), size, &mut values)?;
        // SAFETY: by the contract of the function.
        unsafe { put_all("the attributes", attributes, count, values) }
    }

    /// Turns replay of page faults on or off: it is off.
    fn hsaKmtSetXNACKMode(enable: i32) {
        Driver::current()?;
        if enable == 0 { Ok(()) } else { Err(Error::NotSupported("XNACK")) }
    }

    /// Whether page faults are replayed: no.
    fn hsaKmtGetXNACKMode(enable: *mut i32) {
        Driver::current()?;
        // SAFETY: by the contract of the function.
        unsafe { put("the mode", enable, 0) }
    }
}

/// Attaches shared memory.
///
/// # Safety
///
/// Pointers are null or point to what their types say.
unsafe fn attach(
    handle: *const SharedMemoryHandle,
    result: *mut *mut c_void,
    size: *mut u64,
) -> Result<(), Error> {
    let driver = Driver::current()?;
    // SAFETY: the caller's.
    let handle = unsafe { get("the handle", handle) }?;
    let (base, len) = driver.space.attach(&handle)?;
    // SAFETY: the caller's.
    unsafe { put("the address", result, pointer(base)) }?;
    // SAFETY: the caller's.
    unsafe { put("the size", size, len) }
}

/// Waits for events and fills in the faults that they report.
///
/// # Safety
///
/// The events are null or from `hsaKmtCreateEvent`, and not destroyed.
unsafe fn wait(events: &[*mut Event], all: bool, milliseconds: u32) -> Result<(), Error> {
    let driver = Driver::current()?;
    let mut ids = Vec::with_capacity(events.len());
    for &event in events {
        // SAFETY: the caller's.
        ids.push(unsafe { get("an event", event) }?.event_id);
    }
    let limit = (milliseconds != FOREVER).then(|| Duration::from_millis(milliseconds.into()));
    driver.events.wait(&ids, all, limit)?;
    for (&id, &event) in ids.iter().zip(events) {
        if let Some(fault) = driver.events.fault(id) {
            // SAFETY: the caller's; ROCr reads the fault after this call.
            let fault_to = unsafe { &raw mut (*event).fault };
            // SAFETY: as above.
            unsafe { put("an event", fault_to, fault) }?;
        }
    }
    Ok(())
}
