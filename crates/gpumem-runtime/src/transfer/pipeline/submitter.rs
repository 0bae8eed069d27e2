//! What the calling thread of a pipeline does.

use super::{Parked, StagingPipeline, staged_chunk::StagedChunk};
use crate::{
    layout::CopyNest,
    transfer::{Staging, TUNING, chunks::Chunks, event_count::spin_until, staged::Direction},
};
use gpumem_core::{Backend, Result};
use std::{
    collections::VecDeque,
    sync::{Arc, atomic::Ordering},
};

/// Cuts the transfer into pieces, opens blocks, calls the driver: all that is done by one thread. It needs no lock therefore, and
/// the driver's never has two who wait for it.
pub(super) struct PipelineSubmitter<'r, 'a, B: Backend> {
    pipeline: &'r StagingPipeline<'a, B>,
    chunks: Chunks,
    /// Blocks that are neither filled nor drained, with the submission index of the copy that uses them, the
    /// oldest first.
    idle: VecDeque<(Arc<Staging<B>>, u64)>,
    /// Blocks there are, and how many there may be.
    made: usize,
    most: usize,
    /// In a download: what the engine is copying, with the submission indexes.
    coming: VecDeque<(Arc<StagedChunk<B>>, u64)>,
    /// What lies open to all threads, or has just been moved.
    open: VecDeque<Arc<StagedChunk<B>>>,
    last: Option<Arc<StagedChunk<B>>>,
}

impl<'r, 'a, B: Backend> PipelineSubmitter<'r, 'a, B> {
    pub(super) fn new(pipeline: &'r StagingPipeline<'a, B>, nest: &CopyNest) -> Self {
        Self {
            pipeline,
            chunks: Chunks::new(nest),
            idle: VecDeque::new(),
            made: 0,
            most: pipeline.config.blocks,
            coming: VecDeque::new(),
            open: VecDeque::new(),
            last: None,
        }
    }

    /// Until everything has been moved, or something failed. Calls `on_progress` whenever more is done.
    pub(super) fn run(&mut self, on_progress: &mut dyn FnMut()) -> Result<()> {
        while !self.pipeline.state.has_ended() {
            let untaken: usize = self.open.iter().map(|chunk| chunk.untaken()).sum();
            // Threads without work come first: they are what the engine will wait for. In a download it is the engine itself.
            let is_short_of_work = untaken == 0 || self.pipeline.direction == Direction::DeviceToHost;
            if is_short_of_work && self.start()? || self.receive()? {
                continue;
            }
            if self.finish()? {
                on_progress();
                continue;
            }
            let is_to_work = self.pipeline.state.caller_also_copies();
            let ahead = if is_to_work { TUNING.few_parts_ahead } else { TUNING.parts_ahead };
            if untaken < ahead * self.pipeline.config.threads && self.start()? {
                continue;
            }
            if is_to_work && self.work()? {
                on_progress();
                continue;
            }
            let is_over = self.chunks.is_empty() && (self.pipeline.parks || self.coming.is_empty());
            if is_over && self.open.is_empty() {
                break;
            }
            self.wait()?;
        }
        Ok(())
    }

    /// Begins with as many pieces as there are blocks, and tells whether these were all.
    pub(super) fn start_all(&mut self) -> Result<bool> {
        while self.start()? {}
        Ok(self.chunks.is_empty())
    }

    /// The blocks that are being copied, and the submission index of the last copy.
    pub(super) fn park(self) -> Parked<B> {
        let last = self.coming.back().map_or(0, |(_, submission)| *submission);
        (self.coming.into_iter().map(|(chunk, _)| chunk).collect(), last)
    }

    /// Whether the blocks that are being copied stay as they are.
    fn leaves_the_rest(&self) -> bool {
        self.pipeline.parks && self.chunks.is_empty()
    }

    /// Begins with the next piece: opens a block for it, or enqueues the copy into one. `false`: there is no piece, or no free
    /// block.
    fn start(&mut self) -> Result<bool> {
        let pipeline = self.pipeline;
        if self.chunks.is_empty() {
            return Ok(false);
        }
        let Some(staging) = self.block()? else { return Ok(false) };
        let Some(piece) = self.chunks.next(pipeline.block_bytes(self.chunks.left())) else {
            return Ok(false);
        };
        let part_bytes = pipeline.config.part(piece.len * piece.item);
        let chunk = StagedChunk::new(pipeline.state.operation, staging, piece, part_bytes)?;
        match pipeline.direction {
            Direction::HostToDevice => self.publish(chunk),
            Direction::DeviceToHost => {
                let submission = pipeline.enqueue(&chunk)?;
                self.coming.push_back((chunk, submission));
            }
        }
        if self.leaves_the_rest() {
            // Nothing is opened after what is open now.
            pipeline.closed.store(true, Ordering::Release);
            pipeline.state.event_count.notify_all();
        }
        Ok(true)
    }

