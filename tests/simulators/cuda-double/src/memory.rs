//! Memory, copies and fills.

use crate::{
    INVALID_VALUE, OUT_OF_MEMORY, Outcome, Status,
    context::TOTAL,
    driver,
    stream::{Work, enqueue, now},
};
use cudarc::driver::sys::*;
use std::{
    alloc::{Layout, alloc, dealloc},
    collections::BTreeMap,
    ffi::{c_int, c_uchar, c_uint, c_ushort, c_void},
    sync::Mutex,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Device,
    Managed,
    Host,
    Registered,
}

#[derive(Debug, Clone, Copy)]
struct Block {
    bytes: usize,
    kind: Kind,
    device: c_int,
}

static BLOCKS: Mutex<BTreeMap<u64, Block>> = Mutex::new(BTreeMap::new());

/// Whole pages, as the driver takes them, so that no other memory of the program lies on them.
fn layout(bytes: usize) -> Layout {
    const PAGE: usize = 4096;
    Layout::from_size_align(bytes.next_multiple_of(PAGE), PAGE).unwrap()
}

/// The block around an address.
fn around(address: u64) -> Option<(u64, Block)> {
    let (start, block) =
        BLOCKS.lock().unwrap().range(..=address).next_back().map(|(at, block)| (*at, *block))?;
    (address < start + block.bytes as u64).then_some((start, block))
}

fn obtain(bytes: usize, kind: Kind, device: c_int) -> Result<u64, Status> {
    if bytes == 0 {
        return Err(INVALID_VALUE);
    }
    let used = |(_, block): (&u64, &Block)| {
        let counts = block.device == device && matches!(block.kind, Kind::Device | Kind::Managed);
        if counts { block.bytes } else { 0 }
    };
    let mut blocks = BLOCKS.lock().unwrap();
    let taken: usize = blocks.iter().map(used).sum();
    if bytes > TOTAL - taken {
        return Err(OUT_OF_MEMORY);
    }
    // SAFETY: the layout is not empty.
    let address = unsafe { alloc(layout(bytes)) }.expose_provenance() as u64;
    blocks.insert(address, Block { bytes, kind, device });
    Ok(address)
}

fn give_back(address: u64, kinds: &[Kind]) -> Outcome {
    let mut blocks = BLOCKS.lock().unwrap();
    let block =
        blocks.get(&address).copied().filter(|block| kinds.contains(&block.kind)).ok_or(INVALID_VALUE)?;
    blocks.remove(&address);
    let start = std::ptr::with_exposed_provenance_mut(address as usize);
    // SAFETY: the block came from the allocator with this layout.
    unsafe { dealloc(start, layout(block.bytes)) };
    Ok(())
}

/// A range of known memory must lie in one block; the rest is the program's own.
fn check(address: u64, bytes: usize) -> Outcome {
    match around(address) {
        Some((start, block)) if address + bytes as u64 > start + block.bytes as u64 => Err(INVALID_VALUE),
        _ => Ok(()),
    }
}

fn at(address: u64) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(address as usize)
}

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
        for (row, element) in (0..rows).flat_map(|row| (0..count).map(move |element| (row, element))) {
            let to = at(to + (row * pitch + element * pattern.len()) as u64);
            // SAFETY: the element lies in memory that was checked.
            unsafe { std::ptr::copy_nonoverlapping(pattern.as_ptr(), to, pattern.len()) };
        }
    }))
}

