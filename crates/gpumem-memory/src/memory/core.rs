//! The state that all objects of a device share. It does not keep the device's memory alive.

use super::{
    Arrivals, DeferredFrees, DeferredLimits, LateMemory, Names, PinnedPages, ReclaimHooks, ResourceTable,
    Serving, Trim, default_options,
};
use crate::{
    trace::{EventLog, InitialState, RecorderOptions, TraceKind},
    track::DeviceContext,
};
use gpumem_core::{Backend, DriverDevice};
use std::{
    ops::Deref,
    panic::{RefUnwindSafe, UnwindSafe},
    sync::{Arc, atomic::AtomicUsize},
};

/// The memory of a device, above the state that its streams share.
#[derive(Debug)]
pub struct DeviceCore<B: Backend> {
    pub memory: ResourceTable<B>,
    pub arrivals: Arrivals,
    pub deferred_frees: DeferredFrees<B>,
    /// Released memory that the driver does not report as free yet.
    pub late: LateMemory,
    /// What frees memory before a request fails: the runtime's own hook, and those of users.
    pub reclaim: ReclaimHooks,
    pub names: Names,
    pub pages: PinnedPages<B>,
    /// Pinned, mapped and managed arrays that are alive: the host may be looking at them. And arrays of the caller that are
    /// page-locked: they must be unlocked by the device that locked them.
    pub host_memory: AtomicUsize,
    /// Dropped last: the resources have streams, each with a reference to it.
    context: Arc<DeviceContext<B>>,
}

// Nothing of a device, a stream or an allocation is half changed when a panic passes: code of the user is called outside
// their locks, or its panic is caught. So whatever holds them can be used afterwards, and in `catch_unwind`.
impl<B: Backend> UnwindSafe for DeviceCore<B> {}
impl<B: Backend> RefUnwindSafe for DeviceCore<B> {}

impl<B: Backend> Deref for DeviceCore<B> {
    type Target = DeviceContext<B>;

    #[inline]
    fn deref(&self) -> &DeviceContext<B> {
        &self.context
    }
}

impl<B: Backend> DeviceCore<B> {
    pub fn new(raw: B::Device) -> Self {
        let limits = DeferredLimits::from_environment();
        let deferred_frees = DeferredFrees::new(limits, raw.info().total_memory);
        Self {
            context: Arc::new(DeviceContext::new(raw)),
            memory: ResourceTable::new(),
            arrivals: Arrivals::default(),
            deferred_frees,
            late: LateMemory::new(),
            reclaim: ReclaimHooks::new(),
            names: Names::default(),
            pages: PinnedPages::default(),
            host_memory: AtomicUsize::new(0),
        }
    }

    #[inline]
    pub fn context(&self) -> &Arc<DeviceContext<B>> {
        &self.context
    }

    /// Frees the idle memory of the resources. Failures go to the queue of errors. Returns the number of freed bytes.
    pub fn trim_all(&self, how: Trim) -> usize {
        self.memory.all().fold(0, |bytes, resource| bytes.saturating_add(self.trim_one(&resource, how)))
    }

    /// As [`trim_all`](Self::trim_all), of one resource.
    pub(crate) fn trim_one(&self, resource: &Serving<'_, B>, how: Trim) -> usize {
        // As in `oom::retry`: what a resource says is no news of the device.
        resource.trim(how, &mut |error| self.errors.push(self.place(error)))
    }

    /// Starts a recording, unless one is running.
    pub fn start_recording(&self, options: RecorderOptions) -> Option<Arc<EventLog>> {
        // Resources may be the user's: they are asked without a lock.
        let kinds = self.memory.in_use().filter_map(|(kind, resource)| {
            let statistics = resource.report().statistics;
            let granule = default_options(self, kind).alignment;
            // They may say anything: the sum of all must be a number.
            let [reserved, allocated] =
                [statistics.reserved, statistics.allocated].map(|bytes| bytes.min(isize::MAX as usize / 16));
            Some((TraceKind::of(kind)?, reserved, allocated, granule))
        });
        let (total, kinds) = (self.raw.info().total_memory, kinds.collect());
        self.recorder.start(options, InitialState { device: self.name(), total, kinds })
    }
}
