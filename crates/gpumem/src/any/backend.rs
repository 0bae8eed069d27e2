//! The run-time choice as a backend.

use super::{
    AnyBarrier, AnyBuffer, AnyDevice, AnyEvent, AnyKernel, AnyModule, AnyStream, CANDIDATES, COMPILERS,
    typed::{Typed, come_back, into_same, same},
};
use crate::select;
use gpumem_core::{
    AddressRange, Advice, AllocationRequest, Backend, Capabilities, CompileOptions, Compiler, CopyRegion,
    DeviceInfo, DeviceSelector, DlpackDevice, Error, ErrorKind, EventOptions, Fill, HostFuture, IpcMemory,
    KernelArguments, KernelSource, LaunchConfig, LoadError, Location, MemoryInfo, MemoryKind, RawStream,
    RegisterOptions, Result, StreamOptions, StridedCopy,
};
use std::ptr::NonNull;

/// The enabled backends as one: the program chooses the backend of a device at run time.
///
/// Its own name, `any`, selects nothing; a [`DeviceSelector`] names one of the [enabled](AnyBackend::enabled) backends.
/// A call with objects of two backends returns [`ErrorKind::BackendMismatch`](crate::ErrorKind::BackendMismatch). Owned
/// arguments are not lost: `release` returns the buffer, `destroy_stream` and `destroy_event` destroy theirs in its own
/// backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct AnyBackend;

// SAFETY: the backend's own type implements the trait, and every call is forwarded to it.
unsafe impl Backend for AnyBackend {
    const NAME: &'static str = "any";

    type Device = AnyDevice;
    type Buffer = AnyBuffer;
    type Stream = AnyStream;
    type Event = AnyEvent;
    type Barrier = AnyBarrier;
    type Module = AnyModule;
    type Kernel = AnyKernel;

    /// Tells whether one of the enabled backends can be used.
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

    fn open_first_available() -> Result<AnyDevice> {
        Ok(AnyBackend::open_first_available()?.0)
    }

    fn info(device: &AnyDevice) -> &DeviceInfo {
        on!(AnyDevice, device, B => { B::info(device) })
    }

    #[inline]
    fn capabilities(device: &AnyDevice) -> &Capabilities {
        on!(AnyDevice, device, B => { B::capabilities(device) })
    }

    #[inline]
    fn barrier(device: &AnyDevice) -> AnyBarrier {
        on!(AnyDevice, device, B => { Typed::<B>::from_typed(B::barrier(device)) })
    }

    #[inline]
    fn memory_info(device: &AnyDevice) -> Result<MemoryInfo> {
        on!(AnyDevice, device, B => { B::memory_info(device) })
    }

    #[inline]
    fn synchronize(device: &AnyDevice) -> Result<()> {
        on!(AnyDevice, device, B => { B::synchronize(device) })
    }

    #[inline]
    unsafe fn reset(device: &AnyDevice) -> Result<()> {
        on!(AnyDevice, device, B => {
            // SAFETY: the caller meets the conditions of the trait's function, which are the backend's.
            unsafe { B::reset(device) }
        })
    }

    #[inline]
    fn can_access_peer(device: &AnyDevice, peer: &AnyDevice) -> Result<bool> {
        on!(AnyDevice, device, B => {
            // Devices of two backends exist side by side; no driver knows a path from one to the other.
            Typed::<B>::as_typed(peer).map_or(Ok(false), |peer| B::can_access_peer(device, peer))
        })
    }

    #[inline]
    fn set_peer_access(device: &AnyDevice, peer: &AnyDevice, enabled: bool) -> Result<()> {
        on!(AnyDevice, device, B => {
            match Typed::<B>::as_typed(peer) {
                Some(peer) => B::set_peer_access(device, peer, enabled),
                None if !enabled => Ok(()),
                None => {
                    let what = "access to the memory of another backend's device";
                    Err(Error::new(B::NAME, "set_peer_access", ErrorKind::Unsupported { what }))
                }
            }
        })
    }

    #[inline]
    unsafe fn allocate(device: &AnyDevice, request: &AllocationRequest) -> Result<AnyBuffer> {
        on!(AnyDevice, device, B => {
            // SAFETY: the caller meets the conditions of the trait's function, which are the backend's.
            unsafe { B::allocate(device, request) }.map(Typed::<B>::from_typed)
        })
    }

