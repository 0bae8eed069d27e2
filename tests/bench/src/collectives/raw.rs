//! What ours is measured against.

use super::Operation;
use anyhow::Result;
use std::time::Duration;

/// How long calls took until the last one returned, and until all were done.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Taken {
    pub(super) enqueue: Duration,
    pub(super) all: Duration,
}

/// The arrays of a rank, for calls without ours.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "the plain loop has arrays of its own"))]
pub(super) struct Places {
    pub(super) source: u64,
    pub(super) destination: u64,
    /// Elements of a block.
    pub(super) count: usize,
}

/// One rank's end of the reference.
pub(super) trait Raw {
    fn name(&self) -> &'static str;

    /// Makes that many calls, and waits for them at the end.
    fn run(&mut self, operation: Operation, places: Places, calls: usize) -> Result<Taken>;

    /// The destination, if it is not the array of the device.
    fn own_destination(&self) -> Option<&[f32]> {
        None
    }
}
