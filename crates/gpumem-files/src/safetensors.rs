//! Files of safetensors.

use crate::{Dtype, broken, fail, header, json, view};
use gpumem_core::{Element, FileError, FileFailure, Result};
use gpumem_runtime::{DataFile, ElementType, FileView, Order};
use ndarray::{Dimension, Ix1};
use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
};

/// Bytes of the length in front of the header.
const LENGTH: u64 = 8;

/// The tensors of one or several safetensors files, whose headers have been checked.
#[derive(Debug, Clone, Default)]
pub struct SafeTensors {
    files: Vec<DataFile>,
    /// File by file, in the order of their bytes.
    tensors: Vec<TensorInfo>,
    by_name: HashMap<Box<str>, usize>,
    metadata: BTreeMap<String, String>,
}

/// What a file says of a tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorInfo {
    name: Box<str>,
    dtype: Dtype,
    shape: Box<[usize]>,
    /// In `SafeTensors::files`, and where its bytes begin there.
    file: usize,
    start: u64,
    bytes: usize,
}

impl TensorInfo {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The type of its elements, as the file names it.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Lengths of its axes, in elements.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Its bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// The tensors of a safetensors file. Its header is read and checked: names, types, shapes and ranges, which must fill the file
/// without gaps.
/// ```
/// # use ndarray::{Ix2, array};
/// # use safetensors::{Dtype, tensor::TensorView};
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("model.safetensors");
/// # let bytes: Vec<u8> = [1.0f32, 2.0, 3.0, 4.0].iter().flat_map(|one| one.to_le_bytes()).collect();
/// # let view = TensorView::new(Dtype::F32, vec![2, 2], &bytes).unwrap();
/// # safetensors::serialize_to_file([("wq", view)], None, &path).unwrap();
/// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
/// let model = gpumem_files::safetensors(&path)?;
/// for tensor in model.tensors() {
///     println!("{}: {} {:?}", tensor.name(), tensor.dtype(), tensor.shape());
/// }
/// let wq = device.to_device(&model.tensor::<f32, Ix2>("wq")?)?;
/// assert_eq!(wq.copy_to_host()?, array![[1.0, 2.0], [3.0, 4.0]]);
/// # Ok::<(), gpumem_core::Error>(())
/// ```
///
/// # Errors
/// Returns [`File`](gpumem_core::ErrorKind::File) if the file cannot be read, or breaks a rule of the format.
pub fn safetensors(path: impl AsRef<Path>) -> Result<SafeTensors> {
    const OPERATION: &str = "safetensors";
    let file = DataFile::open(path).map_err(|error| error.in_operation(OPERATION))?;
    let mut all = SafeTensors::default();
    all.add(file).map_err(|error| fail(OPERATION, error))?;
    Ok(all)
}

impl SafeTensors {
    /// What the files say of their tensors, file by file and in the order of their bytes.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = &TensorInfo> {
        self.tensors.iter()
    }

    /// Number of tensors.
    pub fn len(&self) -> usize {
        self.tensors.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }

    /// The texts that the files have beside their tensors (`__metadata__`). Where several files have one of the same name, it is that of
    /// the file which was opened last.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// What a file says of a tensor; `None` if there is none of that name.
    pub fn info(&self, name: &str) -> Option<&TensorInfo> {
        self.by_name.get(name).and_then(|index| self.tensors.get(*index))
    }

    /// A tensor, as a source of copies to a device. Floats of eight bits are `u8`.
    ///
    /// # Errors
    /// Returns [`File`](gpumem_core::ErrorKind::File) if there is no such tensor, or its elements are of another type. Returns
    /// [`RankMismatch`](gpumem_core::LayoutError::RankMismatch) if it has another number of axes.
    pub fn tensor<T: Element, D: Dimension>(&self, name: &str) -> Result<FileView<T, D>> {
        const OPERATION: &str = "tensor";
        let (file, info) = self.find(OPERATION, name)?;
        let expected = ElementType::of::<T>();
        if info.dtype.element() != Some(expected) {
            let (tensor, found) = (name.to_owned(), info.dtype.to_string());
            let failure = FileFailure::Element { tensor, found, expected: expected.to_string() };
            return Err(fail(OPERATION, file.error(failure)));
        }
        if cfg!(target_endian = "big") && expected.bytes > 1 {
            let why = "the file has the other byte order than this machine";
            return Err(fail(OPERATION, broken(file, info.start, why)));
        }
        view(file, info.start, &info.shape, Order::C).map_err(|error| error.in_operation(OPERATION))
    }

