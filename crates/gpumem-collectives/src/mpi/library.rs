//! Finding the library, and the results of its calls.

use super::abi::{self, table::Functions};
use gpumem_core::{LoadError, LoadFailure, process::OnceBeforeFork};
use gpumem_sys::{MissingSymbol, Refusal, libloading::Library, open};
use std::{
    env,
    ffi::{CStr, c_char, c_int},
    path::PathBuf,
};

/// The name of the library in the standard.
const NAME: &str = "libmpi_abi.so.1";
/// The variable that names the library's file.
const VARIABLE: &str = "GPUMEM_MPI";
/// A function by which the library is known.
const KNOWN_BY: &CStr = c"MPI_Abi_get_version";
const WHAT: &str = "MPI's standard ABI";

/// A loaded library. It stays loaded until the process ends.
#[derive(Debug)]
pub(crate) struct Mpi {
    pub(crate) functions: Functions,
    /// What it says of itself, in one line.
    pub(crate) version: String,
}

/// The library of this process, which is looked for once.
pub(crate) fn library() -> Result<&'static Mpi, LoadError> {
    static MPI: OnceBeforeFork<Result<Mpi, LoadError>> = OnceBeforeFork::new();
    let found = MPI.get_or_init(|| find(&Places::from_environment()));
    found.map_or_else(|| Err(LoadError::in_forked_child(WHAT)), |found| found.as_ref().map_err(Clone::clone))
}

/// Where the library is looked for.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// The file that the variable names: then nowhere else.
    named: Option<PathBuf>,
    /// Folders to look into after the system's loader has found nothing.
    folders: Vec<PathBuf>,
}

impl Places {
    /// The variable, then the folder of the launcher: `mpiexec` of PyPI's package lies beside the library.
    fn from_environment() -> Self {
        let named = env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
        let path = env::var_os("PATH").unwrap_or_default();
        let launcher = env::split_paths(&path).find(|folder| folder.join("mpiexec").is_file());
        let folders = launcher.into_iter().filter_map(|folder| Some(folder.parent()?.join("lib")));
        Self { named, folders: folders.collect() }
    }
}

/// Looks for the library: the variable's file; the copy that the process has loaded, or that the system's loader
/// finds; the folders.
pub(crate) fn find(places: &Places) -> Result<Mpi, LoadError> {
    let candidates = match &places.named {
        Some(named) => vec![named.clone()],
        None => {
            let folders = places.folders.iter().map(|folder| folder.join(NAME));
            std::iter::once(PathBuf::from(NAME)).chain(folders).collect()
        }
    };
    let (mut tried, mut failure) = (Vec::new(), LoadFailure::Missing);
    for candidate in &candidates {
        tried.push(candidate.display().to_string());
        match open(candidate, KNOWN_BY).map_err(told).and_then(resolve) {
            Ok(mpi) => return Ok(mpi),
            Err(LoadFailure::Missing) => {}
            Err(found) if failure == LoadFailure::Missing => failure = found,
            Err(_) => {}
        }
    }
    Err(LoadError { library: WHAT, tried, failure })
}

fn told(refusal: Refusal) -> LoadFailure {
    match refusal {
        Refusal::Missing => LoadFailure::Missing,
        Refusal::Other(name) => LoadFailure::MissingSymbol { name },
        refusal => LoadFailure::Refused { message: refusal.to_string() },
    }
}

