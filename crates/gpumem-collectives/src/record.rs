//! The times of operations, for a recording.

use crate::call::Call;
use gpumem_core::Backend;
use gpumem_runtime::internal::{CollectiveInfo, Timeline};
use std::{
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

/// Writes how long an operation waited, and how long it took, to the recording of the device. `None` while nothing is recorded.
pub(crate) type Write = Box<dyn FnOnce(Duration, Duration) + Send>;

pub(crate) fn writer<B: Backend>(
    timeline: &Arc<Timeline<B>>,
    (rank, sequence): (usize, u64),
    call: &Call,
) -> Option<Write> {
    // No box and no clock for work that nothing records.
    if !timeline.context.recorder.keeps_uses() {
        return None;
    }
    let (context, stream) = (timeline.context.clone(), timeline.id());
    let (operation, bytes) = (call.kind.name(), call.bytes() as u64);
    Some(Box::new(move |wait, took| {
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let (wait, took, rank) = (nanoseconds(wait), nanoseconds(took), rank as u32);
        context.recorder.collective(CollectiveInfo { operation, stream, sequence, rank, bytes, wait, took });
    }))
}

/// The times of operations of a stream that does not tell them: taken by the thread of its callbacks.
pub(crate) struct Observed {
    called: Instant,
    reached: Arc<OnceLock<Instant>>,
}

impl Observed {
    /// Before the operations are enqueued. `None` while nothing is recorded.
    pub(crate) fn begin<B: Backend>(timeline: &Arc<Timeline<B>>) -> Option<Self> {
        timeline.context.recorder.keeps_uses().then(|| {
            let (called, reached) = (Instant::now(), Arc::new(OnceLock::new()));
            let own = reached.clone();
            // Without it the wait counts as time of the operation.
            let _ = timeline.when_done("record_memory", move |_| {
                let _ = own.set(Instant::now());
            });
            Self { called, reached }
        })
    }

    /// When the operations have been enqueued.
    pub(crate) fn end<B: Backend>(&self, timeline: &Arc<Timeline<B>>, writers: Vec<Write>) {
        let (called, reached) = (self.called, self.reached.clone());
        let _ = timeline.when_done("record_memory", move |outcome| {
            let reached = reached.get().copied().unwrap_or(called);
            for write in writers.into_iter().filter(|_| outcome.is_ok()) {
                write(reached.saturating_duration_since(called), reached.elapsed());
            }
        });
    }
}
