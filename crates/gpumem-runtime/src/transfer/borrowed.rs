//! Transfers from and to memory of the caller (law 3).
//!
//! The caller's memory is touched only by us, on threads that are inside the caller's call or scope. Where a backend
//! copies ordinary memory directly and at full speed, the copy reads or writes it and the call waits; everywhere else
//! the elements go through page-locked blocks, and it is only those that the device ever sees.

use super::{
    memory::{Place, enqueue},
    plan::{Plan, pieces},
};
use crate::{
    Device, completion,
    host::{view_at, view_mut_at},
    layout::{Axis, Layout, Pair},
    memory::Staging,
    order::{Access, Timeline},
};
use gpumem_core::{Backend, Element, Error, ErrorKind, HostAccess, Result, Space};
use ndarray::{ArrayViewD, ArrayViewMutD};
use smallvec::SmallVec;
use std::sync::Arc;

/// Bytes of a staging block. 4 MiB keeps the copy engine busy while the next block is filled.
const BLOCK: usize = 4 << 20;

/// When an upload returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Upload {
    /// When the elements are in the destination.
    Blocking,
    /// When the elements have left the source: they are in the destination in stream order.
    Staged,
}

/// Which way the elements go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}

/// The caller's memory: the address of its lowest element, and its layout from there.
struct Caller {
    lowest: *mut u8,
    layout: Layout,
}

impl Caller {
    fn new<T>(
        operation: &'static str,
        backend: &'static str,
        first: *mut T,
        shape: &[usize],
        strides: &[isize],
    ) -> Result<Self> {
        let layout = Layout::of_ndarray(shape, strides, size_of::<T>())
            .map_err(|error| Error::new(backend, operation, error))?;
        Ok(Self { lowest: first.cast::<u8>().wrapping_sub(layout.offset()), layout })
    }
}

/// Copies an array of the caller into memory of the library. Returns the ticket of the last copy, 0 for none.
pub(crate) fn upload<T: Element, B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    source: ArrayViewD<'_, T>,
    destination: Place<'_, B>,
    upload: Upload,
) -> Result<u64> {
    let caller =
        Caller::new(operation, B::NAME, source.as_ptr().cast_mut(), source.shape(), source.strides())?;
    let pair = pair_of::<B>(timeline, operation, &caller, destination, "source", upload == Upload::Blocking)?;
    if pair.len == 0 || pair.item == 0 {
        return Ok(0);
    }
    if upload == Upload::Blocking && B::capabilities(&timeline.core.raw).pageable_direct {
        return direct(timeline, operation, &caller, &pair, destination, Way::Up);
    }
    let device = device_of(timeline, operation, destination)?;
    let mut ticket = 0;
    pieces(&pair, BLOCK, &mut |piece| {
        let staged = Staged::new(&device, operation, piece)?;
        // SAFETY: the caller's view is valid for reads during this call, the block is ours and idle and large enough,
        // and the piece stays within both.
        unsafe { staged.exchange::<T>(operation, piece, &caller, Way::Up)? };
        ticket = staged.copy(timeline, operation, piece, destination, Way::Up)?;
        Ok(())
    })?;
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
) -> Result<()> {
    let first = destination.as_mut_ptr();
    let caller = Caller::new(operation, B::NAME, first, destination.shape(), destination.strides())?;
    let pair = pair_of::<B>(timeline, operation, &caller, source, "destination", true)?;
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
        direct(timeline, operation, &caller, &pair, source, Way::Down)?;
        return judge();
    }
    let device = device_of(timeline, operation, source)?;
    // While one block is emptied, the copy engine fills the next.
    let mut filling: Option<(Staged<B>, Pair, u64)> = None;
    let empty = |(staged, piece, ticket): (Staged<B>, Pair, u64)| -> Result<()> {
        let settled = timeline.settle(ticket);
        if !settled.done {
            // The device may still write into the block: it must never be used again.
            std::mem::forget(staged);
        } else if settled.result.is_ok() {
            judge()?;
            // SAFETY: the caller's view is valid for writes during this call; the copy into the block is done.
            unsafe { staged.exchange::<T>(operation, &piece, &caller, Way::Down)? };
        }
        settled.result.map_err(|error| error.in_operation(operation))
    };
    pieces(&pair, BLOCK, &mut |piece| {
        let staged = Staged::new(&device, operation, piece)?;
        let ticket = staged.copy(timeline, operation, piece, source, Way::Down)?;
        match filling.replace((staged, piece.clone(), ticket)) {
            Some(full) => empty(full),
            None => Ok(()),
        }
    })?;
    filling.map_or(Ok(()), empty)
}

