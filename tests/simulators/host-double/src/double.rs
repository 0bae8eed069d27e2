//! A test double of a GPU's driver, on the host backend.
//!
//! The host backend copies ordinary memory and walks any layout, so on it the runtime never takes the way that it takes
//! on a GPU: through page-locked blocks, in pieces, with several driver calls. The double can do neither, and it
//! refuses to be handed memory of the caller that is not page-locked.

use crate::{
    Script,
    graph::{Call, Capture, invalid},
};
use gpumem_core::{
    Advice, AllocationRequest, Backend, Capabilities, CaptureStart, CollectiveLibrary, CompileOptions,
    CopyRegion, DeviceBuffer, DeviceInfo, DeviceSelector, DriverDevice, DriverModule, Endpoint, Error,
    ErrorKind, EventOptions, ExecutableGraph, Failure, Fill, GraphNode, HostFuture, IpcMemory,
    KernelArguments, KernelSource, LaunchConfig, LoadError, Location, MemoryInfo, MemoryKind, MemoryUse,
    RawStream, RegisterOptions, Result, Space, Stream, StreamKind, StreamOptions, StridedCopy,
};
use gpumem_host::{Buffer, Device, Event, Host, HostBarrier, HostOptions, Kernel, Module};
use parking_lot::Mutex;
use std::{
    cell::RefCell,
    collections::VecDeque,
    ops::{Deref, Range},
    ptr::NonNull,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

pub(crate) const NAME: &str = "double";

/// Stands for the handles of all streams.
const ALL: u64 = u64::MAX;

/// The backend.
#[derive(Debug, Clone, Copy)]
pub struct Double;

/// How a double is set up.
#[derive(Debug, Clone)]
pub struct DoubleOptions {
    /// The host device that it forwards to.
    pub host: HostOptions,
    /// Whether it copies ordinary memory and any layout, as the host does. False as on a GPU by default.
    pub is_direct: bool,
    /// Whether it walks any layout in its own memory, as a GPU with a kernel for that.
    pub is_packing: bool,
    /// The name of its backend. Doubles of two names behave as devices of two backends do: neither reaches the other's
    /// memory or waits for its events.
    pub name: &'static str,
    /// Bytes of page-locked memory that there are.
    pub page_locked: u64,
    /// Whether released memory of the device is free only after a delay: each query of the free memory frees one more
    /// block.
    pub frees_late: bool,
    /// Whether its streams ignore that they are to wait for an event, as those of a broken driver.
    pub ignores_waits: bool,
    /// A library of collective operations that works on its streams. Then it has no futures, and does not go on after a
    /// failure, as a GPU.
    pub collective_library: Option<CollectiveLibrary>,
    /// Whether it captures graphs, as CUDA.
    pub captures: bool,
}

impl Default for DoubleOptions {
    fn default() -> Self {
        Self {
            host: HostOptions::new(),
            is_direct: false,
            is_packing: false,
            name: NAME,
            page_locked: u64::MAX,
            frees_late: false,
            ignores_waits: false,
            collective_library: None,
            captures: false,
        }
    }
}

/// A device of the double.
#[derive(Debug, Clone)]
pub struct DoubleDevice(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    host: Device,
    info: DeviceInfo,
    capabilities: Capabilities,
    script: Script,
    /// Bytes of page-locked memory that there may be.
    page_locked: u64,
    ignores_waits: bool,
    captures: bool,
    /// Which of its streams answer that they are captured: that with this handle, [all](ALL), or none by 0.
    captured: AtomicU64,
    /// Graphs that have been made and not been destroyed.
    graphs: AtomicUsize,
    /// Blocks that were released and are not free yet, the oldest first.
    late: Mutex<VecDeque<Buffer>>,
    /// Page-locked memory. Whole pages of the caller's may lie around blocks of the library, so these may overlap.
    locked: Mutex<Vec<Range<u64>>>,
}

/// A stream of the double. The per-thread default stream is a name, as on a GPU: on each thread it means another stream.
#[derive(Debug)]
pub struct DoubleStream {
    device: DoubleDevice,
    host: gpumem_host::Stream,
    kind: StreamKind,
    capture: Mutex<Option<Capture>>,
}

/// The stream that a handle means on this thread.
enum Meant<'a> {
    It(&'a gpumem_host::Stream),
    OfThread(gpumem_host::Stream),
}

impl Deref for Meant<'_> {
    type Target = gpumem_host::Stream;

    fn deref(&self) -> &gpumem_host::Stream {
        match self {
            Meant::It(stream) => stream,
            Meant::OfThread(stream) => stream,
        }
    }
}

