//! What a fuzz target calls: windows over tiers that fail as the input says, compared with a model
//! that is simple enough to be read as a definition. A difference is a panic.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kr_storage::{
    Admission, Arena, ArenaBlock, Ask, BackingAllocator, Bump, CommitError, Fallback,
    NullAllocator, PrefixChunking, TierBudget, TierIx, WholeRegion,
};
use kr_types::{AgentId, DeviceAddr, Generation, MemoryClass, Region, TILE_BYTES, Tier};

use crate::{Plan, PlanError, Request, Storage, Then, plan, plan_and_commit};

const TIERS: usize = 3;

/// Numbers from the input; zeros once it is used up.
struct Numbers<'a>(std::slice::Iter<'a, u8>);

impl Numbers<'_> {
    fn next(&mut self) -> u64 {
        let mut byte = || u64::from(self.0.next().copied().unwrap_or(0));
        byte() | byte() << 8
    }

    /// A number of bytes around what matters: few, some tiles, very many.
    fn bytes(&mut self) -> u64 {
        match self.next() % 4 {
            0 => self.next() % 600,
            1 => self.next(),
            2 => self.next() % 64 * TILE_BYTES + self.next() % 5,
            _ => self.next() << 24,
        }
    }

    fn is_empty(&self) -> bool {
        self.0.len() == 0
    }
}

/// How a commit ends.
#[derive(Clone, Copy, Debug)]
enum Commit {
    Works,
    /// With an idle block of so many 64ths of what was asked for.
    OutOfMemory(u64),
    Refused,
    Unusable,
}

impl Commit {
    fn new(number: u64) -> Self {
        match number % 8 {
            0..4 => Self::Works,
            4 => Self::OutOfMemory(0),
            5 => Self::OutOfMemory(number / 8 % 65),
            6 => Self::Refused,
            _ => Self::Unusable,
        }
    }
}

/// One window, as the input says.
struct Window {
    regions: Vec<Region>,
    requests: Vec<Request>,
    budgets: [u64; TIERS],
    /// How commits end, in the order in which they are made; when it is used up they work.
    commits: VecDeque<Commit>,
}

impl Window {
    fn new(numbers: &mut Numbers<'_>) -> Self {
        let (mut regions, mut requests) = (Vec::new(), Vec::new());
        let mut end = 1;
        for index in 0..numbers.next() % 8 {
            let base = end + numbers.bytes();
            let len = 1 + numbers.bytes();
            let class = MemoryClass::Vram;
            let region = Region::new(AgentId(0), DeviceAddr(base), len, Generation::FIRST, class)
                .expect("neither empty nor near an end of the address space");
            end = base + len;
            let whole =
                Request::whole(index as u32, &region).with_priority(numbers.next() as i32 % 4 - 1);
            match numbers.next() % 8 {
                0 => requests.push(Request {
                    region: numbers.next() as u32 % 9,
                    region_offset: numbers.bytes().wrapping_sub(2),
                    len: numbers.bytes().wrapping_sub(2),
                    congruence: numbers.next(),
                    ..whole
                }),
                cut @ 1..4 if len > cut => requests.extend([
                    Request {
                        region_offset: len / cut - 1,
                        len: len - (len / cut - 1),
                        congruence: 1 << (numbers.next() % 13),
                        ..whole
                    },
                    Request {
                        len: (len / cut - 1).max(1),
                        priority: numbers.next() as i32 % 4 - 1,
                        ..whole
                    },
                ]),
                _ => requests.push(whole),
            }
            regions.push(region);
        }
        Self {
            regions,
            requests,
            budgets: std::array::from_fn(|_| match numbers.next() % 8 {
                0 => u64::MAX - numbers.next(),
                _ => numbers.bytes(),
            }),
            commits: (0..numbers.next() % 8)
                .map(|_| Commit::new(numbers.next()))
                .collect(),
        }
    }

    /// Whether any request makes no sense, alone or beside another one.
    fn is_malformed(&self) -> bool {
        let bytes = |request: &Request| {
            let region = self.regions.get(request.region as usize)?;
            let end = request.region_offset.checked_add(request.len)?;
            let valid = request.len > 0
                && end <= region.len_bytes().get()
                && (0..=12).any(|power| request.congruence == 1 << power);
            let base = region.base().0;
            valid.then(|| base + request.region_offset..base + end)
        };
        let pieces: Option<Vec<_>> = self.requests.iter().map(bytes).collect();
        pieces.is_none_or(|pieces| {
            let shared = |i: usize| {
                let later = pieces[i + 1..].iter();
                later
                    .clone()
                    .any(|b| pieces[i].start < b.end && b.start < pieces[i].end)
            };
            (0..pieces.len()).any(shared)
        })
    }
}

/// A piece of a region in a tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    tier: usize,
    live: u64,
    offset: u64,
    len: u64,
}

