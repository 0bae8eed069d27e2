//! What a graph is recorded with and launched with.

use super::members::{Sequence, Visited, Visit};
use crate::dtype::each;
use crate::{
    device_array::DeviceNDArray,
    dtype::{Place, check_writable, hold},
    element::DType,
    error::raise,
    interchange, number,
    varying::{Number, Varying},
};
use gpumem::{
    AnyBackend, DeviceView, DeviceViewMut, ElementType, Error, Layout, LayoutError, ndarray::IxDyn,
};
use gpumem_runtime::internal::{UntypedNumber, UntypedValue};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::{PyBool, PyComplex, PyFloat, PyInt, PyString, PyTuple, PyType},
};

/// One parameter of a graph.
pub(super) enum GraphParameter {
    /// As Python sees it.
    Array {
        dtype: DType,
        layout: Layout,
        read_only: bool,
    },
    Number(ElementType),
    Several(Vec<GraphParameter>, Sequence),
}

/// The arrays and the numbers of one recording or launch, in the order of the parameters.
#[derive(Default)]
pub(super) struct Taken {
    writes: Vec<DeviceViewMut<'static, u8, IxDyn>>,
    reads: Vec<DeviceViewMut<'static, u8, IxDyn>>,
    numbers: Vec<UntypedNumber<AnyBackend>>,
    /// Where all arrays lie, each with whether it is written.
    pub(super) places: Vec<(Place, bool)>,
    /// That of the first array.
    pub(super) device: Option<gpumem::Device>,
}

/// Arguments of the library's.
type Arguments<'a> = (
    Vec<&'a mut DeviceViewMut<'static, u8, IxDyn>>,
    Vec<&'a DeviceViewMut<'static, u8, IxDyn>>,
    Vec<UntypedNumber<AnyBackend>>,
);

impl Taken {
    fn add(&mut self, array: &DeviceNDArray, read_only: bool) -> PyResult<()> {
        let bytes = array.bytes_of_elements()?;
        if self.device.is_none() {
            self.device = Some(bytes.device().map_err(raise)?.clone());
        }
        self.places.push((Place::of(&array.elements), !read_only));
        if read_only { self.reads.push(bytes) } else { self.writes.push(bytes) }
        Ok(())
    }

    fn add_number(&mut self, bytes: &[u8]) {
        self.numbers.push(UntypedNumber::Known(UntypedValue(bytes.into())));
    }

    /// As the library takes them, once.
    pub(super) fn arguments(&mut self) -> Arguments<'_> {
        let numbers = std::mem::take(&mut self.numbers);
        (self.writes.iter_mut().collect(), self.reads.iter().collect(), numbers)
    }
}

/// What the library gives to a body, in the order of the parameters.
pub(super) struct Inside<'g> {
    writes: std::vec::IntoIter<DeviceViewMut<'g, u8, IxDyn>>,
    reads: std::vec::IntoIter<DeviceView<'g, u8, IxDyn>>,
    numbers: std::vec::IntoIter<Number>,
}

type OfLibrary<'g> =
    (Vec<DeviceViewMut<'g, u8, IxDyn>>, Vec<DeviceView<'g, u8, IxDyn>>, Vec<Number>);

impl<'g> Inside<'g> {
    pub(super) fn new((writes, reads, numbers): OfLibrary<'g>) -> Self {
        Self { writes: writes.into_iter(), reads: reads.into_iter(), numbers: numbers.into_iter() }
    }
}

fn missing() -> PyErr {
    PyTypeError::new_err("the graph has other parameters")
}

impl GraphParameter {
    /// The parameter for an argument of `record`.
    pub(super) fn of(argument: &Bound<'_, PyAny>, visit: Visit<'_>, given: &mut Taken) -> PyResult<Self> {
        if let Some((kind, all, visit)) = visit.members(argument)? {
            let all = all.iter().map(|one| Self::of(one, visit, given)).collect::<PyResult<_>>()?;
            return Ok(Self::Several(all, kind));
        }
        if let Some(array) = interchange::device_source(argument, None)? {
            let (py, array) = (argument.py(), array.get());
            given.add(array, array.read_only)?;
            let (dtype, layout) = (array.dtype.clone_ref(py), array.layout()?);
            return Ok(Self::Array { dtype, layout, read_only: array.read_only });
        }
        let element = number_type(argument)?;
        given.add_number(&vec![0; element.bytes]);
        Ok(Self::Number(element))
    }

