//! NumPy's npy files.

use crate::{broken, fail, header, python, view};
use gpumem_core::{DescriptorError, Element, FileError, FileFailure, Result};
use gpumem_runtime::{DataFile, ElementType, FileView, Order};
use ndarray::Dimension;
use std::path::Path;

const MAGIC: &[u8] = b"\x93NUMPY";
/// Most bytes of a header: NumPy writes about a hundred.
const MOST: u64 = 64 << 10;

/// The array of an npy file, version 1.0 to 3.0, in C or Fortran order. Bytes after the elements are ignored, as NumPy does.
/// ```
/// # use ndarray::{Ix1, array};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("x.npy");
/// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
/// # ndarray_npy::write_npy(&path, &array![1, 2, 3]).unwrap();
/// let x = gpumem_files::npy::<i32, Ix1>(&path)?;
/// assert_eq!(device.to_device(&x)?.copy_to_host()?, array![1, 2, 3]);
/// assert!(gpumem_files::npy::<f32, Ix1>(&path).is_err()); // of other elements
/// # Ok::<(), gpumem_core::Error>(())
/// ```
///
/// # Errors
/// Returns [`File`](gpumem_core::ErrorKind::File) if the file cannot be read, is no npy file, ends before its elements do, or has
/// elements of another type, of another byte order, or that are objects or texts. Returns
/// [`RankMismatch`](gpumem_core::LayoutError::RankMismatch) if it has another number of axes.
pub fn npy<T: Element, D: Dimension>(path: impl AsRef<Path>) -> Result<FileView<T, D>> {
    const OPERATION: &str = "npy";
    let file = DataFile::open(path).map_err(|error| error.in_operation(OPERATION))?;
    let (header, start) = read(&file).map_err(|error| fail(OPERATION, error))?;
    check::<T>(&file, &header).map_err(|error| fail(OPERATION, error))?;
    let order = if header.fortran_order { Order::F } else { Order::C };
    view(&file, start, &header.shape, order).map_err(|error| error.in_operation(OPERATION))
}

/// Reads the header, and where the elements begin.
fn read(file: &DataFile) -> Result<(python::NpyHeader, u64), FileError> {
    const SHORT: u64 = 10;
    if file.len() < SHORT {
        return Err(broken(file, 0, "it is too short for an npy file"));
    }
    let first = header::read(file, 0, ("the beginning", SHORT, SHORT))?;
    let (Some(MAGIC), Some(&[major, minor, low, high])) = (first.get(..6), first.get(6..)) else {
        return Err(broken(file, 0, "it does not begin as an npy file"));
    };
    let (begin, length) = match (major, minor) {
        (1, 0) => (SHORT, u64::from(u16::from_le_bytes([low, high]))),
        (2 | 3, 0) => {
            let more = header::read(file, SHORT, ("the beginning", 2, 2))?;
            let [third, fourth] = more.try_into().unwrap_or_default();
            (SHORT + 2, u64::from(u32::from_le_bytes([low, high, third, fourth])))
        }
        _ => return Err(broken(file, 6, "the version of the format is 1.0, 2.0 or 3.0")),
    };
    let text = header::read(file, begin, ("a header", length, MOST))?;
    let header = python::parse(&text)
        .map_err(|wrong| broken(file, begin.saturating_add(wrong.at as u64), wrong.why))?;
    Ok((header, begin + length))
}

/// Checks that the elements can be taken as `T`.
fn check<T: Element>(file: &DataFile, header: &python::NpyHeader) -> Result<(), FileError> {
    let found: ElementType = header.descr.parse().map_err(|error| match error {
        DescriptorError::TypeName { why, .. } => broken(file, 10, why),
        _ => broken(file, 10, "the type of the elements is unknown"),
    })?;
    ElementType::check::<T>(found).map_err(|_| {
        let (found, expected) = (header.descr.clone(), ElementType::of::<T>().to_string());
        file.error(FileFailure::Element { tensor: String::new(), found, expected })
    })
}
