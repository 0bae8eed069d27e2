//! Queries of an address.

use super::exports;
use crate::{
    error::Outcome,
    regions::Place,
    state::{Cuda, not_null, on_device, put},
    types::{hipDeviceptr_t, hipError_t, hipPointer_attribute, hipPointerAttribute_t},
    version::Version,
};
use cudarc::driver::sys::CUpointer_attribute_enum as Attribute;
use std::{
    ffi::{c_int, c_uint, c_void},
    ptr::{null_mut, with_exposed_provenance_mut},
};

/// One attribute of an address.
///
/// # Safety
/// The attribute is as large as `T`, for which every bit pattern is a value.
unsafe fn attribute<T>(cuda: &Cuda, which: Attribute, address: u64, mut value: T) -> Outcome<T> {
    // SAFETY: a place for the attribute.
    unsafe { cuda.api.cuPointerGetAttribute((&raw mut value).cast(), which, address) }.hip()?;
    Ok(value)
}

/// Where an address leads; unregistered if the driver does not know it.
fn place(cuda: &Cuda, address: u64) -> Outcome<Place> {
    const HOST: c_uint = 1;
    // SAFETY: a memory type is an integer of 32 bits, and so is the answer whether memory is managed.
    let (kind, managed) = unsafe {
        (
            attribute(cuda, Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address, 0u32),
            attribute(cuda, Attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED, address, 0u32),
        )
    };
    match (kind, managed) {
        (Err(hipError_t::INVALID_VALUE), _) => Ok(Place::Unregistered),
        (Err(error), _) => Err(error),
        (_, Ok(managed)) if managed != 0 => Ok(Place::Managed),
        (Ok(HOST), _) => Ok(Place::Host),
        (Ok(_), _) => Ok(Place::Device),
    }
}

/// The address that an attribute names; null if there is none.
fn pointer(cuda: &Cuda, which: Attribute, address: u64) -> *mut c_void {
    // SAFETY: the attribute is an address.
    let found = unsafe { attribute(cuda, which, address, 0u64) }.unwrap_or(0);
    if found == 0 { null_mut() } else { with_exposed_provenance_mut(found as usize) }
}

exports! {
    /// Of memory that is neither allocated nor registered, ROCm 5 says that it is an invalid value, later
    /// versions that it is unregistered.
    fn hipPointerGetAttributes(attributes: *mut hipPointerAttribute_t, address: *const c_void) -> hipError_t {
        const NO_DEVICE: c_int = -2;
        on_device(|cuda| {
            not_null(attributes)?;
            let (version, address) = (Version::current(), address.expose_provenance() as u64);
            let place = place(cuda, address)?;
            let mut found = hipPointerAttribute_t {
                memoryType: place.number(version),
                device: NO_DEVICE,
                devicePointer: null_mut(),
                hostPointer: null_mut(),
                isManaged: c_int::from(place == Place::Managed),
                allocationFlags: 0,
            };
            if place == Place::Unregistered {
                if version == Version::V5 {
                    return Err(hipError_t::INVALID_VALUE);
                }
            } else {
                // SAFETY: an ordinal is an integer of 32 bits.
                found.device =
                    unsafe { attribute(cuda, Attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address, 0)? };
                found.devicePointer =
                    pointer(cuda, Attribute::CU_POINTER_ATTRIBUTE_DEVICE_POINTER, address);
                if place != Place::Device {
                    found.hostPointer = pointer(cuda, Attribute::CU_POINTER_ATTRIBUTE_HOST_POINTER, address);
                }
            }
            // SAFETY: the caller's promise.
            unsafe { put(attributes, found) }
        })
    }

    /// The attributes whose values are the same in CUDA, and the type of memory.
    fn hipPointerGetAttribute(
        value: *mut c_void,
        which: hipPointer_attribute,
        address: hipDeviceptr_t,
    ) -> hipError_t {
        on_device(|cuda| {
            not_null(value)?;
            let address = address.expose_provenance() as u64;
            let native = match which {
                2 => {
                    let number = place(cuda, address)?.number(Version::current());
                    // SAFETY: the caller has room for a type of memory.
                    return unsafe { put(value.cast::<c_uint>(), number) };
                }
                3 => Attribute::CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                4 => Attribute::CU_POINTER_ATTRIBUTE_HOST_POINTER,
                7 => Attribute::CU_POINTER_ATTRIBUTE_BUFFER_ID,
                8 => Attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED,
                9 => Attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                11 => Attribute::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                12 => Attribute::CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                13 => Attribute::CU_POINTER_ATTRIBUTE_MAPPED,
                _ => return Err(hipError_t::NOT_SUPPORTED),
            };
            // SAFETY: the caller has room for the attribute.
            unsafe { cuda.api.cuPointerGetAttribute(value, native, address) }.hip()
        })
    }
}
