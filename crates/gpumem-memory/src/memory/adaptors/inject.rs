//! Failures on purpose.

use crate::memory::{MemoryBlock, MemoryRequest, MemoryResource, MemoryStatistics};
use gpumem_core::{Backend, ErrorKind, MemoryInfo, Result};
use std::{
    ops::RangeInclusive,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// Which requests fail. Every condition that is set must hold.
#[derive(Debug, Clone, PartialEq)]
pub struct FailurePlan {
    /// Only that request, counted from 0 among those of fitting size.
    pub number: Option<u64>,
    /// Only requests of so many bytes.
    pub bytes: RangeInclusive<usize>,
    /// The part of these that fails, from 0 to 1.
    pub probability: f64,
    /// Decides which; the same seed, the same requests.
    pub seed: u64,
    /// How they fail; out of memory if `None`.
    pub kind: Option<ErrorKind>,
}

impl FailurePlan {
    /// Makes every request fail.
    pub fn always() -> Self {
        Self { number: None, bytes: 0..=usize::MAX, probability: 1.0, seed: 0, kind: None }
    }

    /// Makes the request of that number fail, counted from 0.
    pub fn nth(number: u64) -> Self {
        Self { number: Some(number), ..Self::always() }
    }

    /// Makes requests of so many bytes fail.
    pub fn for_sizes(bytes: RangeInclusive<usize>) -> Self {
        Self { bytes, ..Self::always() }
    }

    /// Makes that part of all requests fail, chosen by a seed.
    pub fn with_probability(probability: f64, seed: u64) -> Self {
        Self { probability, seed, ..Self::always() }
    }

    /// Sets another error than out of memory.
    #[must_use]
    pub fn kind(mut self, kind: ErrorKind) -> Self {
        self.kind = Some(kind);
        self
    }

    /// Whether a request fails that is number `number` of those of fitting size.
    fn strikes(&self, number: u64) -> bool {
        if self.number.is_some_and(|wanted| wanted != number) {
            return false;
        }
        // splitmix64: every number has its own draw, whatever the order of threads.
        let mut draw = self.seed.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        draw = (draw ^ draw >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        draw = (draw ^ draw >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        let part = ((draw ^ draw >> 31) >> 11) as f64 / (1u64 << 53) as f64;
        part < self.probability
    }
}

/// Makes requests fail by a [`FailurePlan`]. For tests of code that allocates.
/// ```
/// # use {gpumem_core::MemoryKind, gpumem_runtime::memory::{FailureInjectingResource, FailurePlan}, std::sync::Arc};
/// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
/// let pool = device.memory_resource(MemoryKind::Device)?;
/// let failing = Arc::new(FailureInjectingResource::new(pool, FailurePlan::nth(1)));
/// device.set_memory_resource(MemoryKind::Device, failing.clone())?;
/// let first = device.device_array::<f32, _>(1000)?;
/// let _second = device.device_array::<f32, _>(1000); // fails, or is served after memory was reclaimed
/// assert_eq!(failing.counts().1, 1);
/// # Ok::<(), gpumem_core::Error>(())
/// ```
#[derive(Debug)]
pub struct FailureInjectingResource<B: Backend> {
    upstream: Arc<dyn MemoryResource<B>>,
    plan: FailurePlan,
    /// Relaxed: each request gets a number of its own, which is all that the plan needs.
    requests: AtomicU64,
    struck: AtomicU64,
}

impl<B: Backend> FailureInjectingResource<B> {
    /// Injects failures before requests to `upstream`.
    pub fn new(upstream: Arc<dyn MemoryResource<B>>, plan: FailurePlan) -> Self {
        Self { upstream, plan, requests: AtomicU64::new(0), struck: AtomicU64::new(0) }
    }

    /// Returns the number of requests of fitting size so far, and how many of them failed on purpose.
    pub fn counts(&self) -> (u64, u64) {
        (self.requests.load(Ordering::Relaxed), self.struck.load(Ordering::Relaxed))
    }
}

impl<B: Backend> MemoryResource<B> for FailureInjectingResource<B> {
    fn name(&self) -> &'static str {
        "failure injection"
    }

    fn allocate(&self, request: &MemoryRequest<'_, B>) -> Result<MemoryBlock<B>> {
        if self.plan.bytes.contains(&request.bytes) {
            // Relaxed: one counter has one order of its own, and nothing else depends on it.
            let number = self.requests.fetch_add(1, Ordering::Relaxed);
            if self.plan.strikes(number) {
                // Relaxed: a number for a look.
                self.struck.fetch_add(1, Ordering::Relaxed);
                let (bytes, name) = (request.bytes, request.kind.name());
                let kind = self.plan.kind.clone();
                let kind =
                    kind.unwrap_or_else(|| ErrorKind::out_of_memory(bytes, name, MemoryInfo::default()));
                return Err(request.core.error(request.operation, kind));
            }
        }
        self.upstream.allocate(request)
    }

    fn recycle(&self, block: MemoryBlock<B>) -> Result<(), MemoryBlock<B>> {
        self.upstream.recycle(block)
    }

    fn deallocate(&self, block: MemoryBlock<B>) -> Result<()> {
        self.upstream.deallocate(block)
    }

    fn forget(&self) {
        self.upstream.forget();
    }

    fn statistics(&self) -> MemoryStatistics {
        self.upstream.statistics()
    }

    super::pass_on!();
}
