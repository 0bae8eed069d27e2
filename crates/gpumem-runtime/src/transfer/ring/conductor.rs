//! What the calling thread of a ring does.

use super::{Ring, turn::Turn};
use crate::{
    layout::Pair,
    memory::Staging,
    transfer::{bell::look, pieces::Pieces, staged::Way},
};
use gpumem_core::{Backend, Result};
use std::{
    collections::VecDeque,
    sync::{Arc, atomic::Ordering},
};

/// Parts for each thread that lie open in an upload, so that nobody runs out of them while the calling thread is busy.
const AHEAD: usize = 4;
/// The same where the calling thread moves parts too, which it is to begin with soon.
const FEW_AHEAD: usize = 2;
/// The driver is asked at one look of so many whether a copy is over.
const ASKED_EVERY: u32 = 16;

/// Cuts the transfer into pieces, opens blocks, calls the driver: all that is done by one thread. It needs no lock therefore, and
/// the driver's never has two who wait for it.
pub(super) struct Conductor<'r, 'a, B: Backend> {
    ring: &'r Ring<'a, B>,
    pieces: Pieces,
    /// Blocks that are neither filled nor drained, with the ticket of the copy that uses them, the oldest first.
    idle: VecDeque<(Arc<Staging<B>>, u64)>,
    /// Blocks there are, and how many there may be.
    made: usize,
    most: usize,
    /// On the way down: what the engine is copying, with the tickets.
    coming: VecDeque<(Arc<Turn<B>>, u64)>,
    /// What lies open to all threads, or has just been moved.
    open: VecDeque<Arc<Turn<B>>>,
    last: Option<Arc<Turn<B>>>,
}

impl<'r, 'a, B: Backend> Conductor<'r, 'a, B> {
    pub(super) fn new(ring: &'r Ring<'a, B>, pair: &Pair) -> Self {
        Self {
            ring,
            pieces: Pieces::new(pair),
            idle: VecDeque::new(),
            made: 0,
            most: ring.share.blocks,
            coming: VecDeque::new(),
            open: VecDeque::new(),
            last: None,
        }
    }

    /// Until everything has been moved, or something failed. Calls `after_each` whenever more is done.
    pub(super) fn run(&mut self, after_each: &mut dyn FnMut()) -> Result<()> {
        while !self.ring.work.has_ended() {
            let untaken: usize = self.open.iter().map(|turn| turn.untaken()).sum();
            // Threads without work come first: they are what the engine will wait for. On the way down it is the engine itself.
            let is_short_of_work = untaken == 0 || self.ring.way == Way::Down;
            if is_short_of_work && self.start()? || self.receive()? {
                continue;
            }
            if self.finish()? {
                after_each();
                continue;
            }
            let is_to_work = self.ring.work.is_for_all();
            let ahead = if is_to_work { FEW_AHEAD } else { AHEAD };
            if untaken < ahead * self.ring.share.threads && self.start()? {
                continue;
            }
            if is_to_work && self.work()? {
                after_each();
                continue;
            }
            if self.pieces.is_empty() && self.coming.is_empty() && self.open.is_empty() {
                break;
            }
            self.wait()?;
        }
        Ok(())
    }

    /// Begins with the next piece: opens a block for it, or enqueues the copy into one. `false`: there is no piece, or no free
    /// block.
    fn start(&mut self) -> Result<bool> {
        let ring = self.ring;
        if self.pieces.is_empty() {
            return Ok(false);
        }
        let Some(staging) = self.block()? else { return Ok(false) };
        let Some(piece) = self.pieces.next(ring.block_bytes(self.pieces.left())) else { return Ok(false) };
        let part_bytes = ring.share.part(piece.len * piece.item);
        let turn = Turn::new(ring.work.operation, staging, piece, part_bytes)?;
        match ring.way {
            Way::Up => self.publish(turn),
            Way::Down => {
                let ticket = ring.enqueue(&turn)?;
                self.coming.push_back((turn, ticket));
            }
        }
        Ok(true)
    }

