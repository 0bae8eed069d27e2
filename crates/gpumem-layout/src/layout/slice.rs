//! Slicing and indexing.

use super::{Layout, Result, Shape, Strides};
use gpumem_core::LayoutError;
use ndarray::SliceInfoElem;

impl Layout {
    /// The part of the array that ndarray's `s![]` describes; pass `s![..].as_ref()`.
    ///
    /// As in ndarray, negative bounds count from the end; a range `a..b;-n` is the range `a..b`, walked backwards from
    /// its last element in steps of `n`; a range whose end lies before its start is empty; an index removes its axis
    /// and `NewAxis` inserts one.
    ///
    /// ```
    /// # use {gpumem_layout::layout::{Layout, Order}, ndarray::{s, NewAxis}};
    /// let matrix = Layout::packed(&[3, 10], 4, Order::C)?;
    /// let part = matrix.slice(s![1, NewAxis, 2..9;-3].as_ref())?;
    /// assert_eq!(part.shape(), [1, 3]); // columns 8, 5, 2
    /// assert_eq!(part.strides()[1], -12);
    /// assert_eq!(part.offset(), 40 + 8 * 4);
    /// # Ok::<(), gpumem_core::LayoutError>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`LayoutError::RankMismatch`] unless there is one index or range for each axis,
    /// [`LayoutError::IndexOutOfBounds`] for an index or a bound outside the axis, and [`LayoutError::ZeroStep`] for
    /// a step of 0.
    pub fn slice(&self, info: &[SliceInfoElem]) -> Result<Layout> {
        let found = info.iter().filter(|element| !element.is_new_axis()).count();
        if found != self.ndim() {
            return Err(LayoutError::RankMismatch { found, expected: self.ndim() });
        }
        let mut shape = Shape::new();
        let mut strides = Strides::new();
        let mut offset = self.offset;
        let mut axes = self.axes().enumerate();
        for &element in info {
            if element.is_new_axis() {
                shape.push(1);
                strides.push(0);
                continue;
            }
            let Some((axis, (length, stride))) = axes.next() else { break };
            let first = match element {
                SliceInfoElem::Slice { start, end, step } => {
                    let (first, count) = range(axis, length, start, end, step)?;
                    shape.push(count);
                    // Meaningful wherever the axis is longer than 1, and exact there.
                    strides.push(stride.wrapping_mul(step));
                    first
                }
                SliceInfoElem::Index(index) => position(axis, length, index)?,
                SliceInfoElem::NewAxis => continue,
            };
            offset = self.shifted(offset, first, stride);
        }
        Ok(Layout { shape, strides, offset, item: self.item })
    }

    /// Byte offset of an element.
    ///
    /// # Errors
    /// Returns [`LayoutError::RankMismatch`] unless there is one index for each axis, and
    /// [`LayoutError::IndexOutOfBounds`] if there is no such element.
    pub fn index(&self, index: &[usize]) -> Result<usize> {
        if index.len() != self.ndim() {
            return Err(LayoutError::RankMismatch { found: index.len(), expected: self.ndim() });
        }
        let mut offset = self.offset;
        for (axis, (&index, (length, stride))) in index.iter().zip(self.axes()).enumerate() {
            if index >= length {
                return Err(out_of_bounds(axis, length, isize::try_from(index).unwrap_or(isize::MAX)));
            }
            offset = self.shifted(offset, index, stride);
        }
        Ok(offset)
    }

    /// The array without `axis`, at position `index` of it.
    ///
    /// # Errors
    /// Returns [`LayoutError::NoSuchAxis`] if there is no such axis, and [`LayoutError::IndexOutOfBounds`] if there
    /// is no such index.
    pub fn index_axis(&self, axis: usize, index: usize) -> Result<Layout> {
        let (length, stride) = self.axis(axis)?;
        if index >= length {
            return Err(out_of_bounds(axis, length, isize::try_from(index).unwrap_or(isize::MAX)));
        }
        let mut part = self.clone();
        part.offset = self.shifted(self.offset, index, stride);
        part.shape.remove(axis);
        part.strides.remove(axis);
        Ok(part)
    }
}

/// First position and number of positions of a range, in the order in which it is walked.
fn range(
    axis: usize,
    length: usize,
    start: isize,
    end: Option<isize>,
    step: isize,
) -> Result<(usize, usize)> {
    if step == 0 {
        return Err(LayoutError::ZeroStep { axis });
    }
    let first = bound(axis, length, start)?;
    let last = end.map_or(Ok(length), |end| bound(axis, length, end))?;
    let count = last.saturating_sub(first);
    // Nothing moves for an empty range: its start may lie one past the end of the memory.
    let from = match (count, step) {
        (0, _) => 0,
        (_, 1..) => first,
        _ => last - 1,
    };
    Ok((from, count.div_ceil(step.unsigned_abs())))
}

/// A bound of a range from the start of the axis; the length itself is allowed.
fn bound(axis: usize, length: usize, bound: isize) -> Result<usize> {
    from_start(length, bound)
        .filter(|&position| position <= length)
        .ok_or_else(|| out_of_bounds(axis, length, bound))
}

/// An index from the start of the axis.
fn position(axis: usize, length: usize, index: isize) -> Result<usize> {
    from_start(length, index)
        .filter(|&position| position < length)
        .ok_or_else(|| out_of_bounds(axis, length, index))
}

fn from_start(length: usize, index: isize) -> Option<usize> {
    if index < 0 { length.checked_sub(index.unsigned_abs()) } else { Some(index.unsigned_abs()) }
}

fn out_of_bounds(axis: usize, length: usize, index: isize) -> LayoutError {
    LayoutError::IndexOutOfBounds { index, axis, length }
}
