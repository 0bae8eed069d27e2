//! The ring: several threads move one transfer between the caller's memory and page-locked blocks, while the copy engine
//! moves other blocks.
//!
//! All threads work on the same block, each on parts of it, so that a block is filled or drained at the speed of all of
//! them together: the first copy begins soon, the last one is drained quickly, and a few blocks are enough. Blocks are
//! small at both ends of a transfer for the same reason, and large between, because the engine pauses between copies. On
//! the way up whoever fills the last part of a block enqueues its copy; on the way down whoever has a part to drain waits
//! for the block's copy, and whoever finds a free block enqueues the next one.
//!
//! Threads other than the calling one come from the device's [`Crew`](super::Crew) and are gone before the transfer
//! returns, so the caller's memory is never touched afterwards, whatever fails or panics. A block that the device may
//! still be using is known to be in use by its log.

use super::{
    Place,
    caller::Caller,
    elements,
    fresh::Fresh,
    options::{Share, StreamingStores},
    pieces::Pieces,
    progress::{Progress, Watch},
    staged::{Staged, Way},
    stores::Stores,
    turn::{Asking, State, Turn},
};
use crate::{Device, completion, layout::Pair, memory::Staging, order::Timeline};
use gpumem_core::{Backend, Error, ErrorKind, Result, StreamKind, process};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::{
    collections::VecDeque,
    ops::ControlFlow,
    sync::Arc,
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
};

/// New arrays of at least so many bytes have huge pages (`host::Unwritten`), which one thread each makes ready.
const FRESH: usize = 4 << 20;

