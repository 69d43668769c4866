//! Types and constants of `hsa.h`: status, agents, signals, queues, memory, code objects.
//!
//! AMD's additions to an enumeration of `hsa.h` (`hsa_ext_amd.h`, `hsa_ext_image.h`) are constants
//! of the enumeration they extend, since they are passed as values of it.
//!
//! Not here: packets (`aql`), AMD's own types (`amd`), functions (`function`).

use core::ffi::{c_int, c_void};

c_enum! {
    /// What a call came to, and what a callback says to an iterating function.
    hsa_status_t: u32;
    BASE "HSA_STATUS_" {
        /// The call did what was asked.
        SUCCESS = 0x0;
        /// Returned by a callback to end an iteration early; not a failure.
        INFO_BREAK = 0x1;
        /// A failure without a closer description.
        ERROR = 0x1000;
        /// An argument breaks the function's rules.
        ERROR_INVALID_ARGUMENT = 0x1001;
        /// The agent does not support queues of this kind.
        ERROR_INVALID_QUEUE_CREATION = 0x1002;
        /// The memory cannot be allocated there, or an address belongs to no allocation.
        ERROR_INVALID_ALLOCATION = 0x1003;
        /// The agent handle is not one of the runtime's.
        ERROR_INVALID_AGENT = 0x1004;
        /// The region handle is not one of the runtime's.
        ERROR_INVALID_REGION = 0x1005;
        /// The signal handle is not one of the runtime's, or of the wrong kind.
        ERROR_INVALID_SIGNAL = 0x1006;
        /// The queue is not one of the runtime's, or of the wrong kind.
        ERROR_INVALID_QUEUE = 0x1007;
        /// Memory, queues or another resource ran out; also what `hsa_init` says without a device
        /// driver.
        ERROR_OUT_OF_RESOURCES = 0x1008;
        /// A packet the packet processor does not understand.
        ERROR_INVALID_PACKET_FORMAT = 0x1009;
        /// A resource could not be given back.
        ERROR_RESOURCE_FREE = 0x100A;
        /// `hsa_init` has not been called, or the last reference is gone.
        ERROR_NOT_INITIALIZED = 0x100B;
        /// The reference count of the runtime would overflow.
        ERROR_REFCOUNT_OVERFLOW = 0x100C;
        /// Arguments that are valid alone do not go together.
        ERROR_INCOMPATIBLE_ARGUMENTS = 0x100D;
        /// An index is out of range.
        ERROR_INVALID_INDEX = 0x100E;
        /// The instruction set handle is not one of the runtime's.
        ERROR_INVALID_ISA = 0x100F;
        /// The code object is malformed or of an unsupported version.
        ERROR_INVALID_CODE_OBJECT = 0x1010;
        /// The executable handle is not one of the runtime's.
        ERROR_INVALID_EXECUTABLE = 0x1011;
        /// The executable is frozen already.
        ERROR_FROZEN_EXECUTABLE = 0x1012;
        /// No symbol of this name.
        ERROR_INVALID_SYMBOL_NAME = 0x1013;
        /// The variable has a definition already.
        ERROR_VARIABLE_ALREADY_DEFINED = 0x1014;
        /// The variable has no definition.
        ERROR_VARIABLE_UNDEFINED = 0x1015;
        /// A kernel raised a hardware exception.
        ERROR_EXCEPTION = 0x1016;
        /// The name denotes no instruction set that the runtime knows.
        ERROR_INVALID_ISA_NAME = 0x1017;
        /// The code object symbol handle is not one of the runtime's.
        ERROR_INVALID_CODE_SYMBOL = 0x1018;
        /// The executable symbol handle is not one of the runtime's.
        ERROR_INVALID_EXECUTABLE_SYMBOL = 0x1019;
        /// The file descriptor cannot be read from.
        ERROR_INVALID_FILE = 0x1020;
        /// The code object reader handle is not one of the runtime's.
        ERROR_INVALID_CODE_OBJECT_READER = 0x1021;
        /// The cache handle is not one of the runtime's.
        ERROR_INVALID_CACHE = 0x1022;
        /// The wavefront handle is not one of the runtime's.
        ERROR_INVALID_WAVEFRONT = 0x1023;
        /// The signal group handle is not one of the runtime's.
        ERROR_INVALID_SIGNAL_GROUP = 0x1024;
        /// The runtime is not in a state that allows the call.
        ERROR_INVALID_RUNTIME_STATE = 0x1025;
        /// The queue or the runtime cannot go on.
        ERROR_FATAL = 0x1026;
        /// The pool handle is not one of the runtime's.
        ERROR_INVALID_MEMORY_POOL = 40;
        /// An agent used an address beyond its apertures.
        ERROR_MEMORY_APERTURE_VIOLATION = 41;
        /// An agent met an instruction that it cannot execute.
        ERROR_ILLEGAL_INSTRUCTION = 42;
        /// An agent used an address that it cannot access.
        ERROR_MEMORY_FAULT = 43;
        /// The CU mask was set, without the compute units that this process may not use. A warning.
        CU_MASK_REDUCED = 44;
    }
    LATER "HSA_STATUS_" {
        /// The kernel needs more vector registers than the agent has.
        ERROR_OUT_OF_REGISTERS = 45;
        /// Somebody else holds the resource for now.
        ERROR_RESOURCE_BUSY = 46;
        /// This system cannot do that.
        ERROR_NOT_SUPPORTED = 47;
    }
    BASE "HSA_EXT_STATUS_" {
        /// The finalizer program handle is not one of the runtime's.
        ERROR_INVALID_PROGRAM = 0x2000;
        /// The HSAIL module is malformed.
        ERROR_INVALID_MODULE = 0x2001;
        /// Machine model or profile of the module differ from the program's.
        ERROR_INCOMPATIBLE_MODULE = 0x2002;
        /// The module is part of the program already.
        ERROR_MODULE_ALREADY_INCLUDED = 0x2003;
        /// Two modules disagree about a symbol.
        ERROR_SYMBOL_MISMATCH = 0x2004;
        /// Finalization failed.
        ERROR_FINALIZATION_FAILED = 0x2005;
        /// Two modules disagree about a control directive.
        ERROR_DIRECTIVE_MISMATCH = 0x2006;
        /// The agent has no images of this format.
        ERROR_IMAGE_FORMAT_UNSUPPORTED = 0x3000;
        /// The agent has no images of this size.
        ERROR_IMAGE_SIZE_UNSUPPORTED = 0x3001;
        /// The agent has no images of this pitch.
        ERROR_IMAGE_PITCH_UNSUPPORTED = 0x3002;
        /// The agent has no such samplers.
        ERROR_SAMPLER_DESCRIPTOR_UNSUPPORTED = 0x3003;
    }
}

