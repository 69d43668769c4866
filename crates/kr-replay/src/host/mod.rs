//! A whole backend in host memory: applications for it run, and are profiled, without a GPU.
//!
//! [`HostRuntime`] is what an application uses: buffers, queues and launches, in the shape of a GPU
//! runtime. [`HostRuntime::attach`] puts an [`Engine`](crate::Engine) in front of its queues, as a
//! tool is loaded in front of a real runtime; the application does not notice. [`HostQueue`] is the
//! queue, and [`HostTarget`] the [`ReplayTarget`](crate::ReplayTarget) that each of its launches
//! becomes.
//!
//! What always holds
//! - Work of one queue runs in order, on a thread of that queue; queues run side by side.
//! - Passes run on a queue of the runtime's own, so that the application's queue can be held.
//! - Buffers are tracked memory of class VRAM. A buffer that is dropped while a window holds it is
//!   really freed when the window has left.
//! - Reads and writes of a buffer by the application wait for a window to close, as copies do
//!   behind a copy fence.
//!
//! Not here: the memory itself and the kernels ([`kr_device::host`]).

mod buffer;
mod own_queue;
mod queue;
mod runtime;
mod signal;
mod target;

pub use buffer::{HostBuffer, HostError};
pub use kr_device::host::{
    Cancel, HostCounters, HostDevice, HostKernel, KernelCtx, KernelFault, KernelLaunch,
};
pub use queue::HostQueue;
pub use runtime::{HostRuntime, Intercept};
pub use signal::HostSignal;
pub use target::HostTarget;
