//! One case each for what the modes promise, and for what they do not.

use std::cell::Cell;

use kr_blit::{CpuConfig, CpuRestored, Liveness, Verdict};
use kr_types::{ByTier, InventoryGeneration, RestoreMode, TILE_BYTES, Tier};

use crate::rig::{EVERY, FULL, LIMIT, ONCE, Rig, Spec};

/// One region of eight tiles and a bit.
fn rig() -> Rig {
    let spec = Spec::whole(3, 8 * TILE_BYTES + 5, Tier::Device);
    let audit = std::num::NonZeroU32::new(1);
    let config = CpuConfig {
        audit,
        ..CpuConfig::default()
    };
    Rig::new(&[spec], &config)
}

/// Runs a window: before pass k, unless it is the first, memory is restored; pass k writes the tiles
/// `writes[k]`. Says whether each pass started from the captured bytes, and the verdict.
fn window(modes: ByTier<RestoreMode>, writes: &[&[u64]]) -> (Vec<bool>, Verdict) {
    let mut rig = rig();
    let mut image = rig.capture();
    let mut good = Vec::new();
    for (pass, tiles) in writes.iter().enumerate() {
        if pass > 0 {
            image = rig.restore(image, modes).image;
            // What restores leave behind is the next pass's input, right or wrong.
            rig.model = rig.read();
        }
        good.push(rig.model == rig.captured);
        for tile in *tiles {
            rig.write_region(0, tile * TILE_BYTES, &[pass as u8 + 1; 4]);
        }
    }
    (good, rig.verify(image).1)
}

fn unlisted(verdict: &Verdict) -> u64 {
    match verdict {
        Verdict::UnlistedChange { tiles, .. } => *tiles,
        Verdict::Clean => 0,
        other => panic!("{other}"),
    }
}

/// Under every mode that restores completely, every pass starts from the captured bytes; under a
/// list, either it does or the check says that some did not.
#[test]
fn writes_off_the_list_are_put_back_or_found() {
    let cases: &[(&str, &[&[u64]], u64)] = &[
        (
            "the same tiles in every pass",
            &[&[1, 2], &[1, 2], &[1, 2], &[1, 2]],
            0,
        ),
        (
            "off the list only in pass 1",
            &[&[1], &[1, 5], &[1], &[1]],
            1,
        ),
        (
            "off the list only in pass 2",
            &[&[1], &[1], &[1, 5], &[1]],
            1,
        ),
        (
            "off the list only in the last pass",
            &[&[1], &[1], &[1], &[1, 5]],
            1,
        ),
        (
            "a different tile in each pass",
            &[&[0], &[1], &[2], &[8]],
            3,
        ),
        ("fewer tiles later on", &[&[1, 2, 3], &[2], &[], &[3]], 0),
        ("nothing in pass 0", &[&[], &[4], &[4], &[4]], 1),
    ];
    for (name, writes, expected) in cases {
        for modes in [FULL, EVERY] {
            let (good, verdict) = window(modes, writes);
            assert_eq!(good, [true; 4], "{name}");
            assert_eq!(verdict, Verdict::Clean, "{name}");
        }
        let (good, verdict) = window(ONCE, writes);
        assert_eq!(unlisted(&verdict), *expected, "{name}");
        assert_eq!(
            good[..2],
            [true; 2],
            "{name}: the first restore is complete"
        );
        assert!(good == [true; 4] || verdict != Verdict::Clean, "{name}");
    }
}

/// A byte off the list changes in one pass and back in the next. A list cannot see it: the miss is
/// documented at `CpuBlit::verify`, and why hash-once is chosen only for kernels known to repeat
/// their list. The other modes see it or undo it.
#[test]
fn a_toggler_escapes_a_list_and_nothing_else() {
    let run = |modes| {
        let mut rig = rig();
        let mut image = rig.capture();
        let (mut good, mut changed) = (Vec::new(), Vec::new());
        for pass in 0..4u64 {
            if pass > 0 {
                let CpuRestored {
                    image: next,
                    report,
                } = rig.restore(image, modes);
                image = next;
                rig.model = rig.read();
                changed.push(report.tiles_changed.device);
            }
            good.push(rig.model == rig.captured);
            rig.write_region(0, TILE_BYTES, &[pass as u8; 64]);
            if pass > 0 {
                let at = rig.offset(rig.regions[0].base()) + 5 * TILE_BYTES as usize;
                let toggled = !rig.model[at];
                rig.write(at, &[toggled]);
            }
        }
        // The last pass has just toggled: back again under a list, for good measure.
        if modes == ONCE {
            let at = rig.offset(rig.regions[0].base()) + 5 * TILE_BYTES as usize;
            let before = rig.captured[at];
            rig.write(at, &[before]);
        }
        (good, changed, rig.verify(image).1)
    };
    let (good, changed, verdict) = run(EVERY);
    assert_eq!((good, verdict), (vec![true; 4], Verdict::Clean));
    assert_eq!(
        changed,
        [1, 2, 2],
        "each pass but the first is seen to write there"
    );
    let (good, _, verdict) = run(FULL);
    assert_eq!((good, verdict), (vec![true; 4], Verdict::Clean));
    let (good, _, verdict) = run(ONCE);
    assert_eq!(
        good,
        [true, true, false, true],
        "pass 2 started from a toggled byte"
    );
    assert_eq!(verdict, Verdict::Clean, "and the end shows nothing of it");
}

