//! The pool: memory that has been used is used again, without the driver.
//!
//! * The books ([`tlsf`](super::tlsf)) lend and take back in constant time, and join free neighbours at once. They are
//!   kept beside the memory, not in it.
//! * A block comes back together with the work that may still be using it. The stream that does may have it again at
//!   once: what it enqueues next runs behind that work anyway. For everybody else the block is *in flight*, and passed
//!   over while another one fits; if nothing else is left, it is lent with its uses, and whoever uses it waits for
//!   them, on the device and only then.
//! * Blocks that several streams use are parked until all but one of them are done.
//! * When nothing fits, the pool asks the driver which work is done, and then takes a larger piece from its upstream.
//!   Pieces of which nothing is lent go back when somebody trims the pool, or as [`PoolOptions`] say. Where it may, it
//!   [grows in place](PoolOptions::in_place) instead, and what is free at its end goes back.
//! * Threads meet on the lock of the books. One that finds it held, or others there again and again, keeps its blocks in a
//!   [lane](lane) of its own for a while: one for each stream, and for each thread where no stream is known.
//!
//! Of a driver it needs nothing but memory, events and their waits.

mod central;
mod grow;
mod in_place;
mod lane;
mod meetings;
mod options;

pub use options::PoolOptions;

use super::{
    pending::PendingUses,
    resource::{Lender, MemoryBlock, MemoryRequest, MemoryResource, MemoryStatistics, ResourceId, Trim},
    tlsf::BlockId,
};
use crate::sync::{Mutex, ShortMutex, ShortMutexGuard};
use central::{Central, Found, Place};
use gpumem_core::{Backend, Error, ErrorKind, MemoryKind, Result, process::Origin};
use in_place::Grown;
use lane::{Lane, thread_number};
use parking_lot::ReentrantMutex;
use std::{
    cell::RefCell,
    fmt, mem,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    sync::{Arc, OnceLock},
    time::Instant,
};

/// Lanes of streams, and as many of threads.
const LANES: usize = 32;

/// A pool over another resource: two-level segregated fit, in lanes so that threads rarely meet.
pub struct Pool<B: Backend> {
    upstream: Arc<dyn MemoryResource<B>>,
    /// A forked child leaves the pool alone: others may hold its locks for ever there.
    origin: Origin,
    options: PoolOptions,
    lanes: Box<[Lane<B>]>,
    central: ShortMutex<Central<B>>,
    /// Held while memory is asked of upstream, so that two do not ask for the same need. The books are not locked then.
    /// Upstream may be code of the user that calls the pool: it finds the cell borrowed, and does not wait for itself.
    growing: ReentrantMutex<RefCell<Grown>>,
    /// The number that blocks are lent by. Another one from each time on that the driver has taken everything.
    id: AtomicU64,
    /// Those before: their blocks are not ours any more.
    former: Mutex<Vec<u64>>,
    /// The device of the pieces, and what kind of memory they are.
    generation: AtomicU64,
    kind: OnceLock<MemoryKind>,
    is_seen_by_host: AtomicBool,
    /// What the device adds to the pool's addresses, if that is the same in every chunk.
    shift: AtomicU64,
    uniform: AtomicBool,
}

impl<B: Backend> Pool<B> {
    /// A pool that takes its memory from `upstream`, usually [`DriverMemory`](super::DriverMemory). It starts empty.
    pub fn new(upstream: Arc<dyn MemoryResource<B>>, options: PoolOptions) -> Self {
        let granule = options.granule.clamp(16, 2 << 20).next_power_of_two();
        Self {
            upstream,
            origin: Origin::here(),
            options: PoolOptions { granule, ..options },
            lanes: (0..2 * LANES).map(|_| Lane::new()).collect(),
            central: ShortMutex::new(Central::new(granule)),
            growing: ReentrantMutex::default(),
            id: AtomicU64::new(ResourceId::new().number()),
            former: Mutex::new(Vec::new()),
            generation: AtomicU64::new(0),
            kind: OnceLock::new(),
            is_seen_by_host: AtomicBool::new(false),
            shift: AtomicU64::new(0),
            uniform: AtomicBool::new(true),
        }
    }

