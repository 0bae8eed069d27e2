//! Recording what becomes of memory, and looking at it afterwards.
//!
//! * [`Device::record_memory`](crate::Device::record_memory) starts a [`Recording`]: every allocation, free, use and wait,
//!   with its stream, thread and time. The environment variable [`GPUMEM_TRACE_FILE`](ENV_TRACE_FILE) does it for a whole
//!   program.
//! * A [`Trace`] is what was recorded: plain data, written as JSON ([`Trace::to_json`]) and read back
//!   ([`Trace::from_json`]).
//! * [`Trace::to_html`] draws it as a page that needs nothing but a browser.
//! * [`Trace::replay`] does it again, against any [`MemoryResource`](crate::memory::MemoryResource) of any backend.

mod check;
mod clock;
mod decode;
mod encode;
mod event;
mod event_log;
mod format;
mod html;
mod merge;
mod process;
mod recorder;
mod recording;
mod replay;
mod thread_writer;
mod usage;

pub use check::TraceError;
pub use format::{
    FORMAT, Trace, TraceAllocation, TraceDevice, TraceEvent, TraceEventKind, TraceKind, TraceKindStart,
    TraceStream, TraceThread,
};
pub use process::ENV_TRACE_FILE;
pub use recording::{Overflow, RecorderOptions, Recording};
pub use replay::{ReplayOptions, ReplayReport};
pub use usage::{Peak, PeakHolder, Usage};

pub(crate) use process::begin;
pub(crate) use recorder::Recorder;
