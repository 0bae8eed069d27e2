//! Allocates, page-locks and frees memory.

use crate::{
    NAME,
    device::{Held, RocDevice},
    error::Status,
    provenance::{Provenance, give_back},
};
use gpumem_core::{
    AllocationRequest, Attach, Capabilities, DeviceBuffer, Error, ErrorKind, MappedOptions, MemoryInfo,
    MemoryKind, RegisterOptions, Result,
};
use gpumem_sys::hip::{
    hipDeviceMallocFinegrained, hipHostMallocCoherent, hipHostMallocMapped, hipHostMallocNonCoherent,
    hipHostMallocPortable, hipHostMallocWriteCombined, hipHostRegisterMapped, hipHostRegisterPortable,
    hipMemAttachGlobal, hipMemAttachHost,
};
use std::{
    ffi::c_void,
    ptr::{NonNull, null_mut},
};

/// A block of memory that an AMD GPU can use: allocated, registered, opened from another process, or another library's.
#[derive(Debug)]
pub struct RocBuffer {
    address: u64,
    host: Option<NonNull<u8>>,
    bytes: usize,
    kind: MemoryKind,
    origin: Provenance,
    generation: u64,
}

/// Which caches may keep memory while a kernel runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Grain {
    /// Writes are visible to others when a kernel ends, or at the latest when the stream has been waited for. Faster.
    Coarse,
    /// Writes and atomics are visible to the host and to other devices while the kernel runs.
    Fine,
}

impl Grain {
    /// The grain of memory of which nothing is said: host arrays that kernels see are fine-grained, as their name
    /// promises in HIP and HSA; everything else is not.
    pub(crate) fn usual(kind: MemoryKind) -> Self {
        match kind {
            MemoryKind::Mapped(_) => Self::Fine,
            _ => Self::Coarse,
        }
    }
}

// SAFETY: a buffer describes memory and never touches it; addresses mean the same on every thread.
unsafe impl Send for RocBuffer {}
// SAFETY: as above; nothing in it changes.
unsafe impl Sync for RocBuffer {}

// SAFETY: the addresses and the length are the driver's, and do not change.
unsafe impl DeviceBuffer for RocBuffer {
    fn address(&self) -> u64 {
        self.address
    }

    fn host_address(&self) -> Option<NonNull<u8>> {
        self.host
    }

    fn len(&self) -> usize {
        self.bytes
    }

    fn kind(&self) -> MemoryKind {
        self.kind
    }
}

/// The parts of a description beside its addresses.
pub(crate) struct Found {
    pub(crate) address: u64,
    pub(crate) host: Option<NonNull<u8>>,
    pub(crate) bytes: usize,
    pub(crate) kind: MemoryKind,
    pub(crate) origin: Provenance,
}

impl RocBuffer {
    /// Takes ownership of memory: [`give_back`](Self::give_back) or a reset of the device frees it.
    pub(crate) fn take(device: &RocDevice, found: Found) -> Self {
        let Found { address, host, bytes, kind, origin } = found;
        if origin != Provenance::Foreign {
            device.hold(Held::Memory(origin));
        }
        Self { address, host, bytes, kind, origin, generation: device.generation() }
    }

    /// # Safety
    /// As for [`DriverDevice::allocate`](gpumem_core::DriverDevice::allocate).
    pub(crate) unsafe fn allocate(
        device: &RocDevice,
        request: &AllocationRequest,
        grain: Grain,
    ) -> Result<Self> {
        request.check(NAME, &device.inner().capabilities)?;
        let AllocationRequest { bytes, align, .. } = *request;
        let mut buffer = Self::obtain(device, request, grain, bytes)?;
        if !buffer.address.is_multiple_of(align as u64) {
            // More than HIP promises: take enough to find an aligned place inside.
            let _ = buffer.give_back(device);
            let padded = bytes.checked_add(align - 1).ok_or_else(|| request.out_of_memory(NAME, None))?;
            buffer = Self::obtain(device, request, grain, padded)?;
            let offset = buffer.address.next_multiple_of(align as u64) - buffer.address;
            buffer.address += offset;
            // SAFETY: `offset` is less than `align`, so the place is within the padded block.
            buffer.host = buffer.host.map(|host| unsafe { host.add(offset as usize) });
            buffer.bytes = bytes;
        }
        if let Some(host) = buffer.host {
            // Blocks that were used before are given out again. Managed memory is the host's to write here even
            // without concurrent access, because AMD's driver then keeps it in host memory.
            // SAFETY: the memory is ours alone, `bytes` long and writable by the host.
            unsafe { host.write_bytes(0, bytes) };
        }
        Ok(buffer)
    }

