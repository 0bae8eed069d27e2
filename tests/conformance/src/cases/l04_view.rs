//! Views and other shapes.

use super::tools::{cube, same};
use crate::{Computation, Lab, Level, Verdict, compare, refused_layout};
use gpumem_core::{Backend, LayoutError, Result};
use gpumem_runtime::{Device, Order};
use ndarray::{Array, Array1, Array2, Axis, IxDyn, NewAxis, ShapeBuilder, s};

cases! { Level::View;
    nested_slices_of_reversed_views,
    slices_of_broadcast_axes,
    new_axes_squeezes_and_transposes,
    views_share_memory_and_call_no_driver,
    bad_indices_are_refused,
    splits,
    reshapes_without_a_copy,
    reshapes_in_both_orders,
    reshapes_that_need_a_copy,
    bytes_as_other_elements,
    the_same_pipeline_as_on_the_host,
}

fn nested_slices_of_reversed_views<B: Backend>(lab: &Lab<B>) -> Verdict {
    let host = Array1::from_iter(0..20i32);
    let array = lab.device().to_device(&host)?;
    let (ours, theirs) = (array.slice(s![..;-1])?, host.slice(s![..;-1]));
    for part in [s![2..9], s![2..9;3], s![..;-2], s![-5..;-1]] {
        same(ours.slice(part)?.copy_to_host()?.view(), theirs.slice(part));
        same(
            ours.slice(part)?.slice(s![1..;-1])?.copy_to_host()?.view(),
            theirs.slice(part).slice(s![1..;-1]),
        );
    }
    assert_eq!(ours.slice(s![4..9])?.slice(s![-1])?.read()?, theirs[8]);
    Ok(())
}

fn slices_of_broadcast_axes<B: Backend>(lab: &Lab<B>) -> Verdict {
    let host = Array1::from_iter(0..4i32);
    let array = lab.device().to_device(&host)?;
    let wide = array.broadcast((6, 4))?;
    assert_eq!(wide.strides(), &[0, 4]);
    let part = wide.slice(s![1..5, ..;2])?;
    assert_eq!((part.shape(), part.strides()), (&[4, 2][..], &[0, 8][..]));
    same(part.copy_to_host()?.view(), Array2::from_shape_fn((4, 2), |(_, j)| 2 * j as i32).view());
    same(wide.slice(s![..;-2, 3])?.copy_to_host()?.view(), Array1::from_elem(3, 3).view());
    refused_layout(array.broadcast((4, 6)).map(drop), |error| {
        matches!(error, LayoutError::CannotBroadcast { .. })
    })
}

fn new_axes_squeezes_and_transposes<B: Backend>(lab: &Lab<B>) -> Verdict {
    let host = cube();
    let array = lab.device().to_device(&host)?;
    let ours = array.slice(s![.., NewAxis, 1..2, ..])?;
    same(ours.copy_to_host()?.view(), host.slice(s![.., NewAxis, 1..2, ..]));
    assert_eq!(ours.squeeze().shape(), &[2, 4]);
    let last = array.view().insert_axis(3)?;
    assert_eq!(last.shape(), &[2, 3, 4, 1]);
    assert_eq!(last.squeeze_axis(-1)?.shape(), &[2, 3, 4]);
    let kept = array.view().squeeze_axis(-1).map(drop);
    refused_layout(kept, |error| matches!(error, LayoutError::CannotSqueeze { axis: 2, length: 4 }))?;
    let absent = array.view().squeeze_axis(3).map(drop);
    refused_layout(absent, |error| matches!(error, LayoutError::NoSuchAxis { .. }))?;
    same(array.t().copy_to_host()?.view(), host.t());
    let permuted = array.view().permuted_axes(&[1, 2, 0])?;
    same(permuted.copy_to_host()?.view(), host.view().permuted_axes([1, 2, 0]));
    for axes in [&[0, 1][..], &[0, 1, 1], &[0, 1, 3]] {
        let wrong = array.view().permuted_axes(axes).map(drop);
        refused_layout(wrong, |error| matches!(error, LayoutError::NotAPermutation { .. }))?;
    }
    let dynamic = array.view().into_dyn();
    let wrong = dynamic.into_dimensionality::<ndarray::Ix2>().map(drop);
    refused_layout(wrong, |error| matches!(error, LayoutError::RankMismatch { found: 3, expected: 2 }))
}

fn views_share_memory_and_call_no_driver<B: Backend>(lab: &Lab<B>) -> Verdict {
    let mut array = lab.device().to_device(&cube())?;
    let before = lab.device().counters();
    assert_eq!(array.slice(s![1, 2, 3])?.address(), array.address() + 4 * 23);
    assert_eq!(array.t().address(), array.address());
    assert_eq!(array.slice(s![..;-1, .., ..])?.address(), array.address() + 48);
    let _ = (array.ravel(Order::C)?, array.reshape((6, 4))?, array.split(1)?.len());
    assert_eq!(lab.device().counters(), before);
    array.slice_mut(s![.., 1, ..;3])?.fill(5)?;
    array.index_axis_mut(0, 1)?.index_axis_mut(1, 0)?.fill(6)?;
    let mut expected = cube();
    expected.slice_mut(s![.., 1, ..;3]).fill(5);
    expected.index_axis_mut(Axis(0), 1).index_axis_mut(Axis(1), 0).fill(6);
    same(array.copy_to_host()?.view(), expected.view());
    Ok(())
}

