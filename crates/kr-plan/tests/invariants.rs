//! What holds of every plan, one law per rule.

#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod common;

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex};

use common::case::{AnySpace, Case, Entry, Space, TierCase, any_case, case, entry, regions, space};
use common::holes::Holes;
use common::scripted::{Event, Log, Script, Scripted, base_of};
use common::tier;
use kr_plan::{Placement, Plan, PlanError, Request, RequestError, plan, plan_and_commit};
use kr_storage::{Admission, Ask, Bump, PrefixChunking, TierIx, WholeRegion};
use kr_types::{AgentId, DeviceAddr, Generation, MemoryClass, Region, TILE_BYTES};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// The placements of each request, in the order of the plan.
fn by_request<'a>(case: &'a Case, plan: &'a Plan) -> Vec<(&'a Request, Vec<&'a Placement>)> {
    case.requests
        .iter()
        .map(|request| {
            let inside = |placement: &&Placement| {
                std::ptr::eq(
                    case.request_of(placement.region, placement.region_offset),
                    request,
                )
            };
            (request, plan.placements.iter().filter(inside).collect())
        })
        .collect()
}

fn live(case: &Case, placement: &Placement) -> u64 {
    case.regions[placement.region as usize].base().0 + placement.region_offset
}

fn bump() -> Just<Space> {
    Just(Space::Bump)
}

