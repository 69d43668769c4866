//! Negative controls of the device suite: each rule fails on a device that breaks it, and none
//! fails on one that breaks nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use kr_device::host::{HostBlock, HostDevice, HostDeviceConfig, HostFence};
use kr_device::{Block, CopyOp, Device, DeviceError};
use kr_testkit::conformance::device::rules;
use kr_types::{AgentId, DeviceAddr, Tier};

type Result<T> = std::result::Result<T, DeviceError>;

/// Something a device does wrong. Each method is right unless a flaw replaces it.
trait Flaw: Default + Send + Sync + 'static {
    /// Rules that fail because of it; others may, too.
    const BREAKS: &'static [&'static str];

    fn alloc(&self, host: &HostDevice, tier: Tier, bytes: NonZeroU64) -> Result<Span> {
        host.alloc(tier, bytes).map(Span::of)
    }

    fn copies(&self, _: &HostDevice, copies: Vec<CopyOp>) -> Result<Vec<CopyOp>> {
        Ok(copies)
    }

    fn submit(&self, host: &HostDevice, copies: Vec<CopyOp>) -> Result<Fence> {
        submit(host, &copies)
    }

    fn wait(&self, fence: &Fence, limit: Duration) -> Result<bool> {
        fence.wait(limit)
    }

    fn read(&self, host: &HostDevice, from: DeviceAddr, into: &mut [u8]) -> Result<()> {
        host.read_bytes(from, into)
    }

    fn write(&self, host: &HostDevice, to: DeviceAddr, from: &[u8]) -> Result<()> {
        host.write_bytes(to, from)
    }
}

/// A host device with a flaw.
struct Broken<F> {
    host: HostDevice,
    flaw: F,
}

impl<F: Flaw> Broken<F> {
    fn new() -> Self {
        let config = HostDeviceConfig {
            device_bytes: Some(16 << 20),
            pinned_bytes: Some(16 << 20),
            // One, which leaves a core to the thread that looks at the work of the other.
            copy_threads: 1.try_into().ok(),
        };
        Self {
            host: HostDevice::with_config(AgentId(0), &config),
            flaw: F::default(),
        }
    }
}

impl<F: Flaw> Device for Broken<F> {
    type Block = Span;
    type Fence = Fence;

    fn agent(&self) -> AgentId {
        self.host.agent()
    }

    fn alloc(&self, tier: Tier, bytes: NonZeroU64) -> Result<Span> {
        self.flaw.alloc(&self.host, tier, bytes)
    }

    unsafe fn submit(&self, copies: &[CopyOp]) -> Result<Fence> {
        let copies = self.flaw.copies(&self.host, copies.to_vec())?;
        self.flaw.submit(&self.host, copies)
    }

    fn wait(&self, fence: &Fence, limit: Duration) -> Result<bool> {
        self.flaw.wait(fence, limit)
    }

    unsafe fn read(&self, from: DeviceAddr, into: &mut [u8]) -> Result<()> {
        self.flaw.read(&self.host, from, into)
    }

    unsafe fn write(&self, to: DeviceAddr, from: &[u8]) -> Result<()> {
        self.flaw.write(&self.host, to, from)
    }
}

/// What a flawed device says that a block is.
struct Span {
    block: Arc<HostBlock>,
    addr: DeviceAddr,
    len: NonZeroU64,
    tier: Tier,
}

impl Span {
    fn of(block: HostBlock) -> Self {
        Self {
            addr: block.addr(),
            len: block.len_bytes(),
            tier: block.tier(),
            block: Arc::new(block),
        }
    }
}

impl Block for Span {
    fn addr(&self) -> DeviceAddr {
        self.addr
    }

    fn len_bytes(&self) -> NonZeroU64 {
        self.len
    }

    fn tier(&self) -> Tier {
        self.tier
    }
}

struct Fence {
    host: HostDevice,
    fences: Mutex<Vec<HostFence>>,
    /// Copies that a flaw put off.
    rest: Mutex<Vec<CopyOp>>,
    copies: usize,
    looked_at: AtomicBool,
    wait_on_drop: bool,
}

