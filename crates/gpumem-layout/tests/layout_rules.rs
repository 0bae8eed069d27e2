//! Named rules: what Numba gets wrong, every error, and the limits of the arithmetic.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use gpumem_core::LayoutError;
use gpumem_layout::layout::{ArraySpec, CopyNest, IntoArraySpec, Layout, Order};
use ndarray::{Array, ArrayD, Axis, Dim, IxDyn, NewAxis, SliceInfoElem, s};
use proptest::prelude::*;

fn rows(shape: &[usize], item: usize) -> Layout {
    Layout::packed(shape, item, Order::C).unwrap()
}

/// Shape, strides and offset.
fn parts(layout: &Layout) -> (&[usize], &[isize], usize) {
    (layout.shape(), layout.strides(), layout.offset())
}

#[test]
fn negative_strides_are_copied_like_any_other() {
    let backwards = rows(&[6], 4).invert_axis(0).unwrap();
    let pair = CopyNest::new(&backwards, &rows(&[6], 4)).unwrap();
    assert_eq!((pair.src, pair.dst, pair.run), (20, 0, 4));
    assert_eq!((pair.axes[0].src, pair.axes[0].dst, pair.axes[0].len), (-4, 4, 6));
    // The other way round, the destination is walked forwards.
    let pair = CopyNest::new(&rows(&[6], 4), &backwards).unwrap();
    assert_eq!((pair.src, pair.dst, pair.axes[0].src, pair.axes[0].dst), (20, 0, -4, 4));
}

#[test]
fn slicing_a_reversed_view_follows_numpy() {
    let reversed = rows(&[10], 8).slice(s![..;-1].as_ref()).unwrap();
    assert_eq!(parts(&reversed.slice(s![..;-1].as_ref()).unwrap()), (&[10][..], &[8][..], 0));
    assert_eq!(parts(&reversed.slice(s![2..5].as_ref()).unwrap()), (&[3][..], &[-8][..], 7 * 8));
    assert_eq!(reversed.slice(s![-3].as_ref()).unwrap().offset(), 2 * 8);
    assert_eq!(reversed.index(&[0]).unwrap(), 9 * 8);
    assert_eq!(reversed.index_axis(0, 9).unwrap().offset(), 0);
}

#[test]
fn slicing_a_broadcast_axis_keeps_its_length() {
    let broadcast = rows(&[1, 3], 4).broadcast(&[8, 3]).unwrap();
    let part = broadcast.slice(s![1..7;2, ..].as_ref()).unwrap();
    assert_eq!(parts(&part), (&[3, 3][..], &[0, 4][..], 0));
}

#[test]
fn reshaping_against_the_order_is_never_a_wrong_view() {
    let columns = Layout::packed(&[2, 3], 4, Order::F).unwrap();
    assert!(matches!(columns.reshape(&[3, 2], Order::C), Err(LayoutError::NeedsCopy { .. })));
    assert!(matches!(rows(&[2, 3], 4).reshape(&[3, 2], Order::F), Err(LayoutError::NeedsCopy { .. })));
    assert_eq!(columns.reshape(&[3, 2], Order::F).unwrap().strides(), [4, 12]);
    // In one axis there is only one order.
    assert_eq!(rows(&[6], 4).reshape(&[2, 3], Order::F).unwrap().strides(), [4, 8]);
}

#[test]
fn squeezing_a_negative_axis_removes_it() {
    let layout = rows(&[1, 3, 1], 4);
    assert_eq!(layout.squeeze_axis(-1).unwrap().shape(), [1, 3]);
    assert_eq!(layout.squeeze_axis(-3).unwrap().shape(), [3, 1]);
    assert_eq!(layout.squeeze_axis(-2), Err(LayoutError::CannotSqueeze { axis: 1, length: 3 }));
    assert_eq!(layout.squeeze_axis(-4), Err(LayoutError::NoSuchAxis { axis: -4, rank: 3 }));
    assert_eq!(layout.squeeze_axis(3), Err(LayoutError::NoSuchAxis { axis: 3, rank: 3 }));
    assert_eq!(layout.squeeze().shape(), [3]);
}

