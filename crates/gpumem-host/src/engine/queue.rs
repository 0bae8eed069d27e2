//! A stream's queue: submission indexes, the thread that runs it, and the threads that wait for it.
//!
//! Every command gets a submission index, counted from 1. Commands end in order, so that one number says which are
//! done. At most one thread runs a stream at a time (`busy`); a queue that could go on and is not being run is either
//! in the list of the workers (`listed`) or belongs to an engine without threads.

use super::{CapturePoint, Command, Engine, Fault, Item, Sides, Work, run::Leaves};
use crate::error;
use crate::sync::lock;
use gpumem_core::{Error, FailedSubmissions, MemoryUses, SubmissionId};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};

/// A place in a stream: reached when the commands up to the submission index are done.
#[derive(Debug, Clone)]
pub(crate) struct Mark {
    pub(crate) queue: Arc<Queue>,
    pub(crate) submission: u64,
    /// Up to where failures of the stream had been told at the recording: the event does not report those.
    told: u64,
}

/// The progress of an event's stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    Pending,
    Reached,
    /// The device was lost before its turn came.
    Dropped,
}

impl Mark {
    /// Marks the end of a command.
    pub(crate) fn new(queue: &Arc<Queue>, submission: u64) -> Self {
        Self { queue: Arc::clone(queue), submission, told: queue.failed.told() }
    }

    /// Marks the end of the enqueued commands; it has no command itself.
    pub(crate) fn end(queue: &Arc<Queue>, state: &State) -> Self {
        Self::new(queue, state.enqueued)
    }

    /// The failure that an event at this position reports.
    pub(crate) fn fault(&self) -> Option<Error> {
        self.queue.failed.find(self.told + 1..=self.submission)
    }

    pub(crate) fn progress(&self) -> Progress {
        if self.queue.completed() < self.submission {
            Progress::Pending
        } else if self.submission >= self.queue.dropped_from.load(Ordering::Relaxed) {
            Progress::Dropped
        } else {
            Progress::Reached
        }
    }

    /// Tells whether a stream has to wait for the position, or to learn its outcome.
    pub(crate) fn is_news(&self) -> bool {
        self.progress() != Progress::Reached
    }
}

/// The queue of one stream. Handles, events and engines share it.
#[derive(Debug)]
pub(crate) struct Queue {
    /// The raw handle: unique in the process, never 0.
    pub(crate) id: u64,
    /// Streams of the device that were made before.
    pub(crate) number: u32,
    /// Resets of the device before this was made.
    pub(crate) generation: u64,
    pub(crate) engine: Arc<Engine>,
    pub(crate) state: Mutex<State>,
    pub(crate) progress: Condvar,
    /// Set when the owning handle is gone.
    pub(crate) closed: AtomicBool,
    /// Set by the first capture of the stream; `None` between captures.
    pub(super) capture_point: OnceLock<Mutex<Option<CapturePoint>>>,
    /// Failures that belong to no submission of the runtime, which hears of its own.
    pub(crate) failed: FailedSubmissions,
    /// The highest number of a submission of the runtime that has failed.
    last_failed: AtomicU64,
    completed: AtomicU64,
    dropped_from: AtomicU64,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) pending: VecDeque<Item>,
    pub(crate) enqueued: u64,
    /// Units of the first command that are done; only engines without threads tear commands.
    pub(crate) done_units: usize,
    pub(crate) chunks: u32,
    pub(crate) busy: bool,
    pub(crate) listed: bool,
    /// The first command waits, and the event's stream knows it.
    pub(crate) parked: bool,
    /// The first command is a future that was woken since it was polled.
    pub(crate) is_woken: bool,
    /// Smallest submission index that a sleeping thread waits for.
    pub(crate) wake_at: u64,
    pub(crate) at_once: AtOnce,
    pub(crate) sides: Sides,
    waiters: SmallVec<[(u64, Arc<Queue>); 2]>,
}

