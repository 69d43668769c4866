//! Device memory beside a naive model of it.
//!
//! A [`Rig`] does every operation twice: on a device, and on plain arrays. [`Rig::check`] compares
//! all bytes of all blocks, so whatever a rule copies, every byte around it is a guard byte.
//!
//! Invariants
//! - The blocks of a rig are reached through it alone, so what its methods check is all that
//!   accesses them. A block is returned to the device only when every submit that could reach it
//!   was seen to complete.
//! - A submit, a read or a write that would break the safety contract of [`Device`] is refused by a
//!   panic: it is a bug of the rule. Submits may touch what earlier ones touch; the device orders
//!   them.
//!
//! Not here: rules.

use std::num::NonZeroU64;
use std::ops::Range;
use std::time::{Duration, Instant};

use kr_device::{Block as _, CopyOp, Device};
use kr_types::{DeviceAddr, Tier};

/// How long a rule waits for work that ends in a moment on any device that works.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// A block of a [`Rig`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockId(usize);

/// A submit of a [`Rig`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticket {
    index: usize,
    /// How long the device took to return from it.
    pub(super) took: Duration,
}

/// One copy: `len` bytes from an offset in a block to an offset in a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) from: (BlockId, usize),
    pub(super) to: (BlockId, usize),
    pub(super) len: usize,
}

struct Mirrored<B> {
    block: B,
    model: Vec<u8>,
}

pub(super) struct Rig<'d, D: Device> {
    device: &'d D,
    blocks: Vec<Mirrored<D::Block>>,
    /// `None` where the rule dropped the fence.
    fences: Vec<Option<D::Fence>>,
    /// Copies that may still run.
    in_flight: Vec<CopyOp>,
    random: Random,
}

impl<'d, D: Device> Rig<'d, D> {
    /// Two rigs with different seeds hold different bytes.
    pub(super) fn new(device: &'d D, seed: u64) -> Self {
        Self {
            device,
            blocks: Vec::new(),
            fences: Vec::new(),
            in_flight: Vec::new(),
            random: Random(seed),
        }
    }

    /// A new block with random contents.
    pub(super) fn block(&mut self, tier: Tier, bytes: usize) -> BlockId {
        match self.device.alloc(tier, nonzero(bytes)) {
            Ok(block) => self.adopt(block),
            Err(error) => panic!("the suite needs a little memory: {error}"),
        }
    }

    /// The largest two blocks of one size, at most `limit` bytes each, that can be had from the
    /// two tiers.
    pub(super) fn largest_pair(&mut self, tiers: [Tier; 2], limit: usize) -> [BlockId; 2] {
        let mut bytes = limit;
        loop {
            let [a, b] = tiers.map(|tier| self.device.alloc(tier, nonzero(bytes)));
            match (a, b) {
                (Ok(a), Ok(b)) => return [self.adopt(a), self.adopt(b)],
                (Err(error), _) | (_, Err(error)) => {
                    assert!(bytes > 1 << 16, "the suite needs a little memory: {error}");
                    bytes /= 2;
                }
            }
        }
    }

    /// Takes over a block and fills all of it, not only what was asked for.
    pub(super) fn adopt(&mut self, block: D::Block) -> BlockId {
        let len = usize::try_from(block.len_bytes().get()).expect("a block fits the host");
        self.blocks.push(Mirrored {
            block,
            model: vec![0; len],
        });
        let id = BlockId(self.blocks.len() - 1);
        self.fill(id);
        id
    }

    /// Length of a block in bytes.
    pub(super) fn len(&self, id: BlockId) -> usize {
        self.blocks[id.0].model.len()
    }

    /// What `range` of a block must hold once everything submitted so far is done.
    pub(super) fn expected(&self, id: BlockId, range: Range<usize>) -> &[u8] {
        &self.blocks[id.0].model[range]
    }

    /// New random contents for all of a block.
    pub(super) fn fill(&mut self, id: BlockId) {
        let bytes = self.random.bytes(self.len(id));
        self.write(id, 0, &bytes);
    }

