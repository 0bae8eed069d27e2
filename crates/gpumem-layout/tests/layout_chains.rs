//! Random chains of layout operations, compared after each step with ndarray doing the same to an array that holds
//! the byte offset of each of its elements.
//!
//! The position of every element is compared. The reference keeps no strides that could be wrong in the same way: each
//! step copies its elements to a new array.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use gpumem_core::LayoutError;
use gpumem_layout::layout::{Layout, Order};
use ndarray::{ArrayD, ArrayViewD, Axis, IxDyn, SliceInfo, SliceInfoElem};
use proptest::{
    prelude::*,
    test_runner::{RngAlgorithm, TestRunner},
};

const MAX_RANK: usize = 6;
const MAX_ELEMENTS: usize = 96;
const CHAINS: u32 = 20_000;

/// The byte offset of each element.
type Offsets = ArrayD<usize>;

/// Asks the layout for every element, last axis fastest.
fn offsets(layout: &Layout) -> Offsets {
    let mut offsets = Vec::with_capacity(layout.len());
    let mut index = vec![0; layout.ndim()];
    while offsets.len() < layout.len() {
        offsets.push(layout.index(&index).unwrap());
        for (position, &length) in index.iter_mut().zip(layout.shape()).rev() {
            *position = (*position + 1) % length;
            if *position > 0 {
                break;
            }
        }
    }
    ArrayD::from_shape_vec(IxDyn(layout.shape()), offsets).unwrap()
}

/// A packed copy. ndarray's own `to_owned` keeps strides where it can, and trips over a debug assertion of its own for
/// some reversed views with axes of length 1.
fn packed(view: ArrayViewD<'_, usize>) -> Offsets {
    ArrayD::from_shape_vec(view.raw_dim(), view.iter().copied().collect()).unwrap()
}

/// Where a chain starts.
#[derive(Debug, Clone)]
struct Root {
    shape: Vec<usize>,
    item: usize,
    order: Order,
    offset: usize,
}

/// One step. The numbers are taken modulo what the array at hand allows, so that every step is a valid one.
#[derive(Debug, Clone)]
enum Step {
    Slice(Vec<(usize, usize, isize, u8)>),
    Invert(usize),
    Transpose(Vec<usize>),
    ReverseAxes,
    Swap(usize, usize),
    InsertAxis(usize),
    SqueezeAxis(usize),
    Squeeze,
    Broadcast(Vec<usize>, usize),
    Reshape(Vec<usize>, Order, Option<usize>),
    Ravel(Order),
    IndexAxis(usize, usize),
    Part(usize, usize),
    SplitAt(usize, usize, bool),
}

fn order() -> impl Strategy<Value = Order> + Clone {
    prop_oneof![Just(Order::C), Just(Order::F)]
}

fn root() -> impl Strategy<Value = Root> {
    let shape = prop::collection::vec(prop_oneof![1 => 0usize..2, 24 => 1usize..6], 0..5);
    let item = prop::sample::select(vec![1usize, 2, 4, 8, 12]);
    (shape, item, order(), 0usize..50).prop_map(|(shape, item, order, offset)| Root {
        shape,
        item,
        order,
        offset,
    })
}

fn step() -> impl Strategy<Value = Step> {
    let n = || 0usize..60;
    let walk = prop::sample::select(vec![-3isize, -2, -1, 1, 2, 3]);
    let pick = (n(), n(), walk, 0u8..24);
    prop_oneof![
        3 => prop::collection::vec(pick, MAX_RANK).prop_map(Step::Slice),
        2 => n().prop_map(Step::Invert),
        2 => prop::collection::vec(n(), MAX_RANK).prop_map(Step::Transpose),
        1 => Just(Step::ReverseAxes),
        1 => (n(), n()).prop_map(|(left, right)| Step::Swap(left, right)),
        1 => n().prop_map(Step::InsertAxis),
        1 => n().prop_map(Step::SqueezeAxis),
        1 => Just(Step::Squeeze),
        2 => (prop::collection::vec(n(), MAX_RANK), n()).prop_map(|(to, added)| Step::Broadcast(to, added)),
        4 => (prop::collection::vec(n(), 4), order(), prop::option::of(n()))
            .prop_map(|(cuts, order, inferred)| Step::Reshape(cuts, order, inferred)),
        1 => order().prop_map(Step::Ravel),
        1 => (n(), n()).prop_map(|(axis, index)| Step::IndexAxis(axis, index)),
        1 => (n(), n()).prop_map(|(section, part)| Step::Part(section, part)),
        1 => (n(), n(), any::<bool>()).prop_map(|(axis, index, tail)| Step::SplitAt(axis, index, tail)),
    ]
}

