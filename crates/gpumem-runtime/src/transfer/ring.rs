//! The ring: several threads move the pieces of one transfer between the caller's memory and page-locked blocks, while
//! the copy engine moves other blocks.
//!
//! Each thread has two blocks and takes pieces from a common list: on the way up it fills one block while the engine
//! empties the other, on the way down the other way round. Threads other than the calling one come from the device's
//! [`Crew`](super::Crew) and are gone before the transfer returns, so the caller's memory is never touched afterwards,
//! whatever fails or panics. A block that the device may still be using is known to be in use by its log.

use super::{
    Place,
    caller::Caller,
    options::StreamingStores,
    plan::pieces,
    progress::{Progress, Watch, unwatched},
    staged::{Staged, Way},
};
use crate::{Device, completion, layout::Pair, memory::Staging, order::Timeline};
use gpumem_core::{Backend, Element, Error, ErrorKind, Result, StreamKind};
use parking_lot::Mutex;
use std::{
    convert::Infallible,
    ops::ControlFlow,
    sync::Arc,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

/// Downloads of at least so many bytes are written around the caches, unless the options say otherwise.
const STREAMING: usize = 8 << 20;

/// One transfer.
pub(super) struct Ring<'a, B: Backend> {
    pub(super) device: &'a Device<B>,
    pub(super) timeline: &'a Arc<Timeline<B>>,
    pub(super) operation: &'static str,
    pub(super) place: Place<'a, B>,
    pub(super) caller: &'a Caller,
    pub(super) way: Way,
    streaming: bool,
    threads: usize,
    block_bytes: usize,
    /// More pieces than one thread has blocks: blocks are used again, so each copy gets a mark to be waited for.
    marks: bool,
    pieces: Mutex<std::vec::IntoIter<Pair>>,
    ended: AtomicBool,
    failure: Mutex<Option<Error>>,
    done: AtomicU64,
    total: u64,
    ticket: AtomicU64,
}

/// The blocks of one thread.
struct Blocks<'r, 'a, B: Backend> {
    ring: &'r Ring<'a, B>,
    blocks: [Option<Staging<B>>; 2],
    turn: usize,
}

impl<B: Backend> Blocks<'_, '_, B> {
    /// The block whose turn it is. One is enough, if there is no memory for a second.
    fn next(&mut self) -> Result<usize> {
        let (turn, other) = (self.turn, 1 - self.turn);
        self.turn = other;
        if self.blocks[turn].is_none() {
            match Staging::take(self.ring.device, self.ring.operation, self.ring.block_bytes) {
                Ok(block) => self.blocks[turn] = Some(block),
                Err(error) if error.is_out_of_memory() && self.blocks[other].is_some() => return Ok(other),
                Err(error) => return Err(error),
            }
        }
        Ok(turn)
    }

    fn staged(&self, at: usize, piece: &Pair) -> Result<Staged<'_, B>> {
        match &self.blocks[at] {
            Some(block) => Staged::new(block, self.ring.operation, piece),
            None => Err(Error::new(B::NAME, self.ring.operation, ErrorKind::NotReady)),
        }
    }

    /// Leaks a block that the device may go on writing.
    fn leak(&mut self, at: usize) {
        std::mem::forget(self.blocks[at].take());
    }
}

/// Ends the work of all threads when the calling one unwinds.
struct EndOnUnwind<'r>(&'r AtomicBool);

