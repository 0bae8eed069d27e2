//! The graph of a backend.

use super::Backend;
use crate::Result;
use std::fmt::Debug;

/// What was enqueued on a stream while it was [captured](super::Stream::begin_capture), which the driver enqueues as one piece of
/// work. Dropping it may call the driver.
///
/// # Safety
/// * A launch does what was captured, with the same addresses, and nothing else.
/// * It runs after what was enqueued on its stream before, and after earlier launches.
pub unsafe trait ExecutableGraph<B: Backend>: Debug + Send {
    /// Enqueues everything that was captured.
    ///
    /// # Safety
    /// As for the calls that were captured.
    ///
    /// # Errors
    /// Returns [`Driver`](crate::ErrorKind::Driver) if the driver reports a failure. Nothing has been enqueued then.
    unsafe fn launch(&mut self, stream: &B::Stream) -> Result<()>;
}
