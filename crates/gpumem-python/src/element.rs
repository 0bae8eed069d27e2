//! NumPy's names for the elements of an array, and the library's elements that hold them.
//!
//! Numbers are held unchanged, dates and durations as integers. Records and texts are of any size: an array of them is
//! held as one of bytes, with one more axis that Python does not see. So are numbers that are not aligned, as fields of
//! packed records.

use crate::{
    dtype,
    error::{raise_descriptor, raise_layout},
    kept::Kept,
};
use gpumem::{
    ArraySpec, DescriptorError, ElementKind, ElementType, Layout, LayoutError, Order, ndarray::IxDyn,
};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::PyTuple,
};

/// The type of elements.
pub(crate) struct DType {
    element: ElementType,
    /// NumPy's object, where kind and size do not say all: records, texts, dates.
    numpy: Option<Kept>,
    /// Whether the elements are not aligned, so that the processor could not read them as numbers.
    unaligned: bool,
}

impl DType {
    /// Numbers, or bytes without a meaning.
    pub(crate) const fn plain(element: ElementType) -> Self {
        Self { element, numpy: None, unaligned: false }
    }

    /// Elements of so many bytes without a meaning.
    pub(crate) const fn bytes(count: usize) -> Self {
        Self::plain(ElementType::new(ElementKind::Opaque, count))
    }

    /// The type that NumPy makes of an object; `None` is float64, as in Numba.
    pub(crate) fn parse(py: Python<'_>, object: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let Some(object) = object.filter(|object| !object.is_none()) else {
            return Ok(Self::plain(ElementType::new(ElementKind::Float, 8)));
        };
        if let Some(element) = dtype::known_element(py, object)? {
            return Ok(Self::plain(element));
        }
        let found = py.import("numpy")?.getattr("dtype")?.call1((object,))?;
        let (kind, bytes): (char, usize) =
            (found.getattr("kind")?.extract()?, found.getattr("itemsize")?.extract()?);
        let refuse = |why| -> PyResult<Self> {
            let text = found.str()?.to_string();
            Err(raise_descriptor(DescriptorError::TypeName { text, why }))
        };
        if found.getattr("hasobject")?.is_truthy()? {
            return refuse("Python objects are no plain data");
        }
        if !found.getattr("isnative")?.is_truthy()? {
            return refuse("the byte order is not that of this machine");
        }
        let element = match kind {
            'V' if found.getattr("name")?.eq(dtype::BFLOAT16)? && is_of_extension(&found)? => {
                return Ok(Self::plain(ElementType::new(ElementKind::BFloat, bytes)));
            }
            'M' | 'm' => ElementType::new(ElementKind::Int, bytes),
            'V' | 'S' | 'U' if bytes == 0 => return refuse("the elements have no bytes"),
            'V' if !found.getattr("subdtype")?.is_none() => {
                return refuse("it is an array; add its axes to the shape");
            }
            'V' | 'S' | 'U' => ElementType::new(ElementKind::Opaque, bytes),
            _ => {
                let text: String = found.getattr("str")?.extract()?;
                return text.parse().map(Self::plain).map_err(raise_descriptor);
            }
        };
        Ok(Self { element, numpy: Some(found.unbind().into()), unaligned: false })
    }

    /// NumPy's object.
    pub(crate) fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match &self.numpy {
            Some(own) => self.check_unchanged(own.bind(py)).map(|()| own.bind(py).clone()),
            None => dtype::numpy(py, self.element),
        }
    }

    /// Refuses NumPy's object after a program has given it another state in place (`__setstate__`): who gets it would look beyond the
    /// elements.
    fn check_unchanged(&self, own: &Bound<'_, PyAny>) -> PyResult<()> {
        let size: usize = own.getattr("itemsize")?.extract()?;
        match size == self.size() && !own.getattr("hasobject")?.is_truthy()? {
            true => Ok(()),
            false => {
                Err(PyTypeError::new_err("the elements have another type than that: it was changed in place"))
            }
        }
    }

    /// The number that each element is, if it is one and aligned.
    pub(crate) fn number(&self) -> Option<ElementType> {
        (self.numpy.is_none() && !self.is_bytes()).then_some(self.element)
    }

    /// Bytes of an element.
    pub(crate) fn size(&self) -> usize {
        self.element.bytes
    }

    /// Whether the elements are held as bytes, with an axis of their own.
    pub(crate) fn is_bytes(&self) -> bool {
        self.unaligned || self.element.kind == ElementKind::Opaque
    }

    /// Whether NumPy's protocols have no name for the elements.
    pub(crate) fn is_nameless(&self) -> bool {
        self.is_bytes() || self.element.kind == ElementKind::BFloat
    }

    /// The same elements, held as bytes unless they are aligned.
    pub(crate) fn with_alignment(self, aligned: bool) -> Self {
        Self { unaligned: !aligned, ..self }
    }

    /// Whether they are numbers held as bytes.
    pub(crate) fn is_unaligned(&self) -> bool {
        self.unaligned
    }

    /// The alignment of each element, if it is held unchanged.
    pub(crate) fn alignment(&self) -> usize {
        match self.element.kind {
            ElementKind::Opaque => 1,
            ElementKind::Complex => self.size() / 2,
            _ => self.size(),
        }
    }

    /// The library's element.
    pub(crate) fn held(&self) -> ElementType {
        if self.is_bytes() { ElementType::new(ElementKind::UInt, 1) } else { self.element }
    }

    /// Whether elements of both types are the same.
    pub(crate) fn same(&self, py: Python<'_>, other: &Self) -> PyResult<bool> {
        if self.element != other.element || self.numpy.is_some() != other.numpy.is_some() {
            return Ok(false);
        }
        match (&self.numpy, &other.numpy) {
            (Some(own), Some(other)) => own.bind(py).eq(other.bind(py)),
            _ => Ok(true),
        }
    }

    /// Refuses another type.
    pub(crate) fn expect(&self, py: Python<'_>, found: &Self) -> PyResult<()> {
        if self.same(py, found)? {
            return Ok(());
        }
        let (found, wanted) = (found.name(py)?, self.name(py)?);
        Err(PyTypeError::new_err(format!("the elements are {found}, and {wanted} is needed")))
    }

    /// The name, for messages.
    pub(crate) fn name(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.numpy(py)?.str()?.to_string())
    }

    pub(crate) fn clone_ref(&self, py: Python<'_>) -> Self {
        let numpy = self.numpy.as_ref().map(|own| own.clone_ref(py).into());
        Self { element: self.element, numpy, unaligned: self.unaligned }
    }

    /// The layout of the library's elements, for a layout of NumPy's.
    pub(crate) fn held_layout(&self, layout: &Layout) -> PyResult<Layout> {
        if !self.is_bytes() {
            return Ok(layout.clone());
        }
        let (shape, strides) = with_bytes(layout.shape(), layout.strides(), self.size());
        Layout::strided(&shape, &strides, 1)
            .and_then(|held| held.with_offset(layout.offset()))
            .map_err(raise_layout)
    }

    /// The layout of NumPy's elements, for a layout of the library's.
    pub(crate) fn layout(&self, held: &Layout) -> PyResult<Layout> {
        if !self.is_bytes() {
            return Ok(held.clone());
        }
        let (size, broken) = (self.size(), || PyValueError::new_err("the array holds elements of another size"));
        let (length, shape) = held.shape().split_last().ok_or_else(broken)?;
        let (stride, strides) = held.strides().split_last().ok_or_else(broken)?;
        // The last axis is the bytes of an element. What another process has exported may say otherwise.
        if *length != size || (size > 1 && *stride != 1) {
            return Err(broken());
        }
        Layout::strided(shape, strides, size)
            .and_then(|layout| layout.with_offset(held.offset()))
            .map_err(raise_layout)
    }

    /// The shape of a new array of this type, as it is held.
    pub(crate) fn held_spec(&self, spec: ArraySpec<IxDyn>) -> PyResult<ArraySpec<IxDyn>> {
        if !self.is_bytes() {
            return Ok(spec);
        }
        let held = self.held_layout(&spec.layout(self.size()).map_err(raise_layout)?)?;
        Ok(ArraySpec::new(IxDyn(held.shape())).strides(held.strides()))
    }

    /// A field of records: its place in a record, its type, and its own shape.
    pub(crate) fn field<'py>(&self, py: Python<'py>, name: &Bound<'py, PyAny>) -> PyResult<Field> {
        let fields = self.numpy(py)?.getattr("fields")?;
        if fields.is_none() {
            let text = "only arrays of records have fields";
            return Err(pyo3::exceptions::PyIndexError::new_err(text));
        }
        let found = fields.get_item(name)?;
        let found = found.cast::<PyTuple>()?;
        let (dtype, offset) = (found.get_item(0)?, found.get_item(1)?.extract()?);
        let parts = dtype.getattr("subdtype")?;
        let (dtype, shape) = match parts.is_none() {
            true => (dtype, Vec::new()),
            false => (parts.get_item(0)?, parts.get_item(1)?.extract()?),
        };
        Ok(Field { offset, dtype: Self::parse(py, Some(&dtype))?, shape })
    }
}

