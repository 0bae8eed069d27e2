//! Captures of other libraries, which calls of ours leave alone.
//!
//! While any thread captures a stream in the mode that is CUDA's default, the driver refuses calls that wait or that allocate, on every
//! thread, and the refused call invalidates that capture. A thread in the relaxed mode may make them. The table of functions says which
//! ones these are ([`DriverApi`]): they were found by trying each beside a capture.

use crate::api::DriverApi;
use cudarc::driver::sys::CUstreamCaptureMode;

/// The mode of a thread whose calls no capture minds.
pub(crate) const RELAXED: CUstreamCaptureMode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;

/// While it lives, its thread is in the relaxed mode.
pub(crate) struct RelaxedMode<'a> {
    api: &'a DriverApi,
    before: CUstreamCaptureMode,
}

impl<'a> RelaxedMode<'a> {
    /// Two such calls cost 20 ns.
    #[inline]
    pub(crate) fn enter(api: &'a DriverApi) -> Self {
        let mut before = RELAXED;
        // SAFETY: a place for the mode, which the driver exchanges with that of the thread.
        let _ = unsafe { api.cuThreadExchangeStreamCaptureMode(&mut before) };
        Self { api, before }
    }
}

impl Drop for RelaxedMode<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: as above.
        let _ = unsafe { self.api.cuThreadExchangeStreamCaptureMode(&mut self.before) };
    }
}
