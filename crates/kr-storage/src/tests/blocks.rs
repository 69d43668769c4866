//! Scenes of blocks: retained, replaced, granted, undone, quarantined, released.

use std::num::NonZeroU64;
use std::panic::{AssertUnwindSafe, catch_unwind};

use kr_types::{AgentId, DeviceAddr, Tier};

use super::pool::{CPU, DEVICE, Event, GPU, OTHER_GPU, OTHER_PINNED, PINNED, Scene, Script};
use crate::{
    Align, Arena, ArenaBlock, Ask, BackingAllocator, Bump, CommitError, Fallback, NullAllocator,
    Retain, RetainKey, TierArena, TierBudget, TierChain, TierIx, WholeRegion,
};

fn allocate(id: u64, len: u64) -> Event {
    Event::Allocate { id, len }
}

fn free(id: u64) -> Event {
    Event::Free { id }
}

fn grant(id: u64, agents: &[AgentId]) -> Event {
    let agents = agents.to_vec();
    Event::Grant { id, agents }
}

/// Takes a block for a window that ends at once.
#[track_caller]
fn window(scene: &Scene, key: RetainKey, bytes: u64) {
    drop(scene.commit(key, bytes).unwrap());
}

/// N equal replays allocate once; a larger one frees before it allocates; a smaller one reuses the
/// whole block.
#[test]
fn invariant_18_retain() {
    let scene = Scene::new(1000);
    for _ in 0..5 {
        window(&scene, DEVICE, 600);
    }
    assert_eq!(scene.events(), [allocate(0, 600), grant(0, &[GPU])]);

    let smaller = scene.commit(DEVICE, 100).unwrap();
    assert_eq!(smaller.len_bytes().get(), 600, "the excess stays in it");
    drop(smaller);
    assert_eq!(scene.events(), []);

    // Both together would not fit.
    window(&scene, DEVICE, 900);
    assert_eq!(
        scene.events(),
        [free(0), allocate(1, 900), grant(1, &[GPU])]
    );
    assert_eq!(scene.store.retained(DEVICE), 900);
}

/// A block put under key K is only ever taken under K; taken blocks are granted to the taker.
#[test]
fn invariant_19_retain_isolation() {
    let scene = Scene::new(1000);
    window(&scene, PINNED, 100);
    assert_eq!(scene.events(), [allocate(0, 100), grant(0, &[GPU])]);

    // Same pool, another GPU: a block of its own, with access for it alone.
    window(&scene, OTHER_PINNED, 50);
    assert_eq!(scene.events(), [allocate(1, 50), grant(1, &[OTHER_GPU])]);
    window(&scene, PINNED, 100);
    window(&scene, OTHER_PINNED, 50);
    assert_eq!(scene.events(), [], "neither lost its access to the other");
}

#[test]
fn whoever_is_missing_is_granted_together_with_all_others() {
    let scene = Scene::new(1000);
    window(&scene, PINNED, 100);
    scene.events();
    let mut with_cpu = scene.backing(PINNED).with_access(CPU).with_access(CPU);
    let bytes = NonZeroU64::new(100).unwrap();
    drop(with_cpu.commit(bytes).unwrap());
    assert_eq!(scene.events(), [grant(0, &[GPU, CPU])]);
    drop(with_cpu.commit(bytes).unwrap());
    window(&scene, PINNED, 100);
    assert_eq!(scene.events(), [], "granted before");
}

/// A grant replaces the one before, so it names those too who have access already.
#[test]
fn a_grant_passes_the_full_list() {
    let scene = Scene::new(1000);
    let take = |with| {
        let mut backing = scene.backing(PINNED).with_access(with);
        drop(backing.commit(NonZeroU64::new(100).unwrap()).unwrap());
    };
    take(CPU);
    take(OTHER_GPU);
    take(CPU);
    assert_eq!(
        scene.events(),
        [
            allocate(0, 100),
            grant(0, &[GPU, CPU]),
            grant(0, &[GPU, OTHER_GPU, CPU]),
        ]
    );
}

