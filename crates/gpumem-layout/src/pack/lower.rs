//! From a strided copy to the work of the kernels.

use super::work::{PackLaunch, StridedKernel, TURN_RANK, TransposeKernel, WALK_RANK, tile};
use gpumem_core::{Axis, StridedCopy, fewest_axes};
use smallvec::SmallVec;

/// Shorter axes are not worth a tile.
const SHORTEST: usize = 8;

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
        let mut axes: SmallVec<[Axis; 8]> =
            copy.axes.iter().map(|&(len, src, dst)| Axis { len, src, dst }).collect();
        let mut item = copy.item;
        let (kept, begin) = fewest_axes(&mut item, &mut axes);
        axes.truncate(kept);
        let from = copy.source.0.wrapping_add_signed(begin[0] as i64);
        let to = copy.destination.0.wrapping_add_signed(begin[1] as i64);
        let strides = axes.iter().fold(0, |bits, axis| bits | axis.src | axis.dst);
        let all = from | to | item as u64 | 16 | strides as u64;
        let unit = 1usize << all.trailing_zeros();
        if item > unit {
            axes.push(Axis { len: item / unit, src: unit as isize, dst: unit as isize });
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
                (from, to) = (from + at * axis.src as i64, to + at * axis.dst as i64);
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
        walk.from_stride[index] = axis.src as i64;
        walk.to_stride[index] = axis.dst as i64;
    }
    walk
}

/// The copy as a transpose, if the two sides are contiguous along different axes that are long enough for tiles.
fn turn(from: u64, to: u64, unit: usize, axes: &[Axis]) -> Option<TransposeKernel> {
    let (along, rest) = axes.split_last()?;
    let near = |axis: &Axis| axis.src.unsigned_abs();
    let (at, across) =
        rest.iter().enumerate().filter(|(_, axis)| axis.src != 0).min_by_key(|(_, axis)| near(axis))?;
    // Neighbours of one side far apart on the other, by more than what a cache line makes up for.
    let worth = along.dst == unit as isize
        && near(across) <= 2 * unit
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
        from_stride_to: along.src as i64,
        to_stride_to: along.dst as i64,
        from_stride_from: across.src as i64,
        to_stride_from: across.dst as i64,
        ..TransposeKernel::default()
    };
    let mut tiles = (tiles_to * tiles_from) as u64;
    let outer = rest.iter().enumerate().filter(|(index, _)| *index != at);
    for (index, (_, axis)) in outer.enumerate() {
        turn.length[index] = axis.len as i64;
        turn.from_stride[index] = axis.src as i64;
        turn.to_stride[index] = axis.dst as i64;
        tiles *= axis.len as u64;
    }
    turn.tiles = tiles;
    Some(turn)
}
