//! Finding the driver and NVRTC, once each, before anything else is called.

use crate::{
    NAME,
    api::{DriverApi, NvrtcApi},
    error::{ERROR_NAME, GetErrorName, Status},
};
use cudarc::driver::sys::{CUcontext, CUevent};
use gpumem_core::{
    Error, ErrorKind, LoadError, LoadFailure, Result,
    process::{OnceBeforeFork, ProcessGuard},
};
use libloading::Library;
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

/// The oldest driver that has all functions and their present meaning: CUDA 12.0.
const OLDEST: i32 = 12_000;

/// `cuCtxRecordEvent`.
pub(crate) type RecordContext = unsafe extern "C" fn(CUcontext, CUevent) -> Status;

/// The driver, initialised in this process.
pub(crate) struct Driver {
    pub(crate) api: DriverApi,
    /// Records an event after all streams of a context. Drivers have it from CUDA 12.5 on.
    pub(crate) record_context: Option<RecordContext>,
    /// The process that it was initialised in; it does not survive a fork.
    pub(crate) origin: ProcessGuard,
}

struct Refusal {
    error: LoadError,
    /// The driver works and has no device.
    no_device: bool,
}

static DRIVER: OnceBeforeFork<Result<Driver, Refusal>> = OnceBeforeFork::new();
/// NVRTC, and which one it is.
pub(crate) struct Nvrtc {
    pub(crate) api: NvrtcApi,
    pub(crate) version: String,
}

static NVRTC: OnceBeforeFork<Result<Nvrtc, LoadError>> = OnceBeforeFork::new();

/// `None` in a child that was forked while its parent was loading it.
fn load() -> Option<&'static Result<Driver, Refusal>> {
    DRIVER.get_or_init(|| {
        let names = cudarc::get_lib_name_candidates(if cfg!(windows) { "nvcuda" } else { "cuda" });
        let mut no_device = false;
        find("the CUDA driver", names, |library, _| start(library, &mut no_device))
            .map_err(|error| Refusal { error, no_device })
    })
}

/// Whether the driver can be used.
pub(crate) fn probe() -> Result<(), LoadError> {
    match load() {
        Some(outcome) => outcome.as_ref().map(drop).map_err(|refusal| refusal.error.clone()),
        None => Err(LoadError::in_forked_child("the CUDA driver")),
    }
}

