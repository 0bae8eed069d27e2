//! What ROCm does with an open device.

use crate::{
    Grain, NAME, Roc, RocBarrier, RocBuffer, RocDevice, RocEvent, RocModule, RocStream,
    buffer::Found,
    context::Current,
    device::{self, Owner, WAIT_FOR_DEVICE},
    error::Status,
    hiprtc, managed, pointer, probe,
    provenance::Provenance,
};
use gpumem_core::{
    AddressRange, Advice, AllocationRequest, Capabilities, CompileOptions, Compiler, DeviceInfo,
    DlpackDevice, DriverDevice, Error, ErrorKind, EventOptions, IpcMemory, KernelSource, Location,
    MemoryInfo, MemoryKind, RawStream, RegisterOptions, Result, StreamOptions,
};
use gpumem_sys::hip::{hipIpcMemHandle_t, hipMemoryAdvise as Hint};
use std::{
    ffi::{c_char, c_void},
    ptr::{NonNull, null_mut, with_exposed_provenance, with_exposed_provenance_mut},
    sync::atomic::Ordering,
};

// SAFETY: each function is a call of HIP or HSA; buffers are memory that the driver has allocated.
unsafe impl DriverDevice<Roc> for RocDevice {
    fn info(&self) -> &DeviceInfo {
        &self.inner().info
    }

    fn capabilities(&self) -> &Capabilities {
        &self.inner().capabilities
    }

    fn barrier(&self) -> RocBarrier {
        RocBarrier::new(self.inner().capabilities.wave_size)
    }

    fn memory_info(&self) -> Result<MemoryInfo> {
        const OPERATION: &str = "hipMemGetInfo";
        let _current = self.enter(OPERATION)?;
        self.memory().map_err(|status| self.failure(status, OPERATION))
    }

    fn synchronize(&self) -> Result<()> {
        let status = self.wait_for_device()?;
        self.check(status, WAIT_FOR_DEVICE)
    }

    /// Releases all handles, then resets the device.
    unsafe fn reset(&self) -> Result<()> {
        const OPERATION: &str = "hipDeviceReset";
        // A lost device may be reset: it is what a reset is for.
        self.inner().driver.origin.check(NAME, OPERATION)?;
        let hip = self.hip();
        let _current = Current::enter(hip, self.inner().handle).map_err(|status| status.error(OPERATION))?;
        self.inner().generation.fetch_add(1, Ordering::AcqRel);
        let turn = self.enqueue_lock().alone();
        // Work that is under way must be over before its memory goes; on a lost device there is none.
        // SAFETY: the device is current.
        let waited = Status::from(unsafe { hip.hipDeviceSynchronize() });
        let held = std::mem::take(&mut *self.inner().held.lock());
        let mut refused = Vec::new();
        for held in held {
            // SAFETY: the caller uses nothing of the device any more, and the note says which kind of handle it is.
            let status = unsafe { device::give_back(hip, held) };
            if !status.is_success() {
                refused.push((held, status));
            }
        }
        self.inner().peers.lock().clear();
        // SAFETY: as above.
        let status = Status::from(unsafe { hip.hipDeviceReset() });
        self.forget_last_error();
        drop(turn);
        // Without the lock: a subscriber may use a device.
        for (held, status) in refused {
            gpumem_core::tell!(warn: "{held:?} could not be released in a reset: {status}");
        }
        if let Err(status) = status.ok().and_then(|()| if waited.is_sticky() { Err(waited) } else { Ok(()) })
        {
            // Some faults outlive a reset.
            return Err(self.inner().loss.error(NAME, OPERATION, || format!("{status} in {OPERATION}")));
        }
        self.inner().loss.forget();
        Ok(())
    }

    fn can_access_peer(&self, peer: &Self) -> Result<bool> {
        const OPERATION: &str = "hipDeviceCanAccessPeer";
        self.check_alive(OPERATION)?;
        // HIP says no here; a device reaches its own memory all the same.
        if self.ordinal() == peer.ordinal() {
            return Ok(true);
        }
        let mut can = 0;
        // SAFETY: a place for a number; both devices are open.
        let status = unsafe { self.hip().hipDeviceCanAccessPeer(&mut can, self.handle(), peer.handle()) };
        self.check(status, OPERATION)?;
        Ok(can != 0)
    }

