//! What a caller may rely on, call by call.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

use kr_types::{AgentId, DeviceAddr, InventoryGeneration, MemoryClass, RangeError, Region};

use crate::{
    AlreadyClaimed, DispatchGuard, Footprint, Freed, OpenError, RecordError, Release, Tracker,
    TrackerConfig,
};

const A: AgentId = AgentId(1);
const B: AgentId = AgentId(2);
const FAR: Duration = Duration::from_secs(60);
const SOON: Duration = Duration::from_millis(20);

fn tracker() -> Tracker<u32> {
    Tracker::new(TrackerConfig::default())
}

fn vram(tracker: &Tracker<u32>, agent: AgentId, base: u64, len: u64) -> Region {
    tracker
        .record(agent, DeviceAddr(base), len, MemoryClass::Vram)
        .expect("the range is free")
        .expect("the tracker is on")
}

fn release(freed: Freed<u32>) -> Release<u32> {
    match freed {
        Freed::Release(release) => release,
        other => panic!("expected a release, got {other:?}"),
    }
}

#[track_caller]
fn assert_parked(freed: Freed<u32>) {
    assert!(matches!(freed, Freed::Parked), "{freed:?}");
}

/// Until someone waits at the agent, so that what comes next comes after.
fn until_waiting(tracker: &Tracker<u32>, agent: AgentId, count: usize) {
    while tracker.gate(agent).waiting() != count {
        thread::yield_now();
    }
}

#[test]
fn off_leaves_no_trace_and_switching_on_late_says_so() {
    let tracker = Tracker::disabled(TrackerConfig::default());
    let at = DeviceAddr(0x1000);
    assert_eq!(tracker.record(A, at, 64, MemoryClass::Vram), Ok(None));
    assert_eq!(tracker.record(A, at, 0, MemoryClass::Vram), Ok(None));
    assert!(matches!(tracker.free(at, 7), Freed::Unknown(7)));
    assert_eq!(tracker.footprint(A), Footprint::default());
    assert_eq!(
        tracker.inventory_generation(A),
        InventoryGeneration::default()
    );

    tracker.enable();
    assert!(tracker.is_enabled());
    assert_eq!(tracker.region_at(at), None);
    assert!(tracker.footprint(A).untracked && tracker.footprint(B).untracked);
    vram(&tracker, A, 0x1000, 64);
    assert_eq!(tracker.footprint(A).bytes, 64);
}

#[test]
fn switching_on_what_is_on_changes_nothing() {
    let tracker = tracker();
    tracker.enable();
    assert!(!tracker.footprint(A).untracked);
}

#[test]
fn the_footprint_counts_captured_classes_of_one_agent() {
    let tracker = tracker();
    vram(&tracker, A, 0x1000, 64);
    vram(&tracker, B, 0x2000, 1);
    for (base, class) in [
        (0x3000, MemoryClass::ModuleVariable),
        (0x4000, MemoryClass::Runtime),
    ] {
        tracker.record(A, DeviceAddr(base), 4, class).unwrap();
    }
    let mut expected = Footprint {
        bytes: 68,
        regions: 2,
        untracked: false,
    };
    assert_eq!(tracker.footprint(A), expected);

    release(tracker.free(DeviceAddr(0x4000), 0)).into_token();
    assert_eq!(tracker.footprint(A), expected);
    release(tracker.free(DeviceAddr(0x1000), 0)).into_token();
    (expected.bytes, expected.regions) = (4, 1);
    assert_eq!(tracker.footprint(A), expected);
}

#[test]
fn addresses_are_found_inside_and_only_inside() {
    let tracker = tracker();
    let region = vram(&tracker, A, 0x1000, 16);
    for (addr, found) in [
        (0, None),
        (0xfff, None),
        (0x1000, Some(region)),
        (0x100f, Some(region)),
        (0x1010, None),
        (u64::MAX, None),
    ] {
        assert_eq!(tracker.region_at(DeviceAddr(addr)), found, "{addr:#x}");
    }
    assert!(
        matches!(tracker.free(DeviceAddr(0x1001), 5), Freed::Unknown(5)),
        "the middle of a region is not its base"
    );
}

