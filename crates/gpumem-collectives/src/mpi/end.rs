//! One rank's end of the engine.

use super::{Comm, inbox::Message, participant::MpiParticipant, split::MpiSplit, thread};
use crate::{
    Options,
    call::{Prepared, accesses},
    call_order::CallOrder,
    engine::{Engine, Split},
    local::span,
    participation::{Awaited, Participation},
    record::{self, Observed},
};
use gpumem_core::{
    Backend, CollectiveCause, CollectiveError, CollectiveRecord, Error, ErrorKind, HostFuture, Result,
    Stream as _,
};
use gpumem_runtime::{Stream, internal::Work};
use std::{any::Any, sync::Arc};

/// Joins the processes that the launcher has started, as the rank that it gave this one. Waits for the others.
pub(crate) fn join(rank: usize, size: usize, options: &Options) -> Result<MpiEnd> {
    let comm = thread::join(options)?;
    if comm.place() != (rank, size) {
        comm.inbox.push(Message::Leave(comm.key));
        let why = "MPI's launcher gave this process another rank, or started another number of processes";
        return Err(Error::new("", "join", ErrorKind::InvalidArgument { why }));
    }
    Ok(MpiEnd::new(comm))
}

/// One rank's end.
#[derive(Debug)]
pub(crate) struct MpiEnd {
    comm: Arc<Comm>,
    order: CallOrder,
}

impl MpiEnd {
    pub(crate) fn new(comm: Arc<Comm>) -> Self {
        Self { comm, order: CallOrder::default() }
    }
}

impl<B: Backend> Engine<B> for MpiEnd {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn check(&self, stream: &Stream<B>, operation: &'static str) -> Result<()> {
        let checked = self.comm.of_rank(|own| own.check(operation));
        checked.map_err(|error| stream.timeline_by(crate::KEY).context.error(operation, error))
    }

    fn enqueue(&self, stream: &Stream<B>, operation: &'static str, calls: &[Prepared<'_, B>]) -> Result<u64> {
        let accesses = accesses(calls);
        let timeline = stream.timeline_by(crate::KEY);
        // Before the communicator and the stream, which the call locks one after the other.
        let _order = self.order.lock(operation)?;
        // Checked before the operation is counted. Later failures are told to the other ranks.
        let admitted = timeline.admit(Work::Collective, operation, &accesses)?;
        // An event from before the operation: streams that need earlier work of this one do not wait for other ranks.
        timeline.wait_target(timeline.last_submission())?;
        let observed = Observed::begin(timeline);
        let (mut participants, mut writers, mut refused) =
            (Vec::with_capacity(calls.len()), Vec::new(), None);
        for Prepared { call, source, destination, .. } in calls {
            let (source, destination) = (span(source.as_ref()), span(destination.as_ref()));
            // All of them are called, also after one that fails: what this rank had left out would be met by its next operation.
            match self.comm.call(call.clone()) {
                Ok(operation) => {
                    writers.extend(record::writer(timeline, (self.comm.place().0, operation.sequence), call));
                    // SAFETY: it is polled by the stream that it is enqueued on below. The logs of the accesses keep the memory
                    // valid and ordered until the future is ready or dropped.
                    let participant = unsafe { MpiParticipant::new(operation, source, destination) };
                    participants.push(Awaited::new(participant));
                }
                Err(error) => drop(refused.get_or_insert(error)),
            }
        }
        if let Some(error) = refused {
            return Err(timeline.context.error(error.operation, error));
        }
        let place = timeline.context.name();
        let future = HostFuture::new(operation, Participation { participants, place });
        let submitted = admitted.submit(|sink, _| {
            // SAFETY: the future uses the memory of the accesses, which their logs keep alive and ordered until it is ready
            // or dropped, and only while it is polled. If it ends well, each destination was written as a whole.
            unsafe { sink.stream(operation)?.enqueue_future(future) }
        });
        if let Some(observed) = observed.filter(|_| submitted.is_ok()) {
            observed.end(timeline, writers);
        }
        submitted.map(|submitted| submitted.submission)
    }

    fn failure(&self) -> Option<CollectiveError> {
        self.comm.of_rank(|own| own.failure.clone())
    }

    fn recent(&self) -> Vec<CollectiveRecord> {
        self.comm.of_rank(|own| own.recent())
    }

    fn abort(&self) {
        let (rank, _) = self.comm.place();
        self.comm.revoke(CollectiveCause::Aborted { rank });
        self.comm.inbox.push(Message::Abort(self.comm.key));
    }

    fn leave(&self) {
        // No operation comes after it: they are added under the same lock.
        self.comm.of_rank(|own| own.has_left = true);
        self.comm.call_counts.leave(0, self.comm.key);
        self.comm.inbox.push(Message::Leave(self.comm.key));
    }

    fn begin_split(&self, colour: Option<u64>, key: i64) -> Result<Box<dyn Split<B>>> {
        let begun = MpiSplit::new(&self.comm, colour, key);
        Ok(Box::new(begun.map_err(|error| Error::new("", "split", error))?))
    }
}