/// An open file as `hsa_code_object_reader_create_from_file` takes it: a POSIX file descriptor.
pub type hsa_file_t = c_int;

/// The value of a signal. 64 bits, since only the large machine model is supported here.
pub type hsa_signal_value_t = i64;

handles! {
    /// A device or processor: submits packets, executes them, or both.
    hsa_agent_t;
    /// A cache of an agent.
    hsa_cache_t;
    /// A 64-bit value that agents and host threads wait on and change atomically.
    hsa_signal_t;
    /// Several signals that can be waited on together.
    hsa_signal_group_t;
    /// A piece of memory as `hsa.h` sees it; AMD's finer view is [`hsa_amd_memory_pool_t`].
    ///
    /// [`hsa_amd_memory_pool_t`]: crate::hsa_amd_memory_pool_t
    hsa_region_t;
    /// An instruction set.
    hsa_isa_t;
    /// A wavefront size of an instruction set.
    hsa_wavefront_t;
    /// A source of code object bytes. The memory it reads from must outlive the executables loaded
    /// through it.
    hsa_code_object_reader_t;
    /// Loaded code objects, linked together when frozen.
    hsa_executable_t;
    /// One code object inside an executable.
    hsa_loaded_code_object_t;
    /// A kernel or variable of an executable.
    hsa_executable_symbol_t;
    /// A code object in the deprecated interface of HSA 1.0.
    hsa_code_object_t;
    /// Data passed to the allocator of `hsa_code_object_serialize`.
    hsa_callback_data_t;
    /// A symbol in the deprecated interface of HSA 1.0.
    hsa_code_symbol_t;
}

/// Extents in three dimensions.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct hsa_dim3_t {
    /// First dimension.
    pub x: u32,
    /// Second dimension.
    pub y: u32,
    /// Third dimension.
    pub z: u32,
}

c_enum! {
    /// What may be done with memory or an image.
    hsa_access_permission_t: u32;
    LATER "HSA_ACCESS_PERMISSION_" {
        /// Nothing.
        NONE = 0;
    }
    BASE "HSA_ACCESS_PERMISSION_" {
        /// Reading.
        RO = 1;
        /// Writing.
        WO = 2;
        /// Both.
        RW = 3;
    }
}

c_enum! {
    /// Byte order.
    hsa_endianness_t: u32;
    BASE "HSA_ENDIANNESS_" {
        /// Least significant byte first.
        LITTLE = 0;
        /// Most significant byte first.
        BIG = 1;
    }
}

c_enum! {
    /// Width of addresses.
    hsa_machine_model_t: u32;
    BASE "HSA_MACHINE_MODEL_" {
        /// 32 bits.
        SMALL = 0;
        /// 64 bits.
        LARGE = 1;
    }
}

c_enum! {
    /// How much of the HSA specification an agent promises.
    hsa_profile_t: u32;
    BASE "HSA_PROFILE_" {
        /// What discrete GPUs report.
        BASE = 0;
        /// Shares the host's page tables and more.
        FULL = 1;
    }
}

