//! What flat, buffer and LDS instructions have in common: widths, places, and loops over the lanes that are on.

use crate::isa::row::{Bus, Halt, Stop};
use crate::isa::{Instruction, Operand};
use crate::wave::{Lanes, Wave, on};
use crate::{AccessFault, LANES};

/// Most bytes of one lane's access.
const MAX: usize = 16;

/// How a load or store turns bytes into registers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Width {
    /// Bytes in memory: 1, 2 or a multiple of 4.
    pub(super) bytes: usize,
    /// Extend a loaded value by its sign.
    pub(super) signed: bool,
    /// The half of a register that it fills, where the other one stays; or that a store takes.
    pub(super) half: Option<u8>,
}

impl Width {
    const fn of(bytes: usize, signed: bool, half: Option<u8>) -> Self {
        Self {
            bytes,
            signed,
            half,
        }
    }

    pub(super) const U8: Self = Self::of(1, false, None);
    pub(super) const I8: Self = Self::of(1, true, None);
    pub(super) const U16: Self = Self::of(2, false, None);
    pub(super) const I16: Self = Self::of(2, true, None);
    pub(super) const B32: Self = Self::of(4, false, None);
    pub(super) const B64: Self = Self::of(8, false, None);
    pub(super) const B96: Self = Self::of(12, false, None);
    pub(super) const B128: Self = Self::of(16, false, None);
    pub(super) const U8_LOW: Self = Self::of(1, false, Some(0));
    pub(super) const U8_HIGH: Self = Self::of(1, false, Some(1));
    pub(super) const I8_LOW: Self = Self::of(1, true, Some(0));
    pub(super) const I8_HIGH: Self = Self::of(1, true, Some(1));
    pub(super) const B16_LOW: Self = Self::of(2, false, Some(0));
    pub(super) const B16_HIGH: Self = Self::of(2, false, Some(1));

    /// Registers that hold a value.
    fn registers(self) -> usize {
        self.bytes.div_ceil(4)
    }

    /// The register for a loaded value of less than a dword.
    fn extend(self, raw: u32, old: u32) -> u32 {
        let value = match (self.bytes, self.signed) {
            (1, false) => u32::from(raw as u8),
            (1, true) => raw as i8 as u32,
            (2, false) => u32::from(raw as u16),
            (2, true) => raw as i16 as u32,
            _ => raw,
        };
        match self.half {
            None => value,
            Some(0) => old & 0xffff_0000 | value & 0xffff,
            Some(_) => old & 0xffff | value << 16,
        }
    }
}

/// Where one lane's access goes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    Global(u64),
    /// Offset in the workgroup's group memory.
    Lds(u64),
    /// Private memory whose dwords lie 64 lanes apart: agent-visible address of the lane's dword 0, and byte offset.
    Swizzled {
        base: u64,
        offset: u64,
    },
}

impl Place {
    /// Agent-visible address of the dword that holds a byte of private memory, and the byte's place in it.
    fn swizzled(base: u64, offset: u64) -> (u64, u64) {
        (base.wrapping_add(offset / 4 * 4 * LANES as u64), offset % 4)
    }
}

impl Bus<'_> {
    /// Bytes of group memory.
    fn group(&mut self, offset: u64, len: usize) -> Result<&mut [u8], Stop> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let end = start.saturating_add(len);
        self.lds
            .get_mut(start..end)
            .ok_or(Stop::Halt(Halt::Lds { offset }))
    }

    fn read(&mut self, place: Place, out: &mut [u8]) -> Result<(), Stop> {
        match place {
            Place::Global(address) => self.memory.read(address, out)?,
            Place::Lds(offset) => out.copy_from_slice(self.group(offset, out.len())?),
            Place::Swizzled { base, offset } => {
                pieces(offset, out.len(), |at, piece| {
                    let (dword, byte) = Place::swizzled(base, at);
                    self.memory.read(dword.wrapping_add(byte), &mut out[piece])
                })?;
            }
        }
        Ok(())
    }

    fn write(&mut self, place: Place, bytes: &[u8]) -> Result<(), Stop> {
        match place {
            Place::Global(address) => {
                self.stored = true;
                self.memory.write(address, bytes)?;
            }
            Place::Lds(offset) => {
                let target = self.group(offset, bytes.len())?;
                let changes = target != bytes;
                target.copy_from_slice(bytes);
                self.stored |= changes;
            }
            Place::Swizzled { base, offset } => {
                self.stored = true;
                pieces(offset, bytes.len(), |at, piece| {
                    let (dword, byte) = Place::swizzled(base, at);
                    self.memory.write(dword.wrapping_add(byte), &bytes[piece])
                })?;
            }
        }
        Ok(())
    }
}

