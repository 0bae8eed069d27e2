//! Element types that are known when the program runs.

use crate::error::{raise, raise_descriptor};
use gpumem::{
    AnyBackend, DescriptorError, DeviceViewMut, ElementKind, ElementType, ErrorKind, ImportedArray, Layout, Storage,
    ndarray::IxDyn,
};
use pyo3::{
    exceptions::PyImportError,
    prelude::*,
    sync::PyOnceLock,
    types::{PyDict, PyString},
};
use std::ops::Range;

/// One array for each element type that NumPy, or its extension `ml_dtypes`, has a name for.
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
    BF16: half::bf16, BFloat 2;
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

/// The name of the type that NumPy gets from the package `ml_dtypes`.
pub(crate) const BFLOAT16: &str = "bfloat16";

/// The names by which NumPy itself knows the elements above.
const NAMES: [&str; 14] =
    ["|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8", "<c8", "<c16"];

/// NumPy's objects for the elements above, looked up once: an array is made in less time than NumPy reads a name.
struct Known {
    /// The scalar type and the `dtype` of each, compared by identity.
    objects: Vec<(Py<PyAny>, Py<PyAny>, ElementType)>,
    /// NumPy's types for texts.
    texts: Py<PyDict>,
}

fn known(py: Python<'_>) -> PyResult<&Known> {
    static KNOWN: PyOnceLock<Known> = PyOnceLock::new();
    KNOWN.get_or_try_init(py, || {
        let make = py.import("numpy")?.getattr("dtype")?;
        let objects = NAMES.iter().map(|name| {
            let dtype = make.call1((*name,))?;
            Ok((dtype.getattr("type")?.unbind(), dtype.unbind(), name.parse().map_err(raise_descriptor)?))
        });
        Ok(Known { objects: objects.collect::<PyResult<_>>()?, texts: PyDict::new(py).unbind() })
    })
}

/// The element that an object names, if it is one of those above; does not ask NumPy about other objects.
pub(crate) fn known_element(py: Python<'_>, dtype: &Bound<'_, PyAny>) -> PyResult<Option<ElementType>> {
    let known = known(py)?;
    let mut objects = known.objects.iter();
    if let Some((.., element)) = objects.find(|(scalar, own, _)| dtype.is(scalar) || dtype.is(own)) {
        return Ok(Some(*element));
    }
    // A class of the program's may say that it equals any other text.
    let Ok(text) = dtype.cast_exact::<PyString>() else { return Ok(None) };
    if text == BFLOAT16 {
        return Ok(Some(ElementType::new(ElementKind::BFloat, 2)));
    }
    let texts = known.texts.bind(py);
    if let Some(at) = texts.get_item(text)? {
        return Ok(known.objects.get(at.extract::<usize>()?).map(|(.., element)| *element));
    }
    let found = py.import("numpy")?.getattr("dtype")?.call1((text,))?.getattr("str")?;
    let element = found.cast::<PyString>()?.to_str()?.parse().ok();
    // Only names of the elements above are kept, and there are few.
    let Some(at) = known.objects.iter().position(|(.., own)| Some(*own) == element) else { return Ok(None) };
    texts.set_item(text, at)?;
    Ok(element)
}

/// NumPy's type of that name.
pub(crate) fn numpy(py: Python<'_>, element: ElementType) -> PyResult<Bound<'_, PyAny>> {
    if let Some((_, dtype, _)) = known(py)?.objects.iter().find(|(.., own)| *own == element) {
        return Ok(dtype.bind(py).clone());
    }
    let dtype = py.import("numpy")?.getattr("dtype")?;
    if element.kind != ElementKind::BFloat {
        return dtype.call1((element.to_string(),));
    }
    let extension = py.import("ml_dtypes").map_err(|_| {
        PyImportError::new_err("NumPy has no bfloat16 of its own: install the package ml_dtypes")
    })?;
    dtype.call1((extension.getattr(BFLOAT16)?,))
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

/// A view or an array of gpumem as a Python object: it keeps the memory alive.
pub(crate) fn hold<S>(array: &gpumem::generic::ArrayBase<S, IxDyn>) -> Elements
where
    S: Storage<Backend = AnyBackend>,
    Elements: From<DeviceViewMut<'static, S::Elem, IxDyn>>,
{
    // SAFETY: as in `adopt`.
    unsafe { array.detach() }.into()
}

/// The same elements once more.
pub(crate) fn again(elements: &Elements) -> Elements {
    each!(elements, array => hold(&array.view()))
}

/// The array as one of `T`, if it is one.
pub(crate) fn elements_of<T: gpumem::Element>(
    elements: &Elements,
) -> Option<DeviceViewMut<'static, T, IxDyn>> {
    each!(elements, array => {
        // SAFETY: as in `adopt`.
        let view: Box<dyn std::any::Any> = Box::new(unsafe { array.detach() });
        view.downcast().ok().map(|view| *view)
    })
}

/// Where elements lie: where their layout begins, and the layout. All arrays of Python may name the same memory, so an
/// operation that writes one of its arrays compares it with the others. Memory that the host sees may have another address on each
/// device: it goes by the host's.
#[derive(Clone)]
pub(crate) struct Place(u64, Layout);

impl Place {
    /// The place of a layout that begins at an address.
    pub(crate) fn new(start: u64, layout: Layout) -> Self {
        Self(start, layout)
    }

    pub(crate) fn of(elements: &Elements) -> Self {
        each!(elements, array => {
            let layout = array.layout();
            let first = array.host_address().map_or_else(|| array.address(), |host| host as u64);
            Self(first.wrapping_sub(layout.offset() as u64), layout.clone())
        })
    }

    /// The addresses from the first element to the last.
    pub(crate) fn bytes(&self) -> Range<u64> {
        let (start, extent) = (self.0, self.1.extent());
        start.wrapping_add(extent.start as u64)..start.wrapping_add(extent.end as u64)
    }

    /// Whether an element of one shares a byte with one of the other.
    pub(crate) fn shares(&self, other: &Self) -> bool {
        let first = self.0.min(other.0);
        let from_first = |Self(start, layout): &Self| {
            let offset = usize::try_from(start - first).ok()?.checked_add(layout.offset())?;
            layout.clone().with_offset(offset).ok()
        };
        // Memory so far apart that no layout reaches from one to the other is not shared.
        matches!((from_first(self), from_first(other)), (Some(own), Some(others)) if own.overlaps(&others))
    }
}

/// Refuses to write where only reading is allowed.
pub(crate) fn check_writable(read_only: bool) -> PyResult<()> {
    match read_only {
        false => Ok(()),
        true => Err(raise(gpumem::Error::new("", "write", ErrorKind::from(DescriptorError::ReadOnly)))),
    }
}
