//! Enqueuing the driver calls, or the kernel, of one copy.

use super::{
    copy_side::{CopySide, choose_kernel, strided_copy},
    region_loop::RegionLoop,
    registration_boundaries::split_at_boundaries,
};
use crate::{device::Allocation, layout::CopyNest};
use gpumem_core::{Backend, DriverDevice, Result, Stream as _};
use gpumem_memory::track::Timeline;
use smallvec::SmallVec;
use std::sync::Arc;

/// Addresses at which a copy must be cut in two.
pub(super) type Boundaries = SmallVec<[u64; 4]>;

/// Enqueues a pair: as one strided copy where the device walks both sides itself, else as the plan's driver calls. Counts in
/// `calls` those that have succeeded.
///
/// # Safety
/// Both sides are valid for the pair until it is copied, and other uses of them are ordered. Destination elements do
/// not overlap, and neither do the two sides.
pub(super) unsafe fn enqueue<B: Backend>(
    timeline: &Timeline<B>,
    raw: &B::Stream,
    (nest, plan): (&CopyNest, &RegionLoop),
    from: CopySide,
    to: CopySide,
    boundaries: &[u64],
    calls: &mut usize,
) -> Result<()> {
    if let Some(sides) = choose_kernel(timeline, (nest, plan), from, to) {
        timeline.counters.count_copy();
        // SAFETY: the caller's promise.
        return unsafe { raw.copy_strided(&strided_copy(nest, sides)) };
    }
    plan.run(from.at, to.at, |region| {
        split_at_boundaries(region, boundaries, &mut |part| {
            timeline.counters.count_copy();
            // SAFETY: the caller's promise, for a part of the pair.
            unsafe { raw.copy(part)? };
            *calls += 1;
            Ok(())
        })
    })
}

/// Whether the memory belongs to the backend that the stream belongs to. Other backends only meet under `Any`.
#[inline]
pub(super) fn is_one_backend<B: Backend>(timeline: &Timeline<B>, memory: &Allocation<B>) -> bool {
    Arc::ptr_eq(&timeline.context, memory.context())
        || timeline.context.raw.info().backend == memory.context().raw.info().backend
}
