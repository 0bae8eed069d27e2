//! Fills.

use super::exports;
use crate::{
    driver::{DriverApi, Status},
    regions,
    state::{not_null, on_device},
    types::{hipDeviceptr_t, hipError_t, hipExtent, hipPitchedPtr, hipStream_t},
};
use std::ffi::{c_int, c_uchar, c_uint, c_ushort, c_void};

/// Fills a run of elements; nothing if there are none.
fn run(
    address: *mut c_void,
    count: usize,
    fill: impl FnOnce(&DriverApi, u64, usize) -> Status,
) -> hipError_t {
    on_device(|cuda| {
        if count == 0 {
            return Ok(());
        }
        not_null(address)?;
        fill(&cuda.api, address.expose_provenance() as u64, count).hip()
    })
}

/// Fills rows of bytes on a stream, or at once.
fn rows(pointer: hipPitchedPtr, value: c_int, extent: [usize; 3], stream: Option<hipStream_t>) -> hipError_t {
    on_device(|cuda| {
        let (value, [width, ..]) = (value as c_uchar, extent);
        for (address, rows) in regions::fills(&pointer, extent)? {
            // SAFETY: the caller's memory and stream; the rows lie within it.
            let status = unsafe {
                match stream {
                    None => cuda.api.cuMemsetD2D8_v2(address, pointer.pitch, value, width, rows),
                    Some(stream) => {
                        cuda.api.cuMemsetD2D8Async(address, pointer.pitch, value, width, rows, stream)
                    }
                }
            };
            status.hip()?;
        }
        Ok(())
    })
}

/// Rows of one plane.
fn plane(address: *mut c_void, pitch: usize, rows: usize) -> hipPitchedPtr {
    hipPitchedPtr { ptr: address, pitch, xsize: pitch, ysize: rows }
}

exports! {
    fn hipMemset(address: *mut c_void, value: c_int, bytes: usize) -> hipError_t {
        // SAFETY: the caller's memory.
        run(address, bytes, |api, at, count| unsafe { api.cuMemsetD8_v2(at, value as c_uchar, count) })
    }

    fn hipMemsetAsync(address: *mut c_void, value: c_int, bytes: usize, stream: hipStream_t) -> hipError_t {
        let value = value as c_uchar;
        // SAFETY: the caller's memory and stream.
        run(address, bytes, |api, at, count| unsafe { api.cuMemsetD8Async(at, value, count, stream) })
    }

    fn hipMemsetD8(address: hipDeviceptr_t, value: c_uchar, count: usize) -> hipError_t {
        // SAFETY: the caller's memory.
        run(address, count, |api, at, count| unsafe { api.cuMemsetD8_v2(at, value, count) })
    }

    fn hipMemsetD8Async(
        address: hipDeviceptr_t,
        value: c_uchar,
        count: usize,
        stream: hipStream_t,
    ) -> hipError_t {
        // SAFETY: the caller's memory and stream.
        run(address, count, |api, at, count| unsafe { api.cuMemsetD8Async(at, value, count, stream) })
    }

    fn hipMemsetD16(address: hipDeviceptr_t, value: c_ushort, count: usize) -> hipError_t {
        // SAFETY: the caller's memory.
        run(address, count, |api, at, count| unsafe { api.cuMemsetD16_v2(at, value, count) })
    }

    fn hipMemsetD16Async(
        address: hipDeviceptr_t,
        value: c_ushort,
        count: usize,
        stream: hipStream_t,
    ) -> hipError_t {
        // SAFETY: the caller's memory and stream.
        run(address, count, |api, at, count| unsafe { api.cuMemsetD16Async(at, value, count, stream) })
    }

    fn hipMemsetD32(address: hipDeviceptr_t, value: c_int, count: usize) -> hipError_t {
        // SAFETY: the caller's memory.
        run(address, count, |api, at, count| unsafe { api.cuMemsetD32_v2(at, value as c_uint, count) })
    }

    fn hipMemsetD32Async(
        address: hipDeviceptr_t,
        value: c_int,
        count: usize,
        stream: hipStream_t,
    ) -> hipError_t {
        let value = value as c_uint;
        // SAFETY: the caller's memory and stream.
        run(address, count, |api, at, count| unsafe { api.cuMemsetD32Async(at, value, count, stream) })
    }

    fn hipMemset2D(
        address: *mut c_void,
        pitch: usize,
        value: c_int,
        width: usize,
        height: usize,
    ) -> hipError_t {
        rows(plane(address, pitch, height), value, [width, height, 1], None)
    }

    fn hipMemset2DAsync(
        address: *mut c_void,
        pitch: usize,
        value: c_int,
        width: usize,
        height: usize,
        stream: hipStream_t,
    ) -> hipError_t {
        rows(plane(address, pitch, height), value, [width, height, 1], Some(stream))
    }

    /// One fill for each plane if there is a gap between them.
    fn hipMemset3D(pointer: hipPitchedPtr, value: c_int, extent: hipExtent) -> hipError_t {
        rows(pointer, value, [extent.width, extent.height, extent.depth], None)
    }

    /// As [`hipMemset3D`].
    fn hipMemset3DAsync(
        pointer: hipPitchedPtr,
        value: c_int,
        extent: hipExtent,
        stream: hipStream_t,
    ) -> hipError_t {
        rows(pointer, value, [extent.width, extent.height, extent.depth], Some(stream))
    }
}
