//! Tiles: the unit in which regions are hashed, compared and listed as changed.

use core::num::NonZeroU64;
use core::ops::Range;

/// Bytes of a full tile: 1,024 items of 16 bytes.
pub const TILE_BYTES: u64 = 16 * 1024;

/// One tile of a region; offsets are in bytes from the region's start.
///
/// Tiles are counted from the start of the region and not from an aligned address, so which tile a
/// byte belongs to does not depend on where the region lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tile {
    index: u64,
    len: u32,
}

impl Tile {
    /// Position among the region's tiles, from 0.
    pub const fn index(&self) -> u64 {
        self.index
    }

    /// Length in bytes, from 1 to [`TILE_BYTES`]; only the last tile of a region is short.
    #[allow(
        clippy::len_without_is_empty,
        reason = "a tile is never empty, so the question does not arise"
    )]
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Offset of the first byte from the region's start.
    pub const fn start(&self) -> u64 {
        self.index * TILE_BYTES
    }

    /// The bytes of the region that the tile covers.
    pub const fn range(&self) -> Range<u64> {
        self.start()..self.start() + self.len as u64
    }
}

/// Iterator over the tiles of a region, in order.
#[derive(Clone, Debug)]
pub struct Tiles {
    len: NonZeroU64,
    next: u64,
}

impl Tiles {
    /// The tiles of a region of `len` bytes.
    pub const fn new(len: NonZeroU64) -> Self {
        Self { len, next: 0 }
    }

    /// Tiles of a region of `len` bytes, as a number.
    pub const fn count_in(len: NonZeroU64) -> u64 {
        len.get().div_ceil(TILE_BYTES)
    }
}

impl Iterator for Tiles {
    type Item = Tile;

    fn next(&mut self) -> Option<Tile> {
        let start = self.next.checked_mul(TILE_BYTES)?;
        let left = self.len.get().checked_sub(start).filter(|left| *left > 0)?;
        let tile = Tile {
            index: self.next,
            // At most TILE_BYTES, which fits.
            len: left.min(TILE_BYTES) as u32,
        };
        self.next += 1;
        Some(tile)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(Self::count_in(self.len) - self.next).ok();
        (left.unwrap_or(usize::MAX), left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tiles(len: u64) -> Tiles {
        Tiles::new(NonZeroU64::new(len).unwrap())
    }

    #[test]
    fn edges() {
        let lens = |len| tiles(len).map(|t| t.len()).collect::<std::vec::Vec<_>>();
        let full = TILE_BYTES as u32;
        assert_eq!(lens(1), [1]);
        assert_eq!(lens(TILE_BYTES - 1), [full - 1]);
        assert_eq!(lens(TILE_BYTES), [full]);
        assert_eq!(lens(TILE_BYTES + 1), [full, 1]);
        assert_eq!(tiles(u64::MAX).size_hint().0 as u64, 1 << 50);
    }

    #[test]
    fn the_last_tiles_of_the_largest_region_do_not_wrap() {
        let mut last = Tiles {
            len: NonZeroU64::MAX,
            next: (1 << 50) - 1,
        };
        assert_eq!(u64::from(last.next().unwrap().len()), TILE_BYTES - 1);
        assert_eq!(last.next(), None);
    }

    extern crate std;

    proptest! {
        /// Tiles cover a region exactly once, in order, and none exceeds the tile size.
        #[test]
        fn tiles_partition_the_region(len in 1u64..1 << 24) {
            let mut next = 0;
            for (i, tile) in tiles(len).enumerate() {
                prop_assert_eq!(tile.index(), i as u64);
                prop_assert_eq!(tile.start(), next);
                prop_assert!(u64::from(tile.len()) <= TILE_BYTES && tile.len() > 0);
                next = tile.range().end;
            }
            prop_assert_eq!(next, len);
            prop_assert_eq!(tiles(len).count() as u64, Tiles::count_in(NonZeroU64::new(len).unwrap()));
        }
    }
}
