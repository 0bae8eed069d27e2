//! Reduces along an axis: each row of work-items joins 64 elements for each of its lanes.

use crate::kernel::{BinaryFunction, DeviceType, Numeric, Slice, SliceMut, Value};
use gpumem_core::{BarrierScope::Local, Element};
use gpumem_macros::kernel;

/// The kernel, for groups of `lanes` by `256 / lanes` along x that cover `out`. An element of `out` joins `64 * lanes`
/// elements; where an axis is longer, `out` has more of them for each, and the kernel runs again on `out`.
///
/// The order of the joins depends on `length` and `lanes` alone, so that every device has the same bits. Lane `l` has the
/// elements `l`, `l + lanes`, .. of its chunk, and joins each eighth of them on its own; then pairs of these, then lanes at
/// half the distance, a quarter, and so on.
///
/// The barriers of waves cost a GPU next to nothing. On the host, work-items take turns there, so that neighbours read the same
/// lines of the cache one after the other.
// SAFETY: each row writes its own element. The lanes of a row exchange values after barriers. Indices are below the number of
// elements, `outer * length * inner`, which the caller gives with an `out` of `outer * chunks * inner`. Where it calls a function of the
// caller's, what that does is checked.
// A work-item has 16 elements of two arrays in flight, and accumulators: without the bounds a compiler spares registers, and waits for
// the elements one after the other.
#[kernel(unsafe, unchecked, launch_bounds = (256, 4), crate = crate)]
pub(crate) fn reduce<T, U, A, First, Join>(
    x: Slice<T>,
    y: Slice<U>,
    out: SliceMut<A>,
    start: Value<A>,
    length: u64,
    inner: u64,
) where
    T: Element + DeviceType,
    U: Element + DeviceType,
    A: Numeric,
    First: BinaryFunction<T, U, Output = A> + 'static,
    Join: BinaryFunction<A, A, Output = A> + 'static,
{
    let joined = shared::<A>([256]);
    let (lane, row, lanes) = (local_id(0), local_id(1), group_size(0));
    let (length, inner) = (length as usize, inner as usize);
    let at = group_id(0) * group_size(1) + row;
    let chunk_length = lanes * 64;
    let chunks = (length + chunk_length - 1) / chunk_length;
    let step = lanes * inner;
    let rest = at / inner;
    let first = (rest % chunks) * chunk_length;
    let mut from = ((rest / chunks) * length + first + lane) * inner + at % inner;
    // How many elements the lane has yet, at distances of `lanes`.
    let mut left = 0;
    if at < out.len() && first + lane < length {
        left = (length - first - lane + lanes - 1) / lanes;
    }
    let (mut a, mut b, mut c, mut d) = (start, start, start, start);
    let (mut e, mut f, mut g, mut h) = (start, start, start, start);
    for _ in 0..8 {
        if left >= 8 {
            a = Join(a, First(x[from], y[from]));
            b = Join(b, First(x[from + step], y[from + step]));
            c = Join(c, First(x[from + step * 2], y[from + step * 2]));
            d = Join(d, First(x[from + step * 3], y[from + step * 3]));
            e = Join(e, First(x[from + step * 4], y[from + step * 4]));
            f = Join(f, First(x[from + step * 5], y[from + step * 5]));
            g = Join(g, First(x[from + step * 6], y[from + step * 6]));
            h = Join(h, First(x[from + step * 7], y[from + step * 7]));
            from += step * 8;
            left -= 8;
        } else {
            if left > 0 {
                a = Join(a, First(x[from], y[from]));
            }
            if left > 1 {
                b = Join(b, First(x[from + step], y[from + step]));
            }
            if left > 2 {
                c = Join(c, First(x[from + step * 2], y[from + step * 2]));
            }
            if left > 3 {
                d = Join(d, First(x[from + step * 3], y[from + step * 3]));
            }
            if left > 4 {
                e = Join(e, First(x[from + step * 4], y[from + step * 4]));
            }
            if left > 5 {
                f = Join(f, First(x[from + step * 5], y[from + step * 5]));
            }
            if left > 6 {
                g = Join(g, First(x[from + step * 6], y[from + step * 6]));
            }
            left = 0;
        }
        wavebarrier();
    }
    let mut all = Join(Join(Join(a, b), Join(c, d)), Join(Join(e, f), Join(g, h)));
    if lanes > 1 {
        let place = row * lanes + lane;
        joined[place] = all;
        barrier(Local);
        let mut distance = lanes / 2;
        while distance > 0 {
            if lane < distance {
                joined[place] = Join(joined[place], joined[place + distance]);
            }
            barrier(Local);
            distance /= 2;
        }
        all = joined[place];
    }
    if lane == 0 && at < out.len() {
        out[at] = all;
    }
}
