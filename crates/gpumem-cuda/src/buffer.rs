//! Allocates, page-locks and frees memory.

use crate::{NAME, device::CudaDevice, error::Status, managed};
use cudarc::driver::sys::{
    CU_MEMHOSTALLOC_DEVICEMAP, CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTALLOC_WRITECOMBINED,
    CU_MEMHOSTREGISTER_DEVICEMAP, CU_MEMHOSTREGISTER_PORTABLE, CU_MEMHOSTREGISTER_READ_ONLY,
    CUmemAttach_flags_enum as AttachFlags,
};
use gpumem_core::{
    AllocationRequest, Attach, Capabilities, DeviceBuffer, Error, ErrorKind, MappedOptions, MemoryInfo,
    MemoryKind, RegisterOptions, Result,
};
use std::{
    ffi::c_void,
    ptr::{NonNull, null_mut},
};

/// A block of CUDA memory: allocated, registered, opened from another process, or another library's.
#[derive(Debug)]
pub struct CudaBuffer {
    address: u64,
    host: Option<NonNull<u8>>,
    bytes: usize,
    kind: MemoryKind,
    origin: Provenance,
    generation: u64,
}

/// The origin of memory, which decides how it is freed. The address is the one that the driver returned.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Provenance {
    Device(u64),
    PageLocked(NonNull<u8>),
    Registered(NonNull<u8>),
    Imported(u64),
    Foreign,
}

// SAFETY: a buffer describes memory and never touches it; addresses mean the same on every thread.
unsafe impl Send for CudaBuffer {}
// SAFETY: as above; nothing in it changes.
unsafe impl Sync for CudaBuffer {}

// SAFETY: the addresses and the length are the driver's, and do not change.
unsafe impl DeviceBuffer for CudaBuffer {
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

impl CudaBuffer {
    /// Device memory that was not allocated here.
    pub(crate) fn elsewhere(device: &CudaDevice, address: u64, bytes: usize, origin: Provenance) -> Self {
        let generation = device.generation();
        Self { address, host: None, bytes, kind: MemoryKind::Device, origin, generation }
    }

    /// # Safety
    /// As for [`DriverDevice::allocate`](gpumem_core::DriverDevice::allocate).
    pub(crate) unsafe fn allocate(device: &CudaDevice, request: &AllocationRequest) -> Result<Self> {
        request.check(NAME, &device.inner().capabilities)?;
        let AllocationRequest { bytes, align, .. } = *request;
        let mut buffer = Self::obtain(device, request, bytes)?;
        if !buffer.address.is_multiple_of(align as u64) {
            // More than the driver promises: take enough to find an aligned place inside.
            let _ = buffer.give_back(device);
            let padded = bytes.checked_add(align - 1).ok_or_else(|| request.out_of_memory(NAME, None))?;
            buffer = Self::obtain(device, request, padded)?;
            let offset = buffer.address.next_multiple_of(align as u64) - buffer.address;
            buffer.address += offset;
            // SAFETY: `offset` is less than `align`, so the place is within the padded block.
            buffer.host = buffer.host.map(|host| unsafe { host.add(offset as usize) });
            buffer.bytes = bytes;
        }
        if let Err(error) = buffer.zero_for_the_host(device) {
            let _ = buffer.give_back(device);
            return Err(error);
        }
        Ok(buffer)
    }

