//! Copies between memory of the library, in stream order.

use super::{across, borrowed, cuts::at_cuts, plan::Plan};
use crate::{
    host::zeros,
    layout::{Layout, Pair, common_run},
    memory::{Allocation, Counted},
    order::{Access, Timeline},
};
use gpumem_core::{Backend, CopyRegion, Element, Error, ErrorKind, Result, Space, StridedCopy};
use smallvec::SmallVec;
use std::{ops::Range, sync::Arc};

/// Elements somewhere in memory of the library.
#[derive(Debug)]
pub(crate) struct Place<'a, B: Backend> {
    pub(crate) memory: &'a Counted<Allocation<B>>,
    pub(crate) layout: &'a Layout,
}

impl<B: Backend> Clone for Place<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Backend> Copy for Place<'_, B> {}

impl<'a, B: Backend> Place<'a, B> {
    pub(crate) fn new(memory: &'a Counted<Allocation<B>>, layout: &'a Layout) -> Self {
        Self { memory, layout }
    }
}

/// More driver calls than this for one copy are slower than the way through the host.
pub(super) const MOST_CALLS: usize = 4096;

/// Enqueues a copy of elements of `T` and returns its ticket. Where the driver has no means for the two layouts or
/// the two devices, the way leads through the host, and the call waits for the source.
///
/// # Errors
/// Different shapes; overlap; whatever the driver says. Nothing is being written after an error.
pub(crate) fn copy<T: Element, B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    source: Place<'_, B>,
    destination: Place<'_, B>,
) -> Result<u64> {
    if let Some(bytes) = common_run(source.layout, destination.layout)
        && is_plain(timeline, source.memory)
        && is_plain(timeline, destination.memory)
        && source.memory.id() != destination.memory.id()
    {
        return copy_run(timeline, operation, source, destination, bytes);
    }
    let fail = |kind: ErrorKind| Error::new(B::NAME, operation, kind);
    let pair = Pair::new(source.layout, destination.layout).map_err(|error| fail(error.into()))?;
    if pair.len == 0 || pair.item == 0 {
        timeline.check(operation)?;
        source.memory.check(operation)?;
        destination.memory.check(operation)?;
        return Ok(0);
    }
    let (read, write) = (source.layout.extent(), destination.layout.extent());
    refuse_overlap(operation, (source, &read), (destination, &write))?;
    let (from, to) = (source.memory.endpoint(), destination.memory.endpoint());
    if !is_one_backend(timeline, source.memory) || !is_one_backend(timeline, destination.memory) {
        if let Some(device) = across::through(&pair, source, destination) {
            let from = timeline_of(timeline, source)?;
            return across::copy((&from, timeline), operation, &pair, (source, destination), &device);
        }
        return through_host::<T, B>(timeline, operation, source, destination);
    }
    let accesses = [Access::read(source.memory, read), Access::write(destination.memory, write)];
    let plan = Plan::new(&pair);
    let strided = is_better_strided(timeline, &plan, &pair, from.1, to.1);
    if !strided && plan.calls() > MOST_CALLS {
        return through_host::<T, B>(timeline, operation, source, destination);
    }
    let cuts: Cuts = source.memory.cuts().iter().chain(destination.memory.cuts()).copied().collect();
    let submitted = timeline.submit(operation, &accesses, |raw| {
        // SAFETY: both layouts lie in live allocations (checked when the arrays were made), which the use log keeps
        // alive and ordered; destination elements do not overlap, nor do the two sides (checked above).
        unsafe { enqueue(timeline, raw, (&pair, &plan), from, to, &cuts) }
    })?;
    Ok(submitted.ticket)
}

/// Whether the driver takes any run of the memory in one call, and no other allocation shares its bytes.
#[inline]
fn is_plain<B: Backend>(timeline: &Timeline<B>, memory: &Allocation<B>) -> bool {
    memory.is_owned() && memory.cuts().is_empty() && is_one_backend(timeline, memory)
}

/// Enqueues the copy of one run between two allocations, as most copies are, without a plan.
#[inline]
fn copy_run<B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    source: Place<'_, B>,
    destination: Place<'_, B>,
    bytes: usize,
) -> Result<u64> {
    let end = |place: Place<'_, B>| {
        let ((address, space), offset) = (place.memory.endpoint(), place.layout.offset());
        ((address.wrapping_add(offset as u64), space), offset..offset + bytes)
    };
    let ((from, read), (to, write)) = (end(source), end(destination));
    let region = CopyRegion::linear(from, to, bytes);
    let accesses = [Access::read(source.memory, read), Access::write(destination.memory, write)];
    let submitted = timeline.submit(operation, &accesses, |raw| {
        timeline.tally.count_copy();
        // SAFETY: both runs lie in live allocations (checked when the arrays were made), which are two and share no bytes,
        // and which the use logs keep alive and ordered.
        unsafe { B::copy(raw, &region) }
    })?;
    Ok(submitted.ticket)
}

/// Addresses at which a copy must be cut in two.
pub(super) type Cuts = SmallVec<[u64; 4]>;

