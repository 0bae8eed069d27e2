//! Writing arrays to files, which are seen when they are whole.

use crate::{
    Dtype, fail,
    header::{MOST_AXES, MOST_JSON},
};
use gpumem_core::{Error, ErrorKind, FileError, FileFailure, Result};
use gpumem_runtime::{ArrayBase, ElementType, NewFile, Order, Storage};
use ndarray::Dimension;
use std::{collections::BTreeMap, fmt, path::Path};

/// Writes an array as an npy file: in Fortran order where the array is, else in C order. The file is written beside the path and
/// renamed when it is whole, so one that is there is replaced then, and stays as it is after an error.
/// ```
/// # use ndarray::{Ix1, array};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("y.npy");
/// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
/// let y = device.to_device(&[1.0f32, 2.0, 3.0])?;
/// gpumem_files::save_npy(&path, &y)?;
/// let again = device.to_device(&gpumem_files::npy::<f32, Ix1>(&path)?)?;
/// assert_eq!(again.copy_to_host()?, array![1.0, 2.0, 3.0]);
/// # Ok::<(), gpumem_core::Error>(())
/// ```
///
/// # Errors
/// Returns [`File`](ErrorKind::File) if the file cannot be written. Otherwise as [`ArrayBase::copy_to_host`].
pub fn save_npy<S: Storage, D: Dimension>(path: impl AsRef<Path>, array: &ArrayBase<S, D>) -> Result<()> {
    const OPERATION: &str = "save_npy";
    let layout = array.layout();
    let is_f = layout.is_f_contiguous() && !layout.is_c_contiguous();
    let (order, fortran) = if is_f { (Order::F, "True") } else { (Order::C, "False") };
    let header = npy_header(OPERATION, ElementType::of::<S::Elem>(), array.shape(), fortran)?;
    let save = || {
        let start = header.len() as u64;
        let file = NewFile::create(path, start + layout.packed_bytes() as u64)?;
        file.write_array(start, array, order)?;
        file.write_at(0, &header)?;
        file.commit()
    };
    save().map_err(|error| error.in_operation(OPERATION))
}

/// The header of an npy file.
fn npy_header(
    operation: &'static str,
    descr: ElementType,
    shape: &[usize],
    fortran: &str,
) -> Result<Vec<u8>> {
    let lengths: String = shape.iter().map(|length| format!("{length}, ")).collect();
    let lengths = if let [length] = shape { format!("{length},") } else { lengths };
    let lengths = lengths.trim_end_matches(", ");
    let text = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': ({lengths}), }}");
    // All before the elements is a multiple of 64 bytes. There are 64 axes at most, so two bytes hold the length.
    let whole = (10 + text.len() + 1).next_multiple_of(64);
    let length = u16::try_from(whole - 10).ok().filter(|_| shape.len() <= MOST_AXES);
    let length = length.ok_or_else(|| too_many_axes(operation))?;
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    header.extend(length.to_le_bytes());
    header.extend(text.as_bytes());
    header.resize(whole - 1, b' ');
    header.push(b'\n');
    Ok(header)
}

/// What readers refuse is not written.
fn too_many_axes(operation: &'static str) -> Error {
    Error::new("", operation, ErrorKind::Unsupported { what: "files of arrays of more than 64 axes" })
}

/// Writes the elements of an array at a byte of a file.
type Write<'a> = Box<dyn Fn(&NewFile, u64) -> Result<()> + 'a>;

/// A tensor to be written, of any element and rank; made by [`named`].
pub struct NamedTensor<'a> {
    pub(crate) name: String,
    element: ElementType,
    dtype: Option<Dtype>,
    shape: Vec<usize>,
    pub(crate) bytes: u64,
    pub(crate) write: Write<'a>,
}

/// An array with the name that it is to have in a file.
pub fn named<'a, S: Storage, D: Dimension>(
    name: impl Into<String>,
    array: &'a ArrayBase<S, D>,
) -> NamedTensor<'a> {
    let element = ElementType::of::<S::Elem>();
    NamedTensor {
        name: name.into(),
        element,
        dtype: Dtype::of_element(element),
        shape: array.shape().to_vec(),
        bytes: array.layout().packed_bytes() as u64,
        write: Box::new(move |file, start| file.write_array(start, array, Order::C)),
    }
}

