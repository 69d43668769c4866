//! The policy that chooses by time.
//!
//! [`select`] is the choice, a pure function of the facts of a window and of the [`History`] of its
//! kernel and launch shape; [`Auto`] keeps the histories.
//!
//! | situation | mode |
//! |---|---|
//! | nothing can hash, or one pass | full |
//! | nothing known | every pass, unless hashing would not pay even if nothing changed |
//! | fractions known | per tier, what the time model says the window takes least in: full or every pass |
//! | that would be full, a probe is due | every pass |
//! | a list is trusted, promised to be checked, and saves enough | once |
//!
//! A list is trusted after [`EQUAL_WINDOWS`](crate::history::EQUAL_WINDOWS) windows with equal lists
//! under every-pass hashing, and then for less than
//! [`LIST_REPROBE`](crate::history::LIST_REPROBE) windows.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kr_types::{ByTier, RestoreMode};

use crate::facts::{Facts, Observed};
use crate::history::{History, Shape, Shapes};
use crate::mode::Mode;
use crate::model::{ANY, SAFE};
use crate::seam::Policy;

/// What hashing once must save per window before its weaker check is worth it. With a memory of
/// 4 TB/s and five passes that takes 40 GB captured; smaller windows are verified every pass.
pub(crate) const ONCE_SAVES: Duration = Duration::from_millis(20);

/// Fewest expected passes for hashing once. At three it would save no more than the changed tiles,
/// and hashing every pass needs no trust.
pub(crate) const ONCE_PASSES: f64 = 4.0;

/// The modes for a window, given what is known of its kernel and launch shape.
pub fn select(facts: &Facts, history: &History) -> ByTier<Mode> {
    if !facts.can_hash || facts.passes.is_some_and(|passes| passes < 2) {
        return ByTier::uniform(Mode::Full);
    }
    let model = history.model_of_worst(facts);
    let mut best = model.cheapest(ByTier::uniform(SAFE));

    let end_check = facts
        .may_hash_once()
        .filter(|_| history.expected_passes(facts.passes) >= ONCE_PASSES);
    if end_check.is_some() {
        let with_lists = model.cheapest(ByTier::from_fn(|tier| {
            match history.trusts_list(tier, *facts.live_bytes.get(tier)) {
                true => ANY,
                false => SAFE,
            }
        }));
        if best.seconds - with_lists.seconds >= ONCE_SAVES.as_secs_f64() {
            best = with_lists;
        }
    }

    // Where hashing could not pay whatever it found, there is nothing to find out.
    let could_pay = |tier| {
        let hopeful = model.unchanged().cheapest(ByTier::uniform(SAFE));
        *hopeful.modes.get(tier) != RestoreMode::Full
    };
    ByTier::from_fn(|tier| match (*best.modes.get(tier), end_check) {
        (RestoreMode::HashOnce, Some(end_check)) => Mode::HashOnce(end_check),
        (RestoreMode::HashEveryPass | RestoreMode::HashOnce, _) => Mode::HashEveryPass,
        _ if history.probe_is_due(tier) && could_pay(tier) => Mode::HashEveryPass,
        _ => Mode::Full,
    })
}

/// Chooses by the time model and what earlier windows of the same kernel and launch shape taught.
///
/// It remembers a bounded number of shapes and allocates only when it is made.
#[derive(Debug, Default)]
pub struct Auto {
    shapes: Mutex<Shapes>,
}

impl Auto {
    fn shapes(&self) -> MutexGuard<'_, Shapes> {
        // Histories are statistics: one that was left half learned by a panic does no harm.
        self.shapes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Policy for Auto {
    fn choose(&self, facts: &Facts) -> ByTier<Mode> {
        match self.shapes().get(Shape::of(facts)) {
            Some(history) => select(facts, history),
            None => select(facts, &History::default()),
        }
    }

    fn learn(&self, facts: &Facts, observed: &Observed) {
        self.shapes().entry(Shape::of(facts)).learn(facts, observed);
    }
}
