//! Commits that fail, in every pattern, and what is left behind: nothing.

#![allow(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod common;

use common::case::{Case, any_case};
use common::pool::{DEVICE, Fails, Machine, PINNED};
use common::scripted::{Event, Log, SCRIPTS, Script, Scripted};
use common::{AnyTier, tier};
use kr_plan::{
    Budgets, DEVICE_RESERVE, DeviceFacts, HostFacts, PlanError, Request, Storage, Then,
    plan_and_commit,
};
use kr_storage::{Bump, CommitError, PrefixChunking, RetainKey, TierBudget, TierIx, WholeRegion};
use kr_types::{AgentId, DeviceAddr, Generation, MemoryClass, Region, TILE_BYTES};
use proptest::prelude::*;

fn regions(lens: &[u64]) -> Vec<Region> {
    (1..)
        .zip(lens)
        .map(|(at, len)| {
            let base = DeviceAddr(at << 45);
            Region::new(AgentId(1), base, *len, Generation::FIRST, MemoryClass::Vram).unwrap()
        })
        .collect()
}

fn whole(regions: &[Region]) -> Vec<Request> {
    (0..)
        .zip(regions)
        .map(|(at, one)| Request::whole(at, one))
        .collect()
}

/// Checks what must hold of one run against what its tiers were told to do.
fn check_replan(
    scripts: &[Script],
    storage: &Result<Storage, PlanError>,
    events: &[Event],
) -> Result<(), TestCaseError> {
    let rounds = match storage {
        Ok(storage) => storage.failed_rounds(),
        Err(PlanError::NoCapacity(error)) => &error.rounds,
        Err(error) => return Err(TestCaseError::fail(error.to_string())),
    };
    // Every failure of a tier is a round, with its reason.
    let failures: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Fail { tier, bytes } => Some((*tier, *bytes)),
            _ => None,
        })
        .collect();
    let told: Vec<_> = rounds
        .iter()
        .map(|round| (round.refusal.tier.0 as usize, round.refusal.requested))
        .collect();
    prop_assert_eq!(&told, &failures);
    let most = if scripts
        .iter()
        .all(|one| [Script::Works, Script::Refused].contains(one))
    {
        scripts.len()
    } else {
        2 * scripts.len()
    };
    prop_assert!(rounds.len() <= most, "{} rounds", rounds.len());

    for (at, script) in scripts.iter().enumerate() {
        let of_tier: Vec<_> = rounds
            .iter()
            .filter(|round| round.refusal.tier == TierIx(at as u32))
            .collect();
        let disabled = of_tier.iter().any(|round| round.then == Then::Disabled);
        match (script, &of_tier[..]) {
            (_, []) => {}
            (Script::Refused, [round]) => {
                let refused = matches!(round.refusal.source, CommitError::Refused { .. });
                prop_assert!(refused && disabled);
            }
            (Script::OutOfMemory | Script::OutOfMemoryOnce, [first, rest @ ..]) => {
                let half = first.refusal.requested / 2;
                match first.then {
                    Then::CutTo(bytes) => prop_assert_eq!(bytes.get(), half),
                    Then::Disabled => prop_assert_eq!(half, 0),
                }
                if let [second] = rest {
                    prop_assert_eq!(*script, Script::OutOfMemory);
                    prop_assert!(second.refusal.requested <= half);
                    prop_assert_eq!(second.then, Then::Disabled);
                } else {
                    prop_assert!(rest.is_empty());
                }
            }
            (script, rounds) => prop_assert!(false, "{script:?} failed {} times", rounds.len()),
        }
        if let Ok(storage) = storage {
            let block = storage.blocks().get(TierIx(at as u32));
            prop_assert!(
                !(disabled && block.is_some()),
                "a tier that was given up is used"
            );
        }
    }
    Ok(())
}

