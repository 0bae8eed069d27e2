//! Files of arrays: npy, npz and safetensors.

use crate::dtype::{each, with_type};
use crate::{
    device::GivenDevice,
    device_array::DeviceNDArray,
    dtype::{Elements, hold},
    element::DType,
    error::raise,
    file_view::{FileView, Opened},
    interchange::device_source,
    list::Listed,
    progress::Told,
    stream::{self, GivenStream},
    wait::may_wait,
};
use gpumem::{
    ElementKind, ElementType,
    files::{self, Dtype, TensorInfo},
    ndarray::IxDyn,
};
use pyo3::{
    exceptions::{PyKeyError, PyTypeError, PyValueError},
    prelude::*,
    types::{PyDict, PyIterator, PyList, PyTuple},
};
use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
    sync::Arc,
};

/// A format of files, by the name's ending.
#[derive(Clone, Copy)]
enum Format {
    Npy,
    Npz,
    SafeTensors,
    /// Which tensor is in which file.
    Index,
}

const ENDINGS: [(&str, Format); 4] = [
    (".npy", Format::Npy),
    (".npz", Format::Npz),
    (".safetensors", Format::SafeTensors),
    (".safetensors.index.json", Format::Index),
];

impl Format {
    fn of(path: &Path) -> PyResult<Self> {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        let found = ENDINGS.iter().find(|(ending, _)| name.ends_with(ending.as_bytes()));
        let text = "the name of the file ends in .npy, .npz, .safetensors or .safetensors.index.json";
        found.map(|(_, format)| *format).ok_or_else(|| PyValueError::new_err(text))
    }
}

/// The array of an npy file, or of a member of an npz file.
fn npy_view(file: &files::NpyFile) -> PyResult<FileView> {
    let named = file.element_type();
    let element = match (named.kind, named.bytes) {
        // NumPy has no name for it.
        (ElementKind::Opaque, 2) => ElementType::new(ElementKind::BFloat, 2),
        _ => named,
    };
    with_type!(element, FileView::new(file.array::<T, IxDyn>().map_err(raise)?, named.to_string()))
}

fn npy(py: Python<'_>, path: &Path) -> PyResult<FileView> {
    npy_view(&py.detach(|| files::npy_file(path)).map_err(raise)?)
}

/// What has arrays by name.
enum Arrays {
    Npz(files::Npz),
    SafeTensors(files::SafeTensors),
}

impl Arrays {
    fn open(py: Python<'_>, path: &Path, format: Format) -> PyResult<Self> {
        let open = || match format {
            Format::Npz => files::npz(path).map(Self::Npz),
            Format::Index => files::safetensors_index(path).map(Self::SafeTensors),
            Format::Npy | Format::SafeTensors => files::safetensors(path).map(Self::SafeTensors),
        };
        py.detach(open).map_err(raise)
    }

    /// The names, file by file and in the order of their bytes.
    fn names(&self) -> Vec<String> {
        match self {
            Self::Npz(npz) => npz.names().map(str::to_owned).collect(),
            Self::SafeTensors(model) => model.tensors().map(|info| info.name().to_owned()).collect(),
        }
    }

    fn has(&self, name: &str) -> bool {
        match self {
            Self::Npz(npz) => npz.names().any(|other| other == name),
            Self::SafeTensors(model) => model.info(name).is_some(),
        }
    }

    fn view(&self, py: Python<'_>, name: &str) -> PyResult<FileView> {
        let none = || PyKeyError::new_err(name.to_owned());
        let model = match self {
            Self::Npz(_) if !self.has(name) => return Err(none()),
            // It is read whole, for its checksum.
            Self::Npz(npz) => return npy_view(&py.detach(|| npz.member(name)).map_err(raise)?),
            Self::SafeTensors(model) => model,
        };
        let info = model.info(name).ok_or_else(none)?;
        let file_dtype = info.dtype().to_string();
        let Some(element) = info.dtype().element() else {
            let bytes = model.tensor_bytes(name).and_then(files::FileView::into_dimensionality);
            return Ok(FileView::new(bytes.map_err(raise)?, file_dtype));
        };
        with_type!(element, FileView::new(model.tensor::<T, IxDyn>(name).map_err(raise)?, file_dtype))
    }
}

/// The arrays of an npz file, or of one or several safetensors files, by name. Nothing of them has been read.
#[pyclass(frozen, module = "pygpumem")]
pub(crate) struct ArrayFile(Opened<Arrays>);

#[pymethods]
impl ArrayFile {
    /// The names, file by file and in the order of their bytes.
    fn keys(&self) -> PyResult<Vec<String>> {
        Ok(self.0.get()?.names())
    }

