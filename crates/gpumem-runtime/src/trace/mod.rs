//! Recording what becomes of memory, and looking at it afterwards.
//!
//! * [`Device::record_memory`](crate::Device::record_memory) starts a [`Recording`]: every allocation, free, use and wait,
//!   with its stream, thread and time. The environment variable [`GPUMEM_RECORD`](RECORD_VARIABLE) does it for a whole
//!   program.
//! * A [`Trace`] is what was recorded: plain data, written as JSON ([`Trace::to_json`]) and read back
//!   ([`Trace::from_json`]).
//! * [`Trace::to_html`] draws it as a page that needs nothing but a browser.
//! * [`Trace::replay`] does it again, against any [`MemoryResource`](crate::memory::MemoryResource) of any backend.

mod assemble;
mod check;
mod clock;
mod code;
mod format;
mod merge;
mod note;
mod page;
mod pen;
mod program;
mod recorder;
mod recording;
mod replay;
mod tape;
mod usage;

pub use check::TraceError;
pub use format::{
    FORMAT, Happening, Trace, TraceAllocation, TraceDevice, TraceEvent, TraceKind, TraceKindStart,
    TraceStream, TraceThread,
};
pub use program::RECORD_VARIABLE;
pub use recording::{Overflow, RecorderOptions, Recording};
pub use replay::{ReplayOptions, ReplayReport};
pub use usage::{Peak, PeakHolder, Usage};

pub(crate) use program::begin;
pub(crate) use recorder::Recorder;
