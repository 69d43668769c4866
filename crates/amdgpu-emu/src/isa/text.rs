//! The assembler's text of an instruction, as LLVM writes it.
//!
//! It is made of the decoded operands, so that comparing it with LLVM's disassembler compares what the interpreter
//! will do.

use std::fmt::{self, Display, Formatter, Write as _};

use crate::isa::decode::{
    Dpp, EXEC, Family, Instruction, M0, Operand, Promoted, Select, Unused, VCC,
};
use crate::isa::row::{Exec, Type};

impl Display for Instruction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.row.name)?;
        f.write_str(self.suffix())?;
        if matches!(self.exec, Exec::Missing) {
            return Ok(());
        }
        let mut list = String::new();
        let mut tail = String::new();
        match self.family {
            Family::Sop1 | Family::Sop2 | Family::Sopc => self.scalar_operands(&mut list)?,
            Family::Sopk => self.immediate_operands(&mut list)?,
            Family::Sopp => self.control_operands(&mut list)?,
            Family::Smem => self.scalar_memory_operands(&mut list, &mut tail)?,
            Family::Ds => self.lds_operands(&mut list, &mut tail)?,
            Family::Flat | Family::Global | Family::Scratch => {
                self.flat_operands(&mut list, &mut tail)?
            }
            Family::Mubuf => self.buffer_operands(&mut list, &mut tail)?,
            _ => self.vector_operands(&mut list, &mut tail)?,
        }
        if !list.is_empty() {
            write!(f, " {list}")?;
        }
        f.write_str(&tail)
    }
}

/// Appends to a list that commas separate.
macro_rules! item {
    ($list:expr, $($item:tt)*) => {{
        if !$list.is_empty() {
            $list.push_str(", ");
        }
        write!($list, $($item)*)
    }};
}

/// Registers with their number, as `s5` or `v[2:3]`.
struct Registers {
    letter: char,
    first: u16,
    count: u16,
}

impl Display for Registers {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self {
            letter,
            first,
            count,
        } = self;
        if *count == 1 {
            write!(f, "{letter}{first}")
        } else {
            write!(f, "{letter}[{first}:{}]", first + count - 1)
        }
    }
}

/// A scalar register, of which some have names.
fn scalar(f: &mut Formatter<'_>, first: u8, count: u16) -> fmt::Result {
    let named = match first & !1 {
        102 => "flat_scratch",
        104 => "xnack_mask",
        VCC => "vcc",
        EXEC => "exec",
        _ => "",
    };
    match (first, count) {
        (M0, 1) => f.write_str("m0"),
        (_, 2) if !named.is_empty() => f.write_str(named),
        (_, 1) if !named.is_empty() => {
            write!(f, "{named}_{}", if first & 1 == 0 { "lo" } else { "hi" })
        }
        (108..=123, _) => write!(
            f,
            "ttmp{}",
            Registers {
                letter: ' ',
                first: u16::from(first) - 108,
                count
            }
            .to_string()
            .trim()
        ),
        _ => Registers {
            letter: 's',
            first: first.into(),
            count,
        }
        .fmt(f),
    }
}

/// An operand of a type.
struct Shown(Operand, Type);

impl Display for Shown {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let count = self.1.dwords().max(1);
        match self.0 {
            Operand::None => f.write_str("off"),
            Operand::Scalar(first) => scalar(f, first, count),
            Operand::Vector(first) => Registers {
                letter: 'v',
                first,
                count,
            }
            .fmt(f),
            Operand::Accum(first) => Registers {
                letter: 'a',
                first,
                count,
            }
            .fmt(f),
            Operand::Const(value) => constant(f, value, self.1),
            Operand::SharedBase => f.write_str("src_shared_base"),
            Operand::SharedLimit => f.write_str("src_shared_limit"),
            Operand::PrivateBase => f.write_str("src_private_base"),
            Operand::PrivateLimit => f.write_str("src_private_limit"),
            Operand::Vccz => f.write_str("src_vccz"),
            Operand::Execz => f.write_str("src_execz"),
            Operand::Scc => f.write_str("src_scc"),
        }
    }
}

