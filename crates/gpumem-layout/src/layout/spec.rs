//! What users pass where an array is made: a shape, with an order or strides where they care.

use super::{Layout, Order, Result, Strides, packed_size};
use gpumem_core::LayoutError;
use ndarray::{Dimension, IntoDimension};

/// Shape of a new array, with the order of its elements or its strides.
///
/// ```
/// use gpumem_layout::layout::{ArraySpec, IntoArraySpec, Order};
///
/// let rows = (3, 4).into_spec().layout(8)?;
/// let columns = ArraySpec::new((3, 4)).order(Order::F).layout(8)?;
/// let padded = ArraySpec::new((3, 4)).strides(&[64, 8]).layout(8)?;
/// assert_eq!((rows.strides(), columns.strides()), (&[32, 8][..], &[8, 24][..]));
/// assert_eq!(padded.extent(), 0..2 * 64 + 4 * 8);
/// # Ok::<(), gpumem_core::LayoutError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArraySpec<D> {
    shape: D,
    placement: Placement,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Placement {
    Packed(Order),
    Strided(Strides),
}

impl<D: Dimension> ArraySpec<D> {
    /// A packed array in row-major order.
    pub fn new(shape: impl IntoDimension<Dim = D>) -> Self {
        Self { shape: shape.into_dimension(), placement: Placement::Packed(Order::C) }
    }

    /// A packed array in the given order. Replaces strides given earlier.
    #[must_use]
    pub fn order(self, order: Order) -> Self {
        Self { placement: Placement::Packed(order), ..self }
    }

    /// An array with the given strides, in bytes as in NumPy and Numba. Replaces an order given earlier.
    #[must_use]
    pub fn strides(self, bytes: &[isize]) -> Self {
        Self { placement: Placement::Strided(bytes.into()), ..self }
    }

    /// The shape.
    pub fn shape(&self) -> &D {
        &self.shape
    }

    /// The layout for elements of `item` bytes; its lowest byte is byte 0.
    ///
    /// # Errors
    /// Returns [`LayoutError::TooLarge`] if the elements exceed `isize::MAX` bytes. For strides, returns
    /// [`LayoutError::RankMismatch`] unless there is one for each axis, and [`LayoutError::SelfOverlap`] if elements
    /// may share bytes ([`Layout::has_self_overlap`]): a new array can be written.
    pub fn layout(&self, item: usize) -> Result<Layout> {
        let shape = self.shape.slice();
        match &self.placement {
            Placement::Packed(order) => Layout::packed(shape, item, *order),
            Placement::Strided(strides) => strided(shape, strides, item),
        }
    }

    /// Bytes of the elements of a new array, as long as they are packed; `None` for one with strides of its own.
    #[inline]
    pub fn packed_bytes(&self, item: usize) -> Option<Result<usize>> {
        matches!(self.placement, Placement::Packed(_)).then(|| packed_size(self.shape.slice(), item))
    }

    /// The layout of elements whose [bytes](Self::packed_bytes) have been counted.
    #[inline]
    pub fn counted_layout(&self, item: usize) -> Layout {
        let order = if let Placement::Packed(order) = self.placement { order } else { Order::C };
        Layout::of_size(self.shape.slice(), item, order)
    }

    /// As [`layout`](Self::layout) for elements of `item` bytes that must lie at multiples of `align`, which divides
    /// `item`.
    pub fn aligned_layout(&self, item: usize, align: usize) -> Result<Layout> {
        let layout = self.layout(item)?;
        layout.check_alignment(align)?;
        Ok(layout)
    }
}

fn strided(shape: &[usize], strides: &[isize], item: usize) -> Result<Layout> {
    let layout = Layout::strided(shape, strides, item)?;
    if layout.has_self_overlap() {
        let (shape, strides) = (shape.to_vec(), strides.to_vec());
        return Err(LayoutError::SelfOverlap { shape, strides });
    }
    Ok(layout)
}

/// What can be the shape of a new array: everything that ndarray takes as one (`4`, `(3, 4)`, `[3, 4]`, a `Vec`, a
/// dimension), and an [`ArraySpec`].
pub trait IntoArraySpec {
    /// The rank, as ndarray's dimension type.
    type Dim: Dimension;

    /// The shape with its order or strides.
    fn into_spec(self) -> ArraySpec<Self::Dim>;
}

impl<T: IntoDimension> IntoArraySpec for T {
    type Dim = T::Dim;

    fn into_spec(self) -> ArraySpec<T::Dim> {
        ArraySpec::new(self)
    }
}

impl<D: Dimension> IntoArraySpec for ArraySpec<D> {
    type Dim = D;

    fn into_spec(self) -> ArraySpec<D> {
        self
    }
}
