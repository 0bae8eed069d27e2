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
    let step = lanes * inner;
    let from = ((rest / chunks) * length + first + lane) * inner + at % inner;
    // Elements of the lane, at distances of `lanes`.
    let mut count = 0;
    if at < out.len() && first + lane < length {
        count = (length - first - lane + lanes - 1) / lanes;
    }
    let mut best = 0;
    let mut value = T::ZERO;
    for eighth in 0..8 {
        let begin = eighth * 8;
        let from = from + begin * step;
        if begin + 8 <= count {
            // All are read before the first is looked at.
            let (a, b, c, d) = (x[from], x[from + step], x[from + step * 2], x[from + step * 3]);
            let (e, f, g, h) =
                (x[from + step * 4], x[from + step * 5], x[from + step * 6], x[from + step * 7]);
            let (mut its, mut k) = (a, begin);
            if Before(b, its) {
                its = b;
                k = begin + 1;
            }
            if Before(c, its) {
                its = c;
                k = begin + 2;
            }
            if Before(d, its) {
                its = d;
                k = begin + 3;
            }
            if Before(e, its) {
                its = e;
                k = begin + 4;
            }
            if Before(f, its) {
                its = f;
                k = begin + 5;
            }
            if Before(g, its) {
                its = g;
                k = begin + 6;
            }
            if Before(h, its) {
                its = h;
                k = begin + 7;
            }
            if begin == 0 || Before(its, value) {
                value = its;
                best = k;
            }
        } else {
            for j in 0..8 {
                let k = begin + j;
                if k < count {
                    let its = x[from + step * j];
                    if k == 0 || Before(its, value) {
                        value = its;
                        best = k;
                    }
                }
            }
        }
        wavebarrier();
    }
    // The place of no element.
    let mut place = u64::MAX;
    if count > 0 {
        place =
            if places.is_empty() { (first + lane + best * lanes) as u64 } else { places[from + best * step] };
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
