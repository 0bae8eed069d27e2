//! Registering arrays that the library then owns.

use super::{
    HostArray, HostKind, Mapped, Pinned, Registered,
    pin_guard::{self, PinnedOwner},
};
use crate::{Device, Layout, device::Allocation};
use gpumem_core::{Backend, Element, Error, ErrorKind, RegisterOptions};
use ndarray::{Array, Dimension};
use std::{any::Any, fmt};

/// An array of the caller that the library has taken over, page-locked until it is deregistered or dropped.
pub type RegisteredArray<T, D, B> = HostArray<Registered<'static, Pinned>, T, D, B>;
/// As [`RegisteredArray`], with a device address.
pub type MappedRegisteredArray<T, D, B> = HostArray<Registered<'static, Mapped>, T, D, B>;

type TakenOver<K, T, D, B> = Result<HostArray<Registered<'static, K>, T, D, B>, RegisterError<Array<T, D>>>;

/// The error of a call that takes an array, with the array.
#[derive(Debug)]
pub struct RegisterError<A> {
    /// The array.
    pub given: A,
    /// Why it comes back.
    pub error: Error,
}

impl<A> fmt::Display for RegisterError<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<A: fmt::Debug> std::error::Error for RegisterError<A> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.source()
    }
}

impl<A> From<RegisterError<A>> for Error {
    fn from(refused: RegisterError<A>) -> Self {
        refused.error
    }
}

impl<B: Backend> Device<B> {
    /// Takes an array over and page-locks it, for truly asynchronous copies: Numba's `roc.register`. The elements stay
    /// where they are, in the layout that they have; the pages of all of a strided array are locked. The array comes back
    /// from [`deregister`](HostArray::deregister). Where it is dropped instead, its memory is unlocked and freed by the
    /// next flush, after its last use.
    ///
    /// For borrowed arrays there is [`pinned`](Self::pinned), which does this for the length of a scope.
    ///
    /// ```no_run
    /// # fn example<B: gpumem_core::Backend>(device: &gpumem_runtime::Device<B>) -> gpumem_core::Result<()> {
    /// let stream = device.stream()?;
    /// let registered = device.register(ndarray::Array1::from_elem(1 << 20, 1.0f32))?;
    /// let array = stream.to_device(&registered)?; // enqueued; nothing is staged
    /// let elements = registered.deregister()?; // waits for the copy
    /// # let _ = (array, elements);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns the array with the error: [`Unsupported`](gpumem_core::ErrorKind::Unsupported) if
    /// [`Capabilities::register`](gpumem_core::Capabilities::register) is false,
    /// [`Registration`](gpumem_core::ErrorKind::Registration) if the memory cannot be page-locked,
    /// [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure.
    pub fn register<T: Element, D: Dimension + 'static>(
        &self,
        array: Array<T, D>,
    ) -> Result<RegisteredArray<T, D, B>, RegisterError<Array<T, D>>> {
        self.take_over("register", array, false)
    }

    /// Registers an array as [`register`](Self::register) does, and gives it a device address, so that kernels can
    /// use it.
    ///
    /// # Errors
    /// Returns the array with the error: [`Unsupported`](gpumem_core::ErrorKind::Unsupported) if
    /// [`Capabilities::mapped`](gpumem_core::Capabilities::mapped) is false,
    /// [`Registration`](gpumem_core::ErrorKind::Registration) if it shares pages with other registered memory and has
    /// no address in one piece. Otherwise as [`register`](Self::register).
    pub fn register_mapped<T: Element, D: Dimension + 'static>(
        &self,
        array: Array<T, D>,
    ) -> Result<MappedRegisteredArray<T, D, B>, RegisterError<Array<T, D>>> {
        self.take_over("register_mapped", array, true)
    }

    fn take_over<K: HostKind, T: Element, D: Dimension + 'static>(
        &self,
        operation: &'static str,
        mut array: Array<T, D>,
        mapped: bool,
    ) -> TakenOver<K, T, D, B> {
        let layout = match Layout::of_ndarray(array.shape(), array.strides(), size_of::<T>()) {
            Ok(layout) => layout,
            Err(error) => {
                return Err(RegisterError { given: array, error: self.core().error(operation, error) });
            }
        };
        let lowest = array.as_mut_ptr().cast::<u8>().wrapping_sub(layout.offset());
        // SAFETY: the array owns the elements from the lowest to the highest; moving it moves none of them.
        unsafe { self.register_owner(operation, lowest, &layout, array, mapped) }
    }

    /// # Safety
    /// As for [`register_foreign`](Self::register_foreign).
    pub(super) unsafe fn register_owner<K: HostKind, T: Element, D: Dimension, O: Any + Send + Sync>(
        &self,
        operation: &'static str,
        lowest: *mut u8,
        layout: &Layout,
        owner: O,
        mapped: bool,
    ) -> Result<HostArray<Registered<'static, K>, T, D, B>, RegisterError<O>> {
        let checked = self.check_registers(operation, mapped).and_then(|()| {
            HostArray::<Registered<'static, K>, T, D, B>::check_elements(self.core(), operation, layout)
        });
        if let Err(error) = checked {
            return Err(RegisterError { given: owner, error });
        }
        let options = RegisterOptions { mapped, ..RegisterOptions::default() };
        // Neighbours share pages, and a page is locked once: so that one can be pinned and the other mapped, every page
        // is mapped where that is possible.
        let pages = RegisterOptions { mapped: mapped || self.capabilities().mapped, ..options };
        let (address, bytes) = (lowest.expose_provenance() as u64, layout.extent().end);
        // SAFETY: the owner keeps the bytes, by the promise of the caller.
        match unsafe { pin_guard::register(self, operation, address, bytes, pages, owner) } {
            Ok(locked) if mapped && !locked.has_address() => {
                let why =
                    "it shares pages with other registered memory and has no device address in one piece";
                let error = self.core().error(operation, ErrorKind::Registration { why });
                Err(RegisterError { given: locked.unlock(), error })
            }
            Ok(locked) => {
                let memory = locked.into_allocation(self, options, false);
                Ok(HostArray::over_checked(memory, layout.clone()))
            }
            Err((given, error)) => Err(RegisterError { given, error }),
        }
    }

    /// Whether memory of the caller can be registered at all.
    fn check_registers(&self, operation: &'static str, mapped: bool) -> gpumem_core::Result<()> {
        let fail = |kind| self.core().error(operation, kind);
        self.core().check(operation)?;
        let capabilities = self.capabilities();
        if !capabilities.register {
            return Err(fail(ErrorKind::Unsupported { what: "page-locking of the caller's memory" }));
        }
        if mapped && !capabilities.mapped {
            return Err(fail(ErrorKind::Unsupported { what: "mapped memory" }));
        }
        Ok(())
    }
}

