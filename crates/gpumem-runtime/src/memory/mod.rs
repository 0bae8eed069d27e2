//! Memory: where it comes from, who uses it, and how it goes back.
//!
//! * [`MemoryResource`]: the trait. [`DriverMemory`] at the bottom, [`Pool`] over it, and what can be put around either.
//! * [`tlsf`]: the allocator of a pool, for any range of addresses.
//! * [`DeferredLimits`], [`DeferCleanup`]: when memory goes back to the driver.
//! * [`named`], [`MemoryReport`]: who holds what.

mod adaptors;
mod allocation;
mod defer;
mod deferred_frees;
mod driver;
mod external_borrows;
mod host_ready;
mod late;
mod names;
mod oom;
mod pending_accesses;
mod pinned_pages;
mod pool;
mod report;
mod resource;
mod resource_table;
mod serving;
mod trim_hook;

pub use adaptors::{
    FailureInjectingResource, FailurePlan, LimitingResource, LiveAllocation, StatisticsResource,
    TrackingResource,
};
pub use defer::{DeferCleanup, DeferCleanupEverywhere, defer_cleanup_everywhere};
pub use deferred_frees::{DeferredLimits, ENV_MAX_PENDING_COUNT, ENV_MAX_PENDING_RATIO};
pub use driver::DriverMemory;
#[doc(no_inline)]
pub use gpumem_tlsf as tlsf;
pub use names::{Holder, named};
pub use pending_accesses::PendingAccesses;
pub use pool::{Pool, PoolOptions};
pub use report::{KindReport, MemoryReport, ResourceReport};
pub use resource::{MemoryBlock, MemoryRequest, MemoryResource, MemoryStatistics, ResourceId, Trim};
pub use resource_table::ENV_POOL;

#[doc(hidden)]
pub use allocation::{Allocation, AllocationRef};
pub(crate) use allocation::{ForeignMemory, Release, free};
pub(crate) use deferred_frees::{DeferredFree, DeferredFrees};
pub(crate) use host_ready::HostReady;
pub(crate) use late::LateMemory;
pub(crate) use names::Names;
pub(crate) use pinned_pages::{PagePin, PinnedPages};
pub(crate) use resource_table::{ResourceTable, default_options};
pub(crate) use serving::{Serving, check_outside_resource};
pub(crate) use trim_hook::TrimHook;
#[doc(hidden)]
pub(crate) use triomphe::Arc as IntrusiveArc;
