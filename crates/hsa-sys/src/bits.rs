//! Bit fields of packed integers.

/// Some neighbouring bits of a 32-bit integer.
///
/// ```
/// use hsa_sys::BitField;
///
/// const SCOPE: BitField = BitField { shift: 9, width: 2 };
/// let header = SCOPE.of(2) | 1;
/// assert_eq!(header, 0x401);
/// assert_eq!(SCOPE.get(header), 2);
/// assert_eq!(SCOPE.with(header, 1), 0x201);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitField {
    /// Position of the lowest bit.
    pub shift: u32,
    /// Number of bits, 1 to 32; `shift + width` is at most 32.
    pub width: u32,
}

impl BitField {
    /// The bits of the field, all set.
    pub const fn mask(self) -> u32 {
        (u32::MAX >> (32 - self.width)) << self.shift
    }

    /// The field's value in `word`.
    pub const fn get(self, word: u32) -> u32 {
        (word & self.mask()) >> self.shift
    }

    /// A word with `value` in the field and zero elsewhere; bits that do not fit are dropped.
    pub const fn of(self, value: u32) -> u32 {
        (value << self.shift) & self.mask()
    }

    /// `word` with the field replaced by `value`; bits that do not fit are dropped.
    pub const fn with(self, word: u32, value: u32) -> u32 {
        (word & !self.mask()) | self.of(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_can_fill_the_word() {
        let all = BitField {
            shift: 0,
            width: 32,
        };
        assert_eq!(all.mask(), u32::MAX);
        assert_eq!(all.get(0xDEAD_BEEF), 0xDEAD_BEEF);
        assert_eq!(all.with(1, 2), 2);
    }

    #[test]
    fn values_that_do_not_fit_leave_the_neighbours_alone() {
        let top = BitField {
            shift: 30,
            width: 2,
        };
        assert_eq!(top.of(7), 0xC000_0000);
        assert_eq!(top.with(0x0000_0001, 5), 0x4000_0001);
    }
}
