//! What a dispatch sees as memory: checked accesses by agent-visible virtual address.
//!
//! The emulator never touches an address itself. Every fetch, load, store and atomic of a wave goes through
//! [`Memory`], whose implementation decides what the agent may reach and refuses the rest with an [`AccessFault`].
//!
//! Not here: LDS and registers, which belong to a workgroup and live in it; where mappings come from.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// What was tried when an access was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// An instruction fetch.
    Fetch,
    /// A load.
    Read,
    /// A store.
    Write,
    /// A read-modify-write.
    Atomic,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fetch => "fetch",
            Self::Read => "read",
            Self::Write => "write",
            Self::Atomic => "atomic",
        })
    }
}

/// Why an access was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// Nothing is mapped there for this agent.
    Unmapped,
    /// Something is mapped, but not for this kind of access.
    Denied,
    /// An atomic whose address is not a multiple of its width.
    Misaligned,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unmapped => "not mapped to this agent",
            Self::Denied => "mapped without that right",
            Self::Misaligned => "not aligned to the width of the operation",
        })
    }
}

/// An access that [`Memory`] refused. Nothing was read or written by the refused call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{access} of {len} bytes at {address:#x}: {refusal}")]
pub struct AccessFault {
    /// First byte that could not be accessed.
    pub address: u64,
    /// Bytes of the refused access.
    pub len: u64,
    /// What was tried.
    pub access: Access,
    /// Why it was refused.
    pub refusal: Refusal,
}

/// Memory as one agent sees it.
///
/// # Contract
///
/// - A call either does all of its access or refuses it and does none.
/// - Addresses have any alignment; an access may cross mappings. `address + len` may overflow: that is a refusal.
/// - Each naturally aligned 4-byte word of a read or write is accessed in one piece, and so is each naturally aligned
///   8-byte word of an 8-byte access, since kernels build flags and locks from plain loads and stores.
/// - Reads have acquire order and writes release order at least: the emulator has no caches and treats every access as
///   coherent with the host and with other agents.
/// - An update is one atomic step against every other access through any agent and, where memory is shared with it,
///   the host.
pub trait Memory {
    /// Reads `out.len()` bytes at `address`.
    ///
    /// # Errors
    ///
    /// The agent may not read one of the bytes; `out` is then unspecified.
    fn read(&self, address: u64, out: &mut [u8]) -> Result<(), AccessFault>;

    /// Writes `bytes` at `address`.
    ///
    /// # Errors
    ///
    /// The agent may not write one of the bytes.
    fn write(&self, address: u64, bytes: &[u8]) -> Result<(), AccessFault>;

    /// Replaces the word at `address` by `update` of it, atomically, and returns the word before. `update` may be
    /// called more than once and has no side effects.
    ///
    /// # Errors
    ///
    /// The address is not a multiple of 4, or the agent may not read and write there.
    fn update32(
        &self,
        address: u64,
        update: &mut dyn FnMut(u32) -> u32,
    ) -> Result<u32, AccessFault>;

    /// [`update32`](Self::update32) for 8 bytes.
    ///
    /// # Errors
    ///
    /// The address is not a multiple of 8, or the agent may not read and write there.
    fn update64(
        &self,
        address: u64,
        update: &mut dyn FnMut(u64) -> u64,
    ) -> Result<u64, AccessFault>;

    /// Reads code. The same as [`read`](Self::read), unless mappings have a right of their own for execution.
    ///
    /// # Errors
    ///
    /// The agent may not execute one of the bytes.
    fn fetch(&self, address: u64, out: &mut [u8]) -> Result<(), AccessFault> {
        self.read(address, out).map_err(|fault| AccessFault {
            access: Access::Fetch,
            ..fault
        })
    }
}

/// One readable and writable mapping of zeroed memory, for tests, benches and stand-alone use.
///
/// ```
/// use amdgpu_emu::{FlatMemory, Memory};
///
/// let memory = FlatMemory::new(0x10_0000, 4096);
/// memory.write(0x10_0003, b"abc")?;
/// let mut out = [0; 4];
/// memory.read(0x10_0002, &mut out)?;
/// assert_eq!(&out, b"\0abc");
/// assert!(memory.read(0x10_0ffd, &mut out).is_err());
/// # Ok::<(), amdgpu_emu::AccessFault>(())
/// ```
pub struct FlatMemory {
    base: u64,
    len: u64,
    words: Box<[AtomicU64]>,
}

