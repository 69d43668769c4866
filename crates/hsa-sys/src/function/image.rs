//! Functions of `hsa_ext_finalize.h` and `hsa_ext_image.h`, in tables of their own.

use core::ffi::{c_char, c_void};

use crate::*;

functions! {
    FINALIZER: finalizer, "Finalizer table, slot", since 5, 2;

    /// Makes an empty program.
    1 fn hsa_ext_program_create(
        machine_model: hsa_machine_model_t,
        profile: hsa_profile_t,
        default_float_rounding_mode: hsa_default_float_rounding_mode_t,
        options: *const c_char,
        program: *mut hsa_ext_program_t,
    ) -> hsa_status_t;
    /// Destroys a program.
    2 fn hsa_ext_program_destroy(program: hsa_ext_program_t) -> hsa_status_t;
    /// Adds a module.
    3 fn hsa_ext_program_add_module(
        program: hsa_ext_program_t,
        module: hsa_ext_module_t,
    ) -> hsa_status_t;
    /// Calls back with every module.
    4 fn hsa_ext_program_iterate_modules(
        program: hsa_ext_program_t,
        callback: hsa_ext_module_callback,
        data: *mut c_void,
    ) -> hsa_status_t;
    /// Asks about a program.
    5 fn hsa_ext_program_get_info(
        program: hsa_ext_program_t,
        attribute: hsa_ext_program_info_t,
        value: *mut c_void,
    ) -> hsa_status_t;
    /// Makes a code object of a program.
    6 fn hsa_ext_program_finalize(
        program: hsa_ext_program_t,
        isa: hsa_isa_t,
        call_convention: i32,
        control_directives: hsa_ext_control_directives_t,
        options: *const c_char,
        code_object_type: hsa_code_object_type_t,
        code_object: *mut hsa_code_object_t,
    ) -> hsa_status_t;
}

functions! {
    IMAGE: image, "Image table, slot", since 5, 2;

    /// Asks what can be done with images of a format.
    1 fn hsa_ext_image_get_capability(
        agent: hsa_agent_t,
        geometry: hsa_ext_image_geometry_t,
        image_format: *const hsa_ext_image_format_t,
        capability_mask: *mut u32,
    ) -> hsa_status_t;
    /// Asks what memory an image needs.
    2 fn hsa_ext_image_data_get_info(
        agent: hsa_agent_t,
        image_descriptor: *const hsa_ext_image_descriptor_t,
        access_permission: hsa_access_permission_t,
        image_data_info: *mut hsa_ext_image_data_info_t,
    ) -> hsa_status_t;
    /// Makes an image.
    3 fn hsa_ext_image_create(
        agent: hsa_agent_t,
        image_descriptor: *const hsa_ext_image_descriptor_t,
        image_data: *const c_void,
        access_permission: hsa_access_permission_t,
        image: *mut hsa_ext_image_t,
    ) -> hsa_status_t;
    /// Copies memory to an image.
    4 fn hsa_ext_image_import(
        agent: hsa_agent_t,
        src_memory: *const c_void,
        src_row_pitch: usize,
        src_slice_pitch: usize,
        dst_image: hsa_ext_image_t,
        image_region: *const hsa_ext_image_region_t,
    ) -> hsa_status_t;
    /// Copies an image to memory.
    5 fn hsa_ext_image_export(
        agent: hsa_agent_t,
        src_image: hsa_ext_image_t,
        dst_memory: *mut c_void,
        dst_row_pitch: usize,
        dst_slice_pitch: usize,
        image_region: *const hsa_ext_image_region_t,
    ) -> hsa_status_t;
    /// Copies an image to an image.
    6 fn hsa_ext_image_copy(
        agent: hsa_agent_t,
        src_image: hsa_ext_image_t,
        src_offset: *const hsa_dim3_t,
        dst_image: hsa_ext_image_t,
        dst_offset: *const hsa_dim3_t,
        range: *const hsa_dim3_t,
    ) -> hsa_status_t;
    /// Sets a region of an image to one value.
    7 fn hsa_ext_image_clear(
        agent: hsa_agent_t,
        image: hsa_ext_image_t,
        data: *const c_void,
        image_region: *const hsa_ext_image_region_t,
    ) -> hsa_status_t;
    /// Destroys an image, not its data.
    8 fn hsa_ext_image_destroy(agent: hsa_agent_t, image: hsa_ext_image_t) -> hsa_status_t;
    /// Makes a sampler.
    9 fn hsa_ext_sampler_create(
        agent: hsa_agent_t,
        sampler_descriptor: *const hsa_ext_sampler_descriptor_t,
        sampler: *mut hsa_ext_sampler_t,
    ) -> hsa_status_t;
    /// Destroys a sampler.
    10 fn hsa_ext_sampler_destroy(agent: hsa_agent_t, sampler: hsa_ext_sampler_t) -> hsa_status_t;
    /// Asks what can be done with images of a format and layout.
    11 fn hsa_ext_image_get_capability_with_layout(
        agent: hsa_agent_t,
        geometry: hsa_ext_image_geometry_t,
        image_format: *const hsa_ext_image_format_t,
        image_data_layout: hsa_ext_image_data_layout_t,
        capability_mask: *mut u32,
    ) -> hsa_status_t;
    /// Asks what memory an image with a layout needs.
    12 fn hsa_ext_image_data_get_info_with_layout(
        agent: hsa_agent_t,
        image_descriptor: *const hsa_ext_image_descriptor_t,
        access_permission: hsa_access_permission_t,
        image_data_layout: hsa_ext_image_data_layout_t,
        image_data_row_pitch: usize,
        image_data_slice_pitch: usize,
        image_data_info: *mut hsa_ext_image_data_info_t,
    ) -> hsa_status_t;
    /// Makes an image with a layout.
    13 fn hsa_ext_image_create_with_layout(
        agent: hsa_agent_t,
        image_descriptor: *const hsa_ext_image_descriptor_t,
        image_data: *const c_void,
        access_permission: hsa_access_permission_t,
        image_data_layout: hsa_ext_image_data_layout_t,
        image_data_row_pitch: usize,
        image_data_slice_pitch: usize,
        image: *mut hsa_ext_image_t,
    ) -> hsa_status_t;
}
