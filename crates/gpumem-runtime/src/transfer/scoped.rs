//! Downloads inside a scope: down in stream order, and into the caller's memory when the stream is waited for.

use super::{
    Place,
    borrowed::{device_of, pair_of},
    caller::Caller,
    pieces::Pieces,
    staged::{Staged, Way},
    stores::Stores,
};
use crate::{Device, layout::Pair, memory::Staging, order::Timeline};
use gpumem_core::{Backend, Element, Result};
use ndarray::ArrayViewMutD;
use parking_lot::Mutex;
use std::sync::Arc;

/// Enqueues a copy into an array of the caller that lands when the stream is waited for, at the latest at the end of
/// the scope.
///
/// # Safety
/// The destination is valid for writes, and used by nobody else, until the landings of `scope` are run or leaked.
pub(crate) unsafe fn download_in_scope<T: Element, B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    scope: u64,
    source: Place<'_, B>,
    mut destination: ArrayViewMutD<'_, T>,
) -> Result<()> {
    let caller = Caller::writing(operation, &mut destination).map_err(|error| timeline.core.place(error))?;
    let pair = pair_of::<B>(timeline, operation, &caller, source, "destination", false)?;
    if pair.len == 0 || pair.item == 0 {
        return Ok(());
    }
    let device = device_of(operation, source)?.clone();
    let limit = device.transfer_options().block_bytes;
    let (mut pieces, mut blocks, mut last) = (Pieces::new(&pair), Vec::new(), 0);
    while let Some(piece) = pieces.next(limit) {
        // What has been enqueued goes on into its block if this fails; it lands nowhere.
        let staging = Staging::take(&device, operation, piece.len * piece.item)?;
        last =
            Staged::new(&staging, operation, &piece)?.copy(timeline, operation, &piece, source, Way::Down)?;
        blocks.push((staging, piece));
    }
    let landing = Landing { device, operation, caller, bytes: pair.len * pair.item, blocks };
    // SAFETY: the caller of this function keeps the destination until then; the copies into the blocks are done.
    timeline.landings.add(scope, last, Box::new(move || unsafe { landing.run() }));
    Ok(())
}

/// What is to be copied out of blocks.
struct Landing<B: Backend> {
    device: Device<B>,
    operation: &'static str,
    caller: Caller,
    bytes: usize,
    blocks: Vec<(Staging<B>, Pair)>,
}

impl<B: Backend> Landing<B> {
    /// By as many threads as a blocking transfer of this size has. What fails is told by the device.
    ///
    /// # Safety
    /// The caller's memory is valid for writes, and nobody else uses it; the copies into the blocks are done.
    unsafe fn run(&self) {
        let share = self.device.transfer_options().share(self.bytes, false);
        // Block by block, so that threads stay close to each other.
        let state = Mutex::new((0, None::<Pieces>));
        let take = || loop {
            let mut state = state.lock();
            let (staging, piece) = self.blocks.get(state.0)?;
            let staged = Staged::new(staging, self.operation, piece);
            let parts = match &staged {
                Ok(staged) => state.1.get_or_insert_with(|| Pieces::new(&staged.inside(piece))),
                Err(_) => return Some((staged, piece.clone())),
            };
            match parts.next(share.part(piece.len * piece.item)) {
                Some(part) => return Some((staged, part)),
                None => *state = (state.0 + 1, None),
            }
        };
        let land = || {
            while let Some((staged, part)) = take() {
                let landed = staged.and_then(|staged| {
                    // SAFETY: the caller's promise; parts are disjoint.
                    unsafe {
                        staged.exchange(self.operation, &part, &self.caller, Way::Down, Stores::Ordinary)
                    }
                });
                if let Err(error) = landed {
                    return self.device.core().errors.push(error);
                }
            }
        };
        self.device.0.staging.crew().run(share.threads - 1, &land, land);
    }
}
