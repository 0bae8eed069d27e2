//! Memory without contents cannot be read.
//!
//! # Writing all of it makes it an array
//! ```
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let array = device.uninit_array::<f32, _>(3)?.fill(1.0)?;
//! assert_eq!(array.copy_to_host()?, array![1.0, 1.0, 1.0]);
//! assert_eq!(array.get(2)?, 1.0);
//! # Ok(())
//! # }
//! ```
//! Before that, it is not copied to the host.
//! ```compile_fail,E0599
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let array = device.uninit_array::<f32, _>(3)?;
//! let host = array.copy_to_host()?;
//! # Ok(())
//! # }
//! ```
//! Nor read by element.
//! ```compile_fail,E0599
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let array = device.uninit_array::<f32, _>(3)?;
//! let first = array.get(0)?;
//! # Ok(())
//! # }
//! ```
//! Nor viewed.
//! ```compile_fail,E0599
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let array = device.uninit_array::<f32, _>(3)?;
//! let view = array.view();
//! # Ok(())
//! # }
//! ```
//! Nor the source of a copy.
//! ```compile_fail,E0277
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let array = device.uninit_array::<f32, _>(3)?;
//! let copy = device.to_device(&array)?;
//! # Ok(())
//! # }
//! ```
//! Claiming that it was written is the caller's own risk.
//! ```compile_fail,E0133
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let array = device.uninit_array::<f32, _>(3)?;
//! let array = array.assume_init();
//! # Ok(())
//! # }
//! ```
