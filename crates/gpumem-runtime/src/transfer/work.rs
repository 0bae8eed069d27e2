//! What the threads of one transfer share beside its bytes: how far it is, whether it goes on, and why not.

use super::{
    bell::Bell,
    progress::{Progress, Watch},
};
use crate::{Device, completion, memory::Staging, order::Timeline};
use gpumem_core::{Backend, Error, ErrorKind, Result, StreamKind};
use parking_lot::Mutex;
use std::{
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

/// Of more threads than this the calling one moves nothing, once some others have come, but keeps the copy engine busy: a copy that
/// is enqueued late is enqueued behind a pause of the engine, which costs more than one thread more brings.
const MANY: usize = 8;
const ENOUGH: usize = 4;

/// Whether the calling thread moves a transfer alone: a stream of one thread can be used by no other; and who may not block must not have
/// others block for him.
pub(super) fn is_alone<B: Backend>(timeline: &Timeline<B>, operation: &'static str) -> bool {
    timeline.kind() == StreamKind::PerThread || completion::may_block(operation).is_err()
}

/// One transfer, as its threads see it.
pub(super) struct Work<'a, B: Backend> {
    pub(super) device: &'a Device<B>,
    pub(super) timeline: &'a Arc<Timeline<B>>,
    pub(super) operation: &'static str,
    /// The calling one among them.
    pub(super) threads: usize,
    /// Bytes of all.
    pub(super) total: u64,
    /// Rung when there is more to do, when something has been done, and at the end.
    pub(super) bell: Bell,
    /// Helpers that have come.
    helpers: AtomicUsize,
    ended: AtomicBool,
    failure: Mutex<Option<Error>>,
    done: AtomicU64,
    /// Of the last copy.
    ticket: AtomicU64,
}

/// Ends the work of all threads when one unwinds.
struct EndOnUnwind<'w, 'a, B: Backend>(&'w Work<'a, B>);

impl<B: Backend> Drop for EndOnUnwind<'_, '_, B> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.end();
        }
    }
}

impl<'a, B: Backend> Work<'a, B> {
    pub(super) fn new(
        device: &'a Device<B>,
        timeline: &'a Arc<Timeline<B>>,
        operation: &'static str,
        threads: usize,
        total: usize,
    ) -> Self {
        Self {
            device,
            timeline,
            operation,
            threads,
            total: total as u64,
            bell: Bell::default(),
            helpers: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
            failure: Mutex::new(None),
            done: AtomicU64::new(0),
            ticket: AtomicU64::new(0),
        }
    }

    /// Has the calling thread `conduct` and the others `help`, and returns the last ticket when all have returned. The former is given
    /// what it is to call whenever more is done.
    ///
    /// # Errors
    /// The first failure. Nothing of the transfer is running any more then, on the device neither.
    pub(super) fn run(
        &self,
        help: &(dyn Fn() -> Result<()> + Sync),
        conduct: impl Fn(&mut dyn FnMut()) -> Result<()>,
        mut watch: Option<Watch<'_>>,
    ) -> Result<u64> {
        let or_fail = |outcome: Result<()>| {
            if let Err(error) = outcome {
                self.fail(error);
            }
        };
        let help = || {
            let _end = EndOnUnwind(self);
            self.helpers.fetch_add(1, Ordering::Relaxed);
            or_fail(help());
        };
        let conduct = |after_each: &mut dyn FnMut()| {
            let _end = EndOnUnwind(self);
            or_fail(conduct(after_each));
        };
        let mut told = 0;
        self.device.0.staging.crew().run(self.threads - 1, &help, || match &mut watch {
            // Code of the user's, which finds its own context.
            Some(watch) => conduct(&mut || self.tell(&mut told, watch)),
            None => B::with_current(self.device.raw(), &mut || conduct(&mut || ())),
        });
        if told < self.total
            && self.failure.lock().is_none()
            && let Some(watch) = &mut watch
        {
            // Others have moved the last part, or all of them before this thread had a turn.
            self.tell(&mut told, watch);
        }
        let ticket = self.ticket.load(Ordering::Relaxed);
        match self.failure.lock().take() {
            None => Ok(ticket),
            Some(error) => {
                // Law 8: wait first, report after.
                let settled = self.timeline.settle(ticket);
                if let Err(second) = settled.result
                    && !settled.done
                {
                    self.device.core().errors.push(second);
                }
                Err(error)
            }
        }
    }

    /// Tells what has been done since the last time.
    fn tell(&self, told: &mut u64, watch: Watch<'_>) {
        let done = self.done.load(Ordering::Relaxed);
        if done > *told {
            *told = done;
            if watch(Progress { done, total: self.total }) == ControlFlow::Break(()) {
                self.fail(self.device.core().error(self.operation, ErrorKind::Cancelled));
            }
        }
    }

    /// So many bytes more have been moved, or handed to the copy engine.
    pub(super) fn has_done(&self, bytes: usize) {
        self.done.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn fail(&self, error: Error) {
        self.failure.lock().get_or_insert(error);
        self.end();
    }

    /// Nobody takes another part.
    fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.bell.ring();
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Whether a copy has been enqueued.
    pub(super) fn has_begun(&self) -> bool {
        self.ticket.load(Ordering::Relaxed) > 0
    }

    /// Whether the calling thread moves parts too.
    pub(super) fn is_for_all(&self) -> bool {
        self.threads <= MANY || self.helpers.load(Ordering::Relaxed) < ENOUGH
    }

    /// A copy of this transfer has been enqueued. It `is_marked` if there are others, so that it can be waited for alone.
    pub(super) fn has_enqueued(&self, ticket: u64, is_marked: bool) {
        self.ticket.fetch_max(ticket, Ordering::Relaxed);
        if is_marked {
            // Without a mark of its own the copy is waited for together with everything behind it: slow, not wrong.
            let _ = self.timeline.point(ticket);
        }
    }

    /// Whether the copy with that ticket is over, asking the driver if `ask`. What it did wrong is told when it is waited for.
    pub(super) fn has_passed(&self, ticket: u64, ask: bool) -> bool {
        self.timeline.has_passed(ticket) || ask && matches!(self.timeline.poll(ticket), Ok(true))
    }

    /// Waits for the copy that uses a block.
    pub(super) fn settle(&self, staging: &Arc<Staging<B>>, ticket: u64) -> Result<()> {
        let settled = self.timeline.settle(ticket);
        if !settled.done {
            // The device may go on using the block.
            std::mem::forget(staging.clone());
        }
        settled.result.map_err(|error| error.in_operation(self.operation))
    }
}