/// A constant: those that have a short encoding as the number they are, others as bits.
fn constant(f: &mut Formatter<'_>, value: u64, ty: Type) -> fmt::Result {
    let pair = matches!(ty, Type::PairF32 | Type::PairU32);
    let half = matches!(
        ty,
        Type::F16 | Type::U16 | Type::I16 | Type::PairF16 | Type::PairU16 | Type::PairI16
    );
    let (integer, float) = if ty.dwords() == 2 && !pair {
        (
            value as i64,
            (value != 0x3fc4_5f30_6dc9_c882).then(|| f64::from_bits(value)),
        )
    } else if half {
        (
            i64::from(value as u16 as i16),
            (value != 0x3118).then(|| f64::from(crate::isa::F16(value as u16).to_f32())),
        )
    } else {
        (
            i64::from(value as u32 as i32),
            (value != 0x3e22_f983).then(|| f64::from(f32::from_bits(value as u32))),
        )
    };
    match float {
        _ if (-16..=64).contains(&integer) && ty != Type::Literal => write!(f, "{integer}"),
        _ if matches!(ty, Type::U16 | Type::I16) => write!(f, "{:#x}", value as u16),
        None if ty.dwords() == 2 && !pair => f.write_str("0.15915494309189532"),
        None => f.write_str("0.15915494"),
        Some(float) if [0.5, 1.0, 2.0, 4.0].contains(&float.abs()) && ty != Type::Literal => {
            write!(f, "{float:.1}")
        }
        _ if ty == Type::F64 => write!(f, "{:#x}", value >> 32),
        _ => write!(f, "{:#x}", value as u32),
    }
}

