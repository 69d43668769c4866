//! Host memory under the emulated machine: mappings, and accesses to bytes that others access at the same time.
//!
//! Addresses are numbers, because that is what the thunk, packets and kernels hold. Nothing here knows what an
//! address belongs to: the functions that touch memory are unsafe, and `space` is where their contract is met.
//!
//! Not here: which agent may reach what (`pages`), who owns which block (`space`).

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

/// Bytes of a page; blocks begin and end at multiples of it.
pub(crate) const PAGE: u64 = 4096;

/// What is behind a mapping.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    /// Nothing: address space that can't be accessed.
    Nothing,
    /// Zeroed memory of this process.
    Anonymous,
    /// A file from an offset on.
    File(&'a File, u64),
}

/// A mapping, undone when dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: u64,
    len: u64,
}

impl Mapping {
    /// Maps `len` bytes, a multiple of [`PAGE`], at a multiple of `align`, or exactly at `at` if nothing is there yet.
    pub(crate) fn new(
        source: Source<'_>,
        len: u64,
        align: u64,
        at: Option<u64>,
    ) -> io::Result<Self> {
        if let Some(at) = at {
            return map(source, at, len, libc::MAP_FIXED_NOREPLACE);
        }
        if align <= PAGE {
            return map(source, 0, len, 0);
        }
        let wide = map(Source::Nothing, 0, len + align, 0)?;
        let base = wide.base.next_multiple_of(align);
        // The wide mapping falls apart in three: what lies around the aligned part goes, the part itself is replaced.
        let pieces = [
            (wide.base, base - wide.base),
            (base + len, wide.base + align - base),
        ];
        std::mem::forget(wide);
        for (base, len) in pieces.into_iter().filter(|&(_, len)| len > 0) {
            drop(Self { base, len });
        }
        let reserved = Self { base, len };
        let mapping = map(source, base, len, libc::MAP_FIXED)?;
        std::mem::forget(reserved);
        Ok(mapping)
    }

    /// Address of the first byte.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// Bytes.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let base = ptr::with_exposed_provenance_mut(self.base as usize);
        // SAFETY: the range is a mapping that this value owns, so nothing of Rust's lies in it; foreign code may keep
        // addresses into it, which is as wrong as keeping them after any other free.
        let unmapped = unsafe { libc::munmap(base, self.len as usize) };
        debug_assert_eq!(unmapped, 0, "a mapping of ours can be unmapped");
    }
}

fn map(source: Source<'_>, at: u64, len: u64, extra: i32) -> io::Result<Mapping> {
    let read_write = libc::PROT_READ | libc::PROT_WRITE;
    let (protection, flags, fd, offset) = match source {
        Source::Nothing => (
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        ),
        Source::Anonymous => (read_write, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0),
        Source::File(file, offset) => (read_write, libc::MAP_SHARED, file.as_raw_fd(), offset),
    };
    let flags = flags | libc::MAP_NORESERVE | extra;
    let hint = ptr::with_exposed_provenance_mut(at as usize);
    // SAFETY: a new mapping touches no memory that exists, since `MAP_FIXED` is only given for a range that
    // `Mapping::new` has reserved and owns.
    let base = unsafe {
        libc::mmap(
            hint,
            len as usize,
            protection,
            flags,
            fd,
            offset as libc::off_t,
        )
    };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(Mapping {
        base: base.expose_provenance() as u64,
        len,
    })
}

