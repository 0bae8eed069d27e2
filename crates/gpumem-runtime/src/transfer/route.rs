//! Which way the elements of a copy take: decided here, and nowhere else.

use super::{
    ArrayRef, Direction, TUNING,
    copy_side::{CopySide, can_pack, choose_kernel, is_one_backend},
    cross_backend,
    pipeline::config,
    region_loop::RegionLoop,
    sides::HostSpan,
};
use crate::{
    device::Allocation,
    layout::{CopyNest, Layout, contiguous_len},
};
use gpumem_core::{Backend, DriverDevice, LayoutError, Result, StreamKind};
use gpumem_memory::{may_block, track::Timeline};
use std::{ops::Range, sync::Arc};

/// The way that the elements of a copy take ([`CopyPlan::route`](crate::CopyPlan::route)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Route {
    /// There are no elements.
    Nothing,
    /// The calling thread copies the elements, or waits until the device has copied them.
    CallingThread,
    /// Through one page-locked block, which the calling thread fills or empties.
    SingleBlock,
    /// Through a block of the device in which the elements lie packed, and then as in [`Pipeline`](Self::Pipeline).
    Packed,
    /// In pieces through page-locked blocks, which several threads fill or empty while the device copies others.
    Pipeline {
        /// Threads, the calling one among them.
        threads: usize,
        /// Bytes of a piece. One copy of an upload of one run may be a third larger.
        piece_bytes: usize,
    },
    /// From a file through page-locked blocks, which several threads read into while the device copies others.
    File {
        /// Threads, the calling one among them.
        threads: usize,
        /// Bytes of a read.
        piece_bytes: usize,
    },
    /// By copies of the driver, one after the other: that many.
    DriverCalls(usize),
    /// By one copy of the device, element by element or tile by tile.
    Kernel,
    /// Through page-locked blocks, from one device to the other.
    BetweenBackends,
    /// Down to the host and up again.
    ThroughHost,
}

impl Route {
    /// Returns why the elements take this way.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Nothing => "there are no elements",
            Self::CallingThread => "the device's memory is that of the host",
            Self::SingleBlock => "one run, too short to be worth several threads",
            Self::Packed => "short runs, which the device packs faster than threads of the host",
            Self::Pipeline { .. } => "the device reaches page-locked memory only",
            Self::File { .. } => "the device does not reach a file",
            Self::DriverCalls(1) => "the driver copies it in one call",
            Self::DriverCalls(_) => "no kernel of the device would be faster",
            Self::Kernel => "the driver would need many calls, or copy short runs",
            Self::BetweenBackends => "the devices belong to two backends",
            Self::ThroughHost => "too many calls of the driver, and no kernel that reaches both sides",
        }
    }
}

/// The elements of both sides of a copy.
#[derive(Debug)]
pub(super) enum Elements {
    /// So many bytes that are contiguous on both sides, in memory that the driver takes in one call.
    Run(usize),
    /// Loops over runs.
    Nest(CopyNest),
}

/// A copy between memory of the caller and an array of the library.
#[derive(Debug)]
pub(super) struct BorrowedCopy<'a, B: Backend> {
    pub(super) timeline: &'a Arc<Timeline<B>>,
    pub(super) operation: &'static str,
    pub(super) array: ArrayRef<'a, B>,
    pub(super) direction: Direction,
    /// Whether the call returns when the elements are there.
    pub(super) blocks: bool,
}

/// Elements that are contiguous on both sides: the first of the caller's bytes, and the bytes of the array.
#[derive(Debug)]
pub(super) struct BorrowedRun {
    pub(super) first: *mut u8,
    pub(super) extent: Range<usize>,
}