fn bad_indices_are_refused<B: Backend>(lab: &Lab<B>) -> Verdict {
    let array = lab.device().to_device(&cube())?;
    let outside = |error: &LayoutError| matches!(error, LayoutError::IndexOutOfBounds { .. });
    refused_layout(array.slice(s![2, .., ..]).map(drop), outside)?;
    refused_layout(array.slice(s![.., -4, ..]).map(drop), outside)?;
    refused_layout(array.slice(s![.., ..4, ..]).map(drop), outside)?;
    refused_layout(array.index_axis(1, 3).map(drop), outside)?;
    let absent = |error: &LayoutError| matches!(error, LayoutError::NoSuchAxis { .. });
    refused_layout(array.index_axis(3, 0).map(drop), absent)?;
    refused_layout(array.view().inverted_axis(3).map(drop), absent)
}

fn splits<B: Backend>(lab: &Lab<B>) -> Verdict {
    let host = Array2::from_shape_fn((7, 3), |(i, j)| (10 * i + j) as i32);
    let mut array = lab.device().to_device(&host)?;
    let parts: Vec<_> = array.split(3)?.collect();
    assert_eq!(parts.iter().map(|part| part.shape()[0]).collect::<Vec<_>>(), [3, 3, 1]);
    for (part, expected) in parts.iter().zip(host.axis_chunks_iter(Axis(0), 3)) {
        same(part.copy_to_host()?.view(), expected);
    }
    drop(parts);
    for (at, mut part) in array.split_mut(2)?.enumerate() {
        part.fill(at as i32)?;
    }
    same(array.copy_to_host()?.view(), Array2::from_shape_fn((7, 3), |(i, _)| (i / 2) as i32).view());
    assert_eq!(array.split(100)?.len(), 1);
    refused_layout(array.split(0).map(drop), |error| matches!(error, LayoutError::ZeroSection))?;
    let scalar = lab.device().device_array::<u8, _>(())?;
    refused_layout(scalar.split(1).map(drop), |error| matches!(error, LayoutError::NoSuchAxis { .. }))?;
    assert_eq!(lab.device().device_array::<u8, _>(0)?.split(4)?.len(), 0);
    refused_layout(array.split_at(0, 8).map(drop), |error| {
        matches!(error, LayoutError::IndexOutOfBounds { .. })
    })
}

fn reshapes_without_a_copy<B: Backend>(lab: &Lab<B>) -> Verdict {
    let host = Array2::from_shape_fn((6, 8), |(i, j)| (8 * i + j) as u32);
    let array = lab.device().to_device(&host)?;
    same(array.reshape((4, 12))?.copy_to_host()?.view(), reshaped(&host, (4, 12)).view());
    let inferred = array.reshape_infer(&[2, -1, 4], Order::C)?;
    assert_eq!(inferred.shape(), &[2, 6, 4]);
    // Strided, and yet a view: the axis that is split has one stride.
    let strided = array.slice(s![.., ..;2])?;
    let view = strided.reshape((2, 3, 4))?;
    assert_eq!(view.strides(), &[96, 32, 8]);
    let packed = host.slice(s![.., ..;2]).as_standard_layout().into_owned();
    same(view.copy_to_host()?.view(), reshaped(&packed, (2, 3, 4)).view());
    same(
        array.slice(s![3, ..;-1])?.reshape((2, 4))?.copy_to_host()?.view(),
        reshaped(&host.slice(s![3, ..;-1]).to_owned(), (2, 4)).view(),
    );
    let wrong = |error: &LayoutError| matches!(error, LayoutError::CannotReshape { .. });
    refused_layout(array.reshape((5, 9)).map(drop), wrong)?;
    refused_layout(array.reshape_infer(&[5, -1], Order::C).map(drop), wrong)?;
    refused_layout(array.reshape_infer(&[-1, -1], Order::C).map(drop), wrong)
}

/// ndarray's result, in row-major order.
fn reshaped<D: ndarray::Dimension, E: ndarray::IntoDimension>(
    host: &Array<u32, D>,
    shape: E,
) -> Array<u32, E::Dim> {
    let shape = shape.into_dimension();
    let mut elements = host.iter().copied();
    Array::from_shape_simple_fn(shape, || elements.next().unwrap_or_default())
}

