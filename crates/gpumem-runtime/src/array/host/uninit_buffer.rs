//! Room for a new host array, which becomes one when every element has been written.

use crate::{layout::Layout, tuning::TUNING};
use gpumem_core::{Element, Error, ErrorKind, Result, process};
use ndarray::{Array, Dimension, ShapeBuilder, StrideShape};

/// A new array of the host that lies as a packed layout does. Where there are no bytes, its strides do not matter.
pub(crate) fn packed_shape<T, D: Dimension>(shape: D, packed: &Layout) -> StrideShape<D> {
    let size = size_of::<T>();
    if packed.is_empty() || size == 0 {
        return shape.into();
    }
    let mut strides = D::zeros(shape.ndim());
    for (slot, stride) in strides.slice_mut().iter_mut().zip(packed.strides()) {
        *slot = stride.unsigned_abs() / size;
    }
    shape.strides(strides)
}

/// Elements that have not been written yet. They are not cleared either: the system has cleared fresh pages, and those
/// that the allocator gives out again, as it does for arrays of some MiB that come and go, would be written twice.
#[derive(Debug)]
pub(crate) struct UninitBuffer<T, D: Dimension> {
    elements: Vec<T>,
    shape: StrideShape<D>,
}

impl<T: Element, D: Dimension> UninitBuffer<T, D> {
    /// Room for an array. Where the memory does not suffice, an error instead of the end of the process.
    pub(crate) fn new(operation: &'static str, shape: StrideShape<D>) -> Result<Self> {
        let mut elements: Vec<T> = Vec::new();
        let bytes = shape.size().saturating_mul(size_of::<T>());
        elements.try_reserve_exact(shape.size()).map_err(|_| {
            let kind =
                ErrorKind::OutOfMemory { requested: bytes, kind: "host", free: 0, total: 0, pressure: None };
            Error::new("", operation, kind)
        })?;
        if bytes >= TUNING.huge_pages_from {
            // Pages that have not been touched yet; filling them is most of the cost of a large download.
            process::advise_huge_pages(elements.as_ptr().cast(), bytes);
        }
        Ok(Self { elements, shape })
    }

    /// The lowest element: valid for writes of all of them, and of no other memory.
    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.elements.as_mut_ptr().cast()
    }

    /// The array.
    ///
    /// # Safety
    /// Every element has been written.
    /// Returns an error if the strides leave gaps, or overlap.
    pub(crate) unsafe fn into_array(mut self, operation: &'static str) -> Result<Array<T, D>> {
        // SAFETY: there is room for them, and the caller says that they are written.
        unsafe { self.elements.set_len(self.shape.size()) };
        let why = "the strides of a new array are not those of a packed one";
        Array::from_shape_vec(self.shape, self.elements)
            .map_err(|_| Error::new("", operation, ErrorKind::InvalidArgument { why }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Ix1, Ix2};

    #[test]
    fn written_elements_are_read_back() {
        let shape = Ix2(2, 3).strides(Ix2(1, 2));
        let mut room = UninitBuffer::<u16, _>::new("test", shape).unwrap();
        let first = room.as_mut_ptr().cast::<u16>();
        // SAFETY: six elements, all of them written.
        let array = unsafe {
            (0..6).for_each(|index| first.add(index).write(index as u16));
            room.into_array("test").unwrap()
        };
        assert_eq!(array, ndarray::arr2(&[[0, 2, 4], [1, 3, 5]]));
    }

    #[test]
    fn short_buffers_and_overlapping_strides_are_refused() {
        let lengths = [isize::MAX as usize, isize::MAX as usize / 8];
        // Miri ends the program if an allocation fails; a request never exceeds the address space.
        for len in lengths.into_iter().take(if cfg!(miri) { 1 } else { 2 }) {
            let error = UninitBuffer::<f64, _>::new("test", Ix1(len).into()).unwrap_err();
            assert!(error.is_out_of_memory(), "{error}");
        }
        let room = UninitBuffer::<u8, _>::new("test", Ix2(0, 2).strides(Ix2(1, 0))).unwrap();
        // SAFETY: there are no elements.
        assert!(unsafe { room.into_array("test") }.is_ok_and(|array| array.is_empty()));
    }
}
