//! Memory of the caller, the end of memory, and resets.

use super::{
    fixture::{Lab, Skip, allocate, needs_hsa, release, request, upload},
    kernels::{kernel, launch},
    simulator,
};
use gpumem_conformance::RanOn;
use gpumem_core::{
    CopyRegion, DeviceBuffer, DriverDevice, ErrorKind, Fill, MemoryKind, Pattern, RegisterOptions, Space,
    Stream, StreamOptions,
};
use gpumem_roc::{Pinning, Roc, RocExt};
use gpumem_runtime::Device;
use gpumem_sys::hip;
use std::{
    ptr::NonNull,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

pub(super) fn the_device_address_is_queried(lab: &Lab) -> Result<(), Skip> {
    if !lab.device.capabilities().register {
        return Err("the device page-locks no memory of the caller");
    }
    let mut memory = vec![0u8; 10_001];
    let host = NonNull::new(memory.as_mut_ptr()).unwrap();
    let options = RegisterOptions { mapped: true, ..RegisterOptions::default() };
    // SAFETY: the memory outlives the registration.
    let buffer = unsafe { lab.device.register(host, 10_001, options) }.unwrap();
    assert_eq!(buffer.host_address(), Some(host));
    if lab.ran_on == RanOn::Rocsim && std::env::var_os("ROCSIM_REGISTER_IN_PLACE").is_none() {
        assert_ne!(buffer.address(), host.as_ptr().expose_provenance() as u64);
    }
    // SAFETY: as above; it is refused.
    let twice = unsafe { lab.device.register(host, 10_001, options) }.unwrap_err();
    assert!(matches!(twice.kind(), ErrorKind::Registration { .. }), "{twice}");
    let fill =
        Fill { address: buffer.address() + 1, pattern: Pattern::U8(9), count: 10_000, rows: 1, pitch: 0 };
    // SAFETY: the bytes are there, and are waited for.
    unsafe { lab.stream.fill(&fill) }.unwrap();
    lab.stream.synchronize().unwrap();
    release(lab, buffer);
    assert_eq!((memory[0], memory[1], memory[10_000]), (0, 9, 9));
    Ok(())
}

pub(super) fn exhausted_memory_can_be_allocated_again(lab: &Lab) -> Result<(), Skip> {
    if lab.ran_on != RanOn::Rocsim {
        return Err("the memory of a real device is not filled in a test");
    }
    const BLOCK: usize = 100 << 20;
    let mut blocks = Vec::new();
    let error = loop {
        // SAFETY: the memory is not read.
        match unsafe { lab.device.allocate(&request(BLOCK, MemoryKind::Device)) } {
            Ok(block) => blocks.push(block),
            Err(error) => break error,
        }
        assert!(blocks.len() < 1000, "the memory has no end");
    };
    let ErrorKind::OutOfMemory { requested: BLOCK, total, .. } = error.kind() else { panic!("{error}") };
    assert!(*total >= blocks.len() * BLOCK);
    blocks.into_iter().for_each(|block| release(lab, block));
    release(lab, allocate(lab, BLOCK, MemoryKind::Device));
    Ok(())
}

/// HIP frees memory on another thread, some time later: a call that allocates meanwhile waits, and so does `flush`.
pub(super) fn memory_that_comes_back_late_is_waited_for(lab: &Lab) -> Result<(), Skip> {
    if lab.ran_on != RanOn::Rocsim {
        return Err("the memory of a real device is not filled in a test");
    }
    const MIB: usize = 1 << 20;
    let rounds = std::env::var("GPUMEM_ROUNDS").map_or(2, |text| text.parse().unwrap());
    let device = Device::<Roc>::from_raw(lab.device.clone());
    device.flush().unwrap();
    let before = device.memory_info().unwrap().free;
    for round in 0..rounds {
        let stream = device.stream().unwrap();
        let mut arrays = Vec::new();
        while let Ok(array) = device.uninit_array::<u8, _>(64 * MIB) {
            // SAFETY: it is filled before it is read.
            let mut array = unsafe { array.assume_init() };
            stream.fill(&mut array, 7).unwrap();
            arrays.push(array);
            assert!(arrays.len() < 64, "the memory has no end");
        }
        assert!(arrays.len() >= 8, "round {round}: {} arrays", arrays.len());
        drop(arrays);
        let long = device.uninit_array::<u8, _>(448 * MIB).map(drop);
        assert!(long.is_ok(), "round {round}: {long:?}");
        device.flush().unwrap();
        let free = device.memory_info().unwrap().free;
        assert!(free + 8 * MIB >= before, "round {round}: {before} bytes were free before, {free} after");
    }
    assert_eq!(device.take_errors(), []);
    Ok(())
}

pub(super) fn a_reset_frees_everything(lab: &Lab) -> Result<(), Skip> {
    if lab.ran_on == RanOn::Hardware {
        return Err("other programs may be using the device");
    }
    let before = lab.device.memory_info().unwrap().free;
    let block = allocate(lab, 300 << 20, MemoryKind::Device);
    let event = lab.device.create_event(gpumem_core::EventOptions::default()).unwrap();
    lab.stream.record(&event).unwrap();
    // SAFETY: nothing that was made before is used but to see it refused. This is the last case.
    unsafe { lab.device.reset() }.unwrap();
    let after = lab.device.memory_info().unwrap().free;
    assert!(after + (1 << 20) >= before, "{before} bytes were free before, {after} after");
    let stale = lab.stream.synchronize().unwrap_err();
    assert!(matches!(stale.kind(), ErrorKind::Stale { what: "stream" }), "{stale}");
    // SAFETY: it is only forgotten.
    unsafe { lab.device.release(block) }.map_err(|(_, error)| error).unwrap();
    drop(event);
    let stream = lab.device.create_stream(&StreamOptions::default()).unwrap();
    stream.synchronize().unwrap();
    Ok(())
}

/// Where GPUs check their accesses, the caller's pageable memory cannot be copied in place.
pub(super) fn pageable_memory_is_staged(lab: &Lab) -> Result<(), Skip> {
    let stream = lab.device.create_stream(&StreamOptions::default()).unwrap();
    // From a few bytes to more than HIP's own staging buffer of 4 MiB, at addresses of any alignment.
    for bytes in [1usize, 13, 4096, 100_003, (9 << 20) + 5] {
        let source: Vec<u8> = (0..bytes + 3).map(|at| (at * 7 + at / 256) as u8).collect();
        let buffer = allocate(lab, bytes, MemoryKind::Device);
        let mut back = vec![0u8; bytes + 2];
        let from = source[3..].as_ptr().expose_provenance() as u64;
        let to = back[1..].as_mut_ptr().expose_provenance() as u64;
        let here = (buffer.address(), Space::Device(0));
        // SAFETY: both sides are that long, and are waited for.
        unsafe {
            stream.copy(&CopyRegion::linear((from, Space::Host), here, bytes)).unwrap();
            stream.copy(&CopyRegion::linear(here, (to, Space::Host), bytes)).unwrap();
        }
        stream.synchronize().unwrap();
        assert!(back[1..=bytes] == source[3..], "{bytes} bytes");
        assert_eq!((back[0], back[bytes + 1]), (0, 0), "{bytes} bytes");
        release(lab, buffer);
    }
    Ok(())
}

pub(super) fn a_leak_shows(lab: &Lab) -> Result<(), Skip> {
    const BYTES: usize = 16 << 20;
    let live = || simulator::counter(c"vram_live_bytes");
    let Some(before) = live() else { return Err("only the simulated GPU counts what is live") };
    let buffer = allocate(lab, BYTES, MemoryKind::Device);
    assert_eq!(live(), Some(before + BYTES as u64));
    release(lab, buffer);
    assert_eq!(live(), Some(before));
    Ok(())
}

/// A stream that reports itself done has delivered its last copy, whatever other threads free meanwhile.
pub(super) fn waits_are_true_while_others_free(lab: &Lab) -> Result<(), Skip> {
    const BYTES: usize = 256 << 10;
    let rounds = std::env::var("GPUMEM_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(100);
    let is_over = AtomicBool::new(false);
    let buffer = allocate(lab, BYTES, MemoryKind::Device);
    let pinned = allocate(lab, BYTES, MemoryKind::Pinned);
    let host = pinned.host_address().unwrap();
    let stream = lab.device.create_stream(&StreamOptions::default()).unwrap();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    release(lab, allocate(lab, 4096, MemoryKind::Device));
                }
            });
        }
        let wrong = (0..rounds).find(|round| {
            let value = *round as u8;
            let fill = Fill {
                address: buffer.address(),
                pattern: Pattern::U8(value),
                count: BYTES,
                rows: 1,
                pitch: 0,
            };
            let to = (host.as_ptr().expose_provenance() as u64, Space::Host);
            let copy = CopyRegion::linear((buffer.address(), Space::Device(0)), to, BYTES);
            // SAFETY: both are that long; the copy is waited for before the memory is read.
            unsafe {
                host.write_bytes(!value, BYTES);
                stream.fill(&fill).unwrap();
                stream.copy(&copy).unwrap();
            }
            stream.synchronize().unwrap();
            // SAFETY: the stream is done, and the memory is the host's as well.
            unsafe { host.add(BYTES - 1).read() != value }
        });
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(wrong, None, "the copy of that round had not landed");
    });
    release(lab, pinned);
    release(lab, buffer);
    Ok(())
}

