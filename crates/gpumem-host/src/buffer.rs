//! Buffers: descriptions of memory, and how they are allocated, registered and released.

use crate::engine::Engine;
use crate::error::{error, invalid};
use crate::inject::Operation;
use crate::memory::{Block, Owner};
use gpumem_core::{
    AllocationRequest, DeviceBuffer, ErrorKind, MemoryInfo, MemoryKind, RegisterOptions, Result,
};
use std::ptr::NonNull;
use std::sync::Arc;

/// A block of memory of a host device, or memory of the caller that was registered.
#[derive(Debug)]
pub struct Buffer {
    pub(crate) start: NonNull<u8>,
    pub(crate) bytes: usize,
    pub(crate) kind: MemoryKind,
    /// Ordinal of the device that made it.
    pub(crate) ordinal: usize,
    /// Resets of the device before this was made.
    pub(crate) generation: u64,
    /// The number of the block; 0 for registered memory.
    pub(crate) serial: u64,
}

// SAFETY: a buffer only describes memory and never reads or writes it.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

// SAFETY: the address and the length of an allocation, which do not change.
unsafe impl DeviceBuffer for Buffer {
    fn address(&self) -> u64 {
        self.start.as_ptr().addr() as u64
    }

    fn host_address(&self) -> Option<NonNull<u8>> {
        self.kind.is_host_accessible().then_some(self.start)
    }

    fn len(&self) -> usize {
        self.bytes
    }

    fn kind(&self) -> MemoryKind {
        self.kind
    }
}

/// Allocates zeroed memory.
pub(crate) fn allocate(engine: &Engine, request: &AllocationRequest) -> Result<Buffer> {
    engine.enter("allocate", Operation::Allocate)?;
    let &AllocationRequest { bytes, align, kind } = request;
    if bytes == 0 || !align.is_power_of_two() {
        return Err(invalid(
            "allocate",
            "a request has at least one byte and an alignment that is a power of two",
        ));
    }
    if matches!(kind, MemoryKind::Registered(_)) {
        return Err(invalid("allocate", "registered memory is the caller's own"));
    }
    let out_of_memory = |memory| error("allocate", ErrorKind::out_of_memory(bytes, kind.name(), memory));
    let device = kind == MemoryKind::Device;
    if device {
        engine.budget().take(bytes).map_err(out_of_memory)?;
    }
    let owner = Owner {
        ordinal: engine.ordinal(),
        serial: engine.process().serial(),
        poison: cfg!(debug_assertions) || !engine.has_workers(),
    };
    let Some(block) = Block::allocate(bytes, align, kind, owner) else {
        if device {
            engine.budget().give_back(bytes);
        }
        // For other kinds the amount of free memory is unknown.
        return Err(out_of_memory(if device { engine.budget().info() } else { MemoryInfo::default() }));
    };
    let (start, serial) = (block.start(), block.serial());
    engine.process().table.insert(Arc::new(block));
    let counters = engine.counters();
    counters.allocations.up();
    counters.live_allocations.up();
    counters.live_bytes(kind).add(bytes as u64);
    let (ordinal, generation) = (engine.ordinal(), engine.generation());
    Ok(Buffer { start, bytes, kind, ordinal, generation, serial })
}

/// Gives memory back, or undoes a registration.
pub(crate) fn release(engine: &Engine, buffer: &Buffer) -> Result<()> {
    engine.enter("release", Operation::Release)?;
    if buffer.ordinal != engine.ordinal() {
        let (has, wants) = (format!("host:{}", buffer.ordinal), format!("host:{}", engine.ordinal()));
        return Err(error("release", ErrorKind::WrongDevice { what: "buffer", has, wants }));
    }
    if buffer.generation != engine.generation() {
        return Err(error("release", ErrorKind::Stale { what: "buffer" }));
    }
    let address = buffer.start.as_ptr().addr();
    let counters = engine.counters();
    let gone = |_| invalid("release", "the buffer was released already");
    if matches!(buffer.kind, MemoryKind::Registered(_)) {
        engine.process().table.deregister(engine.ordinal(), address, buffer.bytes).map_err(gone)?;
        counters.deregistrations.up();
    } else {
        // Where uses of released memory are being looked for, its address is not given out again for a while.
        let keep = !engine.has_workers();
        let block = engine.process().table.release(address, buffer.serial, keep).map_err(gone)?;
        if buffer.kind == MemoryKind::Device {
            engine.budget().give_back(buffer.bytes);
        }
        if keep {
            engine.budget().hold_back(block, &engine.process().table);
        }
        counters.releases.up();
        counters.live_allocations.down();
    }
    counters.live_bytes(buffer.kind).sub(buffer.len() as u64);
    Ok(())
}

/// Notes that the caller's memory is registered. The host reaches it anyway.
pub(crate) fn register(
    engine: &Engine,
    host: NonNull<u8>,
    bytes: usize,
    options: RegisterOptions,
) -> Result<Buffer> {
    engine.enter("register", Operation::Register)?;
    if bytes == 0 {
        return Err(invalid("register", "a registration has at least one byte"));
    }
    let (ordinal, generation) = (engine.ordinal(), engine.generation());
    let start = host.as_ptr().expose_provenance();
    engine
        .process()
        .table
        .register(ordinal, start, bytes, options.portable)
        .map_err(|why| error("register", ErrorKind::Registration { why }))?;
    let kind = MemoryKind::Registered(options);
    engine.counters().registrations.up();
    engine.counters().live_bytes(kind).add(bytes as u64);
    Ok(Buffer { start: host, bytes, kind, ordinal, generation, serial: 0 })
}
