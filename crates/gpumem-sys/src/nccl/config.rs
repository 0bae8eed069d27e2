//! The configuration of a communicator, which has grown with NCCL.

use super::{Failure, NCCL_API_MAGIC, Version, ncclConfig_t};
use core::{ffi::c_int, mem::offset_of, ptr::null};
use std::ffi::CString;

/// The value of a field that is not set (`NCCL_CONFIG_UNDEF_INT`).
pub const UNSET: c_int = c_int::MIN;

macro_rules! fields {
    ($($(#[$meta:meta])* $variant:ident $field:ident ($major:literal, $minor:literal, $patch:literal))*) => {
        /// A number in the configuration.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Field {
            $($(#[$meta])* $variant,)*
        }

        impl Field {
            /// All of them, in the order in which they were added.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Its name in `ncclConfig_t`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => stringify!($field),)*
                }
            }

            /// The first version that has it.
            pub const fn since(self) -> Version {
                match self {
                    $(Self::$variant => Version::new($major, $minor, $patch),)*
                }
            }

            const fn offset(self) -> usize {
                match self {
                    $(Self::$variant => offset_of!(ncclConfig_t, $field),)*
                }
            }

            fn of(self, raw: &mut ncclConfig_t) -> &mut c_int {
                match self {
                    $(Self::$variant => &mut raw.$field,)*
                }
            }
        }
    };
}

fields! {
    /// Whether calls wait until they are done: 0 or 1.
    Blocking blocking (2, 14, 3)
    /// Blocks of a cluster of a kernel.
    CgaClusterSize cgaClusterSize (2, 17, 1)
    /// The fewest blocks of a kernel.
    MinCtas minCTAs (2, 17, 1)
    /// The most blocks of a kernel.
    MaxCtas maxCTAs (2, 17, 1)
    /// Whether a split communicator shares resources with the one that it came from.
    SplitShare splitShare (2, 18, 1)
    /// The class of network traffic.
    TrafficClass trafficClass (2, 26, 2)
    /// Whether in-network reductions are used.
    CollnetEnable collnetEnable (2, 27, 3)
    /// Which resources kernels spare (`NCCL_CTA_POLICY_..`).
    CtaPolicy CTAPolicy (2, 27, 3)
    /// Whether a shrunk communicator shares resources with the one that it came from.
    ShrinkShare shrinkShare (2, 27, 3)
    /// Blocks of a kernel that uses NVLink's multicast.
    NvlsCtas nvlsCTAs (2, 27, 3)
    /// Channels for each peer of the network.
    ChannelsPerNetPeer nChannelsPerNetPeer (2, 28, 3)
    /// Whether scheduling prefers NVLink.
    NvlinkCentricScheduling nvlinkCentricSched (2, 28, 3)
    /// How calls and captured graphs are mixed.
    GraphUsageMode graphUsageMode (2, 29, 2)
    /// Contexts for access to remote memory.
    RmaContexts numRmaCtx (2, 29, 2)
    /// Peers with a direct connection, at most.
    MaxPeers maxP2pPeers (2, 30, 3)
    /// How captured graphs are ordered with streams.
    GraphStreamOrdering graphStreamOrdering (2, 30, 7)
    /// Whether communicators of one device are ordered as the host calls them: 0 or 1.
    LaunchOrderImplicit launchOrderImplicit (2, 31, 2)
    /// Signals for access to remote memory.
    RmaSignals numRmaSig (2, 31, 2)
    /// Whether access to remote memory is prepared at once.
    RmaEagerInit rmaEagerInit (2, 31, 2)
    /// The mode of counted transfers (`ncclHostCftMode_t`).
    HostCftMode hostCftMode (2, 31, 2)
    /// Which uses of NVLink's multicast are off (`ncclNvlsHostMode_t`).
    NvlsHostMode nvlsHostMode (2, 32, 3)
}

/// The configuration of a communicator as one version of the library knows it: as large as there, and with that
/// version's number. A field that the version lacks cannot be set; the library would ignore it without a word.
#[derive(Debug)]
pub struct Config {
    raw: ncclConfig_t,
    version: Version,
    /// The text that `commName` points to.
    name: Option<CString>,
}

impl Config {
    /// The first version with names of communicators.
    pub const NAMES: Version = Version::new(2, 27, 3);

    /// A configuration in which nothing is set.
    ///
    /// # Errors
    /// Returns [`Failure::Unsupported`] if the version has no configuration.
    pub fn new(version: Version) -> Result<Self, Failure> {
        needs("ncclConfig_t", version, Version::CONFIG)?;
        let raw = ncclConfig_t {
            size: size(version),
            magic: NCCL_API_MAGIC,
            version: version.min(Version::DECLARED).code(),
            netName: null(),
            commName: null(),
            blocking: UNSET,
            cgaClusterSize: UNSET,
            minCTAs: UNSET,
            maxCTAs: UNSET,
            splitShare: UNSET,
            trafficClass: UNSET,
            collnetEnable: UNSET,
            CTAPolicy: UNSET,
            shrinkShare: UNSET,
            nvlsCTAs: UNSET,
            nChannelsPerNetPeer: UNSET,
            nvlinkCentricSched: UNSET,
            graphUsageMode: UNSET,
            numRmaCtx: UNSET,
            maxP2pPeers: UNSET,
            graphStreamOrdering: UNSET,
            launchOrderImplicit: UNSET,
            numRmaSig: UNSET,
            rmaEagerInit: UNSET,
            hostCftMode: UNSET,
            nvlsHostMode: UNSET,
        };
        Ok(Self { raw, version, name: None })
    }

    /// Sets a field.
    ///
    /// # Errors
    /// Returns [`Failure::Unsupported`] if the version lacks the field.
    pub fn set(&mut self, field: Field, value: c_int) -> Result<(), Failure> {
        needs(field.name(), self.version, field.since())?;
        *field.of(&mut self.raw) = value;
        Ok(())
    }

    /// Sets the name by which the library's messages call the communicator.
    ///
    /// # Errors
    /// Returns [`Failure::Unsupported`] if the version has no names.
    pub fn set_name(&mut self, name: CString) -> Result<(), Failure> {
        needs("commName", self.version, Self::NAMES)?;
        self.name = Some(name);
        Ok(())
    }

    /// Returns the pointer for the library's functions. It is valid while this configuration is neither moved, changed
    /// nor dropped.
    pub fn as_mut_ptr(&mut self) -> *mut ncclConfig_t {
        self.raw.commName = self.name.as_ref().map_or(null(), |name| name.as_ptr());
        &mut self.raw
    }
}

fn needs(what: &'static str, version: Version, since: Version) -> Result<(), Failure> {
    if version < since { Err(Failure::Unsupported { what, version, since: Some(since) }) } else { Ok(()) }
}

/// How large `ncclConfig_t` is in a version: to the first field that the version lacks. Names came together with numbers.
fn size(version: Version) -> usize {
    let lacking = Field::ALL.iter().filter(|field| version < field.since());
    let mut end = lacking.map(|field| field.offset()).min().unwrap_or(size_of::<ncclConfig_t>());
    if version < Config::NAMES {
        end = end.min(offset_of!(ncclConfig_t, commName));
    }
    if version < Version::new(2, 17, 1) {
        end = end.min(offset_of!(ncclConfig_t, netName));
    }
    end.next_multiple_of(align_of::<ncclConfig_t>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(minor: u16, patch: u16) -> Config {
        Config::new(Version::new(2, minor, patch)).unwrap()
    }

    /// `sizeof(ncclConfig_t)` in the headers of NVIDIA's packages.
    #[test]
    #[cfg(target_pointer_width = "64")]
    fn the_size_is_that_of_the_version() {
        for (minor, patch, size) in SIZES {
            assert_eq!(with(*minor, *patch).raw.size, *size, "2.{minor}.{patch}");
        }
        assert_eq!(
            with(99, 0).raw.size,
            size_of::<ncclConfig_t>(),
            "a newer one has at least what is declared"
        );
    }

    #[cfg(target_pointer_width = "64")]
    const SIZES: &[(u16, u16, usize)] = &[
        (17, 1, 40),
        (18, 3, 48),
        (19, 3, 48),
        (20, 5, 48),
        (21, 5, 48),
        (22, 3, 48),
        (23, 4, 48),
        (24, 3, 48),
        (25, 1, 48),
        (26, 2, 48),
        (26, 5, 48),
        (27, 3, 72),
        (28, 3, 80),
        (28, 7, 80),
        (28, 9, 80),
        (29, 2, 88),
        (29, 3, 88),
        (29, 7, 88),
        (30, 3, 96),
        (30, 4, 96),
        (30, 7, 96),
        (31, 2, 112),
        (32, 3, 120),
    ];

    #[test]
    fn the_version_is_at_most_the_declared_one() {
        assert_eq!(
            (with(18, 3).raw.version, with(32, 3).raw.version, with(40, 1).raw.version),
            (21803, 23203, 23203)
        );
    }

    #[test]
    fn a_field_that_the_version_lacks_is_refused() {
        for field in Field::ALL {
            let since = field.since();
            let mut config = Config::new(since).unwrap();
            config.set(*field, 7).unwrap();
            assert_eq!(*field.of(&mut config.raw), 7, "{field:?}");
            if *field == Field::Blocking {
                continue;
            }
            let before = Version::new(2, since.minor() - 1, 0);
            let mut config = Config::new(before.max(Version::CONFIG)).unwrap();
            let refused = config.set(*field, 7).unwrap_err();
            assert_eq!(
                refused,
                Failure::Unsupported { what: field.name(), version: config.version, since: Some(since) }
            );
            assert_eq!(*field.of(&mut config.raw), UNSET);
        }
    }

    #[test]
    fn a_library_without_configuration_is_an_error() {
        let version = Version::new(2, 13, 4);
        let refused = Config::new(version).unwrap_err();
        assert_eq!(
            refused,
            Failure::Unsupported { what: "ncclConfig_t", version, since: Some(Version::CONFIG) }
        );
        assert_eq!(refused.to_string(), "ncclConfig_t is missing in 2.13.4; NCCL has it since 2.14.3");
    }

    #[test]
    fn the_name_lives_as_long_as_the_configuration() {
        let mut config = with(27, 3);
        config.set_name(c"rows".to_owned()).unwrap();
        let mut moved = Box::new(config);
        // SAFETY: the configuration is alive, and holds the name.
        let name = unsafe { core::ffi::CStr::from_ptr((*moved.as_mut_ptr()).commName) };
        assert_eq!(name, c"rows");
        assert!(with(26, 5).set_name(c"rows".to_owned()).is_err());
    }
}
