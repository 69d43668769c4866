//! The contract of [`Device`], rule by rule.
//!
//! A backend's test runs each of [`rules`] on a device of its own making:
//!
//! ```
//! use kr_device::host::HostDevice;
//! use kr_testkit::conformance::device;
//! use kr_types::AgentId;
//!
//! for rule in device::rules::<HostDevice>() {
//!     # if rule.name != "an_empty_submit_is_complete" { continue }
//!     (rule.check)(&HostDevice::new(AgentId(0)));
//! }
//! ```
//!
//! The suite needs 8 MiB in each tier and takes at most 16 MiB at a time, but for
//! `dropped_memory_can_be_had_again`, which takes at least half of what is free, up to 1 GiB.
//! Rules may run at the same time on devices that do not share a nearly full memory.
//!
//! Rules about what does not block cannot trust one look at the clock on a busy machine. They
//! compare several calls with the work that these must not wait for, or try until a call came back
//! before the work was done.
//!
//! Not here: what a backend does about bad ranges, which the contract leaves open, and how a failed
//! copy is reported, which takes a backend that can be made to fail.

use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};

use kr_device::{Block as _, Device, DeviceError};
use kr_types::{DeviceAddr, Tier};

use super::Rule;
use super::rig::{BlockId, PATIENCE, Piece, Random, Rig, Ticket, nonzero, overlap};

const TIERS: [Tier; 2] = [Tier::Device, Tier::PinnedHost];

/// Sizes at which implementations of copies change what they do: what one lane moves at a time,
/// what a workgroup or a staging buffer holds, what one worker or copy engine is given.
const ITEM: usize = 16;
const TILE: usize = 16 << 10;
const CHUNK: usize = 1 << 20;

/// A copy of this size is usually still running when the next call is made.
const LONG: usize = 16 << 20;

/// So many of them take longer than a scheduler keeps this thread from its core.
const BACKLOG: u32 = 32;

/// All rules, in the order of the contract.
pub fn rules<D: Device>() -> &'static [Rule<D>] {
    macro_rules! table {
        ($($rule:ident,)*) => {
            const { &[$(Rule { name: stringify!($rule), check: $rule::<D> }),*] }
        };
    }
    table![
        blocks_are_aligned_and_as_asked,
        live_blocks_do_not_overlap,
        an_impossible_size_is_out_of_memory,
        dropped_memory_can_be_had_again,
        bytes_are_read_as_written,
        short_copies_are_exact_at_every_alignment,
        copies_around_a_tile_are_exact_at_every_alignment,
        copies_around_a_chunk_are_exact,
        copies_between_tiers_are_exact,
        copies_may_share_a_source,
        neighbours_in_a_word_keep_their_bytes,
        one_submit_takes_thousands_of_copies,
        a_submit_sees_the_one_before,
        a_submit_does_not_overtake_the_one_before,
        fences_complete_in_order,
        an_empty_submit_is_complete,
        completion_means_that_all_copies_have_landed,
        submit_returns_before_its_copies_are_done,
        a_short_wait_only_looks,
        a_wait_of_any_length_sees_completion,
        completion_is_final,
        a_dropped_fence_does_not_wait,
        a_dropped_fence_does_not_cancel,
        one_fence_serves_several_threads,
        threads_may_share_a_device,
    ]
}

// Memory

fn blocks_are_aligned_and_as_asked<D: Device>(device: &D) {
    for tier in TIERS {
        for bytes in [1, 4095, 4096, 4097, TILE + 1, CHUNK + 1] {
            let block = device.alloc(tier, nonzero(bytes)).expect("a little memory");
            let (addr, len) = (block.addr(), block.len_bytes());
            assert!(
                !addr.is_null(),
                "{bytes} bytes of {tier} memory lie at null"
            );
            assert_eq!(addr.0 % 4096, 0, "{addr} is not aligned to 4096 bytes");
            assert!(
                len.get() >= bytes as u64,
                "{len} bytes given of {bytes} asked for"
            );
            assert!(
                addr.checked_add(len.get()).is_some(),
                "{len} bytes at {addr} wrap"
            );
            assert_eq!(block.tier(), tier, "asked for {tier}");
        }
    }
}

