//! Device, page-locked and managed memory.

use crate::hip::{DEFAULT, Hip, OK, TO_DEVICE, is_amds, noise, ok};
use hip_on_cuda::types::*;
use std::{
    mem::zeroed,
    ptr::{self, null, null_mut},
};

const MIB: usize = 1 << 20;

fn attributes(hip: &Hip, address: *const u8) -> hipPointerAttribute_t {
    // SAFETY: numbers and pointers, for all of which zero is a value.
    let mut attributes = unsafe { zeroed() };
    ok!(hip.hipPointerGetAttributes(&mut attributes, address.cast()));
    attributes
}

#[test]
fn zero_bytes_allocate_nothing_and_null_can_be_freed() {
    let Some(hip) = &Hip::start() else { return };
    let mut address = ptr::without_provenance_mut(1);
    ok!(hip.hipMalloc(&mut address, 0));
    assert!(address.is_null());
    ok!(hip.hipFree(null_mut()));
    ok!(hip.hipHostFree(null_mut()));
    ok!(hip.hipMemcpy(null_mut(), null(), 0, TO_DEVICE));
    ok!(hip.hipMemset(null_mut(), 0, 0));
}

#[test]
fn an_address_leads_to_its_allocation() {
    let Some(hip) = &Hip::start() else { return };
    let device = hip.allocate(3 * MIB);
    let (mut base, mut bytes) = (null_mut(), 0);
    ok!(hip.hipMemGetAddressRange(&mut base, &mut bytes, device.wrapping_add(MIB + 7).cast()));
    assert_eq!((base.cast(), bytes), (device, 3 * MIB));
    // The versions call the kinds of memory by other numbers.
    let mut version = 0;
    ok!(hip.hipRuntimeGetVersion(&mut version));
    let since = u32::from(version >= 60_000_000);
    let found = attributes(hip, device.wrapping_add(8));
    assert_eq!((found.memoryType, found.device, found.isManaged), (1 + since, 0, 0));
    assert_eq!((found.devicePointer.cast(), found.hostPointer), (device.wrapping_add(8), null_mut()));
    let pinned = hip.pinned(&[7; 5000]);
    let found = attributes(hip, pinned.as_ptr());
    assert_eq!((found.memoryType, found.isManaged), (since, 0));
    assert_eq!(found.hostPointer.cast::<u8>(), pinned.as_mut_ptr());
    let plain = [0u8; 64];
    // SAFETY: as above.
    let mut found: hipPointerAttribute_t = unsafe { zeroed() };
    let status = hip.hipPointerGetAttributes(&mut found, plain.as_ptr().cast());
    assert_eq!(status, if since == 0 { hipError_t::INVALID_VALUE } else { OK });
    hip.unpin(pinned);
    hip.free(device);
}

#[test]
fn exhausted_memory_is_an_error_and_comes_back() {
    let Some(hip) = &Hip::start() else { return };
    let (mut free, mut total) = (0, 0);
    ok!(hip.hipMemGetInfo(&mut free, &mut total));
    assert!(free <= total && free > 0);
    let mut none = null_mut();
    for absurd in [total + 1, 1 << 50, usize::MAX] {
        assert_eq!(hip.hipMalloc(&mut none, absurd), hipError_t::OUT_OF_MEMORY, "{absurd} bytes");
        assert_eq!(hip.hipGetLastError(), hipError_t::OUT_OF_MEMORY);
    }
    let mut blocks = Vec::new();
    let error = loop {
        let mut address = null_mut();
        match hip.hipMalloc(&mut address, total / 5) {
            OK => blocks.push(address.cast()),
            error => break error,
        }
    };
    assert_eq!((error, hip.hipGetLastError()), (hipError_t::OUT_OF_MEMORY, hipError_t::OUT_OF_MEMORY));
    assert!((1..=5).contains(&blocks.len()), "{} blocks", blocks.len());
    blocks.into_iter().for_each(|block| hip.free(block));
    let contents = noise(MIB, 10);
    let again = hip.device(&contents);
    assert!(hip.read(again, MIB) == contents);
    hip.free(again);
}

