//! The traits. Their doc comments are the contract that `kr-testkit`'s conformance suite checks.

use std::num::NonZeroU64;
use std::time::Duration;

use kr_types::{AgentId, DeviceAddr, Tier};

use crate::DeviceError;

/// Memory owned by whoever holds it; dropping it returns it to the agent.
///
/// The holder keeps it until no submitted work can touch it any more: a block whose fence was not
/// seen to complete must not be dropped.
pub trait Block: Send + Sync + 'static {
    /// First byte, aligned to at least 4 KiB.
    fn addr(&self) -> DeviceAddr;

    /// Usable length in bytes, at least what was asked for.
    fn len_bytes(&self) -> NonZeroU64;

    /// Which kind of memory it is.
    fn tier(&self) -> Tier;
}

/// One copy between two ranges that an agent can access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CopyOp {
    /// First byte to read.
    pub from: DeviceAddr,
    /// First byte to write.
    pub to: DeviceAddr,
    /// Length in bytes.
    pub len: NonZeroU64,
}

/// One GPU agent, seen as memory that can be allocated, copied and waited on.
///
/// Contract
/// - Copies of one [`submit`](Self::submit) may run in any order and at the same time. Those of a
///   later submit start when the earlier ones have completed, so it may read what they wrote.
/// - Nothing outside the ranges of the copies is read or written.
/// - [`alloc`](Self::alloc) hands out memory that no other live block overlaps. Its contents are
///   unspecified.
/// - Everything may be called from any thread. Nothing blocks except [`wait`](Self::wait), within
///   its limit, and [`read`](Self::read) and [`write`](Self::write), for as long as their bytes
///   take.
/// - Backends check nothing: callers pass validated ranges, so a bad one is a bug above this trait.
/// - Nothing panics. A backend that does is not used any more.
pub trait Device: Send + Sync + 'static {
    /// Memory owned by the caller.
    type Block: Block;
    /// Completes when every copy of one submit has landed, or one of them has failed and none runs
    /// any more. Dropping it neither waits nor cancels.
    type Fence: Send + Sync + 'static;

    /// The agent that this is.
    fn agent(&self) -> AgentId;

    /// Allocates `bytes` in `tier`, accessible to this agent.
    ///
    /// # Errors
    ///
    /// [`DeviceError::OutOfMemory`] if there is no room, also for a size that no device has;
    /// [`DeviceError::Failed`] if the runtime refused for another reason. Nothing was allocated.
    fn alloc(&self, tier: Tier, bytes: NonZeroU64) -> Result<Self::Block, DeviceError>;

    /// Starts `copies` and returns without waiting. An empty list completes when the submits before
    /// it have.
    ///
    /// # Errors
    ///
    /// [`DeviceError`]; no copy was started.
    ///
    /// # Safety
    ///
    /// Until the fence completes: each source range stays readable and each destination range
    /// writable by this agent, and nothing but other submits to this device reads or writes a
    /// destination. Within the submit, no destination overlaps another destination or any source. If
    /// something writes a source meanwhile, what arrives is unspecified, and nothing worse.
    unsafe fn submit(&self, copies: &[CopyOp]) -> Result<Self::Fence, DeviceError>;

    /// Blocks for at most `limit`. `Ok(false)` means that the work is still running; a limit of
    /// zero looks without blocking.
    ///
    /// # Errors
    ///
    /// [`DeviceError`] if a copy failed. None of the submit's copies runs any more, and what its
    /// destinations hold is unknown.
    fn wait(&self, fence: &Self::Fence, limit: Duration) -> Result<bool, DeviceError>;

    /// Copies `into.len()` bytes at `from` to the host, synchronously and outside the order of
    /// submits.
    ///
    /// # Errors
    ///
    /// [`DeviceError`]; `into` is in an unknown state.
    ///
    /// # Safety
    ///
    /// The range is readable by this agent, and nothing writes it during the call.
    unsafe fn read(&self, from: DeviceAddr, into: &mut [u8]) -> Result<(), DeviceError>;

    /// Copies `from` to the `from.len()` bytes at `to`, synchronously and outside the order of
    /// submits.
    ///
    /// # Errors
    ///
    /// [`DeviceError`]; the range is in an unknown state.
    ///
    /// # Safety
    ///
    /// The range is writable by this agent, and nothing else accesses it during the call.
    unsafe fn write(&self, to: DeviceAddr, from: &[u8]) -> Result<(), DeviceError>;
}

/// One kernel launch of a chain.
#[derive(Debug)]
pub struct KernelStep<'a, K> {
    /// What to run.
    pub kernel: &'a K,
    /// Workgroups, in one dimension.
    pub workgroups: NonZeroU64,
    /// Lanes of a workgroup.
    pub workgroup_lanes: u32,
    /// The explicit kernel arguments as laid out by the kernel's own structure. There are no
    /// hidden ones.
    pub kernarg: &'a [u8],
}

/// A device that can also run kernels of ours. Implemented by GPU backends only.
///
/// Contract
/// - The steps of one chain run one after the other, and each sees what the earlier ones wrote.
/// - Host writes made before the call are visible to the first step, and what the last step wrote
///   is visible to the host once the fence has completed.
/// - Chains and copies of [`Device::submit`] complete in the order in which they were submitted.
pub trait Launch: Device {
    /// A kernel loaded for this agent.
    type Kernel: Send + Sync + 'static;

    /// Loads `name` from a code object built for this agent.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Failed`] if the object does not fit the agent or has no such kernel;
    /// whatever was created on the way is released.
    fn load(&self, object: &[u8], name: &str) -> Result<Self::Kernel, DeviceError>;

    /// Starts `chain` and returns without waiting.
    ///
    /// # Errors
    ///
    /// [`DeviceError`]; no step was started.
    ///
    /// # Safety
    ///
    /// Each step's `kernarg` matches its kernel's argument structure, and every range that the
    /// kernels reach through it stays accessible, and unused by anything else that would race with
    /// them, until the fence completes.
    unsafe fn launch(
        &self,
        chain: &[KernelStep<'_, Self::Kernel>],
    ) -> Result<Self::Fence, DeviceError>;
}
