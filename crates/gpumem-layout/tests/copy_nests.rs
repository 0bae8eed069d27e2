//! Two layouts at once: the loop nest of a copy, and whether they share memory. Both are compared with counting every
//! byte.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use gpumem_core::LayoutError;
use gpumem_layout::layout::{Axis, CopyNest, Layout, Order};
use ndarray::{Dimension, IxDyn, indices};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRunner};
use std::{cell::RefCell, collections::BTreeSet};

fn config(cases: u32) -> ProptestConfig {
    let rng_algorithm = RngAlgorithm::XorShift;
    ProptestConfig { cases, failure_persistence: None, rng_algorithm, ..ProptestConfig::default() }
}

/// Byte offsets of all elements.
fn elements(layout: &Layout) -> Vec<usize> {
    let all = indices(IxDyn(layout.shape())).into_iter();
    all.map(|index| layout.index(Dimension::slice(&index)).unwrap()).collect()
}

/// How the strides of one side are made: the axes in some order, each as long as what lies inside it plus a gap,
/// some reversed. A side that may repeat gets some strides of 0.
#[derive(Debug, Clone)]
struct Side {
    keys: Vec<usize>,
    gaps: Vec<usize>,
    reversed: Vec<bool>,
    repeated: Vec<bool>,
    offset: usize,
}

fn side(repeats: f64) -> impl Strategy<Value = Side> {
    let keys = prop::collection::vec(0usize..3, 5);
    let gaps = prop::collection::vec(prop_oneof![3 => Just(0usize), 1 => 1usize..4], 5);
    let reversed = prop::collection::vec(prop::bool::weighted(0.3), 5);
    let repeated = prop::collection::vec(prop::bool::weighted(repeats), 5);
    (keys, gaps, reversed, repeated, 0usize..20).prop_map(|(keys, gaps, reversed, repeated, offset)| Side {
        keys,
        gaps,
        reversed,
        repeated,
        offset,
    })
}

impl Side {
    fn layout(&self, shape: &[usize], item: usize) -> Layout {
        let mut axes: Vec<usize> = (0..shape.len()).rev().collect();
        axes.sort_by_key(|&axis| self.keys[axis]);
        let mut strides = vec![0; shape.len()];
        let mut next = item;
        for axis in axes {
            if !self.repeated[axis] {
                strides[axis] = if self.reversed[axis] { -(next as isize) } else { next as isize };
                next = next * shape[axis].max(1) + self.gaps[axis] * item;
            }
        }
        let layout = Layout::strided(shape, &strides, item).unwrap();
        let offset = layout.offset() + self.offset;
        layout.with_offset(offset).unwrap()
    }
}

fn shape() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(prop_oneof![1 => Just(0usize), 8 => Just(1), 30 => 2usize..5], 0..5)
}

/// The (source, destination) byte pairs that a loop nest visits.
fn walked(pair: &CopyNest) -> Vec<(usize, usize)> {
    let lengths: Vec<usize> = pair.axes.iter().map(|axis| axis.len).collect();
    let mut bytes = Vec::new();
    if pair.len == 0 {
        return bytes;
    }
    for index in indices(IxDyn(&lengths)) {
        let (mut src, mut dst) = (pair.src as isize, pair.dst as isize);
        for (axis, &step) in pair.axes.iter().zip(Dimension::slice(&index)) {
            src += axis.src * step as isize;
            dst += axis.dst * step as isize;
        }
        bytes.extend((0..pair.run).map(|byte| (src as usize + byte, dst as usize + byte)));
    }
    bytes
}