/// The traces of a change off the list are counted before anything removes them.
#[test]
fn no_restore_hides_a_change_off_the_list() {
    for modes in [FULL, EVERY] {
        let mut rig = rig();
        let image = rig.capture();
        rig.write_region(0, 0, &[1; 4]);
        let image = rig.restore(image, ONCE).image;
        rig.write_region(0, 0, &[2; 4]);
        rig.write_region(0, 6 * TILE_BYTES, &[2; 4]);
        let image = rig.restore(image, ONCE).image;
        let CpuRestored { image, report } = rig.restore(image, modes);
        assert_eq!(report.tiles_unlisted, 1);
        assert_eq!(rig.read(), rig.captured);
        let (image, verdict) = rig.verify(image);
        let first = kr_types::DeviceAddr(rig.regions[0].base().0 + 6 * TILE_BYTES);
        assert_eq!(verdict, Verdict::UnlistedChange { tiles: 1, first });
        // What a check has said it does not say again: the passes after it are repeated ones.
        assert_eq!(rig.verify(image).1, Verdict::Clean);
    }
}

/// A deterministic kernel leaves the same bytes whatever the mode, those of a single run.
#[test]
fn modes_do_not_change_what_a_kernel_computes() {
    let kernel = |rig: &mut Rig| {
        // Reads and writes in place, so a second run on its own output would show.
        rig.model = rig.read();
        for tile in [0, 3, 8] {
            let at = rig.offset(rig.regions[0].base()) + tile * TILE_BYTES as usize;
            let sums: Vec<u8> = (at..at + 5)
                .map(|i| rig.model[i].wrapping_mul(3) ^ 1)
                .collect();
            rig.write(at, &sums);
        }
    };
    let mut single = rig();
    kernel(&mut single);
    let mixed = ByTier {
        device: RestoreMode::HashOnce,
        pinned_host: RestoreMode::Full,
    };
    for modes in [FULL, EVERY, ONCE, mixed] {
        let mut rig = rig();
        let mut image = rig.capture();
        for pass in 0..5 {
            if pass > 0 {
                image = rig.restore(image, modes).image;
            }
            kernel(&mut rig);
        }
        assert_eq!(rig.read(), single.read(), "{modes:?}");
        assert_eq!(rig.verify(image).1, Verdict::Clean);
    }
}

#[test]
fn outputs_of_passes_are_compared() {
    let mut rig = rig();
    let image = rig.capture();
    let pass = |rig: &mut Rig, value: u8| rig.write_region(0, 2 * TILE_BYTES - 2, &[value; 4]);
    pass(&mut rig, 1);
    let CpuRestored { image, report } = rig.restore(image, EVERY);
    assert_eq!((report.outputs_differ, report.list_repeated), (None, None));
    pass(&mut rig, 1);
    let CpuRestored { image, report } = rig.restore(image, EVERY);
    assert_eq!(
        (report.outputs_differ, report.list_repeated),
        (Some(0), Some(true))
    );
    pass(&mut rig, 2);
    let CpuRestored { image, report } = rig.restore(image, EVERY);
    let got = (report.outputs_differ, report.list_repeated);
    assert_eq!(got, (Some(2), Some(true)), "the same tiles, other bytes");
    let CpuRestored { image, report } = rig.restore(image, EVERY);
    let got = (report.outputs_differ, report.list_repeated);
    assert_eq!(got, (Some(2), Some(false)), "a pass that wrote nothing");
    let CpuRestored { image, report } = rig.restore(image, FULL);
    assert_eq!((report.outputs_differ, report.list_repeated), (None, None));
    let CpuRestored { image, report } = rig.restore(image, EVERY);
    assert_eq!(
        report.outputs_differ, None,
        "the pass before was not hashed"
    );
    let recaptured = rig.recapture(image);
    let report = rig.restore(recaptured.image, EVERY).report;
    assert_eq!(
        (report.outputs_differ, report.list_repeated),
        (None, None),
        "a new window"
    );
}

