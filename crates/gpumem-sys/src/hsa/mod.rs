//! The HSA runtime of ROCm. Its interface only grows: what the headers of ROCm 5.2 declare is in every later version.
//!
//! ```no_run
//! use gpumem_sys::{Places, hsa};
//!
//! let library = hsa::load(&Places::from_environment())?;
//! // SAFETY: the function has no preconditions.
//! let status = unsafe { library.functions.hsa_init() }?;
//! assert_eq!(status, hsa::hsa_status_t::HSA_STATUS_SUCCESS);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bindings;

pub use bindings::*;

use crate::{LoadError, Loaded, Places, find};

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
