//! Copies between any two arrays of the library.

use super::{
    ArrayRef, Producers, Upload, calling_thread, cross_backend,
    device_copy::{copy_nest, copy_run},
    pageable,
    region_loop::RegionLoop,
    route::{ArrayCopy, Elements, Route},
    zeros,
};
use gpumem_core::{Backend, Element, Result};
use gpumem_memory::{
    may_block,
    track::{Timeline, Work},
};
use std::sync::Arc;

/// Enqueues a copy of elements of `T` and returns its submission index, 0 for none. Where the driver has no means for the two
/// layouts or the two devices, the elements go through host memory, and the call waits for the source.
/// Returns an error if the shapes differ or the two sides overlap, and the driver's error. Nothing is being written
/// after an error.
pub(crate) fn copy<T: Element, B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    source: ArrayRef<'_, B>,
    destination: ArrayRef<'_, B>,
) -> Result<u64> {
    let copy = ArrayCopy { timeline, operation, source, destination, blocks: false };
    let (route, elements) = copy.route()?;
    copy.enqueue::<T>(route, elements)
}

/// As [`copy`], and returns when the elements are there.
/// Returns the failure of the work that was to write the source, too.
pub(crate) fn copy_and_wait<T: Element, B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    source: ArrayRef<'_, B>,
    destination: ArrayRef<'_, B>,
) -> Result<u64> {
    may_block(operation)?;
    let copy = ArrayCopy { timeline, operation, source, destination, blocks: true };
    let (route, elements) = copy.route()?;
    if let (Route::CallingThread, Elements::Run(bytes)) = (route, &elements)
        && calling_thread::try_copy(&copy, *bytes)
    {
        return Ok(0);
    }
    let producers = Producers::of(source, timeline);
    source.wait_before(operation, false)?;
    destination.wait_before(operation, true)?;
    let submission = copy.enqueue::<T>(route, elements)?;
    timeline.wait_host(submission).result.map_err(|error| error.in_operation(operation))?;
    producers.check(operation)?;
    Ok(submission)
}

impl<B: Backend> ArrayCopy<'_, B> {
    /// Enqueues the copy, on its way.
    fn enqueue<T: Element>(&self, route: Route, elements: Elements) -> Result<u64> {
        let Self { timeline, operation, source, destination, .. } = *self;
        let nest = match elements {
            Elements::Run(bytes) => return copy_run(self, bytes),
            Elements::Nest(nest) => nest,
        };
        if route == Route::Nothing {
            let accesses = [source.access(false), destination.access(true)];
            return timeline.admit(Work::Transfer, operation, &accesses).map(|_| 0);
        }
        if matches!(route, Route::BetweenBackends | Route::ThroughHost) {
            // They come by this stream, whose driver must know the address.
            timeline.check_owns(operation, destination.memory)?;
        }
        let accesses = [source.access(false), destination.access(true)];
        // However the elements travel.
        let admitted = timeline.admit(Work::Transfer, operation, &accesses)?;
        match route {
            Route::BetweenBackends => {
                let from = timeline_of(timeline, source)?;
                cross_backend::copy((&from, timeline), operation, &nest, (source, destination))
            }
            Route::ThroughHost => self.through_host::<T>(),
            _ => copy_nest(self, admitted, (&nest, &RegionLoop::new(&nest))),
        }
    }

    /// Copies down to the host and up again.
    fn through_host<T: Element>(&self) -> Result<u64> {
        let Self { timeline, operation, source, destination, .. } = *self;
        let shape = ndarray::IxDyn(source.layout.shape()).into();
        let mut host =
            zeros::<T, ndarray::IxDyn>(operation, shape).map_err(|error| timeline.context.place(error))?;
        let from = timeline_of(timeline, source)?;
        pageable::download(&from, operation, source, &mut host.view_mut(), None)?;
        pageable::upload(timeline, operation, &host.view(), destination, Upload::Staged, None)
    }
}

/// A stream of the source's device: that of the copy, unless it belongs to another device.
fn timeline_of<B: Backend>(timeline: &Arc<Timeline<B>>, source: ArrayRef<'_, B>) -> Result<Arc<Timeline<B>>> {
    match source.memory.device() {
        Some(device) if !source.memory.context().is_same(&timeline.context) => device.default_timeline(),
        _ => Ok(timeline.clone()),
    }
}
