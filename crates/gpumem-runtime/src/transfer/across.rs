//! Between devices that no driver call connects: two backends, through page-locked blocks.
//!
//! Each piece goes down into a block on the source's stream and up out of it on the destination's, and the next piece is
//! on its way down meanwhile. The blocks are those of the device that needs page-locked memory; the other one takes any.
//! Their use logs order the two streams, as for any other memory.

use super::{
    memory::Place,
    pieces::in_pieces,
    plan::Plan,
    side::MOST_CALLS,
    staged::{Staged, Way},
    torn::{note_torn, note_written},
};
use crate::{Device, layout::Pair, memory::Staging, order::Timeline};
use gpumem_core::{Backend, Result};
use std::sync::Arc;

/// Blocks in turn: one going down, one going up, one to spare.
const BLOCKS: usize = 3;

/// The device whose blocks a copy goes through, or `None` where another way is better: where both devices want memory
/// that they have page-locked themselves, or where either side would take too many driver calls.
pub(super) fn through<B: Backend>(
    pair: &Pair,
    source: Place<'_, B>,
    destination: Place<'_, B>,
) -> Option<Device<B>> {
    let (from, to) = (source.memory.device()?, destination.memory.device()?);
    let is_direct = |device: &Device<B>| B::capabilities(device.raw()).pageable_direct;
    match (is_direct(from), is_direct(to)) {
        _ if Plan::new(pair).calls() > MOST_CALLS => None,
        (false, false) => None,
        (false, true) => Some(from.clone()),
        (true, _) => Some(to.clone()),
    }
}

/// Enqueues the copy, and returns the ticket of the last piece on the destination's stream.
pub(super) fn copy<B: Backend>(
    (from, to): (&Arc<Timeline<B>>, &Arc<Timeline<B>>),
    operation: &'static str,
    pair: &Pair,
    (source, destination): (Place<'_, B>, Place<'_, B>),
    device: &Device<B>,
) -> Result<u64> {
    let limit = device.transfer_options().block_bytes;
    let mut blocks: [Option<Staging<B>>; BLOCKS] = [const { None }; BLOCKS];
    let (mut turn, mut last) = (0, 0);
    let mut down: Option<(usize, Pair)> = None;
    let mut up = |blocks: &[Option<Staging<B>>; BLOCKS], (at, piece): (usize, Pair)| -> Result<()> {
        if let Some(block) = &blocks[at] {
            last =
                Staged::new(block, operation, &piece)?.copy(to, operation, &piece, destination, Way::Up)?;
        }
        Ok(())
    };
    let outcome = in_pieces(pair, limit, &mut |piece| {
        let at = turn;
        turn = (turn + 1) % BLOCKS;
        let block = match &mut blocks[at] {
            Some(block) => block,
            empty => empty.insert(Staging::take(device, operation, limit.min(pair.len * pair.item))?),
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
        for (timeline, ticket) in [(from, from.last_ticket()), (to, last)] {
            let settled = timeline.settle(ticket);
            if let Err(second) = settled.result
                && !settled.done
            {
                timeline.core.errors.push(second);
            }
        }
        if last > 0 {
            note_torn(operation, destination, error);
        }
    })?;
    note_written(to, destination);
    Ok(last)
}
