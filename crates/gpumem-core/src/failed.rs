//! Which work of a stream has failed, for those who wait for it.
//!
//! The runtime numbers what it submits to a stream ([`SubmissionId`]), and a backend whose device goes on after a failure
//! finds the number beside the uses of the work ([`MemoryUses::submission`](crate::MemoryUses::submission)). It notes there
//! what has failed, so that a wait is told of the work that it waits for, and of no other.

use crate::{Error, process::PerProcess};
use std::{
    collections::BTreeMap,
    ops::RangeInclusive,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

/// Most failures of a stream that are told apart. Of more, the oldest are kept as one range of submissions. Few under Miri,
/// where a search of 1024 takes minutes.
const MOST: usize = if cfg!(miri) { 32 } else { 1024 };

/// The failures of the streams of this process, by the number of the stream.
static STREAMS: PerProcess<Mutex<BTreeMap<u64, Weak<FailedSubmissions>>>> = PerProcess::new(Mutex::default);

/// A piece of work that the runtime has submitted: perhaps several commands of a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubmissionId {
    /// The number of the stream, unique in the process.
    pub stream: u64,
    /// The number of the submission among those of the stream.
    pub submission: u64,
}

impl SubmissionId {
    /// Notes that the submission failed, before a wait for it returns. Returns `false` if no caller can wait for it any more.
    /// A consequence failed because it uses what earlier failed work was to write. Safe code could make other work fail with its
    /// number:
    ///
    /// ```compile_fail,E0133
    /// # use gpumem_core::{Error, ErrorKind, SubmissionId};
    /// # let error = Error::new("", "", ErrorKind::NotReady);
    /// let _ = SubmissionId { stream: 1, submission: 1 }.note_failed(&error, false);
    /// ```
    ///
    /// # Safety
    /// The submission has failed, on the caller's backend.
    #[cold]
    pub unsafe fn note_failed(self, error: &Error, is_consequence: bool) -> bool {
        let failed = self.failed_of_stream();
        if let Some(failed) = &failed {
            failed.note(self.submission..=self.submission, error, is_consequence);
        }
        failed.is_some()
    }

    /// Whether part of the submission is known to have failed.
    #[cold]
    pub fn has_failed(self) -> bool {
        self.failed_of_stream().is_some_and(|failed| failed.find(self.submission..=self.submission).is_some())
    }

    fn failed_of_stream(self) -> Option<Arc<FailedSubmissions>> {
        lock(STREAMS.get()).get(&self.stream)?.upgrade()
    }
}

/// The submissions of one stream that failed. They are remembered as long as the stream is: a caller that waits for one of them is
/// told each time.
#[derive(Debug)]
pub struct FailedSubmissions {
    /// The first and the last that failed: the largest number and 0 while nothing has failed. A wait for others reads no more.
    first: AtomicU64,
    last: AtomicU64,
    /// Failures up to here were told by a wait for the whole stream.
    told: AtomicU64,
    /// The oldest first.
    entries: Mutex<Vec<Entry>>,
    /// The number under which backends find it.
    stream: Option<u64>,
}

#[derive(Debug)]
struct Entry {
    from: u64,
    to: u64,
    error: Error,
    is_consequence: bool,
}

impl Entry {
    fn meets(&self, submissions: &RangeInclusive<u64>) -> bool {
        self.from <= *submissions.end() && *submissions.start() <= self.to
    }
}

impl Default for FailedSubmissions {
    fn default() -> Self {
        Self::new(None)
    }
}

impl FailedSubmissions {
    /// Those of a stream, which backends find by its number. Safe code could take the failures of a stream away with its number:
    ///
    /// ```compile_fail,E0133
    /// let _failures_of_another = gpumem_core::FailedSubmissions::of_stream(1);
    /// ```
    ///
    /// # Safety
    /// The number is the caller's own: no other stream of the process has it.
    pub unsafe fn of_stream(stream: u64) -> Arc<Self> {
        let failed = Arc::new(Self::new(Some(stream)));
        lock(STREAMS.get()).insert(stream, Arc::downgrade(&failed));
        failed
    }

    fn new(stream: Option<u64>) -> Self {
        Self {
            first: AtomicU64::new(u64::MAX),
            last: AtomicU64::new(0),
            told: AtomicU64::new(0),
            entries: Mutex::new(Vec::new()),
            stream,
        }
    }

    /// Notes that these submissions failed. The first failure of a submission counts.
    #[cold]
    pub fn note(&self, submissions: RangeInclusive<u64>, error: &Error, is_consequence: bool) {
        let (from, to) = submissions.into_inner();
        let mut entries = lock(&self.entries);
        if entries.iter().any(|entry| entry.from <= from && to <= entry.to) {
            return;
        }
        let at = entries.partition_point(|entry| entry.from <= from);
        entries.insert(at, Entry { from, to, error: error.clone(), is_consequence });
        if entries.len() > MOST {
            // Conservative: who waits for work in between is told a failure that is not its own.
            let second = entries.remove(1);
            if let Some(first) = entries.first_mut() {
                first.to = first.to.max(second.to);
            }
        }
        // The stream was waited for, and a number given out before is used now.
        self.told.fetch_min(from.saturating_sub(1), Ordering::Relaxed);
        self.last.fetch_max(to, Ordering::Release);
        self.first.fetch_min(from, Ordering::Release);
    }

    /// Returns the first failure of these submissions, each time. They are done.
    #[inline]
    pub fn find(&self, submissions: RangeInclusive<u64>) -> Option<Error> {
        let are_before = *submissions.end() < self.first.load(Ordering::Acquire);
        let are_behind = *submissions.start() > self.last.load(Ordering::Acquire);
        if are_before || are_behind { None } else { self.search(&submissions) }
    }

