//! A block of memory with the log of its uses.

use super::lent::Lent;
use crate::{
    Device,
    device::DeviceCore,
    order::{Settled, Timeline, UseLog},
    sync::{Mutex, MutexGuard},
};
use gpumem_core::{
    AllocationRequest, Backend, DeviceBuffer, DlpackDevice, Error, ErrorKind, HostAccess, MemoryKind, Result,
    Space,
};
use smallvec::SmallVec;
use std::{any::Any, fmt, mem, ops::Range, ptr::NonNull, sync::Arc, sync::atomic::Ordering};

/// A use that must be over before memory goes back to the driver.
pub(crate) type PendingUse<B> = (Arc<Timeline<B>>, u64);

/// A block of memory. Dropping it leaves it to [`Reclaim`](super::Reclaim): no wait, no driver call.
pub(crate) struct Allocation<B: Backend> {
    id: u64,
    core: Arc<DeviceCore<B>>,
    /// Keeps the device open; `None` for memory that belongs to the device itself.
    device: Option<Device<B>>,
    block: Block<B>,
    address: u64,
    /// Address for the host, or 0.
    host: usize,
    len: usize,
    kind: MemoryKind,
    /// Addresses at which a copy must be cut in two; none but for some page-locked memory of the caller.
    cuts: Vec<u64>,
    generation: u64,
    log: Mutex<UseLog<Arc<Timeline<B>>>>,
    /// What keeps foreign memory alive.
    owner: Option<Box<dyn Any + Send + Sync>>,
    /// Foreign memory that must not be written.
    read_only: bool,
    /// Who else may be using the memory now.
    pub(super) lent: Lent<B>,
}

/// Memory of somebody else, as it comes into an allocation.
pub(crate) struct ForeignMemory {
    /// The device's address of the lowest byte.
    pub(crate) address: u64,
    /// The host's address of the lowest byte, or 0.
    pub(crate) host: usize,
    pub(crate) len: usize,
    pub(crate) kind: MemoryKind,
    pub(crate) read_only: bool,
    pub(crate) owner: Box<dyn Any + Send + Sync>,
}

enum Block<B: Backend> {
    /// No bytes, or not ours.
    None,
    Driver(B::Buffer),
}

impl<B: Backend> Allocation<B> {
    /// Allocates. When the device is out of memory, what has been dropped is given back first and the request repeated.
    pub(crate) fn new(
        device: &Device<B>,
        operation: &'static str,
        bytes: usize,
        align: usize,
        kind: MemoryKind,
    ) -> Result<Arc<Self>> {
        Self::make(device, Some(device.clone()), operation, bytes, align, kind)
    }

    /// Page-locked memory that belongs to the device itself and does not keep it open.
    pub(crate) fn internal(device: &Device<B>, operation: &'static str, bytes: usize) -> Result<Arc<Self>> {
        let align = B::capabilities(device.raw()).allocation_alignment;
        Self::make(device, None, operation, bytes, align, MemoryKind::Pinned)
    }

    fn make(
        device: &Device<B>,
        keep: Option<Device<B>>,
        operation: &'static str,
        bytes: usize,
        align: usize,
        kind: MemoryKind,
    ) -> Result<Arc<Self>> {
        let core = device.core();
        core.check(operation)?;
        if bytes == 0 {
            let block = Block::None;
            return Ok(Arc::new(Self::over(core, keep, block, (align as u64, 0, 0), kind, None)));
        }
        core.reclaim.sweep(core);
        let request = AllocationRequest { bytes, align, kind };
        // SAFETY: at least one byte, an alignment that is a power of two; arrays are written before they are read.
        let mut outcome = unsafe { B::allocate(&core.raw, &request) };
        if outcome.as_ref().is_err_and(Error::is_out_of_memory)
            && crate::completion::may_block::<B>(operation).is_ok()
        {
            device.0.staging.trim();
            core.reclaim.flush(core);
            // SAFETY: as above.
            outcome = unsafe { B::allocate(&core.raw, &request) };
        }
        let buffer = core.note_loss(outcome).map_err(|error| error.in_operation(operation))?;
        core.counters.count_allocation();
        Ok(Self::of_buffer(core, keep, buffer))
    }