/// What the laws run on is not all alike: plans and failures, cuts, spills, holes that split.
#[test]
fn cases_are_of_all_kinds() {
    let mut runner = TestRunner::deterministic();
    let (mut planned, mut exhausted, mut cut, mut spilled, mut split) = (0, 0, 0, 0, 0);
    for _ in 0..1000 {
        let case = any_case().new_tree(&mut runner).unwrap().current();
        match case.plan() {
            Err(PlanError::NoCapacity(_)) => exhausted += 1,
            Err(error) => panic!("{error}"),
            Ok(plan) => {
                planned += 1;
                let by_request = by_request(&case, &plan);
                let pairs = || by_request.iter().flat_map(|(_, of_one)| of_one.windows(2));
                cut += usize::from(pairs().any(|pair| pair[0].tier != pair[1].tier));
                split += usize::from(pairs().any(|pair| pair[0].tier == pair[1].tier));
                spilled += usize::from(plan.used[1..].iter().any(|used| *used > 0));
            }
        }
    }
    for (kind, count) in [
        ("planned", planned),
        ("exhausted", exhausted),
        ("cut", cut),
        ("spilled", spilled),
        ("split", split),
    ] {
        println!("{kind}: {count}");
        assert!(count >= 50, "{kind}: {count} of 1000");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Per region, extents are contiguous, start at the request's offset, and sum to its size.
    #[test]
    fn invariant_01_cover(case in any_case()) {
        let Ok(plan) = case.plan() else { return Ok(()) };
        for (request, placements) in by_request(&case, &plan) {
            let mut at = request.region_offset;
            for placement in placements {
                prop_assert_eq!(placement.region_offset, at);
                at += placement.len.get();
            }
            prop_assert_eq!(at, request.region_offset + request.len);
        }
    }

    /// Within a tier, the ranges of distinct extents are disjoint.
    #[test]
    fn invariant_02_no_overlap(case in any_case()) {
        let Ok(plan) = case.plan() else { return Ok(()) };
        let mut ends: BTreeMap<(TierIx, u64), u64> = BTreeMap::new();
        for placement in &plan.placements {
            let start = (placement.tier, placement.offset);
            prop_assert!(ends.insert(start, placement.offset + placement.len.get()).is_none());
        }
        for (((tier, _), end), ((next, start), _)) in ends.iter().zip(ends.iter().skip(1)) {
            prop_assert!(tier != next || end <= start);
        }
    }

    /// Extents end at or below what is used, which is at most the capacity; blocks have that much.
    #[test]
    fn invariant_03_bound(case in any_case()) {
        let log = Log::default();
        let Ok(plan) = case.plan() else { return Ok(()) };
        prop_assert_eq!(plan.used.len(), case.tiers.len());
        let mut end = vec![0; case.tiers.len()];
        for placement in &plan.placements {
            let end = &mut end[placement.tier.0 as usize];
            *end = (*end).max(placement.offset + placement.len.get());
        }
        for ((used, end), tier) in plan.used.iter().zip(&end).zip(&case.tiers) {
            prop_assert_eq!(used, end, "not a byte more than needed");
            prop_assert!(*used <= tier.capacity);
        }
        with_chain!(case.tiers(&log, &[]), |chain| {
            let storage = plan_and_commit(chain, &case.regions, &case.requests).unwrap();
            for (tier, used) in (0..).map(TierIx).zip(&plan.used) {
                let block = storage.blocks().get(tier).map_or(0, |one| one.block.len_bytes().get());
                prop_assert_eq!(block, *used, "freshly allocated");
            }
            for (extent, placement) in storage.extents().iter().zip(&plan.placements) {
                let base = base_of(placement.tier.0 as usize);
                prop_assert_eq!(extent.saved().0, base.0 + placement.offset);
                prop_assert_eq!(extent.live().0, live(&case, placement));
                prop_assert_eq!(extent.len_bytes(), placement.len);
            }
            prop_assert_eq!(storage.extents().len(), plan.placements.len());
        });
    }

    /// Live and saved side agree modulo the congruence, which costs less than twice that in padding.
    #[test]
    fn invariant_04_congruence(case in case(entry(), bump())) {
        let Ok(plan) = case.plan() else { return Ok(()) };
        let mut end = vec![0; case.tiers.len()];
        for placement in &plan.placements {
            let modulus = case.request_of(placement.region, placement.region_offset).congruence;
            prop_assert_eq!(placement.offset % modulus, live(&case, placement) % modulus);
            let end = &mut end[placement.tier.0 as usize];
            prop_assert!(placement.offset - *end < modulus);
            *end = placement.offset + placement.len.get();
        }
    }

    /// By default large regions agree modulo 256 and small ones modulo 16.
    #[test]
    fn invariant_04_congruence_of_whole_regions(regions in regions(1..40)) {
        let case = unlimited(regions);
        let plan = case.plan().unwrap();
        for placement in &plan.placements {
            let modulus = if placement.len.get() < 256 { 16 } else { 256 };
            prop_assert_eq!(placement.offset % modulus, live(&case, placement) % modulus);
        }
        let padding: u64 = plan.used[0] - case.regions.iter().map(|r| r.len_bytes().get()).sum::<u64>();
        prop_assert!(padding < 256 * case.regions.len() as u64);
    }

    /// Every border inside a request is a multiple of a tile from the region's start.
    #[test]
    fn invariant_05_cut_rule(case in any_case()) {
        let Ok(plan) = case.plan() else { return Ok(()) };
        for (_, placements) in by_request(&case, &plan) {
            for placement in placements.iter().skip(1) {
                prop_assert!(placement.region_offset.is_multiple_of(TILE_BYTES));
            }
        }
    }

    /// Permuting the requests, or the regions with them, leaves the plan unchanged; so does
    /// permuting malformed ones with the error.
    #[test]
    fn invariant_06_determinism(
        case in any_case(),
        seed in prop::collection::vec(any::<Index>(), 40),
        again in prop::option::of(any::<Index>()),
        others in 0u64..4,
    ) {
        let mut case = case;
        if let Some(again) = again {
            // Asked for twice, or covered by regions that start where another does.
            let again = *again.get(&case.requests);
            let base = case.regions[again.region as usize].base().0;
            if others == 0 {
                case.requests.push(again);
            }
            for len in 1..=others {
                let index = case.regions.len() as u32;
                case.regions.push(region(base, len));
                case.requests.push(Request::whole(index, &case.regions[index as usize]));
            }
        }
        let mut other = case.clone();
        for at in (1..other.requests.len()).rev() {
            other.requests.swap(at, seed[at].index(at + 1));
        }
        prop_assert_eq!(text(&case.plan()), text(&other.plan()));

        // Regions in another order: their numbers change, their places do not.
        let count = other.regions.len() as u32;
        other.regions.reverse();
        for request in &mut other.requests {
            request.region = count - 1 - request.region;
        }
        match (case.plan(), other.plan()) {
            (Ok(plan), Ok(mut reversed)) => {
                for placement in &mut reversed.placements {
                    placement.region = count - 1 - placement.region;
                }
                prop_assert_eq!(plan, reversed);
            }
            (Err(_), Err(_)) => {}
            (plan, reversed) => prop_assert!(false, "{:?} {:?}", plan, reversed),
        }
    }

    /// Planning commits nothing: backings that panic on a commit do not notice.
    #[test]
    fn invariant_07_purity(case in any_case()) {
        let log = Log::default();
        let plans = with_chain!(case.tiers(&log, &[Script::Panics; 4]), |chain| {
            let first = plan(chain, &case.regions, &case.requests);
            (text(&first), text(&plan(chain, &case.regions, &case.requests)))
        });
        prop_assert_eq!(plans.0, plans.1, "nor does it change the next one");
        prop_assert_eq!(log.take(), []);
    }

    /// With prefix chunking everywhere, a plan fails only once every tier's room is below a granule.
    #[test]
    fn invariant_08_completeness(case in case(Just(Entry::Prefix), bump())) {
        match case.plan() {
            Err(PlanError::NoCapacity(error)) => {
                prop_assert_eq!(error.report.tiers.len(), case.tiers.len());
                for tier in error.report.tiers {
                    // Padding is below the congruence, which is 4 KiB at the most.
                    prop_assert!(tier.capacity - tier.used < TILE_BYTES + 4096);
                }
            }
            Err(error) => prop_assert!(false, "{}", error),
            Ok(_) => {}
        }
    }

    /// With whole regions everywhere, every request has exactly one extent.
    #[test]
    fn invariant_09_whole_region_never_splits(case in case(Just(Entry::Whole), space())) {
        let Ok(plan) = case.plan() else { return Ok(()) };
        prop_assert_eq!(plan.placements.len(), case.requests.len());
        for (request, placements) in by_request(&case, &plan) {
            prop_assert_eq!(placements.len(), 1);
            prop_assert_eq!(placements[0].len.get(), request.len);
        }
    }

    /// With one request, bytes in a later tier mean that every tier before declined at last.
    #[test]
    fn invariant_10_order_of_tiers(
        region in regions(1),
        tiers in prop::collection::vec((0u64..60 * TILE_BYTES, any::<bool>()), 1..5),
    ) {
        let log = Log::default();
        let answers: Arc<Mutex<Vec<Option<u64>>>> = Arc::new(Mutex::new(vec![None; tiers.len()]));
        let tiers: Vec<_> = tiers
            .into_iter()
            .enumerate()
            .map(|(at, (capacity, whole))| {
                let answers = answers.clone();
                let admission = move |ask: &Ask, room: u64| {
                    let answer = if whole {
                        WholeRegion.accept(ask, room)
                    } else {
                        PrefixChunking::TILE.accept(ask, room)
                    };
                    answers.lock().unwrap()[at] = Some(answer);
                    answer
                };
                tier(admission, Bump::new(), Scripted::new(at, capacity, Script::Panics, &log))
            })
            .collect();
        let requests = [Request::whole(0, &region[0])];
        let Ok(plan) = with_chain!(tiers, |chain| plan(chain, &region, &requests)) else {
            return Ok(());
        };
        let answers = answers.lock().unwrap();
        let last = plan.placements.last().unwrap().tier.0 as usize;
        for answer in &answers[..last] {
            prop_assert_eq!(*answer, Some(0));
        }
        for answer in &answers[last + 1..] {
            prop_assert_eq!(*answer, None, "it is finished");
        }
        let order = plan.placements.iter().map(|placement| placement.tier);
        prop_assert!(order.is_sorted());
    }

    /// A tier with k holes takes a request in up to k extents before it spills.
    #[test]
    fn invariant_11_re_ask(holes in prop::collection::vec((1u64..20, 1u64..9), 1..7), over in 0u64..5) {
        let mut end = 0;
        let holes: Vec<_> = holes
            .into_iter()
            .map(|(gap, tiles)| {
                let start = end + gap * 4096;
                end = start + tiles * TILE_BYTES;
                (start, tiles * TILE_BYTES)
            })
            .collect();
        let room: u64 = holes.iter().map(|(_, len)| len).sum();
        let region = region(0x10_0000, room + over * TILE_BYTES);
        let case = Case {
            requests: vec![Request::whole(0, &region)],
            regions: vec![region],
            tiers: vec![
                TierCase { capacity: u64::MAX, entry: Entry::Prefix, space: Space::Holes(holes.clone()) },
                TierCase { capacity: u64::MAX, entry: Entry::Prefix, space: Space::Bump },
            ],
        };
        let plan = case.plan().unwrap();
        let in_tier = |tier| plan.placements.iter().filter(|one| one.tier == TierIx(tier)).count();
        prop_assert_eq!(in_tier(0), holes.len(), "each hole is filled");
        prop_assert_eq!(in_tier(1), usize::from(over > 0), "the rest spills in one piece");
    }

    /// Termination: a request takes no more extents than it has tiles and the chain has tiers.
    #[test]
    fn extents_are_few(case in any_case()) {
        let Ok(plan) = case.plan() else { return Ok(()) };
        for (request, placements) in by_request(&case, &plan) {
            let most = request.len.div_ceil(TILE_BYTES) as usize + case.tiers.len();
            prop_assert!(placements.len() <= most);
        }
    }

    /// Placements of one request that touch are one.
    #[test]
    fn touching_grants_are_merged(case in any_case()) {
        let Ok(plan) = case.plan() else { return Ok(()) };
        for (_, placements) in by_request(&case, &plan) {
            for (a, b) in placements.iter().zip(placements.iter().skip(1)) {
                prop_assert!(a.tier != b.tier || a.offset + a.len.get() != b.offset);
            }
        }
    }

    /// The terminal error names the region and the bytes that are missing.
    #[test]
    fn invariant_12_terminal_error(case in any_case()) {
        let Err(error) = case.plan() else { return Ok(()) };
        let PlanError::NoCapacity(error) = error else {
            return Err(TestCaseError::fail(error.to_string()));
        };
        let demand: u128 = case.requests.iter().map(|one| u128::from(one.len)).sum();
        prop_assert_eq!(error.report.demand, demand);
        prop_assert!(error.rounds.is_empty());
        // With exactly the missing bytes more, behind all other tiers, this region has room. That
        // tier sees other requests first, so it gets theirs too: all that comes before is declined.
        let missing = error.missing.get();
        let of_region = case.requests.iter().filter(|one| one.region == error.region);
        prop_assert!(of_region.clone().any(|one| missing <= one.len));
        let log = Log::default();
        let seen = Arc::new(Mutex::new(0));
        let spill = seen.clone();
        let end = move |ask: &Ask, _: u64| {
            let mut first = spill.lock().unwrap();
            if *first == 0 {
                *first = ask.remaining.get();
            }
            ask.remaining.get()
        };
        let mut tiers = case.tiers(&log, &[]);
        if tiers.len() == 4 {
            return Ok(());
        }
        let backing = Scripted::new(tiers.len(), u64::MAX, Script::Panics, &log);
        tiers.push(tier(end, AnySpace::Bump(Bump::new()), backing));
        let all = with_chain!(tiers, |chain| plan(chain, &case.regions, &case.requests));
        prop_assert!(all.is_ok());
        prop_assert_eq!(*seen.lock().unwrap(), missing);
    }

    /// Blocks are taken back in the exact reverse of the order of their commits.
    #[test]
    fn invariant_14_rollback_order(case in any_case(), failing in 0usize..4) {
        let log = Log::default();
        let mut scripts = [Script::Works; 4];
        scripts[failing] = Script::Refused;
        let storage = with_chain!(case.tiers(&log, &scripts), |chain| {
            plan_and_commit(chain, &case.regions, &case.requests)
        });
        let failed = log.take();
        let (mut committed, mut undone) = (Vec::new(), Vec::new());
        for event in &failed {
            match event {
                Event::Commit { tier, .. } => committed.push(*tier),
                Event::Fail { .. } => {
                    undone.clone_from(&committed);
                }
                Event::Undo { tier } => {
                    prop_assert_eq!(undone.pop(), Some(*tier));
                    prop_assert_eq!(committed.pop(), Some(*tier));
                }
                Event::Drop { .. } => prop_assert!(false, "taken back, not given back"),
            }
        }
        prop_assert_eq!(undone, [0usize; 0], "all that were committed before");
        // What is committed in the end is given back in reverse too.
        drop(storage);
        let dropped: Vec<_> = log.take();
        let expected: Vec<_> = committed.iter().rev().map(|tier| Event::Drop { tier: *tier }).collect();
        prop_assert_eq!(dropped, expected);
    }

    /// Tiers without a placement are never committed.
    #[test]
    fn invariant_16_zero_use(case in any_case()) {
        let Ok(plan) = case.plan() else { return Ok(()) };
        let log = Log::default();
        let scripts: Vec<_> = plan
            .used
            .iter()
            .map(|used| if *used == 0 { Script::Panics } else { Script::Works })
            .collect();
        with_chain!(case.tiers(&log, &scripts), |chain| {
            let storage = plan_and_commit(chain, &case.regions, &case.requests).unwrap();
            let used = plan.used.iter().filter(|used| **used > 0).count();
            prop_assert_eq!(storage.blocks().blocks().len(), used);
        });
    }

    /// Extreme capacities and sizes: no panic, no wrap, and what is planned is right.
    #[test]
    fn invariant_17_extremes(
        lens in prop::collection::vec(
            prop_oneof![Just(1u64), Just(1 << 63), Just(u64::MAX >> 1), Just(u64::MAX >> 2), any::<u64>()],
            1..4,
        ),
        bases in prop::collection::vec(prop_oneof![Just(1u64), Just(u64::MAX - 1), any::<u64>()], 4),
        part in prop_oneof![Just((0u64, u64::MAX)), any::<(u64, u64)>()],
        tiers in prop::collection::vec((extreme_capacity(), entry(), space()), 1..5),
    ) {
        let mut list = Vec::new();
        for (base, len) in bases.into_iter().zip(lens) {
            // As long as asked for, or up to the end of the address space.
            let len = len.clamp(1, u64::MAX - base.max(1));
            list.push(region(base.max(1), len));
        }
        let mut requests: Vec<_> = (0..).zip(&list).map(|(at, one)| Request::whole(at, one)).collect();
        let tiers = tiers
            .into_iter()
            .map(|(capacity, entry, space)| TierCase { capacity, entry, space })
            .collect();
        let case = Case { regions: list, requests: requests.clone(), tiers };
        check_extreme(&case)?;
        (requests[0].region_offset, requests[0].len) = part;
        check_extreme(&Case { requests, ..case })?;
    }
}

fn extreme_capacity() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0u64),
        Just(1),
        Just(u64::MAX),
        Just(u64::MAX - 7),
        Just(1 << 63),
        any::<u64>(),
    ]
}

