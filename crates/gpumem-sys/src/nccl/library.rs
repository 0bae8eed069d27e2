//! A loaded library: how it is found, and the results of its calls.

use super::{
    Attempt, Engine, Failure, LoadError, MissingSymbol, Nccl, Places, Rccl, Refusal, Version, failure,
    ncclResult_t, ncclUniqueId, process,
};
use crate::open;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::null_mut;
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
    /// The name that was looked for.
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

impl Library {
    /// Turns the result of a function of the tables into an error, with the library's message.
    ///
    /// # Errors
    /// Returns [`Failure::Unsupported`] if the library lacks the function, and [`Failure::Status`] if the function
    /// reports anything but `ncclSuccess`: also `ncclInProgress`, of a communicator that does not block.
    pub fn check(&self, outcome: Result<ncclResult_t, MissingSymbol>) -> Result<(), Failure> {
        match outcome {
            Ok(ncclResult_t::ncclSuccess) => Ok(()),
            Ok(status) => Err(Failure::Status { status, message: self.message(status) }),
            Err(MissingSymbol(what)) => {
                Err(Failure::Unsupported { what, version: self.version, since: Version::since(what) })
            }
        }
    }

    /// Makes the identity of a new communicator, which its ranks have to share. It needs no device.
    ///
    /// # Errors
    /// Returns [`Failure::Status`] if the library finds no network interface, for example.
    pub fn unique_id(&self) -> Result<ncclUniqueId, Failure> {
        let mut id = ncclUniqueId::default();
        // SAFETY: a place for the identity.
        self.check(unsafe { self.ncclGetUniqueId(&mut id) })?;
        Ok(id)
    }

    /// Returns the library's message for a result: the kind of the error, and the text of the last one.
    fn message(&self, status: ncclResult_t) -> String {
        // SAFETY: the function takes any number.
        let kind = unsafe { self.ncclGetErrorString(status) };
        // SAFETY: it has not been told of a communicator, and no version looks at that argument.
        let last = unsafe { self.ncclGetLastError(null_mut()) };
        let words = [kind, last].into_iter().flatten().filter_map(text).filter(|words| !words.is_empty());
        words.collect::<Vec<_>>().join(": ")
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

/// Finds a library that the process has loaded: by the library's names, whose files may have other names, and by file.
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

/// Reads a text of the library.
fn text(pointer: *const c_char) -> Option<String> {
    // SAFETY: the library gives a text that ends with a zero and lives as long as itself, or nothing.
    (!pointer.is_null()).then(|| unsafe { CStr::from_ptr(pointer) }.to_string_lossy().trim().to_owned())
}
