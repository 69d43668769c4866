//! Packets of the Architected Queuing Language: `hsa.h`, and AMD's vendor packets.
//!
//! A packet is 64 bytes. The packet processor looks at the first 16 bits only once it has reached
//! the packet, so a producer writes bytes 4 to 63 first and then, in one store with release order,
//! the first 32 bits: header and setup, or header and vendor format. Until then the slot must read
//! as [`hsa_packet_type_t::INVALID`].
//!
//! Invariant: every packet type is 64 bytes, and its completion signal, where it has one, is the
//! last field.

use core::ffi::c_void;

use crate::{BitField, hsa_queue_t, hsa_signal_t, hsa_signal_value_t};

/// Bytes of a packet.
pub const AQL_PACKET_BYTES: usize = 64;

c_enum! {
    /// Kind of a packet: bits 0 to 7 of its header.
    hsa_packet_type_t: u32;
    BASE "HSA_PACKET_TYPE_" {
        /// Vendor packet; byte 2 says which.
        VENDOR_SPECIFIC = 0;
        /// Not a packet yet; the packet processor waits.
        INVALID = 1;
        /// [`hsa_kernel_dispatch_packet_t`].
        KERNEL_DISPATCH = 2;
        /// [`hsa_barrier_and_packet_t`].
        BARRIER_AND = 3;
        /// [`hsa_agent_dispatch_packet_t`].
        AGENT_DISPATCH = 4;
        /// [`hsa_barrier_or_packet_t`].
        BARRIER_OR = 5;
    }
}

c_enum! {
    /// How far a fence reaches.
    hsa_fence_scope_t: u32;
    BASE "HSA_FENCE_SCOPE_" {
        /// No fence.
        NONE = 0;
        /// The agent.
        AGENT = 1;
        /// All agents and the host.
        SYSTEM = 2;
    }
}

c_enum! {
    /// Where a field of the packet header starts, as C has it; [`PacketHeader`] has shift and width
    /// together.
    hsa_packet_header_t: u32;
    BASE "HSA_PACKET_HEADER_" {
        /// [`hsa_packet_type_t`].
        TYPE = 0;
        /// Wait for all earlier packets.
        BARRIER = 8;
        /// [`hsa_fence_scope_t`] before the packet starts.
        SCACQUIRE_FENCE_SCOPE = 9;
        /// Deprecated name of the above.
        ACQUIRE_FENCE_SCOPE = 9;
        /// [`hsa_fence_scope_t`] after the packet completed.
        SCRELEASE_FENCE_SCOPE = 11;
        /// Deprecated name of the above.
        RELEASE_FENCE_SCOPE = 11;
    }
}

c_enum! {
    /// How wide a field of the packet header is, as C has it.
    hsa_packet_header_width_t: u32;
    BASE "HSA_PACKET_HEADER_WIDTH_" {
        /// [`hsa_packet_type_t`].
        TYPE = 8;
        /// Wait for all earlier packets.
        BARRIER = 1;
        /// [`hsa_fence_scope_t`] before the packet starts.
        SCACQUIRE_FENCE_SCOPE = 2;
        /// Deprecated name of the above.
        ACQUIRE_FENCE_SCOPE = 2;
        /// [`hsa_fence_scope_t`] after the packet completed.
        SCRELEASE_FENCE_SCOPE = 2;
        /// Deprecated name of the above.
        RELEASE_FENCE_SCOPE = 2;
    }
}

c_enum! {
    /// Where a field of the dispatch packet's setup starts.
    hsa_kernel_dispatch_packet_setup_t: u32;
    BASE "HSA_KERNEL_DISPATCH_PACKET_SETUP_" {
        /// Number of grid dimensions, 1 to 3.
        DIMENSIONS = 0;
    }
}

