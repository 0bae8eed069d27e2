//! Copies of the caller's memory by the calling thread, on backends that reach it.
//!
//! Enqueuing a copy, running it and waiting for it costs some hundred nanoseconds, in which a processor copies some ten
//! kilobytes. Where the host can copy at once ([`Stream::try_copy_sync`](gpumem_core::Stream::try_copy_sync)) and
//! nothing has to be waited for, the thread does so ([`try_upload_inline`], [`try_download_inline`]). Otherwise it
//! [enqueues](copy) the copy and waits for it.

use super::{
    ArrayRef, Direction, abort,
    chunks::for_each_chunk,
    copy_side::{CopySide, enqueue},
    region_loop::RegionLoop,
    sides::HostSpan,
    state::{Progress, ProgressFn},
    torn::{note_torn, note_written},
};
use crate::{
    device::Allocation,
    layout::{CopyNest, contiguous_len},
    tuning::TUNING,
};
use gpumem_core::{Backend, CopyRegion, DriverDevice, ErrorKind, Result, Space};
use gpumem_memory::{
    may_block,
    track::{Access, Timeline, Work},
};
use ndarray::{ArrayView, ArrayViewMut, Dimension};
use std::{
    ops::{ControlFlow, Range},
    sync::Arc,
};

/// The operation in errors of the checks, which are never shown.
const OPERATION: &str = "copy";

/// Copies from a packed array of the caller. `false`: nothing was done, and the ordinary way says why.
pub(crate) fn try_upload_inline<T, D: Dimension, B: Backend>(
    timeline: &Arc<Timeline<B>>,
    source: &ArrayView<'_, T, D>,
    destination: ArrayRef<'_, B>,
) -> bool {
    let Some(elements) = source.as_slice() else { return false };
    let Some(extent) = run_of(source.shape(), size_of_val(elements), destination) else { return false };
    let host = (elements.as_ptr().expose_provenance() as u64, Space::Host);
    // SAFETY: the slice is borrowed during the call, and as long as the destination's run.
    unsafe { run_inline(timeline, host, destination.memory, &extent, true) }
}

/// Copies into a packed array of the caller. `false`: nothing was done, and the ordinary way says why.
pub(crate) fn try_download_inline<T, D: Dimension, B: Backend>(
    timeline: &Arc<Timeline<B>>,
    source: ArrayRef<'_, B>,
    destination: &mut ArrayViewMut<'_, T, D>,
) -> bool {
    let bytes = destination.len().saturating_mul(size_of::<T>());
    let Some(extent) = run_of(destination.shape(), bytes, source) else { return false };
    let Some(elements) = destination.as_slice_mut() else { return false };
    let host = (elements.as_mut_ptr().expose_provenance() as u64, Space::Host);
    // SAFETY: the slice is borrowed mutably during the call, and as long as the source's run.
    unsafe { run_inline(timeline, host, source.memory, &extent, false) }
}

/// Copies into memory of the caller that may not be an array yet. `false`: nothing was done, and the ordinary way says why.
///
/// # Safety
/// The caller's memory is valid for writes, and not used by anything else.
pub(super) unsafe fn try_copy_out_inline<B: Backend>(
    timeline: &Arc<Timeline<B>>,
    source: ArrayRef<'_, B>,
    host_span: &HostSpan,
) -> bool {
    let Some((first, extent)) = run_to(source, host_span) else { return false };
    let host = (first.expose_provenance() as u64, Space::Host);
    // SAFETY: the caller's promise; both sides have the bytes of the run.
    unsafe { run_inline(timeline, host, source.memory, &extent, false) }
}

/// The first of the caller's bytes and the bytes of a place, where both hold the same elements in one run.
pub(super) fn run_to<B: Backend>(
    array_ref: ArrayRef<'_, B>,
    host_span: &HostSpan,
) -> Option<(*mut u8, Range<usize>)> {
    let run = contiguous_len(array_ref.layout, &host_span.layout)?;
    let start = array_ref.layout.offset();
    Some((host_span.base.wrapping_add(host_span.layout.offset()), start..start + run))
}

/// The bytes of a place that holds the same elements in the same order as a packed array of that shape, and any at all.
pub(super) fn run_of<B: Backend>(
    shape: &[usize],
    bytes: usize,
    array_ref: ArrayRef<'_, B>,
) -> Option<Range<usize>> {
    let layout = array_ref.layout;
    let run = contiguous_len(layout, layout).filter(|run| *run == bytes && layout.shape() == shape)?;
    Some(layout.offset()..layout.offset() + run)
}

/// Copies between two arrays of the library. `false`: nothing was done, and the ordinary way says why.
pub(crate) fn try_copy_inline<B: Backend>(
    timeline: &Arc<Timeline<B>>,
    source: ArrayRef<'_, B>,
    destination: ArrayRef<'_, B>,
) -> bool {
    let Some(bytes) = contiguous_len(source.layout, destination.layout) else { return false };
    // Two parts of one allocation may overlap, and so may foreign memory that was wrapped twice.
    let is_ours =
        |array_ref: ArrayRef<'_, B>| array_ref.memory.is_owned() && is_usable(timeline, array_ref.memory);
    if source.memory.id() == destination.memory.id() || !is_ours(source) || !is_ours(destination) {
        return false;
    }
    let run = |array_ref: ArrayRef<'_, B>| array_ref.layout.offset()..array_ref.layout.offset() + bytes;
    let (from, to) = (run(source), run(destination));
    let region = CopyRegion::linear(endpoint(source.memory, &from), endpoint(destination.memory, &to), bytes);
    let accesses = [Access::read(source.memory, from), Access::write(destination.memory, to)];
    // SAFETY: both runs lie in live allocations, which do not overlap; the rest as in `run_inline`.
    timeline
        .admit(Work::Transfer, OPERATION, &accesses)
        .is_ok_and(|admitted| unsafe { admitted.try_copy_sync(&region) })
}

