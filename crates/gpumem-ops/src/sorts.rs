//! Sorting: passes of the kernels, each by one digit of the elements, and then by the digits of the number of their line.

use crate::{
    kernel::{BinaryFunction, DeviceType, KernelDef, Numeric, config_for_items},
    kernels::{self, GROUP},
    operand::{Operand, check_axis, unwritten},
    reductions::Line,
    scans::scanned,
};
use gpumem_core::{Backend, Element, LaunchConfig, Result};
use gpumem_runtime::{ArrayBase, DeviceArray, DeviceView, Storage, Stream};
use half::{bf16, f16};
use ndarray::{Dimension, IxDyn};
use std::{any::TypeId, marker::PhantomData};

/// Elements of one group.
const TILE: usize = 4096;
/// Bits of one pass.
const DIGIT: u32 = 4;

struct Key<T>(PhantomData<fn(T)>);

/// A number by which the operations sort: integers by their values, floats in the order -∞, .., -0.0, 0.0, .., ∞, NaN. All NaN are
/// equal.
pub trait Sortable: Numeric + sealed::Digits {}

mod sealed {
    use super::BinaryFunction;

    /// The digits of a key that is in the order of the numbers.
    pub trait Digits: Sized {
        type Digit: BinaryFunction<Self, (u32, u64, u64), Output = u32> + 'static;
    }
}

macro_rules! sortable {
    ($($number:ident: $digit:ident;)*) => {$(
        impl Sortable for $number {}

        impl sealed::Digits for $number {
            type Digit = kernels::digits::$digit;
        }
    )*};
}
sortable! {
    u8: digit_u8; u16: digit_u16; u32: digit_u32; u64: digit_u64;
    i8: digit_i8; i16: digit_i16; i32: digit_i32; i64: digit_i64;
    f16: digit_f16; bf16: digit_bf16; f32: digit_f32; f64: digit_f64;
}

/// The elements in order, and where they were in memory, if that is wanted.
type Sorted<T, B> = (DeviceArray<T, IxDyn, B>, DeviceArray<u64, IxDyn, B>);

