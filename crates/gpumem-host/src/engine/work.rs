//! Work on memory: copies, fills and kernels, in queues and in graphs.

use super::Engine;
use crate::copy::{Span, StridedPlan, extent_of_fill, fill_bytes, run_fill, run_region};
use crate::counters::CellOf;
use crate::inject::Operation;
use crate::memory::{Known, Place, Reach};
use gpumem_core::{
    CopyRegion, Endpoint, Fill, HostFunction, HostLaunch, KernelArguments, LaunchConfig, NonBlockingContext,
    POISONED, Space, StridedCopy, user_code,
};
use std::ops::Range;
use std::sync::Arc;

/// Bytes of the smallest piece that a copy is torn into.
const GRAIN: usize = 16;

/// What a command does with memory.
#[derive(Debug)]
pub(crate) enum Work {
    Copy(CopyRegion),
    Strided(Box<StridedPlan>),
    Fill(Fill),
    /// Reads and writes nothing; the range must be live.
    Touch {
        address: u64,
        bytes: usize,
    },
    Launch(Box<Launch>),
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

impl Work {
    /// Number of pieces that the work can be torn into.
    #[inline]
    pub(crate) fn units(&self) -> usize {
        match self {
            Work::Copy(region) => region.total_bytes().unwrap_or(1).div_ceil(GRAIN),
            Work::Strided(plan) => plan.units(),
            Work::Fill(fill) => fill.count.saturating_mul(fill.rows),
            Work::Touch { .. } | Work::Launch(_) => 1,
        }
    }

    /// Bytes that are copied in the time of the work. `None` for code of the user.
    pub(crate) fn cost(&self) -> Option<usize> {
        match self {
            Work::Copy(region) => region.total_bytes(),
            Work::Fill(fill) => fill_bytes(fill),
            // Item by item they run at a fraction of the speed.
            Work::Strided(plan) => plan.total_bytes().checked_mul(8),
            Work::Touch { .. } => Some(1),
            Work::Launch(_) => None,
        }
    }

    /// The counter of work of its kind, and the bytes that it copies.
    #[inline]
    pub(crate) fn counted(&self) -> (CellOf, u64) {
        match self {
            Work::Copy(region) => (|cells| &cells.copies, region.total_bytes().unwrap_or(0) as u64),
            Work::Strided(_) => (|cells| &cells.strided_copies, 0),
            Work::Fill(_) => (|cells| &cells.fills, 0),
            Work::Touch { .. } => (|cells| &cells.prefetches, 0),
            Work::Launch(_) => (|cells| &cells.launches, 0),
        }
    }

    /// The call that enqueues it.
    #[inline]
    pub(crate) fn call(&self) -> (&'static str, Operation) {
        match self {
            Work::Copy(_) => ("copy", Operation::Copy),
            Work::Strided(_) => ("copy_strided", Operation::CopyStrided),
            Work::Fill(_) => ("fill", Operation::Fill),
            Work::Touch { .. } => ("prefetch", Operation::Prefetch),
            Work::Launch(_) => ("launch", Operation::Launch),
        }
    }

