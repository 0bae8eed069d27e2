//! Automatic, lazy ordering (law 5).
//!
//! Every stream is a [`Timeline`]: it gives out rising submission indexes under one lock with the driver's enqueue, so that
//! submission index order is queue order. Every allocation keeps a [`AccessLog`]: who last wrote and who has read since, by
//! byte extent, as (timeline, submission index). Work on one stream costs no event. Only when another stream needs the memory
//! is one event recorded on the producer ([`RecordedEvent`]) and waited for on the consumer, and what a stream has already
//! waited for is remembered.
//!
//! ```text
//!  submit on S                       lock use logs (by allocation id)
//!    └ lock S                        the same use again: nothing conflicts
//!        └ conflicts in the logs     for each: try to lock the other timeline, reuse or record an event, wait for it
//!            └ submission += 1           note it in the logs, unlock them
//!                └ enqueue           unlock S
//! ```
//! With a timeline locked, another one is only ever *tried*. If another thread holds it, the first is unlocked, and the
//! other one's lock is waited for alone. So there is no order among timelines to get wrong.

mod access_log;
mod copy_out_queue;
mod event_history;
mod foreign_timelines;
mod host_wait;
mod locked_logs;
#[cfg(loom)]
pub(crate) mod models;
mod queue;
mod recorded_event;
mod submission;
mod submit;
mod timeline;

pub use access_log::AccessLog;
pub(crate) use access_log::QueueRef;
pub(crate) use copy_out_queue::Lost;
pub(crate) use foreign_timelines::ForeignTimelinePool;
pub(crate) use host_wait::WaitOutcome;
pub(crate) use recorded_event::{EventPool, RecordedEvent};
pub use submit::Access;
pub(crate) use submit::Uses;
pub use timeline::Timeline;
