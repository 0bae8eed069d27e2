//! How a recording is made.

/// What becomes of events that no longer fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overflow {
    /// Keeps the newest events, as an aircraft's recorder does. From dropped events, the recording keeps what they say
    /// about memory that is still allocated.
    #[default]
    KeepNewest,
    /// The oldest are kept: the trace ends at the first event that found no room.
    KeepOldest,
}

/// How a recording is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecorderOptions {
    /// Bytes that events may take, at 24 to 48 each; they are taken as they are needed, 32 KiB at a time, and by each thread
    /// for itself: every thread that records has its 32 KiB, also beyond this limit. 64 MiB by default.
    pub limit_bytes: usize,
    /// What becomes of events that no longer fit.
    pub overflow: Overflow,
    /// Whether uses and waits are recorded, or only allocations and frees.
    pub uses: bool,
}

impl Default for RecorderOptions {
    fn default() -> Self {
        Self { limit_bytes: 64 << 20, overflow: Overflow::default(), uses: true }
    }
}
