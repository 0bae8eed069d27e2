//! The state that all streams of a device share, and the errors that no call could return.

use super::{Timeline, counters::Counters, events::EventPool, foreign_timelines::ForeignTimelinePool};
use crate::{
    sync::{PlainMutex, Rank},
    trace::Recorder,
};
use gpumem_core::{Backend, DriverDevice, Error, ErrorKind, Result, process::ProcessGuard};
use std::{
    collections::VecDeque,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

/// Most failures of streams that are gone which are kept. Those beyond are counted.
const LEFT_FAILURES: usize = 16;

/// The driver's device with the state that streams, events and accesses refer to. The fields that every submission
/// reads come first, in one cache line.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct DeviceContext<B: Backend> {
    pub raw: B::Device,
    /// The process that opened the device.
    pub origin: ProcessGuard,
    generation: AtomicU64,
    /// The number of the device among those of its backend.
    pub ordinal: usize,
    /// Why the device is lost. In a box, which leaves room for others in the line.
    lost: OnceLock<Box<str>>,
    pub recorder: Recorder,
    pub events: EventPool<B>,
    /// Timelines of streams of others, to be used again.
    pub foreign_timelines: ForeignTimelinePool<B>,
    pub errors: ErrorQueue,
    pub counters: Arc<Counters>,
    /// The streams that are alive, so that a wait for the device can finish the pending work of each.
    timelines: PlainMutex<Vec<Weak<Timeline<B>>>>,
    /// Other devices whose streams have waited for those of this one.
    pub(super) dependents: PlainMutex<Vec<Weak<Self>>>,
    /// Failures of streams that are gone, until a wait for the device tells them.
    left_failures: PlainMutex<LeftFailures>,
    /// See [`unknown_streams`](Self::unknown_streams).
    unknown_streams: PlainMutex<Weak<Timeline<B>>>,
}

#[derive(Debug, Default)]
struct LeftFailures {
    /// The oldest.
    kept: Vec<Error>,
    /// How many there were beyond them.
    more: usize,
}

impl<B: Backend> DeviceContext<B> {
    pub fn new(raw: B::Device) -> Self {
        let ordinal = raw.info().ordinal;
        Self {
            raw,
            ordinal,
            origin: ProcessGuard::current(),
            events: EventPool::new(),
            foreign_timelines: ForeignTimelinePool::new(),
            errors: ErrorQueue::new(),
            counters: Arc::default(),
            recorder: Recorder::default(),
            timelines: PlainMutex::new(Rank::Timelines, Vec::new()),
            dependents: PlainMutex::new(Rank::Dependents, Vec::new()),
            left_failures: PlainMutex::new(Rank::LeftFailures, LeftFailures::default()),
            unknown_streams: PlainMutex::new(Rank::UnknownStreams, Weak::new()),
            generation: AtomicU64::new(first_generation()),
            lost: OnceLock::new(),
        }
    }

    pub fn add_timeline(&self, timeline: &Arc<Timeline<B>>) {
        // Only weak references are dropped under it, which run no code.
        let mut timelines = self.timelines.lock();
        timelines.retain(|timeline| timeline.strong_count() > 0);
        timelines.push(Arc::downgrade(timeline));
    }

    /// Returns the streams that are alive.
    pub fn timelines(&self) -> Vec<Arc<Timeline<B>>> {
        // Collected first: the last reference to a stream is not dropped under the lock.
        self.timelines.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// Keeps the failure of a stream that is gone, and that no caller was told of, for the next wait for the device.
    #[cold]
    pub(super) fn leave_failure(&self, error: Error) {
        let error = self.place(error);
        // A stream may be dropped under any lock of the crate, so this one comes after them, and nothing is called under it: nor
        // is a subscriber of tracing, before the device ends.
        let mut left = self.left_failures.lock();
        if left.kept.len() < LEFT_FAILURES {
            left.kept.push(error);
        } else {
            left.more = left.more.saturating_add(1);
        }
    }

    /// Notes another device, of which a stream is about to wait for one of this device.
    pub(super) fn note_dependent(&self, context: &Arc<Self>) {
        // Only weak references are dropped under it, which run no code.
        let mut dependents = self.dependents.lock();
        if !dependents.iter().any(|known| known.as_ptr() == Arc::as_ptr(context)) {
            dependents.retain(|known| known.strong_count() > 0);
            dependents.push(Arc::downgrade(context));
        }
    }

    /// Takes the failures of streams that are gone. One that was only counted looks like the last one kept.
    pub fn take_left_failures(&self) -> impl Iterator<Item = Error> + use<B> {
        let LeftFailures { kept, more } = std::mem::take(&mut *self.left_failures.lock());
        let last = kept.last().cloned();
        kept.into_iter().chain(last.into_iter().flat_map(move |last| std::iter::repeat_n(last, more)))
    }

    /// The timeline of the work on unknown streams: one while anything refers to it, so that a log has one entry for
    /// all such loans.
    pub fn unknown_streams(self: &Arc<Self>) -> Arc<Timeline<B>> {
        // Held while it is made: two loans at once must share one. Its queue is new, so no thread waits for that.
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
        // Acquire: with the reset. Who sees the new number sees that everything older has ended.
        self.generation.load(Ordering::Acquire)
    }

    /// Makes everything stale that was made before.
    pub fn next_generation(&self) {
        // AcqRel: a reset passes on what it has ended, and follows the reset before it.
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
            // The first cause stays: later ones follow from it.
            let _ = self.lost.set(cause.as_str().into());
        }
        self.place(error)
    }

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

