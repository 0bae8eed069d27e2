//! Faults of a stream: failures that no call has reported yet.
//!
//! A fault lasts from the command that failed until a caller has waited for the stream (or the device) and got the
//! error. Commands enqueued in between do not run. Events in that span have failed for good; commands enqueued later
//! run.

use super::Fault;
use std::collections::VecDeque;
use std::sync::Arc;

/// Most spans that are remembered for the sake of old events.
const HISTORY: usize = 16;

#[derive(Debug)]
struct Span {
    from: u64,
    /// The last submission index that does not run, or `u64::MAX` until a caller has been told.
    to: u64,
    fault: Fault,
}

impl Span {
    fn is_open(&self) -> bool {
        self.to == u64::MAX
    }
}

/// The spans of failed submission indexes of one stream.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    spans: VecDeque<Span>,
    /// Number of spans that were closed.
    told: u64,
}

impl Faults {
    /// Notes that the command with this submission index failed.
    pub(crate) fn raise(&mut self, submission: u64, fault: Fault) {
        if self.open().is_some() {
            return;
        }
        if self.spans.len() == HISTORY {
            self.spans.pop_front();
        }
        self.spans.push_back(Span { from: submission, to: u64::MAX, fault });
    }

    /// Returns the failure that makes the event at this submission index a failed one.
    pub(crate) fn at(&self, submission: u64) -> Option<Fault> {
        self.spans
            .iter()
            .find(|span| span.from <= submission && submission <= span.to)
            .map(|span| span.fault.clone())
    }

    /// As [`at`](Self::at), for an event that was recorded when `told` faults had been reported. No command is between
    /// the end of such a fault and the event, so their submission indexes may be the same.
    pub(crate) fn at_mark(&self, submission: u64, told: u64) -> Option<Fault> {
        let closed = self.spans.iter().filter(|span| !span.is_open()).count() as u64;
        let forgotten = self.told.saturating_sub(closed);
        let since = self.spans.iter().skip(told.saturating_sub(forgotten) as usize);
        let mut found = since.filter(|span| span.from <= submission && submission <= span.to);
        found.next().map(|span| span.fault.clone())
    }

    /// The fault that no caller has been told of.
    pub(crate) fn open(&self) -> Option<Arc<str>> {
        self.spans.back().filter(|span| span.is_open()).map(|span| Arc::clone(&span.fault.what))
    }

    /// How many faults have been told, for [`tell`](Self::tell).
    pub(crate) fn told(&self) -> u64 {
        self.told
    }

    /// Reports to a caller that began to wait when `told` faults had been reported, and ends the open span at
    /// `enqueued`. Two threads that wait for the same work both get the error.
    pub(crate) fn tell(&mut self, told: u64, enqueued: u64) -> Option<Arc<str>> {
        if self.told > told {
            return self.spans.back().map(|span| Arc::clone(&span.fault.what));
        }
        let span = self.spans.back_mut().filter(|span| span.is_open())?;
        span.to = enqueued;
        self.told += 1;
        Some(Arc::clone(&span.fault.what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpumem_core::Failure;

    fn fault(what: &str) -> Fault {
        Fault { what: what.into(), failure: Arc::new(Failure::new("test", "nowhere", what)) }
    }

    #[test]
    fn a_fault_lasts_until_it_is_reported() {
        let mut faults = Faults::default();
        assert_eq!(faults.tell(0, 5), None);
        faults.raise(3, fault("first"));
        faults.raise(4, fault("second"));
        assert!(faults.at(2).is_none() && faults.at(3).is_some() && faults.at(99).is_some());
        let told = faults.told();
        assert_eq!(faults.tell(told, 6).as_deref(), Some("first"));
        assert_eq!(
            faults.tell(told, 6).as_deref(),
            Some("first"),
            "a second thread that waited gets the error"
        );
        assert_eq!(faults.tell(faults.told(), 6), None, "a later wait does not");
        assert!(faults.at(6).is_some() && faults.at(7).is_none());
    }
}
