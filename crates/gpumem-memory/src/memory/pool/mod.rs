//! The pool: memory that has been used is used again, without the driver.
//!
//! * The allocator ([`tlsf`](super::tlsf)) allocates and frees in constant time, and joins free neighbours at once. Its lists
//!   are kept beside the memory, not in it.
//! * A block is freed together with the work that may still be using it. The stream of that work may have it again at
//!   once: its next work runs after that anyway. For other streams the block is *in flight*, and skipped while another
//!   one fits. If no other is left, it is allocated with its pending accesses, and its user waits for them on the
//!   device.
//! * Blocks that several streams use are parked until all but one of them are done.
//! * When nothing fits, the pool asks the driver which work is done, and then takes a larger piece from its upstream.
//!   Pieces of which nothing is allocated go back when the pool is trimmed or dropped, or as [`PoolOptions`] say.
//! * Threads share the lock of the allocator. A thread that finds it contended keeps its blocks in a [local
//!   cache](local_cache) for a while: one for each stream, and for each thread where no stream is known.
//!
//! Of a driver it needs nothing but memory, events and their waits.

mod contention;
mod grow;
mod local_cache;
mod options;
mod search;
mod state;
mod turns;

pub use options::PoolOptions;

use super::{
    pending_accesses::PendingAccesses,
    resource::{BlockOrigin, MemoryBlock, MemoryRequest, MemoryResource, MemoryStatistics, ResourceId, Trim},
    tlsf::BlockId,
};
use crate::{
    sync::{Mutex, Rank, ShortMutex, ShortMutexGuard},
    track::is_refused,
};
use gpumem_core::{Backend, Error, ErrorKind, MemoryKind, Result, process::ProcessGuard};
use local_cache::{CachedBlock, LocalCache, thread_number};
use state::{BlockRef, FreeBlock, PoolState};
use std::{
    fmt, mem,
    sync::atomic::{AtomicU64, Ordering},
    sync::{Arc, OnceLock},
};

/// Local caches of streams, and as many of threads.
const LOCAL_CACHES: usize = 32;

/// A pool over another resource: two-level segregated fit, in local caches so that threads rarely meet.
pub struct Pool<B: Backend> {
    upstream: Arc<dyn MemoryResource<B>>,
    /// A forked child leaves the pool alone: others may hold its locks for ever there.
    origin: ProcessGuard,
    options: PoolOptions,
    local_caches: Box<[LocalCache<B>]>,
    state: ShortMutex<PoolState<B>>,
    /// The number of the resource in its blocks. Another one from each time on that the driver has taken everything. Written under
    /// the lock of the state. Who reads an old one without that lock finds the new one under it, in `PoolState::free`.
    id: AtomicU64,
    /// Earlier generations: their blocks do not belong to the pool any more.
    former: Mutex<Vec<u64>>,
    /// The device of the pieces, and their kind of memory.
    generation: AtomicU64,
    kind: OnceLock<MemoryKind>,
}

impl<B: Backend> Pool<B> {
    /// Creates a pool that takes its memory from `upstream`, usually [`DriverMemory`](super::DriverMemory). It starts
    /// empty.
    ///
    /// # Examples
    /// ```
    /// # use gpumem_core::MemoryKind;
    /// # use gpumem_runtime::memory::{MemoryResource, Pool};
    /// # use std::sync::Arc;
    /// # use gpumem_host::Host;
    /// # type Device = gpumem_runtime::Device<Host>;
    /// # fn main() -> gpumem_core::Result<()> {
    /// # let device = Device::open("host")?;
    /// let options = device.pool_options(MemoryKind::Device).max_size(1 << 30);
    /// let pool = Arc::new(Pool::new(device.driver_memory(), options));
    /// device.set_memory_resource(MemoryKind::Device, pool.clone())?;
    /// let array = device.device_array::<f32, _>(1000)?;
    /// assert!(pool.statistics().allocated >= 4000);
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(upstream: Arc<dyn MemoryResource<B>>, options: PoolOptions) -> Self {
        let granule = options.alignment.clamp(16, 2 << 20).next_power_of_two();
        let options = PoolOptions { alignment: granule, ..options };
        let id = ResourceId::new().number();
        Self {
            upstream,
            origin: ProcessGuard::current(),
            options,
            local_caches: (0..2 * LOCAL_CACHES).map(|_| LocalCache::new()).collect(),
            state: ShortMutex::new(Rank::Pool, PoolState::new(options, id)),
            id: AtomicU64::new(id),
            former: Mutex::new(Rank::FormerPools, Vec::new()),
            generation: AtomicU64::new(0),
            kind: OnceLock::new(),
        }
    }

