//! The staging blocks with the data of a download inside a scope.

use super::staged_chunk::StagedChunk;
use crate::{
    Device,
    transfer::{Direction, host_side::HostSide, sides::HostSpan, store_policy::StorePolicy},
};
use gpumem_core::{Backend, Error, ErrorKind, Result};
use parking_lot::Mutex;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Chunks that are being copied into blocks, and the submission index of the last copy.
pub(in crate::transfer) type Parked<B> = (Vec<Arc<StagedChunk<B>>>, u64);

/// The last part of a download inside a scope. It refers to memory of the caller, which only [`copy_out`](Self::copy_out)
/// touches.
pub(in crate::transfer) struct ParkedDownload<B: Backend> {
    device: Device<B>,
    operation: &'static str,
    host_span: HostSpan,
    /// Of the whole download.
    bytes: usize,
    chunks: Vec<Arc<StagedChunk<B>>>,
}

impl<B: Backend> ParkedDownload<B> {
    pub(in crate::transfer) fn new(
        device: Device<B>,
        operation: &'static str,
        host_span: HostSpan,
        bytes: usize,
        chunks: Vec<Arc<StagedChunk<B>>>,
    ) -> Self {
        Self { device, operation, host_span, bytes, chunks }
    }

    /// Bytes of the blocks.
    pub(in crate::transfer) fn staging_bytes(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.staging.memory().len()).sum()
    }

    /// Copies everything to the caller's memory, by as many threads as a blocking download of this size has.
    ///
    /// # Safety
    /// The caller's memory is valid for writes, and no other code uses it; the copies into the blocks are done.
    /// Returns the first failure. No thread uses the caller's memory any more then.
    pub(in crate::transfer) unsafe fn copy_out(&self) -> Result<()> {
        for chunk in &self.chunks {
            chunk.show_to_host(self.operation, Direction::DeviceToHost)?;
        }
        let (failure, has_failed) = (Mutex::new(None::<Error>), AtomicBool::new(false));
        // Chunk by chunk, so that threads stay close to each other.
        let copy_out = || {
            for chunk in &self.chunks {
                while !has_failed.load(Ordering::Relaxed)
                    && let Some(part) = chunk.marks.take()
                {
                    let (direction, stores) = (Direction::DeviceToHost, StorePolicy::Temporal);
                    // SAFETY: the caller's promise. A part is taken once, and parts are disjoint.
                    let moved = unsafe {
                        let side = HostSide::Memory(&self.host_span);
                        chunk.move_part(self.operation, part, side, direction, stores)
                    };
                    if let Err(error) = moved {
                        failure.lock().get_or_insert(error);
                        has_failed.store(true, Ordering::Relaxed);
                    }
                }
            }
        };
        let threads = self.device.transfer_options().config(self.bytes, false).threads;
        self.device.0.staging.workers().broadcast(threads - 1, &copy_out, copy_out);
        if let Some(error) = failure.into_inner() {
            return Err(error);
        }
        // A thread that panicked has left its part out.
        if self.chunks.iter().all(|chunk| chunk.marks.moved_from(0) == chunk.marks.parts()) {
            return Ok(());
        }
        let what = "a thread that copied elements out panicked".to_owned();
        Err(self.device.core().error(self.operation, ErrorKind::AsynchronousFault { what }))
    }
}
