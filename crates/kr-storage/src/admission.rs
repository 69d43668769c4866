//! Admission: how much of a request a tier wants.

use std::num::NonZeroU64;

use kr_types::{MemoryClass, TILE_BYTES};

use crate::Align;

/// What is asked of a tier: room for the rest of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Bytes that have no place yet.
    pub remaining: NonZeroU64,
    /// Where they start within their region, in bytes. The sum of the two does not overflow.
    pub region_offset: u64,
    /// Which offsets of the arena may take the first of them.
    pub align: Align,
    /// The higher, the sooner its bytes should be near the agent.
    pub priority: i32,
    /// What kind of memory the region is.
    pub class: MemoryClass,
}

/// Decides how many bytes of a request a tier takes.
///
/// Contract: a pure function of its arguments. It sees neither other tiers nor earlier requests;
/// the order of tiers and the room left already say what those did.
pub trait Admission {
    /// Bytes to take of `ask.remaining`, from its start; 0 declines. `room` is what the tier can
    /// really give in one piece at `ask.align`. More than the room, or than what remains, counts as
    /// that much.
    fn accept(&self, ask: &Ask, room: u64) -> u64;
}

impl<F: Fn(&Ask, u64) -> u64> Admission for F {
    fn accept(&self, ask: &Ask, room: u64) -> u64 {
        self(ask, room)
    }
}

/// Takes everything or nothing, so no region is ever split.
#[derive(Clone, Copy, Debug, Default)]
pub struct WholeRegion;

impl Admission for WholeRegion {
    fn accept(&self, ask: &Ask, room: u64) -> u64 {
        let remaining = ask.remaining.get();
        if remaining <= room { remaining } else { 0 }
    }
}

/// Takes nothing. The other half of a [`Select`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Closed;

impl Admission for Closed {
    fn accept(&self, _: &Ask, _: u64) -> u64 {
        0
    }
}

/// Takes everything if it fits, else the head that does, cut on a granule's border *of the region*.
///
/// A granule is a whole number of tiles, so no tile is ever saved in two tiers, where it would have
/// two digests.
///
/// Two buffers of three tiles and room for four: with [`WholeRegion`] the second one spills whole,
/// here two thirds of it do.
///
/// ```
/// use std::num::NonZeroU64;
/// use kr_storage::{Admission, Align, Ask, PrefixChunking, WholeRegion};
/// use kr_types::{MemoryClass, TILE_BYTES};
///
/// let second = Ask {
///     remaining: NonZeroU64::new(3 * TILE_BYTES).unwrap(),
///     region_offset: 0,
///     align: Align::new(256, 0)?,
///     priority: 0,
///     class: MemoryClass::Vram,
/// };
/// let room = TILE_BYTES + 100;
/// assert_eq!(WholeRegion.accept(&second, room), 0);
/// assert_eq!(PrefixChunking::TILE.accept(&second, room), TILE_BYTES);
/// # Ok::<(), kr_storage::NotAPowerOfTwo>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PrefixChunking {
    granule: u64,
}

impl PrefixChunking {
    /// Cuts on any tile's border.
    pub const TILE: Self = Self {
        granule: TILE_BYTES,
    };

    /// Cuts after every `tiles` tiles only. `None` if that many have more bytes than a `u64` counts.
    pub const fn new(tiles: NonZeroU64) -> Option<Self> {
        match tiles.get().checked_mul(TILE_BYTES) {
            Some(granule) => Some(Self { granule }),
            None => None,
        }
    }

    /// Bytes between two places where a region may be cut.
    pub const fn granule_bytes(&self) -> u64 {
        self.granule
    }
}

impl Admission for PrefixChunking {
    fn accept(&self, ask: &Ask, room: u64) -> u64 {
        let remaining = ask.remaining.get();
        if remaining <= room {
            return remaining;
        }
        // Does not saturate: the room is less than what remains, whose end does not overflow.
        let end = ask.region_offset.saturating_add(room);
        let cut = end - end % self.granule;
        cut.saturating_sub(ask.region_offset)
    }
}

/// Chooses between two admissions by a property of the request, such as its size or priority.
///
/// ```
/// use kr_storage::{Ask, Closed, PrefixChunking, Select};
///
/// // Only what is likely to be restored often may enter.
/// let admission = Select {
///     property: |ask: &Ask| ask.priority > 0,
///     with: PrefixChunking::TILE,
///     without: Closed,
/// };
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Select<P, A, B> {
    /// Which admission decides: `with` if it holds. Pure, as admissions are.
    pub property: P,
    /// Decides for requests that have the property.
    pub with: A,
    /// Decides for the others.
    pub without: B,
}