/// The slice that the numbers stand for, with some bounds counted from the end, some left open, some axes indexed,
/// and some new ones.
fn slice_info(shape: &[usize], picks: &[(usize, usize, isize, u8)]) -> Vec<SliceInfoElem> {
    let mut info = Vec::new();
    let mut rank = shape.len();
    for (&length, &(start, end, step, form)) in shape.iter().zip(picks) {
        let from_end = |position: usize| position as isize - length as isize;
        let (first, last) = (start % (length + 1), end % (length + 1));
        if form == 0 && rank < MAX_RANK {
            info.push(SliceInfoElem::NewAxis);
            rank += 1;
        }
        info.push(match form {
            1 if length > 0 => SliceInfoElem::Index((start % length) as isize),
            2 if length > 0 => SliceInfoElem::Index(from_end(start % length)),
            3 => SliceInfoElem::Slice { start: 0, end: None, step },
            4 => SliceInfoElem::Slice { start: first as isize, end: None, step },
            // A negative end cannot name the length itself.
            5 if last < length => {
                SliceInfoElem::Slice { start: first as isize, end: Some(from_end(last)), step }
            }
            6 if first < length => {
                SliceInfoElem::Slice { start: from_end(first), end: Some(last as isize), step }
            }
            _ => SliceInfoElem::Slice {
                start: first.min(last) as isize,
                end: Some(first.max(last) as isize),
                step,
            },
        });
    }
    info
}

/// A shape with as many elements, by handing the prime factors to random axes.
fn cut(elements: usize, cuts: &[usize]) -> Vec<usize> {
    let rank = cuts[0] % (MAX_RANK + 1);
    if rank == 0 && elements == 1 {
        return vec![];
    }
    let mut shape = vec![1; rank.max(1)];
    if elements == 0 {
        shape.iter_mut().zip(cuts).for_each(|(length, cut)| *length = 1 + cut % 3);
        let at = cuts[1] % shape.len();
        shape[at] = 0;
        return shape;
    }
    let (mut rest, mut prime, mut turn) = (elements, 2, 0);
    while rest > 1 {
        if rest % prime == 0 {
            let axis = cuts[turn % cuts.len()] / (turn + 1) % shape.len();
            shape[axis] *= prime;
            rest /= prime;
            turn += 1;
        } else {
            prime += 1;
        }
    }
    shape
}

/// Whether strides exist that put element `index` where `wanted` says: they would be the distances of the first
/// elements along each axis, so trying those is an exhaustive search.
fn is_strided(wanted: &Offsets) -> bool {
    let rank = wanted.ndim();
    let Some(&origin) = wanted.first() else { return true };
    let strides: Vec<isize> = (0..rank)
        .map(|axis| {
            let mut index = vec![0; rank];
            index[axis] = usize::from(wanted.shape()[axis] > 1);
            wanted[&index[..]] as isize - origin as isize
        })
        .collect();
    wanted.indexed_iter().all(|(index, &offset)| {
        let steps = ndarray::Dimension::slice(&index).iter().zip(&strides);
        offset as isize == origin as isize + steps.map(|(&i, &stride)| i as isize * stride).sum::<isize>()
    })
}

fn reshaped(layout: &Layout, reference: &Offsets, to: &[isize], order: Order) -> Option<(Layout, Offsets)> {
    let shape: Vec<usize> = {
        let known: usize = to.iter().filter(|&&length| length >= 0).map(|&length| length as usize).product();
        to.iter().map(|&length| usize::try_from(length).unwrap_or_else(|_| reference.len() / known)).collect()
    };
    let nd = match order {
        Order::C => ndarray::Order::RowMajor,
        Order::F => ndarray::Order::ColumnMajor,
    };
    let wanted = reference.to_shape((IxDyn(&shape), nd)).unwrap().into_owned();
    match layout.reshape(to, order) {
        Ok(view) => Some((view, wanted)),
        Err(LayoutError::NeedsCopy { .. }) => {
            assert!(!is_strided(&wanted), "{layout:?} as {shape:?} in {order:?} has strides");
            None
        }
        Err(other) => panic!("{layout:?} as {shape:?} in {order:?}: {other}"),
    }
}

