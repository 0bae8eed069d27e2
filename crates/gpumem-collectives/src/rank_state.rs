//! What every engine keeps of a rank, within a lock of its own.

use gpumem_core::{CollectiveCall, CollectiveCause, CollectiveError, CollectiveRecord, CollectiveState};
use std::{collections::VecDeque, ops::Range};

/// Operations that are kept.
const KEPT: usize = 1024;
/// Operations that the error of a deadline names.
const NAMED: usize = 8;

/// The operations of a rank in a communicator, and whether later ones can succeed.
#[derive(Debug)]
pub(crate) struct RankState {
    /// The rank, and the number of ranks.
    pub(crate) place: (usize, usize),
    /// The number of the next operation.
    pub(crate) sequence: u64,
    /// The last operations, by their numbers.
    operations: VecDeque<CollectiveRecord>,
    /// The last failure.
    pub(crate) failure: Option<CollectiveError>,
    /// Why no operation can succeed any more.
    pub(crate) revoked: Option<CollectiveCause>,
    pub(crate) has_left: bool,
}

impl RankState {
    pub(crate) fn new(place: (usize, usize)) -> Self {
        let operations = VecDeque::new();
        Self { place, sequence: 0, operations, failure: None, revoked: None, has_left: false }
    }

    /// Refuses operations of a rank that can call none any more.
    pub(crate) fn check(&self, operation: &'static str) -> Result<(), Box<CollectiveError>> {
        let error = |cause| Box::new(CollectiveError::new(operation, self.sequence, self.place, cause));
        self.ended().map_or(Ok(()), |cause| Err(error(cause)))
    }

    /// Why the rank can call no operation any more, if it cannot: a graph has operations when the communicator is gone.
    pub(crate) fn ended(&self) -> Option<CollectiveCause> {
        let why = || "its communicator was given up".to_owned();
        let left = || self.has_left.then(|| CollectiveCause::PeerLost { rank: self.place.0, why: why() });
        self.revoked.clone().or_else(left)
    }

    /// Notes an operation that is being called, also one that is refused afterwards. Returns its number.
    pub(crate) fn begin(&mut self, mut call: CollectiveCall) -> u64 {
        // Only needed for the comparison, and a heap allocation for each operation.
        call.order = Vec::new();
        if self.operations.len() == KEPT {
            self.operations.pop_front();
        }
        let sequence = self.sequence;
        self.operations.push_back(CollectiveRecord::new(sequence, call));
        self.sequence += 1;
        sequence
    }

    /// Forgets operations from this number on: they were not called after all.
    pub(crate) fn take_back(&mut self, sequence: u64) {
        self.operations.truncate(self.operations.partition_point(|record| record.sequence < sequence));
        self.sequence = sequence;
    }

    /// Notes that operations have ended well.
    pub(crate) fn end(&mut self, sequences: Range<u64>) {
        self.end_as(sequences, CollectiveState::Done);
    }

    /// Notes that operations have failed. Who sees their states sees the failure too.
    pub(crate) fn fail(
        &mut self,
        operation: &'static str,
        sequences: Range<u64>,
        cause: CollectiveCause,
    ) -> Box<CollectiveError> {
        let mut error = Box::new(CollectiveError::new(operation, sequences.start, self.place, cause));
        // Of other failures it is plain who has called what.
        if matches!(error.cause, CollectiveCause::Timeout { .. }) {
            let first = self.operations.len().saturating_sub(NAMED);
            error.recent = self.operations.range(first..).cloned().collect();
        }
        self.end_as(sequences, CollectiveState::Failed);
        self.failure = Some((*error).clone());
        error
    }

    /// Notes how the operations of these numbers that were still under way have ended.
    fn end_as(&mut self, sequences: Range<u64>, state: CollectiveState) {
        // The numbers follow each other.
        let first = self.operations.front().map_or(0, |record| record.sequence);
        let at = |sequence: u64| (sequence.saturating_sub(first) as usize).min(self.operations.len());
        let ended = at(sequences.start)..at(sequences.end);
        for record in self.operations.range_mut(ended) {
            if record.state == CollectiveState::UnderWay {
                record.state = state;
            }
        }
    }

    /// The last operations, the oldest first.
    pub(crate) fn recent(&self) -> Vec<CollectiveRecord> {
        self.operations.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_last_operations_are_kept_with_their_states() {
        let mut state = RankState::new((0, 2));
        for sequence in 0..KEPT as u64 + 5 {
            assert_eq!(state.begin(CollectiveCall::new("all_reduce", "f32", 4)), sequence);
        }
        state.fail("all_reduce", 0..3, CollectiveCause::Aborted { rank: 1 });
        state.end(KEPT as u64..KEPT as u64 + 1);
        let all = state.recent();
        assert_eq!((all.len(), all[0].sequence), (KEPT, 5), "the oldest are forgotten");
        let ended = all.iter().filter(|record| record.state != CollectiveState::UnderWay);
        assert_eq!(ended.map(|record| record.sequence).collect::<Vec<_>>(), [KEPT as u64]);
        let late = CollectiveCause::Timeout { after: Duration::ZERO, missing: Vec::new() };
        let recent = state.fail("all_reduce", 5..6, late).recent;
        assert_eq!((recent.len(), recent[NAMED - 1].sequence), (NAMED, KEPT as u64 + 4));
        assert_eq!(recent[3].to_string(), "1024: all_reduce of 4 f32 (done)");
        state.take_back(KEPT as u64 + 4);
        assert_eq!((state.sequence, state.recent().len()), (KEPT as u64 + 4, KEPT - 1));
    }
}