/// An event of the double.
#[derive(Debug)]
pub struct DoubleEvent {
    device: DoubleDevice,
    host: Event,
    capture: Mutex<Option<Capture>>,
}

thread_local! {
    static CURRENT: RefCell<Option<DoubleDevice>> = const { RefCell::new(None) };
}

impl Double {
    /// The device that is the thread's current one.
    pub fn current() -> Option<DoubleDevice> {
        CURRENT.with_borrow(Clone::clone)
    }

    /// A new device that no other code can open.
    ///
    /// # Errors
    /// Options that make no sense.
    pub fn open_with(options: &DoubleOptions) -> Result<DoubleDevice> {
        let host = options.host.clone();
        let host = Host::open_with(&match options.collective_library {
            None => host,
            // SAFETY: a library of collectives is one of devices that do not go on after a fault; the runtime looks at what is read.
            Some(_) => unsafe { host.without_poison() },
        })?;
        let info = DeviceInfo { backend: options.name, ..host.info().clone() };
        let mut capabilities = host.capabilities().clone();
        if !options.is_direct {
            capabilities.pageable_direct = false;
            capabilities.strided_copy = options.is_packing;
        }
        capabilities.frees_late = options.frees_late;
        capabilities.keeps_registered_pages = true;
        if options.collective_library.is_some() {
            capabilities.collective_library = options.collective_library;
            capabilities.futures = false;
        }
        let (script, locked) = (Script::default(), Mutex::default());
        Ok(DoubleDevice(Arc::new(Inner {
            host,
            info,
            capabilities,
            script,
            page_locked: options.page_locked,
            ignores_waits: options.ignores_waits,
            captures: options.captures,
            captured: AtomicU64::new(0),
            graphs: AtomicUsize::new(0),
            late: Mutex::default(),
            locked,
        })))
    }
}

impl DoubleDevice {
    /// Returns the host device that it forwards to, for its counters and its injected failures.
    pub fn host(&self) -> &Device {
        &self.0.host
    }

    /// Has all streams answer that they are captured, or not.
    pub fn set_capturing(&self, is_capturing: bool) {
        self.0.captured.store(if is_capturing { ALL } else { 0 }, Ordering::Relaxed);
    }

    /// Has this stream alone answer that it is captured.
    pub fn capture_only(&self, stream: RawStream) {
        self.0.captured.store(stream.0, Ordering::Relaxed);
    }

    /// Returns how many graphs have been made and not been destroyed.
    pub fn graphs(&self) -> usize {
        self.0.graphs.load(Ordering::Relaxed)
    }

    pub(crate) fn graph_counter(&self) -> &AtomicUsize {
        &self.0.graphs
    }

    /// Which calls fail.
    pub fn script(&self) -> &Script {
        &self.0.script
    }

    /// Returns the page-locked memory that there is, by addresses of the host.
    pub fn page_locked(&self) -> Vec<Range<u64>> {
        self.0.locked.lock().clone()
    }

    pub(crate) fn call(&self, operation: &'static str) -> Result<()> {
        self.0.script.call(&self.0.host, operation)
    }

    /// Whether there is so much page-locked memory left.
    fn check_page_locked(&self, request: &AllocationRequest) -> Result<()> {
        let taken: u64 = self.0.locked.lock().iter().map(|bytes| bytes.end - bytes.start).sum();
        let free = self.0.page_locked.saturating_sub(taken);
        if request.bytes as u64 <= free {
            return Ok(());
        }
        let (requested, kind) = (request.bytes, request.kind.name());
        let (free, total) = (free as usize, self.0.page_locked as usize);
        let error = ErrorKind::out_of_memory(requested, kind, MemoryInfo { free, total });
        Err(Error::new(self.0.info.backend, "allocate", error))
    }

    fn note_locked(&self, buffer: &Buffer) {
        self.0.locked.lock().extend(host_bytes(buffer));
    }

    fn forget_locked(&self, buffer: &Buffer) {
        let mut locked = self.0.locked.lock();
        let found = host_bytes(buffer).and_then(|bytes| locked.iter().position(|have| *have == bytes));
        if let Some(found) = found {
            locked.swap_remove(found);
        }
    }