impl Instruction {
    fn suffix(&self) -> &'static str {
        let plain = matches!(
            self.row.name,
            "v_nop"
                | "v_clrexcp"
                | "v_readfirstlane_b32"
                | "v_madmk_f32"
                | "v_madak_f32"
                | "v_accvgpr_mov_b32"
                | "v_swap_b32"
        );
        match self.family {
            Family::Vop1 | Family::Vop2 | Family::Vopc if self.modifiers.sdwa.is_some() => "_sdwa",
            Family::Vop1 | Family::Vop2 | Family::Vopc if self.modifiers.dpp.is_some() => "_dpp",
            Family::Vop1 | Family::Vop2 | Family::Vopc if !plain => "_e32",
            Family::Vop3(Promoted::Vop1 | Promoted::Vop2 | Promoted::Vopc) => "_e64",
            _ => "",
        }
    }

    fn scalar_operands(&self, list: &mut String) -> fmt::Result {
        if self.row.dst != Type::Implied {
            item!(list, "{}", Shown(self.dst, self.row.dst))?;
        }
        let encoded = if self.family == Family::Sop1 { 1 } else { 2 };
        let types = self
            .row
            .src
            .iter()
            .zip(self.src)
            .filter(|(ty, _)| **ty != Type::Implied);
        types
            .take(encoded)
            .try_for_each(|(ty, src)| item!(list, "{}", Shown(src, *ty)))
    }

    fn immediate_operands(&self, list: &mut String) -> fmt::Result {
        let immediate = self.offset as u16;
        if self.row.dst != Type::Implied {
            item!(list, "{}", Shown(self.dst, self.row.dst))?;
        } else if let Operand::Scalar(_) = self.src[0] {
            item!(list, "{}", Shown(self.src[0], self.row.src[0]))?;
        }
        match self.row.name {
            "s_getreg_b32" => item!(list, "{}", hardware_register(immediate)),
            "s_setreg_b32" | "s_setreg_imm32_b32" => {
                list.clear();
                item!(
                    list,
                    "{}, {}",
                    hardware_register(immediate),
                    Shown(self.src[0], Type::U32)
                )
            }
            "s_call_b64" => item!(list, "{immediate}"),
            _ => item!(list, "{immediate:#x}"),
        }
    }

    fn control_operands(&self, list: &mut String) -> fmt::Result {
        let immediate = self.offset as u16;
        match self.row.name {
            "s_endpgm" if immediate == 0 => Ok(()),
            "s_barrier" | "s_wakeup" | "s_icache_inv" | "s_ttracedata" => Ok(()),
            "s_waitcnt" => {
                let vector = immediate & 0xf | immediate >> 14 << 4;
                let (export, scalar) = (immediate >> 4 & 7, immediate >> 8 & 0xf);
                let all = (vector, export, scalar) == (0x3f, 7, 0xf);
                let counts = [
                    ("vmcnt", vector, 0x3f),
                    ("expcnt", export, 7),
                    ("lgkmcnt", scalar, 0xf),
                ];
                let waits = counts
                    .into_iter()
                    .filter(|(_, count, none)| all || count != none);
                let waits: Vec<String> = waits
                    .map(|(name, count, _)| format!("{name}({count})"))
                    .collect();
                list.push_str(&waits.join(" "));
                Ok(())
            }
            "s_sendmsg" if immediate == 1 => write!(list, "sendmsg(MSG_INTERRUPT)"),
            name if immediate > 64
                && !["s_branch", "s_cbranch", "s_endpgm", "s_sendmsg"]
                    .iter()
                    .any(|decimal| name.starts_with(decimal)) =>
            {
                write!(list, "{immediate:#x}")
            }
            _ => write!(list, "{immediate}"),
        }
    }

    fn scalar_memory_operands(&self, list: &mut String, tail: &mut String) -> fmt::Result {
        if self.row.dst != Type::Implied {
            item!(list, "{}", Shown(self.dst, self.row.dst))?;
        }
        let Some(ty) = self.row.src.first() else {
            return Ok(());
        };
        item!(list, "{}", Shown(self.src[0], *ty))?;
        if self.words[0] >> 16 & 1 != 0 {
            tail.push_str(" glc");
        }
        let immediate = if self.offset < 0 {
            format!("-{:#x}", -self.offset)
        } else {
            format!("{:#x}", self.offset)
        };
        match self.src[1] {
            Operand::None => item!(list, "{immediate}"),
            register => {
                item!(list, "{}", Shown(register, Type::U32))?;
                // An instruction without the immediate's bit has no offset.
                if self.words[0] >> 17 & 1 != 0 {
                    write!(list, " offset:{immediate}")
                } else {
                    Ok(())
                }
            }
        }
    }

    fn lds_operands(&self, list: &mut String, tail: &mut String) -> fmt::Result {
        if self.row.dst != Type::Implied {
            item!(list, "{}", Shown(self.dst, self.row.dst))?;
        }
        self.row
            .src
            .iter()
            .zip(self.src)
            .try_for_each(|(ty, src)| item!(list, "{}", Shown(src, *ty)))?;
        let (low, high) = (self.offset & 0xff, self.offset >> 8 & 0xff);
        if ["read2", "write2"]
            .iter()
            .any(|two| self.row.name.contains(two))
        {
            if low != 0 {
                write!(tail, " offset0:{low}")?;
            }
            if high != 0 {
                write!(tail, " offset1:{high}")?;
            }
        } else if self.offset != 0 {
            write!(tail, " offset:{}", self.offset)?;
        }
        Ok(())
    }

    fn flat_operands(&self, list: &mut String, tail: &mut String) -> fmt::Result {
        if self.dst != Operand::None {
            item!(list, "{}", Shown(self.dst, self.row.dst))?;
        }
        let scalar = self.src[2];
        let wide =
            self.family == Family::Flat || self.family == Family::Global && scalar == Operand::None;
        item!(
            list,
            "{}",
            Shown(self.src[0], if wide { Type::U64 } else { Type::U32 })
        )?;
        if let Some(ty) = self.row.src.get(1) {
            item!(list, "{}", Shown(self.src[1], *ty))?;
        }
        match self.family {
            Family::Flat => {}
            Family::Global => item!(list, "{}", Shown(scalar, Type::U64))?,
            _ => item!(list, "{}", Shown(scalar, Type::U32))?,
        }
        self.memory_tail(tail, 25)
    }

    fn buffer_operands(&self, list: &mut String, tail: &mut String) -> fmt::Result {
        if self.row.src.is_empty() {
            return Ok(());
        }
        match self.row.src.get(1) {
            Some(ty) => item!(list, "{}", Shown(self.src[1], *ty))?,
            None => item!(list, "{}", Shown(self.dst, self.row.dst))?,
        }
        let both = self.flags.offen && self.flags.idxen;
        item!(
            list,
            "{}",
            Shown(self.src[0], if both { Type::U64 } else { Type::U32 })
        )?;
        item!(list, "{}", Shown(self.src[2], Type::B128))?;
        item!(list, "{}", Shown(self.src[3], Type::U32))?;
        if self.flags.idxen {
            tail.push_str(" idxen");
        }
        if self.flags.offen {
            tail.push_str(" offen");
        }
        self.memory_tail(tail, 15)
    }

    /// Offset and cache flags, of which `scc` has a bit of its own in each encoding.
    fn memory_tail(&self, tail: &mut String, scc: u32) -> fmt::Result {
        if self.offset != 0 {
            write!(tail, " offset:{}", self.offset)?;
        }
        if self.flags.glc {
            tail.push_str(" glc");
        }
        for (name, bit) in [(" slc", 17), (" scc", scc)] {
            if self.words[0] >> bit & 1 != 0 {
                tail.push_str(name);
            }
        }
        Ok(())
    }

    fn vector_operands(&self, list: &mut String, tail: &mut String) -> fmt::Result {
        let modifiers = &self.modifiers;
        if self.row.dst != Type::Implied {
            item!(list, "{}", Shown(self.dst, self.row.dst))?;
        }
        if self.row.dst_mask {
            item!(list, "{}", Shown(self.mask, Type::Mask))?;
        }
        let packed = self.family == Family::Vop3p;
        let mixed = self.row.src.contains(&Type::Mix);
        let mut count = 0;
        for (n, (ty, src)) in self.row.src.iter().zip(self.src).enumerate() {
            let old = n == 2
                && matches!(self.family, Family::Vop2 | Family::Vop3(Promoted::Vop2))
                && src == self.dst
                && !self.row.src.contains(&Type::Literal);
            if matches!(ty, Type::Implied | Type::Clamp)
                || old && !matches!(ty, Type::Mask | Type::Literal)
            {
                continue;
            }
            count += 1;
            let (abs, neg) = match (packed, mixed) {
                (true, false) => (false, false),
                (true, true) => (modifiers.neg_hi >> n & 1 != 0, modifiers.neg >> n & 1 != 0),
                _ => (modifiers.abs >> n & 1 != 0, modifiers.neg >> n & 1 != 0),
            };
            let mut text = Shown(src, *ty).to_string();
            if abs {
                text = format!("|{text}|");
            }
            if modifiers
                .sdwa
                .is_some_and(|sdwa| n < 2 && sdwa.src[n].signed)
            {
                text = format!("sext({text})");
            }
            match src {
                // A minus sign before a number would read as another number.
                Operand::Const(_) if neg && !abs => item!(list, "neg({text})")?,
                _ => item!(list, "{}{text}", if neg { "-" } else { "" })?,
            }
        }
        self.vector_tail(tail, count, packed, mixed)
    }

    fn vector_tail(
        &self,
        tail: &mut String,
        count: usize,
        packed: bool,
        mixed: bool,
    ) -> fmt::Result {
        let modifiers = &self.modifiers;
        let accum = self.row.dst == Type::Accum || self.row.src.contains(&Type::Accum);
        let bits = |bits: u8, count: usize| {
            let bits: Vec<String> = (0..count).map(|i| (bits >> i & 1).to_string()).collect();
            format!("[{}]", bits.join(","))
        };
        let ones = (1u8 << count) - 1;
        if packed && !accum {
            if modifiers.op_sel & ones != 0 {
                write!(tail, " op_sel:{}", bits(modifiers.op_sel, count))?;
            }
            if modifiers.op_sel_hi & ones != if mixed { 0 } else { ones } {
                write!(tail, " op_sel_hi:{}", bits(modifiers.op_sel_hi, count))?;
            }
            if !mixed && modifiers.neg & ones != 0 {
                write!(tail, " neg_lo:{}", bits(modifiers.neg, count))?;
            }
            if !mixed && modifiers.neg_hi & ones != 0 {
                write!(tail, " neg_hi:{}", bits(modifiers.neg_hi, count))?;
            }
        } else if modifiers.op_sel != 0 {
            let result = modifiers.op_sel >> 3 << count;
            write!(
                tail,
                " op_sel:{}",
                bits(modifiers.op_sel & ones | result, count + 1)
            )?;
        }
        if modifiers.clamp {
            tail.push_str(" clamp");
        }
        tail.push_str(["", " mul:2", " mul:4", " div:2"][usize::from(modifiers.omod)]);
        if let Some(sdwa) = modifiers.sdwa {
            if self.family != Family::Vopc {
                let unused = match sdwa.unused {
                    Unused::Zero => "UNUSED_PAD",
                    Unused::SignExtend => "UNUSED_SEXT",
                    Unused::Preserve => "UNUSED_PRESERVE",
                };
                write!(tail, " dst_sel:{} dst_unused:{unused}", part(sdwa.dst))?;
            }
            for (n, src) in sdwa
                .src
                .into_iter()
                .enumerate()
                .take(if self.family == Family::Vop1 { 1 } else { 2 })
            {
                write!(tail, " src{n}_sel:{}", part(src))?;
            }
        }
        modifiers.dpp.map_or(Ok(()), |dpp| lanes(tail, dpp))
    }
}

