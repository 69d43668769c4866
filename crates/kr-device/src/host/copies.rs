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
    chunks: Vec<CopyOp>,
    claimed: usize,
    landed: usize,
    error: Option<DeviceError>,
    fence: HostFence,
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
        let fence = HostFence::new();
        let chunks: Vec<CopyOp> = copies.iter().flat_map(chunks_of).collect();
        let mut queue = self.shared.queue.lock();
        if chunks.is_empty() && queue.submissions.is_empty() {
            drop(queue);
            fence.complete(Ok(()));
            return fence;
        }
        queue.submissions.push_back(Submission {
            chunks,
            claimed: 0,
            landed: 0,
            error: None,
            fence: fence.clone(),
        });
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

fn chunks_of(copy: &CopyOp) -> impl Iterator<Item = CopyOp> + use<> {
    let copy = *copy;
    (0..copy.len.get().div_ceil(CHUNK)).filter_map(move |i| {
        let offset = i * CHUNK;
        Some(CopyOp {
            from: copy.from.checked_add(offset)?,
            to: copy.to.checked_add(offset)?,
            len: (copy.len.get() - offset).min(CHUNK).try_into().ok()?,
        })
    })
}

impl Shared {
    fn work(&self) {
        let mut queue = self.queue.lock();
        loop {
            // An empty submission, or one whose last chunk has just landed, is finished here.
            while let Some(front) = queue.submissions.front() {
                if front.landed < front.chunks.len() {
                    break;
                }
                let Some(done) = queue.submissions.pop_front() else {
                    break;
                };
                done.fence.complete(done.error.map_or(Ok(()), Err));
                self.work.notify_all();
            }
            let claim = queue.submissions.front_mut().and_then(|front| {
                let chunk = *front.chunks.get(front.claimed)?;
                front.claimed += 1;
                // After a failure the rest is skipped: its destinations are unknown anyway.
                Some((chunk, front.error.is_some()))
            });
            let Some((chunk, skip)) = claim else {
                if queue.stopping && queue.submissions.is_empty() {
                    return;
                }
                self.work.wait(&mut queue);
                continue;
            };
            drop(queue);
            let result = if skip { Ok(()) } else { self.copy(chunk) };
            queue = self.queue.lock();
            // The submission is still in front: it leaves only when this chunk has landed.
            if let Some(front) = queue.submissions.front_mut() {
                front.landed += 1;
                if let Err(error) = result {
                    front.error.get_or_insert(error);
                }
            }
        }
    }

    fn copy(&self, chunk: CopyOp) -> Result<(), DeviceError> {
        let failed = |detail: &str| DeviceError::Failed {
            agent: self.space.agent(),
            operation: "copy",
            detail: detail.to_owned(),
        };
        if !self.faults.gate().pass() {
            return Err(failed("the device went away"));
        }
        if self.faults.strikes(Fault::Copy) {
            return Err(failed("injected fault"));
        }
        let len = chunk.len.get();
        let (from, from_offset) = self.space.find(chunk.from, len)?;
        let (to, to_offset) = self.space.find(chunk.to, len)?;
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
    use kr_types::DeviceAddr;

    #[test]
    fn chunks_cover_a_copy_once() {
        for len in [1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK] {
            let op = CopyOp {
                from: DeviceAddr(64),
                to: DeviceAddr(1 << 40),
                len: len.try_into().unwrap(),
            };
            let mut next = 0;
            for chunk in chunks_of(&op) {
                assert_eq!(chunk.from, DeviceAddr(64 + next));
                assert_eq!(chunk.to, DeviceAddr((1 << 40) + next));
                next += chunk.len.get();
            }
            assert_eq!(next, len);
        }
    }
}
