//! The pipeline: several threads move one transfer between the caller's memory and staging blocks, while the copy engine
//! moves other blocks.
//!
//! All threads work on the same [chunk](staged_chunk), each on parts of it, so that a block is filled or drained at the speed
//! of all of them together: the first copy begins soon, the last one is drained quickly, and a few blocks are enough. Blocks
//! are short at both ends of a transfer for the same reason, and long between, because the engine pauses between copies.
//!
//! An upload of one run is a single chunk, with fewer slots than parts: its block is used as a ring. The submitter
//! sends the filled parts up to the first gap, as soon as the engine is nearly done with its copies.
//!
//! The calling thread is the [`submitter`]: it alone calls the driver. If several threads called it, they would sleep
//! on its locks up to some hundred microseconds, and its state of a stream would move from core to core. The other
//! threads only move parts, and go from chunk to chunk without a lock.
//!
//! They come from the device's [`WorkerPool`](crate::worker_pool::WorkerPool) and have left before the transfer
//! returns, so the caller's memory is never touched afterwards, also after a failure or a panic. A block that the
//! device may still be using is known to be in use by its log.

mod device_side;
mod open_chunk;
mod parked;
mod staged_chunk;
mod submitter;

use super::{
    ArrayRef, Direction, ProgressFn, TUNING,
    host_side::{FileSide, HostSide},
    prefault::Prefault,
    registration_boundaries::split_at_boundaries,
    staged::Staged,
    state::{TransferState, is_alone},
    store_policy::StorePolicy,
    torn::NoteTorn,
};
use crate::{
    Device,
    layout::CopyNest,
    transfer_options::{NonTemporalStores, TransferConfig, TransferOptions},
};
use device_side::Share;
pub(super) use device_side::{DeviceSide, Piece};
use gpumem_core::{Backend, CopyRegion, Result, process};
use gpumem_memory::{
    sync::event_count::spin_until,
    track::{Access, Timeline},
};
pub(super) use parked::{Parked, ParkedDownload};
use parking_lot::Mutex;
use smallvec::SmallVec;
use staged_chunk::StagedChunk;
use std::{
    cell::RefCell,
    iter,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use submitter::Submitter;

/// One transfer.
pub(super) struct StagingPipeline<'a, B: Backend> {
    state: TransferState<'a, B>,
    device_side: DeviceSide<'a, B>,
    side: HostSide<'a>,
    direction: Direction,
    config: TransferConfig,
    stores: StorePolicy,
    /// The destination, where its pages are to be made ready.
    prefault: Option<Prefault>,
    /// Most bytes of a block that are used, and those of its memory.
    longest: usize,
    memory_bytes: usize,
    /// Where a thread that comes begins.
    entry: Mutex<Option<Arc<StagedChunk<B>>>>,
    /// The last block has been opened.
    closed: AtomicBool,
    /// The last blocks are not drained: those that are being copied when there are no more pieces.
    parks: bool,
}

/// How a transfer of a nest goes through the pipeline.
pub(super) fn config<B: Backend>(
    device: &Device<B>,
    timeline: &Timeline<B>,
    operation: &'static str,
    nest: &CopyNest,
    direction: Direction,
    is_file: bool,
) -> TransferConfig {
    let (bytes, options) = (nest.len.saturating_mul(nest.item), device.0.staging.options());
    let is_alone = is_alone(timeline, operation);
    match direction {
        _ if is_file => {
            let is_ring = direction == Direction::HostToDevice && nest.axes.is_empty();
            options.file_config(bytes, is_ring, is_alone)
        }
        Direction::HostToDevice => options.upload_config(bytes, nest.axes.is_empty(), is_alone),
        Direction::DeviceToHost => options.config(bytes, is_alone),
    }
}

impl<'a, B: Backend> StagingPipeline<'a, B> {
    pub(super) fn new(
        device: &'a Device<B>,
        timeline: &'a Arc<Timeline<B>>,
        operation: &'static str,
        (array_ref, side, nest): (ArrayRef<'a, B>, HostSide<'a>, &CopyNest),
        direction: Direction,
    ) -> Self {
        let options = device.0.staging.options();
        let config = config(device, timeline, operation, nest, direction, side.is_file());
        // Several threads use blocks of one size for all transfers, so that the next one can reuse them.
        let shortest = if config.threads > 1 { options.block_bytes } else { 0 };
        let sides = (DeviceSide::One(array_ref), side, nest);
        Self::with((device, timeline, operation), sides, direction, (options, config, shortest))
    }

