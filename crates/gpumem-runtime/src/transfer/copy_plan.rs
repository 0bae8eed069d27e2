//! How a copy between two arrays will be done, for looking at.

use super::{
    ArrayRef, Direction,
    region_loop::RegionLoop,
    route::{ArrayCopy, BorrowedCopy, Elements, Route},
    sides::HostSpan,
};
use crate::layout::{Axis, CopyNest, Layout};
use gpumem_core::{Backend, Result};
use gpumem_memory::track::Timeline;
use smallvec::SmallVec;
use std::{fmt, ptr::null_mut, sync::Arc};

/// How a copy between two layouts will be done. Made in a time that grows with the number of axes only
/// ([`ArrayBase::copy_plan`](crate::ArrayBase::copy_plan)).
///
/// Printed in one line: the way; the elements that are moved; then the loops from the outside in, each as
/// `length × (source stride, destination stride)` in bytes, `rows` and `slices` those that one call of the driver does
/// and `loop` those around the calls; the `run` of bytes that is contiguous on both sides; and last the reason for the way.
///
/// ```text
/// 1 copy of 33554432 × 4 B: rows 33554432 × (8, 4), run 4 B (the driver copies it in one call)
/// 2 copies of 24 × 4 B: loop 2 × (48, 48), rows 3 × (-16, 16), run 16 B (no kernel of the device would be faster)
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyPlan {
    route: Route,
    elements: usize,
    item: usize,
    run: usize,
    /// Rows and slices of one call.
    inside: SmallVec<[Axis; 2]>,
    around: SmallVec<[Axis; 6]>,
}

impl CopyPlan {
    fn new(route: Route, nest: &CopyNest) -> Self {
        let (inside, around) = match route {
            Route::Nothing => Default::default(),
            _ => RegionLoop::new(nest).axes(),
        };
        Self { route, elements: nest.len, item: nest.item, run: nest.run, inside, around }
    }

    /// Between two arrays of the library, on the stream that would do it.
    pub(crate) fn between<B: Backend>(
        timeline: &Arc<Timeline<B>>,
        operation: &'static str,
        source: ArrayRef<'_, B>,
        destination: ArrayRef<'_, B>,
    ) -> Result<Self> {
        let (route, elements) =
            ArrayCopy { timeline, operation, source, destination, blocks: true }.route()?;
        let nest = match elements {
            Elements::Nest(nest) => nest,
            Elements::Run(_) => CopyNest::new(source.layout, destination.layout)
                .map_err(|error| timeline.context.error(operation, error))?,
        };
        Ok(Self::new(route, &nest))
    }

    /// From memory of the caller to an array of the library.
    pub(crate) fn borrowed<B: Backend>(
        timeline: &Arc<Timeline<B>>,
        operation: &'static str,
        host: Layout,
        array: ArrayRef<'_, B>,
    ) -> Result<Self> {
        let (host, direction) = (HostSpan::unwritten(null_mut(), host), Direction::HostToDevice);
        let copy = BorrowedCopy { timeline, operation, array, direction, blocks: true };
        let run = copy.run_of(&host).and_then(|run| copy.route_of_run(run.extent.len()));
        let nest = copy.nest(&host.layout)?;
        let route = run.map_or_else(|| copy.route_of_nest(&host.layout, &nest), Ok)?;
        Ok(Self::new(route, &nest))
    }

    /// From a file to an array of the library.
    pub(crate) fn of_file<B: Backend>(
        timeline: &Arc<Timeline<B>>,
        operation: &'static str,
        file: &Layout,
        array: ArrayRef<'_, B>,
    ) -> Result<Self> {
        let direction = Direction::HostToDevice;
        let copy = BorrowedCopy { timeline, operation, array, direction, blocks: true };
        let nest = copy.nest(file)?;
        Ok(Self::new(copy.route_of_file(file, &nest)?, &nest))
    }

    /// Which way the elements take, and [why](Route::reason).
    pub fn route(&self) -> Route {
        self.route
    }

    /// Elements that are moved.
    pub fn elements(&self) -> usize {
        self.elements
    }

    /// Bytes that are moved.
    pub fn bytes(&self) -> usize {
        self.elements * self.item
    }

    /// Bytes that are contiguous on both sides.
    pub fn run_bytes(&self) -> usize {
        self.run
    }

    /// The loops that one call of the driver does, the outer one first: at most slices and rows.
    pub fn rows_and_slices(&self) -> &[Axis] {
        &self.inside
    }

    /// The loops around the calls, outermost first.
    pub fn loops(&self) -> &[Axis] {
        &self.around
    }
}

impl fmt::Display for CopyPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.route {
            Route::Nothing => return f.write_str("nothing to copy"),
            Route::CallingThread => f.write_str("by the calling thread")?,
            Route::SingleBlock => f.write_str("through one block")?,
            Route::Packed => f.write_str("packed by the device")?,
            Route::Pipeline { threads: 1, piece_bytes } => {
                write!(f, "blocks of {piece_bytes} B by 1 thread")?
            }
            Route::Pipeline { threads, piece_bytes } => {
                write!(f, "blocks of {piece_bytes} B by {threads} threads")?
            }
            Route::File { threads, piece_bytes } => {
                write!(f, "reads of {piece_bytes} B by {threads} threads")?
            }
            Route::DriverCalls(1) => f.write_str("1 copy")?,
            Route::DriverCalls(calls) => write!(f, "{calls} copies")?,
            Route::Kernel => f.write_str("1 strided copy")?,
            Route::BetweenBackends => f.write_str("from device to device through blocks")?,
            Route::ThroughHost => f.write_str("through the host")?,
        }
        write!(f, " of {} × {} B:", self.elements, self.item)?;
        for Axis { len, src, dst } in &self.around {
            write!(f, " loop {len} × ({src}, {dst}),")?;
        }
        let names = if self.inside.len() == 2 { ["slices", "rows"] } else { ["rows", ""] };
        for (Axis { len, src, dst }, name) in self.inside.iter().zip(names) {
            write!(f, " {name} {len} × ({src}, {dst}),")?;
        }
        write!(f, " run {} B ({})", self.run, self.route.reason())
    }
}
