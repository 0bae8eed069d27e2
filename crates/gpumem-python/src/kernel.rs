//! Kernels from portable sources.

use crate::dtype::each;
use crate::{
    body, device,
    device_array::DeviceNDArray,
    direction::Direction,
    dtype::{self, Elements, Place, check_writable},
    error::raise,
    host::Host,
    interchange,
    kept::{Kept, Traverse},
    list::Listed,
    number,
    page_locked::page_locked,
    recording::{is_recorded, outside},
    signature::{self, Form, Parameter},
    stream,
    varying::{self, Varying},
    wait::may_wait,
};
use gpumem::{
    AnyBackend, Error, ErrorKind, LaunchConfig, NotRecorded,
    kernel::{HostFunction, UntypedArguments, UntypedKernel, UntypedKernelDef},
};
use pyo3::{
    PyTraverseError, PyVisit,
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::PyTuple,
};
use std::sync::{Arc, Mutex, PoisonError};

/// A kernel from a portable source; `kernel[grid, block, stream, shared_bytes](*arguments)` launches it, as in Numba.
#[pyclass(frozen, module = "pygpumem")]
pub(crate) struct Kernel {
    name: String,
    parameters: Arc<[Parameter]>,
    declaration: UntypedKernelDef,
    /// The function that a host device runs.
    host: Option<Kept>,
    /// The compiled kernels, one for each device.
    loaded: Mutex<Vec<(gpumem::Device, UntypedKernel<AnyBackend>)>>,
}

/// A kernel with the size and the stream of its launches.
#[pyclass(frozen, module = "pygpumem")]
pub(crate) struct Launch {
    kernel: Kept<Kernel>,
    dims: LaunchConfig,
    stream: Option<gpumem::Stream>,
}

/// The argument for one parameter.
pub(crate) enum Given {
    Value(Vec<u8>),
    /// A number of each launch of a graph.
    Varying(varying::Number),
    /// `host` is where the caller's elements lie, if they are copied, and whether they are copied back.
    Array {
        elements: Elements,
        form: Form,
        host: Option<Box<(Place, bool)>>,
    },
}

impl Given {
    /// Where the caller's elements lie, and whether the launch may write them.
    fn place(&self) -> Option<(Place, bool)> {
        let Self::Array { elements, form, host } = self else { return None };
        Some(host.as_ref().map_or_else(|| (Place::of(elements), form.is_written()), |host| (**host).clone()))
    }
}

/// Refuses arguments that share memory where the kernel writes one of them: any two arrays of Python may name the same.
pub(crate) fn check_apart(mut places: Vec<(Place, bool)>) -> PyResult<()> {
    places.sort_by_key(|(place, _)| place.bytes().start);
    let clash = |(at, (own, write)): (usize, &(Place, bool))| {
        let end = own.bytes().end;
        let mut near = places.iter().skip(at + 1).take_while(|(other, _)| other.bytes().start < end);
        near.any(|(other, others)| (*write || *others) && own.shares(other))
    };
    match places.iter().enumerate().any(clash) {
        true => {
            let why = "two arguments of the launch name the same memory, and one of them is written";
            Err(raise(Error::new("", "launch", ErrorKind::InvalidArgument { why })))
        }
        false => Ok(()),
    }
}

