//! What a kernel object points at.
//!
//! Since code object version 3 that is the kernel descriptor, [`amdhsa_kernel_descriptor_t`],
//! described in LLVM's "User Guide for AMDGPU Backend". Version 2 had [`amd_kernel_code_t`]
//! (`amd_hsa_kernel_code.h`). The two program resource registers are the same in both, up to what
//! newer processors made of their bits.

use core::ffi::{c_char, c_void};

use crate::BitField;

/// A kernel's needs and where its code starts.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct amdhsa_kernel_descriptor_t {
    /// Bytes of group memory, without dynamic ones.
    pub group_segment_fixed_size: u32,
    /// Bytes of private memory of a work-item.
    pub private_segment_fixed_size: u32,
    /// Bytes of the arguments; zero where the compiler recorded none.
    pub kernarg_size: u32,
    /// Zero.
    pub reserved0: [u8; 4],
    /// Bytes from the descriptor to the first instruction.
    pub kernel_code_entry_byte_offset: i64,
    /// Zero.
    pub reserved1: [u8; 20],
    /// Third program resource register.
    pub compute_pgm_rsrc3: u32,
    /// First program resource register: [`amd_compute_pgm_rsrc_one_t`].
    pub compute_pgm_rsrc1: u32,
    /// Second program resource register: [`amd_compute_pgm_rsrc_two_t`].
    pub compute_pgm_rsrc2: u32,
    /// [`KernelCodeProperties`].
    pub kernel_code_properties: u16,
    /// Arguments that are loaded into registers before the kernel starts: count in bits 0 to 6,
    /// offset in bits 7 to 15, both in dwords.
    pub kernarg_preload: u16,
    /// Zero.
    pub reserved3: [u8; 4],
}

/// Fields of a descriptor's `kernel_code_properties`.
#[derive(Clone, Copy, Debug)]
pub struct KernelCodeProperties;

impl KernelCodeProperties {
    /// Registers get the descriptor of the private segment.
    pub const ENABLE_SGPR_PRIVATE_SEGMENT_BUFFER: BitField = BitField { shift: 0, width: 1 };
    /// Registers get the address of the dispatch packet.
    pub const ENABLE_SGPR_DISPATCH_PTR: BitField = BitField { shift: 1, width: 1 };
    /// Registers get the address of the queue.
    pub const ENABLE_SGPR_QUEUE_PTR: BitField = BitField { shift: 2, width: 1 };
    /// Registers get the address of the arguments.
    pub const ENABLE_SGPR_KERNARG_SEGMENT_PTR: BitField = BitField { shift: 3, width: 1 };
    /// Registers get the dispatch's index.
    pub const ENABLE_SGPR_DISPATCH_ID: BitField = BitField { shift: 4, width: 1 };
    /// Registers get what flat scratch needs.
    pub const ENABLE_SGPR_FLAT_SCRATCH_INIT: BitField = BitField { shift: 5, width: 1 };
    /// A register gets the size of the private segment.
    pub const ENABLE_SGPR_PRIVATE_SEGMENT_SIZE: BitField = BitField { shift: 6, width: 1 };
    /// Wavefronts have 32 lanes, else 64.
    pub const ENABLE_WAVEFRONT_SIZE32: BitField = BitField {
        shift: 10,
        width: 1,
    };
    /// The stack's size is not known.
    pub const USES_DYNAMIC_STACK: BitField = BitField {
        shift: 11,
        width: 1,
    };
}

c_enum! {
    /// Version of [`amd_kernel_code_t`].
    amd_kernel_code_version_t: u32;
    BASE "AMD_KERNEL_CODE_VERSION_" {
        /// Major.
        MAJOR = 1;
        /// Minor.
        MINOR = 1;
    }
}

c_enum! {
    /// Kind of machine that code is for.
    amd_machine_kind_t: u16;
    BASE "AMD_MACHINE_KIND_" {
        /// Not said.
        UNDEFINED = 0;
        /// An AMD GPU.
        AMDGPU = 1;
    }
}

c_enum! {
    /// Rounding of floating-point results.
    amd_float_round_mode_t: u32;
    BASE "AMD_FLOAT_ROUND_MODE_" {
        /// To the nearest, ties to even.
        NEAREST_EVEN = 0;
        /// Up.
        PLUS_INFINITY = 1;
        /// Down.
        MINUS_INFINITY = 2;
        /// Towards zero.
        ZERO = 3;
    }
}

