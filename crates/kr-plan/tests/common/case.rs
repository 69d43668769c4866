//! Inventories, tiers and what a plan makes of them, at random.

use kr_plan::{Plan, PlanError, Request, plan};
use kr_storage::{Align, Bump, Closed, PrefixChunking, Select, Suballocator, WholeRegion};
use kr_types::{AgentId, DeviceAddr, Generation, MemoryClass, Region, TILE_BYTES};
use proptest::prelude::*;
use proptest::sample::Index;

use super::holes::Holes;
use super::scripted::{Log, Script, Scripted};
use super::{AnyTier, tier};
use crate::with_chain;

/// An admission by name, so that cases can be printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Whole,
    Prefix,
    /// Prefix chunking for requests of some priority only.
    HotPrefix,
    /// Whole regions that are small.
    SmallWhole,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    Bump,
    Holes(Vec<(u64, u64)>),
}

/// A suballocator of either kind.
#[derive(Clone, Debug)]
pub(crate) enum AnySpace {
    Bump(Bump),
    Holes(Holes),
}

impl Suballocator for AnySpace {
    fn room(&self, capacity: u64, align: Align) -> u64 {
        match self {
            Self::Bump(space) => space.room(capacity, align),
            Self::Holes(space) => space.room(capacity, align),
        }
    }

    fn carve(&mut self, capacity: u64, len: std::num::NonZeroU64, align: Align) -> Option<u64> {
        match self {
            Self::Bump(space) => space.carve(capacity, len, align),
            Self::Holes(space) => space.carve(capacity, len, align),
        }
    }

    fn high_water(&self) -> u64 {
        match self {
            Self::Bump(space) => space.high_water(),
            Self::Holes(space) => space.high_water(),
        }
    }

