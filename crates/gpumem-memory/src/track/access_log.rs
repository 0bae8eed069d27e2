//! The uses of an allocation: its last writers and the readers since, by byte extent.

use smallvec::SmallVec;
use std::{mem::ManuallyDrop, ops::Range};

/// A place in some queue of work, as the log needs to know it.
pub trait QueueRef: Clone {
    /// Which queue. Positions of one queue are ordered by their submission index.
    fn queue(&self) -> u64;
    fn is(&self, other: &Self) -> bool;
    /// Whether the queue is known to have passed the submission index. Cheap; may say `false` too often.
    fn is_complete(&self, submission: u64) -> bool;
    /// Whether that work was aborted, although the queue has passed it: what it wrote is not to be read. Asked for what is complete.
    fn has_aborted(&self, submission: u64) -> bool {
        let _ = submission;
        false
    }
}

/// One remembered use.
///
/// A use that later ones cover may stay as a *spent* entry, with submission index 0 and no bytes. It is never waited
/// for. When its queue uses the memory again, the entry is overwritten without a new reference to the queue. This helps
/// streams that take turns on one array.
#[derive(Debug, Clone)]
pub struct LoggedAccess<P> {
    pub(crate) extent: Range<usize>,
    pub(crate) write: bool,
    /// Whether it used the memory before it was allocated anew: later work follows it, and what it was to write is gone.
    is_inherited: bool,
    pub by: P,
    pub submission: u64,
}

impl<P> LoggedAccess<P> {
    #[inline]
    fn new(extent: Range<usize>, write: bool, by: P, submission: u64) -> Self {
        Self { extent, write, is_inherited: false, by, submission }
    }

    #[inline]
    fn is_retired(&self) -> bool {
        self.submission == 0
    }

    /// Whether it never needs to be waited for, nor asked whether it was aborted.
    #[inline]
    fn is_over(&self) -> bool
    where
        P: QueueRef,
    {
        let may_be_void = self.write && !self.is_inherited;
        self.is_retired()
            || self.by.is_complete(self.submission) && !(may_be_void && self.by.has_aborted(self.submission))
    }

    #[inline]
    fn retire(&mut self) {
        self.update(0..0, false, 0);
    }

    #[inline]
    fn update(&mut self, extent: Range<usize>, write: bool, submission: u64) {
        (self.extent, self.write, self.is_inherited, self.submission) = (extent, write, false, submission);
    }
}

/// How many uses are remembered before the next work merges them. Merging may over-wait, never under-wait.
const LIMIT: usize = 16;
/// How many uses are remembered without a heap allocation; as long as there are no more, spent ones stay.
const INLINE: usize = 2;
/// One in so many uses of a queue looks whether the other queue that is remembered is done with the memory.
const ASKED_EVERY: u64 = 64;

/// The uses of one allocation that later work may have to wait for.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub struct AccessLog<P> {
    uses: ManuallyDrop<SmallVec<[LoggedAccess<P>; INLINE]>>,
    /// Which of them has been [noted](Self::note) last; none of them where something else has been changed since. Or [`FULL`].
    last: usize,
}

impl<P> Drop for AccessLog<P> {
    /// In line for the log of an array without uses: there is nothing to drop.
    #[inline(always)]
    fn drop(&mut self) {
        if self.uses.spilled() || !self.uses.is_empty() {
            // SAFETY: dropped here alone.
            unsafe { ManuallyDrop::drop(&mut self.uses) };
        }
    }
}

/// The place of a use that is not there.
const NONE: usize = usize::MAX;
/// As [`NONE`], where [`compact`](AccessLog::compact) has found no room: [`conflicts`](AccessLog::conflicts) returns everything,
/// and the first [`note`](AccessLog::note) that follows folds it into one entry. Both must decide alike, and the length changes
/// between them where work has several uses of one allocation.
const FULL: usize = usize::MAX - 1;

