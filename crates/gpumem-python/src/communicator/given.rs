//! The arguments of operations: arrays, and what is computed.

use crate::dtype::each;
use crate::{
    device,
    device_array::DeviceNDArray,
    dtype::{self, Elements, check_writable},
    host::Host,
    interchange,
    make::upload,
};
use gpumem::{DeviceViewMut, ndarray::IxDyn};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
};

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
pub(super) struct RankArray<'py> {
    pub(super) array: Bound<'py, DeviceNDArray>,
    /// The array of the host to which the result is copied.
    pub(super) back: Option<Bound<'py, PyAny>>,
    /// Whether its readers have no streams.
    pub(super) is_of_host: bool,
}

impl<'py> RankArray<'py> {
    pub(super) fn of(object: &Bound<'py, PyAny>, stream: &gpumem::Stream) -> PyResult<Self> {
        let (py, device) = (object.py(), stream.device());
        if let Some(array) = interchange::device_source(object, Some(device))? {
            return Ok(Self { array, back: None, is_of_host: false });
        }
        if device.info().backend == "host" && object.getattr_opt("__dlpack__")?.is_some() {
            let own = Bound::new(py, device::Device(device.clone()))?;
            if let Ok(array) = interchange::from_dlpack(object, Some(&own)) {
                return Ok(Self { array: Bound::new(py, array)?, back: None, is_of_host: true });
            }
        }
        let array = upload(py, &Host::of(object)?, stream)?;
        Ok(Self { array: Bound::new(py, array)?, back: Some(object.clone()), is_of_host: true })
    }

    pub(super) fn elements(&self) -> &Elements {
        &self.array.get().elements
    }

    /// The elements, to be written.
    pub(super) fn to_write<T: gpumem::Element>(&self) -> PyResult<DeviceViewMut<'static, T, IxDyn>> {
        check_writable(self.array.get().read_only)?;
        let same = dtype::elements_of(self.elements());
        same.ok_or_else(|| PyTypeError::new_err("the elements of the two arrays have different types"))
    }

    /// Refuses arrays that share memory: an operation in place takes one array.
    pub(super) fn check_apart(&self, other: &Self) -> PyResult<()> {
        let bytes = |given: &Self| {
            each!(given.elements(), array => {
                let extent = array.layout().extent();
                let first = array.address().wrapping_sub(array.layout().offset() as u64);
                (first.wrapping_add(extent.start as u64), first.wrapping_add(extent.end as u64))
            })
        };
        let ((start, end), (other_start, other_end)) = (bytes(self), bytes(other));
        match start < other_end && other_start < end {
            true => Err(PyValueError::new_err(
                "the arrays share memory; for an operation in place give one of them",
            )),
            false => Ok(()),
        }
    }
}
