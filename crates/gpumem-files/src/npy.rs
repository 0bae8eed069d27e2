//! NumPy's npy files.

use crate::{broken, fail, header, python, view};
use gpumem_core::{DescriptorError, Element, FileError, FileFailure, Result};
use gpumem_runtime::{DataFile, ElementType, FileView, Order};
use ndarray::Dimension;
use std::{ops::Range, path::Path};

const MAGIC: &[u8] = b"\x93NUMPY";
/// Most bytes of a header: NumPy writes about a hundred.
const MOST: u64 = 64 << 10;
const OPERATION: &str = "npy";

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
    npy_file(path)?.array()
}

/// An npy file whose header has been read, for programs that learn the type of its elements from it.
#[derive(Debug, Clone)]
pub struct NpyFile {
    file: DataFile,
    header: python::NpyHeader,
    /// Where its elements are, and bytes after them.
    elements: Range<u64>,
    element: ElementType,
}

/// An npy file, of any elements.
/// ```
/// # use ndarray::{IxDyn, array};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("x.npy");
/// # ndarray_npy::write_npy(&path, &array![1, 2, 3]).unwrap();
/// let file = gpumem_files::npy_file(&path)?;
/// assert_eq!(file.element_type().to_string(), "<i4");
/// assert_eq!(file.array::<i32, IxDyn>()?.shape(), [3]);
/// # Ok::<(), gpumem_core::Error>(())
/// ```
///
/// # Errors
/// As for [`npy`], but for those about `T` and `D`, and about the end of the file.
pub fn npy_file(path: impl AsRef<Path>) -> Result<NpyFile> {
    let file = DataFile::open(path).map_err(|error| error.in_operation(OPERATION))?;
    let all = 0..file.len();
    NpyFile::within(file, all)
}

impl NpyFile {
    /// That in a part of a file.
    pub(crate) fn within(file: DataFile, part: Range<u64>) -> Result<Self> {
        let (header, start) = read(&file, &part).map_err(|error| fail(OPERATION, error))?;
        let element = element(&file, &header).map_err(|error| fail(OPERATION, error))?;
        Ok(Self { file, header, elements: start..part.end, element })
    }

    /// The type of its elements.
    pub fn element_type(&self) -> ElementType {
        self.element
    }

    /// The array.
    ///
    /// # Errors
    /// As for [`npy`].
    pub fn array<T: Element, D: Dimension>(&self) -> Result<FileView<T, D>> {
        let Self { file, header, elements, element } = self;
        ElementType::check::<T>(*element).map_err(|_| {
            let (found, expected) = (header.descr.clone(), ElementType::of::<T>().to_string());
            fail(OPERATION, file.error(FileFailure::Element { tensor: String::new(), found, expected }))
        })?;
        let order = if header.fortran_order { Order::F } else { Order::C };
        let view = view::<T, D>(file, elements.start, &header.shape, order)
            .map_err(|error| error.in_operation(OPERATION))?;
        let (wanted, found) =
            (elements.start.saturating_add(view.layout().packed_bytes() as u64), elements.end);
        match wanted <= found {
            true => Ok(view),
            false => Err(fail(OPERATION, file.error(FileFailure::Truncated { wanted, found }))),
        }
    }
}

/// Reads the header, and where the elements begin.
fn read(file: &DataFile, part: &Range<u64>) -> Result<(python::NpyHeader, u64), FileError> {
    const SHORT: u64 = 10;
    let start = part.start;
    if part.end.saturating_sub(start) < SHORT {
        return Err(broken(file, start, "it is too short for an npy file"));
    }
    let first = header::read(file, start, ("the beginning", SHORT, SHORT))?;
    let (Some(MAGIC), Some(&[major, minor, low, high])) = (first.get(..6), first.get(6..)) else {
        return Err(broken(file, start, "it does not begin as an npy file"));
    };
    let (begin, length) = match (major, minor) {
        (1, 0) => (start + SHORT, u64::from(u16::from_le_bytes([low, high]))),
        (2 | 3, 0) => {
            let more = header::read(file, start + SHORT, ("the beginning", 2, 2))?;
            let [third, fourth] = more.try_into().unwrap_or_default();
            (start + SHORT + 2, u64::from(u32::from_le_bytes([low, high, third, fourth])))
        }
        _ => return Err(broken(file, start + 6, "the version of the format is 1.0, 2.0 or 3.0")),
    };
    let text = header::read(file, begin, ("a header", length, MOST))?;
    if begin.saturating_add(length) > part.end {
        return Err(broken(file, begin, "the header ends behind the end of the file"));
    }
    let header = python::parse(&text)
        .map_err(|wrong| broken(file, begin.saturating_add(wrong.at as u64), wrong.why))?;
    Ok((header, begin + length))
}

/// The type of the elements.
fn element(file: &DataFile, header: &python::NpyHeader) -> Result<ElementType, FileError> {
    header.descr.parse().map_err(|error| match error {
        DescriptorError::TypeName { why, .. } => broken(file, 10, why),
        _ => broken(file, 10, "the type of the elements is unknown"),
    })
}
