//! Launching bodies over memory of the test.
#![allow(dead_code, clippy::unwrap_used)] // shared by tests, not each of which needs all

use gpumem_core::{HostFunction, HostLaunch, KernelArgument, LaunchDims};

/// The argument for a `Slice` or `SliceMut`.
pub(crate) fn slice<T>(elements: &mut [T]) -> KernelArgument {
    let words = [elements.as_mut_ptr().expose_provenance() as u64, elements.len() as u64];
    KernelArgument::new(words).unwrap()
}

/// The argument for a `View` or `ViewMut`.
pub(crate) fn view<T, const N: usize>(
    first: *mut T,
    extents: [usize; N],
    strides: [isize; N],
) -> KernelArgument {
    let mut words = vec![first.expose_provenance() as u64];
    words.extend(extents.iter().map(|extent| *extent as u64));
    words.extend(strides.iter().map(|stride| *stride as u64));
    KernelArgument::from_bytes(bytemuck::cast_slice(&words)).unwrap()
}

pub(crate) fn dims(groups: [u32; 3], group_size: [u32; 3]) -> LaunchDims {
    LaunchDims { groups, group_size, shared_bytes: 0 }
}

pub(crate) fn launch(
    function: &HostFunction,
    dims: LaunchDims,
    arguments: &[KernelArgument],
) -> Result<(), String> {
    function.call(HostLaunch { dims, arguments })
}