c_enum! {
    /// Treatment of denormal numbers.
    amd_float_denorm_mode_t: u32;
    BASE "AMD_FLOAT_DENORM_MODE_" {
        /// Operands and results become zero.
        FLUSH_SOURCE_OUTPUT = 0;
        /// Results become zero.
        FLUSH_OUTPUT = 1;
        /// Operands become zero.
        FLUSH_SOURCE = 2;
        /// They stay.
        NO_FLUSH = 3;
    }
}

c_enum! {
    /// Which work-item ids get into registers.
    amd_system_vgpr_workitem_id_t: u32;
    BASE "AMD_SYSTEM_VGPR_WORKITEM_ID_" {
        /// x.
        X = 0;
        /// x and y.
        X_Y = 1;
        /// All.
        X_Y_Z = 2;
        /// Not a value.
        UNDEFINED = 3;
    }
}

c_enum! {
    /// Element size of the private segment's swizzle.
    amd_element_byte_size_t: u32;
    BASE "AMD_ELEMENT_BYTE_SIZE_" {
        /// 2 bytes.
        BYTES_2 = 0, "AMD_ELEMENT_BYTE_SIZE_2";
        /// 4 bytes.
        BYTES_4 = 1, "AMD_ELEMENT_BYTE_SIZE_4";
        /// 8 bytes.
        BYTES_8 = 2, "AMD_ELEMENT_BYTE_SIZE_8";
        /// 16 bytes.
        BYTES_16 = 3, "AMD_ELEMENT_BYTE_SIZE_16";
    }
}

c_enum! {
    /// A power of two by its exponent.
    amd_powertwo_t: u8;
    BASE "AMD_POWERTWO_" {
        /// 1.
        P1 = 0, "AMD_POWERTWO_1";
        /// 2.
        P2 = 1, "AMD_POWERTWO_2";
        /// 4.
        P4 = 2, "AMD_POWERTWO_4";
        /// 8.
        P8 = 3, "AMD_POWERTWO_8";
        /// 16.
        P16 = 4, "AMD_POWERTWO_16";
        /// 32.
        P32 = 5, "AMD_POWERTWO_32";
        /// 64.
        P64 = 6, "AMD_POWERTWO_64";
        /// 128.
        P128 = 7, "AMD_POWERTWO_128";
        /// 256.
        P256 = 8, "AMD_POWERTWO_256";
    }
}

c_enum! {
    /// Which of [`amd_control_directives_t`] count; bits.
    amd_enabled_control_directive_t: u64;
    BASE "AMD_ENABLED_CONTROL_DIRECTIVE_" {
        /// `enable_break_exceptions`.
        ENABLE_BREAK_EXCEPTIONS = 1;
        /// `enable_detect_exceptions`.
        ENABLE_DETECT_EXCEPTIONS = 2;
        /// `max_dynamic_group_size`.
        MAX_DYNAMIC_GROUP_SIZE = 4;
        /// `max_flat_grid_size`.
        MAX_FLAT_GRID_SIZE = 8;
        /// `max_flat_workgroup_size`.
        MAX_FLAT_WORKGROUP_SIZE = 16;
        /// `required_dim`.
        REQUIRED_DIM = 32;
        /// `required_grid_size`.
        REQUIRED_GRID_SIZE = 64;
        /// `required_workgroup_size`.
        REQUIRED_WORKGROUP_SIZE = 128;
        /// Grids are multiples of the workgroup.
        REQUIRE_NO_PARTIAL_WORKGROUPS = 256;
    }
}

c_enum! {
    /// Floating-point exceptions; bits.
    amd_exception_kind_t: u16;
    BASE "AMD_EXCEPTION_KIND_" {
        /// Invalid operation.
        INVALID_OPERATION = 1;
        /// Division by zero.
        DIVISION_BY_ZERO = 2;
        /// Overflow.
        OVERFLOW = 4;
        /// Underflow.
        UNDERFLOW = 8;
        /// Inexact.
        INEXACT = 16;
    }
}