    /// A block that nothing uses.
    fn block(&mut self) -> Result<Option<Arc<Staging<B>>>> {
        let ring = self.ring;
        // While there may be more blocks it is not worth asking.
        let ask = self.made == self.most;
        if self.idle.front().is_some_and(|(_, ticket)| ring.work.has_passed(*ticket, ask)) {
            return Ok(self.idle.pop_front().map(|(staging, _)| staging));
        }
        if self.made == self.most {
            return Ok(None);
        }
        match Staging::take(ring.work.device, ring.work.operation, ring.memory_bytes) {
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
    fn publish(&mut self, turn: Arc<Turn<B>>) {
        match &self.last {
            Some(last) => last.set_next(&turn),
            None => *self.ring.entry.lock() = Some(turn.clone()),
        }
        self.last = Some(turn.clone());
        self.open.push_back(turn);
        if self.pieces.is_empty() && self.coming.is_empty() {
            self.ring.closed.store(true, Ordering::Release);
        }
        self.ring.work.bell.ring();
    }

    /// Opens a block whose copy has come down. `false`: there is none.
    fn receive(&mut self) -> Result<bool> {
        let Some((_, ticket)) = self.coming.front() else { return Ok(false) };
        if !self.ring.work.has_passed(*ticket, true) {
            return Ok(false);
        }
        self.receive_first()
    }

    /// Waits for the first copy on its way, and opens its block.
    fn receive_first(&mut self) -> Result<bool> {
        let Some((turn, ticket)) = self.coming.pop_front() else { return Ok(false) };
        self.ring.work.settle(&turn.staging, ticket)?;
        // Nothing lands of a copy that failed, whoever was told of it.
        let failed = self.ring.work.timeline.fault_since(ticket.saturating_sub(1));
        failed.map_err(|error| error.in_operation(self.ring.work.operation))?;
        self.publish(turn);
        Ok(true)
    }

    /// Sends a block that has been filled, or takes back one that has been drained. `false`: there is none.
    fn finish(&mut self) -> Result<bool> {
        let ring = self.ring;
        let Some(at) = self.open.iter().position(|turn| turn.is_done()) else { return Ok(false) };
        let Some(turn) = self.open.remove(at) else { return Ok(false) };
        let ticket = match ring.way {
            Way::Up => ring.enqueue(&turn)?,
            Way::Down => 0,
        };
        if ring.way == Way::Up {
            ring.work.has_done(turn.bytes());
        }
        self.idle.push_back((turn.staging.clone(), ticket));
        if at == 0
            && let Some(first) = self.open.front().or(self.last.as_ref())
        {
            // Whoever comes now need not go along what is done.
            *ring.entry.lock() = Some(first.clone());
        }
        Ok(true)
    }

    /// Moves a part, if there is one that nobody has taken.
    fn work(&self) -> Result<bool> {
        let Some((turn, part)) = self.open.iter().find_map(|turn| Some((turn, turn.take()?))) else {
            return Ok(false);
        };
        self.ring.move_part(turn, part)?;
        Ok(true)
    }

    /// Waits until there is something to do again.
    fn wait(&mut self) -> Result<()> {
        let ring = self.ring;
        let (open, idle, coming) = (&self.open, &self.idle, &self.coming);
        let is_done = || ring.work.has_ended() || open.iter().any(|turn| turn.is_done());
        let copy = match ring.way {
            Way::Up if self.pieces.is_empty() => None,
            Way::Up => idle.front().map(|(_, ticket)| *ticket),
            Way::Down => coming.front().map(|(_, ticket)| *ticket),
        };
        let something = |looks: u32| {
            let ask = looks.is_multiple_of(ASKED_EVERY);
            is_done() || ask && copy.is_some_and(|ticket| ring.work.has_passed(ticket, true))
        };
        // Nobody to wait for but the engine: then the driver waits best.
        if !open.is_empty() && look(something) {
            return Ok(());
        }
        if open.iter().any(|turn| turn.untaken() > 0) {
            // The others are held up.
            return self.work().map(drop);
        }
        match (ring.way, copy) {
            (Way::Down, Some(_)) => self.receive_first().map(drop),
            (Way::Up, Some(ticket)) if open.is_empty() => match self.idle.front() {
                Some((staging, _)) => ring.work.settle(staging, ticket),
                None => Ok(()),
            },
            _ => {
                ring.work.bell.sleep(is_done);
                Ok(())
            }
        }
    }
}
