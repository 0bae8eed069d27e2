//! The engine for ranks in processes of their own, on one machine or several: MPI.
//!
//! One thread of the process calls the library. Operations move bytes between buffers of the engine; the stream copies
//! into them before, and out of them after. So an operation that never ends holds no memory of an array.

mod abi;
mod bytes;
mod comm;
mod control;
mod end;
mod exchange;
mod inbox;
mod library;
mod member;
mod operation;
mod participant;
mod reduce;
mod split;
mod staging;
mod start;
mod thread;

#[cfg(all(test, not(miri)))]
pub(crate) use abi::table::{Functions, double};
pub(crate) use bytes::{broadcast, is_there};
use comm::Comm;
pub(crate) use end::MpiEnd;
pub(crate) use end::join;
#[cfg(all(test, not(miri)))]
pub(crate) use inbox::Ending;
pub(crate) use library::Mpi;
use library::MpiError;
use operation::Operation;
use staging::{Buffer, Lent, Staging};
#[cfg(all(test, not(miri)))]
pub(crate) use thread::DoubleRank;
