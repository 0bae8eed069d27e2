//! Any pair of layouts as the fewest driver calls.

use crate::layout::{Axis, CopyNest};
use gpumem_core::{CopyRegion, Endpoint, Space};
use smallvec::SmallVec;

/// A loop of copies of up to three dimensions. Made in O(axes²), whatever the number of elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegionLoop {
    bytes: usize,
    rows: Axis,
    slices: Axis,
    /// Loops around the driver calls.
    outer: SmallVec<[Axis; 6]>,
    src: usize,
    dst: usize,
}

/// An axis of one step.
const UNIT: Axis = Axis { len: 1, src: 0, dst: 0 };

/// Whether steps along the axis keep `src` and `dst` bytes apart, in rising order: what a driver takes as a pitch.
fn is_pitch(axis: &Axis, src: usize, dst: usize) -> bool {
    axis.src > 0 && axis.dst > 0 && axis.src.unsigned_abs() >= src && axis.dst.unsigned_abs() >= dst
}

/// The two axes that leave the fewest driver calls: rows over runs of `run` bytes, and slices over those rows.
fn best(axes: &[Axis], run: usize) -> (Option<usize>, Option<usize>) {
    let mut best = (1, None, None);
    for (row, rows) in axes.iter().enumerate().filter(|(_, axis)| is_pitch(axis, run, run)) {
        let (src, dst) = (rows.src.unsigned_abs() * rows.len, rows.dst.unsigned_abs() * rows.len);
        let over = |index: &usize| *index != row && is_pitch(&axes[*index], src, dst);
        let slice = (0..axes.len()).filter(over).max_by_key(|index| axes[*index].len);
        let steps = rows.len * slice.map_or(1, |index| axes[index].len);
        if steps > best.0 {
            best = (steps, Some(row), slice);
        }
    }
    (best.1, best.2)
}

impl RegionLoop {
    /// The plan for a pair that has elements.
    pub fn new(nest: &CopyNest) -> Self {
        if nest.axes.is_empty() {
            let (bytes, src, dst) = (nest.run, nest.src, nest.dst);
            return Self { bytes, rows: UNIT, slices: UNIT, outer: SmallVec::new(), src, dst };
        }
        let (row, slice) = best(&nest.axes, nest.run);
        let chosen = |index: Option<usize>| index.map_or(UNIT, |index| nest.axes[index]);
        let (rows, slices) = (chosen(row), chosen(slice));
        let rest =
            nest.axes.iter().enumerate().filter(|(index, _)| Some(*index) != row && Some(*index) != slice);
        let outer = rest.map(|(_, axis)| *axis).collect();
        Self { bytes: nest.run, rows, slices, outer, src: nest.src, dst: nest.dst }
    }

    /// The loops that one call does (slices before rows), and those around the calls.
    pub fn axes(&self) -> (SmallVec<[Axis; 2]>, SmallVec<[Axis; 6]>) {
        let inside = [self.slices, self.rows].into_iter().filter(|axis| axis.len > 1).collect();
        (inside, self.outer.clone())
    }

    /// Number of driver calls.
    pub fn calls(&self) -> usize {
        self.outer.iter().map(|axis| axis.len).product()
    }

