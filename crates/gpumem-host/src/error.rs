//! Errors of this backend.

use crate::NAME;
use gpumem_core::{Error, ErrorKind};

/// An error of `operation` on the host backend.
pub(crate) fn error(operation: &'static str, kind: ErrorKind) -> Error {
    Error::new(NAME, operation, kind)
}

/// An argument that makes no sense.
pub(crate) fn invalid(operation: &'static str, why: &'static str) -> Error {
    error(operation, ErrorKind::InvalidArgument { why })
}

/// Something that the host does not have.
pub(crate) fn unsupported(operation: &'static str, what: &'static str) -> Error {
    error(operation, ErrorKind::Unsupported { what })
}

/// What happened to work that failed.
pub(crate) fn what(error: &Error) -> &str {
    match error.kind() {
        ErrorKind::AsynchronousFault { what } => what,
        _ => "",
    }
}

/// Work that was enqueued earlier failed.
pub(crate) fn fault(operation: &'static str, what: &str) -> Error {
    error(operation, ErrorKind::AsynchronousFault { what: what.to_owned() })
}
