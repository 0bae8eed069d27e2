//! The groups that one thread runs, one after the other.

use std::{
    ops::Range,
    time::{Duration, Instant},
};

/// A launch is not judged by less.
const LOOK: Duration = Duration::from_micros(2);
/// Work that takes longer than this is worth waking other threads: once or twice the time of a wake-up.
const WORTH: Duration = Duration::from_micros(20);

/// Numbers of groups, one after the other: all of a range, or as many as it takes to know that the rest is worth sharing.
#[derive(Debug)]
pub(crate) struct Batch {
    next: u64,
    /// Where to look at the clock, or the end.
    stop: u64,
    end: u64,
    /// When the first group began, and its number.
    began: Option<(Instant, u64)>,
}

impl Batch {
    /// All groups of a range.
    pub(crate) fn all(numbers: Range<u64>) -> Self {
        Self { next: numbers.start, stop: numbers.end, end: numbers.end, began: None }
    }

    /// Runs the groups of a range, until the rest is known to take long.
    pub(crate) fn while_short(numbers: Range<u64>) -> Self {
        let first = numbers.start;
        let stop = numbers.end.min(first.saturating_add(1));
        Self { next: first, stop, end: numbers.end, began: Some((Instant::now(), first)) }
    }

    /// The rest of the range.
    pub(crate) fn rest(&self) -> Range<u64> {
        self.next..self.end
    }

    /// Whether there is more to do here.
    #[cold]
    fn goes_on(&mut self) -> bool {
        let Some((start, first)) = self.began.filter(|_| self.next < self.end) else { return false };
        let (done, left) = (self.next - first, self.end - self.next);
        let spent = start.elapsed();
        // Seconds as they are: nothing overflows, and it is a guess.
        if spent >= LOOK && spent.as_secs_f64() * (left as f64 / done as f64) > WORTH.as_secs_f64() {
            return false;
        }
        self.stop = self.end.min(self.next.saturating_add(done));
        true
    }
}

impl Iterator for Batch {
    type Item = u64;

    #[inline(always)]
    fn next(&mut self) -> Option<u64> {
        if self.next == self.stop && !self.goes_on() {
            return None;
        }
        let number = self.next;
        self.next += 1;
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_of_a_range_runs_however_long_each_takes() {
        assert_eq!(Batch::all(3..3).count(), 0);
        assert_eq!(Batch::all(3..9).collect::<Vec<_>>(), [3, 4, 5, 6, 7, 8]);
        assert_eq!(Batch::while_short(5..5).count(), 0);
        let mut batch = Batch::while_short(0..1);
        assert_eq!((batch.next(), batch.next(), batch.rest()), (Some(0), None, 1..1));
    }

    #[test]
    fn long_work_is_left_to_other_threads() {
        let mut batch = Batch::while_short(7..1 << 40);
        let mut last = 6;
        for number in batch.by_ref() {
            assert_eq!(number, last + 1);
            last = number;
        }
        assert!(last >= 7, "at least one group runs, or the test shows nothing");
        assert_eq!(batch.rest(), last + 1..1 << 40);
        assert_eq!(batch.next(), None, "and it stays so");
    }
}
