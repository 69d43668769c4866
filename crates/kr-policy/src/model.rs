//! How long a window's restores take in each mode: the arithmetic below every choice.
//!
//! A restore hashes (reads live tiles), then moves bytes. Hashing and moving are serial for any one
//! tile; agent memory and link move at the same time, so there the slower one counts. Per byte of a
//! tier, with `c` the fraction of it in changed tiles:
//!
//! | step | read to hash | device tier moves | pinned tier moves: memory, link | submissions more than a copy |
//! |---|---|---|---|---|
//! | copy everything | 0 | 2 | 1, 1 | 0 |
//! | hash, copy the changed | 1 | 2c | c, c | 1 |
//! | copy the listed | 0 | 2c | c, c | 0 |
//! | check the unlisted | 1 - c | 0 | 0, 0 | 1 |
//!
//! Over N passes the device tier alone thus costs `2(N-1)` in full, `(N-1)(1+2c)` hashed every pass
//! and `2 + c(2N-3)` hashed once. Hence the well-known borders: a full copy beats hashing every pass
//! from c = 1/2 on, and hashing once from c = 1 - 1/(2N-3) on; behind the link, where a copy costs
//! `1/link` and a hash `1/memory`, hashing pays up to c = 1 - link/memory (98.6 % at 54 GB/s and
//! 3.9 TB/s).
//!
//! Invariants
//! - Total: no input divides by zero or gives anything but a finite, non-negative time.
//! - Of equally long ways the first in the order full, every pass, once is taken.
//!
//! Not here: what may be chosen. The model only says what would be fastest.

use kr_types::{ByTier, RestoreMode, Tier};

use crate::facts::{Facts, Rates};

/// The modes that need no trust in a list.
pub(crate) const SAFE: &[RestoreMode] = &[RestoreMode::Full, RestoreMode::HashEveryPass];

/// All modes.
pub(crate) const ANY: &[RestoreMode] = &[
    RestoreMode::Full,
    RestoreMode::HashEveryPass,
    RestoreMode::HashOnce,
];

/// Fewest passes to reckon with. If a window ends after pass 0, its modes never mattered.
pub(crate) const FEWEST_PASSES: f64 = 2.0;

/// One window's sizes and prices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Model {
    bytes: ByTier<f64>,
    /// From 0 to 1.
    changed: ByTier<f64>,
    passes: f64,
    device_seconds_per_byte: f64,
    link_seconds_per_byte: f64,
    submission_seconds: f64,
}

/// The fastest way, and how long all its restores and its final check take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cheapest {
    pub(crate) modes: ByTier<RestoreMode>,
    pub(crate) seconds: f64,
}

/// What happens to a tier's share at one point of the window.
#[derive(Clone, Copy)]
enum Step {
    CopyAll,
    HashAndCopyChanged,
    CopyListed,
    CheckUnlisted,
    Nothing,
}

/// Bytes that one step moves, over both tiers.
#[derive(Clone, Copy, Default)]
struct Traffic {
    hashed: f64,
    device: f64,
    link: f64,
    further_submission: bool,
}

impl Model {
    /// A window of `passes` passes of which each changes these fractions of the tiers, on an agent
    /// that is `speed` times as fast as the facts say.
    pub(crate) fn new(
        facts: &Facts,
        passes: f64,
        speed: ByTier<f32>,
        changed: ByTier<f64>,
    ) -> Self {
        let (rates, assumed) = (facts.rates, Rates::ASSUMED);
        let seconds_per_byte = |measured: u64, assumed: u64, speed: f32| {
            let rate = if measured == 0 { assumed } else { measured };
            1.0 / (rate as f64 * f64::from(speed))
        };
        Self {
            bytes: facts.live_bytes.map(|bytes| bytes as f64),
            changed,
            passes: passes.max(FEWEST_PASSES),
            device_seconds_per_byte: seconds_per_byte(
                rates.device_bytes_per_second,
                assumed.device_bytes_per_second,
                speed.device,
            ),
            link_seconds_per_byte: seconds_per_byte(
                rates.link_bytes_per_second,
                assumed.link_bytes_per_second,
                speed.pinned_host,
            ),
            submission_seconds: rates.submission.as_secs_f64(),
        }
    }