c_enum! {
    /// Attribute of `hsa_system_get_info`; the type of the answer is given with each.
    hsa_system_info_t: u32;
    BASE "HSA_SYSTEM_INFO_" {
        /// `u16`: major version of the HSA interface.
        VERSION_MAJOR = 0;
        /// `u16`: minor version of the HSA interface.
        VERSION_MINOR = 1;
        /// `u64`: now, in ticks of the system clock.
        TIMESTAMP = 2;
        /// `u64`: ticks of the system clock per second.
        TIMESTAMP_FREQUENCY = 3;
        /// `u64`: longest wait on a signal, in ticks.
        SIGNAL_MAX_WAIT = 4;
        /// [`hsa_endianness_t`].
        ENDIANNESS = 5;
        /// [`hsa_machine_model_t`].
        MACHINE_MODEL = 6;
        /// `[u8; 128]`: one bit for each extension.
        EXTENSIONS = 7;
    }
    BASE "HSA_AMD_SYSTEM_INFO_" {
        /// `*const c_char`: build version of the runtime, NUL-terminated.
        BUILD_VERSION = 0x200;
        /// `bool`: shared virtual memory (heterogeneous memory management) is available.
        SVM_SUPPORTED = 0x201;
        /// `bool`: agents may use any host memory without further calls (XNACK).
        SVM_ACCESSIBLE_BY_DEFAULT = 0x202;
    }
    LATER "HSA_AMD_SYSTEM_INFO_" {
        /// `bool`: the processor's `mwaitx` is used for waiting.
        MWAITX_ENABLED = 0x203;
        /// `bool`: memory can be exported as a dma-buf.
        DMABUF_SUPPORTED = 0x204;
        /// `bool`: the `hsa_amd_vmem_*` functions work.
        VIRTUAL_MEM_API_SUPPORTED = 0x205;
        /// `bool`: page faults of agents are retried (XNACK).
        XNACK_ENABLED = 0x206;
        /// `u16`: major version of AMD's interface; answered since ROCr 6.0.
        EXT_VERSION_MAJOR = 0x207;
        /// `u16`: minor version of AMD's interface; answered since ROCr 6.0.
        EXT_VERSION_MINOR = 0x208;
    }
}

c_enum! {
    /// An extension's number. Functions take it as `u16`.
    hsa_extension_t: u32;
    BASE "HSA_EXTENSION_" {
        /// HSAIL finalizer.
        FINALIZER = 0;
        /// Images and samplers.
        IMAGES = 1;
        /// HSA's performance counters.
        PERFORMANCE_COUNTERS = 2;
        /// HSA's profiling events.
        PROFILING_EVENTS = 3;
        /// AMD's old profiler.
        AMD_PROFILER = 0x200;
        /// Queries about loaded code: [`hsa_ven_amd_loader_1_03_pfn_t`].
        ///
        /// [`hsa_ven_amd_loader_1_03_pfn_t`]: crate::hsa_ven_amd_loader_1_03_pfn_t
        AMD_LOADER = 0x201;
        /// Counter and trace packets: [`hsa_ven_amd_aqlprofile_1_00_pfn_t`].
        ///
        /// [`hsa_ven_amd_aqlprofile_1_00_pfn_t`]: crate::hsa_ven_amd_aqlprofile_1_00_pfn_t
        AMD_AQLPROFILE = 0x202;
    }
    LATER "HSA_EXTENSION_" {
        /// Program counter sampling.
        AMD_PC_SAMPLING = 0x203;
    }
}

c_enum! {
    /// What an agent can execute; bits.
    hsa_agent_feature_t: u32;
    BASE "HSA_AGENT_FEATURE_" {
        /// Kernels.
        KERNEL_DISPATCH = 1;
        /// Agent dispatch packets.
        AGENT_DISPATCH = 2;
    }
}

c_enum! {
    /// Kind of an agent's hardware.
    hsa_device_type_t: u32;
    BASE "HSA_DEVICE_TYPE_" {
        /// Host processor.
        CPU = 0;
        /// Graphics processor.
        GPU = 1;
        /// Signal processor.
        DSP = 2;
    }
    LATER "HSA_DEVICE_TYPE_" {
        /// AI engine (NPU).
        AIE = 3;
    }
}

c_enum! {
    /// Rounding of floating-point results where the code does not say.
    hsa_default_float_rounding_mode_t: u32;
    BASE "HSA_DEFAULT_FLOAT_ROUNDING_MODE_" {
        /// The agent's choice.
        DEFAULT = 0;
        /// Towards zero.
        ZERO = 1;
        /// To the nearest, ties to even.
        NEAR = 2;
    }
}

