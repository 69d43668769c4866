//! From dwords to an [`Instruction`].
//!
//! The encoding family follows from the leading bits, the row from the opcode, and where each operand lies from the
//! family; how wide an operand is and how its constants read follows from the row. What the encoding can't express for
//! this instruction is refused, so that no instruction runs with half its meaning.
//!
//! Invariants
//! - Scalar operands lie in 0..128 and vector operands in 0..256 with all their registers. After
//!   [`bind`](Instruction::bind) vector operands lie below the kernel's own limit.
//! - No accumulation register is left after `bind`.

use crate::Illegal;
use crate::counters::Class;
use crate::isa::row::{Exec, Row, Type, index};
use crate::isa::{ds, flat, mubuf, smem, sop, vop1, vop2, vop3, vop3p, vopc};

static SOP1: [Option<&Row>; 256] = index(sop::SOP1);
static SOP2: [Option<&Row>; 128] = index(sop::SOP2);
static SOPC: [Option<&Row>; 128] = index(sop::SOPC);
static SOPK: [Option<&Row>; 32] = index(sop::SOPK);
static SOPP: [Option<&Row>; 128] = index(sop::SOPP);
static SMEM: [Option<&Row>; 256] = index(smem::SMEM);
static VOP1: [Option<&Row>; 256] = index(vop1::VOP1);
static VOP2: [Option<&Row>; 64] = index(vop2::VOP2);
static VOP3: [Option<&Row>; 1024] = index(vop3::VOP3);
static VOPC: [Option<&Row>; 256] = index(vopc::VOPC);
static VOP3P: [Option<&Row>; 128] = index(vop3p::VOP3P);
static DS: [Option<&Row>; 256] = index(ds::DS);
static FLAT: [Option<&Row>; 128] = index(flat::FLAT);
static SCRATCH: [Option<&Row>; 128] = index(flat::SCRATCH);
static GLOBAL: [Option<&Row>; 128] = index(flat::GLOBAL);
static MUBUF: [Option<&Row>; 128] = index(mubuf::MUBUF);

/// How an instruction is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Sop1,
    Sop2,
    Sopc,
    Sopk,
    Sopp,
    Smem,
    Vop1,
    Vop2,
    Vopc,
    /// VOP3, with the family whose instruction it holds.
    Vop3(Promoted),
    Vop3p,
    Ds,
    Flat,
    Scratch,
    Global,
    Mubuf,
}

/// Where the row of a VOP3 instruction comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promoted {
    Own,
    Vop1,
    Vop2,
    Vopc,
}

/// A place that an instruction reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    None,
    /// The first of one or more scalar registers, by encoding: VCC is 106, M0 124, EXEC 126.
    Scalar(u8),
    /// The first of one or more vector registers.
    Vector(u16),
    /// The first of one or more accumulation registers.
    Accum(u16),
    /// A constant, in the low bits of the width that the operand has.
    Const(u64),
    SharedBase,
    SharedLimit,
    PrivateBase,
    PrivateLimit,
    Vccz,
    Execz,
    Scc,
}

pub(crate) const VCC: u8 = 106;
pub(crate) const M0: u8 = 124;
pub(crate) const EXEC: u8 = 126;

/// Part of a register that an SDWA operand is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Select {
    /// First bit and number of bits.
    pub(crate) shift: u8,
    pub(crate) bits: u8,
    pub(crate) signed: bool,
}

impl Select {
    /// The field's value; 7 does not exist.
    fn decode(field: u32, signed: bool) -> Result<Self, Illegal> {
        let (shift, bits) = match field & 7 {
            byte @ 0..=3 => (byte * 8, 8),
            4 => (0, 16),
            5 => (16, 16),
            6 => (0, 32),
            _ => return Err(Illegal::Operand),
        };
        Ok(Self {
            shift: shift as u8,
            bits: bits as u8,
            signed,
        })
    }
}

/// What becomes of the bits of a register that an SDWA result does not fill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Unused {
    #[default]
    Zero,
    SignExtend,
    Preserve,
}

/// Operands taken from parts of registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sdwa {
    pub(crate) src: [Select; 2],
    pub(crate) dst: Select,
    pub(crate) unused: Unused,
}

/// The first operand taken from other lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dpp {
    pub(crate) control: u16,
    pub(crate) rows: u8,
    pub(crate) banks: u8,
    /// A lane without a source reads 0; otherwise it is not written.
    pub(crate) zero: bool,
}

