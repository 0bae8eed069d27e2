//! Copies of any layout, in every direction.

use super::tools::{cube, same};
use crate::{Lab, Level, Verdict, refused, refused_layout};
use gpumem_core::{Backend, ErrorKind, LayoutError};
use gpumem_runtime::{ArraySpec, Order, Scalar};
use ndarray::{ArcArray, Array1, Array2, Array3, ArrayView3, ShapeBuilder, arr0, s};

cases! { Level::Copy;
    sources_of_any_layout,
    slices_scalars_and_device_sources,
    destinations_of_any_layout_keep_their_gaps,
    new_host_arrays_keep_the_order,
    shared_destinations_are_not_written,
    strided_parts_of_the_device,
    device_to_device_of_any_layouts,
    wrong_shapes_move_nothing,
    empty_copies_are_checked_too,
    overlap_is_refused,
    interleaved_halves_are_no_overlap,
    large_copies,
}

/// Runs `each` on a view of every sort of layout: C, F, strided, reversed, permuted, broadcast.
fn each_layout(mut each: impl FnMut(ArrayView3<'_, u32>) -> Verdict) -> Verdict {
    let base = Array3::from_shape_fn((4, 6, 8), |(i, j, k)| (100 * i + 10 * j + k) as u32);
    let columns = Array3::from_shape_fn((4, 6, 8).f(), |(i, j, k)| (100 * i + 10 * j + k) as u32);
    let row = Array1::from_iter(0..8u32);
    each(base.view())?;
    each(columns.view())?;
    each(base.slice(s![..;2, 1..5, ..;3]))?;
    each(base.slice(s![..;-1, .., ..;-2]))?;
    each(columns.slice(s![.., ..;-1, 1..]))?;
    each(base.view().permuted_axes([2, 0, 1]))?;
    each(base.slice(s![3..4, .., 2..3]))?;
    each(row.broadcast((3, 5, 8)).unwrap_or_else(|| base.view()))?;
    each(base.slice(s![.., 2..3, ..]).broadcast((4, 7, 8)).unwrap_or_else(|| base.view()))
}

fn sources_of_any_layout<B: Backend>(lab: &Lab<B>) -> Verdict {
    let stream = lab.device().stream()?;
    each_layout(|view| {
        let array = lab.device().to_device(&view)?;
        same(array.copy_to_host()?.view(), view);
        let mut into = lab.device().device_array::<u32, _>(view.raw_dim())?;
        let returned = into.copy_to_device(&view)?;
        same(returned.copy_to_host()?.view(), view);
        let ordered = stream.to_device(&view)?;
        same(ordered.copy_to_host()?.view(), view);
        Ok(())
    })
}

fn slices_scalars_and_device_sources<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    assert_eq!(device.to_device(&[1u8, 2, 3][..])?.copy_to_host()?.to_vec(), [1, 2, 3]);
    assert_eq!(device.to_device(&vec![1.5f32; 4])?.copy_to_host()?.to_vec(), [1.5; 4]);
    assert_eq!(device.to_device(&Scalar(-3i16))?.read()?, -3);
    assert_eq!(device.to_device(&arr0(8u64))?.read()?, 8);
    let first = device.to_device(&cube())?;
    let second = device.to_device(&first.slice(s![.., ..;-1, ..;2])?)?;
    same(second.copy_to_host()?.view(), cube().slice(s![.., ..;-1, ..;2]));
    assert_ne!(first.address(), second.address());
    let clone = first.try_clone()?;
    drop(first);
    same(clone.copy_to_host()?.view(), cube().view());
    Ok(())
}

fn destinations_of_any_layout_keep_their_gaps<B: Backend>(lab: &Lab<B>) -> Verdict {
    let source = cube();
    let array = lab.device().to_device(&source)?;
    let reversed = array.slice(s![..;-1, .., ..;-1])?;
    for order in [false, true] {
        let mut host = Array3::from_elem((6, 9, 10).set_f(order), 0xEEEE_EEEEu32);
        let plain = s![1..5;3, 2..8;2, 1..9;2];
        let mut expected = host.clone();
        expected.slice_mut(plain).assign(&source);
        let returned = array.copy_to_host_into(host.slice_mut(plain))?;
        same(returned.view(), source.view());
        same(host.view(), expected.view());
        // Into a reversed, permuted view, from a reversed one.
        let mut host = Array3::from_elem((10, 6, 9).set_f(order), 0xEEEE_EEEEu32);
        let mut expected = host.clone();
        let part = s![1..9;-2, 1..5;-3, 2..8;-2];
        let permuted = |array: &mut Array3<u32>, from: ArrayView3<'_, u32>| {
            array.slice_mut(part).permuted_axes([1, 2, 0]).assign(&from);
        };
        permuted(&mut expected, source.slice(s![..;-1, .., ..;-1]));
        reversed.copy_to_host_into(host.slice_mut(part).permuted_axes([1, 2, 0]))?;
        same(host.view(), expected.view());
    }
    Ok(())
}