/// Splits an access of private memory at dwords.
fn pieces(
    offset: u64,
    len: usize,
    mut each: impl FnMut(u64, std::ops::Range<usize>) -> Result<(), AccessFault>,
) -> Result<(), AccessFault> {
    let mut done = 0;
    while done < len {
        let at = offset.wrapping_add(done as u64);
        let piece = (4 - (at % 4) as usize).min(len - done);
        each(at, done..done + piece)?;
        done += piece;
    }
    Ok(())
}

/// The places of all lanes, and whether those that are on follow each other in memory.
pub(super) struct Places {
    all: [Place; LANES],
    exec: u64,
}

impl Places {
    /// Asks for the place of each lane that is on.
    pub(super) fn new(
        wave: &Wave,
        place: impl Fn(usize) -> Result<Place, Stop>,
    ) -> Result<Self, Stop> {
        let exec = wave.exec();
        let mut all = [Place::Lds(0); LANES];
        for lane in on(exec) {
            all[lane] = place(lane)?;
        }
        Ok(Self { all, exec })
    }

    /// First lane, number of lanes and address, if the lanes that are on access `bytes` each, one after the other.
    fn run(&self, bytes: usize) -> Option<(usize, usize, u64)> {
        let first = self.exec.trailing_zeros() as usize;
        let count = self.exec.count_ones() as usize;
        if count < 2 || self.exec >> first != u64::MAX >> (LANES - count) {
            return None;
        }
        let Place::Global(base) = self.all[first] else {
            return None;
        };
        base.checked_add((count * bytes) as u64)?;
        let follows = |i: usize| matches!(self.all[first + i], Place::Global(at) if at == base + (i * bytes) as u64);
        (1..count).all(follows).then_some((first, count, base))
    }
}

/// Loads a value of `width` into each lane's registers.
pub(super) fn load(
    wave: &mut Wave,
    bus: &mut Bus<'_>,
    op: &Instruction,
    width: Width,
    places: &Places,
) -> Result<(), Stop> {
    let mut bytes = [[0u8; MAX]; LANES];
    if let Some((first, count, address)) = places.run(width.bytes) {
        let mut run = [0; MAX * LANES];
        let run = &mut run[..count * width.bytes];
        bus.memory.read(address, run)?;
        for (lane, value) in bytes[first..].iter_mut().zip(run.chunks_exact(width.bytes)) {
            lane[..width.bytes].copy_from_slice(value);
        }
    } else {
        for lane in on(places.exec) {
            bus.read(places.all[lane], &mut bytes[lane][..width.bytes])?;
        }
    }
    for register in 0..width.registers() {
        let old = wave.lanes(op.dst, register as u16);
        let values: Lanes = std::array::from_fn(|lane| {
            let at = 4 * register;
            let raw = u32::from_le_bytes([
                bytes[lane][at],
                bytes[lane][at + 1],
                bytes[lane][at + 2],
                bytes[lane][at + 3],
            ]);
            width.extend(raw, old[lane])
        });
        wave.set_lanes(op.dst, register as u16, &values, places.exec);
    }
    Ok(())
}

/// Stores a value of `width` from the registers of `data`.
pub(super) fn store(
    wave: &Wave,
    bus: &mut Bus<'_>,
    data: Operand,
    width: Width,
    places: &Places,
) -> Result<(), Stop> {
    let mut bytes = [[0u8; MAX]; LANES];
    for register in 0..width.registers() {
        let values = wave.lanes(data, register as u16);
        for (lane, value) in bytes.iter_mut().zip(values) {
            let value = if width.half == Some(1) {
                value >> 16
            } else {
                value
            };
            lane[4 * register..4 * register + 4].copy_from_slice(&value.to_le_bytes());
        }
    }
    if let Some((first, count, address)) = places.run(width.bytes) {
        let mut run = [0; MAX * LANES];
        for (value, lane) in run
            .chunks_exact_mut(width.bytes)
            .zip(&bytes[first..first + count])
        {
            value.copy_from_slice(&lane[..width.bytes]);
        }
        bus.stored = true;
        bus.memory.write(address, &run[..count * width.bytes])?;
    } else {
        for lane in on(places.exec) {
            bus.write(places.all[lane], &bytes[lane][..width.bytes])?;
        }
    }
    Ok(())
}

