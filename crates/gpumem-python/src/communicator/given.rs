//! The arguments of operations: arrays, and what is computed.

use crate::dtype::each;
use crate::{
    device,
    device_array::DeviceNDArray,
    dtype::{Elements, check_writable},
    host::Host,
    interchange,
    make::upload,
};
use gpumem::Layout;
use pyo3::{exceptions::PyValueError, prelude::*};

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
    ($op:expr, $elements:expr, $array:ident, $reduction:ident => $body:expr) => {
        reduce!(@ $op, $elements, $array, $reduction, $body;
            Sum: I8 i8, U8 u8, I32 i32, U32 u32, I64 i64, U64 u64, F16 half::f16, F32 f32, F64 f64,
                C64 num_complex::Complex<f32>, C128 num_complex::Complex<f64>;
            Average: F16 half::f16, F32 f32, F64 f64, C64 num_complex::Complex<f32>, C128 num_complex::Complex<f64>;
            Product: I8 i8, U8 u8, I32 i32, U32 u32, I64 i64, U64 u64, F16 half::f16, F32 f32, F64 f64;
            Min: I8 i8, U8 u8, I32 i32, U32 u32, I64 i64, U64 u64, F16 half::f16, F32 f32, F64 f64;
            Max: I8 i8, U8 u8, I32 i32, U32 u32, I64 i64, U64 u64, F16 half::f16, F32 f32, F64 f64;
        )
    };
    (@ $op:expr, $elements:expr, $array:ident, $reduction:ident, $body:expr;
        $($name:ident: $($variant:ident $element:ty),*;)*) => {
        match ($op, $elements) {
            $($(($crate::communicator::given::Computed::$name, $crate::dtype::Elements::$variant($array)) => {
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
    array: Py<DeviceNDArray>,
    /// The array of the host to which the result is copied.
    back: Option<Py<PyAny>>,
    /// Whether its readers have no streams.
    pub(super) is_of_host: bool,
}

impl RankArray {
    pub(super) fn of(object: &Bound<'_, PyAny>, stream: &gpumem::Stream) -> PyResult<Self> {
        let (py, device) = (object.py(), stream.device());
        if let Some(array) = interchange::device_source(object, Some(device))? {
            return Ok(Self { array: array.unbind(), back: None, is_of_host: false });
        }
        if device.info().backend == "host" && object.getattr_opt("__dlpack__")?.is_some() {
            let own = Bound::new(py, device::Device(device.clone()))?;
            if let Ok(array) = interchange::from_dlpack(object, Some(&own)) {
                return Ok(Self { array: Py::new(py, array)?, back: None, is_of_host: true });
            }
        }
        let array = upload(py, &Host::of(object)?, stream)?;
        Ok(Self { array: Py::new(py, array)?, back: Some(object.clone().unbind()), is_of_host: true })
    }

    pub(super) fn elements(&self) -> &Elements {
        &self.array.get().elements
    }

    pub(super) fn check_writable(&self) -> PyResult<()> {
        check_writable(self.array.get().read_only)
    }

    /// Copies the elements to the array of the host that they are of, if they are a copy.
    pub(super) fn copy_back(&self, py: Python<'_>) -> PyResult<()> {
        let Some(back) = &self.back else { return Ok(()) };
        self.array.get().copy_to_host(py, Some(back.bind(py)), None).map(drop)
    }

    /// Refuses arrays that share memory: an operation in place takes one array.
    pub(super) fn check_apart(&self, other: &Self) -> PyResult<()> {
        let (own, others) = (self.place(), other.place());
        let first = own.0.min(others.0);
        let from_first = |(start, layout): (u64, Layout)| {
            let offset = usize::try_from(start - first).ok()?.checked_add(layout.offset())?;
            layout.with_offset(offset).ok()
        };
        // Memory so far apart that no layout reaches from one to the other is not shared.
        match (from_first(own), from_first(others)) {
            (Some(own), Some(others)) if own.overlaps(&others) => Err(PyValueError::new_err(
                "the arrays share memory; for an operation in place give one of them",
            )),
            _ => Ok(()),
        }
    }

    /// Where its layout begins, and its layout.
    fn place(&self) -> (u64, Layout) {
        each!(self.elements(), array => {
            let layout = array.layout();
            (array.address().wrapping_sub(layout.offset() as u64), layout.clone())
        })
    }
}