/// In HIP's default mode a capture minds calls of every thread that allocate, free or wait. They are made in the relaxed mode.
pub(super) fn a_capture_of_another_library_goes_on(lab: &Lab) -> Result<(), Skip> {
    let hip = gpumem_sys::hip::load(&gpumem_sys::Places::from_environment()).unwrap().functions.hip;
    let succeeds =
        |status: Result<hip::hipError_t, _>| assert_eq!(status.unwrap(), hip::hipError_t::hipSuccess);
    let mut stream = std::ptr::null_mut();
    let mode = hip::hipStreamCaptureMode::hipStreamCaptureModeGlobal;
    // SAFETY: a place for a handle.
    succeeds(unsafe { hip.hipStreamCreateWithPriority(&mut stream, hip::hipStreamNonBlocking, 0) });
    // SAFETY: the stream was just made.
    succeeds(unsafe { hip.hipStreamBeginCapture(stream, mode) });

    let use_memory = || {
        for kind in [MemoryKind::Device, MemoryKind::Pinned] {
            let buffer = allocate(lab, 1 << 20, kind);
            upload(lab, buffer.address(), &[7; 100]);
            release(lab, buffer);
        }
        let other = lab.device.create_stream(&StreamOptions::default()).unwrap();
        other.synchronize().unwrap();
    };
    use_memory();
    thread::scope(|scope| scope.spawn(use_memory).join().unwrap());
    let mut status = hip::hipStreamCaptureStatus::hipStreamCaptureStatusNone;
    // SAFETY: a stream, and a place for its status.
    succeeds(unsafe { hip.hipStreamIsCapturing(stream, &mut status) });
    assert_eq!(status, hip::hipStreamCaptureStatus::hipStreamCaptureStatusActive);

    // A scope waits for the device, which HIP refuses meanwhile: its streams are waited for.
    if needs_hsa(lab).is_ok() {
        let (kernel, mut bytes) = (kernel(lab), vec![0; 1 << 20]);
        Roc::with_registered(&lab.device, &mut [&mut bytes], Pinning::Lock(&[]), |ranges| {
            launch(&lab.stream, &kernel, ranges[0].address, 1 << 18);
        })
        .unwrap();
        assert!(bytes.chunks(4).all(|word| word == [1, 0, 0, 0]), "the scope has not waited");
    }
    let mut graph = std::ptr::null_mut();
    // SAFETY: the stream, and a place for a graph. That the wait has ended the capture is HIP's rule.
    let _ = unsafe { hip.hipStreamEndCapture(stream, &mut graph) };
    // SAFETY: the stream is used no more.
    let _ = unsafe { hip.hipStreamDestroy(stream) };
    Ok(())
}
