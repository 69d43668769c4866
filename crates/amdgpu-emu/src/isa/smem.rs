//! Scalar loads, cache control and clocks.

use crate::isa::row::{Bus, Row, Stop, missing, rows};
use crate::isa::{Instruction, Operand};
use crate::wave::Wave;

pub(super) const SMEM: &[&[Row]] = &[
    rows! { Machine:
        0x00 s_load_dword: Smem U32 [U64] = load;
        0x01 s_load_dwordx2: Smem U64 [U64] = load;
        0x02 s_load_dwordx4: Smem B128 [U64] = load;
        0x03 s_load_dwordx8: Smem B256 [U64] = load;
        0x04 s_load_dwordx16: Smem B512 [U64] = load;
        0x20 s_dcache_inv: Smem Implied [] = |_, _, _| Ok(());
        0x21 s_dcache_wb: Smem Implied [] = |_, _, _| Ok(());
        0x22 s_dcache_inv_vol: Smem Implied [] = |_, _, _| Ok(());
        0x23 s_dcache_wb_vol: Smem Implied [] = |_, _, _| Ok(());
        0x24 s_memtime: Smem U64 [] = time;
        0x25 s_memrealtime: Smem U64 [] = time;
    },
    missing! {
        0x05 s_scratch_load_dword;
        0x06 s_scratch_load_dwordx2;
        0x07 s_scratch_load_dwordx4;
        0x08 s_buffer_load_dword;
        0x09 s_buffer_load_dwordx2;
        0x0a s_buffer_load_dwordx4;
        0x0b s_buffer_load_dwordx8;
        0x0c s_buffer_load_dwordx16;
        0x10 s_store_dword;
        0x11 s_store_dwordx2;
        0x12 s_store_dwordx4;
        0x28 s_dcache_discard;
        0x29 s_dcache_discard_x2;
    },
];

/// Loads consecutive dwords; the address is rounded down to a dword.
fn load(wave: &mut Wave, bus: &mut Bus<'_>, op: &Instruction) -> Result<(), Stop> {
    let register = if op.src[1] == Operand::None {
        0
    } else {
        wave.scalar32(op.src[1])
    };
    let base = wave.scalar64(op.src[0]).wrapping_add(u64::from(register));
    let address = base.wrapping_add_signed(i64::from(op.offset)) & !3;
    let mut bytes = [0; 64];
    let bytes = &mut bytes[..usize::from(op.row.dst.dwords()) * 4];
    bus.memory.read(address, bytes)?;
    if let Operand::Scalar(first) = op.dst {
        for (register, dword) in wave.scalars[usize::from(first)..]
            .iter_mut()
            .zip(bytes.as_chunks().0)
        {
            *register = u32::from_le_bytes(*dword);
        }
    }
    Ok(())
}

fn time(wave: &mut Wave, bus: &mut Bus<'_>, op: &Instruction) -> Result<(), Stop> {
    if let Operand::Scalar(first) = op.dst {
        wave.set_pair(first, bus.now);
    }
    Ok(())
}
