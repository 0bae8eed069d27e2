//! An open device: its context, whether it is lost, and how calls on it begin and fail.

use crate::{NAME, api::DriverApi, context::ContextGuard, error::Status, info::Limits, packers::Packers};
use cudarc::driver::sys::{CUcontext, CUctx_st, CUdevice};
use gpumem_core::{
    Capabilities, DeviceInfo, Error, ErrorKind, LostState, MemoryInfo, Result, process::ProcessGuard,
};
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicPtr, AtomicU64, Ordering},
    },
};

/// An open CUDA device. Clones are the same device.
#[derive(Clone)]
pub struct CudaDevice(Arc<Inner>);

/// The fields that every call reads come first and share one cache line: a driver call evicts most of our data from the
/// cache.
#[repr(C, align(64))]
pub(crate) struct Inner {
    pub(crate) api: &'static DriverApi,
    pub(crate) origin: ProcessGuard,
    pub(crate) context: AtomicPtr<CUctx_st>,
    /// Number of resets so far. Objects of an earlier generation are not passed to the driver any more.
    pub(crate) generation: AtomicU64,
    ordinal: usize,
    pub(crate) loss: LostState,
    pub(crate) handle: CUdevice,
    /// Whether the context is another library's.
    pub(crate) foreign: bool,
    pub(crate) capabilities: Capabilities,
    pub(crate) limits: Limits,
    pub(crate) info: DeviceInfo,
    pub(crate) packers: Packers,
}

/// The parts of an open device.
pub(crate) struct Parts {
    pub(crate) api: &'static DriverApi,
    pub(crate) origin: ProcessGuard,
    pub(crate) handle: CUdevice,
    pub(crate) info: DeviceInfo,
    pub(crate) capabilities: Capabilities,
    pub(crate) limits: Limits,
    pub(crate) context: CUcontext,
    pub(crate) foreign: bool,
}

impl CudaDevice {
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts { api, origin, handle, info, capabilities, limits, context, foreign } = parts;
        Self(Arc::new(Inner {
            api,
            handle,
            ordinal: info.ordinal,
            info,
            capabilities,
            limits,
            origin,
            context: AtomicPtr::new(context),
            foreign,
            generation: AtomicU64::new(0),
            loss: LostState::default(),
            packers: Packers::default(),
        }))
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.0
    }

    #[inline]
    pub(crate) fn api(&self) -> &'static DriverApi {
        self.0.api
    }

    #[inline]
    pub(crate) fn ordinal(&self) -> usize {
        self.0.ordinal
    }

    /// Whether both are the same device, in the same context.
    #[inline]
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    #[inline]
    pub(crate) fn context(&self) -> CUcontext {
        self.0.context.load(Ordering::Acquire)
    }

    #[inline]
    pub(crate) fn generation(&self) -> u64 {
        self.0.generation.load(Ordering::Acquire)
    }

    #[inline]
    pub(crate) fn is_lost(&self) -> bool {
        self.0.loss.is_lost()
    }

    /// Whether the driver may be called at all. [`check_alive`](Self::check_alive) says why not.
    #[inline]
    fn is_alive(&self) -> bool {
        self.0.origin.is_valid() && !self.is_lost()
    }

    /// Whether the driver may be called at all: not in a forked child, not at the end, not on a lost device.
    pub(crate) fn check_alive(&self, operation: &'static str) -> Result<()> {
        self.0.origin.check(NAME, operation)?;
        self.0.loss.check(NAME, operation)
    }

    /// Begins a call: the device's context is current until the result is dropped.
    #[inline]
    pub(crate) fn enter(&self, operation: &'static str) -> Result<ContextGuard<'static>> {
        self.check_alive(operation)?;
        ContextGuard::enter(self.0.api, self.context()).map_err(|status| self.failure(status, operation))
    }

    /// Turns the driver's status into a result.
    #[inline]
    pub(crate) fn check(&self, status: Status, operation: &'static str) -> Result<()> {
        if status.is_success() { Ok(()) } else { Err(self.failure(status, operation)) }
    }

    /// The error for a failed call. A code that makes the context unusable loses the device.
    #[cold]
    pub(crate) fn failure(&self, status: Status, operation: &'static str) -> Error {
        if status.is_sticky() {
            return self.0.loss.error(NAME, operation, || format!("{status} in {operation}"));
        }
        status.error(operation)
    }

    /// Free and total memory. The context is current.
    pub(crate) fn memory(&self) -> Result<MemoryInfo, Status> {
        let mut memory = MemoryInfo::default();
        // SAFETY: two places for sizes.
        unsafe { self.0.api.cuMemGetInfo_v2(&mut memory.free, &mut memory.total) }.ok()?;
        Ok(memory)
    }

    /// Beginning and length of the allocation that an address lies in. The context is current.
    pub(crate) fn allocation(&self, address: u64) -> Result<(u64, usize)> {
        const OPERATION: &str = "cuMemGetAddressRange";
        let (mut base, mut bytes) = (0, 0);
        // SAFETY: places for an address and a size; the driver looks the address up without reading from it.
        match unsafe { self.api().cuMemGetAddressRange_v2(&mut base, &mut bytes, address) } {
            Status::NOT_FOUND | Status::INVALID_VALUE => {
                let why = "the address lies in no allocation of the device";
                Err(Error::new(NAME, OPERATION, ErrorKind::InvalidArgument { why }))
            }
            status => self.check(status, OPERATION).map(|()| (base, bytes)),
        }
    }
}

