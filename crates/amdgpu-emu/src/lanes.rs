//! Vector instructions as operations on single lanes.
//!
//! [`map`] reads the operands of all lanes, applies an operation to each and writes the results of the lanes that are
//! on. What kinds of operand and result there are, and how modifiers change them, is said by [`Arg`] and [`Out`].
//!
//! Operands are read before the result is written, so source and destination may be the same register. The operation
//! also runs on lanes that are off, whose result is dropped; it must not panic on any value.

use crate::LANES;
use crate::descriptor::FloatMode;
use crate::isa::{Dpp, F16, Instruction, Modifiers, Operand, Select, Type, Unused};
use crate::wave::{Lanes, Wave};

/// An operand of a lane's operation.
pub(crate) trait Arg: Copy {
    /// How it is encoded.
    const TYPE: Type;
    /// Its values in all lanes.
    type All;

    /// Reads operand `n` of all lanes.
    fn load(wave: &Wave, op: &Instruction, n: usize) -> Self::All;

    /// The value of one lane.
    fn get(all: &Self::All, lane: usize) -> Self;
}

/// A result of a lane's operation.
pub(crate) trait Out: Sized {
    /// How the register result is encoded.
    const TYPE: Type;
    /// Whether a mask comes with it.
    const MASK: bool;
    /// Its values in all lanes.
    type All;

    fn new() -> Self::All;

    /// Keeps the result of one lane.
    fn put(self, all: &mut Self::All, lane: usize);

    /// Writes the lanes that are on.
    fn store(wave: &mut Wave, op: &Instruction, all: Self::All);
}

/// Operands of an operation.
pub(crate) trait Args: Copy {
    type All;
    fn load(wave: &Wave, op: &Instruction) -> Self::All;
    fn get(all: &Self::All, lane: usize) -> Self;
}

macro_rules! args {
    ($($arg:ident $i:tt),*) => {
        impl<$($arg: Arg),*> Args for ($($arg,)*) {
            type All = ($($arg::All,)*);

            #[inline(always)]
            fn load(wave: &Wave, op: &Instruction) -> Self::All {
                ($($arg::load(wave, op, $i),)*)
            }

            #[inline(always)]
            fn get(all: &Self::All, lane: usize) -> Self {
                ($($arg::get(&all.$i, lane),)*)
            }
        }
    };
}

args!(A 0);
args!(A 0, B 1);
args!(A 0, B 1, C 2);
args!(A 0, B 1, C 2, D 3);

/// Applies `operation` to each lane.
#[inline(always)]
pub(crate) fn map<A: Args, R: Out>(wave: &mut Wave, op: &Instruction, operation: impl Fn(A) -> R) {
    let args = A::load(wave, op);
    let mut results = R::new();
    for lane in 0..LANES {
        operation(A::get(&args, lane)).put(&mut results, lane);
    }
    R::store(wave, op, results);
}

/// A scalar type of lanes, that is an operand and a result.
pub(crate) trait Lane: Copy + Default + 'static {
    const TYPE: Type;
    fn from_bits(bits: u64) -> Self;
    fn bits(self) -> u64;

    /// The value with output modifiers applied; only floats have any.
    fn finish(self, modifiers: &Modifiers, mode: FloatMode) -> Self {
        let _ = (modifiers, mode);
        self
    }

    /// Whether the mode wants subnormal operands, results of this type flushed to zero.
    fn flushes(mode: FloatMode) -> (bool, bool) {
        let _ = mode;
        (false, false)
    }

    /// Zero, if it is subnormal.
    fn flush(self) -> Self {
        self
    }
}

macro_rules! integer_lane {
    ($($ty:ident $name:ident $bits:ident;)*) => {$(
        impl Lane for $ty {
            const TYPE: Type = Type::$name;
            #[inline(always)]
            fn from_bits(bits: u64) -> Self {
                bits as Self
            }
            #[inline(always)]
            fn bits(self) -> u64 {
                u64::from(self as $bits)
            }
        }
    )*};
}

integer_lane! {
    u16 U16 u16;
    i16 I16 u16;
    u32 U32 u32;
    i32 I32 u32;
    u64 U64 u64;
    i64 I64 u64;
}

