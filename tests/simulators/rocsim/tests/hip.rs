//! AMD's HIP works on the simulated GPU: every copy and fill is compared, on every machine of the matrix.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use common::{
    Machine,
    hip::{
        Copy3D, DEFAULT, Event, HipApi, NOT_REGISTERED, ON_DEVICE, OUT_OF_MEMORY, PitchedPtr, Stream,
        TO_DEVICE, TO_HOST,
    },
    hsa::host_bytes,
    noise, ok,
};
use rocsim::installed::{Part, is_skipped};
use std::{
    ffi::c_void,
    ptr,
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::Duration,
};

const MIB: usize = 1 << 20;

#[test]
fn the_runtime_copies_fills_and_orders() {
    if common::role().is_none() {
        if !is_skipped(&[Part::Hip]) {
            common::on_all_machines("the_runtime_copies_fills_and_orders");
        }
        return;
    }
    let (hip, machine) = (HipApi::start(), Machine::here());
    assert_eq!(hip.device_count(), machine.gpus);
    copies_from_and_to_pageable_memory(&hip);
    pinned_copies_follow_events(&hip);
    registered_memory_has_a_device_address(&hip);
    fills_of_all_widths(&hip);
    rectangles_and_boxes(&hip);
    managed_memory_is_seen_by_both(&hip);
    streams_wait_for_values_and_call_back(&hip);
    peers_copy(&hip, machine);
    threads_with_their_own_streams(&hip);
    exhausted_memory_is_an_error_and_comes_back(&hip);
    ok!(hip.hipDeviceSynchronize());
    ok!(hip.hipGetLastError());
}

#[test]
fn managed_memory_is_built_on_svm_where_the_driver_has_it() {
    let Some(_) = common::role() else {
        if !is_skipped(&[Part::Hip]) {
            // HIP 5.2 cannot unregister memory that has the same address on both sides.
            let variables = [("ROCSIM_SVM", "1"), ("ROCSIM_REGISTER_IN_PLACE", "0")];
            common::child_succeeds(
                "managed_memory_is_built_on_svm_where_the_driver_has_it",
                "svm",
                &variables,
            );
        }
        return;
    };
    let hip = HipApi::start();
    let simulator = common::Simulator::load();
    let before = simulator.rocsim_counter(c"svm_ranges_set".as_ptr());
    managed_memory_is_seen_by_both(&hip);
    assert!(simulator.rocsim_counter(c"svm_ranges_set".as_ptr()) > before);
    registered_memory_has_a_device_address(&hip);
}

fn copies_from_and_to_pageable_memory(hip: &HipApi) {
    // Small ones are staged, large ones are pinned for the time of the copy.
    for bytes in [1, 100, 4097, MIB + 1, 5 * MIB + 3] {
        let contents = noise(bytes, bytes as u32);
        let device = hip.device(&contents);
        let second = hip.allocate(bytes);
        ok!(hip.hipMemcpy(second, device, bytes, ON_DEVICE));
        let mut back = vec![0; bytes];
        ok!(hip.hipMemcpy(back.as_mut_ptr(), second, bytes, DEFAULT));
        assert!(back == contents, "{bytes} bytes");
        ok!(hip.hipFree(device));
        ok!(hip.hipFree(second));
    }
}

fn pinned_copies_follow_events(hip: &HipApi) {
    let contents = noise(MIB, 1);
    let (from, to) = (hip.pinned(&contents), hip.pinned(&[0; MIB]));
    let (one, two) = (hip.allocate(MIB), hip.allocate(MIB));
    let (first, second) = (hip.stream(), hip.stream());
    let (start, copied, end) = (hip.event(), hip.event(), hip.event());
    ok!(hip.hipEventRecord(start, first));
    ok!(hip.hipMemcpyAsync(one, from, MIB, TO_DEVICE, first));
    ok!(hip.hipEventRecord(copied, first));
    ok!(hip.hipStreamWaitEvent(second, copied, 0));
    ok!(hip.hipMemcpyAsync(two, one, MIB, ON_DEVICE, second));
    ok!(hip.hipMemcpyAsync(to, two, MIB, TO_HOST, second));
    ok!(hip.hipEventRecord(end, second));
    ok!(hip.hipEventSynchronize(end));
    assert!(host_bytes(to, MIB) == contents);
    let mut milliseconds = 0.0;
    ok!(hip.hipEventElapsedTime(&mut milliseconds, start, copied));
    assert!(milliseconds > 0.0 && milliseconds < 10_000.0, "{milliseconds}");
    ok!(hip.hipStreamQuery(second));
    for event in [start, copied, end] {
        ok!(hip.hipEventDestroy(event));
    }
    ok!(hip.hipStreamDestroy(first));
    ok!(hip.hipStreamDestroy(second));
    ok!(hip.hipHostFree(from));
    ok!(hip.hipHostFree(to));
    ok!(hip.hipFree(one));
    ok!(hip.hipFree(two));
}

