//! The reference allocator: an exact best fit over two balanced trees, O(log n).

use std::collections::{BTreeMap, BTreeSet};

/// Best fit with coalescing, over one range of offsets.
#[derive(Debug, Default)]
pub(super) struct BestFit {
    /// Free blocks by (length, start).
    by_len: BTreeSet<(u64, u64)>,
    /// Free blocks: start to length.
    by_start: BTreeMap<u64, u64>,
}

const GRANULE: u64 = 256;

/// Bytes of the blocks that are made of a request.
pub(super) fn rounded(bytes: u64) -> u64 {
    bytes.next_multiple_of(GRANULE)
}

impl BestFit {
    pub(super) fn new(len: u64) -> Self {
        let mut new = Self::default();
        new.insert(0, len);
        new
    }

    pub(super) fn insert(&mut self, start: u64, len: u64) {
        self.by_len.insert((len, start));
        self.by_start.insert(start, len);
    }

    pub(super) fn remove(&mut self, start: u64, len: u64) {
        self.by_len.remove(&(len, start));
        self.by_start.remove(&start);
    }

    /// The smallest free block that fits, at the lowest address.
    pub(super) fn allocate(&mut self, bytes: u64) -> Option<u64> {
        let bytes = rounded(bytes);
        let (len, start) = *self.by_len.range((bytes, 0)..).next()?;
        self.remove(start, len);
        if len > bytes {
            self.insert(start + bytes, len - bytes);
        }
        Some(start)
    }

    pub(super) fn free(&mut self, mut start: u64, bytes: u64) {
        let mut len = rounded(bytes);
        if let Some((before, before_len)) =
            self.by_start.range(..start).next_back().map(|(at, len)| (*at, *len))
            && before + before_len == start
        {
            self.remove(before, before_len);
            (start, len) = (before, before_len + len);
        }
        if let Some(after_len) = self.by_start.get(&(start + len)).copied() {
            self.remove(start + len, after_len);
            len += after_len;
        }
        self.insert(start, len);
    }
}
