//! The backend: every function of the trait, by the module that knows how.

use crate::{
    Grain, NAME, RocBarrier, RocBuffer, RocDevice, RocEvent, RocKernel, RocModule, RocStream, copy, fill,
    hiprtc, ipc, managed, pack, peer, pointer, probe, registry,
};
use gpumem_core::{
    AddressRange, Advice, AllocationRequest, Backend, Capabilities, CompileOptions, Compiler, CopyRegion,
    DeviceInfo, DeviceSelector, DlpackDevice, Error, ErrorKind, EventOptions, Fill, IpcMemory,
    KernelArguments, KernelSource, LaunchConfig, LoadError, Location, MemoryInfo, MemoryKind, RawStream,
    RegisterOptions, Result, StreamOptions, StridedCopy,
};
use std::ptr::NonNull;

/// AMD GPUs through ROCm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Roc;

// SAFETY: each function forwards its arguments to a call of HIP or HSA; buffers are memory that the driver has
// allocated.
unsafe impl Backend for Roc {
    const NAME: &'static str = NAME;

    type Device = RocDevice;
    type Buffer = RocBuffer;
    type Stream = RocStream;
    type Event = RocEvent;
    type Barrier = RocBarrier;
    type Module = RocModule;
    type Kernel = RocKernel;

    fn probe() -> Result<(), LoadError> {
        probe::probe()
    }

    fn devices() -> Result<Vec<DeviceInfo>> {
        registry::devices("devices")
    }

    fn open(selector: &DeviceSelector) -> Result<RocDevice> {
        registry::open(selector)
    }

    fn info(device: &RocDevice) -> &DeviceInfo {
        &device.inner().info
    }

    fn capabilities(device: &RocDevice) -> &Capabilities {
        &device.inner().capabilities
    }

    fn barrier(device: &RocDevice) -> RocBarrier {
        RocBarrier::new(device.inner().capabilities.wave_size)
    }

    fn memory_info(device: &RocDevice) -> Result<MemoryInfo> {
        device.memory_info()
    }

    fn synchronize(device: &RocDevice) -> Result<()> {
        device.synchronize()
    }

