//! How a communicator is set up.

use std::{env, time::Duration};

/// How a communicator is set up. All ranks use the same options. On GPUs, ranks of several processes are not compared: what they call
/// with different options may not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// How long an operation waits for the other ranks, from the moment at which the first one has come. Afterwards it
    /// fails on every rank, and so do all later operations of the communicator. 10 minutes by default.
    pub timeout: Duration,
    /// Whether the ranks may call operations of communicators that were [split](crate::Communicator::split) from each
    /// other in different orders. False by default: then it is an error. With several threads a rank, each with a communicator of
    /// its own, it has to be true.
    pub concurrent: bool,
    /// Whether ranks on GPUs in several processes compare what they call before anything is moved, as those of one process and ranks
    /// on the host always do; calls then wait for the other ranks. On the host, ranks in several processes also compare the order in
    /// which they call operations of several communicators. False by default: on GPUs ranks of several processes that disagree are
    /// found by the deadline, or get wrong elements. `GPUMEM_COLLECTIVE_CHECK=1` makes it true.
    pub check: bool,
}

impl Options {
    /// The defaults.
    pub fn new() -> Self {
        let check = env::var_os("GPUMEM_COLLECTIVE_CHECK").is_some_and(|value| value == "1");
        Self { timeout: Duration::from_secs(600), concurrent: false, check }
    }

    /// With this deadline.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// With a comparison of what the ranks call, or not.
    #[must_use]
    pub fn check(mut self, check: bool) -> Self {
        self.check = check;
        self
    }

    /// With operations of several communicators in any order, or not.
    #[must_use]
    pub fn concurrent(mut self, concurrent: bool) -> Self {
        self.concurrent = concurrent;
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}
