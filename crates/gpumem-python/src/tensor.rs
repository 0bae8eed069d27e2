//! Tensors and Python's lock. What deletes another library's takes it where it deletes objects of Python, as NumPy's deleter does, on
//! whichever thread that is: so it is called as all code of Python is. The end of the library's own waits for the queue of a stream, which
//! another thread may have, and that thread for Python's lock: so it is called without.

use crate::attach::{Code, attach, without_lock};
use gpumem::{
    DlpackTensor,
    dlpack::abi::{DLManagedTensor, DLManagedTensorVersioned, DLPackVersion},
};
use std::{
    mem::{ManuallyDrop, forget},
    ptr::NonNull,
};

/// A tensor as its consumer sees it: with another deleter.
#[repr(C)]
struct Deleted<T> {
    /// The deleter gets its address, so it is the first.
    seen: T,
    own: ManuallyDrop<DlpackTensor>,
    end: fn(DlpackTensor),
}

impl<T> Drop for Deleted<T> {
    fn drop(&mut self) {
        // SAFETY: it is taken here only, and `self` is not used again.
        (self.end)(unsafe { ManuallyDrop::take(&mut self.own) });
    }
}

unsafe extern "C" fn delete<T>(seen: *mut T) {
    // SAFETY: `leak` has made it, and a tensor is deleted once.
    drop(unsafe { Box::from_raw(seen.cast::<Deleted<T>>()) });
}

fn leak<T>(seen: T, own: DlpackTensor, end: fn(DlpackTensor)) -> NonNull<T> {
    NonNull::from(Box::leak(Box::new(Deleted { seen, own: ManuallyDrop::new(own), end }))).cast()
}

/// Another library's tensor with a deleter that begins only before the end of Python, which then waits for it.
pub(crate) fn deleted_before_the_end(tensor: DlpackTensor) -> DlpackTensor {
    deleted_by(tensor, |tensor| {
        let mut own = Some(tensor);
        let _ = attach(Code::Deleter, |_| drop(own.take()));
        // Python has ended: a deleter that asks for its lock would end the thread in the middle of its functions.
        forget(own);
    })
}

/// A tensor of the library's own, for others, with a deleter that gives Python's lock up.
pub(crate) fn deleted_without_lock(tensor: DlpackTensor) -> DlpackTensor {
    deleted_by(tensor, |tensor| {
        without_lock(Code::Deleter, || drop(tensor));
    })
}

fn deleted_by(tensor: DlpackTensor, end: fn(DlpackTensor)) -> DlpackTensor {
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
            return unsafe { DlpackTensor::from_versioned(leak(seen, own, end)) };
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
            unsafe { DlpackTensor::from_unversioned(leak(seen, own, end)) }
        }
        Err(tensor) => tensor,
    }
}