impl Fence {
    fn wait(&self, limit: Duration) -> Result<bool> {
        let fences = lock(&self.fences).clone();
        fences
            .iter()
            .try_fold(true, |done, fence| Ok(done & self.host.wait(fence, limit)?))
    }
}

impl Drop for Fence {
    fn drop(&mut self) {
        if self.wait_on_drop {
            let _ = self.wait(Duration::MAX);
        }
    }
}

fn submit(host: &HostDevice, copies: &[CopyOp]) -> Result<Fence> {
    // SAFETY: memory of the host backend is made of atomic words and its ranges are checked, so
    // copies that break the contract give wrong bytes or errors, which is what they are for.
    let fence = unsafe { host.submit(copies) }?;
    Ok(Fence {
        host: host.clone(),
        fences: Mutex::new(vec![fence]),
        rest: Mutex::default(),
        copies: copies.len(),
        looked_at: AtomicBool::new(false),
        wait_on_drop: false,
    })
}

/// Copies at once and without regard to what was submitted.
fn copy_now(host: &HostDevice, op: &CopyOp) -> Result<()> {
    let mut bytes = vec![0; op.len.get() as usize];
    host.read_bytes(op.from, &mut bytes)?;
    host.write_bytes(op.to, &bytes)
}

/// `op` with another length; nothing if that is 0.
fn with_len(op: CopyOp, len: u64) -> Option<CopyOp> {
    NonZeroU64::new(len).map(|len| CopyOp { len, ..op })
}

/// A rule that fails has panicked while it held the locks of a device that nobody uses again.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A block with room behind it for what a flaw writes there.
fn roomy(host: &HostDevice, tier: Tier, bytes: NonZeroU64) -> Result<Span> {
    let block = host.alloc(tier, bytes.saturating_add(16))?;
    Ok(Span {
        len: bytes,
        ..Span::of(block)
    })
}

#[derive(Default)]
struct NoFlaw;
impl Flaw for NoFlaw {
    const BREAKS: &'static [&'static str] = &[];
}

/// Blocks start 8 bytes late.
#[derive(Default)]
struct Misaligned;
impl Flaw for Misaligned {
    const BREAKS: &'static [&'static str] = &["blocks_are_aligned_and_as_asked"];

    fn alloc(&self, host: &HostDevice, tier: Tier, bytes: NonZeroU64) -> Result<Span> {
        let block = roomy(host, tier, bytes)?;
        Ok(Span {
            addr: DeviceAddr(block.addr.0 + 8),
            ..block
        })
    }
}

/// Blocks are cut down to whole pages.
#[derive(Default)]
struct Short;
impl Flaw for Short {
    const BREAKS: &'static [&'static str] = &["blocks_are_aligned_and_as_asked"];

    fn alloc(&self, host: &HostDevice, tier: Tier, bytes: NonZeroU64) -> Result<Span> {
        let pages = NonZeroU64::new(bytes.get() / 4096 * 4096).unwrap_or(bytes);
        host.alloc(tier, pages).map(Span::of)
    }
}

/// There is only one tier.
#[derive(Default)]
struct WrongTier;
impl Flaw for WrongTier {
    const BREAKS: &'static [&'static str] = &["blocks_are_aligned_and_as_asked"];

    fn alloc(&self, host: &HostDevice, _: Tier, bytes: NonZeroU64) -> Result<Span> {
        host.alloc(Tier::Device, bytes).map(Span::of)
    }
}

/// A block is handed out twice.
#[derive(Default)]
struct SameBlock(Mutex<Option<Arc<HostBlock>>>);
impl Flaw for SameBlock {
    const BREAKS: &'static [&'static str] = &["live_blocks_do_not_overlap"];

    fn alloc(&self, host: &HostDevice, tier: Tier, bytes: NonZeroU64) -> Result<Span> {
        let span = host.alloc(tier, bytes).map(Span::of)?;
        match lock(&self.0).replace(span.block.clone()) {
            Some(last) if last.len_bytes() >= bytes => Ok(Span {
                addr: last.addr(),
                block: last,
                ..span
            }),
            _ => Ok(span),
        }
    }
}

