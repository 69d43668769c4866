//! What is remembered of a tile.
//!
//! Invariants
//! - Equal tiles of one length have equal fingerprints. Different tiles have different ones, except
//!   with the probability that their digests collide; a uniform tile differs from every other for
//!   certain.
//! - A [`Table`] takes 8 bytes and a bit for each tile, or 16 bytes and a bit if its digests are of
//!   128 bits.

use crate::Digester;
use crate::layout::Digest128;

const WORD: usize = 8;

/// Tiles that share one word of a bitmap, and that one worker takes at a time.
pub(super) const BATCH: usize = 64;

/// A function of a tile's bytes, given its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fingerprint {
    /// Every word is this one; a short last word has its first bytes.
    Uniform(u64),
    /// Any other tile.
    Mixed(Digest128),
}

impl Fingerprint {
    /// The fingerprint with a digest of 64 bits.
    pub(super) fn narrow(self) -> Self {
        match self {
            Self::Mixed(Digest128 { sum, .. }) => Self::Mixed(Digest128 { sum, weighted: 0 }),
            uniform => uniform,
        }
    }
}

/// Takes fingerprints.
#[derive(Clone, Debug)]
pub(super) struct Inspector {
    pub(super) digester: Digester,
    /// Whether digests have 128 bits.
    pub(super) wide: bool,
}

impl Inspector {
    /// The fingerprint of a tile of 1 to 16,384 bytes.
    pub(super) fn of(&self, tile: &[u8]) -> Fingerprint {
        if let Some(word) = uniform(tile) {
            Fingerprint::Uniform(word)
        } else if self.wide {
            Fingerprint::Mixed(self.digester.tile128(tile))
        } else {
            let (sum, weighted) = (self.digester.tile(tile), 0);
            Fingerprint::Mixed(Digest128 { sum, weighted })
        }
    }
}

/// The word that every word of the tile equals.
fn uniform(tile: &[u8]) -> Option<u64> {
    let mut first = [0; WORD];
    let len = tile.len().min(WORD);
    first[..len].copy_from_slice(&tile[..len]);
    let (words, tail) = tile.as_chunks::<WORD>();
    // Nearly every tile that is not uniform shows it in its first words.
    let (few, rest) = words.split_at(words.len().min(8));
    let equal = few.iter().all(|word| *word == first)
        && rest
            .iter()
            .fold(true, |equal, word| equal & (*word == first))
        && *tail == first[..tail.len()];
    equal.then_some(u64::from_le_bytes(first))
}

/// Fills a tile with what [`Fingerprint::Uniform`] says of it.
pub(super) fn fill(tile: &mut [u8], word: u64) {
    let bytes = word.to_le_bytes();
    let (words, tail) = tile.as_chunks_mut::<WORD>();
    words.fill(bytes);
    tail.copy_from_slice(&bytes[..tail.len()]);
}

/// One bit per tile.
#[derive(Debug, Default)]
pub(super) struct Marks(Vec<u64>);

impl Marks {
    pub(super) fn get(&self, tile: u64) -> bool {
        let (word, bit) = place(tile);
        self.0[word] >> bit & 1 != 0
    }

    pub(super) fn clear(&mut self) {
        self.0.fill(0);
    }

    /// The words, each of which is of [`BATCH`] tiles.
    pub(super) fn batches(&mut self) -> impl Iterator<Item = &mut u64> {
        self.0.iter_mut()
    }

    pub(super) fn host_bytes(&self) -> u64 {
        (self.0.capacity() * size_of::<u64>()) as u64
    }
}

/// In which word of a bitmap a tile's bit is, and which it is.
fn place(tile: u64) -> (usize, u64) {
    ((tile / BATCH as u64) as usize, tile % BATCH as u64)
}

/// A fingerprint for each tile of a stream.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// The digest's sum, or the word of a uniform tile.
    words: Vec<u64>,
    /// The digest's weighted sum; empty if digests have 64 bits.
    weighted: Vec<u64>,
    uniform: Marks,
}

/// The host has no memory for a table.
#[derive(Debug)]
pub(super) struct NoRoom;

impl Table {
    /// Room for `tiles` fingerprints.
    pub(super) fn new(tiles: u64, wide: bool) -> Result<Self, NoRoom> {
        let tiles = usize::try_from(tiles).map_err(|_| NoRoom)?;
        Ok(Self {
            words: zeros(tiles)?,
            weighted: zeros(if wide { tiles } else { 0 })?,
            uniform: Marks::new(tiles as u64)?,
        })
    }

    pub(super) fn get(&self, tile: u64) -> Fingerprint {
        let at = tile as usize;
        match self.is_uniform(tile) {
            true => Fingerprint::Uniform(self.words[at]),
            false => Fingerprint::Mixed(Digest128 {
                sum: self.words[at],
                weighted: self.weighted.get(at).copied().unwrap_or(0),
            }),
        }
    }

    pub(super) fn is_uniform(&self, tile: u64) -> bool {
        self.uniform.get(tile)
    }

