//! Prefix sums along an axis. The sums of all chunks before each are there already, from [`reduce`](super::reduce()).

use crate::kernel::{Numeric, Slice, SliceMut, UnaryFunction};
use gpumem_core::BarrierScope::Local;
use gpumem_macros::kernel;

/// The kernel for axes of which neighbours lie side by side, or nearly: one group of 256 for each tile of 2048 elements.
/// `before` is empty, or has the sum of all tiles before each. `exclusive` leaves the element itself out.
// SAFETY: each work-item writes its own elements of `out`, and barriers separate the uses of shared arrays. Indices are below the
// number of elements: the caller launches one group for each tile, of lines that are not empty.
// Few elements are on their way for each work-item, so that a multiprocessor needs all of its work-items.
#[kernel(unsafe, unchecked, launch_bounds = (256, 8), crate = crate)]
pub(crate) fn scan_tiles<T, A, R, First, Last>(
    x: Slice<T>,
    before: Slice<A>,
    out: SliceMut<R>,
    length: u64,
    inner: u64,
    exclusive: bool,
) where
    T: Numeric,
    A: Numeric,
    R: Numeric,
    First: UnaryFunction<T, Output = A> + 'static,
    Last: UnaryFunction<A, Output = R> + 'static,
{
    // Each lane sums 8 neighbours; with one place between lanes, these lie in different banks.
    let tile = shared::<A>([2304]);
    let sums = shared::<A>([272]);
    let parts = shared::<A>([16]);
    let lane = local_id(0);
    let (length, inner) = (length as usize, inner as usize);
    let tiles = (length + 2047) / 2048;
    let rest = group_id(0) / inner;
    let start = (rest % tiles) * 2048;
    let from = (rest / tiles) * length * inner + group_id(0) % inner;
    // Without branches, so that the elements are on their way together.
    for j in 0..8 {
        let at = j * 256 + lane;
        let k = start + at;
        let value = First(x[from + (if k < length { k } else { length - 1 }) * inner]);
        tile[at + at / 8] = if k < length { value } else { A::ZERO };
    }
    barrier(Local);
    let mut sum = tile[lane * 9];
    for j in 1..8 {
        sum = sum.plus(tile[lane * 9 + j]);
        tile[lane * 9 + j] = sum;
    }
    // 16 lanes scan the sums of 16 each, one scans those.
    let place = lane + lane / 16;
    sums[place] = sum;
    barrier(Local);
    if lane < 16 {
        let mut part = sums[lane * 17];
        for j in 1..16 {
            part = part.plus(sums[lane * 17 + j]);
            sums[lane * 17 + j] = part;
        }
        parts[lane] = part;
    }
    barrier(Local);
    if lane == 0 {
        let mut part = parts[0];
        for j in 1..16 {
            part = part.plus(parts[j]);
            parts[j] = part;
        }
    }
    barrier(Local);
    let mut offset = if lane % 16 > 0 { sums[place - 1] } else { A::ZERO };
    if lane >= 16 {
        offset = parts[lane / 16 - 1].plus(offset);
    }
    if !before.is_empty() {
        offset = before[group_id(0)].plus(offset);
    }
    let mut previous = A::ZERO;
    for j in 0..8 {
        let inclusive = tile[lane * 9 + j];
        tile[lane * 9 + j] = offset.plus(if exclusive { previous } else { inclusive });
        previous = inclusive;
    }
    barrier(Local);
    for j in 0..8 {
        let at = j * 256 + lane;
        let k = start + at;
        if k < length {
            out[from + k * inner] = Last(tile[at + at / 8]);
        }
    }
}

/// The kernel for all other axes, and for short ones: each work-item of groups along x sums 64 elements in turn.
// SAFETY: each work-item writes its own elements. Indices are below the number of elements: work-items beyond the chunks do
// nothing.
#[kernel(unsafe, unchecked, crate = crate)]
pub(crate) fn scan_columns<T, A, R, First, Last>(
    x: Slice<T>,
    before: Slice<A>,
    out: SliceMut<R>,
    length: u64,
    inner: u64,
    exclusive: bool,
) where
    T: Numeric,
    A: Numeric,
    R: Numeric,
    First: UnaryFunction<T, Output = A> + 'static,
    Last: UnaryFunction<A, Output = R> + 'static,
{
    let (length, inner) = (length as usize, inner as usize);
    let chunks = (length + 63) / 64;
    let at = global_id(0);
    let rest = at / inner;
    let start = (rest % chunks) * 64;
    let mut from = ((rest / chunks) * length + start) * inner + at % inner;
    let mut left = 0;
    let mut sum = A::ZERO;
    if from < x.len() {
        left = if start + 64 < length { 64 } else { length - start };
        if !before.is_empty() {
            sum = before[at];
        }
    }
    // On the host neighbours take turns at the barriers, and read the same lines of the cache one after the other.
    for _ in 0..8 {
        for _ in 0..8 {
            if left > 0 {
                let value = First(x[from]);
                if exclusive {
                    out[from] = Last(sum);
                    sum = sum.plus(value);
                } else {
                    sum = sum.plus(value);
                    out[from] = Last(sum);
                }
                from += inner;
                left -= 1;
            }
        }
        wavebarrier();
    }
}
