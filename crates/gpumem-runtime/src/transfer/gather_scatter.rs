//! Short runs between the caller's memory and a block, by a processor.
//!
//! A run of fewer than 64 bytes is an element or a few. For speed, no call and no loop over axes comes between two
//! runs, and each cache line is fetched once, whatever axis its elements lie along. Bytes between runs are not touched,
//! on either side.

use super::{
    Direction, TUNING,
    store_policy::{StorePolicy, copy_run},
};
use crate::layout::{Axis, CopyNest};
use smallvec::SmallVec;

/// Moves the runs of a part, whose source is the caller's memory at `theirs` and whose destination is a block at
/// `ours`, up into the block or down out of it. Stores to the block leave the caches as `stores` says.
///
/// # Safety
/// Both sides are valid for the part, from their first run on, and share no bytes; the written side for writes, and no
/// other code uses it meanwhile. Runs are shorter than `TUNING.gathered_run`.
pub(super) unsafe fn copy_runs(
    part: &CopyNest,
    theirs: *mut u8,
    ours: *mut u8,
    direction: Direction,
    stores: StorePolicy,
) {
    let nest = Nest::new(part, direction);
    let (from, to) = if direction == Direction::HostToDevice { (theirs, ours) } else { (ours, theirs) };
    let stores = if direction == Direction::HostToDevice { stores } else { StorePolicy::Temporal };
    macro_rules! by_run {
        ($($bytes:literal),*) => {
            match part.run {
                // SAFETY: the caller's promise.
                $($bytes => unsafe { nest.walk(from, to, &Whole::<$bytes>, stores) },)*
                // SAFETY: as above.
                bytes => unsafe { nest.walk(from, to, &Overlapping(bytes), stores) },
            }
        };
    }
    by_run!(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 32);
}

/// How one run is copied.
trait Run {
    fn bytes(&self) -> usize;

    /// # Safety
    /// Both sides are valid for the run and share no bytes.
    unsafe fn copy(&self, from: *const u8, to: *mut u8);
}

/// A length that the compiler knows.
struct Whole<const BYTES: usize>;

impl<const BYTES: usize> Run for Whole<BYTES> {
    #[inline(always)]
    fn bytes(&self) -> usize {
        BYTES
    }

    #[inline(always)]
    unsafe fn copy(&self, from: *const u8, to: *mut u8) {
        // SAFETY: the caller's promise; bytes have no alignment.
        unsafe { to.cast::<[u8; BYTES]>().write(from.cast::<[u8; BYTES]>().read()) };
    }
}

/// 17 to 63 bytes, in pieces of 16 that overlap.
struct Overlapping(usize);

impl Run for Overlapping {
    #[inline(always)]
    fn bytes(&self) -> usize {
        self.0
    }

    #[inline(always)]
    unsafe fn copy(&self, from: *const u8, to: *mut u8) {
        let last = self.0 - 16;
        // SAFETY: the caller's promise; each piece lies within the run.
        let piece = |at: usize| unsafe { Whole::<16>.copy(from.add(at), to.add(at)) };
        piece(0);
        if last > 16 {
            piece(16);
            piece(last - 16);
        }
        piece(last);
    }
}

/// Loops over runs, with the strides of the source (`src`) and of the destination (`dst`).
struct Nest {
    /// Outermost first.
    around: SmallVec<[Axis; 6]>,
    /// The axis along which runs lie side by side in the block.
    along: Axis,
    /// The axis along which they lie closest in the caller's memory, if that is another one.
    across: Option<Axis>,
}

impl Nest {
    /// The part has an axis.
    fn new(part: &CopyNest, direction: Direction) -> Self {
        let oriented = |axis: &Axis| match direction {
            Direction::HostToDevice => *axis,
            Direction::DeviceToHost => Axis { len: axis.len, src: axis.dst, dst: axis.src },
        };
        let unit = Axis { len: 1, src: 0, dst: 0 };
        let (along, rest) = part.axes.split_last().unwrap_or((&unit, &[]));
        // Steps of zero find a line that is there already.
        let near = |axis: &Axis| axis.src.unsigned_abs().wrapping_sub(1);
        let closest = (0..rest.len()).min_by_key(|index| near(&rest[*index]));
        let closest = closest.filter(|index| near(&rest[*index]) < near(along));
        let around = rest.iter().enumerate().filter(|(index, _)| Some(*index) != closest);
        Self {
            around: around.map(|(_, axis)| oriented(axis)).collect(),
            along: oriented(along),
            across: closest.map(|index| oriented(&rest[index])),
        }
    }

