//! Reductions, scans, casts and maps: ndarray's results for any layout and element, and the host's bits on every device.

mod fused;
mod layouts;
mod sorts;

use self::{
    fused::functions_are_summed_with_the_bits_of_two_steps,
    layouts::{Dice, Layout, types},
    sorts::{
        arrays_of_any_layout_are_sorted, nothing_to_sort, numbers_are_in_a_total_order,
        sorting_waits_for_late_writers,
    },
};
use super::tools::{fail, same};
use crate::{Lab, Level, Stop, Verdict, refused, refused_layout, skip};
use gpumem_core::{Backend, ErrorKind, LayoutError, Result};
use gpumem_host::Host;
use gpumem_kernel::Numeric;
use gpumem_ops::{ArrayOps, Bounded, CastTo, Summable, concatenate, concatenate_on};
use gpumem_runtime::{Device, DeviceArray};
use half::{bf16, f16};
use ndarray::{Array1, Array2, Array3, ArrayD, ArrayView, Axis, Dimension, s};
use std::{sync::mpsc, time::Duration};

mod facade {
    pub(super) use gpumem_kernel as kernel;
}

cases! { Level::Kernel;
    sums_and_means_of_any_layout,
    extremes_and_their_places_of_any_layout,
    scans_of_any_layout,
    arrays_of_any_layout_are_sorted,
    numbers_are_in_a_total_order,
    sorting_waits_for_late_writers,
    nothing_to_sort,
    casts_are_those_of_rust,
    functions_are_mapped_over_any_layout,
    functions_are_summed_with_the_bits_of_two_steps,
    arrays_are_concatenated_along_any_axis,
    nan_is_the_least_and_the_greatest,
    products_of_all_and_along_axes,
    no_elements_have_a_sum_and_nothing_else,
    nothing_waits_for_the_sum_of_no_elements,
    axes_and_shapes_that_do_not_fit_are_refused,
    floats_have_the_bits_of_the_host,
    sums_of_floats_are_nearly_exact,
    operations_wait_for_late_writers,
    operands_and_results_are_dropped_with_work_in_flight,
}

/// Skips the case where the device takes no kernels.
fn done<T>(result: Result<T>) -> Verdict<T> {
    match result {
        Err(error) if matches!(error.kind(), ErrorKind::Unsupported { .. } | ErrorKind::Load(_)) => {
            skip(error)
        }
        result => result.map_err(Stop::from),
    }
}

/// What every type of these cases has.
trait Number: Summable + Bounded + CastTo<Self> + CastTo<i64> {}
impl<T: Summable + Bounded + CastTo<T> + CastTo<i64>> Number for T {}

/// Checks results against those of ndarray for `i64`.
#[track_caller]
fn equal<T: Numeric, D: Dimension>(found: ArrayView<'_, T, D>, expected: ArrayView<'_, i64, D>)
where
    i64: CastTo<T>,
{
    same(found, expected.mapv(|value| value.cast_to()).view());
}

fn check_sums<T: Number, B: Backend>(lab: &Lab<B>, layout: &Layout) -> Verdict
where
    i64: CastTo<T> + CastTo<T::Sum>,
    f64: CastTo<T::Mean>,
{
    let (array, host) = (layout.upload::<T, B>(lab.device())?, layout.host());
    let view = layout.view(&array)?;
    let sum: T::Sum = host.sum().cast_to();
    assert_eq!(bytemuck::bytes_of(&done(view.sum())?), bytemuck::bytes_of(&sum), "{:?}", host.shape());
    for axis in 0..host.ndim() {
        equal(view.sum_axis(axis)?.copy_to_host()?.view(), host.sum_axis(Axis(axis)).view());
    }
    // An exact quotient of two small numbers, rounded once more to the type of the mean.
    let mean: T::Mean = (host.sum() as f64 / host.len() as f64).cast_to();
    let close = |found: T::Mean, expected: T::Mean| format!("{found:?}") == format!("{expected:?}");
    assert!(close(view.mean()?, mean), "{:?} {:?}", view.mean()?, mean);
    Ok(())
}

