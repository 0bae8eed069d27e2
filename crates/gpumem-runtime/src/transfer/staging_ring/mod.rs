//! The staging ring: what an upload of one run goes through.
//!
//! The run lies in parts of one size behind each other, and so does one page-locked block, which begins again at its end. Several
//! threads fill parts, whichever is next; the calling thread is the [`submitter`], which alone calls the driver: it sends what has been
//! filled without a gap, be it much or little, as soon as the copy engine is nearly done with what it has, and gives parts of the
//! block to the threads again when their copies are over. There is nothing to lock and nothing to wait for but the part itself.
//!
//! Threads that call the driver at the same time meet on its locks and sleep there, up to some hundred microseconds, and what it knows
//! of a stream goes from core to core with them.
//!
//! Helpers come from the device's [`WorkerPool`](super::WorkerPool) and are gone before the transfer returns, so the caller's memory is
//! never touched afterwards, whatever fails or panics. A block that the device may still be using is known to be in use by
//! its log.

mod submitter;

use super::{
    ArrayRef,
    event_count::spin_until,
    host_span::HostSpan,
    options::TransferConfig,
    progress::ProgressFn,
    registration_boundaries::split_at_boundaries,
    staged::Direction,
    state::{TransferState, is_alone},
    store_policy::{StorePolicy, copy_run},
    torn::note_torn,
};
use crate::transfer::Staging;
use crate::{
    Device,
    layout::CopyNest,
    track::{Access, Timeline},
};
use gpumem_core::{Backend, CopyRegion, Result};
use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use submitter::RingSubmitter;

/// An upload of one run. Parts are counted from its beginning, whichever part of the block they lie in.
pub(super) struct StagingRing<'a, B: Backend> {
    state: TransferState<'a, B>,
    array_ref: ArrayRef<'a, B>,
    host_span: &'a HostSpan,
    config: TransferConfig,
    stores: StorePolicy,
    /// Where the run begins in the caller's and in the device's memory, and its bytes.
    source: usize,
    destination: usize,
    bytes: usize,
    staging: Arc<Staging<B>>,
    /// Bytes of a part, and parts of the run.
    part: usize,
    parts: usize,
    /// For each part of the block: how many parts of the run there were up to the last one that has been moved into it.
    moved: Box<[AtomicUsize]>,
    /// The part that is next, and where those end that have a place in the block.
    next: AtomicUsize,
    open: AtomicUsize,
}

impl<'a, B: Backend> StagingRing<'a, B> {
    /// Takes the block, or the longest one that there is memory for. `None`: the transfer is for the pipeline, because it has several runs or
    /// one thread.
    ///
    /// # Errors
    /// Returns an error if there is not even memory for one part, or if work that used the block failed.
    pub(super) fn new(
        device: &'a Device<B>,
        timeline: &'a Arc<Timeline<B>>,
        operation: &'static str,
        (array_ref, host_span, nest): (ArrayRef<'a, B>, &'a HostSpan, &CopyNest),
    ) -> Result<Option<Self>> {
        let (bytes, options) = (nest.len * nest.item, device.0.staging.options());
        let config = options.upload_config(bytes, nest.axes.is_empty(), is_alone(timeline, operation));
        if !config.is_ring {
            return Ok(None);
        }
        let stores =
            StorePolicy::of(options.non_temporal_stores, Direction::HostToDevice, config.threads, bytes);
        let part = config.part(config.block);
        let longest = bytes.min(config.block * config.blocks).next_multiple_of(part);
        // Memory of few sizes, so that the next transfer finds it again.
        let mut wanted = longest.max(options.block_bytes);
        let staging = loop {
            match Staging::take(device, operation, wanted) {
                Err(error) if error.is_out_of_memory() && wanted > part => wanted = (wanted / 2).max(part),
                taken => break Arc::new(taken?),
            }
        };
        let capacity = longest.min(wanted);
        let (parts, slots) = (bytes.div_ceil(part), capacity / part);
        Ok(Some(Self {
            state: TransferState::new(device, timeline, operation, config.threads, bytes),
            array_ref,
            host_span,
            config,
            stores,
            source: nest.src,
            destination: nest.dst,
            bytes,
            staging,
            part,
            parts,
            moved: (0..slots).map(|_| AtomicUsize::new(0)).collect(),
            next: AtomicUsize::new(0),
            open: AtomicUsize::new(slots.min(parts)),
        }))
    }

