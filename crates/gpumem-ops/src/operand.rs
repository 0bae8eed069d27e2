//! An array as the kernels take it: packed, its axes in the order of memory.

use gpumem_core::{Backend, Element, LayoutError, Result};
use gpumem_runtime::{ArrayBase, DeviceArray, DeviceView, Layout, Storage, Stream};
use ndarray::{Dimension, IxDyn};
use smallvec::SmallVec;

type Axes = SmallVec<[usize; 6]>;
type Dynamic<S> = ArrayBase<S, IxDyn>;

/// A packed array, or a packed copy of one that has gaps or is broadcast.
pub(crate) struct Operand<'a, T: Element, B: Backend> {
    elements: Elements<'a, T, B>,
    /// The axes of the caller's array, slowest first.
    axes: Axes,
    /// Those that run backwards.
    inverted: Axes,
}

enum Elements<'a, T: Element, B: Backend> {
    InPlace(DeviceView<'a, T, IxDyn, B>),
    Copied(DeviceArray<T, IxDyn, B>),
}

/// A view of an array of the stream's device: a launch refuses others, and a copy of one with gaps does not.
fn of_device<'a, B: Backend, S, D>(
    stream: &Stream<B>,
    array: &'a ArrayBase<S, D>,
) -> Result<DeviceView<'a, S::Elem, IxDyn, B>>
where
    S: Storage<Backend = B>,
    D: Dimension,
{
    let of = array.place_by(crate::KEY).memory.context();
    stream.device().core_by(crate::KEY).check_same("launch", "array", of)?;
    Ok(array.view().into_dyn())
}

impl<'a, T: Element, B: Backend> Operand<'a, T, B> {
    /// The elements of `array`, in the order of memory. `forwards` is an axis along which the order of the elements matters.
    pub(crate) fn new<S, D>(
        stream: &Stream<B>,
        array: &'a ArrayBase<S, D>,
        forwards: Option<usize>,
    ) -> Result<Self>
    where
        S: Storage<Elem = T, Backend = B>,
        D: Dimension,
    {
        let (axes, inverted) = order_of(array.layout());
        if forwards.is_none_or(|axis| !inverted.contains(&axis)) {
            let view = arranged(of_device(stream, array)?, &axes, &inverted)?;
            if view.is_c_contiguous() {
                return Ok(Self { elements: Elements::InPlace(view), axes, inverted });
            }
        }
        Self::copied(stream, array)
    }

    /// As [`new`](Self::new), for an operation of which several launches read the elements: those of one time. Others that have a second
    /// handle could write the array between the launches.
    pub(crate) fn at_one_time<S, D>(
        stream: &Stream<B>,
        array: &'a ArrayBase<S, D>,
        forwards: usize,
    ) -> Result<Self>
    where
        S: Storage<Elem = T, Backend = B>,
        D: Dimension,
    {
        match array.place_by(crate::KEY).memory.may_be_used_by_others() {
            true => Self::copied(stream, array),
            false => Self::new(stream, array, Some(forwards)),
        }
    }

    /// A packed copy, with the axes in the same order, and none backwards.
    fn copied<S, D>(stream: &Stream<B>, array: &ArrayBase<S, D>) -> Result<Self>
    where
        S: Storage<Elem = T, Backend = B>,
        D: Dimension,
    {
        let copy = stream.to_device(&of_device(stream, array)?)?;
        let (axes, inverted) = order_of(copy.layout());
        let elements = Elements::Copied(arranged(copy, &axes, &inverted)?);
        Ok(Self { elements, axes, inverted })
    }

    /// The elements of `array` in row-major order of its indices.
    pub(crate) fn row_major<S, D>(stream: &Stream<B>, array: &'a ArrayBase<S, D>) -> Result<Self>
    where
        S: Storage<Elem = T, Backend = B>,
        D: Dimension,
    {
        let axes: Axes = (0..array.ndim()).collect();
        let view = of_device(stream, array)?;
        let elements = match view.is_c_contiguous() {
            true => Elements::InPlace(view),
            false => Elements::Copied(packed(stream, &view)?),
        };
        Ok(Self { elements, axes, inverted: Axes::new() })
    }

    /// The elements of another array of the same shape, in the order of this one.
    pub(crate) fn beside<'b, S, D>(
        &self,
        stream: &Stream<B>,
        other: &'b ArrayBase<S, D>,
    ) -> Result<Operand<'b, S::Elem, B>>
    where
        S: Storage<Backend = B>,
        D: Dimension,
    {
        let (axes, inverted) = (self.axes.clone(), self.inverted.clone());
        let view = arranged(of_device(stream, other)?, &axes, &inverted)?;
        let elements = match view.is_c_contiguous() {
            true => Elements::InPlace(view),
            false => Elements::Copied(packed(stream, &view)?),
        };
        Ok(Operand { elements, axes, inverted })
    }

