//! Programs that must not compile. Each stands beside a variant that compiles.
//!
//! # Source and destination are two arrays
//! ```
//! # use gpumem_collectives::{Communicator, InPlace, Product, Sum};
//! # use gpumem_host::Host;
//! # type Device = gpumem_runtime::Device<Host>;
//! # fn main() -> gpumem_core::Result<()> {
//! # let device = Device::open("host")?;
//! # let comm = Communicator::all(&[device.clone()])?.remove(0);
//! # let stream = device.stream()?;
//! let source = stream.to_device(&[1, 2])?;
//! let mut array = stream.to_device(&[0, 0])?;
//! comm.on(&stream).all_reduce(&source, &mut array, Sum)?;
//! if let Err(error) = comm.on(&stream).all_reduce(InPlace, &mut array, Sum) {
//!     drop(array); // nothing borrows it after the call
//!     return Err(error);
//! }
//! # Ok(())
//! # }
//! ```
//! One array cannot be both.
//! ```compile_fail,E0502
//! # use gpumem_collectives::{Communicator, InPlace, Product, Sum};
//! # use gpumem_host::Host;
//! # type Device = gpumem_runtime::Device<Host>;
//! # fn main() -> gpumem_core::Result<()> {
//! # let device = Device::open("host")?;
//! # let comm = Communicator::all(&[device.clone()])?.remove(0);
//! # let stream = device.stream()?;
//! let mut array = stream.to_device(&[1, 2])?;
//! comm.on(&stream).all_reduce(&array, &mut array, Sum)?;
//! # Ok(())
//! # }
//! ```
//!
//! # Arrays outlive their group
//! ```
//! # use gpumem_collectives::{Communicator, InPlace, Product, Sum};
//! # use gpumem_host::Host;
//! # type Device = gpumem_runtime::Device<Host>;
//! # fn main() -> gpumem_core::Result<()> {
//! # let device = Device::open("host")?;
//! # let comm = Communicator::all(&[device.clone()])?.remove(0);
//! # let stream = device.stream()?;
//! let (source, mut array) = (stream.to_device(&[1])?, stream.to_device(&[0])?);
//! comm.group(&stream, |group| {
//!     group.send(&source, 0)?;
//!     group.receive(&mut array, 0)
//! })?;
//! # Ok(())
//! # }
//! ```
//! An array of the closure is gone before the operations are enqueued.
//! ```compile_fail,E0597
//! # use gpumem_collectives::{Communicator, InPlace, Product, Sum};
//! # use gpumem_host::Host;
//! # type Device = gpumem_runtime::Device<Host>;
//! # fn main() -> gpumem_core::Result<()> {
//! # let device = Device::open("host")?;
//! # let comm = Communicator::all(&[device.clone()])?.remove(0);
//! # let stream = device.stream()?;
//! let source = stream.to_device(&[1])?;
//! comm.group(&stream, |group| {
//!     let mut array = stream.to_device(&[0])?;
//!     group.send(&source, 0)?;
//!     group.receive(&mut array, 0)
//! })?;
//! # Ok(())
//! # }
//! ```
//! A view that the group uses cannot be used again before its end.
//! ```compile_fail,E0499
//! # use gpumem_collectives::{Communicator, InPlace, Product, Sum};
//! # use gpumem_host::Host;
//! # type Device = gpumem_runtime::Device<Host>;
//! # fn main() -> gpumem_core::Result<()> {
//! # let device = Device::open("host")?;
//! # let comm = Communicator::all(&[device.clone()])?.remove(0);
//! # let stream = device.stream()?;
//! let mut array = stream.to_device(&[1])?;
//! comm.group(&stream, |group| {
//!     group.all_reduce(InPlace, &mut array, Sum)?;
//!     group.broadcast(&mut array, 0)
//! })?;
//! # Ok(())
//! # }
//! ```
//!
//! # Numbers are reduced
//! ```
//! # use gpumem_collectives::{Communicator, InPlace, Product, Sum};
//! # use gpumem_host::Host;
//! # type Device = gpumem_runtime::Device<Host>;
//! # fn main() -> gpumem_core::Result<()> {
//! # let device = Device::open("host")?;
//! # let comm = Communicator::all(&[device.clone()])?.remove(0);
//! # let stream = device.stream()?;
//! let mut array = stream.to_device(&[num_complex::Complex::new(1.0_f32, 2.0)])?;
//! comm.on(&stream).all_reduce(InPlace, &mut array, Sum)?;
//! let mut records = stream.to_device(&ndarray::arr1(&[[1_i32, 2], [3, 4]]))?;
//! comm.on(&stream).broadcast(&mut records, 0)?;
//! comm.on(&stream).broadcast(&mut stream.to_device(&[1_u16])?, 0)?;
//! # Ok(())
//! # }
//! ```
//! There is no product of complex numbers,
//! ```compile_fail,E0277
//! # use gpumem_collectives::{Communicator, InPlace, Product, Sum};
//! # use gpumem_host::Host;
//! # type Device = gpumem_runtime::Device<Host>;
//! # fn main() -> gpumem_core::Result<()> {
//! # let device = Device::open("host")?;
//! # let comm = Communicator::all(&[device.clone()])?.remove(0);
//! # let stream = device.stream()?;
//! let mut array = stream.to_device(&[num_complex::Complex::new(1.0_f32, 2.0)])?;
//! comm.on(&stream).all_reduce(InPlace, &mut array, Product)?;
//! # Ok(())
//! # }
//! ```
//! no sum of records,
//! ```compile_fail,E0277
//! # use gpumem_collectives::{Communicator, InPlace, Product, Sum};
//! # use gpumem_host::Host;
//! # type Device = gpumem_runtime::Device<Host>;
//! # fn main() -> gpumem_core::Result<()> {
//! # let device = Device::open("host")?;
//! # let comm = Communicator::all(&[device.clone()])?.remove(0);
//! # let stream = device.stream()?;
//! let mut records = stream.to_device(&ndarray::arr1(&[[1_i32, 2], [3, 4]]))?;
//! comm.on(&stream).all_reduce(InPlace, &mut records, Sum)?;
//! # Ok(())
//! # }
//! ```
//! and none of numbers that the libraries do not have.
//! ```compile_fail,E0277
//! # use gpumem_collectives::{Communicator, InPlace, Product, Sum};
//! # use gpumem_host::Host;
//! # type Device = gpumem_runtime::Device<Host>;
//! # fn main() -> gpumem_core::Result<()> {
//! # let device = Device::open("host")?;
//! # let comm = Communicator::all(&[device.clone()])?.remove(0);
//! # let stream = device.stream()?;
//! let mut array = stream.to_device(&[1_u16])?;
//! comm.on(&stream).all_reduce(InPlace, &mut array, Sum)?;
//! # Ok(())
//! # }
//! ```
