//! Orders the work on the streams of a device, and allocates and frees its memory.
//!
//! * [`track`]: streams as the ordering code sees them, and the accesses to memory that it orders.
//! * [`memory`]: memory resources, pools, and the queue of deferred frees. Users see it as `gpumem::memory`.
//! * [`tlsf`]: the allocator of a pool, for any range of addresses.
//! * [`trace`]: recordings of memory, as JSON and for viewers.
//! * [`sync`]: the locks and atomics of both, which loom replaces in model checks.
//!
//! Everything is written once over [`Backend`](gpumem_core::Backend). Nothing here knows an array.
//!
//! Depend on `gpumem`. Items that are public here and not in `gpumem` are for `gpumem-runtime` only: they rely on how
//! the runtime calls them, and may change with every version of gpumem.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod blocking;
#[cfg(doctest)]
mod compile_fail;
pub mod memory;
#[allow(missing_docs, reason = "for the other crates of gpumem, not for users")]
pub mod sync;
#[forbid(unsafe_code)]
pub mod tlsf;
#[forbid(unsafe_code)]
pub mod trace;
#[allow(missing_docs, reason = "for the other crates of gpumem, not for users")]
pub mod track;
pub mod user_code;

pub use blocking::may_block;