    /// # Safety
    /// As for [`copy_runs`], from the side that is read to the one that is written.
    #[inline(always)]
    unsafe fn walk(&self, mut from: *const u8, mut to: *mut u8, run: &impl Run, stores: StorePolicy) {
        let mut step: SmallVec<[usize; 6]> = SmallVec::from_elem(0, self.around.len());
        loop {
            // SAFETY: the caller's promise, for this step of the axes around.
            unsafe {
                match self.across {
                    Some(across) => tiles(self.along, across, from, to, run),
                    None if stores == StorePolicy::Temporal => line(self.along, from, to, run),
                    None => gather(self.along, from, to, run, stores),
                }
            }
            // An odometer over the axes, innermost last.
            let mut axis = self.around.len();
            loop {
                let Some(next) = axis.checked_sub(1) else { return };
                axis = next;
                let Axis { len, src, dst } = self.around[axis];
                step[axis] += 1;
                if step[axis] < len {
                    (from, to) = (from.wrapping_offset(src), to.wrapping_offset(dst));
                    break;
                }
                let back = (len - 1) as isize;
                (from, to) = (from.wrapping_offset(-src * back), to.wrapping_offset(-dst * back));
                step[axis] = 0;
            }
        }
    }
}

/// Runs along one axis.
///
/// # Safety
/// Both sides are valid for them and share no bytes.
#[inline(always)]
unsafe fn line(Axis { len, src, dst }: Axis, from: *const u8, to: *mut u8, run: &impl Run) {
    let bytes = run.bytes() as isize;
    // Every second one, read or written: steps that the compiler knows become shuffles of whole vectors.
    let (src, dst) = match (src == 2 * bytes, src == bytes, dst == bytes) {
        // SAFETY: the caller's promise.
        (true, _, true) => return unsafe { steps(len, 2 * bytes, bytes, from, to, run) },
        // SAFETY: as above.
        (_, _, true) => return unsafe { steps(len, src, bytes, from, to, run) },
        // SAFETY: as above.
        (_, true, _) => return unsafe { steps(len, bytes, dst, from, to, run) },
        _ => (src, dst),
    };
    // SAFETY: as above.
    unsafe { steps(len, src, dst, from, to, run) };
}

/// # Safety
/// As for [`line`].
#[inline(always)]
unsafe fn steps(len: usize, src: isize, dst: isize, from: *const u8, to: *mut u8, run: &impl Run) {
    for index in 0..len as isize {
        // SAFETY: the caller's promise.
        unsafe { run.copy(from.wrapping_offset(index * src), to.wrapping_offset(index * dst)) };
    }
}

/// Runs along one axis that lie side by side where they are written, with stores of a kind.
///
/// # Safety
/// As for [`line`].
#[inline(always)]
unsafe fn gather(axis: Axis, mut from: *const u8, mut to: *mut u8, run: &impl Run, stores: StorePolicy) {
    let mut gathered = [0_u8; TUNING.gathered_bytes];
    let most = TUNING.gathered_bytes / run.bytes();
    let mut left = axis.len;
    while left > 0 {
        let len = left.min(most);
        let bytes = len * run.bytes();
        // SAFETY: the caller promises valid sides, also for this part of the axis; the buffer has room for the runs.
        unsafe {
            line(Axis { len, src: axis.src, dst: run.bytes() as isize }, from, gathered.as_mut_ptr(), run);
            copy_run(gathered.as_ptr(), to, bytes, stores);
        }
        from = from.wrapping_offset(axis.src * len as isize);
        to = to.wrapping_add(bytes);
        left -= len;
    }
}

