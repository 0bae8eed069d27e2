//! The backend: every function of the trait, by the module that knows how.

use crate::{
    CudaBarrier, CudaBuffer, CudaDevice, CudaEvent, CudaKernel, CudaModule, CudaStream, NAME, copy, fill,
    ipc, managed, nvrtc, pack, peer, pointer, probe, registry,
};
use gpumem_core::{
    AddressRange, Advice, AllocationRequest, Backend, Capabilities, CompileOptions, Compiler, CopyRegion,
    DeviceInfo, DeviceSelector, DlpackDevice, Error, ErrorKind, EventOptions, Fill, IpcMemory,
    KernelArguments, KernelSource, LaunchConfig, LoadError, Location, MemoryInfo, MemoryKind, RawStream,
    RegisterOptions, Result, StreamOptions, StridedCopy,
};
use std::ptr::NonNull;

/// The CUDA driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Cuda;

// SAFETY: each function forwards its arguments to the driver's call of that name; buffers are memory that the driver
// has allocated.
unsafe impl Backend for Cuda {
    const NAME: &'static str = NAME;

    type Device = CudaDevice;
    type Buffer = CudaBuffer;
    type Stream = CudaStream;
    type Event = CudaEvent;
    type Barrier = CudaBarrier;
    type Module = CudaModule;
    type Kernel = CudaKernel;

    fn probe() -> Result<(), LoadError> {
        probe::probe()
    }

    fn devices() -> Result<Vec<DeviceInfo>> {
        registry::devices()
    }

    fn open(selector: &DeviceSelector) -> Result<CudaDevice> {
        registry::open(selector)
    }

    fn info(device: &CudaDevice) -> &DeviceInfo {
        &device.inner().info
    }

    fn capabilities(device: &CudaDevice) -> &Capabilities {
        &device.inner().capabilities
    }

    fn barrier(device: &CudaDevice) -> CudaBarrier {
        CudaBarrier::new(device.inner().capabilities.wave_size)
    }

    fn memory_info(device: &CudaDevice) -> Result<MemoryInfo> {
        device.memory_info()
    }

    fn synchronize(device: &CudaDevice) -> Result<()> {
        device.synchronize()
    }

