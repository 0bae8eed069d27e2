//! Page-locking arrays of the caller while a scope lasts.

use super::{
    HostArray, HostKind, Mapped, Pinned, Registered,
    lock_arrays::{LockArrays, Locking},
};
use crate::{
    Device, Layout,
    device::{Allocation, AllocationRef},
    transfer,
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

/// Memory of the caller, and its lock, unless it is not the host's.
type HeldPin<B> = (AllocationRef<B>, Option<PagePin>);

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
        // The caller has the only borrow, and has read or written the elements.
        memory.forget_poison_of_all();
        self.core.host_memory.fetch_add(1, Ordering::AcqRel);
        self.held.lock().push((memory.clone(), Some(lock)));
        HostArray::over(operation, memory, layout)
    }
}

impl<B: Backend> PinScope<B> {
    /// Waits for all uses of the arrays, and unlocks them.
    ///
    /// # Errors
    /// Returns [`AsynchronousFault`](gpumem_core::ErrorKind::AsynchronousFault) if that work failed. The arrays are
    /// unlocked all the same.
    pub(crate) fn release(&self) -> Result<()> {
        if !self.core.origin.is_valid() {
            // In a forked child another thread may hold the lock for ever, and the locked pages are the parent's.
            return Ok(());
        }
        let mut result = Ok(());
        let held = std::mem::take(&mut *self.held.lock());
        for (memory, lock) in held.into_iter().rev() {
            let wait_outcome = memory.wait_until_unused();
            if !wait_outcome.done {
                // Law 3: the device may still be using memory that is about to go back to its owner.
                transfer::abort("page-locked scope", wait_outcome.result);
            }
            let is_locked = lock.is_some();
            if let Some(lock) = lock {
                // SAFETY: its uses are over (above).
                unsafe { self.core.pages.unlock(&self.core, lock) };
                self.core.host_memory.fetch_sub(1, Ordering::AcqRel);
            }
            // A caller may have ignored an earlier error, and accesses the memory itself from here on.
            let written = memory.check_written("page-locked scope", &(0..memory.len()));
            match is_locked {
                true => memory.forget_poison_of_all(),
                false => memory.forget_poison(),
            }
            result = result.and(wait_outcome.result).and(written);
        }
        result
    }
}

impl<B: Backend> Drop for PinScope<B> {
    fn drop(&mut self) {
        // After a panic, or after an error that is being returned: no caller can receive another one.
        if let Err(error) = self.release() {
            self.core.errors.push(error);
        }
    }
}

impl<B: Backend> Device<B> {
    /// Page-locks arrays of the caller while `body` runs, for truly asynchronous copies. Numba's `pinned(*arrays)`.
    ///
    /// An array or a tuple of views comes in as such, of locked arrays: `|[a, b]|` or `|(a, b)|`. Those of a tuple may differ in
    /// element type and rank.
    ///
    /// When `body` ends, by returning or by a panic, everything that uses the arrays is waited for, and they are
    /// unlocked at once. If one of them cannot be locked, those before it are unlocked again and `body` does not run.
    ///
    /// # Examples
    /// ```
    /// # use ndarray::Array1;
    /// # use gpumem_host::Host;
    /// # type Device = gpumem_runtime::Device<Host>;
    /// # fn main() -> gpumem_core::Result<()> {
    /// # let device = Device::open("host")?;
    /// let stream = device.stream()?;
    /// let (mut a, mut b) = (Array1::from_elem(3, 1.0), Array1::from_elem(3, 2.0));
    /// let arrays = device.pinned([a.view_mut(), b.view_mut()], |[a, b]| -> gpumem_core::Result<_> {
    ///     Ok([stream.to_device(a)?, stream.to_device(b)?])
    /// })??;
    /// assert_eq!(arrays[1].get(2)?, 2.0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns [`Unsupported`](gpumem_core::ErrorKind::Unsupported) if
    /// [`Capabilities::register`](gpumem_core::Capabilities::register) is false,
    /// [`Registration`](gpumem_core::ErrorKind::Registration) if the memory cannot be page-locked, and
    /// [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure. Returns
    /// [`AsynchronousFault`](gpumem_core::ErrorKind::AsynchronousFault) if work on the arrays failed; the value of
    /// `body` is lost then.
    pub fn pinned<'env, A: LockArrays<'env, B>, R>(
        &self,
        arrays: A,
        body: impl for<'a, 'scope> FnOnce(&'a mut A::PinGuard<'scope, Pinned>) -> R,
    ) -> Result<R> {
        self.locked::<Pinned, A, R>("pinned", arrays, false, body)
    }

    /// Page-locks arrays of the caller while `body` runs and gives each a device address. Numba's `mapped(*arrays)`.
    /// The device views of the arrays cannot leave `body`.
    ///
    /// # Examples
    /// ```
    /// # use ndarray::Array1;
    /// # use gpumem_host::Host;
    /// # type Device = gpumem_runtime::Device<Host>;
    /// # fn main() -> gpumem_core::Result<()> {
    /// # let device = Device::open("host")?;
    /// let mut host = Array1::<f32>::zeros(3);
    /// device.mapped([host.view_mut()], |[host]| host.device_view_mut().fill(1.0))??;
    /// assert_eq!(host.to_vec(), [1.0; 3]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns [`Unsupported`](gpumem_core::ErrorKind::Unsupported) if
    /// [`Capabilities::mapped`](gpumem_core::Capabilities::mapped) is false. Otherwise as [`pinned`](Self::pinned).
    pub fn mapped<'env, A: LockArrays<'env, B>, R>(
        &self,
        arrays: A,
        body: impl for<'a, 'scope> FnOnce(&'a mut A::PinGuard<'scope, Mapped>) -> R,
    ) -> Result<R> {
        if !self.capabilities().mapped {
            return Err(self.core().error("mapped", ErrorKind::Unsupported { what: "mapped memory" }));
        }
        self.locked::<Mapped, A, R>("mapped", arrays, true, body)
    }

    fn locked<'env, K: HostKind, A: LockArrays<'env, B>, R>(
        &self,
        operation: &'static str,
        arrays: A,
        mapped: bool,
        body: impl for<'a, 'scope> FnOnce(&'a mut A::PinGuard<'scope, K>) -> R,
    ) -> Result<R> {
        gpumem_memory::may_block(operation)?;
        self.core().check(operation)?;
        let set = PinScope::new(self);
        let locking = Locking { set: &set, device: self, operation, mapped };
        // SAFETY: the views are borrowed for `'env`, which outlives this frame, and `set` is dropped in this frame. The arrays
        // are of any `'scope`, so nothing of their type can leave `body`.
        let mut locked = unsafe { arrays.lock::<K>(&locking)? };
        let value = body(&mut locked);
        set.release().map_err(|error| error.in_operation(operation))?;
        Ok(value)
    }
}
impl<B: Backend> fmt::Debug for PinScope<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinScope").finish_non_exhaustive()
    }
}
