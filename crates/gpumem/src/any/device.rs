//! What is asked of a device.

use super::typed::{Named, OnDevice, Typed, come_back, into_same, same};
use super::{AnyBarrier, AnyBuffer, AnyEvent, AnyModule, AnyStream};
use enum_dispatch::enum_dispatch;
use gpumem_core::{
    AddressRange, Advice, AllocationRequest, Backend, Capabilities, CompileOptions, Compiler, DeviceInfo,
    DlpackDevice, Error, ErrorKind, EventOptions, IpcMemory, KernelSource, MemoryInfo, MemoryKind, RawStream,
    RegisterOptions, Result, StreamOptions,
};
use std::ptr::NonNull;

/// The functions of [`Backend`] that a device decides. Where a function takes a second thing, that must belong to the
/// same backend.
#[enum_dispatch]
pub(crate) trait DeviceOps {
    fn info(&self) -> &DeviceInfo;
    fn capabilities(&self) -> &Capabilities;
    fn barrier(&self) -> AnyBarrier;
    fn memory_info(&self) -> Result<MemoryInfo>;
    fn synchronize(&self) -> Result<()>;
    /// # Safety
    /// As for [`Backend::reset`].
    unsafe fn reset(&self) -> Result<()>;
    fn can_access_peer(&self, peer: &AnyDevice) -> Result<bool>;
    fn set_peer_access(&self, peer: &AnyDevice, enabled: bool) -> Result<()>;
    /// # Safety
    /// As for [`Backend::allocate`].
    unsafe fn allocate(&self, request: &AllocationRequest) -> Result<AnyBuffer>;
    /// # Safety
    /// As for [`Backend::release`].
    unsafe fn release(&self, buffer: AnyBuffer) -> Result<(), (AnyBuffer, Error)>;
    /// # Safety
    /// As for [`Backend::register`].
    unsafe fn register(&self, host: NonNull<u8>, bytes: usize, options: RegisterOptions)
    -> Result<AnyBuffer>;
    /// # Safety
    /// As for [`Backend::advise`].
    unsafe fn advise(&self, address: u64, bytes: usize, advice: Advice) -> Result<()>;
    /// # Safety
    /// As for [`Backend::export_memory`].
    unsafe fn export_memory(&self, address: u64, bytes: usize) -> Result<IpcMemory>;
    /// # Safety
    /// As for [`Backend::open_memory`].
    unsafe fn open_memory(&self, memory: &IpcMemory) -> Result<AnyBuffer>;
    fn with_current(&self, work: &mut dyn FnMut());
    fn pointer_info(&self, address: u64) -> Result<Option<AddressRange>>;
    fn dlpack_device(&self, kind: MemoryKind) -> Option<DlpackDevice>;
    fn record_device(&self, event: &AnyEvent) -> Result<()>;
    fn create_stream(&self, options: &StreamOptions) -> Result<AnyStream>;
    /// # Safety
    /// As for [`Backend::wrap_stream`].
    unsafe fn wrap_stream(&self, raw: RawStream) -> Result<AnyStream>;
    fn destroy_stream(&self, stream: AnyStream) -> Result<()>;
    fn create_event(&self, options: EventOptions) -> Result<AnyEvent>;
    fn destroy_event(&self, event: AnyEvent) -> Result<()>;
    fn compile(&self, source: &KernelSource, options: &CompileOptions) -> Result<AnyModule>;
    fn compiler(&self) -> Result<Compiler>;
    fn compile_image(&self, text: &str, options: &CompileOptions) -> Result<Vec<u8>>;
}

backends! { any!
    /// A device of one of the enabled backends.
    #[derive(Clone)]
    AnyDevice(OnDevice, Device): Named, DeviceOps
}

