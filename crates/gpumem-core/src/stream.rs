//! Which stream is meant, and how it is made.

/// A stream as the driver knows it: a pointer or a small number, for use with other libraries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RawStream(pub u64);

/// Which stream is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum StreamKind {
    /// A new stream of our own.
    #[default]
    New,
    /// The driver's legacy default stream. Its implicit ordering with other streams is never relied on.
    Legacy,
    /// The driver's per-thread default stream: a different stream on each thread.
    PerThread,
}

/// How a stream is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StreamOptions {
    /// Which stream.
    pub kind: StreamKind,
    /// Does not synchronise implicitly with the legacy default stream. The default.
    pub non_blocking: bool,
    /// Priority; lower numbers come first, 0 is the default. Clamped to what the device offers
    /// ([`Capabilities::stream_priorities`](crate::Capabilities::stream_priorities)).
    pub priority: i32,
}

impl Default for StreamOptions {
    fn default() -> Self {
        Self { kind: StreamKind::New, non_blocking: true, priority: 0 }
    }
}
