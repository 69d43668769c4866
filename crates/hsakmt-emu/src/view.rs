//! Memory as one agent sees it: the only way in which queues, engines and kernels touch memory.
//!
//! Every access is checked against the page tables. The last few entries are remembered, so that an access costs a
//! comparison and not a lock; a remembered entry counts as long as the page tables have not changed since, and keeps
//! the memory of its block from being unmapped until it is forgotten. [`View::forget`] is called whenever a queue has
//! nothing to do.
//!
//! Memory of the application, registered or managed, can't be kept: a program that unmaps it while an agent uses it
//! ends with a segmentation fault, where hardware would report a memory fault.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use amdgpu_emu::{Access, AccessFault, Memory, Refusal};

use crate::host;
use crate::pages::Agents;
use crate::space::{Region, Space};

/// Entries that are remembered.
const REMEMBERED: usize = 8;

/// A remembered entry of the page tables.
#[derive(Debug)]
struct Window {
    start: u64,
    end: u64,
    /// Where `start` is in this process.
    host: u64,
    /// Keeps the memory.
    region: Option<Arc<Region>>,
}

#[derive(Debug, Default)]
struct Remembered {
    generation: u64,
    windows: Vec<Window>,
    /// The window that is replaced next.
    next: usize,
}

/// One agent's memory, for one thread.
#[derive(Debug)]
pub(crate) struct View {
    space: Arc<Space>,
    agent: Agents,
    remembered: RefCell<Remembered>,
}

/// Bytes of this process that an access goes to.
#[derive(Clone, Copy, Debug)]
struct Piece {
    host: u64,
    len: u64,
}

impl View {
    pub(crate) fn new(space: Arc<Space>, agent: Agents) -> Self {
        Self {
            space,
            agent,
            remembered: RefCell::default(),
        }
    }

    /// Lets go of all memory.
    pub(crate) fn forget(&self) {
        self.remembered.borrow_mut().windows.clear();
    }

    /// The bytes at `address`, as many of `len` as lie in one mapping. What is returned stays mapped until the next
    /// call or `forget`.
    fn piece(&self, address: u64, len: u64) -> Option<Piece> {
        let mut remembered = self.remembered.borrow_mut();
        if remembered.generation != self.space.generation() {
            remembered.windows.clear();
        }
        let piece = |window: &Window| {
            let within = window.start <= address && address < window.end;
            within.then(|| Piece {
                host: window.host + (address - window.start),
                len: len.min(window.end - address),
            })
        };
        if let Some(piece) = remembered.windows.iter().find_map(piece) {
            return Some(piece);
        }
        let window = self.space.pages(|generation, pages| {
            if remembered.generation != generation {
                remembered.generation = generation;
                remembered.windows.clear();
            }
            let (start, entry) = pages.find(address)?;
            entry.agents.contains(self.agent).then(|| Window {
                start,
                end: entry.end,
                host: entry.host,
                region: entry.region.clone(),
            })
        })?;
        let found = piece(&window);
        if remembered.windows.len() < REMEMBERED {
            remembered.windows.push(window);
        } else {
            let at = remembered.next;
            remembered.next = (at + 1) % REMEMBERED;
            remembered.windows[at] = window;
        }
        found
    }

    /// The pieces of an access, all of them or none.
    fn pieces(&self, address: u64, len: u64, access: Access) -> Result<Pieces, AccessFault> {
        let whole = self.piece(address, len).filter(|piece| piece.len == len);
        let mut pieces = Pieces {
            whole,
            parts: Vec::new(),
        };
        let mut done = 0;
        while whole.is_none() && done < len {
            let at = address.checked_add(done);
            let part = at.and_then(|at| Some((self.piece(at, len - done)?, self.holding(at))));
            let address = address.wrapping_add(done);
            let part = part.ok_or(AccessFault {
                address,
                len,
                access,
                refusal: Refusal::Unmapped,
            })?;
            done += part.0.len;
            pieces.parts.push(part);
        }
        Ok(pieces)
    }

    /// What keeps the memory at `address`, which was just looked up.
    fn holding(&self, address: u64) -> Option<Arc<Region>> {
        let remembered = self.remembered.borrow();
        let window = remembered
            .windows
            .iter()
            .find(|window| window.start <= address && address < window.end)?;
        window.region.clone()
    }

    /// Moves bytes inside the agent's memory, until one can't be reached. Ranges may overlap where each lies in one
    /// mapping.
    pub(crate) fn copy(&self, to: u64, from: u64, len: u64) -> Result<(), AccessFault> {
        let mut done = 0;
        while done < len {
            let fault = |address, access| AccessFault {
                address,
                len: len - done,
                access,
                refusal: Refusal::Unmapped,
            };
            let source = self
                .piece(from.wrapping_add(done), len - done)
                .ok_or(fault(from.wrapping_add(done), Access::Read))?;
            let kept = self.holding(from.wrapping_add(done));
            let target = self
                .piece(to.wrapping_add(done), source.len)
                .ok_or(fault(to.wrapping_add(done), Access::Write))?;
            // SAFETY: both pieces are in the page tables; `kept` and the window of the latest look-up hold what is
            // ours, and memory of the application stays mapped by its promise.
            unsafe { host::copy(target.host, source.host, target.len) };
            drop(kept);
            done += target.len;
        }
        Ok(())
    }