#[test]
fn a_reused_address_is_another_allocation() {
    let tracker = tracker();
    let first = vram(&tracker, A, 0x1000, 16);
    release(tracker.free(first.base(), 0)).into_token();
    let second = vram(&tracker, A, 0x1000, 16);
    assert!(second.generation() > first.generation());
    assert!(!tracker.is_live(&first) && tracker.is_live(&second));

    let mut window = tracker.open_window(A, FAR).unwrap();
    window.capture_list();
    assert!(!window.holds(&first) && window.holds(&second));
}

#[test]
fn identity_is_every_field() {
    let tracker = tracker();
    let region = vram(&tracker, A, 0x1000, 16);
    let with = |agent, len, class| {
        Region::new(agent, region.base(), len, region.generation(), class).unwrap()
    };
    assert!(tracker.is_live(&with(A, 16, MemoryClass::Vram)));
    assert!(!tracker.is_live(&with(B, 16, MemoryClass::Vram)));
    assert!(!tracker.is_live(&with(A, 15, MemoryClass::Vram)));
    assert!(!tracker.is_live(&with(A, 16, MemoryClass::ModuleVariable)));
}

#[test]
fn the_inventory_generation_moves_with_every_change_of_its_agent() {
    let tracker = tracker();
    let mut seen = vec![tracker.inventory_generation(A)];
    let mut note = |tracker: &Tracker<u32>| {
        let now = tracker.inventory_generation(A);
        assert!(now > *seen.last().unwrap(), "after {seen:?}");
        seen.push(now);
    };
    let region = vram(&tracker, A, 0x1000, 16);
    note(&tracker);
    let parting = release(tracker.free(region.base(), 0));
    note(&tracker);
    parting.run(&tracker, |_| Err::<(), _>(())).unwrap_err();
    note(&tracker);
    let mut window = tracker.open_window(A, FAR).unwrap();
    assert_eq!(
        window.capture_list().generation,
        tracker.inventory_generation(A)
    );
    assert_parked(tracker.free(region.base(), 0));
    note(&tracker);

    let before = tracker.inventory_generation(A);
    vram(&tracker, B, 0x2000, 16);
    assert_eq!(window.close(), [0]);
    assert_eq!(tracker.inventory_generation(A), before);
}

#[test]
fn a_failed_free_puts_the_same_allocation_back() {
    let tracker = tracker();
    let region = vram(&tracker, A, 0x1000, 16);
    let parting = release(tracker.free(region.base(), 9));
    assert_eq!(*parting.region(), region);
    assert_eq!(
        tracker.region_at(region.base()),
        None,
        "out before the free"
    );
    let failed = parting.run(&tracker, |token| {
        assert_eq!(tracker.footprint(A), Footprint::default());
        Err::<(), _>(token)
    });
    assert_eq!(failed, Err(9));
    assert!(tracker.is_live(&region));
    assert_eq!(tracker.footprint(A).bytes, 16);

    let done = release(tracker.free(region.base(), 9)).run(&tracker, Ok::<_, ()>);
    assert_eq!(done, Ok(9));
    assert!(!tracker.is_live(&region) && !tracker.footprint(A).untracked);
}

#[test]
fn a_free_that_panics_leaves_its_agent_untracked() {
    let tracker = tracker();
    let region = vram(&tracker, A, 0x1000, 16);
    let parting = release(tracker.free(region.base(), 9));
    catch_unwind(AssertUnwindSafe(|| {
        parting.run(&tracker, |_| -> Result<(), ()> { panic!("on purpose") })
    }))
    .unwrap_err();
    assert!(!tracker.is_live(&region));
    assert!(tracker.footprint(A).untracked && !tracker.footprint(B).untracked);
}

