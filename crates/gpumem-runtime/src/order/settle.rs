//! How the host learns that work is done, or that it failed.

use super::{
    Timeline,
    queue::{Point, stale},
};
use crate::completion;
use gpumem_core::{Backend, Error, ErrorKind, Event, Result, Stream};

/// How a wait of the host ended.
#[derive(Debug)]
pub(crate) struct Settled {
    /// Whether the work is proven to be done, or to have stopped: its memory is not touched any more.
    pub(crate) done: bool,
    /// What the work or the driver says.
    pub(crate) result: Result<()>,
}

impl Settled {
    pub(crate) fn done() -> Self {
        Self { done: true, result: Ok(()) }
    }

    fn unproven(error: Error) -> Self {
        Self { done: false, result: Err(error) }
    }
}

impl<B: Backend> Timeline<B> {
    /// Remembers that work up to `ticket` failed.
    fn note_fault(&self, ticket: u64, error: &Error) {
        let mut fault = self.fault.lock();
        if fault.as_ref().is_none_or(|(last, _)| *last < ticket) {
            *fault = Some((ticket, error.clone()));
        }
    }

    /// Whether work up to `ticket` is known to have failed, or to stand behind work that did.
    pub(crate) fn has_failed(&self, ticket: u64) -> bool {
        self.fault.lock().as_ref().is_some_and(|(last, _)| *last >= ticket)
    }

    /// What work behind `ticket` did wrong, whoever was told of it.
    ///
    /// # Errors
    /// That failure.
    pub(crate) fn fault_since(&self, ticket: u64) -> Result<()> {
        match self.fault.lock().as_ref() {
            Some((last, error)) if *last > ticket => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// Whether `ticket` is done, asking the driver. Never blocks.
    ///
    /// # Errors
    /// What the work or the driver says. Work that failed counts as done afterwards.
    pub(crate) fn poll(&self, ticket: u64) -> Result<bool> {
        if self.has_passed(ticket) || self.is_stale() {
            return Ok(true);
        }
        let (answer, covers) = {
            let mut queue = self.queue.lock();
            if self.everything && !queue.marks.has(ticket) {
                match self.record(&mut queue) {
                    Err(error) if is_unsupported(&error) => return Ok(false),
                    recorded => recorded?,
                }
            }
            if !queue.marks.has(ticket) {
                let raw = queue.raw.clone();
                let last = queue.ticket;
                match raw.map(|raw| raw.query()) {
                    Some(Ok(false)) if ticket < last => queue.record(&self.core).map(drop)?,
                    Some(Ok(false)) => return Ok(false),
                    Some(answer) => return self.conclude(last, answer),
                    None => return Err(stale(&self.core, "query")),
                }
            }
            match queue.marks.find(ticket) {
                Some((covers, mark)) => (mark.event().map_or(Ok(true), Event::query), *covers),
                None => return Ok(true),
            }
        };
        self.conclude(covers, answer)
    }

    /// Draws the conclusion from what the driver says about `ticket`.
    fn conclude(&self, ticket: u64, answer: Result<bool>) -> Result<bool> {
        let answer = self.core.note_loss(answer);
        let done = match &answer {
            Ok(done) => *done,
            Err(error) if ends_the_work(error) => {
                self.note_fault(ticket, error);
                true
            }
            Err(_) => false,
        };
        if done {
            self.note_passed(ticket);
        }
        answer
    }

    /// Blocks until `ticket` is done, or cannot go on. Needs no event: where no mark stands for the ticket, the
    /// stream itself is waited for.
    pub(crate) fn settle(&self, ticket: u64) -> Settled {
        if self.has_passed(ticket) || self.is_stale() {
            return Settled::done();
        }
        if let Err(error) = completion::may_block("synchronize") {
            return Settled::unproven(error);
        }
        if let Err(error) = self.core.check_process("synchronize") {
            return Settled::unproven(error);
        }
        let begin = self.core.recorder.begin_wait();
        let (covers, answer) = {
            let queue = self.queue.lock();
            let (last, raw, mark) = (queue.ticket, queue.raw.clone(), queue.mark_for(ticket));
            drop(queue);
            match (mark, raw) {
                (Some(Point::Mark { ticket, mark }), _) => {
                    (ticket, mark.event().map_or(Ok(()), Event::synchronize))
                }
                (_, Some(raw)) => (last, raw.synchronize()),
                // The stream was dropped and its last mark could not be made: only the device can tell.
                (_, None) => (last, B::synchronize(&self.core.raw)),
            }
        };
        self.core.recorder.end_wait(begin, self.id(), covers);
        match self.core.note_loss(answer) {
            Ok(()) => {
                self.note_passed(covers);
                Settled::done()
            }
            Err(error) => {
                // Either the work itself is at fault and over, or the wait is; then the whole device is asked.
                let failed = ends_the_work(&error);
                if failed {
                    self.note_fault(covers, &error);
                }
                let done = failed || B::synchronize(&self.core.raw).is_ok();
                if done {
                    self.note_passed(covers);
                }
                Settled { done, result: Err(error) }
            }
        }
    }

    /// Waits until everything on the driver's stream is done, what others have enqueued there included.
    pub(crate) fn settle_all(&self) -> Settled {
        let last = {
            let mut queue = self.queue.lock();
            // Foreign work on the same stream has no ticket of ours: a new one makes `settle` look again.
            queue.ticket += 1;
            queue.ticket
        };
        self.settle(last)
    }

    /// Waits as [`settle_all`](Self::settle_all), and until callbacks have run. Staged transfers land unless their work
    /// failed, whoever was told of it, or `land` says that nobody knows.
    pub(crate) fn finish(&self, land: bool) -> Settled {
        let settled = self.settle_all();
        self.landings.give_up(|ticket| self.has_failed(ticket));
        if land {
            self.landings.run(|ticket| self.has_passed(ticket));
        } else {
            self.landings.give_up(|ticket| self.has_passed(ticket));
        }
        if settled.done {
            self.callbacks.drain();
        }
        settled
    }
}

pub(super) fn is_unsupported(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Unsupported { .. })
}

/// Whether an error says that the work is over: it failed, or its device has stopped.
fn ends_the_work(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::AsynchronousFault { .. } | ErrorKind::DeviceLost { .. })
}
