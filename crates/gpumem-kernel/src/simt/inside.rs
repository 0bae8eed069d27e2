//! The work-items of a launch for which the compiler may assume more than for others.
//!
//! Most work-items of a launch stand well inside all arrays. Loops over those are compiled apart from the others: where no index
//! can be outside and neighbours lie side by side in memory, the compiler drops checks and vectorises.

use std::hint::assert_unchecked;

/// The distance from the edges of a view at which a work-item stands well inside: bodies often use the neighbours of their
/// element, and ask whether there are some.
const MARGIN: usize = 1;
/// Longer axes, which only views that repeat an element have, are left out: so no sum of an id and a distance wraps.
const LONGEST: usize = isize::MAX as usize;

/// The global ids along x, y and z of the work-items that stand inside all arguments.
#[derive(Debug, Clone, Copy)]
pub struct Inside {
    from: [usize; 3],
    to: [usize; 3],
}

impl Inside {
    /// All work-items.
    pub(crate) fn all() -> Self {
        Self { from: [0; 3], to: [usize::MAX; 3] }
    }

    /// Leaves all work-items out.
    pub(crate) fn none(&mut self) {
        self.to = [0; 3];
    }

    /// Leaves out those past the end of a packed array.
    pub(crate) fn below(&mut self, len: usize) {
        self.to[0] = self.to[0].min(len);
    }

    /// Leaves out those near or beyond an edge of a view, whose last axis is along x.
    pub(crate) fn within<const N: usize>(&mut self, extents: &[usize; N]) {
        for ((extent, from), to) in extents.iter().rev().zip(&mut self.from).zip(&mut self.to) {
            let end = if *extent <= LONGEST { extent.saturating_sub(MARGIN) } else { 0 };
            (*from, *to) = ((*from).max(MARGIN), (*to).min(end));
        }
    }

    /// Whether work-items with this id along an axis may be inside.
    #[inline(always)]
    pub(crate) fn has(&self, axis: usize, id: usize) -> bool {
        self.from[axis] <= id && id < self.to[axis]
    }

    /// Those of the ids `first` to `end` along x that may be inside, from and to which.
    #[inline(always)]
    pub(crate) fn along_x(&self, first: usize, end: usize) -> [usize; 2] {
        let to = self.to[0].clamp(first, end);
        [self.from[0].clamp(first, to), to]
    }

    /// Whether all work-items with the ids from `first` on, so many along each axis, are inside.
    #[inline(always)]
    pub(crate) fn has_all(&self, first: [usize; 3], sizes: [u32; 3]) -> bool {
        let along = |axis: usize| {
            self.from[axis] <= first[axis] && first[axis] + sizes[axis] as usize <= self.to[axis]
        };
        along(0) && along(1) && along(2)
    }
}

