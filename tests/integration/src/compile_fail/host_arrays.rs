//! Host arrays of the library: no look past the waiting accessors.
//!
//! # A view ends before the next transfer
//! ```
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let array = device.to_device(&[1.0f32, 2.0, 3.0])?;
//! let mut pinned = device.pinned_array::<f32, _>(3)?;
//! assert_eq!(pinned.view()?, array![0.0, 0.0, 0.0]);
//! stream.copy_to_host_into(&array, &mut pinned)?;
//! assert_eq!(pinned.view()?, array![1.0, 2.0, 3.0]);
//! # Ok(())
//! # }
//! ```
//! It cannot be held while a transfer writes the array.
//! ```compile_fail,E0502
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let array = device.to_device(&[1.0f32, 2.0, 3.0])?;
//! let mut pinned = device.pinned_array::<f32, _>(3)?;
//! let view = pinned.view()?;
//! stream.copy_to_host_into(&array, &mut pinned)?;
//! assert_eq!(view[0], 1.0);
//! # Ok(())
//! # }
//! ```
//! Nor one for writing while a transfer reads it.
//! ```compile_fail,E0502
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let mut pinned = device.pinned_array::<f32, _>(3)?;
//! let mut view = pinned.view_mut()?;
//! let array = stream.to_device(&pinned)?;
//! view[0] = 1.0;
//! # Ok(())
//! # }
//! ```
//! There is no way around `view`.
//! ```compile_fail,E0608
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let pinned = device.pinned_array::<f32, _>(3)?;
//! let first = pinned[0];
//! # Ok(())
//! # }
//! ```
//!
//! # Only memory with a device address has a device view
//! ```
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let mapped = device.mapped_array::<f32, _>(3, gpumem_core::MappedOptions::default())?;
//! assert_eq!(mapped.device_view().len(), 3);
//! # Ok(())
//! # }
//! ```
//! Pinned memory has none.
//! ```compile_fail,E0599
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let pinned = device.pinned_array::<f32, _>(3)?;
//! assert_eq!(pinned.device_view().len(), 3);
//! # Ok(())
//! # }
//! ```