fn live_blocks_do_not_overlap<D: Device>(device: &D) {
    let mut random = Random(1);
    let mut live: Vec<(DeviceAddr, u64, D::Block)> = Vec::new();
    let mut take = |live: &mut Vec<(DeviceAddr, u64, D::Block)>, tier| {
        let bytes = nonzero(1 + random.next() as usize % 40_000);
        let block = device.alloc(tier, bytes).expect("a little memory");
        let (addr, len) = (block.addr(), block.len_bytes().get());
        for (other, other_len, _) in &*live {
            assert!(
                !overlap((addr, len), (*other, *other_len)),
                "{len} bytes at {addr} overlap {other_len} bytes at {other}, which are in use"
            );
        }
        live.push((addr, len, block));
    };
    // Frees between the allocations, so that addresses are used again.
    for round in 0..200 {
        take(&mut live, TIERS[round % 2]);
        take(&mut live, TIERS[round / 2 % 2]);
        if live.len() > 40 {
            live.swap_remove(round % 40);
            live.swap_remove(round % 7);
        }
    }
    // Disjoint numbers are not enough: the bytes behind them must be, too.
    let mut rig = Rig::new(device, 2);
    for (_, _, block) in live {
        rig.adopt(block);
    }
    rig.check();
}

fn an_impossible_size_is_out_of_memory<D: Device>(device: &D) {
    let mut rig = Rig::new(device, 3);
    for tier in TIERS {
        for bytes in [u64::MAX, u64::MAX - 8192, 1 << 63, (1 << 63) - 1, 1 << 60] {
            let requested = bytes.try_into().expect("it is not zero");
            let error = match device.alloc(tier, requested) {
                Ok(block) => panic!(
                    "{} bytes at {} were given of {bytes} asked for",
                    block.len_bytes(),
                    block.addr()
                ),
                Err(error) => error,
            };
            let agent = device.agent();
            let expected = DeviceError::OutOfMemory {
                agent,
                tier,
                requested,
            };
            assert_eq!(error, expected);
            // A refusal leaves the tier as it was.
            rig.block(tier, 4096);
        }
    }
    rig.check();
}

fn dropped_memory_can_be_had_again<D: Device>(device: &D) {
    for tier in TIERS {
        let mut bytes = 1 << 30;
        while device.alloc(tier, nonzero(bytes)).is_err() {
            bytes /= 2;
            assert!(bytes >= 1 << 16, "the suite needs a little {tier} memory");
        }
        // More in all than any agent has.
        for round in 0..1000 {
            if let Err(error) = device.alloc(tier, nonzero(bytes)) {
                panic!("after {round} blocks of {bytes} bytes, all dropped: {error}");
            }
        }
    }
}

fn bytes_are_read_as_written<D: Device>(device: &D) {
    let mut random = Random(4);
    for tier in TIERS {
        let mut rig = Rig::new(device, 5);
        let block = rig.block(tier, 2 * CHUNK);
        rig.check();
        let mut both = |at: usize, len: usize| {
            rig.write(block, at, &random.bytes(len));
            let mut found = vec![0; len];
            rig.read(block, at, &mut found);
            rig.compare(block, at, &found);
        };
        for at in 0..2 * ITEM {
            for len in 0..=2 * ITEM + 1 {
                both(at, len);
            }
        }
        for len in around(TILE).chain(around(CHUNK)) {
            for at in [0, 1, 7, 8, 15, 4095] {
                both(at, len);
            }
        }
        rig.check();
    }
}

// Copies

