//! The work stream: all tiles of all extents laid end to end, as one index space.
//!
//! Work is divided by index, without regard to borders between regions: one huge region keeps all
//! workers busy, and thousands of tiny ones share them. The same arrays serve the kernels
//! ([`layout`](crate::layout)).
//!
//! Invariants
//! - Tiles are counted from the start of the region. An extent starts at a tile border of its region
//!   and ends at one or at the region's end, so no tile is split between extents.
//! - `first_tile` of an extent is the sum of the tiles of those before it; none is empty.
//! - `region` of an extent is less than the number of regions, each of which is listed once.
//!
//! Not here: reading or writing any of that memory.

use std::collections::HashMap;
use std::ops::Range;

use kr_types::{DeviceAddr, Extent, Region, TILE_BYTES, Tier, Tiles};

use crate::layout::{EXTENT_INCONGRUENT, EXTENT_PINNED, ExtentEntry, TileEntry};

/// The least number of bytes that a piece of a tile has.
pub const MIN_PIECE_BYTES: u64 = 4096;
/// Bytes that one lane loads or stores at a time.
const ITEM_BYTES: u64 = 16;
/// Slots that each wave should get before tiles are left whole.
const SLOTS_PER_WAVE: u64 = 4;

/// Why a list of extents is not a work stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The extent starts inside a tile of its region, which would then have two digests.
    #[error(
        "extent {extent} starts {offset} bytes into its region at {base}, inside a tile; \
         cut regions at multiples of {TILE_BYTES} bytes"
    )]
    StartsInTile {
        /// Its place in the list.
        extent: usize,
        /// Where its region starts.
        base: DeviceAddr,
        /// Where in the region it starts.
        offset: u64,
    },
    /// The extent ends inside a tile that goes on.
    #[error(
        "extent {extent} ends {offset} bytes into its region at {base}, inside a tile; \
         cut regions at multiples of {TILE_BYTES} bytes"
    )]
    EndsInTile {
        /// Its place in the list.
        extent: usize,
        /// Where its region starts.
        base: DeviceAddr,
        /// Where in the region it ends.
        offset: u64,
    },
    /// More extents, or more tiles in this extent, than a 32-bit index can tell apart.
    #[error(
        "extent {extent} of {tiles} tiles: neither extents nor the tiles of one may exceed 2^32"
    )]
    TooMany {
        /// Its place in the list.
        extent: usize,
        /// Its tiles.
        tiles: u64,
    },
}

/// Extents in the form that workers and kernels use. See the module's documentation.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    entries: Vec<ExtentEntry>,
    regions: Vec<Region>,
    tiles: u64,
}

impl Stream {
    /// Lays the tiles of `extents` end to end, in their order.
    ///
    /// # Errors
    ///
    /// [`StreamError`] names the first extent that does not fit.
    pub fn new(extents: &[Extent]) -> Result<Self, StreamError> {
        let mut stream = Self {
            entries: Vec::with_capacity(extents.len()),
            ..Self::default()
        };
        let mut indices = HashMap::new();
        for (extent, piece) in extents.iter().enumerate() {
            let region = piece.region();
            let (base, start) = (region.base(), piece.region_offset());
            // Neither overflows: the extent lies inside its region.
            let end = start + piece.len_bytes().get();
            if !start.is_multiple_of(TILE_BYTES) {
                let offset = start;
                return Err(StreamError::StartsInTile {
                    extent,
                    base,
                    offset,
                });
            }
            if !end.is_multiple_of(TILE_BYTES) && end != region.len_bytes().get() {
                let offset = end;
                return Err(StreamError::EndsInTile {
                    extent,
                    base,
                    offset,
                });
            }
            let tiles = Tiles::count_in(piece.len_bytes());
            let too_many = |_| StreamError::TooMany { extent, tiles };
            u32::try_from(tiles).map_err(too_many)?;
            let next = u32::try_from(extent).map_err(too_many)?;
            // There are no more regions than extents, so an index that is made here fits.
            let region = *indices.entry(*region).or_insert_with(|| {
                stream.regions.push(*region);
                next.min(stream.regions.len() as u32 - 1)
            });
            stream.entries.push(ExtentEntry {
                live: piece.live().0,
                saved: piece.saved().0,
                len: piece.len_bytes().get(),
                first_tile: stream.tiles,
                region,
                flags: flags(piece),
            });
            // At most 2^32 extents of 2^32 tiles, of which 2^18 would fill the address space.
            stream.tiles += tiles;
        }
        stream.regions.shrink_to_fit();
        Ok(stream)
    }

