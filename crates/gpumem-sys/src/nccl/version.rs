//! The functions of each version of NCCL's interface.
//!
//! The numbers were read from the headers and the exported symbols of NVIDIA's packages of NCCL 2.17.1 to 2.32.3. RCCL
//! reports the version of NCCL whose interface it has.

use core::{ffi::c_int, fmt};

/// Version of NCCL's interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    major: u16,
    minor: u16,
    patch: u16,
}

impl Version {
    /// The version whose header the declarations are made from.
    pub const DECLARED: Self = Self::new(2, 32, 3);
    /// The first with 8-bit floating-point numbers (`ncclFloat8e4m3`, `ncclFloat8e5m2`).
    pub const FLOAT8: Self = Self::new(2, 24, 3);
    /// The first with a configuration of communicators (`ncclConfig_t`), and so with communicators that do not block.
    pub const CONFIG: Self = Self::new(2, 14, 3);

    /// A version by its numbers.
    pub const fn new(major: u16, minor: u16, patch: u16) -> Self {
        Self { major, minor, patch }
    }

    /// Reads the number that `ncclGetVersion` gives, or gives nothing for one that is no version.
    ///
    /// It is `major * 10_000 + minor * 100 + patch`, and up to 2.8 `major * 1000 + minor * 100 + patch`.
    pub const fn from_code(code: c_int) -> Option<Self> {
        let unit = match code {
            1_000..10_000 => 1_000,
            10_000..1_000_000 => 10_000,
            _ => return None,
        };
        Some(Self {
            major: (code / unit) as u16,
            minor: (code % unit / 100) as u16,
            patch: (code % 100) as u16,
        })
    }

    /// The number of this version, as `ncclConfig_t` wants it.
    pub const fn code(self) -> u32 {
        let unit = if self.major <= 2 && self.minor <= 8 { 1_000 } else { 10_000 };
        self.major as u32 * unit + self.minor as u32 * 100 + self.patch as u32
    }

    /// The major version.
    pub const fn major(self) -> u16 {
        self.major
    }

    /// The minor version.
    pub const fn minor(self) -> u16 {
        self.minor
    }

    /// The patch level.
    pub const fn patch(self) -> u16 {
        self.patch
    }

    /// Whether `NCCL_COMM_ID`, the address of the first rank, gives every process the same identity without exchanging
    /// anything. Versions from 2.14 to 2.21 put a random number beside the address.
    pub fn has_identity_of_address(self) -> bool {
        self < Self::CONFIG || self >= Self::new(2, 22, 3)
    }

    /// The first version of NCCL that has this function, or nothing for one that is not declared here. RCCL has some
    /// functions earlier.
    pub fn since(function: &str) -> Option<Self> {
        let later = LATER.iter().find(|(_, names)| names.contains(&function));
        match later {
            Some((version, _)) => Some(*version),
            None => BASE.contains(&function).then_some(BASE_VERSION),
        }
    }

    /// Every function that is declared here and that NCCL has, with the first version that has it.
    pub fn functions() -> impl Iterator<Item = (&'static str, Self)> {
        let base = BASE.iter().map(|name| (*name, BASE_VERSION));
        base.chain(LATER.iter().flat_map(|(version, names)| names.iter().map(|name| (*name, *version))))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// All of [`BASE`] but two, which only configured communicators need, is older; no version below is served.
const BASE_VERSION: Version = Version::new(2, 13, 4);

const BASE: &[&str] = &[
    "ncclAllGather",
    "ncclAllReduce",
    "ncclBcast",
    "ncclBroadcast",
    "ncclCommAbort",
    "ncclCommCount",
    "ncclCommCuDevice",
    "ncclCommDestroy",
    "ncclCommGetAsyncError",
    "ncclCommInitAll",
    "ncclCommInitRank",
    "ncclCommUserRank",
    "ncclGetErrorString",
    "ncclGetLastError",
    "ncclGetUniqueId",
    "ncclGetVersion",
    "ncclGroupEnd",
    "ncclGroupStart",
    "ncclRecv",
    "ncclRedOpCreatePreMulSum",
    "ncclRedOpDestroy",
    "ncclReduce",
    "ncclReduceScatter",
    "ncclSend",
];

const LATER: &[(Version, &[&str])] = &[
    (Version::CONFIG, &["ncclCommFinalize", "ncclCommInitRankConfig"]),
    (Version::new(2, 18, 1), &["ncclCommSplit"]),
    (Version::new(2, 19, 3), &["ncclCommDeregister", "ncclCommRegister", "ncclMemAlloc", "ncclMemFree"]),
    (Version::new(2, 22, 3), &["ncclGroupSimulateEnd"]),
    (Version::new(2, 23, 4), &["ncclCommInitRankScalable"]),
    (Version::new(2, 27, 3), &["ncclCommShrink", "ncclCommWindowDeregister", "ncclCommWindowRegister"]),
    (Version::new(2, 28, 3), &["ncclAlltoAll", "ncclGather", "ncclScatter"]),
    (Version::new(2, 28, 7), &["ncclCommRevoke"]),
    (
        Version::new(2, 29, 2),
        &[
            "ncclCommGetUniqueId",
            "ncclCommGrow",
            "ncclPutSignal",
            "ncclSignal",
            "ncclWaitSignal",
            "ncclWinGetUserPtr",
        ],
    ),
    (Version::new(2, 29, 7), &["ncclCommMemStats", "ncclCommResume", "ncclCommSuspend"]),
    (
        Version::new(2, 31, 2),
        &[
            "ncclAllGatherConfig",
            "ncclAllReduceConfig",
            "ncclAlltoAllConfig",
            "ncclBroadcastConfig",
            "ncclGatherConfig",
            "ncclReduceConfig",
            "ncclReduceScatterConfig",
            "ncclScatterConfig",
        ],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read_as_the_library_writes_them() {
        for (code, version) in
            [(2708, "2.7.8"), (2804, "2.8.4"), (20906, "2.9.6"), (21304, "2.13.4"), (23203, "2.32.3")]
        {
            let read = Version::from_code(code).unwrap();
            assert_eq!((read.to_string().as_str(), read.code()), (version, code as u32));
        }
        assert_eq!([-1, 0, 999, 1_000_000, c_int::MAX].map(Version::from_code), [None; 5]);
        assert_eq!(Version::DECLARED.code(), crate::nccl::NCCL_VERSION_CODE);
        assert!(Version::new(2, 9, 6) > Version::new(2, 8, 4));
    }

    #[test]
    fn every_function_has_one_version() {
        let mut names: Vec<_> = Version::functions().map(|(name, _)| name).collect();
        for (name, version) in Version::functions() {
            assert_eq!(Version::since(name), Some(version), "{name}");
        }
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
        assert_eq!(Version::since("ncclAllToAll"), None);
    }

    #[test]
    fn an_address_is_an_identity_in_old_and_in_new_versions() {
        let found = [13, 14, 18, 21, 22, 32].map(|minor| Version::new(2, minor, 5).has_identity_of_address());
        assert_eq!(found, [true, false, false, false, true, true]);
    }
}
