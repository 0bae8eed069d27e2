//! Short copies between packed memory of the caller and of a device, without the pipeline.
//!
//! A copy of a few microseconds leaves no time to plan: the calling thread moves the elements through one page-locked
//! block. An upload is over for the caller when they are in the block; the copy to the device follows in stream order.
//! `cuMemcpyHtoD` from ordinary memory returns then too ("the DMA to final destination may not have completed", API
//! synchronization behavior of the CUDA driver); of `cuMemcpyHtoDAsync` it is not documented when it has read the
//! caller's memory.

use super::{
    ArrayRef, Direction, Staging, TUNING, Upload,
    calling_thread::{run_of, run_to},
    sides::HostSpan,
    store_policy::{StorePolicy, copy_run},
    torn::{note_torn, note_written},
};
use crate::device::AllocationRef;
use gpumem_core::{Backend, CopyRegion, DriverDevice, Element, Result, Stream as _, StreamKind};
use gpumem_memory::{
    may_block,
    track::{Access, Timeline},
};
use ndarray::{ArrayView, Dimension};
use smallvec::SmallVec;
use std::{ops::Range, sync::Arc};

/// Copies up and returns the last submission index. `None`: nothing was done, and the pipeline says why or does
/// it.
pub(super) fn upload<T: Element, D: Dimension, B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    source: &ArrayView<'_, T, D>,
    destination: ArrayRef<'_, B>,
    upload: Upload,
) -> Option<Result<u64>> {
    let elements = source.as_slice()?;
    let extent = run_of(source.shape(), size_of_val(elements), destination)?;
    // In a forked child the lock of the options may be held for ever.
    let options = timeline.is_ready().then(|| destination.memory.device())??.0.staging.options();
    // A stream of one thread has no helpers.
    let is_alone = timeline.kind() == StreamKind::PerThread;
    if !options.is_single_block_upload(extent.len(), is_alone) || !is_simple(timeline, destination, &extent) {
        return None;
    }
    let most = match upload {
        Upload::Blocking if !may_wait_for_block::<B>(timeline) => return None,
        Upload::Blocking => (TUNING.bytes_in_flight / extent.len())
            .clamp(TUNING.min_uploads_in_flight, TUNING.max_uploads_in_flight),
        Upload::Staged => usize::MAX,
    };
    Some(send(timeline, operation, bytemuck::cast_slice(elements), (destination, extent), most))
}

/// Moves a run of the caller's into a block, and enqueues its copy from there, in pieces of which one is copied while the next
/// one is moved. Waits for a block where so many are in use.
fn send<B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    elements: &[u8],
    (destination, extent): (ArrayRef<'_, B>, Range<usize>),
    most: usize,
) -> Result<u64> {
    let staging = Staging::take_of(destination.device(operation)?, operation, elements.len(), most)?;
    let block = staging.memory();
    let into = staging.host(operation)?;
    let stores = if elements.len() > TUNING.single_block_cached {
        StorePolicy::NonTemporal
    } else {
        StorePolicy::Temporal
    };
    let mut last = 0;
    for (index, piece) in elements.chunks(TUNING.single_block_piece).enumerate() {
        let here = index * TUNING.single_block_piece..index * TUNING.single_block_piece + piece.len();
        // SAFETY: the block is at least as long as the elements, and no other code uses these bytes of it: earlier uses
        // are over, and the copies of this transfer read other bytes.
        unsafe { copy_run(piece.as_ptr(), into.as_ptr().add(here.start), piece.len(), stores) };
        let enqueued =
            enqueue(timeline, operation, (destination, extent.start), block, &here, Direction::HostToDevice);
        last = enqueued.inspect_err(|error| {
            if last > 0 {
                note_torn(operation, destination, error);
            }
        })?;
    }
    note_written(timeline, destination);
    Ok(last)
}

/// Copies down. `None`: nothing was done, and the pipeline says why or does it.
///
/// # Safety
/// The caller's memory is valid for writes, and not used by anything else.
pub(super) unsafe fn download<B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    source: ArrayRef<'_, B>,
    host_span: &HostSpan,
) -> Option<Result<()>> {
    let (first, extent) = run_to(source, host_span)?;
    let options = timeline.is_ready().then(|| source.memory.device())??.0.staging.options();
    let is_short = extent.len() <= options.single_block_bytes && may_wait_for_block::<B>(timeline);
    if !is_short || !is_simple(timeline, source, &extent) {
        return None;
    }
    // SAFETY: the caller's promise, for its run.
    Some(unsafe { through_block(timeline, operation, source, extent, first) })
}

