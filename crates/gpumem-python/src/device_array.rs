//! An array in device memory: its elements, and views of it. Its methods in Python are in [`array`](crate::array).

use crate::dtype::{each, with_type};
use crate::{
    dtype,
    dtype::{Elements, hold},
    element::{DType, all_bytes},
    error::{raise, raise_layout},
    in_use::Swept,
    kept::Kept,
};
use gpumem::{AnyBackend, ArraySpec, Layout, Loan, ndarray::IxDyn};
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};

/// How elements are taken from a source.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Of equal shape and type.
    Copy,
    /// Broadcast and converted, as NumPy's assignment to a part does.
    Assign,
    /// Converted, as NumPy's assignment to an element does.
    AssignOne,
}

/// An n-d array in memory of a device, or a view of one.
#[pyclass(frozen, module = "pygpumem", name = "DeviceNDArray")]
pub(crate) struct DeviceNDArray {
    pub(crate) elements: Elements,
    pub(crate) dtype: DType,
    pub(crate) read_only: bool,
    /// The owner of the memory, where another object shares it.
    pub(crate) owner: Option<Kept>,
    /// The loan of `__cuda_array_interface__`. The last descriptor's loan replaces the earlier ones.
    lent: Lent,
    _swept: Swept,
}

/// A loan that ends without Python's lock: its end waits for the queue of the borrower's stream, which another thread may have, and that
/// thread for Python's.
#[derive(Default)]
struct Lent(Mutex<Option<Loan<AnyBackend>>>);

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(loan) = self.0.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            Python::try_attach(|py| py.detach(|| drop(loan)));
        }
    }
}

impl DeviceNDArray {
    /// An array of the library's elements that hold elements of that type.
    pub(crate) fn new(elements: Elements, dtype: DType) -> Self {
        Self { elements, dtype, read_only: false, owner: None, lent: Lent::default(), _swept: Swept }
    }

    /// An array over memory of another object.
    pub(crate) fn adopted(elements: Elements, dtype: DType, read_only: bool, owner: Py<PyAny>) -> Self {
        Self { owner: Some(owner.into()), read_only, ..Self::new(elements, dtype) }
    }

    /// The array, which cannot be written.
    pub(crate) fn into_read_only(self) -> Self {
        Self { read_only: true, ..self }
    }

    /// Keeps a loan until the next one.
    pub(crate) fn keep(&self, py: Python<'_>, loan: Loan<AnyBackend>) {
        let earlier = self.lent.0.lock().unwrap_or_else(PoisonError::into_inner).replace(loan);
        py.detach(|| drop(earlier));
    }

    /// Where the elements lie.
    pub(crate) fn layout(&self) -> PyResult<Layout> {
        each!(&self.elements, array => self.dtype.layout(array.layout()))
    }

    /// A view of elements of any type, by a layout that lies within this array's.
    pub(crate) fn at(&self, layout: &Layout, dtype: DType) -> PyResult<Self> {
        let own =
            each!(&self.elements, array => array.address().wrapping_sub(array.layout().offset() as u64));
        let align = dtype.alignment();
        let aligned =
            layout.is_empty() || (own.is_multiple_of(align as u64) && layout.check_alignment(align).is_ok());
        let dtype = dtype.with_alignment(aligned);
        let held = dtype.held_layout(layout)?;
        let same = each!(&self.elements, _array => gpumem::ElementType::of::<T>() == dtype.held());
        let elements = match same {
            // SAFETY: Python's arrays promise nothing about their elements, and check `read_only` before they write.
            true => each!(&self.elements, array => unsafe { array.detach_as::<T>(held) }.map(Elements::from)),
            false => self.of_another_type(dtype.held(), held)?,
        };
        let elements = elements.map_err(raise)?;
        Ok(Self { read_only: self.read_only, ..Self::new(elements, dtype) })
    }

    /// As [`at`](Self::at), for the library's elements.
    fn of_another_type(
        &self,
        element: gpumem::ElementType,
        held: Layout,
    ) -> PyResult<Result<Elements, gpumem::Error>> {
        let bytes = self.bytes()?;
        // SAFETY: as in `at`.
        with_type!(element, unsafe { bytes.detach_as::<T>(held) }.map(Elements::from))
    }

    /// All bytes from the first element to the last.
    pub(crate) fn bytes(&self) -> PyResult<gpumem::DeviceViewMut<'static, u8, IxDyn>> {
        each!(&self.elements, array => {
            let bytes = all_bytes(array.layout()).map_err(raise_layout)?;
            // SAFETY: as in `at`.
            unsafe { array.detach_as::<u8>(bytes) }.map_err(raise)
        })
    }

    /// The bytes of each element, along one more axis.
    pub(crate) fn bytes_of_elements(&self) -> PyResult<gpumem::DeviceViewMut<'static, u8, IxDyn>> {
        let bytes = self.in_bytes()?;
        let held = each!(&bytes.elements, array => array.layout().clone());
        // SAFETY: as in `at`.
        each!(&bytes.elements, array => unsafe { array.detach_as::<u8>(held) }).map_err(raise)
    }

    /// A copy on the device of a stream.
    pub(crate) fn copy_on(&self, py: Python<'_>, stream: &gpumem::Stream) -> PyResult<Self> {
        let spec = match self.copies_keep_bytes() {
            true => None,
            false => {
                let held = self.dtype.held_layout(&self.layout()?.like())?;
                Some(ArraySpec::new(IxDyn(held.shape())).strides(held.strides()))
            }
        };
        let elements = each!(&self.elements, array => {
            py.detach(|| match spec {
                None => stream.to_device(array),
                Some(spec) => {
                    let mut copy = stream.device_array(spec)?;
                    stream.copy_to_device(&mut copy, array)?;
                    Ok(copy)
                }
            })
            .map(|array| hold(&array))
        });
        Self::copied(py, elements.map_err(raise)?, self.dtype.clone_ref(py))
    }

    /// Whether a copy that the library lays out has the bytes of each element side by side. It puts the axis of a broadcast innermost, as
    /// NumPy does, and with elements that are held as bytes that would be within each.
    pub(crate) fn copies_keep_bytes(&self) -> bool {
        !self.dtype.is_bytes()
            || each!(&self.elements, array => self.dtype.layout(&array.layout().like()).is_ok())
    }

    /// A new array: elements that were not aligned are so now.
    pub(crate) fn copied(py: Python<'_>, elements: Elements, dtype: DType) -> PyResult<Self> {
        let array = Self::new(elements, dtype);
        match array.dtype.is_unaligned() {
            true => array.at(&array.layout()?, array.dtype.clone_ref(py)),
            false => Ok(array),
        }
    }

    /// The array with its elements held as bytes.
    pub(crate) fn in_bytes(&self) -> PyResult<Self> {
        self.at(&self.layout()?, DType::bytes(self.dtype.size()))
    }

    /// The array as one of `T`, if it is one.
    pub(crate) fn elements_of<T: gpumem::Element>(&self) -> Option<gpumem::DeviceViewMut<'static, T, IxDyn>> {
        dtype::elements_of(&self.elements)
    }

    /// The same elements once more.
    pub(crate) fn again(&self) -> Elements {
        dtype::again(&self.elements)
    }
}
