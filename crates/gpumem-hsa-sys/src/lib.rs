//! The HSA runtime of ROCm, found at run time.
//!
//! * [`Hsa`] is a table of its functions. Each is looked up for itself: one that is missing is an error of its call, so
//!   that an older library still serves for everything else.
//! * Types and constants are made by bindgen from the headers of ROCm 5.2 (`cargo xtask bindings`). The interface only
//!   grows: what these headers declare is in every later version. C enums are integers with named values, because a
//!   library may answer with a value that the headers do not have.
//! * [`Places`] knows where the libraries of ROCm are looked for; HIP's are found by the same rule.
//!
//! ```no_run
//! use gpumem_hsa_sys::{Places, hsa_status_t, load};
//!
//! let hsa = load(&Places::from_environment())?;
//! // SAFETY: the function has no preconditions.
//! let status = unsafe { hsa.functions.hsa_init() }?;
//! assert_eq!(status, hsa_status_t::HSA_STATUS_SUCCESS);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]

#[allow(
    missing_docs,
    missing_debug_implementations,
    non_camel_case_types,
    non_upper_case_globals,
    non_snake_case,
    unused_imports,
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    clippy::missing_safety_doc,
    reason = "generated, in the names of the library"
)]
mod bindings;
mod search;
mod table;

pub use bindings::*;
pub use search::{Attempt, Environment, LoadError, Loaded, Places, Refusal, find, installed, open};
pub use table::MissingSymbol;

#[doc(hidden)]
pub use libloading;

/// Names of the library: one version number from ROCm 1 to ROCm 7.
pub const NAMES: &[&str] = &["libhsa-runtime64.so.1", "libhsa-runtime64.so"];

/// Finds the HSA runtime. It stays loaded until the process ends.
///
/// A program that uses HIP as well loads HIP first: HIP brings the runtime that belongs to it, and the system's loader
/// then answers with that copy.
///
/// # Errors
/// Returns the files that were tried, and why each failed.
pub fn load(places: &Places) -> Result<Loaded<Hsa>, LoadError> {
    let found = find("the HSA runtime of ROCm", NAMES, places, c"hsa_init")?;
    // SAFETY: a library of this name that has HSA's first function is the HSA runtime.
    let functions = unsafe { Hsa::resolve(found.functions) };
    Ok(Loaded { functions, name: found.name })
}