impl<K: HostKind, T: Element, D: Dimension + 'static, B: Backend> HostArray<Registered<'static, K>, T, D, B> {
    /// Waits for everything that uses the array, unlocks it and returns it: Numba's `roc.deregister`.
    /// ```
    /// # use ndarray::Array1; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let registered = device.register(Array1::from_elem(1000, 2.0))?;
    /// let array = device.to_device(&registered)?;
    /// let host = registered.deregister()?; // the same elements, where they were
    /// assert_eq!(host.len(), 1000);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns this array with the error: [`Poisoned`](gpumem_core::ErrorKind::Poisoned) until the elements that failed work was
    /// to write are written anew, [`BlockingInCallback`](gpumem_core::ErrorKind::BlockingInCallback) in a callback,
    /// [`Stale`](gpumem_core::ErrorKind::Stale) after a reset,
    /// [`InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) while another object, such as a loan, still holds
    /// the memory.
    #[allow(clippy::result_large_err, reason = "the array is not lost")]
    pub fn deregister(self) -> Result<Array<T, D>, RegisterError<Self>> {
        self.take_back::<Array<T, D>>()
    }

    /// As [`deregister`](Self::deregister), for memory of any owner.
    #[allow(clippy::result_large_err, reason = "the array is not lost")]
    pub(super) fn take_back<O: Any>(self) -> Result<O, RegisterError<Self>> {
        const OPERATION: &str = "deregister";
        let extent = self.layout().extent();
        let wait = |memory: &Allocation<B>| {
            memory.check(OPERATION)?;
            memory.wait_until_unused().result?;
            memory.check_written(OPERATION, &extent)
        };
        if let Err(error) = wait(self.memory()) {
            return Err(RegisterError { given: self, error: error.in_operation(OPERATION) });
        }
        let (memory, layout) = self.into_parts();
        // Once more: another handle may have gone meanwhile, and its work is in the log alone.
        Allocation::into_owner::<PinnedOwner<B, O>>(memory, wait).map(|owner| owner.unlock()).map_err(
            |(memory, error)| {
                let why = "another object, such as a loan, still holds the memory";
                let held = || memory.core().error(OPERATION, ErrorKind::InvalidArgument { why });
                let error = error.map_or_else(held, |error| error.in_operation(OPERATION));
                RegisterError { given: Self::over_checked(memory, layout), error }
            },
        )
    }
}