    /// The pool for one kind of memory from the beginning. Otherwise the first request says which.
    pub(crate) fn of_kind(self, kind: MemoryKind) -> Self {
        let _ = self.kind.set(kind);
        self
    }

    /// Returns how the pool grows and shrinks.
    pub fn options(&self) -> &PoolOptions {
        &self.options
    }

    #[inline]
    fn local_cache(&self, stream: Option<u64>) -> u16 {
        match stream {
            Some(stream) => (stream as usize % LOCAL_CACHES) as u16,
            None => (LOCAL_CACHES + thread_number() % LOCAL_CACHES) as u16,
        }
    }

    /// Locks the state, unless another thread holds the lock. Contention enables the local cache.
    #[inline]
    fn lock_if_free(&self, local_cache: &LocalCache<B>) -> Option<ShortMutexGuard<'_, PoolState<B>>> {
        // Not waited for: a lock that is held is the contention that the caches are for.
        let mut state = self.state.try_lock();
        if state.as_mut().is_none_or(|state| state.contention.record(thread_number())) {
            local_cache.enable();
        }
        state
    }

    /// Locks the state, with every free block in the lists.
    fn lock_gathered(&self) -> ShortMutexGuard<'_, PoolState<B>> {
        let mut state = self.state.lock();
        state.flush_last();
        state
    }

    /// A block that was found without the lock. `None` if the pool has forgotten everything meanwhile: the block is the
    /// driver's.
    #[inline]
    fn hand_out_unlocked(&self, local_cache: u16, found: CachedBlock<B>) -> Option<MemoryBlock<B>> {
        let CachedBlock { owner, free } = found;
        let block = self.hand_out(owner, local_cache, free);
        // What the block says of its device is stored anew only after the number, so it is that of the block.
        // Acquire: with the swap in `forget`.
        (self.id.load(Ordering::Acquire) == owner).then_some(block)
    }

    #[inline]
    fn hand_out(&self, owner: u64, local_cache: u16, found: FreeBlock<B>) -> MemoryBlock<B> {
        let BlockRef { block, address, host, len } = found.place;
        let token = u64::from(block.number()) | u64::from(local_cache) << 32;
        let resource_id = BlockOrigin {
            resource: ResourceId::from_number(owner),
            // Acquire: a block from a cache is handed out without the lock. Its number says whether it is of this generation.
            generation: self.generation.load(Ordering::Acquire),
            kind: self.kind.get().copied().unwrap_or(MemoryKind::Device),
        };
        // SAFETY: the allocator has given these bytes of a chunk to no other block, and the chunk stays until they are
        // freed. All chunks are of one kind and of one device, which the block says. Where the host sees it, its bytes
        // are initialised, because the backend has zeroed them.
        unsafe {
            MemoryBlock::of_pool((address, host as usize, len as usize), token, resource_id, found.uses)
        }
    }

    /// Returns a block of another owner, unless it is from before the driver freed everything.
    #[cold]
    fn refuse(&self, block: MemoryBlock<B>) -> Result<(), MemoryBlock<B>> {
        if !self.origin.is_valid() {
            return Err(block);
        }
        // Alone: the lock of the free lists is not needed to know an old number.
        match self.former.lock().contains(&block.resource().number()) {
            true => Ok(()),
            false => Err(block),
        }
    }

    fn place(block: &MemoryBlock<B>) -> BlockRef {
        BlockRef {
            block: BlockId::from_number((block.token() & u64::from(u32::MAX)) as u32),
            address: block.address(),
            host: block.host().map_or(0, |host| host.as_ptr() as u64),
            len: block.bytes() as u64,
        }
    }

    /// Everything that local caches hold goes to the allocator.
    fn gather(&self) -> bool {
        let mut any = false;
        for local_cache in &self.local_caches {
            let held = local_cache.drain();
            if held.is_empty() {
                continue;
            }
            any = true;
            // For one cache at a time, so that other threads get in between.
            let mut state = self.state.lock();
            held.into_iter().for_each(|held| state.free(held.owner, held.free.place, held.free.uses));
        }
        any
    }

    /// Makes finished blocks idle. Returns whether there were any.
    fn collect_done(&self) -> bool {
        let mut state = self.lock_gathered();
        let any = state.collect_done();
        // Dropped below without the lock: the last reference to a stream gives memory back.
        let retired_timelines = state.take_retired();
        drop(state);
        drop(retired_timelines);
        any
    }

    /// Asks the driver which uses of free blocks are done. Never waits.
    fn poll(&self) -> bool {
        // The driver is not called under the lock of the allocator: threads that drop memory would wait for it.
        let pending = self.lock_gathered().pending_frees();
        let mut any = false;
        for (timeline, submission) in pending.iter() {
            any |= timeline.poll(*submission).unwrap_or_else(|_| timeline.is_complete(*submission));
        }
        any && self.collect_done()
    }
}

