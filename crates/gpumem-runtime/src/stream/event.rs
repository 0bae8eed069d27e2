//! Events.

use crate::{Completion, Stream};
use gpumem_core::{Backend, DriverDevice, ErrorKind, Event as _, EventOptions, NotRecorded, Result};
use gpumem_memory::{
    may_block,
    memory::{DeferredFree, DeviceCore},
    track::{RecordedEvent, Span, Timeline},
};
use std::{
    fmt,
    panic::{RefUnwindSafe, UnwindSafe},
    sync::Arc,
};

/// An event in a stream, made by [`Stream::record_event`]. Cloning it is cheap and gives the same event.
///
/// It stands for the work before it, but for failures that [`Stream::synchronize`] or
/// [`Device::synchronize`](crate::Device::synchronize) had returned before the event was recorded.
#[must_use = "an event that is dropped at once cannot be waited for"]
pub struct Event<B: Backend> {
    timeline: Arc<Timeline<B>>,
    span: Span,
    recorded: Arc<RecordedEvent<B>>,
    timing: Option<Arc<Timed<B>>>,
}

/// A driver's event that remembers the time. Dropping it leaves it to the deferred queue.
struct Timed<B: Backend> {
    /// Taken only in `drop`.
    event: Option<B::Event>,
    core: Arc<DeviceCore<B>>,
    generation: u64,
}

// As a device.
impl<B: Backend> UnwindSafe for Timed<B> {}
impl<B: Backend> RefUnwindSafe for Timed<B> {}

impl<B: Backend> Timed<B> {
    fn event(&self) -> Option<&B::Event> {
        self.event.as_ref()
    }
}

impl<B: Backend> Drop for Timed<B> {
    fn drop(&mut self) {
        match self.event.take() {
            Some(event) if self.core.origin.is_valid() => {
                self.core.deferred_frees.add(DeferredFree::Event(event), self.generation)
            }
            // The driver is another process's, or gone.
            event => std::mem::forget(event),
        }
    }
}

impl<B: Backend> Event<B> {
    pub(crate) fn record(stream: &Stream<B>, options: EventOptions) -> Result<Self> {
        let timeline = stream.timeline();
        timeline.check_for("record", NotRecorded::Event)?;
        let timing = match options.timing {
            true => {
                let core = stream.device().core().clone();
                core.deferred_frees.sweep_some(&core);
                let event = timeline.context.note_loss(timeline.context.raw.create_event(options))?;
                timeline.record_event("record", &event)?;
                Some(Arc::new(Timed { event: Some(event), core, generation: timeline.generation }))
            }
            false => None,
        };
        // After the event that remembers the time, which then is reached with this one.
        let (span, recorded) = timeline.record_now()?;
        Ok(Self { timeline: timeline.clone(), span, recorded, timing })
    }

    pub(crate) fn hold(&self, waiting: &Arc<Timeline<B>>) -> Result<()> {
        waiting.check_for("wait", NotRecorded::Event)?;
        self.timeline.check_event("wait")?;
        if self.timeline.id() == waiting.id() || self.timeline.is_complete(self.span.last) {
            return Ok(());
        }
        waiting.wait_for(&self.timeline, self.span.last, &self.recorded)
    }

    /// Returns whether the work before the event is done. Never blocks.
    /// ```
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let event = device.stream()?.record_event()?;
    /// while !event.query()? {
    ///     std::thread::yield_now();
    /// }
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`AsynchronousFault`](gpumem_core::ErrorKind::AsynchronousFault) if the work failed, each time.
    pub fn query(&self) -> Result<bool> {
        self.timeline.check_event("query")?;
        let ended = match self.timeline.poll_recorded(self.span.last, &self.recorded) {
            Ok(true) => self.timeline.outcome(self.span).map(|()| true),
            pending => pending,
        };
        ended.map_err(|error| error.in_operation("query"))
    }

    /// Blocks until the work before the event is done.
    ///
    /// # Errors
    /// Returns [`AsynchronousFault`](gpumem_core::ErrorKind::AsynchronousFault) if the work failed, each time, and
    /// [`BlockingInCallback`](gpumem_core::ErrorKind::BlockingInCallback) in a callback.
    pub fn synchronize(&self) -> Result<()> {
        may_block("synchronize")?;
        self.timeline.check_event("synchronize")?;
        let result = self.timeline.wait_recorded(self.span.last, &self.recorded).result;
        result
            .and_then(|()| self.timeline.outcome(self.span))
            .map_err(|error| error.in_operation("synchronize"))
    }

    /// Returns the milliseconds from `start` to this event.
    ///
    /// # Errors
    /// Returns [`InvalidArgument`](gpumem_core::ErrorKind::InvalidArgument) unless both were made by
    /// [`Stream::record_timed_event`], and [`NotReady`](gpumem_core::ErrorKind::NotReady) before both are reached.
    pub fn elapsed_since(&self, start: &Self) -> Result<f32> {
        self.timeline.check_event("elapsed_since")?;
        match (start.timing.as_deref().and_then(Timed::event), self.timing.as_deref().and_then(Timed::event))
        {
            (Some(start), Some(end)) => self.timeline.context.note_loss(start.elapsed(end)),
            _ => {
                let why = "an event without a time; make it with record_timed_event";
                Err(self.timeline.context.error("elapsed_since", ErrorKind::InvalidArgument { why }))
            }
        }
    }

    /// Returns a future that is ready once the event is reached.
    pub fn completed(&self) -> Completion {
        Completion::of(&self.timeline, Some((self.span, self.recorded.clone())))
    }
}

impl<B: Backend> Clone for Event<B> {
    fn clone(&self) -> Self {
        Self {
            timeline: self.timeline.clone(),
            span: self.span,
            recorded: self.recorded.clone(),
            timing: self.timing.clone(),
        }
    }
}

impl<B: Backend> fmt::Debug for Event<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("timeline", &self.timeline.id())
            .field("submission", &self.span.last)
            .finish()
    }
}
