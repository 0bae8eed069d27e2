//! Reductions, scans, sorts, casts, maps and random numbers for arrays of gpumem, on every device. Depend on `gpumem`, which
//! re-exports this crate as `gpumem::ops`.
//!
//! [`ArrayOps`] has the operations as methods of arrays. `x.sum()` has finished on return; `x.on(&stream).sum()` returns at once
//! and leaves its result on the device. The names are those of ndarray and CuPy.
//!
//! ```
//! use gpumem_ops::ArrayOps;
//! # type Device = gpumem_runtime::Device<gpumem_host::Host>;
//! let device = Device::open("host")?;
//! let x = device.to_device(&ndarray::array![[3.0f32, 1.0, 2.0], [6.0, 5.0, 4.0]])?;
//! assert_eq!((x.sum()?, x.max()?, x.argmax()?), (21.0, 6.0, 3));
//! assert_eq!(x.mean_axis(1)?.copy_to_host()?, ndarray::array![2.0, 5.0]);
//! assert_eq!(x.t().inclusive_scan(1)?.copy_to_host()?, ndarray::array![[3.0, 9.0], [1.0, 6.0], [2.0, 6.0]]);
//! # Ok::<(), gpumem_core::Error>(())
//! ```
//!
//! `gpumem::ops` says which layouts operands and results have, how accurate the operations are, and what they refuse.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![allow(clippy::type_complexity)] // elements of results are associated types of the operand's

mod array;
mod elements;
mod functions;
mod kernels;
mod maps;
mod operand;
mod random;
mod reductions;
mod scans;
mod sorts;
mod stream;

/// Where the attributes of kernels look for the crate that they use.
pub(crate) mod kernel {
    pub(crate) use gpumem_kernel::*;
}

pub use array::ArrayOps;
pub use elements::{Bounded, Summable};
pub use functions::CastTo;
pub use maps::{concatenate, concatenate_on};
pub use random::{Philox, RandomFloat};
pub use sorts::Sortable;
pub use stream::{OnStream, Results};

/// The key to what is behind the handles of `gpumem-runtime`.
// SAFETY: the crate submits each access to memory that it makes, checked against the memory's bounds.
pub(crate) const KEY: gpumem_runtime::internal::Key = unsafe { gpumem_runtime::internal::Key::new() };
