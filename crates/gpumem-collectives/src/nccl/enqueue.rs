//! Operations on the streams of one or several ranks.

use super::{
    Link,
    calls::{self, Target},
    check::Check,
    device_order::{self, DeviceOrder, Last},
    link::{Handle, IssuedCall, Pending, State, Writes},
    peers::Mismatch,
};
use crate::{
    call::{Accesses, Kind, Prepared, accesses},
    record::{self, Observed},
};
use gpumem_core::{Backend, CollectiveCause, Error, POISONED, Result};
use gpumem_runtime::{
    Stream,
    internal::{Access, ArrayRef, LentStream, Work, may_block, refuse_overlap},
};
use gpumem_sys::nccl::Failure;
use smallvec::{SmallVec, smallvec};
use std::{
    mem,
    ptr::{self, with_exposed_provenance_mut},
    slice,
    sync::{Arc, MutexGuard, PoisonError},
};

/// The submission of each rank.
type Outcomes = SmallVec<[Result<u64>; 1]>;

/// The operations of one rank.
pub(super) struct OwnCalls<'a, B: Backend> {
    pub(super) link: &'a Arc<Link<B>>,
    pub(super) stream: &'a Stream<B>,
    pub(super) operation: &'static str,
    pub(super) calls: &'a [Prepared<'a, B>],
    /// Whether it is an operation of the caller, which gets a number.
    pub(super) counts: bool,
}

/// The orders of the devices that are concerned.
pub(super) type DeviceOrders<'a, B> = SmallVec<[(*const DeviceOrder<B>, MutexGuard<'a, Last<B>>); 1]>;

/// A rank whose stream waits for other uses of the arrays.
struct WaitingRank<'a, B: Backend> {
    own: &'a OwnCalls<'a, B>,
    lent: LentStream<'a, 'a, B>,
    observed: Option<Observed>,
}

/// A rank that is ready for the calls. It has the handle, so nothing is waited for until they are made.
struct ReadyRank<'a, B: Backend> {
    waiting: WaitingRank<'a, B>,
    target: Target,
    called: IssuedCall,
}