fn registered_memory_has_a_device_address(hip: &HipApi) {
    // A start inside of a page, and a length that is none.
    let mut memory = noise(MIB + 5, 2);
    let contents = memory.clone();
    let (host, bytes) = (memory.as_mut_ptr(), memory.len());
    ok!(hip.hipHostRegister(host, bytes, 0));
    let mut device = ptr::null_mut();
    ok!(hip.hipHostGetDevicePointer(&mut device, host, 0));
    assert_ne!(device, host);
    let (vram, stream) = (hip.allocate(bytes), hip.stream());
    // By the host's address, and by the device's.
    ok!(hip.hipMemcpyAsync(vram, host, bytes, TO_DEVICE, stream));
    ok!(hip.hipStreamSynchronize(stream));
    assert!(hip.read(vram, bytes) == contents);
    ok!(hip.hipMemsetAsync(device, 0x77, 1000, stream));
    ok!(hip.hipStreamSynchronize(stream));
    assert!(host_bytes(host, 1000).iter().all(|byte| *byte == 0x77));
    assert!(host_bytes(host, bytes)[1000..] == contents[1000..]);
    ok!(hip.hipHostUnregister(host));
    assert_eq!(hip.hipHostUnregister(host), NOT_REGISTERED);
    assert_eq!(hip.hipGetLastError(), NOT_REGISTERED);
    ok!(hip.hipStreamDestroy(stream));
    ok!(hip.hipFree(vram));
}

fn fills_of_all_widths(hip: &HipApi) {
    const ROOM: usize = 100_000;
    let mut expected = noise(ROOM, 3);
    let device = hip.device(&expected);
    let stream = hip.stream();
    let mut set = |start: usize, pattern: &[u8], count: usize| {
        for element in expected[start..start + pattern.len() * count].chunks_exact_mut(pattern.len()) {
            element.copy_from_slice(pattern);
        }
        device.wrapping_add(start)
    };
    ok!(hip.hipMemsetD8Async(set(3, &[0x42], 1001), 0x42, 1001, stream));
    ok!(hip.hipMemsetD16Async(set(2002, &[0x34, 0x12], 999), 0x1234, 999, stream));
    ok!(hip.hipMemsetD32Async(set(8000, &[0x78, 0x56, 0x34, 0x12], 5001), 0x1234_5678, 5001, stream));
    ok!(hip.hipMemsetAsync(set(50_000, &[0xee], 40_000), 0xee, 40_000, stream));
    ok!(hip.hipStreamSynchronize(stream));
    assert!(hip.read(device, ROOM) == expected);
    // Rows with a gap between them.
    const PITCH: usize = 512;
    for row in 0..9 {
        expected[row * PITCH..row * PITCH + 77].fill(0x11);
    }
    ok!(hip.hipMemset2DAsync(device, PITCH, 0x11, 77, 9, stream));
    ok!(hip.hipStreamSynchronize(stream));
    assert!(hip.read(device, ROOM) == expected);
    ok!(hip.hipStreamDestroy(stream));
    ok!(hip.hipFree(device));
}

fn rectangles_and_boxes(hip: &HipApi) {
    let stream = hip.stream();
    let (mut address, mut pitch) = (ptr::null_mut(), 0);
    ok!(hip.hipMallocPitch(&mut address, &mut pitch, 1000, 50));
    assert!(pitch >= 1000);
    let contents = noise(2048 * 50, 4);
    let host = hip.pinned(&contents);
    ok!(hip.hipMemcpy2DAsync(address, pitch, host, 2048, 999, 50, TO_DEVICE, stream));
    let back = hip.pinned(&[0xaa; 1500 * 50]);
    ok!(hip.hipMemcpy2DAsync(back, 1500, address, pitch, 999, 50, TO_HOST, stream));
    ok!(hip.hipStreamSynchronize(stream));
    for (to, from) in host_bytes(back, 1500 * 50).chunks(1500).zip(contents.chunks(2048)) {
        assert!(to[..999] == from[..999] && to[999..].iter().all(|byte| *byte == 0xaa));
    }
    ok!(hip.hipFree(address));
    ok!(hip.hipHostFree(host));
    ok!(hip.hipHostFree(back));

    // A box of 40 x 6 x 5 bytes from (8, 2, 1) to (4, 1, 3).
    let (from, mut expected) = (noise(128 * 16 * 8, 5), noise(96 * 12 * 10, 6));
    let (source, target) = (hip.device(&from), hip.device(&expected));
    let copy = Copy3D {
        from_array: ptr::null_mut(),
        from_position: [8, 2, 1],
        from: PitchedPtr { base: source, pitch: 128, x: 128, y: 16 },
        to_array: ptr::null_mut(),
        to_position: [4, 1, 3],
        to: PitchedPtr { base: target, pitch: 96, x: 96, y: 12 },
        extent: [40, 6, 5],
        kind: ON_DEVICE,
    };
    ok!(hip.hipMemcpy3DAsync(&copy, stream));
    ok!(hip.hipStreamSynchronize(stream));
    for (y, z) in (0..6).flat_map(|y| (0..5).map(move |z| (y, z))) {
        let (to, at) = (((3 + z) * 12 + 1 + y) * 96 + 4, ((1 + z) * 16 + 2 + y) * 128 + 8);
        expected[to..to + 40].copy_from_slice(&from[at..at + 40]);
    }
    assert!(hip.read(target, expected.len()) == expected);
    ok!(hip.hipFree(source));
    ok!(hip.hipFree(target));
    ok!(hip.hipStreamDestroy(stream));
}

