//! What a kernel descriptor asks for at the start of a wave.
//!
//! Layout: the 64-byte kernel descriptor and the registers `COMPUTE_PGM_RSRC1` to `3` of LLVM's "User Guide for AMDGPU
//! Backend". The older 256-byte `amd_kernel_code_t` has the fields that matter at the same offsets, so one reader
//! serves both. Kernarg preload is ignored: code that wants it starts with a prologue for agents without it.

use crate::{AccessFault, Dispatch, KernelError, Memory};

/// Float behaviour of a wave; the `MODE` register in the bits that are modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FloatMode {
    /// Keep subnormal 32-bit floats in operands (bit 0) and results (bit 1).
    pub(crate) denorm32: u8,
    /// The same for 64-bit and 16-bit floats.
    pub(crate) denorm64: u8,
    /// Quiet signalling NaNs as IEEE 754 wants.
    pub(crate) ieee: bool,
    /// Clamp turns a NaN into 0.
    pub(crate) dx10_clamp: bool,
}

impl FloatMode {
    /// The mode as the low bits of the hardware register; the rounding fields are 0, to nearest even.
    pub(crate) fn bits(self) -> u32 {
        u32::from(self.denorm32) << 4
            | u32::from(self.denorm64) << 6
            | u32::from(self.dx10_clamp) << 8
            | u32::from(self.ieee) << 9
    }

    /// The mode that register bits stand for, or `None` if they ask for a rounding that is not modelled.
    pub(crate) fn from_bits(bits: u32) -> Option<Self> {
        (bits & 0xf == 0).then_some(Self {
            denorm32: (bits >> 4 & 3) as u8,
            denorm64: (bits >> 6 & 3) as u8,
            dx10_clamp: bits >> 8 & 1 != 0,
            ieee: bits >> 9 & 1 != 0,
        })
    }
}

/// Bits of the descriptor's properties word: what user registers hold, in order.
mod property {
    pub(super) const PRIVATE_BUFFER: u32 = 1 << 0;
    pub(super) const DISPATCH_PTR: u32 = 1 << 1;
    pub(super) const QUEUE_PTR: u32 = 1 << 2;
    pub(super) const KERNARG_PTR: u32 = 1 << 3;
    pub(super) const DISPATCH_ID: u32 = 1 << 4;
    pub(super) const FLAT_SCRATCH_INIT: u32 = 1 << 5;
    pub(super) const PRIVATE_SIZE: u32 = 1 << 6;
    pub(super) const GROUP_COUNT_X: u32 = 1 << 7;
    pub(super) const WAVE32: u32 = 1 << 10;
}

/// A kernel, ready to start waves.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    /// Agent-visible address of the first instruction.
    pub(crate) entry: u64,
    /// Vector registers of a wave, accumulation registers included.
    pub(crate) vgprs: u16,
    /// The vector register that accumulation register 0 is.
    pub(crate) accum_offset: u16,
    pub(crate) mode: FloatMode,
    /// Initial user registers, from s0.
    user: Vec<u32>,
    rsrc2: u32,
}

/// Which workgroup and wave a set of registers is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    pub(crate) workgroup: [u32; 3],
    /// Offset of the wave's part of the queue's scratch memory.
    pub(crate) scratch_offset: u32,
    /// Whether it is the first wave of its workgroup, and how many waves that has.
    pub(crate) first: bool,
    pub(crate) waves: u32,
}

impl Kernel {
    /// Reads the kernel that `dispatch` names.
    pub(crate) fn read(dispatch: &Dispatch, memory: &dyn Memory) -> Result<Self, KernelError> {
        let mut bytes = [0; 64];
        let at = dispatch.kernel_object;
        memory
            .read(at, &mut bytes)
            .map_err(|fault: AccessFault| KernelError::Unreadable(fault))?;
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let (rsrc1, rsrc2, rsrc3) = (word(48), word(52), word(44));
        let properties = word(56) & 0xffff;
        if properties & property::WAVE32 != 0 {
            return Err(KernelError::Wave32);
        }
        let entry = at.wrapping_add(u64::from(word(16)) | u64::from(word(20)) << 32);
        if !entry.is_multiple_of(4) {
            return Err(KernelError::Entry(entry));
        }
        let rounding = rsrc1 >> 12 & 0xf;
        let mode = FloatMode::from_bits(
            rounding | (rsrc1 >> 16 & 0xf) << 4 | (rsrc1 >> 21 & 1) << 8 | (rsrc1 >> 23 & 1) << 9,
        )
        .ok_or(KernelError::Rounding(rounding))?;

        let mut user = user_registers(dispatch, properties);
        let (needed, reserved) = (user.len() as u32, rsrc2 >> 1 & 0x1f);
        if needed > reserved || reserved > 16 {
            return Err(KernelError::UserRegisters { needed, reserved });
        }
        user.resize(reserved as usize, 0);
        Ok(Self {
            entry,
            vgprs: ((rsrc1 & 0x3f) as u16 + 1) * 8,
            accum_offset: ((rsrc3 & 0x3f) as u16 + 1) * 4,
            mode,
            user,
            rsrc2,
        })
    }

    /// Scalar registers of a wave from s0: the user registers, then those that differ from wave to wave.
    pub(crate) fn scalars(&self, start: &Start) -> Vec<u32> {
        let mut scalars = self.user.clone();
        for (i, id) in start.workgroup.into_iter().enumerate() {
            if self.rsrc2 >> (7 + i) & 1 != 0 {
                scalars.push(id);
            }
        }
        if self.rsrc2 >> 10 & 1 != 0 {
            scalars.push(u32::from(start.first) << 31 | start.waves);
        }
        if self.rsrc2 & 1 != 0 {
            scalars.push(start.scratch_offset);
        }
        scalars
    }

    /// v0 of a work-item: its ids in the workgroup, packed as gfx90a does, as far as the kernel asked for them.
    pub(crate) fn work_item(&self, [x, y, z]: [u32; 3]) -> u32 {
        match self.rsrc2 >> 11 & 3 {
            0 => x,
            1 => x | y << 10,
            _ => x | y << 10 | z << 20,
        }
    }
}

/// The user registers that `properties` enable.
fn user_registers(dispatch: &Dispatch, properties: u32) -> Vec<u32> {
    let mut user = Vec::with_capacity(16);
    let mut put = |bit: u32, words: &[u32]| {
        if properties & bit != 0 {
            user.extend_from_slice(words);
        }
    };
    let split = |value: u64| [value as u32, (value >> 32) as u32];
    put(property::PRIVATE_BUFFER, &dispatch.scratch.descriptor);
    put(property::DISPATCH_PTR, &split(dispatch.packet_address));
    put(property::QUEUE_PTR, &split(dispatch.queue_address));
    put(property::KERNARG_PTR, &split(dispatch.kernarg_address));
    put(property::DISPATCH_ID, &split(dispatch.dispatch_id));
    put(property::FLAT_SCRATCH_INIT, &split(dispatch.scratch.base()));
    put(property::PRIVATE_SIZE, &[dispatch.private_segment_size]);
    for (i, count) in dispatch.workgroups().into_iter().enumerate() {
        put(property::GROUP_COUNT_X << i, &[count]);
    }
    user
}
