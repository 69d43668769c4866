//! The choice, row by row.

use std::time::Duration;

use kr_policy::seam::{Blit, Facts, History, Mode, Rates, select};
use kr_types::{ByTier, RestoreMode, Verified};

use crate::support::*;

/// So many windows that hashed every pass.
type Lesson = (u32, Kernel);

#[track_caller]
fn check(facts: Facts, lessons: &[Lesson], expected: ByTier<Mode>) {
    let mut history = History::default();
    for &(windows, kernel) in lessons {
        learn(
            &mut history,
            &facts,
            RestoreMode::HashEveryPass,
            windows,
            kernel,
        );
    }
    assert_eq!(select(&facts, &history), expected);
}

const QUIET: Kernel = Kernel::changing(0.01, 0.01);

#[test]
fn without_hashing_or_a_second_pass_full() {
    let full = tiers(FULL, FULL);
    let no_hash = Facts {
        can_hash: false,
        ..facts(HUGE)
    };
    check(no_hash, &[], full);
    check(no_hash, &[(5, QUIET)], full);
    for passes in [0, 1] {
        let few = Facts {
            passes: Some(passes),
            ..facts(HUGE)
        };
        check(few, &[], full);
    }
}

#[test]
fn small_memory_is_copied_in_full() {
    check(facts(tiers(63 * MIB, 0)), &[], tiers(FULL, FULL));
    check(facts(tiers(64 * MIB, 0)), &[], tiers(EVERY, FULL));
    check(facts(tiers(0, 896 << 10)), &[], tiers(FULL, FULL));
    check(facts(tiers(0, MIB)), &[], tiers(FULL, EVERY));
    // The further submission is there anyway, so the small tier is hashed along.
    check(facts(tiers(8 * MIB, GIB)), &[], tiers(EVERY, EVERY));
    check(facts(tiers(0, 0)), &[], tiers(FULL, FULL));
}

#[test]
fn few_or_unknown_passes_are_hashed_every_pass() {
    for passes in [Some(2), Some(3), Some(4), Some(100), None] {
        let window = Facts {
            passes,
            ..facts(HUGE)
        };
        check(window, &[], tiers(EVERY, EVERY));
    }
    for passes in [2, 3] {
        let window = Facts {
            passes: Some(passes),
            ..facts(HUGE.map(|bytes| 1000 * bytes))
        };
        check(window, &[(5, QUIET)], tiers(EVERY, EVERY));
    }
}

#[test]
fn what_changes_much_is_copied_in_full_each_tier_for_itself() {
    let device = facts(tiers(2 * GIB, 0));
    for (changed, mode) in [(0.0, EVERY), (0.48, EVERY), (0.5, FULL), (1.0, FULL)] {
        check(
            device,
            &[(1, Kernel::changing(changed, 0.0))],
            tiers(mode, FULL),
        );
    }
    let pinned = facts(tiers(0, 2 * GIB));
    for (changed, mode) in [(0.5, EVERY), (0.98, EVERY), (0.99, FULL)] {
        check(
            pinned,
            &[(1, Kernel::changing(0.0, changed))],
            tiers(FULL, mode),
        );
    }
    let both = facts(tiers(2 * GIB, 2 * GIB));
    check(both, &[(1, Kernel::changing(0.9, 0.9))], tiers(FULL, EVERY));
}

#[test]
fn the_worst_of_eight_windows_decides() {
    let window = facts(tiers(2 * GIB, 0));
    let spike = Kernel::changing(0.9, 0.0);
    let steady = Kernel {
        steady: false,
        ..Kernel::changing(0.1, 0.0)
    };
    let mut history = History::default();
    let mut learn = |windows, kernel| {
        learn(
            &mut history,
            &window,
            RestoreMode::HashEveryPass,
            windows,
            kernel,
        );
        select(&window, &history).device
    };
    assert_eq!(learn(1, steady), EVERY);
    assert_eq!(learn(1, spike), FULL);
    for _ in 0..7 {
        assert_eq!(learn(1, steady), FULL);
    }
    assert_eq!(learn(1, steady), EVERY);
}

#[test]
fn a_list_needs_two_windows_with_equal_lists() {
    let window = facts(HUGE);
    let fickle = Kernel {
        steady: false,
        ..QUIET
    };
    check(window, &[(1, QUIET)], tiers(EVERY, EVERY));
    check(window, &[(2, QUIET)], tiers(ONCE, ONCE));
    check(window, &[(2, fickle)], tiers(EVERY, EVERY));
    check(window, &[(9, QUIET), (1, fickle)], tiers(EVERY, EVERY));
    check(
        window,
        &[(9, QUIET), (1, fickle), (1, QUIET)],
        tiers(EVERY, EVERY),
    );
    check(
        window,
        &[(9, QUIET), (1, fickle), (2, QUIET)],
        tiers(ONCE, ONCE),
    );
}

