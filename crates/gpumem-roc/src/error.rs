//! Turns HIP's status codes into this library's errors.

use crate::NAME;
use gpumem_core::{Error, ErrorKind, MemoryInfo};
use gpumem_sys::{
    MissingSymbol,
    hip::{Hip, hipError_t},
};
use std::{ffi::CStr, sync::OnceLock};

/// The HIP that was loaded, for its names of errors.
pub(crate) static HIP: OnceLock<Hip> = OnceLock::new();

/// The status of a function of HIP, or that HIP does not have the function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) struct Status(u32);

impl Status {
    pub(crate) const SUCCESS: Self = Self(hipError_t::hipSuccess.0);
    pub(crate) const INVALID_VALUE: Self = Self(hipError_t::hipErrorInvalidValue.0);
    pub(crate) const OUT_OF_MEMORY: Self = Self(hipError_t::hipErrorOutOfMemory.0);
    pub(crate) const DEINITIALIZED: Self = Self(hipError_t::hipErrorDeinitialized.0);
    pub(crate) const INVALID_DEVICE_POINTER: Self = Self(hipError_t::hipErrorInvalidDevicePointer.0);
    pub(crate) const NO_DEVICE: Self = Self(hipError_t::hipErrorNoDevice.0);
    pub(crate) const INVALID_DEVICE: Self = Self(hipError_t::hipErrorInvalidDevice.0);
    pub(crate) const INVALID_CONTEXT: Self = Self(hipError_t::hipErrorInvalidContext.0);
    pub(crate) const PEER_ACCESS_UNSUPPORTED: Self = Self(hipError_t::hipErrorPeerAccessUnsupported.0);
    pub(crate) const OPERATING_SYSTEM: Self = Self(hipError_t::hipErrorOperatingSystem.0);
    pub(crate) const INVALID_HANDLE: Self = Self(hipError_t::hipErrorInvalidHandle.0);
    pub(crate) const NOT_FOUND: Self = Self(hipError_t::hipErrorNotFound.0);
    pub(crate) const NOT_READY: Self = Self(hipError_t::hipErrorNotReady.0);
    pub(crate) const PEER_ACCESS_ALREADY_ENABLED: Self = Self(hipError_t::hipErrorPeerAccessAlreadyEnabled.0);
    pub(crate) const PEER_ACCESS_NOT_ENABLED: Self = Self(hipError_t::hipErrorPeerAccessNotEnabled.0);
    pub(crate) const HOST_MEMORY_ALREADY_REGISTERED: Self =
        Self(hipError_t::hipErrorHostMemoryAlreadyRegistered.0);
    pub(crate) const NOT_SUPPORTED: Self = Self(hipError_t::hipErrorNotSupported.0);
    /// The HSA runtime below has refused memory.
    pub(crate) const RUNTIME_MEMORY: Self = Self(hipError_t::hipErrorRuntimeMemory.0);
    /// The library has no such function. No code of HIP's.
    pub(crate) const MISSING: Self = Self(u32::MAX);

    pub(crate) fn is_success(self) -> bool {
        self == Self::SUCCESS
    }

    /// The status as a result, for code that has no device at hand.
    pub(crate) fn ok(self) -> Result<(), Status> {
        if self.is_success() { Ok(()) } else { Err(self) }
    }

