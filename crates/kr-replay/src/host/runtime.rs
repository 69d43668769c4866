//! The runtime that an application uses.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::Duration;

use kr_device::host::{HostCounters, HostDevice};
use kr_device::{Device, DeviceError};
use kr_tracker::{DispatchGuard, Tracker, TrackerConfig};
use kr_types::{AgentId, MemoryClass, QueueId, Tier};
use parking_lot::{Mutex, RwLock};

use super::own_queue::OwnQueue;
use super::queue::Outstanding;
use super::{HostBuffer, HostError, HostQueue, HostTarget};
use crate::{Engine, EngineBuilder, Observer, ParkedFree};

/// Whoever sees the launches of a runtime before its queues do.
pub trait Intercept: Send + Sync {
    /// Takes one launch over: it has to be passed on, or run.
    fn intercept(&self, target: HostTarget);

    /// An allocation of the application found no room. True if memory was freed for it.
    fn make_room(&self) -> bool {
        false
    }
}

impl<O: Observer<Measured = HostCounters>> Intercept for Engine<O> {
    fn intercept(&self, target: HostTarget) {
        if !Arc::ptr_eq(&self.tracker, target.tracker()) {
            // It would save and restore the memory of another runtime.
            tracing::error!("an engine is attached to a runtime that it was not made for");
            return target.forward();
        }
        let dispatch = target.dispatch().clone();
        self.dispatch(&dispatch, target);
    }

    fn make_room(&self) -> bool {
        self.release_retained() > 0
    }
}

/// A GPU runtime on a [`HostDevice`]. A handle: clones are the same runtime.
#[derive(Clone)]
pub struct HostRuntime(Arc<Inner>);

pub(super) struct Inner {
    pub(super) device: HostDevice,
    pub(super) tracker: Arc<Tracker<ParkedFree>>,
    pub(super) own_queue: OwnQueue,
    /// Application runs that are on the runtime's own queue.
    pub(super) own_outstanding: Arc<Outstanding>,
    /// Gone when the queue is dropped and its work has ended.
    queues: Mutex<Vec<(QueueId, Weak<Outstanding>)>>,
    next_queue: AtomicU64,
    interceptor: RwLock<Option<Arc<dyn Intercept>>>,
}

impl Inner {
    pub(super) fn agent(&self) -> AgentId {
        self.device.agent()
    }

    /// Enters the agent for a copy, which must not run beside a restore.
    pub(super) fn beside(&self) -> DispatchGuard {
        let limit = Duration::from_secs(10);
        self.tracker.enter_dispatch_nested(self.agent(), limit)
    }

    pub(super) fn interceptor(&self) -> Option<Arc<dyn Intercept>> {
        self.interceptor.read().clone()
    }

    /// The outstanding work of every queue but `queue`, the runtime's own included.
    pub(super) fn other_queues(&self, queue: QueueId) -> Vec<Arc<Outstanding>> {
        let queues = self.queues.lock();
        let others = queues.iter().filter(|(id, _)| *id != queue);
        let others = others.filter_map(|(_, outstanding)| outstanding.upgrade());
        others.chain([self.own_outstanding.clone()]).collect()
    }
}

impl HostRuntime {
    /// A runtime on a new device with the default configuration.
    pub fn new(agent: AgentId) -> Self {
        Self::with_device(HostDevice::new(agent), TrackerConfig::default())
    }

    /// A runtime on `device`.
    pub fn with_device(device: HostDevice, tracker: TrackerConfig) -> Self {
        Self(Arc::new(Inner {
            own_queue: OwnQueue::new(device.clone()),
            own_outstanding: Arc::default(),
            tracker: Arc::new(Tracker::new(tracker)),
            queues: Mutex::default(),
            next_queue: AtomicU64::new(1),
            interceptor: RwLock::default(),
            device,
        }))
    }

    /// The device, for its counts and its faults on request. Memory that is allocated from it
    /// directly is unknown to the runtime: no engine saves it.
    pub fn device(&self) -> &HostDevice {
        &self.0.device
    }

