//! A launch of a graph gets what was recorded, and nothing leaves a body.
//!
//! # A launch has the recorded arguments
//! ```
//! # use gpumem::prelude::*;
//! # fn main() -> gpumem::Result<()> {
//! # let device = Device::open("host")?;
//! # let (stream, other) = (device.stream()?, device.to_device(&[1.0f64; 8])?);
//! let (x, mut y) = (device.to_device(&[1.0f32; 8])?, device.device_array::<f32, _>(8)?);
//! let graph = device.record((&x, &mut y, 2.0f32), |stream, (x, mut y, _)| stream.copy_to_device(&mut y, &x))?;
//! graph.launch(&stream, (&x, &mut y, 3.0f32))?;
//! # Ok(())
//! # }
//! ```
//! Not an array of other elements.
//! ```compile_fail,E0271
//! # use gpumem::prelude::*;
//! # fn main() -> gpumem::Result<()> {
//! # let device = Device::open("host")?;
//! # let (stream, other) = (device.stream()?, device.to_device(&[1.0f64; 8])?);
//! let (x, mut y) = (device.to_device(&[1.0f32; 8])?, device.device_array::<f32, _>(8)?);
//! let graph = device.record((&x, &mut y, 2.0f32), |stream, (x, mut y, _)| stream.copy_to_device(&mut y, &x))?;
//! graph.launch(&stream, (&other, &mut y, 3.0f32))?;
//! # Ok(())
//! # }
//! ```
//! Nor one that may only be read, where one is written.
//! ```compile_fail,E0271
//! # use gpumem::prelude::*;
//! # fn main() -> gpumem::Result<()> {
//! # let device = Device::open("host")?;
//! # let (stream, other) = (device.stream()?, device.to_device(&[1.0f64; 8])?);
//! let (x, mut y) = (device.to_device(&[1.0f32; 8])?, device.device_array::<f32, _>(8)?);
//! let graph = device.record((&x, &mut y, 2.0f32), |stream, (x, mut y, _)| stream.copy_to_device(&mut y, &x))?;
//! graph.launch(&stream, (&x, &y, 3.0f32))?;
//! # Ok(())
//! # }
//! ```
//! Nor an array of other axes.
//! ```compile_fail,E0271
//! # use gpumem::prelude::*;
//! # fn main() -> gpumem::Result<()> {
//! # let device = Device::open("host")?;
//! # let (stream, other) = (device.stream()?, device.to_device(&[1.0f64; 8])?);
//! let (x, mut y) = (device.to_device(&[1.0f32; 8])?, device.device_array::<f32, _>(8)?);
//! let graph = device.record((&x, &mut y, 2.0f32), |stream, (x, mut y, _)| stream.copy_to_device(&mut y, &x))?;
//! let table = device.device_array::<f32, _>((8, 1))?;
//! graph.launch(&stream, (&table, &mut y, 3.0f32))?;
//! # Ok(())
//! # }
//! ```
//! Nor a number of another type.
//! ```compile_fail,E0271
//! # use gpumem::prelude::*;
//! # fn main() -> gpumem::Result<()> {
//! # let device = Device::open("host")?;
//! # let (stream, other) = (device.stream()?, device.to_device(&[1.0f64; 8])?);
//! let (x, mut y) = (device.to_device(&[1.0f32; 8])?, device.device_array::<f32, _>(8)?);
//! let graph = device.record((&x, &mut y, 2.0f32), |stream, (x, mut y, _)| stream.copy_to_device(&mut y, &x))?;
//! graph.launch(&stream, (&x, &mut y, 3.0f64))?;
//! # Ok(())
//! # }
//! ```
//! Nor fewer of them.
//! ```compile_fail,E0271
//! # use gpumem::prelude::*;
//! # fn main() -> gpumem::Result<()> {
//! # let device = Device::open("host")?;
//! # let (stream, other) = (device.stream()?, device.to_device(&[1.0f64; 8])?);
//! let (x, mut y) = (device.to_device(&[1.0f32; 8])?, device.device_array::<f32, _>(8)?);
//! let graph = device.record((&x, &mut y, 2.0f32), |stream, (x, mut y, _)| stream.copy_to_device(&mut y, &x))?;
//! graph.launch(&stream, (&x, &mut y))?;
//! # Ok(())
//! # }
//! ```
//!
//! # What a body gets ends with it
//! ```
//! # use gpumem::prelude::*;
//! # fn main() -> gpumem::Result<()> {
//! # let device = Device::open("host")?;
//! # let (stream, other) = (device.stream()?, device.to_device(&[1.0f64; 8])?);
//! let (x, mut y) = (device.to_device(&[1.0f32; 8])?, device.device_array::<f32, _>(8)?);
//! let mut axes = 0;
//! device.record((&x, 2.0f32), |_, (x, _)| {
//!     axes = x.ndim();
//!     Ok(())
//! })?;
//! # Ok(())
//! # }
//! ```
//! No view is kept.
//! ```compile_fail,E0521
//! # use gpumem::prelude::*;
//! # fn main() -> gpumem::Result<()> {
//! # let device = Device::open("host")?;
//! # let (stream, other) = (device.stream()?, device.to_device(&[1.0f64; 8])?);
//! let (x, mut y) = (device.to_device(&[1.0f32; 8])?, device.device_array::<f32, _>(8)?);
//! let mut kept = None;
//! device.record((&x, 2.0f32), |_, (x, _)| {
//!     kept = Some(x);
//!     Ok(())
//! })?;
//! # Ok(())
//! # }
//! ```
//! Nor the stream, but for a clone, which is refused wherever it is used.
//! ```compile_fail,E0521
//! # use gpumem::prelude::*;
//! # fn main() -> gpumem::Result<()> {
//! # let device = Device::open("host")?;
//! # let (stream, other) = (device.stream()?, device.to_device(&[1.0f64; 8])?);
//! let (x, mut y) = (device.to_device(&[1.0f32; 8])?, device.device_array::<f32, _>(8)?);
//! let mut kept = None;
//! device.record((&x, 2.0f32), |stream, (x, _)| {
//!     kept = Some(stream);
//!     Ok(())
//! })?;
//! # Ok(())
//! # }
//! ```
//! Nor can the body look at a number.
//! ```compile_fail,E0369
//! # use gpumem::prelude::*;
//! # fn main() -> gpumem::Result<()> {
//! # let device = Device::open("host")?;
//! # let (stream, other) = (device.stream()?, device.to_device(&[1.0f64; 8])?);
//! let (x, mut y) = (device.to_device(&[1.0f32; 8])?, device.device_array::<f32, _>(8)?);
//! device.record((&x, 2.0f32), |_, (x, a)| {
//!     if a > 1.0 {
//!         return Ok(());
//!     }
//!     Ok(())
//! })?;
//! # Ok(())
//! # }
//! ```