impl<B: Backend> BorrowedCopy<'_, B> {
    /// The run of a packed array of the caller with that many bytes, if the library's holds its elements in the same order.
    pub(super) fn run_of_packed(&self, shape: &[usize], first: *mut u8, bytes: usize) -> Option<BorrowedRun> {
        let layout = self.array.layout;
        let run = contiguous_len(layout, layout).filter(|run| *run == bytes && layout.shape() == shape)?;
        Some(BorrowedRun { first, extent: layout.offset()..layout.offset() + run })
    }

    /// The run of the caller's memory, if it is one.
    pub(super) fn run_of(&self, host: &HostSpan) -> Option<BorrowedRun> {
        let run = contiguous_len(self.array.layout, &host.layout)?;
        let (first, start) = (host.base.wrapping_add(host.layout.offset()), self.array.layout.offset());
        Some(BorrowedRun { first, extent: start..start + run })
    }

    /// Returns how a run of so many bytes travels, in memory that needs no look at anything but the access log. `None` if it has
    /// to be looked at as [loops](Self::nest), which tell too why a copy cannot be done.
    pub(super) fn route_of_run(&self, bytes: usize) -> Option<Route> {
        let (timeline, memory) = (self.timeline, self.array.memory);
        let is_simple = Arc::ptr_eq(&timeline.context, memory.context())
            && memory.boundaries().is_empty()
            && !(self.blocks && may_block(self.operation).is_err());
        if !is_simple {
            return None;
        }
        if self.is_direct() {
            return Some(Route::CallingThread);
        }
        // In a forked child the lock of the options may be held for ever.
        if !(timeline.is_ready() && memory.is_fresh() && memory.is_owned()) {
            return None;
        }
        let options = memory.device()?.0.staging.options();
        let is_short = match self.direction {
            // A stream of one thread has no helpers.
            Direction::HostToDevice => {
                options.is_single_block_upload(bytes, timeline.kind() == StreamKind::PerThread)
            }
            Direction::DeviceToHost => bytes <= options.single_block_bytes,
        };
        is_short.then_some(Route::SingleBlock)
    }

    /// Returns how the elements of loops travel.
    pub(super) fn route_of_nest(&self, host: &Layout, nest: &CopyNest) -> Result<Route> {
        if nest.len == 0 || nest.item == 0 {
            return Ok(Route::Nothing);
        }
        if self.is_direct() {
            return Ok(Route::CallingThread);
        }
        if self.is_packed_faster(host, nest) {
            return Ok(Route::Packed);
        }
        let device = self.array.device(self.operation)?;
        let config = config(device, self.timeline, self.operation, nest, self.direction, false);
        Ok(Route::Pipeline { threads: config.threads, piece_bytes: config.block })
    }

    /// Returns how the elements of a file travel: as they lie there, by way of a block of the device, where they would be read or
    /// written in short pieces otherwise. A read may take the bytes between its runs along, a write not.
    pub(super) fn route_of_file(&self, file: &Layout, nest: &CopyNest) -> Result<Route> {
        if nest.len == 0 || nest.item == 0 {
            return Ok(Route::Nothing);
        }
        let has_short_pieces = match self.direction {
            Direction::HostToDevice => nest.axes.windows(2).any(|pair| match *pair {
                // Steps of zero find what has been read.
                [outer, inner] => outer.src != 0 && outer.src.unsigned_abs() < inner.src.unsigned_abs(),
                _ => false,
            }),
            Direction::DeviceToHost => !nest.axes.is_empty(),
        };
        if has_short_pieces && nest.run < TUNING.file_run || self.is_packed_faster(file, nest) {
            return Ok(Route::Packed);
        }
        let device = self.array.device(self.operation)?;
        let config = config(device, self.timeline, self.operation, nest, self.direction, true);
        Ok(Route::File { threads: config.threads, piece_bytes: config.part(config.block) })
    }

    /// Whether the device reaches the caller's memory at full speed. Only a call that blocks may let it.
    fn is_direct(&self) -> bool {
        self.blocks && self.timeline.context.raw.capabilities().pageable_direct
    }

    /// Whether a transfer should go through a block of the device in which the elements lie in the caller's order of axes: the
    /// device can walk any layout, and either side would move in short runs for want of it.
    fn is_packed_faster(&self, host: &Layout, nest: &CopyNest) -> bool {
        let is_long = nest.run < TUNING.pack_below && nest.len * nest.item >= TUNING.pack_from;
        if !is_long || !can_pack(self.timeline, self.array.memory) {
            return false;
        }
        let run = |a: &Layout, b: &Layout| CopyNest::new(a, b).map_or(0, |nest| nest.run);
        let gains_here = run(host, &host.like()) > nest.run;
        let gains_there = run(self.array.layout, &self.array.layout.like()) < TUNING.pack_below;
        gains_here || gains_there
    }

    /// The loops of the pair as seen from the device: its strides are positive and decide the order.
    /// Returns an error if the two sides cannot be copied here and now.
    pub(super) fn nest(&self, host: &Layout) -> Result<CopyNest> {
        let Self { timeline, operation, array, direction, blocks } = *self;
        if blocks {
            may_block(operation)?;
        }
        timeline.check(operation)?;
        array.memory.check(operation)?;
        timeline.check_owns(operation, array.memory)?;
        let fail = |error| timeline.context.error(operation, error);
        if direction == Direction::DeviceToHost && host.has_self_overlap() {
            let (shape, strides) = (host.shape().to_vec(), host.strides().to_vec());
            return Err(fail(LayoutError::SelfOverlap { shape, strides }));
        }
        CopyNest::new(host, array.layout).map_err(fail)
    }
}

