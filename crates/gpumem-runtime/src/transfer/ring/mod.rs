//! The ring: several threads move one transfer between the caller's memory and page-locked blocks, while the copy engine
//! moves other blocks. (An upload of one run goes through the [circular buffer](super::circular).)
//!
//! All threads work on the same block, each on parts of it, so that a block is filled or drained at the speed of all of
//! them together: the first copy begins soon, the last one is drained quickly, and a few blocks are enough. Blocks are
//! short at both ends of a transfer for the same reason, and long between, because the engine pauses between copies.
//!
//! The calling thread is the [`conductor`]: it alone calls the driver. Threads that do so at the same time meet on its locks
//! and sleep there, up to some hundred microseconds, and what it knows of a stream goes from core to core with them. The
//! others only move [parts](turn), and go from block to block without a lock.
//!
//! They come from the device's [`Crew`](super::Crew) and are gone before the transfer returns, so the caller's memory is
//! never touched afterwards, whatever fails or panics. A block that the device may still be using is known to be in use by
//! its log.

mod conductor;
mod turn;

use super::{
    Place,
    bell::look,
    caller::Caller,
    elements,
    fresh::Fresh,
    options::{Share, StreamingStores},
    progress::Watch,
    staged::{Staged, Way},
    stores::Stores,
    torn::note_torn,
    work::{Work, is_alone},
};
use crate::{Device, layout::Pair, order::Timeline};
use conductor::Conductor;
use gpumem_core::{Backend, Result, process};
use parking_lot::Mutex;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use turn::Turn;

/// New arrays of at least so many bytes have huge pages (`host::Unwritten`), which one thread each makes ready.
const FRESH: usize = 4 << 20;

/// On the way up a block is a fourth of what comes before it: threads fill blocks hardly faster than the engine takes them, which
/// would wait for the end of a longer one.
const RAMP: usize = 4;

/// One transfer.
pub(super) struct Ring<'a, B: Backend> {
    work: Work<'a, B>,
    place: Place<'a, B>,
    caller: &'a Caller,
    way: Way,
    share: Share,
    stores: Stores,
    /// The destination, where its pages are to be made ready.
    fresh: Option<Fresh>,
    /// Bytes of a block's memory.
    memory_bytes: usize,
    /// Where a thread that comes begins.
    entry: Mutex<Option<Arc<Turn<B>>>>,
    /// The last block has been opened.
    closed: AtomicBool,
}

impl<'a, B: Backend> Ring<'a, B> {
    pub(super) fn new(
        device: &'a Device<B>,
        timeline: &'a Arc<Timeline<B>>,
        operation: &'static str,
        (place, caller, pair): (Place<'a, B>, &'a Caller, &Pair),
        way: Way,
    ) -> Self {
        let bytes = pair.len.saturating_mul(pair.item);
        let options = device.0.staging.options();
        let share = options.share(bytes, is_alone(timeline, operation));
        // Several threads use blocks of one size, whatever the transfer, so that the next one finds them again.
        let largest = bytes.min(share.block.max(pair.item));
        let memory_bytes = if share.threads > 1 { largest.max(options.block_bytes) } else { largest };
        // What is gathered out of short runs lies in a cache already, and going around the others always pays: 29 instead of
        // 25 GB/s for every second column.
        let gathers = way == Way::Up && pair.run < elements::LONGEST && share.threads > 1;
        let stores = match options.streaming_stores {
            StreamingStores::Auto if gathers => Stores::Streaming,
            chosen => Stores::of(chosen, way, share.threads, bytes),
        };
        Self {
            work: Work::new(device, timeline, operation, share.threads, bytes),
            place,
            caller,
            way,
            share,
            stores,
            fresh: None,
            memory_bytes,
            entry: Mutex::new(None),
            closed: AtomicBool::new(false),
        }
    }

    /// The destination is packed and of the library's own making. Nobody has touched its pages, unless the allocator has
    /// given out again what it was given back.
    pub(super) fn is_new(&mut self) {
        let bytes = self.work.total as usize;
        if bytes >= FRESH && !process::has_touched_pages(self.caller.lowest, bytes) {
            self.fresh = Some(Fresh::new(self.caller, bytes));
        }
    }

