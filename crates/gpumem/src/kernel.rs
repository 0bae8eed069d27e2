//! Kernels: one portable source for CUDA and ROCm, one body for the host, declared once and launched safely.
//!
//! The attribute [`kernel`](macro@crate::kernel) makes a Rust function a [`KernelDef`]; its page lists the words and methods that
//! kernels have, beside those of CUDA and Numba. [`KernelDef::load`] makes the declaration a [`Kernel`] of a device, compiled
//! where the device is a GPU, and [`Kernel::launch`] enqueues that after all work that conflicts with its arrays.
//!
//! | for | see |
//! |---|---|
//! | parameters | [`Slice`], [`SliceMut`], [`View`], [`ViewMut`]; [`Own`] and [`OwnView`], with which work-items cannot race; [`Value`] for a record, [`Constant`], [`ConstantArray`]; numbers; `T: `[`Numeric`] |
//! | arguments | arrays and views of the device, `&a` or `&mut a`; arrays of the host as [`In`], [`Out`] or [`InOut`]; numbers |
//! | the size of a launch | [`config_for_items`], [`LaunchConfig`](crate::LaunchConfig) |
//! | functions that kernels call | the attribute [`device`](macro@crate::device) |
//! | races | [`KernelDef::race_checks`], and `gpumem::agreement` for tests |
//! | kernels from source and compiled programs | [`KernelDef::new`], [`KernelDef::source`], [`KernelDef::image`] |
//!
//! ```
//! use gpumem::{Device, kernel::{config_for_items, prelude::*}};
//!
//! #[gpumem::kernel]
//! fn scale<T: Numeric>(x: Own<T>, factor: T) {
//!     x[own()] *= factor;
//! }
//!
//! /// A generic function launches a generic kernel.
//! fn scaled<T: Numeric>(device: &Device, numbers: &[T], factor: T) -> gpumem::Result<Vec<T>> {
//!     let stream = device.stream()?;
//!     let mut x = stream.to_device(numbers)?;
//!     let dims = config_for_items(numbers.len(), numbers.len() as u32);
//!     scale::<T>().load(device)?.launch(&stream, &dims, (&mut x, factor))?;
//!     Ok(x.copy_to_host()?.to_vec())
//! }
//!
//! assert_eq!(scaled(&Device::open("host")?, &[1.0, 2.0, 3.0], 0.5)?, [0.5, 1.0, 1.5]);
//! # Ok::<(), gpumem::Error>(())
//! ```

pub use gpumem_kernel::*;