/// Changes to operands and result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Modifiers {
    /// Bit per operand: absolute value, then negation.
    pub(crate) abs: u8,
    pub(crate) neg: u8,
    /// In packed instructions, negation of the high half.
    pub(crate) neg_hi: u8,
    /// Bit per operand and result: the high half of a register, or in packed instructions the source of the low half.
    pub(crate) op_sel: u8,
    /// In packed instructions, the source of the high half.
    pub(crate) op_sel_hi: u8,
    /// Result times 1, 2, 4, ½.
    pub(crate) omod: u8,
    pub(crate) clamp: bool,
    pub(crate) sdwa: Option<Sdwa>,
    pub(crate) dpp: Option<Dpp>,
}

/// Flags of memory instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemoryFlags {
    /// Return the value before an atomic.
    pub(crate) glc: bool,
    /// Buffer: a vector register holds an offset, an index.
    pub(crate) offen: bool,
    pub(crate) idxen: bool,
}

/// A decoded instruction.
#[derive(Clone)]
pub struct Instruction {
    pub(crate) row: &'static Row,
    pub(crate) family: Family,
    pub(crate) exec: Exec,
    pub(crate) class: Class,
    /// Bytes: 4 or 8.
    pub(crate) len: u8,
    /// Whether no modifier changes an operand or the result.
    pub(crate) plain: bool,
    pub(crate) words: [u32; 2],
    pub(crate) dst: Operand,
    /// Where a mask result goes.
    pub(crate) mask: Operand,
    /// Sources, in the order of the row's types. For memory: address, data, scalar address; and a second datum.
    pub(crate) src: [Operand; 4],
    /// Immediate offset or scalar immediate, sign-extended where the instruction says so.
    pub(crate) offset: i32,
    pub(crate) modifiers: Modifiers,
    pub(crate) flags: MemoryFlags,
}

/// Two dwords that are no instruction the emulator knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} cannot be decoded: {illegal}", mnemonic.unwrap_or("instruction"))]
pub struct Undecodable {
    /// The instruction's name, where the opcode is known.
    pub mnemonic: Option<&'static str>,
    /// What is wrong.
    pub illegal: Illegal,
}

impl std::fmt::Debug for Instruction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Instruction({self})")
    }
}

/// Bits `low..=high` of a word.
const fn bits(word: u32, high: u32, low: u32) -> u32 {
    word << (31 - high) >> (31 - high + low)
}

impl Instruction {
    /// Decodes the instruction that starts with `words[0]`. `words[1]` is looked at only where the instruction has a
    /// second dword.
    ///
    /// # Errors
    ///
    /// The words are no gfx90a instruction, or one that the emulator does not know in this form.
    pub fn decode(words: [u32; 2]) -> Result<Self, Undecodable> {
        let [w, _] = words;
        let (family, table, opcode): (_, &[Option<&'static Row>], _) = match w >> 26 {
            0b110000 => (Family::Smem, &SMEM, bits(w, 25, 18)),
            0b110100 => match (bits(w, 25, 16), bits(w, 25, 23)) {
                (_, 0b111) => (Family::Vop3p, &VOP3P, bits(w, 22, 16)),
                (op @ 0..0x100, _) => (Family::Vop3(Promoted::Vopc), &VOPC, op),
                (op @ 0x100..0x140, _) => (Family::Vop3(Promoted::Vop2), &VOP2, op - 0x100),
                (op @ 0x140..0x1c0, _) => (Family::Vop3(Promoted::Vop1), &VOP1, op - 0x140),
                (op, _) => (Family::Vop3(Promoted::Own), &VOP3, op),
            },
            0b110110 => (Family::Ds, &DS, bits(w, 24, 17)),
            0b110111 => match bits(w, 15, 14) {
                0 => (Family::Flat, &FLAT, bits(w, 24, 18)),
                1 => (Family::Scratch, &SCRATCH, bits(w, 24, 18)),
                2 => (Family::Global, &GLOBAL, bits(w, 24, 18)),
                _ => {
                    return Err(Undecodable {
                        mnemonic: None,
                        illegal: Illegal::Unknown,
                    });
                }
            },
            0b111000 => (Family::Mubuf, &MUBUF, bits(w, 24, 18)),
            0b100000..=0b101111 => match w >> 23 {
                0b1_0111_1101 => (Family::Sop1, &SOP1, bits(w, 15, 8)),
                0b1_0111_1110 => (Family::Sopc, &SOPC, bits(w, 22, 16)),
                0b1_0111_1111 => (Family::Sopp, &SOPP, bits(w, 22, 16)),
                0b1_0110_0000..0b1_0111_1101 => (Family::Sopk, &SOPK, bits(w, 27, 23)),
                _ => (Family::Sop2, &SOP2, bits(w, 29, 23)),
            },
            0b000000..=0b011111 => match bits(w, 30, 25) {
                0b111110 => (Family::Vopc, &VOPC, bits(w, 24, 17)),
                0b111111 => (Family::Vop1, &VOP1, bits(w, 16, 9)),
                op => (Family::Vop2, &VOP2, op),
            },
            0b111100 => {
                return Err(Undecodable {
                    mnemonic: Some("image instruction"),
                    illegal: Illegal::NotModelled,
                });
            }
            0b111010 => {
                return Err(Undecodable {
                    mnemonic: Some("typed buffer instruction"),
                    illegal: Illegal::NotModelled,
                });
            }
            _ => {
                return Err(Undecodable {
                    mnemonic: None,
                    illegal: Illegal::Unknown,
                });
            }
        };
        let row = table[opcode as usize].ok_or(Undecodable {
            mnemonic: None,
            illegal: Illegal::Unknown,
        })?;
        Decoder::new(row, family, words)
            .decode()
            .map_err(|illegal| Undecodable {
                mnemonic: Some(row.name),
                illegal,
            })
    }

    /// The instruction's name, without a suffix for its encoding.
    pub fn mnemonic(&self) -> &'static str {
        self.row.name
    }

