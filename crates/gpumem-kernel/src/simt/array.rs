//! Local arrays: memory of one work-item.

use crate::simt::{
    FaultKind, Indices,
    fault::raise,
    index::{outside, row_major},
};
use gpumem_core::Element;
use std::panic::Location;

/// An array of one work-item, of `LEN` elements in `N` axes; its indices are checked like those of other arrays. A plain
/// Rust array does as well.
#[derive(Debug, Clone, Copy)]
pub struct Local<T, const N: usize, const LEN: usize> {
    elements: [T; LEN],
    extents: [u32; N],
}

impl<T: Element, const N: usize, const LEN: usize> Local<T, N, LEN> {
    /// An array of zeros. Axes that have more than `LEN` elements in all are an index past the end.
    #[track_caller]
    pub fn zeroed(extents: [usize; N]) -> Self {
        let size = extents.iter().try_fold(1usize, |size, extent| size.checked_mul(*extent));
        let lengths = extents.map(|extent| u32::try_from(extent).ok());
        if size.is_none_or(|size| size > LEN) || lengths.contains(&None) {
            let (index, at) = (extents.to_vec(), Location::caller());
            raise(FaultKind::OutOfBounds { index, extents: vec![LEN], at });
            return Self { elements: [T::zeroed(); LEN], extents: [0; N] };
        }
        Self { elements: [T::zeroed(); LEN], extents: lengths.map(Option::unwrap_or_default) }
    }

    #[inline(always)]
    #[track_caller]
    fn linear(&self, at: [usize; N]) -> usize {
        row_major(at, &self.extents).unwrap_or_else(|| {
            outside(&at, &self.extents.map(|extent| extent as usize), Location::caller());
            LEN
        })
    }

    /// Reads an element.
    #[inline(always)]
    #[track_caller]
    pub fn get(&self, at: impl Indices<N>) -> T {
        self.elements.get(self.linear(at.positions())).copied().unwrap_or_else(T::zeroed)
    }

    /// Writes an element.
    #[inline(always)]
    #[track_caller]
    pub fn set(&mut self, at: impl Indices<N>, value: T) {
        let linear = self.linear(at.positions());
        if let Some(element) = self.elements.get_mut(linear) {
            *element = value;
        }
    }
}

/// The local array of a kernel written in Rust: `local::<f32>([4, 4])`. The extents of its `N` axes are those of the
/// nested Rust array that it holds, so that they may be constant parameters of a generic kernel.
#[derive(Debug, Clone, Copy)]
pub struct LocalArray<A, const N: usize>(pub(crate) A);