fn sums_and_means_of_any_layout<B: Backend>(lab: &Lab<B>) -> Verdict {
    types!(lab, if lab.is_slow() { 300 } else { 2500 }, check_sums: u8 i8 u16 i16 u32 i32 u64 i64 f16 bf16 f32 f64)
}

fn check_extremes<T: Number, B: Backend>(lab: &Lab<B>, layout: &Layout) -> Verdict
where
    i64: CastTo<T>,
{
    let (array, host) = (layout.upload::<T, B>(lab.device())?, layout.host());
    let view = layout.view(&array)?;
    let least = host.iter().copied().min().unwrap_or_default();
    let most = host.iter().copied().max().unwrap_or_default();
    let number = |value: T| -> i64 { value.cast_to() };
    assert_eq!((number(done(view.min())?), number(view.max()?)), (least, most));
    let first = |wanted| host.iter().position(|value| *value == wanted).unwrap_or_default();
    assert_eq!((view.argmin()?, view.argmax()?), (first(least), first(most)));
    for axis in 0..host.ndim() {
        let along = |pick: fn(ArrayView<'_, i64, ndarray::Ix1>) -> i64| host.map_axis(Axis(axis), pick);
        let least = along(|lane| lane.iter().copied().min().unwrap_or_default());
        let most = along(|lane| lane.iter().copied().max().unwrap_or_default());
        equal(view.min_axis(axis)?.copy_to_host()?.view(), least.view());
        equal(view.max_axis(axis)?.copy_to_host()?.view(), most.view());
        let first = along(|lane| (0..lane.len()).min_by_key(|at| lane[*at]).unwrap_or_default() as i64);
        let last = along(|lane| (0..lane.len()).rev().max_by_key(|at| lane[*at]).unwrap_or_default() as i64);
        same(view.argmin_axis(axis)?.copy_to_host()?.view(), first.mapv(|at| at as u64).view());
        same(view.argmax_axis(axis)?.copy_to_host()?.view(), last.mapv(|at| at as u64).view());
    }
    Ok(())
}

fn extremes_and_their_places_of_any_layout<B: Backend>(lab: &Lab<B>) -> Verdict {
    types!(lab, if lab.is_slow() { 200 } else { 2000 }, check_extremes: u8 i16 i32 u64 f16 f32)
}

fn check_scans<T: Number, B: Backend>(lab: &Lab<B>, layout: &Layout) -> Verdict
where
    i64: CastTo<T> + CastTo<T::Sum>,
{
    let (array, host) = (layout.upload::<T, B>(lab.device())?, layout.host());
    let view = layout.view(&array)?;
    for axis in 0..host.ndim() {
        let mut inclusive = host.to_owned();
        inclusive.accumulate_axis_inplace(Axis(axis), |before, value| *value += before);
        let exclusive = &inclusive - &host;
        equal(done(view.inclusive_scan(axis))?.copy_to_host()?.view(), inclusive.view());
        equal(view.exclusive_scan(axis)?.copy_to_host()?.view(), exclusive.view());
    }
    Ok(())
}

fn scans_of_any_layout<B: Backend>(lab: &Lab<B>) -> Verdict {
    types!(lab, if lab.is_slow() { 200 } else { 2500 }, check_scans: i8 u16 u32 i64 bf16 f64)
}

/// Values at which conversions differ: the ends of all types, halves, infinities, NaN.
fn edges<T: Numeric>() -> Vec<T>
where
    f64: CastTo<T>,
    i64: CastTo<T>,
    u64: CastTo<T>,
{
    let floats = [
        -0.0,
        0.4,
        -0.5,
        0.5,
        1.5,
        -1.5,
        2.5,
        127.5,
        255.5,
        65504.0,
        65520.0,
        1e10,
        -1e10,
        3e38,
        1e39,
        1e300,
        -1e300,
        2147483648.0,
        -2147483649.0,
        4294967295.5,
        9.3e18,
        -9.3e18,
        1.9e19,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        5e-324,
        1e-40,
        6e-8,
        0.1,
        16777217.0,
    ];
    let bits = [1, 7, 8, 15, 16, 24, 31, 32, 53, 63];
    let signed =
        bits.map(|bits| 1i64 << bits).map(|power| [power, power.wrapping_sub(1), power.wrapping_neg()]);
    let mut all: Vec<T> = floats.iter().map(|value| value.cast_to()).collect();
    all.extend(signed.iter().flatten().map(|value| -> T { value.cast_to() }));
    let ends: [T; 2] = [u64::MAX.cast_to(), (u64::MAX / 2 + 1).cast_to()];
    all.extend(ends);
    all
}

fn check_cast<T, U: Numeric, B: Backend>(lab: &Lab<B>, name: &str) -> Verdict
where
    T: CastTo<U>,
    f64: CastTo<T>,
    i64: CastTo<T>,
    u64: CastTo<T>,
{
    let values = edges::<T>();
    let array = lab.device().to_device(&values)?;
    let found = done(array.cast::<U>())?.copy_to_host()?;
    for (value, found) in values.iter().zip(found) {
        let expected: U = value.cast_to();
        let is_nan = |value: &U| value.partial_cmp(value).is_none();
        let equal = bytemuck::bytes_of(&found) == bytemuck::bytes_of(&expected);
        assert!(
            equal || is_nan(&found) && is_nan(&expected),
            "{name}: {value:?} is {found:?}, not {expected:?}"
        );
    }
    Ok(())
}

fn casts_are_those_of_rust<B: Backend>(lab: &Lab<B>) -> Verdict {
    macro_rules! pairs {
        ($($from:ident)*; $to:tt) => {{$( pairs!(@from $from $to); )*}};
        (@from $from:ident [$($to:ident)*]) => {{$(
            check_cast::<$from, $to, B>(lab, concat!(stringify!($from), " as ", stringify!($to)))?;
        )*}};
    }
    match lab.is_slow() {
        true => pairs!(f64 f32 f16 i64; [i8 i32 u64 f16 bf16 f32]),
        false => {
            pairs!(u8 i16 u32 i64 f16 bf16 f32 f64; [i8 u16 i32 u64 f16 bf16 f32 f64])
        }
    }
    Ok(())
}

/// A function of one value.
#[gpumem_macros::device(crate = self::facade)]
fn folded(x: i64) -> f32 {
    if x % 2 == 0 { x as f32 * 0.5 } else { -1.0 }
}

/// A generic function of two values of two types.
#[gpumem_macros::device(crate = self::facade)]
fn mixed<T: Numeric>(x: T, y: u8) -> T {
    if y > 5 { x + T::ONE } else { x * x }
}

fn functions_are_mapped_over_any_layout<B: Backend>(lab: &Lab<B>) -> Verdict {
    let mut dice = Dice(3);
    for _ in 0..if lab.is_slow() { 3 } else { 20 } {
        let layout = Layout::roll(&mut dice, 700);
        let (array, host) = (layout.upload::<i64, B>(lab.device())?, layout.host());
        let view = layout.view(&array)?;
        same(done(view.map::<folded>())?.copy_to_host()?.view(), host.mapv(folded).view());
        // One of another order of axes, and a broadcast one.
        let other = lab.device().to_device(&host.t().mapv(|value| value as u8))?;
        let expected = host.mapv(|value| mixed::<i64>(value, value as u8));
        same(view.zip_map::<mixed<i64>, _>(&other.t())?.copy_to_host()?.view(), expected.view());
        let one = lab.device().to_device(&Array1::from_elem(1, 9u8))?;
        let nines = one.broadcast(host.raw_dim())?;
        let added = view.zip_map::<mixed<i64>, _>(&nines)?.copy_to_host()?;
        same(added.view(), (&host + 1).view());
        let seen = array.view().into_dyn();
        assert_eq!(seen.cast::<f64>()?.strides().len(), layout.base.ndim());
    }
    Ok(())
}

fn arrays_are_concatenated_along_any_axis<B: Backend>(lab: &Lab<B>) -> Verdict {
    let host = Array3::from_shape_fn((2, 3, 4), |(i, j, k)| (i * 100 + j * 10 + k) as u16);
    let array = lab.device().to_device(&host)?;
    let stream = lab.device().stream()?;
    for axis in 0..3 {
        let (device_parts, parts) = match axis {
            0 => (array.slice(s![..;-1, .., ..])?, host.slice(s![..;-1, .., ..])),
            1 => (array.slice(s![.., 1.., ..])?, host.slice(s![.., 1.., ..])),
            _ => (array.slice(s![.., .., ..0])?, host.slice(s![.., .., ..0])),
        };
        let whole = array.view();
        let arrays = [&whole, &device_parts, &whole];
        let expected = ndarray::concatenate(Axis(axis), &[host.view(), parts, host.view()])
            .map_err(|error| Stop::Failed(error.to_string()))?;
        same(concatenate(axis, &arrays)?.copy_to_host()?.view(), expected.view());
        same(concatenate_on(&stream, axis, &arrays)?.copy_to_host()?.view(), expected.view());
    }
    let short = array.slice(s![.., .., 1..])?;
    let is_other = |error: &LayoutError| matches!(error, LayoutError::ShapeMismatch { .. });
    refused_layout(concatenate(0, &[&array.view(), &short]), is_other)?;
    let is_beyond = |error: &LayoutError| matches!(error, LayoutError::NoSuchAxis { axis: 3, rank: 3 });
    refused_layout(concatenate(3, &[&array]), is_beyond)?;
    let none: [&DeviceArray<u16, ndarray::Ix3, B>; 0] = [];
    refused(concatenate_on(&stream, 0, &none), |kind| matches!(kind, ErrorKind::InvalidArgument { .. }))?;
    Ok(())
}

fn nan_is_the_least_and_the_greatest<B: Backend>(lab: &Lab<B>) -> Verdict {
    for length in [3, 70, 5000] {
        let mut host = Array1::from_shape_fn(length, |at| at as f32);
        let array = lab.device().to_device(&host)?;
        assert_eq!((done(array.min())?, array.max()?), (0.0, length as f32 - 1.0));
        for at in [0, length / 2, length - 1] {
            host[at] = f32::NAN;
            host[length - 1] = f32::NAN;
            let array = lab.device().to_device(&host)?;
            assert!(array.min()?.is_nan() && array.max()?.is_nan() && array.sum()?.is_nan());
            assert_eq!((array.argmin()?, array.argmax()?), (at, at));
            host[at] = at as f32;
        }
    }
    // Infinities are numbers.
    let array = lab.device().to_device(&[f64::INFINITY; 3])?;
    assert_eq!((array.min()?, array.argmin()?, array.sum()?), (f64::INFINITY, 0, f64::INFINITY));
    // Equal elements: the first. Of two zeros, too.
    let zeros = lab.device().to_device(&[0.0f32, -0.0, 0.0])?;
    assert_eq!((zeros.argmin()?, zeros.argmax()?), (0, 0));
    Ok(())
}

/// Powers of two are exact in every type.
fn check_products<T: Number, B: Backend>(lab: &Lab<B>, (first, second): (usize, usize)) -> Verdict
where
    i64: CastTo<T> + CastTo<T::Sum>,
{
    let host =
        Array2::from_shape_fn((first, second), |(i, j)| if (i * second + j) % 9973 == 7 { 2i64 } else { 1 });
    let array = lab.device().to_device(&host.mapv(|value| CastTo::<T>::cast_to(value)))?;
    let product: T::Sum = host.product().cast_to();
    assert_eq!(bytemuck::bytes_of(&done(array.prod())?), bytemuck::bytes_of(&product), "{first} {second}");
    for axis in 0..2 {
        let expected = host.fold_axis(Axis(axis), 1, |product, value| product * value);
        equal(array.prod_axis(axis)?.copy_to_host()?.view(), expected.view());
    }
    Ok(())
}

fn products_of_all_and_along_axes<B: Backend>(lab: &Lab<B>) -> Verdict {
    for shape in [(1, 1), (3, 70), (70, 300), if lab.is_slow() { (2, 9000) } else { (3, 30_000) }] {
        macro_rules! check {
            ($($types:ident)*) => {$( check_products::<$types, B>(lab, shape)?; )*};
        }
        check!(u8 i8 u16 i16 u32 i32 u64 i64 f16 bf16 f32 f64);
    }
    let device = lab.device();
    assert_eq!(device.to_device(&[u32::MAX; 3])?.prod()?, u64::from(u32::MAX).wrapping_pow(3));
    assert_eq!(device.to_device(&[i8::MIN; 10])?.prod()?, i64::from(i8::MIN).wrapping_pow(10));
    assert!(device.to_device(&[0.0, f64::INFINITY])?.prod()?.is_nan());
    Ok(())
}

fn no_elements_have_a_sum_and_nothing_else<B: Backend>(lab: &Lab<B>) -> Verdict {
    let empty = lab.device().device_array::<f32, _>((3, 0, 2))?;
    assert_eq!((done(empty.sum())?.to_bits(), done(empty.prod())?), (0, 1.0));
    assert_eq!(empty.prod_axis(1)?.copy_to_host()?, Array2::<f32>::ones((3, 2)));
    assert_eq!(empty.sum_axis(1)?.copy_to_host()?, Array2::<f32>::zeros((3, 2)));
    assert_eq!(empty.sum_axis(0)?.copy_to_host()?, Array2::<f32>::zeros((0, 2)));
    assert_eq!(empty.mean_axis(2)?.shape(), [3, 0]);
    assert_eq!(empty.max_axis(0)?.shape(), [0, 2]);
    assert_eq!(empty.argmax_axis(0)?.shape(), [0, 2]);
    assert_eq!(empty.inclusive_scan(0)?.shape(), [3, 0, 2]);
    assert_eq!(empty.exclusive_scan(1)?.shape(), [3, 0, 2]);
    assert_eq!(empty.cast::<u8>()?.shape(), [3, 0, 2]);
    assert_eq!(concatenate(1, &[&empty, &empty])?.shape(), [3, 0, 2]);
    let is_none = |kind: &ErrorKind| matches!(kind, ErrorKind::InvalidArgument { .. });
    refused(empty.min(), is_none)?;
    refused(empty.argmin(), is_none)?;
    refused(empty.mean(), is_none)?;
    refused(empty.max_axis(1), is_none)?;
    refused(empty.argmax_axis(1), is_none)?;
    refused(empty.mean_axis(1), is_none)?;
    // An array without axes has one element.
    let one = lab.device().to_device(&ndarray::arr0(5i32))?;
    assert_eq!((one.sum()?, one.max()?, one.argmax()?, one.mean()?), (5, 5, 0, 5.0));
    Ok(())
}

/// In a recording and in a callback a call that waits is refused.
fn nothing_waits_for_the_sum_of_no_elements<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (device, stream) = (lab.device(), lab.device().stream()?);
    let empty = device.device_array::<f32, _>((3, 0, 2))?;
    let numbers = device.to_device(&[3u32, 1, 2])?;
    done(numbers.argmin())?;
    let graph = device.record((&empty,), |stream, (x,)| {
        let x = x.on(stream);
        Ok((x.sum_axis(1)?, x.prod_axis(1)?))
    })?;
    let (sums, products) = graph.launch(&stream, (&empty,))?;
    same(sums.copy_to_host()?.view(), Array2::zeros((3, 2)).view());
    same(products.copy_to_host()?.view(), Array2::ones((3, 2)).view());

    let ((sender, receiver), other) = (mpsc::channel(), device.stream()?);
    stream.add_callback(move |_| {
        let found = empty.on(&other).prod_axis(1).and_then(|products| {
            let place = numbers.on(&other).argmin()?;
            Ok((products, place))
        });
        drop(sender.send(found));
    })?;
    stream.synchronize()?;
    let Ok(found) = receiver.recv_timeout(Duration::from_secs(20)) else {
        return fail("the callback never ran");
    };
    let (products, place) = found?;
    same(products.copy_to_host()?.view(), Array2::ones((3, 2)).view());
    assert_eq!(place.read()?, 1);
    Ok(())
}