/// Plans a case that may be malformed; a plan covers all bytes, within 64 bits.
fn check_extreme(case: &Case) -> Result<(), TestCaseError> {
    match case.plan() {
        Ok(plan) => {
            let placed: u128 = plan
                .placements
                .iter()
                .map(|one| u128::from(one.len.get()))
                .sum();
            let asked: u128 = case.requests.iter().map(|one| u128::from(one.len)).sum();
            prop_assert_eq!(placed, asked);
            for placement in plan.placements {
                let end = u128::from(placement.offset) + u128::from(placement.len.get());
                prop_assert!(end <= u128::from(case.tiers[placement.tier.0 as usize].capacity));
            }
        }
        Err(error) => prop_assert!(!error.to_string().is_empty()),
    }
    Ok(())
}

fn text(plan: &Result<Plan, PlanError>) -> String {
    format!("{plan:?}")
}

#[track_caller]
fn region(base: u64, len: u64) -> Region {
    let (agent, base) = (AgentId(1), DeviceAddr(base));
    Region::new(agent, base, len, Generation::FIRST, MemoryClass::Vram).unwrap()
}

/// Whole regions, and one tier that takes all.
fn unlimited(regions: Vec<Region>) -> Case {
    Case {
        requests: (0..)
            .zip(&regions)
            .map(|(at, one)| Request::whole(at, one))
            .collect(),
        regions,
        tiers: vec![TierCase {
            capacity: u64::MAX,
            entry: Entry::Prefix,
            space: Space::Bump,
        }],
    }
}