/// Runs along two axes, tile by tile, so that the lines of both sides stay in the first-level cache.
///
/// # Safety
/// As for [`line`].
#[inline(always)]
unsafe fn tiles(along: Axis, across: Axis, from: *const u8, to: *mut u8, run: &impl Run) {
    let at = |axis: Axis, index: usize| (axis.src * index as isize, axis.dst * index as isize);
    for first in (0..across.len).step_by(TUNING.tile) {
        for column in (0..along.len).step_by(TUNING.tile) {
            let part = Axis { len: TUNING.tile.min(along.len - column), ..along };
            for row in first..(first + TUNING.tile).min(across.len) {
                let ((src, dst), (more_src, more_dst)) = (at(across, row), at(along, column));
                // SAFETY: the caller's promise, for a row of the tile.
                unsafe {
                    let (from, to) =
                        (from.wrapping_offset(src + more_src), to.wrapping_offset(dst + more_dst));
                    steps(part.len, part.src, part.dst, from, to, run);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [(Direction, StorePolicy); 4] = [
        (Direction::HostToDevice, StorePolicy::Temporal),
        (Direction::HostToDevice, StorePolicy::NonTemporal),
        (Direction::HostToDevice, StorePolicy::Demote),
        (Direction::DeviceToHost, StorePolicy::Temporal),
    ];

    /// Offsets of the first byte of every run on both sides, in the order of the block.
    fn offsets(part: &CopyNest) -> Vec<(isize, isize)> {
        let mut all = vec![(0, 0)];
        for axis in &part.axes {
            let steps = |(src, dst): (isize, isize)| {
                (0..axis.len as isize).map(move |step| (src + step * axis.src, dst + step * axis.dst))
            };
            all = all.into_iter().flat_map(steps).collect();
        }
        all
    }

    fn check(part: &CopyNest, direction: Direction, stores: StorePolicy) {
        let all = offsets(part);
        let base = all.iter().map(|(theirs, _)| *theirs).min().unwrap_or(0);
        let highest = all.iter().map(|(theirs, _)| *theirs).max().unwrap_or(0);
        // Guards around both sides, and an address that is aligned to nothing.
        let first = (7 - base) as usize;
        let mut theirs: Vec<u8> = (0..first as isize + highest + part.run as isize + 9)
            .map(|at| (at * 7 + at / 256) as u8)
            .collect();
        let mut ours: Vec<u8> =
            (0..all.len() * part.run + 24).map(|at| (at * 11 + at / 256 + 1) as u8).collect();
        let (mut their_bytes, mut our_bytes) = (theirs.clone(), ours.clone());
        for (their, our) in all {
            let (their, our) = ((first as isize + their) as usize, our as usize + 3);
            match direction {
                Direction::HostToDevice => {
                    our_bytes[our..our + part.run].copy_from_slice(&theirs[their..their + part.run])
                }
                Direction::DeviceToHost => {
                    their_bytes[their..their + part.run].copy_from_slice(&ours[our..our + part.run])
                }
            }
        }
        // SAFETY: both blocks have room for every run of the part, and are two.
        unsafe {
            copy_runs(part, theirs.as_mut_ptr().add(first), ours.as_mut_ptr().add(3), direction, stores);
        }
        assert!(theirs == their_bytes, "the caller's side of {part:?}, {direction:?}");
        assert!(ours == our_bytes, "the block of {part:?}, {direction:?}");
    }

    /// A part with these axes, outermost first, of lengths and of strides in runs of the caller; packed in the block.
    fn part(run: usize, axes: &[(usize, isize)]) -> CopyNest {
        let (mut stride, mut found) = (run as isize, SmallVec::new());
        for &(len, src) in axes.iter().rev() {
            found.insert(0, Axis { len, src: src * run as isize, dst: stride });
            stride *= len as isize;
        }
        let len = axes.iter().map(|(len, _)| len).product();
        CopyNest { axes: found, src: 0, dst: 0, run, item: run, len }
    }

    #[test]
    fn runs_of_every_length_are_copied_both_ways_without_other_writes() {
        // Miri takes seconds for a kilobyte.
        let (few, sizes) = if cfg!(miri) { (21, 3) } else { (1, 5) };
        for run in (1..TUNING.gathered_run).step_by(few) {
            let shapes = [
                &[(9, 2)][..],
                &[(9, -3)],
                &[(5, 20), (4, 3)],
                // Contiguous along the other axis.
                &[(5, 1), (6, 7)],
                &[(3, -1), (2, 190), (40, 4)],
            ];
            for axes in shapes.into_iter().take(sizes) {
                for (direction, stores) in KINDS {
                    check(&part(run, axes), direction, stores);
                }
            }
            // Repeated elements have no way down.
            check(&part(run, &[(4, 0), (3, 2)]), Direction::HostToDevice, StorePolicy::NonTemporal);
            check(&part(run, &[(4, 5), (3, 0)]), Direction::HostToDevice, StorePolicy::Temporal);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "minutes of looking at bytes")]
    fn long_axes_are_cut_at_the_limit() {
        for run in [1, 4, 12, 16, 33] {
            for (direction, stores) in KINDS {
                check(&part(run, &[(2 * TUNING.gathered_bytes / run + 5, 2)]), direction, stores);
                check(
                    &part(
                        run,
                        &[(2 * TUNING.tile + 3, 1), (3 * TUNING.tile - 1, 2 * TUNING.tile as isize + 3)],
                    ),
                    direction,
                    stores,
                );
            }
        }
    }
}
