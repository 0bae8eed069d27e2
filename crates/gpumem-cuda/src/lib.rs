//! The CUDA backend of gpumem: [`Backend`](gpumem_core::Backend) on the driver API, loaded at run time.
//!
//! * **Found at run time.** The driver (CUDA 12.0 or newer) and NVRTC are looked for separately, on first use. A
//!   missing library is a [`LoadError`](gpumem_core::LoadError) that lists the names that were tried.
//! * **Primary contexts.** A device is its primary context, as for the CUDA runtime, cuBLAS, PyTorch and cudarc, so
//!   memory and streams are shared with them. It is retained until the process ends. The context that is current on
//!   the calling thread is the same after every call as before it.
//! * **Foreign handles.** [`CudaExt`] wraps contexts and memory of other libraries without owning them;
//!   [`DriverDevice::wrap_stream`](gpumem_core::DriverDevice::wrap_stream) does so for streams.
//! * **Faults are sticky.** A kernel that faults loses the device for this process. The first cause is remembered,
//!   and every later call reports [`DeviceLost`](gpumem_core::ErrorKind::DeviceLost) with it until a reset.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod api;
mod backend;
mod barrier;
mod buffer;
mod context;
mod copy;
mod device;
mod error;
mod event;
mod ext;
mod fill;
mod graph;
mod image;
mod info;
mod managed;
mod module;
mod nvrtc;
mod pack;
mod packers;
mod probe;
mod registry;
mod stream;

pub use barrier::CudaBarrier;
pub use buffer::CudaBuffer;
pub use cudarc::driver::sys::{CUcontext, CUdeviceptr, CUfunction, CUstream};
pub use device::CudaDevice;
pub use event::CudaEvent;
pub use ext::CudaExt;
pub use gpumem_core::IpcMemory;
pub use module::{CudaKernel, CudaModule};
pub use probe::add_compiler_folders;
pub use stream::CudaStream;

/// The name of the backend in selectors and errors.
const NAME: &str = "cuda";

/// The CUDA driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Cuda;