/// Runs a case with these scripts; afterwards no block is left.
fn replan(case: &Case, scripts: &[Script]) -> Result<(), TestCaseError> {
    let log = Log::default();
    let scripts = &scripts[..case.tiers.len()];
    let storage = with_chain!(case.tiers(&log, scripts), |chain| {
        plan_and_commit(chain, &case.regions, &case.requests)
    });
    let events = log.take();
    check_replan(scripts, &storage, &events)?;
    if let Ok(storage) = &storage {
        let placed: u128 = storage
            .extents()
            .iter()
            .map(|one| u128::from(one.len_bytes().get()))
            .sum();
        let asked: u128 = case.requests.iter().map(|one| u128::from(one.len)).sum();
        prop_assert_eq!(placed, asked);
    }
    drop(storage);
    let mut live = 0i64;
    for event in events.into_iter().chain(log.take()) {
        live += match event {
            Event::Commit { .. } => 1,
            Event::Fail { .. } => 0,
            Event::Undo { .. } | Event::Drop { .. } => -1,
        };
    }
    prop_assert_eq!(live, 0);
    Ok(())
}

/// Every pattern of scripts for so many tiers.
fn patterns(tiers: u32) -> impl Iterator<Item = Vec<Script>> {
    (0..4usize.pow(tiers)).map(move |pattern| {
        (0..tiers)
            .map(|tier| SCRIPTS[pattern / 4usize.pow(tier) % 4])
            .collect()
    })
}

/// If a tier's commit fails, it is cut at most once and then given up; every pattern of failures of
/// up to four tiers ends, in a bounded number of rounds, with all placed or a reason per round.
#[test]
fn invariant_15_replan() {
    let regions = regions(&[5 * TILE_BYTES, 300, 9 * TILE_BYTES + 1, 20 * TILE_BYTES]);
    let requests = whole(&regions);
    let mut runs = 0;
    for tiers in 1..=4 {
        for scripts in patterns(tiers) {
            // Every tier is used at first, or the last one has all the room.
            for budgets in [[10; 4], [9, 9, 9, 1 << 20], [100; 4]] {
                let log = Log::default();
                let chain: Vec<_> = scripts
                    .iter()
                    .zip(budgets)
                    .enumerate()
                    .map(|(at, (script, tiles))| {
                        let backing = Scripted::new(at, tiles * TILE_BYTES, *script, &log);
                        tier(PrefixChunking::TILE, Bump::new(), backing)
                    })
                    .collect();
                let storage =
                    with_chain!(chain, |chain| plan_and_commit(chain, &regions, &requests));
                let events = log.take();
                check_replan(&scripts, &storage, &events).unwrap();
                let could = scripts
                    .iter()
                    .zip(budgets)
                    .filter(|(script, _)| **script == Script::Works)
                    .any(|(_, tiles)| tiles >= 100);
                assert!(!could || storage.is_ok(), "{scripts:?}");
                runs += 1;
            }
        }
    }
    assert_eq!(runs, 3 * (4 + 16 + 64 + 256));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// The same for inventories and tiers of all kinds.
    #[test]
    fn invariant_15_replan_of_any_case(
        case in any_case(),
        scripts in prop::collection::vec(prop::sample::select(&SCRIPTS[..]), 4),
    ) {
        replan(&case, &scripts)?;
    }
}

/// A race for the last percent costs half of the tier, not all of it.
#[test]
fn a_tier_is_cut_before_it_is_given_up() {
    let log = Log::default();
    let regions = regions(&[100 * TILE_BYTES]);
    let tiers = vec![
        tier(
            PrefixChunking::TILE,
            Bump::new(),
            Scripted::new(0, 80 * TILE_BYTES, Script::OutOfMemoryOnce, &log),
        ),
        tier(
            WholeRegion,
            Bump::new(),
            Scripted::new(1, u64::MAX, Script::Works, &log),
        ),
    ];
    let storage = with_chain!(tiers, |chain| plan_and_commit(
        chain,
        &regions,
        &whole(&regions)
    ))
    .unwrap();
    let lens: Vec<_> = storage
        .extents()
        .iter()
        .map(|one| one.len_bytes().get() / TILE_BYTES)
        .collect();
    assert_eq!(lens, [40, 60]);
    assert_eq!(
        storage.failed_rounds()[0].to_string(),
        "tier 0 has no block of 1310720 bytes: no block of 1310720 bytes is left, so it was cut to \
         655360 bytes"
    );
}

