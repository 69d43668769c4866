//! The digest of a tile: a 64- or 128-bit function of its bytes and their positions.
//!
//! `D(tile) = sum over i of t_i mod 2^64` with `t_i = fin(w_i xor K_i)`, where `w_i` is the i-th
//! little-endian 8-byte word of the tile (a short last word is zero-extended), `fin` is the
//! finaliser of splitmix64 and `K_i = fin(seed + (i + 1) * 0x9e3779b97f4a7c15)`. The 128-bit digest
//! adds a second sum over the same terms, `sum over i of (2 i + 1) t_i mod 2^64`.
//!
//! What always holds
//! - `fin` is a bijection, so two tiles of one length that differ in exactly one word always differ
//!   in digest. More changed words are missed with a probability of about 2^-64 per tile, or about
//!   2^-128 with both sums: two words whose terms cancel in one sum cancel in the other only if
//!   their terms differ by a multiple of 2^53 or more.
//! - The sums have no order: digests of pieces of a tile add up to the digest of the tile.
//! - The position enters by xor with a hashed key. Added to the word instead, data that contains
//!   arithmetic steps of the same constant would collide.
//!
//! A tile is compared with its own earlier digest only, so there is no birthday effect. The seed is
//! no secret against an attacker; it keeps unlucky data from being unlucky in every process.
//!
//! The loops below are written once, plainly. They are compiled once for the build's own target and
//! again for vector units with and without a 64-bit multiply, of which the processor at hand picks.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

use kr_types::TILE_BYTES;

use crate::layout::Digest128;

const WORD: usize = 8;
const TILE_WORDS: usize = TILE_BYTES as usize / WORD;
/// Step from one key's argument to the next: 2^64 divided by the golden ratio.
pub(crate) const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
/// What `fin` multiplies by.
pub(crate) const FACTORS: [u64; 2] = [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb];

/// The finaliser of splitmix64 (Steele, Lea, Flood 2014): a bijection on 64-bit words.
#[inline(always)]
const fn fin(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(FACTORS[0]);
    z = (z ^ (z >> 27)).wrapping_mul(FACTORS[1]);
    z ^ (z >> 31)
}

/// A seed that is the same throughout this process and differs between processes.
pub fn process_seed() -> u64 {
    static SEED: OnceLock<u64> = OnceLock::new();
    *SEED.get_or_init(|| RandomState::new().hash_one(STEP))
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
            .map(|i| fin(seed.wrapping_add(i.wrapping_mul(STEP))))
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

    /// The 128-bit digest of a tile of `bytes.len()` bytes.
    ///
    /// # Panics
    ///
    /// As [`tile`](Self::tile).
    pub fn tile128(&self, bytes: &[u8]) -> Digest128 {
        self.piece128(0, bytes)
    }

    /// The share of a tile's digest that `bytes` contribute, which start `offset` bytes into the
    /// tile. Shares of pieces that partition the tile add up, modulo 2^64, to its digest.
    ///
    /// # Panics
    ///
    /// If `offset` is not a multiple of 8 or the piece reaches past [`TILE_BYTES`].
    pub fn piece(&self, offset: usize, bytes: &[u8]) -> u64 {
        self.sums::<false>(offset, bytes).sum
    }

    /// As [`piece`](Self::piece), of the 128-bit digest. The halves add up each for itself.
    ///
    /// # Panics
    ///
    /// As [`piece`](Self::piece).
    pub fn piece128(&self, offset: usize, bytes: &[u8]) -> Digest128 {
        self.sums::<true>(offset, bytes)
    }

    fn sums<const WEIGHTED: bool>(&self, offset: usize, bytes: &[u8]) -> Digest128 {
        assert!(
            offset.is_multiple_of(WORD) && offset + bytes.len() <= TILE_BYTES as usize,
            "a piece of {} bytes at {offset} is not a word-aligned part of a tile",
            bytes.len()
        );
        let first = offset / WORD;
        let (words, tail) = bytes.as_chunks::<WORD>();
        let keys = &self.keys[first..];
        let mut digest = dispatch::<WEIGHTED>(words, keys, first);
        if !tail.is_empty() {
            let mut word = [0; WORD];
            word[..tail.len()].copy_from_slice(tail);
            let (keys, first) = (&keys[words.len()..], first + words.len());
            digest += terms::<WEIGHTED>(&[word], keys, first);
        }
        digest
    }
}