impl Drop for EndOnUnwind<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
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
        let (mut threads, limit) = options.share(bytes);
        // A stream of one thread can be used by no other; and who may not block must not have others block for him.
        if timeline.kind() == StreamKind::PerThread || completion::may_block::<B>(operation).is_err() {
            threads = 1;
        }
        let mut list = Vec::new();
        let Ok(()) = pieces(pair, limit, &mut |piece| {
            list.push(piece.clone());
            Ok::<_, Infallible>(())
        });
        let largest = list.iter().map(|piece| piece.len * piece.item).max().unwrap_or(0);
        // Several threads use blocks of one size, whatever the transfer, so that the next one finds them again.
        let block_bytes = if threads > 1 { largest.max(options.block_bytes) } else { largest };
        let streaming = match options.streaming_stores {
            StreamingStores::Auto => way == Way::Down && bytes >= STREAMING,
            StreamingStores::Always => true,
            StreamingStores::Never => false,
        };
        Self {
            device,
            timeline,
            operation,
            place,
            caller,
            way,
            streaming,
            threads: threads.min(list.len()),
            block_bytes,
            marks: list.len() > 2,
            pieces: Mutex::new(list.into_iter()),
            ended: AtomicBool::new(false),
            failure: Mutex::new(None),
            done: AtomicU64::new(0),
            total: bytes as u64,
            ticket: AtomicU64::new(0),
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
    pub(super) unsafe fn run<T: Element>(&self, watch: Option<Watch<'_>>) -> Result<u64> {
        let mut quiet = unwatched;
        let watch = watch.unwrap_or(&mut quiet);
        let mut told = 0;
        let mut telling = |progress: Progress| {
            told = progress.done;
            watch(progress)
        };
        let theirs = || self.work::<T>(false, &mut unwatched);
        self.device.0.staging.crew().run(self.threads.saturating_sub(1), &theirs, || {
            let _end = EndOnUnwind(&self.ended);
            self.work::<T>(true, &mut telling);
        });
        if told < self.total && self.failure.lock().is_none() {
            // Others have moved the last piece: it is too late to cancel.
            let _ = watch(Progress { done: self.total, total: self.total });
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

    fn fail(&self, error: Error) {
        self.ended.store(true, Ordering::Relaxed);
        self.failure.lock().get_or_insert(error);
    }

    fn has_more(&self) -> bool {
        !self.ended.load(Ordering::Relaxed) && self.pieces.lock().len() > 0
    }

    fn take(&self) -> Option<Pair> {
        if self.ended.load(Ordering::Relaxed) { None } else { self.pieces.lock().next() }
    }

    /// What one thread does: until there are no pieces left, or something failed.
    fn work<T: Element>(&self, is_caller: bool, watch: Watch<'_>) {
        let mut blocks = Blocks { ring: self, blocks: [None, None], turn: 0 };
        // A block that the engine is filling.
        let mut filling: Option<(usize, Pair, u64)> = None;
        loop {
            let mut begun = None;
            if self.has_more() {
                let at = match blocks.next() {
                    Ok(at) => at,
                    // Others have blocks; the calling thread must have one.
                    Err(error) if !is_caller && error.is_out_of_memory() => return,
                    Err(error) => return self.fail(error),
                };
                if let Some(full) = filling.take_if(|(full, ..)| *full == at) {
                    self.land::<T>(&mut blocks, full, watch);
                }
                if let Some(piece) = self.take() {
                    match self.begin::<T>(&blocks, at, &piece) {
                        Ok(ticket) => begun = Some((at, piece, ticket)),
                        Err(error) => return self.fail(error),
                    }
                }
            }
            let is_last = begun.is_none();
            if self.way == Way::Up {
                if let Some((_, piece, _)) = &begun {
                    self.tell(piece, watch);
                }
            } else if let Some(full) = std::mem::replace(&mut filling, begun) {
                self.land::<T>(&mut blocks, full, watch);
            }
            if is_last {
                return;
            }
        }
    }

    /// Fills the block and enqueues the copy out of it, or enqueues the copy into it.
    fn begin<T: Element>(&self, blocks: &Blocks<'_, '_, B>, at: usize, piece: &Pair) -> Result<u64> {
        let staged = blocks.staged(at, piece)?;
        if self.way == Way::Up {
            // SAFETY: `run`'s caller keeps the memory valid; the block is ours, and its last copy is waited for.
            unsafe { staged.exchange::<T>(self.operation, piece, self.caller, Way::Up, self.streaming)? };
        }
        let ticket = staged.copy(self.timeline, self.operation, piece, self.place, self.way)?;
        self.ticket.fetch_max(ticket, Ordering::Relaxed);
        if self.marks {
            // Without a mark of its own the copy is waited for together with everything behind it: slow, not wrong.
            let _ = self.timeline.point(ticket);
        }
        Ok(ticket)
    }

    /// Empties a block once the engine has filled it.
    fn land<T: Element>(
        &self,
        blocks: &mut Blocks<'_, '_, B>,
        (at, piece, ticket): (usize, Pair, u64),
        watch: Watch<'_>,
    ) {
        let settled = self.timeline.settle(ticket);
        if !settled.done {
            blocks.leak(at);
        }
        let landed = settled.result.map_err(|error| error.in_operation(self.operation)).and_then(|()| {
            let staged = blocks.staged(at, &piece)?;
            // SAFETY: `run`'s caller keeps the memory valid, pieces are disjoint; the copy into the block is done.
            unsafe { staged.exchange::<T>(self.operation, &piece, self.caller, Way::Down, self.streaming) }
        });
        match landed {
            Ok(()) => self.tell(&piece, watch),
            Err(error) => self.fail(error),
        }
    }

    fn tell(&self, piece: &Pair, watch: Watch<'_>) {
        let bytes = (piece.len * piece.item) as u64;
        let done = self.done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if watch(Progress { done, total: self.total }) == ControlFlow::Break(()) {
            self.fail(Error::new(B::NAME, self.operation, ErrorKind::Cancelled));
        }
    }
}
