//! Imports what most programs use: `use gpumem::prelude::*;`.
//!
//! [`Result`](crate::Result) and [`Error`](crate::Error) are not in it, so that `std`'s names keep their meaning.
//! The body of a kernel has a prelude of its own, [`kernel::prelude`](crate::kernel::prelude).
//! ```
//! use gpumem::prelude::*;
//!
//! let device = Device::open("host")?;
//! let mut array: DeviceArray<f32> = device.to_device(&[1.0, 2.0, 3.0])?;
//! array.slice_mut(s![1..])?.fill(0.0)?;
//! assert_eq!(array.copy_to_host()?.to_vec(), [1.0, 0.0, 0.0]);
//! # Ok::<(), gpumem::Error>(())
//! ```

pub use crate::{
    ArraySpec, Attach, Device, DeviceArray, DeviceView, DeviceViewMut, Element, Event, FromDevice,
    IntoArraySpec, ManagedArray, MappedArray, MappedOptions, MemoryKind, Order, PinnedArray, Scalar, Scope,
    Stream, ToDevice, UninitArray, field,
    kernel::{In, InOut, KernelDef, Out, config_for_items},
    ops::ArrayOps,
    s,
};
