//! Committing: a plan becomes blocks, or the tiers that cannot are cut and given up.

use std::collections::TryReserveError;
use std::num::NonZeroU64;

use kr_storage::{Committed, TierChain};
use kr_types::{DeviceAddr, Extent, Region};

use crate::plan::place;
use crate::request::Ordered;
use crate::{FailedRound, Placement, PlanError, Request, Then};

/// Everything placed, and the memory for it.
#[derive(Debug)]
pub struct Storage {
    extents: Vec<Extent>,
    blocks: Committed,
    rounds: Vec<FailedRound>,
}

impl Storage {
    /// Where each piece is saved, in the order of placing. Those of one request follow each other.
    pub fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// The blocks that the saved sides lie in.
    pub fn blocks(&self) -> &Committed {
        &self.blocks
    }

    /// The commits that failed before this one worked, in order.
    pub fn failed_rounds(&self) -> &[FailedRound] {
        &self.rounds
    }

    /// Takes the two apart. The blocks must be kept for as long as anything may touch the extents.
    pub fn into_parts(self) -> (Vec<Extent>, Committed) {
        (self.extents, self.blocks)
    }
}

/// Places all requests and commits one block for each tier that is used.
///
/// If a tier has no block, those of the tiers before it are taken back, the last one first, and
/// everything is planned anew: with the tier cut to a size that may still exist, once, if memory was
/// what it lacked; then without it. Losing a race for the last percent of a tier so costs a part of
/// it, not all. Each tier fails twice at most, so there are at most two rounds per tier and one more.
///
/// Nothing of the application has been read or written meanwhile, so planning again is free.
///
/// # Errors
///
/// [`PlanError`]; no block is held that was not held before.
pub fn plan_and_commit<C: TierChain>(
    chain: &mut C,
    regions: &[Region],
    requests: &[Request],
) -> Result<Storage, PlanError> {
    let ordered = Ordered::new(regions, requests)?;
    chain.open();
    let mut placements = Vec::new();
    let mut rounds = Vec::new();
    loop {
        rounds = place(chain, regions, &ordered, &mut placements, rounds)?;
        match chain.commit() {
            Ok(blocks) => {
                let Ok(extents) = extents(regions, &placements, &blocks) else {
                    blocks.undo();
                    let requests = requests.len();
                    return Err(PlanError::Metadata { requests });
                };
                return Ok(Storage {
                    extents,
                    blocks,
                    rounds,
                });
            }
            Err(refusal) => {
                let again = |round: &FailedRound| round.refusal.tier == refusal.tier;
                let smaller = if rounds.iter().any(again) {
                    None
                } else {
                    refusal.source.smaller()
                };
                if let Some(arena) = chain.arena_mut(refusal.tier) {
                    arena.limit(smaller.map_or(0, NonZeroU64::get));
                }
                rounds.push(FailedRound {
                    refusal,
                    then: smaller.map_or(Then::Disabled, Then::CutTo),
                });
            }
        }
    }
}

/// The placements, in the blocks that were committed for them.
fn extents(
    regions: &[Region],
    placements: &[Placement],
    blocks: &Committed,
) -> Result<Vec<Extent>, TryReserveError> {
    let mut extents = Vec::new();
    extents.try_reserve_exact(placements.len())?;
    // Neighbours mostly share their tier, so it is looked up once for a run of them.
    for run in placements.chunk_by(|a, b| a.tier == b.tier) {
        let committed = blocks
            .get(run[0].tier)
            .expect("every tier in use was committed");
        let base = committed.block.addr();
        extents.extend(run.iter().map(|placement| {
            Extent::new(
                regions[placement.region as usize],
                placement.region_offset,
                placement.len.get(),
                // Does not wrap: the placement lies inside its block, and the block does not.
                DeviceAddr(base.0 + placement.offset),
                committed.tier,
            )
            .expect("the placement lies inside its region and its block")
        }));
    }
    Ok(extents)
}
