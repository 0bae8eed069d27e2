//! Reductions as functions that MPI calls.

use crate::Reduction;
use gpumem_core::Element;
use std::{any::TypeId, ffi::c_void};

/// A function of MPI's type `MPI_User_function_c`: reads elements at `input`, combines them into those at `in_out`.
pub(crate) type Combine =
    unsafe extern "C" fn(input: *mut c_void, in_out: *mut c_void, count: *mut i64, datatype: *mut c_void);

/// A reduction over elements whose type is known only here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub(crate) element: TypeId,
    pub(crate) bytes: usize,
    pub(crate) combine: Combine,
    finish: unsafe fn(*mut c_void, usize, usize),
}

impl Step {
    pub(crate) fn of<T: Element, R: Reduction<T>>() -> Self {
        Self {
            element: TypeId::of::<T>(),
            bytes: size_of::<T>(),
            combine: combine::<T, R>,
            finish: finish::<T, R>,
        }
    }

    /// Turns combined elements into the result for so many ranks.
    ///
    /// # Safety
    /// The address is aligned for the elements and valid for so many; no other code uses them meanwhile.
    pub(crate) unsafe fn finish(&self, address: *mut c_void, count: usize, ranks: usize) {
        // SAFETY: passed on to the caller.
        unsafe { (self.finish)(address, count, ranks) };
    }
}

/// As the library calls it: the elements at `input` are combined into those at `in_out`.
///
/// # Safety
/// Both addresses are aligned and valid for `*count` elements of `T`, and are apart.
unsafe extern "C" fn combine<T: Element, R: Reduction<T>>(
    input: *mut c_void,
    in_out: *mut c_void,
    count: *mut i64,
    _: *mut c_void,
) {
    // SAFETY: the library passes a place with the number.
    let count = usize::try_from(unsafe { *count }).unwrap_or(0);
    let (input, in_out) = (input.cast::<T>(), in_out.cast::<T>());
    for index in 0..count {
        // SAFETY: both are valid for `count` elements (the caller's promise). The library's own buffers may be less aligned
        // than `T`.
        unsafe {
            let value = R::combine(input.add(index).read_unaligned(), in_out.add(index).read_unaligned());
            in_out.add(index).write_unaligned(value);
        }
    }
}

/// # Safety
/// The address is aligned and valid for `count` elements of `T`, which no other code uses.
unsafe fn finish<T: Element, R: Reduction<T>>(address: *mut c_void, count: usize, ranks: usize) {
    // SAFETY: the caller's promise.
    let values = unsafe { std::slice::from_raw_parts_mut(address.cast::<T>(), count) };
    for value in values {
        *value = R::finish(*value, ranks);
    }
}
