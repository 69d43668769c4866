//! What a backend tells of a launch that it intercepted.

use std::sync::Arc;

use kr_types::{AgentId, KernelId, QueueId};

/// One launch, as the application made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// The agent that it goes to.
    pub agent: AgentId,
    /// The application's queue.
    pub queue: QueueId,
    /// The kernel. What the engine learns of a kernel it remembers under this id.
    pub kernel: KernelId,
    /// The kernel's name, for people.
    pub kernel_name: Arc<str>,
    /// Work-items per dimension.
    pub grid: [u32; 3],
    /// Work-items of a workgroup per dimension.
    pub workgroup: [u32; 3],
    /// Scratch memory per work-item, in bytes.
    pub private_segment_bytes: u32,
    /// LDS per workgroup, in bytes.
    pub group_segment_bytes: u32,
    /// The kernel arguments as the application passed them.
    pub kernarg: Arc<[u8]>,
}