    /// The bytes of a tensor of any type.
    ///
    /// # Errors
    /// Returns [`File`](gpumem_core::ErrorKind::File) if there is no such tensor.
    pub fn tensor_bytes(&self, name: &str) -> Result<FileView<u8, Ix1>> {
        const OPERATION: &str = "tensor_bytes";
        let (file, info) = self.find(OPERATION, name)?;
        FileView::new(file, info.start, info.bytes).map_err(|error| error.in_operation(OPERATION))
    }

    fn find(&self, operation: &'static str, name: &str) -> Result<(&DataFile, &TensorInfo)> {
        let found = self.info(name).and_then(|info| Some((self.files.get(info.file)?, info)));
        found.ok_or_else(|| fail(operation, self.no_such(name)))
    }

    pub(crate) fn no_such(&self, name: &str) -> FileError {
        let path = self.files.first().map(|file| file.path().to_owned()).unwrap_or_default();
        FileError { path, failure: FileFailure::NoSuchTensor { name: name.to_owned() } }
    }

    /// The same files, with these tensors alone.
    pub(crate) fn only(&self, chosen: impl FnMut(&TensorInfo) -> bool) -> Self {
        let mut all = self.clone();
        all.tensors.retain(chosen);
        all.index();
        all
    }

    /// Notes where each name is.
    fn index(&mut self) {
        let by_name = self.tensors.iter().enumerate();
        self.by_name = by_name.map(|(index, info)| (info.name.clone(), index)).collect();
    }

    /// Adds the tensors of a file.
    pub(crate) fn add(&mut self, file: DataFile) -> Result<(), FileError> {
        if file.len() < LENGTH {
            return Err(broken(&file, 0, "it is too short for a safetensors file"));
        }
        let length = header::read(&file, 0, ("the length", LENGTH, LENGTH))?;
        let length = u64::from_le_bytes(length.try_into().unwrap_or_default());
        let text = header::read(&file, LENGTH, ("a header", length, header::MOST_JSON))?;
        let header: json::Header =
            serde_json::from_slice(&text).map_err(|error| header::json(&file, LENGTH, &error))?;
        let start = LENGTH + length;
        let mut tensors = header.tensors;
        tensors.sort_by_key(|(_, entry)| entry.data_offsets);
        let index = self.files.len();
        let mut end = 0;
        for (name, entry) in tensors {
            let range = |why| file.error(FileFailure::Range { tensor: name.clone().into(), why });
            let (from, to) = entry.data_offsets;
            if from != end || to < from {
                return Err(range("its bytes do not begin where those of the tensor before it end"));
            }
            let Some(dtype) = Dtype::of_name(&entry.dtype) else {
                return Err(range("the type of its elements is unknown"));
            };
            let Some(bytes) = bytes_of(&entry.shape.0, dtype) else {
                let why = "a tensor has more elements than there are numbers, or part of a byte";
                return Err(broken(&file, LENGTH, why));
            };
            if (to - from) != bytes as u64 {
                return Err(range("its bytes are not those of its shape and type"));
            }
            if to > file.len() - start {
                return Err(range("it ends behind the end of the file"));
            }
            end = to;
            // One of another file may have it, too: an index lists the one that is meant.
            let other = self.by_name.insert(name.clone(), self.tensors.len());
            if other.and_then(|other| self.tensors.get(other)).is_some_and(|other| other.file == index) {
                return Err(range("two tensors have this name"));
            }
            let shape = entry.shape.0.into();
            self.tensors.push(TensorInfo { name, dtype, shape, file: index, start: start + from, bytes });
        }
        if end != file.len() - start {
            let tensor = "the bytes after the last tensor".to_owned();
            return Err(file.error(FileFailure::Range { tensor, why: "they belong to none" }));
        }
        self.metadata.extend(header.metadata);
        self.files.push(file);
        Ok(())
    }

    /// Keeps the tensors of which a list says in which file they are.
    /// Returns the first name that the list has, and its file has not.
    pub(crate) fn keep(&mut self, list: &[(String, usize)]) -> std::result::Result<(), String> {
        let files: HashMap<_, _> = list.iter().map(|(name, file)| (name.as_str(), *file)).collect();
        self.tensors.retain(|info| files.get(info.name()) == Some(&info.file));
        self.index();
        match list.iter().find(|(name, _)| !self.by_name.contains_key(name.as_str())) {
            Some((name, _)) => Err(name.clone()),
            None => Ok(()),
        }
    }
}

/// Bytes of a tensor, if that is a number.
fn bytes_of(shape: &[usize], dtype: Dtype) -> Option<usize> {
    let elements = shape.iter().try_fold(1_usize, |elements, length| elements.checked_mul(*length))?;
    let bits = elements.checked_mul(dtype.bits())?;
    bits.is_multiple_of(8).then_some(bits / 8)
}