c_enum! {
    /// Attribute of `hsa_agent_get_info`; the type of the answer is given with each.
    ///
    /// A runtime that does not know an attribute answers `ERROR_INVALID_ARGUMENT`.
    hsa_agent_info_t: u32;
    BASE "HSA_AGENT_INFO_" {
        /// `[c_char; 64]`: name, such as `gfx90a`, padded with NUL.
        NAME = 0;
        /// `[c_char; 64]`: vendor, padded with NUL.
        VENDOR_NAME = 1;
        /// [`hsa_agent_feature_t`] bits.
        FEATURE = 2;
        /// [`hsa_machine_model_t`].
        MACHINE_MODEL = 3;
        /// [`hsa_profile_t`].
        PROFILE = 4;
        /// [`hsa_default_float_rounding_mode_t`].
        DEFAULT_FLOAT_ROUNDING_MODE = 5;
        /// `u32`: lanes of a wavefront.
        WAVEFRONT_SIZE = 6;
        /// `[u16; 3]`: most work-items of a workgroup in each dimension.
        WORKGROUP_MAX_DIM = 7;
        /// `u32`: most work-items of a workgroup.
        WORKGROUP_MAX_SIZE = 8;
        /// [`hsa_dim3_t`]: most work-items of a grid in each dimension.
        GRID_MAX_DIM = 9;
        /// `u32`: most work-items of a grid.
        GRID_MAX_SIZE = 10;
        /// `u32`: most fbarriers of a workgroup.
        FBARRIER_MAX_SIZE = 11;
        /// `u32`: most queues of the agent at a time.
        QUEUES_MAX = 12;
        /// `u32`: fewest packets a queue can have.
        QUEUE_MIN_SIZE = 13;
        /// `u32`: most packets a queue can have.
        QUEUE_MAX_SIZE = 14;
        /// [`hsa_queue_type_t`] of the queues the agent can have.
        QUEUE_TYPE = 15;
        /// `u32`: NUMA node.
        NODE = 16;
        /// [`hsa_device_type_t`].
        DEVICE = 17;
        /// `[u32; 4]`: bytes of the caches of levels 1 to 4.
        CACHE_SIZE = 18;
        /// [`hsa_isa_t`].
        ISA = 19;
        /// `[u8; 128]`: one bit for each extension.
        EXTENSIONS = 20;
        /// `u16`: major version of HSA that the agent supports.
        VERSION_MAJOR = 21;
        /// `u16`: minor version of HSA that the agent supports.
        VERSION_MINOR = 22;
        /// [`hsa_default_float_rounding_mode_t`] bits for the base profile.
        BASE_PROFILE_DEFAULT_FLOAT_ROUNDING_MODES = 23;
        /// `bool`: half precision is at least as fast as single.
        FAST_F16_OPERATION = 24;
    }
    BASE "HSA_EXT_AGENT_INFO_" {
        /// `u32`: most elements of a 1D image.
        IMAGE_1D_MAX_ELEMENTS = 0x3000;
        /// `u32`: most elements of a layer of a 1D array.
        IMAGE_1DA_MAX_ELEMENTS = 0x3001;
        /// `u32`: most elements of a 1D buffer image.
        IMAGE_1DB_MAX_ELEMENTS = 0x3002;
        /// `[u32; 2]`: largest 2D image.
        IMAGE_2D_MAX_ELEMENTS = 0x3003;
        /// `[u32; 2]`: largest layer of a 2D array.
        IMAGE_2DA_MAX_ELEMENTS = 0x3004;
        /// `[u32; 2]`: largest 2D depth image.
        IMAGE_2DDEPTH_MAX_ELEMENTS = 0x3005;
        /// `[u32; 2]`: largest layer of a 2D depth array.
        IMAGE_2DADEPTH_MAX_ELEMENTS = 0x3006;
        /// `[u32; 3]`: largest 3D image.
        IMAGE_3D_MAX_ELEMENTS = 0x3007;
        /// `u32`: most layers of an image array.
        IMAGE_ARRAY_MAX_LAYERS = 0x3008;
        /// `u32`: most read-only image handles of a dispatch.
        MAX_IMAGE_RD_HANDLES = 0x3009;
        /// `u32`: most write-only and read-write image handles of a dispatch.
        MAX_IMAGE_RORW_HANDLES = 0x300A;
        /// `u32`: most sampler handles of a dispatch.
        MAX_SAMPLER_HANDLERS = 0x300B;
        /// `u32`: alignment of the rows of a linear image, in bytes.
        IMAGE_LINEAR_ROW_PITCH_ALIGNMENT = 0x300C;
    }
    BASE "HSA_AMD_AGENT_INFO_" {
        /// `u32`: PCI device id.
        CHIP_ID = 0xA000;
        /// `u32`: bytes of a cache line.
        CACHELINE_SIZE = 0xA001;
        /// `u32`: compute units.
        COMPUTE_UNIT_COUNT = 0xA002;
        /// `u32`: highest engine clock in MHz.
        MAX_CLOCK_FREQUENCY = 0xA003;
        /// `u32`: node id of the kernel driver.
        DRIVER_NODE_ID = 0xA004;
        /// `u32`: address watch points.
        MAX_ADDRESS_WATCH_POINTS = 0xA005;
        /// `u32`: PCI bus (bits 8 and up), device (3 to 7), function (0 to 2).
        BDFID = 0xA006;
        /// `u32`: memory bus width in bits.
        MEMORY_WIDTH = 0xA007;
        /// `u32`: highest memory clock in MHz.
        MEMORY_MAX_FREQUENCY = 0xA008;
        /// `[c_char; 64]`: marketing name, NUL-terminated.
        PRODUCT_NAME = 0xA009;
        /// `u32`: most waves on a compute unit.
        MAX_WAVES_PER_CU = 0xA00A;
        /// `u32`: SIMD units of a compute unit.
        NUM_SIMDS_PER_CU = 0xA00B;
        /// `u32`: shader engines.
        NUM_SHADER_ENGINES = 0xA00C;
        /// `u32`: shader arrays of a shader engine.
        NUM_SHADER_ARRAYS_PER_SE = 0xA00D;
        /// [`hsa_amd_hdp_flush_t`](crate::hsa_amd_hdp_flush_t): registers that flush host writes.
        HDP_FLUSH = 0xA00E;
        /// `u32`: PCI domain.
        DOMAIN = 0xA00F;
        /// `bool`: the agent has cooperative queues.
        COOPERATIVE_QUEUES = 0xA010;
        /// `[c_char; 21]`: unique id such as `GPU-` and 16 hexadecimal digits, NUL-terminated.
        UUID = 0xA011;
        /// `u32`: revision of the chip.
        ASIC_REVISION = 0xA012;
        /// `bool`: the host can use SVM memory where it lies on the agent.
        SVM_DIRECT_HOST_ACCESS = 0xA013;
        /// `u32`: compute units a cooperative dispatch may count on.
        COOPERATIVE_COMPUTE_UNIT_COUNT = 0xA014;
    }
    LATER "HSA_AMD_AGENT_INFO_" {
        /// `u64`: bytes of free memory, as a hint; since ROCr 5.3.
        MEMORY_AVAIL = 0xA015;
        /// `u64`: ticks of the agent's timestamps per second.
        TIMESTAMP_FREQUENCY = 0xA016;
        /// `u32`: family of the chip.
        ASIC_FAMILY_ID = 0xA107;
        /// `u32`: firmware version of the packet processor.
        UCODE_VERSION = 0xA108;
        /// `u32`: firmware version of the SDMA engines.
        SDMA_UCODE_VERSION = 0xA109;
        /// `u32`: SDMA engines for traffic with the host.
        NUM_SDMA_ENG = 0xA10A;
        /// `u32`: further SDMA engines for traffic between agents.
        NUM_SDMA_XGMI_ENG = 0xA10B;
        /// [`hsa_amd_iommu_version_t`](crate::hsa_amd_iommu_version_t).
        IOMMU_SUPPORT = 0xA110;
        /// `u32`: accelerator dies (XCC) that work as this agent.
        NUM_XCC = 0xA111;
        /// `u32`: id that the driver gave.
        DRIVER_UID = 0xA112;
        /// [`hsa_agent_t`]: the closest host processor.
        NEAREST_CPU = 0xA113;
        /// `[u8; 8]`: bits of [`hsa_amd_agent_memory_properties_t`].
        ///
        /// [`hsa_amd_agent_memory_properties_t`]: crate::hsa_amd_agent_memory_properties_t
        MEMORY_PROPERTIES = 0xA114;
        /// `[u8; 8]`: bits of AQL extensions.
        AQL_EXTENSIONS = 0xA115;
        /// `u64`: most bytes of scratch that the queues of the agent can be allowed.
        SCRATCH_LIMIT_MAX = 0xA116;
        /// `u64`: bytes of scratch above which a dispatch gets it for once only.
        SCRATCH_LIMIT_CURRENT = 0xA117;
        /// [`hsa_amd_clock_counters_t`](crate::hsa_amd_clock_counters_t).
        CLOCK_COUNTERS = 0xA118;
    }
}