/// Makes a kernel of a source in the portable subset of CUDA C++ and HIP C++. The source declares the parameters;
/// `name` selects the kernel if there are several. `host` is the function that a host device runs instead, with arrays
/// of NumPy.
#[pyfunction]
#[pyo3(signature = (source, name=None, *, host=None, flags=None, bounds=false))]
pub(crate) fn compile(
    source: &str,
    name: Option<&str>,
    host: Option<Py<PyAny>>,
    flags: Option<Listed<String>>,
    bounds: bool,
) -> PyResult<Kernel> {
    let kernels = signature::kernels(source).map_err(PyValueError::new_err)?;
    let found = match (name, &kernels[..]) {
        (Some(name), kernels) => kernels.iter().find(|(own, _)| own == name),
        (None, [one]) => Some(one),
        (None, []) => return Err(PyValueError::new_err("the source has no kernel: GPUMEM_KERNEL name(..)")),
        (None, _) => return Err(PyValueError::new_err("the source has several kernels; name one")),
    };
    let (name, parameters) =
        found.ok_or_else(|| PyValueError::new_err("the source has no kernel of that name"))?;
    let parameters: Arc<[Parameter]> = parameters.clone().into();
    let infos = parameters.iter().map(Parameter::info).collect();
    // SAFETY: Python cannot promise anything about a kernel; its author answers for it, as in Numba.
    let mut declaration = unsafe { UntypedKernelDef::new(name, infos) }.source(source).bounds_checks(bounds);
    for flag in flags.into_iter().flat_map(|Listed(flags)| flags) {
        declaration = declaration.compiler_flag(&flag);
    }
    Ok(Kernel { name: name.clone(), parameters, declaration, host: host.map(Kept::from), loaded: Mutex::default() })
}

fn size(object: &Bound<'_, PyAny>) -> PyResult<[u32; 3]> {
    let Listed(lengths) = match object.extract() {
        Ok(length) => Listed(vec![length]),
        Err(_) => object.extract()?,
    };
    match lengths[..] {
        [x] => Ok([x, 1, 1]),
        [x, y] => Ok([x, y, 1]),
        [x, y, z] => Ok([x, y, z]),
        _ => Err(PyValueError::new_err("a grid and a block have one to three axes")),
    }
}

#[pymethods]
impl Kernel {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.host.visit(&visit)
    }

    /// The name of the function in the source.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Compiles the kernel for a device now, and not with its first launch.
    #[pyo3(signature = (device=None))]
    fn load(&self, py: Python<'_>, device: Option<device::GivenDevice>) -> PyResult<()> {
        self.of(py, &device::given(device)?).map(drop)
    }

    /// The source as the compiler of a device with waves of that size gets it.
    #[pyo3(signature = (wave_size=32))]
    fn source(&self, wave_size: u32) -> Option<String> {
        self.declaration.portable_text(wave_size)
    }

    fn __getitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyTuple>) -> PyResult<Launch> {
        if !(2..=4).contains(&key.len()) {
            return Err(PyValueError::new_err("a launch is kernel[grid, block, stream, shared_bytes]"));
        }
        let stream = match key.get_item(2) {
            Ok(stream) => stream::of_any_device(Some(stream.extract()?)).map(|stream| stream.0),
            Err(_) => None,
        };
        let shared_bytes = if key.len() == 4 { key.get_item(3)?.extract()? } else { 0 };
        let dims = LaunchConfig {
            groups: size(&key.get_item(0)?)?,
            group_size: size(&key.get_item(1)?)?,
            shared_bytes,
        };
        Ok(Launch { kernel: slf.clone().unbind().into(), dims, stream })
    }

    fn __repr__(&self) -> String {
        let names: Vec<_> = self.parameters.iter().map(|parameter| parameter.name.as_str()).collect();
        format!("<pygpumem.Kernel {}({})>", self.name, names.join(", "))
    }
}

impl Kernel {
    /// The kernel for one launch. On a host device with a function of Python it is new for each launch that is not recorded,
    /// because the function's arrays keep the memory of this launch.
    fn for_launch(
        &self,
        py: Python<'_>,
        stream: &gpumem::Stream,
        given: &[Given],
    ) -> PyResult<UntypedKernel<AnyBackend>> {
        let device = stream.device();
        let is_new = is_host(device) && !is_recorded(stream);
        let Some(function) = self.host.as_ref().filter(|_| is_new) else {
            return self.of(py, device);
        };
        let memory = given.iter().filter_map(|given| match given {
            Given::Value(_) | Given::Varying(_) => None,
            Given::Array { elements, .. } => Some(dtype::again(elements)),
        });
        let function = body::host_function(function.clone_ref(py).into(), self.parameters.clone(), memory.collect());
        self.on_host(function).load(device).map_err(raise)
    }

