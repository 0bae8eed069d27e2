//! The arguments of operations: arrays, and what is computed.

use crate::{
    device::GivenDevice,
    device_array::{DeviceNDArray, Way},
    dtype::{Elements, Place, check_writable},
    host::{Host, is_of_numpy},
    interchange,
    kept::{Kept, Traverse},
    make::upload,
};
use pyo3::{PyTraverseError, PyVisit, exceptions::PyValueError, prelude::*, types::PyList};
use std::sync::Arc;

/// What is computed.
#[derive(Clone, Copy)]
pub(super) enum Computed {
    Sum,
    Product,
    Min,
    Max,
    Average,
}

pub(super) fn computed(op: &str) -> PyResult<Computed> {
    match op {
        "sum" => Ok(Computed::Sum),
        "prod" => Ok(Computed::Product),
        "min" => Ok(Computed::Min),
        "max" => Ok(Computed::Max),
        "avg" => Ok(Computed::Average),
        _ => Err(PyValueError::new_err(format!("op is 'sum', 'prod', 'min', 'max' or 'avg', not {op:?}"))),
    }
}

/// Runs an expression for elements and a reduction that go together; `T` names the element, `$reduction` the reduction.
macro_rules! reduce {
    ($op:expr, $numbers:expr, $array:ident, $reduction:ident => $body:expr) => {
        reduce!(@ $op, $numbers, $array, $reduction, $body;
            Sum: I8 i8, U8 u8, I32 i32, U32 u32, I64 i64, U64 u64, F16 half::f16, BF16 half::bf16, F32 f32, F64 f64,
                C64 num_complex::Complex<f32>, C128 num_complex::Complex<f64>;
            Average: F16 half::f16, BF16 half::bf16, F32 f32, F64 f64, C64 num_complex::Complex<f32>, C128 num_complex::Complex<f64>;
            Product: I8 i8, U8 u8, I32 i32, U32 u32, I64 i64, U64 u64, F16 half::f16, BF16 half::bf16, F32 f32, F64 f64;
            Min: I8 i8, U8 u8, I32 i32, U32 u32, I64 i64, U64 u64, F16 half::f16, BF16 half::bf16, F32 f32, F64 f64;
            Max: I8 i8, U8 u8, I32 i32, U32 u32, I64 i64, U64 u64, F16 half::f16, BF16 half::bf16, F32 f32, F64 f64;
        )
    };
    (@ $op:expr, $numbers:expr, $array:ident, $reduction:ident, $body:expr;
        $($name:ident: $($variant:ident $element:ty),*;)*) => {
        match ($op, $numbers) {
            $($(($crate::communicator::given::Computed::$name, Some($crate::dtype::Elements::$variant($array))) => {
                type T = $element;
                let $reduction = gpumem::collectives::$name;
                $body
            })*)*
            _ => Err(pyo3::exceptions::PyTypeError::new_err("this reduction is not defined for the elements of the array")),
        }
    };
}

pub(super) use reduce;

/// An array of a call.
pub(super) struct RankArray {
    array: Kept<DeviceNDArray>,
    /// The array of the host that it is a copy of, and where its elements lie: its readers have no streams, and use it again after an
    /// interrupted wait, when the operation goes on.
    back: Option<(Back, Place)>,
}

/// Where a result is copied to.
enum Back {
    /// An array with what fixes its memory.
    OfNumPy { array: Kept, _fixed: Kept<PyList> },
    /// A tensor of another library, over its memory.
    Tensor(Kept<DeviceNDArray>),
}

impl Traverse for RankArray {
    fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.array.visit(visit)?;
        match &self.back {
            None => Ok(()),
            Some((Back::Tensor(tensor), _)) => tensor.visit(visit),
            Some((Back::OfNumPy { array, _fixed }, _)) => {
                array.visit(visit)?;
                _fixed.visit(visit)
            }
        }
    }
}

