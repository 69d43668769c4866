//! What a row of an instruction table says, and the macros that write rows.

use crate::counters::Class;
use crate::isa::Instruction;
use crate::wave::{State, Wave};
use crate::{AccessFault, Illegal, Memory};

/// Type of an operand: how wide it is, how constants and modifiers apply to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    /// No operand of the encoding: the value comes with the instruction or the wave.
    Implied,
    /// Whether the result is to be clamped to its type's range, instead of wrapped: a bit of the encoding.
    Clamp,
    /// The dword after the instruction.
    Literal,
    /// A scalar register, in a vector instruction.
    Scalar,
    /// An accumulation register.
    Accum,
    /// An operand of a mixed-precision instruction: a 32-bit float or half a register.
    Mix,
    /// One bit per lane, in a pair of scalar registers.
    Mask,
    U16,
    I16,
    F16,
    U32,
    I32,
    F32,
    U64,
    I64,
    F64,
    /// Two 16-bit halves of a register: integers, floats.
    PairU16,
    PairI16,
    PairF16,
    /// Two registers, an operation on each.
    PairU32,
    PairF32,
    /// Plain data of 3, 4, 8 and 16 dwords.
    B96,
    B128,
    B256,
    B512,
}

impl Type {
    /// Registers that it takes.
    pub(crate) const fn dwords(self) -> u16 {
        match self {
            Self::Implied | Self::Clamp => 0,
            Self::Literal | Self::Scalar | Self::Accum | Self::Mix => 1,
            Self::U16
            | Self::I16
            | Self::F16
            | Self::U32
            | Self::I32
            | Self::F32
            | Self::PairU16
            | Self::PairI16
            | Self::PairF16 => 1,
            Self::Mask | Self::U64 | Self::I64 | Self::F64 | Self::PairU32 | Self::PairF32 => 2,
            Self::B96 => 3,
            Self::B128 => 4,
            Self::B256 => 8,
            Self::B512 => 16,
        }
    }

    /// Whether absolute value, negation, output multiplier and clamp to 0..1 apply.
    pub(crate) const fn is_float(self) -> bool {
        matches!(
            self,
            Self::F16 | Self::F32 | Self::F64 | Self::PairF16 | Self::PairF32
        )
    }
}

/// Why a wave does not go on to its next instruction.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Its turn is over, and this is its state now.
    Pause(State),
    /// The dispatch is over.
    Halt(Halt),
}

/// An instruction that ends the dispatch.
#[derive(Debug)]
pub(crate) enum Halt {
    Memory(AccessFault),
    Lds { offset: u64 },
    Trap(u8),
    Illegal(Illegal),
}

impl From<Illegal> for Stop {
    fn from(illegal: Illegal) -> Self {
        Self::Halt(Halt::Illegal(illegal))
    }
}

impl From<AccessFault> for Stop {
    fn from(fault: AccessFault) -> Self {
        Self::Halt(Halt::Memory(fault))
    }
}

/// What lies outside a wave's registers.
pub(crate) struct Bus<'a> {
    pub(crate) memory: &'a dyn Memory,
    pub(crate) lds: &'a mut [u8],
    pub(crate) interrupt: Option<&'a mut dyn FnMut(u32)>,
    /// Cycles of the model.
    pub(crate) now: u64,
    /// Set when a wave changed something that others can see.
    pub(crate) stored: bool,
}

