//! Model of the one subscriber.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::thread;

use super::model::{check, tracker};

/// Of the threads that claim, exactly one wins, as long as it keeps its claim.
#[test]
fn loom_claim_has_one_winner() {
    check("claim has one winner", || {
        let tracker = tracker();
        let claim = {
            let tracker = tracker.clone();
            move || tracker.claim().ok()
        };
        let others = [claim.clone(), claim.clone()].map(thread::spawn);
        let mut claims = vec![claim()];
        claims.extend(others.map(|other| other.join().unwrap()));
        assert_eq!(claims.iter().flatten().count(), 1);
    });
}

/// What a subscriber did is seen by the one after it.
#[test]
fn loom_claim_hands_over() {
    check("claim hands over", || {
        let tracker = tracker();
        // Written by claimants only, one after the other, so plain loads and stores lose nothing.
        let written = Arc::new(AtomicUsize::new(0));
        let subscribe = {
            let (tracker, written) = (tracker.clone(), written.clone());
            move || {
                let claim = tracker.claim();
                if claim.is_ok() {
                    written.store(written.load(Relaxed) + 1, Relaxed);
                }
                usize::from(claim.is_ok())
            }
        };
        let others = [subscribe.clone(), subscribe.clone()].map(thread::spawn);
        let mut won = subscribe();
        for other in others {
            won += other.join().unwrap();
        }
        assert_eq!(written.load(Relaxed), won);
    });
}
