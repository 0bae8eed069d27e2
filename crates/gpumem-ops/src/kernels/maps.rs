//! One element from one, or from two.

use crate::kernel::{BinaryFunction, DeviceType, Numeric, Own, Slice, UnaryFunction, Value};
use gpumem_core::Element;
use gpumem_macros::kernel;

/// The kernel, for groups along x that cover `out`.
#[kernel(crate = crate)]
pub(crate) fn map<T, R, F>(x: Slice<T>, out: Own<R>)
where
    T: Element + DeviceType,
    R: Element + DeviceType,
    F: UnaryFunction<T, Output = R> + 'static,
{
    let at = own();
    if at[0] < out.len() {
        out[at] = F(x[at[0]]);
    }
}

/// As [`map`], with an element of each of two arrays.
#[kernel(crate = crate)]
pub(crate) fn zip_map<T, U, R, F>(x: Slice<T>, y: Slice<U>, out: Own<R>)
where
    T: Element + DeviceType,
    U: Element + DeviceType,
    R: Element + DeviceType,
    F: BinaryFunction<T, U, Output = R> + 'static,
{
    let at = own();
    if at[0] < out.len() {
        out[at] = F(x[at[0]], y[at[0]]);
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
