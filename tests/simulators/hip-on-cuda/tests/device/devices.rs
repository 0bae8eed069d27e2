//! Devices, the current one of each thread, and statuses.

use crate::hip::{Hip, OK, is_amds, ok};
use hip_on_cuda::types::*;
use std::{
    ffi::{CStr, c_char},
    mem::zeroed,
    ptr::null_mut,
    thread,
};

const INVALID_VALUE: hipError_t = hipError_t::INVALID_VALUE;
const INVALID_DEVICE: hipError_t = hipError_t::INVALID_DEVICE;

#[test]
fn all_queries_of_a_device_agree() {
    let Some(hip) = &Hip::start() else { return };
    assert!(hip.device_count() >= 1);
    let mut version = 0;
    ok!(hip.hipRuntimeGetVersion(&mut version));
    assert!(version / 10_000_000 >= 5, "{version}");
    let (mut major, mut minor) = (-1, -1);
    assert_eq!(hip.hiprtcVersion(&mut major, &mut minor), hiprtcResult::SUCCESS);
    // Up to ROCm 5 the compiler has a separate version.
    assert_eq!(major, if version < 60_000_000 { 9 } else { version / 10_000_000 });
    // SAFETY: numbers, arrays of numbers and pointers, for all of which zero is a value.
    let mut properties: hipDeviceProp_t = unsafe { zeroed() };
    ok!(hip.hipGetDeviceProperties(&mut properties, 0));
    let mut name = [0 as c_char; 256];
    ok!(hip.hipDeviceGetName(name.as_mut_ptr(), 256, 0));
    // SAFETY: the name ends with a zero.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) };
    assert_eq!(CStr::from_bytes_until_nul(&properties.name).unwrap(), name);
    let mut total = 0;
    ok!(hip.hipDeviceTotalMem(&mut total, 0));
    assert_eq!(properties.totalGlobalMem, total);
    assert!(total >= 1 << 28, "{total}");
    for (attribute, value) in [
        (87, properties.warpSize),
        (56, properties.maxThreadsPerBlock),
        (26, properties.maxThreadsDim[0]),
        (29, properties.maxGridSize[0]),
        (63, properties.multiProcessorCount),
        (67, properties.pciBusID),
        (68, properties.pciDeviceID),
        (74, properties.sharedMemPerBlock as i32),
        (3, properties.canMapHostMemory),
        (24, properties.managedMemory),
        (9, properties.concurrentManagedAccess),
    ] {
        assert_eq!(hip.attribute(attribute), value, "attribute {attribute}");
    }
    assert!(matches!(properties.warpSize, 32 | 64));
    let architecture = hip.architecture();
    assert!(architecture.starts_with(if is_amds() { "gfx" } else { "sm_" }), "{architecture}");
    println!("{name:?}, {architecture}, HIP {version}");
}

#[test]
fn a_device_is_found_by_its_place() {
    let Some(hip) = &Hip::start() else { return };
    let mut uuids = Vec::new();
    for device in 0..hip.device_count() {
        let mut text = [0 as c_char; 32];
        ok!(hip.hipDeviceGetPCIBusId(text.as_mut_ptr(), 32, device));
        let mut found = -1;
        ok!(hip.hipDeviceGetByPCIBusId(&mut found, text.as_ptr()));
        assert_eq!(found, device);
        let mut uuid = hipUUID { bytes: [0; 16] };
        ok!(hip.hipDeviceGetUuid(&mut uuid, device));
        assert!(!uuids.contains(&uuid.bytes));
        uuids.push(uuid.bytes);
    }
    let mut found = -1;
    assert_eq!(hip.hipDeviceGetByPCIBusId(&mut found, c"ffff:7f:1f.0".as_ptr()), INVALID_VALUE);
}

#[test]
fn every_thread_has_its_own_device_and_status() {
    let Some(hip) = &Hip::start() else { return };
    let here = || {
        let mut device = -1;
        ok!(hip.hipGetDevice(&mut device));
        device
    };
    let last = hip.device_count() - 1;
    ok!(hip.hipSetDevice(last));
    assert_eq!(hip.hipSetDevice(last + 1), INVALID_DEVICE);
    assert_eq!(here(), last);
    thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(here(), 0);
            ok!(hip.hipGetLastError());
            assert_eq!(hip.hipSetDevice(-1), INVALID_DEVICE);
            assert_eq!(hip.hipGetLastError(), INVALID_DEVICE);
            ok!(hip.hipGetLastError());
        });
    });
    assert_eq!(here(), last);
    ok!(hip.hipSetDevice(0));
}

#[test]
fn errors_have_hips_status() {
    let Some(hip) = &Hip::start() else { return };
    let mut value = 0;
    for (status, expected) in [
        (hip.hipMalloc(null_mut(), 16), INVALID_VALUE),
        (hip.hipGetDevice(null_mut()), INVALID_VALUE),
        (hip.hipDeviceGetAttribute(&mut value, 9_000, 0), INVALID_VALUE),
        (hip.hipDeviceGetAttribute(&mut value, 87, 99), INVALID_DEVICE),
        (hip.hipDeviceCanAccessPeer(&mut value, 0, 99), INVALID_DEVICE),
        (hip.hipDeviceEnablePeerAccess(0, 0), INVALID_DEVICE),
        (hip.hipDeviceDisablePeerAccess(0), INVALID_DEVICE),
        (hip.hipStreamDestroy(null_mut()), hipError_t::INVALID_HANDLE),
        (hip.hipEventRecord(null_mut(), null_mut()), hipError_t::INVALID_HANDLE),
        (hip.hipEventDestroy(null_mut()), hipError_t::INVALID_HANDLE),
        (hip.hipModuleLoadData(null_mut(), null_mut()), INVALID_VALUE),
        (hip.hipHostUnregister(null_mut()), hipError_t::HOST_MEMORY_NOT_REGISTERED),
    ] {
        assert_eq!(status, expected);
    }
    ok!(hip.hipDeviceCanAccessPeer(&mut value, 0, 0));
    assert_eq!(value, 0, "a device is no peer of itself");
    // SAFETY: names are texts that end with a zero and stay.
    let name = |status| unsafe { CStr::from_ptr(hip.hipGetErrorName(status)) };
    assert_eq!(name(OK), c"hipSuccess");
    assert_eq!(name(hipError_t::OUT_OF_MEMORY), c"hipErrorOutOfMemory");
    assert_eq!(name(hipError_t(5555)), c"hipErrorUnknown");
}