    /// Writes from the host.
    pub(super) fn write(&mut self, id: BlockId, at: usize, bytes: &[u8]) {
        let to = self.addr(id, at);
        self.blocks[id.0].model[at..at + bytes.len()].copy_from_slice(bytes);
        let free = |other| !overlap((to, bytes.len() as u64), other);
        assert!(
            self.in_flight
                .iter()
                .all(|op| free(source(op)) && free(destination(op))),
            "the rule writes what a submitted copy uses"
        );
        // SAFETY: the range lies in a block of this rig (the model's slice was in bounds), which
        // only this rig accesses; it is not accessing it from another thread, for it is borrowed
        // mutably, and no copy in flight touches it (checked above).
        unsafe { self.device.write(to, bytes) }.expect("a write inside a block succeeds");
    }

    /// Reads to the host. Waits for everything submitted.
    pub(super) fn read(&mut self, id: BlockId, at: usize, into: &mut [u8]) {
        self.drain();
        let from = self.addr(id, at);
        assert!(
            at + into.len() <= self.len(id),
            "the rule reads past a block"
        );
        // SAFETY: the range lies in a block of this rig (checked above), which only this rig
        // accesses; it is borrowed mutably and nothing is in flight after `drain`.
        unsafe { self.device.read(from, into) }.expect("a read inside a block succeeds");
    }

    /// Submits copies and lets the model do them.
    pub(super) fn submit(&mut self, pieces: &[Piece]) -> Ticket {
        let ops: Vec<CopyOp> = pieces.iter().map(|piece| self.op(piece)).collect();
        assert_independent(&ops);
        for Piece { from, to, len } in pieces {
            let bytes = self.expected(from.0, from.1..from.1 + len).to_vec();
            self.blocks[to.0.0].model[to.1..to.1 + len].copy_from_slice(&bytes);
        }
        self.in_flight.extend_from_slice(&ops);
        let start = Instant::now();
        // SAFETY:
        // - ranges: inside blocks of this rig (the model's slices were in bounds), which it keeps
        //   until the work was seen to complete.
        // - nothing else: only this rig reaches its blocks; its reads wait for all work and its
        //   writes stay clear of it. Its other submits are ordered with this one.
        // - overlap: checked above.
        let fence = unsafe { self.device.submit(&ops) };
        let took = start.elapsed();
        self.fences
            .push(Some(fence.expect("a valid submit is taken")));
        Ticket {
            index: self.fences.len() - 1,
            took,
        }
    }

    /// Waits for at most `limit`. Panics if the work failed.
    pub(super) fn wait(&self, ticket: Ticket, limit: Duration) -> bool {
        self.device
            .wait(self.fence(ticket), limit)
            .expect("valid copies succeed")
    }

    /// Waits until a submit is complete.
    pub(super) fn finish(&self, ticket: Ticket) {
        assert!(
            self.wait(ticket, PATIENCE),
            "a submit has not completed after {PATIENCE:?}"
        );
    }

    /// The fence of a submit.
    pub(super) fn fence(&self, ticket: Ticket) -> &D::Fence {
        self.fences[ticket.index]
            .as_ref()
            .expect("the rule has not dropped this fence")
    }

    /// Drops the fence of a submit; returns how long that took.
    pub(super) fn drop_fence(&mut self, ticket: Ticket) -> Duration {
        let fence = self.fences[ticket.index].take();
        let start = Instant::now();
        drop(fence);
        start.elapsed()
    }

    /// Waits for everything submitted.
    pub(super) fn drain(&mut self) {
        if self.fences.iter().any(Option::is_none) {
            // Work without a fence is complete when a later submit is.
            self.submit(&[Piece {
                from: (BlockId(0), 0),
                to: (BlockId(0), 1),
                len: 1,
            }]);
        }
        for fence in self.fences.drain(..).flatten() {
            let done = self.device.wait(&fence, PATIENCE);
            assert!(
                done.expect("valid copies succeed"),
                "a submit has not completed after {PATIENCE:?}"
            );
        }
        self.in_flight.clear();
    }