c_enum! {
    /// What happens at a floating-point exception; bits.
    hsa_exception_policy_t: u32;
    BASE "HSA_EXCEPTION_POLICY_" {
        /// The queue stops.
        BREAK = 1;
        /// A status bit is set.
        DETECT = 2;
    }
}

c_enum! {
    /// Attribute of `hsa_cache_get_info`.
    hsa_cache_info_t: u32;
    BASE "HSA_CACHE_INFO_" {
        /// `u32`: length of the name, without a NUL.
        NAME_LENGTH = 0;
        /// `[c_char]`: the name, not NUL-terminated.
        NAME = 1;
        /// `u8`: level.
        LEVEL = 2;
        /// `u32`: bytes; zero where unknown.
        SIZE = 3;
    }
}

c_enum! {
    /// How a signal's value is compared in a wait.
    hsa_signal_condition_t: u32;
    BASE "HSA_SIGNAL_CONDITION_" {
        /// Equal.
        EQ = 0;
        /// Not equal.
        NE = 1;
        /// Less than, signed.
        LT = 2;
        /// Greater or equal, signed.
        GTE = 3;
    }
}

c_enum! {
    /// How to wait.
    hsa_wait_state_t: u32;
    BASE "HSA_WAIT_STATE_" {
        /// Let others run.
        BLOCKED = 0;
        /// Spin.
        ACTIVE = 1;
    }
}

c_enum! {
    /// Who may submit to a queue, and how it shares the agent.
    hsa_queue_type_t: u32;
    BASE "HSA_QUEUE_TYPE_" {
        /// Any thread.
        MULTI = 0;
        /// One thread at a time.
        SINGLE = 1;
        /// Any thread; all workgroups of a dispatch run at the same time. One per agent, shared.
        COOPERATIVE = 2;
    }
}

/// [`hsa_queue_type_t`] where C fixes the width of the field or argument to 32 bits.
pub type hsa_queue_type32_t = hsa_queue_type_t;

c_enum! {
    /// What packets a queue takes besides barriers; bits.
    hsa_queue_feature_t: u32;
    BASE "HSA_QUEUE_FEATURE_" {
        /// Kernel dispatches.
        KERNEL_DISPATCH = 1;
        /// Agent dispatches.
        AGENT_DISPATCH = 2;
    }
}

/// The part of a queue that everybody can see: where the packets go and what to ring.
///
/// The runtime allocates it; a copy is not a queue.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hsa_queue_t {
    /// Who may submit.
    pub r#type: hsa_queue_type32_t,
    /// [`hsa_queue_feature_t`] bits.
    pub features: u32,
    /// First of `size` packets of 64 bytes.
    pub base_address: *mut c_void,
    /// Takes the index of the last packet that is ready.
    pub doorbell_signal: hsa_signal_t,
    /// Packets in the ring; a power of two.
    pub size: u32,
    /// Zero.
    pub reserved1: u32,
    /// Unique in the process.
    pub id: u64,
}

c_enum! {
    /// Segment that a region belongs to.
    hsa_region_segment_t: u32;
    BASE "HSA_REGION_SEGMENT_" {
        /// Visible to all agents.
        GLOBAL = 0;
        /// Constant while a kernel runs.
        READONLY = 1;
        /// One work-item's.
        PRIVATE = 2;
        /// One workgroup's.
        GROUP = 3;
        /// Kernel arguments.
        KERNARG = 4;
    }
}

