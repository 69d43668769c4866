//! Worker threads that copy.
//!
//! A submission is cut into chunks that all workers share; the next submission starts when the
//! last chunk of the one before has landed, which is what completes submissions in order.
//!
//! States of a submission: queued, running (some chunk claimed), done. Only the worker that lands
//! the last claimed chunk moves it to done, under the queue's lock.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kr_types::DeviceAddr;
use parking_lot::{Condvar, Mutex};

use super::faults::{Fault, Faults};
use super::memory::AddressSpace;
use crate::{CopyOp, DeviceError};

/// Largest piece that one worker copies at a time, in bytes.
const CHUNK: u64 = 1 << 20;
/// Size of the buffer that bytes pass through, in bytes.
const STAGE: usize = 16 << 10;

/// Completion of one submission.
#[derive(Clone)]
pub struct HostFence(Arc<FenceState>);

struct FenceState {
    result: Mutex<Option<Result<(), DeviceError>>>,
    done: Condvar,
}

impl HostFence {
    fn new() -> Self {
        Self(Arc::new(FenceState {
            result: Mutex::new(None),
            done: Condvar::new(),
        }))
    }

    fn complete(&self, result: Result<(), DeviceError>) {
        *self.0.result.lock() = Some(result);
        self.0.done.notify_all();
    }

    pub(super) fn wait(&self, limit: Duration) -> Result<bool, DeviceError> {
        let deadline = Instant::now().checked_add(limit);
        let mut result = self.0.result.lock();
        while result.is_none() {
            match deadline {
                Some(deadline) => {
                    if self.0.done.wait_until(&mut result, deadline).timed_out() {
                        break;
                    }
                }
                None => self.0.done.wait(&mut result),
            }
        }
        result.clone().unwrap_or(Ok(())).map(|()| result.is_some())
    }
}

struct Submission {
    copies: Vec<CopyOp>,
    /// Where the next chunk starts: in which copy, and how many bytes into it.
    next: (usize, u64),
    /// Chunks claimed and not landed.
    in_hand: usize,
    error: Option<DeviceError>,
    fence: HostFence,
}

/// A piece of a copy that one worker does.
struct Chunk {
    op: CopyOp,
    /// The first of its copy.
    first: bool,
}

impl Submission {
    fn new(copies: &[CopyOp]) -> Self {
        Self {
            copies: copies.to_vec(),
            next: (0, 0),
            in_hand: 0,
            error: None,
            fence: HostFence::new(),
        }
    }

    /// Claims the next chunk. After a failure none is left: the destinations are unknown anyway.
    fn claim(&mut self) -> Option<Chunk> {
        let (index, offset) = self.next;
        let copy = self.copies.get(index).filter(|_| self.error.is_none())?;
        let left = copy.len.get() - offset;
        let op = CopyOp {
            // Where these saturate, no memory is mapped: the copy faults.
            from: DeviceAddr(copy.from.0.saturating_add(offset)),
            to: DeviceAddr(copy.to.0.saturating_add(offset)),
            len: left.min(CHUNK).try_into().ok()?,
        };
        self.next = if left > CHUNK {
            (index, offset + CHUNK)
        } else {
            (index + 1, 0)
        };
        self.in_hand += 1;
        let first = offset == 0;
        Some(Chunk { op, first })
    }

    fn land(&mut self, result: Result<(), DeviceError>) {
        self.in_hand -= 1;
        if let Err(error) = result {
            self.error.get_or_insert(error);
        }
    }

    fn is_done(&self) -> bool {
        self.in_hand == 0 && (self.error.is_some() || self.next.0 == self.copies.len())
    }
}

#[derive(Default)]
struct Queue {
    submissions: VecDeque<Submission>,
    stopping: bool,
}

struct Shared {
    queue: Mutex<Queue>,
    work: Condvar,
    space: Arc<AddressSpace>,
    faults: Arc<Faults>,
}

