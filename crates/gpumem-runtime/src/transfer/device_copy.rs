//! Copies between memory of the library, in stream order.

use super::{
    TUNING,
    copy_side::{CopySide, choose_kernel, strided_copy},
    cross_backend, pageable,
    region_loop::RegionLoop,
    registration_boundaries::split_at_boundaries,
    torn::{note_torn, note_written},
};
use crate::{
    device::{Allocation, AllocationRef},
    layout::{CopyNest, Layout, contiguous_len},
    transfer::zeros,
};
use gpumem_core::{Backend, CopyRegion, Element, ErrorKind, Result};
use gpumem_memory::track::{Access, Timeline};
use smallvec::SmallVec;
use std::{ops::Range, sync::Arc};

/// Elements somewhere in memory of the library.
#[derive(Debug)]
pub struct ArrayRef<'a, B: Backend> {
    /// The memory.
    pub memory: &'a AllocationRef<B>,
    /// The elements in it.
    pub layout: &'a Layout,
}

impl<B: Backend> Clone for ArrayRef<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Backend> Copy for ArrayRef<'_, B> {}

impl<'a, B: Backend> ArrayRef<'a, B> {
    /// Refers to the elements of a layout.
    pub fn new(memory: &'a AllocationRef<B>, layout: &'a Layout) -> Self {
        Self { memory, layout }
    }
}

/// Enqueues a copy of elements of `T` and returns its submission index. Where the driver has no means for the two
/// layouts or the two devices, the way leads through the host, and the call waits for the source.
///
/// # Errors
/// Returns an error if the shapes differ or the two sides overlap, and the driver's error. Nothing is being written
/// after an error.
pub(crate) fn copy<T: Element, B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    source: ArrayRef<'_, B>,
    destination: ArrayRef<'_, B>,
) -> Result<u64> {
    if let Some(bytes) = contiguous_len(source.layout, destination.layout)
        && is_plain(timeline, source.memory)
        && is_plain(timeline, destination.memory)
        && source.memory.id() != destination.memory.id()
    {
        return copy_run(timeline, operation, source, destination, bytes);
    }
    let fail = |kind: ErrorKind| timeline.context.error(operation, kind);
    let nest = CopyNest::new(source.layout, destination.layout).map_err(|error| fail(error.into()))?;
    if nest.len == 0 || nest.item == 0 {
        timeline.check(operation)?;
        source.memory.check(operation)?;
        destination.memory.check(operation)?;
        return Ok(0);
    }
    let (read, write) = (source.layout.extent(), destination.layout.extent());
    refuse_overlap(operation, (source, &read), (destination, &write))?;
    if !is_one_backend(timeline, source.memory) || !is_one_backend(timeline, destination.memory) {
        if let Some(device) = cross_backend::through(&nest, source, destination) {
            let from = timeline_of(timeline, source)?;
            return cross_backend::copy((&from, timeline), operation, &nest, (source, destination), &device);
        }
        return through_host::<T, B>(timeline, operation, source, destination);
    }
    let accesses = [Access::read(source.memory, read), Access::write(destination.memory, write)];
    let plan = RegionLoop::new(&nest);
    let (from, to) = (CopySide::of(timeline, source.memory), CopySide::of(timeline, destination.memory));
    if plan.calls() > TUNING.max_driver_calls && choose_kernel(timeline, (&nest, &plan), from, to).is_none() {
        return through_host::<T, B>(timeline, operation, source, destination);
    }
    let boundaries: Boundaries =
        source.memory.boundaries().iter().chain(destination.memory.boundaries()).copied().collect();
    let mut calls = 0;
    let submitted = timeline.submit(operation, &accesses, |raw| {
        // SAFETY: both layouts lie in live allocations (checked when the arrays were made), which the use log keeps
        // alive and ordered; destination elements do not overlap, nor do the two sides (checked above).
        unsafe { enqueue(timeline, raw, (&nest, &plan), from, to, &boundaries, &mut calls) }
    });
    let submitted = submitted.inspect_err(|error| {
        if calls > 0 {
            note_torn(operation, destination, error);
        }
    })?;
    note_written(timeline, destination);
    Ok(submitted.submission)
}