impl fmt::Debug for CudaDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudaDevice")
            .field("ordinal", &self.0.info.ordinal)
            .field("name", &self.0.info.name)
            .field("foreign", &self.0.foreign)
            .finish_non_exhaustive()
    }
}

/// A device and which of its generations a handle belongs to.
#[derive(Debug, Clone)]
pub(crate) struct Owner {
    pub(crate) device: CudaDevice,
    generation: u64,
}

impl Owner {
    pub(crate) fn new(device: &CudaDevice) -> Self {
        Self { device: device.clone(), generation: device.generation() }
    }

    /// Tells whether both are the same device in the same generation: a check of one then holds for the other.
    #[inline]
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.device.is(&other.device) && self.generation == other.generation
    }

    #[inline]
    fn is_stale(&self) -> bool {
        self.generation != self.device.generation()
    }

    /// Calls the driver with an event of this owner, without changing the current context: a query succeeds with any
    /// current device (CUDA C++ Programming Guide, "Stream and event behavior"). The guide does not mention threads
    /// without a context. If the driver needs one, it refuses without any effect, and is called again with the context.
    #[inline]
    pub(crate) fn by_handle(
        &self,
        operation: &'static str,
        what: &'static str,
        call: impl Fn() -> Status,
    ) -> Result<Status> {
        self.check(operation, what)?;
        match call() {
            Status::INVALID_CONTEXT => self.in_context(operation, call),
            status => Ok(status),
        }
    }

    #[inline(never)]
    fn in_context(&self, operation: &'static str, call: impl Fn() -> Status) -> Result<Status> {
        let _current = self.device.enter(operation)?;
        Ok(call())
    }

    /// Begins a call that uses a handle of this owner; `what` names it.
    #[inline]
    pub(crate) fn enter(&self, operation: &'static str, what: &'static str) -> Result<ContextGuard<'static>> {
        self.check(operation, what)?;
        let (api, context) = (self.device.api(), self.device.context());
        ContextGuard::enter(api, context).map_err(|status| self.device.failure(status, operation))
    }

    /// Whether a handle of this owner may be given to the driver.
    #[inline]
    pub(crate) fn check(&self, operation: &'static str, what: &'static str) -> Result<()> {
        match !self.is_stale() && self.device.is_alive() {
            true => Ok(()),
            false => self.check_each(operation, what),
        }
    }

    #[cold]
    fn check_each(&self, operation: &'static str, what: &'static str) -> Result<()> {
        self.check_fresh(operation, what)?;
        self.device.check_alive(operation)
    }

    #[inline]
    pub(crate) fn check_fresh(&self, operation: &'static str, what: &'static str) -> Result<()> {
        if self.is_stale() { Err(stale(operation, what)) } else { Ok(()) }
    }

    /// Destroys a handle: makes the context current and calls `destroy`. Where there is nothing left to destroy (a
    /// lost device, a reset, a forked child, the end of the process) it is forgotten.
    pub(crate) fn destroy(
        &self,
        operation: &'static str,
        destroy: impl FnOnce(&DriverApi) -> Status,
    ) -> Result<()> {
        if self.is_stale() || self.device.check_alive(operation).is_err() {
            return Ok(());
        }
        let outcome = self.device.enter(operation).and_then(|_current| {
            let status = destroy(self.device.api());
            self.device.check(status, operation)
        });
        match outcome {
            Err(error) if error.is_device_lost() => Ok(()),
            outcome => outcome,
        }
    }

    /// As [`destroy`](Self::destroy), in a `Drop`, where no caller can receive the error.
    pub(crate) fn destroy_quietly(
        &self,
        operation: &'static str,
        destroy: impl FnOnce(&DriverApi) -> Status,
    ) {
        if let Err(error) = self.destroy(operation, destroy) {
            gpumem_core::tell!(warn: %error, "a handle could not be destroyed");
        }
    }
}

#[cold]
fn stale(operation: &'static str, what: &'static str) -> Error {
    Error::new(NAME, operation, ErrorKind::Stale { what })
}
