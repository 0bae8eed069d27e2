//! Arrays of any layout as packed elements: the engines move runs of bytes.

use crate::call::Place;
use gpumem_core::{Backend, Element, Result};
use gpumem_runtime::{
    ArrayBase, DeviceArray, DeviceViewMut, Storage, StorageMut, Stream, UninitArray, internal::Access,
};
use ndarray::Dimension;

/// Returns the submission.
type Copy<'a, B> = dyn FnOnce(&Stream<B>) -> Result<u64> + 'a;

/// The step that copies what was received to where it belongs.
pub(crate) struct Unpack<'a, B: Backend> {
    copy: Box<Copy<'a, B>>,
    /// Where that is.
    pub(crate) target: Place<'static, B>,
}

impl<B: Backend> Unpack<'_, B> {
    /// Enqueues it, after all calls of its operation. Returns the submission.
    pub(crate) fn copy(self, stream: &Stream<B>) -> Result<u64> {
        (self.copy)(stream)
    }
}

/// Where an operation puts the elements of a destination.
pub(crate) struct Destination<'a, B: Backend> {
    place: Place<'a, B>,
    /// From there, where the destination has another layout.
    unpack: Option<Unpack<'a, B>>,
}

impl<'a, B: Backend> Destination<'a, B> {
    pub(crate) fn place(&self) -> &Place<'a, B> {
        &self.place
    }

    /// For one call that writes all of it.
    pub(crate) fn whole(self) -> (Place<'a, B>, Option<Unpack<'a, B>>) {
        (self.place, self.unpack)
    }

    /// For a call that writes a part of it, and leaves the rest as it is.
    pub(crate) fn with_part(self, part: Place<'a, B>) -> Self {
        Self { place: part, ..self }
    }

    /// For calls that write so many bytes each, one after the other, and together all of it.
    pub(crate) fn blocks(self, bytes: &[usize]) -> (Vec<Place<'a, B>>, Option<Unpack<'a, B>>) {
        debug_assert_eq!(bytes.iter().sum::<usize>(), self.place.extent.len(), "the blocks are the whole");
        let mut before = 0;
        let block = |bytes: &usize| {
            let block = self.place.part(before, *bytes);
            before += bytes;
            block
        };
        (bytes.iter().map(block).collect(), self.unpack)
    }
}

/// A packed copy of the elements, in stream order. Poisoned if they are.
fn packed<S: Storage, D: Dimension>(
    stream: &Stream<S::Backend>,
    operation: &'static str,
    array: &ArrayBase<S, D>,
) -> Result<DeviceArray<S::Elem, D, S::Backend>> {
    let copy = room(stream, operation, array)?;
    // SAFETY: the copy that is enqueued next writes every element, or its failure keeps them from being read.
    let mut copy = unsafe { copy.assume_init() };
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

/// Memory for the packed elements.
fn room<S: Storage, D: Dimension>(
    stream: &Stream<S::Backend>,
    operation: &'static str,
    array: &ArrayBase<S, D>,
) -> Result<UninitArray<S::Elem, D, S::Backend>> {
    let room = stream.uninit_array::<S::Elem, _>(array.raw_dim());
    room.map_err(|error| error.in_operation(operation))
}

/// The room of a destination, with its elements or without.
enum Room<T: Element, D: Dimension, B: Backend> {
    Kept(DeviceArray<T, D, B>),
    New(UninitArray<T, D, B>),
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
) -> Result<Destination<'a, B>> {
    if array.is_c_contiguous() {
        return Ok(Destination { place: Place::of(array), unpack: None });
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
) -> Result<Destination<'a, B>> {
    if array.is_c_contiguous() {
        return Ok(Destination { place: Place::of(&array).into_owned(), unpack: None });
    }
    let (room, place) = if keeps {
        // An operation that leaves elements as they are needs them there before.
        let room = packed(stream, operation, &array)?;
        let place = Place::of(&room).into_owned();
        (Room::Kept(room), place)
    } else {
        let room = room(stream, operation, &array)?;
        let place = Place::of_room(&room);
        (Room::New(room), place)
    };
    // Poisoned with the packed copy if the operation fails: the copy to it is then skipped.
    let target = Place::of(&array).into_owned();
    let mut unpack = move |stream: &Stream<B>, room: &DeviceArray<T, D, B>| {
        stream.copy_to_device_by(crate::KEY, &mut array, room).map_err(|error| error.in_operation(operation))
    };
    let copy: Box<Copy<'a, B>> = match room {
        Room::Kept(room) => Box::new(move |stream| unpack(stream, &room)),
        Room::New(room) => Box::new(move |stream| {
            // SAFETY: a batch holds all calls of the operation, which write every element or keep them from being read by their
            // failure, and enqueues them before this.
            unpack(stream, &unsafe { room.assume_init() })
        }),
    };
    Ok(Destination { place, unpack: Some(Unpack { copy, target }) })
}
