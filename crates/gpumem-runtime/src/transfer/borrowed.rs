//! Transfers from and to memory of the caller (law 3).
//!
//! The caller's memory is touched only by us, on threads that are inside the caller's call or scope. Where a backend
//! copies ordinary memory directly and at full speed, the copy reads or writes it and the call waits; everywhere else
//! the elements go through page-locked blocks ([`ring`](super::ring), [`circular`](super::circular)), and it is only those that the device ever sees.

use super::{
    brief,
    caller::Caller,
    circular::Circular,
    memory::{self, Place, enqueue},
    pieces::in_pieces,
    plan::Plan,
    progress::{Progress, Watch},
    ring::Ring,
    short,
    side::{Side, packs},
    staged::Way,
    torn::{note_torn, note_written},
};
use crate::{
    Device, completion,
    layout::{Axis, Layout, Pair},
    memory::{Allocation, Counted},
    order::{Access, Timeline},
};
use gpumem_core::{Backend, Element, ErrorKind, Result};
use ndarray::{ArrayViewD, ArrayViewMutD};
use std::{ops::ControlFlow, sync::Arc};

/// When an upload returns, the elements have left the source in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Upload {
    /// They are in the destination, but for [short](super::short) ones, which are on their way, and few of those.
    Blocking,
    /// They are on their way: in the destination in stream order.
    Staged,
}

/// Copies an array of the caller into memory of the library. Returns the ticket of the last copy, 0 for none.
pub(crate) fn upload<T: Element, B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    source: ArrayViewD<'_, T>,
    destination: Place<'_, B>,
    upload: Upload,
    watch: Option<Watch<'_>>,
) -> Result<u64> {
    if watch.is_none()
        && let Some(done) = short::upload(timeline, operation, &source, destination, upload)
    {
        return done;
    }
    let caller = Caller::reading(operation, &source).map_err(|error| timeline.core.place(error))?;
    let pair = pair_of::<B>(timeline, operation, &caller, destination, "source", upload == Upload::Blocking)?;
    if pair.len == 0 || pair.item == 0 {
        return Ok(0);
    }
    if upload == Upload::Blocking && B::capabilities(&timeline.core.raw).pageable_direct {
        return direct_watched(timeline, operation, (&caller, &pair, destination), Way::Up, watch);
    }
    let device = device_of(operation, destination)?;
    if let Some((memory, layout)) = packed_twin(timeline, operation, device, (destination, &caller, &pair)) {
        // Packed over the link, and unpacked on the device.
        let twin = Place::new(&memory, &layout);
        self::upload::<T, B>(timeline, operation, source, twin, Upload::Staged, watch)?;
        let ticket = memory::copy::<T, B>(timeline, operation, twin, destination)?;
        if upload == Upload::Blocking {
            timeline.settle(ticket).result.map_err(|error| error.in_operation(operation))?;
        }
        return Ok(ticket);
    }
    let sides = (destination, &caller, &pair);
    // SAFETY: the caller's view is valid for reads during this call.
    let ticket = unsafe {
        match Circular::new(device, timeline, operation, sides)? {
            Some(circular) => circular.run(watch)?,
            None => Ring::new(device, timeline, operation, sides, Way::Up).run(&pair, watch)?,
        }
    };
    note_written(timeline, destination);
    if upload == Upload::Blocking {
        timeline.settle(ticket).result.map_err(|error| error.in_operation(operation))?;
    }
    Ok(ticket)
}

/// Copies memory of the library into an array of the caller, and returns when the elements are there. Bytes between
/// the elements of the array stay as they are.
pub(crate) fn download<T: Element, B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    source: Place<'_, B>,
    mut destination: ArrayViewMutD<'_, T>,
    watch: Option<Watch<'_>>,
) -> Result<()> {
    let caller = Caller::writing(operation, &mut destination).map_err(|error| timeline.core.place(error))?;
    // SAFETY: the caller's view is valid for writes during this call, and nobody else's.
    unsafe { land::<T, B>(timeline, operation, source, &caller, watch, false) }
}

/// As [`download`], into memory for a new array of a packed layout, whose elements nobody has written.
///
/// # Safety
/// The memory is valid for writes of all elements, and used by nobody else.
pub(crate) unsafe fn download_new<T: Element, B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    source: Place<'_, B>,
    first: *mut u8,
    packed: Layout,
) -> Result<()> {
    let caller = Caller::unwritten(first, packed);
    // SAFETY: the caller's promise.
    unsafe {
        match brief::land_at_once(timeline, source, &caller) {
            true => Ok(()),
            false => land::<T, B>(timeline, operation, source, &caller, None, true),
        }
    }
}