    /// Repeats a pattern of 4 bytes over `len` bytes.
    pub(crate) fn fill(&self, to: u64, pattern: u32, len: u64) -> Result<(), AccessFault> {
        let block: Vec<u8> = pattern
            .to_le_bytes()
            .into_iter()
            .cycle()
            .take(len.min(64 << 10) as usize)
            .collect();
        let mut done = 0;
        while done < len {
            let now = (len - done).min(block.len() as u64);
            self.write(to.wrapping_add(done), &block[..now as usize])?;
            done += now;
        }
        Ok(())
    }

    /// Reads 4 bytes.
    pub(crate) fn load32(&self, address: u64) -> Result<u32, AccessFault> {
        let mut bytes = [0; 4];
        self.read(address, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// Reads 8 bytes.
    pub(crate) fn load64(&self, address: u64) -> Result<u64, AccessFault> {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Writes 8 bytes.
    pub(crate) fn store64(&self, address: u64, value: u64) -> Result<(), AccessFault> {
        self.write(address, &value.to_le_bytes())
    }

    /// The one piece of an aligned word.
    fn word(&self, address: u64, len: u64) -> Result<Piece, AccessFault> {
        let refuse = |refusal| AccessFault {
            address,
            len,
            access: Access::Atomic,
            refusal,
        };
        if !address.is_multiple_of(len) {
            return Err(refuse(Refusal::Misaligned));
        }
        // Mappings end at multiples of a page, so an aligned word lies in one or in none.
        self.piece(address, len)
            .filter(|piece| piece.len == len)
            .ok_or(refuse(Refusal::Unmapped))
    }
}

/// The pieces of an access: one, which the latest window keeps, or several with what keeps each.
struct Pieces {
    whole: Option<Piece>,
    parts: Vec<(Piece, Option<Arc<Region>>)>,
}

impl Pieces {
    /// Where each piece is, and the range of the access that it holds.
    fn each(&self) -> impl Iterator<Item = (u64, std::ops::Range<usize>)> + '_ {
        let mut at = 0;
        let parts = self.parts.iter().map(|(piece, _)| piece);
        self.whole.iter().chain(parts).map(move |piece| {
            let range = at..at + piece.len as usize;
            at = range.end;
            (piece.host, range)
        })
    }
}

impl Memory for View {
    fn read(&self, address: u64, out: &mut [u8]) -> Result<(), AccessFault> {
        for (host, range) in self.pieces(address, out.len() as u64, Access::Read)?.each() {
            // SAFETY: the piece is in the page tables and held: by the latest window if it is the only one, by
            // `Pieces` otherwise; memory of the application stays mapped by its promise. Rust code has no references
            // into memory that agents reach, other than atomic ones.
            unsafe { host::read(host, &mut out[range]) };
        }
        Ok(())
    }

    fn write(&self, address: u64, bytes: &[u8]) -> Result<(), AccessFault> {
        for (host, range) in self
            .pieces(address, bytes.len() as u64, Access::Write)?
            .each()
        {
            // SAFETY: as for `read`; everything that agents reach is writable.
            unsafe { host::write(host, &bytes[range]) };
        }
        Ok(())
    }

    fn update32(
        &self,
        address: u64,
        update: &mut dyn FnMut(u32) -> u32,
    ) -> Result<u32, AccessFault> {
        let piece = self.word(address, 4)?;
        // SAFETY: as for `read`; the address is a multiple of 4, and mappings keep the place in a page.
        let word = unsafe { host::atomic32(piece.host) };
        let mut old = word.load(Ordering::Acquire);
        while let Err(seen) =
            word.compare_exchange_weak(old, update(old), Ordering::AcqRel, Ordering::Acquire)
        {
            old = seen;
        }
        Ok(old)
    }

    fn update64(
        &self,
        address: u64,
        update: &mut dyn FnMut(u64) -> u64,
    ) -> Result<u64, AccessFault> {
        let piece = self.word(address, 8)?;
        // SAFETY: as for `update32`, with 8 bytes.
        let word = unsafe { host::atomic64(piece.host) };
        let mut old = word.load(Ordering::Acquire);
        while let Err(seen) =
            word.compare_exchange_weak(old, update(old), Ordering::AcqRel, Ordering::Acquire)
        {
            old = seen;
        }
        Ok(old)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::MemFlags;

    fn machine() -> (Arc<Space>, View, View) {
        let space = Arc::new(Space::new(2, 1 << 26, 1 << 26).unwrap());
        let view = |node| View::new(space.clone(), Agents::of(node));
        (space.clone(), view(1), view(2))
    }

    #[test]
    fn an_agent_reaches_what_is_mapped_to_it_and_nothing_else() {
        let (space, first, second) = machine();
        let block = space.allocate(1, 8192, MemFlags::default(), None).unwrap();
        assert!(
            first.load64(block).is_err(),
            "nothing is mapped by allocating"
        );
        assert_eq!(space.map(block, 8192, None).unwrap(), block);
        first.store64(block + 8184, 5).unwrap();
        assert_eq!(
            second.load64(block + 8184).unwrap_err().refusal,
            Refusal::Unmapped
        );
        space.map(block, 8192, Some(Agents::first(2))).unwrap();
        assert_eq!(second.load64(block + 8184).unwrap(), 5);
        assert!(
            first.read(block + 8188, &mut [0; 8]).is_err(),
            "an access that ends outside does nothing"
        );
        space.unmap(block).unwrap();
        assert!(first.load64(block).is_err());
        space.free(block).unwrap();
        assert!(space.free(block).is_err());
    }

    #[test]
    fn memory_that_comes_back_is_zero_and_counted() {
        let (space, view, _) = machine();
        for _ in 0..3 {
            let block = space
                .allocate(1, 1 << 26, MemFlags::default(), None)
                .unwrap();
            assert_eq!(space.free_bytes(1).unwrap(), 0);
            assert!(matches!(
                space.allocate(1, 1, MemFlags::default(), None),
                Err(crate::error::Error::NoMemory { .. })
            ));
            space.map(block, 1 << 26, None).unwrap();
            assert_eq!(view.load64(block + 4096).unwrap(), 0);
            view.store64(block + 4096, 1).unwrap();
            view.forget();
            space.free(block).unwrap();
        }
        assert_eq!(space.free_bytes(1).unwrap(), 1 << 26);
    }

    #[test]
    fn registered_memory_has_an_address_of_its_own() {
        let (space, view, _) = machine();
        let memory: Vec<std::sync::atomic::AtomicU64> =
            (0..2000).map(std::sync::atomic::AtomicU64::new).collect();
        let (host, len) = (memory.as_ptr().expose_provenance() as u64, 16_000);
        space.register(host, len, MemFlags::default()).unwrap();
        let agent = space.map(host, len, None).unwrap();
        assert_ne!(agent, host);
        assert_eq!(view.load64(agent + 8 * 1999).unwrap(), 1999);
        view.store64(agent + 8, 77).unwrap();
        assert_eq!(memory[1].load(Ordering::Relaxed), 77);
        assert!(
            view.load64(host).is_err(),
            "agents do not reach the host's address"
        );
        let by_host = space.pointer(host + 40).unwrap();
        assert_eq!(space.pointer(agent + 40).unwrap(), by_host);
        assert_eq!(
            (by_host.host, by_host.agent, by_host.len),
            (host, agent, len)
        );
        space.unmap(host).unwrap();
        space.deregister(host).unwrap();
        assert!(space.pointer(host).is_none() && view.load64(agent).is_err());
    }

    #[test]
    fn an_access_and_a_copy_cross_mappings() {
        let (space, view, _) = machine();
        // Far from where the host puts what asks for no address.
        let low = 0x1234_5678_0000;
        // Two blocks side by side.
        let fixed = |at| {
            space
                .allocate(0, 4096, MemFlags::default(), Some(at))
                .unwrap()
        };
        let (low, high) = (fixed(low), fixed(low + 4096));
        space.map(low, 4096, None).unwrap();
        space.map(high, 4096, None).unwrap();
        let bytes: Vec<u8> = (0..100).collect();
        view.write(high - 50, &bytes).unwrap();
        view.copy(high + 200, high - 50, 100).unwrap();
        view.copy(high - 90, high + 200, 100).unwrap();
        let mut out = vec![0; 100];
        view.read(high - 90, &mut out).unwrap();
        assert_eq!(out, bytes);
        view.fill(high - 8, 0x0102_0304, 16).unwrap();
        assert_eq!(view.load64(high).unwrap(), 0x0102_0304_0102_0304);
        assert_eq!(view.copy(low, high, 5000).unwrap_err().address, high + 4096);
    }

    #[test]
    fn a_shared_block_is_the_same_memory() {
        let (space, view, _) = machine();
        let before = space.allocate(1, 4096, MemFlags::default(), None);
        before.unwrap();
        let block = space
            .allocate(1, 4 << 20, MemFlags::default(), None)
            .unwrap();
        assert_eq!(block % (2 << 20), 0);
        space.map(block, 4 << 20, None).unwrap();
        let handle = space.share(block).unwrap();
        let (attached, len) = space.attach(&handle).unwrap();
        assert_eq!(len, 4 << 20);
        space.map(attached, len, Some(Agents::of(1))).unwrap();
        view.store64(block + 8, 99).unwrap();
        assert_eq!(view.load64(attached + 8).unwrap(), 99);
        assert!(space.attach(&[1; 8]).is_err());
    }
}