/// Addresses that differ in their upper bits only reach the same bytes.
struct CutAddresses(Mutex<[u8; 1 << 16]>);
impl Default for CutAddresses {
    fn default() -> Self {
        Self(Mutex::new([0; 1 << 16]))
    }
}
impl Flaw for CutAddresses {
    const BREAKS: &'static [&'static str] = &["live_blocks_do_not_overlap"];

    fn read(&self, _: &HostDevice, from: DeviceAddr, into: &mut [u8]) -> Result<()> {
        let memory = lock(&self.0);
        for (addr, byte) in (from.0..).zip(into) {
            *byte = memory[addr as usize % memory.len()];
        }
        Ok(())
    }

    fn write(&self, _: &HostDevice, to: DeviceAddr, from: &[u8]) -> Result<()> {
        let mut memory = lock(&self.0);
        for (addr, byte) in (to.0..).zip(from) {
            let at = addr as usize % memory.len();
            memory[at] = *byte;
        }
        Ok(())
    }
}

/// Sizes lose their upper bits.
#[derive(Default)]
struct CutSizes;
impl Flaw for CutSizes {
    const BREAKS: &'static [&'static str] = &["an_impossible_size_is_out_of_memory"];

    fn alloc(&self, host: &HostDevice, tier: Tier, bytes: NonZeroU64) -> Result<Span> {
        let bytes = NonZeroU64::new(bytes.get() % (1 << 32)).unwrap_or(NonZeroU64::MIN);
        host.alloc(tier, bytes).map(Span::of)
    }
}

/// Out of memory is reported as another failure.
#[derive(Default)]
struct WrongError;
impl Flaw for WrongError {
    const BREAKS: &'static [&'static str] = &["an_impossible_size_is_out_of_memory"];

    fn alloc(&self, host: &HostDevice, tier: Tier, bytes: NonZeroU64) -> Result<Span> {
        let block = host
            .alloc(tier, bytes)
            .map_err(|error| DeviceError::Failed {
                agent: host.agent(),
                operation: "alloc",
                detail: error.to_string(),
            })?;
        Ok(Span::of(block))
    }
}

/// A failed allocation takes what was left.
#[derive(Default)]
struct CostlyFailure(Mutex<Vec<HostBlock>>);
impl Flaw for CostlyFailure {
    const BREAKS: &'static [&'static str] = &["an_impossible_size_is_out_of_memory"];

    fn alloc(&self, host: &HostDevice, tier: Tier, bytes: NonZeroU64) -> Result<Span> {
        host.alloc(tier, bytes).map(Span::of).inspect_err(|_| {
            let rest = NonZeroU64::new((16 << 20) - host.used_bytes(tier));
            lock(&self.0).extend(rest.and_then(|rest| host.alloc(tier, rest).ok()));
        })
    }
}

/// Dropped blocks are kept.
#[derive(Default)]
struct Leak;
impl Flaw for Leak {
    const BREAKS: &'static [&'static str] = &["dropped_memory_can_be_had_again"];

    fn alloc(&self, host: &HostDevice, tier: Tier, bytes: NonZeroU64) -> Result<Span> {
        let span = host.alloc(tier, bytes).map(Span::of)?;
        std::mem::forget(span.block.clone());
        Ok(span)
    }
}

/// Host reads start at a word.
#[derive(Default)]
struct ReadsWords;
impl Flaw for ReadsWords {
    const BREAKS: &'static [&'static str] = &["bytes_are_read_as_written"];

    fn read(&self, host: &HostDevice, from: DeviceAddr, into: &mut [u8]) -> Result<()> {
        host.read_bytes(DeviceAddr(from.0 / 8 * 8), into)
    }
}

