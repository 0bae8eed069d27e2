//! Where NCCL and RCCL are looked for.

use super::Version;
use crate::installed;
use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

/// A library with NCCL's interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Engine {
    /// NVIDIA's, for CUDA.
    Nccl,
    /// AMD's, for ROCm.
    Rccl,
}

impl Engine {
    /// The variable that names the library's file.
    pub const fn variable(self) -> &'static str {
        match self {
            Self::Nccl => "GPUMEM_NCCL",
            Self::Rccl => "GPUMEM_RCCL",
        }
    }

    /// Names of the library. NVIDIA's packages have the first one only.
    pub const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Nccl => &["libnccl.so.2", "libnccl.so"],
            Self::Rccl => &["librccl.so.1", "librccl.so"],
        }
    }

    /// The oldest version of NCCL's interface that serves.
    pub const fn oldest(self) -> Version {
        match self {
            Self::Nccl => Version::new(2, 18, 1),
            // Debian's, and so the oldest that a distribution has.
            Self::Rccl => Version::new(2, 13, 4),
        }
    }

    /// How the files of all its copies begin.
    pub(crate) const fn prefix(self) -> &'static str {
        match self {
            Self::Nccl => "libnccl.so",
            Self::Rccl => "librccl.so",
        }
    }

    pub(crate) const fn what(self) -> &'static str {
        match self {
            Self::Nccl => "NCCL, the collectives of CUDA,",
            Self::Rccl => "RCCL, the collectives of ROCm,",
        }
    }

    pub(crate) const fn what_is_named(self) -> &'static str {
        match self {
            Self::Nccl => "the NCCL that GPUMEM_NCCL names",
            Self::Rccl => "the RCCL that GPUMEM_RCCL names",
        }
    }
}

/// The inputs of the search. The default has only the loaded libraries and the system's loader.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// The library's file (`GPUMEM_NCCL` or `GPUMEM_RCCL`).
    pub library: Option<OsString>,
    /// Folders that the program knows of, such as `nvidia/nccl/lib` below a Python's packages.
    pub folders: Vec<PathBuf>,
    /// The folder in which CUDA's packages put `cuda` and `cuda-<version>`: `/usr/local`.
    pub cuda: Option<PathBuf>,
    /// Where ROCm is looked for.
    pub rocm: crate::Environment,
}

impl Environment {
    /// The environment of this process, without further folders.
    pub fn current(engine: Engine) -> Self {
        Self {
            library: env::var_os(engine.variable()).filter(|value| !value.is_empty()),
            folders: Vec::new(),
            cuda: Some(PathBuf::from("/usr/local")),
            rocm: crate::Environment::current(),
        }
    }
}

/// Where a library is looked for, in this order:
///
/// 1. the file that `GPUMEM_NCCL` (or `GPUMEM_RCCL`) names; if there is such a variable, nowhere else;
/// 2. the libraries that the process has loaded already; if there is such a copy, nowhere else;
/// 3. for RCCL, the folders of `GPUMEM_ROC_LIBRARY_PATH`;
/// 4. wherever the system's loader looks (`LD_LIBRARY_PATH`, its cache);
/// 5. folders that the program knows of;
/// 6. for NCCL, `/usr/local/cuda` and `/usr/local/cuda-*`, the newest version first; for RCCL, where ROCm is installed
///    ([`crate::Places`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    engine: Engine,
    named: Option<PathBuf>,
    candidates: Vec<PathBuf>,
}

impl Places {
    /// As this process's environment says, at this moment.
    pub fn from_environment(engine: Engine) -> Self {
        Self::new(engine, &Environment::current(engine))
    }

