//! Models of the agent lock.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use loom::thread;

use super::model::{A, B, LIMIT, Room, check, expire, open, tracker};
use crate::OpenError;

/// A window and a dispatch are never inside one agent together.
#[test]
fn loom_window_against_dispatches() {
    check("window against dispatches", || {
        let tracker = tracker();
        let room = Arc::new(Room::new());
        let dispatches: Vec<_> = (0..2)
            .map(|_| {
                let (tracker, room) = (tracker.clone(), room.clone());
                thread::spawn(move || {
                    let _inside = tracker.enter_dispatch(A);
                    room.dispatch();
                })
            })
            .collect();
        let window = open(&tracker, A);
        room.window();
        drop(window);
        for dispatch in dispatches {
            dispatch.join().unwrap();
        }
    });
}

/// A thread that must not wait gets in only while no window is inside, and harms nobody in line.
#[test]
fn loom_window_against_a_dispatch_that_does_not_wait() {
    check("window against a dispatch that does not wait", || {
        let tracker = tracker();
        let room = Arc::new(Room::new());
        let waits = thread::spawn({
            let (tracker, room) = (tracker.clone(), room.clone());
            move || {
                let _inside = tracker.enter_dispatch(A);
                room.dispatch();
            }
        });
        let does_not = thread::spawn({
            let (tracker, room) = (tracker.clone(), room.clone());
            move || {
                if let Some(_inside) = tracker.try_enter_dispatch(A) {
                    room.dispatch();
                }
            }
        });
        let window = open(&tracker, A);
        room.window();
        drop(window);
        waits.join().unwrap();
        does_not.join().unwrap();
        assert!(tracker.try_enter_dispatch(A).is_some(), "all have left");
    });
}

/// Two windows are never inside one agent together, and each gets its turn.
#[test]
fn loom_window_against_windows() {
    check("window against windows", || {
        let tracker = tracker();
        let room = Arc::new(Room::new());
        let others: Vec<_> = (0..2)
            .map(|_| {
                let (tracker, room) = (tracker.clone(), room.clone());
                thread::spawn(move || {
                    let _window = open(&tracker, A);
                    room.window();
                })
            })
            .collect();
        let window = open(&tracker, A);
        room.window();
        drop(window);
        for other in others {
            other.join().unwrap();
        }
    });
}

/// What a thread enters again from inside its window never dead-locks it, and marks that window
/// even if a window on another agent came and went in between.
#[test]
fn loom_reentry_into_a_window() {
    check("re-entry into a window", || {
        let tracker = tracker();
        let room = Arc::new(Room::new());
        let other = thread::spawn({
            let (tracker, room) = (tracker.clone(), room.clone());
            move || {
                let inside = tracker.enter_dispatch(A);
                assert!(!inside.reentrant(), "another thread's window is not ours");
                room.dispatch();
                drop(inside);
                drop(open(&tracker, B));
            }
        });
        let window = open(&tracker, A);
        let elsewhere = open(&tracker, B);
        assert!(tracker.enter_dispatch(A).reentrant());
        drop(elsewhere);
        assert!(window.is_reentered());
        assert_eq!(
            tracker.open_window(A, LIMIT).map(drop),
            Err(OpenError::Reentrant { agent: A })
        );
        room.window();
        drop(window);
        other.join().unwrap();
        assert!(!tracker.enter_dispatch(A).reentrant());
    });
}

/// A dispatch within a dispatch of the same thread never waits for a window that waits for it.
#[test]
fn loom_reentry_into_a_dispatch() {
    check("re-entry into a dispatch", || {
        let tracker = tracker();
        let room = Arc::new(Room::new());
        let other = thread::spawn({
            let (tracker, room) = (tracker.clone(), room.clone());
            move || {
                let _window = open(&tracker, A);
                room.window();
            }
        });
        let outer = tracker.enter_dispatch(A);
        let inner = tracker.enter_dispatch(A);
        drop(outer);
        room.dispatch();
        drop(inner);
        other.join().unwrap();
    });
}

/// A window whose limit passes while a dispatch leaves is open or has left the line, never half of
/// each: either way others get in afterwards.
#[test]
fn loom_limit_against_a_dispatch_that_leaves() {
    check("limit against a dispatch that leaves", || {
        let tracker = tracker();
        let room = Arc::new(Room::new());
        let inside = tracker.enter_dispatch(A);
        let opener = thread::spawn({
            let (tracker, room) = (tracker.clone(), room.clone());
            move || match tracker.open_window(A, LIMIT) {
                Ok(window) => {
                    room.window();
                    drop(window);
                }
                Err(error) => assert!(matches!(error, OpenError::Busy { agent: A, .. })),
            }
        });
        let clock = thread::spawn({
            let tracker = tracker.clone();
            move || expire(&tracker, A)
        });
        let behind = thread::spawn({
            let (tracker, room) = (tracker.clone(), room.clone());
            move || {
                let _inside = tracker.enter_dispatch(A);
                room.dispatch();
            }
        });
        room.dispatch();
        drop(inside);
        behind.join().unwrap();
        opener.join().unwrap();
        clock.join().unwrap();
        assert!(tracker.open_window(A, LIMIT).is_ok(), "nobody is left");
    });
}

/// A dispatch behind a window that gives up gets in although the dispatch before it stays.
#[test]
fn loom_limit_lets_those_behind_in() {
    check("limit lets those behind in", || {
        let tracker = tracker();
        let stays = tracker.enter_dispatch(A);
        let opener = thread::spawn({
            let tracker = tracker.clone();
            move || tracker.open_window(A, LIMIT).map(drop).unwrap_err()
        });
        let clock = thread::spawn({
            let tracker = tracker.clone();
            move || expire(&tracker, A)
        });
        let behind = thread::spawn({
            let tracker = tracker.clone();
            move || drop(tracker.enter_dispatch(A))
        });
        behind.join().unwrap();
        opener.join().unwrap();
        clock.join().unwrap();
        drop(stays);
    });
}

/// Two threads that each want into the agent of the other's window do not wait for each other
/// forever, and whoever comes in beside a window is known to every window that it meets.
#[test]
fn loom_intruder_is_known() {
    check("intruder is known", || {
        let tracker = tracker();
        let room = Arc::new(AtomicUsize::new(0));
        let intruder = thread::spawn({
            let (tracker, room) = (tracker.clone(), room.clone());
            move || {
                let _own = open(&tracker, B);
                let _beside = tracker.enter_dispatch_nested(A, LIMIT);
                room.store(1, SeqCst);
                room.store(0, SeqCst);
            }
        });
        let clock = thread::spawn({
            let tracker = tracker.clone();
            move || expire(&tracker, A)
        });
        for _ in 0..2 {
            // The limit is for this thread as well.
            if let Ok(window) = tracker.open_window(A, LIMIT) {
                let met = room.load(SeqCst) == 1;
                assert!(!met || window.is_reentered());
            }
        }
        intruder.join().unwrap();
        clock.join().unwrap();
        assert!(tracker.try_enter_dispatch(A).is_some());
        assert!(tracker.open_window(A, LIMIT).is_ok(), "nobody is left");
    });
}
