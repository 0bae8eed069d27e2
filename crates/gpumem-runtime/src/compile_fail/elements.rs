//! Elements are plain old data: every bit pattern is a value, and there is no padding.
//!
//! # Numbers and records of numbers
//! ```
//! #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
//! #[repr(C)]
//! struct Pair { key: u32, value: f32 }
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let flags = device.device_array::<u8, _>(3)?;
//! let letters = device.device_array::<u32, _>(3)?;
//! let pairs = device.device_array::<Pair, _>(3)?;
//! assert_eq!(pairs.byte_len(), 24);
//! # Ok(())
//! # }
//! ```
//! `bool`: a device may write 2.
//! ```compile_fail,E0277
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let flags = device.device_array::<bool, _>(3)?;
//! # Ok(())
//! # }
//! ```
//! `char`: a device may write a surrogate.
//! ```compile_fail,E0277
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let letters = device.device_array::<char, _>(3)?;
//! # Ok(())
//! # }
//! ```
//! References.
//! ```compile_fail,E0277
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let pointers = device.device_array::<&'static f32, _>(3)?;
//! # Ok(())
//! # }
//! ```
//! A record that does not say that it is plain old data.
//! ```compile_fail,E0277
//! #[derive(Clone, Copy)]
//! #[repr(C)]
//! struct Pair { key: u32, value: f32 }
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let pairs = device.device_array::<Pair, _>(3)?;
//! # Ok(())
//! # }
//! ```
//! A record with padding cannot say so.
//! ```compile_fail,E0080
//! #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
//! #[repr(C)]
//! struct Pair { key: u8, value: f32 }
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let pairs = device.device_array::<Pair, _>(3)?;
//! # Ok(())
//! # }
//! ```