/// Copies that were done without a submission index. Counted here, where a lock is held anyway: a count that all streams
/// share costs as much as copying a hundred bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct AtOnce {
    pub(crate) copies: u64,
    pub(crate) bytes: u64,
}

/// Work to do after a queue's lock is released.
#[derive(Debug, Default)]
#[must_use]
pub(crate) struct Aftermath {
    woken: SmallVec<[Arc<Queue>; 2]>,
    dropped: VecDeque<Item>,
}

impl Aftermath {
    pub(crate) fn is_empty(&self) -> bool {
        self.woken.is_empty() && self.dropped.is_empty()
    }

    pub(crate) fn settle(self) {
        self.dropped.into_iter().map(|item| item.command).for_each(Command::retire);
        for queue in self.woken {
            queue.unpark();
        }
    }
}

impl Queue {
    pub(crate) fn new(engine: &Arc<Engine>, id: u64, number: u32) -> Self {
        engine.counters().streams_created.up();
        engine.counters().streams.up();
        Self {
            id,
            number,
            generation: engine.generation(),
            engine: Arc::clone(engine),
            state: Mutex::new(State {
                pending: VecDeque::new(),
                enqueued: 0,
                done_units: 0,
                chunks: 0,
                busy: false,
                listed: false,
                parked: false,
                is_woken: false,
                wake_at: u64::MAX,
                at_once: AtOnce::default(),
                sides: Sides::default(),
                waiters: SmallVec::new(),
            }),
            progress: Condvar::new(),
            closed: AtomicBool::new(false),
            capture_point: OnceLock::new(),
            failed: FailedSubmissions::default(),
            last_failed: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            dropped_from: AtomicU64::new(u64::MAX),
        }
    }

    /// The submission index of the last command that is done. Its effects are visible to every thread that
    /// reads this.
    pub(crate) fn completed(&self) -> u64 {
        self.completed.load(Ordering::Acquire)
    }

    /// Counts the first command as done. It is no longer in `pending`.
    pub(crate) fn complete(&self, state: &mut State, fault: Option<Fault>) -> Aftermath {
        let submission = self.completed.load(Ordering::Relaxed) + 1;
        if let Some(fault) = fault {
            self.note_failed(submission, &fault);
        }
        state.done_units = 0;
        state.chunks = 0;
        self.advance(state, submission)
    }

    /// Notes a failure, before anyone can see that the command is over.
    #[cold]
    fn note_failed(&self, submission: u64, fault: &Fault) {
        self.engine.counters().faults.up();
        let (error, is_consequence) = (error::fault("work", &fault.what), fault.is_consequence);
        let note = |id: SubmissionId| {
            self.last_failed.fetch_max(id.submission, Ordering::Relaxed);
            // SAFETY: the command that failed is part of it: its uses say so.
            unsafe { id.note_failed(&error, is_consequence) }
        };
        if !fault.submission.is_some_and(note) {
            self.failed.note(submission..=submission, &error, is_consequence);
        }
    }

    /// Whether an earlier command of the same submission has failed. Only the thread that runs the stream asks, which has
    /// taken the lock since.
    #[inline]
    pub(crate) fn has_failed_before(&self, uses: &dyn MemoryUses) -> bool {
        let last = self.last_failed.load(Ordering::Relaxed);
        last > 0 && uses.submission().is_some_and(|id| id.submission <= last && id.has_failed())
    }

    /// Drops pending commands after the device was lost. The running command is left to its thread.
    pub(crate) fn abandon(&self) {
        let mut state = lock(&self.state);
        if !state.busy {
            if let Some(mut item) = state.pending.pop_front() {
                if item.as_future().is_some() {
                    // Others may use the memory until the future is dropped, and it counts as free once the command is over.
                    state.busy = true;
                    drop(state);
                    if let Some((pending, _)) = item.as_future() {
                        pending.discard();
                    }
                    state = lock(&self.state);
                    state.busy = false;
                }
                state.pending.push_front(item);
            }
            let completed = self.completed.load(Ordering::Relaxed);
            let aftermath = self.advance(&mut state, completed);
            drop(state);
            aftermath.settle();
        }
    }

