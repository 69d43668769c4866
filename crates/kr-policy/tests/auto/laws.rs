//! Rules that hold for every history.

use std::collections::HashMap;
use std::time::Duration;

use kr_policy::seam::{
    Auto, Blit, EndCheck, Facts, History, Mode, Observed, Policy, Rates, select,
};
use kr_types::{ByTier, KernelId, RestoreMode, Tier};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::*;

fn extreme() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(1), Just(u64::MAX), 0..=u64::MAX, 0..200 * GIB]
}

fn any_passes() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), Just(1), Just(u32::MAX), 0..12u32]
}

fn by_tier<S: Strategy + Clone>(of: S) -> impl Strategy<Value = ByTier<S::Value>> {
    (of.clone(), of).prop_map(|(device, pinned_host)| ByTier {
        device,
        pinned_host,
    })
}

fn any_mode() -> impl Strategy<Value = RestoreMode> + Clone {
    prop::sample::select(RestoreMode::ALL)
}

fn any_time() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        Just(Duration::MAX),
        (0..1_000_000u64).prop_map(Duration::from_micros)
    ]
}

prop_compose! {
    fn any_facts()(
        kernel in 0..3u64,
        grid in prop_oneof![Just([0; 3]), Just([u32::MAX; 3]), Just([1; 3])],
        passes in prop::option::of(any_passes()),
        live_bytes in by_tier(extreme().boxed()),
        rates in (extreme(), extreme(), any_time()),
        can_hash in prop::bool::weighted(0.8),
        promised in any::<bool>(),
        every_pass_only in any::<bool>(),
    ) -> Facts {
        Facts {
            kernel: KernelId(kernel),
            grid,
            passes,
            live_bytes,
            rates: Rates {
                device_bytes_per_second: rates.0,
                link_bytes_per_second: rates.1,
                submission: rates.2,
            },
            can_hash,
            end_check: promised.then_some(PROMISE),
            every_pass_only,
        }
    }
}

prop_compose! {
    fn any_observed()(
        modes in by_tier(any_mode()),
        passes in any_passes(),
        hashed_restores in any_passes(),
        changed_bytes in by_tier(extreme().boxed()),
        equal_lists in prop::option::weighted(0.8, prop::bool::weighted(0.8)),
        unlisted_change in prop::bool::weighted(0.1),
        blit in prop::option::of((extreme(), extreme(), any_time())),
    ) -> Observed {
        Observed {
            modes,
            passes,
            hashed_restores,
            changed_bytes,
            equal_lists,
            unlisted_change,
            blit: blit.map(|(device_bytes, link_bytes, time)| Blit {
                device_bytes,
                link_bytes,
                time,
            }),
        }
    }
}

prop_compose! {
    /// Windows in which a list would pay, if only it were trusted.
    fn window_of_a_huge_kernel()(
        modes in by_tier(any_mode()),
        passes in 1..8u32,
        equal_lists in prop::option::weighted(0.9, prop::bool::weighted(0.9)),
        unlisted_change in prop::bool::weighted(0.02),
    ) -> Observed {
        let hashed = |tier: &&Tier| *modes.get(**tier) != RestoreMode::Full;
        let every = |tier: &&Tier| *modes.get(**tier) == RestoreMode::HashEveryPass;
        let restores = passes - 1;
        Observed {
            modes,
            passes,
            hashed_restores: match (Tier::ALL.iter().any(|t| every(&t)), Tier::ALL.iter().any(|t| hashed(&t))) {
                (true, _) => restores,
                (_, true) => restores.min(1),
                _ => 0,
            },
            changed_bytes: ByTier::uniform(GIB),
            equal_lists,
            unlisted_change,
            blit: None,
        }
    }
}

fn is_once(mode: Mode) -> bool {
    mode.restore_mode() == RestoreMode::HashOnce
}

fn any_once(modes: ByTier<Mode>) -> bool {
    is_once(modes.device) || is_once(modes.pinned_host)
}

/// Windows in a row, up to the last one that compared lists, in which this tier's were equal.
fn windows_with_equal_lists(tier: Tier, windows: &[Observed]) -> usize {
    let compared = |seen: &&Observed| {
        *seen.modes.get(tier) == RestoreMode::HashEveryPass && seen.hashed_restores >= 2
    };
    windows
        .iter()
        .rev()
        .filter(compared)
        .filter_map(|seen| seen.equal_lists)
        .take_while(|&equal| equal)
        .count()
}