fn short_copies_are_exact_at_every_alignment<D: Device>(device: &D) {
    copies_are_exact(device, [Tier::Device; 2], 0..ITEM, || 1..=4 * ITEM + 1);
}

fn copies_around_a_tile_are_exact_at_every_alignment<D: Device>(device: &D) {
    copies_are_exact(device, [Tier::Device; 2], 0..ITEM, || around(TILE));
}

fn copies_around_a_chunk_are_exact<D: Device>(device: &D) {
    let lens = || around(CHUNK).chain([2 * CHUNK + TILE + 5]);
    copies_are_exact(device, [Tier::Device; 2], [0, 1, 8, 15], lens);
}

fn copies_between_tiers_are_exact<D: Device>(device: &D) {
    for from in TIERS {
        for to in TIERS {
            let lens = || (1..=2 * ITEM + 1).chain(around(TILE));
            copies_are_exact(device, [from, to], [0, 1, 4, 8, 15], lens);
            copies_are_exact(device, [from, to], [0, 3], || around(CHUNK));
        }
    }
}

/// Copies each length from each misalignment to each misalignment, as many in one submit as the
/// destination has room for.
fn copies_are_exact<D: Device, L: Iterator<Item = usize>>(
    device: &D,
    [from_tier, to_tier]: [Tier; 2],
    misalignments: impl IntoIterator<Item = usize> + Clone,
    lens: impl Fn() -> L,
) {
    let mut rig = Rig::new(device, 6);
    let longest = lens().max().expect("a rule has lengths");
    let from = rig.block(from_tier, longest + 8 * ITEM);
    let to = rig.block(to_tier, 4 * CHUNK);
    let mut batch = Vec::new();
    let mut at = 0;
    for len in lens() {
        for from_skew in misalignments.clone() {
            for to_skew in misalignments.clone() {
                if at + to_skew + len + ITEM > rig.len(to) {
                    rig.submit(&batch);
                    rig.check();
                    // Else copies that do nothing would be right next time.
                    rig.fill(to);
                    batch.clear();
                    at = 0;
                }
                // Every destination item is met by several source items.
                let from_at = batch.len() % 7 * ITEM + from_skew;
                batch.push(Piece {
                    from: (from, from_at),
                    to: (to, at + to_skew),
                    len,
                });
                at = (at + to_skew + len).next_multiple_of(ITEM) + ITEM;
            }
        }
    }
    rig.submit(&batch);
    rig.check();
}

fn copies_may_share_a_source<D: Device>(device: &D) {
    let mut rig = Rig::new(device, 7);
    let from = rig.block(Tier::Device, TILE);
    let to = rig.block(Tier::Device, 64 * TILE);
    let pieces: Vec<_> = (0..64)
        .map(|i| Piece {
            from: (from, i),
            to: (to, i * TILE),
            len: TILE - 64,
        })
        .collect();
    rig.submit(&pieces);
    rig.check();
}

fn neighbours_in_a_word_keep_their_bytes<D: Device>(device: &D) {
    let mut random = Random(8);
    let mut rig = Rig::new(device, 9);
    let from = rig.block(Tier::Device, 2 * TILE);
    let to = rig.block(Tier::Device, 2 * TILE);
    for round in 0..20 {
        // Lengths that share no factor with a word put seams at every place of a word. Of the
        // pieces side by side, one part is copied and one written by the host meanwhile.
        let (mut copied, mut written) = (Vec::new(), Vec::new());
        let (mut at, mut lens) = (0, [1, 2, 3, 5, 7].into_iter().cycle());
        while let Some(len) = lens.next().filter(|len| at + len <= TILE) {
            if random.next().is_multiple_of(8) {
                written.push((at, random.bytes(len)));
            } else {
                copied.push(Piece {
                    from: (from, random.next() as usize % TILE),
                    to: (to, at),
                    len,
                });
            }
            at += len;
        }
        // In order, pieces of one word are done at almost the same time; shuffled, long after.
        if round % 2 == 1 {
            random.shuffle(&mut copied);
        }
        rig.submit(&copied);
        for (at, bytes) in written {
            rig.write(to, at, &bytes);
        }
        rig.check();
        rig.fill(to);
    }
}

