//! Callbacks: code that runs once work is done, on a thread of the library.
//!
//! The driver's own callbacks may not call the driver, block the stream, and are not called when the device is lost. So
//! a thread of the library waits for an event instead. It starts with the first task and ends when there are none. A blocking
//! wait inside a callback is a typed error: it would wait for the thread that it runs on.
//!
//! Callbacks run one after the other, in the order in which they were added. A future waits neither for a callback nor for later work. The
//! wakers of a stream's futures are called one after the other.

use super::{RecordedEvent, Span, Timeline, queue::WaitTarget};
use crate::{
    sync::{PlainMutex, Rank},
    user_code,
};
use gpumem_core::{
    Backend, DriverDevice, ErrorKind, HostFunction, NonBlockingContext, NotRecorded, Result,
    process::DriverUse,
};
use parking_lot::Condvar;
use smallvec::SmallVec;
use std::{collections::BTreeMap, sync::Arc};

/// A task, and what it waits for.
struct Task<B: Backend> {
    span: Span,
    /// An event after the work and no later work, if one was to be had.
    recorded: Option<Arc<RecordedEvent<B>>>,
    run: Box<dyn FnOnce(Result<()>) + Send>,
}

/// The place of a task among those of a stream: first by a number, then in the order in which they were added.
type Place = (u64, u64);

pub(crate) struct Tasks<B: Backend> {
    // Not a leaf of the queue: tasks are added, and taken, while others enqueue.
    state: PlainMutex<State<B>>,
    changed: Condvar,
}

struct State<B: Backend> {
    waiting: BTreeMap<Place, Task<B>>,
    /// The places of the tasks that threads wait for, or run: one of each thread that has a task.
    running: SmallVec<[Place; 1]>,
    /// Threads that will take the first task that is there.
    starting: usize,
    /// Tasks that were added, and that have run.
    added: u64,
    ran: u64,
}

impl<B: Backend> Tasks<B> {
    pub(crate) fn new() -> Self {
        let (waiting, running) = (BTreeMap::new(), SmallVec::new());
        let state = State { waiting, running, starting: 0, added: 0, ran: 0 };
        Self { state: PlainMutex::new(Rank::Callbacks, state), changed: Condvar::new() }
    }

    /// Waits until as many tasks have run as were added so far: these, if they run in that order.
    pub(crate) fn drain(&self) {
        let mut state = self.state.lock();
        let target = state.added;
        // Not until the list is empty: a callback may add others without end.
        while state.ran < target {
            state.wait(&self.changed);
        }
    }

    /// The next task, for the thread that has the place of its last one, or none yet. The thread ends if there is none.
    fn next(&self, own: &mut Option<Place>) -> Option<Task<B>> {
        // Only while a task is taken: a callback may add others to the same stream.
        let mut state = self.state.lock();
        // Taken and given up under one lock: a call that adds a task sees a thread that will take it, or that there is none.
        match own.take() {
            Some(own) => state.running.retain(|place| *place != own),
            None => state.starting -= 1,
        }
        let (place, task) = state.waiting.pop_first()?;
        state.running.push(place);
        *own = Some(place);
        Some(task)
    }
}

impl<B: Backend> Timeline<B> {
    /// Leaves a callback to be run once everything enqueued so far is done, and after the callbacks before it.
    /// Returns [`Unsupported`](gpumem_core::ErrorKind::Unsupported) if the system has no thread, and
    /// [`Driver`](gpumem_core::ErrorKind::Driver) if the driver reports a failure. The callback has not run then.
    pub fn when_done(
        self: &Arc<Self>,
        operation: &'static str,
        run: impl FnOnce(Result<()>) + Send + 'static,
    ) -> Result<()> {
        let (span, recorded) = self.all_so_far(operation)?;
        self.add(|timeline| &timeline.callbacks, operation, 0, Task { span, recorded, run: Box::new(run) })
    }

    /// Leaves a task to be run once an event is reached, or everything enqueued so far is done, whatever else waits.
    /// Returns the errors of [`when_done`](Self::when_done).
    pub fn when_reached(
        self: &Arc<Self>,
        operation: &'static str,
        event: Option<(Span, Arc<RecordedEvent<B>>)>,
        run: impl FnOnce(Result<()>) + Send + 'static,
    ) -> Result<()> {
        let (span, recorded) = match event {
            Some((span, recorded)) => {
                self.check_event(operation)?;
                (span, Some(recorded))
            }
            None => self.all_so_far(operation)?,
        };
        self.add(
            |timeline| &timeline.futures,
            operation,
            span.last,
            Task { span, recorded, run: Box::new(run) },
        )
    }

    /// The work so far, and an event after it, which is recorded now: later work does not delay the task.
    fn all_so_far(&self, operation: &'static str) -> Result<(Span, Option<Arc<RecordedEvent<B>>>)> {
        self.check_for(operation, NotRecorded::Callback)?;
        let span = self.span_to(self.last_submission());
        let recorded = match self.try_wait_target(span.last)? {
            Some(WaitTarget::Event { recorded, .. }) => Some(recorded),
            Some(WaitTarget::Complete) | None => None,
        };
        Ok((span, recorded))
    }

    fn add(
        self: &Arc<Self>,
        tasks: fn(&Self) -> &Tasks<B>,
        operation: &'static str,
        number: u64,
        task: Task<B>,
    ) -> Result<()> {
        // Held until the thread runs: it ends under this lock when it finds nothing, so either it sees the task, or this call
        // sees that there is no thread.
        let mut state = tasks(self).state.lock();
        let place = (number, state.added);
        state.waiting.insert(place, task);
        state.added += 1;
        // A thread for as long as there are tasks: most streams have none. One that waits for later work is of no use to this task.
        if state.starting == 0 && state.running.iter().all(|other| *other > place) {
            let timeline = self.clone();
            // Code of the user runs here as it does on threads of the system's.
            let spawned = std::thread::Builder::new()
                .name("gpumem callbacks".to_owned())
                .stack_size(HostFunction::STACK_BYTES)
                .spawn(move || run_tasks(&timeline, tasks));
            if spawned.is_ok() {
                state.starting += 1;
            } else if state.running.is_empty() {
                let refused = state.waiting.remove(&place);
                state.ran += 1;
                drop(state);
                // The closure holds the user's values, and is dropped without the lock.
                drop(refused);
                return Err(self.context.error(operation, ErrorKind::Unsupported { what: "another thread" }));
            }
        }
        Ok(())
    }
}

fn run_tasks<B: Backend>(timeline: &Arc<Timeline<B>>, tasks: fn(&Timeline<B>) -> &Tasks<B>) {
    let (tasks, mut place) = (tasks(timeline), None);
    while let Some(Task { span, recorded, run }) = tasks.next(&mut place) {
        // The end of the process waits for the driver's call, and not for the callback, which may never end.
        let in_driver = DriverUse::new();
        let waited = match recorded {
            Some(recorded) => timeline.wait_recorded(span.last, &recorded),
            None => timeline.wait_host(span.last),
        };
        let result = waited.result.and_then(|()| timeline.outcome(span));
        drop(in_driver);
        let info = timeline.context.raw.info();
        let context = NonBlockingContext { backend: info.backend, device: info.ordinal, stream: None };
        if let Err(message) = user_code::run(move || NonBlockingContext::run(Some(context), || run(result))) {
            let kind = ErrorKind::CallbackPanicked { message };
            timeline.context.errors.push(timeline.context.error("callback", kind));
        }
        // After the callback: who waits in `drain` may free what it has used.
        tasks.state.lock().ran += 1;
        // All: several threads may drain at once.
        tasks.changed.notify_all();
    }
}
