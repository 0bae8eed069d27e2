//! NCCL and RCCL, found at run time.
//!
//! * [`Nccl`] is a table of functions, the same one for both libraries: AMD's has NVIDIA's names, numbers and structures.
//!   Each function is looked up for itself: one that is missing is an error of its call, so that an older library still
//!   serves for everything else. [`Rccl`] has the few functions that only AMD's library has.
//! * Streams and events are plain pointers: CUDA's or HIP's, as the library is.
//! * Which version has which function is in [`Version::since`].
//! * [`load`] takes the copy that the process has loaded already, if there is one: that of PyTorch or CuPy.
//!
//! ```no_run
//! use gpumem_sys::nccl::{Engine, Places, load};
//!
//! let nccl = load(&Places::from_environment(Engine::Nccl))?;
//! println!("NCCL {} from {}", nccl.version, nccl.path.display());
//! let id = nccl.unique_id()?;
//! let mut communicator = std::ptr::null_mut();
//! // SAFETY: a place for the communicator, which has one rank.
//! nccl.check(unsafe { nccl.ncclCommInitRank(&mut communicator, 1, id, 0) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
mod bindings;
mod failure;
mod library;
mod process;
mod rccl;
mod search;
mod version;

pub use crate::{Attempt, LoadError, MissingSymbol, Refusal};
pub use bindings::*;
pub use failure::{Failure, name};
pub use library::{Library, load};
pub use rccl::Rccl;
pub use search::{Engine, Environment, Places};
pub use version::Version;

use crate::functions;