impl<B: Backend> DeviceOps for OnDevice<B>
where
    AnyDevice: Typed<B, Of = B::Device>,
    AnyBarrier: Typed<B, Of = B::Barrier>,
    AnyBuffer: Typed<B, Of = B::Buffer>,
    AnyStream: Typed<B, Of = B::Stream>,
    AnyEvent: Typed<B, Of = B::Event>,
    AnyModule: Typed<B, Of = B::Module>,
{
    #[inline]
    fn info(&self) -> &DeviceInfo {
        B::info(&self.0)
    }

    #[inline]
    fn capabilities(&self) -> &Capabilities {
        B::capabilities(&self.0)
    }

    #[inline]
    fn barrier(&self) -> AnyBarrier {
        Typed::<B>::from_typed(B::barrier(&self.0))
    }

    #[inline]
    fn memory_info(&self) -> Result<MemoryInfo> {
        B::memory_info(&self.0)
    }

    #[inline]
    fn synchronize(&self) -> Result<()> {
        B::synchronize(&self.0)
    }

    #[inline]
    unsafe fn reset(&self) -> Result<()> {
        // SAFETY: the caller promises what the backend asks for.
        unsafe { B::reset(&self.0) }
    }

    #[inline]
    fn can_access_peer(&self, peer: &AnyDevice) -> Result<bool> {
        // Devices of two backends exist side by side; no driver knows a path from one to the other.
        peer.as_typed().map_or(Ok(false), |peer| B::can_access_peer(&self.0, peer))
    }

    #[inline]
    fn set_peer_access(&self, peer: &AnyDevice, enabled: bool) -> Result<()> {
        match peer.as_typed() {
            Some(peer) => B::set_peer_access(&self.0, peer, enabled),
            None if !enabled => Ok(()),
            None => {
                let what = "access to the memory of another backend's device";
                Err(Error::new(B::NAME, "set_peer_access", ErrorKind::Unsupported { what }))
            }
        }
    }

    #[inline]
    unsafe fn allocate(&self, request: &AllocationRequest) -> Result<AnyBuffer> {
        // SAFETY: the caller promises what the backend asks for.
        unsafe { B::allocate(&self.0, request) }.map(Typed::<B>::from_typed)
    }

    #[inline]
    unsafe fn release(&self, buffer: AnyBuffer) -> Result<(), (AnyBuffer, Error)> {
        let buffer = into_same::<B, _>("release", buffer)?;
        // SAFETY: the caller promises what the backend asks for.
        unsafe { B::release(&self.0, buffer) }.map_err(come_back::<B, _>)
    }

    #[inline]
    unsafe fn register(
        &self,
        host: NonNull<u8>,
        bytes: usize,
        options: RegisterOptions,
    ) -> Result<AnyBuffer> {
        // SAFETY: the caller promises what the backend asks for.
        unsafe { B::register(&self.0, host, bytes, options) }.map(Typed::<B>::from_typed)
    }

    #[inline]
    unsafe fn advise(&self, address: u64, bytes: usize, advice: Advice) -> Result<()> {
        // SAFETY: the caller promises what the backend asks for.
        unsafe { B::advise(&self.0, address, bytes, advice) }
    }

    #[inline]
    unsafe fn export_memory(&self, address: u64, bytes: usize) -> Result<IpcMemory> {
        // SAFETY: the caller promises what the backend asks for.
        unsafe { B::export_memory(&self.0, address, bytes) }
    }

    #[inline]
    unsafe fn open_memory(&self, memory: &IpcMemory) -> Result<AnyBuffer> {
        // SAFETY: the caller promises what the backend asks for.
        unsafe { B::open_memory(&self.0, memory) }.map(Typed::<B>::from_typed)
    }

    #[inline]
    fn with_current(&self, work: &mut dyn FnMut()) {
        B::with_current(&self.0, work);
    }

    #[inline]
    fn pointer_info(&self, address: u64) -> Result<Option<AddressRange>> {
        B::pointer_info(&self.0, address)
    }

    #[inline]
    fn dlpack_device(&self, kind: MemoryKind) -> Option<DlpackDevice> {
        B::dlpack_device(&self.0, kind)
    }

    #[inline]
    fn record_device(&self, event: &AnyEvent) -> Result<()> {
        B::record_device(&self.0, same::<B, _>("record_device", event)?)
    }

    #[inline]
    fn create_stream(&self, options: &StreamOptions) -> Result<AnyStream> {
        B::create_stream(&self.0, options).map(Typed::<B>::from_typed)
    }

    #[inline]
    unsafe fn wrap_stream(&self, raw: RawStream) -> Result<AnyStream> {
        // SAFETY: the caller promises what the backend asks for.
        unsafe { B::wrap_stream(&self.0, raw) }.map(Typed::<B>::from_typed)
    }

    /// A stream of another backend is dropped, which destroys it as well; only its own errors go unheard.
    #[inline]
    fn destroy_stream(&self, stream: AnyStream) -> Result<()> {
        let stream = into_same::<B, _>("destroy_stream", stream).map_err(|(_, error)| error)?;
        B::destroy_stream(&self.0, stream)
    }

    #[inline]
    fn create_event(&self, options: EventOptions) -> Result<AnyEvent> {
        B::create_event(&self.0, options).map(Typed::<B>::from_typed)
    }

    /// An event of another backend is dropped, which destroys it as well; only its own errors go unheard.
    #[inline]
    fn destroy_event(&self, event: AnyEvent) -> Result<()> {
        let event = into_same::<B, _>("destroy_event", event).map_err(|(_, error)| error)?;
        B::destroy_event(&self.0, event)
    }

    #[inline]
    fn compile(&self, source: &KernelSource, options: &CompileOptions) -> Result<AnyModule> {
        B::compile(&self.0, source, options).map(Typed::<B>::from_typed)
    }

    #[inline]
    fn compiler(&self) -> Result<Compiler> {
        B::compiler(&self.0)
    }

    #[inline]
    fn compile_image(&self, text: &str, options: &CompileOptions) -> Result<Vec<u8>> {
        B::compile_image(&self.0, text, options)
    }
}