#[test]
fn strided_arrays_are_reshaped_where_strides_exist() {
    let every_second_row = rows(&[8, 6], 4).slice(s![..;2, ..].as_ref()).unwrap();
    let view = every_second_row.reshape(&[2, 2, 3, -1], Order::C).unwrap();
    assert_eq!(parts(&view), (&[2, 2, 3, 2][..], &[96, 48, 8, 4][..], 0));
    assert!(matches!(every_second_row.ravel(Order::C), Err(LayoutError::NeedsCopy { .. })));
    let every_second = rows(&[12], 4).slice(s![..;2].as_ref()).unwrap();
    assert_eq!(every_second.reshape(&[2, 3], Order::C).unwrap().strides(), [24, 8]);
}

#[test]
fn like_ignores_the_sign_of_strides() {
    let layout = Layout::strided(&[3, 4], &[-32, 8], 8).unwrap();
    assert_eq!(layout.offset(), 64);
    assert_eq!(parts(&layout.like()), (&[3, 4][..], &[32, 8][..], 0));
    let permuted = rows(&[2, 3, 4], 4).transpose(&[2, 0, 1]).unwrap().invert_axis(1).unwrap();
    assert_eq!(permuted.like().strides(), [4, 48, 16]);
}

#[test]
fn strides_of_unit_axes_do_not_count() {
    for unit in [0, 1, -7, isize::MAX, isize::MIN] {
        let layout = Layout::strided(&[1, 5, 1], &[unit, 4, unit], 4).unwrap();
        assert!(layout.is_c_contiguous() && layout.is_f_contiguous());
        assert!(!layout.has_self_overlap());
        assert_eq!(layout.extent(), 0..20);
        assert_eq!(layout.invert_axis(0).unwrap().extent(), 0..20);
        assert_eq!(layout.slice(s![..;-3, .., ..;2].as_ref()).unwrap().extent(), 0..20);
        assert_eq!(CopyNest::new(&layout, &layout).unwrap().run, 20);
        assert!(layout.check_alignment(4).is_ok());
    }
}

#[test]
fn broadcast_arrays_are_not_contiguous() {
    let broadcast = rows(&[3], 4).broadcast(&[2, 3]).unwrap();
    assert!(!broadcast.is_c_contiguous() && !broadcast.is_f_contiguous());
    assert!(broadcast.has_self_overlap());
    assert_eq!((broadcast.extent(), broadcast.packed_bytes()), (0..12, 24));
}

#[test]
fn cost_does_not_depend_on_the_number_of_elements() {
    // Looking at every element would take hours.
    let huge = rows(&[10_000, 10_000, 10_000], 8);
    for _ in 0..10 {
        let view = huge.slice(s![..;-2, 1.., ..;3].as_ref()).unwrap().transpose(&[2, 0, 1]).unwrap();
        assert!(
            !view.is_c_contiguous() && !view.has_self_overlap() && !view.overlaps(&huge.field(0, 0).unwrap())
        );
        assert!(view.overlaps(&huge));
        assert!(view.reshape(&[-1, 2], Order::C).is_err());
        assert_eq!(huge.reshape(&[-1, 100], Order::C).unwrap().shape(), [10_000_000_000, 100]);
        assert_eq!(CopyNest::new(&view, &view.like()).unwrap().axes.len(), 3);
        let mut parts = huge.ravel(Order::C).unwrap().split(1 << 20).unwrap();
        assert_eq!(parts.len(), 953_675);
        assert_eq!(parts.next().unwrap().len(), 1 << 20);
    }
}

#[test]
fn a_smaller_source_is_an_error() {
    let (small, large) = (rows(&[3], 4), rows(&[4], 4));
    let mismatch = LayoutError::ShapeMismatch { found: vec![3], expected: vec![4] };
    assert_eq!(CopyNest::new(&small, &large), Err(mismatch));
}

