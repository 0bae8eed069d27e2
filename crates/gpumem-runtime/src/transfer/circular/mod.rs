//! The circular buffer: what an upload of one run goes through.
//!
//! The run lies in parts of one size behind each other, and so does one page-locked block, which begins again at its end. Several
//! threads fill parts, whichever is next; the calling thread is the [`conductor`], which alone calls the driver: it sends what has been
//! filled without a gap, be it much or little, as soon as the copy engine is nearly done with what it has, and gives parts of the
//! block to the threads again when their copies are over. There is nothing to lock and nothing to wait for but the part itself.
//!
//! Threads that call the driver at the same time meet on its locks and sleep there, up to some hundred microseconds, and what it knows
//! of a stream goes from core to core with them.
//!
//! Helpers come from the device's [`Crew`](super::Crew) and are gone before the transfer returns, so the caller's memory is
//! never touched afterwards, whatever fails or panics. A block that the device may still be using is known to be in use by
//! its log.

mod conductor;

use super::{
    Place,
    bell::look,
    caller::Caller,
    cuts::at_cuts,
    options::Share,
    progress::Watch,
    staged::Way,
    stores::{Stores, copy_run},
    torn::note_torn,
    work::{Work, is_alone},
};
use crate::{
    Device,
    layout::Pair,
    memory::Staging,
    order::{Access, Timeline},
};
use conductor::Conductor;
use gpumem_core::{Backend, CopyRegion, Result};
use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// An upload of one run. Parts are counted from its beginning, whichever part of the block they lie in.
pub(super) struct Circular<'a, B: Backend> {
    work: Work<'a, B>,
    place: Place<'a, B>,
    caller: &'a Caller,
    share: Share,
    stores: Stores,
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

impl<'a, B: Backend> Circular<'a, B> {
    /// Takes the block, or the longest one that there is memory for. `None`: the transfer is for the ring, for it has several runs, or
    /// one thread.
    ///
    /// # Errors
    /// There is not even memory for one part, or what used the block went wrong.
    pub(super) fn new(
        device: &'a Device<B>,
        timeline: &'a Arc<Timeline<B>>,
        operation: &'static str,
        (place, caller, pair): (Place<'a, B>, &'a Caller, &Pair),
    ) -> Result<Option<Self>> {
        let (bytes, options) = (pair.len * pair.item, device.0.staging.options());
        let share = options.upload_share(bytes, pair.axes.is_empty(), is_alone(timeline, operation));
        if !share.is_circular {
            return Ok(None);
        }
        let stores = Stores::of(options.streaming_stores, Way::Up, share.threads, bytes);
        let part = share.part(share.block);
        let longest = bytes.min(share.block * share.blocks).next_multiple_of(part);
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
            work: Work::new(device, timeline, operation, share.threads, bytes),
            place,
            caller,
            share,
            stores,
            source: pair.src,
            destination: pair.dst,
            bytes,
            staging,
            part,
            parts,
            moved: (0..slots).map(|_| AtomicUsize::new(0)).collect(),
            next: AtomicUsize::new(0),
            open: AtomicUsize::new(slots.min(parts)),
        }))
    }

    /// Moves everything, and returns the last ticket. The elements have left the caller's memory then.
    ///
    /// # Safety
    /// The caller's memory is valid for the run during this call.
    ///
    /// # Errors
    /// The first failure. Nothing of the transfer is running any more then, and no memory of the caller's is used.
    pub(super) unsafe fn run(&self, watch: Option<Watch<'_>>) -> Result<u64> {
        let conduct = |after_each: &mut dyn FnMut()| Conductor::new(self).run(after_each);
        let ran = self.work.run(&|| self.help(), conduct, watch);
        ran.inspect_err(|error| {
            if self.work.has_begun() {
                note_torn(self.work.operation, self.place, error);
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
            // What used its place in the block is over then: the conductor has seen it.
            let is_open = || part < self.open.load(Ordering::Acquire) || self.work.has_ended();
            if !look(|_| is_open()) {
                self.work.bell.sleep(is_open);
            }
            if self.work.has_ended() {
                return Ok(());
            }
            self.fill(part)?;
        }
    }

    /// Fills a part if there is one that nobody has taken and that has a place. `false`: there is none.
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
        let block = self.staging.host(self.work.operation)?;
        let from = self.caller.lowest.wrapping_add(self.source + run.start);
        let to = block.as_ptr().wrapping_add(slot * self.part);
        // SAFETY: `run`'s caller keeps the memory valid; the block has as many parts as there are slots, and this one is nobody
        // else's: a part is taken once, and not before the copy of what lay there is over.
        unsafe { copy_run(from.cast_const(), to, run.len(), self.stores) };
        self.moved[slot].store(part + 1, Ordering::Release);
        self.work.bell.ring();
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
        let Work { timeline, operation, .. } = self.work;
        let (run, start) = (self.of_run(parts.clone()), parts.start % self.moved.len() * self.part);
        let (block, memory) = (self.staging.memory(), self.place.memory);
        let ((host, pinned), (device, space)) = (block.endpoint(), memory.endpoint());
        let from = (host + start as u64, pinned);
        let to = (device + (self.destination + run.start) as u64, space);
        let region = CopyRegion::linear(from, to, run.len());
        // The whole of both: a use that is the same again is soon noted, and nobody else uses the block meanwhile.
        let accesses =
            [Access::read(block, 0..block.len()), Access::write(memory, self.place.layout.extent())];
        let submitted = timeline.submit(operation, &accesses, |raw| {
            at_cuts(&region, memory.cuts(), &mut |region| {
                timeline.tally.count_copy();
                // SAFETY: the block and the device's memory are alive and ordered by their use logs; both have these bytes, and
                // threads fill other parts of the block.
                unsafe { B::copy(raw, region) }
            })
        })?;
        self.work.has_enqueued(submitted.ticket, self.parts > 1);
        Ok(submitted.ticket)
    }
}
