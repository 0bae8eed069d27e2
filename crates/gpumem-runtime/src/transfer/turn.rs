//! What the threads of a ring share: blocks in use, and who waits for the driver.

use super::pieces::Pieces;
use crate::{
    layout::Pair,
    memory::Staging,
    order::{Settled, Timeline},
};
use gpumem_core::Backend;
use std::{
    collections::VecDeque,
    sync::Arc,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
};

/// What threads take their work from.
pub(super) struct State<B: Backend> {
    pub(super) pieces: Pieces,
    /// Most bytes of the next piece.
    pub(super) limit: usize,
    /// Blocks that have parts for whoever comes.
    pub(super) open: VecDeque<Arc<Turn<B>>>,
    /// Blocks that are neither filled nor drained, with the ticket of the copy that uses them, the oldest first.
    pub(super) idle: VecDeque<(Arc<Staging<B>>, u64)>,
    /// Blocks there are, and how many there may be.
    pub(super) made: usize,
    pub(super) most: usize,
    /// Threads that are just opening a block, without the lock.
    pub(super) opening: usize,
}

/// A piece in a block.
pub(super) struct Turn<B: Backend> {
    pub(super) staging: Arc<Staging<B>>,
    pub(super) piece: Pair,
    /// Of the copy that ends before threads may use the block: on the way up the one out of it, on the way down the one
    /// into it.
    pub(super) ticket: u64,
    /// Threads take a part without the lock of the state, which they would meet on: parts are moved in microseconds.
    pub(super) parts: Vec<Pair>,
    pub(super) next: AtomicUsize,
    /// Bytes that have not been filled or drained.
    pub(super) left: AtomicUsize,
}

impl<B: Backend> Turn<B> {
    pub(super) fn has_more(&self) -> bool {
        self.next.load(Ordering::Relaxed) < self.parts.len()
    }

    pub(super) fn part(&self) -> Option<&Pair> {
        self.parts.get(self.next.fetch_add(1, Ordering::Relaxed))
    }
}

/// Looks before a waiting thread lets others run, and before it waits as the driver does: some hundred microseconds, in
/// which the copy of a block is over if nothing else is before it.
const LOOKS: u32 = 1 << 10;
const MOST_LOOKS: u32 = LOOKS + (1 << 8);

/// Which of several threads waits for the driver.
#[derive(Debug, Default)]
pub(super) struct Asking(AtomicBool);

impl Asking {
    /// Waits for a copy. Only one thread asks the driver, where many at a time would hold up the one that enqueues; the
    /// others look for a while whether it has heard.
    pub(super) fn settle<B: Backend>(&self, timeline: &Timeline<B>, ticket: u64) -> Settled {
        let mut looks = 0;
        while !timeline.has_passed(ticket) && looks < MOST_LOOKS {
            if !self.0.swap(true, Ordering::Acquire) {
                let _asked = Asked(&self.0);
                return timeline.settle(ticket);
            }
            while self.0.load(Ordering::Relaxed) && !timeline.has_passed(ticket) && looks < MOST_LOOKS {
                looks += 1;
                if looks < LOOKS { std::hint::spin_loop() } else { std::thread::yield_now() }
            }
        }
        timeline.settle(ticket)
    }
}

/// The thread that asks the driver does so no more.
struct Asked<'r>(&'r AtomicBool);

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
