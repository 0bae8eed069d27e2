//! A backend of somebody else's, written against gpumem-core alone. Its driver is the host backend; with `ORDERED` off,
//! streams do not wait for each other, which is the fault that the suite must find.
#![allow(dead_code, reason = "each test uses a part")]

use gpumem_core::{
    Advice, AllocationRequest, Backend, Capabilities, CompileOptions, CopyRegion, DeviceInfo, DeviceSelector,
    Error, EventOptions, Fill, KernelArgument, KernelSource, LaunchDims, LoadError, Location, MemoryInfo,
    RawStream, RegisterOptions, Result, StreamOptions, StridedCopy,
};
use gpumem_host::{Buffer, Event, Host, HostBarrier, HostOptions, Kernel, Module, Stream};
use std::{ptr::NonNull, sync::Arc};

/// The backend.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Double<const ORDERED: bool>;

/// A device of it: the driver's, under a name of its own.
#[derive(Debug, Clone)]
pub(crate) struct Device {
    raw: gpumem_host::Device,
    info: Arc<DeviceInfo>,
}

impl Device {
    fn over(raw: gpumem_host::Device) -> Self {
        let info = Arc::new(DeviceInfo { backend: "double", ..Host::info(&raw).clone() });
        Self { raw, info }
    }

    /// A device that nobody else has, with the adversarial schedule of a seed.
    pub(crate) fn adversarial(seed: u64) -> Result<Self> {
        Host::open_with(&HostOptions::new().adversarial(seed)).map(Self::over)
    }
}

impl<const ORDERED: bool> Backend for Double<ORDERED> {
    const NAME: &'static str = "double";

    type Device = Device;
    type Buffer = Buffer;
    type Stream = Stream;
    type Event = Event;
    type Barrier = HostBarrier;
    type Module = Module;
    type Kernel = Kernel;

    fn probe() -> Result<(), LoadError> {
        Host::probe()
    }
    fn devices() -> Result<Vec<DeviceInfo>> {
        let ours = |info| DeviceInfo { backend: "double", ..info };
        Ok(Host::devices()?.into_iter().map(ours).collect())
    }
    fn open(selector: &DeviceSelector) -> Result<Device> {
        let at = selector.choose(Self::NAME, &Self::devices()?)?;
        Host::open(&DeviceSelector::ordinal("host", at)).map(Device::over)
    }
    fn info(device: &Device) -> &DeviceInfo {
        &device.info
    }
    fn capabilities(device: &Device) -> &Capabilities {
        Host::capabilities(&device.raw)
    }
    fn barrier(device: &Device) -> HostBarrier {
        Host::barrier(&device.raw)
    }
    fn memory_info(device: &Device) -> Result<MemoryInfo> {
        Host::memory_info(&device.raw)
    }
    fn synchronize(device: &Device) -> Result<()> {
        Host::synchronize(&device.raw)
    }
    unsafe fn reset(device: &Device) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { Host::reset(&device.raw) }
    }
    fn can_access_peer(device: &Device, peer: &Device) -> Result<bool> {
        Host::can_access_peer(&device.raw, &peer.raw)
    }
    fn set_peer_access(device: &Device, peer: &Device, enabled: bool) -> Result<()> {
        Host::set_peer_access(&device.raw, &peer.raw, enabled)
    }
    unsafe fn allocate(device: &Device, request: &AllocationRequest) -> Result<Buffer> {
        // SAFETY: the caller's promise.
        unsafe { Host::allocate(&device.raw, request) }
    }
    unsafe fn release(device: &Device, buffer: Buffer) -> Result<(), (Buffer, Error)> {
        // SAFETY: the caller's promise.
        unsafe { Host::release(&device.raw, buffer) }
    }
    unsafe fn register(
        device: &Device,
        host: NonNull<u8>,
        bytes: usize,
        options: RegisterOptions,
    ) -> Result<Buffer> {
        // SAFETY: the caller's promise.
        unsafe { Host::register(&device.raw, host, bytes, options) }
    }
    unsafe fn advise(device: &Device, address: u64, bytes: usize, advice: Advice) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { Host::advise(&device.raw, address, bytes, advice) }
    }
    fn create_stream(device: &Device, options: &StreamOptions) -> Result<Stream> {
        Host::create_stream(&device.raw, options)
    }
    unsafe fn wrap_stream(device: &Device, raw: RawStream) -> Result<Stream> {
        // SAFETY: the caller's promise.
        unsafe { Host::wrap_stream(&device.raw, raw) }
    }
    fn destroy_stream(device: &Device, stream: Stream) -> Result<()> {
        Host::destroy_stream(&device.raw, stream)
    }
    unsafe fn copy(stream: &Stream, region: &CopyRegion) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { Host::copy(stream, region) }
    }
    unsafe fn copy_strided(stream: &Stream, copy: &StridedCopy) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { Host::copy_strided(stream, copy) }
    }
    unsafe fn fill(stream: &Stream, fill: &Fill) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { Host::fill(stream, fill) }
    }
    unsafe fn prefetch(stream: &Stream, address: u64, bytes: usize, to: Location) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { Host::prefetch(stream, address, bytes, to) }
    }
    fn create_event(device: &Device, options: EventOptions) -> Result<Event> {
        Host::create_event(&device.raw, options)
    }
    fn destroy_event(device: &Device, event: Event) -> Result<()> {
        Host::destroy_event(&device.raw, event)
    }
    fn record(stream: &Stream, event: &Event) -> Result<()> {
        Host::record(stream, event)
    }
    fn wait(stream: &Stream, event: &Event) -> Result<()> {
        if ORDERED { Host::wait(stream, event) } else { Ok(()) }
    }
    fn elapsed(start: &Event, end: &Event) -> Result<f32> {
        Host::elapsed(start, end)
    }
    fn compile(device: &Device, source: &KernelSource, options: &CompileOptions) -> Result<Module> {
        Host::compile(&device.raw, source, options)
    }
    fn kernel(module: &Module, name: &str) -> Result<Kernel> {
        Host::kernel(module, name)
    }
    unsafe fn launch(
        stream: &Stream,
        kernel: &Kernel,
        dims: &LaunchDims,
        arguments: &[KernelArgument],
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { Host::launch(stream, kernel, dims, arguments) }
    }
}
