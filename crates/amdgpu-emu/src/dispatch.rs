//! One kernel dispatch, as the packet processor hands it over.
//!
//! Offsets are those of `hsa_kernel_dispatch_packet_t` in `hsa.h`. A [`Dispatch`] can be made from a packet's bytes or
//! by hand; [`Dispatch::check`] holds the rules that the packet processor of an agent enforces.
//!
//! Not here: the queue, signals and timestamps of a packet; what the kernel object says (`descriptor`).

/// Bytes of an AQL packet.
pub const PACKET_BYTES: usize = 64;

/// Work-items of a wave.
pub const LANES: usize = 64;

/// Most work-items of a workgroup.
pub const MAX_WORKGROUP_ITEMS: u32 = 1024;

/// Most bytes of LDS that a workgroup can have.
pub const MAX_LDS_BYTES: u32 = 64 * 1024;

/// Scratch memory that the queue has been granted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scratch {
    /// The buffer descriptor, `amd_queue_t::scratch_resource_descriptor`: base address in bits 47:0, size in bytes in
    /// dword 2. All zero where nothing was granted; a kernel that wants scratch then fails.
    pub descriptor: [u32; 4],
}

impl Scratch {
    /// A grant of `bytes` at `base`, in the form that ROCr writes it for gfx9: swizzled by dword, 64 lanes.
    pub fn new(base: u64, bytes: u32) -> Self {
        let high = (base >> 32) as u32 & 0xffff;
        // Dword 1: swizzle enable (31). Dword 3: element size 4 bytes (20:19), index stride 64 (22:21), add tid (23),
        // data format 32 (18:15), destination select x, y, z, w (11:0).
        let format = 1 << 19 | 3 << 21 | 1 << 23 | 4 << 15 | 0o7654;
        Self {
            descriptor: [base as u32, high | 1 << 31, bytes, format],
        }
    }

    /// Agent-visible address of the first byte.
    pub fn base(&self) -> u64 {
        u64::from(self.descriptor[0]) | u64::from(self.descriptor[1] & 0xffff) << 32
    }

    /// Bytes granted, for all waves together.
    pub fn bytes(&self) -> u32 {
        self.descriptor[2]
    }
}

/// Where the flat address space shows LDS and private memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Apertures {
    /// First address of the 4 GiB window on the workgroup's LDS; only bits 63:32 count.
    pub shared: u64,
    /// First address of the 4 GiB window on the work-item's private memory; only bits 63:32 count.
    pub private: u64,
}

impl Default for Apertures {
    /// The bases that the kernel driver uses for gfx9.
    fn default() -> Self {
        Self {
            shared: 0x1_0000_0000_0000,
            private: 0x2_0000_0000_0000,
        }
    }
}

/// Everything that one run of a kernel depends on, besides memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dispatch {
    /// Work-items of a workgroup in x, y, z.
    pub workgroup_size: [u16; 3],
    /// Work-items of the grid in x, y, z. The last workgroup of a dimension may be partial.
    pub grid_size: [u32; 3],
    /// Bytes of private memory of a work-item.
    pub private_segment_size: u32,
    /// Bytes of LDS of a workgroup, static and dynamic.
    pub group_segment_size: u32,
    /// Agent-visible address of the kernel descriptor.
    pub kernel_object: u64,
    /// Agent-visible address of the kernel's arguments.
    pub kernarg_address: u64,
    /// Agent-visible address of the packet itself, from which kernels read their workgroup and grid sizes.
    pub packet_address: u64,
    /// Agent-visible address of the queue (`amd_queue_t`).
    pub queue_address: u64,
    /// Index of the packet in its queue.
    pub dispatch_id: u64,
    /// The queue's scratch memory.
    pub scratch: Scratch,
    /// Flat apertures of the agent.
    pub apertures: Apertures,
}

/// A dispatch that an agent would refuse. No wave was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PacketError {
    /// The packet's type is not a kernel dispatch.
    #[error("packet of type {0} is not a kernel dispatch")]
    NotADispatch(u8),
    /// The number of dimensions is not 1, 2 or 3, or a dimension beyond it is not 1.
    #[error("{dimensions} dimensions do not fit workgroup {workgroup:?} and grid {grid:?}")]
    Dimensions {
        /// The packet's number of dimensions.
        dimensions: u16,
        /// Its workgroup size.
        workgroup: [u16; 3],
        /// Its grid size.
        grid: [u32; 3],
    },
    /// A workgroup or grid has no work-items, or the workgroup too many.
    #[error(
        "workgroup {workgroup:?} of grid {grid:?} must hold 1 to {MAX_WORKGROUP_ITEMS} work-items"
    )]
    Size {
        /// Work-items of a workgroup.
        workgroup: [u16; 3],
        /// Work-items of the grid.
        grid: [u32; 3],
    },
    /// More LDS than a compute unit has.
    #[error("{0} bytes of group memory asked, a workgroup can have {MAX_LDS_BYTES}")]
    GroupMemory(u32),
}

