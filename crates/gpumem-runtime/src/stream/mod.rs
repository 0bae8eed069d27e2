//! Streams.

mod event;

pub use event::Event;

use crate::{Completion, Device};
use gpumem_core::{
    Backend, DriverDevice, EventOptions, NotRecorded, RawStream, Result, StreamKind, StreamOptions,
    process::DriverUse,
};
use gpumem_memory::{
    may_block,
    memory::{DeferredFree, PendingAccesses},
    track::Timeline,
};
use std::{
    any::Any,
    fmt,
    hash::{Hash, Hasher},
    panic::{RefUnwindSafe, UnwindSafe},
    sync::Arc,
};

/// A queue of work on one device. Cloning it is cheap and gives the same queue.
///
/// Work that is enqueued on one stream runs in order. Between streams the library orders only work that uses the same
/// memory. Operations of a stream return as soon as they are enqueued; their errors surface at the next wait.
pub struct Stream<B: Backend>(Arc<Inner<B>>);

struct Inner<B: Backend> {
    timeline: Arc<Timeline<B>>,
    device: Device<B>,
    /// Keeps a foreign stream alive, or ends it when dropped.
    owner: Option<Box<dyn Any + Send + Sync>>,
    /// The device's own default stream, which outlives this handle.
    is_borrowed: bool,
}

// As a device. Of the owner nothing is used but its drop.
impl<B: Backend> UnwindSafe for Inner<B> {}
impl<B: Backend> RefUnwindSafe for Inner<B> {}

impl<B: Backend> PartialEq for Stream<B> {
    /// Whether both are handles of one queue.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0.timeline, &other.0.timeline)
    }
}

impl<B: Backend> Eq for Stream<B> {}

impl<B: Backend> Hash for Stream<B> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0.timeline).addr().hash(state);
    }
}

impl<B: Backend> Stream<B> {
    pub(crate) fn own(device: &Device<B>, timeline: Arc<Timeline<B>>) -> Self {
        let device = device.for_stream(&timeline);
        Self(Arc::new(Inner { timeline, device, owner: None, is_borrowed: false }))
    }

    pub(crate) fn borrowed(device: &Device<B>, timeline: Arc<Timeline<B>>) -> Self {
        let device = device.for_stream(&timeline);
        Self(Arc::new(Inner { timeline, device, owner: None, is_borrowed: true }))
    }