/// A copy between two arrays of the library.
#[derive(Debug)]
pub(super) struct ArrayCopy<'a, B: Backend> {
    pub(super) timeline: &'a Arc<Timeline<B>>,
    pub(super) operation: &'static str,
    pub(super) source: ArrayRef<'a, B>,
    pub(super) destination: ArrayRef<'a, B>,
    /// Whether the call returns when the elements are there.
    pub(super) blocks: bool,
}

impl<B: Backend> Clone for ArrayCopy<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Backend> Copy for ArrayCopy<'_, B> {}

impl<B: Backend> ArrayCopy<'_, B> {
    /// Returns how the elements travel.
    /// Returns an error if the shapes differ. Nothing has been done.
    #[inline]
    pub(super) fn route(&self) -> Result<(Route, Elements)> {
        if let Some(bytes) = self.run_bytes() {
            let route = if self.is_direct() { Route::CallingThread } else { Route::DriverCalls(1) };
            return Ok((route, Elements::Run(bytes)));
        }
        let Self { timeline, operation, source, destination, .. } = *self;
        let nest = CopyNest::new(source.layout, destination.layout)
            .map_err(|error| timeline.context.error(operation, error))?;
        let route = self.route_of_nest(&nest);
        Ok((route, Elements::Nest(nest)))
    }

    fn route_of_nest(&self, nest: &CopyNest) -> Route {
        let Self { timeline, source, destination, .. } = *self;
        if nest.len == 0 || nest.item == 0 {
            return Route::Nothing;
        }
        let plan = RegionLoop::new(nest);
        let calls = plan.calls();
        let is_one = is_one_backend(timeline, source.memory) && is_one_backend(timeline, destination.memory);
        if !is_one {
            return match cross_backend::is_possible(&plan, source, destination) {
                true => Route::BetweenBackends,
                false => Route::ThroughHost,
            };
        }
        let (from, to) = (CopySide::of(timeline, source.memory), CopySide::of(timeline, destination.memory));
        match choose_kernel(timeline, (nest, &plan), from, to) {
            Some(_) => Route::Kernel,
            None if calls > TUNING.max_driver_calls => Route::ThroughHost,
            None => Route::DriverCalls(calls),
        }
    }

    /// The bytes of the copy if it is one run between two allocations, as most copies are.
    #[inline]
    fn run_bytes(&self) -> Option<usize> {
        let Self { timeline, source, destination, .. } = *self;
        let bytes = contiguous_len(source.layout, destination.layout)?;
        let is_simple = is_plain(timeline, source.memory)
            && is_plain(timeline, destination.memory)
            && source.memory.id() != destination.memory.id();
        is_simple.then_some(bytes)
    }

    /// Whether the calling thread can copy a run by itself.
    fn is_direct(&self) -> bool {
        let Self { timeline, source, destination, .. } = *self;
        let is_own = |memory: &Allocation<B>| Arc::ptr_eq(&timeline.context, memory.context());
        self.blocks
            && timeline.context.raw.capabilities().pageable_direct
            && is_own(source.memory)
            && is_own(destination.memory)
    }
}

/// Whether the driver takes any run of the memory in one call, and no other allocation shares its bytes.
#[inline]
fn is_plain<B: Backend>(timeline: &Timeline<B>, memory: &Allocation<B>) -> bool {
    memory.is_owned() && memory.boundaries().is_empty() && is_one_backend(timeline, memory)
}
