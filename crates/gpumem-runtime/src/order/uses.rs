//! Who uses an allocation: last writers and the readers since, by byte extent.

use smallvec::SmallVec;
use std::ops::Range;

/// A place in some queue of work, as the log needs to know it.
pub(crate) trait Position: Clone {
    /// Which queue. Positions of one queue are ordered by their ticket.
    fn queue(&self) -> u64;
    /// Whether the queue is known to have passed the ticket. Cheap; may say `false` too often.
    fn has_passed(&self, ticket: u64) -> bool;
}

/// One remembered use.
#[derive(Debug, Clone)]
pub(crate) struct Use<P> {
    pub(crate) extent: Range<usize>,
    pub(crate) write: bool,
    pub(crate) by: P,
    pub(crate) ticket: u64,
}

/// How many uses are remembered before they are merged. Merging may over-wait, never under-wait.
const LIMIT: usize = 16;

/// The uses of one allocation that later work may have to wait for.
#[derive(Debug)]
pub(crate) struct UseLog<P> {
    uses: SmallVec<[Use<P>; 2]>,
}

fn meet(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

fn covers(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

fn union(a: &Range<usize>, b: &Range<usize>) -> Range<usize> {
    a.start.min(b.start)..a.end.max(b.end)
}

impl<P: Position> UseLog<P> {
    pub(crate) fn new() -> Self {
        Self { uses: SmallVec::new() }
    }

    /// Everything that a use of `extent` must wait for: writers, and readers too if it is a write.
    /// A full log adds everything it holds, because [`note`](Self::note) will then fold it into one entry.
    pub(crate) fn conflicts<'a>(
        &'a self,
        extent: &'a Range<usize>,
        write: bool,
    ) -> impl Iterator<Item = &'a Use<P>> {
        let full = self.uses.len() >= LIMIT;
        self.uses
            .iter()
            .filter(move |entry| full || (meet(&entry.extent, extent) && (write || entry.write)))
            .filter(|entry| !entry.by.has_passed(entry.ticket))
    }

    /// Whether all uses are of one queue, whose order is enough then.
    #[inline]
    pub(crate) fn is_only_of(&self, queue: u64) -> bool {
        self.uses.iter().all(|entry| entry.by.queue() == queue)
    }

    /// Makes room: forgets what is done, and merges entries of one queue. Call before [`conflicts`](Self::conflicts),
    /// under the same lock as the [`note`](Self::note) that follows.
    #[inline]
    pub(crate) fn tidy(&mut self) {
        if self.uses.len() < LIMIT {
            return;
        }
        self.uses.retain(|entry| !entry.by.has_passed(entry.ticket));
        if self.uses.len() < LIMIT {
            return;
        }
        let mut merged: SmallVec<[Use<P>; 2]> = SmallVec::new();
        for entry in self.uses.drain(..) {
            match merged.iter_mut().find(|old| old.by.queue() == entry.by.queue() && old.write == entry.write)
            {
                Some(old) => {
                    old.extent = union(&old.extent, &entry.extent);
                    old.ticket = old.ticket.max(entry.ticket);
                }
                None => merged.push(entry),
            }
        }
        self.uses = merged;
    }

    /// Remembers a use that has been enqueued behind everything that [`conflicts`](Self::conflicts) named.
    #[inline]
    pub(crate) fn note(&mut self, extent: Range<usize>, write: bool, by: &P, ticket: u64) {
        if extent.is_empty() {
            return;
        }
        if let [only] = self.uses.as_mut_slice()
            && only.by.queue() == by.queue()
            && covers(&extent, &only.extent)
            && (write || !only.write)
        {
            // The usual loop on one stream.
            (only.extent, only.write, only.ticket) = (extent, write, ticket);
            return;
        }
        self.note_among(extent, write, by, ticket);
    }

    /// [`note`](Self::note) in a log with other uses.
    fn note_among(&mut self, extent: Range<usize>, write: bool, by: &P, ticket: u64) {
        if self.uses.len() >= LIMIT {
            // `by` has waited for all of them, so its ticket stands for all of them.
            let whole = self.uses.iter().fold(extent, |whole, entry| union(&whole, &entry.extent));
            let any_write = write || self.uses.iter().any(|entry| entry.write);
            self.uses.clear();
            self.uses.push(Use { extent: whole, write: any_write, by: by.clone(), ticket });
            return;
        }
        // Whoever waits for a write has waited for all that it covered; a read stands for covered reads of its queue.
        let (queue, mut kept) = (by.queue(), false);
        self.uses.retain(|entry| {
            let same = entry.by.queue() == queue;
            if !covers(&extent, &entry.extent) || !(write || (!entry.write && same)) {
                return true;
            }
            if same && !kept {
                // The entry is written over in its place, without a new reference.
                (entry.extent, entry.write, entry.ticket, kept) = (extent.clone(), write, ticket, true);
                return true;
            }
            false
        });
        if !kept {
            self.uses.push(Use { extent, write, by: by.clone(), ticket });
        }
    }

    /// Remembers a use that somebody else may have enqueued without waiting for what is in the log: everything stays.
    pub(crate) fn note_others(&mut self, extent: &Range<usize>, write: bool, by: &P, ticket: u64) {
        if extent.is_empty() {
            return;
        }
        let same = |entry: &&mut Use<P>| {
            entry.by.queue() == by.queue() && entry.write == write && entry.extent == *extent
        };
        match self.uses.iter_mut().find(same) {
            Some(entry) => entry.ticket = ticket,
            None => self.uses.push(Use { extent: extent.clone(), write, by: by.clone(), ticket }),
        }
    }

    /// Remembers work that used the memory before this allocation had it: whatever comes, reads included, waits for it.
    /// For a log of nothing else.
    pub(crate) fn inherit(&mut self, extent: Range<usize>, by: P, ticket: u64) {
        debug_assert!(self.uses.len() < LIMIT);
        self.uses.push(Use { extent, write: true, by, ticket });
    }

    /// All remembered uses.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Use<P>> {
        self.uses.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A queue that never passes anything.
    #[derive(Debug, Clone, Copy)]
    struct Queue(u64);
    impl Position for Queue {
        fn queue(&self) -> u64 {
            self.0
        }
        fn has_passed(&self, _: u64) -> bool {
            false
        }
    }

    #[derive(Debug, Clone)]
    struct Step {
        queue: u64,
        extent: Range<usize>,
        write: bool,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = (0u64..5, 0usize..24, 1usize..12, any::<bool>())
            .prop_map(|(queue, start, length, write)| Step { queue, extent: start..start + length, write });
        // Enough to fill a log and merge it, even where every step takes milliseconds.
        prop::collection::vec(step, 1..if cfg!(miri) { 32 } else { 80 })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: if cfg!(miri) { 3 } else { 2000 }, ..ProptestConfig::default() })]

        /// Every conflicting earlier step is ordered before a later one, through waits and queue order, whatever was merged.
        #[test]
        fn never_under_waits(steps in steps()) {
            let mut log: UseLog<Queue> = UseLog::new();
            let mut tickets = [0u64; 5];
            // before[i]: the steps that are ordered before step i.
            let mut before: Vec<Vec<bool>> = Vec::new();
            let mut last_of: [Option<usize>; 5] = [None; 5];
            let mut index_of = std::collections::HashMap::new();
            for (now, step) in steps.iter().enumerate() {
                let mut ordered = vec![false; steps.len()];
                let follow = |earlier: usize, ordered: &mut Vec<bool>| {
                    ordered[earlier] = true;
                    let inherited: &Vec<bool> = &before[earlier];
                    for (slot, value) in ordered.iter_mut().zip(inherited) { *slot |= *value; }
                };
                if let Some(previous) = last_of[step.queue as usize] { follow(previous, &mut ordered); }
                log.tidy();
                for entry in log.conflicts(&step.extent, step.write) {
                    follow(index_of[&(entry.by.0, entry.ticket)], &mut ordered);
                }
                for (earlier, old) in steps[..now].iter().enumerate() {
                    if meet(&old.extent, &step.extent) && (old.write || step.write) {
                        prop_assert!(ordered[earlier], "step {now} does not wait for step {earlier}");
                    }
                }
                let ticket = &mut tickets[step.queue as usize];
                *ticket += 1;
                index_of.insert((step.queue, *ticket), now);
                log.note(step.extent.clone(), step.write, &Queue(step.queue), *ticket);
                prop_assert!(log.uses.len() <= LIMIT);
                last_of[step.queue as usize] = Some(now);
                before.push(ordered);
            }
        }
    }

    #[test]
    fn disjoint_parts_do_not_wait_for_each_other() {
        let mut log = UseLog::new();
        log.note(0..64, true, &Queue(1), 1);
        assert_eq!(log.conflicts(&(64..128), true).count(), 0);
        log.note(64..128, true, &Queue(2), 1);
        assert_eq!(log.conflicts(&(0..64), true).count(), 1);
        assert_eq!(log.conflicts(&(63..65), false).count(), 2);
    }

    #[test]
    fn readers_do_not_wait_for_readers() {
        let mut log = UseLog::new();
        log.note(0..8, true, &Queue(1), 1);
        log.note(0..8, false, &Queue(2), 1);
        assert_eq!(log.conflicts(&(0..8), false).map(|entry| entry.by.0).collect::<Vec<_>>(), [1]);
        assert_eq!(log.conflicts(&(0..8), true).count(), 2);
    }
}
