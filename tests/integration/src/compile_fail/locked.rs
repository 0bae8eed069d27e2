//! Page-locked memory of the caller: it cannot leave the closure, nor change places with that of another.
//!
//! # `pinned` lends the arrays
//! ```
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let mut data = array![1.0f32, 2.0, 3.0];
//! let sum = device.pinned([data.view_mut()], |arrays| arrays[0].copy_to_host().map(|copy| copy.sum()))??;
//! assert_eq!(sum, 6.0);
//! # Ok(())
//! # }
//! ```
//! They cannot be returned.
//! ```compile_fail
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let mut data = array![1.0f32, 2.0, 3.0];
//! let arrays = device.pinned([data.view_mut()], |arrays| arrays)?;
//! # Ok(())
//! # }
//! ```
//! They cannot be put away.
//! ```compile_fail,E0521
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let mut data = array![1.0f32, 2.0, 3.0];
//! let mut kept = None;
//! device.pinned([data.view_mut()], |arrays| kept = Some(&mut arrays[0]))?;
//! # Ok(())
//! # }
//! ```
//! The caller's array is borrowed meanwhile.
//! ```compile_fail,E0502
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let mut data = array![1.0f32, 2.0, 3.0];
//! device.pinned([data.view_mut()], |arrays| (arrays[0].len(), data.sum()))?;
//! # Ok(())
//! # }
//! ```
//!
//! # A device view of mapped memory stays inside
//! ```
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let mut data = array![1.0f32, 2.0, 3.0];
//! device.mapped([data.view_mut()], |arrays| arrays[0].device_view_mut().fill(4.0))??;
//! assert_eq!(data, array![4.0, 4.0, 4.0]);
//! # Ok(())
//! # }
//! ```
//! Outside, the memory has no device address any more.
//! ```compile_fail
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let mut data = array![1.0f32, 2.0, 3.0];
//! let view = device.mapped([data.view_mut()], |arrays| arrays[0].device_view())?;
//! # Ok(())
//! # }
//! ```
//!
//! # Two arrays of one scope may change places
//! ```
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let (mut left, mut right) = (array![1.0f32, 2.0], array![3.0f32, 4.0]);
//! device.pinned([left.view_mut(), right.view_mut()], |arrays| arrays.swap(0, 1))?;
//! # Ok(())
//! # }
//! ```
//! Those of two scopes may not: the inner one would outlive its lock.
//! ```compile_fail
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let (mut left, mut right) = (array![1.0f32, 2.0], array![3.0f32, 4.0]);
//! device.pinned([left.view_mut()], |outer| {
//!     device.pinned([right.view_mut()], |inner| std::mem::swap(&mut outer[0], &mut inner[0]))
//! })??;
//! # Ok(())
//! # }
//! ```
//!
//! # Only memory that the library keeps alive can be lent
//! ```
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let registered = device.register(array![1.0f32, 2.0, 3.0])?;
//! let loan = registered.lend_to_host()?;
//! assert!(loan.is_read_only());
//! # Ok(())
//! # }
//! ```
//! A loan has no lifetime, and the caller's array has one.
//! ```compile_fail,E0521
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let mut data = array![1.0f32, 2.0, 3.0];
//! let loan = device.pinned([data.view_mut()], |arrays| arrays[0].lend_to_host())??;
//! # Ok(())
//! # }
//! ```
//!
//! Nor may the memory leave the scope of a stream as a tensor.
//! ```compile_fail,E0521
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let mut data = array![1.0f32, 2.0, 3.0];
//! let tensor = stream.scope(|scope| scope.pinned(data.view_mut())?.lend_mut_to_host()?.into_dlpack())??;
//! # Ok(())
//! # }
//! ```
