//! What the callers tell the engine's thread.

use super::{MpiError, abi::Object, comm::Unclaimed, member::Parting, operation::Owned};
use crate::{Options, deadline::Deadline};
use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError, mpsc::Sender},
    thread::{self, JoinHandle},
    time::Duration,
};

/// What the thread is told.
#[derive(Debug)]
pub(crate) enum Message {
    Join(Options, Sender<Result<Unclaimed, MpiError>>),
    Add(Owned),
    /// This rank has dropped a communicator, or aborted it, by its key.
    Leave(u64),
    Abort(u64),
    /// A split has made its communicator.
    Made(Parting, Result<Object, MpiError>),
    /// The process ends, or another library is about to finalise MPI. The sender is dropped once the thread calls MPI no
    /// more.
    Finish(Ending, Sender<()>),
}

/// Who finalises MPI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The thread, if it has initialised MPI.
    Own,
    Other,
}

#[derive(Debug, Default)]
pub(crate) struct Inbox {
    state: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    messages: VecDeque<Message>,
    is_woken: bool,
    /// The thread has ended.
    is_closed: bool,
    thread: Option<JoinHandle<()>>,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // After the lock of a communicator, which adds operations within its own.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_thread(&self, thread: JoinHandle<()>) {
        // The thread may look for messages already, which needs the same lock for a moment.
        self.lock().thread = Some(thread);
    }

    /// Waits until the thread is gone, unless it is this one.
    pub(crate) fn join_thread(&self) {
        let is_other = |thread: &mut JoinHandle<()>| thread.thread().id() != thread::current().id();
        // Taken out: the thread needs the lock to end.
        let thread = self.lock().thread.take_if(is_other);
        if let Some(thread) = thread {
            // A panic was told when it happened.
            let _ = thread.join();
        }
    }

    /// Tells the thread. If it has ended, the message is dropped: the stream or the caller that waits gets an error.
    pub(crate) fn push(&self, message: Message) {
        let mut queue = self.lock();
        if !queue.is_closed {
            queue.messages.push_back(message);
            // The thread that is woken finds the lock free.
            drop(queue);
            self.changed.notify_one();
        }
    }

    /// Nothing is taken any more.
    pub(crate) fn close(&self) {
        let mut queue = self.lock();
        queue.is_closed = true;
        let messages = std::mem::take(&mut queue.messages);
        drop(queue);
        // Streams that are woken may call operations.
        drop(messages);
    }

    /// Has the thread look at the operations again.
    pub(crate) fn wake(&self) {
        self.lock().is_woken = true;
        self.changed.notify_one();
    }

    /// Takes all messages. Waits for one, or for being woken, so long at most.
    pub(crate) fn take(&self, wait: Option<Duration>) -> VecDeque<Message> {
        let mut queue = self.lock();
        let until = wait.map(Deadline::after);
        // Looked at under the lock in which messages are added: none comes unseen between the look and the sleep.
        while queue.messages.is_empty() && !queue.is_woken {
            queue = match until.and_then(Deadline::rest) {
                None => self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => break,
                Some(rest) => {
                    self.changed.wait_timeout(queue, rest).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        // Under the lock: a wake that comes after this is for the next look.
        queue.is_woken = false;
        std::mem::take(&mut queue.messages)
    }
}