fn meet(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

fn covers(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

fn union(a: &Range<usize>, b: &Range<usize>) -> Range<usize> {
    a.start.min(b.start)..a.end.max(b.end)
}

impl<P: QueueRef> Default for AccessLog<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: QueueRef> AccessLog<P> {
    pub fn new() -> Self {
        Self { uses: ManuallyDrop::new(SmallVec::new()), last: NONE }
    }

    /// Everything that a use of `extent` must wait for: writers, and readers too if it is a write.
    /// A full log adds everything it holds, because `note` will then fold it into one entry.
    #[inline]
    pub fn conflicts<'a>(
        &'a self,
        extent: &'a Range<usize>,
        write: bool,
    ) -> impl Iterator<Item = &'a LoggedAccess<P>> {
        let full = self.last == FULL;
        self.uses
            .iter()
            .filter(move |entry| {
                !entry.is_retired() && (full || (meet(&entry.extent, extent) && (write || entry.write)))
            })
            .filter(|entry| !entry.by.is_complete(entry.submission))
    }

    /// Tells whether all uses are of one queue, whose order is enough then.
    #[inline]
    pub fn is_only_of(&self, queue: u64) -> bool {
        self.uses.iter().all(|entry| entry.is_retired() || entry.by.queue() == queue)
    }

    /// Tells whether the caller may treat every use as complete: calls `is_settled` for each that is not spent.
    #[inline]
    pub(crate) fn is_settled(&self, is_settled: impl Fn(&P, u64) -> bool) -> bool {
        self.uses.iter().all(|entry| entry.is_retired() || is_settled(&entry.by, entry.submission))
    }

    /// Whether the next use makes room first.
    pub(crate) fn is_long(&self) -> bool {
        self.uses.len() >= LIMIT
    }

    /// Makes room: removes finished uses, and merges entries of one queue. Call before [`conflicts`](Self::conflicts),
    /// under the same lock as the `note` that follows.
    #[inline]
    pub fn compact(&mut self) {
        if self.is_long() {
            self.make_room();
        }
    }

    #[inline(never)]
    fn make_room(&mut self) {
        self.last = NONE;
        self.uses.retain(|entry| !entry.is_over());
        if self.uses.len() < LIMIT {
            return;
        }
        let mut merged: SmallVec<[LoggedAccess<P>; INLINE]> = SmallVec::new();
        for entry in self.uses.drain(..) {
            match merged.iter_mut().find(|old| old.by.is(&entry.by) && old.write == entry.write) {
                Some(old) => {
                    old.is_inherited &= entry.is_inherited;
                    old.extent = union(&old.extent, &entry.extent);
                    old.submission = old.submission.max(entry.submission);
                }
                None => merged.push(entry),
            }
        }
        *self.uses = merged;
        if self.uses.len() >= LIMIT {
            self.last = FULL;
        }
    }

    /// Returns the submission index of the last use, if `by` is about to use the same bytes in the same way. Its
    /// conflicts have been waited for, so only the new submission index is noted.
    #[inline(always)]
    pub(crate) fn repeat_of_last(
        &mut self,
        extent: &Range<usize>,
        write: bool,
        by: &P,
        submission: u64,
    ) -> Option<&mut u64> {
        let last = self.uses.get_mut(self.last)?;
        let is_same = last.by.is(by) && last.extent == *extent && last.write == write;
        (is_same && !submission.is_multiple_of(ASKED_EVERY)).then_some(&mut last.submission)
    }

    /// Records a use that was enqueued after everything that [`conflicts`](Self::conflicts) returned.
    #[inline(always)]
    pub fn note(&mut self, extent: Range<usize>, write: bool, by: &P, submission: u64) {
        if extent.is_empty() {
            return;
        }
        if let [only] = self.uses.as_mut_slice()
            && only.by.is(by)
            && covers(&extent, &only.extent)
            && (write || !only.write)
        {
            // The usual loop on one stream.
            only.update(extent, write, submission);
            self.last = 0;
            return;
        }
        if let [first, second] = self.uses.as_mut_slice() {
            // Two streams that take turns, or one that reads another's results.
            let is_second = second.by.is(by);
            let (own, other) = if is_second { (second, first) } else { (first, second) };
            if own.by.is(by) && (own.is_retired() || covers(&extent, &own.extent) && (write || !own.write)) {
                // Whether another queue has passed something is seldom news, and asking it costs a look at cold memory.
                let ask = submission.is_multiple_of(ASKED_EVERY);
                if (write && covers(&extent, &other.extent)) || (ask && other.is_over()) {
                    other.retire();
                }
                own.update(extent, write, submission);
                self.last = usize::from(is_second);
                return;
            }
        }
        self.last = self.note_among(extent, write, by, submission);
    }

    /// [`note`](Self::note) in a log with other uses. Where it is noted.
    #[inline(never)]
    fn note_among(&mut self, extent: Range<usize>, write: bool, by: &P, submission: u64) -> usize {
        if self.last == FULL {
            return self.collapse(extent, write, by, submission);
        }
        // A write supersedes every access that it covers; a read supersedes earlier covered reads of its queue.
        let stands_for = |entry: &LoggedAccess<P>, same: bool| {
            entry.is_over() || (covers(&extent, &entry.extent) && (write || (same && !entry.write)))
        };
        // An entry of the same queue is written over in its place, without a new reference.
        let (mut place, mut left_over) = (None, false);
        let few = self.uses.len() <= INLINE;
        for (index, entry) in self.uses.iter_mut().enumerate() {
            let same = entry.by.is(by);
            match stands_for(entry, same) {
                true if same && place.is_none() => place = Some(index),
                true if few => entry.retire(),
                stands_for => left_over |= stands_for,
            }
        }
        if left_over {
            place = self.remove_superseded(place, stands_for, by);
        }
        if let Some((place, entry)) = place.and_then(|place| Some((place, self.uses.get_mut(place)?))) {
            entry.update(extent, write, submission);
            return place;
        }
        let fresh = LoggedAccess::new(extent, write, by.clone(), submission);
        let spare = if self.uses.len() == INLINE {
            self.uses.iter_mut().enumerate().find(|(_, entry)| entry.is_retired())
        } else {
            None
        };
        match spare {
            Some((place, entry)) => {
                *entry = fresh;
                place
            }
            None => {
                self.uses.push(fresh);
                self.uses.len() - 1
            }
        }
    }

    /// Removes the uses that a new one covers, except the one at `place`. Returns the new position of that one.
    fn remove_superseded(
        &mut self,
        place: Option<usize>,
        stands_for: impl Fn(&LoggedAccess<P>, bool) -> bool,
        by: &P,
    ) -> Option<usize> {
        let (mut index, mut before) = (0, 0);
        self.uses.retain(|entry| {
            let keep = Some(index) == place || !stands_for(entry, entry.by.is(by));
            before += usize::from(keep && place.is_some_and(|place| index < place));
            index += 1;
            keep
        });
        place.map(|_| before)
    }

    /// Merges all uses into one. `by` has waited for them, so its submission index covers them. Returns the position of
    /// the entry.
    #[cold]
    fn collapse(&mut self, extent: Range<usize>, write: bool, by: &P, submission: u64) -> usize {
        let live = self.uses.iter().filter(|entry| !entry.is_retired());
        let (whole, any_write) = live
            .fold((extent, write), |(whole, any), entry| (union(&whole, &entry.extent), any || entry.write));
        self.uses.clear();
        self.uses.push(LoggedAccess::new(whole, any_write, by.clone(), submission));
        0
    }

    /// Records an access that another library may have enqueued without waiting for the accesses in the log:
    /// everything stays. Returns whether the log is long: what is over has to be asked for then.
    pub fn note_others(&mut self, extent: &Range<usize>, write: bool, by: &P, submission: u64) -> bool {
        if extent.is_empty() {
            return false;
        }
        self.last = NONE;
        let same =
            |entry: &&mut LoggedAccess<P>| entry.by.is(by) && entry.write == write && entry.extent == *extent;
        match self.uses.iter_mut().find(same) {
            Some(entry) => entry.update(extent.clone(), write, submission),
            None => {
                // What is over, and what another use of its queue covers, has no say any more.
                self.compact();
                self.uses.push(LoggedAccess::new(extent.clone(), write, by.clone(), submission))
            }
        }
        self.is_long()
    }

    /// Records work that used the memory before this allocation: all later uses wait for it, also reads. Only for an
    /// otherwise empty log.
    pub fn inherit(&mut self, extent: Range<usize>, by: P, submission: u64) {
        self.last = NONE;
        self.uses
            .push(LoggedAccess { is_inherited: true, ..LoggedAccess::new(extent, true, by, submission) });
    }

    /// Returns the uses that are not known to be done, and empties the log.
    #[inline]
    pub fn drain_pending(&mut self, mut take: impl FnMut(P, u64)) {
        self.drain_all(|by, pending| {
            if let Some(submission) = pending {
                take(by, submission);
            }
        });
    }

    /// As [`drain_pending`](Self::drain_pending), with the queues of finished accesses, which have no submission index.
    #[inline]
    pub fn drain_all(&mut self, mut take: impl FnMut(P, Option<u64>)) {
        // Most memory that is dropped has not been used lately.
        if self.uses.is_empty() {
            return;
        }
        for entry in self.uses.drain(..) {
            let pending = (!entry.is_over()).then_some(entry.submission);
            take(entry.by, pending);
        }
    }

    /// Makes reads of the writes for which `is_void` holds: nothing reads what they wrote, and later writes still follow them.
    pub(super) fn void_writes(&mut self, is_void: impl Fn(&P, u64, &Range<usize>) -> bool) {
        let has_written =
            |entry: &&mut LoggedAccess<P>| entry.write && !entry.is_inherited && !entry.is_retired();
        for entry in self.uses.iter_mut().filter(has_written) {
            entry.write = !is_void(&entry.by, entry.submission, &entry.extent);
        }
    }

    pub fn all(&self) -> impl Iterator<Item = &LoggedAccess<P>> {
        self.uses.iter().filter(|entry| !entry.is_retired())
    }
}

#[cfg(test)]
mod tests;
