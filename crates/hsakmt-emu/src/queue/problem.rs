//! What a queue can complain about, and the two ways in which it does.
//!
//! Without exception support in the driver, the packet processor stores a code into the queue's inactive signal. With
//! it, the driver sets a bit in a word that ROCr gave to the queue and raises an event. ROCr maps both to the same
//! statuses; it aborts on codes it does not know, so only those are used that it does.

use amdgpu_emu::{Fault, KernelError, PacketError};

/// An error of a queue, other than a memory fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// `HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION`.
    Instruction,
    /// `HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION`.
    Aperture,
    /// `HSA_STATUS_ERROR_EXCEPTION`.
    Trap,
    /// `HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS`.
    Dimensions,
    /// `HSA_STATUS_ERROR_INVALID_ALLOCATION`.
    GroupMemory,
    /// `HSA_STATUS_ERROR_INVALID_CODE_OBJECT`.
    Code,
    /// `HSA_STATUS_ERROR_INVALID_ARGUMENT`.
    WorkgroupSize,
    /// `HSA_STATUS_ERROR_INVALID_PACKET_FORMAT`.
    Format,
    /// The same, of a vendor's packet.
    VendorFormat,
}

impl Problem {
    /// The code for the inactive signal.
    pub(super) fn signal_code(self) -> i64 {
        match self {
            Self::Dimensions => 2,
            Self::GroupMemory => 4,
            Self::Code => 8,
            Self::Format => 32,
            Self::WorkgroupSize => 64,
            Self::VendorFormat => 256,
            Self::Aperture => 0x2000_0000,
            Self::Instruction => 0x4000_0000,
            Self::Trap => 0x8000_0000,
        }
    }

    /// The bit of the driver's exception mask.
    pub(super) fn exception_bit(self) -> u64 {
        let number = match self {
            Self::Trap => 2,
            Self::Instruction => 4,
            Self::Aperture => 6,
            Self::Dimensions => 16,
            Self::GroupMemory => 17,
            Self::Code => 18,
            Self::Format => 20,
            Self::WorkgroupSize => 21,
            Self::VendorFormat => 23,
        };
        1 << (number - 1)
    }

    /// What a dispatch that ended early is reported as; nothing for a memory fault, which is not the queue's, and for
    /// one that was cancelled.
    pub(super) fn of(fault: &Fault) -> Option<Self> {
        Some(match fault {
            Fault::Packet(error) => Self::of_packet(error),
            Fault::Kernel(KernelError::Unreadable(_))
            | Fault::Memory { .. }
            | Fault::Cancelled { .. } => return None,
            Fault::Kernel(_) => Self::Code,
            Fault::Instruction { .. } => Self::Instruction,
            Fault::Lds { .. } => Self::Aperture,
            // Ends that hardware does not know: whoever asked for a limit wants to hear of it.
            _ => Self::Trap,
        })
    }

    pub(super) fn of_packet(error: &PacketError) -> Self {
        match error {
            PacketError::Dimensions { .. } => Self::Dimensions,
            PacketError::GroupMemory(_) => Self::GroupMemory,
            PacketError::Size { .. } => Self::WorkgroupSize,
            _ => Self::Format,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Problem; 9] = [
        Problem::Instruction,
        Problem::Aperture,
        Problem::Trap,
        Problem::Dimensions,
        Problem::GroupMemory,
        Problem::Code,
        Problem::WorkgroupSize,
        Problem::Format,
        Problem::VendorFormat,
    ];

    /// ROCr takes the codes for bits, and for scratch requests where bits 0 or 10 are set.
    #[test]
    fn codes_are_single_bits_and_no_requests() {
        for problem in ALL {
            let code = problem.signal_code();
            assert_eq!(code.count_ones(), 1, "{problem:?}");
            assert_eq!(code & 0x401, 0, "{problem:?}");
            assert_eq!(problem.exception_bit().count_ones(), 1, "{problem:?}");
        }
    }
}