#[test]
fn host_memory_remembers_its_flags() {
    let Some(hip) = &Hip::start() else { return };
    for flags in [0, 3, 4] {
        let (mut host, mut found) = (null_mut(), 77);
        ok!(hip.hipHostMalloc(&mut host, 4096, flags));
        ok!(hip.hipHostGetFlags(&mut found, host));
        assert_eq!(found, flags);
        let mut device = null_mut();
        ok!(hip.hipHostGetDevicePointer(&mut device, host, 0));
        assert!(!device.is_null());
        ok!(hip.hipHostFree(host));
    }
    let mut host = null_mut();
    // Coherent and not coherent.
    assert_eq!(hip.hipHostMalloc(&mut host, 4096, 0xc000_0000), hipError_t::INVALID_VALUE);
}

#[test]
fn registered_memory_is_the_devices_until_unregistered() {
    let Some(hip) = &Hip::start() else { return };
    // A start inside of a page, and a length that is none.
    let mut memory = noise(MIB + 4100, 2);
    let host = memory.as_mut_ptr().wrapping_add(4099);
    let bytes = MIB + 1;
    let contents = memory[4099..].to_vec();
    ok!(hip.hipHostRegister(host.cast(), bytes, 0));
    let mut device = null_mut();
    ok!(hip.hipHostGetDevicePointer(&mut device, host.cast(), 0));
    let (vram, stream) = (hip.allocate(bytes), hip.stream());
    ok!(hip.hipMemcpyAsync(vram.cast(), host.cast(), bytes, TO_DEVICE, stream));
    ok!(hip.hipMemsetAsync(device, 0x77, 1000, stream));
    ok!(hip.hipStreamSynchronize(stream));
    assert!(hip.read(vram, bytes) == contents);
    assert!(memory[4099..5099].iter().all(|byte| *byte == 0x77) && memory[5099..] == contents[1000..]);
    assert!(memory[..4099] == noise(4099, 2));
    ok!(hip.hipHostUnregister(host.cast()));
    assert_eq!(hip.hipHostUnregister(host.cast()), hipError_t::HOST_MEMORY_NOT_REGISTERED);
    ok!(hip.hipStreamDestroy(stream));
    hip.free(vram);
}

#[test]
fn managed_memory_is_seen_by_both() {
    let Some(hip) = &Hip::start() else { return };
    if !is_amds() && hip.attribute(24) == 0 {
        println!("skipped: the device has no managed memory");
        return;
    }
    const GLOBAL: u32 = 1;
    const READ_MOSTLY: u32 = 1;
    const HOST: i32 = -1;
    let (mut managed, stream) = (null_mut(), hip.stream());
    assert_eq!(hip.hipMallocManaged(&mut managed, 0, GLOBAL), hipError_t::INVALID_VALUE);
    assert_eq!(hip.hipMallocManaged(&mut managed, MIB, 7), hipError_t::INVALID_VALUE);
    ok!(hip.hipMallocManaged(&mut managed, MIB, GLOBAL));
    let contents = noise(MIB, 7);
    // SAFETY: managed memory is the host's to write while no work uses it.
    unsafe { ptr::copy_nonoverlapping(contents.as_ptr(), managed.cast(), MIB) };
    assert_eq!(attributes(hip, managed.cast()).isManaged, 1);
    assert_eq!(hip.hipMemPrefetchAsync(managed, MIB, 99, stream), hipError_t::INVALID_DEVICE);
    ok!(hip.hipMemPrefetchAsync(managed, MIB, 0, stream));
    ok!(hip.hipMemAdvise(managed, MIB, READ_MOSTLY, 0));
    let device = hip.allocate(MIB);
    ok!(hip.hipMemcpyAsync(device.cast(), managed, MIB, DEFAULT, stream));
    ok!(hip.hipMemsetAsync(managed, 0x55, 5000, stream));
    ok!(hip.hipMemPrefetchAsync(managed, MIB, HOST, stream));
    ok!(hip.hipStreamSynchronize(stream));
    assert!(hip.read(device, MIB) == contents);
    // SAFETY: the stream is done with it.
    let seen = unsafe { std::slice::from_raw_parts(managed.cast::<u8>(), MIB) };
    assert!(seen[..5000].iter().all(|byte| *byte == 0x55) && seen[5000..] == contents[5000..]);
    hip.free(managed.cast());
    hip.free(device);
    ok!(hip.hipStreamDestroy(stream));
}
