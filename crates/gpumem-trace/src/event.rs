//! One event as it is written down.

use gpumem_core::MemoryKind;

/// An event. Streams and allocations are their numbers in this process; stream 0 means no stream, or the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogEvent {
    Allocate {
        request: AllocationInfo,
        id: u64,
    },
    /// A request that found no memory.
    Fail {
        request: AllocationInfo,
    },
    Free {
        id: u64,
        bytes: u64,
        kind: u8,
    },
    Use {
        id: u64,
        start: u64,
        bytes: u64,
        stream: u64,
        submission: u64,
        operation: &'static str,
        write: bool,
        /// The slot of the kind; [`FOREIGN`] for foreign memory.
        kind: u8,
    },
    /// `stream` waits until `of` has reached `submission`; the host, where `stream` is 0, has done so for that long.
    Wait {
        stream: u64,
        of: u64,
        submission: u64,
        nanoseconds: u64,
    },
    /// A resource has got so much from the driver, or given it back.
    Reserve {
        bytes: i64,
        kind: u8,
    },
    /// An operation of several ranks has ended on a stream.
    Collective(CollectiveInfo),
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllocationInfo {
    pub(crate) bytes: u64,
    pub(crate) stream: u64,
    pub(crate) operation: &'static str,
    /// The number of the name on the log, plus 1; 0 for none.
    pub(crate) name: u32,
    pub(crate) kind: u8,
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
        let (kind, align) = (kind_byte(kind), align.trailing_zeros() as u8);
        Self { bytes: bytes as u64, stream, operation, name: 0, kind, align, host_first }
    }
}

#[inline(always)]
pub(crate) fn kind_byte(kind: MemoryKind) -> u8 {
    kind.index().map_or(FOREIGN, |slot| slot as u8)
}

/// In the place of a kind: memory that did not come from an allocation.
pub(crate) const FOREIGN: u8 = u8::MAX;

/// A note with its time.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimedEvent {
    pub(super) time: u64,
    pub(super) note: LogEvent,
}