    /// Waits for everything submitted, then compares every byte of every block with the model.
    pub(super) fn check(&mut self) {
        self.drain();
        for index in 0..self.blocks.len() {
            let id = BlockId(index);
            let mut found = vec![0; self.len(id)];
            self.read(id, 0, &mut found);
            self.compare(id, 0, &found);
        }
    }

    /// Compares `found`, read at `at` of a block, with the model.
    pub(super) fn compare(&self, id: BlockId, at: usize, found: &[u8]) {
        let expected = self.expected(id, at..at + found.len());
        if found == expected {
            return;
        }
        let mut wrong = (0..found.len()).filter(|&i| found[i] != expected[i]);
        let first = wrong.next().unwrap_or_default();
        let Mirrored { block, model } = &self.blocks[id.0];
        panic!(
            "byte {} of block {} ({} bytes of {} memory at {}) is {:#04x} instead of {:#04x}, and \
             {} more are wrong",
            at + first,
            id.0,
            model.len(),
            block.tier(),
            block.addr(),
            found[first],
            expected[first],
            wrong.count(),
        );
    }

    fn addr(&self, id: BlockId, at: usize) -> DeviceAddr {
        let base = self.blocks[id.0].block.addr();
        base.checked_add(at as u64)
            .expect("a block does not wrap the address space")
    }

    fn op(&self, piece: &Piece) -> CopyOp {
        CopyOp {
            from: self.addr(piece.from.0, piece.from.1),
            to: self.addr(piece.to.0, piece.to.1),
            len: nonzero(piece.len),
        }
    }
}

impl<D: Device> Drop for Rig<'_, D> {
    fn drop(&mut self) {
        // Only a rule that fails leaves work behind. Its blocks are kept for good rather than
        // returned while a copy may reach them.
        let complete = |fence: &Option<D::Fence>| {
            let fence = fence.as_ref()?;
            self.device.wait(fence, PATIENCE).ok().filter(|done| *done)
        };
        if !self.fences.iter().all(|fence| complete(fence).is_some()) {
            self.blocks.drain(..).for_each(std::mem::forget);
        }
    }
}

/// Numbers without a pattern, the same in every run (the SplitMix64 generator).
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes()[..chunk.len()]);
        }
        bytes
    }

    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, (self.next() % (i as u64 + 1)) as usize);
        }
    }
}

/// `bytes` as the seam wants it.
pub(super) fn nonzero(bytes: usize) -> NonZeroU64 {
    NonZeroU64::new(bytes as u64).expect("rules use no empty ranges")
}

fn source(op: &CopyOp) -> (DeviceAddr, u64) {
    (op.from, op.len.get())
}

fn destination(op: &CopyOp) -> (DeviceAddr, u64) {
    (op.to, op.len.get())
}

/// Whether two ranges, each a first byte and a length, have a byte in common.
pub(super) fn overlap(a: (DeviceAddr, u64), b: (DeviceAddr, u64)) -> bool {
    let (a_end, b_end) = (
        u128::from(a.0.0) + u128::from(a.1),
        u128::from(b.0.0) + u128::from(b.1),
    );
    u128::from(a.0.0) < b_end && u128::from(b.0.0) < a_end
}

/// Panics if a destination overlaps another destination or any source.
fn assert_independent(ops: &[CopyOp]) {
    let mut ranges: Vec<_> = ops
        .iter()
        .flat_map(|op| {
            [
                (op.from.0, op.len.get(), false),
                (op.to.0, op.len.get(), true),
            ]
        })
        .collect();
    ranges.sort_unstable();
    let (mut read_until, mut written_until) = (0, 0);
    for (start, len, is_destination) in ranges {
        let busy_until = if is_destination {
            read_until.max(written_until)
        } else {
            written_until
        };
        assert!(
            start >= busy_until,
            "the copies of the rule depend on each other at {start:#x}"
        );
        let until = if is_destination {
            &mut written_until
        } else {
            &mut read_until
        };
        *until = (start + len).max(*until);
    }
}
