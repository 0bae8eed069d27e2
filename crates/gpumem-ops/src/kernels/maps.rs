//! One element from two.

use crate::kernel::{BinaryFunction, DeviceType, Numeric, Own, Slice, SliceMut, UnaryFunction, Value};
use gpumem_core::Element;
use gpumem_macros::kernel;

/// The kernel, for groups along x each of whose work-items takes [`RUN`](super::RUN) elements of each array, at distances of the group's
/// size. It reads all of them before it writes the first: so a GPU has enough in flight to use the whole of its memory's bandwidth.
// SAFETY: each work-item writes its own elements. Those of `x` and `y` are as many as those of `out`, and indices are below their number.
// What the function does is checked.
#[kernel(unsafe, unchecked, crate = crate)]
pub(crate) fn zip_map<T, U, R, F>(x: Slice<T>, y: Slice<U>, out: SliceMut<R>)
where
    T: Element + DeviceType,
    U: Element + DeviceType,
    R: Element + DeviceType,
    F: BinaryFunction<T, U, Output = R> + 'static,
{
    let step = group_size(0);
    let i = group_id(0) * step * 4 + local_id(0);
    let (j, k, l) = (i + step, i + step * 2, i + step * 3);
    if i < out.len() {
        let last = out.len() - 1;
        let (second, third, fourth) = (j.min(last), k.min(last), l.min(last));
        let (a, b, c, d) = (x[i], x[second], x[third], x[fourth]);
        let (e, f, g, h) = (y[i], y[second], y[third], y[fourth]);
        out[i] = F(a, e);
        if j < out.len() {
            out[j] = F(b, f);
        }
        if k < out.len() {
            out[k] = F(c, g);
        }
        if l < out.len() {
            out[l] = F(d, h);
        }
    }
}

/// Divides sums by the number of their elements.
#[kernel(crate = crate)]
pub(crate) fn divide<A, D, R, First, Last>(sums: Slice<A>, out: Own<R>, count: Value<D>)
where
    A: Numeric,
    D: Numeric,
    R: Numeric,
    First: UnaryFunction<A, Output = D> + 'static,
    Last: UnaryFunction<D, Output = R> + 'static,
{
    let at = own();
    if at[0] < out.len() {
        out[at] = Last(First(sums[at[0]]) / count);
    }
}
