//! Planning: requests in, placements out. Touches no memory but its own lists.

use std::num::NonZeroU64;

use kr_storage::{Ask, TierChain, TierIx};
use kr_types::Region;

use crate::request::{Checked, Ordered};
use crate::{BudgetReport, FailedRound, NoCapacity, PlanError, Request, TierReport};

/// A planned extent: where a piece of a region will be saved, before any memory exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Placement {
    /// The region, as an index into the caller's list.
    pub region: u32,
    /// Which tier of the chain.
    pub tier: TierIx,
    /// Where the piece starts within its region, in bytes.
    pub region_offset: u64,
    /// Its length in bytes.
    pub len: NonZeroU64,
    /// Where it starts within the tier's arena, in bytes.
    pub offset: u64,
}

/// Where everything will be saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// In the order of placing. Those of one request follow each other, from its start to its end.
    pub placements: Vec<Placement>,
    /// Bytes that the block of each tier must have, padding included, in the chain's order.
    pub used: Vec<u64>,
}

/// Places all requests, in an order that does not depend on the caller's, and commits nothing.
///
/// The chain is left as after [`TierChain::open`] and the grants of the plan, so
/// [`TierChain::commit`] would commit it.
///
/// # Errors
///
/// [`PlanError`]; all grants are forgotten.
pub fn plan<C: TierChain>(
    chain: &mut C,
    regions: &[Region],
    requests: &[Request],
) -> Result<Plan, PlanError> {
    let ordered = Ordered::new(regions, requests)?;
    chain.open();
    let (mut placements, mut used) = (Vec::new(), Vec::new());
    if used.try_reserve_exact(C::TIERS as usize).is_err() {
        let requests = requests.len();
        return Err(PlanError::Metadata { requests });
    }
    place(chain, regions, &ordered, &mut placements, Vec::new())?;
    used.extend(chain.arenas().map(|(_, arena)| arena.used()));
    Ok(Plan { placements, used })
}

/// One round: places everything anew. `rounds` are those that failed before; they come back.
pub(crate) fn place<C: TierChain>(
    chain: &mut C,
    regions: &[Region],
    ordered: &Ordered,
    placements: &mut Vec<Placement>,
    rounds: Vec<FailedRound>,
) -> Result<Vec<FailedRound>, PlanError> {
    chain.reset();
    placements.clear();
    let metadata = PlanError::Metadata {
        requests: ordered.len(),
    };
    // Most requests take one placement.
    if placements.try_reserve(ordered.len()).is_err() {
        return Err(metadata);
    }
    for request in ordered.iter() {
        let region = &regions[request.region as usize];
        match place_one(chain, request, region, placements) {
            Ok(()) => {}
            Err(Stuck::Metadata) => {
                chain.reset();
                return Err(metadata);
            }
            Err(Stuck::Exhausted { missing }) => {
                let report = report(chain, ordered);
                chain.reset();
                return Err(PlanError::NoCapacity(NoCapacity {
                    region: request.region,
                    missing,
                    report,
                    rounds,
                }));
            }
        }
    }
    Ok(rounds)
}

enum Stuck {
    Metadata,
    Exhausted { missing: NonZeroU64 },
}

/// Offers a request to one tier after the other, and to each until it declines: a tier whose room is
/// in several pieces takes it in several parts.
fn place_one<C: TierChain>(
    chain: &mut C,
    request: &Checked,
    region: &Region,
    placements: &mut Vec<Placement>,
) -> Result<(), Stuck> {
    let first = placements.len();
    let mut tier = TierIx::FIRST;
    let mut live = request.live;
    let mut rest = Some(request.len);
    while let Some(remaining) = rest {
        // Does not wrap: all live bytes of a request lie inside its region.
        let at = live.0 - region.base().0;
        let ask = Ask {
            remaining,
            region_offset: at,
            align: request.align(live),
            priority: request.priority,
            class: region.class(),
        };
        let grant = chain
            .offer(tier, &ask)
            .map_err(|exhausted| Stuck::Exhausted {
                missing: exhausted.missing,
            })?;
        let len = grant.len.min(remaining);
        let placement = Placement {
            region: request.region,
            tier: grant.tier,
            region_offset: at,
            len,
            offset: grant.offset,
        };
        let last = placements[first..].last_mut();
        if !last.is_some_and(|last| last.absorbs(&placement)) {
            if placements.len() == placements.capacity() {
                placements.try_reserve(1).map_err(|_| Stuck::Metadata)?;
            }
            placements.push(placement);
        }
        tier = grant.tier;
        live.0 += len.get();
        rest = NonZeroU64::new(remaining.get() - len.get());
    }
    Ok(())
}

impl Placement {
    /// Takes in the next piece of the same request, if it follows on in the arena too.
    fn absorbs(&mut self, next: &Self) -> bool {
        let end = self.offset.checked_add(self.len.get());
        let touches = self.tier == next.tier && end == Some(next.offset);
        match self.len.checked_add(next.len.get()) {
            Some(len) if touches => {
                self.len = len;
                true
            }
            _ => false,
        }
    }
}

fn report<C: TierChain>(chain: &C, ordered: &Ordered) -> BudgetReport {
    BudgetReport {
        demand: ordered.demand(),
        tiers: chain
            .arenas()
            .map(|(_, arena)| TierReport {
                tier: arena.tier(),
                budget: arena.budget(),
                capacity: arena.capacity(),
                used: arena.used(),
            })
            .collect(),
    }
}