#[test]
fn bad_ranges_are_refused_and_leave_their_agent_untracked() {
    for (base, len) in [(0x1000, 0), (0, 16), (u64::MAX, 2)] {
        let tracker = tracker();
        let error = tracker
            .record(A, DeviceAddr(base), len, MemoryClass::Vram)
            .unwrap_err();
        assert!(matches!(error, RecordError::Range(_)), "{error:?}");
        assert!(tracker.footprint(A).untracked && !tracker.footprint(B).untracked);
    }
    let error = RecordError::from(RangeError::Null { len: 3 });
    assert!(std::error::Error::source(&error).is_some());
}

#[test]
fn an_overlap_forgets_what_it_overlaps_and_leaves_the_agents_untracked() {
    let tracker = tracker();
    let low = vram(&tracker, A, 0x1000, 16);
    let high = vram(&tracker, B, 0x1010, 16);
    let beside = vram(&tracker, AgentId(3), 0x1020, 16);
    let error = tracker
        .record(A, DeviceAddr(0x100f), 0x11, MemoryClass::Vram)
        .unwrap_err();
    assert_eq!(
        error,
        RecordError::Overlaps {
            base: DeviceAddr(0x100f),
            len_bytes: 0x11,
            existing: low
        }
    );
    assert!(!tracker.is_live(&low) && !tracker.is_live(&high) && tracker.is_live(&beside));
    for (agent, untracked) in [(A, true), (B, true), (AgentId(3), false)] {
        assert_eq!(tracker.footprint(agent).untracked, untracked, "{agent}");
    }
    assert!(matches!(tracker.free(low.base(), 1), Freed::Unknown(1)));
    assert_eq!(tracker.footprint(A).bytes, 0);
}

#[test]
fn a_window_lists_captured_classes_by_address() {
    let tracker = tracker();
    let last = vram(&tracker, A, 0x3000, 16);
    let first = vram(&tracker, A, 0x1000, 16);
    vram(&tracker, B, 0x2000, 16);
    tracker
        .record(A, DeviceAddr(0x4000), 16, MemoryClass::Runtime)
        .unwrap();
    let mut window = tracker.open_window(A, FAR).unwrap();
    assert!(!window.holds(&first), "nothing is held before it is listed");
    assert_eq!(window.capture_list().regions, [first, last]);
    assert!(window.holds(&first) && window.holds(&last));
}

#[test]
fn a_free_of_held_memory_is_parked_until_the_window_closes() {
    let config = TrackerConfig::default().with_parked_bound_bytes(16);
    let tracker = Tracker::new(config);
    let held = vram(&tracker, A, 0x1000, 16);
    let other = vram(&tracker, B, 0x2000, 16);
    let mut window = tracker.open_window(A, FAR).unwrap();
    window.capture_list();
    let late = vram(&tracker, A, 0x3000, 1);
    let runtime = tracker
        .record(A, DeviceAddr(0x4000), 16, MemoryClass::Runtime)
        .unwrap()
        .unwrap();

    assert_parked(tracker.free(held.base(), 1));
    assert!(!tracker.is_live(&held) && tracker.region_at(held.base()).is_none());
    assert!(window.holds(&held));
    for at_once in [other, late, runtime] {
        assert!(!window.holds(&at_once));
        release(tracker.free(at_once.base(), 2)).into_token();
    }
    assert_eq!(window.parked_bytes(), 16);
    assert!(!window.parked_over_bound(), "the bound itself is within");

    let more = vram(&tracker, A, 0x3000, 1);
    assert_eq!(window.capture_list().regions, [more]);
    assert!(window.holds(&held), "a second list drops nothing");
    assert_parked(tracker.free(more.base(), 3));
    assert!(window.parked_over_bound());
    assert_eq!(window.close(), [1, 3]);

    let again = vram(&tracker, A, 0x1000, 16);
    let mut window = tracker.open_window(A, FAR).unwrap();
    assert_eq!(window.parked_bytes(), 0);
    assert_eq!(window.capture_list().regions, [again]);
    assert!(!window.holds(&held));
}

