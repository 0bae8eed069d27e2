//! A reference that is not counted, next to one that is.

use std::{mem::ManuallyDrop, ops::Deref, ptr, sync::Arc};

/// Points to the value of an `Arc`, without a count.
pub(super) struct BorrowedArc<T>(ManuallyDrop<Arc<T>>);

impl<T> BorrowedArc<T> {
    /// # Safety
    /// An `Arc` of the same value lives as long as the result.
    pub(super) unsafe fn of(counted: &Arc<T>) -> Self {
        // SAFETY: the copy is never dropped, so no count goes down that did not go up; the caller keeps the value alive.
        Self(ManuallyDrop::new(unsafe { ptr::read(counted) }))
    }
}

impl<T> Deref for BorrowedArc<T> {
    type Target = Arc<T>;

    #[inline]
    fn deref(&self) -> &Arc<T> {
        &self.0
    }
}
