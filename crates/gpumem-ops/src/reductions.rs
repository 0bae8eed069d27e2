//! Sums, extremes and means: passes of the kernels, until one element is left for each result.

use crate::{
    elements::{Bounded, Summable},
    functions::{
        Cast, CastTo, Checks, First, after, after_both, is_larger, is_smaller, larger, of_first, plus,
        smaller, times,
    },
    kernel::{BinaryFunction, DeviceType, KernelDef, Numeric, UnaryFunction, Value, config_for_items},
    kernels,
    kernels::{CHUNK, GROUP},
    operand::{Operand, check_axis, check_shapes, unwritten},
};
use gpumem_core::{Backend, Element, ErrorKind, LaunchConfig, Result};
use gpumem_runtime::{ArrayBase, DeviceArray, DeviceView, Storage, Stream};
use ndarray::{Dimension, IxDyn};
use std::any::TypeId;

/// An axis that is reduced, between the axes before it and those after it in memory.
#[derive(Clone, Copy)]
pub(crate) struct Line {
    pub(crate) outer: usize,
    pub(crate) length: usize,
    pub(crate) inner: usize,
}

impl Line {
    /// All elements, as one axis.
    pub(crate) fn all(length: usize) -> Self {
        Self { outer: 1, length, inner: 1 }
    }

    /// One axis of an array of this shape.
    pub(crate) fn of(shape: &[usize], axis: usize) -> Self {
        let product = |axes: Option<&[usize]>| axes.unwrap_or_default().iter().product();
        let length = shape.get(axis).copied().unwrap_or(1);
        Self { outer: product(shape.get(..axis)), length, inner: product(shape.get(axis + 1..)) }
    }

    /// Work-items of a group that share an axis. Where neighbours along `inner` are enough to read whole lines of a cache, one.
    fn lanes(self) -> usize {
        match self.inner {
            32.. => 1,
            _ => self.length.div_ceil(CHUNK).next_power_of_two().clamp(1, GROUP as usize),
        }
    }

    /// The line that is left after a pass of `lanes` for each.
    pub(crate) fn reduced(self, lanes: usize) -> Self {
        Self { length: self.length.div_ceil(CHUNK * lanes), ..self }
    }

    /// Elements.
    pub(crate) fn count(self) -> usize {
        // It is at most the number of elements of an array.
        self.outer.saturating_mul(self.length).saturating_mul(self.inner)
    }
}

/// A launch of rows of `lanes` work-items, one for each of `rows`.
fn rows(rows: usize, lanes: usize) -> LaunchConfig {
    let (lanes, rows_of_group) = (lanes as u32, GROUP / lanes as u32);
    let groups = rows.div_ceil(rows_of_group as usize);
    LaunchConfig {
        groups: [u32::try_from(groups).unwrap_or(u32::MAX), 1, 1],
        group_size: [lanes, rows_of_group, 1],
        shared_bytes: 0,
    }
}

/// One pass of [`kernels::reduce`] with that many lanes.
pub(crate) fn pass<T, U, A, F, Join, B: Backend>(
    stream: &Stream<B>,
    (x, y): Pair<'_, '_, '_, T, U, B>,
    line: Line,
    lanes: usize,
    start: A,
    shape: &[usize],
) -> Result<DeviceArray<A, IxDyn, B>>
where
    T: Element + DeviceType,
    U: Element + DeviceType,
    A: Numeric,
    F: BinaryFunction<T, U, Output = A> + Checks + 'static,
    Join: BinaryFunction<A, A, Output = A> + 'static,
{
    let mut out = unwritten::<A, B>(stream, shape)?;
    let key = TypeId::of::<(Pass, T, U, A, F, Join)>();
    let declare = kernels::reduce::<T, U, A, F, Join>;
    let kernel = KernelDef::load_once_by(crate::KEY, stream.device(), key, declare)?;
    let dims = rows(out.len(), lanes);
    kernel.launch(stream, &dims, (x, y, &mut out, Value(start), line.length as u64, line.inner as u64))?;
    Ok(out)
}
struct Pass;
/// Two arrays of which a function takes an element each. A function of one takes the same array twice.
type Pair<'r, 'x, 'y, T, U, B> = (&'r DeviceView<'x, T, IxDyn, B>, &'r DeviceView<'y, U, IxDyn, B>);

