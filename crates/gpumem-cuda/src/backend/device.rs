//! What CUDA does with an open device.

use crate::{
    Cuda, CudaBarrier, CudaBuffer, CudaDevice, CudaEvent, CudaModule, CudaStream, NAME,
    buffer::Provenance,
    device::{Inner, Owner},
    error::Status,
    managed, nvrtc, probe,
    stream::check_not_captured,
};
use cudarc::driver::sys::{
    CUipcMem_flags_enum as Flags, CUipcMemHandle, CUmem_advise_enum as Hint,
    CUpointer_attribute_enum as Attribute,
};
use gpumem_core::{
    AddressRange, Advice, AllocationRequest, Capabilities, CompileOptions, Compiler, DeviceInfo,
    DlpackDevice, DriverDevice, Error, ErrorKind, EventOptions, IpcMemory, KernelSource, Location,
    MemoryInfo, MemoryKind, RawStream, RegisterOptions, Result, StreamOptions,
};
use std::{
    ffi::c_char,
    ptr::{NonNull, null_mut, with_exposed_provenance_mut},
    sync::atomic::Ordering,
};

// SAFETY: each function is the driver's; buffers are memory that the driver has allocated.
unsafe impl DriverDevice<Cuda> for CudaDevice {
    fn info(&self) -> &DeviceInfo {
        &self.inner().info
    }

    fn capabilities(&self) -> &Capabilities {
        &self.inner().capabilities
    }

    fn barrier(&self) -> CudaBarrier {
        CudaBarrier::new(self.inner().capabilities.wave_size)
    }

    fn memory_info(&self) -> Result<MemoryInfo> {
        const OPERATION: &str = "cuMemGetInfo";
        let _current = self.enter(OPERATION)?;
        self.memory().map_err(|status| self.failure(status, OPERATION))
    }

    fn synchronize(&self) -> Result<()> {
        const OPERATION: &str = "cuCtxSynchronize";
        let _current = self.enter(OPERATION)?;
        check_not_captured(self, OPERATION)?;
        // SAFETY: the context is current.
        let status = unsafe { self.inner().api.cuCtxSynchronize() };
        self.check(status, OPERATION)
    }

    /// Resets the primary context and retains it anew, so that our count of it stays one.
    unsafe fn reset(&self) -> Result<()> {
        const OPERATION: &str = "cuDevicePrimaryCtxReset";
        let Inner { api, handle, .. } = *self.inner();
        // A lost device may be reset: it is what a reset is for.
        self.inner().origin.check(NAME, OPERATION)?;
        if self.inner().foreign {
            let what = "resetting a context that belongs to another library";
            return Err(Error::new(NAME, OPERATION, ErrorKind::Unsupported { what }));
        }
        self.inner().generation.fetch_add(1, Ordering::AcqRel);
        // SAFETY: the caller uses nothing of the device any more.
        unsafe { api.cuDevicePrimaryCtxReset_v2(handle) }.ok().map_err(|status| status.error(OPERATION))?;
        let mut context = null_mut();
        // SAFETY: a place for a handle. A reset context is dormant; retaining wakes it up.
        let status = unsafe { api.cuDevicePrimaryCtxRetain(&mut context, handle) };
        if !status.is_success() {
            // Some faults outlive a reset: the driver then requires a new process.
            return Err(self
                .inner()
                .loss
                .error(NAME, OPERATION, || format!("{status} in cuDevicePrimaryCtxRetain")));
        }
        // SAFETY: releases the count from before the reset, which a reset does not touch.
        let status = unsafe { api.cuDevicePrimaryCtxRelease_v2(handle) };
        self.inner().context.store(context, Ordering::Release);
        self.inner().loss.forget();
        status.ok().map_err(|status| status.error("cuDevicePrimaryCtxRelease"))
    }

    fn can_access_peer(&self, peer: &Self) -> Result<bool> {
        const OPERATION: &str = "cuDeviceCanAccessPeer";
        self.check_alive(OPERATION)?;
        // The driver says no here; a device reaches its own memory all the same.
        if self.ordinal() == peer.ordinal() {
            return Ok(true);
        }
        let mut can = 0;
        // SAFETY: a place for an integer; both devices are open.
        let status =
            unsafe { self.api().cuDeviceCanAccessPeer(&mut can, self.inner().handle, peer.inner().handle) };
        self.check(status, OPERATION)?;
        Ok(can != 0)
    }

