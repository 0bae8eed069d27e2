//! Collective operations between ranks, each with a device and streams of its own: [`Communicator`].
//!
//! An operation is one piece of work of a stream that reads and writes arrays. So it is ordered as all other work is, an array may
//! be dropped while it is under way, and what failed cannot be read. On the host no call waits for another rank, except
//! [`Communicator::split`].
//!
//! Depend on `gpumem` with the feature `collectives`, which re-exports this crate as `gpumem::collectives`.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod batch;
mod blocks;
mod call;
mod call_counts;
mod call_order;
mod choose;
mod communicator;
#[cfg(doctest)]
mod compile_fail;
mod deadline;
mod engine;
mod environment;
mod fingerprint;
mod group;
mod identity;
mod launched;
mod local;
mod mpi;
#[cfg(all(test, not(miri)))]
mod mpi_failing;
mod nccl;
mod operations;
mod options;
mod pack;
mod participation;
mod rank_state;
mod record;
mod recorded;
mod reduction;
mod registration;
mod rendezvous;
mod report;
mod scalar;
mod source;
mod span;
mod split_key;
mod step;
mod watchdog;

pub use communicator::Communicator;
pub use environment::ProcessRank;
pub use gpumem_core::{
    CollectiveCall, CollectiveCause, CollectiveError, CollectiveLibrary, CollectiveRecord, CollectiveState,
};
pub use group::Operations;
pub use identity::CommunicatorId;
pub use nccl::{FoundLibrary, add_library_folder, find_library};
pub use options::Options;
pub use reduction::{Average, Max, Min, Product, Reduction, Sum};
pub use source::{InPlace, OfDimension, Source};

#[cfg(loom)]
#[doc(hidden)]
pub mod loom_models;

/// The key to what is behind the handles of `gpumem-runtime`.
// SAFETY: the crate submits each access to memory that it makes, checked against the memory's bounds.
pub(crate) const KEY: gpumem_runtime::internal::Key = unsafe { gpumem_runtime::internal::Key::new() };
