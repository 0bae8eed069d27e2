//! From a strided copy to the work of the kernels.

use super::work::{PackLaunch, StridedKernel, TURN_RANK, TransposeKernel, WALK_RANK, tile};
use gpumem_core::StridedCopy;
use smallvec::SmallVec;

/// Shorter axes are not worth a tile.
const SHORTEST: usize = 8;

/// An axis: its length and the two strides in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Axis {
    len: usize,
    from: i64,
    to: i64,
}

/// A copy in units of 1, 2, 4, 8 or 16 bytes, for one kernel; axes that are too many for it are loops around.
#[derive(Debug)]
pub struct Lowered {
    unit: usize,
    crosses_link: bool,
    work: PackLaunch,
    around: SmallVec<[Axis; 2]>,
}

impl Lowered {
    /// Lowers a copy; `None` for one without elements. Made in O(axes²), whatever the number of elements.
    pub fn new(copy: &StridedCopy) -> Option<Self> {
        if copy.item == 0 || copy.axes.iter().any(|(len, ..)| *len == 0) {
            return None;
        }
        let (mut from, mut to) = (copy.source.0, copy.destination.0);
        let mut axes: SmallVec<[Axis; 8]> = SmallVec::new();
        for &(len, source, destination) in copy.axes.iter().filter(|(len, ..)| *len > 1) {
            let mut axis = Axis { len, from: source as i64, to: destination as i64 };
            if axis.to < 0 {
                let last = (len - 1) as i64;
                from = from.wrapping_add_signed(axis.from * last);
                to = to.wrapping_add_signed(axis.to * last);
                (axis.from, axis.to) = (-axis.from, -axis.to);
            }
            axes.push(axis);
        }
        axes.sort_by_key(|axis| std::cmp::Reverse((axis.to, axis.from.unsigned_abs())));
        let mut axes = merged(&axes);
        let mut item = copy.item;
        while let Some(axis) = axes.last().copied()
            && axis.from == item as i64
            && axis.to == item as i64
        {
            item *= axis.len;
            axes.pop();
        }
        let strides = axes.iter().flat_map(|axis| [axis.from.unsigned_abs(), axis.to.unsigned_abs()]);
        let all = strides.fold(from | to | item as u64 | 16, |bits, stride| bits | stride);
        let unit = 1usize << all.trailing_zeros();
        if item > unit {
            axes.push(Axis { len: item / unit, from: unit as i64, to: unit as i64 });
        }
        let around = take_around(&mut axes, WALK_RANK);
        let (work, around) = match turn(from, to, unit, &axes) {
            Some(turn) if around.is_empty() => (PackLaunch::TransposeKernel(turn), around),
            _ => (PackLaunch::StridedKernel(walk(from, to, &axes)), around),
        };
        Some(Self { unit, crosses_link: copy.crosses_link(), work, around })
    }

    /// Bytes of a unit: 1, 2, 4, 8 or 16. Every address and stride is a multiple of it.
    pub fn unit(&self) -> usize {
        self.unit
    }

    /// Groups to launch along x for a work of this copy; there is one along y and z.
    pub fn groups(&self, work: &PackLaunch) -> u32 {
        work.groups(self.crosses_link)
    }

    #[cfg(test)]
    pub(super) fn work(&self) -> &PackLaunch {
        &self.work
    }

    /// Calls `launch` with the work of each launch, until one fails. More than one only for copies of more axes than a
    /// kernel takes.
    ///
    /// # Errors
    /// Returns the first error of `launch`.
    pub fn each<E>(&self, mut launch: impl FnMut(&PackLaunch) -> Result<(), E>) -> Result<(), E> {
        let count: usize = self.around.iter().map(|axis| axis.len).product();
        for index in 0..count {
            let (mut rest, mut from, mut to) = (index, 0i64, 0i64);
            for axis in self.around.iter().rev() {
                let at = (rest % axis.len) as i64;
                rest /= axis.len;
                (from, to) = (from + at * axis.from, to + at * axis.to);
            }
            launch(&match self.work {
                PackLaunch::StridedKernel(walk) => PackLaunch::StridedKernel(StridedKernel {
                    from: walk.from.wrapping_add_signed(from),
                    to: walk.to.wrapping_add_signed(to),
                    ..walk
                }),
                PackLaunch::TransposeKernel(turn) => PackLaunch::TransposeKernel(TransposeKernel {
                    from: turn.from.wrapping_add_signed(from),
                    to: turn.to.wrapping_add_signed(to),
                    ..turn
                }),
            })?;
        }
        Ok(())
    }
}

