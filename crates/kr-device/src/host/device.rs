//! The device itself: allocation, copies, and synchronous access.

use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use kr_types::{AgentId, DeviceAddr, Tier};

use super::copies::{CopyWorkers, HostFence};
use super::faults::{Fault, Faults, Hold};
use super::memory::AddressSpace;
use crate::{Block, CopyOp, Device, DeviceError};

/// What a [`HostDevice`] has. The default has no limits and one copy worker per core, at most 4.
#[derive(Clone, Debug, Default)]
pub struct HostDeviceConfig {
    /// Bytes of [`Tier::Device`] memory; `None` = as much as the host has.
    pub device_bytes: Option<u64>,
    /// Bytes of [`Tier::PinnedHost`] memory; `None` = as much as the host has.
    pub pinned_bytes: Option<u64>,
    /// Threads that copy; `None` = one per core, at most 4.
    pub copy_threads: Option<NonZeroU64>,
}

/// A device in host memory. A handle: clones are the same device.
#[derive(Clone)]
pub struct HostDevice(Arc<Inner>);

struct Inner {
    space: Arc<AddressSpace>,
    faults: Arc<Faults>,
    workers: CopyWorkers,
}

impl HostDevice {
    /// A device with the default configuration.
    pub fn new(agent: AgentId) -> Self {
        Self::with_config(agent, &HostDeviceConfig::default())
    }

    /// A device with limited memory or a given number of copy threads.
    pub fn with_config(agent: AgentId, config: &HostDeviceConfig) -> Self {
        let capacity = [
            (Tier::Device, config.device_bytes),
            (Tier::PinnedHost, config.pinned_bytes),
        ];
        let capacity: HashMap<_, _> = capacity
            .into_iter()
            .filter_map(|(tier, bytes)| Some((tier, bytes?)))
            .collect();
        let threads = config.copy_threads.map_or_else(
            || available_parallelism().map_or(1, |n| n.get().min(4)),
            |n| usize::try_from(n.get()).unwrap_or(usize::MAX).min(64),
        );
        let space = Arc::new(AddressSpace::new(agent, capacity));
        let faults = Arc::new(Faults::default());
        let workers = CopyWorkers::start(threads, space.clone(), faults.clone());
        Self(Arc::new(Inner {
            space,
            faults,
            workers,
        }))
    }

    /// Lets `n` more operations of this kind succeed, then one fail; 0 = the next one fails.
    pub fn fail_nth(&self, fault: Fault, n: u64) {
        self.0.faults.fail_nth(fault, n);
    }

    /// Stops all copies until the returned value is dropped. Copies already under way finish the
    /// piece in hand.
    pub fn hold_copies(&self) -> Hold {
        self.0.faults.hold()
    }

    /// Bytes allocated in `tier` now.
    pub fn used_bytes(&self, tier: Tier) -> u64 {
        self.0.space.used(tier)
    }

    /// Reads device memory. Unlike [`Device::read`] it is safe: memory of this backend is made of
    /// atomic words, so a race gives wrong bytes and nothing worse.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Fault`] if the range is not inside one allocation.
    pub fn read_bytes(&self, from: DeviceAddr, into: &mut [u8]) -> Result<(), DeviceError> {
        let (bytes, offset) = self.0.space.find(from, into.len() as u64)?;
        bytes.read(offset, into);
        Ok(())
    }

    /// Writes device memory; safe for the same reason as [`read_bytes`](Self::read_bytes).
    ///
    /// # Errors
    ///
    /// [`DeviceError::Fault`] if the range is not inside one allocation; nothing was written.
    pub fn write_bytes(&self, to: DeviceAddr, from: &[u8]) -> Result<(), DeviceError> {
        let (bytes, offset) = self.0.space.find(to, from.len() as u64)?;
        bytes.write(offset, from);
        Ok(())
    }

    /// Whether `len` bytes at `addr` lie inside one allocation.
    pub(super) fn check(&self, addr: DeviceAddr, len: u64) -> Result<(), DeviceError> {
        self.0.space.find(addr, len).map(drop)
    }

    fn injected(&self, fault: Fault, operation: &'static str) -> Result<(), DeviceError> {
        if self.0.faults.strikes(fault) {
            return Err(DeviceError::Failed {
                agent: self.0.space.agent(),
                operation,
                detail: "injected fault".to_owned(),
            });
        }
        Ok(())
    }
}

impl fmt::Debug for HostDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostDevice({})", self.0.space.agent())
    }
}

impl Device for HostDevice {
    type Block = HostBlock;
    type Fence = HostFence;

    fn agent(&self) -> AgentId {
        self.0.space.agent()
    }

    fn alloc(&self, tier: Tier, bytes: NonZeroU64) -> Result<HostBlock, DeviceError> {
        if self.0.faults.strikes(Fault::Alloc) {
            return Err(DeviceError::OutOfMemory {
                agent: self.agent(),
                tier,
                requested: bytes,
            });
        }
        let addr = self.0.space.map(tier, bytes)?;
        Ok(HostBlock {
            addr,
            len: bytes,
            tier,
            space: self.0.space.clone(),
        })
    }

    unsafe fn submit(&self, copies: &[CopyOp]) -> Result<HostFence, DeviceError> {
        self.injected(Fault::Submit, "submit")?;
        Ok(self.0.workers.submit(copies))
    }

    fn wait(&self, fence: &HostFence, limit: Duration) -> Result<bool, DeviceError> {
        fence.wait(limit)
    }

    unsafe fn read(&self, from: DeviceAddr, into: &mut [u8]) -> Result<(), DeviceError> {
        self.injected(Fault::Read, "read")?;
        self.read_bytes(from, into)
    }

    unsafe fn write(&self, to: DeviceAddr, from: &[u8]) -> Result<(), DeviceError> {
        self.injected(Fault::Write, "write")?;
        self.write_bytes(to, from)
    }
}

/// One allocation of a [`HostDevice`]; dropping it frees it, and its address may be used again.
pub struct HostBlock {
    addr: DeviceAddr,
    len: NonZeroU64,
    tier: Tier,
    space: Arc<AddressSpace>,
}

impl Block for HostBlock {
    fn addr(&self) -> DeviceAddr {
        self.addr
    }

    fn len_bytes(&self) -> NonZeroU64 {
        self.len
    }

    fn tier(&self) -> Tier {
        self.tier
    }
}

impl Drop for HostBlock {
    fn drop(&mut self) {
        self.space.unmap(self.addr);
    }
}

impl fmt::Debug for HostBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "HostBlock({} bytes of {} at {})",
            self.len, self.tier, self.addr
        )
    }
}
