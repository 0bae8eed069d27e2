//! The owner of an array's memory.

use crate::device::FrozenMemory;
use gpumem_core::{Backend, Element};
use std::{marker::PhantomData, sync::Arc};

mod sealed {
    pub trait SealedStorage {}
}

/// The backend that holds the memory of an array of any elements. An array requires no more, so that the compiler
/// reports an invalid element type once, where it is written, and not for each array of it.
pub trait OnBackend: sealed::SealedStorage {
    /// Backend of the device.
    type Backend: Backend;
    /// What such an array holds beside its memory.
    #[doc(hidden)]
    type Owner: std::fmt::Debug;
}

/// How an array holds its memory.
pub trait Storage: OnBackend {
    /// Element type.
    type Elem: Element;
    /// The word for it.
    const NAME: &'static str;
}

/// Storage that may be written through.
pub trait StorageMut: Storage {}

/// The array owns its memory.
#[derive(Debug)]
pub struct Owned<T, B>(PhantomData<(T, B)>);
/// The array holds foreign memory, which may be read.
#[derive(Debug)]
pub struct Imported<T, B>(PhantomData<(T, B)>);
/// The array shares memory that nothing writes any more.
#[derive(Debug)]
pub struct Frozen<T, B>(PhantomData<(T, B)>);
/// The array is a shared view.
#[derive(Debug)]
pub struct Shared<'a, T, B>(PhantomData<(&'a T, B)>);
/// The array is a mutable view, and the only one of its elements.
#[derive(Debug)]
pub struct Exclusive<'a, T, B>(PhantomData<(&'a mut T, B)>);

impl<T, B> sealed::SealedStorage for Owned<T, B> {}
impl<T, B> sealed::SealedStorage for Imported<T, B> {}
impl<T, B> sealed::SealedStorage for Frozen<T, B> {}
impl<T, B> sealed::SealedStorage for Shared<'_, T, B> {}
impl<T, B> sealed::SealedStorage for Exclusive<'_, T, B> {}

impl<T, B: Backend> OnBackend for Owned<T, B> {
    type Backend = B;
    type Owner = ();
}
impl<T: Element, B: Backend> Storage for Owned<T, B> {
    type Elem = T;
    const NAME: &'static str = "DeviceArray";
}
impl<T, B: Backend> OnBackend for Imported<T, B> {
    type Backend = B;
    type Owner = ();
}
impl<T: Element, B: Backend> Storage for Imported<T, B> {
    type Elem = T;
    const NAME: &'static str = "ImportedArray";
}
impl<T, B: Backend> OnBackend for Frozen<T, B> {
    type Backend = B;
    type Owner = Arc<FrozenMemory<B>>;
}
impl<T: Element, B: Backend> Storage for Frozen<T, B> {
    type Elem = T;
    const NAME: &'static str = "FrozenArray";
}
impl<T, B: Backend> OnBackend for Shared<'_, T, B> {
    type Backend = B;
    type Owner = ();
}
impl<T: Element, B: Backend> Storage for Shared<'_, T, B> {
    type Elem = T;
    const NAME: &'static str = "DeviceView";
}
impl<T, B: Backend> OnBackend for Exclusive<'_, T, B> {
    type Backend = B;
    type Owner = ();
}
impl<T: Element, B: Backend> Storage for Exclusive<'_, T, B> {
    type Elem = T;
    const NAME: &'static str = "DeviceViewMut";
}

impl<T: Element, B: Backend> StorageMut for Owned<T, B> {}
impl<T: Element, B: Backend> StorageMut for Exclusive<'_, T, B> {}
