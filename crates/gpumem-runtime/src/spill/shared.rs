//! The state that the arrays of a manager share: the order in which they leave, and the counts of their bytes.

use super::options::{SpillOptions, SpillOrder};
use crate::{Device, Stream, memory::ReclaimHook};
use gpumem_core::{Backend, ErrorKind, MemoryKind, Result, SpillPressure};
use gpumem_memory::memory::Spilling;
use parking_lot::Mutex;
use std::{
    cmp::Reverse,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

/// An array of a manager.
pub(super) trait Member<B: Backend>: Send + Sync {
    /// The manager's clock at the last use.
    fn last_use(&self) -> u64;

    /// Makes the array leave the device, if nothing else has a handle of its memory. Returns the bytes that it had there, 0 if it
    /// stays or is not there.
    ///
    /// # Errors
    /// Returns the error of the copy; then the array stays.
    fn evict(&self, operation: &'static str) -> Result<usize>;

    /// Where its bytes are; nowhere while it moves.
    fn pressure(&self) -> SpillPressure;

    /// The name of its memory.
    fn name(&self) -> Option<&Arc<str>>;

    /// Frees the page-locked copy of an array that is on the device as well. Returns its bytes.
    fn drop_copy(&self) -> usize;

    /// As [`evict`](Self::evict), until [`wake`](Self::wake).
    ///
    /// # Errors
    /// As for `evict`.
    fn put_to_sleep(&self, operation: &'static str) -> Result<usize>;

    /// Brings back an array that sleeps. Returns its bytes, 0 if it does not sleep.
    ///
    /// # Errors
    /// As for [`Spillable::get`](super::Spillable::get).
    fn wake(&self, operation: &'static str, stream: &Stream<B>) -> Result<usize>;
}

/// The state that the arrays of a manager share.
pub(super) struct Manager<B: Backend> {
    device: Device<B>,
    /// The stream of the copies to the host, beside the work of others.
    stream: Stream<B>,
    options: SpillOptions,
    /// Not held when anything else is called.
    cells: Mutex<Vec<Weak<dyn Member<B>>>>,
    /// Counts the uses of all arrays, to order them.
    clock: AtomicU64,
    device_bytes: AtomicUsize,
    host_bytes: AtomicUsize,
    downloaded: AtomicUsize,
    uploaded: AtomicUsize,
    /// Counts how often an array has come to the device.
    arrivals: AtomicU64,
    /// Makes room when an allocation finds none. It has a weak reference to this.
    hook: OnceLock<ReclaimHook>,
}

impl<B: Backend> Manager<B> {
    pub(super) fn new(device: &Device<B>, options: SpillOptions) -> Result<Arc<Self>> {
        let manager = Arc::new(Self {
            device: device.clone(),
            stream: device.stream()?,
            options,
            cells: Mutex::default(),
            clock: AtomicU64::new(0),
            device_bytes: AtomicUsize::new(0),
            host_bytes: AtomicUsize::new(0),
            downloaded: AtomicUsize::new(0),
            uploaded: AtomicUsize::new(0),
            arrivals: AtomicU64::new(0),
            hook: OnceLock::new(),
        });
        let weak = Arc::downgrade(&manager);
        let hook = device.on_exhaustion(move |need| {
            let Some(manager) = weak.upgrade() else { return false };
            match need.kind {
                MemoryKind::Device => manager.free(need.operation, need.bytes),
                MemoryKind::Pinned => manager.free_copies(need.bytes) > 0,
                _ => false,
            }
        })?;
        // It is empty until now.
        let _ = manager.hook.set(hook);
        let weak: Weak<Self> = Arc::downgrade(&manager);
        device.core().reclaim.add_spilling(weak);
        Ok(manager)
    }

    pub(super) fn options(&self) -> SpillOptions {
        self.options
    }

    pub(super) fn report(&self) -> SpillReport {
        // Relaxed: each is a count of its own, which other threads change meanwhile.
        SpillReport {
            device_bytes: self.device_bytes.load(Ordering::Relaxed),
            host_bytes: self.host_bytes.load(Ordering::Relaxed),
            downloaded_bytes: self.downloaded.load(Ordering::Relaxed),
            uploaded_bytes: self.uploaded.load(Ordering::Relaxed),
        }
    }

    pub(super) fn device(&self) -> &Device<B> {
        &self.device
    }

    pub(super) fn stream(&self) -> &Stream<B> {
        &self.stream
    }

    /// The next moment of the clock. Relaxed: moments of several threads may be in either order.
    pub(super) fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn register(&self, cell: Weak<dyn Member<B>>) {
        let mut cells = self.cells.lock();
        // Before the table grows, so that dropped arrays cost a constant time each.
        if cells.len() == cells.capacity() {
            cells.retain(|cell| cell.strong_count() > 0);
        }
        cells.push(cell);
    }

    /// All arrays, by their last uses.
    pub(super) fn sorted(&self, order: SpillOrder) -> Vec<Arc<dyn Member<B>>> {
        let mut cells: Vec<_> = self.cells.lock().iter().filter_map(Weak::upgrade).collect();
        // Each is asked once: other threads use the arrays meanwhile, and a sort may panic where an answer changes.
        match order {
            SpillOrder::LeastRecent => cells.sort_by_cached_key(|cell| cell.last_use()),
            SpillOrder::MostRecent => cells.sort_by_cached_key(|cell| Reverse(cell.last_use())),
        }
        cells
    }

    /// Makes arrays leave until their bytes reach `bytes`. Returns whether there may be room now.
    fn free(&self, operation: &'static str, bytes: usize) -> bool {
        // Relaxed: an old count is a look in vain.
        let arrivals = || self.arrivals.load(Ordering::Relaxed);
        let (mut freed, before) = (0, arrivals());
        for cell in self.sorted(self.options.order) {
            if freed >= bytes {
                break;
            }
            match cell.evict(operation) {
                Ok(bytes) => freed += bytes,
                // It stays, and others may leave. Its own user is told what is wrong with it.
                Err(error) => gpumem_core::tell!(debug: %error, "an array cannot leave the device"),
            }
        }
        // What another thread has brought back meanwhile may leave now.
        freed > 0 || arrivals() != before
    }

    /// Frees page-locked copies of arrays that are on the device as well. Returns their bytes.
    fn free_copies(&self, bytes: usize) -> usize {
        let mut freed = 0;
        for cell in self.sorted(self.options.order) {
            if freed >= bytes {
                break;
            }
            freed += cell.drop_copy();
        }
        freed
    }

    /// Takes so much of the page-locked memory that the options allow.
    pub(super) fn reserve_host(
        self: &Arc<Self>,
        operation: &'static str,
        bytes: usize,
    ) -> Result<Counted<B>> {
        let total = self.options.host_bytes;
        let reserve = || {
            let fits = |used: usize| used.checked_add(bytes).filter(|used| *used <= total);
            // Relaxed: a count, which orders nothing.
            self.host_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
        };
        let mut reserved = reserve();
        if reserved.is_err() && self.free_copies(bytes) > 0 {
            reserved = reserve();
        }
        match reserved {
            Ok(_) => Ok(Counted { manager: self.clone(), count: |manager| &manager.host_bytes, bytes }),
            Err(used) => {
                let (kind, free) = (MemoryKind::Pinned.name(), total.saturating_sub(used));
                let kind = ErrorKind::OutOfMemory { requested: bytes, kind, free, total, pressure: None };
                Err(self.device.core().error(operation, kind))
            }
        }
    }

    /// Counts bytes on the device.
    pub(super) fn count_device(self: &Arc<Self>, bytes: usize) -> Counted<B> {
        self.device_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.arrivals.fetch_add(1, Ordering::Relaxed);
        Counted { manager: self.clone(), count: |manager| &manager.device_bytes, bytes }
    }

    pub(super) fn note_downloaded(&self, bytes: usize) {
        self.downloaded.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn note_uploaded(&self, bytes: usize) {
        self.uploaded.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl<B: Backend> Spilling for Manager<B> {
    fn pressure(&self) -> SpillPressure {
        let each = self.sorted(SpillOrder::LeastRecent).into_iter().map(|cell| cell.pressure());
        each.fold(SpillPressure::default(), SpillPressure::plus)
    }
}

/// The bytes of the arrays of a [`SpillManager`](super::SpillManager).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SpillReport {
    /// Bytes of arrays that are on the device.
    pub device_bytes: usize,
    /// Bytes of page-locked copies, those of arrays that are on the device as well among them.
    pub host_bytes: usize,
    /// Bytes that have been copied to page-locked memory so far.
    pub downloaded_bytes: usize,
    /// Bytes that have been copied to the device so far, those of files among them.
    pub uploaded_bytes: usize,
}

/// Bytes that are counted until this is dropped.
pub(super) struct Counted<B: Backend> {
    manager: Arc<Manager<B>>,
    count: fn(&Manager<B>) -> &AtomicUsize,
    bytes: usize,
}

impl<B: Backend> Drop for Counted<B> {
    fn drop(&mut self) {
        (self.count)(&self.manager).fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
