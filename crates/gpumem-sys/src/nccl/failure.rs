//! Errors of calls of the library.

use super::{Version, ncclResult_t};

/// A call of the library that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The library is too old for it, or built without it.
    #[error("{what} is missing in {version}{}", has_since(*since))]
    Unsupported {
        /// The function.
        what: &'static str,
        /// The version of NCCL's interface that the library has.
        version: Version,
        /// The first version of NCCL that has it, where NCCL has it at all.
        since: Option<Version>,
    },
    /// The function reports something else than success.
    #[error("{} ({}): {message}", name(*status).unwrap_or("unknown result"), status.0)]
    Status {
        /// The reported result. A newer library may report a number that has no name here.
        status: ncclResult_t,
        /// The library's message.
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
