//! Callbacks and futures: what runs once work is done, on a thread of ours.
//!
//! The driver's own callbacks may not call the driver, block the stream, and are not called when the device is lost.
//! So a thread of ours waits for a mark instead, and runs whatever was left for it in the stream's order. It starts
//! with the first callback and ends when there are none. A blocking wait inside a callback is a typed error: it would
//! wait for the thread that it runs on.

use crate::{track::Timeline, user_code};
use gpumem_core::{Backend, Error, ErrorKind, NonBlockingContext, Result, process::ProcessGuard};
use parking_lot::{Condvar, Mutex};
use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

/// Whether the calling thread may wait for a device: not in a callback, nor in the host body of a kernel.
#[inline]
pub fn may_block(operation: &'static str) -> Result<()> {
    match NonBlockingContext::current() {
        Some(context) => Err(refuse_to_block(context, operation)),
        None => Ok(()),
    }
}

#[cold]
#[inline(never)]
fn refuse_to_block(context: NonBlockingContext, operation: &'static str) -> Error {
    let NonBlockingContext { backend, device, .. } = context;
    Error::new("", operation, ErrorKind::BlockingInCallback).on_device(backend, device)
}

type Task = Box<dyn FnOnce(Result<()>) + Send>;

/// The callbacks of one stream.
#[derive(Default)]
pub(crate) struct Callbacks {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<(u64, Task)>,
    /// Callbacks that were added, and that have run.
    added: u64,
    ran: u64,
    /// Whether a thread takes care of `waiting`.
    thread: bool,
}

impl Callbacks {
    /// Waits until all callbacks that were added so far have run.
    pub(crate) fn drain(&self) {
        let mut state = self.state.lock();
        let target = state.added;
        while state.ran < target {
            self.changed.wait(&mut state);
        }
    }
}

impl<B: Backend> Timeline<B> {
    /// Leaves `task` to be run once everything enqueued so far is done.
    ///
    /// # Errors
    /// Returns [`Unsupported`](gpumem_core::ErrorKind::Unsupported) if the system has no thread, and
    /// [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure. The task has not run then.
    pub(crate) fn when_done(
        self: &Arc<Self>,
        operation: &'static str,
        task: impl FnOnce(Result<()>) + Send + 'static,
    ) -> Result<()> {
        self.check(operation)?;
        // The mark is made now, so that work enqueued later does not delay the callback.
        let submission = self.last_submission();
        self.wait_target(submission)?;
        self.when_complete(operation, submission, task)
    }

    /// As [`when_done`](Self::when_done), for a submission index of the past.
    fn when_complete(
        self: &Arc<Self>,
        operation: &'static str,
        submission: u64,
        task: impl FnOnce(Result<()>) + Send + 'static,
    ) -> Result<()> {
        let mut state = self.callbacks.state.lock();
        state.waiting.push_back((submission, Box::new(task)));
        state.added += 1;
        if !state.thread {
            let timeline = self.clone();
            let spawned = std::thread::Builder::new()
                .name("gpumem callbacks".to_owned())
                .spawn(move || run_callbacks(&timeline));
            if spawned.is_err() {
                let refused = state.waiting.pop_back();
                state.added -= 1;
                drop(state);
                // What the closure holds is the user's, and is dropped without the lock.
                drop(refused);
                return Err(self.core.error(operation, ErrorKind::Unsupported { what: "another thread" }));
            }
            state.thread = true;
        }
        Ok(())
    }
}

fn run_callbacks<B: Backend>(timeline: &Arc<Timeline<B>>) {
    let callbacks = &timeline.callbacks;
    loop {
        let (submission, task) = {
            let mut state = callbacks.state.lock();
            match state.waiting.pop_front() {
                Some(next) => next,
                None => {
                    state.thread = false;
                    return;
                }
            }
        };
        let result = timeline.wait_host(submission).result;
        let info = B::info(&timeline.core.raw);
        let context = NonBlockingContext { backend: info.backend, device: info.ordinal, stream: None };
        if let Err(message) = user_code::run(move || NonBlockingContext::run(Some(context), || task(result)))
        {
            let kind = ErrorKind::CallbackPanicked { message };
            timeline.core.errors.push(timeline.core.error("callback", kind));
        }
        callbacks.state.lock().ran += 1;
        callbacks.changed.notify_all();
    }
}

/// A future that is ready once the work before it is done. It holds no borrow: dropping or forgetting it is harmless.
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

impl Completion {
    /// A future for everything up to `submission` of `timeline`, or for what it has enqueued so far.
    pub(crate) fn of<B: Backend>(timeline: &Arc<Timeline<B>>, submission: Option<u64>) -> Self {
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
        let outcome = match submission {
            Some(submission) => {
                timeline.check_event("done").and_then(|()| timeline.when_complete("done", submission, task))
            }
            None => timeline.when_done("done", task),
        };
        if let Err(error) = outcome {
            shared.lock().result = Some(Err(error));
        }
        Self { shared, origin: timeline.core.origin, backend: B::info(&timeline.core.raw).backend }
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
