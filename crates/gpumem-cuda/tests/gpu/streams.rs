//! Streams of every kind.

use crate::{
    Case, Skip,
    fixture::{Lab, Numbers, current_context},
};
use cudarc::driver::sys;
use gpumem_core::{
    CopyRegion, DeviceBuffer, DriverDevice, Fill, MemoryKind, Pattern, RawStream, Stream, StreamKind,
    StreamOptions,
};
use gpumem_cuda::{Cuda, CudaExt, CudaStream};
use std::ptr::null_mut;

pub(crate) const CASES: &[Case] = &[
    ("priorities_and_flags_are_as_requested", options),
    ("default_and_foreign_streams_work", every_kind),
    ("a_foreign_stream_is_not_destroyed", foreign),
    ("the_per_thread_stream_is_another_one_on_each_thread", per_thread),
    ("streams_are_dropped_on_another_thread", other_thread),
    ("a_captured_stream_is_recognised", capturing),
    ("the_callers_current_context_is_left_as_found", context_is_restored),
];

fn handle(stream: &CudaStream) -> sys::CUstream {
    std::ptr::with_exposed_provenance_mut(stream.raw().0 as usize)
}

fn options(lab: &Lab) -> Result<(), Skip> {
    let [least, greatest] = lab.device.capabilities().stream_priorities;
    for (priority, expected) in [(0, 0), (i32::MIN, greatest), (i32::MAX, least), (greatest, greatest)] {
        for non_blocking in [false, true] {
            let options = StreamOptions { kind: StreamKind::New, non_blocking, priority };
            let stream = lab.device.create_stream(&options).unwrap();
            let (mut found, mut flags) = (99, 99);
            // SAFETY: places for integers; the stream is alive.
            unsafe {
                sys::cuStreamGetPriority(handle(&stream), &mut found).result().unwrap();
                sys::cuStreamGetFlags(handle(&stream), &mut flags).result().unwrap();
            }
            assert_eq!((found, flags), (expected, u32::from(non_blocking)), "{options:?}");
            stream.destroy().unwrap();
        }
    }
    Ok(())
}

/// Fills, copies and waits on a stream.
fn work_on(lab: &Lab, stream: &CudaStream) {
    let bytes = 1 << 16;
    let [from, to] = [0, 1].map(|_| lab.allocate(MemoryKind::Device, bytes));
    let fill = |value| Fill {
        address: from.address(),
        pattern: Pattern::U8(value),
        count: bytes,
        rows: 1,
        pitch: bytes,
    };
    lab.fill(stream, &fill(1));
    lab.fill(stream, &fill(2));
    lab.copy(stream, &CopyRegion::linear((from.address(), lab.here()), (to.address(), lab.here()), bytes));
    lab.fill(stream, &fill(3));
    stream.synchronize().unwrap();
    assert!(stream.query().unwrap());
    assert!(lab.read(to.address(), bytes).iter().all(|byte| *byte == 2));
}

fn every_kind(lab: &Lab) -> Result<(), Skip> {
    for kind in [StreamKind::New, StreamKind::Legacy, StreamKind::PerThread] {
        let stream = lab.device.create_stream(&StreamOptions { kind, ..Default::default() }).unwrap();
        work_on(lab, &stream);
        stream.destroy().unwrap();
    }
    // The null handle is the legacy stream too.
    // SAFETY: the stream is always there.
    let null = unsafe { lab.device.wrap_stream(RawStream(0)) }.unwrap();
    work_on(lab, &null);
    Ok(())
}

fn foreign(lab: &Lab) -> Result<(), Skip> {
    let mut raw = null_mut();
    // SAFETY: the context is alive; a place for a handle.
    unsafe {
        sys::cuCtxSetCurrent(Cuda::context(&lab.device)).result().unwrap();
        sys::cuStreamCreate(&mut raw, 1).result().unwrap();
    }
    for _ in 0..2 {
        // SAFETY: the stream is destroyed below, after its last use.
        let stream = unsafe { Cuda::wrap_cuda_stream(&lab.device, raw) }.unwrap();
        assert_eq!(handle(&stream), raw);
        work_on(lab, &stream);
    }
    // SAFETY: as above.
    let stream = unsafe { Cuda::wrap_cuda_stream(&lab.device, raw) }.unwrap();
    stream.destroy().unwrap();
    // SAFETY: this test owns it and no longer uses it.
    unsafe {
        sys::cuStreamSynchronize(raw).result().unwrap();
        sys::cuStreamDestroy_v2(raw).result().unwrap();
        sys::cuCtxSetCurrent(null_mut()).result().unwrap();
    }
    Ok(())
}

