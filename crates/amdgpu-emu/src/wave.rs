//! The registers of one wave.
//!
//! Scalar registers are one array, indexed as instructions encode them: VCC, M0 and EXEC lie in it. A vector register is
//! an array of 64 lanes, so that an instruction is a loop over lanes.
//!
//! Invariant: an operand that a decoded and bound instruction names exists, so register access can't be out of bounds.

use crate::descriptor::{FloatMode, Kernel, Start};
use crate::emulator::mix;
use crate::isa::{EXEC, M0, Operand, VCC};
use crate::{Apertures, Dispatch, LANES};

/// One vector register.
pub(crate) type Lanes = [u32; LANES];

/// Whether a wave can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Running,
    AtBarrier,
    Ended,
}

/// A wave of a workgroup.
pub(crate) struct Wave {
    /// Its number in the workgroup.
    pub(crate) id: u32,
    pub(crate) state: State,
    /// Address of the next instruction.
    pub(crate) pc: u64,
    pub(crate) scc: bool,
    pub(crate) mode: FloatMode,
    pub(crate) apertures: Apertures,
    pub(crate) scalars: [u32; 128],
    pub(crate) vectors: Vec<Lanes>,
}

impl Wave {
    /// The wave `id` of a workgroup of `items` work-items, as it starts.
    pub(crate) fn new(
        kernel: &Kernel,
        dispatch: &Dispatch,
        start: &Start,
        id: u32,
        items: [u32; 3],
        seed: u64,
    ) -> Self {
        let mut scalars = std::array::from_fn(|i| mix(seed ^ i as u64) as u32);
        let initial = kernel.scalars(start);
        scalars[..initial.len()].copy_from_slice(&initial);
        let mut vectors: Vec<Lanes> = (0..u64::from(kernel.vgprs))
            .map(|register| {
                let garbage = mix(seed ^ register << 32) as u32;
                std::array::from_fn(|lane| garbage.wrapping_mul(2 * lane as u32 + 1))
            })
            .collect();
        let first = id * LANES as u32;
        let total: u32 = items.iter().product();
        let [x, y, _] = items;
        for (lane, value) in vectors[0].iter_mut().enumerate() {
            let item = first + lane as u32;
            if item < total {
                *value = kernel.work_item([item % x, item / x % y, item / x / y]);
            }
        }
        let mut wave = Self {
            id,
            state: State::Running,
            pc: kernel.entry,
            scc: seed & 1 != 0,
            mode: kernel.mode,
            apertures: dispatch.apertures,
            scalars,
            vectors,
        };
        let on = (total - first).min(LANES as u32);
        wave.set_exec(u64::MAX >> (LANES as u32 - on));
        wave
    }

    /// The lanes that are on.
    pub(crate) fn exec(&self) -> u64 {
        self.pair(EXEC)
    }

    pub(crate) fn set_exec(&mut self, mask: u64) {
        self.set_pair(EXEC, mask);
    }

    pub(crate) fn vcc(&self) -> u64 {
        self.pair(VCC)
    }

    pub(crate) fn m0(&self) -> u32 {
        self.scalars[usize::from(M0)]
    }

    /// Two scalar registers.
    pub(crate) fn pair(&self, first: u8) -> u64 {
        let i = usize::from(first);
        u64::from(self.scalars[i]) | u64::from(self.scalars[i + 1]) << 32
    }

    pub(crate) fn set_pair(&mut self, first: u8, value: u64) {
        let i = usize::from(first);
        self.scalars[i] = value as u32;
        self.scalars[i + 1] = (value >> 32) as u32;
    }

    /// The value of an operand that is the same for all lanes, 32 bits of it.
    pub(crate) fn scalar32(&self, operand: Operand) -> u32 {
        match operand {
            Operand::Scalar(i) => self.scalars[usize::from(i)],
            Operand::Const(value) => value as u32,
            Operand::Vccz => u32::from(self.vcc() == 0),
            Operand::Execz => u32::from(self.exec() == 0),
            Operand::Scc => u32::from(self.scc),
            // None of them is an operand of 32 bits that is the same for all lanes.
            Operand::SharedBase
            | Operand::SharedLimit
            | Operand::PrivateBase
            | Operand::PrivateLimit => 0,
            Operand::Vector(_) | Operand::Accum(_) | Operand::None => 0,
        }
    }

    /// The value of an operand that is the same for all lanes, 64 bits of it.
    pub(crate) fn scalar64(&self, operand: Operand) -> u64 {
        match operand {
            Operand::Scalar(i) => self.pair(i),
            Operand::Const(value) => value,
            Operand::SharedBase => self.apertures.shared & !0xffff_ffff,
            Operand::PrivateBase => self.apertures.private & !0xffff_ffff,
            Operand::SharedLimit => self.apertures.shared | 0xffff_ffff,
            Operand::PrivateLimit => self.apertures.private | 0xffff_ffff,
            other => u64::from(self.scalar32(other)),
        }
    }

    /// A register of all lanes, from a vector register or the same scalar in each.
    pub(crate) fn lanes(&self, operand: Operand, register: u16) -> Lanes {
        match operand {
            Operand::Vector(first) => self.vectors[usize::from(first + register)],
            other if register == 0 => [self.scalar32(other); LANES],
            other => [(self.scalar64(other) >> 32) as u32; LANES],
        }
    }

    /// Writes the lanes of `mask` to a vector register.
    pub(crate) fn set_lanes(&mut self, operand: Operand, register: u16, values: &Lanes, mask: u64) {
        let Operand::Vector(first) = operand else {
            return;
        };
        let target = &mut self.vectors[usize::from(first + register)];
        if mask == u64::MAX {
            *target = *values;
        } else {
            blend(target, values, mask);
        }
    }

    /// Digest of everything that decides what the wave will do.
    pub(crate) fn digest(&self) -> u64 {
        let state = self.pc
            ^ u64::from(self.scc) << 63
            ^ (self.state as u64) << 61
            ^ u64::from(self.mode.bits()) << 48;
        let words = self.vectors.iter().flatten().chain(&self.scalars);
        words.fold(mix(state), |hash, &word| {
            (hash ^ u64::from(word))
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .rotate_left(29)
        })
    }
}

/// Copies the lanes of `mask`.
fn blend(target: &mut Lanes, values: &Lanes, mask: u64) {
    const BITS: [u32; 32] = {
        let mut bits = [0; 32];
        let mut i = 0;
        while i < 32 {
            bits[i] = 1 << i;
            i += 1;
        }
        bits
    };
    for half in 0..2 {
        let mask = (mask >> (32 * half)) as u32;
        for (i, bit) in BITS.iter().enumerate() {
            let lane = 32 * half + i;
            target[lane] = if mask & bit != 0 {
                values[lane]
            } else {
                target[lane]
            };
        }
    }
}

/// Lanes of a mask that are on, in ascending order.
pub(crate) fn on(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        (mask != 0).then(|| {
            let lane = mask.trailing_zeros() as usize;
            mask &= mask - 1;
            lane
        })
    })
}
