//! Selectors, descriptions and capabilities of devices.

use crate::{AllocationRequest, CollectiveLibrary, Error, ErrorKind, MemoryInfo, MemoryKind, Result};
use std::fmt;

/// The place of a device on the PCI bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PciAddress {
    /// PCI domain.
    pub domain: u32,
    /// Bus.
    pub bus: u8,
    /// Device (slot).
    pub device: u8,
    /// Function; 0 for every GPU known to us.
    pub function: u8,
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}:{:02x}:{:02x}.{:x}", self.domain, self.bus, self.device, self.function)
    }
}

impl std::str::FromStr for PciAddress {
    type Err = ();

    fn from_str(text: &str) -> std::result::Result<Self, ()> {
        let (rest, function) = text.rsplit_once('.').ok_or(())?;
        let (rest, device) = rest.rsplit_once(':').ok_or(())?;
        let (domain, bus) = rest.rsplit_once(':').unwrap_or(("0", rest));
        Ok(Self {
            domain: u32::from_str_radix(domain, 16).map_err(drop)?,
            bus: u8::from_str_radix(bus, 16).map_err(drop)?,
            device: u8::from_str_radix(device, 16).map_err(drop)?,
            function: u8::from_str_radix(function, 16).map_err(drop)?,
        })
    }
}

/// Which device of a backend.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DeviceId {
    /// By position in the driver's list, from 0.
    Ordinal(usize),
    /// By its unique identifier, 16 bytes.
    Uuid([u8; 16]),
    /// By its place on the PCI bus.
    Pci(PciAddress),
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceId::Ordinal(ordinal) => write!(f, "{ordinal}"),
            DeviceId::Pci(address) => write!(f, "{address}"),
            DeviceId::Uuid(bytes) => {
                f.write_str("uuid-")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
    }
}

/// Selects a device by backend and index, UUID or PCI address.
///
/// As text: `cuda:1`, `roc:0`, `host`, `cuda:0000:3b:00.0` (PCI), `cuda:uuid-` and 32 hexadecimal digits (dashes
/// allowed, also NVIDIA's `GPU-` form). A name without a position means position 0.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DeviceSelector {
    /// Name of the backend.
    pub backend: String,
    /// Which of its devices.
    pub which: DeviceId,
}

impl DeviceSelector {
    /// The device at that position of the backend.
    pub fn ordinal(backend: &str, ordinal: usize) -> Self {
        Self { backend: backend.to_owned(), which: DeviceId::Ordinal(ordinal) }
    }

    /// The position of the wanted device in a list, so that every backend chooses by the same rule.
    ///
    /// # Errors
    /// Returns [`ErrorKind::NoSuchDevice`] if none fits, with the number of devices there are, and
    /// [`ErrorKind::BackendNotEnabled`] if the selector names another backend than `name`.
    pub fn choose(&self, name: &'static str, devices: &[DeviceInfo]) -> Result<usize> {
        if self.backend != name {
            let kind =
                ErrorKind::BackendNotEnabled { wanted: self.backend.clone(), enabled: name.to_owned() };
            return Err(Error::new(name, "open", kind));
        }
        let found = match &self.which {
            DeviceId::Ordinal(ordinal) => (*ordinal < devices.len()).then_some(*ordinal),
            DeviceId::Uuid(uuid) => devices.iter().position(|device| device.uuid == Some(*uuid)),
            DeviceId::Pci(pci) => devices.iter().position(|device| device.pci == Some(*pci)),
        };
        found.ok_or_else(|| {
            Error::new(
                name,
                "open",
                ErrorKind::NoSuchDevice { wanted: self.to_string(), found: devices.len() },
            )
        })
    }
}

impl fmt::Display for DeviceSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.backend, self.which)
    }
}

impl std::str::FromStr for DeviceSelector {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let bad = |why| Error::new("", "open", ErrorKind::InvalidSelector { text: text.to_owned(), why });
        let (backend, rest) = text.trim().split_once(':').unwrap_or((text.trim(), "0"));
        if backend.is_empty() {
            return Err(bad("the name of a backend is missing"));
        }
        let backend = backend.to_ascii_lowercase();
        let lower = rest.to_ascii_lowercase();
        let which = if let Some(digits) = lower.strip_prefix("uuid-").or_else(|| lower.strip_prefix("gpu-")) {
            DeviceId::Uuid(parse_uuid(digits).ok_or_else(|| bad("a UUID has 32 hexadecimal digits"))?)
        } else if let Ok(ordinal) = rest.parse() {
            DeviceId::Ordinal(ordinal)
        } else if let Ok(pci) = rest.parse() {
            DeviceId::Pci(pci)
        } else {
            return Err(bad("the part after the colon must be a position, a PCI address or a UUID"));
        };
        Ok(Self { backend, which })
    }
}

fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b'-').collect();
    if digits.len() != 32 {
        return None;
    }
    let mut uuid = [0; 16];
    for (byte, pair) in uuid.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(uuid)
}

/// Where memory belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AddressRange {
    /// Position of the device in the backend's list.
    pub ordinal: usize,
    /// End of the range that is known to belong to the same device (exclusive). At least one more than the queried
    /// address; some drivers tell no more.
    pub end: u64,
}

/// Facts about a device that are known without using it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Name of the backend.
    pub backend: &'static str,
    /// Position in the driver's list.
    pub ordinal: usize,
    /// The device's own name.
    pub name: String,
    /// Unique identifier, where the driver has one.
    pub uuid: Option<[u8; 16]>,
    /// Place on the PCI bus, where it has one.
    pub pci: Option<PciAddress>,
    /// Bytes of memory.
    pub total_memory: usize,
    /// Architecture in the compiler's words (`sm_90`, `gfx90a`), or that of the processor.
    pub architecture: String,
}

impl fmt::Display for DeviceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { backend, ordinal, name, architecture, total_memory, .. } = self;
        let gibibytes = *total_memory as f64 / (1u64 << 30) as f64;
        write!(f, "{backend}:{ordinal} ({name}, {architecture}, {gibibytes:.1} GiB)")
    }
}

impl From<&DeviceInfo> for DeviceSelector {
    fn from(info: &DeviceInfo) -> Self {
        Self::ordinal(info.backend, info.ordinal)
    }
}

impl From<&DeviceSelector> for DeviceSelector {
    fn from(selector: &DeviceSelector) -> Self {
        selector.clone()
    }
}

/// A kind of memory as DLPack numbers it: the `DLDevice` of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DlpackDevice {
    /// `DLDeviceType`.
    pub device_type: i32,
    /// Position of the device among those of its type.
    pub device_id: i32,
}

impl DlpackDevice {
    /// `kDLCPU`: ordinary memory of the host.
    pub const CPU: i32 = 1;
    /// `kDLCUDA`: memory of a CUDA device.
    pub const CUDA: i32 = 2;
    /// `kDLCUDAHost`: host memory that CUDA has page-locked.
    pub const CUDA_HOST: i32 = 3;
    /// `kDLROCM`: memory of a ROCm device.
    pub const ROCM: i32 = 10;
    /// `kDLROCMHost`: host memory that HIP has page-locked.
    pub const ROCM_HOST: i32 = 11;
    /// `kDLCUDAManaged`: memory that CUDA migrates.
    pub const CUDA_MANAGED: i32 = 13;

    /// A device by its numbers.
    pub const fn new(device_type: i32, device_id: i32) -> Self {
        Self { device_type, device_id }
    }
}

/// What a device can do. Values of a device, not constants of a backend.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// Has mapped memory.
    pub mapped: bool,
    /// Honours [`MappedOptions::write_combined`](crate::MappedOptions::write_combined).
    pub write_combined: bool,
    /// Has managed memory. *Must* be false if the host ends the process by touching any of it while the device works: its views
    /// of arrays do not keep work on other memory from being enqueued.
    pub managed: bool,
    /// The host may touch managed memory while the device works. Without it the host must quiesce the device first.
    pub concurrent_managed_access: bool,
    /// Can page-lock memory of the caller.
    pub register: bool,
    /// The driver goes on using the pages that memory had when it was registered, also where the system has mapped other pages
    /// since.
    pub keeps_registered_pages: bool,
    /// Copies read and write the caller's ordinary memory directly and at full speed, so that staging through
    /// page-locked memory gains nothing. True on the host backend.
    pub pageable_direct: bool,
    /// Memory that was released may count as free some time afterwards only, so that a request for it is worth repeating.
    pub frees_late: bool,
    /// Has [`Stream::copy_strided`](crate::Stream::copy_strided).
    pub strided_copy: bool,
    /// Has [`Stream::enqueue_future`](crate::Stream::enqueue_future), and the threads of the process read and write
    /// device memory at its address. True on the host backend.
    pub futures: bool,
    /// The library of collective operations that takes the device's [`RawStream`](crate::RawStream)s and addresses, and that
    /// works on the device that [`DriverDevice::with_current`](crate::DriverDevice::with_current) sets.
    pub collective_library: Option<CollectiveLibrary>,
    /// Kernels of the device read and write [`Pinned`](crate::MemoryKind::Pinned) memory of its own, as they do mapped memory, at
    /// [`DeviceBuffer::address`](crate::DeviceBuffer::address).
    pub pinned_by_kernels: bool,
    /// The device goes on after work has failed (a fault of a kernel, say) instead of being lost, and the backend keeps
    /// failed work from being built upon: it notes in [`POISONED`](crate::POISONED) the bytes that such work was to
    /// write, and does not run work that reads them.
    pub survives_faults: bool,
    /// Lowest and highest priority of a stream: `[least, greatest]`, where greatest is the smaller number.
    pub stream_priorities: [i32; 2],
    /// Work-items in a wavefront (warp).
    pub wave_size: u32,
    /// Parts of the device that run groups side by side: multiprocessors of CUDA, compute units of AMD, hardware threads that the
    /// process may use on the host. A launch of a few times as many groups occupies the whole device.
    pub compute_units: u32,
    /// Most work-items of a group.
    pub max_group_size: u32,
    /// Most work-items of a group along x, y and z.
    pub max_group_dims: [u32; 3],
    /// Most groups of a launch along x, y and z.
    pub max_grid_dims: [u32; 3],
    /// Bytes of shared memory of a group.
    pub shared_memory: usize,
    /// Bytes of constant memory.
    pub constant_memory: usize,
    /// Alignment in bytes that every allocation has at least.
    pub allocation_alignment: usize,
}

