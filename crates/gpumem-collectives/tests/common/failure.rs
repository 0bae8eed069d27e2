//! Reading failures of operations. The tests over the double of NCCL include this file too.

use gpumem_collectives::CollectiveError;
use gpumem_core::{Error, ErrorKind, Result};

/// The failure of an operation that a call has returned.
pub(crate) fn failed<T: std::fmt::Debug>(result: Result<T>) -> CollectiveError {
    match result.as_ref().map_err(Error::kind) {
        Err(ErrorKind::Collective(failure)) => (**failure).clone(),
        _ => panic!("{result:?} is not the failure of an operation"),
    }
}

/// The failure of the operation that was to write what was read.
pub(crate) fn poisoned<T: std::fmt::Debug>(result: Result<T>) -> CollectiveError {
    match result.as_ref().map_err(Error::kind) {
        Err(ErrorKind::Poisoned { failure, .. }) => {
            failure.collective.as_deref().expect("an operation of several ranks").clone()
        }
        _ => panic!("{result:?} does not read what an operation was to write"),
    }
}