    /// Bytes that it takes: 4 or 8.
    pub fn len_bytes(&self) -> usize {
        usize::from(self.len)
    }

    /// Whether the emulator can execute it, rather than only name it.
    pub fn is_modelled(&self) -> bool {
        !matches!(self.exec, Exec::Missing)
    }

    /// Replaces accumulation registers by the vector registers that they are, and checks that all lie among the
    /// `vgprs` registers that the kernel has.
    pub(crate) fn bind(&mut self, vgprs: u16, accum_offset: u16) -> Result<(), Illegal> {
        let widths = self.widths();
        let mut beyond = false;
        for (operand, width) in [&mut self.dst].into_iter().chain(&mut self.src).zip(widths) {
            if let Operand::Accum(first) = *operand {
                *operand = Operand::Vector(accum_offset + first);
            }
            if let Operand::Vector(first) = *operand {
                beyond |= first + width > vgprs;
            }
        }
        if beyond {
            Err(Illegal::Operand)
        } else {
            Ok(())
        }
    }

    /// Registers of the result and of each source.
    fn widths(&self) -> [u16; 5] {
        let source = |i: usize| self.row.src.get(i).map_or(1, |ty| ty.dwords().max(1));
        // The address of a flat or buffer instruction is as wide as the decoder found it to be.
        let address = match self.family {
            Family::Flat => 2,
            Family::Global if self.src[2] == Operand::None => 2,
            Family::Mubuf => 1 + u16::from(self.flags.offen && self.flags.idxen),
            Family::Scratch | Family::Global => 1,
            _ => source(0),
        };
        [
            self.row.dst.dwords().max(1),
            address,
            source(1),
            source(2),
            source(3),
        ]
    }
}

/// The registers that an operand encodes, in a family's terms.
struct Decoder {
    words: [u32; 2],
    op: Instruction,
    /// The literal was used, so the instruction has a second dword.
    literal: bool,
}

impl Decoder {
    fn new(row: &'static Row, family: Family, words: [u32; 2]) -> Self {
        let op = Instruction {
            row,
            family,
            exec: row.exec,
            class: row.class,
            len: 4,
            plain: true,
            words,
            dst: Operand::None,
            mask: Operand::None,
            src: [Operand::None; 4],
            offset: 0,
            modifiers: Modifiers::default(),
            flags: MemoryFlags::default(),
        };
        Self {
            words,
            op,
            literal: false,
        }
    }

    fn decode(mut self) -> Result<Instruction, Illegal> {
        if matches!(self.op.exec, Exec::Missing) {
            return Ok(self.op);
        }
        match self.op.family {
            Family::Sop1 | Family::Sop2 | Family::Sopc => self.scalar()?,
            Family::Sopk => self.scalar_immediate()?,
            Family::Sopp => self.op.offset = i32::from(self.words[0] as u16 as i16),
            Family::Smem => self.scalar_memory()?,
            Family::Vop1 | Family::Vop2 | Family::Vopc => self.vector()?,
            Family::Vop3(_) => self.vector_long()?,
            Family::Vop3p => self.vector_packed()?,
            Family::Ds => self.lds()?,
            Family::Flat | Family::Scratch | Family::Global => self.flat()?,
            Family::Mubuf => self.buffer()?,
        }
        let modifiers = &self.op.modifiers;
        self.op.plain = *modifiers
            == Modifiers {
                op_sel_hi: modifiers.op_sel_hi,
                ..Modifiers::default()
            };
        if self.literal {
            self.op.len = 8;
        }
        Ok(self.op)
    }

