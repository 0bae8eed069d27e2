//! The initial state of a recording of the device.

use super::DeviceCore;
use crate::memory::default_options;
use gpumem_core::{Backend, DriverDevice};
use gpumem_trace::{
    RecorderOptions,
    log::{EventLog, InitialState},
};
use std::sync::Arc;

impl<B: Backend> DeviceCore<B> {
    /// Starts a recording, unless one is running.
    pub fn start_recording(&self, options: RecorderOptions) -> Option<Arc<EventLog>> {
        // Resources may be the user's: they are asked without a lock.
        let kinds = self.memory.in_use().filter_map(|(kind, resource)| {
            let statistics = resource.report().statistics;
            let granule = default_options(self, kind).alignment;
            Some((kind.index()? as u8, statistics.reserved, statistics.allocated, granule))
        });
        let (total, kinds) = (self.raw.info().total_memory, kinds.collect());
        self.recorder.start(|| EventLog::new(options, InitialState { device: self.name(), total, kinds }))
    }
}
