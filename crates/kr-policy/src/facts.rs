//! What is known of a window: before it, to choose by ([`Facts`]), and after it, to learn from
//! ([`Observed`]).

use std::time::Duration;

use kr_types::{ByTier, KernelId, RestoreMode};

use crate::mode::EndCheck;

/// What is known of a window when its restore modes are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The kernel that is replayed.
    pub kernel: KernelId,
    /// Work-items of the dispatch in x, y and z.
    pub grid: [u32; 3],
    /// Passes that will run at the most; `None` if the profiler decides as it goes.
    pub passes: Option<u32>,
    /// Bytes captured, by the tier that holds the copy. The live bytes are in the agent's memory
    /// either way.
    pub live_bytes: ByTier<u64>,
    /// How fast the window's agent moves bytes.
    pub rates: Rates,
    /// Whether there is an engine that hashes, and digests of this capture.
    pub can_hash: bool,
    /// The promise that a list restore needs, if the window can give it.
    pub end_check: Option<EndCheck>,
    /// Whether the user wants every pass verified, whatever it costs (`KR_VERIFY=every-pass`).
    pub every_pass_only: bool,
}

impl Facts {
    /// The promise, if memory may be put back by a list at all. Every policy asks here.
    pub(crate) fn may_hash_once(&self) -> Option<EndCheck> {
        self.end_check
            .filter(|_| self.can_hash && !self.every_pass_only)
    }
}

/// What an agent's transfers cost, as measured when it was first used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// Traffic of the agent's memory, bytes read plus bytes written; 0 if not measured.
    pub device_bytes_per_second: u64,
    /// Bytes over the link to the host, in one direction; 0 if not measured.
    pub link_bytes_per_second: u64,
    /// What one more submission in a chain costs: a dispatch, a barrier, a counter read.
    pub submission: Duration,
}

impl Rates {
    /// Stands in for what was not measured: a data-centre GPU of the HBM3 generation on a PCIe 5
    /// link of 16 lanes.
    ///
    /// Blits there move 3.9 to 4.4 TB/s of traffic, pinned copies 54 to 55 GB/s. With 17 µs a
    /// submission, hashing begins to pay at 64 MiB of device memory and near 1 MiB behind the link.
    pub const ASSUMED: Self = Self {
        device_bytes_per_second: 3_900_000_000_000,
        link_bytes_per_second: 54_000_000_000,
        submission: Duration::from_micros(17),
    };
}

/// What a window turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The modes that the window began with.
    pub modes: ByTier<RestoreMode>,
    /// Passes that ran.
    pub passes: u32,
    /// Restores that hashed.
    pub hashed_restores: u32,
    /// Bytes in tiles that a pass had changed, the largest over the passes. Means something only
    /// for a tier that was hashed.
    pub changed_bytes: ByTier<u64>,
    /// Whether the list of changed tiles was the same after every pass that was followed by a hash
    /// of all tiles; `None` if fewer than two were.
    pub equal_lists: Option<bool>,
    /// Whether the final check found a change off the list.
    pub unlisted_change: bool,
    /// One blit of this window, timed.
    pub blit: Option<Blit>,
}

/// One timed blit. Its tiers move at the same time, so it takes as long as the slower resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blit {
    /// Traffic of the agent's memory in bytes, reads plus writes.
    pub device_bytes: u64,
    /// Bytes over the link to the host.
    pub link_bytes: u64,
    /// From its start to its end, by the agent's clock.
    pub time: Duration,
}