    fn set_peer_access(&self, peer: &Self, enabled: bool) -> Result<()> {
        let operation = if enabled { "cuCtxEnablePeerAccess" } else { "cuCtxDisablePeerAccess" };
        let _current = self.enter(operation)?;
        peer.check_alive(operation)?;
        if self.is(peer) {
            return Ok(());
        }
        if enabled && !self.can_access_peer(peer)? {
            let what = "access between these two devices";
            return Err(Error::new(NAME, operation, ErrorKind::Unsupported { what }));
        }
        let api = self.api();
        // SAFETY: both contexts are alive, and ours is current.
        let status = unsafe {
            if enabled {
                api.cuCtxEnablePeerAccess(peer.context(), 0)
            } else {
                api.cuCtxDisablePeerAccess(peer.context())
            }
        };
        match status {
            Status::PEER_ACCESS_ALREADY_ENABLED | Status::PEER_ACCESS_NOT_ENABLED => {}
            status => self.check(status, operation)?,
        }
        Ok(())
    }

    unsafe fn allocate(&self, request: &AllocationRequest) -> Result<CudaBuffer> {
        // SAFETY: passed on to the caller.
        unsafe { CudaBuffer::allocate(self, request) }
    }

    unsafe fn release(&self, buffer: CudaBuffer) -> Result<(), (CudaBuffer, Error)> {
        buffer.give_back(self).map_err(|error| (buffer, error))
    }

    #[inline]
    fn with_current(&self, work: &mut dyn FnMut()) {
        let _current = self.enter("cuCtxPushCurrent");
        work();
    }

    /// One call asks for all attributes, which takes as long as one attribute.
    fn pointer_info(&self, address: u64) -> Result<Option<AddressRange>> {
        const OPERATION: &str = "cuPointerGetAttributes";
        self.check_alive(OPERATION)?;
        let (mut kind, mut ordinal, mut start, mut bytes, mut whole) = (0u32, -1i32, 0u64, 0usize, 0u32);
        let mut attributes = [
            Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
            Attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
            Attribute::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
            Attribute::CU_POINTER_ATTRIBUTE_RANGE_SIZE,
            Attribute::CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
        ];
        let mut places = [
            (&raw mut kind).cast(),
            (&raw mut ordinal).cast(),
            (&raw mut start).cast(),
            (&raw mut bytes).cast(),
            (&raw mut whole).cast(),
        ];
        let count = attributes.len() as u32;
        let (attributes, places) = (attributes.as_mut_ptr(), places.as_mut_ptr());
        let look = || {
            // SAFETY: as many attributes as places, each of the attribute's type; the driver looks the address up without
            // reading from it.
            unsafe { self.api().cuPointerGetAttributes(count, attributes, places, address) }
        };
        // Addresses mean the same in every context, so that whichever is current may be asked. A refusal counts in ours.
        let mut status = look();
        if !status.is_success() {
            let _current = self.enter(OPERATION)?;
            status = look();
        }
        if status == Status::INVALID_VALUE {
            return Ok(None);
        }
        self.check(status, OPERATION)?;
        // Memory that the driver does not know is of no type.
        let Some(ordinal) = usize::try_from(ordinal).ok().filter(|_| kind != 0) else { return Ok(None) };
        // Of memory that is mapped piece by piece the range is the addresses that were reserved, with or without memory.
        // Only memory that was allocated as a whole can be shared with other processes by the older IPC functions.
        let known = if whole == 0 { 0 } else { start.saturating_add(bytes as u64) };
        Ok(Some(AddressRange { ordinal, end: known.max(address.saturating_add(1)) }))
    }

    fn dlpack_device(&self, kind: MemoryKind) -> Option<DlpackDevice> {
        let ordinal = i32::try_from(self.ordinal()).ok()?;
        Some(match kind {
            MemoryKind::Device => DlpackDevice::new(DlpackDevice::CUDA, ordinal),
            MemoryKind::Managed(_) => DlpackDevice::new(DlpackDevice::CUDA_MANAGED, ordinal),
            // Page-locked memory belongs to no device in particular.
            _ => DlpackDevice::new(DlpackDevice::CUDA_HOST, 0),
        })
    }

    unsafe fn register(
        &self,
        host: NonNull<u8>,
        bytes: usize,
        options: RegisterOptions,
    ) -> Result<CudaBuffer> {
        // SAFETY: passed on to the caller.
        unsafe { CudaBuffer::register(self, host, bytes, options) }
    }