/// Result times the output multiplier, then clamped.
macro_rules! finish_float {
    ($value:expr, $modifiers:expr, $mode:expr, $ty:ty) => {{
        let value: $ty = match $modifiers.omod {
            1 => $value * 2.0,
            2 => $value * 4.0,
            3 => $value / 2.0,
            _ => $value,
        };
        if !$modifiers.clamp {
            value
        } else if value.is_nan() {
            if $mode.dx10_clamp { 0.0 } else { value }
        } else {
            // Also turns -0 into +0, as the hardware's clamp does.
            if value > 0.0 { value.min(1.0) } else { 0.0 }
        }
    }};
}

impl Lane for f32 {
    const TYPE: Type = Type::F32;
    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        Self::from_bits(bits as u32)
    }
    #[inline(always)]
    fn bits(self) -> u64 {
        u64::from(self.to_bits())
    }
    fn finish(self, modifiers: &Modifiers, mode: FloatMode) -> Self {
        finish_float!(self, modifiers, mode, f32)
    }
    fn flushes(mode: FloatMode) -> (bool, bool) {
        (mode.denorm32 & 1 == 0, mode.denorm32 & 2 == 0)
    }
    fn flush(self) -> Self {
        if self.is_subnormal() {
            0.0f32.copysign(self)
        } else {
            self
        }
    }
}

impl Lane for f64 {
    const TYPE: Type = Type::F64;
    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        Self::from_bits(bits)
    }
    #[inline(always)]
    fn bits(self) -> u64 {
        self.to_bits()
    }
    fn finish(self, modifiers: &Modifiers, mode: FloatMode) -> Self {
        finish_float!(self, modifiers, mode, f64)
    }
    fn flushes(mode: FloatMode) -> (bool, bool) {
        (mode.denorm64 & 1 == 0, mode.denorm64 & 2 == 0)
    }
    fn flush(self) -> Self {
        if self.is_subnormal() {
            0.0f64.copysign(self)
        } else {
            self
        }
    }
}

impl Lane for F16 {
    const TYPE: Type = Type::F16;
    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        Self(bits as u16)
    }
    #[inline(always)]
    fn bits(self) -> u64 {
        u64::from(self.0)
    }
    fn finish(self, modifiers: &Modifiers, mode: FloatMode) -> Self {
        if modifiers.omod == 0 && !modifiers.clamp {
            return self;
        }
        Self::from_f32(finish_float!(self.to_f32(), modifiers, mode, f32))
    }
    fn flushes(mode: FloatMode) -> (bool, bool) {
        (mode.denorm64 & 1 == 0, mode.denorm64 & 2 == 0)
    }
    fn flush(self) -> Self {
        if self.0 & 0x7c00 == 0 {
            Self(self.0 & 0x8000)
        } else {
            self
        }
    }
}

/// A float of which only the bits count: modifiers change its sign, subnormals stay.
#[derive(Clone, Copy, Default)]
pub(crate) struct Bits<T>(pub(crate) T);

impl<T: Lane> Lane for Bits<T> {
    const TYPE: Type = T::TYPE;
    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        Self(T::from_bits(bits))
    }
    #[inline(always)]
    fn bits(self) -> u64 {
        self.0.bits()
    }
}

impl<T: Lane> Arg for T {
    const TYPE: Type = <T as Lane>::TYPE;
    type All = [T; LANES];

    #[inline(always)]
    fn load(wave: &Wave, op: &Instruction, n: usize) -> [T; LANES] {
        let mut values = [T::default(); LANES];
        let low = wave.lanes(op.src[n], 0);
        if <T as Lane>::TYPE.dwords() == 2 {
            let high = wave.lanes(op.src[n], 1);
            for lane in 0..LANES {
                values[lane] = T::from_bits(u64::from(low[lane]) | u64::from(high[lane]) << 32);
            }
        } else if op.plain {
            for lane in 0..LANES {
                values[lane] = T::from_bits(u64::from(low[lane]));
            }
        } else {
            let low = select(wave, op, n, low, <T as Lane>::TYPE);
            for lane in 0..LANES {
                values[lane] = T::from_bits(u64::from(low[lane]));
            }
        }
        if !op.plain {
            sign(&op.modifiers, n, &mut values);
        }
        if T::flushes(wave.mode).0 {
            values = values.map(T::flush);
        }
        values
    }

    #[inline(always)]
    fn get(all: &[T; LANES], lane: usize) -> T {
        all[lane]
    }
}