/// A hardware register, and the bits of it if not all.
fn hardware_register(immediate: u16) -> String {
    let (register, first, bits) = (
        immediate & 0x3f,
        immediate >> 6 & 0x1f,
        (immediate >> 11) + 1,
    );
    let name = match register {
        1 => "HW_REG_MODE",
        2 => "HW_REG_STATUS",
        3 => "HW_REG_TRAPSTS",
        4 => "HW_REG_HW_ID",
        5 => "HW_REG_GPR_ALLOC",
        6 => "HW_REG_LDS_ALLOC",
        7 => "HW_REG_IB_STS",
        15 => "HW_REG_SH_MEM_BASES",
        16 => "HW_REG_TBA_LO",
        17 => "HW_REG_TBA_HI",
        18 => "HW_REG_TMA_LO",
        19 => "HW_REG_TMA_HI",
        _ => return format!("hwreg({register}, {first}, {bits})"),
    };
    if (first, bits) == (0, 32) {
        format!("hwreg({name})")
    } else {
        format!("hwreg({name}, {first}, {bits})")
    }
}

fn part(select: Select) -> &'static str {
    match (select.bits, select.shift) {
        (8, 0) => "BYTE_0",
        (8, 8) => "BYTE_1",
        (8, 16) => "BYTE_2",
        (8, _) => "BYTE_3",
        (16, 0) => "WORD_0",
        (16, _) => "WORD_1",
        _ => "DWORD",
    }
}

