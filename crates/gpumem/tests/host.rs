//! The run-time choice over the real host backend behaves as the backend does.
#![cfg(feature = "host")]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use gpumem::{AnyBackend, Backend, DeviceSelector, ErrorKind, MemoryKind, host::Host};
use gpumem_core::{
    AllocationRequest, CompileOptions, CopyRegion, DeviceBuffer, DriverDevice, DriverModule, Event as _,
    EventOptions, Fill, HostFunction, HostLaunch, KernelArguments, KernelSource, LaunchConfig, Pattern,
    Space, Stream, StreamOptions,
};
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

fn open<B: Backend>() -> B::Device {
    B::open(&DeviceSelector::ordinal("host", 0)).unwrap()
}

fn allocate<B: Backend>(device: &B::Device, bytes: usize) -> B::Buffer {
    let request = AllocationRequest { bytes, align: 8, kind: MemoryKind::Device };
    // SAFETY: the request is well formed, and the memory is filled before it is read.
    unsafe { device.allocate(&request) }.unwrap()
}

fn stream<B: Backend>(device: &B::Device) -> B::Stream {
    device.create_stream(&StreamOptions::default()).unwrap()
}

/// Fills on one stream, reads on another after an event, and frees the memory.
fn filled_and_read<B: Backend>() -> Vec<u32> {
    let device = open::<B>();
    let (producer, consumer) = (stream::<B>(&device), stream::<B>(&device));
    let filled = device.create_event(EventOptions::default()).unwrap();
    let buffer = allocate::<B>(&device, 40);
    assert_eq!((buffer.len(), buffer.kind()), (40, MemoryKind::Device));

    let mut read = vec![0u32; 10];
    let fill =
        Fill { address: buffer.address(), pattern: Pattern::U32(0x0102_0304), count: 10, rows: 1, pitch: 0 };
    let host = (read.as_mut_ptr() as u64, Space::Host);
    let region = CopyRegion::linear((buffer.address(), Space::Device(0)), host, 40);
    // SAFETY: both sides are 40 bytes long and live until the streams have been waited for below; the event orders the
    // copy after the fill.
    unsafe {
        producer.fill(&fill).unwrap();
        producer.record(&filled).unwrap();
        consumer.wait(&filled).unwrap();
        consumer.copy(&region).unwrap();
    }
    consumer.synchronize().unwrap();
    assert_eq!(consumer.query(), Ok(true));

    // SAFETY: the buffer is this device's, and nothing that uses it is pending.
    unsafe { device.release(buffer) }.map_err(|(_, error)| error).unwrap();
    filled.destroy().unwrap();
    producer.destroy().unwrap();
    consumer.destroy().unwrap();
    read
}

#[test]
fn memory_and_ordering_are_those_of_the_backend() {
    assert_eq!(filled_and_read::<Host>(), [0x0102_0304; 10]);
    assert_eq!(filled_and_read::<AnyBackend>(), filled_and_read::<Host>());
}

/// Launches a function that takes one number and keeps it.
fn launched<B: Backend>(number: u32) -> u32 {
    let device = open::<B>();
    let stream = stream::<B>(&device);
    let seen = Arc::new(AtomicU32::new(0));
    let keep = seen.clone();
    let function = HostFunction::new(move |launch: HostLaunch<'_>| {
        let number = launch.arguments.read::<u32>(0).ok_or("no number")?;
        keep.store(number * launch.dims.groups[0], Ordering::Relaxed);
        Ok(())
    });
    let source = KernelSource::Host(vec![("keep".to_owned(), function)]);
    let module = device.compile(&source, &CompileOptions::default()).unwrap();
    let kernel = module.kernel("keep").unwrap();
    let arguments = KernelArguments::new().with(number);
    // SAFETY: the function takes one number and reaches no memory of the device.
    unsafe { stream.launch(&kernel, &LaunchConfig::linear(3, 1), &arguments) }.unwrap();
    stream.synchronize().unwrap();
    assert!(matches!(module.kernel("lose").unwrap_err().kind(), ErrorKind::NoSuchKernel { .. }));
    seen.load(Ordering::Relaxed)
}

#[test]
fn kernels_run_through_the_choice() {
    assert_eq!(launched::<AnyBackend>(7), 21);
    assert_eq!(launched::<Host>(7), 21);
}

#[test]
fn the_device_is_the_backends_own() {
    let any = open::<AnyBackend>();
    let own = any.typed::<Host>().unwrap();
    assert_eq!(any.info(), own.info());
    assert_eq!(any.capabilities(), own.capabilities());
    assert_eq!(any.info().backend, "host");
    assert_eq!(any.memory_info().unwrap().total, own.memory_info().unwrap().total);
}

#[test]
fn the_list_has_the_host() {
    assert!(AnyBackend::devices().unwrap().iter().any(|info| info.backend == "host"));
    assert!(AnyBackend::unavailable().iter().all(|(name, _)| *name != "host"));
    assert_eq!(AnyBackend::probe(), Ok(()));
    let error = AnyBackend::open(&"host:9999".parse().unwrap()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NoSuchDevice { .. }), "{error}");
}

#[cfg(feature = "cuda")]
#[test]
fn objects_of_host_and_cuda_do_not_mix() {
    // Without a GPU the same is tested with made-up backends, in the unit tests of the dispatch.
    let Ok(gpu) = AnyBackend::open(&DeviceSelector::ordinal("cuda", 0)) else { return };
    let host = open::<AnyBackend>();
    let event = gpu.create_event(EventOptions::default()).unwrap();
    let mismatch = ErrorKind::BackendMismatch { left: "host", right: "cuda" };
    assert_eq!(stream::<AnyBackend>(&host).record(&event).unwrap_err().kind(), &mismatch);
    let buffer = allocate::<AnyBackend>(&gpu, 64);
    // SAFETY: nothing uses the buffer, and the host does not take it.
    let (buffer, error) = unsafe { host.release(buffer) }.unwrap_err();
    assert_eq!(error.kind(), &mismatch);
    // SAFETY: the buffer is this device's, and nothing uses it.
    unsafe { gpu.release(buffer) }.unwrap();
}
