//! A device in host memory: real copies on worker threads, and kernels that are Rust closures.
//!
//! [`HostDevice`] implements [`Device`](crate::Device). Its addresses are not pointers: they come
//! from an address space of their own, lie a guard page apart, and are handed out again after a
//! free as a caching allocator would. [`HostKernel`] is work that reads and writes that memory
//! through [`KernelCtx`], which bounds-checks every access and counts it.
//!
//! Invariants
//! - Device memory is made of relaxed atomic words. A race between copies, kernels and the
//!   application gives wrong bytes, as on a GPU, and never undefined behaviour; there is no unsafe
//!   block in this backend.
//! - Submissions complete in order; the chunks of one run on all workers at once.
//! - An access outside an allocation is an error that names the address, never a panic.
//!
//! Not here: queues of an application and their interception (`kr-replay`'s `host` module).
//!
//! # Example
//!
//! ```
//! use kr_device::host::{HostDevice, HostKernel, KernelLaunch};
//! use kr_device::{Block, Device};
//! use kr_types::{AgentId, DeviceAddr, Tier};
//!
//! let device = HostDevice::new(AgentId(0));
//! let block = device.alloc(Tier::Device, 4096.try_into()?)?;
//! let double = HostKernel::new("double", |ctx| {
//!     let (addr, n) = ctx.args::<[u64; 2]>().map(|[addr, n]| (DeviceAddr(addr), n as usize))?;
//!     let mut values = ctx.load::<u32>(addr, n)?;
//!     values.iter_mut().for_each(|v| *v *= 2);
//!     ctx.add_operations(n as u64);
//!     ctx.store(addr, &values)
//! });
//! device.write_bytes(block.addr(), &21u32.to_le_bytes())?;
//! let launch = KernelLaunch::new(&double, &[block.addr().0, 1]);
//! let counters = launch.run(&device)?;
//! assert_eq!((counters.bytes_read, counters.bytes_written, counters.operations), (4, 4, 1));
//! let mut out = [0; 4];
//! device.read_bytes(block.addr(), &mut out)?;
//! assert_eq!(u32::from_le_bytes(out), 42);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod copies;
mod device;
mod faults;
mod kernel;
mod memory;

pub use copies::HostFence;
pub use device::{HostBlock, HostDevice, HostDeviceConfig};
pub use faults::{Fault, Hold};
pub use kernel::{Cancel, HostCounters, HostKernel, KernelCtx, KernelFault, KernelLaunch};
