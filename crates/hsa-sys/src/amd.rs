//! Types and constants of `hsa_ext_amd.h`: pools, links, pointers, IPC, events, virtual memory.
//!
//! Attributes that extend an enumeration of `hsa.h` are in `hsa`, packets in `aql`.

use core::ffi::c_void;
use core::fmt;

use crate::{hsa_access_permission_t, hsa_agent_t, hsa_signal_condition_t};

/// [`hsa_signal_condition_t`] where C fixes the width of the field to 32 bits.
pub type hsa_signal_condition32_t = hsa_signal_condition_t;

handles! {
    /// Physical memory of an agent together with rules of access.
    hsa_amd_memory_pool_t;
    /// Physical memory that can be mapped into a reserved address range; since ROCr 5.7.
    hsa_amd_vmem_alloc_handle_t;
}

c_enum! {
    /// What the agent's address translation can do; later than ROCr 5.2.
    hsa_amd_iommu_version_t: u32;
    LATER "HSA_IOMMU_SUPPORT_" {
        /// Nothing.
        NONE = 0;
        /// Shares the host's page tables.
        V2 = 1;
    }
}

c_enum! {
    /// Bits of the agent's memory; later than ROCr 5.2. Bit n is bit `n % 8` of byte `n / 8` of
    /// the answer.
    hsa_amd_agent_memory_properties_t: u32;
    LATER "HSA_AMD_MEMORY_PROPERTY_" {
        /// The agent's memory is the host's.
        AGENT_IS_APU = 1;
    }
}

/// Clocks of an agent, read at one time; later than ROCr 5.2.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hsa_amd_clock_counters_t {
    /// The agent's counter.
    pub gpu_clock_counter: u64,
    /// The host's counter.
    pub cpu_clock_counter: u64,
    /// The system clock.
    pub system_clock_counter: u64,
    /// Ticks of the system clock per second.
    pub system_clock_frequency: u64,
}

/// Registers that flush the host's writes to an agent's memory over PCIe.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(non_snake_case, reason = "the C names of the fields")]
pub struct hsa_amd_hdp_flush_t {
    /// Write 1 to flush memory.
    pub HDP_MEM_FLUSH_CNTL: *mut u32,
    /// Write 1 to flush registers.
    pub HDP_REG_FLUSH_CNTL: *mut u32,
}

c_enum! {
    /// Coherency of fine-grained memory on an agent; deprecated.
    hsa_amd_coherency_type_t: u32;
    BASE "HSA_AMD_COHERENCY_TYPE_" {
        /// Coherent.
        COHERENT = 0;
        /// Not coherent.
        NONCOHERENT = 1;
    }
}

/// Ticks of the system clock at which a dispatch started and ended.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hsa_amd_profiling_dispatch_time_t {
    /// Start.
    pub start: u64,
    /// End.
    pub end: u64,
}

/// Ticks of the system clock at which a copy started and ended.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hsa_amd_profiling_async_copy_time_t {
    /// Start.
    pub start: u64,
    /// End.
    pub end: u64,
}

c_enum! {
    /// Properties of a signal; bits. Functions take them as `u64`.
    hsa_amd_signal_attribute_t: u32;
    BASE "HSA_AMD_SIGNAL_" {
        /// Only AMD GPUs wait on it.
        AMD_GPU_ONLY = 1;
        /// Other processes may use it.
        IPC = 2;
    }
}

c_enum! {
    /// Segment that a pool belongs to.
    hsa_amd_segment_t: u32;
    BASE "HSA_AMD_SEGMENT_" {
        /// Visible to all agents.
        GLOBAL = 0;
        /// Constant while a kernel runs.
        READONLY = 1;
        /// One work-item's.
        PRIVATE = 2;
        /// One workgroup's.
        GROUP = 3;
    }
}

c_enum! {
    /// Properties of a pool in the global segment; bits.
    hsa_amd_memory_pool_global_flag_t: u32;
    BASE "HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_" {
        /// Kernel arguments may lie here.
        KERNARG_INIT = 1;
        /// Coherent between agents while kernels run.
        FINE_GRAINED = 2;
        /// Owned by one agent at a time.
        COARSE_GRAINED = 4;
    }
    LATER "HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_" {
        /// Fine-grained, with atomics of system scope made to work by device-specific means.
        EXTENDED_SCOPE_FINE_GRAINED = 8;
    }
}