/// A value that an atomic replaces: 32 or 64 bits.
pub(super) trait Cell: Copy + PartialEq {
    const DWORDS: u16;
    fn from_registers(low: u32, high: u32) -> Self;
    fn registers(self) -> (u32, u32);
    fn update(
        bus: &mut Bus<'_>,
        place: Place,
        f: &mut dyn FnMut(Self) -> Self,
    ) -> Result<Self, Stop>;
}

macro_rules! cell {
    ($($ty:ident $dwords:literal $update:ident;)*) => {$(
        impl Cell for $ty {
            const DWORDS: u16 = $dwords;

            fn from_registers(low: u32, high: u32) -> Self {
                (u64::from(low) | u64::from(high) << 32) as Self
            }

            fn registers(self) -> (u32, u32) {
                let value = u64::from(self);
                (value as u32, (value >> 32) as u32)
            }

            fn update(bus: &mut Bus<'_>, place: Place, f: &mut dyn FnMut(Self) -> Self) -> Result<Self, Stop> {
                let mut new = None;
                let mut update = |old| *new.insert(f(old));
                let old = match place {
                    Place::Global(address) => bus.memory.$update(address, &mut update)?,
                    // Private memory is this lane's alone, and group memory this thread's.
                    _ => {
                        let mut bytes = [0; size_of::<Self>()];
                        bus.read(place, &mut bytes)?;
                        let old = Self::from_le_bytes(bytes);
                        bus.write(place, &update(old).to_le_bytes())?;
                        old
                    }
                };
                bus.stored |= new != Some(old);
                Ok(old)
            }
        }
    )*};
}

cell! {
    u32 1 update32;
    u64 2 update64;
}

/// Replaces a value by `f` of it and up to two operands, lane by lane; with a result, the old value goes there.
pub(super) fn atomic<T: Cell>(
    wave: &mut Wave,
    bus: &mut Bus<'_>,
    op: &Instruction,
    data: [(Operand, u16); 2],
    places: &Places,
    f: impl Fn(T, T, T) -> T,
) -> Result<(), Stop> {
    let read = |(operand, first): (Operand, u16)| {
        let low = wave.lanes(operand, first);
        let high = if T::DWORDS == 2 {
            wave.lanes(operand, first + 1)
        } else {
            low
        };
        (low, high)
    };
    let data = data.map(|data| {
        if data.0 == Operand::None {
            ([0; LANES], [0; LANES])
        } else {
            read(data)
        }
    });
    let mut old = ([0; LANES], [0; LANES]);
    for lane in on(places.exec) {
        let [a, b] = [0, 1].map(|i| T::from_registers(data[i].0[lane], data[i].1[lane]));
        (old.0[lane], old.1[lane]) =
            T::update(bus, places.all[lane], &mut |value| f(value, a, b))?.registers();
    }
    if op.dst != Operand::None {
        wave.set_lanes(op.dst, 0, &old.0, places.exec);
        if T::DWORDS == 2 {
            wave.set_lanes(op.dst, 1, &old.1, places.exec);
        }
    }
    Ok(())
}

/// Counts up, and to 0 after `limit`.
pub(super) fn increment<T: Cell + PartialOrd + From<u8> + std::ops::Add<Output = T>>(
    value: T,
    limit: T,
) -> T {
    if value >= limit {
        T::from(0)
    } else {
        value + T::from(1)
    }
}

/// Counts down, and to `limit` from 0 or above.
pub(super) fn decrement<T: Cell + PartialOrd + From<u8> + std::ops::Sub<Output = T>>(
    value: T,
    limit: T,
) -> T {
    if value == T::from(0) || value > limit {
        limit
    } else {
        value - T::from(1)
    }
}
