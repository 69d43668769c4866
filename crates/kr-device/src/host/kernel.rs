//! Kernels that are Rust closures over a host device's memory.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use bytemuck::{AnyBitPattern, NoUninit, Pod};
use kr_types::DeviceAddr;

use super::HostDevice;
use crate::DeviceError;

/// What one execution of a host kernel did, the host's stand-in for hardware counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounters {
    /// Bytes that the kernel loaded from device memory.
    pub bytes_read: u64,
    /// Bytes that the kernel stored to device memory.
    pub bytes_written: u64,
    /// Operations, in the kernel's own unit ([`KernelCtx::add_operations`]).
    pub operations: u64,
    /// Time from start to end of the execution.
    pub wall: Duration,
}

/// Why a host kernel stopped before its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KernelFault {
    /// It accessed memory that is not mapped.
    #[error("memory access fault")]
    Memory(#[from] DeviceError),
    /// The kernarg block does not have the size of the structure that the kernel reads.
    #[error("kernel expects {expected} bytes of arguments, the launch has {given}")]
    Kernarg {
        /// Size of the kernel's structure in bytes.
        expected: usize,
        /// Size of the launch's block in bytes.
        given: usize,
    },
    /// Its queue was destroyed while it ran.
    #[error("the queue was destroyed")]
    Cancelled,
    /// Its closure panicked.
    #[error("the kernel panicked: {0}")]
    Panicked(String),
}

type Body = dyn Fn(&mut KernelCtx<'_>) -> Result<(), KernelFault> + Send + Sync;

/// A kernel: a name and a closure. Cheap to clone.
#[derive(Clone)]
pub struct HostKernel {
    id: u64,
    name: Arc<str>,
    body: Arc<Body>,
}

impl HostKernel {
    /// Names `body` as a kernel.
    pub fn new<F>(name: &str, body: F) -> Self
    where
        F: Fn(&mut KernelCtx<'_>) -> Result<(), KernelFault> + Send + Sync + 'static,
    {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        Self {
            // Relaxed: only uniqueness matters.
            id: NEXT_ID.fetch_add(1, Relaxed),
            name: name.into(),
            body: Arc::new(body),
        }
    }

    /// A number that only this kernel and its clones have, in this process.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The kernel's name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }
}

impl fmt::Debug for HostKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostKernel({})", self.name)
    }
}

/// Asks a running kernel to stop: its next memory access reports [`KernelFault::Cancelled`]. A
/// handle: clones are the same request.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Makes the request. It cannot be taken back.
    pub fn cancel(&self) {
        // Relaxed: the flag carries no data, and a late look only means one more access.
        self.0.store(true, Relaxed);
    }

    /// Whether it was made.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Relaxed)
    }
}

/// One launch: a kernel, its grid and its arguments.
#[derive(Clone, Debug)]
pub struct KernelLaunch {
    /// What to run.
    pub kernel: HostKernel,
    /// Grid size in work-items per dimension; told to the kernel, and to whoever profiles it.
    pub grid: [u32; 3],
    /// The argument block. Every execution works on a copy, so a kernel that writes its arguments
    /// does not disturb the next one.
    pub kernarg: Vec<u8>,
}

impl KernelLaunch {
    /// A launch with a one-element grid. `args` must have no padding.
    pub fn new<A: NoUninit>(kernel: &HostKernel, args: &A) -> Self {
        Self {
            kernel: kernel.clone(),
            grid: [1; 3],
            kernarg: bytemuck::bytes_of(args).to_vec(),
        }
    }

    /// Sets the grid size in work-items.
    #[must_use]
    pub fn grid(mut self, grid: [u32; 3]) -> Self {
        self.grid = grid;
        self
    }

    /// Executes the kernel once, on this thread.
    ///
    /// # Errors
    ///
    /// [`KernelFault`]; what the kernel stored until then stays.
    pub fn run(&self, device: &HostDevice) -> Result<HostCounters, KernelFault> {
        self.run_until(device, &Cancel::default())
    }