fn axes_and_shapes_that_do_not_fit_are_refused<B: Backend>(lab: &Lab<B>) -> Verdict {
    let array = lab.device().device_array::<i32, _>((2, 3))?;
    let is_beyond = |error: &LayoutError| matches!(error, LayoutError::NoSuchAxis { axis: 2, rank: 2 });
    refused_layout(array.sum_axis(2), is_beyond)?;
    refused_layout(array.prod_axis(2), is_beyond)?;
    refused_layout(array.min_axis(2), is_beyond)?;
    refused_layout(array.mean_axis(2), is_beyond)?;
    refused_layout(array.argmin_axis(2), is_beyond)?;
    refused_layout(array.inclusive_scan(2), is_beyond)?;
    refused_layout(array.exclusive_scan(2), is_beyond)?;
    let other = lab.device().device_array::<u8, _>((3, 2))?;
    let is_other = |error: &LayoutError| matches!(error, LayoutError::ShapeMismatch { .. });
    refused_layout(array.zip_map::<mixed<i32>, _>(&other), is_other)?;
    refused_layout(array.zip_map_sum::<mixed<i32>, _>(&other), is_other)?;
    let other = lab.device().device_array::<u8, _>((2, 3))?;
    refused_layout(array.zip_map_sum_axis::<mixed<i32>, _>(&other, 2), is_beyond)
}