fn managed_memory_is_seen_by_both(hip: &HipApi) {
    const GLOBAL: u32 = 1;
    let (mut managed, stream) = (ptr::null_mut(), hip.stream());
    ok!(hip.hipMallocManaged(&mut managed, MIB, GLOBAL));
    let contents = noise(MIB, 7);
    // SAFETY: managed memory is the host's to write while no work uses it.
    unsafe { ptr::copy_nonoverlapping(contents.as_ptr(), managed, MIB) };
    ok!(hip.hipMemPrefetchAsync(managed, MIB, 0, stream));
    let device = hip.allocate(MIB);
    ok!(hip.hipMemcpyAsync(device, managed, MIB, DEFAULT, stream));
    ok!(hip.hipMemsetAsync(managed, 0x55, 5000, stream));
    ok!(hip.hipStreamSynchronize(stream));
    assert!(hip.read(device, MIB) == contents);
    let seen = host_bytes(managed, MIB);
    assert!(seen[..5000].iter().all(|byte| *byte == 0x55) && seen[5000..] == contents[5000..]);
    ok!(hip.hipFree(managed));
    ok!(hip.hipFree(device));
    ok!(hip.hipStreamDestroy(stream));
}

unsafe extern "C" fn called(_stream: Stream, status: u32, data: *mut c_void) {
    // SAFETY: the data is the number below, which lives until the stream was waited for.
    unsafe { &*data.cast::<AtomicU32>() }.store(1 + status, Ordering::Release);
}

fn streams_wait_for_values_and_call_back(hip: &HipApi) {
    const GREATER_OR_EQUAL: u32 = 0;
    let stream = hip.stream();
    let (flag, from, to) = (hip.pinned(&[0; 64]), hip.pinned(&noise(4096, 8)), hip.pinned(&[0; 4096]));
    // SAFETY: an aligned word of pinned memory that is only used as an atomic while work may use it.
    let word = unsafe { AtomicU32::from_ptr(flag.cast()) };
    let calls = AtomicU32::new(0);
    let device = hip.allocate(4096);
    ok!(hip.hipStreamWaitValue32(stream, flag, 5, GREATER_OR_EQUAL, u32::MAX));
    // From host to host the runtime would wait for the stream and copy by itself.
    ok!(hip.hipMemcpyAsync(device, from, 4096, TO_DEVICE, stream));
    ok!(hip.hipMemcpyAsync(to, device, 4096, TO_HOST, stream));
    ok!(hip.hipStreamAddCallback(stream, called, (&raw const calls).cast_mut().cast(), 0));
    thread::sleep(Duration::from_millis(10));
    assert_eq!(calls.load(Ordering::Acquire), 0, "the stream did not wait");
    assert!(host_bytes(to, 4096).iter().all(|byte| *byte == 0));
    word.store(5, Ordering::Release);
    ok!(hip.hipStreamSynchronize(stream));
    assert_eq!(calls.load(Ordering::Acquire), 1);
    assert!(host_bytes(to, 4096) == noise(4096, 8));
    ok!(hip.hipStreamWriteValue32(stream, flag, 77, 0));
    ok!(hip.hipStreamSynchronize(stream));
    assert_eq!(word.load(Ordering::Acquire), 77);
    for address in [flag, from, to] {
        ok!(hip.hipHostFree(address));
    }
    ok!(hip.hipFree(device));
    ok!(hip.hipStreamDestroy(stream));
}