/// What an instruction does.
#[derive(Clone, Copy)]
pub(crate) enum Exec {
    /// Touches nothing but the wave's registers, and can't fail.
    Registers(fn(&mut Wave, &Instruction)),
    /// Anything else.
    Machine(fn(&mut Wave, &mut Bus<'_>, &Instruction) -> Result<(), Stop>),
    /// Known by name only.
    Missing,
}

/// One instruction of a family.
pub(crate) struct Row {
    pub(crate) opcode: u16,
    pub(crate) name: &'static str,
    pub(crate) class: Class,
    /// Result in registers, and whether a mask (carry, comparison) comes with it.
    pub(crate) dst: Type,
    pub(crate) dst_mask: bool,
    pub(crate) src: &'static [Type],
    pub(crate) exec: Exec,
}

impl Row {
    /// Whether the instruction clamps an integer result when asked to.
    pub(crate) fn clamps(&self) -> bool {
        self.src.contains(&Type::Clamp)
    }
}

/// The rows of a family, by opcode.
pub(crate) const fn index<const N: usize>(
    tables: &'static [&'static [Row]],
) -> [Option<&'static Row>; N] {
    let mut index = [None; N];
    let mut t = 0;
    while t < tables.len() {
        let mut r = 0;
        while r < tables[t].len() {
            let row = &tables[t][r];
            assert!(
                index[row.opcode as usize].is_none(),
                "two rows with one opcode"
            );
            index[row.opcode as usize] = Some(row);
            r += 1;
        }
        t += 1;
    }
    index
}

/// Rows of vector instructions that do the same in each lane: `opcode name(operand: type, …) -> type = expression;`
/// after the class they are counted under.
macro_rules! lanes {
    ($class:ident: $($code:literal $name:ident($($arg:ident: $ty:ty),*) -> $out:ty = $body:expr;)*) => {
        &[$($crate::isa::Row {
            opcode: $code,
            name: stringify!($name),
            class: $crate::counters::Class::$class,
            dst: <$out as $crate::lanes::Out>::TYPE,
            dst_mask: <$out as $crate::lanes::Out>::MASK,
            src: &[$(<$ty as $crate::lanes::Arg>::TYPE),*],
            exec: $crate::isa::Exec::Registers(|wave, op| {
                $crate::lanes::map(wave, op, |($($arg,)*): ($($ty,)*)| -> $out { $body })
            }),
        }),*]
    };
}

/// Rows of scalar instructions, in the form of `lanes!`.
macro_rules! scalars {
    ($($code:literal $name:ident($($arg:ident: $ty:ty),*) -> $out:ty = $body:expr;)*) => {
        &[$($crate::isa::Row {
            opcode: $code,
            name: stringify!($name),
            class: $crate::counters::Class::Salu,
            dst: <$out as $crate::scalar::Out>::TYPE,
            dst_mask: false,
            src: &[$(<$ty as $crate::scalar::Arg>::TYPE),*],
            exec: $crate::isa::Exec::Registers(|wave, op| {
                let result: $out = {
                    let mut at = 0;
                    $(let $arg = <$ty as $crate::scalar::Arg>::read(wave, op, &mut at);)*
                    let _ = at;
                    $body
                };
                $crate::scalar::Out::write(result, wave, op);
            }),
        }),*]
    };
}

/// Rows of instructions with an effect of their own: `opcode name: class, type of result, [types of operands] =
/// function;`, where the function takes what [`Exec::Registers`] or [`Exec::Machine`] says.
macro_rules! rows {
    ($kind:ident: $($code:literal $name:ident: $class:ident $dst:ident [$($ty:ident),*] = $exec:expr;)*) => {
        &[$($crate::isa::Row {
            opcode: $code,
            name: stringify!($name),
            class: $crate::counters::Class::$class,
            dst: $crate::isa::Type::$dst,
            dst_mask: false,
            src: &[$($crate::isa::Type::$ty),*],
            exec: $crate::isa::Exec::$kind($exec),
        }),*]
    };
}

/// Rows of instructions that are known by name only; their operands are not decoded.
macro_rules! missing {
    ($($code:literal $name:ident;)*) => {
        &[$($crate::isa::Row {
            opcode: $code,
            name: stringify!($name),
            class: $crate::counters::Class::Control,
            dst: $crate::isa::Type::Implied,
            dst_mask: false,
            src: &[],
            exec: $crate::isa::Exec::Missing,
        }),*]
    };
}

pub(crate) use {lanes, missing, rows, scalars};