/// Host writes clear the byte behind them.
#[derive(Default)]
struct WritesTooMuch;
impl Flaw for WritesTooMuch {
    const BREAKS: &'static [&'static str] = &["bytes_are_read_as_written"];

    fn alloc(&self, host: &HostDevice, tier: Tier, bytes: NonZeroU64) -> Result<Span> {
        roomy(host, tier, bytes)
    }

    fn write(&self, host: &HostDevice, to: DeviceAddr, from: &[u8]) -> Result<()> {
        host.write_bytes(to, &[from, &[0]].concat())
    }
}

/// Odd lengths lose a byte.
#[derive(Default)]
struct DroppedByte;
impl Flaw for DroppedByte {
    const BREAKS: &'static [&'static str] = &[
        "short_copies_are_exact_at_every_alignment",
        "copies_around_a_tile_are_exact_at_every_alignment",
        "copies_around_a_chunk_are_exact",
        "copies_between_tiers_are_exact",
    ];

    fn copies(&self, _: &HostDevice, copies: Vec<CopyOp>) -> Result<Vec<CopyOp>> {
        let even = |op: CopyOp| with_len(op, op.len.get() / 2 * 2);
        Ok(copies.into_iter().filter_map(even).collect())
    }
}

/// Odd lengths gain a byte.
#[derive(Default)]
struct ExtraByte;
impl Flaw for ExtraByte {
    const BREAKS: &'static [&'static str] = DroppedByte::BREAKS;

    fn copies(&self, _: &HostDevice, copies: Vec<CopyOp>) -> Result<Vec<CopyOp>> {
        let even = |op: CopyOp| with_len(op, op.len.get().next_multiple_of(2));
        Ok(copies.into_iter().filter_map(even).collect())
    }
}

/// Copies are moved on by a byte if one end is aligned to an item and the other is off by 15.
#[derive(Default)]
struct OffByOne;
impl Flaw for OffByOne {
    const BREAKS: &'static [&'static str] = &[
        "short_copies_are_exact_at_every_alignment",
        "copies_around_a_tile_are_exact_at_every_alignment",
        "copies_around_a_chunk_are_exact",
        "copies_between_tiers_are_exact",
    ];

    fn copies(&self, _: &HostDevice, mut copies: Vec<CopyOp>) -> Result<Vec<CopyOp>> {
        for op in &mut copies {
            if (op.from.0 % 16, op.to.0 % 16) == (15, 0) {
                op.to.0 += 1;
            }
        }
        Ok(copies)
    }
}

/// Short copies end at a tile.
#[derive(Default)]
struct OneTile;
impl Flaw for OneTile {
    const BREAKS: &'static [&'static str] = &["copies_around_a_tile_are_exact_at_every_alignment"];

    fn copies(&self, _: &HostDevice, copies: Vec<CopyOp>) -> Result<Vec<CopyOp>> {
        let cut = |op: CopyOp| with_len(op, op.len.get().min(16 << 10));
        Ok(copies.into_iter().filter_map(cut).collect())
    }
}

/// Long copies end at a chunk.
#[derive(Default)]
struct OneChunk;
impl Flaw for OneChunk {
    const BREAKS: &'static [&'static str] = &[
        "copies_around_a_chunk_are_exact",
        "copies_between_tiers_are_exact",
    ];

    fn copies(&self, _: &HostDevice, copies: Vec<CopyOp>) -> Result<Vec<CopyOp>> {
        let cut = |op: CopyOp| with_len(op, op.len.get().min(1 << 20));
        Ok(copies.into_iter().filter_map(cut).collect())
    }
}

/// Copies clear the byte before their source.
#[derive(Default)]
struct TouchedSource;
impl Flaw for TouchedSource {
    const BREAKS: &'static [&'static str] = &["short_copies_are_exact_at_every_alignment"];

    fn copies(&self, host: &HostDevice, copies: Vec<CopyOp>) -> Result<Vec<CopyOp>> {
        for op in copies.iter().filter(|op| op.from.0 % 4096 != 0) {
            host.write_bytes(DeviceAddr(op.from.0 - 1), &[0])?;
        }
        Ok(copies)
    }
}

