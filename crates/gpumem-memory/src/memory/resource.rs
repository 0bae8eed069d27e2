//! Where memory comes from: the trait that pools, limits and users' own managers implement.

use super::{chain, pending_accesses::PendingAccesses};
use crate::trace::AllocationInfo;
use crate::{
    memory::DeviceCore,
    track::{Timeline, is_same_device},
};
use gpumem_core::{Backend, Error, ErrorKind, MemoryKind, Result};
use serde::Serialize;
use std::{fmt, mem, ptr::NonNull, sync::Arc, time::Duration};

/// A request to a [`MemoryResource`].
pub struct MemoryRequest<'a, B: Backend> {
    /// Length in bytes, at least 1.
    pub bytes: usize,
    /// Alignment in bytes, a power of two.
    pub align: usize,
    /// Kind of memory.
    pub kind: MemoryKind,
    /// The operation that needs it, in the user's words.
    pub operation: &'static str,
    /// Whether the host is going to write the memory first. The block must then have no pending uses, also of
    /// [`stream`](Self::stream); if a resource returns one with some, the host waits for them at once.
    pub host_first: bool,
    /// Whether a pool is to take memory that other streams may still use before it takes more from upstream.
    pub(crate) takes_in_flight: bool,
    pub(crate) stream: Option<&'a Arc<Timeline<B>>>,
    pub(crate) core: &'a Arc<DeviceCore<B>>,
}

impl<'a, B: Backend> MemoryRequest<'a, B> {
    /// A request of the runtime's. A resource, which is the user's, cannot reach the device or the stream by it.
    #[doc(hidden)]
    #[inline(always)]
    pub fn new(
        core: &'a Arc<DeviceCore<B>>,
        stream: Option<&'a Arc<Timeline<B>>>,
        (bytes, align, kind): (usize, usize, MemoryKind),
        operation: &'static str,
        host_first: bool,
    ) -> Self {
        Self { bytes, align, kind, operation, host_first, takes_in_flight: false, stream, core }
    }

    /// The same request, for memory that is there already: the new user waits for the earlier ones, on the device.
    #[doc(hidden)]
    #[must_use]
    pub fn in_flight(&self) -> MemoryRequest<'a, B> {
        MemoryRequest { takes_in_flight: true, ..*self }
    }

    /// The same request for another number of bytes, for a resource that asks another one for more.
    #[must_use]
    pub fn for_bytes(&self, bytes: usize, align: usize) -> MemoryRequest<'a, B> {
        MemoryRequest { bytes, align, ..*self }
    }

    /// Whether the resource may give memory back to the driver on the way to serving the request: not inside
    /// `defer_cleanup`, and not in a callback.
    pub fn may_free(&self) -> bool {
        !self.core.deferred_frees.is_deferred()
            && crate::blocking::check_outside_callback(self.operation).is_ok()
    }

    /// The stream that may get a block with its own pending uses: its later work runs after them.
    #[inline]
    pub(crate) fn ordered_by(&self) -> Option<&'a Arc<Timeline<B>>> {
        if self.host_first { None } else { self.stream }
    }

    /// The stream that is going to use the memory first, where that is known: a number that no other stream of the
    /// process has. Memory that only this stream may still be using can be allocated again at once.
    pub fn stream(&self) -> Option<u64> {
        self.stream.map(|timeline| timeline.id())
    }
}

/// Returns what is wrong with memory of one generation for another: it is of another device, or from before a reset.
#[cold]
pub(super) fn wrong_generation<B: Backend>(core: &DeviceCore<B>, found: u64) -> ErrorKind {
    match is_same_device(found, core.generation()) {
        true => ErrorKind::Stale { what: "memory block" },
        false => {
            let (what, has) = ("memory block", "another device".to_owned());
            ErrorKind::WrongDevice { what, has, wants: core.name() }
        }
    }
}

impl<B: Backend> MemoryRequest<'_, B> {
    /// The request as it is recorded.
    #[inline(always)]
    #[doc(hidden)]
    pub fn info(&self) -> AllocationInfo {
        let memory = (self.bytes, self.align, self.kind);
        AllocationInfo::new(self.operation, memory, self.stream().unwrap_or(0), self.host_first)
    }
}

