//! A fragmented suballocator: free space in several pieces, as a best-fit pool would leave it.

use std::num::NonZeroU64;

use kr_storage::{Align, Suballocator};

/// Free ranges of an arena, in ascending order; each is used from its start.
#[derive(Clone, Debug)]
pub(crate) struct Holes {
    holes: Vec<(u64, u64)>,
    /// How far each hole is used, from the arena's start.
    cursors: Vec<u64>,
}

impl Holes {
    /// Holes of `(start, length)` bytes that do not touch.
    pub(crate) fn new(holes: Vec<(u64, u64)>) -> Self {
        let cursors = holes.iter().map(|(start, _)| *start).collect();
        Self { holes, cursors }
    }

    /// Where `len` bytes, or as many as there are, would start in a hole, and how many fit.
    fn fits(&self, hole: usize, capacity: u64, align: Align) -> Option<(u64, u64)> {
        let (start, len) = self.holes[hole];
        let end = start.saturating_add(len).min(capacity);
        let at = align.first_from(self.cursors[hole])?;
        Some((at, end.saturating_sub(at)))
    }
}

impl Suballocator for Holes {
    fn room(&self, capacity: u64, align: Align) -> u64 {
        (0..self.holes.len())
            .filter_map(|hole| Some(self.fits(hole, capacity, align)?.1))
            .max()
            .unwrap_or(0)
    }

    fn carve(&mut self, capacity: u64, len: NonZeroU64, align: Align) -> Option<u64> {
        // Best fit: the least room that is enough.
        let (_, hole, at) = (0..self.holes.len())
            .filter_map(|hole| {
                let (at, room) = self.fits(hole, capacity, align)?;
                (room >= len.get()).then_some((room, hole, at))
            })
            .min()?;
        self.cursors[hole] = at + len.get();
        Some(at)
    }

    fn high_water(&self) -> u64 {
        self.cursors
            .iter()
            .zip(&self.holes)
            .filter(|(cursor, (start, _))| *cursor > start)
            .map(|(cursor, _)| *cursor)
            .max()
            .unwrap_or(0)
    }

    fn reset(&mut self) {
        for (cursor, (start, _)) in self.cursors.iter_mut().zip(&self.holes) {
            *cursor = *start;
        }
    }
}