/// Applies absolute value and negation of operand `n`.
fn sign<T: Lane>(modifiers: &Modifiers, n: usize, values: &mut [T; LANES]) {
    let sign = match (<T as Lane>::TYPE, <T as Lane>::TYPE.dwords()) {
        (_, 2) => 1 << 63,
        (Type::F16 | Type::U16 | Type::I16, _) => 1 << 15,
        _ => 1 << 31,
    };
    let clear = if modifiers.abs >> n & 1 != 0 { sign } else { 0 };
    let flip = if modifiers.neg >> n & 1 != 0 { sign } else { 0 };
    if clear | flip != 0 {
        *values = values.map(|value| T::from_bits((value.bits() & !clear) ^ flip));
    }
}

/// Takes the part of a 32-bit operand that its modifiers select.
fn select(wave: &Wave, op: &Instruction, n: usize, values: Lanes, ty: Type) -> Lanes {
    let mut values = values;
    if let (Some(dpp), 0) = (op.modifiers.dpp, n) {
        let sources = values;
        for (lane, value) in values.iter_mut().enumerate() {
            *value = dpp
                .source(lane, wave.exec())
                .map_or(0, |source| sources[source]);
        }
    }
    if let (Some(sdwa), 0..=1) = (op.modifiers.sdwa, n) {
        values = values.map(|value| sdwa.src[n].take(value));
    }
    let half = matches!(ty, Type::F16 | Type::U16 | Type::I16);
    if half && op.modifiers.op_sel >> n & 1 != 0 && !matches!(op.src[n], Operand::Const(_)) {
        values = values.map(|value| value >> 16);
    }
    values
}

impl Select {
    /// The selected part, extended to a register.
    fn take(self, value: u32) -> u32 {
        let top = 32 - u32::from(self.bits);
        let high = value >> self.shift << top;
        if self.signed {
            (high as i32 >> top) as u32
        } else {
            high >> top
        }
    }

    /// `old` with the selected part replaced by the low bits of `value`.
    fn put(self, old: u32, value: u32, unused: Unused) -> u32 {
        let ones = u32::MAX >> (32 - u32::from(self.bits));
        let placed = (value & ones) << self.shift;
        let mask = ones << self.shift;
        match unused {
            Unused::Zero => placed,
            Unused::Preserve => old & !mask | placed,
            Unused::SignExtend => {
                let top = u32::from(32 - self.shift - self.bits);
                (placed << top) as i32 as u32 >> top
                    | if placed << top >> 31 != 0 {
                        !(u32::MAX >> top)
                    } else {
                        0
                    }
            }
        }
    }
}

impl Dpp {
    /// The lane that `lane` reads from, if there is one and it is on.
    fn source(self, lane: usize, exec: u64) -> Option<usize> {
        let row = lane & !15;
        let at = lane & 15;
        let n = usize::from(self.control & 15);
        let source = match self.control {
            0..=0xff => (lane & !3) + usize::from(self.control >> (2 * (lane & 3)) & 3),
            0x101..=0x10f => Some(at + n).filter(|&at| at < 16)? + row,
            0x111..=0x11f => at.checked_sub(n)? + row,
            0x121..=0x12f => row + (at + 16 - n) % 16,
            0x130 => Some(lane + 1).filter(|&lane| lane < LANES)?,
            0x134 => (lane + 1) % LANES,
            0x138 => lane.checked_sub(1)?,
            0x13c => (lane + LANES - 1) % LANES,
            0x140 => row + 15 - at,
            0x141 => (lane & !7) + 7 - (lane & 7),
            0x142 => row.checked_sub(1)?,
            0x143 => (lane >= 32).then_some(31)?,
            _ => row + n,
        };
        (exec >> source & 1 != 0).then_some(source)
    }

    /// The lanes that are written.
    fn mask(self, exec: u64) -> u64 {
        (0..LANES).fold(0, |mask, lane| {
            let row = self.rows >> (lane / 16) & 1 != 0;
            let bank = self.banks >> (lane / 4 % 4) & 1 != 0;
            let written = row && bank && (self.zero || self.source(lane, exec).is_some());
            mask | u64::from(written) << lane
        })
    }
}

/// The lanes that an instruction writes.
fn written(wave: &Wave, op: &Instruction) -> u64 {
    let exec = wave.exec();
    op.modifiers.dpp.map_or(exec, |dpp| exec & dpp.mask(exec))
}

impl<T: Lane> Out for T {
    const TYPE: Type = <T as Lane>::TYPE;
    const MASK: bool = false;
    type All = [T; LANES];

