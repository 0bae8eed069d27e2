//! Automatic, lazy ordering (law 5).
//!
//! Every stream is a [`Timeline`]: it gives out rising tickets under one lock with the driver's enqueue, so that
//! ticket order is queue order. Every allocation keeps a [`UseLog`]: who last wrote and who has read since, by byte
//! extent, as (timeline, ticket). Work on one stream costs no event. Only when another stream needs the memory is one
//! event recorded on the producer ([`Mark`]) and waited for on the consumer, and what a stream has already waited for
//! is remembered.
//!
//! ```text
//!  submit on S                       lock use logs (by allocation id)
//!    └ lock S                        the same use again: nothing conflicts
//!        └ conflicts in the logs     for each: try to lock the other timeline, reuse or record an event, wait for it
//!            └ ticket += 1           note it in the logs, unlock them
//!                └ enqueue           unlock S
//! ```
//! With a timeline locked, another one is only ever *tried*. If somebody has it, the first is unlocked, and the other one's
//! lock is waited for alone. So there is no order among timelines to get wrong.

mod admit;
mod ended;
mod logs;
mod mark;
mod marks;
#[cfg(loom)]
pub(crate) mod models;
mod queue;
mod settle;
mod submit;
mod timeline;
mod uses;

pub(crate) use ended::Ended;
pub(crate) use mark::{EventPool, Mark};
pub(crate) use settle::Settled;
pub(crate) use submit::{Access, Uses};
pub(crate) use timeline::Timeline;
pub(crate) use uses::{Position, UseLog};
