//! What one dispatch is counted as.
//!
//! Instruction counts are exact: each executed wave instruction adds one, whatever EXEC is, under the class that its
//! table row gives it. Cycles come from a model so simple that it can be stated in full here, and only exist so that
//! the counters of time have repeatable, plausible values. They say nothing about hardware.
//!
//! The model: each compute unit executes one wave instruction after another. A scalar instruction takes 4 cycles, a
//! vector instruction 4 (one per quarter of a wave) and one on 64-bit floats or of the transcendental unit 16, an LDS
//! instruction 8, a scalar load 16, a vector memory instruction 64. Workgroups go to the [`COMPUTE_UNITS`] units in
//! turn, as they start. The dispatch takes [`LAUNCH_CYCLES`] and then as long as the busiest unit.
//!
//! The interpreter always counts everything. As on hardware, a profiler gets less at a time: a [`Block`] has only so
//! many registers, and a [`Selection`] holds what fits.

use std::fmt;
use std::ops::{Index, IndexMut};

/// Compute units over which the cycle model spreads workgroups.
pub const COMPUTE_UNITS: usize = 104;

/// Cycles that the model adds to each dispatch.
pub const LAUNCH_CYCLES: u64 = 1000;

/// The unit an instruction goes to: what it is counted as, and what it costs in the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Vector arithmetic.
    Valu,
    /// Vector arithmetic at a quarter of the rate: 64-bit floats and the transcendental functions.
    SlowValu,
    /// Scalar arithmetic.
    Salu,
    /// Branches, barriers, waits, messages: counted as no instruction class of their own.
    Control,
    /// Loads and cache control of the scalar unit.
    Smem,
    /// Loads of vector memory, global, buffer or scratch, and atomics that return a value.
    VmemRead,
    /// Stores to vector memory, and atomics that return nothing.
    VmemWrite,
    /// [`Class::VmemRead`] in the flat encoding, which may also reach LDS.
    FlatRead,
    /// [`Class::VmemWrite`] in the flat encoding.
    FlatWrite,
    /// Cache control of vector memory.
    VmemControl,
    /// LDS.
    Lds,
}

impl Class {
    /// Cycles of one wave instruction in the model.
    pub const fn cycles(self) -> u64 {
        match self {
            Self::Valu | Self::Salu | Self::Control => 4,
            Self::Lds => 8,
            Self::SlowValu | Self::Smem => 16,
            Self::VmemRead
            | Self::VmemWrite
            | Self::FlatRead
            | Self::FlatWrite
            | Self::VmemControl => 64,
        }
    }

    /// The counters that one wave instruction adds one to.
    const fn counters(self) -> &'static [Counter] {
        match self {
            Self::Valu | Self::SlowValu => &[Counter::InstsValu],
            Self::Salu => &[Counter::InstsSalu],
            Self::Control | Self::VmemControl => &[],
            Self::Smem => &[Counter::InstsSmem],
            Self::VmemRead => &[Counter::InstsVmemRd],
            Self::VmemWrite => &[Counter::InstsVmemWr],
            Self::FlatRead => &[Counter::InstsVmemRd, Counter::InstsFlat],
            Self::FlatWrite => &[Counter::InstsVmemWr, Counter::InstsFlat],
            Self::Lds => &[Counter::InstsLds],
        }
    }

    const COUNT: usize = Self::Lds as usize + 1;
    const ALL: [Self; Self::COUNT] = [
        Self::Valu,
        Self::SlowValu,
        Self::Salu,
        Self::Control,
        Self::Smem,
        Self::VmemRead,
        Self::VmemWrite,
        Self::FlatRead,
        Self::FlatWrite,
        Self::VmemControl,
        Self::Lds,
    ];
}

/// A counter that a dispatch of the emulated agent has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Counter {
    /// Waves started.
    Waves,
    /// Vector arithmetic instructions.
    InstsValu,
    /// Scalar arithmetic instructions.
    InstsSalu,
    /// Scalar memory instructions.
    InstsSmem,
    /// Vector memory reads, flat ones and atomics with a result included.
    InstsVmemRd,
    /// Vector memory writes, flat ones and atomics without a result included.
    InstsVmemWr,
    /// Instructions in the flat encoding, also counted as a vector memory read or write.
    InstsFlat,
    /// LDS instructions.
    InstsLds,
    /// Cycles in which waves were in flight: the dispatch without its launch.
    BusyCycles,
    /// Cycles of the dispatch.
    GrbmCount,
    /// Cycles of the dispatch in which the agent was busy: all of them.
    GrbmGuiActive,
}