    /// The elements.
    pub(crate) fn view(&self) -> DeviceView<'_, T, IxDyn, B> {
        match &self.elements {
            Elements::InPlace(view) => view.view(),
            Elements::Copied(array) => array.view(),
        }
    }

    /// The lengths of the axes in the order of memory.
    pub(crate) fn shape(&self) -> SmallVec<[usize; 6]> {
        let shape = match &self.elements {
            Elements::InPlace(view) => view.shape(),
            Elements::Copied(array) => array.shape(),
        };
        shape.iter().copied().collect()
    }

    /// The place of an axis of the caller's array in the order of memory.
    pub(crate) fn place_of(&self, axis: usize) -> usize {
        self.axes.iter().position(|at| *at == axis).unwrap_or_default()
    }

    /// An array of the shape of the operand, with its axes as in the caller's array.
    pub(crate) fn restored<U: Element>(
        &self,
        array: DeviceArray<U, IxDyn, B>,
    ) -> Result<DeviceArray<U, IxDyn, B>> {
        restore(array, &self.axes, &self.inverted)
    }

    /// As [`restored`](Self::restored), for an array that lacks `axis`.
    pub(crate) fn restored_without<U: Element>(
        &self,
        axis: usize,
        array: DeviceArray<U, IxDyn, B>,
    ) -> Result<DeviceArray<U, IxDyn, B>> {
        let others = |axes: &Axes| -> Axes {
            axes.iter().filter(|at| **at != axis).map(|at| if *at > axis { at - 1 } else { *at }).collect()
        };
        restore(array, &others(&self.axes), &others(&self.inverted))
    }
}

/// A copy in row-major order.
fn packed<T: Element, B: Backend>(
    stream: &Stream<B>,
    view: &DeviceView<'_, T, IxDyn, B>,
) -> Result<DeviceArray<T, IxDyn, B>> {
    let mut copy = unwritten(stream, view.shape())?;
    stream.copy_to_device(&mut copy, view)?;
    Ok(copy)
}

/// An array without contents, of which the next launch or copy writes every element.
pub(crate) fn unwritten<T: Element, B: Backend>(
    stream: &Stream<B>,
    shape: &[usize],
) -> Result<DeviceArray<T, IxDyn, B>> {
    let empty = stream.uninit_array::<T, _>(IxDyn(shape))?;
    // SAFETY: the caller enqueues a kernel or a copy that writes every element, before it gives the array to other code.
    Ok(unsafe { empty.assume_init() })
}

/// Refuses an axis that is not there.
pub(crate) fn check_axis<B: Backend, S: Storage<Backend = B>, D: Dimension>(
    operation: &'static str,
    stream: &Stream<B>,
    array: &ArrayBase<S, D>,
    axis: Option<usize>,
) -> Result<()> {
    match axis {
        Some(axis) if axis >= array.ndim() => {
            let error = LayoutError::NoSuchAxis { axis: axis as isize, rank: array.ndim() };
            Err(stream.device().core_by(crate::KEY).error(operation, error))
        }
        _ => Ok(()),
    }
}

/// Refuses two arrays of different shapes.
pub(crate) fn check_shapes<B: Backend, S: Storage<Backend = B>, X: Storage<Backend = B>, D: Dimension>(
    operation: &'static str,
    stream: &Stream<B>,
    array: &ArrayBase<S, D>,
    other: &ArrayBase<X, D>,
) -> Result<()> {
    if array.shape() == other.shape() {
        return Ok(());
    }
    let (found, expected) = (other.shape().to_vec(), array.shape().to_vec());
    let error = LayoutError::ShapeMismatch { found, expected };
    Err(stream.device().core_by(crate::KEY).error(operation, error))
}

/// The axes of a layout, slowest first, and those that run backwards. Axes of one element are never turned.
fn order_of(layout: &Layout) -> (Axes, Axes) {
    let mut axes: Axes = (0..layout.ndim()).collect();
    let strides = layout.strides();
    if !layout.is_c_contiguous() {
        // The sort is stable: broadcast axes stay where they are.
        axes.sort_by_key(|axis| {
            std::cmp::Reverse(strides.get(*axis).map_or(0, |stride| stride.unsigned_abs()))
        });
    }
    let lengths = layout.shape().iter().zip(strides);
    let inverted = lengths.enumerate().filter(|(_, (length, stride))| **stride < 0 && **length > 1);
    let inverted = inverted.map(|(axis, _)| axis).collect();
    (axes, inverted)
}

fn arranged<S: Storage>(array: Dynamic<S>, axes: &[usize], inverted: &[usize]) -> Result<Dynamic<S>> {
    inverted.iter().try_fold(array, |array, axis| array.inverted_axis(*axis))?.permuted_axes(axes)
}

fn restore<S: Storage>(array: Dynamic<S>, axes: &[usize], inverted: &[usize]) -> Result<Dynamic<S>> {
    let mut back: Axes = SmallVec::from_elem(0, axes.len());
    for (place, axis) in axes.iter().enumerate() {
        if let Some(slot) = back.get_mut(*axis) {
            *slot = place;
        }
    }
    inverted.iter().try_fold(array.permuted_axes(&back)?, |array, axis| array.inverted_axis(*axis))
}
