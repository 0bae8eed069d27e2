//! Memory: allocations that know who uses them, their way back to the driver, and the kinds that the host can see.

mod allocation;
mod lent;
mod pages;
mod reclaim;
mod staging;
pub mod tlsf;

pub(crate) use allocation::{Allocation, ForeignMemory};
pub(crate) use pages::{Lock, PageLocks};
pub(crate) use reclaim::Reclaim;
pub(crate) use staging::{Staging, StagingPool};
