//! The commands in a stream's queue.

use super::{Engine, EventCore, GraphLaunch, Mark, Pending, Torn, Work, work::reach_of};
use crate::copy::run_region;
use crate::memory::Known;
use gpumem_core::{CopyRegion, NonBlockingContext, user_code};
use std::ops::Range;
use std::sync::Arc;

/// What may panic when it is dropped.
pub(crate) const KERNEL: &str = "what a kernel captured";

#[derive(Debug)]
pub(crate) enum Command {
    Work(Work),
    /// Notes the time, if the event has not been recorded again since.
    Record {
        event: Arc<EventCore>,
        recording: u64,
    },
    Wait(Mark),
    Graph(Box<GraphLaunch>),
    Future(Box<Pending>),
    /// Poisons bytes, and does not fail.
    Poison(Box<Torn>),
    /// Only fails: a failure was injected in place of the work.
    Fail {
        work: String,
        what: String,
    },
}

/// The answers of the table of all blocks for the two sides of the last copy. Most programs copy between the same
/// blocks again and again, and asking the table takes longer than copying a kilobyte.
#[derive(Debug, Default)]
pub(crate) struct Sides([Option<Known>; 2]);

impl Sides {
    /// Copies `bytes` bytes, all of a region, on the spot, where both sides are live blocks or ordinary memory of the host.
    /// `false` if it has not; running the command tells why.
    ///
    /// # Safety
    /// Both sides are valid for the region during the call, and no other code uses them. (The code checks whether that
    /// can be true.)
    pub(crate) unsafe fn copy(&mut self, engine: &Engine, region: &CopyRegion, bytes: usize) -> bool {
        let table = &engine.process().table;
        let version = table.version();
        for (known, side) in self.0.iter_mut().zip([&region.source, &region.destination]) {
            let Ok(reach) = reach_of(region, side) else { return false };
            if !known.as_ref().is_some_and(|known| known.covers(&reach, version)) {
                *known = table.look_up(&reach);
            }
            if known.is_none() {
                return false;
            }
        }
        // SAFETY: the caller's promise.
        unsafe { run_region(region, 0..bytes) };
        true
    }
}

/// Whether this thread is running a kernel of that stream, so that waiting for it would never end.
pub(crate) fn is_inside(stream: u64) -> bool {
    NonBlockingContext::current().is_some_and(|context| context.stream == Some(stream))
}

impl Command {
    /// Number of pieces that the command can be torn into.
    pub(crate) fn units(&self) -> usize {
        match self {
            Command::Work(work) => work.units(),
            Command::Graph(launch) => launch.len(),
            _ => 1,
        }
    }

    /// Whether running the command on the spot takes less time than handing it to another thread.
    pub(crate) fn is_brief(&self, limit: usize) -> bool {
        let cost = match self {
            Command::Work(work) => work.cost(),
            Command::Graph(launch) => launch.cost,
            Command::Record { .. } | Command::Poison(_) | Command::Fail { .. } => Some(1),
            Command::Wait(_) | Command::Future(_) => None,
        };
        cost.is_some_and(|bytes| bytes <= limit)
    }

    /// Whether the command may use memory.
    pub(crate) fn is_work(&self) -> bool {
        !matches!(self, Command::Record { .. } | Command::Wait(_))
    }

    /// The work on memory, of which a command may be a part.
    #[inline]
    pub(crate) fn as_work(&self) -> Option<&Work> {
        if let Command::Work(work) = self { Some(work) } else { None }
    }

    /// Names the command in error messages.
    pub(crate) fn name(&self) -> String {
        let name = match self {
            Command::Work(work) => return work.name(),
            Command::Record { .. } => "record",
            Command::Wait(_) => "wait",
            Command::Graph(_) => "graph",
            Command::Future(pending) => pending.work,
            Command::Poison(_) => "poison",
            Command::Fail { work, .. } => return work.clone(),
        };
        name.to_owned()
    }

    /// Runs the units of `part` (all of a command that cannot be torn). The words say why it failed.
    pub(crate) fn run(&self, engine: &Engine, stream: u64, part: Range<usize>) -> Result<(), String> {
        match self {
            Command::Work(work) => return work.run(engine, stream, part),
            Command::Record { event, recording } => event.reached(*recording),
            Command::Wait(_) => {}
            // Their queue runs them.
            Command::Future(_) | Command::Graph(_) => return Err("it is not run as a whole".to_owned()),
            Command::Poison(torn) => torn.poison(),
            Command::Fail { what, .. } => return Err(what.clone()),
        }
        Ok(())
    }

    /// Drops the command. Values that a kernel or a future has captured may panic in `Drop`; the stream goes on.
    pub(crate) fn retire(self) {
        match self {
            Command::Work(Work::Launch(launch)) => drop_of_user(KERNEL, launch),
            // Where it has no kernels, it may end under locks of the caller.
            Command::Graph(launch) if launch.cost.is_none() => drop_of_user(KERNEL, launch),
            Command::Future(mut pending) => pending.discard(),
            _ => {}
        }
    }
}

/// Drops a value of the user's. A panic in that ends here.
pub(crate) fn drop_of_user<V>(what: &str, value: V) {
    if let Err(message) = user_code::run(|| drop(value)) {
        gpumem_core::tell!(error: "{what} panicked when dropped: {message}");
    }
}
