//! Page-locked host memory.

use super::exports;
use crate::{
    error::Outcome,
    flags,
    state::{Cuda, not_null, on_device, put},
    types::hipError_t,
    version::Version,
};
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    ffi::{c_uint, c_void},
    ptr::{null_mut, with_exposed_provenance_mut},
};

/// The flags that host memory was allocated or registered with, by its first address. CUDA would report its own flags
/// and not HIP's.
static FLAGS: Mutex<BTreeMap<usize, c_uint>> = Mutex::new(BTreeMap::new());

fn allocate(cuda: &Cuda, bytes: usize, flags: c_uint) -> Outcome<*mut c_void> {
    let translated = flags::host_allocation(flags)?;
    if bytes == 0 {
        return Ok(null_mut());
    }
    let mut host = null_mut();
    // SAFETY: a place for an address; a context is current.
    let status = unsafe { cuda.api.cuMemHostAlloc(&mut host, bytes, translated) };
    // More than the host has or could have.
    const ABSURD: usize = 1 << 46;
    status.hip().map_err(|error| match error {
        hipError_t::OPERATING_SYSTEM => hipError_t::OUT_OF_MEMORY,
        hipError_t::INVALID_VALUE if bytes > ABSURD => hipError_t::OUT_OF_MEMORY,
        other => other,
    })?;
    FLAGS.lock().insert(host.addr(), flags);
    Ok(host)
}

/// # Safety
/// As for [`hipHostMalloc`].
unsafe fn allocate_to(address: *mut *mut c_void, bytes: usize, flags: c_uint) -> hipError_t {
    on_device(|cuda| {
        not_null(address)?;
        // SAFETY: the caller's promise.
        unsafe { put(address, allocate(cuda, bytes, flags)?) }
    })
}

/// # Safety
/// As for [`hipHostFree`].
unsafe fn free(address: *mut c_void) -> hipError_t {
    on_device(|cuda| {
        if address.is_null() {
            return Ok(());
        }
        let flags = FLAGS.lock().remove(&address.addr());
        // SAFETY: the caller uses the memory no more.
        let outcome = unsafe { cuda.api.cuMemFreeHost(address) }.hip();
        if let (Err(_), Some(flags)) = (outcome, flags) {
            FLAGS.lock().insert(address.addr(), flags);
        }
        outcome
    })
}

exports! {
    /// Always portable and mapped, as HIP's is. No bytes are a null address.
    fn hipHostMalloc(address: *mut *mut c_void, bytes: usize, flags: c_uint) -> hipError_t {
        // SAFETY: the caller's promise.
        unsafe { allocate_to(address, bytes, flags) }
    }

    fn hipHostAlloc(address: *mut *mut c_void, bytes: usize, flags: c_uint) -> hipError_t {
        // SAFETY: the caller's promise.
        unsafe { allocate_to(address, bytes, flags) }
    }

    fn hipMallocHost(address: *mut *mut c_void, bytes: usize) -> hipError_t {
        // SAFETY: the caller's promise.
        unsafe { allocate_to(address, bytes, 0) }
    }

    fn hipMemAllocHost(address: *mut *mut c_void, bytes: usize) -> hipError_t {
        // SAFETY: the caller's promise.
        unsafe { allocate_to(address, bytes, 0) }
    }

    fn hipHostFree(address: *mut c_void) -> hipError_t {
        // SAFETY: the caller's promise.
        unsafe { free(address) }
    }

    fn hipFreeHost(address: *mut c_void) -> hipError_t {
        // SAFETY: the caller's promise.
        unsafe { free(address) }
    }

    /// Host and device address are equal here, so that a program that mixes them up is not found. `rocsim` finds it.
    fn hipHostGetDevicePointer(device: *mut *mut c_void, host: *mut c_void, flags: c_uint) -> hipError_t {
        on_device(|cuda| {
            not_null(device)?;
            not_null(host)?;
            if flags != 0 {
                return Err(hipError_t::INVALID_VALUE);
            }
            let mut address = 0;
            // SAFETY: a place for an address; the driver looks the host's up.
            unsafe { cuda.api.cuMemHostGetDevicePointer_v2(&mut address, host, 0) }.hip()?;
            // SAFETY: the caller's promise.
            unsafe { put(device, with_exposed_provenance_mut(address as usize)) }
        })
    }

    /// The flags that HIP was told.
    fn hipHostGetFlags(flags: *mut c_uint, host: *mut c_void) -> hipError_t {
        on_device(|_| {
            let found = FLAGS.lock().get(&host.addr()).copied();
            // SAFETY: the caller's promise.
            unsafe { put(flags, found.ok_or(hipError_t::INVALID_VALUE)?) }
        })
    }

    /// Always portable and mapped, as HIP's is. Registering memory a second time is an error, which AMD's library
    /// lets pass.
    fn hipHostRegister(host: *mut c_void, bytes: usize, flags: c_uint) -> hipError_t {
        on_device(|cuda| {
            not_null(host)?;
            if bytes == 0 {
                // As AMD's versions have it.
                let before = Version::current() == Version::V5;
                return Err(if before { hipError_t::OUT_OF_MEMORY } else { hipError_t::INVALID_VALUE });
            }
            let translated = flags::host_registration(flags)?;
            // SAFETY: the caller keeps the memory until it is unregistered.
            unsafe { cuda.api.cuMemHostRegister_v2(host, bytes, translated) }.hip()?;
            FLAGS.lock().insert(host.addr(), flags);
            Ok(())
        })
    }

    fn hipHostUnregister(host: *mut c_void) -> hipError_t {
        on_device(|cuda| {
            if host.is_null() {
                return Err(hipError_t::HOST_MEMORY_NOT_REGISTERED);
            }
            // SAFETY: the caller's device work uses the memory no more; the driver looks it up.
            unsafe { cuda.api.cuMemHostUnregister(host) }.hip()?;
            FLAGS.lock().remove(&host.addr());
            Ok(())
        })
    }
}
