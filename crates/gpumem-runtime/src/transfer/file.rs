//! Transfers from and to files.
//!
//! They take the pipeline on every backend: its threads read into page-locked blocks or write out of them, and the device copies
//! other blocks meanwhile. So what a test runs on the host is what runs on a GPU.

use super::{
    ArrayRef, Direction, Producers, ProgressFn,
    copy::{copy, copy_and_wait},
    host_side::{FileSide, HostSide},
    pageable::{Upload, upload_recorded},
    pipeline::StagingPipeline,
    route::{BorrowedCopy, Route},
    torn::{note_torn, note_written},
};
use crate::device::Allocation;
use gpumem_core::{Backend, DriverDevice, Element, Result};
use gpumem_memory::track::Timeline;
use std::sync::Arc;

/// Copies elements of a file into memory of the library. They have been read when this returns. Returns the submission index of the
/// last copy, 0 for none.
pub(crate) fn upload_file<T: Element, B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    file: &FileSide<'_>,
    destination: ArrayRef<'_, B>,
    upload: Upload,
    progress: Option<ProgressFn<'_>>,
) -> Result<u64> {
    if timeline.is_recording() {
        let shape = file.layout.shape();
        return upload_recorded::<T, B>(
            timeline,
            operation,
            shape,
            destination,
            upload,
            |elements, packed| {
                elements.resize(packed.packed_bytes(), 0);
                file.read_packed(packed, elements).map_err(|error| timeline.context.error(operation, error))
            },
        );
    }
    let (array, direction, blocks) = (destination, Direction::HostToDevice, upload == Upload::Blocking);
    let copy_up = BorrowedCopy { timeline, operation, array, direction, blocks };
    let nest = copy_up.nest(&file.layout)?;
    let route = copy_up.route_of_file(&file.layout, &nest)?;
    if route == Route::Nothing {
        return Ok(0);
    }
    let device = destination.device(operation)?;
    if route == Route::Packed {
        let align = device.raw().capabilities().allocation_alignment;
        // Without memory for it, the elements are read in the order of the array.
        if let Ok(memory) = Allocation::new(device, operation, nest.len * nest.item, align) {
            let layout = file.layout.like();
            let packed = ArrayRef::new(&memory, &layout);
            upload_file::<T, B>(timeline, operation, file, packed, Upload::Staged, progress)?;
            return match upload {
                Upload::Blocking => copy_and_wait::<T, B>(timeline, operation, packed, destination),
                Upload::Staged => copy::<T, B>(timeline, operation, packed, destination),
            };
        }
    }
    let sides = (destination, HostSide::File(file), &nest);
    let pipeline = StagingPipeline::new(device, timeline, operation, sides, direction);
    // SAFETY: the pipeline borrows no memory of the caller's.
    let submission = unsafe { pipeline.run(&nest, progress)? };
    note_written(timeline, destination);
    if let Err(changed) = file.file.check_unchanged() {
        let error = timeline.context.error(operation, Box::new(changed));
        // Law 8: wait first, report after.
        let _ = pipeline.wait_for_all();
        note_torn(timeline, operation, destination, &error);
        return Err(error);
    }
    if blocks {
        pipeline.wait_for_all()?;
    }
    Ok(submission)
}

/// Copies an array of the library into a file, where elements are to lie packed, and returns when they have been written.
pub(crate) fn download_file<T: Element, B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    source: ArrayRef<'_, B>,
    file: &FileSide<'_>,
) -> Result<()> {
    let (array, direction) = (source, Direction::DeviceToHost);
    let copy_down = BorrowedCopy { timeline, operation, array, direction, blocks: true };
    let nest = copy_down.nest(&file.layout)?;
    let route = copy_down.route_of_file(&file.layout, &nest)?;
    if route == Route::Nothing {
        return Ok(());
    }
    let device = source.device(operation)?;
    if route == Route::Packed {
        let align = device.raw().capabilities().allocation_alignment;
        // Without memory for it, the elements are written in the order of the array.
        if let Ok(memory) = Allocation::new(device, operation, nest.len * nest.item, align) {
            let packed = ArrayRef::new(&memory, &file.layout);
            copy::<T, B>(timeline, operation, source, packed)?;
            return download_file::<T, B>(timeline, operation, packed, file);
        }
    }
    // No data of failed work may arrive, and no copy can begin before this check.
    Producers::of(source, timeline).check(operation)?;
    let sides = (source, HostSide::File(file), &nest);
    let pipeline = StagingPipeline::new(device, timeline, operation, sides, direction);
    // SAFETY: the pipeline borrows no memory of the caller's.
    unsafe { pipeline.run(&nest, None).map(drop) }
}
