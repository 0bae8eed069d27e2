//! Kinds of memory and their properties.

/// A kind of memory. It decides whether the host and kernels can read it, and for which work the host must wait first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MemoryKind {
    /// Memory of the device. The host reaches it by copies only.
    Device,
    /// Page-locked host memory: source and destination of truly asynchronous copies.
    Pinned,
    /// Page-locked host memory that also has a device address (CUDA: mapped, HIP: coherent host memory).
    Mapped(MappedOptions),
    /// Memory that migrates between the host and the devices under one address.
    Managed(Attach),
    /// Host memory of the caller that has been page-locked by [`DriverDevice::register`](crate::DriverDevice::register).
    Registered(RegisterOptions),
}

impl MemoryKind {
    /// The kinds that are allocated, in the order of [`index`](Self::index).
    pub const ALLOCATED: [Self; 8] = [
        Self::Device,
        Self::Pinned,
        Self::Mapped(MappedOptions { portable: false, write_combined: false }),
        Self::Mapped(MappedOptions { portable: true, write_combined: false }),
        Self::Mapped(MappedOptions { portable: false, write_combined: true }),
        Self::Mapped(MappedOptions { portable: true, write_combined: true }),
        Self::Managed(Attach::Global),
        Self::Managed(Attach::Host),
    ];

    /// Returns the place of the kind in [`ALLOCATED`](Self::ALLOCATED); `None` for memory that is registered.
    #[inline]
    pub fn index(self) -> Option<usize> {
        Some(match self {
            Self::Device => 0,
            Self::Pinned => 1,
            Self::Mapped(MappedOptions { portable, write_combined }) => {
                2 + usize::from(portable) + 2 * usize::from(write_combined)
            }
            Self::Managed(Attach::Global) => 6,
            Self::Managed(Attach::Host) => 7,
            Self::Registered(_) => return None,
        })
    }

    /// Whether the host can read and write the memory through an address.
    #[inline]
    pub fn is_host_accessible(self) -> bool {
        self != MemoryKind::Device
    }

    /// Whether a kernel can use the memory.
    pub fn is_device_accessible(self) -> bool {
        match self {
            MemoryKind::Pinned => false,
            MemoryKind::Registered(options) => options.mapped,
            _ => true,
        }
    }

    /// The word for the kind in messages and reports.
    pub fn name(self) -> &'static str {
        match self {
            MemoryKind::Device => "device",
            MemoryKind::Pinned => "pinned",
            MemoryKind::Mapped(_) => "mapped",
            MemoryKind::Managed(_) => "managed",
            MemoryKind::Registered(_) => "registered",
        }
    }
}

/// Options of mapped memory, as Numba's `mapped_array(portable, wc)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct MappedOptions {
    /// Usable from every device, not only the one that allocated it.
    pub portable: bool,
    /// Write-combined: fast host writes and device reads, slow host reads. A backend without it *must* ignore it and
    /// say so in [`Capabilities::write_combined`](crate::Capabilities::write_combined).
    pub write_combined: bool,
}

/// Which side managed memory is attached to at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Attach {
    /// Any stream of any device may use it.
    #[default]
    Global,
    /// The host uses it first; a device without concurrent access may not.
    Host,
}

/// How the host's memory is page-locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RegisterOptions {
    /// Ask for a device address, so that kernels can use the memory.
    pub mapped: bool,
    /// Page-locked for every device.
    pub portable: bool,
    /// The memory is only read by the device. The caller's array may then be read-only.
    pub read_only: bool,
}

/// What to allocate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllocationRequest {
    /// Length in bytes, at least 1.
    pub bytes: usize,
    /// Alignment in bytes, a power of two.
    pub align: usize,
    /// Kind of memory. Never [`MemoryKind::Registered`].
    pub kind: MemoryKind,
}

/// Free and total memory of a device in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryInfo {
    /// Bytes that the driver says are free. Other processes may take them at any time.
    pub free: usize,
    /// All bytes of the device.
    pub total: usize,
}

/// A place that managed memory can be moved to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Location {
    /// The memory of the host.
    Host,
    /// The memory of the device.
    Device,
}

/// A hint about managed memory (CUDA: `cuMemAdvise`, HIP: `hipMemAdvise`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Advice {
    /// Mostly read: copies may be kept in several places.
    ReadMostly(bool),
    /// Prefer to keep the pages there; `None` takes the wish back.
    PreferredLocation(Option<Location>),
    /// That side will access the pages: map them there without a fault. The flag takes the hint back.
    AccessedBy(Location, bool),
}

/// How the host may look at memory that a device can use as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HostAccess {
    /// Reading: the device's writes must be done.
    Read,
    /// Writing: the device's reads and writes must be done.
    Write,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_allocated_kind_stands_at_its_index() {
        for (index, kind) in MemoryKind::ALLOCATED.into_iter().enumerate() {
            assert_eq!(kind.index(), Some(index), "{kind:?}");
        }
        assert_eq!(MemoryKind::Registered(RegisterOptions::default()).index(), None);
    }
}
