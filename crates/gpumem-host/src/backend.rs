//! The backend itself: every function of the trait, a few lines each.

use crate::copy::{StridedPlan, extent, extent_of_fill};
use crate::engine::{Command, Pending};
use crate::error::{error, invalid};
use crate::inject::Operation;
use crate::{Buffer, Device, Event, HostBarrier, HostOptions, Kernel, Module, NAME, Stream};
use crate::{buffer, probe, stream};
use gpumem_core::{
    AddressRange, Advice, AllocationRequest, Backend, Capabilities, CompileOptions, CopyRegion, DeviceInfo,
    DeviceSelector, DlpackDevice, Error, ErrorKind, EventOptions, Fill, HostFuture, KernelArguments,
    KernelSource, LaunchConfig, LoadError, Location, MemoryInfo, MemoryKind, RawStream, RegisterOptions,
    Result, StreamKind, StreamOptions, StridedCopy,
};
use std::ptr::NonNull;

/// Times the limit for brief commands: the longest copy that is done at once where the caller waits for it.
const AT_ONCE: usize = 8;

/// The host backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Host;

impl Host {
    /// Makes a new device that no other code can open: with memory, streams and threads of its own, and an ordinal
    /// from 1000 upward that no other device of the process has.
    ///
    /// # Errors
    /// Returns [`ErrorKind::InvalidArgument`] for options that make no sense.
    pub fn open_with(options: &HostOptions) -> Result<Device> {
        Device::private(options)
    }
}

// SAFETY: buffers are allocations of the process that are freed when they are released; the engine runs the commands of a queue in order.
unsafe impl Backend for Host {
    const NAME: &'static str = NAME;

    type Device = Device;
    type Buffer = Buffer;
    type Stream = Stream;
    type Event = Event;
    type Barrier = HostBarrier;
    type Module = Module;
    type Kernel = Kernel;

    fn probe() -> Result<(), LoadError> {
        probe::probe()
    }

    fn devices() -> Result<Vec<DeviceInfo>> {
        probe::devices()
    }

    fn open(selector: &DeviceSelector) -> Result<Device> {
        Device::open(selector)
    }

    fn info(device: &Device) -> &DeviceInfo {
        device.info()
    }

    fn capabilities(device: &Device) -> &Capabilities {
        device.capabilities()
    }

    fn barrier(device: &Device) -> HostBarrier {
        device.barrier()
    }

    fn memory_info(device: &Device) -> Result<MemoryInfo> {
        device.engine().enter("memory_info", Operation::MemoryInfo)?;
        Ok(device.engine().budget().info())
    }

    fn synchronize(device: &Device) -> Result<()> {
        device.synchronize()
    }

    unsafe fn reset(device: &Device) -> Result<()> {
        device.reset()
    }

    fn can_access_peer(device: &Device, peer: &Device) -> Result<bool> {
        device.engine().origin().check(NAME, "can_access_peer")?;
        peer.engine().origin().check(NAME, "can_access_peer")?;
        device.engine().check_lost("can_access_peer")?;
        peer.engine().check_lost("can_access_peer")?;
        Ok(true)
    }

    fn set_peer_access(device: &Device, peer: &Device, enabled: bool) -> Result<()> {
        Self::can_access_peer(device, peer).map_err(|error| error.in_operation("set_peer_access"))?;
        device.set_peer_access(peer, enabled);
        Ok(())
    }

    unsafe fn allocate(device: &Device, request: &AllocationRequest) -> Result<Buffer> {
        buffer::allocate(device.engine(), request)
    }

    unsafe fn release(device: &Device, buffer: Buffer) -> Result<(), (Buffer, Error)> {
        buffer::release(device.engine(), buffer)
    }

    fn pointer_info(device: &Device, address: u64) -> Result<Option<AddressRange>> {
        let engine = device.engine();
        engine.origin().check(NAME, "device_of")?;
        let table = &engine.process().table;
        Ok(usize::try_from(address).ok().and_then(|address| table.residence(device.ordinal(), address)))
    }

    fn dlpack_device(_: &Device, _: MemoryKind) -> Option<DlpackDevice> {
        // All host devices live in the one memory of the host.
        Some(DlpackDevice::new(DlpackDevice::CPU, 0))
    }

    unsafe fn register(
        device: &Device,
        host: NonNull<u8>,
        bytes: usize,
        options: RegisterOptions,
    ) -> Result<Buffer> {
        buffer::register(device.engine(), host, bytes, options)
    }

    unsafe fn advise(device: &Device, address: u64, bytes: usize, _: Advice) -> Result<()> {
        let engine = device.engine();
        engine.origin().check(NAME, "advise")?;
        engine.check_lost("advise")?;
        if usize::try_from(address).is_ok_and(|start| engine.process().table.is_managed(start, bytes)) {
            return Ok(());
        }
        Err(invalid("advise", "the range is not inside one managed buffer"))
    }

    const WANTS_POISONING: bool = crate::asan::IS_ON;

    unsafe fn set_poisoned(address: u64, bytes: usize, is_lent: bool) {
        // SAFETY: the caller's promise.
        unsafe { crate::asan::set_poisoned(address, bytes, is_lent) };
    }

    fn create_stream(device: &Device, options: &StreamOptions) -> Result<Stream> {
        device.engine().enter("create_stream", Operation::CreateStream)?;
        match options.kind {
            StreamKind::New => Ok(Stream::owning(device, device.engine().create_queue())),
            StreamKind::Legacy => Ok(Stream::borrowing(device, device.legacy())),
            StreamKind::PerThread => Ok(Stream::borrowing(device, stream::per_thread(device.engine())?)),
        }
    }