/// Joins what a function makes of each line of `x` and `y` to one element, in an array of `shape`.
fn reduced<T, U, A, F, Join, B: Backend>(
    stream: &Stream<B>,
    pair: Pair<'_, '_, '_, T, U, B>,
    line: Line,
    start: A,
    shape: &[usize],
) -> Result<DeviceArray<A, IxDyn, B>>
where
    T: Element + DeviceType,
    U: Element + DeviceType,
    A: CastTo<A>,
    F: BinaryFunction<T, U, Output = A> + Checks + 'static,
    Join: BinaryFunction<A, A, Output = A> + 'static,
{
    let shape_of = |line: Line| if line.length == 1 { shape.to_vec() } else { vec![line.count()] };
    let lanes = line.lanes();
    let mut left = line.reduced(lanes);
    let mut joined = pass::<T, U, A, F, Join, B>(stream, pair, line, lanes, start, &shape_of(left))?;
    while left.length > 1 {
        let lanes = left.lanes();
        let next = left.reduced(lanes);
        let (x, shape) = (joined.view(), shape_of(next));
        let further = pass::<A, A, A, First<A, A>, Join, B>(stream, (&x, &x), left, lanes, start, &shape)?;
        (joined, left) = (further, next);
    }
    Ok(joined)
}

/// Which elements are reduced, and the shape that is left.
struct Target<'a, T: Element, B: Backend> {
    operand: Operand<'a, T, B>,
    line: Line,
    axis: Option<usize>,
    shape: Vec<usize>,
}

