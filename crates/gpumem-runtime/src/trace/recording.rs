//! Recordings: how they are started, and what comes out.

use super::{
    Trace, clock, decode,
    event_log::{EventLog, InitialState},
};
use crate::{
    Device,
    device::DeviceCore,
    memory::{default_options, kind_index},
};
use gpumem_core::{Backend, ErrorKind, Result};
use std::{fmt, sync::Arc};

/// What becomes of events that no longer fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overflow {
    /// The newest events are kept, as on an aircraft's recorder. Of those that go, the recording keeps what they say about
    /// memory that is still alive: who holds what is always known.
    #[default]
    KeepNewest,
    /// The oldest are kept: the trace ends at the first event that found no room.
    KeepOldest,
}

/// How a recording is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecorderOptions {
    /// Bytes that events may take, at 24 to 48 each; they are taken as they are needed, 32 KiB at a time, and by each thread
    /// for itself: every thread that records has its 32 KiB, also beyond this limit. 64 MiB by default.
    pub limit_bytes: usize,
    /// What becomes of events that no longer fit.
    pub overflow: Overflow,
    /// Whether uses and waits are recorded, or only allocations and frees.
    pub uses: bool,
}

impl Default for RecorderOptions {
    fn default() -> Self {
        Self { limit_bytes: 64 << 20, overflow: Overflow::default(), uses: true }
    }
}

/// A recording that is running. Ends when it is dropped; forgetting it lets it run on.
#[must_use = "the recording ends when this is dropped"]
pub struct Recording<B: Backend> {
    core: Arc<DeviceCore<B>>,
    log: Arc<EventLog>,
}

impl<B: Backend> Device<B> {
    /// Starts to record every allocation, free, use and wait of this device. An event takes some nanoseconds more than
    /// reading the clock, and 24 to 48 bytes; threads do not meet while they record.
    ///
    /// ```
    /// # use gpumem_runtime::{trace::RecorderOptions, Device};
    /// # let device = Device::<gpumem_host::Host>::open("host")?;
    /// let recording = device.record_memory(RecorderOptions::default())?;
    /// drop(device.device_array::<f32, _>((64, 64))?);
    /// let trace = recording.finish();
    /// assert_eq!(trace.peaks()[0].bytes, 64 * 64 * 4);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) while another recording of this device is running.
    /// [`ForkedChild`](ErrorKind::ForkedChild) in a child that was forked while its parent started its first recording.
    pub fn record_memory(&self, options: RecorderOptions) -> Result<Recording<B>> {
        let core = self.core();
        core.check("record_memory")?;
        if !clock::is_there() {
            return Err(core.error("record_memory", ErrorKind::ForkedChild));
        }
        match start(core, options) {
            Some(log) => Ok(Recording { core: core.clone(), log }),
            None => {
                let why = "the memory of this device is being recorded already";
                Err(core.error("record_memory", ErrorKind::InvalidArgument { why }))
            }
        }
    }
}

/// Starts a recording, unless one is running.
pub(super) fn start<B: Backend>(
    core: &Arc<DeviceCore<B>>,
    options: RecorderOptions,
) -> Option<Arc<EventLog>> {
    core.recorder.start(|| {
        let kinds = core.memory.in_use().filter_map(|(kind, resource)| {
            let statistics = resource.report().statistics;
            let granule = default_options(core, kind).alignment;
            Some((kind_index(kind)? as u8, statistics.reserved, statistics.allocated, granule))
        });
        let total = B::info(&core.raw).total_memory;
        EventLog::new(options, InitialState { device: core.name(), total, kinds: kinds.collect() })
    })
}

impl<B: Backend> Recording<B> {
    /// What has been recorded so far. The recording goes on.
    pub fn snapshot(&self) -> Trace {
        decode::trace(&self.log)
    }

    /// Ends the recording. What other threads do in this very moment may be missing. In a forked child of the process that
    /// has started it a recording is empty.
    pub fn finish(self) -> Trace {
        let log = self.log.clone();
        drop(self);
        decode::trace(&log)
    }
}

impl<B: Backend> Drop for Recording<B> {
    fn drop(&mut self) {
        if self.log.origin.is_valid() {
            self.core.recorder.stop(&self.log);
        }
    }
}

impl<B: Backend> fmt::Debug for Recording<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording").field("tape", &self.log).finish_non_exhaustive()
    }
}