/// Whether the driver takes any run of the memory in one call, and no other allocation shares its bytes.
#[inline]
fn is_plain<B: Backend>(timeline: &Timeline<B>, memory: &Allocation<B>) -> bool {
    memory.is_owned() && memory.boundaries().is_empty() && is_one_backend(timeline, memory)
}

/// Enqueues the copy of one run between two allocations, as most copies are, without a plan.
#[inline]
fn copy_run<B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    source: ArrayRef<'_, B>,
    destination: ArrayRef<'_, B>,
    bytes: usize,
) -> Result<u64> {
    let end = |array_ref: ArrayRef<'_, B>| {
        let ((address, space), offset) = (array_ref.memory.endpoint(), array_ref.layout.offset());
        ((address.wrapping_add(offset as u64), space), offset..offset + bytes)
    };
    let ((from, read), (to, write)) = (end(source), end(destination));
    let region = CopyRegion::linear(from, to, bytes);
    let accesses = [Access::read(source.memory, read), Access::write(destination.memory, write)];
    let submitted = timeline.submit(operation, &accesses, |raw| {
        timeline.counters.count_copy();
        // SAFETY: both runs lie in live allocations (checked when the arrays were made), which are two and share no bytes,
        // and which the use logs keep alive and ordered.
        unsafe { B::copy(raw, &region) }
    })?;
    note_written(timeline, destination);
    Ok(submitted.submission)
}

/// Addresses at which a copy must be cut in two.
pub(super) type Boundaries = SmallVec<[u64; 4]>;

/// Enqueues a pair: as one strided copy where the device walks both sides itself, else as the plan's driver calls. Counts in
/// `calls` those that have succeeded.
///
/// # Safety
/// Both sides are valid for the pair until it is copied, and other uses of them are ordered. Destination elements do
/// not overlap, and neither do the two sides.
pub(super) unsafe fn enqueue<B: Backend>(
    timeline: &Timeline<B>,
    raw: &B::Stream,
    (nest, plan): (&CopyNest, &RegionLoop),
    from: CopySide,
    to: CopySide,
    boundaries: &[u64],
    calls: &mut usize,
) -> Result<()> {
    if let Some(sides) = choose_kernel(timeline, (nest, plan), from, to) {
        timeline.counters.count_copy();
        // SAFETY: the caller's promise.
        return unsafe { B::copy_strided(raw, &strided_copy(nest, sides)) };
    }
    plan.run(from.at, to.at, |region| {
        split_at_boundaries(region, boundaries, &mut |part| {
            timeline.counters.count_copy();
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
    Arc::ptr_eq(&timeline.context, memory.context())
        || B::info(&timeline.context.raw).backend == B::info(&memory.context().raw).backend
}

fn refuse_overlap<B: Backend>(
    operation: &'static str,
    (source, read): (ArrayRef<'_, B>, &Range<usize>),
    (destination, write): (ArrayRef<'_, B>, &Range<usize>),
) -> Result<()> {
    let overlaps = if source.memory.id() == destination.memory.id() {
        source.layout.overlaps(destination.layout)
    } else {
        // Two allocations share bytes only where a caller wrapped the same foreign memory twice.
        let span = |array_ref: ArrayRef<'_, B>, extent: &Range<usize>| {
            let (address, space) = array_ref.memory.endpoint();
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
    Err(source.memory.context().error(operation, ErrorKind::Overlap { source_bytes, destination_bytes }))
}

/// Copies down to the host and up again, for pairs that no driver call can copy.
fn through_host<T: Element, B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    source: ArrayRef<'_, B>,
    destination: ArrayRef<'_, B>,
) -> Result<u64> {
    let shape = ndarray::IxDyn(source.layout.shape()).into();
    let mut host =
        zeros::<T, ndarray::IxDyn>(operation, shape).map_err(|error| timeline.context.place(error))?;
    let from = timeline_of(timeline, source)?;
    pageable::download(&from, operation, source, host.view_mut(), None)?;
    pageable::upload(timeline, operation, host.view(), destination, pageable::Upload::Staged, None)
}

/// A stream of the source's device: that of the copy, unless it belongs to another device.
fn timeline_of<B: Backend>(timeline: &Arc<Timeline<B>>, source: ArrayRef<'_, B>) -> Result<Arc<Timeline<B>>> {
    match source.memory.device() {
        Some(device) if !source.memory.context().is_same(&timeline.context) => device.default_timeline(),
        _ => Ok(timeline.clone()),
    }
}