#[test]
fn a_transpose_is_a_view_in_any_rank() {
    let array = ArrayD::<u64>::zeros(IxDyn(&[2, 3, 4, 5]));
    let layout = rows(&[2, 3, 4, 5], 8);
    for axes in [[3, 1, 0, 2], [0, 1, 2, 3], [2, 3, 0, 1]] {
        let theirs = array.view().permuted_axes(axes.to_vec());
        let strides: Vec<isize> = theirs.strides().iter().map(|stride| stride * 8).collect();
        assert_eq!(parts(&layout.transpose(&axes).unwrap()), (theirs.shape(), &strides[..], 0));
    }
    assert_eq!(layout.reversed_axes().strides(), [8, 40, 160, 480]);
    for wrong in [&[0, 1, 2][..], &[0, 1, 2, 2], &[0, 1, 2, 4], &[0, 1, 2, 3, 4]] {
        let error = LayoutError::NotAPermutation { axes: wrong.to_vec(), rank: 4 };
        assert_eq!(layout.transpose(wrong), Err(error));
    }
}

#[test]
fn layouts_are_checked_against_the_buffer() {
    let layout = Layout::strided(&[3, 4], &[-64, 8], 8).unwrap();
    assert!(layout.fits(2 * 64 + 4 * 8).is_ok());
    assert_eq!(layout.fits(159), Err(LayoutError::OutOfBuffer { needs: 0..160, length: 159 }));
    // Element [0, 0] so low that the reversed axis would reach below the buffer.
    let error = LayoutError::OutOfBuffer { needs: 0..128, length: 120 };
    assert_eq!(layout.clone().with_offset(120), Err(error));
    assert_eq!(layout.with_offset(136).unwrap().extent(), 8..168);
    assert!(rows(&[0], 8).fits(0).is_ok());
    assert!(rows(&[0], 8).with_offset(9).unwrap().fits(8).is_err());
}

#[test]
fn strides_and_offsets_are_ndarrays() {
    // Where ndarray's strides mean something, they are ours divided by the item.
    let array = Array::<u32, _>::zeros((4, 5, 6));
    let ours = rows(&[4, 5, 6], 4).slice(s![1..;2, ..;-2, 3].as_ref()).unwrap().insert_axis(1).unwrap();
    let theirs = array.slice(s![1..;2, ..;-2, 3]).insert_axis(Axis(1));
    assert_eq!(ours.shape(), theirs.shape());
    assert_eq!((ours.strides()[0], ours.strides()[2]), (theirs.strides()[0] * 4, theirs.strides()[2] * 4));
    let distance = theirs.as_ptr() as usize - array.as_ptr() as usize;
    assert_eq!(ours.offset(), distance);
    // And back: relative to its lowest byte, the view is the same layout.
    let relative = Layout::of_ndarray(theirs.shape(), theirs.strides(), 4).unwrap();
    assert_eq!(relative.extent().len(), ours.extent().len());
    assert_eq!(relative.offset(), ours.offset() - ours.extent().start);
}

#[test]
fn bounds_of_slices_are_errors() {
    let layout = rows(&[3, 4], 8);
    let full = SliceInfoElem::Slice { start: 0, end: None, step: 1 };
    let range = |start, end, step| SliceInfoElem::Slice { start, end, step };
    for (element, index) in [
        (SliceInfoElem::Index(4), 4),
        (SliceInfoElem::Index(-5), -5),
        (SliceInfoElem::Index(isize::MIN), isize::MIN),
        (range(5, None, 1), 5),
        (range(0, Some(5), 1), 5),
        (range(-5, None, 1), -5),
        (range(0, Some(-5), 1), -5),
        (range(isize::MAX, Some(isize::MIN), isize::MIN), isize::MAX),
    ] {
        let error = LayoutError::IndexOutOfBounds { index, axis: 1, length: 4 };
        assert_eq!(layout.slice(&[full, element]), Err(error));
    }
    assert_eq!(layout.slice(&[range(0, None, 0), full]), Err(LayoutError::ZeroStep { axis: 0 }));
    assert_eq!(layout.slice(&[full]), Err(LayoutError::RankMismatch { found: 1, expected: 2 }));
    assert_eq!(layout.slice(&[full; 3]), Err(LayoutError::RankMismatch { found: 3, expected: 2 }));
    assert!(layout.slice(s![.., NewAxis, ..].as_ref()).is_ok());
    // An empty range at the end touches nothing, and one whose end lies before its start is empty.
    assert_eq!(parts(&layout.slice(s![3.., 4..].as_ref()).unwrap()), (&[0, 0][..], &[32, 8][..], 0));
    assert_eq!(layout.slice(s![-1..1, ..].as_ref()).unwrap().shape(), [0, 4]);
    assert_eq!(layout.slice(s![..;isize::MIN, ..;isize::MAX].as_ref()).unwrap().shape(), [1, 1]);
}