/// Only the lines that differ are written, wherever in a line the change is.
#[test]
fn a_changed_tile_is_patched() {
    let mut rig = rig();
    let image = rig.capture();
    for at in [0, 63, 64 * 7, TILE_BYTES - 1, 8 * TILE_BYTES + 4] {
        rig.write_region(
            0,
            at,
            &[!rig.model[rig.offset(rig.regions[0].base()) + at as usize]],
        );
    }
    let report = rig.restore(image, EVERY).report;
    assert_eq!(report.bytes_copied, TILE_BYTES + 5);
    assert_eq!(report.bytes_written, 64 + 64 + 64 + 5);
    assert_eq!(rig.read(), rig.captured);
}

/// Uniform tiles are put back in every mode although nothing of them is in the arena.
#[test]
fn uniform_tiles_are_not_saved() {
    for modes in [FULL, EVERY, ONCE] {
        let mut rig = rig();
        rig.write_region(0, 0, &[0; 3 * TILE_BYTES as usize]);
        rig.write_region(0, 4 * TILE_BYTES, &[1, 2, 3, 4, 5, 6, 7, 8].repeat(2048));
        let arena = |rig: &Rig, tile: u64| {
            let mut bytes = vec![0; TILE_BYTES as usize];
            let at = rig.extents[0].saved().0 + tile * TILE_BYTES;
            rig.device
                .read_bytes(kr_types::DeviceAddr(at), &mut bytes)
                .unwrap();
            bytes
        };
        let mut image = rig.capture();
        for tile in [0, 1, 2, 4] {
            assert!(arena(&rig, tile).iter().all(|b| *b == 0xa5), "untouched");
        }
        assert!(arena(&rig, 3).iter().any(|b| *b != 0xa5));
        for pass in 1..4 {
            rig.write_region(0, TILE_BYTES - 3, &[pass; 10]);
            rig.write_region(0, 4 * TILE_BYTES + 9, &[pass; 100]);
            image = rig.restore(image, modes).image;
            assert_eq!(rig.read(), rig.captured, "{modes:?}");
        }
        assert_eq!(rig.verify(image).1, Verdict::Clean);
    }
}

/// Damage to saved bytes is found by the audit, and comes before every other verdict.
#[test]
fn damage_to_the_saved_bytes_is_found_and_located() {
    let mut rig = rig();
    let image = rig.capture();
    let image = rig.restore(rig.restore(image, ONCE).image, ONCE).image;
    rig.write_region(0, 0, &[9; 9]);
    let extent = rig.extents[0];
    let hit = kr_types::DeviceAddr(extent.saved().0 + 2 * TILE_BYTES + 17);
    rig.device.write_bytes(hit, &[0xff; 2]).unwrap();
    let first = kr_types::DeviceAddr(extent.live().0 + 2 * TILE_BYTES);
    let verdict = rig.verify(image).1;
    assert_eq!(verdict, Verdict::ImageDamaged { tiles: 1, first });
}

/// Each window audits other tiles, so that all have had their turn in the end.
#[test]
fn audits_take_turns() {
    let spec = Spec::whole(0, 8 * TILE_BYTES, Tier::PinnedHost);
    let audit = std::num::NonZeroU32::new(4);
    let config = CpuConfig {
        audit,
        ..CpuConfig::default()
    };
    let mut rig = Rig::new(&[spec], &config);
    let mut image = rig.capture();
    let hit = kr_types::DeviceAddr(rig.extents[0].saved().0 + 6 * TILE_BYTES);
    rig.device.write_bytes(hit, &[1, 2, 3]).unwrap();
    let mut found = Vec::new();
    for _ in 0..4 {
        let verdict;
        (image, verdict) = rig.verify(image);
        found.push(verdict != Verdict::Clean);
        image = rig.recapture(image).image;
    }
    assert_eq!(found, [false, false, true, false]);
}

