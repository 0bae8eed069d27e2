//! Helpers of all tests of the backend: small safe wrappers around its unsafe functions.
#![allow(dead_code, reason = "not every test file uses everything")]

use gpumem_core::{
    AllocationRequest, CopyRegion, DeviceBuffer, DriverDevice, DriverModule, Endpoint, ErrorKind, Event,
    EventOptions, Fill, HostFunction, HostLaunch, KernelArguments, KernelSource, LaunchConfig, MemoryKind,
    Pattern, Result, Space, Stream as _, StreamOptions,
};
use gpumem_host::{Buffer, Device, Event as HostEvent, Host, HostOptions, Kernel, Stream};

pub(crate) fn concurrent() -> Device {
    Host::open_with(&HostOptions::new().memory(256 << 20).brief_bytes(0)).unwrap()
}

pub(crate) fn adversarial(seed: u64) -> Device {
    Host::open_with(&HostOptions::new().memory(256 << 20).adversarial(seed)).unwrap()
}

pub(crate) fn allocate(device: &Device, bytes: usize) -> Buffer {
    try_allocate(device, bytes, MemoryKind::Device).unwrap()
}

pub(crate) fn try_allocate(device: &Device, bytes: usize, kind: MemoryKind) -> Result<Buffer> {
    // SAFETY: a valid request; the host zeroes memory.
    unsafe { device.allocate(&AllocationRequest { bytes, align: 64, kind }) }
}

pub(crate) fn release(device: &Device, buffer: Buffer) {
    // SAFETY: the tests that use this have waited before.
    unsafe { device.release(buffer) }.unwrap();
}

pub(crate) fn stream(device: &Device) -> Stream {
    device.create_stream(&StreamOptions::default()).unwrap()
}

pub(crate) fn event(device: &Device) -> HostEvent {
    device.create_event(EventOptions::default()).unwrap()
}

pub(crate) fn host<T>(data: &[T]) -> (u64, Space) {
    (data.as_ptr().expose_provenance() as u64, Space::Host)
}

pub(crate) fn host_mut<T>(data: &mut [T]) -> (u64, Space) {
    (data.as_mut_ptr().expose_provenance() as u64, Space::Host)
}

pub(crate) fn on(device: &Device, buffer: &Buffer) -> (u64, Space) {
    (buffer.address(), Space::Device(device.ordinal()))
}

/// Enqueues a linear copy. The tests keep both sides alive until they have waited.
pub(crate) fn copy(stream: &Stream, from: (u64, Space), to: (u64, Space), bytes: usize) {
    // SAFETY: see above.
    unsafe { stream.copy(&CopyRegion::linear(from, to, bytes)) }.unwrap();
}

/// Enqueues a fill with one byte.
pub(crate) fn fill(stream: &Stream, buffer: &Buffer, value: u8) {
    let fill = Fill {
        address: buffer.address(),
        pattern: Pattern::U8(value),
        count: buffer.len(),
        rows: 1,
        pitch: buffer.len(),
    };
    // SAFETY: the whole buffer.
    unsafe { stream.fill(&fill) }.unwrap();
}

/// Reads a buffer back, on a stream that is ordered after the writes to be seen.
pub(crate) fn read(device: &Device, stream: &Stream, buffer: &Buffer) -> Vec<u8> {
    let mut bytes = vec![0xAA; buffer.len()];
    copy(stream, on(device, buffer), host_mut(&mut bytes), buffer.len());
    stream.synchronize().unwrap();
    bytes
}

pub(crate) fn endpoint((address, space): (u64, Space), pitch: [usize; 2]) -> Endpoint {
    Endpoint { address, space, pitch }
}

pub(crate) fn kernel(
    device: &Device,
    body: impl Fn(HostLaunch<'_>) -> Result<(), String> + Send + Sync + 'static,
) -> Kernel {
    let source = KernelSource::Host(vec![("body".into(), HostFunction::new(body))]);
    let module = device.compile(&source, &Default::default()).unwrap();
    module.kernel("body").unwrap()
}

pub(crate) fn launch(stream: &Stream, kernel: &Kernel) -> Result<()> {
    // SAFETY: the kernels of the tests take no arguments.
    unsafe { stream.launch(kernel, &LaunchConfig::linear(1, 1), &KernelArguments::new()) }
}

pub(crate) fn is_fault<T>(result: &Result<T>) -> bool {
    matches!(result, Err(error) if matches!(error.kind(), ErrorKind::AsynchronousFault { .. }))
}

pub(crate) fn is_lost<T>(result: &Result<T>) -> bool {
    matches!(result, Err(error) if error.is_device_lost())
}

/// Asks until the answer is yes, at most a very long time.
pub(crate) fn ask(event: &HostEvent) -> Result<()> {
    for _ in 0..1_000_000 {
        if event.query()? {
            return Ok(());
        }
        std::thread::yield_now();
    }
    panic!("a query in a loop never became true")
}