    fn obtain(device: &RocDevice, request: &AllocationRequest, grain: Grain, bytes: usize) -> Result<Self> {
        let (hip, kind) = (device.hip(), request.kind);
        let mut place: *mut c_void = null_mut();
        let operation = match (kind, grain) {
            (MemoryKind::Device, Grain::Coarse) => "hipMalloc",
            (MemoryKind::Device, Grain::Fine) => "hipExtMallocWithFlags",
            (MemoryKind::Managed(_), _) => "hipMallocManaged",
            _ => "hipHostMalloc",
        };
        let _current = device.enter(operation)?;
        // SAFETY: each is given a place for an address; the device is current.
        let status = Status::from(unsafe {
            match (kind, grain) {
                (MemoryKind::Device, Grain::Coarse) => hip.hipMalloc(&mut place, bytes),
                (MemoryKind::Device, Grain::Fine) => {
                    hip.hipExtMallocWithFlags(&mut place, bytes, hipDeviceMallocFinegrained)
                }
                (MemoryKind::Managed(Attach::Global), _) => {
                    hip.hipMallocManaged(&mut place, bytes, hipMemAttachGlobal)
                }
                (MemoryKind::Managed(Attach::Host), _) => {
                    hip.hipMallocManaged(&mut place, bytes, hipMemAttachHost)
                }
                (MemoryKind::Mapped(options), grain) => {
                    hip.hipHostMalloc(&mut place, bytes, mapped_flags(options, grain))
                }
                // Nothing but copies uses it, so that no cache need be kept from it.
                _ => {
                    let flags = hipHostMallocPortable | hipHostMallocNonCoherent;
                    hip.hipHostMalloc(&mut place, bytes, flags)
                }
            }
        });
        let on_host = matches!(kind, MemoryKind::Pinned | MemoryKind::Mapped(_));
        if is_out_of_memory(device, status, on_host, bytes) {
            device.forget_last_error();
            let memory = if on_host { None } else { device.memory().ok() };
            return Err(request.out_of_memory(NAME, memory));
        }
        device.check(status, operation)?;
        let Some(place) = NonNull::new(place.cast::<u8>()) else {
            return Err(Status::INVALID_VALUE.error(operation));
        };
        let number = place.as_ptr().expose_provenance();
        let (host, origin) = match kind {
            MemoryKind::Device => (None, Provenance::Device(number as u64)),
            MemoryKind::Managed(_) => (Some(place), Provenance::Device(number as u64)),
            _ => (Some(place), Provenance::PageLocked(number)),
        };
        // Owned from here on, so that a failure below gives it back.
        let mut buffer = Self::take(device, Found { address: number as u64, host, bytes, kind, origin });
        if let MemoryKind::Mapped(_) = kind
            && let Err(error) = device_address(device, place).map(|address| buffer.address = address)
        {
            let _ = buffer.give_back(device);
            return Err(error);
        }
        Ok(buffer)
    }

    /// # Safety
    /// As for [`DriverDevice::register`](gpumem_core::DriverDevice::register).
    pub(crate) unsafe fn register(
        device: &RocDevice,
        host: NonNull<u8>,
        bytes: usize,
        options: RegisterOptions,
    ) -> Result<Self> {
        const OPERATION: &str = "hipHostRegister";
        let Capabilities { register, mapped, .. } = device.inner().capabilities;
        if !register || (options.mapped && !mapped) {
            let what = if register { "mapped memory" } else { "page-locking memory of the caller" };
            return Err(Error::new(NAME, OPERATION, ErrorKind::Unsupported { what }));
        }
        // AMD's is mapped and portable always; a HIP on another driver takes the flags as they are.
        let mut flags = if options.mapped { hipHostRegisterMapped } else { 0 };
        if options.portable {
            flags |= hipHostRegisterPortable;
        }
        const ALREADY: &str = "part of it is page-locked already";
        let _current = device.enter(OPERATION)?;
        // Not every version refuses memory that is registered already, and unlocking it twice ends the process.
        let ends = [host.as_ptr(), host.as_ptr().wrapping_add(bytes.saturating_sub(1))];
        if ends.into_iter().any(|end| is_known(device, end)) {
            return Err(Error::new(NAME, OPERATION, ErrorKind::Registration { why: ALREADY }));
        }
        // SAFETY: the caller's memory is valid until it is unregistered; the device is current.
        let status = unsafe { device.hip().hipHostRegister(host.as_ptr().cast::<c_void>(), bytes, flags) };
        let kind = match Status::from(status) {
            Status::HOST_MEMORY_ALREADY_REGISTERED => Some(ErrorKind::Registration { why: ALREADY }),
            Status::INVALID_VALUE => {
                Some(ErrorKind::Registration { why: "HIP does not take this kind of memory" })
            }
            Status::OUT_OF_MEMORY => {
                Some(ErrorKind::out_of_memory(bytes, "registered", MemoryInfo::default()))
            }
            status => device.check(status, OPERATION).map(|()| None)?,
        };
        if let Some(kind) = kind {
            device.forget_last_error();
            return Err(Error::new(NAME, OPERATION, kind));
        }
        let number = host.as_ptr().expose_provenance();
        let found = Found {
            address: number as u64,
            host: Some(host),
            bytes,
            kind: MemoryKind::Registered(options),
            origin: Provenance::Registered(number),
        };
        let mut buffer = Self::take(device, found);
        // Often another address than the host's: asked for, never assumed.
        if options.mapped
            && let Err(error) = device_address(device, host).map(|address| buffer.address = address)
        {
            let _ = buffer.give_back(device);
            return Err(error);
        }
        Ok(buffer)
    }