    /// The extents, in order.
    pub fn entries(&self) -> &[ExtentEntry] {
        &self.entries
    }

    /// The regions that they are pieces of, each once.
    pub fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// Tiles of all extents.
    pub fn tiles(&self) -> u64 {
        self.tiles
    }

    /// Which tile has this index in the stream.
    pub fn tile(&self, index: u64) -> Option<TileEntry> {
        let extent = self.extent_of(index)?;
        Some(TileEntry {
            extent: extent as u32,
            // An extent has at most 2^32 tiles.
            index: (index - self.entries[extent].first_tile) as u32,
        })
    }

    /// The tiles of `range`, cut at borders of extents.
    pub fn runs(&self, range: Range<u64>) -> impl Iterator<Item = Run<'_>> {
        let end = range.end.min(self.tiles);
        let first = self.extent_of(range.start).unwrap_or(self.entries.len());
        let mut next = range.start;
        self.entries[first..].iter().map_while(move |entry| {
            let tiles = next..end.min(entry.first_tile + entry.tiles());
            next = tiles.end;
            (!tiles.is_empty()).then_some(Run { entry, tiles })
        })
    }

    /// The extent that has tile `index` of the stream.
    fn extent_of(&self, index: u64) -> Option<usize> {
        if index >= self.tiles {
            return None;
        }
        // The first extent starts at 0, so at least one is counted.
        Some(
            self.entries
                .partition_point(|entry| entry.first_tile <= index)
                - 1,
        )
    }

    /// Bytes of the host's memory that the stream takes.
    pub fn host_bytes(&self) -> u64 {
        (self.entries.capacity() * size_of::<ExtentEntry>()
            + self.regions.capacity() * size_of::<Region>()) as u64
    }
}

fn flags(extent: &Extent) -> u32 {
    let pinned = match extent.tier() {
        Tier::PinnedHost => EXTENT_PINNED,
        _ => 0,
    };
    let apart = extent.live().0.abs_diff(extent.saved().0);
    let incongruent = match apart.is_multiple_of(ITEM_BYTES) {
        true => 0,
        false => EXTENT_INCONGRUENT,
    };
    pinned | incongruent
}

impl ExtentEntry {
    /// Which tier the saved side is in.
    pub const fn tier(&self) -> Tier {
        match self.flags & EXTENT_PINNED {
            0 => Tier::Device,
            _ => Tier::PinnedHost,
        }
    }

    /// Its tiles, as a number.
    pub const fn tiles(&self) -> u64 {
        self.len.div_ceil(TILE_BYTES)
    }
}

/// Consecutive tiles of one extent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run<'a> {
    entry: &'a ExtentEntry,
    tiles: Range<u64>,
}

impl<'a> Run<'a> {
    /// The extent.
    pub fn entry(&self) -> &'a ExtentEntry {
        self.entry
    }

    /// The tiles, by their index in the stream; never empty.
    pub fn tiles(&self) -> Range<u64> {
        self.tiles.clone()
    }

    /// Length in bytes.
    pub fn len_bytes(&self) -> u64 {
        let end = (self.tiles.end - self.entry.first_tile) * TILE_BYTES;
        end.min(self.entry.len) - self.offset()
    }

    /// First byte in the application's memory.
    pub fn live(&self) -> DeviceAddr {
        // Does not wrap: neither side of an extent does.
        DeviceAddr(self.entry.live + self.offset())
    }

    /// First byte of the saved copy.
    pub fn saved(&self) -> DeviceAddr {
        DeviceAddr(self.entry.saved + self.offset())
    }

    /// Bytes of the extent that come before.
    fn offset(&self) -> u64 {
        (self.tiles.start - self.entry.first_tile) * TILE_BYTES
    }

    /// The run in parts of at most `most` tiles.
    pub fn parts(&self, most: u64) -> impl Iterator<Item = Run<'a>> + use<'a> {
        let (entry, tiles) = (self.entry, self.tiles());
        let starts = tiles.clone().step_by(most.max(1) as usize);
        starts.map(move |start| Run {
            entry,
            tiles: start..tiles.end.min(start.saturating_add(most.max(1))),
        })
    }

    /// The longest runs of tiles of this one that `pick` admits, asked once for each in order.
    pub fn picked<F: FnMut(u64) -> bool>(
        &self,
        mut pick: F,
    ) -> impl Iterator<Item = Run<'a>> + use<'a, F> {
        let (entry, mut rest) = (self.entry, self.tiles());
        std::iter::from_fn(move || {
            let start = rest.find(|tile| pick(*tile))?;
            // What `find` has taken beyond the last admitted tile is not admitted.
            let end = rest.find(|tile| !pick(*tile)).unwrap_or(rest.end);
            Some(Run {
                entry,
                tiles: start..end,
            })
        })
    }
}

