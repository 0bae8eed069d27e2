//! Some rows of an array: a range of positions of its first axis.

use crate::{CudaArrayInterface, layout::Layout};
use gpumem_core::{Element, ErrorKind, LayoutError};
use ndarray::{ArrayBase, Axis, Dimension, RawData, Slice};
use std::ops::Range;

/// The number of rows.
///
/// # Errors
/// Returns [`LayoutError::NoSuchAxis`] for an array without axes.
pub(crate) fn row_count(layout: &Layout) -> Result<usize, LayoutError> {
    layout.shape().first().copied().ok_or(LayoutError::NoSuchAxis { axis: 0, rank: 0 })
}

/// The layout of some rows.
///
/// # Errors
/// Returns [`LayoutError::NoSuchAxis`] for an array without axes, and [`LayoutError::IndexOutOfBounds`] for rows that it
/// does not have.
pub(crate) fn of_layout(layout: &Layout, rows: Range<usize>) -> Result<Layout, LayoutError> {
    let (before_end, _) = layout.split_at(0, rows.end)?;
    before_end.split_at(0, rows.start).map(|(_, rows)| rows)
}

/// Makes a view one of some of its rows.
///
/// # Errors
/// As for [`of_layout`].
pub(crate) fn narrow<S: RawData, D: Dimension>(
    view: &mut ArrayBase<S, D>,
    rows: Range<usize>,
) -> Result<(), LayoutError> {
    let length = view.shape().first().copied().ok_or(LayoutError::NoSuchAxis { axis: 0, rank: 0 })?;
    for index in [rows.end, rows.start] {
        if index > length {
            let index = isize::try_from(index).unwrap_or(isize::MAX);
            return Err(LayoutError::IndexOutOfBounds { index, axis: 0, length });
        }
    }
    view.slice_axis_inplace(Axis(0), Slice::from(rows));
    Ok(())
}

/// The descriptor of some rows of what a descriptor describes.
///
/// # Errors
/// As for [`CudaArrayInterface::validate`] and [`of_layout`].
pub(crate) fn of_descriptor<T: Element>(
    all: &CudaArrayInterface,
    rows: Range<usize>,
) -> Result<CudaArrayInterface, ErrorKind> {
    let layout = all.elements::<T>()?.layout;
    let part = of_layout(&layout, rows)?;
    // Both count from the lowest byte, and lie in the described memory.
    let forward = (part.offset() as u64).wrapping_sub(layout.offset() as u64);
    let mut descriptor = all.clone();
    descriptor.shape = part.shape().iter().map(|length| *length as i64).collect();
    descriptor.strides = Some(part.strides().iter().map(|stride| *stride as i64).collect());
    descriptor.data.0 = all.data.0.wrapping_add(forward);
    Ok(descriptor)
}
