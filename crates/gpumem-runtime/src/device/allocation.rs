//! A block of memory with the log of its uses.

mod drop;
pub(crate) mod exported;
mod foreign;
mod frozen;
mod placeholder;

pub(crate) use drop::free;
pub(crate) use foreign::{ForeignMemory, Release};
pub use frozen::FrozenMemory;

use super::{Device, host_ready::HostReady};
use gpumem_core::{
    Backend, DlpackDevice, DriverDevice, Error, MemoryKind, NotRecorded, POISONED, Result, Space,
};
use gpumem_memory::{
    memory::{
        DeferredFree, DeviceCore, MemoryBlock, MemoryRequest, Serving, current_name, is_named, oom, unnamed,
    },
    track::{Timeline, Tracked},
};
use std::{
    any::Any,
    fmt,
    mem::ManuallyDrop,
    ops::Deref,
    panic::{RefUnwindSafe, UnwindSafe},
    ptr::NonNull,
    sync::Arc,
    sync::atomic::Ordering,
};
use triomphe::UniqueArc;

/// A block of memory. Dropping it returns it to a pool, or leaves it to the deferred queue: no wait, no driver call.
/// The fields that every use reads come first: in three cache lines.
#[repr(C)]
pub struct Allocation<B: Backend> {
    tracked: Tracked<B>,
    /// Taken out when the allocation ends, so that its drop does not look for it again.
    extra: ManuallyDrop<Option<Box<ColdFields>>>,
    /// The number of the resource that allocated the block; [`TAKEN`] after it was returned.
    resource: u8,
    /// Address for the host, or 0.
    host: usize,
    /// `None` if there are no bytes, or another library owns them.
    block: ManuallyDrop<Option<MemoryBlock<B>>>,
    owner_ref: Owner<B>,
}

/// A shared allocation. An array of 4 KiB that is made and dropped takes 68 ns and 787 instructions, with a count and a
/// spare place for each thread of our own 64 ns and 665.
pub type AllocationRef<B> = triomphe::Arc<Allocation<B>>;

// As a device.
impl<B: Backend> UnwindSafe for Allocation<B> {}
impl<B: Backend> RefUnwindSafe for Allocation<B> {}

impl<B: Backend> Deref for Allocation<B> {
    type Target = Tracked<B>;

    #[inline]
    fn deref(&self) -> &Tracked<B> {
        &self.tracked
    }
}

/// The number of no resource: the block has been taken out of its allocation.
const TAKEN: u8 = u8::MAX;

/// The owner that an allocation keeps alive.
enum Owner<B: Backend> {
    Device(Device<B>),
    /// Memory that belongs to the device itself does not keep it open.
    Core(Arc<DeviceCore<B>>),
}

/// Fields that few allocations need.
#[derive(Default)]
struct ColdFields {
    /// Addresses at which a copy must be cut in two; none but for some page-locked memory of the caller.
    boundaries: Vec<u64>,
    /// The owner of foreign memory.
    owner: Option<Box<dyn Any + Send + Sync>>,
    /// Foreign memory that must not be written.
    read_only: bool,
    /// How the owner is dropped.
    release: Release,
    /// A stream of the library, and the submission index after which foreign memory is ready.
    imported_after: Option<(u64, u64)>,
    /// Memory of another process: this process closes the driver's block, and shares the bytes.
    opened: bool,
    name: Option<Arc<str>>,
}

impl<B: Backend> Allocation<B> {
    /// Memory of the device. If it is out of memory, dropped memory is freed first and the request repeated.
    ///
    /// Work may still use the memory: it is in the log, so that later work runs after it. The host may not use such
    /// memory; it gets its own from `for_host`.
    pub(crate) fn new(
        device: &Device<B>,
        operation: &'static str,
        bytes: usize,
        align: usize,
    ) -> Result<AllocationRef<B>> {
        Self::make(device, true, operation, bytes, align, MemoryKind::Device, false)
    }

