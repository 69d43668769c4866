//! Every operation of the device fails once, in every operation of the engine: nothing leaks, and
//! nothing is half done and called done.

use std::time::Duration;

use kr_blit::{BlitError, CpuConfig, RestoreError, Unfinished, Verdict};
use kr_device::DeviceError;
use kr_device::host::Fault;
use kr_types::{ByTier, RestoreMode, TILE_BYTES, Tier};

use crate::rig::{EVERY, FULL, ONCE, Rig, Spec};

const FAULTS: [Fault; 4] = [Fault::Submit, Fault::Copy, Fault::Read, Fault::Write];

/// Two tiers, a uniform tile in each, on one and on more threads.
fn rig(threads: usize) -> Rig {
    let cuts = vec![(2, Tier::Device), (1, Tier::PinnedHost)];
    let spec = |len| Spec {
        gap: 5,
        len,
        cuts: cuts.clone(),
    };
    let config = CpuConfig {
        threads: threads.try_into().ok(),
        audit: std::num::NonZeroU32::new(1),
        ..CpuConfig::default()
    };
    let mut rig = Rig::new(
        &[spec(7 * TILE_BYTES + 3), spec(70 * TILE_BYTES), spec(9)],
        &config,
    );
    for tile in [1, 2] {
        rig.write_region(0, tile * TILE_BYTES, &[0; TILE_BYTES as usize]);
    }
    rig
}

/// Makes the n-th operation of each kind fail, for every n until none is left to fail, and says how
/// often `run` reported a failure. `run` returns whether it did.
fn fail_each(fault: Fault, mut run: impl FnMut(u64) -> bool) -> u64 {
    let mut n = 0;
    while run(n) {
        n += 1;
        assert!(n < 10_000, "{fault:?}: never succeeds");
    }
    n
}

#[test]
fn a_capture_that_fails_yields_no_image_and_leaves_memory_alone() {
    for threads in [1, 3] {
        for fault in FAULTS {
            let mut failures = 0;
            failures += fail_each(fault, |n| {
                let rig = rig(threads);
                let used = Tier::ALL
                    .iter()
                    .map(|t| rig.device.used_bytes(*t))
                    .sum::<u64>();
                rig.device.fail_nth(fault, n);
                let failed = rig.try_capture(crate::rig::LIMIT).is_err();
                let now = Tier::ALL
                    .iter()
                    .map(|t| rig.device.used_bytes(*t))
                    .sum::<u64>();
                assert_eq!(now, used);
                rig.check();
                failed
            });
            match fault {
                Fault::Write => assert_eq!(failures, 0, "a capture writes by copies only"),
                Fault::Submit => assert_eq!(failures, 1),
                _ => assert!(failures > 10, "{fault:?}: {failures}"),
            }
        }
    }
}

#[test]
fn a_recapture_that_fails_yields_no_image() {
    for fault in FAULTS {
        let failures = fail_each(fault, |n| {
            let mut rig = rig(2);
            let image = rig.capture();
            for tile in [0, 2, 5, 40] {
                rig.write_region(1, tile * TILE_BYTES, &[1; 3]);
            }
            rig.device.fail_nth(fault, n);
            let alive = |_: &_| true;
            // SAFETY: the rig's blocks are alive, and nothing else uses them.
            let result = unsafe {
                let liveness = kr_blit::Liveness::ask(&alive);
                rig.engine.recapture(image, liveness, crate::rig::LIMIT)
            };
            rig.check();
            // What was started anew is as good as if nothing had failed.
            rig.device.fail_nth(fault, u64::MAX);
            let image = rig.capture();
            rig.write_region(1, 0, &[9; 9]);
            rig.restore(image, FULL);
            assert_eq!(rig.read(), rig.captured);
            result.is_err()
        });
        assert_eq!(
            failures == 0,
            fault == Fault::Write,
            "{fault:?}: {failures}"
        );
    }
}

/// Whatever fails in a restore, only a rescue goes on, and it puts everything back.
#[test]
fn a_restore_that_fails_can_be_rescued_and_nothing_else() {
    let mixed = ByTier {
        device: RestoreMode::HashEveryPass,
        pinned_host: RestoreMode::Full,
    };
    for (modes, before) in [
        (FULL, None),
        (EVERY, None),
        (ONCE, Some(ONCE)),
        (mixed, None),
    ] {
        let mut failures = 0;
        for (fault, threads) in FAULTS.into_iter().flat_map(|f| [(f, 1), (f, 3)]) {
            failures += fail_each(fault, |n| {
                let mut rig = rig(threads);
                let mut image = rig.capture();
                let spoil = |rig: &mut Rig, value: u8| {
                    rig.write_region(0, TILE_BYTES - 4, &[value; 9]);
                    rig.write_region(1, 3 * TILE_BYTES, &[value; 3 * TILE_BYTES as usize]);
                    rig.write_region(1, 66 * TILE_BYTES, &[value]);
                };
                if let Some(modes) = before {
                    spoil(&mut rig, 8);
                    image = rig.restore(image, modes).image;
                }
                spoil(&mut rig, 9);
                rig.device.fail_nth(fault, n);
                let failed = match rig.try_restore(image, modes, crate::rig::LIMIT) {
                    Ok(restored) => {
                        image = restored.image;
                        false
                    }
                    Err(RestoreError::Failed { torn, source }) => {
                        assert!(matches!(source, DeviceError::Failed { .. }));
                        image = rig.try_rescue(torn).unwrap();
                        true
                    }
                    Err(error) => panic!("{error}"),
                };
                assert_eq!(rig.read(), rig.captured, "{fault:?} {n}");
                rig.put_all_back();
                rig.check();
                rig.device.fail_nth(fault, u64::MAX);
                assert_eq!(rig.verify(image).1, Verdict::Clean);
                failed
            });
        }
        assert!(failures > 5, "{modes:?}: {failures}");
    }
}