#[test]
fn indices_and_axes_are_checked() {
    let layout = rows(&[3, 4], 8);
    assert_eq!(layout.index(&[2, 3]), Ok(88));
    assert_eq!(layout.index(&[2]), Err(LayoutError::RankMismatch { found: 1, expected: 2 }));
    let error = LayoutError::IndexOutOfBounds { index: 4, axis: 1, length: 4 };
    assert_eq!(layout.index(&[0, 4]), Err(error.clone()));
    assert_eq!(layout.index_axis(1, 4), Err(error));
    let no_axis = LayoutError::NoSuchAxis { axis: 2, rank: 2 };
    assert_eq!(layout.index_axis(2, 0), Err(no_axis.clone()));
    assert_eq!(layout.invert_axis(2), Err(no_axis.clone()));
    assert_eq!(layout.swap_axes(0, 2), Err(no_axis.clone()));
    assert_eq!(layout.split_at(2, 0), Err(no_axis));
    assert_eq!(layout.insert_axis(3), Err(LayoutError::NoSuchAxis { axis: 3, rank: 2 }));
    assert!(matches!(
        layout.split_at(0, 4),
        Err(LayoutError::IndexOutOfBounds { index: 4, axis: 0, length: 3 })
    ));
}

#[test]
fn reshapes_that_change_the_number_are_errors() {
    let layout = rows(&[3, 4], 8);
    let rejected: [&[isize]; 8] =
        [&[5], &[-1, -1], &[-2, 6], &[-1, 5], &[-1, 0], &[0], &[isize::MAX, 4], &[isize::MIN, 12]];
    for to in rejected {
        let error = LayoutError::CannotReshape { from: 12, to: to.to_vec() };
        assert_eq!(layout.reshape(to, Order::C), Err(error));
    }
    let empty = rows(&[3, 0], 8);
    assert_eq!(empty.reshape(&[-1, 7], Order::C).unwrap().shape(), [0, 7]);
    assert!(matches!(empty.reshape(&[-1, 0], Order::C), Err(LayoutError::CannotReshape { .. })));
    assert!(matches!(empty.reshape(&[0, isize::MAX, 2], Order::C), Err(LayoutError::TooLarge { .. })));
    assert_eq!(rows(&[], 8).reshape(&[1, -1, 1], Order::F).unwrap().shape(), [1, 1, 1]);
    assert_eq!(rows(&[1, 1], 8).reshape(&[], Order::C).unwrap().ndim(), 0);
}

#[test]
fn splits_are_parts_of_the_first_axis() {
    let layout = rows(&[7, 2], 4);
    let parts: Vec<_> = layout.split(3).unwrap().map(|part| (part.shape()[0], part.offset())).collect();
    assert_eq!(parts, [(3, 0), (3, 24), (1, 48)]);
    let mutable: Vec<_> = layout.split(3).unwrap().collect();
    assert!(!mutable[0].overlaps(&mutable[1]) && !mutable[1].overlaps(&mutable[2]));
    assert_eq!(layout.split(0).err(), Some(LayoutError::ZeroSection));
    assert_eq!(rows(&[], 4).split(1).err(), Some(LayoutError::NoSuchAxis { axis: 0, rank: 0 }));
    assert_eq!(rows(&[0, 3], 4).split(2).unwrap().count(), 0);
    // Positions without elements are still positions.
    assert_eq!(rows(&[3, 0], 4).split(2).unwrap().count(), 2);
    assert_eq!(layout.split(usize::MAX).unwrap().count(), 1);
}

#[test]
fn fields_lie_inside_their_elements() {
    let records = rows(&[5], 12).invert_axis(0).unwrap();
    let field = records.field(4, 8).unwrap();
    assert_eq!((field.shape(), field.strides(), field.item()), (&[5][..], &[-12][..], 8));
    assert_eq!(field.extent(), 4..60);
    assert_eq!(records.field(8, 8), Err(LayoutError::OutOfBuffer { needs: 8..16, length: 12 }));
    assert!(records.field(usize::MAX, 1).is_err());
}

