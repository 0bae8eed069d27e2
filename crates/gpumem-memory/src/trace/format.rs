//! The trace format: plain data that is serialised as JSON.

use gpumem_core::MemoryKind;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The version of the format that this library writes and reads. A change that older readers would misread counts up.
pub const FORMAT: u32 = 1;

/// Words for the kinds of memory, in the order of their slots.
const KIND_WORDS: [&str; MemoryKind::ALLOCATED.len()] = [
    "device",
    "pinned",
    "mapped",
    "mapped-portable",
    "mapped-wc",
    "mapped-portable-wc",
    "managed",
    "managed-host",
];

/// A recording as data. Tables refer to each other by index. Times are nanoseconds from [`start`](Self::start).
///
/// The JSON of a trace has the names of these fields. An event is one of `allocate`, `fail`, `free`, `use`, `wait`, `collective`,
/// `reserve` and `release` (between a resource and the driver). The stream `null` is the host. Memory without an `allocate`
/// event existed before the recording; `other` counts earlier memory that has no event. [`from_json`](Self::from_json) refuses contradictions.
///
/// # Examples
/// ```
/// # use gpumem_memory::trace::Trace;
/// let json = r#"
/// {"format": 1, "start": 300, "span": 15000, "lost": 0,
///  "devices": [{"name": "cuda:0", "total": 85029158912,
///               "start": [{"kind": "device", "reserved": 33554432, "other": 4096}]}],
///  "streams": [{"number": 2}],
///  "threads": [{"number": 1, "name": "main"}],
///  "names": ["weights"],
///  "operations": ["device_array", "fill"],
///  "allocations": [{"device": 0, "kind": "device", "bytes": 4194304, "align": 256, "name": 0, "operation": 0,
///                   "stream": null, "host_first": false}],
///  "events": [{"time": 1510, "thread": 0, "do": "allocate", "memory": 0},
///             {"time": 9770, "thread": 0, "do": "use", "memory": 0, "from": 0, "bytes": 4194304, "write": true,
///              "stream": 0, "submission": 1, "operation": 1},
///             {"time": 12800, "thread": 0, "do": "wait", "stream": null, "of": 0, "submission": 1, "took": 2400},
///             {"time": 13020, "thread": 0, "do": "free", "memory": 0}]}
/// "#;
/// let trace = Trace::from_json(json)?;
/// assert_eq!(trace.events.len(), 4);
/// # Ok::<(), gpumem_memory::trace::TraceError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// [`FORMAT`].
    pub format: u32,
    /// When the trace begins, in nanoseconds on a clock that all traces of one process share.
    pub start: u64,
    /// Its length in nanoseconds.
    pub span: u64,
    /// Events that are missing: before its begin, or after its end.
    pub lost: u64,
    /// The devices, usually one.
    pub devices: Vec<TraceDevice>,
    /// The streams that occur.
    pub streams: Vec<TraceStream>,
    /// The threads that occur.
    pub threads: Vec<TraceThread>,
    /// Names of allocations.
    pub names: Vec<String>,
    /// Operations, in the library's words.
    pub operations: Vec<String>,
    /// Every piece of memory that an event is about.
    pub allocations: Vec<TraceAllocation>,
    /// The events, by time.
    pub events: Vec<TraceEvent>,
}

impl Trace {
    /// A trace of nothing.
    pub fn empty() -> Self {
        Self {
            format: FORMAT,
            start: 0,
            span: 0,
            lost: 0,
            devices: Vec::new(),
            streams: Vec::new(),
            threads: Vec::new(),
            names: Vec::new(),
            operations: Vec::new(),
            allocations: Vec::new(),
            events: Vec::new(),
        }
    }
}

/// A device of a trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceDevice {
    /// Its name, for example `cuda:0`.
    pub name: String,
    /// Bytes of its memory.
    pub total: usize,
    /// Kinds of memory that were in use at the start.
    pub start: Vec<TraceKindStart>,
}

/// A kind of memory at the start of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceKindStart {
    /// The kind.
    pub kind: TraceKind,
    /// Bytes that its resource held.
    pub reserved: u64,
    /// Allocated bytes that no event of the trace mentions.
    pub other: u64,
}

/// A stream of a trace.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TraceStream {
    /// Its number in the process.
    pub number: u64,
}

/// A thread of a trace.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TraceThread {
    /// Its number in the process, in the order in which threads began to record.
    pub number: u64,
    /// Its name, where it has one.
    pub name: Option<String>,
}

