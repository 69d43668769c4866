//! Structures, statuses and flags that the thunk shares with ROCr: `hsakmttypes.h`.
//!
//! The header packs everything to 4 bytes, so a 64-bit field may lie at a multiple of 4; fields are read and written
//! by value, never by reference. The layouts are those of the thunk of ROCm 5.2.3; the thunk of ROCm 6.2 has the same
//! sizes and gives names to words that are reserved here.

use std::ffi::c_void;

/// `HSAKMT_STATUS`: what every function of the thunk returns.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status(pub(crate) u32);

impl Status {
    pub(crate) const SUCCESS: Self = Self(0);
    pub(crate) const ERROR: Self = Self(1);
    pub(crate) const INVALID_PARAMETER: Self = Self(3);
    pub(crate) const INVALID_HANDLE: Self = Self(4);
    pub(crate) const INVALID_NODE_UNIT: Self = Self(5);
    pub(crate) const NO_MEMORY: Self = Self(6);
    pub(crate) const NOT_SUPPORTED: Self = Self(11);
    pub(crate) const UNAVAILABLE: Self = Self(12);
    pub(crate) const OUT_OF_RESOURCES: Self = Self(13);
    pub(crate) const KERNEL_IO_CHANNEL_NOT_OPENED: Self = Self(20);
    pub(crate) const KERNEL_ALREADY_OPENED: Self = Self(22);
    pub(crate) const WAIT_TIMEOUT: Self = Self(31);
    pub(crate) const MEMORY_NOT_REGISTERED: Self = Self(36);
    pub(crate) const MEMORY_ALIGNMENT: Self = Self(37);
}

/// `HsaVersionInfo`.
#[repr(C, packed(4))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct VersionInfo {
    pub(crate) major: u32,
    pub(crate) minor: u32,
}

/// `HsaSystemProperties`.
#[repr(C, packed(4))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct SystemProperties {
    pub(crate) num_nodes: u32,
    pub(crate) platform_oem: u32,
    pub(crate) platform_id: u32,
    pub(crate) platform_rev: u32,
}

/// `HsaNodeProperties`.
#[repr(C, packed(4))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeProperties {
    pub(crate) num_cpu_cores: u32,
    pub(crate) num_f_compute_cores: u32,
    pub(crate) num_memory_banks: u32,
    pub(crate) num_caches: u32,
    pub(crate) num_io_links: u32,
    pub(crate) c_compute_id_lo: u32,
    pub(crate) f_compute_id_lo: u32,
    pub(crate) capability: u32,
    pub(crate) max_waves_per_simd: u32,
    pub(crate) lds_size_in_kb: u32,
    pub(crate) gds_size_in_kb: u32,
    pub(crate) wave_front_size: u32,
    pub(crate) num_shader_banks: u32,
    pub(crate) num_arrays: u32,
    pub(crate) num_cu_per_array: u32,
    pub(crate) num_simd_per_cu: u32,
    pub(crate) max_slots_scratch_cu: u32,
    pub(crate) engine_id: u32,
    pub(crate) vendor_id: u16,
    pub(crate) device_id: u16,
    pub(crate) location_id: u32,
    pub(crate) local_mem_size: u64,
    pub(crate) max_engine_clock_mhz_f_compute: u32,
    pub(crate) max_engine_clock_mhz_c_compute: u32,
    pub(crate) drm_render_minor: i32,
    pub(crate) marketing_name: [u16; 64],
    pub(crate) amd_name: [u8; 64],
    pub(crate) ucode_engine_versions: u32,
    pub(crate) debug_properties: u64,
    pub(crate) hive_id: u64,
    pub(crate) num_sdma_engines: u32,
    pub(crate) num_sdma_xgmi_engines: u32,
    pub(crate) num_sdma_queues_per_engine: u8,
    pub(crate) num_cp_queues: u8,
    pub(crate) num_gws: u8,
    pub(crate) reserved2: u8,
    pub(crate) domain: u32,
    pub(crate) unique_id: u64,
    pub(crate) vgpr_size_per_cu: u32,
    pub(crate) sgpr_size_per_cu: u32,
    /// Reserved in 5.2.3; later `NumXcc`, `KFDGpuID` and `FamilyID`.
    pub(crate) num_xcc: u32,
    pub(crate) kfd_gpu_id: u32,
    pub(crate) family_id: u32,
}

/// Bits of `HSA_CAPABILITY`.
pub(crate) mod capability {
    pub(crate) const QUEUE_SIZE_POWER_OF_TWO: u32 = 1 << 3;
    pub(crate) const QUEUE_SIZE_32BIT: u32 = 1 << 4;
    /// `DoorbellType` 2: the doorbell is a 64-bit packet index.
    pub(crate) const DOORBELL_64BIT: u32 = 2 << 12;
    pub(crate) const SRAM_EDC: u32 = 1 << 26;
    pub(crate) const SVM_API: u32 = 1 << 27;
}

