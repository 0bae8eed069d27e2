//! What carries out the operations of a rank.

use crate::call::{Place, Prepared, accesses};
use gpumem_core::{Backend, CollectiveError, CollectiveRecord, Error, ErrorKind, Result};
use gpumem_runtime::{Stream, internal::Work};
use std::{
    any::{Any, TypeId},
    fmt::Debug,
    sync::Arc,
};

/// One rank's end of an engine. A call never waits for another rank, except [`split`](Self::split).
pub(crate) trait Engine<B: Backend>: Debug + Send + Sync {
    /// Waits until this rank can take part. [`Communicator::all`](crate::Communicator::all) calls it when all ranks have
    /// joined.
    fn ready(&self) -> Result<()> {
        Ok(())
    }

    /// Refuses what [`enqueue`](Self::enqueue) would refuse on this stream, whatever the operation is.
    fn check(&self, stream: &Stream<B>, operation: &'static str) -> Result<()>;

    /// Whether an operation has been called of which [`enqueue`](Self::enqueue) returned this error: the other ranks meet it.
    fn has_called(&self, error: &Error) -> bool {
        matches!(error.kind(), ErrorKind::Collective(_) | ErrorKind::Poisoned { .. })
    }

    /// Enqueues operations as one piece of work of the stream. Their arrays are packed, and belong to the stream's
    /// device. Returns the submission.
    fn enqueue(&self, stream: &Stream<B>, operation: &'static str, calls: &[Prepared<'_, B>]) -> Result<u64>;

    /// Enqueues the operations of several ranks that this thread drives: none of them needs a later call of the thread to go
    /// on. The parts are of this engine. Returns an outcome for each: operations of one rank may take place where those of another
    /// fail.
    fn enqueue_all(&self, parts: &[RankCalls<'_, B>]) -> Vec<Result<u64>> {
        // What one rank may not call, none calls.
        if let Err(error) = parts.iter().try_for_each(RankCalls::check) {
            return vec![Err(error); parts.len()];
        }
        // Each rank calls its operations, also after those of another one have failed: what it had left out would be met by
        // its next operation.
        parts.iter().map(|part| part.engine.enqueue(part.stream, part.operation, part.calls)).collect()
    }

    /// The type of the engine, for calls with several ends of it.
    fn as_any(&self) -> &dyn Any;

    /// The engine, whose ends can be called together: its type, and the address of its library.
    fn identity(&self) -> (TypeId, usize) {
        (self.as_any().type_id(), 0)
    }

    /// Waits, within limits, until this rank's part has ended, after [`leave`](Self::leave).
    fn finish(&self) {}

    /// The last failure of an operation of this rank.
    fn failure(&self) -> Option<CollectiveError>;

    /// Prepares memory of the rank's device for operations. It is held until it is taken back or the rank's part has ended.
    fn register(&self, place: Place<'_, B>) -> Result<()> {
        drop(place);
        Ok(())
    }

    /// Takes back one registration.
    fn deregister(&self, place: &Place<'_, B>) -> Result<()> {
        let _ = place;
        Ok(())
    }

    /// The last operations of this rank, the oldest first.
    fn recent(&self) -> Vec<CollectiveRecord>;

    /// Fails all operations of all ranks that have not begun to move bytes, and all later ones.
    fn abort(&self);

    /// Ends this rank's part. Its operations in flight go on.
    fn leave(&self);

    /// Says into which part this rank goes.
    fn begin_split(&self, colour: Option<u64>, key: i64) -> Result<Box<dyn Split<B>>>;
}

/// The operations of one rank, to be enqueued together with those of others.
pub(crate) struct RankCalls<'a, B: Backend> {
    pub(crate) engine: &'a dyn Engine<B>,
    pub(crate) stream: &'a Stream<B>,
    pub(crate) operation: &'static str,
    pub(crate) calls: &'a [Prepared<'a, B>],
}

impl<B: Backend> RankCalls<'_, B> {
    /// Checks that the stream takes the operations.
    fn check(&self) -> Result<()> {
        let timeline = self.stream.timeline_by(crate::KEY);
        timeline.admit(Work::Collective, self.operation, &accesses(self.calls)).map(drop)
    }
}

/// A rank's end of a part, with its rank and the number of ranks there.
pub(crate) type Joined<B> = (Arc<dyn Engine<B>>, usize, usize);

/// A split that has begun.
pub(crate) trait Split<B: Backend> {
    /// Waits until all ranks have begun it, and returns this rank's end of its part, with rank and size there.
    fn finish(self: Box<Self>) -> Result<Option<Joined<B>>>;
}