/// A piece of memory. It begins with an event `allocate`, or has been there before the trace began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceAllocation {
    /// Index of its device.
    pub device: u32,
    /// Its kind; `None` for foreign memory, which no allocation made.
    pub kind: Option<TraceKind>,
    /// Requested bytes. For memory whose allocation is not in the trace, the known size.
    pub bytes: u64,
    /// Alignment in bytes that was asked for.
    pub align: u64,
    /// Index of its name.
    pub name: Option<u32>,
    /// Index of the operation that made it.
    pub operation: Option<u32>,
    /// Index of the stream that was likely to use it first.
    pub stream: Option<u32>,
    /// Whether the host was going to touch it first.
    pub host_first: bool,
}

/// Something that happened at a time, on a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceEvent {
    /// Nanoseconds from the start. The end, for a wait of the host.
    pub time: u64,
    /// Index of the thread.
    pub thread: u32,
    /// What happened.
    #[serde(flatten)]
    pub what: TraceEventKind,
}

/// The kind of an event. In JSON the field `do` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase")]
pub enum TraceEventKind {
    /// Memory was allocated.
    Allocate {
        /// Index of the allocation.
        memory: u32,
    },
    /// A request failed for lack of memory. No other event mentions this allocation.
    Fail {
        /// Index of the allocation that was not made.
        memory: u32,
    },
    /// Memory was freed: its array was dropped. Work that was enqueued before may still have used it.
    Free {
        /// Index of the allocation.
        memory: u32,
    },
    /// Work that uses memory was enqueued, or the host has used it.
    Use {
        /// Index of the allocation.
        memory: u32,
        /// The first byte.
        from: u64,
        /// Number of bytes.
        bytes: u64,
        /// Whether it writes.
        write: bool,
        /// Index of the stream; `None` for the host.
        stream: Option<u32>,
        /// How much had been enqueued on the stream, this included.
        submission: u64,
        /// Index of the operation.
        operation: u32,
    },
    /// A stream was told to wait for another, or the host has waited for it.
    Wait {
        /// Index of the stream that waits; `None` for the host.
        stream: Option<u32>,
        /// Index of the stream that is waited for.
        of: u32,
        /// The position in that stream that is waited for.
        submission: u64,
        /// Nanoseconds that the host has waited; 0 for a stream.
        took: u64,
    },
    /// A resource got memory from the driver.
    Reserve {
        /// Index of the device.
        device: u32,
        /// The kind.
        kind: TraceKind,
        /// Number of bytes.
        bytes: u64,
    },
    /// A resource gave memory back to the driver.
    Release {
        /// Index of the device.
        device: u32,
        /// The kind.
        kind: TraceKind,
        /// Number of bytes.
        bytes: u64,
    },
    /// An operation of several ranks ended, at the time of the event.
    Collective {
        /// Index of the stream.
        stream: u32,
        /// Index of the operation.
        operation: u32,
        /// Its number among those of the rank's communicator.
        sequence: u64,
        /// The rank.
        rank: u32,
        /// Bytes that each rank gives or gets.
        bytes: u64,
        /// Nanoseconds before its bytes moved: on the host the stream waited for other ranks, on a GPU for its turn.
        wait: u64,
        /// Nanoseconds for which they moved; on a GPU with the time for which it waited for other ranks.
        took: u64,
    },
}

/// A kind of memory that is allocated. In JSON one of `device`, `pinned`, `mapped`, `mapped-portable`, `mapped-wc`,
/// `mapped-portable-wc`, `managed`, `managed-host`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceKind(u8);

impl TraceKind {
    /// Every kind.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..KIND_WORDS.len() as u8).map(Self)
    }

    /// The kind of memory; `None` for registered memory, which is not allocated.
    pub fn of(kind: MemoryKind) -> Option<Self> {
        kind.index().map(|slot| Self(slot as u8))
    }

    /// A request to a memory resource.
    pub fn memory_kind(self) -> MemoryKind {
        MemoryKind::ALLOCATED.get(usize::from(self.0)).copied().unwrap_or(MemoryKind::Device)
    }

    /// The word for it.
    pub fn word(self) -> &'static str {
        KIND_WORDS.get(usize::from(self.0)).copied().unwrap_or("device")
    }
}

impl Serialize for TraceKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

impl<'de> Deserialize<'de> for TraceKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        let slot = KIND_WORDS.iter().position(|known| *known == word);
        let unknown = || serde::de::Error::unknown_variant(&word, &KIND_WORDS);
        slot.map(|slot| Self(slot as u8)).ok_or_else(unknown)
    }
}
