//! Events: recorded positions in streams.

use crate::Result;
use std::fmt::Debug;

/// How an event is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct EventOptions {
    /// Remember the time, for [`Backend::elapsed`](crate::Backend::elapsed). Costs a little; off by default.
    pub timing: bool,
}

/// A recorded position in a stream, which others can wait for.
///
/// An event that has never been recorded counts as done. Recording it again replaces the position; work that already
/// waits for the old position is not affected.
///
/// # Safety
/// When a wait or a query reports that the work before the recording is done, none of it uses memory any more.
pub unsafe trait Event: Debug + Send + Sync + 'static {
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
}
