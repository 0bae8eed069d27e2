//! A tensor that this library consumes, or that it made for another one.

use super::abi::{DLManagedTensor, DLManagedTensorVersioned, DLTensor, READ_ONLY};
use crate::foreign::ForeignElements;
use gpumem_core::{
    DescriptorError, DlpackDevice, Element, ElementType, ErrorKind, LayoutError, process::ProcessGuard,
};
use smallvec::SmallVec;
use std::{fmt, mem, ptr::NonNull};

/// An owned DLPack tensor: in the form since version 1.0, or in the older one. Dropping it calls its deleter, once.
pub struct DlpackTensor {
    form: Form,
    /// Its memory and its deleter are those of that process.
    origin: ProcessGuard,
}

#[derive(Clone, Copy)]
enum Form {
    Versioned(NonNull<DLManagedTensorVersioned>),
    Unversioned(NonNull<DLManagedTensor>),
}

// SAFETY: the producer promises that its deleter may be called from any thread.
unsafe impl Send for DlpackTensor {}
// SAFETY: nothing of it changes before it is dropped.
unsafe impl Sync for DlpackTensor {}

/// Most axes that are believed; NumPy and PyTorch have no more than 64.
const MOST_AXES: i32 = 64;

impl DlpackTensor {
    /// Takes a tensor over, to be deleted by us.
    ///
    /// # Safety
    /// * The pointer is a tensor by `dlpack.h` that has not been consumed: its shape and strides, where they are not
    ///   null, have as many numbers as it has axes.
    /// * Its deleter, where there is one, may be called from any thread.
    /// * It describes memory that stays valid, with initialised elements, until its deleter is called.
    /// * Unless it says that it may only be read, safe code cannot read or write the elements by any other object meanwhile.
    pub unsafe fn from_versioned(tensor: NonNull<DLManagedTensorVersioned>) -> Self {
        Self { form: Form::Versioned(tensor), origin: ProcessGuard::current() }
    }

    /// As [`from_versioned`](Self::from_versioned), for the form before version 1.0, which knows no read-only tensors.
    ///
    /// # Safety
    /// As for [`from_versioned`](Self::from_versioned).
    pub unsafe fn from_unversioned(tensor: NonNull<DLManagedTensor>) -> Self {
        Self { form: Form::Unversioned(tensor), origin: ProcessGuard::current() }
    }

    /// Passes the tensor to a consumer, which calls its deleter: a tensor of the form since version 1.0.
    ///
    /// # Errors
    /// Returns the tensor if it has the older form.
    pub fn into_versioned(self) -> Result<NonNull<DLManagedTensorVersioned>, Self> {
        match self.form {
            Form::Versioned(tensor) => {
                mem::forget(self);
                Ok(tensor)
            }
            Form::Unversioned(_) => Err(self),
        }
    }

    /// As [`into_versioned`](Self::into_versioned), for a tensor of the older form.
    ///
    /// # Errors
    /// Returns the tensor if it has the newer form.
    pub fn into_unversioned(self) -> Result<NonNull<DLManagedTensor>, Self> {
        match self.form {
            Form::Unversioned(tensor) => {
                mem::forget(self);
                Ok(tensor)
            }
            Form::Versioned(_) => Err(self),
        }
    }

    /// Whether the tensor has the form since version 1.0.
    pub fn is_versioned(&self) -> bool {
        matches!(self.form, Form::Versioned(_))
    }

    /// Whether it was taken over or made before this process was forked.
    pub(super) fn is_of_parent(&self) -> bool {
        self.origin.is_forked()
    }

    /// The address of the producer's own part, by which it knows the tensor.
    pub(super) fn context(&self) -> usize {
        let context = match self.form {
            // SAFETY: this value owns the tensor, which is alive; the field is at the same place in every version.
            Form::Versioned(tensor) => unsafe { (*tensor.as_ptr()).manager_ctx },
            // SAFETY: as above.
            Form::Unversioned(tensor) => unsafe { (*tensor.as_ptr()).manager_ctx },
        };
        context.addr()
    }

    /// The fields that later versions may change: all but the version, the deleter and the flags.
    fn tensor(&self) -> Result<&DLTensor, DescriptorError> {
        match self.form {
            // SAFETY: this value owns the tensor, which is alive; these fields are at the same place in every version.
            Form::Versioned(tensor) => match unsafe { (*tensor.as_ptr()).version } {
                // SAFETY: of a version whose structure is known.
                version if version.major == 1 => Ok(unsafe { &(*tensor.as_ptr()).dl_tensor }),
                version => Err(DescriptorError::Version {
                    protocol: "DLPack",
                    found: format!("{}.{}", version.major, version.minor),
                    understood: "1.x, and the form before 1.0",
                }),
            },
            // SAFETY: this value owns the tensor, which is alive.
            Form::Unversioned(tensor) => Ok(unsafe { &(*tensor.as_ptr()).dl_tensor }),
        }
    }

