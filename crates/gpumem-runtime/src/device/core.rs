//! What everything on a device shares, and what does not keep the device's memory alive.

use crate::{
    memory::{
        DeferredFrees, DeferredLimits, LateMemory, Names, PinnedPages, ResourceTable, Serving, Trim, TrimHook,
    },
    track::{EventPool, ForeignTimelinePool, Timeline},
};
use gpumem_core::{Backend, Error, ErrorKind, Result, process::ProcessGuard};
use gpumem_trace::log::Recorder;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use super::{counters::Counters, errors::ErrorQueue};

/// The driver's device with the state that streams, events and allocations refer to. What every submission reads comes
/// first, in one cache line.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct DeviceCore<B: Backend> {
    /// The driver's device.
    pub raw: B::Device,
    /// The process that opened the device.
    pub origin: ProcessGuard,
    generation: AtomicU64,
    /// The number of the device among those of its backend.
    pub(crate) ordinal: usize,
    /// Why the device is lost. In a box, which leaves room for others in the line.
    lost: OnceLock<Box<str>>,
    pub(crate) recorder: Recorder,
    pub(crate) events: EventPool<B>,
    pub(crate) foreign_timelines: ForeignTimelinePool<B>,
    pub(crate) memory: ResourceTable<B>,
    pub(crate) deferred_frees: DeferredFrees<B>,
    pub(crate) late: LateMemory,
    pub(crate) names: Names,
    pub(crate) trim_hook: TrimHook,
    pub(crate) errors: ErrorQueue,
    /// What has been asked of the device.
    pub counters: Arc<Counters>,
    pub(crate) pages: PinnedPages<B>,
    /// Pinned, mapped and managed arrays that are alive: the host may be looking at them. And arrays of the caller that are
    /// page-locked: they must be unlocked by the device that locked them.
    pub(crate) host_memory: AtomicUsize,
    /// The streams that are alive, so that a wait for the device can finish what hangs on each.
    timelines: Mutex<Vec<Weak<Timeline<B>>>>,
    /// See [`unknown_streams`](Self::unknown_streams).
    unknown_streams: Mutex<Weak<Timeline<B>>>,
}

impl<B: Backend> DeviceCore<B> {
    pub(crate) fn new(raw: B::Device) -> Self {
        let limits = DeferredLimits::from_environment();
        let info = B::info(&raw);
        let (deferred_frees, ordinal) = (DeferredFrees::new(limits, info.total_memory), info.ordinal);
        Self {
            raw,
            ordinal,
            origin: ProcessGuard::current(),
            events: EventPool::new(),
            foreign_timelines: ForeignTimelinePool::new(),
            memory: ResourceTable::new(),
            deferred_frees,
            late: LateMemory::default(),
            names: Names::default(),
            trim_hook: TrimHook::default(),
            pages: PinnedPages::default(),
            errors: ErrorQueue::default(),
            counters: Arc::default(),
            recorder: Recorder::default(),
            host_memory: AtomicUsize::new(0),
            timelines: Mutex::new(Vec::new()),
            unknown_streams: Mutex::new(Weak::new()),
            generation: AtomicU64::new(first_generation()),
            lost: OnceLock::new(),
        }
    }

    pub(crate) fn add_timeline(&self, timeline: &Arc<Timeline<B>>) {
        let mut timelines = self.timelines.lock();
        timelines.retain(|timeline| timeline.strong_count() > 0);
        timelines.push(Arc::downgrade(timeline));
    }

    pub(crate) fn timelines(&self) -> Vec<Arc<Timeline<B>>> {
        self.timelines.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// The timeline of whatever others enqueue on streams that they have not named: one while anything refers to it, so
    /// that a log in which loans come and go has one entry for them all.
    pub(crate) fn unknown_streams(self: &Arc<Self>) -> Arc<Timeline<B>> {
        let mut unknown_streams = self.unknown_streams.lock();
        if let Some(known) = unknown_streams.upgrade().filter(|known| !known.is_stale()) {
            return known;
        }
        let new = Timeline::for_unknown_streams(self);
        *unknown_streams = Arc::downgrade(&new);
        new
    }

    /// Gives back what the resources hold and have not allocated. Failures go to the queue of errors. Bytes that went
    /// back.
    pub(crate) fn trim_all(&self, how: Trim) -> usize {
        self.memory.all().fold(0, |bytes, resource| bytes.saturating_add(self.trim_one(resource, how)))
    }

    /// As [`trim_all`](Self::trim_all), of one resource.
    pub(crate) fn trim_one(&self, resource: Serving<'_, B>, how: Trim) -> usize {
        let mut failed = |error| {
            if let Err(error) = self.note_loss::<()>(Err(error)) {
                self.errors.push(error);
            }
        };
        resource.trim(how, &mut failed)
    }

    /// A number that no other device has, and that a reset changes. Handles of another generation are stale, or of another
    /// device.
    #[inline]
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    pub(crate) fn next_generation(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether the device may be used: the right process, and not lost. [`check`](Self::check) says why not.
    #[inline]
    pub(crate) fn is_usable(&self) -> bool {
        self.origin.is_valid() && self.lost.get().is_none()
    }

    /// Whether the device may be used.
    #[inline]
    pub fn check(&self, operation: &'static str) -> Result<()> {
        self.check_process(operation)?;
        match self.lost.get() {
            None => Ok(()),
            Some(cause) => Err(self.error(operation, ErrorKind::DeviceLost { cause: cause.to_string() })),
        }
    }

    /// Whether this is the process that opened the device, and it is not ending.
    #[inline]
    pub(crate) fn check_process(&self, operation: &'static str) -> Result<()> {
        self.origin.check("", operation).map_err(|error| self.place(error))
    }

    /// Remembers the first report that the device is lost, and adds the device to errors of the backend.
    #[inline]
    pub fn note_loss<R>(&self, result: Result<R>) -> Result<R> {
        result.map_err(|error| self.note_loss_in(error))
    }

    #[cold]
    fn note_loss_in(&self, error: Error) -> Error {
        if let ErrorKind::DeviceLost { cause } = error.kind() {
            let _ = self.lost.set(cause.as_str().into());
        }
        self.place(error)
    }

    /// Makes an error of `operation` on this device.
    #[cold]
    #[inline(never)]
    pub fn error(&self, operation: &'static str, kind: impl Into<ErrorKind>) -> Error {
        self.place(Error::new("", operation, kind))
    }

    /// Adds this device to an error that names none.
    #[cold]
    #[inline(never)]
    pub fn place(&self, error: Error) -> Error {
        let info = B::info(&self.raw);
        error.on_device(info.backend, info.ordinal)
    }

    /// The device as users name it.
    pub fn name(&self) -> String {
        let info = B::info(&self.raw);
        format!("{}:{}", info.backend, info.ordinal)
    }

    /// Whether both are the same device of the same backend.
    pub fn is_same(&self, other: &Self) -> bool {
        if std::ptr::eq(self, other) {
            return true;
        }
        let (a, b) = (B::info(&self.raw), B::info(&other.raw));
        a.ordinal == b.ordinal && a.backend == b.backend
    }
}

/// Where the generations of a device begin: no two devices of the process share any.
fn first_generation() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed) << RESETS_BITS
}

/// The lower bits of a generation count resets; those above name the device.
const RESETS_BITS: u32 = 32;

/// Whether two generations are of the same device.
pub(crate) fn is_same_device(one: u64, other: u64) -> bool {
    one >> RESETS_BITS == other >> RESETS_BITS
}
