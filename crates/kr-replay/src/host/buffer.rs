//! Device memory as an application holds it.

use std::sync::Arc;

use bytemuck::{NoUninit, Pod};
use kr_device::host::HostBlock;
use kr_device::{Block, DeviceError};
use kr_tracker::Freed;
use kr_types::DeviceAddr;

use super::runtime::Inner;
use crate::ParkedFree;

/// Why an access to a buffer, or its allocation, failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The device refused. Nothing was changed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The allocation has no bytes.
    #[error("a buffer needs at least one byte")]
    Empty,
    /// The access reaches past the buffer's end. Nothing was accessed.
    #[error("{len} bytes at offset {offset} reach past the end of a buffer of {buffer} bytes")]
    OutOfBounds {
        /// Where the access starts, in bytes.
        offset: u64,
        /// How long it is, in bytes.
        len: u64,
        /// How long the buffer is, in bytes.
        buffer: u64,
    },
}

/// Device memory of an application. Dropping it frees it, like `hipFree`, but without waiting.
pub struct HostBuffer {
    runtime: Arc<Inner>,
    /// `None` only while being dropped.
    block: Option<HostBlock>,
    addr: DeviceAddr,
    len: u64,
}

impl HostBuffer {
    pub(super) fn new(runtime: Arc<Inner>, block: HostBlock) -> Self {
        Self {
            runtime,
            addr: block.addr(),
            len: block.len_bytes().get(),
            block: Some(block),
        }
    }

    /// First byte, for kernel arguments.
    pub fn addr(&self) -> DeviceAddr {
        self.addr
    }

    /// Length in bytes.
    pub fn len_bytes(&self) -> u64 {
        self.len
    }

    /// Writes `values` to the start of the buffer.
    ///
    /// # Errors
    ///
    /// [`HostError::OutOfBounds`].
    pub fn write<T: NoUninit>(&self, values: &[T]) -> Result<(), HostError> {
        self.write_at(0, values)
    }

    /// Writes `values`, starting `offset` bytes into the buffer.
    ///
    /// # Errors
    ///
    /// [`HostError::OutOfBounds`].
    pub fn write_at<T: NoUninit>(&self, offset: u64, values: &[T]) -> Result<(), HostError> {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        let addr = self.check(offset, bytes.len() as u64)?;
        let _beside = self.runtime.beside();
        Ok(self.runtime.device.write_bytes(addr, bytes)?)
    }

    /// Reads the whole buffer; bytes behind the last whole value are left out.
    ///
    /// # Errors
    ///
    /// [`HostError::Device`].
    pub fn read<T: Pod>(&self) -> Result<Vec<T>, HostError> {
        let count = self.len / size_of::<T>().max(1) as u64;
        self.read_at(0, usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// Reads `count` values, starting `offset` bytes into the buffer.
    ///
    /// # Errors
    ///
    /// [`HostError::OutOfBounds`].
    pub fn read_at<T: Pod>(&self, offset: u64, count: usize) -> Result<Vec<T>, HostError> {
        let addr = self.check(offset, count.saturating_mul(size_of::<T>()) as u64)?;
        let mut values = vec![T::zeroed(); count];
        let _beside = self.runtime.beside();
        let bytes = bytemuck::cast_slice_mut(&mut values);
        self.runtime.device.read_bytes(addr, bytes)?;
        Ok(values)
    }

    fn check(&self, offset: u64, len: u64) -> Result<DeviceAddr, HostError> {
        let inside = offset.checked_add(len).is_some_and(|end| end <= self.len);
        match self.addr.checked_add(offset) {
            Some(addr) if inside => Ok(addr),
            _ => Err(HostError::OutOfBounds {
                offset,
                len,
                buffer: self.len,
            }),
        }
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        let Some(block) = self.block.take() else {
            return;
        };
        let free: ParkedFree = Box::new(move || drop(block));
        match self.runtime.tracker.free(self.addr, free) {
            Freed::Release(release) => (release.into_token())(),
            Freed::Parked => {}
            // Not tracked: it could not be recorded. (`Again` does not occur: a buffer is dropped
            // once.)
            Freed::Unknown(free) | Freed::Again(free) => free(),
        }
    }
}

impl std::fmt::Debug for HostBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HostBuffer({} bytes at {})", self.len, self.addr)
    }
}
