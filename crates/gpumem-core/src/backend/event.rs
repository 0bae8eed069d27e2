//! Recorded positions in streams.

use crate::Result;
use std::fmt::Debug;

/// A recorded position in a stream, which others can wait for.
///
/// An event that has never been recorded counts as done. Recording it again replaces the position; work that already
/// waits for the old position is not affected.
///
/// # Safety
/// When a wait or a query reports that the work before the recording is done, or answers with
/// [`AsynchronousFault`](crate::ErrorKind::AsynchronousFault) or [`DeviceLost`](crate::ErrorKind::DeviceLost), none of it uses memory
/// any more.
pub unsafe trait Event: Debug + Send + Sync + Sized + 'static {
    /// Tells whether the work before the recording is done. Never blocks.
    ///
    /// # Errors
    /// Returns the failure of the work itself, as far as the driver reports it here. An event that is not reached is
    /// `Ok(false)`.
    fn query(&self) -> Result<bool>;

    /// Blocks the calling thread until the work before the recording is done.
    ///
    /// # Errors
    /// Returns the failure of the work itself, as far as the driver reports it here.
    fn synchronize(&self) -> Result<()>;

    /// Destroys an event. Dropping it instead does the same and keeps errors to itself.
    ///
    /// # Errors
    /// Returns [`Driver`](crate::ErrorKind::Driver) if the driver reports a failure.
    fn destroy(self) -> Result<()>;

    /// Returns the milliseconds between this event and `end`, which are both recorded.
    ///
    /// # Errors
    /// Returns [`NotReady`](crate::ErrorKind::NotReady) before both are reached, and
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for events that keep no time.
    fn elapsed(&self, end: &Self) -> Result<f32>;
}
