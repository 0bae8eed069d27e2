//! A third party's backend, written against gpumem-core alone. Its driver is the host backend. A device may be
//! [unordered](ThirdPartyDevice::unordered): its streams do not wait for each other, which is the fault that the suite must find.

use gpumem_core::{
    Advice, AllocationRequest, Backend, Barrier, BarrierPoint, Capabilities, CompileOptions, CopyRegion,
    DeviceInfo, DeviceSelector, DriverDevice, DriverModule, Error, EventOptions, Failure, Fill, HostFunction,
    HostFuture, KernelArguments, KernelSource, LaunchConfig, LoadError, Location, Lowering, MemoryInfo,
    MemoryUse, RawStream, RegisterOptions, Result, StreamOptions, StridedCopy,
};
use gpumem_host::{Buffer, Event, Host, HostBarrier, HostOptions, Kernel, Module, Stream};
use std::{collections::HashMap, ptr::NonNull, sync::Arc};

/// The backend.
#[derive(Debug, Clone, Copy)]
pub struct ThirdParty;

/// A device of it: the driver's, with another name.
#[derive(Debug, Clone)]
pub struct ThirdPartyDevice {
    raw: gpumem_host::Device,
    info: Arc<DeviceInfo>,
    capabilities: Arc<Capabilities>,
    programs: Option<Arc<Programs>>,
    is_ordered: bool,
}

/// The programs of a device that simulates a GPU, by the kernel's name.
pub type Programs = HashMap<String, HostFunction>;

impl ThirdPartyDevice {
    fn host(&self) -> &gpumem_host::Device {
        &self.raw
    }

    fn stream(&self, raw: Stream) -> ThirdPartyStream {
        ThirdPartyStream { raw, is_ordered: self.is_ordered }
    }

    fn over(raw: gpumem_host::Device) -> Self {
        let info = Arc::new(DeviceInfo { backend: "double", ..raw.info().clone() });
        let capabilities = Arc::new(raw.capabilities().clone());
        Self { raw, info, capabilities, programs: None, is_ordered: true }
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

    /// The same device, but streams that it makes do not wait for others.
    #[must_use]
    pub fn unordered(self) -> Self {
        Self { is_ordered: false, ..self }
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

/// A stream of it, which waits for others if its device is ordered.
#[derive(Debug)]
pub struct ThirdPartyStream {
    raw: Stream,
    is_ordered: bool,
}

impl ThirdPartyStream {
    fn host(&self) -> &Stream {
        &self.raw
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
unsafe impl Backend for ThirdParty {
    const NAME: &'static str = "double";
    const WANTS_POISONING: bool = false;

    type Device = ThirdPartyDevice;
    type Buffer = Buffer;
    type Stream = ThirdPartyStream;
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
}

// SAFETY: the host backend does the work, and promises it.
unsafe impl DriverDevice<ThirdParty> for ThirdPartyDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }
    fn barrier(&self) -> ThirdPartyBarrier {
        ThirdPartyBarrier { host: self.raw.barrier(), is_gpu: self.programs.is_some() }
    }
    forward! {
        fn memory_info() -> Result<MemoryInfo>;
        fn synchronize() -> Result<()>;
        fn create_event(options: EventOptions) -> Result<Event>;
    }
    forward! {
        unsafe fn reset() -> Result<()>;
        unsafe fn allocate(request: &AllocationRequest) -> Result<Buffer>;
        unsafe fn release(buffer: Buffer) -> Result<(), (Buffer, Error)>;
        unsafe fn register(host: NonNull<u8>, bytes: usize, options: RegisterOptions) -> Result<Buffer>;
        unsafe fn advise(address: u64, bytes: usize, advice: Advice) -> Result<()>;
    }
    fn can_access_peer(&self, peer: &Self) -> Result<bool> {
        self.raw.can_access_peer(&peer.raw)
    }
    fn set_peer_access(&self, peer: &Self, enabled: bool) -> Result<()> {
        self.raw.set_peer_access(&peer.raw, enabled)
    }
    fn create_stream(&self, options: &StreamOptions) -> Result<ThirdPartyStream> {
        Ok(self.stream(self.raw.create_stream(options)?))
    }
    unsafe fn wrap_stream(&self, raw: RawStream) -> Result<ThirdPartyStream> {
        // SAFETY: the conditions of the function are those of the host's.
        Ok(self.stream(unsafe { self.raw.wrap_stream(raw) }?))
    }
    fn compile(&self, source: &KernelSource, options: &CompileOptions) -> Result<Module> {
        let found = match (source, &self.programs) {
            (KernelSource::Text(text), Some(programs)) => name_of(text).and_then(|name| {
                Some(KernelSource::Host(vec![(name.to_owned(), programs.get(name)?.clone())]))
            }),
            _ => None,
        };
        self.raw.compile(found.as_ref().unwrap_or(source), options)
    }
}

// SAFETY: the host backend does the work, and promises it; a device that is not ordered is a broken one on purpose.
unsafe impl gpumem_core::Stream<ThirdParty> for ThirdPartyStream {
    forward! {
        fn synchronize() -> Result<()>;
        fn query() -> Result<bool>;
        fn raw() -> RawStream;
        fn record(event: &Event) -> Result<()>;
    }
    forward! {
        unsafe fn copy(region: &CopyRegion) -> Result<()>;
        unsafe fn copy_strided(copy: &StridedCopy) -> Result<()>;
        unsafe fn fill(fill: &Fill) -> Result<()>;
        unsafe fn prefetch(address: u64, bytes: usize, to: Location) -> Result<()>;
        unsafe fn enqueue_future(future: HostFuture) -> Result<()>;
        unsafe fn poison(torn: &[MemoryUse], failure: &Arc<Failure>) -> Result<()>;
        unsafe fn launch(kernel: &Kernel, dims: &LaunchConfig, arguments: &KernelArguments) -> Result<()>;
    }
    fn destroy(self) -> Result<()> {
        self.raw.destroy()
    }
    fn wait(&self, event: &Event) -> Result<()> {
        if self.is_ordered { self.raw.wait(event) } else { Ok(()) }
    }
}

// SAFETY: the host backend does the work, and promises it.
unsafe impl DriverModule<ThirdParty> for Module {
    fn kernel(&self, name: &str) -> Result<Kernel> {
        DriverModule::<Host>::kernel(self, name)
    }
}