#[test]
fn parked_memory_is_not_freed_by_a_second_free() {
    let tracker = tracker();
    vram(&tracker, A, 0x1000, 16);
    let mut window = tracker.open_window(A, FAR).unwrap();
    window.capture_list();
    assert_parked(tracker.free(DeviceAddr(0x1000), 1));
    assert!(matches!(
        tracker.free(DeviceAddr(0x1000), 2),
        Freed::Again(2)
    ));
    assert_eq!(window.close(), [1]);
    assert!(matches!(
        tracker.free(DeviceAddr(0x1000), 3),
        Freed::Unknown(3)
    ));
}

#[test]
fn an_allocation_over_parked_memory_ends_the_hold_and_loses_no_free() {
    let tracker = tracker();
    let held = vram(&tracker, A, 0x1000, 16);
    let mut window = tracker.open_window(A, FAR).unwrap();
    window.capture_list();
    assert_parked(tracker.free(held.base(), 1));
    let record = |len| tracker.record(A, held.base(), len, MemoryClass::Vram);
    record(8).unwrap_err();
    assert!(!window.holds(&held));
    assert_eq!(window.parked_bytes(), 0);
    assert!(tracker.footprint(A).untracked);

    let next = record(16).unwrap().unwrap();
    assert_eq!(window.close(), [1]);
    assert!(tracker.is_live(&next), "closing touches nothing else there");
}

#[test]
fn a_dropped_window_leaves_its_parked_frees_and_the_agent() {
    let tracker = tracker();
    vram(&tracker, A, 0x1000, 16);
    vram(&tracker, A, 0x2000, 16);
    for (base, token) in [(0x1000, 1), (0x2000, 2)] {
        catch_unwind(AssertUnwindSafe(|| {
            let mut window = tracker.open_window(A, FAR).unwrap();
            window.capture_list();
            assert_parked(tracker.free(DeviceAddr(base), token));
            panic!("on purpose");
        }))
        .unwrap_err();
        if token == 1 {
            assert_eq!(tracker.take_orphans(), [1]);
        }
    }
    let window = tracker.open_window(B, SOON).unwrap();
    assert_eq!(window.close(), [2]);
    assert!(tracker.open_window(A, SOON).is_ok());
    assert!(tracker.take_orphans().is_empty());
}

/// Work that outlives its window keeps the memory that it touches, and windows out, until it has
/// ended; dispatches go on.
#[test]
fn an_abandoned_window_holds_its_memory_until_it_is_released() {
    let tracker = tracker();
    let region = vram(&tracker, A, 0x1000, 64);
    let mut window = tracker.open_window(A, FAR).expect("nobody is inside");
    window.capture_list();
    let hold = window.abandon();
    assert_parked(tracker.free(region.base(), 7));
    drop(tracker.enter_dispatch(A));
    let refused = tracker.open_window(A, FAR).expect_err("its memory is held");
    assert_eq!(refused, OpenError::Held { agent: A });
    assert!(tracker.open_window(B, FAR).is_ok());
    assert_eq!(tracker.release(hold), [7]);
    assert!(tracker.open_window(A, FAR).is_ok());

    let hold = tracker
        .open_window(A, FAR)
        .expect("nothing is held")
        .abandon();
    assert!(tracker.open_window(A, FAR).is_err());
    assert!(tracker.release(hold).is_empty());
    assert!(tracker.open_window(A, FAR).is_ok());
}