fn new_host_arrays_keep_the_order<B: Backend>(lab: &Lab<B>) -> Verdict {
    let array = lab.device().to_device(&cube())?;
    assert!(array.copy_to_host()?.is_standard_layout());
    let columns = array.t().copy_to_host()?;
    assert_eq!(columns.strides(), &[1, 4, 12]);
    same(columns.view(), cube().t());
    let broadcast = array.slice(s![.., 0..1, ..])?;
    let broadcast = broadcast.broadcast((2, 5, 4))?;
    let expected = Array3::from_shape_fn((2, 5, 4), |(i, _, k)| (100 * i + k) as u32);
    same(broadcast.copy_to_host()?.view(), expected.view());
    Ok(())
}

fn shared_destinations_are_not_written<B: Backend>(lab: &Lab<B>) -> Verdict {
    let original = ArcArray::from_elem(5, 1u16);
    let mut copy = original.clone();
    let array = lab.device().to_device(&[7u16; 5])?;
    array.copy_to_host_into(copy.view_mut())?;
    assert_eq!((original.sum(), copy.sum()), (5, 35));
    Ok(())
}

fn strided_parts_of_the_device<B: Backend>(lab: &Lab<B>) -> Verdict {
    let base = Array2::from_shape_fn((12, 16), |(i, j)| (1000 + 16 * i + j) as u32);
    let new = Array2::from_shape_fn((4, 5), |(i, j)| (16 * i + j) as u32);
    for source in [new.view(), new.slice(s![..;-1, ..;-1])] {
        for part in [s![0..12;3, 1..16;3], s![1..5;-1, 3..8;1], s![0..8;2, 6..16;-2]] {
            let mut array = lab.device().to_device(&base)?;
            array.slice_mut(part)?.copy_to_device(&source)?;
            let mut expected = base.clone();
            expected.slice_mut(part).assign(&source);
            same(array.copy_to_host()?.view(), expected.view());
            same(array.slice(part)?.copy_to_host()?.view(), source);
        }
    }
    Ok(())
}

fn device_to_device_of_any_layouts<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let host = Array3::from_shape_fn((4, 6, 8), |(i, j, k)| (100 * i + 10 * j + k) as u32);
    let source = device.to_device(&host)?;
    let padded = ArraySpec::new((8, 6, 4)).strides(&[8, 256, 64]);
    let mut strided = device.device_array::<u32, _>(padded)?;
    strided.copy_to_device(&source.t())?;
    same(strided.copy_to_host()?.view(), host.t());
    let mut columns = device.device_array::<u32, _>(ArraySpec::new((4, 6, 8)).order(Order::F))?;
    columns.copy_to_device(&strided.t())?;
    same(columns.copy_to_host()?.view(), host.view());
    let mut part = device.device_array::<u32, _>((4, 6, 8))?;
    part.slice_mut(s![..;2, ..;-1, 1..7;2])?.copy_to_device(&columns.slice(s![2.., .., 5..])?)?;
    let mut expected = Array3::zeros((4, 6, 8));
    expected.slice_mut(s![..;2, ..;-1, 1..7;2]).assign(&host.slice(s![2.., .., 5..]));
    same(part.copy_to_host()?.view(), expected.view());
    part.copy_to_device(&source.slice(s![.., 1..2, ..])?.broadcast((4, 6, 8))?)?;
    assert_eq!(part.get((3, 5, 7))?, 317);
    Ok(())
}