    /// HIP's name for the code. It needs no device.
    pub(crate) fn name(self) -> &'static str {
        if self == Self::MISSING {
            return "no such function in this version of ROCm";
        }
        // SAFETY: the function takes any code.
        let name = HIP.get().and_then(|hip| unsafe { hip.hipGetErrorName(hipError_t(self.0)) }.ok());
        let Some(name) = name.filter(|name| !name.is_null()) else { return "an error without a name" };
        // SAFETY: HIP gives a constant text that ends with a zero, and is never unloaded.
        unsafe { CStr::from_ptr(name) }.to_str().unwrap_or("an error without a name")
    }

    /// Whether the device is unusable from now on. Most faults of a kernel do not get that far: ROCm's runtime ends
    /// the process.
    pub(crate) fn is_sticky(self) -> bool {
        matches!(self.0, 53 | 214 | 220 | 226 | 700 | 702 | 709 | 710 | 714..=719 | 721 | 810)
    }

    /// Whether HIP refuses the call because a stream is captured.
    pub(crate) fn is_beside_capture(self) -> bool {
        matches!(self.0, 900 | 906)
    }

    /// Whether a module that was given to HIP is at fault.
    pub(crate) fn is_about_an_image(self) -> bool {
        matches!(self.0, 200 | 209 | 218 | 221..=223 | 225 | 300..=303)
    }

    /// The kind of error for a code that does not depend on the call.
    pub(crate) fn kind(self) -> ErrorKind {
        match self {
            Self::INVALID_VALUE => {
                ErrorKind::InvalidArgument { why: "HIP refuses a value (hipErrorInvalidValue)" }
            }
            Self::OUT_OF_MEMORY => ErrorKind::out_of_memory(0, "the runtime's own", MemoryInfo::default()),
            Self::DEINITIALIZED => ErrorKind::Exiting,
            Self::PEER_ACCESS_UNSUPPORTED => {
                ErrorKind::Unsupported { what: "access between these two devices" }
            }
            Self::NOT_READY => ErrorKind::NotReady,
            Self::NOT_SUPPORTED => ErrorKind::Unsupported { what: "this call (hipErrorNotSupported)" },
            Self::MISSING => {
                ErrorKind::Unsupported { what: "this call (this version of ROCm has no such function)" }
            }
            status if status.is_beside_capture() => {
                ErrorKind::Unsupported { what: "this call while a stream is being captured" }
            }
            Status(code) => ErrorKind::Driver { code: code as i32, name: self.name() },
        }
    }

    /// An error of `operation`, for code that has no device at hand.
    pub(crate) fn error(self, operation: &'static str) -> Error {
        Error::new(NAME, operation, self.kind())
    }
}

impl From<hipError_t> for Status {
    fn from(status: hipError_t) -> Self {
        Self(status.0)
    }
}

impl From<Result<hipError_t, MissingSymbol>> for Status {
    fn from(answer: Result<hipError_t, MissingSymbol>) -> Self {
        answer.map_or(Self::MISSING, Self::from)
    }
}

impl From<gpumem_sys::hip::Failure> for Status {
    fn from(failure: gpumem_sys::hip::Failure) -> Self {
        match failure {
            gpumem_sys::hip::Failure::Missing(_) => Self::MISSING,
            gpumem_sys::hip::Failure::Status(status) => status.into(),
        }
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.name(), self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_hip_where_there_is_one() {
        let _ = crate::probe::probe();
        for (status, name) in [
            (Status::INVALID_DEVICE_POINTER, "hipErrorInvalidDevicePointer"),
            (Status::RUNTIME_MEMORY, "hipErrorRuntimeMemory"),
        ] {
            assert_eq!(status.name(), if HIP.get().is_some() { name } else { "an error without a name" });
        }
    }

    #[test]
    fn statuses_that_lose_a_device_are_recognised() {
        for code in [
            hipError_t::hipErrorIllegalAddress,
            hipError_t::hipErrorLaunchFailure,
            hipError_t::hipErrorLaunchTimeOut,
            hipError_t::hipErrorAssert,
            hipError_t::hipErrorECCNotCorrectable,
            hipError_t::hipErrorContextIsDestroyed,
            hipError_t::hipErrorPriorLaunchFailure,
        ] {
            assert!(Status::from(code).is_sticky(), "{code:?}");
        }
        for code in [
            hipError_t::hipErrorOutOfMemory,
            hipError_t::hipErrorLaunchOutOfResources,
            hipError_t::hipErrorHostMemoryAlreadyRegistered,
            hipError_t::hipErrorNotReady,
            hipError_t::hipErrorRuntimeMemory,
        ] {
            assert!(!Status::from(code).is_sticky(), "{code:?}");
        }
    }

    #[test]
    fn a_missing_function_is_reported_as_unsupported() {
        let status = Status::from(Err(MissingSymbol("hipNothing")));
        let error = status.error("hipNothing");
        assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains("hipNothing"), "{error}");
    }
}
