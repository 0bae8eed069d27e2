//! Other shapes for the same elements: views where strides for them exist, [`LayoutError::NeedsCopy`] elsewhere.

use super::order::packed_strides;
use super::{Layout, Order, Result, Shape, Strides, check_size};
use gpumem_core::LayoutError;
use smallvec::SmallVec;

impl Layout {
    /// The same elements, counted in the given order, in another shape. One length may be -1, and is then computed from
    /// the others.
    ///
    /// A view exactly where `numpy.reshape` gives a view.
    ///
    /// # Errors
    /// Returns [`LayoutError::CannotReshape`] if the number of elements changes, or for negative lengths other than
    /// one -1. Returns [`LayoutError::NeedsCopy`] if no strides give that view, and [`LayoutError::TooLarge`] for an
    /// array without elements whose other lengths exceed the address space.
    pub fn reshape(&self, shape: &[isize], order: Order) -> Result<Layout> {
        let shape = self.resolve(shape)?;
        if shape == self.shape {
            return Ok(self.clone());
        }
        check_size(&shape, self.item)?;
        let strides = if self.is_contiguous(order) {
            packed_strides(&shape, self.item, order)
        } else {
            self.regroup(&shape, order).ok_or_else(|| self.needs_copy())?
        };
        Ok(Layout { shape, strides, ..*self })
    }

    /// All elements, counted in the given order, along one axis: `reshape` to one length. `numpy.ravel` would also copy
    /// where the elements have a common distance but do not lie side by side; here that is a view.
    ///
    /// # Errors
    /// Returns [`LayoutError::NeedsCopy`] if neighbours have no common distance.
    pub fn ravel(&self, order: Order) -> Result<Layout> {
        self.reshape(&[self.len() as isize], order)
    }

    /// The elements seen as elements of another size, by the rules of NumPy's `view(dtype)`: the same size fits any
    /// layout; for another, the last axis is cut or joined and must be contiguous.
    ///
    /// # Errors
    /// For another size of elements, returns [`LayoutError::NoSuchAxis`] without axes, [`LayoutError::NeedsCopy`] if
    /// the last axis is not contiguous, [`LayoutError::CannotReinterpret`] if the last axis is no whole number of
    /// larger elements, and [`LayoutError::CannotCut`] if an element is no whole number of smaller ones.
    pub fn reinterpret(&self, item: usize) -> Result<Layout> {
        if item == self.item {
            return Ok(self.clone());
        }
        let last = self.ndim().checked_sub(1).ok_or_else(|| self.no_such_axis(-1))?;
        let (length, stride) = self.axis(last)?;
        if length != 1 && !self.is_empty() && stride != self.item as isize {
            return Err(self.needs_copy());
        }
        // Joining elements divides the bytes of the whole axis, cutting them those of each element.
        let bytes = if item > self.item { length * self.item } else { self.item };
        if bytes.checked_rem(item) != Some(0) {
            return Err(match item > self.item {
                true => LayoutError::CannotReinterpret { axis_bytes: bytes, item },
                false => LayoutError::CannotCut { item: self.item, wanted: item },
            });
        }
        let mut view = self.clone();
        view.shape[last] = length * self.item / item;
        view.strides[last] = item as isize;
        view.item = item;
        check_size(&view.shape, item)?;
        Ok(view)
    }

    /// The shape with -1 replaced.
    fn resolve(&self, shape: &[isize]) -> Result<Shape> {
        let cannot = || LayoutError::CannotReshape { from: self.len(), to: shape.to_vec() };
        let mut known = 1usize;
        let mut inferred = None;
        let mut resolved = Shape::new();
        for (axis, &length) in shape.iter().enumerate() {
            match usize::try_from(length) {
                // Saturated, the product differs from every number of elements, unless a zero follows.
                Ok(length) => known = known.saturating_mul(length),
                Err(_) if length == -1 && inferred.is_none() => inferred = Some(axis),
                Err(_) => return Err(cannot()),
            }
            resolved.push(length.unsigned_abs());
        }
        if let Some(axis) = inferred {
            resolved[axis] = self.len().checked_div(known).ok_or_else(cannot)?;
            known = known.saturating_mul(resolved[axis]);
        }
        if known == self.len() { Ok(resolved) } else { Err(cannot()) }
    }

    /// Strides for another shape of the same, not zero, number of elements, or `None` if there are none.
    ///
    /// NumPy's algorithm (`_attempt_nocopy_reshape`): old and new axes are grouped, slowest first, into the smallest
    /// groups with equal products; the old axes of each group must be mergeable, and are cut anew.
    fn regroup(&self, shape: &[usize], order: Order) -> Option<Strides> {
        let mut old: SmallVec<[(usize, isize); 6]> = self.axes().filter(|&(length, _)| length != 1).collect();
        let mut new: Shape = shape.into();
        // Column-major order is row-major order of the reversed axes.
        if order == Order::F {
            old.reverse();
            new.reverse();
        }
        let mut strides = regroup_rows(&old, &new)?;
        if order == Order::F {
            strides.reverse();
        }
        Some(strides)
    }
}

/// As [`Layout::regroup`], in row-major order and without old axes of length 1. New axes of length 1 get some stride.
fn regroup_rows(old: &[(usize, isize)], new: &[usize]) -> Option<Strides> {
    let mut strides: Strides = SmallVec::from_elem(0, new.len());
    let mut new_axes = new.iter().zip(&mut strides);
    let mut old = old.iter();
    while let Some(&(length, stride)) = old.next() {
        // The group's lengths, multiplied up from either side until they agree, and the stride of its fastest old
        // axis. Products divide the number of elements, so none overflows.
        let (mut have, mut fastest) = (length, stride);
        let mut group: SmallVec<[(usize, &mut isize); 6]> = SmallVec::new();
        let mut want = 1;
        while have != want {
            if want < have {
                let (&length, stride) = new_axes.next()?;
                want *= length;
                group.push((length, stride));
            } else {
                let &(length, stride) = old.next()?;
                if stride.checked_mul(length as isize) != Some(fastest) {
                    return None;
                }
                have *= length;
                fastest = stride;
            }
        }
        let mut next = fastest;
        for (length, stride) in group.into_iter().rev() {
            *stride = next;
            // Wraps only past the last axis that is longer than 1.
            next = next.wrapping_mul(length as isize);
        }
    }
    Some(strides)
}