    /// The same window if its passes changed nothing.
    pub(crate) fn unchanged(self) -> Self {
        Self {
            changed: ByTier::uniform(0.0),
            ..self
        }
    }

    /// How long moving these bytes keeps the agent's memory busy, and how long the link.
    pub(crate) fn busy(&self, device_bytes: u64, link_bytes: u64) -> (f64, f64) {
        (
            device_bytes as f64 * self.device_seconds_per_byte,
            link_bytes as f64 * self.link_seconds_per_byte,
        )
    }

    /// The fastest of all combinations of the modes that each tier allows.
    pub(crate) fn cheapest(&self, allowed: ByTier<&[RestoreMode]>) -> Cheapest {
        let mut best = Cheapest {
            modes: ByTier::uniform(RestoreMode::Full),
            seconds: f64::INFINITY,
        };
        for &pinned_host in allowed.pinned_host {
            for &device in allowed.device {
                let modes = ByTier {
                    device,
                    pinned_host,
                };
                let seconds = self.window(modes);
                if seconds < best.seconds {
                    best = Cheapest { modes, seconds };
                }
            }
        }
        best
    }

    /// Seconds of all restores and the final check.
    fn window(&self, modes: ByTier<RestoreMode>) -> f64 {
        let [first, later, end] = [0, 1, 2].map(|at| self.step(modes.map(|mode| steps(mode)[at])));
        first + (self.passes - FEWEST_PASSES) * later + end
    }

    /// Seconds of one step, both tiers together.
    fn step(&self, steps: ByTier<Step>) -> f64 {
        let mut sum = Traffic::default();
        for &tier in Tier::ALL {
            let (bytes, changed) = (*self.bytes.get(tier), *self.changed.get(tier));
            let (hashed, copied) = match steps.get(tier) {
                Step::CopyAll => (0.0, bytes),
                Step::HashAndCopyChanged => (bytes, changed * bytes),
                Step::CopyListed => (0.0, changed * bytes),
                Step::CheckUnlisted => ((1.0 - changed) * bytes, 0.0),
                Step::Nothing => (0.0, 0.0),
            };
            sum.hashed += hashed;
            match tier {
                Tier::PinnedHost => {
                    sum.device += copied;
                    sum.link += copied;
                }
                _ => sum.device += 2.0 * copied,
            }
            sum.further_submission |= hashed > 0.0;
        }
        let moving =
            (sum.device * self.device_seconds_per_byte).max(sum.link * self.link_seconds_per_byte);
        let further = match sum.further_submission {
            true => self.submission_seconds,
            false => 0.0,
        };
        sum.hashed * self.device_seconds_per_byte + moving + further
    }
}