    /// As an environment says.
    pub fn new(engine: Engine, environment: &Environment) -> Self {
        let names = engine.names();
        let named_folders = environment.folders.iter().flat_map(|folder| in_folder(folder, names));
        let candidates = match engine {
            Engine::Nccl => {
                let loader = names.iter().map(PathBuf::from);
                let homes = environment
                    .cuda
                    .iter()
                    .flat_map(|folder| [folder.join("cuda")].into_iter().chain(installed(folder, "cuda-")));
                let installed = homes.flat_map(|home| {
                    CUDA_FOLDERS.iter().flat_map(move |folder| in_folder(&home.join(folder), names))
                });
                loader.chain(named_folders).chain(installed).collect()
            }
            Engine::Rccl => {
                let first = crate::Environment {
                    library_path: environment.rocm.library_path.clone(),
                    ..crate::Environment::default()
                };
                let first = crate::Places::new(&first);
                let all = crate::Places::new(&environment.rocm);
                once_each(first.candidates(names).chain(named_folders).chain(all.candidates(names)))
            }
        };
        Self { engine, named: environment.library.as_ref().map(PathBuf::from), candidates }
    }

    /// The library that is looked for.
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// The file that the variable names.
    pub fn named(&self) -> Option<&Path> {
        self.named.as_deref()
    }

    /// The names to try if the variable is not set and the process has loaded no copy. The system's loader searches for
    /// a name without a folder.
    pub fn candidates(&self) -> impl Iterator<Item = &Path> {
        self.candidates.iter().map(PathBuf::as_path)
    }
}

/// The folders of CUDA's packages that have libraries.
const CUDA_FOLDERS: [&str; 2] = ["lib64", "targets/x86_64-linux/lib"];

fn in_folder(folder: &Path, names: &'static [&'static str]) -> impl Iterator<Item = PathBuf> + use<> {
    let folder = folder.to_owned();
    names.iter().map(move |name| folder.join(name))
}

fn once_each(paths: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in paths {
        if !found.contains(&path) {
            found.push(path);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn paths(engine: Engine, environment: &Environment) -> Vec<String> {
        let places = Places::new(engine, environment);
        places.candidates().map(|path| path.display().to_string()).collect()
    }

    #[test]
    #[cfg_attr(miri, ignore = "folders on a disk")]
    fn nccl_is_looked_for_in_the_documented_order() {
        let local = tempfile::tempdir().unwrap();
        for name in ["cuda-12.9", "cuda-13.1", "cuda", "other"] {
            fs::create_dir(local.path().join(name)).unwrap();
        }
        let environment = Environment {
            folders: vec!["/wheels".into()],
            cuda: Some(local.path().to_owned()),
            ..Environment::default()
        };
        let mut expected: Vec<String> =
            ["libnccl.so.2", "libnccl.so", "/wheels/libnccl.so.2", "/wheels/libnccl.so"]
                .map(str::to_owned)
                .into();
        for home in ["cuda", "cuda-13.1", "cuda-12.9"] {
            for folder in ["lib64", "targets/x86_64-linux/lib"] {
                for name in Engine::Nccl.names() {
                    expected.push(format!("{}/{home}/{folder}/{name}", local.path().display()));
                }
            }
        }
        assert_eq!(paths(Engine::Nccl, &environment), expected);
    }

    #[test]
    fn rccl_is_looked_for_where_rocm_is() {
        let environment = Environment {
            folders: vec!["/wheels".into()],
            cuda: Some("/nowhere".into()),
            rocm: crate::Environment {
                library_path: Some("/first".into()),
                rocm_path: Some("/rocm".into()),
                ..crate::Environment::default()
            },
            ..Environment::default()
        };
        let expected = [
            "/first/librccl.so.1",
            "/first/librccl.so",
            "librccl.so.1",
            "librccl.so",
            "/wheels/librccl.so.1",
            "/wheels/librccl.so",
            "/rocm/lib/librccl.so.1",
            "/rocm/lib/librccl.so",
            "/rocm/lib64/librccl.so.1",
            "/rocm/lib64/librccl.so",
        ];
        assert_eq!(paths(Engine::Rccl, &environment), expected);
    }
}
