//! Callbacks: code that runs once work is done, on a thread of the library.
//!
//! The driver's own callbacks may not call the driver, block the stream, and are not called when the device is lost. So
//! a thread of the library waits for an event instead, and runs the callbacks in the stream's order. It starts with the
//! first callback and ends when there are none. A blocking wait inside a callback is a typed error: it would wait for
//! the thread that it runs on.

use super::{Span, Timeline};
use crate::{
    sync::{PlainMutex, Rank},
    user_code,
};
use gpumem_core::{
    Backend, DriverDevice, ErrorKind, HostFunction, NonBlockingContext, NotRecorded, Result,
    process::DriverUse,
};
use parking_lot::Condvar;
use std::{collections::VecDeque, sync::Arc};

type Task = Box<dyn FnOnce(Result<()>) + Send>;

pub(crate) struct Callbacks {
    // Not a leaf of the queue: tasks are added, and taken, while others enqueue.
    state: PlainMutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<(Span, Task)>,
    /// Callbacks that were added, and that have run.
    added: u64,
    ran: u64,
    /// Whether a thread takes care of `waiting`.
    thread: bool,
}

impl Callbacks {
    pub(crate) fn new() -> Self {
        Self { state: PlainMutex::new(Rank::Callbacks, State::default()), changed: Condvar::new() }
    }

    /// Waits until all callbacks that were added so far have run.
    pub(crate) fn drain(&self) {
        let mut state = self.state.lock();
        let target = state.added;
        // Not until the list is empty: a callback may add others without end.
        while state.ran < target {
            state.wait(&self.changed);
        }
    }
}

impl<B: Backend> Timeline<B> {
    /// Leaves `task` to be run once everything enqueued so far is done.
    /// Returns [`Unsupported`](gpumem_core::ErrorKind::Unsupported) if the system has no thread, and
    /// [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure. The task has not run then.
    pub fn when_done(
        self: &Arc<Self>,
        operation: &'static str,
        task: impl FnOnce(Result<()>) + Send + 'static,
    ) -> Result<()> {
        self.check_for(operation, NotRecorded::Callback)?;
        // The event is recorded now, so that later work does not delay the callback.
        let span = self.span_to(self.last_submission());
        self.try_wait_target(span.last)?;
        self.when_complete(operation, span, task)
    }

    /// As [`when_done`](Self::when_done), for work of the past.
    pub fn when_complete(
        self: &Arc<Self>,
        operation: &'static str,
        span: Span,
        task: impl FnOnce(Result<()>) + Send + 'static,
    ) -> Result<()> {
        // Held until the thread runs: it ends under this lock when it finds nothing, so either it sees the task, or this call
        // sees that there is no thread.
        let mut state = self.callbacks.state.lock();
        state.waiting.push_back((span, Box::new(task)));
        state.added += 1;
        // A thread for as long as there are tasks: most streams have none.
        if !state.thread {
            let timeline = self.clone();
            // Code of the user runs here as it does on threads of the system's.
            let spawned = std::thread::Builder::new()
                .name("gpumem callbacks".to_owned())
                .stack_size(HostFunction::STACK_BYTES)
                .spawn(move || run_callbacks(&timeline));
            if spawned.is_err() {
                let refused = state.waiting.pop_back();
                state.added -= 1;
                drop(state);
                // The closure holds the user's values, and is dropped without the lock.
                drop(refused);
                return Err(self.context.error(operation, ErrorKind::Unsupported { what: "another thread" }));
            }
            state.thread = true;
        }
        Ok(())
    }
}

fn run_callbacks<B: Backend>(timeline: &Arc<Timeline<B>>) {
    let callbacks = &timeline.callbacks;
    loop {
        let (span, task) = {
            // Only while a task is taken: the callback may add others to the same stream.
            let mut state = callbacks.state.lock();
            match state.waiting.pop_front() {
                Some(next) => next,
                None => {
                    state.thread = false;
                    return;
                }
            }
        };
        // The end of the process waits for the driver's call, and not for the callback, which may never end.
        let in_driver = DriverUse::new();
        let result = timeline.wait_host(span.last).result.and_then(|()| timeline.outcome(span));
        drop(in_driver);
        let info = timeline.context.raw.info();
        let context = NonBlockingContext { backend: info.backend, device: info.ordinal, stream: None };
        if let Err(message) = user_code::run(move || NonBlockingContext::run(Some(context), || task(result)))
        {
            let kind = ErrorKind::CallbackPanicked { message };
            timeline.context.errors.push(timeline.context.error("callback", kind));
        }
        // After the callback: who waits in `drain` may free what it has used.
        callbacks.state.lock().ran += 1;
        // All: several threads may drain at once.
        callbacks.changed.notify_all();
    }
}
