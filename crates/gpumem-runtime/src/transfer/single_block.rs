//! Short copies between packed memory of the caller and of a device, without the pipeline.
//!
//! A copy of a few microseconds leaves no time to plan: the calling thread moves the elements through one page-locked
//! block. An upload is over for the caller when they are in the block; the copy to the device follows in stream order.
//! `cuMemcpyHtoD` from ordinary memory returns then too ("the DMA to final destination may not have completed", API
//! synchronization behavior of the CUDA driver); of `cuMemcpyHtoDAsync` it is not documented when it has read the
//! caller's memory.

use super::{
    ArrayRef, Direction, Producers, Staging, TUNING,
    route::{BorrowedCopy, BorrowedRun},
    store_policy::{StorePolicy, copy_run},
    torn::{note_torn, note_written},
};
use crate::{Device, device::AllocationRef, key::Key};
use gpumem_core::{Backend, CopyRegion, Result};
use gpumem_memory::track::{Access, Timeline};
use smallvec::SmallVec;
use std::{ops::Range, sync::Arc};

/// Copies a run. Returns the last submission index of an upload, 0 of a download.
///
/// # Safety
/// The caller's memory is valid for the run during this call; for a download, for writes, and no other code uses it.
pub(super) unsafe fn copy<B: Backend>(copy: &BorrowedCopy<'_, B>, run: BorrowedRun) -> Result<u64> {
    let BorrowedCopy { timeline, operation, array, direction, blocks } = *copy;
    let BorrowedRun { first, extent } = run;
    let bytes = extent.len();
    if direction == Direction::DeviceToHost {
        // SAFETY: the caller's promise.
        return unsafe { through_block(timeline, operation, array, extent, first) }.map(|()| 0);
    }
    let most = match blocks {
        true => {
            (TUNING.bytes_in_flight / bytes).clamp(TUNING.min_uploads_in_flight, TUNING.max_uploads_in_flight)
        }
        false => usize::MAX,
    };
    // SAFETY: the caller's promise; elements have no bytes that are not initialised.
    let elements = unsafe { std::slice::from_raw_parts(first.cast_const(), bytes) };
    send(timeline, operation, elements, (array, extent), most)
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
        let enqueued = enqueue(
            timeline,
            operation,
            (destination.memory, extent.start),
            block,
            &here,
            Direction::HostToDevice,
        );
        last = enqueued.inspect_err(|error| {
            if last > 0 {
                note_torn(timeline, operation, destination, error);
            }
        })?;
    }
    note_written(timeline, destination);
    Ok(last)
}

/// Bytes in a block, to be sent while a lock is held: to make them may run code of the user's, which gives page-locked memory, and so
/// may to drop them; to send them does not.
#[derive(Debug)]
pub struct StagedBytes<B: Backend> {
    staging: Staging<B>,
    len: usize,
}

impl<B: Backend> StagedBytes<B> {
    pub fn new(_: Key, device: &Device<B>, operation: &'static str, bytes: &[u8]) -> Result<Self> {
        let staging = Staging::take(device, operation, bytes.len())?;
        let into = staging.host(operation)?;
        // SAFETY: the block is at least as long as the bytes, and nothing uses it yet.
        unsafe { copy_run(bytes.as_ptr(), into.as_ptr(), bytes.len(), StorePolicy::Temporal) };
        Ok(Self { staging, len: bytes.len() })
    }

    /// Enqueues the copy to the place, which is as long and packed.
    pub fn send(
        &self,
        _: Key,
        timeline: &Arc<Timeline<B>>,
        operation: &'static str,
        place: ArrayRef<'_, B>,
    ) -> Result<()> {
        let (block, start) = (self.staging.memory(), place.layout.offset());
        enqueue(timeline, operation, (place.memory, start), block, &(0..self.len), Direction::HostToDevice)?;
        note_written(timeline, place);
        Ok(())
    }
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
    Producers::of(source, timeline).check(operation)?;
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
        let submission = enqueue(
            timeline,
            operation,
            (source.memory, extent.start),
            block,
            &piece,
            Direction::DeviceToHost,
        );
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
    (memory, start): (&AllocationRef<B>, usize),
    block: &AllocationRef<B>,
    piece: &Range<usize>,
    direction: Direction,
) -> Result<u64> {
    let run = start + piece.start..start + piece.end;
    let ((device, space), (host, pinned)) = (memory.endpoint(), block.endpoint());
    let (device, host) = ((device + run.start as u64, space), (host + piece.start as u64, pinned));
    let (from, to, accesses) = match direction {
        Direction::HostToDevice => {
            (host, device, [Access::read(block, piece.clone()), Access::write(memory, run)])
        }
        Direction::DeviceToHost => {
            (device, host, [Access::read(memory, run), Access::write(block, piece.clone())])
        }
    };
    let region = CopyRegion::linear(from, to, piece.len());
    let submitted = timeline.submit(operation, &accesses, |sink| {
        // SAFETY: the block and the device's memory are alive, as long as the region, and ordered by their access logs.
        unsafe { sink.copy(&region) }
    })?;
    Ok(submitted.submission)
}
