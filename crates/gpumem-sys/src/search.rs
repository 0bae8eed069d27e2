//! Where the libraries of ROCm are looked for.

use libloading::Library;
use std::{
    cmp::Reverse,
    env,
    error::Error,
    ffi::{CStr, OsString},
    fmt,
    path::{Path, PathBuf},
};

/// The inputs of the search. The default has only the system's loader.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// Folders to look in before all others, separated as in `PATH` (`GPUMEM_ROC_LIBRARY_PATH`).
    pub library_path: Option<OsString>,
    /// Where HIP is installed (`HIP_PATH`).
    pub hip_path: Option<OsString>,
    /// Where ROCm is installed (`ROCM_PATH`).
    pub rocm_path: Option<OsString>,
    /// The folder in which ROCm's own packages put `rocm` and `rocm-<version>`: `/opt`.
    pub opt: Option<PathBuf>,
}

impl Environment {
    /// The environment of this process.
    pub fn current() -> Self {
        let variable = |name| env::var_os(name).filter(|value| !value.is_empty());
        Self {
            library_path: variable("GPUMEM_ROC_LIBRARY_PATH"),
            hip_path: variable("HIP_PATH"),
            rocm_path: variable("ROCM_PATH"),
            opt: Some(PathBuf::from("/opt")),
        }
    }
}

/// Folders to look in, in this order:
///
/// 1. those of `GPUMEM_ROC_LIBRARY_PATH`;
/// 2. wherever the system's loader looks (`LD_LIBRARY_PATH`, its cache), which also gives the copies that another
///    library has loaded already;
/// 3. `$ROCM_PATH/lib`, `$ROCM_PATH/lib64`, then the same of `$HIP_PATH`;
/// 4. `/opt/rocm/lib`, `/opt/rocm/lib64`, then the same of `/opt/rocm-*`, the newest version first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    before: Vec<PathBuf>,
    after: Vec<PathBuf>,
}

impl Places {
    /// As this process's environment says, at this moment.
    pub fn from_environment() -> Self {
        Self::new(&Environment::current())
    }

    /// As an environment says.
    pub fn new(environment: &Environment) -> Self {
        let before = environment.library_path.iter().flat_map(env::split_paths);
        let before = before.filter(|folder| !folder.as_os_str().is_empty()).collect();
        let named = [&environment.rocm_path, &environment.hip_path];
        let mut homes: Vec<PathBuf> = named.into_iter().flatten().map(PathBuf::from).collect();
        homes.extend(environment.opt.iter().map(|opt| opt.join("rocm")));
        homes.extend(environment.opt.iter().flat_map(|opt| installed(opt, "rocm-")));
        let mut after = Vec::new();
        for folder in homes.iter().flat_map(|home| ["lib", "lib64"].map(|name| home.join(name))) {
            if !after.contains(&folder) {
                after.push(folder);
            }
        }
        Self { before, after }
    }

    /// Every name in each place. A name without a folder is left to the system's loader.
    pub fn candidates<'a>(&'a self, names: &'a [&'a str]) -> impl Iterator<Item = PathBuf> + 'a {
        let before = self.before.iter().map(PathBuf::as_path);
        let after = self.after.iter().map(PathBuf::as_path);
        before
            .chain([Path::new("")])
            .chain(after)
            .flat_map(move |folder| names.iter().map(move |name| folder.join(name)))
    }
}

/// Lists the folders `<prefix><version>` in a folder, the newest first.
pub fn installed(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let Ok(entries) = folder.read_dir() else { return Vec::new() };
    let mut found: Vec<(Vec<u32>, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name();
            let version = name.to_str()?.strip_prefix(prefix)?;
            let numbers = version.split(['.', '-']).map_while(|part| part.parse().ok()).collect();
            Some((numbers, entry.path()))
        })
        .collect();
    found.sort_by_key(|(version, path)| Reverse((version.clone(), path.clone())));
    found.into_iter().map(|(_, path)| path).collect()
}

/// The functions of a library, and where it was found.
#[derive(Debug, Clone)]
pub struct Loaded<T> {
    /// Its functions.
    pub functions: T,
    /// The name by which it was loaded: a path, or a name that the system's loader has resolved.
    pub name: PathBuf,
}

