//! Operands and results of scalar instructions.

use crate::isa::{Instruction, Operand, Type};
use crate::wave::Wave;

/// An operand of a scalar instruction.
pub(crate) trait Arg: Sized {
    const TYPE: Type;

    /// Reads operand `at`, and steps to the next.
    fn read(wave: &Wave, op: &Instruction, at: &mut usize) -> Self;
}

/// A result of a scalar instruction.
pub(crate) trait Out {
    const TYPE: Type;

    fn write(self, wave: &mut Wave, op: &Instruction);
}

fn next(op: &Instruction, at: &mut usize) -> Operand {
    *at += 1;
    op.src[*at - 1]
}

macro_rules! integer {
    ($($ty:ident $name:ident $read:ident $unsigned:ident $write:ident;)*) => {$(
        impl Arg for $ty {
            const TYPE: Type = Type::$name;

            fn read(wave: &Wave, op: &Instruction, at: &mut usize) -> Self {
                wave.$read(next(op, at)) as Self
            }
        }

        impl Out for $ty {
            const TYPE: Type = Type::$name;

            fn write(self, wave: &mut Wave, op: &Instruction) {
                if let Operand::Scalar(first) = op.dst {
                    $write(wave, first, self as $unsigned);
                }
            }
        }
    )*};
}

fn write32(wave: &mut Wave, first: u8, value: u32) {
    wave.scalars[usize::from(first)] = value;
}

fn write64(wave: &mut Wave, first: u8, value: u64) {
    wave.set_pair(first, value);
}

integer! {
    u32 U32 scalar32 u32 write32;
    i32 I32 scalar32 u32 write32;
    u64 U64 scalar64 u64 write64;
    i64 I64 scalar64 u64 write64;
}

/// SCC.
impl Arg for bool {
    const TYPE: Type = Type::Implied;

    fn read(wave: &Wave, op: &Instruction, at: &mut usize) -> Self {
        next(op, at);
        wave.scc
    }
}

/// SCC.
impl Out for bool {
    const TYPE: Type = Type::Implied;

    fn write(self, wave: &mut Wave, _: &Instruction) {
        wave.scc = self;
    }
}

/// A value, and SCC.
impl<T: Out> Out for (T, bool) {
    const TYPE: Type = T::TYPE;

    fn write(self, wave: &mut Wave, op: &Instruction) {
        self.0.write(wave, op);
        wave.scc = self.1;
    }
}

/// A value that says in SCC whether it is not zero.
pub(crate) fn nonzero<T: Copy + Default + PartialEq>(value: T) -> (T, bool) {
    (value, value != T::default())
}
