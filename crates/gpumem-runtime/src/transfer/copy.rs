//! Copies between any two arrays of the library, in stream order.

use super::{
    ArrayRef,
    copy_side::is_one_backend,
    cross_backend,
    device_copy::{copy_nest, copy_run, needs_host, run_between},
    pageable,
    region_loop::RegionLoop,
    zeros,
};
use crate::layout::CopyNest;
use gpumem_core::{Backend, Element, ErrorKind, Result};
use gpumem_memory::track::{Timeline, Work};
use std::sync::Arc;

/// Enqueues a copy of elements of `T` and returns its submission index. Where the driver has no means for the two
/// layouts or the two devices, the elements go through host memory, and the call waits for the source.
/// Returns an error if the shapes differ or the two sides overlap, and the driver's error. Nothing is being written
/// after an error.
pub(crate) fn copy<T: Element, B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    source: ArrayRef<'_, B>,
    destination: ArrayRef<'_, B>,
) -> Result<u64> {
    if let Some(bytes) = run_between(timeline, source, destination) {
        return copy_run(timeline, operation, source, destination, bytes);
    }
    let fail = |kind: ErrorKind| timeline.context.error(operation, kind);
    let nest = CopyNest::new(source.layout, destination.layout).map_err(|error| fail(error.into()))?;
    if nest.len == 0 || nest.item == 0 {
        timeline.check(operation)?;
        source.memory.check(operation)?;
        destination.memory.check(operation)?;
        return Ok(0);
    }
    let accesses = [source.access(false), destination.access(true)];
    // However the elements travel.
    let admitted = timeline.admit(Work::Transfer, operation, &accesses)?;
    if is_one_backend(timeline, source.memory) && is_one_backend(timeline, destination.memory) {
        let plan = RegionLoop::new(&nest);
        if !needs_host(timeline, (&nest, &plan), source, destination) {
            return copy_nest(timeline, operation, admitted, (&nest, &plan), source, destination);
        }
    } else if let Some(device) = cross_backend::through(&nest, source, destination) {
        let from = timeline_of(timeline, source)?;
        return cross_backend::copy((&from, timeline), operation, &nest, (source, destination), &device);
    }
    through_host::<T, B>(timeline, operation, source, destination)
}

/// Copies down to the host and up again, for pairs that no driver call can copy.
fn through_host<T: Element, B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    source: ArrayRef<'_, B>,
    destination: ArrayRef<'_, B>,
) -> Result<u64> {
    let shape = ndarray::IxDyn(source.layout.shape()).into();
    let mut host =
        zeros::<T, ndarray::IxDyn>(operation, shape).map_err(|error| timeline.context.place(error))?;
    let from = timeline_of(timeline, source)?;
    pageable::download(&from, operation, source, host.view_mut(), None)?;
    pageable::upload(timeline, operation, host.view(), destination, pageable::Upload::Staged, None)
}

/// A stream of the source's device: that of the copy, unless it belongs to another device.
fn timeline_of<B: Backend>(timeline: &Arc<Timeline<B>>, source: ArrayRef<'_, B>) -> Result<Arc<Timeline<B>>> {
    match source.memory.device() {
        Some(device) if !source.memory.context().is_same(&timeline.context) => device.default_timeline(),
        _ => Ok(timeline.clone()),
    }
}
