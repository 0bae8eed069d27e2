//! Copies between any two layouts on the device, by the kernels of [`gpumem_layout::pack`].
//!
//! [`launch`] loads and launches them. pack.ptx is compiled from their source by build.py, so that no compiler is needed at
//! run time.

mod launch;
#[cfg(test)]
mod tests;

pub(crate) use launch::copy_strided;
