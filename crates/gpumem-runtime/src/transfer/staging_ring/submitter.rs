//! What the calling thread of a staging ring does.

use super::StagingRing;
use crate::transfer::TUNING;
use crate::transfer::event_count::spin_until;
use gpumem_core::{Backend, Result};
use std::{collections::VecDeque, sync::atomic::Ordering};

/// Sends what has been filled: all calls of the driver are made by one thread.
pub(super) struct RingSubmitter<'c, 'a, B: Backend> {
    staging_ring: &'c StagingRing<'a, B>,
    /// Parts that have been filled without a gap, and those that have been sent.
    filled: usize,
    sent: usize,
    /// Copies that may be under way: their submission indexes, and where their parts end.
    copies: VecDeque<(u64, usize)>,
}

impl<'c, 'a, B: Backend> RingSubmitter<'c, 'a, B> {
    pub(super) fn new(staging_ring: &'c StagingRing<'a, B>) -> Self {
        Self { staging_ring, filled: 0, sent: 0, copies: VecDeque::new() }
    }

    /// Until everything has been sent, or something failed. Calls `on_progress` whenever more is done.
    pub(super) fn run(&mut self, on_progress: &mut dyn FnMut()) -> Result<()> {
        let staging_ring = self.staging_ring;
        while self.sent < staging_ring.parts && !staging_ring.state.has_ended() {
            self.reclaim(true);
            self.look_what_is_filled();
            if let Some(end) = self.ready() {
                self.send(end)?;
                on_progress();
            } else if !(staging_ring.state.caller_also_copies() && staging_ring.fill_next()?) {
                self.wait()?;
            }
        }
        Ok(())
    }

    fn look_what_is_filled(&mut self) {
        while self.filled < self.staging_ring.parts && self.staging_ring.is_moved(self.filled) {
            self.filled += 1;
        }
    }

    /// Gives the places of what has been copied to the threads again. Asks the driver if `ask`.
    fn reclaim(&mut self, ask: bool) {
        let staging_ring = self.staging_ring;
        let mut end = None;
        while let Some((submission, parts)) = self.copies.front()
            && staging_ring.state.is_complete(*submission, ask)
        {
            end = Some(*parts);
            self.copies.pop_front();
        }
        if let Some(end) = end {
            staging_ring
                .open
                .store((end + staging_ring.moved.len()).min(staging_ring.parts), Ordering::Release);
            staging_ring.state.event_count.notify_all();
        }
    }

    /// Where what is to be sent now ends.
    fn ready(&self) -> Option<usize> {
        let staging_ring = self.staging_ring;
        let slots = staging_ring.moved.len();
        let all = staging_ring.parts;
        let most = if all > slots { slots.div_ceil(TUNING.copies_of_a_ring) } else { all };
        // At most up to the end of the block.
        let end = self.filled.min(self.sent + most).min(self.sent / slots * slots + slots);
        let parts = end - self.sent;
        // Nothing is too short once the last parts have been opened.
        let is_last = staging_ring.open.load(Ordering::Relaxed) == all;
        let shortest = staging_ring.config.shortest.div_ceil(staging_ring.part).min(most);
        let least = if is_last { shortest } else { (self.sent / TUNING.ramp).clamp(shortest, most) };
        let is_cut_short = end == all || parts == most || end.is_multiple_of(slots);
        // One copy is under way and no other behind it, or none.
        (parts > 0 && (parts >= least || is_cut_short) && self.copies.len() < 2).then_some(end)
    }

    fn send(&mut self, end: usize) -> Result<()> {
        let parts = self.sent..end;
        let submission = self.staging_ring.enqueue(&parts)?;
        self.copies.push_back((submission, end));
        self.sent = end;
        self.staging_ring.state.has_done(self.staging_ring.of_run(parts).len());
        Ok(())
    }

    /// Waits until there is something to do again.
    fn wait(&mut self) -> Result<()> {
        let staging_ring = self.staging_ring;
        let something = |looks: u32| {
            self.reclaim(looks.is_multiple_of(TUNING.looks_per_query));
            self.look_what_is_filled();
            staging_ring.state.has_ended() || self.ready().is_some()
        };
        if spin_until(something) || staging_ring.fill_next()? {
            return Ok(());
        }
        // What has a place has been taken. If it has been filled too, the driver waits best.
        match self.copies.front() {
            Some((submission, _)) if self.filled == staging_ring.open.load(Ordering::Relaxed) => {
                staging_ring.state.wait_host(&staging_ring.staging, *submission)
            }
            _ => {
                let filled = self.filled;
                staging_ring
                    .state
                    .event_count
                    .wait_until(|| staging_ring.state.has_ended() || staging_ring.is_moved(filled));
                Ok(())
            }
        }
    }
}
