//! Functions of `hsa_ext_amd.h` and `hsa_api_trace.h` in AMD's table.
//!
//! Two slots are given for each: that in layout A (ROCr 5.0 to 5.4) and that in layout B (since 5.5);
//! 0 is none. Slots above 82 differ between versions that are not released yet and have no names
//! here.

use core::ffi::{c_int, c_void};

use crate::*;

functions! {
    BASE: amd_ext, "AMD table, slots in layouts A and B", since 5, 2;

    /// Asks how coherent fine-grained memory is. Deprecated.
    1 1 fn hsa_amd_coherency_get_type(
        agent: hsa_agent_t,
        r#type: *mut hsa_amd_coherency_type_t,
    ) -> hsa_status_t;
    /// Sets how coherent fine-grained memory is. Deprecated.
    2 2 fn hsa_amd_coherency_set_type(
        agent: hsa_agent_t,
        r#type: hsa_amd_coherency_type_t,
    ) -> hsa_status_t;
    /// Makes the queue put timestamps into completion signals; 1 is on.
    3 3 fn hsa_amd_profiling_set_profiler_enabled(
        queue: *mut hsa_queue_t,
        enable: c_int,
    ) -> hsa_status_t;
    /// Makes copies put timestamps into completion signals.
    4 4 fn hsa_amd_profiling_async_copy_enable(enable: bool) -> hsa_status_t;
    /// Start and end of the dispatch that signalled last, in ticks of the system clock.
    5 5 fn hsa_amd_profiling_get_dispatch_time(
        agent: hsa_agent_t,
        signal: hsa_signal_t,
        time: *mut hsa_amd_profiling_dispatch_time_t,
    ) -> hsa_status_t;
    /// Start and end of the copy that signalled last, in ticks of the system clock.
    6 6 fn hsa_amd_profiling_get_async_copy_time(
        signal: hsa_signal_t,
        time: *mut hsa_amd_profiling_async_copy_time_t,
    ) -> hsa_status_t;
    /// Converts ticks of an agent to ticks of the system clock.
    7 7 fn hsa_amd_profiling_convert_tick_to_system_domain(
        agent: hsa_agent_t,
        agent_tick: u64,
        system_tick: *mut u64,
    ) -> hsa_status_t;
    /// Calls `handler` on the runtime's event thread once the condition holds, and again while it returns
    /// true. All handlers share that thread.
    8 8 fn hsa_amd_signal_async_handler(
        signal: hsa_signal_t,
        cond: hsa_signal_condition_t,
        value: hsa_signal_value_t,
        handler: hsa_amd_signal_handler,
        arg: *mut c_void,
    ) -> hsa_status_t;
    /// Calls a function on the runtime's event thread.
    9 9 fn hsa_amd_async_function(
        callback: hsa_amd_async_callback,
        arg: *mut c_void,
    ) -> hsa_status_t;
    /// Waits until the condition of one signal holds, relaxed order; returns which, or all ones.
    10 10 fn hsa_amd_signal_wait_any(
        signal_count: u32,
        signals: *mut hsa_signal_t,
        conds: *mut hsa_signal_condition_t,
        values: *mut hsa_signal_value_t,
        timeout_hint: u64,
        wait_hint: hsa_wait_state_t,
        satisfying_value: *mut hsa_signal_value_t,
    ) -> u32;
    /// Restricts a queue to compute units; the count is in bits, a multiple of 32.
    11 11 fn hsa_amd_queue_cu_set_mask(
        queue: *const hsa_queue_t,
        num_cu_mask_count: u32,
        cu_mask: *const u32,
    ) -> hsa_status_t;
    /// Asks about a pool.
    12 12 fn hsa_amd_memory_pool_get_info(
        memory_pool: hsa_amd_memory_pool_t,
        attribute: hsa_amd_memory_pool_info_t,
        value: *mut c_void,
    ) -> hsa_status_t;
    /// Calls back with every pool of an agent.
    13 13 fn hsa_amd_agent_iterate_memory_pools(
        agent: hsa_agent_t,
        callback: hsa_amd_memory_pool_callback,
        data: *mut c_void,
    ) -> hsa_status_t;
    /// Allocates in a pool; `flags` are [`hsa_amd_memory_pool_flag_t`] bits.
    14 14 fn hsa_amd_memory_pool_allocate(
        memory_pool: hsa_amd_memory_pool_t,
        size: usize,
        flags: u32,
        ptr: *mut *mut c_void,
    ) -> hsa_status_t;
    /// Frees what `hsa_amd_memory_pool_allocate` gave; nobody may use it any more.
    15 15 fn hsa_amd_memory_pool_free(ptr: *mut c_void) -> hsa_status_t;
    /// Copies once all dependencies are zero, then decrements the completion signal; zero bytes do
    /// neither.
    16 16 fn hsa_amd_memory_async_copy(
        dst: *mut c_void,
        dst_agent: hsa_agent_t,
        src: *const c_void,
        src_agent: hsa_agent_t,
        size: usize,
        num_dep_signals: u32,
        dep_signals: *const hsa_signal_t,
        completion_signal: hsa_signal_t,
    ) -> hsa_status_t;
    /// Asks how an agent and a pool are connected.
    17 19 fn hsa_amd_agent_memory_pool_get_info(
        agent: hsa_agent_t,
        memory_pool: hsa_amd_memory_pool_t,
        attribute: hsa_amd_agent_memory_pool_info_t,
        value: *mut c_void,
    ) -> hsa_status_t;
    /// Sets the agents that may use an allocation, all of them; `flags` is null.
    18 20 fn hsa_amd_agents_allow_access(
        num_agents: u32,
        agents: *const hsa_agent_t,
        flags: *const u32,
        ptr: *const c_void,
    ) -> hsa_status_t;
    /// Asks whether memory can move from pool to pool.
    19 21 fn hsa_amd_memory_pool_can_migrate(
        src_memory_pool: hsa_amd_memory_pool_t,
        dst_memory_pool: hsa_amd_memory_pool_t,
        result: *mut bool,
    ) -> hsa_status_t;
    /// Moves memory to another pool.
    20 22 fn hsa_amd_memory_migrate(
        ptr: *const c_void,
        memory_pool: hsa_amd_memory_pool_t,
        flags: u32,
    ) -> hsa_status_t;
    /// Locks host memory and makes it usable by agents, at another address.
    21 23 fn hsa_amd_memory_lock(
        host_ptr: *mut c_void,
        size: usize,
        agents: *mut hsa_agent_t,
        num_agent: c_int,
        agent_ptr: *mut *mut c_void,
    ) -> hsa_status_t;
    /// Unlocks host memory.
    22 24 fn hsa_amd_memory_unlock(host_ptr: *mut c_void) -> hsa_status_t;
    /// Fills `count` words of 32 bits, and waits.
    23 25 fn hsa_amd_memory_fill(ptr: *mut c_void, value: u32, count: usize) -> hsa_status_t;
    /// Maps memory of a graphics interface.
    24 26 fn hsa_amd_interop_map_buffer(
        num_agents: u32,
        agents: *mut hsa_agent_t,
        interop_handle: c_int,
        flags: u32,
        size: *mut usize,
        ptr: *mut *mut c_void,
        metadata_size: *mut usize,
        metadata: *mut *const c_void,
    ) -> hsa_status_t;
    /// Unmaps it.
    25 27 fn hsa_amd_interop_unmap_buffer(ptr: *mut c_void) -> hsa_status_t;
    /// Makes an image from a driver's layout.
    26 28 fn hsa_amd_image_create(
        agent: hsa_agent_t,
        image_descriptor: *const hsa_ext_image_descriptor_t,
        image_layout: *const hsa_amd_image_descriptor_t,
        image_data: *const c_void,
        access_permission: hsa_access_permission_t,
        image: *mut hsa_ext_image_t,
    ) -> hsa_status_t;
    /// Tells about the allocation that an address is in. Set `info.size` first. With `alloc` it lists
    /// the agents that may use it, in memory that is the caller's.
    27 29 fn hsa_amd_pointer_info(
        ptr: *const c_void,
        info: *mut hsa_amd_pointer_info_t,
        alloc: Option<hsa_amd_alloc_callback>,
        num_agents_accessible: *mut u32,
        accessible: *mut *mut hsa_agent_t,
    ) -> hsa_status_t;
    /// Attaches a pointer to an allocation.
    28 30 fn hsa_amd_pointer_info_set_userdata(
        ptr: *const c_void,
        userdata: *mut c_void,
    ) -> hsa_status_t;
    /// Names an allocation to other processes.
    29 31 fn hsa_amd_ipc_memory_create(
        ptr: *mut c_void,
        len: usize,
        handle: *mut hsa_amd_ipc_memory_t,
    ) -> hsa_status_t;
    /// Maps an allocation of another process.
    30 32 fn hsa_amd_ipc_memory_attach(
        handle: *const hsa_amd_ipc_memory_t,
        len: usize,
        num_agents: u32,
        mapping_agents: *const hsa_agent_t,
        mapped_ptr: *mut *mut c_void,
    ) -> hsa_status_t;
    /// Unmaps it.
    31 33 fn hsa_amd_ipc_memory_detach(mapped_ptr: *mut c_void) -> hsa_status_t;
    /// Makes a signal; `attributes` are [`hsa_amd_signal_attribute_t`] bits.
    32 34 fn hsa_amd_signal_create(
        initial_value: hsa_signal_value_t,
        num_consumers: u32,
        consumers: *const hsa_agent_t,
        attributes: u64,
        signal: *mut hsa_signal_t,
    ) -> hsa_status_t;
    /// Names a signal to other processes.
    33 35 fn hsa_amd_ipc_signal_create(
        signal: hsa_signal_t,
        handle: *mut hsa_amd_ipc_signal_t,
    ) -> hsa_status_t;
    /// Takes over a signal of another process.
    34 36 fn hsa_amd_ipc_signal_attach(
        handle: *const hsa_amd_ipc_signal_t,
        signal: *mut hsa_signal_t,
    ) -> hsa_status_t;
    /// Hears of events of the system, on a thread of the runtime. Only one can.
    35 37 fn hsa_amd_register_system_event_handler(
        callback: hsa_amd_system_event_callback_t,
        data: *mut c_void,
    ) -> hsa_status_t;
    /// Sets the priority of a queue.
    38 40 fn hsa_amd_queue_set_priority(
        queue: *mut hsa_queue_t,
        priority: hsa_amd_queue_priority_t,
    ) -> hsa_status_t;
    /// Copies a box; the offsets and range are in bytes, rows, layers.
    39 41 fn hsa_amd_memory_async_copy_rect(
        dst: *const hsa_pitched_ptr_t,
        dst_offset: *const hsa_dim3_t,
        src: *const hsa_pitched_ptr_t,
        src_offset: *const hsa_dim3_t,
        range: *const hsa_dim3_t,
        copy_agent: hsa_agent_t,
        dir: hsa_amd_copy_direction_t,
        num_dep_signals: u32,
        dep_signals: *const hsa_signal_t,
        completion_signal: hsa_signal_t,
    ) -> hsa_status_t;
    /// Locks host memory with the properties of a pool; `flags` is zero.
    41 43 fn hsa_amd_memory_lock_to_pool(
        host_ptr: *mut c_void,
        size: usize,
        agents: *mut hsa_agent_t,
        num_agent: c_int,
        pool: hsa_amd_memory_pool_t,
        flags: u32,
        agent_ptr: *mut *mut c_void,
    ) -> hsa_status_t;
    /// Calls `callback` once, when the allocation is freed.
    42 44 fn hsa_amd_register_deallocation_callback(
        ptr: *mut c_void,
        callback: hsa_amd_deallocation_callback_t,
        user_data: *mut c_void,
    ) -> hsa_status_t;
    /// Takes it back.
    43 45 fn hsa_amd_deregister_deallocation_callback(
        ptr: *mut c_void,
        callback: hsa_amd_deallocation_callback_t,
    ) -> hsa_status_t;
    /// The address of a signal's value, for devices that are no agents. It changes at any time: access
    /// it atomically.
    44 46 fn hsa_amd_signal_value_pointer(
        signal: hsa_signal_t,
        value_ptr: *mut *mut hsa_signal_value_t,
    ) -> hsa_status_t;
    /// Sets attributes of a range of shared virtual memory.
    45 47 fn hsa_amd_svm_attributes_set(
        ptr: *mut c_void,
        size: usize,
        attribute_list: *mut hsa_amd_svm_attribute_pair_t,
        attribute_count: usize,
    ) -> hsa_status_t;
    /// Asks for attributes of a range of shared virtual memory.
    46 48 fn hsa_amd_svm_attributes_get(
        ptr: *mut c_void,
        size: usize,
        attribute_list: *mut hsa_amd_svm_attribute_pair_t,
        attribute_count: usize,
    ) -> hsa_status_t;
    /// Moves a range of shared virtual memory to an agent.
    47 49 fn hsa_amd_svm_prefetch_async(
        ptr: *mut c_void,
        size: usize,
        agent: hsa_agent_t,
        num_dep_signals: u32,
        dep_signals: *const hsa_signal_t,
        completion_signal: hsa_signal_t,
    ) -> hsa_status_t;
    /// Asks which compute units a queue is restricted to; the count is in bits.
    48 53 fn hsa_amd_queue_cu_get_mask(
        queue: *const hsa_queue_t,
        num_cu_mask_count: u32,
        cu_mask: *mut u32,
    ) -> hsa_status_t;
}

