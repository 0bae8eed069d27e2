//! A third party's backend, written against gpumem-core alone. Its driver is the host backend; with `ORDERED` off,
//! streams do not wait for each other, which is the fault that the suite must find.

use gpumem_core::{
    Advice, AllocationRequest, Backend, Barrier, BarrierPoint, Capabilities, CompileOptions, CopyRegion,
    DeviceInfo, DeviceSelector, Error, EventOptions, Fill, HostFunction, HostFuture, KernelArguments,
    KernelSource, LaunchConfig, LoadError, Location, Lowering, MemoryInfo, RawStream, RegisterOptions,
    Result, StreamOptions, StridedCopy,
};
use gpumem_host::{Buffer, Event, Host, HostBarrier, HostOptions, Kernel, Module, Stream};
use std::{collections::HashMap, ptr::NonNull, sync::Arc};

/// The backend.
#[derive(Debug, Clone, Copy)]
pub struct ThirdParty<const ORDERED: bool>;

/// A device of it: the driver's, with another name.
#[derive(Debug, Clone)]
pub struct ThirdPartyDevice {
    raw: gpumem_host::Device,
    info: Arc<DeviceInfo>,
    capabilities: Arc<Capabilities>,
    programs: Option<Arc<Programs>>,
}

/// The programs of a device that simulates a GPU, by the kernel's name.
pub type Programs = HashMap<String, HostFunction>;

impl ThirdPartyDevice {
    fn over(raw: gpumem_host::Device) -> Self {
        let info = Arc::new(DeviceInfo { backend: "double", ..Host::info(&raw).clone() });
        let capabilities = Arc::new(Host::capabilities(&raw).clone());
        Self { raw, info, capabilities, programs: None }
    }

    /// A device that plays a GPU: it takes the sources of kernels, not their bodies for the host, and runs these
    /// functions for them.
    pub fn gpu(wave_size: u32, programs: Programs) -> Result<Self> {
        let device = Host::open_with(&HostOptions::new().wave_size(wave_size)).map(Self::over)?;
        Ok(Self { programs: Some(Arc::new(programs)), ..device })
    }

    /// A private device, with the adversarial schedule of a seed.
    pub fn adversarial(seed: u64) -> Result<Self> {
        Host::open_with(&HostOptions::new().adversarial(seed)).map(Self::over)
    }

    /// As [`adversarial`](Self::adversarial), and memory of the caller goes through page-locked blocks, as on a GPU.
    pub fn staging(seed: u64) -> Result<Self> {
        let device = Self::adversarial(seed)?;
        let mut capabilities = (*device.capabilities).clone();
        capabilities.pageable_direct = false;
        Ok(Self { capabilities: Arc::new(capabilities), ..device })
    }

    /// Tells whether no enqueued work has run yet.
    pub fn is_late(&self) -> bool {
        self.raw.schedule_trace().is_empty()
    }
}

/// Barriers of the host, or text as on a GPU.
#[derive(Debug, Clone)]
pub struct ThirdPartyBarrier {
    host: HostBarrier,
    is_gpu: bool,
}

// SAFETY: the host backend does the work, and promises it.
unsafe impl Barrier for ThirdPartyBarrier {
    fn wave_size(&self) -> u32 {
        self.host.wave_size()
    }

    fn lowering(&self, point: BarrierPoint) -> Lowering {
        if self.is_gpu { Lowering::Source("barrier();") } else { self.host.lowering(point) }
    }
}

/// The kernel of a source: the one that the runtime's check after the source names.
fn name_of(text: &str) -> Option<&str> {
    text.rsplit_once("decltype(")?.1.split_once(')').map(|(name, _)| name)
}

// SAFETY: the host backend does the work, and promises it.
unsafe impl<const ORDERED: bool> Backend for ThirdParty<ORDERED> {
    const NAME: &'static str = "double";

    type Device = ThirdPartyDevice;
    type Buffer = Buffer;
    type Stream = Stream;
    type Event = Event;
    type Barrier = ThirdPartyBarrier;
    type Module = Module;
    type Kernel = Kernel;

