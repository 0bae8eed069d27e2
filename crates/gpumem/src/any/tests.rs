//! Tests of the dispatch, with two backends that record the calls to them.

use super::fake::{Fake, INFO, STUBBORN, log};
use super::*;
use gpumem_core::{
    Advice, AllocationRequest, Barrier, BarrierPoint, CompileOptions, CopyRegion, DeviceBuffer, DriverDevice,
    DriverModule, Error, ErrorKind, Event, EventOptions, Failure, Fill, KernelArguments, KernelSource,
    LaunchConfig, Location, Lowering, MemoryInfo, MemoryKind, Pattern, RawStream, RegisterOptions, Space,
    Stream, StreamOptions, StridedCopy,
};
use std::{ptr::NonNull, sync::Arc};

const NAMES: [&str; 2] = ["left", "right"];

fn open(n: usize) -> AnyDevice {
    AnyBackend::open(&NAMES[n].parse().unwrap()).unwrap()
}

fn allocate(device: &AnyDevice, bytes: usize) -> AnyBuffer {
    let request = AllocationRequest { bytes, align: 1, kind: MemoryKind::Device };
    // SAFETY: the fake has no memory.
    unsafe { device.allocate(&request) }.unwrap()
}

fn stream(device: &AnyDevice) -> AnyStream {
    device.create_stream(&StreamOptions { priority: -1, ..Default::default() }).unwrap()
}

fn event(device: &AnyDevice) -> AnyEvent {
    device.create_event(EventOptions { timing: true }).unwrap()
}

fn kernel(device: &AnyDevice) -> AnyKernel {
    let source = KernelSource::Ptx("text".to_owned());
    let module = device.compile(&source, &CompileOptions::default()).unwrap();
    module.kernel("add").unwrap()
}

fn expect(n: usize, calls: &[&str]) {
    let expected: Vec<_> = calls.iter().map(|call| format!("{} {call}", NAMES[n])).collect();
    assert_eq!(log(), expected);
}

fn mismatch(operation: &'static str, left: usize, right: usize) -> Error {
    Error::new("", operation, ErrorKind::BackendMismatch { left: NAMES[left], right: NAMES[right] })
}

#[test]
fn a_device_uses_its_own_backend() {
    for n in [0, 1] {
        let device = open(n);
        assert_eq!(device.backend(), NAMES[n]);
        assert_eq!(device.info(), &INFO[n]);
        assert_eq!(device.capabilities().wave_size, [32, 64][n]);
        assert_eq!(device.memory_info(), Ok(MemoryInfo { free: n, total: n + 1 }));
        let barrier = device.barrier().clone();
        assert_eq!(barrier.wave_size(), [32, 64][n]);
        assert_eq!(barrier.lowering(BarrierPoint::Wave), Lowering::Source(NAMES[n]));
        device.synchronize().unwrap();
        // SAFETY: the fake has nothing to reset.
        unsafe { device.reset() }.unwrap();
        // SAFETY: the fake has no memory.
        unsafe { device.advise(7, 8, Advice::ReadMostly(true)) }.unwrap();
        expect(n, &["lowering Wave", "synchronize device ()", "reset ()", "advise (7, 8, ReadMostly(true))"]);
    }
}

#[test]
fn memory_keeps_its_kind_and_length() {
    for n in [0, 1] {
        let device = open(n);
        let buffer = allocate(&device, 5);
        assert_eq!((buffer.backend(), buffer.address(), buffer.len()), (NAMES[n], n as u64, 5));
        assert_eq!((buffer.is_empty(), buffer.kind()), (false, MemoryKind::Device));
        let options = RegisterOptions { read_only: true, ..Default::default() };
        let host = NonNull::from(&mut [0u8; 3]).cast();
        // SAFETY: the fake does not touch the memory.
        let registered = unsafe { device.register(host, 3, options) }.unwrap();
        assert_eq!(registered.kind(), MemoryKind::Registered(options));
        assert_eq!(registered.host_address(), Some(host));
        // SAFETY: the fake has no memory.
        unsafe { device.release(buffer) }.unwrap();
        expect(n, &["allocate 5", "register 3", "release 5"]);
    }
}

