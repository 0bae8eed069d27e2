//! Fields of records.

use super::{ArrayBase, DeviceView, DeviceViewMut, Storage, StorageMut};
use crate::Layout;
use gpumem_core::{Element, Result};
use ndarray::Dimension;
use std::{fmt, marker::PhantomData};

/// A field of the record `R` with values of `F`, made by [`field!`](crate::field).
pub struct Field<R, F> {
    offset: usize,
    marker: PhantomData<fn(*const R) -> *const F>,
}

impl<R, F> Field<R, F> {
    /// Used by [`field!`](crate::field). `access` only fixes the type: a raw pointer to a field has no other, while a
    /// reference would be dereferenced further where a caller names another type.
    ///
    /// # Safety
    /// A value of `F` lies `offset` bytes into every `R`.
    #[doc(hidden)]
    pub const unsafe fn new(offset: usize, access: fn(*const R) -> *const F) -> Self {
        let _ = access;
        Self { offset, marker: PhantomData }
    }

    /// Bytes from the start of the record.
    pub const fn offset(&self) -> usize {
        self.offset
    }
}

impl<R, F> Clone for Field<R, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R, F> Copy for Field<R, F> {}

impl<R, F> fmt::Debug for Field<R, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Field").field(&self.offset).finish()
    }
}

/// Names a field of a record: `field!(Particle, mass)` is a [`Field<Particle, f32>`](crate::Field).
///
/// ```
/// #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
/// #[repr(C)]
/// struct Particle { position: [f32; 3], mass: f32 }
///
/// assert_eq!(gpumem_runtime::field!(Particle, mass).offset(), 12);
/// ```
#[macro_export]
macro_rules! field {
    ($record:ty, $field:ident) => {
        // SAFETY: offset and type are those of the field itself. `access` is never called.
        unsafe {
            $crate::Field::new($crate::__core::mem::offset_of!($record, $field), |record: *const $record| {
                // A packed record may hold its fields where they are not aligned: rustc refuses a reference to them.
                let _ = |record: &$record| _ = &record.$field;
                &raw const (*record).$field
            })
        }
    };
}

impl<S: Storage, D: Dimension> ArrayBase<S, D> {
    /// Returns a view of one field of every record.
    /// ```
    /// # use gpumem_runtime::field;
    /// #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
    /// #[repr(C)]
    /// struct Particle { position: [f32; 3], mass: f32 }
    ///
    /// # let device = gpumem_runtime::Device::<gpumem_host::Host>::open("host")?;
    /// let particles = device.device_array::<Particle, _>(100)?;
    /// let masses = particles.field(field!(Particle, mass))?;
    /// assert_eq!(masses.copy_to_host()?.sum(), 0.0);
    /// # Ok::<(), gpumem_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns no error for fields made by [`field!`](crate::field).
    pub fn field<F: Element>(&self, field: Field<S::Elem, F>) -> Result<DeviceView<'_, F, D, S::Backend>> {
        Ok(ArrayBase::over(self.memory.clone(), self.field_layout("field", field)?))
    }

    fn field_layout<F: Element>(&self, operation: &'static str, field: Field<S::Elem, F>) -> Result<Layout> {
        self.layout.field(field.offset, size_of::<F>()).map_err(|error| self.fail(operation, error))
    }
}

impl<S: StorageMut, D: Dimension> ArrayBase<S, D> {
    /// Returns a mutable view of one field of every record.
    ///
    /// # Errors
    /// Returns no error for fields made by [`field!`](crate::field).
    pub fn field_mut<F: Element>(
        &mut self,
        field: Field<S::Elem, F>,
    ) -> Result<DeviceViewMut<'_, F, D, S::Backend>> {
        Ok(ArrayBase::over(self.memory.clone(), self.field_layout("field_mut", field)?))
    }
}
