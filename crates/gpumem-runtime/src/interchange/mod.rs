//! Memory that moves between gpumem and other libraries without a copy.
//!
//! * [`CudaArrayInterface`](crate::CudaArrayInterface): the CUDA Array Interface, version 3, as a typed descriptor. Objects that have one implement
//!   [`HasCudaArrayInterface`]; [`Device::as_cuda_array`](crate::Device::as_cuda_array) takes them in, and
//!   [`cuda_array`] and [`cuda_array_mut`] make them sources and destinations.
//! * [`ImportedArray`]: foreign memory, kept alive by its owner until the last use is over.
//! * [`Loan`]: memory of this library that another one uses. While it lasts, both sides are ordered by
//!   events.
//!
//! * [`dlpack`]: the same two ways by DLPack: [`Device::from_dlpack`](crate::Device::from_dlpack), [`Loan::into_dlpack`].
//!
//! An import waits on the device for the stream that the descriptor names; an export makes the borrower's stream wait
//! for pending work. Neither blocks the host.

pub mod dlpack;
mod export;
mod import;
mod owned;
mod served;
mod source;

pub use dlpack::DlpackTensor;
#[cfg(loom)]
pub(crate) use export::lend_on;
pub use export::{Loan, Noted};
pub use import::{HasCudaArrayInterface, ImportedArray, is_cuda_array};
pub use served::{FoundStream, ServedMemory, ServedStreams};
pub use source::{CudaArrayDestination, CudaArraySource, cuda_array, cuda_array_mut};
