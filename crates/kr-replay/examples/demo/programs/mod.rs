//! The programs that are replayed. Each does real work on the device, reads the result back, and
//! compares it with a plain computation of its own on the CPU.

mod histogram;
mod jacobi;
mod monte_carlo;
mod saxpy;
mod spmv;

use std::error::Error;
use std::fmt::Debug;
use std::ops::Range;

use kr_types::DeviceAddr;

use crate::app::App;

pub(crate) use histogram::Histogram;
pub(crate) use jacobi::Jacobi;
pub(crate) use monte_carlo::MonteCarlo;
pub(crate) use saxpy::Saxpy;
pub(crate) use spmv::Spmv;

/// One application.
pub(crate) trait Program {
    /// Its name in the report.
    fn name(&self) -> &'static str;

    /// Does the work and checks it. An error means that it could not be done.
    fn run(&self, app: &App<'_>) -> Result<Finding, Box<dyn Error>>;
}

/// What a program computed, and whether that was right.
#[derive(Debug)]
pub(crate) struct Finding {
    /// The result in a few words.
    pub(crate) summary: String,
    pub(crate) mismatches: Mismatches,
}

/// Elements that are not what the reference says.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Mismatches {
    pub(crate) count: u64,
    /// The first of them in words.
    pub(crate) first: Option<String>,
}

impl Mismatches {
    /// Adds the elements of `got` that differ from `want`, in which `what` is the array's name.
    fn compare<T: Debug + PartialEq>(&mut self, what: &str, got: &[T], want: &[T]) {
        self.compare_by(what, got, want, |_, got, want| got == want);
    }

    /// As [`compare`](Self::compare), where `same` decides for the element at an index.
    fn compare_by<T: Debug>(
        &mut self,
        what: &str,
        got: &[T],
        want: &[T],
        same: impl Fn(usize, &T, &T) -> bool,
    ) {
        if got.len() != want.len() {
            let (got, want) = (got.len(), want.len());
            self.add(got.abs_diff(want) as u64, || {
                format!("{what} has {got} elements, not {want}")
            });
        }
        for (i, (got, want)) in got.iter().zip(want).enumerate() {
            if !same(i, got, want) {
                self.add(1, || format!("{what}[{i}] is {got:?}, want {want:?}"));
            }
        }
    }

    fn add(&mut self, count: u64, describe: impl Fn() -> String) {
        self.count += count;
        self.first.get_or_insert_with(describe);
    }
}

/// The address of element `index` of an array of `T` at `base`.
fn element<T>(base: u64, index: usize) -> DeviceAddr {
    DeviceAddr(base + (index * size_of::<T>()) as u64)
}

/// `0..n` in pieces of `size`, one per workgroup.
fn groups(n: usize, size: usize) -> impl Iterator<Item = Range<usize>> {
    (0..n)
        .step_by(size)
        .map(move |start| start..n.min(start + size))
}

/// Bits that look random, always the same for the same `i` (the finisher of SplitMix64).
fn scramble(i: u64) -> u64 {
    let mut bits = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// A number in [-1, 1), as [`scramble`]d.
fn noise(i: usize) -> f64 {
    (scramble(i as u64 + 1) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mismatches_are_counted_and_the_first_is_told() {
        let mut mismatches = Mismatches::default();
        mismatches.compare("a", &[1, 2], &[1, 2]);
        assert_eq!(mismatches, Mismatches::default());
        mismatches.compare("b", &[1, 2, 3], &[1, 0, 0]);
        mismatches.compare("c", &[1], &[0]);
        assert_eq!(mismatches.count, 3);
        assert_eq!(mismatches.first.as_deref(), Some("b[1] is 2, want 0"));
        mismatches.compare("short", &[1], &[1, 2, 3]);
        assert_eq!(mismatches.count, 5);
    }

    #[test]
    fn groups_cover_everything_once() {
        let all: Vec<_> = groups(7, 3).collect();
        assert_eq!(all, [0..3, 3..6, 6..7]);
        assert_eq!(groups(0, 3).count(), 0);
    }

    #[test]
    fn noise_is_centred_and_within_bounds() {
        let values: Vec<f64> = (0..10_000).map(noise).collect();
        assert!(values.iter().all(|v| (-1.0..1.0).contains(v)));
        assert!(
            values.iter().sum::<f64>().abs() < 300.0,
            "five standard deviations"
        );
    }
}
