//! Two layouts as one loop nest: what a copy between them has to walk.

use super::{Layout, Result};
use gpumem_core::LayoutError;
use smallvec::SmallVec;

/// One loop of a [`CopyNest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Axis {
    /// Number of steps, at least 2.
    pub len: usize,
    /// Bytes from one step to the next in the source; of any sign, 0 where the source repeats an element.
    pub src: isize,
    /// Bytes from one step to the next in the destination; not negative.
    pub dst: isize,
}

/// A source and a destination of equal shape with as few axes as possible: what a copy between them has to walk.
///
/// Which element is copied first does not matter, so the axes are flipped until no destination stride is negative,
/// sorted by destination stride, and merged where both sides are contiguous. Innermost bytes that are contiguous on
/// both sides are a run of bytes rather than an axis.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CopyNest {
    /// The loops around the run, outermost (largest destination stride) first.
    pub axes: SmallVec<[Axis; 6]>,
    /// Byte offset of the first run in the source.
    pub src: usize,
    /// Byte offset of the first run in the destination.
    pub dst: usize,
    /// Bytes that are contiguous in both: a multiple of `item`, or 0 without elements.
    pub run: usize,
    /// Bytes of an element.
    pub item: usize,
    /// Number of elements.
    pub len: usize,
}

impl CopyNest {
    /// The pair of a source and a destination.
    ///
    /// Whether destination elements share bytes ([`Layout::has_self_overlap`]) or the two sides do
    /// ([`Layout::overlaps`]) is not checked here.
    ///
    /// # Errors
    /// Returns [`LayoutError::ShapeMismatch`] if the shapes differ, and [`LayoutError::ItemMismatch`] if the sizes of
    /// the elements differ.
    pub fn new(src: &Layout, dst: &Layout) -> Result<Self> {
        if src.shape != dst.shape {
            let (found, expected) = (src.shape.to_vec(), dst.shape.to_vec());
            return Err(LayoutError::ShapeMismatch { found, expected });
        }
        if src.item != dst.item {
            return Err(LayoutError::ItemMismatch { found: src.item, expected: dst.item });
        }
        let (item, len) = (src.item, src.len());
        let mut pair =
            CopyNest { axes: SmallVec::new(), src: src.offset, dst: dst.offset, run: 0, item, len };
        if len == 0 {
            return Ok(pair);
        }
        if let Some(run) = contiguous_len(src, dst) {
            pair.run = run;
            return Ok(pair);
        }
        for ((length, from), (_, to)) in src.axes().zip(dst.axes()).filter(|&((length, _), _)| length > 1) {
            let mut axis = Axis { len: length, src: from, dst: to };
            if to < 0 {
                pair.src = src.shifted(pair.src, length - 1, from);
                pair.dst = dst.shifted(pair.dst, length - 1, to);
                axis.src = -from;
                axis.dst = -to;
            }
            pair.axes.push(axis);
        }
        pair.axes.sort_by_key(|axis| std::cmp::Reverse((axis.dst, axis.src.unsigned_abs())));
        pair.merge();
        pair.run = item;
        let contiguous = item as isize;
        if let Some(&Axis { len, src, dst }) = pair.axes.last()
            && (src, dst) == (contiguous, contiguous)
        {
            pair.axes.pop();
            pair.run = item * len;
        }
        Ok(pair)
    }

    /// Number of runs: the product of the lengths of all axes, or 0 without elements.
    pub fn runs(&self) -> usize {
        if self.len == 0 { 0 } else { self.axes.iter().map(|axis| axis.len).product() }
    }

    /// Returns the pair with source and destination exchanged. Axes are flipped until no stride of the new destination is
    /// negative; their order stays.
    #[must_use]
    pub fn swapped(&self) -> Self {
        let mut result = Self { src: self.dst, dst: self.src, ..self.clone() };
        for axis in &mut result.axes {
            let Axis { len, src, dst } = *axis;
            *axis = Axis { len, src: dst, dst: src };
            if src < 0 {
                let last = (len - 1) as isize;
                result.dst = result.dst.wrapping_add_signed(src * last);
                result.src = result.src.wrapping_add_signed(dst * last);
                *axis = Axis { len, src: -dst, dst: -src };
            }
        }
        result
    }

    /// Merges each axis with the next inner one where the outer continues it in both the source and the destination.
    fn merge(&mut self) {
        let mut merged: SmallVec<[Axis; 6]> = SmallVec::new();
        for &inner in &self.axes {
            match merged.last_mut() {
                Some(outer)
                    if continues(outer.src, inner.src, inner.len)
                        && continues(outer.dst, inner.dst, inner.len) =>
                {
                    *outer = Axis { len: outer.len * inner.len, ..inner };
                }
                _ => merged.push(inner),
            }
        }
        self.axes = merged;
    }
}

/// Whether a step of the outer axis goes where the inner axis would step next.
fn continues(outer: isize, inner: isize, inner_len: usize) -> bool {
    inner.checked_mul(inner_len as isize) == Some(outer)
}

/// The bytes of all elements, where they lie side by side in C order in both layouts, which have equal shapes: what most
/// copies are, found at the cost of a few comparisons. `None` without elements, and for other pairs.
#[inline]
pub fn contiguous_len(src: &Layout, dst: &Layout) -> Option<usize> {
    let (shape, strides) = (&src.shape[..], &src.strides[..]);
    let (other_shape, other_strides) = (&dst.shape[..], &dst.strides[..]);
    if src.item != dst.item || shape.len() != other_shape.len() {
        return None;
    }
    let sides = shape.iter().zip(strides).zip(other_shape.iter().zip(other_strides));
    let mut run = src.item;
    for ((length, stride), (other_length, other_stride)) in sides.rev() {
        let is_packed = *length == 1 || (stride == other_stride && *stride == run as isize);
        if length != other_length || !is_packed {
            return None;
        }
        // No more than all bytes of the layout, which fit.
        run *= length;
    }
    (run > 0).then_some(run)
}