bit_fields! {
    /// Fields of the first program resource register.
    amd_compute_pgm_rsrc_one_t;
    "AMD_COMPUTE_PGM_RSRC_ONE_" {
        /// Vector registers of a work-item, in granules, minus one.
        GRANULATED_WORKITEM_VGPR_COUNT = 0, 6;
        /// Scalar registers of a wavefront, in granules, minus one.
        GRANULATED_WAVEFRONT_SGPR_COUNT = 6, 4;
        /// Priority.
        PRIORITY = 10, 2;
        /// [`amd_float_round_mode_t`] of single precision.
        FLOAT_ROUND_MODE_32 = 12, 2;
        /// [`amd_float_round_mode_t`] of half and double precision.
        FLOAT_ROUND_MODE_16_64 = 14, 2;
        /// [`amd_float_denorm_mode_t`] of single precision.
        FLOAT_DENORM_MODE_32 = 16, 2;
        /// [`amd_float_denorm_mode_t`] of half and double precision.
        FLOAT_DENORM_MODE_16_64 = 18, 2;
        /// Privileged.
        PRIV = 20, 1;
        /// Clamp NaN to zero.
        ENABLE_DX10_CLAMP = 21, 1;
        /// Debug mode.
        DEBUG_MODE = 22, 1;
        /// IEEE treatment of signalling NaN.
        ENABLE_IEEE_MODE = 23, 1;
        /// Only one such workgroup on a compute unit.
        BULKY = 24, 1;
        /// User bit for the debugger.
        CDBG_USER = 25, 1;
        /// Unused; newer processors have fields here.
        RESERVED1 = 26, 6;
    }
}

bit_fields! {
    /// Fields of the second program resource register.
    amd_compute_pgm_rsrc_two_t;
    "AMD_COMPUTE_PGM_RSRC_TWO_" {
        /// A register gets the wave's offset in private memory.
        ENABLE_SGPR_PRIVATE_SEGMENT_WAVE_BYTE_OFFSET = 0, 1;
        /// Scalar registers filled by the packet processor.
        USER_SGPR_COUNT = 1, 5;
        /// Traps are handled.
        ENABLE_TRAP_HANDLER = 6, 1;
        /// A register gets the workgroup's x.
        ENABLE_SGPR_WORKGROUP_ID_X = 7, 1;
        /// A register gets the workgroup's y.
        ENABLE_SGPR_WORKGROUP_ID_Y = 8, 1;
        /// A register gets the workgroup's z.
        ENABLE_SGPR_WORKGROUP_ID_Z = 9, 1;
        /// A register gets details of the workgroup.
        ENABLE_SGPR_WORKGROUP_INFO = 10, 1;
        /// [`amd_system_vgpr_workitem_id_t`].
        ENABLE_VGPR_WORKITEM_ID = 11, 2;
        /// Trap at watched addresses.
        ENABLE_EXCEPTION_ADDRESS_WATCH = 13, 1;
        /// Trap at memory violations.
        ENABLE_EXCEPTION_MEMORY_VIOLATION = 14, 1;
        /// Group memory; the packet processor fills it in.
        GRANULATED_LDS_SIZE = 15, 9;
        /// Trap at invalid operations.
        ENABLE_EXCEPTION_IEEE_754_FP_INVALID_OPERATION = 24, 1;
        /// Trap at denormal operands.
        ENABLE_EXCEPTION_FP_DENORMAL_SOURCE = 25, 1;
        /// Trap at division by zero.
        ENABLE_EXCEPTION_IEEE_754_FP_DIVISION_BY_ZERO = 26, 1;
        /// Trap at overflow.
        ENABLE_EXCEPTION_IEEE_754_FP_OVERFLOW = 27, 1;
        /// Trap at underflow.
        ENABLE_EXCEPTION_IEEE_754_FP_UNDERFLOW = 28, 1;
        /// Trap at inexact results.
        ENABLE_EXCEPTION_IEEE_754_FP_INEXACT = 29, 1;
        /// Trap at integer division by zero.
        ENABLE_EXCEPTION_INT_DIVISION_BY_ZERO = 30, 1;
        /// Unused.
        RESERVED1 = 31, 1;
    }
}