impl<P: Fn(&Ask) -> bool, A: Admission, B: Admission> Admission for Select<P, A, B> {
    fn accept(&self, ask: &Ask, room: u64) -> u64 {
        if (self.property)(ask) {
            self.with.accept(ask, room)
        } else {
            self.without.accept(ask, room)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ask(region_offset: u64, remaining: u64) -> Ask {
        Ask {
            remaining: NonZeroU64::new(remaining).unwrap(),
            region_offset,
            align: Align::new(256, 0).unwrap(),
            priority: 0,
            class: MemoryClass::Vram,
        }
    }

    #[test]
    fn whole_regions_fit_or_not() {
        assert_eq!(WholeRegion.accept(&ask(5, 10), 10), 10);
        assert_eq!(WholeRegion.accept(&ask(5, 10), 9), 0);
        assert_eq!(WholeRegion.accept(&ask(0, u64::MAX), u64::MAX), u64::MAX);
        assert_eq!(WholeRegion.accept(&ask(0, u64::MAX), u64::MAX - 1), 0);
    }

    #[test]
    fn a_part_is_cut_on_its_regions_tiles_and_not_on_its_own() {
        let chunks = PrefixChunking::TILE;
        let late = ask(100, 3 * TILE_BYTES);
        assert_eq!(chunks.accept(&late, TILE_BYTES), TILE_BYTES - 100);
        assert_eq!(chunks.accept(&late, TILE_BYTES - 100), TILE_BYTES - 100);
        assert_eq!(chunks.accept(&late, TILE_BYTES - 101), 0);
        assert_eq!(chunks.accept(&late, 0), 0);
    }

    #[test]
    fn granules_are_whole_tiles() {
        assert!(PrefixChunking::new(NonZeroU64::MAX).is_none());
        let two = PrefixChunking::new(NonZeroU64::new(2).unwrap()).unwrap();
        assert_eq!(two.granule_bytes(), 2 * TILE_BYTES);
        assert_eq!(two.accept(&ask(0, u64::MAX), 2 * TILE_BYTES - 1), 0);
        assert_eq!(
            two.accept(&ask(0, u64::MAX), 3 * TILE_BYTES),
            2 * TILE_BYTES
        );
    }

    #[test]
    fn a_property_selects() {
        let small = Select {
            property: |ask: &Ask| ask.remaining.get() < 100,
            with: WholeRegion,
            without: Closed,
        };
        assert_eq!(small.accept(&ask(0, 99), 1000), 99);
        assert_eq!(small.accept(&ask(0, 100), 1000), 0);
    }

    proptest! {
        /// A head is the longest one that fits and ends on a granule's border of the region.
        #[test]
        fn prefix_chunking_takes_the_longest_cut(
            tiles in 1u64..4,
            offset in 0u64..4 * TILE_BYTES,
            len in 1u64..12 * TILE_BYTES,
            room in 0u64..12 * TILE_BYTES,
        ) {
            let chunks = PrefixChunking::new(NonZeroU64::new(tiles).unwrap()).unwrap();
            let border = |end: &u64| (offset + end).is_multiple_of(tiles * TILE_BYTES);
            let longest = if len <= room { len } else { (0..=room).rev().find(border).unwrap_or(0) };
            prop_assert_eq!(chunks.accept(&ask(offset, len), room), longest);
        }

        /// Nothing wraps, whatever the numbers.
        #[test]
        fn extremes_are_answered(
            offset in prop_oneof![Just(0u64), Just(1), any::<u64>(), Just(u64::MAX - 1)],
            len in prop_oneof![Just(1u64), any::<u64>(), Just(u64::MAX)],
            room in prop_oneof![Just(0u64), Just(1), any::<u64>(), Just(u64::MAX)],
        ) {
            let len = len.clamp(1, u64::MAX - offset);
            let taken = PrefixChunking::TILE.accept(&ask(offset, len), room);
            prop_assert!(taken <= room.min(len));
            prop_assert!(taken == len || (offset + taken).is_multiple_of(TILE_BYTES) || taken == 0);
        }
    }
}
