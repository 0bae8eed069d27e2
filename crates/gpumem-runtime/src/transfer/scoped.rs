//! Downloads inside a scope: down in stream order, and into the caller's memory when the stream is waited for.

use super::{
    ArrayRef,
    chunks::Chunks,
    host_span::HostSpan,
    pageable::{device_of, nest_of},
    staged::{Direction, Staged},
    store_policy::StorePolicy,
};
use crate::{Device, layout::CopyNest, track::Timeline, transfer::Staging};
use gpumem_core::{Backend, Element, Result};
use ndarray::ArrayViewMutD;
use parking_lot::Mutex;
use std::sync::Arc;

/// Enqueues a copy into an array of the caller that lands when the stream is waited for, at the latest at the end of
/// the scope.
///
/// # Safety
/// The destination is valid for writes, and not used by anything else, until the landings of `scope` are run or
/// leaked.
pub(crate) unsafe fn download_in_scope<T: Element, B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    scope: u64,
    source: ArrayRef<'_, B>,
    mut destination: ArrayViewMutD<'_, T>,
) -> Result<()> {
    let host_span =
        HostSpan::writing(operation, &mut destination).map_err(|error| timeline.core.place(error))?;
    let nest = nest_of::<B>(timeline, operation, &host_span, source, "destination", false)?;
    if nest.len == 0 || nest.item == 0 {
        return Ok(());
    }
    let device = device_of(operation, source)?.clone();
    let limit = device.transfer_options().block_bytes;
    let (mut chunks, mut blocks, mut last) = (Chunks::new(&nest), Vec::new(), 0);
    while let Some(piece) = chunks.next(limit) {
        // What has been enqueued goes on into its block if this fails; it lands nowhere.
        let staging = Staging::take(&device, operation, piece.len * piece.item)?;
        last = Staged::new(&staging, operation, &piece)?.copy(
            timeline,
            operation,
            &piece,
            source,
            Direction::DeviceToHost,
        )?;
        blocks.push((staging, piece));
    }
    let landing = ScopedDownload { device, operation, host_span, bytes: nest.len * nest.item, blocks };
    // SAFETY: the caller of this function keeps the destination until then; the copies into the blocks are done.
    timeline.copy_outs.add(scope, last, Box::new(move || unsafe { landing.run() }));
    Ok(())
}

/// What is to be copied out of blocks.
struct ScopedDownload<B: Backend> {
    device: Device<B>,
    operation: &'static str,
    host_span: HostSpan,
    bytes: usize,
    blocks: Vec<(Staging<B>, CopyNest)>,
}

impl<B: Backend> ScopedDownload<B> {
    /// By as many threads as a blocking transfer of this size has. What fails is told by the device.
    ///
    /// # Safety
    /// The caller's memory is valid for writes, and nothing else uses it; the copies into the blocks are
    /// done.
    unsafe fn run(&self) {
        let config = self.device.transfer_options().config(self.bytes, false);
        // Block by block, so that threads stay close to each other.
        let state = Mutex::new((0, None::<Chunks>));
        let take = || loop {
            let mut state = state.lock();
            let (staging, piece) = self.blocks.get(state.0)?;
            let staged = Staged::new(staging, self.operation, piece);
            let parts = match &staged {
                Ok(staged) => state.1.get_or_insert_with(|| Chunks::new(&staged.inside(piece))),
                Err(_) => return Some((staged, piece.clone())),
            };
            match parts.next(config.part(piece.len * piece.item)) {
                Some(part) => return Some((staged, part)),
                None => *state = (state.0 + 1, None),
            }
        };
        let land = || {
            while let Some((staged, part)) = take() {
                let landed = staged.and_then(|staged| {
                    // SAFETY: the caller's promise; parts are disjoint.
                    unsafe {
                        staged.exchange(
                            self.operation,
                            &part,
                            &self.host_span,
                            Direction::DeviceToHost,
                            StorePolicy::Temporal,
                        )
                    }
                });
                if let Err(error) = landed {
                    return self.device.core().errors.push(error);
                }
            }
        };
        self.device.0.staging.workers().broadcast(config.threads - 1, &land, land);
    }
}