c_enum! {
    /// How wide a field of the dispatch packet's setup is.
    hsa_kernel_dispatch_packet_setup_width_t: u32;
    BASE "HSA_KERNEL_DISPATCH_PACKET_SETUP_WIDTH_" {
        /// Number of grid dimensions, 1 to 3.
        DIMENSIONS = 2;
    }
}

/// The fields of a packet header.
#[derive(Clone, Copy, Debug)]
pub struct PacketHeader;

impl PacketHeader {
    /// [`hsa_packet_type_t`].
    pub const TYPE: BitField = BitField { shift: 0, width: 8 };
    /// The packet starts when all earlier packets of the queue have completed.
    pub const BARRIER: BitField = BitField { shift: 8, width: 1 };
    /// [`hsa_fence_scope_t`] of the acquire fence before the packet starts.
    pub const ACQUIRE: BitField = BitField { shift: 9, width: 2 };
    /// [`hsa_fence_scope_t`] of the release fence after the packet completed.
    pub const RELEASE: BitField = BitField {
        shift: 11,
        width: 2,
    };
}

/// The header of a packet.
///
/// ```
/// use hsa_sys::{hsa_fence_scope_t as scope, hsa_packet_type_t, packet_header};
///
/// let header = packet_header(hsa_packet_type_t::KERNEL_DISPATCH, true, scope::SYSTEM, scope::SYSTEM);
/// assert_eq!(header, 0x1502);
/// ```
pub const fn packet_header(
    packet_type: hsa_packet_type_t,
    barrier: bool,
    acquire: hsa_fence_scope_t,
    release: hsa_fence_scope_t,
) -> u16 {
    let header = PacketHeader::TYPE.of(packet_type.0)
        | PacketHeader::BARRIER.of(barrier as u32)
        | PacketHeader::ACQUIRE.of(acquire.0)
        | PacketHeader::RELEASE.of(release.0);
    header as u16
}

/// Runs a kernel over a grid.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hsa_kernel_dispatch_packet_t {
    /// See [`packet_header`].
    pub header: u16,
    /// Bits 0 and 1: number of grid dimensions.
    pub setup: u16,
    /// Work-items of a workgroup in x.
    pub workgroup_size_x: u16,
    /// Work-items of a workgroup in y; 1 where the grid has no such dimension.
    pub workgroup_size_y: u16,
    /// Work-items of a workgroup in z; 1 where the grid has no such dimension.
    pub workgroup_size_z: u16,
    /// Zero.
    pub reserved0: u16,
    /// Work-items in x.
    pub grid_size_x: u32,
    /// Work-items in y; 1 where the grid has no such dimension.
    pub grid_size_y: u32,
    /// Work-items in z; 1 where the grid has no such dimension.
    pub grid_size_z: u32,
    /// Bytes of private memory of a work-item.
    pub private_segment_size: u32,
    /// Bytes of group memory of a workgroup, dynamic ones included.
    pub group_segment_size: u32,
    /// The kernel, as [`KERNEL_OBJECT`] of its symbol has it; on AMD, the address of its
    /// [`amdhsa_kernel_descriptor_t`].
    ///
    /// [`KERNEL_OBJECT`]: crate::hsa_executable_symbol_info_t::KERNEL_OBJECT
    /// [`amdhsa_kernel_descriptor_t`]: crate::amdhsa_kernel_descriptor_t
    pub kernel_object: u64,
    /// Its arguments; must stay as they are until the dispatch completed.
    pub kernarg_address: *mut c_void,
    /// Zero.
    pub reserved2: u64,
    /// Decremented by one at the end; zero is none.
    pub completion_signal: hsa_signal_t,
}

/// Runs a function of an agent.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hsa_agent_dispatch_packet_t {
    /// See [`packet_header`].
    pub header: u16,
    /// Which function; the agent's own numbers from 0x8000 on.
    pub r#type: u16,
    /// Zero.
    pub reserved0: u32,
    /// Where the result goes.
    pub return_address: *mut c_void,
    /// Arguments.
    pub arg: [u64; 4],
    /// Zero.
    pub reserved2: u64,
    /// Decremented by one at the end; zero is none.
    pub completion_signal: hsa_signal_t,
}

