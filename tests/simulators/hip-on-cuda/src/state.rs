//! The driver, the devices' contexts, and HIP's state of each thread: its device and its last status.

use crate::{
    driver::DriverApi,
    error::Outcome,
    types::{hipDevice_t, hipError_t},
    version::Version,
};
use cudarc::driver::sys::{CUcontext, CUdevice};
use parking_lot::Mutex;
use std::{cell::Cell, env, ffi::c_int, ptr::null_mut, sync::OnceLock};

/// The driver, initialised, with at least one device.
pub(crate) struct Cuda {
    pub(crate) api: DriverApi,
    devices: Vec<Device>,
}

/// A device with its primary context, which is HIP's notion of a device's context too.
struct Device {
    handle: CUdevice,
    context: Mutex<Option<Context>>,
}

#[derive(Clone, Copy)]
struct Context(CUcontext);

// SAFETY: a context's handle is a name that the driver takes on any thread.
unsafe impl Send for Context {}

thread_local! {
    /// Every thread begins on the first device.
    static DEVICE: Cell<hipDevice_t> = const { Cell::new(0) };
    static LAST: Cell<hipError_t> = const { Cell::new(hipError_t::SUCCESS) };
}

/// The driver, or why there is none.
pub(crate) fn cuda() -> Outcome<&'static Cuda> {
    static CUDA: OnceLock<Outcome<Cuda>> = OnceLock::new();
    CUDA.get_or_init(Cuda::start).as_ref().map_err(|error| *error)
}

/// Logs details to stderr that HIP's statuses cannot express, if `HIP_ON_CUDA_LOG` is set.
pub(crate) fn log(text: &str) {
    if env::var_os("HIP_ON_CUDA_LOG").is_some() {
        eprintln!("hip-on-cuda: {text}");
    }
}

impl Cuda {
    fn start() -> Outcome<Self> {
        let api = DriverApi::load().map_err(|reason| {
            log(&format!("the CUDA driver cannot be used: {reason}"));
            hipError_t::NO_DEVICE
        })?;
        let mut count = 0;
        // SAFETY: no pointer is involved, then a place for a number.
        unsafe {
            api.cuInit(0).hip()?;
            api.cuDeviceGetCount(&mut count).hip()?;
        }
        let mut devices = Vec::new();
        for ordinal in 0..count {
            let mut handle = 0;
            // SAFETY: a place for a handle.
            unsafe { api.cuDeviceGet(&mut handle, ordinal) }.hip()?;
            devices.push(Device { handle, context: Mutex::new(None) });
        }
        if devices.is_empty() {
            return Err(hipError_t::NO_DEVICE);
        }
        Ok(Self { api, devices })
    }

    /// Number of devices.
    pub(crate) fn count(&self) -> c_int {
        c_int::try_from(self.devices.len()).unwrap_or(c_int::MAX)
    }

    fn device(&self, ordinal: hipDevice_t) -> Outcome<&Device> {
        let ordinal = usize::try_from(ordinal).map_err(|_| hipError_t::INVALID_DEVICE)?;
        self.devices.get(ordinal).ok_or(hipError_t::INVALID_DEVICE)
    }

    /// The driver's handle of a device.
    pub(crate) fn handle(&self, ordinal: hipDevice_t) -> Outcome<CUdevice> {
        self.device(ordinal).map(|device| device.handle)
    }

    /// Position of a device of the driver's.
    pub(crate) fn ordinal(&self, handle: CUdevice) -> Outcome<hipDevice_t> {
        let position = self.devices.iter().position(|device| device.handle == handle);
        position.and_then(|at| c_int::try_from(at).ok()).ok_or(hipError_t::INVALID_DEVICE)
    }

    /// The primary context of a device, which is retained by the first call and stays until the process ends.
    pub(crate) fn context(&self, ordinal: hipDevice_t) -> Outcome<CUcontext> {
        let device = self.device(ordinal)?;
        let mut context = device.context.lock();
        if let Some(Context(context)) = *context {
            return Ok(context);
        }
        *context = Some(Context(self.retain(device)?));
        context.map(|context| context.0).ok_or(hipError_t::INVALID_CONTEXT)
    }

    fn retain(&self, device: &Device) -> Outcome<CUcontext> {
        let mut context = null_mut();
        // SAFETY: a place for a handle.
        unsafe { self.api.cuDevicePrimaryCtxRetain(&mut context, device.handle) }.hip()?;
        Ok(context)
    }

    /// Destroys everything in a device's context.
    ///
    /// # Safety
    /// Nothing of the device is used any more.
    pub(crate) unsafe fn reset(&self, ordinal: hipDevice_t) -> Outcome {
        let device = self.device(ordinal)?;
        let mut context = device.context.lock();
        // SAFETY: the caller's promise.
        unsafe { self.api.cuDevicePrimaryCtxReset_v2(device.handle) }.hip()?;
        if context.is_some() {
            // A reset context is dormant and keeps its count: retaining wakes it up, releasing restores the count.
            *context = Some(Context(self.retain(device)?));
            // SAFETY: releases the count from before the reset.
            unsafe { self.api.cuDevicePrimaryCtxRelease_v2(device.handle) }.hip()?;
        }
        Ok(())
    }