/// What a round of planning should give: the pieces, and how much of each tier they use. If there is
/// no room, the region and how many bytes of it have no place.
type Placed = Result<(Vec<Piece>, [u64; TIERS]), (u32, u64)>;

/// First fit: requests by priority and address, each from tier to tier. A tier takes all that is left
/// or, unless it wants `whole` requests, what fits up to a tile's border.
fn place(window: &Window, whole: [bool; TIERS], limits: [u64; TIERS]) -> Placed {
    let base = |request: &Request| window.regions[request.region as usize].base().0;
    let mut order: Vec<_> = window.requests.iter().collect();
    order.sort_by_key(|one| (Reverse(one.priority), base(one) + one.region_offset));
    let (mut pieces, mut ends) = (Vec::new(), [0; TIERS]);
    for request in order {
        let (mut at, mut rest) = (request.region_offset, request.len);
        for tier in 0..TIERS {
            while rest > 0 {
                let live = base(request) + at;
                let phase = |of: u64| of % request.congruence;
                let Some(offset) = (ends[tier]..=u64::MAX)
                    .take(4096)
                    .find(|offset| phase(*offset) == phase(live))
                else {
                    break;
                };
                let room = limits[tier].saturating_sub(offset);
                let len = match rest <= room {
                    true => rest,
                    false if whole[tier] => 0,
                    false => ((at + room) / TILE_BYTES * TILE_BYTES).saturating_sub(at),
                };
                if len == 0 {
                    break;
                }
                pieces.push(Piece {
                    tier,
                    live,
                    offset,
                    len,
                });
                ends[tier] = offset + len;
                (at, rest) = (at + len, rest - len);
            }
        }
        if rest > 0 {
            return Err((request.region, rest));
        }
    }
    Ok((pieces, ends))
}

/// Tier, bytes asked for, and the limit of the next try if there is one.
type Round = (usize, u64, Option<u64>);

/// What planning and committing should give, and which commits fail meanwhile. Those that were made
/// are taken from the front of `commits`.
fn rounds(
    window: &Window,
    whole: [bool; TIERS],
    commits: &mut VecDeque<Commit>,
) -> (Placed, Vec<Round>) {
    let (mut limits, mut rounds) = (window.budgets, Vec::<Round>::new());
    'plan: loop {
        let placed = place(window, whole, limits);
        let used = placed.as_ref().map_or([0; TIERS], |(_, used)| *used);
        for (tier, bytes) in used.into_iter().enumerate().filter(|(_, used)| *used > 0) {
            let smaller = match commits.pop_front().unwrap_or(Commit::Works) {
                Commit::Works => continue,
                Commit::OutOfMemory(share) => (bytes / 2).max(bytes / 64 * share),
                Commit::Refused | Commit::Unusable => 0,
            };
            let again = rounds.iter().any(|(failed, ..)| *failed == tier);
            let cut = (0 < smaller && smaller < bytes && !again).then_some(smaller);
            rounds.push((tier, bytes, cut));
            limits[tier] = cut.unwrap_or(0);
            continue 'plan;
        }
        return (placed, rounds);
    }
}

/// What the backings of all tiers have in common.
#[derive(Debug, Default)]
struct Machine {
    budgets: [u64; TIERS],
    commits: VecDeque<Commit>,
    blocks: usize,
}

type Shared = Arc<Mutex<Machine>>;

fn lock(machine: &Shared) -> MutexGuard<'_, Machine> {
    machine.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Backing {
    tier: usize,
    machine: Shared,
}

struct Block {
    addr: DeviceAddr,
    len: NonZeroU64,
    machine: Shared,
}

impl ArenaBlock for Block {
    fn addr(&self) -> DeviceAddr {
        self.addr
    }

    fn len_bytes(&self) -> NonZeroU64 {
        self.len
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        lock(&self.machine).blocks -= 1;
    }
}

/// Where blocks of a tier start: further apart than all regions are long.
const fn start(tier: usize) -> u64 {
    (tier as u64 + 1) << 56
}

impl BackingAllocator for Backing {
    type Block = Block;

    fn tier(&self) -> Tier {
        Tier::ALL[self.tier.min(1)]
    }

    fn budget(&self) -> TierBudget {
        TierBudget {
            bytes: lock(&self.machine).budgets[self.tier],
            ..TierBudget::default()
        }
    }

    fn commit(&mut self, requested: NonZeroU64) -> Result<Block, CommitError> {
        let mut machine = lock(&self.machine);
        let addr = start(self.tier);
        let addr = match machine.commits.pop_front().unwrap_or(Commit::Works) {
            Commit::Works => addr,
            Commit::OutOfMemory(share) => {
                let retained = requested.get() / 64 * share;
                return Err(CommitError::OutOfMemory {
                    requested,
                    retained,
                });
            }
            Commit::Refused => return Err(CommitError::Quarantined),
            Commit::Unusable => addr + 1,
        };
        machine.blocks += 1;
        Ok(Block {
            addr: DeviceAddr(addr),
            len: requested,
            machine: self.machine.clone(),
        })
    }
}

