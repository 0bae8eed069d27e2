//! One piece of a transfer in a staging block.

use super::{
    ArrayRef, Direction, Staging, TUNING,
    copy_side::{CopySide, enqueue},
    gather_scatter,
    region_loop::RegionLoop,
    store_policy::{StorePolicy, copy_run},
};
use crate::layout::{Axis, CopyNest, Layout, Order};
use gpumem_core::{Backend, Result};
use gpumem_memory::track::{Access, Timeline};
use smallvec::SmallVec;
use std::sync::Arc;

/// A piece whose elements lie side by side in a block, in the order of the piece.
pub(super) struct Staged<'a, B: Backend> {
    pub(super) staging: &'a Staging<B>,
    /// The bytes of the block.
    layout: Layout,
    /// The axes of the piece with the strides that they have in the block.
    axes: SmallVec<[Axis; 6]>,
}

impl<'a, B: Backend> Staged<'a, B> {
    /// The piece begins with the block.
    /// Returns [`OutOfBuffer`](crate::layout::LayoutError::OutOfBuffer) if the block is shorter.
    pub(super) fn new(staging: &'a Staging<B>, operation: &'static str, piece: &CopyNest) -> Result<Self> {
        let memory = staging.memory();
        let layout = Layout::packed(&[piece.len * piece.item], 1, Order::C);
        let layout = layout.and_then(|layout| layout.fits(memory.len()).map(|()| layout));
        let layout = layout.map_err(|error| memory.core().error(operation, error))?;
        let mut stride = piece.run as isize;
        let mut axes = piece.axes.clone();
        for axis in axes.iter_mut().rev() {
            axis.src = stride;
            stride *= axis.len as isize;
        }
        Ok(Self { staging, layout, axes })
    }

    /// The piece as it lies in the caller's memory (source) and in the block (destination), to be cut into parts.
    pub(super) fn inside(&self, piece: &CopyNest) -> CopyNest {
        let mut nest = CopyNest { dst: 0, ..piece.clone() };
        nest.axes.iter_mut().zip(&self.axes).for_each(|(axis, block)| axis.dst = block.src);
        nest
    }

    /// Enqueues the copy of a piece of two arrays of the library, source to destination, into the block: the first half
    /// of its way.
    pub(super) fn fetch(
        &self,
        timeline: &Arc<Timeline<B>>,
        operation: &'static str,
        piece: &CopyNest,
        source: ArrayRef<'_, B>,
    ) -> Result<u64> {
        // In the block the piece lies where the other half of the way reads it.
        self.submit(timeline, operation, &self.inside(piece), source, Direction::DeviceToHost)
    }

    /// Enqueues the copy between the block and the device.
    pub(super) fn copy(
        &self,
        timeline: &Arc<Timeline<B>>,
        operation: &'static str,
        piece: &CopyNest,
        array_ref: ArrayRef<'_, B>,
        direction: Direction,
    ) -> Result<u64> {
        let block = CopyNest { axes: self.axes.clone(), src: 0, ..piece.clone() };
        let nest = if direction == Direction::HostToDevice { block } else { block.swapped() };
        self.submit(timeline, operation, &nest, array_ref, direction)
    }

    /// Enqueues a copy whose source (up) or destination (down) is the block.
    fn submit(
        &self,
        timeline: &Arc<Timeline<B>>,
        operation: &'static str,
        nest: &CopyNest,
        array_ref: ArrayRef<'_, B>,
        direction: Direction,
    ) -> Result<u64> {
        let memory = self.staging.memory();
        let (host, device) = (CopySide::of(timeline, memory), CopySide::of(timeline, array_ref.memory));
        let whole = self.layout.extent();
        let (from, to, accesses) = match direction {
            Direction::HostToDevice => (host, device, [Access::read(memory, whole), array_ref.access(true)]),
            Direction::DeviceToHost => {
                (device, host, [array_ref.access(false), Access::write(memory, whole)])
            }
        };
        let submitted = timeline.submit(operation, &accesses, |sink| {
            // SAFETY: the block and the device's memory are alive and ordered by their access logs; they share no bytes,
            // and destination elements do not overlap.
            unsafe {
                enqueue(
                    timeline,
                    sink,
                    (nest, &RegionLoop::new(nest)),
                    from,
                    to,
                    array_ref.memory.boundaries(),
                )
            }
        })?;
        Ok(submitted.submission)
    }
}

