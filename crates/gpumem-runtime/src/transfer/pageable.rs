//! Transfers from and to memory of the caller (law 3).
//!
//! The caller's memory is touched only by threads of the library that are inside the caller's call or scope. Where a backend
//! reaches it at full speed, the [calling thread](super::calling_thread) copies it and waits. Everywhere else the elements go
//! through page-locked blocks, and the device only sees those: [one block](super::single_block), or the
//! [pipeline](super::pipeline).

use super::{
    ArrayRef, Direction, Producers, ProgressFn, calling_thread,
    copy::copy,
    device_copy::copy_nest,
    host_side::HostSide,
    pipeline::StagingPipeline,
    region_loop::RegionLoop,
    route::{ArrayCopy, BorrowedCopy, BorrowedRun, Route},
    sides::{HostSpan, waits},
    single_block,
    torn::note_written,
};
use crate::{
    device::Allocation,
    layout::{CopyNest, Layout, Order},
};
use gpumem_core::{Backend, DriverDevice, Element, MemoryKind, Result};
use gpumem_memory::track::{Timeline, Work};
use ndarray::{ArrayView, ArrayViewMut, Dimension};
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
pub fn upload<T: Element, D: Dimension, B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    source: &ArrayView<'_, T, D>,
    destination: ArrayRef<'_, B>,
    upload: Upload,
    progress: Option<ProgressFn<'_>>,
) -> Result<u64> {
    if timeline.is_recording() {
        let gather = |elements: &mut Vec<u8>, _: &Layout| {
            match source.as_slice() {
                Some(packed) => elements.extend_from_slice(bytemuck::cast_slice(packed)),
                None => source.iter().for_each(|one| elements.extend_from_slice(bytemuck::bytes_of(one))),
            }
            Ok(())
        };
        return upload_recorded::<T, B>(timeline, operation, source.shape(), destination, upload, gather);
    }
    let (direction, blocks) = (Direction::HostToDevice, upload == Upload::Blocking);
    let copy = BorrowedCopy { timeline, operation, array: destination, direction, blocks };
    let run = source.as_slice().and_then(|elements| {
        let first = elements.as_ptr().cast::<u8>().cast_mut();
        copy.run_of_packed(source.shape(), first, size_of_val(elements))
    });
    // SAFETY: the caller's view is valid for reads during this call.
    unsafe { copy.execute(run, || HostSpan::reading(operation, source), progress, false) }
}

/// [`upload`] in the recording of a graph, which keeps the elements: `gather` gets the room for them, and the layout that they are to
/// have there.
#[cold]
pub(super) fn upload_recorded<T: Element, B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    shape: &[usize],
    destination: ArrayRef<'_, B>,
    upload: Upload,
    gather: impl FnOnce(&mut Vec<u8>, &Layout) -> Result<()>,
) -> Result<u64> {
    if upload == Upload::Blocking {
        return Err(waits(&timeline.context, operation));
    }
    let access = [destination.access(true)];
    let _admitted = timeline.admit(Work::Transfer, operation, &access)?;
    let device = destination.device(operation)?;
    // Without one there are no elements: the recording admits no other memory.
    let Some(recording) = device.recording() else { return Ok(0) };
    let layout = Layout::packed(shape, size_of::<T>(), Order::C)
        .map_err(|error| timeline.context.error(operation, error))?;
    let mut room = recording.room(operation, layout.packed_bytes())?;
    gather(&mut room.elements, &layout)?;
    let size = (room.elements.len(), align_of::<T>());
    let memory = Allocation::placeholder(device, recording, operation, size, MemoryKind::Device)?;
    room.keep(memory.id());
    copy::<T, B>(timeline, operation, ArrayRef::new(&memory, &layout), destination)
}

/// Copies memory of the library into an array of the caller, and returns when the elements are there. Bytes between
/// the elements of the array stay as they are.
pub(crate) fn download<T: Element, D: Dimension, B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    source: ArrayRef<'_, B>,
    destination: &mut ArrayViewMut<'_, T, D>,
    progress: Option<ProgressFn<'_>>,
) -> Result<()> {
    let direction = Direction::DeviceToHost;
    let copy = BorrowedCopy { timeline, operation, array: source, direction, blocks: true };
    let bytes = destination.len().saturating_mul(size_of::<T>());
    let first = destination.as_slice_mut().map(|elements| elements.as_mut_ptr().cast::<u8>());
    let run = first.and_then(|first| copy.run_of_packed(destination.shape(), first, bytes));
    // SAFETY: the caller's view is valid for writes during this call, and of no other memory.
    unsafe { copy.execute(run, || HostSpan::writing(operation, destination), progress, false).map(drop) }
}

/// As [`download`], into memory for a new array of a packed layout, whose elements have not been written.
///
/// # Safety
/// The memory is valid for writes of all elements, and not used by anything else.
pub(crate) unsafe fn download_new<B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    source: ArrayRef<'_, B>,
    first: *mut u8,
    packed: Layout,
) -> Result<()> {
    let (host, direction) = (HostSpan::unwritten(first, packed), Direction::DeviceToHost);
    let copy = BorrowedCopy { timeline, operation, array: source, direction, blocks: true };
    // SAFETY: the caller's promise.
    unsafe { copy.execute(copy.run_of(&host), || Ok(host), None, true).map(drop) }
}

