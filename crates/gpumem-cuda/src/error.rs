//! Turns the driver's status codes into this library's errors, without calling the driver.

use crate::NAME;
use gpumem_core::{Error, ErrorKind};

/// The status that a function of the driver or of NVRTC returns: the C enum as an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
#[must_use]
pub(crate) struct Status(pub(crate) u32);

impl Status {
    pub(crate) const SUCCESS: Self = Self(0);
    pub(crate) const INVALID_VALUE: Self = Self(1);
    pub(crate) const OUT_OF_MEMORY: Self = Self(2);
    pub(crate) const DEINITIALIZED: Self = Self(4);
    pub(crate) const NO_DEVICE: Self = Self(100);
    pub(crate) const INVALID_CONTEXT: Self = Self(201);
    pub(crate) const PEER_ACCESS_UNSUPPORTED: Self = Self(217);
    pub(crate) const OPERATING_SYSTEM: Self = Self(304);
    pub(crate) const INVALID_HANDLE: Self = Self(400);
    pub(crate) const NOT_FOUND: Self = Self(500);
    pub(crate) const NOT_READY: Self = Self(600);
    pub(crate) const PEER_ACCESS_ALREADY_ENABLED: Self = Self(704);
    pub(crate) const PEER_ACCESS_NOT_ENABLED: Self = Self(705);
    pub(crate) const HOST_MEMORY_ALREADY_REGISTERED: Self = Self(712);
    pub(crate) const NOT_SUPPORTED: Self = Self(801);

    #[inline]
    pub(crate) fn is_success(self) -> bool {
        self == Self::SUCCESS
    }

    /// The status as a result, for code that has no device at hand.
    pub(crate) fn ok(self) -> Result<(), Status> {
        if self.is_success() { Ok(()) } else { Err(self) }
    }

