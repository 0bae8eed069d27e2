//! One array from one, or from two, element by element; arrays one behind the other.

use crate::{
    functions::of_first,
    kernel::{BinaryFunction, DeviceType, KernelDef, UnaryFunction, config_for_items},
    kernels::{self, GROUP, RUN},
    operand::{Operand, check_axis, check_shapes, unwritten},
};
use gpumem_core::{Backend, Element, ErrorKind, LayoutError, Result};
use gpumem_runtime::{ArrayBase, DeviceArray, Storage, Stream};
use ndarray::{Dimension, IxDyn};
use std::{any::TypeId, marker::PhantomData};

struct Key<T>(PhantomData<fn(T)>);

/// A function of each element of a packed array.
pub(crate) fn converted<T, R, F, B: Backend>(
    stream: &Stream<B>,
    x: &ArrayBase<impl Storage<Elem = T, Backend = B>, IxDyn>,
) -> Result<DeviceArray<R, IxDyn, B>>
where
    T: Element + DeviceType,
    R: Element + DeviceType,
    F: UnaryFunction<T, Output = R> + 'static,
{
    combined::<T, T, R, of_first<T, R, F>, B>(stream, x, x)
}

/// A function of the elements at each place of two packed arrays of one shape.
fn combined<T, U, R, F, B: Backend>(
    stream: &Stream<B>,
    x: &ArrayBase<impl Storage<Elem = T, Backend = B>, IxDyn>,
    y: &ArrayBase<impl Storage<Elem = U, Backend = B>, IxDyn>,
) -> Result<DeviceArray<R, IxDyn, B>>
where
    T: Element + DeviceType,
    U: Element + DeviceType,
    R: Element + DeviceType,
    F: BinaryFunction<T, U, Output = R> + 'static,
{
    let mut out = unwritten::<R, B>(stream, x.shape())?;
    if !out.is_empty() {
        let key = TypeId::of::<Key<(T, U, R, F)>>();
        let declare = kernels::zip_map::<T, U, R, F>;
        let kernel = KernelDef::load_once_by(crate::KEY, stream.device(), key, declare)?;
        let dims = config_for_items(out.len().div_ceil(RUN), GROUP);
        kernel.launch(stream, &dims, (x, y, &mut out))?;
    }
    Ok(out)
}

pub(crate) fn map<T, R, F, B: Backend, S, D>(
    stream: &Stream<B>,
    array: &ArrayBase<S, D>,
) -> Result<DeviceArray<R, IxDyn, B>>
where
    T: Element + DeviceType,
    R: Element + DeviceType,
    F: UnaryFunction<T, Output = R> + 'static,
    S: Storage<Elem = T, Backend = B>,
    D: Dimension,
{
    let operand = Operand::new(stream, array, None)?;
    let mapped = converted::<T, R, F, B>(stream, &operand.view())?;
    operand.restored(mapped)
}

pub(crate) fn zip_map<R, F, B: Backend, S, X, D>(
    stream: &Stream<B>,
    array: &ArrayBase<S, D>,
    other: &ArrayBase<X, D>,
) -> Result<DeviceArray<R, IxDyn, B>>
where
    S: Storage<Backend = B, Elem: DeviceType>,
    X: Storage<Backend = B, Elem: DeviceType>,
    R: Element + DeviceType,
    F: BinaryFunction<S::Elem, X::Elem, Output = R> + 'static,
    D: Dimension,
{
    check_shapes("zip_map", stream, array, other)?;
    let first = Operand::new(stream, array, None)?;
    let second = first.beside(stream, other)?;
    let combined = combined::<S::Elem, X::Elem, R, F, B>(stream, &first.view(), &second.view())?;
    first.restored(combined)
}

/// Copies arrays into a new one, one behind the other along an axis. It has finished on return.
/// ```
/// use gpumem_ops::concatenate;
/// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
/// let (x, y) = (device.to_device(&[1, 2])?, device.to_device(&[3])?);
/// assert_eq!(concatenate(0, &[&x, &y])?.copy_to_host()?, ndarray::array![1, 2, 3]);
/// # Ok::<(), gpumem_core::Error>(())
/// ```
///
/// # Errors
/// Returns [`InvalidArgument`](ErrorKind::InvalidArgument) without arrays, [`NoSuchAxis`](LayoutError::NoSuchAxis) if there is no
/// such axis, [`ShapeMismatch`](LayoutError::ShapeMismatch) if other axes differ in length, and
/// [`OutOfMemory`](ErrorKind::OutOfMemory) if the device has no room.
pub fn concatenate<S: Storage, D: Dimension>(
    axis: usize,
    arrays: &[&ArrayBase<S, D>],
) -> Result<DeviceArray<S::Elem, D, S::Backend>> {
    let Some(first) = arrays.first() else {
        return Err(gpumem_core::Error::new("", "concatenate", NO_ARRAYS));
    };
    arrays.iter().try_for_each(|array| array.place_by(crate::KEY).wait_before("concatenate", false))?;
    let all = concatenate_on(&first.device()?.default_stream()?, axis, arrays)?;
    all.synchronize()?;
    Ok(all)
}

const NO_ARRAYS: ErrorKind = ErrorKind::InvalidArgument { why: "there are no arrays, so no shape is known" };

/// Copies arrays into a new one on a stream, as [`concatenate`] does, and returns at once.
///
/// # Errors
/// As for [`concatenate`].
pub fn concatenate_on<B: Backend, S: Storage<Backend = B>, D: Dimension>(
    stream: &Stream<B>,
    axis: usize,
    arrays: &[&ArrayBase<S, D>],
) -> Result<DeviceArray<S::Elem, D, B>> {
    const OPERATION: &str = "concatenate";
    let core = stream.device().core_by(crate::KEY);
    let Some(first) = arrays.first() else {
        return Err(core.error(OPERATION, NO_ARRAYS));
    };
    check_axis(OPERATION, stream, *first, Some(axis))?;
    let mut shape = first.raw_dim();
    let mut length = 0usize;
    for array in arrays {
        let mut same = array.raw_dim();
        if same.ndim() == shape.ndim() {
            same[axis] = shape[axis];
        }
        if same != shape {
            let (found, expected) = (array.shape().to_vec(), first.shape().to_vec());
            let error = LayoutError::ShapeMismatch { found, expected };
            return Err(core.error(OPERATION, error));
        }
        // A sum that is too large for an array is refused by its allocation.
        length = length.saturating_add(array.shape().get(axis).copied().unwrap_or_default());
    }
    shape[axis] = length;
    let empty = stream.uninit_array::<S::Elem, _>(shape)?;
    // SAFETY: the copies below write every element, and are ordered before every later use; after an error it is dropped.
    let mut all = unsafe { empty.assume_init() };
    let mut at = 0;
    for array in arrays {
        let length = array.shape().get(axis).copied().unwrap_or_default();
        let (_, mut rest) = all.split_at_mut(axis, at)?;
        let (mut part, _) = rest.split_at_mut(axis, length)?;
        stream.copy_to_device(&mut part, &array.view())?;
        at += length;
    }
    Ok(all)
}