    /// Page-locked memory that a device writes first, in the order of the device's stream. As for [`new`](Self::new), work may still
    /// use it.
    pub(crate) fn pinned_in_flight(
        device: &Device<B>,
        operation: &'static str,
        bytes: usize,
        align: usize,
    ) -> Result<AllocationRef<B>> {
        Self::make_any(device, true, operation, bytes, align, MemoryKind::Pinned, false)
    }

    /// Memory of the host, of any kind, which the host may write at once.
    pub(crate) fn for_host(
        device: &Device<B>,
        operation: &'static str,
        bytes: usize,
        align: usize,
        kind: MemoryKind,
    ) -> Result<HostReady<B>> {
        HostReady::wait(Self::make_any(device, true, operation, bytes, align, kind, true)?, operation)
    }

    /// As [`for_host`](Self::for_host), page-locked, for the device itself, which it does not keep open.
    pub(crate) fn internal(
        device: &Device<B>,
        operation: &'static str,
        bytes: usize,
    ) -> Result<HostReady<B>> {
        let align = device.raw().capabilities().allocation_alignment;
        let make = || Self::make_any(device, false, operation, bytes, align, MemoryKind::Pinned, true);
        HostReady::wait(unnamed(make)?, operation)
    }

    /// No memory: for arrays without elements.
    pub(crate) fn empty(
        device: &Device<B>,
        operation: &'static str,
        align: usize,
        kind: MemoryKind,
    ) -> Result<AllocationRef<B>> {
        device.core().check(operation)?;
        let align = device.raw().capabilities().allocation_alignment.max(align) as u64;
        Ok(AllocationRef::new(Self::over(Owner::Device(device.share()), (align, 0, 0), kind)))
    }

    /// As [`make`](Self::make), not in line.
    #[inline(never)]
    #[allow(clippy::too_many_arguments)] // those of `make`
    fn make_any(
        device: &Device<B>,
        keeps_open: bool,
        operation: &'static str,
        bytes: usize,
        align: usize,
        kind: MemoryKind,
        host_first: bool,
    ) -> Result<AllocationRef<B>> {
        Self::make(device, keeps_open, operation, bytes, align, kind, host_first)
    }

    /// Inlined, so that the compiler removes code for other kinds than device memory.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)] // as one value they would be put into memory
    fn make(
        device: &Device<B>,
        keeps_open: bool,
        operation: &'static str,
        bytes: usize,
        align: usize,
        kind: MemoryKind,
        host_first: bool,
    ) -> Result<AllocationRef<B>> {
        let core = device.core();
        core.check(operation)?;
        let owner_ref = || match keeps_open {
            true => Owner::Device(device.share()),
            false => Owner::Core(core.clone()),
        };
        if let Some(recording) = device.recording()
            && keeps_open
        {
            return Self::placeholder(device, recording, operation, (bytes, align), kind);
        }
        if bytes == 0 {
            return Ok(AllocationRef::new(Self::over(owner_ref(), (align as u64, 0, 0), kind)));
        }
        core.deferred_frees.sweep(core);
        // No order of streams helps the host, which writes without being enqueued anywhere.
        let stream = if host_first { None } else { device.stream_hint() };
        let mut request = MemoryRequest::new(core, stream, (bytes, align, kind), operation, host_first);
        if is_seen_by_host(kind) && !host_first {
            request = request.in_flight();
        }
        let (number, resource) = core.memory.serving(core, operation, kind)?;
        let obtained = Self::obtain(device, (number, &resource), &request);
        let block = match &obtained {
            Ok(block) => block,
            // Only the error goes on: there is no block.
            Err(_) => return obtained.and_then(|_| Self::empty(device, operation, align, kind)),
        };
        if keeps_open && is_seen_by_host(kind) {
            core.host_memory.fetch_add(1, Ordering::AcqRel);
        }
        let extra = Self::named(core, bytes, block.bytes());
        let mut slot = UniqueArc::<Self>::new_uninit();
        let new: *mut Self = (*slot).as_mut_ptr();
        // SAFETY: all fields are written. The block's uses are moved to the log before other code sees it. Both kinds of
        // owner, device and core, keep the core and its context alive.
        unsafe {
            // Each field in its place: as one value they would be made elsewhere and copied.
            (&raw mut (*new).owner_ref).write(owner_ref());
            (&raw mut (*new).extra).write(ManuallyDrop::new(extra));
            (&raw mut (*new).resource).write(number);
            (&raw mut (*new).host).write(block.host().map_or(0, |host| host.as_ptr() as usize));
            let (generation, span) = (block.origin().generation, (block.address(), bytes));
            (&raw mut (*new).tracked).write(Tracked::new(core.context(), generation, span, kind, true));
            (&raw mut (*new).block).write(ManuallyDrop::new(obtained.ok()));
            let name = (*new).extra.as_ref().and_then(|extra| extra.name.as_ref());
            core.recorder.allocated((*new).id(), || request.info(), name);
            (*new).inherit();
            Ok(UniqueArc::assume_init(slot).shareable())
        }
    }

