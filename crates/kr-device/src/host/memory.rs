//! The address space of a host device: who owns which address, and the bytes behind it.
//!
//! Invariants
//! - Mapped allocations do not overlap and lie at least [`PAGE`] bytes apart.
//! - `used[tier]` is the sum of the mapped allocations' lengths in that tier.
//! - Bytes are kept in little-endian words; a partial word is changed by compare-exchange, so a
//!   neighbour's concurrent write in the same word is never lost.

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use kr_types::{AgentId, DeviceAddr, Tier};
use parking_lot::{Mutex, RwLock};

use crate::DeviceError;

/// Alignment of allocations and size of the unmapped gap behind each, in bytes.
pub(super) const PAGE: u64 = 4096;
const WORD: u64 = 8;

/// The bytes of one allocation. Accesses are relaxed: whoever needs an order has it from a queue
/// or a fence.
pub(super) struct Bytes {
    words: Box<[AtomicU64]>,
}

impl Bytes {
    /// Zeroed memory, or `None` if the host has none left.
    fn zeroed(len: NonZeroU64) -> Option<Self> {
        let words = usize::try_from(len.get().div_ceil(WORD)).ok()?;
        let words = bytemuck::allocation::try_zeroed_slice_box(words).ok()?;
        Some(Self { words })
    }

    /// Reads from `offset` on. The caller has checked the range.
    pub(super) fn read(&self, offset: u64, mut into: &mut [u8]) {
        let (mut word, skip) = ((offset / WORD) as usize, (offset % WORD) as usize);
        if skip != 0 {
            let (head, rest) = into.split_at_mut(into.len().min(WORD as usize - skip));
            let bytes = self.words[word].load(Relaxed).to_le_bytes();
            head.copy_from_slice(&bytes[skip..skip + head.len()]);
            (into, word) = (rest, word + 1);
        }
        let (whole, tail) = into.as_chunks_mut::<{ WORD as usize }>();
        for (chunk, word) in whole.iter_mut().zip(self.words_from(word)) {
            *chunk = word.load(Relaxed).to_le_bytes();
        }
        if !tail.is_empty() {
            let bytes = self.words[word + whole.len()].load(Relaxed).to_le_bytes();
            tail.copy_from_slice(&bytes[..tail.len()]);
        }
    }

    /// Writes from `offset` on. The caller has checked the range.
    pub(super) fn write(&self, offset: u64, mut from: &[u8]) {
        let (mut word, skip) = ((offset / WORD) as usize, (offset % WORD) as usize);
        if skip != 0 {
            let (head, rest) = from.split_at(from.len().min(WORD as usize - skip));
            self.write_partial(word, skip, head);
            (from, word) = (rest, word + 1);
        }
        let (whole, tail) = from.as_chunks::<{ WORD as usize }>();
        for (chunk, word) in whole.iter().zip(self.words_from(word)) {
            word.store(u64::from_le_bytes(*chunk), Relaxed);
        }
        if !tail.is_empty() {
            self.write_partial(word + whole.len(), 0, tail);
        }
    }

    /// The words from this one on; none behind the end.
    fn words_from(&self, word: usize) -> &[AtomicU64] {
        self.words.get(word..).unwrap_or_default()
    }

    fn write_partial(&self, word: usize, skip: usize, from: &[u8]) {
        let word = &self.words[word];
        let mut old = word.load(Relaxed);
        loop {
            let mut bytes = old.to_le_bytes();
            bytes[skip..skip + from.len()].copy_from_slice(from);
            let new = u64::from_le_bytes(bytes);
            match word.compare_exchange_weak(old, new, Relaxed, Relaxed) {
                Ok(_) => return,
                Err(now) => old = now,
            }
        }
    }
}

struct Mapping {
    len: NonZeroU64,
    tier: Tier,
    bytes: Arc<Bytes>,
}

/// The address space. Cheap to look up from many threads.
pub(super) struct AddressSpace {
    agent: AgentId,
    capacity: HashMap<Tier, u64>,
    mappings: RwLock<BTreeMap<DeviceAddr, Mapping>>,
    room: Mutex<Room>,
}

/// Lock order: `room` before `mappings`, and never both for longer than an insert or a remove.
struct Room {
    used: HashMap<Tier, u64>,
    /// Freed addresses by their reserved length, last freed first, as caching allocators do.
    free: HashMap<u64, Vec<DeviceAddr>>,
    next: u64,
}

impl AddressSpace {
    pub(super) fn new(agent: AgentId, capacity: HashMap<Tier, u64>) -> Self {
        Self {
            agent,
            capacity,
            mappings: RwLock::default(),
            room: Mutex::new(Room {
                used: HashMap::new(),
                free: HashMap::new(),
                // Far from anything that looks like a small integer, and different per agent.
                next: (0x7a + (agent.0 & 0xff)) << 40,
            }),
        }
    }

    pub(super) fn agent(&self) -> AgentId {
        self.agent
    }