functions! {
    TABLE_ONLY: amd_ext_table_only, "Not exported; AMD table, slots in layouts A and B", since 5, 2;

    /// Makes a queue whose packets pass handlers before the hardware sees them. Arguments as for
    /// `hsa_queue_create`.
    36 38 fn hsa_amd_queue_intercept_create(
        agent_handle: hsa_agent_t,
        size: u32,
        r#type: hsa_queue_type32_t,
        callback: Option<hsa_queue_callback>,
        data: *mut c_void,
        private_segment_size: u32,
        group_segment_size: u32,
        queue: *mut *mut hsa_queue_t,
    ) -> hsa_status_t;
    /// Puts a handler in front of those that an intercept queue has.
    37 39 fn hsa_amd_queue_intercept_register(
        queue: *mut hsa_queue_t,
        callback: hsa_amd_queue_intercept_handler,
        user_data: *mut c_void,
    ) -> hsa_status_t;
    /// Hears of the queues that the runtime makes for itself.
    40 42 fn hsa_amd_runtime_queue_create_register(
        callback: hsa_amd_runtime_queue_notifier,
        user_data: *mut c_void,
    ) -> hsa_status_t;
}

functions! {
    SINCE_5_5: amd_ext, "AMD table, slots in layouts A and B", since 5, 5;

    /// As `hsa_amd_memory_async_copy`, on a given SDMA engine.
    0 17 fn hsa_amd_memory_async_copy_on_engine(
        dst: *mut c_void,
        dst_agent: hsa_agent_t,
        src: *const c_void,
        src_agent: hsa_agent_t,
        size: usize,
        num_dep_signals: u32,
        dep_signals: *const hsa_signal_t,
        completion_signal: hsa_signal_t,
        engine_id: hsa_amd_sdma_engine_id_t,
        force_copy_on_sdma: bool,
    ) -> hsa_status_t;
    /// Asks which SDMA engines between two agents are free, in bits.
    0 18 fn hsa_amd_memory_copy_engine_status(
        dst_agent: hsa_agent_t,
        src_agent: hsa_agent_t,
        engine_ids_mask: *mut u32,
    ) -> hsa_status_t;
    /// Takes the streaming performance monitor of an agent.
    0 50 fn hsa_amd_spm_acquire(preferred_agent: hsa_agent_t) -> hsa_status_t;
    /// Gives it back.
    0 51 fn hsa_amd_spm_release(preferred_agent: hsa_agent_t) -> hsa_status_t;
    /// Sets the buffer it writes to; waits at most `timeout` milliseconds for the last one to fill.
    0 52 fn hsa_amd_spm_set_dest_buffer(
        preferred_agent: hsa_agent_t,
        size_in_bytes: usize,
        timeout: *mut u32,
        size_copied: *mut u32,
        dest: *mut c_void,
        is_data_loss: *mut bool,
    ) -> hsa_status_t;
}

