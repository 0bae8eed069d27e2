//! One rank's end of the engine.

use super::{
    Link,
    enqueue::{self, OwnCalls},
    peers::Peer,
    split,
};
use crate::{
    call::{Place, Prepared},
    engine::{Engine, RankCalls, Split},
    report,
    split_key::SplitKey,
};
use gpumem_core::{Backend, CollectiveCause, CollectiveError, CollectiveRecord, Error, ErrorKind, Result};
use gpumem_runtime::Stream;
use std::{
    any::{Any, TypeId},
    ptr,
    sync::Arc,
    time::Duration,
};

/// Longest wait of a call that gives a communicator up explicitly.
const LONGEST: Duration = Duration::from_secs(10);

/// One rank's end.
#[derive(Debug)]
pub(crate) struct LibraryEnd<B: Backend>(pub(super) Arc<Link<B>>);

/// Dropped, also by a split whose caller is gone, it gives the communicator up: the library frees it.
impl<B: Backend> Drop for LibraryEnd<B> {
    fn drop(&mut self) {
        // The locks may never be free again in a forked child.
        if self.0.device.core_by(crate::KEY).origin.is_valid() {
            self.0.leave();
        }
    }
}

impl<B: Backend> Engine<B> for LibraryEnd<B> {
    fn ready(&self) -> Result<()> {
        self.0.wait_ready("join").map(drop)
    }

    fn check(&self, stream: &Stream<B>, operation: &'static str) -> Result<()> {
        self.0.check_stream(stream, operation)
    }

    fn has_called(&self, error: &Error) -> bool {
        // Poison is refused before the library is called.
        matches!(error.kind(), ErrorKind::Collective(_))
    }

    fn enqueue(&self, stream: &Stream<B>, operation: &'static str, calls: &[Prepared<'_, B>]) -> Result<u64> {
        let enqueued =
            enqueue::enqueue_one(OwnCalls { link: &self.0, stream, operation, calls, counts: true });
        report::tell();
        enqueued
    }

    fn enqueue_all(&self, parts: &[RankCalls<'_, B>]) -> Vec<Result<u64>> {
        let own = parts.iter().map(|part| {
            let end = part.engine.as_any().downcast_ref::<Self>();
            let RankCalls { stream, operation, calls, .. } = *part;
            Some(OwnCalls { link: &end?.0, stream, operation, calls, counts: true })
        });
        let Some(own) = own.collect::<Option<Vec<_>>>() else {
            let why = "the ranks belong to different engines";
            let core = self.0.device.core_by(crate::KEY);
            return vec![Err(core.error("group_all", ErrorKind::InvalidArgument { why })); parts.len()];
        };
        let enqueued = enqueue::enqueue(&own);
        report::tell();
        match enqueued {
            Ok(outcomes) => outcomes.into_vec(),
            Err(error) => vec![Err(error); parts.len()],
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    // Devices of two vendors have the same type behind `AnyBackend`, and a call into one library is in no group of the other.
    fn identity(&self) -> (TypeId, usize) {
        (TypeId::of::<Self>(), ptr::from_ref(self.0.library).addr())
    }

    fn failure(&self) -> Option<CollectiveError> {
        // Waits for no call of the library, which is made without this lock.
        self.0.lock().rank.failure.clone()
    }

    fn register(&self, place: Place<'_, B>) -> Result<()> {
        self.0.register(place)
    }

    fn deregister(&self, place: &Place<'_, B>) -> Result<()> {
        self.0.deregister(place)
    }

    fn recent(&self) -> Vec<CollectiveRecord> {
        // Operations that are done are taken out first, so that none of them is told as under way.
        let mut state = self.0.lock();
        self.0.prune(&mut state);
        state.rank.recent()
    }

    fn abort(&self) {
        self.0.revoke(CollectiveCause::Aborted { rank: self.0.rank });
    }

    fn leave(&self) {
        self.0.leave();
    }

    fn finish(&self) {
        self.0.wait_closed(self.0.options.timeout.min(LONGEST));
    }

    fn begin_split(&self, colour: Option<u64>, key: i64) -> Result<Box<dyn Split<B>>> {
        Ok(Box::new(split::begin(&self.0, SplitKey { colour, key })?))
    }
}