    fn low(&self, high: u32, low: u32) -> u32 {
        bits(self.words[0], high, low)
    }

    fn high(&self, high: u32, low: u32) -> u32 {
        bits(self.words[1], high, low)
    }

    /// `count` scalar registers from `first`.
    fn scalars(first: u32, count: u16) -> Result<Operand, Illegal> {
        // 125 is no register; EXEC is the only tuple above M0; tuples start at multiples of their size, at most 4.
        let aligned = first.is_multiple_of(u32::from(count.clamp(1, 4).next_power_of_two()));
        let inside =
            first + u32::from(count) <= u32::from(M0) || (count == 2 && first == u32::from(EXEC));
        let single = count == 1 && first < 128 && first != 125;
        if aligned && (inside || single) {
            Ok(Operand::Scalar(first as u8))
        } else {
            Err(Illegal::Operand)
        }
    }

    /// `count` vector registers from `first`.
    fn vectors(first: u32, count: u16) -> Result<Operand, Illegal> {
        if first + u32::from(count) <= 256 {
            Ok(Operand::Vector(first as u16))
        } else {
            Err(Illegal::Operand)
        }
    }

    /// Vector registers, or accumulation registers where a bit of the encoding says so.
    fn vectors_or_accum(accum: bool, first: u32, count: u16) -> Result<Operand, Illegal> {
        match Self::vectors(first, count)? {
            Operand::Vector(first) if accum => Ok(Operand::Accum(first)),
            operand => Ok(operand),
        }
    }

    /// A source in 8 or 9 bits.
    fn source(&mut self, code: u32, ty: Type) -> Result<Operand, Illegal> {
        Ok(match code {
            0..=127 => Self::scalars(code, ty.dwords())?,
            128..=208 => {
                let value = if code <= 192 {
                    i64::from(code) - 128
                } else {
                    192 - i64::from(code)
                };
                Operand::Const(integer(value, ty))
            }
            // Only their use as 64 bits is documented well enough.
            235..=238 if ty.dwords() != 2 => return Err(Illegal::Operand),
            235 => Operand::SharedBase,
            236 => Operand::SharedLimit,
            237 => Operand::PrivateBase,
            238 => Operand::PrivateLimit,
            240..=248 => Operand::Const(float(code, ty)),
            251 => Operand::Vccz,
            252 => Operand::Execz,
            253 => Operand::Scc,
            255 => {
                self.literal = true;
                Operand::Const(literal(self.words[1], ty))
            }
            256..=511 => Self::vectors(code - 256, ty.dwords())?,
            _ => return Err(Illegal::Operand),
        })
    }

    /// A source of a vector instruction, which is an accumulation register where the row says so.
    fn accum_or(&mut self, code: u32, ty: Type) -> Result<Operand, Illegal> {
        match (ty, self.source(code, ty)?) {
            (Type::Accum, Operand::Vector(first)) => Ok(Operand::Accum(first)),
            (Type::Accum, _) => Err(Illegal::Operand),
            (_, operand) => Ok(operand),
        }
    }

    /// The types of the operands that are encoded, with their place in the row.
    fn encoded(&self) -> impl Iterator<Item = (usize, Type)> + use<> {
        self.op
            .row
            .src
            .iter()
            .copied()
            .enumerate()
            .filter(|(_, ty)| !matches!(ty, Type::Implied | Type::Clamp))
    }

    fn scalar(&mut self) -> Result<(), Illegal> {
        let codes = match self.op.family {
            Family::Sop1 => [Some(self.low(7, 0)), None],
            _ => [Some(self.low(7, 0)), Some(self.low(15, 8))],
        };
        if self.op.row.dst != Type::Implied {
            self.op.dst = Self::scalars(self.low(22, 16), self.op.row.dst.dwords())?;
        }
        let mut codes = codes.into_iter().flatten();
        for (i, ty) in self.encoded() {
            // What is not encoded is the result's old value.
            self.op.src[i] = match codes.next() {
                Some(code) => self.source(code, ty)?,
                None => self.op.dst,
            };
        }
        Ok(())
    }