    unsafe fn reset(device: &RocDevice) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { device.reset() }
    }

    fn can_access_peer(device: &RocDevice, peer: &RocDevice) -> Result<bool> {
        peer::can_access(device, peer)
    }

    fn set_peer_access(device: &RocDevice, peer: &RocDevice, enabled: bool) -> Result<()> {
        peer::set_access(device, peer, enabled)
    }

    unsafe fn allocate(device: &RocDevice, request: &AllocationRequest) -> Result<RocBuffer> {
        // SAFETY: passed on to the caller.
        unsafe { RocBuffer::allocate(device, request, Grain::usual(request.kind)) }
    }

    unsafe fn release(device: &RocDevice, buffer: RocBuffer) -> Result<(), (RocBuffer, Error)> {
        // SAFETY: passed on to the caller.
        unsafe { buffer.release(device) }
    }

    fn with_current(device: &RocDevice, work: &mut dyn FnMut()) {
        let _current = device.enter("hipSetDevice");
        work();
    }

    fn pointer_info(device: &RocDevice, address: u64) -> Result<Option<AddressRange>> {
        let found = pointer::find(device, address)?;
        let ordinal = found.and_then(|pointer| usize::try_from(pointer.device).ok());
        Ok(ordinal.map(|ordinal| AddressRange { ordinal, end: address.saturating_add(1) }))
    }

    fn dlpack_device(device: &RocDevice, kind: MemoryKind) -> Option<DlpackDevice> {
        let ordinal = i32::try_from(Self::info(device).ordinal).ok()?;
        Some(match kind {
            // DLPack has no name for managed memory of ROCm: it is device memory there.
            MemoryKind::Device | MemoryKind::Managed(_) => DlpackDevice::new(DlpackDevice::ROCM, ordinal),
            // Page-locked memory belongs to no device in particular.
            _ => DlpackDevice::new(DlpackDevice::ROCM_HOST, 0),
        })
    }

    unsafe fn register(
        device: &RocDevice,
        host: NonNull<u8>,
        bytes: usize,
        options: RegisterOptions,
    ) -> Result<RocBuffer> {
        // SAFETY: passed on to the caller.
        unsafe { RocBuffer::register(device, host, bytes, options) }
    }

    unsafe fn advise(device: &RocDevice, address: u64, bytes: usize, advice: Advice) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { managed::advise(device, address, bytes, advice) }
    }

    unsafe fn export_memory(device: &RocDevice, address: u64, bytes: usize) -> Result<IpcMemory> {
        // SAFETY: passed on to the caller.
        unsafe { ipc::export(device, address, bytes) }
    }

    unsafe fn open_memory(device: &RocDevice, memory: &IpcMemory) -> Result<RocBuffer> {
        // SAFETY: passed on to the caller.
        unsafe { ipc::open(device, memory) }
    }

    fn create_stream(device: &RocDevice, options: &StreamOptions) -> Result<RocStream> {
        RocStream::create(device, options)
    }

    unsafe fn wrap_stream(device: &RocDevice, raw: RawStream) -> Result<RocStream> {
        RocStream::wrap(device, raw)
    }

    fn destroy_stream(_device: &RocDevice, stream: RocStream) -> Result<()> {
        stream.destroy()
    }

    unsafe fn copy(stream: &RocStream, region: &CopyRegion) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { copy::copy(stream, region) }
    }

    unsafe fn copy_strided(stream: &RocStream, copy: &StridedCopy) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { pack::copy_strided(stream, copy) }
    }

    unsafe fn fill(stream: &RocStream, fill: &Fill) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { fill::fill(stream, fill) }
    }

    unsafe fn prefetch(stream: &RocStream, address: u64, bytes: usize, to: Location) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { managed::prefetch(stream, address, bytes, to) }
    }

    fn is_capturing(stream: &RocStream) -> Result<bool> {
        stream.is_capturing()
    }

    fn create_event(device: &RocDevice, options: EventOptions) -> Result<RocEvent> {
        RocEvent::create(device, options, false)
    }

    fn destroy_event(_device: &RocDevice, event: RocEvent) -> Result<()> {
        event.destroy()
    }

    fn record(stream: &RocStream, event: &RocEvent) -> Result<()> {
        stream.record(event)
    }

    fn wait(stream: &RocStream, event: &RocEvent) -> Result<()> {
        stream.wait(event)
    }

    fn elapsed(start: &RocEvent, end: &RocEvent) -> Result<f32> {
        RocEvent::elapsed(start, end)
    }

    fn compile(device: &RocDevice, source: &KernelSource, options: &CompileOptions) -> Result<RocModule> {
        RocModule::compile(device, source, options)
    }

    fn compiler(device: &RocDevice) -> Result<Compiler> {
        let version = probe::hiprtc("compiler")?.version.clone();
        Ok(Compiler { version, target: device.inner().isa.clone() })
    }

    fn compile_image(device: &RocDevice, text: &str, options: &CompileOptions) -> Result<Vec<u8>> {
        hiprtc::compile(text, &device.inner().isa, options)
    }

    fn compile_for(
        architecture: &str,
        text: &dyn Fn(u32) -> String,
        options: &CompileOptions,
    ) -> Result<Vec<u8>> {
        if !architecture.starts_with("gfx") {
            let what = "an architecture whose name is not like `gfx90a`";
            return Err(Error::new(NAME, "compile_for", ErrorKind::Unsupported { what }));
        }
        hiprtc::compile_for(architecture, text, options)
    }

    fn variable(module: &RocModule, name: &str) -> Result<(u64, usize)> {
        module.global(name)
    }

    fn kernel(module: &RocModule, name: &str) -> Result<RocKernel> {
        module.kernel(name)
    }

    unsafe fn launch(
        stream: &RocStream,
        kernel: &RocKernel,
        dims: &LaunchConfig,
        arguments: &KernelArguments,
    ) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { kernel.launch(stream, dims, arguments) }
    }
}