fn wrong_shapes_move_nothing<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let mismatch = |error: &LayoutError| matches!(error, LayoutError::ShapeMismatch { .. });
    let mut array = device.to_device(&Array2::from_elem((3, 4), 7u8))?;
    let copies = device.counters().copies;
    for shape in [(3, 3), (2, 4), (4, 3), (12, 1), (1, 4), (0, 4)] {
        let host = Array2::from_elem(shape, 1u8);
        refused_layout(array.copy_to_device(&host).map(drop), mismatch)?;
        let mut into = Array2::from_elem(shape, 9u8);
        refused_layout(array.copy_to_host_into(into.view_mut()).map(drop), mismatch)?;
        assert_eq!(into, Array2::from_elem(shape, 9u8));
        let other = device.device_array::<u8, _>(shape)?;
        refused_layout(array.copy_to_device(&other).map(drop), mismatch)?;
        let stream = device.stream()?;
        refused_layout(stream.copy_to_device(&mut array, &host), mismatch)?;
        let mut pinned = device.pinned_array::<u8, _>(shape)?;
        refused_layout(stream.copy_to_host_into(&array, &mut pinned), mismatch)?;
    }
    assert_eq!(device.counters().copies, copies);
    assert_eq!(array.copy_to_host()?, Array2::from_elem((3, 4), 7));
    Ok(())
}

fn empty_copies_are_checked_too<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let mismatch = |error: &LayoutError| matches!(error, LayoutError::ShapeMismatch { .. });
    let mut array = device.to_device(&Array2::from_elem((0, 4), 7u8))?;
    array.copy_to_device(&Array2::<u8>::zeros((0, 4)))?;
    for shape in [(4, 0), (0, 5), (1, 4)] {
        refused_layout(array.copy_to_device(&Array2::<u8>::zeros(shape)).map(drop), mismatch)?;
        let mut host = Array2::<u8>::zeros(shape);
        refused_layout(array.copy_to_host_into(host.view_mut()).map(drop), mismatch)?;
    }
    Ok(())
}

fn overlap_is_refused<B: Backend>(lab: &Lab<B>) -> Verdict {
    let device = lab.device();
    let array = device.to_device(&Array1::from_iter(0..100u32))?;
    device.synchronize()?;
    let alias = |start: u64, len: usize| {
        // SAFETY: the bytes are those of `array`, which outlives the aliases, and every use is waited for.
        unsafe { device.foreign_array::<u32, _>(array.address() + 4 * start, 4 * len, len, ()) }
    };
    let mut low = alias(0, 60)?;
    let overlap = |kind: &ErrorKind| matches!(kind, ErrorKind::Overlap { .. });
    refused(low.copy_to_device(&alias(40, 60)?).map(drop), overlap)?;
    refused(low.assign(&alias(59, 1)?), overlap)?;
    refused(device.stream()?.copy_to_device(&mut low, &alias(0, 60)?), overlap)?;
    assert_eq!(array.copy_to_host()?, Array1::from_iter(0..100));
    // Side by side is no overlap.
    let mut middle = alias(40, 20)?;
    middle.copy_to_device(&alias(60, 20)?)?;
    device.synchronize()?;
    let moved = (0..100u32).map(|at| if (40..60).contains(&at) { at + 20 } else { at });
    assert_eq!(array.copy_to_host()?, Array1::from_iter(moved));
    Ok(())
}

fn interleaved_halves_are_no_overlap<B: Backend>(lab: &Lab<B>) -> Verdict {
    let host = Array2::from_shape_fn((6, 8), |(i, j)| (10 * i + j) as u16);
    let mut array = lab.device().to_device(&host)?;
    // Columns of a row-major array: the bytes of the two halves take turns.
    let (mut left, right) = array.split_at_mut(1, 4)?;
    left.copy_to_device(&right.slice(s![.., ..;-1])?)?;
    let expected = Array2::from_shape_fn((6, 8), |(i, j)| (10 * i + if j < 4 { 7 - j } else { j }) as u16);
    same(array.copy_to_host()?.view(), expected.view());
    Ok(())
}

fn large_copies<B: Backend>(lab: &Lab<B>) -> Verdict {
    // Longer than a staging block, and of a length that nothing divides.
    let host = Array2::from_shape_fn((1031, 2053), |(i, j)| (i * 7919 + j * 31) as u32);
    let array = lab.device().to_device(&host)?;
    same(array.copy_to_host()?.view(), host.view());
    let thin = lab.device().to_device(&host.slice(s![..;-1, ..;2]))?;
    same(thin.copy_to_host()?.view(), host.slice(s![..;-1, ..;2]));
    let mut back = Array2::<u32>::zeros((2053, 1031));
    array.t().copy_to_host_into(back.view_mut())?;
    same(back.view(), host.t());
    Ok(())
}