/// The numbers that the rule is known by: three buffers of 6 GiB and 15 GiB of device memory.
#[test]
fn a_prefix_cut_halves_what_spills() {
    const GIB: u64 = 1 << 30;
    let regions: Vec<_> = (0..3).map(|at| region((1 + at) << 40, 6 * GIB)).collect();
    let spilled = |entry| {
        let mut case = unlimited(regions.clone());
        let device = TierCase {
            capacity: 15 * GIB,
            entry,
            space: Space::Bump,
        };
        case.tiers.insert(0, device);
        let plan = case.plan().unwrap();
        (plan.used[0] / GIB, plan.used[1] / GIB)
    };
    assert_eq!(spilled(Entry::Whole), (12, 6));
    assert_eq!(spilled(Entry::Prefix), (15, 3));
}

/// A tier that grants a tile at a time still gives one extent, for each request its own.
#[test]
fn grants_that_touch_become_one_extent() {
    let regions = [region(0x10_0000, 5 * TILE_BYTES), region(0x20_0000, 300)];
    let requests = [
        Request::whole(0, &regions[0]),
        Request::whole(1, &regions[1]),
    ];
    let log = Log::default();
    let slow = |ask: &Ask, room: u64| PrefixChunking::TILE.accept(ask, room.min(TILE_BYTES));
    let make = |at, capacity| {
        tier(
            slow,
            Bump::new(),
            Scripted::new(at, capacity, Script::Panics, &log),
        )
    };
    let tiers = vec![make(0, 2 * TILE_BYTES), make(1, u64::MAX)];
    let plan = with_chain!(tiers, |chain| plan(chain, &regions, &requests)).unwrap();
    let lens: Vec<_> = plan
        .placements
        .iter()
        .map(|one| (one.tier.0, one.len.get()))
        .collect();
    assert_eq!(lens, [(0, 2 * TILE_BYTES), (1, 3 * TILE_BYTES), (1, 300)]);
}

