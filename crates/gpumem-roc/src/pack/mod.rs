//! Copies between any two layouts on the device, by the kernels of [`gpumem_layout::pack`].
//!
//! [`launch`] compiles those of a unit when they are needed for the first time, and launches them.

mod launch;

pub(crate) use launch::copy_strided;
