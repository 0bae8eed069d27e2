//! New arrays of the host.

use super::TUNING;
use gpumem_core::{Element, Error, ErrorKind, Result};
use ndarray::{Array, Dimension, StrideShape};

/// A host array of zeros. Where the memory does not suffice, an error instead of the end of the process.
pub(crate) fn zeros<T: Element, D: Dimension>(
    operation: &'static str,
    shape: StrideShape<D>,
) -> Result<Array<T, D>> {
    let out_of_memory = || {
        let requested = shape.size().saturating_mul(size_of::<T>());
        let kind = ErrorKind::OutOfMemory { requested, kind: "host", free: 0, total: 0, pressure: None };
        Error::new("", operation, kind)
    };
    let elements: Vec<T> =
        bytemuck::allocation::try_zeroed_vec(shape.size()).map_err(|()| out_of_memory())?;
    let bytes = size_of_val(&elements[..]);
    if bytes >= TUNING.huge_pages_from {
        // The pages have not been touched yet; filling them is most of the cost of a large download.
        gpumem_core::process::advise_huge_pages(elements.as_ptr().cast(), bytes);
    }
    Array::from_shape_vec(shape.clone(), elements).map_err(|_| out_of_memory())
}
