//! Transfers from and to memory of the caller (law 3).
//!
//! The caller's memory is touched only by threads of the library that are inside the caller's call or scope. Where a backend
//! reaches it at full speed, the [calling thread](super::calling_thread) copies it and waits. Everywhere else the elements go
//! through page-locked blocks, and the device only sees those: [one block](super::single_block), or the
//! [pipeline](super::pipeline).

use super::{
    ArrayRef, Direction, ProgressFn, TUNING, calling_thread,
    copy_side::can_pack,
    device_copy::copy_nest,
    pipeline::StagingPipeline,
    region_loop::RegionLoop,
    sides::{HostSpan, nest_of},
    single_block,
    torn::note_written,
};
use crate::{
    Device,
    device::{Allocation, AllocationRef},
    layout::{CopyNest, Layout},
};
use gpumem_core::{Backend, DriverDevice, Element, Result};
use gpumem_memory::track::{Timeline, Work};
use ndarray::{ArrayViewD, ArrayViewMutD};
use std::sync::Arc;

/// When an upload returns, the elements have left the source in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upload {
    /// They are in the destination. Bytes of a short copy may still be on their way.
    Blocking,
    /// They are on their way: in the destination in stream order.
    Staged,
}

/// Copies an array of the caller into memory of the library. Returns the submission index of the last copy, 0
/// for none.
pub fn upload<T: Element, B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    source: ArrayViewD<'_, T>,
    destination: ArrayRef<'_, B>,
    upload: Upload,
    progress: Option<ProgressFn<'_>>,
) -> Result<u64> {
    if progress.is_none()
        && let Some(done) = single_block::upload(timeline, operation, &source, destination, upload)
    {
        return done;
    }
    let host_span = HostSpan::reading(operation, &source).map_err(|error| timeline.context.place(error))?;
    let nest =
        nest_of::<B>(timeline, operation, &host_span, destination, "source", upload == Upload::Blocking)?;
    if nest.len == 0 || nest.item == 0 {
        return Ok(0);
    }
    if upload == Upload::Blocking && timeline.context.raw.capabilities().pageable_direct {
        return calling_thread::copy(
            timeline,
            operation,
            (&host_span, &nest, destination),
            Direction::HostToDevice,
            progress,
        );
    }
    let device = destination.device(operation)?;
    if let Some((memory, layout)) =
        packed_temporary(timeline, operation, device, (destination, &host_span, &nest))
    {
        // Packed over the link, and unpacked on the device.
        let twin = ArrayRef::new(&memory, &layout);
        self::upload::<T, B>(timeline, operation, source, twin, Upload::Staged, progress)?;
        let submission = copy_temporary(timeline, operation, twin, destination)?;
        if upload == Upload::Blocking {
            timeline.wait_host(submission).result.map_err(|error| error.in_operation(operation))?;
        }
        return Ok(submission);
    }
    let sides = (destination, &host_span, &nest);
    let pipeline = StagingPipeline::new(device, timeline, operation, sides, Direction::HostToDevice);
    // SAFETY: the caller's view is valid for reads during this call.
    let submission = unsafe { pipeline.run(&nest, progress)? };
    note_written(timeline, destination);
    if upload == Upload::Blocking {
        pipeline.wait_for_all()?;
    }
    Ok(submission)
}

/// Copies memory of the library into an array of the caller, and returns when the elements are there. Bytes between
/// the elements of the array stay as they are.
pub(crate) fn download<T: Element, B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    source: ArrayRef<'_, B>,
    mut destination: ArrayViewMutD<'_, T>,
    progress: Option<ProgressFn<'_>>,
) -> Result<()> {
    let host_span =
        HostSpan::writing(operation, &mut destination).map_err(|error| timeline.context.place(error))?;
    // SAFETY: the caller's view is valid for writes during this call, and of no other memory.
    unsafe { copy_out::<T, B>(timeline, operation, source, &host_span, progress, false) }
}