    /// Whether a GPU could reach the bytes by its own means: device memory, or page-locked memory of the host.
    fn reaches(&self, space: Space, bytes: &Range<u64>) -> bool {
        let is_locked = || {
            let locked = self.0.locked.lock();
            let mut at = bytes.start;
            // Registered pages may be several neighbouring runs.
            while at < bytes.end {
                let covering = locked.iter().filter(|have| have.contains(&at)).map(|have| have.end);
                let Some(end) = covering.max() else { return false };
                at = end;
            }
            true
        };
        self.0.capabilities.pageable_direct || space != Space::Host || is_locked()
    }
}

fn host_bytes(buffer: &Buffer) -> Option<Range<u64>> {
    let start = buffer.host_address()?.as_ptr() as u64;
    Some(start..start + buffer.len() as u64)
}

fn span(region: &CopyRegion, side: &Endpoint) -> Range<u64> {
    let (rows, slices) = (region.rows as u64 - 1, region.slices as u64 - 1);
    let last = rows * side.pitch[0] as u64 + slices * side.pitch[1] as u64;
    side.address..side.address + last + region.bytes as u64
}

impl DoubleStream {
    /// As a driver, which waits for no stream that is captured.
    fn refuse_captured(&self, operation: &'static str) -> Result<()> {
        self.call(operation)?;
        match self.is_capturing()? {
            true => {
                Err(Error::new(NAME, operation, ErrorKind::Unsupported { what: "waiting for a capture" }))
            }
            false => Ok(()),
        }
    }

    /// Whether the call is captured, and not done.
    fn captured(&self, call: impl FnOnce() -> Call) -> bool {
        let mut capture = self.capture.lock();
        capture.as_mut().map(|capture| capture.push(call())).is_some()
    }

    fn host(&self) -> Meant<'_> {
        let options = StreamOptions { kind: self.kind, ..StreamOptions::default() };
        match self.kind {
            StreamKind::PerThread => {
                self.device.host().create_stream(&options).map_or(Meant::It(&self.host), Meant::OfThread)
            }
            _ => Meant::It(&self.host),
        }
    }

    fn call(&self, operation: &'static str) -> Result<()> {
        self.device.call(operation)
    }
}

impl DoubleEvent {
    fn host(&self) -> &Event {
        &self.host
    }

    fn call(&self, operation: &'static str) -> Result<()> {
        self.device.call(operation)
    }
}

// SAFETY of all `unsafe` calls below: the contract of the function is that of the function that it calls.
// SAFETY: the host backend does the work, and promises it.
unsafe impl Backend for Double {
    const NAME: &'static str = NAME;
    const WANTS_POISONING: bool = false;

    type Device = DoubleDevice;
    type Buffer = Buffer;
    type Stream = DoubleStream;
    type Event = DoubleEvent;
    type Barrier = HostBarrier;
    type Module = Module;
    type Kernel = Kernel;

    fn probe() -> Result<(), LoadError> {
        Host::probe()
    }

    fn devices() -> Result<Vec<DeviceInfo>> {
        Ok(Vec::new())
    }

    fn open(selector: &DeviceSelector) -> Result<DoubleDevice> {
        let kind = ErrorKind::NoSuchDevice { wanted: selector.to_string(), found: 0 };
        Err(Error::new(NAME, "open", kind))
    }
}

// SAFETY: the host backend does the work, and promises it.
unsafe impl DriverDevice<Double> for DoubleDevice {
    fn info(&self) -> &DeviceInfo {
        &self.0.info
    }

    fn capabilities(&self) -> &Capabilities {
        &self.0.capabilities
    }

    forward! {
        fn barrier() -> HostBarrier;
        fn synchronize() -> Result<()>, after "synchronize the device";
        fn compile(source: &KernelSource, options: &CompileOptions) -> Result<Module>;
    }

    forward! {
        unsafe fn advise(address: u64, bytes: usize, advice: Advice) -> Result<()>, after "advise";
    }

    unsafe fn export_memory(&self, address: u64, bytes: usize) -> Result<IpcMemory> {
        let mut handle = [0; 64];
        handle[..8].copy_from_slice(&address.to_le_bytes());
        Ok(IpcMemory::new(handle, 0, bytes as u64))
    }

