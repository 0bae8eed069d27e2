//! Where headers lie.

use std::{
    env, fmt,
    path::{Path, PathBuf},
};

/// The folders in which a header is looked for.
pub(super) enum Place {
    /// Only the system's.
    System,
    /// The folder `include` beside or above the library that this variable names, then the system's.
    BesideLibrary(&'static str),
}

impl Place {
    /// The first folder that has this file.
    pub(super) fn find(&self, file: &str) -> Option<PathBuf> {
        let mut folders = match self {
            Place::System => Vec::new(),
            Place::BesideLibrary(variable) => env::var_os(variable).map(beside).unwrap_or_default(),
        };
        folders.push(PathBuf::from("/usr/include"));
        folders.into_iter().find(|folder| folder.join(file).is_file())
    }
}

/// The folders `include` beside each folder above a library.
fn beside(library: impl AsRef<Path>) -> Vec<PathBuf> {
    library.as_ref().ancestors().skip(1).map(|folder| folder.join("include")).collect()
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::System => write!(f, "/usr/include"),
            Place::BesideLibrary(variable) => write!(f, "/usr/include or beside ${variable}"),
        }
    }
}
