//! The last operations of a rank, and their events in a recording.

use crate::call::Call;
use gpumem_core::{Backend, CollectiveCall, CollectiveRecord, CollectiveState};
use gpumem_runtime::internal::{CollectiveInfo, Timeline};
use std::{
    collections::VecDeque,
    ops::Range,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

/// Operations that are kept.
const KEPT: usize = 1024;
/// Operations that the error of a deadline tells.
const TOLD: usize = 8;

/// The last operations of a rank, by their numbers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Record(VecDeque<CollectiveRecord>);

impl Record {
    /// Notes an operation that is being called.
    pub(crate) fn begin(&mut self, sequence: u64, mut call: CollectiveCall) {
        // Only needed for the comparison, and a heap allocation for each operation.
        call.order.clear();
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(CollectiveRecord::new(sequence, call));
    }

    /// Forgets operations from this number on: they were not called after all.
    pub(crate) fn take_back(&mut self, sequence: u64) {
        self.0.truncate(self.0.partition_point(|record| record.sequence < sequence));
    }

    /// Notes how the operations of these numbers that were still under way have ended.
    pub(crate) fn end(&mut self, sequences: Range<u64>, state: CollectiveState) {
        // The numbers follow each other.
        let first = self.0.front().map_or(0, |record| record.sequence);
        let at = |sequence: u64| (sequence.saturating_sub(first) as usize).min(self.0.len());
        let ended = at(sequences.start)..at(sequences.end);
        for record in self.0.range_mut(ended).filter(|record| record.state == CollectiveState::UnderWay) {
            record.state = state;
        }
    }

    /// All of them, the oldest first.
    pub(crate) fn all(&self) -> Vec<CollectiveRecord> {
        self.0.iter().cloned().collect()
    }

    /// Those that an error tells.
    pub(crate) fn told(&self) -> Vec<CollectiveRecord> {
        self.0.range(self.0.len().saturating_sub(TOLD)..).cloned().collect()
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_operations_are_kept_with_their_states() {
        let mut record = Record::default();
        for sequence in 0..KEPT as u64 + 5 {
            record.begin(sequence, CollectiveCall::new("all_reduce", "f32", 4));
        }
        record.end(0..3, CollectiveState::Failed);
        record.end(KEPT as u64..KEPT as u64 + 1, CollectiveState::Done);
        let all = record.all();
        assert_eq!((all.len(), all[0].sequence), (KEPT, 5), "the oldest are forgotten");
        let done: Vec<u64> = all
            .iter()
            .filter(|record| record.state != CollectiveState::UnderWay)
            .map(|record| record.sequence)
            .collect();
        assert_eq!(done, [KEPT as u64]);
        let told = record.told();
        assert_eq!((told.len(), told[TOLD - 1].sequence), (TOLD, KEPT as u64 + 4));
        assert_eq!(told[3].to_string(), "1024: all_reduce of 4 f32 (done)");
    }
}
