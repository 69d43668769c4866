//! What operations of [`CpuBlit`](super::CpuBlit) say about themselves.

use kr_types::ByTier;

use super::CpuImage;

/// A restore that put every byte back.
#[derive(Debug)]
pub struct CpuRestored {
    /// The image, as good as before.
    pub image: CpuImage,
    /// What it took.
    pub report: RestoreReport,
}

/// What a restore did and found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestoreReport {
    /// Sum of the lengths of the tiles that were put back, in bytes.
    pub bytes_copied: u64,
    /// Bytes that were stored: of a tile that was found changed, only the lines that differ.
    pub bytes_written: u64,
    /// Bytes that were hashed.
    pub bytes_hashed: u64,
    /// Bytes that were left alone since their allocation is no longer the one that was saved.
    pub bytes_retired: u64,
    /// Tiles that were hashed in search of changed ones.
    pub tiles_hashed: ByTier<u64>,
    /// Those of them that had changed.
    pub tiles_changed: ByTier<u64>,
    /// Tiles that were found changed although an earlier restore had left them out, so that a pass
    /// started from other bytes than the saved ones. [`verify`](super::CpuBlit::verify) says it
    /// again.
    pub tiles_unlisted: u64,
    /// Whether the tiles that were found changed are those that the hashed restore before found;
    /// `None` if there is nothing to compare.
    pub list_repeated: Option<bool>,
    /// Tiles in which the output of the pass just ended differs from that of the pass before it;
    /// `None` if not both were hashed. More than 0 means that the passes did not compute the same.
    pub outputs_differ: Option<u64>,
}

/// A capture that took over what had not changed since the one before.
#[derive(Debug)]
pub struct Recaptured<I> {
    /// The image.
    pub image: I,
    /// Bytes that were copied into the arena.
    pub bytes_copied: u64,
    /// Bytes that were hashed.
    pub bytes_hashed: u64,
    /// Whether all tiles were copied, changed or not.
    pub full: bool,
}
