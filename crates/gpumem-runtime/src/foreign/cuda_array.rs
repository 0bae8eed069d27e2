//! The CUDA Array Interface, version 3.

use super::{ForeignElements, InterchangeStream};
use gpumem_core::{DescriptorError, Element, ElementType, ErrorKind};

/// One entry of `descr`: a field of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescrField {
    /// Its name; empty for padding.
    pub name: String,
    /// Its type. A record inside the record counts as opaque bytes.
    pub element: ElementType,
    /// The shape of a field that is an array itself; empty for a single value.
    pub shape: Vec<usize>,
}

/// The fields of `__cuda_array_interface__`, before any check.
///
/// The interface is NVIDIA's and Numba's; gpumem speaks it for every backend, because nothing in it is CUDA's own: the
/// address is one of the device, the stream a handle of the driver. For the host backend the memory is that of a host
/// device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CudaArrayInterface {
    /// Lengths of the axes.
    pub shape: Vec<i64>,
    /// Type of the elements.
    pub typestr: ElementType,
    /// Address of element `[0, 0, ..]` (0 where there is none), and whether the memory may only be read.
    pub data: (u64, bool),
    /// Bytes from one element to the next along each axis; `None` for packed elements in C order.
    pub strides: Option<Vec<i64>>,
    /// The fields of a record.
    pub descr: Option<Vec<DescrField>>,
    /// Whether there is a mask.
    pub mask: bool,
    /// Version of the protocol. gpumem writes 3 and reads 0 to 3; a stream is read from 3 on.
    pub version: i64,
    /// The elements are ready after this stream's work; `None` if no wait is needed.
    pub stream: Option<i64>,
}

/// The version that is written.
pub(crate) const VERSION: i64 = 3;

impl CudaArrayInterface {
    /// Checks everything that can be checked without a device: version, mask, element type and alignment, fields, shape,
    /// strides and their sums, address, stream. The same as an import does, which also looks for the device of the
    /// address.
    ///
    /// # Errors
    /// Returns [`Descriptor`](gpumem_core::ErrorKind::Descriptor) or [`Layout`](gpumem_core::ErrorKind::Layout), with
    /// one reason for each thing that can be wrong.
    pub fn validate<T: Element>(&self) -> Result<(), ErrorKind> {
        self.elements::<T>()?;
        self.stream_handle()?;
        Ok(())
    }

    /// The stream to wait for.
    ///
    /// # Errors
    /// Returns [`DescriptorError::Stream`] for a number that is no stream.
    pub fn stream_handle(&self) -> Result<Option<InterchangeStream>, DescriptorError> {
        match self.stream {
            // Older versions know no stream: the field is ignored.
            Some(number) if self.version >= 3 => InterchangeStream::from_number(number).map(Some),
            _ => Ok(None),
        }
    }

    pub(crate) fn elements<T: Element>(&self) -> Result<ForeignElements, ErrorKind> {
        if !(0..=VERSION).contains(&self.version) {
            let found = self.version.to_string();
            let protocol = "the CUDA Array Interface";
            return Err(DescriptorError::Version { protocol, found, understood: "0 to 3" }.into());
        }
        if self.mask {
            return Err(DescriptorError::Mask.into());
        }
        ElementType::check::<T>(self.typestr)?;
        self.check_fields()?;
        let (address, read_only) = self.data;
        ForeignElements::new::<T>(address, &self.shape, self.strides.as_deref(), read_only)
    }

    fn check_fields(&self) -> Result<(), DescriptorError> {
        let Some(fields) = &self.descr else { return Ok(()) };
        let size = |field: &DescrField| {
            field.shape.iter().try_fold(field.element.bytes, |bytes, &length| bytes.checked_mul(length))
        };
        let all = fields.iter().try_fold(0usize, |sum, field| sum.checked_add(size(field)?));
        let (found, expected) = (all.unwrap_or(usize::MAX), self.typestr.bytes);
        match found == expected {
            true => Ok(()),
            false => Err(DescriptorError::Fields { found, expected }),
        }
    }
}