    fn obtain(device: &CudaDevice, request: &AllocationRequest, bytes: usize) -> Result<Self> {
        let (api, kind) = (device.api(), request.kind);
        let (mut address, mut host) = (0u64, null_mut());
        let operation = match kind {
            MemoryKind::Device => "cuMemAlloc",
            MemoryKind::Managed(_) => "cuMemAllocManaged",
            _ => "cuMemHostAlloc",
        };
        let generation = device.generation();
        let _current = device.enter(operation)?;
        // SAFETY: each is given a place for an address; the context is current.
        let status = unsafe {
            match kind {
                MemoryKind::Device => api.cuMemAlloc_v2(&mut address, bytes),
                MemoryKind::Managed(attach) => {
                    api.cuMemAllocManaged(&mut address, bytes, attach_flag(attach))
                }
                MemoryKind::Mapped(options) => api.cuMemHostAlloc(&mut host, bytes, mapped_flags(options)),
                _ => api.cuMemHostAlloc(&mut host, bytes, CU_MEMHOSTALLOC_PORTABLE),
            }
        };
        let on_host = matches!(kind, MemoryKind::Pinned | MemoryKind::Mapped(_));
        if is_out_of_memory(device, status, on_host, bytes) {
            let memory = if on_host { None } else { device.memory().ok() };
            return Err(request.out_of_memory(NAME, memory));
        }
        device.check(status, operation)?;
        let found = match kind {
            MemoryKind::Device => (address, None, Provenance::Device(address)),
            MemoryKind::Managed(_) => {
                let host = NonNull::new(std::ptr::with_exposed_provenance_mut(address as usize));
                (address, host, Provenance::Device(address))
            }
            _ => {
                let Some(host) = NonNull::new(host.cast::<u8>()) else {
                    return Err(Status::INVALID_VALUE.error(operation));
                };
                (host.as_ptr().expose_provenance() as u64, Some(host), Provenance::PageLocked(host))
            }
        };
        let (address, host, origin) = found;
        // Owned from here on, so that a failure below gives it back.
        let mut buffer = Self { address, host, bytes, kind, origin, generation };
        if let (MemoryKind::Mapped(_), Some(host)) = (kind, host)
            && let Err(error) = device_address(device, host).map(|address| buffer.address = address)
        {
            let _ = buffer.give_back(device);
            return Err(error);
        }
        Ok(buffer)
    }

    /// Clears memory that the host can read. The driver gives out blocks that were used before.
    fn zero_for_the_host(&self, device: &CudaDevice) -> Result<()> {
        match (self.kind, self.host) {
            // The device clears it, because the host may not touch it while any kernel runs, or because that moves
            // no page.
            (MemoryKind::Managed(Attach::Global), _) => managed::zero(device, self.address, self.bytes),
            (_, Some(host)) => {
                // SAFETY: the memory is ours alone, `bytes` long and writable by the host.
                unsafe { host.write_bytes(0, self.bytes) };
                Ok(())
            }
            (_, None) => Ok(()),
        }
    }

    /// # Safety
    /// As for [`DriverDevice::register`](gpumem_core::DriverDevice::register).
    pub(crate) unsafe fn register(
        device: &CudaDevice,
        host: NonNull<u8>,
        bytes: usize,
        options: RegisterOptions,
    ) -> Result<Self> {
        const OPERATION: &str = "cuMemHostRegister";
        let Capabilities { register, mapped, .. } = device.inner().capabilities;
        if !register || (options.mapped && !mapped) {
            let what = if register { "mapped memory" } else { "page-locking memory of the caller" };
            return Err(Error::new(NAME, OPERATION, ErrorKind::Unsupported { what }));
        }
        let flags = [
            (options.portable, CU_MEMHOSTREGISTER_PORTABLE),
            (options.mapped, CU_MEMHOSTREGISTER_DEVICEMAP),
            // A driver that does not take the flag page-locks for reading and writing.
            (options.read_only && device.inner().limits.read_only_registration, CU_MEMHOSTREGISTER_READ_ONLY),
        ];
        let flags = flags.iter().filter(|(wanted, _)| *wanted).fold(0, |all, (_, flag)| all | flag);
        let generation = device.generation();
        let _current = device.enter(OPERATION)?;
        // SAFETY: the caller's memory is valid until it is unregistered; the context is current.
        let status =
            unsafe { device.api().cuMemHostRegister_v2(host.as_ptr().cast::<c_void>(), bytes, flags) };
        let refused = |why| Err(Error::new(NAME, OPERATION, ErrorKind::Registration { why }));
        match status {
            Status::HOST_MEMORY_ALREADY_REGISTERED => return refused("part of it is page-locked already"),
            Status::INVALID_VALUE => return refused("the driver does not take this kind of memory"),
            Status::OUT_OF_MEMORY => {
                let kind = ErrorKind::out_of_memory(bytes, "registered", MemoryInfo::default());
                return Err(Error::new(NAME, OPERATION, kind));
            }
            status => device.check(status, OPERATION)?,
        }
        let mut buffer = Self {
            address: host.as_ptr().expose_provenance() as u64,
            host: Some(host),
            bytes,
            kind: MemoryKind::Registered(options),
            origin: Provenance::Registered(host),
            generation,
        };
        if options.mapped
            && let Err(error) = device_address(device, host).map(|address| buffer.address = address)
        {
            let _ = buffer.give_back(device);
            return Err(error);
        }
        Ok(buffer)
    }