#[test]
fn a_stream_runs_on_its_own_backend() {
    for n in [0, 1] {
        let device = open(n);
        let stream = stream(&device);
        assert_eq!((stream.backend(), stream.query()), (NAMES[n], Ok(n == 1)));
        stream.synchronize().unwrap();
        let region = CopyRegion::linear((0, Space::Host), (0, Space::Host), 4);
        let strided = StridedCopy {
            source: (0, Space::Host),
            destination: (0, Space::Host),
            item: 6,
            axes: Vec::new(),
        };
        let fill = Fill { address: 0, pattern: Pattern::U8(0), count: 9, rows: 1, pitch: 0 };
        // SAFETY: the fake has no memory.
        unsafe {
            stream.copy(&region).unwrap();
            stream.copy_strided(&strided).unwrap();
            stream.fill(&fill).unwrap();
            stream.prefetch(1, 2, Location::Host).unwrap();
            stream.poison(&[], &Arc::new(Failure::new("upload", "here", "it did"))).unwrap();
        }
        let kernel = kernel(&device);
        assert_eq!(kernel.clone().backend(), NAMES[n]);
        assert_eq!(device.compiler().unwrap().target, NAMES[n]);
        assert_eq!(device.compile_image("words", &CompileOptions::default()).unwrap(), [n as u8]);
        // SAFETY: the fake runs nothing.
        unsafe { stream.launch(&kernel, &LaunchConfig::linear(3, 4), &KernelArguments::new().with(0u64)) }
            .unwrap();
        stream.destroy().unwrap();
        expect(
            n,
            &[
                "create_stream -1",
                "synchronize stream ()",
                "copy 4",
                "copy_strided 6",
                "fill 9",
                "prefetch (1, 2, Host)",
                "poison (0, \"upload\")",
                "compile Ptx(\"text\")",
                "compile_image \"words\"",
                "launch (\"add\", [3, 1, 1], 1)",
                "destroy_stream 0",
                "drop stream ()",
            ],
        );
    }
}

#[test]
fn a_foreign_stream_keeps_its_handle() {
    // SAFETY: the fake does not use the handle.
    let stream = unsafe { open(1).wrap_stream(RawStream(0xabc)) }.unwrap();
    assert_eq!(stream.raw(), RawStream(0xabc));
}

#[test]
fn events_stay_with_their_streams() {
    for n in [0, 1] {
        let device = open(n);
        let (stream, start, end) = (stream(&device), event(&device), event(&device));
        log();
        stream.record(&start).unwrap();
        stream.wait(&end).unwrap();
        start.synchronize().unwrap();
        assert_eq!((start.query(), start.backend()), (Ok(n == 1), NAMES[n]));
        assert_eq!(start.elapsed(&end), Ok(n as f32));
        start.destroy().unwrap();
        expect(n, &["record ()", "wait ()", "synchronize event ()", "destroy_event ()", "drop event ()"]);
    }
}

#[test]
fn peers_are_of_one_backend() {
    for n in [0, 1] {
        let device = open(n);
        assert_eq!(device.can_access_peer(&open(n)), Ok(n == 1));
        device.set_peer_access(&open(n), true).unwrap();
        expect(n, &["can_access_peer ()", "set_peer_access true"]);
        let other = open(1 - n);
        assert_eq!(device.can_access_peer(&other), Ok(false));
        let refused = device.set_peer_access(&other, true).unwrap_err();
        assert!(matches!(refused.kind(), ErrorKind::Unsupported { .. }), "{refused}");
        device.set_peer_access(&other, false).unwrap();
        expect(n, &[]);
    }
}

#[test]
fn two_backends_in_one_call_are_an_error_and_nothing_is_enqueued() {
    for n in [0, 1] {
        let (device, other) = (open(n), open(1 - n));
        let (stream, start) = (stream(&device), event(&device));
        let (foreign, kernel) = (event(&other), kernel(&other));
        log();
        assert_eq!(stream.record(&foreign), Err(mismatch("record", n, 1 - n)));
        assert_eq!(stream.wait(&foreign), Err(mismatch("wait", n, 1 - n)));
        assert_eq!(start.elapsed(&foreign), Err(mismatch("elapsed", n, 1 - n)));
        // SAFETY: the fake runs nothing.
        let launched =
            unsafe { stream.launch(&kernel, &LaunchConfig::linear(1, 1), &KernelArguments::new()) };
        assert_eq!(launched, Err(mismatch("launch", n, 1 - n)));
        expect(n, &[]);
    }
}