    /// The texts that safetensors files have beside their tensors.
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        match &*self.0.get()? {
            Arrays::Npz(_) => Ok(PyDict::new(py)),
            Arrays::SafeTensors(model) => model.metadata().into_pyobject(py),
        }
    }

    /// An array, as a view that reads what it needs.
    fn __getitem__(&self, py: Python<'_>, name: &str) -> PyResult<FileView> {
        self.0.get()?.view(py, name)
    }

    fn __contains__(&self, name: &Bound<'_, PyAny>) -> PyResult<bool> {
        let arrays = self.0.get()?;
        Ok(name.extract().is_ok_and(|name| arrays.has(name)))
    }

    fn __len__(&self) -> PyResult<usize> {
        Ok(self.keys()?.len())
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyList::new(py, self.keys()?)?.try_iter()
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Closes the files. Views of their arrays keep them open as long as they live.
    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) -> bool {
        self.0.close();
        false
    }

    fn __repr__(&self) -> PyResult<String> {
        Ok(format!("<pygpumem.ArrayFile of {} arrays>", self.__len__()?))
    }
}

/// Opens a file of arrays by its name's ending, and checks its header: an npy file is a `FileView`; an npz file, a safetensors file or an
/// index of several (`model.safetensors.index.json`) is an `ArrayFile`.
#[pyfunction]
pub(crate) fn open(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyAny>> {
    match Format::of(&path)? {
        Format::Npy => Ok(Bound::new(py, npy(py, &path)?)?.into_any()),
        format => {
            let arrays = Arc::new(Arrays::open(py, &path, format)?);
            Ok(Bound::new(py, ArrayFile(Opened::new(arrays)))?.into_any())
        }
    }
}

/// Reads a file of arrays to a device: an npy file as an array; an npz file, a safetensors file or an index of several as a dictionary of
/// arrays by name, tensors in one pass where they lie near each other. `only` chooses arrays, by a list of names or a function of a name.
/// With a stream all has been read on return, and the copies are in its order. `progress` is called with the bytes read so far and
/// those of all, on this thread; an exception of it ends the load.
#[pyfunction]
#[pyo3(signature = (path, device=None, stream=None, only=None, progress=None))]
pub(crate) fn load<'py>(
    py: Python<'py>,
    path: PathBuf,
    device: Option<GivenDevice>,
    stream: Option<GivenStream>,
    only: Option<&Bound<'py, PyAny>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let format = Format::of(&path)?;
    let (stream, device) = stream::placed(stream, device)?;
    if let Format::Npy = format {
        if only.is_some() {
            return Err(PyValueError::new_err("an npy file has one array, and `only` chooses none"));
        }
        let mut told = progress.map(|function| Told::new(function, 0));
        let array = npy(py, &path)?.copy_and_tell(py, stream.as_ref(), &device, &mut told)?;
        return Ok(Bound::new(py, array)?.into_any());
    }
    let file = Arrays::open(py, &path, format)?;
    let chosen = chosen(&file, only)?;
    let is_chosen = |name: &str| chosen.as_ref().is_none_or(|names| names.contains(name));
    let arrays = PyDict::new(py);
    let model = match &file {
        Arrays::SafeTensors(model) => model,
        Arrays::Npz(npz) => {
            let names: Vec<String> = file.names().into_iter().filter(|name| is_chosen(name)).collect();
            let bytes = |name: &String| npz.member_bytes(name).unwrap_or_default();
            let total = names.iter().map(bytes).fold(0, u64::saturating_add);
            let mut told = progress.map(|function| Told::new(function, total));
            // One after the other: each may be unpacked.
            for name in names {
                let view = file.view(py, &name)?;
                if let Some(told) = &mut told {
                    // The header has been read.
                    told.next(bytes(&name).saturating_sub(view.nbytes()? as u64));
                }
                arrays.set_item(name, view.copy_and_tell(py, stream.as_ref(), &device, &mut told)?)?;
            }
            return Ok(arrays.into_any());
        }
    };
    // Without a stream all is done on return, or failed.
    let (on, wait) = match stream {
        Some(stream) => (stream.0, None),
        None => (stream::made(py, || device.stream())?, Some(may_wait("load")?)),
    };
    let is_chosen = |info: &TensorInfo| is_chosen(info.name());
    let mut loaded = match progress.map(|function| Told::new(function, 0)) {
        None => py.detach(|| model.load(&on, is_chosen)).map_err(raise)?,
        Some(mut told) => {
            let loaded = py.detach(|| model.load_with_progress(&on, is_chosen, |progress| told.tell(progress)));
            loaded.map_err(|error| told.raise(error))?
        }
    };
    if let Some(wait) = wait {
        wait.for_stream(py, &on)?;
    }
    let infos: Vec<TensorInfo> = loaded.tensors().cloned().collect();
    for info in infos {
        let name = info.name();
        let (elements, element) = match info.dtype().element() {
            Some(element) => {
                (with_type!(element, hold(&loaded.take::<T, IxDyn>(name).map_err(raise)?))?, element)
            }
            None => (hold(&loaded.take_bytes(name).map_err(raise)?.into_dyn()), ElementType::of::<u8>()),
        };
        arrays.set_item(name, DeviceNDArray::new(elements, DType::plain(element)))?;
    }
    Ok(arrays.into_any())
}