#[test]
fn alignment_is_checked_where_it_matters() {
    let layout = rows(&[3, 4], 4);
    assert!(layout.check_alignment(4).is_ok());
    assert_eq!(layout.clone().with_offset(6).unwrap().check_alignment(4), misaligned(6));
    assert_eq!(Layout::strided(&[3, 4], &[18, 4], 4).unwrap().check_alignment(4), misaligned(18));
    assert!(Layout::strided(&[1, 4], &[18, 4], 4).unwrap().check_alignment(4).is_ok());
    assert!(Layout::strided(&[0, 4], &[18, 4], 4).unwrap().check_alignment(4).is_ok());
    fn misaligned(bytes: isize) -> Result<(), LayoutError> {
        Err(LayoutError::Misaligned { bytes, align: 4 })
    }
}

#[test]
fn broadcasts_follow_numpy() {
    let layout = rows(&[3, 1], 4);
    assert_eq!(parts(&layout.broadcast(&[2, 3, 5]).unwrap()), (&[2, 3, 5][..], &[0, 4, 0][..], 0));
    assert_eq!(layout.broadcast(&[3, 0]).unwrap().shape(), [3, 0]);
    for to in [&[3][..], &[4, 1], &[5, 2, 1], &[]] {
        let error = LayoutError::CannotBroadcast { from: vec![3, 1], to: to.to_vec() };
        assert_eq!(layout.broadcast(to), Err(error));
    }
    let huge = layout.broadcast(&[usize::MAX / 2, 3, 1]);
    assert!(matches!(huge, Err(LayoutError::TooLarge { .. })));
}

#[test]
fn specs_are_shapes_with_an_order_or_strides() {
    fn layout(spec: impl IntoArraySpec) -> Result<Layout, LayoutError> {
        spec.into_spec().layout(4)
    }
    assert_eq!(layout(4).unwrap().shape(), [4]);
    assert_eq!(layout(()).unwrap().ndim(), 0);
    assert_eq!(layout((2, 3)), layout([2, 3]));
    assert_eq!(layout(vec![2, 3]), layout(Dim([2, 3])));
    assert_eq!(layout(ArraySpec::new((2, 3)).order(Order::F)).unwrap().strides(), [4, 8]);
    assert_eq!(layout(ArraySpec::new((2, 3)).strides(&[-16, 4])).unwrap().offset(), 16);
    let overlapping = LayoutError::SelfOverlap { shape: vec![2, 3], strides: vec![8, 4] };
    assert_eq!(layout(ArraySpec::new((2, 3)).strides(&[8, 4])), Err(overlapping));
    assert!(layout(ArraySpec::new((2, 3)).strides(&[0, 4])).is_err());
    let ranks = LayoutError::RankMismatch { found: 1, expected: 2 };
    assert_eq!(layout(ArraySpec::new((2, 3)).strides(&[4])), Err(ranks));
    assert!(matches!(layout((usize::MAX, 0)), Err(LayoutError::TooLarge { .. })));
}

#[test]
fn elements_that_share_a_part_overlap() {
    let overlaps =
        |shape: &[usize], strides: &[isize]| Layout::strided(shape, strides, 8).unwrap().has_self_overlap();
    assert!(overlaps(&[3], &[7]) && overlaps(&[3], &[-7]) && !overlaps(&[3], &[-8]));
    assert!(overlaps(&[2, 3], &[23, 8]) && !overlaps(&[2, 3], &[24, 8]) && !overlaps(&[2, 3], &[8, -16]));
    assert!(overlaps(&[2], &[0]) && !overlaps(&[1], &[0]) && !overlaps(&[0, 2], &[0, 0]));
}

#[test]
fn lengths_of_zero_do_not_make_other_strides_zero() {
    assert_eq!(rows(&[3, 0, 2], 8).strides(), [16, 16, 8]);
    assert_eq!(Layout::packed(&[3, 0, 2], 8, Order::F).unwrap().strides(), [8, 24, 24]);
}