    fn set_peer_access(&self, peer: &Self, enabled: bool) -> Result<()> {
        let operation = if enabled { "hipDeviceEnablePeerAccess" } else { "hipDeviceDisablePeerAccess" };
        let _current = self.enter(operation)?;
        peer.check_alive(operation)?;
        if self.ordinal() == peer.ordinal() {
            return Ok(());
        }
        if enabled && !self.can_access_peer(peer)? {
            let what = "access between these two devices";
            return Err(Error::new(NAME, operation, ErrorKind::Unsupported { what }));
        }
        let hip = self.hip();
        // SAFETY: our device is current.
        let answer = unsafe {
            if enabled {
                hip.hipDeviceEnablePeerAccess(peer.handle(), 0)
            } else {
                hip.hipDeviceDisablePeerAccess(peer.handle())
            }
        };
        match Status::from(answer) {
            Status::PEER_ACCESS_ALREADY_ENABLED | Status::PEER_ACCESS_NOT_ENABLED => self.forget_last_error(),
            status => self.check(status, operation)?,
        }
        self.set_peer(peer.ordinal(), enabled);
        Ok(())
    }

    unsafe fn allocate(&self, request: &AllocationRequest) -> Result<RocBuffer> {
        // SAFETY: passed on to the caller.
        unsafe { RocBuffer::allocate(self, request, Grain::usual(request.kind)) }
    }

    unsafe fn release(&self, buffer: RocBuffer) -> Result<(), (RocBuffer, Error)> {
        buffer.give_back(self).map_err(|error| (buffer, error))
    }

    fn with_current(&self, work: &mut dyn FnMut()) {
        let _current = self.enter("hipSetDevice");
        work();
    }

    fn pointer_info(&self, address: u64) -> Result<Option<AddressRange>> {
        let found = pointer::find(self, address)?;
        let ordinal = found.and_then(|pointer| usize::try_from(pointer.device).ok());
        Ok(ordinal.map(|ordinal| AddressRange { ordinal, end: address.saturating_add(1) }))
    }

    fn dlpack_device(&self, kind: MemoryKind) -> Option<DlpackDevice> {
        let ordinal = i32::try_from(self.ordinal()).ok()?;
        Some(match kind {
            // DLPack has no name for managed memory of ROCm: it is device memory there.
            MemoryKind::Device | MemoryKind::Managed(_) => DlpackDevice::new(DlpackDevice::ROCM, ordinal),
            // Page-locked memory belongs to no device in particular.
            _ => DlpackDevice::new(DlpackDevice::ROCM_HOST, 0),
        })
    }

    unsafe fn register(
        &self,
        host: NonNull<u8>,
        bytes: usize,
        options: RegisterOptions,
    ) -> Result<RocBuffer> {
        // SAFETY: passed on to the caller.
        unsafe { RocBuffer::register(self, host, bytes, options) }
    }

    unsafe fn advise(&self, address: u64, bytes: usize, advice: Advice) -> Result<()> {
        const OPERATION: &str = "hipMemAdvise";
        let (hint, location) = match advice {
            Advice::ReadMostly(true) => (Hint::hipMemAdviseSetReadMostly, Location::Device),
            Advice::ReadMostly(false) => (Hint::hipMemAdviseUnsetReadMostly, Location::Device),
            Advice::PreferredLocation(Some(to)) => (Hint::hipMemAdviseSetPreferredLocation, to),
            Advice::PreferredLocation(None) => (Hint::hipMemAdviseUnsetPreferredLocation, Location::Device),
            Advice::AccessedBy(by, true) => (Hint::hipMemAdviseSetAccessedBy, by),
            Advice::AccessedBy(by, false) => (Hint::hipMemAdviseUnsetAccessedBy, by),
        };
        managed::needs_concurrent_access(self, OPERATION)?;
        let _current = self.enter(OPERATION)?;
        let address = with_exposed_provenance::<c_void>(address as usize);
        // SAFETY: the range lies in one live managed buffer, as the caller promises.
        let status = unsafe { self.hip().hipMemAdvise(address, bytes, hint, managed::place(self, location)) };
        self.check(status, OPERATION)
    }

