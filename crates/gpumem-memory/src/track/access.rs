//! What work says about the memory that it uses.

use super::Tracked;
use gpumem_core::{Backend, MemoryUse, MemoryUses, SubmissionId};
use gpumem_layout::layout::Layout;
use std::ops::Range;

/// A use of memory by work that is about to be enqueued.
#[derive(Debug, Clone)]
pub struct Access<'a, B: Backend> {
    pub memory: &'a Tracked<B>,
    /// Bytes of the allocation.
    pub extent: Range<usize>,
    pub write: bool,
    /// The elements, if they are known: an extent may have gaps.
    pub(super) elements: Option<&'a Layout>,
    /// One of the two of [`in_place`](Self::in_place).
    in_place: bool,
    /// Whether no later work reads what is written.
    pub(super) is_scratch: bool,
    /// The argument of a launch that begins with the address of the memory; [`NO_ARGUMENT`] for none.
    argument: u32,
}

const NO_ARGUMENT: u32 = u32::MAX;

impl<'a, B: Backend> Access<'a, B> {
    #[inline]
    pub fn new(memory: &'a Tracked<B>, extent: Range<usize>, write: bool) -> Self {
        Self {
            memory,
            extent,
            write,
            elements: None,
            in_place: false,
            is_scratch: false,
            argument: NO_ARGUMENT,
        }
    }

    #[inline]
    pub fn read(memory: &'a Tracked<B>, extent: Range<usize>) -> Self {
        Self::new(memory, extent, false)
    }

    #[inline]
    pub fn write(memory: &'a Tracked<B>, extent: Range<usize>) -> Self {
        Self::new(memory, extent, true)
    }

    /// Says of which elements the extent is, so that two arrays whose elements take turns do not overlap.
    #[inline]
    pub fn of_elements(self, elements: &'a Layout) -> Self {
        Self { elements: Some(elements), ..self }
    }

    /// The use of memory of which no later work reads what this work has written there.
    #[inline]
    pub fn scratch(memory: &'a Tracked<B>, extent: Range<usize>) -> Self {
        Self { is_scratch: true, ..Self::new(memory, extent, true) }
    }

    /// Says which argument of a launch begins with the address of the memory, in this extent.
    #[inline]
    pub fn at_argument(self, argument: usize) -> Self {
        Self { argument: argument as u32, ..self }
    }

    /// The argument that [`at_argument`](Self::at_argument) has named.
    pub fn argument(&self) -> Option<usize> {
        (self.argument != NO_ARGUMENT).then_some(self.argument as usize)
    }

    /// The elements, if they are known.
    pub fn elements(&self) -> Option<&'a Layout> {
        self.elements
    }

    /// Makes the two accesses of work that reads an array and writes it, or part of it, in place: it is correct although one
    /// of the two lies in the other. They stay side by side in a list. No other access may overlap what they write.
    #[inline]
    pub fn in_place(memory: &'a Tracked<B>, read: Range<usize>, written: Range<usize>) -> [Self; 2] {
        let one = |extent, write| Self { in_place: true, ..Self::new(memory, extent, write) };
        [one(read, false), one(written, true)]
    }

    /// Whether this one and the next of a list are the two of one call of [`in_place`](Self::in_place).
    pub(super) fn is_in_place_with(&self, next: &Self) -> bool {
        self.in_place && next.in_place && !self.write && next.write && std::ptr::eq(self.memory, next.memory)
    }

    /// Whether the two may use the same bytes, and one writes them.
    pub(super) fn clashes_with(&self, other: &Self) -> bool {
        let (one, other_one) = (self.memory, other.memory);
        if !(self.write || other.write) {
            return false;
        }
        if one.id() == other_one.id() {
            return meet((&self.extent, self.elements), (&other.extent, other.elements));
        }
        // Two allocations share bytes only where foreign memory was wrapped twice.
        let bytes = |access: &Self| {
            let start = access.memory.address().saturating_add(access.extent.start as u64);
            start..start.saturating_add(access.extent.len() as u64)
        };
        !(one.is_owned() && other_one.is_owned()) && overlap(&bytes(self), &bytes(other))
    }
}

/// Bytes of an allocation, and of which elements they are, if these are known.
pub(super) type Part<'a> = (&'a Range<usize>, Option<&'a Layout>);

/// Whether two parts of an allocation may share a byte.
pub(super) fn meet((extent, elements): Part<'_>, (other, others): Part<'_>) -> bool {
    overlap(extent, other)
        && match (elements, others) {
            (Some(elements), Some(others)) => elements.overlaps(others),
            _ => true,
        }
}

fn overlap<T: Ord + Copy>(one: &Range<T>, other: &Range<T>) -> bool {
    one.start.max(other.start) < one.end.min(other.end)
}

/// The uses of work, in the form for backends.
pub struct Uses<'a, 'b, B: Backend> {
    pub accesses: &'a [Access<'b, B>],
    pub submission: SubmissionId,
}

impl<B: Backend> MemoryUses for Uses<'_, '_, B> {
    fn each(&self, found: &mut dyn FnMut(&MemoryUse)) {
        for Access { memory, extent, write, .. } in self.accesses {
            found(&memory.used(extent, *write));
        }
    }

    fn submission(&self) -> Option<SubmissionId> {
        Some(self.submission)
    }
}

impl<B: Backend> std::fmt::Debug for Uses<'_, '_, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Uses").finish_non_exhaustive()
    }
}
