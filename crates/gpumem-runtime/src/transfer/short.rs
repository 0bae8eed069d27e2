//! Short blocking copies between packed memory of the caller and of a device, without the ring.
//!
//! What the driver takes a few microseconds for leaves no time to plan. Up, the driver gets the caller's memory as it is,
//! where it has left it alone when it returns (`Capabilities::pageable_upload_bytes`); down, the elements go through one
//! page-locked block, which a driver fills faster than ordinary memory.

use super::{
    Place,
    brief::{run_of, run_to},
    caller::Caller,
};
use crate::{
    completion,
    memory::{Allocation, Counted, Staging},
    order::{Access, Timeline},
};
use gpumem_core::{Backend, CopyRegion, Element, Error, ErrorKind, Result, Space, StreamKind};
use ndarray::{ArrayView, Dimension};
use smallvec::SmallVec;
use std::{ops::Range, sync::Arc};

/// Longer runs come down in pieces, so that one is taken out of the block while the next one comes: a thread takes about
/// three times as long for a byte as the copy engine.
const WHOLE: usize = 256 << 10;
/// The first of several pieces, and how many times as far as the one before each of the others ends.
const FIRST: usize = 128 << 10;
const GROWTH: usize = 4;

/// Copies up and returns the ticket. `None`: nothing was done, and the ring says why or does it.
pub(super) fn upload<T: Element, D: Dimension, B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    source: &ArrayView<'_, T, D>,
    destination: Place<'_, B>,
) -> Option<Result<u64>> {
    let most = B::capabilities(&timeline.core.raw).pageable_upload_bytes;
    let elements = source.as_slice().filter(|elements| size_of_val(*elements) <= most)?;
    let extent = run_of(source.shape(), size_of_val(elements), destination)?;
    let options = destination.memory.device()?.0.staging.options();
    // A stream of one thread has no helpers.
    let is_alone = timeline.kind() == StreamKind::PerThread;
    if !options.leaves_to_driver(extent.len(), is_alone) || !is_simple(timeline, destination, &extent) {
        return None;
    }
    let host = (elements.as_ptr().expose_provenance() as u64, Space::Host);
    let (address, space) = destination.memory.endpoint();
    let region = CopyRegion::linear(host, (address + extent.start as u64, space), extent.len());
    let submitted = timeline.submit(operation, &[Access::write(destination.memory, extent)], |raw| {
        timeline.tally.count_copy();
        // SAFETY: the slice is borrowed during this call, after which the driver does not read it, says the backend; the
        // device's memory is alive and ordered by its use log.
        unsafe { B::copy(raw, &region) }
    });
    Some(submitted.and_then(|submitted| {
        let settled = timeline.settle(submitted.ticket);
        settled.result.map(|()| submitted.ticket).map_err(|error| error.in_operation(operation))
    }))
}

/// Copies down. `None`: nothing was done, and the ring says why or does it.
///
/// # Safety
/// The caller's memory is valid for writes, and used by nobody else.
pub(super) unsafe fn download<B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    source: Place<'_, B>,
    caller: &Caller,
) -> Option<Result<()>> {
    let (first, extent) = run_to(source, caller)?;
    let options = source.memory.device()?.0.staging.options();
    if extent.len() > options.short_bytes || !is_simple(timeline, source, &extent) {
        return None;
    }
    // SAFETY: the caller's promise, for its run.
    Some(unsafe { through_block(timeline, operation, source, extent, first) })
}

/// Copies a run into memory of the caller.
///
/// # Safety
/// The memory is valid for writes of as many bytes, and used by nobody else.
unsafe fn through_block<B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    source: Place<'_, B>,
    extent: Range<usize>,
    first: *mut u8,
) -> Result<()> {
    let missing = || Error::new(B::NAME, operation, ErrorKind::NotReady);
    let device = source.memory.device().ok_or_else(missing)?;
    let bytes = extent.len();
    // The copy is ordered behind them on the device, which says nothing of whether they succeeded.
    for (writer, ticket) in source.memory.writers(&extent, timeline) {
        writer.settle(ticket).result.map_err(|error| error.in_operation(operation))?;
    }
    let staging = Staging::take(device, operation, bytes)?;
    let what = "pinned memory that the host sees";
    let block = staging.memory();
    let from = block.host().ok_or_else(|| Error::new(B::NAME, operation, ErrorKind::Unsupported { what }))?;
    let mut pieces: SmallVec<[(Range<usize>, u64); 4]> = SmallVec::new();
    let mut enqueued = Ok(());
    let mut at = 0;
    while at < bytes && enqueued.is_ok() {
        let piece = at..if bytes <= WHOLE { bytes } else { bytes.min((at * GROWTH).max(FIRST)) };
        at = piece.end;
        enqueued = fetch(timeline, operation, (source, extent.start), block, &piece).map(|ticket| {
            if at < bytes {
                // Without a mark of its own the piece is waited for together with those behind it: slow, not wrong.
                let _ = timeline.point(ticket);
            }
            pieces.push((piece, ticket));
        });
    }
    let before = pieces.first().map_or(0, |(_, ticket)| ticket.saturating_sub(1));
    for (piece, ticket) in pieces {
        let settled = timeline.settle(ticket);
        if !settled.done {
            // The device may go on writing the block.
            std::mem::forget(staging);
            return settled.result.map_err(|error| error.in_operation(operation));
        }
        // Nothing lands of a copy that failed, whoever was told of it. And law 8: wait first, report after.
        let outcome = settled.result.and_then(|()| timeline.fault_since(before));
        enqueued = enqueued.and(outcome.map_err(|error| error.in_operation(operation)));
        if enqueued.is_ok() {
            // SAFETY: the block has these bytes, written by the copy, which is done; so has the caller, who promises the
            // rest.
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

/// Enqueues the copy of a piece of a run, which begins so many bytes into the source's memory, into a block.
fn fetch<B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    (source, start): (Place<'_, B>, usize),
    block: &Counted<Allocation<B>>,
    piece: &Range<usize>,
) -> Result<u64> {
    let there = start + piece.start..start + piece.end;
    let (address, space) = source.memory.endpoint();
    let (begin, pinned) = block.endpoint();
    let from = (address + there.start as u64, space);
    let region = CopyRegion::linear(from, (begin + piece.start as u64, pinned), piece.len());
    let accesses = [Access::read(source.memory, there), Access::write(block, piece.clone())];
    let submitted = timeline.submit(operation, &accesses, |raw| {
        timeline.tally.count_copy();
        // SAFETY: the block and the device's memory are alive, as long as the region, and ordered by their use logs.
        unsafe { B::copy(raw, &region) }
    })?;
    Ok(submitted.ticket)
}

/// Whether the run is of this device, and needs no look at anything but the use log.
fn is_simple<B: Backend>(timeline: &Arc<Timeline<B>>, place: Place<'_, B>, extent: &Range<usize>) -> bool {
    let memory = place.memory;
    !extent.is_empty()
        && !B::capabilities(&timeline.core.raw).pageable_direct
        && Arc::ptr_eq(&timeline.core, memory.core())
        && memory.is_owned()
        && memory.cuts().is_empty()
        && completion::may_block::<B>("copy").is_ok()
        && timeline.check("copy").is_ok()
        && memory.check("copy").is_ok()
}
