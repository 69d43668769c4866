//! Memory that a profiler's callback frees.

use std::num::NonZeroU64;
use std::sync::Arc;

use kr_device::host::HostBlock;
use kr_device::{Block, Device};
use kr_replay::ParkedFree;
use kr_tracker::{Freed, Tracker};
use kr_types::{DeviceAddr, MemoryClass, Tier};

use super::{Event, Log, Rig};

/// Device memory of a profiler: tracked like any other, and noted in the log as `freed` when it
/// really is.
pub struct ToolMemory {
    block: HostBlock,
    tracker: Arc<Tracker<ParkedFree>>,
    log: Log,
}

impl ToolMemory {
    /// How many bytes it has.
    pub const BYTES: u64 = 300;

    /// New memory of this class in the tracker of `rig`.
    pub fn new(rig: &Rig, class: MemoryClass) -> Self {
        let tracker = rig.runtime.tracker().clone();
        let bytes = NonZeroU64::new(Self::BYTES).expect("it is not zero");
        let block = rig.runtime.device().alloc(Tier::Device, bytes);
        let block = block.expect("the host has a page of memory");
        tracker
            .record(Rig::AGENT, block.addr(), Self::BYTES, class)
            .expect("nothing else is there");
        Self {
            block,
            tracker,
            log: rig.log.clone(),
        }
    }

    /// First byte.
    pub fn addr(&self) -> DeviceAddr {
        self.block.addr()
    }

    /// Frees it, and tells what became of that.
    pub fn free(self) -> &'static str {
        let Self {
            block,
            tracker,
            log,
        } = self;
        let addr = block.addr();
        let token = move || {
            log.push(Event::Note("freed"));
            drop(block);
        };
        match tracker.free(addr, Box::new(token)) {
            Freed::Release(release) => {
                release.into_token()();
                "released"
            }
            Freed::Parked => "parked",
            Freed::Again(_) | Freed::Unknown(_) => "unknown",
        }
    }
}