impl NamedTensor<'_> {
    /// The header of an npy file of it.
    #[cfg(feature = "npz")]
    pub(crate) fn npy_header(&self, operation: &'static str) -> Result<Vec<u8>> {
        npy_header(operation, self.element, &self.shape, "False")
    }

    /// With another name for the type of its elements: a float of eight bits, of an array of `u8`.
    #[must_use]
    pub fn dtype(self, dtype: Dtype) -> Self {
        let is_same = dtype.element() == Some(self.element);
        Self { dtype: is_same.then_some(dtype), ..self }
    }
}

impl fmt::Debug for NamedTensor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, dtype, shape, .. } = self;
        f.debug_struct("NamedTensor").field("name", name).field("dtype", dtype).field("shape", shape).finish()
    }
}

/// Writes tensors, and texts beside them, as a safetensors file: those of the largest elements first, so that each is aligned. The
/// file is written beside the path and renamed when it is whole, so one that is there is replaced then, and stays as it is after
/// an error.
/// ```
/// # use ndarray::{Ix2, array};
/// use gpumem_files::{named, safetensors, save_safetensors};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("m.safetensors");
/// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
/// let wq = device.to_device(&array![[1.0f32, 2.0], [3.0, 4.0]])?;
/// let ids = device.to_device(&[7i64, 8])?;
/// save_safetensors(&path, &[named("wq", &wq.t()), named("ids", &ids)], [("format", "pt")])?;
/// let again = device.to_device(&safetensors(&path)?.tensor::<f32, Ix2>("wq")?)?;
/// assert_eq!(again.copy_to_host()?, array![[1.0, 3.0], [2.0, 4.0]]);
/// # Ok::<(), gpumem_core::Error>(())
/// ```
///
/// # Errors
/// Returns [`File`](ErrorKind::File) if the file cannot be written, two tensors have one name, or safetensors has no type for the
/// elements of one. Otherwise as [`ArrayBase::copy_to_host`].
pub fn save_safetensors<K: Into<String>, V: Into<String>>(
    path: impl AsRef<Path>,
    tensors: &[NamedTensor<'_>],
    metadata: impl IntoIterator<Item = (K, V)>,
) -> Result<()> {
    const OPERATION: &str = "save_safetensors";
    let path = path.as_ref();
    let refuse = |failure| fail(OPERATION, FileError { path: path.to_owned(), failure });
    if cfg!(target_endian = "big") {
        let what = "safetensors on a machine of the other byte order";
        return Err(Error::new("", OPERATION, ErrorKind::Unsupported { what }));
    }
    let metadata: BTreeMap<String, String> =
        metadata.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
    let mut order: Vec<_> = tensors.iter().collect();
    order.sort_by(|left, right| (right.element.bytes, &left.name).cmp(&(left.element.bytes, &right.name)));
    let mut header = serde_json::Map::new();
    if !metadata.is_empty() {
        header.insert("__metadata__".to_owned(), serde_json::json!(metadata));
    }
    let mut end = 0_u64;
    let mut starts = Vec::with_capacity(order.len());
    for NamedTensor { name, element, dtype, shape, bytes, .. } in &order {
        if shape.len() > MOST_AXES {
            return Err(too_many_axes(OPERATION));
        }
        let Some(dtype) = dtype else {
            let (tensor, found, expected) =
                (name.clone(), element.to_string(), "a type of safetensors".into());
            return Err(refuse(FileFailure::Element { tensor, found, expected }));
        };
        let start = end;
        end = start.saturating_add(*bytes);
        let entry =
            serde_json::json!({ "dtype": dtype.name(), "shape": shape, "data_offsets": [start, end] });
        if name == "__metadata__" || header.insert(name.clone(), entry).is_some() {
            let why = "a tensor has a name of its own, and not that of the metadata";
            return Err(refuse(FileFailure::Range { tensor: name.clone(), why }));
        }
        starts.push(start);
    }
    let mut text = serde_json::Value::from(header).to_string().into_bytes();
    text.resize(text.len().next_multiple_of(8), b' ');
    let length = text.len() as u64;
    if length > MOST_JSON {
        return Err(refuse(FileFailure::TooLarge { what: "a header", found: length, most: MOST_JSON }));
    }
    let save = || {
        let first = length + 8;
        let file = NewFile::create(path, first.saturating_add(end))?;
        for (tensor, start) in order.iter().zip(&starts) {
            (tensor.write)(&file, first + start)?;
        }
        file.write_at(8, &text)?;
        file.write_at(0, &length.to_le_bytes())?;
        file.commit()
    };
    save().map_err(|error| error.in_operation(OPERATION))
}
