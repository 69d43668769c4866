//! The restore law, over random regions, writes and modes: after a restore every saved byte is what
//! it was, and every byte that was not saved is untouched. Beside it, every number that is reported
//! is the one that a naive model counts.

use std::collections::{BTreeMap, BTreeSet};
use std::num::{NonZeroU32, NonZeroUsize};

use kr_blit::{CpuConfig, Verdict};
use kr_types::{ByTier, RestoreMode, TILE_BYTES, Tier};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::rig::{Image, Rig, Spec, TileId, noise};

/// What happens to memory, or is asked of the engine.
#[derive(Clone, Debug)]
enum Op {
    /// A kernel writes; where and how long is scaled to the memory at hand.
    Write {
        at: u32,
        len: u32,
        what: What,
    },
    /// The allocation is freed.
    Retire(usize),
    Restore(ByTier<RestoreMode>),
    Verify,
    Recapture,
}

#[derive(Clone, Debug)]
enum What {
    Noise(u64),
    Fill(u8),
    Flip,
    /// What was captured: undoes earlier writes.
    Undo,
}

/// What the engine should know, kept as sets of tiles.
#[derive(Default)]
struct Model {
    list: BTreeSet<TileId>,
    has_list: ByTier<bool>,
    check_due: ByTier<bool>,
    outputs: ByTier<Option<BTreeMap<TileId, Vec<u8>>>>,
    unlisted: u64,
    recaptures: u64,
}

fn word(bytes: &[u8]) -> Option<&[u8]> {
    let mut words = bytes.chunks(8);
    let first = words.next()?;
    words
        .all(|word| *word == first[..word.len()])
        .then_some(first)
}

fn restore(
    rig: &mut Rig,
    model: &mut Model,
    image: Image,
    modes: ByTier<RestoreMode>,
) -> Result<Image, TestCaseError> {
    let (changed, tiles) = (rig.changed(), rig.tiles());
    let mut put_back = BTreeSet::new();
    let (mut hashed, mut found) = (ByTier::<u64>::default(), ByTier::<u64>::default());
    let (mut unlisted, mut repeated, mut differ) = (0, None, None);
    for tier in Tier::ALL {
        let of_tier = |tiles: &BTreeMap<TileId, _>| -> BTreeSet<TileId> {
            let tiles = tiles.keys().filter(|tile| rig.tier(tile) == *tier);
            tiles.copied().collect()
        };
        let (all, changed) = (of_tier(&tiles), of_tier(&changed));
        let list: BTreeSet<_> = model
            .list
            .iter()
            .filter(|t| rig.tier(t) == *tier)
            .copied()
            .collect();
        let off_list = changed.difference(&list).count() as u64;
        let mode = *modes.get(*tier);
        if mode == RestoreMode::HashOnce && *model.has_list.get(*tier) {
            put_back.extend(list.intersection(&all));
            *model.check_due.get_mut(*tier) = true;
            *model.outputs.get_mut(*tier) = None;
            continue;
        }
        if std::mem::take(model.check_due.get_mut(*tier)) {
            unlisted += off_list;
        }
        let before = model.outputs.get_mut(*tier).take();
        if mode == RestoreMode::Full {
            put_back.extend(all);
            continue;
        }
        *hashed.get_mut(*tier) = all.len() as u64;
        *found.get_mut(*tier) = changed.len() as u64;
        let list: BTreeSet<_> = list.intersection(&all).copied().collect();
        let same = model.has_list.get(*tier).then_some(list == changed);
        repeated = Some(match repeated {
            None => same,
            Some(other) => same.zip(other).map(|(a, b): (bool, bool)| a && b),
        });
        model.list.retain(|tile| rig.tier(tile) != *tier);
        model.list.extend(&changed);
        *model.has_list.get_mut(*tier) = true;
        put_back.extend(changed);
        if mode == RestoreMode::HashEveryPass {
            let bytes = |tile: &TileId| rig.model[tiles[tile].clone()].to_vec();
            let now: BTreeMap<_, _> = all.iter().map(|tile| (*tile, bytes(tile))).collect();
            let count = before.map(|before| {
                let differs = |(tile, bytes): &(&TileId, &Vec<u8>)| before[*tile] != **bytes;
                now.iter().filter(differs).count() as u64
            });
            differ = Some(match differ {
                None => count,
                Some(other) => count.zip(other).map(|(a, b): (u64, u64)| a + b),
            });
            *model.outputs.get_mut(*tier) = Some(now);
        }
    }
    model.unlisted += unlisted;

    let kr_blit::CpuRestored { image, report } = rig.restore(image, modes);
    let mut bytes = 0;
    for tile in &put_back {
        bytes += tiles[tile].len() as u64;
        rig.put_back(tiles[tile].clone());
    }
    rig.check();
    prop_assert_eq!(report.bytes_copied, bytes);
    prop_assert!(report.bytes_written <= bytes);
    prop_assert_eq!(report.tiles_hashed, hashed);
    prop_assert_eq!(report.tiles_changed, found);
    prop_assert_eq!(report.tiles_unlisted, unlisted);
    prop_assert_eq!(report.list_repeated, repeated.flatten());
    prop_assert_eq!(report.outputs_differ, differ.flatten());
    let live: u64 = tiles.values().map(|tile| tile.len() as u64).sum();
    let total: u64 = rig.regions.iter().map(|r| r.len_bytes().get()).sum();
    prop_assert_eq!(report.bytes_retired, total - live);
    Ok(image)
}