c_enum! {
    /// Properties of a region in the global segment; bits.
    hsa_region_global_flag_t: u32;
    BASE "HSA_REGION_GLOBAL_FLAG_" {
        /// Kernel arguments may lie here.
        KERNARG = 1;
        /// Coherent between agents while kernels run.
        FINE_GRAINED = 2;
        /// Owned by one agent at a time.
        COARSE_GRAINED = 4;
    }
    LATER "HSA_REGION_GLOBAL_FLAG_" {
        /// Fine-grained, with atomics of system scope made to work by device-specific means.
        EXTENDED_SCOPE_FINE_GRAINED = 8;
    }
}

c_enum! {
    /// Attribute of `hsa_region_get_info`.
    hsa_region_info_t: u32;
    BASE "HSA_REGION_INFO_" {
        /// [`hsa_region_segment_t`].
        SEGMENT = 0;
        /// [`hsa_region_global_flag_t`] bits.
        GLOBAL_FLAGS = 1;
        /// `usize`: bytes.
        SIZE = 2;
        /// `usize`: largest allocation in bytes.
        ALLOC_MAX_SIZE = 4;
        /// `bool`: `hsa_memory_allocate` works here.
        RUNTIME_ALLOC_ALLOWED = 5;
        /// `usize`: sizes are rounded up to a multiple of this.
        RUNTIME_ALLOC_GRANULE = 6;
        /// `usize`: alignment of allocations.
        RUNTIME_ALLOC_ALIGNMENT = 7;
        /// `u32`: most bytes of the private segment of a workgroup.
        ALLOC_MAX_PRIVATE_WORKGROUP_SIZE = 8;
    }
    BASE "HSA_AMD_REGION_INFO_" {
        /// `bool`: the host can read and write the region.
        HOST_ACCESSIBLE = 0xA000;
        /// `*mut c_void`: first address.
        BASE = 0xA001;
        /// `u32`: bus width in bits; deprecated.
        BUS_WIDTH = 0xA002;
        /// `u32`: highest clock in MHz; deprecated.
        MAX_CLOCK_FREQUENCY = 0xA003;
    }
}

c_enum! {
    /// Attribute of `hsa_isa_get_info_alt`.
    hsa_isa_info_t: u32;
    BASE "HSA_ISA_INFO_" {
        /// `u32`: length of the name, without a NUL.
        NAME_LENGTH = 0;
        /// `[c_char]`: the name, such as `amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-`.
        NAME = 1;
        /// `u32`: call conventions; deprecated.
        CALL_CONVENTION_COUNT = 2;
        /// `u32`: wavefront size of a call convention; deprecated.
        CALL_CONVENTION_INFO_WAVEFRONT_SIZE = 3;
        /// `u32`: wavefronts of a compute unit; deprecated.
        CALL_CONVENTION_INFO_WAVEFRONTS_PER_COMPUTE_UNIT = 4;
        /// `[bool; 2]`: supported [`hsa_machine_model_t`]s.
        MACHINE_MODELS = 5;
        /// `[bool; 2]`: supported [`hsa_profile_t`]s.
        PROFILES = 6;
        /// `[bool; 3]`: supported rounding modes.
        DEFAULT_FLOAT_ROUNDING_MODES = 7;
        /// `[bool; 3]`: supported rounding modes in the base profile.
        BASE_PROFILE_DEFAULT_FLOAT_ROUNDING_MODES = 8;
        /// `bool`: half precision is at least as fast as single.
        FAST_F16_OPERATION = 9;
        /// `[u16; 3]`: most work-items of a workgroup in each dimension.
        WORKGROUP_MAX_DIM = 12;
        /// `u32`: most work-items of a workgroup.
        WORKGROUP_MAX_SIZE = 13;
        /// [`hsa_dim3_t`]: most work-items of a grid in each dimension.
        GRID_MAX_DIM = 14;
        /// `u64`: most work-items of a grid.
        GRID_MAX_SIZE = 16;
        /// `u32`: most fbarriers of a workgroup.
        FBARRIER_MAX_SIZE = 17;
    }
}

c_enum! {
    /// Floating-point width.
    hsa_fp_type_t: u32;
    BASE "HSA_FP_TYPE_" {
        /// Half.
        F16 = 1, "HSA_FP_TYPE_16";
        /// Single.
        F32 = 2, "HSA_FP_TYPE_32";
        /// Double.
        F64 = 4, "HSA_FP_TYPE_64";
    }
}

c_enum! {
    /// Treatment of denormal numbers.
    hsa_flush_mode_t: u32;
    BASE "HSA_FLUSH_MODE_" {
        /// They become zero.
        FTZ = 1;
        /// They stay.
        NON_FTZ = 2;
    }
}

c_enum! {
    /// Roundings of a fused multiply-add.
    hsa_round_method_t: u32;
    BASE "HSA_ROUND_METHOD_" {
        /// One, at the end.
        SINGLE = 1;
        /// After the product too.
        DOUBLE = 2;
    }
}

c_enum! {
    /// Attribute of `hsa_wavefront_get_info`.
    hsa_wavefront_info_t: u32;
    BASE "HSA_WAVEFRONT_INFO_" {
        /// `u32`: work-items.
        SIZE = 0;
    }
}

