//! Memory of the devices: allocations, who may reach them, and how much there is.

mod block;
mod budget;
mod table;

pub(crate) use block::{Block, MIN_ALIGN, Owner};
pub(crate) use budget::Budget;
pub(crate) use table::{Known, Place, Reach, Table};
