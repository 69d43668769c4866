//! Device addresses. An address is a number that only a backend can turn into memory.

use core::fmt;
use core::num::NonZeroU64;

/// An address in the address space of GPU agents, in bytes.
///
/// It is never a host pointer in the eyes of this workspace, even on runtimes where the two
/// coincide: nothing but a backend dereferences it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct DeviceAddr(pub u64);

impl DeviceAddr {
    /// The null address, which no allocation has.
    pub const NULL: Self = Self(0);

    /// True for address 0.
    pub const fn is_null(self) -> bool {
        self.0 == 0
    }

    /// The address `bytes` further on, or `None` past the end of the address space.
    pub const fn checked_add(self, bytes: u64) -> Option<Self> {
        match self.0.checked_add(bytes) {
            Some(addr) => Some(Self(addr)),
            None => None,
        }
    }

    /// Bytes from `base` up to this address, or `None` if this address lies below `base`.
    pub const fn offset_from(self, base: Self) -> Option<u64> {
        self.0.checked_sub(base.0)
    }
}

impl fmt::Debug for DeviceAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::Display for DeviceAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// Why `(base, length)` does not describe a piece of device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RangeError {
    /// The length is zero.
    #[error("the range at {base} is empty; leave it out instead")]
    Empty {
        /// Where the range was said to start.
        base: DeviceAddr,
    },
    /// The base is the null address.
    #[error("a range of {len} bytes starts at the null address")]
    Null {
        /// How long it was said to be, in bytes.
        len: u64,
    },
    /// Base plus length passes the end of the 64-bit address space.
    #[error("the range at {base} of {len} bytes runs past the end of the address space")]
    Wraps {
        /// Where the range was said to start.
        base: DeviceAddr,
        /// How long it was said to be, in bytes.
        len: u64,
    },
}

/// The one place where a base and a length are checked; `Region` and `Extent` are built on it.
pub(crate) const fn checked_range(base: DeviceAddr, len: u64) -> Result<NonZeroU64, RangeError> {
    let Some(nonzero) = NonZeroU64::new(len) else {
        return Err(RangeError::Empty { base });
    };
    if base.is_null() {
        return Err(RangeError::Null { len });
    }
    if base.checked_add(len).is_none() {
        return Err(RangeError::Wraps { base, len });
    }
    Ok(nonzero)
}
