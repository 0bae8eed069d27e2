//! Arrays of any layout as packed elements: the engines move runs of bytes.

use crate::call::Place;
use gpumem_core::{Backend, Element, Result};
use gpumem_runtime::{ArrayBase, DeviceArray, DeviceViewMut, Storage, StorageMut, Stream, internal::Access};
use ndarray::Dimension;

type Copy<'a, B> = dyn FnOnce(&Stream<B>) -> Result<()> + 'a;

/// The step that copies what was received to where it belongs.
pub(crate) struct Unpack<'a, B: Backend> {
    pub(crate) copy: Box<Copy<'a, B>>,
    /// Where that is.
    pub(crate) target: Place<'static, B>,
}

/// A packed copy of the elements, in stream order. Poisoned if they are.
fn packed<S: Storage, D: Dimension>(
    stream: &Stream<S::Backend>,
    operation: &'static str,
    array: &ArrayBase<S, D>,
) -> Result<DeviceArray<S::Elem, D, S::Backend>> {
    let mut copy = room(stream, operation, array)?;
    let Err(error) = stream.copy_to_device(&mut copy, array) else { return Ok(copy) };
    if !error.is_poisoned() {
        return Err(error.in_operation(operation));
    }
    // The copy is as bad as the array, from its turn on the stream: work that used the memory before may be under way. The engine
    // judges it as an array that needs no copy, because other ranks may have to know.
    let place = Place::of(&copy);
    let written = Access::write(&place.memory, place.extent.clone());
    stream.timeline_by(crate::KEY).poison(operation, &[written], &error);
    Ok(copy)
}

/// Memory for the packed elements. All of it is written before it is read.
fn room<S: Storage, D: Dimension>(
    stream: &Stream<S::Backend>,
    operation: &'static str,
    array: &ArrayBase<S, D>,
) -> Result<DeviceArray<S::Elem, D, S::Backend>> {
    let room = stream.uninit_array::<S::Elem, _>(array.raw_dim());
    // SAFETY: the copy or the operation that is enqueued next writes every element, or its failure keeps them from being read.
    Ok(unsafe { room.map_err(|error| error.in_operation(operation))?.assume_init() })
}

/// The packed elements of a source.
#[inline]
pub(crate) fn source<'a, B: Backend, S: Storage<Backend = B>, D: Dimension>(
    stream: &Stream<B>,
    operation: &'static str,
    array: &'a ArrayBase<S, D>,
) -> Result<Place<'a, B>> {
    if array.is_c_contiguous() {
        return Ok(Place::of(array));
    }
    // The log of uses keeps its memory alive.
    packed(stream, operation, array).map(|copy| Place::of(&copy).into_owned())
}

/// As [`destination`], for an array: of a contiguous one no view is made.
#[inline]
pub(crate) fn destination_of<'a, B: Backend, S: StorageMut<Backend = B>, D: Dimension + 'a>(
    stream: &Stream<B>,
    operation: &'static str,
    array: &'a mut ArrayBase<S, D>,
    keeps: bool,
) -> Result<(Place<'a, B>, Option<Unpack<'a, B>>)> {
    if array.is_c_contiguous() {
        return Ok((Place::of(array), None));
    }
    destination(stream, operation, array.view_mut(), keeps)
}

/// Room for the packed elements of a destination, and the step that copies them there. `keeps` says whether the room
/// begins with the elements that the destination has.
pub(crate) fn destination<'a, B: Backend, T: Element, D: Dimension + 'a>(
    stream: &Stream<B>,
    operation: &'static str,
    mut array: DeviceViewMut<'a, T, D, B>,
    keeps: bool,
) -> Result<(Place<'a, B>, Option<Unpack<'a, B>>)> {
    if array.is_c_contiguous() {
        return Ok((Place::of(&array).into_owned(), None));
    }
    // An operation that leaves elements as they are needs them there before.
    let room = if keeps { packed(stream, operation, &array)? } else { room(stream, operation, &array)? };
    let place = Place::of(&room).into_owned();
    // Poisoned with the packed copy if the operation fails: the copy to it is then skipped.
    let target = Place::of(&array).into_owned();
    let copy = move |stream: &Stream<B>| {
        stream.copy_to_device(&mut array, &room).map_err(|error| error.in_operation(operation))
    };
    Ok((place, Some(Unpack { copy: Box::new(copy), target })))
}