    /// Names the work in error messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Work::Launch(launch) => format!("kernel {:?}", launch.function.name),
            _ => self.call().0.to_owned(),
        }
    }

    /// Whether it may read the bytes that it writes.
    pub(crate) fn reads_all(&self) -> bool {
        matches!(self, Work::Launch(_))
    }

    /// Clears the poison of the bytes that the work has written: exactly these, without gaps between them.
    #[cold]
    pub(crate) fn clear_written(&self) {
        // SAFETY: the work has run to its end, and these are the bytes that it writes.
        let clear = |run: Range<u64>| unsafe { POISONED.clear(&run) };
        let rows = |address, item, axes: [(usize, usize); 2]| {
            let axes = axes.map(|(length, stride)| (length, stride as isize, stride as isize)).to_vec();
            let place = (address, Space::Host);
            let copy = StridedCopy { source: place, destination: place, item, axes };
            if let Ok(Some(plan)) = StridedPlan::new(&copy) {
                plan.runs(clear);
            }
        };
        match self {
            Work::Copy(CopyRegion { destination: to, bytes, rows: height, slices, .. }) => {
                rows(to.address, *bytes, [(*slices, to.pitch[1]), (*height, to.pitch[0])]);
            }
            Work::Strided(plan) => plan.runs(clear),
            Work::Fill(fill) => {
                rows(fill.address, fill.count * fill.pattern.bytes(), [(fill.rows, fill.pitch), (1, 0)]);
            }
            Work::Touch { .. } | Work::Launch(_) => {}
        }
    }

    /// The memory that copies and fills use.
    #[inline]
    fn reaches(&self, engine: &Engine) -> Result<[Option<Reach>; 2], String> {
        let seen = |start, bytes| Some(Reach { start, bytes, place: Place::ReachedBy(engine.ordinal()) });
        Ok(match self {
            Work::Copy(region) => {
                [Some(reach_of(region, &region.source)?), Some(reach_of(region, &region.destination)?)]
            }
            Work::Strided(plan) => {
                [plan.source_span(), plan.destination_span()].map(|span: Span| match span.space {
                    Space::Host => Some(Reach { start: span.start, bytes: span.bytes, place: Place::Host }),
                    Space::Device(_) => seen(span.start, span.bytes),
                })
            }
            Work::Fill(fill) => [seen(fill.address, extent_of_fill(fill).ok_or("it is too long")?), None],
            Work::Touch { address, bytes } => [seen(*address, *bytes), None],
            Work::Launch(_) => [None, None],
        })
    }

    /// Looks for all memory that the work uses in live blocks and in ordinary memory of the host. The version of the table at which
    /// it is there.
    #[cold]
    pub(crate) fn look_up(&self, engine: &Engine) -> Option<u64> {
        let table = &engine.process().table;
        let version = table.version();
        let mut reaches = self.reaches(engine).ok()?.into_iter().flatten();
        let is_live = |reach| table.look_up(&reach).is_some_and(|known: Known| known.is_of(version));
        reaches.all(is_live).then_some(version)
    }

    /// Runs the units of `part` (all of work that cannot be torn). The words say why it failed.
    pub(crate) fn run(&self, engine: &Engine, stream: u64, part: Range<usize>) -> Result<(), String> {
        let [one, other] = self.reaches(engine)?;
        let pin = |reach: Option<Reach>| reach.map(|reach| engine.process().table.pin(&reach)).transpose();
        // Until the work is done.
        let _pins = (pin(one)?, pin(other)?);
        // SAFETY: the memory was checked and is pinned; who has enqueued it vouches for the rest.
        unsafe { self.run_live(engine, stream, part) }
    }

    /// As [`run`](Self::run), without a look at the memory.
    ///
    /// # Safety
    /// The memory that the work uses is live until this returns, and valid for it: what the caller of `Stream::copy`, `copy_strided`
    /// and `fill` vouches for.
    #[inline]
    pub(crate) unsafe fn run_live(
        &self,
        engine: &Engine,
        stream: u64,
        part: Range<usize>,
    ) -> Result<(), String> {
        match self {
            Work::Copy(region) => {
                let total = region.total_bytes().unwrap_or(0);
                let bytes = part.start * GRAIN..(part.end * GRAIN).min(total);
                // SAFETY: the caller's promise.
                unsafe { run_region(region, bytes) };
            }
            // SAFETY: the caller's promise.
            Work::Strided(plan) => unsafe { plan.run(part) },
            // SAFETY: the caller's promise.
            Work::Fill(fill) => unsafe { run_fill(fill, part) },
            Work::Touch { .. } => {}
            Work::Launch(launch) => return launch.run(engine.ordinal(), stream),
        }
        Ok(())
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

pub(super) fn reach_of(region: &CopyRegion, side: &Endpoint) -> Result<Reach, String> {
    let bytes = region.extent(side).ok_or("it is too long")?;
    let place = match side.space {
        Space::Host => Place::Host,
        Space::Device(ordinal) => Place::Device(ordinal),
    };
    Ok(Reach { start: side.address, bytes, place })
}
