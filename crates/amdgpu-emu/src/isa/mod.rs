//! The instruction set: tables, and what an entry of a table is.
//!
//! Each encoding family has a table of [`Row`]s, one per instruction. A row says the opcode, the mnemonic, the types of
//! the operands, the class it is counted under and what it does, so decoder, text, interpreter and counters can't
//! disagree. Where a row has an operation on single values, its operand types are those of the closure:
//!
//! ```text
//! 0x01 v_add_f32(a: f32, b: f32) -> f32 = a + b;
//! ```
//!
//! A row in `vop1`, `vop2` or `vopc` serves all encodings of the instruction: 32 bits, VOP3, SDWA and DPP.
//!
//! Opcodes and encodings are those of AMD's "CDNA2 Instruction Set Architecture"; names are LLVM's.

mod ds;
mod flat;
mod float;
mod mubuf;
mod row;
mod smem;
mod sop;
mod vmem;
mod vop1;
mod vop2;
mod vop3;
mod vop3p;
mod vopc;

mod decode;
mod text;

#[cfg(test)]
mod tests;

pub(crate) use decode::{Dpp, EXEC, M0, Modifiers, Operand, Select, Unused, VCC};
pub use decode::{Instruction, Undecodable};
pub(crate) use float::F16;
pub(crate) use row::{Bus, Exec, Halt, Row, Stop, Type};
