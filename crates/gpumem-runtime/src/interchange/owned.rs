//! Arrays of ndarray that become device arrays without a copy.

use crate::{ArrayBase, Device, DeviceArray, Layout, array::host::lock, device::Allocation};
use gpumem_core::{Backend, Element, ErrorKind, MemoryKind, RegisterOptions, Result};
use ndarray::{Array, Dimension};

impl<B: Backend> Device<B> {
    /// Takes an owned array of ndarray as a device array, without a copy: on devices that work in the host's own memory
    /// ([`Capabilities::pageable_direct`](gpumem_core::Capabilities::pageable_direct)). Elsewhere use
    /// [`to_device`](Self::to_device). The layout stays as it is.
    /// ```
    /// # use ndarray::array; let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// if device.capabilities().pageable_direct {
    ///     let array = device.adopt_array(array![[1.0, 2.0], [3.0, 4.0]])?; // no copy
    ///     assert_eq!(array.get((1, 0))?, 3.0);
    /// }
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Unsupported`](gpumem_core::ErrorKind::Unsupported) on devices with memory of their own, where no
    /// import would be cheaper than the copy, and [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a
    /// failure. The array is dropped then.
    pub fn adopt_array<T: Element, D: Dimension>(&self, array: Array<T, D>) -> Result<DeviceArray<T, D, B>> {
        const OPERATION: &str = "adopt_array";
        let fail = |kind| self.core().error(OPERATION, kind);
        self.core().check(OPERATION)?;
        if !self.capabilities().pageable_direct {
            return Err(fail(ErrorKind::Unsupported { what: "memory of the host as memory of the device" }));
        }
        let mut array = array;
        let layout = Layout::of_ndarray(array.shape(), array.strides(), size_of::<T>())
            .map_err(|error| fail(error.into()))?;
        let len = layout.extent().end;
        if len == 0 {
            return Ok(ArrayBase::over(
                Allocation::empty(self, OPERATION, align_of::<T>(), MemoryKind::Device)?,
                layout,
            ));
        }
        let options = RegisterOptions { mapped: self.capabilities().mapped, ..RegisterOptions::default() };
        let lowest = array.as_mut_ptr().cast::<u8>().wrapping_sub(layout.offset()).expose_provenance() as u64;
        let (elements, _) = array.into_raw_vec_and_offset();
        // SAFETY: the vector owns the elements, from the lowest to the highest, and is kept as it is; moving it moves none.
        let locked = unsafe { lock(self, OPERATION, lowest, len, options, elements) };
        let locked = locked.map_err(|(_, error)| error)?;
        Ok(ArrayBase::over(locked.into_allocation(self, options, false), layout))
    }
}