c_enum! {
    /// Where a pool lies; later than ROCr 5.2.
    hsa_amd_memory_pool_location_t: u32;
    LATER "HSA_AMD_MEMORY_POOL_LOCATION_" {
        /// In the host's memory.
        CPU = 0;
        /// In a GPU's memory.
        GPU = 1;
    }
}

c_enum! {
    /// Attribute of `hsa_amd_memory_pool_get_info`; the type of the answer is given with each.
    hsa_amd_memory_pool_info_t: u32;
    BASE "HSA_AMD_MEMORY_POOL_INFO_" {
        /// [`hsa_amd_segment_t`].
        SEGMENT = 0;
        /// [`hsa_amd_memory_pool_global_flag_t`] bits.
        GLOBAL_FLAGS = 1;
        /// `usize`: bytes.
        SIZE = 2;
        /// `bool`: `hsa_amd_memory_pool_allocate` works here.
        RUNTIME_ALLOC_ALLOWED = 5;
        /// `usize`: sizes are rounded up to a multiple of this.
        RUNTIME_ALLOC_GRANULE = 6;
        /// `usize`: alignment of allocations.
        RUNTIME_ALLOC_ALIGNMENT = 7;
        /// `bool`: every agent can be allowed to use allocations.
        ACCESSIBLE_BY_ALL = 15;
        /// `usize`: most bytes that can be allocated together.
        ALLOC_MAX_SIZE = 16;
    }
    LATER "HSA_AMD_MEMORY_POOL_INFO_" {
        /// [`hsa_amd_memory_pool_location_t`].
        LOCATION = 17;
        /// `usize`: allocations that are multiples of this waste nothing.
        RUNTIME_ALLOC_REC_GRANULE = 18;
    }
}

c_enum! {
    /// Wishes about an allocation; bits. ROCr 5.2 demands zero.
    hsa_amd_memory_pool_flag_t: u32;
    LATER "HSA_AMD_MEMORY_POOL_" {
        /// None.
        STANDARD_FLAG = 0;
        /// Ordered per link only; atomics need not be visible to the system.
        PCIE_FLAG = 1;
        /// Physically contiguous.
        CONTIGUOUS_FLAG = 2;
        /// Executable; since ROCr 6.3.
        EXECUTABLE_FLAG = 4;
        /// Not cached.
        UNCACHED_FLAG = 8;
    }
}

/// Rows and layers of memory for `hsa_amd_memory_async_copy_rect`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hsa_pitched_ptr_t {
    /// First byte; a multiple of 4.
    pub base: *mut c_void,
    /// Bytes from row to row; a multiple of 4.
    pub pitch: usize,
    /// Bytes from layer to layer; a multiple of 4.
    pub slice: usize,
}

c_enum! {
    /// Direction of a rectangular copy.
    hsa_amd_copy_direction_t: u32;
    BASE "hsa" {
        /// Host to host.
        HOST_TO_HOST = 0, "hsaHostToHost";
        /// Host to device.
        HOST_TO_DEVICE = 1, "hsaHostToDevice";
        /// Device to host.
        DEVICE_TO_HOST = 2, "hsaDeviceToHost";
        /// Device to device.
        DEVICE_TO_DEVICE = 3, "hsaDeviceToDevice";
    }
}

c_enum! {
    /// An SDMA engine; bit n is engine n. Later than ROCr 5.2.
    hsa_amd_sdma_engine_id_t: u32;
    LATER "HSA_AMD_SDMA_" {
        /// Engine 0.
        ENGINE_0 = 0x1;
        /// Engine 1.
        ENGINE_1 = 0x2;
        /// Engine 2.
        ENGINE_2 = 0x4;
        /// Engine 3.
        ENGINE_3 = 0x8;
        /// Engine 4.
        ENGINE_4 = 0x10;
        /// Engine 5.
        ENGINE_5 = 0x20;
        /// Engine 6.
        ENGINE_6 = 0x40;
        /// Engine 7.
        ENGINE_7 = 0x80;
        /// Engine 8.
        ENGINE_8 = 0x100;
        /// Engine 9.
        ENGINE_9 = 0x200;
        /// Engine 10.
        ENGINE_10 = 0x400;
        /// Engine 11.
        ENGINE_11 = 0x800;
        /// Engine 12.
        ENGINE_12 = 0x1000;
        /// Engine 13.
        ENGINE_13 = 0x2000;
        /// Engine 14.
        ENGINE_14 = 0x4000;
        /// Engine 15.
        ENGINE_15 = 0x8000;
    }
}