    /// How the pool grows and shrinks.
    pub fn options(&self) -> &PoolOptions {
        &self.options
    }

    #[inline]
    fn lane(&self, stream: Option<u64>) -> u16 {
        match stream {
            Some(stream) => (stream as usize % LANES) as u16,
            None => (LANES + thread_number() % LANES) as u16,
        }
    }

    /// The books, if nobody has them; meeting others there makes the lane hot.
    #[inline]
    fn try_books(&self, lane: &Lane<B>) -> Option<ShortMutexGuard<'_, Central<B>>> {
        let mut central = self.central.try_lock();
        if central.as_mut().is_none_or(|central| central.meetings.visit(thread_number())) {
            lane.warm_up();
        }
        central
    }

    /// The books with everything in them.
    fn whole(&self) -> ShortMutexGuard<'_, Central<B>> {
        let mut central = self.central.lock();
        central.complete();
        central
    }

    #[inline]
    fn lend(&self, central: Option<&Central<B>>, lane: u16, found: Found<B>) -> MemoryBlock<B> {
        let Place { block, start, len } = found.place;
        let address = match (self.uniform.load(Ordering::Relaxed), central) {
            (true, _) => start.wrapping_add(self.shift.load(Ordering::Relaxed)),
            (false, Some(central)) => central.address(start),
            (false, None) => self.central.lock().address(start),
        };
        let host = if self.is_seen_by_host.load(Ordering::Relaxed) { start as usize } else { 0 };
        let token = u64::from(block.number()) | u64::from(lane) << 32;
        let lender = Lender {
            resource: ResourceId::from_number(self.id.load(Ordering::Relaxed)),
            generation: self.generation.load(Ordering::Relaxed),
            kind: self.kind.get().copied().unwrap_or(MemoryKind::Device),
        };
        // SAFETY: the books have lent these bytes of a chunk to nobody else, and the chunk stays until they come back.
        // All chunks are of one kind and of one device, which the block says. Where the host sees it, its bytes are
        // initialised, because the backend has zeroed them.
        unsafe { MemoryBlock::of_pool((address, host, len as usize), token, lender, found.uses) }
    }

    /// Hands a block back that is not ours, unless it was before the driver took everything.
    #[cold]
    fn refuse(&self, block: MemoryBlock<B>) -> Result<(), MemoryBlock<B>> {
        if !self.origin.is_usable() {
            return Err(block);
        }
        match self.former.lock().contains(&block.lender().number()) {
            true => Ok(()),
            false => Err(block),
        }
    }

    fn place(&self, block: &MemoryBlock<B>) -> Place {
        let start = match block.host() {
            Some(host) => host.as_ptr() as u64,
            None => block.address().wrapping_sub(self.shift.load(Ordering::Relaxed)),
        };
        let number = BlockId::from_number((block.token() & u64::from(u32::MAX)) as u32);
        Place { block: number, start, len: block.bytes() as u64 }
    }

    /// Everything that lanes hold goes to the books.
    fn gather(&self) -> bool {
        let mut any = false;
        for lane in &self.lanes {
            let held = lane.drain();
            if held.is_empty() {
                continue;
            }
            any = true;
            let mut central = self.central.lock();
            held.into_iter().for_each(|found| central.free(found.place, found.uses));
        }
        any
    }

    /// Makes idle what is known to be done. Whether anything was.
    fn settle(&self) -> bool {
        let mut central = self.whole();
        let any = central.settle();
        let dead = central.take_dead();
        drop(central);
        drop(dead);
        any
    }

    /// Asks the driver what is done of what still uses free blocks. Never waits.
    fn poll(&self) -> bool {
        // The driver is not asked under the lock of the books: who drops memory would wait for it.
        let pending = self.whole().pending();
        let mut any = false;
        for (timeline, ticket) in pending.iter() {
            any |= timeline.poll(*ticket).unwrap_or_else(|_| timeline.has_passed(*ticket));
        }
        any && self.settle()
    }

    /// What the free lists do not serve at once.
    #[cold]
    fn search(&self, request: &MemoryRequest<'_, B>, lane: u16) -> Result<MemoryBlock<B>> {
        let (bytes, align) = (request.bytes as u64, request.align as u64);
        if bytes == 0 || !align.is_power_of_two() {
            let why = "a request has at least one byte, and an alignment that is a power of two";
            return Err(request.core.error(request.operation, ErrorKind::InvalidArgument { why }));
        }
        let take = || {
            let mut central = self.central.lock();
            central
                .take(bytes, align, request.ordered_by())
                .map(|found| self.lend(Some(&central), lane, found))
        };
        let take_in_flight = || {
            let mut central = self.whole();
            central.take_in_flight(bytes, align).map(|found| self.lend(Some(&central), lane, found))
        };
        let gathered = self.gather();
        if (self.settle() || gathered)
            && let Some(block) = take()
        {
            return Ok(block);
        }
        // Whose stream is not known yet may well be the one that still uses the block. The host would have to wait.
        if request.stream.is_none()
            && !request.host_first
            && let Some(block) = take_in_flight()
        {
            return Ok(block);
        }
        if self.poll()
            && let Some(block) = take()
        {
            return Ok(block);
        }
        if request.may_free() {
            self.keep_within_bounds();
        }
        let grown = {
            let held = self.growing.lock();
            let Ok(mut one) = held.try_borrow_mut() else {
                let what = "taking memory from a pool inside a memory resource that the pool grows from";
                return Err(request.core.error(request.operation, ErrorKind::Unsupported { what }));
            };
            // Another thread may have grown the pool, or given something back, meanwhile.
            match take() {
                Some(block) => return Ok(block),
                None => match self.grow_in_place(&mut one, request, lane) {
                    Ok(None) => self.grow(request, lane),
                    outcome => outcome,
                },
            }
        };
        let grown = match grown {
            Ok(Some(block)) => return Ok(block),
            Ok(None) => None,
            Err(error) => Some(error),
        };
        let last = if request.host_first { self.take_and_wait(request, lane) } else { take_in_flight() };
        if let Some(block) = last {
            return Ok(block);
        }
        self.central.lock().failures += 1;
        Err(grown.unwrap_or_else(|| self.exhausted(request)))
    }

    /// A block that was in flight, after waiting for what used it.
    fn take_and_wait(&self, request: &MemoryRequest<'_, B>, lane: u16) -> Option<MemoryBlock<B>> {
        if !request.may_free() {
            return None;
        }
        let (bytes, align) = (request.bytes as u64, request.align as u64);
        let Found { place, uses } = self.whole().take_in_flight(bytes, align)?;
        if !uses.wait() {
            self.central.lock().free(place, uses);
            return None;
        }
        Some(self.lend(None, lane, Found { place, uses: PendingUses::none() }))
    }

    fn exhausted(&self, request: &MemoryRequest<'_, B>) -> Error {
        let central = self.whole();
        let total = self.options.limit.unwrap_or(central.reserved);
        let free = total.saturating_sub(central.lent_bytes() as usize);
        let kind = ErrorKind::OutOfMemory {
            requested: request.bytes,
            kind: request.kind.name(),
            free,
            total,
            pressure: None,
        };
        request.core.error(request.operation, kind)
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
        let number = self.lane(stream.map(|timeline| timeline.id()));
        let lane = &self.lanes[usize::from(number)];
        let (bytes, align) = (request.bytes as u64, request.align as u64);
        if !lane.is_empty()
            && let Some(len) = bytes.checked_next_multiple_of(self.options.granule as u64)
            && let Some(found) =
                lane.take(len, align, stream.map(|timeline| timeline.id()), request.host_first)
        {
            central::tell::<B>(found.place.start, found.place.len, true);
            return Ok(self.lend(None, number, found));
        }
        let mut central = self.try_books(lane).unwrap_or_else(|| self.central.lock());
        if let Some(found) = central.take(bytes, align, stream) {
            return Ok(self.lend(Some(&central), number, found));
        }
        drop(central);
        self.search(request, number)
    }

    #[inline]
    fn recycle(&self, mut block: MemoryBlock<B>) -> Result<(), MemoryBlock<B>> {
        if block.lender().number() != self.id.load(Ordering::Relaxed) || !self.origin.is_usable() {
            return self.refuse(block);
        }
        let (place, number) = (self.place(&block), (block.token() >> 32) as usize);
        let mut uses = block.take_uses();
        // Nothing is left in it: a pool's block has no description of the driver's. Dropping it would look for one.
        mem::forget(block);
        uses.forget_done();
        let lane = &self.lanes[number % self.lanes.len()];
        if !lane.is_hot()
            && let Some(mut central) = self.try_books(lane)
        {
            central.free(place, uses);
            return Ok(());
        }
        if uses.is_over() {
            central::tell::<B>(place.start, place.len, false);
        }
        let Err(full) = lane.put(place, uses) else { return Ok(()) };
        let held = if place.len <= lane::LARGEST { lane.drain() } else { Vec::new() };
        let mut central = self.central.lock();
        central.free(full.place, full.uses);
        held.into_iter().for_each(|found| central.free(found.place, found.uses));
        Ok(())
    }

    fn deallocate(&self, block: MemoryBlock<B>) -> Result<()> {
        self.origin.check("", "deallocate")?;
        // It always takes blocks of its own at once.
        self.recycle(block).map_err(|_| {
            let why = "the block was lent by another memory resource";
            Error::new("", "deallocate", ErrorKind::InvalidArgument { why })
        })
    }

    fn trim(&self, how: Trim, failed: &mut dyn FnMut(Error)) -> usize {
        if let Err(error) = self.origin.check("", "trim") {
            failed(error);
            return 0;
        }
        self.gather();
        self.settle();
        self.poll();
        if how.wait {
            // Unlocked, as in `poll`. What cannot be proven to be over stays in flight.
            let pending = self.whole().pending();
            for (timeline, ticket) in pending.iter() {
                if !timeline.settle(*ticket).done {
                    tracing::error!("memory of a pool is kept: its last use cannot be proven to be over");
                }
            }
            self.settle();
        }
        let before = Instant::now().checked_sub(how.unused_for);
        let before = (!how.unused_for.is_zero()).then(|| before.unwrap_or_else(Instant::now));
        let taken = self.whole().take_unused(how.keep, before);
        let mut bytes = 0;
        for block in taken {
            bytes += block.bytes();
            if let Err(error) = self.upstream.deallocate(block) {
                failed(error);
            }
        }
        let bytes = bytes + self.trim_in_place(how.keep, before, failed);
        // Upstream may be the user's, and say anything.
        bytes.saturating_add(self.upstream.trim(how, failed))
    }

    fn forget(&self) {
        if !self.origin.is_usable() {
            return;
        }
        let new = ResourceId::new().number();
        self.former.lock().push(self.id.swap(new, Ordering::AcqRel));
        self.lanes.iter().for_each(|lane| drop(lane.drain()));
        self.forget_in_place();
        mem::forget(self.central.lock().forget());
        self.upstream.forget();
    }

    fn statistics(&self) -> MemoryStatistics {
        if !self.origin.is_usable() {
            return MemoryStatistics::default();
        }
        let (cached, cached_blocks) = self
            .lanes
            .iter()
            .fold((0, 0), |(bytes, blocks), lane| (bytes + lane.bytes() as usize, blocks + lane.blocks()));
        let central = self.whole();
        MemoryStatistics {
            reserved: central.reserved,
            peak_reserved: central.peak_reserved,
            lent: (central.lent_bytes() as usize).saturating_sub(cached),
            peak_lent: None,
            blocks: central.lent_blocks().saturating_sub(cached_blocks),
            in_flight: central.in_flight_bytes() as usize,
            largest_free: central.largest_free() as usize,
            allocations: central.allocations + self.lanes.iter().map(Lane::served).sum::<u64>(),
            failures: central.failures,
        }
    }

    fn upstream(&self) -> Option<&dyn MemoryResource<B>> {
        Some(&*self.upstream)
    }

    fn driver_block(&self, block: &MemoryBlock<B>) -> (u64, usize) {
        if block.lender().number() != self.id.load(Ordering::Relaxed) || !self.origin.is_usable() {
            return (block.address(), block.bytes());
        }
        let place = self.place(block);
        // Upstream is asked without the lock.
        let chunk = self.central.lock().chunk_of(place.start).map(MemoryBlock::likeness);
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