    /// Frees the memory. On a lost device, and after a reset, it ended with the context.
    pub(crate) fn give_back(&self, device: &CudaDevice) -> Result<()> {
        let operation = match self.origin {
            Provenance::Device(_) => "cuMemFree",
            Provenance::PageLocked(_) => "cuMemFreeHost",
            Provenance::Registered(_) => "cuMemHostUnregister",
            Provenance::Imported(_) => "cuIpcCloseMemHandle",
            Provenance::Foreign => return Ok(()),
        };
        if self.generation != device.generation() || device.is_lost() {
            return Ok(());
        }
        let api = device.api();
        let outcome = device.enter(operation).and_then(|_current| {
            // SAFETY: the memory came from the matching function in this context; nothing uses it any more.
            let status = unsafe {
                match self.origin {
                    Provenance::Device(address) => api.cuMemFree_v2(address),
                    Provenance::PageLocked(host) => api.cuMemFreeHost(host.as_ptr().cast::<c_void>()),
                    Provenance::Registered(host) => api.cuMemHostUnregister(host.as_ptr().cast::<c_void>()),
                    Provenance::Imported(address) => api.cuIpcCloseMemHandle(address),
                    Provenance::Foreign => Status::SUCCESS,
                }
            };
            device.check(status, operation)
        });
        match outcome {
            Err(error) if error.is_device_lost() => Ok(()),
            outcome => outcome,
        }
    }
}

fn attach_flag(attach: Attach) -> u32 {
    match attach {
        Attach::Global => AttachFlags::CU_MEM_ATTACH_GLOBAL as u32,
        Attach::Host => AttachFlags::CU_MEM_ATTACH_HOST as u32,
    }
}

fn mapped_flags(options: MappedOptions) -> u32 {
    let mut flags = CU_MEMHOSTALLOC_DEVICEMAP;
    if options.portable {
        flags |= CU_MEMHOSTALLOC_PORTABLE;
    }
    if options.write_combined {
        flags |= CU_MEMHOSTALLOC_WRITECOMBINED;
    }
    flags
}

/// The driver reports a request beyond any machine as an invalid value, and one beyond this host as a failure of the
/// operating system.
fn is_out_of_memory(device: &CudaDevice, status: Status, on_host: bool, bytes: usize) -> bool {
    let absurd = if on_host { 1 << 46 } else { device.inner().info.total_memory };
    match status {
        Status::OUT_OF_MEMORY => true,
        Status::INVALID_VALUE => bytes > absurd,
        Status::OPERATING_SYSTEM => on_host,
        _ => false,
    }
}

/// The address under which the device reaches page-locked memory. The context is current.
fn device_address(device: &CudaDevice, host: NonNull<u8>) -> Result<u64> {
    let mut address = 0;
    // SAFETY: a place for an address; the memory is page-locked and mapped.
    let status =
        unsafe { device.api().cuMemHostGetDevicePointer_v2(&mut address, host.as_ptr().cast::<c_void>(), 0) };
    device.check(status, "cuMemHostGetDevicePointer").map(|()| address)
}
