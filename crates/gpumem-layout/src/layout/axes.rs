//! Reordering, removing, adding and repeating axes.

use super::{Layout, Result, Shape, Strides, check_size};
use gpumem_core::LayoutError;
use smallvec::SmallVec;

impl Layout {
    /// The axes in a new order: axis `i` of the result is axis `axes[i]` of this array, as in `numpy.transpose`.
    ///
    /// # Errors
    /// Returns [`LayoutError::NotAPermutation`] unless `axes` names every axis once.
    pub fn transpose(&self, axes: &[usize]) -> Result<Layout> {
        let mut seen: SmallVec<[bool; 6]> = SmallVec::from_elem(false, self.ndim());
        let is_new = |&axis: &usize| seen.get_mut(axis).is_some_and(|seen| !std::mem::replace(seen, true));
        if axes.len() != self.ndim() || !axes.iter().all(is_new) {
            return Err(LayoutError::NotAPermutation { axes: axes.to_vec(), rank: self.ndim() });
        }
        let shape = axes.iter().map(|&axis| self.shape[axis]).collect();
        let strides = axes.iter().map(|&axis| self.strides[axis]).collect();
        Ok(Layout { shape, strides, ..*self })
    }

    /// The axes in reverse order: what `.T` is in NumPy.
    pub fn reversed_axes(&self) -> Layout {
        let mut reversed = self.clone();
        reversed.shape.reverse();
        reversed.strides.reverse();
        reversed
    }

    /// Two axes exchanged.
    ///
    /// # Errors
    /// Returns [`LayoutError::NoSuchAxis`] if there is no such axis.
    pub fn swap_axes(&self, left: usize, right: usize) -> Result<Layout> {
        self.axis(left)?;
        self.axis(right)?;
        let mut swapped = self.clone();
        swapped.shape.swap(left, right);
        swapped.strides.swap(left, right);
        Ok(swapped)
    }

    /// One axis walked backwards.
    ///
    /// # Errors
    /// Returns [`LayoutError::NoSuchAxis`] if there is no such axis.
    pub fn invert_axis(&self, axis: usize) -> Result<Layout> {
        let (length, stride) = self.axis(axis)?;
        let mut inverted = self.clone();
        inverted.offset = self.shifted(self.offset, length.saturating_sub(1), stride);
        inverted.strides[axis] = stride.wrapping_neg();
        Ok(inverted)
    }

    /// The array without an axis of length 1. Negative axes count from the end.
    ///
    /// # Errors
    /// Returns [`LayoutError::NoSuchAxis`] if there is no such axis, and [`LayoutError::CannotSqueeze`] if its length
    /// is not 1.
    pub fn squeeze_axis(&self, axis: isize) -> Result<Layout> {
        let from_start = if axis < 0 {
            self.ndim().checked_sub(axis.unsigned_abs()).ok_or_else(|| self.no_such_axis(axis))?
        } else {
            axis.unsigned_abs()
        };
        let (length, _) = self.axis(from_start)?;
        if length != 1 {
            return Err(LayoutError::CannotSqueeze { axis: from_start, length });
        }
        let mut squeezed = self.clone();
        squeezed.shape.remove(from_start);
        squeezed.strides.remove(from_start);
        Ok(squeezed)
    }

    /// The array without its axes of length 1.
    pub fn squeeze(&self) -> Layout {
        let (shape, strides) = self.axes().filter(|&(length, _)| length != 1).unzip();
        Layout { shape, strides, ..*self }
    }

    /// The array with a new axis of length 1 before `axis`, which may be the number of axes. Its stride is 0, as
    /// NumPy's `newaxis`.
    ///
    /// # Errors
    /// Returns [`LayoutError::NoSuchAxis`] if there is no such axis.
    pub fn insert_axis(&self, axis: usize) -> Result<Layout> {
        if axis > self.ndim() {
            return Err(self.no_such_axis(isize::try_from(axis).unwrap_or(isize::MAX)));
        }
        let mut inserted = self.clone();
        inserted.shape.insert(axis, 1);
        inserted.strides.insert(axis, 0);
        Ok(inserted)
    }

    /// The array repeated to a larger shape, by NumPy's rules: the shapes are aligned at their last axes, missing
    /// axes are added in front, and axes of length 1 are repeated with a stride of 0. The result may be read only;
    /// [`has_self_overlap`](Self::has_self_overlap) tells.
    ///
    /// # Errors
    /// Returns [`LayoutError::CannotBroadcast`] if the shapes do not fit, and [`LayoutError::TooLarge`] if the
    /// repeated elements, counted one by one, exceed `isize::MAX` bytes.
    pub fn broadcast(&self, shape: &[usize]) -> Result<Layout> {
        let cannot = || LayoutError::CannotBroadcast { from: self.shape.to_vec(), to: shape.to_vec() };
        let added = shape.len().checked_sub(self.ndim()).ok_or_else(cannot)?;
        check_size(shape, self.item)?;
        let mut strides: Strides = SmallVec::from_elem(0, added);
        for ((length, stride), &wanted) in self.axes().zip(shape.iter().skip(added)) {
            match length {
                _ if length == wanted => strides.push(stride),
                1 => strides.push(0),
                _ => return Err(cannot()),
            }
        }
        Ok(Layout { shape: Shape::from_slice(shape), strides, ..*self })
    }
}