    /// New uses of the memory run after the earlier ones.
    #[inline(always)]
    fn inherit(&mut self) {
        if let Some(block) = &*self.block
            && !block.uses().is_empty()
        {
            self.inherit_all();
        } else if POISONED.is_any() {
            // No earlier use of the memory is under way. SAFETY: the memory is newly allocated, and its type says
            // whether it was written.
            unsafe { POISONED.clear(&self.used(&(0..self.len()), false).range()) };
        }
    }

    #[inline(never)]
    fn inherit_all(&mut self) {
        if let Some(block) = self.block.as_mut() {
            let len = self.tracked.len();
            let log = self.tracked.log_mut();
            // SAFETY: they are in the log from here on, which every use checks.
            let uses = unsafe { block.hand_over_uses() };
            uses.for_each(|timeline, submission| log.inherit(0..len, timeline, submission));
        }
    }

    /// Device memory in a separate block of the driver, which another process may open. Whole pages of the driver,
    /// because small blocks share one with their neighbours.
    pub(crate) fn alone(
        device: &Device<B>,
        operation: &'static str,
        bytes: usize,
        align: usize,
    ) -> Result<AllocationRef<B>> {
        const PAGE: usize = 2 << 20;
        let core = device.core();
        core.check(operation)?;
        if device.recording().is_some() {
            return Err(core.not_recordable(operation, NotRecorded::SharedMemory));
        }
        let owner_ref = Owner::Device(device.share());
        if bytes == 0 {
            return Ok(AllocationRef::new(Self::over(owner_ref, (align as u64, 0, 0), MemoryKind::Device)));
        }
        core.deferred_frees.sweep(core);
        let (kind, stream) = (MemoryKind::Device, device.stream_hint());
        let whole = bytes.checked_next_multiple_of(PAGE).unwrap_or(bytes);
        let request = MemoryRequest::new(core, stream, (whole, align, kind), operation, false);
        let (number, driver) = core.memory.external_owner(core);
        let block = Self::obtain(device, (number, &Serving::Own(driver)), &request)?;
        let mut memory = Self::owned(owner_ref, (block.address(), 0, bytes), kind);
        *memory.extra = Self::named(core, bytes, block.bytes());
        (*memory.block, memory.resource) = (Some(block), number);
        let name = memory.extra.as_ref().and_then(|extra| extra.name.as_ref());
        core.recorder.allocated(memory.id(), || request.for_bytes(bytes, align).info(), name);
        Ok(AllocationRef::new(memory))
    }

