//! One rank's end of the engine.

use super::{
    Move, PendingCollective, Shared,
    part::{Part, Queue},
    participant::Traced,
    pending::Verdict,
    split::Begun,
};
use crate::{
    Options,
    call::{Place, Prepared, accesses},
    call_counts::CallCounts,
    call_order::CallOrder,
    engine::{Engine, Split},
    participation::{Awaited, Participation},
    record,
    span::Span,
};
use gpumem_core::{
    Backend, CollectiveCause, CollectiveError, CollectiveRecord, DriverDevice as _, Error, ErrorKind,
    HostFuture, RawStream, Result, Stream as _, process::PerProcess,
};
use gpumem_runtime::{
    Stream,
    internal::{Timeline, Work},
};
use smallvec::SmallVec;
use std::{
    any::Any,
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

/// The communicators that ranks join by an identity. A forked child has none of its parent's.
static JOINED: PerProcess<Mutex<BTreeMap<u64, Joined>>> = PerProcess::new(Mutex::default);
/// Most ranks of a communicator: something is kept for each from the first join on.
const MOST_RANKS: usize = 1 << 16;
/// Communicators that are kept for ranks that have not joined, once all others have left.
const MOST_AWAITING: usize = 256;

/// A communicator that ranks join.
struct Joined {
    shared: Weak<Shared>,
    /// Kept until all ranks have joined: one that joins after the others have left is told what happened to them.
    awaits: Option<Arc<Shared>>,
}

/// Forgets communicators that no rank can join or has.
fn clean_up(joined: &mut BTreeMap<u64, Joined>) {
    joined.retain(|_, entry| entry.shared.strong_count() > 0);
    let has_no_rank = |entry: &&mut Joined| entry.awaits.is_some() && entry.shared.strong_count() == 1;
    let awaiting = joined.values_mut().filter(|entry| has_no_rank(entry)).count();
    // Identities are numbered: those of the oldest go first.
    for entry in joined.values_mut().filter(has_no_rank).take(awaiting.saturating_sub(MOST_AWAITING)) {
        entry.awaits = None;
    }
}

/// Joins the communicator of an identity of this process.
pub(crate) fn join(identity: u64, rank: usize, size: usize, options: &Options) -> Result<End> {
    let refused = |why| Error::new("", "join", ErrorKind::InvalidArgument { why });
    if size > MOST_RANKS {
        return Err(refused("a communicator of one process has 65536 ranks at most"));
    }
    // Before the lock of the communicator, which a join takes within it: no rank joins one that is being forgotten.
    let mut joined = JOINED.get().lock().unwrap_or_else(PoisonError::into_inner);
    // At each join: no call tells when the last rank has gone.
    clean_up(&mut joined);
    let entry = joined.entry(identity).or_insert_with(|| Joined { shared: Weak::new(), awaits: None });
    let shared = entry.shared.upgrade().unwrap_or_else(|| {
        let counts = Arc::new(CallCounts::new(size));
        let shared = Arc::new(Shared::new((0..size).collect(), counts, options.clone()));
        *entry = Joined { shared: Arc::downgrade(&shared), awaits: Some(shared.clone()) };
        shared
    });
    if shared.size() != size {
        return Err(refused("another rank joined with another number of ranks"));
    }
    if shared.options != *options {
        return Err(refused("another rank joined with other options"));
    }
    if !shared.join(rank) {
        return Err(refused("another communicator has joined as this rank"));
    }
    if shared.have_all_joined() {
        entry.awaits = None;
    }
    Ok(End::new(shared, rank))
}

/// One rank's end.
#[derive(Debug)]
pub(crate) struct End {
    shared: Arc<Shared>,
    rank: usize,
    order: CallOrder,
}

impl End {
    pub(crate) fn new(shared: Arc<Shared>, rank: usize) -> Self {
        Self { shared, rank, order: CallOrder::default() }
    }
}

impl End {
    /// Fails an operation for which this rank's stream does not come before another one's goes on, by work that was enqueued there
    /// after that one's part: of an array whose elements lie between those of this rank, say. Both would wait until the deadline.
    fn fail_circle<B: Backend>(
        &self,
        timeline: &Timeline<B>,
        pending: &PendingCollective<Move>,
        (slot, submission): (usize, u64),
    ) {
        let others = pending.note_enqueued(slot, (timeline.id(), submission));
        let Some(found) = timeline.waits_for_one_of(others.iter().map(|(_, at)| *at)) else { return };
        let other = others.iter().find(|(_, at)| *at == found).map_or(self.rank, |(rank, _)| *rank);
        let why = format!("its stream waits for work of rank {other} that comes after the operation there");
        // Without a lock of the communicator: it wakes streams.
        pending.fail(Verdict::One(CollectiveCause::PeerLost { rank: self.rank, why }));
    }
}

/// The queue of a stream. Two streams of the library may be one of the driver's, as those of `legacy_stream` are, also by two types of
/// one device: their numbers and their contexts differ.
fn queue<B: Backend>(timeline: &Timeline<B>, operation: &'static str) -> Queue {
    let info = timeline.context.raw.info();
    // A stream of a recording has none of the driver's. No backend has no name.
    let recorded = ("", 0, timeline.id());
    timeline.handle(operation).map_or(recorded, |RawStream(raw)| (info.backend, info.ordinal, raw))
}

/// The bytes of a packed array.
pub(crate) fn span<B: Backend>(place: Option<&Place<'_, B>>) -> Span {
    let found = place.filter(|place| !place.extent.is_empty());
    found.map_or(Span::default(), |place| {
        // SAFETY: the extent is within the allocation.
        unsafe { Span::new(place.address() as usize, place.extent.len()) }
    })
}

impl<B: Backend> Engine<B> for End {
    fn check(&self, stream: &Stream<B>, operation: &'static str) -> Result<()> {
        let checked = self.shared.of_rank(self.rank, |own| own.check(operation));
        checked.map_err(|error| stream.timeline_by(crate::KEY).context.error(operation, error))
    }

    fn enqueue(&self, stream: &Stream<B>, operation: &'static str, calls: &[Prepared<'_, B>]) -> Result<u64> {
        let accesses = accesses(calls);
        let timeline = stream.timeline_by(crate::KEY);
        // Before the communicator and the stream, which the call locks one after the other.
        let _order = self.order.lock(operation)?;
        // Checked before other ranks hear of the operation. Later failures are told to them.
        let admitted = timeline.admit(Work::Collective, operation, &accesses)?;
        // An event from before the operation: streams that need earlier work of this one do not wait for other ranks.
        timeline.wait_target(timeline.last_submission())?;
        let queue = queue(timeline, operation);
        let (mut participants, mut refused) = (Vec::with_capacity(calls.len()), None);
        let mut entered = SmallVec::<[_; 1]>::new();
        for Prepared { call, source, destination, .. } in calls {
            let (source, destination) = (span(source.as_ref()), span(destination.as_ref()));
            // All of them are called, also after one that fails: what this rank had left out would be met by its next operation.
            match self.shared.call(self.rank, Part { call: call.clone(), queue, source, destination }) {
                Ok(mut participant) => {
                    participant.traced = record::writer(timeline, (self.rank, participant.sequence), call)
                        .map(|write| Traced { came: None, write });
                    entered.push((participant.pending.clone(), participant.slot));
                    participants.push(Awaited::new(participant));
                }
                Err(error) => drop(refused.get_or_insert(error)),
            }
        }
        if let Some(error) = refused {
            drop(participants);
            // After they have failed: what the caller gets stays the last failure.
            self.shared.of_rank(self.rank, |own| own.failure = Some((*error).clone()));
            return Err(timeline.context.error(operation, error));
        }
        let place = timeline.context.name();
        let future = HostFuture::new(operation, Participation { participants, place });
        let submitted = admitted.submit(|sink, _| {
            // SAFETY: the future uses the memory of the accesses, which their logs keep alive and ordered until it is ready
            // or dropped: a participant that is dropped waits until no thread moves bytes. If it ends well, each destination
            // was written as a whole; a destination that is not written is not among the accesses.
            unsafe { sink.stream(operation)?.enqueue_future(future) }
        });
        if let Err(error) = &submitted
            && error.is_device_lost()
        {
            self.shared.revoke(CollectiveCause::PeerLost { rank: self.rank, why: error.to_string() });
        }
        let submission = submitted?.submission;
        for (pending, slot) in entered {
            self.fail_circle(timeline, &pending, (slot, submission));
        }
        Ok(submission)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn failure(&self) -> Option<CollectiveError> {
        self.shared.of_rank(self.rank, |own| own.failure.clone())
    }

    fn recent(&self) -> Vec<CollectiveRecord> {
        self.shared.of_rank(self.rank, |own| own.recent())
    }

    fn abort(&self) {
        self.shared.revoke(CollectiveCause::Aborted { rank: self.rank });
    }

    fn leave(&self) {
        self.shared.leave(self.rank);
    }

    fn begin_split(&self, colour: Option<u64>, key: i64) -> Result<Box<dyn Split<B>>> {
        let (shared, rank) = (self.shared.clone(), self.rank);
        let number = shared.splits.begin(&shared, rank, (colour, key));
        Ok(Box::new(Begun::new(shared, rank, number)))
    }
}
