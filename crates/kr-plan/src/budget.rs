//! Budgets: how many bytes each tier may use, as functions of facts.
//!
//! A block that is retained counts as free memory, since the next window uses it again. So margins
//! are taken from the *sum* of both: taken from what is free alone they would shrink with every
//! window, and each window would allocate anew.
//!
//! Invariants
//! - With constant memory, budgets are constant from the second window on, however much is asked for.
//! - A retained block is never too large for its own budget, unless a limit of the pool, of the
//!   agent's memory or of the agent's share has sunk below it.
//! - Facts may be any numbers; nothing wraps.
//!
//! Not here: where facts come from. Reading `/proc` or control groups is the caller's.

use std::fmt;
use std::num::NonZeroU32;

use kr_storage::TierBudget;
use kr_types::Tier;

/// Bytes of device memory that stay free at least: scratch for a large kernel must still fit.
pub const DEVICE_RESERVE: u64 = 512 << 20;
/// One part in so many of the device memory stays free.
const DEVICE_MARGIN: u64 = 20;

/// What is known about an agent's memory. All in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceFacts {
    /// Largest allocation of the pool; 0 if it allows none.
    pub alloc_max: u64,
    /// Memory of the agent in all.
    pub total: u64,
    /// What the runtime says is free, or `None` if it does not say. A hint.
    pub free: Option<u64>,
    /// Length of the idle block that is retained for the agent and this pool.
    pub retained: u64,
    /// What the window has still to allocate here besides the saved bytes, such as tile lists.
    pub metadata: u64,
}

impl DeviceFacts {
    /// The budget of device memory: what is free and retained, less a margin of 5 % or
    /// [`DEVICE_RESERVE`], whichever is more; at most half of the agent's memory, and a quarter if
    /// nobody knows what is free.
    pub fn budget(&self) -> TierBudget {
        let bytes = match self.free {
            Some(free) => {
                let sum = self.retained.saturating_add(free);
                let margin = sum.div_ceil(DEVICE_MARGIN).max(DEVICE_RESERVE);
                sum.saturating_sub(margin).saturating_sub(self.metadata)
            }
            None => (self.total / 4).saturating_sub(self.metadata),
        };
        TierBudget {
            bytes: bytes
                .max(self.retained)
                .min(self.total / 2)
                .min(self.alloc_max),
            retained: self.retained,
            free: self.free.unwrap_or(0),
        }
    }
}

/// A limit that the system sets, and what counts against it already. In bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// The limit.
    pub limit: u64,
    /// Used so far, retained blocks included.
    pub used: u64,
}

impl Quota {
    /// What is left of it.
    pub const fn left(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }
}

/// What is known about the host's memory. All in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostFacts {
    /// Largest allocation of the pool; 0 if it allows none.
    pub alloc_max: u64,
    /// Memory of the host in all.
    pub total: u64,
    /// What can be had without swapping (`MemAvailable`), or `None` if unknown.
    pub available: Option<u64>,
    /// The limit of the container, if there is one (`memory.max`, `memory.current`).
    pub container: Option<Quota>,
    /// The limit on locked memory, where it applies to pinned memory (`RLIMIT_MEMLOCK`).
    pub locked: Option<Quota>,
    /// Agents that this process can use; they share the host's memory.
    pub visible_agents: NonZeroU32,
    /// Length of the idle block that is retained for this agent and this pool.
    pub retained: u64,
}

impl HostFacts {
    /// The budget of pinned memory of one agent: half of what is available and retained, and at most
    /// an equal share of half the host, or container; a quarter of that if nobody knows what is
    /// available.
    pub fn budget(&self) -> TierBudget {
        let quotas = [self.container, self.locked];
        let left = quotas.iter().flatten().map(Quota::left).min();
        let available = self
            .available
            .map(|available| available.min(left.unwrap_or(u64::MAX)));
        let total = self
            .container
            .map_or(self.total, |container| container.limit.min(self.total));
        let bytes = match available {
            Some(available) => self.retained.saturating_add(available) / 2,
            None => {
                let left = left.map_or(u64::MAX, |left| self.retained.saturating_add(left));
                (total / 4).min(left)
            }
        };
        let share = total / 2 / u64::from(self.visible_agents.get());
        TierBudget {
            bytes: bytes.max(self.retained).min(share).min(self.alloc_max),
            retained: self.retained,
            free: available.unwrap_or(0),
        }
    }
}

/// The budgets of one agent's tiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budgets {
    /// Of the agent's own memory.
    pub device: TierBudget,
    /// Of pinned host memory.
    pub pinned: TierBudget,
}

impl Budgets {
    /// The budgets that follow from the facts. A tier other than `only`, if one is forced, has
    /// none; nor has device memory if no kernels of ours can copy there.
    ///
    /// ```
    /// use std::num::NonZeroU32;
    /// use kr_plan::{Budgets, DeviceFacts, HostFacts, Quota};
    ///
    /// const GIB: u64 = 1 << 30;
    /// let device = DeviceFacts {
    ///     alloc_max: 64 * GIB, total: 64 * GIB, free: Some(20 * GIB), retained: 0, metadata: 0,
    /// };
    /// let host = HostFacts {
    ///     alloc_max: 512 * GIB, total: 512 * GIB, available: Some(400 * GIB),
    ///     container: Some(Quota { limit: 64 * GIB, used: 24 * GIB }), locked: None,
    ///     visible_agents: NonZeroU32::new(8).unwrap(), retained: 0,
    /// };
    /// let budgets = Budgets::new(&device, &host, None, true);
    /// assert_eq!(budgets.device.bytes, 19 * GIB);
    /// assert_eq!(budgets.pinned.bytes, 4 * GIB, "an eighth of half the container");
    /// ```
    pub fn new(device: &DeviceFacts, host: &HostFacts, only: Option<Tier>, kernels: bool) -> Self {
        let closed_unless = |open: bool, budget: TierBudget| TierBudget {
            bytes: if open { budget.bytes } else { 0 },
            ..budget
        };
        let may = |tier| only.is_none_or(|only| only == tier);
        Self {
            device: closed_unless(may(Tier::Device) && kernels, device.budget()),
            pinned: closed_unless(may(Tier::PinnedHost), host.budget()),
        }
    }
}

/// How a tier stood when a plan found no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TierReport {
    /// Which kind of memory it is.
    pub tier: Tier,
    /// Its budget, and what that came from.
    pub budget: TierBudget,
    /// Bytes that could still be used: the budget, or less after its block was refused.
    pub capacity: u64,
    /// Bytes that had been granted, padding included.
    pub used: u64,
}

/// What was asked for and what there was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetReport {
    /// Bytes of all requests, without padding.
    pub demand: u128,
    /// The tiers, in the chain's order.
    pub tiers: Vec<TierReport>,
}

impl fmt::Display for BudgetReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes to save", self.demand)?;
        for TierReport {
            tier,
            budget,
            capacity,
            used,
        } in &self.tiers
        {
            let TierBudget {
                bytes,
                retained,
                free,
            } = budget;
            write!(f, "; {tier}: {used} used of a budget of {bytes}")?;
            if capacity < bytes {
                write!(f, " cut to {capacity}")?;
            }
            write!(f, ", {retained} retained, {free} free")?;
        }
        Ok(())
    }
}
