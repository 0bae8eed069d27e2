//! Whether threads take turns at the books.

/// What one change of threads weighs against visits of one thread.
const MEETING: u32 = 8;
/// From there on threads take turns.
const OFTEN: u32 = 64;

/// Who was here last, and how often it has lately been somebody else. Threads that take turns each find the books in the
/// cache of another processor, although the lock itself is hardly ever found held then.
#[derive(Debug, Default)]
pub(super) struct Meetings {
    /// The thread that was here last.
    thread: usize,
    weight: u32,
}

impl Meetings {
    /// A thread is here. Whether others have been here in turn with it, again and again; that is told once, and counted
    /// anew.
    #[inline]
    pub(super) fn visit(&mut self, thread: usize) -> bool {
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
    fn a_thread_among_few_visits_of_others_meets_nobody() {
        let mut meetings = Meetings::default();
        for round in 0..1000 {
            assert!(!meetings.visit(if round % 20 == 0 { 2 } else { 1 }), "round {round}");
        }
    }

    #[test]
    fn threads_that_take_turns_are_told_so_again_and_again() {
        let mut meetings = Meetings::default();
        let told = (0..1000).filter(|round| meetings.visit(1 + round % 2)).count();
        assert_eq!(told, 1000 / (OFTEN / MEETING + 1) as usize);
    }
}
