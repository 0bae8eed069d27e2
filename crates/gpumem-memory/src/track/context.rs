//! The state that all streams of a device share.

use super::{
    Timeline, counters::Counters, errors::ErrorQueue, foreign_timelines::ForeignTimelinePool,
    recorded_event::EventPool,
};
use gpumem_core::{Backend, DriverDevice, Error, ErrorKind, Result, process::ProcessGuard};
use gpumem_trace::log::Recorder;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// Most failures of streams that are gone which are kept.
const LEFT_FAILURES: usize = 16;

/// The driver's device with the state that streams, events and accesses refer to. The fields that every submission
/// reads come first, in one cache line.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct DeviceContext<B: Backend> {
    /// The driver's device.
    pub raw: B::Device,
    /// The process that opened the device.
    pub origin: ProcessGuard,
    generation: AtomicU64,
    /// The number of the device among those of its backend.
    pub ordinal: usize,
    /// Why the device is lost. In a box, which leaves room for others in the line.
    lost: OnceLock<Box<str>>,
    /// The recorder of memory events.
    pub recorder: Recorder,
    /// Events that are not in use.
    pub events: EventPool<B>,
    /// Timelines of streams of others, to be used again.
    pub foreign_timelines: ForeignTimelinePool<B>,
    /// Errors that no call could return.
    pub errors: ErrorQueue,
    /// Counts of the requests to the device.
    pub counters: Arc<Counters>,
    /// The streams that are alive, so that a wait for the device can finish the pending work of each.
    timelines: Mutex<Vec<Weak<Timeline<B>>>>,
    /// Failures of streams that are gone, until a wait for the device tells them.
    left_failures: Mutex<Vec<Error>>,
    /// See [`unknown_streams`](Self::unknown_streams).
    unknown_streams: Mutex<Weak<Timeline<B>>>,
}

impl<B: Backend> DeviceContext<B> {
    /// Takes over a device of the driver.
    pub fn new(raw: B::Device) -> Self {
        let ordinal = raw.info().ordinal;
        Self {
            raw,
            ordinal,
            origin: ProcessGuard::current(),
            events: EventPool::new(),
            foreign_timelines: ForeignTimelinePool::new(),
            errors: ErrorQueue::default(),
            counters: Arc::default(),
            recorder: Recorder::default(),
            timelines: Mutex::new(Vec::new()),
            left_failures: Mutex::default(),
            unknown_streams: Mutex::new(Weak::new()),
            generation: AtomicU64::new(first_generation()),
            lost: OnceLock::new(),
        }
    }

    /// Adds a stream.
    pub fn add_timeline(&self, timeline: &Arc<Timeline<B>>) {
        let mut timelines = self.timelines.lock();
        timelines.retain(|timeline| timeline.strong_count() > 0);
        timelines.push(Arc::downgrade(timeline));
    }

    /// Returns the streams that are alive.
    pub fn timelines(&self) -> Vec<Arc<Timeline<B>>> {
        self.timelines.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// Keeps the failure of a stream that is gone, and that no caller was told of, for the next wait for the device.
    #[cold]
    pub(super) fn leave_failure(&self, error: Error) {
        let error = self.place(error);
        tracing::error!("a stream was dropped with a failure: {error}");
        let mut left = self.left_failures.lock();
        if left.len() < LEFT_FAILURES {
            left.push(error);
        }
    }

    /// Takes the failures of streams that are gone.
    pub fn take_left_failures(&self) -> Vec<Error> {
        std::mem::take(&mut *self.left_failures.lock())
    }

    /// The timeline of the work on unknown streams: one while anything refers to it, so that a log has one entry for
    /// all such loans.
    pub fn unknown_streams(self: &Arc<Self>) -> Arc<Timeline<B>> {
        let mut unknown_streams = self.unknown_streams.lock();
        if let Some(known) = unknown_streams.upgrade().filter(|known| !known.is_stale()) {
            return known;
        }
        let new = Timeline::for_unknown_streams(self);
        *unknown_streams = Arc::downgrade(&new);
        new
    }

    /// A number that no other device has, and that a reset changes. Handles of another generation are stale, or of another
    /// device.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Makes everything stale that was made before.
    pub fn next_generation(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether the device may be used: the right process, and not lost. [`check`](Self::check) says why not.
    #[inline]
    pub fn is_usable(&self) -> bool {
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
    pub fn check_process(&self, operation: &'static str) -> Result<()> {
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
        let info = self.raw.info();
        error.on_device(info.backend, info.ordinal)
    }

    /// The device as users name it.
    pub fn name(&self) -> String {
        let info = self.raw.info();
        format!("{}:{}", info.backend, info.ordinal)
    }

    /// Whether both are the same device of the same backend.
    pub fn is_same(&self, other: &Self) -> bool {
        if std::ptr::eq(self, other) {
            return true;
        }
        let (a, b) = (self.raw.info(), other.raw.info());
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
pub fn is_same_device(one: u64, other: u64) -> bool {
    one >> RESETS_BITS == other >> RESETS_BITS
}