impl Capabilities {
    /// A device that can do nothing beyond device memory and copies; a backend sets the fields that it supports.
    pub fn minimal() -> Self {
        Self {
            mapped: false,
            write_combined: false,
            managed: false,
            concurrent_managed_access: false,
            register: false,
            keeps_registered_pages: false,
            pageable_direct: false,
            frees_late: false,
            strided_copy: false,
            futures: false,
            collective_library: None,
            pinned_by_kernels: false,
            survives_faults: false,
            stream_priorities: [0, 0],
            wave_size: 32,
            compute_units: 1,
            max_group_size: 256,
            max_group_dims: [256, 256, 64],
            max_grid_dims: [i32::MAX as u32, 65_535, 65_535],
            shared_memory: 0,
            constant_memory: 0,
            allocation_alignment: 16,
        }
    }
}

impl AllocationRequest {
    /// Checks that a device of `backend` has such memory.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Unsupported`] if it has not.
    pub fn check(&self, backend: &'static str, capabilities: &Capabilities) -> Result<()> {
        let Capabilities { mapped, managed, .. } = *capabilities;
        let what = match self.kind {
            MemoryKind::Device | MemoryKind::Pinned => return Ok(()),
            MemoryKind::Mapped(_) if mapped => return Ok(()),
            MemoryKind::Managed(_) if managed => return Ok(()),
            MemoryKind::Mapped(_) => "mapped memory",
            MemoryKind::Managed(_) => "managed memory",
            MemoryKind::Registered(_) => "allocating memory of this kind",
        };
        Err(Error::new(backend, "allocate", ErrorKind::Unsupported { what }))
    }

    /// Returns the error of a device of `backend` that has no such memory left, and has so much in all, if that is known.
    pub fn out_of_memory(&self, backend: &'static str, memory: Option<MemoryInfo>) -> Error {
        let kind = ErrorKind::out_of_memory(self.bytes, self.kind.name(), memory.unwrap_or_default());
        Error::new(backend, "allocate", kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_read_and_written() {
        for text in ["cuda:1", "host:0", "roc:0000:3b:00.0"] {
            assert_eq!(text.parse::<DeviceSelector>().unwrap().to_string(), text);
        }
        assert_eq!("host".parse::<DeviceSelector>().unwrap(), DeviceSelector::ordinal("host", 0));
        let uuid = "cuda:GPU-00112233-4455-6677-8899-aabbccddeeff".parse::<DeviceSelector>().unwrap();
        assert_eq!(uuid.to_string(), "cuda:uuid-00112233445566778899aabbccddeeff");
        for text in ["", ":1", "cuda:", "cuda:x", "cuda:-1", "cuda:uuid-12", "cuda:1:2"] {
            assert!(text.parse::<DeviceSelector>().is_err(), "{text}");
        }
    }

    #[test]
    fn listed_devices_can_be_opened() {
        let info = DeviceInfo {
            backend: "cuda",
            ordinal: 1,
            name: "NVIDIA H100".to_owned(),
            uuid: None,
            pci: None,
            total_memory: 79 << 30,
            architecture: "sm_90".to_owned(),
        };
        assert_eq!(info.to_string(), "cuda:1 (NVIDIA H100, sm_90, 79.0 GiB)");
        assert_eq!(DeviceSelector::from(&info), DeviceSelector::ordinal("cuda", 1));
    }
}
