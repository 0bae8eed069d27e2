//! Looks for ROCm's libraries.
//!
//! Nothing is remembered: a program that is told where ROCm is finds it at the next call.

use gpumem_core::{LoadError, LoadFailure};
use std::{
    env,
    error::Error,
    ffi::{CStr, OsStr},
    path::{Path, PathBuf},
};

/// A library that is needed.
struct Wanted {
    library: &'static str,
    /// In the order of preference.
    names: &'static [&'static str],
    /// A function by which the library is recognised.
    symbol: &'static CStr,
}

/// One version number from ROCm 1 to ROCm 7.
const HSA: Wanted = Wanted {
    library: "the HSA runtime of ROCm",
    names: &["libhsa-runtime64.so.1", "libhsa-runtime64.so"],
    symbol: c"hsa_init",
};

/// A new version number with each major version of ROCm; the newest known one comes first, and the name without a
/// number, which may mean any version, last.
const HIP: Wanted = Wanted {
    library: "the HIP runtime of ROCm",
    names: &["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"],
    symbol: c"hipInit",
};

/// Why there is no ROCm backend: what is missing, or that this version has none.
pub(crate) fn why_not() -> LoadError {
    let variable = |name| env::var_os(name).filter(|value| !value.is_empty());
    let places =
        Places::new(variable("GPUMEM_ROC_LIBRARY_PATH").as_deref(), variable("ROCM_PATH").as_deref());
    verdict(&[HSA, HIP], &places)
}

fn verdict(wanted: &[Wanted], places: &Places) -> LoadError {
    let found: Result<Vec<_>, _> = wanted.iter().map(|wanted| find(wanted, places)).collect();
    match found {
        Ok(found) => LoadError { library: "ROCm", tried: found, failure: LoadFailure::NoBackend },
        Err(error) => error,
    }
}

/// Folders to look in, before and after the system's own.
struct Places {
    before: Vec<PathBuf>,
    after: Vec<PathBuf>,
}

impl Places {
    fn new(library_path: Option<&OsStr>, rocm_path: Option<&OsStr>) -> Self {
        let before = library_path.into_iter().flat_map(env::split_paths);
        let mut after: Vec<PathBuf> = rocm_path.map(|path| Path::new(path).join("lib")).into_iter().collect();
        let standard = PathBuf::from("/opt/rocm/lib");
        if !after.contains(&standard) {
            after.push(standard);
        }
        Self { before: before.filter(|folder| !folder.as_os_str().is_empty()).collect(), after }
    }

    /// Every name in each place. A name without a folder is left to the system's loader.
    fn candidates(&self, names: &'static [&'static str]) -> impl Iterator<Item = PathBuf> {
        let before = self.before.iter().map(PathBuf::as_path);
        let after = self.after.iter().map(PathBuf::as_path);
        before
            .chain([Path::new("")])
            .chain(after)
            .flat_map(|folder| names.iter().map(move |name| folder.join(name)))
    }
}

/// Loads the first candidate that serves and gives its name.
///
/// Where none does, the failure is that of the first candidate that is there at all.
fn find(wanted: &Wanted, places: &Places) -> Result<String, LoadError> {
    let mut tried = Vec::new();
    let mut failure = LoadFailure::Missing;
    for candidate in places.candidates(wanted.names) {
        tried.push(candidate.display().to_string());
        match load(&candidate, wanted.symbol) {
            Ok(()) => return Ok(candidate.display().to_string()),
            Err(why) if failure == LoadFailure::Missing => failure = why,
            Err(_) => {}
        }
    }
    Err(LoadError { library: wanted.library, tried, failure })
}

fn load(candidate: &Path, symbol: &CStr) -> Result<(), LoadFailure> {
    // SAFETY: running the constructors of ROCm's own libraries asks nothing of us, and by these names nothing else is
    // meant. Who puts another library under such a name on the search path is trusted as with any linked library.
    let library = unsafe { libloading::Library::new(candidate) }.map_err(|error| {
        // The loader's own words are the source of the error, and missing from its text.
        let message = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        refusal(candidate, message)
    })?;
    // SAFETY: the function is only looked up, never called, so that its type does not matter.
    let found = unsafe { library.get::<unsafe extern "C" fn()>(symbol) }.is_ok();
    if !found {
        return Err(LoadFailure::MissingSymbol { name: symbol.to_string_lossy().into_owned() });
    }
    // ROCm's runtimes start threads and register handlers for the end of the process: once loaded, they stay.
    std::mem::forget(library);
    Ok(())
}

