//! Copies between memory of the library, in stream order.

use super::{
    across, borrowed,
    cuts::at_cuts,
    plan::Plan,
    side::{MOST_CALLS, Side, strided_copy, walked},
    torn::{note_torn, note_written},
};
use crate::{
    host::zeros,
    layout::{Layout, Pair, common_run},
    memory::{Allocation, Counted},
    order::{Access, Timeline},
};
use gpumem_core::{Backend, CopyRegion, Element, ErrorKind, Result};
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
    let fail = |kind: ErrorKind| timeline.core.error(operation, kind);
    let pair = Pair::new(source.layout, destination.layout).map_err(|error| fail(error.into()))?;
    if pair.len == 0 || pair.item == 0 {
        timeline.check(operation)?;
        source.memory.check(operation)?;
        destination.memory.check(operation)?;
        return Ok(0);
    }
    let (read, write) = (source.layout.extent(), destination.layout.extent());
    refuse_overlap(operation, (source, &read), (destination, &write))?;
    if !is_one_backend(timeline, source.memory) || !is_one_backend(timeline, destination.memory) {
        if let Some(device) = across::through(&pair, source, destination) {
            let from = timeline_of(timeline, source)?;
            return across::copy((&from, timeline), operation, &pair, (source, destination), &device);
        }
        return through_host::<T, B>(timeline, operation, source, destination);
    }
    let accesses = [Access::read(source.memory, read), Access::write(destination.memory, write)];
    let plan = Plan::new(&pair);
    let (from, to) = (Side::of(timeline, source.memory), Side::of(timeline, destination.memory));
    if plan.calls() > MOST_CALLS && walked(timeline, (&pair, &plan), from, to).is_none() {
        return through_host::<T, B>(timeline, operation, source, destination);
    }
    let cuts: Cuts = source.memory.cuts().iter().chain(destination.memory.cuts()).copied().collect();
    let mut calls = 0;
    let submitted = timeline.submit(operation, &accesses, |raw| {
        // SAFETY: both layouts lie in live allocations (checked when the arrays were made), which the use log keeps
        // alive and ordered; destination elements do not overlap, nor do the two sides (checked above).
        unsafe { enqueue(timeline, raw, (&pair, &plan), from, to, &cuts, &mut calls) }
    });
    let submitted = submitted.inspect_err(|error| {
        if calls > 0 {
            note_torn(operation, destination, error);
        }
    })?;
    note_written(timeline, destination);
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
    note_written(timeline, destination);
    Ok(submitted.ticket)
}

/// Addresses at which a copy must be cut in two.
pub(super) type Cuts = SmallVec<[u64; 4]>;

/// Enqueues a pair: as one strided copy where the device walks both sides itself, else as the plan's driver calls. Counts in
/// `calls` those that have succeeded.
///
/// # Safety
/// Both sides are valid for the pair until it is copied, what else uses them is ordered, destination elements do not
/// overlap, and neither do the two sides.
pub(super) unsafe fn enqueue<B: Backend>(
    timeline: &Timeline<B>,
    raw: &B::Stream,
    (pair, plan): (&Pair, &Plan),
    from: Side,
    to: Side,
    cuts: &[u64],
    calls: &mut usize,
) -> Result<()> {
    if let Some(sides) = walked(timeline, (pair, plan), from, to) {
        timeline.tally.count_copy();
        // SAFETY: the caller's promise.
        return unsafe { B::copy_strided(raw, &strided_copy(pair, sides)) };
    }
    plan.run(from.at, to.at, |region| {
        at_cuts(region, cuts, &mut |part| {
            timeline.tally.count_copy();
            // SAFETY: the caller's promise, for a part of the pair.
            unsafe { B::copy(raw, part)? };
            *calls += 1;
            Ok(())
        })
    })
}

/// Whether the memory belongs to the backend that the stream belongs to. Other backends only meet under `Any`.
#[inline]
pub(super) fn is_one_backend<B: Backend>(timeline: &Timeline<B>, memory: &Allocation<B>) -> bool {
    Arc::ptr_eq(&timeline.core, memory.core())
        || B::info(&timeline.core.raw).backend == B::info(&memory.core().raw).backend
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
    Err(source.memory.core().error(operation, ErrorKind::Overlap { source_bytes, destination_bytes }))
}

/// Down to the host and up again, for what no driver call can do.
fn through_host<T: Element, B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    source: Place<'_, B>,
    destination: Place<'_, B>,
) -> Result<u64> {
    let shape = ndarray::IxDyn(source.layout.shape()).into();
    let mut host =
        zeros::<T, ndarray::IxDyn>(operation, shape).map_err(|error| timeline.core.place(error))?;
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
