//! Copies and fills.

use crate::{
    INVALID_VALUE, Status,
    capture::{LEGACY, Work},
    driver,
    memory::{around, at, check},
    stream::{enqueue, now},
};
use cudarc::driver::sys::*;
use std::ffi::{c_uchar, c_uint, c_ushort, c_void};

/// Copies of rows: address, distance of rows and of planes in bytes.
fn boxes(
    to: (u64, [usize; 2]),
    from: (u64, [usize; 2]),
    [bytes, rows, planes]: [usize; 3],
) -> Result<Work, Status> {
    for (address, [pitch, slice]) in [to, from] {
        check(address, slice * (planes - 1) + pitch * (rows - 1) + bytes)?;
    }
    Ok(Box::new(move || {
        for (plane, row) in (0..planes).flat_map(|plane| (0..rows).map(move |row| (plane, row))) {
            let offset = |(_, [pitch, slice]): (u64, [usize; 2])| (plane * slice + row * pitch) as u64;
            // SAFETY: both rows lie in memory that was checked, or in the program's own.
            unsafe { std::ptr::copy(at(from.0 + offset(from)), at(to.0 + offset(to)), bytes) };
        }
    }))
}

fn run(to: u64, from: u64, bytes: usize) -> Result<Work, Status> {
    boxes((to, [0; 2]), (from, [0; 2]), [bytes, 1, 1])
}

unsafe fn plane(copy: *const CUDA_MEMCPY2D) -> Result<Work, Status> {
    // SAFETY: the caller's structure.
    let c = unsafe { &*copy };
    let side = |device: u64, x: usize, y: usize, pitch: usize| (device + (y * pitch + x) as u64, [pitch, 0]);
    boxes(
        side(c.dstDevice, c.dstXInBytes, c.dstY, c.dstPitch),
        side(c.srcDevice, c.srcXInBytes, c.srcY, c.srcPitch),
        [c.WidthInBytes, c.Height, 1],
    )
}

unsafe fn volume(copy: *const CUDA_MEMCPY3D) -> Result<Work, Status> {
    // SAFETY: the caller's structure.
    let c = unsafe { &*copy };
    let side = |device: u64, [x, y, z]: [usize; 3], pitch: usize, height: usize| {
        (device + ((z * height + y) * pitch + x) as u64, [pitch, pitch * height])
    };
    boxes(
        side(c.dstDevice, [c.dstXInBytes, c.dstY, c.dstZ], c.dstPitch, c.dstHeight),
        side(c.srcDevice, [c.srcXInBytes, c.srcY, c.srcZ], c.srcPitch, c.srcHeight),
        [c.WidthInBytes, c.Height, c.Depth],
    )
}

/// Fills with a pattern: address, distance of rows in bytes, elements of a row, rows.
fn fill(to: u64, pitch: usize, pattern: &[u8], count: usize, rows: usize) -> Result<Work, Status> {
    if !to.is_multiple_of(pattern.len() as u64) {
        return Err(INVALID_VALUE);
    }
    around(to).ok_or(INVALID_VALUE)?;
    check(to, pitch * (rows - 1) + pattern.len() * count)?;
    let pattern = pattern.to_vec();
    Ok(Box::new(move || {
        for row in (0..rows).map(|row| at(to + (row * pitch) as u64)) {
            // SAFETY: the elements lie in memory that was checked.
            unsafe {
                match *pattern {
                    [byte] => row.write_bytes(byte, count),
                    _ => (0..count).for_each(|element| {
                        let to = row.add(element * pattern.len());
                        to.copy_from_nonoverlapping(pattern.as_ptr(), pattern.len());
                    }),
                }
            }
        }
    }))
}