    unsafe fn export_memory(&self, address: u64, bytes: usize) -> Result<IpcMemory> {
        const OPERATION: &str = "hipIpcGetMemHandle";
        let _current = self.enter(OPERATION)?;
        let (base, length) = self.allocation(address)?;
        let offset = address.wrapping_sub(base);
        if bytes == 0 || offset.checked_add(bytes as u64).is_none_or(|end| end > length as u64) {
            let why = "the range is empty or reaches outside its allocation";
            return Err(Error::new(NAME, OPERATION, ErrorKind::InvalidArgument { why }));
        }
        let mut handle = hipIpcMemHandle_t { reserved: [0; 64] };
        let base = with_exposed_provenance_mut(base as usize);
        // SAFETY: a place for a handle; the address is that of an allocation, says the caller.
        let status = unsafe { self.hip().hipIpcGetMemHandle(&mut handle, base) };
        self.check(status, OPERATION)?;
        Ok(IpcMemory::new(handle.reserved.map(|byte| byte as u8), offset, bytes as u64))
    }

    unsafe fn open_memory(&self, memory: &IpcMemory) -> Result<RocBuffer> {
        const OPERATION: &str = "hipIpcOpenMemHandle";
        let _current = self.enter(OPERATION)?;
        let handle = hipIpcMemHandle_t { reserved: memory.handle().map(|byte| byte as c_char) };
        let mut base = null_mut();
        let flags = self.inner().driver.version.ipc_lazy_peer_access();
        // SAFETY: a place for an address; the handle is a value of 64 bytes that HIP checks.
        let status = unsafe { self.hip().hipIpcOpenMemHandle(&mut base, handle, flags) };
        match Status::from(status) {
            Status::INVALID_CONTEXT | Status::INVALID_DEVICE_POINTER | Status::INVALID_VALUE => {
                self.forget_last_error();
                let why = "the memory was exported by this process, or its process has ended";
                return Err(Error::new(NAME, OPERATION, ErrorKind::InvalidArgument { why }));
            }
            status => self.check(status, OPERATION)?,
        }
        let base = base.expose_provenance() as u64;
        let found = Found {
            address: base.wrapping_add(memory.offset()),
            host: None,
            bytes: memory.len(),
            kind: MemoryKind::Device,
            origin: Provenance::Imported(base),
        };
        let buffer = RocBuffer::take(self, found);
        // HIP may open a part of an allocation.
        let left = |(start, bytes): (u64, usize)| (start + bytes as u64).saturating_sub(base);
        let allocation = self.allocation(base).map(left);
        match allocation.and_then(|bytes| memory.check_within(bytes, NAME, OPERATION)) {
            Ok(()) => Ok(buffer),
            Err(error) => buffer.give_back(self).and(Err(error)),
        }
    }

    fn create_stream(&self, options: &StreamOptions) -> Result<RocStream> {
        RocStream::create(self, options)
    }

    unsafe fn wrap_stream(&self, raw: RawStream) -> Result<RocStream> {
        self.check_alive("wrap_stream")?;
        let raw = with_exposed_provenance_mut(raw.0 as usize);
        Ok(RocStream::of(Owner::new(self), raw, false))
    }

    fn create_event(&self, options: EventOptions) -> Result<RocEvent> {
        RocEvent::create(self, options, false)
    }

    fn compile(&self, source: &KernelSource, options: &CompileOptions) -> Result<RocModule> {
        RocModule::compile(self, source, options)
    }

    fn compiler(&self) -> Result<Compiler> {
        let mut version = probe::hiprtc("compiler")?.version.clone();
        // hipRTC adds these to the options of its caller, in any process that has them.
        for variable in ["HIPRTC_COMPILE_OPTIONS_APPEND", "HIPRTC_LINK_OPTIONS_APPEND"] {
            if let Some(options) = std::env::var_os(variable) {
                version.push_str(&format!(", {variable}={options:?}"));
            }
        }
        Ok(Compiler { version, target: self.inner().isa.clone() })
    }

    fn compile_image(&self, text: &str, options: &CompileOptions) -> Result<Vec<u8>> {
        hiprtc::compile(text, &self.inner().isa, options)
    }
}
