//! Futures as commands: a stream whose first command is a pending future is parked, and no thread waits for it.

use super::{Command, Engine, Fault, Item, Queue, Refused, drop_of_user};
use crate::process::Adversary;
use crate::sync::lock;
use gpumem_core::{Failure, HostFuture, MemoryUse, MemoryUses, NonBlockingContext, POISONED, user_code};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Wake, Waker};

/// A future in a queue.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) work: &'static str,
    /// `None` once it was dropped.
    future: Option<HostFuture>,
    /// Whether it was polled. From then on other threads may use the memory of the command, until the future is ready
    /// or dropped.
    has_begun: bool,
}

impl Pending {
    pub(crate) fn new(future: HostFuture) -> Self {
        Self { work: future.work(), future: Some(future), has_begun: false }
    }

    /// Drops the future. The stream goes on if that panics.
    pub(crate) fn discard(&mut self) {
        if let Some(future) = self.future.take() {
            drop_of_user("a future", future);
        }
    }
}

/// Wakes the stream whose first command is the future.
struct WakeQueue {
    queue: Arc<Queue>,
    /// The submission index of the future: a later command is not woken.
    submission: u64,
}

impl Wake for WakeQueue {
    fn wake(self: Arc<Self>) {
        let Self { queue, submission } = &*self;
        let mut state = lock(&queue.state);
        if queue.completed() + 1 != *submission {
            return;
        }
        state.is_woken = true;
        state.parked = false;
        let engine = &queue.engine;
        let list = engine.has_workers() && state.take_listing();
        drop(state);
        if list {
            Engine::list(Arc::clone(queue));
        } else if engine.is_closed() && !engine.has_workers() {
            engine.run_out();
        }
    }
}

impl Item {
    /// The future, if the command is one.
    pub(crate) fn as_future(&mut self) -> Option<(&mut Pending, &dyn MemoryUses)> {
        match &mut self.command {
            Command::Future(pending) => Some((pending, &self.uses)),
            _ => None,
        }
    }
}

impl Queue {
    /// Polls the future that was taken from the front of the queue. `Pending` if it has to go back there; otherwise it
    /// is over, with the fault if it failed. The queue is busy meanwhile, and its lock is free.
    pub(crate) fn poll_future(self: &Arc<Self>, item: &mut Item, submission: u64) -> Poll<Option<Fault>> {
        if matches!(&item.command, Command::Future(pending) if !pending.has_begun) {
            match self.refuse(None, &item.uses, || item.command.name()) {
                Refused::No => {}
                Refused::Rest => return Poll::Ready(None),
                Refused::Failed(fault) => return Poll::Ready(Some(fault)),
            }
        }
        let Some((pending, uses)) = item.as_future() else { return Poll::Ready(None) };
        let Some(future) = &mut pending.future else { return Poll::Ready(None) };
        pending.has_begun = true;
        let waker = Waker::from(Arc::new(WakeQueue { queue: Arc::clone(self), submission }));
        let context =
            NonBlockingContext { backend: crate::NAME, device: self.engine.ordinal(), stream: Some(self.id) };
        let polled = user_code::run(|| {
            NonBlockingContext::run(Some(context), || future.poll(&mut Context::from_waker(&waker)))
        });
        let failure = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(Ok(()))) => {
                if self.engine.knows_poison() {
                    clear_written(uses);
                }
                return Poll::Ready(None);
            }
            Ok(Poll::Ready(Err(failure))) => failure,
            Err(message) => {
                let cause = format!("it panicked: {message}");
                let place = format!("host:{}, stream {}", self.engine.ordinal(), self.number);
                // Others may write the memory until it is dropped.
                pending.discard();
                Failure::new(pending.work, place, cause)
            }
        };
        Poll::Ready(Some(Fault::of(failure.to_string(), failure).poison(uses)))
    }

    /// Whether the first command is a future that waits to be woken.
    pub(crate) fn is_parked_future(&self) -> bool {
        let state = lock(&self.state);
        state.parked && matches!(state.pending.front(), Some(Item { command: Command::Future(_), .. }))
    }
}

impl Engine {
    /// Ends a device without threads whose last handle is gone: its work runs to its end. A stream that is parked goes on
    /// when its future is woken.
    pub(crate) fn finish(&self) {
        for queue in self.adversary_queues() {
            let enqueued = lock(&queue.state).enqueued;
            while queue.completed() < enqueued {
                if !queue.help(enqueued) {
                    if queue.waits_for_future() {
                        break;
                    }
                    queue.nap(enqueued);
                }
            }
        }
        self.forget_idle_queues();
    }

    /// Runs all work that can run of a device without threads whose last handle is gone. Never waits. If a thread is at it,
    /// that one goes on.
    pub(crate) fn run_out(&self) {
        if self.run_outs.fetch_add(1, Ordering::AcqRel) != 0 {
            return;
        }
        let mut calls = 1;
        loop {
            while self.step() {}
            match self.run_outs.compare_exchange(calls, 0, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => break,
                Err(now) => calls = now,
            }
        }
        self.forget_idle_queues();
    }
}

/// Clears the poison of all bytes that a future was to write, and has written.
#[cold]
fn clear_written(uses: &dyn MemoryUses) {
    uses.each(&mut |used: &MemoryUse| {
        if used.write {
            // SAFETY: the future has written them, by the promise of `Stream::enqueue_future`.
            unsafe { POISONED.clear(&used.range()) };
        }
    });
}
