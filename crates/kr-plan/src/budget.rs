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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;

    const DEVICE: DeviceFacts = DeviceFacts {
        alloc_max: u64::MAX,
        total: 64 * GIB,
        free: Some(20 * GIB),
        retained: 0,
        metadata: 0,
    };
    const HOST: HostFacts = HostFacts {
        alloc_max: u64::MAX,
        total: 512 * GIB,
        available: Some(40 * GIB),
        container: None,
        locked: None,
        visible_agents: NonZeroU32::MIN,
        retained: 0,
    };

    #[test]
    fn device_budgets() {
        let budget = |facts: DeviceFacts| facts.budget().bytes;
        assert_eq!(budget(DEVICE), 19 * GIB, "less 5 %");
        let retained = |retained, free| DeviceFacts {
            retained,
            free: Some(free),
            ..DEVICE
        };
        assert_eq!(budget(retained(15 * GIB, 5 * GIB)), 19 * GIB, "of the sum");
        assert_eq!(
            budget(retained(15 * GIB, 0)),
            15 * GIB,
            "what is held may be used"
        );
        assert_eq!(
            budget(retained(0, 2 * GIB)),
            2 * GIB - 512 * MIB,
            "the reserve"
        );
        assert_eq!(budget(retained(0, 512 * MIB)), 0);
        assert_eq!(budget(retained(0, 60 * GIB)), 32 * GIB, "half of all");
        let metadata = GIB;
        assert_eq!(
            budget(DeviceFacts { metadata, ..DEVICE }),
            18 * GIB,
            "less lists"
        );
        let alloc_max = 7 * GIB;
        assert_eq!(
            budget(DeviceFacts {
                alloc_max,
                ..DEVICE
            }),
            alloc_max
        );
        let unknown = DeviceFacts {
            free: None,
            ..DEVICE
        };
        assert_eq!(budget(unknown), 16 * GIB, "a quarter");
        let refuses = DeviceFacts {
            alloc_max: 0,
            ..unknown
        };
        assert_eq!(budget(refuses), 0);
    }

    #[test]
    fn pinned_budgets() {
        let budget = |facts: HostFacts| facts.budget().bytes;
        assert_eq!(budget(HOST), 20 * GIB, "half of what is available");
        let retained = HostFacts {
            retained: 20 * GIB,
            available: Some(20 * GIB),
            ..HOST
        };
        assert_eq!(budget(retained), 20 * GIB, "half of the sum");
        let tight = HostFacts {
            available: Some(0),
            ..retained
        };
        assert_eq!(budget(tight), 20 * GIB, "what is held may be used");

        let eight = NonZeroU32::new(8).unwrap();
        let shared = HostFacts {
            available: Some(500 * GIB),
            visible_agents: eight,
            ..HOST
        };
        assert_eq!(
            budget(shared),
            32 * GIB,
            "an equal share, whoever comes first"
        );

        let container = Some(Quota {
            limit: 16 * GIB,
            used: 10 * GIB,
        });
        let contained = HostFacts { container, ..HOST };
        assert_eq!(budget(contained), 3 * GIB, "half of what is left");
        assert_eq!(contained.budget().free, 6 * GIB);
        let contained = HostFacts {
            visible_agents: eight,
            ..contained
        };
        assert_eq!(budget(contained), GIB, "the share of the container");
        let locked = Some(Quota {
            limit: 64 * MIB,
            used: 65 * MIB,
        });
        assert_eq!(budget(HostFacts { locked, ..HOST }), 0, "nothing is left");

        let unknown = HostFacts {
            available: None,
            ..HOST
        };
        assert_eq!(budget(unknown), 128 * GIB);
        let unknown = HostFacts {
            container,
            ..unknown
        };
        assert_eq!(budget(unknown), 4 * GIB);
    }

    #[test]
    fn a_forced_tier_leaves_the_other_none() {
        let bytes = |only, kernels| {
            let budgets = Budgets::new(&DEVICE, &HOST, only, kernels);
            (budgets.device.bytes / GIB, budgets.pinned.bytes / GIB)
        };
        assert_eq!(bytes(None, true), (19, 20));
        assert_eq!(bytes(Some(Tier::Device), true), (19, 0));
        assert_eq!(bytes(Some(Tier::PinnedHost), true), (0, 20));
        assert_eq!(bytes(None, false), (0, 20), "no kernels of ours");
    }

    fn any_bytes() -> impl Strategy<Value = u64> {
        prop_oneof![
            Just(0u64),
            Just(1),
            any::<u64>(),
            0u64..1 << 40,
            Just(u64::MAX)
        ]
    }

    fn any_quota() -> impl Strategy<Value = Option<Quota>> {
        prop::option::of((any_bytes(), any_bytes()).prop_map(|(limit, used)| Quota { limit, used }))
    }

    proptest! {
        /// Whatever the facts, no budget is above a limit, and nothing wraps.
        #[test]
        fn budgets_keep_to_their_limits(
            device in (any_bytes(), any_bytes(), prop::option::of(any_bytes()), any_bytes(), any_bytes()),
            host in (any_bytes(), any_bytes(), prop::option::of(any_bytes()), any_bytes(), 1u32..100),
            quotas in (any_quota(), any_quota()),
        ) {
            let (alloc_max, total, free, retained, metadata) = device;
            let facts = DeviceFacts { alloc_max, total, free, retained, metadata };
            let bytes = facts.budget().bytes;
            prop_assert!(bytes <= alloc_max && bytes <= total / 2);
            if let Some(free) = free && bytes > retained {
                let kept = u128::from(retained) + u128::from(free) - u128::from(bytes);
                prop_assert!(kept >= u128::from(DEVICE_RESERVE) + u128::from(metadata));
            }

            let (alloc_max, total, available, retained, agents) = host;
            let visible_agents = NonZeroU32::new(agents).unwrap();
            let (container, locked) = quotas;
            let facts =
                HostFacts { alloc_max, total, available, container, locked, visible_agents, retained };
            let bytes = facts.budget().bytes;
            prop_assert!(bytes <= alloc_max && bytes <= total / 2 / u64::from(agents));
            for quota in [container, locked].into_iter().flatten() {
                prop_assert!(bytes <= retained.saturating_add(quota.left()));
            }
        }

        /// Budgets that are filled each time are the same from the second replay on.
        #[test]
        fn invariant_20_budget_fixpoint_of_facts(
            device_memory in 0u64..1 << 50,
            host_memory in 0u64..1 << 50,
            granule in prop_oneof![Just(1u64), Just(4096), Just(2 << 20)],
        ) {
            let fill = |bytes: u64, memory: u64| bytes.next_multiple_of(granule).min(memory);
            let (mut device, mut host) = (DEVICE, HOST);
            (device.total, host.total) = (u64::MAX, u64::MAX);
            let mut seen = Vec::new();
            for _replay in 0..100 {
                device.free = Some(device_memory - device.retained);
                host.available = Some(host_memory - host.retained);
                let budgets = Budgets::new(&device, &host, None, true);
                seen.push(budgets);
                // The retained block only grows, and is as large as its pool makes it.
                device.retained = fill(budgets.device.bytes, device_memory).max(device.retained);
                host.retained = fill(budgets.pinned.bytes, host_memory).max(host.retained);
            }
            let bytes = |budgets: &Budgets| (budgets.device.bytes, budgets.pinned.bytes);
            for budgets in &seen[1..] {
                prop_assert_eq!(bytes(budgets), bytes(&seen[1]));
            }
        }
    }
}
