//! The digest of a tile: a 64-bit function of its bytes and their positions.
//!
//! `D(tile) = sum over i of fin(w_i xor K_i) mod 2^64`, where `w_i` is the i-th little-endian
//! 8-byte word of the tile (a short last word is zero-extended), `fin` is the finaliser of
//! splitmix64 and `K_i = fin(seed + (i + 1) * 0x9e3779b97f4a7c15)`.
//!
//! What always holds
//! - `fin` is a bijection, so two tiles of one length that differ in exactly one word always differ
//!   in digest. More changed words are missed with a probability of about 2^-64 per tile.
//! - The sum has no order: digests of pieces of a tile add up to the digest of the tile.
//! - The position enters by xor with a hashed key. Added to the word instead, data that contains
//!   arithmetic steps of the same constant would collide.
//!
//! A tile is compared with its own earlier digest only, so there is no birthday effect. The seed is
//! no secret against an attacker; it keeps unlucky data from being unlucky in every process.

use kr_types::TILE_BYTES;

const WORD: usize = 8;
const TILE_WORDS: usize = TILE_BYTES as usize / WORD;
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finaliser of splitmix64 (Steele, Lea, Flood 2014): a bijection on 64-bit words.
const fn fin(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Computes digests under one seed.
///
/// ```
/// use kr_blit::Digester;
///
/// let digester = Digester::new(42);
/// let mut tile = vec![0; 16 << 10];
/// let before = digester.tile(&tile);
/// tile[9_000] ^= 1;
/// assert_ne!(digester.tile(&tile), before);
/// // Pieces that start on a word border add up.
/// let (head, tail) = tile.split_at(4096);
/// let sum = digester.piece(0, head).wrapping_add(digester.piece(4096, tail));
/// assert_eq!(sum, digester.tile(&tile));
/// ```
#[derive(Clone, Debug)]
pub struct Digester {
    keys: Box<[u64]>,
}

impl Digester {
    /// Prepares the keys of a full tile (16 KiB).
    pub fn new(seed: u64) -> Self {
        let keys = (1..=TILE_WORDS as u64)
            .map(|i| fin(seed.wrapping_add(i.wrapping_mul(GOLDEN))))
            .collect();
        Self { keys }
    }

    /// The digest of a tile of `bytes.len()` bytes.
    ///
    /// # Panics
    ///
    /// If `bytes` is longer than [`TILE_BYTES`].
    pub fn tile(&self, bytes: &[u8]) -> u64 {
        self.piece(0, bytes)
    }

    /// The share of a tile's digest that `bytes` contribute, which start `offset` bytes into the
    /// tile. Shares of pieces that partition the tile add up, modulo 2^64, to its digest.
    ///
    /// # Panics
    ///
    /// If `offset` is not a multiple of 8 or the piece reaches past [`TILE_BYTES`].
    pub fn piece(&self, offset: usize, bytes: &[u8]) -> u64 {
        assert!(
            offset.is_multiple_of(WORD) && offset + bytes.len() <= TILE_BYTES as usize,
            "a piece of {} bytes at {offset} is not a word-aligned part of a tile",
            bytes.len()
        );
        let (words, tail) = bytes.as_chunks::<WORD>();
        let keys = &self.keys[offset / WORD..];
        let mut sum = words.iter().zip(keys).fold(0u64, |sum, (word, key)| {
            sum.wrapping_add(fin(u64::from_le_bytes(*word) ^ key))
        });
        if !tail.is_empty() {
            let mut word = [0; WORD];
            word[..tail.len()].copy_from_slice(tail);
            sum = sum.wrapping_add(fin(u64::from_le_bytes(word) ^ keys[words.len()]));
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, read off the module doc.
    fn naive(seed: u64, bytes: &[u8]) -> u64 {
        let mut sum = 0u64;
        for (i, chunk) in bytes.chunks(8).enumerate() {
            let word = (0..chunk.len()).fold(0u64, |w, b| w | u64::from(chunk[b]) << (8 * b));
            let key = fin(seed.wrapping_add((i as u64 + 1).wrapping_mul(GOLDEN)));
            sum = sum.wrapping_add(fin(word ^ key));
        }
        sum
    }

    /// First outputs of splitmix64 with seed 1234567, a published test vector: state i gives
    /// `fin(seed + (i + 1) * GOLDEN)`.
    #[test]
    fn the_finaliser_is_that_of_splitmix64() {
        let at = |i: u64| fin(1_234_567u64.wrapping_add((i + 1).wrapping_mul(GOLDEN)));
        assert_eq!(
            [at(0), at(1), at(2), at(3), at(4)],
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431,
                16_408_922_859_458_223_821
            ]
        );
    }

    /// Pairs of half-words at the start of a tile that a product of halves maps to one value.
    #[test]
    fn halves_that_a_product_confuses_are_told_apart() {
        let digester = Digester::new(0);
        for b in 1..100_000u32 {
            let pair = |lo: u32, hi: u32| [lo.to_le_bytes(), hi.to_le_bytes()].concat();
            let (a, b) = (pair(b - 1, 0), pair(u32::MAX, b));
            assert_ne!(digester.tile(&a), digester.tile(&b));
        }
    }

    #[test]
    #[should_panic(expected = "not a word-aligned part of a tile")]
    fn a_piece_past_the_tile_is_a_bug() {
        Digester::new(0).piece(TILE_BYTES as usize - 8, &[0; 9]);
    }

    proptest! {
        #[test]
        fn equals_the_naive_digest(seed: u64, bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert_eq!(Digester::new(seed).tile(&bytes), naive(seed, &bytes));
        }

        #[test]
        fn pieces_add_up(seed: u64, bytes in prop::collection::vec(any::<u8>(), 1..2000), cut in 0usize..250) {
            let digester = Digester::new(seed);
            let cut = (cut * 8).min(bytes.len() / 8 * 8);
            let (head, tail) = bytes.split_at(cut);
            let sum = digester.piece(0, head).wrapping_add(digester.piece(cut, tail));
            prop_assert_eq!(sum, digester.tile(&bytes));
        }

        #[test]
        fn one_changed_word_is_always_found(
            seed: u64,
            word in 0usize..TILE_WORDS,
            old: u64,
            change in 1u64..,
        ) {
            let digester = Digester::new(seed);
            let mut tile = vec![0x5a; TILE_BYTES as usize];
            tile[word * 8..][..8].copy_from_slice(&old.to_le_bytes());
            let before = digester.tile(&tile);
            tile[word * 8..][..8].copy_from_slice(&(old ^ change).to_le_bytes());
            prop_assert_ne!(digester.tile(&tile), before);
        }
    }
}