/// Before pass 1, before each later pass, after the last.
const fn steps(mode: RestoreMode) -> [Step; 3] {
    match mode {
        RestoreMode::HashEveryPass => [
            Step::HashAndCopyChanged,
            Step::HashAndCopyChanged,
            Step::Nothing,
        ],
        RestoreMode::HashOnce => [
            Step::HashAndCopyChanged,
            Step::CopyListed,
            Step::CheckUnlisted,
        ],
        // `Full`, and what any later mode can fall back to.
        _ => [Step::CopyAll, Step::CopyAll, Step::Nothing],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use RestoreMode::{Full, HashEveryPass, HashOnce};
    use kr_types::KernelId;
    use proptest::prelude::*;
    use std::time::Duration;

    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;

    /// The rates of one published measurement of tile restores, whose figures are below.
    const MEASURED: Rates = Rates {
        submission: Duration::ZERO,
        ..Rates::ASSUMED
    };

    fn model(bytes: ByTier<u64>, passes: f64, changed: ByTier<f64>, rates: Rates) -> Model {
        let facts = Facts {
            kernel: KernelId(0),
            grid: [1; 3],
            passes: None,
            live_bytes: bytes,
            rates,
            can_hash: true,
            end_check: None,
            every_pass_only: false,
        };
        Model::new(&facts, passes, ByTier::uniform(1.0), changed)
    }

    fn device(bytes: u64) -> ByTier<u64> {
        ByTier {
            device: bytes,
            pinned_host: 0,
        }
    }

    fn pinned(bytes: u64) -> ByTier<u64> {
        ByTier {
            device: 0,
            pinned_host: bytes,
        }
    }

    #[track_caller]
    fn near(actual: f64, expected: f64, tolerance: f64) {
        let off = (actual - expected).abs() / expected;
        assert!(off <= tolerance, "{actual} is not {expected}");
    }

    /// A window of N passes, in multiples of the time to read the device tier once.
    fn units(passes: u32, changed: f64, mode: RestoreMode) -> f64 {
        let rates = Rates {
            device_bytes_per_second: GIB,
            ..MEASURED
        };
        let changed = ByTier::uniform(changed);
        model(device(GIB), passes.into(), changed, rates).window(ByTier::uniform(mode))
    }

    #[test]
    fn modes_cost_the_bytes_they_move() {
        for passes in 2..20 {
            let n = f64::from(passes);
            for c in [0.0, 0.01, 0.3, 0.5, 0.9, 1.0] {
                near(units(passes, c, Full), 2.0 * (n - 1.0), 1e-12);
                near(
                    units(passes, c, HashEveryPass),
                    (n - 1.0) * (1.0 + 2.0 * c),
                    1e-12,
                );
                near(units(passes, c, HashOnce), 2.0 + c * (2.0 * n - 3.0), 1e-12);
            }
        }
    }

    #[test]
    fn figures_of_a_published_measurement() {
        let restore = |bytes, mode| {
            let changed = ByTier::uniform(0.01);
            1e3 * model(bytes, 2.0, changed, MEASURED).window(ByTier::uniform(mode))
        };
        // Milliseconds for 2 GiB of which 1 % changed; measured to two or three digits.
        near(restore(device(2 * GIB), HashEveryPass), 0.56, 0.01);
        near(restore(pinned(2 * GIB), HashEveryPass), 0.95, 0.01);
        near(restore(device(2 * GIB), Full), 1.14, 0.04);
        near(restore(pinned(2 * GIB), Full), 39.8, 0.01);
    }

    /// From which changed fraction on `Full` is the fastest, if `other` is the other choice.
    fn full_from(bytes: ByTier<u64>, passes: u32, other: RestoreMode) -> f64 {
        let allowed = [Full, other];
        let full = |c| {
            let model = model(bytes, passes.into(), ByTier::uniform(c), MEASURED);
            model.cheapest(ByTier::uniform(&allowed[..])).modes == ByTier::uniform(Full)
        };
        let (mut below, mut from) = (0.0, 1.0);
        assert!(!full(below) && full(from));
        for _ in 0..40 {
            let middle = f64::midpoint(below, from);
            match full(middle) {
                true => from = middle,
                false => below = middle,
            }
        }
        from
    }

    #[test]
    fn full_beats_hashing_every_pass_from_one_half_on() {
        for passes in [2, 3, 4, 17, u32::MAX] {
            near(full_from(device(GIB), passes, HashEveryPass), 0.5, 1e-6);
        }
    }

    #[test]
    fn full_beats_hashing_once_later_the_more_passes() {
        for (passes, border) in [(4, 0.8), (5, 0.857), (6, 0.889), (8, 0.923)] {
            let from = full_from(device(GIB), passes, HashOnce);
            near(from, 1.0 - 1.0 / f64::from(2 * passes - 3), 1e-6);
            near(from, border, 1e-3);
        }
    }

    #[test]
    fn behind_the_link_hashing_pays_up_to_the_ratio_of_the_rates() {
        let border =
            1.0 - MEASURED.link_bytes_per_second as f64 / MEASURED.device_bytes_per_second as f64;
        near(border, 0.986, 1e-3);
        near(full_from(pinned(GIB), 2, HashEveryPass), border, 1e-6);
    }

    #[test]
    fn at_two_passes_hashing_once_is_never_faster() {
        for c in [0.0, 0.3, 0.99] {
            assert!(units(2, c, HashOnce) > units(2, c, HashEveryPass));
        }
        near(units(2, 1.0, HashOnce), units(2, 1.0, HashEveryPass), 1e-12);
    }

    #[test]
    fn at_three_passes_hashing_once_saves_the_changed_tiles_only() {
        for c in [0.01, 0.3, 0.99] {
            near(units(3, c, HashEveryPass) - units(3, c, HashOnce), c, 1e-9);
        }
    }

    /// From how many bytes on hashing pays if nothing changed.
    fn hashed_from(bytes: fn(u64) -> ByTier<u64>) -> u64 {
        let pays = |size: &u64| {
            let model = model(bytes(*size), 5.0, ByTier::uniform(0.0), Rates::ASSUMED);
            model.cheapest(ByTier::uniform(SAFE)).modes != ByTier::uniform(Full)
        };
        (0..GIB)
            .step_by(4096)
            .find(pays)
            .expect("it pays somewhere")
    }

    #[test]
    fn hashing_does_not_pay_below_64_mib_or_1_mib_behind_the_link() {
        near(hashed_from(device) as f64, (64 * MIB) as f64, 0.02);
        near(hashed_from(pinned) as f64, MIB as f64, 0.15);
    }

    #[test]
    fn each_tier_gets_its_own_mode() {
        let both = ByTier::uniform(2 * GIB);
        let cheapest = |c| {
            model(both, 5.0, ByTier::uniform(c), Rates::ASSUMED)
                .cheapest(ByTier::uniform(SAFE))
                .modes
        };
        let device_in_full = ByTier {
            device: Full,
            pinned_host: HashEveryPass,
        };
        assert_eq!(cheapest(0.01), ByTier::uniform(HashEveryPass));
        assert_eq!(cheapest(0.9), device_in_full);
        // Here the link is busy for so long that a full copy beside it takes no time.
        assert_eq!(cheapest(0.1), device_in_full);
        assert_eq!(cheapest(1.0), ByTier::uniform(Full));
    }

    proptest! {
        /// Every time is finite and not negative, and none is less than the least.
        #[test]
        fn times_are_finite_and_the_least_is_found(
            bytes in (extreme(), extreme()),
            passes in 0u32..=u32::MAX,
            changed in (0.0..=1.0f64, 0.0..=1.0f64),
            rates in (extreme(), extreme(), extreme()),
        ) {
            let rates = Rates {
                device_bytes_per_second: rates.0,
                link_bytes_per_second: rates.1,
                submission: Duration::from_secs(rates.2),
            };
            let bytes = ByTier { device: bytes.0, pinned_host: bytes.1 };
            let changed = ByTier { device: changed.0, pinned_host: changed.1 };
            let model = model(bytes, passes.into(), changed, rates);
            let cheapest = model.cheapest(ByTier::uniform(ANY));
            prop_assert_eq!(model.window(cheapest.modes), cheapest.seconds);
            for &device in ANY {
                for &pinned_host in ANY {
                    let seconds = model.window(ByTier { device, pinned_host });
                    prop_assert!(seconds.is_finite() && seconds >= 0.0);
                    prop_assert!(seconds >= cheapest.seconds);
                }
            }
        }
    }

    fn extreme() -> impl Strategy<Value = u64> {
        prop_oneof![Just(0), Just(1), Just(u64::MAX), 0..=u64::MAX, 0..GIB]
    }
}
