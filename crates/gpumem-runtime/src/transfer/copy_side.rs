//! The two sides of a copy, as the driver and as the kernels of a device see them, and which of the two does it.

use super::{region_loop::RegionLoop, registration_boundaries::split_at_boundaries};
use crate::{device::Allocation, layout::CopyNest, tuning::TUNING};
use gpumem_core::{Backend, DriverDevice, MemoryKind, Result, Space, StridedCopy};
use gpumem_memory::track::{Sink, Timeline};
use smallvec::SmallVec;
use std::sync::Arc;

/// One side of a copy.
#[derive(Debug, Clone, Copy)]
pub(super) struct CopySide {
    /// For the driver's copies. Page-locked memory goes by its host address.
    pub(super) at: (u64, Space),
    /// For kernels of the stream's device, where they reach it. Page-locked memory goes by the device's address.
    by_kernel: Option<(u64, Space)>,
}

impl CopySide {
    /// Memory of the library.
    pub(super) fn of<B: Backend>(timeline: &Timeline<B>, memory: &Allocation<B>) -> Self {
        let at = memory.endpoint();
        let by_kernel = match at.1 {
            Space::Host if timeline.context.raw.capabilities().pageable_direct => Some(at),
            Space::Host if is_reached(timeline, memory) => Some((memory.address(), Space::Host)),
            Space::Host => None,
            own => (own == Space::Device(timeline.context.raw.info().ordinal)).then_some(at),
        };
        Self { at, by_kernel }
    }

    /// Memory of the caller, at an address.
    pub(super) fn of_caller<B: Backend>(timeline: &Timeline<B>, address: u64) -> Self {
        let at = (address, Space::Host);
        Self { at, by_kernel: timeline.context.raw.capabilities().pageable_direct.then_some(at) }
    }
}

/// Whether kernels of the stream's device reach page-locked memory, all of it from one address on.
fn is_reached<B: Backend>(timeline: &Timeline<B>, memory: &Allocation<B>) -> bool {
    let capabilities = timeline.context.raw.capabilities();
    // If memory was page-locked in several pieces, each may have a different device address.
    let is_own = Arc::ptr_eq(&timeline.context, memory.context()) && memory.boundaries().is_empty();
    match memory.kind() {
        // Other code may have page-locked any memory.
        MemoryKind::Pinned => is_own && capabilities.pinned_by_kernels && memory.is_owned(),
        kind => is_own && kind.is_device_accessible(),
    }
}

/// Whether the stream's device packs and unpacks the memory, which is its own.
pub(super) fn can_pack<B: Backend>(timeline: &Timeline<B>, memory: &Allocation<B>) -> bool {
    let own = Space::Device(timeline.context.raw.info().ordinal);
    timeline.context.raw.capabilities().strided_copy && memory.endpoint().1 == own
}

/// The source and the destination as kernels of the stream's device reach them, if these should walk both instead of the driver
/// doing the plan's calls: where those would be several, or would be slower.
pub(super) fn choose_kernel<B: Backend>(
    timeline: &Timeline<B>,
    (nest, plan): (&CopyNest, &RegionLoop),
    from: CopySide,
    to: CopySide,
) -> Option<[(u64, Space); 2]> {
    let capabilities = timeline.context.raw.capabilities();
    let sides = [from.by_kernel?, to.by_kernel?];
    if !capabilities.strided_copy || nest.axes.is_empty() {
        return None;
    }
    let calls = plan.calls();
    let [is_up, is_down] = [sides[0].1 == Space::Host, sides[1].1 == Space::Host];
    let is_better = if capabilities.pageable_direct {
        calls > 1
    } else if !is_up && !is_down {
        calls > 1 || nest.run < TUNING.short_run
    } else {
        let bytes = nest.len * nest.item;
        let is_short_up = !is_down && nest.run < TUNING.short_run_up && bytes >= TUNING.kernel_from;
        let are_calls_short = bytes / calls < TUNING.short_call && bytes / nest.run / calls < TUNING.few_rows;
        is_short_up || calls > TUNING.max_driver_calls || calls > 1 && are_calls_short
    };
    is_better.then_some(sides)
}

/// The pair as one copy that the device does element by element.
fn strided_copy(nest: &CopyNest, [source, destination]: [(u64, Space); 2]) -> StridedCopy {
    let mut axes: Vec<_> = nest.axes.iter().map(|axis| (axis.len, axis.src, axis.dst)).collect();
    let items = nest.run / nest.item.max(1);
    if items > 1 {
        axes.push((items, nest.item as isize, nest.item as isize));
    }
    StridedCopy {
        source: (source.0.wrapping_add(nest.src as u64), source.1),
        destination: (destination.0.wrapping_add(nest.dst as u64), destination.1),
        item: nest.item,
        axes,
    }
}

/// Addresses at which a copy must be cut in two.
pub(super) type Boundaries = SmallVec<[u64; 4]>;

/// Enqueues a pair: as one strided copy where the device walks both sides itself, else as the plan's driver calls.
///
/// # Safety
/// Both sides are valid for the pair until it is copied, and other uses of them are ordered. Destination elements do
/// not overlap, and neither do the two sides.
pub(super) unsafe fn enqueue<B: Backend>(
    timeline: &Timeline<B>,
    sink: &Sink<'_, B>,
    (nest, plan): (&CopyNest, &RegionLoop),
    from: CopySide,
    to: CopySide,
    boundaries: &[u64],
) -> Result<()> {
    if let Some(sides) = choose_kernel(timeline, (nest, plan), from, to) {
        // SAFETY: the caller's promise.
        return unsafe { sink.copy_strided(&strided_copy(nest, sides)) };
    }
    plan.run(from.at, to.at, |region| {
        split_at_boundaries(region, boundaries, &mut |part| {
            // SAFETY: the caller's promise, for a part of the pair.
            unsafe { sink.copy(part) }
        })
    })
}

/// Whether the memory belongs to the backend that the stream belongs to. Other backends only meet under `Any`.
#[inline]
pub(super) fn is_one_backend<B: Backend>(timeline: &Timeline<B>, memory: &Allocation<B>) -> bool {
    Arc::ptr_eq(&timeline.context, memory.context())
        || timeline.context.raw.info().backend == memory.context().raw.info().backend
}
