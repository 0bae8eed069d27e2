//! Device memory.

use super::exports;
use crate::{
    error::Outcome,
    properties::Reader,
    state::{self, Cuda, not_null, on_device, put},
    types::{hipDeviceptr_t, hipError_t, hipExtent, hipPitchedPtr},
};
use std::{
    ffi::{c_uint, c_void},
    ptr::{null_mut, with_exposed_provenance_mut},
};

/// Requests that HIP reports as out of memory. CUDA reports "invalid value" for sizes that no device could have.
pub(super) fn exhausted(cuda: &Cuda, error: hipError_t, bytes: usize) -> hipError_t {
    let total = || Reader::new(cuda, state::device())?.total_memory();
    if error == hipError_t::INVALID_VALUE && total().is_ok_and(|total| bytes > total) {
        return hipError_t::OUT_OF_MEMORY;
    }
    error
}

/// Memory of this thread's device; none for no bytes.
fn allocate(cuda: &Cuda, bytes: usize) -> Outcome<*mut c_void> {
    if bytes == 0 {
        return Ok(null_mut());
    }
    let mut address = 0;
    // SAFETY: a place for an address; a context is current.
    let status = unsafe { cuda.api.cuMemAlloc_v2(&mut address, bytes) };
    status.hip().map_err(|error| exhausted(cuda, error, bytes))?;
    Ok(with_exposed_provenance_mut(address as usize))
}

/// Rows of bytes with a pitch.
fn allocate_rows(cuda: &Cuda, width: usize, rows: usize, element: c_uint) -> Outcome<(*mut c_void, usize)> {
    if width == 0 || rows == 0 {
        return Ok((null_mut(), 0));
    }
    let (mut address, mut pitch) = (0, 0);
    // SAFETY: places for an address and a size; a context is current.
    let status = unsafe { cuda.api.cuMemAllocPitch_v2(&mut address, &mut pitch, width, rows, element) };
    status.hip().map_err(|error| exhausted(cuda, error, width.saturating_mul(rows)))?;
    Ok((with_exposed_provenance_mut(address as usize), pitch))
}

/// The size of element that CUDA wants to know, which decides nothing on devices of today.
const ELEMENT: c_uint = 16;

exports! {
    /// No bytes are a null address.
    fn hipMalloc(address: *mut *mut c_void, bytes: usize) -> hipError_t {
        on_device(|cuda| {
            not_null(address)?;
            // SAFETY: the caller's promise.
            unsafe { put(address, allocate(cuda, bytes)?) }
        })
    }

    /// Only the default: fine-grained and signal memory have no counterpart.
    fn hipExtMallocWithFlags(address: *mut *mut c_void, bytes: usize, flags: c_uint) -> hipError_t {
        on_device(|cuda| {
            not_null(address)?;
            if flags != 0 {
                return Err(hipError_t::NOT_SUPPORTED);
            }
            // SAFETY: the caller's promise.
            unsafe { put(address, allocate(cuda, bytes)?) }
        })
    }

    /// Null is nothing. The memory may be that of any device.
    fn hipFree(address: *mut c_void) -> hipError_t {
        on_device(|cuda| {
            if address.is_null() {
                return Ok(());
            }
            // SAFETY: the caller uses the memory no more.
            unsafe { cuda.api.cuMemFree_v2(address.expose_provenance() as u64) }.hip()
        })
    }

    /// The pitch is CUDA's.
    fn hipMallocPitch(address: *mut *mut c_void, pitch: *mut usize, width: usize, rows: usize) -> hipError_t {
        on_device(|cuda| {
            not_null(address)?;
            not_null(pitch)?;
            let (found, distance) = allocate_rows(cuda, width, rows, ELEMENT)?;
            // SAFETY: the caller's promise.
            unsafe {
                put(address, found)?;
                put(pitch, distance)
            }
        })
    }

    fn hipMemAllocPitch(
        address: *mut hipDeviceptr_t,
        pitch: *mut usize,
        width: usize,
        rows: usize,
        element: c_uint,
    ) -> hipError_t {
        on_device(|cuda| {
            not_null(address)?;
            not_null(pitch)?;
            let (found, distance) = allocate_rows(cuda, width, rows, element)?;
            // SAFETY: the caller's promise.
            unsafe {
                put(address, found)?;
                put(pitch, distance)
            }
        })
    }

    fn hipMalloc3D(pointer: *mut hipPitchedPtr, extent: hipExtent) -> hipError_t {
        on_device(|cuda| {
            not_null(pointer)?;
            let hipExtent { width, height, depth } = extent;
            let rows = height.checked_mul(depth).ok_or(hipError_t::OUT_OF_MEMORY)?;
            let (ptr, pitch) = allocate_rows(cuda, width, rows, ELEMENT)?;
            // SAFETY: the caller's promise.
            unsafe { put(pointer, hipPitchedPtr { ptr, pitch, xsize: width, ysize: height }) }
        })
    }

    fn hipMemGetInfo(free: *mut usize, total: *mut usize) -> hipError_t {
        on_device(|cuda| {
            not_null(free)?;
            not_null(total)?;
            // SAFETY: the caller has room for two sizes.
            unsafe { cuda.api.cuMemGetInfo_v2(free, total) }.hip()
        })
    }

    fn hipMemGetAddressRange(
        base: *mut hipDeviceptr_t,
        bytes: *mut usize,
        address: hipDeviceptr_t,
    ) -> hipError_t {
        on_device(|cuda| {
            let (mut start, mut length) = (0, 0);
            let address = address.expose_provenance() as u64;
            // SAFETY: places for an address and a size.
            unsafe { cuda.api.cuMemGetAddressRange_v2(&mut start, &mut length, address) }
                .hip()
                .map_err(|_| hipError_t::INVALID_DEVICE_POINTER)?;
            // SAFETY: the caller's promise.
            unsafe {
                put(base, with_exposed_provenance_mut(start as usize))?;
                put(bytes, length)
            }
        })
    }

    /// Bytes of the allocation that begins there.
    fn hipMemPtrGetInfo(address: *mut c_void, bytes: *mut usize) -> hipError_t {
        on_device(|cuda| {
            let (mut start, mut length) = (0, 0);
            let address = address.expose_provenance() as u64;
            // SAFETY: places for an address and a size.
            unsafe { cuda.api.cuMemGetAddressRange_v2(&mut start, &mut length, address) }
                .hip()
                .map_err(|_| hipError_t::INVALID_VALUE)?;
            // SAFETY: the caller's promise.
            unsafe { put(bytes, length) }
        })
    }
}
