//! Memory: allocation, tracking of uses, and freeing.
//!
//! * [`MemoryResource`]: the trait. [`DriverMemory`] at the bottom, [`Pool`] over it, and adaptors around either.
//! * [`tlsf`]: the allocator of a pool, for any range of addresses.
//! * [`DeferredLimits`], [`DeferCleanup`]: when memory is returned to the driver.
//! * [`Exhausted`], [`ReclaimHook`]: hooks that free memory before a request fails.
//! * [`named`], [`MemoryReport`]: names for allocations, and a report of the holders.

mod adaptors;
mod arrivals;
mod chain;
#[allow(missing_docs, reason = "for the other crates of gpumem, not for users")]
mod core;
mod defer;
#[allow(missing_docs, reason = "for the other crates of gpumem, not for users")]
mod deferred_free;
#[allow(missing_docs, reason = "for the other crates of gpumem, not for users")]
mod deferred_frees;
mod deferred_limits;
mod driver;
mod late;
mod names;
pub mod oom;
mod pending_accesses;
mod pinned_pages;
mod pool;
mod reclaim;
mod report;
mod resource;
mod resource_report;
mod resource_table;
mod serving;

#[doc(no_inline)]
pub use crate::tlsf;
pub use adaptors::{
    FailureInjectingResource, FailurePlan, LimitingResource, LiveAllocation, StatisticsResource,
    TrackingResource,
};
pub use defer::{DeferCleanup, DeferCleanupEverywhere, defer_cleanup_everywhere};
pub use deferred_limits::{DeferredLimits, ENV_MAX_PENDING_COUNT, ENV_MAX_PENDING_RATIO};
pub use driver::DriverMemory;
pub use names::{Holder, named};
pub use pending_accesses::PendingAccesses;
pub use pool::{Pool, PoolOptions};
pub use reclaim::{Exhausted, ReclaimHook};
pub use report::{KindReport, MemoryReport};
pub use resource::{MemoryBlock, MemoryRequest, MemoryResource, MemoryStatistics, ResourceId, Trim};
pub use resource_report::ResourceReport;
pub use resource_table::ENV_POOL;

pub use self::core::DeviceCore;
pub use arrivals::Arrivals;
pub use deferred_free::DeferredFree;
pub use deferred_frees::DeferredFrees;
pub use late::LateMemory;
pub use names::{Names, current_name, is_named, named_as, unnamed};
pub use pinned_pages::{PagePin, PinnedPages};
pub use reclaim::{ReclaimHooks, Spilling};
pub use resource_table::{ResourceTable, default_options};
pub use serving::{ForeignResource, Serving, check_outside_resource};
