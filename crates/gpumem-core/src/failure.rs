//! Work that failed.

use crate::CollectiveError;
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
    /// For a collective operation, its failure as this rank sees it.
    pub collective: Option<Box<CollectiveError>>,
}

impl Failure {
    /// Describes a failure.
    pub fn new(work: impl Into<String>, place: impl Into<String>, cause: impl Into<String>) -> Self {
        Self { work: work.into(), place: place.into(), cause: cause.into(), collective: None }
    }

    /// Describes the failure of a collective operation.
    pub fn of_collective(place: impl Into<String>, error: CollectiveError) -> Self {
        let CollectiveError { operation, sequence, rank, size, cause, recent } = &error;
        let place = format!("{}, operation {sequence} of rank {rank} of {size}", place.into());
        let mut cause = cause.to_string();
        // A text takes everything.
        let _ = crate::collective::write_recent(&mut cause, recent);
        Self { work: (*operation).to_owned(), place, cause, collective: Some(Box::new(error)) }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { work, place, cause, .. } = self;
        write!(f, "{work} on {place} failed: {cause}")
    }
}
