//! Guessing whether the caller will wait at once.
//!
//! Waking a worker costs as much as copying some hundred kilobytes, and is wasted where the thread that enqueues a copy
//! waits for it in its next call and so runs it itself. A stream that is used in that way gets its commands run on the
//! spot. One command that was not waited for at once ends the guess.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// Waits at once in a row before the next one is expected.
const CERTAIN: u8 = 2;
/// A wait that comes later than this after the enqueuing comes too late.
const AT_ONCE: Duration = Duration::from_micros(20);
/// Times the limit for brief commands: the limit for running on the calling thread where a wait is expected.
const STRETCH: usize = 64;

thread_local! {
    /// The last command that this thread enqueued on any stream.
    static LAST: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// How one stream is used.
#[derive(Debug, Default)]
pub(crate) struct SyncPredictor {
    hits: u8,
    /// The last command that was too long to be brief, and when its enqueuing ended.
    open: Option<(u64, Instant)>,
}

impl SyncPredictor {
    /// The limit for the next command, given that for brief ones.
    pub(crate) fn limit(&self, brief: usize) -> usize {
        if self.hits >= CERTAIN && self.open.is_none() { brief.saturating_mul(STRETCH) } else { brief }
    }

    /// A long command was enqueued.
    pub(crate) fn enqueued(&mut self, stream: u64, submission: u64) {
        if self.open.replace((submission, Instant::now())).is_some() {
            self.hits = 0;
        }
        let _ = LAST.try_with(|last| last.set((stream, submission)));
    }

    /// The stream is being waited for, with everything up to `submission`.
    pub(crate) fn waited(&mut self, stream: u64, submission: u64) {
        let Some((long, end)) = self.open.take() else { return };
        let directly = LAST.try_with(|last| last.get() == (stream, submission)) == Ok(true);
        if directly && long == submission && end.elapsed() < AT_ONCE {
            self.hits = self.hits.saturating_add(1);
        } else {
            self.hits = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SyncPredictor;

    #[test]
    fn a_stream_that_is_always_waited_for_is_expected_to_be() {
        let mut predictor = SyncPredictor::default();
        for submission in 1..=20 {
            predictor.enqueued(7, submission);
            predictor.waited(7, submission);
        }
        // A loaded machine may let 20 us pass anywhere; what matters is that a hit is possible and a miss certain.
        let expected = predictor.limit(10) == 640;
        assert!(expected || predictor.hits < 20);
        predictor.enqueued(7, 21);
        assert_eq!(predictor.limit(10), 10, "the last one has not been waited for yet");
        predictor.enqueued(7, 22);
        predictor.waited(7, 22);
        assert!(predictor.hits <= 1 && predictor.limit(10) == 10, "two in a row end the guess");
        predictor.enqueued(7, 23);
        predictor.enqueued(8, 1);
        predictor.waited(7, 23);
        assert_eq!(predictor.hits, 0, "another stream came in between");
    }
}
