//! Records the use of memory while a program runs, and analyses it afterwards. Uses no device and no driver.
//!
//! * A [`Trace`] is a recording: plain data, written as JSON ([`Trace::to_json`]) and read back ([`Trace::from_json`]).
//! * [`Trace::peaks`] says which allocations held memory when most was in use. [`Trace::to_perfetto`] writes the trace
//!   for the viewers ui.perfetto.dev and `chrome://tracing`.
//! * [`log`] is for `gpumem-runtime`, which reports every allocation, free, use and wait to a [`Recorder`](log::Recorder).

#![forbid(unsafe_code)]

mod check;
mod clock;
mod decode;
mod event;
mod event_log;
mod format;
mod indices;
mod merge;
mod options;
mod perfetto;
mod process;
mod recorder;
mod usage;

pub use check::TraceError;
pub use format::{
    FORMAT, Trace, TraceAllocation, TraceDevice, TraceEvent, TraceEventKind, TraceKind, TraceKindStart,
    TraceStream, TraceThread,
};
pub use options::{Overflow, RecorderOptions};
pub use process::ENV_TRACE_FILE;
pub use usage::{Peak, PeakHolder, Usage};

/// For `gpumem-runtime`: where events are written.
#[doc(hidden)]
pub mod log {
    pub use crate::{
        event::{AllocationInfo, CollectiveInfo},
        event_log::{EventLog, InitialState},
        process::begin,
        recorder::Recorder,
    };
    /// The time of events.
    pub mod clock {
        pub use crate::clock::{Clock, clock, is_available};
    }
}
