//! What stands behind handles: `amd_hsa_signal.h` and `amd_hsa_queue.h`.
//!
//! A signal's handle is the address of its [`amd_signal_t`]; a `*mut hsa_queue_t` of a hardware
//! queue points at the first field of its [`amd_queue_t`]. The packet processor reads and writes
//! both, so they are fixed; still, they are the runtime's, and other runtimes than AMD's have none.
//!
//! Other threads and agents change live ones at any time. Make no reference to one: read a field
//! through [`read_volatile`] of `&raw const`, or make an atomic of the field's pointer.
//!
//! [`read_volatile`]: core::ptr::read_volatile

use core::fmt;

use crate::{hsa_queue_t, hsa_signal_t};

c_enum! {
    /// What a signal is.
    amd_signal_kind_t: i64;
    BASE "AMD_SIGNAL_KIND_" {
        /// No signal.
        INVALID = 0;
        /// A value in memory.
        USER = 1;
        /// A 64-bit register of a queue.
        DOORBELL = -1;
        /// A 32-bit register of an old queue.
        LEGACY_DOORBELL = -2;
    }
}

/// [`amd_signal_kind_t`] where C fixes the width of the field to 64 bits.
pub type amd_signal_kind64_t = amd_signal_kind_t;

/// The second word of a signal; its kind says which.
#[repr(C)]
#[derive(Clone, Copy)]
pub union amd_signal_value_t {
    /// For [`amd_signal_kind_t::USER`].
    pub value: i64,
    /// For [`amd_signal_kind_t::LEGACY_DOORBELL`].
    pub legacy_hardware_doorbell_ptr: *mut u32,
    /// For [`amd_signal_kind_t::DOORBELL`].
    pub hardware_doorbell_ptr: *mut u64,
}

impl fmt::Debug for amd_signal_value_t {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("amd_signal_value_t { .. }")
    }
}

/// A signal. The timestamps are in the agent's clock, valid once a dispatch or copy that signals
/// here has completed on a queue with profiling enabled.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
pub struct amd_signal_t {
    /// What it is.
    pub kind: amd_signal_kind64_t,
    /// Its value or register; C has the union's members here directly.
    pub value: amd_signal_value_t,
    /// Where the packet processor writes `event_id` to wake the host; zero is nowhere.
    pub event_mailbox_ptr: u64,
    /// Interrupt event.
    pub event_id: u32,
    /// Zero.
    pub reserved1: u32,
    /// Start of the work that signalled last.
    pub start_ts: u64,
    /// End of the work that signalled last.
    pub end_ts: u64,
    /// For doorbells: the queue.
    pub queue_ptr: *mut amd_queue_t,
    /// Zero.
    pub reserved3: [u32; 2],
}

bit_fields! {
    /// Fields of `queue_properties`.
    amd_queue_properties_t;
    "AMD_QUEUE_PROPERTIES_" {
        /// Traps are handled.
        ENABLE_TRAP_HANDLER = 0, 1;
        /// Addresses have 64 bits.
        IS_PTR64 = 1, 1;
        /// The trap handler gets debug registers.
        ENABLE_TRAP_HANDLER_DEBUG_SGPRS = 2, 1;
        /// Completion signals get timestamps.
        ENABLE_PROFILING = 3, 1;
        /// Scratch memory is for one dispatch.
        USE_SCRATCH_ONCE = 4, 1;
        /// Unused.
        RESERVED1 = 5, 27;
    }
}

/// A hardware queue, as the packet processor sees it.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
pub struct amd_queue_t {
    /// What everybody sees.
    pub hsa_queue: hsa_queue_t,
    /// Since ROCr 6.1 the first word has capability bits.
    pub reserved1: [u32; 4],
    /// Index of the next packet to reserve.
    pub write_dispatch_id: u64,
    /// Upper half of the first address of group memory.
    pub group_segment_aperture_base_hi: u32,
    /// Upper half of the first address of private memory.
    pub private_segment_aperture_base_hi: u32,
    /// Highest compute unit.
    pub max_cu_id: u32,
    /// Highest wave of a compute unit.
    pub max_wave_id: u32,
    /// For old doorbells.
    pub max_legacy_doorbell_dispatch_id_plus_1: u64,
    /// For old doorbells.
    pub legacy_doorbell_lock: u32,
    /// Zero.
    pub reserved2: [u32; 9],
    /// Index of the next packet to process.
    pub read_dispatch_id: u64,
    /// Bytes from the queue's start to `read_dispatch_id`.
    pub read_dispatch_id_field_base_byte_offset: u32,
    /// Scratch waves, as the register has it.
    pub compute_tmpring_size: u32,
    /// Scratch buffer descriptor.
    pub scratch_resource_descriptor: [u32; 4],
    /// Scratch memory.
    pub scratch_backing_memory_location: u64,
    /// Bytes of scratch memory; unused since ROCr 6.1.
    pub scratch_backing_memory_byte_size: u64,
    /// Scratch bytes of a lane, in waves of 64.
    pub scratch_wave64_lane_byte_size: u32,
    /// [`amd_queue_properties_t`].
    pub queue_properties: u32,
    /// Since ROCr 6.1: index of the last packet that used scratch.
    pub reserved3: [u32; 2],
    /// Where the packet processor reports errors of the queue.
    pub queue_inactive_signal: hsa_signal_t,
    /// Since ROCr 6.1: a second scratch buffer.
    pub reserved4: [u32; 14],
}

/// Bytes of the longer queue structure since ROCr 6.1 (`amd_queue_v2_t`).
///
/// Its first 256 bytes agree with [`amd_queue_t`] in all fields that are not reserved there. The
/// rest is for the packet processor, and still grows after ROCr 7.1.
pub const AMD_QUEUE_V2_BYTES: usize = 2304;

layout! {
    LAYOUTS;
    BASE amd_signal_t: 64, 64 {
        kind: 0, value: 8, event_mailbox_ptr: 16, event_id: 24, reserved1: 28, start_ts: 32,
        end_ts: 40, queue_ptr: 48, reserved3: 56,
    }
    BASE amd_queue_t: 256, 64 {
        hsa_queue: 0, reserved1: 40, write_dispatch_id: 56, group_segment_aperture_base_hi: 64,
        private_segment_aperture_base_hi: 68, max_cu_id: 72, max_wave_id: 76,
        max_legacy_doorbell_dispatch_id_plus_1: 80, legacy_doorbell_lock: 88, reserved2: 92,
        read_dispatch_id: 128, read_dispatch_id_field_base_byte_offset: 136,
        compute_tmpring_size: 140, scratch_resource_descriptor: 144,
        scratch_backing_memory_location: 160, scratch_backing_memory_byte_size: 168,
        scratch_wave64_lane_byte_size: 176, queue_properties: 180, reserved3: 184,
        queue_inactive_signal: 192, reserved4: 200,
    }
}

enumerations! {
    amd_signal_kind_t,
    amd_queue_properties_t,
}
