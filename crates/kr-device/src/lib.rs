//! The device seam: what the replay engine needs from a GPU agent, and nothing more.
//!
//! [`Device`] is memory, copies and fences; [`Launch`] adds kernels. A backend implements them for
//! one runtime (HSA, CUDA); [`host`] implements [`Device`] in host memory with real copies on
//! worker threads, so that everything above this seam runs, and is tested, without a GPU.
//!
//! Invariants
//! - Validation has one home, above the seam: backends trust their caller. What they detect anyway
//!   they report as a [`DeviceError`].
//! - A [`DeviceAddr`](kr_types::DeviceAddr) never becomes a reference outside a backend: the GPU
//!   may write that memory at any time.
//! - Every wait has a limit. A wait that ran out leaves the work running; its memory belongs to
//!   the agent until the fence is seen to complete.
//!
//! Not here: replay, tiers' budgets, HSA or CUDA.

mod error;
pub mod host;
mod seam;

pub use error::DeviceError;
pub use seam::{Block, CopyOp, Device, KernelStep, Launch};
