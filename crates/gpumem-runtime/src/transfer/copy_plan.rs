//! How a copy between two arrays will be done, for looking at.

use super::{
    memory::is_one_backend,
    options::TransferOptions,
    plan::Plan,
    side::{MOST_CALLS, Side, walked},
};
use crate::{
    layout::{Axis, Layout, Pair},
    memory::Allocation,
    order::Timeline,
};
use gpumem_core::{Backend, Result};
use smallvec::SmallVec;
use std::fmt;

/// Which way the elements of a copy take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CopyWay {
    /// There are no elements.
    Nothing,
    /// So many copies of the driver, one after the other.
    Copies(usize),
    /// One copy of the driver's device, element by element or tile by tile.
    Strided,
    /// Down to the host and up again: between devices of two backends, or where it would take too many copies.
    ThroughHost,
    /// Pieces of up to so many bytes through page-locked blocks, filled or emptied by up to so many threads.
    Ring {
        /// Threads, the calling one among them.
        threads: usize,
        /// Bytes of a piece. What is sent at once of an upload of one run may be a third more.
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
    way: CopyWay,
    elements: usize,
    item: usize,
    run: usize,
    /// Rows and slices of one call.
    inside: SmallVec<[Axis; 2]>,
    around: SmallVec<[Axis; 6]>,
}

impl CopyPlan {
    fn new(pair: &Pair) -> (Self, Plan) {
        let plan = Plan::new(pair);
        let (inside, around) = plan.axes();
        let (way, elements) = (CopyWay::Copies(plan.calls()), pair.len);
        (Self { way, elements, item: pair.item, run: pair.run, inside, around }, plan)
    }

    fn nothing(pair: &Pair) -> Self {
        let (inside, around) = (SmallVec::new(), SmallVec::new());
        Self { way: CopyWay::Nothing, elements: 0, item: pair.item, run: 0, inside, around }
    }

    /// Between two arrays of the library, on the stream that would do it.
    pub(crate) fn between<B: Backend>(
        timeline: &Timeline<B>,
        operation: &'static str,
        (source, from): (&Allocation<B>, &Layout),
        (destination, to): (&Allocation<B>, &Layout),
    ) -> Result<Self> {
        let pair = Pair::new(from, to).map_err(|error| timeline.core.error(operation, error))?;
        if pair.len == 0 || pair.item == 0 {
            return Ok(Self::nothing(&pair));
        }
        let (mut described, plan) = Self::new(&pair);
        let (from, to) = (Side::of(timeline, source), Side::of(timeline, destination));
        if !is_one_backend(timeline, source) || !is_one_backend(timeline, destination) {
            described.way = CopyWay::ThroughHost;
        } else if walked(timeline, (&pair, &plan), from, to).is_some() {
            described.way = CopyWay::Strided;
        } else if plan.calls() > MOST_CALLS {
            described.way = CopyWay::ThroughHost;
        }
        Ok(described)
    }

    /// Between memory of the caller and an array of the library.
    pub(crate) fn borrowed<B: Backend>(
        timeline: &Timeline<B>,
        operation: &'static str,
        caller: &Layout,
        memory: &Allocation<B>,
        layout: &Layout,
        options: TransferOptions,
    ) -> Result<Self> {
        let pair = Pair::new(caller, layout).map_err(|error| timeline.core.error(operation, error))?;
        if pair.len == 0 || pair.item == 0 {
            return Ok(Self::nothing(&pair));
        }
        let (mut described, plan) = Self::new(&pair);
        if B::capabilities(&timeline.core.raw).pageable_direct {
            let (from, to) = (Side::of_caller(timeline, 0), Side::of(timeline, memory));
            if walked(timeline, (&pair, &plan), from, to).is_some() {
                described.way = CopyWay::Strided;
            }
        } else {
            let share = options.upload_share(pair.len * pair.item, pair.axes.is_empty(), false);
            described.way = CopyWay::Ring { threads: share.threads, piece_bytes: share.block };
        }
        Ok(described)
    }

    /// Which way the elements take.
    pub fn way(&self) -> CopyWay {
        self.way
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
        match self.way {
            CopyWay::Nothing => return f.write_str("nothing to copy"),
            CopyWay::Copies(1) => f.write_str("1 copy")?,
            CopyWay::Copies(calls) => write!(f, "{calls} copies")?,
            CopyWay::Strided => f.write_str("1 strided copy")?,
            CopyWay::ThroughHost => f.write_str("through the host")?,
            CopyWay::Ring { threads: 1, piece_bytes } => write!(f, "ring of {piece_bytes} B by 1 thread")?,
            CopyWay::Ring { threads, piece_bytes } => {
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
