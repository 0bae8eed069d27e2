//! Copies and fills of one, two and three dimensions.

use crate::hip::{DEFAULT, Hip, ON_DEVICE, TO_DEVICE, TO_HOST, noise, ok};
use hip_on_cuda::types::*;
use std::{
    mem::zeroed,
    ptr::{null_mut, with_exposed_provenance_mut},
};

const MIB: usize = 1 << 20;

#[test]
fn bytes_arrive_whatever_memory_they_come_from() {
    let Some(hip) = &Hip::start() else { return };
    let stream = hip.stream();
    for bytes in [1, 100, 4097, MIB + 1, 5 * MIB + 3] {
        let contents = noise(bytes, bytes as u32);
        let (first, second) = (hip.device(&contents), hip.allocate(bytes));
        ok!(hip.hipMemcpyAsync(second.cast(), first.cast(), bytes, ON_DEVICE, stream));
        let pinned = hip.pinned(&vec![0; bytes]);
        ok!(hip.hipMemcpyAsync(pinned.as_mut_ptr().cast(), second.cast(), bytes, TO_HOST, stream));
        ok!(hip.hipStreamSynchronize(stream));
        assert!(*pinned == contents, "{bytes} bytes");
        // Back again from pageable memory, by a copy of the kind `hipMemcpyDefault`.
        let other = noise(bytes, 99);
        ok!(hip.hipMemcpyAsync(first.cast(), other.as_ptr().cast(), bytes, DEFAULT, stream));
        ok!(hip.hipStreamSynchronize(stream));
        assert!(hip.read(first, bytes) == other, "{bytes} bytes");
        hip.unpin(pinned);
        hip.free(first);
        hip.free(second);
    }
    ok!(hip.hipStreamDestroy(stream));
}

#[test]
fn fills_write_their_elements_and_nothing_else() {
    let Some(hip) = &Hip::start() else { return };
    const ROOM: usize = 100_000;
    const PITCH: usize = 512;
    let mut expected = noise(ROOM, 3);
    let (device, stream) = (hip.device(&expected), hip.stream());
    let mut set = |start: usize, pattern: &[u8], count: usize| {
        for element in expected[start..start + pattern.len() * count].chunks_exact_mut(pattern.len()) {
            element.copy_from_slice(pattern);
        }
        device.wrapping_add(start).cast()
    };
    ok!(hip.hipMemsetD8Async(set(3, &[0x42], 1001), 0x42, 1001, stream));
    ok!(hip.hipMemsetD16Async(set(2002, &[0x34, 0x12], 999), 0x1234, 999, stream));
    ok!(hip.hipMemsetD32Async(
        set(8000, &[0x78, 0x56, 0x34, 0x92], 5001),
        0x9234_5678u32 as i32,
        5001,
        stream
    ));
    // Only the low byte counts.
    ok!(hip.hipMemsetAsync(set(50_000, &[0xee], 40_000), 0x1ee, 40_000, stream));
    ok!(hip.hipStreamSynchronize(stream));
    assert!(hip.read(device, ROOM) == expected);
    // Rows with a gap between them, then planes with one.
    for row in 0..9 {
        expected[row * PITCH..row * PITCH + 77].fill(0x11);
    }
    ok!(hip.hipMemset2DAsync(device.cast(), PITCH, 0x11, 77, 9, stream));
    for (plane, row) in (0..3).flat_map(|plane| (0..4).map(move |row| (plane, row))) {
        let at = 10_240 + (plane * 10 + row) * 64;
        expected[at..at + 60].fill(0x22);
    }
    let planes = hipPitchedPtr { ptr: device.wrapping_add(10_240).cast(), pitch: 64, xsize: 64, ysize: 10 };
    ok!(hip.hipMemset3DAsync(planes, 0x22, hipExtent { width: 60, height: 4, depth: 3 }, stream));
    ok!(hip.hipStreamSynchronize(stream));
    assert!(hip.read(device, ROOM) == expected);
    ok!(hip.hipStreamDestroy(stream));
    hip.free(device);
}

#[test]
fn rows_are_copied_from_one_pitch_to_another() {
    let Some(hip) = &Hip::start() else { return };
    let stream = hip.stream();
    let (mut device, mut pitch) = (null_mut(), 0);
    ok!(hip.hipMallocPitch(&mut device, &mut pitch, 1000, 50));
    assert!(pitch >= 1000);
    let contents = noise(2048 * 50, 4);
    for pinned in [false, true] {
        let host = hip.pinned(&contents);
        let back = hip.pinned(&[0xaa; 1500 * 50]);
        let mut pageable = vec![0xaau8; 1500 * 50];
        let from = if pinned { host.as_ptr() } else { contents.as_ptr() };
        let to = if pinned { back.as_mut_ptr() } else { pageable.as_mut_ptr() };
        ok!(hip.hipMemcpy2DAsync(device, pitch, from.cast(), 2048, 999, 50, TO_DEVICE, stream));
        ok!(hip.hipMemcpy2DAsync(to.cast(), 1500, device, pitch, 999, 50, TO_HOST, stream));
        ok!(hip.hipStreamSynchronize(stream));
        let seen: &[u8] = if pinned { back } else { &pageable };
        for (to, from) in seen.chunks(1500).zip(contents.chunks(2048)) {
            assert!(
                to[..999] == from[..999] && to[999..].iter().all(|byte| *byte == 0xaa),
                "pinned: {pinned}"
            );
        }
        hip.unpin(host);
        hip.unpin(back);
    }
    let copy = |to_pitch, from_pitch, width, rows| {
        hip.hipMemcpy2D(device, to_pitch, contents.as_ptr().cast(), from_pitch, width, rows, TO_DEVICE)
    };
    ok!(copy(1000, 1000, 0, 3));
    ok!(copy(1000, 1000, 3, 0));
    for (to_pitch, from_pitch) in [(8, 32), (32, 8)] {
        assert_eq!(copy(to_pitch, from_pitch, 16, 2), hipError_t::INVALID_PITCH_VALUE);
    }
    ok!(hip.hipFree(device));
    ok!(hip.hipStreamDestroy(stream));
}