    /// Moves everything, and returns the last submission index. The elements have left the caller's memory
    /// then.
    ///
    /// # Safety
    /// The caller's memory is valid for the run during this call.
    ///
    /// # Errors
    /// Returns the first failure. Nothing of the transfer is running any more then, and no memory of the caller's is
    /// used.
    pub(super) unsafe fn run(&self, progress: Option<ProgressFn<'_>>) -> Result<u64> {
        let submit = |on_progress: &mut dyn FnMut()| RingSubmitter::new(self).run(on_progress);
        let ran = self.state.run(&|| self.help(), submit, progress);
        ran.inspect_err(|error| {
            if self.state.has_begun() {
                note_torn(self.state.operation, self.array_ref, error);
            }
        })
    }

    /// What a helper does: until there are no parts left, or something failed.
    fn help(&self) -> Result<()> {
        loop {
            let part = self.next.fetch_add(1, Ordering::Relaxed);
            if part >= self.parts {
                return Ok(());
            }
            // What used its place in the block is over then: the submitter has seen it.
            let is_open = || part < self.open.load(Ordering::Acquire) || self.state.has_ended();
            if !spin_until(|_| is_open()) {
                self.state.event_count.wait_until(is_open);
            }
            if self.state.has_ended() {
                return Ok(());
            }
            self.fill(part)?;
        }
    }

    /// Fills a part if there is an untaken one and that has a place. `false`: there is none.
    fn fill_next(&self) -> Result<bool> {
        let open = self.open.load(Ordering::Acquire);
        let taken = self
            .next
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| (next < open).then_some(next + 1));
        let Ok(part) = taken else { return Ok(false) };
        self.fill(part)?;
        Ok(true)
    }

    /// Moves a part, which has been taken, into the block.
    fn fill(&self, part: usize) -> Result<()> {
        let (run, slot) = (self.of_run(part..part + 1), part % self.moved.len());
        let block = self.staging.host(self.state.operation)?;
        let from = self.host_span.base.wrapping_add(self.source + run.start);
        let to = block.as_ptr().wrapping_add(slot * self.part);
        // SAFETY: `run`'s caller keeps the memory valid; the block has as many parts as there are slots, and this one belongs
        // to this thread alone: a part is taken once, and not before the copy of what lay there is over.
        unsafe { copy_run(from.cast_const(), to, run.len(), self.stores) };
        self.moved[slot].store(part + 1, Ordering::Release);
        self.state.event_count.notify_all();
        Ok(())
    }

    /// Whether a part lies in the block.
    fn is_moved(&self, part: usize) -> bool {
        self.moved[part % self.moved.len()].load(Ordering::Acquire) == part + 1
    }

    /// Bytes of the run that these parts are.
    fn of_run(&self, parts: Range<usize>) -> Range<usize> {
        parts.start * self.part..self.bytes.min(parts.end * self.part)
    }

    /// Enqueues the copy of these parts, which lie side by side in the block.
    fn enqueue(&self, parts: &Range<usize>) -> Result<u64> {
        let TransferState { timeline, operation, .. } = self.state;
        let (run, start) = (self.of_run(parts.clone()), parts.start % self.moved.len() * self.part);
        let (block, memory) = (self.staging.memory(), self.array_ref.memory);
        let ((host, pinned), (device, space)) = (block.endpoint(), memory.endpoint());
        let from = (host + start as u64, pinned);
        let to = (device + (self.destination + run.start) as u64, space);
        let region = CopyRegion::linear(from, to, run.len());
        // The whole of both: a use that is the same again is soon noted, and nothing else uses the block
        // meanwhile.
        let accesses =
            [Access::read(block, 0..block.len()), Access::write(memory, self.array_ref.layout.extent())];
        let submitted = timeline.submit(operation, &accesses, |raw| {
            split_at_boundaries(&region, memory.boundaries(), &mut |region| {
                timeline.counters.count_copy();
                // SAFETY: the block and the device's memory are alive and ordered by their use logs; both have these bytes, and
                // threads fill other parts of the block.
                unsafe { B::copy(raw, region) }
            })
        })?;
        self.state.has_enqueued(submitted.submission, self.parts > 1);
        Ok(submitted.submission)
    }
}
