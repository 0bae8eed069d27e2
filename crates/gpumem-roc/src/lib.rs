//! gpumem on AMD GPUs: [`Backend`](gpumem_core::Backend) on HIP, and on the HSA runtime for queries that HIP lacks.
//! Both are loaded at run time.
//!
//! * **Found at run time.** HIP of ROCm 5.2 to 7, hipRTC and the HSA runtime are looked for separately, on first use:
//!   in the folders of `GPUMEM_ROC_LIBRARY_PATH`, by the system's loader, under `$ROCM_PATH` and `$HIP_PATH`, and under
//!   `/opt/rocm*`. A missing library is a [`LoadError`](gpumem_core::LoadError) that lists what was tried. Without
//!   hipRTC everything but compiling works, without the HSA runtime everything but [`RocExt`]'s agents.
//! * **The caller's device stays current.** Every call makes its device HIP's current one and restores the caller's;
//!   failures of this library are not left for the caller's `hipGetLastError`.
//! * **Grain is said, not left to the environment.** Mapped arrays are fine-grained; device and pinned memory is not.
//!   [`RocExt::allocate_grained`] chooses, [`RocExt::grain_of`] tells.
//! * **Any two layouts by kernels.** If copies of up to three dimensions cannot express a layout, the kernels of
//!   [`gpumem_layout::pack`] copy it on the device; hipRTC compiles them on first use. Without a hipRTC that knows the
//!   device, such a copy takes several calls, or goes through the host.
//! * **Two addresses.** The device's address of host memory is queried, never assumed to be the host's.
//! * **Not used.** HIP's stream-ordered allocator, which has corrupted memory in the field, and `hsa_amd_memory_fill` on
//!   memory of the host, which it fills with the wrong bytes.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod backend;
mod barrier;
mod buffer;
mod context;
mod copy;
mod device;
mod enqueue_lock;
mod error;
mod event;
mod ext;
mod fill;
mod graph;
mod graph_choice;
mod graph_test;
mod hiprtc;
mod hsa;
mod hsa_runtime;
mod image;
mod info;
mod managed;
mod module;
mod pack;
mod packers;
mod pin;
mod pointer;
mod probe;
mod provenance;
mod registry;
mod stream;

pub use barrier::RocBarrier;
pub use buffer::{Grain, RocBuffer};
pub use device::RocDevice;
pub use event::RocEvent;
pub use ext::{RocExt, Wavefront};
pub use hsa::{Agent, AgentKind, Pool, PoolKind};
pub use module::{RocKernel, RocModule};
pub use pin::{Pinning, Registered, RegisteredRange};
pub use pointer::{MemoryType, Pointer};
pub use stream::RocStream;

/// The name of the backend in selectors and errors.
const NAME: &str = "roc";

/// AMD GPUs through ROCm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Roc;
