//! Types of the functions that the runtime calls. None of them may unwind.
//!
//! Where C gives such a type no name, the name is ours.

use core::ffi::{c_char, c_int, c_void};

use crate::*;

callbacks! {
    /// Gets an agent; ends the iteration unless it returns SUCCESS.
    fn hsa_agent_callback(agent: hsa_agent_t, data: *mut c_void) -> hsa_status_t;
    /// Gets a region; ends the iteration unless it returns SUCCESS.
    fn hsa_region_callback(region: hsa_region_t, data: *mut c_void) -> hsa_status_t;
    /// Gets a cache; ends the iteration unless it returns SUCCESS.
    fn hsa_cache_callback(cache: hsa_cache_t, data: *mut c_void) -> hsa_status_t;
    /// Gets an instruction set; ends the iteration unless it returns SUCCESS.
    fn hsa_isa_callback(isa: hsa_isa_t, data: *mut c_void) -> hsa_status_t;
    /// Gets a wavefront size; ends the iteration unless it returns SUCCESS.
    fn hsa_wavefront_callback(wavefront: hsa_wavefront_t, data: *mut c_void) -> hsa_status_t;
    /// Gets a symbol; ends the iteration unless it returns SUCCESS.
    fn hsa_executable_symbol_callback(
        executable: hsa_executable_t,
        symbol: hsa_executable_symbol_t,
        data: *mut c_void,
    ) -> hsa_status_t;
    /// Gets a symbol of an agent; ends the iteration unless it returns SUCCESS.
    fn hsa_agent_symbol_callback(
        executable: hsa_executable_t,
        agent: hsa_agent_t,
        symbol: hsa_executable_symbol_t,
        data: *mut c_void,
    ) -> hsa_status_t;
    /// Gets a symbol of a code object; ends the iteration unless it returns SUCCESS. Deprecated.
    fn hsa_code_symbol_callback(
        code_object: hsa_code_object_t,
        symbol: hsa_code_symbol_t,
        data: *mut c_void,
    ) -> hsa_status_t;
    /// Allocates memory for `hsa_code_object_serialize`. Deprecated.
    fn hsa_alloc_callback(
        size: usize,
        data: hsa_callback_data_t,
        address: *mut *mut c_void,
    ) -> hsa_status_t;
    /// Hears of an error of a queue, on a thread of the runtime. The queue is inactive then.
    fn hsa_queue_callback(status: hsa_status_t, source: *mut hsa_queue_t, data: *mut c_void);
    /// Hears of a signal, on the runtime's event thread; true goes on listening.
    fn hsa_amd_signal_handler(value: hsa_signal_value_t, arg: *mut c_void) -> bool;
    /// Runs on the runtime's event thread.
    fn hsa_amd_async_callback(arg: *mut c_void);
    /// Gets a pool; ends the iteration unless it returns SUCCESS.
    fn hsa_amd_memory_pool_callback(
        memory_pool: hsa_amd_memory_pool_t,
        data: *mut c_void,
    ) -> hsa_status_t;
    /// Allocates memory, as `malloc` does.
    fn hsa_amd_alloc_callback(size: usize) -> *mut c_void;
    /// Hears of an event of the system, on a thread of the runtime; SUCCESS means that it was dealt with.
    fn hsa_amd_system_event_callback_t(
        event: *const hsa_amd_event_t,
        data: *mut c_void,
    ) -> hsa_status_t;
    /// Hears that memory is freed.
    fn hsa_amd_deallocation_callback_t(ptr: *mut c_void, user_data: *mut c_void);
    /// Passes packets to the next handler of an intercept queue, and in the end to the hardware. Valid
    /// during the handler's call, on its thread.
    fn hsa_amd_queue_intercept_packet_writer(pkts: *const c_void, pkt_count: u64);
    /// Gets the packets submitted to an intercept queue, one or several, and writes what should run
    /// instead. Runs on the thread that rang the doorbell or on the event thread, with the queue locked.
    fn hsa_amd_queue_intercept_handler(
        pkts: *const c_void,
        pkt_count: u64,
        user_pkt_index: u64,
        data: *mut c_void,
        writer: hsa_amd_queue_intercept_packet_writer,
    );
    /// Hears of a queue that the runtime makes for itself.
    fn hsa_amd_runtime_queue_notifier(
        queue: *const hsa_queue_t,
        agent: hsa_agent_t,
        data: *mut c_void,
    );
    /// Gets a module; ends the iteration unless it returns SUCCESS.
    fn hsa_ext_module_callback(
        program: hsa_ext_program_t,
        module: hsa_ext_module_t,
        data: *mut c_void,
    ) -> hsa_status_t;
    /// Gets a loaded code object; ends the iteration unless it returns SUCCESS.
    fn hsa_ven_amd_loader_loaded_code_object_callback(
        executable: hsa_executable_t,
        loaded_code_object: hsa_loaded_code_object_t,
        data: *mut c_void,
    ) -> hsa_status_t;
    /// Gets an executable; ends the iteration unless it returns SUCCESS.
    fn hsa_ven_amd_loader_executable_callback(
        executable: hsa_executable_t,
        data: *mut c_void,
    ) -> hsa_status_t;
    /// Gets what was recorded; ends the iteration unless it returns SUCCESS.
    fn hsa_ven_amd_aqlprofile_data_callback_t(
        info_type: hsa_ven_amd_aqlprofile_info_type_t,
        info_data: *mut hsa_ven_amd_aqlprofile_info_data_t,
        callback_data: *mut c_void,
    ) -> hsa_status_t;
    /// Allocates memory as the flags ask.
    fn aqlprofile_memory_alloc_callback_t(
        ptr: *mut *mut c_void,
        size: u64,
        flags: aqlprofile_buffer_desc_flags_t,
        userdata: *mut c_void,
    ) -> hsa_status_t;
    /// Frees memory.
    fn aqlprofile_memory_dealloc_callback_t(ptr: *mut c_void, userdata: *mut c_void);
    /// Copies memory.
    fn aqlprofile_memory_copy_t(
        dst: *mut c_void,
        src: *const c_void,
        size: usize,
        userdata: *mut c_void,
    ) -> hsa_status_t;
    /// Gets the value of a counter.
    fn aqlprofile_pmc_data_callback_t(
        event: aqlprofile_pmc_event_t,
        counter_id: u64,
        counter_value: u64,
        userdata: *mut c_void,
    ) -> hsa_status_t;
    /// Gets the name of a coordinate.
    fn aqlprofile_eventname_callback_t(
        id: c_int,
        name: *const c_char,
        data: *mut c_void,
    ) -> hsa_status_t;
    /// Gets one coordinate of a value.
    fn aqlprofile_coordinate_callback_t(
        position: c_int,
        id: c_int,
        extent: c_int,
        coordinate: c_int,
        name: *const c_char,
        userdata: *mut c_void,
    ) -> hsa_status_t;
}