/// Waits until all its dependencies are zero.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hsa_barrier_and_packet_t {
    /// See [`packet_header`].
    pub header: u16,
    /// Zero.
    pub reserved0: u16,
    /// Zero.
    pub reserved1: u32,
    /// Signals that must be zero; handle zero is none.
    pub dep_signal: [hsa_signal_t; 5],
    /// Zero.
    pub reserved2: u64,
    /// Decremented by one at the end; zero is none.
    pub completion_signal: hsa_signal_t,
}

/// Waits until one of its dependencies is zero.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hsa_barrier_or_packet_t {
    /// See [`packet_header`].
    pub header: u16,
    /// Zero.
    pub reserved0: u16,
    /// Zero.
    pub reserved1: u32,
    /// Signals of which one must be zero; handle zero is none.
    pub dep_signal: [hsa_signal_t; 5],
    /// Zero.
    pub reserved2: u64,
    /// Decremented by one at the end; zero is none.
    pub completion_signal: hsa_signal_t,
}

c_enum! {
    /// Which vendor packet: byte 2 of a packet of type [`VENDOR_SPECIFIC`].
    ///
    /// [`VENDOR_SPECIFIC`]: hsa_packet_type_t::VENDOR_SPECIFIC
    hsa_amd_packet_type_t: u32;
    BASE "HSA_AMD_PACKET_TYPE_" {
        /// [`hsa_amd_barrier_value_packet_t`].
        BARRIER_VALUE = 2;
    }
    LATER "HSA_AMD_PACKET_TYPE_" {
        /// On queues of AI engines, headers of ROCr 6.3 to 7.0: a command to the embedded runtime.
        AIE_ERT = 3;
        /// On queues of GPUs, after ROCr 7.1: [`hsa_amd_ext_kernel_dispatch_packet_t`]. Same number
        /// as [`Self::AIE_ERT`]: the agent decides.
        EXT_KERNEL_DISPATCH = 3;
    }
}

/// [`hsa_amd_packet_type_t`] in the byte that the packet has for it.
pub type hsa_amd_packet_type8_t = u8;

/// Vendor format of [`hsa_ext_amd_aql_pm4_packet_t`]: the packet processor executes a buffer of its
/// own commands. The headers have no name for it.
pub const AMD_AQL_FORMAT_PM4_IB: hsa_amd_packet_type8_t = 1;

/// Vendor format of [`amd_aql_intercept_marker_t`].
pub const AMD_AQL_FORMAT_INTERCEPT_MARKER: hsa_amd_packet_type8_t = 0xFE;

/// First four bytes of AMD's vendor packets.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(non_snake_case, reason = "the C name of the field")]
pub struct hsa_amd_vendor_packet_header_t {
    /// See [`packet_header`].
    pub header: u16,
    /// Which vendor packet.
    pub AmdFormat: hsa_amd_packet_type8_t,
    /// Zero.
    pub reserved: u8,
}

/// Waits until `(signal & mask) cond value`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hsa_amd_barrier_value_packet_t {
    /// Header with [`hsa_amd_packet_type_t::BARRIER_VALUE`].
    pub header: hsa_amd_vendor_packet_header_t,
    /// Zero.
    pub reserved0: u32,
    /// The signal; with handle zero the packet does not wait.
    pub signal: hsa_signal_t,
    /// What to compare with.
    pub value: hsa_signal_value_t,
    /// Bits of the signal that count.
    pub mask: hsa_signal_value_t,
    /// How to compare.
    pub cond: crate::hsa_signal_condition32_t,
    /// Zero.
    pub reserved1: u32,
    /// Zero.
    pub reserved2: u64,
    /// Zero.
    pub reserved3: u64,
    /// Decremented by one at the end; zero is none.
    pub completion_signal: hsa_signal_t,
}

