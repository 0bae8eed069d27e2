//! Enqueuing work in the right order.

use super::{Timeline, UseLog, queue::Point, timeline::Enqueued};
use crate::{memory::Allocation, sync::MutexGuard, trace::Recorder};
use gpumem_core::{Backend, Error, ErrorKind, Result};
use smallvec::SmallVec;
use std::{ops::Range, sync::Arc};

/// A use of memory by work that is about to be enqueued.
#[derive(Debug, Clone)]
pub(crate) struct Access<'a, B: Backend> {
    pub(crate) memory: &'a Arc<Allocation<B>>,
    /// Bytes of the allocation.
    pub(crate) extent: Range<usize>,
    pub(crate) write: bool,
}

impl<'a, B: Backend> Access<'a, B> {
    pub(crate) fn read(memory: &'a Arc<Allocation<B>>, extent: Range<usize>) -> Self {
        Self { memory, extent, write: false }
    }

    pub(crate) fn write(memory: &'a Arc<Allocation<B>>, extent: Range<usize>) -> Self {
        Self { memory, extent, write: true }
    }
}

/// Work that has been enqueued.
#[derive(Debug)]
pub(crate) struct Submitted<R> {
    pub(crate) ticket: u64,
    pub(crate) value: R,
}

type Log<'a, B> = MutexGuard<'a, UseLog<Arc<Timeline<B>>>>;

/// The logs of what is used, by the numbers of the allocations.
struct Logs<'a, B: Backend>(SmallVec<[(u64, Log<'a, B>); 4]>);

impl<'a, B: Backend> Logs<'a, B> {
    /// Locks them in one order everywhere, and one allocation only once. Looking for the next each time is what costs
    /// least for a handful of arrays.
    fn lock(accesses: &[Access<'a, B>]) -> Self {
        let mut logs = SmallVec::new();
        let mut last = None;
        loop {
            let rest = accesses.iter().map(|access| access.memory).filter(|memory| Some(memory.id()) > last);
            let Some(next) = rest.min_by_key(|memory| memory.id()) else { return Self(logs) };
            let mut log = next.log();
            log.tidy();
            logs.push((next.id(), log));
            last = Some(next.id());
        }
    }

    fn of(&mut self, memory: &Allocation<B>) -> Option<&mut Log<'a, B>> {
        self.0.iter_mut().find(|(id, _)| *id == memory.id()).map(|(_, log)| log)
    }
}

impl<B: Backend> Timeline<B> {
    /// Whether the memory belongs to the device of the stream, for what works on one device only.
    pub(crate) fn check_owns(&self, operation: &'static str, memory: &Allocation<B>) -> Result<()> {
        if memory.core().is_same(&self.core) {
            return Ok(());
        }
        let (has, wants) = (memory.core().name(), self.core.name());
        Err(Error::new(B::NAME, operation, ErrorKind::WrongDevice { what: "array", has, wants }))
    }

    /// Enqueues work that uses memory, behind everything that it conflicts with on any stream.
    ///
    /// # Errors
    /// Those of the driver and of `enqueue`. By the time an error is returned nothing of the work is running any more.
    pub(crate) fn submit<R>(
        self: &Arc<Self>,
        operation: &'static str,
        accesses: &[Access<'_, B>],
        enqueue: impl FnOnce(&B::Stream) -> Result<R>,
    ) -> Result<Submitted<R>> {
        self.check(operation)?;
        for access in accesses {
            access.memory.check_beside(&self.core, operation)?;
        }
        let mut logs = Logs::lock(accesses);
        let mut needs: SmallVec<[(Arc<Timeline<B>>, u64); 4]> = SmallVec::new();
        for access in accesses {
            let Some(log) = logs.of(access.memory) else { continue };
            if log.is_only_of(self.id()) {
                continue;
            }
            for entry in log.conflicts(&access.extent, access.write) {
                if entry.by.id() == self.id() || self.has_waited_for(entry.by.id(), entry.ticket) {
                    continue;
                }
                match needs.iter_mut().find(|(timeline, _)| timeline.id() == entry.by.id()) {
                    Some((_, ticket)) => *ticket = (*ticket).max(entry.ticket),
                    None => needs.push((entry.by.clone(), entry.ticket)),
                }
            }
        }
        let mut points: SmallVec<[(u64, Point<B>); 4]> = SmallVec::new();
        for (timeline, ticket) in &needs {
            points.push((
                timeline.id(),
                timeline.point(*ticket).map_err(|error| error.in_operation(operation))?,
            ));
        }

        let (ticket, result) = match self.enqueue(operation, &points, enqueue) {
            Enqueued::Ticket(ticket, result) => (ticket, result),
            // The logs stay as they are: what they name has not been waited for.
            Enqueued::Nothing(error) => return Err(error),
        };
        for access in accesses {
            if let Some(log) = logs.of(access.memory) {
                log.note(access.extent.clone(), access.write, self, ticket);
                Recorder::used(access.memory, &access.extent, access.write, operation, (self.id(), ticket));
            }
        }
        drop(logs);
        let told = accesses.iter().try_for_each(|access| access.memory.hold_borrowers(self, ticket));
        match told.and(result) {
            Ok(value) => Ok(Submitted { ticket, value }),
            Err(error) => Err(self.wait_first(ticket, error.in_operation(operation))),
        }
    }

    /// Law 8: part of a failed operation may be under way, so its memory is waited for before anybody hears of it.
    fn wait_first(&self, ticket: u64, error: Error) -> Error {
        let settled = self.settle(ticket);
        if let Err(second) = settled.result
            && !settled.done
        {
            self.core.errors.push(second);
        }
        error
    }
}
