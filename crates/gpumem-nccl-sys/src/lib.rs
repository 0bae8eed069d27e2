//! NCCL and RCCL, found at run time.
//!
//! * [`Nccl`] is a table of functions, the same one for both libraries: AMD's has NVIDIA's names, numbers and structures.
//!   Each function is looked up for itself: one that is missing is an error of its call, so that an older library still
//!   serves for everything else. [`Rccl`] has the few functions that only AMD's library has.
//! * Types and constants are made by bindgen from the header of NCCL 2.32 (`cargo xtask bindings`). C enums are integers
//!   with named values, because a library may answer with a value that the header does not have. Streams and events are
//!   plain pointers: CUDA's or HIP's, as the library is.
//! * Which version has which function, field and type is in [`Version`], [`Field`] and [`Config`].
//! * [`load`] takes the copy that the process has loaded already, if there is one: that of PyTorch or CuPy.
//!
//! ```no_run
//! use gpumem_nccl_sys::{Engine, Places, load};
//!
//! let nccl = load(&Places::from_environment(Engine::Nccl))?;
//! println!("NCCL {} from {}", nccl.version, nccl.path.display());
//! let id = nccl.unique_id()?;
//! let mut communicator = std::ptr::null_mut();
//! // SAFETY: a place for the communicator, which has one rank.
//! nccl.check(unsafe { nccl.ncclCommInitRank(&mut communicator, 1, id, 0) })?;
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
mod config;
mod failure;
mod process;
mod rccl;
mod search;
mod version;

pub use bindings::*;
pub use config::{Config, Field, UNSET};
pub use failure::{Failure, name};
pub use gpumem_hsa_sys::{Attempt, LoadError, MissingSymbol, Refusal};
pub use rccl::Rccl;
pub use search::{Engine, Environment, Places};
pub use version::Version;

use core::ffi::{CStr, c_int, c_void};
use gpumem_hsa_sys::{functions, open};
use std::path::{Path, PathBuf};

/// A function by which the library is known. It needs no device.
const KNOWN_BY: &CStr = c"ncclGetVersion";

/// A library with NCCL's interface. It stays loaded until the process ends.
#[derive(Debug, Clone)]
pub struct Library {
    /// The functions of NCCL.
    pub functions: Nccl,
    /// The functions that only RCCL has.
    pub rccl: Rccl,
    /// The version of NCCL's interface, also of RCCL.
    pub version: Version,
    /// The file that it was loaded from.
    pub path: PathBuf,
    /// What was looked for.
    pub engine: Engine,
}

impl std::ops::Deref for Library {
    type Target = Nccl;

    fn deref(&self) -> &Nccl {
        &self.functions
    }
}

impl Library {
    /// Lists other copies of the library that the process has loaded. They and this one do not know each other's
    /// communicators.
    pub fn other_copies(&self) -> Vec<PathBuf> {
        let file = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let own = file(&self.path);
        let mut found = process::files(self.engine.prefix());
        found.retain(|path| file(path) != own);
        found
    }
}

/// Finds a library, in the order of [`Places`].
///
/// # Errors
/// Returns [`LoadError`], with everything that was tried and why it does not serve, if there is no library, if it is older
/// than [`Engine::oldest`], or if the file that the variable names is none.
pub fn load(places: &Places) -> Result<Library, LoadError> {
    let engine = places.engine();
    if let Some(path) = places.named() {
        return from_file(engine, path).map_err(|refusal| LoadError {
            library: engine.what_is_named(),
            attempts: vec![Attempt { name: path.to_owned(), refusal }],
        });
    }
    let mut attempts = Vec::new();
    for path in loaded(engine) {
        match process::open_loaded(&path).map(|library| resolve(engine, &path, Box::leak(Box::new(library))))
        {
            Some(Ok(library)) => return Ok(library),
            // Something else of that name.
            Some(Err(refusal @ Refusal::Other(_))) => attempts.push(Attempt { name: path, refusal }),
            // A second copy beside this one would be worse than none.
            Some(Err(refusal)) => {
                attempts.push(Attempt { name: path, refusal });
                return Err(LoadError { library: engine.what(), attempts });
            }
            None => {}
        }
    }
    for path in places.candidates() {
        match from_file(engine, path) {
            Ok(library) => return Ok(library),
            Err(refusal) => attempts.push(Attempt { name: path.to_owned(), refusal }),
        }
    }
    Err(LoadError { library: engine.what(), attempts })
}

/// What the process has loaded: by the names of the library, which may be those of files with other names, and by files.
fn loaded(engine: Engine) -> impl Iterator<Item = PathBuf> {
    engine.names().iter().map(PathBuf::from).chain(process::files(engine.prefix()))
}

fn from_file(engine: Engine, path: &Path) -> Result<Library, Refusal> {
    resolve(engine, path, open(path, KNOWN_BY)?)
}

/// Fills the tables, if the library is one that serves.
fn resolve(engine: Engine, name: &Path, library: &'static libloading::Library) -> Result<Library, Refusal> {
    // SAFETY: every version has the function with this type.
    let version = unsafe {
        library.get::<unsafe extern "C" fn(*mut c_int) -> ncclResult_t>(KNOWN_BY.to_bytes_with_nul())
    };
    let Ok(get_version) = version else {
        return Err(Refusal::Other(KNOWN_BY.to_string_lossy().into_owned()));
    };
    let mut code = 0;
    // SAFETY: a place for a number.
    let status = unsafe { get_version(&mut code) };
    let version = Version::from_code(code).filter(|_| status == ncclResult_t::ncclSuccess);
    let version = version.ok_or_else(|| Refusal::Version {
        found: format!("{code} ({})", failure::name(status).unwrap_or("unknown result")),
        oldest: engine.oldest().to_string(),
    })?;
    if version < engine.oldest() {
        return Err(Refusal::Version { found: version.to_string(), oldest: engine.oldest().to_string() });
    }
    let path = process::file_of(*get_version as *const c_void).unwrap_or_else(|| name.to_owned());
    // SAFETY: a library that has NCCL's first function and a version of it is NCCL or RCCL, and is never unloaded.
    let (functions, rccl) = unsafe { (Nccl::resolve(library), Rccl::resolve(library)) };
    Ok(Library { functions, rccl, version, path, engine })
}
