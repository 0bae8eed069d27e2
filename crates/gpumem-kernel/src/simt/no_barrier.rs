//! Bodies without barriers: a plain loop.

use crate::simt::{
    Fault, Inside, Parameters, WorkItemIds, fault,
    group::{Group, Unwound},
    group_batch::Batch,
    ids::GroupIds,
};
use gpumem_core::LaunchConfig;
use std::{cell::Cell, ops::Range};

/// Runs some groups of a launch on this thread.
/// Returns the first fault; the work-items after it have not run.
pub(crate) fn run<P: Parameters, F: Fn(&WorkItemIds<'_>, &P)>(
    group: &Group<'_>,
    dims: &LaunchConfig,
    numbers: &mut Batch,
    arguments: &P,
    body: &F,
) -> Result<(), Fault> {
    let at = Cell::new(0);
    let outcome = fault::catch(|| match group.checker {
        Some(_) => checked_groups(group, dims, numbers, arguments, body, &at),
        None => {
            let mut inside = Inside::all();
            arguments.narrow(&mut inside);
            // SAFETY: there is no check mode, and all arguments have left those work-items.
            unsafe { fast_groups(group, dims, numbers, &inside, arguments, body, &at) }
        }
    });
    outcome.unwrap_or_else(|kind| Err(group.fault_of(at.get(), kind)))
}

/// Work-items that differ in x only.
struct Row<'a> {
    ids: &'a GroupIds,
    /// The global id of the first.
    first: usize,
    /// The local ids along y and z.
    place: [u32; 2],
    /// The number of the first in its group.
    linear: u32,
}

/// The rows of a group, y before z. Loops, because an iterator over both axes takes as long as a short row.
#[inline(always)]
fn each_row(
    ids: &GroupIds,
    dims: &LaunchConfig,
    mut run: impl FnMut(&Row<'_>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let [width, height, depth] = dims.group_size;
    let first = ids.first_x();
    let mut linear = 0;
    for z in 0..depth {
        for y in 0..height {
            run(&Row { ids, first, place: [y, z], linear })?;
            linear += width;
        }
    }
    Ok(())
}

#[inline(always)]
fn run_row<P, F: Fn(&WorkItemIds<'_>, &P)>(
    group: &Group<'_>,
    row: &Row<'_>,
    range: Range<usize>,
    arguments: &P,
    body: &F,
    at: &Cell<u32>,
    before: impl Fn(u32, usize),
) -> Result<(), Fault> {
    for global in range {
        let x = (global - row.first) as u32;
        before(row.linear + x, global);
        let ids = WorkItemIds::new(row.ids, global, [x, row.place[0], row.place[1]]);
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

/// The loop that the compiler can vectorise: it may assume that work-items stand inside all arguments, and that nothing is
/// checked. One function for all groups, because a call for each row takes as long as a tenth
/// of a short row; not part of its caller, so that the arguments alias nothing that the body writes.
///
/// # Safety
/// As for [`Parameters::assume`] with every work-item of `inside`.
#[inline(never)]
unsafe fn fast_groups<P: Parameters, F: Fn(&WorkItemIds<'_>, &P)>(
    group: &Group<'_>,
    dims: &LaunchConfig,
    numbers: &mut Batch,
    inside: &Inside,
    arguments: &P,
    body: &F,
    at: &Cell<u32>,
) -> Result<(), Fault> {
    for number in numbers {
        // A private copy: its ids are no memory that the body could write.
        let ids = GroupIds::new(group.go_to(number), dims.group_size, dims.groups);
        each_row(&ids, dims, |row| {
            let end = row.first + dims.group_size[0] as usize;
            let first = WorkItemIds::new(row.ids, row.first, [0, row.place[0], row.place[1]]);
            let (y, z) = (first.global_id(1), first.global_id(2));
            let [from, to] = match inside.has(1, y) && inside.has(2, z) {
                true => inside.along_x(row.first, end),
                false => [row.first; 2],
            };
            let plain = |range: Range<usize>| match range.is_empty() {
                true => Ok(()),
                false => plain_row(group, &Row { ids: &group.ids, ..*row }, range, arguments, body, at),
            };
            plain(row.first..from)?;
            // SAFETY: the work-item is in `inside`: the caller's promise.
            let assume = |_, x| unsafe { arguments.assume([x, y, z]) };
            run_row(group, row, from..to, arguments, body, at, assume)?;
            plain(to..end)
        })?;
    }
    Ok(())
}

#[inline(never)]
fn plain_row<P, F: Fn(&WorkItemIds<'_>, &P)>(
    group: &Group<'_>,
    row: &Row<'_>,
    range: Range<usize>,
    arguments: &P,
    body: &F,
    at: &Cell<u32>,
) -> Result<(), Fault> {
    run_row(group, row, range, arguments, body, at, |_, _| {})
}

#[inline(never)]
fn checked_groups<P, F: Fn(&WorkItemIds<'_>, &P)>(
    group: &Group<'_>,
    dims: &LaunchConfig,
    numbers: &mut Batch,
    arguments: &P,
    body: &F,
    at: &Cell<u32>,
) -> Result<(), Fault> {
    for number in numbers {
        group.begin(number);
        each_row(&group.ids, dims, |row| {
            let range = row.first..row.first + dims.group_size[0] as usize;
            run_row(group, row, range, arguments, body, at, |linear, _| group.enter(linear))
        })?;
    }
    Ok(())
}