#[test]
fn the_error_tells_what_failed_in_each_round() {
    let log = Log::default();
    let regions = regions(&[2048, 1024]);
    let make = |at, script| {
        let backing = Scripted::new(at, 2500, script, &log);
        tier(WholeRegion, Bump::new(), backing)
    };
    let tiers = vec![make(0, Script::OutOfMemoryOnce), make(1, Script::Refused)];
    let error = with_chain!(tiers, |chain| plan_and_commit(
        chain,
        &regions,
        &whole(&regions)
    ))
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "no tier has room for 2048 more bytes of region 0 (3072 bytes to save; \
         device: 0 used of a budget of 2500 cut to 1024, 0 retained, 0 free; \
         pinned-host: 0 used of a budget of 2500 cut to 0, 0 retained, 0 free); \
         tier 0 has no block of 2048 bytes: no block of 2048 bytes is left, so it was cut to 1024 \
         bytes; \
         tier 1 has no block of 2048 bytes: could not allocate a block of 2048 bytes: scripted, so it \
         was given up"
    );
}

type MachineTier = AnyTier<Bump, kr_storage::PoolBacking<common::pool::MachinePool>>;

/// Two tiers over a machine, as they are made for each window.
fn tiers(machine: &Machine, device: TierBudget, pinned: TierBudget) -> Vec<MachineTier> {
    let make = |key: RetainKey, budget| {
        tier(
            PrefixChunking::TILE,
            Bump::new(),
            machine.backing(key, budget),
        )
    };
    vec![make(DEVICE, device), make(PINNED, pinned)]
}

fn budget(bytes: u64) -> TierBudget {
    TierBudget {
        bytes,
        ..TierBudget::default()
    }
}

fn run(machine: &Machine, device: u64, pinned: u64, lens: &[u64]) -> Result<Storage, PlanError> {
    let regions = regions(lens);
    with_chain!(tiers(machine, budget(device), budget(pinned)), |chain| {
        plan_and_commit(chain, &regions, &whole(&regions))
    })
}

/// Budgets from the facts of a machine.
fn budgets(machine: &Machine) -> Budgets {
    let state = machine.state();
    let device = DeviceFacts {
        alloc_max: u64::MAX,
        total: u64::MAX,
        free: Some(state.free(DEVICE.pool)),
        retained: machine.store.retained(DEVICE),
        metadata: 0,
    };
    let host = HostFacts {
        alloc_max: u64::MAX,
        total: u64::MAX,
        available: Some(state.free(PINNED.pool)),
        container: None,
        locked: None,
        visible_agents: std::num::NonZeroU32::MIN,
        retained: machine.store.retained(PINNED),
    };
    drop(state);
    Budgets::new(&device, &host, None, true)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// After any error the retained blocks, live blocks and budgets equal their prior values.
    #[test]
    fn invariant_13_decline_leaves_no_trace(
        history in prop::collection::vec((1u64..60, 1u64..60), 0..4),
        lens in prop::collection::vec(1u64..60, 1..5),
        room in (0u64..80, 0u64..80),
        memory in (0u64..80, 0u64..80),
    ) {
        let tiles = |tiles: u64| tiles * TILE_BYTES + 100;
        let machine = Machine::new(tiles(memory.0) + DEVICE_RESERVE, tiles(memory.1));
        for (device, pinned) in history {
            // Windows that went well or did not; both leave some state behind.
            let _ = run(&machine, tiles(device), tiles(pinned), &[tiles(device), tiles(pinned) / 2]);
        }
        let before = (machine.snapshot(), budgets(&machine));
        let lens: Vec<_> = lens.into_iter().map(tiles).collect();
        if run(&machine, tiles(room.0) * 9000, tiles(room.1), &lens).is_err() {
            prop_assert_eq!((machine.snapshot(), budgets(&machine)), before);
        }
        // A malformed request is not even tried.
        let before = (machine.snapshot(), machine.state().calls);
        let regions = regions(&[100]);
        let twice = [whole(&regions), whole(&regions)].concat();
        let result = with_chain!(tiers_of(&machine), |chain| plan_and_commit(chain, &regions, &twice));
        prop_assert!(matches!(result, Err(PlanError::Request(_))));
        prop_assert_eq!((machine.snapshot(), machine.state().calls), before);
    }
}

fn tiers_of(machine: &Machine) -> Vec<MachineTier> {
    tiers(machine, budget(u64::MAX), budget(u64::MAX))
}

