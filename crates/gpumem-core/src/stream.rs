//! Queues of work.

use crate::Result;
use std::fmt::Debug;

/// A stream as the driver knows it: a pointer or a small number, for use with other libraries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RawStream(pub u64);

/// Which stream is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum StreamKind {
    /// A new stream of our own.
    #[default]
    New,
    /// The driver's legacy default stream. Its implicit ordering with other streams is never relied on.
    Legacy,
    /// The driver's per-thread default stream: a different stream on each thread.
    PerThread,
}

/// How a stream is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StreamOptions {
    /// Which stream.
    pub kind: StreamKind,
    /// Does not synchronise implicitly with the legacy default stream. The default.
    pub non_blocking: bool,
    /// Priority; lower numbers come first, 0 is the default. Clamped to what the device offers
    /// ([`Capabilities::stream_priorities`](crate::Capabilities::stream_priorities)).
    pub priority: i32,
}

impl Default for StreamOptions {
    fn default() -> Self {
        Self { kind: StreamKind::New, non_blocking: true, priority: 0 }
    }
}

/// A queue of work on one device. Work that is enqueued on one stream runs in order.
///
/// # Safety
/// When a wait or a query says that the work is done, none of it uses memory any more.
pub unsafe trait Stream: Debug + Send + Sync + 'static {
    /// Waits until everything that has been enqueued so far is done.
    ///
    /// # Errors
    /// Returns the failure of the work itself (a fault of a kernel), as far as the driver reports it here.
    fn synchronize(&self) -> Result<()>;

    /// Whether everything that has been enqueued so far is done. Never blocks.
    ///
    /// # Errors
    /// As for [`synchronize`](Self::synchronize). Work that is not done is `Ok(false)` and no error.
    fn query(&self) -> Result<bool>;

    /// The driver's handle.
    fn raw(&self) -> RawStream;
}
