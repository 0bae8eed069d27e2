//! Futures that are ready once work is done.

use gpumem_core::{Backend, DriverDevice, Result, process::ProcessGuard};
use gpumem_memory::track::{RecordedEvent, Span, Timeline};
use parking_lot::Mutex;
use std::{
    fmt,
    panic::{RefUnwindSafe, UnwindSafe},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

/// A future that is ready once the work before it is done. It holds no borrow: dropping or forgetting it is harmless.
///
/// A waker that blocks keeps later futures of the stream from being ready.
///
/// Made by [`Stream::completed`](crate::Stream::completed) and [`Event::completed`](crate::Event::completed). Gives the error of the work, if it failed.
#[must_use = "a future does nothing until it is awaited"]
pub struct Completion {
    shared: Arc<Mutex<Shared>>,
    origin: ProcessGuard,
    backend: &'static str,
}

#[derive(Default)]
struct Shared {
    result: Option<Result<()>>,
    waker: Option<Waker>,
}

// A waker that panics has left the result as it was.
impl UnwindSafe for Completion {}
impl RefUnwindSafe for Completion {}

impl Completion {
    /// A future for everything before an event of `timeline`, or for all work enqueued so far.
    pub(crate) fn of<B: Backend>(
        timeline: &Arc<Timeline<B>>,
        event: Option<(Span, Arc<RecordedEvent<B>>)>,
    ) -> Self {
        let shared = Arc::new(Mutex::new(Shared::default()));
        let sender = shared.clone();
        let task = move |result| {
            let waker = {
                let mut shared = sender.lock();
                shared.result = Some(result);
                shared.waker.take()
            };
            if let Some(waker) = waker {
                waker.wake();
            }
        };
        if let Err(error) = timeline.when_reached("done", event, task) {
            shared.lock().result = Some(Err(error));
        }
        Self { shared, origin: timeline.context.origin, backend: timeline.context.raw.info().backend }
    }
}

impl Future for Completion {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // In a forked child the thread that would complete it is not there, nor one that may hold the lock.
        if let Err(error) = self.origin.check(self.backend, "done") {
            return Poll::Ready(Err(error));
        }
        // Cloning and dropping wakers is the executor's code; none of it runs under our lock.
        let waker = context.waker().clone();
        let (poll, _old) = {
            let mut shared = self.shared.lock();
            match &shared.result {
                Some(result) => (Poll::Ready(result.clone()), None),
                None => (Poll::Pending, shared.waker.replace(waker)),
            }
        };
        poll
    }
}

impl fmt::Debug for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completion").finish_non_exhaustive()
    }
}