functions! {
    SINCE_5_6: amd_ext, "AMD table, slots in layouts A and B", since 5, 6;

    /// Exports memory as a dma-buf; `offset` is where `ptr` lies in it.
    0 54 fn hsa_amd_portable_export_dmabuf(
        ptr: *const c_void,
        size: usize,
        dmabuf: *mut c_int,
        offset: *mut u64,
    ) -> hsa_status_t;
    /// Closes a dma-buf.
    0 55 fn hsa_amd_portable_close_dmabuf(dmabuf: c_int) -> hsa_status_t;
}

functions! {
    SINCE_5_7: amd_ext, "AMD table, slots in layouts A and B", since 5, 7;

    /// Reserves an address range, at `address` if possible; `flags` are
    /// [`hsa_amd_vmem_address_reserve_flag_t`] bits.
    0 56 fn hsa_amd_vmem_address_reserve(
        va: *mut *mut c_void,
        size: usize,
        address: u64,
        flags: u64,
    ) -> hsa_status_t;
    /// Gives an address range back.
    0 57 fn hsa_amd_vmem_address_free(va: *mut c_void, size: usize) -> hsa_status_t;
    /// Allocates physical memory.
    0 58 fn hsa_amd_vmem_handle_create(
        pool: hsa_amd_memory_pool_t,
        size: usize,
        r#type: hsa_amd_memory_type_t,
        flags: u64,
        memory_handle: *mut hsa_amd_vmem_alloc_handle_t,
    ) -> hsa_status_t;
    /// Frees physical memory, once it is unmapped.
    0 59 fn hsa_amd_vmem_handle_release(memory_handle: hsa_amd_vmem_alloc_handle_t) -> hsa_status_t;
    /// Maps physical memory into a reserved range.
    0 60 fn hsa_amd_vmem_map(
        va: *mut c_void,
        size: usize,
        in_offset: usize,
        memory_handle: hsa_amd_vmem_alloc_handle_t,
        flags: u64,
    ) -> hsa_status_t;
    /// Unmaps it.
    0 61 fn hsa_amd_vmem_unmap(va: *mut c_void, size: usize) -> hsa_status_t;
    /// Sets what the agents named may do with a mapping.
    0 62 fn hsa_amd_vmem_set_access(
        va: *mut c_void,
        size: usize,
        desc: *const hsa_amd_memory_access_desc_t,
        desc_cnt: usize,
    ) -> hsa_status_t;
    /// Asks what an agent may do with a mapping.
    0 63 fn hsa_amd_vmem_get_access(
        va: *mut c_void,
        perms: *mut hsa_access_permission_t,
        agent_handle: hsa_agent_t,
    ) -> hsa_status_t;
    /// Exports physical memory as a dma-buf.
    0 64 fn hsa_amd_vmem_export_shareable_handle(
        dmabuf_fd: *mut c_int,
        handle: hsa_amd_vmem_alloc_handle_t,
        flags: u64,
    ) -> hsa_status_t;
    /// Imports it.
    0 65 fn hsa_amd_vmem_import_shareable_handle(
        dmabuf_fd: c_int,
        handle: *mut hsa_amd_vmem_alloc_handle_t,
    ) -> hsa_status_t;
    /// The physical memory at an address; release the handle.
    0 66 fn hsa_amd_vmem_retain_alloc_handle(
        memory_handle: *mut hsa_amd_vmem_alloc_handle_t,
        addr: *mut c_void,
    ) -> hsa_status_t;
    /// Pool and kind of physical memory.
    0 67 fn hsa_amd_vmem_get_alloc_properties_from_handle(
        memory_handle: hsa_amd_vmem_alloc_handle_t,
        pool: *mut hsa_amd_memory_pool_t,
        r#type: *mut hsa_amd_memory_type_t,
    ) -> hsa_status_t;
}

