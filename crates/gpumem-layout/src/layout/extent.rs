//! Which bytes a layout touches, and whether two layouts touch the same ones.

use super::{Layout, MAX_BYTES, Result};
use gpumem_core::LayoutError;
use smallvec::SmallVec;
use std::ops::Range;

/// Bytes from element `[0, 0, ..]` down to the lowest element and up to the highest, or `None` if either is more than
/// `isize::MAX`. Both are 0 for an array without elements.
pub(super) fn reach(shape: &[usize], strides: &[isize]) -> Option<(usize, usize)> {
    let (mut below, mut above) = (0usize, 0usize);
    if shape.contains(&0) {
        return Some((0, 0));
    }
    for (&length, &stride) in shape.iter().zip(strides) {
        let bytes = (length - 1).checked_mul(stride.unsigned_abs())?;
        let side = if stride < 0 { &mut below } else { &mut above };
        *side = side.checked_add(bytes).filter(|&bytes| bytes <= MAX_BYTES)?;
    }
    Some((below, above))
}

impl Layout {
    /// Bytes from the lowest to the end of the highest element. Empty, at the offset, without elements.
    #[inline]
    pub fn extent(&self) -> Range<usize> {
        // The rules of a layout keep all of this within `isize::MAX`.
        let (mut start, mut end) = (self.offset, self.offset.wrapping_add(self.item));
        for (&length, &stride) in self.shape.iter().zip(&self.strides) {
            if length == 0 {
                return self.offset..self.offset;
            }
            let span = stride.wrapping_mul(length as isize - 1);
            let side = if span < 0 { &mut start } else { &mut end };
            *side = side.wrapping_add_signed(span);
        }
        start..end
    }

    /// Checks that a buffer of `length` bytes holds the layout.
    ///
    /// # Errors
    /// Returns [`LayoutError::OutOfBuffer`] if it does not fit.
    pub fn fits(&self, length: usize) -> Result<()> {
        let needs = self.extent();
        if needs.end <= length { Ok(()) } else { Err(LayoutError::OutOfBuffer { needs, length }) }
    }

    /// Checks that every element lies at a multiple of `align` bytes, provided that the memory starts at one.
    ///
    /// # Errors
    /// Returns [`LayoutError::Misaligned`] with the offset or stride that is no multiple.
    pub fn check_alignment(&self, align: usize) -> Result<()> {
        let is_off = |bytes: usize| match align.is_power_of_two() {
            // No division on the way of every new array.
            true => bytes & (align - 1) != 0,
            false => bytes.checked_rem(align).is_some_and(|rest| rest != 0),
        };
        if align == 1 {
            return Ok(());
        }
        if is_off(self.offset) {
            return Err(LayoutError::Misaligned { bytes: self.offset as isize, align });
        }
        if self.is_empty() {
            return Ok(());
        }
        match self.axes().find(|&(length, stride)| length > 1 && is_off(stride.unsigned_abs())) {
            Some((_, stride)) => Err(LayoutError::Misaligned { bytes: stride, align }),
            None => Ok(()),
        }
    }

    /// Whether elements may share bytes with each other, so that the array must not be written element by element.
    ///
    /// Never `false` for elements that do. As in ndarray, every stride must reach past all that smaller strides span,
    /// so a layout that interleaves its elements without any sharing can be `true` as well.
    pub fn has_self_overlap(&self) -> bool {
        if self.is_empty() || self.item == 0 {
            return false;
        }
        let mut axes: SmallVec<[(usize, usize); 6]> = self
            .axes()
            .filter(|axis| axis.0 > 1)
            .map(|(length, stride)| (stride.unsigned_abs(), length))
            .collect();
        axes.sort_unstable();
        let mut span = self.item;
        for &(stride, length) in &axes {
            if stride < span {
                return true;
            }
            span += stride * (length - 1);
        }
        false
    }

    /// Whether an element of this layout and one of `other`, in the same memory, may share a byte.
    ///
    /// Never `false` for layouts that do. The answer is exact for what views are usually made of (halves, blocks,
    /// every n-th row or column); for layouts so entangled that a bounded search does not decide, it is `true`.
    pub fn overlaps(&self, other: &Layout) -> bool {
        let (left, right) = (self.extent(), other.extent());
        if self.packed_bytes() == 0 || other.packed_bytes() == 0 {
            return false;
        }
        if left.start >= right.end || right.start >= left.end {
            return false;
        }
        Distances::between(self, other).may_be_small()
    }
}

/// The distances from the elements of one layout to the elements of another, `base + Σ kᵢ·strideᵢ` with
/// `0 <= kᵢ < lengthᵢ`: two elements share a byte if their distance lies in `within`.
struct Distances {
    base: i128,
    within: Range<i128>,
    /// Positive strides, largest first, with the largest factor of each.
    axes: SmallVec<[(i128, i128); 12]>,
    /// Number of partial sums that may still be tried.
    budget: u32,
}

impl Distances {
    /// Views of one array leave one or two factors an axis; this leaves room for several such axes and bounds the time.
    const BUDGET: u32 = 256;

    fn between(left: &Layout, right: &Layout) -> Self {
        let mut axes: SmallVec<[(i128, i128); 12]> = left
            .axes()
            .chain(right.axes())
            .filter(|&(length, stride)| length > 1 && stride != 0)
            .map(|(length, stride)| (stride.unsigned_abs() as i128, length as i128 - 1))
            .collect();
        axes.sort_unstable_by(|a, b| b.cmp(a));
        axes.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 += next.1;
            }
            same
        });
        // The distance from right's highest element to left's lowest is the smallest of all.
        let base = left.extent().start as i128 - (right.extent().end as i128 - right.item as i128);
        Self { base, within: 1 - left.item as i128..right.item as i128, axes, budget: Self::BUDGET }
    }

    fn may_be_small(&mut self) -> bool {
        self.search(0, self.base)
    }

    /// Whether some choice of the factors from axis `level` on brings `sum` into the range, or the budget is gone.
    fn search(&mut self, level: usize, sum: i128) -> bool {
        let Some(&(stride, largest)) = self.axes.get(level) else { return self.within.contains(&sum) };
        let Some(budget) = self.budget.checked_sub(1) else { return true };
        self.budget = budget;
        let rest = self.axes.get(level..).unwrap_or_default();
        // All sums that are still possible are congruent to this one, so one of them must lie in the range.
        let step = rest.iter().fold(0, |divisor, &(stride, _)| greatest_common_divisor(divisor, stride));
        if self.within.start + (sum - self.within.start).rem_euclid(step) >= self.within.end {
            return false;
        }
        let span: i128 = rest.iter().skip(1).map(|&(stride, largest)| stride * largest).sum();
        let lowest = (self.within.start - sum - span).div_euclid(stride);
        let lowest = lowest + i128::from(lowest * stride < self.within.start - sum - span);
        let highest = (self.within.end - 1 - sum).div_euclid(stride);
        (lowest.max(0)..=highest.min(largest)).any(|factor| self.search(level + 1, sum + factor * stride))
    }
}

fn greatest_common_divisor(mut a: i128, mut b: i128) -> i128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
