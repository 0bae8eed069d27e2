//! The arrays of the caller that can be page-locked together, and their types while they are locked.

use super::{HostArray, HostKind, Registered, pin_scope::PinScope};
use crate::Device;
use gpumem_core::{Backend, Element, ErrorKind, Result};
use ndarray::{ArrayViewMut, Dimension};
use std::fmt;

mod sealed {
    pub trait SealedLockArrays {}
}

/// Arrays of the caller that are page-locked together: an array or a vector of mutable views, or a tuple of up to six, of
/// any element types and ranks. Each is locked at its own position.
pub trait LockArrays<'env, B: Backend>: sealed::SealedLockArrays {
    /// The same with the locked arrays.
    type PinGuard<'scope, K: HostKind>;

    /// Locks each array.
    ///
    /// # Safety
    /// As [`PinScope::add`].
    #[doc(hidden)]
    unsafe fn lock<'scope, K: HostKind>(self, locks: &Locking<'_, B>) -> Result<Self::PinGuard<'scope, K>>;
}

/// Locks the arrays of one call.
#[doc(hidden)]
pub struct Locking<'a, B: Backend> {
    pub(super) set: &'a PinScope<B>,
    pub(super) device: &'a Device<B>,
    pub(super) operation: &'static str,
    pub(super) mapped: bool,
}

impl<B: Backend> fmt::Debug for Locking<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locking").field("operation", &self.operation).finish_non_exhaustive()
    }
}

type LockedArray<'scope, K, T, D, B> = HostArray<Registered<'scope, K>, T, D, B>;

impl<B: Backend> Locking<'_, B> {
    /// # Safety
    /// As [`PinScope::add`].
    unsafe fn add<'scope, K: HostKind, T: Element, D: Dimension>(
        &self,
        array: ArrayViewMut<'_, T, D>,
    ) -> Result<LockedArray<'scope, K, T, D, B>> {
        // SAFETY: the caller's promise.
        unsafe { self.set.add(self.device, self.operation, array, self.mapped) }
    }
}

impl<T, D> sealed::SealedLockArrays for Vec<ArrayViewMut<'_, T, D>> {}
impl<'env, T: Element, D: Dimension, B: Backend> LockArrays<'env, B> for Vec<ArrayViewMut<'env, T, D>> {
    type PinGuard<'scope, K: HostKind> = Vec<LockedArray<'scope, K, T, D, B>>;

    unsafe fn lock<'scope, K: HostKind>(self, locks: &Locking<'_, B>) -> Result<Self::PinGuard<'scope, K>> {
        // SAFETY: the caller's promise.
        self.into_iter().map(|array| unsafe { locks.add(array) }).collect()
    }
}

impl<T, D, const N: usize> sealed::SealedLockArrays for [ArrayViewMut<'_, T, D>; N] {}
impl<'env, T: Element, D: Dimension, B: Backend, const N: usize> LockArrays<'env, B>
    for [ArrayViewMut<'env, T, D>; N]
{
    type PinGuard<'scope, K: HostKind> = [LockedArray<'scope, K, T, D, B>; N];

    unsafe fn lock<'scope, K: HostKind>(self, locks: &Locking<'_, B>) -> Result<Self::PinGuard<'scope, K>> {
        // SAFETY: the caller's promise.
        let locked: Vec<_> = unsafe { Vec::from(self).lock::<K>(locks)? };
        let why = "as many arrays are locked as were given";
        let mismatch = |_| locks.device.core().error(locks.operation, ErrorKind::InvalidArgument { why });
        locked.try_into().map_err(mismatch)
    }
}

macro_rules! tuples {
    ($(($($array:ident $element:ident $rank:ident)*))*) => {$(
        impl<$($element, $rank),*> sealed::SealedLockArrays for ($(ArrayViewMut<'_, $element, $rank>,)*) {}
        impl<'env, BE: Backend, $($element: Element, $rank: Dimension),*> LockArrays<'env, BE>
            for ($(ArrayViewMut<'env, $element, $rank>,)*)
        {
            type PinGuard<'scope, K: HostKind> = ($(LockedArray<'scope, K, $element, $rank, BE>,)*);

            unsafe fn lock<'scope, K: HostKind>(
                self,
                locks: &Locking<'_, BE>,
            ) -> Result<Self::PinGuard<'scope, K>> {
                let ($($array,)*) = self;
                // SAFETY: the caller's promise.
                Ok(($(unsafe { locks.add($array)? },)*))
            }
        }
    )*};
}
tuples! {
    (a T1 D1) (a T1 D1 b T2 D2) (a T1 D1 b T2 D2 c T3 D3) (a T1 D1 b T2 D2 c T3 D3 d T4 D4)
    (a T1 D1 b T2 D2 c T3 D3 d T4 D4 e T5 D5) (a T1 D1 b T2 D2 c T3 D3 d T4 D4 e T5 D5 f T6 D6)
}