proptest! {
    /// Hash-once is never chosen without the promise of a final check, nor when every pass is to be
    /// verified, nor when nothing can hash.
    #[test]
    fn never_a_list_without_the_promise_or_against_the_users_word(
        which in 0..3,
        windows in vec(window_of_a_huge_kernel(), 0..40),
    ) {
        let window = Facts { passes: Some(8), ..facts(HUGE.map(|bytes| 4 * bytes)) };
        let without = match which {
            0 => Facts { end_check: None, ..window },
            1 => Facts { every_pass_only: true, ..window },
            _ => Facts { can_hash: false, ..window },
        };
        let mut history = History::default();
        for seen in &windows {
            history.learn(&window, seen);
            prop_assert!(!any_once(select(&without, &history)));
        }
    }

    /// Hash-once is never chosen for a tier before two earlier windows, with no other in between,
    /// saw equal lists in it.
    #[test]
    fn never_a_list_before_two_windows_with_equal_lists(
        windows in vec(window_of_a_huge_kernel(), 0..40),
    ) {
        let window = Facts { passes: Some(8), ..facts(HUGE.map(|bytes| 4 * bytes)) };
        let mut history = History::default();
        for n in 0..windows.len() {
            history.learn(&window, &windows[n]);
            let modes = select(&window, &history);
            for &tier in Tier::ALL {
                let equal = windows_with_equal_lists(tier, &windows[..=n]);
                prop_assert!(equal >= 2 || !is_once(*modes.get(tier)), "{tier} at {n}: {modes:?}");
            }
        }
    }

    /// Equal facts after equal lessons give equal modes, and asking teaches nothing.
    #[test]
    fn equal_facts_and_equal_histories_give_equal_modes(
        windows in vec((any_facts(), any_observed()), 0..30),
        asked in any_facts(),
    ) {
        let (once, often) = (Auto::default(), Auto::default());
        for (facts, observed) in &windows {
            once.learn(facts, observed);
            for (facts, _) in &windows {
                often.choose(facts);
            }
            often.learn(facts, observed);
        }
        prop_assert_eq!(once.choose(&asked), often.choose(&asked));
    }

    /// What the policy remembers is a history per kernel and launch shape, and no more.
    #[test]
    fn a_policy_is_a_history_per_shape(windows in vec((any_facts(), any_observed()), 0..30)) {
        let auto = Auto::default();
        let mut naive: HashMap<_, History> = HashMap::new();
        for (facts, observed) in &windows {
            let total = facts.live_bytes.device.saturating_add(facts.live_bytes.pinned_host);
            let class = (facts.kernel, facts.grid, total.checked_ilog2());
            let history = naive.entry(class).or_default();
            prop_assert_eq!(auto.choose(facts), select(facts, history));
            auto.learn(facts, observed);
            history.learn(facts, observed);
            prop_assert_eq!(auto.choose(facts), select(facts, history));
        }
    }

    /// No facts and no lessons, however odd, make it panic or hash where nothing can; one choice is
    /// as possible as the other.
    #[test]
    fn every_input_has_a_possible_answer(windows in vec((any_facts(), any_observed()), 1..30)) {
        let auto = Auto::default();
        for (facts, observed) in &windows {
            auto.learn(facts, observed);
            for (facts, _) in &windows {
                let modes = auto.choose(facts);
                if !facts.can_hash {
                    prop_assert_eq!(modes, ByTier::uniform(FULL));
                }
                let allowed: Option<EndCheck> = facts.end_check.filter(|_| !facts.every_pass_only);
                prop_assert!(allowed.is_some() || !any_once(modes));
            }
        }
    }
}

/// A kernel's behaviour for a number of windows.
#[derive(Clone, Copy, Debug)]
struct Phase {
    /// Rewrites nearly everything, or nearly nothing.
    heavy: ByTier<bool>,
    steady: bool,
    windows: usize,
}

/// Windows until a tier that changes little is hashed for good: the longest time between probes, and
/// seven more probes, on every second window, until the worst of eight is a good one.
const NOTICED: usize = 64 + 2 * 7;

/// The same for the device tier. A full copy of it may hide behind one over the link, so the other
/// tier's change has to be noticed first.
const DEVICE_NOTICED: usize = 2 * NOTICED;

/// Windows until a list is trusted, after any number of wrong ones: noticed, then looked at.
const TRUSTED: usize = DEVICE_NOTICED + 32 + 1;

fn any_phase() -> impl Strategy<Value = Phase> {
    let heavy = by_tier(any::<bool>().boxed());
    (heavy, any::<bool>(), 200..600usize).prop_map(|(heavy, steady, windows)| Phase {
        heavy,
        steady,
        windows,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// No state is absorbing: over 10,000 windows of a kernel that changes its ways, a tier that
    /// comes to change little is hashed again within so many windows and from then on, one that comes
    /// to be rewritten is copied in full but for probes, a list is used again once it is right, and not
    /// while it is wrong.
    #[test]
    fn no_state_is_absorbing(phases in vec(any_phase(), 50)) {
        let window = facts(HUGE);
        let auto = Auto::default();
        let mut run = 0;
        for phase in phases.into_iter().cycle() {
            if run >= 10_000 {
                break;
            }
            run += phase.windows;
            let changed = phase.heavy.map(|heavy| if heavy { 1.0 } else { 0.01 });
            let kernel = Kernel { changed, steady: phase.steady, wants: u32::MAX };
            let mut modes = Vec::new();
            for _ in 0..phase.windows {
                let chosen = auto.choose(&window);
                auto.learn(&window, &kernel.window(&window, chosen.map(Mode::restore_mode)));
                modes.push(chosen);
            }
            for &tier in Tier::ALL {
                let of = |mode: &ByTier<Mode>| *mode.get(tier);
                let noticed = if tier == Tier::Device { DEVICE_NOTICED } else { NOTICED };
                let settled = &modes[noticed..];
                if *phase.heavy.get(tier) {
                    // Probes after 2, 4, ... 64 windows, then every 64.
                    let hashed = modes.iter().filter(|mode| of(mode) != FULL).count();
                    prop_assert!(hashed <= 9 + 1 + phase.windows / 64, "{phase:?}: {hashed} hashed");
                } else if tier == Tier::PinnedHost || !phase.heavy.pinned_host {
                    prop_assert!(settled.iter().all(|mode| of(mode) != FULL), "{phase:?}");
                }
            }
            let lists = modes.iter().filter(|mode| any_once(**mode)).count();
            if !phase.steady {
                prop_assert!(lists <= 1, "{phase:?}: {lists} wrong lists");
            } else if phase.heavy == ByTier::uniform(false) {
                let later = &modes[TRUSTED..];
                let probes = later.iter().filter(|mode| !any_once(**mode)).count();
                prop_assert!(probes <= 1 + later.len() / 100, "{phase:?}: {probes} probes");
            }
        }
    }
}