    /// As [`run`](Self::run), but stops at the first memory access after `cancel` was made.
    ///
    /// # Errors
    ///
    /// [`KernelFault`]; what the kernel stored until then stays.
    pub fn run_until(
        &self,
        device: &HostDevice,
        cancel: &Cancel,
    ) -> Result<HostCounters, KernelFault> {
        let mut ctx = KernelCtx {
            device,
            cancel,
            grid: self.grid,
            kernarg: self.kernarg.clone(),
            counters: HostCounters::default(),
        };
        let start = Instant::now();
        // Unwind safety: the closure's captures are its own business, as a kernel's globals are;
        // the context is dropped below without being looked at.
        let result = catch_unwind(AssertUnwindSafe(|| (self.kernel.body)(&mut ctx)));
        ctx.counters.wall = start.elapsed();
        match result {
            Ok(result) => result.map(|()| ctx.counters),
            Err(panic) => Err(KernelFault::Panicked(panic_text(&*panic).to_owned())),
        }
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    if let Some(text) = panic.downcast_ref::<&str>() {
        text
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text
    } else {
        "no message"
    }
}

/// What a running host kernel sees: its arguments, its grid, and device memory.
#[derive(Debug)]
pub struct KernelCtx<'a> {
    device: &'a HostDevice,
    cancel: &'a Cancel,
    grid: [u32; 3],
    kernarg: Vec<u8>,
    counters: HostCounters,
}

impl KernelCtx<'_> {
    /// Grid size in work-items per dimension.
    pub fn grid(&self) -> [u32; 3] {
        self.grid
    }

    /// The argument block as the structure `A`.
    ///
    /// # Errors
    ///
    /// [`KernelFault::Kernarg`] if the sizes differ.
    pub fn args<A: AnyBitPattern>(&self) -> Result<A, KernelFault> {
        bytemuck::try_pod_read_unaligned(&self.kernarg).map_err(|_| KernelFault::Kernarg {
            expected: size_of::<A>(),
            given: self.kernarg.len(),
        })
    }

    /// The argument block itself, for kernels that use it as scratch.
    pub fn kernarg_mut(&mut self) -> &mut [u8] {
        &mut self.kernarg
    }

    /// Loads `n` values at `addr`.
    ///
    /// # Errors
    ///
    /// [`KernelFault::Memory`] outside an allocation, [`KernelFault::Cancelled`].
    pub fn load<T: Pod>(&mut self, addr: DeviceAddr, n: usize) -> Result<Vec<T>, KernelFault> {
        // Looked up before the buffer is made: a wild length must fault, not exhaust the host.
        self.check(addr, n.saturating_mul(size_of::<T>()) as u64)?;
        let mut values = vec![T::zeroed(); n];
        self.load_into(addr, &mut values)?;
        Ok(values)
    }

    /// Loads `into.len()` values at `addr`.
    ///
    /// # Errors
    ///
    /// [`KernelFault::Memory`] outside an allocation, [`KernelFault::Cancelled`].
    pub fn load_into<T: Pod>(
        &mut self,
        addr: DeviceAddr,
        into: &mut [T],
    ) -> Result<(), KernelFault> {
        self.running()?;
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(into);
        self.device.read_bytes(addr, bytes)?;
        self.counters.bytes_read += bytes.len() as u64;
        Ok(())
    }

    /// Stores `values` at `addr`.
    ///
    /// # Errors
    ///
    /// [`KernelFault::Memory`] outside an allocation (nothing was stored),
    /// [`KernelFault::Cancelled`].
    pub fn store<T: NoUninit>(
        &mut self,
        addr: DeviceAddr,
        values: &[T],
    ) -> Result<(), KernelFault> {
        self.running()?;
        let bytes: &[u8] = bytemuck::cast_slice(values);
        self.device.write_bytes(addr, bytes)?;
        self.counters.bytes_written += bytes.len() as u64;
        Ok(())
    }

    /// Counts `n` operations.
    pub fn add_operations(&mut self, n: u64) {
        self.counters.operations += n;
    }

    /// Fails once the kernel's queue was destroyed. Long computations between memory accesses call
    /// it from time to time.
    ///
    /// # Errors
    ///
    /// [`KernelFault::Cancelled`].
    pub fn running(&self) -> Result<(), KernelFault> {
        if self.cancel.is_cancelled() {
            return Err(KernelFault::Cancelled);
        }
        Ok(())
    }

    fn check(&self, addr: DeviceAddr, len: u64) -> Result<(), KernelFault> {
        Ok(self.device.check(addr, len)?)
    }
}
