//! The work of a pipeline's calling thread.

use super::{Parked, StagingPipeline, open_chunk::OpenChunk, staged_chunk::StagedChunk};
use crate::{
    layout::CopyNest,
    transfer::{Direction, Staging, TUNING, chunks::Chunks},
};
use gpumem_core::{Backend, Result};
use gpumem_memory::sync::event_count::spin_until;
use std::{
    collections::VecDeque,
    sync::{Arc, atomic::Ordering},
};

/// Cuts the transfer into pieces, opens chunks, calls the driver. One thread does all of that, so it takes no lock for it, and
/// no two threads of a transfer wait for the driver's.
pub(super) struct Submitter<'r, 'a, B: Backend> {
    pipeline: &'r StagingPipeline<'a, B>,
    chunks: Chunks,
    /// Blocks that are neither filled nor drained, with the submission index of the copy that uses them, the
    /// oldest first.
    idle: VecDeque<(Arc<Staging<B>>, u64)>,
    /// Blocks there are, and how many there may be.
    made: usize,
    most: usize,
    /// In a download: the copies under way, with their submission indexes.
    coming: VecDeque<(Arc<StagedChunk<B>>, u64)>,
    open: VecDeque<OpenChunk<B>>,
    last: Option<Arc<StagedChunk<B>>>,
}

impl<'r, 'a, B: Backend> Submitter<'r, 'a, B> {
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

    /// Runs until everything has been moved, or something failed. Calls `on_progress` whenever more is done.
    pub(super) fn run(&mut self, on_progress: &mut dyn FnMut()) -> Result<()> {
        let pipeline = self.pipeline;
        while !pipeline.state.has_ended() {
            self.open.iter_mut().for_each(|open| open.reopen(&pipeline.state, true));
            let untaken: usize = self.open.iter().map(|open| open.chunk.marks.untaken()).sum();
            // Threads without work come first: the engine will wait for them. In a download the engine itself comes
            // first.
            let is_short_of_work = untaken == 0 || pipeline.direction == Direction::DeviceToHost;
            if is_short_of_work && self.start()? || self.receive()? {
                continue;
            }
            if self.submit()? {
                on_progress();
                continue;
            }
            let is_to_work = pipeline.caller_also_copies();
            let ahead = if is_to_work { TUNING.few_parts_ahead } else { TUNING.parts_ahead };
            if untaken < ahead * pipeline.config.threads && self.start()? {
                continue;
            }
            if is_to_work && self.work()? {
                on_progress();
                continue;
            }
            let is_over = self.chunks.is_empty() && (pipeline.parks || self.coming.is_empty());
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

    /// Returns the blocks that are being copied, and the submission index of the last copy.
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
        if pipeline.config.is_ring {
            return self.start_ring();
        }
        let Some(staging) = self.block()? else { return Ok(false) };
        let Some(piece) = self.chunks.next(pipeline.block_bytes(self.chunks.left())) else {
            return Ok(false);
        };
        let part_bytes = pipeline.config.part(piece.len * piece.item);
        let chunk = StagedChunk::whole(pipeline.state.operation, staging, piece, part_bytes)?;
        match pipeline.direction {
            Direction::HostToDevice => self.publish(chunk)?,
            Direction::DeviceToHost => {
                let submission = pipeline.enqueue(&chunk)?;
                self.coming.push_back((chunk, submission));
            }
        }
        if self.leaves_the_rest() {
            // No further part is opened after the open ones.
            pipeline.closed.store(true, Ordering::Release);
            pipeline.state.event_count.notify_all();
        }
        Ok(true)
    }

    /// Opens the whole run in one block, which has as many slots as there is memory for.
    fn start_ring(&mut self) -> Result<bool> {
        let pipeline = self.pipeline;
        let Some(run) = self.chunks.next(usize::MAX) else { return Ok(false) };
        let (device, operation) = (pipeline.state.device, pipeline.state.operation);
        let part = pipeline.config.part(pipeline.config.block);
        let mut wanted = pipeline.memory_bytes;
        let staging = loop {
            match Staging::take(device, operation, wanted) {
                Err(error) if error.is_out_of_memory() && wanted > part => wanted = (wanted / 2).max(part),
                taken => break Arc::new(taken?),
            }
        };
        let slots = pipeline.longest.min(wanted) / part;
        self.publish(StagedChunk::ring(staging, run, part, slots))?;
        Ok(true)
    }

    /// Returns a block that nothing uses.
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
        // Parked data counts with the whole length of its blocks.
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

    /// Opens a chunk to all threads.
    fn publish(&mut self, chunk: Arc<StagedChunk<B>>) -> Result<()> {
        chunk.show_to_host(self.pipeline.state.operation, self.pipeline.direction)?;
        match &self.last {
            Some(last) => last.set_next(&chunk),
            None => *self.pipeline.entry.lock() = Some(chunk.clone()),
        }
        self.last = Some(chunk.clone());
        self.open.push_back(OpenChunk::new(chunk));
        if self.chunks.is_empty() && self.coming.is_empty() {
            self.pipeline.closed.store(true, Ordering::Release);
        }
        self.pipeline.state.event_count.notify_all();
        Ok(())
    }

    /// Opens a block whose download is done. Returns `false` if there is none.
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
        self.publish(chunk)?;
        Ok(true)
    }

