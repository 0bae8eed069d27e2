//! The `Backend` trait: the interface between the runtime and a GPU driver.

use crate::{
    AddressRange, Advice, AllocationRequest, Barrier, Capabilities, CompileOptions, Compiler, CopyRegion,
    DeviceBuffer, DeviceInfo, DeviceSelector, DlpackDevice, Error, ErrorKind, Event, EventOptions, Fill,
    HostFuture, IpcMemory, KernelArguments, KernelSource, LaunchConfig, LoadError, Location, MemoryInfo,
    MemoryKind, RawStream, RegisterOptions, Result, Stream, StreamOptions, StridedCopy,
};
use std::{fmt::Debug, ptr::NonNull};

const SHARING: &str = "memory shared between processes";
const FUTURES: &str = "futures of the host as work of a stream";
const IMAGES: &str = "images apart from loaded programs";
/// The compiler's message about an architecture that it does not compile for.
const ARCHITECTURES: &str = "an architecture of this name";

/// A driver, as a type. Its values are devices, streams, events and buffers; its functions are single driver calls.
///
/// # For implementers
/// * Every function *must* work from any thread, *must* set the driver's current device itself and *must* leave the
///   caller's own as it found it.
/// * No function *may* panic. A function that the driver lacks returns [`ErrorKind::Unsupported`].
/// * Enqueuing functions (`copy`, `copy_strided`, `fill`, `launch`, `record`, `wait`, `prefetch`) *must not* wait for
///   the device where the driver can avoid it, and *must* run in the order in which they were called on one stream.
/// * Nothing is tracked: the runtime above keeps memory alive and orders the streams.
/// * A backend whose device goes on after a failure says so ([`Capabilities::survives_faults`]), and *must* then keep failed
///   work from being built upon: enqueuing functions find in [`current_uses`](crate::current_uses) what the work uses. All
///   other work runs. A failure is noted at its [`SubmissionId`](crate::SubmissionId), if the work has one, and is no error
///   of any wait then.
/// * A device that is lost *must* be reported as [`ErrorKind::DeviceLost`], so that it is not used again.
///
/// # Safety
/// Safe code relies on what a backend says, so an implementation promises:
/// * Buffers are memory as [`DeviceBuffer`] says, of the kind, the length and the alignment that were asked for; memory that the
///   host can see is initialised. No two live buffers share a byte, and none goes away before it is released.
/// * Work that is enqueued on a stream runs in order, uses only the memory of its arguments, and is over when a wait, a
///   query or an event says so. An event that another stream waits for holds back all later work of that stream.
/// * The safe functions touch no memory of the caller's but their arguments, and the unsafe ones ask no more of their caller than
///   they say.
/// * What [`Capabilities`], [`DeviceInfo`], [`pointer_info`](Self::pointer_info) and [`dlpack_device`](Self::dlpack_device) say about
///   memory is true.
pub unsafe trait Backend: Clone + Debug + Send + Sync + 'static {
    /// The name by which users select this backend (`host`, `cuda`, `roc`).
    const NAME: &'static str;

    /// An open device. Cloning it is cheap and gives the same device.
    type Device: Clone + Debug + Send + Sync + 'static;
    /// A block of memory.
    type Buffer: DeviceBuffer;
    /// A queue of work.
    type Stream: Stream;
    /// An event: a recorded position in a stream.
    type Event: Event;
    /// How work-items wait for each other.
    type Barrier: Barrier;
    /// A loaded program.
    type Module: Clone + Debug + Send + Sync + 'static;
    /// One kernel of a module. Keeps its module loaded.
    type Kernel: Clone + Debug + Send + Sync + 'static;

    // ---- finding devices ------------------------------------------------------------------------------------------

    /// Whether the driver can be used at all. Finds and loads its libraries; called any number of times.
    ///
    /// # Errors
    /// Returns the libraries that were tried, and why none serves.
    fn probe() -> Result<(), LoadError>;

    /// The devices of this backend, without opening one.
    ///
    /// # Errors
    /// Returns [`Load`](crate::ErrorKind::Load) without a driver. A driver without a device gives an empty list.
    fn devices() -> Result<Vec<DeviceInfo>>;

    /// Opens a device. Opening it again gives the same device.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Load`] without a driver, [`ErrorKind::NoSuchDevice`] if none fits
    /// ([`DeviceSelector::choose`]).
    fn open(selector: &DeviceSelector) -> Result<Self::Device>;

    /// Opens the device of a program that names none: the first of this backend, unless the backend has a better rule.
    /// *Must not* fall back to another device when that one cannot be had.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    fn open_default() -> Result<Self::Device> {
        Self::open(&DeviceSelector::ordinal(Self::NAME, 0))
    }

    /// Opens the first device that works, for programs that run on any.
    ///
    /// # Errors
    /// As for [`open`](Self::open), if no device opens.
    fn open_first_available() -> Result<Self::Device> {
        Self::open_default()
    }

    // ---- a device -------------------------------------------------------------------------------------------------

    /// Returns what is known about the device. Never calls the driver.
    fn info(device: &Self::Device) -> &DeviceInfo;

    /// Returns what the device can do. Never calls the driver.
    fn capabilities(device: &Self::Device) -> &Capabilities;

    /// How work-items wait for each other on this device.
    fn barrier(device: &Self::Device) -> Self::Barrier;

    /// Free and total memory.
    ///
    /// # Errors
    /// Returns [`Driver`](crate::ErrorKind::Driver) if the driver reports a failure.
    fn memory_info(device: &Self::Device) -> Result<MemoryInfo>;

    /// Waits for everything on the device, including work of other libraries.
    ///
    /// # Errors
    /// Returns [`Driver`](crate::ErrorKind::Driver) or [`DeviceLost`](crate::ErrorKind::DeviceLost) if the driver or
    /// the work itself failed.
    fn synchronize(device: &Self::Device) -> Result<()>;

    /// Gives everything that this process holds on the device back to the driver, and makes the device usable again.
    ///
    /// # Safety
    /// * Nothing made before on the device is used again: no buffer, stream, event, module. They are only forgotten.
    /// * No code reads or writes host-accessible memory of the device.
    ///
    /// # Errors
    /// Returns [`Driver`](crate::ErrorKind::Driver) if the driver reports a failure. The device is then in the state
    /// that the driver left it in.
    unsafe fn reset(device: &Self::Device) -> Result<()>;

    /// Whether `device` can reach the memory of `peer`.
    ///
    /// # Errors
    /// Returns [`Driver`](crate::ErrorKind::Driver) if the driver reports a failure.
    fn can_access_peer(device: &Self::Device, peer: &Self::Device) -> Result<bool>;

    /// Lets kernels and copies of `device` reach the memory of `peer` directly, or no longer. Doing it twice is no error.
    ///
    /// # Errors
    /// Returns [`Unsupported`](crate::ErrorKind::Unsupported) if there is no path.
    fn set_peer_access(device: &Self::Device, peer: &Self::Device, enabled: bool) -> Result<()>;

    // ---- memory ---------------------------------------------------------------------------------------------------

    /// Allocates memory. A backend whose memory the host can read *must* zero it, because reading uninitialised memory
    /// is undefined there.
    ///
    /// # Safety
    /// * `request.bytes` is at least 1 and `request.align` a power of two.
    /// * The contents are not read before they were written.
    ///
    /// # Errors
    /// Returns [`ErrorKind::OutOfMemory`] if there is no room, and only then. Returns [`ErrorKind::Unsupported`] for a
    /// kind of memory that the device does not have.
    unsafe fn allocate(device: &Self::Device, request: &AllocationRequest) -> Result<Self::Buffer>;

    /// Gives memory back, or undoes [`register`](Self::register). May wait for the device, as some drivers do.
    ///
    /// # Safety
    /// * The buffer was made by this device since its last reset.
    /// * No work that uses it is pending, and none will be enqueued.
    ///
    /// # Errors
    /// Returns the buffer with the driver's error, so that nothing is lost.
    unsafe fn release(device: &Self::Device, buffer: Self::Buffer) -> Result<(), (Self::Buffer, Error)>;

    /// Returns the device whose memory an address lies in, or `None` if no device of this backend knows the memory.
    /// Page-locked and managed memory belongs to the device that allocated or registered it.
    ///
    /// Memory of other libraries is checked with it before it is used.
    ///
    /// # Errors
    /// Returns [`Unsupported`](crate::ErrorKind::Unsupported) by default, and if the driver cannot tell: then the
    /// address is trusted.
    fn pointer_info(device: &Self::Device, address: u64) -> Result<Option<AddressRange>> {
        let _ = (device, address);
        Err(Error::new(Self::NAME, "device_of", ErrorKind::Unsupported { what: "the device of an address" }))
    }

    /// Returns DLPack's name for memory of this kind, or `None` (the default) if DLPack has none.
    fn dlpack_device(device: &Self::Device, kind: MemoryKind) -> Option<DlpackDevice> {
        let _ = (device, kind);
        None
    }

    /// Page-locks `bytes` bytes of the caller's memory, and gives them a device address if the options ask for it.
    ///
    /// # Safety
    /// * The memory is valid for reads (and for writes, unless `options.read_only`) until the buffer is released.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Registration`] if part of it is registered already, [`ErrorKind::Unsupported`] if
    /// [`Capabilities::register`] is false.
    unsafe fn register(
        device: &Self::Device,
        host: NonNull<u8>,
        bytes: usize,
        options: RegisterOptions,
    ) -> Result<Self::Buffer>;

    /// Gives a hint about managed memory.
    ///
    /// # Safety
    /// The range lies in one live managed buffer.
    ///
    /// # Errors
    /// Returns [`Unsupported`](crate::ErrorKind::Unsupported) if there is no such hint.
    unsafe fn advise(device: &Self::Device, address: u64, bytes: usize, advice: Advice) -> Result<()>;

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
    unsafe fn export_memory(device: &Self::Device, address: u64, bytes: usize) -> Result<IpcMemory> {
        let _ = (device, address, bytes);
        Err(Error::new(Self::NAME, "export_memory", ErrorKind::Unsupported { what: SHARING }))
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
    unsafe fn open_memory(device: &Self::Device, memory: &IpcMemory) -> Result<Self::Buffer> {
        let _ = (device, memory);
        Err(Error::new(Self::NAME, "open_memory", ErrorKind::Unsupported { what: SHARING }))
    }

    /// Whether [`set_poisoned`](Self::set_poisoned) is to be called. False by default.
    const WANTS_POISONING: bool = false;

    /// Told by the runtime, before a part of a live buffer is allocated to a caller, and after its last use, for memory
    /// checkers: memory that a pool keeps is otherwise no different from memory in use. `address` is the host's where it
    /// can see the memory. Does nothing by default.
    ///
    /// # Safety
    /// The range lies in a live buffer of this backend, and no code reads or writes it before it is allocated again.
    unsafe fn set_poisoned(address: u64, bytes: usize, is_lent: bool) {
        let _ = (address, bytes, is_lent);
    }

    /// Calls `work` once, with this device as the thread's current one (CUDA: the current context; HIP: the current
    /// device). Restores the previous one afterwards, also if `work` unwinds. This saves each call inside from setting
    /// it. If setting it fails, the calls inside report the error. The default only calls `work`.
    fn with_current(device: &Self::Device, work: &mut dyn FnMut()) {
        let _ = device;
        work();
    }

    // ---- streams --------------------------------------------------------------------------------------------------

    /// Makes a stream.
    ///
    /// # Errors
    /// Returns [`Driver`](crate::ErrorKind::Driver) if the driver reports a failure.
    fn create_stream(device: &Self::Device, options: &StreamOptions) -> Result<Self::Stream>;

    /// Takes a foreign stream without owning it: it is never destroyed by us.
    ///
    /// # Safety
    /// The handle names a live stream of this device for as long as the result is used.
    ///
    /// # Errors
    /// Returns [`Unsupported`](crate::ErrorKind::Unsupported) if there are no foreign streams.
    unsafe fn wrap_stream(device: &Self::Device, raw: RawStream) -> Result<Self::Stream>;

    /// Destroys a stream that [`create_stream`](Self::create_stream) made; one that was wrapped is only forgotten.
    /// Work that is still enqueued runs to its end. Dropping a stream instead does the same and keeps errors to itself.
    ///
    /// # Errors
    /// Returns [`Driver`](crate::ErrorKind::Driver) if the driver reports a failure.
    fn destroy_stream(device: &Self::Device, stream: Self::Stream) -> Result<()>;

    /// Enqueues a copy.
    ///
    /// # Safety
    /// * Both sides are valid for the whole region until the copy is done, and other uses of them are ordered with it.
    /// * The region obeys the rules of [`CopyRegion`].
    ///
    /// # Errors
    /// Returns [`Driver`](crate::ErrorKind::Driver) if the driver reports a failure. Nothing is being read or written
    /// after an error.
    unsafe fn copy(stream: &Self::Stream, region: &CopyRegion) -> Result<()>;

    /// Copies at once, on the calling thread, where the backend can do that and everything that was enqueued on the stream
    /// is done. Asked only where [`Capabilities::pageable_direct`] says that the host's own memory takes part in copies,
    /// for copies that the caller would wait for: enqueuing a short one and waiting for it costs more than copying it.
    ///
    /// `false`, the default, means that nothing was copied and nothing has changed: the caller enqueues the copy
    /// instead, and that call reports errors. So an implementation *should* return `false` when in doubt.
    ///
    /// # Safety
    /// As for [`copy`](Self::copy), and no other code uses either side during the call.
    unsafe fn try_copy_sync(stream: &Self::Stream, region: &CopyRegion) -> bool {
        let _ = (stream, region);
        false
    }

    /// Enqueues a copy between any two layouts in memory that the stream's device can reach.
    /// Only where [`Capabilities::strided_copy`] says so.
    ///
    /// # Safety
    /// As for [`copy`](Self::copy), with the rules of [`StridedCopy`].
    ///
    /// # Errors
    /// Returns [`Unsupported`](crate::ErrorKind::Unsupported) by default.
    unsafe fn copy_strided(stream: &Self::Stream, copy: &StridedCopy) -> Result<()> {
        let _ = (stream, copy);
        Err(Error::new(Self::NAME, "copy_strided", ErrorKind::Unsupported { what: "copies of any layout" }))
    }

    /// Enqueues a fill.
    ///
    /// # Safety
    /// The rows are valid for writes until the fill is done, and other uses of them are ordered with it.
    ///
    /// # Errors
    /// Returns [`Driver`](crate::ErrorKind::Driver) if the driver reports a failure.
    unsafe fn fill(stream: &Self::Stream, fill: &Fill) -> Result<()>;

    /// Enqueues the movement of managed memory.
    ///
    /// # Safety
    /// The range lies in one live managed buffer until the movement is done.
    ///
    /// # Errors
    /// Returns [`Unsupported`](crate::ErrorKind::Unsupported) if there is no such hint.
    unsafe fn prefetch(stream: &Self::Stream, address: u64, bytes: usize, to: Location) -> Result<()>;

    /// Enqueues a future of the host. It is polled once its turn in the stream has come, and again when it was woken;
    /// later work of the stream runs when it is ready. No thread may wait for it meanwhile.
    /// Only where [`Capabilities::futures`] says so.
    ///
    /// # Safety
    /// * All memory that the future uses is valid until it is ready or dropped, and other uses of it are ordered with it.
    /// * If it ends well, it has written all bytes that [`current_uses`](crate::current_uses) names as written.
    ///
    /// # Errors
    /// Returns [`Unsupported`](crate::ErrorKind::Unsupported) by default.
    unsafe fn enqueue_future(stream: &Self::Stream, future: HostFuture) -> Result<()> {
        let _ = (stream, future);
        Err(Error::new(Self::NAME, "enqueue_future", ErrorKind::Unsupported { what: FUTURES }))
    }

    // ---- events ---------------------------------------------------------------------------------------------------

    /// Whether the stream's work is being captured into a graph instead of run. False by default.
    ///
    /// # Errors
    /// Returns [`Driver`](crate::ErrorKind::Driver) if the driver reports a failure.
    fn is_capturing(stream: &Self::Stream) -> Result<bool> {
        let _ = stream;
        Ok(false)
    }

    /// Makes an event.
    ///
    /// # Errors
    /// Returns [`Driver`](crate::ErrorKind::Driver) if the driver reports a failure.
    fn create_event(device: &Self::Device, options: EventOptions) -> Result<Self::Event>;

    /// Destroys an event. Dropping it instead does the same and keeps errors to itself.
    ///
    /// # Errors
    /// Returns [`Driver`](crate::ErrorKind::Driver) if the driver reports a failure.
    fn destroy_event(device: &Self::Device, event: Self::Event) -> Result<()>;

    /// Records the event after all work submitted to the stream so far. The event is one of the stream's own
    /// device.
    ///
    /// # Errors
    /// Returns [`Driver`](crate::ErrorKind::Driver) if the driver reports a failure.
    fn record(stream: &Self::Stream, event: &Self::Event) -> Result<()>;

    /// Records an event after everything that is enqueued on the device, on all streams, by this and by other
    /// libraries.
    ///
    /// # Errors
    /// Returns [`Unsupported`](crate::ErrorKind::Unsupported) by default: then callers that need such an event wait
    /// for the device.
    fn record_device(device: &Self::Device, event: &Self::Event) -> Result<()> {
        let _ = (device, event);
        Err(Error::new(
            Self::NAME,
            "record_device",
            ErrorKind::Unsupported { what: "an event after the work of all streams" },
        ))
    }

    /// Makes all future work on the stream wait for the event. Works across devices.
    ///
    /// # Errors
    /// Returns [`Driver`](crate::ErrorKind::Driver) if the driver reports a failure.
    fn wait(stream: &Self::Stream, event: &Self::Event) -> Result<()>;

    /// Returns the milliseconds between two recorded events.
    ///
    /// # Errors
    /// Returns [`ErrorKind::NotReady`] before both are reached, and [`ErrorKind::InvalidArgument`] for events that
    /// keep no time.
    fn elapsed(start: &Self::Event, end: &Self::Event) -> Result<f32>;

    // ---- kernels --------------------------------------------------------------------------------------------------

    /// Compiles or loads a program.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Build`] with the compiler's message, [`ErrorKind::Load`] if the compiler's library is
    /// missing, and [`ErrorKind::Unsupported`] for a form of source that the backend does not take.
    fn compile(
        device: &Self::Device,
        source: &KernelSource,
        options: &CompileOptions,
    ) -> Result<Self::Module>;

    /// Describes what [`compile_image`](Self::compile_image) compiles with, for a cache of images. Two devices with
    /// equal answers can use each other's images, also across processes. *Should* be cheap after the first call.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Unsupported`] by default: then source text goes to [`compile`](Self::compile). Returns
    /// [`ErrorKind::Load`] if the compiler's library is missing.
    fn compiler(device: &Self::Device) -> Result<Compiler> {
        let _ = device;
        Err(Error::new(Self::NAME, "compiler", ErrorKind::Unsupported { what: IMAGES }))
    }

    /// Compiles source text to an image that [`compile`](Self::compile) takes as [`KernelSource::Binary`], without loading
    /// it.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Unsupported`] by default. Otherwise as [`compile`](Self::compile).
    fn compile_image(device: &Self::Device, text: &str, options: &CompileOptions) -> Result<Vec<u8>> {
        let _ = (device, text, options);
        Err(Error::new(Self::NAME, "compile_image", ErrorKind::Unsupported { what: IMAGES }))
    }

    /// Compiles source text for an architecture by its name (`sm_90`, `gfx90a`); this machine needs no such device.
    /// `text` returns the source for a wave size. A name that the compiler does not know is refused before the call,
    /// because some compilers end the process then.
    ///
    /// # Errors
    /// Returns [`ErrorKind::Unsupported`] by default, and for names that are not of this backend. Otherwise as [`compile`](Self::compile).
    fn compile_for(
        architecture: &str,
        text: &dyn Fn(u32) -> String,
        options: &CompileOptions,
    ) -> Result<Vec<u8>> {
        let _ = (architecture, text, options);
        Err(Error::new(Self::NAME, "compile_for", ErrorKind::Unsupported { what: ARCHITECTURES }))
    }

    /// Finds a variable of a module by name: its device address, and its length in bytes. It is there as long as the
    /// module is loaded.
    ///
    /// # Errors
    /// Returns [`ErrorKind::InvalidArgument`] if there is none of that name, [`ErrorKind::Unsupported`] by default:
    /// then modules have no variables.
    fn variable(module: &Self::Module, name: &str) -> Result<(u64, usize)> {
        let _ = (module, name);
        Err(Error::new(Self::NAME, "variable", ErrorKind::Unsupported { what: "variables of modules" }))
    }

    /// Finds a kernel by name.
    ///
    /// # Errors
    /// Returns [`NoSuchKernel`](crate::ErrorKind::NoSuchKernel) if the module has no kernel of that name.
    fn kernel(module: &Self::Module, name: &str) -> Result<Self::Kernel>;

    /// Enqueues a kernel.
    ///
    /// # Safety
    /// * The arguments match the kernel's signature.
    /// * All memory that it reaches is valid until it is done, and other uses of it are ordered with it.
    ///
    /// # Errors
    /// Returns [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for sizes that the device does not have.
    unsafe fn launch(
        stream: &Self::Stream,
        kernel: &Self::Kernel,
        dims: &LaunchConfig,
        arguments: &KernelArguments,
    ) -> Result<()>;
}