/// `HsaMemoryProperties`.
#[repr(C, packed(4))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryProperties {
    pub(crate) heap_type: u32,
    pub(crate) size_in_bytes: u64,
    pub(crate) flags: u32,
    pub(crate) width: u32,
    pub(crate) memory_clock_max: u32,
    pub(crate) virtual_base_address: u64,
}

/// `HSA_HEAPTYPE`.
pub(crate) mod heap {
    pub(crate) const SYSTEM: u32 = 0;
    pub(crate) const FRAME_BUFFER_PUBLIC: u32 = 1;
    pub(crate) const GPU_LDS: u32 = 4;
    pub(crate) const GPU_SCRATCH: u32 = 5;
}

/// `HsaCacheProperties`.
#[repr(C, packed(4))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheProperties {
    pub(crate) processor_id_low: u32,
    pub(crate) level: u32,
    /// KiB.
    pub(crate) size: u32,
    pub(crate) line_size: u32,
    pub(crate) lines_per_tag: u32,
    pub(crate) associativity: u32,
    pub(crate) latency: u32,
    pub(crate) kind: u32,
    pub(crate) sibling_map: [u32; 256],
}

/// Bits of `HsaCacheType`.
pub(crate) mod cache {
    pub(crate) const DATA: u32 = 1;
    pub(crate) const CPU: u32 = 4;
    pub(crate) const HSACU: u32 = 8;
}

/// `HsaIoLinkProperties`.
#[repr(C, packed(4))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct IoLinkProperties {
    pub(crate) kind: u32,
    pub(crate) version_major: u32,
    pub(crate) version_minor: u32,
    pub(crate) node_from: u32,
    pub(crate) node_to: u32,
    pub(crate) weight: u32,
    pub(crate) minimum_latency: u32,
    pub(crate) maximum_latency: u32,
    pub(crate) minimum_bandwidth: u32,
    pub(crate) maximum_bandwidth: u32,
    pub(crate) rec_transfer_size: u32,
    pub(crate) flags: u32,
}

/// `HSA_IOLINKTYPE`.
pub(crate) mod link {
    pub(crate) const PCI_EXPRESS: u32 = 2;
    pub(crate) const XGMI: u32 = 11;
}

/// `HsaMemFlags`, passed by value.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemFlags(pub(crate) u32);

impl MemFlags {
    /// The block backs the private memory of work-items: address space first, pages on demand.
    pub(crate) fn scratch(self) -> bool {
        self.0 & 1 << 9 != 0
    }

    /// The address is given, not asked for.
    pub(crate) fn fixed_address(self) -> bool {
        self.0 & 1 << 15 != 0
    }
}

/// `HsaMemMapFlags`, passed by value; nothing in it changes what the emulator does.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemMapFlags(pub(crate) u32);

/// `HsaQueueResource`.
#[repr(C, packed(4))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueResource {
    pub(crate) queue_id: u64,
    /// Address of the doorbell.
    pub(crate) doorbell: u64,
    /// Address of the write index.
    pub(crate) write_ptr: u64,
    /// Address of the read index.
    pub(crate) read_ptr: u64,
    /// Address of the value that takes exceptions, or zero.
    pub(crate) error_reason: u64,
}

/// `HSA_QUEUE_TYPE`.
pub(crate) mod queue_type {
    pub(crate) const SDMA: u32 = 2;
    pub(crate) const SDMA_XGMI: u32 = 5;
    pub(crate) const COMPUTE_AQL: u32 = 21;
}

/// `HsaEventDescriptor`.
#[repr(C, packed(4))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventDescriptor {
    pub(crate) event_type: u32,
    pub(crate) node_id: u32,
    pub(crate) sync_var: [u64; 2],
}

/// `HSA_EVENTTYPE` of memory faults; all other types are alike to the emulator.
pub(crate) const EVENT_TYPE_MEMORY: u32 = 8;

/// `HsaMemoryAccessFault`, in the place of the union that it is part of.
#[repr(C, packed(4))]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MemoryAccessFault {
    pub(crate) node_id: u32,
    pub(crate) virtual_address: u64,
    /// `HsaAccessAttributeFailure`.
    pub(crate) failure: u32,
    pub(crate) flags: u32,
}

impl MemoryAccessFault {
    /// `Failure`: the page is not there.
    pub(crate) const NOT_PRESENT: u32 = 1;
    /// `HSA_EVENTID_MEMORY_FATAL_PROCESS`.
    pub(crate) const FATAL_PROCESS: u32 = 1;
}