    /// The inventory of the runtime's buffers.
    pub fn tracker(&self) -> &Arc<Tracker<ParkedFree>> {
        &self.0.tracker
    }

    /// Starts an engine over this runtime's memory. Build it and [`attach`](Self::attach) it.
    pub fn engine<O: Observer<Measured = HostCounters>>(&self, observer: O) -> EngineBuilder<O> {
        let builder = Engine::builder(self.0.tracker.clone(), observer);
        // SAFETY:
        // - the tracker lists buffers of this runtime on this device, whose blocks live until the
        //   tracker gave out their free; and the device checks every access against its mappings;
        // - memory of the host device is atomic words: it defines races.
        unsafe { builder.device(self.0.device.clone()) }
    }

    /// Puts an engine in front of all queues, in place of one that was attached before. It must
    /// have been started by [`engine`](Self::engine) of this runtime, else launches are passed on.
    ///
    /// To replace an engine by another of the same runtime, [`detach`](Self::detach) it, wait with
    /// [`Engine::quiesce`] after turning it off, drop it, and then build the next: there is one
    /// engine at a time.
    pub fn attach<E: Intercept + 'static>(&self, engine: impl Into<Arc<E>>) -> Arc<E> {
        let engine = engine.into();
        *self.0.interceptor.write() = Some(engine.clone());
        engine
    }

    /// Takes the engine away again. Windows that are open finish.
    pub fn detach(&self) {
        *self.0.interceptor.write() = None;
    }

    /// Allocates a buffer of device memory; its contents are unspecified.
    ///
    /// # Errors
    ///
    /// [`HostError::Empty`] for no bytes, [`HostError::Device`] if there is no room.
    pub fn alloc(&self, bytes: u64) -> Result<HostBuffer, HostError> {
        let bytes = NonZeroU64::new(bytes).ok_or(HostError::Empty)?;
        let block = match self.0.device.alloc(Tier::Device, bytes) {
            Err(DeviceError::OutOfMemory { .. })
                if self.0.interceptor().is_some_and(|tool| tool.make_room()) =>
            {
                self.0.device.alloc(Tier::Device, bytes)?
            }
            first => first?,
        };
        let buffer = HostBuffer::new(self.0.clone(), block);
        let (agent, class) = (self.0.agent(), MemoryClass::Vram);
        let recorded = self
            .0
            .tracker
            .record(agent, buffer.addr(), bytes.get(), class);
        if let Err(error) = recorded {
            // The tracker declines replay on the agent from now on; the application goes on.
            tracing::error!(%error, "a buffer could not be tracked");
        }
        Ok(buffer)
    }

    /// Creates a queue.
    ///
    /// # Panics
    ///
    /// If the operating system has no thread left for it.
    pub fn queue(&self) -> HostQueue {
        // Relaxed: only uniqueness matters.
        let id = QueueId(self.0.next_queue.fetch_add(1, Relaxed));
        let outstanding = Arc::<Outstanding>::default();
        let mut queues = self.0.queues.lock();
        queues.retain(|(_, outstanding)| outstanding.strong_count() > 0);
        queues.push((id, Arc::downgrade(&outstanding)));
        drop(queues);
        HostQueue::new(self.0.clone(), id, outstanding)
    }
}

impl std::fmt::Debug for HostRuntime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HostRuntime({})", self.0.agent())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    /// However many queues an application makes and drops, the runtime knows those that it has.
    #[test]
    fn dropped_queues_are_forgotten() {
        let runtime = HostRuntime::new(AgentId(0));
        let kept = runtime.queue();
        (0..50).for_each(|_| drop(runtime.queue()));
        // Their threads end when they please.
        let deadline = Instant::now() + Duration::from_secs(10);
        let mut known = Vec::new();
        while known.len() != 2 && Instant::now() < deadline {
            let newest = runtime.queue();
            let queues = runtime.0.queues.lock();
            known = queues.iter().map(|(id, _)| *id).collect();
            assert_eq!((known[0], known.last()), (kept.id(), Some(&newest.id())));
        }
        assert_eq!(known.len(), 2);
    }
}