    /// Takes a buffer that the backend has made.
    pub(crate) fn of_buffer(
        core: &Arc<DeviceCore<B>>,
        keep: Option<Device<B>>,
        buffer: B::Buffer,
    ) -> Arc<Self> {
        let host = buffer.host_address().map_or(0, |host| host.as_ptr() as usize);
        let (place, kind) = ((buffer.address(), host, buffer.len()), buffer.kind());
        if keep.is_some() && is_seen_by_host(kind) {
            core.host_memory.fetch_add(1, Ordering::AcqRel);
        }
        Arc::new(Self::over(core, keep, Block::Driver(buffer), place, kind, None))
    }

    /// Memory of somebody else, kept alive by `owner`.
    pub(crate) fn foreign(
        device: &Device<B>,
        address: u64,
        len: usize,
        owner: Box<dyn Any + Send + Sync>,
    ) -> Arc<Self> {
        let (kind, read_only) = (MemoryKind::Device, false);
        Self::imported(device, ForeignMemory { address, host: 0, len, kind, read_only, owner })
    }

    /// Memory of somebody else, of any kind.
    pub(crate) fn imported(device: &Device<B>, memory: ForeignMemory) -> Arc<Self> {
        let place = (memory.address, memory.host, memory.len);
        let keep = Some(device.clone());
        let mut allocation =
            Self::over(device.core(), keep, Block::None, place, memory.kind, Some(memory.owner));
        allocation.read_only = memory.read_only;
        Arc::new(allocation)
    }

    /// Memory of the caller that is page-locked while a scope lasts.
    pub(crate) fn borrowed(
        device: &Device<B>,
        address: u64,
        host: NonNull<u8>,
        len: usize,
        kind: MemoryKind,
        cuts: Vec<u64>,
    ) -> Arc<Self> {
        let place = (address, host.as_ptr() as usize, len);
        let mut memory = Self::over(device.core(), Some(device.clone()), Block::None, place, kind, None);
        memory.cuts = cuts;
        Arc::new(memory)
    }

