//! The use logs of what a piece of work uses, locked together.

use super::{Access, Timeline, UseLog, timeline::Need};
use crate::{sync::MutexGuard, trace::Recorder};
use gpumem_core::Backend;
use smallvec::SmallVec;
use std::sync::Arc;

/// A use, with the log of its memory. The uses of one allocation stand side by side, and the first of them has the log.
struct Held<'a, B: Backend> {
    access: &'a Access<'a, B>,
    log: Option<MutexGuard<'a, UseLog<Arc<Timeline<B>>>>>,
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
    match accesses {
        [] => act(Logs(&mut [])),
        [one] => act(Logs(&mut [Held::locked(one)])),
        [one, two] if one.memory.id() < two.memory.id() => {
            act(Logs(&mut [Held::locked(one), Held::locked(two)]))
        }
        [one, two] if one.memory.id() > two.memory.id() => {
            act(Logs(&mut [Held::locked(two), Held::locked(one)]))
        }
        many => {
            let unlocked = many.iter().map(|access| Held { access, log: None });
            let mut all: SmallVec<[Held<'a, B>; 4]> = unlocked.collect();
            all.sort_by_key(Held::id);
            let mut last = None;
            for held in &mut all {
                if last != Some(held.id()) {
                    last = Some(held.id());
                    *held = Held::locked(held.access);
                }
            }
            act(Logs(&mut all))
        }
    }
}

impl<B: Backend> Logs<'_, '_, B> {
    /// What must be reached before work of `timeline` may use the memory: of each other timeline the last ticket.
    #[inline]
    pub(super) fn needs(&self, timeline: &Timeline<B>) -> SmallVec<[Need<'_, B>; 4]> {
        let mut needs = SmallVec::new();
        let mut current = None;
        for Held { access, log } in &*self.0 {
            current = log.as_ref().or(current);
            if let Some(log) = current
                && !log.is_only_of(timeline.id())
            {
                add_needs(&mut needs, timeline, access, log);
            }
        }
        needs
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

fn add_needs<'l, B: Backend>(
    needs: &mut SmallVec<[Need<'l, B>; 4]>,
    timeline: &Timeline<B>,
    access: &'l Access<'_, B>,
    log: &'l UseLog<Arc<Timeline<B>>>,
) {
    for entry in log.conflicts(&access.extent, access.write) {
        if entry.by.id() == timeline.id() {
            continue;
        }
        match needs.iter_mut().find(|(of, _)| of.id() == entry.by.id()) {
            Some((_, ticket)) => *ticket = (*ticket).max(entry.ticket),
            None => needs.push((&entry.by, entry.ticket)),
        }
    }
}