fn one_submit_takes_thousands_of_copies<D: Device>(device: &D) {
    const COPIES: usize = 20_000;
    let mut random = Random(10);
    let mut rig = Rig::new(device, 11);
    let from = rig.block(Tier::Device, 8 * COPIES);
    let to = rig.block(Tier::PinnedHost, 8 * COPIES);
    let mut pieces: Vec<_> = (0..COPIES)
        .map(|i| Piece {
            from: (from, 8 * (random.next() as usize % COPIES)),
            to: (to, 8 * i),
            len: 1 + i % 8,
        })
        .collect();
    random.shuffle(&mut pieces);
    rig.submit(&pieces);
    rig.check();
}

// Order

fn a_submit_sees_the_one_before<D: Device>(device: &D) {
    let mut rig = Rig::new(device, 12);
    let [a, b, c] = three_blocks(&mut rig);
    let len = rig.len(a);
    for _ in 0..5 {
        backlog(&mut rig, whole(c, b, len));
        rig.submit(&[whole(a, b, len)]);
        // It is short: let go early, it would be done before the long one.
        rig.submit(&[tail(b, c, len)]);
        rig.check();
        rig.fill(a);
    }
    // And with nothing but the order between them: each submit moves what the one before moved.
    for at in 0..500 {
        let (from, to) = if at % 2 == 0 { (a, b) } else { (b, a) };
        rig.submit(&[Piece {
            from: (from, at),
            to: (to, at + 1),
            len: 64,
        }]);
    }
    rig.check();
}

fn a_submit_does_not_overtake_the_one_before<D: Device>(device: &D) {
    let mut rig = Rig::new(device, 13);
    let [a, b, c] = three_blocks(&mut rig);
    let len = rig.len(a);
    for _ in 0..5 {
        // The second writes what the first reads.
        backlog(&mut rig, whole(c, b, len));
        rig.submit(&[whole(a, b, len)]);
        rig.submit(&[tail(c, a, len)]);
        rig.check();
        // The second writes what the first writes.
        rig.fill(a);
        backlog(&mut rig, whole(c, b, len));
        rig.submit(&[whole(a, b, len)]);
        rig.submit(&[tail(c, b, len)]);
        rig.check();
    }
}

fn fences_complete_in_order<D: Device>(device: &D) {
    let mut rig = Rig::new(device, 14);
    let [a, b, c] = three_blocks(&mut rig);
    let len = rig.len(a);
    for _ in 0..10 {
        let tickets: Vec<_> = (0..6)
            .map(|i| match i % 2 {
                0 => rig.submit(&[whole(a, b, len)]),
                _ => rig.submit(&[tail(b, c, len)]),
            })
            .collect();
        rig.finish(tickets[4]);
        for (i, ticket) in tickets[..4].iter().enumerate() {
            assert!(
                rig.wait(*ticket, Duration::ZERO),
                "submit 4 is complete and submit {i}, made before it, is not"
            );
        }
        rig.check();
    }
}

/// Blocks large enough for a copy to be cut into parts.
fn three_blocks<D: Device>(rig: &mut Rig<'_, D>) -> [BlockId; 3] {
    [(); 3].map(|()| rig.block(Tier::Device, 5 * CHUNK / 2))
}

fn whole(from: BlockId, to: BlockId, len: usize) -> Piece {
    let (from, to) = ((from, 0), (to, 0));
    Piece { from, to, len }
}

/// The last bytes of two blocks, which a copy of all of them reaches last.
fn tail(from: BlockId, to: BlockId, len: usize) -> Piece {
    let (from, to, len) = ((from, len - 100), (to, len - 100), 100);
    Piece { from, to, len }
}