    /// The driver's name for the code.
    pub(crate) fn name(self) -> &'static str {
        match NAMES.binary_search_by_key(&self.0, |(code, _)| *code) {
            Ok(index) => NAMES[index].1,
            Err(_) => "an error that this version of gpumem does not know",
        }
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
            Self::OUT_OF_MEMORY => ErrorKind::OutOfMemory {
                requested: 0,
                kind: "the driver's own",
                free: 0,
                total: 0,
                pressure: None,
            },
            Self::DEINITIALIZED => ErrorKind::Exiting,
            Self::PEER_ACCESS_UNSUPPORTED => {
                ErrorKind::Unsupported { what: "access between these two devices" }
            }
            Self::NOT_READY => ErrorKind::NotReady,
            Self::NOT_SUPPORTED => ErrorKind::Unsupported { what: "this call (CUDA_ERROR_NOT_SUPPORTED)" },
            Status(900 | 906) => {
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

/// Every code up to CUDA 13.4, rising.
#[rustfmt::skip]
static NAMES: &[(u32, &str)] = &[
    (0, "CUDA_SUCCESS"),
    (1, "CUDA_ERROR_INVALID_VALUE"),
    (2, "CUDA_ERROR_OUT_OF_MEMORY"),
    (3, "CUDA_ERROR_NOT_INITIALIZED"),
    (4, "CUDA_ERROR_DEINITIALIZED"),
    (5, "CUDA_ERROR_PROFILER_DISABLED"),
    (6, "CUDA_ERROR_PROFILER_NOT_INITIALIZED"),
    (7, "CUDA_ERROR_PROFILER_ALREADY_STARTED"),
    (8, "CUDA_ERROR_PROFILER_ALREADY_STOPPED"),
    (34, "CUDA_ERROR_STUB_LIBRARY"),
    (36, "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER"),
    (46, "CUDA_ERROR_DEVICE_UNAVAILABLE"),
    (47, "CUDA_ERROR_MULTICAST_RESOURCE_FULL"),
    (100, "CUDA_ERROR_NO_DEVICE"),
    (101, "CUDA_ERROR_INVALID_DEVICE"),
    (102, "CUDA_ERROR_DEVICE_NOT_LICENSED"),
    (200, "CUDA_ERROR_INVALID_IMAGE"),
    (201, "CUDA_ERROR_INVALID_CONTEXT"),
    (202, "CUDA_ERROR_CONTEXT_ALREADY_CURRENT"),
    (205, "CUDA_ERROR_MAP_FAILED"),
    (206, "CUDA_ERROR_UNMAP_FAILED"),
    (207, "CUDA_ERROR_ARRAY_IS_MAPPED"),
    (208, "CUDA_ERROR_ALREADY_MAPPED"),
    (209, "CUDA_ERROR_NO_BINARY_FOR_GPU"),
    (210, "CUDA_ERROR_ALREADY_ACQUIRED"),
    (211, "CUDA_ERROR_NOT_MAPPED"),
    (212, "CUDA_ERROR_NOT_MAPPED_AS_ARRAY"),
    (213, "CUDA_ERROR_NOT_MAPPED_AS_POINTER"),
    (214, "CUDA_ERROR_ECC_UNCORRECTABLE"),
    (215, "CUDA_ERROR_UNSUPPORTED_LIMIT"),
    (216, "CUDA_ERROR_CONTEXT_ALREADY_IN_USE"),
    (217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED"),
    (218, "CUDA_ERROR_INVALID_PTX"),
    (219, "CUDA_ERROR_INVALID_GRAPHICS_CONTEXT"),
    (220, "CUDA_ERROR_NVLINK_UNCORRECTABLE"),
    (221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND"),
    (222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"),
    (223, "CUDA_ERROR_JIT_COMPILATION_DISABLED"),
    (224, "CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY"),
    (225, "CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC"),
    (226, "CUDA_ERROR_CONTAINED"),
    (227, "CUDA_ERROR_INSUFFICIENT_LOADER_VERSION"),
    (300, "CUDA_ERROR_INVALID_SOURCE"),
    (301, "CUDA_ERROR_FILE_NOT_FOUND"),
    (302, "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND"),
    (303, "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED"),
    (304, "CUDA_ERROR_OPERATING_SYSTEM"),
    (400, "CUDA_ERROR_INVALID_HANDLE"),
    (401, "CUDA_ERROR_ILLEGAL_STATE"),
    (402, "CUDA_ERROR_LOSSY_QUERY"),
    (500, "CUDA_ERROR_NOT_FOUND"),
    (600, "CUDA_ERROR_NOT_READY"),
    (700, "CUDA_ERROR_ILLEGAL_ADDRESS"),
    (701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"),
    (702, "CUDA_ERROR_LAUNCH_TIMEOUT"),
    (703, "CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING"),
    (704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED"),
    (705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED"),
    (708, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE"),
    (709, "CUDA_ERROR_CONTEXT_IS_DESTROYED"),
    (710, "CUDA_ERROR_ASSERT"),
    (711, "CUDA_ERROR_TOO_MANY_PEERS"),
    (712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"),
    (713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED"),
    (714, "CUDA_ERROR_HARDWARE_STACK_ERROR"),
    (715, "CUDA_ERROR_ILLEGAL_INSTRUCTION"),
    (716, "CUDA_ERROR_MISALIGNED_ADDRESS"),
    (717, "CUDA_ERROR_INVALID_ADDRESS_SPACE"),
    (718, "CUDA_ERROR_INVALID_PC"),
    (719, "CUDA_ERROR_LAUNCH_FAILED"),
    (720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"),
    (721, "CUDA_ERROR_TENSOR_MEMORY_LEAK"),
    (800, "CUDA_ERROR_NOT_PERMITTED"),
    (801, "CUDA_ERROR_NOT_SUPPORTED"),
    (802, "CUDA_ERROR_SYSTEM_NOT_READY"),
    (803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
    (804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"),
    (805, "CUDA_ERROR_MPS_CONNECTION_FAILED"),
    (806, "CUDA_ERROR_MPS_RPC_FAILURE"),
    (807, "CUDA_ERROR_MPS_SERVER_NOT_READY"),
    (808, "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED"),
    (809, "CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED"),
    (810, "CUDA_ERROR_MPS_CLIENT_TERMINATED"),
    (811, "CUDA_ERROR_CDP_NOT_SUPPORTED"),
    (812, "CUDA_ERROR_CDP_VERSION_MISMATCH"),
    (900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"),
    (901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"),
    (902, "CUDA_ERROR_STREAM_CAPTURE_MERGE"),
    (903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED"),
    (904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED"),
    (905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION"),
    (906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"),
    (907, "CUDA_ERROR_CAPTURED_EVENT"),
    (908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD"),
    (909, "CUDA_ERROR_TIMEOUT"),
    (910, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE"),
    (911, "CUDA_ERROR_EXTERNAL_DEVICE"),
    (912, "CUDA_ERROR_INVALID_CLUSTER_SIZE"),
    (913, "CUDA_ERROR_FUNCTION_NOT_LOADED"),
    (914, "CUDA_ERROR_INVALID_RESOURCE_TYPE"),
    (915, "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION"),
    (916, "CUDA_ERROR_KEY_ROTATION"),
    (917, "CUDA_ERROR_STREAM_DETACHED"),
    (918, "CUDA_ERROR_GRAPH_RECAPTURE_FAILURE"),
    (919, "CUDA_ERROR_FABRIC_NOT_READY"),
    (999, "CUDA_ERROR_UNKNOWN"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use cudarc::driver::sys::CUresult;

    #[test]
    fn the_table_is_sorted_so_that_it_can_be_searched() {
        assert!(NAMES.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn names_are_those_of_the_driver() {
        for code in [
            CUresult::CUDA_SUCCESS,
            CUresult::CUDA_ERROR_OUT_OF_MEMORY,
            CUresult::CUDA_ERROR_ILLEGAL_ADDRESS,
            CUresult::CUDA_ERROR_UNKNOWN,
        ] {
            assert_eq!(Status(code as u32).name(), format!("{code:?}"));
        }
        assert_eq!(Status(12345).kind(), ErrorKind::Driver { code: 12345, name: Status(12345).name() });
    }

    #[test]
    fn codes_have_the_numbers_of_the_driver() {
        for (ours, theirs) in [
            (Status::INVALID_VALUE, CUresult::CUDA_ERROR_INVALID_VALUE),
            (Status::DEINITIALIZED, CUresult::CUDA_ERROR_DEINITIALIZED),
            (Status::NO_DEVICE, CUresult::CUDA_ERROR_NO_DEVICE),
            (Status::INVALID_CONTEXT, CUresult::CUDA_ERROR_INVALID_CONTEXT),
            (Status::PEER_ACCESS_UNSUPPORTED, CUresult::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED),
            (Status::OPERATING_SYSTEM, CUresult::CUDA_ERROR_OPERATING_SYSTEM),
            (Status::INVALID_HANDLE, CUresult::CUDA_ERROR_INVALID_HANDLE),
            (Status::NOT_FOUND, CUresult::CUDA_ERROR_NOT_FOUND),
            (Status::NOT_READY, CUresult::CUDA_ERROR_NOT_READY),
            (Status::PEER_ACCESS_ALREADY_ENABLED, CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED),
            (Status::PEER_ACCESS_NOT_ENABLED, CUresult::CUDA_ERROR_PEER_ACCESS_NOT_ENABLED),
            (Status::HOST_MEMORY_ALREADY_REGISTERED, CUresult::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED),
            (Status::NOT_SUPPORTED, CUresult::CUDA_ERROR_NOT_SUPPORTED),
        ] {
            assert_eq!(ours.0, theirs as u32);
        }
    }

    #[test]
    fn what_loses_a_device_is_told_apart() {
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
