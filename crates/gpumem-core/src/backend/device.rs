//! What a backend does with an open device.

use super::{Backend, HINTS, lacks};
use crate::{
    AddressRange, Advice, AllocationRequest, Capabilities, CompileOptions, Compiler, DeviceInfo,
    DlpackDevice, Error, EventOptions, IpcMemory, KernelSource, MemoryInfo, MemoryKind, RawStream,
    RegisterOptions, Result, StreamOptions,
};
use std::{fmt::Debug, ptr::NonNull};

const SHARING: &str = "memory shared between processes";
const IMAGES: &str = "images apart from loaded programs";

/// An open device. Cloning it is cheap and gives the same device.
///
/// # Safety
/// * Buffers are memory as [`DeviceBuffer`](crate::DeviceBuffer) says, of the kind, the length and the alignment that were asked
///   for; memory that the host can see is initialised. No two live buffers share a byte, and none goes away before it is
///   released.
/// * What [`Capabilities`], [`DeviceInfo`], [`pointer_info`](Self::pointer_info) and [`dlpack_device`](Self::dlpack_device) say
///   about memory is true.
pub unsafe trait DriverDevice<B: Backend>: Clone + Debug + Send + Sync + 'static {
    /// Returns what is known about the device. Never calls the driver.
    fn info(&self) -> &DeviceInfo;

    /// Returns what the device can do. Never calls the driver.
    fn capabilities(&self) -> &Capabilities;

    /// How work-items wait for each other on this device.
    fn barrier(&self) -> B::Barrier;

    /// Free and total memory.
    ///
    /// # Errors
    /// Returns [`Driver`](crate::ErrorKind::Driver) if the driver reports a failure.
    fn memory_info(&self) -> Result<MemoryInfo>;

    /// Waits for everything on the device, including work of other libraries.
    ///
    /// # Errors
    /// Returns [`Driver`](crate::ErrorKind::Driver) or [`DeviceLost`](crate::ErrorKind::DeviceLost) if the driver or
    /// the work itself failed.
    fn synchronize(&self) -> Result<()>;

    /// Gives everything that this process holds on the device back to the driver, and makes the device usable again.
    ///
    /// # Safety
    /// * Nothing made before on the device is used again: no buffer, stream, event, module. They are only forgotten.
    /// * No code reads or writes host-accessible memory of the device.
    ///
    /// # Errors
    /// Returns [`Driver`](crate::ErrorKind::Driver) if the driver reports a failure. The device is then in the state
    /// that the driver left it in.
    unsafe fn reset(&self) -> Result<()>;

    /// Whether this device can reach the memory of `peer`. False by default.
    ///
    /// # Errors
    /// Returns [`Driver`](crate::ErrorKind::Driver) if the driver reports a failure.
    fn can_access_peer(&self, peer: &Self) -> Result<bool> {
        let _ = peer;
        Ok(false)
    }

    /// Lets kernels and copies of this device reach the memory of `peer` directly, or no longer. Doing it twice is no error.
    ///
    /// # Errors
    /// Returns [`Unsupported`](crate::ErrorKind::Unsupported) if there is no path, and by default.
    fn set_peer_access(&self, peer: &Self, enabled: bool) -> Result<()> {
        let _ = (peer, enabled);
        lacks::<B, _>("set_peer_access", "access between these two devices")
    }

    /// Allocates memory. A backend whose memory the host can read *must* zero it, because reading uninitialised memory
    /// is undefined there.
    ///
    /// # Safety
    /// * `request.bytes` is at least 1 and `request.align` a power of two.
    /// * The contents are not read before they were written.
    ///
    /// # Errors
    /// Returns [`OutOfMemory`](crate::ErrorKind::OutOfMemory) if there is no room, and only then. Returns
    /// [`Unsupported`](crate::ErrorKind::Unsupported) for a kind of memory that the device does not have.
    unsafe fn allocate(&self, request: &AllocationRequest) -> Result<B::Buffer>;

    /// Gives memory back, or undoes [`register`](Self::register). May wait for the device, as some drivers do.
    ///
    /// # Safety
    /// * The buffer was made by this device since its last reset.
    /// * No work that uses it is pending, and none will be enqueued.
    ///
    /// # Errors
    /// Returns the buffer with the driver's error, so that nothing is lost.
    unsafe fn release(&self, buffer: B::Buffer) -> Result<(), (B::Buffer, Error)>;

    /// Returns the device whose memory an address lies in, or `None` if no device of this backend knows the memory.
    /// Page-locked and managed memory belongs to the device that allocated or registered it.
    ///
    /// Memory of other libraries is checked with it before it is used.
    ///
    /// # Errors
    /// Returns [`Unsupported`](crate::ErrorKind::Unsupported) by default, and if the driver cannot tell: then the
    /// address is trusted.
    fn pointer_info(&self, address: u64) -> Result<Option<AddressRange>> {
        let _ = address;
        lacks::<B, _>("device_of", "the device of an address")
    }

    /// Returns DLPack's name for memory of this kind, or `None` (the default) if DLPack has none.
    fn dlpack_device(&self, kind: MemoryKind) -> Option<DlpackDevice> {
        let _ = kind;
        None
    }

    /// Page-locks `bytes` bytes of the caller's memory, and gives them a device address if the options ask for it.
    ///
    /// # Safety
    /// * The memory is valid for reads (and for writes, unless `options.read_only`) until the buffer is released.
    ///
    /// # Errors
    /// Returns [`Registration`](crate::ErrorKind::Registration) if part of it is registered already,
    /// [`Unsupported`](crate::ErrorKind::Unsupported) if [`Capabilities::register`] is false, and by default.
    unsafe fn register(
        &self,
        host: NonNull<u8>,
        bytes: usize,
        options: RegisterOptions,
    ) -> Result<B::Buffer> {
        let _ = (host, bytes, options);
        lacks::<B, _>("register", "page-locking memory of the caller")
    }

    /// Gives a hint about managed memory.
    ///
    /// # Safety
    /// The range lies in one live managed buffer.
    ///
    /// # Errors
    /// Returns [`Unsupported`](crate::ErrorKind::Unsupported) if there is no such hint, and by default.
    unsafe fn advise(&self, address: u64, bytes: usize, advice: Advice) -> Result<()> {
        let _ = (address, bytes, advice);
        lacks::<B, _>("advise", HINTS)
    }

    /// Describes `bytes` bytes at `address` so that another process on this machine can open them (CUDA:
    /// `cuIpcGetMemHandle`, HIP: `hipIpcGetMemHandle`). The other process sees the whole allocation.
    ///
    /// # Safety
    /// The range lies in one live allocation of device memory, which stays alive for as long as another process has it
    /// open.
    ///
    /// # Errors
    /// Returns [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for a range that lies in no allocation, and
    /// [`Unsupported`](crate::ErrorKind::Unsupported) by default.
    unsafe fn export_memory(&self, address: u64, bytes: usize) -> Result<IpcMemory> {
        let _ = (address, bytes);
        lacks::<B, _>("export_memory", SHARING)
    }

    /// Opens memory of another process. Releasing the buffer closes it.
    ///
    /// # Safety
    /// * The memory comes from [`export_memory`](Self::export_memory) in another process, which keeps it alive.
    /// * The two processes order their accesses to it themselves.
    ///
    /// # Errors
    /// Returns [`Unsupported`](crate::ErrorKind::Unsupported) by default, and [`Driver`](crate::ErrorKind::Driver) if
    /// the driver reports a failure.
    unsafe fn open_memory(&self, memory: &IpcMemory) -> Result<B::Buffer> {
        let _ = memory;
        lacks::<B, _>("open_memory", SHARING)
    }

    /// Calls `work` once, with this device as the thread's current one (CUDA: the current context; HIP: the current
    /// device). Restores the previous one afterwards, also if `work` unwinds. This saves each call inside from setting
    /// it. If setting it fails, the calls inside report the error. The default only calls `work`.
    fn with_current(&self, work: &mut dyn FnMut()) {
        work();
    }

    /// Makes a stream.
    ///
    /// # Errors
    /// Returns [`Driver`](crate::ErrorKind::Driver) if the driver reports a failure.
    fn create_stream(&self, options: &StreamOptions) -> Result<B::Stream>;

    /// Takes a foreign stream without owning it: it is never destroyed by us.
    ///
    /// # Safety
    /// The handle names a live stream of this device for as long as the result is used.
    ///
    /// # Errors
    /// Returns [`Unsupported`](crate::ErrorKind::Unsupported) if there are no foreign streams, and by default.
    unsafe fn wrap_stream(&self, raw: RawStream) -> Result<B::Stream> {
        let _ = raw;
        lacks::<B, _>("wrap_stream", "streams of other libraries")
    }

    /// Makes an event.
    ///
    /// # Errors
    /// Returns [`Driver`](crate::ErrorKind::Driver) if the driver reports a failure.
    fn create_event(&self, options: EventOptions) -> Result<B::Event>;

    /// Records an event after everything that is enqueued on the device, on all streams, by this and by other
    /// libraries.
    ///
    /// # Errors
    /// Returns [`Unsupported`](crate::ErrorKind::Unsupported) by default: then callers that need such an event wait
    /// for the device.
    fn record_device(&self, event: &B::Event) -> Result<()> {
        let _ = event;
        lacks::<B, _>("record_device", "an event after the work of all streams")
    }

    /// Compiles or loads a program.
    ///
    /// # Errors
    /// Returns [`Build`](crate::ErrorKind::Build) with the compiler's message, [`Load`](crate::ErrorKind::Load) if the
    /// compiler's library is missing, and [`Unsupported`](crate::ErrorKind::Unsupported) for a form of source that the
    /// backend does not take.
    fn compile(&self, source: &KernelSource, options: &CompileOptions) -> Result<B::Module>;

    /// Describes what [`compile_image`](Self::compile_image) compiles with, for a cache of images. Two devices with
    /// equal answers can use each other's images, also across processes. *Should* be cheap after the first call.
    ///
    /// # Errors
    /// Returns [`Unsupported`](crate::ErrorKind::Unsupported) by default: then source text goes to
    /// [`compile`](Self::compile). Returns [`Load`](crate::ErrorKind::Load) if the compiler's library is missing.
    fn compiler(&self) -> Result<Compiler> {
        lacks::<B, _>("compiler", IMAGES)
    }

    /// Compiles source text to an image that [`compile`](Self::compile) takes as [`KernelSource::Binary`], without loading
    /// it.
    ///
    /// # Errors
    /// Returns [`Unsupported`](crate::ErrorKind::Unsupported) by default. Otherwise as [`compile`](Self::compile).
    fn compile_image(&self, text: &str, options: &CompileOptions) -> Result<Vec<u8>> {
        let _ = (text, options);
        lacks::<B, _>("compile_image", IMAGES)
    }
}