/// Enqueues the operations of each rank as one piece of work of its stream. The library's calls are made together, so that
/// none waits for another one of this thread. Returns the submission of each.
pub(super) fn enqueue<B: Backend>(parts: &[OwnCalls<'_, B>]) -> Result<Outcomes> {
    if let [own] = parts
        && !own.link.options.check
    {
        // One rank needs no lists, which take a fourth of the time of a call without the library.
        may_block(own.operation)?;
        if own.link.last.is_none() {
            // Without the locks, so that operations of other communicators go on while the other ranks join.
            own.link.wait_ready(own.operation)?;
        }
        // First the order of the communicator, then that of the device, then the state: as below.
        let _order = own.link.order.lock().unwrap_or_else(PoisonError::into_inner);
        // Held to the end of the call: no operation of another communicator comes between the wait and the note.
        let mut last = own.link.device_order.as_ref().map(|device_order| device_order.begin());
        return own.enqueue(last.as_deref_mut()).map(|submission| smallvec![Ok(submission)]);
    }
    parts.iter().try_for_each(OwnCalls::check)?;
    if parts.len() > 1 {
        // Together too: they run at the same time, on several streams.
        let all: Accesses<'_, B> = parts.iter().flat_map(|own| accesses(own.calls)).collect();
        let operation = parts.first().map_or("", |own| own.operation);
        refuse_overlap(operation, &all)?;
    }
    // Before the first lock: making memory, and freeing it, runs code of the user, which may call the same communicator.
    let prepared = Check::prepare(parts);
    let mut check =
        prepared.inspect_err(|error| parts.iter().for_each(|own| own.link.give_up(&error.to_string())))?;
    let enqueued = enqueue_together(parts, &mut check);
    if failure(&enqueued).is_none() {
        check.keep();
    }
    enqueued
}

/// As [`enqueue`], for one rank.
pub(super) fn enqueue_one<B: Backend>(own: OwnCalls<'_, B>) -> Result<u64> {
    enqueue(&[own])?.into_iter().collect::<Result<SmallVec<[u64; 1]>>>().map(|submissions| submissions[0])
}

/// The first failure of any rank.
fn failure(enqueued: &Result<Outcomes>) -> Option<&Error> {
    match enqueued {
        Ok(outcomes) => outcomes.iter().find_map(|outcome| outcome.as_ref().err()),
        Err(error) => Some(error),
    }
}

/// As [`enqueue`], for several ranks, or for one that compares what it calls. Takes the locks of the links: nothing is allocated under
/// them from the device, and no array is dropped.
fn enqueue_together<B: Backend>(parts: &[OwnCalls<'_, B>], check: &mut Check<'_, B>) -> Result<Outcomes> {
    // Two threads with several ranks each take the locks in one order.
    let mut links: SmallVec<[&Arc<Link<B>>; 1]> = parts.iter().map(|own| own.link).collect();
    links.sort_unstable_by_key(|link| Arc::as_ptr(link));
    links.dedup_by_key(|link| Arc::as_ptr(link));
    // All orders of communicators before the first one of a device, which communicators share.
    let _orders: SmallVec<[_; 1]> =
        links.iter().map(|link| link.order.lock().unwrap_or_else(PoisonError::into_inner)).collect();
    let mut device_orders: SmallVec<[&Arc<DeviceOrder<B>>; 1]> =
        links.iter().filter_map(|link| link.device_order.as_ref()).collect();
    // By address, as the links: two threads with the same devices take them alike.
    device_orders.sort_unstable_by_key(|device_order| Arc::as_ptr(device_order));
    device_orders.dedup_by_key(|device_order| Arc::as_ptr(device_order));
    let mut device_orders: DeviceOrders<'_, B> =
        device_orders.iter().map(|device_order| (Arc::as_ptr(device_order), device_order.begin())).collect();
    let enqueued = check.agree(&mut device_orders).and_then(|()| enqueue_locked(parts, &mut device_orders));
    links.iter().for_each(|link| link.conclude(&enqueued));
    enqueued
}

/// As [`enqueue`], with the locks of the links.
pub(super) fn enqueue_locked<B: Backend>(
    parts: &[OwnCalls<'_, B>],
    device_orders: &mut DeviceOrders<'_, B>,
) -> Result<Outcomes> {
    let accesses: SmallVec<[Accesses<'_, B>; 1]> = parts.iter().map(OwnCalls::accesses).collect();
    let mut waiting = SmallVec::<[WaitingRank<'_, B>; 1]>::with_capacity(parts.len());
    for (own, accesses) in parts.iter().zip(&accesses) {
        let device_order = own.link.device_order.as_ref().map(Arc::as_ptr);
        let last = device_orders.iter().find(|(of, _)| Some(*of) == device_order).map(|(_, last)| &**last);
        // Before the arrays are waited for: the wait for the other communicator is on the device, too.
        last.map_or(Ok(()), |last| device_order::wait(last, own.link.communicator, own.stream))?;
        waiting.push(own.wait(accesses)?);
    }
    let mut begun = SmallVec::<[ReadyRank<'_, B>; 1]>::with_capacity(parts.len());
    let mut began = Ok(());
    for waiting in waiting {
        match waiting.begin() {
            Ok(ready) => begun.push(ready),
            Err(error) => {
                began = Err(error);
                break;
            }
        }
    }
    if let Err(error) = began {
        // Nothing was called: the other ranks are told nothing either.
        // The last one first: of two with one communicator, the first has the number to go back to.
        begun.iter().rev().for_each(ReadyRank::cancel);
        return Err(error);
    }
    compare(&begun)?;
    let called = call(&begun);
    let mut long = SmallVec::<[&Arc<Link<B>>; 1]>::new();
    // Each by itself: what the library was called for takes place on one rank, whatever comes after the call on another one.
    let ended = begun.into_iter().map(|ready| {
        let own = ready.waiting.own;
        let device_order = own.link.device_order.as_ref().map(Arc::as_ptr);
        let (submission, are_many) = ready.end(&called)?;
        long.extend(are_many.then_some(own.link));
        if let Some((_, last)) = device_orders.iter_mut().find(|(of, _)| Some(*of) == device_order) {
            device_order::note(last, own.link.communicator, own.stream, submission);
        }
        Ok(submission)
    });
    let ended = ended.collect();
    // Once no call is to be ended any more: the driver may let this thread wait.
    long.into_iter().for_each(Link::ask);
    Ok(ended)
}

/// Compares what the ranks are about to call with what the other ranks of the process have called. If it does not fit, the library is not
/// called, and the communicator ends.
#[inline]
fn compare<B: Backend>(begun: &[ReadyRank<'_, B>]) -> Result<()> {
    for ready in begun {
        let OwnCalls { link, calls, .. } = ready.waiting.own;
        if let Err(mismatch) = link.peers.compare(link.rank, calls) {
            return Err(refuse(begun, ready, *mismatch));
        }
    }
    Ok(())
}

/// Ends the communicators of all ranks that were about to call. Returns the error of the one whose call does not fit.
#[cold]
fn refuse<B: Backend>(begun: &[ReadyRank<'_, B>], unfit: &ReadyRank<'_, B>, mismatch: Mismatch) -> Error {
    let cause = mismatch.tell();
    let error = unfit.refuse(&cause);
    begun.iter().filter(|other| !ptr::eq(*other, unfit)).for_each(|other| drop(other.refuse(&cause)));
    error
}

/// Calls the library for all ranks.
#[inline(always)]
fn call<B: Backend>(begun: &[ReadyRank<'_, B>]) -> Result<(), Failure> {
    let Some(first) = begun.first() else { return Ok(()) };
    let calls = || {
        begun.iter().for_each(|ready| ready.waiting.own.link.enter());
        begun.iter().try_for_each(|ReadyRank { waiting, target, .. }| {
            // SAFETY: the link keeps the communicator until this thread is inside the library, and for some time more. The accesses were
            // waited for, and are noted before this thread gives the arrays up, whose borrows keep other uses away until then.
            calls::in_order(waiting.own.calls).try_for_each(|prepared| unsafe { target.call(prepared) })
        })
    };
    // A group has a cost of its own, so one call goes without.
    let is_group = begun.len() > 1
        || begun.iter().any(|ready| calls::needs_group(&ready.target, ready.waiting.own.calls));
    // The library restores the device that it finds, of which it knows only the number.
    let link = first.waiting.own.link;
    link.device.with_current(|| match is_group {
        true => calls::group(link.library, calls),
        false => calls(),
    })
}

impl<B: Backend> OwnCalls<'_, B> {
    /// As [`enqueue`], for one rank, with its locks.
    #[inline]
    fn enqueue(&self, mut last: Option<&mut Last<B>>) -> Result<u64> {
        // Another communicator was last: what would be refused is refused before the stream waits for it.
        if let Some(last) = &last
            && device_order::is_of_another(last, self.link.communicator)
        {
            self.check()?;
            device_order::wait(last, self.link.communicator, self.stream)?;
        }
        let accesses = self.accesses();
        let ready = self.wait(&accesses)?.begin()?;
        compare(slice::from_ref(&ready))?;
        let called = call(slice::from_ref(&ready));
        let (submission, are_many) = ready.end(&called)?;
        if let Some(last) = &mut last {
            device_order::note(last, self.link.communicator, self.stream, submission);
        }
        if are_many {
            self.link.ask();
        }
        Ok(submission)
    }

    /// Refuses what [`wait`](Self::wait) would refuse, before anything else is enqueued.
    fn check(&self) -> Result<()> {
        let Self { link, stream, operation, .. } = self;
        let timeline = stream.timeline_by(crate::KEY);
        timeline.admit(Work::Collective, operation, &self.accesses()).map(drop)?;
        link.check_stream(stream, operation)
    }

    /// The uses of memory.
    #[inline]
    fn accesses(&self) -> Accesses<'_, B> {
        let mut accesses = accesses(self.calls);
        if self.calls.iter().any(|prepared| matches!(prepared.call.kind, Kind::Barrier)) {
            let ArrayRef { memory, layout } = self.link.barrier.place_by(crate::KEY);
            accesses.push(Access::write(memory, layout.extent()));
        }
        accesses
    }

    /// Makes the stream wait for other uses of the arrays.
    #[inline(always)] // into the path of one rank: after the library's call little of this code is in the caches
    fn wait<'s>(&'s self, accesses: &'s [Access<'s, B>]) -> Result<WaitingRank<'s, B>> {
        let timeline = self.stream.timeline_by(crate::KEY);
        let admitted = timeline.admit(Work::Collective, self.operation, accesses)?;
        // Outside of the lock of the link: logs and queues are locked in it.
        let lent = admitted.lend_after(self.link.last.on(timeline))?;
        let observed = if self.counts { Observed::begin(timeline) } else { None };
        Ok(WaitingRank { own: self, lent, observed })
    }

    /// What the operations write, or the copies after them.
    fn writes(&self) -> Writes {
        let mut writes = Writes::new();
        for Prepared { destination, target, .. } in self.calls {
            destination.iter().for_each(|place| writes.push(place.used()));
            target.iter().for_each(|target| writes.push(target.used()));
        }
        writes
    }
}

impl<'s, B: Backend> WaitingRank<'s, B> {
    /// Takes the handle of the communicator. Waits for nothing but its ranks, before the first operation.
    #[inline(always)] // as above
    fn begin(self) -> Result<ReadyRank<'s, B>> {
        let OwnCalls { link, operation, calls, counts, .. } = *self.own;
        let (mut state, Handle(communicator)) = link.lock_ready(operation)?;
        if counts || state.rank.revoked.is_some() {
            link.check_rank(&state, operation)?;
        }
        let sequence = state.rank.sequence;
        if let Err(cause) = link.watch(&mut state) {
            // The other ranks call it all the same.
            link.revoke_locked(&mut state, cause.clone());
            return Err(link.error(operation, sequence, cause));
        }
        for prepared in calls.iter().filter(|_| counts) {
            state.rank.begin(prepared.call.describe());
        }
        let parts = state.rank.sequence - sequence;
        state.begin_call();
        drop(state);
        let target = Target {
            library: link.library,
            communicator,
            stream: with_exposed_provenance_mut(self.lent.handle.0 as usize),
            rank: link.rank,
            size: link.size,
            barrier: link.barrier.address(),
        };
        let called = IssuedCall { operation, sequence, parts };
        Ok(ReadyRank { waiting: self, target, called })
    }
}

impl<B: Backend> Link<B> {
    /// Refuses a stream on which no operation can be called now.
    pub(super) fn check_stream(&self, stream: &Stream<B>, operation: &'static str) -> Result<()> {
        // The library's calls may wait for other ranks.
        may_block(operation)?;
        stream.timeline_by(crate::KEY).refuse_capture(operation)?;
        let (state, _) = self.lock_ready(operation)?;
        self.check_rank(&state, operation)
    }

    /// Ends the communicator if its ranks have agreed on a call that this one has not made: they would meet its next one.
    fn conclude(self: &Arc<Self>, enqueued: &Result<Outcomes>) {
        let mut state = self.lock();
        if mem::take(&mut state.has_agreed)
            && let Some(error) = failure(enqueued)
        {
            // Reported once this thread has no lock.
            self.revoke_locked(&mut state, self.lost(&error.to_string()));
        }
    }

    fn lost(&self, why: &str) -> CollectiveCause {
        CollectiveCause::PeerLost { rank: self.rank, why: format!("its call failed: {why}") }
    }

    /// Ends the communicator of a rank that does not make the call for which the others wait: they would meet its next one.
    pub(super) fn give_up(self: &Arc<Self>, why: &str) {
        self.revoke(self.lost(why));
    }

    /// Refuses operations after the communicator was given up.
    fn check_rank(&self, state: &State<B>, operation: &'static str) -> Result<()> {
        state.rank.check(operation).map_err(|error| self.device.core_by(crate::KEY).error(operation, error))
    }
}

impl<B: Backend> ReadyRank<'_, B> {
    /// Takes the call back: the library was not called.
    fn cancel(&self) {
        let link = self.waiting.own.link;
        // Woken after it is unlocked: who waits for the call to end needs it.
        let mut state = link.lock();
        state.end_call(link);
        state.rank.take_back(self.called.sequence);
        drop(state);
        link.changed.notify_all();
    }

    /// Ends the communicator, and with it the call: the library was not called. One that has ended already keeps its own cause.
    fn refuse(&self, cause: &CollectiveCause) -> Error {
        let OwnCalls { link, operation, .. } = self.waiting.own;
        let mut state = link.lock();
        state.end_call(link);
        link.revoke_locked(&mut state, cause.clone());
        let cause = state.rank.revoked.clone().unwrap_or_else(|| cause.clone());
        let sequences = self.called.sequence..self.called.sequence + self.called.parts;
        let failed = state.rank.fail(operation, sequences, cause);
        drop(state);
        // Who waits for the call to end.
        link.changed.notify_all();
        link.device.core_by(crate::KEY).error(operation, failed)
    }

    /// Notes the uses of the arrays. Returns the submission, and whether many are under way, as far as is known.
    #[inline(always)]
    fn end(self, outcome: &Result<(), Failure>) -> Result<(u64, bool)> {
        let Self { waiting: WaitingRank { own, lent, observed }, called, .. } = self;
        let OwnCalls { link, stream, operation, calls, .. } = own;
        let timeline = stream.timeline_by(crate::KEY);
        if POISONED.is_any() {
            for place in calls.iter().filter_map(|prepared| prepared.destination.as_ref()) {
                // SAFETY: the operation writes all of these bytes, or its failure poisons them.
                unsafe { POISONED.clear(&place.used().range()) };
            }
        }
        // Noted even after a failure: part of it may be under way.
        let submitted = lent.note();
        if let Some(observed) = observed.as_ref().filter(|_| submitted.is_ok()) {
            let writers = (called.sequence..).zip(*calls).filter_map(|(sequence, prepared)| {
                record::writer(timeline, (link.rank, sequence), &prepared.call)
            });
            observed.end(timeline, writers.collect());
        }
        // After the library's call, which may wait: the watchdog and `abort` need the lock meanwhile.
        let mut state = link.lock();
        state.end_call(link);
        let failed = match (outcome, &submitted) {
            (Err(failure), _) => Some(CollectiveCause::Library { why: failure.to_string() }),
            // It took place with what failed work was to write, or nothing can wait for it.
            (_, Err(error)) => Some(CollectiveCause::PeerLost { rank: link.rank, why: error.to_string() }),
            _ => None,
        };
        if let Some(cause) = failed {
            link.revoke_locked(&mut state, cause);
        }
        if let Some(cause) = state.rank.revoked.clone() {
            let place = submitted.as_ref().ok().map(|submission| (timeline, *submission));
            let failed = link.fail(&mut state, &called, &own.writes(), place, &cause);
            drop(state);
            link.changed.notify_all();
            return match submitted {
                Err(error) if outcome.is_ok() => Err(error),
                _ => Err(link.device.core_by(crate::KEY).error(operation, failed)),
            };
        }
        let submission = submitted?;
        link.last.note(timeline, submission);
        let timeline = timeline.clone();
        state.pending.push_back(Pending { called, timeline, submission, writes: own.writes() });
        Ok((submission, state.pending.len() >= state.prune_from))
    }
}