/// Windows over one chain, one after the other: what is planned, what is committed, which rounds
/// failed and how many blocks are held, whatever becomes of each window's blocks.
pub fn windows(data: &[u8]) {
    let mut numbers = Numbers(data.iter());
    let shape = numbers.next();
    let whole = std::array::from_fn(|tier| shape >> tier & 1 == 1);
    let machine = Shared::default();
    let arena = |tier: usize| {
        let admission = move |ask: &Ask, room: u64| match whole[tier] {
            true => WholeRegion.accept(ask, room),
            false => PrefixChunking::TILE.accept(ask, room),
        };
        let machine = machine.clone();
        Arena::new(admission, Bump::new(), Backing { tier, machine })
    };
    let last = Fallback::new(arena(2), NullAllocator);
    let mut chain = Fallback::new(arena(0), Fallback::new(arena(1), last));
    let mut held = VecDeque::new();
    while !numbers.is_empty() {
        let mut window = Window::new(&mut numbers);
        lock(&machine).budgets = window.budgets;
        lock(&machine).commits = window.commits.clone();
        let planned = plan(&mut chain, &window.regions, &window.requests);
        let storage = plan_and_commit(&mut chain, &window.regions, &window.requests);
        if window.is_malformed() {
            assert!(matches!(planned, Err(PlanError::Request(_))));
            assert!(matches!(storage, Err(PlanError::Request(_))));
        } else {
            check_plan(&planned, &place(&window, whole, window.budgets));
            let mut commits = std::mem::take(&mut window.commits);
            let model = rounds(&window, whole, &mut commits);
            check_storage(&storage, &model);
            assert_eq!(lock(&machine).commits.len(), commits.len());
        }

        if let Ok(storage) = storage {
            match numbers.next() % 4 {
                0 => drop(storage),
                1 => held.push_back(storage),
                2 => storage.into_parts().1.undo(),
                _ => drop(storage.into_parts().1.quarantine().end()),
            }
        }
        if numbers.next() % 2 == 1 {
            held.pop_front();
        }
        let blocks = held
            .iter()
            .map(|storage: &Storage| storage.blocks().blocks().len());
        assert_eq!(lock(&machine).blocks, blocks.sum());
    }
    drop(held);
    assert_eq!(lock(&machine).blocks, 0);
}

fn check_plan(planned: &Result<Plan, PlanError>, model: &Placed) {
    match (planned, model) {
        (Ok(plan), Ok((pieces, used))) => {
            let found = plan.placements.iter();
            let places = pieces.iter().map(|one| (one.tier, one.offset, one.len));
            assert!(places.eq(found.map(|one| (one.tier.0 as usize, one.offset, one.len.get()))));
            assert_eq!(plan.used, used);
        }
        (Err(PlanError::NoCapacity(error)), Err(missing)) => {
            assert_eq!((error.region, error.missing.get()), *missing);
            assert!(error.rounds.is_empty());
        }
        _ => panic!("{planned:?}, and not {model:?}"),
    }
}

fn check_storage(storage: &Result<Storage, PlanError>, (placed, rounds): &(Placed, Vec<Round>)) {
    let failed = match (storage, placed) {
        (Ok(storage), Ok((pieces, used))) => {
            let extents = storage.extents();
            assert_eq!(extents.len(), pieces.len());
            for (extent, piece) in extents.iter().zip(pieces) {
                assert_eq!(extent.live().0, piece.live);
                assert_eq!(extent.len_bytes().get(), piece.len);
                assert_eq!(extent.saved().0, start(piece.tier) + piece.offset);
                assert_eq!(extent.tier(), Tier::ALL[piece.tier.min(1)]);
            }
            for (tier, used) in (0..).map(TierIx).zip(used) {
                let block = storage.blocks().get(tier);
                assert_eq!(block.map_or(0, |one| one.block.len_bytes().get()), *used);
            }
            storage.failed_rounds()
        }
        (Err(PlanError::NoCapacity(error)), Err(missing)) => {
            assert_eq!((error.region, error.missing.get()), *missing);
            &error.rounds
        }
        _ => panic!("{storage:?}, and not {placed:?}"),
    };
    let found = failed.iter().map(|round| {
        let cut = match round.then {
            Then::CutTo(bytes) => Some(bytes.get()),
            Then::Disabled => None,
        };
        (round.refusal.tier.0 as usize, round.refusal.requested, cut)
    });
    assert!(found.eq(rounds.iter().copied()));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        /// The model agrees on inputs at random; the same function is fuzzed.
        #[test]
        fn windows_agree_with_the_model(data in prop::collection::vec(any::<u8>(), 0..400)) {
            super::windows(&data);
        }
    }
}
