//! Counting tests from what test harnesses print.
//!
//! The built-in harness, doctests and `libtest-mimic` all end with the same line,
//! `test result: ok. 3 passed; 0 failed; 1 ignored; …`, so one parser serves them.

use std::fmt;
use std::iter::Sum;
use std::ops::AddAssign;

/// How many tests, or steps without tests of their own, ended in which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Ran and held.
    pub(crate) passed: u64,
    /// Ran and did not hold.
    pub(crate) failed: u64,
    /// Did not run; harnesses say `ignored`.
    pub(crate) skipped: u64,
}

impl Tally {
    /// Reads one line of a harness; `None` if it is any other line.
    pub(crate) fn from_line(line: &str) -> Option<Self> {
        let counts = line.strip_prefix("test result: ")?;
        let count = |kind: &str| {
            counts.split(';').find_map(|field| {
                let mut words = field.split_whitespace().rev();
                (words.next()? == kind).then(|| words.next()?.parse().ok())?
            })
        };
        Some(Self {
            passed: count("passed")?,
            failed: count("failed")?,
            skipped: count("ignored")?,
        })
    }

    /// Tests that really ran.
    pub(crate) fn executed(self) -> u64 {
        self.passed + self.failed
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl Sum for Tally {
    fn sum<I: Iterator<Item = Self>>(tallies: I) -> Self {
        let mut sum = Self::default();
        tallies.for_each(|tally| sum += tally);
        sum
    }
}

/// The closing line of `cargo xtask test`.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            passed,
            failed,
            skipped,
        } = self;
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(passed: u64, failed: u64, skipped: u64) -> Tally {
        Tally {
            passed,
            failed,
            skipped,
        }
    }

    #[test]
    fn a_harness_line_is_read() {
        let line = "test result: ok. 12 passed; 0 failed; 3 ignored; 0 measured; 7 filtered out; finished in 0.01s";
        assert_eq!(Tally::from_line(line), Some(tally(12, 0, 3)));
        let line = "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.20s";
        assert_eq!(Tally::from_line(line), Some(tally(1, 2, 0)));
    }

    #[test]
    fn colour_does_not_hide_the_counts() {
        let line = "test result: \x1b[32mok\x1b[m. 5 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s";
        assert_eq!(Tally::from_line(line), Some(tally(5, 0, 1)));
    }

    #[test]
    fn other_lines_are_not() {
        for line in [
            "",
            "test a::b ... ok",
            "test result: ok",
            "test result: ok. many passed; 0 failed; 0 ignored",
            "note: test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured",
        ] {
            assert_eq!(Tally::from_line(line), None, "{line}");
        }
    }

    #[test]
    fn the_closing_line_adds_up() {
        let sum: Tally = [tally(1, 0, 2), tally(10, 1, 0)].into_iter().sum();
        assert_eq!(sum.to_string(), "11 passed, 1 failed, 2 skipped");
        assert_eq!(sum.executed(), 12);
        assert_eq!(
            Tally::default().to_string(),
            "0 passed, 0 failed, 0 skipped"
        );
    }
}
