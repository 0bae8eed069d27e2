//! HIP's statuses, and the translation of the CUDA driver's.

use crate::{driver::Status, types::hipError_t};
use std::ffi::CStr;

/// The result of a translated call.
pub(crate) type Outcome<T = ()> = Result<T, hipError_t>;

/// Names every status of HIP. Most have the number that the CUDA driver gives the same thing.
macro_rules! statuses {
    ($($constant:ident = $number:literal $name:literal,)*) => {
        impl hipError_t {
            $(#[doc = concat!("`", $name, "`")] pub const $constant: Self = Self($number);)*
        }

        /// All statuses with their names in the header.
        pub const STATUSES: &[(hipError_t, &CStr)] = &[$((
            hipError_t::$constant,
            match CStr::from_bytes_with_nul(concat!($name, "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            },
        ),)*];
    };
}

statuses! {
    SUCCESS = 0 "hipSuccess",
    INVALID_VALUE = 1 "hipErrorInvalidValue",
    OUT_OF_MEMORY = 2 "hipErrorOutOfMemory",
    NOT_INITIALIZED = 3 "hipErrorNotInitialized",
    DEINITIALIZED = 4 "hipErrorDeinitialized",
    PROFILER_DISABLED = 5 "hipErrorProfilerDisabled",
    PROFILER_NOT_INITIALIZED = 6 "hipErrorProfilerNotInitialized",
    PROFILER_ALREADY_STARTED = 7 "hipErrorProfilerAlreadyStarted",
    PROFILER_ALREADY_STOPPED = 8 "hipErrorProfilerAlreadyStopped",
    INVALID_CONFIGURATION = 9 "hipErrorInvalidConfiguration",
    INVALID_PITCH_VALUE = 12 "hipErrorInvalidPitchValue",
    INVALID_SYMBOL = 13 "hipErrorInvalidSymbol",
    INVALID_DEVICE_POINTER = 17 "hipErrorInvalidDevicePointer",
    INVALID_MEMCPY_DIRECTION = 21 "hipErrorInvalidMemcpyDirection",
    INSUFFICIENT_DRIVER = 35 "hipErrorInsufficientDriver",
    MISSING_CONFIGURATION = 52 "hipErrorMissingConfiguration",
    PRIOR_LAUNCH_FAILURE = 53 "hipErrorPriorLaunchFailure",
    INVALID_DEVICE_FUNCTION = 98 "hipErrorInvalidDeviceFunction",
    NO_DEVICE = 100 "hipErrorNoDevice",
    INVALID_DEVICE = 101 "hipErrorInvalidDevice",
    INVALID_IMAGE = 200 "hipErrorInvalidImage",
    INVALID_CONTEXT = 201 "hipErrorInvalidContext",
    CONTEXT_ALREADY_CURRENT = 202 "hipErrorContextAlreadyCurrent",
    MAP_FAILED = 205 "hipErrorMapFailed",
    UNMAP_FAILED = 206 "hipErrorUnmapFailed",
    ARRAY_IS_MAPPED = 207 "hipErrorArrayIsMapped",
    ALREADY_MAPPED = 208 "hipErrorAlreadyMapped",
    NO_BINARY_FOR_GPU = 209 "hipErrorNoBinaryForGpu",
    ALREADY_ACQUIRED = 210 "hipErrorAlreadyAcquired",
    NOT_MAPPED = 211 "hipErrorNotMapped",
    NOT_MAPPED_AS_ARRAY = 212 "hipErrorNotMappedAsArray",
    NOT_MAPPED_AS_POINTER = 213 "hipErrorNotMappedAsPointer",
    ECC_NOT_CORRECTABLE = 214 "hipErrorECCNotCorrectable",
    UNSUPPORTED_LIMIT = 215 "hipErrorUnsupportedLimit",
    CONTEXT_ALREADY_IN_USE = 216 "hipErrorContextAlreadyInUse",
    PEER_ACCESS_UNSUPPORTED = 217 "hipErrorPeerAccessUnsupported",
    INVALID_KERNEL_FILE = 218 "hipErrorInvalidKernelFile",
    INVALID_GRAPHICS_CONTEXT = 219 "hipErrorInvalidGraphicsContext",
    INVALID_SOURCE = 300 "hipErrorInvalidSource",
    FILE_NOT_FOUND = 301 "hipErrorFileNotFound",
    SHARED_OBJECT_SYMBOL_NOT_FOUND = 302 "hipErrorSharedObjectSymbolNotFound",
    SHARED_OBJECT_INIT_FAILED = 303 "hipErrorSharedObjectInitFailed",
    OPERATING_SYSTEM = 304 "hipErrorOperatingSystem",
    INVALID_HANDLE = 400 "hipErrorInvalidHandle",
    ILLEGAL_STATE = 401 "hipErrorIllegalState",
    NOT_FOUND = 500 "hipErrorNotFound",
    NOT_READY = 600 "hipErrorNotReady",
    ILLEGAL_ADDRESS = 700 "hipErrorIllegalAddress",
    LAUNCH_OUT_OF_RESOURCES = 701 "hipErrorLaunchOutOfResources",
    LAUNCH_TIME_OUT = 702 "hipErrorLaunchTimeOut",
    PEER_ACCESS_ALREADY_ENABLED = 704 "hipErrorPeerAccessAlreadyEnabled",
    PEER_ACCESS_NOT_ENABLED = 705 "hipErrorPeerAccessNotEnabled",
    SET_ON_ACTIVE_PROCESS = 708 "hipErrorSetOnActiveProcess",
    CONTEXT_IS_DESTROYED = 709 "hipErrorContextIsDestroyed",
    ASSERT = 710 "hipErrorAssert",
    HOST_MEMORY_ALREADY_REGISTERED = 712 "hipErrorHostMemoryAlreadyRegistered",
    HOST_MEMORY_NOT_REGISTERED = 713 "hipErrorHostMemoryNotRegistered",
    LAUNCH_FAILURE = 719 "hipErrorLaunchFailure",
    COOPERATIVE_LAUNCH_TOO_LARGE = 720 "hipErrorCooperativeLaunchTooLarge",
    NOT_SUPPORTED = 801 "hipErrorNotSupported",
    STREAM_CAPTURE_UNSUPPORTED = 900 "hipErrorStreamCaptureUnsupported",
    STREAM_CAPTURE_INVALIDATED = 901 "hipErrorStreamCaptureInvalidated",
    STREAM_CAPTURE_MERGE = 902 "hipErrorStreamCaptureMerge",
    STREAM_CAPTURE_UNMATCHED = 903 "hipErrorStreamCaptureUnmatched",
    STREAM_CAPTURE_UNJOINED = 904 "hipErrorStreamCaptureUnjoined",
    STREAM_CAPTURE_ISOLATION = 905 "hipErrorStreamCaptureIsolation",
    STREAM_CAPTURE_IMPLICIT = 906 "hipErrorStreamCaptureImplicit",
    CAPTURED_EVENT = 907 "hipErrorCapturedEvent",
    STREAM_CAPTURE_WRONG_THREAD = 908 "hipErrorStreamCaptureWrongThread",
    GRAPH_EXEC_UPDATE_FAILURE = 910 "hipErrorGraphExecUpdateFailure",
    UNKNOWN = 999 "hipErrorUnknown",
}

impl hipError_t {
    /// Name in the header; `hipErrorUnknown` for a number that has none, as AMD's library has it.
    #[must_use]
    pub fn name(self) -> &'static CStr {
        STATUSES.iter().find(|(status, _)| *status == self).map_or(c"hipErrorUnknown", |(_, name)| name)
    }
}

impl From<Status> for hipError_t {
    /// HIP has the CUDA driver's numbers; a status that HIP lacks becomes the nearest one.
    fn from(Status(code): Status) -> Self {
        let same = Self(code);
        if STATUSES.iter().any(|(status, _)| *status == same) {
            return same;
        }
        match code {
            // A stub of the driver library, or one that does not fit the kernel's part.
            34 | 803 | 804 => Self::INSUFFICIENT_DRIVER,
            // The device is not to be had: unavailable, not licensed, not ready.
            46 | 102 | 802 => Self::INVALID_DEVICE,
            // Uncorrectable errors of links and memory.
            220 => Self::ECC_NOT_CORRECTABLE,
            // Code that is too new for this driver, or that it may not compile.
            221..=225 => Self::NO_BINARY_FOR_GPU,
            // Faults of a kernel that CUDA tells apart: stack, instruction, alignment, address space, counter.
            714..=718 => Self::LAUNCH_FAILURE,
            // A call that is not allowed in a callback.
            800 => Self::NOT_SUPPORTED,
            _ => Self::UNKNOWN,
        }
    }
}

impl Status {
    /// The status as HIP has it.
    pub(crate) fn hip(self) -> Outcome {
        if self.0 == 0 { Ok(()) } else { Err(self.into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_of_the_driver_become_hips() {
        for (code, expected) in [
            (0, hipError_t::SUCCESS),
            (1, hipError_t::INVALID_VALUE),
            (2, hipError_t::OUT_OF_MEMORY),
            (222, hipError_t::NO_BINARY_FOR_GPU),
            (500, hipError_t::NOT_FOUND),
            (600, hipError_t::NOT_READY),
            (700, hipError_t::ILLEGAL_ADDRESS),
            (716, hipError_t::LAUNCH_FAILURE),
            (800, hipError_t::NOT_SUPPORTED),
            (909, hipError_t::UNKNOWN),
            (12_345, hipError_t::UNKNOWN),
        ] {
            assert_eq!(hipError_t::from(Status(code)), expected, "{code}");
        }
        assert_eq!(Status(0).hip(), Ok(()));
        assert_eq!(Status(714).hip(), Err(hipError_t::LAUNCH_FAILURE));
    }

    #[test]
    fn every_status_has_its_name_and_no_number_comes_twice() {
        assert_eq!(hipError_t::NOT_READY.name(), c"hipErrorNotReady");
        assert_eq!(hipError_t(5555).name(), c"hipErrorUnknown");
        for pair in STATUSES.windows(2) {
            assert!(pair[0].0.0 < pair[1].0.0, "{pair:?}");
            assert!(pair[0].1.to_bytes().starts_with(b"hip"));
        }
    }
}