/// Looks up every function. A library that lacks one does not serve.
fn resolve(library: &'static Library) -> Result<Mpi, LoadFailure> {
    // SAFETY: a library that has the first function of the ABI has its other functions with the types of the ABI.
    let functions = unsafe { Functions::resolve(library) };
    if let Some(name) = functions.missing().next() {
        return Err(LoadFailure::MissingSymbol { name: name.to_owned() });
    }
    let (mut major, mut minor) = (0, 0);
    // SAFETY: places for two numbers. The function may be called before MPI is initialised.
    let status = unsafe { functions.MPI_Abi_get_version(&mut major, &mut minor) };
    if status != Ok(abi::SUCCESS) || major != 1 {
        return Err(LoadFailure::Refused {
            message: format!("version {major}.{minor} of the ABI, not version 1"),
        });
    }
    let version = text::<{ abi::MAX_LIBRARY_VERSION_STRING }>(|text, length| {
        // SAFETY: a place of the length that the ABI asks for. The function may be called before MPI is initialised.
        unsafe { functions.MPI_Get_library_version(text, length) }
    });
    let version = version.lines().next().unwrap_or_default().trim().to_owned();
    Ok(Mpi { functions, version })
}

/// Reads a text that a function writes into a place of `LENGTH` bytes.
fn text<const LENGTH: usize>(
    write: impl FnOnce(*mut c_char, &mut c_int) -> Result<c_int, MissingSymbol>,
) -> String {
    let (mut bytes, mut length) = (vec![0_u8; LENGTH + 1], 0);
    let _ = write(bytes.as_mut_ptr().cast(), &mut length);
    let end = usize::try_from(length).unwrap_or(0).min(LENGTH);
    let written = bytes.get(..end).unwrap_or_default();
    String::from_utf8_lossy(written.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
}

/// A call that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MpiError {
    /// What the library says.
    pub(crate) message: String,
}

impl Mpi {
    /// Turns the result of a call into an error with the library's text.
    pub(crate) fn check(&self, result: Result<c_int, MissingSymbol>) -> Result<(), MpiError> {
        #[cfg(all(test, not(miri)))]
        assert_ne!(result, Ok(abi::table::double::PANICS), "a call of the double's plan");
        let code = match result {
            Ok(abi::SUCCESS) => return Ok(()),
            Ok(code) => code,
            Err(missing) => return Err(MpiError { message: missing.to_string() }),
        };
        let message = text::<{ abi::MAX_ERROR_STRING }>(|text, length| {
            // SAFETY: a place of the length that the ABI asks for; the code comes from the library.
            unsafe { self.functions.MPI_Error_string(code, text, length) }
        });
        Err(MpiError { message: format!("MPI reports error {code}: {message}") })
    }
}

/// Whether the library may be called by a thread of its own, from how it was initialised.
pub(crate) fn check_threads(provided: c_int, by_engine: bool) -> Result<(), String> {
    if by_engine || provided == abi::THREAD_MULTIPLE {
        // The engine's thread is the only one that calls the library, or every thread may.
        return Ok(());
    }
    let why = "another library has initialised MPI without MPI_THREAD_MULTIPLE, and the engine calls it from a thread";
    Err(format!("{why} of its own (it has level {provided})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_of_its_own_needs_a_library_of_its_own_or_one_for_all_threads() {
        for provided in [0, 1024, 2048] {
            assert_eq!(check_threads(provided, true), Ok(()));
            assert!(check_threads(provided, false).unwrap_err().contains(&format!("level {provided}")));
        }
        assert_eq!(check_threads(abi::THREAD_MULTIPLE, false), Ok(()));
    }

    #[test]
    #[cfg_attr(miri, ignore = "loads a library")]
    fn a_missing_library_is_told_with_what_was_tried() {
        let places = Places { named: Some("/nowhere/libmpi_abi.so.1".into()), folders: Vec::new() };
        let error = find(&places).unwrap_err();
        assert_eq!(error.failure, LoadFailure::Missing);
        assert_eq!(error.tried, ["/nowhere/libmpi_abi.so.1"]);
        // The C library has none of the functions.
        let places = Places { named: Some("libc.so.6".into()), folders: Vec::new() };
        if cfg!(target_os = "linux") {
            let missing = LoadFailure::MissingSymbol { name: "MPI_Abi_get_version".to_owned() };
            assert_eq!(find(&places).unwrap_err().failure, missing);
        }
    }
}
