//! Memory of the devices: allocations, access to them, and the budget.

mod block;
mod budget;
mod table;

pub(crate) use block::{Block, MIN_ALIGN, Owner};
pub(crate) use budget::Budget;
pub(crate) use table::{Known, Place, Reach, Table};