    /// A download in a scope, the last part of which stays in as many blocks as a stream may hold.
    pub(super) fn for_scope(
        device: &'a Device<B>,
        timeline: &'a Arc<Timeline<B>>,
        operation: &'static str,
        (array_ref, side, nest): (ArrayRef<'a, B>, HostSide<'a>, &CopyNest),
    ) -> Self {
        let (options, sides) = (device.0.staging.options(), (DeviceSide::One(array_ref), side, nest));
        let config = options.scoped_config(nest.len * nest.item, is_alone(timeline, operation));
        let pipeline = (device, timeline, operation);
        // Short downloads take short blocks: a stream holds many of them.
        let pipeline = Self::with(pipeline, sides, Direction::DeviceToHost, (options, config, 0));
        Self { parks: true, ..pipeline }
    }

    /// An upload of bytes of a file into several arrays, as one run.
    pub(super) fn for_many(
        device: &'a Device<B>,
        timeline: &'a Arc<Timeline<B>>,
        operation: &'static str,
        (pieces, file, run): (&'a [Piece<'a, B>], &'a FileSide<'a>, &CopyNest),
    ) -> Self {
        let options = device.0.staging.options();
        let config = config(device, timeline, operation, run, Direction::HostToDevice, true);
        let sides = (DeviceSide::Many(pieces), HostSide::File(file), run);
        Self::with((device, timeline, operation), sides, Direction::HostToDevice, (options, config, 0))
    }

    fn with(
        (device, timeline, operation): (&'a Device<B>, &'a Arc<Timeline<B>>, &'static str),
        (device_side, side, nest): (DeviceSide<'a, B>, HostSide<'a>, &CopyNest),
        direction: Direction,
        (options, config, shortest): (TransferOptions, TransferConfig, usize),
    ) -> Self {
        let bytes = nest.len.saturating_mul(nest.item);
        // A ring has a whole number of parts.
        let longest = match config.is_ring {
            true => bytes.min(config.block * config.blocks).next_multiple_of(config.part(config.block)),
            false => bytes.min(config.block.max(nest.item)),
        };
        // Data gathered out of short runs is in a cache already, and stores around the other caches always pay: 29
        // instead of 25 GB/s for every second column.
        let gathers =
            direction == Direction::HostToDevice && nest.run < TUNING.gathered_run && config.threads > 1;
        let stores = match options.non_temporal_stores {
            NonTemporalStores::Auto if gathers => StorePolicy::NonTemporal,
            chosen => StorePolicy::of(chosen, direction, config.threads, bytes),
        };
        Self {
            state: TransferState::new(device, timeline, operation, config.threads, bytes),
            device_side,
            side,
            direction,
            config,
            stores,
            prefault: None,
            longest,
            memory_bytes: longest.max(shortest),
            entry: Mutex::new(None),
            closed: AtomicBool::new(false),
            parks: false,
        }
    }

    /// The library has made the destination, which is packed. Its pages have not been touched, unless the allocator has
    /// reused freed memory.
    pub(super) fn is_new(&mut self) {
        let bytes = self.state.total as usize;
        if let HostSide::Memory(host_span) = self.side
            && bytes >= TUNING.prefault_from
            && !process::has_touched_pages(host_span.base, bytes)
        {
            self.prefault = Some(Prefault::new(host_span, bytes));
        }
    }

    /// Moves everything, and returns the last submission index. In an upload the elements have left the caller's
    /// memory then; in a download they have landed in it.
    ///
    /// # Safety
    /// The caller's memory is valid for the pair during this call; in a download, for writes, and no other code uses
    /// it.
    /// Returns the first failure. Nothing of the transfer is running any more then, and no memory of the caller's is
    /// used.
    pub(super) unsafe fn run(&self, nest: &CopyNest, progress: Option<ProgressFn<'_>>) -> Result<u64> {
        let submit = |on_progress: &mut dyn FnMut()| Submitter::new(self, nest).run(on_progress);
        let destination = match (self.direction, &self.device_side) {
            (Direction::HostToDevice, DeviceSide::One(array_ref)) => Some(*array_ref),
            // Several arrays are new, and are dropped after a failure.
            _ => None,
        };
        let failure = || self.state.failure().filter(|_| self.state.has_begun());
        let TransferState { timeline, operation, .. } = self.state;
        let _torn = NoteTorn { timeline, operation, destination, failure };
        self.state.run(&|| self.help(), submit, progress)
    }

    /// Waits for the copies of an upload.
    /// Returns the failure of one of them, or of work in between.
    pub(super) fn wait_for_all(&self) -> Result<()> {
        self.state.wait_for_all()
    }

    /// Moves everything but the contents of the last blocks, and returns these blocks: all of them if there are enough,
    /// and then without a wait.
    ///
    /// # Safety
    /// As for [`run`](Self::run).
    pub(super) unsafe fn run_and_park(&self, nest: &CopyNest) -> Result<Parked<B>> {
        let submitter = RefCell::new(Submitter::new(self, nest));
        let fits = submitter.borrow_mut().start_all()?;
        if !fits {
            let submit = |on_progress: &mut dyn FnMut()| submitter.borrow_mut().run(on_progress);
            self.state.run(&|| self.help(), submit, None)?;
        }
        Ok(submitter.into_inner().park())
    }

    /// The loop of a helper: until no parts are left, or something failed.
    fn help(&self) -> Result<()> {
        let mut at = None::<Arc<StagedChunk<B>>>;
        loop {
            let next = || match &at {
                Some(chunk) => chunk.next().cloned(),
                None => self.entry.lock().clone(),
            };
            let Some(chunk) = self.wait_for(next) else { return Ok(()) };
            while let Some(part) = chunk.marks.take() {
                if !self.wait_until_open(&chunk, part) {
                    return Ok(());
                }
                self.move_part(&chunk, part)?;
            }
            at = Some(chunk);
        }
    }

    /// Returns the next part, once it is open; `None` if there is none any more.
    fn wait_for(&self, next: impl Fn() -> Option<Arc<StagedChunk<B>>>) -> Option<Arc<StagedChunk<B>>> {
        let is_over = || self.state.has_ended() || self.closed.load(Ordering::Acquire);
        let mut found = None;
        let mut holds = || {
            // The last one was there before the end was told.
            let is_over = is_over();
            found = next();
            found.is_some() || is_over
        };
        if !spin_until(TUNING.spins, |_| {
            // Prefaults pages while there is no other work. SAFETY: `run`'s caller keeps the memory valid for writes.
            holds() || self.prefault.as_ref().is_some_and(|prefault| unsafe { prefault.step() }) && holds()
        }) {
            self.state.event_count.wait_until(holds);
        }
        found.filter(|_| !self.state.has_ended())
    }

    /// Waits until a part may be moved. `false`: the transfer has ended before.
    fn wait_until_open(&self, chunk: &StagedChunk<B>, part: usize) -> bool {
        let is_open = || chunk.marks.is_open(part) || self.state.has_ended();
        if !is_open() && !spin_until(TUNING.spins, |_| is_open()) {
            self.state.event_count.wait_until(is_open);
        }
        !self.state.has_ended()
    }

    /// Moves a part, which is open and taken by this thread, between the caller's memory and its block.
    fn move_part(&self, chunk: &StagedChunk<B>, part: usize) -> Result<()> {
        if let Some(prefault) = &self.prefault {
            // SAFETY: `run`'s caller keeps the memory valid for writes. So far ahead that no thread writes a page that another
            // one is making ready.
            unsafe { prefault.up_to(chunk.end_of(part) + self.config.threads * Prefault::STEP) };
        }
        let operation = self.state.operation;
        // SAFETY: `run`'s caller keeps the memory valid, and parts are disjoint. This thread alone has taken the part. The
        // submitter shows a chunk to the host before it opens it.
        let (bytes, is_due) =
            unsafe { chunk.move_part(operation, part, self.side, self.direction, self.stores)? };
        if self.direction == Direction::DeviceToHost {
            self.state.has_done(bytes);
        }
        if is_due {
            self.state.event_count.notify_all();
        }
        Ok(())
    }

    /// Whether the calling thread moves parts too. Those of files only where no other thread does: asleep in the system's call it
    /// could not submit the copies of the others.
    fn caller_also_copies(&self) -> bool {
        match self.side {
            HostSide::Memory(_) => self.state.caller_also_copies(),
            HostSide::File(_) => !self.state.has_helpers(),
        }
    }

    /// Whether the calling thread moves a part before it sleeps.
    fn caller_may_copy(&self) -> bool {
        matches!(self.side, HostSide::Memory(_)) || self.caller_also_copies()
    }

    /// Bytes of the next block, of so many that are left. The last blocks are small, so that little is left to do when the
    /// threads are done in an upload, and the engine in a download. In an upload the first ones are too, and grow slowly.
    fn block_bytes(&self, left: usize) -> usize {
        let TransferConfig { block, shortest, .. } = self.config;
        if self.parks {
            return block;
        }
        let most = match self.direction {
            Direction::HostToDevice => ((self.state.total as usize - left) / TUNING.ramp).max(2 * shortest),
            Direction::DeviceToHost => block,
        };
        most.min(left / 2).next_multiple_of(4 << 10).clamp(shortest, block)
    }

    /// Enqueues the copy between a block and the device.
    fn enqueue(&self, chunk: &StagedChunk<B>) -> Result<u64> {
        let TransferState { timeline, operation, .. } = self.state;
        // Parked blocks are waited for as a whole.
        let is_one_of_many = match self.parks {
            true => self.state.total > (self.config.block * self.config.blocks) as u64,
            false => self.state.total > self.config.shortest as u64,
        };
        let DeviceSide::One(array_ref) = self.device_side else {
            return self.enqueue_run(chunk, 0..chunk.bytes(), 0, is_one_of_many);
        };
        let staged = Staged::new(&chunk.staging, operation, &chunk.piece)?;
        let submission = staged.copy(timeline, operation, &chunk.piece, array_ref, self.direction)?;
        self.state.has_enqueued(submission, is_one_of_many);
        Ok(submission)
    }

    /// Enqueues the copy of these parts of a ring, which lie side by side in the block.
    fn enqueue_parts(&self, chunk: &StagedChunk<B>, parts: Range<usize>) -> Result<u64> {
        let start = parts.start % chunk.marks.slots() * chunk.part_bytes();
        self.enqueue_run(chunk, chunk.run_of(parts), start, chunk.marks.parts() > 1)
    }

    /// Enqueues the copies of these bytes of a chunk's run, which begin `start` bytes into the block. Returns the submission index of
    /// the last one, 0 for none.
    fn enqueue_run(
        &self,
        chunk: &StagedChunk<B>,
        run: Range<usize>,
        start: usize,
        has_event: bool,
    ) -> Result<u64> {
        let TransferState { timeline, operation, .. } = self.state;
        let block = chunk.staging.memory();
        let (host, pinned) = block.endpoint();
        let first = chunk.piece.dst + run.start;
        let shares: SmallVec<[_; 1]> = self.device_side.shares(first..first + run.len()).collect();
        let mut last = 0;
        for shares in shares.chunks(TUNING.arrays_of_a_copy) {
            // The whole of both: a repeated use is cheap to note, and no other work uses the block meanwhile.
            let writes = shares.iter().map(|share| Access::write(share.memory, share.whole.clone()));
            let accesses: SmallVec<[_; 2]> =
                iter::once(Access::read(block, 0..block.len())).chain(writes).collect();
            let submitted = timeline.submit(operation, &accesses, |sink| {
                shares.iter().try_for_each(|Share { memory, at, run, .. }| {
                    let (device, space) = memory.endpoint();
                    let from = (host + (start + run.start - first) as u64, pinned);
                    let region = CopyRegion::linear(from, (device + *at as u64, space), run.len());
                    split_at_boundaries(&region, memory.boundaries(), &mut |region| {
                        // SAFETY: the block and the device's memory are alive and ordered by their access logs; both have these
                        // bytes, and threads fill other parts of the block.
                        unsafe { sink.copy(region) }
                    })
                })
            })?;
            last = submitted.submission;
            self.state.has_enqueued(last, has_event);
        }
        Ok(last)
    }
}