/// Copies from one tier to the other are not done.
#[derive(Default)]
struct OneTier(Mutex<BTreeMap<DeviceAddr, Tier>>);
impl Flaw for OneTier {
    const BREAKS: &'static [&'static str] = &["copies_between_tiers_are_exact"];

    fn alloc(&self, host: &HostDevice, tier: Tier, bytes: NonZeroU64) -> Result<Span> {
        let span = host.alloc(tier, bytes).map(Span::of)?;
        lock(&self.0).insert(span.addr, tier);
        Ok(span)
    }

    fn copies(&self, _: &HostDevice, mut copies: Vec<CopyOp>) -> Result<Vec<CopyOp>> {
        let tiers = lock(&self.0);
        let tier = |addr| tiers.range(..=addr).next_back().map(|(_, tier)| *tier);
        copies.retain(|op| tier(op.from) == tier(op.to));
        Ok(copies)
    }
}

/// Of copies whose sources overlap, one is done.
#[derive(Default)]
struct ExclusiveSource;
impl Flaw for ExclusiveSource {
    const BREAKS: &'static [&'static str] = &["copies_may_share_a_source"];

    fn copies(&self, _: &HostDevice, mut copies: Vec<CopyOp>) -> Result<Vec<CopyOp>> {
        copies.sort_by_key(|op| op.from);
        let mut until = 0;
        copies.retain(|op| {
            let free = op.from.0 >= until;
            until = until.max(op.from.0 + op.len.get());
            free
        });
        Ok(copies)
    }
}

/// Words that a copy writes in part are read, changed and written back, not all at once.
#[derive(Default)]
struct WholeWords;
impl Flaw for WholeWords {
    const BREAKS: &'static [&'static str] = &["neighbours_in_a_word_keep_their_bytes"];

    fn alloc(&self, host: &HostDevice, tier: Tier, bytes: NonZeroU64) -> Result<Span> {
        roomy(host, tier, bytes)
    }

    fn copies(&self, host: &HostDevice, copies: Vec<CopyOp>) -> Result<Vec<CopyOp>> {
        let changed = copies.iter().map(|op| {
            let (to, len) = (op.to.0, op.len.get());
            let (start, end) = (to / 8 * 8, (to + len).next_multiple_of(8));
            let mut words = vec![0; (end - start) as usize];
            host.read_bytes(DeviceAddr(start), &mut words)?;
            let skip = (to - start) as usize;
            host.read_bytes(op.from, &mut words[skip..][..len as usize])?;
            Ok((DeviceAddr(start), words))
        });
        for (start, words) in changed.collect::<Result<Vec<_>>>()? {
            host.write_bytes(start, &words)?;
        }
        Ok(Vec::new())
    }
}

/// A list of copies has an end.
#[derive(Default)]
struct ShortList;
impl Flaw for ShortList {
    const BREAKS: &'static [&'static str] = &["one_submit_takes_thousands_of_copies"];

    fn copies(&self, _: &HostDevice, mut copies: Vec<CopyOp>) -> Result<Vec<CopyOp>> {
        copies.truncate(16384);
        Ok(copies)
    }
}

/// Short copies are done by the caller's thread, before what was submitted earlier.
#[derive(Default)]
struct Overtaking;
impl Flaw for Overtaking {
    const BREAKS: &'static [&'static str] = &[
        "a_submit_sees_the_one_before",
        "a_submit_does_not_overtake_the_one_before",
    ];

    fn copies(&self, host: &HostDevice, copies: Vec<CopyOp>) -> Result<Vec<CopyOp>> {
        let (short, long): (Vec<_>, _) = copies.into_iter().partition(|op| op.len.get() < 256);
        for op in &short {
            copy_now(host, op)?;
        }
        Ok(long)
    }
}

