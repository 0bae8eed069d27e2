//! Page-locked arrays.

use crate::dtype::with_type;
use crate::{
    array::DeviceNDArray,
    device, dtype,
    dtype::{Elements, hold},
    error::raise,
    make,
};
use gpumem::{
    DeviceViewMut, Element, ElementType, Error, MappedArray, MappedOptions, PinnedArray, ndarray::IxDyn,
};
use pyo3::{exceptions::PyValueError, prelude::*, types::PyDict};
use std::sync::{Mutex, PoisonError};

/// What is asked of a page-locked array, whatever its elements.
trait HostMemory: Send {
    /// Waits for whatever uses the memory. Gives the address of the first element.
    fn settle(&mut self) -> Result<usize, Error>;
    /// The array as the device sees it.
    fn device_view(&mut self) -> Option<Elements>;
}

impl<T: Element> HostMemory for PinnedArray<T, IxDyn> {
    fn settle(&mut self) -> Result<usize, Error> {
        Ok(self.view_mut()?.as_mut_ptr().expose_provenance())
    }

    fn device_view(&mut self) -> Option<Elements> {
        None
    }
}

impl<T: Element> HostMemory for MappedArray<T, IxDyn>
where
    Elements: From<DeviceViewMut<'static, T, IxDyn>>,
{
    fn settle(&mut self) -> Result<usize, Error> {
        Ok(self.view_mut()?.as_mut_ptr().expose_provenance())
    }

    fn device_view(&mut self) -> Option<Elements> {
        Some(hold(&self.device_view_mut()))
    }
}

/// A page-locked array. `numpy.asarray` of it is a NumPy array over the same memory.
#[pyclass(frozen, module = "gpumem", name = "HostNDArray")]
pub(crate) struct HostNDArray {
    memory: Mutex<Box<dyn HostMemory>>,
    element: ElementType,
    shape: Vec<usize>,
    strides: Vec<isize>,
}

#[pymethods]
impl HostNDArray {
    /// Waits for the device, and says where the elements are. What is enqueued on the memory after that must be waited
    /// for before the elements are looked at again.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let address = py.detach(|| self.memory.lock().unwrap_or_else(PoisonError::into_inner).settle());
        let dict = PyDict::new(py);
        dict.set_item("shape", pyo3::types::PyTuple::new(py, &self.shape)?)?;
        dict.set_item("strides", pyo3::types::PyTuple::new(py, &self.strides)?)?;
        dict.set_item("typestr", self.element.to_string())?;
        dict.set_item("data", (address.map_err(raise)?, false))?;
        dict.set_item("version", 3)?;
        Ok(dict)
    }

    /// The array as the device sees it, for mapped arrays.
    #[getter]
    fn device_view(&self) -> PyResult<DeviceNDArray> {
        match self.memory.lock().unwrap_or_else(PoisonError::into_inner).device_view() {
            Some(elements) => Ok(DeviceNDArray::new(elements)),
            None => Err(PyValueError::new_err("a pinned array has no device address; make a mapped one")),
        }
    }

    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        dtype::numpy(py, self.element)
    }

    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyTuple>> {
        pyo3::types::PyTuple::new(py, &self.shape)
    }
}

/// A new page-locked array of zeros.
#[pyfunction]
#[pyo3(signature = (shape, dtype=None, strides=None, order="C", device=None))]
fn pinned_array(
    py: Python<'_>,
    shape: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    strides: Option<Vec<isize>>,
    order: &str,
    device: Option<&Bound<'_, device::Device>>,
) -> PyResult<HostNDArray> {
    let element = dtype::parse(py, dtype)?;
    let (device, spec) = (device::given(device)?, make::spec(make::shape(shape)?, strides, order)?);
    with_type!(element, {
        let array = py.detach(|| device.pinned_array::<T, _>(spec)).map_err(raise)?;
        let (shape, strides) = (array.shape().to_vec(), array.layout().strides().to_vec());
        HostNDArray { memory: Mutex::new(Box::new(array)), element, shape, strides }
    })
}

/// A new page-locked array of zeros that the device can use.
#[pyfunction]
#[pyo3(signature = (shape, dtype=None, strides=None, order="C", portable=false, wc=false, device=None))]
#[allow(clippy::too_many_arguments)] // Numba's own
fn mapped_array(
    py: Python<'_>,
    shape: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    strides: Option<Vec<isize>>,
    order: &str,
    portable: bool,
    wc: bool,
    device: Option<&Bound<'_, device::Device>>,
) -> PyResult<HostNDArray> {
    let element = dtype::parse(py, dtype)?;
    let (device, spec) = (device::given(device)?, make::spec(make::shape(shape)?, strides, order)?);
    let options = MappedOptions { portable, write_combined: wc };
    with_type!(element, {
        let array = py.detach(|| device.mapped_array::<T, _>(spec, options)).map_err(raise)?;
        let (shape, strides) = (array.shape().to_vec(), array.layout().strides().to_vec());
        HostNDArray { memory: Mutex::new(Box::new(array)), element, shape, strides }
    })
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(pinned_array, module)?)?;
    module.add_function(wrap_pyfunction!(mapped_array, module)?)
}