/// # Safety
/// The caller's memory is valid for writes during this call, and used by nobody else.
unsafe fn land<T: Element, B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    source: Place<'_, B>,
    caller: &Caller,
    watch: Option<Watch<'_>>,
    is_new: bool,
) -> Result<()> {
    if watch.is_none() {
        // SAFETY: the caller's promise.
        let done = unsafe { short::download(timeline, operation, source, caller) };
        if let Some(done) = done {
            return done;
        }
    }
    let pair = pair_of::<B>(timeline, operation, caller, source, "destination", true)?;
    if pair.len == 0 || pair.item == 0 {
        return Ok(());
    }
    let writers = source.memory.writers(&source.layout.extent(), timeline);
    // The copy is ordered behind them on the device, which says nothing of whether they succeeded.
    let judge = || -> Result<()> {
        for (writer, ticket) in &writers {
            writer.settle(*ticket).result.map_err(|error| error.in_operation(operation))?;
        }
        Ok(())
    };
    if B::capabilities(&timeline.core.raw).pageable_direct {
        direct_watched(timeline, operation, (caller, &pair, source), Way::Down, watch)?;
        return judge();
    }
    // Nothing may land of what failed, and no copy can begin before.
    judge()?;
    let device = device_of(operation, source)?;
    if let Some((memory, layout)) = packed_twin(timeline, operation, device, (source, caller, &pair)) {
        // Packed on the device, so that it goes over the link as one run.
        let twin = Place::new(&memory, &layout);
        memory::copy::<T, B>(timeline, operation, source, twin)?;
        // SAFETY: the caller's promise.
        return unsafe { land::<T, B>(timeline, operation, twin, caller, watch, is_new) };
    }
    let mut ring = Ring::new(device, timeline, operation, (source, caller, &pair), Way::Down);
    if is_new {
        ring.is_new();
    }
    // SAFETY: the caller's promise.
    unsafe { ring.run(&pair, watch)? };
    Ok(())
}

/// The pair of caller and device as seen from the device: its strides are positive and decide the order.
pub(super) fn pair_of<B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    caller: &Caller,
    place: Place<'_, B>,
    what: &'static str,
    blocks: bool,
) -> Result<Pair> {
    if blocks {
        completion::may_block(operation)?;
    }
    timeline.check(operation)?;
    place.memory.check(operation)?;
    timeline.check_owns(operation, place.memory)?;
    if what == "destination" && caller.layout.has_self_overlap() {
        let error = gpumem_core::LayoutError::SelfOverlap {
            shape: caller.layout.shape().to_vec(),
            strides: caller.layout.strides().to_vec(),
        };
        return Err(timeline.core.error(operation, error));
    }
    Pair::new(&caller.layout, place.layout).map_err(|error| timeline.core.error(operation, error))
}

pub(super) fn device_of<'a, B: Backend>(
    operation: &'static str,
    place: Place<'a, B>,
) -> Result<&'a Device<B>> {
    let why = "the memory has no device";
    place
        .memory
        .device()
        .ok_or_else(|| place.memory.core().error(operation, ErrorKind::InvalidArgument { why }))
}

/// Pieces in which a copy is done that somebody watches.
const WATCHED: usize = 16 << 20;

/// The copy as a whole where nobody is watching, or else in pieces.
fn direct_watched<B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    (caller, pair, place): (&Caller, &Pair, Place<'_, B>),
    way: Way,
    watch: Option<Watch<'_>>,
) -> Result<u64> {
    let Some(watch) = watch else { return direct(timeline, operation, caller, pair, place, way) };
    let total = (pair.len * pair.item) as u64;
    let (mut done, mut ticket) = (0, 0);
    in_pieces(pair, WATCHED, &mut |piece| {
        ticket = direct(timeline, operation, caller, piece, place, way)?;
        done += (piece.len * piece.item) as u64;
        match watch(Progress { done, total }) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(timeline.core.error(operation, ErrorKind::Cancelled)),
        }
    })
    .inspect_err(|error| {
        if way == Way::Up && done > 0 {
            note_torn(operation, place, error);
        }
    })?;
    Ok(ticket)
}