functions! {
    SINCE_6_1: amd_ext, "AMD table, slots in layouts A and B", since 6, 1;

    /// Sets how many bytes of scratch an agent's queues may keep.
    0 68 fn hsa_amd_agent_set_async_scratch_limit(
        agent: hsa_agent_t,
        threshold: usize,
    ) -> hsa_status_t;
}

functions! {
    SINCE_6_2: amd_ext, "AMD table, slots in layouts A and B", since 6, 2;

    /// Asks about a queue.
    0 69 fn hsa_amd_queue_get_info(
        queue: *mut hsa_queue_t,
        attribute: hsa_queue_info_attribute_t,
        value: *mut c_void,
    ) -> hsa_status_t;
    /// Reserves an aligned address range.
    0 70 fn hsa_amd_vmem_address_reserve_align(
        va: *mut *mut c_void,
        size: usize,
        address: u64,
        alignment: u64,
        flags: u64,
    ) -> hsa_status_t;
}

functions! {
    SINCE_6_3: amd_ext, "AMD table, slots in layouts A and B", since 6, 3;

    /// Logs to a C `FILE`, or to standard error for null; `flags` points at 8 bytes of bits.
    0 71 fn hsa_amd_enable_logging(flags: *mut u8, file: *mut c_void) -> hsa_status_t;
}