#[test]
fn after_a_failed_grant_nobody_is_known_to_have_access() {
    let scene = Scene::new(1000);
    window(&scene, PINNED, 100);
    scene.events();
    scene.script(Script::RefusesGrants);
    let mut with_cpu = scene.backing(PINNED).with_access(CPU);
    let error = with_cpu.commit(NonZeroU64::MIN).unwrap_err();
    assert_eq!(
        error.to_string(),
        "could not grant access to a block of 1 bytes"
    );
    assert_eq!(scene.store.retained(PINNED), 100, "it is still there");

    scene.script(Script::Works);
    window(&scene, PINNED, 100);
    assert_eq!(scene.events(), [grant(0, &[GPU])]);
}

#[test]
fn a_fresh_block_without_access_is_freed_and_the_old_size_restored() {
    let scene = Scene::new(1000);
    window(&scene, DEVICE, 100);
    scene.events();
    scene.script(Script::RefusesGrants);
    assert!(scene.commit(DEVICE, 200).is_err());
    assert_eq!(
        scene.events(),
        [free(0), allocate(1, 200), free(1), allocate(2, 100)]
    );
    assert_eq!(scene.store.retained(DEVICE), 100);
}

#[test]
fn a_refused_allocation_leaves_the_key_as_it_was() {
    let scene = Scene::new(1000);
    window(&scene, DEVICE, 300);
    scene.events();
    match scene.commit(DEVICE, 1001) {
        Err(error @ CommitError::OutOfMemory { retained, .. }) => {
            assert_eq!(retained, 300);
            assert_eq!(error.smaller().unwrap().get(), 500);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(scene.events(), [free(0), allocate(1, 300)]);
    assert_eq!(scene.store.retained(DEVICE), 300);

    scene.script(Script::RefusesAllocations);
    let error = scene.commit(DEVICE, 301).unwrap_err();
    assert!(error.smaller().is_none(), "{error}");
    assert_eq!(scene.store.retained(DEVICE), 0, "refused as well");
    assert_eq!(scene.ledger().live_bytes(), 0);
}

#[test]
fn undoing_frees_what_was_allocated_and_keeps_what_was_there() {
    let scene = Scene::new(1000);
    Box::new(scene.commit(DEVICE, 100).unwrap()).undo();
    assert_eq!(scene.ledger().live_bytes(), 0);
    assert_eq!(scene.store.retained(DEVICE), 0);

    window(&scene, DEVICE, 100);
    Box::new(scene.commit(DEVICE, 50).unwrap()).undo();
    assert_eq!(scene.store.retained(DEVICE), 100);
    Box::new(scene.commit(DEVICE, 200).unwrap()).undo();
    assert_eq!(scene.store.retained(DEVICE), 100);

    // The same if its window would have freed it.
    let mut freeing = scene.backing(DEVICE).with_retain(Retain::Freed);
    Box::new(freeing.commit(NonZeroU64::MIN).unwrap()).undo();
    assert_eq!(scene.store.retained(DEVICE), 100);
    drop(freeing.commit(NonZeroU64::MIN).unwrap());
    assert_eq!(scene.ledger().live_bytes(), 0);
}

/// Every block is given back exactly once, also through moves and panics.
#[test]
fn invariant_21_single_owner() {
    // Moves: from a lease to a box, a vector, a quarantine, another thread, and back.
    let scene = Scene::new(1000);
    let mut chain = chain(&scene, [DEVICE, PINNED]);
    let committed = fill(&mut chain, [100, 200]).commit().unwrap();
    let quarantine = Some(committed).map(|moved| moved.quarantine());
    let committed = std::thread::spawn(move || quarantine.unwrap().end())
        .join()
        .unwrap();
    assert_eq!(
        scene.store.retained(DEVICE) + scene.store.retained(PINNED),
        0
    );
    drop(committed);
    assert_eq!(scene.store.retained(DEVICE), 100);
    assert_eq!(scene.store.retained(PINNED), 200);
    assert_eq!(scene.ledger().live_bytes(), 300);

    // A panic while a window holds blocks gives them back.
    let committed = fill(&mut chain, [100, 200]).commit().unwrap();
    let unwound = catch_unwind(AssertUnwindSafe(move || {
        let _held = committed;
        panic!("scripted");
    }));
    assert!(unwound.is_err());
    assert_eq!(scene.store.retained(DEVICE), 100);
    assert_eq!(scene.store.retained(PINNED), 200);

    // A panic of the pool loses no block, and frees none twice.
    for script in [Script::PanicsInAllocations, Script::PanicsInGrants] {
        let scene = Scene::new(1000);
        window(&scene, DEVICE, 100);
        for (bytes, access) in [(50, CPU), (200, GPU)] {
            scene.script(script);
            let mut backing = scene.backing(DEVICE).with_access(access);
            let bytes = NonZeroU64::new(bytes).unwrap();
            let commit = catch_unwind(AssertUnwindSafe(|| backing.commit(bytes)));
            scene.script(Script::Works);
            let takes_part = script == Script::PanicsInGrants || bytes.get() == 200;
            assert_eq!(commit.is_err(), takes_part, "{script:?} {bytes}");
            drop(commit);
            let retained = scene.store.retained(DEVICE);
            assert_eq!(scene.ledger().live_bytes(), retained, "{script:?} {bytes}");
        }
        scene.store.release_all();
        assert_eq!(scene.ledger().live_bytes(), 0);
    }

    // What is retained is freed once.
    let scene = Scene::new(1000);
    window(&scene, DEVICE, 100);
    window(&scene, PINNED, 100);
    assert_eq!(scene.store.release_all(), 200);
    assert_eq!(scene.store.release_all(), 0);
    assert_eq!(scene.ledger().live_bytes(), 0);
}

type Tiers = Fallback<
    Arena<WholeRegion, Bump, crate::PoolBacking<Scene>>,
    Fallback<Arena<WholeRegion, Bump, crate::PoolBacking<Scene>>, NullAllocator>,
>;

fn chain(scene: &Scene, [first, second]: [RetainKey; 2]) -> Tiers {
    let arena = |key| Arena::new(WholeRegion, Bump::new(), scene.backing(key));
    Fallback::new(arena(first), Fallback::new(arena(second), NullAllocator))
}

/// Grants so many bytes in each of the two tiers.
fn fill(chain: &mut Tiers, lens: [u64; 2]) -> &mut Tiers {
    chain.open();
    for (tier, len) in (0..).map(TierIx).zip(lens) {
        let grant = chain.offer(tier, &ask(len)).unwrap();
        assert_eq!((grant.tier, grant.len.get()), (tier, len));
    }
    chain
}

fn ask(len: u64) -> Ask {
    Ask {
        remaining: NonZeroU64::new(len).unwrap(),
        region_offset: 0,
        align: Align::new(1, 0).unwrap(),
        priority: 0,
        class: kr_types::MemoryClass::Vram,
    }
}

#[test]
fn blocks_are_given_back_last_first() {
    let scene = Scene::new(1000);
    let mut chain = chain(&scene, [DEVICE, PINNED]);
    let committed = fill(&mut chain, [100, 200]).commit().unwrap();
    let tiers: Vec<_> = committed.blocks().iter().map(|one| one.tier).collect();
    assert_eq!(tiers, [Tier::Device, Tier::PinnedHost]);
    assert_eq!(
        committed.get(TierIx(1)).unwrap().block.len_bytes().get(),
        200
    );
    assert!(committed.get(TierIx(2)).is_none());
    scene.events();
    committed.undo();
    assert_eq!(scene.events(), [free(1), free(0)]);

    // Dropped in the same order: of two blocks of one key the smaller one that comes later is freed.
    let mut same = chain_freeing(&scene);
    let committed = fill(&mut same, [100, 200]).commit().unwrap();
    scene.events();
    drop(committed);
    assert_eq!(scene.events(), [free(3), free(2)]);
}

fn chain_freeing(scene: &Scene) -> Tiers {
    let arena = |key| {
        let backing = scene.backing(key).with_retain(Retain::Freed);
        Arena::new(WholeRegion, Bump::new(), backing)
    };
    Fallback::new(arena(DEVICE), Fallback::new(arena(PINNED), NullAllocator))
}

#[test]
fn a_later_tier_that_fails_takes_the_earlier_ones_back() {
    let scene = Scene::new(250);
    window(&scene, DEVICE, 50);
    scene.events();
    let mut chain = chain(&scene, [DEVICE, PINNED]);
    let refusal = fill(&mut chain, [100, 200]).commit().unwrap_err();
    assert_eq!((refusal.tier, refusal.requested), (TierIx(1), 200));
    assert_eq!(refusal.to_string(), "tier 1 has no block of 200 bytes");
    let [free_old, allocate_new, granted, free_new, allocate_old] = &scene.events()[..] else {
        panic!("other events");
    };
    assert_eq!([free_old, free_new], [&free(0), &free(1)]);
    assert_eq!(
        [allocate_new, allocate_old],
        [&allocate(1, 100), &allocate(2, 50)]
    );
    assert_eq!(granted, &grant(1, &[GPU]));
    assert_eq!(scene.store.retained(DEVICE), 50);
}

#[test]
fn a_tier_without_grants_is_not_committed() {
    let scene = Scene::new(1000);
    let mut chain = chain(&scene, [DEVICE, PINNED]);
    chain.open();
    assert!(chain.commit().unwrap().blocks().is_empty());
    chain.offer(TierIx(1), &ask(10)).unwrap();
    assert_eq!(chain.commit().unwrap().blocks().len(), 1);
    chain.reset();
    assert!(chain.commit().unwrap().blocks().is_empty());
}

#[test]
fn a_limit_lasts_until_the_next_window() {
    let scene = Scene::new(1000);
    let mut chain = chain(&scene, [DEVICE, PINNED]);
    chain.open();
    let tier = |chain: &mut Tiers, len| chain.offer(TierIx::FIRST, &ask(len)).unwrap().tier;
    chain.arena_mut(TierIx(0)).unwrap().limit(50);
    assert_eq!(tier(&mut chain, 51), TierIx(1));
    chain.arena_mut(TierIx(0)).unwrap().limit(60);
    chain.reset();
    assert_eq!(tier(&mut chain, 51), TierIx(1), "limits only sink");
    chain.open();
    assert_eq!(tier(&mut chain, 51), TierIx(0));

    for at in 0..2 {
        chain.arena_mut(TierIx(at)).unwrap().limit(0);
    }
    let exhausted = chain.offer(TierIx::FIRST, &ask(7)).unwrap_err();
    assert_eq!(exhausted.missing.get(), 7);
    assert!(chain.arena_mut(TierIx(2)).is_none());
    let all: Vec<_> = chain
        .arenas()
        .map(|(at, arena)| (at, arena.tier()))
        .collect();
    assert_eq!(
        all,
        [(TierIx(0), Tier::Device), (TierIx(1), Tier::PinnedHost)]
    );
}

/// An admission or a suballocator that promises more than there is changes nothing.
#[test]
fn a_grant_is_never_more_than_the_room_or_the_rest() {
    let backing = || Capped(100);
    let greedy = |_: &Ask, _: u64| u64::MAX;
    let mut arena = Arena::new(greedy, Bump::new(), backing());
    arena.open();
    assert_eq!(arena.offer(&ask(30)).unwrap().len.get(), 30);
    assert_eq!(arena.offer(&ask(300)).unwrap().len.get(), 70);
    assert!(arena.offer(&ask(1)).is_none());
    assert_eq!((arena.used(), arena.capacity()), (100, 100));
}

/// A backing with a budget and no memory.
struct Capped(u64);

struct Never;

impl ArenaBlock for Never {
    fn addr(&self) -> DeviceAddr {
        DeviceAddr::NULL
    }

    fn len_bytes(&self) -> NonZeroU64 {
        NonZeroU64::MIN
    }
}

impl BackingAllocator for Capped {
    type Block = Never;

    fn tier(&self) -> Tier {
        Tier::Device
    }

    fn budget(&self) -> TierBudget {
        TierBudget {
            bytes: self.0,
            ..TierBudget::default()
        }
    }

    fn commit(&mut self, _: NonZeroU64) -> Result<Never, CommitError> {
        Ok(Never)
    }
}

#[test]
fn a_block_that_breaks_its_contract_is_given_back() {
    let scene = Scene::new(1000);
    scene.script(Script::Misaligned);
    let mut chain = chain(&scene, [DEVICE, PINNED]);
    let refusal = fill(&mut chain, [100, 200]).commit().unwrap_err();
    assert!(
        matches!(refusal.source, CommitError::Unusable { addr, .. } if addr.0 % 4096 == 1),
        "{refusal:?}"
    );
    assert_eq!(scene.ledger().live_bytes(), 0);

    let mut arena = Arena::new(WholeRegion, Bump::new(), Capped(100));
    arena.open();
    arena.offer(&ask(100)).unwrap();
    assert!(matches!(
        arena.commit(),
        Err(CommitError::Unusable {
            addr: DeviceAddr::NULL,
            ..
        })
    ));
}

#[test]
fn a_quarantined_block_is_not_used_retained_or_freed() {
    let scene = Scene::new(1000);
    let mut chain = chain(&scene, [DEVICE, PINNED]);
    let quarantine = fill(&mut chain, [100, 200]).commit().unwrap().quarantine();
    scene.events();
    assert!(scene.store.is_quarantined(DEVICE));
    assert!(matches!(
        scene.commit(DEVICE, 1),
        Err(CommitError::Quarantined)
    ));
    assert_eq!(scene.store.release_all(), 0);
    assert_eq!(scene.store.retained(DEVICE), 0);
    assert!(scene.commit(OTHER_PINNED, 1).is_ok(), "another key");

    drop(quarantine.end());
    assert!(!scene.store.is_quarantined(DEVICE));
    assert_eq!(scene.store.retained(DEVICE), 100);
    assert!(scene.commit(DEVICE, 1).is_ok());

    // A lease that is dropped in spite of it frees nothing either.
    let mut lease = scene.commit(OTHER_PINNED, 1).unwrap();
    lease.set_quarantined(true);
    let before = scene.ledger().live_bytes();
    drop(lease);
    assert_eq!(scene.store.retained(OTHER_PINNED), 0);
    assert_eq!(scene.ledger().live_bytes(), before);

    // Given up: nothing is freed, ever, and nothing is committed under the keys.
    drop(fill(&mut chain, [100, 200]).commit().unwrap().quarantine());
    scene.store.release_all();
    assert_eq!(scene.ledger().live_bytes(), before);
    assert!(scene.commit(DEVICE, 1).is_err());
}

#[test]
fn out_of_memory_of_the_application_releases_the_pools_blocks() {
    let scene = Scene::new(1000);
    window(&scene, DEVICE, 100);
    window(&scene, PINNED, 200);
    window(&scene, OTHER_PINNED, 300);
    let in_use = scene.commit(PINNED, 1).unwrap();
    assert_eq!(scene.store.release_pool(PINNED.pool), 300, "only idle ones");
    assert_eq!(scene.store.retained(DEVICE), 100);
    drop(in_use);
    assert_eq!(scene.store.release_agent(GPU), 300);
    assert_eq!(scene.ledger().live_bytes(), 0);
}

#[test]
fn idle_blocks_are_released_after_so_many_windows() {
    let scene = Scene::new(1000);
    for _ in 0..3 {
        window(&scene, DEVICE, 100);
        assert_eq!(scene.store.age(GPU), 0, "used in this one");
    }
    assert_eq!(scene.store.age(OTHER_GPU), 0);
    assert_eq!(scene.store.age(GPU), 0, "one without use");
    window(&scene, DEVICE, 50);
    assert_eq!(scene.store.age(GPU), 0);
    assert_eq!(scene.store.age(GPU), 0);
    assert_eq!(scene.store.age(GPU), 100, "two without use");
    assert_eq!(scene.ledger().live_bytes(), 0);
}

#[test]
fn an_abandoned_store_frees_nothing() {
    let scene = Scene::new(1000);
    window(&scene, DEVICE, 100);
    let in_use = scene.commit(PINNED, 200).unwrap();
    let undone = scene.commit(OTHER_PINNED, 300).unwrap();
    scene.events();
    scene.store.abandon();
    drop(in_use);
    Box::new(undone).undo();
    assert_eq!(scene.store.release_all(), 0);
    assert_eq!(scene.events(), []);
    assert_eq!(scene.ledger().live_bytes(), 600);
}