    unsafe fn advise(&self, address: u64, bytes: usize, advice: Advice) -> Result<()> {
        const OPERATION: &str = "cuMemAdvise";
        let (hint, location) = match advice {
            Advice::ReadMostly(true) => (Hint::CU_MEM_ADVISE_SET_READ_MOSTLY, Location::Device),
            Advice::ReadMostly(false) => (Hint::CU_MEM_ADVISE_UNSET_READ_MOSTLY, Location::Device),
            Advice::PreferredLocation(Some(to)) => (Hint::CU_MEM_ADVISE_SET_PREFERRED_LOCATION, to),
            Advice::PreferredLocation(None) => {
                (Hint::CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, Location::Device)
            }
            Advice::AccessedBy(by, true) => (Hint::CU_MEM_ADVISE_SET_ACCESSED_BY, by),
            Advice::AccessedBy(by, false) => (Hint::CU_MEM_ADVISE_UNSET_ACCESSED_BY, by),
        };
        managed::needs_concurrent_access(self, OPERATION)?;
        let _current = self.enter(OPERATION)?;
        // SAFETY: the range lies in one live managed buffer, as the caller promises.
        let status = unsafe { self.api().cuMemAdvise(address, bytes, hint, managed::place(self, location)) };
        self.check(status, OPERATION)
    }

    unsafe fn export_memory(&self, address: u64, bytes: usize) -> Result<IpcMemory> {
        const OPERATION: &str = "cuIpcGetMemHandle";
        let _current = self.enter(OPERATION)?;
        let (base, length) = self.allocation(address)?;
        let offset = address.wrapping_sub(base);
        if bytes == 0 || offset.checked_add(bytes as u64).is_none_or(|end| end > length as u64) {
            let why = "the range is empty or reaches outside its allocation";
            return Err(Error::new(NAME, OPERATION, ErrorKind::InvalidArgument { why }));
        }
        let mut handle = CUipcMemHandle { reserved: [0; 64] };
        // SAFETY: a place for a handle; the address is that of an allocation, says the caller.
        let status = unsafe { self.api().cuIpcGetMemHandle(&mut handle, base) };
        self.check(status, OPERATION)?;
        Ok(IpcMemory::new(handle.reserved.map(|byte| byte as u8), offset, bytes as u64))
    }

    unsafe fn open_memory(&self, memory: &IpcMemory) -> Result<CudaBuffer> {
        const OPERATION: &str = "cuIpcOpenMemHandle";
        let _current = self.enter(OPERATION)?;
        let handle = CUipcMemHandle { reserved: memory.handle().map(|byte| byte as c_char) };
        let mut base = 0;
        let flags = Flags::CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS as u32;
        // SAFETY: a place for an address; the handle is a value of 64 bytes that the driver checks.
        let status = unsafe { self.api().cuIpcOpenMemHandle_v2(&mut base, handle, flags) };
        if status == Status::INVALID_CONTEXT {
            let why = "the memory was exported by this process, or its process has ended";
            return Err(Error::new(NAME, OPERATION, ErrorKind::InvalidArgument { why }));
        }
        self.check(status, OPERATION)?;
        let address = base.wrapping_add(memory.offset());
        let buffer = CudaBuffer::elsewhere(self, address, memory.len(), Provenance::Imported(base));
        let allocation = self.allocation(base);
        match allocation.and_then(|(_, bytes)| memory.check_within(bytes as u64, NAME, OPERATION)) {
            Ok(()) => Ok(buffer),
            Err(error) => buffer.give_back(self).and(Err(error)),
        }
    }

    fn create_stream(&self, options: &StreamOptions) -> Result<CudaStream> {
        CudaStream::create(self, options)
    }

    unsafe fn wrap_stream(&self, raw: RawStream) -> Result<CudaStream> {
        self.check_alive("wrap_stream")?;
        Ok(CudaStream::of(Owner::new(self), with_exposed_provenance_mut(raw.0 as usize), false))
    }

    fn create_event(&self, options: EventOptions) -> Result<CudaEvent> {
        CudaEvent::create(self, options, false)
    }

    fn record_device(&self, event: &CudaEvent) -> Result<()> {
        const OPERATION: &str = "cuCtxRecordEvent";
        let Some(record) = probe::driver(OPERATION)?.record_context else {
            let what = "an event after the work of all streams, before CUDA 12.5";
            return Err(Error::new(NAME, OPERATION, ErrorKind::Unsupported { what }));
        };
        event.owner.check(OPERATION, "event")?;
        let _current = self.enter(OPERATION)?;
        check_not_captured(self, OPERATION)?;
        // SAFETY: both handles are alive, and the driver refuses an event of another context.
        self.check(unsafe { record(self.context(), event.raw) }, OPERATION)
    }

    fn compile(&self, source: &KernelSource, options: &CompileOptions) -> Result<CudaModule> {
        CudaModule::compile(self, source, options)
    }

    fn compiler(&self) -> Result<Compiler> {
        let version = probe::nvrtc("compiler")?.version.clone();
        Ok(Compiler { version, target: self.inner().info.architecture.clone() })
    }

    fn compile_image(&self, text: &str, options: &CompileOptions) -> Result<Vec<u8>> {
        nvrtc::compile(text, &self.inner().info.architecture, options)
    }
}