/// Why a candidate does not serve.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// There is no such file.
    #[error("not found")]
    Missing,
    /// It is there and cannot be loaded.
    #[error("{0}")]
    NotLoaded(
        /// The words of the system's loader.
        String,
    ),
    /// It was loaded and is another library: it lacks a function that all versions have.
    #[error("it has no function {0}")]
    Other(
        /// The function.
        String,
    ),
    /// It was loaded and is too old, or does not tell its version.
    #[error("its version is {found}, and {oldest} is the oldest that serves")]
    Version {
        /// Its version, or its error.
        found: String,
        /// The oldest version that serves.
        oldest: String,
    },
}

/// A candidate that was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The path, or the name that the system's loader was asked for.
    pub name: PathBuf,
    /// Why it does not serve.
    pub refusal: Refusal,
}

/// A library could not be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadError {
    /// The name of the library.
    pub library: &'static str,
    /// Everything that was tried, in order.
    pub attempts: Vec<Attempt>,
}

impl LoadError {
    /// The first candidate that is there at all, which tells more than that others are not.
    pub fn telling(&self) -> Option<&Attempt> {
        self.attempts.iter().find(|attempt| attempt.refusal != Refusal::Missing)
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot be used:", self.library)?;
        for (index, Attempt { name, refusal }) in self.attempts.iter().enumerate() {
            let separator = if index == 0 { "" } else { ";" };
            write!(f, "{separator} {}: {refusal}", name.display())?;
        }
        Ok(())
    }
}

impl Error for LoadError {}

/// Loads the first candidate that has `symbol`, a function by which the library is known. It is never unloaded:
/// ROCm's runtimes start threads and register handlers for the end of the process.
///
/// # Errors
/// Returns the files that were tried, and why each failed.
pub fn find(
    library: &'static str,
    names: &[&str],
    places: &Places,
    symbol: &CStr,
) -> Result<Loaded<&'static Library>, LoadError> {
    let mut attempts = Vec::new();
    for name in places.candidates(names) {
        match open(&name, symbol) {
            Ok(functions) => return Ok(Loaded { functions, name }),
            Err(refusal) => attempts.push(Attempt { name, refusal }),
        }
    }
    Err(LoadError { library, attempts })
}

/// Loads one candidate, if it has `symbol`. It is never unloaded.
///
/// # Errors
/// Returns [`Refusal`] if there is no such library, if it cannot be loaded, or if it lacks the function.
pub fn open(candidate: &Path, symbol: &CStr) -> Result<&'static Library, Refusal> {
    // The loader would wait for the other end of a pipe.
    let is_path = candidate.parent().is_some_and(|folder| !folder.as_os_str().is_empty());
    if is_path && candidate.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return Err(Refusal::NotLoaded("it is no regular file".to_owned()));
    }
    // SAFETY: the constructors of ROCm's libraries have no conditions, and only ROCm's libraries have these names.
    // Another library under such a name on the search path is trusted, as any linked library is.
    let library = unsafe { Library::new(candidate) }.map_err(|error| {
        // The loader's own words are the source of the error, and missing from its text.
        let message = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        refusal(candidate, message)
    })?;
    // SAFETY: the function is only looked up, never called, so that its type does not matter.
    if unsafe { library.get::<unsafe extern "C" fn()>(symbol.to_bytes_with_nul()) }.is_err() {
        return Err(Refusal::Other(symbol.to_string_lossy().into_owned()));
    }
    Ok(Box::leak(Box::new(library)))
}

