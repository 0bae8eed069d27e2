//! Operations of several ranks beside those of the library below, in a table as nccl-tests prints it.
//!
//! Ranks are threads of one process, or processes. In each round every way of calling takes its turn. The slowest rank of a
//! round counts, and the medians of the rounds are printed.

mod folder;
mod launch;
mod line;
mod operation;
mod rank;
mod raw;
mod raw_host;
#[cfg(feature = "cuda")]
mod raw_nccl;

pub use launch::{Options, as_child, run};
pub use line::{Line, Times};
pub use operation::Operation;
