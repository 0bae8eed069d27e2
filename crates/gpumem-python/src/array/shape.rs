//! The same elements in other shapes: views.

use crate::{
    device_array::DeviceNDArray,
    element::DType,
    error::{raise, raise_layout},
    list::Listed,
};
use gpumem::{Error, Layout, LayoutError, Order, ndarray::SliceInfoElem};
use pyo3::{exceptions::PyValueError, prelude::*, types::PyTuple};

impl DeviceNDArray {
    /// A view by a layout that lies within this array's.
    pub(super) fn relayout(&self, py: Python<'_>, layout: &Layout) -> PyResult<Self> {
        self.at(layout, self.dtype.clone_ref(py))
    }

    /// The order that a letter names, for elements that lie as these do. `K` is the order in memory.
    pub(super) fn order(&self, letter: &str) -> PyResult<Order> {
        let layout = self.layout()?;
        let is_f = layout.is_f_contiguous() && !layout.is_c_contiguous();
        match letter {
            "C" => Ok(Order::C),
            "F" => Ok(Order::F),
            "A" | "K" if is_f => Ok(Order::F),
            "A" => Ok(Order::C),
            "K" if layout.is_c_contiguous() => Ok(Order::C),
            "K" => Err(raise(Error::new("", "ravel", needs_copy(&layout)))),
            _ => Err(PyValueError::new_err("the order is 'C', 'F', 'A' or 'K'")),
        }
    }

    /// The elements in another shape; one length may be -1.
    pub(super) fn reshaped(&self, py: Python<'_>, shape: &Bound<'_, PyTuple>, order: &str) -> PyResult<Self> {
        let Listed(shape) = match shape.len() {
            1 if shape.get_item(0)?.extract::<isize>().is_err() => shape.get_item(0)?.extract()?,
            _ => shape.extract()?,
        };
        if order == "K" {
            return Err(PyValueError::new_err("the order is 'C', 'F' or 'A'"));
        }
        let layout = self.layout()?.reshape(&shape, self.order(order)?).map_err(raise_layout)?;
        self.relayout(py, &layout)
    }

    /// The elements along one axis.
    pub(super) fn raveled(&self, py: Python<'_>, order: &str) -> PyResult<Self> {
        self.relayout(py, &self.layout()?.ravel(self.order(order)?).map_err(raise_layout)?)
    }

    /// The same bytes as elements of another type.
    pub(super) fn viewed(&self, py: Python<'_>, dtype: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let dtype = match dtype.filter(|dtype| !dtype.is_none()) {
            Some(dtype) => DType::parse(py, Some(dtype))?,
            None => self.dtype.clone_ref(py),
        };
        let layout = self.layout()?.reinterpret(dtype.size()).map_err(|error| match error {
            LayoutError::NeedsCopy { .. } => PyValueError::new_err(
                "To change to a dtype of a different size, the last axis must be contiguous",
            ),
            LayoutError::CannotReinterpret { .. } => PyValueError::new_err(
                "When changing to a larger dtype, its size must be a divisor of the total size in bytes of the last axis of the array.",
            ),
            error => raise_layout(error),
        })?;
        self.at(&layout, dtype)
    }

    /// The axes in another order: the reversed one, or as one argument or several say.
    pub(super) fn permuted(&self, py: Python<'_>, axes: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let layout = self.layout()?;
        let Listed::<isize>(named) = match axes.len() {
            0 => return self.relayout(py, &layout.reversed_axes()),
            1 if axes.get_item(0)?.is_none() => return self.relayout(py, &layout.reversed_axes()),
            1 if axes.get_item(0)?.extract::<isize>().is_err() => axes.get_item(0)?.extract()?,
            _ => axes.extract()?,
        };
        let axes: Vec<usize> =
            named.iter().map(|axis| place(*axis, layout.ndim())).collect::<PyResult<_>>()?;
        let transposed = layout.transpose(&axes).map_err(|error| match axes.len() == layout.ndim() {
            true => PyValueError::new_err("repeated axis in transpose"),
            false => raise_layout(error),
        })?;
        self.relayout(py, &transposed)
    }

    /// The elements without axes of length one.
    pub(super) fn without_axes(&self, py: Python<'_>, axis: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let layout = self.layout()?;
        let Some(axis) = axis.filter(|axis| !axis.is_none()) else {
            return self.relayout(py, &layout.squeeze());
        };
        let named = match axis.cast::<PyTuple>() {
            Ok(axes) => axes.extract::<Listed<isize>>()?.0,
            Err(_) => vec![axis.extract()?],
        };
        let mut dropped = vec![false; layout.ndim()];
        for axis in named {
            let at = place(axis, layout.ndim())?;
            let length = layout.shape().get(at).copied().unwrap_or_default();
            if length != 1 {
                let text = format!("axis {axis} has {length} elements and cannot be squeezed");
                return Err(PyValueError::new_err(text));
            }
            if dropped.get_mut(at).is_some_and(|dropped| std::mem::replace(dropped, true)) {
                return Err(PyValueError::new_err(format!("axis {axis} is named twice")));
            }
        }
        let key = dropped.iter().map(|dropped| match dropped {
            true => SliceInfoElem::Index(0),
            false => SliceInfoElem::Slice { start: 0, end: None, step: 1 },
        });
        let layout = layout.slice(&key.collect::<Vec<_>>()).map_err(raise_layout)?;
        self.relayout(py, &layout)
    }
}

/// An axis counted from the first one; negative ones count from the last.
fn place(axis: isize, ndim: usize) -> PyResult<usize> {
    let from_start = if axis < 0 { axis.saturating_add_unsigned(ndim) } else { axis };
    let found = usize::try_from(from_start).ok().filter(|place| *place < ndim);
    let none = || PyValueError::new_err(format!("axis {axis} is out of bounds for array of dimension {ndim}"));
    found.ok_or_else(none)
}

fn needs_copy(layout: &Layout) -> LayoutError {
    let (shape, strides) = (layout.shape().to_vec(), layout.strides().to_vec());
    LayoutError::NeedsCopy { shape, strides }
}
