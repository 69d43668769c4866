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