c_enum! {
    /// Whether an executable still takes code objects.
    hsa_executable_state_t: u32;
    BASE "HSA_EXECUTABLE_STATE_" {
        /// Yes.
        UNFROZEN = 0;
        /// No; its symbols have addresses.
        FROZEN = 1;
    }
}

c_enum! {
    /// Attribute of `hsa_executable_get_info`.
    hsa_executable_info_t: u32;
    BASE "HSA_EXECUTABLE_INFO_" {
        /// [`hsa_profile_t`].
        PROFILE = 1;
        /// [`hsa_executable_state_t`].
        STATE = 2;
        /// [`hsa_default_float_rounding_mode_t`].
        DEFAULT_FLOAT_ROUNDING_MODE = 3;
    }
}

c_enum! {
    /// Kind of a symbol.
    hsa_symbol_kind_t: u32;
    BASE "HSA_SYMBOL_KIND_" {
        /// Variable.
        VARIABLE = 0;
        /// Kernel.
        KERNEL = 1;
        /// Indirect function.
        INDIRECT_FUNCTION = 2;
    }
}

c_enum! {
    /// Visibility of a symbol.
    hsa_symbol_linkage_t: u32;
    BASE "HSA_SYMBOL_LINKAGE_" {
        /// In its module.
        MODULE = 0;
        /// In the whole program.
        PROGRAM = 1;
    }
}

c_enum! {
    /// How many instances a variable has.
    hsa_variable_allocation_t: u32;
    BASE "HSA_VARIABLE_ALLOCATION_" {
        /// One on each agent.
        AGENT = 0;
        /// One.
        PROGRAM = 1;
    }
}

c_enum! {
    /// Segment of a variable.
    hsa_variable_segment_t: u32;
    BASE "HSA_VARIABLE_SEGMENT_" {
        /// Readable and writable.
        GLOBAL = 0;
        /// Constant.
        READONLY = 1;
    }
}

c_enum! {
    /// Attribute of `hsa_executable_symbol_get_info`.
    hsa_executable_symbol_info_t: u32;
    BASE "HSA_EXECUTABLE_SYMBOL_INFO_" {
        /// [`hsa_symbol_kind_t`].
        TYPE = 0;
        /// `u32`: length of the name, without a NUL.
        NAME_LENGTH = 1;
        /// `[c_char]`: the name, not NUL-terminated.
        NAME = 2;
        /// `u32`: length of the module's name; deprecated.
        MODULE_NAME_LENGTH = 3;
        /// `[c_char]`: the module's name; deprecated.
        MODULE_NAME = 4;
        /// [`hsa_symbol_linkage_t`].
        LINKAGE = 5;
        /// [`hsa_variable_allocation_t`].
        VARIABLE_ALLOCATION = 6;
        /// [`hsa_variable_segment_t`].
        VARIABLE_SEGMENT = 7;
        /// `u32`: alignment in bytes.
        VARIABLE_ALIGNMENT = 8;
        /// `u32`: bytes.
        VARIABLE_SIZE = 9;
        /// `bool`: constant.
        VARIABLE_IS_CONST = 10;
        /// `u32`: bytes of the kernel's arguments; zero where the compiler recorded none.
        KERNEL_KERNARG_SEGMENT_SIZE = 11;
        /// `u32`: alignment of the kernel's arguments; AMD's runtime says 16 always.
        KERNEL_KERNARG_SEGMENT_ALIGNMENT = 12;
        /// `u32`: bytes of group memory, without dynamic ones.
        KERNEL_GROUP_SEGMENT_SIZE = 13;
        /// `u32`: bytes of private memory of a work-item.
        KERNEL_PRIVATE_SEGMENT_SIZE = 14;
        /// `bool`: the kernel's stack size is not known.
        KERNEL_DYNAMIC_CALLSTACK = 15;
        /// `u32`: call convention of an indirect function.
        INDIRECT_FUNCTION_CALL_CONVENTION = 16;
        /// `bool`: a definition, not a declaration.
        IS_DEFINITION = 17;
        /// `u32`: call convention of a kernel.
        KERNEL_CALL_CONVENTION = 18;
        /// [`hsa_agent_t`] that the symbol was loaded for.
        AGENT = 20;
        /// `u64`: address of the variable.
        VARIABLE_ADDRESS = 21;
        /// `u64`: what goes into a dispatch packet; on AMD, the address of the descriptor.
        KERNEL_OBJECT = 22;
        /// `u64`: handle of an indirect function.
        INDIRECT_FUNCTION_OBJECT = 23;
    }
}

c_enum! {
    /// Kind of a code object in the deprecated interface.
    hsa_code_object_type_t: u32;
    BASE "HSA_CODE_OBJECT_TYPE_" {
        /// A program's code.
        PROGRAM = 0;
    }
}

c_enum! {
    /// Attribute of `hsa_code_object_get_info`; deprecated.
    hsa_code_object_info_t: u32;
    BASE "HSA_CODE_OBJECT_INFO_" {
        /// `[c_char; 64]`: version.
        VERSION = 0;
        /// [`hsa_code_object_type_t`].
        TYPE = 1;
        /// [`hsa_isa_t`].
        ISA = 2;
        /// [`hsa_machine_model_t`].
        MACHINE_MODEL = 3;
        /// [`hsa_profile_t`].
        PROFILE = 4;
        /// [`hsa_default_float_rounding_mode_t`].
        DEFAULT_FLOAT_ROUNDING_MODE = 5;
    }
}

