//! Page-locking memory of other owners: for bindings of other languages.

use super::{
    HostArray, HostKind, Mapped, MappedRegisteredArray, Pinned, RegisterError, Registered, RegisteredArray,
};
use crate::{Device, Layout};
use gpumem_core::{Backend, Element};
use ndarray::Dimension;
use std::any::Any;

impl<B: Backend> Device<B> {
    /// As [`register`](Self::register), for elements at `lowest` in the layout `layout` that `owner` keeps alive: an array
    /// of another language. [`give_back`](HostArray::give_back) ends it; where the array is dropped instead, the memory is
    /// unlocked and its owner dropped by the next flush, after its last use.
    ///
    /// # Safety
    /// * From the lowest byte of the layout on, its elements are initialised memory of the host, aligned and valid for
    ///   reads and writes for as long as `owner` lives. The layout is that of `D` axes.
    /// * Other users of the memory order their accesses with the device's.
    ///
    /// # Errors
    /// As for [`register`](Self::register), with the owner.
    pub unsafe fn register_foreign<T: Element, D: Dimension, O: Any + Send + Sync>(
        &self,
        lowest: *mut u8,
        layout: &Layout,
        owner: O,
    ) -> Result<RegisteredArray<T, D, B>, RegisterError<O>> {
        // SAFETY: the caller's promise.
        unsafe { self.register_owner::<Pinned, T, D, O>("register", lowest, layout, owner, false) }
    }

    /// As [`register_foreign`](Self::register_foreign), and gives the memory a device address.
    ///
    /// # Safety
    /// As for [`register_foreign`](Self::register_foreign).
    ///
    /// # Errors
    /// As for [`register_mapped`](Self::register_mapped), with the owner.
    pub unsafe fn register_foreign_mapped<T: Element, D: Dimension, O: Any + Send + Sync>(
        &self,
        lowest: *mut u8,
        layout: &Layout,
        owner: O,
    ) -> Result<MappedRegisteredArray<T, D, B>, RegisterError<O>> {
        // SAFETY: the caller's promise.
        unsafe { self.register_owner::<Mapped, T, D, O>("register_mapped", lowest, layout, owner, true) }
    }
}

impl<K: HostKind, T: Element, D: Dimension + 'static, B: Backend> HostArray<Registered<'static, K>, T, D, B> {
    /// Waits for everything that uses the memory, unlocks it, and gives its owner back: the end of
    /// [`register_foreign`](Device::register_foreign).
    ///
    /// # Errors
    /// Returns [`InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) for an owner of another type. Otherwise
    /// as [`deregister`](Self::deregister).
    #[allow(clippy::result_large_err, reason = "the array is not lost")]
    pub fn give_back<O: Any>(self) -> Result<O, RegisterError<Self>> {
        self.take_back::<O>()
    }
}
