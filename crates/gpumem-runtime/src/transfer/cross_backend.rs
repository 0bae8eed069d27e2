//! Between devices that no driver call connects: two backends, through page-locked blocks.
//!
//! Each piece goes down into a block on the source's stream and up out of it on the destination's, and the next piece is
//! on its way down meanwhile. The blocks are those of the device that needs page-locked memory; the other one takes any.
//! Their use logs order the two streams, as for any other memory.

use super::{
    ArrayRef, Direction, Staging, TUNING,
    chunks::for_each_chunk,
    region_loop::RegionLoop,
    staged::Staged,
    torn::{note_torn, note_written},
};
use crate::{Device, layout::CopyNest};
use gpumem_core::{Backend, DriverDevice, Result};
use gpumem_memory::track::Timeline;
use std::sync::Arc;

/// Whether a copy can go through blocks: not if both devices need memory that they have page-locked themselves, nor if either
/// side would take too many driver calls.
pub(super) fn is_possible<B: Backend>(
    plan: &RegionLoop,
    source: ArrayRef<'_, B>,
    destination: ArrayRef<'_, B>,
) -> bool {
    let is_direct = |array: ArrayRef<'_, B>| array.memory.device().map(is_direct);
    match (is_direct(source), is_direct(destination)) {
        (Some(from), Some(to)) => (from || to) && plan.calls() <= TUNING.max_driver_calls,
        _ => false,
    }
}

/// Whether the device copies any memory of the host.
fn is_direct<B: Backend>(device: &Device<B>) -> bool {
    device.raw().capabilities().pageable_direct
}

/// Enqueues the copy, and returns the submission index of the last piece on the destination's stream.
pub(super) fn copy<B: Backend>(
    (from, to): (&Arc<Timeline<B>>, &Arc<Timeline<B>>),
    operation: &'static str,
    nest: &CopyNest,
    (source, destination): (ArrayRef<'_, B>, ArrayRef<'_, B>),
) -> Result<u64> {
    let far = destination.device(operation)?;
    // The one that needs page-locked memory of its own.
    let device = if is_direct(far) { source.device(operation)? } else { far };
    // A piece has at least one element, however long that is.
    let limit = device.transfer_options().block_bytes.max(nest.item);
    let mut blocks: [Option<Staging<B>>; TUNING.cross_backend_blocks] =
        [const { None }; TUNING.cross_backend_blocks];
    let (mut turn, mut last) = (0, 0);
    let mut down: Option<(usize, CopyNest)> = None;
    let mut up = |blocks: &[Option<Staging<B>>; TUNING.cross_backend_blocks],
                  (at, piece): (usize, CopyNest)|
     -> Result<()> {
        if let Some(block) = &blocks[at] {
            last = Staged::new(block, operation, &piece)?.copy(
                to,
                operation,
                &piece,
                destination,
                Direction::HostToDevice,
            )?;
        }
        Ok(())
    };
    let outcome = for_each_chunk(nest, limit, &mut |piece| {
        let at = turn;
        turn = (turn + 1) % TUNING.cross_backend_blocks;
        let block = match &mut blocks[at] {
            Some(block) => block,
            empty => empty.insert(Staging::take(device, operation, limit.min(nest.len * nest.item))?),
        };
        Staged::new(block, operation, piece)?.fetch(from, operation, piece, source)?;
        match down.replace((at, piece.clone())) {
            Some(ready) => up(&blocks, ready),
            None => Ok(()),
        }
    });
    let outcome = outcome.and_then(|()| down.take().map_or(Ok(()), |ready| up(&blocks, ready)));
    outcome.inspect_err(|error| {
        // Law 8: wait first, report after.
        for (timeline, submission) in [(from, from.last_submission()), (to, last)] {
            let wait_outcome = timeline.wait_host(submission);
            if let Err(second) = wait_outcome.result
                && !wait_outcome.done
            {
                timeline.context.errors.push(second);
            }
        }
        if last > 0 {
            note_torn(to, operation, destination, error);
        }
    })?;
    note_written(to, destination);
    Ok(last)
}
