//! Devices.

mod allocation;
mod handle;
mod host_ready;
mod kept;
mod memory;
mod open;
mod reset;
mod staging;

pub use allocation::{Allocation, AllocationRef, FrozenMemory};
pub(crate) use allocation::{ForeignMemory, Release, exported, free};
pub(crate) use handle::DeviceHandle;
pub(crate) use host_ready::HostReady;
pub(crate) use staging::{Staging, StagingPool};

use crate::TransferOptions;
use gpumem_core::{
    Backend, Capabilities, DeviceInfo, DriverDevice, Error, MemoryInfo, NotRecorded, Result, StreamKind,
    StreamOptions,
};
use gpumem_memory::{
    memory::{DeferredFree, DeviceCore, Exhausted, ReclaimHook, check_outside_resource},
    track::{DeviceCounters, Timeline},
};
use parking_lot::Mutex;
use std::{
    fmt,
    panic::{RefUnwindSafe, UnwindSafe},
    sync::{Arc, OnceLock, Weak},
};

/// A device: the place where arrays live and streams run. Cloning it is cheap and gives the same device.
///
/// Everything made from a device keeps it open. Nothing here panics; the errors that every operation can have are
///
/// * [`Load`](gpumem_core::ErrorKind::Load) when the driver is missing,
/// * [`DeviceLost`](gpumem_core::ErrorKind::DeviceLost) with the first cause once the device is gone,
/// * [`ForkedChild`](gpumem_core::ErrorKind::ForkedChild) in a child of the process that opened it.
///
/// A clone counts for itself: threads that make many arrays each take a clone, or a stream of their own.
pub struct Device<B: Backend>(pub(crate) Arc<DeviceHandle<B>>);

pub(crate) struct DeviceShared<B: Backend> {
    pub(crate) core: Arc<DeviceCore<B>>,
    pub(crate) staging: StagingPool<B>,
    pub(crate) kept: kept::KeptValues,
    /// Frees idle blocks of `staging` when a request cannot be served.
    _trims_staging: ReclaimHook,
    /// The stream of operations that name none.
    default: Mutex<Option<Arc<Timeline<B>>>>,
    /// The first of them: the only one where the device is never reset, and found without a lock.
    first: OnceLock<Arc<Timeline<B>>>,
}

// As `DeviceCore`.
impl<B: Backend> UnwindSafe for DeviceShared<B> {}
impl<B: Backend> RefUnwindSafe for DeviceShared<B> {}

impl<B: Backend> Device<B> {
    /// Takes a device that was opened through the backend itself.
    pub fn from_raw(raw: B::Device) -> Self {
        open::device(raw)
    }

    fn new(raw: B::Device) -> Self {
        let core = Arc::new(DeviceCore::new(raw));
        Self::of_inner(Arc::new_cyclic(|shared: &Weak<DeviceShared<B>>| {
            let shared = shared.clone();
            let trim = move |_: &Exhausted| shared.upgrade().is_some_and(|shared| shared.staging.trim());
            DeviceShared {
                _trims_staging: core.reclaim.add(trim),
                core,
                staging: StagingPool::default(),
                kept: kept::KeptValues::default(),
                default: Mutex::new(None),
                first: OnceLock::new(),
            }
        }))
    }

    /// Records the device, if the program is recorded.
    fn begin_recording(&self) {
        gpumem_memory::trace::begin(|options| self.0.core.start_recording(options));
    }

    /// The backend's own device, for use with the backend's own extensions.
    pub fn raw(&self) -> &B::Device {
        &self.0.core.raw
    }

    /// Returns what is known about the device. No driver call.
    pub fn info(&self) -> &DeviceInfo {
        self.0.core.raw.info()
    }

    /// Returns the name under which [`open`](Self::open) finds it, for example `cuda:0`.
    pub fn name(&self) -> String {
        self.0.core.name()
    }

    /// Returns what the device can do. No driver call.
    /// ```
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// if device.capabilities().managed {
    ///     let array = device.managed_array::<f32, _>(1000, gpumem_core::Attach::Global)?;
    /// }
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    pub fn capabilities(&self) -> &Capabilities {
        self.0.core.raw.capabilities()
    }

    /// Returns how work-items of a kernel wait for each other on this device.
    pub fn barrier(&self) -> B::Barrier {
        self.0.core.raw.barrier()
    }

    /// Returns free and total memory in bytes, as the driver reports them.
    ///
    /// # Errors
    /// Returns [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure.
    pub fn memory_info(&self) -> Result<MemoryInfo> {
        self.0.core.check("memory_info")?;
        self.0.core.note_loss(self.0.core.raw.memory_info())
    }

