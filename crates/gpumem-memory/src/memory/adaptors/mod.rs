//! Resources around another one: a limit, statistics, tracking of live blocks, injected failures.

mod inject;
mod limit;
mod statistics;
mod tracking;

pub use inject::{FailureInjectingResource, FailurePlan};
pub use limit::LimitingResource;
pub use statistics::StatisticsResource;
pub use tracking::{LiveAllocation, TrackingResource};

/// The functions that an adaptor forwards to its upstream resource.
macro_rules! pass_on {
    () => {
        fn trim(&self, how: crate::memory::Trim, failed: &mut dyn FnMut(gpumem_core::Error)) -> usize {
            self.upstream.trim(how, failed)
        }

        fn upstream(&self) -> Option<&dyn crate::memory::MemoryResource<B>> {
            Some(&*self.upstream)
        }
    };
}
use pass_on;
