//! Errors of libraries that are looked for at run time.

use std::fmt;

/// A driver or compiler library could not be used, and which files were tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadError {
    /// What the library is for, for example `the CUDA driver`.
    pub library: &'static str,
    /// Names and paths that were tried, in order.
    pub tried: Vec<String>,
    /// Why none of them serves.
    pub failure: LoadFailure,
}

impl LoadError {
    /// The error for `library` in a child that was forked while its parent was loading it.
    pub fn in_forked_child(library: &'static str) -> Self {
        let message = "this process was forked while its parent was loading it".to_owned();
        Self { library, tried: Vec::new(), failure: LoadFailure::Refused { message } }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot be used: {} (tried {})", self.library, self.failure, self.tried.join(", "))
    }
}

impl std::error::Error for LoadError {}

/// Why a library does not serve.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadFailure {
    /// No library of those names.
    #[error("no such library was found")]
    Missing,
    /// The library lacks a function.
    #[error("{name} is missing in the library")]
    MissingSymbol {
        /// The function.
        name: String,
    },
    /// The library is older than the required version.
    #[error("version {have} is too old, {need} is needed")]
    TooOld {
        /// Version that was found.
        have: String,
        /// Version that is needed.
        need: String,
    },
    /// The library is there and reports that it cannot work (no device, no permission).
    #[error("it reports {message}")]
    Refused {
        /// What it says.
        message: String,
    },
}
