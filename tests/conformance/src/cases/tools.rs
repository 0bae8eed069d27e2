//! Helpers of several files of cases.

use crate::{Lab, Stop, Verdict, skip};
use gpumem_core::{Backend, Element, ErrorKind};
use gpumem_kernel::{Kernel, KernelDef, Parameters};
use ndarray::{Array3, ArrayView, Dimension};

/// `len` elements of reproducible bits.
pub(super) fn elements<T: Element>(len: usize) -> Vec<T> {
    let size = size_of::<T>();
    let bytes: Vec<u8> = (0..len * size).map(|at| (at * 37 + at / 251 + 11) as u8).collect();
    bytes.chunks_exact(size).map(bytemuck::pod_read_unaligned).collect()
}

/// Checks that two arrays have the same shape and the same bits.
#[track_caller]
pub(super) fn same<T: Element, D: Dimension>(found: ArrayView<'_, T, D>, expected: ArrayView<'_, T, D>) {
    assert_eq!(found.shape(), expected.shape());
    let differs = |(left, right): (&T, &T)| bytemuck::bytes_of(left) != bytemuck::bytes_of(right);
    if let Some(at) = found.iter().zip(expected).position(differs) {
        let name = std::any::type_name::<T>();
        assert_eq!(at, found.len(), "element {at} of {name} in shape {:?} differs", found.shape());
    }
}

/// 2 x 3 x 4 elements that tell their own index.
pub(super) fn cube() -> Array3<u32> {
    Array3::from_shape_fn((2, 3, 4), |(i, j, k)| (100 * i + 10 * j + k) as u32)
}

/// A failure with a text of its own.
pub(super) fn fail<T>(message: impl ToString) -> Verdict<T> {
    Err(Stop::Failed(message.to_string()))
}

/// The kernel for the device under test, or a skip where it takes none.
pub(super) fn load<P: Parameters, B: Backend>(
    lab: &Lab<B>,
    declaration: &KernelDef<P>,
) -> Verdict<Kernel<P, B>> {
    let declaration = declaration.clone().race_checks(true);
    match declaration.load(lab.device()) {
        Ok(kernel) => Ok(kernel),
        Err(error) if matches!(error.kind(), ErrorKind::Unsupported { .. } | ErrorKind::Load(_)) => {
            skip(error)
        }
        Err(error) => Err(error.into()),
    }
}