#[test]
fn a_window_keeps_others_out_of_its_agent_only() {
    let tracker = tracker();
    let window = tracker.open_window(A, FAR).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            assert!(tracker.try_enter_dispatch(A).is_none());
            let busy = tracker.open_window(A, SOON).unwrap_err();
            assert!(
                matches!(busy, OpenError::Busy { agent: A, waited } if waited >= SOON),
                "{busy:?}"
            );
            assert!(tracker.try_enter_dispatch(B).is_some());
            assert!(tracker.open_window(B, Duration::ZERO).is_ok());
        });
    });
    assert!(!window.is_reentered(), "other threads do not re-enter it");
    drop(window);
    assert!(tracker.try_enter_dispatch(A).is_some());
    assert_eq!(tracker.gate(A).waiting(), 0);
}

#[test]
fn no_limit_is_too_long() {
    assert!(tracker().open_window(A, Duration::MAX).is_ok());
}

#[test]
fn dispatches_share_an_agent_and_a_window_waits_for_all() {
    let tracker = tracker();
    let mine = tracker.enter_dispatch(A);
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            drop(tracker.enter_dispatch(A));
            tracker.open_window(A, SOON).map(drop)
        });
        assert!(matches!(
            other.join().unwrap(),
            Err(OpenError::Busy { agent: A, .. })
        ));
        let other = scope.spawn(|| tracker.open_window(A, FAR).map(drop));
        until_waiting(&tracker, A, 1);
        let later = scope.spawn(|| tracker.try_enter_dispatch(A).is_some());
        assert!(!later.join().unwrap(), "the window comes first");
        drop(mine);
        other.join().unwrap().unwrap();
    });
}

#[test]
fn who_comes_first_is_served_first() {
    let tracker = tracker();
    let turns = Mutex::new(Vec::new());
    let first = tracker.open_window(A, FAR).unwrap();
    thread::scope(|scope| {
        for (waiting, window) in [(1, false), (2, true), (3, false), (4, true)] {
            let (tracker, turns) = (&tracker, &turns);
            scope.spawn(move || {
                let _window;
                let _dispatch;
                if window {
                    _window = tracker.open_window(A, FAR).unwrap();
                } else {
                    _dispatch = tracker.enter_dispatch(A);
                }
                turns.lock().unwrap().push(waiting);
            });
            until_waiting(tracker, A, waiting);
        }
        assert!(tracker.try_enter_dispatch(B).is_some());
        drop(first);
    });
    assert_eq!(turns.into_inner().unwrap(), [1, 2, 3, 4]);
}

#[test]
fn a_window_that_gives_up_lets_those_behind_it_in() {
    let tracker = tracker();
    let inside = tracker.enter_dispatch(A);
    thread::scope(|scope| {
        let opener = scope.spawn(|| tracker.open_window(A, SOON).map(drop).unwrap_err());
        while tracker.gate(A).waiting() == 0 && !opener.is_finished() {
            thread::yield_now();
        }
        let behind = scope.spawn(|| drop(tracker.enter_dispatch(A)));
        behind.join().unwrap();
        opener.join().unwrap();
    });
    assert_eq!(tracker.gate(A).waiting(), 0);
    drop(inside);
}

#[test]
fn a_thread_does_not_wait_for_itself() {
    let tracker = tracker();
    let window = tracker.open_window(A, FAR).unwrap();
    assert!(!window.is_reentered());

    let other = tracker.open_window(B, FAR).unwrap();
    assert!(tracker.enter_dispatch(B).reentrant());
    assert!(other.is_reentered() && !window.is_reentered());
    drop(other);

    assert!(tracker.enter_dispatch(A).reentrant(), "not lost meanwhile");
    assert!(window.is_reentered());
    drop(window);
    let window = tracker.open_window(A, FAR).unwrap();
    assert!(!window.is_reentered(), "the next window starts afresh");
    let nested = tracker.open_window(A, FAR).unwrap_err();
    assert_eq!(nested, OpenError::Reentrant { agent: A });
    assert!(window.is_reentered());
    assert!(
        tracker
            .try_enter_dispatch(A)
            .is_some_and(|guard| guard.reentrant())
    );
    let stranger = self::tracker();
    assert!(!stranger.enter_dispatch(A).reentrant(), "another tracker");
}