    /// Makes a device's context the driver's current one of this thread, if `HIP_ON_CUDA_CURRENT` is set: for a library of CUDA
    /// that stands in for one of AMD's, as NCCL does for RCCL. Otherwise a program's own current context is left alone.
    pub(crate) fn set_current(&self, ordinal: hipDevice_t) -> Outcome {
        static IS_WANTED: OnceLock<bool> = OnceLock::new();
        if !*IS_WANTED.get_or_init(|| env::var_os("HIP_ON_CUDA_CURRENT").is_some()) {
            return Ok(());
        }
        let context = self.context(ordinal)?;
        // SAFETY: the context stays alive until the process ends.
        unsafe { self.api.cuCtxSetCurrent(context) }.hip()
    }

    /// Makes a device's context the driver's current one of this thread for as long as the result lives. HIP has no
    /// such notion, and a program may use CUDA beside it, whose current context must come back.
    pub(crate) fn enter(&self, ordinal: hipDevice_t) -> Outcome<Current<'_>> {
        let context = self.context(ordinal)?;
        // SAFETY: the context stays alive until the process ends.
        unsafe { self.api.cuCtxPushCurrent_v2(context) }.hip()?;
        Ok(Current(&self.api))
    }
}

/// A context that is current.
pub(crate) struct Current<'a>(&'a DriverApi);

impl Drop for Current<'_> {
    fn drop(&mut self) {
        let mut context = null_mut();
        // SAFETY: the pointer is a valid place for a handle. The pushed context is on top.
        let _ = unsafe { self.0.cuCtxPopCurrent_v2(&mut context) };
    }
}

/// The device of this thread.
pub(crate) fn device() -> hipDevice_t {
    DEVICE.get()
}

/// Chooses the device of this thread.
pub(crate) fn set_device(ordinal: hipDevice_t) {
    DEVICE.set(ordinal);
}

/// The last status; `take` makes it a success.
pub(crate) fn last(take: bool) -> hipError_t {
    if take { LAST.replace(hipError_t::SUCCESS) } else { LAST.get() }
}

/// The status of a call, which is remembered for `hipGetLastError`: up to ROCm 6 that of every call, since 7 only a
/// failure, and never "not ready".
pub(crate) fn call(body: impl FnOnce() -> Outcome) -> hipError_t {
    let status = body().err().unwrap_or(hipError_t::SUCCESS);
    if is_remembered(status, Version::current()) {
        LAST.set(status);
    }
    status
}

fn is_remembered(status: hipError_t, version: Version) -> bool {
    version < Version::V7 || !matches!(status, hipError_t::SUCCESS | hipError_t::NOT_READY)
}

/// The status of a call that works on the device of this thread.
pub(crate) fn on_device(body: impl FnOnce(&'static Cuda) -> Outcome) -> hipError_t {
    call(|| {
        let cuda = cuda()?;
        let _current = cuda.enter(device())?;
        body(cuda)
    })
}

/// Writes a result through a pointer of the caller.
///
/// # Safety
/// `target` is null or leads to room for a value.
pub(crate) unsafe fn put<T>(target: *mut T, value: T) -> Outcome {
    if target.is_null() {
        return Err(hipError_t::INVALID_VALUE);
    }
    // SAFETY: the caller's promise; not null.
    unsafe { target.write(value) };
    Ok(())
}

/// An error if a pointer that must lead somewhere is null.
pub(crate) fn not_null<T: ?Sized>(pointer: *const T) -> Outcome {
    if pointer.is_null() { Err(hipError_t::INVALID_VALUE) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_status_is_remembered_as_the_version_does() {
        assert!(is_remembered(hipError_t::SUCCESS, Version::V5));
        assert!(is_remembered(hipError_t::NOT_READY, Version::V6));
        assert!(!is_remembered(hipError_t::SUCCESS, Version::V7));
        assert!(!is_remembered(hipError_t::NOT_READY, Version::V7));
        assert!(is_remembered(hipError_t::INVALID_VALUE, Version::V7));
    }

    #[test]
    fn each_thread_has_a_device_and_a_last_status() {
        set_device(3);
        let _ = call(|| Err(hipError_t::INVALID_VALUE));
        let other = std::thread::spawn(|| (device(), last(false)));
        assert_eq!(other.join().unwrap(), (0, hipError_t::SUCCESS));
        assert_eq!(
            (device(), last(false), last(true)),
            (3, hipError_t::INVALID_VALUE, hipError_t::INVALID_VALUE)
        );
        assert_eq!(last(false), hipError_t::SUCCESS);
    }

    #[test]
    fn null_is_refused() {
        // SAFETY: null is allowed.
        assert_eq!(unsafe { put(null_mut::<u8>(), 1) }, Err(hipError_t::INVALID_VALUE));
        assert_eq!(not_null(&raw const *"text"), Ok(()));
    }
}