impl fmt::Debug for FlatMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FlatMemory({:#x} + {:#x})", self.base, self.len)
    }
}

impl FlatMemory {
    /// Maps `len` zero bytes at `base`.
    ///
    /// # Panics
    ///
    /// `base` is not a multiple of 8, or the mapping would pass the end of the address space.
    pub fn new(base: u64, len: usize) -> Self {
        assert!(
            base.is_multiple_of(8),
            "the base of a mapping is a multiple of 8"
        );
        assert!(
            base.checked_add(len as u64).is_some(),
            "a mapping ends inside the address space"
        );
        let words = (0..len.div_ceil(8)).map(|_| AtomicU64::new(0)).collect();
        Self {
            base,
            len: len as u64,
            words,
        }
    }

    /// Agent-visible address of the first byte.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Bytes mapped.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether nothing is mapped.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Offset of an access that lies inside the mapping.
    fn offset(&self, address: u64, len: usize, access: Access) -> Result<usize, AccessFault> {
        let len = len as u64;
        let refuse = |address| AccessFault {
            address,
            len,
            access,
            refusal: Refusal::Unmapped,
        };
        match address.checked_sub(self.base) {
            Some(offset) if offset <= self.len && len <= self.len - offset => Ok(offset as usize),
            Some(offset) => Err(refuse(self.base + self.len.max(offset))),
            None => Err(refuse(address)),
        }
    }

    /// The word that holds an aligned update of `len` bytes, and the bit at which the bytes start in it.
    fn word(&self, address: u64, len: usize) -> Result<(&AtomicU64, u32), AccessFault> {
        if !address.is_multiple_of(len as u64) {
            let refusal = Refusal::Misaligned;
            return Err(AccessFault {
                address,
                len: len as u64,
                access: Access::Atomic,
                refusal,
            });
        }
        let offset = self.offset(address, len, Access::Atomic)?;
        Ok((&self.words[offset / 8], (offset % 8) as u32 * 8))
    }
}

impl Memory for FlatMemory {
    fn read(&self, address: u64, out: &mut [u8]) -> Result<(), AccessFault> {
        let mut at = self.offset(address, out.len(), Access::Read)?;
        let mut rest = out;
        while !rest.is_empty() {
            let within = at % 8;
            let (piece, tail) = rest.split_at_mut(rest.len().min(8 - within));
            let word = self.words[at / 8].load(Ordering::Acquire).to_le_bytes();
            piece.copy_from_slice(&word[within..within + piece.len()]);
            at += piece.len();
            rest = tail;
        }
        Ok(())
    }

    fn write(&self, address: u64, bytes: &[u8]) -> Result<(), AccessFault> {
        let mut at = self.offset(address, bytes.len(), Access::Write)?;
        let mut rest = bytes;
        while !rest.is_empty() {
            let within = at % 8;
            let (piece, tail) = rest.split_at(rest.len().min(8 - within));
            let cell = &self.words[at / 8];
            if let Ok(whole) = piece.try_into() {
                cell.store(u64::from_le_bytes(whole), Ordering::Release);
            } else {
                replace(cell, |old| {
                    let mut word = old.to_le_bytes();
                    word[within..within + piece.len()].copy_from_slice(piece);
                    u64::from_le_bytes(word)
                });
            }
            at += piece.len();
            rest = tail;
        }
        Ok(())
    }

    fn update32(
        &self,
        address: u64,
        update: &mut dyn FnMut(u32) -> u32,
    ) -> Result<u32, AccessFault> {
        let (cell, shift) = self.word(address, 4)?;
        let old = replace(cell, |old| {
            let new = u64::from(update((old >> shift) as u32));
            old & !(0xffff_ffff << shift) | new << shift
        });
        Ok((old >> shift) as u32)
    }

    fn update64(
        &self,
        address: u64,
        update: &mut dyn FnMut(u64) -> u64,
    ) -> Result<u64, AccessFault> {
        let (cell, _) = self.word(address, 8)?;
        Ok(replace(cell, update))
    }
}

/// Replaces a word by a function of it and returns the word before.
fn replace(cell: &AtomicU64, mut update: impl FnMut(u64) -> u64) -> u64 {
    let mut old = cell.load(Ordering::Acquire);
    loop {
        match cell.compare_exchange_weak(old, update(old), Ordering::AcqRel, Ordering::Acquire) {
            Ok(old) => return old,
            Err(seen) => old = seen,
        }
    }
}