impl<B: Backend> MemoryResource<B> for Pool<B> {
    fn name(&self) -> &'static str {
        "pool"
    }

    #[inline]
    fn allocate(&self, request: &MemoryRequest<'_, B>) -> Result<MemoryBlock<B>> {
        self.origin.check("", request.operation).map_err(|error| request.core.place(error))?;
        let stream = request.ordered_by();
        let number = self.local_cache(stream.map(|timeline| timeline.id()));
        let local_cache = &self.local_caches[usize::from(number)];
        let (bytes, align) = (request.bytes as u64, request.align as u64);
        if !local_cache.is_empty()
            && let Some(len) = bytes.checked_next_multiple_of(self.options.alignment as u64)
            && let Some(found) =
                local_cache.take(len, align, stream.map(|timeline| timeline.id()), request.host_first)
        {
            let place = found.free.place;
            if let Some(block) = self.hand_out_unlocked(number, found) {
                state::tell::<B>(place.start(), place.len, true);
                return Ok(block);
            }
        }
        // The caches could not serve it, so this thread waits for the lock.
        let mut state = self.lock_if_free(local_cache).unwrap_or_else(|| self.state.lock());
        if let Some(place) = state.take_last_idle(bytes, align) {
            let found = FreeBlock { place, uses: PendingAccesses::none() };
            return Ok(self.hand_out(state.owner, number, found));
        }
        if let Some(found) = state.take(bytes, align, stream) {
            return Ok(self.hand_out(state.owner, number, found));
        }
        drop(state);
        self.search(request, number)
    }

    #[inline]
    fn recycle(&self, mut block: MemoryBlock<B>) -> Result<(), MemoryBlock<B>> {
        // Relaxed: see the field. Under the lock `free` compares once more.
        if block.resource().number() != self.id.load(Ordering::Relaxed) || !self.origin.is_valid() {
            return self.refuse(block);
        }
        let (owner, place) = (block.resource().number(), Self::place(&block));
        let number = (block.token() >> 32) as usize;
        let is_unused = block.uses().is_empty();
        let mut uses = PendingAccesses::none();
        if !is_unused {
            uses = block.take_uses();
            // So that most blocks come back idle, and need no look later.
            uses.forget_done();
        }
        // Nothing is left in it: a pool's block has no description of the driver's. Dropping it would look for one.
        mem::forget(block);
        let local_cache = &self.local_caches[number % self.local_caches.len()];
        if !local_cache.is_enabled()
            && let Some(mut state) = self.lock_if_free(local_cache)
        {
            match is_unused {
                // Not `uses`, which would be moved: a twentieth of the time in which an array is made and dropped.
                true => state.free(owner, place, PendingAccesses::none()),
                false => state.free(owner, place, uses),
            }
            return Ok(());
        }
        if uses.is_over() {
            state::tell::<B>(place.start(), place.len, false);
        }
        let block = CachedBlock { owner, free: FreeBlock { place, uses } };
        let Err(full) = local_cache.put(block) else { return Ok(()) };
        // A full cache is emptied with it: one lock for many blocks.
        let held = if full.free.place.len <= local_cache::LARGEST { local_cache.drain() } else { Vec::new() };
        // The cache is unlocked again: a pool asks its caches under this lock, never the other way round.
        let mut state = self.state.lock();
        let held = std::iter::once(full).chain(held);
        held.for_each(|held| state.free(held.owner, held.free.place, held.free.uses));
        Ok(())
    }

    fn deallocate(&self, block: MemoryBlock<B>) -> Result<()> {
        self.origin.check("", "deallocate")?;
        // It always takes its own blocks at once.
        self.recycle(block).map_err(|_| {
            let why = "the block was allocated by another memory resource";
            Error::new("", "deallocate", ErrorKind::InvalidArgument { why })
        })
    }

    fn trim(&self, how: Trim, failed: &mut dyn FnMut(Error)) -> usize {
        if let Err(error) = self.origin.check("", "trim") {
            failed(error);
            return 0;
        }
        self.gather();
        self.collect_done();
        self.poll();
        if how.wait {
            // Unlocked, as in `poll`. Blocks whose uses cannot be proven to be over stay in flight.
            let pending = self.lock_gathered().pending_frees();
            for (timeline, submission) in pending.iter() {
                let outcome = timeline.wait_host(*submission);
                if let Some(error) = outcome.result.err().filter(|error| !outcome.done && !is_refused(error))
                {
                    failed(error);
                }
            }
            self.collect_done();
        }
        // Upstream gets the chunks without the lock: it may be a pool, or code of the user.
        let taken = self.lock_gathered().take_unused(how.keep, how.unused_for);
        let bytes = grow::give_back(&*self.upstream, taken, failed);
        // Upstream may be the user's, and say anything.
        bytes.saturating_add(self.upstream.trim(how, failed))
    }

    fn forget(&self) {
        if !self.origin.is_valid() {
            return;
        }
        let new = ResourceId::new().number();
        let forgotten = {
            // The number changes together with the allocator: no block of one is freed into the other.
            let mut state = self.state.lock();
            // AcqRel: who reads the new number sees what the old one has left; within the lock of the state, so both change at
            // once.
            self.former.lock().push(self.id.swap(new, Ordering::AcqRel));
            state.forget(new)
        };
        mem::forget(forgotten.blocks);
        // Blocks that were put there meanwhile have the old number, and are not handed out.
        self.local_caches.iter().for_each(|local_cache| drop(local_cache.drain()));
        self.upstream.forget();
    }

    fn statistics(&self) -> MemoryStatistics {
        if !self.origin.is_valid() {
            return MemoryStatistics::default();
        }
        let (cached, cached_blocks) =
            self.local_caches.iter().fold((0, 0), |(bytes, blocks), local_cache| {
                (bytes + local_cache.bytes() as usize, blocks + local_cache.blocks())
            });
        // The caches have been asked for their blocks before; what they have served is asked for under this lock.
        let state = self.lock_gathered();
        MemoryStatistics {
            reserved: state.reserved,
            peak_reserved: state.peak_reserved,
            // To the allocator the blocks of the caches are allocated.
            allocated: (state.allocated_bytes() as usize).saturating_sub(cached),
            peak_allocated: None,
            blocks: state.allocated_blocks().saturating_sub(cached_blocks),
            in_flight: state.in_flight_bytes() as usize,
            largest_free: state.largest_free() as usize,
            allocations: state.allocations + self.local_caches.iter().map(LocalCache::served).sum::<u64>(),
            failures: state.failures,
        }
    }

    fn upstream(&self) -> Option<&dyn MemoryResource<B>> {
        Some(&*self.upstream)
    }

    fn driver_block(&self, block: &MemoryBlock<B>) -> (u64, usize) {
        // Relaxed: a block from before a reset has no chunk, which the look under the lock finds.
        if block.resource().number() != self.id.load(Ordering::Relaxed) || !self.origin.is_valid() {
            return (block.address(), block.bytes());
        }
        let place = Self::place(block);
        // Upstream is called without the lock.
        let chunk = self.state.lock().chunk_of(place.start()).map(MemoryBlock::likeness);
        chunk.map_or((block.address(), block.bytes()), |chunk| self.upstream.driver_block(&chunk))
    }
}

impl<B: Backend> fmt::Debug for Pool<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("upstream", &self.upstream)
            .field("statistics", &self.statistics())
            .finish()
    }
}