/// One transfer.
pub(super) struct Ring<'a, B: Backend> {
    pub(super) device: &'a Device<B>,
    pub(super) timeline: &'a Arc<Timeline<B>>,
    pub(super) operation: &'static str,
    pub(super) place: Place<'a, B>,
    pub(super) caller: &'a Caller,
    pub(super) way: Way,
    share: Share,
    stores: Stores,
    /// The destination, where its pages are to be made ready.
    fresh: Option<Fresh>,
    /// Bytes of a block's memory.
    memory_bytes: usize,
    /// More than one copy: each gets a mark, so that it can be waited for alone.
    marks: bool,
    state: Mutex<State<B>>,
    /// A block was opened or came free, or the transfer has ended.
    changed: Condvar,
    asking: Asking,
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
        let share = options.share(bytes, is_alone);
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
        let state = State {
            pieces: Pieces::new(pair),
            limit: if way == Way::Up { share.first } else { share.block },
            open: VecDeque::new(),
            idle: VecDeque::new(),
            made: 0,
            most: share.blocks,
            opening: 0,
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
            marks: bytes > share.first,
            state: Mutex::new(state),
            changed: Condvar::new(),
            asking: Asking::default(),
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
    pub(super) unsafe fn run(&self, mut watch: Option<Watch<'_>>) -> Result<u64> {
        let mut told = 0;
        let work = || B::with_current(self.device.raw(), &mut || self.work(&mut || ()));
        self.device.0.staging.crew().run(self.share.threads - 1, &work, || match &mut watch {
            // Code of the user's, which finds its own context.
            Some(watch) => self.work(&mut || self.tell(&mut told, watch)),
            None => work(),
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
        self.ended.store(true, Ordering::Relaxed);
        // Whoever looked before this waits by now, and is woken.
        let _state = self.state.lock();
        self.changed.notify_all();
    }

    /// What one thread does: until there are no parts left, or something failed.
    fn work(&self, after_each: &mut dyn FnMut()) {
        let _end = EndOnUnwind(self);
        loop {
            let turn = match self.take() {
                Ok(None) => return,
                Ok(Some(turn)) => turn,
                Err(error) => return self.fail(error),
            };
            while let Some(part) = turn.part()
                && !self.ended.load(Ordering::Relaxed)
            {
                match self.serve(&turn, part) {
                    Ok(()) => after_each(),
                    Err(error) => return self.fail(error),
                }
            }
        }
    }

    /// An open block with parts that nobody has taken, once there is one; `None` when there will be none.
    fn take(&self) -> Result<Option<Arc<Turn<B>>>> {
        let mut state = self.state.lock();
        loop {
            if self.ended.load(Ordering::Relaxed) {
                return Ok(None);
            }
            // On the way down the engine comes first: it is to have something to do while we drain.
            if self.way == Way::Down && self.open(&mut state)? {
                continue;
            }
            while let Some(turn) = state.open.front() {
                if turn.has_more() {
                    return Ok(Some(turn.clone()));
                }
                state.open.pop_front();
            }
            if self.way == Way::Up && self.open(&mut state)? {
                continue;
            }
            if state.pieces.is_empty() && state.opening == 0 {
                return Ok(None);
            }
            self.changed.wait(&mut state);
        }
    }

    /// Puts the next piece into a free block. `false`: there is no piece, or no block. The lock may have been open
    /// meanwhile.
    fn open(&self, state: &mut MutexGuard<'_, State<B>>) -> Result<bool> {
        if state.pieces.is_empty() {
            return Ok(false);
        }
        let Some((staging, before)) = self.block(state)? else { return Ok(false) };
        let limit = match self.way {
            Way::Up => state.limit,
            Way::Down => {
                (state.pieces.left() / 2).next_multiple_of(4 << 10).clamp(self.share.first, state.limit)
            }
        };
        state.limit = (state.limit * Share::GROWTH).min(self.share.block);
        let Some(piece) = state.pieces.next(limit) else {
            // Somebody else took the last piece while the block was made.
            state.idle.push_front((staging, before));
            return Ok(true);
        };
        let (mut parts, mut rest) =
            (Vec::new(), Pieces::new(&Staged::new(&staging, self.operation, &piece)?.inside(&piece)));
        let part_bytes = self.share.part.min((piece.len * piece.item / 4).max(Share::SMALLEST_PART));
        while let Some(part) = rest.next(part_bytes) {
            parts.push(part);
        }
        let left = AtomicUsize::new(piece.len * piece.item);
        let next = AtomicUsize::new(0);
        let mut turn = Turn { ticket: before, parts, next, left, staging, piece };
        if self.way == Way::Down {
            state.opening += 1;
            let enqueued = MutexGuard::unlocked(state, || self.enqueue(&turn));
            state.opening -= 1;
            // Whoever waits for what would come of it looks again, whatever came of it.
            self.changed.notify_all();
            turn.ticket = enqueued?;
        }
        state.open.push_back(Arc::new(turn));
        self.changed.notify_all();
        Ok(true)
    }

    /// A free block with the ticket of the copy that uses it: one that is done with, a new one, or one in use that has to
    /// be waited for.
    fn block(&self, state: &mut MutexGuard<'_, State<B>>) -> Result<Option<(Arc<Staging<B>>, u64)>> {
        if state.made == state.most
            || state.idle.front().is_some_and(|(_, ticket)| self.timeline.has_passed(*ticket))
        {
            return Ok(state.idle.pop_front());
        }
        state.made += 1;
        state.opening += 1;
        let made =
            MutexGuard::unlocked(state, || Staging::take(self.device, self.operation, self.memory_bytes));
        state.opening -= 1;
        // Whoever waits for what would come of it looks again, whatever came of it.
        self.changed.notify_all();
        match made {
            Ok(staging) => Ok(Some((Arc::new(staging), 0))),
            // One is enough.
            Err(error) if error.is_out_of_memory() && state.made > 1 => {
                state.made -= 1;
                state.most = state.made;
                Ok(state.idle.pop_front())
            }
            Err(error) => Err(error),
        }
    }

    /// Enqueues the copy between a block and the device.
    fn enqueue(&self, turn: &Turn<B>) -> Result<u64> {
        let staged = Staged::new(&turn.staging, self.operation, &turn.piece)?;
        let ticket = staged.copy(self.timeline, self.operation, &turn.piece, self.place, self.way)?;
        self.ticket.fetch_max(ticket, Ordering::Relaxed);
        if self.marks {
            // Without a mark of its own the copy is waited for together with everything behind it: slow, not wrong.
            let _ = self.timeline.point(ticket);
        }
        Ok(ticket)
    }

    /// Moves one part, and whoever moves the last one of a block frees it.
    fn serve(&self, turn: &Turn<B>, part: &Pair) -> Result<()> {
        if let Some(fresh) = &self.fresh {
            // SAFETY: `run`'s caller keeps the memory valid for writes.
            unsafe {
                // So far ahead that no thread writes a page that another one is making ready.
                fresh.up_to(part.src + part.run + self.share.threads * Fresh::STEP);
                while !self.timeline.has_passed(turn.ticket) && fresh.step() {}
            }
        }
        let settled = self.asking.settle(self.timeline, turn.ticket);
        if !settled.done {
            // The device may go on using the block.
            std::mem::forget(turn.staging.clone());
        }
        settled.result.map_err(|error| error.in_operation(self.operation))?;
        if self.way == Way::Down {
            // Nothing lands of a copy that failed, whoever was told of it.
            let failed = self.timeline.fault_since(turn.ticket.saturating_sub(1));
            failed.map_err(|error| error.in_operation(self.operation))?;
        }
        let staged = Staged::new(&turn.staging, self.operation, &turn.piece)?;
        // SAFETY: `run`'s caller keeps the memory valid, and parts are disjoint; what used the block before is waited for,
        // and nothing else does before its last part has been moved.
        unsafe { staged.exchange(self.operation, part, self.caller, self.way, self.stores)? };
        let bytes = part.len * part.item;
        // The other parts were moved before the one that finds nothing left.
        let is_last = turn.left.fetch_sub(bytes, Ordering::AcqRel) == bytes;
        let ticket = if is_last && self.way == Way::Up { self.enqueue(turn)? } else { 0 };
        match self.way {
            Way::Down => self.done.fetch_add(bytes as u64, Ordering::Relaxed),
            Way::Up if is_last => {
                self.done.fetch_add((turn.piece.len * turn.piece.item) as u64, Ordering::Relaxed)
            }
            Way::Up => 0,
        };
        if is_last {
            let mut state = self.state.lock();
            state.idle.push_back((turn.staging.clone(), ticket));
            self.changed.notify_all();
            // The engine waits for nobody who is still draining.
            while self.way == Way::Down && self.open(&mut state)? {}
        }
        Ok(())
    }
}
