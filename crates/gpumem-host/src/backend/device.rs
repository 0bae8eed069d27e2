//! What the host does with an open device.

use crate::engine;
use crate::error::{self, error, fault, invalid};
use crate::inject::Operation;
use crate::sync::lock;
use crate::{Buffer, Device, Event, Host, HostBarrier, Module, NAME, Stream};
use crate::{buffer, stream};
use gpumem_core::{
    AddressRange, Advice, AllocationRequest, Capabilities, CompileOptions, DeviceInfo, DlpackDevice,
    DriverDevice, Error, ErrorKind, EventOptions, KernelSource, MemoryInfo, MemoryKind, RawStream,
    RegisterOptions, Result, StreamKind, StreamOptions,
};
use std::ptr::NonNull;

// SAFETY: buffers are allocations of the process that are freed when they are released.
unsafe impl DriverDevice<Host> for Device {
    fn info(&self) -> &DeviceInfo {
        &self.0.info
    }

    fn capabilities(&self) -> &Capabilities {
        &self.0.capabilities
    }

    fn barrier(&self) -> HostBarrier {
        self.0.barrier
    }

    fn memory_info(&self) -> Result<MemoryInfo> {
        self.engine().enter("memory_info", Operation::MemoryInfo)?;
        Ok(self.engine().budget().info())
    }

    fn synchronize(&self) -> Result<()> {
        let (name, engine) = ("synchronize", self.engine());
        engine.origin().check(NAME, name)?;
        engine.counters().synchronizations.up();
        let mut queues = engine.queues();
        queues.sort_by_key(|queue| queue.number);
        if queues.iter().any(|queue| engine::is_inside(queue.id)) {
            return Err(error(name, ErrorKind::BlockingInCallback));
        }
        let targets: Vec<(u64, u64)> =
            queues.iter().map(|queue| (lock(&queue.state).enqueued, queue.failed.told())).collect();
        for (queue, (target, _)) in queues.iter().zip(&targets) {
            queue.wait_until(*target);
        }
        // Wait first, report after.
        engine.strike(name, Operation::Synchronize)?;
        engine.check_lost(name)?;
        let mut words: Vec<String> = engine.take_left_faults();
        for (queue, (target, told)) in queues.iter().zip(&targets) {
            words.extend(queue.failed.tell(*told, *target).map(|error| error::what(&error).to_owned()));
        }
        if words.is_empty() { Ok(()) } else { Err(fault(name, &words.join("; "))) }
    }

    /// Waits for everything and forgets it.
    unsafe fn reset(&self) -> Result<()> {
        let engine = self.engine();
        engine.origin().check(NAME, "reset")?;
        engine.strike("reset", Operation::Reset)?;
        // From here on nothing can be enqueued on the streams that are waited for.
        engine.next_generation();
        for queue in engine.queues() {
            let enqueued = lock(&queue.state).enqueued;
            queue.wait_until(enqueued);
            queue.forget_faults();
        }
        drop(engine.take_left_faults());
        let before = lock(&self.0.legacy).take();
        drop(before);
        lock(&self.0.peers).clear();
        engine.budget().clear();
        engine.process().table.clear(engine.ordinal());
        engine.counters().forget_memory();
        engine.find();
        Ok(())
    }

    fn can_access_peer(&self, peer: &Self) -> Result<bool> {
        self.engine().origin().check(NAME, "can_access_peer")?;
        peer.engine().origin().check(NAME, "can_access_peer")?;
        self.engine().check_lost("can_access_peer")?;
        peer.engine().check_lost("can_access_peer")?;
        Ok(true)
    }

    fn set_peer_access(&self, peer: &Self, enabled: bool) -> Result<()> {
        self.can_access_peer(peer).map_err(|error| error.in_operation("set_peer_access"))?;
        let mut peers = lock(&self.0.peers);
        if enabled {
            peers.insert(peer.ordinal());
        } else {
            peers.remove(&peer.ordinal());
        }
        Ok(())
    }

    unsafe fn allocate(&self, request: &AllocationRequest) -> Result<Buffer> {
        buffer::allocate(self.engine(), request)
    }

    unsafe fn release(&self, buffer: Buffer) -> Result<(), (Buffer, Error)> {
        buffer::release(self.engine(), &buffer).map_err(|error| (buffer, error))
    }

    fn pointer_info(&self, address: u64) -> Result<Option<AddressRange>> {
        let engine = self.engine();
        engine.origin().check(NAME, "device_of")?;
        let table = &engine.process().table;
        Ok(usize::try_from(address).ok().and_then(|address| table.residence(self.ordinal(), address)))
    }

    fn dlpack_device(&self, _: MemoryKind) -> Option<DlpackDevice> {
        // All host devices live in the one memory of the host.
        Some(DlpackDevice::new(DlpackDevice::CPU, 0))
    }

    unsafe fn register(&self, host: NonNull<u8>, bytes: usize, options: RegisterOptions) -> Result<Buffer> {
        buffer::register(self.engine(), host, bytes, options)
    }

    unsafe fn advise(&self, address: u64, bytes: usize, _: Advice) -> Result<()> {
        let engine = self.engine();
        engine.origin().check(NAME, "advise")?;
        engine.check_lost("advise")?;
        if usize::try_from(address).is_ok_and(|start| engine.process().table.is_managed(start, bytes)) {
            return Ok(());
        }
        Err(invalid("advise", "the range is not inside one managed buffer"))
    }

    fn create_stream(&self, options: &StreamOptions) -> Result<Stream> {
        self.engine().enter("create_stream", Operation::CreateStream)?;
        match options.kind {
            StreamKind::New => Ok(Stream::owning(self, self.engine().create_queue())),
            StreamKind::Legacy => Ok(Stream::borrowing(self, self.legacy())),
            StreamKind::PerThread => Ok(Stream::borrowing(self, stream::per_thread(self.engine())?)),
        }
    }

    unsafe fn wrap_stream(&self, raw: RawStream) -> Result<Stream> {
        self.engine().origin().check(NAME, "wrap_stream")?;
        self.engine().check_lost("wrap_stream")?;
        Stream::wrap(self, raw)
    }

    fn create_event(&self, options: EventOptions) -> Result<Event> {
        self.engine().enter("create_event", Operation::CreateEvent)?;
        Ok(Event::new(self.engine(), options))
    }

    fn record_device(&self, event: &Event) -> Result<()> {
        event.record_all(self.engine())
    }

    fn compile(&self, source: &KernelSource, _: &CompileOptions) -> Result<Module> {
        self.engine().enter("compile", Operation::Compile)?;
        Module::new(self, source)
    }
}