c_enum! {
    /// Attribute of `hsa_code_symbol_get_info`; deprecated. The answers are those of
    /// [`hsa_executable_symbol_info_t`].
    hsa_code_symbol_info_t: u32;
    BASE "HSA_CODE_SYMBOL_INFO_" {
        /// [`hsa_symbol_kind_t`].
        TYPE = 0;
        /// `u32`.
        NAME_LENGTH = 1;
        /// `[c_char]`.
        NAME = 2;
        /// `u32`.
        MODULE_NAME_LENGTH = 3;
        /// `[c_char]`.
        MODULE_NAME = 4;
        /// [`hsa_symbol_linkage_t`].
        LINKAGE = 5;
        /// [`hsa_variable_allocation_t`].
        VARIABLE_ALLOCATION = 6;
        /// [`hsa_variable_segment_t`].
        VARIABLE_SEGMENT = 7;
        /// `u32`.
        VARIABLE_ALIGNMENT = 8;
        /// `u32`.
        VARIABLE_SIZE = 9;
        /// `bool`.
        VARIABLE_IS_CONST = 10;
        /// `u32`.
        KERNEL_KERNARG_SEGMENT_SIZE = 11;
        /// `u32`.
        KERNEL_KERNARG_SEGMENT_ALIGNMENT = 12;
        /// `u32`.
        KERNEL_GROUP_SEGMENT_SIZE = 13;
        /// `u32`.
        KERNEL_PRIVATE_SEGMENT_SIZE = 14;
        /// `bool`.
        KERNEL_DYNAMIC_CALLSTACK = 15;
        /// `u32`.
        INDIRECT_FUNCTION_CALL_CONVENTION = 16;
        /// `bool`.
        IS_DEFINITION = 17;
        /// `u32`.
        KERNEL_CALL_CONVENTION = 18;
    }
}

layout! {
    LAYOUTS;
    BASE hsa_agent_t: 8, 8 { handle: 0 }
    BASE hsa_cache_t: 8, 8 { handle: 0 }
    BASE hsa_signal_t: 8, 8 { handle: 0 }
    BASE hsa_signal_group_t: 8, 8 { handle: 0 }
    BASE hsa_region_t: 8, 8 { handle: 0 }
    BASE hsa_isa_t: 8, 8 { handle: 0 }
    BASE hsa_wavefront_t: 8, 8 { handle: 0 }
    BASE hsa_code_object_reader_t: 8, 8 { handle: 0 }
    BASE hsa_executable_t: 8, 8 { handle: 0 }
    BASE hsa_loaded_code_object_t: 8, 8 { handle: 0 }
    BASE hsa_executable_symbol_t: 8, 8 { handle: 0 }
    BASE hsa_code_object_t: 8, 8 { handle: 0 }
    BASE hsa_callback_data_t: 8, 8 { handle: 0 }
    BASE hsa_code_symbol_t: 8, 8 { handle: 0 }
    BASE hsa_dim3_t: 12, 4 { x: 0, y: 4, z: 8 }
    BASE hsa_queue_t: 40, 8 {
        r#type: 0, features: 4, base_address: 8, doorbell_signal: 16, size: 24, reserved1: 28, id: 32,
    }
}

enumerations! {
    hsa_status_t,
    hsa_access_permission_t,
    hsa_endianness_t,
    hsa_machine_model_t,
    hsa_profile_t,
    hsa_system_info_t,
    hsa_extension_t,
    hsa_agent_feature_t,
    hsa_device_type_t,
    hsa_default_float_rounding_mode_t,
    hsa_agent_info_t,
    hsa_exception_policy_t,
    hsa_cache_info_t,
    hsa_signal_condition_t,
    hsa_wait_state_t,
    hsa_queue_type_t,
    hsa_queue_feature_t,
    hsa_region_segment_t,
    hsa_region_global_flag_t,
    hsa_region_info_t,
    hsa_isa_info_t,
    hsa_fp_type_t,
    hsa_flush_mode_t,
    hsa_round_method_t,
    hsa_wavefront_info_t,
    hsa_executable_state_t,
    hsa_executable_info_t,
    hsa_symbol_kind_t,
    hsa_symbol_linkage_t,
    hsa_variable_allocation_t,
    hsa_variable_segment_t,
    hsa_executable_symbol_info_t,
    hsa_code_object_type_t,
    hsa_code_object_info_t,
    hsa_code_symbol_info_t,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_print_their_c_name_or_their_number() {
        assert_eq!(
            format!("{:?}", hsa_status_t::ERROR_MEMORY_FAULT),
            "HSA_STATUS_ERROR_MEMORY_FAULT"
        );
        assert_eq!(
            format!("{:?}", hsa_status_t(0x4242)),
            "hsa_status_t(0x4242)"
        );
        assert_eq!(
            hsa_agent_info_t::NUM_XCC.name(),
            Some("HSA_AMD_AGENT_INFO_NUM_XCC")
        );
    }

    /// The highest bit of a 32-bit mask is no negative number.
    #[test]
    fn the_highest_bit_has_a_name() {
        let hang = crate::hsa_amd_memory_fault_reason_t::HANG;
        assert_eq!(hang.0, 0x8000_0000);
        assert_eq!(hang.name(), Some("HSA_AMD_MEMORY_FAULT_HANG"));
    }
}
