//! Layouts: where the elements of an array lie in its memory.
//!
//! A [`Layout`] is a shape, a signed stride in **bytes** for each axis (as in NumPy), the size of an element and the
//! byte offset of element `[0, 0, ..]`. It knows no memory and no element type; slicing, transposing, reshaping and
//! splitting an array are functions from one layout to another, and each of them costs O(number of axes), whatever
//! the number of elements.
//!
//! ```
//! use gpumem_layout::layout::{Layout, Order};
//! use ndarray::s;
//!
//! let matrix = Layout::packed(&[3, 4], 8, Order::C)?;
//! assert_eq!(matrix.strides(), [32, 8]);
//!
//! let backwards = matrix.slice(s![.., ..;-1].as_ref())?;
//! assert_eq!((backwards.strides(), backwards.offset()), (&[32, -8][..], 24));
//!
//! // A reversed array is no contiguous one: flattening it needs a copy, and the layout says so.
//! assert!(matrix.ravel(Order::C).is_ok());
//! assert!(backwards.ravel(Order::C).is_err());
//! # Ok::<(), gpumem_core::LayoutError>(())
//! ```
//!
//! # Rules
//! * Views follow NumPy, except that slices have the meaning of ndarray's `s![]` and that nothing is clipped: bounds
//!   out of range are an error.
//! * Strides of axes of length 1, and all strides of an array without elements, mean nothing and decide nothing.
//! * An array without axes has one element.

mod axes;
mod copy_nest;
mod extent;
mod order;
mod reshape;
mod slice;
mod spec;
mod split;

pub use copy_nest::{CopyNest, contiguous_len};
pub use gpumem_core::Axis;
pub use order::Order;
pub use spec::{ArraySpec, IntoArraySpec};
pub use split::Split;

use gpumem_core::LayoutError;
use smallvec::SmallVec;

/// Lengths of the axes; on the stack up to six of them.
type Shape = SmallVec<[usize; 6]>;
/// Byte strides of the axes; on the stack up to six of them.
type Strides = SmallVec<[isize; 6]>;

type Result<T, E = LayoutError> = std::result::Result<T, E>;

/// The largest number of bytes that an array may have, and the largest byte offset inside an allocation. No
/// allocation of Rust, NumPy or ndarray is larger.
const MAX_BYTES: usize = isize::MAX as usize;

/// Where the elements of an array lie in its memory: shape, byte strides, element size, byte offset.
///
/// The fields obey three rules, which every constructor checks and every view keeps, and which make the rest of the
/// arithmetic free of overflow:
/// 1. there are as many strides as axes;
/// 2. the product of all lengths other than 0, times the element size, is at most `isize::MAX`;
/// 3. every byte of every element lies in `0..=isize::MAX`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    shape: Shape,
    strides: Strides,
    offset: usize,
    item: usize,
}

impl Clone for Layout {
    #[inline]
    fn clone(&self) -> Self {
        let Self { shape, strides, offset, item } = self;
        // Copies the numbers at once. `SmallVec::clone` takes them one by one, and every view is a clone.
        Self {
            shape: Shape::from_slice(shape),
            strides: Strides::from_slice(strides),
            offset: *offset,
            item: *item,
        }
    }
}

impl Layout {
    /// Elements of `item` bytes side by side in the given order, from byte 0 on.
    ///
    /// # Errors
    /// Returns [`LayoutError::TooLarge`] if the product of all lengths other than 0, times `item`, exceeds
    /// `isize::MAX`.
    pub fn packed(shape: &[usize], item: usize, order: Order) -> Result<Self> {
        packed_size(shape, item)?;
        Ok(Self::of_size(shape, item, order))
    }

    /// As [`packed`](Self::packed), for a shape that [`packed_size`] has passed.
    #[inline]
    fn of_size(shape: &[usize], item: usize, order: Order) -> Self {
        match *shape {
            // Most arrays have one axis, and this is on the way of every new one.
            [length] => {
                let shape = SmallVec::from_buf_and_len([length, 0, 0, 0, 0, 0], 1);
                let strides = SmallVec::from_buf_and_len([item as isize, 0, 0, 0, 0, 0], 1);
                Self { shape, strides, offset: 0, item }
            }
            _ => {
                let strides = order::packed_strides(shape, item, order);
                Self { shape: Shape::from_slice(shape), strides, offset: 0, item }
            }
        }
    }

    /// Elements of `item` bytes at the given byte strides. The lowest byte of the layout is byte 0; with negative
    /// strides, element `[0, 0, ..]` therefore lies further up.
    ///
    /// Elements may overlap ([`has_self_overlap`](Self::has_self_overlap)) and need not be aligned
    /// ([`check_alignment`](Self::check_alignment)).
    ///
    /// # Errors
    /// Returns [`LayoutError::RankMismatch`] unless there is one stride for each axis, [`LayoutError::TooLarge`] if
    /// the elements, or the bytes between the lowest and the highest, exceed `isize::MAX`.
    pub fn strided(shape: &[usize], strides: &[isize], item: usize) -> Result<Self> {
        if strides.len() != shape.len() {
            return Err(LayoutError::RankMismatch { found: strides.len(), expected: shape.len() });
        }
        check_size(shape, item)?;
        let (below, above) = extent::reach(shape, strides).ok_or_else(|| too_large(shape, item))?;
        let bytes = below.checked_add(above).and_then(|bytes| bytes.checked_add(item));
        if bytes.is_none_or(|bytes| bytes > MAX_BYTES) {
            return Err(too_large(shape, item));
        }
        Ok(Self { shape: shape.into(), strides: strides.into(), offset: below, item })
    }

