//! Threads that share one pass over the work stream.

use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread;

use kr_device::DeviceError;
use kr_types::{ByTier, TILE_BYTES};

use super::access::READ_BYTES;
use super::image::Found;

/// What one thread has of its own.
pub(super) struct Worker {
    /// For reads of several tiles.
    pub(super) buffer: Vec<u8>,
    /// For one tile.
    pub(super) spare: Vec<u8>,
    pub(super) tally: Tally,
}

impl Worker {
    fn new() -> Self {
        Self {
            buffer: vec![0; READ_BYTES],
            spare: vec![0; TILE_BYTES as usize],
            tally: Tally::default(),
        }
    }
}

/// What a pass did and found; sums and a minimum, so their order does not matter.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) bytes_copied: u64,
    pub(super) bytes_written: u64,
    pub(super) bytes_hashed: u64,
    pub(super) tiles_hashed: ByTier<u64>,
    pub(super) tiles_changed: ByTier<u64>,
    /// Tiles that are on one list and not on the other.
    pub(super) lists_differ: u64,
    pub(super) outputs_differ: u64,
    /// Tiles that were looked for.
    pub(super) found: Option<Found>,
}

impl Tally {
    /// A tile that was looked for, at `live`.
    pub(super) fn find(&mut self, live: u64) {
        let (tiles, first) = (1, live);
        Found::join(&mut self.found, Some(Found { tiles, first }));
    }

    fn add(&mut self, other: &Self) {
        self.bytes_copied += other.bytes_copied;
        self.bytes_written += other.bytes_written;
        self.bytes_hashed += other.bytes_hashed;
        for (a, b) in [
            (&mut self.tiles_hashed, &other.tiles_hashed),
            (&mut self.tiles_changed, &other.tiles_changed),
        ] {
            a.device += b.device;
            a.pinned_host += b.pinned_host;
        }
        self.lists_differ += other.lists_differ;
        self.outputs_differ += other.outputs_differ;
        Found::join(&mut self.found, other.found);
    }
}

/// Does `job` for every item, on up to `threads` threads of which the caller's is one. What was
/// tallied counts also after a failure, which ends the pass: items under way are finished, no other
/// is begun.
pub(super) fn each<I, F>(threads: usize, items: I, job: F) -> (Tally, Result<(), DeviceError>)
where
    I: Iterator + Send,
    F: Fn(&mut Worker, I::Item) -> Result<(), DeviceError> + Sync,
{
    let items = Mutex::new(Some(items));
    let work = || {
        // A panicking worker leaves the iterator between two items, as good as any other.
        let items = || items.lock().unwrap_or_else(PoisonError::into_inner);
        let mut worker = Worker::new();
        loop {
            let next = items().as_mut().and_then(Iterator::next);
            let Some(item) = next else {
                return (worker.tally, Ok(()));
            };
            if let Err(error) = job(&mut worker, item) {
                *items() = None;
                return (worker.tally, Err(error));
            }
        }
    };
    thread::scope(|scope| {
        // Where no thread can be had, fewer do the same work.
        let spawn = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
        let others: Vec<_> = (1..threads).filter_map(spawn).collect();
        let (mut total, mut result) = work();
        for other in others {
            let (tally, other) = other.join().unwrap_or_else(|panic| resume_unwind(panic));
            total.add(&tally);
            result = result.and(other);
        }
        (total, result)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kr_types::{AgentId, DeviceAddr};
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

    fn failure(at: u64) -> DeviceError {
        DeviceError::Fault {
            agent: AgentId(0),
            addr: DeviceAddr(at),
            len: 1,
        }
    }

    #[test]
    fn every_item_is_done_once_and_tallies_add_up() {
        for threads in [0, 1, 2, 5] {
            let done = Mutex::new(Vec::new());
            let (tally, result) = each(threads, 0..100u64, |worker, item| {
                worker.tally.bytes_hashed += item;
                worker.tally.find(1000 - item);
                done.lock().unwrap().push(item);
                Ok(())
            });
            assert_eq!(result, Ok(()));
            assert_eq!(tally.bytes_hashed, 99 * 50);
            let (tiles, first) = (100, 901);
            assert_eq!(tally.found, Some(Found { tiles, first }));
            let mut done = done.into_inner().unwrap();
            done.sort_unstable();
            assert!(done.into_iter().eq(0..100));
        }
    }

    #[test]
    fn a_failure_ends_the_pass_and_keeps_the_tally() {
        let (tally, result) = each(1, 0..100u64, |worker, item| {
            worker.tally.bytes_hashed += 1;
            if item == 7 {
                Err(failure(item))
            } else {
                Ok(())
            }
        });
        assert_eq!(result, Err(failure(7)));
        assert_eq!(tally.bytes_hashed, 8);
    }

    /// An iterator that says when it is gone.
    struct Items<'a>(std::ops::Range<u64>, &'a AtomicBool);

    impl Iterator for Items<'_> {
        type Item = u64;

        fn next(&mut self) -> Option<u64> {
            self.0.next()
        }
    }

    impl Drop for Items<'_> {
        fn drop(&mut self) {
            self.1.store(true, SeqCst);
        }
    }

    /// No item is begun after another worker has failed: item 1 ends only when none is left.
    #[test]
    fn a_failure_stops_the_other_workers() {
        let gone = AtomicBool::new(false);
        let (tally, result) = each(2, Items(0..100, &gone), |worker, item| {
            worker.tally.bytes_hashed += 1;
            if item == 0 {
                return Err(failure(item));
            }
            for _ in 0..1_000 {
                if gone.load(SeqCst) {
                    return Ok(());
                }
                thread::sleep(std::time::Duration::from_millis(10));
            }
            panic!("items are left after a failure");
        });
        assert_eq!(result, Err(failure(0)));
        assert!(tally.bytes_hashed <= 2, "{tally:?}");
    }

    #[test]
    #[should_panic(expected = "in a job")]
    fn a_panic_in_a_job_is_the_caller_s() {
        let _ = each(2, 0..4, |_, item| {
            assert!(item < 3, "in a job");
            Ok(())
        });
    }
}