    unsafe fn wrap_stream(device: &Device, raw: RawStream) -> Result<Stream> {
        device.engine().origin().check(NAME, "wrap_stream")?;
        device.engine().check_lost("wrap_stream")?;
        Stream::wrap(device, raw)
    }

    fn destroy_stream(device: &Device, stream: Stream) -> Result<()> {
        device.engine().enter("destroy_stream", Operation::DestroyStream)?;
        let engine = &stream.queue().engine;
        if !std::sync::Arc::ptr_eq(device.engine(), engine) {
            let (has, wants) = (format!("host:{}", engine.ordinal()), format!("host:{}", device.ordinal()));
            return Err(error("destroy_stream", ErrorKind::WrongDevice { what: "stream", has, wants }));
        }
        Ok(())
    }

    unsafe fn copy(stream: &Stream, region: &CopyRegion) -> Result<()> {
        stream.submit("copy", Operation::Copy, |_| {
            let bytes = region.total_bytes().filter(|bytes| *bytes > 0);
            let sides = [&region.source, &region.destination].map(|side| extent(region, side));
            let (Some(_), [Some(_), Some(_)]) = (bytes, sides) else {
                return Err(invalid("copy", "the region is empty or runs over the end of the address space"));
            };
            Ok(Command::Copy(*region))
        })?;
        let counters = stream.queue().engine.counters();
        counters.copies.up();
        counters.copied_bytes.add(region.total_bytes().unwrap_or(0) as u64);
        Ok(())
    }

    unsafe fn try_copy_sync(stream: &Stream, region: &CopyRegion) -> bool {
        let engine = &stream.queue().engine;
        // The caller waits in any case; longer copies only must not keep others from enqueuing.
        let limit = engine.brief_bytes().saturating_mul(AT_ONCE);
        let brief = region.total_bytes().filter(|bytes| (1..=limit).contains(bytes));
        // Injected failures take the ordinary way. SAFETY: the caller upholds the conditions of `copy`.
        brief.is_some_and(|bytes| engine.is_plain() && unsafe { stream.queue().try_copy_sync(region, bytes) })
    }

    unsafe fn copy_strided(stream: &Stream, copy: &StridedCopy) -> Result<()> {
        let plan = StridedPlan::new(copy).map_err(|why| invalid("copy_strided", why))?;
        let Some(plan) = plan else {
            return stream.queue().engine.enter("copy_strided", Operation::CopyStrided);
        };
        stream.submit("copy_strided", Operation::CopyStrided, |_| Ok(Command::Strided(Box::new(plan))))?;
        stream.queue().engine.counters().strided_copies.up();
        Ok(())
    }

    unsafe fn fill(stream: &Stream, fill: &Fill) -> Result<()> {
        stream.submit("fill", Operation::Fill, |_| {
            let empty = fill.count == 0 || fill.rows == 0;
            if empty || extent_of_fill(fill).is_none() {
                return Err(invalid("fill", "the fill is empty or runs over the end of the address space"));
            }
            let item = fill.pattern.bytes();
            let aligned = fill.address.is_multiple_of(item as u64);
            if !aligned || (fill.rows > 1 && !fill.pitch.is_multiple_of(item)) {
                return Err(invalid("fill", "the address or the pitch is not a multiple of the pattern"));
            }
            Ok(Command::Fill(*fill))
        })?;
        stream.queue().engine.counters().fills.up();
        Ok(())
    }

    unsafe fn prefetch(stream: &Stream, address: u64, bytes: usize, _: Location) -> Result<()> {
        stream.submit("prefetch", Operation::Prefetch, |_| Ok(Command::Touch { address, bytes }))?;
        stream.queue().engine.counters().prefetches.up();
        Ok(())
    }

    unsafe fn enqueue_future(stream: &Stream, future: HostFuture) -> Result<()> {
        stream.submit("enqueue_future", Operation::Future, |_| {
            Ok(Command::Future(Box::new(Pending::new(future))))
        })
    }

    fn create_event(device: &Device, options: EventOptions) -> Result<Event> {
        device.engine().enter("create_event", Operation::CreateEvent)?;
        Ok(Event::new(device.engine(), options))
    }

    fn destroy_event(device: &Device, event: Event) -> Result<()> {
        device.engine().origin().check(NAME, "destroy_event")?;
        if std::sync::Arc::ptr_eq(device.engine(), event.engine()) {
            return device.engine().check_lost("destroy_event");
        }
        let (has, wants) =
            (format!("host:{}", event.engine().ordinal()), format!("host:{}", device.ordinal()));
        Err(error("destroy_event", ErrorKind::WrongDevice { what: "event", has, wants }))
    }

    fn record(stream: &Stream, event: &Event) -> Result<()> {
        event.record(stream)
    }

    fn record_device(device: &Device, event: &Event) -> Result<()> {
        event.record_all(device.engine())
    }

    fn wait(stream: &Stream, event: &Event) -> Result<()> {
        event.hold_back(stream)
    }

    fn elapsed(start: &Event, end: &Event) -> Result<f32> {
        Event::elapsed(start, end)
    }

    fn compile(device: &Device, source: &KernelSource, _: &CompileOptions) -> Result<Module> {
        device.engine().enter("compile", Operation::Compile)?;
        Module::new(device, source)
    }

    fn kernel(module: &Module, name: &str) -> Result<Kernel> {
        module.kernel(name)
    }

    unsafe fn launch(
        stream: &Stream,
        kernel: &Kernel,
        dims: &LaunchConfig,
        arguments: &KernelArguments,
    ) -> Result<()> {
        stream.submit("launch", Operation::Launch, |engine| {
            kernel.command(engine, stream.device().capabilities(), dims, arguments)
        })?;
        stream.queue().engine.counters().launches.up();
        Ok(())
    }
}
