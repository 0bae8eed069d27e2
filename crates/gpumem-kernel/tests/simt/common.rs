//! Launching bodies over memory of the test.
#![allow(dead_code, clippy::unwrap_used)] // shared by tests, not each of which needs all

use gpumem_core::{HostFunction, HostLaunch, KernelArguments, LaunchConfig};

/// The argument for a `Slice` or `SliceMut`.
pub(crate) fn slice<T>(elements: &mut [T]) -> Vec<u8> {
    let words = [elements.as_mut_ptr().expose_provenance() as u64, elements.len() as u64];
    value(words)
}

/// The argument for a `View` or `ViewMut`.
pub(crate) fn view<T, const N: usize>(first: *mut T, extents: [usize; N], strides: [isize; N]) -> Vec<u8> {
    let mut words = vec![first.expose_provenance() as u64];
    words.extend(extents.iter().map(|extent| *extent as u64));
    words.extend(strides.iter().map(|stride| *stride as u64));
    bytemuck::cast_slice(&words).to_vec()
}

/// The argument for a plain value.
pub(crate) fn value<T: bytemuck::Pod>(value: T) -> Vec<u8> {
    bytemuck::bytes_of(&value).to_vec()
}

pub(crate) fn dims(groups: [u32; 3], group_size: [u32; 3]) -> LaunchConfig {
    LaunchConfig { groups, group_size, shared_bytes: 0 }
}

pub(crate) fn launch(function: &HostFunction, dims: LaunchConfig, bytes: &[Vec<u8>]) -> Result<(), String> {
    let mut arguments = KernelArguments::new();
    bytes.iter().for_each(|bytes| arguments.push_bytes(bytes).unwrap());
    // SAFETY: the tests pass memory of their own for each array; a number or a size of arguments that is wrong is an error.
    unsafe { function.call(HostLaunch { dims, arguments: &arguments }) }
}
