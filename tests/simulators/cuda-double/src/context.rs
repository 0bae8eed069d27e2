//! Devices and contexts.

use crate::{INVALID_CONTEXT, INVALID_DEVICE, INVALID_VALUE, Outcome, Status, driver};
use cudarc::driver::sys::*;
use std::{
    cell::RefCell,
    collections::HashSet,
    ffi::{CStr, c_char, c_int, c_uint},
    ptr::{null_mut, without_provenance_mut},
    sync::Mutex,
};

/// Number of devices.
pub(crate) const DEVICES: c_int = 2;
/// Memory of each device.
pub(crate) const TOTAL: usize = 1 << 30;

thread_local! {
    static STACK: RefCell<Vec<CUcontext>> = const { RefCell::new(Vec::new()) };
}

/// Pairs of devices, of which the first reaches the second's memory.
static PEERS: Mutex<Option<HashSet<(c_int, c_int)>>> = Mutex::new(None);

/// Contexts are numbers above their device's.
const BASE: usize = 0x1000;

fn check(device: c_int) -> Result<c_int, Status> {
    if (0..DEVICES).contains(&device) { Ok(device) } else { Err(INVALID_DEVICE) }
}

pub(crate) fn device_of(context: CUcontext) -> Result<c_int, Status> {
    let device = context.addr().checked_sub(BASE).and_then(|device| c_int::try_from(device).ok());
    device.and_then(|device| check(device).ok()).ok_or(INVALID_CONTEXT)
}

/// The device of the current context.
pub(crate) fn current() -> Result<c_int, Status> {
    STACK.with_borrow(|stack| stack.last().copied()).ok_or(INVALID_CONTEXT).and_then(device_of)
}

/// Writes text with its final zero.
unsafe fn put_text(target: *mut c_char, room: c_int, text: &str) -> Outcome {
    if text.len() >= room as usize {
        return Err(INVALID_VALUE);
    }
    for (at, byte) in text.bytes().chain([0]).enumerate() {
        // SAFETY: it fits, says the caller's `room`.
        unsafe { target.add(at).write(byte as c_char) };
    }
    Ok(())
}

fn bus_id(device: c_int) -> String {
    format!("0000:{:02X}:00.0", 0x41 + device)
}

fn number(attribute: CUdevice_attribute, device: c_int) -> c_int {
    use CUdevice_attribute_enum as A;
    match attribute {
        A::CU_DEVICE_ATTRIBUTE_WARP_SIZE => 32,
        A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK | A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X => 1024,
        A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X | A::CU_DEVICE_ATTRIBUTE_MAX_PITCH => c_int::MAX,
        A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT => 7,
        A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK => 49_152,
        A::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID => 0x41 + device,
        A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR => 9,
        A::CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY
        | A::CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY
        | A::CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING
        | A::CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED => 1,
        A::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS => {
            std::env::var_os("CUDA_DOUBLE_CONCURRENT_MANAGED_ACCESS").is_none_or(|given| given != "0").into()
        }
        _ => 0,
    }
}