impl Counter {
    /// Every counter, in the order of their declaration.
    pub const ALL: [Self; 11] = [
        Self::Waves,
        Self::InstsValu,
        Self::InstsSalu,
        Self::InstsSmem,
        Self::InstsVmemRd,
        Self::InstsVmemWr,
        Self::InstsFlat,
        Self::InstsLds,
        Self::BusyCycles,
        Self::GrbmCount,
        Self::GrbmGuiActive,
    ];

    /// The name that AMD's profilers use for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waves => "SQ_WAVES",
            Self::InstsValu => "SQ_INSTS_VALU",
            Self::InstsSalu => "SQ_INSTS_SALU",
            Self::InstsSmem => "SQ_INSTS_SMEM",
            Self::InstsVmemRd => "SQ_INSTS_VMEM_RD",
            Self::InstsVmemWr => "SQ_INSTS_VMEM_WR",
            Self::InstsFlat => "SQ_INSTS_FLAT",
            Self::InstsLds => "SQ_INSTS_LDS",
            Self::BusyCycles => "SQ_BUSY_CYCLES",
            Self::GrbmCount => "GRBM_COUNT",
            Self::GrbmGuiActive => "GRBM_GUI_ACTIVE",
        }
    }

    /// The block that counts it.
    pub const fn block(self) -> Block {
        match self {
            Self::Waves
            | Self::InstsValu
            | Self::InstsSalu
            | Self::InstsSmem
            | Self::InstsVmemRd
            | Self::InstsVmemWr
            | Self::InstsFlat
            | Self::InstsLds
            | Self::BusyCycles => Block::Sq,
            Self::GrbmCount | Self::GrbmGuiActive => Block::Grbm,
        }
    }
}

/// A part of the agent that has counter registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Block {
    /// The sequencer, which issues instructions.
    Sq,
    /// The graphics register bus manager, which knows whether the agent is busy.
    Grbm,
}

impl Block {
    /// Every block.
    pub const ALL: [Self; 2] = [Self::Sq, Self::Grbm];

    /// Counters that it can count at the same time. Fewer than it has, so that more than one pass is needed for all.
    pub const fn registers(self) -> usize {
        match self {
            Self::Sq => 8,
            Self::Grbm => 2,
        }
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sq => "SQ",
            Self::Grbm => "GRBM",
        })
    }
}

/// Counters that are counted at the same time.
///
/// Invariant: no block counts more than it has [registers](Block::registers) for.
///
/// ```
/// use amdgpu_emu::Counter;
/// use amdgpu_emu::counters::{Block, Selection, SelectionError};
///
/// let all = Counter::ALL.into_iter().collect::<Vec<_>>();
/// let too_many = SelectionError::Full { block: Block::Sq, wanted: 9 };
/// assert_eq!(Selection::new(&all), Err(too_many));
/// assert!(Selection::new(&all[1..]).is_ok());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Selection(u32);

impl Selection {
    /// These counters; one that is named twice is counted once.
    ///
    /// # Errors
    ///
    /// A block has too few registers.
    pub fn new(counters: &[Counter]) -> Result<Self, SelectionError> {
        let bit = |mask, &counter: &Counter| mask | 1 << counter as u32;
        Self::from_bits(counters.iter().fold(0, bit))
    }

    /// The counters whose bits are set; bit 0 is the first one of [`Counter::ALL`].
    ///
    /// # Errors
    ///
    /// A bit is set for which there is no counter, or a block has too few registers.
    pub fn from_bits(bits: u32) -> Result<Self, SelectionError> {
        if bits >> Counter::ALL.len() != 0 {
            return Err(SelectionError::Unknown(bits));
        }
        let selection = Self(bits);
        for block in Block::ALL {
            let wanted = selection.iter().filter(|counter| counter.block() == block);
            let wanted = wanted.count();
            if wanted > block.registers() {
                return Err(SelectionError::Full { block, wanted });
            }
        }
        Ok(selection)
    }