#[test]
fn sizes_are_checked() {
    let limit = isize::MAX as usize;
    assert!(Layout::packed(&[limit], 1, Order::C).is_ok());
    for (shape, item) in
        [(&[limit, 2][..], 1), (&[limit], 2), (&[0, limit, 2], 1), (&[], limit + 1), (&[1 << 32, 1 << 32], 1)]
    {
        let error = LayoutError::TooLarge { shape: shape.to_vec(), item };
        assert_eq!(Layout::packed(shape, item, Order::F), Err(error));
    }
    assert!(Layout::strided(&[2], &[isize::MIN], 1).is_err());
    assert!(Layout::strided(&[2, 2], &[isize::MAX, 1], 1).is_err());
    assert!(Layout::strided(&[2, 2], &[isize::MAX - 2, -1], 1).is_ok());
    assert!(Layout::strided(&[3], &[isize::MAX / 2 + 1], 1).is_err());
    assert!(Layout::of_ndarray(&[2], &[isize::MAX / 2], 4).is_err());
    assert!(Layout::of_ndarray(&[1, 0], &[isize::MAX, 7], 4).is_ok());
    assert!(rows(&[2], 4).with_offset(limit).is_err());
    // Elements of no bytes have a place, and nothing to overlap with.
    let nothing = rows(&[3, 4], 0);
    assert_eq!((nothing.packed_bytes(), nothing.extent(), nothing.has_self_overlap()), (0, 0..0, false));
    assert_eq!(CopyNest::new(&nothing, &nothing).unwrap().run, 0);
}

fn extreme() -> impl Strategy<Value = isize> {
    prop_oneof![
        2 => prop::sample::select(vec![isize::MIN, isize::MIN + 1, isize::MAX, isize::MAX / 2, 1 << 31, -(1 << 31)]),
        3 => -4isize..5,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 3000,
        failure_persistence: None,
        rng_algorithm: proptest::test_runner::RngAlgorithm::XorShift,
        ..ProptestConfig::default()
    })]

    /// Whatever the numbers: an error or a layout inside the memory of the first, never a panic (overflow included).
    #[test]
    fn nothing_panics(
        shape in prop::collection::vec(extreme().prop_map(isize::unsigned_abs), 0..4),
        strides in prop::collection::vec(extreme(), 4),
        item in extreme().prop_map(isize::unsigned_abs),
        numbers in prop::collection::vec(extreme(), 8),
    ) {
        let Ok(layout) = Layout::strided(&shape, &strides[..shape.len()], item) else { return Ok(()) };
        let n: Vec<usize> = numbers.iter().map(|n| n.unsigned_abs()).collect();
        let range = |at: usize| SliceInfoElem::Slice { start: numbers[at], end: Some(numbers[at + 1]), step: numbers[at + 2] };
        let order = if n[7].is_multiple_of(2) { Order::C } else { Order::F };
        let mut views = vec![layout.reversed_axes(), layout.squeeze()];
        views.extend(layout.slice(&[range(0), range(1), range(2)][..shape.len()]));
        views.extend(layout.reshape(&numbers[..n[7] % 5], order));
        views.extend(layout.reshape(&[numbers[0], -1, 1], order));
        views.extend(layout.ravel(order));
        views.extend(layout.index_axis(n[0], n[1]));
        views.extend(layout.invert_axis(n[0] % 3));
        views.extend(layout.insert_axis(n[0]));
        views.extend(layout.squeeze_axis(numbers[0]));
        views.extend(layout.broadcast(&n[..n[7] % 5]));
        views.extend(layout.reinterpret(n[2]));
        views.extend(layout.field(n[3], n[4]));
        views.extend(layout.split(n[5]).into_iter().flat_map(|parts| parts.take(3)));
        views.extend(layout.split_at(n[5] % 3, n[6]).into_iter().flat_map(|(head, tail)| [head, tail]));
        let memory = layout.extent();
        for view in &views {
            let extent = view.extent();
            prop_assert!(memory.start <= extent.start && extent.end <= memory.end, "{:?} of {:?}", view, layout);
            let _ = (view.len(), view.packed_bytes(), view.like(), view.check_alignment(n[1]), view.has_self_overlap());
            let _ = (view.is_c_contiguous(), view.is_f_contiguous(), view.overlaps(&layout), CopyNest::new(view, view));
            let _ = (view.clone().with_offset(n[3]), view.index(&n[..view.ndim()]), CopyNest::new(view, &view.like()));
        }
        let _ = Layout::of_ndarray(&shape, &strides[..shape.len()], item);
    }
}