/// A file without a name, of `len` bytes that take no memory until they are used.
pub(crate) fn memory_file(len: u64) -> io::Result<File> {
    // SAFETY: the name is a C string, and the call touches nothing else.
    let fd = unsafe { libc::memfd_create(c"kr-emu".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and nobody else's.
    let file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    file.set_len(len)?;
    Ok(file)
}

/// Gives the memory under a range of a file back; the range reads as zeros from then on.
pub(crate) fn punch_hole(file: &File, offset: u64, len: u64) -> io::Result<()> {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: the call concerns the file alone; who still maps the range sees zeros, which any bytes may become.
    let punched = unsafe {
        libc::fallocate(
            file.as_raw_fd(),
            mode,
            offset as libc::off_t,
            len as libc::off_t,
        )
    };
    if punched == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Asks to be told in the child when this process forks.
pub(crate) fn at_fork_in_child(told: extern "C" fn()) {
    // SAFETY: the handler is a function of this library, which is never unloaded while it runs in the same process:
    // ROCr keeps it for as long as it is loaded itself. What the handler may do is its own affair.
    unsafe {
        libc::pthread_atfork(None, None, Some(as_handler(told)));
    }
}

fn as_handler(told: extern "C" fn()) -> unsafe extern "C" fn() {
    told
}

/// Nanoseconds of the monotonic clock.
pub(crate) fn nanoseconds() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is ours to write.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Bytes of the host's memory.
pub(crate) fn memory_bytes() -> u64 {
    // SAFETY: asks for a number.
    let pages = unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) };
    u64::try_from(pages).unwrap_or(1 << 18) * PAGE
}

/// The byte at an address.
///
/// # Safety
///
/// It is mapped, readable and writable, for as long as the reference lives, and nobody accesses it through Rust
/// references that are not atomic.
unsafe fn atomic8<'a>(at: u64) -> &'a AtomicU8 {
    // SAFETY: the caller's.
    unsafe { AtomicU8::from_ptr(ptr::with_exposed_provenance_mut(at as usize)) }
}

/// [`atomic8`] for 4 bytes.
///
/// # Safety
///
/// As [`atomic8`], for all of them; `at` is a multiple of 4.
pub(crate) unsafe fn atomic32<'a>(at: u64) -> &'a AtomicU32 {
    // SAFETY: the caller's.
    unsafe { AtomicU32::from_ptr(ptr::with_exposed_provenance_mut(at as usize)) }
}

/// [`atomic8`] for 8 bytes.
///
/// # Safety
///
/// As [`atomic8`], for all of them; `at` is a multiple of 8.
pub(crate) unsafe fn atomic64<'a>(at: u64) -> &'a AtomicU64 {
    // SAFETY: the caller's.
    unsafe { AtomicU64::from_ptr(ptr::with_exposed_provenance_mut(at as usize)) }
}

/// Largest naturally aligned piece, 8, 4 or 1 bytes, at an address with `left` bytes to go.
fn piece(at: u64, left: usize) -> usize {
    if at.is_multiple_of(8) && left >= 8 {
        8
    } else if at.is_multiple_of(4) && left >= 4 {
        4
    } else {
        1
    }
}

/// Reads bytes, every naturally aligned word of 4 or 8 of them in one piece, with acquire order.
///
/// # Safety
///
/// As [`atomic8`], for all bytes.
pub(crate) unsafe fn read(mut at: u64, mut out: &mut [u8]) {
    while !out.is_empty() {
        let (now, rest) = out.split_at_mut(piece(at, out.len()));
        match now.len() {
            // SAFETY: the caller's; `piece` gives the alignment.
            8 => now.copy_from_slice(
                &unsafe { atomic64(at) }
                    .load(Ordering::Acquire)
                    .to_le_bytes(),
            ),
            // SAFETY: as above.
            4 => now.copy_from_slice(
                &unsafe { atomic32(at) }
                    .load(Ordering::Acquire)
                    .to_le_bytes(),
            ),
            // SAFETY: as above.
            _ => now[0] = unsafe { atomic8(at) }.load(Ordering::Acquire),
        }
        at += now.len() as u64;
        out = rest;
    }
}

/// Writes bytes, every naturally aligned word of 4 or 8 of them in one piece, with release order.
///
/// # Safety
///
/// As [`atomic8`], for all bytes.
pub(crate) unsafe fn write(mut at: u64, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let (now, rest) = bytes.split_at(piece(at, bytes.len()));
        match *now {
            [a, b, c, d, e, f, g, h] => {
                // SAFETY: the caller's; `piece` gives the alignment.
                unsafe { atomic64(at) }.store(
                    u64::from_le_bytes([a, b, c, d, e, f, g, h]),
                    Ordering::Release,
                );
            }
            [a, b, c, d] => {
                // SAFETY: as above.
                unsafe { atomic32(at) }.store(u32::from_le_bytes([a, b, c, d]), Ordering::Release);
            }
            // SAFETY: as above; a piece is 8, 4 or 1 bytes.
            _ => unsafe { atomic8(at) }.store(now[0], Ordering::Release),
        }
        at += now.len() as u64;
        bytes = rest;
    }
}

/// Copies bytes as an engine that moves memory does: in no particular order, nothing in one piece. The ranges may
/// overlap.
///
/// # Safety
///
/// Both ranges are mapped, the destination writable. Others may access them meanwhile, but not through Rust
/// references.
pub(crate) unsafe fn copy(to: u64, from: u64, len: u64) {
    let source: *const u8 = ptr::with_exposed_provenance(from as usize);
    // SAFETY: the caller's. The memory lies outside of what Rust allocated, so a race with foreign code can mix up
    // the bytes that are copied and nothing else.
    unsafe {
        ptr::copy(
            source,
            ptr::with_exposed_provenance_mut(to as usize),
            len as usize,
        )
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_alignment_is_kept_and_nothing_is_left_over() {
        let mapping = Mapping::new(Source::Anonymous, 3 * PAGE, 2 << 20, None).unwrap();
        assert_eq!(mapping.base() % (2 << 20), 0);
        // SAFETY: the mapping is this test's alone.
        unsafe { write(mapping.base() + 3 * PAGE - 8, &[7; 8]) };
        let base = mapping.base();
        // What lies behind it is free again, so it can be had.
        let behind = Mapping::new(Source::Nothing, PAGE, PAGE, Some(base + 3 * PAGE)).unwrap();
        assert_eq!(behind.base(), base + 3 * PAGE);
        assert!(
            Mapping::new(Source::Nothing, PAGE, PAGE, Some(base)).is_err(),
            "a taken address is not given twice"
        );
    }

    #[test]
    fn bytes_of_any_alignment_come_back() {
        let mapping = Mapping::new(Source::Anonymous, PAGE, PAGE, None).unwrap();
        let bytes: Vec<u8> = (1..=41).collect();
        for start in 0..9 {
            for len in 0..=bytes.len() {
                let at = mapping.base() + start;
                let mut out = vec![0; len];
                // SAFETY: 50 bytes of a page that is this test's alone.
                unsafe { write(at, &bytes[..len]) };
                // SAFETY: as above.
                unsafe { read(at, &mut out) };
                assert_eq!(out, bytes[..len]);
            }
        }
    }

    #[test]
    fn a_hole_reads_as_zeros() {
        let file = memory_file(2 * PAGE).unwrap();
        let mapping = Mapping::new(Source::File(&file, 0), 2 * PAGE, PAGE, None).unwrap();
        // SAFETY: the mapping is this test's alone.
        unsafe { write(mapping.base() + PAGE, &[9; 16]) };
        punch_hole(&file, PAGE, PAGE).unwrap();
        let mut out = [1; 16];
        // SAFETY: as above.
        unsafe { read(mapping.base() + PAGE, &mut out) };
        assert_eq!(out, [0; 16]);
    }
}