/// Moves a part of the [`inside`](Staged::inside) elements between memory from `base` on and the block, on this thread.
///
/// # Safety
/// The memory is valid for the part, for writes in a download. The block is as long as the piece and aligned for every
/// element; no copy writes these bytes of it, nor does another thread.
pub(super) unsafe fn move_nest(
    part: &CopyNest,
    base: *mut u8,
    block: *mut u8,
    direction: Direction,
    stores: StorePolicy,
) {
    let (theirs, ours) = (base.wrapping_add(part.src), block.wrapping_add(part.dst));
    // SAFETY: the pointers and strides describe exactly the part, in the caller's memory and in the block; both are valid by
    // this function's contract and share no bytes.
    unsafe {
        if part.axes.is_empty() || part.run >= TUNING.gathered_run {
            runs(part, theirs, ours, direction, stores);
        } else {
            gather_scatter::copy_runs(part, theirs, ours, direction, stores);
        }
    }
}

/// Moves one run between the caller's memory and a block.
///
/// # Safety
/// Both are valid for so many bytes, for writes the one that is written, and share none.
pub(super) unsafe fn move_run(
    host: *mut u8,
    block: *mut u8,
    bytes: usize,
    direction: Direction,
    stores: StorePolicy,
) {
    // SAFETY: the caller's promise.
    unsafe {
        match direction {
            Direction::HostToDevice => copy_run(host.cast_const(), block, bytes, stores),
            Direction::DeviceToHost => copy_run(block.cast_const(), host, bytes, stores),
        }
    }
}

/// Moves the runs of a part one by one.
///
/// # Safety
/// As for [`move_nest`].
unsafe fn runs(part: &CopyNest, theirs: *mut u8, ours: *mut u8, direction: Direction, stores: StorePolicy) {
    let mut step: SmallVec<[usize; 6]> = SmallVec::from_elem(0, part.axes.len());
    let (mut at, mut theirs) = (ours, theirs);
    loop {
        // SAFETY: a run of the part; runs lie side by side in the block.
        unsafe { move_run(theirs, at, part.run, direction, stores) };
        at = at.wrapping_add(part.run);
        // An odometer over the axes, innermost last.
        let mut axis = part.axes.len();
        loop {
            let Some(next) = axis.checked_sub(1) else { return };
            axis = next;
            let Axis { len, src, .. } = part.axes[axis];
            step[axis] += 1;
            if step[axis] < len {
                theirs = theirs.wrapping_offset(src);
                break;
            }
            theirs = theirs.wrapping_offset(-src * (len - 1) as isize);
            step[axis] = 0;
        }
    }
}

#[cfg(all(test, not(any(loom, miri))))]
mod tests {
    use super::*;
    use crate::Device;
    use gpumem_host::Host;

    /// A piece has at least one element, however short the blocks are.
    #[test]
    fn a_piece_longer_than_its_block_is_refused() {
        let device = Device::<Host>::open("host").unwrap();
        let staging = Staging::take(&device, "test", 4096).unwrap();
        let longest = staging.memory().len();
        for (item, fits) in [(longest, true), (longest + 1, false)] {
            let layout = Layout::packed(&[1], item, Order::C).unwrap();
            let piece = CopyNest::new(&layout, &layout).unwrap();
            assert_eq!(Staged::new(&staging, "test", &piece).is_ok(), fits);
        }
    }
}
