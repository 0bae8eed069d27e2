//! Work that failed.

use std::fmt;

/// Describes work that failed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Failure {
    /// What failed: `kernel "scale"`, `copy`, `fill`.
    pub work: String,
    /// Where: the device and its stream.
    pub place: String,
    /// Why.
    pub cause: String,
}

impl Failure {
    /// Describes a failure.
    pub fn new(work: impl Into<String>, place: impl Into<String>, cause: impl Into<String>) -> Self {
        Self { work: work.into(), place: place.into(), cause: cause.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { work, place, cause } = self;
        write!(f, "{work} on {place} failed: {cause}")
    }
}
