//! Copies in stream order between memories that one driver reaches.

use super::{
    ArrayRef,
    copy_side::{Boundaries, CopySide, enqueue},
    region_loop::RegionLoop,
    route::ArrayCopy,
    torn::note_copied,
};
use crate::layout::CopyNest;
use gpumem_core::{Backend, CopyRegion, Result};
use gpumem_memory::track::{Access, Admitted};

/// Enqueues the copy of one run, without a plan.
#[inline]
pub(super) fn copy_run<B: Backend>(copy: &ArrayCopy<'_, B>, bytes: usize) -> Result<u64> {
    let ArrayCopy { timeline, operation, source, destination, .. } = *copy;
    let end = |array_ref: ArrayRef<'_, B>| {
        let ((address, space), offset) = (array_ref.memory.endpoint(), array_ref.layout.offset());
        ((address.wrapping_add(offset as u64), space), offset..offset + bytes)
    };
    let ((from, read), (to, write)) = (end(source), end(destination));
    let region = CopyRegion::linear(from, to, bytes);
    let accesses = [Access::read(source.memory, read), Access::write(destination.memory, write)];
    let submitted = timeline.submit(operation, &accesses, |sink| {
        // SAFETY: both runs lie in live allocations (checked when the arrays were made), which are two and share no bytes,
        // and which the access logs keep alive and ordered.
        unsafe { sink.copy(&region) }
    })?;
    note_copied(timeline, operation, source, destination);
    Ok(submitted.submission)
}

/// Enqueues the copy of a nest of loops, which has elements, and returns its submission index. The two sides are what was
/// admitted.
/// Returns the driver's error. Nothing is being written after an error.
pub(super) fn copy_nest<B: Backend>(
    copy: &ArrayCopy<'_, B>,
    admitted: Admitted<'_, '_, B>,
    (nest, plan): (&CopyNest, &RegionLoop),
) -> Result<u64> {
    let ArrayCopy { timeline, operation, source, destination, .. } = *copy;
    let (from, to) = (CopySide::of(timeline, source.memory), CopySide::of(timeline, destination.memory));
    let boundaries: Boundaries =
        source.memory.boundaries().iter().chain(destination.memory.boundaries()).copied().collect();
    let submitted = admitted.submit(|sink, _| {
        // SAFETY: both layouts lie in live allocations (checked when the arrays were made), which the access logs keep
        // alive and ordered; destination elements do not overlap, nor do the two sides, which were admitted together.
        unsafe { enqueue(timeline, sink, (nest, plan), from, to, &boundaries) }
    })?;
    note_copied(timeline, operation, source, destination);
    Ok(submitted.submission)
}