c_enum! {
    /// Whether an agent can use a pool's allocations.
    hsa_amd_memory_pool_access_t: u32;
    BASE "HSA_AMD_MEMORY_POOL_ACCESS_" {
        /// Never.
        NEVER_ALLOWED = 0;
        /// Always.
        ALLOWED_BY_DEFAULT = 1;
        /// After `hsa_amd_agents_allow_access`.
        DISALLOWED_BY_DEFAULT = 2;
    }
}

c_enum! {
    /// Kind of a link between an agent and a pool.
    hsa_amd_link_info_type_t: u32;
    BASE "HSA_AMD_LINK_INFO_TYPE_" {
        /// HyperTransport.
        HYPERTRANSPORT = 0;
        /// QuickPath.
        QPI = 1;
        /// PCI Express.
        PCIE = 2;
        /// InfiniBand; the spelling is the header's.
        INFINBAND = 3;
        /// xGMI (Infinity Fabric).
        XGMI = 4;
    }
}

/// One link between an agent and a pool.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hsa_amd_memory_pool_link_info_t {
    /// Nanoseconds.
    pub min_latency: u32,
    /// Nanoseconds.
    pub max_latency: u32,
    /// Megabytes per second.
    pub min_bandwidth: u32,
    /// Megabytes per second.
    pub max_bandwidth: u32,
    /// The link carries 32-bit atomics.
    pub atomic_support_32bit: bool,
    /// The link carries 64-bit atomics.
    pub atomic_support_64bit: bool,
    /// The link keeps caches coherent.
    pub coherent_support: bool,
    /// Kind.
    pub link_type: hsa_amd_link_info_type_t,
    /// NUMA distance from the agent.
    pub numa_distance: u32,
}

c_enum! {
    /// Attribute of `hsa_amd_agent_memory_pool_get_info`.
    hsa_amd_agent_memory_pool_info_t: u32;
    BASE "HSA_AMD_AGENT_MEMORY_POOL_INFO_" {
        /// [`hsa_amd_memory_pool_access_t`].
        ACCESS = 0;
        /// `u32`: links between the two.
        NUM_LINK_HOPS = 1;
        /// [`hsa_amd_memory_pool_link_info_t`], one for each hop.
        LINK_INFO = 2;
    }
}

/// An image's layout as a driver describes it. It goes on behind `data`, so a copy is incomplete.
#[repr(C)]
#[derive(Debug)]
#[allow(non_snake_case, reason = "the C name of the field")]
pub struct hsa_amd_image_descriptor_t {
    /// Version of the description.
    pub version: u32,
    /// PCI vendor in the upper half, device in the lower.
    pub deviceID: u32,
    /// The start of what the vendor says.
    pub data: [u32; 1],
}

c_enum! {
    /// Where memory comes from.
    hsa_amd_pointer_type_t: u32;
    BASE "HSA_EXT_POINTER_TYPE_" {
        /// Not known to the runtime.
        UNKNOWN = 0;
        /// Allocated through the runtime.
        HSA = 1;
        /// Host memory locked for agents.
        LOCKED = 2;
        /// Imported from graphics.
        GRAPHICS = 3;
        /// Attached from another process.
        IPC = 4;
    }
    LATER "HSA_EXT_POINTER_TYPE_" {
        /// A reserved address range with nothing behind it; since ROCr 6.1.
        RESERVED_ADDR = 5;
        /// Mapped by the virtual memory functions; after ROCr 7.1. Older runtimes say UNKNOWN.
        HSA_VMEM = 6;
    }
}

/// What the runtime knows about an allocation.
///
/// Set `size` before the call; afterwards it says how many bytes the runtime filled in. Runtimes
/// after ROCr 7.1 know a longer form (`registered` at 52, `alloc_flags` at 56); this is the form
/// that all know.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(non_snake_case, reason = "the C names of the fields")]
pub struct hsa_amd_pointer_info_t {
    /// Bytes of this structure.
    pub size: u32,
    /// Where the memory comes from. Nothing below means anything for UNKNOWN.
    pub r#type: hsa_amd_pointer_type_t,
    /// First address for agents.
    pub agentBaseAddress: *mut c_void,
    /// First address for the host.
    pub hostBaseAddress: *mut c_void,
    /// Bytes.
    pub sizeInBytes: usize,
    /// What `hsa_amd_pointer_info_set_userdata` left.
    pub userData: *mut c_void,
    /// The agent whose pool it is; zero where that agent is hidden from the process.
    pub agentOwner: hsa_agent_t,
    /// [`hsa_amd_memory_pool_global_flag_t`] bits.
    pub global_flags: u32,
}