    fn scalar_immediate(&mut self) -> Result<(), Illegal> {
        let immediate = self.words[0] as u16;
        self.op.offset = i32::from(immediate as i16);
        let dwords = self.op.row.dst.dwords();
        if dwords > 0 {
            self.op.dst = Self::scalars(self.low(22, 16), dwords)?;
        }
        // The immediate is the last operand; one before it is the register.
        let count = self.encoded().count();
        for (n, (i, ty)) in self.encoded().enumerate() {
            self.op.src[i] = match ty {
                _ if n + 1 < count => Self::scalars(self.low(22, 16), ty.dwords())?,
                Type::U32 => Operand::Const(u64::from(immediate)),
                // A literal after the instruction instead of the immediate's use as a value.
                Type::Literal => {
                    self.literal = true;
                    Operand::Const(u64::from(self.words[1]))
                }
                _ => Operand::Const(u64::from(immediate as i16 as u32)),
            };
        }
        Ok(())
    }

    fn scalar_memory(&mut self) -> Result<(), Illegal> {
        self.op.len = 8;
        let row = self.op.row;
        if row.dst != Type::Implied {
            self.op.dst = Self::scalars(self.low(12, 6), row.dst.dwords())?;
        }
        if let Some(ty) = row.src.first() {
            self.op.src[0] = Self::scalars(self.low(5, 0) * 2, ty.dwords())?;
            match (self.low(17, 17), self.low(14, 14)) {
                (1, 0) => self.op.offset = self.high(20, 0) as i32,
                (1, _) => {
                    self.op.offset = self.high(20, 0) as i32;
                    self.op.src[1] = Self::scalars(self.high(31, 25), 1)?;
                }
                (_, 0) => self.op.src[1] = Self::scalars(self.high(6, 0), 1)?,
                (..) => self.op.src[1] = Self::scalars(self.high(31, 25), 1)?,
            }
            // 21 bits, signed.
            self.op.offset = self.op.offset << 11 >> 11;
        }
        Ok(())
    }

    /// VOP1, VOP2 and VOPC in 32 bits, with a literal, an SDWA or a DPP dword.
    fn vector(&mut self) -> Result<(), Illegal> {
        let row = self.op.row;
        let vdst = self.low(24, 17);
        let mut codes = match self.op.family {
            Family::Vop1 => vec![self.low(8, 0)],
            _ => vec![self.low(8, 0), self.low(16, 9) + 256],
        };
        if self.op.family != Family::Vopc {
            self.op.dst = Self::result(row.dst, vdst)?;
        }
        if row.dst_mask {
            self.op.mask = Operand::Scalar(VCC);
        }
        match codes[0] {
            _ if row.src.is_empty() => {}
            249 => self.sdwa(&mut codes)?,
            250 => self.dpp(&mut codes)?,
            _ => {}
        }
        let mut codes = codes.into_iter();
        for (i, ty) in self.encoded() {
            self.op.src[i] = match ty {
                Type::Literal => {
                    self.literal = true;
                    Operand::Const(u64::from(self.words[1]))
                }
                Type::Mask => Operand::Scalar(VCC),
                _ => match codes.next() {
                    Some(code) => self.accum_or(code, ty)?,
                    None => self.op.dst,
                },
            };
        }
        if self.literal && self.op.len == 8 {
            return Err(Illegal::Operand);
        }
        self.check_modifiers()
    }

    /// Where a vector instruction puts its result.
    fn result(ty: Type, field: u32) -> Result<Operand, Illegal> {
        match ty {
            Type::Implied => Ok(Operand::None),
            Type::Scalar => Self::scalars(field, 1),
            Type::Accum => Ok(Operand::Accum(field as u16)),
            _ => Self::vectors(field, ty.dwords()),
        }
    }

