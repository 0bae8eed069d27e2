//! Copies in stream order between memories that one driver reaches.

use super::{
    ArrayRef, TUNING,
    copy_side::{Boundaries, CopySide, choose_kernel, enqueue, is_one_backend},
    region_loop::RegionLoop,
    torn::{note_torn, note_written},
};
use crate::{
    device::Allocation,
    layout::{CopyNest, contiguous_len},
};
use gpumem_core::{Backend, CopyRegion, Result, Stream as _};
use gpumem_memory::track::{Access, Admitted, Timeline};
use std::sync::Arc;

/// Returns the bytes of the copy if it is one run between two allocations, as most copies are.
#[inline]
pub(super) fn run_between<B: Backend>(
    timeline: &Timeline<B>,
    source: ArrayRef<'_, B>,
    destination: ArrayRef<'_, B>,
) -> Option<usize> {
    let bytes = contiguous_len(source.layout, destination.layout)?;
    let is_simple = is_plain(timeline, source.memory)
        && is_plain(timeline, destination.memory)
        && source.memory.id() != destination.memory.id();
    is_simple.then_some(bytes)
}

/// Whether the driver takes any run of the memory in one call, and no other allocation shares its bytes.
#[inline]
fn is_plain<B: Backend>(timeline: &Timeline<B>, memory: &Allocation<B>) -> bool {
    memory.is_owned() && memory.boundaries().is_empty() && is_one_backend(timeline, memory)
}

/// Enqueues the copy of one [run](run_between), without a plan.
#[inline]
pub(super) fn copy_run<B: Backend>(
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
        // and which the access logs keep alive and ordered.
        unsafe { raw.copy(&region) }
    })?;
    note_written(timeline, destination);
    Ok(submitted.submission)
}

/// Whether the driver would have to be called too many times, and no kernel of the device can do the copy instead.
pub(super) fn needs_host<B: Backend>(
    timeline: &Timeline<B>,
    (nest, plan): (&CopyNest, &RegionLoop),
    source: ArrayRef<'_, B>,
    destination: ArrayRef<'_, B>,
) -> bool {
    let side = |array: ArrayRef<'_, B>| CopySide::of(timeline, array.memory);
    plan.calls() > TUNING.max_driver_calls
        && choose_kernel(timeline, (nest, plan), side(source), side(destination)).is_none()
}

/// Enqueues the copy of a nest of loops, which has elements, and returns its submission index. The two sides are what was
/// admitted.
/// Returns the driver's error. Nothing is being written after an error.
pub(super) fn copy_nest<B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    admitted: Admitted<'_, '_, B>,
    (nest, plan): (&CopyNest, &RegionLoop),
    source: ArrayRef<'_, B>,
    destination: ArrayRef<'_, B>,
) -> Result<u64> {
    let (from, to) = (CopySide::of(timeline, source.memory), CopySide::of(timeline, destination.memory));
    let boundaries: Boundaries =
        source.memory.boundaries().iter().chain(destination.memory.boundaries()).copied().collect();
    let mut calls = 0;
    let submitted = admitted.submit(|raw, _| {
        // SAFETY: both layouts lie in live allocations (checked when the arrays were made), which the access logs keep
        // alive and ordered; destination elements do not overlap, nor do the two sides, which were admitted together.
        unsafe { enqueue(timeline, raw, (nest, plan), from, to, &boundaries, &mut calls) }
    });
    let submitted = submitted.inspect_err(|error| {
        if calls > 0 {
            note_torn(operation, destination, error);
        }
    })?;
    note_written(timeline, destination);
    Ok(submitted.submission)
}