    #[inline]
    unsafe fn release(device: &AnyDevice, buffer: AnyBuffer) -> Result<(), (AnyBuffer, Error)> {
        on!(AnyDevice, device, B => {
            let buffer = into_same::<B, _>("release", buffer)?;
            // SAFETY: the caller meets the conditions of the trait's function, which are the backend's.
            unsafe { B::release(device, buffer) }.map_err(come_back::<B, _>)
        })
    }

    #[inline]
    unsafe fn register(
        device: &AnyDevice,
        host: NonNull<u8>,
        bytes: usize,
        options: RegisterOptions,
    ) -> Result<AnyBuffer> {
        on!(AnyDevice, device, B => {
            // SAFETY: the caller meets the conditions of the trait's function, which are the backend's.
            unsafe { B::register(device, host, bytes, options) }.map(Typed::<B>::from_typed)
        })
    }

    #[inline]
    unsafe fn advise(device: &AnyDevice, address: u64, bytes: usize, advice: Advice) -> Result<()> {
        on!(AnyDevice, device, B => {
            // SAFETY: the caller meets the conditions of the trait's function, which are the backend's.
            unsafe { B::advise(device, address, bytes, advice) }
        })
    }

    #[inline]
    unsafe fn export_memory(device: &AnyDevice, address: u64, bytes: usize) -> Result<IpcMemory> {
        on!(AnyDevice, device, B => {
            // SAFETY: the caller meets the conditions of the trait's function, which are the backend's.
            unsafe { B::export_memory(device, address, bytes) }
        })
    }

    #[inline]
    unsafe fn open_memory(device: &AnyDevice, memory: &IpcMemory) -> Result<AnyBuffer> {
        on!(AnyDevice, device, B => {
            // SAFETY: the caller meets the conditions of the trait's function, which are the backend's.
            unsafe { B::open_memory(device, memory) }.map(Typed::<B>::from_typed)
        })
    }

    #[inline]
    fn with_current(device: &AnyDevice, work: &mut dyn FnMut()) {
        on!(AnyDevice, device, B => {
            B::with_current(device, work);
        })
    }

    #[inline]
    fn pointer_info(device: &AnyDevice, address: u64) -> Result<Option<AddressRange>> {
        on!(AnyDevice, device, B => { B::pointer_info(device, address) })
    }

    #[inline]
    fn dlpack_device(device: &AnyDevice, kind: MemoryKind) -> Option<DlpackDevice> {
        on!(AnyDevice, device, B => { B::dlpack_device(device, kind) })
    }

    #[inline]
    fn record_device(device: &AnyDevice, event: &AnyEvent) -> Result<()> {
        on!(AnyDevice, device, B => { B::record_device(device, same::<B, _>("record_device", event)?) })
    }

    #[inline]
    fn create_stream(device: &AnyDevice, options: &StreamOptions) -> Result<AnyStream> {
        on!(AnyDevice, device, B => { B::create_stream(device, options).map(Typed::<B>::from_typed) })
    }

    #[inline]
    unsafe fn wrap_stream(device: &AnyDevice, raw: RawStream) -> Result<AnyStream> {
        on!(AnyDevice, device, B => {
            // SAFETY: the caller meets the conditions of the trait's function, which are the backend's.
            unsafe { B::wrap_stream(device, raw) }.map(Typed::<B>::from_typed)
        })
    }

    /// A stream of another backend is dropped, which destroys it as well; only its errors are ignored.
    #[inline]
    fn destroy_stream(device: &AnyDevice, stream: AnyStream) -> Result<()> {
        on!(AnyDevice, device, B => {
            let stream = into_same::<B, _>("destroy_stream", stream).map_err(|(_, error)| error)?;
            B::destroy_stream(device, stream)
        })
    }

    #[inline]
    unsafe fn copy(stream: &AnyStream, region: &CopyRegion) -> Result<()> {
        on!(AnyStream, stream, B => {
            // SAFETY: the caller meets the conditions of the trait's function, which are the backend's.
            unsafe { B::copy(stream, region) }
        })
    }

    #[inline]
    unsafe fn try_copy_sync(stream: &AnyStream, region: &CopyRegion) -> bool {
        on!(AnyStream, stream, B => {
            // SAFETY: the caller meets the conditions of the trait's function, which are the backend's.
            unsafe { B::try_copy_sync(stream, region) }
        })
    }

