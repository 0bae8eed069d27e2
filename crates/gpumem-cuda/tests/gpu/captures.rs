//! Captures of other libraries go on, whatever is done beside them.

use crate::{
    Case, Skip,
    fixture::{Lab, Numbers},
};
use cudarc::driver::sys;
use gpumem_core::{
    AllocationRequest, Attach, CaptureStart, DeviceBuffer, DriverDevice, DriverModule, ErrorKind, Event,
    EventOptions, Fill, KernelArguments, LaunchConfig, MemoryKind, Pattern, RawStream, RegisterOptions,
    Stream, StreamKind, StreamOptions,
};
use gpumem_cuda::{Cuda, CudaExt};
use std::ptr::{NonNull, null_mut, with_exposed_provenance_mut};

pub(crate) const CASES: &[Case] = &[
    ("a_capture_of_another_library_goes_on", beside_a_capture),
    ("a_capture_of_a_blocking_stream_goes_on", beside_a_blocking_capture),
    ("no_stream_joins_a_capture_of_another_library", a_captured_event),
];

/// A stream that another library captures in the mode that is the default, which minds calls of all threads.
struct Capture(sys::CUstream);

impl Capture {
    fn begin(lab: &Lab, flags: u32) -> Self {
        let mut raw = null_mut();
        let mode = sys::CUstreamCaptureMode_enum::CU_STREAM_CAPTURE_MODE_GLOBAL;
        // SAFETY: the context is alive; a place for a handle; the stream is new.
        unsafe {
            sys::cuCtxSetCurrent(Cuda::context(&lab.device)).result().unwrap();
            sys::cuStreamCreate(&mut raw, flags).result().unwrap();
            sys::cuStreamBeginCapture_v2(raw, mode).result().unwrap();
        }
        Self(raw)
    }

    /// Ends the capture, which no call has invalidated.
    fn end(self) {
        let mut graph = null_mut();
        // SAFETY: the stream is this value's, and is not used again; a place for a handle.
        unsafe {
            sys::cuStreamEndCapture(self.0, &mut graph).result().unwrap();
            sys::cuGraphDestroy(graph).result().unwrap();
            sys::cuStreamDestroy_v2(self.0).result().unwrap();
            sys::cuCtxSetCurrent(null_mut()).result().unwrap();
        }
    }
}

/// What the runtime asks of the driver, but for waits for the device: those of a block of the fixture's, too.
fn everything(lab: &Lab) {
    let bytes = 1 << 20;
    let kinds = [MemoryKind::Device, MemoryKind::Pinned, MemoryKind::Managed(Attach::Global)];
    // SAFETY: the sizes are sound, and device memory is written before it is read.
    let allocate =
        |kind| unsafe { lab.device.allocate(&AllocationRequest { bytes, align: 16, kind }) }.unwrap();
    let blocks = kinds.map(allocate);
    let address = blocks[0].address();
    let fill = |value| Fill { address, pattern: Pattern::U8(value), count: bytes, rows: 1, pitch: bytes };
    let data = Numbers(9).bytes(bytes);
    lab.write(address, &data);
    assert_eq!(lab.read(address, bytes), data);
    let mut own = vec![0u8; 1 << 16];
    let place = NonNull::new(own.as_mut_ptr()).unwrap();
    // SAFETY: the memory is this function's until the buffer is released, and nothing uses it.
    unsafe {
        let registered = lab.device.register(place, own.len(), RegisterOptions::default()).unwrap();
        lab.device.release(registered).map_err(|(_, error)| error).unwrap();
    }
    let (stream, other) = (lab.stream(), lab.stream());
    let event = lab.device.create_event(EventOptions::default()).unwrap();
    lab.fill(&stream, &fill(1));
    stream.record(&event).unwrap();
    other.wait(&event).unwrap();
    event.synchronize().unwrap();
    assert!(event.query().unwrap());
    other.synchronize().unwrap();
    assert!(other.query().unwrap());
    event.destroy().unwrap();
    lab.device.memory_info().unwrap();
    let module = lab.compile("extern \"C\" __global__ void nothing() {}");
    let kernel = module.kernel("nothing").unwrap();
    // SAFETY: the kernel has no arguments and uses no memory.
    unsafe { stream.launch(&kernel, &LaunchConfig::linear(1, 1), &KernelArguments::new()) }.unwrap();
    stream.synchronize().unwrap();
    drop((kernel, module));
    // A graph of the library's own.
    // SAFETY: what is enqueued until the end is launched below.
    assert_eq!(unsafe { stream.begin_capture() }.unwrap(), CaptureStart::Begun);
    lab.fill(&stream, &fill(7));
    let mut graph = stream.end_capture(false).unwrap();
    // SAFETY: the memory is alive until the stream has been waited for.
    unsafe { graph.launch(&other) }.unwrap();
    other.synchronize().unwrap();
    drop((graph, stream, other));
    assert!(lab.read(address, bytes).iter().all(|byte| *byte == 7));
    for block in blocks {
        // SAFETY: all that used it has been waited for.
        unsafe { lab.device.release(block) }.map_err(|(_, error)| error).unwrap();
    }
}