    /// Sends filled parts, or takes back a drained block. Returns `false` if there are none.
    fn submit(&mut self) -> Result<bool> {
        let pipeline = self.pipeline;
        let mut ready = self.open.iter_mut().enumerate();
        let Some((at, end)) = ready.find_map(|(at, open)| Some((at, open.ready(&pipeline.config)?))) else {
            return Ok(false);
        };
        let Some(open) = self.open.get_mut(at) else { return Ok(false) };
        let mut submission = 0;
        if pipeline.direction == Direction::HostToDevice {
            let (is_ring, parts) = (open.chunk.marks.slots() > 0, open.sent..end);
            let bytes = if is_ring { open.chunk.run_of(parts.clone()).len() } else { open.chunk.bytes() };
            submission = match is_ring {
                true => pipeline.enqueue_parts(&open.chunk, parts)?,
                false => pipeline.enqueue(&open.chunk)?,
            };
            pipeline.state.has_done(bytes);
            if !open.has_sent(end, submission) {
                return Ok(true);
            }
        }
        let Some(OpenChunk { chunk, .. }) = self.open.remove(at) else { return Ok(false) };
        self.idle.push_back((chunk.staging.clone(), submission));
        if at == 0
            && let Some(first) = self.open.front().map(|open| &open.chunk).or(self.last.as_ref())
        {
            // A thread that comes now need not walk the finished chunks.
            *pipeline.entry.lock() = Some(first.clone());
        }
        Ok(true)
    }

    /// Moves a part, if there is an open one that no thread has taken.
    fn work(&self) -> Result<bool> {
        let mut open = self.open.iter();
        let Some((chunk, part)) =
            open.find_map(|OpenChunk { chunk, .. }| Some((chunk, chunk.marks.take_open()?)))
        else {
            return Ok(false);
        };
        self.pipeline.move_part(chunk, part)?;
        Ok(true)
    }

    /// Waits until there is something to do again.
    fn wait(&mut self) -> Result<()> {
        let pipeline = self.pipeline;
        let state = &pipeline.state;
        let copy = match pipeline.direction {
            Direction::HostToDevice if self.chunks.is_empty() => None,
            Direction::HostToDevice => self.idle.front().map(|(_, submission)| *submission),
            Direction::DeviceToHost if self.leaves_the_rest() => None,
            Direction::DeviceToHost => self.coming.front().map(|(_, submission)| *submission),
        };
        let (is_any_open, open) = (!self.open.is_empty(), &mut self.open);
        let something = |looks: u32| {
            let ask = looks.is_multiple_of(TUNING.looks_per_query);
            let mut is_ready = |open: &mut OpenChunk<B>| {
                open.reopen(state, ask);
                open.ready(&pipeline.config).is_some()
            };
            state.has_ended()
                || open.iter_mut().any(&mut is_ready)
                || ask && copy.is_some_and(|submission| state.is_complete(submission, true))
        };
        // Only the copy engine is left to wait for, and the driver waits best for that.
        if is_any_open && spin_until(TUNING.spins, something) {
            return Ok(());
        }
        // The others are held up.
        if pipeline.caller_may_copy() && self.work()? {
            return Ok(());
        }
        if pipeline.direction == Direction::DeviceToHost && copy.is_some() {
            return self.receive_first().map(drop);
        }
        let engine = match self.open.front() {
            Some(open) => open.missing_copy(),
            None => self.idle.front().filter(|_| copy.is_some()).map(|(staging, copy)| (staging, *copy)),
        };
        match engine {
            Some((staging, submission)) => state.wait_host(staging, submission),
            None => {
                let open = &mut self.open;
                state.event_count.wait_until(|| state.has_ended() || open.iter_mut().any(OpenChunk::look));
                Ok(())
            }
        }
    }
}
