//! Copies between any two strided layouts.
//!
//! A plan is made once, when the copy is enqueued: axes of length one are dropped, reversed destinations are walked
//! forwards, and axes that are contiguous on both sides are merged. The contiguous innermost bytes become the item. The
//! result is a loop over few axes with a fixed item size, tiled where the two sides disagree on the fastest axis.

use super::{copy_run, pointer, transpose::transpose};
use gpumem_core::{Axis, Space, StridedCopy, fewest_axes};
use smallvec::SmallVec;
use std::ops::Range;

/// How a strided copy will be done.
#[derive(Debug, Clone)]
pub(crate) struct StridedPlan {
    source: u64,
    destination: u64,
    /// Bytes that are contiguous on both sides.
    item: usize,
    /// Outermost first; destination strides are positive and fall.
    axes: SmallVec<[Axis; 6]>,
    /// Bytes that each side spans before and after its address.
    source_span: Span,
    destination_span: Span,
}

/// First byte and length of the range that one side reaches.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub(crate) start: u64,
    pub(crate) bytes: usize,
    pub(crate) space: Space,
}

impl StridedPlan {
    /// Plans a copy. `Ok(None)` if it has no elements.
    /// Returns why the copy makes no sense.
    pub(crate) fn new(copy: &StridedCopy) -> Result<Option<Self>, &'static str> {
        if copy.item == 0 || copy.axes.iter().any(|(length, ..)| *length == 0) {
            return Ok(None);
        }
        let [source, destination] =
            copy.spans().ok_or("the copy reaches over the end of the address space")?;
        let span = |bytes: Range<u64>, space| Span {
            start: bytes.start,
            bytes: (bytes.end - bytes.start) as usize,
            space,
        };
        if copy.axes.iter().any(|(length, _, destination)| *length > 1 && *destination == 0) {
            return Err("elements of the destination overlap each other");
        }
        let (mut item, mut axes) = (copy.item, SmallVec::<[Axis; 6]>::new());
        axes.extend(copy.axes.iter().map(|&(len, src, dst)| Axis { len, src, dst }));
        let (kept, begin) = fewest_axes(&mut item, &mut axes);
        axes.truncate(kept);
        let plan = Self {
            // The spans fit, so these offsets do.
            source: copy.source.0.wrapping_add_signed(begin[0] as i64),
            destination: copy.destination.0.wrapping_add_signed(begin[1] as i64),
            item,
            axes,
            source_span: span(source, copy.source.1),
            destination_span: span(destination, copy.destination.1),
        };
        Ok(Some(plan))
    }

    pub(crate) fn source_span(&self) -> Span {
        self.source_span
    }

    pub(crate) fn destination_span(&self) -> Span {
        self.destination_span
    }

    /// All bytes that the copy moves.
    pub(crate) fn total_bytes(&self) -> usize {
        self.axes.iter().fold(self.item, |bytes, axis| bytes.saturating_mul(axis.len))
    }

    /// Number of parts that the copy can be torn into.
    pub(crate) fn units(&self) -> usize {
        self.axes.first().map_or(self.item, |axis| axis.len)
    }

    /// Calls `each` with the addresses of every run of bytes that the copy writes.
    pub(crate) fn runs(&self, mut each: impl FnMut(Range<u64>)) {
        // Axes that are contiguous in the destination alone make one run too.
        let (mut run, mut axes) = (self.item, &self.axes[..]);
        while let [outer @ .., axis] = axes
            && axis.dst == run as isize
        {
            run *= axis.len;
            axes = outer;
        }
        let mut index: SmallVec<[usize; 6]> = SmallVec::from_elem(0, axes.len());
        loop {
            let offset: isize = index.iter().zip(axes).map(|(index, axis)| *index as isize * axis.dst).sum();
            let start = self.destination.wrapping_add_signed(offset as i64);
            each(start..start + run as u64);
            let next = index.iter_mut().zip(axes).rev().find_map(|(index, axis)| {
                *index = (*index + 1) % axis.len;
                (*index > 0).then_some(())
            });
            if next.is_none() {
                return;
            }
        }
    }

    /// Copies the units of `part`.
    ///
    /// # Safety
    /// Both sides are valid for the whole copy, which obeys the rules of [`StridedCopy`]; `part` lies within
    /// [`units`](Self::units).
    pub(crate) unsafe fn run(&self, part: Range<usize>) {
        if part.is_empty() {
            return;
        }
        let (source, destination) = (pointer(self.source), pointer(self.destination));
        let Some((outer, rest)) = self.axes.split_first() else {
            // SAFETY: a contiguous run of `item` bytes on both sides, disjoint.
            unsafe {
                copy_run(source.add(part.start), destination.add(part.start), part.len());
            }
            return;
        };
        let mut axes: SmallVec<[Axis; 6]> = SmallVec::with_capacity(self.axes.len());
        axes.push(Axis { len: part.len(), ..*outer });
        axes.extend_from_slice(rest);
        let first = part.start as isize;
        let source = source.wrapping_offset(first * outer.src);
        let destination = destination.wrapping_offset(first * outer.dst);
        // SAFETY: a part of the copy; each arm moves items of its own size.
        unsafe {
            match self.item {
                1 => typed::<1>(source, destination, &axes),
                2 => typed::<2>(source, destination, &axes),
                4 => typed::<4>(source, destination, &axes),
                8 => typed::<8>(source, destination, &axes),
                12 => typed::<12>(source, destination, &axes),
                16 => typed::<16>(source, destination, &axes),
                bytes => each_row(source, destination, &axes, |source, destination, axis| {
                    runs(source, destination, axis, bytes);
                }),
            }
        }
    }
}

