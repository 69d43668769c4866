//! Models of memory: frees and allocations against windows.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering::SeqCst};
use loom::thread;

use kr_types::{DeviceAddr, MemoryClass};

use super::model::{A, B, Memory, addr, check, open, tracker, vram};
use crate::{Freed, Tracker, TrackerConfig};

/// Memory that a window holds is not really freed before it closes, and every free is run once.
#[test]
fn loom_free_against_capture_and_restore() {
    check("free against capture and restore", || {
        let tracker = tracker();
        let memory = Arc::new(Memory::<2>::new());
        let regions = [vram(&tracker, 0), vram(&tracker, 1)];
        let frees: Vec<_> = (0..2)
            .map(|at| {
                let (tracker, memory) = (tracker.clone(), memory.clone());
                thread::spawn(move || memory.free(&tracker, at))
            })
            .collect();

        let mut window = open(&tracker, A);
        let list = window.capture_list().regions;
        for (at, region) in regions.iter().enumerate() {
            // What is listed is held to the end, whatever the application does.
            assert_eq!(window.holds(region), list.contains(region));
            if window.holds(region) {
                assert_eq!(memory.frees(at), 0, "a restore wrote to freed memory");
            }
        }
        for at in window.close() {
            memory.really_free(at);
        }
        for free in frees {
            free.join().unwrap();
        }
        assert_eq!([memory.frees(0), memory.frees(1)], [1, 1]);
    });
}

/// A free that was parked by a window that is dropped comes out once, by whichever window closes
/// next or at the end.
#[test]
fn loom_free_against_a_dropped_window() {
    check("free against a dropped window", || {
        let tracker = tracker();
        let memory = Arc::new(Memory::<1>::new());
        vram(&tracker, 0);
        let free = thread::spawn({
            let (tracker, memory) = (tracker.clone(), memory.clone());
            move || memory.free(&tracker, 0)
        });
        let elsewhere = thread::spawn({
            let (tracker, memory) = (tracker.clone(), memory.clone());
            move || {
                for at in open(&tracker, B).close() {
                    memory.really_free(at);
                }
            }
        });
        let mut window = open(&tracker, A);
        window.capture_list();
        drop(window);
        free.join().unwrap();
        elsewhere.join().unwrap();
        for at in tracker.take_orphans() {
            memory.really_free(at);
        }
        assert_eq!(memory.frees(0), 1);
    });
}

/// Of two windows, the one that parked a free gets it back, and the other never holds its memory.
#[test]
fn loom_free_against_two_windows() {
    check("free against two windows", || {
        let tracker = tracker();
        let memory = Arc::new(Memory::<1>::new());
        let region = vram(&tracker, 0);
        let free = thread::spawn({
            let (tracker, memory) = (tracker.clone(), memory.clone());
            move || memory.free(&tracker, 0)
        });
        let replay = {
            let memory = memory.clone();
            move |tracker: &Tracker<usize>| {
                let mut window = open(tracker, A);
                window.capture_list();
                let held = window.holds(&region);
                if held {
                    assert_eq!(memory.frees(0), 0);
                }
                let frees = window.close();
                assert!(held || frees.is_empty());
                for at in frees {
                    memory.really_free(at);
                }
            }
        };
        let other = thread::spawn({
            let (tracker, replay) = (tracker.clone(), replay.clone());
            move || replay(&tracker)
        });
        replay(&tracker);
        other.join().unwrap();
        free.join().unwrap();
        assert_eq!(memory.frees(0), 1);
    });
}

/// A window never writes to a reused address for an allocation that was there before.
#[test]
fn loom_reuse_of_an_address() {
    check("reuse of an address", || {
        let tracker = tracker();
        let memory = Arc::new(Memory::<1>::new());
        let first = vram(&tracker, 0);
        let reuse = thread::spawn({
            let (tracker, memory) = (tracker.clone(), memory.clone());
            move || {
                // The runtime hands an address out again only once it is really free.
                memory.free(&tracker, 0).then(|| vram(&tracker, 0))
            }
        });
        let mut window = open(&tracker, A);
        let list = window.capture_list().regions;
        for region in [&first].into_iter().chain(&list) {
            if window.holds(region) {
                let incarnation = usize::from(*region != first);
                assert_eq!(memory.frees(0), incarnation, "wrote for {region:?}");
            }
        }
        let parked = window.close();
        for at in &parked {
            memory.really_free(*at);
        }
        let second = reuse.join().unwrap();
        // A free that was parked, or that came after the window.
        let second = second.unwrap_or_else(|| vram(&tracker, 0));
        assert!(!tracker.is_live(&first) && tracker.is_live(&second));

        let mut window = open(&tracker, A);
        assert_eq!(window.capture_list().regions, [second]);
        assert!(!window.holds(&first), "the address alone is no identity");
    });
}

/// A free that fails is undone whole: the allocation is live as it was, and no window holds it
/// while its real free runs.
#[test]
fn loom_failed_free_against_a_window() {
    check("failed free against a window", || {
        let tracker = tracker();
        let region = vram(&tracker, 0);
        let freeing = Arc::new(AtomicBool::new(false));
        let free = thread::spawn({
            let (tracker, freeing) = (tracker.clone(), freeing.clone());
            move || match tracker.free(addr(0), 0) {
                Freed::Release(release) => {
                    let failed = release.run(&tracker, |at| {
                        freeing.store(true, SeqCst);
                        freeing.store(false, SeqCst);
                        Err::<(), _>(at)
                    });
                    assert_eq!(failed, Err(0));
                    false
                }
                Freed::Parked => true,
                other => panic!("the address is tracked: {other:?}"),
            }
        });
        let mut window = open(&tracker, A);
        window.capture_list();
        if window.holds(&region) {
            assert!(!freeing.load(SeqCst));
        }
        let frees = window.close();
        let parked = free.join().unwrap();
        assert_eq!(frees.len(), usize::from(parked));
        assert_eq!(tracker.is_live(&region), !parked);
    });
}

/// Nobody finds the tracker on and its agent without the mark that earlier memory is unknown.
#[test]
fn loom_record_against_switching_on() {
    check("record against switching on", || {
        let tracker = Arc::new(Tracker::<usize>::disabled(TrackerConfig::default()));
        let allocates = thread::spawn({
            let tracker = tracker.clone();
            move || {
                let recorded = tracker
                    .record(A, DeviceAddr(0x1000), 16, MemoryClass::Vram)
                    .unwrap();
                let footprint = tracker.footprint(A);
                assert!(recorded.is_none() || footprint.untracked);
                recorded
            }
        });
        let frees = thread::spawn({
            let tracker = tracker.clone();
            move || {
                if let Freed::Release(release) = tracker.free(DeviceAddr(0x1000), 7) {
                    assert!(tracker.footprint(A).untracked);
                    assert_eq!(release.into_token(), 7);
                }
            }
        });
        tracker.enable();
        assert!(tracker.footprint(A).untracked);
        allocates.join().unwrap();
        frees.join().unwrap();
    });
}