    /// Refuses what belongs to another device.
    ///
    /// # Errors
    /// Returns [`WrongDevice`](ErrorKind::WrongDevice).
    #[inline]
    pub fn check_same(&self, operation: &'static str, what: &'static str, of: &Self) -> Result<()> {
        if self.is_same(of) { Ok(()) } else { Err(self.other(operation, what, of)) }
    }

    #[cold]
    fn other(&self, operation: &'static str, what: &'static str, of: &Self) -> Error {
        let (has, wants) = (of.name(), self.name());
        self.error(operation, ErrorKind::WrongDevice { what, has, wants })
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

impl<B: Backend> Drop for DeviceContext<B> {
    fn drop(&mut self) {
        if self.origin.is_valid() {
            let tell = |error| gpumem_core::tell!(error: "a stream was dropped with a failure: {error}");
            self.take_left_failures().for_each(tell);
        }
    }
}

/// Where the generations of a device begin: no two devices of the process share any.
fn first_generation() -> u64 {
    // Relaxed: the numbers only have to differ.
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed) << RESETS_BITS
}

/// The lower bits of a generation count resets; those above name the device.
const RESETS_BITS: u32 = 32;

/// Whether two generations are of the same device.
pub fn is_same_device(one: u64, other: u64) -> bool {
    one >> RESETS_BITS == other >> RESETS_BITS
}

/// Most errors that are kept. Further ones push out the oldest.
const ERRORS: usize = 64;

/// Errors of a `Drop` or of a callback, until `Device::take_errors` takes them. Never returned from an unrelated call.
#[derive(Debug)]
pub struct ErrorQueue {
    /// In a forked child a thread of the parent may hold the lock for ever, and that of a subscriber.
    origin: ProcessGuard,
    queue: PlainMutex<VecDeque<Error>>,
}

impl ErrorQueue {
    fn new() -> Self {
        let queue = PlainMutex::new(Rank::Errors, VecDeque::new());
        Self { origin: ProcessGuard::current(), queue }
    }

    /// Adds an error; a full queue drops its oldest. Does nothing in a forked child.
    pub fn push(&self, error: Error) {
        if !self.origin.is_valid() {
            return;
        }
        // A panic of the subscriber ends here. Callers are destructors and loops over several failures: unwinding would skip waits for
        // memory that the user has lent.
        gpumem_core::tell!(error: %error, "no call could return this error");
        // After the message, which runs code of the subscriber; the oldest error is dropped without the lock.
        let mut queue = self.queue.lock();
        let oldest = if queue.len() >= ERRORS { queue.pop_front() } else { None };
        queue.push_back(error);
        drop(queue);
        drop(oldest);
    }

    /// Joins two outcomes of one call, which returns the first failure. A second one is added here.
    pub fn first_of(&self, first: Result<()>, second: Result<()>) -> Result<()> {
        match (first, second) {
            (Err(first), Err(second)) => {
                self.push(second);
                Err(first)
            }
            (first, second) => first.and(second),
        }
    }

    /// Takes the errors out; in a forked child there are none.
    pub fn take(&self) -> Vec<Error> {
        if !self.origin.is_valid() {
            return Vec::new();
        }
        // The errors are given to the caller: nothing is dropped under the lock.
        self.queue.lock().drain(..).collect()
    }
}