fn reshapes_in_both_orders<B: Backend>(lab: &Lab<B>) -> Verdict {
    let host = Array2::from_shape_fn((3, 4), |(i, j)| (4 * i + j) as u32);
    let columns = Array2::from_shape_fn((3, 4).f(), |(i, j)| (4 * i + j) as u32);
    let (rows, columns) = (lab.device().to_device(&host)?, lab.device().to_device(&columns)?);
    let needs = |error: &LayoutError| matches!(error, LayoutError::NeedsCopy { .. });
    // In the other order than its own an array has no such view, and gives no wrong one.
    refused_layout(rows.ravel(Order::F).map(drop), needs)?;
    refused_layout(columns.ravel(Order::C).map(drop), needs)?;
    refused_layout(rows.reshape_with_order((2, 6), Order::F).map(drop), needs)?;
    let by_columns: Vec<u32> = host.t().iter().copied().collect();
    let by_rows: Vec<u32> = (0..12).collect();
    assert_eq!(columns.ravel(Order::F)?.copy_to_host()?.to_vec(), by_columns);
    assert_eq!(rows.ravel(Order::C)?.copy_to_host()?.to_vec(), by_rows);
    assert_eq!(rows.flatten(Order::F)?.copy_to_host()?.to_vec(), by_columns);
    assert_eq!(columns.flatten(Order::C)?.copy_to_host()?.to_vec(), by_rows);
    let view = columns.reshape_with_order((2, 6), Order::F)?.copy_to_host()?;
    assert_eq!(view.t().iter().copied().collect::<Vec<_>>(), by_columns);
    same(rows.to_order(Order::F)?.copy_to_host()?.view(), host.view());
    assert!(rows.to_order(Order::F)?.is_f_contiguous());
    Ok(())
}

fn reshapes_that_need_a_copy<B: Backend>(lab: &Lab<B>) -> Verdict {
    let host = cube();
    let mut array = lab.device().to_device(&host)?;
    let strided = array.slice(s![.., ..;2, ..])?;
    let needs = |error: &LayoutError| matches!(error, LayoutError::NeedsCopy { .. });
    refused_layout(strided.reshape(16).map(drop), needs)?;
    let copy = strided.reshape_copy(16, Order::C)?;
    same(copy.copy_to_host()?.view(), reshaped(&host.slice(s![.., ..;2, ..]).to_owned(), 16).view());
    array.reshape_mut((4, 6), Order::C)?.slice_mut(s![1, ..])?.fill(0)?;
    let mut expected = reshaped(&host, (4, 6));
    expected.slice_mut(s![1, ..]).fill(0);
    same(array.reshape((4, 6))?.copy_to_host()?.view(), expected.view());
    Ok(())
}

fn bytes_as_other_elements<B: Backend>(lab: &Lab<B>) -> Verdict {
    let array = lab.device().to_device(&[1.0f32, -2.0, 0.5, 3.25])?;
    let bits = [1.0f32, -2.0, 0.5, 3.25].map(f32::to_bits);
    assert_eq!(array.reinterpret::<u32>()?.copy_to_host()?.to_vec(), bits);
    assert_eq!(array.slice(s![..;-1])?.reinterpret::<u32>()?.get(0)?, bits[3]);
    assert_eq!(array.reinterpret::<u64>()?.shape(), &[2]);
    let mismatch =
        |error: &LayoutError| matches!(error, LayoutError::CannotReinterpret { axis_bytes: 12, item: 8 });
    refused_layout(array.slice(s![..3])?.reinterpret::<u64>().map(drop), mismatch)?;
    let misaligned = |error: &LayoutError| matches!(error, LayoutError::Misaligned { .. });
    refused_layout(array.slice(s![1..3])?.reinterpret::<u64>().map(drop), misaligned)?;
    let needs = |error: &LayoutError| matches!(error, LayoutError::NeedsCopy { .. });
    refused_layout(array.slice(s![..;2])?.reinterpret::<u16>().map(drop), needs)
}

/// Views, assignments and copies in one go.
struct Pipeline;

impl Computation for Pipeline {
    type Elem = f64;
    type Dim = IxDyn;

    fn run<X: Backend>(&self, device: &Device<X>) -> Result<Array<f64, IxDyn>> {
        let host = Array::from_shape_fn((5, 6, 7), |(i, j, k)| (i * 42 + j * 7 + k) as f64 / 3.0);
        let mut array = device.to_device(&host)?;
        let mirrored = device.to_device(&array.slice(s![.., ..;-1, ..;2])?)?;
        array.slice_mut(s![1..4, .., 3..])?.assign(&mirrored.slice(s![2, .., ..])?)?;
        array.slice_mut(s![..;2, 1..3, ..])?.fill(-0.0)?;
        array.view().permuted_axes(&[2, 0, 1])?.reshape_copy(210, Order::F)?.view().into_dyn().copy_to_host()
    }
}

fn the_same_pipeline_as_on_the_host<B: Backend>(lab: &Lab<B>) -> Verdict {
    compare(lab, &Pipeline, 0.0)
}
