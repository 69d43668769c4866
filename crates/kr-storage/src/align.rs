//! Alignment of saved bytes: where an offset must lie so that both sides share their phase.

use std::num::NonZeroU64;

use kr_types::DeviceAddr;

/// Alignment of the first byte of every block, in bytes: the page of the runtimes that we know.
pub const BLOCK_ALIGN: u64 = 4096;

/// Live and saved side of a region agree modulo this many bytes, so both become aligned to a cache
/// line after the same short head.
pub const CONGRUENCE: u64 = 256;

/// As [`CONGRUENCE`], for regions that are shorter than that. Module variables are, often by the
/// thousand, and would waste most of the arena.
pub const PACKED_CONGRUENCE: u64 = 16;

/// Modulo how many bytes the two sides of a region of `len` bytes agree.
pub const fn congruence(len: NonZeroU64) -> u64 {
    if len.get() < CONGRUENCE {
        PACKED_CONGRUENCE
    } else {
        CONGRUENCE
    }
}

/// The number is zero, or not a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{modulus} is not a power of two")]
pub struct NotAPowerOfTwo {
    /// What was given.
    pub modulus: u64,
}

/// Admits the offsets that leave a given remainder modulo a power of two.
///
/// ```
/// use kr_storage::Align;
/// use kr_types::DeviceAddr;
///
/// let align = Align::congruent(DeviceAddr(0x1007), 256)?;
/// assert_eq!(align.first_from(0), Some(7));
/// assert_eq!(align.first_from(8), Some(263));
/// # Ok::<(), kr_storage::NotAPowerOfTwo>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Align {
    /// The modulus less one.
    mask: u64,
    /// Below the modulus.
    phase: u64,
}

impl Align {
    /// Admits what is congruent to `phase` modulo `modulus`.
    ///
    /// # Errors
    ///
    /// [`NotAPowerOfTwo`] if that is what `modulus` is.
    pub const fn new(modulus: u64, phase: u64) -> Result<Self, NotAPowerOfTwo> {
        if !modulus.is_power_of_two() {
            return Err(NotAPowerOfTwo { modulus });
        }
        let mask = modulus - 1;
        Ok(Self {
            mask,
            phase: phase & mask,
        })
    }

    /// Admits the offsets of a block that agree with `live` modulo `modulus`. For moduli up to
    /// [`BLOCK_ALIGN`] the addresses then agree too.
    ///
    /// # Errors
    ///
    /// [`NotAPowerOfTwo`] if that is what `modulus` is.
    pub const fn congruent(live: DeviceAddr, modulus: u64) -> Result<Self, NotAPowerOfTwo> {
        Self::new(modulus, live.0)
    }

    /// The modulus in bytes, a power of two.
    pub const fn modulus(self) -> u64 {
        // Does not wrap: a mask of 64 ones would be a modulus of 2^64, which a u64 cannot name.
        self.mask + 1
    }

    /// What admitted offsets leave modulo the modulus.
    pub const fn phase(self) -> u64 {
        self.phase
    }

    /// Whether `offset` is admitted.
    pub const fn admits(self, offset: u64) -> bool {
        offset & self.mask == self.phase
    }

    /// The least admitted offset that is not below `from`, or `None` past `u64::MAX`.
    pub const fn first_from(self, from: u64) -> Option<u64> {
        from.checked_add(self.phase.wrapping_sub(from) & self.mask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bad_moduli_are_refused() {
        for modulus in [0, 3, 257, u64::MAX] {
            assert_eq!(Align::new(modulus, 0), Err(NotAPowerOfTwo { modulus }));
        }
        assert_eq!(Align::new(1 << 63, 5).unwrap().modulus(), 1 << 63);
    }

    #[test]
    fn the_last_offset_is_found_and_none_past_it() {
        let align = Align::new(16, 15).unwrap();
        assert_eq!(align.first_from(u64::MAX - 3), Some(u64::MAX));
        let align = Align::new(16, 0).unwrap();
        assert_eq!(align.first_from(u64::MAX - 15), Some(u64::MAX - 15));
        assert_eq!(align.first_from(u64::MAX - 14), None);
    }

    #[test]
    fn regions_below_the_congruence_are_packed() {
        let of = |len| congruence(NonZeroU64::new(len).unwrap());
        assert_eq!(of(1), 16);
        assert_eq!(of(255), 16);
        assert_eq!(of(256), 256);
        assert_eq!(of(u64::MAX), 256);
    }

    proptest! {
        /// The first admitted offset is what a search from `from` on finds.
        #[test]
        fn first_from_is_the_least_admitted(
            power in 0u32..12,
            phase in any::<u64>(),
            from in prop_oneof![0u64..10_000, u64::MAX - 5_000..=u64::MAX],
        ) {
            let align = Align::new(1 << power, phase).unwrap();
            let searched = (from..=u64::MAX).take(1 << power).find(|offset| align.admits(*offset));
            prop_assert_eq!(align.first_from(from), searched);
        }
    }
}
