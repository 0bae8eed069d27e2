//! Libraries of GPU vendors, found at run time: [`hip`] with hipRTC, the HSA runtime ([`hsa`]), and [`nccl`] with RCCL.
//!
//! * Each library has a table of its functions. Each function is looked up for itself: one that is missing is an error of its call,
//!   so that an older library still serves for everything else.
//! * Types and constants are made by bindgen from the headers of ROCm 5.2 and NCCL 2.32 (`cargo xtask bindings`). C enums are integers
//!   with named values, because a library may answer with a value that the headers do not have.
//! * [`Places`] knows where the libraries of ROCm are looked for, [`nccl::Places`] where the others are.
//!
//! ```no_run
//! use gpumem_sys::{Places, hip};
//!
//! let library = hip::load(&Places::from_environment())?;
//! let mut count = 0;
//! // SAFETY: a place for a number.
//! let status = unsafe { library.functions.hipGetDeviceCount(&mut count) }?;
//! assert_eq!(status, hip::hipError_t::hipSuccess);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod hip;
pub mod hsa;
pub mod nccl;
mod search;
mod table;

pub use search::{Attempt, Environment, LoadError, Loaded, Places, Refusal, find, installed, open};
pub use table::MissingSymbol;

#[doc(hidden)]
pub use libloading;