/// Names an allocation to other processes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct hsa_amd_ipc_memory_t {
    /// Opaque.
    pub handle: [u32; 8],
}

/// Names a signal to other processes.
pub type hsa_amd_ipc_signal_t = hsa_amd_ipc_memory_t;

c_enum! {
    /// What happened to an agent.
    hsa_amd_event_type_t: u32;
    BASE "HSA_AMD_" {
        /// It used an address that it cannot.
        GPU_MEMORY_FAULT_EVENT = 0;
    }
    LATER "HSA_AMD_" {
        /// Its hardware reported an exception.
        GPU_HW_EXCEPTION_EVENT = 1;
        /// An operation on its memory failed.
        GPU_MEMORY_ERROR_EVENT = 2;
    }
}

c_enum! {
    /// Why a memory access failed; bits.
    hsa_amd_memory_fault_reason_t: u32;
    BASE "HSA_AMD_MEMORY_FAULT_" {
        /// No such page, or not for the user.
        PAGE_NOT_PRESENT = 1 << 0;
        /// A write to a read-only page.
        READ_ONLY = 1 << 1;
        /// Execution of a page that must not be executed.
        NX = 1 << 2;
        /// A page for the host only.
        HOST_ONLY = 1 << 3;
        /// Uncorrectable error in device memory.
        DRAMECC = 1 << 4;
        /// The address is not exact.
        IMPRECISE = 1 << 5;
        /// Uncorrectable error in registers or caches.
        SRAMECC = 1 << 6;
        /// The agent was reset after it hung.
        HANG = 1 << 31;
    }
}

/// A failed memory access.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hsa_amd_gpu_memory_fault_info_t {
    /// Whose.
    pub agent: hsa_agent_t,
    /// Where.
    pub virtual_address: u64,
    /// [`hsa_amd_memory_fault_reason_t`] bits.
    pub fault_reason_mask: u32,
}

/// A hardware exception; later than ROCr 5.2.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hsa_amd_gpu_hw_exception_info_t {
    /// Whose.
    pub agent: hsa_agent_t,
    /// Kind of the reset.
    pub reset_type: u32,
    /// Bits: 0 a hang, 1 an uncorrectable error.
    pub reset_cause: u32,
}

/// A failed operation on memory; later than ROCr 5.2.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hsa_amd_gpu_memory_error_info_t {
    /// Whose.
    pub agent: hsa_agent_t,
    /// Where.
    pub virtual_address: u64,
    /// Bits: 0 hardware still uses the memory.
    pub error_reason_mask: u32,
}

/// The details of an event; the event's type says which.
#[repr(C)]
#[derive(Clone, Copy)]
pub union hsa_amd_event_info_t {
    /// For [`hsa_amd_event_type_t::GPU_MEMORY_FAULT_EVENT`].
    pub memory_fault: hsa_amd_gpu_memory_fault_info_t,
    /// For [`hsa_amd_event_type_t::GPU_HW_EXCEPTION_EVENT`].
    pub hw_exception: hsa_amd_gpu_hw_exception_info_t,
    /// For [`hsa_amd_event_type_t::GPU_MEMORY_ERROR_EVENT`].
    pub memory_error: hsa_amd_gpu_memory_error_info_t,
}

impl fmt::Debug for hsa_amd_event_info_t {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("hsa_amd_event_info_t { .. }")
    }
}

/// What a system event handler is told.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hsa_amd_event_t {
    /// What happened; look at `info` for known types only.
    pub event_type: hsa_amd_event_type_t,
    /// Its details; C has the union's members here directly.
    pub info: hsa_amd_event_info_t,
}

c_enum! {
    /// Who goes first where queues compete.
    hsa_amd_queue_priority_t: u32;
    BASE "HSA_AMD_QUEUE_PRIORITY_" {
        /// After the others and graphics.
        LOW = 0;
        /// As usual.
        NORMAL = 1;
        /// Before the others and graphics.
        HIGH = 2;
    }
}

