//! Element types that are known when the program runs.

use crate::error::{raise, raise_descriptor};
use gpumem::{
    Any, DescriptorError, DeviceViewMut, ElementKind, ElementType, ErrorKind, ImportedArray, Storage,
    ndarray::IxDyn,
};
use pyo3::{prelude::*, types::PyString};

/// One array for each element type that NumPy has a name for.
macro_rules! elements {
    ($($name:ident: $element:ty, $kind:ident $bytes:literal;)*) => {
        /// An array of one of the element types.
        pub(crate) enum Elements {
            $(
                #[doc = stringify!($element)]
                $name(DeviceViewMut<'static, $element, IxDyn>),
            )*
        }

        $(
            impl From<DeviceViewMut<'static, $element, IxDyn>> for Elements {
                fn from(array: DeviceViewMut<'static, $element, IxDyn>) -> Self {
                    Elements::$name(array)
                }
            }
        )*

        /// Runs an expression for the array that there is; `$array` is bound to it, `T` names its element.
        macro_rules! each {
            ($elements:expr, $array:ident => $body:expr) => {
                match $elements {
                    $($crate::dtype::Elements::$name($array) => {
                        #[allow(dead_code)]
                        type T = $element;
                        $body
                    })*
                }
            };
        }

        /// Runs an expression for the type of a name; `T` is bound to it.
        macro_rules! with_type {
            ($dtype:expr, $body:expr) => {{
                let found: gpumem::ElementType = $dtype;
                match (found.kind, found.bytes) {
                    $((gpumem::ElementKind::$kind, $bytes) => {
                        type T = $element;
                        Ok($body)
                    })*
                    _ => Err($crate::dtype::no_such_type(found)),
                }
            }};
        }
    };
}

elements! {
    Bool: gpumem::Bool, Bool 1;
    I8: i8, Int 1;
    I16: i16, Int 2;
    I32: i32, Int 4;
    I64: i64, Int 8;
    U8: u8, UInt 1;
    U16: u16, UInt 2;
    U32: u32, UInt 4;
    U64: u64, UInt 8;
    F16: half::f16, Float 2;
    F32: f32, Float 4;
    F64: f64, Float 8;
    C64: num_complex::Complex<f32>, Complex 8;
    C128: num_complex::Complex<f64>, Complex 16;
}

#[allow(
    clippy::single_component_path_imports,
    reason = "it makes the macros items that others can name"
)]
pub(crate) use {each, with_type};

pub(crate) fn no_such_type(found: ElementType) -> PyErr {
    let why = "arrays hold booleans, integers, floats and complex numbers";
    raise_descriptor(DescriptorError::TypeName { text: found.to_string(), why })
}

/// What NumPy calls a type, from whatever it takes as one; `None` is float64, as in Numba.
pub(crate) fn parse(py: Python<'_>, dtype: Option<&Bound<'_, PyAny>>) -> PyResult<ElementType> {
    let Some(dtype) = dtype.filter(|dtype| !dtype.is_none()) else {
        return Ok(ElementType::new(ElementKind::Float, 8));
    };
    let found = py.import("numpy")?.getattr("dtype")?.call1((dtype,))?.getattr("str")?;
    found.cast::<PyString>()?.to_str()?.parse().map_err(raise_descriptor)
}

/// NumPy's type of that name.
pub(crate) fn numpy(py: Python<'_>, element: ElementType) -> PyResult<Bound<'_, PyAny>> {
    py.import("numpy")?.getattr("dtype")?.call1((element.to_string(),))
}

/// An imported array as Python holds it, and whether it may only be read.
pub(crate) fn adopt<T>(array: ImportedArray<T, IxDyn>) -> (Elements, bool)
where
    T: gpumem::Element,
    Elements: From<DeviceViewMut<'static, T, IxDyn>>,
{
    let read_only = array.is_read_only() || array.layout().has_self_overlap();
    // SAFETY: Python's arrays promise nothing about their elements, and check `read_only` before they write.
    (unsafe { array.detach() }.into(), read_only)
}

/// A view or an array of ours as Python holds it: it keeps the memory alive.
pub(crate) fn hold<S>(array: &gpumem::generic::ArrayBase<S, IxDyn>) -> Elements
where
    S: Storage<Backend = Any>,
    Elements: From<DeviceViewMut<'static, S::Elem, IxDyn>>,
{
    // SAFETY: as in `adopt`.
    unsafe { array.detach() }.into()
}

/// Refuses to write where only reading is allowed.
pub(crate) fn check_writable(read_only: bool) -> PyResult<()> {
    match read_only {
        false => Ok(()),
        true => Err(raise(gpumem::Error::new("", "write", ErrorKind::from(DescriptorError::ReadOnly)))),
    }
}