    fn sdwa(&mut self, codes: &mut [u32]) -> Result<(), Illegal> {
        self.op.len = 8;
        let row = self.op.row;
        if row
            .src
            .iter()
            .chain([&row.dst])
            .any(|ty| ty.dwords() > 1 && *ty != Type::Mask)
        {
            return Err(Illegal::Mode);
        }
        let scalar = |scalar: u32| if scalar == 0 { 256 } else { 0 };
        codes[0] = self.high(7, 0) + scalar(self.high(23, 23));
        if let Some(code) = codes.get_mut(1) {
            *code = *code - 256 + scalar(self.high(31, 31));
        }
        let whole = Select {
            shift: 0,
            bits: 32,
            signed: false,
        };
        let mut sdwa = Sdwa {
            src: [
                Select::decode(self.high(18, 16), self.high(19, 19) != 0)?,
                whole,
            ],
            dst: whole,
            unused: Unused::Zero,
        };
        if codes.len() > 1 {
            sdwa.src[1] = Select::decode(self.high(26, 24), self.high(27, 27) != 0)?;
        }
        let modifiers = &mut self.op.modifiers;
        modifiers.neg =
            bits(self.words[1], 20, 20) as u8 | (bits(self.words[1], 28, 28) as u8) << 1;
        modifiers.abs =
            bits(self.words[1], 21, 21) as u8 | (bits(self.words[1], 29, 29) as u8) << 1;
        if self.op.family == Family::Vopc {
            if self.high(15, 15) != 0 {
                self.op.mask = Self::scalars(self.high(14, 8), 2)?;
            }
        } else {
            sdwa.dst = Select::decode(self.high(10, 8), false)?;
            sdwa.unused = match self.high(12, 11) {
                0 => Unused::Zero,
                1 => Unused::SignExtend,
                2 => Unused::Preserve,
                _ => return Err(Illegal::Operand),
            };
            let modifiers = &mut self.op.modifiers;
            modifiers.clamp = bits(self.words[1], 13, 13) != 0;
            modifiers.omod = bits(self.words[1], 15, 14) as u8;
        }
        self.op.modifiers.sdwa = Some(sdwa);
        Ok(())
    }

    fn dpp(&mut self, codes: &mut [u32]) -> Result<(), Illegal> {
        self.op.len = 8;
        let row = self.op.row;
        if self.op.family == Family::Vopc
            || row
                .src
                .iter()
                .chain([&row.dst])
                .any(|ty| ty.dwords() > 1 && *ty != Type::Mask)
        {
            return Err(Illegal::Mode);
        }
        codes[0] = self.high(7, 0) + 256;
        let control = self.high(16, 8) as u16;
        if !matches!(control, 0..=0xff | 0x101..=0x10f | 0x111..=0x11f | 0x121..=0x12f | 0x130 | 0x134 | 0x138 | 0x13c
            | 0x140..=0x143 | 0x150..=0x15f)
        {
            return Err(Illegal::Operand);
        }
        let modifiers = &mut self.op.modifiers;
        modifiers.neg =
            bits(self.words[1], 20, 20) as u8 | (bits(self.words[1], 22, 22) as u8) << 1;
        modifiers.abs =
            bits(self.words[1], 21, 21) as u8 | (bits(self.words[1], 23, 23) as u8) << 1;
        modifiers.dpp = Some(Dpp {
            control,
            banks: bits(self.words[1], 27, 24) as u8,
            rows: bits(self.words[1], 31, 28) as u8,
            zero: bits(self.words[1], 19, 19) != 0,
        });
        Ok(())
    }

    fn vector_long(&mut self) -> Result<(), Illegal> {
        self.op.len = 8;
        let row = self.op.row;
        let compare = row.dst_mask && row.dst == Type::Implied;
        self.op.dst = Self::result(row.dst, self.low(7, 0))?;
        let modifiers = &mut self.op.modifiers;
        modifiers.clamp = bits(self.words[0], 15, 15) != 0;
        modifiers.omod = bits(self.words[1], 28, 27) as u8;
        modifiers.neg = bits(self.words[1], 31, 29) as u8;
        if compare {
            self.op.mask = Self::scalars(self.low(7, 0), 2)?;
        } else if row.dst_mask {
            self.op.mask = Self::scalars(self.low(14, 8), 2)?;
        }
        if compare || !row.dst_mask {
            let modifiers = &mut self.op.modifiers;
            modifiers.abs = bits(self.words[0], 10, 8) as u8;
            modifiers.op_sel = bits(self.words[0], 14, 11) as u8;
        }
        let implied_dst = self.op.family == Family::Vop3(Promoted::Vop2);
        let mut codes = [self.high(8, 0), self.high(17, 9), self.high(26, 18)].into_iter();
        for (n, (i, ty)) in self.encoded().enumerate() {
            let code = codes.next().unwrap_or(0);
            self.op.src[i] = match ty {
                Type::Literal => return Err(Illegal::Operand),
                _ if n == 2 && implied_dst && ty != Type::Mask => self.op.dst,
                _ => self.source(code, ty)?,
            };
        }
        if self.literal {
            return Err(Illegal::Operand);
        }
        self.check_modifiers()
    }

