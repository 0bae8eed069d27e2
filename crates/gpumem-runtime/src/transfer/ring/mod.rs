//! The ring: several threads move one transfer between the caller's memory and page-locked blocks, while the copy engine
//! moves other blocks.
//!
//! All threads work on the same block, each on parts of it, so that a block is filled or drained at the speed of all of
//! them together: the first copy begins soon, the last one is drained quickly, and a few blocks are enough. Copies are
//! short at both ends of a transfer for the same reason, and long between, because the engine pauses between them: an upload in one
//! run sends parts of blocks, whatever has been filled when the engine is nearly done, and others have small blocks there.
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
    bell::{Bell, look},
    caller::Caller,
    elements,
    fresh::Fresh,
    options::{Share, StreamingStores},
    progress::{Progress, Watch},
    staged::{Staged, Way},
    stores::Stores,
};
use crate::{Device, completion, layout::Pair, memory::Staging, order::Timeline};
use conductor::Conductor;
use gpumem_core::{Backend, Error, ErrorKind, Result, StreamKind, process};
use parking_lot::Mutex;
use std::{
    ops::{ControlFlow, Range},
    sync::Arc,
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
};
use turn::{Part, Turn};

/// New arrays of at least so many bytes have huge pages (`host::Unwritten`), which one thread each makes ready.
const FRESH: usize = 4 << 20;

/// What is sent of an upload at once, unless it is short, is about a fourth of what comes before it: at most where a block is sent
/// when it is full, at least where parts of it are. Threads fill blocks hardly faster than the engine takes them, which pauses
/// between copies: of what is longer it would wait for the end, and what is shorter would have it pause more often.
const RAMP: usize = 4;

/// One transfer.
pub(super) struct Ring<'a, B: Backend> {
    device: &'a Device<B>,
    timeline: &'a Arc<Timeline<B>>,
    operation: &'static str,
    place: Place<'a, B>,
    caller: &'a Caller,
    way: Way,
    share: Share,
    stores: Stores,
    /// The destination, where its pages are to be made ready.
    fresh: Option<Fresh>,
    /// Bytes of a block's memory.
    memory_bytes: usize,
    /// More than one copy: each gets a mark, so that it can be waited for alone.
    marks: bool,
    /// Where a thread that comes begins.
    entry: Mutex<Option<Arc<Turn<B>>>>,
    /// The last block has been opened.
    closed: AtomicBool,
    /// Rung when a block was opened or has been moved, or the transfer has ended.
    bell: Bell,
    /// Helpers that have come.
    helpers: AtomicUsize,
    ended: AtomicBool,
    failure: Mutex<Option<Error>>,
    done: AtomicU64,
    total: u64,
    ticket: AtomicU64,
}

/// Ends the work of all threads when one unwinds.
struct EndOnUnwind<'r, 'a, B: Backend>(&'r Ring<'a, B>);

