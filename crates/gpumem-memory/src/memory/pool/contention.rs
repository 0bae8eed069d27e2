//! Whether threads take turns at the allocator.

/// What one change of threads weighs against visits of one thread.
const MEETING: u32 = 8;
/// From there on threads take turns.
const OFTEN: u32 = 64;

/// Who was here last, and how often it has lately been another user. Threads that take turns each find the allocator in
/// the cache of another processor, although the lock itself is hardly ever found held then.
#[derive(Debug, Default)]
pub(super) struct ContentionCounter {
    /// The thread that was here last.
    thread: usize,
    weight: u32,
}

impl ContentionCounter {
    /// A thread is here. Whether others have been here in turn with it, again and again; that is told once, and counted
    /// anew.
    #[inline]
    pub(super) fn record(&mut self, thread: usize) -> bool {
        if self.thread == thread {
            self.weight = self.weight.saturating_sub(1);
            return false;
        }
        (self.thread, self.weight) = (thread, self.weight + MEETING);
        let often = self.weight > OFTEN;
        if often {
            self.weight = 0;
        }
        often
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_visits_of_other_threads_are_no_contention() {
        let mut contention = ContentionCounter::default();
        for round in 0..1000 {
            assert!(!contention.record(if round % 20 == 0 { 2 } else { 1 }), "round {round}");
        }
    }

    #[test]
    fn alternating_threads_are_contention() {
        let mut contention = ContentionCounter::default();
        let told = (0..1000).filter(|round| contention.record(1 + round % 2)).count();
        assert_eq!(told, 1000 / (OFTEN / MEETING + 1) as usize);
    }
}
