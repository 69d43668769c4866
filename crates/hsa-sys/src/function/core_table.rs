//! Functions of `hsa.h` in the core table, in the order of their slots.
//!
//! The table has had the same 125 slots since ROCr 5.2.

use core::ffi::{c_char, c_void};

use crate::*;

functions! {
    CORE: core, "Core table, slot", since 5, 2;

    /// Starts the runtime, or takes another reference to a running one. Tools are loaded here.
    1 fn hsa_init() -> hsa_status_t;
    /// Gives a reference back; the last one stops the runtime.
    2 fn hsa_shut_down() -> hsa_status_t;
    /// Asks about the system.
    3 fn hsa_system_get_info(attribute: hsa_system_info_t, value: *mut c_void) -> hsa_status_t;
    /// Asks whether the system has an extension in a version. Deprecated.
    4 fn hsa_system_extension_supported(
        extension: u16,
        version_major: u16,
        version_minor: u16,
        result: *mut bool,
    ) -> hsa_status_t;
    /// Fills in an extension's function table of exactly this version. Deprecated.
    5 fn hsa_system_get_extension_table(
        extension: u16,
        version_major: u16,
        version_minor: u16,
        table: *mut c_void,
    ) -> hsa_status_t;
    /// Calls back with every agent.
    6 fn hsa_iterate_agents(callback: hsa_agent_callback, data: *mut c_void) -> hsa_status_t;
    /// Asks about an agent.
    7 fn hsa_agent_get_info(
        agent: hsa_agent_t,
        attribute: hsa_agent_info_t,
        value: *mut c_void,
    ) -> hsa_status_t;
    /// Makes a queue of `size` packets, a power of two. `callback` hears of its errors, on a thread of the
    /// runtime. Segment sizes of all ones leave them to the dispatches.
    8 fn hsa_queue_create(
        agent: hsa_agent_t,
        size: u32,
        r#type: hsa_queue_type32_t,
        callback: Option<hsa_queue_callback>,
        data: *mut c_void,
        private_segment_size: u32,
        group_segment_size: u32,
        queue: *mut *mut hsa_queue_t,
    ) -> hsa_status_t;
    /// Makes a queue whose packets the host processes.
    9 fn hsa_soft_queue_create(
        region: hsa_region_t,
        size: u32,
        r#type: hsa_queue_type32_t,
        features: u32,
        doorbell_signal: hsa_signal_t,
        queue: *mut *mut hsa_queue_t,
    ) -> hsa_status_t;
    /// Destroys a queue. Its unfinished packets may never complete.
    10 fn hsa_queue_destroy(queue: *mut hsa_queue_t) -> hsa_status_t;
    /// Stops a queue. Its unfinished packets never complete.
    11 fn hsa_queue_inactivate(queue: *mut hsa_queue_t) -> hsa_status_t;
    /// Loads the read index, acquire order.
    12 fn hsa_queue_load_read_index_scacquire(queue: *const hsa_queue_t) -> u64;
    /// Loads the read index, relaxed order.
    13 fn hsa_queue_load_read_index_relaxed(queue: *const hsa_queue_t) -> u64;
    /// Loads the write index, acquire order.
    14 fn hsa_queue_load_write_index_scacquire(queue: *const hsa_queue_t) -> u64;
    /// Loads the write index, relaxed order.
    15 fn hsa_queue_load_write_index_relaxed(queue: *const hsa_queue_t) -> u64;
    /// Stores the write index, relaxed order.
    16 fn hsa_queue_store_write_index_relaxed(queue: *const hsa_queue_t, value: u64);
    /// Stores the write index, release order.
    17 fn hsa_queue_store_write_index_screlease(queue: *const hsa_queue_t, value: u64);
    /// Replaces the write index by `value` if it is `expected`; returns what it was. Acquire and release order.
    18 fn hsa_queue_cas_write_index_scacq_screl(
        queue: *const hsa_queue_t,
        expected: u64,
        value: u64,
    ) -> u64;
    /// Replaces the write index by `value` if it is `expected`; returns what it was. Acquire order.
    19 fn hsa_queue_cas_write_index_scacquire(
        queue: *const hsa_queue_t,
        expected: u64,
        value: u64,
    ) -> u64;
    /// Replaces the write index by `value` if it is `expected`; returns what it was. Relaxed order.
    20 fn hsa_queue_cas_write_index_relaxed(
        queue: *const hsa_queue_t,
        expected: u64,
        value: u64,
    ) -> u64;
    /// Replaces the write index by `value` if it is `expected`; returns what it was. Release order.
    21 fn hsa_queue_cas_write_index_screlease(
        queue: *const hsa_queue_t,
        expected: u64,
        value: u64,
    ) -> u64;
    /// Adds to the write index; returns what it was: the first packet reserved. Acquire and release order.
    22 fn hsa_queue_add_write_index_scacq_screl(queue: *const hsa_queue_t, value: u64) -> u64;
    /// Adds to the write index; returns what it was: the first packet reserved. Acquire order.
    23 fn hsa_queue_add_write_index_scacquire(queue: *const hsa_queue_t, value: u64) -> u64;
    /// Adds to the write index; returns what it was: the first packet reserved. Relaxed order.
    24 fn hsa_queue_add_write_index_relaxed(queue: *const hsa_queue_t, value: u64) -> u64;
    /// Adds to the write index; returns what it was: the first packet reserved. Release order.
    25 fn hsa_queue_add_write_index_screlease(queue: *const hsa_queue_t, value: u64) -> u64;
    /// Stores the read index of a soft queue, relaxed order.
    26 fn hsa_queue_store_read_index_relaxed(queue: *const hsa_queue_t, value: u64);
    /// Stores the read index of a soft queue, release order.
    27 fn hsa_queue_store_read_index_screlease(queue: *const hsa_queue_t, value: u64);
    /// Calls back with every region of an agent.
    28 fn hsa_agent_iterate_regions(
        agent: hsa_agent_t,
        callback: hsa_region_callback,
        data: *mut c_void,
    ) -> hsa_status_t;
    /// Asks about a region.
    29 fn hsa_region_get_info(
        region: hsa_region_t,
        attribute: hsa_region_info_t,
        value: *mut c_void,
    ) -> hsa_status_t;
    /// Asks which exception policies an agent has, in bits. Deprecated.
    30 fn hsa_agent_get_exception_policies(
        agent: hsa_agent_t,
        profile: hsa_profile_t,
        mask: *mut u16,
    ) -> hsa_status_t;
    /// Asks whether an agent has an extension in a version. Deprecated.
    31 fn hsa_agent_extension_supported(
        extension: u16,
        agent: hsa_agent_t,
        version_major: u16,
        version_minor: u16,
        result: *mut bool,
    ) -> hsa_status_t;
    /// Tells that agents of the full profile will use host memory.
    32 fn hsa_memory_register(ptr: *mut c_void, size: usize) -> hsa_status_t;
    /// Takes it back.
    33 fn hsa_memory_deregister(ptr: *mut c_void, size: usize) -> hsa_status_t;
    /// Allocates in a region.
    34 fn hsa_memory_allocate(
        region: hsa_region_t,
        size: usize,
        ptr: *mut *mut c_void,
    ) -> hsa_status_t;
    /// Frees what [`hsa_memory_allocate`](type@hsa_memory_allocate) gave.
    35 fn hsa_memory_free(ptr: *mut c_void) -> hsa_status_t;
    /// Copies and waits. Source and destination must not overlap.
    36 fn hsa_memory_copy(dst: *mut c_void, src: *const c_void, size: usize) -> hsa_status_t;
    /// Changes the owner of coarse-grained memory.
    37 fn hsa_memory_assign_agent(
        ptr: *mut c_void,
        agent: hsa_agent_t,
        access: hsa_access_permission_t,
    ) -> hsa_status_t;
    /// Makes a signal. No consumers means that anybody may wait on it.
    38 fn hsa_signal_create(
        initial_value: hsa_signal_value_t,
        num_consumers: u32,
        consumers: *const hsa_agent_t,
        signal: *mut hsa_signal_t,
    ) -> hsa_status_t;
    /// Destroys a signal. Nobody may use it any more: no packet, no copy, no handler.
    39 fn hsa_signal_destroy(signal: hsa_signal_t) -> hsa_status_t;
    /// Loads a signal, relaxed order.
    40 fn hsa_signal_load_relaxed(signal: hsa_signal_t) -> hsa_signal_value_t;
    /// Loads a signal, acquire order.
    41 fn hsa_signal_load_scacquire(signal: hsa_signal_t) -> hsa_signal_value_t;
    /// Stores a signal, relaxed order; on a doorbell it announces packets.
    42 fn hsa_signal_store_relaxed(signal: hsa_signal_t, value: hsa_signal_value_t);
    /// Stores a signal, release order; on a doorbell it announces packets.
    43 fn hsa_signal_store_screlease(signal: hsa_signal_t, value: hsa_signal_value_t);
    /// Waits until the condition holds or the time, in ticks of the system clock, is over; may return
    /// earlier. Returns the value seen last. Relaxed order.
    44 fn hsa_signal_wait_relaxed(
        signal: hsa_signal_t,
        condition: hsa_signal_condition_t,
        compare_value: hsa_signal_value_t,
        timeout_hint: u64,
        wait_state_hint: hsa_wait_state_t,
    ) -> hsa_signal_value_t;
    /// Waits until the condition holds or the time, in ticks of the system clock, is over; may return
    /// earlier. Returns the value seen last. Acquire order.
    45 fn hsa_signal_wait_scacquire(
        signal: hsa_signal_t,
        condition: hsa_signal_condition_t,
        compare_value: hsa_signal_value_t,
        timeout_hint: u64,
        wait_state_hint: hsa_wait_state_t,
    ) -> hsa_signal_value_t;
    /// Combines a signal with `value` by AND, relaxed order.
    46 fn hsa_signal_and_relaxed(signal: hsa_signal_t, value: hsa_signal_value_t);
    /// Combines a signal with `value` by AND, acquire order.
    47 fn hsa_signal_and_scacquire(signal: hsa_signal_t, value: hsa_signal_value_t);
    /// Combines a signal with `value` by AND, release order.
    48 fn hsa_signal_and_screlease(signal: hsa_signal_t, value: hsa_signal_value_t);
    /// Combines a signal with `value` by AND, acquire and release order.
    49 fn hsa_signal_and_scacq_screl(signal: hsa_signal_t, value: hsa_signal_value_t);
    /// Combines a signal with `value` by OR, relaxed order.
    50 fn hsa_signal_or_relaxed(signal: hsa_signal_t, value: hsa_signal_value_t);
    /// Combines a signal with `value` by OR, acquire order.
    51 fn hsa_signal_or_scacquire(signal: hsa_signal_t, value: hsa_signal_value_t);
    /// Combines a signal with `value` by OR, release order.
    52 fn hsa_signal_or_screlease(signal: hsa_signal_t, value: hsa_signal_value_t);
    /// Combines a signal with `value` by OR, acquire and release order.
    53 fn hsa_signal_or_scacq_screl(signal: hsa_signal_t, value: hsa_signal_value_t);
    /// Combines a signal with `value` by XOR, relaxed order.
    54 fn hsa_signal_xor_relaxed(signal: hsa_signal_t, value: hsa_signal_value_t);
    /// Combines a signal with `value` by XOR, acquire order.
    55 fn hsa_signal_xor_scacquire(signal: hsa_signal_t, value: hsa_signal_value_t);
    /// Combines a signal with `value` by XOR, release order.
    56 fn hsa_signal_xor_screlease(signal: hsa_signal_t, value: hsa_signal_value_t);
    /// Combines a signal with `value` by XOR, acquire and release order.
    57 fn hsa_signal_xor_scacq_screl(signal: hsa_signal_t, value: hsa_signal_value_t);
    /// Replaces a signal by `value`; returns what it was. Relaxed order.
    58 fn hsa_signal_exchange_relaxed(
        signal: hsa_signal_t,
        value: hsa_signal_value_t,
    ) -> hsa_signal_value_t;
    /// Replaces a signal by `value`; returns what it was. Acquire order.
    59 fn hsa_signal_exchange_scacquire(
        signal: hsa_signal_t,
        value: hsa_signal_value_t,
    ) -> hsa_signal_value_t;
    /// Replaces a signal by `value`; returns what it was. Release order.
    60 fn hsa_signal_exchange_screlease(
        signal: hsa_signal_t,
        value: hsa_signal_value_t,
    ) -> hsa_signal_value_t;
    /// Replaces a signal by `value`; returns what it was. Acquire and release order.
    61 fn hsa_signal_exchange_scacq_screl(
        signal: hsa_signal_t,
        value: hsa_signal_value_t,
    ) -> hsa_signal_value_t;
    /// Adds to a signal, relaxed order.
    62 fn hsa_signal_add_relaxed(signal: hsa_signal_t, value: hsa_signal_value_t);
    /// Adds to a signal, acquire order.
    63 fn hsa_signal_add_scacquire(signal: hsa_signal_t, value: hsa_signal_value_t);
    /// Adds to a signal, release order.
    64 fn hsa_signal_add_screlease(signal: hsa_signal_t, value: hsa_signal_value_t);
    /// Adds to a signal, acquire and release order.
    65 fn hsa_signal_add_scacq_screl(signal: hsa_signal_t, value: hsa_signal_value_t);
    /// Subtracts from a signal, relaxed order.
    66 fn hsa_signal_subtract_relaxed(signal: hsa_signal_t, value: hsa_signal_value_t);
    /// Subtracts from a signal, acquire order.
    67 fn hsa_signal_subtract_scacquire(signal: hsa_signal_t, value: hsa_signal_value_t);
    /// Subtracts from a signal, release order.
    68 fn hsa_signal_subtract_screlease(signal: hsa_signal_t, value: hsa_signal_value_t);
    /// Subtracts from a signal, acquire and release order.
    69 fn hsa_signal_subtract_scacq_screl(signal: hsa_signal_t, value: hsa_signal_value_t);
    /// Replaces a signal by `value` if it is `expected`; returns what it was. Relaxed order.
    70 fn hsa_signal_cas_relaxed(
        signal: hsa_signal_t,
        expected: hsa_signal_value_t,
        value: hsa_signal_value_t,
    ) -> hsa_signal_value_t;
    /// Replaces a signal by `value` if it is `expected`; returns what it was. Acquire order.
    71 fn hsa_signal_cas_scacquire(
        signal: hsa_signal_t,
        expected: hsa_signal_value_t,
        value: hsa_signal_value_t,
    ) -> hsa_signal_value_t;
    /// Replaces a signal by `value` if it is `expected`; returns what it was. Release order.
    72 fn hsa_signal_cas_screlease(
        signal: hsa_signal_t,
        expected: hsa_signal_value_t,
        value: hsa_signal_value_t,
    ) -> hsa_signal_value_t;
    /// Replaces a signal by `value` if it is `expected`; returns what it was. Acquire and release order.
    73 fn hsa_signal_cas_scacq_screl(
        signal: hsa_signal_t,
        expected: hsa_signal_value_t,
        value: hsa_signal_value_t,
    ) -> hsa_signal_value_t;
    /// Finds an instruction set by name.
    74 fn hsa_isa_from_name(name: *const c_char, isa: *mut hsa_isa_t) -> hsa_status_t;
    /// Asks about an instruction set. Deprecated.
    75 fn hsa_isa_get_info(
        isa: hsa_isa_t,
        attribute: hsa_isa_info_t,
        index: u32,
        value: *mut c_void,
    ) -> hsa_status_t;
    /// Asks whether code for one instruction set runs on another. Deprecated.
    76 fn hsa_isa_compatible(
        code_object_isa: hsa_isa_t,
        agent_isa: hsa_isa_t,
        result: *mut bool,
    ) -> hsa_status_t;
    /// Writes a code object to memory that the callback allocates. Deprecated.
    77 fn hsa_code_object_serialize(
        code_object: hsa_code_object_t,
        alloc_callback: hsa_alloc_callback,
        callback_data: hsa_callback_data_t,
        options: *const c_char,
        serialized_code_object: *mut *mut c_void,
        serialized_code_object_size: *mut usize,
    ) -> hsa_status_t;
    /// Reads a code object from memory. Deprecated.
    78 fn hsa_code_object_deserialize(
        serialized_code_object: *mut c_void,
        serialized_code_object_size: usize,
        options: *const c_char,
        code_object: *mut hsa_code_object_t,
    ) -> hsa_status_t;
    /// Destroys a code object. Deprecated.
    79 fn hsa_code_object_destroy(code_object: hsa_code_object_t) -> hsa_status_t;
    /// Asks about a code object. Deprecated.
    80 fn hsa_code_object_get_info(
        code_object: hsa_code_object_t,
        attribute: hsa_code_object_info_t,
        value: *mut c_void,
    ) -> hsa_status_t;
    /// Finds a symbol of a code object. Deprecated.
    81 fn hsa_code_object_get_symbol(
        code_object: hsa_code_object_t,
        symbol_name: *const c_char,
        symbol: *mut hsa_code_symbol_t,
    ) -> hsa_status_t;
    /// Asks about a symbol of a code object. Deprecated.
    82 fn hsa_code_symbol_get_info(
        code_symbol: hsa_code_symbol_t,
        attribute: hsa_code_symbol_info_t,
        value: *mut c_void,
    ) -> hsa_status_t;
    /// Calls back with every symbol of a code object. Deprecated.
    83 fn hsa_code_object_iterate_symbols(
        code_object: hsa_code_object_t,
        callback: hsa_code_symbol_callback,
        data: *mut c_void,
    ) -> hsa_status_t;
    /// Makes an empty executable. Deprecated.
    84 fn hsa_executable_create(
        profile: hsa_profile_t,
        executable_state: hsa_executable_state_t,
        options: *const c_char,
        executable: *mut hsa_executable_t,
    ) -> hsa_status_t;
    /// Destroys an executable. None of its kernels may be running.
    85 fn hsa_executable_destroy(executable: hsa_executable_t) -> hsa_status_t;
    /// Loads a code object. Deprecated.
    86 fn hsa_executable_load_code_object(
        executable: hsa_executable_t,
        agent: hsa_agent_t,
        code_object: hsa_code_object_t,
        options: *const c_char,
    ) -> hsa_status_t;
    /// Links an executable; from then on its symbols have addresses.
    87 fn hsa_executable_freeze(
        executable: hsa_executable_t,
        options: *const c_char,
    ) -> hsa_status_t;
    /// Asks about an executable.
    88 fn hsa_executable_get_info(
        executable: hsa_executable_t,
        attribute: hsa_executable_info_t,
        value: *mut c_void,
    ) -> hsa_status_t;
    /// Defines a variable that all agents share.
    89 fn hsa_executable_global_variable_define(
        executable: hsa_executable_t,
        variable_name: *const c_char,
        address: *mut c_void,
    ) -> hsa_status_t;
    /// Defines a variable of one agent.
    90 fn hsa_executable_agent_global_variable_define(
        executable: hsa_executable_t,
        agent: hsa_agent_t,
        variable_name: *const c_char,
        address: *mut c_void,
    ) -> hsa_status_t;
    /// Defines a constant of one agent.
    91 fn hsa_executable_readonly_variable_define(
        executable: hsa_executable_t,
        agent: hsa_agent_t,
        variable_name: *const c_char,
        address: *mut c_void,
    ) -> hsa_status_t;
    /// Checks an executable; zero is good.
    92 fn hsa_executable_validate(executable: hsa_executable_t, result: *mut u32) -> hsa_status_t;
    /// Finds a symbol. Deprecated.
    93 fn hsa_executable_get_symbol(
        executable: hsa_executable_t,
        module_name: *const c_char,
        symbol_name: *const c_char,
        agent: hsa_agent_t,
        call_convention: i32,
        symbol: *mut hsa_executable_symbol_t,
    ) -> hsa_status_t;
    /// Asks about a symbol.
    94 fn hsa_executable_symbol_get_info(
        executable_symbol: hsa_executable_symbol_t,
        attribute: hsa_executable_symbol_info_t,
        value: *mut c_void,
    ) -> hsa_status_t;
    /// Calls back with every symbol. Deprecated.
    95 fn hsa_executable_iterate_symbols(
        executable: hsa_executable_t,
        callback: hsa_executable_symbol_callback,
        data: *mut c_void,
    ) -> hsa_status_t;
    /// The name and description of a status; works without `hsa_init`.
    96 fn hsa_status_string(
        status: hsa_status_t,
        status_string: *mut *const c_char,
    ) -> hsa_status_t;
    /// The name of an extension.
    97 fn hsa_extension_get_name(extension: u16, name: *mut *const c_char) -> hsa_status_t;
    /// Asks for the highest minor version of an extension that the system has.
    98 fn hsa_system_major_extension_supported(
        extension: u16,
        version_major: u16,
        version_minor: *mut u16,
        result: *mut bool,
    ) -> hsa_status_t;
    /// Fills in at most `table_length` bytes of an extension's function table.
    99 fn hsa_system_get_major_extension_table(
        extension: u16,
        version_major: u16,
        table_length: usize,
        table: *mut c_void,
    ) -> hsa_status_t;
    /// Asks for the highest minor version of an extension that an agent has.
    100 fn hsa_agent_major_extension_supported(
        extension: u16,
        agent: hsa_agent_t,
        version_major: u16,
        version_minor: *mut u16,
        result: *mut bool,
    ) -> hsa_status_t;
    /// Asks about a cache.
    101 fn hsa_cache_get_info(
        cache: hsa_cache_t,
        attribute: hsa_cache_info_t,
        value: *mut c_void,
    ) -> hsa_status_t;
    /// Calls back with every cache of an agent.
    102 fn hsa_agent_iterate_caches(
        agent: hsa_agent_t,
        callback: hsa_cache_callback,
        data: *mut c_void,
    ) -> hsa_status_t;
    /// Stores a signal without waking who waits on it, relaxed order.
    103 fn hsa_signal_silent_store_relaxed(signal: hsa_signal_t, value: hsa_signal_value_t);
    /// Stores a signal without waking who waits on it, release order.
    104 fn hsa_signal_silent_store_screlease(signal: hsa_signal_t, value: hsa_signal_value_t);
    /// Makes a group of signals.
    105 fn hsa_signal_group_create(
        num_signals: u32,
        signals: *const hsa_signal_t,
        num_consumers: u32,
        consumers: *const hsa_agent_t,
        signal_group: *mut hsa_signal_group_t,
    ) -> hsa_status_t;
    /// Destroys a group of signals, not the signals.
    106 fn hsa_signal_group_destroy(signal_group: hsa_signal_group_t) -> hsa_status_t;
    /// Waits until the condition of one signal of a group holds, acquire order.
    107 fn hsa_signal_group_wait_any_scacquire(
        signal_group: hsa_signal_group_t,
        conditions: *const hsa_signal_condition_t,
        compare_values: *const hsa_signal_value_t,
        wait_state_hint: hsa_wait_state_t,
        signal: *mut hsa_signal_t,
        value: *mut hsa_signal_value_t,
    ) -> hsa_status_t;
    /// Waits until the condition of one signal of a group holds, relaxed order.
    108 fn hsa_signal_group_wait_any_relaxed(
        signal_group: hsa_signal_group_t,
        conditions: *const hsa_signal_condition_t,
        compare_values: *const hsa_signal_value_t,
        wait_state_hint: hsa_wait_state_t,
        signal: *mut hsa_signal_t,
        value: *mut hsa_signal_value_t,
    ) -> hsa_status_t;
    /// Calls back with every instruction set of an agent, the most specific first.
    109 fn hsa_agent_iterate_isas(
        agent: hsa_agent_t,
        callback: hsa_isa_callback,
        data: *mut c_void,
    ) -> hsa_status_t;
    /// Asks about an instruction set.
    110 fn hsa_isa_get_info_alt(
        isa: hsa_isa_t,
        attribute: hsa_isa_info_t,
        value: *mut c_void,
    ) -> hsa_status_t;
    /// Asks which exception policies an instruction set has, in bits.
    111 fn hsa_isa_get_exception_policies(
        isa: hsa_isa_t,
        profile: hsa_profile_t,
        mask: *mut u16,
    ) -> hsa_status_t;
    /// Asks how an instruction set rounds fused operations.
    112 fn hsa_isa_get_round_method(
        isa: hsa_isa_t,
        fp_type: hsa_fp_type_t,
        flush_mode: hsa_flush_mode_t,
        round_method: *mut hsa_round_method_t,
    ) -> hsa_status_t;
    /// Asks about a wavefront size.
    113 fn hsa_wavefront_get_info(
        wavefront: hsa_wavefront_t,
        attribute: hsa_wavefront_info_t,
        value: *mut c_void,
    ) -> hsa_status_t;
    /// Calls back with every wavefront size of an instruction set.
    114 fn hsa_isa_iterate_wavefronts(
        isa: hsa_isa_t,
        callback: hsa_wavefront_callback,
        data: *mut c_void,
    ) -> hsa_status_t;
    /// Finds a symbol of a code object. Deprecated.
    115 fn hsa_code_object_get_symbol_from_name(
        code_object: hsa_code_object_t,
        module_name: *const c_char,
        symbol_name: *const c_char,
        symbol: *mut hsa_code_symbol_t,
    ) -> hsa_status_t;
    /// Makes a code object reader for a file.
    116 fn hsa_code_object_reader_create_from_file(
        file: hsa_file_t,
        code_object_reader: *mut hsa_code_object_reader_t,
    ) -> hsa_status_t;
    /// Makes a code object reader for memory. The memory must outlive the reader and every executable
    /// loaded through it.
    117 fn hsa_code_object_reader_create_from_memory(
        code_object: *const c_void,
        size: usize,
        code_object_reader: *mut hsa_code_object_reader_t,
    ) -> hsa_status_t;
    /// Destroys a code object reader.
    118 fn hsa_code_object_reader_destroy(
        code_object_reader: hsa_code_object_reader_t,
    ) -> hsa_status_t;
    /// Makes an empty executable.
    119 fn hsa_executable_create_alt(
        profile: hsa_profile_t,
        default_float_rounding_mode: hsa_default_float_rounding_mode_t,
        options: *const c_char,
        executable: *mut hsa_executable_t,
    ) -> hsa_status_t;
    /// Loads a code object for all agents.
    120 fn hsa_executable_load_program_code_object(
        executable: hsa_executable_t,
        code_object_reader: hsa_code_object_reader_t,
        options: *const c_char,
        loaded_code_object: *mut hsa_loaded_code_object_t,
    ) -> hsa_status_t;
    /// Loads a code object for one agent.
    121 fn hsa_executable_load_agent_code_object(
        executable: hsa_executable_t,
        agent: hsa_agent_t,
        code_object_reader: hsa_code_object_reader_t,
        options: *const c_char,
        loaded_code_object: *mut hsa_loaded_code_object_t,
    ) -> hsa_status_t;
    /// Checks an executable; zero is good.
    122 fn hsa_executable_validate_alt(
        executable: hsa_executable_t,
        options: *const c_char,
        result: *mut u32,
    ) -> hsa_status_t;
    /// Finds a symbol, such as `name.kd` for a kernel; the agent is null for what all agents share.
    123 fn hsa_executable_get_symbol_by_name(
        executable: hsa_executable_t,
        symbol_name: *const c_char,
        agent: *const hsa_agent_t,
        symbol: *mut hsa_executable_symbol_t,
    ) -> hsa_status_t;
    /// Calls back with every symbol of one agent.
    124 fn hsa_executable_iterate_agent_symbols(
        executable: hsa_executable_t,
        agent: hsa_agent_t,
        callback: hsa_agent_symbol_callback,
        data: *mut c_void,
    ) -> hsa_status_t;
    /// Calls back with every symbol that all agents share.
    125 fn hsa_executable_iterate_program_symbols(
        executable: hsa_executable_t,
        callback: hsa_executable_symbol_callback,
        data: *mut c_void,
    ) -> hsa_status_t;
}