impl RankArray {
    /// Takes any object that is an array, or one that can be written as well. Nothing has been called on other ranks yet.
    pub(super) fn of(object: &Bound<'_, PyAny>, stream: &gpumem::Stream, write: bool) -> PyResult<Self> {
        let array = Self::read(object, stream, write)?;
        let written = match &array.back {
            Some((Back::Tensor(tensor), _)) => tensor,
            _ => &array.array,
        };
        match write {
            true => check_writable(written.get().read_only).map(|()| array),
            false => Ok(array),
        }
    }

    fn read(object: &Bound<'_, PyAny>, stream: &gpumem::Stream, write: bool) -> PyResult<Self> {
        let (py, device) = (object.py(), stream.device());
        if let Some(array) = interchange::device_source(object, Some(device))? {
            return Ok(Self { array: array.unbind().into(), back: None });
        }
        if device.info().backend == "host"
            && !is_of_numpy(object)?
            && object.getattr_opt("__dlpack__")?.is_some()
        {
            let view = || Host::of(&py.import("numpy")?.call_method1("from_dlpack", (object,))?);
            if let Ok(tensor) = interchange::from_dlpack(object, Some(GivenDevice(device.clone())))
                && let Ok(host) = view()
            {
                let place = Place::of(&tensor.elements);
                let back = Some((Back::Tensor(Py::new(py, tensor)?.into()), place));
                return Ok(Self { array: Py::new(py, upload(py, &host, stream)?)?.into(), back });
            }
        }
        let host = if write { Host::to_update(object)? } else { Host::of(object)? };
        let (array, place) = (Py::new(py, upload(py, &host, stream)?)?.into(), host.place());
        let _fixed = PyList::new(py, host.into_fixed())?.unbind().into();
        let back = Back::OfNumPy { array: object.clone().unbind().into(), _fixed };
        Ok(Self { array, back: Some((back, place)) })
    }

    /// Whether it is a copy of an array of the host.
    pub(super) fn is_of_host(&self) -> bool {
        self.back.is_some()
    }

    pub(super) fn elements(&self) -> &Elements {
        &self.array.get().elements
    }

    /// The elements, if they are numbers. Records, texts and unaligned numbers are held as bytes, and dates as integers.
    pub(super) fn numbers(&self) -> Option<&Elements> {
        self.array.get().dtype.number().map(|_| self.elements())
    }

    /// NumPy's name of elements that are no numbers, which ranks have to agree on.
    pub(super) fn element_name(&self) -> PyResult<Option<Arc<str>>> {
        match self.numbers() {
            Some(_) => Ok(None),
            None => Python::attach(|py| Ok(Some(self.array.get().dtype.name(py)?.into()))),
        }
    }

    /// Refuses arrays of different elements: an operation converts none.
    pub(super) fn check_type(&self, other: &Self) -> PyResult<()> {
        Python::attach(|py| self.array.get().dtype.expect(py, &other.array.get().dtype))
    }

    /// Copies the elements to the array of the host that they are of, if they are a copy.
    pub(super) fn copy_back(&self, py: Python<'_>) -> PyResult<()> {
        match &self.back {
            None => Ok(()),
            Some((Back::OfNumPy { array, .. }, _)) => {
                self.array.get().copy_to_host(py, Some(array.bind(py)), None).map(drop)
            }
            Some((Back::Tensor(tensor), _)) => {
                tensor.get().fill_from(py, self.array.bind(py), None, Way::Copy)
            }
        }
    }

    /// Refuses arrays that share memory: an operation in place takes one array.
    pub(super) fn check_apart(&self, other: &Self) -> PyResult<()> {
        match self.place().shares(&other.place()) {
            true => Err(PyValueError::new_err(
                "the arrays share memory; for an operation in place give one of them",
            )),
            false => Ok(()),
        }
    }

    /// Where the caller's elements lie, and not those of a copy.
    fn place(&self) -> Place {
        match &self.back {
            Some((_, place)) => place.clone(),
            None => Place::of(self.elements()),
        }
    }
}
