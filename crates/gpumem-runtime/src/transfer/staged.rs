//! One piece of a transfer in a staging block.

use super::{
    borrowed::turned,
    caller::Caller,
    elements,
    memory::{Place, enqueue},
    plan::Plan,
    side::Side,
    stores::{Stores, copy_run},
    torn::note_torn,
};
use crate::{
    layout::{Axis, Layout, Order, Pair},
    memory::Staging,
    order::{Access, Timeline},
};
use gpumem_core::{Backend, HostAccess, Result};
use smallvec::SmallVec;
use std::sync::Arc;

/// Which way the elements go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Up,
    Down,
}

/// A piece whose elements lie side by side in a block, in the order of the piece.
pub(super) struct Staged<'a, B: Backend> {
    pub(super) staging: &'a Staging<B>,
    /// The bytes of the block.
    layout: Layout,
    /// The axes of the piece with the strides that they have in the block.
    axes: SmallVec<[Axis; 6]>,
}

impl<'a, B: Backend> Staged<'a, B> {
    /// The block is at least as long as the piece, which begins with it.
    pub(super) fn new(staging: &'a Staging<B>, operation: &'static str, piece: &Pair) -> Result<Self> {
        let layout = Layout::packed(&[piece.len * piece.item], 1, Order::C)
            .map_err(|error| staging.memory().core().error(operation, error))?;
        let mut stride = piece.run as isize;
        let mut axes = piece.axes.clone();
        for axis in axes.iter_mut().rev() {
            axis.src = stride;
            stride *= axis.len as isize;
        }
        Ok(Self { staging, layout, axes })
    }

    /// The piece as it lies in the caller's memory (source) and in the block (destination), to be cut into parts.
    pub(super) fn inside(&self, piece: &Pair) -> Pair {
        let mut pair = Pair { dst: 0, ..piece.clone() };
        pair.axes.iter_mut().zip(&self.axes).for_each(|(axis, block)| axis.dst = block.src);
        pair
    }

    /// Moves a part of what is [`inside`](Self::inside) between the caller's memory and the block, on this thread.
    ///
    /// # Safety
    /// The caller's memory is valid for the part, for writes on the way down; no copy writes these bytes of the block,
    /// nor does another thread.
    pub(super) unsafe fn exchange(
        &self,
        operation: &'static str,
        part: &Pair,
        caller: &Caller,
        way: Way,
        stores: Stores,
    ) -> Result<()> {
        let (memory, whole) = (self.staging.memory(), self.layout.extent());
        match way {
            Way::Up => memory.wait_for_host(operation, &whole, HostAccess::Write)?,
            Way::Down => memory.show_to_host(operation, &whole, HostAccess::Read)?,
        }
        let block = self.staging.host(operation)?;
        let (theirs, ours) = (caller.lowest.wrapping_add(part.src), block.as_ptr().wrapping_add(part.dst));
        // SAFETY: the pointers and strides describe exactly the part, in the caller's memory and in the block, which
        // is aligned for every element; both are valid by this function's contract and share no bytes.
        unsafe {
            if part.axes.is_empty() || part.run >= elements::LONGEST {
                runs(part, theirs, ours, way, stores);
            } else {
                elements::copy_runs(part, theirs, ours, way, stores);
            }
        }
        Ok(())
    }

    /// Enqueues the copy of a piece of two arrays of the library, source to destination, into the block: the first half
    /// of its way.
    pub(super) fn fetch(
        &self,
        timeline: &Arc<Timeline<B>>,
        operation: &'static str,
        piece: &Pair,
        source: Place<'_, B>,
    ) -> Result<()> {
        // In the block the piece lies where the other half of the way reads it.
        let pair = self.inside(piece);
        let memory = self.staging.memory();
        let (from, to) = (Side::of(timeline, source.memory), Side::of(timeline, memory));
        let accesses = [
            Access::read(source.memory, source.layout.extent()),
            Access::write(memory, self.layout.extent()),
        ];
        timeline.submit(operation, &accesses, |raw| {
            // SAFETY: the block and the source's memory are alive and ordered by their use logs; they share no bytes,
            // and elements in the block do not overlap.
            unsafe {
                enqueue(timeline, raw, (&pair, &Plan::new(&pair)), from, to, source.memory.cuts(), &mut 0)
            }
        })?;
        Ok(())
    }

    /// Enqueues the copy between the block and the device.
    pub(super) fn copy(
        &self,
        timeline: &Arc<Timeline<B>>,
        operation: &'static str,
        piece: &Pair,
        place: Place<'_, B>,
        way: Way,
    ) -> Result<u64> {
        let block = Pair { axes: self.axes.clone(), src: 0, ..piece.clone() };
        let pair = if way == Way::Up { block } else { turned(&block) };
        let memory = self.staging.memory();
        let (host, device) = (Side::of(timeline, memory), Side::of(timeline, place.memory));
        let (whole, extent) = (self.layout.extent(), place.layout.extent());
        let (from, to, accesses) = match way {
            Way::Up => (host, device, [Access::read(memory, whole), Access::write(place.memory, extent)]),
            Way::Down => (device, host, [Access::read(place.memory, extent), Access::write(memory, whole)]),
        };
        let mut calls = 0;
        let submitted = timeline.submit(operation, &accesses, |raw| {
            // SAFETY: the block and the device's memory are alive and ordered by their use logs; they share no bytes,
            // and destination elements do not overlap.
            unsafe {
                enqueue(timeline, raw, (&pair, &Plan::new(&pair)), from, to, place.memory.cuts(), &mut calls)
            }
        });
        let submitted = submitted.inspect_err(|error| {
            if way == Way::Up && calls > 0 {
                note_torn(operation, place, error);
            }
        })?;
        Ok(submitted.ticket)
    }
}

/// # Safety
/// As for [`Staged::exchange`].
unsafe fn runs(part: &Pair, theirs: *mut u8, ours: *mut u8, way: Way, stores: Stores) {
    let mut step: SmallVec<[usize; 6]> = SmallVec::from_elem(0, part.axes.len());
    let (mut at, mut theirs) = (ours, theirs);
    loop {
        // SAFETY: a run of the part; runs lie side by side in the block.
        unsafe {
            match way {
                Way::Up => copy_run(theirs.cast_const(), at, part.run, stores),
                Way::Down => copy_run(at.cast_const(), theirs, part.run, stores),
            }
        }
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
