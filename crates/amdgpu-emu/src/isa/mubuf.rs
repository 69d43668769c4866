//! Vector memory through a buffer descriptor, which compilers use for private memory, and cache control.
//!
//! Dwords of a descriptor: base in bits 47:0, stride in 61:48, swizzle in 63; size in dword 2; in dword 3 the element
//! size (20:19), the index stride (22:21) and whether the lane number is added to the index (23).

use crate::isa::row::{Bus, Row, Stop, missing, rows};
use crate::isa::vmem::{Place, Places, Width, load, store};
use crate::isa::{Instruction, Operand};
use crate::wave::Wave;
use crate::{Access, AccessFault, Illegal, Refusal};

pub(super) const MUBUF: &[&[Row]] = &[
    rows! { Machine:
        0x10 buffer_load_ubyte: VmemRead U32 [U32] = |wave, bus, op| read(wave, bus, op, Width::U8);
        0x11 buffer_load_sbyte: VmemRead U32 [U32] = |wave, bus, op| read(wave, bus, op, Width::I8);
        0x12 buffer_load_ushort: VmemRead U32 [U32] = |wave, bus, op| read(wave, bus, op, Width::U16);
        0x13 buffer_load_sshort: VmemRead U32 [U32] = |wave, bus, op| read(wave, bus, op, Width::I16);
        0x14 buffer_load_dword: VmemRead U32 [U32] = |wave, bus, op| read(wave, bus, op, Width::B32);
        0x15 buffer_load_dwordx2: VmemRead U64 [U32] = |wave, bus, op| read(wave, bus, op, Width::B64);
        0x16 buffer_load_dwordx3: VmemRead B96 [U32] = |wave, bus, op| read(wave, bus, op, Width::B96);
        0x17 buffer_load_dwordx4: VmemRead B128 [U32] = |wave, bus, op| read(wave, bus, op, Width::B128);
        0x18 buffer_store_byte: VmemWrite Implied [U32, U32] = |wave, bus, op| write(wave, bus, op, Width::U8);
        0x19 buffer_store_byte_d16_hi: VmemWrite Implied [U32, U32] = |wave, bus, op| write(wave, bus, op, Width::U8_HIGH);
        0x1a buffer_store_short: VmemWrite Implied [U32, U32] = |wave, bus, op| write(wave, bus, op, Width::U16);
        0x1b buffer_store_short_d16_hi: VmemWrite Implied [U32, U32] = |wave, bus, op| write(wave, bus, op, Width::B16_HIGH);
        0x1c buffer_store_dword: VmemWrite Implied [U32, U32] = |wave, bus, op| write(wave, bus, op, Width::B32);
        0x1d buffer_store_dwordx2: VmemWrite Implied [U32, U64] = |wave, bus, op| write(wave, bus, op, Width::B64);
        0x1e buffer_store_dwordx3: VmemWrite Implied [U32, B96] = |wave, bus, op| write(wave, bus, op, Width::B96);
        0x1f buffer_store_dwordx4: VmemWrite Implied [U32, B128] = |wave, bus, op| write(wave, bus, op, Width::B128);
        0x20 buffer_load_ubyte_d16: VmemRead U32 [U32] = |wave, bus, op| read(wave, bus, op, Width::U8_LOW);
        0x21 buffer_load_ubyte_d16_hi: VmemRead U32 [U32] = |wave, bus, op| read(wave, bus, op, Width::U8_HIGH);
        0x22 buffer_load_sbyte_d16: VmemRead U32 [U32] = |wave, bus, op| read(wave, bus, op, Width::I8_LOW);
        0x23 buffer_load_sbyte_d16_hi: VmemRead U32 [U32] = |wave, bus, op| read(wave, bus, op, Width::I8_HIGH);
        0x24 buffer_load_short_d16: VmemRead U32 [U32] = |wave, bus, op| read(wave, bus, op, Width::B16_LOW);
        0x25 buffer_load_short_d16_hi: VmemRead U32 [U32] = |wave, bus, op| read(wave, bus, op, Width::B16_HIGH);
    },
    rows! { Registers:
        0x28 buffer_wbl2: VmemControl Implied [] = |_, _| {};
        0x29 buffer_invl2: VmemControl Implied [] = |_, _| {};
        0x3e buffer_wbinvl1: VmemControl Implied [] = |_, _| {};
        0x3f buffer_wbinvl1_vol: VmemControl Implied [] = |_, _| {};
    },
    missing! {
        0x40 buffer_atomic_swap;
        0x41 buffer_atomic_cmpswap;
        0x42 buffer_atomic_add;
        0x4d buffer_atomic_add_f32;
    },
];

