//! Arrays that leave the device when its memory is short, and come back when they are used.
//!
//! * [`SpillManager`]: the arrays of one device that may leave, their order, and the page-locked memory for them.
//! * [`Spillable`]: one array. [`get`](Spillable::get) brings it back and lends it as an ordinary view.
//!
//! An array may leave when its cell holds the only handle of its memory. Every view holds one, and so does everything else that has
//! the address but enqueued work, which the [access log](gpumem_memory::track::AccessLog) orders before what follows. So nothing
//! has to be told that an array is in use.
#![forbid(unsafe_code)]

mod array;
mod cell;
mod manager;
mod options;
mod shared;

pub use array::Spillable;
pub use manager::{Slept, SpillManager};
pub use options::{SpillOptions, SpillOrder};
pub use shared::SpillReport;