/// After a spill a smaller region may still land on the first tier.
#[test]
fn spilling_is_not_sticky() {
    let regions = vec![
        region(0x1000, 600),
        region(0x2000, 900),
        region(0x3000, 300),
    ];
    let mut case = unlimited(regions);
    let device = TierCase {
        capacity: 1100,
        entry: Entry::Whole,
        space: Space::Bump,
    };
    case.tiers.insert(0, device);
    let tiers: Vec<_> = case
        .plan()
        .unwrap()
        .placements
        .iter()
        .map(|one| one.tier.0)
        .collect();
    assert_eq!(tiers, [0, 1, 0]);
}

/// Hot regions come first, then addresses ascend, also where there are many.
#[test]
fn the_order_is_priority_then_address() {
    let mut case = unlimited((1..=4).map(|at| region(at << 20, 256)).collect());
    for (request, priority) in case.requests.iter_mut().zip([i32::MIN, 7, -3, 7]) {
        request.priority = priority;
    }
    let order = |case: &Case| -> Vec<_> {
        let placements = case.plan().unwrap().placements;
        placements.iter().map(|one| one.region).collect()
    };
    assert_eq!(order(&case), [1, 3, 2, 0]);

    let mut case = unlimited((1..=1000).map(|at| region(at << 20, 256)).collect());
    for request in &mut case.requests {
        request.priority = (request.region * 7 % 5) as i32;
    }
    case.requests.rotate_left(333);
    let hottest = (0..5).rev();
    let expected: Vec<_> = hottest
        .flat_map(|priority| (0..1000).filter(move |region| region * 7 % 5 == priority))
        .collect();
    assert_eq!(order(&case), expected);
}

