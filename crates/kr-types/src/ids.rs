//! Identities. Each is a number whose meaning belongs to whoever issued it; none is an index.

use core::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty), $word:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($word, " {}"), self.0)
            }
        }
    };
}

id! {
    /// One GPU, by its runtime's handle (`hsa_agent_t::handle`, a CUDA device ordinal).
    AgentId(u64), "agent"
}
id! {
    /// One queue (or stream) of an agent, by its runtime's handle or id.
    QueueId(u64), "queue"
}
id! {
    /// One memory pool of a runtime, by its handle (`hsa_amd_memory_pool_t::handle`). Agents may
    /// share one: a pool of host memory serves every agent of its socket.
    PoolId(u64), "pool"
}
id! {
    /// One kernel of one loaded code object; the backend keeps it stable for the object's life.
    KernelId(u64), "kernel"
}
id! {
    /// One logical dispatch: what the application enqueued. CONFIG, all passes, all records and a
    /// declined run carry the same one.
    DispatchId(u64), "dispatch"
}
id! {
    /// Index of a pass within its window, from 0. Pass 0 is the application's genuine execution.
    PassIndex(u32), "pass"
}

impl PassIndex {
    /// Pass 0.
    pub const FIRST: Self = Self(0);

    /// The pass after this one.
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// Stamp of one allocation, unique in the process and never reused.
///
/// Caching allocators hand the same base and size out again at once, so those two do not identify
/// an allocation; with the generation they do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(core::num::NonZeroU64);

impl Generation {
    /// The first generation that is ever issued.
    pub const FIRST: Self = Self(core::num::NonZeroU64::MIN);

    /// The generation after this one. At one per nanosecond it lasts for 584 years.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The stamp as a number, 1 or more.
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

/// Counter of one agent's inventory: raised by every tracked allocation and free.
///
/// Equal values mean that nothing was allocated or freed in between, so liveness checks can be
/// skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct InventoryGeneration(pub u64);
