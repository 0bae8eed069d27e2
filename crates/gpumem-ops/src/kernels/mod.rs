//! The kernels, as Rust functions. All take packed arrays; `length` is that of the axis they work along, `inner` the number of
//! elements from one to the next along it.

#![allow(clippy::manual_div_ceil, clippy::manual_is_multiple_of)] // kernels are closer to C++

pub(crate) mod digits;
mod index;
mod maps;
mod on_host;
mod random;
#[cfg(test)]
mod random_tests;
mod reduce;
mod scan;
pub(crate) mod sort;
#[cfg(test)]
#[allow(clippy::panic, clippy::unwrap_used)] // helpers of tests
mod tests;

pub(crate) use maps::divide;
pub(crate) use random::{normal_f32, normal_f64, random, uniform_f32, uniform_f64};
pub(crate) use scan::scan_columns;

use crate::functions::Checks;
use crate::kernel::{BinaryFunction, DeviceType, KernelDef, Numeric, UnaryFunction};
use gpumem_core::Element;

/// The kernel [`reduce`](reduce::reduce), with a body of its own for the host.
pub(crate) fn reduce<T, U, A, First, Join>() -> KernelDef<on_host::Reduce<T, U, A>>
where
    T: Element + DeviceType,
    U: Element + DeviceType,
    A: Numeric,
    First: BinaryFunction<T, U, Output = A> + Checks + 'static,
    Join: BinaryFunction<A, A, Output = A> + 'static,
{
    let kernel = reduce::reduce::<T, U, A, First, Join>();
    let kernel = if First::NEEDED { kernel.checks_functions_by(crate::KEY) } else { kernel };
    // SAFETY: it writes the same elements, each group those that are its own.
    unsafe { kernel.unsealed() }.host_groups(on_host::reduce::<T, U, A, First, Join>).sealed()
}

/// The kernel [`zip_map`](maps::zip_map), with a body of its own for the host.
pub(crate) fn zip_map<T, U, R, F>() -> KernelDef<on_host::ZipMap<T, U, R>>
where
    T: Element + DeviceType,
    U: Element + DeviceType,
    R: Element + DeviceType,
    F: BinaryFunction<T, U, Output = R> + 'static,
{
    let kernel = maps::zip_map::<T, U, R, F>().checks_functions_by(crate::KEY);
    // SAFETY: as above.
    unsafe { kernel.unsealed() }.host_groups(on_host::zip_map::<T, U, R, F>).sealed()
}

/// The kernel [`reduce_index`](index::reduce_index), with a body of its own for the host.
pub(crate) fn reduce_index<T, Before>() -> KernelDef<on_host::ReduceIndex<T>>
where
    T: Numeric,
    Before: BinaryFunction<T, T, Output = bool> + 'static,
{
    let kernel = index::reduce_index::<T, Before>();
    // SAFETY: as above.
    unsafe { kernel.unsealed() }.host_groups(on_host::reduce_index::<T, Before>).sealed()
}

/// The kernel [`scan_tiles`](scan::scan_tiles), with a body of its own for the host.
pub(crate) fn scan_tiles<T, A, R, First, Last>() -> KernelDef<on_host::Scan<T, A, R>>
where
    T: Numeric,
    A: Numeric,
    R: Numeric,
    First: UnaryFunction<T, Output = A> + 'static,
    Last: UnaryFunction<A, Output = R> + 'static,
{
    let kernel = scan::scan_tiles::<T, A, R, First, Last>();
    // SAFETY: as above.
    unsafe { kernel.unsealed() }.host_groups(on_host::scan_tiles::<T, A, R, First, Last>).sealed()
}

/// Work-items of every group.
pub(crate) const GROUP: u32 = 256;
/// Elements that one work-item of [`reduce()`] and [`scan_columns()`] takes.
pub(crate) const CHUNK: usize = 64;
/// Elements that one group of [`scan_tiles()`] takes.
pub(crate) const TILE: usize = 2048;
/// Elements that one work-item of [`zip_map()`] takes.
pub(crate) const RUN: usize = 4;
