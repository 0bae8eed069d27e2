//! Prefix sums: the sum of each chunk, the sums of all chunks before each, then the elements.

use crate::{
    elements::Summable,
    functions::{Cast, CastTo, First, plus},
    kernel::{KernelDef, Numeric, config_for_items},
    kernels::{self, CHUNK, GROUP, TILE},
    operand::{Operand, check_axis, unwritten},
    reductions::{Line, pass},
};
use gpumem_core::{Backend, LaunchConfig, Result};
use gpumem_runtime::{ArrayBase, DeviceArray, DeviceView, Storage, Stream};
use ndarray::{Dimension, IxDyn};
use std::{any::TypeId, marker::PhantomData};

pub(crate) fn scan<T: Summable, B: Backend, S, D>(
    operation: &'static str,
    stream: &Stream<B>,
    array: &ArrayBase<S, D>,
    axis: usize,
    exclusive: bool,
) -> Result<DeviceArray<T::Sum, IxDyn, B>>
where
    S: Storage<Elem = T, Backend = B>,
    D: Dimension,
{
    check_axis(operation, stream, array, Some(axis))?;
    let operand = Operand::at_one_time(stream, array, axis)?;
    let shape = operand.shape();
    let line = Line::of(&shape, operand.place_of(axis));
    if line.count() == 0 {
        return operand.restored(stream.device_array::<T::Sum, _>(IxDyn(&shape))?);
    }
    let sums = scanned::<T, T::Accumulator, T::Sum, B>(stream, &operand.view(), line, &shape, exclusive)?;
    operand.restored(sums)
}

/// Scans each line of `x`. The sums are added as `A`, and stored as `R`.
pub(crate) fn scanned<T, A, R, B: Backend>(
    stream: &Stream<B>,
    x: &DeviceView<'_, T, IxDyn, B>,
    line: Line,
    shape: &[usize],
    exclusive: bool,
) -> Result<DeviceArray<R, IxDyn, B>>
where
    T: CastTo<A>,
    A: CastTo<A> + CastTo<R>,
    R: Numeric,
{
    let in_tiles = line.inner < 32 && line.length > CHUNK;
    let lanes = if in_tiles { TILE / CHUNK } else { 1 };
    let chunks = line.reduced(lanes);
    let before = match chunks.length {
        // Without elements.
        1 => unwritten::<A, B>(stream, &[0])?,
        _ => {
            let (sums, start) = ([chunks.count()], <A as Numeric>::ZERO);
            let totals = pass::<T, T, A, First<T, A>, plus<A>, B>(stream, (x, x), line, lanes, start, &sums)?;
            scanned::<A, A, A, B>(stream, &totals.view(), chunks, &sums, true)?
        }
    };
    let mut out = unwritten::<R, B>(stream, shape)?;
    struct Key<T>(PhantomData<fn(T)>);
    let key = match in_tiles {
        true => TypeId::of::<Key<(T, A, R, bool)>>(),
        false => TypeId::of::<Key<(T, A, R)>>(),
    };
    let kernel = KernelDef::load_once_by(crate::KEY, stream.device(), key, || match in_tiles {
        true => kernels::scan_tiles::<T, A, R, Cast<T, A>, Cast<A, R>>(),
        false => kernels::scan_columns::<T, A, R, Cast<T, A>, Cast<A, R>>(),
    })?;
    let dims = match in_tiles {
        true => LaunchConfig {
            groups: [u32::try_from(chunks.count()).unwrap_or(u32::MAX), 1, 1],
            group_size: [GROUP, 1, 1],
            shared_bytes: 0,
        },
        false => config_for_items(chunks.count(), GROUP),
    };
    let (length, inner) = (line.length as u64, line.inner as u64);
    kernel.launch(stream, &dims, (x, &before, &mut out, length, inner, exclusive))?;
    Ok(out)
}
