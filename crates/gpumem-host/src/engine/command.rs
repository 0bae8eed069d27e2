//! The commands in a stream's queue, and how they run.

use super::{Engine, EventCore, Mark, Pending, Torn};
use crate::copy::{StridedPlan, extent, extent_of_fill, fill_bytes, run_fill, run_region};
use crate::memory::{Known, Place, Reach};
use gpumem_core::{
    CopyRegion, Endpoint, Fill, HostFunction, HostLaunch, KernelArguments, LaunchConfig, NonBlockingContext,
    Space, user_code,
};
use std::ops::Range;
use std::sync::Arc;

/// Bytes of the smallest piece that a copy is torn into.
const GRAIN: usize = 16;

#[derive(Debug)]
pub(crate) enum Command {
    Copy(CopyRegion),
    Strided(Box<StridedPlan>),
    Fill(Fill),
    /// Reads and writes nothing; the range must be live.
    Touch {
        address: u64,
        bytes: usize,
    },
    /// Notes the time, if the event has not been recorded again since.
    Record {
        event: Arc<EventCore>,
        recording: u64,
    },
    Wait(Mark),
    Launch(Box<Launch>),
    Future(Box<Pending>),
    /// Poisons bytes, and does not fail.
    Poison(Box<Torn>),
    /// Only fails: a failure was injected in place of the work.
    Fail {
        work: String,
        what: String,
    },
}

/// A function of a module.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) body: HostFunction,
}

/// A kernel with its arguments.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) function: Arc<Function>,
    pub(crate) dims: LaunchConfig,
    pub(crate) arguments: KernelArguments,
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
            Command::Copy(region) => region.total_bytes().unwrap_or(1).div_ceil(GRAIN),
            Command::Strided(plan) => plan.units(),
            Command::Fill(fill) => fill.count.saturating_mul(fill.rows),
            _ => 1,
        }
    }

    /// Whether running the command on the spot takes less time than handing it to another thread.
    pub(crate) fn is_brief(&self, limit: usize) -> bool {
        match self {
            Command::Copy(region) => region.total_bytes().is_some_and(|bytes| bytes <= limit),
            Command::Fill(fill) => fill_bytes(fill).is_some_and(|bytes| bytes <= limit),
            // Item by item they run at a fraction of the speed.
            Command::Strided(plan) => plan.total_bytes() <= limit / 8,
            Command::Touch { .. } | Command::Record { .. } | Command::Poison(_) | Command::Fail { .. } => {
                limit > 0
            }
            Command::Wait(_) | Command::Launch(_) | Command::Future(_) => false,
        }
    }

    /// Whether the command may use memory.
    pub(crate) fn is_work(&self) -> bool {
        !matches!(self, Command::Record { .. } | Command::Wait(_))
    }

    /// Names the command in error messages.
    pub(crate) fn work(&self) -> String {
        let work = match self {
            Command::Copy(_) => "copy",
            Command::Strided(_) => "copy_strided",
            Command::Fill(_) => "fill",
            Command::Touch { .. } => "prefetch",
            Command::Record { .. } => "record",
            Command::Wait(_) => "wait",
            Command::Launch(launch) => return format!("kernel {:?}", launch.function.name),
            Command::Future(pending) => pending.work,
            Command::Poison(_) => "poison",
            Command::Fail { work, .. } => return work.clone(),
        };
        work.to_owned()
    }

    /// Runs the units of `part` (all of a command that cannot be torn). The words say why it failed.
    pub(crate) fn run(&self, engine: &Engine, stream: u64, part: Range<usize>) -> Result<(), String> {
        match self {
            Command::Copy(region) => {
                let pins = [
                    engine.process().table.pin(&reach_of(region, &region.source)?),
                    engine.process().table.pin(&reach_of(region, &region.destination)?),
                ];
                if let Some(what) = pins.iter().find_map(|pin| pin.as_ref().err()) {
                    return Err(what.clone());
                }
                let total = region.total_bytes().unwrap_or(0);
                let bytes = part.start * GRAIN..(part.end * GRAIN).min(total);
                // SAFETY: device memory was checked and is pinned; the caller of `Stream::copy` vouches for the rest.
                unsafe { run_region(region, bytes) };
            }
            Command::Strided(plan) => {
                let pin = |span: crate::copy::Span| {
                    let place = match span.space {
                        Space::Host => Place::Host,
                        Space::Device(_) => Place::ReachedBy(engine.ordinal()),
                    };
                    let reach = Reach { start: span.start, bytes: span.bytes, place };
                    engine.process().table.pin(&reach)
                };
                let _pins = (pin(plan.source_span())?, pin(plan.destination_span())?);
                // SAFETY: both sides were checked and are pinned; the caller of `copy_strided` vouches for the layout.
                unsafe { plan.run(part) };
            }
            Command::Fill(fill) => {
                let bytes = extent_of_fill(fill).ok_or("it is too long")?;
                let _pin = engine.process().table.pin(&Reach {
                    start: fill.address,
                    bytes,
                    place: Place::ReachedBy(engine.ordinal()),
                })?;
                // SAFETY: the range was checked and is pinned; the caller of `Stream::fill` vouches for the alignment.
                unsafe { run_fill(fill, part) };
            }
            Command::Touch { address, bytes } => {
                let reach =
                    Reach { start: *address, bytes: *bytes, place: Place::ReachedBy(engine.ordinal()) };
                engine.process().table.pin(&reach)?;
            }
            Command::Record { event, recording } => event.reached(*recording),
            Command::Wait(_) => {}
            Command::Launch(launch) => return launch.run(engine.ordinal(), stream),
            // Its queue polls it.
            Command::Future(_) => return Err("a future is not run as a whole".to_owned()),
            Command::Poison(torn) => torn.poison(),
            Command::Fail { what, .. } => return Err(what.clone()),
        }
        Ok(())
    }

    /// Drops the command. Values that a kernel or a future has captured may panic in `Drop`; the stream goes on.
    pub(crate) fn retire(self) {
        match self {
            Command::Launch(launch) => drop_of_user("what a kernel captured", launch),
            Command::Future(mut pending) => pending.discard(),
            _ => {}
        }
    }
}

impl Launch {
    fn run(&self, device: usize, stream: u64) -> Result<(), String> {
        let context = NonBlockingContext { backend: crate::NAME, device, stream: Some(stream) };
        let launch = HostLaunch { dims: self.dims, arguments: &self.arguments };
        let result = user_code::run(|| {
            // SAFETY: who enqueued the launch promised by `Stream::launch` that the arguments are the kernel's, and that their
            // memory lives until it has run.
            NonBlockingContext::run(Some(context), || unsafe { self.function.body.call(launch) })
        });
        result.unwrap_or_else(|message| Err(format!("it panicked: {message}")))
    }
}

/// Drops a value of the user's. A panic in that ends here.
pub(super) fn drop_of_user<V>(what: &str, value: V) {
    if let Err(message) = user_code::run(|| drop(value)) {
        gpumem_core::tell!(error: "{what} panicked when dropped: {message}");
    }
}

fn reach_of(region: &CopyRegion, side: &Endpoint) -> Result<Reach, String> {
    let bytes = extent(region, side).ok_or("it is too long")?;
    let place = match side.space {
        Space::Host => Place::Host,
        Space::Device(ordinal) => Place::Device(ordinal),
    };
    Ok(Reach { start: side.address, bytes, place })
}
