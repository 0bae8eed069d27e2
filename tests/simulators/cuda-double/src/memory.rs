//! Memory.

use crate::{INVALID_VALUE, OUT_OF_MEMORY, Outcome, Status, context::TOTAL, driver};
use cudarc::driver::sys::*;
use std::{
    alloc::{Layout, alloc, dealloc},
    collections::BTreeMap,
    ffi::{c_int, c_uint, c_void},
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
pub(crate) struct Block {
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
pub(crate) fn around(address: u64) -> Option<(u64, Block)> {
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
pub(crate) fn check(address: u64, bytes: usize) -> Outcome {
    match around(address) {
        Some((start, block)) if address + bytes as u64 > start + block.bytes as u64 => Err(INVALID_VALUE),
        _ => Ok(()),
    }
}

pub(crate) fn at(address: u64) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(address as usize)
}

/// # Safety
/// There is room for the attribute, whose size goes with its name.
unsafe fn put_attribute(
    value: *mut c_void,
    attribute: CUpointer_attribute,
    (start, Block { bytes, kind, device }): (u64, Block),
    address: u64,
) -> Outcome {
    use CUpointer_attribute_enum as A;
    let on_device = matches!(kind, Kind::Device | Kind::Managed);
    // SAFETY: the caller's promise.
    unsafe {
        match attribute {
            A::CU_POINTER_ATTRIBUTE_MEMORY_TYPE => value.cast::<u32>().write(1 + u32::from(on_device)),
            A::CU_POINTER_ATTRIBUTE_IS_MANAGED => value.cast::<u32>().write((kind == Kind::Managed).into()),
            A::CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE => {
                value.cast::<u32>().write((kind == Kind::Device).into());
            }
            A::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL => value.cast::<c_int>().write(device.max(0)),
            A::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR => value.cast::<u64>().write(start),
            A::CU_POINTER_ATTRIBUTE_RANGE_SIZE => value.cast::<usize>().write(bytes),
            A::CU_POINTER_ATTRIBUTE_DEVICE_POINTER => value.cast::<u64>().write(address),
            A::CU_POINTER_ATTRIBUTE_HOST_POINTER if kind != Kind::Device => {
                value.cast::<u64>().write(address)
            }
            _ => return Err(INVALID_VALUE),
        }
    }
    Ok(())
}

driver! {
    #[Free]
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

    #[Unsafe]
    in device fn cuMemAlloc_v2(address: *mut CUdeviceptr, bytes: usize) {
        // SAFETY: the caller has room.
        unsafe { address.write(obtain(bytes, Kind::Device, device)?) };
        Ok(())
    }

    #[Unsafe]
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

    #[Unsafe]
    in _device fn cuMemFree_v2(address: CUdeviceptr) {
        give_back(address, &[Kind::Device, Kind::Managed])
    }

    #[Unsafe]
    in device fn cuMemAllocManaged(address: *mut CUdeviceptr, bytes: usize, flags: c_uint) {
        if !matches!(flags, 1 | 2) {
            return Err(INVALID_VALUE);
        }
        // SAFETY: the caller has room.
        unsafe { address.write(obtain(bytes, Kind::Managed, device)?) };
        Ok(())
    }

    #[Unsafe]
    in _device fn cuMemAdvise(address: CUdeviceptr, bytes: usize, _advice: CUmem_advise, _device: CUdevice) {
        check(address, bytes)
    }

    #[Never(stream)]
    in _device fn cuMemPrefetchAsync(
        address: CUdeviceptr,
        bytes: usize,
        _place: CUdevice,
        stream: CUstream,
    ) {
        let _ = stream;
        let managed = around(address).is_some_and(|(_, block)| block.kind == Kind::Managed);
        if managed { check(address, bytes) } else { Err(INVALID_VALUE) }
    }

    #[Unsafe]
    in _device fn cuMemHostAlloc(host: *mut *mut c_void, bytes: usize, flags: c_uint) {
        if flags > 7 {
            return Err(INVALID_VALUE);
        }
        // SAFETY: the caller has room.
        unsafe { host.write(at(obtain(bytes, Kind::Host, -1)?).cast()) };
        Ok(())
    }

    #[Unsafe]
    in _device fn cuMemFreeHost(host: *mut c_void) {
        give_back(host.expose_provenance() as u64, &[Kind::Host])
    }

    #[Free]
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

    #[Unsafe]
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

    #[Unsafe]
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

    #[Free]
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

    #[Free]
    fn cuPointerGetAttribute(value: *mut c_void, attribute: CUpointer_attribute, address: CUdeviceptr) {
        // SAFETY: the caller has room for the attribute, whose size goes with its name.
        unsafe { put_attribute(value, attribute, around(address).ok_or(INVALID_VALUE)?, address) }
    }

    // Memory that the driver does not know is no error here.
    #[Free]
    fn cuPointerGetAttributes(
        count: c_uint,
        attributes: *mut CUpointer_attribute,
        values: *mut *mut c_void,
        address: CUdeviceptr,
    ) {
        let Some(found) = around(address) else { return Ok(()) };
        // SAFETY: the caller has as many of both as it says, with room for each attribute.
        (0..count as usize).try_for_each(|at| unsafe {
            put_attribute(*values.add(at), *attributes.add(at), found, address)
        })
    }
}