    /// Takes the argument of a launch, which is that number from 1 on.
    pub(super) fn take(
        &self,
        argument: &Bound<'_, PyAny>,
        visit: Visit<'_>,
        at: usize,
        device: &gpumem::Device,
        given: &mut Taken,
    ) -> PyResult<()> {
        match self {
            Self::Several(all, _) => {
                let wrong = || PyTypeError::new_err(format!("argument {at} is a list or a tuple"));
                let (_, members, visit) = visit.members(argument)?.ok_or_else(wrong)?;
                if members.len() != all.len() {
                    let (wanted, found) = (all.len(), members.len());
                    let text = format!("a list or tuple in argument {at} has {wanted} members, not {found}");
                    return Err(PyValueError::new_err(text));
                }
                all.iter().zip(&members).try_for_each(|(own, member)| own.take(member, visit, at, device, given))
            }
            Self::Number(element) => match argument.cast::<Varying>() {
                Ok(number) => {
                    let number = number.get().of(argument.py(), *element)?;
                    given.numbers.push(UntypedNumber::Varying(number));
                    Ok(())
                }
                Err(_) => {
                    given.add_number(&number::bytes(*element, argument)?);
                    Ok(())
                }
            },
            Self::Array { dtype, layout, read_only } => {
                let wrong = || {
                    PyTypeError::new_err(format!("argument {at} is a device array of each launch; copy others to the device first"))
                };
                let array = interchange::device_source(argument, Some(device))?.ok_or_else(wrong)?;
                let array = array.get();
                dtype.expect(argument.py(), &array.dtype)?;
                let own = array.layout()?;
                if own.shape() != layout.shape() || own.strides() != layout.strides() {
                    let (found, found_strides) = (own.shape().to_vec(), own.strides().to_vec());
                    let (expected, expected_strides) = (layout.shape().to_vec(), layout.strides().to_vec());
                    let error =
                        LayoutError::LayoutMismatch { found, found_strides, expected, expected_strides };
                    return Err(raise(Error::new("", "graph", error).at_argument(at)));
                }
                if !read_only {
                    check_writable(array.read_only)?;
                }
                given.add(array, *read_only)
            }
        }
    }

    /// What the body gets in its place.
    pub(super) fn inside<'py>(&self, py: Python<'py>, inside: &mut Inside<'_>) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::Several(all, kind) => {
                let all = all.iter().map(|one| one.inside(py, inside)).collect::<PyResult<_>>()?;
                kind.over(py, all)
            }
            Self::Number(element) => {
                let number = inside.numbers.next().ok_or_else(missing)?;
                Ok(Bound::new(py, Varying::new(number, *element))?.into_any())
            }
            Self::Array { dtype, read_only, .. } => {
                let elements = match read_only {
                    true => hold(&inside.reads.next().ok_or_else(missing)?),
                    false => hold(&inside.writes.next().ok_or_else(missing)?),
                };
                let bytes = DeviceNDArray::new(elements, DType::bytes(dtype.size()));
                let array = bytes.at(&bytes.layout()?, dtype.clone_ref(py))?;
                let array = if *read_only { array.into_read_only() } else { array };
                Ok(Bound::new(py, array)?.into_any())
            }
        }
    }
}

/// The device of the first array among the arguments of a launch.
pub(super) fn first_device(arguments: &Bound<'_, PyTuple>) -> PyResult<Option<gpumem::Device>> {
    fn find(object: &Bound<'_, PyAny>, visit: Visit<'_>) -> PyResult<Option<gpumem::Device>> {
        if let Ok(array) = object.cast::<DeviceNDArray>() {
            return each!(&array.get().elements, array => array.device().cloned()).map(Some).map_err(raise);
        }
        let Some((_, members, visit)) = visit.members(object)? else { return Ok(None) };
        members.iter().find_map(|member| find(member, visit).transpose()).transpose()
    }
    let visited = Visited::default();
    arguments.iter().find_map(|argument| find(&argument, Visit::new(&visited)).transpose()).transpose()
}

/// The type of a number of each launch: one that NumPy knows by a type or a name, or that of a number.
fn number_type(object: &Bound<'_, PyAny>) -> PyResult<ElementType> {
    let numpy = object.py().import("numpy")?;
    let is_python = object.is_instance_of::<PyBool>()
        || object.is_instance_of::<PyInt>()
        || object.is_instance_of::<PyFloat>()
        || object.is_instance_of::<PyComplex>();
    let named = if object.is_instance(&numpy.getattr("generic")?)? {
        object.getattr("dtype")?
    } else if is_python {
        object.get_type().into_any()
    } else if object.is_instance_of::<PyType>()
        || object.is_instance_of::<PyString>()
        || object.is_instance(&numpy.getattr("dtype")?)?
    {
        object.clone()
    } else {
        let text = "a graph is recorded with device arrays, types of numbers, numbers, and lists and tuples of them";
        return Err(PyTypeError::new_err(format!("{text}, not with {}", object.get_type().name()?)));
    };
    let dtype = DType::parse(object.py(), Some(&named))?;
    let none = || PyTypeError::new_err(format!("{named} is not a type of numbers"));
    dtype.number().ok_or_else(none)
}