    #[inline(always)]
    fn new() -> [T; LANES] {
        [T::default(); LANES]
    }

    #[inline(always)]
    fn put(self, all: &mut [T; LANES], lane: usize) {
        all[lane] = self;
    }

    #[inline(always)]
    fn store(wave: &mut Wave, op: &Instruction, mut all: [T; LANES]) {
        if T::flushes(wave.mode).1 {
            all = all.map(T::flush);
        }
        let mut mask = wave.exec();
        if !op.plain {
            all = all.map(|value| value.finish(&op.modifiers, wave.mode));
            mask = written(wave, op);
        }
        let mut low = [0; LANES];
        for lane in 0..LANES {
            low[lane] = all[lane].bits() as u32;
        }
        if <T as Lane>::TYPE.dwords() == 2 {
            let mut high = [0; LANES];
            for lane in 0..LANES {
                high[lane] = (all[lane].bits() >> 32) as u32;
            }
            wave.set_lanes(op.dst, 1, &high, mask);
        } else if !op.plain {
            place(wave, op, &mut low, <T as Lane>::TYPE);
        }
        wave.set_lanes(op.dst, 0, &low, mask);
    }
}

/// Puts a 32-bit result into the part of the register that its modifiers select.
fn place(wave: &Wave, op: &Instruction, values: &mut Lanes, ty: Type) {
    let half = matches!(ty, Type::F16 | Type::U16 | Type::I16);
    let (part, unused) = match op.modifiers.sdwa {
        Some(sdwa) => (sdwa.dst, sdwa.unused),
        None if half && op.modifiers.op_sel & 8 != 0 => (
            Select {
                shift: 16,
                bits: 16,
                signed: false,
            },
            Unused::Preserve,
        ),
        None => return,
    };
    let old = wave.lanes(op.dst, 0);
    for (value, old) in values.iter_mut().zip(old) {
        *value = part.put(old, *value, unused);
    }
}

/// A 16-bit result that leaves the other half of its register alone.
#[derive(Clone, Copy)]
pub(crate) struct Keep<T>(pub(crate) T);

impl<T: Lane> Out for Keep<T> {
    const TYPE: Type = <T as Lane>::TYPE;
    const MASK: bool = false;
    type All = [T; LANES];

    fn new() -> [T; LANES] {
        [T::default(); LANES]
    }

    #[inline(always)]
    fn put(self, all: &mut [T; LANES], lane: usize) {
        all[lane] = self.0;
    }

    fn store(wave: &mut Wave, op: &Instruction, all: [T; LANES]) {
        put_half(wave, op, all, op.modifiers.op_sel & 8 != 0);
    }
}

/// A 16-bit result for the high half of its register, which leaves the low half alone.
#[derive(Clone, Copy)]
pub(crate) struct KeepLow<T>(pub(crate) T);

impl<T: Lane> Out for KeepLow<T> {
    const TYPE: Type = <T as Lane>::TYPE;
    const MASK: bool = false;
    type All = [T; LANES];

    fn new() -> [T; LANES] {
        [T::default(); LANES]
    }

    #[inline(always)]
    fn put(self, all: &mut [T; LANES], lane: usize) {
        all[lane] = self.0;
    }

    fn store(wave: &mut Wave, op: &Instruction, all: [T; LANES]) {
        put_half(wave, op, all, true);
    }
}

fn put_half<T: Lane>(wave: &mut Wave, op: &Instruction, all: [T; LANES], high: bool) {
    let part = Select {
        shift: if high { 16 } else { 0 },
        bits: 16,
        signed: false,
    };
    let old = wave.lanes(op.dst, 0);
    let flush = T::flushes(wave.mode).1;
    let values = std::array::from_fn(|lane| {
        let value = if flush { all[lane].flush() } else { all[lane] };
        let value = value.finish(&op.modifiers, wave.mode);
        part.put(old[lane], value.bits() as u32, Unused::Preserve)
    });
    wave.set_lanes(op.dst, 0, &values, wave.exec());
}

/// One bit per lane: carry in, condition.
impl Arg for bool {
    const TYPE: Type = Type::Mask;
    type All = [bool; LANES];

    #[inline(always)]
    fn load(wave: &Wave, op: &Instruction, n: usize) -> [bool; LANES] {
        let mask = wave.scalar64(op.src[n]);
        let mut values = [false; LANES];
        for half in 0..2 {
            let mask = (mask >> (32 * half)) as u32;
            for i in 0..32 {
                values[32 * half + i] = mask & 1 << i != 0;
            }
        }
        values
    }

