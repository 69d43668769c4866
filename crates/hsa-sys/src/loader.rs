//! Types and constants of `hsa_ven_amd_loader.h`: what is loaded, and where from.
//!
//! The functions are not exported. Ask for the newest table with a zeroed buffer: an older runtime
//! fills in fewer entries and leaves the rest null.
//!
#![cfg_attr(feature = "loading", doc = "```no_run")]
#![cfg_attr(not(feature = "loading"), doc = "```text")]
//! use hsa_sys::{Library, function, hsa_extension_t, hsa_status_t, hsa_ven_amd_loader_1_03_pfn_t};
//!
//! // SAFETY: the library found by these names on this machine is AMD's runtime.
//! let library = unsafe { Library::open()? };
//! let get_table = library.get(function::hsa_system_get_major_extension_table)?;
//! let mut table = hsa_ven_amd_loader_1_03_pfn_t::default();
//! // SAFETY: the runtime writes at most the length given, which is the table's.
//! let status = unsafe {
//!     get_table(
//!         hsa_extension_t::AMD_LOADER.0 as u16,
//!         1,
//!         size_of_val(&table),
//!         (&raw mut table).cast(),
//!     )
//! };
//! assert_eq!(status, hsa_status_t::SUCCESS);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use core::ffi::c_void;

use crate::{function, hsa_agent_t, hsa_executable_t};

c_enum! {
    /// Where a code object's bytes are.
    hsa_ven_amd_loader_code_object_storage_type_t: u32;
    BASE "HSA_VEN_AMD_LOADER_CODE_OBJECT_STORAGE_TYPE_" {
        /// Nowhere.
        NONE = 0;
        /// In a file.
        FILE = 1;
        /// In memory.
        MEMORY = 2;
    }
}

/// A loaded segment and the code object bytes it came from.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hsa_ven_amd_loader_segment_descriptor_t {
    /// Whom it was loaded for; zero for segments that all agents share.
    pub agent: hsa_agent_t,
    /// What it belongs to.
    pub executable: hsa_executable_t,
    /// Where the code object is.
    pub code_object_storage_type: hsa_ven_amd_loader_code_object_storage_type_t,
    /// Its address, or a file name.
    pub code_object_storage_base: *const c_void,
    /// Its bytes, or the name's.
    pub code_object_storage_size: usize,
    /// Where the segment's bytes start in it.
    pub code_object_storage_offset: usize,
    /// Device address.
    pub segment_base: *const c_void,
    /// Bytes.
    pub segment_size: usize,
}

c_enum! {
    /// Whom a code object was loaded for.
    hsa_ven_amd_loader_loaded_code_object_kind_t: u32;
    BASE "HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_KIND_" {
        /// All agents.
        PROGRAM = 1;
        /// One agent.
        AGENT = 2;
    }
}

c_enum! {
    /// Attribute of `hsa_ven_amd_loader_loaded_code_object_get_info`.
    hsa_ven_amd_loader_loaded_code_object_info_t: u32;
    BASE "HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_" {
        /// [`hsa_executable_t`].
        EXECUTABLE = 1;
        /// [`hsa_ven_amd_loader_loaded_code_object_kind_t`].
        KIND = 2;
        /// [`hsa_agent_t`].
        AGENT = 3;
        /// [`hsa_ven_amd_loader_code_object_storage_type_t`].
        CODE_OBJECT_STORAGE_TYPE = 4;
        /// `u64`: address of the bytes.
        CODE_OBJECT_STORAGE_MEMORY_BASE = 5;
        /// `u64`: number of bytes.
        CODE_OBJECT_STORAGE_MEMORY_SIZE = 6;
        /// `c_int`: file descriptor.
        CODE_OBJECT_STORAGE_FILE = 7;
        /// `i64`: device address less address in the code object.
        LOAD_DELTA = 8;
        /// `u64`: first device address.
        LOAD_BASE = 9;
        /// `u64`: bytes on the device.
        LOAD_SIZE = 10;
        /// `u32`: length of the URI.
        URI_LENGTH = 11;
        /// `[c_char]`: URI, not NUL-terminated.
        URI = 12;
    }
}

/// The extension's functions in version 1.0; a prefix of all later versions.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "each field is the function of that name")]
pub struct hsa_ven_amd_loader_1_00_pfn_t {
    pub hsa_ven_amd_loader_query_host_address:
        Option<function::hsa_ven_amd_loader_query_host_address>,
    pub hsa_ven_amd_loader_query_segment_descriptors:
        Option<function::hsa_ven_amd_loader_query_segment_descriptors>,
    pub hsa_ven_amd_loader_query_executable: Option<function::hsa_ven_amd_loader_query_executable>,
}

/// The extension's functions in version 1.1; a prefix of all later versions.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "each field is the function of that name")]
pub struct hsa_ven_amd_loader_1_01_pfn_t {
    pub hsa_ven_amd_loader_query_host_address:
        Option<function::hsa_ven_amd_loader_query_host_address>,
    pub hsa_ven_amd_loader_query_segment_descriptors:
        Option<function::hsa_ven_amd_loader_query_segment_descriptors>,
    pub hsa_ven_amd_loader_query_executable: Option<function::hsa_ven_amd_loader_query_executable>,
    pub hsa_ven_amd_loader_executable_iterate_loaded_code_objects:
        Option<function::hsa_ven_amd_loader_executable_iterate_loaded_code_objects>,
    pub hsa_ven_amd_loader_loaded_code_object_get_info:
        Option<function::hsa_ven_amd_loader_loaded_code_object_get_info>,
}

