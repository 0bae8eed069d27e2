//! The run-time choice as a backend.

use super::{
    AnyBarrier, AnyBuffer, AnyDevice, AnyEvent, AnyKernel, AnyModule, AnyStream, CANDIDATES, COMPILERS,
    device::DeviceOps, event::EventOps, kernel::ModuleOps, stream::StreamOps,
};
use crate::select;
use gpumem_core::{
    AddressRange, Advice, AllocationRequest, Backend, Capabilities, CompileOptions, Compiler, CopyRegion,
    DeviceInfo, DeviceSelector, DlpackDevice, Error, ErrorKind, EventOptions, Fill, IpcMemory,
    KernelArguments, KernelSource, LaunchConfig, LoadError, Location, MemoryInfo, MemoryKind, RawStream,
    RegisterOptions, Result, StreamOptions, StridedCopy,
};
use std::ptr::NonNull;

/// The enabled backends as one: which of them a device belongs to is known when the program runs.
///
/// Its own name, `any`, selects nothing; a [`DeviceSelector`] names one of the [enabled](AnyBackend::enabled) backends.
/// Things of two backends in one call are [`ErrorKind::BackendMismatch`](crate::ErrorKind::BackendMismatch), and
/// whatever was handed over is not lost: `release` gives the buffer back, `destroy_stream` and `destroy_event` destroy
/// what they were given in its own backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct AnyBackend;

// SAFETY: what the backend behind it promises.
unsafe impl Backend for AnyBackend {
    const NAME: &'static str = "any";

    type Device = AnyDevice;
    type Buffer = AnyBuffer;
    type Stream = AnyStream;
    type Event = AnyEvent;
    type Barrier = AnyBarrier;
    type Module = AnyModule;
    type Kernel = AnyKernel;

    /// Whether one of the enabled backends can be used.
    fn probe() -> Result<(), LoadError> {
        select::probe(CANDIDATES)
    }

    /// The devices of all enabled backends, the preferred backend's first. A backend that cannot be used adds none;
    /// [`unavailable`](AnyBackend::unavailable) says why.
    fn devices() -> Result<Vec<DeviceInfo>> {
        Ok(select::devices(CANDIDATES).0)
    }

    fn open(selector: &DeviceSelector) -> Result<AnyDevice> {
        select::open(CANDIDATES, selector)
    }

    #[inline]
    fn open_default() -> Result<AnyDevice> {
        AnyBackend::open_default()
    }

    fn open_best() -> Result<AnyDevice> {
        Ok(AnyBackend::open_first_available()?.0)
    }

    fn info(device: &AnyDevice) -> &DeviceInfo {
        DeviceOps::info(device)
    }

    #[inline]
    fn capabilities(device: &AnyDevice) -> &Capabilities {
        DeviceOps::capabilities(device)
    }

    #[inline]
    fn barrier(device: &AnyDevice) -> AnyBarrier {
        DeviceOps::barrier(device)
    }

    #[inline]
    fn memory_info(device: &AnyDevice) -> Result<MemoryInfo> {
        DeviceOps::memory_info(device)
    }

    #[inline]
    fn synchronize(device: &AnyDevice) -> Result<()> {
        DeviceOps::synchronize(device)
    }

    #[inline]
    unsafe fn reset(device: &AnyDevice) -> Result<()> {
        // SAFETY: the caller's promise is passed on as it is.
        unsafe { DeviceOps::reset(device) }
    }

    #[inline]
    fn can_access_peer(device: &AnyDevice, peer: &AnyDevice) -> Result<bool> {
        DeviceOps::can_access_peer(device, peer)
    }

    #[inline]
    fn set_peer_access(device: &AnyDevice, peer: &AnyDevice, enabled: bool) -> Result<()> {
        DeviceOps::set_peer_access(device, peer, enabled)
    }

    #[inline]
    unsafe fn allocate(device: &AnyDevice, request: &AllocationRequest) -> Result<AnyBuffer> {
        // SAFETY: the caller's promise is passed on as it is.
        unsafe { DeviceOps::allocate(device, request) }
    }

    #[inline]
    unsafe fn release(device: &AnyDevice, buffer: AnyBuffer) -> Result<(), (AnyBuffer, Error)> {
        // SAFETY: the caller's promise is passed on as it is.
        unsafe { DeviceOps::release(device, buffer) }
    }

    #[inline]
    unsafe fn register(
        device: &AnyDevice,
        host: NonNull<u8>,
        bytes: usize,
        options: RegisterOptions,
    ) -> Result<AnyBuffer> {
        // SAFETY: the caller's promise is passed on as it is.
        unsafe { DeviceOps::register(device, host, bytes, options) }
    }

    #[inline]
    unsafe fn advise(device: &AnyDevice, address: u64, bytes: usize, advice: Advice) -> Result<()> {
        // SAFETY: the caller's promise is passed on as it is.
        unsafe { DeviceOps::advise(device, address, bytes, advice) }
    }

    #[inline]
    unsafe fn export_memory(device: &AnyDevice, address: u64, bytes: usize) -> Result<IpcMemory> {
        // SAFETY: the caller's promise is passed on as it is.
        unsafe { DeviceOps::export_memory(device, address, bytes) }
    }

    #[inline]
    unsafe fn open_memory(device: &AnyDevice, memory: &IpcMemory) -> Result<AnyBuffer> {
        // SAFETY: the caller's promise is passed on as it is.
        unsafe { DeviceOps::open_memory(device, memory) }
    }