    #[inline(always)]
    fn get(all: &[bool; LANES], lane: usize) -> bool {
        all[lane]
    }
}

/// Bit per lane, from a byte per lane.
fn to_mask(lanes: &[bool; LANES]) -> u64 {
    bytemuck::cast_slice::<bool, u8>(lanes)
        .as_chunks()
        .0
        .iter()
        .rev()
        .fold(0, |mask, chunk| {
            let chunk = u64::from_le_bytes(*chunk);
            // Bit 8 i of the chunk moves to bit 56 + i.
            mask << 8 | chunk.wrapping_mul(0x0102_0408_1020_4080) >> 56
        })
}

/// A comparison.
impl Out for bool {
    const TYPE: Type = Type::Implied;
    const MASK: bool = true;
    type All = [bool; LANES];

    fn new() -> [bool; LANES] {
        [false; LANES]
    }

    #[inline(always)]
    fn put(self, all: &mut [bool; LANES], lane: usize) {
        all[lane] = self;
    }

    fn store(wave: &mut Wave, op: &Instruction, all: [bool; LANES]) {
        set_mask(wave, op, &all);
    }
}

/// Writes the mask result: lanes that are off get 0.
fn set_mask(wave: &mut Wave, op: &Instruction, all: &[bool; LANES]) -> u64 {
    let mask = to_mask(all) & wave.exec();
    if let Operand::Scalar(first) = op.mask {
        wave.set_pair(first, mask);
    }
    mask
}

/// A comparison that also becomes EXEC.
#[derive(Clone, Copy)]
pub(crate) struct Only(pub(crate) bool);

impl Out for Only {
    const TYPE: Type = Type::Implied;
    const MASK: bool = true;
    type All = [bool; LANES];

    fn new() -> [bool; LANES] {
        [false; LANES]
    }

    #[inline(always)]
    fn put(self, all: &mut [bool; LANES], lane: usize) {
        all[lane] = self.0;
    }

    fn store(wave: &mut Wave, op: &Instruction, all: [bool; LANES]) {
        let mask = set_mask(wave, op, &all);
        wave.set_exec(mask);
    }
}

/// A value with a carry.
impl<T: Lane> Out for (T, bool) {
    const TYPE: Type = <T as Lane>::TYPE;
    const MASK: bool = true;
    type All = ([T; LANES], [bool; LANES]);

    fn new() -> Self::All {
        ([T::default(); LANES], [false; LANES])
    }

    #[inline(always)]
    fn put(self, all: &mut Self::All, lane: usize) {
        all.0[lane] = self.0;
        all.1[lane] = self.1;
    }

    #[inline(always)]
    fn store(wave: &mut Wave, op: &Instruction, all: Self::All) {
        <T as Out>::store(wave, op, all.0);
        set_mask(wave, op, &all.1);
    }
}

/// Whether to clamp an integer result.
#[derive(Clone, Copy)]
pub(crate) struct Clamp(pub(crate) bool);

impl Arg for Clamp {
    const TYPE: Type = Type::Clamp;
    type All = bool;

    #[inline(always)]
    fn load(_: &Wave, op: &Instruction, _: usize) -> bool {
        op.modifiers.clamp
    }

    #[inline(always)]
    fn get(all: &bool, _: usize) -> Self {
        Self(*all)
    }
}

/// Number of the lane.
#[derive(Clone, Copy)]
pub(crate) struct Id(pub(crate) u32);

impl Arg for Id {
    const TYPE: Type = Type::Implied;
    type All = ();

    fn load(_: &Wave, _: &Instruction, _: usize) {}

    #[inline(always)]
    fn get((): &(), lane: usize) -> Self {
        Self(lane as u32)
    }
}

/// The bit of VCC that belongs to the lane, for instructions that read it without naming it.
#[derive(Clone, Copy)]
pub(crate) struct VccBit(pub(crate) bool);

impl Arg for VccBit {
    const TYPE: Type = Type::Implied;
    type All = u64;

    fn load(wave: &Wave, _: &Instruction, _: usize) -> u64 {
        wave.vcc()
    }

    #[inline(always)]
    fn get(all: &u64, lane: usize) -> Self {
        Self(all >> lane & 1 != 0)
    }
}