    fn vector_packed(&mut self) -> Result<(), Illegal> {
        self.op.len = 8;
        let row = self.op.row;
        self.op.dst = Self::result(row.dst, self.low(7, 0))?;
        let codes = [self.high(8, 0), self.high(17, 9), self.high(26, 18)];
        for ((i, ty), code) in self.encoded().zip(codes) {
            self.op.src[i] = self.accum_or(code, ty)?;
        }
        if self.literal {
            return Err(Illegal::Operand);
        }
        if row.dst == Type::Accum || row.src.contains(&Type::Accum) {
            return Ok(());
        }
        let modifiers = &mut self.op.modifiers;
        modifiers.op_sel = bits(self.words[0], 13, 11) as u8;
        modifiers.op_sel_hi =
            (bits(self.words[1], 28, 27) | bits(self.words[0], 14, 14) << 2) as u8;
        modifiers.neg = bits(self.words[1], 31, 29) as u8;
        modifiers.neg_hi = bits(self.words[0], 10, 8) as u8;
        modifiers.clamp = bits(self.words[0], 15, 15) != 0;
        if modifiers.clamp && !row.dst.is_float() && !row.clamps() {
            return Err(Illegal::Mode);
        }
        Ok(())
    }

    /// Refuses modifiers that the row gives no meaning to.
    fn check_modifiers(&self) -> Result<(), Illegal> {
        let (row, modifiers) = (self.op.row, &self.op.modifiers);
        let clamps = row.dst.is_float() || row.clamps();
        let half = |ty: &Type| matches!(ty, Type::U16 | Type::I16 | Type::F16);
        let halves = row.src.iter().any(half) || half(&row.dst);
        let signs = modifiers.abs | modifiers.neg;
        let signed = |(n, ty): (usize, &Type)| signs >> n & 1 == 0 || ty.is_float();
        if !row.src.iter().enumerate().all(signed) {
            return Err(Illegal::Mode);
        }
        if modifiers.clamp && !clamps
            || modifiers.omod != 0 && !row.dst.is_float()
            || modifiers.op_sel != 0 && !halves
        {
            return Err(Illegal::Mode);
        }
        Ok(())
    }

    fn lds(&mut self) -> Result<(), Illegal> {
        self.op.len = 8;
        let (row, accum) = (self.op.row, self.low(25, 25) != 0);
        if self.low(16, 16) != 0 {
            return Err(Illegal::Mode);
        }
        self.op.offset = self.low(15, 0) as i32;
        if row.dst != Type::Implied {
            self.op.dst = Self::vectors_or_accum(accum, self.high(31, 24), row.dst.dwords())?;
        }
        for (i, ty) in self.encoded() {
            self.op.src[i] = match i {
                0 => Self::vectors(self.high(7, 0), 1)?,
                1 => Self::vectors_or_accum(accum, self.high(15, 8), ty.dwords())?,
                _ => Self::vectors_or_accum(accum, self.high(23, 16), ty.dwords())?,
            };
        }
        Ok(())
    }

    fn flat(&mut self) -> Result<(), Illegal> {
        self.op.len = 8;
        let (family, accum) = (self.op.family, self.high(23, 23) != 0);
        if self.low(13, 13) != 0 {
            return Err(Illegal::Mode);
        }
        let saddr = self.high(22, 16);
        let offset = self.low(12, 0) as i32;
        self.op.offset = if family == Family::Flat {
            offset & 0xfff
        } else {
            offset << 19 >> 19
        };
        let scalar = family != Family::Flat && saddr != 0x7f;
        if scalar {
            self.op.src[2] = Self::scalars(saddr, if family == Family::Global { 2 } else { 1 })?;
        }
        let address_dwords = if family == Family::Flat || family == Family::Global && !scalar {
            2
        } else {
            1
        };
        if family != Family::Scratch || !scalar {
            self.op.src[0] = Self::vectors(self.high(7, 0), address_dwords)?;
        }
        self.vector_memory(
            self.low(16, 16) != 0,
            accum,
            self.high(31, 24),
            self.high(15, 8),
        )
    }