impl<B: Backend> fmt::Debug for MemoryRequest<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryRequest")
            .field("bytes", &self.bytes)
            .field("align", &self.align)
            .field("kind", &self.kind)
            .field("operation", &self.operation)
            .field("stream", &self.stream())
            .finish_non_exhaustive()
    }
}

/// Identifies the resource of a block: a unique number for each resource that makes blocks itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ResourceId(u64);

impl ResourceId {
    /// A number that no other resource of the process has.
    #[allow(clippy::new_without_default, reason = "no two are alike")]
    pub fn new() -> Self {
        Self(crate::track::unique_id())
    }

    pub(super) fn from_number(number: u64) -> Self {
        Self(number)
    }

    pub(super) fn number(self) -> u64 {
        self.0
    }
}

/// Where a block comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockOrigin {
    pub(crate) resource: ResourceId,
    /// The generation of the device, which names the device as well.
    pub generation: u64,
    pub(crate) kind: MemoryKind,
}

/// Memory that a [`MemoryResource`] has allocated. It is returned to the resource that allocated it, through
/// [`recycle`](MemoryResource::recycle) or [`deallocate`](MemoryResource::deallocate); dropping it leaks it.
pub struct MemoryBlock<B: Backend> {
    address: u64,
    host: usize,
    bytes: usize,
    /// For the resource that allocated it.
    token: u64,
    /// The driver's description, where the block is one of the driver's.
    /// In a box: few blocks have one, and all of them are moved about.
    pub(crate) buffer: Option<Box<B::Buffer>>,
    resource_id: BlockOrigin,
    uses: PendingAccesses<B>,
}

impl<B: Backend> MemoryBlock<B> {
    /// A block of a resource's own making, of the resource `resource_id`, for `request`. It belongs to the device of the request, until that
    /// is reset.
    ///
    /// # Safety
    /// * The device, and for `host` the host, may read and write `bytes` bytes from these addresses until the block is
    ///   returned to the resource, and the memory is of the requested kind and alignment.
    /// * No other code uses the memory meanwhile, except for the uses that [`with_uses`](Self::with_uses) names.
    /// * The resource trusts the token of a block that comes back only where [`resource`](Self::resource) says that it is its own:
    ///   safe code can give it blocks of others.
    /// * Memory that the host can see holds initialised bytes.
    pub unsafe fn new(
        resource_id: ResourceId,
        request: &MemoryRequest<'_, B>,
        (address, host, bytes): (u64, Option<NonNull<u8>>, usize),
        token: u64,
    ) -> Self {
        request.core.arrivals.note();
        let host = host.map_or(0, |host| host.as_ptr() as usize);
        let resource_id =
            BlockOrigin { resource: resource_id, generation: request.core.generation(), kind: request.kind };
        Self { address, host, bytes, token, buffer: None, resource_id, uses: PendingAccesses::none() }
    }

    pub(crate) fn of_buffer(buffer: B::Buffer, resource: ResourceId, core: &DeviceCore<B>) -> Self {
        use gpumem_core::DeviceBuffer;
        core.arrivals.note();
        let generation = core.generation();
        let resource_id = BlockOrigin { resource, generation, kind: buffer.kind() };
        let host = buffer.host_address().map_or(0, |host| host.as_ptr() as usize);
        let (address, bytes) = (buffer.address(), buffer.len());
        let buffer = Some(Box::new(buffer));
        Self { address, host, bytes, token: 0, buffer, resource_id, uses: PendingAccesses::none() }
    }

    /// A part of a pool's piece.
    ///
    /// # Safety
    /// As [`new`](Self::new).
    #[inline]
    pub(super) unsafe fn of_pool(
        (address, host, bytes): (u64, usize, usize),
        token: u64,
        resource_id: BlockOrigin,
        uses: PendingAccesses<B>,
    ) -> Self {
        Self { address, host, bytes, token, buffer: None, resource_id, uses }
    }

