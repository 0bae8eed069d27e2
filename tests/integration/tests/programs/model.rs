//! The expected contents of a program's arrays.

use gpumem_core::Backend;
use gpumem_runtime::{DeviceArray, PinnedArray};
use ndarray::Ix1;
use std::ops::Range;

pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn word(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
    }

    /// A number below `end`; 0 where that is 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.word() as usize % end.max(1)
    }

    pub(crate) fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }

    pub(crate) fn words(&mut self, count: usize) -> Vec<u32> {
        (0..count).map(|_| self.word()).collect()
    }

    /// Elements of an array: mostly few, at times more than a block of a transfer.
    pub(crate) fn length(&mut self) -> usize {
        match self.below(16) {
            0 => self.below(3),
            1 if self.one_in(4) => 100_000 + self.below(100_000),
            2 if self.one_in(2) => 30_000 + self.below(50_000),
            _ => 1 + self.below(3000),
        }
    }

    pub(crate) fn range(&mut self, length: usize) -> Range<usize> {
        let (one, other) = (self.below(length + 1), self.below(length + 1));
        one.min(other)..one.max(other)
    }
}

/// An array, and its elements: `None` for those that failed work was to write.
pub(crate) struct Known<B: Backend> {
    pub(crate) array: DeviceArray<u32, Ix1, B>,
    pub(crate) model: Vec<Option<u32>>,
}

impl<B: Backend> Known<B> {
    /// The elements of a range, if all of them are there.
    pub(crate) fn whole(&self, range: Range<usize>) -> Option<Vec<u32>> {
        self.model[range].iter().copied().collect()
    }

    pub(crate) fn all(&self) -> Option<Vec<u32>> {
        self.whole(0..self.model.len())
    }

    pub(crate) fn write(&mut self, at: usize, elements: &[u32]) {
        let written = self.model[at..].iter_mut().zip(elements);
        written.for_each(|(known, element)| *known = Some(*element));
    }
}

/// An array of the host that a copy has filled, and its elements.
pub(crate) struct Pinned<B: Backend> {
    pub(crate) array: PinnedArray<u32, Ix1, B>,
    pub(crate) elements: Vec<u32>,
}
