//! Downloads inside a scope: to staging memory in stream order, and to the caller's memory when the stream is waited for.
//!
//! A stream holds at most [eight blocks](crate::TransferOptions::scoped_staging_bytes) of staging memory for them. The
//! rest goes through the [pipeline](super::pipeline) before the call returns, as in a blocking download: later work on
//! the stream may change the source, so all copies out of it are enqueued by then.

use super::{
    ArrayRef, Direction,
    host_side::HostSide,
    pipeline::{Parked, ParkedDownload, StagingPipeline},
    route::BorrowedCopy,
    sides::HostSpan,
};
use crate::{Device, layout::CopyNest};
use gpumem_core::{Backend, Element, Result};
use gpumem_memory::track::Timeline;
use ndarray::ArrayViewMutD;
use std::sync::Arc;

/// Copies into an array of the caller, in stream order. The last part is copied out when the stream is waited for, at the
/// latest at the end of the scope.
///
/// # Safety
/// The destination is valid for writes, and not used by anything else, until the entries of `scope` in the stream's queue are
/// run, dropped or leaked.
pub(crate) unsafe fn download_in_scope<T: Element, B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    scope: u64,
    source: ArrayRef<'_, B>,
    mut destination: ArrayViewMutD<'_, T>,
) -> Result<()> {
    let host_span =
        HostSpan::writing(operation, &mut destination).map_err(|error| timeline.context.place(error))?;
    let (array, direction) = (source, Direction::DeviceToHost);
    // It has no choice of ways: the elements arrive later.
    let nest =
        BorrowedCopy { timeline, operation, array, direction, blocks: false }.nest(&host_span.layout)?;
    if nest.len == 0 || nest.item == 0 {
        return Ok(());
    }
    let device = source.device(operation)?.clone();
    let options = device.transfer_options();
    let (bytes, bound) = (nest.len * nest.item, options.scoped_staging_bytes());
    make_room(timeline, operation, bound.saturating_sub(options.scoped_staging_of(bytes)))?;
    // SAFETY: the caller's promise.
    let stage = || unsafe { park(&device, timeline, operation, source, &host_span, &nest) };
    let (chunks, last) = match stage() {
        // Other downloads of the stream hold the memory.
        Err(error) if error.is_out_of_memory() && timeline.copy_outs.bytes() > 0 => {
            make_room(timeline, operation, 0)?;
            stage()?
        }
        parked => parked?,
    };
    if chunks.is_empty() {
        return Ok(());
    }
    let parked = ParkedDownload::new(device, operation, host_span, bytes, chunks);
    let staged = parked.staging_bytes();
    // SAFETY: the caller keeps the destination until then; the copies into the blocks are done.
    timeline.copy_outs.add(scope, last, staged, Box::new(move || unsafe { parked.copy_out() }));
    // Blocks may be longer than their chunks, and another thread may have used the stream.
    make_room(timeline, operation, bound)
}

/// Moves all but the part that fits into the blocks of a scope. Returns the contents of these, and the last submission.
///
/// # Safety
/// As for [`download_in_scope`], during this call.
unsafe fn park<B: Backend>(
    device: &Device<B>,
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    source: ArrayRef<'_, B>,
    host_span: &HostSpan,
    nest: &CopyNest,
) -> Result<Parked<B>> {
    let sides = (source, HostSide::Memory(host_span), nest);
    let pipeline = StagingPipeline::for_scope(device, timeline, operation, sides);
    // SAFETY: the caller's promise.
    unsafe { pipeline.run_and_park(nest) }
}

/// Waits for the oldest downloads of the stream and copies them out, until no more than `bytes` bytes of staging memory are
/// held.
///
/// # Errors
/// Returns an error if the stream cannot be waited for. The scopes concerned get a failure of its work.
fn make_room<B: Backend>(timeline: &Timeline<B>, operation: &'static str, bytes: usize) -> Result<()> {
    while let Some(oldest) = timeline.copy_outs.oldest_above(bytes) {
        let wait_outcome = timeline.wait_host(oldest);
        if !wait_outcome.done {
            return wait_outcome.result.map_err(|error| error.in_operation(operation));
        }
        timeline.copy_out_completed();
        if timeline.copy_outs.oldest_above(bytes) == Some(oldest) {
            // The device was started anew: nothing of this stream is copied out any more.
            return timeline.check(operation);
        }
    }
    Ok(())
}