/// Copies between the caller's memory and the run of an allocation, if nothing has to be waited for.
///
/// # Safety
/// The caller's memory is valid for the run, for writes where the run is read, and no other code uses it.
unsafe fn run_inline<B: Backend>(
    timeline: &Arc<Timeline<B>>,
    host: (u64, Space),
    memory: &Allocation<B>,
    extent: &Range<usize>,
    write: bool,
) -> bool {
    if !is_usable(timeline, memory) {
        return false;
    }
    let device = endpoint(memory, extent);
    let (source, destination) = if write { (host, device) } else { (device, host) };
    let region = CopyRegion::linear(source, destination, extent.len());
    let access = [Access::new(memory, extent.clone(), write)];
    // SAFETY: the caller's memory is valid by this function's contract, the device's is alive; the backend copies only
    // if this stream is idle, no other stream uses the memory, and the locks of the logs keep it so.
    timeline
        .admit(Work::Transfer, OPERATION, &access)
        .is_ok_and(|admitted| unsafe { admitted.try_copy_sync(&region) })
}

fn endpoint<B: Backend>(memory: &Allocation<B>, extent: &Range<usize>) -> (u64, Space) {
    let (address, space) = memory.endpoint();
    (address + extent.start as u64, space)
}

fn is_usable<B: Backend>(timeline: &Timeline<B>, memory: &Allocation<B>) -> bool {
    timeline.context.raw.capabilities().pageable_direct
        && Arc::ptr_eq(&timeline.context, memory.context())
        && memory.boundaries().is_empty()
        && may_block(OPERATION).is_ok()
}

/// Copies everything at once, or in chunks if progress is reported, and returns when it is done.
/// Returns the failure of the copy, and [`ErrorKind::Cancelled`] if `progress` ends it.
pub(super) fn copy<B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    (host_span, nest, array_ref): (&HostSpan, &CopyNest, ArrayRef<'_, B>),
    direction: Direction,
    progress: Option<ProgressFn<'_>>,
) -> Result<u64> {
    let Some(progress) = progress else {
        return direct(timeline, operation, host_span, nest, array_ref, direction);
    };
    let total = (nest.len * nest.item) as u64;
    let (mut done, mut submission) = (0, 0);
    for_each_chunk(nest, TUNING.watched_chunk, &mut |piece| {
        submission = direct(timeline, operation, host_span, piece, array_ref, direction)?;
        done += (piece.len * piece.item) as u64;
        match progress(Progress { done, total }) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(timeline.context.error(operation, ErrorKind::Cancelled)),
        }
    })
    .inspect_err(|error| {
        if direction == Direction::HostToDevice && done > 0 {
            note_torn(operation, array_ref, error);
        }
    })?;
    Ok(submission)
}

/// One copy between the caller's memory and the device, waited for.
fn direct<B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    host_span: &HostSpan,
    nest: &CopyNest,
    array_ref: ArrayRef<'_, B>,
    direction: Direction,
) -> Result<u64> {
    let host = CopySide::of_caller(timeline, host_span.base as u64);
    let device = CopySide::of(timeline, array_ref.memory);
    let extent = array_ref.layout.extent();
    let access = match direction {
        Direction::HostToDevice => Access::write(array_ref.memory, extent),
        Direction::DeviceToHost => Access::read(array_ref.memory, extent),
    };
    // In the pair the caller is the source; for the way down the two sides change places.
    let nest = if direction == Direction::HostToDevice { nest.clone() } else { nest.swapped() };
    let (from, to) = if direction == Direction::HostToDevice { (host, device) } else { (device, host) };
    let mut calls = 0;
    let outcome = timeline.submit(operation, &[access], |raw| {
        // SAFETY: the caller's memory is valid during this call, which waits below; the device's memory is alive and
        // ordered by its access log; the two do not overlap, and destination elements do not (checked before).
        unsafe {
            enqueue(
                timeline,
                raw,
                (&nest, &RegionLoop::new(&nest)),
                from,
                to,
                array_ref.memory.boundaries(),
                &mut calls,
            )
        }
    });
    let outcome = outcome.inspect_err(|error| {
        if direction == Direction::HostToDevice && calls > 0 {
            note_torn(operation, array_ref, error);
        }
    });
    let submission =
        outcome.as_ref().map_or_else(|_| timeline.last_submission(), |submitted| submitted.submission);
    let wait_outcome = timeline.wait_host(submission);
    if !wait_outcome.done {
        abort(operation, wait_outcome.result);
    }
    outcome?;
    wait_outcome.result.map_err(|error| error.in_operation(operation))?;
    if direction == Direction::HostToDevice {
        note_written(timeline, array_ref);
    }
    Ok(submission)
}
