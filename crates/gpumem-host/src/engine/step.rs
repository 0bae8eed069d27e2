//! One step of a stream: taking its first command, or a part of it, running that without the lock, and giving the stream
//! back. Workers, threads that wait and the adversarial schedule differ only in which stream they take, and how much.

use super::{
    Command, Fault, Item, Mark, Progress, Queue, Refused,
    queue::{Aftermath, State},
};
use crate::sync::lock;
use std::{
    ops::Range,
    sync::{Arc, MutexGuard},
    task::Poll,
};

/// What a stream can do next.
pub(super) enum Next {
    /// Nothing is enqueued.
    Nothing,
    /// Another thread runs it.
    Busy,
    /// The first command waits for this.
    Waits(Mark),
    /// The first command is a future that waits to be woken.
    Parked,
    /// The first command, or a part of it; with a fault, only as a failure.
    Ready(Option<Fault>),
}

/// The first command of a stream, or a part of it.
pub(super) struct CommandPart {
    item: Item,
    units: Range<usize>,
    is_last: bool,
    submission: u64,
}

/// What has become of a command.
pub(super) enum Outcome {
    /// It is over, perhaps by a fault.
    Over(Option<Fault>),
    /// It goes on from this unit.
    Torn(Item, usize),
    /// It is a future that is not ready.
    Pending(Item),
}

impl Queue {
    /// What the stream can do next.
    #[inline]
    pub(super) fn next(&self, state: &State) -> Next {
        if state.busy {
            return Next::Busy;
        }
        match state.pending.front().map(|item| &item.command) {
            None => Next::Nothing,
            Some(Command::Future(_)) if state.parked => Next::Parked,
            Some(Command::Wait(mark)) => match mark.progress() {
                Progress::Pending => Next::Waits(mark.clone()),
                Progress::Reached => Next::Ready(None),
                Progress::Dropped => Next::Ready(Some(self.lost_producer())),
            },
            Some(_) => Next::Ready(None),
        }
    }

    /// The event that the first command waits for. None while a command runs: those after it may wait for what waits for it.
    pub(super) fn waits_for(&self) -> Option<Mark> {
        match self.next(&lock(&self.state)) {
            Next::Waits(mark) => Some(mark),
            _ => None,
        }
    }

    /// Takes out the first command, or a part of it, which [is ready](Next::Ready). The stream is busy until it is [given
    /// back](Self::give_back). `cut` says how many of the units that are left belong to it, given the number of parts so far.
    #[inline(always)]
    pub(super) fn take(
        &self,
        state: &mut State,
        cut: impl FnOnce(usize, u32) -> usize,
    ) -> Option<CommandPart> {
        let item = state.pending.pop_front()?;
        (state.busy, state.is_woken) = (true, false);
        let (start, units) = (state.done_units, item.command.units());
        let end = start + cut(units - start, state.chunks);
        Some(CommandPart { item, units: start..end, is_last: end >= units, submission: self.completed() + 1 })
    }

    /// Runs a step, without the lock of the stream.
    #[inline(always)] // the command is not moved
    pub(super) fn execute(self: &Arc<Self>, part: CommandPart, fault: Option<Fault>) -> Outcome {
        let CommandPart { mut item, units, is_last, submission } = part;
        if matches!(item.command, Command::Future(_)) {
            let Poll::Ready(fault) = self.poll_future(&mut item, submission) else {
                return Outcome::Pending(item);
            };
            item.command.retire();
            return Outcome::Over(fault);
        }
        let end = units.end;
        if let Item { command: Command::Graph(launch), uses } = &mut item {
            self.run_graph(launch, uses, end);
            if !is_last {
                return Outcome::Torn(item, end);
            }
            let fault = fault.or(launch.take_fault());
            item.command.retire();
            return Outcome::Over(fault);
        }
        let Item { command, uses } = item;
        // Nothing that it uses changes between its parts.
        let (fault, is_over) = match self.refuse(command.as_work(), &uses, || command.name()) {
            Refused::No => {
                let result = command.run(&self.engine, self.id, units);
                match is_last || result.is_err() {
                    true => {
                        (fault.or(self.conclude(command.as_work(), &uses, result, || command.name())), true)
                    }
                    false => (fault, false),
                }
            }
            Refused::Rest => (fault, true),
            Refused::Failed(fault) => (Some(fault), true),
        };
        if !is_over {
            return Outcome::Torn(Item { command, uses }, end);
        }
        command.retire();
        Outcome::Over(fault)
    }

    /// Gives the stream back after a step. The result is to be settled without the lock.
    #[inline(always)]
    pub(super) fn give_back(&self, state: &mut State, outcome: Outcome) -> Aftermath {
        state.busy = false;
        match outcome {
            Outcome::Over(fault) => {
                state.parked = false;
                return self.complete(state, fault);
            }
            Outcome::Torn(item, done_units) => {
                state.pending.push_front(item);
                state.done_units = done_units;
                state.chunks += 1;
            }
            Outcome::Pending(item) => {
                state.pending.push_front(item);
                state.parked = !state.is_woken;
            }
        }
        Aftermath::default()
    }

    /// Settles what a step has left, without the lock. No other thread runs the stream meanwhile.
    #[inline]
    pub(super) fn settle<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        aftermath: Aftermath,
    ) -> MutexGuard<'a, State> {
        if aftermath.is_empty() {
            return state;
        }
        state.busy = true;
        drop(state);
        aftermath.settle();
        let mut state = lock(&self.state);
        state.busy = false;
        state
    }
}
