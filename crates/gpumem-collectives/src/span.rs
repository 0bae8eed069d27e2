//! Bytes of memory that carry their bounds.
//!
//! Engines move bytes between arrays of different ranks. What moves them takes spans, never an address and a length: a part
//! of a span is checked against the whole, and only two spans of one length make a copy. So a rank whose numbers are wrong
//! ends in an error, whatever comparison before it was forgotten.

use gpumem_core::Element;
use std::ptr::{with_exposed_provenance, with_exposed_provenance_mut};

/// Bytes in memory of this process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Span {
    address: usize,
    bytes: usize,
}

impl Span {
    /// Makes a span of memory whose address is exposed.
    ///
    /// # Safety
    /// There are so many bytes from the address on, in one allocation. Functions that access them say until when.
    pub(crate) unsafe fn new(address: usize, bytes: usize) -> Self {
        Self { address, bytes }
    }

    /// Number of bytes.
    pub(crate) fn len(self) -> usize {
        self.bytes
    }

    pub(crate) fn is_empty(self) -> bool {
        self.bytes == 0
    }

    /// The address, to compare spans by.
    pub(crate) fn address(self) -> usize {
        self.address
    }

    pub(crate) fn overlaps(self, other: Self) -> bool {
        let (end, other_end) = (self.address + self.bytes, other.address + other.bytes);
        !self.is_empty() && !other.is_empty() && self.address < other_end && other.address < end
    }

    /// The bytes from `start` on, if so many are there.
    pub(crate) fn part(self, start: usize, bytes: usize) -> Option<Self> {
        let end = start.checked_add(bytes)?;
        (end <= self.bytes).then(|| Self { address: self.address + start, bytes })
    }

    /// Cuts the span into parts of these lengths, if they add up to its own.
    pub(crate) fn cut(self, lengths: impl IntoIterator<Item = usize>) -> Option<Vec<Self>> {
        let mut start = 0;
        let mut parts = Vec::new();
        for bytes in lengths {
            parts.push(self.part(start, bytes)?);
            start += bytes;
        }
        (start == self.bytes).then_some(parts)
    }

    /// Cuts the span into so many parts of one length.
    pub(crate) fn blocks(self, number: usize) -> Option<Vec<Self>> {
        let bytes = self.bytes.checked_div(number)?;
        self.cut(std::iter::repeat_n(bytes, number))
    }

    /// A copy to a span of the same length.
    pub(crate) fn to(self, destination: Self) -> Option<CopySpans> {
        (self.bytes == destination.bytes).then_some(CopySpans { source: self, destination })
    }

    /// The elements, to be read.
    ///
    /// # Safety
    /// The memory is valid, aligned for `T`, and not written for `'a`.
    pub(crate) unsafe fn as_slice<'a, T: Element>(self) -> &'a [T] {
        match self.bytes / size_of::<T>().max(1) {
            0 => &[],
            // SAFETY: that many elements are within the span; else the caller's promise. Elements are plain data.
            count => unsafe { std::slice::from_raw_parts(with_exposed_provenance(self.address), count) },
        }
    }

    /// Copies the bytes to `to`. `false`, and nothing is copied, if the lengths differ.
    ///
    /// # Safety
    /// The memory is valid, and not written meanwhile.
    #[must_use]
    pub(crate) unsafe fn copy_to_slice(self, to: &mut [u8]) -> bool {
        if self.bytes != to.len() {
            return false;
        }
        if !to.is_empty() {
            let from = with_exposed_provenance::<u8>(self.address);
            // SAFETY: both have so many bytes, and the slice is borrowed alone.
            unsafe { from.copy_to_nonoverlapping(to.as_mut_ptr(), to.len()) };
        }
        true
    }

