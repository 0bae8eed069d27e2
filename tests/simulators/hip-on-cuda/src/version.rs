//! Which ROCm this library plays.

use std::{env, sync::OnceLock};

/// A major version of ROCm: the binary interface and the behaviour that go with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// 5.2, Debian 12's.
    V5,
    /// 6.4: new properties, memory types, sizes in `HIP_MEMCPY3D`.
    V6,
    /// 7.2: as 6, and the last error stays until it is asked for.
    V7,
}

impl Version {
    /// The version that `HIP_ON_CUDA_VERSION` names (5, 6 or 7; 5 if it does not), read once.
    #[must_use]
    pub fn current() -> Self {
        static VERSION: OnceLock<Version> = OnceLock::new();
        *VERSION.get_or_init(|| Self::parse(env::var("HIP_ON_CUDA_VERSION").ok().as_deref()))
    }

    fn parse(text: Option<&str>) -> Self {
        match text.map(|text| text.split('.').next().unwrap_or(text)) {
            Some("6") => Self::V6,
            Some("7") => Self::V7,
            _ => Self::V5,
        }
    }

    /// HIP's own number: `major * 10_000_000 + minor * 100_000 + patch`.
    #[must_use]
    pub fn number(self) -> i32 {
        match self {
            Self::V5 => 50_221_153,
            Self::V6 => 60_443_484,
            Self::V7 => 70_253_211,
        }
    }

    /// The version that `hiprtcVersion` returns: up to ROCm 5 a separate number, then HIP's.
    #[must_use]
    pub fn of_compiler(self) -> [i32; 2] {
        match self {
            Self::V5 => [9, 0],
            Self::V6 | Self::V7 => [self.number() / 10_000_000, self.number() / 100_000 % 100],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_its_major_number() {
        assert_eq!(Version::parse(None), Version::V5);
        assert_eq!(Version::parse(Some("6")), Version::V6);
        assert_eq!(Version::parse(Some("7.2.4")), Version::V7);
        assert_eq!(Version::parse(Some("banana")), Version::V5);
        assert_eq!(Version::V6.of_compiler(), [6, 4]);
        assert_eq!(Version::V7.of_compiler(), [7, 2]);
    }
}