/// Commands of the packet processor itself, as `hsa_ven_amd_aqlprofile.h` makes them for counters
/// and traces.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hsa_ext_amd_aql_pm4_packet_t {
    /// See [`packet_header`].
    pub header: u16,
    /// The lower byte of the first is the vendor format; the rest is the library's business.
    pub pm4_command: [u16; 27],
    /// Decremented by one at the end; zero is none.
    pub completion_signal: hsa_signal_t,
}

/// Runs a kernel over a grid of clusters of workgroups; after ROCr 7.1, for agents that have them.
///
/// Field names and offsets are those of development versions; they are not in a release yet.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hsa_amd_ext_kernel_dispatch_packet_t {
    /// See [`packet_header`].
    pub header: u16,
    /// [`hsa_amd_packet_type_t::EXT_KERNEL_DISPATCH`].
    pub amd_format: hsa_amd_packet_type8_t,
    /// Number of grid dimensions.
    pub setup: u8,
    /// Work-items of a workgroup in x.
    pub workgroup_size_x: u16,
    /// Work-items of a workgroup in y.
    pub workgroup_size_y: u16,
    /// Work-items of a workgroup in z.
    pub workgroup_size_z: u16,
    /// Zero.
    pub reserved0: u16,
    /// Clusters in x.
    pub cluster_count_x: u32,
    /// Clusters in y.
    pub cluster_count_y: u16,
    /// Clusters in z.
    pub cluster_count_z: u16,
    /// Workgroups of a cluster in x.
    pub cluster_size_x: u8,
    /// Workgroups of a cluster in y.
    pub cluster_size_y: u8,
    /// Workgroups of a cluster in z.
    pub cluster_size_z: u8,
    /// Hint to the scheduler.
    pub perf_hint: u8,
    /// Bytes of private memory of a work-item.
    pub private_segment_size: u32,
    /// Bytes of group memory of a workgroup.
    pub group_segment_size: u32,
    /// The kernel.
    pub kernel_object: u64,
    /// Its arguments.
    pub kernarg_address: *mut c_void,
    /// Must be zero before the dispatch starts; handle zero is none.
    pub dep_signal: hsa_signal_t,
    /// Decremented by one at the end; zero is none.
    pub completion_signal: hsa_signal_t,
}

/// What an intercept queue calls when it reaches an [`amd_aql_intercept_marker_t`]: the marker, the
/// hardware queue, and the index that the next packet gets there.
///
/// Runs on whatever thread submits, with the queue's lock held; must not unwind.
pub type amd_intercept_marker_handler =
    unsafe extern "C" fn(*const amd_aql_intercept_marker_t, *mut hsa_queue_t, u64);

/// Tells where the packet behind it is put in the hardware queue; since ROCr 6.0, in intercept
/// queues only, which keep it to themselves (`hsa_api_trace.h`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct amd_aql_intercept_marker_t {
    /// Type [`hsa_packet_type_t::VENDOR_SPECIFIC`].
    pub header: u16,
    /// [`AMD_AQL_FORMAT_INTERCEPT_MARKER`].
    pub format: hsa_amd_packet_type8_t,
    /// Zero.
    pub reserved: [u8; 5],
    /// Whom to call.
    pub callback: Option<amd_intercept_marker_handler>,
    /// Yours.
    pub user_data: [u64; 6],
}