fn peers_copy(hip: &HipApi, machine: Machine) {
    if machine.gpus < 2 {
        return;
    }
    let mut can = -1;
    ok!(hip.hipDeviceCanAccessPeer(&mut can, 0, 1));
    assert_eq!(can == 1, machine.large_bar, "a peer needs a large BAR");
    let contents = noise(3 * MIB, 9);
    let near = hip.device(&contents);
    ok!(hip.hipSetDevice(1));
    let far = hip.allocate(contents.len());
    // Without direct access the runtime goes through host memory.
    ok!(hip.hipMemcpyPeer(far, 1, near, 0, contents.len()));
    assert!(hip.read(far, contents.len()) == contents);
    ok!(hip.hipSetDevice(0));
    if machine.large_bar {
        ok!(hip.hipDeviceEnablePeerAccess(1, 0));
        let stream = hip.stream();
        ok!(hip.hipMemsetAsync(far, 0x31, 1000, stream));
        ok!(hip.hipStreamSynchronize(stream));
        assert!(hip.read(far, 1000).iter().all(|byte| *byte == 0x31));
        ok!(hip.hipStreamDestroy(stream));
    }
    ok!(hip.hipFree(near));
    ok!(hip.hipFree(far));
}

/// The objects of a thread.
struct Lane {
    streams: [Stream; 2],
    ready: Event,
    from: *mut u8,
    device: [*mut u8; 2],
    to: Vec<u8>,
}

// SAFETY: handles and addresses that any thread may use, one at a time.
unsafe impl Send for Lane {}

/// Nothing is allocated or freed while the threads run: `hipFree` and `hipHostUnregister` wait for all streams of the
/// device, and HIP 5.2 then now and then lets `hipStreamSynchronize` of another thread come back too early.
fn threads_with_their_own_streams(hip: &HipApi) {
    const ROOM: usize = 160_000;
    let lane = |_| {
        // The heap puts some of these next to each other: neighbours on a page are registered one by one.
        let mut to = vec![0; ROOM];
        ok!(hip.hipHostRegister(to.as_mut_ptr(), ROOM, 0));
        let device = [hip.allocate(ROOM), hip.allocate(ROOM)];
        Lane {
            streams: [hip.stream(), hip.stream()],
            ready: hip.event(),
            from: hip.pinned(&[0; ROOM]),
            device,
            to,
        }
    };
    let mut lanes: Vec<Lane> = (0..4).map(lane).collect();
    thread::scope(|scope| {
        for (seed, lane) in lanes.iter_mut().enumerate() {
            scope.spawn(move || {
                ok!(hip.hipSetDevice(0));
                (0..8).for_each(|round| run_lane(hip, lane, seed as u32 * 100 + round));
            });
        }
    });
    for mut lane in lanes {
        ok!(hip.hipHostUnregister(lane.to.as_mut_ptr()));
        ok!(hip.hipHostFree(lane.from));
        lane.device.into_iter().for_each(|address| ok!(hip.hipFree(address)));
        ok!(hip.hipEventDestroy(lane.ready));
        lane.streams.into_iter().for_each(|stream| ok!(hip.hipStreamDestroy(stream)));
    }
}

/// Sends bytes through both streams of a thread, from the host over the device and back.
fn run_lane(hip: &HipApi, lane: &mut Lane, seed: u32) {
    let contents = noise(100_000 + 7919 * (seed as usize % 8), seed);
    let bytes = contents.len();
    // SAFETY: the memory is longer, visible to the host, and no work uses it.
    unsafe { ptr::copy_nonoverlapping(contents.as_ptr(), lane.from, bytes) };
    let ([one, two], [first, second]) = (lane.streams, lane.device);
    ok!(hip.hipMemcpyAsync(first, lane.from, bytes, TO_DEVICE, one));
    ok!(hip.hipEventRecord(lane.ready, one));
    ok!(hip.hipStreamWaitEvent(two, lane.ready, 0));
    ok!(hip.hipMemcpyAsync(second, first, bytes, ON_DEVICE, two));
    ok!(hip.hipMemcpyAsync(lane.to.as_mut_ptr(), second, bytes, TO_HOST, two));
    ok!(hip.hipStreamSynchronize(two));
    assert!(lane.to[..bytes] == contents);
}

fn exhausted_memory_is_an_error_and_comes_back(hip: &HipApi) {
    let (mut free, mut total) = (0, 0);
    ok!(hip.hipMemGetInfo(&mut free, &mut total));
    assert_eq!(total, 1 << 30);
    let mut blocks = Vec::new();
    let error = loop {
        let mut address = ptr::null_mut();
        match hip.hipMalloc(&mut address, 200 * MIB) {
            0 => blocks.push(address),
            error => break error,
        }
    };
    assert_eq!((error, hip.hipGetLastError()), (OUT_OF_MEMORY, OUT_OF_MEMORY));
    assert!((4..=5).contains(&blocks.len()), "{} blocks of 200 MiB in 1 GiB", blocks.len());
    blocks.into_iter().for_each(|block| ok!(hip.hipFree(block)));
    let contents = noise(200 * MIB / 64, 10);
    let again = hip.device(&contents);
    assert!(hip.read(again, contents.len()) == contents);
    ok!(hip.hipFree(again));
}