/// One pass, by the digit from bit `shift` on.
fn moved<T, Digit, B: Backend>(
    stream: &Stream<B>,
    x: &DeviceView<'_, T, IxDyn, B>,
    (places, with_places): (&DeviceView<'_, u64, IxDyn, B>, bool),
    shift: u32,
    line: Line,
) -> Result<Sorted<T, B>>
where
    T: Element + DeviceType,
    Digit: BinaryFunction<T, (u32, u64, u64), Output = u32> + 'static,
{
    let tiles = x.len().div_ceil(TILE);
    let dims = LaunchConfig {
        groups: [u32::try_from(tiles).unwrap_or(u32::MAX), 1, 1],
        group_size: [GROUP, 1, 1],
        shared_bytes: 0,
    };
    let (length, inner) = (line.length as u64, line.inner as u64);
    let mut counts = unwritten::<u32, B>(stream, &[tiles << DIGIT])?;
    let key = TypeId::of::<Key<(T, Digit)>>();
    let declare = kernels::sort::count_digits::<T, Digit>;
    let kernel = KernelDef::load_once_by(crate::KEY, stream.device(), key, declare)?;
    kernel.launch(stream, &dims, (x, &mut counts, shift, length, inner))?;
    let all = Line::all(counts.len());
    let before = scanned::<u32, u64, u64, B>(stream, &counts.view(), all, &[all.length], true)?;

    let mut out = unwritten::<T, B>(stream, &[x.len()])?;
    let mut places_out = unwritten::<u64, B>(stream, &[if with_places { x.len() } else { 0 }])?;
    let key = TypeId::of::<Key<(Digit, T)>>();
    let declare = kernels::sort::move_by_digit::<T, Digit>;
    let kernel = KernelDef::load_once_by(crate::KEY, stream.device(), key, declare)?;
    kernel.launch(stream, &dims, (x, places, &before, &mut out, &mut places_out, shift, length, inner))?;
    Ok((out, places_out))
}

/// All passes by the elements, of all lines at once. With places or without.
fn by_elements<T: Sortable, B: Backend>(
    stream: &Stream<B>,
    x: &DeviceView<'_, T, IxDyn, B>,
    line: Line,
    with_places: bool,
) -> Result<Sorted<T, B>> {
    let none = unwritten::<u64, B>(stream, &[0])?;
    let mut sorted = moved::<T, T::Digit, B>(stream, x, (&none.view(), with_places), 0, line)?;
    for shift in (DIGIT..8 * size_of::<T>() as u32).step_by(DIGIT as usize) {
        let places = (&sorted.1.view(), with_places);
        sorted = moved::<T, T::Digit, B>(stream, &sorted.0.view(), places, shift, line)?;
    }
    Ok(sorted)
}

/// Where the elements of each sorted line lie in memory, one line behind the other.
fn sorted_places<T: Sortable, B: Backend>(
    stream: &Stream<B>,
    x: &DeviceView<'_, T, IxDyn, B>,
    line: Line,
) -> Result<DeviceArray<u64, IxDyn, B>> {
    let (_, mut places) = by_elements(stream, x, line, true)?;
    let none = unwritten::<u64, B>(stream, &[0])?;
    // The passes by lines keep the order of the elements of each.
    let last = (line.outer * line.inner) as u64 - 1;
    for shift in (0..u64::BITS - last.leading_zeros()).step_by(DIGIT as usize) {
        let (x, none) = (places.view(), (&none.view(), false));
        (places, _) = moved::<u64, kernels::digits::digit_of_line, B>(stream, &x, none, shift, line)?;
    }
    Ok(places)
}

/// The elements along an axis in order.
pub(crate) fn sort<T: Sortable, B: Backend, S, D>(
    stream: &Stream<B>,
    array: &ArrayBase<S, D>,
    axis: usize,
) -> Result<DeviceArray<T, IxDyn, B>>
where
    S: Storage<Elem = T, Backend = B>,
    D: Dimension,
{
    check_axis("sort", stream, array, Some(axis))?;
    let operand = Operand::at_one_time(stream, array, axis)?;
    let shape = operand.shape();
    let line = Line::of(&shape, operand.place_of(axis));
    let x = operand.view();
    if line.length > 0 && line.outer * line.inner == 1 {
        let (sorted, _) = by_elements(stream, &x, line, false)?;
        return operand.restored(sorted.into_elements(IxDyn(&shape))?);
    }
    let mut out = unwritten::<T, B>(stream, &shape)?;
    if out.is_empty() {
        return operand.restored(out);
    }
    let places = sorted_places(stream, &x, line)?;
    let key = TypeId::of::<Key<T>>();
    let declare = kernels::sort::sorted_elements::<T>;
    let kernel = KernelDef::load_once_by(crate::KEY, stream.device(), key, declare)?;
    let dims = config_for_items(out.len(), GROUP);
    kernel.launch(stream, &dims, (&x, &places, &mut out, line.length as u64, line.inner as u64))?;
    operand.restored(out)
}

/// The positions along an axis in the order of the elements.
pub(crate) fn argsort<T: Sortable, B: Backend, S, D>(
    stream: &Stream<B>,
    array: &ArrayBase<S, D>,
    axis: usize,
) -> Result<DeviceArray<u64, IxDyn, B>>
where
    S: Storage<Elem = T, Backend = B>,
    D: Dimension,
{
    check_axis("argsort", stream, array, Some(axis))?;
    let operand = Operand::at_one_time(stream, array, axis)?;
    let shape = operand.shape();
    let line = Line::of(&shape, operand.place_of(axis));
    let mut out = unwritten::<u64, B>(stream, &shape)?;
    if out.is_empty() {
        return operand.restored(out);
    }
    let places = sorted_places(stream, &operand.view(), line)?;
    let key = TypeId::of::<Key<()>>();
    let declare = kernels::sort::sorted_positions;
    let kernel = KernelDef::load_once_by(crate::KEY, stream.device(), key, declare)?;
    let dims = config_for_items(out.len(), GROUP);
    kernel.launch(stream, &dims, (&places, &mut out, line.length as u64, line.inner as u64))?;
    operand.restored(out)
}