#[test]
fn one_hash_of_everything_proves_no_list() {
    // Two passes: one restore, hence one list, whatever is claimed of it.
    let short = Facts {
        passes: Some(12),
        ..facts(HUGE)
    };
    let mut history = History::default();
    let seen =
        Kernel { wants: 2, ..QUIET }.window(&short, ByTier::uniform(RestoreMode::HashEveryPass));
    for _ in 0..5 {
        let claimed = kr_policy::seam::Observed {
            equal_lists: Some(true),
            ..seen
        };
        history.learn(&short, &claimed);
    }
    // Even if the profiler then goes on for longer.
    let long = Kernel { wants: 12, ..QUIET };
    learn(&mut history, &short, RestoreMode::Full, 20, long);
    assert_eq!(select(&short, &history), tiers(EVERY, EVERY));
}

#[test]
fn a_list_needs_the_promise_and_the_users_consent() {
    for (end_check, every_pass_only) in [(None, false), (None, true), (Some(PROMISE), true)] {
        let window = Facts {
            end_check,
            every_pass_only,
            ..facts(HUGE)
        };
        check(window, &[(50, QUIET)], tiers(EVERY, EVERY));
    }
}

#[test]
fn a_list_must_save_20_ms_a_window() {
    // Per window 2 + c device tiers are not read, and one submission more than that is saved thrice.
    let bytes = |seconds: f64| {
        let rate = Rates::ASSUMED.device_bytes_per_second as f64;
        (seconds * rate / 2.0) as u64
    };
    let still = [(2, Kernel::changing(0.0, 0.0))];
    let window = |seconds| facts(tiers(bytes(seconds), 0));
    check(window(0.0199), &still, tiers(EVERY, FULL));
    check(window(0.0201), &still, tiers(ONCE, FULL));
    // The same bytes save more over more passes.
    let longer = Facts {
        passes: Some(8),
        ..window(0.0199)
    };
    check(longer, &still, tiers(ONCE, FULL));
}

#[test]
fn between_the_borders_a_list_beats_a_full_copy() {
    // Five passes: full beats every-pass hashing from 50 % on, a list from 85.7 % on.
    let window = facts(tiers(512 * GIB, 0));
    for (changed, mode) in [(0.4, ONCE), (0.7, ONCE), (0.8, ONCE), (0.87, FULL)] {
        // Two of these windows are probes.
        check(
            window,
            &[(2, Kernel::changing(changed, 0.0))],
            tiers(mode, FULL),
        );
    }
}

#[test]
fn a_wrong_list_ends_lists_for_a_while() {
    let window = facts(HUGE);
    let mut history = History::default();
    let mut learn = |mode, windows, kernel| {
        learn(&mut history, &window, mode, windows, kernel);
        select(&window, &history)
    };
    let (every, once) = (RestoreMode::HashEveryPass, RestoreMode::HashOnce);
    let fickle = Kernel {
        steady: false,
        ..QUIET
    };
    assert_eq!(learn(every, 2, QUIET), tiers(ONCE, ONCE));
    for needed in [8, 32, 32] {
        assert_eq!(learn(once, 1, fickle), tiers(EVERY, EVERY));
        assert_eq!(learn(every, needed - 1, QUIET), tiers(EVERY, EVERY));
        assert_eq!(learn(every, 1, QUIET), tiers(ONCE, ONCE));
    }
}

#[test]
fn every_hundredth_window_goes_without_a_list() {
    let window = facts(HUGE);
    let mut history = History::default();
    learn(&mut history, &window, RestoreMode::HashEveryPass, 2, QUIET);
    for _ in 0..5 {
        for _ in 0..99 {
            let modes = select(&window, &history);
            assert_eq!(modes, tiers(ONCE, ONCE));
            history.learn(
                &window,
                &QUIET.window(&window, modes.map(Mode::restore_mode)),
            );
        }
        let modes = select(&window, &history);
        assert_eq!(modes, tiers(EVERY, EVERY));
        history.learn(
            &window,
            &QUIET.window(&window, modes.map(Mode::restore_mode)),
        );
    }
}

#[test]
fn passes_are_those_that_run_not_those_that_are_planned() {
    let planned = |passes| Facts {
        passes,
        ..facts(HUGE)
    };
    let stops_after = |wants| Kernel { wants, ..QUIET };
    // A profiler that always stops after three: a list would save nothing to speak of.
    check(
        planned(Some(12)),
        &[(4, stops_after(3))],
        tiers(EVERY, EVERY),
    );
    check(
        planned(Some(12)),
        &[(4, stops_after(12))],
        tiers(ONCE, ONCE),
    );
    // Open-ended: what it did before is what it will do.
    check(planned(None), &[(4, stops_after(3))], tiers(EVERY, EVERY));
    check(planned(None), &[(4, stops_after(12))], tiers(ONCE, ONCE));
    // Stopping after pass 0 teaches nothing about memory.
    check(
        planned(Some(12)),
        &[(4, stops_after(1))],
        tiers(EVERY, EVERY),
    );
}

