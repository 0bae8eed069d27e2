//! Streams, events, callbacks, capture, threads.

use crate::hip::{Hip, ON_DEVICE, TO_DEVICE, TO_HOST, noise, ok};
use hip_on_cuda::types::*;
use std::{
    ffi::c_void,
    ptr::null_mut,
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::Duration,
};

const MIB: usize = 1 << 20;
const NO_TIME: u32 = 2;

/// A word of pinned memory that a stream waits for.
struct Gate(&'static mut [u8]);

impl Gate {
    const GREATER_OR_EQUAL: u32 = 0;

    fn new(hip: &Hip) -> Self {
        Self(hip.pinned(&[0; 64]))
    }

    fn word(&self) -> &AtomicU32 {
        // SAFETY: an aligned word that is only used as an atomic while work may use it.
        unsafe { AtomicU32::from_ptr(self.0.as_ptr().cast_mut().cast()) }
    }

    fn close(&self, hip: &Hip, stream: hipStream_t) {
        let address = self.0.as_ptr().cast_mut().cast();
        ok!(hip.hipStreamWaitValue32(stream, address, 5, Self::GREATER_OR_EQUAL, u32::MAX));
    }

    fn open(&self) {
        self.word().store(5, Ordering::Release);
    }
}

#[test]
fn a_stream_waits_for_an_event_of_another() {
    let Some(hip) = &Hip::start() else { return };
    let contents = noise(MIB, 1);
    let (from, to) = (hip.pinned(&contents), hip.pinned(&[0; MIB]));
    let (one, two) = (hip.allocate(MIB), hip.allocate(MIB));
    let (first, second) = (hip.stream(), hip.stream());
    let (start, copied, end) = (hip.event(0), hip.event(0), hip.event(0));
    let gate = Gate::new(hip);
    gate.close(hip, first);
    ok!(hip.hipEventRecord(start, first));
    ok!(hip.hipMemcpyAsync(one.cast(), from.as_ptr().cast(), MIB, TO_DEVICE, first));
    ok!(hip.hipEventRecord(copied, first));
    ok!(hip.hipStreamWaitEvent(second, copied, 0));
    ok!(hip.hipMemcpyAsync(two.cast(), one.cast(), MIB, ON_DEVICE, second));
    ok!(hip.hipMemcpyAsync(to.as_mut_ptr().cast(), two.cast(), MIB, TO_HOST, second));
    ok!(hip.hipEventRecord(end, second));
    thread::sleep(Duration::from_millis(10));
    assert_eq!(hip.hipStreamQuery(first), hipError_t::NOT_READY);
    assert_eq!(hip.hipStreamQuery(second), hipError_t::NOT_READY);
    assert_eq!(hip.hipEventQuery(end), hipError_t::NOT_READY);
    let mut milliseconds = 0.0;
    assert_eq!(hip.hipEventElapsedTime(&mut milliseconds, start, copied), hipError_t::NOT_READY);
    gate.open();
    ok!(hip.hipEventSynchronize(end));
    assert!(*to == contents);
    ok!(hip.hipEventQuery(copied));
    ok!(hip.hipStreamSynchronize(second));
    ok!(hip.hipStreamQuery(second));
    ok!(hip.hipEventElapsedTime(&mut milliseconds, start, copied));
    assert!(milliseconds > 0.0 && milliseconds < 10_000.0, "{milliseconds}");
    [start, copied, end].into_iter().for_each(|event| ok!(hip.hipEventDestroy(event)));
    [first, second].into_iter().for_each(|stream| ok!(hip.hipStreamDestroy(stream)));
    [from, to, gate.0].into_iter().for_each(|memory| hip.unpin(memory));
    [one, two].into_iter().for_each(|memory| hip.free(memory));
}

#[test]
fn events_and_streams_have_their_flags() {
    let Some(hip) = &Hip::start() else { return };
    let (stream, mut none) = (hip.stream(), null_mut());
    assert_eq!(hip.hipStreamCreateWithFlags(&mut none, 5), hipError_t::INVALID_VALUE);
    let (mut flags, mut priority) = (77, 77);
    ok!(hip.hipStreamGetFlags(stream, &mut flags));
    ok!(hip.hipStreamGetPriority(stream, &mut priority));
    assert_eq!((flags, priority), (1, 0));
    let (mut least, mut greatest) = (77, 77);
    ok!(hip.hipDeviceGetStreamPriorityRange(&mut least, &mut greatest));
    assert!(greatest < least, "{greatest} to {least}");
    let mut urgent = null_mut();
    // Beyond the range is the end of the range.
    ok!(hip.hipStreamCreateWithPriority(&mut urgent, 1, greatest - 100));
    ok!(hip.hipStreamGetPriority(urgent, &mut priority));
    assert_eq!(priority, greatest);
    // The null stream and the one of each thread.
    for built_in in [null_mut(), std::ptr::without_provenance_mut(2)] {
        ok!(hip.hipStreamQuery(built_in));
        ok!(hip.hipStreamSynchronize(built_in));
        assert_eq!(hip.hipStreamDestroy(built_in), hipError_t::INVALID_HANDLE);
    }

    let mut event = null_mut();
    assert_eq!(hip.hipEventCreateWithFlags(&mut event, 0x100), hipError_t::INVALID_VALUE);
    let (timed, untimed, fresh) = (hip.event(0), hip.event(NO_TIME | 0x8000_0000), hip.event(0));
    ok!(hip.hipEventQuery(fresh));
    ok!(hip.hipEventSynchronize(fresh));
    ok!(hip.hipStreamWaitEvent(stream, fresh, 0));
    ok!(hip.hipEventRecord(timed, stream));
    ok!(hip.hipEventRecord(untimed, stream));
    ok!(hip.hipStreamSynchronize(stream));
    let mut milliseconds = 0.0;
    for other in [untimed, fresh] {
        assert_eq!(hip.hipEventElapsedTime(&mut milliseconds, timed, other), hipError_t::INVALID_HANDLE);
    }
    [timed, untimed, fresh].into_iter().for_each(|event| ok!(hip.hipEventDestroy(event)));
    [stream, urgent].into_iter().for_each(|stream| ok!(hip.hipStreamDestroy(stream)));
}

unsafe extern "C" fn called(_stream: hipStream_t, status: hipError_t, data: *mut c_void) {
    // SAFETY: the data is the number below, which lives until the stream was waited for.
    unsafe { &*data.cast::<AtomicU32>() }.store(1 + status.0, Ordering::Release);
}

#[test]
fn a_callback_comes_after_the_work_before_it() {
    let Some(hip) = &Hip::start() else { return };
    let (stream, gate, calls) = (hip.stream(), Gate::new(hip), AtomicU32::new(0));
    let (from, to) = (hip.pinned(&noise(4096, 8)), hip.pinned(&[0; 4096]));
    let device = hip.allocate(4096);
    gate.close(hip, stream);
    ok!(hip.hipMemcpyAsync(device.cast(), from.as_ptr().cast(), 4096, TO_DEVICE, stream));
    ok!(hip.hipMemcpyAsync(to.as_mut_ptr().cast(), device.cast(), 4096, TO_HOST, stream));
    ok!(hip.hipStreamAddCallback(stream, Some(called), (&raw const calls).cast_mut().cast(), 0));
    thread::sleep(Duration::from_millis(10));
    assert_eq!(calls.load(Ordering::Acquire), 0, "the stream did not wait");
    assert!(to.iter().all(|byte| *byte == 0));
    gate.open();
    ok!(hip.hipStreamSynchronize(stream));
    assert_eq!(calls.load(Ordering::Acquire), 1);
    assert!(to == from);
    ok!(hip.hipStreamWriteValue32(stream, gate.0.as_ptr().cast_mut().cast(), 77, 0));
    ok!(hip.hipStreamSynchronize(stream));
    assert_eq!(gate.word().load(Ordering::Acquire), 77);
    [from, to, gate.0].into_iter().for_each(|memory| hip.unpin(memory));
    hip.free(device);
    ok!(hip.hipStreamDestroy(stream));
}

#[test]
fn a_captured_stream_says_so_and_runs_as_a_graph() {
    let Some(hip) = &Hip::start() else { return };
    const RELAXED: hipStreamCaptureMode = 2;
    let contents = noise(MIB, 11);
    let (from, to, stream) = (hip.device(&contents), hip.device(&[0; MIB]), hip.stream());
    let (mut status, mut graph, mut executable) = (77, null_mut(), null_mut());
    ok!(hip.hipStreamIsCapturing(stream, &mut status));
    assert_eq!(status, 0);
    ok!(hip.hipStreamBeginCapture(stream, RELAXED));
    ok!(hip.hipStreamIsCapturing(stream, &mut status));
    assert_eq!(status, 1);
    ok!(hip.hipMemcpyAsync(to.cast(), from.cast(), MIB, ON_DEVICE, stream));
    ok!(hip.hipStreamEndCapture(stream, &mut graph));
    assert!(hip.read(to, MIB).iter().all(|byte| *byte == 0), "a captured copy does not run");
    ok!(hip.hipGraphInstantiate(&mut executable, graph, null_mut(), null_mut(), 0));
    ok!(hip.hipGraphLaunch(executable, stream));
    ok!(hip.hipStreamSynchronize(stream));
    assert!(hip.read(to, MIB) == contents);
    ok!(hip.hipGraphExecDestroy(executable));
    ok!(hip.hipGraphDestroy(graph));
    ok!(hip.hipStreamDestroy(stream));
    hip.free(from);
    hip.free(to);
}

/// The objects of a thread.
struct Lane {
    streams: [hipStream_t; 2],
    ready: hipEvent_t,
    device: [*mut u8; 2],
    from: &'static mut [u8],
    to: &'static mut [u8],
}

// SAFETY: handles and addresses that any thread may use, one at a time.
unsafe impl Send for Lane {}

/// Nothing is allocated or freed while the threads run: `hipFree` waits for all streams of the device, and AMD's
/// library of ROCm 5.2 then now and then lets `hipStreamSynchronize` of another thread come back too early.
#[test]
fn threads_have_separate_streams() {
    let Some(hip) = &Hip::start() else { return };
    const ROOM: usize = 160_000;
    let lane = |_| Lane {
        streams: [hip.stream(), hip.stream()],
        ready: hip.event(NO_TIME),
        device: [hip.allocate(ROOM), hip.allocate(ROOM)],
        from: hip.pinned(&[0; ROOM]),
        to: hip.pinned(&[0; ROOM]),
    };
    let mut lanes: Vec<Lane> = (0..4).map(lane).collect();
    thread::scope(|scope| {
        for (seed, lane) in lanes.iter_mut().enumerate() {
            scope.spawn(move || (0..32).for_each(|round| run_lane(hip, lane, seed as u32 * 100 + round)));
        }
    });
    ok!(hip.hipDeviceSynchronize());
    for lane in lanes {
        [lane.from, lane.to].into_iter().for_each(|memory| hip.unpin(memory));
        lane.device.into_iter().for_each(|address| hip.free(address));
        ok!(hip.hipEventDestroy(lane.ready));
        lane.streams.into_iter().for_each(|stream| ok!(hip.hipStreamDestroy(stream)));
    }
}

/// Sends bytes through both streams of a thread, from the host over the device and back.
fn run_lane(hip: &Hip, lane: &mut Lane, seed: u32) {
    let contents = noise(100_000 + 7919 * (seed as usize % 8), seed);
    let bytes = contents.len();
    lane.from[..bytes].copy_from_slice(&contents);
    let ([one, two], [first, second]) = (lane.streams, lane.device);
    ok!(hip.hipMemcpyAsync(first.cast(), lane.from.as_ptr().cast(), bytes, TO_DEVICE, one));
    ok!(hip.hipEventRecord(lane.ready, one));
    ok!(hip.hipStreamWaitEvent(two, lane.ready, 0));
    ok!(hip.hipMemcpyAsync(second.cast(), first.cast(), bytes, ON_DEVICE, two));
    ok!(hip.hipMemcpyAsync(lane.to.as_mut_ptr().cast(), second.cast(), bytes, TO_HOST, two));
    ok!(hip.hipStreamSynchronize(two));
    assert!(lane.to[..bytes] == contents);
}
