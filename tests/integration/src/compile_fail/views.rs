//! Views are borrows: shared ones, or one mutable one, never longer than the array.
//!
//! # A view ends before its array
//! ```
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let array = device.to_device(&[1.0f32, 2.0, 3.0])?;
//! let view = array.slice(s![1..])?;
//! assert_eq!(view.copy_to_host()?, array![2.0, 3.0]);
//! drop(array);
//! # Ok(())
//! # }
//! ```
//! It cannot be used after that.
//! ```compile_fail,E0505
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let array = device.to_device(&[1.0f32, 2.0, 3.0])?;
//! let view = array.slice(s![1..])?;
//! drop(array);
//! assert_eq!(view.len(), 2);
//! # Ok(())
//! # }
//! ```
//! Nor returned without it.
//! ```compile_fail,E0515
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! fn part(device: &Device<Host>) -> Result<DeviceView<'_, f32, Ix1, Host>> {
//!     let array = device.device_array::<f32, _>(3)?;
//!     array.slice(s![1..])
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # One mutable view at a time
//! ```
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let mut array = device.to_device(&[1.0f32, 2.0, 3.0])?;
//! array.slice_mut(s![..1])?.fill(7.0)?;
//! array.slice_mut(s![2..])?.fill(8.0)?;
//! assert_eq!(array.copy_to_host()?, array![7.0, 2.0, 8.0]);
//! # Ok(())
//! # }
//! ```
//! Not two, also of parts that happen to be disjoint: use `split_mut` for those.
//! ```compile_fail,E0499
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let mut array = device.to_device(&[1.0f32, 2.0, 3.0])?;
//! let (mut left, mut right) = (array.slice_mut(s![..1])?, array.slice_mut(s![2..])?);
//! left.fill(7.0)?;
//! right.fill(8.0)?;
//! # Ok(())
//! # }
//! ```
//! Nor a shared one beside it.
//! ```compile_fail,E0502
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let mut array = device.to_device(&[1.0f32, 2.0, 3.0])?;
//! let mut whole = array.view_mut();
//! let part = array.slice(s![..1])?;
//! whole.copy_to_device(&part.broadcast(3)?)?;
//! # Ok(())
//! # }
//! ```
//! A shared view cannot be written through.
//! ```compile_fail,E0277
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let array = device.to_device(&[1.0f32, 2.0, 3.0])?;
//! let mut view = array.view();
//! stream.fill(&mut view, 1.0)?;
//! # Ok(())
//! # }
//! ```
//!
//! # Parts that `split_mut` gives are disjoint
//! ```
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let mut array = device.to_device(&[1.0f32, 2.0, 3.0, 4.0])?;
//! let (mut left, right) = array.split_at_mut(0, 2)?;
//! left.copy_to_device(&right)?;
//! assert_eq!(array.copy_to_host()?, array![3.0, 4.0, 3.0, 4.0]);
//! # Ok(())
//! # }
//! ```
//! An array is not copied onto itself.
//! ```compile_fail,E0502
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let mut array = device.to_device(&[1.0f32, 2.0, 3.0])?;
//! array.copy_to_device(&array)?;
//! # Ok(())
//! # }
//! ```
//! Nor on a stream.
//! ```compile_fail,E0502
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let mut array = device.to_device(&[1.0f32, 2.0, 3.0])?;
//! stream.copy_to_device(&mut array, &array)?;
//! # Ok(())
//! # }
//! ```
//! Nor a part of it onto another.
//! ```compile_fail,E0502
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let mut array = device.to_device(&[1.0f32, 2.0, 3.0, 4.0])?;
//! let mut left = array.slice_mut(s![..2])?;
//! left.copy_to_device(&array.slice(s![2..])?)?;
//! # Ok(())
//! # }
//! ```