/// Copies a run into memory of the caller.
///
/// # Safety
/// The memory is valid for writes of as many bytes, and not used by anything else.
unsafe fn through_block<B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    source: ArrayRef<'_, B>,
    extent: Range<usize>,
    first: *mut u8,
) -> Result<()> {
    let bytes = extent.len();
    // The device orders the copy after them, which does not tell whether they succeeded.
    for (writer, submission) in source.memory.writers(&extent, timeline) {
        writer.wait_for_use(submission).result.map_err(|error| error.in_operation(operation))?;
    }
    let staging = Staging::take(source.device(operation)?, operation, bytes)?;
    let block = staging.memory();
    let from = staging.host(operation)?;
    let mut chunks: SmallVec<[(Range<usize>, u64); 4]> = SmallVec::new();
    let mut enqueued = Ok(());
    let mut at = 0;
    while at < bytes && enqueued.is_ok() {
        let piece = at..if bytes <= TUNING.single_block_whole {
            bytes
        } else {
            bytes.min((at * TUNING.single_block_growth).max(TUNING.single_block_first))
        };
        at = piece.end;
        let submission =
            enqueue(timeline, operation, (source, extent.start), block, &piece, Direction::DeviceToHost);
        enqueued = submission.map(|submission| {
            if at < bytes {
                // Without its own event the piece is waited for together with later ones: slow, not wrong.
                let _ = timeline.wait_target(submission);
            }
            chunks.push((piece, submission));
        });
    }
    for (piece, submission) in chunks {
        let wait_outcome = timeline.wait_host(submission);
        if !wait_outcome.done {
            // The device may go on writing the block.
            std::mem::forget(staging);
            return wait_outcome.result.map_err(|error| error.in_operation(operation));
        }
        // Law 8: wait first, report after.
        enqueued = enqueued.and(wait_outcome.result.map_err(|error| error.in_operation(operation)));
        if enqueued.is_ok() {
            // SAFETY: the block holds these bytes, written by the copy, which is done. The caller promises that the
            // destination has as many, and the rest.
            unsafe {
                from.as_ptr()
                    .cast_const()
                    .add(piece.start)
                    .copy_to_nonoverlapping(first.add(piece.start), piece.len());
            }
        }
    }
    enqueued
}

/// Enqueues the copy of a piece of a run, which begins so many bytes into the device's memory, from or to a block.
fn enqueue<B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    (array_ref, start): (ArrayRef<'_, B>, usize),
    block: &AllocationRef<B>,
    piece: &Range<usize>,
    direction: Direction,
) -> Result<u64> {
    let run = start + piece.start..start + piece.end;
    let ((device, space), (host, pinned)) = (array_ref.memory.endpoint(), block.endpoint());
    let (device, host) = ((device + run.start as u64, space), (host + piece.start as u64, pinned));
    let (from, to, accesses) = match direction {
        Direction::HostToDevice => {
            (host, device, [Access::read(block, piece.clone()), Access::write(array_ref.memory, run)])
        }
        Direction::DeviceToHost => {
            (device, host, [Access::read(array_ref.memory, run), Access::write(block, piece.clone())])
        }
    };
    let region = CopyRegion::linear(from, to, piece.len());
    let submitted = timeline.submit(operation, &accesses, |raw| {
        timeline.counters.count_copy();
        // SAFETY: the block and the device's memory are alive, as long as the region, and ordered by their access logs.
        unsafe { raw.copy(&region) }
    })?;
    Ok(submitted.submission)
}

/// Tells whether a blocking copy may wait and is to go through a block: the host copies memory that it can access
/// itself.
fn may_wait_for_block<B: Backend>(timeline: &Timeline<B>) -> bool {
    !timeline.context.raw.capabilities().pageable_direct && may_block("copy").is_ok()
}

/// Whether the run is of this device, and needs no look at anything but the access log.
fn is_simple<B: Backend>(
    timeline: &Arc<Timeline<B>>,
    array_ref: ArrayRef<'_, B>,
    extent: &Range<usize>,
) -> bool {
    let memory = array_ref.memory;
    !extent.is_empty()
        && Arc::ptr_eq(&timeline.context, memory.context())
        && memory.is_owned()
        && memory.boundaries().is_empty()
        && timeline.check("copy").is_ok()
        && memory.check("copy").is_ok()
}
