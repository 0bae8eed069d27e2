//! Sorted arrays and the positions of their elements, beside the stable sort of the standard library.

use super::{
    done,
    layouts::{Dice, Layout, types},
    same,
};
use crate::{Lab, Stop, Verdict, refused_layout};
use gpumem_core::{Backend, Element, LayoutError, Result};
use gpumem_ops::{ArrayOps, CastTo, Sortable};
use gpumem_runtime::DeviceArray;
use half::{bf16, f16};
use ndarray::{Array1, Axis, Ix1};
use std::cmp::Ordering;

fn check_layout<T: Sortable, B: Backend>(lab: &Lab<B>, layout: &Layout) -> Verdict
where
    i64: CastTo<T>,
{
    let (array, host) = (layout.upload::<T, B>(lab.device())?, layout.host());
    let view = layout.view(&array)?;
    for axis in 0..host.ndim() {
        let (mut sorted, mut positions) = (host.to_owned(), host.mapv(|_| 0u64));
        for (mut sorted, mut positions) in
            sorted.lanes_mut(Axis(axis)).into_iter().zip(positions.lanes_mut(Axis(axis)))
        {
            let values = sorted.to_vec();
            let mut order: Vec<usize> = (0..values.len()).collect();
            order.sort_by_key(|at| values[*at]);
            sorted.iter_mut().zip(&order).for_each(|(slot, at)| *slot = values[*at]);
            positions.iter_mut().zip(&order).for_each(|(slot, at)| *slot = *at as u64);
        }
        same(done(view.sort(axis))?.copy_to_host()?.view(), sorted.mapv(|value| value.cast_to()).view());
        same(view.argsort(axis)?.copy_to_host()?.view(), positions.view());
    }
    Ok(())
}

pub(super) fn arrays_of_any_layout_are_sorted<B: Backend>(lab: &Lab<B>) -> Verdict {
    match lab.is_slow() {
        true => types!(lab, 120, check_layout: i16 f32),
        false => types!(lab, 2000, check_layout: u8 i16 i32 u64 f16 f32),
    }
}

/// Numbers of all bits, and every third one of the given ones.
fn numbers<T: Element>(len: usize, special: &[T]) -> Result<Vec<T>, Stop> {
    let mut dice = Dice(len as u64);
    let bytes: Vec<u8> = (0..len * size_of::<T>()).map(|_| dice.below(256) as u8).collect();
    let mut numbers: Vec<T> = Vec::new();
    for (at, bytes) in bytes.chunks_exact(size_of::<T>()).enumerate() {
        let number = bytemuck::try_pod_read_unaligned(bytes);
        let number = number.map_err(|error| Stop::Failed(error.to_string()))?;
        numbers.push(if at % 3 == 0 { special[at / 3 % special.len()] } else { number });
    }
    Ok(numbers)
}

/// Several tiles: the elements with their bits, those of a NaN too, and their positions.
fn check_order<T: Sortable, B: Backend>(
    lab: &Lab<B>,
    special: &[T],
    compare: fn(&T, &T) -> Ordering,
) -> Verdict {
    let lengths: &[usize] = if lab.is_slow() { &[4096 + 70] } else { &[1, 255, 4096, 9000] };
    for len in lengths.iter().copied() {
        let host = numbers(len, special)?;
        let array: DeviceArray<T, Ix1, B> = lab.device().to_device(&host)?;
        let mut order: Vec<usize> = (0..len).collect();
        order.sort_by(|a, b| compare(&host[*a], &host[*b]));
        let found = done(array.argsort(0))?.copy_to_host()?;
        same(found.view(), order.iter().map(|at| *at as u64).collect::<Array1<_>>().view());
        let sorted: Vec<T> = order.iter().map(|at| host[*at]).collect();
        let found = array.sort(0)?.copy_to_host()?;
        let bytes = |all: &[T]| all.iter().flat_map(bytemuck::bytes_of).copied().collect::<Vec<u8>>();
        assert_eq!(bytes(&found.to_vec()), bytes(&sorted), "{len}");
    }
    Ok(())
}

pub(super) fn numbers_are_in_a_total_order<B: Backend>(lab: &Lab<B>) -> Verdict {
    macro_rules! integers {
        ($($types:ident)*) => {$(
            check_order::<$types, B>(lab, &[0, $types::MAX, $types::MIN, 1], |a, b| a.cmp(b))?;
        )*};
    }
    macro_rules! floats {
        ($($types:ident)*) => {$({
            let (one, zero, infinity, nan) = (1.0f32, 0.0f32, f32::INFINITY, f32::NAN);
            let special = [one, -one, zero, -zero, infinity, -infinity, nan, -nan].map(|x| x.cast_to());
            check_order::<$types, B>(lab, &special, |a, b| match (a.is_nan(), b.is_nan()) {
                (false, false) => a.total_cmp(b),
                (a, b) => a.cmp(&b),
            })?;
        })*};
    }
    match lab.is_slow() {
        true => {
            integers!(i8);
            floats!(f32);
        }
        false => {
            integers!(u8 i8 u16 i16 u32 i32 u64 i64);
            floats!(f16 bf16 f32 f64);
        }
    }
    Ok(())
}

pub(super) fn sorting_waits_for_late_writers<B: Backend>(lab: &Lab<B>) -> Verdict {
    let (producer, consumer) = (lab.device().stream()?, lab.device().stream()?);
    let down = Array1::from_iter((0..300u16).rev());
    let source = lab.device().to_device(&down)?;
    let mut array = lab.device().device_array::<u16, _>(300)?;
    drop(done(array.on(&consumer).sort(0))?);
    drop(array.on(&consumer).argsort(0)?);
    for _ in 0..3 {
        lab.delay(&producer)?;
        producer.copy_to_device(&mut array, &source)?;
        let sorted = array.on(&consumer).sort(0)?;
        let positions = array.on(&consumer).argsort(0)?;
        // Later work on the producer's stream waits for those that read.
        producer.fill(&mut array, 0)?;
        same(sorted.copy_to_host()?.view(), Array1::from_iter(0..300u16).view());
        same(positions.copy_to_host()?.view(), down.mapv(u64::from).view());
    }
    Ok(())
}

pub(super) fn nothing_to_sort<B: Backend>(lab: &Lab<B>) -> Verdict {
    let empty = lab.device().device_array::<f32, _>((3, 0, 2))?;
    for axis in 0..3 {
        assert_eq!(empty.sort(axis)?.shape(), [3, 0, 2]);
        assert_eq!(empty.argsort(axis)?.shape(), [3, 0, 2]);
    }
    let is_beyond = |error: &LayoutError| matches!(error, LayoutError::NoSuchAxis { axis: 3, rank: 3 });
    refused_layout(empty.sort(3), is_beyond)?;
    refused_layout(empty.argsort(3), is_beyond)?;
    let single = lab.device().to_device(&ndarray::arr0(5i32))?;
    let is_beyond = |error: &LayoutError| matches!(error, LayoutError::NoSuchAxis { axis: 0, rank: 0 });
    refused_layout(single.sort(0), is_beyond)
}