/// Fractions between -1 and 1.
fn fractions(len: usize) -> Array1<f32> {
    let mut dice = Dice(len as u64);
    Array1::from_shape_simple_fn(len, || dice.below(1 << 24) as f32 / (1 << 23) as f32 - 1.0)
}

/// The results whose bits depend on the order of additions.
fn results<T, B: Backend>(device: &Device<B>, host: &ArrayD<T>) -> Result<Vec<u8>>
where
    T: Number,
{
    let (array, mut bytes) = (device.to_device(host)?, Vec::new());
    bytes.extend(bytemuck::bytes_of(&array.sum()?));
    bytes.extend(bytemuck::bytes_of(&array.mean()?));
    for axis in 0..host.ndim() {
        bytes.extend(array.sum_axis(axis)?.copy_to_host()?.iter().flat_map(bytemuck::bytes_of));
        bytes.extend(array.mean_axis(axis)?.copy_to_host()?.iter().flat_map(bytemuck::bytes_of));
        bytes.extend(array.inclusive_scan(axis)?.copy_to_host()?.iter().flat_map(bytemuck::bytes_of));
        bytes.extend(array.exclusive_scan(axis)?.copy_to_host()?.iter().flat_map(bytemuck::bytes_of));
    }
    Ok(bytes)
}