    /// A block that nothing uses.
    fn block(&mut self) -> Result<Option<Arc<Staging<B>>>> {
        let pipeline = self.pipeline;
        // While there may be more blocks it is not worth asking.
        let ask = self.made == self.most;
        if self.idle.front().is_some_and(|(_, submission)| pipeline.state.is_complete(*submission, ask)) {
            return Ok(self.idle.pop_front().map(|(staging, _)| staging));
        }
        if self.made == self.most {
            return Ok(None);
        }
        // What is parked counts with the whole length of its blocks.
        let take = if pipeline.parks { Staging::take_short } else { Staging::take };
        match take(pipeline.state.device, pipeline.state.operation, pipeline.memory_bytes) {
            Ok(staging) => {
                self.made += 1;
                Ok(Some(Arc::new(staging)))
            }
            // One is enough.
            Err(error) if error.is_out_of_memory() && self.made > 0 => {
                self.most = self.made;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Gives a block to all threads.
    fn publish(&mut self, chunk: Arc<StagedChunk<B>>) {
        match &self.last {
            Some(last) => last.set_next(&chunk),
            None => *self.pipeline.entry.lock() = Some(chunk.clone()),
        }
        self.last = Some(chunk.clone());
        self.open.push_back(chunk);
        if self.chunks.is_empty() && self.coming.is_empty() {
            self.pipeline.closed.store(true, Ordering::Release);
        }
        self.pipeline.state.event_count.notify_all();
    }

    /// Opens a block whose copy has come down. `false`: there is none.
    fn receive(&mut self) -> Result<bool> {
        let Some((_, submission)) = self.coming.front().filter(|_| !self.leaves_the_rest()) else {
            return Ok(false);
        };
        if !self.pipeline.state.is_complete(*submission, true) {
            return Ok(false);
        }
        self.receive_first()
    }

    /// Waits for the first copy on its way, and opens its block.
    fn receive_first(&mut self) -> Result<bool> {
        let Some((chunk, submission)) = self.coming.pop_front() else { return Ok(false) };
        self.pipeline.state.wait_host(&chunk.staging, submission)?;
        // A failed copy is not copied out, even if an earlier call has reported it.
        let failed = self.pipeline.state.timeline.fault_since(submission.saturating_sub(1));
        failed.map_err(|error| error.in_operation(self.pipeline.state.operation))?;
        self.publish(chunk);
        Ok(true)
    }

    /// Sends a block that has been filled, or takes back one that has been drained. `false`: there is none.
    fn finish(&mut self) -> Result<bool> {
        let pipeline = self.pipeline;
        let Some(at) = self.open.iter().position(|chunk| chunk.is_done()) else { return Ok(false) };
        let Some(chunk) = self.open.remove(at) else { return Ok(false) };
        let submission = match pipeline.direction {
            Direction::HostToDevice => pipeline.enqueue(&chunk)?,
            Direction::DeviceToHost => 0,
        };
        if pipeline.direction == Direction::HostToDevice {
            pipeline.state.has_done(chunk.bytes());
        }
        self.idle.push_back((chunk.staging.clone(), submission));
        if at == 0
            && let Some(first) = self.open.front().or(self.last.as_ref())
        {
            // A thread that comes now need not walk the finished chunks.
            *pipeline.entry.lock() = Some(first.clone());
        }
        Ok(true)
    }

    /// Moves a part, if there is an untaken one.
    fn work(&self) -> Result<bool> {
        let Some((chunk, part)) = self.open.iter().find_map(|chunk| Some((chunk, chunk.take()?))) else {
            return Ok(false);
        };
        self.pipeline.move_part(chunk, part)?;
        Ok(true)
    }

    /// Waits until there is something to do again.
    fn wait(&mut self) -> Result<()> {
        let pipeline = self.pipeline;
        let (open, idle, coming) = (&self.open, &self.idle, &self.coming);
        let is_done = || pipeline.state.has_ended() || open.iter().any(|chunk| chunk.is_done());
        let copy = match pipeline.direction {
            Direction::HostToDevice if self.chunks.is_empty() => None,
            Direction::HostToDevice => idle.front().map(|(_, submission)| *submission),
            Direction::DeviceToHost if self.leaves_the_rest() => None,
            Direction::DeviceToHost => coming.front().map(|(_, submission)| *submission),
        };
        let something = |looks: u32| {
            let ask = looks.is_multiple_of(TUNING.looks_per_query);
            is_done() || ask && copy.is_some_and(|submission| pipeline.state.is_complete(submission, true))
        };
        // Only the copy engine is left to wait for, and the driver waits best for that.
        if !open.is_empty() && spin_until(something) {
            return Ok(());
        }
        if open.iter().any(|chunk| chunk.untaken() > 0) {
            // The others are held up.
            return self.work().map(drop);
        }
        match (pipeline.direction, copy) {
            (Direction::DeviceToHost, Some(_)) => self.receive_first().map(drop),
            (Direction::HostToDevice, Some(submission)) if open.is_empty() => match self.idle.front() {
                Some((staging, _)) => pipeline.state.wait_host(staging, submission),
                None => Ok(()),
            },
            _ => {
                pipeline.state.event_count.wait_until(is_done);
                Ok(())
            }
        }
    }
}