/// Fails the n-th call of the pools for every n, alone or with all after it, over a run of windows
/// that grow, shrink and spill: nothing leaks, and nothing is half done.
#[test]
fn every_failing_call_leaves_nothing_half_done() {
    let lens = [[5, 5], [30, 30], [10, 10], [50, 50], [60, 10], [90, 90]];
    let tiles = |of: [u64; 2]| of.map(|tiles| tiles * TILE_BYTES);
    let windows = |machine: &Machine| {
        for of in lens {
            let before = machine.snapshot();
            match run(machine, 64 * TILE_BYTES, 200 * TILE_BYTES, &tiles(of)) {
                Ok(storage) => {
                    let asked: u64 = tiles(of).iter().sum();
                    let placed: u64 = storage
                        .extents()
                        .iter()
                        .map(|one| one.len_bytes().get())
                        .sum();
                    assert_eq!(placed, asked);
                    let blocks = storage.blocks().blocks();
                    let held: u64 = blocks.iter().map(|one| one.block.len_bytes().get()).sum();
                    assert_eq!(held + retained(machine), live(machine));
                }
                Err(error) => {
                    assert!(matches!(error, PlanError::NoCapacity(_)), "{error}");
                    let after = machine.snapshot();
                    let all_fail = matches!(machine.state().fails, Some(Fails::From(_)));
                    for (before, after) in before.iter().zip(after) {
                        // If all calls fail, what was freed for a larger block cannot come back.
                        assert!(
                            *before == after || all_fail && after.0 == 0,
                            "{before:?} {after:?}"
                        );
                    }
                }
            }
            assert_eq!(retained(machine), live(machine));
        }
        machine.store.release_all();
        assert_eq!(live(machine), 0);
    };
    let machine = Machine::new(1 << 40, 1 << 40);
    windows(&machine);
    let calls = machine.state().calls;
    assert_eq!(
        calls, 10,
        "three device blocks, two pinned ones, each allocated and granted"
    );
    for n in 0..calls + 5 {
        for fails in [Fails::Nth(n), Fails::From(n)] {
            let machine = Machine::new(1 << 40, 1 << 40);
            machine.state().fails = Some(fails);
            windows(&machine);
        }
    }
}

fn retained(machine: &Machine) -> u64 {
    machine.store.retained(DEVICE) + machine.store.retained(PINNED)
}

fn live(machine: &Machine) -> u64 {
    let state = machine.state();
    state.live(DEVICE.pool) + state.live(PINNED.pool)
}

/// With constant memory and demand above all budgets, budgets are equal from the second replay on,
/// over a hundred replays and with exact integers; and nothing is allocated any more.
#[test]
fn invariant_20_budget_fixpoint() {
    const GIB: u64 = 1 << 30;
    for (device, host) in [
        (16 * GIB, 64 * GIB),
        (16 * GIB + 12_345, 7 * GIB + 1),
        (GIB + 77, GIB),
        (192 * GIB - 3, 3 * TILE_BYTES),
    ] {
        let machine = Machine::new(device, host);
        let mut seen = Vec::new();
        for replay in 0..100 {
            let budgets = budgets(&machine);
            seen.push((budgets.device.bytes, budgets.pinned.bytes));
            // Demand is what both tiers hold, cut by cut, less one tile: both are filled.
            let demand = (budgets.device.bytes + budgets.pinned.bytes) / TILE_BYTES * TILE_BYTES;
            let regions = regions(&[demand.saturating_sub(2 * TILE_BYTES).max(TILE_BYTES)]);
            let storage = with_chain!(tiers(&machine, budgets.device, budgets.pinned), |chain| {
                plan_and_commit(chain, &regions, &whole(&regions))
            });
            storage.unwrap();
            if replay == 1 {
                machine.state().allocations = 0;
            }
        }
        assert!(
            seen[1..].iter().all(|budget| *budget == seen[1]),
            "{:?}",
            &seen[..5]
        );
        assert_eq!(machine.state().allocations, 0, "after the second replay");
        let margin = (device / 20).max(DEVICE_RESERVE);
        assert!(machine.state().free(DEVICE.pool) >= margin);
    }
}