/// Tells a library that is not there from one that is there and cannot be loaded.
fn refusal(candidate: &Path, message: String) -> LoadFailure {
    let missing = if candidate.parent().is_some_and(|folder| !folder.as_os_str().is_empty()) {
        !candidate.exists()
    } else {
        // The loader names the file that it does not find. If that is another one, a dependency is missing.
        message.contains("No such file")
            && candidate.to_str().is_some_and(|name| message.starts_with(&format!("{name}:")))
    };
    if missing { LoadFailure::Missing } else { LoadFailure::Refused { message } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const NOWHERE: Wanted =
        Wanted { library: "a library", names: &["libgpumem-nowhere.so.1"], symbol: c"nothing" };

    fn names(places: &Places, wanted: &Wanted) -> Vec<String> {
        places.candidates(wanted.names).map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn the_order_is_the_documented_one() {
        let places = Places::new(Some(OsStr::new("/a::/b")), Some(OsStr::new("/c")));
        let expected = [
            "/a/libhsa-runtime64.so.1",
            "/a/libhsa-runtime64.so",
            "/b/libhsa-runtime64.so.1",
            "/b/libhsa-runtime64.so",
            "libhsa-runtime64.so.1",
            "libhsa-runtime64.so",
            "/c/lib/libhsa-runtime64.so.1",
            "/c/lib/libhsa-runtime64.so",
            "/opt/rocm/lib/libhsa-runtime64.so.1",
            "/opt/rocm/lib/libhsa-runtime64.so",
        ];
        assert_eq!(names(&places, &HSA), expected);
    }

    #[test]
    fn hip_is_looked_for_under_the_names_of_rocm_7_6_and_5() {
        let expected = ["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"];
        assert_eq!(names(&Places::new(None, None), &HIP)[..4], expected);
    }

    #[test]
    fn the_standard_folder_is_tried_once() {
        let places = Places::new(None, Some(OsStr::new("/opt/rocm")));
        assert_eq!(
            names(&places, &NOWHERE),
            ["libgpumem-nowhere.so.1", "/opt/rocm/lib/libgpumem-nowhere.so.1"]
        );
    }

    #[test]
    fn a_missing_library_lists_what_was_tried() {
        let places = Places::new(None, None);
        let error = find(&NOWHERE, &places).unwrap_err();
        assert_eq!((error.library, &error.failure), ("a library", &LoadFailure::Missing));
        assert_eq!(error.tried, names(&places, &NOWHERE));
    }

    #[test]
    fn a_library_that_cannot_be_loaded_is_told_from_a_missing_one() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(NOWHERE.names[0]), "not a library").unwrap();
        let error = find(&NOWHERE, &Places::new(Some(folder.path().as_os_str()), None)).unwrap_err();
        let LoadFailure::Refused { message } = &error.failure else { panic!("{error}") };
        assert!(message.contains("libgpumem-nowhere.so.1"), "{message}");
        assert_eq!(error.tried.len(), 3);
    }

    #[test]
    fn a_missing_dependency_is_not_a_missing_library() {
        let name = Path::new("libamdhip64.so.6");
        let own = "libamdhip64.so.6: cannot open shared object file: No such file or directory";
        assert_eq!(refusal(name, own.to_owned()), LoadFailure::Missing);
        let other = "libamd_comgr.so.2: cannot open shared object file: No such file or directory";
        assert_eq!(refusal(name, other.to_owned()), LoadFailure::Refused { message: other.to_owned() });
    }

    /// glibc stands in for ROCm: the one library that is certainly there, with functions that are certainly in it.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    mod with_a_real_library {
        use super::*;

        const LIBC: Wanted = Wanted { library: "libc", names: &["libc.so.6"], symbol: c"malloc" };

        #[test]
        fn it_is_found() {
            assert_eq!(find(&LIBC, &Places::new(None, None)), Ok("libc.so.6".to_owned()));
        }

        #[test]
        fn a_broken_copy_is_passed_over() {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join("libc.so.6"), "not a library").unwrap();
            let places = Places::new(Some(folder.path().as_os_str()), None);
            assert_eq!(find(&LIBC, &places), Ok("libc.so.6".to_owned()));
        }

        #[test]
        fn a_library_of_another_kind_lacks_the_symbol() {
            let error = find(&Wanted { symbol: c"hsa_init", ..LIBC }, &Places::new(None, None)).unwrap_err();
            assert_eq!(error.failure, LoadFailure::MissingSymbol { name: "hsa_init".to_owned() });
        }

        #[test]
        fn finding_everything_is_said_to_be_of_no_use_yet() {
            let error = verdict(&[LIBC, LIBC], &Places::new(None, None));
            assert_eq!((error.library, error.failure), ("ROCm", LoadFailure::NoBackend));
            assert_eq!(error.tried, ["libc.so.6", "libc.so.6"]);
        }

        #[test]
        fn one_missing_library_is_the_one_that_is_named() {
            let error = verdict(&[LIBC, NOWHERE], &Places::new(None, None));
            assert_eq!((error.library, error.failure), ("a library", LoadFailure::Missing));
        }
    }
}
