//! Copies between memories.
//!
//! [`route`] chooses the way. [`pageable`] goes it between host and device:
//! * [`calling_thread`]: the calling thread copies, or waits for a copy of, memory that the backend reaches.
//! * [`single_block`]: a short array goes through one page-locked staging block.
//! * [`pipeline`]: several threads fill or drain staging blocks, and the copy engine moves other blocks meanwhile.
//! * [`file`]: elements of a [file](host_side) go through the pipeline on every backend; [`many_files`]: those of many arrays at once.
//! * [`scoped`]: the last part of a download in a scope reaches the caller's array when its stream is waited for.
//!
//! [`mod@copy`] goes it between arrays of the library:
//! * [`device_copy`]: in stream order; [`copy_side`] calls the driver or a kernel.
//! * [`cross_backend`]: between devices that no driver call connects.
//!
//! Shared parts:
//! * [`region_loop`]: lowers any pair of layouts to the fewest driver calls; [`chunks`] cuts a pair into parts.
//! * [`gather_scatter`], [`store_policy`], [`prefault`]: how a thread moves short runs, stores bytes, and makes new pages ready.
//! * [`state`]: the threads of one transfer. They come from the [worker pool](crate::worker_pool) of the device.
//! * [`fill`]: one value everywhere.
//! * [`sides`]: the elements on the two sides; [`torn`]: marks the destination of a transfer that failed half-way.

mod calling_thread;
mod copy;
mod copy_plan;
mod copy_side;
mod cross_backend;
mod device_copy;
mod file;
mod fill;
mod gather_scatter;
mod host_side;
mod many_files;
#[cfg(loom)]
pub(crate) mod models;
mod pageable;
mod pipeline;
mod prefault;
mod route;
mod scoped;
#[allow(missing_docs, reason = "for the other crates of gpumem, not for users")]
mod sides;
#[allow(missing_docs, reason = "for the other crates of gpumem, not for users")]
mod single_block;
mod staged;
mod state;
mod store_policy;
mod torn;

use crate::{device::Staging, tuning::TUNING};
use gpumem_layout::{chunks, region_loop, registration_boundaries};

pub(crate) use copy::{copy, copy_and_wait};
pub use copy_plan::CopyPlan;
pub(crate) use file::{download_file, upload_file};
pub use fill::{fill, fill_zeros};
pub(crate) use host_side::FileSide;
pub(crate) use many_files::upload_files;
pub use pageable::{Upload, upload};
pub(crate) use pageable::{download, download_new};
pub(crate) use prefault::zeros;
pub use route::Route;
pub(crate) use scoped::download_in_scope;
pub use sides::ArrayRef;
use sides::{Direction, Producers};
pub use single_block::StagedBytes;
pub use state::Progress;
pub(crate) use state::ProgressFn;
pub use torn::abort;
pub(crate) use torn::{check_elements_written, check_release, note_returned, note_torn};