functions! {
    SINCE_6_4: amd_ext, "AMD table, slots in layouts A and B", since 6, 4;

    /// Waits until the conditions of all signals hold, relaxed order; zero, or all ones after the time.
    0 72 fn hsa_amd_signal_wait_all(
        signal_count: u32,
        signals: *mut hsa_signal_t,
        conds: *mut hsa_signal_condition_t,
        values: *mut hsa_signal_value_t,
        timeout_hint: u64,
        wait_hint: hsa_wait_state_t,
        satisfying_values: *mut hsa_signal_value_t,
    ) -> u32;
}

functions! {
    SINCE_7_0: amd_ext, "AMD table, slots in layouts A and B", since 7, 0;

    /// Asks which SDMA engines are best between two agents, in bits.
    0 73 fn hsa_amd_memory_get_preferred_copy_engine(
        dst_agent: hsa_agent_t,
        src_agent: hsa_agent_t,
        recommended_ids_mask: *mut u32,
    ) -> hsa_status_t;
    /// As `hsa_amd_portable_export_dmabuf`, with [`hsa_amd_dma_buf_mapping_type_t`] bits.
    0 74 fn hsa_amd_portable_export_dmabuf_v2(
        ptr: *const c_void,
        size: usize,
        dmabuf: *mut c_int,
        offset: *mut u64,
        flags: u64,
    ) -> hsa_status_t;
}

