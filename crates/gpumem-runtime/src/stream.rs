//! Streams.

use crate::{
    ArrayBase, Completion, Device, DeviceArray, Event, HostArray, HostKind, PinnedArray, Scope, Storage,
    StorageMut, ToDevice, UninitArray, completion,
    layout::IntoArraySpec,
    memory::DeferredFree,
    scope,
    track::Timeline,
    transfer::{self, ArrayRef},
};
use gpumem_core::{Backend, Element, EventOptions, RawStream, Result, Stream as _, StreamKind};
use ndarray::Dimension;
use std::{any::Any, fmt, mem::ManuallyDrop, sync::Arc};

/// A queue of work on one device. Cloning it is cheap and gives the same queue.
///
/// What is enqueued on one stream runs in order. Between streams the library orders what touches the same memory, and
/// only that. Operations of a stream return as soon as they are enqueued; their errors surface at the next wait.
pub struct Stream<B: Backend>(Arc<Inner<B>>);

struct Inner<B: Backend> {
    timeline: Arc<Timeline<B>>,
    device: Device<B>,
    /// Keeps a foreign stream alive, or ends it when dropped.
    owner: Option<Box<dyn Any + Send + Sync>>,
    /// The device's own default stream, which outlives this handle.
    lent: bool,
}

impl<B: Backend> Stream<B> {
    pub(crate) fn own(device: &Device<B>, timeline: Arc<Timeline<B>>) -> Self {
        let device = device.for_stream(&timeline);
        Self(Arc::new(Inner { timeline, device, owner: None, lent: false }))
    }

    pub(crate) fn lend(device: &Device<B>, timeline: Arc<Timeline<B>>) -> Self {
        let device = device.for_stream(&timeline);
        Self(Arc::new(Inner { timeline, device, owner: None, lent: true }))
    }

