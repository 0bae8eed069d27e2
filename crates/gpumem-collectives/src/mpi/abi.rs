//! The functions and constants of MPI's standard ABI (version 1, of MPI 5.0) that the engine uses.
//!
//! Handles are pointers that the library makes, or small numbers of the standard. So every implementation of the ABI takes
//! them.

pub(crate) mod table;

use crate::step::Combine;
use std::ffi::{c_char, c_int, c_void};

/// An object of the library. The numbers below are those of the standard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub(crate) struct Object(pub(crate) usize);

pub(crate) const COMM_NULL: Object = Object(0x100);
pub(crate) const COMM_WORLD: Object = Object(0x101);
pub(crate) const COMM_SELF: Object = Object(0x102);
pub(crate) const GROUP_NULL: Object = Object(0x108);
pub(crate) const ERRORS_RETURN: Object = Object(0x143);
pub(crate) const REQUEST_NULL: Object = Object(0x180);

pub(crate) const OP_NULL: Object = Object(0x20);
pub(crate) const SUM: Object = Object(0x21);
pub(crate) const MIN: Object = Object(0x22);
pub(crate) const MAX: Object = Object(0x23);
pub(crate) const PROD: Object = Object(0x24);

pub(crate) const DATATYPE_NULL: Object = Object(0x200);
pub(crate) const FLOAT: Object = Object(0x210);
pub(crate) const C_FLOAT_COMPLEX: Object = Object(0x212);
pub(crate) const DOUBLE: Object = Object(0x214);
pub(crate) const C_DOUBLE_COMPLEX: Object = Object(0x216);
pub(crate) const INT8_T: Object = Object(0x240);
pub(crate) const UINT8_T: Object = Object(0x241);
pub(crate) const BYTE: Object = Object(0x247);
pub(crate) const INT32_T: Object = Object(0x250);
pub(crate) const UINT32_T: Object = Object(0x251);
pub(crate) const INT64_T: Object = Object(0x258);
pub(crate) const UINT64_T: Object = Object(0x259);

pub(crate) const SUCCESS: c_int = 0;
pub(crate) const ANY_SOURCE: c_int = -1;
pub(crate) const THREAD_MULTIPLE: c_int = 4096;
pub(crate) const MAX_ERROR_STRING: usize = 512;
pub(crate) const MAX_LIBRARY_VERSION_STRING: usize = 8192;
/// A pointer that stands for the other buffer of a call.
pub(crate) const IN_PLACE: usize = 1;

/// `MPI_Comm_delete_attr_function`.
pub(crate) type DeleteAttribute = unsafe extern "C" fn(Object, c_int, *mut c_void, *mut c_void) -> c_int;

/// `MPI_Count` and `MPI_Aint`.
pub(crate) type Count = i64;
/// `MPI_Status`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Status {
    pub(crate) source: c_int,
    pub(crate) tag: c_int,
    pub(crate) error: c_int,
    internal: [c_int; 5],
}
