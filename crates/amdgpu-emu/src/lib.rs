//! A functional emulator of an AMD gfx90a compute unit.
//!
//! [`Emulator::run`] takes one kernel dispatch and executes it, wave by wave and instruction by instruction, on memory
//! that the caller provides through [`Memory`]. It returns exact instruction counts and, where something went wrong,
//! where and why. Nothing here needs a GPU, a driver or an operating system's help.
//!
//! Results are those of an *emulated* gfx90a. What follows is not modelled, and nothing about it can be learnt here:
//!
//! - time: cycles come from the model that [`Counter`]'s module states, and only exist to be repeatable;
//! - caches, coherence and missing waits: every access is coherent and complete when its instruction ends;
//! - data races: waves take turns in a fixed order, so a race always has the same winner;
//! - the last bits of `v_rcp`, `v_rsq`, `v_sqrt`, `v_exp`, `v_log`, `v_sin`, `v_cos`: rounded correctly here where the
//!   hardware approximates;
//! - rounding other than to nearest even, float exceptions, trap handlers, wave32;
//! - matrix instructions, images, scalar stores, global wave sync: they end the dispatch with
//!   [`Fault::Instruction`].
//!
//! Two runs of the same dispatch on the same memory do the same, bit for bit: registers and LDS start with garbage
//! from a fixed seed, and no clock or thread takes part.
#![forbid(unsafe_code)]

mod code;
mod counters;
mod descriptor;
mod dispatch;
mod emulator;
mod fault;
mod isa;
mod lanes;
mod memory;
pub mod object;
mod scalar;
mod wave;

pub use counters::{COMPUTE_UNITS, Class, Counter, Counters, LAUNCH_CYCLES};
pub use dispatch::{
    Apertures, Dispatch, LANES, MAX_LDS_BYTES, MAX_WORKGROUP_ITEMS, PACKET_BYTES, PacketError,
    Scratch,
};
pub use emulator::{Emulator, Limits, Outcome, Step};
pub use fault::{Fault, Illegal, KernelError, Place};
pub use isa::{Instruction, Undecodable};
pub use memory::{Access, AccessFault, FlatMemory, Memory, Refusal};