    /// Calls `copy` with each region, until one fails.
    pub fn run<E>(
        &self,
        (src, src_space): (u64, Space),
        (dst, dst_space): (u64, Space),
        mut copy: impl FnMut(&CopyRegion) -> Result<(), E>,
    ) -> Result<(), E> {
        let pitch = |rows: isize, slices: isize| {
            let rows = if self.rows.len > 1 { rows.unsigned_abs() } else { self.bytes };
            [rows, if self.slices.len > 1 { slices.unsigned_abs() } else { rows * self.rows.len }]
        };
        let mut region = CopyRegion {
            source: Endpoint { address: 0, space: src_space, pitch: pitch(self.rows.src, self.slices.src) },
            destination: Endpoint {
                address: 0,
                space: dst_space,
                pitch: pitch(self.rows.dst, self.slices.dst),
            },
            bytes: self.bytes,
            rows: self.rows.len,
            slices: self.slices.len,
        };
        let mut step: SmallVec<[usize; 6]> = SmallVec::from_elem(0, self.outer.len());
        let (mut from, mut to) = (src.wrapping_add(self.src as u64), dst.wrapping_add(self.dst as u64));
        loop {
            (region.source.address, region.destination.address) = (from, to);
            copy(&region)?;
            // An odometer over the outer axes, innermost last.
            let mut axis = self.outer.len();
            loop {
                let Some(next) = axis.checked_sub(1) else { return Ok(()) };
                axis = next;
                let Axis { len, src, dst } = self.outer[axis];
                step[axis] += 1;
                if step[axis] < len {
                    (from, to) = (from.wrapping_add_signed(src as i64), to.wrapping_add_signed(dst as i64));
                    break;
                }
                let back = (len - 1) as i64;
                from = from.wrapping_add_signed(-(src as i64) * back);
                to = to.wrapping_add_signed(-(dst as i64) * back);
                step[axis] = 0;
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::layout::{Layout, Order};
    use std::collections::BTreeSet;
    use std::convert::Infallible;

    fn bytes_of(plan: &RegionLoop) -> BTreeSet<(u64, u64)> {
        let mut bytes = BTreeSet::new();
        let space = Space::Host;
        plan.run((1 << 20, space), (1 << 30, space), |region| {
            for slice in 0..region.slices {
                for row in 0..region.rows {
                    for byte in 0..region.bytes {
                        let at = |end: &Endpoint| {
                            end.address + (slice * end.pitch[1] + row * end.pitch[0] + byte) as u64
                        };
                        assert!(bytes.insert((at(&region.source), at(&region.destination))));
                    }
                }
            }
            Ok::<_, Infallible>(())
        })
        .unwrap();
        bytes
    }

    pub(crate) fn expected(nest: &CopyNest) -> BTreeSet<(u64, u64)> {
        let mut offsets = vec![(nest.src as i64, nest.dst as i64)];
        for axis in &nest.axes {
            offsets = offsets
                .iter()
                .flat_map(|(src, dst)| {
                    (0..axis.len as i64).map(move |i| (src + i * axis.src as i64, dst + i * axis.dst as i64))
                })
                .collect();
        }
        let both = |(src, dst): &(i64, i64), byte: i64| {
            ((src + byte + (1 << 20)) as u64, (dst + byte + (1 << 30)) as u64)
        };
        offsets.iter().flat_map(|at| (0..nest.run as i64).map(move |byte| both(at, byte))).collect()
    }

    pub(crate) fn samples() -> Vec<CopyNest> {
        let base = Layout::packed(&[4, 5, 6], 4, Order::C).unwrap();
        let f = Layout::packed(&[4, 5, 6], 4, Order::F).unwrap();
        let sliced = |text: &[ndarray::SliceInfoElem]| base.slice(text).unwrap();
        let views = [
            base.clone(),
            sliced(ndarray::s![..;2, 1..4, ..;3].as_ref()),
            sliced(ndarray::s![..;-1, .., ..;-2].as_ref()),
            sliced(ndarray::s![1..3, ..;-1, 2..].as_ref()),
            f,
        ];
        let mut pairs: Vec<_> = views.iter().map(|view| CopyNest::new(view, &view.like()).unwrap()).collect();
        pairs.extend(views.iter().map(|view| CopyNest::new(&view.like(), view).unwrap()));
        let c_like = Layout::packed(&[4, 5, 6], 4, Order::C).unwrap();
        pairs.push(CopyNest::new(&views[4], &c_like).unwrap());
        let broadcast = Layout::packed(&[5, 1], 4, Order::C).unwrap().broadcast(&[4, 5, 6]).unwrap();
        pairs.push(CopyNest::new(&broadcast, &c_like).unwrap());
        pairs
    }

    #[test]
    fn a_plan_copies_every_byte_once() {
        for nest in samples() {
            assert_eq!(bytes_of(&RegionLoop::new(&nest)), expected(&nest), "{nest:?}");
        }
    }

    /// No other choice of rows and slices needs fewer calls.
    #[test]
    fn plans_take_the_fewest_calls() {
        for nest in samples() {
            let all: usize = nest.axes.iter().map(|axis| axis.len).product();
            let mut fewest = all;
            for (row, rows) in
                nest.axes.iter().enumerate().filter(|(_, axis)| is_pitch(axis, nest.run, nest.run))
            {
                fewest = fewest.min(all / rows.len);
                let reach = |stride: isize| stride.unsigned_abs() * rows.len;
                let fits = |axis: &Axis| is_pitch(axis, reach(rows.src), reach(rows.dst));
                let others = nest.axes.iter().enumerate().filter(|(slice, axis)| *slice != row && fits(axis));
                fewest = others.fold(fewest, |fewest, (_, slices)| fewest.min(all / rows.len / slices.len));
            }
            assert_eq!(RegionLoop::new(&nest).calls(), fewest, "{nest:?}");
        }
    }

    #[test]
    fn usual_views_need_one_call() {
        let base = Layout::packed(&[64, 64, 64], 4, Order::C).unwrap();
        for slice in [ndarray::s![.., .., ..], ndarray::s![3..9, .., ..], ndarray::s![3..9, 2..5, 1..7]] {
            let view = base.slice(slice.as_ref()).unwrap();
            assert_eq!(RegionLoop::new(&CopyNest::new(&view, &view.like()).unwrap()).calls(), 1);
        }
        let every_second = Layout::packed(&[8192, 8192], 4, Order::C).unwrap();
        let every_second = every_second.slice(ndarray::s![.., ..;2].as_ref()).unwrap();
        assert_eq!(RegionLoop::new(&CopyNest::new(&every_second, &every_second.like()).unwrap()).calls(), 1);
    }
}
