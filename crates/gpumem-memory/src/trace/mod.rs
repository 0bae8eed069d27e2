//! Records the use of memory while a program runs, and analyses it afterwards. Uses no device and no driver.
//!
//! * A [`Trace`] is a recording: plain data, written as JSON ([`Trace::to_json`]) and read back ([`Trace::from_json`]).
//! * [`Trace::peaks`] says which allocations held memory when most was in use. [`Trace::to_perfetto`] writes the trace
//!   for the viewers ui.perfetto.dev and `chrome://tracing`.
//! * [`Trace::from_torch`] and [`Trace::from_rmm_csv`] read what PyTorch and RMM have recorded.
//! * [`Trace::to_memory_viz`] writes it for the viewer pytorch.org/memory_viz.
//! * Every allocation, free, use and wait is reported to the [`Recorder`] of its device.

mod check;
pub mod clock;
mod decode;
mod event;
mod event_log;
mod format;
mod import;
mod indices;
mod memory_viz;
mod merge;
mod options;
mod perfetto;
mod process;
mod recorder;
mod usage;

pub use check::TraceError;
pub use event::{AllocationInfo, CollectiveInfo};
pub use event_log::{EventLog, InitialState};
pub use format::{
    FORMAT, Trace, TraceAllocation, TraceDevice, TraceEvent, TraceEventKind, TraceKind, TraceKindStart,
    TraceStream, TraceThread,
};
pub use import::FreeTime;
pub use options::{Overflow, RecorderOptions};
pub use process::{ENV_TRACE_FILE, begin};
pub use recorder::Recorder;
pub use usage::{Peak, PeakHolder, Usage};