bit_fields! {
    /// Fields of `kernel_code_properties` of [`amd_kernel_code_t`].
    amd_kernel_code_properties_t;
    "AMD_KERNEL_CODE_PROPERTIES_" {
        /// Registers get the descriptor of the private segment.
        ENABLE_SGPR_PRIVATE_SEGMENT_BUFFER = 0, 1;
        /// Registers get the address of the dispatch packet.
        ENABLE_SGPR_DISPATCH_PTR = 1, 1;
        /// Registers get the address of the queue.
        ENABLE_SGPR_QUEUE_PTR = 2, 1;
        /// Registers get the address of the arguments.
        ENABLE_SGPR_KERNARG_SEGMENT_PTR = 3, 1;
        /// Registers get the dispatch's index.
        ENABLE_SGPR_DISPATCH_ID = 4, 1;
        /// Registers get what flat scratch needs.
        ENABLE_SGPR_FLAT_SCRATCH_INIT = 5, 1;
        /// A register gets the size of the private segment.
        ENABLE_SGPR_PRIVATE_SEGMENT_SIZE = 6, 1;
        /// A register gets the grid's workgroups in x.
        ENABLE_SGPR_GRID_WORKGROUP_COUNT_X = 7, 1;
        /// A register gets the grid's workgroups in y.
        ENABLE_SGPR_GRID_WORKGROUP_COUNT_Y = 8, 1;
        /// A register gets the grid's workgroups in z.
        ENABLE_SGPR_GRID_WORKGROUP_COUNT_Z = 9, 1;
        /// Unused.
        RESERVED1 = 10, 6;
        /// Workgroups append to global data share in order.
        ENABLE_ORDERED_APPEND_GDS = 16, 1;
        /// [`amd_element_byte_size_t`].
        PRIVATE_ELEMENT_SIZE = 17, 2;
        /// Addresses have 64 bits.
        IS_PTR64 = 19, 1;
        /// The stack's size is not known.
        IS_DYNAMIC_CALLSTACK = 20, 1;
        /// Made for debugging.
        IS_DEBUG_ENABLED = 21, 1;
        /// Made for page faults that are retried.
        IS_XNACK_ENABLED = 22, 1;
        /// Unused.
        RESERVED2 = 23, 9;
    }
}

/// Promises about the dispatches of a version 2 kernel.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
pub struct amd_control_directives_t {
    /// Which of the fields below count.
    pub enabled_control_directives: amd_enabled_control_directive_t,
    /// [`amd_exception_kind_t`] bits that stop the queue.
    pub enable_break_exceptions: u16,
    /// [`amd_exception_kind_t`] bits that set a status.
    pub enable_detect_exceptions: u16,
    /// Most bytes of dynamic group memory.
    pub max_dynamic_group_size: u32,
    /// Most work-items of a grid.
    pub max_flat_grid_size: u64,
    /// Most work-items of a workgroup.
    pub max_flat_workgroup_size: u32,
    /// Grid dimensions.
    pub required_dim: u8,
    /// Zero.
    pub reserved1: [u8; 3],
    /// Work-items of the grid.
    pub required_grid_size: [u64; 3],
    /// Work-items of a workgroup.
    pub required_workgroup_size: [u32; 3],
    /// Zero.
    pub reserved2: [u8; 60],
}

/// What stands before the code of a version 2 kernel.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
pub struct amd_kernel_code_t {
    /// [`amd_kernel_code_version_t::MAJOR`].
    pub amd_kernel_code_version_major: u32,
    /// [`amd_kernel_code_version_t::MINOR`].
    pub amd_kernel_code_version_minor: u32,
    /// Machine.
    pub amd_machine_kind: amd_machine_kind_t,
    /// Processor, major.
    pub amd_machine_version_major: u16,
    /// Processor, minor.
    pub amd_machine_version_minor: u16,
    /// Processor, stepping.
    pub amd_machine_version_stepping: u16,
    /// Bytes to the first instruction.
    pub kernel_code_entry_byte_offset: i64,
    /// Bytes to what is worth prefetching.
    pub kernel_code_prefetch_byte_offset: i64,
    /// Bytes worth prefetching.
    pub kernel_code_prefetch_byte_size: u64,
    /// Most bytes of scratch memory.
    pub max_scratch_backing_memory_byte_size: u64,
    /// First program resource register.
    pub compute_pgm_rsrc1: u32,
    /// Second program resource register.
    pub compute_pgm_rsrc2: u32,
    /// [`amd_kernel_code_properties_t`].
    pub kernel_code_properties: u32,
    /// Bytes of private memory of a work-item.
    pub workitem_private_segment_byte_size: u32,
    /// Bytes of group memory of a workgroup.
    pub workgroup_group_segment_byte_size: u32,
    /// Bytes of global data share.
    pub gds_segment_byte_size: u32,
    /// Bytes of the arguments.
    pub kernarg_segment_byte_size: u64,
    /// Fbarriers.
    pub workgroup_fbarrier_count: u32,
    /// Scalar registers.
    pub wavefront_sgpr_count: u16,
    /// Vector registers.
    pub workitem_vgpr_count: u16,
    /// First vector register kept free.
    pub reserved_vgpr_first: u16,
    /// Number of them.
    pub reserved_vgpr_count: u16,
    /// First scalar register kept free.
    pub reserved_sgpr_first: u16,
    /// Number of them.
    pub reserved_sgpr_count: u16,
    /// Register for the debugger.
    pub debug_wavefront_private_segment_offset_sgpr: u16,
    /// Register for the debugger.
    pub debug_private_segment_buffer_sgpr: u16,
    /// Alignment of the arguments.
    pub kernarg_segment_alignment: amd_powertwo_t,
    /// Alignment of group memory.
    pub group_segment_alignment: amd_powertwo_t,
    /// Alignment of private memory.
    pub private_segment_alignment: amd_powertwo_t,
    /// Lanes.
    pub wavefront_size: amd_powertwo_t,
    /// Call convention.
    pub call_convention: i32,
    /// Zero.
    pub reserved1: [u8; 12],
    /// The loader's symbol.
    pub runtime_loader_kernel_symbol: u64,
    /// Promises.
    pub control_directives: amd_control_directives_t,
}