    /// The addresses and the token of a block, to be shown and not to be given away.
    pub(super) fn likeness(&self) -> Self {
        let Self { address, host, bytes, token, resource_id, .. } = *self;
        Self { address, host, bytes, token, buffer: None, resource_id, uses: PendingAccesses::none() }
    }

    /// Adds work that may still be using the memory. New uses of the block wait for it first, in stream order: on the
    /// stream itself that costs nothing.
    #[must_use]
    #[inline]
    pub fn with_uses(mut self, uses: PendingAccesses<B>) -> Self {
        if self.uses.is_empty() {
            self.uses = uses;
        } else {
            uses.iter().for_each(|(timeline, submission)| self.uses.add(timeline, *submission));
        }
        self
    }

    /// The device's address of the first byte.
    #[inline]
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The host's address of the first byte, for memory that the host can see.
    #[inline]
    pub fn host(&self) -> Option<NonNull<u8>> {
        NonNull::new(self.host as *mut u8)
    }

    /// Length in bytes, at least the requested one.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The resource's own note.
    #[inline]
    pub fn token(&self) -> u64 {
        self.token
    }

    /// The resource that has allocated the block.
    #[inline]
    pub fn resource(&self) -> ResourceId {
        self.resource_id.resource
    }

    /// Kind of the memory.
    #[inline]
    pub fn kind(&self) -> MemoryKind {
        self.resource_id.kind
    }

    #[doc(hidden)]
    #[inline]
    pub fn origin(&self) -> BlockOrigin {
        self.resource_id
    }

    /// Returns the block without its pending uses, for a resource that has waited for them.
    ///
    /// # Safety
    /// The uses that [`uses`](Self::uses) names are over.
    #[must_use]
    pub unsafe fn without_uses(mut self) -> Self {
        drop(self.take_uses());
        self
    }

    /// Work that may still be using the memory.
    #[inline]
    pub fn uses(&self) -> &PendingAccesses<B> {
        &self.uses
    }

    /// Adds work that may still be using the memory.
    #[doc(hidden)]
    #[inline]
    pub fn add_use(&mut self, timeline: Arc<Timeline<B>>, submission: u64) {
        self.uses.add_owned(timeline, submission);
    }

    /// Passes the uses on.
    ///
    /// # Safety
    /// New uses of the memory wait for them.
    #[doc(hidden)]
    #[inline]
    pub unsafe fn hand_over_uses(&mut self) -> PendingAccesses<B> {
        self.take_uses()
    }

    #[inline]
    pub(crate) fn take_uses(&mut self) -> PendingAccesses<B> {
        mem::replace(&mut self.uses, PendingAccesses::none())
    }

    /// Forgets uses that are over.
    pub(crate) fn forget_done_uses(&mut self) {
        self.uses.forget_done();
    }

    /// Returns whether the block is one of the driver's, and no part of a larger one.
    #[doc(hidden)]
    pub fn is_of_driver(&self) -> bool {
        self.buffer.is_some()
    }
}

impl<B: Backend> fmt::Debug for MemoryBlock<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryBlock")
            .field("address", &format_args!("{:#x}", self.address))
            .field("bytes", &self.bytes)
            .field("uses", &self.uses)
            .finish_non_exhaustive()
    }
}

/// How a resource gives memory back to where it came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trim {
    /// Bytes that the resource may keep.
    pub keep: usize,
    /// Wait for memory that is still in use. Otherwise it is skipped.
    pub wait: bool,
    /// Only memory that has been unused for this time.
    pub unused_for: Duration,
}

impl Trim {
    /// Everything that is unused at this moment.
    pub const UNUSED: Self = Self { keep: 0, wait: false, unused_for: Duration::ZERO };
    /// Everything, after waiting for its last uses.
    pub const ALL: Self = Self { keep: 0, wait: true, unused_for: Duration::ZERO };
}

