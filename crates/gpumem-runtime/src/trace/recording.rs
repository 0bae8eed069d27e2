//! Recordings: starting them, and their results.

use crate::Device;
use gpumem_core::{Backend, ErrorKind, Result};
use gpumem_memory::{
    memory::{DeviceCore, check_outside_resource},
    trace::{EventLog, RecorderOptions, Trace, clock},
};
use std::{
    fmt,
    panic::{RefUnwindSafe, UnwindSafe},
    sync::Arc,
};

/// A recording that is running. Ends when it is dropped; forgetting it lets it run on.
#[must_use = "the recording ends when this is dropped"]
pub struct Recording<B: Backend> {
    core: Arc<DeviceCore<B>>,
    log: Arc<EventLog>,
}

// As a device.
impl<B: Backend> UnwindSafe for Recording<B> {}
impl<B: Backend> RefUnwindSafe for Recording<B> {}

impl<B: Backend> Device<B> {
    /// Starts to record every allocation, free, use and wait of this device. An event takes some tens of nanoseconds and 80
    /// bytes; up to 64 threads do not meet while they record.
    ///
    /// ```
    /// # use gpumem_runtime::{trace::RecorderOptions, Device}; let device = Device::<gpumem_host::Host>::open("host")?;
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
    /// [`Unsupported`](ErrorKind::Unsupported) inside a memory resource.
    pub fn record_memory(&self, options: RecorderOptions) -> Result<Recording<B>> {
        let core = self.core();
        core.check("record_memory")?;
        check_outside_resource("record_memory").map_err(|error| core.place(error))?;
        if !clock::is_available() {
            return Err(core.error("record_memory", ErrorKind::ForkedChild));
        }
        match core.start_recording(options) {
            Some(log) => Ok(Recording { core: core.clone(), log }),
            None => {
                let why = "the memory of this device is being recorded already";
                Err(core.error("record_memory", ErrorKind::InvalidArgument { why }))
            }
        }
    }
}

impl<B: Backend> Recording<B> {
    /// Returns the recording so far, and goes on recording.
    pub fn snapshot(&self) -> Trace {
        self.log.trace()
    }

    /// Ends the recording. Events of other threads at this very moment may be missing. In a forked child of the process
    /// that has started it a recording is empty.
    pub fn finish(self) -> Trace {
        let log = self.log.clone();
        drop(self);
        log.trace()
    }
}

impl<B: Backend> Drop for Recording<B> {
    fn drop(&mut self) {
        if self.log.is_of_this_process() {
            self.core.recorder.stop(&self.log);
        }
    }
}

impl<B: Backend> fmt::Debug for Recording<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording").field("log", &self.log).finish_non_exhaustive()
    }
}