/// The names that a list or a function chooses; `None` for all.
fn chosen(file: &Arrays, only: Option<&Bound<'_, PyAny>>) -> PyResult<Option<HashSet<String>>> {
    let Some(only) = only else { return Ok(None) };
    let mut names = HashSet::new();
    if only.is_callable() {
        for name in file.names() {
            if only.call1((&name,))?.is_truthy()? {
                names.insert(name);
            }
        }
    } else {
        for name in only.extract::<Listed<String>>()?.0 {
            if !file.has(&name) {
                return Err(PyKeyError::new_err(name));
            }
            names.insert(name);
        }
    }
    Ok(Some(names))
}

/// Writes arrays of devices to a file, by its name's ending: one to an npy file, a dictionary of arrays by name to an npz file
/// (uncompressed) or a safetensors file, the latter with texts as `metadata`, and `dtypes` by name where bytes are something else
/// (`F8_E4M3`). A file that is there is replaced when the new one is whole, and stays as it is after an error.
#[pyfunction]
#[pyo3(signature = (path, arrays, metadata=None, dtypes=None))]
pub(crate) fn save(
    py: Python<'_>,
    path: PathBuf,
    arrays: &Bound<'_, PyAny>,
    metadata: Option<&Bound<'_, PyAny>>,
    dtypes: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    match Format::of(&path)? {
        Format::Npy | Format::Npz if metadata.is_some() || dtypes.is_some() => {
            Err(PyValueError::new_err("npy and npz files have no metadata, and the dtypes of their arrays"))
        }
        Format::Npy => {
            let array = to_save(arrays)?;
            each!(&array.get().elements, array => py.detach(|| files::save_npy(&path, array)).map_err(raise))
        }
        Format::Npz => {
            let named = entries(arrays, to_save)?;
            let named: Vec<(&str, &Elements)> =
                named.iter().map(|(name, array)| (&**name, &array.get().elements)).collect();
            py.detach(|| {
                let arrays = named.into_iter().map(|(name, elements)| each!(elements, array => files::named(name, array)));
                files::save_npz(&path, &arrays.collect::<Vec<_>>())
            })
            .map_err(raise)
        }
        Format::SafeTensors => {
            // Code of the caller may run until all is here.
            let named = entries(arrays, to_save)?;
            let metadata = match metadata {
                Some(texts) => entries(texts, |text| text.extract::<String>())?,
                None => Vec::new(),
            };
            let mut dtypes: HashMap<String, Dtype> = match dtypes {
                Some(names) => entries(names, to_dtype)?.into_iter().collect(),
                None => HashMap::new(),
            };
            let named: Vec<(&str, &Elements, Option<Dtype>)> =
                named.iter().map(|(name, array)| (&**name, &array.get().elements, dtypes.remove(name))).collect();
            if let Some(name) = dtypes.into_keys().next() {
                return Err(PyKeyError::new_err(name));
            }
            py.detach(|| {
                let tensors = named.into_iter().map(|(name, elements, dtype)| {
                    let tensor = each!(elements, array => files::named(name, array));
                    match dtype {
                        Some(dtype) => tensor.dtype(dtype),
                        None => tensor,
                    }
                });
                files::save_safetensors(&path, &tensors.collect::<Vec<_>>(), metadata)
            })
            .map_err(raise)
        }
        Format::Index => Err(PyValueError::new_err("an index is not written; save .safetensors files")),
    }
}

/// The entries of a dictionary as they are now, whatever code of the caller does to it meanwhile.
fn entries<'py, V>(
    object: &Bound<'py, PyAny>,
    value: impl Fn(&Bound<'py, PyAny>) -> PyResult<V>,
) -> PyResult<Vec<(String, V)>> {
    let dictionary =
        object.cast::<PyDict>().map_err(|_| PyTypeError::new_err("a dictionary by name is needed"))?;
    let entry = |pair: Bound<'py, PyAny>| {
        let (name, object): (String, Bound<'py, PyAny>) = pair.extract()?;
        Ok((name, value(&object)?))
    };
    dictionary.items().iter().map(entry).collect()
}

/// The type of elements by its name in a file.
fn to_dtype(name: &Bound<'_, PyAny>) -> PyResult<Dtype> {
    let name: String = name.extract()?;
    let found = Dtype::ALL.iter().find(|dtype| dtype.name() == name);
    found.copied().ok_or_else(|| PyValueError::new_err(format!("no dtype of a safetensors file is {name:?}")))
}

/// An array of numbers that can be written to a file.
fn to_save<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, DeviceNDArray>> {
    let py = object.py();
    let Some(array) = device_source(object, None)? else {
        return Err(PyTypeError::new_err("arrays of devices are saved; gpumem.to_device() makes one"));
    };
    let own = array.get();
    if own.dtype.number().is_some() {
        return Ok(array);
    }
    if own.dtype.is_unaligned() {
        let stream = own.device()?.0.default_stream().map_err(raise)?;
        return Bound::new(py, own.copy_on(py, &stream)?);
    }
    let name = own.dtype.name(py)?;
    Err(PyTypeError::new_err(format!("files of arrays have numbers, and no {name}; save a view of numbers")))
}
