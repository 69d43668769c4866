use std::num::NonZeroU64;

use kr_types::{AgentId, DeviceAddr, Tier};

/// Why an operation of a backend failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The tier has no room for the block. Nothing was allocated, so a smaller block or another
    /// tier may be tried.
    #[error("{agent} has no {requested} bytes of {tier} memory left")]
    OutOfMemory {
        /// Whose memory was asked for.
        agent: AgentId,
        /// Which kind of memory.
        tier: Tier,
        /// Bytes asked for.
        requested: NonZeroU64,
    },
    /// The range is not mapped for this agent, or not in one piece. A copy that reports it may
    /// have written a part of its destination.
    #[error("{agent} cannot access {len} bytes at {addr}")]
    Fault {
        /// Which agent made the access.
        agent: AgentId,
        /// First byte of the range.
        addr: DeviceAddr,
        /// Length of the range in bytes.
        len: u64,
    },
    /// The runtime refused or broke off the operation; destinations are in an unknown state.
    #[error("{agent}: {operation} failed: {detail}")]
    Failed {
        /// On which agent.
        agent: AgentId,
        /// What was attempted, such as `copy`.
        operation: &'static str,
        /// What the runtime said.
        detail: String,
    },
}