/// The dword after the instruction, a 32-bit float.
#[derive(Clone, Copy)]
pub(crate) struct Literal(pub(crate) f32);

impl Arg for Literal {
    const TYPE: Type = Type::Literal;
    type All = f32;

    fn load(wave: &Wave, op: &Instruction, n: usize) -> f32 {
        f32::from_bits(wave.scalar32(op.src[n]))
    }

    #[inline(always)]
    fn get(all: &f32, _: usize) -> Self {
        Self(*all)
    }
}

/// Two operands in one: halves of a register or two registers, of which a packed instruction selects and negates each.
macro_rules! pair {
    ($($ty:ident $name:ident;)*) => {$(
        impl Arg for [$ty; 2] {
            const TYPE: Type = Type::$name;
            type All = [[$ty; LANES]; 2];

            fn load(wave: &Wave, op: &Instruction, n: usize) -> Self::All {
                let modifiers = &op.modifiers;
                let chosen = [(modifiers.op_sel, modifiers.neg), (modifiers.op_sel_hi, modifiers.neg_hi)];
                let flush = <$ty as Lane>::flushes(wave.mode).0;
                chosen.map(|(select, neg)| {
                    let high = select >> n & 1 != 0;
                    let lanes = if Type::$name.dwords() == 2 {
                        wave.lanes(op.src[n], u16::from(high))
                    } else {
                        wave.lanes(op.src[n], 0).map(|lane| if high { lane >> 16 } else { lane })
                    };
                    let mut values = lanes.map(|lane| <$ty as Lane>::from_bits(u64::from(lane)));
                    let single = Modifiers { neg, ..Modifiers::default() };
                    if Type::$name.is_float() {
                        sign(&single, n, &mut values);
                    }
                    if flush { values.map(Lane::flush) } else { values }
                })
            }

            #[inline(always)]
            fn get(all: &Self::All, lane: usize) -> Self {
                [all[0][lane], all[1][lane]]
            }
        }

        impl Out for [$ty; 2] {
            const TYPE: Type = Type::$name;
            const MASK: bool = false;
            type All = [[$ty; LANES]; 2];

            fn new() -> Self::All {
                [[Default::default(); LANES]; 2]
            }

            #[inline(always)]
            fn put(self, all: &mut Self::All, lane: usize) {
                all[0][lane] = self[0];
                all[1][lane] = self[1];
            }

            fn store(wave: &mut Wave, op: &Instruction, all: Self::All) {
                let flush = <$ty as Lane>::flushes(wave.mode).1;
                let [low, high] = all.map(|values| {
                    values.map(|value| {
                        let value = if flush { value.flush() } else { value };
                        value.finish(&op.modifiers, wave.mode).bits() as u32
                    })
                });
                let exec = wave.exec();
                if Type::$name.dwords() == 2 {
                    wave.set_lanes(op.dst, 0, &low, exec);
                    wave.set_lanes(op.dst, 1, &high, exec);
                } else {
                    let both = std::array::from_fn(|lane| low[lane] | high[lane] << 16);
                    wave.set_lanes(op.dst, 0, &both, exec);
                }
            }
        }
    )*};
}

pair! {
    f32 PairF32;
    u32 PairU32;
    F16 PairF16;
    u16 PairU16;
    i16 PairI16;
}

/// An operand of a mixed-precision instruction: `op_sel_hi` says whether it is a 32-bit float or half a register, and
/// `neg_hi` is its absolute value.
#[derive(Clone, Copy)]
pub(crate) struct Mix(pub(crate) f32);

impl Arg for Mix {
    const TYPE: Type = Type::Mix;
    type All = [f32; LANES];

    fn load(wave: &Wave, op: &Instruction, n: usize) -> [f32; LANES] {
        let modifiers = &op.modifiers;
        let lanes = wave.lanes(op.src[n], 0);
        let mut values = if modifiers.op_sel_hi >> n & 1 == 0 {
            lanes.map(f32::from_bits)
        } else {
            let shift = if modifiers.op_sel >> n & 1 != 0 {
                16
            } else {
                0
            };
            lanes.map(|lane| F16((lane >> shift) as u16).to_f32())
        };
        sign(
            &Modifiers {
                abs: modifiers.neg_hi,
                ..*modifiers
            },
            n,
            &mut values,
        );
        values
    }

    #[inline(always)]
    fn get(all: &[f32; LANES], lane: usize) -> Self {
        Self(all[lane])
    }
}
