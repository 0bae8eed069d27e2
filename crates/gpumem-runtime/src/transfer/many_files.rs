//! Many arrays out of files: parts that lie near each other are read in one pass, so that the disk and the copy engine go on from one
//! array to the next.

use super::{
    ArrayRef, Direction, Progress, ProgressFn, TUNING,
    file::upload_file,
    host_side::FileSide,
    pageable::Upload,
    pipeline::{Piece, StagingPipeline},
    route::BorrowedCopy,
    torn::note_written,
};
use crate::{
    DataFile, Order,
    layout::{CopyNest, Layout},
};
use gpumem_core::{Backend, Element, Result};
use gpumem_memory::track::Timeline;
use std::sync::Arc;

/// Bytes of a file that fill an array, both without gaps.
struct Part<'a, B: Backend> {
    file: &'a DataFile,
    start: u64,
    bytes: usize,
    array: ArrayRef<'a, B>,
}

/// Parts that are read as one run, in the order of their bytes.
struct Pass<'a, B: Backend> {
    file: &'a DataFile,
    start: u64,
    pieces: Vec<Piece<'a, B>>,
    end: usize,
}

impl<'a, B: Backend> Pass<'a, B> {
    fn new(first: &Part<'a, B>) -> Self {
        let mut pass = Self { file: first.file, start: first.start, pieces: Vec::new(), end: 0 };
        pass.join(first);
        pass
    }

    /// Adds a part that begins behind the end, and near it. Whether it does.
    fn join(&mut self, part: &Part<'a, B>) -> bool {
        let from = part.start.checked_sub(self.start).and_then(|from| usize::try_from(from).ok());
        let Some(from) = from.filter(|from| part.file.id() == self.file.id() && *from >= self.end) else {
            return false;
        };
        let Some(end) = from.checked_add(part.bytes).filter(|_| from - self.end <= TUNING.file_gap) else {
            return false;
        };
        self.pieces.push(Piece { run: from..end, memory: part.array.memory });
        self.end = end;
        true
    }
}

/// The progress of one copy after the other, as that of one.
struct Copies<'a> {
    progress: Option<ProgressFn<'a>>,
    done: u64,
    total: u64,
}

impl Copies<'_> {
    /// One copy, of so many bytes.
    fn next(&mut self, bytes: u64, copy: impl FnOnce(Option<ProgressFn<'_>>) -> Result<u64>) -> Result<()> {
        let Self { done, total, .. } = *self;
        match &mut self.progress {
            Some(progress) => {
                copy(Some(&mut |copy: Progress| progress(Progress { done: done + copy.done, total })))?
            }
            None => copy(None)?,
        };
        self.done += bytes;
        Ok(())
    }
}

/// Copies parts of files into new arrays in stream order. They have been read when this returns. The progress is that of all bytes that
/// are read, those between the parts of a pass among them; none is told of uploads of a graph.
pub(crate) fn upload_files<T: Element, B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    copies: &[(FileSide<'_>, ArrayRef<'_, B>)],
    progress: Option<ProgressFn<'_>>,
) -> Result<()> {
    let mut parts = Vec::with_capacity(copies.len());
    let mut others = Vec::new();
    for (side, array) in copies {
        let (array, direction) = (*array, Direction::HostToDevice);
        let copy = BorrowedCopy { timeline, operation, array, direction, blocks: false };
        let is_recording = timeline.is_recording();
        let nest = if is_recording { None } else { Some(copy.nest(&side.layout)?) };
        match nest {
            Some(nest) if nest.len == 0 || nest.item == 0 => {}
            Some(nest) if nest.axes.is_empty() => {
                let start = side.start.saturating_add(nest.src as u64);
                parts.push(Part { file: side.file, start, bytes: nest.run, array });
            }
            // Of several runs, or uploads of a graph: one by one.
            _ => others.push((side, array)),
        }
    }
    parts.sort_by_key(|part| (part.file.id(), part.start));
    let mut passes: Vec<Pass<'_, B>> = Vec::new();
    for part in &parts {
        if !passes.last_mut().is_some_and(|pass| pass.join(part)) {
            passes.push(Pass::new(part));
        }
    }
    let bytes_of = |side: &FileSide<'_>| side.layout.packed_bytes() as u64;
    let total =
        others.iter().map(|(side, _)| bytes_of(side)).chain(passes.iter().map(|pass| pass.end as u64));
    let mut copies = Copies { progress, done: 0, total: total.sum() };
    for (side, array) in others {
        copies.next(bytes_of(side), |progress| {
            upload_file::<T, B>(timeline, operation, side, array, Upload::Staged, progress)
        })?;
    }
    for pass in &passes {
        copies.next(pass.end as u64, |progress| read(timeline, operation, pass, progress))?;
    }
    for part in &parts {
        note_written(timeline, part.array);
    }
    Ok(())
}

fn read<B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    Pass { file, start, pieces, end }: &Pass<'_, B>,
    progress: Option<ProgressFn<'_>>,
) -> Result<u64> {
    let fail = |error| timeline.context.error(operation, error);
    let layout = Layout::packed(&[*end], 1, Order::C).map_err(fail)?;
    let nest = CopyNest::new(&layout, &layout).map_err(fail)?;
    let Some(Piece { memory, .. }) = pieces.first() else { return Ok(0) };
    let side = FileSide { file, into: None, start: *start, layout };
    let device = ArrayRef::new(memory, &side.layout).device(operation)?;
    let pipeline = StagingPipeline::for_many(device, timeline, operation, (pieces, &side, &nest));
    // SAFETY: the pipeline borrows no memory of the caller's.
    let submission = unsafe { pipeline.run(&nest, progress)? };
    match file.check_unchanged() {
        Ok(()) => Ok(submission),
        Err(changed) => {
            // Law 8: wait first, report after.
            let _ = pipeline.wait_for_all();
            Err(timeline.context.error(operation, Box::new(changed)))
        }
    }
}