/// The first look at a fence sees nothing.
#[derive(Default)]
struct LateFence;
impl Flaw for LateFence {
    const BREAKS: &'static [&'static str] = &["fences_complete_in_order"];

    fn wait(&self, fence: &Fence, limit: Duration) -> Result<bool> {
        let looked_at = fence.looked_at.swap(true, Relaxed);
        Ok(fence.wait(limit)? && (looked_at || !limit.is_zero()))
    }
}

/// The fence of an empty submit never completes.
#[derive(Default)]
struct EmptyHangs;
impl Flaw for EmptyHangs {
    const BREAKS: &'static [&'static str] = &["an_empty_submit_is_complete"];

    fn wait(&self, fence: &Fence, limit: Duration) -> Result<bool> {
        Ok(fence.wait(limit)? && fence.copies > 0)
    }
}

/// A submit waits for its copies.
#[derive(Default)]
struct BlockingSubmit;
impl Flaw for BlockingSubmit {
    const BREAKS: &'static [&'static str] = &["submit_returns_before_its_copies_are_done"];

    fn submit(&self, host: &HostDevice, copies: Vec<CopyOp>) -> Result<Fence> {
        let fence = submit(host, &copies)?;
        fence.wait(Duration::MAX)?;
        Ok(fence)
    }
}

/// A wait ignores its limit.
#[derive(Default)]
struct EndlessWait;
impl Flaw for EndlessWait {
    const BREAKS: &'static [&'static str] = &["a_short_wait_only_looks"];

    fn wait(&self, fence: &Fence, _: Duration) -> Result<bool> {
        fence.wait(Duration::MAX)
    }
}

/// Whatever the limit, a wait looks once.
#[derive(Default)]
struct ImpatientWait;
impl Flaw for ImpatientWait {
    const BREAKS: &'static [&'static str] = &["a_wait_of_any_length_sees_completion"];

    fn wait(&self, fence: &Fence, _: Duration) -> Result<bool> {
        fence.wait(Duration::ZERO)
    }
}

/// A fence says that it is complete when it is not.
#[derive(Default)]
struct EagerFence;
impl Flaw for EagerFence {
    const BREAKS: &'static [&'static str] = &[
        "completion_means_that_all_copies_have_landed",
        "a_wait_of_any_length_sees_completion",
        "a_short_wait_only_looks",
    ];

    fn wait(&self, _: &Fence, _: Duration) -> Result<bool> {
        Ok(true)
    }
}

/// A fence is complete when the first of its copies has landed.
#[derive(Default)]
struct FirstCopyFence;
impl Flaw for FirstCopyFence {
    const BREAKS: &'static [&'static str] = &["completion_means_that_all_copies_have_landed"];

    fn submit(&self, host: &HostDevice, copies: Vec<CopyOp>) -> Result<Fence> {
        let (first, rest) = copies.split_at(copies.len().min(1));
        let fence = submit(host, first)?;
        submit(host, rest)?;
        Ok(fence)
    }
}

/// Completion is reported once.
#[derive(Default)]
struct OneCompletion;
impl Flaw for OneCompletion {
    const BREAKS: &'static [&'static str] =
        &["completion_is_final", "one_fence_serves_several_threads"];

    fn wait(&self, fence: &Fence, limit: Duration) -> Result<bool> {
        Ok(fence.wait(limit)? && !fence.looked_at.swap(true, Relaxed))
    }
}

/// Dropping a fence waits.
#[derive(Default)]
struct WaitingDrop;
impl Flaw for WaitingDrop {
    const BREAKS: &'static [&'static str] = &["a_dropped_fence_does_not_wait"];

    fn submit(&self, host: &HostDevice, copies: Vec<CopyOp>) -> Result<Fence> {
        let mut fence = submit(host, &copies)?;
        fence.wait_on_drop = true;
        // So that there is something to wait for, however fast the copies are.
        let hold = host.hold_copies();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(30));
            drop(hold);
        });
        Ok(fence)
    }
}