    /// A bit for each counter, as [`from_bits`](Self::from_bits) takes them.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The counters, in the order of [`Counter::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Counter> {
        let is_set = move |counter: &Counter| self.0 >> *counter as u32 & 1 != 0;
        Counter::ALL.into_iter().filter(is_set)
    }
}

/// Counters that can't be counted at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectionError {
    /// A bit that stands for no counter.
    #[error("counters {0:#x} are selected, there are only {count}", count = Counter::ALL.len())]
    Unknown(u32),
    /// A block has too few registers.
    #[error("{wanted} counters of block {block} are selected, it counts at most {most} at a time", most = block.registers())]
    Full {
        /// The block.
        block: Block,
        /// Counters of it that were selected.
        wanted: usize,
    },
}

/// The counters of one dispatch, indexed by [`Counter`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Counters([u64; Counter::ALL.len()]);

impl Index<Counter> for Counters {
    type Output = u64;

    fn index(&self, counter: Counter) -> &u64 {
        &self.0[counter as usize]
    }
}

impl IndexMut<Counter> for Counters {
    fn index_mut(&mut self, counter: Counter) -> &mut u64 {
        &mut self.0[counter as usize]
    }
}

impl Counters {
    /// Every counter with its value.
    pub fn iter(&self) -> impl Iterator<Item = (Counter, u64)> + '_ {
        Counter::ALL.into_iter().zip(self.0)
    }
}

/// Wave instructions executed, by class: the form in which the interpreter counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally([u64; Class::COUNT]);

impl Tally {
    pub(crate) fn add(&mut self, class: Class) {
        self.0[class as usize] += 1;
    }

    /// What the classes sum up to in `counters`.
    pub(crate) fn add_to(&self, counters: &mut Counters) {
        for (class, count) in Class::ALL.into_iter().zip(self.0) {
            for &counter in class.counters() {
                counters[counter] += count;
            }
        }
    }

    /// Cycles of the model, were all of it executed by one compute unit.
    pub(crate) fn cycles(&self) -> u64 {
        Class::ALL
            .into_iter()
            .zip(self.0)
            .map(|(class, count)| class.cycles() * count)
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The arrays that are indexed by an enum list it in order, so that no count lands under a neighbour's name.
    #[test]
    fn lists_are_in_order() {
        assert!(
            Class::ALL
                .into_iter()
                .enumerate()
                .all(|(i, class)| class as usize == i)
        );
        assert!(
            Counter::ALL
                .into_iter()
                .enumerate()
                .all(|(i, counter)| counter as usize == i)
        );
    }

    /// Every pair of what two blocks may be asked for, against the two limits by themselves.
    #[test]
    fn selections_keep_to_the_registers_of_each_block() {
        for bits in 0..1u32 << Counter::ALL.len() {
            // The first nine counters are the sequencer's, the other two fit always.
            let sq = (bits & 0x1ff).count_ones() as usize;
            let selected = Selection::from_bits(bits);
            let full = SelectionError::Full {
                block: Block::Sq,
                wanted: sq,
            };
            assert_eq!(
                selected,
                if sq <= 8 {
                    Ok(Selection(bits))
                } else {
                    Err(full)
                }
            );
            if let Ok(selected) = selected {
                let counters: Vec<Counter> = selected.iter().collect();
                assert_eq!(counters.len(), bits.count_ones() as usize);
                assert_eq!(Selection::new(&counters), Ok(selected));
            }
        }
        assert_eq!(
            Selection::from_bits(1 << 11 | 1),
            Err(SelectionError::Unknown(0x801))
        );
        let text = Selection::from_bits(0x1ff).unwrap_err().to_string();
        assert_eq!(
            text,
            "9 counters of block SQ are selected, it counts at most 8 at a time"
        );
    }

    /// A flat load counts twice, once as what it does and once as how it is encoded.
    #[test]
    fn a_flat_load_is_a_read_and_flat() {
        let mut tally = Tally::default();
        tally.add(Class::FlatRead);
        tally.add(Class::VmemRead);
        let mut counters = Counters::default();
        tally.add_to(&mut counters);
        assert_eq!(
            (counters[Counter::InstsVmemRd], counters[Counter::InstsFlat]),
            (2, 1)
        );
        assert_eq!(tally.cycles(), 128);
    }
}