/// Enqueues a copy into an array of the caller that lands when the stream is waited for, at the latest at the end of
/// the scope.
///
/// # Safety
/// The destination is valid for writes, and used by nobody else, until the landings of `scope` are run or leaked.
pub(crate) unsafe fn download_in_scope<T: Element, B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    scope: u64,
    source: Place<'_, B>,
    mut destination: ArrayViewMutD<'_, T>,
) -> Result<()> {
    let first = destination.as_mut_ptr();
    let caller = Caller::new(operation, B::NAME, first, destination.shape(), destination.strides())?;
    let pair = pair_of::<B>(timeline, operation, &caller, source, "destination", false)?;
    if pair.len == 0 || pair.item == 0 {
        return Ok(());
    }
    let device = device_of(timeline, operation, source)?;
    let staged = Staged::new(&device, operation, &pair)?;
    let ticket = staged.copy(timeline, operation, &pair, source, Way::Down)?;
    let caller = Sendable(caller);
    timeline.landings.add(
        scope,
        ticket,
        Box::new(move || {
            let caller = { caller };
            // SAFETY: the caller of this function keeps the destination until now; the copy into the block is done.
            let landed = unsafe { staged.exchange::<T>(operation, &pair, &caller.0, Way::Down) };
            if let Err(error) = landed {
                staged.staging.memory().core().errors.push(error);
            }
        }),
    );
    Ok(())
}

/// Memory of the caller that another thread of the caller's may write for it while the scope lasts.
struct Sendable(Caller);

// SAFETY: the elements are `Send` (every `Element` is), and the scope keeps the borrow for as long as this exists.
unsafe impl Send for Sendable {}

/// The pair of caller and device as seen from the device: its strides are positive and decide the order.
fn pair_of<B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    caller: &Caller,
    place: Place<'_, B>,
    what: &'static str,
    blocks: bool,
) -> Result<Pair> {
    if blocks {
        completion::may_block::<B>(operation)?;
    }
    timeline.check(operation)?;
    place.memory.check(operation)?;
    timeline.check_owns(operation, place.memory)?;
    if what == "destination" && caller.layout.has_self_overlap() {
        let error = gpumem_core::LayoutError::SelfOverlap {
            shape: caller.layout.shape().to_vec(),
            strides: caller.layout.strides().to_vec(),
        };
        return Err(Error::new(B::NAME, operation, error));
    }
    Pair::new(&caller.layout, place.layout).map_err(|error| Error::new(B::NAME, operation, error))
}

fn device_of<B: Backend>(
    timeline: &Arc<Timeline<B>>,
    operation: &'static str,
    place: Place<'_, B>,
) -> Result<Device<B>> {
    match place.memory.device() {
        Some(device) => Ok(device.clone()),
        None => {
            let _ = timeline;
            Err(Error::new(
                B::NAME,
                operation,
                ErrorKind::InvalidArgument { why: "the memory has no device" },
            ))
        }
    }
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
    let host = (caller.lowest as u64, Space::Host);
    let device = place.memory.endpoint();
    let extent = place.layout.extent();
    let access = match way {
        Way::Up => Access::write(place.memory, extent),
        Way::Down => Access::read(place.memory, extent),
    };
    // In the pair the caller is the source; for the way down the two sides change places.
    let pair = if way == Way::Up { pair.clone() } else { turned(pair) };
    let (from, to) = if way == Way::Up { (host, device) } else { (device, host) };
    let outcome = timeline.submit(operation, &[access], |raw| {
        // SAFETY: the caller's memory is valid during this call, which waits below; the device's memory is alive and
        // ordered by its use log; the two do not overlap, and destination elements do not (checked before).
        unsafe { enqueue(timeline, raw, (&pair, &Plan::new(&pair)), from, to, place.memory.cuts()) }
    });
    let ticket = outcome.as_ref().map_or_else(|_| timeline.last_ticket(), |submitted| submitted.ticket);
    let settled = timeline.settle(ticket);
    if !settled.done {
        abort(operation, settled.result);
    }
    outcome?;
    settled.result.map_err(|error| error.in_operation(operation))?;
    Ok(ticket)
}

