//! Arrays that other libraries use are borrowed as for our own work.
//!
//! # Reading takes `&`, writing `&mut`
//! ```
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let source = device.to_device(&[1.0f32, 2.0])?;
//! let mut target = device.device_array::<f32, _>(2)?;
//! let uses = [RawAccess::read(&source), RawAccess::write(&mut target)];
//! // SAFETY: nothing is enqueued.
//! let count = unsafe { stream.raw_scope(&uses, |parts| parts.addresses.len())? };
//! assert_eq!(count, 2);
//! # Ok(())
//! # }
//! ```
//! A shared borrow is not enough for writing.
//! ```compile_fail,E0308
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let target = device.device_array::<f32, _>(2)?;
//! let access = RawAccess::write(&target);
//! # Ok(())
//! # }
//! ```
//! Nor is a shared view.
//! ```compile_fail,E0277
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let target = device.device_array::<f32, _>(2)?;
//! let mut view = target.view();
//! let access = RawAccess::write(&mut view);
//! # Ok(())
//! # }
//! ```
//! Memory that is going to be written is not read meanwhile.
//! ```compile_fail,E0502
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let mut target = device.device_array::<f32, _>(2)?;
//! let uses = [RawAccess::write(&mut target)];
//! let host = target.copy_to_host()?;
//! // SAFETY: nothing is enqueued.
//! unsafe { stream.raw_scope(&uses, |_| ())? };
//! # Ok(())
//! # }
//! ```
//! Lending a stream is `unsafe`.
//! ```compile_fail,E0133
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! stream.raw_scope(&[], |_| ())?;
//! # Ok(())
//! # }
//! ```