impl Dispatch {
    /// Reads a kernel dispatch packet that lies at `packet_address`. The queue's part (its address, the packet's
    /// index, scratch, apertures) is left at its default.
    ///
    /// # Errors
    ///
    /// The packet is no kernel dispatch, or breaks the rules of [`check`](Self::check).
    pub fn from_packet(
        packet: &[u8; PACKET_BYTES],
        packet_address: u64,
    ) -> Result<Self, PacketError> {
        let u16_at = |at: usize| u16::from_le_bytes([packet[at], packet[at + 1]]);
        let u32_at = |at: usize| u32::from(u16_at(at)) | u32::from(u16_at(at + 2)) << 16;
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        if packet[0] != 2 {
            return Err(PacketError::NotADispatch(packet[0]));
        }
        let dimensions = u16_at(2) & 3;
        let workgroup = [u16_at(4), u16_at(6), u16_at(8)];
        let grid = [u32_at(12), u32_at(16), u32_at(20)];
        let unused = usize::from(dimensions)..3;
        if dimensions == 0
            || workgroup[unused.clone()].iter().any(|&n| n != 1)
            || grid[unused].iter().any(|&n| n != 1)
        {
            return Err(PacketError::Dimensions {
                dimensions,
                workgroup,
                grid,
            });
        }
        let dispatch = Self {
            workgroup_size: workgroup,
            grid_size: grid,
            private_segment_size: u32_at(24),
            group_segment_size: u32_at(28),
            kernel_object: u64_at(32),
            kernarg_address: u64_at(40),
            packet_address,
            ..Self::default()
        };
        dispatch.check()?;
        Ok(dispatch)
    }

    /// The packet that describes this dispatch, without a completion signal. Stand-alone users put it at
    /// `packet_address`, since kernels read it.
    pub fn to_packet(&self) -> [u8; PACKET_BYTES] {
        let mut packet = [0; PACKET_BYTES];
        let mut put = |at: usize, bytes: &[u8]| packet[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &2u16.to_le_bytes());
        put(2, &3u16.to_le_bytes());
        for (i, n) in self.workgroup_size.iter().enumerate() {
            put(4 + 2 * i, &n.to_le_bytes());
        }
        for (i, n) in self.grid_size.iter().enumerate() {
            put(12 + 4 * i, &n.to_le_bytes());
        }
        put(24, &self.private_segment_size.to_le_bytes());
        put(28, &self.group_segment_size.to_le_bytes());
        put(32, &self.kernel_object.to_le_bytes());
        put(40, &self.kernarg_address.to_le_bytes());
        packet
    }

    /// Checks what a packet processor checks.
    ///
    /// # Errors
    ///
    /// A size is zero or too large.
    pub fn check(&self) -> Result<(), PacketError> {
        let (workgroup, grid) = (self.workgroup_size, self.grid_size);
        let items: u64 = workgroup.iter().map(|&n| u64::from(n)).product();
        if items == 0 || items > u64::from(MAX_WORKGROUP_ITEMS) || grid.contains(&0) {
            return Err(PacketError::Size { workgroup, grid });
        }
        if self.group_segment_size > MAX_LDS_BYTES {
            return Err(PacketError::GroupMemory(self.group_segment_size));
        }
        Ok(())
    }

    /// Workgroups of the grid in x, y, z, partial ones included.
    pub(crate) fn workgroups(&self) -> [u32; 3] {
        std::array::from_fn(|i| self.grid_size[i].div_ceil(u32::from(self.workgroup_size[i])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Dispatch {
        Dispatch {
            workgroup_size: [64, 2, 1],
            grid_size: [1000, 3, 1],
            private_segment_size: 16,
            group_segment_size: 512,
            kernel_object: 0x1234_5678_9abc,
            kernarg_address: 0xfedc_ba98,
            packet_address: 0x4000,
            ..Dispatch::default()
        }
    }

    /// A packet says all that a dispatch holds, apart from the queue's part.
    #[test]
    fn packets_round_trip() {
        let dispatch = example();
        assert_eq!(
            Dispatch::from_packet(&dispatch.to_packet(), 0x4000),
            Ok(dispatch)
        );
    }

    #[test]
    fn bad_packets_are_refused() {
        let refused = |change: &dyn Fn(&mut [u8; PACKET_BYTES])| {
            let mut packet = example().to_packet();
            change(&mut packet);
            Dispatch::from_packet(&packet, 0x4000).expect_err("the packet is broken")
        };
        assert_eq!(refused(&|p| p[0] = 3), PacketError::NotADispatch(3));
        assert!(matches!(
            refused(&|p| p[2] = 0),
            PacketError::Dimensions { dimensions: 0, .. }
        ));
        assert!(matches!(
            refused(&|p| p[2] = 1),
            PacketError::Dimensions { dimensions: 1, .. }
        ));
        assert!(matches!(refused(&|p| p[4] = 0), PacketError::Size { .. }));
        assert!(matches!(refused(&|p| p[6] = 17), PacketError::Size { .. }));
        assert!(matches!(refused(&|p| p[20] = 0), PacketError::Size { .. }));
        assert_eq!(refused(&|p| p[30] = 1), PacketError::GroupMemory(0x1_0200));
    }

    #[test]
    fn partial_workgroups_count() {
        assert_eq!(example().workgroups(), [16, 2, 1]);
    }

    #[test]
    fn scratch_keeps_its_base() {
        let scratch = Scratch::new(0x7f12_3456_7000, 1 << 20);
        assert_eq!(
            (scratch.base(), scratch.bytes()),
            (0x7f12_3456_7000, 1 << 20)
        );
    }
}