/// Copies start when their fence is waited for.
#[derive(Default)]
struct LazyStart;
impl Flaw for LazyStart {
    const BREAKS: &'static [&'static str] = &["a_dropped_fence_does_not_cancel"];

    fn submit(&self, host: &HostDevice, copies: Vec<CopyOp>) -> Result<Fence> {
        let fence = submit(host, &[])?;
        *lock(&fence.rest) = copies;
        Ok(fence)
    }

    fn wait(&self, fence: &Fence, limit: Duration) -> Result<bool> {
        let rest = std::mem::take(&mut *lock(&fence.rest));
        let started = submit(&fence.host, &rest)?;
        lock(&fence.fences).append(&mut lock(&started.fences));
        fence.wait(limit)
    }
}

/// Host writes pass through one buffer that nobody guards.
#[derive(Default)]
struct SharedBuffer(Mutex<Vec<u8>>);
impl Flaw for SharedBuffer {
    const BREAKS: &'static [&'static str] = &["threads_may_share_a_device"];

    fn write(&self, host: &HostDevice, to: DeviceAddr, from: &[u8]) -> Result<()> {
        *lock(&self.0) = from.to_vec();
        thread::sleep(Duration::from_micros(100));
        let mut bytes = lock(&self.0).clone();
        bytes.resize(from.len(), 0);
        host.write_bytes(to, &bytes)
    }
}

/// Runs a rule on a fresh device; true if the rule holds.
fn holds<F: Flaw>(name: &str) -> bool {
    let rule = rules::<Broken<F>>()
        .iter()
        .find(|rule| rule.name == name)
        .unwrap_or_else(|| panic!("the suite has no rule `{name}`"));
    catch_unwind(|| (rule.check)(&Broken::new())).is_ok()
}

#[test]
fn a_device_without_a_flaw_passes() {
    let broken: Vec<_> = rules::<Broken<NoFlaw>>()
        .iter()
        .map(|rule| rule.name)
        .filter(|name| !holds::<NoFlaw>(name))
        .collect();
    assert!(
        broken.is_empty(),
        "these fail on a device that works: {broken:?}"
    );
}

/// Expands to a test per flaw, and one that no rule was forgotten.
macro_rules! controls {
    ($($test:ident: $flaw:ty,)*) => {
        $(#[test]
        fn $test() {
            for rule in <$flaw>::BREAKS {
                assert!(!holds::<$flaw>(rule), "`{rule}` does not notice `{}`", stringify!($flaw));
            }
        })*

        #[test]
        fn every_rule_has_a_control() {
            let controlled: BTreeSet<_> = [$(<$flaw>::BREAKS),*].concat().into_iter().collect();
            let rules: BTreeSet<_> = rules::<Broken<NoFlaw>>().iter().map(|rule| rule.name).collect();
            assert_eq!(controlled, rules);
        }
    };
}

controls! {
    misaligned: Misaligned,
    short: Short,
    wrong_tier: WrongTier,
    same_block: SameBlock,
    cut_addresses: CutAddresses,
    cut_sizes: CutSizes,
    wrong_error: WrongError,
    costly_failure: CostlyFailure,
    leak: Leak,
    reads_words: ReadsWords,
    writes_too_much: WritesTooMuch,
    dropped_byte: DroppedByte,
    extra_byte: ExtraByte,
    off_by_one: OffByOne,
    one_tile: OneTile,
    one_chunk: OneChunk,
    touched_source: TouchedSource,
    one_tier: OneTier,
    exclusive_source: ExclusiveSource,
    whole_words: WholeWords,
    short_list: ShortList,
    overtaking: Overtaking,
    late_fence: LateFence,
    empty_hangs: EmptyHangs,
    blocking_submit: BlockingSubmit,
    endless_wait: EndlessWait,
    impatient_wait: ImpatientWait,
    eager_fence: EagerFence,
    first_copy_fence: FirstCopyFence,
    one_completion: OneCompletion,
    waiting_drop: WaitingDrop,
    lazy_start: LazyStart,
    shared_buffer: SharedBuffer,
}