    /// Moves everything, and returns the last ticket. On the way up the elements have left the caller's memory then;
    /// on the way down they have landed in it.
    ///
    /// # Safety
    /// The caller's memory is valid for the pair during this call, for writes and for nobody else on the way down.
    ///
    /// # Errors
    /// The first failure. Nothing of the transfer is running any more then, and no memory of the caller's is used.
    pub(super) unsafe fn run(&self, pair: &Pair, watch: Option<Watch<'_>>) -> Result<u64> {
        let conduct = |after_each: &mut dyn FnMut()| Conductor::new(self, pair).run(after_each);
        let ran = self.work.run(&|| self.help(), conduct, watch);
        ran.inspect_err(|error| {
            if self.way == Way::Up && self.work.has_begun() {
                note_torn(self.work.operation, self.place, error);
            }
        })
    }

    /// What a helper does: until there are no parts left, or something failed.
    fn help(&self) -> Result<()> {
        let mut at = None::<Arc<Turn<B>>>;
        loop {
            let next = || match &at {
                Some(turn) => turn.next().cloned(),
                None => self.entry.lock().clone(),
            };
            let Some(turn) = self.wait_for(next) else { return Ok(()) };
            while let Some(part) = turn.take()
                && !self.work.has_ended()
            {
                self.move_part(&turn, part)?;
            }
            at = Some(turn);
        }
    }

    /// What comes next, once it is there; `None` when nothing will come.
    fn wait_for(&self, next: impl Fn() -> Option<Arc<Turn<B>>>) -> Option<Arc<Turn<B>>> {
        let is_over = || self.work.has_ended() || self.closed.load(Ordering::Acquire);
        let mut found = None;
        let mut holds = || {
            // The last one was there before the end was told.
            let is_over = is_over();
            found = next();
            found.is_some() || is_over
        };
        if !look(|_| {
            // Pages are made ready while there is nothing else to do.
            // SAFETY: `run`'s caller keeps the memory valid for writes.
            holds() || self.fresh.as_ref().is_some_and(|fresh| unsafe { fresh.step() }) && holds()
        }) {
            self.work.bell.sleep(holds);
        }
        found.filter(|_| !self.work.has_ended())
    }

    /// Moves a part between the caller's memory and its block.
    fn move_part(&self, turn: &Turn<B>, pair: &Pair) -> Result<()> {
        if let Some(fresh) = &self.fresh {
            // SAFETY: `run`'s caller keeps the memory valid for writes. So far ahead that no thread writes a page that another
            // one is making ready.
            unsafe { fresh.up_to(pair.src + pair.run + self.share.threads * Fresh::STEP) };
        }
        let staged = Staged::new(&turn.staging, self.work.operation, &turn.piece)?;
        // SAFETY: `run`'s caller keeps the memory valid, and parts are disjoint; what used these bytes of the block before is
        // waited for, and nothing else does before they have been moved.
        unsafe { staged.exchange(self.work.operation, pair, self.caller, self.way, self.stores)? };
        if self.way == Way::Down {
            self.work.has_done(pair.len * pair.item);
        }
        if turn.done(pair) {
            self.work.bell.ring();
        }
        Ok(())
    }

    /// Bytes of the next block, of so many that are left. The last blocks are small, so that little is left to do when the
    /// threads are done on the way up, and the engine on the way down. On the way up the first ones are too, and grow slowly.
    fn block_bytes(&self, left: usize) -> usize {
        let Share { block, shortest, .. } = self.share;
        let most = match self.way {
            Way::Up => ((self.work.total as usize - left) / RAMP).max(2 * shortest),
            Way::Down => block,
        };
        most.min(left / 2).next_multiple_of(4 << 10).clamp(shortest, block)
    }

    /// Enqueues the copy between a block and the device.
    fn enqueue(&self, turn: &Turn<B>) -> Result<u64> {
        let Work { timeline, operation, .. } = self.work;
        let staged = Staged::new(&turn.staging, operation, &turn.piece)?;
        let ticket = staged.copy(timeline, operation, &turn.piece, self.place, self.way)?;
        self.work.has_enqueued(ticket, self.work.total > self.share.shortest as u64);
        Ok(ticket)
    }
}
