//! Work of the host in a stream that no thread waits for.

use crate::Failure;
use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

type Work = dyn Future<Output = Result<(), Failure>> + Send;

/// A future of the host as work of a stream ([`Stream::enqueue_future`](crate::Stream::enqueue_future)).
///
/// Dropping it before it is ready means that the work is not done: the stream has failed, or the device is lost.
pub struct HostFuture {
    work: &'static str,
    future: Pin<Box<Work>>,
}

impl HostFuture {
    /// Wraps a future. `work` names it in errors (`all_reduce`).
    pub fn new(
        work: &'static str,
        future: impl Future<Output = Result<(), Failure>> + Send + 'static,
    ) -> Self {
        Self { work, future: Box::pin(future) }
    }

    /// Returns the name of the work.
    pub fn work(&self) -> &'static str {
        self.work
    }

    /// Goes on with the work. Returns `Pending` if it has to wait for something that wakes the context later.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        self.future.as_mut().poll(context)
    }
}

impl fmt::Debug for HostFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostFuture").field("work", &self.work).finish_non_exhaustive()
    }
}
