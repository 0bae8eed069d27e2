//! Tensors of other libraries. What deletes them takes Python's lock where it deletes objects of Python, as NumPy's deleter does, on
//! whichever thread that is: so it is called as all code of Python is.

use crate::attach::{Code, attach};
use gpumem::{
    DlpackTensor,
    dlpack::abi::{DLManagedTensor, DLManagedTensorVersioned, DLPackVersion},
};
use std::{
    mem::{ManuallyDrop, forget},
    ptr::NonNull,
};

/// A tensor as the library sees it: with a deleter of its own.
#[repr(C)]
struct Deleted<T> {
    /// The deleter gets its address, so it is the first.
    seen: T,
    own: ManuallyDrop<DlpackTensor>,
}

impl<T> Drop for Deleted<T> {
    fn drop(&mut self) {
        // SAFETY: it is taken here only, and `self` is not used again.
        let mut own = Some(unsafe { ManuallyDrop::take(&mut self.own) });
        let _ = attach(Code::Deleter, |_| drop(own.take()));
        // Python has ended: a deleter that asks for its lock would end the thread in the middle of its functions.
        forget(own);
    }
}

unsafe extern "C" fn delete<T>(seen: *mut T) {
    // SAFETY: `leak` has made it, and a tensor is deleted once.
    drop(unsafe { Box::from_raw(seen.cast::<Deleted<T>>()) });
}

fn leak<T>(seen: T, own: DlpackTensor) -> NonNull<T> {
    NonNull::from(Box::leak(Box::new(Deleted { seen, own: ManuallyDrop::new(own) }))).cast()
}

/// The tensor with a deleter that begins only before the end of Python, which then waits for it.
pub(crate) fn deleted_before_the_end(tensor: DlpackTensor) -> DlpackTensor {
    let tensor = match tensor.into_versioned() {
        Ok(pointer) => {
            // SAFETY: the tensor is alive; the version is at the same place in every version.
            let DLPackVersion { major, .. } = unsafe { (*pointer.as_ptr()).version };
            // SAFETY: it was one before.
            let own = unsafe { DlpackTensor::from_versioned(pointer) };
            if major != 1 {
                // It is refused and dropped by the call that has it.
                return own;
            }
            // SAFETY: of a version whose structure is known. It is plain data, and what it points to is the tensor's, which is kept.
            let seen = DLManagedTensorVersioned { deleter: Some(delete), ..unsafe { pointer.read() } };
            // SAFETY: as the tensor itself, which is kept until this one is deleted.
            return unsafe { DlpackTensor::from_versioned(leak(seen, own)) };
        }
        Err(tensor) => tensor,
    };
    match tensor.into_unversioned() {
        Ok(pointer) => {
            // SAFETY: as above.
            let own = unsafe { DlpackTensor::from_unversioned(pointer) };
            // SAFETY: as above.
            let seen = DLManagedTensor { deleter: Some(delete), ..unsafe { pointer.read() } };
            // SAFETY: as above.
            unsafe { DlpackTensor::from_unversioned(leak(seen, own)) }
        }
        Err(tensor) => tensor,
    }
}
