//! gpumem on AMD GPUs: [`Backend`](gpumem_core::Backend) on HIP, and on the HSA runtime for what HIP does not say.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod backend;
mod barrier;
mod buffer;
mod context;
mod copy;
mod device;
mod error;
mod event;
mod fill;
mod hiprtc;
mod hsa;
mod image;
mod info;
mod ipc;
mod managed;
mod module;
mod peer;
mod probe;
mod registry;
mod stream;

pub use backend::Roc;
pub use barrier::RocBarrier;
pub use buffer::{Grain, RocBuffer};
pub use device::RocDevice;
pub use event::RocEvent;
pub use hsa::{Agent, AgentKind, Pool, PoolKind};
pub use ipc::IpcMemory;
pub use module::{RocKernel, RocModule};
pub use stream::RocStream;

/// The name of the backend in selectors and errors.
const NAME: &str = "roc";
