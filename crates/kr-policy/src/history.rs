//! What earlier windows of a kernel taught ([`History`]), and where that is kept ([`Shapes`]).
//!
//! Histories are kept apart by kernel and launch shape: a kernel on another grid, or with other
//! amounts of memory around it, behaves differently.
//!
//! Invariants
//! - A history changes by [`History::learn`] alone, so that a choice is a function of the facts and
//!   of the windows that were learned from, in their order.
//! - Nothing in it is final: what speaks against hashing is asked again after at most
//!   2^[`MOST_PROBE_DOUBLINGS`] windows, what speaks for a list after [`LIST_REPROBE`], and a list
//!   that has proved wrong is trusted again after at most [`equal_windows_needed`]`(u8::MAX)` good
//!   windows.
//! - [`Shapes`] allocates when it is made and never again.
//!
//! Not here: the choice.

use kr_types::{ByTier, RestoreMode, Tier};

use crate::facts::{Blit, Facts, Observed};
use crate::model::{FEWEST_PASSES, Model, SAFE};

/// Changed fractions that are remembered per tier; the largest of them decides. Enough that a
/// kernel which alternates between a few behaviours is judged by its worst.
pub(crate) const FRACTIONS: usize = 8;

/// A tier that is not hashed is hashed again on every 2^k-th window; k rises by one with each probe
/// that speaks for a full copy, up to this. At 64, a probe that costs half a full copy more than a
/// full copy adds less than 1 %.
pub(crate) const MOST_PROBE_DOUBLINGS: u8 = 6;

/// k after a probe that speaks for hashing: the fractions of before are soon replaced, yet a kernel
/// that alternates is not hashed on every window.
const FOLLOW_UP_DOUBLINGS: u8 = 1;

/// Every window of this number goes without a list, to see whether the lists are still equal.
pub(crate) const LIST_REPROBE: u16 = 100;

/// Windows in a row with equal lists before the first list is trusted.
pub(crate) const EQUAL_WINDOWS: u8 = 2;

/// Each list that proves wrong quadruples what is asked before the next one is trusted ...
const STRIKE_SHIFT: u8 = 2;

/// ... this often. At 32 windows a repair, which costs about one window, stays near 3 %.
const MOST_STRIKES: u8 = 2;

/// Fractions tell nothing of a tier that has since grown or shrunk by more than this factor.
const SAME_SIZE_FACTOR: u64 = 2;

/// Weight of the newest window in the mean of passes.
const PASSES_WEIGHT: f64 = 0.25;

/// Weight of the newest blit in the speed, and how far one blit can be off before it is cut: no
/// single one, however odd, moves the speed by more than an eighth.
const SPEED_WEIGHT: f32 = 0.125;
const SPEED_CUT: f32 = 2.0;

/// A shape's blits run at most this much faster or slower than the agent's rates say. Caches explain
/// a factor of three or four; more is a wrong clock.
const SPEED_RANGE: f32 = 16.0;

/// Blits shorter than this many submissions say little about rates.
const LEAST_SUBMISSIONS: f64 = 2.0;

/// What earlier windows of one kernel and launch shape taught.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct History {
    tiers: ByTier<TierHistory>,
    passes: Option<Passes>,
    /// How much faster than the agent's rates say this shape's blits run: the agent's memory under
    /// `device`, the link under `pinned_host`.
    speed: ByTier<f32>,
}

/// How many passes ran when so many were planned.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Passes {
    planned: Option<u32>,
    mean: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Default)]
struct TierHistory {
    /// The last fractions, 0 to 1, newest at `newest`; the first `known` places are filled.
    fractions: [f32; FRACTIONS],
    known: u8,
    newest: u8,
    /// Bytes of the tier when it was last hashed.
    bytes: u64,
    /// Windows since then.
    since_hashed: u8,
    /// k of the probes.
    probe_doublings: u8,
    /// Windows in a row whose lists were equal.
    equal_windows: u8,
    /// Windows since lists were last compared.
    since_compared: u16,
    /// Lists that proved wrong.
    strikes: u8,
}

/// Windows with equal lists that are asked after so many wrong ones.
const fn equal_windows_needed(strikes: u8) -> u8 {
    let strikes = if strikes < MOST_STRIKES {
        strikes
    } else {
        MOST_STRIKES
    };
    EQUAL_WINDOWS << (STRIKE_SHIFT * strikes)
}

