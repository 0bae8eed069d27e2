//! The order of work on the streams of a device, and where its memory comes from and goes back to.
//!
//! * [`track`]: streams as the ordering code sees them, and the accesses to memory that it orders.
//! * [`memory`]: memory resources, pools, and the queue of deferred frees. Users see it as `gpumem::memory`.
//! * [`sync`]: the locks and atomics of both, which loom replaces in model checks.
//!
//! Everything is written once over [`Backend`](gpumem_core::Backend). Nothing here knows an array.
//!
//! Depend on `gpumem`. What is public here and not in `gpumem` is for `gpumem-runtime` alone: it relies on how the runtime calls
//! it, and may change with every version of gpumem.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod blocking;
pub mod memory;
pub mod sync;
pub mod track;
pub mod user_code;

pub use blocking::may_block;
