//! The use logs of what a piece of work uses, locked together.

use super::{Access, Timeline, UseLog, timeline::Need};
use crate::{sync::ShortMutexGuard, trace::Recorder};
use gpumem_core::Backend;
use smallvec::SmallVec;
use std::sync::Arc;

/// A use, with the log of its memory. The uses of one allocation stand side by side, and the first of them has the log.
struct Held<'a, B: Backend> {
    access: &'a Access<'a, B>,
    log: Option<ShortMutexGuard<'a, UseLog<Arc<Timeline<B>>>>>,
}

impl<'a, B: Backend> Held<'a, B> {
    /// The use with the log of its memory locked.
    #[inline]
    fn locked(access: &'a Access<'a, B>) -> Self {
        let mut log = access.memory.log();
        log.tidy();
        Self { access, log: Some(log) }
    }

    #[inline]
    fn id(&self) -> u64 {
        self.access.memory.id()
    }
}

/// Locked logs.
pub(super) struct Logs<'s, 'a, B: Backend>(&'s mut [Held<'a, B>]);

/// Runs `act` with the logs of all memory that is used locked. They are locked in one order everywhere, by the numbers of
/// the allocations, and each only once.
#[inline]
pub(super) fn with_logs<'a, B: Backend, R>(
    accesses: &'a [Access<'a, B>],
    act: impl FnOnce(Logs<'_, 'a, B>) -> R,
) -> R {
    // A call of `act` for each number of logs: which of them are locked is not to be found out when they are given back.
    match accesses {
        [] => act(Logs(&mut [])),
        [only] => act(Logs(&mut [Held::locked(only)])),
        [first, second] if first.memory.id() != second.memory.id() => {
            let is_sorted = first.memory.id() < second.memory.id();
            let (first, second) = if is_sorted { (first, second) } else { (second, first) };
            act(Logs(&mut [Held::locked(first), Held::locked(second)]))
        }
        all => act(Logs(&mut locked_in_order(all))),
    }
}

#[inline(never)]
fn locked_in_order<'a, B: Backend>(accesses: &'a [Access<'a, B>]) -> SmallVec<[Held<'a, B>; 4]> {
    let mut all: SmallVec<[Held<'a, B>; 4]> =
        accesses.iter().map(|access| Held { access, log: None }).collect();
    all.sort_by_key(Held::id);
    let mut last = None;
    for held in &mut all {
        if last != Some(held.id()) {
            last = Some(held.id());
            *held = Held::locked(held.access);
        }
    }
    all
}

impl<B: Backend> Logs<'_, '_, B> {
    /// Whether `timeline` has `waited` for all that others have done with the memory, whether it conflicts or not, as it has
    /// nearly always: its own order is enough then.
    #[inline]
    pub(super) fn are_settled(&self, timeline: &Timeline<B>, waited: impl Fn(u64, u64) -> bool) -> bool {
        let is_settled =
            |by: &Arc<Timeline<B>>, ticket| std::ptr::eq(&**by, timeline) || waited(by.id(), ticket);
        self.0.iter().all(|held| held.log.as_ref().is_none_or(|log| log.is_settled(is_settled)))
    }

    /// What must be reached before work of `timeline` may use the memory: tickets of other timelines.
    #[inline]
    pub(super) fn needs(&self, timeline: &Timeline<B>) -> impl Iterator<Item = Need<'_, B>> {
        let mut current = None;
        let logs = self.0.iter().filter_map(move |Held { access, log }| {
            current = log.as_ref().or(current);
            current.map(|log| (*access, log))
        });
        let own = timeline.id();
        logs.flat_map(|(access, log)| log.conflicts(&access.extent, access.write))
            .filter(move |entry| entry.by.id() != own)
            .map(|entry| (&*entry.by, entry.ticket))
    }

    /// Notes the uses by work that has the ticket.
    #[inline]
    pub(super) fn note(self, timeline: &Arc<Timeline<B>>, operation: &'static str, ticket: u64) {
        let mut current = None;
        for Held { access, log } in self.0 {
            current = log.as_mut().or(current);
            let Some(log) = &mut current else { continue };
            log.note(access.extent.clone(), access.write, timeline, ticket);
            Recorder::used(access.memory, &access.extent, access.write, operation, (timeline.id(), ticket));
        }
    }
}