    pub(super) fn has_uniform(&self) -> bool {
        self.uniform.0.iter().any(|word| *word != 0)
    }

    /// The table in parts of [`BATCH`] tiles, in order.
    pub(super) fn batches(&mut self) -> impl Iterator<Item = Part<'_>> {
        let mut weighted = self.weighted.chunks_mut(BATCH);
        let words = self.words.chunks_mut(BATCH);
        words
            .zip(self.uniform.batches())
            .map(move |(words, uniform)| Part {
                words,
                weighted: weighted.next().unwrap_or_default(),
                uniform,
            })
    }

    pub(super) fn host_bytes(&self) -> u64 {
        let words = self.words.capacity() + self.weighted.capacity();
        (words * size_of::<u64>()) as u64 + self.uniform.host_bytes()
    }
}

impl Marks {
    /// Unset marks for `tiles` tiles.
    pub(super) fn new(tiles: u64) -> Result<Self, NoRoom> {
        let words = tiles.div_ceil(BATCH as u64);
        zeros(usize::try_from(words).map_err(|_| NoRoom)?).map(Self)
    }
}

fn zeros(len: usize) -> Result<Vec<u64>, NoRoom> {
    let mut zeros = Vec::new();
    zeros.try_reserve_exact(len).map_err(|_| NoRoom)?;
    zeros.resize(len, 0);
    Ok(zeros)
}

/// The fingerprints of one batch; tiles are counted from its start.
pub(super) struct Part<'a> {
    words: &'a mut [u64],
    weighted: &'a mut [u64],
    uniform: &'a mut u64,
}

impl Part<'_> {
    pub(super) fn get(&self, tile: usize) -> Fingerprint {
        match *self.uniform >> tile & 1 {
            0 => Fingerprint::Mixed(Digest128 {
                sum: self.words[tile],
                weighted: self.weighted.get(tile).copied().unwrap_or(0),
            }),
            _ => Fingerprint::Uniform(self.words[tile]),
        }
    }

    pub(super) fn set(&mut self, tile: usize, to: Fingerprint) {
        let bit = 1 << tile;
        match to {
            Fingerprint::Uniform(word) => {
                self.words[tile] = word;
                *self.uniform |= bit;
            }
            Fingerprint::Mixed(digest) => {
                self.words[tile] = digest.sum;
                if let Some(weighted) = self.weighted.get_mut(tile) {
                    *weighted = digest.weighted;
                }
                *self.uniform &= !bit;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inspector(wide: bool) -> Inspector {
        let digester = Digester::new(5);
        Inspector { digester, wide }
    }

    #[test]
    fn uniform_tiles_are_known_exactly_whatever_their_length() {
        for len in 1..=40 {
            let mut tile = vec![0; len];
            fill(&mut tile, 0x0807_0605_0403_0201);
            for (i, byte) in tile.iter().enumerate() {
                assert_eq!(usize::from(*byte), i % 8 + 1);
            }
            let Fingerprint::Uniform(word) = inspector(false).of(&tile) else {
                panic!("{len} bytes are uniform");
            };
            let mut again = vec![0xff; len];
            fill(&mut again, word);
            assert_eq!(again, tile);
            for at in 8..len {
                let mut other = tile.clone();
                other[at] ^= 0x40;
                assert!(matches!(inspector(true).of(&other), Fingerprint::Mixed(_)));
            }
        }
    }

    #[test]
    fn a_table_keeps_what_it_is_given() {
        let digest = |i: u64| {
            Fingerprint::Mixed(Digest128 {
                sum: 3 * i,
                weighted: 5 * i,
            })
        };
        let at = |i: u64| {
            if i.is_multiple_of(3) {
                Fingerprint::Uniform(7 * i)
            } else {
                digest(i)
            }
        };
        for wide in [false, true] {
            let kept = |i| if wide { at(i) } else { at(i).narrow() };
            let mut table = Table::new(130, wide).unwrap();
            assert_eq!(table.batches().count(), 3);
            for (b, mut part) in table.batches().enumerate() {
                for i in 0..part.words.len() {
                    // Both kinds replace each other without a trace.
                    part.set(i, at(i as u64 + 1));
                    part.set(i, at((b * BATCH + i) as u64));
                    assert_eq!(part.get(i), kept((b * BATCH + i) as u64));
                }
            }
            for i in 0..130 {
                assert_eq!(table.get(i), kept(i), "{i}");
                assert_eq!(table.is_uniform(i), i.is_multiple_of(3));
            }
            assert!(table.has_uniform());
            let bytes = if wide { 16 } else { 8 };
            assert_eq!(table.host_bytes(), 130 * bytes + 3 * 8);
        }
        assert!(!Table::new(130, true).unwrap().has_uniform());
    }

    #[test]
    fn a_table_that_no_host_has_room_for_is_refused() {
        assert!(Table::new(u64::MAX / 16, true).is_err());
        assert!(Marks::new(u64::MAX).is_err());
    }
}