c_enum! {
    /// Attribute of `hsa_amd_queue_get_info`; later than ROCr 5.2.
    hsa_queue_info_attribute_t: u32;
    LATER "HSA_AMD_QUEUE_INFO_" {
        /// [`hsa_agent_t`] that has the hardware queue.
        AGENT = 0;
        /// `u64`: id of the doorbell.
        DOORBELL_ID = 1;
    }
    LATER "HSA_QUEUE_INFO_" {
        /// `u32`: how many counted queues share the hardware queue; all ones for others. After
        /// ROCr 7.1.
        USE_COUNT = 2;
        /// `u32`: id of the hardware queue. After ROCr 7.1.
        HW_ID = 3;
    }
}

c_enum! {
    /// Memory model of shared virtual memory.
    hsa_amd_svm_model_t: u32;
    BASE "HSA_AMD_SVM_GLOBAL_FLAG_" {
        /// Coherent between agents while kernels run.
        FINE_GRAINED = 0;
        /// Owned by one agent at a time.
        COARSE_GRAINED = 1;
        /// A queried range has parts of both.
        INDETERMINATE = 2;
    }
}

c_enum! {
    /// Attribute of a range of shared virtual memory; the value's meaning is given with each.
    hsa_amd_svm_attribute_t: u32;
    BASE "HSA_AMD_SVM_ATTRIB_" {
        /// [`hsa_amd_svm_model_t`].
        GLOBAL_FLAG = 0;
        /// Flag: never written.
        READ_ONLY = 1;
        /// Flag: stay within agents that xGMI connects.
        HIVE_LOCAL = 2;
        /// Pages that migrate together, as a power of two.
        MIGRATION_GRANULARITY = 3;
        /// Agent handle to migrate to; zero is none.
        PREFERRED_LOCATION = 4;
        /// Agent handle of the last prefetch; only queried.
        PREFETCH_LOCATION = 5;
        /// Flag: mostly read.
        READ_MOSTLY = 6;
        /// Agent handle: may access, with page faults.
        AGENT_ACCESSIBLE = 0x200;
        /// Agent handle: may access, without page faults.
        AGENT_ACCESSIBLE_IN_PLACE = 0x201;
        /// Agent handle: may not access.
        AGENT_NO_ACCESS = 0x202;
        /// Agent handle to ask about; only queried, and the attribute itself is the answer.
        ACCESS_QUERY = 0x203;
    }
    LATER "HSA_AMD_SVM_ATTRIB_" {
        /// Flag: agents may execute it.
        GPU_EXEC = 7;
    }
}

/// An attribute of shared virtual memory with its value.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hsa_amd_svm_attribute_pair_t {
    /// [`hsa_amd_svm_attribute_t`], in 64 bits.
    pub attribute: u64,
    /// Value.
    pub value: u64,
}

c_enum! {
    /// How a dma-buf is mapped; bits. Functions take them as `u64`. Later than ROCr 5.2.
    hsa_amd_dma_buf_mapping_type_t: u32;
    LATER "HSA_AMD_DMABUF_MAPPING_TYPE_" {
        /// As the driver likes.
        NONE = 0;
        /// Over PCIe.
        PCIE = 1;
    }
}

c_enum! {
    /// Wishes about an address range; bits. Functions take them as `u64`. Later than ROCr 5.2.
    hsa_amd_vmem_address_reserve_flag_t: u32;
    LATER "HSA_AMD_VMEM_ADDRESS_" {
        /// Do not tell the driver.
        NO_REGISTER = 1;
    }
}

c_enum! {
    /// Kind of memory behind a handle; later than ROCr 5.2.
    hsa_amd_memory_type_t: u32;
    LATER "MEMORY_TYPE_" {
        /// May move.
        NONE = 0;
        /// Stays.
        PINNED = 1;
    }
}

/// An agent and what it may do with a mapping; later than ROCr 5.2.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hsa_amd_memory_access_desc_t {
    /// What.
    pub permissions: hsa_access_permission_t,
    /// Who.
    pub agent_handle: hsa_agent_t,
}

/// A file that device memory is written to or read from; after ROCr 7.1.
#[repr(C)]
#[derive(Clone, Copy)]
pub union hsa_amd_ais_file_handle_t {
    /// Elsewhere: a handle.
    pub handle: *mut c_void,
    /// On Linux: a file descriptor.
    pub fd: core::ffi::c_int,
    /// Makes it eight bytes everywhere.
    pub pad: [u8; 8],
}