driver! {
    in device fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) {
        let blocks = BLOCKS.lock().unwrap();
        let taken: usize = blocks.values().filter(|block| block.device == device).map(|block| block.bytes).sum();
        // SAFETY: the caller has room for both.
        unsafe {
            free.write(TOTAL.saturating_sub(taken));
            total.write(TOTAL);
        }
        Ok(())
    }

    in device fn cuMemAlloc_v2(address: *mut CUdeviceptr, bytes: usize) {
        // SAFETY: the caller has room.
        unsafe { address.write(obtain(bytes, Kind::Device, device)?) };
        Ok(())
    }

    in device fn cuMemAllocPitch_v2(
        address: *mut CUdeviceptr,
        pitch: *mut usize,
        width: usize,
        height: usize,
        _element: c_uint,
    ) {
        let distance = width.next_multiple_of(512);
        // SAFETY: the caller has room for both.
        unsafe {
            address.write(obtain(distance * height, Kind::Device, device)?);
            pitch.write(distance);
        }
        Ok(())
    }

    in _device fn cuMemFree_v2(address: CUdeviceptr) {
        give_back(address, &[Kind::Device, Kind::Managed])
    }

    in device fn cuMemAllocManaged(address: *mut CUdeviceptr, bytes: usize, flags: c_uint) {
        if !matches!(flags, 1 | 2) {
            return Err(INVALID_VALUE);
        }
        // SAFETY: the caller has room.
        unsafe { address.write(obtain(bytes, Kind::Managed, device)?) };
        Ok(())
    }

    in _device fn cuMemAdvise(address: CUdeviceptr, bytes: usize, _advice: CUmem_advise, _device: CUdevice) {
        check(address, bytes)
    }

    in _device fn cuMemPrefetchAsync(
        address: CUdeviceptr,
        bytes: usize,
        _place: CUdevice,
        _stream: CUstream,
    ) {
        let managed = around(address).is_some_and(|(_, block)| block.kind == Kind::Managed);
        if managed { check(address, bytes) } else { Err(INVALID_VALUE) }
    }

    in _device fn cuMemHostAlloc(host: *mut *mut c_void, bytes: usize, flags: c_uint) {
        const PORTABLE_AND_MAPPED: c_uint = 3;
        if flags & PORTABLE_AND_MAPPED != PORTABLE_AND_MAPPED || flags > 7 {
            return Err(INVALID_VALUE);
        }
        // SAFETY: the caller has room.
        unsafe { host.write(at(obtain(bytes, Kind::Host, -1)?).cast()) };
        Ok(())
    }

    in _device fn cuMemFreeHost(host: *mut c_void) {
        give_back(host.expose_provenance() as u64, &[Kind::Host])
    }

    in _device fn cuMemHostGetDevicePointer_v2(address: *mut CUdeviceptr, host: *mut c_void, _flags: c_uint) {
        let start = host.expose_provenance() as u64;
        let known = around(start).is_some_and(|(_, block)| matches!(block.kind, Kind::Host | Kind::Registered));
        if !known {
            return Err(INVALID_VALUE);
        }
        // SAFETY: the caller has room.
        unsafe { address.write(start) };
        Ok(())
    }

    in device fn cuMemHostRegister_v2(host: *mut c_void, bytes: usize, flags: c_uint) {
        const ALREADY_REGISTERED: Status = 712;
        if flags & !3 != 0 || bytes == 0 {
            return Err(INVALID_VALUE);
        }
        let start = host.expose_provenance() as u64;
        if around(start).is_some() {
            return Err(ALREADY_REGISTERED);
        }
        BLOCKS.lock().unwrap().insert(start, Block { bytes, kind: Kind::Registered, device });
        Ok(())
    }

    in _device fn cuMemHostUnregister(host: *mut c_void) {
        const NOT_REGISTERED: Status = 713;
        let (start, mut blocks) = (host.expose_provenance() as u64, BLOCKS.lock().unwrap());
        match blocks.get(&start) {
            Some(block) if block.kind == Kind::Registered => {
                blocks.remove(&start);
                Ok(())
            }
            _ => Err(NOT_REGISTERED),
        }
    }

    in _device fn cuMemGetAddressRange_v2(base: *mut CUdeviceptr, bytes: *mut usize, address: CUdeviceptr) {
        const NOT_FOUND: Status = 500;
        let (start, block) = around(address).ok_or(NOT_FOUND)?;
        // SAFETY: the caller has room for both.
        unsafe {
            base.write(start);
            bytes.write(block.bytes);
        }
        Ok(())
    }

    fn cuPointerGetAttribute(value: *mut c_void, attribute: CUpointer_attribute, address: CUdeviceptr) {
        use CUpointer_attribute_enum as A;
        let (_, Block { kind, device, .. }) = around(address).ok_or(INVALID_VALUE)?;
        let on_device = matches!(kind, Kind::Device | Kind::Managed);
        // SAFETY: the caller has room for the attribute, whose size goes with its name.
        unsafe {
            match attribute {
                A::CU_POINTER_ATTRIBUTE_MEMORY_TYPE => value.cast::<u32>().write(1 + u32::from(on_device)),
                A::CU_POINTER_ATTRIBUTE_IS_MANAGED => value.cast::<u32>().write((kind == Kind::Managed).into()),
                A::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL => value.cast::<c_int>().write(device.max(0)),
                A::CU_POINTER_ATTRIBUTE_DEVICE_POINTER => value.cast::<u64>().write(address),
                A::CU_POINTER_ATTRIBUTE_HOST_POINTER if kind != Kind::Device => value.cast::<u64>().write(address),
                _ => return Err(INVALID_VALUE),
            }
        }
        Ok(())
    }

    in _device fn cuMemcpy(to: CUdeviceptr, from: CUdeviceptr, bytes: usize) {
        now(run(to, from, bytes)?)
    }

    in device fn cuMemcpyAsync(to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream) {
        enqueue(device, stream, run(to, from, bytes)?)
    }

    in _device fn cuMemcpyPeer(
        to: CUdeviceptr,
        _to_context: CUcontext,
        from: CUdeviceptr,
        _from_context: CUcontext,
        bytes: usize,
    ) {
        now(run(to, from, bytes)?)
    }

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

    in _device fn cuMemcpy2DUnaligned_v2(copy: *const CUDA_MEMCPY2D) {
        // SAFETY: the caller's structure.
        now(unsafe { plane(copy) }?)
    }

    in device fn cuMemcpy2DAsync_v2(copy: *const CUDA_MEMCPY2D, stream: CUstream) {
        // SAFETY: the caller's structure.
        enqueue(device, stream, unsafe { plane(copy) }?)
    }

    in _device fn cuMemcpy3D_v2(copy: *const CUDA_MEMCPY3D) {
        // SAFETY: the caller's structure.
        now(unsafe { volume(copy) }?)
    }

    in device fn cuMemcpy3DAsync_v2(copy: *const CUDA_MEMCPY3D, stream: CUstream) {
        // SAFETY: the caller's structure.
        enqueue(device, stream, unsafe { volume(copy) }?)
    }

    in _device fn cuMemsetD8_v2(to: CUdeviceptr, value: c_uchar, count: usize) {
        now(fill(to, 0, &[value], count, 1)?)
    }

    in _device fn cuMemsetD16_v2(to: CUdeviceptr, value: c_ushort, count: usize) {
        now(fill(to, 0, &value.to_ne_bytes(), count, 1)?)
    }

    in _device fn cuMemsetD32_v2(to: CUdeviceptr, value: c_uint, count: usize) {
        now(fill(to, 0, &value.to_ne_bytes(), count, 1)?)
    }

    in device fn cuMemsetD8Async(to: CUdeviceptr, value: c_uchar, count: usize, stream: CUstream) {
        enqueue(device, stream, fill(to, 0, &[value], count, 1)?)
    }

    in device fn cuMemsetD16Async(to: CUdeviceptr, value: c_ushort, count: usize, stream: CUstream) {
        enqueue(device, stream, fill(to, 0, &value.to_ne_bytes(), count, 1)?)
    }

    in device fn cuMemsetD32Async(to: CUdeviceptr, value: c_uint, count: usize, stream: CUstream) {
        enqueue(device, stream, fill(to, 0, &value.to_ne_bytes(), count, 1)?)
    }

    in _device fn cuMemsetD2D8_v2(to: CUdeviceptr, pitch: usize, value: c_uchar, width: usize, rows: usize) {
        now(fill(to, pitch, &[value], width, rows)?)
    }

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
}