impl<B: Backend> Drop for EndOnUnwind<'_, '_, B> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.end();
        }
    }
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
        // A stream of one thread can be used by no other; and who may not block must not have others block for him.
        let is_alone =
            timeline.kind() == StreamKind::PerThread || completion::may_block::<B>(operation).is_err();
        let share = match way {
            Way::Up => options.upload_share(bytes, pair.axes.is_empty(), is_alone),
            Way::Down => options.share(bytes, is_alone),
        };
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
            device,
            timeline,
            operation,
            place,
            caller,
            way,
            share,
            stores,
            fresh: None,
            memory_bytes,
            marks: bytes > share.shortest,
            entry: Mutex::new(None),
            closed: AtomicBool::new(false),
            bell: Bell::default(),
            helpers: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
            failure: Mutex::new(None),
            done: AtomicU64::new(0),
            total: bytes as u64,
            ticket: AtomicU64::new(0),
        }
    }

    /// The destination is packed and of the library's own making. Nobody has touched its pages, unless the allocator has
    /// given out again what it was given back.
    pub(super) fn is_new(&mut self) {
        let bytes = self.total as usize;
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
    pub(super) unsafe fn run(&self, pair: &Pair, mut watch: Option<Watch<'_>>) -> Result<u64> {
        let mut told = 0;
        let conduct = |after_each: &mut dyn FnMut()| {
            let _end = EndOnUnwind(self);
            if let Err(error) = Conductor::new(self, pair).run(after_each) {
                self.fail(error);
            }
        };
        self.device.0.staging.crew().run(self.share.threads - 1, &|| self.help(), || match &mut watch {
            // Code of the user's, which finds its own context.
            Some(watch) => conduct(&mut || self.tell(&mut told, watch)),
            None => B::with_current(self.device.raw(), &mut || conduct(&mut || ())),
        });
        if told < self.total
            && self.failure.lock().is_none()
            && let Some(watch) = &mut watch
        {
            // Others have moved the last part, or all of them before this thread had a turn.
            self.tell(&mut told, watch);
        }
        let ticket = self.ticket.load(Ordering::Relaxed);
        match self.failure.lock().take() {
            None => Ok(ticket),
            Some(error) => {
                // Law 8: wait first, report after.
                let settled = self.timeline.settle(ticket);
                if let Err(second) = settled.result
                    && !settled.done
                {
                    self.device.core().errors.push(second);
                }
                Err(error)
            }
        }
    }

    /// Tells what has been done since the last time.
    fn tell(&self, told: &mut u64, watch: Watch<'_>) {
        let done = self.done.load(Ordering::Relaxed);
        if done > *told {
            *told = done;
            if watch(Progress { done, total: self.total }) == ControlFlow::Break(()) {
                self.fail(Error::new(B::NAME, self.operation, ErrorKind::Cancelled));
            }
        }
    }

    fn fail(&self, error: Error) {
        self.failure.lock().get_or_insert(error);
        self.end();
    }

    /// Nobody takes another part.
    fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.bell.ring();
    }

    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// What a helper does: until there are no parts left, or something failed.
    fn help(&self) {
        let _end = EndOnUnwind(self);
        self.helpers.fetch_add(1, Ordering::Relaxed);
        let mut at = None::<Arc<Turn<B>>>;
        loop {
            let next = || match &at {
                Some(turn) => turn.next().cloned(),
                None => self.entry.lock().clone(),
            };
            let Some(turn) = self.wait_for(next) else { return };
            while let Some(part) = turn.take()
                && !self.has_ended()
            {
                if let Err(error) = self.move_part(&turn, part) {
                    return self.fail(error);
                }
            }
            at = Some(turn);
        }
    }

    /// What comes next, once it is there; `None` when nothing will come.
    fn wait_for(&self, next: impl Fn() -> Option<Arc<Turn<B>>>) -> Option<Arc<Turn<B>>> {
        let is_over = || self.has_ended() || self.closed.load(Ordering::Acquire);
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
            self.bell.sleep(holds);
        }
        found.filter(|_| !self.has_ended())
    }

    /// Moves a part between the caller's memory and its block.
    fn move_part(&self, turn: &Turn<B>, part: &Part) -> Result<()> {
        let pair = &part.pair;
        if let Some(fresh) = &self.fresh {
            // SAFETY: `run`'s caller keeps the memory valid for writes. So far ahead that no thread writes a page that another
            // one is making ready.
            unsafe { fresh.up_to(pair.src + pair.run + self.share.threads * Fresh::STEP) };
        }
        let staged = Staged::new(&turn.staging, self.operation, &turn.piece)?;
        // SAFETY: `run`'s caller keeps the memory valid, and parts are disjoint; what used these bytes of the block before is
        // waited for, and nothing else does before they have been moved.
        unsafe { staged.exchange(self.operation, pair, self.caller, self.way, self.stores)? };
        if self.way == Way::Down {
            self.done.fetch_add((pair.len * pair.item) as u64, Ordering::Relaxed);
        }
        if turn.done(part) {
            self.bell.ring();
        }
        Ok(())
    }

    /// Bytes of the next block, of so many that are left. The last blocks are small, so that little is left to do when the
    /// threads are done on the way up, and the engine on the way down. On the way up the first ones are too, and grow slowly.
    /// Where parts of a block are sent all are large.
    fn block_bytes(&self, left: usize) -> usize {
        let Share { block, shortest, sends_parts, .. } = self.share;
        let most = match self.way {
            Way::Up if sends_parts => return block,
            Way::Up => ((self.total as usize - left) / RAMP).max(2 * shortest),
            Way::Down => block,
        };
        most.min(left / 2).next_multiple_of(4 << 10).clamp(shortest, block)
    }

    /// Enqueues the copy between a block and the device: of all its bytes, or of some if they are one run.
    fn enqueue(&self, turn: &Turn<B>, bytes: Range<usize>) -> Result<u64> {
        let (piece, start) = (turn.cut(&bytes), bytes.start);
        let staged = Staged::at(&turn.staging, self.operation, &piece, start)?;
        let ticket = staged.copy(self.timeline, self.operation, &piece, self.place, self.way)?;
        self.ticket.fetch_max(ticket, Ordering::Relaxed);
        if self.marks {
            // Without a mark of its own the copy is waited for together with everything behind it: slow, not wrong.
            let _ = self.timeline.point(ticket);
        }
        Ok(ticket)
    }

    /// Whether the copy with that ticket is over, asking the driver if `ask`. What it did wrong is told when it is waited for.
    fn has_passed(&self, ticket: u64, ask: bool) -> bool {
        self.timeline.has_passed(ticket) || ask && matches!(self.timeline.poll(ticket), Ok(true))
    }

    /// Waits for the copy that uses a block.
    fn settle(&self, staging: &Arc<Staging<B>>, ticket: u64) -> Result<()> {
        let settled = self.timeline.settle(ticket);
        if !settled.done {
            // The device may go on using the block.
            std::mem::forget(staging.clone());
        }
        settled.result.map_err(|error| error.in_operation(self.operation))
    }
}
