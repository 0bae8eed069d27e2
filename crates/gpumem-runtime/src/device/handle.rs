//! Handles of a device: each counts for itself.

use super::{Device, DeviceShared};
use crate::recording::GraphRecording;
use gpumem_core::Backend;
use gpumem_memory::memory::DeviceCore;
use gpumem_memory::track::Timeline;
use std::{ops::Deref, sync::Arc};

/// The target of a [`Device`]. Arrays share the handle that they were made with, so that threads with different handles
/// do not contend for one count.
pub(crate) struct DeviceHandle<B: Backend> {
    /// The stream whose handle this is: arrays made through it are likely used there first.
    stream: Option<Arc<Timeline<B>>>,
    /// The recording of a graph whose handle this is: what is made through it belongs to the recording.
    recording: Option<Arc<GraphRecording<B>>>,
    inner: Arc<DeviceShared<B>>,
    /// That of `inner`, which every use of an array looks at. Dropped last, so that a device that nothing else refers to ends here.
    core: Arc<DeviceCore<B>>,
}

impl<B: Backend> Deref for DeviceHandle<B> {
    type Target = DeviceShared<B>;

    #[inline]
    fn deref(&self) -> &DeviceShared<B> {
        &self.inner
    }
}

impl<B: Backend> Device<B> {
    pub(super) fn of_inner(inner: Arc<DeviceShared<B>>) -> Self {
        Self(Arc::new(DeviceHandle { core: inner.core.clone(), inner, stream: None, recording: None }))
    }

    /// A separate handle for a stream.
    pub(crate) fn for_stream(&self, timeline: &Arc<Timeline<B>>) -> Self {
        self.with(Some(timeline.clone()), self.0.recording.clone())
    }

    /// The handle of a recording, with its first stream.
    pub(crate) fn for_recording(
        &self,
        timeline: &Arc<Timeline<B>>,
        recording: &Arc<GraphRecording<B>>,
    ) -> Self {
        self.with(Some(timeline.clone()), Some(recording.clone()))
    }

    fn with(&self, stream: Option<Arc<Timeline<B>>>, recording: Option<Arc<GraphRecording<B>>>) -> Self {
        let (core, inner) = (self.0.core.clone(), self.0.inner.clone());
        Self(Arc::new(DeviceHandle { core, inner, stream, recording }))
    }

    /// The recording that everything made through this handle belongs to.
    #[inline]
    pub(crate) fn recording(&self) -> Option<&Arc<GraphRecording<B>>> {
        self.0.recording.as_ref()
    }

    /// A handle that belongs to no recording, for what outlives each.
    pub(crate) fn outside_recording(&self) -> Self {
        match self.recording() {
            Some(_) => Self::of_inner(self.0.inner.clone()),
            None => self.share(),
        }
    }

    #[inline]
    pub(crate) fn core(&self) -> &Arc<DeviceCore<B>> {
        &self.0.core
    }

    /// The same handle once more, for memory that is made through it.
    #[inline]
    pub(crate) fn share(&self) -> Self {
        Self(self.0.clone())
    }

    /// The stream that is likely to use arrays of this handle first.
    #[inline]
    pub(crate) fn stream_hint(&self) -> Option<&Arc<Timeline<B>>> {
        self.0.stream.as_ref()
    }

    pub(super) fn inner(&self) -> &Arc<DeviceShared<B>> {
        &self.0.inner
    }
}

impl<B: Backend> Clone for Device<B> {
    fn clone(&self) -> Self {
        match self.recording() {
            // Its arrays stay those of the recording.
            Some(_) => self.share(),
            None => Self::of_inner(self.0.inner.clone()),
        }
    }
}
