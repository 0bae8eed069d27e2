//! Managed memory.

use super::exports;
use crate::{
    flags,
    state::{cuda, not_null, on_device, put},
    types::{hipError_t, hipMemRangeAttribute, hipMemoryAdvise, hipStream_t},
};
use cudarc::driver::sys::{CUmem_advise_enum as Advice, CUmem_range_attribute_enum as Range};
use std::ffi::{c_int, c_uint, c_void};

/// The host as a place; CUDA's number is the same.
const HOST: c_int = -1;

/// CUDA's handle of a place that HIP names.
fn place(device: c_int) -> Result<c_int, hipError_t> {
    if device == HOST { Ok(HOST) } else { cuda()?.handle(device) }
}

exports! {
    fn hipMallocManaged(address: *mut *mut c_void, bytes: usize, flags: c_uint) -> hipError_t {
        on_device(|cuda| {
            not_null(address)?;
            let flags = flags::managed(flags)?;
            if bytes == 0 {
                return Err(hipError_t::INVALID_VALUE);
            }
            let mut found = 0;
            // SAFETY: a place for an address; a context is current.
            unsafe { cuda.api.cuMemAllocManaged(&mut found, bytes, flags) }
                .hip()
                .map_err(|error| super::memory::exhausted(cuda, error, bytes))?;
            // SAFETY: the caller's promise.
            unsafe { put(address, std::ptr::with_exposed_provenance_mut(found as usize)) }
        })
    }

    fn hipMemPrefetchAsync(
        address: *const c_void,
        bytes: usize,
        device: c_int,
        stream: hipStream_t,
    ) -> hipError_t {
        on_device(|cuda| {
            not_null(address)?;
            let (place, address) = (place(device)?, address.expose_provenance() as u64);
            // SAFETY: the caller's memory and stream.
            unsafe { cuda.api.cuMemPrefetchAsync(address, bytes, place, stream) }.hip()
        })
    }

    /// Devices are answered with CUDA's ordinals, which are HIP's. There is no grain to ask for.
    fn hipMemRangeGetAttribute(
        value: *mut c_void,
        bytes: usize,
        attribute: hipMemRangeAttribute,
        address: *const c_void,
        count: usize,
    ) -> hipError_t {
        on_device(|cuda| {
            not_null(value)?;
            not_null(address)?;
            let attribute = match attribute {
                1 => Range::CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
                2 => Range::CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION,
                3 => Range::CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY,
                4 => Range::CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION,
                _ => return Err(hipError_t::INVALID_VALUE),
            };
            let address = address.expose_provenance() as u64;
            // SAFETY: the caller has room for so many bytes.
            unsafe { cuda.api.cuMemRangeGetAttribute(value, bytes, attribute, address, count) }.hip()
        })
    }

    /// Advice about the grain changes nothing.
    fn hipMemAdvise(
        address: *const c_void,
        bytes: usize,
        advice: hipMemoryAdvise,
        device: c_int,
    ) -> hipError_t {
        on_device(|cuda| {
            not_null(address)?;
            let advice = match flags::advice(advice)? {
                Some(1) => Advice::CU_MEM_ADVISE_SET_READ_MOSTLY,
                Some(2) => Advice::CU_MEM_ADVISE_UNSET_READ_MOSTLY,
                Some(3) => Advice::CU_MEM_ADVISE_SET_PREFERRED_LOCATION,
                Some(4) => Advice::CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION,
                Some(5) => Advice::CU_MEM_ADVISE_SET_ACCESSED_BY,
                Some(_) => Advice::CU_MEM_ADVISE_UNSET_ACCESSED_BY,
                None => return Ok(()),
            };
            let (place, address) = (place(device)?, address.expose_provenance() as u64);
            // SAFETY: the caller's memory.
            unsafe { cuda.api.cuMemAdvise(address, bytes, advice, place) }.hip()
        })
    }
}