/// Applies a step to both, or gives `None` where the array at hand does not allow it.
fn apply(layout: &Layout, reference: &Offsets, step: &Step) -> Option<(Layout, Offsets)> {
    let rank = reference.ndim();
    let an_axis = |number: &usize| number.checked_rem(rank);
    Some(match step {
        Step::Slice(picks) => {
            let info = slice_info(reference.shape(), picks);
            let theirs = SliceInfo::<_, IxDyn, IxDyn>::try_from(&info[..]).unwrap();
            (layout.slice(&info).unwrap(), packed(reference.slice(theirs)))
        }
        Step::Invert(axis) => {
            let axis = an_axis(axis)?;
            let mut theirs = reference.clone();
            theirs.invert_axis(Axis(axis));
            (layout.invert_axis(axis).unwrap(), theirs)
        }
        Step::Transpose(keys) => {
            let mut axes: Vec<usize> = (0..rank).collect();
            axes.sort_by_key(|&axis| keys[axis]);
            (layout.transpose(&axes).unwrap(), reference.clone().permuted_axes(axes))
        }
        Step::ReverseAxes => (layout.reversed_axes(), reference.clone().reversed_axes()),
        Step::Swap(left, right) => {
            let (left, right) = (an_axis(left)?, an_axis(right)?);
            let mut theirs = reference.clone();
            theirs.swap_axes(left, right);
            (layout.swap_axes(left, right).unwrap(), theirs)
        }
        Step::InsertAxis(axis) if rank < MAX_RANK => {
            let axis = axis % (rank + 1);
            (layout.insert_axis(axis).unwrap(), reference.clone().insert_axis(Axis(axis)))
        }
        Step::InsertAxis(_) => return None,
        Step::SqueezeAxis(number) => {
            let axis = an_axis(number)?;
            // Counted from either end.
            let signed = if number % 2 == 0 { axis as isize } else { axis as isize - rank as isize };
            let length = reference.shape()[axis];
            let found = layout.squeeze_axis(signed);
            if length != 1 {
                assert_eq!(found, Err(LayoutError::CannotSqueeze { axis, length }));
                return None;
            }
            (found.unwrap(), packed(reference.index_axis(Axis(axis), 0)))
        }
        Step::Squeeze => {
            let shape: Vec<usize> = reference.shape().iter().copied().filter(|&length| length != 1).collect();
            (layout.squeeze(), reference.to_shape(IxDyn(&shape)).unwrap().into_owned())
        }
        Step::Broadcast(to, added) => {
            let added = added % (MAX_RANK - rank + 1);
            let mut shape: Vec<usize> = to.iter().take(added).map(|to| 1 + to % 3).collect();
            let longer =
                |(&length, to): (&usize, &usize)| if length == 1 { (to + 1) % 9 / 2 } else { length };
            shape.extend(reference.shape().iter().zip(to.iter().skip(added)).map(longer));
            if shape.iter().product::<usize>() > MAX_ELEMENTS {
                return None;
            }
            (layout.broadcast(&shape).unwrap(), packed(reference.broadcast(IxDyn(&shape)).unwrap()))
        }
        Step::Reshape(cuts, order, inferred) => {
            let mut to: Vec<isize> =
                cut(reference.len(), cuts).iter().map(|&length| length as isize).collect();
            if let Some(axis) = inferred.and_then(|axis| axis.checked_rem(to.len()))
                && !reference.is_empty()
            {
                to[axis] = -1;
            }
            return reshaped(layout, reference, &to, *order);
        }
        Step::Ravel(order) => {
            let found = reshaped(layout, reference, &[-1], *order).or_else(|| None);
            assert_eq!(layout.ravel(*order).ok(), found.as_ref().map(|(view, _)| view.clone()));
            return found;
        }
        Step::IndexAxis(axis, index) => {
            let axis = an_axis(axis)?;
            let index = index.checked_rem(reference.shape()[axis])?;
            (layout.index_axis(axis, index).unwrap(), packed(reference.index_axis(Axis(axis), index)))
        }
        Step::Part(section, part) => {
            let length = *reference.shape().first()?;
            let section = section % 5 + 1;
            let parts = layout.split(section).unwrap();
            assert_eq!(parts.len(), length.div_ceil(section));
            let parts: Vec<Layout> = parts.collect();
            let theirs: Vec<_> = reference.axis_chunks_iter(Axis(0), section).collect();
            assert_eq!(parts.len(), length.div_ceil(section));
            for (ours, theirs) in parts.iter().zip(&theirs) {
                assert_eq!(offsets(ours), *theirs);
            }
            let part = part.checked_rem(parts.len())?;
            (parts[part].clone(), packed(theirs[part].view()))
        }
        Step::SplitAt(axis, index, tail) => {
            let axis = an_axis(axis)?;
            let index = index % (reference.shape()[axis] + 1);
            let (ours, theirs) =
                (layout.split_at(axis, index).unwrap(), reference.view().split_at(Axis(axis), index));
            if *tail { (ours.1, packed(theirs.1)) } else { (ours.0, packed(theirs.0)) }
        }
    })
}

