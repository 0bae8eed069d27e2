//! Errors of files.

use std::{fmt, io, path::PathBuf};

/// A file could not be read or written, or is not what it was said to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileError {
    /// The file, as the caller named it.
    pub path: PathBuf,
    /// What is wrong with it.
    pub failure: FileFailure,
}

impl FileError {
    /// Makes the error of the system for a file.
    pub fn io(path: impl Into<PathBuf>, error: &io::Error) -> Self {
        // What the standard library refuses by itself has no number: a path with a zero byte, for one.
        let failure = match error.raw_os_error() {
            Some(code) => FileFailure::Io { code },
            None => FileFailure::Refused { message: error.to_string() },
        };
        Self { path: path.into(), failure }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.path, self.failure)
    }
}

impl std::error::Error for FileError {}

/// What is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FileFailure {
    /// The system reports an error.
    #[error("{}", io::Error::from_raw_os_error(*code))]
    Io {
        /// The system's number: `errno` on Unix.
        code: i32,
    },
    /// The standard library refuses a call.
    #[error("{message}")]
    Refused {
        /// What it says.
        message: String,
    },
    /// The file ends before the elements do: it has been cut since it was opened.
    #[error("the elements need a file of {wanted} bytes, and it has {found}")]
    Truncated {
        /// Bytes up to the end of the elements that were to be read.
        wanted: u64,
        /// Bytes of the file.
        found: u64,
    },
    /// The contents break the rules of the format.
    #[error("{why}, at byte {offset}")]
    Format {
        /// Where, from the beginning of the file.
        offset: u64,
        /// Which rule.
        why: &'static str,
    },
    /// Something is larger than it may be.
    #[error("{what} of {found} bytes, {most} at most")]
    TooLarge {
        /// What it is.
        what: &'static str,
        /// Its bytes, as the file says.
        found: u64,
        /// How many there can be.
        most: u64,
    },
    /// A tensor does not lie where the rules of the format want it, or a range of bytes not in the file.
    #[error("{tensor:?}: {why}")]
    Range {
        /// Name of the tensor, or of what else the range is of.
        tensor: String,
        /// Which rule.
        why: &'static str,
    },
    /// The elements are of another type than the one that was asked for.
    #[error("{tensor:?} has elements of {found}, not of {expected}")]
    Element {
        /// Name of the tensor; empty where a file has one array.
        tensor: String,
        /// The file's name for the type.
        found: String,
        /// The type that was asked for.
        expected: String,
    },
    /// The file has no tensor of that name.
    #[error("there is no tensor {name:?}")]
    NoSuchTensor {
        /// The name.
        name: String,
    },
    /// The file was written while it was read.
    #[error("it was changed while it was read")]
    Changed,
}
