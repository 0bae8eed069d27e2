//! One value everywhere.

use super::{
    ArrayRef, TUNING,
    copy::copy,
    copy_side::Boundaries,
    pageable::{Upload, upload},
    region_loop::RegionLoop,
    registration_boundaries::split_at_boundaries,
    torn::{note_torn, note_written},
};
use crate::layout::{CopyNest, Layout, Order};
use gpumem_core::{Backend, Element, Fill, Pattern, Result, Space};
use gpumem_memory::track::{Access, Timeline, Work};
use ndarray::ArrayD;
use std::sync::Arc;

/// Enqueues a fill and returns its submission index, 0 for none. Values whose bytes repeat after one, two or four
/// are set by the driver; others are uploaded once and doubled on the device.
pub fn fill<T: Element, B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    destination: ArrayRef<'_, B>,
    value: T,
) -> Result<u64> {
    match repeat(timeline, operation, destination, Pattern::of(bytemuck::bytes_of(&value)))? {
        Some(submission) => Ok(submission),
        None => double(timeline, operation, destination, value),
    }
}

/// As [`fill`], with zeros, which are aligned everywhere. No element is made, which may be larger than the stack.
pub fn fill_zeros<B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    destination: ArrayRef<'_, B>,
) -> Result<u64> {
    Ok(repeat(timeline, operation, destination, Some(Pattern::U8(0)))?.unwrap_or_default())
}

/// Enqueues the driver's own fill; `None` if there is no pattern, or the elements are not aligned for it.
fn repeat<B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    destination: ArrayRef<'_, B>,
    pattern: Option<Pattern>,
) -> Result<Option<u64>> {
    let layout = destination.layout;
    // Most fills are of one run, on the device of the stream: nothing has to be looked up or planned for them.
    if let (Some(pattern), Some(len @ 1..)) = (pattern, layout.packed_len())
        && layout.item() > 0
        && starts_aligned(destination, pattern)
        && Arc::ptr_eq(&timeline.context, destination.memory.context())
        && destination.memory.boundaries().is_empty()
    {
        return set_run(timeline, operation, destination, len * layout.item(), pattern).map(Some);
    }
    let access = [destination.access(true)];
    let _admitted = timeline.admit(Work::Transfer, operation, &access)?;
    timeline.check_owns(operation, destination.memory)?;
    let pattern = pattern.filter(|pattern| is_aligned(destination, *pattern));
    let nest = CopyNest::new(layout, layout).map_err(|error| timeline.context.error(operation, error))?;
    if nest.len == 0 || nest.item == 0 {
        return Ok(Some(0));
    }
    pattern.map(|pattern| set(timeline, operation, destination, &nest, pattern)).transpose()
}

/// The driver's own fill of one run, as most are.
#[inline]
fn set_run<B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    destination: ArrayRef<'_, B>,
    bytes: usize,
    pattern: Pattern,
) -> Result<u64> {
    let start = destination.layout.offset();
    let access = Access::write(destination.memory, start..start + bytes);
    let address = destination.memory.address() + start as u64;
    let count = match pattern {
        Pattern::U8(_) => bytes,
        Pattern::U16(_) => bytes / 2,
        Pattern::U32(_) => bytes / 4,
    };
    let fill = Fill { address, pattern, count, rows: 1, pitch: bytes };
    let submitted = timeline.submit(operation, &[access], |sink| {
        // SAFETY: the run lies in a live allocation, which the access log keeps alive and ordered; it starts at a multiple of
        // the pattern.
        unsafe { sink.fill(&fill) }
    })?;
    note_written(timeline, destination);
    Ok(submitted.submission)
}

/// Whether the first element lies at a multiple of the pattern, and then all of a packed array do, whose elements are
/// whole numbers of patterns.
#[inline]
fn starts_aligned<B: Backend>(destination: ArrayRef<'_, B>, pattern: Pattern) -> bool {
    let start = destination.memory.address().wrapping_add(destination.layout.offset() as u64);
    // 1, 2 or 4.
    start & (pattern.bytes() as u64 - 1) == 0
}

/// Whether every run starts at a multiple of the pattern: a field of a packed record may not.
fn is_aligned<B: Backend>(destination: ArrayRef<'_, B>, pattern: Pattern) -> bool {
    let (layout, bytes) = (destination.layout, pattern.bytes());
    let axes = layout.shape().iter().zip(layout.strides());
    starts_aligned(destination, pattern)
        && axes.filter(|(len, _)| **len > 1).all(|(_, stride)| stride.unsigned_abs().is_multiple_of(bytes))
}

/// The driver's own fill, once for each two-dimensional part.
fn set<B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    destination: ArrayRef<'_, B>,
    nest: &CopyNest,
    pattern: Pattern,
) -> Result<u64> {
    let base = destination.memory.address();
    let access = destination.access(true);
    let boundaries: Boundaries = destination.memory.device_boundaries().collect();
    let plan = RegionLoop::new(nest);
    let submitted = timeline.submit(operation, &[access], |sink| {
        plan.run((base, Space::Host), (base, Space::Host), |region| {
            split_at_boundaries(region, &boundaries, &mut |region| {
                for slice in 0..region.slices {
                    let address = region.destination.address + (slice * region.destination.pitch[1]) as u64;
                    let (count, pitch) = (region.bytes / pattern.bytes(), region.destination.pitch[0]);
                    let fill = Fill { address, pattern, count, rows: region.rows, pitch };
                    // SAFETY: the rows lie in a live allocation, which the access log keeps alive and ordered; they start
                    // at multiples of the pattern (checked by the caller), and so do the pages at which they are cut.
                    unsafe { sink.fill(&fill)? };
                }
                Ok(())
            })
        })
    })?;
    note_written(timeline, destination);
    Ok(submitted.submission)
}

/// Uploads a few elements, then copies the filled part to the rest, twice as much each time.
fn double<T: Element, B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    destination: ArrayRef<'_, B>,
    value: T,
) -> Result<u64> {
    let fail = |error| timeline.context.error(operation, error);
    let (layout, item) = (destination.layout, size_of::<T>());
    let extent = layout.extent();
    let is_packed = extent.len() == layout.packed_bytes() && layout.offset() == extent.start;
    if !is_packed {
        // One element, repeated over the layout by strides of zero.
        let host = ArrayD::from_elem(ndarray::IxDyn(&[]), value);
        let Some(spread) = host.broadcast(layout.shape()) else { return Ok(0) };
        return upload(timeline, operation, &spread, destination, Upload::Staged, None);
    }
    let len = layout.len();
    let mut ready = len.min((TUNING.fill_seed / item).max(1));
    let part = |start: usize, count: usize| {
        Layout::packed(&[count], item, Order::C)
            .and_then(|part| part.with_offset(extent.start + start * item))
            .map_err(fail)
    };
    let seed = ArrayD::from_elem(ndarray::IxDyn(&[ready]), value);
    let first = part(0, ready)?;
    let mut submission = upload(
        timeline,
        operation,
        &seed.view(),
        ArrayRef::new(destination.memory, &first),
        Upload::Staged,
        None,
    )?;
    while ready < len {
        let count = ready.min(len - ready);
        let (from, to) = (part(0, count)?, part(ready, count)?);
        let (from, to) = (ArrayRef::new(destination.memory, &from), ArrayRef::new(destination.memory, &to));
        // The part that is filled already counts as written.
        submission = copy::<T, B>(timeline, operation, from, to)
            .inspect_err(|error| note_torn(timeline, operation, destination, error))?;
        ready += count;
    }
    Ok(submission)
}