/// Tells the compiler what holds along an axis for the ids that [`Inside::within`] leaves, one condition at a time: it makes
/// little of several in one.
///
/// # Safety
/// The id is one of those.
#[inline(always)]
pub(crate) unsafe fn assume_within(id: usize, extent: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        assert_unchecked(extent <= LONGEST);
        assert_unchecked(id < extent);
        assert_unchecked(id >= MARGIN);
        assert_unchecked(id - MARGIN < extent);
        assert_unchecked(id + MARGIN < extent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simt::{Executor, Fault, Phases, View, ViewMut, WorkItemIds};
    use gpumem_core::{HostFunction, HostLaunch, KernelArguments, LaunchConfig};
    use std::sync::Arc;

    type Arguments = (View<u32, 2>, ViewMut<u32, 2>);

    /// The element, and those to the left and above where there are such.
    fn body(ids: &WorkItemIds<'_>, (from, to): &Arguments) {
        let (y, x) = (ids.global_id(1), ids.global_id(0));
        if y < from.extent(0) && x < from.extent(1) {
            let left = if x > 0 { from.get([y, x - 1]) } else { 0 };
            let above = if y > 0 { from.get([y - 1, x]) } else { 0 };
            to.set([y, x], from.get([y, x]) + 10 * left + 100 * above);
        }
    }

    fn phases(phases: &mut Phases<'_>, arguments: &Arguments) -> Result<(), Fault> {
        while phases.next_group() {
            phases.each_inside(arguments, &[4, 5], |item| body(item, arguments))?;
        }
        Ok(())
    }

    #[test]
    fn loops_inside_and_at_edges_give_the_same() {
        let executor = Executor::new(32, 0);
        // SAFETY: called with views of memory that nothing else uses, and each work-item has its own element.
        let functions: [HostFunction; 3] = unsafe {
            [
                executor.race_checks(true).flat_function(body),
                executor.flat_function(body),
                executor.shared_split_function(Arc::new(phases)),
            ]
        };
        // The first element, the extents and the strides, in elements of 8 rows of 9.
        for (first, extents, strides) in [
            (0usize, [8u64, 9], [9i64, 1]),
            (10, [6, 7], [9, 1]),
            (0, [8, 8], [1, 9]),
            (71, [8, 9], [-9, -1]),
            (0, [8, 9], [0, 1]),
            (0, [8, 5], [9, 2]),
            (0, [0, 9], [9, 1]),
            (0, [2, 2], [9, 1]),
        ]
        .into_iter()
        .take(if cfg!(miri) { 1 } else { 8 })
        {
            let found = functions.each_ref().map(|function| {
                let (mut from, mut to) = ((0..72).collect::<Vec<u32>>(), vec![0u32; 72]);
                let mut arguments = KernelArguments::new();
                for (memory, first, strides) in [(&mut from, first, strides), (&mut to, 0, [9i64, 1])] {
                    let start = memory.as_mut_ptr().expose_provenance() + 4 * first;
                    let strides = strides.map(|stride| (4 * stride) as u64);
                    let words = [start as u64, extents[0], extents[1], strides[0], strides[1]];
                    arguments.push_bytes(bytemuck::bytes_of(&words)).unwrap();
                }
                let dims = LaunchConfig { groups: [3, 4, 1], group_size: [4, 2, 1], shared_bytes: 0 };
                // SAFETY: the arguments are two views of memory of this test, within their bounds.
                unsafe { function.call(HostLaunch { dims, arguments: &arguments }) }.unwrap();
                to
            });
            assert_eq!(found[0], found[1], "{extents:?} {strides:?}");
            assert_eq!(found[0], found[2], "{extents:?} {strides:?}");
        }
    }

    #[test]
    fn edges_and_ends_are_left_out() {
        let mut inside = Inside::all();
        inside.below(100);
        inside.within(&[3, 10, 50]);
        assert!(!inside.has(0, 0) && inside.has(0, 1) && inside.has(0, 48) && !inside.has(0, 49));
        assert!(inside.has(1, 8) && !inside.has(1, 9) && inside.has(2, 1) && !inside.has(2, 2));
        assert_eq!(inside.along_x(0, 32), [1, 32]);
        assert_eq!(inside.along_x(32, 64), [32, 49]);
        assert_eq!(inside.along_x(64, 96), [64, 64]);
        assert!(inside.has_all([1, 1, 1], [48, 8, 1]) && !inside.has_all([1, 1, 1], [49, 8, 1]));
        assert!(!inside.has_all([0, 1, 1], [32, 8, 1]) && !inside.has_all([1, 1, 1], [32, 8, 2]));
    }

    #[test]
    fn short_and_endless_axes_have_no_inside() {
        for extent in [0, 1, 2, usize::MAX] {
            let mut inside = Inside::all();
            inside.within(&[extent]);
            let [from, to] = inside.along_x(0, 8);
            assert_eq!(from, to, "{extent}");
            assert!(!inside.has_all([1, 0, 0], [1, 1, 1]), "{extent}");
        }
        let mut inside = Inside::all();
        inside.none();
        assert_eq!(inside.along_x(4, 8), [4, 4]);
    }
}
