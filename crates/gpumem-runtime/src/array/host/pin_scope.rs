//! The arrays of the caller that a scope has page-locked.

use super::{HostArray, HostKind, Registered};
use crate::{
    Device, Layout,
    device::{Allocation, AllocationRef},
    transfer::{self, ArrayRef},
};
use gpumem_core::{Backend, Element, ErrorKind, MemoryKind, RegisterOptions, Result};
use gpumem_memory::{memory::DeviceCore, memory::PagePin};
use ndarray::{ArrayViewMut, Dimension};
use parking_lot::Mutex;
use std::{
    fmt,
    ptr::NonNull,
    sync::{Arc, atomic::Ordering},
};

/// The arrays that a scope has page-locked. Unlocks at the latest in `drop`, which runs in the library's frame: users
/// hold only references into it.
pub struct PinScope<B: Backend> {
    core: Arc<DeviceCore<B>>,
    held: Mutex<Vec<HeldPin<B>>>,
}

/// Memory of the caller; its lock and where its elements lie, unless it is not the host's.
type HeldPin<B> = (AllocationRef<B>, Option<(PagePin, Layout)>);

impl<B: Backend> PinScope<B> {
    /// Keeps foreign memory that is borrowed as long as this set lives: it is waited for with the others.
    pub fn keep(&self, memory: &AllocationRef<B>) {
        if self.core.origin.is_valid() {
            self.held.lock().push((memory.clone(), None));
        }
    }

    pub(crate) fn new(device: &Device<B>) -> Self {
        Self { core: device.core().clone(), held: Mutex::new(Vec::new()) }
    }

    /// Page-locks an array of the caller.
    ///
    /// # Safety
    /// The array stays borrowed until this set is dropped, and the returned memory is not used after that.
    pub(crate) unsafe fn add<'scope, K: HostKind, T: Element, D: Dimension>(
        &self,
        device: &Device<B>,
        operation: &'static str,
        mut array: ArrayViewMut<'_, T, D>,
        mapped: bool,
    ) -> Result<HostArray<Registered<'scope, K>, T, D, B>> {
        let fail = |kind| device.core().error(operation, kind);
        device.core().check(operation)?;
        if !device.capabilities().register {
            return Err(fail(ErrorKind::Unsupported { what: "page-locking of the caller's memory" }));
        }
        let layout =
            Layout::of_ndarray(array.shape(), array.strides(), size_of::<T>()).map_err(|e| fail(e.into()))?;
        let extent = layout.extent();
        let options = RegisterOptions { mapped, ..RegisterOptions::default() };
        // Neighbours share pages, and a page is locked once: so that one can be pinned and the other mapped, every page is
        // mapped where that is possible.
        let pages = RegisterOptions { mapped: mapped || device.capabilities().mapped, ..options };
        let lowest = array.as_mut_ptr().cast::<u8>().wrapping_sub(layout.offset()).wrapping_add(extent.start);
        let (Some(host), false) = (NonNull::new(lowest), extent.is_empty()) else {
            let kind = MemoryKind::Registered(options);
            let memory = Allocation::empty(device, operation, align_of::<T>(), kind)?;
            return HostArray::over(operation, memory, layout);
        };
        // SAFETY: the caller keeps the borrow until the set is dropped, which unlocks.
        let lock = unsafe { self.core.pages.lock(&self.core, operation, host, extent.len(), pages)? };
        let address = match (lock.address, mapped) {
            (Some(address), _) => address,
            (None, false) => host.addr().get() as u64,
            (None, true) => {
                // SAFETY: nothing uses it yet.
                unsafe { self.core.pages.unlock(&self.core, lock) };
                let why =
                    "it shares pages with other registered memory and has no device address in one piece";
                return Err(fail(ErrorKind::Registration { why }));
            }
        };
        let kind = MemoryKind::Registered(options);
        let memory = Allocation::borrowed(device, address, host, extent.len(), kind, lock.boundaries.clone());
        // The caller has the only borrow, and has read or written the elements. The gaps may be part of another scope's array.
        transfer::note_returned(ArrayRef { memory: &memory, layout: &layout });
        self.core.host_memory.fetch_add(1, Ordering::AcqRel);
        self.held.lock().push((memory.clone(), Some((lock, layout.clone()))));
        HostArray::over(operation, memory, layout)
    }

    /// Waits for all uses of the arrays, and unlocks them.
    /// Returns [`Poisoned`](gpumem_core::ErrorKind::Poisoned) if work failed that was to write them. The arrays are unlocked all
    /// the same. Returns [`ForkedChild`](gpumem_core::ErrorKind::ForkedChild) in a forked child: the locked pages are the parent's, and
    /// another thread may hold the lock for ever.
    pub(crate) fn release(&self) -> Result<()> {
        transfer::check_release(&self.core, "page-locked scope")?;
        let mut result = Ok(());
        let last = || self.held.lock().last().map(|(memory, _)| memory.clone());
        while let Some(memory) = last() {
            let wait_outcome = memory.wait_until_unused();
            if !wait_outcome.done {
                // Law 3: the device may still be using memory that is about to go back to its owner.
                transfer::abort("page-locked scope", wait_outcome.result);
            }
            // Taken out only now: a wait that unwinds is made once more, by the drop.
            let own = self.held.lock().pop().and_then(|(_, own)| own);
            // A caller may have ignored an earlier error, and accesses the memory itself from here on.
            let written = match own {
                Some((lock, layout)) => {
                    // SAFETY: its uses are over (above).
                    unsafe { self.core.pages.unlock(&self.core, lock) };
                    self.core.host_memory.fetch_sub(1, Ordering::AcqRel);
                    let place = ArrayRef { memory: &memory, layout: &layout };
                    let written = transfer::check_elements_written("page-locked scope", place);
                    transfer::note_returned(place);
                    written
                }
                None => {
                    let written = memory.check_written("page-locked scope", &(0..memory.len()));
                    memory.forget_poison();
                    written
                }
            };
            result = result.and(wait_outcome.result).and(written);
        }
        result
    }
}

impl<B: Backend> Drop for PinScope<B> {
    fn drop(&mut self) {
        // After a panic, or after an error that is being returned: no caller can receive another one.
        if let Err(error) = self.release()
            && self.core.origin.is_valid()
        {
            self.core.errors.push(error);
        }
    }
}

impl<B: Backend> fmt::Debug for PinScope<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinScope").finish_non_exhaustive()
    }
}