#[test]
fn nothing_to_place_is_a_plan() {
    let case = unlimited(Vec::new());
    let plan = case.plan().unwrap();
    assert_eq!((plan.placements.len(), plan.used), (0, vec![0]));
    let log = Log::default();
    with_chain!(case.tiers(&log, &[Script::Panics]), |chain| {
        let (extents, blocks) = plan_and_commit(chain, &[], &[]).unwrap().into_parts();
        assert!(extents.is_empty() && blocks.blocks().is_empty());
    });
}

/// Two thousand variables of one byte take 16 bytes each, and 65,536 of them no more.
#[test]
fn tiny_regions_are_packed() {
    for count in [2_000u64, 65_536] {
        let case = unlimited((1..=count).map(|at| region(at * 4096, 1)).collect());
        assert_eq!(case.plan().unwrap().used[0], 16 * count - 15);
    }
}

/// A region that ends with the last byte of its mapping, and one of 64 GiB.
#[test]
fn odd_sizes_are_placed_whole() {
    for len in [4096 * 3, 64 << 30] {
        let last = region(0x10_0000 - 4096 * 3 + 1, len - 1);
        let plan = unlimited(vec![last]).plan().unwrap();
        let [placement] = plan.placements[..] else {
            panic!("{plan:?}")
        };
        assert_eq!((placement.offset, placement.len.get()), (1, len - 1));
    }
}