/// Tells a library that is not there from one that is there and cannot be loaded.
fn refusal(candidate: &Path, message: String) -> Refusal {
    let missing = if candidate.parent().is_some_and(|folder| !folder.as_os_str().is_empty()) {
        !candidate.exists()
    } else {
        // The loader names the file that it does not find. If that is another one, a dependency is missing.
        message.contains("No such file")
            && candidate.to_str().is_some_and(|name| message.starts_with(&format!("{name}:")))
    };
    if missing { Refusal::Missing } else { Refusal::NotLoaded(message) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const NAMES: &[&str] = &["libgpumem-nowhere.so.1", "libgpumem-nowhere.so"];

    fn paths(places: &Places, names: &[&str]) -> Vec<String> {
        places.candidates(names).map(|path| path.display().to_string()).collect()
    }

    fn in_folders(folders: &str) -> Places {
        Places::new(&Environment { library_path: Some(folders.into()), ..Environment::default() })
    }

    #[test]
    fn the_order_is_the_documented_one() {
        let opt = tempfile::tempdir().unwrap();
        for name in ["rocm-5.7.1", "rocm-6.10.0", "rocm-6.4.3", "rocm", "other"] {
            fs::create_dir(opt.path().join(name)).unwrap();
        }
        let environment = Environment {
            library_path: Some("/a::/b".into()),
            hip_path: Some("/hip".into()),
            rocm_path: Some("/rocm".into()),
            opt: Some(opt.path().to_owned()),
        };
        let places = Places::new(&environment);
        let opt = opt.path().display();
        let expected: Vec<String> =
            ["/a/x", "/b/x", "x", "/rocm/lib/x", "/rocm/lib64/x", "/hip/lib/x", "/hip/lib64/x"]
                .into_iter()
                .map(str::to_owned)
                .chain(
                    ["rocm", "rocm-6.10.0", "rocm-6.4.3", "rocm-5.7.1"]
                        .into_iter()
                        .flat_map(|home| ["lib", "lib64"].map(|folder| format!("{opt}/{home}/{folder}/x"))),
                )
                .collect();
        assert_eq!(paths(&places, &["x"]), expected);
        assert_eq!(paths(&places, &["x", "y"])[..3], ["/a/x", "/a/y", "/b/x"]);
    }

    #[test]
    fn a_folder_is_tried_once() {
        let environment = Environment {
            hip_path: Some("/opt/rocm".into()),
            rocm_path: Some("/opt/rocm".into()),
            opt: Some("/opt".into()),
            library_path: None,
        };
        let found = paths(&Places::new(&environment), &["x"]);
        assert_eq!(found.iter().filter(|path| *path == "/opt/rocm/lib/x").count(), 1, "{found:?}");
    }

    #[test]
    fn a_missing_library_lists_what_was_tried() {
        let places = in_folders("/nowhere");
        let error = find("a library", NAMES, &places, c"nothing").unwrap_err();
        let tried: Vec<_> = error.attempts.iter().map(|attempt| attempt.name.display().to_string()).collect();
        assert_eq!(tried, paths(&places, NAMES));
        assert!(error.attempts.iter().all(|attempt| attempt.refusal == Refusal::Missing), "{error}");
        assert_eq!(error.telling(), None);
        for name in &tried {
            assert!(error.to_string().contains(name.as_str()), "{error}");
        }
    }

    #[test]
    fn a_library_that_cannot_be_loaded_is_told_from_a_missing_one() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(NAMES[1]), "not a library").unwrap();
        let places = in_folders(folder.path().to_str().unwrap());
        let error = find("a library", NAMES, &places, c"nothing").unwrap_err();
        let told = error.telling().unwrap();
        assert_eq!(told.name, folder.path().join(NAMES[1]));
        let Refusal::NotLoaded(message) = &told.refusal else { panic!("{error}") };
        assert!(!message.is_empty());
    }

    #[test]
    fn a_dependency_that_is_missing_is_no_missing_library() {
        let said = "libother.so.2: cannot open shared object file: No such file or directory".to_owned();
        assert_eq!(refusal(Path::new("libthis.so.1"), said.clone()), Refusal::NotLoaded(said));
        let said = "libthis.so.1: cannot open shared object file: No such file or directory".to_owned();
        assert_eq!(refusal(Path::new("libthis.so.1"), said), Refusal::Missing);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn another_library_of_the_name_is_refused_by_its_missing_function() {
        let places = Places::new(&Environment::default());
        let error = find("a library", &["libc.so.6"], &places, c"hsa_init").unwrap_err();
        assert_eq!(error.telling().unwrap().refusal, Refusal::Other("hsa_init".to_owned()));
        assert!(find("the C library", &["libgpumem-nowhere.so", "libc.so.6"], &places, c"abs").is_ok());
    }
}
