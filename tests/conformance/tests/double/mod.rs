//! A third party's backend, written against gpumem-core alone. Its driver is the host backend; with `ORDERED` off,
//! streams do not wait for each other, which is the fault that the suite must find.
#![allow(dead_code, reason = "each test uses a part")]

use gpumem_core::{
    Advice, AllocationRequest, Backend, Barrier, BarrierPoint, Capabilities, CompileOptions, CopyRegion,
    DeviceInfo, DeviceSelector, Error, EventOptions, Fill, HostFunction, KernelArguments, KernelSource,
    LaunchConfig, LoadError, Location, Lowering, MemoryInfo, RawStream, RegisterOptions, Result,
    StreamOptions, StridedCopy,
};
use gpumem_host::{Buffer, Event, Host, HostBarrier, HostOptions, Kernel, Module, Stream};
use std::{collections::HashMap, ptr::NonNull, sync::Arc};

/// The backend.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Double<const ORDERED: bool>;

/// A device of it: the driver's, under a name of its own.
#[derive(Debug, Clone)]
pub(crate) struct Device {
    raw: gpumem_host::Device,
    info: Arc<DeviceInfo>,
    capabilities: Arc<Capabilities>,
    programs: Option<Arc<Programs>>,
}

/// What the compiler of a device that plays a GPU makes of a kernel's source, by the kernel's name.
pub(crate) type Programs = HashMap<String, HostFunction>;

impl Device {
    fn over(raw: gpumem_host::Device) -> Self {
        let info = Arc::new(DeviceInfo { backend: "double", ..Host::info(&raw).clone() });
        let capabilities = Arc::new(Host::capabilities(&raw).clone());
        Self { raw, info, capabilities, programs: None }
    }

    /// A device that plays a GPU: it takes the sources of kernels, not their bodies for the host, and runs these
    /// functions for them.
    pub(crate) fn gpu(wave_size: u32, programs: Programs) -> Result<Self> {
        let device = Host::open_with(&HostOptions::new().wave_size(wave_size)).map(Self::over)?;
        Ok(Self { programs: Some(Arc::new(programs)), ..device })
    }

    /// A private device, with the adversarial schedule of a seed.
    pub(crate) fn adversarial(seed: u64) -> Result<Self> {
        Host::open_with(&HostOptions::new().adversarial(seed)).map(Self::over)
    }

    /// As [`adversarial`](Self::adversarial), and memory of the caller goes through page-locked blocks, as on a GPU.
    pub(crate) fn staging(seed: u64) -> Result<Self> {
        let device = Self::adversarial(seed)?;
        let mut capabilities = (*device.capabilities).clone();
        capabilities.pageable_direct = false;
        Ok(Self { capabilities: Arc::new(capabilities), ..device })
    }

    /// Whether nothing has run yet of what was enqueued.
    pub(crate) fn is_late(&self) -> bool {
        self.raw.schedule_trace().is_empty()
    }
}

/// Barriers of the host, or text as on a GPU.
#[derive(Debug, Clone)]
pub(crate) struct DoubleBarrier {
    host: HostBarrier,
    is_gpu: bool,
}

// SAFETY: the host backend does the work, and promises it.
unsafe impl Barrier for DoubleBarrier {
    fn wave_size(&self) -> u32 {
        self.host.wave_size()
    }

    fn lowering(&self, point: BarrierPoint) -> Lowering {
        if self.is_gpu { Lowering::Source("barrier();") } else { self.host.lowering(point) }
    }
}

/// The kernel of a source: the one that the runtime's check behind the source names.
fn name_of(text: &str) -> Option<&str> {
    text.rsplit_once("decltype(")?.1.split_once(')').map(|(name, _)| name)
}

// SAFETY: the host backend does the work, and promises it.
unsafe impl<const ORDERED: bool> Backend for Double<ORDERED> {
    const NAME: &'static str = "double";

    type Device = Device;
    type Buffer = Buffer;
    type Stream = Stream;
    type Event = Event;
    type Barrier = DoubleBarrier;
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
        &device.capabilities
    }
    fn barrier(device: &Device) -> DoubleBarrier {
        DoubleBarrier { host: Host::barrier(&device.raw), is_gpu: device.programs.is_some() }
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
        let found = match (source, &device.programs) {
            (KernelSource::Text(text), Some(programs)) => name_of(text).and_then(|name| {
                Some(KernelSource::Host(vec![(name.to_owned(), programs.get(name)?.clone())]))
            }),
            _ => None,
        };
        Host::compile(&device.raw, found.as_ref().unwrap_or(source), options)
    }
    fn kernel(module: &Module, name: &str) -> Result<Kernel> {
        Host::kernel(module, name)
    }
    unsafe fn launch(
        stream: &Stream,
        kernel: &Kernel,
        dims: &LaunchConfig,
        arguments: &KernelArguments,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { Host::launch(stream, kernel, dims, arguments) }
    }
}
