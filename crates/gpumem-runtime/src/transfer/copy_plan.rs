//! How a copy between two arrays will be done, for looking at.

use super::{
    TUNING,
    copy_side::{CopySide, choose_kernel, is_one_backend},
    region_loop::RegionLoop,
};
use crate::{
    device::Allocation,
    layout::{Axis, CopyNest, Layout},
    transfer_options::TransferOptions,
};
use gpumem_core::{Backend, DriverDevice, Result};
use gpumem_memory::track::Timeline;
use smallvec::SmallVec;
use std::fmt;

/// Which way the elements of a copy take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CopyStrategy {
    /// There are no elements.
    Nothing,
    /// So many copies of the driver, one after the other.
    Copies(usize),
    /// One copy of the driver's device, element by element or tile by tile.
    Kernel,
    /// Down to the host and up again: between devices of two backends, or where it would take too many copies.
    ViaHost,
    /// Pieces of up to so many bytes through page-locked blocks, filled or emptied by up to so many threads.
    Staged {
        /// Threads, the calling one among them.
        threads: usize,
        /// Bytes of a piece. One copy of an upload of one run may be a third larger.
        piece_bytes: usize,
    },
}

/// How a copy between two layouts will be done. Made in a time that grows with the number of axes only
/// ([`ArrayBase::copy_plan`](crate::ArrayBase::copy_plan)).
///
/// Printed in one line: the way; the elements that are moved; then the loops from the outside in, each as
/// `length × (source stride, destination stride)` in bytes, `rows` and `slices` those that one call of the driver does
/// and `loop` those around the calls; and last the `run` of bytes that is contiguous on both sides.
///
/// ```text
/// 1 copy of 33554432 × 4 B: rows 33554432 × (8, 4), run 4 B
/// 2 copies of 24 × 4 B: loop 2 × (48, 48), rows 3 × (-16, 16), run 16 B
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyPlan {
    strategy: CopyStrategy,
    elements: usize,
    item: usize,
    run: usize,
    /// Rows and slices of one call.
    inside: SmallVec<[Axis; 2]>,
    around: SmallVec<[Axis; 6]>,
}

impl CopyPlan {
    fn new(nest: &CopyNest) -> (Self, RegionLoop) {
        let plan = RegionLoop::new(nest);
        let (inside, around) = plan.axes();
        let (strategy, elements) = (CopyStrategy::Copies(plan.calls()), nest.len);
        (Self { strategy, elements, item: nest.item, run: nest.run, inside, around }, plan)
    }

    fn nothing(nest: &CopyNest) -> Self {
        let (inside, around) = (SmallVec::new(), SmallVec::new());
        Self { strategy: CopyStrategy::Nothing, elements: 0, item: nest.item, run: 0, inside, around }
    }

    /// Between two arrays of the library, on the stream that would do it.
    pub(crate) fn between<B: Backend>(
        timeline: &Timeline<B>,
        operation: &'static str,
        (source, from): (&Allocation<B>, &Layout),
        (destination, to): (&Allocation<B>, &Layout),
    ) -> Result<Self> {
        let nest = CopyNest::new(from, to).map_err(|error| timeline.context.error(operation, error))?;
        if nest.len == 0 || nest.item == 0 {
            return Ok(Self::nothing(&nest));
        }
        let (mut described, plan) = Self::new(&nest);
        let (from, to) = (CopySide::of(timeline, source), CopySide::of(timeline, destination));
        if !is_one_backend(timeline, source) || !is_one_backend(timeline, destination) {
            described.strategy = CopyStrategy::ViaHost;
        } else if choose_kernel(timeline, (&nest, &plan), from, to).is_some() {
            described.strategy = CopyStrategy::Kernel;
        } else if plan.calls() > TUNING.max_driver_calls {
            described.strategy = CopyStrategy::ViaHost;
        }
        Ok(described)
    }

    /// Between memory of the caller and an array of the library.
    pub(crate) fn borrowed<B: Backend>(
        timeline: &Timeline<B>,
        operation: &'static str,
        host_span: &Layout,
        memory: &Allocation<B>,
        layout: &Layout,
        options: TransferOptions,
    ) -> Result<Self> {
        let nest =
            CopyNest::new(host_span, layout).map_err(|error| timeline.context.error(operation, error))?;
        if nest.len == 0 || nest.item == 0 {
            return Ok(Self::nothing(&nest));
        }
        let (mut described, plan) = Self::new(&nest);
        if timeline.context.raw.capabilities().pageable_direct {
            let (from, to) = (CopySide::of_caller(timeline, 0), CopySide::of(timeline, memory));
            if choose_kernel(timeline, (&nest, &plan), from, to).is_some() {
                described.strategy = CopyStrategy::Kernel;
            }
        } else {
            let config = options.upload_config(nest.len * nest.item, nest.axes.is_empty(), false);
            described.strategy = CopyStrategy::Staged { threads: config.threads, piece_bytes: config.block };
        }
        Ok(described)
    }

    /// Which way the elements take.
    pub fn strategy(&self) -> CopyStrategy {
        self.strategy
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
        match self.strategy {
            CopyStrategy::Nothing => return f.write_str("nothing to copy"),
            CopyStrategy::Copies(1) => f.write_str("1 copy")?,
            CopyStrategy::Copies(calls) => write!(f, "{calls} copies")?,
            CopyStrategy::Kernel => f.write_str("1 strided copy")?,
            CopyStrategy::ViaHost => f.write_str("through the host")?,
            CopyStrategy::Staged { threads: 1, piece_bytes } => {
                write!(f, "ring of {piece_bytes} B by 1 thread")?
            }
            CopyStrategy::Staged { threads, piece_bytes } => {
                write!(f, "ring of {piece_bytes} B by {threads} threads")?
            }
        }
        write!(f, " of {} × {} B:", self.elements, self.item)?;
        for Axis { len, src, dst } in &self.around {
            write!(f, " loop {len} × ({src}, {dst}),")?;
        }
        let names = if self.inside.len() == 2 { ["slices", "rows"] } else { ["rows", ""] };
        for (Axis { len, src, dst }, name) in self.inside.iter().zip(names) {
            write!(f, " {name} {len} × ({src}, {dst}),")?;
        }
        write!(f, " run {} B", self.run)
    }
}
