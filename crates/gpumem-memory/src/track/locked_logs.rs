//! The access logs of all memory that a piece of work uses, locked together.

use super::{Access, AccessLog, DeviceContext, Timeline, queue::Queue};
use crate::sync::ShortMutexGuard;
use gpumem_core::{Backend, Result};
use smallvec::SmallVec;
use std::sync::Arc;

/// A use, with the log of its memory. The uses of one allocation are adjacent, and the first of them has the log.
pub(super) struct LockedLog<'a, B: Backend> {
    access: &'a Access<'a, B>,
    log: Option<ShortMutexGuard<'a, AccessLog<Arc<Timeline<B>>>>>,
}

impl<'a, B: Backend> LockedLog<'a, B> {
    /// The use by work on `timeline`, with the log of its memory locked. Only loans made [`since`](super::Tracked::log_since) are noted
    /// in the log.
    /// Returns [`Overlap`](gpumem_core::ErrorKind::Overlap) if a conflicting use is announced.
    #[inline(always)]
    pub(super) fn one(
        timeline: &Timeline<B>,
        operation: &'static str,
        access: &'a Access<'a, B>,
        since: u64,
    ) -> Result<Self> {
        let log = Some(access.memory.log_since(since));
        Self { access, log }.checked(timeline, operation)
    }

    /// The use, unless a conflicting one is announced. The log of its memory is locked.
    #[inline(always)]
    fn checked(self, timeline: &Timeline<B>, operation: &'static str) -> Result<Self> {
        let Access { memory, extent, write, elements, .. } = self.access;
        memory.refuse_borrowed(operation, (extent, *elements), *write, Some(timeline.id()))?;
        Ok(self)
    }

    /// As [`one`](Self::one), for two uses, unless their memory is the same.
    #[inline(always)]
    pub(super) fn two(
        timeline: &Timeline<B>,
        operation: &'static str,
        [first, second]: [&'a Access<'a, B>; 2],
        since: u64,
    ) -> Result<Option<[Self; 2]>> {
        let (first_id, second_id) = (first.memory.id(), second.memory.id());
        if first_id == second_id {
            return Ok(None);
        }
        // By rising numbers, as in `all`: two copies in opposite directions take the logs alike.
        let (first, second) = if first_id < second_id { (first, second) } else { (second, first) };
        Ok(Some([
            Self::one(timeline, operation, first, since)?,
            Self::one(timeline, operation, second, since)?,
        ]))
    }

    /// As [`one`](Self::one), for any number of uses. The logs are locked in one order everywhere, by the numbers of the
    /// allocations, and each only once.
    #[inline(never)]
    pub(super) fn all(
        timeline: &Timeline<B>,
        operation: &'static str,
        accesses: &'a [Access<'a, B>],
        since: u64,
    ) -> Result<SmallVec<[Self; 4]>> {
        let mut sorted: SmallVec<[&Access<'_, B>; 4]> = accesses.iter().collect();
        sorted.sort_by_key(|access| access.memory.id());
        let mut last = None;
        let lock = |access: &'a Access<'a, B>| {
            let is_locked = last.replace(access.memory.id()) == Some(access.memory.id());
            let log = (!is_locked).then(|| access.memory.log_since(since));
            Self { access, log }.checked(timeline, operation)
        };
        sorted.into_iter().map(lock).collect()
    }

    /// The submission index of the use in its log, if it is the [same again](AccessLog::repeat_of_last).
    #[inline(always)]
    fn repeat_of_last(&mut self, timeline: &Arc<Timeline<B>>, submission: u64) -> Option<&mut u64> {
        let Self { access, log } = self;
        log.as_mut()?.repeat_of_last(&access.extent, access.write, timeline, submission)
    }
}

pub(super) struct LockedLogs<'s, 'a, B: Backend>(pub(super) &'s mut [LockedLog<'a, B>]);