fn run(specs: &[Spec], config: &CpuConfig, ops: &[Op]) -> Result<(), TestCaseError> {
    let mut rig = Rig::new(specs, config);
    let mut model = Model::default();
    let mut image = rig.capture();
    rig.check();
    for op in ops {
        match op {
            Op::Write { at, len, what } => {
                let size = rig.model.len();
                let start = ((u64::from(*at) * size as u64) >> 32) as usize;
                let len = (1 + *len as usize).min(size - start);
                let bytes = match what {
                    What::Noise(seed) => noise(*seed, len),
                    What::Fill(byte) => vec![*byte; len],
                    What::Flip => rig.model[start..start + len].iter().map(|b| !b).collect(),
                    What::Undo => rig.captured[start..start + len].to_vec(),
                };
                rig.write(start, &bytes);
            }
            Op::Retire(region) if !rig.regions.is_empty() => {
                let region = rig.regions[region % rig.regions.len()];
                rig.retired.push(region);
            }
            Op::Retire(_) => {}
            Op::Restore(modes) => image = restore(&mut rig, &mut model, image, *modes)?,
            Op::Verify => {
                let changed = rig.changed();
                let due = |tile: &TileId| *model.check_due.get(rig.tier(tile));
                let off_list = |tile: &&TileId| due(tile) && !model.list.contains(*tile);
                model.unlisted += changed.keys().filter(off_list).count() as u64;
                model.check_due = ByTier::default();
                let verdict;
                (image, verdict) = rig.verify(image);
                match (std::mem::take(&mut model.unlisted), verdict) {
                    (0, verdict) => prop_assert_eq!(verdict, Verdict::Clean),
                    (n, Verdict::UnlistedChange { tiles, .. }) => prop_assert_eq!(tiles, n),
                    (n, verdict) => prop_assert!(false, "{n} tiles off the list: {verdict}"),
                }
                rig.check();
            }
            Op::Recapture => {
                let (changed, tiles) = (rig.changed(), rig.tiles());
                model = Model {
                    recaptures: model.recaptures + 1,
                    ..Model::default()
                };
                let every = config.incremental.map_or(1, NonZeroU32::get);
                let full = model.recaptures.is_multiple_of(u64::from(every));
                let to_copy = if full { &tiles } else { &changed };
                let mixed =
                    |range: &&std::ops::Range<usize>| word(&rig.model[(*range).clone()]).is_none();
                let bytes: usize = to_copy.values().filter(mixed).map(|r| r.len()).sum();
                let live: usize = tiles.values().map(|r| r.len()).sum();
                let recaptured = rig.recapture(image);
                prop_assert_eq!(recaptured.full, full);
                prop_assert_eq!(recaptured.bytes_copied, bytes as u64);
                prop_assert_eq!(recaptured.bytes_hashed, live as u64);
                image = recaptured.image;
                rig.check();
            }
        }
    }
    Ok(())
}

fn mode() -> impl Strategy<Value = RestoreMode> {
    prop::sample::select(RestoreMode::ALL)
}

fn op() -> impl Strategy<Value = Op> {
    let what = prop_oneof![
        any::<u64>().prop_map(What::Noise),
        any::<u8>().prop_map(What::Fill),
        Just(What::Flip),
        Just(What::Undo),
    ];
    let len = prop_oneof![Just(0), 0..100u32, 0..100_000u32];
    prop_oneof![
        6 => (any::<u32>(), len, what).prop_map(|(at, len, what)| Op::Write { at, len, what }),
        5 => (mode(), mode()).prop_map(|(device, pinned_host)| {
            Op::Restore(ByTier { device, pinned_host })
        }),
        2 => mode().prop_map(|mode| Op::Restore(ByTier::uniform(mode))),
        1 => any::<usize>().prop_map(Op::Retire),
        2 => Just(Op::Verify),
        1 => Just(Op::Recapture),
    ]
}

fn spec(len: impl Strategy<Value = u64>) -> impl Strategy<Value = Spec> {
    let cut = (1..4u64, prop::sample::select(Tier::ALL));
    (0..34u64, len, vec(cut, 1..3)).prop_map(|(gap, len, cuts)| Spec { gap, len, cuts })
}

fn config() -> impl Strategy<Value = CpuConfig> {
    let every = prop::sample::select(vec![None, Some(1), Some(2), Some(1000)]);
    let audit = prop::sample::select(vec![None, Some(1), Some(4096)]);
    (1..5usize, every, audit, any::<u64>()).prop_map(|(threads, every, audit, seed)| CpuConfig {
        threads: NonZeroUsize::new(threads),
        incremental: every.and_then(NonZeroU32::new),
        audit: audit.and_then(NonZeroU32::new),
        seed,
    })
}

/// Around everything that lengths are rounded to.
fn small() -> impl Strategy<Value = u64> {
    prop_oneof![1..20u64, TILE_BYTES - 9..TILE_BYTES + 10, 1..80_000u64]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]
    #[test]
    fn few_small_regions(
        specs in vec(spec(small()), 0..12),
        config in config(),
        ops in vec(op(), 1..16),
    ) {
        run(&specs, &config, &ops)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]
    #[test]
    fn thousands_of_regions(
        specs in vec(spec(prop_oneof![20 => 1..64u64, 1 => small()]), 1_000..5_000),
        config in config(),
        ops in vec(op(), 1..8),
    ) {
        run(&specs, &config, &ops)?;
    }
}

/// Up to 64 MiB in regions of up to 4 MiB.
fn large() -> impl Strategy<Value = Vec<Spec>> {
    vec(spec(1..=4u64 << 20), 1..32).prop_map(|mut specs| {
        let mut left = 64 << 20;
        specs.retain(|spec| {
            let fits = spec.len <= left;
            left -= if fits { spec.len } else { 0 };
            fits
        });
        specs
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 64, ..ProptestConfig::default() })]
    #[test]
    fn large_regions(specs in large(), config in config(), ops in vec(op(), 1..8)) {
        run(&specs, &config, &ops)?;
    }
}
