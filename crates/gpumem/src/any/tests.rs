//! Tests of calls that two backends meet in: the host, and a double of a GPU's driver.
//! `tests/conformance_any.rs` runs the whole suite through the choice.

use super::{backend::compile_by, *};
use gpumem_core::{
    AllocationRequest, CompileOptions, DeviceBuffer, DriverDevice, DriverModule, Error, ErrorKind, Event,
    EventOptions, HostFunction, KernelArguments, KernelSource, LaunchConfig, MemoryKind, Stream,
    StreamOptions,
};
use gpumem_host::Host;
use host_double::{Double, DoubleDevice, DoubleOptions, Script, Trouble};

fn host() -> AnyDevice {
    AnyBackend::open(&"host".parse().unwrap()).unwrap()
}

fn double() -> (AnyDevice, DoubleDevice) {
    let device = Double::open_with(&DoubleOptions::default()).unwrap();
    (AnyDevice::Double(device.clone()), device)
}

fn allocate(device: &AnyDevice, bytes: usize) -> AnyBuffer {
    let request = AllocationRequest { bytes, align: 1, kind: MemoryKind::Device };
    // SAFETY: no work uses the memory.
    unsafe { device.allocate(&request) }.unwrap()
}

fn stream(device: &AnyDevice) -> AnyStream {
    device.create_stream(&StreamOptions::default()).unwrap()
}

fn event(device: &AnyDevice) -> AnyEvent {
    device.create_event(EventOptions { timing: true }).unwrap()
}

fn kernel(device: &AnyDevice) -> AnyKernel {
    let body = HostFunction::new(|_| Ok(()));
    let source = KernelSource::Host(vec![("add".to_owned(), body)]);
    device.compile(&source, &CompileOptions::default()).unwrap().kernel("add").unwrap()
}

fn mismatch(operation: &'static str, left: &'static str, right: &'static str) -> Error {
    Error::new("", operation, ErrorKind::BackendMismatch { left, right })
}

#[test]
fn two_backends_in_one_call_are_an_error_and_nothing_is_enqueued() {
    let (host, (double, calls)) = (host(), double());
    for (own, other, [left, right]) in
        [(&host, &double, ["host", "double"]), (&double, &host, ["double", "host"])]
    {
        assert_eq!((own.backend(), other.backend()), (left, right));
        let (stream, start) = (stream(own), event(own));
        let (foreign, kernel) = (event(other), kernel(other));
        calls.script().begin(None);
        assert_eq!(stream.record(&foreign), Err(mismatch("record", left, right)));
        assert_eq!(stream.wait(&foreign), Err(mismatch("wait", left, right)));
        assert_eq!(start.elapsed(&foreign), Err(mismatch("elapsed", left, right)));
        assert_eq!(own.record_device(&foreign), Err(mismatch("record_device", left, right)));
        let (dims, none) = (LaunchConfig::linear(1, 1), KernelArguments::new());
        // SAFETY: the kernel is not launched.
        assert_eq!(unsafe { stream.launch(&kernel, &dims, &none) }, Err(mismatch("launch", left, right)));
        assert_eq!((calls.script().calls(), stream.query()), (0, Ok(true)));
    }
}

#[test]
fn peers_are_of_one_backend() {
    let (host, (double, _)) = (host(), double());
    for (device, other) in [(&host, &double), (&double, &host)] {
        assert_eq!(device.can_access_peer(other), Ok(false));
        let refused = device.set_peer_access(other, true).unwrap_err();
        assert!(matches!(refused.kind(), ErrorKind::Unsupported { .. }), "{refused}");
        device.set_peer_access(other, false).unwrap();
    }
}

#[test]
fn the_buffer_of_another_backend_comes_back() {
    let (device, (other, calls)) = (host(), double());
    let buffer = allocate(&other, 5);
    // SAFETY: no work uses the memory.
    let (buffer, error) = unsafe { device.release(buffer) }.unwrap_err();
    assert_eq!(error, mismatch("release", "host", "double"));
    assert_eq!(calls.script().calls_of("release"), 0);
    // SAFETY: as above.
    unsafe { other.release(buffer) }.unwrap();
    assert_eq!(calls.script().calls_of("release"), 1);
}

#[test]
fn a_buffer_that_the_backend_refuses_comes_back_as_well() {
    let (device, calls) = double();
    let buffer = allocate(&device, 13);
    calls.script().begin(Some((0, Trouble::Refuse)));
    // SAFETY: no work uses the memory.
    let (buffer, error) = unsafe { device.release(buffer) }.unwrap_err();
    assert_eq!((buffer.backend(), buffer.len()), ("double", 13));
    assert_eq!(error, Error::new("double", "release", Script::REFUSED));
}

#[test]
fn typed_access_works_for_the_right_backend_only() {
    let device = host();
    let own = device.typed::<Host>().unwrap();
    assert!(device.typed::<Double>().is_none());

    let up = <AnyDevice as Typed<Host>>::from_typed(own.clone());
    assert_eq!(up.backend(), "host");
    let AnyDevice::Host(_) = &up else { panic!("{up:?}") };
    let same = Typed::<Double>::into_typed(up).unwrap_err();
    assert!(Typed::<Host>::into_typed(same).is_ok());

    assert!(stream(&device).typed::<Host>().is_some());
    assert!(event(&device).typed::<Double>().is_none());
    assert_eq!(allocate(&device, 2).typed::<Host>().unwrap().len(), 2);
}

#[test]
fn a_selector_names_one_of_the_backends_and_not_their_choice() {
    let refused = |name: &str| AnyBackend::open(&name.parse().unwrap()).unwrap_err();
    assert!(matches!(refused("any").kind(), ErrorKind::UnknownBackend { .. }));
    let kind = ErrorKind::NoSuchDevice { wanted: "double:3".to_owned(), found: 0 };
    assert_eq!(refused("double:3"), Error::new("double", "open", kind));
}

#[test]
fn the_list_joins_all_backends() {
    assert!(AnyBackend::enabled().ends_with(&["host", "double"]));
    assert!(AnyBackend::devices().unwrap().ends_with(&gpumem_host::Host::devices().unwrap()));
    assert_eq!(AnyBackend::probe(), Ok(()));
}

#[test]
fn the_backend_that_knows_an_architecture_compiles_for_it() {
    fn other() -> Result<Vec<u8>> {
        Err(Error::new("", "compile_for", ErrorKind::Unsupported { what: "that" }))
    }
    let compilers: [ArchitectureCompiler; 2] = [
        |name, text, _| if name == "left" { Ok(text(0).into_bytes()) } else { other() },
        |name, text, _| if name == "right" { Ok(text(1).into_bytes()) } else { other() },
    ];
    let compile =
        |name| compile_by(&compilers, name, &|wave| format!("for {wave}"), &CompileOptions::default());
    assert_eq!(compile("left").unwrap(), b"for 0");
    assert_eq!(compile("right").unwrap(), b"for 1");
    let error = compile("neither").unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error}");
}

/// Its functions have no defaults here, which clippy looks after: a constant cannot be looked after like that.
#[test]
fn memory_checkers_are_told_as_by_the_backend_itself() {
    assert_eq!(AnyBackend::WANTS_POISONING, Host::WANTS_POISONING);
}