impl std::ops::AddAssign for Digest128 {
    /// Adds the share of another piece of the same tile.
    fn add_assign(&mut self, piece: Self) {
        self.sum = self.sum.wrapping_add(piece.sum);
        self.weighted = self.weighted.wrapping_add(piece.weighted);
    }
}

/// Both sums over `words`, the first of which is word `first` of the tile and has the first key.
#[inline(always)]
fn terms<const WEIGHTED: bool>(words: &[[u8; WORD]], keys: &[u64], first: usize) -> Digest128 {
    // At most twice 2,048, so the weights' upper halves are zero, which makes their
    // multiplications cheaper where there is no 64-bit one.
    let weights = (2 * first as u32 + 1..).step_by(2);
    let mut digest = Digest128::default();
    for ((word, key), weight) in words.iter().zip(keys).zip(weights) {
        let term = fin(u64::from_le_bytes(*word) ^ key);
        digest.sum = digest.sum.wrapping_add(term);
        if WEIGHTED {
            let weighted = term.wrapping_mul(u64::from(weight));
            digest.weighted = digest.weighted.wrapping_add(weighted);
        }
    }
    digest
}

/// [`terms`], by the widest vectors that this processor has.
#[cfg(target_arch = "x86_64")]
fn dispatch<const WEIGHTED: bool>(words: &[[u8; WORD]], keys: &[u64], first: usize) -> Digest128 {
    if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq") {
        // SAFETY: the processor has the features, as just detected.
        unsafe { x86::avx512::<WEIGHTED>(words, keys, first) }
    } else if is_x86_feature_detected!("avx2") {
        // SAFETY: as above.
        unsafe { x86::avx2::<WEIGHTED>(words, keys, first) }
    } else {
        terms::<WEIGHTED>(words, keys, first)
    }
}

/// [`terms`] as compiled for the build's target.
#[cfg(not(target_arch = "x86_64"))]
fn dispatch<const WEIGHTED: bool>(words: &[[u8; WORD]], keys: &[u64], first: usize) -> Digest128 {
    terms::<WEIGHTED>(words, keys, first)
}