/// A failure in the middle of a restore does not lose what was already found off the list.
#[test]
fn a_failed_restore_still_counts_changes_off_the_list() {
    for (fault, modes) in FAULTS.into_iter().flat_map(|f| [(f, FULL), (f, EVERY)]) {
        fail_each(fault, |n| {
            let mut rig = rig(1);
            let mut image = rig.capture();
            rig.write_region(1, 0, &[1; 4]);
            image = rig.restore(rig.restore(image, ONCE).image, ONCE).image;
            for tile in [4, 30, 69] {
                rig.write_region(1, tile * TILE_BYTES, &[2; 4]);
            }
            rig.device.fail_nth(fault, n);
            let failed = match rig.try_restore(image, modes, crate::rig::LIMIT) {
                Ok(restored) => {
                    image = restored.image;
                    false
                }
                Err(RestoreError::Failed { torn, .. }) => {
                    image = rig.try_rescue(torn).unwrap();
                    true
                }
                Err(error) => panic!("{error}"),
            };
            rig.device.fail_nth(fault, u64::MAX);
            assert_eq!(rig.read(), rig.captured);
            match rig.verify(image).1 {
                Verdict::UnlistedChange { tiles: 3, .. } => failed,
                verdict => panic!("{fault:?} {n} {modes:?}: {verdict}"),
            }
        });
    }
}

#[test]
fn a_failed_rescue_or_check_says_so() {
    for fault in [Fault::Read, Fault::Write] {
        let failures = fail_each(fault, |n| {
            let mut rig = rig(2);
            let image = rig.capture();
            rig.write_region(1, 0, &[1; 4]);
            rig.device.fail_nth(Fault::Submit, 0);
            let Err(RestoreError::Failed { torn, .. }) =
                rig.try_restore(image, FULL, crate::rig::LIMIT)
            else {
                panic!("the submit was made to fail");
            };
            rig.device.fail_nth(fault, n);
            rig.try_rescue(torn).is_err()
        });
        assert!(failures > 70, "{fault:?}: {failures}");
    }
    let failures = fail_each(Fault::Read, |n| {
        let mut rig = rig(2);
        let image = rig.capture();
        let image = rig.restore(rig.restore(image, ONCE).image, ONCE).image;
        rig.device.fail_nth(Fault::Read, n);
        rig.try_verify(image).is_err()
    });
    assert!(failures > 20, "{failures}");
}

#[test]
fn copies_that_outlive_their_limit_are_handed_over_and_seen_to_end() {
    let mut rig = rig(2);
    let image = rig.capture();
    rig.write_region(1, 0, &[5; 5]);
    let soon = Duration::from_millis(300);
    let hold = rig.device.hold_copies();
    let Err(BlitError::TimedOut {
        limit,
        unfinished: saving,
    }) = rig.try_capture(soon)
    else {
        panic!("copies are held");
    };
    let Err(RestoreError::TimedOut {
        unfinished: restoring,
        ..
    }) = rig.try_restore(image, FULL, soon)
    else {
        panic!("copies are held");
    };
    assert_eq!(limit, soon);
    assert!(!saving.is_finished() && !restoring.is_finished());
    drop(hold);
    while !restoring.is_finished() {
        std::thread::yield_now();
    }
    assert!(saving.is_finished(), "submissions end in order");
}

/// Hashing is the host's own work: when its time is up, nothing runs on.
#[test]
fn hashing_that_runs_out_of_time_leaves_nothing_running() {
    let mut rig = rig(2);
    let none = Duration::ZERO;
    let error = rig.try_capture(none).unwrap_err();
    assert_eq!(
        error.to_string(),
        "agent 3: capture failed: did not end within 0ns"
    );
    assert!(matches!(error, BlitError::Failed(_)));
    let image = rig.capture();
    rig.write_region(0, 0, &[5; 5]);
    let Err(RestoreError::Failed { torn, .. }) = rig.try_restore(image, EVERY, none) else {
        panic!("there is no time");
    };
    rig.try_rescue(torn).unwrap();
    assert_eq!(rig.read(), rig.captured);
    // A limit that the clock cannot express is none.
    let image = rig.capture();
    assert!(rig.try_restore(image, EVERY, Duration::MAX).is_ok());
}

#[test]
fn extents_that_split_a_tile_are_refused_before_anything_is_read() {
    let mut rig = rig(1);
    let whole = rig.extents[0];
    let bad = kr_types::Extent::new(*whole.region(), 0, 100, whole.saved(), whole.tier());
    rig.extents[0] = bad.unwrap();
    rig.device.fail_nth(Fault::Read, 0);
    let error = rig.try_capture(crate::rig::LIMIT).unwrap_err().to_string();
    assert!(
        error.contains("cut regions at multiples of 16384 bytes"),
        "{error}"
    );
}