/// The pair with source and destination exchanged. Strides of the new destination may be negative; the axes are
/// turned so that they are not.
fn turned(pair: &Pair) -> Pair {
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

/// A staging block that holds a piece of a transfer, its elements side by side in the order of the piece.
struct Staged<B: Backend> {
    staging: Staging<B>,
    layout: Layout,
    /// The axes of the piece with the strides that they have in the block.
    axes: SmallVec<[Axis; 6]>,
}

impl<B: Backend> Staged<B> {
    fn new(device: &Device<B>, operation: &'static str, piece: &Pair) -> Result<Self> {
        let bytes = piece.len * piece.item;
        let layout = Layout::packed(&[bytes], 1, crate::layout::Order::C)
            .map_err(|error| Error::new(B::NAME, operation, error))?;
        let staging = Staging::take(device, operation, bytes)?;
        let mut stride = piece.run as isize;
        let mut axes = piece.axes.clone();
        for axis in axes.iter_mut().rev() {
            axis.src = stride;
            stride *= axis.len as isize;
        }
        Ok(Self { staging, layout, axes })
    }

    /// Moves the piece between the caller's memory and the block, on this thread.
    ///
    /// # Safety
    /// The caller's memory is valid for the piece, for writes on the way down; no copy is using the block.
    unsafe fn exchange<T: Element>(
        &self,
        operation: &'static str,
        piece: &Pair,
        caller: &Caller,
        way: Way,
    ) -> Result<()> {
        let memory = self.staging.memory();
        let access = if way == Way::Up { HostAccess::Write } else { HostAccess::Read };
        memory.wait_for_host(operation, &self.layout.extent(), access)?;
        let Some(block) = memory.host() else {
            return Err(Error::new(
                B::NAME,
                operation,
                ErrorKind::Unsupported { what: "pinned memory that the host sees" },
            ));
        };
        let count = piece.run / piece.item;
        let lengths: SmallVec<[usize; 7]> = piece.axes.iter().map(|axis| axis.len).chain([count]).collect();
        let strides = |axes: &[Axis]| -> SmallVec<[isize; 7]> {
            axes.iter().map(|axis| axis.src).chain([piece.item as isize]).collect()
        };
        let (their_strides, our_strides) = (strides(&piece.axes), strides(&self.axes));
        let theirs = caller.lowest.wrapping_add(piece.src);
        let ours = block.as_ptr();
        // SAFETY: the pointers and strides describe exactly the piece, in the caller's memory and in the block, which
        // is aligned for every element; both are valid by this function's contract and share no bytes.
        unsafe {
            match way {
                Way::Up => view_mut_at::<T>(ours, &lengths, &our_strides).assign(&view_at::<T>(
                    theirs.cast_const(),
                    &lengths,
                    &their_strides,
                )),
                Way::Down => view_mut_at::<T>(theirs, &lengths, &their_strides).assign(&view_at::<T>(
                    ours.cast_const(),
                    &lengths,
                    &our_strides,
                )),
            }
        }
        Ok(())
    }

    /// Enqueues the copy between the block and the device.
    fn copy(
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
        let (host, device) = (memory.endpoint(), place.memory.endpoint());
        let (whole, extent) = (self.layout.extent(), place.layout.extent());
        let (from, to, accesses) = match way {
            Way::Up => (host, device, [Access::read(memory, whole), Access::write(place.memory, extent)]),
            Way::Down => (device, host, [Access::read(place.memory, extent), Access::write(memory, whole)]),
        };
        let submitted = timeline.submit(operation, &accesses, |raw| {
            // SAFETY: the block and the device's memory are alive and ordered by their use logs; they share no bytes,
            // and destination elements do not overlap.
            unsafe { enqueue(timeline, raw, (&pair, &Plan::new(&pair)), from, to, place.memory.cuts()) }
        })?;
        Ok(submitted.ticket)
    }
}
