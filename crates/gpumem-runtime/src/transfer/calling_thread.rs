//! Copies by the calling thread, on backends that reach the caller's memory.
//!
//! Enqueuing a copy, running it and waiting for it costs some hundred nanoseconds, in which a processor copies some ten
//! kilobytes. Where the host can copy at once ([`Stream::try_copy_sync`](gpumem_core::Stream::try_copy_sync)) and
//! nothing has to be waited for, the thread does so. Otherwise it enqueues the copy and waits for it.

use super::{
    Direction, Producers, abort,
    chunks::for_each_chunk,
    copy_side::{CopySide, enqueue},
    region_loop::RegionLoop,
    route::{ArrayCopy, BorrowedCopy, BorrowedRun},
    sides::HostSpan,
    state::{Progress, ProgressFn},
    torn::{NoteTorn, check_release, note_written, unwound},
};
use crate::{device::Allocation, layout::CopyNest, tuning::TUNING};
use gpumem_core::{Backend, CopyRegion, ErrorKind, Result, Space};
use gpumem_memory::track::{Access, Work};
use std::{
    cell::Cell,
    ops::{ControlFlow, Range},
    thread,
};

/// Copies a run between two arrays of the library. `false`: nothing was done, because something has to be waited for.
pub(super) fn try_copy<B: Backend>(copy: &ArrayCopy<'_, B>, bytes: usize) -> bool {
    let ArrayCopy { timeline, operation, source, destination, .. } = *copy;
    let run = |offset: usize| offset..offset + bytes;
    let (from, to) = (run(source.layout.offset()), run(destination.layout.offset()));
    let region = CopyRegion::linear(endpoint(source.memory, &from), endpoint(destination.memory, &to), bytes);
    let accesses = [Access::read(source.memory, from), Access::write(destination.memory, to)];
    let admitted = timeline.admit(Work::Transfer, operation, &accesses);
    // SAFETY: both runs lie in live allocations, which do not overlap; the rest as in `try_run`.
    admitted.is_ok_and(|admitted| unsafe { admitted.try_copy_sync(&region) })
}

/// Copies a run of the caller's memory. `false`: nothing was done, because something has to be waited for.
///
/// # Safety
/// The caller's memory is valid for the run, for writes where the array is read, and no other code uses it.
pub(super) unsafe fn try_run<B: Backend>(copy: &BorrowedCopy<'_, B>, run: BorrowedRun) -> bool {
    let BorrowedCopy { timeline, operation, array, direction, .. } = *copy;
    let BorrowedRun { first, extent } = run;
    let (host, bytes) = ((first.expose_provenance() as u64, Space::Host), extent.len());
    let device = endpoint(array.memory, &extent);
    let is_up = direction == Direction::HostToDevice;
    let (source, destination) = if is_up { (host, device) } else { (device, host) };
    let region = CopyRegion::linear(source, destination, bytes);
    let access = [Access::new(array.memory, extent, is_up)];
    let admitted = timeline.admit(Work::Transfer, operation, &access);
    // SAFETY: the caller's memory is valid by this function's contract, the device's is alive; the backend copies only
    // if this stream is idle, no other stream uses the memory, and the locks of the logs keep it so.
    admitted.is_ok_and(|admitted| unsafe { admitted.try_copy_sync(&region) })
}

fn endpoint<B: Backend>(memory: &Allocation<B>, extent: &Range<usize>) -> (u64, Space) {
    let (address, space) = memory.endpoint();
    (address + extent.start as u64, space)
}

/// Copies everything at once, or in chunks if progress is reported, and returns when it is done.
/// Returns the failure of the copy or of the work that was to write its source, and [`ErrorKind::Cancelled`] if `progress` ends
/// it.
///
/// # Safety
/// The caller's memory is valid during this call; for a download, for writes, and no other code uses it.
pub(super) unsafe fn copy<B: Backend>(
    copy: &BorrowedCopy<'_, B>,
    host: &HostSpan,
    nest: &CopyNest,
    progress: Option<ProgressFn<'_>>,
) -> Result<u64> {
    let BorrowedCopy { timeline, operation, array, direction, .. } = *copy;
    let producers = (direction == Direction::DeviceToHost).then(|| Producers::of(array, timeline));
    let submission = match progress {
        None => direct(copy, host, nest)?,
        Some(progress) => in_chunks(copy, host, nest, progress)?,
    };
    producers.map_or(Ok(()), |producers| producers.check(operation))?;
    Ok(submission)
}

fn in_chunks<B: Backend>(
    copy: &BorrowedCopy<'_, B>,
    host: &HostSpan,
    nest: &CopyNest,
    progress: ProgressFn<'_>,
) -> Result<u64> {
    let BorrowedCopy { timeline, operation, array, direction, .. } = *copy;
    let total = (nest.len * nest.item) as u64;
    let (done, failed, mut submission) = (Cell::new(0), Cell::new(None), 0);
    let _torn = NoteTorn {
        timeline,
        operation,
        destination: (direction == Direction::HostToDevice).then_some(array),
        failure: || {
            let unwinds = || thread::panicking().then(|| unwound(&timeline.context, operation));
            failed.take().or_else(unwinds).filter(|_| (1..total).contains(&done.get()))
        },
    };
    let copied = for_each_chunk(nest, TUNING.watched_chunk, &mut |piece| {
        submission = direct(copy, host, piece)?;
        done.set(done.get() + (piece.len * piece.item) as u64);
        match progress(Progress { done: done.get(), total }) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(timeline.context.error(operation, ErrorKind::Cancelled)),
        }
    });
    failed.set(copied.as_ref().err().cloned());
    copied.map(|()| submission)
}

/// One copy between the caller's memory and the device, waited for.
fn direct<B: Backend>(copy: &BorrowedCopy<'_, B>, host: &HostSpan, nest: &CopyNest) -> Result<u64> {
    let BorrowedCopy { timeline, operation, array: array_ref, direction, .. } = *copy;
    let host = CopySide::of_caller(timeline, host.base as u64);
    let device = CopySide::of(timeline, array_ref.memory);
    let access = array_ref.access(direction == Direction::HostToDevice);
    // In the pair the caller is the source; for the way down the two sides change places.
    let nest = if direction == Direction::HostToDevice { nest.clone() } else { nest.swapped() };
    let (from, to) = if direction == Direction::HostToDevice { (host, device) } else { (device, host) };
    array_ref.wait_before(operation, direction == Direction::HostToDevice)?;
    let outcome = timeline.submit(operation, &[access], |sink| {
        // SAFETY: the caller's memory is valid during this call, which waits below; the device's memory is alive and
        // ordered by its access log; the two do not overlap, and destination elements do not (checked before).
        unsafe {
            enqueue(timeline, sink, (&nest, &RegionLoop::new(&nest)), from, to, array_ref.memory.boundaries())
        }
    });
    let submission = match &outcome {
        Ok(submitted) => submitted.submission,
        Err(_) => {
            // The copy may have been enqueued before that failed.
            check_release(&timeline.context, operation)?;
            timeline.last_submission()
        }
    };
    let wait_outcome = timeline.wait_host(submission);
    if !wait_outcome.done {
        abort(operation, wait_outcome.result);
    }
    outcome?;
    wait_outcome.result.map_err(|error| error.in_operation(operation))?;
    if direction == Direction::HostToDevice {
        note_written(timeline, array_ref);
    }
    Ok(submission)
}
