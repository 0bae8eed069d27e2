//! Automatic, lazy ordering (law 5).
//!
//! Every stream is a [`Timeline`]: it gives out rising submission indexes under one lock with the driver's enqueue, so
//! that submission index order is queue order. Every allocation keeps an [`AccessLog`]: the last writers and the
//! readers since, by byte extent, as (timeline, submission index). Work on one stream costs no event. Only when another
//! stream needs the memory is one event recorded on the producer ([`RecordedEvent`]) and waited for on the consumer,
//! and the stream remembers its waits.
//!
//! `README.md` beside this file has the protocol, the locks, the atomics, and why they suffice.

mod aborted;
mod access;
mod access_log;
mod callbacks;
mod context;
mod copy_out_queue;
mod counters;
mod events;
mod foreign_timelines;
mod gate;
mod held_context;
mod host_wait;
mod locked_logs;
mod queue;
mod recording;
mod submission;
mod submit;
mod timeline;
mod tracked;
mod waits;

pub use access::{Access, Uses};
pub use access_log::{AccessLog, QueueRef};
pub use context::{DeviceContext, ErrorQueue, is_same_device};
pub use counters::{Counters, DeviceCounters};
pub use events::RecordedEvent;
pub use gate::{Admitted, Work, refuse_overlap};
pub use held_context::HeldContext;
pub(crate) use host_wait::is_refused;
pub use host_wait::{Span, WaitOutcome};
pub use recording::{Calls, Command, Program, RecordedLaunch, Recording, Sink};
pub use submit::{LentStream, Submitted};
pub use timeline::Timeline;
pub use tracked::Tracked;

/// Returns a number that is unique in this process, for streams and scopes, and later than those before it.
pub fn unique_id() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    // Each number acquires what came before the smaller ones: see `Tracked::lend`.
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::AcqRel)
}