// Waiting

fn an_empty_submit_is_complete<D: Device>(device: &D) {
    let mut rig = Rig::new(device, 15);
    let ticket = rig.submit(&[]);
    assert!(
        rig.wait(ticket, Duration::ZERO),
        "an empty submit is not complete at once"
    );
    // Nor does it get lost behind work, or hold up what follows.
    let [a, b, _] = three_blocks(&mut rig);
    let len = rig.len(a);
    rig.submit(&[whole(a, b, len)]);
    let ticket = rig.submit(&[]);
    rig.submit(&[whole(b, a, len)]);
    rig.finish(ticket);
    rig.check();
}

fn completion_means_that_all_copies_have_landed<D: Device>(device: &D) {
    const COPIES: usize = 64;
    let mut rig = Rig::new(device, 16);
    let job = long_job(&mut rig);
    // What lies where differs from what the backlog leaves there.
    let len = job.len / COPIES;
    let pieces: Vec<_> = (0..COPIES)
        .map(|i| Piece {
            from: (job.from.0, (COPIES - 1 - i) * len),
            to: (job.to.0, i * len),
            len,
        })
        .collect();
    for _ in 0..3 {
        backlog(&mut rig, job);
        let ticket = rig.submit(&pieces);
        rig.finish(ticket);
        pieces
            .iter()
            .rev()
            .for_each(|piece| check_end(&mut rig, piece));
        rig.check();
    }
}

fn submit_returns_before_its_copies_are_done<D: Device>(device: &D) {
    let mut rig = Rig::new(device, 17);
    let job = long_job(&mut rig);
    let (mut submits, mut all) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let start = Instant::now();
        let tickets = backlog(&mut rig, job);
        rig.drain();
        all.push(start.elapsed());
        submits.extend(tickets.map(|ticket| ticket.took));
    }
    // The quickest of each: a submit that wakes whoever copies may lose its core to them.
    let (submit, copies) = (submits.iter().min(), all.iter().min());
    assert!(
        submit.map(|submit| *submit * 4) < copies.map(|copies| *copies / BACKLOG),
        "each of {BACKLOG} submits takes {submit:?} or more, and all of them and their copies \
         {copies:?}"
    );
}

fn a_short_wait_only_looks<D: Device>(device: &D) {
    let mut rig = Rig::new(device, 18);
    let job = long_job(&mut rig);
    for limit in [
        Duration::ZERO,
        Duration::from_nanos(1),
        Duration::from_micros(1),
    ] {
        let came_back = (0..50).any(|_| {
            let [.., last] = backlog(&mut rig, job);
            let running = !rig.wait(last, limit);
            rig.drain();
            running
        });
        assert!(
            came_back,
            "50 waits of {limit:?} all returned when the work was done"
        );
    }
    rig.check();
}

fn a_wait_of_any_length_sees_completion<D: Device>(device: &D) {
    let mut rig = Rig::new(device, 19);
    let job = long_job(&mut rig);
    for limit in [Duration::from_secs(3600), Duration::MAX] {
        backlog(&mut rig, job);
        let shifted = Piece {
            from: (job.from.0, 1),
            len: job.len - 1,
            ..job
        };
        let ticket = rig.submit(&[shifted]);
        assert!(rig.wait(ticket, limit), "a wait of {limit:?} ended early");
        check_end(&mut rig, &shifted);
    }
    // Many short ones do as well as a long one.
    let ticket = rig.submit(&[job]);
    let start = Instant::now();
    while !rig.wait(ticket, Duration::from_micros(100)) {
        assert!(
            start.elapsed() < PATIENCE,
            "short waits never see completion"
        );
    }
    rig.check();
}