    unsafe fn reset(device: &CudaDevice) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { device.reset() }
    }

    fn can_access_peer(device: &CudaDevice, peer: &CudaDevice) -> Result<bool> {
        peer::can_access(device, peer)
    }

    fn set_peer_access(device: &CudaDevice, peer: &CudaDevice, enabled: bool) -> Result<()> {
        peer::set_access(device, peer, enabled)
    }

    unsafe fn allocate(device: &CudaDevice, request: &AllocationRequest) -> Result<CudaBuffer> {
        // SAFETY: passed on to the caller.
        unsafe { CudaBuffer::allocate(device, request) }
    }

    unsafe fn release(device: &CudaDevice, buffer: CudaBuffer) -> Result<(), (CudaBuffer, Error)> {
        // SAFETY: passed on to the caller.
        unsafe { buffer.release(device) }
    }

    #[inline]
    fn with_current(device: &CudaDevice, work: &mut dyn FnMut()) {
        let _current = device.enter("cuCtxPushCurrent");
        work();
    }

    fn pointer_info(device: &CudaDevice, address: u64) -> Result<Option<AddressRange>> {
        pointer::residence(device, address)
    }

    fn dlpack_device(device: &CudaDevice, kind: MemoryKind) -> Option<DlpackDevice> {
        let ordinal = i32::try_from(Self::info(device).ordinal).ok()?;
        Some(match kind {
            MemoryKind::Device => DlpackDevice::new(DlpackDevice::CUDA, ordinal),
            MemoryKind::Managed(_) => DlpackDevice::new(DlpackDevice::CUDA_MANAGED, ordinal),
            // Page-locked memory belongs to no device in particular.
            _ => DlpackDevice::new(DlpackDevice::CUDA_HOST, 0),
        })
    }

    unsafe fn register(
        device: &CudaDevice,
        host: NonNull<u8>,
        bytes: usize,
        options: RegisterOptions,
    ) -> Result<CudaBuffer> {
        // SAFETY: passed on to the caller.
        unsafe { CudaBuffer::register(device, host, bytes, options) }
    }

    unsafe fn advise(device: &CudaDevice, address: u64, bytes: usize, advice: Advice) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { managed::advise(device, address, bytes, advice) }
    }

    unsafe fn export_memory(device: &CudaDevice, address: u64, bytes: usize) -> Result<IpcMemory> {
        // SAFETY: passed on to the caller.
        unsafe { ipc::export(device, address, bytes) }
    }

    unsafe fn open_memory(device: &CudaDevice, memory: &IpcMemory) -> Result<CudaBuffer> {
        // SAFETY: passed on to the caller.
        unsafe { ipc::open(device, memory) }
    }

    fn create_stream(device: &CudaDevice, options: &StreamOptions) -> Result<CudaStream> {
        CudaStream::create(device, options)
    }

    unsafe fn wrap_stream(device: &CudaDevice, raw: RawStream) -> Result<CudaStream> {
        CudaStream::wrap(device, raw)
    }

    fn destroy_stream(_device: &CudaDevice, stream: CudaStream) -> Result<()> {
        stream.destroy()
    }

    unsafe fn copy(stream: &CudaStream, region: &CopyRegion) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { copy::copy(stream, region) }
    }

    unsafe fn copy_strided(stream: &CudaStream, copy: &StridedCopy) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { pack::copy_strided(stream, copy) }
    }

    unsafe fn fill(stream: &CudaStream, fill: &Fill) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { fill::fill(stream, fill) }
    }

    unsafe fn prefetch(stream: &CudaStream, address: u64, bytes: usize, to: Location) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { managed::prefetch(stream, address, bytes, to) }
    }

    fn is_capturing(stream: &CudaStream) -> Result<bool> {
        stream.is_capturing()
    }

    fn create_event(device: &CudaDevice, options: EventOptions) -> Result<CudaEvent> {
        CudaEvent::create(device, options, false)
    }

    fn destroy_event(_device: &CudaDevice, event: CudaEvent) -> Result<()> {
        event.destroy()
    }

    fn record(stream: &CudaStream, event: &CudaEvent) -> Result<()> {
        stream.record(event)
    }

    fn record_device(device: &CudaDevice, event: &CudaEvent) -> Result<()> {
        event.record_context(device)
    }

    fn wait(stream: &CudaStream, event: &CudaEvent) -> Result<()> {
        stream.wait(event)
    }

    fn elapsed(start: &CudaEvent, end: &CudaEvent) -> Result<f32> {
        CudaEvent::elapsed(start, end)
    }

    fn compile(device: &CudaDevice, source: &KernelSource, options: &CompileOptions) -> Result<CudaModule> {
        CudaModule::compile(device, source, options)
    }

    fn compiler(device: &CudaDevice) -> Result<Compiler> {
        let version = probe::nvrtc("compiler")?.version.clone();
        Ok(Compiler { version, target: device.inner().info.architecture.clone() })
    }

    fn compile_image(device: &CudaDevice, text: &str, options: &CompileOptions) -> Result<Vec<u8>> {
        nvrtc::compile(text, &device.inner().info.architecture, options)
    }

    fn compile_for(
        architecture: &str,
        text: &dyn Fn(u32) -> String,
        options: &CompileOptions,
    ) -> Result<Vec<u8>> {
        if !architecture.starts_with("sm_") {
            let what = "an architecture whose name is not like `sm_90`";
            return Err(Error::new(NAME, "compile_for", ErrorKind::Unsupported { what }));
        }
        nvrtc::compile_for(architecture, &text(nvrtc::WAVE_SIZE), options)
    }

    fn variable(module: &CudaModule, name: &str) -> Result<(u64, usize)> {
        module.global(name)
    }

    fn kernel(module: &CudaModule, name: &str) -> Result<CudaKernel> {
        module.kernel(name)
    }

    #[inline]
    unsafe fn launch(
        stream: &CudaStream,
        kernel: &CudaKernel,
        dims: &LaunchConfig,
        arguments: &KernelArguments,
    ) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { kernel.launch(stream, dims, arguments) }
    }
}