/// [`terms`], compiled for vector units that the build's target may lack.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Digest128, WORD, terms};

    /// Has a 64-bit multiply (`vpmullq`), which is what the digest's speed hangs on.
    #[target_feature(enable = "avx512f,avx512dq")]
    pub(super) fn avx512<const WEIGHTED: bool>(
        words: &[[u8; WORD]],
        keys: &[u64],
        first: usize,
    ) -> Digest128 {
        terms::<WEIGHTED>(words, keys, first)
    }

    /// Builds a 64-bit product from three 32-bit ones.
    #[target_feature(enable = "avx2")]
    pub(super) fn avx2<const WEIGHTED: bool>(
        words: &[[u8; WORD]],
        keys: &[u64],
        first: usize,
    ) -> Digest128 {
        terms::<WEIGHTED>(words, keys, first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, read off the module doc.
    fn naive(seed: u64, bytes: &[u8]) -> Digest128 {
        let (mut sum, mut weighted) = (0u64, 0u64);
        for (i, chunk) in bytes.chunks(8).enumerate() {
            let word = (0..chunk.len()).fold(0u64, |w, b| w | u64::from(chunk[b]) << (8 * b));
            let key = fin(seed.wrapping_add((i as u64 + 1).wrapping_mul(STEP)));
            sum = sum.wrapping_add(fin(word ^ key));
            weighted = weighted.wrapping_add(fin(word ^ key).wrapping_mul(2 * i as u64 + 1));
        }
        Digest128 { sum, weighted }
    }

    /// First outputs of splitmix64 with seed 1234567, a published test vector: state i gives
    /// `fin(seed + (i + 1) * STEP)`.
    #[test]
    fn the_finaliser_is_that_of_splitmix64() {
        let at = |i: u64| fin(1_234_567u64.wrapping_add((i + 1).wrapping_mul(STEP)));
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

    /// Every way to compile the loop gives one value, for a tile of random words and all its cuts
    /// around the width of vectors.
    #[test]
    fn all_variants_agree_with_the_definition() {
        let bytes: Vec<u8> = (0..TILE_WORDS as u64)
            .flat_map(|i| fin(i).to_le_bytes())
            .collect();
        let digester = Digester::new(99);
        for len in (0..=70).chain([1000, TILE_BYTES as usize - 3, TILE_BYTES as usize]) {
            let expected = naive(99, &bytes[..len]);
            assert_eq!(digester.tile128(&bytes[..len]), expected, "{len} bytes");
            assert_eq!(digester.tile(&bytes[..len]), expected.sum, "{len} bytes");
        }
        let (words, _) = bytes.as_chunks();
        let expected = naive(99, &bytes);
        assert_eq!(terms::<true>(words, &digester.keys, 0), expected);
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has the feature.
            let avx2 = unsafe { x86::avx2::<true>(words, &digester.keys, 0) };
            assert_eq!(avx2, expected);
        }
    }

    /// Every pair of half-words at the start of a tile that a product of halves with small keys
    /// maps to one value.
    #[test]
    fn halves_that_a_product_confuses_are_told_apart() {
        let digester = Digester::new(0);
        for b in 1..100_000u32 {
            let pair = |lo: u32, hi: u32| [lo.to_le_bytes(), hi.to_le_bytes()].concat();
            let (a, b) = (pair(b - 1, 0), pair(u32::MAX, b));
            let product = |p: &[u8]| {
                let half = |i| u32::from_le_bytes([p[i], p[i + 1], p[i + 2], p[i + 3]]);
                (half(0).wrapping_add(2)).wrapping_mul(half(4).wrapping_add(1))
            };
            assert_eq!(
                product(&a),
                product(&b),
                "the weak digest confuses this pair"
            );
            assert_ne!(digester.tile(&a), digester.tile(&b));
        }
    }

    /// Every pair of words of a tile, exchanged with a shift that cancels when positions enter by
    /// addition.
    #[test]
    fn an_exchange_that_added_positions_confuse_is_told_apart() {
        let weak = |tile: &[u64]| {
            let terms = tile.iter().zip(1u64..);
            terms.fold(0u64, |sum, (w, i)| {
                sum.wrapping_add(fin(w.wrapping_add(i.wrapping_mul(STEP))))
            })
        };
        let bytes =
            |tile: &[u64]| -> Vec<u8> { tile.iter().flat_map(|w| w.to_le_bytes()).collect() };
        let digester = Digester::new(3);
        let old: Vec<u64> = (0..64).map(|i| fin(i + 7)).collect();
        let before = (weak(&old), digester.tile128(&bytes(&old)));
        for i in 0..old.len() {
            for j in i + 1..old.len() {
                let shift = STEP.wrapping_mul((j - i) as u64);
                let mut new = old.clone();
                new[i] = old[j].wrapping_add(shift);
                new[j] = old[i].wrapping_sub(shift);
                assert_eq!(weak(&new), before.0, "the weak digest confuses {i} and {j}");
                let after = digester.tile128(&bytes(&new));
                assert_ne!(after.sum, before.1.sum, "{i} and {j}");
                assert_ne!(after.weighted, before.1.weighted, "{i} and {j}");
            }
        }
    }

    /// All pairs of short tiles from a set of words that structured data is made of.
    #[test]
    fn pairs_of_small_words_have_digests_of_their_own() {
        let words = (0..12u64)
            .flat_map(|i| {
                [
                    i,
                    i << 32,
                    u64::MAX - i,
                    1 << (5 * i),
                    0x0101_0101_0101_0101 * i,
                ]
            })
            .chain((0..12).map(|i| f64::from(i).to_bits()));
        let words: std::collections::BTreeSet<u64> = words.collect();
        let digester = Digester::new(0);
        let mut seen = std::collections::HashMap::new();
        for a in &words {
            for b in &words {
                let tile = [a.to_le_bytes(), b.to_le_bytes()].concat();
                let other = seen.insert(digester.tile(&tile), (*a, *b));
                assert_eq!(other, None, "collides with {a:#x}, {b:#x}");
            }
        }
        assert_eq!(seen.len(), words.len() * words.len());
    }

    /// A change that keeps the first sum is found by the second.
    #[test]
    fn the_second_sum_sees_what_cancels_in_the_first() {
        let unfin = |term: u64| {
            let unxor = |z: u64, by: u32| (0..64 / by).fold(z, |x, _| z ^ (x >> by));
            // Newton's iteration for the inverse of an odd number modulo 2^64.
            let inverse = |f: u64| {
                (0..6).fold(f, |x, _| {
                    x.wrapping_mul(2u64.wrapping_sub(f.wrapping_mul(x)))
                })
            };
            let z = unxor(term, 31).wrapping_mul(inverse(FACTORS[1]));
            unxor(unxor(z, 27).wrapping_mul(inverse(FACTORS[0])), 30)
        };
        let digester = Digester::new(11);
        let mut tile = vec![0xc3; 128];
        let before = digester.tile128(&tile);
        for (word, delta) in [(2, 12_345u64), (9, 0u64.wrapping_sub(12_345))] {
            let bytes = &mut tile[word * 8..][..8];
            let old = u64::from_le_bytes(bytes.try_into().unwrap());
            let term = fin(old ^ digester.keys[word]);
            assert_eq!(unfin(term), old ^ digester.keys[word], "the inverse is one");
            let new = unfin(term.wrapping_add(delta)) ^ digester.keys[word];
            bytes.copy_from_slice(&new.to_le_bytes());
        }
        let after = digester.tile128(&tile);
        assert_eq!(after.sum, before.sum);
        assert_ne!(after.weighted, before.weighted);
    }

    #[test]
    fn the_seed_of_a_process_does_not_change() {
        assert_eq!(process_seed(), process_seed());
    }

    #[test]
    #[should_panic(expected = "not a word-aligned part of a tile")]
    fn a_piece_past_the_tile_is_a_bug() {
        Digester::new(0).piece(TILE_BYTES as usize - 8, &[0; 9]);
    }

    #[test]
    #[should_panic(expected = "not a word-aligned part of a tile")]
    fn a_piece_inside_a_word_is_a_bug() {
        Digester::new(0).piece128(4, &[0; 8]);
    }

    proptest! {
        #[test]
        fn agrees_with_a_model(data in prop::collection::vec(any::<u8>(), 0..300)) {
            crate::fuzzing::digest(&data);
        }

        #[test]
        fn equals_the_naive_digest(seed: u64, bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let digester = Digester::new(seed);
            prop_assert_eq!(digester.tile128(&bytes), naive(seed, &bytes));
            prop_assert_eq!(digester.tile(&bytes), naive(seed, &bytes).sum);
        }

        #[test]
        fn pieces_add_up(seed: u64, bytes in prop::collection::vec(any::<u8>(), 1..2000), cut in 0usize..250) {
            let digester = Digester::new(seed);
            let cut = (cut * 8).min(bytes.len() / 8 * 8);
            let (head, tail) = bytes.split_at(cut);
            let sum = digester.piece(0, head).wrapping_add(digester.piece(cut, tail));
            prop_assert_eq!(sum, digester.tile(&bytes));
            let mut both = digester.piece128(0, head);
            both += digester.piece128(cut, tail);
            prop_assert_eq!(both, digester.tile128(&bytes));
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
            let before = digester.tile128(&tile);
            tile[word * 8..][..8].copy_from_slice(&(old ^ change).to_le_bytes());
            let after = digester.tile128(&tile);
            prop_assert_ne!(after.sum, before.sum);
            prop_assert_ne!(after.weighted, before.weighted);
        }
    }
}