fn completion_is_final<D: Device>(device: &D) {
    let mut rig = Rig::new(device, 20);
    let job = long_job(&mut rig);
    let ticket = rig.submit(&[job]);
    rig.finish(ticket);
    let later = rig.submit(&[job]);
    for limit in [Duration::ZERO, Duration::MAX, Duration::ZERO] {
        assert!(
            rig.wait(ticket, limit),
            "a complete submit is incomplete again"
        );
    }
    rig.finish(later);
    assert!(
        rig.wait(ticket, Duration::ZERO),
        "a complete submit is incomplete again"
    );
    rig.check();
}

fn a_dropped_fence_does_not_wait<D: Device>(device: &D) {
    let mut rig = Rig::new(device, 21);
    let job = long_job(&mut rig);
    let (mut drops, mut all) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let start = Instant::now();
        backlog(&mut rig, job);
        let ticket = rig.submit(&[job]);
        drops.push(rig.drop_fence(ticket));
        rig.drain();
        all.push(start.elapsed());
    }
    // One drop may have lost its core on the way, and the first submits may have taken most of the
    // time.
    drops.sort_unstable();
    assert!(
        Some(drops[3]) < all.iter().min().map(|copies| *copies / 8),
        "dropping a fence takes {drops:?}, and the copies {all:?}"
    );
}

fn a_dropped_fence_does_not_cancel<D: Device>(device: &D) {
    let mut rig = Rig::new(device, 22);
    let job = long_job(&mut rig);
    for _ in 0..3 {
        let ticket = rig.submit(&[job]);
        rig.drop_fence(ticket);
        rig.check();
        rig.fill(job.to.0);
    }
}

/// A copy that is usually still running when the next call is made.
fn long_job<D: Device>(rig: &mut Rig<'_, D>) -> Piece {
    let [from, to] = rig.largest_pair([Tier::PinnedHost, Tier::Device], LONG);
    let len = rig.len(from).min(rig.len(to));
    whole(from, to, len)
}

/// Work that is still running when the next call is made.
fn backlog<D: Device>(rig: &mut Rig<'_, D>, job: Piece) -> [Ticket; BACKLOG as usize] {
    [(); BACKLOG as usize].map(|()| rig.submit(&[job]))
}

/// Compares the last bytes that a copy writes, which takes no time.
fn check_end<D: Device>(rig: &mut Rig<'_, D>, piece: &Piece) {
    let mut found = [0; ITEM];
    let at = piece.to.1 + piece.len - ITEM;
    rig.read(piece.to.0, at, &mut found);
    rig.compare(piece.to.0, at, &found);
}

// Threads

fn one_fence_serves_several_threads<D: Device>(device: &D) {
    let mut rig = Rig::new(device, 23);
    let job = long_job(&mut rig);
    let ticket = rig.submit(&[job]);
    thread::scope(|scope| {
        let fence = rig.fence(ticket);
        let waiters = [(); 4].map(|()| scope.spawn(|| device.wait(fence, PATIENCE)));
        for waiter in waiters {
            let result = waiter.join().expect("a wait does not panic");
            assert_eq!(result, Ok(true), "one of several waits");
        }
    });
    rig.check();
}

fn threads_may_share_a_device<D: Device>(device: &D) {
    const BLOCK: usize = 2 * TILE;
    thread::scope(|scope| {
        for seed in 0..4 {
            scope.spawn(move || {
                let agent = device.agent();
                for round in 0..25 {
                    let mut rig = Rig::new(device, 100 * seed + round);
                    let [a, b, c] = [0, 1, 0].map(|tier| rig.block(TIERS[tier], BLOCK));
                    let len = BLOCK - 1;
                    rig.submit(&[whole(a, b, len)]);
                    rig.submit(&[whole(b, c, len)]);
                    rig.write(a, len, &[seed as u8]);
                    rig.submit(&[]);
                    rig.check();
                    assert_eq!(device.agent(), agent);
                }
            });
        }
    });
}

/// One less, as many, one more.
fn around(bytes: usize) -> Range<usize> {
    bytes - 1..bytes + 2
}