impl<'a, T: Element, B: Backend> Target<'a, T, B> {
    fn new<S, D>(stream: &Stream<B>, array: &'a ArrayBase<S, D>, axis: Option<usize>) -> Result<Self>
    where
        S: Storage<Elem = T, Backend = B>,
        D: Dimension,
    {
        let operand = Operand::new(stream, array, None)?;
        Ok(Self::of(operand, axis))
    }

    fn of(operand: Operand<'a, T, B>, axis: Option<usize>) -> Self {
        let mut shape = operand.shape().to_vec();
        let line = match axis {
            None => {
                let line = Line::all(shape.iter().product());
                shape.clear();
                line
            }
            Some(axis) => {
                let place = operand.place_of(axis);
                let line = Line::of(&shape, place);
                if place < shape.len() {
                    shape.remove(place);
                }
                line
            }
        };
        Self { operand, line, axis, shape }
    }

    fn restored<U: Element>(&self, array: DeviceArray<U, IxDyn, B>) -> Result<DeviceArray<U, IxDyn, B>> {
        match self.axis {
            None => Ok(array),
            Some(axis) => self.operand.restored_without(axis, array),
        }
    }

    /// Whether there are no results to compute.
    fn is_empty(&self) -> bool {
        self.line.outer == 0 || self.line.inner == 0
    }

    fn empty<U: Element>(&self, stream: &Stream<B>) -> Result<DeviceArray<U, IxDyn, B>> {
        self.restored(stream.device_array::<U, _>(IxDyn(&self.shape))?)
    }
}

/// Refuses to look for one of no elements.
fn check_some<B: Backend, S: Storage<Backend = B>, D: Dimension>(
    operation: &'static str,
    stream: &Stream<B>,
    array: &ArrayBase<S, D>,
    axis: Option<usize>,
) -> Result<()> {
    check_axis(operation, stream, array, axis)?;
    let length = axis.map_or(array.len(), |axis| array.shape().get(axis).copied().unwrap_or_default());
    match length {
        0 => {
            let why = "there are no elements: no element is the least or the greatest, and they have no mean";
            Err(stream.device().core_by(crate::KEY).error(operation, ErrorKind::InvalidArgument { why }))
        }
        _ => Ok(()),
    }
}

/// Joins what a function makes of the elements along an axis, or of all. `start` is what none are joined to.
fn totals<T, U, R, F, Join, B>(
    stream: &Stream<B>,
    target: &Target<'_, T, B>,
    y: &DeviceView<'_, U, IxDyn, B>,
    start: R::Accumulator,
) -> Result<DeviceArray<R::Sum, IxDyn, B>>
where
    T: Element + DeviceType,
    U: Element + DeviceType,
    R: Summable,
    F: BinaryFunction<T, U, Output = R::Accumulator> + Checks + 'static,
    Join: BinaryFunction<R::Accumulator, R::Accumulator, Output = R::Accumulator> + 'static,
    B: Backend,
{
    if target.is_empty() || target.line.length == 0 {
        let mut of_none = unwritten::<R::Sum, B>(stream, &target.shape)?;
        stream.fill(&mut of_none, start.cast_to())?;
        return target.restored(of_none);
    }
    let x = target.operand.view();
    let joined =
        reduced::<T, U, R::Accumulator, F, Join, B>(stream, (&x, y), target.line, start, &target.shape)?;
    target.restored(R::sums(stream, joined)?)
}

/// The sums, or the products.
pub(crate) fn total<T: Summable, B: Backend, S, D>(
    operation: &'static str,
    stream: &Stream<B>,
    array: &ArrayBase<S, D>,
    axis: Option<usize>,
    is_product: bool,
) -> Result<DeviceArray<T::Sum, IxDyn, B>>
where
    S: Storage<Elem = T, Backend = B>,
    D: Dimension,
{
    check_axis(operation, stream, array, axis)?;
    let target = Target::new(stream, array, axis)?;
    let x = target.operand.view();
    type F<T> = First<T, <T as Summable>::Accumulator>;
    match is_product {
        false => {
            let start = T::Accumulator::ZERO;
            totals::<T, T, T, F<T>, plus<T::Accumulator>, B>(stream, &target, &x, start)
        }
        true => {
            let start = T::Accumulator::ONE;
            totals::<T, T, T, F<T>, times<T::Accumulator>, B>(stream, &target, &x, start)
        }
    }
}

/// The sums of a function of each element.
pub(crate) fn map_sum<R: Summable, F, B: Backend, S, D>(
    operation: &'static str,
    stream: &Stream<B>,
    array: &ArrayBase<S, D>,
    axis: Option<usize>,
) -> Result<DeviceArray<R::Sum, IxDyn, B>>
where
    S: Storage<Elem: DeviceType, Backend = B>,
    F: UnaryFunction<S::Elem, Output = R> + 'static,
    D: Dimension,
{
    check_axis(operation, stream, array, axis)?;
    let target = Target::new(stream, array, axis)?;
    let x = target.operand.view();
    type G<T, R, F> = after<T, R, <R as Summable>::Accumulator, F, Cast<R, <R as Summable>::Accumulator>>;
    type H<T, R, F> = of_first<T, <R as Summable>::Accumulator, G<T, R, F>>;
    let start = R::Accumulator::ZERO;
    totals::<S::Elem, S::Elem, R, H<S::Elem, R, F>, plus<R::Accumulator>, B>(stream, &target, &x, start)
}

/// The sums of a function of the elements of two arrays.
pub(crate) fn zip_map_sum<R: Summable, F, B: Backend, S, X, D>(
    operation: &'static str,
    stream: &Stream<B>,
    array: &ArrayBase<S, D>,
    other: &ArrayBase<X, D>,
    axis: Option<usize>,
) -> Result<DeviceArray<R::Sum, IxDyn, B>>
where
    S: Storage<Elem: DeviceType, Backend = B>,
    X: Storage<Elem: DeviceType, Backend = B>,
    F: BinaryFunction<S::Elem, X::Elem, Output = R> + 'static,
    D: Dimension,
{
    check_axis(operation, stream, array, axis)?;
    check_shapes(operation, stream, array, other)?;
    let target = Target::new(stream, array, axis)?;
    let second = target.operand.beside(stream, other)?;
    type G<T, U, R, F> =
        after_both<T, U, R, <R as Summable>::Accumulator, F, Cast<R, <R as Summable>::Accumulator>>;
    let start = R::Accumulator::ZERO;
    totals::<S::Elem, X::Elem, R, G<S::Elem, X::Elem, R, F>, plus<R::Accumulator>, B>(
        stream,
        &target,
        &second.view(),
        start,
    )
}

pub(crate) fn mean<T: Summable, B: Backend, S, D>(
    operation: &'static str,
    stream: &Stream<B>,
    array: &ArrayBase<S, D>,
    axis: Option<usize>,
) -> Result<DeviceArray<T::Mean, IxDyn, B>>
where
    S: Storage<Elem = T, Backend = B>,
    D: Dimension,
{
    check_some(operation, stream, array, axis)?;
    let target = Target::new(stream, array, axis)?;
    if target.is_empty() {
        return target.empty(stream);
    }
    let (x, start) = (target.operand.view(), T::Accumulator::ZERO);
    let sums =
        reduced::<T, T, _, First<T, _>, plus<_>, B>(stream, (&x, &x), target.line, start, &target.shape)?;
    type Wide<T> = Cast<<T as Summable>::Accumulator, <T as Summable>::Divided>;
    type Last<T> = Cast<<T as Summable>::Divided, <T as Summable>::Mean>;
    struct Key<T>(std::marker::PhantomData<fn(T)>);
    let declare = kernels::divide::<T::Accumulator, T::Divided, T::Mean, Wide<T>, Last<T>>;
    let kernel = KernelDef::load_once_by(crate::KEY, stream.device(), TypeId::of::<Key<T>>(), declare)?;
    let mut means = unwritten::<T::Mean, B>(stream, &target.shape)?;
    let (dims, count) = (config_for_items(means.len(), GROUP), T::divisor(target.line.length));
    kernel.launch(stream, &dims, (&sums, &mut means, Value(count)))?;
    target.restored(means)
}

/// The least elements, or the greatest.
pub(crate) fn extreme<T: Bounded + CastTo<T>, B: Backend, S, D>(
    operation: &'static str,
    stream: &Stream<B>,
    array: &ArrayBase<S, D>,
    axis: Option<usize>,
    greatest: bool,
) -> Result<DeviceArray<T, IxDyn, B>>
where
    S: Storage<Elem = T, Backend = B>,
    D: Dimension,
{
    check_some(operation, stream, array, axis)?;
    let target = Target::new(stream, array, axis)?;
    if target.is_empty() {
        return target.empty(stream);
    }
    let (x, line, shape) = (target.operand.view(), target.line, &target.shape);
    let found = match greatest {
        false => reduced::<T, T, T, First<T, T>, smaller<T>, B>(stream, (&x, &x), line, T::LARGEST, shape),
        true => reduced::<T, T, T, First<T, T>, larger<T>, B>(stream, (&x, &x), line, T::SMALLEST, shape),
    };
    target.restored(found?)
}

/// The places of the least elements, or of the greatest: along the axis, or in row-major order of all.
pub(crate) fn arg_extreme<T: Numeric, B: Backend, S, D>(
    operation: &'static str,
    stream: &Stream<B>,
    array: &ArrayBase<S, D>,
    axis: Option<usize>,
    greatest: bool,
) -> Result<DeviceArray<u64, IxDyn, B>>
where
    S: Storage<Elem = T, Backend = B>,
    D: Dimension,
{
    check_some(operation, stream, array, axis)?;
    let operand = match axis {
        Some(axis) => Operand::new(stream, array, Some(axis))?,
        None => Operand::row_major(stream, array)?,
    };
    let target = Target::of(operand, axis);
    if target.is_empty() {
        return target.empty(stream);
    }
    let found = match greatest {
        false => arg_extremes::<T, is_smaller<T>, B>(stream, &target),
        true => arg_extremes::<T, is_larger<T>, B>(stream, &target),
    };
    target.restored(found?)
}

fn arg_extremes<T: Numeric, Before, B: Backend>(
    stream: &Stream<B>,
    target: &Target<'_, T, B>,
) -> Result<DeviceArray<u64, IxDyn, B>>
where
    Before: BinaryFunction<T, T, Output = bool> + 'static,
{
    struct Key<T>(std::marker::PhantomData<fn(T)>);
    let key = TypeId::of::<Key<(T, Before)>>();
    let kernel =
        KernelDef::load_once_by(crate::KEY, stream.device(), key, kernels::reduce_index::<T, Before>)?;
    let mut line = target.line;
    let mut known: Option<(DeviceArray<T, IxDyn, B>, DeviceArray<u64, IxDyn, B>)> = None;
    let none = stream.device_array::<u64, _>(0)?;
    loop {
        let lanes = line.lanes();
        let left = line.reduced(lanes);
        let shape = if left.length == 1 { target.shape.clone() } else { vec![left.count()] };
        let mut values = unwritten::<T, B>(stream, &shape)?;
        let mut places = unwritten::<u64, B>(stream, &shape)?;
        let (dims, length, inner) = (rows(places.len(), lanes), line.length as u64, line.inner as u64);
        match &known {
            None => {
                let x = target.operand.view();
                kernel.launch(stream, &dims, (&x, &none, &mut values, &mut places, length, inner))?;
            }
            Some((x, from)) => {
                kernel.launch(stream, &dims, (x, from, &mut values, &mut places, length, inner))?;
            }
        }
        if left.length == 1 {
            return Ok(places);
        }
        (known, line) = (Some((values, places)), left);
    }
}
