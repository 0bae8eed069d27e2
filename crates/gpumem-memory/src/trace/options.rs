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
    /// Bytes that events may take, at 80 each; they are taken as they are needed. Beyond the limit come up to 40 KiB of the
    /// last events of each thread, for at most 64 threads. 64 MiB by default.
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
