//! DLPack's structures, as its header `dlpack.h` lays them out.

use std::ffi::c_void;

/// `DLDevice`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct DLDevice {
    /// `DLDeviceType`.
    pub device_type: i32,
    /// Position of the device.
    pub device_id: i32,
}

/// `DLDataType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct DLDataType {
    /// `DLDataTypeCode`.
    pub code: u8,
    /// Bits of a lane.
    pub bits: u8,
    /// Lanes of an element; 1 for a scalar.
    pub lanes: u16,
}

/// `DLTensor`: elements at an address.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct DLTensor {
    /// Address of the memory; null without elements.
    pub data: *mut c_void,
    /// Where the memory is.
    pub device: DLDevice,
    /// Number of axes.
    pub ndim: i32,
    /// Type of the elements.
    pub dtype: DLDataType,
    /// Lengths of the axes.
    pub shape: *mut i64,
    /// Strides in *elements*; null for packed elements in C order.
    pub strides: *mut i64,
    /// Bytes from `data` to the first element.
    pub byte_offset: u64,
}

/// `DLManagedTensor`: the form before version 1.0.
#[derive(Debug)]
#[repr(C)]
pub struct DLManagedTensor {
    /// The elements.
    pub dl_tensor: DLTensor,
    /// The producer's own.
    pub manager_ctx: *mut c_void,
    /// To be called once by the consumer of the tensor.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensor)>,
}

/// `DLPackVersion`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct DLPackVersion {
    /// Changes when the layout of the structures does.
    pub major: u32,
    /// Changes when something is added.
    pub minor: u32,
}

/// `DLManagedTensorVersioned`: the form since version 1.0.
#[derive(Debug)]
#[repr(C)]
pub struct DLManagedTensorVersioned {
    /// Version of the structure.
    pub version: DLPackVersion,
    /// The producer's own.
    pub manager_ctx: *mut c_void,
    /// To be called once by the consumer of the tensor.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
    /// [`READ_ONLY`] and [`IS_COPIED`].
    pub flags: u64,
    /// The elements.
    pub dl_tensor: DLTensor,
}

/// The version that is written.
pub const VERSION: DLPackVersion = DLPackVersion { major: 1, minor: 0 };
/// `DLPACK_FLAG_BITMASK_READ_ONLY`.
pub const READ_ONLY: u64 = 1;
/// `DLPACK_FLAG_BITMASK_IS_COPIED`.
pub const IS_COPIED: u64 = 2;

// The layout on every machine with addresses of 64 bits, by dlpack.h 1.0.
#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(size_of::<DLDataType>() == 4 && size_of::<DLDevice>() == 8);
    assert!(size_of::<DLTensor>() == 48 && size_of::<DLManagedTensor>() == 64);
    assert!(size_of::<DLManagedTensorVersioned>() == 80);
    assert!(std::mem::offset_of!(DLManagedTensorVersioned, flags) == 24);
    assert!(std::mem::offset_of!(DLTensor, dtype) == 20);
};