/// # Safety
/// As for [`StridedPlan::run`], with items of `N` bytes.
unsafe fn typed<const N: usize>(source: *const u8, destination: *mut u8, axes: &[Axis]) {
    // The axis along which the source lies closest. Where it is not the destination's, one side would jump with every
    // item; a tile of both axes lets each cache line be used whole.
    let closest = (0..axes.len())
        .filter(|index| axes[*index].src != 0)
        .min_by_key(|index| axes[*index].src.unsigned_abs());
    match closest {
        Some(across) if across + 1 < axes.len() => {
            let (inner, across_axis) = (axes[axes.len() - 1], axes[across]);
            let mut others: SmallVec<[Axis; 6]> = SmallVec::from_slice(axes);
            others.pop();
            others.remove(across);
            // One axis of length one stands for the tiles.
            others.push(Axis { len: 1, src: 0, dst: 0 });
            // SAFETY: every combination of the other axes with the two is an item of the copy.
            unsafe {
                each_row(source, destination, &others, |source, destination, _| {
                    transpose::<N>(source, destination, across_axis, inner);
                });
            }
        }
        // SAFETY: the caller's promise.
        _ => unsafe {
            each_row(source, destination, axes, |source, destination, axis| {
                row::<N>(source, destination, axis);
            });
        },
    }
}

/// Calls `body` for every index of all axes but the last, with that axis.
///
/// # Safety
/// As for [`StridedPlan::run`]; `axes` is not empty.
unsafe fn each_row(
    source: *const u8,
    destination: *mut u8,
    axes: &[Axis],
    mut body: impl FnMut(*const u8, *mut u8, Axis),
) {
    let Some((inner, outer)) = axes.split_last() else { return };
    let (mut source, mut destination) = (source, destination);
    let mut index: SmallVec<[usize; 6]> = SmallVec::from_elem(0, outer.len());
    loop {
        body(source, destination, *inner);
        let mut axis = outer.len();
        loop {
            let Some(next) = axis.checked_sub(1) else { return };
            axis = next;
            let Axis { len, src, dst } = outer[axis];
            index[axis] += 1;
            source = source.wrapping_offset(src);
            destination = destination.wrapping_offset(dst);
            if index[axis] < len {
                break;
            }
            index[axis] = 0;
            source = source.wrapping_offset(-src * len as isize);
            destination = destination.wrapping_offset(-dst * len as isize);
        }
    }
}

/// # Safety
/// The items of the axis are valid on both sides and do not overlap.
unsafe fn row<const N: usize>(source: *const u8, destination: *mut u8, axis: Axis) {
    let packed = axis.dst == N as isize;
    for index in 0..axis.len as isize {
        let to = if packed { index * N as isize } else { index * axis.dst };
        // SAFETY: an item of the axis; arrays of bytes have no alignment.
        unsafe {
            let value = source.wrapping_offset(index * axis.src).cast::<[u8; N]>().read();
            destination.wrapping_offset(to).cast::<[u8; N]>().write(value);
        }
    }
}

