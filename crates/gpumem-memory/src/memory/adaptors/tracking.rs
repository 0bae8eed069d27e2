//! Live blocks, by name and by place.

use crate::{
    memory::{MemoryBlock, MemoryRequest, MemoryResource, MemoryStatistics, names::current_name},
    sync::{Mutex, Rank},
};
use gpumem_core::{Backend, Result, process::ProcessGuard};
use std::{
    backtrace::{Backtrace, BacktraceStatus},
    collections::BTreeMap,
    fmt,
    sync::Arc,
};

/// A block that is alive.
#[derive(Debug, Clone)]
pub struct LiveAllocation {
    /// The device's address.
    pub address: u64,
    /// Length in bytes.
    pub bytes: usize,
    /// The operation that made it.
    pub operation: &'static str,
    /// Its name ([`named`](crate::memory::named)), where it has one.
    pub name: Option<Arc<str>>,
    /// Number of the request, from 0.
    pub number: u64,
    /// Where it was made, where call sites are kept.
    pub site: Option<Arc<Backtrace>>,
}

impl fmt::Display for LiveAllocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.as_deref().unwrap_or("without a name");
        write!(
            f,
            "{} bytes at {:#x}, {name}, made by {} as number {}",
            self.bytes, self.address, self.operation, self.number
        )?;
        match &self.site {
            Some(site) if site.status() == BacktraceStatus::Captured => write!(f, "\n{site}"),
            _ => Ok(()),
        }
    }
}

#[derive(Debug, Default)]
struct TrackingState {
    live: BTreeMap<u64, LiveAllocation>,
    requests: u64,
}

/// Remembers every live block, and reports at its end which were never freed.
/// ```
/// # use {gpumem_core::MemoryKind, gpumem_runtime::memory::TrackingResource, std::sync::Arc};
/// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
/// let pool = device.memory_resource(MemoryKind::Device)?;
/// let tracking = Arc::new(TrackingResource::new(pool));
/// device.set_memory_resource(MemoryKind::Device, tracking.clone())?;
/// let array = device.device_array::<f32, _>(1000)?;
/// assert_eq!(tracking.live().len(), 1);
/// println!("{}", tracking.leak_report()); // what is alive, and which operation made it
/// # Ok::<(), gpumem_core::Error>(())
/// ```
#[derive(Debug)]
pub struct TrackingResource<B: Backend> {
    upstream: Arc<dyn MemoryResource<B>>,
    sites: bool,
    /// In a forked child the lock may be held for ever.
    origin: ProcessGuard,
    state: Mutex<TrackingState>,
}

impl<B: Backend> TrackingResource<B> {
    /// Tracks the allocations of `upstream`.
    pub fn new(upstream: Arc<dyn MemoryResource<B>>) -> Self {
        Self {
            upstream,
            sites: false,
            origin: ProcessGuard::current(),
            state: Mutex::new(Rank::Tracking, TrackingState::default()),
        }
    }

    /// Keeps the call stack of each request as well. Takes microseconds for each.
    #[must_use]
    pub fn with_sites(mut self) -> Self {
        self.sites = true;
        self
    }

    /// Returns the live blocks, in the order of the requests.
    pub fn live(&self) -> Vec<LiveAllocation> {
        if !self.origin.is_valid() {
            return Vec::new();
        }
        // Copied: sorting and printing take no lock.
        let mut live: Vec<LiveAllocation> = self.state.lock().live.values().cloned().collect();
        live.sort_by_key(|live| live.number);
        live
    }

    /// Returns the live blocks as text; empty if there are none.
    pub fn leak_report(&self) -> String {
        self.live().iter().map(|live| format!("{live}\n")).collect()
    }

    /// Upstream has refused the block, so it is alive. An allocation that has the address by now stays.
    fn restore(&self, live: Option<LiveAllocation>) {
        if let Some(live) = live {
            self.state.lock().live.entry(live.address).or_insert(live);
        }
    }

    fn forget_block(&self, address: u64) -> Option<LiveAllocation> {
        if !self.origin.is_valid() {
            return None;
        }
        // Returned: the name and the call stack are dropped without the lock.
        self.state.lock().live.remove(&address)
    }
}

impl<B: Backend> MemoryResource<B> for TrackingResource<B> {
    fn name(&self) -> &'static str {
        "tracking"
    }

    fn allocate(&self, request: &MemoryRequest<'_, B>) -> Result<MemoryBlock<B>> {
        self.origin.check("", request.operation).map_err(|error| request.core.place(error))?;
        let block = self.upstream.allocate(request)?;
        // Outside of the lock: it takes microseconds.
        let site = self.sites.then(|| Arc::new(Backtrace::force_capture()));
        let (address, bytes) = (block.address(), block.bytes());
        // After upstream has allocated: it may be code of the user, or track too.
        let mut state = self.state.lock();
        let number = state.requests;
        state.requests += 1;
        let live = LiveAllocation {
            address,
            bytes,
            operation: request.operation,
            name: current_name(),
            number,
            site,
        };
        state.live.insert(address, live);
        Ok(block)
    }

    fn recycle(&self, block: MemoryBlock<B>) -> Result<(), MemoryBlock<B>> {
        // Before it goes: another thread may get the same address at once.
        let live = self.forget_block(block.address());
        self.upstream.recycle(block).inspect_err(|_| self.restore(live))
    }

    fn deallocate(&self, block: MemoryBlock<B>) -> Result<()> {
        let live = self.forget_block(block.address());
        self.upstream.deallocate(block).inspect_err(|_| self.restore(live))
    }

    fn forget(&self) {
        if self.origin.is_valid() {
            // The blocks are gone with the reset: none comes back to be counted.
            self.state.lock().live.clear();
        }
        self.upstream.forget();
    }

    fn statistics(&self) -> MemoryStatistics {
        self.upstream.statistics()
    }

    super::pass_on!();
}

impl<B: Backend> Drop for TrackingResource<B> {
    fn drop(&mut self) {
        let live = self.live();
        if !live.is_empty() {
            gpumem_core::tell!(warn: blocks = live.len(), "memory was never freed:\n{}", self.leak_report());
        }
    }
}
