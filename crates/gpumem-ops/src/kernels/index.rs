//! Finds the place of the first element that no other comes before.

use crate::kernel::{BinaryFunction, Numeric, Slice, SliceMut};
use gpumem_core::BarrierScope::Local;
use gpumem_macros::kernel;

/// The kernel, for groups as those of [`reduce`](super::reduce()). It leaves the elements in `values` and their places along
/// the axis in `out`. Launched again on `values`, it takes the places from `places`, which is empty at first.
// SAFETY: as for `reduce`; `places` is empty or has the places of all of `x`, and `values` is as long as `out`.
#[kernel(unsafe, unchecked, crate = crate)]
pub(crate) fn reduce_index<T, Before>(
    x: Slice<T>,
    places: Slice<u64>,
    values: SliceMut<T>,
    out: SliceMut<u64>,
    length: u64,
    inner: u64,
) where
    T: Numeric,
    Before: BinaryFunction<T, T, Output = bool> + 'static,
{
    let row_values = shared::<T>([256]);
    let row_places = shared::<u64>([256]);
    let (lane, row, lanes) = (local_id(0), local_id(1), group_size(0));
    let (length, inner) = (length as usize, inner as usize);
    let at = group_id(0) * group_size(1) + row;
    let chunk_length = lanes * 64;
    let chunks = (length + chunk_length - 1) / chunk_length;
    let rest = at / inner;
    let first = (rest % chunks) * chunk_length;
    let mut from = ((rest / chunks) * length + first + lane) * inner + at % inner;
    let mut k = first + lane;
    let mut end = 0;
    if at < out.len() {
        end = if first + chunk_length < length { first + chunk_length } else { length };
    }
    // The place of no element.
    let mut place = u64::MAX;
    let mut value = T::ZERO;
    for _ in 0..8 {
        for _ in 0..8 {
            if k < end {
                let candidate = x[from];
                if place == u64::MAX || Before(candidate, value) {
                    value = candidate;
                    place = if places.is_empty() { k as u64 } else { places[from] };
                }
                k += lanes;
                from += lanes * inner;
            }
        }
        wavebarrier();
    }
    if lanes > 1 {
        let own = row * lanes + lane;
        row_values[own] = value;
        row_places[own] = place;
        barrier(Local);
        let mut distance = lanes / 2;
        while distance > 0 {
            if lane < distance {
                let (other, its) = (row_values[own + distance], row_places[own + distance]);
                if its != u64::MAX {
                    let mine = row_places[own];
                    let first = row_values[own];
                    if mine == u64::MAX || Before(other, first) || (!Before(first, other) && its < mine) {
                        row_values[own] = other;
                        row_places[own] = its;
                    }
                }
            }
            barrier(Local);
            distance /= 2;
        }
        value = row_values[own];
        place = row_places[own];
    }
    if lane == 0 && at < out.len() {
        values[at] = value;
        out[at] = place;
    }
}
