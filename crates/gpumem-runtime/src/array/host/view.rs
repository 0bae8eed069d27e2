//! ndarray views of raw memory, with strides in bytes and of any sign.

use ndarray::{ArrayViewD, ArrayViewMutD, Axis, IxDyn, RawArrayView, RawArrayViewMut, ShapeBuilder};
use smallvec::SmallVec;

/// ndarray takes no negative strides where it takes pointers: the lowest address, strides without sign, and the axes
/// that must be turned afterwards.
fn upright<T>(
    first: *const u8,
    shape: &[usize],
    strides: &[isize],
) -> (*const T, ndarray::StrideShape<IxDyn>, SmallVec<[usize; 6]>) {
    let size = size_of::<T>() as isize;
    let mut lowest = first;
    let mut turned = SmallVec::new();
    let mut elements: SmallVec<[usize; 6]> = SmallVec::new();
    if shape.contains(&0) || size == 0 {
        // No byte is read or written. ndarray would take axes without a stride for overlapping ones.
        let nowhere = std::ptr::NonNull::<T>::dangling().as_ptr().cast_const();
        return (nowhere, IxDyn(shape).into(), turned);
    }
    for (axis, (len, stride)) in shape.iter().zip(strides).enumerate() {
        // Strides of axes that are never walked mean nothing.
        let stride = if *len <= 1 { 0 } else { *stride };
        if stride < 0 {
            lowest = lowest.wrapping_offset(stride * (*len as isize - 1));
            turned.push(axis);
        }
        elements.push((stride / size).unsigned_abs());
    }
    (lowest.cast::<T>(), IxDyn(shape).strides(IxDyn(&elements)), turned)
}

/// A view of elements of `T` in memory that is known by its address alone, for bindings of other languages: the element at
/// `[0, 0, ..]` is at `first`, and strides are in bytes and of any sign.
///
/// # Safety
/// Every element is aligned and valid for reads for `'a`; strides are multiples of the size of `T`; nothing
/// writes.
pub unsafe fn view_at<'a, T>(first: *const u8, shape: &[usize], strides: &[isize]) -> ArrayViewD<'a, T> {
    let (lowest, shape, turned) = upright::<T>(first, shape, strides);
    // SAFETY: the caller's promise; the lowest address and the strides without sign reach the same elements.
    let mut view = unsafe { RawArrayView::from_shape_ptr(shape, lowest).deref_into_view() };
    turned.into_iter().for_each(|axis| view.invert_axis(Axis(axis)));
    view
}

/// As [`view_at`], for writing.
///
/// # Safety
/// As for [`view_at`], valid for writes too; no other code reads or writes them, and no two elements overlap.
pub unsafe fn view_mut_at<'a, T>(first: *mut u8, shape: &[usize], strides: &[isize]) -> ArrayViewMutD<'a, T> {
    let (lowest, shape, turned) = upright::<T>(first.cast_const(), shape, strides);
    // SAFETY: as in `view_at`.
    let mut view = unsafe { RawArrayViewMut::from_shape_ptr(shape, lowest.cast_mut()).deref_into_view_mut() };
    turned.into_iter().for_each(|axis| view.invert_axis(Axis(axis)));
    view
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_of_any_sign() {
        let data: Vec<u32> = (0..24).collect();
        let first = data.as_ptr().wrapping_add(23).cast::<u8>();
        // SAFETY: 4 x 6 elements backwards from the last.
        let view = unsafe { view_at::<u32>(first, &[4, 6], &[-24, -4]) };
        assert_eq!(view.iter().copied().collect::<Vec<_>>(), (0..24).rev().collect::<Vec<_>>());
        // SAFETY: nothing is read.
        let empty = unsafe { view_at::<u32>(first, &[0, 6], &[-24, -4]) };
        assert_eq!(empty.shape(), [0, 6]);
        for shape in [[6, 0], [0, 6]] {
            // SAFETY: nothing is read or written.
            let empty = unsafe { view_mut_at::<u32>(first.cast_mut(), &shape, &[-24, -4]) };
            assert_eq!(empty.shape(), shape);
        }
    }
}
