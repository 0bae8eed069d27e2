//! Page-locking arrays of the caller while a closure runs.

use super::{
    HostKind, Mapped, Pinned,
    lock_arrays::{LockArrays, Locking},
    pin_scope::PinScope,
};
use crate::Device;
use gpumem_core::{Backend, ErrorKind, Result};

impl<B: Backend> Device<B> {
    /// Page-locks arrays of the caller while `body` runs, for truly asynchronous copies. Numba's `pinned(*arrays)`.
    ///
    /// An array or a tuple of views comes in as such, of locked arrays: `|[a, b]|` or `|(a, b)|`. Those of a tuple may differ in
    /// element type and rank.
    ///
    /// When `body` ends, by returning or by a panic, everything that uses the arrays is waited for, and they are
    /// unlocked at once. If one of them cannot be locked, those before it are unlocked again and `body` does not run.
    /// ```
    /// # use ndarray::Array1; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let stream = device.stream()?;
    /// let (mut a, mut b) = (Array1::from_elem(3, 1.0), Array1::from_elem(3, 2.0));
    /// let arrays = device.pinned([a.view_mut(), b.view_mut()], |[a, b]| -> gpumem_core::Result<_> {
    ///     Ok([stream.to_device(a)?, stream.to_device(b)?])
    /// })??;
    /// assert_eq!(arrays[1].get(2)?, 2.0);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Unsupported`](gpumem_core::ErrorKind::Unsupported) if
    /// [`Capabilities::register`](gpumem_core::Capabilities::register) is false,
    /// [`Registration`](gpumem_core::ErrorKind::Registration) if the memory cannot be page-locked, and
    /// [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure. Returns
    /// [`Poisoned`](gpumem_core::ErrorKind::Poisoned) if work failed that was to write the arrays; the value of `body` is lost
    /// then.
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