/// The extension's functions in version 1.2; a prefix of all later versions.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "each field is the function of that name")]
pub struct hsa_ven_amd_loader_1_02_pfn_t {
    pub hsa_ven_amd_loader_query_host_address:
        Option<function::hsa_ven_amd_loader_query_host_address>,
    pub hsa_ven_amd_loader_query_segment_descriptors:
        Option<function::hsa_ven_amd_loader_query_segment_descriptors>,
    pub hsa_ven_amd_loader_query_executable: Option<function::hsa_ven_amd_loader_query_executable>,
    pub hsa_ven_amd_loader_executable_iterate_loaded_code_objects:
        Option<function::hsa_ven_amd_loader_executable_iterate_loaded_code_objects>,
    pub hsa_ven_amd_loader_loaded_code_object_get_info:
        Option<function::hsa_ven_amd_loader_loaded_code_object_get_info>,
    pub hsa_ven_amd_loader_code_object_reader_create_from_file_with_offset_size:
        Option<function::hsa_ven_amd_loader_code_object_reader_create_from_file_with_offset_size>,
}

/// The extension's functions in version 1.3; a prefix of all later versions.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "each field is the function of that name")]
pub struct hsa_ven_amd_loader_1_03_pfn_t {
    pub hsa_ven_amd_loader_query_host_address:
        Option<function::hsa_ven_amd_loader_query_host_address>,
    pub hsa_ven_amd_loader_query_segment_descriptors:
        Option<function::hsa_ven_amd_loader_query_segment_descriptors>,
    pub hsa_ven_amd_loader_query_executable: Option<function::hsa_ven_amd_loader_query_executable>,
    pub hsa_ven_amd_loader_executable_iterate_loaded_code_objects:
        Option<function::hsa_ven_amd_loader_executable_iterate_loaded_code_objects>,
    pub hsa_ven_amd_loader_loaded_code_object_get_info:
        Option<function::hsa_ven_amd_loader_loaded_code_object_get_info>,
    pub hsa_ven_amd_loader_code_object_reader_create_from_file_with_offset_size:
        Option<function::hsa_ven_amd_loader_code_object_reader_create_from_file_with_offset_size>,
    pub hsa_ven_amd_loader_iterate_executables:
        Option<function::hsa_ven_amd_loader_iterate_executables>,
}

layout! {
    LAYOUTS;
    BASE hsa_ven_amd_loader_segment_descriptor_t: 64, 8 {
        agent: 0, executable: 8, code_object_storage_type: 16, code_object_storage_base: 24,
        code_object_storage_size: 32, code_object_storage_offset: 40, segment_base: 48,
        segment_size: 56,
    }
    BASE hsa_ven_amd_loader_1_00_pfn_t: 24, 8 {
        hsa_ven_amd_loader_query_host_address: 0,
        hsa_ven_amd_loader_query_segment_descriptors: 8,
        hsa_ven_amd_loader_query_executable: 16,
    }
    BASE hsa_ven_amd_loader_1_01_pfn_t: 40, 8 {
        hsa_ven_amd_loader_query_host_address: 0,
        hsa_ven_amd_loader_query_segment_descriptors: 8,
        hsa_ven_amd_loader_query_executable: 16,
        hsa_ven_amd_loader_executable_iterate_loaded_code_objects: 24,
        hsa_ven_amd_loader_loaded_code_object_get_info: 32,
    }
    BASE hsa_ven_amd_loader_1_02_pfn_t: 48, 8 {
        hsa_ven_amd_loader_query_host_address: 0,
        hsa_ven_amd_loader_query_segment_descriptors: 8,
        hsa_ven_amd_loader_query_executable: 16,
        hsa_ven_amd_loader_executable_iterate_loaded_code_objects: 24,
        hsa_ven_amd_loader_loaded_code_object_get_info: 32,
        hsa_ven_amd_loader_code_object_reader_create_from_file_with_offset_size: 40,
    }
    BASE hsa_ven_amd_loader_1_03_pfn_t: 56, 8 {
        hsa_ven_amd_loader_query_host_address: 0,
        hsa_ven_amd_loader_query_segment_descriptors: 8,
        hsa_ven_amd_loader_query_executable: 16,
        hsa_ven_amd_loader_executable_iterate_loaded_code_objects: 24,
        hsa_ven_amd_loader_loaded_code_object_get_info: 32,
        hsa_ven_amd_loader_code_object_reader_create_from_file_with_offset_size: 40,
        hsa_ven_amd_loader_iterate_executables: 48,
    }
}

enumerations! {
    hsa_ven_amd_loader_code_object_storage_type_t,
    hsa_ven_amd_loader_loaded_code_object_kind_t,
    hsa_ven_amd_loader_loaded_code_object_info_t,
}