fn lanes(tail: &mut String, dpp: Dpp) -> fmt::Result {
    let n = dpp.control & 15;
    match dpp.control {
        quad @ 0..=0xff => {
            write!(
                tail,
                " quad_perm:[{},{},{},{}]",
                quad & 3,
                quad >> 2 & 3,
                quad >> 4 & 3,
                quad >> 6
            )
        }
        0x101..=0x10f => write!(tail, " row_shl:{n}"),
        0x111..=0x11f => write!(tail, " row_shr:{n}"),
        0x121..=0x12f => write!(tail, " row_ror:{n}"),
        0x130 => write!(tail, " wave_shl:1"),
        0x134 => write!(tail, " wave_rol:1"),
        0x138 => write!(tail, " wave_shr:1"),
        0x13c => write!(tail, " wave_ror:1"),
        0x140 => write!(tail, " row_mirror"),
        0x141 => write!(tail, " row_half_mirror"),
        0x142 => write!(tail, " row_bcast:15"),
        0x143 => write!(tail, " row_bcast:31"),
        _ => write!(tail, " row_newbcast:{n}"),
    }?;
    write!(tail, " row_mask:{:#x} bank_mask:{:#x}", dpp.rows, dpp.banks)?;
    if dpp.zero {
        write!(tail, " bound_ctrl:1")
    } else {
        Ok(())
    }
}