impl Default for History {
    fn default() -> Self {
        Self {
            tiers: ByTier::default(),
            passes: None,
            speed: ByTier::uniform(1.0),
        }
    }
}

impl History {
    /// Takes in what became of a window with these facts. Only windows that ended well are learned
    /// from: replayed or repaired, not declined or failed.
    pub fn learn(&mut self, facts: &Facts, observed: &Observed) {
        if observed.passes == 0 {
            return;
        }
        self.learn_passes(facts.passes, observed.passes);
        if let Some(blit) = observed.blit {
            self.learn_speed(facts, blit);
        }
        for &tier in Tier::ALL {
            let bytes = *facts.live_bytes.get(tier);
            self.tiers.get_mut(tier).learn(bytes, tier, observed);
        }
        // The worst fraction decides, but by the newest the probes become frequent or rare.
        let newest = self.changed(facts, TierHistory::newest);
        let now = self.model(facts, newest).cheapest(ByTier::uniform(SAFE));
        for &tier in Tier::ALL {
            let in_full = *now.modes.get(tier) == RestoreMode::Full;
            let history = self.tiers.get_mut(tier);
            if history.since_hashed == 0 {
                history.probe_doublings = match in_full {
                    true => (history.probe_doublings + 1).min(MOST_PROBE_DOUBLINGS),
                    false => FOLLOW_UP_DOUBLINGS,
                };
            }
        }
    }

    /// The time model of a window with these facts that behaves like the worst of the last ones.
    /// What is not known is taken for unchanged: hashing finds out.
    pub(crate) fn model_of_worst(&self, facts: &Facts) -> Model {
        self.model(facts, self.changed(facts, TierHistory::worst))
    }

    /// Passes to reckon with: as many as ran lately under the same plan, else as many as are
    /// planned. An open-ended plan promises nothing.
    pub(crate) fn expected_passes(&self, planned: Option<u32>) -> f64 {
        let most = planned.map_or(f64::INFINITY, f64::from);
        match self.passes {
            Some(passes) if passes.planned == planned => passes.mean.min(most),
            _ => planned.map_or(FEWEST_PASSES, f64::from),
        }
    }

    /// Whether it is time to hash a tier that would be copied in full.
    pub(crate) fn probe_is_due(&self, tier: Tier) -> bool {
        let tier = self.tiers.get(tier);
        u32::from(tier.since_hashed) + 1 >= 1 << tier.probe_doublings
    }

    /// Whether a list of what the kernel changes in this tier may be relied upon.
    pub(crate) fn trusts_list(&self, tier: Tier, bytes: u64) -> bool {
        let tier = self.tiers.get(tier);
        tier.is_about(bytes)
            && tier.equal_windows >= equal_windows_needed(tier.strikes)
            && tier.since_compared.saturating_add(1) < LIST_REPROBE
    }

    fn changed(&self, facts: &Facts, of: impl Fn(&TierHistory) -> f32) -> ByTier<f64> {
        ByTier::from_fn(|tier| {
            let history = self.tiers.get(tier);
            match history.is_about(*facts.live_bytes.get(tier)) {
                true => f64::from(of(history)),
                false => 0.0,
            }
        })
    }

    fn model(&self, facts: &Facts, changed: ByTier<f64>) -> Model {
        let passes = self.expected_passes(facts.passes);
        Model::new(facts, passes, self.speed, changed)
    }

    fn learn_passes(&mut self, planned: Option<u32>, ran: u32) {
        let ran = f64::from(ran);
        let mean = match self.passes {
            Some(passes) if passes.planned == planned => {
                passes.mean + (ran - passes.mean) * PASSES_WEIGHT
            }
            _ => ran,
        };
        self.passes = Some(Passes { planned, mean });
    }

    /// The slower resource set the blit's time, so the blit tells of that one.
    fn learn_speed(&mut self, facts: &Facts, blit: Blit) {
        let model = self.model(facts, ByTier::uniform(0.0));
        let (memory, link) = model.busy(blit.device_bytes, blit.link_bytes);
        let submission = facts.rates.submission.as_secs_f64();
        let took = blit.time.as_secs_f64();
        let expected = memory.max(link);
        if expected <= 0.0 || took <= 0.0 || took < LEAST_SUBMISSIONS * submission {
            return;
        }
        let ratio = (expected / (took - submission)) as f32;
        let ratio = ratio.clamp(SPEED_CUT.recip(), SPEED_CUT);
        let speed = self.speed.get_mut(match memory >= link {
            true => Tier::Device,
            false => Tier::PinnedHost,
        });
        *speed =
            (*speed * (1.0 + (ratio - 1.0) * SPEED_WEIGHT)).clamp(SPEED_RANGE.recip(), SPEED_RANGE);
    }
}