    fn buffer(&mut self) -> Result<(), Illegal> {
        self.op.len = 8;
        if self.op.row.src.is_empty() {
            return Ok(());
        }
        let accum = self.high(23, 23) != 0;
        if self.low(16, 16) != 0 {
            return Err(Illegal::Mode);
        }
        self.op.offset = self.low(11, 0) as i32;
        self.op.flags.offen = self.low(12, 12) != 0;
        self.op.flags.idxen = self.low(13, 13) != 0;
        let address = u16::from(self.op.flags.offen) + u16::from(self.op.flags.idxen);
        if address > 0 {
            self.op.src[0] = Self::vectors(self.high(7, 0), address)?;
        }
        self.op.src[2] = Self::scalars(self.high(20, 16) * 4, 4)?;
        let soffset = self.high(31, 24);
        self.op.src[3] = match self.source(soffset, Type::U32)? {
            _ if self.literal => return Err(Illegal::Operand),
            operand => operand,
        };
        let data = self.high(15, 8);
        self.vector_memory(self.low(14, 14) != 0, accum, data, data)
    }

    /// Data and result of a load, store or atomic; the latter has a result only if the encoding asks for it.
    fn vector_memory(
        &mut self,
        glc: bool,
        accum: bool,
        result: u32,
        data: u32,
    ) -> Result<(), Illegal> {
        let row = self.op.row;
        self.op.flags.glc = glc;
        let atomic = row.src.len() > 1 && row.dst != Type::Implied;
        if row.dst != Type::Implied && (!atomic || glc) {
            self.op.dst = Self::vectors_or_accum(accum, result, row.dst.dwords())?;
        }
        if let Some(ty) = row.src.get(1) {
            self.op.src[1] = Self::vectors_or_accum(accum, data, ty.dwords())?;
        }
        if atomic && glc {
            self.op.class = match row.class {
                Class::FlatWrite => Class::FlatRead,
                _ => Class::VmemRead,
            };
        }
        Ok(())
    }
}

/// An inline integer, in the form that the type wants it.
fn integer(value: i64, ty: Type) -> u64 {
    match ty.dwords() {
        2 if ty != Type::PairF32 && ty != Type::PairU32 => value as u64,
        _ if matches!(ty, Type::U16 | Type::I16 | Type::F16) => u64::from(value as u16),
        _ => u64::from(value as u32),
    }
}

/// Inline floats: ½, 1, 2, 4 with both signs, and 1/(2π).
fn float(code: u32, ty: Type) -> u64 {
    const DOUBLE: [f64; 8] = [0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 4.0, -4.0];
    const SINGLE: [f32; 8] = [0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 4.0, -4.0];
    const HALF: [u16; 8] = [
        0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000, 0xc000, 0x4400, 0xc400,
    ];
    let i = code as usize - 240;
    match ty {
        Type::F64 | Type::U64 | Type::I64 => DOUBLE
            .get(i)
            .map_or(0x3fc4_5f30_6dc9_c882, |value| value.to_bits()),
        Type::F16 | Type::U16 | Type::I16 | Type::PairF16 | Type::PairU16 | Type::PairI16 => {
            u64::from(*HALF.get(i).unwrap_or(&0x3118))
        }
        _ => u64::from(SINGLE.get(i).map_or(0x3e22_f983, |value| value.to_bits())),
    }
}

/// A literal dword, in the form that the type wants it: the high half of a double, sign-extended where signed.
fn literal(word: u32, ty: Type) -> u64 {
    match ty {
        Type::F64 => u64::from(word) << 32,
        Type::I64 => i64::from(word as i32) as u64,
        Type::U16 | Type::I16 | Type::F16 => u64::from(word as u16),
        _ => u64::from(word),
    }
}

/// Every row, with the family of its table.
#[cfg(test)]
pub(super) fn rows() -> impl Iterator<Item = (Family, &'static Row)> {
    let tables: [(Family, &[Option<&'static Row>]); 16] = [
        (Family::Sop1, &SOP1),
        (Family::Sop2, &SOP2),
        (Family::Sopc, &SOPC),
        (Family::Sopk, &SOPK),
        (Family::Sopp, &SOPP),
        (Family::Smem, &SMEM),
        (Family::Vop1, &VOP1),
        (Family::Vop2, &VOP2),
        (Family::Vop3(Promoted::Own), &VOP3),
        (Family::Vopc, &VOPC),
        (Family::Vop3p, &VOP3P),
        (Family::Ds, &DS),
        (Family::Flat, &FLAT),
        (Family::Scratch, &SCRATCH),
        (Family::Global, &GLOBAL),
        (Family::Mubuf, &MUBUF),
    ];
    tables
        .into_iter()
        .flat_map(|(family, table)| table.iter().flatten().map(move |row| (family, *row)))
}
