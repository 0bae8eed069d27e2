//! Deadlines, of any length.

use std::time::{Duration, Instant};

/// The end of a wait. A length that no clock reaches has none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    /// So long from now.
    pub(crate) fn after(wait: Duration) -> Self {
        Self(Instant::now().checked_add(wait))
    }

    pub(crate) fn is_over(self) -> bool {
        self.rest() == Some(Duration::ZERO)
    }

    /// The time that is left; `None` if the wait has no end.
    pub(crate) fn rest(self) -> Option<Duration> {
        self.0.map(|end| end.saturating_duration_since(Instant::now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_wait_has_no_end() {
        assert!(Deadline::after(Duration::ZERO).is_over());
        let longest = Deadline::after(Duration::MAX);
        assert!(!longest.is_over() && longest.rest().is_none());
    }
}