    /// Where the memory is.
    ///
    /// # Errors
    /// Returns [`DescriptorError::Version`] for an unknown version.
    pub fn device(&self) -> Result<DlpackDevice, DescriptorError> {
        let device = self.tensor()?.device;
        Ok(DlpackDevice::new(device.device_type, device.device_id))
    }

    /// Type of the elements.
    ///
    /// # Errors
    /// Returns [`DescriptorError::TypeName`] for a type that no element has here, and [`DescriptorError::Version`]
    /// for an unknown version.
    pub fn element(&self) -> Result<ElementType, DescriptorError> {
        super::element::read(self.tensor()?.dtype)
    }

    /// Number of axes.
    ///
    /// # Errors
    /// Returns [`DescriptorError::Version`] for an unknown version, and [`DescriptorError::Length`] for a negative
    /// number.
    pub fn ndim(&self) -> Result<usize, DescriptorError> {
        let axes = self.tensor()?.ndim;
        match usize::try_from(axes) {
            Ok(count) if axes <= MOST_AXES => Ok(count),
            _ => Err(DescriptorError::Length { axis: MOST_AXES as usize, length: i64::from(axes) }),
        }
    }

    /// Whether the memory must not be written. The form before version 1.0 cannot say so.
    pub fn is_read_only(&self) -> bool {
        match self.form {
            // SAFETY: as in `tensor`.
            Form::Versioned(tensor) => unsafe { (*tensor.as_ptr()).flags & READ_ONLY != 0 },
            Form::Unversioned(_) => false,
        }
    }

    pub(super) fn elements<T: Element>(&self) -> Result<ForeignElements, ErrorKind> {
        let tensor = *self.tensor()?;
        ElementType::check::<T>(self.element()?)?;
        let axes = self.ndim()?;
        let numbers = |pointer: *mut i64| -> Option<&[i64]> {
            match (pointer.is_null(), axes) {
                (_, 0) => Some(&[]),
                (true, _) => None,
                // SAFETY: as many numbers as axes, as its producer promises.
                (false, _) => Some(unsafe { std::slice::from_raw_parts(pointer, axes) }),
            }
        };
        let shape = numbers(tensor.shape).ok_or(DescriptorError::Missing { field: "shape" })?;
        let strides = numbers(tensor.strides);
        let item = size_of::<T>() as i64;
        let empty = shape.contains(&0);
        let bytes: Option<SmallVec<[i64; 6]>> = strides.filter(|_| axes > 0).and_then(|strides| {
            let scaled = |(stride, length): (&i64, &i64)| match stride.checked_mul(item) {
                // Strides of axes of length one mean nothing.
                None if empty || *length == 1 => Some(0),
                bytes => bytes,
            };
            strides.iter().zip(shape).map(scaled).collect()
        });
        if strides.is_some() && axes > 0 && bytes.is_none() {
            let shape = shape.iter().map(|&length| length.max(0) as usize).collect();
            return Err(LayoutError::TooLarge { shape, item: size_of::<T>() }.into());
        }
        let first = (tensor.data.addr() as u64).checked_add(tensor.byte_offset);
        let outside = DescriptorError::AddressSpace { address: tensor.data.addr() as u64, bytes: 0 };
        // A null address with an offset is as null as without.
        let first = if tensor.data.is_null() { 0 } else { first.ok_or(outside)? };
        // The provenance is the producer's; it is exposed so that the host may look.
        let _ = tensor.data.expose_provenance();
        ForeignElements::new::<T>(first, shape, bytes.as_deref(), self.is_read_only())
    }
}

impl Drop for DlpackTensor {
    fn drop(&mut self) {
        // SAFETY: this value owns the tensor, which is alive and dropped once.
        unsafe {
            match self.form {
                Form::Versioned(tensor) => {
                    if let Some(delete) = (*tensor.as_ptr()).deleter {
                        delete(tensor.as_ptr());
                    }
                }
                Form::Unversioned(tensor) => {
                    if let Some(delete) = (*tensor.as_ptr()).deleter {
                        delete(tensor.as_ptr());
                    }
                }
            }
        }
    }
}

impl fmt::Debug for DlpackTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DlpackTensor")
            .field("versioned", &self.is_versioned())
            .field("device", &self.device())
            .field("element", &self.element())
            .finish_non_exhaustive()
    }
}
