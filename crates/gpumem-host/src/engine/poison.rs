//! Poisoned bytes: failed work did not write them, so work must not read them until they are written again.

use super::{Command, Engine, Queue};
use crate::copy::{runs_of_fill, runs_of_region};
use gpumem_core::{Failure, MemoryUse, MemoryUses, POISONED, current_uses};
use smallvec::SmallVec;
use std::{ops::Range, sync::Arc};

/// The memory that a command uses, as far as the caller has said.
#[derive(Debug, Default)]
pub(crate) struct Uses(SmallVec<[MemoryUse; 3]>);

impl MemoryUses for Uses {
    fn each(&self, found: &mut dyn FnMut(&MemoryUse)) {
        self.0.iter().for_each(found);
    }
}

/// A command in a queue, and the memory that it uses.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) command: Command,
    pub(crate) uses: Uses,
}

impl Item {
    /// A command with the uses that the runtime has set for this thread.
    pub(crate) fn now(command: Command) -> Self {
        let mut uses = Uses::default();
        if command.is_work() {
            current_uses(|all| all.each(&mut |used| uses.0.push(*used)));
        }
        Self { command, uses }
    }
}

/// Why a command failed.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    /// The error of the stream's next wait.
    pub(crate) what: Arc<str>,
    /// For users of the bytes that the command was to write: the first failure in the chain.
    pub(crate) failure: Arc<Failure>,
}

impl Fault {
    /// The failure of a command itself.
    #[cold]
    pub(crate) fn new(engine: &Engine, stream: u32, work: String, cause: String) -> Self {
        let what = format!("{work}: {cause}").into();
        let place = format!("host:{}, stream {stream}", engine.ordinal());
        Self { what, failure: Arc::new(Failure::new(work, place, cause)) }
    }

    /// A command that cannot run, because it uses bytes that a failed one was to write.
    #[cold]
    fn inherited(work: &str, failure: Arc<Failure>) -> Self {
        let Failure { work: writer, place, cause, .. } = &*failure;
        let what = format!(
            "{work}: it uses bytes that were to be written by {writer}, which failed on {place}: {cause}"
        );
        let what = what.into();
        Self { what, failure }
    }
}

impl Queue {
    /// Runs a command as a whole, unless it must not run. `before` is an earlier failure of its stream.
    pub(crate) fn run_whole(
        &self,
        command: &Command,
        uses: &dyn MemoryUses,
        before: Option<Fault>,
    ) -> Option<Fault> {
        match self.refuse(command, uses, before) {
            Refused::No => {
                let result = command.run(&self.engine, self.id, 0..command.units());
                self.conclude(command, uses, result)
            }
            Refused::LeftOut => None,
            Refused::Failed(fault) => Some(fault),
        }
    }

    /// Tells whether a command must not run. If so, poisons the bytes that it was to write.
    #[inline]
    pub(crate) fn refuse(&self, command: &Command, uses: &dyn MemoryUses, before: Option<Fault>) -> Refused {
        if let Some(before) = before {
            self.leave_out(command, uses, &before.failure);
            return Refused::LeftOut;
        }
        if !POISONED.is_any() { Refused::No } else { refuse_poisoned(command, uses) }
    }

    /// Poisons the bytes of a command that its stream leaves out. The failed work was not to write them, so the failure is
    /// the command's own.
    #[cold]
    fn leave_out(&self, command: &Command, uses: &dyn MemoryUses, before: &Failure) {
        let Failure { work, place, cause, .. } = before;
        let cause = format!("its stream left it out, after {work} had failed on {place}: {cause}");
        poison(uses, &Fault::new(&self.engine, self.number, command.work(), cause).failure);
    }

    /// Notes the outcome of a command that has run.
    #[inline]
    pub(crate) fn conclude(
        &self,
        command: &Command,
        uses: &dyn MemoryUses,
        result: Result<(), String>,
    ) -> Option<Fault> {
        match result {
            Ok(()) => {
                if POISONED.is_any() {
                    clear_written(command);
                }
                None
            }
            Err(cause) => {
                let fault = Fault::new(&self.engine, self.number, command.work(), cause);
                poison(uses, &fault.failure);
                Some(fault)
            }
        }
    }
}

/// Whether a command must not run.
#[derive(Debug)]
pub(crate) enum Refused {
    No,
    /// Its stream has failed, and no caller has been told.
    LeftOut,
    /// It uses bytes that failed work was to write.
    Failed(Fault),
}

#[cold]
fn refuse_poisoned(command: &Command, uses: &dyn MemoryUses) -> Refused {
    // A kernel may read the bytes that it writes.
    let reads = |used: &MemoryUse| !used.write || matches!(command, Command::Launch(_));
    let mut poisoned = None;
    uses.each(&mut |used| {
        if poisoned.is_none() && reads(used) {
            poisoned = POISONED.find(used);
        }
    });
    match poisoned {
        None => Refused::No,
        Some((_, failure)) => {
            poison(uses, &failure);
            Refused::Failed(Fault::inherited(&command.work(), failure))
        }
    }
}

/// Poisons the bytes that a command was to write.
#[cold]
pub(super) fn poison(uses: &dyn MemoryUses, failure: &Arc<Failure>) {
    uses.each(&mut |used| {
        if used.write {
            // SAFETY: the use is the command's, by the promise of `with_uses`.
            unsafe { POISONED.poison(used, failure) };
        }
    });
}

/// Clears the poison of the bytes that a command has written: exactly these, without gaps between them.
#[cold]
fn clear_written(command: &Command) {
    // SAFETY: the command has run to its end, and these are the bytes that it writes.
    let clear = |run: Range<u64>| unsafe { POISONED.clear(&run) };
    match command {
        Command::Copy(region) => runs_of_region(region, clear),
        Command::Strided(plan) => plan.runs(clear),
        Command::Fill(fill) => runs_of_fill(fill, clear),
        _ => {}
    }
}