impl TierHistory {
    fn learn(&mut self, bytes: u64, tier: Tier, observed: &Observed) {
        let mode = *observed.modes.get(tier);
        if mode != RestoreMode::Full && observed.hashed_restores > 0 && bytes > 0 {
            let changed = *observed.changed_bytes.get(tier);
            self.push(bytes, (changed as f64 / bytes as f64).min(1.0) as f32);
        } else {
            self.since_hashed = self.since_hashed.saturating_add(1);
        }

        // One hash of everything has nothing to be compared with, whatever the caller says.
        let compared = mode == RestoreMode::HashEveryPass && observed.hashed_restores >= 2;
        match observed.equal_lists.filter(|_| compared) {
            Some(equal) => {
                self.since_compared = 0;
                self.equal_windows = match equal {
                    true => self.equal_windows.saturating_add(1),
                    false => 0,
                };
            }
            None => self.since_compared = self.since_compared.saturating_add(1),
        }
        if observed.unlisted_change {
            self.equal_windows = 0;
            self.strikes = self.strikes.saturating_add(1);
        }
    }

    fn push(&mut self, bytes: u64, fraction: f32) {
        if !self.is_about(bytes) {
            *self = Self {
                strikes: self.strikes,
                ..Self::default()
            };
        }
        self.newest = (self.newest + 1) % FRACTIONS as u8;
        self.fractions[usize::from(self.newest)] = fraction;
        self.known = (self.known + 1).min(FRACTIONS as u8);
        self.bytes = bytes;
        self.since_hashed = 0;
    }

    /// Whether the fractions tell of a tier of this size.
    fn is_about(&self, bytes: u64) -> bool {
        self.known > 0
            && bytes / SAME_SIZE_FACTOR <= self.bytes
            && self.bytes / SAME_SIZE_FACTOR <= bytes
    }

    fn newest(&self) -> f32 {
        self.fractions[usize::from(self.newest)]
    }

    /// Places that are not filled hold 0.
    fn worst(&self) -> f32 {
        self.fractions.iter().copied().fold(0.0, f32::max)
    }
}

/// A kernel and the class of its launch: powers of two of bytes captured and of work-items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    kernel: u64,
    bytes: u8,
    work_items: u8,
}

impl Shape {
    pub(crate) fn of(facts: &Facts) -> Self {
        let bytes = facts.live_bytes;
        let [x, y, z] = facts.grid.map(u64::from);
        Self {
            kernel: facts.kernel.0,
            bytes: bit_length(bytes.device.saturating_add(bytes.pinned_host)),
            work_items: bit_length((x * y).saturating_mul(z)),
        }
    }

    /// Fixed, so that what is forgotten first is the same in every run.
    fn set(self) -> usize {
        // 2^64 over the golden ratio: spreads numbers that differ in few bits over the top ones.
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        let class = u64::from(self.bytes) << 8 | u64::from(self.work_items);
        let mixed = (self.kernel.wrapping_mul(SPREAD) ^ class).wrapping_mul(SPREAD);
        (mixed >> (u64::BITS - SETS.ilog2())) as usize
    }
}

/// 0 for 0, else one more than the base-2 logarithm.
const fn bit_length(value: u64) -> u8 {
    (u64::BITS - value.leading_zeros()) as u8
}

/// A shape can be in any of the places of its set.
const WAYS: usize = 8;

/// A power of two. With the ways, places for 1,024 shapes, a few hundred of which find one for sure
/// enough: more than applications launch in a phase.
const SETS: usize = 128;

/// The histories of a bounded number of shapes. A new one takes the place of the one in its set
/// that was learned about the longest ago.
#[derive(Debug)]
pub(crate) struct Shapes {
    sets: Box<[[Option<Known>; WAYS]]>,
    learned: u64,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    shape: Shape,
    history: History,
    /// `Shapes::learned` when it last changed.
    learned: u64,
}

impl Default for Shapes {
    fn default() -> Self {
        Self {
            sets: vec![[None; WAYS]; SETS].into_boxed_slice(),
            learned: 0,
        }
    }
}

