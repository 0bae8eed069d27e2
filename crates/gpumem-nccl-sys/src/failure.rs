//! Calls that did not give what they should.

use crate::{Library, MissingSymbol, Version, ncclResult_t, ncclUniqueId};
use core::ffi::{CStr, c_char};
use core::ptr::null_mut;

/// A call that did not give what it should.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The library is too old for it, or built without it.
    #[error("{what} is missing in {version}{}", has_since(*since))]
    Unsupported {
        /// A function, a structure or a field of one.
        what: &'static str,
        /// The version of NCCL's interface that the library has.
        version: Version,
        /// The first version of NCCL that has it, where NCCL has it at all.
        since: Option<Version>,
    },
    /// The function reports something else than success.
    #[error("{} ({}): {message}", name(*status).unwrap_or("unknown result"), status.0)]
    Status {
        /// What it reports. A newer library may report a number that has no name here.
        status: ncclResult_t,
        /// What the library says of it.
        message: String,
    },
}

fn has_since(since: Option<Version>) -> String {
    since.map_or_else(String::new, |since| format!("; NCCL has it since {since}"))
}

/// The name of a result, or nothing for a number that is not known here.
pub const fn name(status: ncclResult_t) -> Option<&'static str> {
    Some(match status {
        ncclResult_t::ncclSuccess => "ncclSuccess",
        ncclResult_t::ncclUnhandledCudaError => "ncclUnhandledCudaError",
        ncclResult_t::ncclSystemError => "ncclSystemError",
        ncclResult_t::ncclInternalError => "ncclInternalError",
        ncclResult_t::ncclInvalidArgument => "ncclInvalidArgument",
        ncclResult_t::ncclInvalidUsage => "ncclInvalidUsage",
        ncclResult_t::ncclRemoteError => "ncclRemoteError",
        ncclResult_t::ncclInProgress => "ncclInProgress",
        ncclResult_t::ncclTimeout => "ncclTimeout",
        _ => return None,
    })
}

impl Library {
    /// Turns what a function of the tables gave into an error, with the library's words for it.
    ///
    /// # Errors
    /// Returns [`Failure::Unsupported`] if the library lacks the function, and [`Failure::Status`] if the function
    /// reports anything but `ncclSuccess`: also `ncclInProgress`, of a communicator that does not block.
    pub fn check(&self, outcome: Result<ncclResult_t, MissingSymbol>) -> Result<(), Failure> {
        match outcome {
            Ok(ncclResult_t::ncclSuccess) => Ok(()),
            Ok(status) => Err(Failure::Status { status, message: self.message(status) }),
            Err(MissingSymbol(what)) => {
                Err(Failure::Unsupported { what, version: self.version, since: Version::since(what) })
            }
        }
    }

    /// Makes the identity of a new communicator, which its ranks have to share. It needs no device.
    ///
    /// # Errors
    /// Returns [`Failure::Status`] if the library finds no network interface, for example.
    pub fn unique_id(&self) -> Result<ncclUniqueId, Failure> {
        let mut id = ncclUniqueId::default();
        // SAFETY: a place for the identity.
        self.check(unsafe { self.ncclGetUniqueId(&mut id) })?;
        Ok(id)
    }

    /// What the library says of a result: the kind of the error, and what was the last one.
    fn message(&self, status: ncclResult_t) -> String {
        // SAFETY: the function takes any number.
        let kind = unsafe { self.ncclGetErrorString(status) };
        // SAFETY: it has not been told of a communicator, and no version looks at that argument.
        let last = unsafe { self.ncclGetLastError(null_mut()) };
        let words = [kind, last].into_iter().flatten().filter_map(text).filter(|words| !words.is_empty());
        words.collect::<Vec<_>>().join(": ")
    }
}

/// Reads a text of the library.
fn text(pointer: *const c_char) -> Option<String> {
    // SAFETY: the library gives a text that ends with a zero and lives as long as itself, or nothing.
    (!pointer.is_null()).then(|| unsafe { CStr::from_ptr(pointer) }.to_string_lossy().trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_result_keeps_its_number() {
        assert_eq!(
            [0, 8, 9, 99, u32::MAX].map(|code| name(ncclResult_t(code))),
            [Some("ncclSuccess"), Some("ncclTimeout"), None, None, None]
        );
        let failure = Failure::Status { status: ncclResult_t(99), message: "words".to_owned() };
        assert_eq!(failure.to_string(), "unknown result (99): words");
        let failure = Failure::Status { status: ncclResult_t::ncclRemoteError, message: "words".to_owned() };
        assert_eq!(failure.to_string(), "ncclRemoteError (6): words");
    }
}