    /// Enqueues a launch with arguments that are those of the parameters, in their order.
    pub(crate) fn enqueue(
        &self,
        py: Python<'_>,
        stream: &gpumem::Stream,
        dims: LaunchConfig,
        all: &mut [Given],
    ) -> PyResult<()> {
        if all.iter().filter(|given| matches!(given, Given::Array { .. })).count() > 1 {
            check_apart(all.iter().filter_map(Given::place).collect())?;
        }
        let loaded = self.for_launch(py, stream, all)?;
        py.detach(|| {
            let mut arguments = UntypedArguments::new(stream);
            for given in all {
                match given {
                    Given::Value(bytes) => arguments.value(bytes)?,
                    Given::Varying(number) => arguments.varying(number)?,
                    Given::Array { elements, form, .. } => each!(elements, array => match *form {
                        Form::Slice { write: true } => arguments.slice_mut(array)?,
                        Form::Slice { .. } => arguments.slice(&*array)?,
                        Form::View { write: true, rank } => arguments.view_mut(array, rank)?,
                        Form::View { rank, .. } => arguments.view(&*array, rank)?,
                        Form::Value => {}
                    }),
                }
            }
            // SAFETY: kinds and element types have been compared with the parameters, one by one.
            unsafe { loaded.launch(&dims, arguments) }
        })
        .map_err(raise)
    }

    /// The declaration with a function for host devices.
    fn on_host(&self, function: HostFunction) -> UntypedKernelDef {
        let infos = self.parameters.iter().map(Parameter::info).collect();
        // SAFETY: as in `compile`.
        unsafe { UntypedKernelDef::new(&self.name, infos) }.host_body(function)
    }

    /// The kernel of a device, for launches that are recorded and those on GPUs.
    fn of(&self, py: Python<'_>, device: &gpumem::Device) -> PyResult<UntypedKernel<AnyBackend>> {
        let device = &outside(device);
        if let Some(function) = self.host.as_ref().filter(|_| is_host(device)) {
            // Not kept: Python's collector would take its reference to the function for one from outside.
            let function = body::copying_host_function(function.clone_ref(py).into(), self.parameters.clone());
            return self.on_host(function).load(device).map_err(raise);
        }
        let find = || {
            let loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
            loaded.iter().find(|(own, _)| own == device).map(|(_, kernel)| kernel.clone())
        };
        if let Some(kernel) = find() {
            return Ok(kernel);
        }
        let kernel = py.detach(|| self.declaration.load(device)).map_err(raise)?;
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner).push((device.clone(), kernel.clone()));
        Ok(kernel)
    }
}

#[pymethods]
impl Launch {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.kernel.visit(&visit)
    }

    /// Launches the kernel after all work on any stream that conflicts with the arrays. Arrays of NumPy are copied to
    /// the device, and back if the kernel may write them; the call then waits for the launch.
    #[pyo3(signature = (*arguments))]
    fn __call__(&self, py: Python<'_>, arguments: &Bound<'_, PyTuple>) -> PyResult<()> {
        let kernel = self.kernel.get();
        let (given, expected) = (arguments.len(), kernel.parameters.len());
        if given != expected {
            return Err(PyTypeError::new_err(format!(
                "{} takes {expected} arguments, not {given}",
                kernel.name
            )));
        }
        let stream = match &self.stream {
            Some(stream) => stream.clone(),
            None => default_stream(arguments)?,
        };
        let (mut all, mut back) = (Vec::new(), Vec::new());
        for (parameter, argument) in kernel.parameters.iter().zip(arguments.iter()) {
            all.push(match parameter.form {
                Form::Value => match argument.cast::<Varying>() {
                    Ok(number) => Given::Varying(number.get().of(py, parameter.element)?),
                    Err(_) => Given::Value(number::bytes(parameter.element, &argument)?),
                },
                _ => {
                    let (given, host) = array(py, parameter, &argument, &stream)?;
                    back.extend(host);
                    given
                }
            });
        }
        // Asked before the launch, which would have taken place where the wait is refused.
        let wait = (!back.is_empty()).then(|| may_wait("launch")).transpose()?;
        kernel.enqueue(py, &stream, self.dims, &mut all)?;
        if let Some(wait) = wait {
            wait.for_work(py, &stream)?;
        }
        back.into_iter()
            .try_for_each(|(device, host, _fixed)| device.copy_to_host(py, Some(&host), None).map(drop))
    }
}

