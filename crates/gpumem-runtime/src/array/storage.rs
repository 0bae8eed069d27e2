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

macro_rules! storages {
    ($($storage:ty, $owner:ty, $name:literal;)*) => {$(
        impl<T, B> sealed::SealedStorage for $storage {}
        impl<T, B: Backend> OnBackend for $storage {
            type Backend = B;
            type Owner = $owner;
        }
        impl<T: Element, B: Backend> Storage for $storage {
            type Elem = T;
            const NAME: &'static str = $name;
        }
    )*};
}
storages! {
    Owned<T, B>, (), "DeviceArray";
    Imported<T, B>, (), "ImportedArray";
    Frozen<T, B>, Arc<FrozenMemory<B>>, "FrozenArray";
    Shared<'_, T, B>, (), "DeviceView";
    Exclusive<'_, T, B>, (), "DeviceViewMut";
}
impl<T: Element, B: Backend> StorageMut for Owned<T, B> {}
impl<T: Element, B: Backend> StorageMut for Exclusive<'_, T, B> {}