impl Shapes {
    /// What is known of a shape.
    pub(crate) fn get(&self, shape: Shape) -> Option<&History> {
        let mut known = self.sets[shape.set()].iter().flatten();
        known
            .find(|known| known.shape == shape)
            .map(|known| &known.history)
    }

    /// The history of a shape, to learn; begun if there is none.
    pub(crate) fn entry(&mut self, shape: Shape) -> &mut History {
        self.learned += 1;
        let ways = &mut self.sets[shape.set()];
        let found = ways
            .iter()
            .position(|way| way.is_some_and(|known| known.shape == shape));
        // An empty place is older than any other.
        let oldest = || (0..WAYS).min_by_key(|&way| ways[way].map(|known| known.learned));
        let way = found.or_else(oldest).expect("a set has places");
        let new = Known {
            shape,
            history: History::default(),
            learned: 0,
        };
        let known = ways[way].get_or_insert(new);
        if known.shape != shape {
            *known = new;
        }
        known.learned = self.learned;
        &mut known.history
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Rates;
    use kr_types::KernelId;
    use std::time::Duration;

    const GIB: u64 = 1 << 30;

    fn facts() -> Facts {
        Facts {
            kernel: KernelId(1),
            grid: [256, 1, 1],
            passes: Some(5),
            live_bytes: ByTier {
                device: GIB,
                pinned_host: 0,
            },
            rates: Rates::ASSUMED,
            can_hash: true,
            end_check: None,
            every_pass_only: false,
        }
    }

    fn observed() -> Observed {
        Observed {
            modes: ByTier::uniform(RestoreMode::HashEveryPass),
            passes: 5,
            hashed_restores: 4,
            changed_bytes: ByTier::uniform(0),
            equal_lists: None,
            unlisted_change: false,
            blit: None,
        }
    }

    #[test]
    fn the_worst_of_the_last_fractions_decides() {
        let mut tier = TierHistory::default();
        let mut seen = vec![0.0];
        for n in 0..100u32 {
            let fraction = (n * 37 % 100) as f32 / 100.0;
            tier.push(GIB, fraction);
            seen.push(fraction);
            let last = &seen[seen.len().saturating_sub(FRACTIONS)..];
            assert_eq!(tier.worst(), last.iter().copied().fold(0.0, f32::max));
            assert_eq!(tier.newest(), fraction);
        }
    }

    #[test]
    fn no_more_than_everything_can_have_changed() {
        let mut tier = TierHistory::default();
        let seen = Observed {
            changed_bytes: ByTier::uniform(u64::MAX),
            ..observed()
        };
        tier.learn(1, Tier::Device, &seen);
        assert_eq!(tier.newest(), 1.0);
    }

    #[test]
    fn fractions_are_forgotten_when_the_size_more_than_doubles_or_halves() {
        for (size, same) in [
            (GIB / 2, true),
            (GIB / 2 - 1, false),
            (2 * GIB, true),
            (2 * GIB + 2, false),
            (0, false),
        ] {
            let mut tier = TierHistory::default();
            tier.push(GIB, 0.75);
            assert_eq!(tier.is_about(size), same, "{size}");
            tier.push(size, 0.25);
            assert_eq!(tier.worst(), if same { 0.75 } else { 0.25 }, "{size}");
        }
    }

    #[test]
    fn a_wrong_list_quadruples_what_the_next_one_needs() {
        let needed: Vec<_> = [0, 1, 2, 3, 255].map(equal_windows_needed).into();
        assert_eq!(needed, [2, 8, 32, 32, 32]);
    }

    #[test]
    fn expected_passes_follow_what_ran_under_the_same_plan() {
        let mut history = History::default();
        assert_eq!(history.expected_passes(Some(12)), 12.0);
        assert_eq!(history.expected_passes(None), FEWEST_PASSES);

        let mut learn = |planned, ran, times| {
            for _ in 0..times {
                history.learn_passes(planned, ran);
            }
            history.expected_passes(planned)
        };
        assert_eq!(learn(Some(12), 12, 3), 12.0);
        assert_eq!(learn(Some(12), 4, 1), 10.0);
        assert!((learn(Some(12), 4, 40) - 4.0).abs() < 1e-3);
        // Another plan: what was learned of the first says nothing.
        assert_eq!(learn(None, 9, 1), 9.0);
        assert_eq!(history.expected_passes(Some(12)), 12.0);
    }

    /// Shows a history blits of 2 GiB that take `factor` times what the rates say; returns what it
    /// then takes them for.
    fn taken_for(factor: f64, times: u32, link: bool) -> f64 {
        let mut history = History::default();
        let (device_bytes, link_bytes) = if link { (GIB, GIB) } else { (2 * GIB, 0) };
        let busy = |history: &History| {
            let model = history.model(&facts(), ByTier::uniform(0.0));
            let (memory, link) = model.busy(device_bytes, link_bytes);
            memory.max(link)
        };
        let first = busy(&history);
        let time = Rates::ASSUMED.submission + Duration::from_secs_f64(first * factor);
        for _ in 0..times {
            history.learn_speed(
                &facts(),
                Blit {
                    device_bytes,
                    link_bytes,
                    time,
                },
            );
        }
        busy(&history) / first
    }

    #[test]
    fn speeds_follow_the_blits_slowly() {
        for link in [false, true] {
            assert!((taken_for(1.0, 100, link) - 1.0).abs() < 1e-3);
            for factor in [0.25, 0.5, 2.0, 4.0] {
                let off = taken_for(factor, 200, link) / factor;
                assert!((off - 1.0).abs() < 1e-2, "{factor}: {off}");
            }
            // One odd blit moves nothing by more than its weight, many not beyond the range.
            assert!((taken_for(1e6, 1, link) - 1.0).abs() < 0.125);
            assert!((taken_for(0.1, 1, link) - 1.0).abs() < 0.125);
            assert!(taken_for(1e6, 1000, link) <= f64::from(SPEED_RANGE) * 1.001);
        }
    }

    #[test]
    fn a_blit_that_tells_nothing_changes_nothing() {
        for (device_bytes, time) in [
            (0, Duration::from_millis(1)),
            (GIB, Duration::ZERO),
            (GIB, Rates::ASSUMED.submission),
        ] {
            let mut history = History::default();
            let blit = Blit {
                device_bytes,
                link_bytes: 0,
                time,
            };
            history.learn_speed(&facts(), blit);
            assert_eq!(history, History::default(), "{blit:?}");
        }
    }

    #[test]
    fn a_window_without_a_pass_teaches_nothing() {
        let mut history = History::default();
        let none = Observed {
            passes: 0,
            ..observed()
        };
        history.learn(&facts(), &none);
        assert_eq!(history, History::default());
    }

    /// Nine shapes of one set, in a set that has room for eight.
    #[test]
    fn the_shape_learned_about_longest_ago_makes_room() {
        let home = Shape::of(&facts()).set();
        let mut crowd = (0..)
            .map(|kernel| Facts {
                kernel: KernelId(kernel),
                ..facts()
            })
            .filter(|facts| Shape::of(facts).set() == home);
        let shapes: Vec<Facts> = crowd.by_ref().take(WAYS + 1).collect();
        let mut known = Shapes::default();
        let mut learn = |facts: &Facts| {
            known.entry(Shape::of(facts)).learn(facts, &observed());
            let is_known = |facts: &Facts| known.get(Shape::of(facts)).is_some();
            shapes.iter().map(is_known).collect::<Vec<_>>()
        };
        let mut after = Vec::new();
        for facts in &shapes[..WAYS] {
            after = learn(facts);
        }
        assert_eq!(after, [vec![true; WAYS], vec![false]].concat());
        learn(&shapes[0]);
        let after = learn(&shapes[WAYS]);
        assert_eq!(after, [vec![true, false], vec![true; WAYS - 1]].concat());
    }

    #[test]
    fn kernel_bytes_and_grid_tell_shapes_apart() {
        let shape = |kernel, bytes, grid| {
            Shape::of(&Facts {
                kernel: KernelId(kernel),
                live_bytes: ByTier {
                    device: bytes / 2,
                    pinned_host: bytes - bytes / 2,
                },
                grid,
                ..facts()
            })
        };
        let one = shape(1, GIB, [64, 4, 1]);
        assert_eq!(one, shape(1, 2 * GIB - 1, [1, 1, 511]));
        for other in [
            shape(2, GIB, [64, 4, 1]),
            shape(1, 2 * GIB, [64, 4, 1]),
            shape(1, GIB - 1, [64, 4, 1]),
            shape(1, GIB, [64, 8, 1]),
            shape(1, GIB, [255, 1, 1]),
        ] {
            assert_ne!(one, other);
        }
    }
}
