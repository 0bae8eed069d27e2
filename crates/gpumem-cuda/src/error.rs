//! Turns the driver's status codes into this library's errors.

use crate::NAME;
use cudarc::driver::sys::CUresult;
use gpumem_core::{Error, ErrorKind, MemoryInfo};
use std::{
    ffi::{CStr, c_char},
    ptr::null,
    sync::OnceLock,
};

/// `cuGetErrorName`. It takes an integer, because a newer driver has more codes than any list.
pub(crate) type GetErrorName = unsafe extern "C" fn(Status, *mut *const c_char) -> Status;

/// The function of the driver that was loaded.
pub(crate) static ERROR_NAME: OnceLock<GetErrorName> = OnceLock::new();

/// The status that a function of the driver or of NVRTC returns: the C enum as an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
#[must_use]
pub(crate) struct Status(pub(crate) u32);

impl Status {
    pub(crate) const SUCCESS: Self = Self(CUresult::CUDA_SUCCESS as u32);
    pub(crate) const INVALID_VALUE: Self = Self(CUresult::CUDA_ERROR_INVALID_VALUE as u32);
    pub(crate) const OUT_OF_MEMORY: Self = Self(CUresult::CUDA_ERROR_OUT_OF_MEMORY as u32);
    pub(crate) const DEINITIALIZED: Self = Self(CUresult::CUDA_ERROR_DEINITIALIZED as u32);
    pub(crate) const NO_DEVICE: Self = Self(CUresult::CUDA_ERROR_NO_DEVICE as u32);
    pub(crate) const INVALID_CONTEXT: Self = Self(CUresult::CUDA_ERROR_INVALID_CONTEXT as u32);
    pub(crate) const PEER_ACCESS_UNSUPPORTED: Self =
        Self(CUresult::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED as u32);
    pub(crate) const OPERATING_SYSTEM: Self = Self(CUresult::CUDA_ERROR_OPERATING_SYSTEM as u32);
    pub(crate) const INVALID_HANDLE: Self = Self(CUresult::CUDA_ERROR_INVALID_HANDLE as u32);
    pub(crate) const NOT_FOUND: Self = Self(CUresult::CUDA_ERROR_NOT_FOUND as u32);
    pub(crate) const NOT_READY: Self = Self(CUresult::CUDA_ERROR_NOT_READY as u32);
    pub(crate) const PEER_ACCESS_ALREADY_ENABLED: Self =
        Self(CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED as u32);
    pub(crate) const PEER_ACCESS_NOT_ENABLED: Self =
        Self(CUresult::CUDA_ERROR_PEER_ACCESS_NOT_ENABLED as u32);
    pub(crate) const HOST_MEMORY_ALREADY_REGISTERED: Self =
        Self(CUresult::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED as u32);
    pub(crate) const NOT_SUPPORTED: Self = Self(CUresult::CUDA_ERROR_NOT_SUPPORTED as u32);
    pub(crate) const STREAM_CAPTURE_UNSUPPORTED: Self =
        Self(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED as u32);
    pub(crate) const STREAM_CAPTURE_IMPLICIT: Self =
        Self(CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT as u32);

    #[inline]
    pub(crate) fn is_success(self) -> bool {
        self == Self::SUCCESS
    }

    /// The status as a result, for code that has no device at hand.
    pub(crate) fn ok(self) -> Result<(), Status> {
        if self.is_success() { Ok(()) } else { Err(self) }
    }

    /// The driver's name for the code. It needs no context, and no initialised driver.
    pub(crate) fn name(self) -> &'static str {
        let mut name = null();
        let status = ERROR_NAME.get().map(|get| {
            // SAFETY: a place for a pointer; the function takes any code.
            unsafe { get(self, &mut name) }
        });
        if status != Some(Self::SUCCESS) || name.is_null() {
            return "an error without a name";
        }
        // SAFETY: the driver gives a constant text that ends with a zero, and is never unloaded.
        unsafe { CStr::from_ptr(name) }.to_str().unwrap_or("an error without a name")
    }

    /// Whether the context is unusable from now on: the driver repeats such a code on every later call.
    pub(crate) fn is_sticky(self) -> bool {
        matches!(self.0, 214 | 220 | 226 | 700 | 702 | 709 | 710 | 714..=719 | 721 | 810)
    }

    /// Whether the driver may have refused a call because another context is current than it wants, or none: it does not
    /// always say so in these words.
    #[inline]
    pub(crate) fn may_be_about_the_context(self) -> bool {
        matches!(self, Self::INVALID_CONTEXT | Self::INVALID_VALUE | Self::INVALID_HANDLE)
    }

    /// Whether a module that was given to the driver is at fault.
    pub(crate) fn is_about_an_image(self) -> bool {
        matches!(self.0, 200 | 209 | 218 | 221..=223 | 225 | 300..=303)
    }

    /// The kind of error for a code that does not depend on the call.
    pub(crate) fn kind(self) -> ErrorKind {
        match self {
            Self::INVALID_VALUE => {
                ErrorKind::InvalidArgument { why: "the driver refuses a value (CUDA_ERROR_INVALID_VALUE)" }
            }
            Self::OUT_OF_MEMORY => ErrorKind::out_of_memory(0, "the driver's own", MemoryInfo::default()),
            Self::DEINITIALIZED => ErrorKind::Exiting,
            Self::PEER_ACCESS_UNSUPPORTED => {
                ErrorKind::Unsupported { what: "access between these two devices" }
            }
            Self::NOT_READY => ErrorKind::NotReady,
            Self::NOT_SUPPORTED => ErrorKind::Unsupported { what: "this call (CUDA_ERROR_NOT_SUPPORTED)" },
            Self::STREAM_CAPTURE_UNSUPPORTED | Self::STREAM_CAPTURE_IMPLICIT => {
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

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.name(), self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_driver_where_there_is_one() {
        let found = crate::probe::probe().is_ok();
        for code in [CUresult::CUDA_ERROR_OUT_OF_MEMORY, CUresult::CUDA_ERROR_ILLEGAL_ADDRESS] {
            let expected = if found { format!("{code:?}") } else { "an error without a name".to_owned() };
            assert_eq!(Status(code as u32).name(), expected);
        }
        assert_eq!(Status(12345).name(), "an error without a name");
    }

    #[test]
    fn statuses_that_lose_a_device_are_recognised() {
        for code in [
            CUresult::CUDA_ERROR_ECC_UNCORRECTABLE,
            CUresult::CUDA_ERROR_NVLINK_UNCORRECTABLE,
            CUresult::CUDA_ERROR_ILLEGAL_ADDRESS,
            CUresult::CUDA_ERROR_LAUNCH_TIMEOUT,
            CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED,
            CUresult::CUDA_ERROR_ASSERT,
            CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR,
            CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION,
            CUresult::CUDA_ERROR_MISALIGNED_ADDRESS,
            CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE,
            CUresult::CUDA_ERROR_INVALID_PC,
            CUresult::CUDA_ERROR_LAUNCH_FAILED,
        ] {
            assert!(Status(code as u32).is_sticky(), "{code:?}");
        }
        for code in [
            CUresult::CUDA_ERROR_OUT_OF_MEMORY,
            CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
            CUresult::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
            CUresult::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
            CUresult::CUDA_ERROR_NOT_READY,
        ] {
            assert!(!Status(code as u32).is_sticky(), "{code:?}");
        }
    }
}