    /// Writes the elements from the one of this number on, as many as the span has room for.
    ///
    /// # Safety
    /// The memory is valid and aligned for `T`, and no other code uses it meanwhile.
    pub(crate) unsafe fn copy_from_slice<T: Element>(self, start: usize, from: &[T]) {
        let room = (self.bytes / size_of::<T>().max(1)).saturating_sub(start);
        let count = from.len().min(room);
        if count > 0 {
            let to = with_exposed_provenance_mut::<T>(self.address).wrapping_add(start);
            // SAFETY: so many elements are within the span, and no reference to them is left (the caller's promise).
            unsafe { from.as_ptr().copy_to_nonoverlapping(to, count) };
        }
    }
}

/// Two spans of one length.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CopySpans {
    source: Span,
    destination: Span,
}

impl CopySpans {
    /// Copies the bytes.
    ///
    /// # Safety
    /// Both spans are valid, and no other code uses them in conflict meanwhile.
    pub(crate) unsafe fn copy(self) {
        let Self { source, destination } = self;
        if source.address == destination.address || source.is_empty() {
            return;
        }
        let from = with_exposed_provenance::<u8>(source.address);
        let to = with_exposed_provenance_mut::<u8>(destination.address);
        // SAFETY: both have so many bytes, and are valid (the caller's promise).
        unsafe { from.copy_to(to, source.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(bytes: &mut [u8]) -> Span {
        // SAFETY: the bytes are there; each test keeps them.
        unsafe { Span::new(bytes.as_mut_ptr().expose_provenance(), bytes.len()) }
    }

    #[test]
    fn parts_are_within_the_whole() {
        let mut memory = [0_u8; 8];
        let all = span(&mut memory);
        assert_eq!(all.part(2, 6).unwrap().len(), 6);
        assert_eq!(all.part(2, 7), None);
        assert_eq!(all.part(9, 0), None);
        assert_eq!(all.part(usize::MAX, 2), None);
        assert_eq!(all.cut([3, 0, 5]).unwrap().iter().map(|part| part.len()).collect::<Vec<_>>(), [3, 0, 5]);
        assert_eq!(all.cut([3, 4]), None, "a byte is left");
        assert_eq!(all.cut([3, usize::MAX]), None);
        assert_eq!(all.blocks(4).unwrap().len(), 4);
        assert_eq!((all.blocks(3), all.blocks(0)), (None, None));
        let starts: Vec<usize> =
            all.cut([3, 0, 5]).unwrap().iter().map(|part| part.address() - all.address()).collect();
        assert_eq!(starts, [0, 3, 3]);
        assert!(all.part(8, 0).unwrap().is_empty() && !all.is_empty());
    }

    #[test]
    fn spans_overlap_that_share_a_byte() {
        let mut memory = [0_u8; 5];
        let all = span(&mut memory);
        let places: Vec<(usize, usize)> =
            (0..=5).flat_map(|start| (0..=5 - start).map(move |bytes| (start, bytes))).collect();
        for (start, bytes) in &places {
            for (other_start, other_bytes) in &places {
                let (one, other) =
                    (all.part(*start, *bytes).unwrap(), all.part(*other_start, *other_bytes).unwrap());
                let shares =
                    (*start..start + bytes).any(|at| (*other_start..other_start + other_bytes).contains(&at));
                assert_eq!(one.overlaps(other), shares, "{start}, {bytes}, {other_start}, {other_bytes}");
            }
        }
    }

    #[test]
    fn spans_of_different_lengths_do_not_copy() {
        let (mut from, mut to) = ([1_u8, 2, 3, 4], [0_u8; 4]);
        let (source, destination) = (span(&mut from), span(&mut to));
        assert!(source.to(destination.part(0, 3).unwrap()).is_none());
        assert!(source.part(0, 3).unwrap().to(destination).is_none());
        // SAFETY: both arrays are alive, and used by nothing else.
        unsafe { source.to(destination).unwrap().copy() };
        assert_eq!(to, from);
        // SAFETY: as above.
        assert!(!unsafe { source.copy_to_slice(&mut to[..3]) });
    }
}
