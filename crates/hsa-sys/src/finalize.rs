//! Types and constants of `hsa_ext_finalize.h`: the HSAIL finalizer.
//!
//! AMD's runtime exports the functions and implements none of them; they are here because they have
//! a table of their own among the API tables.
//!
//! Not here: the binary form of HSAIL (`Brig.h`).

use crate::hsa_dim3_t;

handles! {
    /// HSAIL modules that are finalized together.
    hsa_ext_program_t;
}

/// The header of an HSAIL module.
#[repr(C)]
#[derive(Debug)]
pub struct BrigModuleHeader {
    _opaque: [u8; 0],
}

/// An HSAIL module.
pub type hsa_ext_module_t = *mut BrigModuleHeader;

c_enum! {
    /// Attribute of `hsa_ext_program_get_info`.
    hsa_ext_program_info_t: u32;
    BASE "HSA_EXT_PROGRAM_INFO_" {
        /// [`hsa_machine_model_t`](crate::hsa_machine_model_t).
        MACHINE_MODEL = 0;
        /// [`hsa_profile_t`](crate::hsa_profile_t).
        PROFILE = 1;
        /// [`hsa_default_float_rounding_mode_t`](crate::hsa_default_float_rounding_mode_t).
        DEFAULT_FLOAT_ROUNDING_MODE = 2;
    }
}

c_enum! {
    /// Call convention of finalized code; other values are the instruction set's.
    hsa_ext_finalizer_call_convention_t: i32;
    BASE "HSA_EXT_FINALIZER_CALL_CONVENTION_" {
        /// The finalizer's choice.
        AUTO = -1;
    }
}

/// Promises about the dispatches of a program.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hsa_ext_control_directives_t {
    /// Which of the fields below count; bits.
    pub control_directives_mask: u64,
    /// Exceptions that stop the queue; bits.
    pub break_exceptions_mask: u16,
    /// Exceptions that set a status; bits.
    pub detect_exceptions_mask: u16,
    /// Most bytes of dynamic group memory.
    pub max_dynamic_group_size: u32,
    /// Most work-items of a grid.
    pub max_flat_grid_size: u64,
    /// Most work-items of a workgroup.
    pub max_flat_workgroup_size: u32,
    /// Zero.
    pub reserved1: u32,
    /// Work-items of the grid.
    pub required_grid_size: [u64; 3],
    /// Work-items of a workgroup.
    pub required_workgroup_size: hsa_dim3_t,
    /// Grid dimensions.
    pub required_dim: u8,
    /// Zero.
    pub reserved2: [u8; 75],
}

layout! {
    LAYOUTS;
    BASE hsa_ext_program_t: 8, 8 { handle: 0 }
    BASE hsa_ext_control_directives_t: 144, 8 {
        control_directives_mask: 0, break_exceptions_mask: 8, detect_exceptions_mask: 10,
        max_dynamic_group_size: 12, max_flat_grid_size: 16, max_flat_workgroup_size: 24,
        reserved1: 28, required_grid_size: 32, required_workgroup_size: 56, required_dim: 68,
        reserved2: 69,
    }
}

enumerations! {
    hsa_ext_program_info_t,
    hsa_ext_finalizer_call_convention_t,
}
