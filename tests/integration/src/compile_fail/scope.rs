//! Memory of the caller in a scope: borrowed until the scope has waited.
//!
//! # A destination outlives the scope
//! ```
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let array = device.to_device(&[1.0f32, 2.0, 3.0])?;
//! let mut out = Array1::zeros(3);
//! stream.scope(|scope| scope.copy_to_host(&array, out.view_mut()))??;
//! assert_eq!(out, array![1.0, 2.0, 3.0]);
//! # Ok(())
//! # }
//! ```
//! A destination of the closure's own would be gone before the copy has landed.
//! ```compile_fail,E0597
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let array = device.to_device(&[1.0f32, 2.0, 3.0])?;
//! stream.scope(|scope| {
//!     let mut out = Array1::zeros(3);
//!     scope.copy_to_host(&array, out.view_mut())
//! })??;
//! # Ok(())
//! # }
//! ```
//!
//! # A destination is read after the scope
//! ```
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let array = device.to_device(&[1.0f32, 2.0, 3.0])?;
//! let mut out = Array1::zeros(3);
//! stream.scope(|scope| scope.copy_to_host(&array, out.view_mut()))??;
//! assert_eq!(out.sum(), 6.0);
//! # Ok(())
//! # }
//! ```
//! Inside, it is still being written.
//! ```compile_fail,E0502
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let array = device.to_device(&[1.0f32, 2.0, 3.0])?;
//! let mut out = Array1::zeros(3);
//! stream.scope(|scope| {
//!     scope.copy_to_host(&array, out.view_mut())?;
//!     assert_eq!(out.sum(), 6.0);
//!     Ok(())
//! })??;
//! # Ok(())
//! # }
//! ```
//! Nor can two copies share it.
//! ```compile_fail,E0499
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let array = device.to_device(&[1.0f32, 2.0, 3.0])?;
//! let mut out = Array1::zeros(3);
//! stream.scope(|scope| {
//!     scope.copy_to_host(&array, out.view_mut())?;
//!     scope.copy_to_host(&array, out.view_mut())
//! })??;
//! # Ok(())
//! # }
//! ```
//!
//! # The scope itself stays inside
//! ```
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let submission = stream.scope(|scope| scope.stream().submission_index())?;
//! assert_eq!(submission, 0);
//! # Ok(())
//! # }
//! ```
//! It cannot be kept for copies after its end.
//! ```compile_fail,E0521
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let mut kept = None;
//! stream.scope(|scope| kept = Some(scope))?;
//! # Ok(())
//! # }
//! ```
//!
//! # What a scope page-locks stays inside
//! ```
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let mut data = array![1.0f32, 2.0, 3.0];
//! let sum = stream.scope(|scope| {
//!     let pinned = scope.pinned(data.view_mut())?;
//!     scope.stream().to_device(&pinned)?.copy_to_host().map(|copy| copy.sum())
//! })??;
//! assert_eq!(sum, 6.0);
//! # Ok(())
//! # }
//! ```
//! Outside, the pages are no longer locked.
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
//! stream.scope(|scope| kept = scope.pinned(data.view_mut()).ok())?;
//! # Ok(())
//! # }
//! ```
//! Nor can it be the result.
//! ```compile_fail
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let mut data = array![1.0f32, 2.0, 3.0];
//! let kept = stream.scope(|scope| scope.mapped(data.view_mut()))?;
//! # Ok(())
//! # }
//! ```