#[test]
fn a_dispatch_within_a_dispatch_passes_the_line() {
    let tracker = tracker();
    let outer = tracker.enter_dispatch(A);
    thread::scope(|scope| {
        let window = scope.spawn(|| tracker.open_window(A, FAR).map(drop));
        until_waiting(&tracker, A, 1);
        let inner = tracker.enter_dispatch(A);
        assert!(!inner.reentrant() && inner.agent() == A);
        assert_eq!(
            tracker.open_window(A, FAR).map(drop),
            Err(OpenError::Reentrant { agent: A })
        );
        drop(outer);
        let still = tracker.try_enter_dispatch(A).expect("inner is inside");
        drop(inner);
        assert_eq!(tracker.gate(A).waiting(), 1);
        drop(still);
        window.join().unwrap().unwrap();
    });
}

/// Two callbacks that each want into the other's agent do not wait for each other forever, and both
/// windows learn that they were not alone.
#[test]
fn nested_dispatches_of_two_windows_do_not_dead_lock() {
    let tracker = tracker();
    let both_open = Barrier::new(2);
    let both_gave_up = Barrier::new(2);
    let nested = |own, other| {
        let window = tracker.open_window(own, FAR).expect("nobody is inside");
        both_open.wait();
        assert!(!window.is_reentered());
        let beside = tracker.enter_dispatch_nested(other, SOON);
        assert!(beside.beside_window() && !beside.reentrant());
        both_gave_up.wait();
        assert!(window.is_reentered());
    };
    thread::scope(|scope| {
        scope.spawn(|| nested(A, B));
        nested(B, A);
    });
    // The mark goes with the window, and a thread without one waits for its turn.
    let window = tracker.open_window(A, FAR).expect("nobody is inside");
    assert!(!window.is_reentered());
    thread::scope(|scope| {
        let entered = scope.spawn(|| !tracker.enter_dispatch_nested(A, SOON).beside_window());
        until_waiting(&tracker, A, 1);
        thread::sleep(2 * SOON);
        assert!(window.close().is_empty());
        assert!(entered.join().expect("it does not panic"));
    });
}

#[test]
fn one_subscriber_at_a_time() {
    let tracker = tracker();
    let claim = tracker.claim().unwrap();
    assert!(matches!(tracker.claim(), Err(AlreadyClaimed)));
    drop(claim);
    let claim = tracker.claim().unwrap();
    drop(tracker);
    drop(claim);
}

#[test]
fn tokens_are_dropped_outside_the_locks() {
    /// Asks the tracker something when dropped, as a token of a backend might.
    struct Nosy(Arc<Tracker<Nosy>>);

    impl Drop for Nosy {
        fn drop(&mut self) {
            self.0.footprint(A);
            drop(self.0.enter_dispatch(B));
        }
    }

    let tracker = Arc::new(Tracker::new(TrackerConfig::default()));
    let token = || Nosy(tracker.clone());
    let base = DeviceAddr(0x1000);
    let record = |len| tracker.record(A, base, len, MemoryClass::Vram);
    record(16).unwrap();
    let mut window = tracker.open_window(A, FAR).unwrap();
    window.capture_list();
    drop(tracker.free(base, token()));
    drop(tracker.free(base, token()));
    drop(tracker.free(DeviceAddr(1), token()));
    assert!(record(8).is_err());
    drop(window.close());
    record(8).unwrap();
    drop(tracker.free(base, token()));
}

#[test]
fn backends_may_share_a_tracker_between_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    shared(&tracker());
    let guard: DispatchGuard = tracker().enter_dispatch(A);
    assert!(format!("{guard:?}").contains("reentrant: false"));
}