/// At an equal generation of the inventory nobody is asked; a region that is gone stays gone.
#[test]
fn regions_are_asked_about_once_per_generation() {
    let specs = [1, 2, 3].map(|len| Spec::whole(1, len * TILE_BYTES + 1, Tier::Device));
    let mut rig = Rig::new(&specs, &CpuConfig::default());
    let mut image = rig.capture();
    image.listed_at(InventoryGeneration(7));
    let (asked, gone) = (Cell::new(0), Cell::new(false));
    let restore = |rig: &Rig, image, at: Option<u64>| {
        let alive = |region: &kr_types::Region| {
            asked.set(asked.get() + 1);
            !gone.get() || *region != rig.regions[1]
        };
        let liveness = match at {
            Some(at) => Liveness::at(InventoryGeneration(at), &alive),
            None => Liveness::ask(&alive),
        };
        // SAFETY: the rig's blocks are alive, and nothing else uses them.
        unsafe { rig.engine.restore(image, FULL, liveness, LIMIT) }.unwrap()
    };
    let image = restore(&rig, image, Some(7)).image;
    assert_eq!(asked.take(), 0);
    let image = restore(&rig, image, Some(8)).image;
    let image = restore(&rig, image, Some(8)).image;
    assert_eq!(asked.take(), 3);
    let image = restore(&rig, image, None).image;
    let image = restore(&rig, image, None).image;
    assert_eq!(asked.take(), 6, "without a generation every restore asks");
    gone.set(true);
    let CpuRestored { image, report } = restore(&rig, image, Some(9));
    assert_eq!(report.bytes_retired, 2 * TILE_BYTES + 1);
    gone.set(false);
    let report = restore(&rig, image, Some(10)).report;
    assert_eq!(
        report.bytes_retired,
        2 * TILE_BYTES + 1,
        "an address used again is another region"
    );
}

/// What each window copies when few tiles change between windows.
#[test]
fn an_image_is_kept_current_by_copying_what_changed() {
    let config = CpuConfig {
        incremental: std::num::NonZeroU32::new(3),
        ..CpuConfig::default()
    };
    let mut rig = Rig::new(&[Spec::whole(3, 8 * TILE_BYTES, Tier::Device)], &config);
    let mut image = rig.capture();
    for window in 1..=6u64 {
        rig.write_region(0, window * TILE_BYTES + 5, &[window as u8; 20]);
        let recaptured = rig.recapture(image);
        assert_eq!(recaptured.full, window % 3 == 0, "window {window}");
        let tiles = if recaptured.full { 8 } else { 1 };
        assert_eq!(
            recaptured.bytes_copied,
            tiles * TILE_BYTES,
            "window {window}"
        );
        rig.write_region(0, 0, &[window as u8; 8 * TILE_BYTES as usize]);
        image = rig.restore(recaptured.image, FULL).image;
        assert_eq!(rig.read(), rig.captured);
        rig.model = rig.captured.clone();
    }
    // With digests of 64 bits a miss would stay, so everything is copied.
    let config = CpuConfig {
        incremental: None,
        ..CpuConfig::default()
    };
    let mut rig = Rig::new(&[Spec::whole(3, 8 * TILE_BYTES, Tier::Device)], &config);
    let image = rig.capture();
    let recaptured = rig.recapture(image);
    assert!(recaptured.full && recaptured.bytes_copied == 8 * TILE_BYTES);
}

/// The host keeps little of what it saves: at most 0.2 % for regions of 1 MiB, with everything that
/// an image may grow to, and all digests of 128 bits.
#[test]
fn an_image_is_small() {
    let specs: Vec<_> = (0..64)
        .map(|_| Spec::whole(0, 1 << 20, Tier::Device))
        .collect();
    let mut rig = Rig::new(&specs, &CpuConfig::default());
    let image = rig.capture();
    let before = image.host_bytes();
    let image = rig.restore(image, EVERY).image;
    assert!(
        image.host_bytes() >= before + 8 * 64 * 64,
        "outputs are counted"
    );
    let share = image.host_bytes() as f64 / (64 << 20) as f64;
    assert!(share < 0.002, "{share}");
    assert!(share > 0.001, "{share}: not everything is counted");
}

/// Nothing is a possible list of extents too.
#[test]
fn nothing_can_be_saved_and_put_back() {
    let mut rig = Rig::new(&[], &CpuConfig::default());
    let image = rig.capture();
    let CpuRestored { image, report } = rig.restore(image, EVERY);
    assert_eq!(report.bytes_copied, 0);
    assert_eq!(rig.verify(rig.restore(image, ONCE).image).1, Verdict::Clean);
}

/// 65,536 regions of one byte each.
#[test]
fn very_many_tiny_regions() {
    let specs = vec![Spec::whole(1, 1, Tier::PinnedHost); 65_536];
    let mut rig = Rig::new(&specs, &CpuConfig::default());
    let image = rig.capture();
    let all = vec![0x77; rig.model.len()];
    rig.write(0, &all);
    let CpuRestored { image, report } = rig.restore(image, EVERY);
    rig.put_all_back();
    rig.check();
    assert_eq!(report.bytes_copied, report.tiles_changed.pinned_host);
    assert!(
        report.bytes_copied > 65_000,
        "some bytes may have been 0x77 before"
    );
    assert_eq!(rig.verify(image).1, Verdict::Clean);
}