    fn memory_info(&self) -> Result<MemoryInfo> {
        self.call("memory_info")?;
        let late = self.0.late.lock().pop_front();
        if let Some(buffer) = late {
            // SAFETY: the caller of `release` met the conditions of this call.
            unsafe { self.host().release(buffer) }.map_err(|(_, error)| error)?;
        }
        self.host().memory_info()
    }

    unsafe fn reset(&self) -> Result<()> {
        self.call("reset")?;
        self.0.locked.lock().clear();
        self.0.late.lock().clear();
        // SAFETY: as above.
        unsafe { self.host().reset() }
    }

    fn can_access_peer(&self, peer: &Self) -> Result<bool> {
        self.host().can_access_peer(peer.host())
    }

    fn set_peer_access(&self, peer: &Self, enabled: bool) -> Result<()> {
        self.host().set_peer_access(peer.host(), enabled)
    }

    unsafe fn allocate(&self, request: &AllocationRequest) -> Result<Buffer> {
        self.call("allocate")?;
        if request.kind.is_host_accessible() {
            self.check_page_locked(request)?;
        }
        // SAFETY: as above.
        let buffer = unsafe { self.host().allocate(request)? };
        if request.kind.is_host_accessible() {
            self.note_locked(&buffer);
        }
        Ok(buffer)
    }

    unsafe fn release(&self, buffer: Buffer) -> Result<(), (Buffer, Error)> {
        if let Err(error) = self.call("release") {
            return Err((buffer, error));
        }
        self.forget_locked(&buffer);
        if self.0.capabilities.frees_late && buffer.kind() == MemoryKind::Device {
            self.0.late.lock().push_back(buffer);
            return Ok(());
        }
        // SAFETY: as above.
        unsafe { self.host().release(buffer) }
    }

    unsafe fn register(&self, host: NonNull<u8>, bytes: usize, options: RegisterOptions) -> Result<Buffer> {
        self.call("register")?;
        // SAFETY: as above.
        let buffer = unsafe { self.host().register(host, bytes, options)? };
        self.note_locked(&buffer);
        Ok(buffer)
    }

    fn with_current(&self, work: &mut dyn FnMut()) {
        struct Restore(Option<DoubleDevice>);
        impl Drop for Restore {
            fn drop(&mut self) {
                CURRENT.replace(self.0.take());
            }
        }
        let _restore = Restore(CURRENT.replace(Some(self.clone())));
        work();
    }

    fn create_stream(&self, options: &StreamOptions) -> Result<DoubleStream> {
        self.call("create_stream")?;
        let host = self.host().create_stream(options)?;
        Ok(DoubleStream { device: self.clone(), host, kind: options.kind, capture: Mutex::default() })
    }

    unsafe fn wrap_stream(&self, raw: RawStream) -> Result<DoubleStream> {
        self.call("wrap_stream")?;
        // SAFETY: as above.
        let host = unsafe { self.host().wrap_stream(raw)? };
        Ok(DoubleStream { device: self.clone(), host, kind: StreamKind::New, capture: Mutex::default() })
    }

    fn create_event(&self, options: EventOptions) -> Result<DoubleEvent> {
        self.call("create_event")?;
        let host = self.host().create_event(options)?;
        Ok(DoubleEvent { device: self.clone(), host, capture: Mutex::default() })
    }
}

// SAFETY: the host backend does the work, and promises it.
unsafe impl Stream<Double> for DoubleStream {
    forward! {
        fn raw() -> RawStream;
    }

    forward! {
        unsafe fn prefetch(address: u64, bytes: usize, to: Location) -> Result<()>, after "prefetch";
        unsafe fn enqueue_future(future: HostFuture) -> Result<()>, after "enqueue_future";
        unsafe fn poison(torn: &[MemoryUse], failure: &Arc<Failure>) -> Result<()>;
    }

    fn synchronize(&self) -> Result<()> {
        self.refuse_captured("synchronize a stream")?;
        self.host().synchronize()
    }

    fn query(&self) -> Result<bool> {
        self.refuse_captured("query a stream")?;
        self.host().query()
    }

    unsafe fn fill(&self, fill: &Fill) -> Result<()> {
        self.call("fill")?;
        if self.captured(|| Call::Fill(*fill)) {
            return Ok(());
        }
        // SAFETY: as above.
        unsafe { self.host().fill(fill) }
    }

