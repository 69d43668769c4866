//! Functions of `hsa_ven_amd_loader.h`: entries of [`hsa_ven_amd_loader_1_03_pfn_t`].

use core::ffi::c_void;

use crate::*;

functions! {
    LOADER: extension, "In the loader extension's table", since 5, 2;

    /// The host's copy of what was loaded to a device address.
    fn hsa_ven_amd_loader_query_host_address(
        device_address: *const c_void,
        host_address: *mut *const c_void,
    ) -> hsa_status_t;
    /// All loaded segments; with a null list, how many.
    fn hsa_ven_amd_loader_query_segment_descriptors(
        segment_descriptors: *mut hsa_ven_amd_loader_segment_descriptor_t,
        num_segment_descriptors: *mut usize,
    ) -> hsa_status_t;
    /// The executable that a device address belongs to.
    fn hsa_ven_amd_loader_query_executable(
        device_address: *const c_void,
        executable: *mut hsa_executable_t,
    ) -> hsa_status_t;
    /// Calls back with every code object of an executable.
    fn hsa_ven_amd_loader_executable_iterate_loaded_code_objects(
        executable: hsa_executable_t,
        callback: hsa_ven_amd_loader_loaded_code_object_callback,
        data: *mut c_void,
    ) -> hsa_status_t;
    /// Asks about a loaded code object.
    fn hsa_ven_amd_loader_loaded_code_object_get_info(
        loaded_code_object: hsa_loaded_code_object_t,
        attribute: hsa_ven_amd_loader_loaded_code_object_info_t,
        value: *mut c_void,
    ) -> hsa_status_t;
    /// Makes a code object reader for part of a file.
    fn hsa_ven_amd_loader_code_object_reader_create_from_file_with_offset_size(
        file: hsa_file_t,
        offset: usize,
        size: usize,
        code_object_reader: *mut hsa_code_object_reader_t,
    ) -> hsa_status_t;
    /// Calls back with every executable.
    fn hsa_ven_amd_loader_iterate_executables(
        callback: hsa_ven_amd_loader_executable_callback,
        data: *mut c_void,
    ) -> hsa_status_t;
}
