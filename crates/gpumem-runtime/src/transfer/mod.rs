//! Copies between memories.
//!
//! Between host and device, `pageable` chooses the way:
//! * [`calling_thread`]: the calling thread copies, or waits for a copy of, memory that the backend reaches.
//! * [`single_block`]: a short array goes through one page-locked staging block.
//! * [`pipeline`]: several threads fill or drain staging blocks, and the copy engine moves other blocks meanwhile.
//! * [`scoped`]: the last part of a download in a scope reaches the caller's array when its stream is waited for.
//!
//! Between arrays of the library, [`mod@copy`] chooses the way:
//! * [`device_copy`]: in stream order; [`copy_side`] decides whether the driver or a kernel does it.
//! * [`cross_backend`]: between devices that no driver call connects.
//!
//! Shared parts:
//! * [`region_loop`]: lowers any pair of layouts to the fewest driver calls; [`chunks`] cuts a pair into parts.
//! * [`gather_scatter`], [`store_policy`], [`prefault`]: how a thread moves short runs, stores bytes, and makes new pages ready.
//! * [`state`]: the threads of one transfer. They come from the [worker pool](crate::worker_pool) of the device.
//! * [`fill`]: one value everywhere.
//! * [`enqueue`](mod@enqueue): the driver calls, or the kernel, of one copy.
//! * [`torn`]: marks the destination of a transfer that failed half-way.

mod abort;
mod array_ref;
mod calling_thread;
mod copy;
mod copy_plan;
mod copy_side;
mod cross_backend;
mod device_copy;
mod direction;
mod enqueue;
mod fill;
mod gather_scatter;
mod host_span;
#[cfg(loom)]
pub(crate) mod models;
mod pageable;
mod pipeline;
mod prefault;
mod progress;
mod scoped;
mod single_block;
mod staged;
mod state;
mod store_policy;
mod torn;
mod zeros;

use crate::{device::Staging, tuning::TUNING};
use gpumem_layout::{chunks, region_loop, registration_boundaries};

pub use abort::abort;
pub use array_ref::ArrayRef;
pub(crate) use calling_thread::{try_copy_inline, try_download_inline, try_upload_inline};
pub(crate) use copy::copy;
pub use copy_plan::{CopyPlan, CopyStrategy};
use direction::Direction;
pub use fill::fill;
pub use pageable::{Upload, upload};
pub(crate) use pageable::{download, download_new};
pub use progress::Progress;
pub(crate) use progress::ProgressFn;
pub(crate) use scoped::download_in_scope;
pub(crate) use zeros::zeros;
