//! The engine that runs on the host's processors, over any [`Device`](kr_device::Device).
//!
//! [`CpuBlit`] reads memory through [`Device::read`](kr_device::Device::read), hashes it on several
//! threads, and lets the device itself copy whatever is copied whole. It works in every mode and on
//! every backend; where an agent can run kernels, it is what they are compared with.
//!
//! | File | Job |
//! |---|---|
//! | `engine.rs` | the operations |
//! | `passes.rs` | the passes over the work stream that they are made of |
//! | `image.rs` | what outlives an operation: fingerprints of the saved tiles, marks, state of the tiers |
//! | `fingerprint.rs` | what is remembered of a tile, and the table of it |
//! | `access.rs` | the only file that calls a device: reads, writes and copies of live extents |
//! | `workers.rs` | threads that share a pass |
//! | `report.rs` | what operations say |
//!
//! What always holds
//! - Results do not depend on the number of threads or their timing: a tile belongs to one worker,
//!   and what workers found is added up.
//! - A tile of which all words are equal is not saved but remembered, exactly. Its room in the arena
//!   stays as it is.
//! - A region that was once said to be gone is never read or written again.
//! - That a pass started from other bytes than the saved ones is never forgotten: what would remove
//!   the traces of a change off the list looks for them first.

mod access;
mod engine;
mod fingerprint;
mod image;
mod passes;
mod report;
mod workers;

pub use access::CpuUnfinished;
pub use engine::{CpuBlit, CpuConfig};
pub use image::{CpuImage, CpuTorn, Liveness};
pub use report::{CpuRestored, Recaptured, RestoreReport};
