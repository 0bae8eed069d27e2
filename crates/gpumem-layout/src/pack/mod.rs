//! Copies between any two layouts by this library's kernels, for backends whose devices run CUDA C++ or HIP C++.
//! Nothing here calls a driver.
//!
//! A backend makes a [`Lowered`] of a [`StridedCopy`](gpumem_core::StridedCopy) and launches, for each [`PackLaunch`]
//! of it, the kernel of [`SOURCE`] that [`PackLaunch::family`] names, with [`PackLaunch::argument`] as its only
//! argument. [`StridedKernel::each_unit`] and [`TransposeKernel::each_unit`] say what the kernels do; tests and
//! simulated devices run them instead of the kernels.

mod lower;
#[cfg(test)]
mod tests;
mod work;

pub use lower::Lowered;
pub use work::{PackKernel, PackLaunch, StridedKernel, TransposeKernel};

/// The kernels, in the common subset of CUDA C++ and HIP C++. With the macro `GPUMEM_PACK_UNIT` defined, those for units of
/// so many bytes only.
pub const SOURCE: &str = include_str!("pack.cu");

/// The units that there are kernels for, in bytes.
pub const UNITS: [usize; 5] = [1, 2, 4, 8, 16];