/// Enqueues a pair: as one strided copy where the device walks both sides itself, else as the plan's driver calls.
///
/// # Safety
/// Both sides are valid for the pair until it is copied, what else uses them is ordered, destination elements do not
/// overlap, and neither do the two sides.
pub(super) unsafe fn enqueue<B: Backend>(
    timeline: &Timeline<B>,
    raw: &B::Stream,
    (pair, plan): (&Pair, &Plan),
    from: (u64, Space),
    to: (u64, Space),
    cuts: &[u64],
) -> Result<()> {
    if is_better_strided(timeline, plan, pair, from.1, to.1) {
        timeline.tally.count_copy();
        // SAFETY: the caller's promise.
        return unsafe { B::copy_strided(raw, &strided_copy(pair, from, to)) };
    }
    plan.run(from, to, |region| {
        at_cuts(region, cuts, &mut |part| {
            timeline.tally.count_copy();
            // SAFETY: the caller's promise, for a part of the pair.
            unsafe { B::copy(raw, part) }
        })
    })
}

/// The pair as one copy that the device does element by element.
fn strided_copy(
    pair: &Pair,
    (source, source_space): (u64, Space),
    (destination, destination_space): (u64, Space),
) -> StridedCopy {
    let mut axes: Vec<_> = pair.axes.iter().map(|axis| (axis.len, axis.src, axis.dst)).collect();
    let items = pair.run / pair.item.max(1);
    if items > 1 {
        axes.push((items, pair.item as isize, pair.item as isize));
    }
    StridedCopy {
        source: (source.wrapping_add(pair.src as u64), source_space),
        destination: (destination.wrapping_add(pair.dst as u64), destination_space),
        item: pair.item,
        axes,
    }
}

/// Whether the memory belongs to the backend that the stream belongs to. Other backends only meet under `Any`.
#[inline]
pub(super) fn is_one_backend<B: Backend>(timeline: &Timeline<B>, memory: &Allocation<B>) -> bool {
    Arc::ptr_eq(&timeline.core, memory.core())
        || B::info(&timeline.core.raw).backend == B::info(&memory.core().raw).backend
}

/// Runs shorter than this are slow as the rows of a driver's copy within a device, which fetches whole cache lines for
/// each; threads that take one element each share the lines.
const SHORT_RUN: usize = 256;

/// Whether the device should walk both sides itself: where that takes one call instead of several, or one that is faster.
pub(super) fn is_better_strided<B: Backend>(
    timeline: &Timeline<B>,
    plan: &Plan,
    pair: &Pair,
    source: Space,
    destination: Space,
) -> bool {
    let is_gpu = !B::capabilities(&timeline.core.raw).pageable_direct;
    let is_short = is_gpu && pair.run < SHORT_RUN && !pair.axes.is_empty();
    (plan.calls() > 1 || is_short) && can_copy_strided(timeline, source, destination)
}

/// Whether the stream's device can walk both sides itself.
pub(super) fn can_copy_strided<B: Backend>(
    timeline: &Timeline<B>,
    source: Space,
    destination: Space,
) -> bool {
    let capabilities = B::capabilities(&timeline.core.raw);
    let own = Space::Device(B::info(&timeline.core.raw).ordinal);
    let reaches = |space| space == own || (space == Space::Host && capabilities.pageable_direct);
    capabilities.strided_copy && reaches(source) && reaches(destination)
}

fn refuse_overlap<B: Backend>(
    operation: &'static str,
    (source, read): (Place<'_, B>, &Range<usize>),
    (destination, write): (Place<'_, B>, &Range<usize>),
) -> Result<()> {
    let overlaps = if source.memory.id() == destination.memory.id() {
        source.layout.overlaps(destination.layout)
    } else {
        // Two allocations share bytes only where somebody wrapped the same foreign memory twice.
        let span = |place: Place<'_, B>, extent: &Range<usize>| {
            let (address, space) = place.memory.endpoint();
            (space, address + extent.start as u64, address + extent.end as u64)
        };
        let (a, b) = (span(source, read), span(destination, write));
        let same_bytes = a.0 == b.0 && a.1 < b.2 && b.1 < a.2;
        if same_bytes {
            // After a reset the driver gives out the addresses of the dead again.
            source.memory.check(operation)?;
            destination.memory.check(operation)?;
        }
        same_bytes
    };
    if !overlaps {
        return Ok(());
    }
    let (source_bytes, destination_bytes) = (read.clone(), write.clone());
    Err(Error::new(B::NAME, operation, ErrorKind::Overlap { source_bytes, destination_bytes }))
}

/// Down to the host and up again, for what no driver call can do.
fn through_host<T: Element, B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    source: Place<'_, B>,
    destination: Place<'_, B>,
) -> Result<u64> {
    let shape = ndarray::IxDyn(source.layout.shape()).into();
    let mut host = zeros::<T, ndarray::IxDyn>(operation, B::NAME, shape)?;
    let from = timeline_of(timeline, source)?;
    borrowed::download(&from, operation, source, host.view_mut(), None)?;
    borrowed::upload(timeline, operation, host.view(), destination, borrowed::Upload::Staged, None)
}

/// A stream of the source's device: that of the copy, unless it belongs to another device.
fn timeline_of<B: Backend>(timeline: &Arc<Timeline<B>>, source: Place<'_, B>) -> Result<Arc<Timeline<B>>> {
    match source.memory.device() {
        Some(device) if !source.memory.core().is_same(&timeline.core) => device.default_timeline(),
        _ => Ok(timeline.clone()),
    }
}