    fn reset(&mut self) {
        match self {
            Self::Bump(space) => space.reset(),
            Self::Holes(space) => space.reset(),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct TierCase {
    pub(crate) capacity: u64,
    pub(crate) entry: Entry,
    pub(crate) space: Space,
}

#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) regions: Vec<Region>,
    pub(crate) requests: Vec<Request>,
    pub(crate) tiers: Vec<TierCase>,
}

pub(crate) type CaseTier = AnyTier<AnySpace, Scripted>;

impl Case {
    /// The tiers, with scripts in their order; those that are left over work.
    pub(crate) fn tiers(&self, log: &Log, scripts: &[Script]) -> Vec<CaseTier> {
        let scripts = scripts
            .iter()
            .copied()
            .chain(std::iter::repeat(Script::Works));
        self.tiers
            .iter()
            .zip(scripts)
            .enumerate()
            .map(|(at, (case, script))| {
                let space = match &case.space {
                    Space::Bump => AnySpace::Bump(Bump::new()),
                    Space::Holes(holes) => AnySpace::Holes(Holes::new(holes.clone())),
                };
                let backing = Scripted::new(at, case.capacity, script, log);
                match case.entry {
                    Entry::Whole => tier(WholeRegion, space, backing),
                    Entry::Prefix => tier(PrefixChunking::TILE, space, backing),
                    Entry::HotPrefix => {
                        let hot = Select {
                            property: |ask: &kr_storage::Ask| ask.priority > 0,
                            with: PrefixChunking::TILE,
                            without: Closed,
                        };
                        tier(hot, space, backing)
                    }
                    Entry::SmallWhole => {
                        let small = Select {
                            property: |ask: &kr_storage::Ask| ask.remaining.get() < TILE_BYTES,
                            with: WholeRegion,
                            without: Closed,
                        };
                        tier(small, space, backing)
                    }
                }
            })
            .collect()
    }

    /// Plans over backings that may not be committed.
    pub(crate) fn plan(&self) -> Result<Plan, PlanError> {
        let log = Log::default();
        with_chain!(self.tiers(&log, &[Script::Panics; 4]), |chain| plan(
            chain,
            &self.regions,
            &self.requests
        ))
    }

    /// The request that covers a byte of a region.
    pub(crate) fn request_of(&self, region: u32, region_offset: u64) -> &Request {
        self.requests
            .iter()
            .find(|one| {
                one.region == region
                    && (one.region_offset..one.region_offset + one.len).contains(&region_offset)
            })
            .expect("placed bytes were asked for")
    }
}

/// Lengths around every border that matters.
fn len() -> impl Strategy<Value = u64> {
    let near = |at: u64| at - 2..=at + 2;
    prop_oneof![
        4 => 1u64..40,
        2 => near(256),
        2 => 1u64..3 * TILE_BYTES,
        2 => near(TILE_BYTES),
        2 => near(4 * TILE_BYTES),
        2 => (1u64..40).prop_map(|tiles| tiles * TILE_BYTES),
        1 => 1u64..64 << 30,
    ]
}

/// Regions that do not overlap, with and without gaps, at any phase.
pub(crate) fn regions(
    count: impl Into<prop::collection::SizeRange>,
) -> impl Strategy<Value = Vec<Region>> {
    let gap = prop_oneof![
        2 => Just(0u64),
        2 => (0u64..50).prop_map(|pages| pages * 4096),
        2 => 0u64..600,
    ];
    prop::collection::vec((gap, len(), any::<bool>()), count).prop_map(|parts| {
        let mut end = 0x1000;
        parts
            .into_iter()
            .map(|(gap, len, variable)| {
                let class = if variable {
                    MemoryClass::ModuleVariable
                } else {
                    MemoryClass::Vram
                };
                let base = DeviceAddr(end + gap);
                end = base.0 + len;
                Region::new(AgentId(1), base, len, Generation::FIRST, class).unwrap()
            })
            .collect()
    })
}

/// Whole regions, and some in parts that are cut anywhere.
fn requests(regions: &[Region], knobs: &[(i32, Option<Index>, u32)]) -> Vec<Request> {
    let mut requests = Vec::new();
    for ((index, region), (priority, cut, power)) in (0..).zip(regions).zip(knobs) {
        let mut whole = Request::whole(index, region).with_priority(*priority);
        if *power < 13 {
            whole.congruence = 1 << power;
        }
        let cut = cut.map(|cut| cut.index(whole.len as usize) as u64);
        match cut {
            Some(cut) if cut > 0 => {
                let head = Request { len: cut, ..whole };
                let tail = Request {
                    region_offset: cut,
                    len: whole.len - cut,
                    priority: priority ^ 1,
                    ..whole
                };
                requests.extend([tail, head]);
            }
            _ => requests.push(whole),
        }
    }
    requests
}

/// Holes that do not touch, in the order of their starts.
fn holes() -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((1u64..40_000, 1u64..12 * TILE_BYTES), 1..6).prop_map(|parts| {
        let mut end = 0;
        parts
            .into_iter()
            .map(|(gap, len)| {
                let start = end + gap;
                end = start + len;
                (start, len)
            })
            .collect()
    })
}

pub(crate) fn space() -> impl Strategy<Value = Space> {
    prop_oneof![Just(Space::Bump), holes().prop_map(Space::Holes)]
}

pub(crate) fn entry() -> impl Strategy<Value = Entry> {
    prop_oneof![
        6 => Just(Entry::Prefix),
        3 => Just(Entry::Whole),
        1 => Just(Entry::HotPrefix),
        1 => Just(Entry::SmallWhole),
    ]
}

/// Cases of one to four tiers, of which some fit and some do not.
pub(crate) fn case(
    entry: impl Strategy<Value = Entry>,
    space: impl Strategy<Value = Space>,
) -> impl Strategy<Value = Case> {
    let capacity = prop_oneof![
        1 => Just(0u64),
        1 => Just(1),
        4 => 0u64..8 * TILE_BYTES,
        4 => 0u64..200 * TILE_BYTES,
        1 => Just(u64::MAX - 7),
        3 => Just(u64::MAX),
    ];
    let tier = (capacity, entry, space).prop_map(|(capacity, entry, space)| TierCase {
        capacity,
        entry,
        space,
    });
    let knob = (
        -1i32..3,
        prop::option::weighted(0.2, any::<Index>()),
        0u32..40,
    );
    (
        regions(1..20),
        prop::collection::vec(knob, 20),
        prop::collection::vec(tier, 1..5),
        any::<bool>(),
    )
        .prop_map(|(regions, knobs, mut tiers, roomy)| {
            if let Some(last) = tiers.last_mut().filter(|_| roomy) {
                (last.capacity, last.space) = (u64::MAX, Space::Bump);
            }
            Case {
                requests: requests(&regions, &knobs),
                regions,
                tiers,
            }
        })
}

/// Cases of all kinds.
pub(crate) fn any_case() -> impl Strategy<Value = Case> {
    case(entry(), space())
}
