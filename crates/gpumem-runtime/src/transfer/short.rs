//! Short blocking copies between packed memory of the caller and of a device, without the ring.
//!
//! What the driver takes a few microseconds for leaves no time to plan. Up, the driver gets the caller's memory as it is,
//! where it has left it alone when it returns (`Capabilities::pageable_upload_bytes`); down, the elements go through one
//! page-locked block, which a driver fills faster than ordinary memory.

use super::{Place, brief::run_of};
use crate::{
    completion,
    memory::Staging,
    order::{Access, Timeline},
};
use gpumem_core::{Backend, CopyRegion, Element, Error, ErrorKind, Result, Space};
use ndarray::{ArrayView, ArrayViewMut, Dimension};
use std::{ops::Range, sync::Arc};

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
    if !is_short(timeline, destination, &extent) {
        return None;
    }
    let host = (elements.as_ptr().expose_provenance() as u64, Space::Host);
    let (address, space) = destination.memory.endpoint();
    let region = CopyRegion::linear(host, (address + extent.start as u64, space), extent.len());
    let submitted = timeline.submit(operation, &[Access::write(destination.memory, extent)], |raw| {
        timeline.core.counters.count_copy();
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
pub(super) fn download<T: Element, D: Dimension, B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    source: Place<'_, B>,
    destination: &mut ArrayViewMut<'_, T, D>,
) -> Option<Result<()>> {
    let bytes = destination.len().saturating_mul(size_of::<T>());
    let extent = run_of(destination.shape(), bytes, source)?;
    if !is_short(timeline, source, &extent) {
        return None;
    }
    let elements = destination.as_slice_mut()?;
    Some(through_block(timeline, operation, source, extent, elements))
}

/// Copies a run into a slice of as many bytes.
fn through_block<T: Element, B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    source: Place<'_, B>,
    extent: Range<usize>,
    elements: &mut [T],
) -> Result<()> {
    let missing = || Error::new(B::NAME, operation, ErrorKind::NotReady);
    let device = source.memory.device().ok_or_else(missing)?;
    let bytes = extent.len();
    // The copy is ordered behind them on the device, which says nothing of whether they succeeded.
    for (writer, ticket) in source.memory.writers(&extent, timeline) {
        writer.settle(ticket).result.map_err(|error| error.in_operation(operation))?;
    }
    let staging = Staging::take(device, operation, bytes)?;
    let block = staging.memory();
    let (address, space) = source.memory.endpoint();
    let region = CopyRegion::linear((address + extent.start as u64, space), block.endpoint(), bytes);
    let accesses = [Access::read(source.memory, extent), Access::write(block, 0..bytes)];
    let submitted = timeline.submit(operation, &accesses, |raw| {
        timeline.core.counters.count_copy();
        // SAFETY: the block and the device's memory are alive, as long as the region, and ordered by their use logs.
        unsafe { B::copy(raw, &region) }
    })?;
    let settled = timeline.settle(submitted.ticket);
    if !settled.done {
        // The device may go on writing the block.
        std::mem::forget(staging);
        return settled.result.map_err(|error| error.in_operation(operation));
    }
    // Nothing lands of a copy that failed, whoever was told of it.
    let outcome = settled.result.and_then(|()| timeline.fault_since(submitted.ticket.saturating_sub(1)));
    outcome.map_err(|error| error.in_operation(operation))?;
    let what = "pinned memory that the host sees";
    let from = block.host().ok_or_else(|| Error::new(B::NAME, operation, ErrorKind::Unsupported { what }))?;
    // SAFETY: the block has these bytes, written by the copy, which is done; the slice is as long, and its elements are
    // plain data.
    unsafe { from.as_ptr().cast_const().copy_to_nonoverlapping(elements.as_mut_ptr().cast::<u8>(), bytes) };
    Ok(())
}

/// Whether the run is short and of this device, which needs no look at anything but the use log.
fn is_short<B: Backend>(timeline: &Arc<Timeline<B>>, place: Place<'_, B>, extent: &Range<usize>) -> bool {
    let memory = place.memory;
    let Some(device) = memory.device() else { return false };
    extent.len() <= device.0.staging.options().short_bytes
        && !extent.is_empty()
        && !B::capabilities(&timeline.core.raw).pageable_direct
        && Arc::ptr_eq(&timeline.core, memory.core())
        && memory.is_owned()
        && memory.cuts().is_empty()
        && completion::may_block::<B>("copy").is_ok()
        && timeline.check("copy").is_ok()
        && memory.check("copy").is_ok()
}