    #[inline]
    unsafe fn copy_strided(stream: &AnyStream, copy: &StridedCopy) -> Result<()> {
        on!(AnyStream, stream, B => {
            // SAFETY: the caller meets the conditions of the trait's function, which are the backend's.
            unsafe { B::copy_strided(stream, copy) }
        })
    }

    #[inline]
    unsafe fn fill(stream: &AnyStream, fill: &Fill) -> Result<()> {
        on!(AnyStream, stream, B => {
            // SAFETY: the caller meets the conditions of the trait's function, which are the backend's.
            unsafe { B::fill(stream, fill) }
        })
    }

    #[inline]
    unsafe fn prefetch(stream: &AnyStream, address: u64, bytes: usize, to: Location) -> Result<()> {
        on!(AnyStream, stream, B => {
            // SAFETY: the caller meets the conditions of the trait's function, which are the backend's.
            unsafe { B::prefetch(stream, address, bytes, to) }
        })
    }

    #[inline]
    unsafe fn enqueue_future(stream: &AnyStream, future: HostFuture) -> Result<()> {
        on!(AnyStream, stream, B => {
            // SAFETY: the caller meets the conditions of the trait's function, which are the backend's.
            unsafe { B::enqueue_future(stream, future) }
        })
    }

    #[inline]
    fn is_capturing(stream: &AnyStream) -> Result<bool> {
        on!(AnyStream, stream, B => { B::is_capturing(stream) })
    }

    #[inline]
    fn create_event(device: &AnyDevice, options: EventOptions) -> Result<AnyEvent> {
        on!(AnyDevice, device, B => { B::create_event(device, options).map(Typed::<B>::from_typed) })
    }

    /// An event of another backend is dropped, which destroys it as well; only its errors are ignored.
    #[inline]
    fn destroy_event(device: &AnyDevice, event: AnyEvent) -> Result<()> {
        on!(AnyDevice, device, B => {
            let event = into_same::<B, _>("destroy_event", event).map_err(|(_, error)| error)?;
            B::destroy_event(device, event)
        })
    }

    #[inline]
    fn record(stream: &AnyStream, event: &AnyEvent) -> Result<()> {
        on!(AnyStream, stream, B => { B::record(stream, same::<B, _>("record", event)?) })
    }

    #[inline]
    fn wait(stream: &AnyStream, event: &AnyEvent) -> Result<()> {
        on!(AnyStream, stream, B => { B::wait(stream, same::<B, _>("wait", event)?) })
    }

    #[inline]
    fn elapsed(start: &AnyEvent, end: &AnyEvent) -> Result<f32> {
        on!(AnyEvent, start, B => { B::elapsed(start, same::<B, _>("elapsed", end)?) })
    }

    #[inline]
    fn compile(device: &AnyDevice, source: &KernelSource, options: &CompileOptions) -> Result<AnyModule> {
        on!(AnyDevice, device, B => { B::compile(device, source, options).map(Typed::<B>::from_typed) })
    }

    #[inline]
    fn compiler(device: &AnyDevice) -> Result<Compiler> {
        on!(AnyDevice, device, B => { B::compiler(device) })
    }

    #[inline]
    fn compile_image(device: &AnyDevice, text: &str, options: &CompileOptions) -> Result<Vec<u8>> {
        on!(AnyDevice, device, B => { B::compile_image(device, text, options) })
    }

    /// Uses the enabled backend that has the architecture.
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
        on!(AnyModule, module, B => { B::variable(module, name) })
    }

    #[inline]
    fn kernel(module: &AnyModule, name: &str) -> Result<AnyKernel> {
        on!(AnyModule, module, B => { B::kernel(module, name).map(Typed::<B>::from_typed) })
    }

    #[inline]
    unsafe fn launch(
        stream: &AnyStream,
        kernel: &AnyKernel,
        dims: &LaunchConfig,
        arguments: &KernelArguments,
    ) -> Result<()> {
        on!(AnyStream, stream, B => {
            let kernel = same::<B, _>("launch", kernel)?;
            // SAFETY: the caller meets the conditions of the trait's function, which are the backend's.
            unsafe { B::launch(stream, kernel, dims, arguments) }
        })
    }
}
