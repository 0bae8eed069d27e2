//! Which work of other streams a stream waits for.

use smallvec::SmallVec;

/// How many waits are remembered. Forgetting one costs a repeated wait, and that the stream counts as one that depends on whatever is
/// aborted meanwhile.
const SEEN: usize = 64;

/// The waits of one stream. They have a lock of their own: an abort asks for them while a call of the driver may hold that of the queue,
/// for as long as the work that is to be aborted runs.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// (timeline, submission index) that the stream has already waited for.
    seen: SmallVec<[(u64, u64); 8]>,
    /// The first submission index after the last wait that has been forgotten; 0 if none has been.
    forgotten: u64,
}

impl Waits {
    /// Whether the stream has already waited for that submission index of that timeline.
    #[inline]
    pub(super) fn has(&self, timeline: u64, submission: u64) -> bool {
        self.seen.iter().any(|(id, seen)| *id == timeline && *seen >= submission)
    }

    /// Whether pending work, which begins with that submission index, may depend on that of a timeline from an index on.
    pub(super) fn may_depend_on(&self, timeline: u64, submission: u64, first_pending: u64) -> bool {
        self.forgotten >= first_pending || self.has(timeline, submission)
    }

    /// Remembers a wait of the work that gets the submission index `next`.
    #[inline]
    pub(super) fn note(&mut self, timeline: u64, submission: u64, next: u64) {
        match self.seen.iter_mut().find(|(id, _)| *id == timeline) {
            Some((_, seen)) => *seen = (*seen).max(submission),
            None => self.note_first(timeline, submission, next),
        }
    }

    #[inline(never)]
    fn note_first(&mut self, timeline: u64, submission: u64, next: u64) {
        // The oldest wait is the least likely to be asked for again.
        if self.seen.len() >= SEEN {
            self.seen.remove(0);
            self.forgotten = next;
        }
        self.seen.push((timeline, submission));
    }
}