layout! {
    LAYOUTS;
    BASE hsa_kernel_dispatch_packet_t: 64, 8 {
        header: 0, setup: 2, workgroup_size_x: 4, workgroup_size_y: 6, workgroup_size_z: 8,
        reserved0: 10, grid_size_x: 12, grid_size_y: 16, grid_size_z: 20, private_segment_size: 24,
        group_segment_size: 28, kernel_object: 32, kernarg_address: 40, reserved2: 48,
        completion_signal: 56,
    }
    BASE hsa_agent_dispatch_packet_t: 64, 8 {
        header: 0, r#type: 2, reserved0: 4, return_address: 8, arg: 16, reserved2: 48,
        completion_signal: 56,
    }
    BASE hsa_barrier_and_packet_t: 64, 8 {
        header: 0, reserved0: 2, reserved1: 4, dep_signal: 8, reserved2: 48, completion_signal: 56,
    }
    BASE hsa_barrier_or_packet_t: 64, 8 {
        header: 0, reserved0: 2, reserved1: 4, dep_signal: 8, reserved2: 48, completion_signal: 56,
    }
    BASE hsa_amd_vendor_packet_header_t: 4, 2 { header: 0, AmdFormat: 2, reserved: 3 }
    BASE hsa_amd_barrier_value_packet_t: 64, 8 {
        header: 0, reserved0: 4, signal: 8, value: 16, mask: 24, cond: 32, reserved1: 36,
        reserved2: 40, reserved3: 48, completion_signal: 56,
    }
    BASE hsa_ext_amd_aql_pm4_packet_t: 64, 8 { header: 0, pm4_command: 2, completion_signal: 56 }
    LATER hsa_amd_ext_kernel_dispatch_packet_t: 64, 8 {
        header: 0, amd_format: 2, setup: 3, workgroup_size_x: 4, workgroup_size_y: 6,
        workgroup_size_z: 8, reserved0: 10, cluster_count_x: 12, cluster_count_y: 16,
        cluster_count_z: 18, cluster_size_x: 20, cluster_size_y: 21, cluster_size_z: 22,
        perf_hint: 23, private_segment_size: 24, group_segment_size: 28, kernel_object: 32,
        kernarg_address: 40, dep_signal: 48, completion_signal: 56,
    }
    LATER amd_aql_intercept_marker_t: 64, 8 {
        header: 0, format: 2, reserved: 3, callback: 8, user_data: 16,
    }
}

enumerations! {
    hsa_packet_type_t,
    hsa_fence_scope_t,
    hsa_packet_header_t,
    hsa_packet_header_width_t,
    hsa_kernel_dispatch_packet_setup_t,
    hsa_kernel_dispatch_packet_setup_width_t,
    hsa_amd_packet_type_t,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_have_the_values_of_the_specification() {
        use hsa_fence_scope_t as scope;
        use hsa_packet_type_t as packet;

        let header = packet_header(packet::KERNEL_DISPATCH, true, scope::AGENT, scope::AGENT);
        assert_eq!(header, 0x0B02);
        let header = packet_header(packet::BARRIER_AND, true, scope::SYSTEM, scope::SYSTEM);
        assert_eq!(header, 0x1503);
        let header = packet_header(packet::BARRIER_AND, true, scope::NONE, scope::NONE);
        assert_eq!(header, 0x0103);
        let header = packet_header(packet::VENDOR_SPECIFIC, false, scope::NONE, scope::NONE);
        assert_eq!(header, 0);
    }

    #[test]
    fn header_fields_agree_with_the_c_constants() {
        let fields = [
            (
                PacketHeader::TYPE,
                hsa_packet_header_t::TYPE,
                hsa_packet_header_width_t::TYPE,
            ),
            (
                PacketHeader::BARRIER,
                hsa_packet_header_t::BARRIER,
                hsa_packet_header_width_t::BARRIER,
            ),
            (
                PacketHeader::ACQUIRE,
                hsa_packet_header_t::SCACQUIRE_FENCE_SCOPE,
                hsa_packet_header_width_t::SCACQUIRE_FENCE_SCOPE,
            ),
            (
                PacketHeader::RELEASE,
                hsa_packet_header_t::SCRELEASE_FENCE_SCOPE,
                hsa_packet_header_width_t::SCRELEASE_FENCE_SCOPE,
            ),
        ];
        for (field, shift, width) in fields {
            assert_eq!((field.shift, field.width), (shift.0, width.0));
        }
    }
}
