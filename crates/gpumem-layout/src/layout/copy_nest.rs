//! Two layouts as one loop nest: what a copy between them has to walk.

use super::{Layout, Result};
use gpumem_core::{Axis, LayoutError, fewest_axes};
use smallvec::SmallVec;

/// A source and a destination of equal shape with as few axes as possible: what a copy between them has to walk.
///
/// Which element is copied first does not matter, so the axes are flipped until no destination stride is negative,
/// sorted by destination stride, and merged where both sides are contiguous. Innermost bytes that are contiguous on
/// both sides are a run of bytes rather than an axis.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CopyNest {
    /// The loops around the run, of two steps at least, outermost (largest destination stride) first.
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
        pair.axes = src.axes().zip(dst.axes()).map(|((len, src), (_, dst))| Axis { len, src, dst }).collect();
        pair.run = item;
        let (kept, [from, to]) = fewest_axes(&mut pair.run, &mut pair.axes);
        pair.axes.truncate(kept);
        (pair.src, pair.dst) = (pair.src.wrapping_add_signed(from), pair.dst.wrapping_add_signed(to));
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