#[test]
fn another_plan_is_another_number_of_passes() {
    let long = facts(HUGE);
    let mut history = History::default();
    let stops = Kernel { wants: 3, ..QUIET };
    learn(&mut history, &long, RestoreMode::HashEveryPass, 4, stops);
    assert_eq!(select(&long, &history), tiers(EVERY, EVERY));
    let other = Facts {
        passes: Some(6),
        ..long
    };
    assert_eq!(select(&other, &history), tiers(ONCE, ONCE));
}

#[test]
fn a_tier_of_another_size_is_looked_at_again() {
    let before = facts(tiers(8 * GIB, 6 * GIB));
    let mut history = History::default();
    let rewrites = Kernel::changing(1.0, 1.0);
    learn(
        &mut history,
        &before,
        RestoreMode::HashEveryPass,
        8,
        rewrites,
    );
    assert_eq!(select(&before, &history), tiers(FULL, FULL));
    // As many bytes in all, but placed differently.
    let after = facts(tiers(12 * GIB, 2 * GIB));
    assert_eq!(select(&after, &history), tiers(FULL, EVERY));

    let mut history = History::default();
    learn(
        &mut history,
        &facts(HUGE),
        RestoreMode::HashEveryPass,
        5,
        QUIET,
    );
    assert_eq!(select(&facts(HUGE), &history), tiers(ONCE, ONCE));
    let after = facts(tiers(20 * GIB, 52 * GIB));
    assert_eq!(select(&after, &history), tiers(EVERY, EVERY));
}

#[test]
fn probes_become_rarer_up_to_one_in_64() {
    let window = facts(tiers(2 * GIB, 2 * GIB));
    let rewrites = Kernel::changing(1.0, 1.0);
    let mut history = History::default();
    let mut hashed = Vec::new();
    for n in 0..400 {
        let modes = select(&window, &history);
        assert_eq!(modes.device, modes.pinned_host);
        if modes.device == EVERY {
            hashed.push(n);
        }
        history.learn(
            &window,
            &rewrites.window(&window, modes.map(Mode::restore_mode)),
        );
    }
    let gaps: Vec<i32> = hashed.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(gaps, [2, 4, 8, 16, 32, 64, 64, 64, 64, 64]);
}

#[test]
fn a_probe_that_speaks_for_hashing_is_followed_up() {
    let window = facts(tiers(2 * GIB, 2 * GIB));
    let mut history = History::default();
    let mut run = |windows, kernel: Kernel| {
        let mut modes = Vec::new();
        for _ in 0..windows {
            let chosen = select(&window, &history);
            history.learn(
                &window,
                &kernel.window(&window, chosen.map(Mode::restore_mode)),
            );
            modes.push(chosen.device);
        }
        modes
    };
    // Windows 0, 2, 6, 14, 30, 62 and 126 are hashed, and 190 is the next.
    run(190, Kernel::changing(1.0, 1.0));
    let modes = run(20, QUIET);
    for (n, mode) in modes.into_iter().enumerate() {
        let expected = if n < 15 && n % 2 == 1 { FULL } else { EVERY };
        assert_eq!(mode, expected, "{n}");
    }
}

#[test]
fn memory_too_small_to_hash_is_not_probed() {
    let window = facts(tiers(16 * MIB, 0));
    let mut history = History::default();
    learn(&mut history, &window, RestoreMode::Full, 300, QUIET);
    assert_eq!(select(&window, &history), tiers(FULL, FULL));
}

#[test]
fn blits_faster_than_the_rates_raise_the_size_from_which_hashing_pays() {
    let window = facts(tiers(96 * MIB, 0));
    let mut history = History::default();
    assert_eq!(select(&window, &history), tiers(EVERY, FULL));
    // A cache serves these blits at three times the memory's rate.
    let copied = 2 * window.live_bytes.device;
    let rate = 3 * window.rates.device_bytes_per_second;
    let quick = Blit {
        device_bytes: copied,
        link_bytes: 0,
        time: window.rates.submission + Duration::from_secs_f64(copied as f64 / rate as f64),
    };
    let seen = QUIET.window(&window, ByTier::uniform(RestoreMode::HashEveryPass));
    for _ in 0..50 {
        let timed = kr_policy::seam::Observed {
            blit: Some(quick),
            ..seen
        };
        history.learn(&window, &timed);
    }
    assert_eq!(select(&window, &history), tiers(FULL, FULL));
}

#[test]
fn a_window_is_verified_as_well_as_its_weakest_tier() {
    for (device, pinned_host, verified) in [
        (FULL, EVERY, Verified::EveryPass),
        (EVERY, EVERY, Verified::EveryPass),
        (ONCE, EVERY, Verified::EndOnly),
        (FULL, ONCE, Verified::EndOnly),
    ] {
        assert_eq!(Mode::verified_all(tiers(device, pinned_host)), verified);
    }
}