/// Shorter runs are slow: as rows of a copy over the link on one side, element by element on a processor on the other.
const SHORT_RUN: usize = 64;
/// Smaller transfers are not worth a kernel of their own.
const WORTH_PACKING: usize = 64 << 10;

/// A packed block on the device with the elements in the caller's order of axes, where a transfer should go through one:
/// the device can walk any layout, either side would move in short runs for want of it, and there is memory for it.
fn packed_twin<B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    device: &Device<B>,
    (place, caller, pair): (Place<'_, B>, &Caller, &Pair),
) -> Option<(Counted<Allocation<B>>, Layout)> {
    let bytes = pair.len * pair.item;
    if pair.run >= SHORT_RUN || bytes < WORTH_PACKING || !packs(timeline, place.memory) {
        return None;
    }
    let layout = caller.layout.like();
    let run = |a: &Layout, b: &Layout| Pair::new(a, b).map_or(0, |pair| pair.run);
    let gains_here = run(&caller.layout, &layout) > pair.run;
    let gains_there = run(place.layout, &place.layout.like()) < SHORT_RUN;
    if !gains_here && !gains_there {
        return None;
    }
    let align = B::capabilities(device.raw()).allocation_alignment;
    let memory = Allocation::new(device, operation, bytes, align).ok()?;
    Some((memory, layout))
}

/// One copy between the caller's memory and the device, waited for.
fn direct<B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    caller: &Caller,
    pair: &Pair,
    place: Place<'_, B>,
    way: Way,
) -> Result<u64> {
    let host = Side::of_caller(timeline, caller.lowest as u64);
    let device = Side::of(timeline, place.memory);
    let extent = place.layout.extent();
    let access = match way {
        Way::Up => Access::write(place.memory, extent),
        Way::Down => Access::read(place.memory, extent),
    };
    // In the pair the caller is the source; for the way down the two sides change places.
    let pair = if way == Way::Up { pair.clone() } else { turned(pair) };
    let (from, to) = if way == Way::Up { (host, device) } else { (device, host) };
    let mut calls = 0;
    let outcome = timeline.submit(operation, &[access], |raw| {
        // SAFETY: the caller's memory is valid during this call, which waits below; the device's memory is alive and
        // ordered by its use log; the two do not overlap, and destination elements do not (checked before).
        unsafe {
            enqueue(timeline, raw, (&pair, &Plan::new(&pair)), from, to, place.memory.cuts(), &mut calls)
        }
    });
    let outcome = outcome.inspect_err(|error| {
        if way == Way::Up && calls > 0 {
            note_torn(operation, place, error);
        }
    });
    let ticket = outcome.as_ref().map_or_else(|_| timeline.last_ticket(), |submitted| submitted.ticket);
    let settled = timeline.settle(ticket);
    if !settled.done {
        abort(operation, settled.result);
    }
    outcome?;
    // Somebody else may have been told of a failure.
    let result = settled.result.and_then(|()| timeline.fault_since(ticket.saturating_sub(1)));
    result.map_err(|error| error.in_operation(operation))?;
    if way == Way::Up {
        note_written(timeline, place);
    }
    Ok(ticket)
}

/// The pair with source and destination exchanged. Strides of the new destination may be negative; the axes are
/// turned so that they are not.
pub(super) fn turned(pair: &Pair) -> Pair {
    let mut result = Pair { src: pair.dst, dst: pair.src, ..pair.clone() };
    for axis in &mut result.axes {
        let Axis { len, src, dst } = *axis;
        *axis = Axis { len, src: dst, dst: src };
        if src < 0 {
            let last = (len - 1) as isize;
            result.dst = result.dst.wrapping_add_signed(src * last);
            result.src = result.src.wrapping_add_signed(dst * last);
            *axis = Axis { len, src: -dst, dst: -src };
        }
    }
    result
}

/// Law 3, the one exception to law 7: memory that a device may still be using must not go back to its owner.
pub(crate) fn abort(operation: &'static str, result: Result<()>) -> ! {
    let reason = result.err().map_or_else(String::new, |error| error.to_string());
    eprintln!(
        "gpumem: {operation}: neither the stream nor the device could be waited for ({reason}); borrowed memory may \
         still be in use, so the process ends here"
    );
    std::process::abort()
}