#[test]
fn a_pair_visits_exactly_the_elements() {
    let mut merged = 0;
    let merges = RefCell::new(&mut merged);
    let cases = (shape(), prop::sample::select(vec![1usize, 2, 4, 12]), side(0.2), side(0.0));
    let outcome = TestRunner::new(config(4000)).run(&cases, |(shape, item, src, dst)| {
        let (src, dst) = (src.layout(&shape, item), dst.layout(&shape, item));
        prop_assert!(!dst.has_self_overlap());
        let pair = CopyNest::new(&src, &dst).unwrap();

        let mut visited = walked(&pair);
        visited.sort_unstable();
        let bytes = |(src, dst): (usize, usize)| (0..item).map(move |byte| (src + byte, dst + byte));
        let mut wanted: Vec<_> = elements(&src).into_iter().zip(elements(&dst)).flat_map(bytes).collect();
        wanted.sort_unstable();
        prop_assert_eq!(visited, wanted);

        prop_assert_eq!((pair.len, pair.item), (src.len(), item));
        prop_assert_eq!(pair.runs() * pair.run, src.packed_bytes());
        prop_assert!(pair.axes.iter().all(|axis| axis.len > 1 && axis.dst > 0));
        prop_assert!(pair.axes.is_sorted_by(|outer, inner| outer.dst >= inner.dst));
        // Nothing is left to merge.
        let run = Axis { len: pair.run / item, src: item as isize, dst: item as isize };
        let nest: Vec<Axis> = pair.axes.iter().copied().chain((pair.run > 0).then_some(run)).collect();
        for inner in nest.windows(2).filter(|axes| axes[1].len > 1) {
            let next = |stride: isize| stride * inner[1].len as isize;
            prop_assert!(
                (inner[0].src, inner[0].dst) != (next(inner[1].src), next(inner[1].dst)),
                "{:?}",
                pair
            );
        }
        let long = shape.iter().filter(|&&length| length > 1).count();
        **merges.borrow_mut() += usize::from(nest.len() < long);
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
    assert!(merged > 100, "only {merged} pairs had anything to merge");
}

#[test]
fn equal_packed_layouts_are_one_run() {
    for order in [Order::C, Order::F] {
        let layout = Layout::packed(&[3, 1, 4, 5], 8, order).unwrap();
        let pair = CopyNest::new(&layout, &layout).unwrap();
        assert_eq!((pair.axes.len(), pair.run, pair.runs()), (0, 480, 1));
        // Reversed alike on both sides is still one run.
        let reversed = layout.invert_axis(0).unwrap().invert_axis(2).unwrap().invert_axis(3).unwrap();
        assert_eq!(CopyNest::new(&reversed, &reversed).unwrap(), pair);
    }
}

#[test]
fn a_pair_needs_equal_shapes_and_items() {
    let layout = Layout::packed(&[3, 4], 8, Order::C).unwrap();
    let shorter = Layout::packed(&[3, 3], 8, Order::C).unwrap();
    let smaller = Layout::packed(&[3, 4], 4, Order::C).unwrap();
    let shapes = LayoutError::ShapeMismatch { found: vec![3, 3], expected: vec![3, 4] };
    assert_eq!(CopyNest::new(&shorter, &layout), Err(shapes));
    assert_eq!(CopyNest::new(&smaller, &layout), Err(LayoutError::ItemMismatch { found: 4, expected: 8 }));
}

#[test]
fn a_pair_without_elements_walks_nothing() {
    let empty = Layout::packed(&[3, 0, 4], 8, Order::C).unwrap();
    let pair = CopyNest::new(&empty, &empty).unwrap();
    assert_eq!((pair.len, pair.axes.len(), pair.run, pair.runs()), (0, 0, 0, 0));
}

fn bytes(layout: &Layout) -> BTreeSet<usize> {
    elements(layout).into_iter().flat_map(|offset| offset..offset + layout.item()).collect()
}

#[test]
fn overlap_is_exact_for_small_layouts() {
    let mut disjoint = 0;
    let count = RefCell::new(&mut disjoint);
    let items = || prop::sample::select(vec![1usize, 2, 4]);
    let cases = (shape(), items(), side(0.1), shape(), items(), side(0.1));
    let outcome = TestRunner::new(config(6000)).run(&cases, |(a, a_item, a_side, b, b_item, b_side)| {
        let (a, b) = (a_side.layout(&a, a_item), b_side.layout(&b, b_item));
        let shared = !bytes(&a).is_disjoint(&bytes(&b));
        prop_assert_eq!((a.overlaps(&b), b.overlaps(&a)), (shared, shared));
        let (left, right) = (a.extent(), b.extent());
        let entangled = left.start < right.end && right.start < left.end;
        **count.borrow_mut() += usize::from(!shared && entangled);
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
    assert!(disjoint > 100, "only {disjoint} pairs were entangled and disjoint");
}

#[test]
fn overlap_knows_what_views_are_made_of() {
    // An odd pitch, so that columns of equal parity do not line up from row to row.
    let matrix = Layout::packed(&[1_000_001, 1_000_003], 4, Order::C).unwrap();
    let columns = |start: isize, step| {
        let all = ndarray::SliceInfoElem::Slice { start: 0, end: None, step: 1 };
        matrix.slice(&[all, ndarray::SliceInfoElem::Slice { start, end: None, step }]).unwrap()
    };
    assert!(!columns(0, 2).overlaps(&columns(1, 2)));
    // Backwards from the last column, which is an even one.
    assert!(!columns(0, -2).overlaps(&columns(1, 2)) && columns(0, -2).overlaps(&columns(0, 2)));
    assert!(columns(0, 2).overlaps(&columns(0, 3)));
    let (left, right) = matrix.split_at(1, 500_000).unwrap();
    assert!(!left.overlaps(&right) && !right.overlaps(&left));
    assert!(left.overlaps(&matrix));
    let (_, touching) = matrix.split_at(1, 499_999).unwrap();
    assert!(left.overlaps(&touching));
    let (top, bottom) = left.split_at(0, 1).unwrap();
    assert!(!top.overlaps(&bottom));
    // Fields of the same records.
    let records = Layout::packed(&[100, 100], 12, Order::C).unwrap();
    let (x, y) = (records.field(0, 4).unwrap(), records.field(4, 8).unwrap());
    assert!(!x.overlaps(&y) && x.overlaps(&records) && x.overlaps(&records.field(2, 4).unwrap()));
}

#[test]
fn deciding_an_overlap_is_bounded_and_errs_on_the_safe_side() {
    // Strides without a common factor and with nearly every sum in reach: a knapsack problem.
    let strides: Vec<isize> = (0..6).map(|n| 1_000_003 + 7919 * n * n).collect();
    let left = Layout::strided(&[50; 6], &strides, 1).unwrap();
    // Looking at every sum would take years.
    for distance in [strides[0], 3 * strides[1] - strides[4], 7 * strides[5] - 2 * strides[0]] {
        // Element [1, 0, ..] and the like: the two do meet.
        let right = left.clone().with_offset(left.offset() + distance as usize).unwrap();
        assert!(left.overlaps(&right) && right.overlaps(&left));
    }
}
