//! What the calling thread of a circular buffer does.

use super::Circular;
use crate::transfer::bell::look;
use gpumem_core::{Backend, Result};
use std::{collections::VecDeque, sync::atomic::Ordering};

/// What is sent at once is at least about a fourth of what comes before it: threads fill hardly faster than the engine takes, which
/// pauses between copies. Of what is longer it would wait for the end, and what is shorter would have it pause more often.
const RAMP: usize = 4;
/// A block that is filled again is sent in at least so many copies: two are under way while what the next one takes is filled.
const COPIES_OF_A_BLOCK: usize = 3;
/// The driver is asked at one look of so many whether a copy is over.
const ASKED_EVERY: u32 = 16;

/// Sends what has been filled: all calls of the driver are made by one thread.
pub(super) struct Conductor<'c, 'a, B: Backend> {
    circular: &'c Circular<'a, B>,
    /// Parts that have been filled without a gap, and those that have been sent.
    filled: usize,
    sent: usize,
    /// Copies that may be under way: their tickets, and where their parts end.
    copies: VecDeque<(u64, usize)>,
}

impl<'c, 'a, B: Backend> Conductor<'c, 'a, B> {
    pub(super) fn new(circular: &'c Circular<'a, B>) -> Self {
        Self { circular, filled: 0, sent: 0, copies: VecDeque::new() }
    }

    /// Until everything has been sent, or something failed. Calls `after_each` whenever more is done.
    pub(super) fn run(&mut self, after_each: &mut dyn FnMut()) -> Result<()> {
        let circular = self.circular;
        while self.sent < circular.parts && !circular.work.has_ended() {
            self.reclaim(true);
            self.look_what_is_filled();
            if let Some(end) = self.ready() {
                self.send(end)?;
                after_each();
            } else if !(circular.work.is_for_all() && circular.fill_next()?) {
                self.wait()?;
            }
        }
        Ok(())
    }

    fn look_what_is_filled(&mut self) {
        while self.filled < self.circular.parts && self.circular.is_moved(self.filled) {
            self.filled += 1;
        }
    }

    /// Gives the places of what has been copied to the threads again. Asks the driver if `ask`.
    fn reclaim(&mut self, ask: bool) {
        let circular = self.circular;
        let mut end = None;
        while let Some((ticket, parts)) = self.copies.front()
            && circular.work.has_passed(*ticket, ask)
        {
            end = Some(*parts);
            self.copies.pop_front();
        }
        if let Some(end) = end {
            circular.open.store((end + circular.moved.len()).min(circular.parts), Ordering::Release);
            circular.work.bell.ring();
        }
    }

    /// Where what is to be sent now ends.
    fn ready(&self) -> Option<usize> {
        let circular = self.circular;
        let slots = circular.moved.len();
        let all = circular.parts;
        let most = if all > slots { slots.div_ceil(COPIES_OF_A_BLOCK) } else { all };
        // At most up to the end of the block.
        let end = self.filled.min(self.sent + most).min(self.sent / slots * slots + slots);
        let parts = end - self.sent;
        // Nothing is too short once the last parts have been opened.
        let is_last = circular.open.load(Ordering::Relaxed) == all;
        let shortest = circular.share.shortest.div_ceil(circular.part).min(most);
        let least = if is_last { shortest } else { (self.sent / RAMP).clamp(shortest, most) };
        let is_cut_short = end == all || parts == most || end.is_multiple_of(slots);
        // One copy is under way and no other behind it, or none.
        (parts > 0 && (parts >= least || is_cut_short) && self.copies.len() < 2).then_some(end)
    }

    fn send(&mut self, end: usize) -> Result<()> {
        let parts = self.sent..end;
        let ticket = self.circular.enqueue(&parts)?;
        self.copies.push_back((ticket, end));
        self.sent = end;
        self.circular.work.has_done(self.circular.of_run(parts).len());
        Ok(())
    }

    /// Waits until there is something to do again.
    fn wait(&mut self) -> Result<()> {
        let circular = self.circular;
        let something = |looks: u32| {
            self.reclaim(looks.is_multiple_of(ASKED_EVERY));
            self.look_what_is_filled();
            circular.work.has_ended() || self.ready().is_some()
        };
        if look(something) || circular.fill_next()? {
            return Ok(());
        }
        // What has a place has been taken. If it has been filled too, the driver waits best.
        match self.copies.front() {
            Some((ticket, _)) if self.filled == circular.open.load(Ordering::Relaxed) => {
                circular.work.settle(&circular.staging, *ticket)
            }
            _ => {
                let filled = self.filled;
                circular.work.bell.sleep(|| circular.work.has_ended() || circular.is_moved(filled));
                Ok(())
            }
        }
    }
}
