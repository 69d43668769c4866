//! Why a dispatch ended before its last wave did, and where.

use std::fmt;

use crate::{AccessFault, PacketError};

/// The wave and the instruction at which something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Agent-visible address of the instruction.
    pub pc: u64,
    /// The workgroup, counted in workgroups in x, y, z.
    pub workgroup: [u32; 3],
    /// The wave in its workgroup.
    pub wave: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.workgroup;
        write!(
            f,
            "pc {:#x} of wave {} in workgroup {x},{y},{z}",
            self.pc, self.wave
        )
    }
}

/// What is wrong with an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Illegal {
    /// No instruction of the agent has this encoding.
    Unknown,
    /// The agent has the instruction, the emulator does not.
    NotModelled,
    /// An operand that this instruction can't have, or that lies beyond the registers the kernel asked for.
    Operand,
    /// The instruction asks for a mode that the emulator does not have.
    Mode,
}

impl fmt::Display for Illegal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "no such instruction",
            Self::NotModelled => "not modelled by the emulator",
            Self::Operand => "an operand is invalid or beyond the kernel's registers",
            Self::Mode => "asks for a mode that the emulator does not model",
        })
    }
}

/// Why a kernel descriptor can't be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// The descriptor lies where the agent can't read.
    #[error("cannot read the kernel descriptor")]
    Unreadable(#[source] AccessFault),
    /// The kernel wants a wave of 32 lanes, which gfx90a does not have.
    #[error("kernel is compiled for waves of 32 lanes, gfx90a has only 64")]
    Wave32,
    /// The rounding mode is not to nearest even.
    #[error(
        "kernel starts with float rounding mode {0:#x}, only round to nearest even is modelled"
    )]
    Rounding(u32),
    /// The descriptor names more user registers than its setup needs or the agent has.
    #[error(
        "kernel descriptor sets up {needed} user registers, but reserves {reserved} of at most 16"
    )]
    UserRegisters {
        /// Registers that the enabled items take.
        needed: u32,
        /// Registers that the descriptor reserves.
        reserved: u32,
    },
    /// The entry point is not a multiple of 4.
    #[error("kernel entry {0:#x} is not a multiple of 4")]
    Entry(u64),
    /// The queue's scratch memory can't hold one workgroup.
    #[error("one workgroup needs {needed} bytes of scratch, the queue has {granted}")]
    Scratch {
        /// Bytes for one workgroup.
        needed: u64,
        /// Bytes that the queue was granted.
        granted: u64,
    },
}

/// Why a dispatch ended early. Memory holds whatever its waves had written by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The packet breaks a rule; no wave was started.
    #[error("invalid dispatch packet")]
    Packet(#[from] PacketError),
    /// The kernel descriptor can't be run; no wave was started.
    #[error("invalid kernel")]
    Kernel(#[from] KernelError),
    /// An instruction can't be executed.
    #[error("illegal instruction {} ({:08x} {:08x}) at {place}: {illegal}", mnemonic.unwrap_or("?"), words[0], words[1])]
    Instruction {
        /// Where.
        place: Place,
        /// The first two dwords at `pc`; the second may belong to the next instruction.
        words: [u32; 2],
        /// What the instruction is called, where that is known.
        mnemonic: Option<&'static str>,
        /// What is wrong with it.
        illegal: Illegal,
    },
    /// An access to memory was refused.
    #[error("memory fault of {mnemonic} at {place}")]
    Memory {
        /// Where.
        place: Place,
        /// The instruction, `fetch` if it could not even be read.
        mnemonic: &'static str,
        /// What was refused.
        #[source]
        fault: AccessFault,
    },
    /// An access to LDS beyond what the workgroup has.
    #[error("{mnemonic} at {place} reaches byte {offset:#x} of {size:#x} bytes of group memory")]
    Lds {
        /// Where.
        place: Place,
        /// The instruction.
        mnemonic: &'static str,
        /// First byte of the access.
        offset: u64,
        /// Bytes that the workgroup has.
        size: u32,
    },
    /// The kernel executed `s_trap`.
    #[error("trap {id} at {place}")]
    Trap {
        /// Where.
        place: Place,
        /// Number of the trap; compilers use 2 for abort.
        id: u8,
    },
    /// The instruction budget was used up.
    #[error("dispatch executed its budget of {budget} wave instructions, last at {place}")]
    Budget {
        /// Where it was used up.
        place: Place,
        /// The budget.
        budget: u64,
    },
    /// No wave can make progress any more.
    #[error("dispatch makes no progress: {place} and all other waves repeat themselves")]
    NoProgress {
        /// Where one of the waves is.
        place: Place,
    },
    /// The cancellation flag was seen.
    #[error("dispatch was cancelled at {place}")]
    Cancelled {
        /// Where the flag was seen.
        place: Place,
    },
}