/// The bytes that a resource holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct MemoryStatistics {
    /// Bytes that the resource holds: allocated, or ready to be allocated.
    pub reserved: usize,
    /// Most bytes that it ever held.
    pub peak_reserved: usize,
    /// Bytes that are allocated.
    pub allocated: usize,
    /// Most bytes that were ever allocated, where the resource counts them.
    pub peak_allocated: Option<usize>,
    /// Blocks that are allocated.
    pub blocks: usize,
    /// Bytes that are free, and that work may still be using.
    pub in_flight: usize,
    /// The largest free block in bytes.
    pub largest_free: usize,
    /// Requests that were served.
    pub allocations: u64,
    /// Requests that were not.
    pub failures: u64,
}

/// Where memory of one kind comes from, on one device. Made for composing: a limit around a pool around the driver.
///
/// Numba's memory manager plug-in, with streams: one object for each device and kind of memory, that
/// `Device::set_memory_resource` puts in place.
///
/// # For implementers
/// * Methods are called from any thread at any time, [`recycle`](Self::recycle) from `Drop`. A panic in one ends as
///   [`UserCodePanicked`](ErrorKind::UserCodePanicked), in the result or in `take_errors`; the block that it was about is leaked.
/// * Memory that work may still be using may be allocated again, with these uses in the block
///   ([`MemoryBlock::with_uses`]); its next user waits as far as necessary, on the device.
/// * A block is returned to the resource that allocated it, once. A block of another one is refused, as is one of
///   another device or from before a reset: [`recycle`](Self::recycle) returns it, [`deallocate`](Self::deallocate) is
///   an error.
/// * While a pool grows from it, a resource waits for no device, and for no thread that may take memory from that pool. The device's own
///   work may be waiting for the pool: every wait for it there is refused as [`Unsupported`](ErrorKind::Unsupported).
pub trait MemoryResource<B: Backend>: fmt::Debug + Send + Sync + 'static {
    /// The word for it in reports.
    fn name(&self) -> &'static str;

    /// Allocates memory.
    ///
    /// # Errors
    /// Returns [`OutOfMemory`](gpumem_core::ErrorKind::OutOfMemory) if there is no room; the caller then reclaims
    /// memory and asks again. Any other error ends the request.
    fn allocate(&self, request: &MemoryRequest<'_, B>) -> Result<MemoryBlock<B>>;

    /// Takes a block back at once, with the work that may still be using it in [`MemoryBlock::uses`], if that needs
    /// neither a driver call nor a wait. Otherwise the block comes back, and waits in the device's queue until it can be
    /// [deallocated](Self::deallocate).
    ///
    /// # Errors
    /// Returns the block if freeing it takes a driver call or a wait, which is the default.
    fn recycle(&self, block: MemoryBlock<B>) -> Result<(), MemoryBlock<B>> {
        Err(block)
    }

    /// Takes a block back whose last use is over. May call the driver. The driver itself waits for the uses that are named
    /// in the block, so that no resource can free memory that is in use.
    ///
    /// # Errors
    /// Returns [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure. The block is gone all the
    /// same: whether its memory is free is then unknown.
    fn deallocate(&self, block: MemoryBlock<B>) -> Result<()>;

    /// Frees idle memory to the upstream resource. Returns the number of freed bytes; failures go to `failed`.
    fn trim(&self, how: Trim, failed: &mut dyn FnMut(Error)) -> usize {
        let _ = (how, failed);
        0
    }

    /// Forgets everything without a driver call, because the driver has taken it: the device was reset.
    fn forget(&self);

    /// Returns the bytes that the resource holds.
    fn statistics(&self) -> MemoryStatistics;

    /// The resource that this one takes its memory from.
    fn upstream(&self) -> Option<&dyn MemoryResource<B>> {
        None
    }

    /// Address and length of the driver's block that holds an allocated one, for handing memory to another process.
    fn driver_block(&self, block: &MemoryBlock<B>) -> (u64, usize) {
        let own = (block.address(), block.bytes());
        chain::one_deeper(|| self.upstream().map_or(own, |upstream| upstream.driver_block(block)))
            .unwrap_or(own)
    }
}