fn beside_a_capture(lab: &Lab) -> Result<(), Skip> {
    let non_blocking = 1;
    let capture = Capture::begin(lab, non_blocking);
    everything(lab);
    std::thread::scope(|scope| scope.spawn(|| everything(lab)).join()).unwrap();
    capture.end();
    Ok(())
}

fn beside_a_blocking_capture(lab: &Lab) -> Result<(), Skip> {
    let options = StreamOptions { kind: StreamKind::Legacy, ..Default::default() };
    let (legacy, block) = (lab.device.create_stream(&options).unwrap(), lab.allocate(MemoryKind::Device, 64));
    let event = lab.device.create_event(EventOptions::default()).unwrap();
    let capture = Capture::begin(lab, 0);
    std::thread::scope(|scope| scope.spawn(|| everything(lab)).join()).unwrap();
    let fill = Fill { address: block.address(), pattern: Pattern::U8(1), count: 64, rows: 1, pitch: 64 };
    for refused in [
        // SAFETY: nothing is enqueued.
        unsafe { legacy.fill(&fill) },
        legacy.record(&event),
        legacy.wait(&event),
        legacy.synchronize(),
        legacy.query().map(drop),
        lab.device.synchronize(),
        lab.device.record_device(&event),
    ] {
        let error = refused.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error}");
    }
    capture.end();
    // SAFETY: the memory is alive until the stream has been waited for.
    unsafe { legacy.fill(&fill) }.unwrap();
    legacy.synchronize().unwrap();
    lab.device.synchronize().unwrap();
    Ok(())
}

/// A stream that waits for an event of the capture would be captured, too.
fn a_captured_event(lab: &Lab) -> Result<(), Skip> {
    let (non_blocking, block) = (1, lab.allocate(MemoryKind::Device, 64));
    let event = lab.device.create_event(EventOptions::default()).unwrap();
    let fill =
        |value| Fill { address: block.address(), pattern: Pattern::U8(value), count: 64, rows: 1, pitch: 64 };
    let capture = Capture::begin(lab, non_blocking);
    let raw = RawStream(capture.0.addr() as u64);
    // SAFETY: the stream lives until the capture has ended.
    let theirs = unsafe { lab.device.wrap_stream(raw) }.unwrap();
    // SAFETY: the memory is alive as long as the graph that the fill becomes part of.
    unsafe { theirs.fill(&fill(1)) }.unwrap();
    let error = theirs.record(&event).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error}");
    let own = lab.stream();
    lab.fill(&own, &fill(2));
    own.synchronize().unwrap();
    assert_eq!(lab.read(block.address(), 64), [2; 64], "it ran");
    drop(theirs);
    capture.end();
    // A stream of the library's own, whose handle another library has.
    let RawStream(handle) = own.raw();
    let raw = with_exposed_provenance_mut(handle as usize);
    let (mode, mut graph) = (sys::CUstreamCaptureMode_enum::CU_STREAM_CAPTURE_MODE_RELAXED, null_mut());
    // SAFETY: the stream is alive; a place for a handle.
    unsafe {
        sys::cuStreamBeginCapture_v2(raw, mode).result().unwrap();
        let error = own.record(&event).unwrap_err();
        sys::cuStreamEndCapture(raw, &mut graph).result().unwrap();
        sys::cuGraphDestroy(graph).result().unwrap();
        assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error}");
    }
    own.record(&event).unwrap();
    event.synchronize().unwrap();
    Ok(())
}