    pub(crate) fn with_owner(mut self, owner: impl Any + Send + Sync) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.owner = Some(Box::new(owner));
        }
        self
    }

    #[doc(hidden)]
    pub fn timeline(&self) -> &Arc<Timeline<B>> {
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

    /// Returns the index of the last submission: how much has been enqueued. For tests and traces.
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
        self.0.timeline.with_raw("raw_handle", |raw| Ok(raw.raw()))
    }

    /// Waits until everything enqueued so far is done, every staged transfer has landed in its destination, and every
    /// callback has run.
    ///
    /// # Examples
    /// ```
    /// # use gpumem_host::Host;
    /// # type Device = gpumem_runtime::Device<Host>;
    /// # fn main() -> gpumem_core::Result<()> {
    /// # let device = Device::open("host")?;
    /// let stream = device.stream()?;
    /// let mut array = stream.device_array::<f32, _>(1000)?;
    /// stream.fill(&mut array, 1.0)?;
    /// stream.synchronize()?;
    /// assert!(stream.query()?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns [`AsynchronousFault`](gpumem_core::ErrorKind::AsynchronousFault) if the work failed, and
    /// [`BlockingInCallback`](gpumem_core::ErrorKind::BlockingInCallback) in a callback.
    pub fn synchronize(&self) -> Result<()> {
        completion::may_block("synchronize")?;
        self.0.timeline.check("synchronize")?;
        self.0.timeline.finish(true).result.map_err(|error| error.in_operation("synchronize"))
    }

    /// Returns whether everything enqueued so far is done. Never blocks.
    ///
    /// # Errors
    /// Returns [`AsynchronousFault`](gpumem_core::ErrorKind::AsynchronousFault) if the work failed.
    pub fn query(&self) -> Result<bool> {
        self.0.timeline.check("query")?;
        self.0.timeline.poll(self.0.timeline.last_submission()).map_err(|error| error.in_operation("query"))
    }

    /// Records an event after everything enqueued so far.
    ///
    /// # Examples
    /// ```
    /// # use gpumem_host::Host;
    /// # type Device = gpumem_runtime::Device<Host>;
    /// # fn main() -> gpumem_core::Result<()> {
    /// # let device = Device::open("host")?;
    /// let stream = device.stream()?;
    /// let array = stream.to_device(&[1, 2, 3])?;
    /// let event = stream.record_event()?;
    /// // .. other work ..
    /// event.synchronize()?; // waits for the copy, and not for what came after it
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure.
    pub fn record_event(&self) -> Result<Event<B>> {
        Event::record(self, EventOptions::default())
    }

    /// Records an event that keeps its time, for [`Event::elapsed_since`].
    ///
    /// # Examples
    /// ```
    /// # use gpumem_host::Host;
    /// # type Device = gpumem_runtime::Device<Host>;
    /// # fn main() -> gpumem_core::Result<()> {
    /// # let device = Device::open("host")?;
    /// let stream = device.stream()?;
    /// let start = stream.record_timed_event()?;
    /// let array = stream.device_array::<f32, _>(1 << 20)?;
    /// let end = stream.record_timed_event()?;
    /// end.synchronize()?;
    /// println!("{} ms", end.elapsed_since(&start)?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure.
    pub fn record_timed_event(&self) -> Result<Event<B>> {
        Event::record(self, EventOptions { timing: true })
    }

    /// Makes all later work on this stream wait for the event. Arrays need no such call: work that conflicts waits by
    /// itself.
    ///
    /// # Examples
    /// ```
    /// # use gpumem_host::Host;
    /// # type Device = gpumem_runtime::Device<Host>;
    /// # fn main() -> gpumem_core::Result<()> {
    /// # let device = Device::open("host")?;
    /// let (first, second) = (device.stream()?, device.stream()?);
    /// let event = first.record_event()?;
    /// second.wait(&event)?;
    /// # Ok(())
    /// # }
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
    ///
    /// # Examples
    /// ```
    /// # use gpumem_host::Host;
    /// # type Device = gpumem_runtime::Device<Host>;
    /// # fn main() -> gpumem_core::Result<()> {
    /// # let device = Device::open("host")?;
    /// let stream = device.stream()?;
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// stream.add_callback(move |outcome| drop(sender.send(outcome.is_ok())))?;
    /// assert_eq!(receiver.recv(), Ok(true));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns [`Unsupported`](gpumem_core::ErrorKind::Unsupported) if the system has no thread for it, and
    /// [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure. The callback has not run then.
    pub fn add_callback(&self, callback: impl FnOnce(Result<()>) + Send + 'static) -> Result<()> {
        self.0.timeline.when_done("add_callback", callback)
    }

    /// Returns a future that is ready once everything enqueued so far is done. It holds no borrow.
    ///
    /// # Examples
    /// ```
    /// # use gpumem_runtime::Stream;
    /// # use gpumem_host::Host;
    /// # type Device = gpumem_runtime::Device<Host>;
    /// # fn main() -> gpumem_core::Result<()> {
    /// # let device = Device::open("host")?;
    /// async fn upload(stream: &Stream<Host>) -> gpumem_core::Result<()> {
    ///     let array = stream.to_device(&[1, 2, 3])?;
    ///     stream.completed().await
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn completed(&self) -> Completion {
        Completion::of(&self.0.timeline, None)
    }

    /// Runs `body` with a scope in which memory of the caller takes part in asynchronous transfers, and waits at its end,
    /// however it ends. This is Numba's `auto_synchronize`.
    ///
    /// ```no_run
    /// # fn example<B: gpumem_runtime::ToDevice<H, Elem = f32, Dim = ndarray::Ix1>, H: gpumem_core::Backend>(
    /// #     stream: &gpumem_runtime::Stream<H>, array: &gpumem_runtime::DeviceArray<f32, ndarray::Ix1, H>,
    /// # ) -> gpumem_core::Result<()> {
    /// let mut result = ndarray::Array1::zeros(array.len());
    /// stream.scope(|scope| scope.copy_to_host(array, result.view_mut()))??;
    /// // Here the elements have landed.
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns [`AsynchronousFault`](gpumem_core::ErrorKind::AsynchronousFault) if the work failed. The value of
    /// `body` is lost then. Returns [`BlockingInCallback`](gpumem_core::ErrorKind::BlockingInCallback) in a callback.
    pub fn scope<'env, R>(
        &self,
        body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env, B>) -> R,
    ) -> Result<R> {
        scope::run(self, body)
    }

    // ---- arrays in stream order -----------------------------------------------------------------------------------

    /// Creates an array of zeros in stream order.
    ///
    /// # Examples
    /// ```
    /// # use gpumem_host::Host;
    /// # type Device = gpumem_runtime::Device<Host>;
    /// # fn main() -> gpumem_core::Result<()> {
    /// # let device = Device::open("host")?;
    /// let stream = device.stream()?;
    /// let array = stream.device_array::<f32, _>((480, 640))?; // returns at once
    /// assert_eq!(array.get((0, 0))?, 0.0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Device::device_array`].
    pub fn device_array<T: Element, S: IntoArraySpec>(&self, spec: S) -> Result<DeviceArray<T, S::Dim, B>> {
        let operation = "device_array";
        let array = UninitArray::<T, S::Dim, B>::allocate(&self.0.device, operation, spec.into_spec())?;
        // SAFETY: the fill below is ordered before every later use of the array.
        let array = unsafe { array.assume_init() };
        transfer::fill(self.timeline(), operation, array.place(), <T as bytemuck::Zeroable>::zeroed())?;
        Ok(array)
    }

    /// Creates an array without contents, which must be written as a whole; its memory is likely what this stream has
    /// used before.
    ///
    /// # Errors
    /// As for [`Device::uninit_array`].
    pub fn uninit_array<T: Element, S: IntoArraySpec>(&self, spec: S) -> Result<UninitArray<T, S::Dim, B>> {
        UninitArray::allocate(&self.0.device, "uninit_array", spec.into_spec())
    }

    /// Copies `source` into a new array in stream order. A host array has been read when this returns; page-locked
    /// and device sources are read in stream order.
    ///
    /// # Examples
    /// ```
    /// # use gpumem_host::Host;
    /// # type Device = gpumem_runtime::Device<Host>;
    /// # fn main() -> gpumem_core::Result<()> {
    /// # let device = Device::open("host")?;
    /// let stream = device.stream()?;
    /// let array = stream.to_device(&vec![1.0; 1000])?; // the vector is free again
    /// assert_eq!(array.get(999)?, 1.0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Device::to_device`].
    pub fn to_device<S>(&self, source: &S) -> Result<DeviceArray<S::Elem, S::Dim, B>>
    where
        S: ToDevice<B> + ?Sized,
    {
        let source = source.source();
        let array = source.allocate_like(&self.0.device, "to_device")?;
        // SAFETY: the copy below is ordered before every later use of the array.
        let array = unsafe { array.assume_init() };
        source.copy_to(self.timeline(), "to_device", array.place(), transfer::Upload::Staged)?;
        Ok(array)
    }

    /// Copies `source` into `destination` in stream order, as [`to_device`](Self::to_device).
    ///
    /// # Examples
    /// ```
    /// # use gpumem_host::Host;
    /// # type Device = gpumem_runtime::Device<Host>;
    /// # fn main() -> gpumem_core::Result<()> {
    /// # let device = Device::open("host")?;
    /// let stream = device.stream()?;
    /// let mut array = stream.device_array::<i32, _>(3)?;
    /// stream.copy_to_device(&mut array, &[1, 2, 3])?;
    /// assert_eq!(array.get(2)?, 3);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`ArrayBase::copy_to_device`].
    pub fn copy_to_device<D, M, S>(&self, destination: &mut ArrayBase<M, D>, source: &S) -> Result<()>
    where
        D: Dimension,
        M: StorageMut<Backend = B>,
        S: ToDevice<B, Elem = M::Elem, Dim = D> + ?Sized,
    {
        source.source().copy_to(
            self.timeline(),
            "copy_to_device",
            destination.place(),
            transfer::Upload::Staged,
        )?;
        Ok(())
    }

    /// Copies `source` into a new page-locked array in stream order. Reading it waits.
    ///
    /// # Examples
    /// ```
    /// # use gpumem_host::Host;
    /// # type Device = gpumem_runtime::Device<Host>;
    /// # fn main() -> gpumem_core::Result<()> {
    /// # let device = Device::open("host")?;
    /// let stream = device.stream()?;
    /// let array = stream.to_device(&[1, 2, 3])?;
    /// let back = stream.copy_to_host(&array)?; // returns at once
    /// assert_eq!(back.view()?.to_vec(), [1, 2, 3]); // waits
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns [`OutOfMemory`](gpumem_core::ErrorKind::OutOfMemory) if the host has no page-locked memory left, and
    /// [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure.
    pub fn copy_to_host<S, D>(&self, source: &ArrayBase<S, D>) -> Result<PinnedArray<S::Elem, D, B>>
    where
        S: Storage<Backend = B>,
        D: Dimension,
    {
        let mut array = HostArray::like(&self.0.device, "copy_to_host", source.layout())?;
        self.copy_to_host_into(source, &mut array)?;
        Ok(array)
    }

    /// Copies `source` into a host array of the library, in stream order. Reading it waits.
    ///
    /// # Examples
    /// ```
    /// # use gpumem_host::Host;
    /// # type Device = gpumem_runtime::Device<Host>;
    /// # fn main() -> gpumem_core::Result<()> {
    /// # let device = Device::open("host")?;
    /// let stream = device.stream()?;
    /// let array = stream.to_device(&[1, 2, 3])?;
    /// let mut pinned = device.pinned_array::<i32, _>(3)?; // reused for many copies
    /// stream.copy_to_host_into(&array, &mut pinned)?;
    /// assert_eq!(pinned.view()?.to_vec(), [1, 2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns [`ShapeMismatch`](gpumem_core::LayoutError::ShapeMismatch) if the shapes differ, and
    /// [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure.
    pub fn copy_to_host_into<S, D, K>(
        &self,
        source: &ArrayBase<S, D>,
        destination: &mut HostArray<K, S::Elem, D, B>,
    ) -> Result<()>
    where
        S: Storage<Backend = B>,
        D: Dimension,
        K: HostKind,
    {
        let (from, to) = (source.place(), destination.place());
        transfer::copy::<S::Elem, B>(self.timeline(), "copy_to_host", from, to)?;
        Ok(())
    }

    /// Sets every element of `destination` in stream order.
    ///
    /// # Examples
    /// ```
    /// # use ndarray::s;
    /// # use gpumem_host::Host;
    /// # type Device = gpumem_runtime::Device<Host>;
    /// # fn main() -> gpumem_core::Result<()> {
    /// # let device = Device::open("host")?;
    /// let stream = device.stream()?;
    /// let mut array = stream.device_array::<f32, _>((2, 3))?;
    /// stream.fill(&mut array.slice_mut(s![.., 0])?, 1.0)?;
    /// assert_eq!(array.copy_to_host()?.sum(), 2.0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure.
    pub fn fill<M, D>(&self, destination: &mut ArrayBase<M, D>, value: M::Elem) -> Result<()>
    where
        M: StorageMut<Backend = B>,
        D: Dimension,
    {
        transfer::fill(self.timeline(), "fill", destination.place(), value)?;
        Ok(())
    }

    /// Copies `source`, broadcast to the shape of `destination`, in stream order.
    ///
    /// # Examples
    /// ```
    /// # use gpumem_host::Host;
    /// # type Device = gpumem_runtime::Device<Host>;
    /// # fn main() -> gpumem_core::Result<()> {
    /// # let device = Device::open("host")?;
    /// let stream = device.stream()?;
    /// let mut array = stream.device_array::<i32, _>((2, 3))?;
    /// stream.assign(&mut array, &[1, 2, 3])?;
    /// assert_eq!(array.get((1, 2))?, 3);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns [`CannotBroadcast`](gpumem_core::LayoutError::CannotBroadcast) if the source does not fit. Otherwise
    /// as [`copy_to_device`](Self::copy_to_device).
    pub fn assign<D, M, S>(&self, destination: &mut ArrayBase<M, D>, source: &S) -> Result<()>
    where
        D: Dimension,
        M: StorageMut<Backend = B>,
        S: ToDevice<B, Elem = M::Elem> + ?Sized,
    {
        let to = ArrayRef::new(&destination.memory, &destination.layout);
        source.source().broadcast_to(self.timeline(), "assign", to, transfer::Upload::Staged)?;
        Ok(())
    }
}

impl<B: Backend> Drop for Inner<B> {
    fn drop(&mut self) {
        let core = self.device.core();
        if self.lent || !core.origin.is_valid() {
            if let Some(owner) = self.owner.take() {
                std::mem::forget(owner);
            }
            return;
        }
        if let Some(raw) = self.timeline.end() {
            core.deferred_frees.add(DeferredFree::Stream(raw), self.timeline.generation);
        }
        if let Some(owner) = self.owner.take() {
            // Dropped once, after the last use, and leaked where that cannot be waited for.
            let owner = ManuallyDrop::new(owner);
            let last = move |_| drop(ManuallyDrop::into_inner(owner));
            if let Err(error) = self.timeline.when_done("drop of a stream", last) {
                tracing::error!(%error, "the owner of a foreign stream is leaked");
            }
        }
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
