//! One event as it is kept while the program runs.

use super::format::TraceKind;
use gpumem_core::MemoryKind;
use std::sync::Arc;

/// An event with its time, in ticks of the clock, and its thread.
#[derive(Debug)]
pub(crate) struct TimedEvent {
    pub(crate) time: u64,
    pub(crate) thread: u32,
    pub(crate) event: LogEvent,
}

/// An event. Streams and allocations are their numbers in this process; stream 0 means no stream, or the host.
#[derive(Debug)]
pub(crate) enum LogEvent {
    Allocate {
        id: u64,
        request: AllocationInfo,
    },
    /// A request that found no memory.
    Fail {
        request: AllocationInfo,
    },
    Free {
        id: u64,
        bytes: u64,
        kind: Option<TraceKind>,
    },
    Use {
        id: u64,
        start: u64,
        bytes: u64,
        stream: u64,
        submission: u64,
        operation: &'static str,
        write: bool,
        /// `None` for foreign memory.
        kind: Option<TraceKind>,
    },
    /// `stream` waits until `of` has reached `submission`; the host, where `stream` is 0, has done so for that long.
    Wait {
        stream: u64,
        of: u64,
        submission: u64,
        took: u64,
    },
    /// A resource has got so much from the driver, or given it back.
    Reserve {
        bytes: i64,
        kind: TraceKind,
    },
    /// An operation of several ranks has ended on a stream. Boxed, or every event would be larger for it.
    Collective(Box<CollectiveInfo>),
}

/// An operation of one of several ranks that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CollectiveInfo {
    /// Its name.
    pub operation: &'static str,
    /// The number of the stream.
    pub stream: u64,
    /// Its number among those of the rank's communicator.
    pub sequence: u64,
    /// The rank.
    pub rank: u32,
    /// Bytes that each rank gives or gets.
    pub bytes: u64,
    /// Nanoseconds before the bytes moved.
    pub wait: u64,
    /// Nanoseconds for which they moved.
    pub took: u64,
}

/// A request for memory.
#[derive(Debug, Clone)]
pub struct AllocationInfo {
    pub(crate) bytes: u64,
    pub(crate) stream: u64,
    pub(crate) operation: &'static str,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) kind: Option<TraceKind>,
    /// The alignment is a power of two: this one.
    pub(crate) align: u8,
    pub(crate) host_first: bool,
}

impl AllocationInfo {
    /// A request for `bytes` bytes at a multiple of `align`, a power of two. Stream 0 is none.
    #[inline(always)]
    pub fn new(
        operation: &'static str,
        (bytes, align, kind): (usize, usize, MemoryKind),
        stream: u64,
        host_first: bool,
    ) -> Self {
        let (kind, align) = (TraceKind::of(kind), align.trailing_zeros() as u8);
        Self { bytes: bytes as u64, stream, operation, name: None, kind, align, host_first }
    }

    /// The request under a name, where it has one.
    #[inline(always)]
    pub(crate) fn named(self, name: Option<&Arc<str>>) -> Self {
        Self { name: name.cloned(), ..self }
    }
}