fn floats_have_the_bits_of_the_host<B: Backend>(lab: &Lab<B>) -> Verdict {
    let host = Device::<Host>::open("host")?;
    let shapes: &[&[usize]] = match lab.is_slow() {
        true => &[&[700], &[3, 70, 2]],
        false => &[&[20_000], &[63], &[100, 40], &[2, 2500, 2], &[2, 70, 33]],
    };
    for shape in shapes {
        let values = fractions(shape.iter().product()).into_shape_with_order(*shape);
        let values = values.map_err(|error| Stop::Failed(error.to_string()))?;
        let halves = values.mapv(f16::from_f32);
        assert_eq!(done(results(lab.device(), &values))?, results(&host, &values)?, "f32 {shape:?}");
        assert_eq!(results(lab.device(), &halves)?, results(&host, &halves)?, "f16 {shape:?}");
        if !lab.is_slow() && values.len() < 6000 {
            let (doubles, brains) =
                (values.mapv(|value| f64::from(value) / 3.0), values.mapv(bf16::from_f32));
            assert_eq!(results(lab.device(), &doubles)?, results(&host, &doubles)?, "f64 {shape:?}");
            assert_eq!(results(lab.device(), &brains)?, results(&host, &brains)?, "bf16 {shape:?}");
        }
    }
    Ok(())
}

