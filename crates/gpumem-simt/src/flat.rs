//! Bodies without barriers: a plain loop.

use crate::{
    Fault, Ids, Parameters, fault,
    group::{Group, Unwound},
};
use gpumem_core::LaunchDims;
use std::{
    cell::Cell,
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// Runs some groups of a launch on this thread.
///
/// # Errors
/// The first fault; the work-items behind it have not run.
pub(crate) fn run<P: Parameters, F: Fn(&Ids<'_>, &P)>(
    group: &Group<'_>,
    dims: &LaunchDims,
    mut numbers: Range<u64>,
    arguments: &P,
    body: &F,
) -> Result<(), Fault> {
    fault::take();
    let at = Cell::new(0);
    let packed = arguments.packed_len().unwrap_or(usize::MAX);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        numbers.try_for_each(|number| {
            group.begin(number);
            run_group(group, dims, arguments, packed, body, &at)
        })
    }));
    outcome.unwrap_or_else(|payload| Err(group.fault_of(at.get(), fault::caught(payload))))
}

#[inline(always)]
fn run_group<P: Parameters, F: Fn(&Ids<'_>, &P)>(
    group: &Group<'_>,
    dims: &LaunchDims,
    arguments: &P,
    packed: usize,
    body: &F,
    at: &Cell<u32>,
) -> Result<(), Fault> {
    let [width, height, depth] = dims.group_size;
    let first = group.ids.group.get()[0] as usize * width as usize;
    let end = first + width as usize;
    let packed = packed.clamp(first, end);
    for z in 0..depth {
        for y in 0..height {
            let row = Row { first, place: [y, z], linear: (z * height + y) * width };
            if group.checker.is_some() {
                checked_row(group, &row, first..end, arguments, body, at)?;
                continue;
            }
            // SAFETY: there is no check mode, and every packed array has `packed` elements, or none are there.
            unsafe { fast_row(group, &row, first..packed, arguments, body, at)? };
            if packed < end {
                plain_row(group, &row, packed..end, arguments, body, at)?;
            }
        }
    }
    Ok(())
}

/// Work-items that differ in x only.
struct Row {
    /// The global id of the first.
    first: usize,
    /// The local ids along y and z.
    place: [u32; 2],
    /// The number of the first in its group.
    linear: u32,
}

#[inline(always)]
fn run_row<P, F: Fn(&Ids<'_>, &P)>(
    group: &Group<'_>,
    row: &Row,
    range: Range<usize>,
    arguments: &P,
    body: &F,
    at: &Cell<u32>,
    before: impl Fn(u32, usize),
) -> Result<(), Fault> {
    for global in range {
        let x = (global - row.first) as u32;
        before(row.linear + x, global);
        let ids = Ids::new(&group.ids, global, [x, row.place[0], row.place[1]]);
        let unwound = Unwound { at, number: row.linear + x };
        body(&ids, arguments);
        std::mem::forget(unwound);
        if !cfg!(panic = "unwind")
            && let Some(kind) = fault::take()
        {
            return Err(group.fault_of(row.linear + x, kind));
        }
    }
    Ok(())
}

/// The loop that the compiler can vectorise: it is told that no index up to the end of the range is outside a packed
/// array, and that nothing is checked. A function of its own, so that the arguments alias nothing that the body writes.
///
/// # Safety
/// As for [`Parameters::assume`] with every index of the range.
#[inline(never)]
unsafe fn fast_row<P: Parameters, F: Fn(&Ids<'_>, &P)>(
    group: &Group<'_>,
    row: &Row,
    range: Range<usize>,
    arguments: &P,
    body: &F,
    at: &Cell<u32>,
) -> Result<(), Fault> {
    // SAFETY: the index is below the end of the range: the caller's promise.
    run_row(group, row, range, arguments, body, at, |_, index| unsafe { arguments.assume(index) })
}

#[inline(never)]
fn plain_row<P, F: Fn(&Ids<'_>, &P)>(
    group: &Group<'_>,
    row: &Row,
    range: Range<usize>,
    arguments: &P,
    body: &F,
    at: &Cell<u32>,
) -> Result<(), Fault> {
    run_row(group, row, range, arguments, body, at, |_, _| {})
}

#[inline(never)]
fn checked_row<P, F: Fn(&Ids<'_>, &P)>(
    group: &Group<'_>,
    row: &Row,
    range: Range<usize>,
    arguments: &P,
    body: &F,
    at: &Cell<u32>,
) -> Result<(), Fault> {
    run_row(group, row, range, arguments, body, at, |linear, _| group.enter(linear))
}
