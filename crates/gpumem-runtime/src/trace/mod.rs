//! Records the use of memory, for analysis afterwards.
//!
//! * [`Device::record_memory`](crate::Device::record_memory) starts a [`Recording`]: every allocation, free, use and wait,
//!   with its stream, thread and time. The environment variable [`GPUMEM_TRACE_FILE`](ENV_TRACE_FILE) does it for a whole
//!   program.
//! * A [`Trace`] is a recording: plain data, written as JSON ([`Trace::to_json`]) and read back ([`Trace::from_json`]).
//! * [`Trace::to_perfetto`] writes it for ui.perfetto.dev and `chrome://tracing`.
//! * [`Device::replay_memory`](crate::Device::replay_memory) does it again, against any [`MemoryResource`](gpumem_memory::memory::MemoryResource) of any backend.
//! * [`Device::simulate_memory`](crate::Device::simulate_memory) says whether it fits into a pool with a limit.

mod recording;
mod replay;
mod simulate;

pub use gpumem_memory::trace::{
    ENV_TRACE_FILE, FORMAT, FreeTime, Overflow, Peak, PeakHolder, RecorderOptions, Trace, TraceAllocation,
    TraceDevice, TraceError, TraceEvent, TraceEventKind, TraceKind, TraceKindStart, TraceStream, TraceThread,
    Usage,
};
pub use recording::Recording;
pub use replay::{ReplayOptions, ReplayReport};
pub use simulate::Verdict;