impl<B: Backend> LockedLogs<'_, '_, B> {
    /// Notes the uses by work that gets the next submission index, if there is one or two of them, and each is the [same
    /// again](AccessLog::repeat_of_last), as in most loops. No wait is needed then. Returns the index, and whether any of the memory
    /// is lent; `None` if no use was noted.
    #[inline(always)]
    pub(super) fn record_repeat(
        &mut self,
        timeline: &Arc<Timeline<B>>,
        operation: &'static str,
        queue: &mut Queue<B>,
    ) -> Option<(u64, bool)> {
        let submission = queue.submission + 1;
        match self.0 {
            [only] => {
                let last = only.repeat_of_last(timeline, submission)?;
                *last = give_out(timeline, queue)?;
                Some((submission, noted(only.access, timeline, operation, submission)))
            }
            [first, second] => {
                // Both are known before either is written.
                let (of_first, of_second) = (
                    first.repeat_of_last(timeline, submission)?,
                    second.repeat_of_last(timeline, submission)?,
                );
                let given_out = give_out(timeline, queue)?;
                (*of_first, *of_second) = (given_out, given_out);
                let is_lent = noted(first.access, timeline, operation, submission);
                Some((submission, noted(second.access, timeline, operation, submission) | is_lent))
            }
            _ => None,
        }
    }

    /// Poisons what aborted work was to write.
    #[cold]
    pub(super) fn poison_aborted(&mut self) {
        for LockedLog { access, log } in &mut *self.0 {
            log.iter_mut().for_each(|log| access.memory.poison_aborted(log));
        }
    }

    /// Makes room in the logs, before any other call on them.
    #[inline]
    pub(super) fn compact(&mut self) {
        self.0.iter_mut().filter_map(|held| held.log.as_mut()).for_each(|log| log.compact());
    }

    /// Whether `timeline` has `waited` for all that others have done with the memory, whether it conflicts or not, as it has
    /// nearly always: its own order is enough then.
    #[inline]
    pub(super) fn are_settled(&self, timeline: &Timeline<B>, waited: impl Fn(u64, u64) -> bool) -> bool {
        let is_settled =
            |by: &Arc<Timeline<B>>, submission| std::ptr::eq(&**by, timeline) || waited(by.id(), submission);
        self.0.iter().all(|held| held.log.as_ref().is_none_or(|log| log.is_settled(is_settled)))
    }

    /// Whether no other stream has to be waited for. Uses of one allocation count as if it had to be.
    #[inline(always)]
    pub(super) fn are_free(&self, timeline: &Timeline<B>) -> bool {
        let id = timeline.id();
        self.0.iter().all(|LockedLog { access, log }| {
            let others = |log: &AccessLog<Arc<Timeline<B>>>| {
                log.conflicts(&access.extent, access.write).any(|entry| entry.by.id() != id)
            };
            log.as_ref().is_some_and(|log| log.is_only_of(id) || !others(log))
        })
    }

    /// The uses, each with the log of its memory.
    #[inline]
    pub(super) fn each(&self) -> impl Iterator<Item = (&Access<'_, B>, &AccessLog<Arc<Timeline<B>>>)> {
        let mut current = None;
        self.0.iter().filter_map(move |LockedLog { access, log }| {
            current = log.as_deref().or(current);
            current.map(|log| (*access, log))
        })
    }

    /// Notes the uses by work that has the submission index. Returns whether any of the memory is lent.
    #[inline(always)]
    pub(super) fn note(
        &mut self,
        timeline: &Arc<Timeline<B>>,
        operation: &'static str,
        submission: u64,
    ) -> bool {
        let (mut current, mut is_lent) = (None, false);
        for LockedLog { access, log } in &mut *self.0 {
            current = log.as_mut().or(current);
            let Some(log) = &mut current else { continue };
            log.note(access.extent.clone(), access.write, timeline, submission);
            is_lent |= noted(access, timeline, operation, submission);
        }
        is_lent
    }
}

/// The next submission index, unless the logs have to be searched for aborted work first.
#[inline(always)]
fn give_out<B: Backend>(timeline: &Timeline<B>, queue: &mut Queue<B>) -> Option<u64> {
    let submission = timeline.give_out(queue);
    // After it: see there.
    (!DeviceContext::<B>::has_aborted()).then_some(submission)
}

/// Records a use that has been noted, if a recording is active. Returns whether the memory is lent: later borrowers find
/// the submission index in its log.
#[inline(always)]
fn noted<B: Backend>(
    access: &Access<'_, B>,
    timeline: &Timeline<B>,
    operation: &'static str,
    submission: u64,
) -> bool {
    if access.memory.context().recorder.keeps_uses() {
        record(access, timeline, operation, submission);
    }
    access.memory.is_lent()
}

#[cold]
fn record<B: Backend>(
    Access { memory, extent, write, .. }: &Access<'_, B>,
    timeline: &Timeline<B>,
    operation: &'static str,
    submission: u64,
) {
    memory.record_use(extent, *write, operation, (timeline.id(), submission));
}
