//! Poisoned bytes: failed work did not write them, so work must not read them until they are written again.

use super::{Command, Engine, Queue, Work};
use gpumem_core::{Failure, MemoryUse, MemoryUses, POISONED, SubmissionId, current_uses};
use smallvec::SmallVec;
use std::sync::Arc;

/// The memory that a command uses, and whose it is, as far as the caller has said.
#[derive(Debug, Clone, Default)]
pub(crate) struct Uses {
    all: SmallVec<[MemoryUse; 3]>,
    submission: Option<SubmissionId>,
}

impl Uses {
    /// What the runtime has set for this thread.
    pub(crate) fn now() -> Self {
        let mut uses = Self::default();
        current_uses(|current| {
            current.each(&mut |used| uses.all.push(*used));
            uses.submission = current.submission();
        });
        uses
    }
}

impl MemoryUses for Uses {
    fn each(&self, found: &mut dyn FnMut(&MemoryUse)) {
        self.all.iter().for_each(found);
    }

    fn submission(&self) -> Option<SubmissionId> {
        self.submission
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
        let uses = if command.is_work() { Uses::now() } else { Uses::default() };
        Self { command, uses }
    }
}

/// Why a command failed.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    /// The error of who waits for the command.
    pub(crate) what: String,
    /// For users of the bytes that the command was to write: the first failure in the chain.
    pub(crate) failure: Arc<Failure>,
    /// What the command is part of.
    pub(crate) submission: Option<SubmissionId>,
    /// Whether it uses bytes that another command was to write.
    pub(crate) is_consequence: bool,
}

impl Fault {
    /// The failure of a command itself.
    #[cold]
    pub(crate) fn new(engine: &Engine, stream: u32, work: String, cause: String) -> Self {
        let place = format!("host:{}, stream {stream}", engine.ordinal());
        Self::of(format!("{work}: {cause}"), Failure::new(work, place, cause))
    }

    /// A failure of its own.
    pub(crate) fn of(what: String, failure: Failure) -> Self {
        Self { what, failure: Arc::new(failure), submission: None, is_consequence: false }
    }

    /// Poisons the bytes that the command was to write.
    #[cold]
    pub(crate) fn poison(mut self, uses: &dyn MemoryUses) -> Self {
        self.submission = uses.submission();
        uses.each(&mut |used| {
            if used.write {
                // SAFETY: the use is the command's, by the promise of `with_uses`.
                unsafe { POISONED.poison(used, &self.failure) };
            }
        });
        self
    }

    /// A command that cannot run, because it uses bytes that a failed one was to write.
    #[cold]
    pub(super) fn inherited(work: &str, failure: Arc<Failure>) -> Self {
        let Failure { work: writer, place, cause, .. } = &*failure;
        let what = format!(
            "{work}: it uses bytes that were to be written by {writer}, which failed on {place}: {cause}"
        );
        Self { what, failure, submission: None, is_consequence: true }
    }
}

/// Bytes of which a call of the host has enqueued a part of what was to write them.
#[derive(Debug)]
pub(crate) struct Torn {
    uses: SmallVec<[MemoryUse; 1]>,
    failure: Arc<Failure>,
}

impl Torn {
    /// # Safety
    /// The bytes of each use belong to its owner.
    pub(crate) unsafe fn new(uses: &[MemoryUse], failure: &Arc<Failure>) -> Self {
        Self { uses: uses.into(), failure: failure.clone() }
    }

    #[cold]
    pub(crate) fn poison(&self) {
        // SAFETY: the promise of `new`.
        self.uses.iter().for_each(|used| unsafe { POISONED.poison(used, &self.failure) });
    }
}

impl Queue {
    /// Runs a command as a whole, unless it must not run.
    pub(crate) fn run_whole(&self, command: &mut Command, uses: &dyn MemoryUses) -> Option<Fault> {
        if let Command::Graph(launch) = command {
            self.run_graph(launch, uses, usize::MAX);
            return launch.take_fault();
        }
        match self.refuse(command.as_work(), uses, || command.name()) {
            Refused::No => {
                let result = command.run(&self.engine, self.id, 0..command.units());
                self.conclude(command.as_work(), uses, result, || command.name())
            }
            Refused::Rest => None,
            Refused::Failed(fault) => Some(fault),
        }
    }

    /// Tells whether a command must not run. If so, the bytes that it was to write are poisoned. `name` is for the error.
    #[inline]
    pub(crate) fn refuse(
        &self,
        work: Option<&Work>,
        uses: &dyn MemoryUses,
        name: impl FnOnce() -> String,
    ) -> Refused {
        if self.has_failed_before(uses) {
            // What that was to write is not among the declared reads.
            Refused::Rest
        } else if !self.engine.knows_poison() {
            Refused::No
        } else {
            refuse_poisoned(work, uses, name)
        }
    }

    /// Notes the outcome of a command that has run.
    #[inline]
    pub(crate) fn conclude(
        &self,
        work: Option<&Work>,
        uses: &dyn MemoryUses,
        result: Result<(), String>,
        name: impl FnOnce() -> String,
    ) -> Option<Fault> {
        match result {
            Ok(()) => {
                if self.engine.knows_poison() {
                    work.inspect(|work| work.clear_written());
                }
                None
            }
            Err(cause) => Some(Fault::new(&self.engine, self.number, name(), cause).poison(uses)),
        }
    }
}

/// Whether a command must not run.
#[derive(Debug)]
pub(crate) enum Refused {
    No,
    /// An earlier command of its submission has failed, and has poisoned the bytes of both.
    Rest,
    /// It uses bytes that failed work was to write.
    Failed(Fault),
}

#[cold]
fn refuse_poisoned(work: Option<&Work>, uses: &dyn MemoryUses, name: impl FnOnce() -> String) -> Refused {
    // A kernel may read the bytes that it writes.
    let reads = |used: &MemoryUse| !used.write || work.is_some_and(Work::reads_all);
    let mut poisoned = None;
    uses.each(&mut |used| {
        if poisoned.is_none() && reads(used) {
            poisoned = POISONED.find(used);
        }
    });
    match poisoned {
        None => Refused::No,
        Some((_, failure)) => Refused::Failed(Fault::inherited(&name(), failure).poison(uses)),
    }
}