impl<B: Backend> BorrowedCopy<'_, B> {
    /// Does the copy, on the way that `route.rs` chooses. Returns the submission index of the last copy of an upload, 0 for none.
    /// `run` is all of it, if it is one; if not, `host` is the caller's memory. With `is_new` the library has just made the
    /// destination, and nothing has been written there.
    ///
    /// # Safety
    /// The caller's memory is valid during this call; for a download, for writes, and no other code uses it.
    unsafe fn execute(
        &self,
        run: Option<BorrowedRun>,
        host: impl FnOnce() -> Result<HostSpan>,
        progress: Option<ProgressFn<'_>>,
        is_new: bool,
    ) -> Result<u64> {
        // What reports its progress goes in pieces.
        if progress.is_none()
            && let Some(run) = run
        {
            match self.route_of_run(run.extent.len()) {
                // SAFETY: the caller's promise.
                Some(Route::SingleBlock) => return unsafe { single_block::copy(self, run) },
                // SAFETY: the caller's promise; both sides have the bytes of the run.
                Some(Route::CallingThread) if unsafe { calling_thread::try_run(self, run) } => return Ok(0),
                _ => {}
            }
        }
        let host = &host().map_err(|error| self.timeline.context.place(error))?;
        let nest = self.nest(&host.layout)?;
        // SAFETY: the caller's promise.
        unsafe {
            match self.route_of_nest(&host.layout, &nest)? {
                Route::Nothing => Ok(0),
                Route::CallingThread => calling_thread::copy(self, host, &nest, progress),
                Route::Packed => self.through_packed(host, &nest, progress, is_new),
                _ => self.through_pipeline(host, &nest, progress, is_new),
            }
        }
    }

    /// # Safety
    /// As for [`execute`](Self::execute).
    unsafe fn through_pipeline(
        &self,
        host: &HostSpan,
        nest: &CopyNest,
        progress: Option<ProgressFn<'_>>,
        is_new: bool,
    ) -> Result<u64> {
        let Self { timeline, operation, array, direction, blocks } = *self;
        if direction == Direction::DeviceToHost {
            // No data of failed work may arrive, and no copy can begin before this check.
            Producers::of(array, timeline).check(operation)?;
        }
        let device = array.device(operation)?;
        let sides = (array, HostSide::Memory(host), nest);
        let mut pipeline = StagingPipeline::new(device, timeline, operation, sides, direction);
        if is_new {
            pipeline.is_new();
        }
        // SAFETY: the caller's promise.
        let submission = unsafe { pipeline.run(nest, progress)? };
        if direction == Direction::HostToDevice {
            note_written(timeline, array);
            if blocks {
                pipeline.wait_for_all()?;
            }
        }
        Ok(submission)
    }

    /// Packed over the link, and packed or unpacked on the device. If there is no memory for that, through the pipeline.
    ///
    /// # Safety
    /// As for [`execute`](Self::execute).
    unsafe fn through_packed(
        &self,
        host: &HostSpan,
        nest: &CopyNest,
        progress: Option<ProgressFn<'_>>,
        is_new: bool,
    ) -> Result<u64> {
        let Self { timeline, operation, array, direction, blocks } = *self;
        let device = array.device(operation)?;
        let align = device.raw().capabilities().allocation_alignment;
        let Ok(memory) = Allocation::new(device, operation, nest.len * nest.item, align) else {
            // SAFETY: the caller's promise.
            return unsafe { self.through_pipeline(host, nest, progress, is_new) };
        };
        let layout = host.layout.like();
        let packed = ArrayRef::new(&memory, &layout);
        if direction == Direction::DeviceToHost {
            Producers::of(array, timeline).check(operation)?;
            copy_packed(timeline, operation, array, packed)?;
        }
        // The elements have left the caller's memory, or have arrived there.
        let blocks_on_link = direction == Direction::DeviceToHost;
        let link = BorrowedCopy { timeline, operation, array: packed, direction, blocks: blocks_on_link };
        // SAFETY: the caller's promise.
        let sent = unsafe { link.execute(link.run_of(host), || Ok(host.clone()), progress, is_new)? };
        if direction == Direction::DeviceToHost {
            return Ok(sent);
        }
        let submission = copy_packed(timeline, operation, packed, array)?;
        if blocks {
            timeline.wait_host(submission).result.map_err(|error| error.in_operation(operation))?;
        }
        Ok(submission)
    }
}

/// Copies between an array and the block with its elements packed, which the device can walk.
fn copy_packed<B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    source: ArrayRef<'_, B>,
    destination: ArrayRef<'_, B>,
) -> Result<u64> {
    let nest = CopyNest::new(source.layout, destination.layout)
        .map_err(|error| timeline.context.error(operation, error))?;
    let accesses = [source.access(false), destination.access(true)];
    let admitted = timeline.admit(Work::Transfer, operation, &accesses)?;
    let copy = ArrayCopy { timeline, operation, source, destination, blocks: false };
    copy_nest(&copy, admitted, (&nest, &RegionLoop::new(&nest)))
}