    unsafe fn launch(&self, kernel: &Kernel, dims: &LaunchConfig, arguments: &KernelArguments) -> Result<()> {
        self.call("launch")?;
        if self.captured(|| Call::Launch(kernel.clone(), *dims, Box::new(arguments.clone()))) {
            return Ok(());
        }
        // SAFETY: as above.
        unsafe { self.host().launch(kernel, dims, arguments) }
    }

    unsafe fn begin_capture(&self) -> Result<CaptureStart> {
        if !self.device.0.captures {
            return Ok(CaptureStart::Refused("this driver has no graphs"));
        }
        self.call("begin_capture")?;
        *self.capture.lock() = Some(Capture::begin());
        Ok(CaptureStart::Begun)
    }

    fn captured_node(&self) -> Result<GraphNode> {
        let capture = self.capture.lock();
        capture.as_ref().ok_or_else(|| invalid("captured_node", "nothing is captured"))?.node()
    }

    fn end_capture(&self, _: bool) -> Result<Box<dyn ExecutableGraph<Double>>> {
        let capture = self.capture.lock().take();
        self.call("end_capture")?;
        let capture = capture.ok_or_else(|| invalid("end_capture", "nothing is captured"))?;
        Ok(capture.end(&self.device))
    }

    fn destroy(self) -> Result<()> {
        self.call("destroy_stream")?;
        self.host.destroy()
    }

    fn is_capturing(&self) -> Result<bool> {
        let captured = self.device.0.captured.load(Ordering::Relaxed);
        Ok(captured == ALL || captured == self.raw().0)
    }

    unsafe fn copy(&self, region: &CopyRegion) -> Result<()> {
        self.call("copy")?;
        for side in [&region.source, &region.destination] {
            if !self.device.reaches(side.space, &span(region, side)) {
                let why = "ordinary memory of the caller is handed to the driver";
                return Err(Error::new(NAME, "copy", ErrorKind::InvalidArgument { why }));
            }
        }
        if self.captured(|| Call::Copy(*region)) {
            return Ok(());
        }
        // SAFETY: as above.
        unsafe { self.host().copy(region) }
    }

    unsafe fn copy_strided(&self, copy: &StridedCopy) -> Result<()> {
        self.call("copy_strided")?;
        if !self.device.0.capabilities.strided_copy {
            let kind = ErrorKind::Unsupported { what: "copies of any layout" };
            return Err(Error::new(NAME, "copy_strided", kind));
        }
        for ((_, space), bytes) in
            [copy.source, copy.destination].into_iter().zip(copy.spans().into_iter().flatten())
        {
            if !self.device.reaches(space, &bytes) {
                let why = "ordinary memory of the caller is handed to a kernel";
                return Err(Error::new(NAME, "copy_strided", ErrorKind::InvalidArgument { why }));
            }
        }
        if self.captured(|| Call::CopyStrided(copy.clone())) {
            return Ok(());
        }
        // SAFETY: as above.
        unsafe { self.host().copy_strided(copy) }
    }

    fn record(&self, event: &DoubleEvent) -> Result<()> {
        self.call("record")?;
        let capture = self.capture.lock().clone();
        let is_captured = capture.is_some();
        *event.capture.lock() = capture;
        if is_captured {
            return Ok(());
        }
        self.host().record(&event.host)
    }

    fn wait(&self, event: &DoubleEvent) -> Result<()> {
        self.call("wait")?;
        let (left, right) = (self.device.0.info.backend, event.device.0.info.backend);
        if left != right {
            return Err(Error::new(NAME, "wait", ErrorKind::BackendMismatch { left, right }));
        }
        if let Some(capture) = &*event.capture.lock() {
            Capture::join(&mut self.capture.lock(), capture);
            return Ok(());
        }
        if self.device.0.ignores_waits { Ok(()) } else { self.host().wait(&event.host) }
    }
}

// SAFETY: the host backend does the work, and promises it.
unsafe impl gpumem_core::Event for DoubleEvent {
    forward! {
        fn query() -> Result<bool>, after "query an event";
        fn synchronize() -> Result<()>, after "synchronize an event";
    }

    fn destroy(self) -> Result<()> {
        self.call("destroy_event")?;
        self.host.destroy()
    }

    fn elapsed(&self, end: &Self) -> Result<f32> {
        self.host.elapsed(&end.host)
    }
}

// SAFETY: the host backend does the work, and promises it.
unsafe impl DriverModule<Double> for Module {
    fn kernel(&self, name: &str) -> Result<Kernel> {
        DriverModule::<Host>::kernel(self, name)
    }
}