    /// Frees the memory. On a lost device it stays as it is; a reset has freed it already.
    pub(crate) fn give_back(&self, device: &RocDevice) -> Result<()> {
        let operation = match self.origin {
            Provenance::Device(_) => "hipFree",
            Provenance::PageLocked(_) => "hipHostFree",
            Provenance::Registered(_) => "hipHostUnregister",
            Provenance::Imported(_) => "hipIpcCloseMemHandle",
            Provenance::Pool(_) => "hsa_amd_memory_pool_free",
            Provenance::Locked(_) => "hsa_amd_memory_unlock",
            Provenance::Foreign => return Ok(()),
        };
        if self.generation != device.generation() || device.is_lost() {
            return Ok(());
        }
        let held = Held::Memory(self.origin);
        let outcome = device.enter(operation).and_then(|_current| {
            let _turn = device.enqueue_lock().alone();
            if !device.remove_note(held) {
                return Ok(());
            }
            // SAFETY: the note was there, so the memory is ours; nothing uses it any more.
            let status = unsafe { give_back(device.hip(), self.origin) };
            if !status.is_success() {
                // The caller gets it back and may try again.
                device.hold(held);
            }
            device.check(status, operation)
        });
        match outcome {
            Err(error) if error.is_device_lost() => Ok(()),
            outcome => outcome,
        }
    }
}

/// Whether HIP has allocated or registered the memory at an address.
fn is_known(device: &RocDevice, address: *mut u8) -> bool {
    let version = device.inner().driver.version;
    let found = gpumem_sys::hip::pointer(device.hip(), version, address.expose_provenance() as u64);
    device.forget_last_error();
    matches!(found, Ok(Some(_)))
}

/// The grain is said, because HIP's own default depends on an environment variable.
fn mapped_flags(options: MappedOptions, grain: Grain) -> u32 {
    let mut flags = hipHostMallocMapped;
    flags |= match grain {
        Grain::Fine => hipHostMallocCoherent,
        Grain::Coarse => hipHostMallocNonCoherent,
    };
    if options.portable {
        flags |= hipHostMallocPortable;
    }
    if options.write_combined {
        flags |= hipHostMallocWriteCombined;
    }
    flags
}

/// HIP reports a request beyond any machine as an invalid value, or as a failure of the operating system or the HSA
/// runtime.
fn is_out_of_memory(device: &RocDevice, status: Status, on_host: bool, bytes: usize) -> bool {
    let absurd = if on_host { 1 << 46 } else { device.inner().info.total_memory };
    match status {
        Status::OUT_OF_MEMORY => true,
        Status::INVALID_VALUE | Status::RUNTIME_MEMORY => bytes > absurd,
        Status::OPERATING_SYSTEM => on_host,
        _ => false,
    }
}

/// The address under which the device reaches page-locked memory. The device is current.
fn device_address(device: &RocDevice, host: NonNull<u8>) -> Result<u64> {
    let mut address = null_mut();
    // SAFETY: a place for an address; the memory is page-locked.
    let status =
        unsafe { device.hip().hipHostGetDevicePointer(&mut address, host.as_ptr().cast::<c_void>(), 0) };
    device.check(status, "hipHostGetDevicePointer").map(|()| address.expose_provenance() as u64)
}