/// The workers. Dropping it lets queued copies finish, unless they are held, and joins.
pub(super) struct CopyWorkers {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl CopyWorkers {
    pub(super) fn start(threads: usize, space: Arc<AddressSpace>, faults: Arc<Faults>) -> Self {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            work: Condvar::new(),
            space,
            faults,
        });
        let threads = (0..threads)
            .map(|_| {
                let shared = shared.clone();
                std::thread::spawn(move || shared.work())
            })
            .collect();
        Self { shared, threads }
    }

    pub(super) fn submit(&self, copies: &[CopyOp]) -> HostFence {
        let submission = Submission::new(copies);
        let fence = submission.fence.clone();
        let mut queue = self.shared.queue.lock();
        if copies.is_empty() && queue.submissions.is_empty() {
            drop(queue);
            fence.complete(Ok(()));
            return fence;
        }
        queue.submissions.push_back(submission);
        drop(queue);
        self.shared.work.notify_all();
        fence
    }
}

impl Drop for CopyWorkers {
    fn drop(&mut self) {
        self.shared.queue.lock().stopping = true;
        self.shared.faults.gate().close_for_good();
        self.shared.work.notify_all();
        for thread in self.threads.drain(..) {
            // A worker that panicked has nothing left to clean up.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn work(&self) {
        let mut queue = self.queue.lock();
        loop {
            // An empty submission, or one whose last chunk has just landed, is finished here.
            while queue.submissions.front().is_some_and(Submission::is_done) {
                let Some(done) = queue.submissions.pop_front() else {
                    break;
                };
                done.fence.complete(done.error.map_or(Ok(()), Err));
                self.work.notify_all();
            }
            let Some(chunk) = queue.submissions.front_mut().and_then(Submission::claim) else {
                if queue.stopping && queue.submissions.is_empty() {
                    return;
                }
                self.work.wait(&mut queue);
                continue;
            };
            drop(queue);
            let result = self.copy(&chunk);
            queue = self.queue.lock();
            // The submission is still in front: it leaves only when this chunk has landed.
            if let Some(front) = queue.submissions.front_mut() {
                front.land(result);
            }
        }
    }

    fn copy(&self, Chunk { op, first }: &Chunk) -> Result<(), DeviceError> {
        let failed = |detail: &str| DeviceError::Failed {
            agent: self.space.agent(),
            operation: "copy",
            detail: detail.to_owned(),
        };
        if !self.faults.gate().pass() {
            return Err(failed("the device went away"));
        }
        if *first && self.faults.strikes(Fault::Copy) {
            return Err(failed("injected fault"));
        }
        let len = op.len.get();
        let (from, from_offset) = self.space.find(op.from, len)?;
        let (to, to_offset) = self.space.find(op.to, len)?;
        let mut stage = [0; STAGE];
        let mut done = 0;
        while done < len {
            let part = &mut stage[..(len - done).min(STAGE as u64) as usize];
            from.read(from_offset + done, part);
            to.write(to_offset + done, part);
            done += part.len() as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(from: u64, to: u64, len: u64) -> CopyOp {
        CopyOp {
            from: DeviceAddr(from),
            to: DeviceAddr(to),
            len: len.try_into().unwrap(),
        }
    }

    #[test]
    fn chunks_cover_each_copy_once() {
        let lens = [1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK];
        let mut submission = Submission::new(&lens.map(|len| op(64, 1 << 40, len)));
        for len in lens {
            let mut next = 0;
            while next < len {
                let Chunk { op, first } = submission.claim().unwrap();
                assert_eq!(op.from, DeviceAddr(64 + next));
                assert_eq!(op.to, DeviceAddr((1 << 40) + next));
                assert_eq!(first, next == 0);
                next += op.len.get();
                assert!(!submission.is_done());
                submission.land(Ok(()));
            }
            assert_eq!(next, len);
        }
        assert!(submission.is_done() && submission.claim().is_none());
    }

    #[test]
    fn a_failure_ends_a_submission_when_what_is_in_hand_has_landed() {
        let mut submission = Submission::new(&[op(64, 1 << 40, u64::MAX)]);
        let failure = |addr| DeviceError::Fault {
            agent: kr_types::AgentId(0),
            addr: DeviceAddr(addr),
            len: CHUNK,
        };
        for _ in 0..3 {
            submission.claim().unwrap();
        }
        submission.land(Ok(()));
        submission.land(Err(failure(1)));
        assert!(submission.claim().is_none() && !submission.is_done());
        submission.land(Err(failure(2)));
        assert!(submission.is_done());
        assert_eq!(submission.error, Some(failure(1)), "the first counts");
    }
}