fn sums_of_floats_are_nearly_exact<B: Backend>(lab: &Lab<B>) -> Verdict {
    let lengths: &[usize] = if lab.is_slow() { &[1000] } else { &[1000, 100_000] };
    for length in lengths {
        let host = fractions(*length);
        let exact: f64 = host.iter().copied().map(f64::from).sum();
        let size: f64 = host.iter().map(|value| f64::from(value.abs())).sum();
        let array = lab.device().to_device(&host)?;
        // Each element takes part in at most 19 additions in each of at most two passes.
        let bound = 38.0 * f64::from(f32::EPSILON) / 2.0 * size;
        let found = f64::from(done(array.sum())?);
        assert!((found - exact).abs() <= bound, "{found} is not {exact}");
        let scanned = array.inclusive_scan(0)?.copy_to_host()?;
        let mut prefix = 0.0;
        for (value, found) in host.iter().zip(scanned) {
            prefix += f64::from(*value);
            let bound = 180.0 * f64::from(f32::EPSILON) / 2.0 * size;
            assert!((f64::from(found) - prefix).abs() <= bound, "{found} is not {prefix}");
        }
    }
    Ok(())
}

#[gpumem_macros::device(crate = self::facade)]
fn product(x: u32, y: u32) -> u32 {
    x * y
}

