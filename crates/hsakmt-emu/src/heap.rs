//! The memory of one node: a sparse file, and which parts of it are free.
//!
//! Invariants
//! - Free ranges are disjoint, not empty, and no two touch.
//! - What is free reads as zeros: a range is punched out of the file before it becomes free again.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;

use parking_lot::Mutex;

use crate::host::{self, PAGE};

/// Memory of a node.
#[derive(Debug)]
pub(crate) struct Heap {
    file: File,
    /// Offset and length of the free ranges.
    free: Mutex<BTreeMap<u64, u64>>,
}

impl Heap {
    /// A node with `len` bytes.
    pub(crate) fn new(len: u64) -> io::Result<Self> {
        Ok(Self {
            file: host::memory_file(len)?,
            free: Mutex::new(BTreeMap::from([(0, len)])),
        })
    }

    /// The file that holds the bytes.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Bytes that are free, in however many pieces.
    pub(crate) fn free_bytes(&self) -> u64 {
        self.free.lock().values().sum()
    }

    /// Takes `len` bytes in one piece, from the lowest offset that has them.
    pub(crate) fn take(&self, len: u64) -> Option<u64> {
        let len = len.next_multiple_of(PAGE);
        let mut free = self.free.lock();
        let (offset, had) = free
            .iter()
            .map(|(&offset, &had)| (offset, had))
            .find(|&(_, had)| had >= len)?;
        free.remove(&offset);
        if had > len {
            free.insert(offset + len, had - len);
        }
        Some(offset)
    }

    /// Gives back what [`take`](Self::take) gave out.
    pub(crate) fn give_back(&self, offset: u64, len: u64) {
        let mut len = len.next_multiple_of(PAGE);
        if host::punch_hole(&self.file, offset, len).is_err() {
            // A range that can't be zeroed is lost rather than handed out with old bytes in it.
            return;
        }
        let mut start = offset;
        let mut free = self.free.lock();
        if let Some(behind) = free.remove(&(offset + len)) {
            len += behind;
        }
        if let Some((&before, &had)) = free.range(..offset).next_back()
            && before + had == offset
        {
            start = before;
            len += had;
        }
        free.insert(start, len);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Ranges that are out never overlap, and once all are back the heap is one piece again.
        #[test]
        fn ranges_are_disjoint_and_come_back(steps in prop::collection::vec((0usize..8, 1u64..9), 1..60)) {
            let heap = Heap::new(32 * PAGE).unwrap();
            let mut out: Vec<(u64, u64)> = Vec::new();
            for (which, pages) in steps {
                if which < 3 && !out.is_empty() {
                    let (offset, len) = out.swap_remove(which % out.len());
                    heap.give_back(offset, len);
                } else if let Some(offset) = heap.take(pages * PAGE) {
                    let len = pages * PAGE;
                    prop_assert!(offset + len <= 32 * PAGE);
                    prop_assert!(out.iter().all(|&(start, had)| offset + len <= start || start + had <= offset));
                    out.push((offset, len));
                }
                let taken: u64 = out.iter().map(|&(_, len)| len).sum();
                prop_assert_eq!(heap.free_bytes(), 32 * PAGE - taken);
            }
            for (offset, len) in out {
                heap.give_back(offset, len);
            }
            prop_assert_eq!(heap.take(32 * PAGE), Some(0));
        }
    }
}