    /// Allocates from a resource. If the device is out of memory, dropped memory is freed first and the request
    /// repeated.
    #[inline(always)]
    fn obtain(
        device: &Device<B>,
        (number, resource): (u8, &Serving<'_, B>),
        request: &MemoryRequest<'_, B>,
    ) -> Result<MemoryBlock<B>> {
        // Not moved between here and the allocation: every array that is made would pay for the copy.
        let mut obtained = resource.allocate(request);
        if obtained.is_err() || resource.is_foreign() {
            obtained = Self::look_again(device, (number, resource), request, obtained);
        }
        obtained
    }

    /// Asks again after a failure, and refuses a block of the user's resource that does not fit.
    #[cold]
    #[inline(never)]
    fn look_again(
        device: &Device<B>,
        (number, resource): (u8, &Serving<'_, B>),
        request: &MemoryRequest<'_, B>,
        obtained: Result<MemoryBlock<B>>,
    ) -> Result<MemoryBlock<B>> {
        let core = device.core();
        let block = match obtained {
            Ok(block) => block,
            Err(error) => oom::retry(core, resource, request, error)
                .inspect_err(|_| core.recorder.failed(|| request.info(), current_name().as_ref()))
                .map_err(|error| core.place(error))?,
        };
        if resource.is_foreign() && !oom::is_fit(&block, request) {
            return Err(Self::unfit(core, request, block, number));
        }
        Ok(block)
    }

    /// Counts the requested bytes and the allocated bytes for the name in force, if there is one.
    #[inline(always)]
    fn named(core: &DeviceCore<B>, bytes: usize, allocated: usize) -> Option<Box<ColdFields>> {
        if is_named() { Self::add_named(core, bytes, allocated) } else { None }
    }

    #[inline(never)]
    fn add_named(core: &DeviceCore<B>, bytes: usize, allocated: usize) -> Option<Box<ColdFields>> {
        current_name().map(|name| {
            core.names.add(&name, bytes, allocated);
            Box::new(ColdFields { name: Some(name), ..ColdFields::default() })
        })
    }

    #[cold]
    fn unfit(
        core: &DeviceCore<B>,
        request: &MemoryRequest<'_, B>,
        block: MemoryBlock<B>,
        resource: u8,
    ) -> Error {
        let error = oom::misfit(&block, request);
        core.deferred_frees.add(DeferredFree::Memory { block, resource }, core.generation());
        error
    }

    fn over(owner_ref: Owner<B>, place: (u64, usize, usize), kind: MemoryKind) -> Self {
        Self::with(owner_ref, place, kind, false)
    }

    /// As [`over`](Self::over), for memory that the driver allocates for us.
    fn owned(owner_ref: Owner<B>, place: (u64, usize, usize), kind: MemoryKind) -> Self {
        Self::with(owner_ref, place, kind, true)
    }

    fn with(
        owner_ref: Owner<B>,
        (address, host, len): (u64, usize, usize),
        kind: MemoryKind,
        is_owned: bool,
    ) -> Self {
        let context = owner_ref.core().context();
        // SAFETY: `owner_ref` lives as long, and keeps the context.
        let tracked = unsafe { Tracked::new(context, context.generation(), (address, len), kind, is_owned) };
        Self {
            tracked,
            owner_ref,
            block: ManuallyDrop::new(None),
            resource: 0,
            host,
            extra: ManuallyDrop::new(None),
        }
    }

    /// Returns the state that all objects of the device share.
    #[inline]
    pub fn core(&self) -> &Arc<DeviceCore<B>> {
        self.owner_ref.core()
    }

    /// The device; `None` only for memory that belongs to the device itself.
    pub(crate) fn device(&self) -> Option<&Device<B>> {
        match &self.owner_ref {
            Owner::Device(device) => Some(device),
            Owner::Core(_) => None,
        }
    }

    /// Tells whether the memory is a whole block of the driver, and no part of a larger one.
    pub(crate) fn is_alone(&self) -> bool {
        self.block.as_ref().is_some_and(MemoryBlock::is_of_driver)
    }

    #[inline]
    pub(crate) fn boundaries(&self) -> &[u64] {
        self.extra.as_ref().map_or(&[], |extra| &extra.boundaries)
    }

    /// As [`boundaries`](Self::boundaries), as the device's addresses.
    pub(crate) fn device_boundaries(&self) -> impl Iterator<Item = u64> + '_ {
        self.boundaries().iter().map(|cut| cut.wrapping_sub(self.host as u64).wrapping_add(self.address()))
    }

    /// Whether the host can read the memory at its address: host memory of any kind, and all memory of a host device.
    pub(crate) fn is_seen_by_host(&self) -> bool {
        let on_host = |device: DlpackDevice| device.device_type == DlpackDevice::CPU;
        self.host != 0 || self.context().raw.dlpack_device(self.kind()).is_some_and(on_host)
    }

    /// Whether the memory is foreign and read-only.
    pub(crate) fn is_read_only(&self) -> bool {
        self.extra.as_ref().is_some_and(|extra| extra.read_only)
    }

    /// Whether it is memory of the caller that is page-locked for a scope, and gone after that.
    pub fn is_of_scope(&self) -> bool {
        let is_kept = self.extra.as_ref().is_some_and(|extra| extra.owner.is_some());
        matches!(self.kind(), MemoryKind::Registered(_)) && !is_kept && self.len() > 0
    }

    /// The name under which it was allocated.
    pub(crate) fn name(&self) -> Option<&Arc<str>> {
        self.extra.as_ref().and_then(|extra| extra.name.as_ref())
    }

    /// Whether nothing else has the memory's address, or can come to have it. All that use memory hold a reference, and enqueued work is
    /// in the log. Memory that was lent or imported may have users that the log does not show.
    pub(crate) fn is_only_handle(memory: &AllocationRef<B>) -> bool {
        memory.is_unique() && memory.is_owned() && !memory.may_get_unreferenced_handles()
    }

    /// Whether a handle of the memory that an import has given may only be read: its owner says so, or others have it too.
    pub(crate) fn is_import_read_only(memory: &AllocationRef<B>) -> bool {
        memory.is_read_only() || (memory.is_shared() && !memory.is_unique())
    }

    /// The host's address of the first byte, or `None` for memory of the device.
    pub(crate) fn host(&self) -> Option<NonNull<u8>> {
        NonNull::new(self.host as *mut u8)
    }

    /// Address and length of the driver's block that holds this memory: another process can be given nothing smaller.
    pub(crate) fn driver_block(&self) -> (u64, usize) {
        let resource = self.core().memory.get(self.resource);
        match (&*self.block, resource) {
            (Some(block), Some(resource)) => resource.driver_block(block),
            _ => (self.address(), self.len()),
        }
    }

    /// Address and space for a copy: page-locked memory goes by its host address.
    #[inline]
    pub(crate) fn endpoint(&self) -> (u64, Space) {
        match self.kind() {
            MemoryKind::Pinned | MemoryKind::Mapped(_) | MemoryKind::Registered(_) => {
                (self.host as u64, Space::Host)
            }
            _ => (self.address(), Space::Device(self.context().ordinal)),
        }
    }

    /// Notes that the pending work of a stream of the library writes all of the memory, which is new. The event is
    /// recorded when it is needed: uses on this stream never need it.
    pub(crate) fn note_given(
        memory: &mut AllocationRef<B>,
        operation: &'static str,
        timeline: &Arc<Timeline<B>>,
    ) -> Result<()> {
        timeline.check(operation)?;
        let submission = timeline.reserve_index().map_err(|error| error.in_operation(operation))?;
        memory.record_import(operation, timeline.clone(), submission);
        // Where the memory is shared, it is an access like others.
        if let Some(memory) = AllocationRef::get_mut(memory) {
            memory.extra.get_or_insert_default().imported_after = Some((timeline.id(), submission));
        }
        Ok(())
    }

    /// Returns whether no use is remembered, done or not. For the only handle, so that no lock is needed.
    #[inline]
    pub(crate) fn is_unused(&mut self) -> bool {
        self.tracked.log_mut().all().next().is_none()
    }
}

/// Memory that users can access through a host address. Registered memory belongs to the user and stays.
#[inline]
fn is_seen_by_host(kind: MemoryKind) -> bool {
    matches!(kind, MemoryKind::Pinned | MemoryKind::Mapped(_) | MemoryKind::Managed(_))
}

impl<B: Backend> Owner<B> {
    #[inline]
    fn core(&self) -> &Arc<DeviceCore<B>> {
        match self {
            Owner::Device(device) => device.core(),
            Owner::Core(core) => core,
        }
    }
}

impl<B: Backend> fmt::Debug for Allocation<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Allocation")
            .field("id", &self.id())
            .field("kind", &self.kind())
            .field("bytes", &self.len())
            .finish_non_exhaustive()
    }
}
