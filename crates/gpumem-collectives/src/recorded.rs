//! Operations in the recording of a graph. Each launch calls them as a call outside does.

use crate::{
    Communicator,
    call::{Accesses, Call, Place, Prepared, accesses},
    communicator::RankHandle,
};
use gpumem_core::{Backend, Result};
use gpumem_runtime::{
    Stream,
    internal::{Access, BoundUse, RankWork},
};
use smallvec::SmallVec;
use std::{borrow::Cow, fmt, sync::Arc};

/// Operations of one rank that are one piece of work.
struct RecordedCalls<B: Backend> {
    handle: Arc<RankHandle<B>>,
    operation: &'static str,
    calls: SmallVec<[RecordedCall; 1]>,
}

/// An operation, and which arrays it has: each launch gives their memory. Memory without bytes is none.
#[derive(Debug)]
struct RecordedCall {
    call: Call,
    in_place: bool,
    has_source: bool,
    has_destination: bool,
    has_target: bool,
}

impl<B: Backend> Communicator<B> {
    /// Enqueues operations as one piece of work of a stream, or writes them down if it is one of a recording. Returns the submission,
    /// 0 where there is none.
    #[inline]
    pub(crate) fn enqueue(
        &self,
        stream: &Stream<B>,
        operation: &'static str,
        calls: &[Prepared<'_, B>],
    ) -> Result<u64> {
        let engine = self.engine(operation)?;
        match stream.timeline_by(crate::KEY).is_recording() {
            true => self.record(stream, operation, calls).map(|()| 0),
            false => engine.enqueue(stream, operation, calls),
        }
    }

    #[cold]
    fn record(&self, stream: &Stream<B>, operation: &'static str, calls: &[Prepared<'_, B>]) -> Result<()> {
        let has = |place: Option<&Place<'_, B>>| place.is_some_and(|place| !place.extent.is_empty());
        let recorded = |prepared: &Prepared<'_, B>| RecordedCall {
            call: prepared.call.clone(),
            in_place: prepared.in_place,
            has_source: has(prepared.source.as_ref()),
            has_destination: has(prepared.destination.as_ref()),
            has_target: has(prepared.target.as_ref()),
        };
        let calls_of_launch = calls.iter().map(recorded).collect();
        let targets = calls.iter().filter_map(|prepared| prepared.target.as_ref());
        let targets: Accesses<'_, B> = targets
            .filter(|target| !target.extent.is_empty())
            .map(|target| Access::write(&target.memory, target.extent.clone()))
            .collect();
        let work = RecordedCalls { handle: self.handle().clone(), operation, calls: calls_of_launch };
        stream.record_ranks_by(crate::KEY, operation, (&accesses(calls), &targets), Arc::new(work))
    }
}

impl<B: Backend> RankWork<B> for RecordedCalls<B> {
    fn check(&self, stream: &Stream<B>) -> Result<()> {
        self.handle.engine(self.operation)?.check(stream, self.operation)
    }

    fn enqueue(&self, stream: &Stream<B>, memory: &[BoundUse<'_, B>]) -> Result<()> {
        let mut memory = memory.iter();
        let mut next = |has: bool| {
            let (memory, extent) = if has { memory.next()? } else { return None };
            Some(Place { memory: Cow::Borrowed(*memory), extent: extent.clone() })
        };
        let bound = |recorded: &RecordedCall| Prepared {
            call: recorded.call.clone(),
            source: next(recorded.has_source),
            destination: next(recorded.has_destination),
            in_place: recorded.in_place,
            target: None,
        };
        let mut calls: SmallVec<[Prepared<'_, B>; 1]> = self.calls.iter().map(bound).collect();
        for (prepared, recorded) in calls.iter_mut().zip(&self.calls) {
            prepared.target = next(recorded.has_target).map(Place::into_owned);
        }
        let engine = self.handle.engine(self.operation)?;
        let enqueued = engine.enqueue(stream, self.operation, &calls);
        enqueued.map(drop).inspect_err(|error| {
            if !engine.has_called(error) {
                // The other ranks call it all the same, and would meet the next operation of this rank.
                engine.abort();
            }
        })
    }
}

impl<B: Backend> fmt::Debug for RecordedCalls<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordedCalls").field("calls", &self.calls).finish_non_exhaustive()
    }
}
