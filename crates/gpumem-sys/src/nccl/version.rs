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

    /// The first version of NCCL that has this function; nothing for one that every version has that serves, and for those
    /// that only RCCL has. RCCL has some functions earlier.
    pub fn since(function: &str) -> Option<Self> {
        let (minor, patch) = match function {
            "ncclCommRegister" | "ncclCommDeregister" => (19, 3),
            "ncclAlltoAll" => (28, 3),
            "ncclCommRevoke" => (28, 7),
            _ => return None,
        };
        Some(Self::new(2, minor, patch))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read_as_the_library_writes_them() {
        for (code, version) in
            [(2708, "2.7.8"), (2804, "2.8.4"), (20906, "2.9.6"), (21304, "2.13.4"), (23203, "2.32.3")]
        {
            assert_eq!(Version::from_code(code).unwrap().to_string(), version);
        }
        assert_eq!([-1, 0, 999, 1_000_000, c_int::MAX].map(Version::from_code), [None; 5]);
        assert!(Version::new(2, 9, 6) > Version::new(2, 8, 4));
    }
}