fn is_host(device: &gpumem::Device) -> bool {
    device.info().backend == "host"
}

/// The stream of a launch that names none: that of the first array's device.
fn default_stream(arguments: &Bound<'_, PyTuple>) -> PyResult<gpumem::Stream> {
    for argument in arguments.iter() {
        if let Some(array) = seen_by_device(&directed(&argument).0)? {
            let device = each!(&array.get().elements, array => array.device().cloned()).map_err(raise)?;
            return device.default_stream().map_err(raise);
        }
    }
    device::current()?.default_stream().map_err(raise)
}

/// The array of an argument, and which way it is copied, if the argument says it: to the device, and back.
fn directed<'py>(argument: &Bound<'py, PyAny>) -> (Bound<'py, PyAny>, Option<(bool, bool)>) {
    match argument.cast::<Direction>() {
        Ok(direction) => {
            let direction = direction.get();
            (direction.array(argument.py()), Some((direction.up, direction.down)))
        }
        Err(_) => (argument.clone(), None),
    }
}

/// An array of the library's whose elements the device sees where they are. A page-locked one that it does not see is copied, as any other
/// array of the host.
fn seen_by_device<'py>(argument: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, DeviceNDArray>>> {
    let py = argument.py();
    match page_locked(argument)? {
        Some(host) if host.get().is_visible() => Ok(Some(Bound::new(py, host.get().device_view(py)?)?)),
        _ => Ok(argument.cast().ok().cloned()),
    }
}

/// A temporary array, the host array that it is copied back to, and what fixes the memory of that until then.
type Back<'py> = Option<(DeviceNDArray, Bound<'py, PyAny>, Vec<Bound<'py, PyAny>>)>;

/// The array for a parameter. An array of the host comes with the copy back.
fn array<'py>(
    py: Python<'py>,
    parameter: &Parameter,
    argument: &Bound<'py, PyAny>,
    stream: &gpumem::Stream,
) -> PyResult<(Given, Back<'py>)> {
    let (form, write) = (parameter.form, parameter.form.is_written());
    let (argument, direction) = directed(argument);
    let (argument, (up, down)) = (&argument, direction.unwrap_or((true, true)));
    if !(up || write) {
        let why = format!("`{}` is only read: an array that is not copied to the device is written", parameter.name);
        return Err(PyValueError::new_err(why));
    }
    let wrong = |found: String| {
        let (name, wanted) = (&parameter.name, parameter.element);
        PyTypeError::new_err(format!("`{name}` is an array of {wanted}, and the elements are {found}"))
    };
    let there = match seen_by_device(argument)? {
        Some(array) => Some(array),
        None => interchange::device_source(argument, Some(stream.device()))?,
    };
    if let Some(array) = there {
        let array = array.get();
        if array.dtype.number() != Some(parameter.element) {
            return Err(wrong(array.dtype.name(py)?));
        }
        if write {
            check_writable(array.read_only)?;
        }
        return Ok((Given::Array { elements: array.again(), form, host: None }, None));
    }
    let down = write && down;
    if write && is_recorded(stream) {
        let what = NotRecorded::HostArguments;
        return Err(raise(Error::new("", "launch", ErrorKind::NotRecordable { what })));
    }
    let host = if down { Host::to_update(argument)? } else { Host::of(argument)? };
    if host.dtype.number() != Some(parameter.element) {
        return Err(wrong(host.dtype.name(py)?));
    }
    let copy = if up { crate::make::upload(py, &host, stream)? } else { crate::make::zeros_for(py, &host, stream)? };
    let given = Given::Array { elements: copy.again(), form, host: Some(Box::new((host.place(), down))) };
    Ok((given, down.then(|| (copy, argument.clone(), host.into_fixed()))))
}