    #[cold]
    fn search(&self, submissions: &RangeInclusive<u64>) -> Option<Error> {
        let entries = lock(&self.entries);
        entries.iter().find(|entry| entry.meets(submissions)).map(|entry| entry.error.clone())
    }

    /// Up to which submission a wait for the whole stream has told failures.
    #[inline]
    pub fn told(&self) -> u64 {
        self.told.load(Ordering::Relaxed)
    }

    /// Returns the failures up to a submission that no wait for the whole stream has told.
    #[inline]
    pub fn untold(&self, last: u64) -> Option<Error> {
        self.describe(self.told(), last)
    }

    /// As [`untold`](Self::untold), for a wait for the whole stream up to a submission, which began when failures up to
    /// `told` had been told. They count as told then. Two threads that wait at the same time both get the error.
    #[inline]
    pub fn tell(&self, told: u64, last: u64) -> Option<Error> {
        let error = self.describe(told, last)?;
        self.told.fetch_max(last, Ordering::Relaxed);
        Some(error)
    }

    /// Describes the failures after one submission up to another in one error. Consequences are left out where their cause
    /// is described.
    #[inline]
    fn describe(&self, after: u64, last: u64) -> Option<Error> {
        let are_before = last < self.first.load(Ordering::Acquire);
        if are_before || after >= last.min(self.last.load(Ordering::Acquire)) {
            return None;
        }
        self.describe_found(after, last)
    }

    #[cold]
    fn describe_found(&self, after: u64, last: u64) -> Option<Error> {
        let entries = lock(&self.entries);
        let span = after + 1..=last;
        let found = || entries.iter().filter(|entry| entry.meets(&span));
        let first = found().find(|entry| !entry.is_consequence).or_else(|| found().next())?;
        let others = found().filter(|entry| !entry.is_consequence && !std::ptr::eq(*entry, first));
        Error::all_of(std::iter::once(first).chain(others).map(|entry| entry.error.clone()))
    }

    /// Forgets all failures, after a reset.
    pub fn forget(&self) {
        // Held to the end: a failure that is noted meanwhile is not hidden by what is stored here.
        let mut entries = lock(&self.entries);
        entries.clear();
        self.first.store(u64::MAX, Ordering::Release);
        self.last.store(0, Ordering::Release);
    }
}

impl Drop for FailedSubmissions {
    fn drop(&mut self) {
        if let Some(stream) = self.stream {
            lock(STREAMS.get()).remove(&stream);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn error(what: &str) -> Error {
        Error::new("test", "test", ErrorKind::AsynchronousFault { what: what.to_owned() })
    }

    #[track_caller]
    fn is(error: Option<Error>, expected: &str) {
        let Some(error) = error else { panic!("no failure") };
        let ErrorKind::AsynchronousFault { what } = error.kind() else { panic!("{error}") };
        assert_eq!(what, expected);
    }

    #[test]
    fn each_submission_is_asked_each_time_and_the_stream_tells_once() {
        let failed = FailedSubmissions::default();
        assert!(failed.find(0..=u64::MAX - 1).is_none() && failed.tell(0, 9).is_none());
        failed.note(3..=3, &error("a"), false);
        failed.note(5..=5, &error("because of a"), true);
        failed.note(3..=3, &error("the same submission"), false);
        for _ in 0..2 {
            is(failed.find(3..=3), "a");
            is(failed.find(5..=5), "because of a");
            is(failed.find(4..=9), "because of a");
            is(failed.untold(9), "a");
            assert!(failed.find(4..=4).is_none() && failed.find(6..=9).is_none());
        }
        let told = failed.told();
        is(failed.tell(told, 4), "a");
        is(failed.tell(told, 4), "a");
        assert_eq!(failed.told(), 4);
        is(failed.tell(failed.told(), 9), "because of a");
        assert!(failed.untold(9).is_none() && failed.tell(failed.told(), 9).is_none());
        is(failed.find(3..=3), "a");
    }

    #[test]
    fn a_stream_tells_all_failures_that_have_a_cause_of_their_own() {
        let failed = FailedSubmissions::default();
        for number in 1..=6 {
            failed.note(number..=number, &error(&number.to_string()), number == 2);
        }
        is(failed.untold(3), "1; 3");
        is(failed.tell(0, 6), "1; 3; 4; 5; and 1 more failures");
    }

    #[test]
    fn memory_is_bounded_and_no_failure_is_missed() {
        let failed = FailedSubmissions::default();
        let many = 3 * MOST as u64;
        for number in (2..many).step_by(2) {
            failed.note(number..=number, &error(&number.to_string()), false);
        }
        assert_eq!(lock(&failed.entries).len(), MOST);
        assert!((2..many).step_by(2).all(|number| failed.find(number..=number).is_some()));
        is(failed.find(many - 4..=many - 4), &(many - 4).to_string());
        assert!(failed.find(many - 3..=many - 3).is_none(), "the youngest are told apart");
    }

    #[test]
    fn backends_find_a_stream_while_it_is_alive() {
        let number = 1 << 62;
        let (one, other) = (SubmissionId { stream: number, submission: 7 }, number + 1);
        // SAFETY: the number is this test's, and so are its submissions.
        let note = |what| unsafe { one.note_failed(&error(what), false) };
        assert!(!note("too early") && !one.has_failed());
        // SAFETY: no stream has the number.
        let failed = unsafe { FailedSubmissions::of_stream(number) };
        assert!(note("a") && one.has_failed());
        assert!(!SubmissionId { stream: other, ..one }.has_failed());
        assert!(!SubmissionId { submission: 8, ..one }.has_failed());
        is(failed.find(7..=7), "a");
        drop(failed);
        assert!(!note("too late"));
        assert!(!lock(STREAMS.get()).contains_key(&number));
    }
}
