//! Suballocation: at which offset of an arena the accepted bytes go.

use std::num::NonZeroU64;

use crate::Align;

/// Hands out disjoint ranges of an arena of a given capacity, none of which is given back singly.
///
/// Contract
/// - [`room`](Self::room) changes nothing, and [`carve`](Self::carve) of at most that many bytes at
///   the same alignment then succeeds.
/// - Carved ranges are disjoint, start where their alignment admits, and end at or below
///   [`high_water`](Self::high_water), which is at most the capacity.
/// - Neither wraps or panics, whatever the numbers: what does not fit below 2^64 does not fit.
/// - The capacity is the same in all calls between two [`reset`](Self::reset)s.
pub trait Suballocator {
    /// The longest single range that can be carved at `align`, in bytes; padding is not counted.
    fn room(&self, capacity: u64, align: Align) -> u64;

    /// Takes `len` bytes and returns where they start, or `None` and takes nothing.
    fn carve(&mut self, capacity: u64, len: NonZeroU64, align: Align) -> Option<u64>;

    /// End of the highest range that was carved: bytes that the arena's block must have.
    fn high_water(&self) -> u64;

    /// Forgets every range.
    fn reset(&mut self);
}

/// A cursor: each range starts as soon after the one before as its alignment admits.
///
/// All ranges of a window die together, so none has to be found again.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bump {
    cursor: u64,
}

impl Bump {
    /// Starts at offset 0.
    pub const fn new() -> Self {
        Self { cursor: 0 }
    }
}

impl Suballocator for Bump {
    fn room(&self, capacity: u64, align: Align) -> u64 {
        align
            .first_from(self.cursor)
            .map_or(0, |start| capacity.saturating_sub(start))
    }

    fn carve(&mut self, capacity: u64, len: NonZeroU64, align: Align) -> Option<u64> {
        let start = align.first_from(self.cursor)?;
        let end = start.checked_add(len.get())?;
        if end > capacity {
            return None;
        }
        self.cursor = end;
        Some(start)
    }

    fn high_water(&self) -> u64 {
        self.cursor
    }

    fn reset(&mut self) {
        self.cursor = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn extreme() -> impl Strategy<Value = u64> {
        prop_oneof![
            Just(0u64),
            Just(1),
            0u64..5000,
            any::<u64>(),
            u64::MAX - 5000..=u64::MAX,
        ]
    }

    proptest! {
        /// The contract of [`Suballocator`], held over sequences of carves.
        #[test]
        fn bump_keeps_the_contract(
            capacity in extreme(),
            carves in prop::collection::vec((extreme(), 0u32..13, any::<u64>()), 0..20),
        ) {
            let mut bump = Bump::new();
            let mut end = 0;
            for (len, power, phase) in carves {
                let align = Align::new(1 << power, phase).unwrap();
                let Some(len) = NonZeroU64::new(len) else { continue };
                let room = bump.room(capacity, align);
                match bump.carve(capacity, len, align) {
                    Some(start) => {
                        prop_assert!(len.get() <= room);
                        prop_assert!(align.admits(start) && start >= end);
                        prop_assert!(start - end < align.modulus(), "padded more than needed");
                        end = start.checked_add(len.get()).unwrap();
                    }
                    None => prop_assert!(len.get() > room),
                }
                prop_assert_eq!(bump.high_water(), end);
                prop_assert!(end <= capacity);
            }
            bump.reset();
            prop_assert_eq!(bump.high_water(), 0);
        }
    }

    #[test]
    fn what_fits_exactly_fits() {
        let mut bump = Bump::new();
        let any = Align::new(1, 0).unwrap();
        let len = NonZeroU64::MAX;
        assert_eq!(bump.room(u64::MAX, any), u64::MAX);
        assert_eq!(bump.carve(u64::MAX, len, any), Some(0));
        assert_eq!(bump.room(u64::MAX, any), 0);
        assert_eq!(bump.carve(u64::MAX, NonZeroU64::MIN, any), None);
    }
}