/// `HsaEvent`. ROCr reads all of it; `hw_data2` is the address of the mailbox, to which whoever raises the event
/// first writes its number.
#[repr(C, packed(4))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) event_id: u32,
    pub(crate) event_type: u32,
    pub(crate) fault: MemoryAccessFault,
    pub(crate) hw_data1: u64,
    pub(crate) hw_data2: u64,
    pub(crate) hw_data3: u32,
}

/// `HsaClockCounters`.
#[repr(C, packed(4))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockCounters {
    pub(crate) gpu: u64,
    pub(crate) cpu: u64,
    pub(crate) system: u64,
    pub(crate) system_frequency_hz: u64,
}

/// `HsaGpuTileConfig`.
#[repr(C, packed(4))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct GpuTileConfig {
    pub(crate) tile_config: u64,
    pub(crate) macro_tile_config: u64,
    pub(crate) num_tile_configs: u32,
    pub(crate) num_macro_tile_configs: u32,
    pub(crate) gb_addr_config: u32,
    pub(crate) num_banks: u32,
    pub(crate) num_ranks: u32,
    pub(crate) reserved: [u32; 7],
}

/// `HsaPointerInfo`.
#[repr(C, packed(4))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct PointerInfo {
    pub(crate) kind: u32,
    pub(crate) node: u32,
    pub(crate) mem_flags: u32,
    pub(crate) cpu_address: u64,
    pub(crate) gpu_address: u64,
    pub(crate) size_in_bytes: u64,
    pub(crate) num_registered_nodes: u32,
    pub(crate) num_mapped_nodes: u32,
    pub(crate) registered_nodes: *const u32,
    pub(crate) mapped_nodes: *const u32,
    pub(crate) user_data: *mut c_void,
}

/// `HSA_POINTER_TYPE`.
pub(crate) mod pointer {
    pub(crate) const ALLOCATED: u32 = 1;
    pub(crate) const REGISTERED_USER: u32 = 2;
    pub(crate) const REGISTERED_SHARED: u32 = 4;
}

/// `HsaSharedMemoryHandle`, sixteen times two bytes in the eyes of ROCr.
pub(crate) type SharedMemoryHandle = [u32; 8];

/// `HSA_SVM_ATTRIBUTE`.
#[repr(C, packed(4))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SvmAttribute {
    pub(crate) kind: u32,
    pub(crate) value: u32,
}

/// `HSA_SVM_ATTR_TYPE`.
pub(crate) mod svm {
    pub(crate) const PREFERRED_LOC: u32 = 0;
    pub(crate) const PREFETCH_LOC: u32 = 1;
    pub(crate) const ACCESS: u32 = 2;
    pub(crate) const ACCESS_IN_PLACE: u32 = 3;
    pub(crate) const NO_ACCESS: u32 = 4;
    pub(crate) const SET_FLAGS: u32 = 5;
    pub(crate) const CLR_FLAGS: u32 = 6;
    pub(crate) const GRANULARITY: u32 = 7;
    /// A location that nobody asked for.
    pub(crate) const NOWHERE: u32 = u32::MAX;
}

/// Asserts what a compiler makes of the C header on x86-64.
macro_rules! layout {
    ($($name:ident: $size:literal { $($field:ident: $offset:literal),* $(,)? })+) => {
        const _: () = {
            $(
                assert!(size_of::<$name>() == $size, concat!("size of ", stringify!($name)));
                $(assert!(std::mem::offset_of!($name, $field) == $offset, concat!("offset of ", stringify!($field)));)*
            )+
        };
    };
}

layout! {
    VersionInfo: 8 {}
    SystemProperties: 16 {}
    NodeProperties: 356 {
        capability: 28, engine_id: 68, device_id: 74, local_mem_size: 80, drm_render_minor: 96, marketing_name: 100,
        amd_name: 228, debug_properties: 296, hive_id: 304, num_gws: 322, domain: 324, unique_id: 328, num_xcc: 344,
    }
    MemoryProperties: 32 { size_in_bytes: 4, virtual_base_address: 24 }
    CacheProperties: 1056 { kind: 28, sibling_map: 32 }
    IoLinkProperties: 48 { weight: 20, flags: 44 }
    QueueResource: 40 { doorbell: 8, write_ptr: 16, read_ptr: 24, error_reason: 32 }
    EventDescriptor: 24 {}
    MemoryAccessFault: 20 { virtual_address: 4, failure: 12, flags: 16 }
    Event: 48 { fault: 8, hw_data1: 28, hw_data2: 36, hw_data3: 44 }
    ClockCounters: 32 {}
    GpuTileConfig: 64 { num_tile_configs: 16, reserved: 36 }
    PointerInfo: 68 { cpu_address: 12, num_registered_nodes: 36, registered_nodes: 44, user_data: 60 }
    SvmAttribute: 8 {}
}