/// How the tiles of a stream are shared out: whole while there are many, else in pieces of a half or
/// a quarter, so that every wave has something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    tiles: u64,
    /// Pieces of a tile, as a power of two.
    log2: u32,
}

impl Split {
    /// For `tiles` tiles and `waves` waves: the least number of pieces that gives every wave four
    /// slots, and at most four.
    pub fn new(tiles: u64, waves: u64) -> Self {
        let enough = waves.saturating_mul(SLOTS_PER_WAVE);
        let most = (TILE_BYTES / MIN_PIECE_BYTES).ilog2();
        let log2 = (0..most)
            .find(|log2| tiles.saturating_mul(1 << log2) >= enough)
            .unwrap_or(most);
        Self { tiles, log2 }
    }

    /// Pieces that a tile is split into: 1, 2 or 4.
    pub fn pieces(&self) -> u64 {
        1 << self.log2
    }

    /// Slots of work; slot `k` is piece `k mod pieces` of tile `k / pieces`.
    pub fn slots(&self) -> u64 {
        self.tiles.saturating_mul(self.pieces())
    }

    /// The tile of a slot and which of its bytes belong to it, given how to find a tile's length. A
    /// piece past the end of a short tile is empty.
    pub fn slot(&self, slot: u64, len_of: impl FnOnce(u64) -> u64) -> (u64, Range<u64>) {
        let tile = slot >> self.log2;
        let size = TILE_BYTES >> self.log2;
        let start = (slot & (self.pieces() - 1)) * size;
        let len = len_of(tile);
        (tile, start.min(len)..(start + size).min(len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kr_types::{AgentId, Generation, MemoryClass};

    fn region(base: u64, len: u64) -> Region {
        Region::new(
            AgentId(0),
            DeviceAddr(base),
            len,
            Generation::FIRST,
            MemoryClass::Vram,
        )
        .unwrap()
    }

    fn extent(region: Region, offset: u64, len: u64, saved: u64, tier: Tier) -> Extent {
        Extent::new(region, offset, len, DeviceAddr(saved), tier).unwrap()
    }

    /// Region A of one tile and a byte, cut at the tile's end into two tiers; B of 3 bytes between.
    fn sample() -> Stream {
        let (a, b) = (region(0x1000, TILE_BYTES + 1), region(0x90_0000, 3));
        Stream::new(&[
            extent(a, 0, TILE_BYTES, 0xa000, Tier::Device),
            extent(b, 0, 3, 0xb000, Tier::Device),
            extent(a, TILE_BYTES, 1, 0xc001, Tier::PinnedHost),
        ])
        .unwrap()
    }

    #[test]
    fn extents_of_one_region_share_its_index() {
        let stream = sample();
        let regions: Vec<_> = stream.entries().iter().map(|e| e.region).collect();
        assert_eq!(regions, [0, 1, 0]);
        assert_eq!(stream.regions().len(), 2);
        let flags: Vec<_> = stream.entries().iter().map(|e| e.flags).collect();
        assert_eq!(flags, [0, 0, EXTENT_PINNED | EXTENT_INCONGRUENT]);
        assert_eq!(stream.entries()[2].live, 0x1000 + TILE_BYTES);
        assert_eq!(stream.entries()[2].tier(), Tier::PinnedHost);
    }

    #[test]
    fn tiles_and_runs_cross_extents() {
        let stream = sample();
        let tiles: Vec<_> = (0..4).map(|i| stream.tile(i)).collect();
        let at = |extent| Some(TileEntry { extent, index: 0 });
        assert_eq!(tiles, [at(0), at(1), at(2), None]);
        let runs = |range| -> Vec<_> {
            let runs = stream.runs(range);
            runs.map(|r| (r.tiles(), r.live().0, r.len_bytes()))
                .collect()
        };
        assert_eq!(
            runs(1..u64::MAX),
            [(1..2, 0x90_0000, 3), (2..3, 0x1000 + TILE_BYTES, 1)]
        );
        assert_eq!(runs(2..2), []);
        assert_eq!(runs(3..9), []);
        assert_eq!(Stream::new(&[]).unwrap().runs(0..9).count(), 0);
    }

    #[test]
    fn runs_are_cut_and_picked() {
        let a = region(0x1000, 9 * TILE_BYTES + 5);
        let stream = Stream::new(&[extent(a, 0, 9 * TILE_BYTES + 5, 0xa000, Tier::Device)]);
        let stream = stream.unwrap();
        let run = stream.runs(1..10).next().unwrap();
        let lens: Vec<_> = run.parts(4).map(|r| (r.tiles(), r.len_bytes())).collect();
        let full = 4 * TILE_BYTES;
        assert_eq!(lens, [(1..5, full), (5..9, full), (9..10, 5)]);
        let picked: Vec<_> = run.picked(|t| [1, 2, 5, 9].contains(&t)).collect();
        let tiles: Vec<_> = picked.iter().map(Run::tiles).collect();
        assert_eq!(tiles, [1..3, 5..6, 9..10]);
        assert_eq!(picked[1].saved().0, 0xa000 + 5 * TILE_BYTES);
        assert_eq!(run.picked(|_| true).count(), 1);
        assert_eq!(run.picked(|_| false).count(), 0);
    }

    #[test]
    fn extents_that_split_a_tile_are_refused_by_name() {
        let a = region(0x1000, 3 * TILE_BYTES);
        let base = a.base();
        let stream = |offset, len| {
            let good = extent(region(1, 1), 0, 1, 1, Tier::Device);
            Stream::new(&[good, extent(a, offset, len, 1, Tier::Device)]).map(|s| s.tiles())
        };
        let (extent, offset) = (1, 8);
        assert_eq!(
            stream(8, 1),
            Err(StreamError::StartsInTile {
                extent,
                base,
                offset
            })
        );
        let offset = 2 * TILE_BYTES - 1;
        assert_eq!(
            stream(TILE_BYTES, TILE_BYTES - 1),
            Err(StreamError::EndsInTile {
                extent,
                base,
                offset
            })
        );
        assert_eq!(stream(TILE_BYTES, TILE_BYTES), Ok(2));
    }

    #[test]
    fn an_extent_of_too_many_tiles_is_refused() {
        let len = (1 << 32) * TILE_BYTES;
        let whole = |len| {
            let extent = extent(region(1, len), 0, len, 1, Tier::Device);
            Stream::new(&[extent]).map(|s| s.tiles())
        };
        assert_eq!(whole(len - TILE_BYTES), Ok((1 << 32) - 1));
        let (extent, tiles) = (0, 1 << 32);
        assert_eq!(whole(len), Err(StreamError::TooMany { extent, tiles }));
    }

    #[test]
    fn tiles_are_split_when_they_are_few() {
        let pieces = |tiles, waves| Split::new(tiles, waves).pieces();
        assert_eq!(
            [pieces(400, 100), pieces(399, 100), pieces(200, 100)],
            [1, 2, 2]
        );
        assert_eq!([pieces(199, 100), pieces(1, 100), pieces(0, 0)], [4, 4, 1]);
        assert_eq!(pieces(u64::MAX, u64::MAX), 1);
        let split = Split::new(2, 100);
        assert_eq!(split.slots(), 8);
        let short = |_| 5_000;
        assert_eq!(split.slot(5, short), (1, 4096..5_000));
        assert_eq!(split.slot(6, short), (1, 5_000..5_000));
    }

    /// The runs below cover what they should whatever the numbers; the same function is fuzzed.
    #[test]
    fn tile_arithmetic_agrees_with_a_model() {
        use proptest::test_runner::{Config, TestRunner};
        let mut runner = TestRunner::new(Config::with_cases(if cfg!(miri) { 4 } else { 256 }));
        let bytes = proptest::collection::vec(proptest::num::u8::ANY, 0..200);
        runner
            .run(&bytes, |data| {
                crate::fuzzing::tiles(&data);
                Ok(())
            })
            .unwrap();
    }
}
