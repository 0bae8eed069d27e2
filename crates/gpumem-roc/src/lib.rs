//! gpumem on AMD GPUs: looks for ROCm, and has no devices yet.
//!
//! [`Roc`] is a complete [`Backend`](gpumem_core::Backend) whose device type has no values: everything that is built
//! over a backend builds over it, on every machine, and opening a device is an error that says why.
//! [`probe`](gpumem_core::Backend::probe) really looks for the HSA runtime and for HIP of ROCm 5, 6 and 7, in this
//! order:
//!
//! 1. the folders of `GPUMEM_ROC_LIBRARY_PATH`, separated as in `PATH`;
//! 2. wherever the system's loader finds them, which also gives the copies that another library has loaded already;
//! 3. `$ROCM_PATH/lib`;
//! 4. `/opt/rocm/lib`.
//!
//! Where both are found, the failure is [`LoadFailure::NoBackend`](gpumem_core::LoadFailure::NoBackend).
#![cfg_attr(docsrs, feature(doc_cfg))]

mod absent;
mod backend;
mod probe;

pub use absent::{Barrier, Buffer, Device, Event, Kernel, Module, Stream};
pub use backend::Roc;
