//! Arrays in files: npy, safetensors and raw ranges as sources of copies to a device, and arrays written to files. Depend on
//! `gpumem`, which re-exports this crate as `gpumem::files`.
//!
//! Opening a file reads its header, and checks all that it says against the rules of the format and the length of the file. A
//! [`FileView`] then is a source as any other: `device.to_device(&view)` reads the elements by several threads into page-locked
//! blocks, while the device copies other blocks. A part of it (`view.slice(s![..])`) reads what it needs.
//!
//! ```
//! use gpumem_files as files;
//! use ndarray::{Ix2, array, s};
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("x.npy");
//! # ndarray_npy::write_npy(&path, &array![[1.0f32, 2.0], [3.0, 4.0]]).unwrap();
//! # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
//! let x = files::npy::<f32, Ix2>(&path)?;
//! assert_eq!(device.to_device(&x)?.copy_to_host()?, array![[1.0, 2.0], [3.0, 4.0]]);
//! assert_eq!(device.to_device(&x.slice(s![.., 1])?)?.copy_to_host()?, array![2.0, 4.0]);
//! # Ok::<(), gpumem_core::Error>(())
//! ```
//!
//! `gpumem::files` says what the formats may hold, and what is refused.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

#[cfg(feature = "npz")]
mod archive;
mod dtype;
mod header;
mod index;
mod json;
mod load;
mod npy;
#[cfg(feature = "npz")]
mod npz;
mod python;
mod safetensors;
mod save;

pub use dtype::Dtype;
pub use gpumem_runtime::{DataFile, FileView, NewFile};
pub use index::safetensors_index;
pub use load::LoadedTensors;
pub use npy::{NpyFile, npy, npy_file};
#[cfg(feature = "npz")]
pub use npz::{Npz, npz, save_npz};
pub use safetensors::{SafeTensors, TensorInfo, safetensors};
pub use save::{NamedTensor, named, save_npy, save_safetensors};

use gpumem_core::{Element, Error, FileError, FileFailure, LayoutError, Result};
use gpumem_runtime::{ArraySpec, IntoArraySpec, Order};
use ndarray::{Dimension, IxDyn};
use std::path::Path;

/// An array of any element whose first byte is so many bytes into a file: no format, no header. The elements have the byte order of
/// this machine.
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("blob");
/// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
/// std::fs::write(&path, [9, 9, 1, 2, 3]).unwrap();
/// let blob = gpumem_files::raw::<u8, _>(&path, 2, 3)?;
/// assert_eq!(device.to_device(&blob)?.copy_to_host()?.to_vec(), [1, 2, 3]);
/// # Ok::<(), gpumem_core::Error>(())
/// ```
///
/// # Errors
/// Returns [`File`](gpumem_core::ErrorKind::File) if the file cannot be opened, is no regular file, or ends before the elements do.
pub fn raw<T: Element, S: IntoArraySpec>(
    path: impl AsRef<Path>,
    offset: u64,
    spec: S,
) -> Result<FileView<T, S::Dim>> {
    const OPERATION: &str = "raw";
    let open = || FileView::new(&DataFile::open(path)?, offset, spec);
    open().map_err(|error| error.in_operation(OPERATION))
}

/// An array of a shape that a file has named.
fn view<T: Element, D: Dimension>(
    file: &DataFile,
    offset: u64,
    shape: &[usize],
    order: Order,
) -> Result<FileView<T, D>> {
    let Some(shape) = D::from_dimension(&IxDyn(shape)) else {
        let error = LayoutError::RankMismatch { found: shape.len(), expected: D::NDIM.unwrap_or_default() };
        return Err(Error::new("", "view", error));
    };
    FileView::new(file, offset, ArraySpec::new(shape).order(order))
}

/// The error of a rule that a file breaks.
fn fail(operation: &'static str, error: FileError) -> Error {
    Error::new("", operation, Box::new(error))
}

/// The error of a format.
fn broken(file: &DataFile, offset: u64, why: &'static str) -> FileError {
    file.error(FileFailure::Format { offset, why })
}
