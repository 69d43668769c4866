//! Engines that save device memory, put it back, and tell whether it changed.
//!
//! [`BlitEngine`] is the seam: capture a list of extents, restore it before each pass, check it at
//! the end. [`FullCopy`] is the plain engine: it copies everything, over any
//! [`Device`](kr_device::Device). [`CpuBlit`] hashes on the host's processors and so puts back, or
//! captures again, only what changed. [`Digester`] computes the digest of a tile, [`Stream`] lays
//! all tiles end to end, and [`layout`] holds the structures that the host and the kernels share.
//!
//! Invariants, held by types
//! - A partial capture cannot be restored: only a complete one yields an image.
//! - A partial restore cannot continue: a restore takes the image and gives it back only when
//!   every byte has landed. What is left after a failure accepts nothing but a rescue.
//! - What is still running when a wait ran out is handed to the caller, who keeps all memory that
//!   it touches until it is seen to end.
//!
//! Not here: when and why to capture or restore, and where saved bytes get their room.

mod cpu;
mod digest;
mod engine;
mod full_copy;
#[doc(hidden)]
pub mod fuzzing;
mod header;
pub mod layout;
mod stream;

pub use cpu::{
    CpuBlit, CpuConfig, CpuImage, CpuRestored, CpuTorn, CpuUnfinished, Liveness, Recaptured,
    RestoreReport,
};
pub use digest::{Digester, process_seed};
pub use engine::{
    BlitEngine, BlitError, CaptureError, RestoreError, RestoreResult, Restored, Unfinished, Verdict,
};
pub use full_copy::{FullCopy, Image, Torn};
pub use stream::{MIN_PIECE_BYTES, Run, Split, Stream, StreamError};
