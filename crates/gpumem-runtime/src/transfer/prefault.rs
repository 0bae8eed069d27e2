//! Pages of a new array that have not been touched yet.
//!
//! The system clears a page when it is written for the first time, and takes longer for that than a copy takes. So the
//! threads of a download make pages ready while they wait for the copy engine, each a huge page that no other touches.

use super::{TUNING, sides::HostSpan};
use gpumem_core::{Element, Error, ErrorKind, Result, process};
use ndarray::{Array, Dimension, StrideShape};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A host array of zeros. Where the memory does not suffice, an error instead of the end of the process.
pub(crate) fn zeros<T: Element, D: Dimension>(
    operation: &'static str,
    shape: StrideShape<D>,
) -> Result<Array<T, D>> {
    let out_of_memory = || {
        let requested = shape.size().saturating_mul(size_of::<T>());
        let kind = ErrorKind::OutOfMemory { requested, kind: "host", free: 0, total: 0, pressure: None };
        Error::new("", operation, kind)
    };
    let elements: Vec<T> =
        bytemuck::allocation::try_zeroed_vec(shape.size()).map_err(|()| out_of_memory())?;
    let bytes = size_of_val(&elements[..]);
    if bytes >= TUNING.huge_pages_from {
        // The pages have not been touched yet; filling them is most of the cost of a large download.
        process::advise_huge_pages(elements.as_ptr().cast(), bytes);
    }
    Array::from_shape_vec(shape.clone(), elements).map_err(|_| out_of_memory())
}

/// A packed destination in memory of the library's own making, as far as its pages have been made ready.
#[derive(Debug)]
pub(super) struct Prefault {
    base: *mut u8,
    bytes: usize,
    /// Where the next step begins, in bytes from `base`.
    next: AtomicUsize,
}

// SAFETY: the pointer is `HostSpan`'s, and is used under the same rules.
unsafe impl Send for Prefault {}
// SAFETY: as above; threads make disjoint steps ready.
unsafe impl Sync for Prefault {}

impl Prefault {
    /// Bytes that are prefaulted at a time: a huge page of x86-64 and of arm64 with pages of 4 KiB.
    pub(super) const STEP: usize = 2 << 20;

    /// `bytes` from the caller's lowest element on, none of which anybody else uses.
    pub(super) fn new(host_span: &HostSpan, bytes: usize) -> Self {
        Self { base: host_span.base, bytes, next: AtomicUsize::new(0) }
    }

    /// Makes the next pages ready. `false`: there are none, or the system makes them ready in its own time.
    ///
    /// # Safety
    /// The destination is valid for writes.
    pub(super) unsafe fn step(&self) -> bool {
        let at = self.next.load(Ordering::Relaxed);
        // Whole huge pages, for any begin of the array.
        let end =
            ((self.base.addr() + at + 1).next_multiple_of(Self::STEP) - self.base.addr()).min(self.bytes);
        if at >= self.bytes {
            return false;
        }
        if self.next.compare_exchange(at, end, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return true;
        }
        // SAFETY: the caller's promise.
        let is_ready = unsafe { process::prefault_pages(self.base.wrapping_add(at), end - at) };
        if !is_ready {
            self.next.store(self.bytes, Ordering::Relaxed);
        }
        is_ready
    }

    /// Makes pages ready up to `end`, as far as no other thread is just doing it.
    ///
    /// # Safety
    /// As for [`step`](Self::step).
    pub(super) unsafe fn up_to(&self, end: usize) {
        // SAFETY: the caller's promise.
        while self.next.load(Ordering::Relaxed) < end.min(self.bytes) && unsafe { self.step() } {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array1;

    #[test]
    #[cfg_attr(miri, ignore = "minutes of looking at bytes; there are no pages under Miri")]
    fn every_page_is_touched_once_without_changes() {
        for (bytes, skip) in [(5 << 20, 0), ((6 << 20) + 123, 1), (100, 0), (0, 0)] {
            let mut memory = Array1::from_elem(bytes + skip, 7_u8);
            let host_span = HostSpan::writing("test", &mut memory.view_mut().into_dyn()).unwrap();
            let host_span = HostSpan { base: host_span.base.wrapping_add(skip), ..host_span };
            let prefault = Prefault::new(&host_span, bytes);
            let mut steps = 0;
            // SAFETY: this test owns the array.
            unsafe {
                prefault.up_to(bytes / 2);
                assert!(prefault.next.load(Ordering::Relaxed) >= bytes / 2);
                while prefault.step() {
                    steps += 1;
                }
            }
            assert!(prefault.next.load(Ordering::Relaxed) == bytes && steps <= 4);
            assert!(memory.iter().all(|byte| *byte == 7));
        }
    }
}