/// As [`download`], into memory for a new array of a packed layout, whose elements have not been written.
///
/// # Safety
/// The memory is valid for writes of all elements, and not used by anything else.
pub(crate) unsafe fn download_new<T: Element, B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    source: ArrayRef<'_, B>,
    first: *mut u8,
    packed: Layout,
) -> Result<()> {
    let host_span = HostSpan::unwritten(first, packed);
    // SAFETY: the caller's promise.
    unsafe {
        match calling_thread::try_copy_out_inline(timeline, source, &host_span) {
            true => Ok(()),
            false => copy_out::<T, B>(timeline, operation, source, &host_span, None, true),
        }
    }
}

/// # Safety
/// The caller's memory is valid for writes during this call, and not used by anything else.
unsafe fn copy_out<T: Element, B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    source: ArrayRef<'_, B>,
    host_span: &HostSpan,
    progress: Option<ProgressFn<'_>>,
    is_new: bool,
) -> Result<()> {
    if progress.is_none() {
        // SAFETY: the caller's promise.
        let done = unsafe { single_block::download(timeline, operation, source, host_span) };
        if let Some(done) = done {
            return done;
        }
    }
    let nest = nest_of::<B>(timeline, operation, host_span, source, "destination", true)?;
    if nest.len == 0 || nest.item == 0 {
        return Ok(());
    }
    let writers = source.memory.writers(&source.layout.extent(), timeline);
    // The device orders the copy after them, which does not tell whether they succeeded.
    let check_producers = || -> Result<()> {
        for (writer, submission) in &writers {
            writer.wait_for_use(*submission).result.map_err(|error| error.in_operation(operation))?;
        }
        Ok(())
    };
    if timeline.context.raw.capabilities().pageable_direct {
        calling_thread::copy(
            timeline,
            operation,
            (host_span, &nest, source),
            Direction::DeviceToHost,
            progress,
        )?;
        return check_producers();
    }
    // No data of failed work may arrive, and no copy can begin before this check.
    check_producers()?;
    let device = source.device(operation)?;
    if let Some((memory, layout)) = packed_temporary(timeline, operation, device, (source, host_span, &nest))
    {
        // Packed on the device, so that it goes over the link as one run.
        let twin = ArrayRef::new(&memory, &layout);
        copy_temporary(timeline, operation, source, twin)?;
        // SAFETY: the caller's promise.
        return unsafe { copy_out::<T, B>(timeline, operation, twin, host_span, progress, is_new) };
    }
    let mut pipeline = StagingPipeline::new(
        device,
        timeline,
        operation,
        (source, host_span, &nest),
        Direction::DeviceToHost,
    );
    if is_new {
        pipeline.is_new();
    }
    // SAFETY: the caller's promise.
    unsafe { pipeline.run(&nest, progress)? };
    Ok(())
}

/// A packed block on the device with the elements in the caller's order of axes, where a transfer should go through one:
/// the device can walk any layout, either side would move in short runs for want of it, and there is memory for it.
fn packed_temporary<B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    device: &Device<B>,
    (array_ref, host_span, nest): (ArrayRef<'_, B>, &HostSpan, &CopyNest),
) -> Option<(AllocationRef<B>, Layout)> {
    let bytes = nest.len * nest.item;
    if nest.run >= TUNING.pack_below || bytes < TUNING.pack_from || !can_pack(timeline, array_ref.memory) {
        return None;
    }
    let layout = host_span.layout.like();
    let run = |a: &Layout, b: &Layout| CopyNest::new(a, b).map_or(0, |nest| nest.run);
    let gains_here = run(&host_span.layout, &layout) > nest.run;
    let gains_there = run(array_ref.layout, &array_ref.layout.like()) < TUNING.pack_below;
    if !gains_here && !gains_there {
        return None;
    }
    let align = device.raw().capabilities().allocation_alignment;
    let memory = Allocation::new(device, operation, bytes, align).ok()?;
    Some((memory, layout))
}

/// Copies between an array and its packed temporary, which the device can walk.
fn copy_temporary<B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    source: ArrayRef<'_, B>,
    destination: ArrayRef<'_, B>,
) -> Result<u64> {
    let nest = CopyNest::new(source.layout, destination.layout)
        .map_err(|error| timeline.context.error(operation, error))?;
    let accesses = [source.access(false), destination.access(true)];
    let admitted = timeline.admit(Work::Transfer, operation, &accesses)?;
    copy_nest(timeline, operation, admitted, (&nest, &RegionLoop::new(&nest)), source, destination)
}