/// A box of 40 x 6 x 5 bytes from (8, 2, 1) to (4, 1, 3), in volumes of 128 x 16 x 8 and 96 x 12 x 10.
fn boxed(from: &[u8], to: &mut [u8]) {
    for (y, z) in (0..6).flat_map(|y| (0..5).map(move |z| (y, z))) {
        let (to_at, from_at) = (((3 + z) * 12 + 1 + y) * 96 + 4, ((1 + z) * 16 + 2 + y) * 128 + 8);
        to[to_at..to_at + 40].copy_from_slice(&from[from_at..from_at + 40]);
    }
}

fn parameters(to: *mut u8, from: *const u8, kind: hipMemcpyKind) -> hipMemcpy3DParms {
    let from = with_exposed_provenance_mut(from.expose_provenance());
    hipMemcpy3DParms {
        srcArray: null_mut(),
        srcPos: hipPos { x: 8, y: 2, z: 1 },
        srcPtr: hipPitchedPtr { ptr: from, pitch: 128, xsize: 128, ysize: 16 },
        dstArray: null_mut(),
        dstPos: hipPos { x: 4, y: 1, z: 3 },
        dstPtr: hipPitchedPtr { ptr: to.cast(), pitch: 96, xsize: 96, ysize: 12 },
        extent: hipExtent { width: 40, height: 6, depth: 5 },
        kind,
    }
}

#[test]
fn boxes_are_copied_from_place_to_place() {
    let Some(hip) = &Hip::start() else { return };
    let (from, mut expected) = (noise(128 * 16 * 8, 5), noise(96 * 12 * 10, 6));
    let before = expected.clone();
    boxed(&from, &mut expected);
    let (source, stream) = (hip.device(&from), hip.stream());

    let target = hip.device(&before);
    ok!(hip.hipMemcpy3DAsync(&parameters(target, source, ON_DEVICE), stream));
    ok!(hip.hipStreamSynchronize(stream));
    assert!(hip.read(target, expected.len()) == expected, "on the device");
    hip.free(target);

    let target = hip.pinned(&before);
    ok!(hip.hipMemcpy3DAsync(&parameters(target.as_mut_ptr(), source, TO_HOST), stream));
    ok!(hip.hipStreamSynchronize(stream));
    assert!(*target == expected, "to the host");
    hip.unpin(target);

    let target = hip.device(&before);
    let pinned = hip.pinned(&from);
    ok!(hip.hipMemcpy3DAsync(&parameters(target, pinned.as_ptr(), TO_DEVICE), stream));
    ok!(hip.hipStreamSynchronize(stream));
    assert!(hip.read(target, expected.len()) == expected, "to the device");
    hip.unpin(pinned);
    hip.free(target);
    hip.free(source);
    ok!(hip.hipStreamDestroy(stream));
}

#[test]
fn boxes_are_copied_by_the_drivers_interface() {
    let Some(hip) = &Hip::start() else { return };
    let mut version = 0;
    ok!(hip.hipRuntimeGetVersion(&mut version));
    if version >= 60_000_000 {
        println!("skipped: the structure has other integers since ROCm 6");
        return;
    }
    const DEVICE: hipMemoryType = 1;
    let (from, mut expected) = (noise(128 * 16 * 8, 7), noise(96 * 12 * 10, 8));
    let (source, target, stream) = (hip.device(&from), hip.device(&expected), hip.stream());
    boxed(&from, &mut expected);
    // SAFETY: numbers and pointers, for all of which zero is a value.
    let mut copy: HIP_MEMCPY3D = unsafe { zeroed() };
    (copy.srcXInBytes, copy.srcY, copy.srcZ) = (8, 2, 1);
    (copy.srcMemoryType, copy.srcDevice, copy.srcPitch, copy.srcHeight) = (DEVICE, source.cast(), 128, 16);
    (copy.dstXInBytes, copy.dstY, copy.dstZ) = (4, 1, 3);
    (copy.dstMemoryType, copy.dstDevice, copy.dstPitch, copy.dstHeight) = (DEVICE, target.cast(), 96, 12);
    (copy.WidthInBytes, copy.Height, copy.Depth) = (40, 6, 5);
    ok!(hip.hipDrvMemcpy3DAsync(&copy, stream));
    ok!(hip.hipStreamSynchronize(stream));
    assert!(hip.read(target, expected.len()) == expected);
    hip.free(source);
    hip.free(target);
    ok!(hip.hipStreamDestroy(stream));
}
