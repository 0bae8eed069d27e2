//! The HSA runtime, and the status of its functions.

use crate::NAME;
use gpumem_core::{Error, ErrorKind, MemoryInfo, Result};
use gpumem_sys::{
    MissingSymbol,
    hsa::{Hsa, hsa_status_t},
};
use std::fmt;

/// The HSA runtime, initialised in this process.
pub(crate) struct Runtime {
    pub(crate) hsa: Hsa,
}

/// The status of a function of the HSA runtime, or that there is no such function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum HsaStatus {
    Missing(&'static str),
    Code(u32),
}

impl HsaStatus {
    pub(crate) const SUCCESS: Self = Self::Code(hsa_status_t::HSA_STATUS_SUCCESS.0);
    pub(crate) const OUT_OF_RESOURCES: Self = Self::Code(hsa_status_t::HSA_STATUS_ERROR_OUT_OF_RESOURCES.0);
    pub(crate) const INVALID_ALLOCATION: Self =
        Self::Code(hsa_status_t::HSA_STATUS_ERROR_INVALID_ALLOCATION.0);

    pub(crate) fn ok(self) -> Result<(), Self> {
        if self == Self::SUCCESS { Ok(()) } else { Err(self) }
    }

    /// An error of `operation`.
    pub(crate) fn error(self, operation: &'static str) -> Error {
        let kind = match self {
            Self::Missing(_) => ErrorKind::Unsupported {
                what: "this call (this version of the HSA runtime has no such function)",
            },
            Self::Code(code) => match code {
                0x1000 => ErrorKind::Unsupported { what: "this call (HSA_STATUS_ERROR)" },
                0x1001 => ErrorKind::InvalidArgument { why: "the HSA runtime refuses an argument" },
                0x1003 => ErrorKind::InvalidArgument {
                    why: "the HSA runtime does not know or cannot make the allocation",
                },
                0x1004 => ErrorKind::InvalidArgument { why: "the HSA runtime does not know the agent" },
                0x1008 => ErrorKind::out_of_memory(0, "the HSA runtime's own", MemoryInfo::default()),
                code => ErrorKind::Driver { code: code as i32, name: "a status of the HSA runtime" },
            },
        };
        Error::new(NAME, operation, kind)
    }
}

impl fmt::Display for HsaStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(name) => write!(f, "{}", MissingSymbol(name)),
            Self::Code(code) => write!(f, "HSA status {code:#x}"),
        }
    }
}

impl From<Result<hsa_status_t, MissingSymbol>> for HsaStatus {
    fn from(answer: Result<hsa_status_t, MissingSymbol>) -> Self {
        answer.map_or_else(|MissingSymbol(name)| Self::Missing(name), |status| Self::Code(status.0))
    }
}

impl Runtime {
    pub(crate) fn start(hsa: Hsa) -> Result<Self, HsaStatus> {
        // The runtime counts its users; HIP is another one. It is never shut down by us.
        // SAFETY: the function has no preconditions.
        HsaStatus::from(unsafe { hsa.hsa_init() }).ok()?;
        Ok(Self { hsa })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_become_errors() {
        let error = HsaStatus::OUT_OF_RESOURCES.error("x");
        assert!(error.is_out_of_memory(), "{error}");
        let missing = HsaStatus::from(Err(MissingSymbol("hsa_x")));
        assert!(matches!(missing.error("x").kind(), ErrorKind::Unsupported { .. }));
        assert_eq!(missing.to_string(), "hsa_x is missing in the library");
    }
}