/// Compares everything that can be asked about a layout with the reference's offsets.
fn compare(layout: &Layout, reference: &Offsets) {
    assert_eq!(layout.shape(), reference.shape());
    assert_eq!(layout.strides().len(), reference.ndim());
    assert_eq!((layout.len(), layout.is_empty()), (reference.len(), reference.is_empty()));
    assert_eq!(offsets(layout), reference, "{layout:?}");

    let item = layout.item();
    let bytes = match (reference.iter().min(), reference.iter().max()) {
        (Some(low), Some(high)) => *low..*high + item,
        _ => layout.offset()..layout.offset(),
    };
    assert_eq!(layout.extent(), bytes, "{layout:?}");
    assert!(layout.fits(bytes.end).is_ok());
    assert!(bytes.end == 0 || layout.fits(bytes.end - 1).is_err());

    // Contiguous means: the elements in that order are the extent's items in that order.
    let start = bytes.start;
    let rows = reference.iter().enumerate().all(|(n, &offset)| offset == start + n * item);
    let columns = reference.t().iter().enumerate().all(|(n, &offset)| offset == start + n * item);
    assert_eq!((layout.is_c_contiguous(), layout.is_f_contiguous()), (rows, columns), "{layout:?}");

    if !layout.has_self_overlap() {
        let mut sorted: Vec<usize> = reference.iter().copied().collect();
        sorted.sort_unstable();
        assert!(sorted.windows(2).all(|pair| pair[0] + item <= pair[1]), "{layout:?} overlaps itself");
    }
}

/// How often the chains reached each case that they are to cover.
#[derive(Debug, Default)]
struct Met {
    steps: usize,
    reversed: usize,
    repeated: usize,
    empty: usize,
    views_of_strided: usize,
    copies: usize,
}

impl Met {
    fn note(&mut self, layout: &Layout, step: &Step, next: Option<&Layout>) {
        let strided = !layout.is_c_contiguous() && !layout.is_f_contiguous();
        let is_reshape = matches!(step, Step::Reshape(..) | Step::Ravel(_));
        self.steps += 1;
        self.reversed += usize::from(layout.strides().iter().any(|&stride| stride < 0));
        self.repeated += usize::from(layout.len() > 1 && layout.strides().contains(&0));
        self.empty += usize::from(layout.is_empty());
        self.views_of_strided += usize::from(strided && is_reshape && next.is_some());
        self.copies += usize::from(is_reshape && next.is_none());
    }
}

fn start(root: &Root) -> (Layout, Offsets) {
    let layout =
        Layout::packed(&root.shape, root.item, root.order).unwrap().with_offset(root.offset).unwrap();
    let count = |shape: &[usize]| {
        let offsets = (0..layout.len()).map(|n| root.offset + n * root.item).collect();
        ArrayD::from_shape_vec(IxDyn(shape), offsets).unwrap()
    };
    let reference = match root.order {
        Order::C => count(&root.shape),
        Order::F => count(&root.shape.iter().rev().copied().collect::<Vec<_>>()).reversed_axes(),
    };
    (layout, reference)
}

#[test]
fn chains_agree_with_ndarray() {
    let mut met = Met::default();
    let cell = std::cell::RefCell::new(&mut met);
    // The default generator, ChaCha, takes most of the time of a build without optimisation.
    let rng_algorithm = RngAlgorithm::XorShift;
    let config = ProptestConfig {
        cases: CHAINS,
        failure_persistence: None,
        rng_algorithm,
        ..ProptestConfig::default()
    };
    let chains = (root(), prop::collection::vec(step(), 1..8));
    let outcome = TestRunner::new(config).run(&chains, |(root, steps)| {
        let (mut layout, mut reference) = start(&root);
        compare(&layout, &reference);
        let memory = layout.extent();
        for step in &steps {
            let next = apply(&layout, &reference, step);
            cell.borrow_mut().note(&layout, step, next.as_ref().map(|(next, _)| next));
            let Some((next, expected)) = next else { continue };
            let expected = packed(expected.view());
            compare(&next, &expected);
            let extent = next.extent();
            prop_assert!(memory.start <= extent.start && extent.end <= memory.end);
            (layout, reference) = (next, expected);
        }
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
    let enough = CHAINS as usize / 20;
    let counts = [met.reversed, met.repeated, met.empty, met.views_of_strided, met.copies];
    assert!(counts.iter().all(|&count| count > enough), "too little of something: {met:?}");
}