fn per_thread(lab: &Lab) -> Result<(), Skip> {
    let options = StreamOptions { kind: StreamKind::PerThread, ..Default::default() };
    let stream = lab.device.create_stream(&options).unwrap();
    let gate = lab.close(&stream);
    assert!(!stream.query().unwrap());
    std::thread::scope(|scope| scope.spawn(|| assert!(stream.query().unwrap())).join()).unwrap();
    gate.open();
    stream.synchronize().unwrap();
    Ok(())
}

fn other_thread(lab: &Lab) -> Result<(), Skip> {
    let stream = lab.stream();
    let block = lab.allocate(MemoryKind::Device, 1 << 20);
    let gate = lab.close(&stream);
    let (address, count) = (block.address(), 1 << 20);
    lab.fill(&stream, &Fill { address, pattern: Pattern::U8(9), count, rows: 1, pitch: count });
    // Work that is enqueued runs to its end.
    std::thread::spawn(move || drop(stream)).join().unwrap();
    gate.open();
    lab.device.synchronize().unwrap();
    assert!(lab.read(address, count).iter().all(|byte| *byte == 9));
    Ok(())
}

fn capturing(lab: &Lab) -> Result<(), Skip> {
    let stream = lab.stream();
    assert!(!stream.is_capturing().unwrap());
    let mode = sys::CUstreamCaptureMode_enum::CU_STREAM_CAPTURE_MODE_RELAXED;
    // SAFETY: the stream is alive and idle.
    unsafe { sys::cuStreamBeginCapture_v2(handle(&stream), mode).result().unwrap() };
    assert!(stream.is_capturing().unwrap());
    let error = stream.synchronize().unwrap_err();
    assert!(matches!(error.kind(), gpumem_core::ErrorKind::Unsupported { .. }), "{error}");
    let mut graph = null_mut();
    // SAFETY: ends the capture that was begun, which the refused wait has left alone, and destroys its graph.
    unsafe {
        sys::cuStreamEndCapture(handle(&stream), &mut graph).result().unwrap();
        sys::cuGraphDestroy(graph).result().unwrap();
    }
    assert!(!stream.is_capturing().unwrap());
    work_on(lab, &stream);
    Ok(())
}

fn context_is_restored(lab: &Lab) -> Result<(), Skip> {
    let everything = || {
        work_on(lab, &lab.stream());
        let data = Numbers(9).bytes(64);
        let block = lab.allocate(MemoryKind::Pinned, 64);
        lab.write(block.address(), &data);
        let event = lab.device.create_event(Default::default()).unwrap();
        let stream = lab.stream();
        stream.record(&event).unwrap();
        stream.wait(&event).unwrap();
        lab.device.synchronize().unwrap();
        lab.device.memory_info().unwrap();
        drop((event, stream));
        let fresh = Lab::on(lab.device.clone());
        drop(fresh);
    };
    // On new threads, so that no context is current at first.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert!(current_context().is_null());
            everything();
            assert!(current_context().is_null(), "a context is still current");
            lab.device.with_current(&mut || {
                assert_eq!(current_context(), Cuda::context(&lab.device));
                everything();
            });
            assert!(current_context().is_null(), "a context is still current");
        });
        scope.spawn(|| {
            let mut own = null_mut();
            // SAFETY: a place for a handle; the device exists.
            unsafe { sys::cuCtxCreate_v2(&mut own, 0, 0).result().unwrap() };
            everything();
            assert_eq!(current_context(), own, "the caller's context was replaced");
            lab.device.with_current(&mut || everything());
            assert_eq!(current_context(), own, "the caller's context was replaced");
            // SAFETY: this test owns it and no longer uses it.
            unsafe { sys::cuCtxDestroy_v2(own).result().unwrap() };
        });
        scope.spawn(|| {
            let ours = Cuda::context(&lab.device);
            // SAFETY: the context is alive.
            unsafe { sys::cuCtxSetCurrent(ours).result().unwrap() };
            everything();
            assert_eq!(current_context(), ours);
        });
    });
    Ok(())
}
