//! Runs GPU-style kernels on the processor.
//!
//! A kernel's body is a Rust function of one work-item, `async |item: WorkItem<'_>, arguments: &P| { .. }`. Its barriers
//! are `.await`s, so that a work-group is a handful of small state machines on one thread, and a barrier costs
//! nanoseconds. Groups run side by side on rayon. A body without barriers is an ordinary closure and becomes a plain
//! loop.
//!
//! * [`Executor`] runs a body, or wraps it as a [`HostFunction`](gpumem_core::HostFunction) that any backend can run.
//! * [`WorkItem`] gives a body its ids, [`barrier`](WorkItem::barrier), [`wavebarrier`](WorkItem::wavebarrier), shared
//!   arrays, operations of its wave.
//! * [`Slice`], [`SliceMut`], [`View`], [`ViewMut`], [`Own`], [`OwnView`], [`Constant`], [`Value`] and numbers are a kernel's
//!   parameters. Global memory is seen through loads and stores, never through a `&mut [T]`.
//! * A [`Fault`] reports an error of a body and names the work-item: divergence at a barrier, a foreign `.await`, an
//!   index past the end, a panic. [`Executor::race_checks`] also finds races and reads of shared memory that was never
//!   written.
//!
//! The module knows no backend and no device.

mod abi;
#[allow(missing_docs, reason = "for the crate and generated code, not for users")]
mod access;
#[allow(missing_docs, reason = "for the crate and generated code, not for users")]
mod arg_block;
mod argument;
mod array;
mod atomic;
mod barrier;
mod change;
mod checker;
mod divergence;
mod exchange;
mod executor;
#[allow(missing_docs, reason = "for the crate and generated code, not for users")]
mod fault;
mod group;
mod group_batch;
mod helpers;
mod ids;
mod index;
mod inside;
mod item;
mod name;
mod no_barrier;
mod number;
mod own;
mod parameter;
#[allow(missing_docs, reason = "for the crate and generated code, not for users")]
mod phases;
mod pool;
mod run;
mod shared;
mod shared_arena;
mod wave;

pub(crate) use access::fits_a_work_item;
pub use access::{Load, Position, Store, StoreLocal};
pub use arg_block::Entry;
pub use argument::{Constant, ConstantArray, Slice, SliceMut, View, ViewMut};
pub use array::{Local, LocalArray};
pub use atomic::Atomic;
pub use barrier::BarrierFuture;
pub use change::Change;
#[doc(hidden)]
pub use checker::Checker;
pub use checker::MemoryReach;
pub use executor::Executor;
pub use fault::{Access, AccessKind, Fault, FaultKind, Memory};
pub use gpumem_runtime::Value;
pub use ids::WorkItemIds;
pub use index::Indices;
#[doc(hidden)]
pub use inside::Inside;
#[doc(hidden)]
pub use item::NumberedItem;
pub use item::WorkItem;
pub use number::Number;
pub use own::{Own, OwnId, OwnView};
pub use parameter::{Parameter, ParameterInfo, Parameters};
pub use phases::{PhaseItem, Phases, Private};
pub use shared::Shared;
