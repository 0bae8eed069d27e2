//! The changes between ROCm 5.2 and 7.2, by version.
//!
//! | what | ROCm 5 | ROCm 6 and 7 |
//! |---|---|---|
//! | `hipDeviceProp_t` | 792 bytes, filled by `hipGetDeviceProperties` | 1472 bytes, filled by `hipGetDevicePropertiesR0600`; the function without a suffix fills the old one |
//! | `hipMemoryType` | host 0, device 1, array 2, unified 3, managed 4 | unregistered 0, host 1, device 2, managed 3, array 10, unified 11 |
//! | `hipPointerGetAttributes` of ordinary memory | `hipErrorInvalidValue` | success, unregistered |
//! | `hipIpcMemLazyEnablePeerAccess` | 0 | 1 |
//! | hipRTC | in HIP's library | a library of its own; since 7 nowhere else |
//!
//! Numbers of errors, attributes, flags and copy kinds have stayed as they are.

use super::{Hip, HipLibrary, hipDeviceProp_t, hipError_t, hipMemoryType, hipPointerAttribute_t};
use crate::{MissingSymbol, functions};
use core::ffi::{CStr, c_char, c_int};

functions! {
    /// Functions of HIP that ROCm 5.2 does not have.
    HipLater {
        fn hipGetDevicePropertiesR0600(properties: *mut hipDeviceProp_tR0600, device: c_int) -> hipError_t;
    }
}

/// Properties of a device since ROCm 6, as far as they cannot be had as attributes. The rest is room.
#[allow(non_camel_case_types, non_snake_case, reason = "the names of the library")]
#[derive(Clone, Copy)]
#[repr(C)]
pub struct hipDeviceProp_tR0600 {
    /// Name of the device.
    pub name: [c_char; 256],
    rest: [u64; 113],
    /// Architecture with its features, as `gfx90a:sramecc+:xnack-`.
    pub gcnArchName: [c_char; 256],
    end: [u64; 7],
}

const _: () = {
    assert!(size_of::<hipDeviceProp_tR0600>() == 1472 && align_of::<hipDeviceProp_tR0600>() == 8);
    assert!(core::mem::offset_of!(hipDeviceProp_tR0600, gcnArchName) == 1160);
    assert!(size_of::<hipDeviceProp_t>() == 792);
    assert!(core::mem::offset_of!(hipDeviceProp_t, gcnArchName) == 396);
    assert!(size_of::<hipPointerAttribute_t>() == 32);
};

impl core::fmt::Debug for hipDeviceProp_tR0600 {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("hipDeviceProp_tR0600").finish_non_exhaustive()
    }
}

/// A call of HIP that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The library lacks the function.
    Missing(MissingSymbol),
    /// The function reports this.
    Status(hipError_t),
}

impl From<MissingSymbol> for Failure {
    fn from(missing: MissingSymbol) -> Self {
        Self::Missing(missing)
    }
}

/// Version of HIP's runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(i32);

impl Version {
    /// From the number that the runtime reports: `major * 10_000_000 + minor * 100_000 + patch`.
    pub const fn new(number: i32) -> Self {
        Self(number)
    }

    /// The version of a library. The function needs no initialisation.
    ///
    /// # Errors
    /// Returns the library's error.
    pub fn of(hip: &Hip) -> Result<Self, Failure> {
        let mut number = 0;
        // SAFETY: a place for a number.
        match unsafe { hip.hipRuntimeGetVersion(&mut number) }? {
            hipError_t::hipSuccess => Ok(Self(number)),
            status => Err(Failure::Status(status)),
        }
    }

    /// The major version, which is that of ROCm.
    pub const fn major(self) -> i32 {
        self.0 / 10_000_000
    }

    /// The minor version, which is that of ROCm.
    pub const fn minor(self) -> i32 {
        self.0 / 100_000 % 100
    }

    /// Whether enums and structures are those of ROCm 6.
    const fn is_six(self) -> bool {
        self.major() >= 6
    }

    /// The flag of `hipIpcOpenMemHandle` for peer access when it is needed.
    pub const fn ipc_lazy_peer_access(self) -> u32 {
        if self.is_six() { 1 } else { 0 }
    }
}

impl core::fmt::Display for Version {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}.{}.{}", self.major(), self.minor(), self.0 % 100_000)
    }
}

/// The memory that an address belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MemoryType {
    /// Memory that HIP does not know.
    Unregistered,
    /// Page-locked memory of the host.
    Host,
    /// Memory of a device.
    Device,
    /// An array in the sense of images.
    Array,
    /// Unified memory.
    Unified,
    /// Managed memory.
    Managed,
}

impl MemoryType {
    /// Reads the field `type` of `hipPointerAttribute_t`, or gives nothing for a number that the version does not have.
    pub const fn read(version: Version, number: hipMemoryType) -> Option<Self> {
        Some(match (version.is_six(), number.0) {
            (true, 0) => Self::Unregistered,
            (false, 0) | (true, 1) => Self::Host,
            (false, 1) | (true, 2) => Self::Device,
            (false, 2) | (true, 10) => Self::Array,
            (false, 3) | (true, 11) => Self::Unified,
            (false, 4) | (true, 3) => Self::Managed,
            _ => return None,
        })
    }
}

