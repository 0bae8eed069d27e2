//! Elements are plain old data: every bit pattern is a value, and there is no padding.
//!
//! # Numbers and records of numbers
//! ```
//! #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
//! #[repr(C)]
//! struct CopyNest { key: u32, value: f32 }
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let flags = device.device_array::<u8, _>(3)?;
//! let letters = device.device_array::<u32, _>(3)?;
//! let pairs = device.device_array::<CopyNest, _>(3)?;
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
//! struct CopyNest { key: u32, value: f32 }
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let pairs = device.device_array::<CopyNest, _>(3)?;
//! # Ok(())
//! # }
//! ```
//! A record with padding cannot say so.
//! ```compile_fail,E0080
//! #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
//! #[repr(C)]
//! struct CopyNest { key: u8, value: f32 }
//! # use gpumem_core::Result;
//! # use gpumem_host::Host;
//! # use gpumem_runtime::{Device, DeviceArray, DeviceView, PinnedArray, RawAccess};
//! # use ndarray::{Array1, Ix1, array, s};
//! # fn main() -> Result<()> {
//! # let device = Device::<Host>::open("host")?;
//! # let stream = device.stream()?;
//! let pairs = device.device_array::<CopyNest, _>(3)?;
//! # Ok(())
//! # }
//! ```
//!
//! # Fields have their own type
//! ```
//! #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
//! #[repr(C)]
//! struct Record { tag: u8, bytes: Bytes, rest: [u8; 7] }
//! #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
//! #[repr(transparent)]
//! struct Bytes([u8; 8]);
//! let bytes: gpumem_runtime::Field<Record, Bytes> = gpumem_runtime::field!(Record, bytes);
//! ```
//! Not the type that their own dereferences to, which may need another alignment.
//! ```compile_fail,E0308
//! #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
//! #[repr(C)]
//! struct Record { tag: u8, bytes: Bytes, rest: [u8; 7] }
//! #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
//! #[repr(transparent)]
//! struct Bytes([u8; 8]);
//! impl std::ops::Deref for Bytes {
//!     type Target = u64;
//!     fn deref(&self) -> &u64 { &0 }
//! }
//! let bytes: gpumem_runtime::Field<Record, u64> = gpumem_runtime::field!(Record, bytes);
//! ```
//! Fields of packed records are not aligned.
//! ```compile_fail,E0793
//! #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
//! #[repr(C, packed)]
//! struct Record { tag: u8, mass: f32 }
//! let mass = gpumem_runtime::field!(Record, mass);
//! ```
//!
//! # Alignment in shared memory
//! ```
//! # use gpumem_kernel::WorkItem;
//! fn body(item: WorkItem<'_>) { item.shared::<u128, 1>([4]); }
//! let body: fn(WorkItem<'_>) = body;
//! ```
//! Shared memory is aligned to 16 bytes, and elements that need more are refused.
//! ```compile_fail,E0080
//! # use gpumem_kernel::WorkItem;
//! #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
//! #[repr(C, align(32))]
//! struct Wide([u64; 4]);
//! fn body(item: WorkItem<'_>) { item.shared::<Wide, 1>([4]); }
//! let body: fn(WorkItem<'_>) = body;
//! ```
//!
//! # What a kernel moves by value
//! ```no_run
//! use gpumem::{Device, kernel::prelude::*};
//! type Large = [u8; 1 << 19];
//! #[gpumem::kernel]
//! fn copies(x: Slice<Large>, y: Own<Large>) {
//!     y[own()] = x[global_id(0)];
//! }
//! # fn main() -> gpumem::Result<()> {
//! let kernel = copies().load(&Device::open("host")?)?;
//! # Ok(())
//! # }
//! ```
//! More than a work-item has room for would overflow the stack of the host.
//! ```compile_fail,E0080
//! use gpumem::{Device, kernel::prelude::*};
//! type Large = [u8; (1 << 19) + 1];
//! #[gpumem::kernel]
//! fn copies(x: Slice<Large>, y: Own<Large>) {
//!     y[own()] = x[global_id(0)];
//! }
//! # fn main() -> gpumem::Result<()> {
//! let kernel = copies().load(&Device::open("host")?)?;
//! # Ok(())
//! # }
//! ```
