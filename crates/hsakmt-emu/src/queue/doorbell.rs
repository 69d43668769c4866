//! A doorbell: a word that producers store to, in a page of its own.
//!
//! What is stored is not used. Several producers ring out of order and a look sees only the last store, so an earlier
//! index would strand later packets; the write index and the packets' headers say what there is. But a packet is only
//! taken after somebody rang, so that a program which forgets to ring waits here as it would on hardware.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::error::Error;
use crate::host;
use crate::space::{Region, Space};

/// What lies in the word until somebody rings. No index gets that far.
const SILENT: u64 = u64::MAX - 1;

/// One queue's doorbell.
#[derive(Debug)]
pub(super) struct Doorbell {
    space: Arc<Space>,
    page: Arc<Region>,
}

impl Doorbell {
    pub(super) fn new(space: &Arc<Space>) -> Result<Self, Error> {
        let doorbell = Self {
            space: space.clone(),
            page: space.own(8)?,
        };
        doorbell.rang();
        Ok(doorbell)
    }

    /// Where producers store.
    pub(super) fn address(&self) -> u64 {
        self.page.base()
    }

    /// Whether somebody rang since the last call.
    pub(super) fn rang(&self) -> bool {
        // SAFETY: the page is ours, mapped and writable until `self` is dropped, and 8 bytes at its start are aligned.
        let word = unsafe { host::atomic64(self.page.base()) };
        word.load(Ordering::Relaxed) != SILENT && word.swap(SILENT, Ordering::Acquire) != SILENT
    }
}

impl Drop for Doorbell {
    fn drop(&mut self) {
        self.space.disown(&self.page);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_heard_once() {
        let doorbell = Doorbell::new(&Arc::new(Space::new(1, 1 << 20, 1 << 20).unwrap())).unwrap();
        assert!(!doorbell.rang());
        // SAFETY: the page lives as long as `doorbell`.
        let word = unsafe { host::atomic64(doorbell.address()) };
        word.store(0, Ordering::Release);
        assert!(doorbell.rang());
        assert!(!doorbell.rang());
    }
}
