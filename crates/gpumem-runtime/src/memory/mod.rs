//! Memory: where it comes from, who uses it, and how it goes back.
//!
//! * [`MemoryResource`]: the trait. [`DriverMemory`] at the bottom, [`Pool`] over it, and what can be put around either.
//! * [`tlsf`]: the books of a pool, for any range of addresses.
//! * [`DeferredLimits`], [`DeferCleanup`]: when memory goes back to the driver.
//! * [`named`], [`MemoryReport`]: who holds what.

mod allocation;
mod around;
mod counted;
mod defer;
mod driver;
mod growing;
mod host_ready;
mod late;
mod lent;
mod names;
mod pages;
mod pending;
mod pool;
mod pressure;
mod reclaim;
mod report;
mod resource;
mod serving;
mod stack;
mod staging;
pub mod tlsf;

pub use around::{Counting, FailurePlan, Injecting, Limit, Live, Tracking};
pub use defer::{DeferCleanup, DeferCleanupEverywhere, defer_cleanup_everywhere};
pub use driver::DriverMemory;
pub use growing::GrowingMemory;
pub use names::{Holder, named};
pub use pending::PendingUses;
pub use pool::{Pool, PoolOptions};
pub use reclaim::{DeferredLimits, ITEMS_VARIABLE, RATIO_VARIABLE};
pub use report::{KindReport, MemoryReport, ResourceReport};
pub use resource::{MemoryBlock, MemoryRequest, MemoryResource, MemoryStatistics, ResourceId, Trim};
pub use stack::POOL_VARIABLE;

pub(crate) use allocation::{Allocation, ForeignMemory, Release, free};
pub(crate) use counted::Counted;
pub(crate) use host_ready::HostReady;
pub(crate) use late::LateMemory;
pub(crate) use names::Names;
pub(crate) use pages::{Lock, PageLocks};
pub(crate) use reclaim::{Item, Reclaim};
pub(crate) use report::Bytes;
pub(crate) use serving::{Serving, check_outside_resource};
pub(crate) use stack::{ALL_KINDS, Memories, default_options, slot as kind_slot};
pub(crate) use staging::{Staging, StagingPool};