/// Where the loader found a version 2 kernel; for debuggers.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct amd_runtime_loader_debug_info_t {
    /// The object file.
    pub elf_raw: *const c_void,
    /// Its bytes.
    pub elf_size: usize,
    /// The kernel's name.
    pub kernel_name: *const c_char,
    /// The loader's segment.
    pub owning_segment: *const c_void,
}

// The first is in no C header: LLVM's documentation gives its offsets.
layout! {
    LAYOUTS;
    LATER amdhsa_kernel_descriptor_t: 64, 8 {
        group_segment_fixed_size: 0, private_segment_fixed_size: 4, kernarg_size: 8, reserved0: 12,
        kernel_code_entry_byte_offset: 16, reserved1: 24, compute_pgm_rsrc3: 44,
        compute_pgm_rsrc1: 48, compute_pgm_rsrc2: 52, kernel_code_properties: 56,
        kernarg_preload: 58, reserved3: 60,
    }
    BASE amd_control_directives_t: 128, 64 {
        enabled_control_directives: 0, enable_break_exceptions: 8, enable_detect_exceptions: 10,
        max_dynamic_group_size: 12, max_flat_grid_size: 16, max_flat_workgroup_size: 24,
        required_dim: 28, reserved1: 29, required_grid_size: 32, required_workgroup_size: 56,
        reserved2: 68,
    }
    BASE amd_kernel_code_t: 256, 64 {
        amd_kernel_code_version_major: 0, amd_kernel_code_version_minor: 4, amd_machine_kind: 8,
        amd_machine_version_major: 10, amd_machine_version_minor: 12,
        amd_machine_version_stepping: 14, kernel_code_entry_byte_offset: 16,
        kernel_code_prefetch_byte_offset: 24, kernel_code_prefetch_byte_size: 32,
        max_scratch_backing_memory_byte_size: 40, compute_pgm_rsrc1: 48, compute_pgm_rsrc2: 52,
        kernel_code_properties: 56, workitem_private_segment_byte_size: 60,
        workgroup_group_segment_byte_size: 64, gds_segment_byte_size: 68,
        kernarg_segment_byte_size: 72, workgroup_fbarrier_count: 80, wavefront_sgpr_count: 84,
        workitem_vgpr_count: 86, reserved_vgpr_first: 88, reserved_vgpr_count: 90,
        reserved_sgpr_first: 92, reserved_sgpr_count: 94,
        debug_wavefront_private_segment_offset_sgpr: 96, debug_private_segment_buffer_sgpr: 98,
        kernarg_segment_alignment: 100, group_segment_alignment: 101,
        private_segment_alignment: 102, wavefront_size: 103, call_convention: 104, reserved1: 108,
        runtime_loader_kernel_symbol: 120, control_directives: 128,
    }
    BASE amd_runtime_loader_debug_info_t: 32, 8 {
        elf_raw: 0, elf_size: 8, kernel_name: 16, owning_segment: 24,
    }
}

enumerations! {
    amd_kernel_code_version_t,
    amd_machine_kind_t,
    amd_float_round_mode_t,
    amd_float_denorm_mode_t,
    amd_system_vgpr_workitem_id_t,
    amd_element_byte_size_t,
    amd_powertwo_t,
    amd_enabled_control_directive_t,
    amd_exception_kind_t,
    amd_compute_pgm_rsrc_one_t,
    amd_compute_pgm_rsrc_two_t,
    amd_kernel_code_properties_t,
}