#[test]
fn the_buffer_of_another_backend_comes_back() {
    let (device, other) = (open(0), open(1));
    let buffer = allocate(&other, 5);
    log();
    // SAFETY: the fake has no memory.
    let (buffer, error) = unsafe { device.release(buffer) }.unwrap_err();
    assert_eq!(error, mismatch("release", 0, 1));
    expect(0, &[]);
    // SAFETY: the fake has no memory.
    unsafe { other.release(buffer) }.unwrap();
    expect(1, &["release 5"]);
}

#[test]
fn a_buffer_that_the_backend_refuses_comes_back_as_well() {
    let device = open(1);
    let buffer = allocate(&device, STUBBORN);
    // SAFETY: the fake has no memory.
    let (buffer, error) = unsafe { device.release(buffer) }.unwrap_err();
    assert_eq!((buffer.backend(), buffer.len()), ("right", STUBBORN));
    assert_eq!(error, Error::new("right", "release", ErrorKind::Exiting));
}

#[test]
fn typed_access_works_for_the_right_backend_only() {
    let device = open(0);
    let own = device.typed::<Fake<0>>().unwrap();
    assert_eq!(own.info().backend, "left");
    assert!(device.typed::<Fake<1>>().is_none());

    let up = <AnyDevice as Typed<Fake<0>>>::from_typed(own.clone());
    assert_eq!(up.backend(), "left");
    let AnyDevice::Left(on) = &up else { panic!("{up:?}") };
    assert_eq!(on.info().backend, "left");

    let same = Typed::<Fake<1>>::into_typed(up).unwrap_err();
    assert!(Typed::<Fake<0>>::into_typed(same).is_ok());

    assert!(stream(&device).typed::<Fake<0>>().is_some());
    assert!(event(&device).typed::<Fake<1>>().is_none());
    assert_eq!(allocate(&device, 2).typed::<Fake<0>>().unwrap().len(), 2);
}

#[test]
fn selectors_choose_among_the_enabled_backends() {
    let error = AnyBackend::open(&"vulkan:0".parse().unwrap()).unwrap_err();
    let kind = ErrorKind::UnknownBackend { wanted: "vulkan".to_owned(), known: "cuda, roc, host".to_owned() };
    assert_eq!(error, Error::new("", "open", kind));
    assert!(matches!(
        AnyBackend::open(&"any".parse().unwrap()).unwrap_err().kind(),
        ErrorKind::UnknownBackend { .. }
    ));
    let kind = ErrorKind::NoSuchDevice { wanted: "right:3".to_owned(), found: 1 };
    assert_eq!(AnyBackend::open(&"right:3".parse().unwrap()).unwrap_err(), Error::new("right", "open", kind));
}

#[test]
fn the_list_joins_all_backends_and_reports_unavailable_ones() {
    let listed = AnyBackend::devices().unwrap();
    assert!(listed.ends_with(&INFO), "{listed:?}");
    let absent: Vec<_> = AnyBackend::unavailable().into_iter().map(|(name, _)| name).collect();
    for name in AnyBackend::enabled() {
        let devices = listed.iter().filter(|info| info.backend == name).count();
        assert!(devices == 0 || !absent.contains(&name), "{name}");
    }
    assert_eq!(AnyBackend::probe(), Ok(()));
}

#[test]
fn the_backend_that_knows_an_architecture_compiles_for_it() {
    let compile = |architecture| {
        AnyBackend::compile_for(architecture, &|wave| format!("for {wave}"), &CompileOptions::default())
    };
    assert_eq!(compile("fake0").unwrap(), b"for 0");
    assert_eq!(compile("fake1").unwrap(), b"for 1");
    let error = compile("fake2").unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error}");
}
