//! The queue of deferred frees (law 6).
//!
//! Dropped objects that only a driver call can free go into this queue: memory of a resource that frees through the
//! driver, streams, events, modules, and foreign memory with its owner. So a drop makes no driver call and does not
//! wait. Memory of a pool does not go here: the pool takes it back at once.
//!
//! The rules are Numba's:
//!
//! * More than [`DeferredLimits::items`] items, or more than [`DeferredLimits::ratio`] of the device's memory in bytes,
//!   make the next allocation free everything that is pending. Reaching a limit does not, exceeding it does.
//! * Beyond a limit, what else is made and comes into the queue later frees two items.
//! * An allocation that fails frees all, and waits for items in use.
//! * Inside `Device::defer_cleanup` nothing is freed and nothing is waited for.
//! * Pools keep no more memory of the host that is not allocated than the ratio says: beyond it, the next allocation
//!   gives unused pieces back.
//! * Errors go to `Device::take_errors`, and the other items are freed all the same.

use super::{
    DeferredLimits,
    defer::is_deferred_everywhere,
    deferred_free::DeferredFree,
    pending_accesses::Waited,
    resource::{MemoryStatistics, Trim},
};
use crate::{
    blocking,
    memory::DeviceCore,
    sync::{Mutex, Rank},
    user_code,
};
use gpumem_core::{
    Backend, DriverDevice, Error, ErrorKind, Event as _, HostFunction, POISONED, Result, Stream as _,
    process::DriverUse,
};
use smallvec::SmallVec;
use std::{
    collections::VecDeque,
    fmt,
    mem::{self, ManuallyDrop},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

/// An item of the queue. Dropping it leaks its object, because a device may still be using that: only [`give_back`]
/// frees it.
struct Pending<B: Backend> {
    item: ManuallyDrop<DeferredFree<B>>,
    generation: u64,
}

/// Objects that were dropped and not yet freed.
pub struct DeferredFrees<B: Backend> {
    queue: Mutex<VecDeque<Pending<B>>>,
    /// The size of the queue, to be read without its lock and written under it. These and the limits are relaxed: a thread that
    /// reads an old size sweeps one allocation later, or looks in vain, and looks under the lock either way.
    items: AtomicUsize,
    bytes: AtomicUsize,
    limit_items: AtomicUsize,
    /// The bits of an `f64`.
    limit_ratio: AtomicU64,
    /// The limit in bytes, that every allocation looks at.
    limit_bytes: AtomicUsize,
    /// Bytes of memory of the host that pools hold unallocated, or more.
    idle_host: AtomicUsize,
    /// How many `defer_cleanup` are in force.
    pub(super) deferred: AtomicUsize,
    /// Whether the device is closed: nothing is deferred then, because no later call would free it.
    is_closed: AtomicBool,
}

impl<B: Backend> DeferredFrees<B> {
    pub(crate) fn new(limits: DeferredLimits, total_memory: usize) -> Self {
        let frees = Self {
            queue: Mutex::new(Rank::DeferredFrees, VecDeque::new()),
            items: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            limit_items: AtomicUsize::new(0),
            limit_ratio: AtomicU64::new(0),
            limit_bytes: AtomicUsize::new(0),
            idle_host: AtomicUsize::new(0),
            deferred: AtomicUsize::new(0),
            is_closed: AtomicBool::new(false),
        };
        frees.set_limits(limits, total_memory);
        frees
    }

    /// Sets the limits beyond which allocations free finished items.
    pub fn set_limits(&self, limits: DeferredLimits, total_memory: usize) {
        let ratio = if limits.ratio.is_nan() { 0.0 } else { limits.ratio.clamp(0.0, 1.0) };
        // Relaxed: each is looked at by itself, by the next allocation or the one after it.
        self.limit_items.store(limits.items, Ordering::Relaxed);
        self.limit_ratio.store(ratio.to_bits(), Ordering::Relaxed);
        self.limit_bytes.store((total_memory as f64 * ratio).floor() as usize, Ordering::Relaxed);
    }

    pub fn limits(&self) -> DeferredLimits {
        // Relaxed: numbers for a look.
        let ratio = f64::from_bits(self.limit_ratio.load(Ordering::Relaxed));
        DeferredLimits { items: self.limit_items.load(Ordering::Relaxed), ratio }
    }

    /// Returns the items and bytes that are pending.
    pub fn pending_frees(&self) -> (usize, usize) {
        // Relaxed: exact under the lock of the queue; without it, of the same moment or one before.
        (self.items.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }

    /// Whether a `defer_cleanup` is in force, of this device or of all.
    #[inline]
    pub fn is_deferred(&self) -> bool {
        // Acquire: with the begin of `defer_cleanup` on another thread, which must hold from then on.
        (self.deferred.load(Ordering::Acquire) > 0 || is_deferred_everywhere())
            && !self.is_closed.load(Ordering::Acquire)
    }

    /// Adds an item, made at this generation of the device.
    pub fn add(&self, item: DeferredFree<B>, generation: u64) {
        // A leaf: drops come here under whatever lock the last reference goes.
        let mut queue = self.queue.lock();
        let (items, bytes) = self.pending_frees();
        self.note_pending(items + 1, bytes.saturating_add(item.bytes()));
        queue.push_back(Pending { item: ManuallyDrop::new(item), generation });
    }

    /// The caller holds the lock of the queue: no other instruction than a store is needed.
    #[inline]
    fn note_pending(&self, items: usize, bytes: usize) {
        // Relaxed: the lock orders writers.
        self.items.store(items, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// Frees the items that are done, if a limit is exceeded. Never waits for the device's work.
    #[inline]
    pub fn sweep(&self, core: &Arc<DeviceCore<B>>) {
        if self.is_exceeded() {
            self.work(core, false);
        }
        // Relaxed: an old sum is looked at one allocation later.
        if self.idle_host.load(Ordering::Relaxed) > self.limit_bytes.load(Ordering::Relaxed) {
            self.bound_idle_host(core);
        }
    }

    /// Frees all items that are done. Never waits for the device's work.
    pub fn free_done(&self, core: &Arc<DeviceCore<B>>) {
        self.work(core, false);
    }

    /// Notes that so many bytes of memory of the host may lie idle in a pool from now on.
    #[inline]
    pub fn note_idle_host(&self, bytes: usize) {
        // Relaxed: an upper bound that the next look makes exact.
        self.idle_host.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Frees idle pieces of host memory, beyond the limit. Never waits for the device's work.
    #[cold]
    fn bound_idle_host(&self, core: &Arc<DeviceCore<B>>) {
        // A resource may wait while it is trimmed.
        if self.is_deferred() || blocking::may_block("trim").is_err() {
            return;
        }
        // Memory that is dropped meanwhile is counted twice, and looked at once more.
        // Relaxed: as above; no other memory depends on it.
        self.idle_host.store(0, Ordering::Relaxed);
        let limit = self.limit_bytes.load(Ordering::Relaxed);
        let (mut idle, mut in_flight) = (0_usize, 0);
        for (_, resource) in core.memory.in_use().filter(|(kind, _)| kind.is_host_accessible()) {
            let free = |has: &MemoryStatistics| has.reserved.saturating_sub(has.allocated);
            let mut has = resource.report().statistics;
            let surplus = free(&has).saturating_sub(limit.saturating_sub(idle));
            if surplus > 0 {
                let keep = has.reserved.saturating_sub(surplus);
                core.trim_one(&resource, Trim { keep, ..Trim::UNUSED });
                has = resource.report().statistics;
            }
            idle = idle.saturating_add(free(&has));
            in_flight = in_flight.max(has.in_flight);
        }
        // The rest of a piece that is partly allocated stays: looking again would not help.
        self.note_idle_host(if in_flight > 0 { idle } else { idle.min(limit) });
    }

    /// As [`sweep`](Self::sweep), where something other than an allocation is made that comes into the queue when it is dropped: no
    /// allocation may follow. Each call looks at two items, so that none pays for many that are still in use.
    #[inline]
    pub fn sweep_some(&self, core: &Arc<DeviceCore<B>>) {
        if self.is_exceeded() {
            self.free_some(core);
        }
    }

    #[inline]
    fn is_exceeded(&self) -> bool {
        let (items, bytes) = self.pending_frees();
        // Relaxed: see the fields.
        items > self.limit_items.load(Ordering::Relaxed) || bytes > self.limit_bytes.load(Ordering::Relaxed)
    }

    fn free_some(&self, core: &Arc<DeviceCore<B>>) {
        if self.is_deferred() {
            return;
        }
        let mut taken: SmallVec<[Pending<B>; FEW]> = SmallVec::new();
        {
            // Only to take items out: giving them back runs code of the user.
            let mut queue = self.queue.lock();
            for _ in 0..FEW {
                let Some(pending) = queue.pop_front() else { break };
                let (items, bytes) = self.pending_frees();
                self.note_pending(items.saturating_sub(1), bytes.saturating_sub(pending.item.bytes()));
                taken.push(pending);
            }
        }
        for pending in taken {
            let generation = pending.generation;
            match give_back(core, pending, false) {
                FreeOutcome::Done(result) => result.unwrap_or_else(|error| note(core, error)),
                FreeOutcome::InUse(item) => self.add(item, generation),
            }
        }
    }

    /// Frees everything, after waiting for its last uses. The bytes of blocks of the driver.
    pub(crate) fn flush(&self, core: &Arc<DeviceCore<B>>) -> usize {
        let mut bytes = 0_usize;
        loop {
            let round = self.work(core, true);
            bytes = bytes.saturating_add(round.bytes);
            // An owner may have held memory of the library, which comes into the queue when it is dropped.
            if !round.has_dropped_owners {
                return bytes;
            }
        }
    }

    /// As `flush`, and also frees idle memory of pools, and idle events. Returns the bytes that have gone back to the driver.
    pub fn flush_all(&self, core: &Arc<DeviceCore<B>>) -> usize {
        if self.is_deferred() {
            return 0;
        }
        let bytes = self.flush(core);
        let bytes = bytes.saturating_add(core.trim_all(Trim::ALL));
        core.foreign_timelines.forget();
        // Pools have dropped their streams, and these their events.
        for event in core.events.take() {
            if let Err(error) = core.note_loss(event.destroy()) {
                note(core, error);
            }
        }
        bytes
    }

    /// Goes through the queue once.
    #[cold]
    fn work(&self, core: &Arc<DeviceCore<B>>, wait: bool) -> Round {
        let mut round = Round::default();
        if self.is_deferred() {
            return round;
        }
        let taken = {
            // All at once, so that an item that is dropped meanwhile waits for the next round.
            let mut queue = self.queue.lock();
            self.note_pending(0, 0);
            mem::take(&mut *queue)
        };
        // The lock is not held while the driver works: others may go on dropping.
        for pending in taken {
            let (is_owned, generation) = (pending.item.is_foreign(), pending.generation);
            let bytes = pending.item.driver_bytes();
            match give_back(core, pending, wait) {
                FreeOutcome::Done(result) => {
                    // An owner may have dropped memory of the library, which is pending now.
                    round.has_dropped_owners |= is_owned;
                    round.bytes = round.bytes.saturating_add(bytes);
                    result.unwrap_or_else(|error| note(core, error));
                }
                FreeOutcome::InUse(item) => self.add(item, generation),
            }
        }
        round
    }

    /// Gives one item back at once, after waiting for its last uses; inside `defer_cleanup` it is only queued.
    ///
    /// # Errors
    /// Returns [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure.
    pub fn free_now(&self, core: &Arc<DeviceCore<B>>, item: DeferredFree<B>, generation: u64) -> Result<()> {
        if self.is_deferred() {
            self.add(item, generation);
            return Ok(());
        }
        match give_back(core, Pending { item: ManuallyDrop::new(item), generation }, true) {
            FreeOutcome::Done(result) => result.map_err(|error| core.place(error)),
            FreeOutcome::InUse(item) => {
                self.add(item, generation);
                Ok(())
            }
        }
    }

    /// Passes everything to a thread of the library, because no flush will come. `defer_cleanup` has ended with the last handle, or was
    /// forgotten; that of all devices may be in force, and holds up no thread of the library's.
    pub fn abandon(&self, core: &Arc<DeviceCore<B>>) {
        // They refer to the device, which is to end.
        core.foreign_timelines.forget();
        // A resource of the user's may have a pool below it, and say nothing of that.
        let holds_memory = core.memory.has_foreign()
            || core.memory.all().any(|resource| resource.report().statistics.reserved > 0);
        // Resources were asked before, since they may be the user's.
        if self.queue.lock().is_empty() && !holds_memory {
            return;
        }
        // Release: with `is_deferred`.
        self.is_closed.store(true, Ordering::Release);
        let last = core.clone();
        // Resources of the user's run here as they do on threads of the system's.
        let thread = std::thread::Builder::new().name("gpumem frees".to_owned());
        let spawned = thread.stack_size(HostFunction::STACK_BYTES).spawn(move || {
            // The end of the process waits until the driver is left alone.
            let _in_driver = DriverUse::new();
            if last.check("flush").is_ok() {
                last.deferred_frees.flush_all(&last);
                // Pools leave their pieces in the queue, and these may be pieces of the device's own pools.
                last.memory.drop_foreign();
                last.deferred_frees.flush_all(&last);
            }
            // The device ends here if this was its last use.
            drop(last);
        });
        if let Err(error) = spawned {
            gpumem_core::tell!(error: %error, device = core.name(), "memory of a closed device is leaked: no thread to free it");
        }
    }
}

/// What one look at the whole queue has freed.
#[derive(Default)]
struct Round {
    has_dropped_owners: bool,
    /// Bytes of blocks of the driver.
    bytes: usize,
}

/// How many items such a call looks at: more than the one that it adds.
const FEW: usize = 2;

enum FreeOutcome<B: Backend> {
    Done(Result<()>),
    InUse(DeferredFree<B>),
}

/// Frees one item, or returns it if it is still in use and this thread is not to wait, or may not. That runs code of the user: the drop
/// of an owner, and memory resources. A panic in it is an error of that item alone.
fn give_back<B: Backend>(core: &Arc<DeviceCore<B>>, pending: Pending<B>, wait: bool) -> FreeOutcome<B> {
    let wait = wait && blocking::may_block("flush").is_ok();
    user_code::run(|| try_give_back(core, pending, wait)).unwrap_or_else(|message| {
        let kind =
            ErrorKind::UserCodePanicked { what: "the drop of a value that a device has used", message };
        FreeOutcome::Done(Err(core.error("flush", kind)))
    })
}

fn try_give_back<B: Backend>(core: &Arc<DeviceCore<B>>, pending: Pending<B>, wait: bool) -> FreeOutcome<B> {
    let Pending { item, generation } = pending;
    if generation != core.generation() && !item.is_foreign() {
        // The reset has freed it already. What is foreign is returned to its owner, unless another device still uses it.
        note_lost(core, &item);
        return FreeOutcome::Done(Ok(()));
    }
    if let Some(uses) = item.uses()
        && !uses.is_over()
    {
        if !wait && !uses.poll() {
            return FreeOutcome::InUse(ManuallyDrop::into_inner(item));
        }
        match if wait { uses.wait() } else { Waited::Over } {
            Waited::Over => {}
            Waited::Refused => return FreeOutcome::InUse(ManuallyDrop::into_inner(item)),
            Waited::Unproven(error) => {
                gpumem_core::tell!(error:
                    bytes = item.bytes(),
                    "memory, or a foreign stream, is leaked: its last use cannot be proven to be over"
                );
                note_lost(core, &item);
                return FreeOutcome::Done(Err(error));
            }
        }
    }
    // From here on nothing uses it any more.
    match ManuallyDrop::into_inner(item) {
        DeferredFree::Memory { mut block, resource } => {
            drop(block.take_uses());
            FreeOutcome::Done(match core.memory.get(resource) {
                Some(resource) => resource.deallocate(block),
                None => Ok(()),
            })
        }
        DeferredFree::Driver { block, stats } => FreeOutcome::Done(stats.release(core, block)),
        DeferredFree::Foreign { owner, memory, .. } => {
            // The bytes belong to their owner from here on, and no enqueued work writes them any more.
            if POISONED.is_any() {
                // SAFETY: the library does not read them again.
                unsafe { POISONED.forget(memory.owner, &memory.range()) };
            }
            drop_in_current(core, owner);
            FreeOutcome::Done(Ok(()))
        }
        DeferredFree::Stream(raw) => match Arc::try_unwrap(raw) {
            Ok(raw) => FreeOutcome::Done(core.note_loss(raw.destroy())),
            // Another thread is waiting for the stream.
            Err(raw) => FreeOutcome::InUse(DeferredFree::Stream(raw)),
        },
        DeferredFree::ForeignStream { raw, owner, uses } => match Arc::try_unwrap(raw) {
            Ok(raw) => {
                let destroyed = core.note_loss(raw.destroy());
                drop_in_current(core, owner);
                FreeOutcome::Done(destroyed)
            }
            // As above: that thread gives its handle to the driver, which the owner may destroy.
            Err(raw) => FreeOutcome::InUse(DeferredFree::ForeignStream { raw, owner, uses }),
        },
        DeferredFree::Event(event) => FreeOutcome::Done(core.note_loss(event.destroy())),
        DeferredFree::Module { module, .. } => {
            drop(module);
            FreeOutcome::Done(Ok(()))
        }
    }
}

/// Drops an owner of foreign memory or of a stream with the device as the thread's current one, whatever thread that is: other libraries
/// free in what is current, and some leave their own there.
fn drop_in_current<B: Backend>(core: &DeviceCore<B>, owner: impl Sized) {
    let mut owner = Some(owner);
    core.raw.with_current(&mut || drop(owner.take()));
}

/// Tells the resource of a block that it does not come back.
fn note_lost<B: Backend>(core: &DeviceCore<B>, item: &DeferredFree<B>) {
    if let DeferredFree::Memory { resource, .. } = item
        && let Some(resource) = core.memory.get(*resource)
    {
        resource.note_lost_block();
    }
}

/// Keeps the error of an item. The driver's have been noted where they came from; a resource of the user's may say anything.
fn note<B: Backend>(core: &DeviceCore<B>, error: Error) {
    // Every later call tells that the device is lost.
    if core.is_usable() || !matches!(error.kind(), ErrorKind::DeviceLost { .. }) {
        core.errors.push(core.place(error));
    }
}

impl<B: Backend> fmt::Debug for DeferredFrees<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (items, bytes) = self.pending_frees();
        f.debug_struct("DeferredFrees").field("items", &items).field("bytes", &bytes).finish_non_exhaustive()
    }
}