    fn advance(&self, state: &mut State, mut completed: u64) -> Aftermath {
        let mut aftermath = Aftermath::default();
        if self.engine.is_lost() && completed < state.enqueued {
            self.dropped_from.fetch_min(completed + 1, Ordering::Relaxed);
            aftermath.dropped = std::mem::take(&mut state.pending);
            self.poison_dropped(&aftermath.dropped);
            state.done_units = 0;
            state.parked = false;
            completed = state.enqueued;
        }
        self.completed.store(completed, Ordering::Release);
        if completed >= state.wake_at {
            state.wake_at = u64::MAX;
            self.progress.notify_all();
        }
        if !state.waiters.is_empty() {
            let woken = &mut aftermath.woken;
            state.waiters.retain(|(submission, queue)| {
                let waits = *submission > completed;
                if !waits {
                    woken.push(Arc::clone(queue));
                }
                waits
            });
        }
        aftermath
    }

    /// Poisons the bytes that dropped commands were to write, perhaps on another device.
    #[cold]
    fn poison_dropped(&self, dropped: &VecDeque<Item>) {
        for Item { command, uses } in dropped.iter().filter(|item| item.command.is_work()) {
            if let Command::Poison(torn) = command {
                torn.poison();
                continue;
            }
            let cause = format!("the device was lost: {}", self.engine.cause());
            let fault = Fault::new(&self.engine, self.number, command.name(), cause);
            let _fault = fault.poison(uses);
        }
    }

    /// Has `waiter` unparked once the submission index is done. `false` if it is already.
    pub(crate) fn park(&self, submission: u64, waiter: &Arc<Queue>) -> bool {
        let mut state = lock(&self.state);
        if self.completed() >= submission {
            return false;
        }
        state.waiters.push((submission, Arc::clone(waiter)));
        true
    }

    /// The event that the first command waited for is done.
    fn unpark(self: Arc<Self>) {
        let mut state = lock(&self.state);
        state.parked = false;
        let list = self.engine.has_workers() && state.take_listing();
        drop(state);
        if list {
            Engine::list(self);
        }
    }

    /// Forgets failures, after a reset.
    pub(crate) fn forget_faults(&self) {
        self.failed.forget();
    }
}

impl State {
    /// Whether the first command is a kernel, or a graph of some, whose bodies are code of the user.
    pub(crate) fn is_kernel_next(&self) -> bool {
        self.is_next_left(Leaves::Kernels)
    }

    /// Whether a thread leaves the first command to others.
    pub(super) fn is_next_left(&self, leaves: Leaves) -> bool {
        match self.pending.front().map(|item| &item.command) {
            Some(Command::Work(Work::Launch(_))) => leaves != Leaves::Nothing,
            Some(Command::Graph(launch)) => launch.cost.is_none() && leaves != Leaves::Nothing,
            Some(Command::Future(_)) => leaves == Leaves::UserCode,
            _ => false,
        }
    }

    /// Whether the queue is to be put on the workers' list. Says so to one caller only.
    pub(crate) fn take_listing(&mut self) -> bool {
        let list = !self.busy && !self.listed && !self.parked && !self.pending.is_empty();
        self.listed |= list;
        list
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        if self.engine.origin().is_valid() {
            self.engine.counters().streams.down();
            let state = self.state.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
            self.engine.counters().copies.add(state.at_once.copies);
            self.engine.counters().copied_bytes.add(state.at_once.bytes);
            if let Some(error) = self.failed.untold(u64::MAX) {
                self.engine.leave_fault(error::what(&error));
            }
        }
    }
}