fn read(wave: &mut Wave, bus: &mut Bus<'_>, op: &Instruction, width: Width) -> Result<(), Stop> {
    let places = places(wave, op, width, Access::Read)?;
    load(wave, bus, op, width, &places)
}

fn write(wave: &mut Wave, bus: &mut Bus<'_>, op: &Instruction, width: Width) -> Result<(), Stop> {
    let places = places(wave, op, width, Access::Write)?;
    store(wave, bus, op.src[1], width, &places)
}

/// A buffer descriptor.
struct Buffer {
    base: u64,
    stride: u64,
    size: u64,
    swizzled: bool,
    add_lane: bool,
}

impl Buffer {
    fn read(wave: &Wave, op: &Instruction) -> Result<Self, Stop> {
        let Operand::Scalar(first) = op.src[2] else {
            return Err(Illegal::Operand.into());
        };
        let words: [u32; 4] = std::array::from_fn(|i| wave.scalars[usize::from(first) + i]);
        let buffer = Self {
            base: u64::from(words[0]) | u64::from(words[1] & 0xffff) << 32,
            stride: u64::from(words[1] >> 16 & 0x3fff),
            size: u64::from(words[2]),
            swizzled: words[1] >> 31 != 0,
            add_lane: words[3] >> 23 & 1 != 0,
        };
        // Swizzled by dword over 64 lanes is how private memory lies; other swizzles are for images.
        if buffer.swizzled
            && (words[3] >> 19 & 3 != 1 || words[3] >> 21 & 3 != 3 || buffer.stride != 0)
        {
            return Err(Illegal::Mode.into());
        }
        Ok(buffer)
    }
}

/// Each lane's place in the buffer. Beyond its size the hardware would read 0 and drop writes; no compiled program
/// means that for private memory, so it is a fault here.
fn places(wave: &Wave, op: &Instruction, width: Width, access: Access) -> Result<Places, Stop> {
    let buffer = Buffer::read(wave, op)?;
    let scalar = u64::from(wave.scalar32(op.src[3]));
    let register = |i: u16, lane: usize| match op.src[0] {
        Operand::Vector(first) => u64::from(wave.vectors[usize::from(first + i)][lane]),
        _ => 0,
    };
    Places::new(wave, |lane| {
        let index = if op.flags.idxen { register(0, lane) } else { 0 };
        let index = index + if buffer.add_lane { lane as u64 } else { 0 };
        let vector = if op.flags.offen {
            register(u16::from(op.flags.idxen), lane)
        } else {
            0
        };
        let offset = (vector + op.offset as u64) & 0xffff_ffff;
        let (place, last) = if buffer.swizzled {
            let base = buffer
                .base
                .wrapping_add(scalar)
                .wrapping_add(index / 64 * 256 + index % 64 * 4);
            let last = (offset + width.bytes as u64 - 1) / 4 * 256 + scalar + index % 64 * 4 + 3;
            (Place::Swizzled { base, offset }, last)
        } else {
            let offset = offset + index * buffer.stride;
            (
                Place::Global(buffer.base.wrapping_add(scalar).wrapping_add(offset)),
                offset + width.bytes as u64 - 1,
            )
        };
        if last >= buffer.size && buffer.stride == 0 {
            let address = buffer.base.wrapping_add(last);
            let fault = AccessFault {
                address,
                len: width.bytes as u64,
                access,
                refusal: Refusal::Unmapped,
            };
            return Err(fault.into());
        }
        Ok(place)
    })
}
