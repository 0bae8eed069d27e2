//! HIP's C interface on top of the CUDA driver and NVRTC.
//!
//! The shared library of this package replaces `libamdhip64.so` and `libhiprtc.so`, so that a program or a backend that
//! was written for ROCm runs on an NVIDIA GPU unchanged. It covers HIP only, not HSA. See the package's README for how
//! it is used, what it covers and what it proves.
//!
//! The Rust interface is for tests only: types, tables and the functions themselves.
#![cfg(target_os = "linux")]

pub mod attributes;
mod compile;
mod driver;
mod error;
mod exports;
mod flags;
mod launch;
mod options;
mod properties;
mod regions;
mod state;
pub mod types;
mod version;

pub use compile::{Program, RESULTS};
pub use error::STATUSES;
pub use exports::{
    Signature, copy::*, device::*, event::*, fill::*, graph::*, hiprtc::*, host::*, ipc::*, managed::*,
    memory::*, module::*, peer::*, pointer::*, signatures, status::*, stream::*,
};
pub use version::Version;
