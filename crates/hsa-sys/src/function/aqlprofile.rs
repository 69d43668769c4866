//! Functions of `hsa_ven_amd_aqlprofile.h` and `aql_profile_v2.h`; a library of their own.

use core::ffi::{c_char, c_void};

use crate::*;

functions! {
    V1: aqlprofile, "In `libhsa-amd-aqlprofile64.so`", since 5, 2;

    /// Major version of the library.
    fn hsa_ven_amd_aqlprofile_version_major() -> u32;
    /// Minor version of the library.
    fn hsa_ven_amd_aqlprofile_version_minor() -> u32;
    /// Asks whether an agent has an event.
    fn hsa_ven_amd_aqlprofile_validate_event(
        agent: hsa_agent_t,
        event: *const hsa_ven_amd_aqlprofile_event_t,
        result: *mut bool,
    ) -> hsa_status_t;
    /// Makes the packet that starts a recording; with a null packet, says what buffers it needs.
    fn hsa_ven_amd_aqlprofile_start(
        profile: *mut hsa_ven_amd_aqlprofile_profile_t,
        aql_start_packet: *mut hsa_ext_amd_aql_pm4_packet_t,
    ) -> hsa_status_t;
    /// Makes the packet that stops a recording.
    fn hsa_ven_amd_aqlprofile_stop(
        profile: *const hsa_ven_amd_aqlprofile_profile_t,
        aql_stop_packet: *mut hsa_ext_amd_aql_pm4_packet_t,
    ) -> hsa_status_t;
    /// Makes the packet that reads counters.
    fn hsa_ven_amd_aqlprofile_read(
        profile: *const hsa_ven_amd_aqlprofile_profile_t,
        aql_read_packet: *mut hsa_ext_amd_aql_pm4_packet_t,
    ) -> hsa_status_t;
    /// The commands of a packet for agents before gfx9.
    fn hsa_ven_amd_aqlprofile_legacy_get_pm4(
        aql_packet: *const hsa_ext_amd_aql_pm4_packet_t,
        data: *mut c_void,
    ) -> hsa_status_t;
    /// Asks about a recording or a block.
    fn hsa_ven_amd_aqlprofile_get_info(
        profile: *const hsa_ven_amd_aqlprofile_profile_t,
        attribute: hsa_ven_amd_aqlprofile_info_type_t,
        value: *mut c_void,
    ) -> hsa_status_t;
    /// Calls back with everything recorded.
    fn hsa_ven_amd_aqlprofile_iterate_data(
        profile: *const hsa_ven_amd_aqlprofile_profile_t,
        callback: hsa_ven_amd_aqlprofile_data_callback_t,
        data: *mut c_void,
    ) -> hsa_status_t;
    /// Describes the last error.
    fn hsa_ven_amd_aqlprofile_error_string(str: *mut *const c_char) -> hsa_status_t;
}

functions! {
    V2: aqlprofile, "In `libhsa-amd-aqlprofile64.so`", since 6, 2;

    /// Makes an agent known.
    fn aqlprofile_register_agent(
        agent_id: *mut aqlprofile_agent_handle_t,
        agent_info: *const aqlprofile_agent_info_t,
    ) -> hsa_status_t;
    /// Asks about a set of counters or a block.
    fn aqlprofile_get_pmc_info(
        profile: *const aqlprofile_pmc_profile_t,
        attribute: aqlprofile_pmc_info_type_t,
        value: *mut c_void,
    ) -> hsa_status_t;
    /// Asks whether an agent has an event.
    fn aqlprofile_validate_pmc_event(
        agent: aqlprofile_agent_handle_t,
        event: *const aqlprofile_pmc_event_t,
        result: *mut bool,
    ) -> hsa_status_t;
    /// Makes the packets of a set of counters. The callbacks allocate, free and copy what they need,
    /// until the packets are deleted.
    fn aqlprofile_pmc_create_packets(
        handle: *mut aqlprofile_handle_t,
        packets: *mut aqlprofile_pmc_aql_packets_t,
        profile: aqlprofile_pmc_profile_t,
        alloc_cb: aqlprofile_memory_alloc_callback_t,
        dealloc_cb: aqlprofile_memory_dealloc_callback_t,
        memcpy_cb: aqlprofile_memory_copy_t,
        userdata: *mut c_void,
    ) -> hsa_status_t;
    /// Deletes packets; none of them may be in a queue.
    fn aqlprofile_pmc_delete_packets(handle: aqlprofile_handle_t);
    /// Calls back with every value counted.
    fn aqlprofile_pmc_iterate_data(
        handle: aqlprofile_handle_t,
        callback: aqlprofile_pmc_data_callback_t,
        userdata: *mut c_void,
    ) -> hsa_status_t;
    /// Calls back with the names of coordinates.
    fn aqlprofile_iterate_event_ids(
        callback: aqlprofile_eventname_callback_t,
        user_data: *mut c_void,
    ) -> hsa_status_t;
    /// Calls back with the coordinates of one value.
    fn aqlprofile_iterate_event_coord(
        agent: aqlprofile_agent_handle_t,
        event: aqlprofile_pmc_event_t,
        sample_id: u64,
        callback: aqlprofile_coordinate_callback_t,
        userdata: *mut c_void,
    ) -> hsa_status_t;
}

functions! {
    V2_SINCE_7_0: aqlprofile, "In `libhsa-amd-aqlprofile64.so`", since 7, 0;

    /// Makes an agent known, in a given form of description.
    fn aqlprofile_register_agent_info(
        agent_id: *mut aqlprofile_agent_handle_t,
        agent_info: *const c_void,
        version: aqlprofile_agent_version_t,
    ) -> hsa_status_t;
}
