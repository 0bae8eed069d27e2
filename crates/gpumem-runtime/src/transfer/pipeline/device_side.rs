//! The device's side of the pipeline: one array, or several that are filled in one pass.

use crate::{device::AllocationRef, transfer::ArrayRef};
use gpumem_core::Backend;
use std::ops::Range;

/// Where the elements are that lie in memory of the library.
pub(in crate::transfer) enum DeviceSide<'a, B: Backend> {
    One(ArrayRef<'a, B>),
    /// In the order of their bytes, which do not overlap.
    Many(&'a [Piece<'a, B>]),
}

/// A whole array, whose bytes are contiguous, and where they lie in the run of all.
pub(in crate::transfer) struct Piece<'a, B: Backend> {
    pub(in crate::transfer) run: Range<usize>,
    pub(in crate::transfer) memory: &'a AllocationRef<B>,
}

/// Bytes that one memory gets.
pub(super) struct Share<'a, B: Backend> {
    pub(super) memory: &'a AllocationRef<B>,
    /// All that the memory gets of the transfer.
    pub(super) whole: Range<usize>,
    /// From here on in the memory.
    pub(super) at: usize,
    /// These bytes of the run of all.
    pub(super) run: Range<usize>,
}

// Whatever the backend is.
impl<B: Backend> Clone for DeviceSide<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Backend> Copy for DeviceSide<'_, B> {}

impl<'a, B: Backend> DeviceSide<'a, B> {
    /// What each memory gets of these bytes: of the one array's memory, or of the run of all.
    pub(super) fn shares(self, run: Range<usize>) -> impl Iterator<Item = Share<'a, B>> {
        let (one, many) = match self {
            Self::One(array) => (Some(array), Default::default()),
            Self::Many(pieces) => {
                let first = pieces.partition_point(|piece| piece.run.end <= run.start);
                (None, pieces.get(first..).unwrap_or_default())
            }
        };
        let all = run.clone();
        let one = one.map(|ArrayRef { memory, layout }| Share {
            memory,
            whole: layout.extent(),
            at: all.start,
            run: all,
        });
        let many = many.iter().map_while(move |Piece { run: whole, memory }| {
            let (from, to) = (run.start.max(whole.start), run.end.min(whole.end));
            let share = Share { memory, whole: 0..whole.len(), at: from - whole.start, run: from..to };
            (from < to).then_some(share)
        });
        one.into_iter().chain(many)
    }
}
