//! The devices that are open. Opening one again gives the same one.

use crate::{
    NAME,
    api::DriverApi,
    context::ContextGuard,
    device::{CudaDevice, Parts},
    error::Status,
    info,
    probe::{self, Driver},
};
use cudarc::driver::sys::{CUcontext, CUdevice};
use gpumem_core::{DeviceInfo, DeviceSelector, Error, ErrorKind, Result};
use parking_lot::Mutex;
use std::{collections::BTreeMap, ptr::null_mut};

/// Devices with their primary contexts, by ordinal.
///
/// They stay until the process ends. Giving the last count of a primary context back destroys all memory in it, and
/// buffers outlive the devices that users hold.
static OPEN: Mutex<BTreeMap<usize, CudaDevice>> = Mutex::new(BTreeMap::new());

/// The devices, without a context on any.
pub(crate) fn devices() -> Result<Vec<DeviceInfo>> {
    const OPERATION: &str = "devices";
    let Some(Driver { api, .. }) = probe::driver_if_any(OPERATION)? else { return Ok(Vec::new()) };
    let count = info::count(api).map_err(|status| status.error(OPERATION))?;
    (0..count).map(|ordinal| info::describe(api, ordinal).map_err(|status| status.error(OPERATION))).collect()
}

/// Opens a device with its primary context.
pub(crate) fn open(selector: &DeviceSelector) -> Result<CudaDevice> {
    const OPERATION: &str = "open";
    if selector.backend != NAME {
        selector.choose(NAME, &[])?;
    }
    let devices = devices()?;
    let ordinal = selector.choose(NAME, &devices)?;
    let driver = probe::driver(OPERATION)?;
    let known = OPEN.lock().get(&ordinal).cloned();
    if let Some(device) = known {
        return Ok(device);
    }
    // Without the lock: a subscriber may hear of a failure.
    let handle = info::handle(&driver.api, ordinal).map_err(|status| status.error(OPERATION))?;
    let retained = Retained::new(&driver.api, handle).map_err(|status| status.error(OPERATION))?;
    let info = devices.into_iter().nth(ordinal);
    let device = finish(driver, handle, info, retained.context, false)?;
    let first = OPEN.lock().entry(ordinal).or_insert_with(|| device.clone()).clone();
    if first.is(&device) {
        // From here on the count belongs to the device. Of two threads that open it at once, the later one gives its own back.
        std::mem::forget(retained);
    }
    Ok(first)
}

/// Wraps a context of another library. Where it is the primary context of an open device, the result is that device.
///
/// # Safety
/// The context is alive, and stays so for as long as the device and anything made with it is used.
pub(crate) unsafe fn adopt(context: CUcontext) -> Result<CudaDevice> {
    const OPERATION: &str = "from_context";
    let driver = probe::driver(OPERATION)?;
    let api = &driver.api;
    if context.is_null() {
        let why = "the context is null";
        return Err(Error::new(NAME, OPERATION, ErrorKind::InvalidArgument { why }));
    }
    if let Some(device) = OPEN.lock().values().find(|device| device.context() == context) {
        return Ok(device.clone());
    }
    let failed = |status: Status| status.error(OPERATION);
    let handle = {
        let _current = ContextGuard::enter(api, context).map_err(failed)?;
        let mut handle = 0;
        // SAFETY: a place for a handle; a context is current.
        unsafe { api.cuCtxGetDevice(&mut handle) }.ok().map_err(failed)?;
        handle
    };
    let ordinal = ordinal_of(api, handle).map_err(failed)?;
    let info = info::describe(api, ordinal).map_err(failed)?;
    finish(driver, handle, Some(info), context, true)
}

/// The primary context of the device at that position, if it is open.
pub(crate) fn context_of(ordinal: usize) -> Option<CUcontext> {
    OPEN.lock().get(&ordinal).map(CudaDevice::context)
}

/// Position of a device in the driver's list.
pub(crate) fn ordinal_of(api: &DriverApi, handle: CUdevice) -> Result<usize, Status> {
    for ordinal in 0..info::count(api)? {
        if info::handle(api, ordinal)? == handle {
            return Ok(ordinal);
        }
    }
    Err(Status::NO_DEVICE)
}

fn finish(
    driver: &'static Driver,
    handle: CUdevice,
    info: Option<DeviceInfo>,
    context: CUcontext,
    foreign: bool,
) -> Result<CudaDevice> {
    const OPERATION: &str = "open";
    let failed = |status: Status| status.error(OPERATION);
    let Driver { api, origin, .. } = driver;
    let info = info.ok_or_else(|| failed(Status::NO_DEVICE))?;
    let _current = ContextGuard::enter(api, context).map_err(failed)?;
    let (capabilities, limits) = info::capabilities(api, handle).map_err(failed)?;
    Ok(CudaDevice::new(Parts { api, origin: *origin, handle, info, capabilities, limits, context, foreign }))
}

/// A count of a primary context, released if opening fails half-way.
struct Retained {
    api: &'static DriverApi,
    handle: CUdevice,
    context: CUcontext,
}

impl Retained {
    fn new(api: &'static DriverApi, handle: CUdevice) -> Result<Self, Status> {
        let mut context = null_mut();
        // SAFETY: a place for a handle.
        unsafe { api.cuDevicePrimaryCtxRetain(&mut context, handle) }.ok()?;
        Ok(Self { api, handle, context })
    }
}

impl Drop for Retained {
    fn drop(&mut self) {
        // SAFETY: releases the count that `new` took.
        let status = unsafe { self.api.cuDevicePrimaryCtxRelease_v2(self.handle) };
        if !status.is_success() {
            gpumem_core::tell!(warn: "a primary context could not be released: {status}");
        }
    }
}