/// Copies items of any number of bytes along one axis.
///
/// # Safety
/// The items of the axis are valid on both sides and do not overlap.
pub(super) unsafe fn rows(source: *const u8, destination: *mut u8, axis: Axis, bytes: usize) {
    // SAFETY: the caller promises valid sides; each arm moves items of the size that it matches.
    unsafe {
        match bytes {
            1 => row::<1>(source, destination, axis),
            2 => row::<2>(source, destination, axis),
            4 => row::<4>(source, destination, axis),
            8 => row::<8>(source, destination, axis),
            12 => row::<12>(source, destination, axis),
            16 => row::<16>(source, destination, axis),
            bytes => runs(source, destination, axis, bytes),
        }
    }
}

/// # Safety
/// As for [`row`], with items of `bytes` bytes.
unsafe fn runs(source: *const u8, destination: *mut u8, axis: Axis, bytes: usize) {
    for index in 0..axis.len as isize {
        // SAFETY: an item of the axis.
        unsafe {
            copy_run(
                source.wrapping_offset(index * axis.src),
                destination.wrapping_offset(index * axis.dst),
                bytes,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(item: usize, axes: &[(usize, isize, isize)]) -> StridedPlan {
        let copy = StridedCopy {
            source: (1 << 20, Space::Host),
            destination: (1 << 21, Space::Host),
            item,
            axes: axes.to_vec(),
        };
        StridedPlan::new(&copy).unwrap().unwrap()
    }

    #[test]
    fn contiguous_axes_become_the_item() {
        let packed = plan(4, &[(2, 48, 48), (3, 16, 16), (4, 4, 4)]);
        assert_eq!((packed.item, packed.axes.len()), (96, 0));
        let rows = plan(4, &[(2, 96, 48), (3, 16, 16), (4, 4, 4)]);
        assert_eq!((rows.item, rows.axes.len()), (48, 1));
        // Fortran order on both sides, and both reversed: still one run.
        let reversed = plan(4, &[(4, -4, -4), (1, 7, 7), (3, 16, 16)]);
        assert_eq!((reversed.item, reversed.axes.len(), reversed.units()), (48, 0, 48));
        assert_eq!(reversed.source, (1 << 20) - 12);
    }

    #[test]
    fn transposes_keep_two_axes() {
        let transposed = plan(4, &[(3, 4, 20), (5, 12, 4)]);
        assert_eq!((transposed.item, transposed.axes.len(), transposed.total_bytes()), (4, 2, 60));
    }

    #[test]
    fn runs_are_the_bytes_that_are_written() {
        for (item, axes) in [
            (4, &[(2, 48, 48), (3, 16, 16), (4, 4, 4)][..]),
            (4, &[(3, 4, 20), (5, 12, 4)]),
            (2, &[(3, 4, -40), (5, 12, 4), (2, 100, 2)]),
            (8, &[]),
            (1, &[(7, 3, 2)]),
        ] {
            let mut expected = vec![1_i64 << 21];
            for (length, _, stride) in axes {
                let steps = 0..*length as i64;
                expected = expected
                    .iter()
                    .flat_map(|at| steps.clone().map(move |step| at + step * *stride as i64))
                    .collect();
            }
            let mut expected: Vec<u64> =
                expected.iter().flat_map(|at| *at as u64..*at as u64 + item as u64).collect();
            expected.sort_unstable();
            let mut found = Vec::new();
            plan(item, axes).runs(|run| found.extend(run));
            found.sort_unstable();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn nonsense_is_refused() {
        let copy = |axes: &[(usize, isize, isize)]| {
            let place = (64, Space::Host);
            StridedPlan::new(&StridedCopy { source: place, destination: place, item: 4, axes: axes.to_vec() })
        };
        assert!(copy(&[(2, 4, 0)]).is_err());
        assert!(copy(&[(usize::MAX, isize::MAX, 4)]).is_err());
        assert!(copy(&[(100, -4, 4)]).is_err());
        assert!(copy(&[(0, 4, 4)]).unwrap().is_none());
    }
}