    fn over(
        core: &Arc<DeviceCore<B>>,
        device: Option<Device<B>>,
        block: Block<B>,
        (address, host, len): (u64, usize, usize),
        kind: MemoryKind,
        owner: Option<Box<dyn Any + Send + Sync>>,
    ) -> Self {
        Self {
            id: crate::unique_id(),
            core: core.clone(),
            device,
            block,
            address,
            host,
            len,
            kind,
            cuts: Vec::new(),
            generation: core.generation(),
            log: Mutex::new(UseLog::new()),
            owner,
            read_only: false,
            lent: Lent::default(),
        }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn core(&self) -> &Arc<DeviceCore<B>> {
        &self.core
    }

    /// The device; `None` only for memory that belongs to the device itself.
    pub(crate) fn device(&self) -> Option<&Device<B>> {
        self.device.as_ref()
    }

    /// Whether the driver gave the memory to us, so that it shares no bytes with any other allocation.
    pub(crate) fn is_owned(&self) -> bool {
        matches!(self.block, Block::Driver(_))
    }

    pub(crate) fn kind(&self) -> MemoryKind {
        self.kind
    }

    pub(crate) fn cuts(&self) -> &[u64] {
        &self.cuts
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The uses, with those that borrowers of the memory may have added.
    pub(crate) fn log(&self) -> MutexGuard<'_, UseLog<Arc<Timeline<B>>>> {
        let mut log = self.log.lock();
        self.lent.note(&mut log);
        log
    }

    /// Whether the host can read the memory at its address: host memory of any kind, and all memory of a host device.
    pub(crate) fn is_seen_by_host(&self) -> bool {
        let on_host = |device: DlpackDevice| device.device_type == DlpackDevice::CPU;
        self.host != 0 || B::dlpack_device(&self.core.raw, self.kind).is_some_and(on_host)
    }

    /// Whether somebody else owns the memory and forbids writing.
    pub(crate) fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// The device's address of the first byte.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// The host's address of the first byte, or `None` for memory of the device.
    pub(crate) fn host(&self) -> Option<NonNull<u8>> {
        NonNull::new(self.host as *mut u8)
    }

    /// Address and space for a copy: page-locked memory goes by its host address.
    pub(crate) fn endpoint(&self) -> (u64, Space) {
        match self.kind {
            MemoryKind::Pinned | MemoryKind::Mapped(_) | MemoryKind::Registered(_) => {
                (self.host as u64, Space::Host)
            }
            _ => (self.address, Space::Device(B::info(&self.core.raw).ordinal)),
        }
    }

    /// Whether the memory may still be used.
    pub(crate) fn check(&self, operation: &'static str) -> Result<()> {
        self.core.check(operation)?;
        match self.generation == self.core.generation() {
            true => Ok(()),
            false => Err(Error::new(B::NAME, operation, ErrorKind::Stale { what: "array" })),
        }
    }

    /// Waits until the host may read or write these bytes.
    pub(crate) fn wait_for_host(
        &self,
        operation: &'static str,
        extent: &Range<usize>,
        access: HostAccess,
    ) -> Result<()> {
        self.check(operation)?;
        let uses: SmallVec<[PendingUse<B>; 4]> = {
            let log = self.log();
            let write = access == HostAccess::Write;
            log.conflicts(extent, write).map(|entry| (entry.by.clone(), entry.ticket)).collect()
        };
        for (timeline, ticket) in uses {
            timeline.settle(ticket).result.map_err(|error| error.in_operation(operation))?;
        }
        let concurrent = B::capabilities(&self.core.raw).concurrent_managed_access;
        if matches!(self.kind, MemoryKind::Managed(_)) && !concurrent {
            crate::completion::may_block::<B>(operation)?;
            self.core.note_loss(B::synchronize(&self.core.raw))?;
        }
        Ok(())
    }

    /// What is known to write these bytes on other streams than `timeline`.
    pub(crate) fn writers(
        &self,
        extent: &Range<usize>,
        timeline: &Timeline<B>,
    ) -> SmallVec<[PendingUse<B>; 4]> {
        let log = self.log();
        let others = log.conflicts(extent, false).filter(|entry| entry.by.id() != timeline.id());
        others.map(|entry| (entry.by.clone(), entry.ticket)).collect()
    }

    /// Waits for every use, whatever becomes of it. Stops where it cannot be proven that a use is over.
    pub(crate) fn wait_until_unused(&self) -> Settled {
        let uses: SmallVec<[PendingUse<B>; 4]> =
            self.log().all().map(|entry| (entry.by.clone(), entry.ticket)).collect();
        let mut all = Settled::done();
        for (timeline, ticket) in uses {
            let settled = timeline.settle(ticket);
            if !settled.done {
                return settled;
            }
            all.result = all.result.and(settled.result);
        }
        all
    }

    /// Whether every use is done, asking the driver. Never blocks; an error counts as "no".
    pub(crate) fn is_idle(&self) -> bool {
        let uses: SmallVec<[PendingUse<B>; 4]> =
            self.log().all().map(|entry| (entry.by.clone(), entry.ticket)).collect();
        uses.iter().all(|(timeline, ticket)| timeline.poll(*ticket).unwrap_or(false))
    }
}

/// Memory that users can look at through a host address. Registered memory is theirs and stays.
fn is_seen_by_host(kind: MemoryKind) -> bool {
    matches!(kind, MemoryKind::Pinned | MemoryKind::Mapped(_) | MemoryKind::Managed(_))
}

impl<B: Backend> Drop for Allocation<B> {
    fn drop(&mut self) {
        let block = mem::replace(&mut self.block, Block::None);
        if !self.core.origin.is_usable() {
            // In a forked child, or at the end of the process: nothing here is ours any more.
            mem::forget((block, self.owner.take()));
            return;
        }
        if matches!(block, Block::Driver(_)) && self.device.is_some() && is_seen_by_host(self.kind) {
            self.core.host_memory.fetch_sub(1, Ordering::AcqRel);
        }
        let buffer = match block {
            Block::Driver(buffer) if self.generation == self.core.generation() => Some(buffer),
            _ => None,
        };
        let owner = self.owner.take();
        if buffer.is_none() && owner.is_none() {
            return;
        }
        let uses: SmallVec<[PendingUse<B>; 4]> =
            self.log().all().map(|entry| (entry.by.clone(), entry.ticket)).collect();
        if buffer.is_none() && uses.iter().all(|(timeline, ticket)| timeline.has_passed(*ticket)) {
            // Nothing of ours is in the way: whoever owns the memory hears at once that it is free.
            return;
        }
        self.core.reclaim.add_memory(buffer, owner, uses, self.generation, self.len);
    }
}

impl<B: Backend> fmt::Debug for Allocation<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Allocation")
            .field("id", &self.id)
            .field("kind", &self.kind)
            .field("bytes", &self.len)
            .finish_non_exhaustive()
    }
}