    pub(super) fn map(&self, tier: Tier, len: NonZeroU64) -> Result<DeviceAddr, DeviceError> {
        let out_of_memory = || DeviceError::OutOfMemory {
            agent: self.agent,
            tier,
            requested: len,
        };
        let reserved = len
            .get()
            .checked_next_multiple_of(PAGE)
            .and_then(|pages| pages.checked_add(PAGE))
            .ok_or_else(out_of_memory)?;
        let mut room = self.room.lock();
        let used = room.used.get(&tier).copied().unwrap_or(0);
        let capacity = self.capacity.get(&tier).copied().unwrap_or(u64::MAX);
        let wanted = used.checked_add(len.get()).ok_or_else(out_of_memory)?;
        if wanted > capacity {
            return Err(out_of_memory());
        }
        let bytes = Arc::new(Bytes::zeroed(len).ok_or_else(out_of_memory)?);
        let addr = match room.free.get_mut(&reserved).and_then(Vec::pop) {
            Some(addr) => addr,
            None => {
                let addr = DeviceAddr(room.next);
                room.next = room.next.checked_add(reserved).ok_or_else(out_of_memory)?;
                addr
            }
        };
        room.used.insert(tier, wanted);
        self.mappings
            .write()
            .insert(addr, Mapping { len, tier, bytes });
        Ok(addr)
    }

    pub(super) fn unmap(&self, addr: DeviceAddr) {
        let mut room = self.room.lock();
        let Some(mapping) = self.mappings.write().remove(&addr) else {
            return;
        };
        let reserved = mapping.len.get().next_multiple_of(PAGE) + PAGE;
        room.free.entry(reserved).or_default().push(addr);
        if let Some(used) = room.used.get_mut(&mapping.tier) {
            *used -= mapping.len.get();
        }
    }

    /// Bytes allocated in `tier` now.
    pub(super) fn used(&self, tier: Tier) -> u64 {
        self.room.lock().used.get(&tier).copied().unwrap_or(0)
    }

    /// The allocation that holds all of `len` bytes at `addr`, and where in it they start.
    pub(super) fn find(
        &self,
        addr: DeviceAddr,
        len: u64,
    ) -> Result<(Arc<Bytes>, u64), DeviceError> {
        let mappings = self.mappings.read();
        mappings
            .range(..=addr)
            .next_back()
            .and_then(|(base, mapping)| {
                let offset = addr.offset_from(*base)?;
                let end = offset.checked_add(len)?;
                (end <= mapping.len.get()).then(|| (mapping.bytes.clone(), offset))
            })
            .ok_or(DeviceError::Fault {
                agent: self.agent,
                addr,
                len,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(len: u64) -> Bytes {
        Bytes::zeroed(NonZeroU64::new(len).unwrap()).unwrap()
    }

    /// Every offset and length around two words against a plain array.
    #[test]
    fn partial_words_change_only_their_own_bytes() {
        for offset in 0..17u64 {
            for len in 0..=(24 - offset) as usize {
                let memory = bytes(24);
                let mut naive = [0xee; 24];
                memory.write(0, &naive);
                let data: Vec<u8> = (1..=len as u8).collect();
                memory.write(offset, &data);
                naive[offset as usize..offset as usize + len].copy_from_slice(&data);
                let mut all = [0; 24];
                memory.read(0, &mut all);
                assert_eq!(all, naive, "write of {len} at {offset}");
                let mut part = vec![0; len];
                memory.read(offset, &mut part);
                assert_eq!(part, data, "read of {len} at {offset}");
            }
        }
    }

    #[test]
    fn addresses_are_reused_and_never_adjacent() {
        let space = AddressSpace::new(AgentId(0), HashMap::new());
        let len = NonZeroU64::new(PAGE).unwrap();
        let (a, b) = (
            space.map(Tier::Device, len).unwrap(),
            space.map(Tier::Device, len).unwrap(),
        );
        assert_eq!(b.offset_from(a), Some(2 * PAGE));
        assert!(space.find(a, PAGE).is_ok());
        assert!(space.find(a, PAGE + 1).is_err());
        assert!(space.find(DeviceAddr(a.0 + PAGE), 1).is_err());
        space.unmap(a);
        assert!(space.find(a, 1).is_err());
        assert_eq!(space.map(Tier::Device, len), Ok(a));
        assert_eq!(space.used(Tier::Device), 2 * PAGE);
    }

    #[test]
    fn capacity_and_impossible_sizes_are_out_of_memory() {
        let space = AddressSpace::new(AgentId(0), HashMap::from([(Tier::Device, 100)]));
        let map = |len| space.map(Tier::Device, NonZeroU64::new(len).unwrap());
        let a = map(60).unwrap();
        assert!(matches!(map(41), Err(DeviceError::OutOfMemory { .. })));
        assert!(matches!(
            map(u64::MAX),
            Err(DeviceError::OutOfMemory { .. })
        ));
        assert!(map(40).is_ok());
        space.unmap(a);
        assert_eq!(space.used(Tier::Device), 40);
        let unlimited = AddressSpace::new(AgentId(0), HashMap::new());
        let huge = unlimited.map(Tier::Device, NonZeroU64::new(u64::MAX - 2 * PAGE).unwrap());
        assert!(matches!(huge, Err(DeviceError::OutOfMemory { .. })));
    }
}