    fn probe() -> Result<(), LoadError> {
        Host::probe()
    }
    fn devices() -> Result<Vec<DeviceInfo>> {
        let renamed = |info| DeviceInfo { backend: "double", ..info };
        Ok(Host::devices()?.into_iter().map(renamed).collect())
    }
    fn open(selector: &DeviceSelector) -> Result<ThirdPartyDevice> {
        let at = selector.choose(Self::NAME, &Self::devices()?)?;
        Host::open(&DeviceSelector::ordinal("host", at)).map(ThirdPartyDevice::over)
    }
    fn info(device: &ThirdPartyDevice) -> &DeviceInfo {
        &device.info
    }
    fn capabilities(device: &ThirdPartyDevice) -> &Capabilities {
        &device.capabilities
    }
    fn barrier(device: &ThirdPartyDevice) -> ThirdPartyBarrier {
        ThirdPartyBarrier { host: Host::barrier(&device.raw), is_gpu: device.programs.is_some() }
    }
    fn memory_info(device: &ThirdPartyDevice) -> Result<MemoryInfo> {
        Host::memory_info(&device.raw)
    }
    fn synchronize(device: &ThirdPartyDevice) -> Result<()> {
        Host::synchronize(&device.raw)
    }
    unsafe fn reset(device: &ThirdPartyDevice) -> Result<()> {
        // SAFETY: the caller keeps the contract of this function, which is that of the call.
        unsafe { Host::reset(&device.raw) }
    }
    fn can_access_peer(device: &ThirdPartyDevice, peer: &ThirdPartyDevice) -> Result<bool> {
        Host::can_access_peer(&device.raw, &peer.raw)
    }
    fn set_peer_access(device: &ThirdPartyDevice, peer: &ThirdPartyDevice, enabled: bool) -> Result<()> {
        Host::set_peer_access(&device.raw, &peer.raw, enabled)
    }
    unsafe fn allocate(device: &ThirdPartyDevice, request: &AllocationRequest) -> Result<Buffer> {
        // SAFETY: the caller keeps the contract of this function, which is that of the call.
        unsafe { Host::allocate(&device.raw, request) }
    }
    unsafe fn release(device: &ThirdPartyDevice, buffer: Buffer) -> Result<(), (Buffer, Error)> {
        // SAFETY: the caller keeps the contract of this function, which is that of the call.
        unsafe { Host::release(&device.raw, buffer) }
    }
    unsafe fn register(
        device: &ThirdPartyDevice,
        host: NonNull<u8>,
        bytes: usize,
        options: RegisterOptions,
    ) -> Result<Buffer> {
        // SAFETY: the caller keeps the contract of this function, which is that of the call.
        unsafe { Host::register(&device.raw, host, bytes, options) }
    }
    unsafe fn advise(device: &ThirdPartyDevice, address: u64, bytes: usize, advice: Advice) -> Result<()> {
        // SAFETY: the caller keeps the contract of this function, which is that of the call.
        unsafe { Host::advise(&device.raw, address, bytes, advice) }
    }
    fn create_stream(device: &ThirdPartyDevice, options: &StreamOptions) -> Result<Stream> {
        Host::create_stream(&device.raw, options)
    }
    unsafe fn wrap_stream(device: &ThirdPartyDevice, raw: RawStream) -> Result<Stream> {
        // SAFETY: the caller keeps the contract of this function, which is that of the call.
        unsafe { Host::wrap_stream(&device.raw, raw) }
    }
    fn destroy_stream(device: &ThirdPartyDevice, stream: Stream) -> Result<()> {
        Host::destroy_stream(&device.raw, stream)
    }
    unsafe fn copy(stream: &Stream, region: &CopyRegion) -> Result<()> {
        // SAFETY: the caller keeps the contract of this function, which is that of the call.
        unsafe { Host::copy(stream, region) }
    }
    unsafe fn copy_strided(stream: &Stream, copy: &StridedCopy) -> Result<()> {
        // SAFETY: the caller keeps the contract of this function, which is that of the call.
        unsafe { Host::copy_strided(stream, copy) }
    }
    unsafe fn fill(stream: &Stream, fill: &Fill) -> Result<()> {
        // SAFETY: the caller keeps the contract of this function, which is that of the call.
        unsafe { Host::fill(stream, fill) }
    }
    unsafe fn prefetch(stream: &Stream, address: u64, bytes: usize, to: Location) -> Result<()> {
        // SAFETY: the caller keeps the contract of this function, which is that of the call.
        unsafe { Host::prefetch(stream, address, bytes, to) }
    }
    unsafe fn enqueue_future(stream: &Stream, future: HostFuture) -> Result<()> {
        // SAFETY: the caller keeps the contract of this function, which is that of the call.
        unsafe { Host::enqueue_future(stream, future) }
    }
    fn create_event(device: &ThirdPartyDevice, options: EventOptions) -> Result<Event> {
        Host::create_event(&device.raw, options)
    }
    fn destroy_event(device: &ThirdPartyDevice, event: Event) -> Result<()> {
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
    fn compile(device: &ThirdPartyDevice, source: &KernelSource, options: &CompileOptions) -> Result<Module> {
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
        // SAFETY: the caller keeps the contract of this function, which is that of the call.
        unsafe { Host::launch(stream, kernel, dims, arguments) }
    }
}