driver! {
    #[On(LEGACY)]
    in _device fn cuMemcpy(to: CUdeviceptr, from: CUdeviceptr, bytes: usize) {
        now(run(to, from, bytes)?)
    }

    #[On(stream)]
    in device fn cuMemcpyAsync(to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream) {
        enqueue(device, stream, run(to, from, bytes)?)
    }

    #[On(LEGACY)]
    in _device fn cuMemcpyPeer(
        to: CUdeviceptr,
        _to_context: CUcontext,
        from: CUdeviceptr,
        _from_context: CUcontext,
        bytes: usize,
    ) {
        now(run(to, from, bytes)?)
    }

    #[On(stream)]
    in device fn cuMemcpyHtoDAsync_v2(to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream) {
        enqueue(device, stream, run(to, from.expose_provenance() as u64, bytes)?)
    }

    #[On(stream)]
    in device fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream) {
        enqueue(device, stream, run(to.expose_provenance() as u64, from, bytes)?)
    }

    #[On(stream)]
    in device fn cuMemcpyDtoDAsync_v2(to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream) {
        enqueue(device, stream, run(to, from, bytes)?)
    }

    #[On(stream)]
    in device fn cuMemcpyPeerAsync(
        to: CUdeviceptr,
        _to_context: CUcontext,
        from: CUdeviceptr,
        _from_context: CUcontext,
        bytes: usize,
        stream: CUstream,
    ) {
        enqueue(device, stream, run(to, from, bytes)?)
    }

    #[On(LEGACY)]
    in _device fn cuMemcpy2DUnaligned_v2(copy: *const CUDA_MEMCPY2D) {
        // SAFETY: the caller's structure.
        now(unsafe { plane(copy) }?)
    }

    #[On(stream)]
    in device fn cuMemcpy2DAsync_v2(copy: *const CUDA_MEMCPY2D, stream: CUstream) {
        // SAFETY: the caller's structure.
        enqueue(device, stream, unsafe { plane(copy) }?)
    }

    #[On(LEGACY)]
    in _device fn cuMemcpy3D_v2(copy: *const CUDA_MEMCPY3D) {
        // SAFETY: the caller's structure.
        now(unsafe { volume(copy) }?)
    }

    #[On(stream)]
    in device fn cuMemcpy3DAsync_v2(copy: *const CUDA_MEMCPY3D, stream: CUstream) {
        // SAFETY: the caller's structure.
        enqueue(device, stream, unsafe { volume(copy) }?)
    }

    #[On(LEGACY)]
    in _device fn cuMemsetD8_v2(to: CUdeviceptr, value: c_uchar, count: usize) {
        now(fill(to, 0, &[value], count, 1)?)
    }

    #[On(LEGACY)]
    in _device fn cuMemsetD16_v2(to: CUdeviceptr, value: c_ushort, count: usize) {
        now(fill(to, 0, &value.to_ne_bytes(), count, 1)?)
    }

    #[On(LEGACY)]
    in _device fn cuMemsetD32_v2(to: CUdeviceptr, value: c_uint, count: usize) {
        now(fill(to, 0, &value.to_ne_bytes(), count, 1)?)
    }

    #[On(stream)]
    in device fn cuMemsetD8Async(to: CUdeviceptr, value: c_uchar, count: usize, stream: CUstream) {
        enqueue(device, stream, fill(to, 0, &[value], count, 1)?)
    }

    #[On(stream)]
    in device fn cuMemsetD16Async(to: CUdeviceptr, value: c_ushort, count: usize, stream: CUstream) {
        enqueue(device, stream, fill(to, 0, &value.to_ne_bytes(), count, 1)?)
    }

    #[On(stream)]
    in device fn cuMemsetD32Async(to: CUdeviceptr, value: c_uint, count: usize, stream: CUstream) {
        enqueue(device, stream, fill(to, 0, &value.to_ne_bytes(), count, 1)?)
    }

    #[On(LEGACY)]
    in _device fn cuMemsetD2D8_v2(to: CUdeviceptr, pitch: usize, value: c_uchar, width: usize, rows: usize) {
        now(fill(to, pitch, &[value], width, rows)?)
    }

    #[On(stream)]
    in device fn cuMemsetD2D8Async(
        to: CUdeviceptr,
        pitch: usize,
        value: c_uchar,
        width: usize,
        rows: usize,
        stream: CUstream,
    ) {
        enqueue(device, stream, fill(to, pitch, &[value], width, rows)?)
    }

    #[On(stream)]
    in device fn cuMemsetD2D16Async(
        to: CUdeviceptr,
        pitch: usize,
        value: c_ushort,
        width: usize,
        rows: usize,
        stream: CUstream,
    ) {
        enqueue(device, stream, fill(to, pitch, &value.to_ne_bytes(), width, rows)?)
    }

    #[On(stream)]
    in device fn cuMemsetD2D32Async(
        to: CUdeviceptr,
        pitch: usize,
        value: c_uint,
        width: usize,
        rows: usize,
        stream: CUstream,
    ) {
        enqueue(device, stream, fill(to, pitch, &value.to_ne_bytes(), width, rows)?)
    }
}