fn operations_wait_for_late_writers<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (producer, consumer) = (lab.device().stream()?, lab.device().stream()?);
    let mut array = lab.device().device_array::<u32, _>((300, 40))?;
    drop(done(array.on(&consumer).sum())?);
    for value in 1..4u32 {
        lab.delay(&producer)?;
        producer.fill(&mut array, value)?;
        let sum = array.on(&consumer).sum()?;
        let rows = array.on(&consumer).sum_axis(1)?;
        let scanned = array.on(&consumer).exclusive_scan(0)?;
        let products = array.on(&consumer).zip_map_sum::<product, _>(&array)?;
        // Later work on the producer's stream waits for those that read.
        producer.fill(&mut array, 0)?;
        assert_eq!(sum.read()?, u64::from(value) * 12_000);
        assert_eq!(products.read()?, u64::from(value * value) * 12_000);
        assert_eq!(rows.copy_to_host()?, Array1::from_elem(300, u64::from(value) * 40));
        assert_eq!(scanned.get((299, 39))?, u64::from(value) * 299);
        // A stream's operations take the results of another's.
        let total = rows.on(&producer).max()?;
        assert_eq!(total.read()?, u64::from(value) * 40);
    }
    Ok(())
}

fn operands_and_results_are_dropped_with_work_in_flight<B: Backend>(lab: &Lab<B>) -> Verdict {
    let stream = lab.device().stream()?;
    for round in 0..8u32 {
        let array = stream.to_device(&Array2::from_elem((130, 70), round))?;
        if round == 0 {
            drop(done(array.on(&stream).sum())?);
        }
        lab.delay(&stream)?;
        let turned = array.t().on(&stream).inclusive_scan(1)?;
        let sum = array.slice(s![..;2, 1..])?.on(&stream).sum()?;
        drop(array.on(&stream).mean_axis(0)?);
        drop(array.t().on(&stream).argmax()?);
        drop(array);
        assert_eq!(sum.read()?, u64::from(round) * 65 * 69);
        assert_eq!(turned.get((69, 129))?, u64::from(round) * 130);
    }
    // The stream ends before its work.
    let array = lab.device().to_device(&Array1::from_elem(5000, 2i8))?;
    let last = {
        let stream = lab.device().stream()?;
        lab.delay(&stream)?;
        array.on(&stream).inclusive_scan(0)?
    };
    drop(array);
    assert_eq!(last.get(4999)?, 10_000);
    Ok(())
}