/// Joins neighbours that are one axis on both sides.
fn merged(axes: &[Axis]) -> SmallVec<[Axis; 8]> {
    let mut merged: SmallVec<[Axis; 8]> = SmallVec::new();
    for &inner in axes {
        let continues = |outer: i64, step: i64| step.checked_mul(inner.len as i64) == Some(outer);
        match merged.last_mut() {
            Some(outer) if continues(outer.from, inner.from) && continues(outer.to, inner.to) => {
                *outer = Axis { len: outer.len * inner.len, ..inner };
            }
            _ => merged.push(inner),
        }
    }
    merged
}

/// Takes the shortest axes out until no more than `most` are left.
fn take_around(axes: &mut SmallVec<[Axis; 8]>, most: usize) -> SmallVec<[Axis; 2]> {
    let mut around = SmallVec::new();
    while axes.len() > most {
        let shortest = axes.iter().enumerate().min_by_key(|(_, axis)| axis.len).map_or(0, |(index, _)| index);
        around.push(axes.remove(shortest));
    }
    around
}

fn walk(from: u64, to: u64, axes: &[Axis]) -> StridedKernel {
    let mut walk = StridedKernel { from, to, rank: axes.len() as u64, ..StridedKernel::default() };
    walk.total = axes.iter().map(|axis| axis.len as u64).product();
    for (index, axis) in axes.iter().enumerate() {
        walk.length[index] = axis.len as i64;
        walk.from_stride[index] = axis.from;
        walk.to_stride[index] = axis.to;
    }
    walk
}

/// The copy as a transpose, if the two sides are contiguous along different axes that are long enough for tiles.
fn turn(from: u64, to: u64, unit: usize, axes: &[Axis]) -> Option<TransposeKernel> {
    let (along, rest) = axes.split_last()?;
    let near = |axis: &Axis| axis.from.unsigned_abs();
    let (at, across) =
        rest.iter().enumerate().filter(|(_, axis)| axis.from != 0).min_by_key(|(_, axis)| near(axis))?;
    // Neighbours of one side far apart on the other, by more than what a cache line makes up for.
    let worth = along.to == unit as i64
        && near(across) <= 2 * unit as u64
        && near(along) > 4 * near(across)
        && along.len >= SHORTEST
        && across.len >= SHORTEST
        && axes.len() - 2 <= TURN_RANK;
    if !worth {
        return None;
    }
    let (tiles_to, tiles_from) = (along.len.div_ceil(tile(unit)), across.len.div_ceil(tile(unit)));
    let mut turn = TransposeKernel {
        from,
        to,
        rank: axes.len() as u64 - 2,
        length_to: along.len as i64,
        length_from: across.len as i64,
        tiles_to: tiles_to as i64,
        tiles_from: tiles_from as i64,
        from_stride_to: along.from,
        to_stride_to: along.to,
        from_stride_from: across.from,
        to_stride_from: across.to,
        ..TransposeKernel::default()
    };
    let mut tiles = (tiles_to * tiles_from) as u64;
    let outer = rest.iter().enumerate().filter(|(index, _)| *index != at);
    for (index, (_, axis)) in outer.enumerate() {
        turn.length[index] = axis.len as i64;
        turn.from_stride[index] = axis.from;
        turn.to_stride[index] = axis.to;
        tiles *= axis.len as u64;
    }
    turn.tiles = tiles;
    Some(turn)
}
