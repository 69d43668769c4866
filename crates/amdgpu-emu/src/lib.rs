//! A functional emulator of an AMD gfx90a compute unit.
//!
//! [`Emulator::run`] takes one kernel dispatch and executes it, wave by wave and instruction by instruction, on memory
//! that the caller provides through [`Memory`]. It returns exact instruction counts and, where something went wrong,
//! where and why. Nothing here needs a GPU, a driver or an operating system's help.
//!
//! Results are those of an *emulated* gfx90a. What follows is not modelled, and nothing about it can be learnt here:
//!
#![doc = include_str!("not-modelled.md")]
//!
//! Some things are stricter than hardware, since no compiled program means them: reaching beyond a workgroup's group
//! memory, beyond the scratch buffer or beyond the registers that the kernel asked for is a fault. Registers and group
//! memory start with garbage, so that a read before the first write shows.
//!
//! Two runs of the same dispatch on the same memory do the same, bit for bit: the garbage comes from a fixed seed, and no
//! host clock or thread takes part.
//!
//! Code objects of version 4 and 5 can be loaded without a runtime: see [`object`].
#![forbid(unsafe_code)]

mod code;
pub mod counters;
mod descriptor;
mod dispatch;
mod emulator;
mod fault;
#[doc(hidden)]
pub mod fuzzing;
mod isa;
mod lanes;
mod memory;
pub mod object;
mod scalar;
mod wave;

pub use counters::{Counter, Counters};
pub use dispatch::{
    Apertures, Dispatch, LANES, MAX_LDS_BYTES, MAX_WORKGROUP_ITEMS, PACKET_BYTES, PacketError,
    Scratch,
};
pub use emulator::{Emulator, Limits, Outcome, Step};
pub use fault::{Fault, Illegal, KernelError, Place};
pub use isa::{Instruction, Undecodable};
pub use memory::{Access, AccessFault, FlatMemory, Memory, Refusal};

/// What is not modelled: the list above as a text, for tools that have to say so.
pub const NOT_MODELLED: &str = include_str!("not-modelled.md");