    pub(crate) fn with_owner(mut self, owner: impl Any + Send + Sync) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.owner = Some(Box::new(owner));
        }
        self
    }

    pub(crate) fn timeline(&self) -> &Arc<Timeline<B>> {
        &self.0.timeline
    }

    /// Returns the device that the stream belongs to.
    pub fn device(&self) -> &Device<B> {
        &self.0.device
    }

    /// Returns which stream this is.
    pub fn kind(&self) -> StreamKind {
        self.0.timeline.kind()
    }

    /// Returns the index of the last submission: how much has been enqueued; 0 in a forked child. For tests and
    /// traces.
    pub fn submission_index(&self) -> u64 {
        self.0.timeline.last_submission()
    }

    /// Returns the driver's handle, for a look. To enqueue work of another library, use
    /// [`raw_scope`](Self::raw_scope).
    ///
    /// # Errors
    /// Returns [`Stale`](gpumem_core::ErrorKind::Stale) after a reset of the device.
    pub fn raw_handle(&self) -> Result<RawStream> {
        self.0.timeline.check("raw_handle")?;
        self.0.timeline.handle("raw_handle")
    }

    /// Waits until everything enqueued so far is done, every staged transfer has landed in its destination, and every
    /// callback has run.
    /// ```
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let stream = device.stream()?;
    /// let mut array = stream.device_array::<f32, _>(1000)?;
    /// stream.fill(&mut array, 1.0)?;
    /// stream.synchronize()?;
    /// assert!(stream.query()?);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`AsynchronousFault`](gpumem_core::ErrorKind::AsynchronousFault) if work of the stream failed, once, and
    /// [`BlockingInCallback`](gpumem_core::ErrorKind::BlockingInCallback) in a callback.
    pub fn synchronize(&self) -> Result<()> {
        may_block("synchronize")?;
        self.0.timeline.check_for("synchronize", NotRecorded::Wait)?;
        self.0.timeline.synchronize().map_err(|error| error.in_operation("synchronize"))
    }

    /// Returns whether everything enqueued so far is done, work of other libraries included. Never blocks.
    ///
    /// # Errors
    /// Returns [`AsynchronousFault`](gpumem_core::ErrorKind::AsynchronousFault) if the work failed, each time until
    /// [`synchronize`](Self::synchronize) has told it.
    pub fn query(&self) -> Result<bool> {
        self.0.timeline.check_for("query", NotRecorded::Look)?;
        self.0.timeline.poll_all().map_err(|error| error.in_operation("query"))
    }

    /// Records an event after everything enqueued so far.
    /// ```
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let stream = device.stream()?;
    /// let array = stream.to_device(&[1, 2, 3])?;
    /// let event = stream.record_event()?;
    /// // .. other work ..
    /// event.synchronize()?; // waits for the copy, and not for what came after it
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure.
    pub fn record_event(&self) -> Result<Event<B>> {
        Event::record(self, EventOptions::default())
    }

    /// Records an event that keeps its time, for [`Event::elapsed_since`].
    /// ```
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let stream = device.stream()?;
    /// let start = stream.record_timed_event()?;
    /// let array = stream.device_array::<f32, _>(1 << 20)?;
    /// let end = stream.record_timed_event()?;
    /// end.synchronize()?;
    /// println!("{} ms", end.elapsed_since(&start)?);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure.
    pub fn record_timed_event(&self) -> Result<Event<B>> {
        Event::record(self, EventOptions { timing: true })
    }

    /// Makes all later work on this stream wait for the event. Arrays need no such call: work that conflicts waits by
    /// itself.
    /// ```
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let (first, second) = (device.stream()?, device.stream()?);
    /// let event = first.record_event()?;
    /// second.wait(&event)?;
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure.
    pub fn wait(&self, event: &Event<B>) -> Result<()> {
        event.hold(&self.0.timeline)
    }

    /// Runs `callback` on a thread of the library once everything enqueued so far is done, with the outcome.
    /// Callbacks of one stream run one after the other, in order. A panic in one goes to [`Device::take_errors`]; a
    /// blocking wait for a device inside one is an error.
    /// ```
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let stream = device.stream()?;
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// stream.add_callback(move |outcome| drop(sender.send(outcome.is_ok())))?;
    /// assert_eq!(receiver.recv(), Ok(true));
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Unsupported`](gpumem_core::ErrorKind::Unsupported) if the system has no thread for it, and
    /// [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure. The callback has not run then.
    pub fn add_callback(&self, callback: impl FnOnce(Result<()>) + Send + 'static) -> Result<()> {
        self.0.timeline.when_done("add_callback", callback)
    }

    /// Returns a future that is ready once everything enqueued so far is done. It holds no borrow.
    /// ```
    /// # use {gpumem_runtime::Stream, gpumem_host::Host}; type Device = gpumem_runtime::Device<Host>;
    /// # let device = Device::open("host")?;
    /// async fn upload(stream: &Stream<Host>) -> gpumem_core::Result<()> {
    ///     let array = stream.to_device(&[1, 2, 3])?;
    ///     stream.completed().await
    /// }
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    pub fn completed(&self) -> Completion {
        Completion::of(&self.0.timeline, None)
    }
}

impl<B: Backend> Device<B> {
    /// Creates a stream.
    /// ```
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let (first, second) = (device.stream()?, device.stream()?);
    /// let array = first.to_device(&[1, 2, 3])?;
    /// let back = second.copy_to_host(&array)?; // waits for the copy on `first` by itself
    /// assert_eq!(back.view()?.to_vec(), [1, 2, 3]);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure.
    pub fn stream(&self) -> Result<Stream<B>> {
        self.stream_with(StreamOptions::default())
    }

    /// Creates a stream with a priority or flags.
    ///
    /// # Errors
    /// Returns [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure.
    pub fn stream_with(&self, options: StreamOptions) -> Result<Stream<B>> {
        self.core().check("stream")?;
        if let Some(recording) = self.recording() {
            return match options.kind {
                StreamKind::New => {
                    Ok(Stream::own(self, Timeline::in_recording(self.core().context(), recording.clone())))
                }
                _ => Err(self.core().not_recordable("stream", NotRecorded::DriverStream)),
            };
        }
        self.core().deferred_frees.sweep_some(self.core());
        let raw = self.core().note_loss(self.core().raw.create_stream(&options))?;
        Ok(Stream::own(self, Timeline::new(self.core().context(), raw, options.kind)))
    }