/// The driver, or `None` where it works and has no device.
pub(crate) fn driver_if_any(operation: &'static str) -> Result<Option<&'static Driver>> {
    match load() {
        Some(Err(refusal)) if refusal.no_device => Ok(None),
        _ => driver(operation).map(Some),
    }
}

pub(crate) fn driver(operation: &'static str) -> Result<&'static Driver> {
    match load() {
        Some(Ok(driver)) => driver.origin.check(NAME, operation).map(|()| driver),
        Some(Err(refusal)) => Err(Error::new(NAME, operation, refusal.error.clone())),
        None => Err(Error::new(NAME, operation, ErrorKind::ForkedChild)),
    }
}

pub(crate) fn nvrtc(operation: &'static str) -> Result<&'static Nvrtc> {
    const NAMED: &str = "the CUDA run-time compiler (NVRTC)";
    let outcome = NVRTC.get_or_init(|| {
        find(NAMED, nvrtc_names(), |library, name| {
            // SAFETY: a library of this name is NVRTC.
            let api = unsafe { NvrtcApi::resolve(library) }.map_err(missing)?;
            let (mut major, mut minor) = (0, 0);
            // SAFETY: both are places for an integer.
            unsafe { api.nvrtcVersion(&mut major, &mut minor) }
                .ok()
                .map_err(|status| LoadFailure::Refused { message: format!("status {}", status.0) })?;
            if major < 12 {
                let have = format!("{major}.{minor}");
                return Err(LoadFailure::TooOld { have, need: "12.0".to_owned() });
            }
            // It opens its other part by name, and not every package's library finds that beside itself.
            if let Some(folder) = Path::new(name).parent() {
                let part = folder.join(format!("libnvrtc-builtins.so.{major}.{minor}"));
                // SAFETY: as in `find`.
                let part = part.is_file().then(|| unsafe { Library::new(part) });
                std::mem::forget(part);
            }
            Ok(Nvrtc { api, version: format!("NVRTC {major}.{minor} ({name})") })
        })
    });
    let failed = |error: LoadError| Error::new(NAME, operation, error);
    let Some(outcome) = outcome else { return Err(failed(LoadError::in_forked_child(NAMED))) };
    outcome.as_ref().map_err(|error| failed(error.clone()))
}

fn start(library: &Library, no_device: &mut bool) -> Result<Driver, LoadFailure> {
    // SAFETY: a library of this name is the CUDA driver.
    let api = unsafe { DriverApi::resolve(library) }.map_err(missing)?;
    // SAFETY: a function of this name has this signature in every driver.
    if let Ok(get) = unsafe { library.get::<GetErrorName>(b"cuGetErrorName\0") } {
        ERROR_NAME.get_or_init(|| *get);
    }
    let refused = |status: Status| LoadFailure::Refused { message: status.to_string() };
    let mut version = 0;
    // SAFETY: a place for an integer; the function needs no initialisation.
    unsafe { api.cuDriverGetVersion(&mut version) }.ok().map_err(refused)?;
    if version < OLDEST {
        return Err(LoadFailure::TooOld { have: version_text(version), need: version_text(OLDEST) });
    }
    // SAFETY: no pointer is involved.
    let status = unsafe { api.cuInit(0) };
    *no_device |= status == Status::NO_DEVICE;
    status.ok().map_err(refused)?;
    // Asked for after the driver has registered its own exit handler, so that ours runs before it.
    // SAFETY: a function of this name has this signature in every driver that has it.
    let record_context =
        unsafe { library.get::<RecordContext>(b"cuCtxRecordEvent\0") }.ok().map(|found| *found);
    Ok(Driver { api, record_context, origin: ProcessGuard::of_driver() })
}

fn version_text(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

fn missing(name: &'static str) -> LoadFailure {
    LoadFailure::MissingSymbol { name: name.to_owned() }
}

/// The names of NVRTC in NVIDIA's packages for Python.
const NAMES_IN_PACKAGES: [&str; 2] = ["libnvrtc.so.13", "libnvrtc.so.12"];

static COMPILER_FOLDERS: OnceBeforeFork<Vec<PathBuf>> = OnceBeforeFork::new();

/// Has this process look for NVRTC in these folders too, after the system's loader and where toolkits are: in the packages of a
/// Python, say. The first call counts, before anything is compiled.
pub fn add_compiler_folders(folders: impl IntoIterator<Item = PathBuf>) {
    COMPILER_FOLDERS.get_or_init(|| folders.into_iter().collect());
}

/// cudarc's names, then those of newer versions and the places where toolkits put them, and the folders that the program knows of.
fn nvrtc_names() -> Vec<String> {
    let mut names = cudarc::get_lib_name_candidates("nvrtc");
    if cfg!(windows) {
        names.extend(["nvrtc64_130_0.dll", "nvrtc64_120_0.dll"].map(str::to_owned));
    } else {
        names.push("libnvrtc.so.13".to_owned());
        let homes = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(|name| std::env::var(name).ok());
        names.extend(
            homes.chain(["/usr/local/cuda".to_owned()]).map(|home| format!("{home}/lib64/libnvrtc.so")),
        );
        let files =
            |folder: &PathBuf| NAMES_IN_PACKAGES.map(|name| folder.join(name).to_string_lossy().into_owned());
        names.extend(COMPILER_FOLDERS.get().into_iter().flatten().flat_map(files));
    }
    names
}

/// The first library of these names that serves. It is never unloaded.
///
/// Naming what a found library lacks is a better answer than that another name was not found.
fn find<T>(
    what: &'static str,
    mut names: Vec<String>,
    mut serve: impl FnMut(&Library, &str) -> Result<T, LoadFailure>,
) -> Result<T, LoadError> {
    // cudarc names some more than once.
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    let mut failure = LoadFailure::Missing;
    // The loader would wait for the other end of a pipe.
    let is_loadable = |name: &&String| {
        !name.contains('/') || std::fs::metadata(name).map_or(true, |metadata| metadata.is_file())
    };
    for name in names.iter().filter(is_loadable) {
        // SAFETY: loading runs the library's initialisers; those of NVIDIA's libraries have no preconditions.
        let Ok(library) = (unsafe { Library::new(name) }) else { continue };
        let outcome = serve(&library, name);
        // The functions that were found stay callable, and a driver that has started threads cannot be unloaded.
        std::mem::forget(library);
        match outcome {
            Ok(found) => return Ok(found),
            Err(reason) if failure == LoadFailure::Missing => failure = reason,
            Err(_) => {}
        }
    }
    Err(LoadError { library: what, tried: names, failure })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn folders_of_the_program_come_last_and_once() {
        for folder in ["/packages", "/others"] {
            add_compiler_folders([folder.into()]);
        }
        let all = nvrtc_names();
        let last = ["/packages/libnvrtc.so.13", "/packages/libnvrtc.so.12"];
        assert!(all.ends_with(&last.map(str::to_owned)), "{all:?}");
        assert!(!all.iter().any(|name| name.starts_with("/others")));
    }

    #[test]
    fn a_missing_library_is_reported_with_what_was_tried() {
        let tried = names(&["libgpumem-no-such-library.so", "libgpumem-nor-this.so.1"]);
        let twice = [tried.clone(), tried.clone()].concat();
        let error = find("a library", twice, |_, _| Ok(())).unwrap_err();
        assert_eq!(error, LoadError { library: "a library", tried, failure: LoadFailure::Missing });
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_library_without_the_functions_is_reported_with_the_first_missing_one() {
        let tried = names(&["libgpumem-no-such-library.so", "libc.so.6", "libgpumem-nor-this.so.1"]);
        let mut no_device = false;
        let error = find("a library", tried, |library, _| start(library, &mut no_device)).err().unwrap();
        assert_eq!(error.failure, missing("cuInit"));
        assert!(!no_device);
        // SAFETY: the C library has no function of such a name, so none is called.
        let error = find("a library", names(&["libc.so.6"]), |library, _| unsafe {
            NvrtcApi::resolve(library).map_err(missing)
        });
        assert_eq!(error.err().unwrap().failure, missing("nvrtcVersion"));
    }

    #[test]
    fn versions_are_written_as_nvidia_writes_them() {
        assert_eq!(version_text(12_000), "12.0");
        assert_eq!(version_text(13_020), "13.2");
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_in_place_of_a_library_is_not_opened() {
        let pipe = std::env::temp_dir().join(format!("gpumem-pipe-{}", std::process::id()));
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.is_ok_and(|status| status.success()));
        let name = pipe.to_string_lossy().into_owned();
        let found = find("a pipe", vec![name], |_, _| Ok(()));
        std::fs::remove_file(&pipe).unwrap_or_default();
        assert_eq!(found.map_err(|error| error.failure), Err(LoadFailure::Missing));
    }
}