/// A field of records.
pub(crate) struct Field {
    offset: usize,
    pub(crate) dtype: DType,
    /// Lengths of the field's own axes.
    shape: Vec<usize>,
}

impl Field {
    /// Where the field lies in records of a layout.
    pub(crate) fn layout(&self, records: &Layout) -> PyResult<Layout> {
        let own = Layout::packed(&self.shape, self.dtype.size(), Order::C).map_err(raise_layout)?;
        let shape = [records.shape(), own.shape()].concat();
        let strides = [records.strides(), own.strides()].concat();
        // NumPy's types can be changed after they are made, to any offset.
        let too_large = || LayoutError::TooLarge { shape: shape.clone(), item: self.dtype.size() };
        let offset = records.offset().checked_add(self.offset).ok_or_else(too_large);
        Layout::strided(&shape, &strides, self.dtype.size())
            .and_then(|layout| layout.with_offset(offset?))
            .map_err(raise_layout)
    }
}

/// Whether a type is one of `ml_dtypes`: a class of the program's may have any name.
fn is_of_extension(dtype: &Bound<'_, PyAny>) -> PyResult<bool> {
    dtype.getattr("type")?.getattr("__module__")?.eq("ml_dtypes")
}

/// The layout of the bytes between the first and the last of a layout.
pub(crate) fn all_bytes(layout: &Layout) -> Result<Layout, LayoutError> {
    let extent = layout.extent();
    Layout::packed(&[extent.len()], 1, Order::C)?.with_offset(extent.start)
}

/// Shape and strides with one more axis, of the bytes of each element.
pub(crate) fn with_bytes(shape: &[usize], strides: &[isize], size: usize) -> (Vec<usize>, Vec<isize>) {
    ([shape, &[size]].concat(), [strides, &[1]].concat())
}