// `Release::AFTER_V7_1`: in development versions, all of which agree about these.
functions! {
    AFTER_7_1: amd_ext, "AMD table, slots in layouts A and B", since 7, 2;

    /// Writes device memory to a file.
    0 75 fn hsa_amd_ais_file_write(
        handle: hsa_amd_ais_file_handle_t,
        device_ptr: *mut c_void,
        size: u64,
        file_offset: i64,
        size_copied: *mut u64,
        status: *mut i32,
    ) -> hsa_status_t;
    /// Reads a file into device memory.
    0 76 fn hsa_amd_ais_file_read(
        handle: hsa_amd_ais_file_handle_t,
        device_ptr: *mut c_void,
        size: u64,
        file_offset: i64,
        size_copied: *mut u64,
        status: *mut i32,
    ) -> hsa_status_t;
    /// Takes a queue that may share its hardware queue with others.
    0 77 fn hsa_amd_counted_queue_acquire(
        agent: hsa_agent_t,
        r#type: hsa_queue_type_t,
        priority: hsa_amd_queue_priority_t,
        callback: Option<hsa_queue_callback>,
        data: *mut c_void,
        flags: u64,
        queue: *mut *mut hsa_queue_t,
    ) -> hsa_status_t;
    /// Gives it back.
    0 78 fn hsa_amd_counted_queue_release(queue: *mut hsa_queue_t) -> hsa_status_t;
    /// Starts several copies.
    0 79 fn hsa_amd_memory_async_batch_copy(
        copy_ops: *const hsa_amd_memory_copy_op_t,
        num_copy_ops: u32,
        num_dep_signals: u32,
        dep_signals: *const hsa_signal_t,
    ) -> hsa_status_t;
    /// Prepares an agent for its first work.
    0 80 fn hsa_amd_agent_preload(agent: hsa_agent_t, flags: u64) -> hsa_status_t;
    /// Drops the content of ranges of shared virtual memory.
    0 81 fn hsa_amd_svm_discard_batch_async(
        ptrs: *mut *mut c_void,
        sizes: *mut usize,
        count: u32,
        num_dep_signals: u32,
        dep_signals: *const hsa_signal_t,
        completion_signal: hsa_signal_t,
    ) -> hsa_status_t;
    /// The interrupt event of a signal.
    0 82 fn hsa_amd_signal_get_event_id(signal: hsa_signal_t, event_id: *mut u32) -> hsa_status_t;
}