    /// Returns counts of the runtime's requests to the device so far; zeros in a forked child.
    /// ```
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let before = device.counters();
    /// let array = device.device_array::<f32, _>(1000)?;
    /// assert_eq!(device.counters().fills, before.fills + 1);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    pub fn counters(&self) -> DeviceCounters {
        match self.0.core.origin.is_valid() {
            true => self.0.core.counters.read(),
            false => DeviceCounters::default(),
        }
    }

    /// Takes the errors of `Drop` implementations and callbacks. Oldest first, at most 64. In a forked child there is one,
    /// [`ForkedChild`](gpumem_core::ErrorKind::ForkedChild).
    pub fn take_errors(&self) -> Vec<gpumem_core::Error> {
        match self.0.core.check_process("take_errors") {
            Ok(()) => self.0.core.errors.take(),
            Err(error) => vec![error],
        }
    }

    /// Waits until everything on the device is done, including work of other libraries.
    /// ```
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let stream = device.stream()?;
    /// let mut array = stream.device_array::<f32, _>(1000)?;
    /// stream.fill(&mut array, 1.0)?;
    /// device.synchronize()?; // the fill is done
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`AsynchronousFault`](gpumem_core::ErrorKind::AsynchronousFault) if work failed that has not been
    /// reported yet, and [`BlockingInCallback`](gpumem_core::ErrorKind::BlockingInCallback) in a callback.
    pub fn synchronize(&self) -> Result<()> {
        gpumem_memory::may_block("synchronize")?;
        self.0.core.check("synchronize")?;
        if let Some(timeline) = self.stream_hint().filter(|_| self.recording().is_some()) {
            return timeline.check_for("synchronize", NotRecorded::Wait);
        }
        let timelines = self.0.core.timelines();
        let outcome = self.0.core.note_loss(self.0.core.raw.synchronize());
        let of_device = outcome.err();
        let mut errors: Vec<Error> = of_device.iter().cloned().collect();
        for timeline in timelines {
            if let Some(error) = &of_device {
                timeline.note_failure(error);
            }
            // Nothing to wait for any more, but to land transfers and to see callbacks through.
            let error = timeline.synchronize().err();
            let is_news = |error: &Error| of_device.as_ref().is_none_or(|other| other.kind() != error.kind());
            errors.extend(error.filter(is_news));
        }
        match Error::all_of(errors.into_iter().chain(self.0.core.take_left_failures())) {
            Some(error) => Err(error.in_operation("synchronize")),
            None => Ok(()),
        }
    }

    /// Runs `work` with this device as the thread's current one: CUDA's current context, HIP's current device. Every
    /// operation sets and restores it by itself; around many operations this does it once. On CUDA that saves two
    /// driver calls each, some 50 ns, if no context or another one is current.
    ///
    /// ```
    /// # use {gpumem_runtime::Device, gpumem_host::Host}; let device = Device::<Host>::open("host")?;
    /// let stream = device.stream()?;
    /// device.with_current(|| {
    ///     let mut array = stream.device_array::<f32, _>(1024)?;
    ///     (0..100).try_for_each(|step| stream.fill(&mut array, step as f32))
    /// })?;
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// Restores the previous one afterwards, also if `work` panics. If `work` pushes contexts with the driver's own
    /// calls, it must pop them.
    pub fn with_current<R>(&self, work: impl FnOnce() -> R) -> R {
        let (mut work, mut result) = (Some(work), None);
        self.raw().with_current(&mut || {
            if let Some(work) = work.take() {
                result = Some(work());
            }
        });
        match (result, work) {
            (Some(result), _) => result,
            // A backend that calls nothing saves nothing.
            (None, Some(work)) => work(),
            (None, None) => {
                std::panic::resume_unwind(Box::new("a backend has caught a panic that is not its own"))
            }
        }
    }

    /// Returns the memory of dropped arrays to the driver, after waiting for its last uses, and the idle memory of
    /// pools. It may synchronise the device, as drivers do when memory is freed; dropping an array never reaches the
    /// driver. Inside [`defer_cleanup`](Self::defer_cleanup) it does nothing.
    ///
    /// If the driver frees memory with a delay (ROCm), this waits while the free memory grows, so that
    /// [`memory_info`](Self::memory_info) returns what is free.
    ///
    /// # Errors
    /// Returns [`BlockingInCallback`](gpumem_core::ErrorKind::BlockingInCallback) in a callback. Returns
    /// [`Unsupported`](gpumem_core::ErrorKind::Unsupported) inside a memory resource, which the flush would call
    /// again. A free that fails goes to [`take_errors`](Self::take_errors), and the others still run.
    pub fn flush(&self) -> Result<()> {
        self.give_back("flush").map(drop)
    }

    /// As [`flush`](Self::flush). Returns the bytes that have gone back to the driver.
    pub(crate) fn give_back(&self, operation: &'static str) -> Result<usize> {
        gpumem_memory::may_block(operation)?;
        self.0.core.check(operation)?;
        check_outside_resource(operation).map_err(|error| self.0.core.place(error))?;
        if self.0.core.deferred_frees.is_deferred() {
            return Ok(0);
        }
        self.0.staging.trim();
        let bytes = self.0.core.deferred_frees.flush_all(&self.0.core);
        self.0.core.late.wait(&self.0.core, || false);
        Ok(bytes)
    }

    /// Returns how memory of the caller is moved to and from this device.
    pub fn transfer_options(&self) -> TransferOptions {
        match self.0.core.origin.is_valid() {
            true => self.0.staging.options(),
            // In a forked child the lock may be held for ever by a thread of the parent.
            false => TransferOptions::default(),
        }
    }

    /// Sets how memory of the caller is moved from now on: with how many threads, in which pieces. Numbers that make
    /// no sense on this machine are brought within its bounds.
    /// ```
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let mut options = device.transfer_options();
    /// options.threads = 2;
    /// device.set_transfer_options(options);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    pub fn set_transfer_options(&self, options: TransferOptions) {
        if self.0.core.origin.is_valid() {
            self.0.staging.set_options(options);
        }
    }

    /// Returns whether this device can reach the memory of `peer` directly.
    ///
    /// # Errors
    /// Returns [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure.
    pub fn can_access_peer(&self, peer: &Self) -> Result<bool> {
        self.0.core.check("can_access_peer")?;
        self.0.core.note_loss(self.raw().can_access_peer(peer.raw()))
    }

    /// Lets this device reach the memory of `peer` directly, or no longer. Copies between devices work without it too.
    ///
    /// # Errors
    /// Returns [`Unsupported`](gpumem_core::ErrorKind::Unsupported) if there is no path between the devices.
    pub fn set_peer_access(&self, peer: &Self, enabled: bool) -> Result<()> {
        self.0.core.check("set_peer_access")?;
        self.0.core.note_loss(self.raw().set_peer_access(peer.raw(), enabled))
    }

    pub(crate) fn default_timeline(&self) -> Result<Arc<Timeline<B>>> {
        self.0.core.check("default_stream")?;
        if let Some(timeline) = self.stream_hint().filter(|_| self.recording().is_some()) {
            return Ok(timeline.clone());
        }
        let mut slot = self.0.default.lock();
        if let Some(timeline) = slot.as_ref()
            && timeline.check("default_stream").is_ok()
        {
            return Ok(timeline.clone());
        }
        let raw = self.0.core.note_loss(self.raw().create_stream(&StreamOptions::default()))?;
        let timeline = Timeline::new(self.0.core.context(), raw, StreamKind::New);
        *slot = Some(timeline.clone());
        // Stays the first also when another one takes its place.
        let _ = self.0.first.set(timeline.clone());
        Ok(timeline)
    }

    /// Does something on the stream of operations that name none.
    #[inline]
    pub(crate) fn on_default<R>(&self, act: impl FnOnce(&Arc<Timeline<B>>) -> Result<R>) -> Result<R> {
        match self.0.first.get() {
            Some(timeline) if self.recording().is_none() && timeline.check("default_stream").is_ok() => {
                act(timeline)
            }
            _ => act(&self.default_timeline()?),
        }
    }
}

impl<B: Backend> Drop for DeviceShared<B> {
    fn drop(&mut self) {
        if !self.core.origin.is_valid() {
            return;
        }
        self.staging.trim();
        self.kept.clear();
        drop(self.first.take());
        if let Some(timeline) = self.default.get_mut().take()
            && let (Some(raw), _) = timeline.end()
        {
            self.core.deferred_frees.add(DeferredFree::Stream(raw), timeline.generation);
        }
        // The last handle may have been an array's, and dropping an array never waits and never reaches the driver.
        self.core.deferred_frees.abandon(&self.core);
    }
}

impl<B: Backend> PartialEq for Device<B> {
    /// Whether both are the same device of the same backend.
    fn eq(&self, other: &Self) -> bool {
        self.0.core.is_same(&other.0.core)
    }
}

impl<B: Backend> Eq for Device<B> {}

/// The [`name`](Device::name), under which [`open`](Device::open) finds the device. [`info`](Device::info) says more.
impl<B: Backend> fmt::Display for Device<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name())
    }
}

impl<B: Backend> fmt::Debug for Device<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Device").field(&self.name()).finish()
    }
}