driver! {
    #[Free]
    fn cuInit(flags: c_uint) {
        if flags == 0 { Ok(()) } else { Err(INVALID_VALUE) }
    }

    #[Free]
    fn cuDriverGetVersion(version: *mut c_int) {
        // SAFETY: the caller has room.
        unsafe { version.write(12_080) };
        Ok(())
    }

    #[Free]
    fn cuDeviceGetCount(count: *mut c_int) {
        // SAFETY: the caller has room.
        unsafe { count.write(DEVICES) };
        Ok(())
    }

    #[Free]
    fn cuDeviceGet(device: *mut CUdevice, ordinal: c_int) {
        // SAFETY: the caller has room.
        unsafe { device.write(check(ordinal)?) };
        Ok(())
    }

    #[Free]
    fn cuDeviceGetName(name: *mut c_char, length: c_int, device: CUdevice) {
        // SAFETY: the caller has that much room.
        unsafe { put_text(name, length, &format!("Double {}", check(device)?)) }
    }

    #[Free]
    fn cuDeviceGetUuid_v2(uuid: *mut CUuuid, device: CUdevice) {
        // SAFETY: the caller has room.
        unsafe { uuid.write(CUuuid { bytes: [check(device)? as c_char + 1; 16] }) };
        Ok(())
    }

    #[Free]
    fn cuDeviceGetPCIBusId(text: *mut c_char, length: c_int, device: CUdevice) {
        // SAFETY: the caller has that much room.
        unsafe { put_text(text, length, &bus_id(check(device)?)) }
    }

    #[Free]
    fn cuDeviceGetByPCIBusId(device: *mut CUdevice, text: *const c_char) {
        // SAFETY: the caller's text ends with a zero.
        let text = unsafe { CStr::from_ptr(text) }.to_str().map_err(|_| INVALID_VALUE)?;
        let found = (0..DEVICES).find(|device| bus_id(*device) == text).ok_or(INVALID_DEVICE)?;
        // SAFETY: the caller has room.
        unsafe { device.write(found) };
        Ok(())
    }

    #[Free]
    fn cuDeviceTotalMem_v2(bytes: *mut usize, device: CUdevice) {
        check(device)?;
        // SAFETY: the caller has room.
        unsafe { bytes.write(TOTAL) };
        Ok(())
    }

    #[Free]
    fn cuDeviceGetAttribute(value: *mut c_int, attribute: CUdevice_attribute, device: CUdevice) {
        // SAFETY: the caller has room.
        unsafe { value.write(number(attribute, check(device)?)) };
        Ok(())
    }

    #[Free]
    fn cuDeviceCanAccessPeer(can: *mut c_int, device: CUdevice, peer: CUdevice) {
        // SAFETY: the caller has room.
        unsafe { can.write(c_int::from(check(device)? != check(peer)?)) };
        Ok(())
    }

    #[Free]
    fn cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice) {
        // SAFETY: the caller has room.
        unsafe { context.write(without_provenance_mut(BASE + check(device)? as usize)) };
        Ok(())
    }

    #[Free]
    fn cuDevicePrimaryCtxRelease_v2(device: CUdevice) {
        check(device).map(drop)
    }

    #[Context]
    fn cuDevicePrimaryCtxReset_v2(device: CUdevice) {
        check(device).map(drop)
    }

    #[Free]
    fn cuDevicePrimaryCtxSetFlags_v2(device: CUdevice, _flags: c_uint) {
        check(device).map(drop)
    }

    #[Free]
    fn cuDevicePrimaryCtxGetState(device: CUdevice, flags: *mut c_uint, active: *mut c_int) {
        check(device)?;
        // SAFETY: the caller has room for both.
        unsafe {
            flags.write(0);
            active.write(1);
        }
        Ok(())
    }

    #[Free]
    fn cuCtxPushCurrent_v2(context: CUcontext) {
        device_of(context)?;
        STACK.with_borrow_mut(|stack| stack.push(context));
        Ok(())
    }

    #[Free]
    fn cuCtxPopCurrent_v2(context: *mut CUcontext) {
        let popped = STACK.with_borrow_mut(Vec::pop).ok_or(INVALID_CONTEXT)?;
        // SAFETY: the caller has room.
        unsafe { context.write(popped) };
        Ok(())
    }

    #[Free]
    fn cuCtxGetCurrent(context: *mut CUcontext) {
        // SAFETY: the caller has room.
        unsafe { context.write(STACK.with_borrow(|stack| stack.last().copied().unwrap_or(null_mut()))) };
        Ok(())
    }

    #[Free]
    in device fn cuCtxGetDevice(found: *mut CUdevice) {
        // SAFETY: the caller has room.
        unsafe { found.write(device) };
        Ok(())
    }

    #[Free]
    fn cuCtxSetCurrent(context: CUcontext) {
        if !context.is_null() {
            device_of(context)?;
        }
        STACK.with_borrow_mut(|stack| {
            stack.pop();
            if !context.is_null() {
                stack.push(context);
            }
        });
        Ok(())
    }

    #[Free]
    in _device fn cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) {
        // SAFETY: the caller has room for both.
        unsafe {
            least.write(0);
            greatest.write(-5);
        }
        Ok(())
    }

    #[Unsafe]
    in device fn cuCtxEnablePeerAccess(peer: CUcontext, _flags: c_uint) {
        const ALREADY_ENABLED: Status = 704;
        let pair = (device, device_of(peer)?);
        if PEERS.lock().unwrap().get_or_insert_default().insert(pair) { Ok(()) } else { Err(ALREADY_ENABLED) }
    }

    #[Unsafe]
    in device fn cuCtxDisablePeerAccess(peer: CUcontext) {
        const NOT_ENABLED: Status = 705;
        let pair = (device, device_of(peer)?);
        if PEERS.lock().unwrap().get_or_insert_default().remove(&pair) { Ok(()) } else { Err(NOT_ENABLED) }
    }
}
