//! Copies between any two layouts on the device, by kernels of our own.
//!
//! [`lower`] says which kernel and with what; [`launch`] loads and launches it. pack.ptx is compiled from pack.cu by
//! build.py, so that no compiler is needed at run time.

mod launch;
mod lower;
#[cfg(test)]
mod tests;

pub(crate) use launch::{Packers, copy_strided};