    #[inline]
    fn with_current(device: &AnyDevice, work: &mut dyn FnMut()) {
        DeviceOps::with_current(device, work);
    }

    #[inline]
    fn pointer_info(device: &AnyDevice, address: u64) -> Result<Option<AddressRange>> {
        DeviceOps::pointer_info(device, address)
    }

    #[inline]
    fn dlpack_device(device: &AnyDevice, kind: MemoryKind) -> Option<DlpackDevice> {
        DeviceOps::dlpack_device(device, kind)
    }

    #[inline]
    fn record_device(device: &AnyDevice, event: &AnyEvent) -> Result<()> {
        DeviceOps::record_device(device, event)
    }

    #[inline]
    fn create_stream(device: &AnyDevice, options: &StreamOptions) -> Result<AnyStream> {
        DeviceOps::create_stream(device, options)
    }

    #[inline]
    unsafe fn wrap_stream(device: &AnyDevice, raw: RawStream) -> Result<AnyStream> {
        // SAFETY: the caller's promise is passed on as it is.
        unsafe { DeviceOps::wrap_stream(device, raw) }
    }

    #[inline]
    fn destroy_stream(device: &AnyDevice, stream: AnyStream) -> Result<()> {
        DeviceOps::destroy_stream(device, stream)
    }

    #[inline]
    unsafe fn copy(stream: &AnyStream, region: &CopyRegion) -> Result<()> {
        // SAFETY: the caller's promise is passed on as it is.
        unsafe { StreamOps::copy(stream, region) }
    }

    #[inline]
    unsafe fn try_copy_sync(stream: &AnyStream, region: &CopyRegion) -> bool {
        // SAFETY: the caller's promise is passed on as it is.
        unsafe { StreamOps::try_copy_sync(stream, region) }
    }

    #[inline]
    unsafe fn copy_strided(stream: &AnyStream, copy: &StridedCopy) -> Result<()> {
        // SAFETY: the caller's promise is passed on as it is.
        unsafe { StreamOps::copy_strided(stream, copy) }
    }

    #[inline]
    unsafe fn fill(stream: &AnyStream, fill: &Fill) -> Result<()> {
        // SAFETY: the caller's promise is passed on as it is.
        unsafe { StreamOps::fill(stream, fill) }
    }

    #[inline]
    unsafe fn prefetch(stream: &AnyStream, address: u64, bytes: usize, to: Location) -> Result<()> {
        // SAFETY: the caller's promise is passed on as it is.
        unsafe { StreamOps::prefetch(stream, address, bytes, to) }
    }

    #[inline]
    fn create_event(device: &AnyDevice, options: EventOptions) -> Result<AnyEvent> {
        DeviceOps::create_event(device, options)
    }

    #[inline]
    fn destroy_event(device: &AnyDevice, event: AnyEvent) -> Result<()> {
        DeviceOps::destroy_event(device, event)
    }

    #[inline]
    fn record(stream: &AnyStream, event: &AnyEvent) -> Result<()> {
        StreamOps::record(stream, event)
    }

    #[inline]
    fn wait(stream: &AnyStream, event: &AnyEvent) -> Result<()> {
        StreamOps::wait(stream, event)
    }

    #[inline]
    fn elapsed(start: &AnyEvent, end: &AnyEvent) -> Result<f32> {
        EventOps::elapsed(start, end)
    }

    #[inline]
    fn compile(device: &AnyDevice, source: &KernelSource, options: &CompileOptions) -> Result<AnyModule> {
        DeviceOps::compile(device, source, options)
    }

    #[inline]
    fn compiler(device: &AnyDevice) -> Result<Compiler> {
        DeviceOps::compiler(device)
    }

    #[inline]
    fn compile_image(device: &AnyDevice, text: &str, options: &CompileOptions) -> Result<Vec<u8>> {
        DeviceOps::compile_image(device, text, options)
    }

    /// By the enabled backend whose architecture it is.
    fn compile_for(
        architecture: &str,
        text: &dyn Fn(u32) -> String,
        options: &CompileOptions,
    ) -> Result<Vec<u8>> {
        let is_other = |image: &Result<Vec<u8>>| {
            image.as_ref().is_err_and(|error| matches!(error.kind(), ErrorKind::Unsupported { .. }))
        };
        let mut images = COMPILERS.iter().map(|compile_for| compile_for(architecture, text, options));
        images.find(|image| !is_other(image)).unwrap_or_else(|| {
            let what =
                "an architecture of this name by the enabled backends, which know `sm_90` and `gfx90a`";
            Err(Error::new(Self::NAME, "compile_for", ErrorKind::Unsupported { what }))
        })
    }

    #[inline]
    fn variable(module: &AnyModule, name: &str) -> Result<(u64, usize)> {
        ModuleOps::variable(module, name)
    }

    #[inline]
    fn kernel(module: &AnyModule, name: &str) -> Result<AnyKernel> {
        ModuleOps::kernel(module, name)
    }

    #[inline]
    unsafe fn launch(
        stream: &AnyStream,
        kernel: &AnyKernel,
        dims: &LaunchConfig,
        arguments: &KernelArguments,
    ) -> Result<()> {
        // SAFETY: the caller's promise is passed on as it is.
        unsafe { StreamOps::launch(stream, kernel, dims, arguments) }
    }
}