    /// The layout of an ndarray array or view, from its shape and its strides in *elements*. The lowest byte of the
    /// layout is byte 0.
    ///
    /// # Errors
    /// As for [`strided`](Self::strided). Only a broadcast view can be too large, because ndarray counts its elements
    /// where we count bytes.
    pub fn of_ndarray(shape: &[usize], strides: &[isize], item: usize) -> Result<Self> {
        let empty = shape.contains(&0);
        let scale =
            |(&stride, &length): (&isize, &usize)| match stride.checked_mul(isize::try_from(item).ok()?) {
                None if empty || length == 1 => Some(0),
                bytes => bytes,
            };
        if strides.len() != shape.len() {
            return Err(LayoutError::RankMismatch { found: strides.len(), expected: shape.len() });
        }
        let bytes: Option<Strides> = strides.iter().zip(shape).map(scale).collect();
        Self::strided(shape, &bytes.ok_or_else(|| too_large(shape, item))?, item)
    }

    /// The same layout with element `[0, 0, ..]` at byte `offset`.
    ///
    /// # Errors
    /// Returns [`LayoutError::OutOfBuffer`] if elements would lie below byte 0, [`LayoutError::TooLarge`] if they
    /// would lie above byte `isize::MAX`.
    pub fn with_offset(mut self, offset: usize) -> Result<Self> {
        let (below, above) = extent::reach(&self.shape, &self.strides).unwrap_or_default();
        if offset < below {
            return Err(LayoutError::OutOfBuffer { needs: 0..below, length: offset });
        }
        let end = offset.checked_add(above).and_then(|end| end.checked_add(self.item));
        if end.is_none_or(|end| end > MAX_BYTES) {
            return Err(too_large(&self.shape, self.item));
        }
        self.offset = offset;
        Ok(self)
    }

    /// Lengths of the axes.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Byte distance between neighbours along each axis.
    #[inline]
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// Byte offset of element `[0, 0, ..]` from the start of the memory.
    #[inline]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Bytes of an element.
    #[inline]
    pub fn item(&self) -> usize {
        self.item
    }

    /// Number of axes.
    #[inline]
    pub fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// Number of elements; 1 for an array without axes.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// Bytes of all elements, without the gaps between them.
    pub fn packed_bytes(&self) -> usize {
        self.len() * self.item
    }

    /// The axes as (length, stride) pairs.
    fn axes(&self) -> impl DoubleEndedIterator<Item = (usize, isize)> + ExactSizeIterator + '_ {
        self.shape.iter().copied().zip(self.strides.iter().copied())
    }

    /// `offset` after `index` steps along a stride. In an array without elements nothing moves, because its strides
    /// mean nothing; elsewhere the third rule makes the arithmetic exact for every index inside the axis.
    fn shifted(&self, offset: usize, index: usize, stride: isize) -> usize {
        if self.is_empty() {
            return offset;
        }
        offset.wrapping_add_signed((index as isize).wrapping_mul(stride))
    }

    fn needs_copy(&self) -> LayoutError {
        LayoutError::NeedsCopy { shape: self.shape.to_vec(), strides: self.strides.to_vec() }
    }

    /// Length and stride of an axis.
    fn axis(&self, axis: usize) -> Result<(usize, isize)> {
        match (self.shape.get(axis), self.strides.get(axis)) {
            (Some(&length), Some(&stride)) => Ok((length, stride)),
            _ => Err(self.no_such_axis(isize::try_from(axis).unwrap_or(isize::MAX))),
        }
    }

    fn no_such_axis(&self, axis: isize) -> LayoutError {
        LayoutError::NoSuchAxis { axis, rank: self.ndim() }
    }
}

/// Checks the second rule of [`Layout`]. Lengths of 0 are left out of the product, as NumPy and ndarray do, so that
/// the strides of an array without elements can be computed like any other's. Gives that product, times the size of an
/// element.
fn check_size(shape: &[usize], item: usize) -> Result<usize> {
    let mut bytes = item.max(1);
    for &length in shape.iter().filter(|&&length| length != 0) {
        match bytes.checked_mul(length) {
            Some(product) if product <= MAX_BYTES => bytes = product,
            _ => return Err(too_large(shape, item)),
        }
    }
    if bytes > MAX_BYTES { Err(too_large(shape, item)) } else { Ok(if item == 0 { 0 } else { bytes }) }
}

/// Checks the second rule of [`Layout`], and gives the bytes of all elements, which lie side by side.
#[inline]
fn packed_size(shape: &[usize], item: usize) -> Result<usize> {
    match *shape {
        [length] => match item.max(1).checked_mul(length.max(1)) {
            Some(bytes) if bytes <= MAX_BYTES => Ok(item * length),
            _ => Err(too_large(shape, item)),
        },
        _ => check_size(shape, item).map(|bytes| if shape.contains(&0) { 0 } else { bytes }),
    }
}

#[cold]
fn too_large(shape: &[usize], item: usize) -> LayoutError {
    LayoutError::TooLarge { shape: shape.to_vec(), item }
}