/// Malformed requests are refused by name, and no tier is asked.
#[test]
fn malformed_requests_name_their_region() {
    let regions = [
        region(0x1000, 0x100),
        region(0x1080, 0x100),
        region(0x3000, 0x100),
    ];
    let whole = |at: usize| Request::whole(at as u32, &regions[at]);
    let part = |at, region_offset, len| Request {
        region_offset,
        len,
        ..whole(at)
    };
    let never = |_: &Ask, _: u64| -> u64 { panic!("a tier was asked") };
    let log = Log::default();
    let check = |requests: &[Request], expected: RequestError, message: &str| {
        let backing = Scripted::new(0, u64::MAX, Script::Panics, &log);
        let error = with_chain!(vec![tier(never, Bump::new(), backing)], |chain| {
            plan_and_commit(chain, &regions, requests).unwrap_err()
        });
        assert!(
            matches!(&error, PlanError::Request(found) if *found == expected),
            "{error}"
        );
        assert_eq!(error.to_string(), message);
    };
    let unknown = RequestError::UnknownRegion {
        region: 3,
        regions: 3,
    };
    check(
        &[
            whole(0),
            Request {
                region: 3,
                ..whole(2)
            },
        ],
        unknown,
        "region 3 is asked for, but there are only 3",
    );
    check(
        &[part(2, 8, 0)],
        RequestError::Empty {
            region: 2,
            region_offset: 8,
        },
        "a piece of region 2 at offset 8 is empty; leave it out instead",
    );
    let past = |region_offset, len| RequestError::PastEnd {
        region: 2,
        region_offset,
        len,
        region_len: 0x100,
    };
    check(
        &[part(2, 0xff, 2)],
        past(0xff, 2),
        "a piece of 2 bytes at offset 255 reaches past the end of region 2, which has 256 bytes",
    );
    check(
        &[part(2, u64::MAX, 2)],
        past(u64::MAX, 2),
        "a piece of 2 bytes at offset 18446744073709551615 reaches past the end of region 2, \
         which has 256 bytes",
    );
    for congruence in [0, 3, 8192] {
        check(
            &[Request {
                congruence,
                ..whole(2)
            }],
            RequestError::BadCongruence {
                region: 2,
                congruence,
            },
            &format!(
                "region 2 cannot be congruent modulo {congruence}: give a power of two up to 4096"
            ),
        );
    }
    check(
        &[whole(2), part(2, 0x80, 1)],
        RequestError::Twice {
            region: 2,
            at: DeviceAddr(0x3080),
        },
        "the byte of region 2 at 0x3080 is asked for twice",
    );
    check(
        &[whole(1), whole(0)],
        RequestError::Overlap {
            first: 0,
            second: 1,
            at: DeviceAddr(0x1080),
        },
        "regions 0 and 1 both cover 0x1080",
    );
}

/// The rest of what a region may be wrong in cannot be said at all.
#[test]
fn malformed_regions_do_not_exist() {
    let new = |base, len| {
        Region::new(
            AgentId(1),
            DeviceAddr(base),
            len,
            Generation::FIRST,
            MemoryClass::Vram,
        )
    };
    assert!(new(0, 8).is_err() && new(8, 0).is_err() && new(8, u64::MAX - 7).is_err());
}

/// The fragmented suballocator of these tests keeps the contract itself.
#[test]
fn holes_are_filled_from_their_starts() {
    use kr_storage::{Align, Suballocator};
    let mut holes = Holes::new(vec![(100, 50), (200, 500)]);
    let any = Align::new(1, 0).unwrap();
    let len = |len| NonZeroU64::new(len).unwrap();
    assert_eq!((holes.room(u64::MAX, any), holes.high_water()), (500, 0));
    assert_eq!(holes.carve(u64::MAX, len(40), any), Some(100), "best fit");
    assert_eq!(holes.carve(u64::MAX, len(40), any), Some(200));
    assert_eq!((holes.room(250, any), holes.high_water()), (10, 240));
    assert_eq!(holes.carve(250, len(11), any), None);
    holes.reset();
    assert_eq!((holes.room(120, any), holes.high_water()), (20, 0));
}