/// An address that HIP knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pointer {
    /// The type of the memory. Never [`MemoryType::Unregistered`].
    pub kind: MemoryType,
    /// Ordinal of the device that it was allocated or page-locked for.
    pub device: i32,
    /// The address under which that device reaches it.
    pub device_address: u64,
    /// The address under which the host reaches it, or 0.
    pub host_address: u64,
}

/// Describes an address, or gives nothing for ordinary memory.
///
/// # Errors
/// Returns the library's error.
pub fn pointer(hip: &Hip, version: Version, address: u64) -> Result<Option<Pointer>, Failure> {
    let mut found = hipPointerAttribute_t::default();
    let place = core::ptr::with_exposed_provenance(address as usize);
    // SAFETY: a place for the structure, whose layout is the same in every version; the address is only looked up.
    match unsafe { hip.hipPointerGetAttributes(&mut found, place) }? {
        hipError_t::hipSuccess => {}
        // Ordinary memory, in the words of ROCm 5.
        hipError_t::hipErrorInvalidValue => return Ok(None),
        status => return Err(Failure::Status(status)),
    }
    let kind = match MemoryType::read(version, found.memoryType) {
        // ROCm 5 reports managed memory as the type that it is made of; another attribute tells that it is managed.
        Some(_) if found.isManaged != 0 => MemoryType::Managed,
        Some(MemoryType::Unregistered) | None => return Ok(None),
        Some(kind) => kind,
    };
    Ok(Some(Pointer {
        kind,
        device: found.device,
        device_address: found.devicePointer.expose_provenance() as u64,
        host_address: found.hostPointer.expose_provenance() as u64,
    }))
}

/// Architecture of a device with its features (`gfx90a:sramecc+:xnack-`): the one property that is no attribute.
///
/// # Errors
/// Returns the library's error.
pub fn architecture(library: &HipLibrary, device: c_int) -> Result<String, Failure> {
    let mut new = hipDeviceProp_tR0600 { name: [0; 256], rest: [0; 113], gcnArchName: [0; 256], end: [0; 7] };
    // SAFETY: a place for the structure that the function fills.
    match unsafe { library.later.hipGetDevicePropertiesR0600(&mut new, device) } {
        Ok(hipError_t::hipSuccess) => return Ok(text(&new.gcnArchName)),
        Ok(status) => return Err(Failure::Status(status)),
        // An older library.
        Err(MissingSymbol(_)) => {}
    }
    let mut old = hipDeviceProp_t::default();
    // SAFETY: a place for the structure that the function fills: in every version, the one of ROCm 5.
    match unsafe { library.hip.hipGetDeviceProperties(&mut old, device) }? {
        hipError_t::hipSuccess => Ok(text(&old.gcnArchName)),
        status => Err(Failure::Status(status)),
    }
}

fn text(buffer: &[c_char]) -> String {
    let bytes: Vec<u8> = buffer.iter().map(|byte| *byte as u8).collect();
    CStr::from_bytes_until_nul(&bytes).map(|text| text.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const V5: Version = Version::new(50_221_153);
    const V6: Version = Version::new(60_443_484);
    const V7: Version = Version::new(70_253_211);

    #[test]
    fn versions_are_read_as_the_runtime_writes_them() {
        assert_eq!([V5, V6, V7].map(|version| version.to_string()), ["5.2.21153", "6.4.43484", "7.2.53211"]);
        assert_eq!([V5, V6, V7].map(Version::major), [5, 6, 7]);
        assert_eq!([V5, V6, V7].map(Version::minor), [2, 4, 2]);
        assert!(V5 < V6 && V6 < V7);
    }

    #[test]
    fn memory_types_have_the_numbers_of_their_version() {
        use MemoryType::*;
        let read = |version, numbers: &[u32]| -> Vec<_> {
            numbers.iter().map(|number| MemoryType::read(version, hipMemoryType(*number))).collect()
        };
        let old = [Some(Host), Some(Device), Some(Array), Some(Unified), Some(Managed), None];
        assert_eq!(read(V5, &[0, 1, 2, 3, 4, 5]), old);
        let new =
            [Some(Unregistered), Some(Host), Some(Device), Some(Managed), Some(Array), Some(Unified), None];
        for version in [V6, V7] {
            assert_eq!(read(version, &[0, 1, 2, 3, 10, 11, 4]), new);
        }
    }

    #[test]
    fn the_numbers_of_rocm_5_are_those_of_its_headers() {
        for (kind, number) in [
            (MemoryType::Host, hipMemoryType::hipMemoryTypeHost),
            (MemoryType::Device, hipMemoryType::hipMemoryTypeDevice),
            (MemoryType::Array, hipMemoryType::hipMemoryTypeArray),
            (MemoryType::Unified, hipMemoryType::hipMemoryTypeUnified),
        ] {
            assert_eq!(MemoryType::read(V5, number), Some(kind));
        }
        assert_eq!(V5.ipc_lazy_peer_access(), crate::hip::hipIpcMemLazyEnablePeerAccess);
        assert_eq!([V6, V7].map(Version::ipc_lazy_peer_access), [1, 1]);
    }
}