    /// Returns the stream of operations that name none: one per device, made on first use.
    ///
    /// It is an ordinary stream of the library, not the driver's default stream.
    ///
    /// # Errors
    /// Returns [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure.
    pub fn default_stream(&self) -> Result<Stream<B>> {
        Ok(Stream::borrowed(self, self.default_timeline()?))
    }

    /// Returns the driver's legacy default stream, for use with code that enqueues there. Its implicit ordering with
    /// other streams is not relied on.
    ///
    /// # Errors
    /// Returns [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure.
    pub fn legacy_stream(&self) -> Result<Stream<B>> {
        self.stream_with(StreamOptions { kind: StreamKind::Legacy, ..StreamOptions::default() })
    }

    /// Returns the driver's per-thread default stream: a different stream on each thread. Using the result on another
    /// thread is [`WrongThread`](gpumem_core::ErrorKind::WrongThread).
    ///
    /// # Errors
    /// Returns [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure.
    pub fn per_thread_stream(&self) -> Result<Stream<B>> {
        self.stream_with(StreamOptions { kind: StreamKind::PerThread, ..StreamOptions::default() })
    }

    /// Wraps a foreign stream. It is never destroyed by the library; `owner` is kept until the last use, and dropped
    /// exactly once after it: pass the owner of the stream, or a guard whose `Drop` destroys it.
    ///
    /// # Safety
    /// `raw` names a live stream of this device for as long as `owner` lives.
    ///
    /// # Errors
    /// Returns [`Unsupported`](gpumem_core::ErrorKind::Unsupported) if the backend has no foreign streams, and
    /// [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure.
    pub unsafe fn external_stream(
        &self,
        raw: RawStream,
        owner: impl std::any::Any + Send + Sync,
    ) -> Result<Stream<B>> {
        self.core().check("external_stream")?;
        if self.recording().is_some() {
            return Err(self.core().not_recordable("external_stream", NotRecorded::DriverStream));
        }
        self.core().deferred_frees.sweep_some(self.core());
        // SAFETY: the caller's promise; the owner lives as long as the stream below.
        let raw = unsafe { self.core().raw.wrap_stream(raw) };
        let raw = self.core().note_loss(raw)?;
        Ok(Stream::own(self, Timeline::new(self.core().context(), raw, StreamKind::New)).with_owner(owner))
    }
}

impl<B: Backend> Drop for Inner<B> {
    fn drop(&mut self) {
        let core = self.device.core();
        if self.is_borrowed || !core.origin.is_valid() {
            if let Some(owner) = self.owner.take() {
                std::mem::forget(owner);
            }
            return;
        }
        let (raw, is_kept) = self.timeline.end();
        let Some(raw) = raw else { return };
        let Some(owner) = self.owner.take() else {
            return core.deferred_frees.add(DeferredFree::Stream(raw), self.timeline.generation);
        };
        if is_kept {
            std::mem::forget((raw, owner));
            return gpumem_core::tell!(error: "the owner of a foreign stream that is captured is leaked");
        }
        let mut uses = PendingAccesses::none();
        uses.add_owned(self.timeline.clone(), self.timeline.last_submission());
        core.deferred_frees.add(DeferredFree::ForeignStream { raw, owner, uses }, self.timeline.generation);
        // As soon as the last work is done. Where the stream is refused now, the next call that frees memory looks. The device stays open
        // until then: what is put back in the queue is freed when it is closed.
        let device = self.device.outside_recording();
        let end = move |_| {
            // The end of the process waits until the driver is left alone.
            let _in_driver = DriverUse::new();
            if device.core().check("drop of a stream").is_ok() {
                device.core().deferred_frees.free_done(device.core());
            }
        };
        let _ = self.timeline.when_done("drop of a stream", end);
    }
}

impl<B: Backend> Clone for Stream<B> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<B: Backend> fmt::Debug for Stream<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("device", &self.0.device).field("timeline", &self.0.timeline).finish()
    }
}