impl fmt::Debug for hsa_amd_ais_file_handle_t {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("hsa_amd_ais_file_handle_t { .. }")
    }
}

const _: () = assert!(size_of::<hsa_amd_ais_file_handle_t>() == 8);

/// One operation of `hsa_amd_memory_async_batch_copy`; after ROCr 7.1.
///
/// Its fields still change from version to version, so there are none here.
#[repr(C)]
#[derive(Debug)]
pub struct hsa_amd_memory_copy_op_t {
    _fields: [u8; 0],
}

layout! {
    LAYOUTS;
    BASE hsa_amd_memory_pool_t: 8, 8 { handle: 0 }
    LATER hsa_amd_vmem_alloc_handle_t: 8, 8 { handle: 0 }
    LATER hsa_amd_clock_counters_t: 32, 8 {
        gpu_clock_counter: 0, cpu_clock_counter: 8, system_clock_counter: 16,
        system_clock_frequency: 24,
    }
    BASE hsa_amd_hdp_flush_t: 16, 8 { HDP_MEM_FLUSH_CNTL: 0, HDP_REG_FLUSH_CNTL: 8 }
    BASE hsa_amd_profiling_dispatch_time_t: 16, 8 { start: 0, end: 8 }
    BASE hsa_amd_profiling_async_copy_time_t: 16, 8 { start: 0, end: 8 }
    BASE hsa_pitched_ptr_t: 24, 8 { base: 0, pitch: 8, slice: 16 }
    BASE hsa_amd_memory_pool_link_info_t: 28, 4 {
        min_latency: 0, max_latency: 4, min_bandwidth: 8, max_bandwidth: 12,
        atomic_support_32bit: 16, atomic_support_64bit: 17, coherent_support: 18, link_type: 20,
        numa_distance: 24,
    }
    BASE hsa_amd_image_descriptor_t: 12, 4 { version: 0, deviceID: 4, data: 8 }
    BASE hsa_amd_pointer_info_t: 56, 8 {
        size: 0, r#type: 4, agentBaseAddress: 8, hostBaseAddress: 16, sizeInBytes: 24, userData: 32,
        agentOwner: 40, global_flags: 48,
    }
    BASE hsa_amd_ipc_memory_t: 32, 4 { handle: 0 }
    BASE hsa_amd_gpu_memory_fault_info_t: 24, 8 {
        agent: 0, virtual_address: 8, fault_reason_mask: 16,
    }
    LATER hsa_amd_gpu_hw_exception_info_t: 16, 8 { agent: 0, reset_type: 8, reset_cause: 12 }
    LATER hsa_amd_gpu_memory_error_info_t: 24, 8 {
        agent: 0, virtual_address: 8, error_reason_mask: 16,
    }
    BASE hsa_amd_event_t: 32, 8 { event_type: 0, info as "memory_fault": 8 }
    BASE hsa_amd_svm_attribute_pair_t: 16, 8 { attribute: 0, value: 8 }
    LATER hsa_amd_memory_access_desc_t: 16, 8 { permissions: 0, agent_handle: 8 }
}

enumerations! {
    hsa_amd_iommu_version_t,
    hsa_amd_agent_memory_properties_t,
    hsa_amd_coherency_type_t,
    hsa_amd_signal_attribute_t,
    hsa_amd_segment_t,
    hsa_amd_memory_pool_global_flag_t,
    hsa_amd_memory_pool_location_t,
    hsa_amd_memory_pool_info_t,
    hsa_amd_memory_pool_flag_t,
    hsa_amd_copy_direction_t,
    hsa_amd_sdma_engine_id_t,
    hsa_amd_memory_pool_access_t,
    hsa_amd_link_info_type_t,
    hsa_amd_agent_memory_pool_info_t,
    hsa_amd_pointer_type_t,
    hsa_amd_event_type_t,
    hsa_amd_memory_fault_reason_t,
    hsa_amd_queue_priority_t,
    hsa_queue_info_attribute_t,
    hsa_amd_svm_model_t,
    hsa_amd_svm_attribute_t,
    hsa_amd_dma_buf_mapping_type_t,
    hsa_amd_vmem_address_reserve_flag_t,
    hsa_amd_memory_type_t,
}
